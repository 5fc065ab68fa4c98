//! Many datagrams with one call, each as a packet of its own.

use std::io::{self, IoSlice};
use std::net::SocketAddr;

use rustix::io::retry_on_intr;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};

use super::Item;
use crate::io::Socket;

/// Addresses as the kernel wants them, kept from call to call: nearly always those of the call
/// before.
pub struct Addresses {
    kernel: Vec<SocketAddrAny>,
    known: Vec<SocketAddr>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.known.fmt(f)
    }
}

impl Addresses {
    /// None yet.
    pub fn new() -> Self {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            kernel: vec![nobody.as_any(); BATCH],
            known: vec![nobody; BATCH],
        }
    }

    /// Sends `items`, which have one code point, with one call; returns how many left.
    pub fn send(&mut self, socket: &Socket, items: &[Item], buffer: &[u8]) -> io::Result<usize> {
        let Some(first) = items.first() else {
            return Ok(0);
        };
        socket.mark(first.ecn)?;
        for ((item, known), kernel) in items.iter().zip(&mut self.known).zip(&mut self.kernel) {
            if item.to != *known {
                *known = item.to;
                *kernel = item.to.as_any();
            }
        }
        match items.len() {
            1 => self.call::<1>(socket, items, buffer),
            2..=8 => self.call::<8>(socket, items, buffer),
            _ => self.call::<BATCH>(socket, items, buffer),
        }
    }

    /// With headers for `N` datagrams on the stack.
    fn call<const N: usize>(
        &self,
        socket: &Socket,
        items: &[Item],
        buffer: &[u8],
    ) -> io::Result<usize> {
        let slices: [[IoSlice<'_>; 1]; N] = std::array::from_fn(|i| {
            [IoSlice::new(
                items
                    .get(i)
                    .map_or(&[], |item| &buffer[item.at..item.end()]),
            )]
        });
        let mut control: [SendAncillaryBuffer<'_, '_, '_>; N] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut control = control.iter_mut();
        let mut headers: [MMsgHdr<'_>; N] = std::array::from_fn(|i| {
            // There are N of them, and `from_fn` calls N times.
            let nothing = control.next().expect("one for each");
            // To its peer a connected socket has a route already.
            match items.get(i) {
                Some(item) if Some(item.to) == socket.peer() => MMsgHdr::new(&slices[i], nothing),
                _ => MMsgHdr::new_with_addr(&self.kernel[i], &slices[i], nothing),
            }
        });
        let count = items.len().min(N);
        Ok(retry_on_intr(|| {
            sendmmsg(socket, &mut headers[..count], SendFlags::empty())
        })?)
    }
}

/// Most datagrams of one call without offload.
pub const BATCH: usize = 64;
