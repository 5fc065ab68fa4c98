//! Datagrams that are too long for the path leave in pieces, and are put together again here.
//!
//! A segment has its number and its length for the whole run; a path may become narrower
//! meanwhile. How long a datagram may be is found out by probes (RFC 8899); [`PathLimit`] holds it.
//! As long as every datagram fits this port is two comparisons per datagram.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::io::Errno;

use super::port::{Flush, Mark, Port, forward};
use super::udp::BATCH;
use crate::wire::{HEADER, Header, Kind, PieceDatagram, SessionId};

/// UDP payload that every path is taken to carry (`BASE_PLPMTU`, RFC 8899 section 5.1.2).
pub const BASE: usize = 1200;

/// How long the datagrams of this side may be, and what makes one doubt it.
#[derive(Debug)]
pub struct PathLimit {
    bytes: AtomicUsize,
    doubted: Arc<AtomicBool>,
    refused: AtomicBool,
    /// Of the other direction: longest piece of what was put together here, 0 before the first.
    joined: AtomicUsize,
}

impl Default for PathLimit {
    fn default() -> Self {
        Self {
            bytes: AtomicUsize::new(usize::MAX),
            doubted: Arc::default(),
            refused: AtomicBool::new(false),
            joined: AtomicUsize::new(0),
        }
    }
}

impl PathLimit {
    /// Most bytes of UDP payload.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// So many pass.
    pub fn set(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Perhaps it is too much: a timeout, or an ICMP message, which anybody can forge.
    pub fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    /// What others set when they doubt it.
    pub fn doubts(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.doubted)
    }

    /// True once after a doubt.
    pub fn take_doubt(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// This host's own interface has refused a datagram.
    pub fn refuse(&self) {
        self.refused.store(true, Ordering::Relaxed);
        self.set(BASE);
    }

    /// Bytes of UDP payload of the pieces that the other side sent, if it sent any.
    pub fn joined(&self) -> Option<usize> {
        Some(self.joined.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// A datagram of the other side was put together of pieces of so many bytes; 0: a run begins.
    pub fn join(&self, bytes: usize) {
        match bytes {
            0 => self.joined.store(0, Ordering::Relaxed),
            _ => drop(self.joined.fetch_max(bytes, Ordering::Relaxed)),
        }
    }

    /// True once after this host's own interface has refused a datagram of that length.
    pub fn take_refusal(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}

/// A port that cuts and joins.
pub struct Pieces<P> {
    port: P,
    session: SessionId,
    path: Arc<PathLimit>,
    /// The limit, less what the ports below add; the same for a whole batch.
    limit: usize,
    /// Bytes that the ports below add.
    below: usize,
    /// Longest whole.
    longest: usize,
    /// Datagrams pushed since the last flush; where any was cut, the pieces of each.
    pushed: usize,
    pieces: Vec<u8>,
    /// A datagram beyond [`BASE`] is in the batch; one has left before.
    large: bool,
    large_left: bool,
    number: u32,
    scratch: Vec<u8>,
    joining: RefCell<Joining>,
}

/// Wholes that are being put together: the latest of each number modulo [`PLACES`].
struct Joining {
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    first: Option<PieceDatagram>,
    have: u64,
    mark: Option<Mark>,
    bytes: Vec<u8>,
}

/// Pieces of one datagram leave together: paths that reorder more than so many datagrams lose it.
const PLACES: usize = 64;

impl<P: Port> Pieces<P> {
    /// Around `port`, which adds `below` bytes to each datagram; `longest` is the largest.
    pub fn new(
        port: P,
        session: SessionId,
        path: Arc<PathLimit>,
        longest: usize,
        below: usize,
    ) -> Self {
        let mut pieces = Self {
            port,
            session,
            path,
            limit: usize::MAX,
            below,
            longest,
            pushed: 0,
            pieces: Vec::new(),
            large: false,
            large_left: false,
            number: 0,
            scratch: Vec::new(),
            joining: RefCell::new(Joining { places: Vec::new() }),
        };
        pieces.look();
        pieces
    }

    /// The limit of the next batch.
    fn look(&mut self) {
        let limit = self.path.bytes().saturating_sub(self.below);
        self.limit = if limit >= self.longest {
            usize::MAX
        } else {
            limit
        };
    }

    /// Pieces of a datagram of `len` bytes.
    fn count(&self, len: usize) -> usize {
        match len <= self.limit {
            true => 1,
            false => len.div_ceil(self.limit.saturating_sub(PieceDatagram::LEN).max(1)),
        }
    }

    #[cold]
    fn push_cut(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let count = self.count(len);
        self.pieces.push(count as u8);
        if count == 1 {
            return self.port.push(to, mark, len, fill);
        }
        self.scratch.clear();
        self.scratch.resize(len, 0);
        fill(&mut self.scratch);
        let flow = Header::decode(&self.scratch).map_or(0, |header| header.flow);
        self.number = self.number.wrapping_add(1);
        for index in 0..count as u8 {
            let piece = PieceDatagram {
                session: self.session,
                flow,
                number: self.number,
                index,
                count: count as u8,
                whole: len as u16,
            };
            let part = &self.scratch[piece.range()];
            self.port
                .push(to, mark, PieceDatagram::LEN + part.len(), |out| {
                    piece.encode(out);
                    out[PieceDatagram::LEN..].copy_from_slice(part);
                });
        }
    }

    /// Whether the host's own interface has become too narrow; what is in the batch is lost.
    fn narrowed(&mut self, e: &io::Error) -> bool {
        let too_long = Errno::from_io_error(e) == Some(Errno::MSGSIZE);
        if too_long && self.large_left {
            self.path.refuse();
        }
        too_long && self.large_left
    }
}

impl Joining {
    /// Adds a piece; the whole once all are there.
    fn take(&mut self, mark: Option<Mark>, bytes: &[u8]) -> Option<(Option<Mark>, &[u8])> {
        let header = Header::decode(bytes).ok()?;
        let piece = PieceDatagram::decode(&header, bytes).ok()?;
        if self.places.is_empty() {
            self.places.resize_with(PLACES, Place::default);
        }
        let place = &mut self.places[piece.number as usize % PLACES];
        let same = |first: &PieceDatagram| *first == PieceDatagram { index: 0, ..piece };
        if !place.first.as_ref().is_some_and(same) {
            place.first = Some(PieceDatagram { index: 0, ..piece });
            (place.have, place.mark) = (0, None);
            place.bytes.resize(usize::from(piece.whole), 0);
        }
        let bit = 1 << piece.index;
        if place.have & bit != 0 {
            return None;
        }
        place.have |= bit;
        place.bytes[piece.range()].copy_from_slice(&bytes[PieceDatagram::LEN..]);
        place.mark = match (place.mark, mark) {
            (Some(Mark::Congestion), _) | (_, Some(Mark::Congestion)) => Some(Mark::Congestion),
            (before, now) => before.or(now),
        };
        if place.have != u64::MAX >> (64 - u32::from(piece.count)) {
            return None;
        }
        // Copies of its pieces find it complete until its place is taken.
        let whole = &place.bytes[..];
        let inner = Header::decode(whole).ok()?;
        let carries = inner.kind as u8 >= Kind::Data as u8 && inner.kind != Kind::Piece;
        (carries && inner.flow == piece.flow && inner.session == piece.session)
            .then_some((place.mark, whole))
    }
}

/// First byte of a piece.
const PIECE: u8 = crate::wire::VERSION << 4 | Kind::Piece as u8;

impl<P: Port> Port for Pieces<P> {
    #[inline]
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        self.pushed += 1;
        self.large |= len > BASE;
        if self.limit == usize::MAX {
            self.port.push(to, mark, len, fill);
        } else {
            self.push_cut(to, mark, len, fill);
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        let cut = self.limit != usize::MAX && {
            let pieces: usize = self.pieces.iter().map(|n| usize::from(*n)).sum();
            pieces > 0 && pieces + self.count(self.longest) > BATCH
        };
        cut || self.port.is_full()
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let pushed = std::mem::take(&mut self.pushed);
        let flushed = match self.port.flush() {
            Err(e) if self.narrowed(&e) => Ok(Flush {
                left: pushed,
                refused: false,
            }),
            Ok(flush) if self.limit != usize::MAX => {
                let mut rest = flush.left;
                let left = self.pieces.iter().take_while(|n| {
                    let whole = rest >= usize::from(**n);
                    rest -= usize::from(**n).min(rest);
                    whole
                });
                let left = left.count();
                Ok(Flush { left, ..flush })
            }
            other => other,
        };
        self.pieces.clear();
        self.large_left |= std::mem::take(&mut self.large) && flushed.is_ok();
        self.look();
        flushed
    }

    fn receive(&mut self) -> io::Result<usize> {
        let arrived = self.port.receive()?;
        if self.pushed == 0 {
            self.look();
        }
        Ok(arrived)
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        self.port.each(|from, mark, bytes| {
            if bytes.first() != Some(&PIECE) {
                take(from, mark, bytes);
            } else if bytes.len() > HEADER {
                let mut joining = self.joining.borrow_mut();
                let ours = Header::decode(bytes).is_ok_and(|h| h.session == self.session);
                if ours && let Some((mark, whole)) = joining.take(mark, bytes) {
                    self.path.join(bytes.len() + self.below);
                    take(from, mark, whole);
                }
            }
        });
    }

    forward!(|this| this.port; overhead, held_until, received_at, has_stamps);
    forward!(|this| this.port; wait, pause, now, drops, passed_over, reroute);
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Time;
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Out {
        sent: Vec<Vec<u8>>,
        room: usize,
        longest: usize,
        fails: bool,
    }

    impl Port for Out {
        fn push(
            &mut self,
            _: SocketAddr,
            _: Option<Mark>,
            len: usize,
            fill: impl FnOnce(&mut [u8]),
        ) {
            let mut out = vec![0; len];
            fill(&mut out);
            self.longest = self.longest.max(len);
            self.sent.push(out);
            assert!(self.sent.len() <= BATCH);
        }
        fn is_full(&self) -> bool {
            self.sent.len() == BATCH
        }
        fn overhead(&self) -> usize {
            0
        }
        fn held_until(&mut self) -> Option<Time> {
            None
        }
        fn flush(&mut self) -> io::Result<Flush> {
            if self.fails {
                return Err(io::Error::from(Errno::MSGSIZE));
            }
            let left = self.sent.len().min(self.room);
            Ok(Flush {
                left,
                refused: left < self.sent.len(),
            })
        }
        fn receive(&mut self) -> io::Result<usize> {
            Ok(self.sent.len())
        }
        fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
            for bytes in &self.sent {
                take(peer(), None, bytes);
            }
        }
        fn received_at(&self, _: impl FnMut(Time)) {}
        fn has_stamps(&self) -> bool {
            false
        }
        fn wait(&mut self, _: Time, _: bool) -> io::Result<bool> {
            Ok(true)
        }
        fn pause(&mut self, _: Time) -> io::Result<()> {
            Ok(())
        }
        fn now(&self) -> Time {
            Time::ZERO
        }
        fn drops(&self) -> u64 {
            0
        }
        fn passed_over(&self) -> (u64, u64) {
            (0, 0)
        }
        fn reroute(&mut self, _: SocketAddr, _: Option<SocketAddr>) -> io::Result<()> {
            Ok(())
        }
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 9))
    }

    const SESSION: SessionId = SessionId(7);

    fn datagram(len: usize, seed: u8) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len)
            .map(|i| (i as u8).wrapping_mul(31) ^ seed)
            .collect();
        Header {
            kind: Kind::Data,
            flags: seed & 8,
            flow: u16::from(seed),
            session: SESSION,
        }
        .encode(&mut bytes);
        bytes
    }

    fn port(limit: usize, longest: usize) -> Pieces<Out> {
        let path = Arc::new(PathLimit::default());
        path.set(limit);
        let out = Out {
            room: usize::MAX,
            ..Out::default()
        };
        Pieces::new(out, SESSION, path, longest, 0)
    }

    fn put(pieces: &mut Pieces<Out>, bytes: &[u8]) {
        pieces.push(peer(), None, bytes.len(), |out| out.copy_from_slice(bytes));
    }

    fn heard(pieces: &Pieces<Out>) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        pieces.each(|_, _, bytes| all.push(bytes.to_vec()));
        all
    }

    proptest! {
        /// Whatever the sizes: nothing longer than the limit leaves, and what was pushed arrives,
        /// in any order of pieces, each once.
        #[test]
        fn what_is_cut_is_joined(
            sizes in proptest::collection::vec(12usize..9000, 1..20),
            limit in BASE..3000,
            order in any::<u64>(),
        ) {
            let mut pieces = port(limit, 9000);
            let mut sent = Vec::new();
            for (i, size) in sizes.iter().enumerate() {
                if pieces.is_full() {
                    break;
                }
                sent.push(datagram(*size, i as u8));
                put(&mut pieces, &sent[i]);
            }
            prop_assert!(pieces.port.longest <= limit);
            let n = pieces.port.sent.len();
            (0..n).for_each(|i| pieces.port.sent.swap(i, (order as usize).wrapping_mul(i + 7) % n));
            // A copy of everything, too.
            pieces.port.sent.extend_from_within(..);
            let mut got = heard(&pieces);
            got.retain(|whole| whole.len() > limit);
            sent.retain(|whole| whole.len() > limit);
            got.sort();
            sent.sort();
            prop_assert_eq!(got, sent);
        }

        #[test]
        fn noise_is_no_whole(noise in proptest::collection::vec(any::<u8>(), 0..80), n in 0usize..9) {
            let mut pieces = port(BASE, 9000);
            let mut bytes = datagram(12, 0);
            bytes[0] = PIECE;
            bytes.truncate(bytes.len() - n);
            bytes.extend(noise);
            pieces.port.sent = vec![bytes];
            heard(&pieces);
        }
    }

    #[test]
    fn what_was_refused_counts_as_wholes() {
        let mut pieces = port(BASE, 3000);
        for i in 0..3 {
            put(&mut pieces, &datagram(3000, i));
        }
        // Three pieces each: one whole left, and two thirds of the next.
        pieces.port.room = 5;
        let flush = pieces.flush().unwrap();
        assert_eq!((flush.left, flush.refused), (1, true));
    }

    #[test]
    fn an_interface_that_becomes_narrower_is_no_error() {
        let mut pieces = port(usize::MAX, 1472);
        put(&mut pieces, &datagram(1472, 1));
        pieces.port.fails = true;
        assert!(pieces.flush().is_err(), "the first never fitted");
        pieces.port.fails = false;
        put(&mut pieces, &datagram(1472, 1));
        pieces.flush().unwrap();
        pieces.port.fails = true;
        put(&mut pieces, &datagram(1472, 1));
        assert_eq!(pieces.flush().unwrap().left, 1);
        assert_eq!(pieces.path.bytes(), BASE);
        assert!(pieces.path.take_refusal());
    }
}
