//! Links of the driver.

use std::fmt::Write as _;

use fullpipe_run::{Buffer, Discipline, LinkSpec, Loss, RunSpec, derive_seed};
use fullpipe_units::{Span, Time};

use super::{Plan, below, chance, longest_packet};
use crate::error::LinuxError;

impl Plan {
    pub(super) fn link(
        &mut self,
        i: usize,
        link: &LinkSpec,
        spec: &RunSpec,
    ) -> Result<(), LinuxError> {
        let (kind, room) = match link.buffer {
            Buffer::Unlimited => (0, 0),
            Buffer::Packets(n) => (1, n),
            Buffer::Bytes(n) => (2, n),
            Buffer::Time(t) => (3, t.as_nanos()),
        };
        // `enum fp_queue`
        let queue = match link.discipline {
            Discipline::DropTail => 0,
            Discipline::Codel(_) | Discipline::FqCodel(_) => 1,
            Discipline::Pie(_) => 2,
            Discipline::Red(_) => 3,
        };
        let held = queue != 0 && (link.rate.is_some() || link.trace.is_some());
        let (queue, limit) = match held {
            false => (0, 0),
            true if queue == 3 => (queue, link.linux_bytes()),
            true => (queue, link.linux_limit()),
        };
        // The simulator's generators, by their names.
        let seed = |what: &str| derive_seed(spec.seed, &format!("{}{what}", link.name));
        let (acks, watched) = (u8::from(link.loss_of_acks), u8::from(link.watched));
        let _ = writeln!(
            self.net,
            "link {i} {queue} {limit} {kind} {room} {acks} {watched} {}",
            seed("")
        );
        self.capacity(i, link);
        let delay = link.delay + link.drawn_spread(spec.seed);
        let extra = link.drawn_spread(spec.seed);
        let changes = link.schedule.iter();
        let delays = changes.filter_map(|c| Some((c.at, c.delay? + extra)));
        for (at, delay) in [(Time::ZERO, delay)].into_iter().chain(delays) {
            let _ = writeln!(self.net, "delay {i} {} {}", at.as_nanos(), delay.as_nanos());
        }
        self.losses(i, link);
        if link.jitter > Span::ZERO {
            let most = link.jitter.as_nanos();
            let _ = writeln!(self.net, "jitter {i} {most} {}", seed(" jitter"));
        }
        if let Some(r) = link.reorder.filter(|r| r.probability > 0.0) {
            let ((m, shift), extra) = (chance(r.probability), r.extra.as_nanos());
            let seed = seed(" reorder");
            let _ = writeln!(self.net, "reorder {i} {m} {shift} {extra} {seed}");
        }
        if let Some(p) = link.policer {
            let (rate, burst) = (p.rate.as_bits_per_sec(), p.burst);
            let _ = writeln!(self.net, "policer {i} {rate} {burst}");
        }
        if held {
            // The floor of CoDel and of PIE is the MTU of the device (`psched_mtu`).
            let mtu = (link.discipline.mtu()).map_or(longest_packet(spec), |mtu| mtu.max(68));
            let _ = writeln!(self.ip[0], "link set fpl{i} mtu {mtu} up");
            self.discipline(i, link)?;
        }
        Ok(())
    }

    /// Rates, or the opportunities of a trace, which take no changes.
    fn capacity(&mut self, i: usize, link: &LinkSpec) {
        if let Some(trace) = &link.trace {
            for some in trace.opportunities.chunks(256) {
                let some: Vec<String> = some.iter().map(u32::to_string).collect();
                let _ = writeln!(self.net, "opportunities {i} {}", some.join(" "));
            }
            return;
        }
        let changes = || link.schedule.iter();
        let rates = changes().filter_map(|c| Some((c.at, c.rate?.as_bits_per_sec())));
        let rates: Vec<_> = rates.collect();
        if link.rate.is_none() && rates.is_empty() {
            return;
        }
        let first = link.rate.map_or(u64::MAX, |r| r.as_bits_per_sec());
        for (at, bps) in [(Time::ZERO, first)].into_iter().chain(rates) {
            let _ = writeln!(self.net, "rate {i} {} {bps}", at.as_nanos());
        }
    }

    fn losses(&mut self, i: usize, link: &LinkSpec) {
        let changes = link.schedule.iter();
        let later = changes.filter_map(|c| Some((c.at, c.loss?)));
        let all = [(Time::ZERO, link.loss)].into_iter().chain(later);
        let all: Vec<_> = all.collect();
        if all.iter().all(|(_, loss)| *loss == Loss::None) {
            return;
        }
        for (at, loss) in all {
            let (kind, [a, b, c, d]) = match loss {
                Loss::None => (0, [0; 4]),
                Loss::Bernoulli { p } => {
                    let (m, shift) = chance(p);
                    (1, [m, u64::from(shift), u64::from(p > 0.0), 0])
                }
                Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    good,
                    bad,
                } => (2, [to_bad, to_good, good, bad].map(below)),
            };
            let at = at.as_nanos();
            let _ = writeln!(self.net, "loss {i} {at} {kind} {a} {b} {c} {d}");
        }
    }
}
