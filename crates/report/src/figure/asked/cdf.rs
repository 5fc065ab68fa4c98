//! Distributions of round-trip times: of flows, where a row for every ACK is kept, and of pings.

use std::collections::BTreeSet;

use fullpipe_results::store::{SeriesKind, Table};

use super::over_time::sender_names;
use super::steps::{Steps, line};
use super::view::{Member, Part, View};
use super::window::{resolved, warmup};
use super::{Asked, AskedError, Drawn};
use crate::page::curves::groups;

pub(super) fn draw(view: &View<'_>, asked: &Asked) -> Result<Drawn, AskedError> {
    view.check_seed(asked)?;
    view.check_of(asked, "flow or traffic", &sender_names)?;
    let scenario = resolved(view);
    let mut drawn = Steps::of("rtt_ms");
    let mut whose: BTreeSet<String> = BTreeSet::new();
    let mut is_one_of_several = false;
    drawn.subtitle = view.seeds(asked);
    drawn.near = true;
    let parts = view.panels_over_time(asked)?;
    let mut cases = parts.iter().flat_map(|part| &part.members);
    let from = |case: usize| warmup(scenario.as_ref(), std::iter::once(case));
    if cases.any(|member| from(member.case) > 0.0) {
        drawn.subtitle += ", without the warm-up";
    }
    let of_member = |member: &Member| samples(view, asked, member.case, from(member.case));
    let of_part = |part: &Part| part.members.iter().map(of_member).collect();
    let of_parts: Result<Vec<Vec<Vec<Sample>>>, _> = parts.iter().map(of_part).collect();
    let of_parts = of_parts?;
    let all = of_parts.iter().flatten().flatten();
    let places = view.places(all.map(|(of, _)| of.as_str()));
    for (part, of_members) in parts.into_iter().zip(of_parts) {
        drawn.panel(part.title);
        for (member, of_case) in part.members.iter().zip(of_members) {
            let count = of_case.len();
            is_one_of_several |= sender_names(view.case(member.case)).len() > 1;
            whose.extend(of_case.iter().map(|(of, _)| of.clone()));
            for (of, values) in of_case {
                let group = places.group(member, &of);
                let all = values.len();
                let name = view.line_name(member, &of, count);
                drawn.curve(line(name, group), values, all, true);
            }
        }
    }
    let nothing = || AskedError::Nothing {
        what: match &asked.of {
            Some(of) => format!("the result holds no round-trip times of `{of}` one by one"),
            None => "the result holds no round-trip times one by one".to_owned(),
        },
        hint: "`[measure] trace = \"full\"` keeps those of flows; pings (`[[traffic]]` of kind \
               ping) are kept with any trace"
            .to_owned(),
    };
    // Names of lines say whose they are where a case has several.
    let label = match whose.first() {
        Some(only) if whose.len() == 1 && is_one_of_several => {
            format!("{only}: round-trip time (ms)")
        }
        _ => "round-trip time (ms)".to_owned(),
    };
    let drawn = drawn.drawn(view, &label, "part of the samples", None);
    drawn.ok_or_else(nothing)
}

/// Name and values.
type Sample = (String, Vec<f64>);

/// Round-trip times behind `from` seconds: of the seed that is asked for, or of all.
fn samples(
    view: &View<'_>,
    asked: &Asked,
    case: usize,
    from: f64,
) -> Result<Vec<Sample>, AskedError> {
    let mut out: Vec<Sample> = Vec::new();
    let wanted = |seed: &&u64| asked.seed.is_none_or(|only| only == **seed);
    for &seed in view.case(case).seeds.iter().filter(wanted) {
        for (kind, key) in [(SeriesKind::FlowsFull, "flow"), (SeriesKind::Pings, "name")] {
            if let Some(table) = view.dir.series(case, seed, kind)? {
                collect(&table, key, from, asked.of.as_deref(), &mut out);
            }
        }
    }
    Ok(out)
}

/// Adds the samples of a table, by name.
fn collect(table: &Table, key: &str, from: f64, only: Option<&str>, out: &mut Vec<Sample>) {
    let times = table.float("time_s").unwrap_or_default();
    let rtts = table.float("rtt_ms").unwrap_or_default();
    // A trace has rows of other moments, too, as when a paced flow sends: the latest sample again.
    let events = table.text("event").unwrap_or_default();
    let of_ack = |row: usize| {
        events
            .get(row)
            .is_some_and(|e| e.split('+').any(|e| e == ACK))
    };
    let tells_acks = (0..events.len()).any(of_ack);
    for (of, rows) in rows_of(table, key) {
        if only.is_some_and(|only| only != of) {
            continue;
        }
        let at = out.iter().position(|(name, _)| *name == of);
        let at = at.unwrap_or_else(|| {
            out.push((of, Vec::new()));
            out.len() - 1
        });
        let (_, values) = &mut out[at];
        let late = |row: &usize| {
            times
                .get(*row)
                .is_some_and(|t| t.is_some_and(|t| t >= from))
        };
        // Before the first sample of a flow there is none.
        let is_sample = |row: &usize| !tells_acks || of_ack(*row);
        let late = rows.into_iter().filter(late).filter(is_sample);
        values.extend(late.filter_map(|row| rtts.get(row).copied().flatten()));
    }
    out.retain(|(_, values)| !values.is_empty());
}

/// The event of a row that has a sample of its own.
const ACK: &str = "ack";

/// Rows of each flow with all of its streams, or of each ping.
fn rows_of(table: &Table, key: &str) -> Vec<(String, Vec<usize>)> {
    let of = groups(table, key).into_iter();
    of.map(|(name, members)| {
        let rows = members.into_iter().flat_map(|member| member.rows);
        (name, rows.collect())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_results::store::Column;

    #[test]
    fn samples_of_the_warm_up_and_of_others_do_not_count() {
        let mut table = Table::default();
        let names = ["p", "p", "p", "p"].map(str::to_owned);
        table.push("name", Column::Text(names.to_vec()));
        let times = [0.0, 1.0, 2.0, 3.0].map(Some);
        table.push("time_s", Column::Float(times.to_vec()));
        let rtts = [Some(9.0), Some(20.0), None, Some(30.0)];
        table.push("rtt_ms", Column::Float(rtts.to_vec()));
        let mut out = Vec::new();
        collect(&table, "name", 1.0, None, &mut out);
        assert_eq!(out, [("p".to_owned(), vec![20.0, 30.0])]);
        let mut out = Vec::new();
        collect(&table, "name", 1.0, Some("q"), &mut out);
        assert!(out.is_empty());
    }

    /// What a paced flow sends makes rows with the latest sample: it does not count again.
    #[test]
    fn a_sample_counts_once() {
        let mut table = Table::default();
        table.push("flow", Column::Text(vec!["f".to_owned(); 4]));
        table.push(
            "time_s",
            Column::Float([1.0, 2.0, 3.0, 4.0].map(Some).to_vec()),
        );
        table.push(
            "rtt_ms",
            Column::Float([20.0, 20.0, 30.0, 30.0].map(Some).to_vec()),
        );
        let values = |events: [&str; 4]| {
            let mut table = table.clone();
            table.push("event", Column::Text(events.map(str::to_owned).to_vec()));
            let mut out = Vec::new();
            collect(&table, "flow", 0.0, None, &mut out);
            out.remove(0).1
        };
        assert_eq!(values(["ack", "", "loss+ack", "retransmit"]), [20.0, 30.0]);
        // Where nobody tells of ACKs every row is one.
        assert_eq!(values([""; 4]).len(), 4);
    }
}
