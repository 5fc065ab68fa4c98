//! From the text of a file and the command line's changes to a [`Scenario`].

mod expansion;
mod faults;
mod names;

use super::document::Sources;
use super::expect::{self, Known};
use super::files::Files;
use super::matrix::{self, Config, Draft, Names};
use super::resolve;
use super::value::{Field, Reader, Record, Value};
use super::{Diagnostic, Diagnostics, Measure, Overrides, Scenario, keys};
use expansion::{Expansion, count};
use faults::whole_file;
use names::{distinct, flow_names, member_names};

pub(super) use faults::written_out;

/// Reads a scenario.
pub(super) fn scenario(
    text: &str,
    origin: &str,
    overrides: &Overrides,
) -> Result<Scenario, Diagnostics> {
    let files = Files::new(origin);
    let mut sources = Sources::default();
    let file = sources.file(origin, if text.len() > MAX_TEXT { "" } else { text });
    if text.len() > MAX_TEXT {
        let message = format!("the file is larger than {} MB", MAX_TEXT / 1_000_000);
        return Err(whole_file(&sources, file, message));
    }
    let settings: Vec<(String, usize)> = overrides
        .set
        .iter()
        .map(|(key, value)| (key.clone(), sources.argument("--set", value)))
        .collect();
    let (entries, faults) = sources.parse(file);
    if !faults.is_empty() {
        return Err(written_out(&sources, faults));
    }

    let mut reader = Reader {
        sources: &sources,
        faults,
    };
    let mut top = reader.record(keys::TOP, &entries, sources.top(file), "");
    // What is not a list of tables stays where it is: the flows are not missing, they are wrong.
    let mut taken = |list: &str| match top.many(list) {
        [Value::Broken] => Vec::new(),
        _ => tables(top.field_mut(list).take()),
    };
    let (flows, traffic) = (taken("flow"), taken("traffic"));
    let (links, routes) = (taken("link"), taken("route"));
    let names = Names {
        flows: flow_names(&mut reader, &flows),
        traffic: member_names(&mut reader, "traffic", &traffic),
        links: member_names(&mut reader, "link", &links),
    };
    distinct(&mut reader, &names, &traffic);
    let (matrix, quick) = (
        top.field_mut("matrix").take(),
        top.field_mut("quick").take(),
    );
    let (expect, report) = (
        top.field_mut("expect").take(),
        top.field_mut("report").take(),
    );
    let config = Config {
        path: table(top.field_mut("path").take(), keys::PATH, &sources, file),
        measure: table(
            top.field_mut("measure").take(),
            keys::MEASURE,
            &sources,
            file,
        ),
        flows: records(flows),
        traffic: records(traffic),
        links: records(links),
        routes: records(routes),
        top,
    };

    let before_matrix = reader.faults.len();
    let axes = match matrix.map(|field| field.value) {
        Some(Value::Free(entries)) => matrix::axes(&mut reader, &entries, &names),
        _ => Vec::new(),
    };
    let mut draft = Draft {
        config,
        axes,
        last: Vec::new(),
        names: &names,
    };
    if let Some(Value::Free(entries)) = quick.map(|field| field.value) {
        if overrides.quick {
            draft.quick(&mut reader, &entries);
        } else {
            // What is wrong with it is said without `--quick` too, and an expectation may be about a value that only
            // `--quick` runs.
            let mut other = draft.clone();
            other.quick(&mut reader, &entries);
            for (axis, other) in draft.axes.iter_mut().zip(&other.axes) {
                axis.remember(other);
            }
        }
    }
    for (key, source) in settings {
        let (node, faults) = sources.parse_value(source);
        reader.faults.extend(faults);
        draft.set(&mut reader, &key, &node);
    }
    let Draft { config, axes, .. } = &draft;
    if let Some(field) = config.top.field("study") {
        let hint = Some("only `name` and `about` may stand beside it".to_owned());
        reader.refuse_key(field.at, "study", "this is a study, not a scenario", hint);
    }
    let matrix_is_good = reader.faults.len() == before_matrix;

    if !config.top.is_attempted("name") {
        let hint = Some("write for example name = \"my-scenario\"".to_owned());
        reader.refuse_key(config.top.at, "name", "this key is missing", hint);
    }
    let seeds = seeds(&config.top, overrides);
    let mut warnings = Vec::new();
    let mut cases = Vec::new();
    if matrix_is_good {
        match count(axes, seeds.len()) {
            Ok(count) => {
                let expansion = Expansion {
                    draft: &draft,
                    files: &files,
                };
                cases = expansion.run(count, &mut reader.faults, &mut warnings);
            }
            Err(message) => {
                let hint = Some("shorten the lists of [matrix], or `seeds`".to_owned());
                let at = axes.first().map_or(config.top.at, |axis| axis.values[0].at);
                reader.refuse_key(at, "matrix", message, hint);
            }
        }
        let known = Known {
            names: &names,
            axes,
            cases: &cases,
            quick: overrides.quick,
        };
        let baselines = expect::baselines(&mut reader, &config.measure, &known);
        let precision = expect::precision(&mut reader, &config.measure, &known);
        let expectations = expect::expectations(&mut reader, &tables(expect), &known);
        let reports = expect::reports(&mut reader, &tables(report), &known);
        if reader.faults.is_empty() {
            warnings.sort_by_key(|warning| warning.at);
            for (case, baseline) in cases.iter_mut().zip(baselines) {
                case.baseline = baseline;
            }
            let mut warnings: Vec<Diagnostic> = warnings
                .into_iter()
                .map(|fault| sources.diagnostic(fault))
                .collect();
            warnings.dedup();
            return Ok(Scenario {
                name: config.top.text("name").unwrap_or_default(),
                about: config
                    .top
                    .text("about")
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
                text: text.to_owned(),
                origin: origin.to_owned(),
                quick: overrides.quick,
                seeds,
                cases,
                expectations,
                measure: Measure {
                    trace: resolve::trace_mode(&config.measure),
                    precision,
                },
                reports,
                files: files.read_so_far(),
                warnings,
            });
        }
    }
    let faults = reader.faults;
    Err(written_out(&sources, faults))
}

fn records(tables: Vec<Value>) -> Vec<Record> {
    let record = |table| match table {
        Value::Record(record) => Some(record),
        _ => None,
    };
    tables.into_iter().filter_map(record).collect()
}

fn seeds(top: &Record, overrides: &Overrides) -> Vec<u64> {
    match (overrides.seed, overrides.repeat) {
        (Some(seed), repeat) => (0..u64::from(repeat.unwrap_or(1).max(1)))
            .map(|i| seed.wrapping_add(i))
            .collect(),
        (None, Some(repeat)) => (1..=u64::from(repeat.max(1))).collect(),
        (None, None) => top.seeds("seeds").unwrap_or_else(|| vec![1]),
    }
}

fn table(
    field: Option<Field>,
    keys: &'static [keys::Key],
    sources: &Sources,
    file: usize,
) -> Record {
    match field.map(|field| field.value) {
        Some(Value::Record(record)) => record,
        _ => Record::empty(keys, sources.top(file)),
    }
}

fn tables(field: Option<Field>) -> Vec<Value> {
    match field.map(|field| field.value) {
        Some(Value::List(values)) => values,
        _ => Vec::new(),
    }
}

const MAX_TEXT: usize = 4_000_000;
