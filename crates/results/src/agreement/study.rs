//! One scenario on several grounds: each held against the first, and where two part, known causes
//! tried one after the other by switching them.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;
use fullpipe_units::Span;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

pub use super::conclusion::{Chance, Conclusion, TestBed};
use super::conclusion::{Found, conclude};
use crate::agreement::Distance;
use crate::compare::{Comparison, Options as CompareOptions, Row, Verdict, View, compare_stored};
use crate::result::{Params, RunResult};
use crate::run::{Options, Ran, RunError, run_on};
use crate::store::{Earlier, ResultDir, StoreError};

/// What several grounds make of one scenario.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Agreement {
    /// Version of the program.
    pub fullpipe: String,
    /// Name of the scenario.
    pub scenario: String,
    /// The grounds; the others are held against the first.
    pub grounds: Vec<String>,
    /// Stack that the grounds other than `linux` ran in place of `own-linux`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_is: Option<String>,
    /// Each of the others with the first.
    pub pairs: Vec<PairAgreement>,
    /// Every pair agrees in every case that was compared, and there is one.
    pub agree: bool,
    /// Runs of a ground were not what the scenario says; their cases are left out.
    pub flagged: bool,
}

impl Agreement {
    /// JSON Schema of the object.
    pub fn json_schema() -> Schema {
        schemars::schema_for!(Agreement)
    }
}

/// Two grounds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PairAgreement {
    /// All numbers and distances of the cases that count.
    pub comparison: Comparison,
    /// Cases with runs that were not what the scenario says.
    pub left_out: Vec<Params>,
    /// Known causes, each tried on the cases that part; empty where the two agree.
    pub causes: Vec<Tried>,
    /// Whether test bed, chance or a cause explains what parts, and the next step.
    pub conclusion: Conclusion,
}

impl PairAgreement {
    /// True if no case is left to compare.
    pub fn is_empty(&self) -> bool {
        !self.left_out.is_empty() && self.comparison.says_nothing()
    }
}

/// A known cause, switched.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tried {
    /// As `fullpipe agree` prints it: `offload`, `hystart`.
    pub cause: String,
    /// The switch in a sentence.
    pub about: String,
    /// On which ground; `both` where it is switched on the two.
    pub ground: String,
    /// Numbers and distances beyond their thresholds before.
    pub before: usize,
    /// And with the switch turned; `None`: the ground could not run it.
    pub after: Option<usize>,
    /// The furthest of those that are beyond, before; `null`: only numbers that have to be equal
    /// are.
    pub furthest_before: Option<Furthest>,
    /// And with the switch turned.
    pub furthest_after: Option<Furthest>,
    /// The ground's refusal, where `after` is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Whether the cause explains the distance.
    pub verdict: CauseVerdict,
    /// The same case by case; those are missing of which a switched run was flagged.
    pub cases: Vec<TriedCase>,
}

/// What is beyond its threshold by the largest multiple. Numbers that have to be equal, whose
/// threshold is zero, have none.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Furthest {
    /// Relative difference or distance as a multiple of its threshold; `null`: a number stands
    /// against none.
    pub times: Option<f64>,
    /// Metric or measure.
    pub metric: String,
    /// Flow, class of short flows or link.
    pub of: Option<String>,
    /// The case.
    pub params: Params,
}

impl Furthest {
    /// `goodput_mbps of main, path.rtt = 20ms`.
    pub fn place(&self) -> String {
        let of = self.of.iter().map(|of| format!(" of {of}"));
        let params = Some(self.params.to_string()).filter(|text| !text.is_empty());
        let params = params.iter().map(|text| format!(", {text}"));
        std::iter::once(self.metric.clone())
            .chain(of)
            .chain(params)
            .collect()
    }

    /// `2.7x`: so many times as large as its threshold; `-` where there is no such number.
    pub fn text(furthest: Option<&Furthest>) -> String {
        let times = furthest.and_then(|f| f.times);
        times.map_or("-".to_owned(), |times| format!("{times:.1}x"))
    }

    fn multiple(furthest: Option<&Furthest>) -> f64 {
        furthest.map_or(0.0, |f| f.times.unwrap_or(f64::INFINITY))
    }
}

/// A known cause, switched in one case that parts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TriedCase {
    /// The case.
    pub params: Params,
    /// Numbers and distances beyond their thresholds before.
    pub before: usize,
    /// And with the switch turned.
    pub after: usize,
    /// What that says of the cause in this case.
    pub verdict: CauseVerdict,
}

/// Multiples of a threshold that differ by less are as far, ours.
const AS_FAR: f64 = 1.1;

impl CauseVerdict {
    /// Of how many are beyond their thresholds, before and after, and the furthest of them.
    pub(super) fn of(count: [usize; 2], furthest: [Option<&Furthest>; 2]) -> Self {
        let [before, after] = furthest.map(Furthest::multiple);
        let far = if after > before * AS_FAR {
            Ordering::Greater
        } else if after < before / AS_FAR {
            Ordering::Less
        } else {
            Ordering::Equal
        };
        match (count[1].cmp(&count[0]), far) {
            _ if count[1] == 0 => Self::Explains,
            (Ordering::Less, Ordering::Less | Ordering::Equal)
            | (Ordering::Equal, Ordering::Less) => Self::InPart,
            (Ordering::Greater, Ordering::Greater | Ordering::Equal)
            | (Ordering::Equal, Ordering::Greater) => Self::Worse,
            _ => Self::No,
        }
    }
}

/// What a switch says of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseVerdict {
    /// Nothing is beyond its threshold any more.
    Explains,
    /// Fewer numbers are, or the furthest is less far; neither has grown.
    InPart,
    /// As many are as far, or one of the two has grown and the other shrunk.
    No,
    /// More numbers are, or the furthest is further; neither has shrunk.
    Worse,
    /// It could not be switched here.
    Untried,
}

/// A cause that may be switched.
pub struct Switch<'a> {
    /// Its name, unique among those of a ground.
    pub name: &'a str,
    /// The switch in a sentence.
    pub about: &'a str,
    /// Where it is, and what it makes of a ground.
    pub turned: Turned<'a>,
}

/// A ground with a switch turned, under its usual name.
#[derive(Clone, Copy)]
pub enum Turned<'a> {
    /// Ready to run in the place of the ground of the same name.
    Now(&'a dyn Ground),
    /// In the place of the ground of this name: made of what the other ground's test bed added to
    /// a mean round trip; nothing to switch where it added nothing.
    Later(&'a str, &'a dyn Fn(Span) -> Box<dyn Ground>),
    /// Both grounds of a pair, each as this makes it, in cases in which phase decides who loses.
    Phase(&'a Switching<'a>),
}

/// A ground, and the same with a switch turned.
pub type Switching<'s> = dyn for<'a> Fn(&'a dyn Ground) -> Box<dyn Ground + 'a> + 's;

impl<'a> Turned<'a> {
    /// Which of a pair's grounds it takes the place of; `None`: none of them.
    fn sides(&self, names: [&str; 2]) -> Option<&'static [usize]> {
        let on = match self {
            Self::Now(ground) => ground.name(),
            Self::Later(on, _) => on,
            Self::Phase(_) => return Some(&[0, 1]),
        };
        let side = names.iter().position(|name| *name == on)?;
        Some([&[0], &[1]][side])
    }
}

/// Settings of a study.
pub struct StudyOptions<'a> {
    /// Of the runs; `out` is the directory of all, which must be given.
    pub run: Options<'a>,
    /// Cases whose runs were flagged count, too.
    pub with_flagged: bool,
    /// Known causes that flows of the scenario can show and that shall not be switched, each with
    /// its ground, if it is one's.
    pub left: &'a [(&'a str, Option<&'a str>)],
}

/// Runs the scenario on every ground and compares; `said` is told what comes next.
///
/// # Errors
/// See [`RunError`].
pub fn agree(
    scenario: &Scenario,
    grounds: &[&dyn Ground],
    switches: &[Switch<'_>],
    options: &StudyOptions<'_>,
    said: &dyn Fn(&str),
) -> Result<Agreement, RunError> {
    let out = options.run.out.unwrap_or(Path::new("."));
    let mut results = Vec::new();
    for ground in grounds {
        said(&format!("{} on ground {}", scenario.name, ground.name()));
        let dir = directory(out, ground.name());
        kept(&run_on(scenario, &into(&options.run, &dir), *ground)?, said);
        results.push(ResultDir::open(&dir)?);
    }
    let thresholds = CompareOptions {
        thresholds: scenario.measure.agreement.iter().cloned().collect(),
        view: View::Agreement,
        with_flagged: options.with_flagged,
        ..CompareOptions::default()
    };
    let mut pairs = Vec::new();
    for (ground, b) in grounds.iter().zip(&results).skip(1) {
        let a = &results[0];
        let (comparison, left_out) = compared(a, b, &thresholds)?;
        let mut causes = Vec::new();
        let apart = apart(&comparison);
        let names = [grounds[0].name(), ground.name()];
        for switch in switches.iter().filter(|_| !apart.is_empty()) {
            let Some(sides) = switch.turned.sides(names) else {
                continue;
            };
            let (mut late, mut wanted) = (Span::ZERO, apart.clone());
            match switch.turned {
                Turned::Now(_) => {}
                Turned::Later(..) => match added(&[a, b][1 - sides[0]].result()?, &apart) {
                    Some(added) => late = added,
                    None => continue,
                },
                Turned::Phase(_) => {
                    let tied = [tied(&a.result()?), tied(&b.result()?)].concat();
                    wanted.retain(|params| tied.contains(params));
                    if wanted.is_empty() {
                        continue;
                    }
                }
            }
            said(&format!(
                "{} against {}: {}",
                names[0], names[1], switch.about
            ));
            let dir = cause_directory(out, names[1], switch.name);
            let part = of_cases(scenario, &wanted);
            let mut how = into(&options.run, &dir);
            if how.earlier == Earlier::Resumed {
                // Which cases part may have changed.
                how.earlier = Earlier::Replaced;
            }
            let run = |ground: &dyn Ground, dir: &Path| {
                kept(&run_on(&part, &into(&how, dir), ground)?, said);
                Ok(ResultDir::open(dir)?)
            };
            let tried: Result<Vec<ResultDir>, RunError> = match switch.turned {
                Turned::Now(ground) => run(ground, &dir).map(|ran| vec![ran]),
                Turned::Later(_, make) => run(&*make(late), &dir).map(|ran| vec![ran]),
                Turned::Phase(turn) => [grounds[0], *ground]
                    .into_iter()
                    .map(|ground| run(&*turn(ground), &directory(&dir, ground.name())))
                    .collect(),
            };
            let mut cases = Vec::new();
            let (mut before, mut furthest_after) = (beyond(&comparison, &apart), None);
            let mut furthest_before = furthest(&comparison, &apart);
            let mut verdict = CauseVerdict::Untried;
            let (after, why_not) = match tried {
                Ok(switched) => {
                    let mut both = [a, b];
                    for (side, result) in sides.iter().zip(&switched) {
                        both[*side] = result;
                    }
                    let (mut again, left_out) = compared(both[0], both[1], &thresholds)?;
                    unhide(&comparison, &mut again);
                    // What a flagged run comes to says nothing of the cause.
                    let counts = wanted.iter().filter(|params| !left_out.contains(params));
                    let counts: Vec<Params> = counts.cloned().collect();
                    cases.extend(counts.iter().map(|params| {
                        let one = std::slice::from_ref(params);
                        let before = beyond(&comparison, one);
                        let after = beyond(&again, one);
                        let far = [&comparison, &again].map(|c| furthest(c, one));
                        TriedCase {
                            params: params.clone(),
                            before,
                            after,
                            verdict: CauseVerdict::of(
                                [before, after],
                                [far[0].as_ref(), far[1].as_ref()],
                            ),
                        }
                    }));
                    if counts.is_empty() {
                        (None, Some("the switched runs were flagged".to_owned()))
                    } else {
                        before = beyond(&comparison, &counts);
                        furthest_before = furthest(&comparison, &counts);
                        furthest_after = furthest(&again, &counts);
                        let after = beyond(&again, &counts);
                        let far = [furthest_before.as_ref(), furthest_after.as_ref()];
                        verdict = match CauseVerdict::of([before, after], far) {
                            CauseVerdict::Explains if counts.len() < apart.len() => {
                                CauseVerdict::InPart
                            }
                            verdict => verdict,
                        };
                        (Some(after), None)
                    }
                }
                Err(RunError::Unable { what, .. }) => (None, Some(what)),
                Err(other) => return Err(other),
            };
            causes.push(Tried {
                cause: switch.name.to_owned(),
                about: switch.about.to_owned(),
                ground: match sides {
                    [side] => names[*side].to_owned(),
                    _ => "both".to_owned(),
                },
                before,
                after,
                furthest_before,
                furthest_after,
                why_not,
                verdict,
                cases,
            });
        }
        let here = |on: &Option<&str>| on.is_none_or(|on| names.contains(&on));
        let left = options.left.iter().filter(|(_, on)| here(on));
        let left: Vec<&str> = left.map(|(name, _)| *name).collect();
        let conclusion = conclude(&Found {
            comparison: &comparison,
            left_out: &left_out,
            furthest: furthest(&comparison, &apart),
            causes: &causes,
            left: &left,
            seeds: scenario.seeds.len(),
        });
        pairs.push(PairAgreement {
            comparison,
            left_out,
            causes,
            conclusion,
        });
    }
    Ok(Agreement {
        fullpipe: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: scenario.name.clone(),
        grounds: grounds.iter().map(|g| g.name().to_owned()).collect(),
        own_is: None,
        agree: pairs
            .iter()
            .all(|p| p.comparison.agree && !p.comparison.rows.is_empty()),
        flagged: pairs.iter().any(|p| !p.left_out.is_empty()),
        pairs,
    })
}

/// Tells what of these runs an earlier time has made.
fn kept(ran: &Ran, said: &dyn Fn(&str)) {
    if ran.reused > 0 || ran.remade > 0 {
        let again = ran.again().map_or(String::new(), |a| format!("; {a}"));
        said(&format!("  {}{again}", ran.counts()));
    }
}

/// The same options for another directory.
fn into<'a>(options: &Options<'a>, dir: &'a Path) -> Options<'a> {
    Options {
        out: Some(dir),
        jobs: options.jobs,
        earlier: options.earlier,
        captures: options.captures,
        cases: None,
        progress: options.progress,
        interrupt: options.interrupt,
    }
}

/// Two results, and beside them the cases that do not count.
fn compared(
    a: &ResultDir,
    b: &ResultDir,
    options: &CompareOptions,
) -> Result<(Comparison, Vec<Params>), StoreError> {
    let mut comparison = compare_stored(a, b, options)?;
    let left_out = std::mem::take(&mut comparison.left_out);
    Ok((comparison, left_out))
}

/// What the test bed added to a mean round trip in these cases, on average; `None`: nothing, or it
/// does not say.
fn added(result: &RunResult, cases: &[Params]) -> Option<Span> {
    let these = result.cases.iter().filter(|c| cases.contains(&c.params));
    let added = these.filter_map(|c| Some(c.fidelity.as_ref()?.added_ms));
    let added: Vec<f64> = added.collect();
    let mean = added.iter().sum::<f64>() / added.len() as f64;
    let late = Span::from_secs_f64(mean / 1e3);
    (mean > 0.0 && late > Span::ZERO).then_some(late)
}

/// Cases in which phase decides who loses.
fn tied(result: &RunResult) -> Vec<Params> {
    let tied = result.cases.iter().filter(|case| case.tied().is_some());
    tied.map(|case| case.params.clone()).collect()
}

/// What was beyond its threshold before a switch, and is as far apart after it, is beyond it still:
/// seeds that differ more hide a distance and do not explain it.
fn unhide(before: &Comparison, after: &mut Comparison) {
    let as_far = |was: f64, is: f64| is.abs() >= was.abs() / AS_FAR;
    let beyond = |verdict| verdict == Verdict::Beyond;
    for row in &mut after.rows {
        let same = |r: &&Row| {
            (&r.params, &r.flow, &r.link, &r.metric)
                == (&row.params, &row.flow, &row.link, &row.metric)
        };
        let was = before.rows.iter().find(same).filter(|r| beyond(r.verdict));
        let far = was.and_then(|was| was.difference.zip(row.difference));
        if row.verdict == Verdict::Indistinguishable && far.is_some_and(|(a, b)| as_far(a, b)) {
            row.verdict = Verdict::Beyond;
        }
    }
    for distance in &mut after.distances {
        let same = |d: &&Distance| {
            (&d.params, &d.flow, d.measure) == (&distance.params, &distance.flow, distance.measure)
        };
        let was = before
            .distances
            .iter()
            .find(same)
            .filter(|d| beyond(d.verdict));
        let far = was.is_some_and(|was| as_far(was.mean, distance.mean));
        if distance.verdict == Verdict::Indistinguishable && far {
            distance.verdict = Verdict::Beyond;
        }
    }
}

/// Cases in which something is beyond its threshold.
fn apart(comparison: &Comparison) -> Vec<Params> {
    let mut cases: Vec<Params> = Vec::new();
    for params in all_beyond(comparison) {
        if !cases.contains(params) {
            cases.push(params.clone());
        }
    }
    cases
}

/// What is judged and beyond its threshold in these cases.
fn beyond(comparison: &Comparison, cases: &[Params]) -> usize {
    all_beyond(comparison).filter(|p| cases.contains(p)).count()
}

/// The furthest of what is judged and beyond its threshold in these cases.
fn furthest(comparison: &Comparison, cases: &[Params]) -> Option<Furthest> {
    let rows = comparison.rows.iter();
    let beyond = rows.filter(|r| r.judged && r.verdict == Verdict::Beyond && r.threshold > 0.0);
    let rows = beyond.map(|r| Furthest {
        times: r.relative.map(|relative| relative.abs() / r.threshold),
        metric: r.metric.clone(),
        of: r.flow.clone().or_else(|| r.link.clone()),
        params: r.params.clone(),
    });
    let distances = comparison.distances.iter();
    let beyond = distances.filter(|d| d.verdict == Verdict::Beyond && d.threshold > 0.0);
    let distances = beyond.map(|d| Furthest {
        times: Some(d.mean / d.threshold),
        metric: d.measure.to_owned(),
        of: Some(d.flow.clone()),
        params: d.params.clone(),
    });
    let all = rows.chain(distances).filter(|f| cases.contains(&f.params));
    let multiple = |f: &Furthest| Furthest::multiple(Some(f));
    all.max_by(|a, b| multiple(a).total_cmp(&multiple(b)))
}

fn all_beyond(comparison: &Comparison) -> impl Iterator<Item = &Params> {
    let rows = comparison.rows.iter();
    let rows = rows.filter(|r| r.judged && r.verdict == Verdict::Beyond);
    let distances = comparison.distances.iter();
    let distances = distances.filter(|d| d.verdict == Verdict::Beyond);
    rows.map(|r| &r.params).chain(distances.map(|d| &d.params))
}

/// The scenario with these cases alone; nothing is expected of them.
fn of_cases(scenario: &Scenario, wanted: &[Params]) -> Scenario {
    let mut part = scenario.clone();
    part.cases.retain(|case| wanted.contains(&Params::of(case)));
    // A case is found by its place, and so is its baseline.
    let before: Vec<usize> = part.cases.iter().map(|case| case.index).collect();
    for (index, case) in part.cases.iter_mut().enumerate() {
        case.index = index;
        let baseline = case.baseline;
        case.baseline = baseline.and_then(|old| before.iter().position(|b| *b == old));
    }
    part.expectations.clear();
    part.negatives.clear();
    part.reports.clear();
    part
}

/// Directory of what a switch made of the pair of this ground, in that of the study.
pub fn cause_directory(out: &Path, ground: &str, cause: &str) -> PathBuf {
    out.join("causes").join(format!("{ground}-{cause}"))
}

/// Directory of the result of a ground in that of the study.
pub fn directory(out: &Path, ground: &str) -> PathBuf {
    out.join(ground)
}

#[cfg(test)]
mod tests {
    use fullpipe_scenario::Overrides;

    use super::*;

    #[test]
    fn cases_that_are_picked_are_numbered_anew() {
        let text = "name = \"a\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\n\
                    rtt = \"20ms\"\n[[flow]]\nstack = \"reno\"\n[matrix]\n\
                    \"path.rtt\" = [\"10ms\", \"20ms\", \"30ms\"]\n";
        let scenario = Scenario::parse(text, "a.toml", &Overrides::default()).unwrap();
        let last = Params::of(&scenario.cases[2]);
        let part = of_cases(&scenario, std::slice::from_ref(&last));
        assert_eq!(part.cases.len(), 1);
        assert_eq!(part.cases[0].index, 0);
        assert_eq!(Params::of(&part.cases[0]), last);
    }
}
