//! [`Inbox`]: a batch of received datagrams.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};

use super::Socket;

/// One received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Source address of the datagram.
    pub from: SocketAddr,
    /// The address of this host that it was sent to.
    pub to: Option<IpAddr>,
    /// The code point of its IP header.
    pub ecn: Option<EcnCodepoint>,
    /// UDP payload.
    pub bytes: &'a [u8],
    /// When the kernel received it, by the day's clock
    /// ([`Clock::of_day`](super::Clock::of_day)). Datagrams that were merged share the time of the
    /// first. [`None`] unless asked for, or where it cannot be had
    /// ([`Granted::stamps`](super::Granted::stamps)).
    pub stamp: Option<Duration>,
}

/// Buffers for a batch, used again for the next.
#[derive(Debug)]
pub struct Inbox {
    buffer: Vec<u8>,
    /// Bytes of each of its parts.
    part: usize,
    meta: Vec<RecvMeta>,
    filled: usize,
    datagrams: usize,
    /// Datagrams, and their bytes.
    oversize: (u64, u64),
    longest: usize,
    /// The address that everything arrives at, if there is only one.
    local: Option<IpAddr>,
}

impl Inbox {
    /// Buffers that suit `socket`.
    pub fn new(socket: &Socket) -> Self {
        let config = socket.config();
        let longest = config.longest.clamp(1, MOST);
        // A merged batch has up to 64 KiB; without merging a part needs one byte more than a
        // datagram, to see that it is longer.
        let (parts, room) = if socket.granted().coalescing {
            (PARTS_MERGED, MOST + 1)
        } else {
            (BATCH_SIZE, longest + 1)
        };
        // Not a multiple of a page: packets would share the same few lines of the cache.
        let part = room.next_multiple_of(64) + 64 * 5;
        Self {
            buffer: vec![0; parts * part],
            part,
            meta: vec![RecvMeta::default(); parts],
            filled: 0,
            datagrams: 0,
            oversize: (0, 0),
            longest,
            local: Some(socket.local().ip()).filter(|ip| !ip.is_unspecified()),
        }
    }

    /// The datagrams of the last batch, as they arrived.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        let parts = self
            .buffer
            .chunks_exact(self.part)
            .zip(&self.meta)
            .take(self.filled);
        parts.flat_map(|(part, meta)| {
            // A stride of 0 is a single datagram without payload.
            let bytes = &part[..meta.len.min(part.len())];
            let empty = bytes.is_empty().then_some(bytes);
            let cut = bytes.chunks(meta.stride.max(1)).chain(empty);
            cut.filter(|bytes| bytes.len() <= self.longest)
                .map(|bytes| Datagram {
                    from: meta.addr,
                    to: self.local.or(meta.dst_ip),
                    ecn: meta.ecn,
                    bytes,
                    stamp: meta.timestamp,
                })
        })
    }

    /// Datagrams of the last batch.
    pub fn len(&self) -> usize {
        self.datagrams
    }

    /// Whether the last batch was empty.
    pub fn is_empty(&self) -> bool {
        self.datagrams == 0
    }

    /// Whether the last batch filled every buffer, so that more may be waiting.
    pub fn is_full(&self) -> bool {
        self.filled == self.meta.len()
    }

    /// Datagrams longer than [`IoConfig::longest`](super::IoConfig::longest), dropped so far, and
    /// their bytes, as far as there was room for them.
    pub fn oversize(&self) -> (u64, u64) {
        self.oversize
    }
}

impl Socket {
    /// Takes what has arrived, up to one batch, in place of the batch before. Returns the number of
    /// datagrams; 0: nothing is there.
    ///
    /// # Errors
    /// Those of the socket itself. That an earlier datagram of ours was not delivered is counted
    /// instead ([`Socket::unreachable`]).
    pub fn receive(&self, inbox: &mut Inbox) -> io::Result<usize> {
        // A batch of nothing but oversize datagrams is not the end of what is there; but whoever
        // floods us with them must not keep us here.
        for _ in 0..MOST_BATCHES {
            self.receive_batch(inbox)?;
            if inbox.filled == 0 || inbox.datagrams > 0 {
                break;
            }
        }
        Ok(inbox.datagrams)
    }

    fn receive_batch(&self, inbox: &mut Inbox) -> io::Result<()> {
        inbox.filled = 0;
        inbox.datagrams = 0;
        let parts = inbox.meta.len();
        let mut chunks = inbox.buffer.chunks_exact_mut(inbox.part);
        let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        inbox.filled = self.receive_into(&mut buffers[..parts], &mut inbox.meta)?;
        for meta in &inbox.meta[..inbox.filled] {
            let stride = meta.stride.max(1);
            let count = meta.len.div_ceil(stride).max(1);
            if stride.min(meta.len) > inbox.longest {
                let tail = meta.len % stride;
                let good = usize::from(tail > 0 && tail <= inbox.longest);
                inbox.datagrams += good;
                inbox.oversize.0 += (count - good) as u64;
                inbox.oversize.1 += (meta.len - good * tail) as u64;
            } else {
                inbox.datagrams += count;
            }
        }
        Ok(())
    }
}

/// Batches of nothing but oversize datagrams that one call passes over.
const MOST_BATCHES: usize = 8;

/// Most bytes that a datagram, or a merged batch, carries.
const MOST: usize = 65_535;

/// Merged batches per call: more would leave the cache before they are read.
const PARTS_MERGED: usize = 8;
