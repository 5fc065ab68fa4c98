//! A point of the matrix: what is run, and what it is made of.

use std::fmt::Write as _;
use std::sync::Arc;

use fullpipe_cc::StackSpec;
use fullpipe_flow::Change;
use fullpipe_metrics::{FlowGroup, TrafficGroup};
use fullpipe_run::{FlowSpec, RunSpec, TimedChange};
use fullpipe_units::Span;

use crate::point::Point;
use crate::shared::SharedSpec;

/// One point of the matrix, resolved. What it has in common with other cases is there once: a
/// hundred thousand of them take some ten megabytes.
#[derive(Clone, Debug)]
pub struct Case {
    /// Position in [`Scenario::cases`].
    pub index: usize,
    /// The flows of the file that take part; one with `streams = n` is one group of n members.
    pub flows: Arc<Vec<FlowGroup>>,
    /// The traffic of the file that takes part.
    pub traffic: Arc<Vec<TrafficGroup>>,
    /// Virtual time of the run.
    pub duration: Span,
    /// Start of the measured part.
    pub warmup: Span,
    /// Width of a throughput sample.
    pub interval: Span,
    /// The case that differs from this one only in the keys of `[measure] baseline`, for gain, loss
    /// and harm; an index into [`Scenario::cases`]. `None`: no such case, or it is the baseline
    /// itself.
    pub baseline: Option<usize>,
    pub(crate) point: Point,
    pub(crate) spec: SharedSpec,
}

impl Case {
    /// Run specification of this case for one seed.
    pub fn run_spec(&self, seed: u64) -> RunSpec {
        self.spec.with_seed(seed)
    }

    /// Matrix key and value as written, in file order (strings without their quotes, tables as
    /// inline TOML).
    pub fn params(&self) -> Vec<(String, String)> {
        let values = self.point.values();
        values
            .map(|(key, (plain, _))| (key.to_owned(), plain.clone()))
            .collect()
    }

    /// [`Case::params`] as JSON values: numbers stay numbers.
    pub fn json_params(&self) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        self.point.json()
    }

    /// Position in the matrix: a value of each axis.
    pub fn point(&self) -> &Point {
        &self.point
    }

    /// Canonical text of everything that determines the result beside seed and engine version. Two
    /// spellings of the same case have the same text.
    pub fn key_text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write_key(&mut text);
        text
    }

    fn write_key(&self, out: &mut String) -> std::fmt::Result {
        let s = &self.run_spec(0);
        writeln!(
            out,
            "run {:?} from {:?} every {:?} trace {:?}",
            s.duration, s.measure_from, s.interval, s.trace
        )?;
        for link in &s.links {
            writeln!(out, "link {link:?}")?;
        }
        for flow in &s.flows {
            write_flow(out, flow)?;
        }
        for class in &s.arrivals {
            writeln!(out, "arrivals {:?} {:?}", class.arrivals, class.sizes)?;
            // Only what is there: results of before there were sessions keep their key.
            if class.session.goes_on() {
                writeln!(out, "{:?}", class.session)?;
            }
            if let Some(name) = &class.seeded_by {
                writeln!(out, "seeded by {name}")?;
            }
            write_flow(out, &class.template)?;
        }
        for cross in &s.cross {
            writeln!(out, "{cross:?}")?;
        }
        for group in self.flows.iter() {
            writeln!(
                out,
                "group {} {:?} {:?}",
                group.name, group.members, group.recovered_at
            )?;
            if let Some(from) = group.recovered_from {
                writeln!(out, "recovered from {from:?}")?;
            }
        }
        for group in self.traffic.iter() {
            writeln!(
                out,
                "traffic {} {:?} {}",
                group.name, group.kind, group.index
            )?;
        }
        Ok(())
    }
}

fn write_flow(out: &mut String, flow: &FlowSpec) -> std::fmt::Result {
    // Every field, so that a new one is not forgotten.
    let FlowSpec {
        name,
        stack,
        sender,
        receiver,
        forward,
        back,
        local_queue,
        start,
        start_spread,
        stop,
        drops,
        arrival_drops,
        changes,
        reverse,
        // `sender` and `receiver` hold what follows from it.
        preset: _,
        written: _,
    } = flow;
    writeln!(out, "flow {name} {stack}")?;
    let later = changes.iter().filter_map(|c| c.change.stack.as_ref());
    for code in later.chain([stack]).filter_map(StackSpec::made_of) {
        writeln!(out, "  made of {code}")?;
    }
    for TimedChange { at, change } in changes {
        let Change {
            stack,
            window,
            rate,
        } = change;
        let stack = stack.as_ref().map(ToString::to_string);
        writeln!(out, "  at {at:?} {stack:?} {window:?} {rate:?}")?;
    }
    writeln!(out, "  {sender:?}\n  {receiver:?}")?;
    writeln!(
        out,
        "  forward {forward:?} back {back:?} local {local_queue} reverse {reverse} start {start:?} + {start_spread:?} \
         stop {stop:?} {drops:?} {arrival_drops:?}"
    )
}
