//! A result as the drawings ask for it: cases, their axes, lines and panels.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Scope};
use fullpipe_results::compare::Runs;
use fullpipe_results::label;
use fullpipe_results::result::{CaseResult, Estimate, Estimates, LinkResult, Params, RunResult};
use fullpipe_results::store::ResultDir;

use super::choice::{chosen, full_key};
use super::{Asked, AskedError, PANELS, Taken};
use crate::figure::as_it_is;
use crate::page::File;
use crate::page::axes::axes;
use crate::page::data::Axis;

/// The cases that are drawn.
pub(super) struct View<'a> {
    pub dir: &'a ResultDir,
    pub result: RunResult,
    /// Indices of the cases.
    pub cases: Vec<usize>,
    /// Parameters of each of them.
    params: Vec<Vec<(String, String)>>,
    /// Keys that vary among them.
    pub axes: Vec<Axis>,
    /// The values of single runs, once they were asked for.
    runs: OnceCell<Runs>,
}

/// A case as a line of a panel or a row of a table.
pub(super) struct Member {
    /// Name among the others; empty where there is one only.
    pub name: String,
    /// Place among the values that compete.
    pub group: usize,
    /// Number of values that compete.
    groups: usize,
    /// Index of the case.
    pub case: usize,
}

/// A metric, and whom it is taken of.
pub(super) struct Subject {
    pub metric: String,
    /// Flow, traffic or link; `None` where only one has the metric.
    pub of: Option<String>,
    /// Set if nobody chose `of`, and others have the metric too.
    pub taken: Option<Taken>,
}

/// Whose lines a drawing has. One that some cases lack keeps its looks in the others.
pub(super) struct Places(Vec<String>);

impl Places {
    /// The group of a member's line of this flow, traffic or link.
    pub fn group(&self, member: &Member, of: &str) -> usize {
        let place = self.0.iter().position(|name| name == of);
        member.group + place.unwrap_or(self.0.len()) * member.groups
    }
}

/// Cases that differ in what competes only.
pub(super) struct Part {
    /// What tells it from the others; empty where there is one only.
    pub title: String,
    pub members: Vec<Member>,
}

impl<'a> View<'a> {
    pub fn new(dir: &'a ResultDir, asked: &Asked) -> Result<View<'a>, AskedError> {
        let result = dir.result()?;
        let all: Vec<&Params> = result.cases.iter().map(|c| &c.params).collect();
        let cases = chosen(&all, &asked.only)?;
        let params = label::texts(cases.iter().map(|&i| &result.cases[i].params));
        let mut axes = axes(&params, &File::of(&dir.manifest().scenario_text).matrix);
        if let Some(key) = &asked.lines {
            let full = full_key(&params, key);
            if !axes.iter().any(|axis| Some(axis.key.as_str()) == full) {
                return Err(no_lines(key, &axes));
            }
            for axis in &mut axes {
                axis.competes = Some(axis.key.as_str()) == full;
            }
        }
        Ok(View {
            dir,
            result,
            cases,
            params,
            axes,
            runs: OnceCell::new(),
        })
    }

    pub fn case(&self, index: usize) -> &CaseResult {
        &self.result.cases[index]
    }

    /// Value of an axis in the `i`-th of the cases.
    fn value(&self, i: usize, axis: &Axis) -> &str {
        label::find(&self.params[i], &axis.key).unwrap_or_default()
    }

    /// Value of an axis in a case.
    pub fn value_of(&self, case: usize, axis: &Axis) -> &str {
        let at = self.cases.iter().position(|&i| i == case);
        at.map_or("", |at| self.value(at, axis))
    }

    /// What tells a case from the others; empty where there is one only.
    pub fn case_words(&self, case: usize) -> String {
        let values = self.axes.iter().map(|axis| {
            let value = self.value_of(case, axis);
            self.words(axis, value)
        });
        values.collect::<Vec<_>>().join(", ")
    }

    /// The axis of the lines: the one that competes.
    pub fn competitors(&self) -> Option<&Axis> {
        self.axes.iter().find(|a| a.competes)
    }

    /// The two axes that hold every competitor against every other, and the rest.
    pub fn pair(&self) -> Option<(&Axis, &Axis)> {
        let same = |a: &Axis, b: &Axis| {
            let all = a.values.iter().all(|v| b.values.contains(v));
            a.values.len() > 1 && a.values.len() == b.values.len() && all
        };
        let flows = self.result.cases.first().map_or(0, |c| c.flows.len());
        let pairs = self.axes.iter().enumerate().flat_map(|(i, a)| {
            let others = self.axes[i + 1..].iter();
            others.map(move |b| (a, b))
        });
        let mut pairs = pairs.filter(|&(a, b)| flows > 1 && same(a, b));
        pairs.next()
    }

    /// A value of an axis, and whose it is where several stacks vary: `b: htcp`.
    pub fn words(&self, axis: &Axis, value: &str) -> String {
        let of_stack = |a: &&Axis| a.of_stacks;
        let whose = axis.flow.as_ref().or(axis.traffic.as_ref());
        match whose.filter(|_| of_stack(&axis) && self.axes.iter().filter(of_stack).count() > 1) {
            Some(whose) => format!("{whose}: {value}"),
            None => words(axis, value),
        }
    }

    /// Every combination of the values of `inner` is a part, in the order of the cases; within it
    /// each value of `lines` is a member. `words` is how a value is called.
    pub fn parts(
        &self,
        lines: Option<&Axis>,
        inner: &[&Axis],
        words: &dyn Fn(&Axis, &str) -> String,
    ) -> Vec<Part> {
        let mut parts: Vec<(Vec<&str>, Part)> = Vec::new();
        for (i, &case) in self.cases.iter().enumerate() {
            let at: Vec<&str> = inner.iter().map(|a| self.value(i, a)).collect();
            let value = lines.map(|axis| (axis, self.value(i, axis)));
            let member = Member {
                name: value.map_or_else(String::new, |(axis, v)| words(axis, v)),
                group: value.map_or(0, |(axis, v)| {
                    axis.values.iter().position(|x| x == v).unwrap_or(0)
                }),
                groups: lines.map_or(1, |axis| axis.values.len()),
                case,
            };
            match parts.iter_mut().find(|(known, _)| *known == at) {
                Some((_, part)) => part.members.push(member),
                None => {
                    let heads = inner.iter().zip(&at).map(|(a, v)| words(a, v));
                    let title = heads.collect::<Vec<_>>().join(", ");
                    let members = vec![member];
                    parts.push((at, Part { title, members }));
                }
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Lines of what competes, a panel for every combination of the other axes.
    pub fn panels(&self) -> Result<Vec<Part>, AskedError> {
        self.panels_of(self.competitors())
    }

    /// The same of curves over time. Where flows compete within each case and all of them are
    /// drawn, values of the path are panels: a line for each flow and value could not be told
    /// apart.
    pub fn panels_over_time(&self, asked: &Asked) -> Result<Vec<Part>, AskedError> {
        let mut cases = self.cases.iter().map(|&c| self.case(c));
        let flows_compete = asked.of.is_none() && cases.any(|case| case.flows.len() > 1);
        let of_path = |a: &&Axis| {
            let is_own = !a.key.contains('.') || asked.lines.is_some();
            !is_own && a.flow.is_none() && a.traffic.is_none()
        };
        self.panels_of(self.competitors().filter(|a| !flows_compete || !of_path(a)))
    }

    fn panels_of(&self, lines: Option<&Axis>) -> Result<Vec<Part>, AskedError> {
        let is_line = |a: &&Axis| lines.is_some_and(|line| line.key == a.key);
        let others: Vec<&Axis> = self.axes.iter().filter(|a| !is_line(a)).collect();
        let parts = self.parts(lines, &others, &|axis, value| self.words(axis, value));
        if parts.len() > PANELS {
            return Err(AskedError::TooMany {
                count: parts.len(),
                axes: listed(others.into_iter()),
            });
        }
        Ok(parts)
    }

    /// The seed that is drawn, if a case has it.
    ///
    /// # Errors
    /// No case has the seed that is asked for.
    pub fn check_seed(&self, asked: &Asked) -> Result<(), AskedError> {
        let Some(seed) = asked.seed else {
            return Ok(());
        };
        let all = self.cases.iter().flat_map(|&c| &self.case(c).seeds);
        let all: BTreeSet<u64> = all.copied().collect();
        if all.contains(&seed) {
            return Ok(());
        }
        let seeds: Vec<String> = all.iter().map(u64::to_string).collect();
        let (first, last) = (all.first(), all.last());
        let in_a_row = first
            .zip(last)
            .filter(|(a, b)| **b - **a + 1 == all.len() as u64);
        Err(AskedError::Nothing {
            what: format!("no seed {seed}"),
            hint: match in_a_row {
                Some((only, last)) if only == last => format!("there is {only}"),
                Some((first, last)) => format!("there are {first} to {last}"),
                None => format!("there are {}", seeds.join(", ")),
            },
        })
    }

    /// That one of `has` is what is asked for.
    ///
    /// # Errors
    /// No case has a `what` of that name.
    pub fn check_of(
        &self,
        asked: &Asked,
        what: &str,
        has: &dyn Fn(&CaseResult) -> Vec<String>,
    ) -> Result<(), AskedError> {
        let Some(of) = &asked.of else {
            return Ok(());
        };
        let mut names: Vec<String> = Vec::new();
        for name in self.cases.iter().flat_map(|&c| has(self.case(c))) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.contains(of) {
            return Ok(());
        }
        Err(AskedError::Nothing {
            what: format!("no {what} `{of}`"),
            hint: match names.as_slice() {
                [] => format!("the result has no {what}"),
                [only] => format!("there is `{only}`"),
                _ => format!("there are {}", some_of(&quoted(&names))),
            },
        })
    }

    /// Name of the line of a flow, traffic or link, one of `count` in a case. A flow whose own
    /// stack does not compete says against what it runs, and which stack it has.
    pub fn line_name(&self, member: &Member, of: &str, count: usize) -> String {
        let case = self.case(member.case);
        let flow = case.flows.iter().find(|f| f.name == of);
        let axis = self.competitors().filter(|a| a.of_stacks);
        let competitor = axis.and_then(|a| a.flow.as_deref());
        match (member.name.as_str(), flow, competitor) {
            ("", Some(flow), _) if count == 1 => flow.stack.clone(),
            ("", Some(flow), _) => format!("{of}: {}", flow.stack),
            ("", ..) => of.to_owned(),
            (name, ..) if count == 1 => name.to_owned(),
            (name, Some(flow), Some(other)) => {
                let name = name.rsplit_once(": ").map_or(name, |(_, stack)| stack);
                match other == of || other == "*" {
                    true => format!("{of}: {name}"),
                    false => format!("{of} against {name}: {}", flow.stack),
                }
            }
            (name, Some(flow), None) => format!("{name}, {of}: {}", flow.stack),
            (name, None, _) => format!("{name}, {of}"),
        }
    }

    /// The same in a panel of its own, where the member's name does but for a flow beside one whose
    /// stack competes.
    pub fn name_in_own_panel(&self, member: &Member, of: &str) -> String {
        let is_flow = self.case(member.case).flow(of).is_some();
        let mut axes = self.competitors().into_iter();
        let stacks_compete = axes.any(|axis| axis.of_stacks && axis.flow.is_some());
        match is_flow && (stacks_compete || member.name.is_empty()) {
            true => self.line_name(member, of, 2),
            false => member.name.clone(),
        }
    }

    /// Name of a member's lines where panels say whose they are: of several flows that whose stack
    /// competes is named, `a: reno`.
    pub fn name_of_member(&self, member: &Member) -> String {
        let case = self.case(member.case);
        let axis = self.competitors().filter(|axis| axis.of_stacks);
        let flow = axis.and_then(|axis| case.flow(axis.flow.as_deref()?));
        match flow.filter(|_| case.flows.len() > 1) {
            Some(flow) => self.line_name(member, &flow.name, 2),
            None => member.name.clone(),
        }
    }

    /// The stack of a flow whose own does not compete beside one whose does, if it has the same in
    /// every case.
    pub fn stack_beside(&self, part: &Part, of: &str) -> Option<&str> {
        let axis = self.competitors().filter(|axis| axis.of_stacks)?;
        let competitor = axis.flow.as_deref().filter(|flow| *flow != of)?;
        let mut cases = part.members.iter().map(|member| self.case(member.case));
        let stack = &cases.next()?.flow(of)?.stack;
        let same = cases.all(|case| case.flow(of).is_some_and(|flow| flow.stack == *stack));
        (same && competitor != "*").then_some(stack.as_str())
    }

    /// The places of the flows, traffics or links of a drawing, which are those of `names`, in
    /// their order. The sender that competes comes first: a stack looks the same where it alone is
    /// drawn.
    pub fn places<'n>(&self, names: impl Iterator<Item = &'n str>) -> Places {
        let mut known: Vec<String> = Vec::new();
        for name in names {
            if !known.iter().any(|k| k == name) {
                known.push(name.to_owned());
            }
        }
        let competitor = self.competitors().and_then(sender);
        if let Some(at) = known.iter().position(|k| Some(k.as_str()) == competitor) {
            known[..=at].rotate_right(1);
        }
        Places(known)
    }

    /// The stacks of all flows, each with the group that its lines have in other figures.
    pub fn stack_groups(&self) -> Vec<(&str, usize)> {
        let competing = self.competitors().and_then(|a| Some((a, sender(a)?)));
        let mut found: Vec<(&str, usize)> = Vec::new();
        for (i, &case) in self.cases.iter().enumerate() {
            let Some((axis, name)) = competing else { break };
            let value = self.value(i, axis);
            let place = axis.values.iter().position(|v| v == value);
            if let Some(flow) = self.case(case).flows.iter().find(|f| f.name == name) {
                add(&mut found, &flow.stack, place.unwrap_or(0));
            }
        }
        let width = competing.map_or(1, |(axis, _)| axis.values.len());
        for flows in self.cases.iter().map(|&c| &self.case(c).flows) {
            for (i, flow) in flows.iter().enumerate() {
                add(&mut found, &flow.stack, i * width);
            }
        }
        found
    }

    /// The seed that is asked for, or how many are put together.
    pub fn seeds(&self, asked: &Asked) -> String {
        let counts = || self.cases.iter().map(|&c| self.case(c).seeds.len());
        match (asked.seed, counts().min(), counts().max()) {
            (Some(seed), ..) => format!("seed {seed}"),
            (_, Some(1), Some(1)) => "1 seed".to_owned(),
            (_, Some(least), Some(most)) if least < most => {
                format!("all {least} to {most} seeds together")
            }
            (.., most) => format!("all {} seeds together", most.unwrap_or(0)),
        }
    }

    /// The seed of what is drawn over time, where there are several.
    pub fn drawn_seed(&self, asked: &Asked) -> String {
        let seeds = || self.cases.iter().map(|&c| &self.case(c).seeds);
        let most = seeds().map(Vec::len).max().unwrap_or(0);
        let first: BTreeSet<u64> = seeds()
            .filter_map(|s| asked.seed.or(s.first().copied()))
            .collect();
        match (first.first(), first.len()) {
            (Some(seed), 1) if most > 1 => format!("seed {seed}, one of {most}"),
            (Some(_), 2..) if most > 1 => format!("the first of up to {most} seeds"),
            _ => String::new(),
        }
    }

    /// What all cases have in common, in words.
    pub fn subtitle(&self) -> String {
        let peer = self.dir.manifest().peer.as_deref();
        let why = self.result.partial().map(|why| format!("PARTIAL: {why}"));
        let parts = [Some(self.result.scenario.clone()), peer.map(as_it_is), why];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// A metric of a case, of the flow, traffic or link that is asked for.
    pub fn estimate(&self, case: usize, metric: &str, of: Option<&str>) -> Option<Estimate> {
        if metrics::scope_of(metric).is_none() {
            // The runs were read when the metric was looked at, or nothing is drawn.
            let values = self.of_seeds(case, metric, of).ok()?;
            return Some(Estimate::of(&values)).filter(|e| e.mean.is_some());
        }
        // A case without what is asked for has no value: another's must not stand in its place.
        let (flow, link) = match metrics::scope_of(metric)? {
            Scope::Case => (None, None),
            Scope::Flow | Scope::Traffic => (of, None),
            Scope::Link => (None, of),
        };
        let estimate = self.case(case).estimate(metric, flow, link)?;
        estimate.mean.is_some().then_some(estimate)
    }

    /// The same metric of each seed.
    pub fn of_seeds(
        &self,
        case: usize,
        metric: &str,
        of: Option<&str>,
    ) -> Result<Vec<Option<f64>>, AskedError> {
        let Some(scope) = metrics::scope(metric) else {
            return Ok(Vec::new());
        };
        let of_case = self.case(case);
        let expression = Expression::parse(metric).ok();
        let own = expression.iter().flat_map(|e| e.metrics());
        let own: Vec<&str> = own
            .filter(|m| metrics::scope_of(m) == Some(scope))
            .collect();
        let has = |m: &Estimates| own.iter().all(|name| m.contains_key(name));
        let flows = of_case.flows.iter().map(|f| (&f.name, &f.metrics));
        let traffic = of_case.traffic.iter().map(|t| (&t.name, &t.metrics));
        let links = of_case.links.iter().map(|l| (&l.name, &l.metrics));
        let mut rows = flows.chain(traffic).chain(links);
        let name = match scope {
            Scope::Case => None,
            _ => of.or_else(|| rows.find(|(_, m)| has(m)).map(|(name, _)| name.as_str())),
        };
        let values = self.runs()?.values(case, scope, name, metric);
        Ok(values.into_iter().map(|(_, value)| value).collect())
    }

    /// The values of single runs.
    fn runs(&self) -> Result<&Runs, AskedError> {
        if let Some(runs) = self.runs.get() {
            return Ok(runs);
        }
        let runs = Runs::of(self.dir)?;
        Ok(self.runs.get_or_init(|| runs))
    }

    /// Checks the metric and whom it is taken of: the first flow where two compete, the bottleneck
    /// where there are several links, as in an expectation; of an expression otherwise the first
    /// that has it.
    pub fn metric(&self, asked: &Asked, otherwise: &str) -> Result<Subject, AskedError> {
        let metric = asked.metric.clone().unwrap_or_else(|| otherwise.to_owned());
        if let Err(error) = Expression::parse(&metric) {
            return Err(AskedError::Nothing {
                what: format!("metric `{metric}`: {error}"),
                hint: error
                    .hint
                    .unwrap_or_else(|| "`fullpipe list metrics` shows all".to_owned()),
            });
        }
        // An expression is computed from them: a damaged file is no lack of values.
        if metrics::scope_of(&metric).is_none() {
            self.runs()?;
        }
        let names = self.names();
        if let Some(of) = &asked.of
            && !names.contains(of)
        {
            return Err(AskedError::Nothing {
                what: format!("no flow, traffic or link is called `{of}`"),
                hint: format!("there are {}", names.join(", ")),
            });
        }
        let has = |of: Option<&str>| {
            let mut cases = self.cases.iter();
            cases.any(|&c| self.estimate(c, &metric, of).is_some())
        };
        let having = || -> Vec<String> {
            let all = names.iter().filter(|n| has(Some(n.as_str())));
            all.cloned().collect()
        };
        // An expression of no flow in particular is that of the first row that has its metrics.
        let computed = metrics::scope_of(&metric).is_none()
            && metrics::scope(&metric) != Some(Scope::Case)
            && having().len() > 1;
        let first = self.pair().and_then(|(first, _)| first.flow.clone());
        let usual = || {
            let computed = having().into_iter().filter(|_| computed);
            let of_two = first.into_iter().chain([BOTTLENECK.to_owned()]);
            of_two.chain(computed)
        };
        let of = match &asked.of {
            Some(of) => Some(of.clone()),
            None if !computed && has(None) => None,
            None => usual().find(|of| has(Some(of))),
        };
        if has(of.as_deref()) {
            let chosen = of.clone().filter(|_| asked.of.is_none());
            let taken = chosen.map(|of| Taken {
                others: (having().into_iter())
                    .filter(|n| *n != of && !self.only_delays(n))
                    .collect(),
                of,
            });
            let taken = taken.filter(|t| !t.others.is_empty());
            return Ok(Subject { metric, of, taken });
        }
        match (having().as_slice(), &asked.of) {
            ([], _) => Err(AskedError::Nothing {
                what: format!("no case has a value of `{metric}`"),
                hint: "`fullpipe list metrics` says what each is taken of".to_owned(),
            }),
            (having, Some(of)) => Err(AskedError::Nothing {
                what: format!("no case has a value of `{metric}` of `{of}`"),
                hint: format!("these have one: {}", some_of(having)),
            }),
            _ => Err(AskedError::Several {
                of: some_of(&having()),
                metric,
            }),
        }
    }

    /// True of a link that nobody would ask for.
    fn only_delays(&self, name: &str) -> bool {
        let links = self.cases.iter().filter_map(|&c| self.case(c).link(name));
        let mut links = links.peekable();
        links.peek().is_some() && links.all(LinkResult::only_delays)
    }

    /// Flows, traffic and links.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for case in self.cases.iter().map(|&c| self.case(c)) {
            let flows = case.flows.iter().map(|f| &f.name);
            let traffic = case.traffic.iter().map(|t| &t.name);
            let links = case.links.iter().map(|l| &l.name);
            for name in flows.chain(traffic).chain(links) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        names
    }
}

/// `goodput (Mbit/s)`, `main` before it where a name was asked for.
pub(super) fn metric_words(metric: &str, of: Option<&str>) -> String {
    let unit = metrics::unit(metric);
    if metrics::scope_of(metric).is_none() {
        return of.map_or_else(String::new, |of| format!("{of}: ")) + metric;
    }
    let words = metrics::plain_words(metric);
    let words = match unit {
        "" | "1" => words,
        unit if words.ends_with(unit) => words,
        unit => format!("{words} ({unit})"),
    };
    match of {
        Some(of) => format!("{of}: {words}"),
        None => words,
    }
}

/// Adds a stack that is not known yet: with this group, or with the next that is free.
fn add<'s>(known: &mut Vec<(&'s str, usize)>, stack: &'s str, group: usize) {
    if known.iter().any(|(name, _)| *name == stack) {
        return;
    }
    let mut free = group;
    while known.iter().any(|(_, taken)| *taken == free) {
        free += 1;
    }
    known.push((stack, free));
}

/// The flow or traffic whose values an axis has.
fn sender(axis: &Axis) -> Option<&str> {
    axis.flow.as_deref().or(axis.traffic.as_deref())
}

/// A value of an axis: stacks and names of cases stand for themselves.
pub(super) fn words(axis: &Axis, value: &str) -> String {
    match axis.plain {
        true => value.to_owned(),
        false => format!("{} {value}", axis.label.replace('_', " ")),
    }
}

/// The refusal of a key that has no values to be told apart.
fn no_lines(key: &str, axes: &[Axis]) -> AskedError {
    let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
    AskedError::Nothing {
        what: format!("--lines: `{key}` is no key that varies among the cases"),
        hint: match keys.as_slice() {
            [] => "there is one case only".to_owned(),
            [only] => format!("`{only}` varies"),
            _ => format!("these vary: `{}`", keys.join("`, `")),
        },
    }
}

/// `path.rtt (20ms, 80ms), path.mtu (1500, 9000)`.
fn listed<'b>(axes: impl Iterator<Item = &'b Axis>) -> String {
    let all: Vec<String> = axes
        .map(|a| format!("{} ({})", a.key, a.values.join(", ")))
        .collect();
    all.join(", ")
}

/// The link of `[path]`.
const BOTTLENECK: &str = "bottleneck";

fn quoted(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("`{name}`")).collect()
}

/// The first of many names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let told = names.len().min(TOLD);
    let more = match names.len() - told {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names[..told].join(", ") + &more
}

/// Names in a message.
const TOLD: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_has_words_and_its_unit() {
        for (name, words) in [
            ("goodput_mbps", "goodput (Mbit/s)"),
            ("rtt_ms.p95", "rtt p95 (ms)"),
            ("jain", "jain"),
            ("loss_events", "loss events"),
            ("cwnd_segments.mean", "cwnd mean (segments)"),
        ] {
            assert_eq!(metric_words(name, None), words);
        }
        assert_eq!(metric_words("jain", Some("a")), "a: jain");
        assert_eq!(metric_words("jain / 2", Some("a")), "a: jain / 2");
    }
}
