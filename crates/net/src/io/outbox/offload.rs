//! Which datagrams of an outbox leave with the same call.

use std::io;

use rustix::io::Errno;

use super::Item;
use super::singles::BATCH;
use crate::io::socket::Offload;

/// How many of `items` may leave as one offloaded call: to one address, with one code point, of one
/// size but for the last.
pub fn run(items: &[Item], offload: Offload) -> usize {
    let Some((first, rest)) = items.split_first() else {
        return 0;
    };
    let most = offload.segments.min(MOST_BYTES / first.len.max(1));
    if most < 2 || first.len == 0 || first.len > offload.longest {
        return 1;
    }
    let mut n = 1;
    for item in rest.iter().take(most - 1) {
        let fits = item.to == first.to && item.ecn == first.ecn && item.len <= first.len;
        if !fits || item.len == 0 {
            break;
        }
        n += 1;
        if item.len < first.len {
            break;
        }
    }
    n
}

/// How many from the front leave one by one in the same call: one code point, and no run for
/// offload.
pub fn singles(items: &[Item], offload: Offload) -> usize {
    let Some(first) = items.first() else { return 0 };
    let mut n = 1;
    while n < items.len().min(BATCH)
        && items[n].ecn == first.ecn
        && (offload.segments < 2 || run(&items[n..], offload) < 2)
    {
        n += 1;
    }
    n
}

/// Whether a call with offload may have failed because of it: a device without it, or segments
/// beyond the MTU.
pub fn is_about_offload(e: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(e),
        Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE)
    )
}

/// Most bytes of one call with offload. A whole IP packet has 65,535, and senders that forgot it
/// lost nearly everything.
const MOST_BYTES: usize = 65_000;
