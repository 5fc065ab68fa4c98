//! `[[expect]]` and what else refers to flows, metrics and the matrix: `[[report]]`, `baseline` and
//! `precision` and `agreement` of `[measure]`.

mod agreement;
mod bound;
mod pick;
mod precision;
mod report;
mod subject;
mod table;

use super::keys::Expect;
use super::matrix::Axis;
use super::scenario::{Against, Expectation, HoldsFor, Inapplicable};
use super::value::{At, Reader, Record};
use fullpipe_metrics::needs_baseline;
use pick::{Choice, Pick, Picked};
use table::Referring;

pub(super) use agreement::agreement;
pub(super) use pick::baselines;
pub(super) use precision::precision;
pub(super) use report::reports;
pub(super) use table::Known;

/// Reads the expectations; one that `--set` has left without a case is dropped. One that is invalid
/// in a wrong world only is no fault of the file.
pub(super) fn expectations(
    reader: &mut Reader<'_>,
    tables: &[Record],
    known: &Known<'_>,
) -> (Vec<Expectation>, Vec<Inapplicable>) {
    let (mut all, mut inapplicable) = (Vec::new(), Vec::new());
    if tables.len().saturating_mul(known.cases.len()) > MAX_COMPARISONS {
        if let Some(first) = tables.first() {
            let message = "too many expectations for so many cases";
            let hint = Some("split the scenario".to_owned());
            reader.refuse_key(first.at, "expect", message, hint);
        }
        return (all, inapplicable);
    }
    for (i, record) in tables.iter().enumerate() {
        let at = At::<Expect>::new(record, format!("expect[{}]", i + 1));
        let before = reader.findings.faults.len();
        let table = Referring { at, known };
        let read = expectation(reader, &table);
        if known.in_a_world && reader.findings.faults.len() > before {
            let mut faults = reader.findings.faults.drain(before..);
            inapplicable.extend(faults.next().map(|fault| Inapplicable {
                line: reader.sources.line(record.at),
                why: fault.message,
            }));
        } else if let Some(read) = read {
            warn_of_its_name(reader, &table, &read, &all);
            all.push(read);
        }
    }
    (all, inapplicable)
}

/// Warns of a name that an earlier expectation has in one of the same cases: what failed is told by
/// its name.
fn warn_of_its_name(
    reader: &mut Reader<'_>,
    table: &Referring<'_, Expect>,
    read: &Expectation,
    earlier: &[Expectation],
) {
    let is_judged = |case: &usize| read.cases.binary_search(case).is_ok();
    let mut namesakes = earlier.iter().filter(|other| other.name == read.name);
    if table.is_given(&Expect::name)
        && let Some(other) = namesakes.find(|other| other.cases.iter().any(is_judged))
    {
        let message = format!(
            "the expectation of line {} has this name too: give each one of its own",
            other.line
        );
        table.warn(&mut reader.findings, &Expect::name, &message);
    }
}

fn expectation(reader: &mut Reader<'_>, table: &Referring<'_, Expect>) -> Option<Expectation> {
    let before = reader.findings.faults.len();
    let known = table.known;
    table.required_keys(&mut reader.findings);
    let metric = table.metric.clone();
    let scope = metric
        .as_ref()
        .and_then(|metric| table.metric(reader, &Expect::metric, metric));
    let against = bound::against(reader, table);
    let choice = Choice::peer(against);
    let peer = match choice {
        Some(choice) => table.picked(choice, reader),
        None => Some(Picked::Values(Pick::default())),
    };
    let bound = bound::bound(reader, table);
    let holds_for = holds_for(reader, table, against);
    let picked = table.picked(Choice::Where, reader);
    let (flow, link) = match scope {
        Some(scope) => subject::subject(reader, table, scope),
        None => (None, None),
    };
    let (metric, bound, picked, peer) = (metric?, bound?, picked?, peer?);
    let at_other_times = table.quick.is_some_and(|quick| quick != known.quick);
    let unresolved = known.cases.is_empty();
    if reader.findings.faults.len() > before || at_other_times || unresolved {
        return None;
    }
    let (Picked::Values(picked), Picked::Values(peer)) = (picked, peer) else {
        return None;
    };
    let mut cases: Vec<usize> = (0..known.cases.len())
        .filter(|case| picked.holds(*case, known.axes))
        .collect();
    let against_baseline = subject::parts(&metric).iter().any(|m| needs_baseline(m));
    // The baseline itself has no such value, and is not judged by one.
    let is_judged = |case: &usize| !against_baseline || known.cases[*case].baseline.is_some();
    let has_cases = !cases.is_empty();
    cases.retain(is_judged);
    if has_cases && cases.is_empty() {
        let narrowed = |axis: &Axis| {
            !axis.replaced.is_empty() || axis.values.iter().any(|value| value.overruled)
        };
        if !known.axes.iter().any(narrowed) {
            let (message, hint) = subject::without_baseline(known);
            table.refuse(reader, &Expect::metric, message, hint);
        }
        return None;
    }
    subject::check(
        reader,
        table,
        &cases,
        (flow.as_deref(), link.as_deref()),
        &metric,
    );
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    if let Some(choice) = choice.filter(|_| !peer.is_empty()) {
        let with_peer = cases
            .iter()
            .map(|&case| (case, peer.moved(case, known.axes)));
        pairs.extend(with_peer.filter(|(case, peer)| case != peer && is_judged(peer)));
        if pairs.is_empty() && peer.is_narrowed(known.axes) {
            return None;
        }
        if pairs.is_empty() {
            let key = choice.key();
            let message = "every case would be held against itself";
            let hint = format!("name in `where` what `{}` replaces", key.name);
            table.refuse(reader, key, message, hint);
            return None;
        }
    }
    let name = table.name.clone().unwrap_or_else(|| {
        let subject = match (&flow, &link) {
            (Some(flow), _) if known.names.flows.len() > 1 => Some(flow),
            (_, Some(link)) => Some(link),
            _ => None,
        };
        let over = (against == Against::Ratio).then_some(&peer);
        default_name(&metric, subject, &picked, over)
    });
    Some(Expectation {
        name,
        metric,
        flow,
        link,
        where_: picked.spelled,
        bound,
        source: table.source.clone(),
        line: reader.sources.line(table.record.at),
        cases,
        pairs,
        against,
        holds_for,
        toothless: table.toothless.clone(),
    })
}

/// What of the seeds' values must lie in the bound.
fn holds_for(reader: &mut Reader<'_>, table: &Referring<'_, Expect>, against: Against) -> HoldsFor {
    let key = &Expect::holds_for;
    if against == Against::Agreement && table.is_given(key) {
        let message = "contradicts `agrees_with`, which judges the interval of a difference";
        table.refuse(reader, key, message, "leave it out");
    }
    table.holds_for
}

/// `goodput_mbps of main: path.mtu = 1500`.
fn default_name(
    metric: &str,
    subject: Option<&String>,
    picked: &Pick,
    over: Option<&Pick>,
) -> String {
    let mut name = metric.to_owned();
    if let Some(subject) = subject {
        name.push_str(&format!(" of {subject}"));
    }
    for (i, (key, value)) in picked.spelled.iter().enumerate() {
        name.push_str(if i == 0 { ": " } else { ", " });
        name.push_str(&format!("{key} = {value}"));
    }
    if let Some(over) = over.filter(|over| !over.is_empty()) {
        name.push_str(" over");
        for (key, value) in &over.spelled {
            name.push_str(&format!(" {key} = {value}"));
        }
    }
    name
}

const MAX_COMPARISONS: usize = 20_000_000;
