//! A cell as a scenario: what `fullpipe run` would be given, and the specification it becomes.

use std::fmt::Write as _;

use fullpipe_run::{RunSpec, Trace};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::Span;

use super::{Cell, Condition, OUTAGE_AT_S, REORDERED, REORDERED_MS};

/// Which of the simulator's descriptions of a host is held against Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Linux: preset `linux` and the kernel's modules (`reno-linux`, ...).
    Linux,
    /// The RFCs: preset `2026` and the published algorithms. Shows what the Linux variants are good
    /// for.
    Rfc,
}

/// A cell that is no scenario: an algorithm that the program does not know.
#[derive(Debug, thiserror::Error)]
#[error("{cell}: {reason}")]
pub struct ScenarioError {
    /// Name of the cell.
    pub cell: String,
    /// The reader's word.
    pub reason: String,
}

/// What a guest of the ground linux is, beside its path.
pub mod guest {
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::FlowSpec;
    use fullpipe_units::Span;

    /// The first flow connects this long after a tick.
    pub const AFTER_TICK: Span = Span::from_nanos(909_312);

    /// Timers go off up to this late: two that are due within half a microsecond go off together
    /// (`TIMER_MIN_DELTA`). Without it, packets that arrive and leave in the same instant would
    /// always do so in the same order.
    pub const LATENESS: Span = Span::from_nanos(500);

    /// Of processes that wake in the same instant the last one runs first: its window is the first
    /// in the queue.
    pub const TURN: Span = Span::from_micros(1);

    /// The receiver's time stamps are shifted by a random number for each connection
    /// (`tcp_timestamps = 1`), which TCP-LP takes for part of the delay. Seven in eight are as good
    /// as this one.
    pub const STAMP_OFFSET_MS: u32 = 1 << 31;

    /// The flow between hosts of 6.12, whose windows and send buffers those of 6.1 are not; a
    /// window that a scenario sets is the same on both.
    pub fn on_6_12(flow: &mut FlowSpec) {
        let window = &mut flow.receiver.window;
        if *window == ReceiverConfig::preset(Preset::Linux).window {
            *window = ReceiverConfig::preset(Preset::Linux66).window;
        }
        let newer = SenderConfig::preset(Preset::Linux66, flow.sender.packet());
        flow.sender.host.segment_overhead = newer.host.segment_overhead;
    }
}

/// Distance of rows: the grid's points then show a state at most this old.
const TRACE: Span = Span::from_millis(1);

impl Cell {
    /// The scenario that `fullpipe run` takes: a bottleneck without delay, then half the RTT each
    /// way, random loss between the two.
    pub fn scenario(&self, model: Model) -> String {
        let mut s = format!(
            "# {}\nname = \"cell\"\nduration = \"{}ns\"\n\n\
             [measure]\ninterval = \"1s\"\nwarmup = \"{}ns\"\n\n",
            self.id(),
            (guest::AFTER_TICK + Span::from_millis(self.end_ms())).as_nanos(),
            (guest::AFTER_TICK + Span::from_millis(self.from_ms())).as_nanos(),
        );
        self.links(&mut s);
        for (i, module) in self.flows.iter().enumerate() {
            self.flow(&mut s, i, module, model);
        }
        s
    }

    fn links(&self, s: &mut String) {
        let queue = format!(
            "rate = \"{}Mbit/s\"\nbuffer = \"{} packets\"\n",
            self.path.rate_mbit,
            self.buffer()
        );
        let delay = format!(
            "delay = \"{}us\"\njitter = \"{}ns\"\n",
            self.path.rtt_ms * 500,
            guest::LATENESS.as_nanos()
        );
        let mut bottleneck = queue.clone();
        let (mut forward, mut back) = (delay.clone(), delay);
        // Writing to a string cannot fail.
        if self.loss > 0.0 {
            let _ = writeln!(forward, "loss = {:e}", self.loss);
        }
        match self.condition {
            Condition::Plain | Condition::Reverse | Condition::Transfer(_) => {}
            Condition::Queue(q) => {
                let _ = writeln!(
                    bottleneck,
                    "queue = {{ kind = \"{}\", by = \"linux\", ecn = {} }}",
                    q.discipline, q.ecn
                );
            }
            Condition::Outage(seconds) => {
                let at = guest::AFTER_TICK + Span::from_secs(u64::from(OUTAGE_AT_S));
                let _ = writeln!(
                    bottleneck,
                    "schedule = {{ at = \"{}ns\", outage = \"{seconds}s\" }}",
                    at.as_nanos()
                );
            }
            Condition::Reorder => {
                let _ = writeln!(
                    forward,
                    "reorder = {{ probability = {REORDERED}, extra = \"{REORDERED_MS}ms\" }}"
                );
            }
            Condition::AckLoss(p) => {
                let _ = writeln!(back, "loss = {p}\nloss_of_acks = true");
            }
        }
        let mut links = vec![
            ("bottleneck", bottleneck),
            ("forward", forward),
            ("back", back),
        ];
        if self.condition == Condition::Reverse {
            links.push(("return", queue));
        }
        for (name, text) in links {
            let _ = writeln!(s, "[[link]]\nname = \"{name}\"\n{text}");
        }
    }

    fn flow(&self, s: &mut String, i: usize, module: &str, model: Model) {
        let (preset, stack) = match model {
            Model::Linux => ("linux", format!("{module}-linux")),
            Model::Rfc => ("2026", module.to_owned()),
        };
        let start = guest::AFTER_TICK
            + Span::from_millis(self.start_ms(i))
            + guest::TURN * (self.flows.len() - 1 - i) as u64;
        let _ = writeln!(
            s,
            "[[flow]]\nname = \"flow{i}\"\nstack = \"{stack}\"\npreset = \"{preset}\"\n\
             hz = {}\nstart = \"{}ns\"",
            self.kernel.hz(),
            start.as_nanos()
        );
        if let Condition::Queue(q) = self.condition
            && q.ecn
        {
            let _ = writeln!(s, "ecn = true");
        }
        if let Condition::Transfer(segments) = self.condition {
            let _ = writeln!(s, "size = \"{segments} segments\"");
        }
        let there = "[\"bottleneck\", \"forward\"]";
        let (forward, back) = match (self.condition, i) {
            (Condition::Reverse, 0) => (there, "[\"return\", \"back\"]"),
            (Condition::Reverse, _) => ("[\"return\", \"back\"]", there),
            _ => (there, "[\"back\"]"),
        };
        let _ = writeln!(
            s,
            "\n[[route]]\nflow = \"flow{i}\"\nforward = {forward}\nback = {back}\n"
        );
    }

    /// The specification of a run: that of the scenario, with a row every millisecond.
    ///
    /// # Errors
    /// [`ScenarioError`] if the program does not know an algorithm.
    pub fn spec(&self, seed: u64, model: Model) -> Result<RunSpec, ScenarioError> {
        let failed = |reason: String| ScenarioError {
            cell: self.id(),
            reason,
        };
        let text = self.scenario(model);
        let scenario = Scenario::parse(&text, &self.id(), &Overrides::default());
        let scenario = scenario.map_err(|e| failed(e.to_string()))?;
        let case = scenario.cases.first();
        let case = case.ok_or_else(|| failed("a scenario without a case".to_owned()))?;
        Ok(RunSpec {
            trace: Trace::Every(TRACE),
            ..case.run_spec(seed)
        })
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_run::{Discipline, Loss};
    use fullpipe_units::Time;

    use super::*;
    use crate::cell::{all, of};

    #[test]
    fn every_cell_is_a_scenario_of_both_models() {
        for cell in all() {
            for model in [Model::Linux, Model::Rfc] {
                let spec = cell.spec(1, model).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(spec.flows.len(), cell.flows.len());
                assert_eq!(spec.flows[0].sender.timers.hz, cell.kernel.hz());
            }
        }
    }

    #[test]
    fn a_condition_is_where_it_belongs() {
        let spec = |id: &str| of(id).unwrap().spec(1, Model::Linux).unwrap();
        let queue = spec("cubic-20x30-b4-codel-ecn@6.12");
        assert!(matches!(queue.links[0].discipline, Discipline::Codel(c) if c.ecn));
        assert!(queue.flows[0].sender.ecn);
        let acks = spec("cubic-20x30-b1-acks0.3@6.1");
        assert_eq!(acks.links[2].loss, Loss::Bernoulli { p: 0.3 });
        assert!(acks.links[2].loss_of_acks && acks.links[1].loss == Loss::None);
        let outage = spec("cubic-20x30-b1-outage3@6.1");
        let begins = Time::ZERO + guest::AFTER_TICK + Span::from_secs(10);
        assert_eq!(outage.links[0].schedule[0].at, begins);
        let reverse = spec("cubic-20x30-b1-reverse@6.1");
        assert_eq!(reverse.flows[0].back, reverse.flows[1].forward);
        assert_eq!(reverse.flows[1].back, reverse.flows[0].forward);
        let size = spec("cubic-20x30-b1-size700@6.1");
        assert_eq!(size.flows[0].sender.transfer, Some(700));
    }

    #[test]
    fn an_unknown_algorithm_is_an_error_with_the_cells_name() {
        let mut cell = all().remove(0);
        cell.flows = vec!["nosuch"];
        let error = cell.spec(1, Model::Rfc).unwrap_err().to_string();
        assert!(error.starts_with("nosuch-100x40"), "{error}");
    }
}
