//! Standard slow start: one segment per acknowledged segment (RFC 5681 section 3.1).

use crate::classic::{StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;

/// Exponential growth until `ssthresh` or a congestion event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standard;

impl StartUp for Standard {
    #[inline]
    fn grow(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) -> f64 {
        win.climb(n, 1.0)
    }
}

/// `standard`.
pub const STANDARD: Entry<Standard> = Entry {
    name: "standard",
    aliases: &["slowstart"],
    about: "slow start: the window doubles every RTT",
    source: "RFC 5681 section 3.1, RFC 3465 section 2.2",
    params: &[],
    build: |_| Ok(Standard),
};
