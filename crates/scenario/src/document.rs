//! TOML text to a tree of values that know their place in the text.

// Fields and variants whose name says it all go without.
#![allow(missing_docs)]

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::Diagnostic;

/// Texts that places refer to: the file first, then one per `--set`.
#[derive(Debug, Default)]
pub struct Sources(Vec<Source>);

#[derive(Debug)]
struct Source {
    name: String,
    text: String,
    /// Where each line begins, bytes; empty in a text without lines.
    lines: Vec<usize>,
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    source: usize,
    start: usize,
    end: usize,
}

impl Place {
    /// In the scenario file, not in an argument of the command line.
    pub fn is_in_file(self) -> bool {
        self.source == 0
    }
}

/// Something wrong, before it is written out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub at: Place,
    pub key: String,
    /// The text at the place is the value of the key (and not the key itself or a table's header).
    pub shows_value: bool,
    pub message: String,
    pub hint: Option<String>,
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    pub data: Data,
    pub at: Place,
}

#[derive(Clone, Debug)]
pub enum Data {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub name_at: Place,
    pub node: Node,
}

impl Sources {
    /// Takes in the text of a file.
    pub fn file(&mut self, name: &str, text: &str) -> usize {
        self.push(name, text, true)
    }

    /// Takes in a text that has no lines worth counting.
    pub fn argument(&mut self, name: &str, text: &str) -> usize {
        self.push(name, text, false)
    }

    fn push(&mut self, name: &str, text: &str, has_lines: bool) -> usize {
        let breaks = text.match_indices('\n').map(|(i, _)| i + 1);
        let lines = match has_lines {
            true => std::iter::once(0).chain(breaks).collect(),
            false => Vec::new(),
        };
        self.0.push(Source {
            name: name.to_owned(),
            text: text.to_owned(),
            lines,
        });
        self.0.len() - 1
    }

    /// The whole of a source, shown as its first character.
    pub fn top(&self, source: usize) -> Place {
        Place {
            source,
            start: 0,
            end: 0,
        }
    }

    /// The whole text of a source.
    pub fn all(&self, source: usize) -> Place {
        Place {
            source,
            start: 0,
            end: self.0[source].text.len(),
        }
    }

    /// The text at a place.
    pub fn text(&self, at: Place) -> &str {
        self.0[at.source]
            .text
            .get(at.start..at.end)
            .unwrap_or_default()
    }

    /// 1-based line; 0 in a text without lines.
    pub fn line(&self, at: Place) -> usize {
        let lines = &self.0[at.source].lines;
        lines.partition_point(|begin| *begin <= at.start)
    }

    fn column(&self, at: Place) -> usize {
        let source = &self.0[at.source];
        let line = self.line(at).checked_sub(1);
        line.map_or(0, |i| {
            let to_there = before(&source.text, at.start);
            1 + to_there[source.lines[i]..].chars().count()
        })
    }

    /// Writes a fault out.
    pub fn diagnostic(&self, fault: Fault) -> Diagnostic {
        Diagnostic {
            file: self.0[fault.at.source].name.clone(),
            line: self.line(fault.at),
            column: self.column(fault.at),
            value: fault.shows_value.then(|| shorten(self.text(fault.at))),
            key: fault.key,
            message: fault.message,
            hint: fault.hint,
        }
    }

    /// Parses a source as a TOML document.
    pub fn parse(&self, source: usize) -> (Vec<Entry>, Vec<Fault>) {
        let text = &self.0[source].text;
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut faults = Vec::new();
        for error in errors.iter().take(MAX_SYNTAX_ERRORS) {
            let span = error.span().unwrap_or_default();
            faults.push(Fault {
                at: Place {
                    source,
                    start: span.start,
                    end: span.end,
                },
                key: String::new(),
                shows_value: false,
                message: format!("not valid TOML: {}", one_line(error.message())),
                hint: None,
            });
        }
        let mut entries = self.entries(source, table.get_ref(), &mut faults);
        entries.sort_by_key(|e| e.name_at.start);
        (entries, faults)
    }

    /// Parses a source as one TOML value, or takes it as a string if it is none.
    pub fn parse_value(&self, source: usize) -> (Node, Vec<Fault>) {
        let text = &self.0[source].text;
        let mut faults = Vec::new();
        let node = match DeValue::parse(text) {
            Ok(value) => self.node(source, &value, &mut faults),
            Err(_) => Node {
                data: Data::Text(printable(text, self.all(source), &mut faults)),
                at: self.all(source),
            },
        };
        (node, faults)
    }

    fn entries(&self, source: usize, table: &DeTable<'_>, faults: &mut Vec<Fault>) -> Vec<Entry> {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(name, value)| Entry {
                name: printable(name.get_ref(), place(source, name), faults),
                name_at: place(source, name),
                node: self.node(source, value, faults),
            })
            .collect();
        entries.sort_by_key(|e| e.name_at.start);
        entries
    }

    fn node(&self, source: usize, value: &Spanned<DeValue<'_>>, faults: &mut Vec<Fault>) -> Node {
        let at = place(source, value);
        let mut refuse = |message: &str| {
            faults.push(Fault {
                at,
                key: String::new(),
                shows_value: false,
                message: format!("not valid TOML: {message}: `{}`", shorten(self.text(at))),
                hint: None,
            });
        };
        let data = match value.get_ref() {
            DeValue::String(text) => Data::Text(printable(text, at, faults)),
            DeValue::Integer(digits) => {
                let plain: String = digits.as_str().chars().filter(|c| *c != '_').collect();
                Data::Integer(
                    i64::from_str_radix(&plain, digits.radix()).unwrap_or_else(|_| {
                        refuse("the number is too large");
                        0
                    }),
                )
            }
            DeValue::Float(digits) => {
                let plain: String = digits.as_str().chars().filter(|c| *c != '_').collect();
                Data::Float(plain.parse().unwrap_or_else(|_| {
                    refuse("the number cannot be read");
                    0.0
                }))
            }
            DeValue::Boolean(on) => Data::Flag(*on),
            DeValue::Datetime(_) => Data::Date,
            DeValue::Array(items) => Data::List(
                items
                    .iter()
                    .map(|item| self.node(source, item, faults))
                    .collect(),
            ),
            DeValue::Table(table) => Data::Table(self.entries(source, table, faults)),
        };
        Node { data, at }
    }
}

impl Node {
    /// Type of the value with its article, for messages.
    pub fn what(&self) -> &'static str {
        match self.data {
            Data::Text(_) => "a string",
            Data::Integer(_) | Data::Float(_) => "a number",
            Data::Flag(_) => "true or false",
            Data::Date => "a date",
            Data::List(_) => "a list",
            Data::Table(_) => "a table",
        }
    }

    /// The value without its place.
    pub fn json(&self) -> serde_json::Value {
        match &self.data {
            Data::Text(text) => text.as_str().into(),
            Data::Integer(n) => (*n).into(),
            Data::Float(x) => (*x).into(),
            Data::Flag(on) => (*on).into(),
            Data::Date => serde_json::Value::Null,
            Data::List(items) => items.iter().map(Node::json).collect(),
            Data::Table(entries) => entries
                .iter()
                .map(|e| (e.name.clone(), e.node.json()))
                .collect(),
        }
    }

    /// As written; a string without its quotes.
    pub fn plain(&self, sources: &Sources) -> String {
        match &self.data {
            Data::Text(text) => text.clone(),
            _ => one_line(sources.text(self.at)),
        }
    }
}

/// Text in one line of reasonable length.
pub fn shorten(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

/// A text without characters that a terminal obeys: names and words of a scenario, which may be a
/// stranger's, stand in tables, messages and XML. Lines and tabs are text.
fn printable(text: &str, at: Place, faults: &mut Vec<Fault>) -> String {
    let lines = text.replace("\r\n", "\n");
    let is_wrong = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    if let Some(wrong) = lines.chars().find(is_wrong) {
        faults.push(Fault {
            at,
            key: String::new(),
            shows_value: false,
            message: format!(
                "a text has the control character `{}`",
                wrong.escape_default()
            ),
            hint: Some("leave it out; a line ends in `\\n`".to_owned()),
        });
    }
    lines.chars().filter(|c| !is_wrong(c)).collect()
}

fn before(text: &str, end: usize) -> &str {
    let mut end = end.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn place<T>(source: usize, value: &Spanned<T>) -> Place {
    let span = value.span();
    Place {
        source,
        start: span.start,
        end: span.end,
    }
}

const MAX_SYNTAX_ERRORS: usize = 8;
const MAX_SHOWN: usize = 60;
