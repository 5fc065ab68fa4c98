//! Reading a value as its key wants it, and collecting what is wrong.

use super::dotted::{flow_name, join, member_path};
use super::hint::{Section, unknown_key_hint};
use super::{Field, Findings, Key, Kind, OFF, Record, Value};
use crate::document::{Data, Entry, Fault, Node, Place, Sources};

/// Reads values and collects what is wrong with them.
#[derive(Debug)]
pub struct Reader<'a> {
    pub sources: &'a Sources,
    pub findings: Findings,
    /// Where a key that is unknown in one table may be at home.
    sections: &'static [Section],
}

/// A value that is read, and what its key says of it.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub node: &'a Node,
    /// Dotted key, for messages.
    pub key: &'a str,
    /// A good value, as it is written in a file; may be empty.
    pub example: &'a str,
}

impl<'a> Reader<'a> {
    pub fn new(sources: &'a Sources, sections: &'static [Section]) -> Self {
        Self {
            sources,
            findings: Findings::default(),
            sections,
        }
    }
}

impl Reader<'_> {
    /// Notes a fault of a value.
    pub fn refuse(
        &mut self,
        at: Place,
        key: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.note(at, key, true, message.into(), hint);
    }

    /// Notes a fault of a key or a table.
    pub fn refuse_key(
        &mut self,
        at: Place,
        key: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.note(at, key, false, message.into(), hint);
    }

    fn note(
        &mut self,
        at: Place,
        key: &str,
        shows_value: bool,
        message: String,
        hint: Option<String>,
    ) {
        self.findings.faults.push(Fault {
            at,
            key: key.to_owned(),
            shows_value,
            message,
            hint,
        });
    }

    /// Refuses a value, with what to do about it.
    pub(super) fn wrong(
        &mut self,
        item: Item<'_>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Option<Value> {
        self.refuse(item.node.at, item.key, message, Some(hint.into()));
        None
    }

    /// Refuses a value for which the example of its key may stand.
    pub(super) fn unfit(&mut self, item: Item<'_>, message: impl Into<String>) -> Option<Value> {
        self.wrong(item, message, format!("write for example {}", item.example))
    }

    /// Refuses a value of another kind.
    pub(super) fn expected(&mut self, what: &str, item: Item<'_>) -> Option<Value> {
        let Item { node, key, example } = item;
        let message = format!("{what} is expected, this is {}", node.what());
        let varies = ["path.", "flow.", "traffic.", "link."];
        let hint = match &node.data {
            Data::List(_) if varies.iter().any(|table| key.starts_with(table)) => Some(format!(
                "one value stands here; several belong in [matrix]: \"{key}\" = [...]"
            )),
            _ => (!example.is_empty()).then(|| format!("write for example {example}")),
        };
        let is_table = matches!(node.data, Data::Table(_));
        self.note(node.at, key, !is_table, message, hint);
        None
    }

    /// Reads a table. `path` is the dotted key of the table, empty at the top.
    pub fn record(
        &mut self,
        keys: &'static [Key],
        entries: &[Entry],
        at: Place,
        path: &str,
    ) -> Record {
        let mut record = Record::empty(keys, at);
        for entry in entries {
            let full = join(path, &entry.name);
            let Some(key) = keys.iter().find(|key| key.name == entry.name) else {
                let (hint, meant) = unknown_key_hint(&entry.name, keys, self.sections);
                record.misspelt(meant);
                self.refuse_key(entry.name_at, &full, "unknown key", Some(hint));
                continue;
            };
            let value = self.value(&key.kind, &entry.node, &full, key.example);
            let value = value.unwrap_or(Value::Broken);
            let at = entry.node.at;
            record.set(key, Field { value, at });
        }
        record
    }

    /// Reads one value.
    pub fn value(&mut self, kind: &Kind, node: &Node, key: &str, example: &str) -> Option<Value> {
        let item = Item { node, key, example };
        match kind {
            Kind::Text => match &node.data {
                Data::Text(text) => Some(Value::Text(text.clone())),
                _ => self.expected("a string", item),
            },
            Kind::Name => self.name(item),
            Kind::Flag => match node.data {
                Data::Flag(on) => Some(Value::Flag(on)),
                _ => self.expected("true or false", item),
            },
            Kind::Word(words) => self.word(words, item),
            Kind::Whole { min, max, unit } => self.whole(*min..=*max, unit, item),
            Kind::Real { min, max } => self.real(*min..=*max, item),
            Kind::Fraction => self.fraction(item),
            Kind::Rate => self.rate(1, item),
            Kind::ZeroRate => self.rate(0, item),
            Kind::Span { min, max } => self.span(*min..=*max, item),
            Kind::Segments { min, max } => self.segments(*min..=*max, item),
            Kind::Window => self.quantity(item).map(Value::Window),
            Kind::Volume => self.volume(item),
            Kind::Size => self.size(item),
            Kind::Buffer => self.buffer(item),
            Kind::Stack => self.stack(item),
            Kind::Seeds => self.seeds(item),
            Kind::Bounds => self.bounds(item),
            Kind::Tolerance => self.tolerance(item),
            Kind::Table(keys) => match &node.data {
                Data::Table(entries) => {
                    Some(Value::Record(self.record(keys, entries, node.at, key)))
                }
                _ => self.expected("a table", item),
            },
            Kind::Tables(keys) => self.tables(keys, item),
            Kind::OneOrMany(inner) => match &node.data {
                // No tables: nothing happens. No numbers: something is missing.
                Data::List(nodes) if nodes.is_empty() && !matches!(inner, Kind::Table(_)) => {
                    let hint = format!("write for example {example}, or leave the key out");
                    self.wrong(item, "the list is empty", hint)
                }
                Data::List(nodes) => {
                    let values: Vec<Value> = nodes
                        .iter()
                        .filter_map(|node| self.value(inner, node, key, example))
                        .collect();
                    (values.len() == nodes.len()).then_some(Value::List(values))
                }
                _ => Some(Value::List(vec![self.value(inner, node, key, example)?])),
            },
            Kind::Either(first, second) => match (&node.data, second) {
                (Data::Table(_), Kind::Table(_)) => self.value(second, node, key, example),
                (Data::Integer(_) | Data::Float(_), Kind::Real { .. }) => {
                    self.value(second, node, key, "1.0")
                }
                _ => self.value(first, node, key, example),
            },
            Kind::OrOff(inner) => match &node.data {
                Data::Text(text) if text == OFF => Some(Value::Word(OFF)),
                _ => self.value(inner, node, key, example),
            },
            Kind::Free => match &node.data {
                Data::Table(entries) => Some(Value::Free(entries.clone())),
                _ => self.expected("a table", item),
            },
            Kind::Settings => self.settings(item),
            Kind::Parsed { what, check } => self.parsed(what, *check, item),
        }
    }

    fn tables(&mut self, keys: &'static [Key], item: Item<'_>) -> Option<Value> {
        let Item { node, key, .. } = item;
        let hint = || Some(format!("write [[{key}]]"));
        let Data::List(items) = &node.data else {
            let message = match node.data {
                Data::Table(_) => format!("this table comes in a list, written [[{key}]]"),
                _ => format!("a list of tables is expected, this is {}", node.what()),
            };
            self.refuse_key(node.at, key, message, hint());
            return None;
        };
        let mut values = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let Data::Table(entries) = &item.data else {
                let message = format!("a list of tables is expected, this is {}", item.what());
                self.refuse(item.at, key, message, hint());
                continue;
            };
            // A table of its own name; the only one may do without if its name has a default.
            let path = match keys {
                [name, ..] if matches!(name.kind, Kind::Name) => {
                    let tables = match name.is_required() {
                        true => usize::MAX,
                        false => items.len(),
                    };
                    member_path(key, &flow_name(entries, i, tables))
                }
                _ => format!("{key}[{}]", i + 1),
            };
            values.push(Value::Record(self.record(keys, entries, item.at, &path)));
        }
        Some(Value::List(values))
    }
}
