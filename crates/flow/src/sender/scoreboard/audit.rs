//! The counters against the records; for tests.

use super::Scoreboard;
use super::record::{EXONERATED, LOST, MARKS, RETRANS_OUT, SACKED};

impl Scoreboard {
    /// Recounts everything from the records: what the counters must equal. Duplicates without SACK
    /// have no record.
    pub fn audit(&self, without_sack: bool) -> Result<(), String> {
        let (mut sacked, mut lost, mut again, mut marked) = (0, 0, 0, 0);
        for seq in self.una..self.nxt {
            let f = self.get(seq).flags;
            sacked += u64::from(f & SACKED != 0);
            lost += u64::from(f & LOST != 0);
            again += u64::from(f & RETRANS_OUT != 0);
            marked += u64::from(f & MARKS != 0);
            let known = self.sacked.holding(seq).is_some();
            if known != (f & SACKED != 0) {
                return Err(format!(
                    "segment {seq}: SACKed in the ranges: {known}, flags {f}"
                ));
            }
            let again = f & (RETRANS_OUT | EXONERATED) == RETRANS_OUT;
            if f & SACKED != 0 && (f & LOST != 0 || again) {
                return Err(format!("segment {seq}: delivered and lost, flags {f}"));
            }
        }
        if without_sack {
            sacked = self.out.sacked();
        }
        let have = (
            self.out.sacked(),
            self.out.lost(),
            self.out.retrans(),
            self.marked,
        );
        if (sacked, lost, again, marked) == have {
            Ok(())
        } else {
            Err(format!(
                "counted {:?}, kept {have:?}",
                (sacked, lost, again, marked)
            ))
        }
    }
}
