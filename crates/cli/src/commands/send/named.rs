//! `--test`: a built-in scenario over the path to a host.

use std::num::NonZeroU32;

use fullpipe_scenario::{Diagnostics, Overrides, Scenario};
use fullpipe_units::{Span, Time};

use super::document::{sends_something, wrong};
use super::{memory, usage};
use crate::args::Send;
use crate::exit::Failure;

/// The first case of the test, as the flags change it.
///
/// # Errors
/// A flag cannot be read, or does not fit the test.
pub fn scenario(args: &Send, test: &str, host: &str, rtt: Span) -> Result<Scenario, Failure> {
    let file = load(args, test, &[]).map_err(wrong)?;
    let changes = changes(args, test, rtt, &file)?;
    let scenario = load(args, test, &changes).map_err(|found| wrong(of_flags(found, &changes)))?;
    let scenario = Scenario {
        about: format!("{test} with {host}"),
        ..scenario.first_case_unjudged()
    };
    sends_something(&scenario, args)?;
    Ok(scenario)
}

/// A key that differs from the file, and the flag behind it.
struct Change {
    flag: &'static str,
    key: String,
    value: String,
}

impl Change {
    fn new(flag: &'static str, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        Self { flag, key, value }
    }
}

fn load(args: &Send, test: &str, changes: &[Change]) -> Result<Scenario, Diagnostics> {
    let own = changes.iter().map(|c| (c.key.clone(), c.value.clone()));
    let overrides = Overrides {
        set: own.chain(args.set.iter().cloned()).collect(),
        seed: Some(args.seed.unwrap_or(1)),
        repeat: Some(NonZeroU32::MIN),
        ..Overrides::default()
    };
    Scenario::load(test, &overrides)
}

/// What is wrong with a key is wrong with its flag.
fn of_flags(mut found: Diagnostics, changes: &[Change]) -> Diagnostics {
    for diagnostic in &mut found.0 {
        if let Some(change) = changes.iter().find(|c| c.key == diagnostic.key) {
            change.flag.clone_into(&mut diagnostic.file);
        }
    }
    found
}

/// The path is what it is, times shrink with `--time`, every other flag is a key.
fn changes(args: &Send, test: &str, rtt: Span, file: &Scenario) -> Result<Vec<Change>, Failure> {
    let case = &file.cases[0];
    let mut changes = vec![
        Change::new("", "path.rate", "100Gbit/s"),
        Change::new("", "path.return_rate", "100Gbit/s"),
        Change::new("", "path.rtt", spelled(rtt)),
        Change::new("", "path.buffer", memory::BUFFER),
    ];
    if args.interval.is_some() || args.time.is_some() {
        let interval = memory::interval(args)?;
        changes.push(Change::new("--interval", "measure.interval", interval));
    }
    let mut shorter = 1.0;
    if let Some(time) = &args.time {
        let time = memory::span(time, "--time")?;
        changes.push(Change::new("--time", "duration", spelled(time)));
        shorter = time.ratio(case.duration).min(1.0);
    }
    let shrunk =
        |key: String, time: Span| Change::new("--time", key, spelled(time.mul_f64(shorter)));
    changes.push(shrunk("measure.warmup".to_owned(), case.warmup));
    let stacks = &args.stack;
    if test == "versus" && stacks.len() == 1 {
        let message = format!("--stack {}: `versus` lets two compete", stacks[0]);
        return Err(usage(message).hint("write both: `--stack A --stack B`"));
    }
    if stacks.len() > 1 && stacks.len() != case.flows.len() {
        let names: Vec<&str> = case.flows.iter().map(|f| f.name.as_str()).collect();
        let message = format!("--stack: {} stacks for the flows of {test}", stacks.len());
        let hint = format!("give one for all, or one each for {}", names.join(", "));
        return Err(usage(message).hint(hint));
    }
    let spec = case.run_spec(1);
    for (i, flow) in case.flows.iter().enumerate() {
        let key = |key: &str| format!("flow.{}.{key}", flow.name);
        changes.push(shrunk(key("start"), flow.start - Time::ZERO));
        let spread = spec.flows[flow.members.start].start_spread;
        changes.push(shrunk(key("start_spread"), spread));
        let streams = args.streams.map(|n| n.to_string());
        let flags = [
            ("--stack", "stack", stacks.get(i).or(stacks.first())),
            ("--streams", "streams", streams.as_ref()),
            ("--window", "window", args.window.as_ref()),
            ("--bitrate", "rate", args.rate_cap()),
        ];
        let given = flags
            .into_iter()
            .filter_map(|(flag, name, value)| Some(Change::new(flag, key(name), value?.clone())));
        changes.extend(given);
    }
    Ok(changes)
}

fn spelled(span: Span) -> String {
    span.max(Span::from_nanos(1)).to_string()
}
