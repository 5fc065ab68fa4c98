//! Where in a file a scenario says what, for whoever finds fault with it after it was read.

use std::collections::BTreeMap;

use super::diagnostic::Diagnostic;
use super::document::{Data, Entry, Fault, Node, Place, Sources};

/// The keys of a file by their dotted names, with the line and the text of each value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    file: String,
    tables: Layer,
    /// Lists of values in `[matrix]`.
    axes: Layer,
    /// What named cases set, by axis and name.
    cases: BTreeMap<(String, String), Layer>,
    quick: Layer,
    set: Layer,
}

/// Keys that were said in one go: what comes later holds, wildcards too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Layer {
    /// Each key where it was said last, and how many were said before.
    keys: BTreeMap<String, (usize, Diagnostic)>,
    said: usize,
}

impl Layer {
    fn say(&mut self, key: String, at: Diagnostic) {
        self.keys.insert(key, (self.said, at));
        self.said += 1;
    }

    fn last_of(&self, names: &[String]) -> Option<&Diagnostic> {
        let known = names.iter().filter_map(|name| self.keys.get(name));
        known.max_by_key(|(said, _)| *said).map(|(_, at)| at)
    }
}

impl Places {
    /// Of a file with these entries, of what `--set` puts over it, and of `[quick]` if that holds.
    pub(super) fn new(
        sources: &Sources,
        entries: &[Entry],
        set: &[(String, usize)],
        is_quick: bool,
    ) -> Self {
        let mut places = Self::default();
        let put = |layer: &mut Layer, key: String, at: Place, shows_value: bool| {
            let fault = Fault {
                at,
                key: key.clone(),
                shows_value,
                message: String::new(),
                hint: None,
            };
            layer.say(key, sources.diagnostic(fault));
        };
        for entry in entries {
            let mut note = |key: String, at: Place, shows_value: bool| {
                put(&mut places.tables, key, at, shows_value);
            };
            match &entry.node.data {
                _ if entry.name == "quick" && is_quick => {
                    varied("", &entry.node, &mut |_, key, at, shows_value| {
                        put(&mut places.quick, key, at, shows_value);
                    });
                }
                _ if entry.name == "quick" => {}
                _ if entry.name == "matrix" => {
                    varied("", &entry.node, &mut |case, key, at, shows_value| {
                        let layer = match case {
                            Some((axis, name)) => {
                                let case = (axis.to_owned(), name.to_owned());
                                places.cases.entry(case).or_default()
                            }
                            None => &mut places.axes,
                        };
                        put(layer, key, at, shows_value);
                    });
                }
                Data::List(members) if MEMBERS.contains(&entry.name.as_str()) => {
                    for member in members {
                        let name = name_of(member).unwrap_or("main");
                        let key = format!("{}.{name}", entry.name);
                        note(key.clone(), member.at, false);
                        inside(&key, member, &mut note);
                    }
                }
                _ => whole(&entry.name, entry, &mut note),
            }
        }
        for (key, source) in set {
            put(&mut places.set, key.clone(), sources.all(*source), true);
        }
        places.file = sources.diagnostic(top(sources)).file;
        places
    }

    /// What is wrong with a key of a flow, of traffic or of a link, `<name>.<key>`, or of the whole
    /// file, in the case with these values of the axes: where it was said last. Where the key
    /// itself is not there, the table that it belongs to is named.
    pub fn diagnostic(
        &self,
        key: &str,
        case: &[(String, String)],
        message: String,
        hint: String,
    ) -> Diagnostic {
        let (names, members) = candidates(key);
        let cases = case.iter().filter_map(|c| self.cases.get(c));
        let later = [&self.set, &self.quick].into_iter().chain(cases);
        let mut layers = later.chain([&self.axes, &self.tables]);
        let found = layers.find_map(|layer| layer.last_of(&names));
        let table = || self.tables.last_of(&members);
        let exact = names.first().cloned().unwrap_or_default();
        let place = found.or_else(table).cloned().unwrap_or(Diagnostic {
            file: self.file.clone(),
            line: 0,
            column: 0,
            key: exact,
            value: None,
            message: String::new(),
            hint: None,
        });
        Diagnostic {
            message,
            hint: Some(hint),
            ..place
        }
    }
}

/// Lists of tables with names.
const MEMBERS: [&str; 3] = ["flow", "traffic", "link"];

fn top(sources: &Sources) -> Fault {
    Fault {
        at: sources.top(0),
        key: String::new(),
        shows_value: false,
        message: String::new(),
        hint: None,
    }
}

fn name_of(table: &Node) -> Option<&str> {
    let Data::Table(entries) = &table.data else {
        return None;
    };
    let name = entries.iter().find(|e| e.name == "name")?;
    match &name.node.data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// A key with all that is inside its value.
fn whole(key: &str, entry: &Entry, note: &mut impl FnMut(String, Place, bool)) {
    let is_table = matches!(entry.node.data, Data::Table(_));
    match is_table {
        true => note(key.to_owned(), entry.name_at, false),
        false => note(key.to_owned(), entry.node.at, true),
    }
    inside(key, &entry.node, note);
}

fn inside(key: &str, node: &Node, note: &mut impl FnMut(String, Place, bool)) {
    if let Data::Table(entries) = &node.data {
        for entry in entries {
            whole(&format!("{key}.{}", entry.name), entry, note);
        }
    }
}

/// Where something of an axis was said: axis and name of a named case, key, place, and whether the
/// value is shown.
type NoteVaried<'a> = &'a mut dyn FnMut(Option<(&str, &str)>, String, Place, bool);

/// Axes: keys and their lists, or named axes with tables of keys.
fn varied(before: &str, node: &Node, note: NoteVaried<'_>) {
    let Data::Table(entries) = &node.data else {
        return;
    };
    for entry in entries {
        let key = match before {
            "" => entry.name.clone(),
            before => format!("{before}.{}", entry.name),
        };
        match &entry.node.data {
            Data::Table(_) => {
                note(None, key.clone(), entry.name_at, false);
                varied(&key, &entry.node, note);
            }
            Data::List(all) if all.iter().any(|n| name_of(n).is_some()) => {
                for case in all {
                    let name = name_of(case).unwrap_or_default();
                    varied("", case, &mut |_, inner, at, shows_value| {
                        note(Some((&key, name)), inner, at, shows_value);
                    });
                }
            }
            _ => note(None, key, entry.node.at, true),
        }
    }
}

/// Dotted names under which `<name>.<key>` may stand, the likeliest first, and those of the tables
/// that may hold it.
fn candidates(key: &str) -> (Vec<String>, Vec<String>) {
    let Some((name, rest)) = key.split_once('.') else {
        return (vec![key.to_owned()], Vec::new());
    };
    // One of several streams has the flow's name and its number.
    let rest = match rest.split_once('.') {
        Some((number, rest)) if number.parse::<u64>().is_ok() => rest,
        _ => rest,
    };
    let of = |rest: &str| {
        let mut names = match name {
            "bottleneck" => vec![format!("path.{rest}")],
            "return" => vec![format!("path.return_{rest}"), format!("path.{rest}")],
            _ => Vec::new(),
        };
        names.extend(MEMBERS.map(|list| format!("{list}.{name}.{rest}")));
        names.extend(MEMBERS.map(|list| format!("{list}.*.{rest}")));
        names.extend(MEMBERS.map(|list| format!("{list}.{rest}")));
        names
    };
    let mut names = of(rest);
    let mut shorter = rest;
    while let Some((outer, _)) = shorter.rsplit_once('.') {
        names.extend(of(outer));
        shorter = outer;
    }
    (names, MEMBERS.map(|list| format!("{list}.{name}")).to_vec())
}

#[cfg(test)]
mod tests {
    use crate::{Overrides, Scenario};

    const FILE: &str = "\
name = \"a\"
duration = \"1s\"
[path]
rate = \"9Mbit/s\"
rtt = \"10ms\"
queue = { kind = \"red\", gentle = true }
[[flow]]
name = \"x\"
streams = 2
stack = \"reno\"
tlp = false
[[flow]]
name = \"y\"
stack = \"reno\"
[matrix]
\"flow.y.frto\" = [true, false]
[[matrix.case]]
name = \"one\"
flow.y.prr = true
[[matrix.case]]
name = \"two\"
flow.y.prr = false
flow.y.undo = true
flow.\"*\".tlp = true
flow.y.change = { at = \"0.5s\", window = \"9 segments\" }
[quick]
\"flow.x.frto\" = false
";

    #[test]
    fn a_key_is_found_where_it_was_written() {
        let overrides = Overrides {
            set: [
                ("flow.y.undo", "false"),
                ("flow.*.undo", "true"),
                ("flow.x.undo", "false"),
            ]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
            quick: true,
            ..Overrides::default()
        };
        let scenario = Scenario::parse(FILE, "a.toml", &overrides).unwrap();
        let one = [("case".to_owned(), "one".to_owned())];
        let said_in = |case: &[(String, String)], key: &str| {
            let diagnostic =
                scenario
                    .places
                    .diagnostic(key, case, "no".to_owned(), "so".to_owned());
            diagnostic.to_string().lines().next().unwrap().to_owned()
        };
        let two = [("case".to_owned(), "two".to_owned())];
        let said = |key: &str| said_in(&two, key);
        assert_eq!(said_in(&one, "y.prr"), "a.toml:19: `flow.y.prr = true`: no");
        assert_eq!(said("y.prr"), "a.toml:22: `flow.y.prr = false`: no");
        let tlp = "a.toml:11: `flow.x.tlp = false`: no";
        assert_eq!(said_in(&one, "x.2.tlp"), tlp);
        assert_eq!(said_in(&one, "x.tlp"), tlp);
        // The case comes later, whomever it names.
        assert_eq!(said("x.tlp"), "a.toml:24: `flow.*.tlp = true`: no");
        assert_eq!(said("y.change"), "a.toml:25: `flow.y.change`: no");
        assert_eq!(said("x.frto"), "a.toml:27: `flow.x.frto = false`: no");
        assert_eq!(
            said("y.frto"),
            "a.toml:16: `flow.y.frto = [true, false]`: no"
        );
        assert_eq!(said("y.undo"), "--set: `flow.*.undo = true`: no");
        assert_eq!(said("x.undo"), "--set: `flow.x.undo = false`: no");
        assert_eq!(said("y.pacer"), "a.toml:12: `flow.y`: no");
        assert_eq!(
            said("bottleneck.queue.gentle"),
            "a.toml:6: `path.queue.gentle = true`: no"
        );
        assert_eq!(said("duration"), "a.toml:2: `duration = \"1s\"`: no");
        assert_eq!(said_in(&one, "nobody.tlp"), "a.toml: `flow.nobody.tlp`: no");
    }

    #[test]
    fn a_column_counts_characters_of_its_line() {
        let queue = "queue = { kind = \"codel\", target = \"5µs\", ecn = 7";
        let file = FILE.replace("queue = { kind = \"red\", gentle = true", queue);
        let file = file.replacen("name = \"a\"", "name = 1", 1);
        let refused = Scenario::parse(&file, "a.toml", &Overrides::default()).unwrap_err();
        let at = |key: &str| {
            let found = refused.0.iter().find(|d| d.key == key).expect(key);
            (found.line, found.column)
        };
        assert_eq!(at("name"), (1, 8));
        // A micro sign is one character of two bytes.
        assert_eq!(at("path.queue.ecn"), (6, queue.chars().count()));
    }
}
