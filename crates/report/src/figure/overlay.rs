//! Two results in one picture: the windows of the first as broad pale lines, those of the second as
//! thin lines on them.

use std::path::Path;

use super::folder::draw_all;
use super::stored::ByFlow;
use super::{Curve, Figure, FigureError, Written};
use fullpipe_results::agreement;
use fullpipe_results::compare::matching;
use fullpipe_results::label;
use fullpipe_results::result::CaseResult;
use fullpipe_results::store::{ResultDir, SeriesKind, StoreError, Table};

/// Draws every case that both results have as SVG and PNG into `dir`, with the first pair of seeds,
/// and an overview. Cases without a time series on either side have no picture.
///
/// # Errors
/// If a result cannot be read or the pictures cannot be written.
pub fn write_overlay(a: &ResultDir, b: &ResultDir, dir: &Path) -> Result<Written, FigureError> {
    let results = [a.result()?, b.result()?];
    let same = matching(&results[0], &results[1]);
    let params = same.iter().map(|at| &results[0].cases[at[0]].params);
    let labels = label::labels(&label::texts(params)).into_iter();
    let names = sides([&results[0].ground, &results[1].ground]);
    let both = |at: &[usize; 2]| [0, 1].map(|side: usize| &results[side].cases[at[side]]);
    let title = format!("{}: {} and {}", results[0].scenario, names[0], names[1]);
    let all_seeds = same.iter().map(|at| seeds_words(both(at)));
    let all_seeds: Vec<String> = all_seeds.collect();
    let common = match all_seeds.iter().find(|words| !words.is_empty()) {
        Some(words) if all_seeds.iter().all(|other| other == words) => format!("; {words}"),
        Some(_) => "; the first of several seeds".to_owned(),
        None => String::new(),
    };
    let subtitle = format!("broad and pale: {}; thin: {}{common}", names[0], names[1]);
    // A case that does not count is not drawn like one that does.
    let marked = |(at, label): (&[usize; 2], String)| {
        let flagged = both(at).iter().any(|case| case.is_flagged());
        (
            at[0],
            with_words(&label, if flagged { "NOT VALID" } else { "" }),
        )
    };
    let shown: Vec<(usize, String)> = same.iter().zip(labels).map(marked).collect();
    draw_all(dir, (&title, &subtitle), &shown, |i| {
        let at = &same[i];
        let cases = both(at);
        let Some(seeds) = agreement::paired_seeds(cases).first().copied() else {
            return Ok(None);
        };
        let curves = curves([a, b], cases, at, seeds, &names)?;
        Ok((!curves.is_empty()).then(|| Figure {
            title: title.clone(),
            subtitle: with_words(&shown[i].1, &all_seeds[i]),
            duration: cases[0].simulated_s,
            warmup: 0.0,
            window_unit: "segments".to_owned(),
            mss: None,
            curves,
            ..Figure::default()
        }))
    })
}

/// What two results are called beside each other: as their grounds, where these tell them apart.
pub(crate) fn sides(grounds: [&str; 2]) -> [String; 2] {
    match grounds[0] == grounds[1] {
        true => ["A".to_owned(), "B".to_owned()],
        false => grounds.map(str::to_owned),
    }
}

/// Words behind others, either of which may be none.
fn with_words(first: &str, second: &str) -> String {
    let parts = [first, second].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("; ")
}

/// Which seeds of two cases are drawn, where there are several.
fn seeds_words(cases: [&CaseResult; 2]) -> String {
    let pairs = agreement::paired_seeds(cases);
    match pairs.as_slice() {
        [] | [_] => String::new(),
        [[a, b], ..] if a == b => format!("seed {a}, one of {}", pairs.len()),
        [[a, b], ..] => format!("seeds {a} and {b}, the first of {} pairs", pairs.len()),
    }
}

/// The curves of both sides, those of the first before those of the second.
fn curves(
    dirs: [&ResultDir; 2],
    cases: [&CaseResult; 2],
    at: &[usize; 2],
    seeds: [u64; 2],
    names: &[String; 2],
) -> Result<Vec<Curve>, StoreError> {
    let mut out = Vec::new();
    for side in [0, 1] {
        let table = |kind| dirs[side].series(at[side], seeds[side], kind);
        let series = match table(SeriesKind::FlowsFull)? {
            Some(full) => Some(full),
            None => table(SeriesKind::Flows)?,
        };
        let Some(series) = series else {
            return Ok(Vec::new());
        };
        let events = table(SeriesKind::Events)?.unwrap_or_default();
        let parts = (&series, &ByFlow::new(&series), &ByFlow::new(&events));
        for (i, flow) in cases[side].flows.iter().enumerate() {
            let name = match cases[side].flows.len() {
                1 => names[side].clone(),
                _ => format!("{}, {}", names[side], flow.name),
            };
            let mut curve = curve(parts, &flow.name);
            if curve.time.is_empty() {
                continue;
            }
            curve.name = name;
            // The look of the flow in the figures of either result.
            curve.group = i;
            curve.band = side == 0;
            out.push(curve);
        }
    }
    Ok(out)
}

pub(super) fn curve(
    (table, series, events): (&Table, &ByFlow<'_>, &ByFlow<'_>),
    flow: &str,
) -> Curve {
    let mut curve = Curve::of(String::new(), 0, flow, series, events);
    if curve.time.is_empty() {
        // Several streams: the sum of their windows.
        for (time, window) in agreement::window(table, flow) {
            curve.time.push(time);
            curve.window.push(window);
        }
        curve.low.clone_from(&curve.window);
        curve.high.clone_from(&curve.window);
    }
    curve.ssthresh = vec![f64::INFINITY; curve.time.len()];
    curve
}
