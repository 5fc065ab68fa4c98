//! One scenario on several grounds: each held against the first, and where two part, known causes
//! tried one after the other by switching them.

use std::path::{Path, PathBuf};

use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;
use fullpipe_units::Span;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

pub use super::cause::{CauseVerdict, Furthest, Tried, TriedCase};
use super::cause::{apart, beyond, furthest, unhide};
pub use super::conclusion::{Chance, Conclusion, TestBed};
use super::conclusion::{Found, conclude};
use crate::compare::{Comparison, Options as CompareOptions, View, compare_stored};
use crate::result::{CaseResult, Params, RunResult};
use crate::run::{Options, RunError, run_on};
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
    /// Both grounds of a pair, each as this makes it, in cases in which phase may decide who loses.
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
    let study = Study {
        scenario,
        options,
        thresholds: CompareOptions {
            thresholds: scenario.measure.agreement.iter().cloned().collect(),
            view: View::Agreement,
            with_flagged: options.with_flagged,
            ..CompareOptions::default()
        },
        out: options.run.out.unwrap_or(Path::new(".")),
        said,
    };
    let mut results = Vec::new();
    for ground in grounds {
        said(&format!("{} on ground {}", scenario.name, ground.name()));
        let dir = directory(study.out, ground.name());
        results.push(study.run(scenario, options.run.earlier, *ground, &dir)?);
    }
    let mut pairs = Vec::new();
    for (ground, result) in grounds.iter().zip(&results).skip(1) {
        let both = ([grounds[0], *ground], [&results[0], result]);
        pairs.push(study.pair(both, switches)?);
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

/// A scenario on several grounds.
struct Study<'a> {
    scenario: &'a Scenario,
    options: &'a StudyOptions<'a>,
    thresholds: CompareOptions,
    out: &'a Path,
    said: &'a dyn Fn(&str),
}

/// Two grounds that part in some cases.
struct Parting<'a> {
    grounds: [&'a dyn Ground; 2],
    results: [&'a ResultDir; 2],
    comparison: &'a Comparison,
    /// In the order of the comparison.
    apart: &'a [Params],
}

impl Study<'_> {
    fn run(
        &self,
        scenario: &Scenario,
        earlier: Earlier,
        ground: &dyn Ground,
        dir: &Path,
    ) -> Result<ResultDir, RunError> {
        let options = Options {
            earlier,
            ..into(&self.options.run, dir)
        };
        let ran = run_on(scenario, &options, ground)?;
        // What of these runs an earlier time has made.
        if ran.reused > 0 || ran.remade > 0 {
            let again = ran.again().map_or(String::new(), |a| format!("; {a}"));
            (self.said)(&format!("  {}{again}", ran.counts()));
        }
        Ok(ResultDir::open(dir)?)
    }

    /// Two results, and beside them the cases that do not count.
    fn compared(&self, [a, b]: [&ResultDir; 2]) -> Result<(Comparison, Vec<Params>), StoreError> {
        let mut comparison = compare_stored(a, b, &self.thresholds)?;
        let left_out = std::mem::take(&mut comparison.left_out);
        Ok((comparison, left_out))
    }

    /// Holds the second against the first, and tries every cause where they part.
    fn pair(
        &self,
        (grounds, results): ([&dyn Ground; 2], [&ResultDir; 2]),
        switches: &[Switch<'_>],
    ) -> Result<PairAgreement, RunError> {
        let (comparison, left_out) = self.compared(results)?;
        let apart = apart(&comparison);
        let parting = Parting {
            grounds,
            results,
            comparison: &comparison,
            apart: &apart,
        };
        let mut causes = Vec::new();
        for switch in switches.iter().filter(|_| !apart.is_empty()) {
            causes.extend(self.cause(&parting, switch)?);
        }
        let names = grounds.map(|ground| ground.name());
        let here = |on: &Option<&str>| on.is_none_or(|on| names.contains(&on));
        let left = self.options.left.iter().filter(|(_, on)| here(on));
        let left: Vec<&str> = left.map(|(name, _)| *name).collect();
        let conclusion = conclude(&Found {
            comparison: &comparison,
            left_out: &left_out,
            furthest: furthest(&comparison, &apart),
            causes: &causes,
            left: &left,
            seeds: self.scenario.seeds.len(),
        });
        Ok(PairAgreement {
            comparison,
            left_out,
            causes,
            conclusion,
        })
    }

    /// Turns a switch where the two part; `None`: it is of no ground of theirs, or has nothing to
    /// switch.
    fn cause(&self, parting: &Parting<'_>, switch: &Switch<'_>) -> Result<Option<Tried>, RunError> {
        let names = parting.grounds.map(|ground| ground.name());
        let Some(sides) = switch.turned.sides(names) else {
            return Ok(None);
        };
        let Some((late, wanted)) = parting.wanted(switch, sides)? else {
            return Ok(None);
        };
        let [a, b] = names;
        (self.said)(&format!("{a} against {b}: {}", switch.about));
        let dir = cause_directory(self.out, b, switch.name);
        let part = of_cases(self.scenario, &wanted);
        let earlier = match self.options.run.earlier {
            // Which cases part may have changed.
            Earlier::Resumed => Earlier::Replaced,
            earlier => earlier,
        };
        let run = |ground: &dyn Ground, dir: &Path| self.run(&part, earlier, ground, dir);
        let ran: Result<Vec<ResultDir>, RunError> = match switch.turned {
            Turned::Now(ground) => run(ground, &dir).map(|ran| vec![ran]),
            Turned::Later(_, make) => run(&*make(late), &dir).map(|ran| vec![ran]),
            Turned::Phase(turn) => {
                let both = parting.grounds.into_iter();
                both.map(|ground| run(&*turn(ground), &directory(&dir, ground.name())))
                    .collect()
            }
        };
        let untried = Tried {
            cause: switch.name.to_owned(),
            about: switch.about.to_owned(),
            ground: match sides {
                [side] => names[*side].to_owned(),
                _ => "both".to_owned(),
            },
            before: beyond(parting.comparison, parting.apart),
            after: None,
            furthest_before: furthest(parting.comparison, parting.apart),
            furthest_after: None,
            why_not: None,
            verdict: CauseVerdict::Untried,
            cases: Vec::new(),
        };
        let switched = match ran {
            Ok(switched) => switched,
            Err(RunError::Unable { what, .. }) => {
                return Ok(Some(Tried {
                    why_not: Some(what),
                    ..untried
                }));
            }
            Err(other) => return Err(other),
        };
        let mut both = parting.results;
        for (side, result) in sides.iter().zip(&switched) {
            both[*side] = result;
        }
        let (mut again, left_out) = self.compared(both)?;
        unhide(parting.comparison, &mut again);
        // What a flagged run comes to says nothing of the cause.
        let counts = wanted
            .into_iter()
            .filter(|params| !left_out.contains(params));
        Ok(Some(parting.judged(
            untried,
            &again,
            &counts.collect::<Vec<_>>(),
        )))
    }
}

impl Parting<'_> {
    /// Cases in which a switch is worth a try, and what the test bed added to their round trips, if
    /// the switch is to add it elsewhere.
    fn wanted(
        &self,
        switch: &Switch<'_>,
        sides: &[usize],
    ) -> Result<Option<(Span, Vec<Params>)>, StoreError> {
        let all = self.apart.to_vec();
        Ok(match switch.turned {
            Turned::Now(_) => Some((Span::ZERO, all)),
            Turned::Later(..) => {
                let other = self.results[1 - sides[0]].result()?;
                added(&other, &all).map(|late| (late, all))
            }
            Turned::Phase(_) => {
                let [a, b] = self.results;
                let met = [by_phase(&a.result()?), by_phase(&b.result()?)].concat();
                let wanted = all.into_iter().filter(|params| met.contains(params));
                let wanted: Vec<Params> = wanted.collect();
                (!wanted.is_empty()).then_some((Span::ZERO, wanted))
            }
        })
    }

    /// What the switched runs say of the cause, in these cases.
    fn judged(&self, untried: Tried, again: &Comparison, counts: &[Params]) -> Tried {
        if counts.is_empty() {
            return Tried {
                why_not: Some("the switched runs were flagged".to_owned()),
                ..untried
            };
        }
        let of = |cases: &[Params]| {
            let both = [self.comparison, again];
            let count = both.map(|c| beyond(c, cases));
            let far = both.map(|c| furthest(c, cases));
            let verdict = CauseVerdict::of(count, [far[0].as_ref(), far[1].as_ref()]);
            (count, far, verdict)
        };
        let cases = counts.iter().map(|params| {
            let ([before, after], _, verdict) = of(std::slice::from_ref(params));
            TriedCase {
                params: params.clone(),
                before,
                after,
                verdict,
            }
        });
        let ([before, after], [furthest_before, furthest_after], verdict) = of(counts);
        Tried {
            before,
            after: Some(after),
            furthest_before,
            furthest_after,
            verdict: match verdict {
                CauseVerdict::Explains if counts.len() < self.apart.len() => CauseVerdict::InPart,
                verdict => verdict,
            },
            cases: cases.collect(),
            ..untried
        }
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

/// Cases in which phase may decide what is lost: a full buffer dropped packets. Senders of one
/// rhythm find the same places full however far apart their packets are (Floyd and Jacobson 1992),
/// and those of a lone one come in the instants in which its own depart.
fn by_phase(result: &RunResult) -> Vec<Params> {
    let full = |case: &&CaseResult| {
        let mut links = case.links.iter();
        links.any(|link| link.value("buffer_drops") > Some(0.0))
    };
    let cases = result.cases.iter().filter(full);
    cases.map(|case| case.params.clone()).collect()
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

    /// Whether phase may have had a say behind a buffer that fills, with these flows.
    fn by_phase_of(flows: &str) -> bool {
        let text = format!(
            "name = \"a\"\nduration = \"3s\"\n[path]\nrate = \"12Mbit/s\"\nrtt = \"6ms\"\n\
             buffer = \"4 packets\"\n{flows}"
        );
        let scenario = Scenario::parse(&text, "a.toml", &Overrides::default()).unwrap();
        let ran = run_on(&scenario, &Options::default(), &fullpipe_sim::run).unwrap();
        !by_phase(&ran.result).is_empty()
    }

    #[test]
    fn phase_is_for_senders_at_a_full_buffer() {
        let flow = |name: &str, window: u32| {
            format!(
                "[[flow]]\nname = \"{name}\"\nstack = \"highspeed\"\n\
                 window = \"{window} segments\"\n"
            )
        };
        assert!(by_phase_of(&(flow("a", 1000) + &flow("b", 1000))));
        assert!(by_phase_of(&flow("a", 1000)), "alone");
        assert!(
            !by_phase_of(&(flow("a", 2) + &flow("b", 2))),
            "nothing is dropped"
        );
    }

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
