//! What the page is given. `web/src/generated/data.ts` is made of these types; a test compares.
//!
//! Numbers that a reader may check against `result.json` are 64-bit columns; curves are 32-bit,
//! packed per case by [`super::pack`].

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde::Serialize;

/// Version of this layout.
pub const VERSION: u32 = 4;

/// Everything the page shows.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Page {
    /// [`VERSION`].
    pub version: u32,
    /// Name of the scenario or the study.
    pub title: String,
    /// Its description, from the file.
    pub about: String,
    /// Version of the program that wrote the page.
    pub fullpipe: String,
    /// The table of metrics, as far as it has values here.
    pub metrics: Vec<Metric>,
    /// One scenario, or those of a study.
    pub scenarios: Vec<ScenarioPart>,
}

/// A metric's entry of the table.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Metric {
    /// Name in `result.json`.
    pub name: String,
    /// In words, without the unit; an expression as the scenario has it.
    pub title: String,
    /// In words, with the unit where they do not say what is counted.
    pub heading: String,
    /// `flow`, `link`, `traffic` or `case`.
    #[schemars(extend("enum" = ["flow", "link", "traffic", "case"]))]
    pub scope: &'static str,
    /// Unit; `1` for a ratio.
    pub unit: &'static str,
    /// A number of things.
    pub count: bool,
    /// Of the first flow against the second: another sign when they change places.
    pub signed: bool,
    /// `higher`, `lower` or `neither`.
    #[schemars(extend("enum" = ["higher", "lower", "neither"]))]
    pub better: &'static str,
    /// Meaning, one line.
    pub about: &'static str,
    /// Definition in words and symbols.
    pub formula: &'static str,
    /// Document that defines it.
    pub source: &'static str,
}

/// A scenario's result.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Scenario")]
pub struct ScenarioPart {
    /// Name.
    pub name: String,
    /// Its description, from the file.
    pub about: String,
    /// Path of the file, name of the built-in scenario, or `standard input`.
    pub origin: String,
    /// The file.
    pub text: String,
    /// SHA-256 of the file.
    pub text_sha256: String,
    /// Ground.
    pub ground: String,
    /// Version of the program that ran it.
    pub fullpipe: String,
    /// Fingerprint of the engine's sources.
    pub engine: String,
    /// Machine, in words.
    pub machine: String,
    /// Seeds of every case.
    pub seeds: Vec<u64>,
    /// Matrix keys that vary.
    pub axes: Vec<Axis>,
    /// Matrix keys that do not, with their value.
    pub fixed: Vec<(String, String)>,
    /// The cases, in the order of the result.
    pub cases: Vec<CasePart>,
    /// Values, one table per scope.
    pub tables: Vec<Table>,
    /// Metrics that stand side by side where the cases have one axis or none, as far as there are
    /// values.
    pub side_by_side: Vec<String>,
    /// The competitors in order; absent where nothing competes, or nobody says which value of the
    /// figure's expression is the better one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranking: Option<Ranking>,
    /// Bounds and what was observed.
    pub expectations: Vec<Expected>,
    /// In which wrong worlds they fail, if somebody has looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub falsification: Option<Falsified>,
    /// Figures asked for in the file.
    pub figures: Vec<Figure>,
    /// Lists of columns that [`Curves::layout`] points into.
    pub layouts: Vec<Vec<Curve>>,
    /// What the means leave out at the start of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<String>,
    /// What is to be said where means are less sure than was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// What is to be said where a real path or its hosts were not what they claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrue: Option<String>,
    /// How true path and hosts of a real run were, the worst of all cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
}

/// In which wrong worlds the expectations fail.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Falsified {
    /// Each expectation was followed only up to the first world in which it fails.
    pub first_failure: bool,
    /// In the order of the file.
    pub expectations: Vec<Teeth>,
    /// Worlds of the file, then those made by the program.
    pub worlds: Vec<World>,
}

/// An expectation among the worlds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Teeth {
    /// Name of the expectation.
    pub name: String,
    /// Line in the file.
    pub line: usize,
    /// Worlds in which it fails, by number.
    pub caught: Vec<usize>,
    /// Worlds in which its value is another one and it passes, by number.
    pub missed: Vec<usize>,
    /// Fails in no world.
    pub toothless: bool,
    /// Fails in generated worlds of one kind only, or only where its metric is undefined.
    pub weak: bool,
    /// Why the file says that this is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
}

/// A world that differs from the scenario.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct World {
    /// Description: the change that makes it wrong.
    pub about: String,
    /// Line of its `[[negative]]`; absent: made by the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Keys that differ, as `key=value`.
    pub set: Vec<String>,
    /// `caught`, `missed`, `dead`, `inert` (dead, as the file says) or `untried`.
    #[schemars(extend("enum" = ["caught", "missed", "dead", "inert", "untried"]))]
    pub effect: &'static str,
    /// Expectations that fail in it.
    pub caught_by: usize,
}

/// A key of the matrix with its values in the order of the file.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Axis {
    /// Key.
    pub key: String,
    /// As much of the key as tells it from the others.
    pub label: String,
    /// Key in words, `RTT`.
    pub heading: String,
    /// Values as text.
    pub values: Vec<String>,
    /// The same for people: numbers stand apart from their units.
    pub texts: Vec<String>,
    /// The values are stacks.
    pub of_stacks: bool,
    /// Values stand for themselves, without the heading: stacks, and those of an axis that has a
    /// name of its own.
    pub plain: bool,
    /// The values as numbers of one unit; absent where one of them is a word or has another unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<f64>>,
    /// Unit of `numbers`; `1` for plain numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Its values compete: stacks, settings that name one, or cases with a name. True of one axis.
    pub competes: bool,
    /// The flow whose stack or key it sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The traffic whose stack or key it sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<String>,
}

/// The competitors in order, over cases that all of them have.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Ranking {
    /// Metric that orders them.
    pub metric: String,
    /// Of which flow or traffic; absent: of the one that competes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// `lower`: the smallest mean is first.
    #[schemars(extend("enum" = ["higher", "lower"]))]
    pub better: &'static str,
    /// Cases that the means are over: all that are ranked have a value there. In a matrix of pairs
    /// a case counts for either side.
    pub cases: usize,
    /// Cases of a competitor.
    pub of_cases: usize,
    /// Metrics beside it.
    pub beside: Vec<String>,
    /// The best first, those without a rank last.
    pub rows: Vec<Rank>,
}

/// A competitor in the ranking.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Rank {
    /// Index into the values of the axis that competes.
    pub at: usize,
    /// Cases in which it has a value, of [`Ranking::of_cases`].
    pub cases: usize,
    /// Mean over the cases; `null` without a rank.
    pub mean: Option<f64>,
    /// Half the 95 % interval of that mean, from the means of the seeds; `null` where fewer
    /// than two seeds have a value in all of them.
    pub half: Option<f64>,
    /// Smallest of the cases.
    pub least: Option<f64>,
    /// Largest of the cases.
    pub most: Option<f64>,
    /// Means of [`Ranking::beside`] over the same cases; `null` where a case has none.
    pub beside: Vec<Option<f64>>,
}

/// A case.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "Case")]
pub struct CasePart {
    /// Parameters that tell it from the others.
    pub label: String,
    /// Index of its value on every axis.
    pub at: Vec<usize>,
    /// Seeds it ran with.
    pub seeds: usize,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Time at the start that means do not count, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_s: Option<f64>,
    /// Data packets that reached a receiver, all seeds.
    pub delivered_packets: u64,
    /// Curves of the first seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// Short flows, by class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completions: Vec<Completions>,
}

/// Estimates of one scope: one row per case and name.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Table {
    /// `flow`, `link`, `traffic` or `case`.
    #[schemars(extend("enum" = ["flow", "link", "traffic", "case"]))]
    pub scope: &'static str,
    /// Case of every row.
    pub case: Vec<usize>,
    /// Name of flow, link or traffic; empty for the case.
    pub name: Vec<String>,
    /// Stack of a flow, kind of a traffic; empty otherwise.
    pub kind: Vec<String>,
    /// Columns.
    pub columns: Vec<Estimates>,
}

/// A metric over the rows of a table; columns are base64 of little-endian `f64`, NaN where
/// undefined.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[schemars(rename = "EstimateColumn")]
pub struct Estimates {
    /// Metric.
    pub metric: String,
    /// Means over seeds.
    pub mean: String,
    /// Lower ends of the 95 % intervals; absent with one seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<String>,
    /// Upper ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<String>,
}

/// An expectation held against a case.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Expected {
    /// Name.
    pub name: String,
    /// Case.
    pub case: usize,
    /// Metric.
    pub metric: String,
    /// Flow or link it is taken from.
    pub of: Option<String>,
    /// Observed value.
    pub observed: Option<f64>,
    /// 95 % interval of the observed value; `null` with one seed.
    pub ci95: Option<[f64; 2]>,
    /// Accepted values; `null` where open.
    pub bound: [Option<f64>; 2],
    /// False if the bound is missed.
    pub pass: bool,
    /// An end of the bound lies in the interval: neither shown nor contradicted.
    pub unclear: bool,
    /// Document or reason of the bound, as the file says it.
    pub source: String,
}

/// A `[[report]]` of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, serde::Deserialize)]
#[serde(default)]
#[schemars(rename = "FigureAsk")]
pub struct Figure {
    /// Kind.
    pub figure: String,
    /// Flow, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Matrix key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// Matrix key or metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// Metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Curves over time on one grid: row `i` stands for `[i, i + 1) * step`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Curves {
    /// Width of a row, seconds.
    pub step: f64,
    /// Rows.
    pub rows: usize,
    /// Index into [`ScenarioPart::layouts`].
    pub layout: usize,
    /// Columns one after the other: `f32`, bytes of one significance together, deflated, base64.
    pub data: String,
}

/// A column of [`Curves`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
pub struct Curve {
    /// `cwnd`, `ssthresh`, `rtt`, `goodput`, `queue`, `ping`, `rate`.
    #[schemars(extend("enum" = ["cwnd", "ssthresh", "rtt", "goodput", "queue", "ping", "rate"]))]
    pub what: &'static str,
    /// Flow, link or traffic.
    pub of: String,
    /// `low`, `high`, `last` or `mean` of the row.
    #[schemars(extend("enum" = ["low", "high", "last", "mean"]))]
    pub stat: &'static str,
    /// Connections added up.
    pub streams: usize,
}

/// Short flows of one class in one case, all seeds.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Completions {
    /// Name of the class.
    pub name: String,
    /// Flows that finished.
    pub finished: u64,
    /// Flows that did not.
    pub unfinished: u64,
    /// Completion times at equal steps of the distribution, first and last included: base64 of
    /// `f32`, seconds.
    pub quantiles: String,
    /// Losses of first transmissions in the initial window, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
}

/// How losses inside the first segments of a transfer depend on one another.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Losses {
    /// Part of transfers that lost segment `i`, by `i`.
    pub each: Vec<Option<f64>>,
    /// Part of transfers that lost segment `i + 1` among those that lost segment `i`.
    pub next: Vec<Option<f64>>,
    /// Transfers long enough to have segment `i`.
    pub transfers: Vec<u64>,
}

/// JSON Schema of [`Page`] as it is written, from which the types of `web/` are made.
pub fn json_schema() -> Schema {
    let settings = SchemaSettings::default().for_serialize();
    settings.into_generator().into_root_schema_for::<Page>()
}
