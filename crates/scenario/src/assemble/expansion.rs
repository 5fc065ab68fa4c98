//! The cases of a matrix: as many as the product of its axes, each resolved on its own.

use crate::case::Case;
use crate::document::{Fault, shorten};
use crate::faults::MAX_MESSAGES;
use crate::files::Files;
use crate::keys::{Element, PathKeys, PathPreset};
use crate::matrix::{self, Axis, Config, Draft};
use crate::point::{Point, Points};
use crate::resolve::{self, Resolved};
use crate::shared::{SharedSpec, one_of};
use crate::value::{Findings, Record};
use crate::world::Changed;

/// Makes the cases.
pub(super) struct Expansion<'a> {
    pub draft: &'a Draft<'a>,
    pub files: &'a Files,
    /// Keys that this world changes.
    pub world: &'a [Changed],
    /// Keys that a kind of path stands for.
    pub presets: &'a [(PathPreset, Record)],
}

/// A fault, and in how many of the cases that were looked at.
struct Found {
    fault: Fault,
    /// Cases that have it.
    times: usize,
    /// The first of them.
    first: usize,
    /// Cases that have it with other numbers.
    others: usize,
}

impl Found {
    fn first(fault: Fault, case: usize) -> Found {
        Found {
            fault,
            times: 1,
            first: case,
            others: 0,
        }
    }

    /// The same of another case, whose numbers differ.
    fn is_like(&self, other: &Fault) -> bool {
        let words = |fault: &Fault| -> String {
            let number = |c: &char| c.is_ascii_digit() || *c == '.';
            fault.message.chars().filter(|c| !number(c)).collect()
        };
        let place = |fault: &Fault| (fault.at, fault.key.clone());
        place(&self.fault) == place(other) && words(&self.fault) == words(other)
    }
}

impl Expansion<'_> {
    /// All cases, unless there are faults: those of all cases are collected, and a fault that only
    /// some cases have names the first of them.
    pub(super) fn run(
        &self,
        count: usize,
        faults: &mut Vec<Fault>,
        warnings: &mut Vec<Fault>,
    ) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::with_capacity(count);
        let points = Points::of(self.draft.axes.iter().map(|axis| {
            let values = axis.values.iter();
            let texts = values.map(|value| (value.plain.clone(), value.json.clone()));
            (axis.key.clone(), texts.collect())
        }));
        let mut found: Vec<Found> = Vec::new();
        let mut strange: Vec<(Fault, usize)> = Vec::new();
        let mut looked_at = 0;
        let mut connections = 0;
        for index in 0..count {
            looked_at += 1;
            let mut findings = Findings::default();
            match self.resolved(index, &mut findings) {
                Some(resolved) if found.is_empty() => {
                    connections += resolved.spec.flows.len();
                    let before = matrix::neighbours(index, &self.draft.axes).into_iter();
                    let before: Vec<&Case> = before.filter_map(|i| cases.get(i)).collect();
                    let case = case(index, points.at(index), resolved, &before);
                    cases.push(case);
                }
                _ => {}
            }
            if connections > MAX_CONNECTIONS {
                let config = &self.draft.config;
                let at = config.flows.last().map_or(config.top.at, |flow| flow.at);
                let message =
                    format!("the cases have more than {MAX_CONNECTIONS} connections between them");
                let hint = Some("lower `streams`, or split the matrix".to_owned());
                faults.push(Fault {
                    at,
                    key: "flow".to_owned(),
                    shows_value: false,
                    message,
                    hint,
                });
                return Vec::new();
            }
            let mut here: Vec<Fault> = Vec::new();
            for fault in findings.faults {
                if here.contains(&fault) {
                    continue;
                }
                here.push(fault.clone());
                if let Some(same) = found.iter_mut().find(|known| known.fault == fault) {
                    same.times += 1;
                } else if let Some(alike) = found.iter_mut().find(|known| known.is_like(&fault)) {
                    alike.others += 1;
                } else {
                    found.push(Found::first(fault, index));
                }
            }
            let mut here: Vec<Fault> = Vec::new();
            for warning in findings.warnings {
                if here.contains(&warning) {
                    continue;
                }
                here.push(warning.clone());
                match strange.iter().position(|(known, _)| *known == warning) {
                    Some(i) => strange[i].1 += 1,
                    None if strange.len() < MAX_MESSAGES => strange.push((warning, 1)),
                    None => {}
                }
            }
            if found.len() >= MAX_MESSAGES || (!found.is_empty() && looked_at >= MAX_FAULTY_CASES) {
                break;
            }
        }
        let strange = strange.into_iter();
        let held = strange.filter(|(warning, times)| *times == self.uses(warning, looked_at));
        warnings.extend(held.map(|(warning, _)| warning));
        if found.is_empty() {
            return cases;
        }
        for Found {
            mut fault,
            times,
            first,
            others,
        } in found
        {
            if times < looked_at {
                let others = match others {
                    0 => String::new(),
                    n => format!(", and alike in {n} more"),
                };
                let label = self.label(first);
                fault.message = format!("{} (in the case {label}{others})", fault.message);
            }
            faults.push(fault);
        }
        Vec::new()
    }

    /// Whether each case that has the value warns of it, or none has it.
    pub(super) fn is_strange(&self, warning: &Fault) -> bool {
        let cases = self
            .draft
            .axes
            .iter()
            .map(|axis| axis.values.len())
            .product();
        let warns = |index: &usize| {
            let mut findings = Findings::default();
            self.resolved(*index, &mut findings);
            findings.warnings.contains(warning)
        };
        (0..cases).filter(warns).count() == self.uses(warning, cases)
    }

    /// In how many of the first cases a value stands that is warned of: what is strange in some of
    /// them only is not.
    fn uses(&self, warning: &Fault, cases: usize) -> usize {
        let (_, name) = warning.key.rsplit_once('.').unwrap_or(("", &warning.key));
        let stands = |index: &usize| {
            let config = self.config(*index);
            // A place that is none of a value is that of a table, which stands in every case.
            config.is_ok_and(|config| !warning.shows_value || config.has(name, warning.at))
        };
        (0..cases).filter(stands).count()
    }

    /// The tables of a case.
    fn config(&self, index: usize) -> Result<Config, Fault> {
        let mut config = self.draft.config.clone();
        let digits = matrix::digits(index, &self.draft.axes);
        let values: Vec<_> = self
            .draft
            .axes
            .iter()
            .zip(&digits)
            .map(|(axis, digit)| &axis.values[*digit])
            .collect();
        let of_world = self.world.iter().filter(|change| change.applies_to(index));
        let sets = values.iter().flat_map(|value| &value.sets);
        for (address, field) in sets
            .chain(&self.draft.last)
            .map(|(address, field)| (address, field))
            .chain(of_world.map(|change| (&change.address, &change.field)))
        {
            address.apply(&mut config, field).map_err(|message| Fault {
                at: field.at,
                key: address.key.name.to_owned(),
                shows_value: true,
                message,
                hint: None,
            })?;
        }
        self.fill(&mut config.path);
        Ok(config)
    }

    /// Puts what is known of the kind of path where the path has no key of its own.
    fn fill(&self, path: &mut Record) {
        let Some(preset) = path.get::<PathPreset>(&PathKeys::preset) else {
            return;
        };
        let found = self.presets.iter().find(|(known, _)| *known == preset);
        let Some((_, keys)) = found else {
            return;
        };
        // A trace is a rate.
        let has_rate = path.is_attempted(&Element::trace);
        for key in keys.given() {
            let known = path.is_attempted(key) || (key.name == PathKeys::rate.name && has_rate);
            if let (false, Some(field)) = (known, keys.field(key)) {
                path.set(key, field.clone());
            }
        }
    }

    fn resolved(&self, index: usize, findings: &mut Findings) -> Option<Resolved> {
        let config = match self.config(index) {
            Ok(config) => config,
            Err(fault) => {
                findings.faults.push(fault);
                return None;
            }
        };
        resolve::resolve(&config, self.draft.names, self.files, findings)
    }

    fn label(&self, index: usize) -> String {
        let digits = matrix::digits(index, &self.draft.axes);
        let texts: Vec<String> = self
            .draft
            .axes
            .iter()
            .zip(digits)
            .map(|(axis, digit)| format!("{} = {}", axis.key, shorten(&axis.values[digit].plain)))
            .collect();
        texts.join(", ")
    }
}

/// The case at a point; what it has in common with the other ones is theirs too.
fn case(index: usize, point: Point, resolved: Resolved, others: &[&Case]) -> Case {
    let specs: Vec<&SharedSpec> = others.iter().map(|case| &case.spec).collect();
    Case {
        index,
        flows: one_of(resolved.flows, others.iter().map(|case| &case.flows)),
        traffic: one_of(resolved.traffic, others.iter().map(|case| &case.traffic)),
        duration: resolved.spec.duration,
        warmup: resolved.warmup,
        interval: resolved.interval,
        baseline: None,
        point,
        spec: SharedSpec::new(resolved.spec, &specs),
    }
}

/// How many cases there are; the error is a message.
pub(super) fn count(axes: &[Axis], seeds: usize) -> Result<usize, String> {
    let cases = axes
        .iter()
        .try_fold(1usize, |n, axis| n.checked_mul(axis.values.len()));
    match cases {
        Some(cases) if cases <= MAX_CASES && cases.saturating_mul(seeds) <= MAX_RUNS => Ok(cases),
        Some(cases) if cases <= MAX_CASES => Err(format!(
            "{cases} cases of {seeds} seeds, at most {MAX_RUNS} runs are allowed"
        )),
        Some(cases) => Err(format!(
            "the matrix has {cases} cases, at most {MAX_CASES} are allowed"
        )),
        None => Err(format!(
            "the matrix is too large, at most {MAX_CASES} cases are allowed"
        )),
    }
}

const MAX_CASES: usize = 100_000;
const MAX_RUNS: usize = 10_000_000;
/// Of all cases; one that no other case has takes about a kilobyte before anything runs.
const MAX_CONNECTIONS: usize = 250_000;
/// Once something is wrong, not all of a hundred thousand cases need to be looked at.
const MAX_FAULTY_CASES: usize = 1000;
