//! Captures: TCP headers of the kernel as rows of the simulator's capture. Sequence numbers count
//! segments from the first one of data, time stamps the kernel's milliseconds since the SYN.

use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_run::{CaptureEvent, CaptureRow, RunSpec};
use fullpipe_units::{Span, Time};

use crate::records::Record;

/// A capture as far as it has been read.
pub(super) struct Capture {
    flows: Vec<Connection>,
    rows: Vec<CaptureRow>,
}

/// Options and first numbers of a connection, from its SYNs.
#[derive(Clone, Copy, Default)]
struct Connection {
    mss: u32,
    /// Initial sequence number of the sender, and of the receiver's ACKs' window: the scale.
    isn: u32,
    window_scale: u32,
    /// Time stamps of the sender and the receiver when they were first seen, and when.
    base: [Option<(u32, Time)>; 2],
    /// Highest numbers so far, for those of 32 bits.
    high: u64,
}

impl Capture {
    pub(super) fn of(spec: &RunSpec) -> Self {
        let flows = spec.flows.iter().map(|f| Connection {
            mss: f.sender.mss.max(1),
            ..Connection::default()
        });
        Self {
            flows: flows.collect(),
            rows: Vec::new(),
        }
    }

    /// `struct fp_packet`.
    pub(super) fn read(&mut self, record: &Record<'_>) -> Option<()> {
        let mut b = record.body;
        let at = b.time()?;
        let (event, from_sender, again) = (b.u8()?, b.u8()? != 0, b.u8()? != 0);
        let _zero = b.u8()?;
        let length = usize::try_from(b.u32()?).ok()?;
        let flow = self.flows.get_mut(record.id)?;
        let headers = Headers::parse(b.bytes().get(..length)?)?;
        let event = match from_sender {
            true => flow.segment(at, &headers, event, again)?,
            false => flow.ack(at, &headers, event)?,
        };
        let flow = u32::try_from(record.id).ok()?;
        self.rows
            .extend(event.map(|event| CaptureRow { at, flow, event }));
        Some(())
    }

    pub(super) fn finish(self) -> Vec<CaptureRow> {
        self.rows
    }
}

impl Connection {
    /// A packet of the sender; `Some(None)`: its ACK of the handshake.
    fn segment(
        &mut self,
        at: Time,
        h: &Headers,
        event: u8,
        again: bool,
    ) -> Option<Option<CaptureEvent>> {
        if h.syn {
            self.isn = h.seq.wrapping_add(1);
        } else if h.payload == 0 {
            return Some(None);
        }
        let seq = match h.syn {
            true => 0,
            false => self.number(h.seq),
        };
        let segment = Segment {
            seq,
            syn: h.syn,
            retransmission: again,
            stamp: self.stamp(0, h.stamp, at),
            ect: h.ect,
            ce: h.ce,
            cwr: h.cwr && !h.syn,
            push: h.push,
        };
        Some(Some(match event {
            0 => CaptureEvent::SegmentSent(segment),
            1 => CaptureEvent::SegmentReceived(segment),
            2 => CaptureEvent::SegmentDropped(segment),
            _ => return None,
        }))
    }

    fn ack(&mut self, at: Time, h: &Headers, event: u8) -> Option<Option<CaptureEvent>> {
        if h.syn {
            self.window_scale = h.window_scale;
        }
        // The window of a SYN is not scaled (RFC 7323, section 2.2).
        let scale = if h.syn { 0 } else { self.window_scale };
        let cum = self.number(h.ack);
        let mut sacks = SackBlocks::default();
        let blocks: Vec<_> = h.sacks.iter().flatten().collect();
        let blocks: Vec<Range> = blocks
            .iter()
            .map(|(start, end)| Range {
                start: self.number(*start),
                end: self.number(*end),
            })
            .collect();
        blocks.iter().for_each(|b| sacks.push(*b));
        // RFC 2883: below the cumulative ACK, or within the second block.
        let dsack = blocks.first().is_some_and(|first| {
            let within = |b: &Range| b.start <= first.start && first.end <= b.end;
            first.end <= cum || blocks.get(1).is_some_and(within)
        });
        let echo = match (h.stamp.map(|s| s.1), self.base[0]) {
            (Some(echo), Some((base, then))) => then + millis(echo.wrapping_sub(base)),
            _ => Time::ZERO,
        };
        let stamp = self.stamp(1, h.stamp, at);
        let window = (u64::from(h.window) << scale) / u64::from(self.mss);
        let ack = Ack {
            cum,
            syn: h.syn,
            echo,
            stamp_ms: (stamp.as_nanos() / 1_000_000) as u32,
            one_way: None,
            sacks,
            dsack,
            ece: h.ece && !h.syn,
            window_end: cum + window,
        };
        Some(Some(match event {
            0 => CaptureEvent::AckSent(ack),
            1 => CaptureEvent::AckReceived(ack),
            2 => CaptureEvent::AckDropped(cum),
            _ => return None,
        }))
    }

    /// Segment number of a sequence number, which is near the highest so far.
    fn number(&mut self, seq: u32) -> u64 {
        let here = self.isn.wrapping_add(self.high as u32);
        let away = i64::from(seq.wrapping_sub(here) as i32);
        let byte = self.high.saturating_add_signed(away);
        self.high = self.high.max(byte);
        byte.div_ceil(u64::from(self.mss))
    }

    /// Time of a time stamp of host `who`, by its first one.
    fn stamp(&mut self, who: usize, stamp: Option<(u32, u32)>, at: Time) -> Time {
        let Some((value, _)) = stamp else {
            return at;
        };
        let (base, then) = *self.base[who].get_or_insert((value, at));
        then + millis(value.wrapping_sub(base))
    }
}

/// Time stamps count milliseconds, whatever the ticks.
fn millis(ms: u32) -> Span {
    Span::from_millis(u64::from(ms))
}

/// What a capture needs of IPv4 and TCP headers.
#[derive(Default)]
struct Headers {
    seq: u32,
    ack: u32,
    payload: u32,
    window: u16,
    window_scale: u32,
    syn: bool,
    push: bool,
    ece: bool,
    cwr: bool,
    ect: bool,
    ce: bool,
    /// Value and echo.
    stamp: Option<(u32, u32)>,
    sacks: [Option<(u32, u32)>; 4],
}

impl Headers {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let ip = bytes.get(..20)?;
        let header = usize::from(ip[0] & 15) * 4;
        let total = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = bytes.get(header..)?;
        let at = |i: usize| Some(u32::from_be_bytes(tcp.get(i..i + 4)?.try_into().ok()?));
        let length = usize::from(tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(13)?;
        let mut h = Self {
            seq: at(4)?,
            ack: at(8)?,
            payload: total.checked_sub(u32::try_from(header + length).ok()?)?,
            window: u16::from_be_bytes([*tcp.get(14)?, *tcp.get(15)?]),
            syn: flags & 0x02 != 0,
            push: flags & 0x08 != 0,
            ece: flags & 0x40 != 0,
            cwr: flags & 0x80 != 0,
            ect: ip[1] & 3 != 0,
            ce: ip[1] & 3 == 3,
            ..Self::default()
        };
        h.options(tcp.get(20..length)?)?;
        Some(h)
    }

    fn options(&mut self, mut rest: &[u8]) -> Option<()> {
        while let Some(&kind) = rest.first() {
            let length = match kind {
                0 => break,
                1 => 1,
                _ => usize::from(*rest.get(1)?),
            };
            let option = rest.get(..length.max(1))?;
            let at = |i: usize| Some(u32::from_be_bytes(option.get(i..i + 4)?.try_into().ok()?));
            match kind {
                3 => self.window_scale = u32::from(*option.get(2)?).min(14),
                5 => {
                    for (i, slot) in self.sacks.iter_mut().enumerate() {
                        let from = 2 + 8 * i;
                        *slot = at(from).zip(at(from + 4));
                    }
                }
                8 => self.stamp = at(2).zip(at(6)),
                _ => {}
            }
            rest = &rest[option.len()..];
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK with time stamps and two SACK blocks, the first of them a duplicate.
    #[test]
    fn headers_are_read_with_their_options() {
        let mut bytes = vec![0x45, 0x03, 0, 72, 0, 0, 0, 0, 64, 6, 0, 0];
        bytes.extend([10, 2, 0, 1, 10, 1, 0, 1]);
        bytes.extend([0x27, 0x10, 0x9c, 0x40]);
        bytes.extend(7u32.to_be_bytes());
        bytes.extend(2897u32.to_be_bytes());
        bytes.extend([13 << 4, 0x50, 0, 100, 0, 0, 0, 0]);
        bytes.extend([1, 1, 8, 10]);
        bytes.extend(500u32.to_be_bytes());
        bytes.extend(400u32.to_be_bytes());
        bytes.extend([1, 1, 5, 18]);
        for edge in [1u32, 1449, 4345, 5793] {
            bytes.extend(edge.to_be_bytes());
        }
        let h = Headers::parse(&bytes).unwrap();
        assert_eq!((h.payload, h.window, h.ece, h.ce), (0, 100, true, true));
        assert_eq!(h.stamp, Some((500, 400)));
        let mut c = Connection {
            mss: 1448,
            isn: 1,
            window_scale: 7,
            base: [Some((390, Time::ZERO)), None],
            high: 0,
        };
        let at = Time::ZERO + Span::from_millis(80);
        let Some(Some(CaptureEvent::AckReceived(ack))) = c.ack(at, &h, 1) else {
            panic!("no ACK");
        };
        assert_eq!((ack.cum, ack.dsack, ack.window_end), (2, true, 2 + 8));
        assert_eq!(ack.echo, Time::ZERO + Span::from_millis(10));
        let blocks: Vec<_> = ack.sacks.iter().map(|r| (r.start, r.end)).collect();
        assert_eq!(blocks, [(0, 1), (3, 4)]);
        assert!(Headers::parse(&bytes[..70]).is_none(), "cut off");
    }
}
