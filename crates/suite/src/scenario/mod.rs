//! Scenario files: text in, resolved cases out. A [`Scenario`] that exists is a valid one.
//!
//! `document` turns TOML into values that know their line, `keys` and `value` say what each key accepts, `matrix` makes
//! the cases, `resolve` turns each into a [`RunSpec`], `expect` reads the bounds. Faults are collected on the way and
//! returned together, sorted by line.

mod assemble;
pub mod builtin;
pub mod diagnostic;
mod document;
mod expect;
mod files;
mod keys;
mod matrix;
mod resolve;
mod schema;
mod study;
mod value;

use std::fmt::Write as _;
use std::ops::Range;

use fullpipe_sim::{FlowSpec, RunSpec};
use fullpipe_units::{Rate, Span, Time};

pub use diagnostic::{Diagnostic, Diagnostics};

/// A scenario: what is run, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name, from the file.
    pub name: String,
    /// One sentence or more.
    pub about: String,
    /// The file's text as it was read.
    pub text: String,
    /// Path of the file, or `built-in:<name>`.
    pub origin: String,
    /// Read with `--quick`.
    pub quick: bool,
    /// Seeds of the runs of every case.
    pub seeds: Vec<u64>,
    /// The points of the matrix; later keys of `[matrix]` vary fastest.
    pub cases: Vec<Case>,
    /// What the results are held against.
    pub expectations: Vec<Expectation>,
    /// What is measured.
    pub measure: Measure,
    /// Figures asked for.
    pub reports: Vec<Report>,
    /// Files that the cases refer to: path and text.
    pub files: Vec<(String, String)>,
    /// Things that are allowed but probably not meant.
    pub warnings: Vec<Diagnostic>,
}

/// What the command line changes in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set key=value`, in order.
    pub set: Vec<(String, String)>,
    /// `--seed`: this one seed (with `repeat`: this and the following ones).
    pub seed: Option<u64>,
    /// `--repeat`: number of seeds.
    pub repeat: Option<u32>,
    /// `--quick`: with what `[quick]` sets.
    pub quick: bool,
}

/// One point of the matrix, resolved.
#[derive(Clone, Debug)]
pub struct Case {
    /// Position in [`Scenario::cases`].
    pub index: usize,
    /// Matrix key and value as written, in file order (strings without their quotes, tables as inline TOML).
    pub params: Vec<(String, String)>,
    /// The flows of the file that take part; one with `streams = n` is one group of n members.
    pub flows: Vec<FlowGroup>,
    /// The traffic of the file that takes part.
    pub traffic: Vec<TrafficGroup>,
    /// Virtual time of the run.
    pub duration: Span,
    /// Start of the measured part.
    pub warmup: Span,
    /// Width of a throughput sample.
    pub interval: Span,
    /// The case that differs from this one only in the keys of `[measure] baseline`, for gain, loss and harm; an index into
    /// [`Scenario::cases`]. `None`: no such case, or it is the baseline itself.
    pub baseline: Option<usize>,
    spec: RunSpec,
    json: Vec<serde_json::Value>,
}

/// A flow of the file.
#[derive(Clone, Debug)]
pub struct FlowGroup {
    /// Name in the file.
    pub name: String,
    /// Canonical spelling of the stack.
    pub stack: String,
    /// Its members in `RunSpec.flows`.
    pub members: Range<usize>,
    /// When it counts as recovered from a loss.
    pub recovered_at: RecoveredAt,
    /// Cap of one member's window, segments: the smaller of `window` and `receive_window`.
    pub window_cap: Option<f64>,
    /// Round-trip propagation delay.
    pub base_rtt: Span,
    /// Capacity of the bottleneck.
    pub capacity: Rate,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Payload of a full segment, bytes.
    pub mss: u32,
    /// Segments per ACK at the receiver.
    pub ack_every: u32,
    /// Start of the flow.
    pub start: Time,
    /// End of the flow, if before the end of the run.
    pub stop: Option<Time>,
    /// Segments of one member's finite transfer.
    pub transfer: Option<u64>,
    /// Losses on the path or at the sender are ordered by `drop`.
    pub has_drops: bool,
    /// Its data takes the way back.
    pub reverse: bool,
    /// The link in `RunSpec.links` that has `capacity`.
    pub bottleneck: usize,
}

/// Traffic of the file.
#[derive(Clone, Debug)]
pub struct TrafficGroup {
    /// Name in the file.
    pub name: String,
    /// What it is.
    pub kind: TrafficKind,
    /// `kind` as in the file.
    pub word: String,
    /// Index in `RunSpec.arrivals`, `sources` or `pings`, whichever `kind` says.
    pub index: usize,
    /// Short flows: canonical spelling of the stack.
    pub stack: Option<String>,
    /// Its data takes the way back.
    pub reverse: bool,
    /// The link in `RunSpec.links` that has `capacity`.
    pub bottleneck: usize,
    /// Capacity of that link.
    pub capacity: Rate,
    /// Round-trip propagation delay; for datagrams that of their path.
    pub base_rtt: Span,
    /// Bytes of a full packet, a datagram or a probe, headers included.
    pub packet: u32,
    /// Short flows: payload of a full segment, bytes; otherwise 0.
    pub mss: u32,
    /// Short flows: mean length, segments.
    pub mean_size: Option<f64>,
    /// Mean rate offered, headers included and nothing resent; `None` where it changes once and for all.
    pub offered: Option<Rate>,
    /// Its start.
    pub start: Time,
    /// Its end, if it has one.
    pub stop: Option<Time>,
}

/// Kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficKind {
    /// `RunSpec.arrivals`.
    ShortFlows,
    /// `RunSpec.sources`.
    Datagrams,
    /// `RunSpec.pings`.
    Ping,
}

impl FlowGroup {
    /// Bandwidth-delay product of the flow's path in packets, `rate * rtt / (8 * packet)`.
    pub fn bdp(&self) -> f64 {
        bdp_packets(self.capacity, self.base_rtt, self.packet)
    }
}

/// When a flow counts as recovered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecoveredAt {
    /// The delivered rate over one RTT reaches this part of `min(capacity, window_cap/RTT)`.
    Rate(f64),
    /// The window of a member reaches this many segments.
    Window(f64),
}

/// What is measured, as far as it does not differ between cases; the times are in [`Case`].
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Time series.
    pub trace: TraceMode,
    /// Seeds are added until the means are this sure.
    pub precision: Option<Precision>,
}

/// `[measure] precision`: how sure a mean must be, and how far to go for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Largest half width of the 95 % interval as a part of the mean: 0.02 for `"2%"`.
    pub target: f64,
    /// Metrics it is asked of, each of every row that has it; `["goodput_mbps"]` by default.
    pub of: Vec<String>,
    /// Seeds per case at most, those of `seeds` included.
    pub max_seeds: u32,
}

/// Amount of time series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceMode {
    /// None.
    Off,
    /// About 2000 rows per flow, extremes kept.
    Decimated,
    /// One row per ACK.
    Full,
}

/// A bound on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Name, from the file or made of metric, flow and `where`.
    pub name: String,
    /// Metric; see `fullpipe list metrics`.
    pub metric: String,
    /// Flow it is taken from; `None` for a metric of the case or of a link.
    pub flow: Option<String>,
    /// Link it is taken from.
    pub link: Option<String>,
    /// Matrix keys and values, spelled as in [`Case::params`]; empty: every case.
    pub where_: Vec<(String, String)>,
    /// Smallest and largest accepted value, either may be infinite.
    pub bound: (f64, f64),
    /// Where the bound comes from.
    pub source: String,
    /// Line in the file.
    pub line: usize,
    /// Indices of the cases it applies to; never empty.
    pub cases: Vec<usize>,
    /// Each of these cases with its peer; empty: none is asked for.
    pub pairs: Vec<(usize, usize)>,
    /// What a case is held against.
    pub against: Against,
}

/// What the value of a case is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The bound.
    Bound,
    /// The peer: their 95 % intervals must overlap (`agrees_with`).
    Agreement,
    /// The bound, after division by the value of the peer (`ratio_to`).
    Ratio,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `cwnd`, `rtt`, `goodput`, `queue`, `metric`, `matrix`, or `completion`.
    pub figure: String,
    /// Flow or traffic, if not all.
    pub flow: Option<String>,
    /// Matrix key along the horizontal axis.
    pub x: Option<String>,
    /// Metric along the vertical axis; of a `matrix` the matrix key along it.
    pub y: Option<String>,
    /// Metric of a `matrix`.
    pub metric: Option<String>,
    /// Heading.
    pub title: Option<String>,
}

/// What a name or a path stands for.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// One scenario.
    Scenario(Box<Scenario>),
    /// Several, with one report.
    Study(Study),
}

/// Scenarios that make one report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Study {
    /// Name, from the file.
    pub name: String,
    /// One sentence or more.
    pub about: String,
    /// Names of built-in scenarios and paths, as [`Scenario::load`] takes them.
    pub scenarios: Vec<String>,
    /// The file's text as it was read.
    pub text: String,
    /// Path of the file, or `built-in:<name>`.
    pub origin: String,
}

/// Reads a scenario or a study. Those of a study are not read, but they are there.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    let (text, origin) = read(name_or_path)?;
    match study::parse(&text, &origin) {
        Some(study) => Ok(Loaded::Study(study?)),
        None => {
            let scenario = Scenario::parse(&text, &origin, overrides)?;
            Ok(Loaded::Scenario(Box::new(scenario)))
        }
    }
}

/// Text of a built-in scenario or study if `name_or_path` names one, otherwise of a file; and where it is from.
fn read(name_or_path: &str) -> Result<(String, String), Diagnostics> {
    if let Some(text) = builtin::find(name_or_path) {
        return Ok((text.to_owned(), format!("built-in:{name_or_path}")));
    }
    let unreadable = |message: String, hint: String| {
        Diagnostics(vec![Diagnostic {
            file: name_or_path.to_owned(),
            line: 0,
            column: 0,
            key: String::new(),
            value: None,
            message,
            hint: Some(hint),
        }])
    };
    let known = || match builtin::nearest_name(name_or_path) {
        Some(near) => format!("did you mean the built-in scenario `{near}`?"),
        None => format!(
            "built-in scenarios: {}",
            builtin::names().collect::<Vec<_>>().join(", ")
        ),
    };
    let bytes = std::fs::read(name_or_path).map_err(|error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => "no such file or built-in scenario".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        unreadable(message, known())
    })?;
    let text = String::from_utf8(bytes).map_err(|_| {
        unreadable(
            "not a text file in UTF-8".to_owned(),
            "a scenario is a TOML file".to_owned(),
        )
    })?;
    Ok((text, name_or_path.to_owned()))
}

/// The keys of `[[flow]]`, each with a value as it would be written in a file.
pub fn flow_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    keys::FLOW.iter().map(|key| (key.name, key.example))
}

impl Scenario {
    /// Reads a built-in scenario if `name_or_path` names one, otherwise a file.
    ///
    /// # Errors
    /// Everything that is wrong with it; that it is a study.
    pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
        let (text, origin) = read(name_or_path)?;
        Scenario::parse(&text, &origin, overrides)
    }

    /// Reads the text of a scenario file; `origin` names it in messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, origin: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
        assemble::scenario(text, origin, overrides)
    }

    /// JSON Schema of the scenario file, for editors.
    pub fn json_schema() -> schemars::Schema {
        schema::json()
    }

    /// The reference page of the scenario file, `docs/scenario.md`.
    pub fn reference() -> String {
        schema::markdown()
    }
}

impl Case {
    /// What the simulator runs.
    pub fn run_spec(&self, seed: u64) -> RunSpec {
        RunSpec {
            seed,
            ..self.spec.clone()
        }
    }

    /// [`Case::params`] as JSON values: numbers stay numbers.
    pub fn json_params(&self) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        self.params
            .iter()
            .map(|(key, _)| key.as_str())
            .zip(&self.json)
    }

    /// Canonical text of everything that determines the result beside seed and engine version. Two spellings of the same
    /// case have the same text.
    pub fn key_text(&self) -> String {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = self.write_key(&mut text);
        text
    }

    fn write_key(&self, out: &mut String) -> std::fmt::Result {
        let s = &self.spec;
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
            write_flow(out, &class.template)?;
        }
        for source in &s.sources {
            writeln!(out, "{source:?}")?;
        }
        for ping in &s.pings {
            writeln!(out, "{ping:?}")?;
        }
        for group in &self.flows {
            writeln!(
                out,
                "group {} {:?} {:?}",
                group.name, group.members, group.recovered_at
            )?;
        }
        for group in &self.traffic {
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
        reverse,
    } = flow;
    writeln!(out, "flow {name} {stack}")?;
    writeln!(out, "  {sender:?}\n  {receiver:?}")?;
    writeln!(
        out,
        "  forward {forward:?} back {back:?} local {local_queue} reverse {reverse} start {start:?} + {start_spread:?} \
         stop {stop:?} {drops:?} {arrival_drops:?}"
    )
}

/// `rate * rtt / (8 * packet)`, packets with their headers.
pub(crate) fn bdp_packets(rate: Rate, rtt: Span, packet: u32) -> f64 {
    rate.as_bits_per_sec() as f64 * rtt.as_secs_f64() / (8.0 * f64::from(packet))
}
