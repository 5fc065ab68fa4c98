//! From the text of a file and the command line's changes to a [`Scenario`].

mod expansion;
mod names;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::document::Sources;
use super::expect::{self, Known};
use super::faults::{whole_file, written_out};
use super::files::Files;
use super::keys::{Measures, Path, PathPreset, SECTIONS, Top};
use super::matrix::{self, Config, Draft, Names, Section};
use super::places::Places;
use super::scenario::{Measure, Overrides, Scenario};
use super::value::{At, Free, Key, MAX_SEEDS, Reader, Record, Table, Value, Words as _};
use super::world;
use expansion::{Expansion, count};
use names::{distinct, flow_names, member_names};

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
    let world: Vec<usize> = overrides
        .world
        .iter()
        .map(|change| sources.argument(&change.key, &change.value))
        .collect();
    let presets = PathPreset::ALL.iter().map(|preset| {
        let name = format!("path preset {}", preset.word());
        (*preset, sources.file(&name, preset.text()))
    });
    let presets: Vec<(PathPreset, usize)> = presets.collect();
    let (entries, faults) = sources.parse(file);
    if !faults.is_empty() {
        return Err(written_out(&sources, faults));
    }

    let places = Places::new(&sources, &entries, &settings, overrides.quick);
    let mut reader = Reader::new(&sources, SECTIONS);
    let presets = presets.into_iter().map(|(preset, source)| {
        let (entries, faults) = sources.parse(source);
        reader.findings.faults.extend(faults);
        let record = reader.record(Path::KEYS, &entries, sources.top(source), "path");
        (preset, record)
    });
    let presets: Vec<(PathPreset, Record)> = presets.collect();
    let mut top = reader.record(Top::KEYS, &entries, sources.top(file), "");
    let (flows, traffic) = (
        tables(&mut top, &Top::flow),
        tables(&mut top, &Top::traffic),
    );
    let (links, routes) = (tables(&mut top, &Top::link), tables(&mut top, &Top::route));
    let names = Names {
        flows: flow_names(&mut reader, &flows),
        traffic: member_names(&mut reader, Section::Traffic, &traffic),
        links: member_names(&mut reader, Section::Link, &links),
    };
    distinct(&mut reader, &names, &traffic);
    let (matrix, quick) = (free(&mut top, &Top::matrix), free(&mut top, &Top::quick));
    let matrix_is_misspelt = matrix.is_none() && top.is_attempted(&Top::matrix);
    let (expect, report) = (
        tables(&mut top, &Top::expect),
        tables(&mut top, &Top::report),
    );
    let negative = tables(&mut top, &Top::negative);
    let config = Config {
        path: table(&mut top, &Top::path, Path::KEYS),
        measure: table(&mut top, &Top::measure, Measures::KEYS),
        flows,
        traffic,
        links,
        routes,
        top,
    };

    let before_matrix = reader.findings.faults.len();
    let axes = match matrix {
        Some(Free(entries)) => matrix::axes(&mut reader, &entries, &names),
        None => Vec::new(),
    };
    let mut draft = Draft {
        config,
        axes,
        last: Vec::new(),
        names: &names,
    };
    let mut whole = None;
    let has_quick = quick.is_some();
    if let Some(Free(entries)) = quick {
        if overrides.quick {
            whole = Some(draft.clone());
            draft.quick(&mut reader, &entries);
        } else {
            // What is wrong with it is said without `--quick` too, and an expectation may be about
            // a value that only `--quick` runs.
            let mut other = draft.clone();
            other.quick(&mut reader, &entries);
            for (axis, other) in draft.axes.iter_mut().zip(&other.axes) {
                axis.remember(other);
            }
        }
    }
    for (key, source) in settings {
        let (node, faults) = sources.parse_value(source);
        reader.findings.faults.extend(faults);
        draft.set(&mut reader, &key, &node);
    }
    let Draft { config, axes, .. } = &draft;
    if let Some(field) = config.top.field(&Top::study) {
        let hint = Some("only `name` and `about` may stand beside it".to_owned());
        reader.refuse_key(field.at, "study", "this is a study, not a scenario", hint);
    }
    let world = world::changes(&mut reader, &overrides.world, &world, &names);
    let negatives = world::negatives(&mut reader, &negative, &names, overrides.quick);
    let matrix_is_good = reader.findings.faults.len() == before_matrix && !matrix_is_misspelt;

    let top = At::<Top>::new(&config.top, "");
    top.required(&Top::name, &mut reader.findings);
    if overrides
        .repeat
        .is_some_and(|n| u64::from(n.get()) > MAX_SEEDS)
    {
        let message = format!("1 to {MAX_SEEDS} seeds are expected");
        let hint = Some("repeat less often".to_owned());
        reader.refuse_key(config.top.at, "seeds", message, hint);
    }
    let seeds = seeds(&top, overrides);
    let mut warnings = Vec::new();
    let mut cases = Vec::new();
    if matrix_is_good {
        match count(axes, seeds.len()) {
            Ok(count) => {
                let expansion = Expansion {
                    draft: &draft,
                    files: &files,
                    world: &world,
                    presets: &presets,
                };
                cases = expansion.run(count, &mut reader.findings.faults, &mut warnings);
                if let Some(draft) = &whole
                    && !warnings.is_empty()
                {
                    // What does nothing in the cases of `[quick]` may do something in others.
                    let expansion = Expansion { draft, ..expansion };
                    warnings.retain(|warning| expansion.is_strange(warning));
                }
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
            cases: &[],
            quick: overrides.quick,
            in_a_world: !overrides.world.is_empty(),
        };
        let count = cases.len();
        let baselines = expect::baselines(&mut reader, &config.measure, &known, count);
        for (case, baseline) in cases.iter_mut().zip(baselines) {
            case.baseline = baseline;
        }
        let known = Known {
            cases: &cases,
            ..known
        };
        let before_uses = reader.findings.faults.len();
        let precision = expect::precision(&mut reader, &config.measure, &known);
        let agreement = expect::agreement(&mut reader, &config.measure, &known);
        let (expectations, inapplicable) = expect::expectations(&mut reader, &expect, &known);
        let reports = expect::reports(&mut reader, &report, &known);
        if known.in_a_world {
            // A wrong world is held against expectations alone: what else the file makes of its
            // numbers need not be possible there.
            reader.findings.faults.truncate(before_uses);
        }
        let lines = expect.iter().map(|record| sources.line(record.at));
        let left_out = lines.filter(|line| expectations.iter().all(|e| e.line != *line));
        let left_out: Vec<usize> = left_out.collect();
        if reader.findings.faults.is_empty() {
            warnings.append(&mut reader.findings.warnings);
            warnings.sort_by_key(|warning| warning.at);
            let mut warnings: Vec<Diagnostic> = warnings
                .into_iter()
                .map(|fault| sources.diagnostic(fault))
                .collect();
            warnings.dedup();
            return Ok(Scenario {
                name: top.name.clone().unwrap_or_default(),
                about: top.about.trim().to_owned(),
                text: text.to_owned(),
                origin: origin.to_owned(),
                quick: overrides.quick,
                has_quick,
                set: overrides.set.clone(),
                seeds,
                cases,
                expectations,
                left_out,
                inapplicable,
                negatives,
                measure: Measure {
                    trace: Measures::read(&config.measure).trace,
                    precision,
                    agreement,
                },
                reports,
                files: files.read_so_far(),
                warnings,
                places,
            });
        }
    }
    Err(written_out(&sources, reader.findings.faults))
}

fn seeds(top: &Top, overrides: &Overrides) -> Vec<u64> {
    let repeat = overrides.repeat.map(|n| u64::from(n.get()).min(MAX_SEEDS));
    match (overrides.seed, repeat) {
        (Some(seed), repeat) => (0..repeat.unwrap_or(1))
            .map(|i| seed.wrapping_add(i))
            .collect(),
        (None, Some(repeat)) => (1..=repeat).collect(),
        (None, None) => top.seeds.0.clone(),
    }
}

/// Takes a table out; an empty one if there is none.
fn table(top: &mut Record, key: &Key, keys: &'static [Key]) -> Record {
    match top.take(key).map(|field| field.value) {
        Some(Value::Record(record)) => record,
        _ => Record::empty(keys, top.at),
    }
}

/// Takes a list of tables out. What is not one stays where it is: the flows are not missing, they
/// are wrong.
fn tables(top: &mut Record, key: &Key) -> Vec<Record> {
    let list = match top.field(key).map(|field| &field.value) {
        Some(Value::List(_)) => top.take(key).map(|field| field.value),
        _ => None,
    };
    let Some(Value::List(values)) = list else {
        return Vec::new();
    };
    let record = |value| match value {
        Value::Record(record) => Some(record),
        _ => None,
    };
    values.into_iter().filter_map(record).collect()
}

/// Takes a table out whose keys are checked elsewhere.
fn free(top: &mut Record, key: &Key) -> Option<Free> {
    match top.take(key)?.value {
        Value::Free(entries) => Some(Free(entries)),
        _ => None,
    }
}

const MAX_TEXT: usize = 4_000_000;
