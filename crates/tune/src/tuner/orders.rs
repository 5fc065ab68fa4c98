//! Orders to flows: written down, then done.

use super::give_back::{buffers_before, by_cookie, give_sizes, returns};
use super::{Decision, Known, TuneError, Tuner, ceiling, label};
use crate::journal::{Before, Entry, Given, Key};
use crate::kernel::{Kernel, Seen};
use crate::layout::{Order, OrderAction};
use crate::sockets::Resize;

impl<K: Kernel> Tuner<K> {
    /// Gives flows their rules, and takes back what is to be released.
    pub(super) fn execute(&mut self, decisions: &[Decision]) -> Result<(), TuneError> {
        let (adopted, released): (Vec<&Decision>, Vec<&Decision>) = decisions
            .iter()
            .filter(|d| d.order.is_some())
            .partition(|d| d.is(OrderAction::Adopt));
        if !released.is_empty() {
            let why = |s: &Seen| {
                let found = released.iter().find(|d| d.seen.key() == s.key());
                found.map_or_else(String::new, |d| d.why.clone())
            };
            let flows = released.iter().map(|d| d.seen.clone()).collect();
            let (back, noted) = returns(&mut self.kernel, &mut self.journal, &self.prefix, flows)?;
            for (seen, what) in back {
                self.known.remove(&seen.listing.cookie);
                self.log
                    .push(format!("{}: {}{what}", label(&seen.listing), why(&seen)));
            }
            noted?;
        }
        if !adopted.is_empty() {
            self.adopt_all(&adopted)?;
        }
        if adopted.is_empty() && released.is_empty() {
            return Ok(());
        }
        // Flows that changed their rule and kept their algorithm look again.
        self.control.generation = self.control.generation.wrapping_add(1);
        self.beat()
    }

    /// Written down, then done.
    fn adopt_all(&mut self, adopted: &[&Decision]) -> Result<(), TuneError> {
        let of = |d: &Decision| {
            let order = d.order.clone().unwrap_or_default();
            let name = order.rule.and_then(|n| self.numbers.name(n));
            let rule = self.named(&self.each, name);
            let record = d.seen.listing.flow.as_ref().filter(|f| !f.control);
            let entry = Entry {
                flow: label(&d.seen.listing),
                before: record.map_or_else(|| Before::of(&d.seen.listing), Before::kept),
                given: Given {
                    algorithm: order.algorithm,
                    ceiling: rule.map_or(0, ceiling),
                    send_buffer: order.send_buffer,
                    receive_buffer: order.receive_buffer,
                },
                earlier: Vec::new(),
            };
            (d.seen.key(), entry)
        };
        let entries: Vec<(Key, Entry)> = adopted.iter().map(|d| of(d)).collect();
        self.journal.touch(entries)?;
        // Buffers that the new rule does not set are as they were before the old one.
        let sizes = adopted.iter().filter_map(|d| {
            let order = d.order.as_ref()?;
            let mut size = buffers_before(&d.seen, None)?;
            size.send = size.send.filter(|_| order.send_buffer == 0);
            size.receive = size.receive.filter(|_| order.receive_buffer == 0);
            Some((d.seen.key(), size)).filter(|(_, s)| s.send.or(s.receive).is_some())
        });
        let sizes: Vec<(Key, Resize)> = sizes.collect();
        give_sizes(&mut self.kernel, &sizes)?;
        let orders: Vec<(u64, Order)> = adopted
            .iter()
            .filter_map(|d| Some((d.seen.listing.cookie, d.order.clone()?)))
            .collect();
        let after = by_cookie(self.kernel.flows(&orders)?);
        for d in adopted {
            let cookie = d.seen.listing.cookie;
            let label = label(&d.seen.listing);
            let Some(done) = after.get(&cookie).and_then(|s| s.listing.done) else {
                continue;
            };
            self.log.push(match done {
                0 => format!("{label}: {}", d.why),
                e => format!("{label}: {}: {}", d.why, refusal(e)),
            });
            let order = d.order.clone().unwrap_or_default();
            let known = Known {
                label,
                key: d.seen.key(),
                rule: order.rule,
                sizes: (order.send_buffer, order.receive_buffer, order.ceiling),
                refused: done != 0,
            };
            self.known.insert(cookie, known);
        }
        Ok(())
    }
}

/// The kernel's refusal of an order, by its negative error number.
pub(super) fn refusal(error: i32) -> String {
    let number = -error;
    let why = match number {
        nix::libc::ENOENT => " (no such algorithm, or its module is not loaded)",
        nix::libc::EPERM | nix::libc::EACCES => " (not permitted)",
        _ => "",
    };
    format!("refused, error {number}{why}")
}
