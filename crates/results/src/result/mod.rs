//! The result of a scenario: what `--format json` prints and `result.json` keeps. The names are a
//! contract; more may be added.
//!
//! Values over several seeds are means, with the 95 % Student interval `<name>_ci95` beside them. A
//! value that is undefined in any of the seeds has no mean: it is `null`, and `<name>_undefined`
//! says in how many seeds, if not in all.
//!
//! Wall times are not part of a stored result, which must be the same bytes whenever it is computed
//! again; they are filled in for what the command prints and kept in `timing.json`.

mod case;
mod caveats;
mod estimate;
mod expectation;
pub(crate) mod json;
mod params;
pub mod printed;
mod schema;
mod verdict;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;

use schemars::{JsonSchema, Schema};
use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Deserialize, Serialize, Serializer};

use fullpipe_metrics as metrics;
use fullpipe_metrics::Expression;
use fullpipe_scenario::{Expectation, Scenario};

pub use case::{
    CaseMetrics, CaseResult, Direction, FlowResult, LinkResult, PrecisionResult, Runs, SeedValues,
    StreamResult, TrafficResult,
};
pub use caveats::in_real_time;
pub use estimate::{EachEstimate, Estimate, Estimates};
pub use expectation::{ExpectationResult, evaluate};
pub(crate) use expectation::{Point, judged_at, points};
pub use params::{Params, scalar_text};

pub(crate) use estimate::{student_p, student_t};

/// Result of one scenario on one ground.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunResult {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Ground it ran on.
    pub ground: String,
    /// The system whose TCP made the runs, on ground `linux`: release, ticks, own module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Stacks that fullpipe brought into that system, which has none of that name: their flows
    /// are not the system's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub brought: Vec<String>,
    /// The other host, where the path was not the scenario's but the one to there: its `[path]`
    /// says nothing about what was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Addresses of that run, and what the other host allows; absent where the path was the
    /// scenario's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkResult>,
    /// When it was begun (RFC 3339, UTC), of a run over a network; absent in stored results, which
    /// are the same bytes whenever they are computed again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<String>,
    /// How long that run lasted, seconds; absent like `began`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// Run with what the scenario's `[quick]` sets; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// How far the runs came before they were stopped; absent if all were made. Then `cases` are
    /// those that have runs, and no expectation was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// One entry per point of the matrix, in order.
    pub cases: Vec<CaseResult>,
    /// One entry per expectation and case it applies to.
    pub expectations: Vec<ExpectationResult>,
}

impl RunResult {
    /// Puts the cases of a scenario together and holds the expectations against them, for which
    /// they keep the values of the seeds that [`by_seed`] asks for.
    pub(crate) fn new(scenario: &Scenario, ground: &str, mut cases: Vec<CaseResult>) -> RunResult {
        cases.iter_mut().for_each(|case| case.made_on(ground));
        let expectations = evaluate(&scenario.expectations, &cases);
        for case in &mut cases {
            case.by_seed = SeedValues::default();
        }
        RunResult::of(scenario, ground, cases, expectations)
    }

    /// The cases of a scenario and what the expectations said of them.
    pub(crate) fn of(
        scenario: &Scenario,
        ground: &str,
        cases: Vec<CaseResult>,
        expectations: Vec<ExpectationResult>,
    ) -> RunResult {
        RunResult {
            fullpipe: VERSION.to_owned(),
            scenario: scenario.name.clone(),
            ground: ground.to_owned(),
            kernel: None,
            brought: Vec::new(),
            peer: None,
            network: None,
            began: None,
            duration_s: None,
            quick: scenario.quick,
            interrupted: None,
            cases,
            expectations,
        }
    }

    /// True if all runs were made and every expectation passed.
    pub fn passed(&self) -> bool {
        self.interrupted.is_none() && self.expectations.iter().all(|e| e.pass)
    }

    /// The JSON text, one object over several lines, with a line break at the end.
    pub fn to_json(&self) -> String {
        printed::pretty(self)
    }

    /// Writes the same text, which of a hundred thousand cases nobody wants in memory.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        printed::write_pretty(out, self)?;
        out.write_all(b"\n")
    }

    /// Writes what a store keeps: the same without wall times. The cases are those that `case`
    /// makes, one by one.
    pub(crate) fn write_stored(
        &self,
        case: &dyn Fn(usize) -> io::Result<CaseResult>,
        out: &mut dyn io::Write,
    ) -> io::Result<()> {
        let of = EachCase(self.cases.len(), case);
        serde_json::to_writer_pretty(&mut *out, &Stored::new(self, of))?;
        out.write_all(b"\n")
    }

    /// JSON Schema of the object, for `fullpipe schema result`.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(RunResult)
    }

    /// The place of each case among the cases, by its parameters.
    pub fn places(&self) -> HashMap<&Params, usize> {
        let places = self.cases.iter().enumerate().rev();
        places.map(|(i, case)| (&case.params, i)).collect()
    }

    /// One object per case, each with what it needs to be read alone.
    pub fn lines(&self) -> impl Iterator<Item = CaseLine<'_>> {
        let mut judged: HashMap<&Params, Vec<&ExpectationResult>> = HashMap::new();
        for e in &self.expectations {
            judged.entry(&e.params).or_default().push(e);
        }
        self.cases.iter().map(move |case| {
            let expectations = judged.get(&case.params).cloned();
            CaseLine {
                fullpipe: &self.fullpipe,
                scenario: &self.scenario,
                ground: &self.ground,
                peer: self.peer.as_deref(),
                network: self.network.as_ref(),
                began: self.began.as_deref(),
                duration_s: self.duration_s,
                interrupted: self.interrupted,
                case,
                expectations: expectations.unwrap_or_default(),
            }
        })
    }

    /// The same without wall times: what a store keeps.
    pub fn without_times(&self) -> RunResult {
        let mut stored = self.clone();
        (stored.began, stored.duration_s) = (None, None);
        for case in &mut stored.cases {
            (case.wall_s, case.packets_per_s) = (None, None);
            case.flows
                .iter_mut()
                .for_each(FlowResult::forget_the_network);
        }
        stored
    }
}

/// A [`RunResult`] whose cases are made while it is written: the same members in the same order.
#[derive(Serialize)]
struct Stored<'a> {
    fullpipe: &'a str,
    scenario: &'a str,
    ground: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    brought: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a NetworkResult>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    quick: bool,
    cases: EachCase<'a>,
    expectations: &'a [ExpectationResult],
}

impl<'a> Stored<'a> {
    fn new(result: &'a RunResult, cases: EachCase<'a>) -> Stored<'a> {
        // Every field, so that a new one is not forgotten; when it was begun is not kept, and only
        // what is finished is.
        let RunResult {
            fullpipe,
            scenario,
            ground,
            kernel,
            brought,
            peer,
            network,
            began: _,
            duration_s: _,
            quick,
            interrupted: _,
            cases: _,
            expectations,
        } = result;
        Stored {
            fullpipe,
            scenario,
            ground,
            kernel: kernel.as_deref(),
            brought,
            peer: peer.as_deref(),
            network: network.as_ref(),
            quick: *quick,
            cases,
            expectations,
        }
    }
}

/// Number of cases, and what makes them.
struct EachCase<'a>(usize, &'a dyn Fn(usize) -> io::Result<CaseResult>);

impl Serialize for EachCase<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut all = s.serialize_seq(Some(self.0))?;
        for index in 0..self.0 {
            let case = CaseResult {
                wall_s: None,
                packets_per_s: None,
                ..(self.1)(index).map_err(S::Error::custom)?
            };
            all.serialize_element(&case)?;
        }
        all.end()
    }
}

/// Runs that were stopped before all of them were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Interrupted {
    /// Runs that are finished.
    pub done: usize,
    /// All runs.
    pub total: usize,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} of {} runs", self.done, self.total)
    }
}

/// A run over a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Network")]
pub struct NetworkResult {
    /// Address and port of this host.
    pub near: String,
    /// Address and port of the other host.
    pub far: String,
    /// Limits that the other host told, of rate and amount.
    pub server_limits: ServerLimits,
}

/// What a server allows in a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerLimits {
    /// In a direction, with the headers of IP and UDP, Mbit/s (`serve --max-rate`); `null`: any.
    pub max_rate_mbps: Option<f64>,
    /// In both directions together, counted likewise (`serve --max-bytes`); `null`: any.
    pub max_bytes: Option<u64>,
}

impl From<fullpipe_run::Network> for NetworkResult {
    fn from(network: fullpipe_run::Network) -> Self {
        Self {
            near: network.near.to_string(),
            far: network.far.to_string(),
            server_limits: ServerLimits {
                max_rate_mbps: network.max_rate.map(fullpipe_units::Rate::as_mbps),
                max_bytes: network.max_bytes.map(|bytes| bytes.get()),
            },
        }
    }
}

/// A case with the names of version, scenario and ground: a line of `--format ndjson`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaseLine<'a> {
    /// Version of the program.
    pub fullpipe: &'a str,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Ground it ran on.
    pub ground: &'a str,
    /// The other host of a path that was not the scenario's ([`RunResult::peer`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<&'a str>,
    /// Its addresses, and what that host allows ([`RunResult::network`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<&'a NetworkResult>,
    /// When the run over a network was begun ([`RunResult::began`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began: Option<&'a str>,
    /// How long it lasted, seconds ([`RunResult::duration_s`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How far the runs came before they were stopped ([`RunResult::interrupted`]); absent from the
    /// lines of cases that were complete by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Interrupted>,
    /// The case.
    #[serde(flatten)]
    pub case: &'a CaseResult,
    /// The expectations that apply to it.
    pub expectations: Vec<&'a ExpectationResult>,
}

impl CaseLine<'_> {
    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(CaseLine<'_>)
    }
}

/// The metrics of which expectations need the values of single seeds.
pub(crate) fn by_seed(scenario: &Scenario) -> BTreeSet<String> {
    let of_seeds = |e: &&Expectation| {
        e.holds_for.asks_seeds() || Expression::is_one(&e.metric) || !e.pairs.is_empty()
    };
    let mut names = BTreeSet::new();
    for e in scenario.expectations.iter().filter(of_seeds) {
        match Expression::parse(&e.metric) {
            Ok(x) if metrics::scope_of(&e.metric).is_none() => {
                names.extend(x.metrics().into_iter().map(str::to_owned));
            }
            _ => {
                names.insert(e.metric.clone());
            }
        }
    }
    names
}

/// The ground on which chance has no other source than the seed.
const SIMULATOR: &str = "sim";

/// The version that is written into results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_names_every_metric() {
        let text = serde_json::to_string(&RunResult::json_schema()).unwrap();
        for name in metrics::names() {
            let last = name.rsplit('.').next().unwrap();
            assert!(text.contains(&format!("\"{last}\"")), "{name}");
        }
        for key in [
            "fullpipe",
            "scenario",
            "ground",
            "cases",
            "params",
            "seeds",
            "flows",
            "links",
            "metrics",
            "simulated_s",
            "wall_s",
            "packets_per_s",
            "expectations",
            "observed",
            "bound",
            "pass",
        ] {
            assert!(text.contains(&format!("\"{key}\"")), "{key}");
        }
    }
}
