//! Every key of a scenario file with `send`: it changes what is sent or how it is measured, or is
//! refused by its name, and what the message advises is taken. None is ignored.

use std::collections::BTreeSet;

use clap::Parser as _;
use fullpipe_run::FlowSpec;
use fullpipe_scenario::every_key;
use fullpipe_units::Span;

use super::memory;
use crate::args::{Args, Command};
use crate::foreign;

/// What a key of this name needs beside it: keys of its own table, and flags.
const BESIDE: &[(&str, &[&str], &[&str])] = &[
    ("path.rate", &[], &["--window", "1BDP"]),
    ("enabled", &[], &["--traffic", "ping"]),
    ("change", &[], &["--stack", "reno"]),
    ("frto_by", &["frto=true"], &[]),
    ("ecn_echo", &["ecn=true"], &[]),
    ("pacer", &["pacing=true"], &[]),
    ("hz", &["timers=wheel"], &[]),
    ("tso_autosize", &["tso=64kB"], &[]),
    ("traffic.cross.load", &[], &["--set", "path.rate=1Gbit/s"]),
    ("traffic.cross.think", &["exchanges=5"], &[]),
];

/// Values other than the examples, where these are what short flows have anyhow, or go with other
/// keys than theirs.
const OTHERS: &[(&str, &str)] = &[("traffic.cross.per_second", "7")];

/// Traffic with keys of a transport.
const SHORT: &[&str] = &["--traffic", "short-flows,stack=reno,size=9kB,per_second=5"];

/// What a value is the default of is not that of another.
const PRESETS: [&[&str]; 3] = [&[], &["preset=linux"], &["preset=2003"]];

/// Tables of a file, which are no keys that could be set.
const TABLES: [&str; 11] = [
    "path", "flow", "traffic", "link", "route", "matrix", "quick", "measure", "expect", "negative",
    "report",
];

/// Whether a command line is refused, and why.
#[derive(Debug)]
enum Outcome {
    Refused(String),
    /// What is sent and how it is measured, and the warnings that hold.
    Taken(String, Vec<String>),
}

/// `send HOST` with these flags, as far as it asks nobody.
fn outcome(flags: &[&str]) -> Outcome {
    let line = [&["fullpipe", "send", "host"], flags].concat();
    let Command::Send(args) = Args::parse_from(line).command else {
        panic!("{flags:?}");
    };
    if let Err(failure) = foreign::honoured(&args.set, foreign::SEND, "host") {
        return Outcome::Refused(format!("{}\n{}", failure.message, failure.hints.join("\n")));
    }
    let document = match memory::document(&args, "host", Span::from_millis(1)) {
        Ok(document) => document,
        Err(failure) => return Outcome::Refused(failure.message),
    };
    match document.scenario(None) {
        Err(wrong) => Outcome::Refused(wrong.to_string()),
        Ok(scenario) => {
            let case = &scenario.cases[0];
            let mut spec = case.run_spec(1);
            spec.links.clear();
            // The way is the network's, and what was written is no part of a run.
            let forget = |flow: &mut FlowSpec| {
                flow.forward.clear();
                flow.back.clear();
                flow.written.clear();
            };
            spec.flows.iter_mut().for_each(forget);
            spec.arrivals
                .iter_mut()
                .for_each(|a| forget(&mut a.template));
            let measured: Vec<_> = case.flows.iter().map(|flow| flow.recovered_at).collect();
            let run = format!(
                "{spec:?} {measured:?} {:?} {:?} {} {}",
                scenario.seeds, scenario.measure, scenario.name, scenario.about
            );
            let warnings = scenario.warnings.iter().filter(|w| foreign::holds(w));
            Outcome::Taken(run, warnings.map(ToString::to_string).collect())
        }
    }
}

/// The key as `--set` has it.
fn address(section: &str, key: &str) -> String {
    match section {
        "" | "[[flow]]" => key.to_owned(),
        "[[traffic]]" => format!("traffic.cross.{key}"),
        "[[link]]" => format!("link.first.{key}"),
        section => format!("{}.{key}", section.trim_matches(['[', ']'])),
    }
}

/// Keys in backquotes of a message.
fn advised(message: &str) -> impl Iterator<Item = String> {
    let known: BTreeSet<String> = every_key().map(|(s, key, _)| address(s, key)).collect();
    let quoted = message.split('`').skip(1).step_by(2);
    let words = quoted.map(|text| text.trim_start_matches("--set "));
    let keys = words.filter_map(|text| text.split([' ', '=']).next());
    let keys: Vec<String> = keys
        .map(str::to_owned)
        .filter(|k| known.contains(k))
        .collect();
    keys.into_iter()
}

/// The values of a key that are tried: its example, and the other one of two.
fn values(name: &str, example: &str) -> Vec<String> {
    if let Some((_, other)) = OTHERS.iter().find(|(of, _)| *of == name) {
        return vec![(*other).to_owned()];
    }
    let other = match example {
        "true" => Some("false"),
        "false" => Some("true"),
        _ => None,
    };
    [Some(example), other]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect()
}

/// Why a key with a value, beside flags, is neither honoured nor refused as it should be; else what
/// was said of it, and whether it was taken.
fn tried(name: &str, value: &str, beside: &[&str]) -> Result<(bool, String), String> {
    let set = format!("{name}={value}");
    // Of a pair that cannot be, a message has one by its place and both by their names.
    let key = name.rsplit('.').next().unwrap_or(name);
    let with = outcome(&[beside, &["--set", &set]].concat());
    match (with, outcome(beside)) {
        (Outcome::Refused(said), _) if said.contains(key) && said.contains("\n") => {
            Ok((false, said))
        }
        (Outcome::Refused(said), _) => Err(format!(
            "{set}: refused without its name or a remedy: {said}"
        )),
        (_, Outcome::Refused(said)) => Err(format!("{beside:?} is refused: {said}")),
        (Outcome::Taken(a, warnings), Outcome::Taken(b, _)) => {
            match a != b && warnings.is_empty() {
                true => Ok((true, String::new())),
                false => Err(format!(
                    "{set} beside {beside:?} changes nothing: {warnings:?}"
                )),
            }
        }
    }
}

#[test]
fn every_key_is_honoured_or_refused_by_its_name() {
    let (mut taken, mut refused, mut wrong) = (0, 0, Vec::new());
    for (section, key, example) in every_key() {
        // `--traffic` begins with a kind, which says what other keys there are.
        let is_kind = (section, key) == ("[[traffic]]", "kind");
        if is_kind || section.is_empty() && TABLES.contains(&key) {
            continue;
        }
        let name = address(section, key);
        let table = name.strip_suffix(key).unwrap_or_default();
        let is_own = |of: &str| of == name || (of == key && section.starts_with("[["));
        let row = BESIDE.iter().find(|(of, ..)| is_own(of));
        let (keys, flags) = row.map_or((&[][..], &[][..]), |(_, keys, flags)| (*keys, *flags));
        let traffic = match section {
            "[[traffic]]" => SHORT,
            _ => &[],
        };
        let mut tries = Vec::new();
        for preset in PRESETS {
            let of_table: Vec<String> = (keys.iter().chain(preset))
                .flat_map(|set| ["--set".to_owned(), format!("{table}{set}")])
                .collect();
            let of_table = of_table.iter().map(String::as_str);
            let beside: Vec<&str> = traffic
                .iter()
                .chain(flags)
                .copied()
                .chain(of_table)
                .collect();
            let values = values(&name, example);
            tries.extend(values.iter().map(|value| tried(&name, value, &beside)));
        }
        // Somewhere it does something, or nowhere is it taken.
        let taken_once = tries.iter().flatten().any(|(taken, _)| *taken);
        let good = tries.iter().flatten().next().cloned();
        match good {
            Some(_) if taken_once => taken += 1,
            Some((_, said)) => {
                refused += 1;
                for key in advised(&said).filter(|advised| *advised != name) {
                    let set = [(key, String::new())];
                    if let Err(e) = foreign::honoured(&set, foreign::SEND, "host") {
                        wrong.push(format!("{name}: {said}\n  advises: {}", e.message));
                    }
                }
            }
            None => wrong.extend(tries.into_iter().next().and_then(Result::err)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        taken > 60 && refused > 30,
        "{taken} taken, {refused} refused"
    );
}
