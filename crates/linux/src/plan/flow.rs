//! Lasting flows: what the driver knows of them, and their applications.

use std::fmt::Write as _;

use fullpipe_run::{Drops, FlowSpec, RunSpec, derive_seed};
use fullpipe_units::Time;

use super::{Plan, address, chance};
use crate::switches::Switches;

impl Plan {
    pub(super) fn flow(&mut self, i: usize, f: &FlowSpec, s: &Switches, spec: &RunSpec) {
        let bytes = f.sender.transfer.unwrap_or(0) * u64::from(f.sender.mss);
        self.known(i, f, s, bytes, false);
        // The simulator's generators, by their names.
        let seed = |what: &str| derive_seed(spec.seed, &format!("{}{what}", f.name));
        self.drops(i, 0, &f.drops, seed(""));
        self.drops(i, 1, &f.arrival_drops, seed(" arrival drops"));
        let (near, far) = sides(f);
        let port = FIRST_PORT + i;
        let (rcvbuf, clamp) = s.window;
        let _ = writeln!(self.apps, "sink {far} {port} {rcvbuf} {clamp}");
        let _ = writeln!(
            self.apps,
            "send {near} {} {} {} {port} {} {bytes} {} {}",
            f.started(spec.seed).as_nanos(),
            address(near, i),
            address(far, i),
            s.module,
            f.stop.map_or(0, Time::as_nanos),
            s.pace,
        );
    }

    /// A flow in the driver, with its routes.
    pub(super) fn known(&mut self, i: usize, f: &FlowSpec, s: &Switches, bytes: u64, brief: bool) {
        let (config, _) = f.sender.clone().with_stack(&f.stack);
        let cap = match config.window.max {
            w if w.is_finite() => w.max(1.0) as u64,
            _ => 0,
        };
        let initial = config.window.initial.min(config.window.max).max(1.0) as u64;
        let _ = writeln!(
            self.net,
            "flow {i} {} {} {cap} {} {bytes} {} {}",
            u8::from(f.reverse),
            config.mss,
            initial,
            f.stop.map_or(0, Time::as_nanos),
            u8::from(brief),
        );
        let options = [
            s.timestamps,
            s.sack,
            f.local_queue,
            s.small_queue,
            s.stall_reduces,
            f.sender.handshake_ack,
        ];
        let [stamps, sack, interface, small_queue, reduces, last_ack] = options.map(u8::from);
        let _ = writeln!(
            self.net,
            "options {i} {stamps} {sack} {interface} {small_queue} {reduces} {last_ack}"
        );
        self.route("data", i, &f.forward);
        self.route("acks", i, &f.back);
    }

    /// The links of a way.
    pub(super) fn route(&mut self, word: &str, i: usize, links: &[usize]) {
        let links: Vec<String> = links.iter().map(usize::to_string).collect();
        let _ = writeln!(self.net, "{word} {i} {}", links.join(" "));
    }

    fn drops(&mut self, i: usize, place: u8, drops: &Drops, seed: u64) {
        let mut segments = drops.segments.clone();
        let mut times = drops.times.clone();
        segments.sort_unstable();
        times.sort_unstable();
        let rules = segments
            .into_iter()
            .map(|s| (0, s))
            .chain(times.into_iter().map(|t| (1, t.as_nanos())))
            .chain(drops.every.map(|n| (2, n)))
            .chain(drops.at_window.map(|w| (3, w.ceil() as u64)));
        for (kind, value) in rules {
            let _ = writeln!(self.net, "drop {i} {place} {kind} {value}");
        }
        if drops.probability > 0.0 {
            let (m, shift) = chance(drops.probability);
            let _ = writeln!(self.net, "chance {i} {place} {m} {shift} {seed}");
        }
    }
}

/// Hosts of a flow's sender and of its receiver.
pub(super) fn sides(f: &FlowSpec) -> (usize, usize) {
    if f.reverse { (1, 0) } else { (0, 1) }
}

/// Port of the first receiver.
pub(super) const FIRST_PORT: usize = 10_000;
