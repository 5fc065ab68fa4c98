//! `fullpipe list`: stacks, scenarios, metrics.

use std::fmt::Write as _;

use fullpipe_cc::StackSpec;
use fullpipe_cc::params::ParamSpec;
use fullpipe_cc::registry::{COMMON_LAW_PARAMS, Kind, Registered, entries};
use fullpipe_metrics::{METRICS, Metric, Scope, nearest};
use fullpipe_scenario::{Loaded, Overrides, builtin};
use serde_json::{Value, json};

use crate::args::{List, Listed, ShortFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table};

/// Runs the command.
pub fn list(args: &List) -> Result<Exit, Failure> {
    let name = args.name.as_deref();
    let text = match (args.what, args.format) {
        (Listed::Stacks, ShortFormat::Table) => stacks_text(&stacks(name)?, name.is_none()),
        (Listed::Stacks, ShortFormat::Json) => stacks_json(&stacks(name)?),
        (Listed::Metrics, ShortFormat::Table) => metrics_text(&metrics(name)?, name.is_some()),
        (Listed::Metrics, ShortFormat::Json) => metrics_json(&metrics(name)?),
        (Listed::Scenarios, format) => scenarios(name, format)?,
    };
    output::data(&text)?;
    Ok(Exit::Ok)
}

fn stacks(name: Option<&str>) -> Result<Vec<Registered>, Failure> {
    let Some(name) = name else {
        return Ok(entries().collect());
    };
    // `highspeed(low_window=31)+limited` asks for two entries.
    let parts = name.split(['+', '(']).next().unwrap_or(name);
    let wanted = if entries().any(|e| e.answers_to(name)) {
        name
    } else {
        parts
    };
    let found: Vec<_> = entries().filter(|e| e.answers_to(wanted)).collect();
    // In the words that a scenario gets: no law of others is a slip of one that is here.
    if found.is_empty()
        && let Err(error) = StackSpec::parse(wanted)
    {
        let failure = Failure::new(Exit::Usage, error.to_string());
        return Err(error.hint().into_iter().fold(failure, Failure::hint));
    }
    Ok(found)
}

fn stacks_text(entries: &[Registered], everything: bool) -> String {
    let mut out = String::new();
    if everything {
        out.push_str(SPELLING);
    }
    // Writing to a string cannot fail.
    for kind in Kind::ALL {
        let of_kind: Vec<_> = entries.iter().filter(|e| e.kind == kind).collect();
        if of_kind.is_empty() {
            continue;
        }
        let _ = write!(out, "\n{}\n", heading(kind));
        for entry in of_kind {
            let aliases = match entry.aliases {
                [] => String::new(),
                some => format!("  (also {})", some.join(", ")),
            };
            let _ = write!(out, "\n  {}{aliases}\n      {}\n", entry.name, entry.about);
            let _ = writeln!(out, "      source: {}", entry.source);
            push_params(&mut out, entry.params);
        }
        if kind == Kind::Law {
            let _ = writeln!(out, "\n  every window law also takes");
            push_params(&mut out, COMMON_LAW_PARAMS);
        }
    }
    out.trim_start_matches('\n').to_owned()
}

fn heading(kind: Kind) -> String {
    kind.to_string().to_uppercase()
}

fn push_params(out: &mut String, params: &[ParamSpec]) {
    if params.is_empty() {
        return;
    }
    for p in params {
        let _ = writeln!(
            out,
            "      {} = {}    {}",
            p.name,
            p.default_text(),
            values(p)
        );
        let _ = writeln!(out, "          {} [{}]", p.doc, p.source);
    }
}

/// `0.01 to 1 fraction`, `rfc | ns2`.
fn values(param: &ParamSpec) -> String {
    match param.unit {
        // A range of times carries its units.
        "" | "time" => param.range_text(),
        unit => format!("{} {unit}", param.range_text()),
    }
}

fn stacks_json(entries: &[Registered]) -> String {
    let params = |params: &[ParamSpec]| -> Vec<Value> {
        let one = |p: &ParamSpec| {
            json!({
                "name": p.name, "default": p.default_text(), "range": p.range_text(), "unit": p.unit,
                "about": p.doc, "source": p.source,
            })
        };
        params.iter().map(one).collect()
    };
    let stacks: Vec<Value> = entries
        .iter()
        .map(|e| {
            json!({
                "name": e.name, "aliases": e.aliases, "kind": e.kind.to_string(), "about": e.about,
                "source": e.source, "parameters": params(e.params),
            })
        })
        .collect();
    pretty(&json!({
        "fullpipe": env!("CARGO_PKG_VERSION"),
        "stacks": stacks,
        "common_law_parameters": params(COMMON_LAW_PARAMS),
    }))
}

fn scenarios(name: Option<&str>, format: ShortFormat) -> Result<String, Failure> {
    if let Some(name) = name {
        return match builtin::find(name) {
            // The file itself is the most useful answer: it can be kept and changed.
            Some(text) if format == ShortFormat::Table => Ok(text.to_owned()),
            Some(_) => Ok(pretty(
                &json!({ "fullpipe": env!("CARGO_PKG_VERSION"), "scenarios": [scenario(name)?] }),
            )),
            None => Err(unknown("scenario", name, builtin::names())),
        };
    }
    let all: Vec<Value> = builtin::names().map(scenario).collect::<Result<_, _>>()?;
    if format == ShortFormat::Json {
        return Ok(pretty(
            &json!({ "fullpipe": env!("CARGO_PKG_VERSION"), "scenarios": all }),
        ));
    }
    let mut table = Table::new();
    table.column(Align::Left, &["scenario"]);
    table.column(Align::Right, &["cases"]);
    table.column(Align::Right, &["seeds"]);
    table.column(Align::Right, &["expectations"]);
    table.column(Align::Left, &["about"]);
    for s in &all {
        let text = |key: &str| {
            s[key]
                .as_str()
                .map_or_else(|| s[key].to_string(), str::to_owned)
        };
        let about = text("about");
        let first = opening(&about);
        if let Some(members) = s["study"].as_array() {
            let members: Vec<&str> = members.iter().filter_map(Value::as_str).collect();
            let of = format!("{first} (study: {})", members.join(", "));
            let dash = || "-".to_owned();
            table.row(vec![text("name"), dash(), dash(), dash(), of]);
            continue;
        }
        table.row(vec![
            text("name"),
            text("cases"),
            text("seeds"),
            text("expectations"),
            first,
        ]);
    }
    Ok(table.text() + "\n`fullpipe list scenarios NAME` prints the file of one.\n")
}

/// The lines of a text up to the first that ends with a sentence; within brackets none ends, as at
/// `(e.g.`.
fn opening(about: &str) -> String {
    let mut opening = String::new();
    for line in about.lines().take_while(|line| !line.is_empty()) {
        if !opening.is_empty() {
            opening.push(' ');
        }
        opening.push_str(line);
        let open = opening.matches('(').count() > opening.matches(')').count();
        if !open && opening.ends_with(['.', '?', '!', ')']) {
            break;
        }
    }
    opening
}

fn scenario(name: &str) -> Result<Value, Failure> {
    let broken = |e| {
        Failure::new(
            Exit::Internal,
            format!("the built-in scenario `{name}` is wrong:\n{e}"),
        )
    };
    Ok(
        match fullpipe_scenario::load(name, &Overrides::default()).map_err(broken)? {
            Loaded::Scenario(s) => json!({
                "name": name, "about": s.about, "cases": s.cases.len(), "seeds": s.seeds.len(),
                "expectations": s.expectations.len(),
            }),
            Loaded::Study(s) => json!({ "name": name, "about": s.about, "study": s.scenarios }),
        },
    )
}

fn metrics(name: Option<&str>) -> Result<Vec<&'static Metric>, Failure> {
    let Some(name) = name else {
        return Ok(METRICS.iter().collect());
    };
    let found: Vec<_> = METRICS.iter().filter(|m| m.name == name).collect();
    if found.is_empty() {
        return Err(unknown_metric(name));
    }
    Ok(found)
}

fn metrics_text(metrics: &[&Metric], details: bool) -> String {
    let mut out = String::new();
    if details {
        for m in metrics {
            let _ = write!(
                out,
                "{} ({} of a {})\n  {}\n",
                m.name,
                unit(m),
                m.scope.word(),
                m.about
            );
            let _ = writeln!(out, "  formula: {}", m.formula);
            if m.scope == Scope::Traffic {
                let _ = writeln!(out, "  of: {}", m.kinds());
            }
            if !m.streams.is_empty() {
                let _ = writeln!(out, "  several streams: {}", m.streams);
            }
            let _ = writeln!(out, "  source: {}", m.source);
        }
        return out;
    }
    let mut table = Table::new();
    for head in ["metric", "of a", "unit", "meaning"] {
        table.column(Align::Left, &[head]);
    }
    for m in metrics {
        table.row(
            [m.name, m.scope.word(), unit(m), m.about]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    out += &table.text();
    out += "\n`fullpipe list metrics NAME` shows formula and source of one.\n";
    out
}

fn unit(metric: &Metric) -> &'static str {
    if metric.unit == "1" {
        "ratio"
    } else {
        metric.unit
    }
}

fn metrics_json(metrics: &[&Metric]) -> String {
    let metrics: Vec<Value> = metrics
        .iter()
        .map(|m| {
            json!({
                "name": m.name, "scope": m.scope.word(), "unit": m.unit, "about": m.about,
                "formula": m.formula, "streams": m.streams, "kinds": m.kinds(), "source": m.source,
            })
        })
        .collect();
    pretty(&json!({ "fullpipe": env!("CARGO_PKG_VERSION"), "metrics": metrics }))
}

fn pretty(value: &Value) -> String {
    // `{:#}` of a JSON value is indented JSON, and cannot fail.
    format!("{value:#}\n")
}

/// An unknown metric, with the nearest known one.
pub fn unknown_metric(name: &str) -> Failure {
    let mut names: Vec<&'static str> = METRICS.iter().map(|m| m.name).collect();
    names.dedup();
    let near = nearest(name).or_else(|| fullpipe_cc::registry::nearest(name, names.into_iter()));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`fullpipe list metrics` shows all".to_owned(),
    };
    Failure::new(Exit::Usage, format!("unknown metric `{name}`")).hint(hint)
}

/// An unknown name, with the nearest known one.
pub fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Failure {
    let known: Vec<&'static str> = known.collect();
    let hint = match fullpipe_cc::registry::nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", known.join(", ")),
    };
    Failure::new(Exit::Usage, format!("unknown {what} `{name}`")).hint(hint)
}

const SPELLING: &str = "\
A stack is a window law, then optionally a start-up, a way to send the first window, and pacing, joined by `+`:
  reno    highspeed(low_window=31)+limited(max_ssthresh=100)    reno+spread(t_max=4ms,iw=10)
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_is_cut() {
        let text = "Two flows share\na path. And more.\n\nThe rest.";
        assert_eq!(opening(text), "Two flows share a path. And more.");
        assert_eq!(opening("One.\nTwo."), "One.");
        let text = "No transports (e.g.\nSABUL, UDT) at the\nmoment (2003).\nUDT sets a rate.";
        let first = "No transports (e.g. SABUL, UDT) at the moment (2003).";
        assert_eq!(opening(text), first);
        assert_eq!(opening("without a stop\n\nThe rest."), "without a stop");
        assert_eq!(opening(""), "");
    }
}
