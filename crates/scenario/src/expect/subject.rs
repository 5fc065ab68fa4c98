//! Of what an expectation's metric is taken: a flow, traffic, a link or the whole case.

use super::table::{Known, Referring};
use crate::case::Case;
use crate::document::shorten;
use crate::keys::Expect;
use crate::value::{Reader, did_you_mean};
use fullpipe_cc::{Controller as _, Setup};
use fullpipe_metrics::{Expression, Metric, Scope, scope_of};

const ASYMMETRY: &Metric = Metric::case("asymmetry");
const JAIN: &Metric = Metric::case("jain");
const COMPLETION: &Metric = Metric::flow("completion_time_s");
/// Links that a hint names at most.
const MOST_NAMES: usize = 12;
/// The stack that `--kernel-module` stands for.
const OWN_MODULE: &str = "own-linux";

/// The flow or the link that is meant.
pub(super) fn subject(
    reader: &mut Reader<'_>,
    table: &Referring<'_, Expect>,
    scope: Scope,
) -> (Option<String>, Option<String>) {
    let flow = table.flow.clone();
    let link: Option<String> = table.record.get(&Expect::link);
    // An expression over metrics of a flow and of a link is of both.
    let metric = table.metric.as_deref().unwrap_or_default();
    let expression = Expression::parse(metric)
        .ok()
        .filter(|_| scope_of(metric).is_none());
    let names = expression.iter().flat_map(|e| e.metrics());
    let with_link =
        scope != Scope::Link && names.into_iter().any(|m| scope_of(m) == Some(Scope::Link));
    let link = link.filter(|_| !with_link);
    let of_link = with_link.then(|| table.link.clone());
    let superfluous = match scope {
        Scope::Flow | Scope::Traffic => link
            .is_some()
            .then_some((Expect::link, "this is a metric of a flow")),
        Scope::Link => flow
            .is_some()
            .then_some((Expect::flow, "this is a metric of a link")),
        Scope::Case if flow.is_some() => Some((Expect::flow, "this is a metric of the whole case")),
        Scope::Case => link
            .is_some()
            .then_some((Expect::link, "this is a metric of the whole case")),
    };
    if let Some((key, message)) = superfluous {
        let hint = format!("remove `{}`", key.name);
        table.refuse(reader, &key, message, hint);
        return (None, None);
    }
    let is_of_traffic = |part: &String| scope_of(part) == Some(Scope::Traffic);
    if parts(metric).iter().any(is_of_traffic) {
        let names = table.known.names;
        if names.traffic.is_empty() {
            let message = "this is a metric of traffic, and there is none";
            let hint = "add a [[traffic]], or choose a metric of a flow: `fullpipe list metrics`";
            table.refuse(reader, &Expect::metric, message, hint);
            return (None, None);
        }
        if let Some(flow) = flow.as_ref().filter(|flow| names.flows.contains(flow)) {
            let message = format!("`{flow}` is a flow, and this is a metric of traffic");
            let hint = did_you_mean(flow, names.traffic.iter().map(String::as_str));
            table.refuse(reader, &Expect::flow, message, hint);
            return (None, None);
        }
    }
    match scope {
        // Without a name the only row of this kind is meant.
        Scope::Traffic if flow.is_none() => (None, of_link),
        Scope::Flow | Scope::Traffic => match (flow, table.known.names.flows.as_slice()) {
            (Some(flow), _) => {
                table.flow(reader, &Expect::flow, &flow);
                (Some(flow), of_link)
            }
            (None, [only]) => (Some(only.clone()), of_link),
            (None, [first, _, ..]) if !table.is_given(&Expect::flow) => {
                let hint = format!("write for example flow = \"{first}\"");
                table.lacks(reader, &Expect::flow, "which flow is meant?", hint);
                (None, None)
            }
            _ => (None, None),
        },
        Scope::Link => (None, Some(table.link.clone())),
        Scope::Case => (None, None),
    }
}

/// Sees to it that each of these cases has the link, and that the metric says something about it.
pub(super) fn check(
    reader: &mut Reader<'_>,
    table: &Referring<'_, Expect>,
    cases: &[usize],
    (flow, link): (Option<&str>, Option<&str>),
    metric: &str,
) {
    let parts = parts(metric);
    for case in cases.iter().map(|&i| &table.known.cases[i]) {
        if let Some(link) = link {
            let links = || case.spec.links().map(|link| link.name.as_str());
            if !are_links_broken(reader) && !links().any(|name| name == link) {
                if !table.is_attempted(&Expect::link) {
                    let names = links().take(MOST_NAMES).map(|name| format!("\"{name}\""));
                    let names: Vec<String> = names.collect();
                    let hint = format!("write link = {}", names.join(" or "));
                    table.lacks(reader, &Expect::link, "which link is meant?", hint);
                    return;
                }
                let message = format!("there is no link `{}`", shorten(link));
                table.refuse(reader, &Expect::link, message, did_you_mean(link, links()));
                return;
            }
        }
        let flows = case.flows.len();
        if metric == ASYMMETRY.name && flows != 2 {
            let message = format!("asymmetry compares two flows, there are {flows}");
            table.refuse(reader, &Expect::metric, message, "use jain");
            return;
        }
        if metric == JAIN.name && case.spec.flows().len() < 2 {
            let message = "fairness of one flow is always 1: the expectation could not fail";
            let hint = "add a [[flow]], or set `streams`";
            table.refuse(reader, &Expect::metric, message, hint);
            return;
        }
        let never = flow.and_then(|flow| parts.iter().find_map(|part| never(case, flow, part)));
        if let Some((message, hint)) = never {
            table.refuse(reader, &Expect::metric, message, hint);
            return;
        }
    }
}

/// The metrics that a metric or an expression is made of.
pub(super) fn parts(metric: &str) -> Vec<String> {
    let parsed = Expression::parse(metric);
    let names = parsed.iter().flat_map(|e| e.metrics());
    names.map(str::to_owned).collect()
}

/// Why a flow never has a metric, and the remedy.
fn never(case: &Case, flow: &str, metric: &str) -> Option<(String, String)> {
    let group = case.flows.iter().find(|group| group.name == flow)?;
    let members = || {
        let all = case.spec.flows();
        all.skip(group.members.start).take(group.members.len())
    };
    if metric == COMPLETION.name && members().any(|f| f.sender.transfer.is_none()) {
        let message = format!("`{flow}` has no end, so no completion time");
        return Some((message, "give it a `size`".to_owned()));
    }
    let (variable, _) = metric.strip_prefix("var.")?.rsplit_once('.')?;
    let mut known: Vec<&str> = Vec::new();
    for member in members() {
        // What comes later, or from a module of the kernel, has variables of its own.
        if !member.changes.is_empty() || member.stack.law_name() == OWN_MODULE {
            return None;
        }
        let stack = member.stack.controller(Setup::default());
        stack.report(&mut |name, _| known.push(name));
    }
    if known.contains(&variable) {
        return None;
    }
    known.sort_unstable();
    known.dedup();
    let stack = members().next().map(|f| f.stack.to_string());
    let stack = stack.unwrap_or_default();
    let message = format!("`{stack}` has no variable `{}`", shorten(variable));
    let hint = match known.as_slice() {
        [] => "it reports none".to_owned(),
        _ => format!("it has {}", known.join(", ")),
    };
    Some((message, hint))
}

/// What is wrong, and the remedy, where a metric against a baseline finds nothing to be held
/// against.
pub(super) fn without_baseline(known: &Known<'_>) -> (&'static str, String) {
    if known.cases.iter().any(|case| case.baseline.is_some()) {
        return (
            "this is a metric against the baseline, which is not held against itself",
            "name other cases in `where`, or leave it out".to_owned(),
        );
    }
    let example = known.axes.first().map_or_else(String::new, |axis| {
        let value = axis.values.first().map(|value| value.json.to_string());
        let value = value.unwrap_or_default();
        format!(
            ", for example `baseline = {{ \"{}\" = {value} }}`",
            axis.key
        )
    });
    (
        "this is a metric against a baseline, and no case has one",
        format!("name it in [measure] by keys and values of [matrix]{example}"),
    )
}

/// True if a fault is in what the links are made of: then they are missing for that reason.
pub(super) fn are_links_broken(reader: &Reader<'_>) -> bool {
    let mut faults = reader.findings.faults.iter();
    faults.any(|fault| {
        let table = fault.key.split(['.', '[']).next();
        matches!(table, Some("path" | "link"))
    })
}
