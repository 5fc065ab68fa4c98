//! Generates `docs/linux.md`: how close the simulator is, where it is not and why, and what in
//! Linux surprises.
//!
//! Every number of the page comes from the comparison it is made from. The page cannot be made when
//! a cause is stale, when a surprise names a metric that its cell does not have, or when the
//! switches that preset `linux` sets are not those that are described.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_units::Span;

use crate::ablation;
use crate::causes::{Causes, CausesError, Outside, Surprise, Surprises};
use crate::cell::{self, Cell, Kind, PACKET};
use crate::compare::{Comparison, Deviation, Metric, compare};
use crate::report::{Results, limit_of};
use crate::simulated::SimulatedError;
use crate::wording;

/// Why the page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    /// A cause is stale.
    #[error(transparent)]
    Causes(#[from] CausesError),
    /// A switch that changes nothing in the cell that is to show it.
    #[error("surprises.toml: `{title}`: {cell} shows nothing: its numbers are the same {switch}")]
    ShowsNothing {
        /// Title of the surprise.
        title: String,
        /// The cell that should show it.
        cell: String,
        /// The switch that leaves its numbers as they are.
        switch: String,
    },
    /// The run without a switch.
    #[error(transparent)]
    Simulated(#[from] SimulatedError),
    /// A surprise whose numbers are not there.
    #[error("surprises.toml: `{title}`: {cell} has no {metric}")]
    Shows {
        /// Heading of the entry in surprises.toml.
        title: String,
        /// The cell that it names.
        cell: String,
        /// The metric.
        metric: &'static str,
    },
    /// Preset `linux` sets a switch that no entry describes.
    #[error("surprises.toml: no [[switch]] describes `{0}`, which preset linux sets")]
    Undescribed(String),
    /// An entry describes what preset `linux` does not set.
    #[error(
        "surprises.toml: [[switch]] `{0}`: preset linux does not set it, or there are two entries"
    )]
    NoSwitch(String),
}

/// A field in which preset `linux` differs from preset `2026`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `sender.` or `receiver.` and the field.
    pub name: String,
    /// Its value in preset `linux`.
    pub linux: String,
    /// Its value in preset `2026`.
    pub rfc: String,
}

/// The page. Simulates the cells of the surprises once more, each without its switch.
///
/// # Errors
/// [`DocsError`].
pub fn page(results: &Results<'_>, surprises: &Surprises) -> Result<String, DocsError> {
    let c = results.comparison;
    results.causes.check(c)?;
    let kernel = results.oracle.iter().map(|r| r.kernel.as_str()).max();
    let mut p = String::new();
    line(&mut p, format_args!("# Linux\n"));
    line(
        &mut p,
        format_args!(
            "<!-- Made by `fullpipe-calibrate docs` from the references in `calibrate/reference`; a test compares the two. -->\n"
        ),
    );
    line(
        &mut p,
        format_args!(
            "Preset `linux` with the stacks `<module>-linux` models Linux {}. This page compares\n\
             the two: the same paths, the same modules, {} s each, one definition of every metric for\n\
             both sides. Linux ran in virtual time, so its results do not depend on the machine;\n\
             without random loss they repeat exactly, except TCP-LP's.\n",
            kernel.unwrap_or("6.1").trim_start_matches("Linux "),
            cell::DURATION_S
        ),
    );
    summary(&mut p, c);
    deviations(&mut p, c, results.causes);
    p.push_str(SURPRISES);
    for s in &surprises.list {
        let cells: Vec<Cell> = cell::all()
            .into_iter()
            .filter(|c| c.id() == s.cell)
            .collect();
        let mut runs = Vec::new();
        // A cell that was not compared needs no second run.
        if c.verdicts.iter().any(|v| v.cell == s.cell) {
            for cell in &cells {
                runs.extend(ablation::without(cell, s.switch.as_deref())?);
            }
        }
        told(&mut p, s, c, &compare(&cells, results.oracle, &runs))?;
    }
    switches(&mut p, surprises)?;
    p.push_str(REPRODUCE);
    Ok(p)
}

fn summary(p: &mut String, c: &Comparison) {
    p.push_str("## How close\n\n| cells | metric | limit | inside | |\n|---|---|---|---:|---:|\n");
    for (kind, all) in &c.cells {
        let mut row = |metric: &str, limit: &str, f: crate::compare::Fraction| {
            line(
                p,
                format_args!(
                    "| {} | {metric} | {limit} | {} of {} | {:.1} % |",
                    about(*kind),
                    f.inside,
                    f.of,
                    100.0 * f.value()
                ),
            );
        };
        row("**all**", "", *all);
        for (_, metric, fraction) in c.metrics.iter().filter(|m| m.0 == *kind) {
            let limit = limit_of(c, *kind, *metric).unwrap_or_default();
            row(wording::name(*metric), &limit, *fraction);
        }
    }
    let single = c.verdicts.iter().filter(|v| v.kind == Kind::Single);
    let mut rmse: Vec<f64> = single.flat_map(|v| v.rmse.iter().copied()).collect();
    rmse.sort_by(f64::total_cmp);
    if let Some(median) = rmse.get(rmse.len() / 2) {
        line(
            p,
            format_args!(
                "\nWindows over time, one flow each: with both curves aligned at the first loss, their\n\
                 root-mean-square difference is {:.1} % of the mean window in the median cell and at\n\
                 most {:.1} % in nine of ten.",
                100.0 * median,
                100.0 * rmse[(rmse.len() * 9).div_ceil(10) - 1]
            ),
        );
    }
    if !c.missing.is_empty() {
        line(
            p,
            format_args!(
                "\nNot compared, because a side has no result: {} cells.",
                c.missing.len()
            ),
        );
    }
    p.push('\n');
}

fn deviations(p: &mut String, c: &Comparison, causes: &Causes) {
    p.push_str("## Known deviations\n\n");
    let outside = causes.explain(c);
    if outside.is_empty() {
        p.push_str("None: every cell is inside every limit.\n\n");
        return;
    }
    // Only causes that explain something have a number here, in the order of the file.
    let mut used: Vec<usize> = outside.iter().flat_map(|o| o.causes.clone()).collect();
    used.sort_unstable();
    used.dedup();
    let number = |i: &usize| used.iter().position(|u| u == i).map_or(0, |n| n + 1);
    let unexplained = outside.iter().filter(|o| o.causes.is_empty()).count();
    match unexplained {
        0 => p.push_str("Every cell outside a limit, and the cause.\n\n"),
        n => line(
            p,
            format_args!("Every cell outside a limit. **{n} deviations are unexplained.**\n"),
        ),
    }
    p.push_str("| cell | metric | Linux | simulator | size | limit | cause |\n|---|---|---:|---:|---:|---|---|\n");
    for o in &outside {
        let Outside {
            verdict,
            deviation: d,
            causes,
        } = o;
        let flow = d
            .flow
            .map_or(String::new(), |f| format!(", flow {}", f + 1));
        let cause: Vec<String> = causes.iter().map(|i| number(i).to_string()).collect();
        line(
            p,
            format_args!(
                "| `{}` | {}{flow} | {} | {} | {} | {} | {} |",
                verdict.cell,
                wording::name(d.metric),
                both(d, d.oracle, 0),
                both(d, d.sim, 1),
                wording::size(d),
                d.limit
                    .map_or_else(String::new, |l| wording::limit(d.metric, l)),
                if cause.is_empty() {
                    "unexplained".to_owned()
                } else {
                    cause.join(", ")
                }
            ),
        );
    }
    if !used.is_empty() {
        p.push_str("\nCauses:\n\n");
        for (n, i) in used.iter().enumerate() {
            let cause = &causes.0[*i];
            let switch = cause
                .switch
                .as_ref()
                .map_or(String::new(), |s| format!(" Switch: {s}."));
            line(p, format_args!("{}. {}{switch}", n + 1, cause.cause));
        }
    }
    p.push('\n');
}

/// A side's value with its interval.
fn both(d: &Deviation, value: Option<f64>, side: usize) -> String {
    let text = wording::value(d.metric, value);
    match d.half_widths {
        Some((a, b)) => format!(
            "{text} ± {}",
            wording::value(d.metric, Some([a, b][side.min(1)]))
        ),
        None => text,
    }
}

fn told(
    p: &mut String,
    s: &Surprise,
    c: &Comparison,
    without: &Comparison,
) -> Result<(), DocsError> {
    line(p, format_args!("### {}\n", s.title));
    line(p, format_args!("- Linux: {}", s.linux));
    line(p, format_args!("- RFC: {}", s.rfc));
    let other = match s.switch.as_deref() {
        None => "preset `2026`".to_owned(),
        Some(ablation::STACK) => "with the published algorithm".to_owned(),
        Some(switch) => format!("without `{switch}`"),
    };
    line(
        p,
        format_args!(
            "\n| `{}` | Linux | simulator | {other} |\n|---|---:|---:|---:|",
            s.cell
        ),
    );
    let mut differs = false;
    for metric in &s.shows {
        differs |= shown(p, s, *metric, c, without)?;
    }
    p.push('\n');
    if differs || without.verdicts.is_empty() {
        return Ok(());
    }
    Err(DocsError::ShowsNothing {
        title: s.title.clone(),
        cell: s.cell.clone(),
        switch: other,
    })
}

/// The rows of a metric; true if the simulator's number depends on the switch.
fn shown(
    p: &mut String,
    s: &Surprise,
    metric: Metric,
    c: &Comparison,
    without: &Comparison,
) -> Result<bool, DocsError> {
    let of = |c: &Comparison| -> Option<Vec<Deviation>> {
        let verdict = c.verdicts.iter().find(|v| v.cell == s.cell)?;
        let all = verdict.deviations.iter().filter(|d| d.metric == metric);
        Some(all.cloned().collect())
    };
    let Some(rows) = of(c) else {
        line(
            p,
            format_args!("| {} | not measured | | |", wording::name(metric)),
        );
        return Ok(false);
    };
    if rows.is_empty() {
        return Err(DocsError::Shows {
            title: s.title.clone(),
            cell: s.cell.clone(),
            metric: wording::key(metric),
        });
    }
    let others = of(without).unwrap_or_default();
    let mut differs = false;
    for (i, d) in rows.iter().enumerate() {
        let unit = match wording::unit(metric) {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let flow = d
            .flow
            .map_or(String::new(), |f| format!(" of flow {}", f + 1));
        let with = both(d, d.sim, 1);
        let other = others
            .get(i)
            .map_or_else(|| "-".to_owned(), |r| both(r, r.sim, 1));
        line(
            p,
            format_args!(
                "| {}{flow}{unit} | {} | {with} | {other} |",
                wording::name(metric),
                both(d, d.oracle, 0),
            ),
        );
        // Under random loss only a difference beyond both intervals is one.
        let chance = others.get(i).is_some_and(|r| {
            let half = |d: &Deviation| d.half_widths.map_or(0.0, |h| h.1);
            let apart = d
                .sim
                .zip(r.sim)
                .map_or(f64::INFINITY, |(a, b)| (a - b).abs());
            apart < half(d) + half(r)
        });
        differs |= with != other && !chance;
    }
    Ok(differs)
}

fn switches(p: &mut String, surprises: &Surprises) -> Result<(), DocsError> {
    p.push_str(
        "## What preset `linux` sets\n\nEvery field of the endpoints' configuration in which it differs from preset\n\
         `2026`, today's RFCs. The congestion-control modules are separate stacks:\n\
         `fullpipe list stacks` lists them.\n\n\
         | field | preset `linux` | preset `2026` | |\n|---|---|---|---|\n",
    );
    let settings = settings();
    let mut about: BTreeMap<&str, &str> = BTreeMap::new();
    for s in &surprises.switches {
        let known = settings.iter().any(|x| x.name == s.name);
        if !known || about.insert(&s.name, &s.about).is_some() {
            return Err(DocsError::NoSwitch(s.name.clone()));
        }
    }
    for s in settings {
        let Some(about) = about.get(s.name.as_str()) else {
            return Err(DocsError::Undescribed(s.name));
        };
        line(
            p,
            format_args!("| `{}` | `{}` | `{}` | {about} |", s.name, s.linux, s.rfc),
        );
    }
    p.push('\n');
    Ok(())
}

/// What preset `linux` sets, read off the presets themselves.
pub fn settings() -> Vec<Setting> {
    let sender = |p| fields("sender", &format!("{:?}", SenderConfig::preset(p, PACKET)));
    let receiver = |p| fields("receiver", &format!("{:?}", ReceiverConfig::preset(p)));
    let of = |p| [sender(p), receiver(p)].concat();
    of(Preset::Linux)
        .into_iter()
        .zip(of(Preset::Y2026))
        .filter(|(linux, rfc)| linux.1 != rfc.1)
        .map(|(linux, rfc)| Setting {
            name: linux.0,
            linux: plain(&linux.1),
            rfc: plain(&rfc.1),
        })
        .collect()
}

/// A value of the debug text for people: spans with a unit, options without their wrapping.
fn plain(value: &str) -> String {
    let mut text = value.to_owned();
    while let Some((before, rest)) = text.split_once("Span(") {
        let Some((nanos, after)) = rest.split_once(')') else {
            break;
        };
        let Ok(nanos) = nanos.trim_end_matches("ns").parse() else {
            break;
        };
        text = format!("{before}{}{after}", Span::from_nanos(nanos));
    }
    let inner = text.strip_prefix("Some(").and_then(|t| t.strip_suffix(')'));
    match inner.unwrap_or(&text) {
        "inf" => "unlimited".to_owned(),
        "None" => "none".to_owned(),
        inner => inner.to_owned(),
    }
}

/// The fields of a structure's derived debug text, those of structures inside with their path.
fn fields(path: &str, text: &str) -> Vec<(String, String)> {
    let is_name = |s: &str| s.chars().all(|c| c.is_alphanumeric() || c == '_');
    let inner = text
        .split_once(" { ")
        .filter(|(name, _)| is_name(name))
        .and_then(|(_, rest)| rest.strip_suffix(" }"));
    let Some(inner) = inner else {
        return vec![(path.to_owned(), text.to_owned())];
    };
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    parts
        .into_iter()
        .filter_map(|part| part.trim().split_once(": "))
        .flat_map(|(name, value)| fields(&format!("{path}.{name}"), value))
        .collect()
}

/// A kind of cells for people.
pub fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Single => "one flow",
        Kind::Pair => "two flows",
        Kind::Loss => "one flow, random loss",
        Kind::Many => "sixteen flows",
    }
}

fn line(p: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(p, "{text}");
}

const SURPRISES: &str = "## Surprises in Linux

Where the kernel departs from the text of the RFCs, with a cell that shows it. The last column is the
simulator with that one switch set as in preset `2026`.

";

const REPRODUCE: &str = "## Reproduce it\n
```sh
cargo build --release --package fullpipe-calibrate
fullpipe-calibrate oracle              # builds the kernel outside the repository, runs every cell; resumes
fullpipe-calibrate freeze              # writes calibrate/reference
fullpipe-calibrate compare             # the table in the terminal
fullpipe-calibrate report --to linux.html   # every cell with both windows, one file
fullpipe-calibrate docs                # this page
fullpipe-calibrate figure              # the picture of the README
```

The references are frozen: all but the first two commands need neither a kernel nor a network. Each
row of `calibrate/reference/runs.csv` ends with the command that produced it.

Any scenario, not only these cells, runs over the same kernel's TCP with `--ground linux`, see
[grounds.md](grounds.md#linux); `fullpipe compare` holds it against the simulator:

```sh
fullpipe linux build
fullpipe run my.toml --out results/sim
fullpipe run my.toml --ground linux --out results/linux
fullpipe compare results/sim results/linux
```
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_debug_text() {
        let text =
            "A { x: 1, y: Some(B { z: 2, w: 3 }), r: C { min: 1s, max: D(4, 5) }, e: [1, 2] }";
        let found = fields("a", text);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(
            found,
            [
                ("a.x", "1"),
                ("a.y", "Some(B { z: 2, w: 3 })"),
                ("a.r.min", "1s"),
                ("a.r.max", "D(4, 5)"),
                ("a.e", "[1, 2]")
            ]
        );
    }

    #[test]
    fn values_for_people() {
        assert_eq!(plain("Span(200000000)"), "200ms");
        assert_eq!(
            plain("A { x: Span(1000000), y: Span(0) }"),
            "A { x: 1ms, y: 0s }"
        );
        assert_eq!(plain("Some(250)"), "250");
        assert_eq!(plain("Some(inf)"), "unlimited");
        assert_eq!(plain("None"), "none");
    }

    #[test]
    fn settings_are_where_the_presets_differ() {
        let settings = settings();
        let timers = settings
            .iter()
            .find(|s| s.name == "sender.timers.grain")
            .unwrap();
        assert_eq!((&*timers.linux, &*timers.rfc), ("Wheel", "Exact"));
        assert!(settings.iter().any(|s| s.name == "sender.rto.rule"));
        let rto = settings
            .iter()
            .find(|s| s.name == "sender.rto.min")
            .unwrap();
        assert_eq!((&*rto.linux, &*rto.rfc), ("200ms", "1s"));
        assert!(settings.iter().all(|s| s.name != "sender.mss"));
    }

    #[test]
    fn every_switch_is_described_once() {
        let kept = Surprises::kept().unwrap();
        let mut p = String::new();
        switches(&mut p, &kept).unwrap();
        assert!(
            p.contains("| `sender.timers.grain` | `Wheel` | `Exact` |"),
            "{p}"
        );
        let mut fewer = kept.clone();
        let gone = fewer.switches.remove(0);
        let error = switches(&mut p, &fewer).unwrap_err().to_string();
        assert!(error.contains(&gone.name), "{error}");
        let mut more = kept;
        more.switches.push(gone);
        assert!(switches(&mut p, &more).is_err());
    }

    #[test]
    fn a_switch_that_changes_nothing_shows_nothing() {
        let cells: Vec<Cell> = cell::all()
            .into_iter()
            .filter(|c| c.id() == "reno-20x30-b1")
            .collect();
        let of = |goodput_mbit| crate::reference::Run {
            cell: "reno-20x30-b1".into(),
            repeat: 0,
            kernel: String::new(),
            command: String::new(),
            counters: Default::default(),
            flows: vec![crate::reference::FlowResult {
                module: "reno".into(),
                measure: crate::measure::Measure {
                    goodput_mbit,
                    ..Default::default()
                },
                curve: None,
            }],
        };
        let with = compare(&cells, &[of(9.0)], &[of(9.0)]);
        let without = |goodput| compare(&cells, &[of(9.0)], &[of(goodput)]);
        let surprise = Surprise {
            title: "t".into(),
            linux: "l".into(),
            rfc: "r".into(),
            cell: "reno-20x30-b1".into(),
            shows: vec![Metric::Goodput],
            switch: Some("sender.timers.grain".into()),
        };
        let mut p = String::new();
        told(&mut p, &surprise, &with, &without(8.0)).unwrap();
        assert!(
            p.contains("| goodput, Mbit/s | 9.0000 | 9.0000 | 8.0000 |"),
            "{p}"
        );
        let error = told(&mut p, &surprise, &with, &without(9.0))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the same without `sender.timers.grain`"),
            "{error}"
        );
    }

    #[test]
    fn a_surprise_needs_the_metric_in_its_cell() {
        let surprise = Surprise {
            title: "t".into(),
            linux: "l".into(),
            rfc: "r".into(),
            cell: "reno-20x30-b1".into(),
            shows: vec![Metric::Share],
            switch: None,
        };
        let one = crate::compare::Verdict {
            cell: surprise.cell.clone(),
            kind: Kind::Single,
            deviations: Vec::new(),
            rmse: Vec::new(),
            inside: true,
        };
        let c = Comparison {
            verdicts: vec![one],
            missing: Vec::new(),
            cells: BTreeMap::new(),
            metrics: Vec::new(),
        };
        let error = told(&mut String::new(), &surprise, &c, &c).unwrap_err();
        assert_eq!(
            error.to_string(),
            "surprises.toml: `t`: reno-20x30-b1 has no share"
        );
    }
}
