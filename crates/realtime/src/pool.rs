//! Where datagrams wait while the path computes with their sizes: slots of two lengths, one for
//! ACKs and one for the rest, taken from memory as needed up to a bound and used again.

use fullpipe_run::{Buffer, LinkSpec, RunSpec};
use fullpipe_units::{Rate, Span};

/// Fixed slots for datagrams that wait for their departure.
#[derive(Debug)]
pub struct Pool<N> {
    short: Slots<N>,
    long: Slots<N>,
    /// Bytes that may still be taken from memory.
    left: usize,
}

/// Slots of one length.
#[derive(Debug)]
struct Slots<N> {
    length: usize,
    chunks: Vec<Box<[u8]>>,
    /// Bytes of each, and what its owner noted.
    notes: Vec<(u16, N)>,
    free: Vec<u32>,
}

/// Slots taken from memory at once.
const CHUNK: usize = 64;
/// Bytes of a short slot: an ACK with all its blocks fits.
const SHORT: usize = 128;
/// Bit of a token that says: a long slot.
const LONG: u64 = 1 << 32;

impl<N: Copy> Pool<N> {
    /// For datagrams of up to `longest` bytes; takes up to `bound` bytes from memory.
    pub fn new(longest: usize, bound: usize) -> Self {
        Self {
            short: Slots::new(SHORT),
            long: Slots::new(longest.max(SHORT)),
            left: bound,
        }
    }

    /// Keeps a datagram; `None` if there is no room for it.
    pub fn put(&mut self, bytes: &[u8], note: N) -> Option<u64> {
        let (slots, bit) = if bytes.len() <= SHORT {
            (&mut self.short, 0)
        } else {
            (&mut self.long, LONG)
        };
        if bytes.len() > slots.length {
            return None;
        }
        let note = (bytes.len() as u16, note);
        if slots.free.is_empty() {
            self.left = self.left.checked_sub(slots.chunk_bytes())?;
            slots.grow(note);
        }
        let slot = slots.free.pop()?;
        slots.notes[slot as usize] = note;
        slots.bytes_mut(slot)[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from(slot) | bit)
    }

    /// A datagram that was put there.
    pub fn get(&self, token: u64) -> (&[u8], N) {
        let slots = if token & LONG == 0 {
            &self.short
        } else {
            &self.long
        };
        let (len, note) = slots.notes[token as u32 as usize];
        (&slots.bytes(token as u32)[..usize::from(len)], note)
    }

    /// Bytes of the slot, mutable.
    pub fn get_mut(&mut self, token: u64) -> &mut [u8] {
        let slots = if token & LONG == 0 {
            &mut self.short
        } else {
            &mut self.long
        };
        let len = usize::from(slots.notes[token as u32 as usize].0);
        &mut slots.bytes_mut(token as u32)[..len]
    }

    /// Returns the slot to the pool.
    pub fn free(&mut self, token: u64) {
        let slots = if token & LONG == 0 {
            &mut self.short
        } else {
            &mut self.long
        };
        slots.free.push(token as u32);
    }
}

impl<N: Copy> Slots<N> {
    fn new(length: usize) -> Self {
        Self {
            length,
            chunks: Vec::new(),
            notes: Vec::new(),
            free: Vec::new(),
        }
    }

    fn chunk_bytes(&self) -> usize {
        CHUNK * (self.length + size_of::<(u16, N)>() + size_of::<u32>())
    }

    fn grow(&mut self, filler: (u16, N)) {
        let first = self.notes.len() as u32;
        let chunk = vec![0; CHUNK * self.length];
        self.chunks.push(chunk.into_boxed_slice());
        self.notes.resize(self.notes.len() + CHUNK, filler);
        // The first ones first: what is used again and again stays in the cache.
        self.free.extend((first..first + CHUNK as u32).rev());
    }

    fn bytes(&self, slot: u32) -> &[u8] {
        let at = slot as usize % CHUNK * self.length;
        &self.chunks[slot as usize / CHUNK][at..at + self.length]
    }

    fn bytes_mut(&mut self, slot: u32) -> &mut [u8] {
        let at = slot as usize % CHUNK * self.length;
        &mut self.chunks[slot as usize / CHUNK][at..at + self.length]
    }
}

/// Bytes of memory that the datagrams in the links of a run take at most: what the buffers hold and
/// what is under way at the links' rates, times [`OVERHEAD`]. A link without a rate carries what
/// the fastest one gives it.
pub fn bound(spec: &RunSpec) -> usize {
    let fastest = spec.links.iter().filter_map(fastest).max();
    let fastest = fastest.unwrap_or(Rate::from_bits_per_sec(UNLIMITED));
    let largest = largest(spec) as u64;
    let links = spec.links.iter().map(|l| inside(l, fastest, largest));
    let bytes = links.fold(0, u64::saturating_add);
    let bytes = bytes.saturating_mul(OVERHEAD);
    usize::try_from(bytes).unwrap_or(MOST).clamp(LEAST, MOST)
}

/// A slot may be longer than its datagram: a short one than an ACK, a long one than a small
/// datagram of cross traffic.
const OVERHEAD: u64 = 3;
/// Where no link has a rate, bit/s.
const UNLIMITED: u64 = 10_000_000_000;
/// Bytes of a pool: not less, whatever the links.
const LEAST: usize = 32 << 20;
/// Not more.
const MOST: usize = 2 << 30;
/// Counts for a buffer without limit, bytes.
const ENDLESS: u64 = 256 << 20;

/// Bytes in a link at most.
fn inside(link: &LinkSpec, fastest: Rate, largest: u64) -> u64 {
    let rate = self::fastest(link).unwrap_or(fastest).as_bits_per_sec();
    let during = |span: Span| (rate as f64 * span.as_secs_f64() / 8.0) as u64;
    let delays = link.schedule.iter().filter_map(|c| c.delay);
    let mut longest = delays.fold(link.delay, Span::max) + link.delay_spread + link.jitter;
    if let Some(reorder) = link.reorder {
        longest += reorder.extra;
    }
    let has_queue = link.rate.is_some() || link.trace.is_some() || !link.schedule.is_empty();
    let waiting = match link.buffer {
        _ if !has_queue => 0,
        Buffer::Packets(n) => n.saturating_mul(largest),
        Buffer::Bytes(bytes) => bytes,
        Buffer::Time(span) => during(span),
        Buffer::Unlimited => ENDLESS,
    };
    waiting.saturating_add(during(longest))
}

/// Highest rate of a link; `None` if it has none.
fn fastest(link: &LinkSpec) -> Option<Rate> {
    if let Some(trace) = &link.trace {
        // A lull may be followed by much at once: twice the mean.
        let period = trace
            .opportunities
            .last()
            .map_or(1, |ms| u64::from(*ms).max(1));
        let bits = trace.opportunities.len() as u64 * 1504 * 8;
        return Some(Rate::from_bits_per_sec(2 * bits * 1000 / period));
    }
    link.schedule
        .iter()
        .filter_map(|c| c.rate)
        .chain(link.rate)
        .max()
}

/// Bytes of the largest packet of a run, headers included.
pub fn largest(spec: &RunSpec) -> usize {
    let flows = spec
        .flows
        .iter()
        .chain(spec.arrivals.iter().map(|a| &a.template));
    let segments = flows.map(|f| f.sender.packet() as usize);
    let datagrams = spec.cross.iter().map(|c| usize::from(c.packet));
    segments.chain(datagrams).fold(1500, usize::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_got_until_the_bound_and_slots_are_used_again() {
        let mut pool = Pool::new(1472, 300_000);
        let mut tokens = Vec::new();
        for n in 0u64.. {
            let len = if n % 3 == 0 { 44 } else { 1472 };
            match pool.put(&vec![n as u8; len], n) {
                Some(token) => tokens.push((n, len, token)),
                None => break,
            }
        }
        // Two chunks of long slots and one of short ones fit.
        assert_eq!(tokens.len() as u64, 128 * 3 / 2 + 1);
        for (n, len, token) in &tokens {
            let (bytes, note) = pool.get(*token);
            assert_eq!(bytes, &vec![*n as u8; *len]);
            assert_eq!(note, *n);
        }
        let (_, _, token) = tokens[1];
        pool.free(token);
        assert_eq!(pool.put(&[9; 1000], 0), Some(token));
        assert_eq!(pool.get(token).0, [9; 1000]);
        assert_eq!(pool.put(&[9; 1000], 0), None);
        assert_eq!(Pool::new(1472, 300_000).put(&[0; 1473], 0), None);
    }

    #[test]
    fn the_bound_holds_what_links_hold() {
        let mbit = |m: u64| Some(Rate::from_bits_per_sec(m * 1_000_000));
        let delay = Span::from_millis(100);
        let spec = |link: LinkSpec| RunSpec {
            links: vec![link],
            ..RunSpec::default()
        };
        let link = LinkSpec::new("l", mbit(1000), delay, Buffer::Bytes(25_000_000));
        assert_eq!(bound(&spec(link.clone())), 3 * 37_500_000);
        let time = Buffer::Time(Span::from_millis(300));
        let link = LinkSpec {
            buffer: time,
            ..link
        };
        assert_eq!(bound(&spec(link.clone())), 3 * 50_000_000);
        // A return path carries what the fastest link gives.
        let mut two = spec(link);
        two.links.push(LinkSpec::pure_delay("r", delay));
        assert_eq!(bound(&two), 3 * 62_500_000);
        assert_eq!(bound(&RunSpec::default()), LEAST);
        let endless = LinkSpec::new("l", mbit(100_000), delay * 10, Buffer::Unlimited);
        assert_eq!(bound(&spec(endless)), MOST);
    }
}
