//! What the worlds say about the expectations.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_run::Ground;
use fullpipe_scenario::{Against, Case, HoldsFor};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::{Depth, Trial, World};
use crate::result::{CaseResult, Estimate, Params, Point, json, judged_at, points, printed};
use crate::run::seeds;

/// What came of holding a scenario's expectations against wrong worlds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Falsification {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// SHA-256 of its file.
    #[serde(default)]
    pub scenario_sha256: String,
    /// Ground it ran on.
    pub ground: String,
    /// Run with what the scenario's `[quick]` sets; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Each expectation was followed only up to the first world in which it fails, and not every
    /// case was run; absent if every world was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub first_failure: bool,
    /// Runs made now.
    pub made: usize,
    /// Runs taken over from an earlier time.
    pub reused: usize,
    /// In the order of the file.
    pub expectations: Vec<ExpectationTeeth>,
    /// Worlds of the file, then those made by the program.
    pub worlds: Vec<WorldResult>,
    /// Lines of the expectations that `--quick` or `--set` leaves out; absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<usize>,
    /// Cases whose seeds all gave the same numbers: their intervals say nothing.
    pub same_for_all_seeds: Vec<Params>,
}

/// In which worlds an expectation fails.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Teeth")]
pub struct ExpectationTeeth {
    /// Name of the expectation.
    pub name: String,
    /// Line in the file.
    pub line: usize,
    /// Metric.
    pub metric: String,
    /// The values are ratios, to the same metric of another case; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ratio: bool,
    /// The values are differences, from the same metric of another case; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub difference: bool,
    /// Smallest and largest accepted value; `null` where open.
    #[serde(
        default = "anything",
        serialize_with = "json::open_bound",
        deserialize_with = "json::closed_bound"
    )]
    #[schemars(with = "[Option<f64>; 2]")]
    pub bound: [f64; 2],
    /// Smallest and largest value in the cases as they are; absent if none is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<[f64; 2]>,
    /// Smallest and largest value in the wrong worlds in which it passes; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<[f64; 2]>,
    /// Where it passes with a value beyond those as it is and the least is missing until it fails;
    /// if all such values lie on a side on which it cannot fail, the farthest of them. Absent if
    /// there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
    /// Worlds with a value outside of what is accepted, in which it passes only since the 95 %
    /// interval of that value reaches in; absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub let_off: Vec<String>,
    /// The end of a bound that it passes with as it is, and fails with in worlds in which it passes
    /// now. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tighter: Option<Tighter>,
    /// Passes in the scenario as it is, in every case.
    pub passes: bool,
    /// In some case it passes as it is only since its interval reaches into the bound. Absent if
    /// not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unclear: bool,
    /// Passes in some case as it is, and fails there with other seeds: that it fails in a wrong
    /// world may be chance. Absent if not, or if not every world was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub seed_decides: bool,
    /// Smallest and largest value with other seeds, in the cases in which they matter; absent if
    /// there is none, or if not every world was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_seeds: Option<[f64; 2]>,
    /// Worlds in which it fails in a case in which it passes as it is.
    pub caught: Vec<String>,
    /// Worlds in which the value is another one, and it passes all the same.
    pub missed: Vec<String>,
    /// Worlds that change its cases and in which it was judged.
    #[serde(default)]
    pub tried: usize,
    /// Fails in no world.
    pub toothless: bool,
    /// Fails in generated worlds of a single kind only, and in no `[[negative]]` of the file, or
    /// only where its metric is undefined ([`ExpectationTeeth::fails_only_undefined`]): little
    /// evidence. Absent if not, or if not every world was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weak: bool,
    /// No value that was seen fails: where it fails, its metric is undefined. Absent if not, or if
    /// not every world was looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_only_undefined: bool,
    /// The file says why that is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
}

/// A value of an expectation in a wrong world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nearest {
    /// Description of the world.
    pub world: String,
    /// The value there.
    pub value: f64,
}

/// A bound that leaves wrong worlds out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tighter {
    /// `at_least` or `at_most`.
    pub end: String,
    /// Between these it holds as it is, and fails in a world: in all of `worlds` next to the value
    /// as it is.
    pub between: [f64; 2],
    /// Worlds that it leaves out, the first to fail first.
    pub worlds: Vec<String>,
    /// Of each of `worlds`, in their order: the end of `between` up to which it fails there.
    #[serde(default)]
    pub ends: Vec<f64>,
}

impl Tighter {
    /// Between these it holds as it is, and fails in this one of `worlds`.
    pub fn leaving_out(&self, world: &str) -> [f64; 2] {
        let [from, to] = self.between;
        let place = self.worlds.iter().position(|other| other == world);
        match place.and_then(|place| self.ends.get(place)) {
            None => self.between,
            Some(end) if self.end == "at_least" => [*end, to],
            Some(end) => [from, *end],
        }
    }
}

/// A world, and the expectations that notice it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "World")]
pub struct WorldResult {
    /// Description: the change that makes it wrong.
    pub about: String,
    /// Line of its `[[negative]]`; absent: made by the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Keys that differ, as `key=value`.
    pub set: Vec<String>,
    /// Why no number changes in it, as the file says: it has to be dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inert: Option<String>,
    /// Caught, missed, dead or not judged.
    pub effect: WorldEffect,
    /// Expectations that fail in it.
    pub caught_by: Vec<String>,
    /// Expectations that are invalid in it, and were not held against it; absent if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// An expectation that is invalid in a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Name of the expectation.
    pub name: String,
    /// Line in the file.
    pub line: usize,
    /// The error with which the expectation is refused in that world.
    pub why: String,
}

/// What a world does to the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorldEffect {
    /// An expectation fails.
    Caught,
    /// Numbers change, and every expectation passes in every case that changes.
    Missed,
    /// No metric of any case changes: the knob is dead. Of a flow or a traffic that is switched
    /// off: none of any other flow or traffic, if there is one, and none that is expected; but for
    /// a `ping`, which only measures.
    Dead,
    /// Not judged: no expectation fails as far as it was looked at, and not all of it was, since
    /// with `first_failure` an expectation that has failed elsewhere is held against no more
    /// worlds. An `inert` world that changes no case is not judged either.
    Untried,
}

impl Falsification {
    /// Expectations that fail nowhere, and whose file does not say why.
    pub fn toothless(&self) -> impl Iterator<Item = &ExpectationTeeth> {
        let all = self.expectations.iter();
        all.filter(|e| e.toothless && e.excuse.is_none())
    }

    /// Expectations that can fail, but only in generated worlds of one kind, or only where their
    /// metric is undefined.
    pub fn weak(&self) -> impl Iterator<Item = &ExpectationTeeth> {
        self.expectations.iter().filter(|e| e.weak)
    }

    /// Worlds of the file that are not what it says: that no expectation catches, or, where no
    /// number is to change, that change one.
    pub fn uncaught(&self) -> impl Iterator<Item = &WorldResult> {
        let all = self.worlds.iter();
        let wanted = |w: &WorldResult| match w.inert {
            None => WorldEffect::Caught,
            Some(_) => WorldEffect::Dead,
        };
        all.filter(move |w| w.line.is_some() && w.effect != wanted(w))
    }

    /// Worlds that change no number, of which no file says why.
    pub fn dead(&self) -> impl Iterator<Item = &WorldResult> {
        let all = self.worlds.iter();
        all.filter(|w| w.effect == WorldEffect::Dead && w.inert.is_none())
    }

    /// Flows and classes of short flows of which no expectation notices another stack, though
    /// numbers change with it, as `flow.main`, and how many worlds replace it. Nothing is said of
    /// what was not looked at.
    pub fn unnoticed(&self) -> BTreeMap<&str, usize> {
        let mut effects: BTreeMap<&str, Vec<WorldEffect>> = BTreeMap::new();
        for world in self.worlds.iter().filter(|w| w.line.is_none()) {
            let tables = world.set.iter().map(|key| key.split_once(".stack="));
            let tables: BTreeSet<Option<&str>> = tables.map(|t| Some(t?.0)).collect();
            if let Some(Some(table)) = tables.first().filter(|_| tables.len() == 1) {
                effects.entry(table).or_default().push(world.effect);
            }
        }
        let nobody = |effects: &Vec<WorldEffect>| {
            let no = |effect: &WorldEffect| !effects.contains(effect);
            no(&WorldEffect::Caught) && no(&WorldEffect::Untried)
        };
        effects.retain(|_, effects| nobody(effects));
        let missed = |effects: Vec<WorldEffect>| {
            let missed = effects.iter().filter(|e| **e == WorldEffect::Missed);
            missed.count()
        };
        let counts = effects.into_iter().map(|(table, all)| (table, missed(all)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// True if every expectation can fail, and every world that the file names is as it says.
    pub fn passed(&self) -> bool {
        self.toothless().next().is_none() && self.uncaught().next().is_none()
    }

    /// The JSON text, with a line break at the end.
    pub fn to_json(&self) -> String {
        printed::pretty(self)
    }

    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Falsification)
    }
}

/// Holds the expectations against the worlds. `cases[0]` is the scenario as it is, `cases[i + 1]`
/// are its cases in world `i`, those that were run; `again` are the scenario's with other seeds.
pub(super) fn judge(
    trial: &Trial,
    cases: &[Vec<Option<CaseResult>>],
    again: &[Option<CaseResult>],
    depth: Depth,
    ground: &dyn Ground,
) -> Falsification {
    let scenario = &trial.scenario;
    let (real, others) = cases.split_first().expect("the scenario itself");
    let mut results: Vec<WorldResult> = Vec::new();
    for (i, (world, other)) in trial.worlds.iter().zip(others).enumerate() {
        results.push(WorldResult {
            about: world.about.clone(),
            line: world.line,
            set: world.assignments(),
            inert: world.inert.clone(),
            effect: effect(
                (real, other),
                (&trial.places[0], &trial.places[i + 1]),
                world,
            ),
            caught_by: Vec::new(),
            left_out: trial.left_out[i].clone(),
        });
    }
    let mut expectations = Vec::new();
    // By world: whether an expectation was not held against a case that could fail it.
    let mut unjudged = vec![false; results.len()];
    for e in &scenario.expectations {
        let observed = |point: &Point, cases: &[Option<CaseResult>]| {
            let judged = judged_at(e, *point, |i| cases.get(i)?.as_ref())?;
            Some((judged.observed, judged.pass))
        };
        // What a bound has to leave out for the expectation to fail: the interval, or the value.
        let decisive = |point: &Point, cases: &[Option<CaseResult>]| {
            let judged = judged_at(e, *point, |i| cases.get(i)?.as_ref())?;
            let interval = judged
                .observed_ci95
                .filter(|_| e.holds_for == HoldsFor::Overlap);
            interval.or(judged.observed.map(|value| [value; 2]))
        };
        let points = points(e);
        let here: Vec<_> = points.iter().map(|point| observed(point, real)).collect();
        let (mut caught, mut missed, mut tried) = (Vec::new(), Vec::new(), 0);
        let mut caught_in: Vec<&World> = Vec::new();
        let mut a_value_fails = false;
        let (mut values, mut elsewhere) = (Vec::new(), Vec::new());
        let mut let_off = Vec::new();
        let mut passing: Vec<(String, [f64; 2])> = Vec::new();
        // What is missing until it fails, and the world and value of it.
        let mut nearest: Option<((bool, f64), Nearest)> = None;
        values.extend(here.iter().flatten().filter_map(|(value, _)| *value));
        for (w, (world, other)) in results.iter_mut().zip(others).enumerate() {
            if !trial.applies(e, w) {
                continue;
            }
            let place = |i: usize| (trial.places[0][i], trial.places[w + 1][i]);
            let (mut looked, mut moved, mut failed) = (false, false, false);
            let (mut seen, mut intervals) = (Vec::new(), Vec::new());
            for (point, here) in points.iter().zip(&here) {
                let same = |i: usize| place(i).0 == place(i).1;
                if same(point.0) && point.1.is_none_or(same) {
                    continue;
                }
                let there = observed(point, other);
                let (Some(here), Some(there)) = (here, there) else {
                    // What fails as it is notices nothing.
                    unjudged[w] |= match here {
                        Some((_, pass)) => *pass && !were_run(point, other),
                        None => !were_run(point, real),
                    };
                    continue;
                };
                // That what is measured is gone is no failure.
                if there.0.is_none() && trial.is_gone(e, w) {
                    continue;
                }
                looked = true;
                seen.extend(there.0);
                intervals.extend(decisive(point, other));
                moved |= *here != there;
                failed |= here.1 && !there.1;
                a_value_fails |= here.1 && !there.1 && there.0.is_some();
            }
            tried += usize::from(looked);
            if looked && !failed {
                elsewhere.extend(&seen);
            }
            if failed {
                caught.push(world.about.clone());
                caught_in.push(&trial.worlds[w]);
                world.caught_by.push(e.name.clone());
                world.effect = WorldEffect::Caught;
            } else if moved {
                missed.push(world.about.clone());
                // What was switched off has a part in what somebody asks about, such as a queue.
                if world.effect == WorldEffect::Dead {
                    world.effect = WorldEffect::Missed;
                }
                let outside = |value: &f64| *value < e.bound.0 || *value > e.bound.1;
                if e.against != Against::Agreement && seen.iter().any(outside) {
                    let_off.push(world.about.clone());
                }
                let named = intervals.into_iter().map(|i| (world.about.clone(), i));
                passing.extend(named);
                let beyond = seen.iter().filter_map(|&value| {
                    let missing = missing(value, range(&values)?, e.bound)?;
                    Some((missing, value))
                });
                for (missing, value) in beyond {
                    if nearest.as_ref().is_none_or(|(least, _)| missing < *least) {
                        let world = world.about.clone();
                        nearest = Some((missing, Nearest { world, value }));
                    }
                }
            }
        }
        let beside = points.iter().map(|point| observed(point, again));
        let beside: Vec<_> = here.iter().zip(beside).collect();
        let luck = |(here, there): &(&Option<(_, bool)>, Option<(_, bool)>)| {
            here.is_some_and(|(_, pass)| pass) && there.is_some_and(|(_, pass)| !pass)
        };
        let differ = beside.iter().filter(|(here, there)| **here != *there);
        let seen_beside: Vec<f64> = differ.filter_map(|(_, there)| (*there)?.0).collect();
        let known: Vec<bool> = here.iter().flatten().map(|(_, pass)| *pass).collect();
        let unclear = |point: &Point| {
            judged_at(e, *point, |i| real.get(i)?.as_ref()).is_some_and(|judged| judged.unclear)
        };
        let fails_only_undefined = !caught.is_empty() && !a_value_fails;
        expectations.push(ExpectationTeeth {
            name: e.name.clone(),
            line: e.line,
            metric: e.metric.clone(),
            ratio: e.against == Against::Ratio,
            difference: e.against == Against::Agreement,
            bound: [e.bound.0, e.bound.1],
            here: range(&values),
            elsewhere: range(&elsewhere),
            nearest: nearest.map(|(_, nearest)| nearest),
            tighter: match e.against {
                Against::Agreement => None,
                _ => tighter(range(&values), &passing),
            },
            let_off,
            unclear: points.iter().any(unclear),
            passes: known.iter().all(|pass| *pass),
            toothless: caught.is_empty() && known.contains(&true),
            seed_decides: beside.iter().any(luck),
            other_seeds: range(&seen_beside),
            caught,
            missed,
            tried,
            weak: depth == Depth::EveryWorld && (fails_only_undefined || one_kind(&caught_in)),
            fails_only_undefined: depth == Depth::EveryWorld && fails_only_undefined,
            excuse: e.toothless.clone(),
        });
    }
    for (world, unjudged) in results.iter_mut().zip(unjudged) {
        if unjudged && world.effect == WorldEffect::Missed && world.inert.is_none() {
            world.effect = WorldEffect::Untried;
        }
    }
    let repeats = |(i, case): &(usize, &Case)| {
        let single = seeds(scenario, case, ground).len() == 1 && scenario.seeds.len() > 1;
        let repeats = |case: &CaseResult| case.seeds.len() > 1 && case.seeds_repeat;
        single || real[*i].as_ref().is_some_and(repeats)
    };
    let same = scenario.cases.iter().enumerate().filter(repeats);
    Falsification {
        expectations,
        worlds: results,
        same_for_all_seeds: same.map(|(_, case)| Params::of(case)).collect(),
        ..Falsification::default()
    }
}

/// How a value beyond those as it is compares with others of its kind, the nearest to failing
/// first: by what it lacks of the end of the bound on its side, and where there is none by its
/// distance. `None` for a value among them.
fn missing(value: f64, [low, high]: [f64; 2], bound: (f64, f64)) -> Option<(bool, f64)> {
    let (off, room) = match () {
        () if value < low => (low - value, value - bound.0),
        () if value > high => (value - high, bound.1 - value),
        () => return None,
    };
    Some(match room.is_finite() {
        true => (false, room),
        false => (true, -off),
    })
}

/// The end that a bound may have between the values as they are and what a world has to be left
/// out with, on the side with more room: an upper bound may need a lower one beside it.
fn tighter(here: Option<[f64; 2]>, passing: &[(String, [f64; 2])]) -> Option<Tighter> {
    let [low, high] = here?;
    let side = |end: &str, of: &dyn Fn(&[f64; 2]) -> (f64, f64)| {
        let all = passing.iter().map(|(world, i)| (of(i), world));
        let mut beyond: Vec<_> = all.filter(|((room, _), _)| *room > 0.0).collect();
        beyond.sort_by(|(a, _), (b, _)| b.0.total_cmp(&a.0));
        let (room, farthest) = beyond.first()?.0;
        let (mut worlds, mut ends) = (Vec::<String>::new(), Vec::new());
        for ((_, end), world) in &beyond {
            if !worlds.contains(world) {
                worlds.push((*world).clone());
                ends.push(*end);
            }
        }
        let between = match end {
            "at_least" => [farthest, low],
            _ => [high, farthest],
        };
        let tighter = Tighter {
            end: end.to_owned(),
            between,
            worlds,
            ends,
        };
        Some((room, tighter))
    };
    let below = side("at_least", &|[_, to]| (low - to, *to));
    let above = side("at_most", &|[from, _]| (from - high, *from));
    let both = [below, above].into_iter().flatten();
    let best = both.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, tighter)| tighter)
}

/// True if these are generated worlds, all of one kind.
fn one_kind(worlds: &[&World]) -> bool {
    let kinds: BTreeSet<&str> = worlds.iter().map(|world| world.kind()).collect();
    kinds.len() == 1 && worlds.iter().all(|world| world.line.is_none())
}

/// Smallest and largest value.
fn range(values: &[f64]) -> Option<[f64; 2]> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some([low, high])
}

fn anything() -> [f64; 2] {
    [f64::NEG_INFINITY, f64::INFINITY]
}

/// What a world does to the numbers, before any expectation is asked; one that is said to be inert
/// by the cases that were run.
fn effect(
    (real, other): (&[Option<CaseResult>], &[Option<CaseResult>]),
    (places, elsewhere): (&[usize], &[usize]),
    world: &World,
) -> WorldEffect {
    let (inert, off) = (world.inert.is_some(), world.switched_off());
    let (mut compared, mut complete) = (false, true);
    for (i, (a, b)) in real.iter().zip(other).enumerate() {
        if places[i] == elsewhere[i] {
            continue;
        }
        match (a, b) {
            (Some(a), Some(b)) if same_numbers(a, b, off) => compared = true,
            (Some(_), Some(_)) => return WorldEffect::Missed,
            _ => complete = false,
        }
    }
    let dead = match inert {
        true => compared,
        false => complete,
    };
    match dead {
        true => WorldEffect::Dead,
        false => WorldEffect::Untried,
    }
}

/// True if the cases of a point were run.
fn were_run((case, peer): &Point, cases: &[Option<CaseResult>]) -> bool {
    let mut all = [Some(*case), *peer].into_iter().flatten();
    all.all(|i| cases[i].is_some())
}

/// True if two results differ in nothing but names and wall times; if something is switched off
/// that is no probe, of the other flows and traffics alone, where there are any.
fn same_numbers(a: &CaseResult, b: &CaseResult, off: Option<&str>) -> bool {
    let kind = |name| a.traffic.iter().find(|t| t.name == name).map(|t| &t.kind);
    let off = off.filter(|name| kind(*name).is_none_or(|kind| kind != PING));
    match off.filter(|off| of_others(a, off).next().is_some()) {
        None => estimates(a).eq(estimates(b)),
        Some(off) => of_others(a, off).eq(of_others(b, off)),
    }
}

/// Kind of a traffic that measures.
const PING: &str = "ping";

/// Every metric of the flows and traffics of other names.
fn of_others<'a>(
    case: &'a CaseResult,
    off: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Estimate)> {
    let flows = case.flows.iter().filter(move |f| f.name != off);
    let traffic = case.traffic.iter().filter(move |t| t.name != off);
    let of_traffic = traffic.flat_map(|t| &t.metrics);
    flows.flat_map(|f| &f.metrics).chain(of_traffic)
}

/// Every metric of a case.
fn estimates(case: &CaseResult) -> impl Iterator<Item = (&str, &Estimate)> {
    let flows = case.flows.iter().flat_map(|f| &f.metrics);
    let traffic = case.traffic.iter().flat_map(|t| &t.metrics);
    let links = case.links.iter().flat_map(|l| &l.metrics);
    flows.chain(traffic).chain(links).chain(&case.metrics.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(passing: &[(&str, [f64; 2])]) -> Option<Tighter> {
        let named = passing.iter().map(|(w, i)| ((*w).to_owned(), *i));
        tighter(Some([0.15, 0.16]), &named.collect::<Vec<_>>())
    }

    /// Queues of 52 whose interval begins at 2 pass with at most 5, and fail with at most 1.
    #[test]
    fn a_tighter_bound_is_one_that_the_interval_fails() {
        let (slow, queue) = (("slow", [0.0, 0.01]), ("queue", [2.0, 102.0]));
        let (other, wide) = (("other", [0.5, 0.6]), ("wide", [-60.0, 160.0]));
        let found = of(&[slow, other, queue, wide, ("queue", [0.3, 0.4])]).unwrap();
        assert_eq!(
            (found.end.as_str(), found.between),
            ("at_most", [0.16, 2.0])
        );
        assert_eq!(found.worlds, ["queue", "other"]);
        assert_eq!(found.leaving_out("queue"), [0.16, 2.0]);
        assert_eq!(found.leaving_out("other"), [0.16, 0.5]);
        // On the other side if there is nothing on this one.
        let found = of(&[slow, wide]).unwrap();
        assert_eq!(
            (found.end.as_str(), found.between),
            ("at_least", [0.01, 0.15])
        );
        assert_eq!(of(&[wide]), None);
    }
}
