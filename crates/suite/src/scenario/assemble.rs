//! From the text of a file and the command line's changes to a [`Scenario`].

use std::collections::HashSet;

use super::document::{Fault, Sources};
use super::expect::{self, Known};
use super::files::Files;
use super::matrix::{self, Axis, Config, Names};
use super::resolve::{self, Findings};
use super::value::{DEFAULT_FLOW, Field, Reader, Record, Value, flow_path, member_path};
use super::{Case, Diagnostic, Diagnostics, Measure, Overrides, Scenario, keys};

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
    let mut config = Config {
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
    let mut axes = match matrix.map(|field| field.value) {
        Some(Value::Free(entries)) => matrix::axes(&mut reader, &entries, &names),
        _ => Vec::new(),
    };
    let mut last = Vec::new();
    if let Some(Value::Free(entries)) = quick.map(|field| field.value) {
        if overrides.quick {
            matrix::quick(
                &mut reader,
                &mut config,
                &mut axes,
                &mut last,
                &names,
                &entries,
            );
        } else {
            // What is wrong with it is said without `--quick` too, and an expectation may be about a value that only
            // `--quick` runs.
            let (mut other, mut config, mut last) = (axes.clone(), config.clone(), Vec::new());
            matrix::quick(
                &mut reader,
                &mut config,
                &mut other,
                &mut last,
                &names,
                &entries,
            );
            for (axis, other) in axes.iter_mut().zip(&other) {
                axis.remember(other);
            }
        }
    }
    for (key, source) in settings {
        let (node, faults) = sources.parse_value(source);
        reader.faults.extend(faults);
        matrix::set(
            &mut reader,
            &mut config,
            &mut axes,
            &mut last,
            &names,
            &key,
            &node,
        );
    }
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
        match count(&axes, seeds.len()) {
            Ok(count) => {
                let mut expansion = Expansion {
                    config: &config,
                    axes: &axes,
                    last: &last,
                    names: &names,
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
            axes: &axes,
            cases: &cases,
            quick: overrides.quick,
        };
        let baselines = expect::baselines(&mut reader, &config.measure, &known);
        let precision = expect::precision(&mut reader, &config.measure);
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

/// Makes the cases.
struct Expansion<'a> {
    config: &'a Config,
    axes: &'a [Axis],
    last: &'a [(matrix::Address, Field)],
    names: &'a Names,
    files: &'a Files,
}

impl Expansion<'_> {
    /// All cases, unless there are faults: those of all cases are collected, and a fault that only some cases have
    /// names the first of them.
    fn run(
        &mut self,
        count: usize,
        faults: &mut Vec<Fault>,
        warnings: &mut Vec<Fault>,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut found: Vec<(Fault, usize, usize)> = Vec::new();
        let mut looked_at = 0;
        let mut connections = 0;
        for index in 0..count {
            looked_at += 1;
            let mut findings = Findings::default();
            match self.case(index, &mut findings) {
                Some(case) if found.is_empty() => {
                    connections += case.spec.flows.len();
                    cases.push(case);
                }
                _ => {}
            }
            if connections > MAX_CONNECTIONS {
                let at = self
                    .config
                    .flows
                    .last()
                    .map_or(self.config.top.at, |flow| flow.at);
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
                match found.iter_mut().find(|(known, ..)| *known == fault) {
                    Some((_, times, _)) => *times += 1,
                    None => found.push((fault, 1, index)),
                }
            }
            for warning in findings.warnings {
                if !warnings.contains(&warning) && warnings.len() < MAX_MESSAGES {
                    warnings.push(warning);
                }
            }
            if found.len() >= MAX_MESSAGES || (!found.is_empty() && looked_at >= MAX_FAULTY_CASES) {
                break;
            }
        }
        if found.is_empty() {
            return cases;
        }
        for (mut fault, times, first) in found {
            if times < looked_at {
                fault.message = format!("{} (in the case {})", fault.message, self.label(first));
            }
            faults.push(fault);
        }
        Vec::new()
    }

    fn case(&self, index: usize, findings: &mut Findings) -> Option<Case> {
        let mut config = self.config.clone();
        let digits = matrix::digits(index, self.axes);
        let values: Vec<_> = self
            .axes
            .iter()
            .zip(&digits)
            .map(|(axis, digit)| &axis.values[*digit])
            .collect();
        for (address, field) in values.iter().flat_map(|value| &value.sets).chain(self.last) {
            if let Err(message) = address.apply(&mut config, field) {
                let key = address.key.name.to_owned();
                findings.faults.push(Fault {
                    at: field.at,
                    key,
                    shows_value: true,
                    message,
                    hint: None,
                });
                return None;
            }
        }
        let resolved = resolve::resolve(&config, self.names, self.files, findings)?;
        Some(Case {
            index,
            params: self
                .axes
                .iter()
                .zip(&values)
                .map(|(a, v)| (a.key.clone(), v.plain.clone()))
                .collect(),
            json: values.iter().map(|v| v.json.clone()).collect(),
            flows: resolved.flows,
            traffic: resolved.traffic,
            duration: resolved.spec.duration,
            warmup: resolved.warmup,
            interval: resolved.interval,
            baseline: None,
            spec: resolved.spec,
        })
    }

    fn label(&self, index: usize) -> String {
        let digits = matrix::digits(index, self.axes);
        let texts: Vec<String> = self
            .axes
            .iter()
            .zip(digits)
            .map(|(axis, digit)| {
                format!(
                    "{} = {}",
                    axis.key,
                    super::document::shorten(&axis.values[digit].plain)
                )
            })
            .collect();
        texts.join(", ")
    }
}

/// Names of the flows, in order; the only one may have none.
fn flow_names(reader: &mut Reader<'_>, flows: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for (i, flow) in flows.iter().enumerate() {
        let Value::Record(record) = flow else {
            continue;
        };
        let name = match record.text("name") {
            Some(name) => name,
            None if flows.len() == 1 => DEFAULT_FLOW.to_owned(),
            None => {
                if !record.is_given("name") {
                    let hint = Some(format!("write for example name = \"flow{}\"", i + 1));
                    let key = format!("flow[{}].name", i + 1);
                    reader.refuse_key(record.at, &key, "one of several flows needs a name", hint);
                }
                format!("[{}]", i + 1)
            }
        };
        if !known.insert(name.clone()) {
            let hint = Some("give every flow its own name".to_owned());
            let key = format!("{}.name", flow_path(&name));
            reader.refuse(
                record.place("name"),
                &key,
                "another flow has this name",
                hint,
            );
        }
        names.push(name);
    }
    names
}

/// Names of the tables of another list, in order; each has one.
fn member_names(reader: &mut Reader<'_>, section: &str, tables: &[Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        let Value::Record(record) = table else {
            continue;
        };
        let name = record
            .text("name")
            .unwrap_or_else(|| format!("[{}]", i + 1));
        if !record.is_attempted("name") {
            let hint = Some(format!("write for example name = \"{section}{}\"", i + 1));
            let key = format!("{section}[{}].name", i + 1);
            reader.refuse_key(record.at, &key, "this key is missing", hint);
        }
        if names.contains(&name) {
            let hint = Some(format!("give every {section} its own name"));
            let key = format!("{}.name", member_path(section, &name));
            let message = format!("another {section} has this name");
            reader.refuse(record.place("name"), &key, message, hint);
        }
        names.push(name);
    }
    names
}

/// Flows and traffic are told apart by their names.
fn distinct(reader: &mut Reader<'_>, names: &Names, traffic: &[Value]) {
    for (name, table) in names.traffic.iter().zip(traffic) {
        let Value::Record(record) = table else {
            continue;
        };
        if names.flows.contains(name) {
            let key = format!("{}.name", member_path("traffic", name));
            let hint = Some("give the traffic its own name".to_owned());
            reader.refuse(record.place("name"), &key, "a flow has this name", hint);
        }
    }
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

fn count(axes: &[Axis], seeds: usize) -> Result<usize, String> {
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

fn whole_file(sources: &Sources, file: usize, message: String) -> Diagnostics {
    let fault = Fault {
        at: sources.top(file),
        key: String::new(),
        shows_value: false,
        message,
        hint: None,
    };
    Diagnostics(vec![sources.diagnostic(fault)])
}

/// What is wrong, by line.
pub(super) fn written_out(sources: &Sources, mut faults: Vec<Fault>) -> Diagnostics {
    faults.sort_by_key(|fault| fault.at);
    faults.dedup();
    let more = faults.len().saturating_sub(MAX_MESSAGES);
    faults.truncate(MAX_MESSAGES);
    let last = faults.last().map(|fault| fault.at);
    let mut all = Diagnostics(
        faults
            .into_iter()
            .map(|fault| sources.diagnostic(fault))
            .collect(),
    );
    if let Some(at) = last.filter(|_| more > 0) {
        let (key, message) = (String::new(), format!("and {more} more errors"));
        all.0.push(sources.diagnostic(Fault {
            at,
            key,
            shows_value: false,
            message,
            hint: None,
        }));
    }
    all
}

const MAX_TEXT: usize = 4_000_000;
const MAX_CASES: usize = 100_000;
const MAX_RUNS: usize = 10_000_000;
/// Of all cases; each takes about a kilobyte before anything runs.
const MAX_CONNECTIONS: usize = 250_000;
const MAX_MESSAGES: usize = 40;
/// Once something is wrong, not all of a hundred thousand cases need to be looked at.
const MAX_FAULTY_CASES: usize = 1000;
