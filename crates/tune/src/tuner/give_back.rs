//! Gives flows back what they had, by what the kernel side remembers or by the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::orders::refusal;
use super::{LISTEN, TuneError, label};
use crate::journal::{Before, Entry, Given, Journal, JournalError, Key};
use crate::kernel::{Kernel, KernelError, Seen};
use crate::layout::{Locks, Order, OrderAction};
use crate::sockets::Resize;

/// Whether a flow's algorithm is not the one that it was given.
pub(super) fn is_changed(seen: &Seen) -> bool {
    let record = seen.listing.flow.as_ref();
    record.is_some_and(|f| !f.given.is_empty() && f.given != seen.listing.algorithm)
}

/// What gives a flow back what it had: what the kernel side remembers, or the journal, or the
/// default of its namespace. What its program has changed since stays.
fn release_order(seen: &Seen, prefix: &str, journal: &Journal) -> Order {
    let listing = &seen.listing;
    let entry = journal.entry(seen.key());
    // The order for the last may have been cut off; what came before that has been replaced.
    let gave = |e: &Entry| {
        let mut last = e.gave().take(2);
        last.any(|given| given.algorithm == listing.algorithm)
    };
    let since = match &listing.flow {
        Some(_) => is_changed(seen),
        None => !listing.algorithm.starts_with(prefix) && !entry.is_some_and(gave),
    };
    let before = listing.flow.as_ref().map(|f| f.before.clone());
    let before = before.filter(|b| !b.is_empty() && !b.starts_with(prefix));
    let before = before.or_else(|| entry.map(|e| e.before.algorithm.clone()));
    Order {
        action: OrderAction::Release,
        algorithm: match since {
            true => listing.algorithm.clone(),
            false => before.unwrap_or_else(|| seen.default.clone()),
        },
        max_pacing: entry.map_or(u64::MAX, |e| e.before.max_pacing),
        ceiling: entry.map_or(0, |e| {
            let mut gave = e.gave().map(|given| given.ceiling);
            let has = |ceiling: &u32| u64::from(*ceiling) == listing.max_pacing;
            gave.find(has).unwrap_or(e.given.ceiling)
        }),
        ..Order::default()
    }
}

/// Buffers that are as a rule set them, as they were before.
pub(super) fn buffers_before(seen: &Seen, entry: Option<&Entry>) -> Option<Resize> {
    let listing = &seen.listing;
    let (send, receive) = (listing.send_buffer, listing.receive_buffer);
    let (before, as_given) = match (&listing.flow, entry) {
        (Some(f), _) => {
            let is = |given: u32, now: u32| given > 0 && given == now;
            let both = (is(f.given_send, send), is(f.given_receive, receive));
            (Before::kept(f), both)
        }
        (None, Some(e)) => {
            let is = |option: u32, limit: &str, now: u32| option > 0 && sized(option, limit) == now;
            let sent = |g: &Given| is(g.send_buffer, "wmem_max", send);
            let received = |g: &Given| is(g.receive_buffer, "rmem_max", receive);
            let Locks {
                send: own,
                receive: too,
            } = e.before.locks;
            let both = (!own && e.gave().any(sent), !too && e.gave().any(received));
            (e.before.clone(), both)
        }
        (None, None) => return None,
    };
    let size = Resize {
        cookie: listing.cookie,
        inode: listing.inode,
        send: as_given.0.then_some(before.send_buffer),
        receive: as_given.1.then_some(before.receive_buffer),
    };
    Some(size).filter(|s| s.send.or(s.receive).is_some())
}

/// What the kernel makes of an option (socket(7)): at most the limit, and twice that.
fn sized(option: u32, limit: &str) -> u32 {
    let limit = fs::read_to_string(format!("/proc/sys/net/core/{limit}"));
    let limit = limit.ok().and_then(|l| l.trim().parse().ok());
    2 * option.min(limit.unwrap_or(option)).min(i32::MAX as u32 / 2)
}

pub(super) fn by_cookie(seen: Vec<Seen>) -> BTreeMap<u64, Seen> {
    seen.into_iter().map(|s| (s.listing.cookie, s)).collect()
}

/// Gives buffers their size back, and their tuning where the socket can be reached. Words for flows
/// whose buffers the kernel does not tune any more.
pub(super) fn give_sizes<K: Kernel>(
    kernel: &mut K,
    sizes: &[(Key, Resize)],
) -> Result<BTreeMap<Key, String>, KernelError> {
    let each: Vec<Resize> = sizes.iter().map(|(_, size)| *size).collect();
    let mut words = BTreeMap::new();
    let mut orders = Vec::new();
    for ((key, size), done) in sizes.iter().zip(kernel.resize(&each)) {
        if let Err(e) = done {
            let order = Order {
                action: OrderAction::Resize,
                send_buffer: size.send.unwrap_or(0) / 2,
                receive_buffer: size.receive.unwrap_or(0) / 2,
                ..Order::default()
            };
            orders.push((size.cookie, order));
            let why = format!(", but the kernel does not tune its buffers any more ({e})");
            words.insert(*key, why);
        }
    }
    if !orders.is_empty() {
        kernel.flows(&orders)?;
    }
    Ok(words)
}

/// Flows that have their own algorithm and settings again.
#[derive(Debug)]
pub struct Back {
    /// A line for each flow.
    pub lines: Vec<String>,
    /// Whether it could be written down. The flows have it back in any case.
    pub noted: Result<(), JournalError>,
}

/// Each flow that was to be given back with what it has then, and whether that was written down.
pub(super) type Returned = (Vec<(Seen, String)>, Result<(), JournalError>);

/// Gives flows back what they had, and says what each has then. One whose algorithm is not to be
/// had any more gets the default of its namespace, or Reno, which is always there.
pub(super) fn returns<K: Kernel>(
    kernel: &mut K,
    journal: &mut Journal,
    prefix: &str,
    flows: Vec<Seen>,
) -> Result<Returned, TuneError> {
    let mut said = BTreeMap::new();
    let mut left: Vec<(Seen, Order)> = flows
        .iter()
        .map(|s| (s.clone(), release_order(s, prefix, journal)))
        .collect();
    let mut returned = Vec::new();
    for attempt in 0..3 {
        let orders: Vec<(u64, Order)> = left
            .iter()
            .map(|(s, order)| (s.listing.cookie, order.clone()))
            .collect();
        if orders.is_empty() {
            break;
        }
        let after = by_cookie(kernel.flows(&orders)?);
        let mut again = Vec::new();
        for (seen, mut order) in left {
            let done = after.get(&seen.listing.cookie).and_then(|s| s.listing.done);
            let text = match done {
                Some(0) => {
                    returned.push((seen.key(), order.algorithm.clone()));
                    format!("{} again", order.algorithm)
                }
                Some(e) => format!("{}: {}", order.algorithm, refusal(e)),
                None => "has ended".to_owned(),
            };
            let line: &mut String = said.entry(seen.key()).or_default();
            *line = format!("{line}: {text}");
            if done.is_some_and(|e| e != 0) {
                order.algorithm = match attempt {
                    0 => seen.default.clone(),
                    _ => "reno".to_owned(),
                };
                again.push((seen, order));
            }
        }
        left = again;
    }
    let sizes = flows.iter().filter_map(|s| {
        let size = buffers_before(s, journal.entry(s.key()))?;
        Some((s.key(), size))
    });
    let sizes: Vec<(Key, Resize)> = sizes.collect();
    for (key, why) in give_sizes(kernel, &sizes)? {
        said.entry(key).or_default().push_str(&why);
    }
    let noted = journal.returned(returned);
    let words = flows.into_iter().map(|seen| {
        let what = said.remove(&seen.key()).unwrap_or_default();
        (seen, what)
    });
    Ok((words.collect(), noted))
}

const UNKNOWN: &str = ", the default, as the journal has no line about it: a ceiling of pacing and \
                       buffers that it was given stay";

/// Gives back what a tuner that is gone has left: flows whose algorithm has a name of its own, and
/// those of its journal that `which` accepts.
///
/// # Errors
/// [`TuneError`].
pub fn give_back<K: Kernel>(
    kernel: &mut K,
    journal: &mut Journal,
    prefix: &str,
    seen: Vec<Seen>,
    which: impl Fn(&Seen) -> bool,
) -> Result<Back, TuneError> {
    let touched =
        |s: &Seen| s.listing.algorithm.starts_with(prefix) || journal.entry(s.key()).is_some();
    let left = seen.into_iter();
    let left = left.filter(|s| s.listing.state != LISTEN && touched(s) && which(s));
    let left: Vec<Seen> = left.collect();
    // Damaged lines, or a kill before the flow was written down.
    let is_unknown = |s: &&Seen| s.listing.flow.is_none() && journal.entry(s.key()).is_none();
    let unknown: BTreeSet<Key> = left.iter().filter(is_unknown).map(Seen::key).collect();
    let (back, noted) = returns(kernel, journal, prefix, left)?;
    let line = |(seen, what): (Seen, String)| {
        let more = match unknown.contains(&seen.key()) {
            true => UNKNOWN,
            false => "",
        };
        format!("{}{what}{more}", label(&seen.listing))
    };
    let lines = back.into_iter().map(line).collect();
    Ok(Back { lines, noted })
}
