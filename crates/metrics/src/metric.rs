//! A row of the table of metrics: what a metric says, and the function that computes it.

use std::fmt;

use fullpipe_run::LinkOutcome;

use crate::group::TrafficKind;
use crate::run_metrics::RunMetrics;
use crate::view::{CaseView, DatagramsView, FlowView, PingView, ShortFlowsView};

/// Kind of thing that one value of a metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One flow of the scenario; all its streams together.
    Flow,
    /// Short flows, datagrams or probes.
    Traffic,
    /// One link.
    Link,
    /// The whole case.
    Case,
}

impl Scope {
    /// The scope in results and in `fullpipe list metrics`: `flow`, `traffic`, `link`, `case`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Traffic => "traffic",
            Self::Link => "link",
            Self::Case => "case",
        }
    }
}

/// Which direction is better, for reading a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neither,
}

/// One metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name in JSON, columns and expectations; a dot leads into a JSON object.
    pub name: &'static str,
    /// What one value describes: a flow, a traffic source, a link or a case.
    pub scope: Scope,
    /// Unit; `1` for a ratio.
    pub unit: &'static str,
    /// A number of things: printed without decimals.
    pub count: bool,
    /// Of the first flow against the second: another sign when they change places, zero where they
    /// are even.
    pub signed: bool,
    /// Least and most that it can be, as [`UNBOUNDED`]: where intervals end.
    pub range: [f64; 2],
    /// Direction.
    pub better: Better,
    /// Meaning in one line, without a full stop.
    pub about: &'static str,
    /// Definition in words and symbols, for the reference page.
    pub formula: &'static str,
    /// How the streams of one flow (`streams = n`) are combined; empty where it does not apply.
    pub streams: &'static str,
    /// Document that defines it.
    pub source: &'static str,
    /// In words; empty: made from the name.
    title: &'static str,
    /// Heading of a narrow column, and its second line where that is not the unit.
    column: Option<(&'static str, Option<&'static str>)>,
    pub(crate) value: Value,
}

/// The range of what may have any value.
pub const UNBOUNDED: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// The function that computes a metric. `None`: undefined in this run.
#[derive(Clone, Copy)]
pub(crate) enum Value {
    /// All streams of one flow together.
    Flow(fn(&FlowView<'_>) -> Option<f64>),
    /// Of traffic, by kind; a kind without a function does not have the metric.
    Traffic {
        short_flows: Option<fn(&ShortFlowsView<'_>) -> Option<f64>>,
        datagrams: Option<fn(&DatagramsView<'_>) -> Option<f64>>,
        probes: Option<fn(&PingView<'_>) -> Option<f64>>,
    },
    /// One link, from its counters.
    Link(fn(&LinkOutcome) -> Option<f64>),
    /// The run as a whole.
    Case(fn(&CaseView<'_>) -> Option<f64>),
    /// Of a case and its baseline, the same seed of both.
    Against(fn(&RunMetrics, &RunMetrics) -> Option<f64>),
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function")
    }
}

/// A metric of a flow.
pub(crate) const fn flow(
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&FlowView<'_>) -> Option<f64>,
) -> Metric {
    metric(Scope::Flow, name, unit, better, Value::Flow(value))
}

/// A metric of traffic; [`Metric::short_flows`], [`Metric::datagrams`] and [`Metric::probes`] say
/// of which kinds.
pub(crate) const fn traffic(name: &'static str, unit: &'static str, better: Better) -> Metric {
    let value = Value::Traffic {
        short_flows: None,
        datagrams: None,
        probes: None,
    };
    metric(Scope::Traffic, name, unit, better, value)
}

/// A metric of a link.
pub(crate) const fn link(
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&LinkOutcome) -> Option<f64>,
) -> Metric {
    metric(Scope::Link, name, unit, better, Value::Link(value))
}

/// A metric of a case.
pub(crate) const fn case(
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&CaseView<'_>) -> Option<f64>,
) -> Metric {
    metric(Scope::Case, name, unit, better, Value::Case(value))
}

/// A metric of a case against its baseline: of the case, then of the baseline.
pub(crate) const fn against(
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&RunMetrics, &RunMetrics) -> Option<f64>,
) -> Metric {
    metric(Scope::Case, name, unit, better, Value::Against(value))
}

const fn metric(
    scope: Scope,
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: Value,
) -> Metric {
    Metric {
        name,
        scope,
        unit,
        count: false,
        signed: false,
        range: [0.0, f64::INFINITY],
        better,
        about: "",
        formula: "",
        streams: "",
        source: "",
        title: "",
        column: None,
        value,
    }
}

impl Metric {
    /// Meaning in one line, formula, document that defines it.
    pub(crate) const fn means(
        mut self,
        about: &'static str,
        formula: &'static str,
        source: &'static str,
    ) -> Metric {
        self.about = about;
        self.formula = formula;
        self.source = source;
        self
    }

    /// How the streams of one flow are combined.
    pub(crate) const fn streams(mut self, rule: &'static str) -> Metric {
        self.streams = rule;
        self
    }

    /// A number of things: no decimals.
    pub(crate) const fn counts(mut self) -> Metric {
        self.count = true;
        self
    }

    /// Another sign when the first two flows change places.
    pub(crate) const fn signed(mut self) -> Metric {
        self.signed = true;
        self
    }

    /// Part of a whole: 0 to 1.
    pub(crate) const fn part(self) -> Metric {
        self.between([0.0, 1.0])
    }

    /// Least and most that it can be, where that is not zero and anything above.
    pub(crate) const fn between(mut self, range: [f64; 2]) -> Metric {
        self.range = range;
        self
    }

    /// In words, where those of the name do not do.
    pub(crate) const fn titled(mut self, title: &'static str) -> Metric {
        self.title = title;
        self
    }

    /// Heading of a narrow column, over the unit.
    pub(crate) const fn column(mut self, head: &'static str) -> Metric {
        self.column = Some((head, None));
        self
    }

    /// Heading of a narrow column in two lines.
    pub(crate) const fn column_of_two(mut self, head: &'static str, below: &'static str) -> Metric {
        self.column = Some((head, Some(below)));
        self
    }

    /// In words, without the unit: `RTT, 95th percentile`, `Drop rate`.
    pub fn title(&self) -> String {
        if !self.title.is_empty() {
            return self.title.to_owned();
        }
        let words = plain_words(self.name);
        let mut letters = words.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect()
        })
    }

    /// Title and unit, `Goodput, Mbit/s`; the title alone where it says what is counted.
    pub fn heading(&self) -> String {
        match self.unit {
            "1" | "events" | "flows" | "packets" | "segments" => self.title(),
            unit => format!("{}, {unit}", self.title()),
        }
    }

    /// Two lines over a narrow column: `goodput` over `Mbit/s`; the name where the row has none.
    pub fn column_head(&self) -> [&'static str; 2] {
        let unit = match self.unit {
            "1" | "events" | "flows" => "",
            unit => unit,
        };
        let (head, below) = self.column.unwrap_or((self.name, None));
        [head, below.unwrap_or(unit)]
    }

    /// Short flows have it.
    pub(crate) const fn short_flows(
        mut self,
        value: fn(&ShortFlowsView<'_>) -> Option<f64>,
    ) -> Metric {
        if let Value::Traffic { short_flows, .. } = &mut self.value {
            *short_flows = Some(value);
        }
        self
    }

    /// Datagrams have it.
    pub(crate) const fn datagrams(
        mut self,
        value: fn(&DatagramsView<'_>) -> Option<f64>,
    ) -> Metric {
        if let Value::Traffic { datagrams, .. } = &mut self.value {
            *datagrams = Some(value);
        }
        self
    }

    /// Probes have it.
    pub(crate) const fn probes(mut self, value: fn(&PingView<'_>) -> Option<f64>) -> Metric {
        if let Value::Traffic { probes, .. } = &mut self.value {
            *probes = Some(value);
        }
        self
    }

    /// Kinds of traffic that have it, in words; empty in the other scopes.
    pub fn kinds(&self) -> String {
        let kinds = [
            ("short flows", TrafficKind::ShortFlows),
            ("datagrams", TrafficKind::Datagrams),
            ("probes", TrafficKind::Ping),
        ];
        let having = kinds.iter().filter(|(_, kind)| self.is_of_kind(*kind));
        having.map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ")
    }

    /// Traffic of this kind has it.
    pub fn is_of_kind(&self, kind: TrafficKind) -> bool {
        let Value::Traffic {
            short_flows,
            datagrams,
            probes,
        } = self.value
        else {
            return false;
        };
        match kind {
            TrafficKind::ShortFlows => short_flows.is_some(),
            TrafficKind::Datagrams => datagrams.is_some(),
            TrafficKind::Ping => probes.is_some(),
        }
    }
}

/// The words of a metric's name without its unit: `rtt p95` of `rtt_ms.p95`.
pub fn plain_words(name: &str) -> String {
    let (head, statistic) = name.split_once('.').unwrap_or((name, ""));
    let plain = UNITS.iter().find_map(|unit| head.strip_suffix(unit));
    let words = format!("{} {statistic}", plain.unwrap_or(head));
    words.trim_end().replace(['_', '.'], " ")
}

/// Units at the end of names.
const UNITS: [&str; 5] = ["_mbps", "_ms", "_s", "_segments", "_packets"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_words_with_and_without_its_unit() {
        for (metric, title, heading) in [
            (Metric::flow("goodput_mbps"), "Goodput", "Goodput, Mbit/s"),
            (Metric::flow("loss_events"), "Loss events", "Loss events"),
            (
                Metric::flow("cwnd_segments.mean"),
                "Window, mean",
                "Window, mean",
            ),
            (Metric::flow("first_loss_s"), "First loss", "First loss, s"),
            (
                Metric::link("queueing_delay_ms.p95"),
                "Queueing delay p95",
                "Queueing delay p95, ms",
            ),
            (Metric::case("jain"), "Fairness (Jain)", "Fairness (Jain)"),
        ] {
            assert_eq!(metric.title(), title);
            assert_eq!(metric.heading(), heading);
        }
        for (name, words) in [
            ("rtt_ms.p95", "rtt p95"),
            ("sent_segments", "sent"),
            ("limited.window_cap", "limited window cap"),
        ] {
            assert_eq!(plain_words(name), words);
        }
    }

    #[test]
    fn a_narrow_column_has_two_lines() {
        for (metric, head) in [
            (Metric::flow("goodput_mbps"), ["goodput", "Mbit/s"]),
            (Metric::flow("loss_events"), ["events", ""]),
            (Metric::flow("recovery_time_s"), ["recovery", "1st, s"]),
            (Metric::flow("retransmit_rate"), ["retransmit_rate", ""]),
        ] {
            assert_eq!(metric.column_head(), head);
        }
    }
}
