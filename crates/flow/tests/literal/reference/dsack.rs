//! RFC 3708 section 3: were all retransmissions of a window unnecessary?

use super::Seg;

/// The algorithm, begun with a loss recovery.
#[derive(Clone, Debug, Default)]
pub struct Dsack {
    /// Segments whose retransmissions belong to the window, each with its mark "duplicate".
    window: Vec<(u64, bool)>,
    /// Begun, and not over for this window (rules A.1 and A.3).
    runs: bool,
    /// The network duplicates segments: over for the connection (rule A.4).
    off: bool,
}

impl Dsack {
    /// A recovery begins while `out` were sent again and have not arrived.
    pub fn begin(&mut self, out: impl Iterator<Item = u64>) {
        self.window = out.map(|n| (n, false)).collect();
        self.runs = true;
    }

    pub fn retransmits(&mut self, n: u64) {
        self.window.push((n, false));
    }

    pub fn end(&mut self) {
        self.runs = false;
    }

    /// An ACK reports `n` as a duplicate. `una`: SND.UNA before it, `empty`: so was the scoreboard
    /// then; `segs` and `una_now` as it leaves them. True: every retransmission was spurious.
    pub fn on_ack(&mut self, n: u64, una: u64, empty: bool, segs: &[Seg], una_now: u64) -> bool {
        if self.off {
            return false;
        }
        match segs[n as usize].resent {
            // A.1: the ACKs of a whole window were lost.
            _ if empty && n == una => self.runs = false,
            // A.4.
            0 => self.off = true,
            // A.2.
            1 => {
                for segment in &mut self.window {
                    segment.1 |= segment.0 == n;
                }
            }
            // A.3.
            _ => self.runs = false,
        }
        // B.
        let acknowledged = |n: u64| n < una_now || segs[n as usize].sacked;
        let all = self
            .window
            .iter()
            .all(|&(n, twice)| twice && acknowledged(n));
        self.runs && !self.off && !self.window.is_empty() && all
    }
}
