//! `[[expect]]` and `[[report]]`: bounds and figures, held against the flows, the metrics and the matrix.

use super::document::{Data, Entry, Node, Place, shorten};
use super::matrix::{Axis, AxisValue, Names, digits, moved};
use super::value::{Reader, Record, Value, nearest, quoted};
use super::{Against, Case, Expectation, Precision, Report};
use crate::metrics::{self, Scope};

/// What expectations and reports may refer to.
pub(super) struct Known<'a> {
    pub names: &'a Names,
    pub axes: &'a [Axis],
    /// Empty if the cases could not be resolved.
    pub cases: &'a [Case],
    /// Read with `--quick`.
    pub quick: bool,
}

/// Reads the expectations; one that `--set` has left without a case is dropped.
pub(super) fn expectations(
    reader: &mut Reader<'_>,
    tables: &[Value],
    known: &Known<'_>,
) -> Vec<Expectation> {
    let mut all = Vec::new();
    if tables.len().saturating_mul(known.cases.len()) > MAX_COMPARISONS {
        if let Some(Value::Record(first)) = tables.first() {
            let message = "too many expectations for so many cases";
            reader.refuse_key(
                first.at,
                "expect",
                message,
                Some("split the scenario".to_owned()),
            );
        }
        return all;
    }
    for (i, table) in tables.iter().enumerate() {
        if let Value::Record(record) = table {
            let path = format!("expect[{}]", i + 1);
            all.extend(
                Expect {
                    record,
                    path,
                    known,
                }
                .read(reader),
            );
        }
    }
    all
}

/// Reads the figures.
pub(super) fn reports(reader: &mut Reader<'_>, tables: &[Value], known: &Known<'_>) -> Vec<Report> {
    let mut all = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        let Value::Record(record) = table else {
            continue;
        };
        let path = format!("report[{}]", i + 1);
        let figure = match record.word("figure") {
            Some(figure) => figure,
            None if record.is_attempted("figure") => continue,
            None => "cwnd",
        };
        let flow = record.text("flow");
        if let Some(flow) = &flow {
            check_flow(reader, record, &path, flow, known.names);
        }
        let (needed, own): (&[(&str, &str)], &[&str]) = match figure {
            "metric" => (&[("y", r#"y = "goodput_mbps""#)], &["x", "y"]),
            "matrix" => (
                &[
                    ("x", r#"x = "flow.a.stack""#),
                    ("y", r#"y = "flow.b.stack""#),
                    ("metric", r#"metric = "asymmetry""#),
                ],
                &["x", "y", "metric"],
            ),
            _ => (&[], &[]),
        };
        for (key, line) in needed.iter().filter(|(key, _)| !record.is_attempted(key)) {
            missing(reader, record, &path, key, line);
        }
        for key in ["x", "y", "metric"] {
            if !own.contains(&key) && record.is_given(key) {
                let message = format!("a figure `{figure}` does not have this key");
                let hint = match key {
                    "metric" => "write figure = \"matrix\", or `y` for figure = \"metric\"",
                    _ => "write figure = \"metric\" or \"matrix\"",
                };
                let at = record.place(key);
                reader.refuse(at, &format!("{path}.{key}"), message, Some(hint.to_owned()));
            }
        }
        let metric = if figure == "metric" { "y" } else { "metric" };
        if let Some(name) = record.text(metric) {
            check_metric(
                reader,
                record.place(metric),
                &format!("{path}.{metric}"),
                &name,
            );
        }
        let axes: &[&str] = if figure == "matrix" {
            &["x", "y"]
        } else {
            &["x"]
        };
        for axis in axes {
            let Some(key) = record.text(axis) else {
                continue;
            };
            if known.axes.iter().any(|axis| axis.key == key) {
                continue;
            }
            let hint = axis_hint(&key, known.axes);
            let message = "this key is not varied in [matrix]";
            reader.refuse(
                record.place(axis),
                &format!("{path}.{axis}"),
                message,
                Some(hint),
            );
        }
        let same = figure == "matrix" && record.text("x") == record.text("y");
        if same && record.is_given("x") {
            let message = "both axes are the same";
            let hint = Some("name two keys of [matrix]".to_owned());
            reader.refuse(record.place("y"), &format!("{path}.y"), message, hint);
        }
        let text = |key| record.text(key);
        all.push(Report {
            figure: figure.to_owned(),
            flow,
            x: text("x"),
            y: text("y"),
            metric: text("metric"),
            title: text("title"),
        });
    }
    all
}

/// `precision` and what belongs to it.
pub(super) fn precision(reader: &mut Reader<'_>, measure: &Record) -> Option<Precision> {
    if !measure.is_given("precision") {
        for key in ["precision_of", "max_seeds"] {
            if measure.is_given(key) && !measure.is_attempted("precision") {
                let message = "nothing is repeated without `precision`";
                let hint = Some("write precision = \"2%\"".to_owned());
                reader.refuse(measure.place(key), &format!("measure.{key}"), message, hint);
            }
        }
        return None;
    }
    let target = measure.real("precision")?;
    if target <= 0.0 {
        let message = "no number of seeds is so precise";
        let hint = Some("write for example \"2%\"".to_owned());
        reader.refuse(
            measure.place("precision"),
            "measure.precision",
            message,
            hint,
        );
        return None;
    }
    let mut of = Vec::new();
    for value in measure.many("precision_of") {
        if let Value::Text(name) = value {
            let at = measure.place("precision_of");
            check_metric(reader, at, "measure.precision_of", name);
            of.push(name.clone());
        }
    }
    if of.is_empty() {
        of.push("goodput_mbps".to_owned());
    }
    let most = measure
        .whole("max_seeds")
        .and_then(|n| u32::try_from(n).ok());
    Some(Precision {
        target,
        of,
        max_seeds: most.unwrap_or(DEFAULT_MAX_SEEDS),
    })
}

/// The case that each one is held against by `measure.baseline`.
pub(super) fn baselines(
    reader: &mut Reader<'_>,
    measure: &Record,
    known: &Known<'_>,
) -> Vec<Option<usize>> {
    let none = || vec![None; known.cases.len()];
    let table = Expect {
        record: measure,
        path: "measure".to_owned(),
        known,
    };
    let Some(Picked::Cases(_, values)) = table.picked("baseline", reader) else {
        return none();
    };
    let to: Vec<(usize, usize)> = values
        .into_iter()
        .filter_map(|(axis, values)| Some((axis, *values.first()?)))
        .collect();
    if to.is_empty() {
        return none();
    }
    let of = |case: usize| Some(moved(case, known.axes, &to)).filter(|base| *base != case);
    (0..known.cases.len()).map(of).collect()
}

struct Expect<'a> {
    record: &'a Record,
    path: String,
    known: &'a Known<'a>,
}

impl Expect<'_> {
    fn read(&self, reader: &mut Reader<'_>) -> Option<Expectation> {
        let before = reader.faults.len();
        let r = self.record;
        if !r.is_attempted("metric") {
            missing(
                reader,
                r,
                &self.path,
                "metric",
                r#"metric = "goodput_mbps""#,
            );
        }
        let metric = r.text("metric");
        let scope = metric.as_ref().and_then(|metric| {
            check_metric(reader, r.place("metric"), &self.key("metric"), metric)
        });
        let against = self.against(reader);
        let peer = match against {
            Against::Bound => Some(Picked::Cases(Vec::new(), Vec::new())),
            Against::Agreement => self.picked("agrees_with", reader),
            Against::Ratio => self.picked("ratio_to", reader),
        };
        let bound = self.bound(reader);
        let picked = self.picked("where", reader);
        let (flow, link) = match scope {
            Some(scope) => self.subject(reader, scope),
            None => (None, None),
        };
        let (metric, bound, picked, peer) = (metric?, bound?, picked?, peer?);
        if reader.faults.len() > before
            || r.flag("quick")
                .is_some_and(|quick| quick != self.known.quick)
        {
            return None;
        }
        let (Picked::Cases(where_, constraints), Picked::Cases(_, peer)) = (picked, peer) else {
            return None;
        };
        let cases: Vec<usize> = (0..self.known.cases.len())
            .filter(|case| {
                let digits = digits(*case, self.known.axes);
                constraints
                    .iter()
                    .all(|(axis, values)| values.contains(&digits[*axis]))
            })
            .collect();
        let peer: Vec<(usize, usize)> = peer
            .into_iter()
            .filter_map(|(axis, values)| Some((axis, *values.first()?)))
            .collect();
        self.check_subject(reader, &cases, link.as_deref(), &metric);
        let pairs: Vec<(usize, usize)> = match peer.as_slice() {
            [] => Vec::new(),
            peer => cases
                .iter()
                .map(|case| (*case, moved(*case, self.known.axes, peer)))
                .filter(|(case, peer)| case != peer)
                .collect(),
        };
        let left_out = |(axis, _): &(usize, usize)| !self.known.axes[*axis].replaced.is_empty();
        if !peer.is_empty() && pairs.is_empty() && peer.iter().any(left_out) {
            return None;
        }
        if !peer.is_empty() && pairs.is_empty() {
            let key = against.key();
            let message = "every case would be held against itself";
            let hint = format!("name in `where` what `{key}` replaces");
            reader.refuse(r.place(key), &self.key(key), message, Some(hint));
            return None;
        }
        let name = r.text("name").unwrap_or_else(|| {
            let mut name = metric.clone();
            let subject = match (&flow, &link) {
                (Some(flow), _) if self.known.names.flows.len() > 1 => Some(flow),
                (_, Some(link)) => Some(link),
                _ => None,
            };
            if let Some(subject) = subject {
                name.push_str(&format!(" of {subject}"));
            }
            for (i, (key, value)) in where_.iter().enumerate() {
                name.push_str(if i == 0 { ": " } else { ", " });
                name.push_str(&format!("{key} = {value}"));
            }
            if against == Against::Ratio
                && let Some(Value::Free(entries)) = r.field("ratio_to").map(|field| &field.value)
            {
                name.push_str(" over");
                for entry in entries {
                    let value = entry.node.plain(reader.sources);
                    name.push_str(&format!(" {} = {value}", entry.name));
                }
            }
            name
        });
        Some(Expectation {
            name,
            metric,
            flow,
            link,
            where_,
            bound,
            source: r.text("source").unwrap_or_default(),
            line: reader.sources.line(r.at),
            cases,
            pairs,
            against,
        })
    }

    fn against(&self, reader: &mut Reader<'_>) -> Against {
        let r = self.record;
        match (r.is_given("agrees_with"), r.is_given("ratio_to")) {
            (true, true) => {
                let message = "contradicts `agrees_with`";
                let hint = Some("keep one of them".to_owned());
                reader.refuse(r.place("ratio_to"), &self.key("ratio_to"), message, hint);
                Against::Agreement
            }
            (true, false) => Against::Agreement,
            (false, true) => Against::Ratio,
            (false, false) => Against::Bound,
        }
    }

    fn bound(&self, reader: &mut Reader<'_>) -> Option<(f64, f64)> {
        let r = self.record;
        let forms = ["within", "at_least", "at_most", "equals"];
        let given: Vec<&str> = forms.into_iter().filter(|form| r.is_given(form)).collect();
        if r.is_given("tolerance") && !r.is_given("equals") {
            let message = "a tolerance belongs to `equals`";
            let hint = Some("write `equals` beside it, or `within = [low, high]`".to_owned());
            reader.refuse(r.place("tolerance"), &self.key("tolerance"), message, hint);
        }
        match given.as_slice() {
            ["within"] => match r.field("within").map(|field| &field.value) {
                Some(Value::Bounds(low, high)) => Some((*low, *high)),
                _ => None,
            },
            ["at_least"] => Some((r.real("at_least")?, f64::INFINITY)),
            ["at_most"] => Some((f64::NEG_INFINITY, r.real("at_most")?)),
            ["at_least", "at_most"] => {
                let (low, high) = (r.real("at_least")?, r.real("at_most")?);
                if low > high {
                    let message = format!("the lower bound {low} is above the upper one");
                    let hint = Some(format!("write within = [{high}, {low}]"));
                    reader.refuse(r.place("at_most"), &self.key("at_most"), message, hint);
                }
                Some((low, high))
            }
            ["equals"] => {
                let value = r.real("equals")?;
                match r.field("tolerance").map(|field| &field.value) {
                    Some(Value::Tolerance(part, true)) => Some(around(value, part * value.abs())),
                    Some(Value::Tolerance(distance, false)) => Some(around(value, *distance)),
                    Some(_) => None,
                    None => {
                        let hint = "write for example tolerance = \"1%\", or tolerance = 0";
                        reader.refuse_key(
                            r.at,
                            &self.key("tolerance"),
                            "this key is missing",
                            Some(hint.to_owned()),
                        );
                        None
                    }
                }
            }
            [] if r.is_given("agrees_with") && !r.is_given("ratio_to") => {
                Some((f64::NEG_INFINITY, f64::INFINITY))
            }
            [] => {
                let hint = "give `within`, `at_least`, `at_most` or `equals`";
                reader.refuse_key(
                    r.at,
                    &self.path,
                    "an expectation without a bound",
                    Some(hint.to_owned()),
                );
                None
            }
            [.., last] => {
                let message = format!("several bounds: {}", given.join(", "));
                reader.refuse(
                    r.place(last),
                    &self.key(last),
                    message,
                    Some("keep one of them".to_owned()),
                );
                None
            }
        }
    }

    /// Axis values that `key` (`where` or `agrees_with`) names.
    fn picked(&self, key: &str, reader: &mut Reader<'_>) -> Option<Picked> {
        let Some(field) = self.record.field(key) else {
            return Some(Picked::Cases(Vec::new(), Vec::new()));
        };
        let Value::Free(entries) = &field.value else {
            return None;
        };
        let before = reader.faults.len();
        let mut where_ = Vec::new();
        let mut constraints = Vec::new();
        let mut gone = false;
        for entry in entries {
            match self.constraint(key, reader, entry)? {
                Constraint::Values(axis, values) => {
                    let axis_known = &self.known.axes[axis];
                    let plain: Vec<&str> = values
                        .iter()
                        .map(|value| axis_known.values[*value].plain.as_str())
                        .collect();
                    where_.push((axis_known.key.clone(), plain.join(", ")));
                    constraints.push((axis, values));
                }
                Constraint::Gone => gone = true,
            }
        }
        if reader.faults.len() > before {
            return None;
        }
        Some(if gone {
            Picked::Gone
        } else {
            Picked::Cases(where_, constraints)
        })
    }

    fn constraint(&self, key: &str, reader: &mut Reader<'_>, entry: &Entry) -> Option<Constraint> {
        let key = format!("{}.\"{}\"", self.key(key), shorten(&entry.name));
        let Some(i) = self
            .known
            .axes
            .iter()
            .position(|axis| axis.key == entry.name)
        else {
            let hint = axis_hint(&entry.name, self.known.axes);
            reader.refuse_key(
                entry.name_at,
                &key,
                "this key is not varied in [matrix]",
                Some(hint),
            );
            return None;
        };
        // A list names several values, except where the key's own values are lists.
        let lists = |value: &AxisValue| value.canonical.starts_with('[');
        let nodes = match &entry.node.data {
            Data::List(nodes) if !self.known.axes[i].values.iter().any(lists) => {
                if nodes.is_empty() || !key.starts_with(&self.key("where")) {
                    let message = "one value is meant here";
                    reader.refuse(entry.node.at, &key, message, None);
                    return None;
                }
                nodes.as_slice()
            }
            _ => std::slice::from_ref(&entry.node),
        };
        let mut values = Vec::new();
        for node in nodes {
            values.extend(self.axis_value(i, reader, node, &key)?);
        }
        values.sort_unstable();
        values.dedup();
        Some(if values.is_empty() {
            Constraint::Gone
        } else {
            Constraint::Values(i, values)
        })
    }

    /// Position of a value on an axis; `Some(None)` if `--set` has replaced it.
    fn axis_value(
        &self,
        axis: usize,
        reader: &mut Reader<'_>,
        node: &Node,
        key: &str,
    ) -> Option<Option<usize>> {
        let axis = &self.known.axes[axis];
        let canonical = match axis.names {
            Some(named) => reader
                .value(&named.kind, node, key, named.example)?
                .canonical(),
            None => node.plain(reader.sources),
        };
        let at = |values: &[AxisValue]| values.iter().position(|v| v.canonical == canonical);
        if let Some(v) = at(&axis.values) {
            return Some(Some(v));
        }
        if at(&axis.replaced).is_some() {
            return Some(None);
        }
        let values = || {
            axis.values
                .iter()
                .chain(&axis.replaced)
                .map(|value| value.plain.as_str())
        };
        let written = node.plain(reader.sources);
        let hint = match nearest(&written, values()) {
            Some(near) => format!("did you mean {near}?"),
            None => format!(
                "its values: {}",
                values().take(12).collect::<Vec<_>>().join(", ")
            ),
        };
        let message = if key.starts_with("measure.") {
            "no case has this value"
        } else {
            "no case has this value: the expectation could not fail"
        };
        reader.refuse(node.at, key, message, Some(hint));
        None
    }

    fn subject(&self, reader: &mut Reader<'_>, scope: Scope) -> (Option<String>, Option<String>) {
        let r = self.record;
        let (flow, link) = (r.text("flow"), r.text("link"));
        let superfluous = match scope {
            Scope::Flow | Scope::Traffic => link
                .is_some()
                .then_some(("link", "this is a metric of a flow")),
            Scope::Link => flow
                .is_some()
                .then_some(("flow", "this is a metric of a link")),
            Scope::Case if flow.is_some() => Some(("flow", "this is a metric of the whole case")),
            Scope::Case => link
                .is_some()
                .then_some(("link", "this is a metric of the whole case")),
        };
        if let Some((key, message)) = superfluous {
            reader.refuse(
                r.place(key),
                &self.key(key),
                message,
                Some(format!("remove `{key}`")),
            );
            return (None, None);
        }
        match scope {
            // Without a name the only row of this kind is meant.
            Scope::Traffic if flow.is_none() => (None, None),
            Scope::Flow | Scope::Traffic => {
                let names = self.known.names;
                let flows = names.flows.as_slice();
                match (flow, flows) {
                    (Some(flow), _) => {
                        check_flow(reader, r, &self.path, &flow, names);
                        (Some(flow), None)
                    }
                    (None, [only]) => (Some(only.clone()), None),
                    (None, []) => (None, None),
                    (None, [first, ..]) if !r.is_given("flow") => {
                        let hint = format!("write for example flow = \"{first}\"");
                        reader.refuse_key(
                            r.at,
                            &self.key("flow"),
                            "which flow is meant?",
                            Some(hint),
                        );
                        (None, None)
                    }
                    _ => (None, None),
                }
            }
            Scope::Link => (None, Some(link.unwrap_or_else(|| "bottleneck".to_owned()))),
            Scope::Case => (None, None),
        }
    }

    fn check_subject(
        &self,
        reader: &mut Reader<'_>,
        cases: &[usize],
        link: Option<&str>,
        metric: &str,
    ) {
        let connections = |case: &Case| case.spec.flows.len();
        for &i in cases {
            let case = &self.known.cases[i];
            if let Some(link) = link {
                let links = || case.spec.links.iter().map(|link| link.name.as_str());
                if !links().any(|name| name == link) {
                    let hint = match nearest(link, links()) {
                        Some(near) => format!("did you mean \"{near}\"?"),
                        None => format!("known: {}", quoted(links())),
                    };
                    let message = format!("there is no link `{}`", shorten(link));
                    reader.refuse(
                        self.record.place("link"),
                        &self.key("link"),
                        message,
                        Some(hint),
                    );
                    return;
                }
            }
            if metric == "asymmetry" && case.flows.len() != 2 {
                let message = format!(
                    "asymmetry compares two flows, there are {}",
                    case.flows.len()
                );
                reader.refuse(
                    self.record.place("metric"),
                    &self.key("metric"),
                    message,
                    Some("use jain".to_owned()),
                );
                return;
            }
            if metric == "jain" && connections(case) < 2 {
                let message = "fairness of one flow is always 1: the expectation could not fail";
                let hint = Some("add a [[flow]], or set `streams`".to_owned());
                reader.refuse(
                    self.record.place("metric"),
                    &self.key("metric"),
                    message,
                    hint,
                );
                return;
            }
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }
}

enum Picked {
    /// `where` as the cases spell it, and positions of axis and values.
    Cases(Vec<(String, String)>, Vec<(usize, Vec<usize>)>),
    /// `--set` has replaced a value it asks for.
    Gone,
}

enum Constraint {
    Values(usize, Vec<usize>),
    Gone,
}

/// `value - distance` and `value + distance` as people write them: 0.3298773, not 0.32987730000000004.
fn around(value: f64, distance: f64) -> (f64, f64) {
    let tidy = |x: f64| format!("{x:.12e}").parse().unwrap_or(x);
    (tidy(value - distance), tidy(value + distance))
}

fn check_metric(reader: &mut Reader<'_>, at: Place, key: &str, name: &str) -> Option<Scope> {
    if let Some(scope) = metrics::scope_of(name) {
        return Some(scope);
    }
    let names = metrics::names;
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean \"{near}\"? see `fullpipe list metrics`"),
        None => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
    };
    reader.refuse(at, key, "unknown metric", Some(hint));
    None
}

fn check_flow(reader: &mut Reader<'_>, record: &Record, path: &str, flow: &str, names: &Names) {
    let names = || names.flows.iter().chain(&names.traffic).map(String::as_str);
    if names().any(|name| name == flow) {
        return;
    }
    let hint = match nearest(flow, names()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known: {}", quoted(names())),
    };
    let message = format!("there is no flow `{}`", shorten(flow));
    reader.refuse(
        record.place("flow"),
        &format!("{path}.flow"),
        message,
        Some(hint),
    );
}

fn axis_hint(name: &str, axes: &[Axis]) -> String {
    let keys = || axes.iter().map(|axis| axis.key.as_str());
    match nearest(name, keys()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if axes.is_empty() => "there is no [matrix]: leave this out".to_owned(),
        None => format!("varied: {}", keys().collect::<Vec<_>>().join(", ")),
    }
}

fn missing(reader: &mut Reader<'_>, record: &Record, path: &str, key: &str, line: &str) {
    let hint = Some(format!("write for example {line}"));
    reader.refuse_key(
        record.at,
        &format!("{path}.{key}"),
        "this key is missing",
        hint,
    );
}

const DEFAULT_MAX_SEEDS: u32 = 30;
const MAX_COMPARISONS: usize = 20_000_000;
