//! ControlChannel over a port while no endpoint runs on it: the handshake of a client, and control
//! messages at either end.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_units::Span;

use super::client::Peer;
use super::control_port::{ControlChannel, Early, take_step};
use super::failure::SessionError;
use super::handshake::Handshake;
use super::message::{Ask, ENCRYPT, TestKind};
use super::request::Options;
use super::{Secrets, ServerId, entropy};
use crate::endpoint::{Port, UdpPort};
use crate::io::Clock;
use crate::wire::{Header, Kind};

/// Datagrams that may come before the run begins here.
const MOST_EARLY: usize = 256;
/// Batches that are taken in before something is said again.
const MOST_BATCHES: usize = 16;
/// Room for the longest control message.
pub(super) const CONTROL_BYTES: usize = 1300;
/// Longest wait, so that an interruption is noticed.
const GLANCE: Span = Span::from_millis(50);

/// Sends due control messages, waits briefly, and receives. Datagrams of a run go to `early`.
pub(super) fn exchange(
    port: &mut UdpPort,
    peer: SocketAddr,
    clock: Clock,
    control: &mut impl ControlChannel,
    early: &mut Early,
) -> io::Result<()> {
    let now = clock.now();
    while let Some(step) = control.poll_path(now) {
        take_step(port, peer, step);
    }
    while let Some(datagram) = control.poll_transmit(now) {
        send(port, peer, &datagram)?;
    }
    port.flush()?;
    port.wait(control.next_timeout().min(now + GLANCE), false)?;
    // Whoever sends without a pause must not keep the caller from looking at its clock.
    for _ in 0..MOST_BATCHES {
        if port.receive()? == 0 {
            break;
        }
        let now = clock.now();
        port.each(|from, mark, datagram| {
            let ours = from == peer;
            if ours && is_control(datagram) {
                control.on_datagram(now, datagram);
            } else if ours && early.len() < MOST_EARLY {
                early.push((from, mark, datagram.to_vec()));
            }
        });
    }
    Ok(())
}

/// Of the handshake, or a control message.
fn is_control(datagram: &[u8]) -> bool {
    Header::decode(datagram).is_ok_and(|header| (header.kind as u8) < Kind::Data as u8)
}

/// Pushes a datagram; the flush is the caller's.
pub(super) fn send(port: &mut UdpPort, peer: SocketAddr, datagram: &[u8]) -> io::Result<()> {
    if port.is_full() {
        // What is refused is said again.
        port.flush()?;
    }
    port.push(peer, None, datagram.len(), |out| {
        out[..datagram.len()].copy_from_slice(datagram);
    });
    Ok(())
}

/// The handshake, until it succeeds or `interrupt` ends it.
///
/// # Errors
/// [`SessionError`].
pub(super) fn open(
    port: &mut UdpPort,
    peer: &Peer,
    options: &Options,
    request: &[u8],
    interrupt: &AtomicBool,
) -> Result<(Secrets, ServerId), SessionError> {
    let ask = Ask {
        kind: match options.kernel_tcp {
            true => TestKind::KernelTcp as u8,
            false => TestKind::Udp as u8,
        },
        options: if options.encrypted { ENCRYPT } else { 0 },
        // `Request::encode` has bounded it.
        length: request.len() as u32,
        digest: *blake3::hash(request).as_bytes(),
    };
    // Once, so that a missing generator is an error and not a guess.
    entropy(&mut [0; 16]).map_err(|e| io::Error::other(e.to_string()))?;
    let nonce = || {
        let mut nonce = [0; 16];
        let _ = entropy(&mut nonce);
        nonce
    };
    let mut handshake = Handshake::new(
        port.now(),
        peer.patience,
        peer.key.clone(),
        ask,
        Box::new(nonce),
    )
    .with_server(peer.server);
    let failed = |error| SessionError::Handshake {
        peer: peer.address,
        error,
    };
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(SessionError::Interrupted);
        }
        let now = port.now();
        if let Some(datagram) = handshake.poll(now).map_err(failed)? {
            send(port, peer.address, &datagram)?;
            port.flush()?;
        }
        port.wait(handshake.next_timeout().min(now + GLANCE), false)?;
        if port.receive()? == 0 {
            continue;
        }
        let (now, mut opened) = (port.now(), Ok(None));
        port.each(|from, _, datagram| {
            if from == peer.address && matches!(opened, Ok(None)) {
                opened = handshake.handle(now, datagram);
            }
        });
        if let Some(opened) = opened.map_err(failed)? {
            return Ok(opened);
        }
    }
}
