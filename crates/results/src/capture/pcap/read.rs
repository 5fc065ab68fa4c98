//! The packets of one flow out of a capture that [`write`](super::write) wrote. It reads our own
//! files, checks every length, and takes nothing from them on trust: what
//! is not one of our packets is an error.

use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_units::{Span, Time};

use super::connection::SENDER_ISN;
use super::{FILE_HEADER, Host, MAGIC_NANOSECONDS, RECORD_HEADER};
use crate::capture::endpoints;

/// A capture that is damaged, or not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a capture of fullpipe, or damaged at byte {0}")]
pub struct NotOurs(pub usize);

/// What `host` of flow `flow` sent and received, whose segments carry `mss` bytes. Time stamps of
/// segments are not recovered; in their place stands what tells the copies of a segment apart.
///
/// # Errors
/// If the bytes are not such a capture.
pub fn read(bytes: &[u8], flow: usize, mss: u32, host: Host) -> Result<Vec<CaptureRow>, NotOurs> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).ok_or(NotOurs(at))?;
        Ok(u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    };
    if word(0)? != MAGIC_NANOSECONDS || mss == 0 {
        return Err(NotOurs(0));
    }
    let (sender, receiver) = endpoints(flow);
    let mut stream = Stream::new(mss);
    let mut rows = Vec::new();
    let mut at = FILE_HEADER;
    while at < bytes.len() {
        let nanos = u64::from(word(at)?) * 1_000_000_000 + u64::from(word(at + 4)?);
        let length = word(at + 8)? as usize;
        let from = at + RECORD_HEADER;
        let packet = from
            .checked_add(length)
            .and_then(|to| bytes.get(from..to))
            .ok_or(NotOurs(at))?;
        let event = if packet.len() < 40 {
            return Err(NotOurs(at));
        } else if packet[12..16] == sender.ip().octets()
            && packet[20..22] == sender.port().to_be_bytes()
        {
            stream.segment(packet).map(|s| match host {
                Host::Sender => CaptureEvent::SegmentSent(s),
                Host::Receiver => CaptureEvent::SegmentReceived(s),
            })
        } else if packet[12..16] == receiver.ip().octets()
            && packet[22..24] == sender.port().to_be_bytes()
        {
            let ack = stream.ack(packet).ok_or(NotOurs(at))?;
            Some(match host {
                Host::Sender => CaptureEvent::AckReceived(ack),
                Host::Receiver => CaptureEvent::AckSent(ack),
            })
        } else {
            None
        };
        rows.extend(event.map(|event| CaptureRow {
            at: Time::ZERO + Span::from_nanos(nanos),
            flow: flow as u32,
            event,
        }));
        at = from + length;
    }
    Ok(rows)
}

/// Numbers of 32 bits as the long ones they stand for.
struct Stream {
    mss: u64,
    /// Bytes: the highest number sent or acknowledged so far.
    highest: u64,
    /// Segments sent so far reach up to here.
    sent: u64,
    scale: Option<u8>,
}

const FIN_SYN_RST: u8 = 0x07;
const SYN: u8 = 0x02;

impl Stream {
    fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss),
            highest: 0,
            sent: 0,
            scale: None,
        }
    }

    /// Segment number of a sequence number: the one nearest to the highest so far.
    fn number(&mut self, seq: [u8; 4]) -> u64 {
        let offset = u32::from_be_bytes(seq).wrapping_sub(SENDER_ISN.wrapping_add(1));
        let ahead = offset.wrapping_sub(self.highest as u32) as i32;
        let bytes = self.highest.saturating_add_signed(i64::from(ahead));
        self.highest = self.highest.max(bytes);
        bytes / self.mss
    }

    fn segment(&mut self, p: &[u8]) -> Option<Segment> {
        let syn = match p[33] & FIN_SYN_RST {
            0 => false,
            SYN => true,
            _ => return None,
        };
        let seq = match syn {
            true => 0,
            false => self.number([p[24], p[25], p[26], p[27]]),
        };
        let retransmission = !syn && seq < self.sent;
        if !syn {
            self.sent = self.sent.max(seq + 1);
        }
        // The identification of IP is a hash of the time stamp.
        let copy = u16::from_be_bytes([p[4], p[5]]);
        Some(Segment {
            seq,
            syn,
            retransmission,
            stamp: Time::ZERO + Span::from_nanos(u64::from(copy)),
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        })
    }

    /// `None` for options that do not add up.
    fn ack(&mut self, p: &[u8]) -> Option<Ack> {
        let end = 20 + usize::from(p[32] >> 4) * 4;
        let mut options = p.get(40..end)?;
        let mut sacks = SackBlocks::default();
        while let [kind, rest @ ..] = options {
            match kind {
                0 => break,
                1 => options = rest,
                _ => {
                    let length = usize::from(*rest.first()?);
                    let body = options.get(2..length)?;
                    match kind {
                        3 => self.scale = body.first().copied(),
                        5 => {
                            for block in body.chunks_exact(8) {
                                let start = self.number([block[0], block[1], block[2], block[3]]);
                                let end = self.number([block[4], block[5], block[6], block[7]]);
                                sacks.push(Range { start, end });
                            }
                        }
                        _ => {}
                    }
                    options = &options[length..];
                }
            }
        }
        let syn = p[33] & SYN != 0;
        let cum = match syn {
            true => 0,
            false => self.number([p[28], p[29], p[30], p[31]]),
        };
        let window = u64::from(u16::from_be_bytes([p[34], p[35]]));
        // Without its SYN nobody knows the scale; the largest window stands for none.
        let window_end = match self.scale {
            Some(scale) if scale < 14 => cum + (window << scale) / self.mss,
            _ => u64::MAX,
        };
        Some(Ack {
            cum,
            syn,
            echo: Time::ZERO,
            stamp_ms: 0,
            one_way: None,
            sacks,
            dsack: false,
            ece: false,
            window_end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::pcap::write;
    use crate::capture::testing::{ack, ack_row, flow, segment, sent};

    fn capture(rows: &[CaptureRow]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(
            &mut bytes,
            &[flow(1500, true), flow(1500, true)],
            rows,
            Host::Sender,
        )
        .unwrap();
        bytes
    }

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn reads_what_the_writer_wrote() {
        let mut blocks = SackBlocks::default();
        blocks.push(Range { start: 5, end: 9 });
        // Past 2^32 bytes, so that the numbers wrap.
        let far = 4_000_000;
        let mut rows = vec![sent(0, ms(0), segment(0, ms(0)))];
        rows.extend((1..=far / 500_000).map(|i| sent(0, ms(i), segment(i * 500_000, ms(i)))));
        rows.push(sent(1, ms(20), segment(3, ms(20))));
        rows.push(ack_row(
            0,
            ms(80),
            Ack {
                sacks: blocks,
                ..ack(4, ms(0), 1)
            },
        ));
        rows.push(ack_row(0, ms(81), ack(far + 1, ms(0), 1)));
        rows.push(sent(0, ms(90), segment(far, ms(90))));
        let read = read(&capture(&rows), 0, 1448, Host::Sender).unwrap();
        let brief: Vec<(u64, u64, bool)> = read
            .iter()
            .filter_map(|r| match r.event {
                CaptureEvent::SegmentSent(s) => {
                    Some((r.at.as_nanos() / 1_000_000, s.seq, s.retransmission))
                }
                CaptureEvent::AckReceived(a) => {
                    assert_eq!(a.window_end, u64::MAX);
                    Some((
                        r.at.as_nanos() / 1_000_000,
                        a.cum,
                        a.sacks.iter().next().is_some(),
                    ))
                }
                _ => None,
            })
            .collect();
        assert_eq!(brief.len(), rows.len() - 1, "the other flow's is left out");
        assert_eq!(brief[1], (1, 500_000, false));
        assert_eq!(brief[far as usize / 500_000], (8, far, false));
        assert_eq!(brief[brief.len() - 2], (81, far + 1, false));
        assert_eq!(brief[brief.len() - 1], (90, far, true));
    }

    #[test]
    fn what_is_cut_or_changed_never_panics() {
        let whole = capture(&[
            sent(0, ms(0), segment(0, ms(0))),
            ack_row(0, ms(80), ack(1, ms(0), 1)),
        ]);
        for n in 0..whole.len() {
            let _ = read(&whole[..n], 0, 1448, Host::Sender);
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[n] ^= 1 << bit;
                let _ = read(&changed, 0, 1448, Host::Receiver);
            }
        }
        assert_eq!(read(b"PAR1", 0, 1448, Host::Sender), Err(NotOurs(0)));
    }
}
