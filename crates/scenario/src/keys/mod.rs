//! The keys of a scenario file, one row for each: name, kind, default, example, what it is, and
//! where it lands.
//!
//! Reading, the search for the nearest name, the JSON Schema, `docs/scenario.md` and the resolver
//! all come from these tables.

mod flow;
mod loss;
mod measure;
mod path;
mod queue;
mod traffic;
mod transport;

use super::value::{Section, Seeds, Table, keys};

pub(super) use flow::{ChangeTable, Direction, DropPlace, DropTable, Flow, FlowKeys};
pub(super) use loss::{lasting, loss};
pub(super) use measure::{
    Expect, Figure, Figures, INTERVAL, INTERVALS, Measures, Negative, RECOVERED, RecoveredTable,
};
pub(super) use path::{
    Back, Change, DelayChange, Element, Link, LinkKeys, Path, PathChange, PathChanges, PathKeys,
    PathPreset, PolicerTable, Route, RttChange,
};
pub(super) use queue::{QueueKind, QueueTable, Served, discipline};
pub(super) use traffic::{
    PING_SIZE, ParetoTable, SizeTable, Traffic, TrafficKeys, TrafficKinds, TrafficWord,
};
pub(super) use transport::{Ends, TXQUEUELEN, Transport};

keys! {
    /// Top level of the file.
    Top {
        @fixed name: name ~ r#""my-scenario""# [!], "early-loss",
            "name of the scenario, and of its directory when several are run";
        @fixed about: text [= String::new()], "Time to full bandwidth after one early loss",
            "what it shows, with its sources";
        duration: moment [!], "60s", "virtual time of a run";
        @fixed seeds: seeds [= Seeds(vec![1])], [1, 2, 3],
            "seeds of every case: a number `n` stands for 1 to n, a list for itself";
        @fixed path: table(Path), (), "the bottleneck of a dumbbell, shared by all flows";
        @fixed flow: tables(Flow), (), "one sender and its receiver";
        @fixed traffic: tables(Traffic), (), "short flows, datagrams or probes";
        @fixed link: tables(Link), (), "a link beside those of [path]";
        @fixed route: tables(Route), (), "the links that a flow or traffic crosses";
        @fixed matrix: free, { "path.mtu" = [1500, 9000] },
            "dotted keys and lists of values: the product of all lists is run, the last key varies \
             fastest";
        @fixed quick: free, { "duration" = "10s" },
            "dotted keys that `--quick` sets; for a key of [matrix] a list takes the place of its \
             list";
        @fixed study: many(text), ["first-run", "early-loss"],
            "in a file with `name`, `about` and this alone: scenarios that make one report";
        @fixed measure: table(Measures), (), "what is measured and from when";
        @fixed expect: tables(Expect), (), "a bound that the result must keep";
        @fixed negative: tables(Negative), (),
            "a wrong world, in which an expectation must fail: see `fullpipe falsify`";
        @fixed report: tables(Figures), (), "a figure to draw";
    }
}

/// Where a key that is unknown in one table may be at home.
pub(super) const SECTIONS: &[Section] = &[
    ("", Top::KEYS),
    ("[path]", Path::KEYS),
    ("[[flow]]", Flow::KEYS),
    ("[[traffic]]", Traffic::KEYS),
    ("[[link]]", Link::KEYS),
    ("[[route]]", Route::KEYS),
    ("[measure]", Measures::KEYS),
    ("[[expect]]", Expect::KEYS),
    ("[[negative]]", Negative::KEYS),
    ("[[report]]", Figures::KEYS),
];

#[cfg(test)]
mod tests {
    use super::super::document::{Data, Sources};
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::value::{Key, Kind, Reader, nested};
    use super::*;
    use crate::{Overrides, Scenario};

    /// Every key of every table, with its table's name.
    fn all() -> Vec<(String, &'static Key)> {
        fn walk(path: &str, keys: &'static [Key], out: &mut Vec<(String, &'static Key)>) {
            for key in keys {
                let full = format!("{path}.{}", key.name);
                out.push((full.clone(), key));
                let inner = match key.kind {
                    Kind::Tables(keys) => Some(keys),
                    _ => nested(&key.kind),
                };
                walk(&full, inner.unwrap_or_default(), out);
            }
        }
        let mut out = Vec::new();
        walk("", Top::KEYS, &mut out);
        out
    }

    #[test]
    fn defaults_and_examples_are_values_of_their_keys() {
        for (path, key) in all() {
            for text in [&key.default(), key.example] {
                if text.is_empty() || text.starts_with('(') {
                    continue;
                }
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, faults) = sources.parse(source);
                assert!(faults.is_empty(), "{path}: {text}: {faults:?}");
                let mut reader = Reader::new(&sources, SECTIONS);
                let value = reader.value(&key.kind, &entries[0].node, &path, "");
                assert!(
                    value.is_some() && reader.findings.faults.is_empty(),
                    "{path}: {text}: {:?}",
                    reader.findings.faults
                );
            }
        }
    }

    /// What a value of a key changes in a flow's endpoints is what its row says.
    #[test]
    fn switches_land_where_their_rows_say() {
        let ends = |preset: &str, line: &str| {
            let stack = match line.starts_with("stack") {
                true => "",
                false => "stack = \"reno\"\n",
            };
            let text = format!(
                "name = \"a\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n\
                 mtu = 9000\n[[flow]]\n{stack}preset = \"{preset}\"\n{line}\n"
            );
            let scenario = Scenario::parse(&text, "a.toml", &Overrides::default()).ok()?;
            let flow = scenario.cases[0].run_spec(1).flows.swap_remove(0);
            let ends = serde_json::json!({ "sender": flow.sender, "receiver": flow.receiver });
            let mut fields = BTreeMap::new();
            flatten("", &ends, &mut fields);
            Some(fields)
        };
        let mut moved = BTreeSet::new();
        for preset in ["2003", "2026", "linux", "linux-6.6"] {
            let before = ends(preset, "").unwrap();
            for key in Transport::KEYS.iter().filter(|key| key.name != "preset") {
                let values = match key.kind {
                    Kind::Word(words) => words.iter().map(|w| format!("{:?}", w.word)).collect(),
                    Kind::Flag => vec!["true".to_owned(), "false".to_owned()],
                    Kind::Stack => vec!["\"reno+spread+paced(iw=4)\"".to_owned()],
                    _ => vec![key.example.to_owned()],
                };
                for value in values {
                    let line = format!("{} = {value}", key.name);
                    let after = ends(preset, &line).expect(&line);
                    let both = before.keys().chain(after.keys());
                    for path in both.filter(|path| before.get(*path) != after.get(*path)) {
                        let says = |field: &&str| {
                            let rest = path.strip_prefix(field);
                            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                        };
                        let named = key.fields.iter().any(says);
                        assert!(named, "`{line}` moves {path} of {preset}");
                        moved.insert(path.clone());
                    }
                }
            }
        }
        assert!(moved.len() > 45, "{moved:?}");
    }

    fn flatten(path: &str, value: &serde_json::Value, out: &mut BTreeMap<String, String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, field) in fields {
                    let path = format!("{path}.{name}");
                    flatten(path.trim_start_matches('.'), field, out);
                }
            }
            leaf => _ = out.insert(path.to_owned(), leaf.to_string()),
        }
    }

    #[test]
    fn keys_are_documented_and_unique() {
        let all = all();
        for (path, key) in &all {
            assert!(!key.doc.is_empty() && !key.doc.ends_with('.'), "{path}");
            let table = matches!(key.kind, Kind::Table(_) | Kind::Tables(_));
            assert!(table || !key.example.is_empty(), "{path} has no example");
        }
        let mut names: Vec<&String> = all.iter().map(|(path, _)| path).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    /// A value of any shape is read, or refused with a fault.
    #[test]
    fn every_kind_refuses_every_other_shape() {
        let shapes = [
            "\"\"",
            "\"x\"",
            "0",
            "-1",
            "1e300",
            "nan",
            "inf",
            "true",
            "1979-05-27",
            "[]",
            "[[]]",
            "{}",
            "[{}]",
            "\"\\u0000\"",
        ];
        for (path, key) in all() {
            for text in shapes {
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, _) = sources.parse(source);
                let mut reader = Reader::new(&sources, SECTIONS);
                let value = reader.value(&key.kind, &entries[0].node, &path, key.example);
                assert!(
                    value.is_some() || !reader.findings.faults.is_empty(),
                    "{path} = {text}"
                );
                if matches!(entries[0].node.data, Data::Date) {
                    assert!(value.is_none(), "{path} = {text}");
                }
            }
        }
    }
}
