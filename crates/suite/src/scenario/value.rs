//! Values of keys: what a key accepts ([`Kind`]), reading it, and what was read ([`Value`], [`Record`]).

use std::str::FromStr;

use fullpipe_cc::StackSpec;
use fullpipe_units::{
    BufferSize, Bytes, Fraction, ParseQuantityError, QuantityErrorKind, Rate, Segments, Span,
    WindowSize,
};

use super::document::{Data, Entry, Fault, Node, Place, Sources, shorten};
use super::keys::{self, Key, Word};

/// What a key accepts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    /// Text that can be a part of a dotted key.
    Name,
    Flag,
    Word(&'static [Word]),
    Whole {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    Real {
        min: f64,
        max: f64,
    },
    /// 0 to 1, or a percentage.
    Fraction,
    Rate,
    /// A rate, or `"0bit/s"`.
    ZeroRate,
    /// Bytes, at least one.
    Size,
    /// Nanoseconds.
    Span {
        min: u64,
        max: u64,
    },
    /// Whole segments.
    Segments {
        min: u64,
        max: u64,
    },
    Window,
    /// Bytes or segments.
    Volume,
    Buffer,
    Stack,
    Seeds,
    /// `[lowest, highest]`.
    Bounds,
    /// A number, or a percentage.
    Tolerance,
    Table(&'static [Key]),
    /// `[[...]]`.
    Tables(&'static [Key]),
    OneOrMany(&'static Kind),
    /// The second for a table or a plain number, the first otherwise.
    Either(&'static Kind, &'static Kind),
    /// The word `"off"`, or a value.
    OrOff(&'static Kind),
    /// A table whose keys are checked elsewhere.
    Free,
}

/// What was read.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Word(&'static str),
    Whole(u64),
    Real(f64),
    Rate(Rate),
    Bytes(Bytes),
    Span(Span),
    Window(WindowSize),
    Buffer(BufferSize),
    Stack(Box<StackSpec>),
    Seeds(Vec<u64>),
    Bounds(f64, f64),
    /// Absolute, or relative if the flag is set.
    Tolerance(f64, bool),
    Record(Record),
    List(Vec<Value>),
    Free(Vec<Entry>),
    /// Given, but wrong: a fault says so.
    Broken,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub value: Value,
    pub at: Place,
}

/// A table that was read: one place per key of its table.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub keys: &'static [Key],
    fields: Vec<Option<Field>>,
    /// Keys that a misspelt key probably means: they are not missing as well.
    meant: Vec<&'static str>,
    pub at: Place,
}

impl Record {
    pub fn empty(keys: &'static [Key], at: Place) -> Self {
        Self {
            keys,
            fields: vec![None; keys.len()],
            meant: Vec::new(),
            at,
        }
    }

    /// Given, or misspelt.
    pub fn is_attempted(&self, name: &str) -> bool {
        self.is_given(name) || self.meant.contains(&name)
    }

    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields[self.index(name)].as_ref()
    }

    pub fn field_mut(&mut self, name: &str) -> &mut Option<Field> {
        let index = self.index(name);
        &mut self.fields[index]
    }

    pub fn is_given(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    /// Place of a key's value, or of the table if the key is not given.
    pub fn place(&self, name: &str) -> Place {
        self.field(name).map_or(self.at, |field| field.at)
    }

    fn index(&self, name: &str) -> usize {
        // Only names of the table are asked for; a test reads every key of every table.
        self.keys
            .iter()
            .position(|key| key.name == name)
            .unwrap_or_else(|| unreachable!("no key {name} in this table"))
    }
}

macro_rules! getters {
    ($($name:ident, $variant:ident => $type:ty;)*) => {
        impl Record {
            $(pub fn $name(&self, name: &str) -> Option<$type> {
                match &self.field(name)?.value {
                    Value::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            })*
        }
    };
}

getters! {
    text, Text => String;
    flag, Flag => bool;
    word, Word => &'static str;
    whole, Whole => u64;
    real, Real => f64;
    rate, Rate => Rate;
    bytes, Bytes => Bytes;
    span, Span => Span;
    window, Window => WindowSize;
    buffer, Buffer => BufferSize;
    stack, Stack => Box<StackSpec>;
    seeds, Seeds => Vec<u64>;
}

impl Record {
    /// A nested table, or an empty one.
    pub fn record(&self, name: &str) -> Option<&Record> {
        match &self.field(name)?.value {
            Value::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The values of a key that takes one or many.
    pub fn many(&self, name: &str) -> &[Value] {
        match self.field(name).map(|field| &field.value) {
            Some(Value::List(values)) => values,
            Some(value) => std::slice::from_ref(value),
            None => &[],
        }
    }
}

impl Value {
    /// Equal values have equal texts, however they are written.
    pub fn canonical(&self) -> String {
        match self {
            Value::Text(text) => format!("{text:?}"),
            Value::Flag(on) => on.to_string(),
            Value::Word(word) => (*word).to_owned(),
            Value::Whole(n) => n.to_string(),
            Value::Real(x) => x.to_string(),
            Value::Rate(rate) => rate.to_string(),
            Value::Bytes(bytes) => bytes.to_string(),
            Value::Span(span) => span.to_string(),
            Value::Window(window) => window.to_string(),
            Value::Buffer(buffer) => buffer.to_string(),
            Value::Stack(stack) => stack.to_string(),
            Value::Seeds(seeds) => format!("{seeds:?}"),
            Value::Bounds(low, high) => format!("[{low}, {high}]"),
            Value::Tolerance(x, relative) => format!("{x}{}", if *relative { "%" } else { "" }),
            Value::Record(record) => {
                let given: Vec<String> = record
                    .keys
                    .iter()
                    .filter_map(|key| {
                        let field = record.field(key.name)?;
                        Some(format!("{} = {}", key.name, field.value.canonical()))
                    })
                    .collect();
                format!("{{ {} }}", given.join(", "))
            }
            Value::List(values) if values.len() == 1 => values[0].canonical(),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(Value::canonical).collect();
                format!("[{}]", texts.join(", "))
            }
            Value::Free(_) | Value::Broken => String::new(),
        }
    }
}

/// Reads values and collects what is wrong with them.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub sources: &'a Sources,
    pub faults: Vec<Fault>,
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
        self.faults.push(Fault {
            at,
            key: key.to_owned(),
            shows_value: true,
            message: message.into(),
            hint,
        });
    }

    /// Notes a fault of a key or a table.
    pub fn refuse_key(
        &mut self,
        at: Place,
        key: &str,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.faults.push(Fault {
            at,
            key: key.to_owned(),
            shows_value: false,
            message: message.into(),
            hint,
        });
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
                let (hint, meant) = unknown_key_hint(&entry.name, keys);
                record.meant.extend(meant);
                self.refuse_key(entry.name_at, &full, "unknown key", Some(hint));
                continue;
            };
            let value = self.value(&key.kind, &entry.node, &full, key.example);
            let value = value.unwrap_or(Value::Broken);
            *record.field_mut(key.name) = Some(Field {
                value,
                at: entry.node.at,
            });
        }
        record
    }

    /// Reads one value.
    pub fn value(&mut self, kind: &Kind, node: &Node, key: &str, example: &str) -> Option<Value> {
        match kind {
            Kind::Text => match &node.data {
                Data::Text(text) => Some(Value::Text(text.clone())),
                _ => self.expected("a string", node, key, example),
            },
            Kind::Name => match &node.data {
                Data::Text(text) if is_name(text) => Some(Value::Text(text.clone())),
                Data::Text(_) => {
                    let message = "a name consists of 1 to 64 letters, digits, `-` and `_`";
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    None
                }
                _ => self.expected("a string", node, key, example),
            },
            Kind::Flag => match node.data {
                Data::Flag(on) => Some(Value::Flag(on)),
                _ => self.expected("true or false", node, key, example),
            },
            Kind::Word(words) => self.word(words, node, key, example),
            Kind::Whole { min, max, unit } => match node.data {
                Data::Integer(n) if u64::try_from(n).is_ok_and(|n| (*min..=*max).contains(&n)) => {
                    Some(Value::Whole(n.unsigned_abs()))
                }
                Data::Integer(_) => {
                    let unit = if unit.is_empty() {
                        ""
                    } else {
                        &format!(" {unit}")
                    };
                    let message = format!("a whole number from {min} to {max}{unit} is expected");
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    None
                }
                _ => self.expected("a whole number without quotes", node, key, example),
            },
            Kind::Real { min, max } => match number(node) {
                Some(x) if (*min..=*max).contains(&x) => Some(Value::Real(x)),
                Some(x) if *min == f64::MIN || !x.is_finite() => {
                    self.expected("a finite number", node, key, example)
                }
                Some(_) => {
                    let message = format!("a number from {min} to {max} is expected");
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    None
                }
                None => self.expected("a number without quotes", node, key, example),
            },
            Kind::Fraction => match number(node) {
                Some(x) => match Fraction::new(x) {
                    Some(fraction) => Some(Value::Real(fraction.get())),
                    None => {
                        let message = "a probability or part lies between 0 and 1";
                        let hint = if (0.0..=100.0).contains(&x) {
                            format!("write \"{x}%\" for a percentage")
                        } else {
                            format!("write for example {example}")
                        };
                        self.refuse(node.at, key, message, Some(hint));
                        None
                    }
                },
                None => self
                    .quantity::<Fraction>(node, key, example)
                    .map(|f| Value::Real(f.get())),
            },
            Kind::Rate | Kind::ZeroRate => {
                let rate = self.quantity::<Rate>(node, key, example)?;
                let least = u64::from(matches!(kind, Kind::Rate));
                if !(least..=MAX_RATE).contains(&rate.as_bits_per_sec()) {
                    let message = format!("a rate from {least}bit/s to 100Tbit/s is expected");
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    return None;
                }
                Some(Value::Rate(rate))
            }
            Kind::Span { min, max } => {
                let span = self.quantity::<Span>(node, key, example)?;
                if !(*min..=*max).contains(&span.as_nanos()) {
                    let most = Span::from_nanos(*max);
                    let message = if span.as_nanos() == 0 && *min > 0 {
                        "the time must be longer than zero".to_owned()
                    } else {
                        format!(
                            "a time from {} to {most} is expected",
                            Span::from_nanos(*min)
                        )
                    };
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    return None;
                }
                Some(Value::Span(span))
            }
            Kind::Segments { min, max } => {
                let segments = self.quantity::<Segments>(node, key, example)?.0;
                if segments < *min as f64 || segments > *max as f64 || segments.fract() != 0.0 {
                    let message = format!("{min} to {max} whole segments are expected");
                    self.refuse(
                        node.at,
                        key,
                        message,
                        Some(format!("write for example {example}")),
                    );
                    return None;
                }
                Some(Value::Real(segments))
            }
            Kind::Window => {
                let window = self.quantity::<WindowSize>(node, key, example)?;
                Some(Value::Window(window))
            }
            Kind::Volume => {
                let volume = self.quantity::<WindowSize>(node, key, example)?;
                match volume {
                    WindowSize::Bdp(_) => {
                        let message = "a size is expected in bytes or segments";
                        self.refuse(
                            node.at,
                            key,
                            message,
                            Some(format!("write for example {example}")),
                        );
                        None
                    }
                    WindowSize::Bytes(Bytes(0)) | WindowSize::Segments(0.0) => {
                        let message = "at least one byte is expected";
                        self.refuse(
                            node.at,
                            key,
                            message,
                            Some(format!("write for example {example}")),
                        );
                        None
                    }
                    _ => Some(Value::Window(volume)),
                }
            }
            Kind::Size => {
                let bytes = self.quantity::<Bytes>(node, key, example)?;
                if bytes.0 == 0 {
                    let hint = Some(format!("write for example {example}"));
                    self.refuse(node.at, key, "at least one byte is expected", hint);
                    return None;
                }
                Some(Value::Bytes(bytes))
            }
            Kind::Buffer => self
                .quantity::<BufferSize>(node, key, example)
                .map(Value::Buffer),
            Kind::Stack => self.stack(node, key, example),
            Kind::Seeds => self.seeds(node, key),
            Kind::Bounds => self.bounds(node, key, example),
            Kind::Tolerance => match (number(node), &node.data) {
                (Some(x), _) if x.is_finite() && x >= 0.0 => Some(Value::Tolerance(x, false)),
                (None, Data::Text(text)) if text.trim_end().ends_with('%') => {
                    let part = self.quantity::<Fraction>(node, key, example)?;
                    Some(Value::Tolerance(part.get(), true))
                }
                _ => self.expected(
                    "a number that is not negative, or a percentage",
                    node,
                    key,
                    example,
                ),
            },
            Kind::Table(keys) => match &node.data {
                Data::Table(entries) => {
                    Some(Value::Record(self.record(keys, entries, node.at, key)))
                }
                _ => self.expected("a table", node, key, example),
            },
            Kind::Tables(keys) => self.tables(keys, node, key),
            Kind::OneOrMany(item) => match &node.data {
                // No tables: nothing happens. No numbers: something is missing.
                Data::List(nodes) if nodes.is_empty() && !matches!(item, Kind::Table(_)) => {
                    let hint = Some(format!("write for example {example}, or leave the key out"));
                    self.refuse(node.at, key, "the list is empty", hint);
                    None
                }
                Data::List(nodes) => {
                    let values: Vec<Value> = nodes
                        .iter()
                        .filter_map(|node| self.value(item, node, key, example))
                        .collect();
                    (values.len() == nodes.len()).then_some(Value::List(values))
                }
                _ => Some(Value::List(vec![self.value(item, node, key, example)?])),
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
                _ => self.expected("a table", node, key, example),
            },
        }
    }

    fn expected(&mut self, what: &str, node: &Node, key: &str, example: &str) -> Option<Value> {
        let message = format!("{what} is expected, this is {}", node.what());
        let hint = (!example.is_empty()).then(|| format!("write for example {example}"));
        if matches!(node.data, Data::Table(_)) {
            self.refuse_key(node.at, key, message, hint);
        } else {
            self.refuse(node.at, key, message, hint);
        }
        None
    }

    fn quantity<T: FromStr<Err = ParseQuantityError>>(
        &mut self,
        node: &Node,
        key: &str,
        example: &str,
    ) -> Option<T> {
        let text = match &node.data {
            Data::Text(text) => text.as_str(),
            Data::Integer(_) | Data::Float(_) => self.sources.text(node.at),
            _ => {
                self.expected("a quantity in quotes", node, key, example);
                return None;
            }
        };
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let better = match error.kind {
                    QuantityErrorKind::NoUnit => with_unit_of::<T>(text, example),
                    _ => None,
                };
                let (message, hint) = quantity_fault(&error, better);
                self.refuse(node.at, key, message, hint);
                None
            }
        }
    }

    fn word(
        &mut self,
        words: &'static [Word],
        node: &Node,
        key: &str,
        example: &str,
    ) -> Option<Value> {
        let text = match &node.data {
            Data::Text(text) => text.as_str(),
            Data::Integer(_) => self.sources.text(node.at),
            _ => {
                return self.expected("a word in quotes", node, key, example);
            }
        };
        let names = || words.iter().map(|word| word.word);
        let one_of = match names().count() {
            1 => names().map(|w| format!("\"{w}\"")).collect::<String>(),
            _ => format!("one of {}", quoted(names())),
        };
        match words.iter().find(|word| word.word == text) {
            Some(word) => Some(Value::Word(word.word)),
            None => {
                let hint = match nearest(text, names()) {
                    Some(near) => format!("did you mean \"{near}\"? known: {}", quoted(names())),
                    None => format!("write {one_of}"),
                };
                self.refuse(
                    node.at,
                    key,
                    format!("unknown word `{}`", shorten(text)),
                    Some(hint),
                );
                None
            }
        }
    }

    fn stack(&mut self, node: &Node, key: &str, example: &str) -> Option<Value> {
        let Data::Text(text) = &node.data else {
            return self.expected("a stack in quotes", node, key, example);
        };
        match StackSpec::parse(text) {
            Ok(stack) => Some(Value::Stack(Box::new(stack))),
            Err(error) => {
                self.refuse(
                    node.at,
                    key,
                    shorten_message(&error.to_string()),
                    error.hint(),
                );
                None
            }
        }
    }

    fn seeds(&mut self, node: &Node, key: &str) -> Option<Value> {
        let hint = || Some("write a number of seeds, or a list: [1, 2, 3]".to_owned());
        match &node.data {
            Data::Integer(n) => match u64::try_from(*n) {
                Ok(n) if (1..=MAX_SEEDS).contains(&n) => Some(Value::Seeds((1..=n).collect())),
                _ => {
                    let message = format!("1 to {MAX_SEEDS} seeds are expected");
                    self.refuse(node.at, key, message, hint());
                    None
                }
            },
            Data::List(items) => {
                let mut seeds = Vec::new();
                for item in items {
                    match item.data {
                        Data::Integer(n) if n >= 0 => seeds.push(n.unsigned_abs()),
                        _ => {
                            self.refuse(
                                item.at,
                                key,
                                "a seed is a whole number, not negative",
                                hint(),
                            );
                            return None;
                        }
                    }
                }
                let mut sorted = seeds.clone();
                sorted.sort_unstable();
                if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
                    let message = format!("seed {} stands twice in the list", twice[0]);
                    self.refuse(node.at, key, message, hint());
                    return None;
                }
                if seeds.is_empty() {
                    self.refuse(node.at, key, "the list is empty", hint());
                    return None;
                }
                Some(Value::Seeds(seeds))
            }
            _ => {
                let message = format!(
                    "a number or a list of numbers is expected, this is {}",
                    node.what()
                );
                self.refuse(node.at, key, message, hint());
                None
            }
        }
    }

    fn bounds(&mut self, node: &Node, key: &str, example: &str) -> Option<Value> {
        let hint = Some(format!("write for example {example}"));
        let pair = match &node.data {
            Data::List(items) if items.len() == 2 => number(&items[0]).zip(number(&items[1])),
            _ => None,
        };
        match pair {
            Some((low, high)) if !(low.is_finite() && high.is_finite()) => {
                let message = "both bounds must be finite";
                let hint = Some("use `at_least` or `at_most` for one bound".to_owned());
                self.refuse(node.at, key, message, hint);
                None
            }
            Some((low, high)) if low > high => {
                let message = "the lower bound is above the upper one";
                self.refuse(
                    node.at,
                    key,
                    message,
                    Some(format!("write [{high}, {low}]")),
                );
                None
            }
            Some((low, high)) => Some(Value::Bounds(low, high)),
            None => {
                self.refuse(node.at, key, "a list of two numbers is expected", hint);
                None
            }
        }
    }

    fn tables(&mut self, keys: &'static [Key], node: &Node, key: &str) -> Option<Value> {
        let Data::List(items) = &node.data else {
            let message = match node.data {
                Data::Table(_) => format!("this table comes in a list, written [[{key}]]"),
                _ => format!("a list of tables is expected, this is {}", node.what()),
            };
            self.refuse_key(node.at, key, message, Some(format!("write [[{key}]]")));
            return None;
        };
        let mut values = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let Data::Table(entries) = &item.data else {
                let message = format!("a list of tables is expected, this is {}", item.what());
                self.refuse(item.at, key, message, Some(format!("write [[{key}]]")));
                continue;
            };
            let path = match key {
                "flow" => flow_path(&flow_name(entries, i, items.len())),
                "traffic" | "link" => member_path(key, &flow_name(entries, i, usize::MAX)),
                _ => format!("{key}[{}]", i + 1),
            };
            values.push(Value::Record(self.record(keys, entries, item.at, &path)));
        }
        Some(Value::List(values))
    }
}

/// Name of a flow as far as it can be told before reading it.
fn flow_name(entries: &[Entry], index: usize, flows: usize) -> String {
    let written = entries
        .iter()
        .find(|e| e.name == "name")
        .and_then(|e| match &e.node.data {
            Data::Text(text) if is_name(text) => Some(text.clone()),
            _ => None,
        });
    match written {
        Some(name) => name,
        None if flows == 1 => DEFAULT_FLOW.to_owned(),
        None => format!("[{}]", index + 1),
    }
}

/// Dotted key of a flow's table; a flow without a name is known by its number.
pub(super) fn flow_path(name: &str) -> String {
    member_path("flow", name)
}

/// Dotted key of a table of a list whose tables have names.
pub(super) fn member_path(section: &str, name: &str) -> String {
    if name.starts_with('[') {
        format!("{section}{name}")
    } else {
        format!("{section}.{name}")
    }
}

/// Name of the only flow if it has none.
pub(super) const DEFAULT_FLOW: &str = "main";

/// `path.key`, or `key` at the top.
pub(super) fn join(path: &str, name: &str) -> String {
    let name = shorten(name);
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// What to write instead of an unknown key, and the key it is a slip of.
fn unknown_key_hint(name: &str, keys: &'static [Key]) -> (String, Option<&'static str>) {
    for (section, other) in SECTIONS {
        if !std::ptr::eq(*other, keys) && other.iter().any(|key| key.name == name) {
            let hint = match *section {
                "" => format!("`{name}` belongs at the top of the file, before the first table"),
                section => format!("`{name}` belongs in {section}"),
            };
            return (hint, None);
        }
    }
    let names = || keys.iter().map(|key| key.name);
    match nearest(name, names()) {
        Some(near) => (format!("did you mean `{near}`?"), Some(near)),
        None => (
            format!("known: {}", names().collect::<Vec<_>>().join(", ")),
            None,
        ),
    }
}

const SECTIONS: &[(&str, &[Key])] = &[
    ("", keys::TOP),
    ("[path]", keys::PATH),
    ("[[flow]]", keys::FLOW),
    ("[[traffic]]", keys::TRAFFIC),
    ("[measure]", keys::MEASURE),
    ("[[expect]]", keys::EXPECT),
];

/// The candidate closest to `name`, if close enough to be a slip.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_SLIP {
        return None;
    }
    known
        .map(|k| {
            (
                strsim::normalized_damerau_levenshtein(&name.to_lowercase(), k),
                k,
            )
        })
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

pub(super) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|n| format!("\"{n}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Message and hint in the words of the file, where quantities stand in quotes.
fn quantity_fault(error: &ParseQuantityError, better: Option<String>) -> (String, Option<String>) {
    use QuantityErrorKind as Kind;
    let expected = error.expected;
    let message = match &error.kind {
        Kind::Empty => format!("{expected} is expected, this is empty"),
        Kind::NoUnit => format!("{expected} needs a unit"),
        Kind::UnknownUnit { unit, .. } => {
            format!(
                "{expected} is expected, `{}` is no unit of it",
                shorten(unit)
            )
        }
        Kind::WrongKind { found } => format!("{expected} is expected, this is {found}"),
        Kind::BadNumber => format!("{expected} is expected, the number cannot be read"),
        Kind::Negative => format!("{expected} cannot be negative"),
        Kind::NotFinite => format!("{expected} must be finite"),
        Kind::TooLarge => "the value is too large".to_owned(),
        Kind::Fractional => "the value is finer than the smallest step".to_owned(),
        _ => error.to_string(),
    };
    let hint = better
        .map(|text| format!("write \"{text}\""))
        .or_else(|| Some(error.hint()?.replace('`', "\"")));
    (
        message,
        hint.map(|hint| format!("{hint} (units: {})", error.accepted.join(" "))),
    )
}

/// A bare number of a time with the unit of the key's example: `duration = 60` means seconds, `rtt = 80` milliseconds.
fn with_unit_of<T: FromStr>(number: &str, example: &str) -> Option<String> {
    let example = example.strip_prefix('"')?.strip_suffix('"')?;
    example.parse::<Span>().ok()?;
    let unit = example.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let text = format!("{}{unit}", number.trim());
    text.parse::<T>().ok().map(|_| text)
}

fn shorten_message(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.replace('\n', " "),
    }
}

pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn number(node: &Node) -> Option<f64> {
    match node.data {
        Data::Integer(n) => Some(n as f64),
        Data::Float(x) => Some(x),
        _ => None,
    }
}

/// What is not there.
pub(super) const OFF: &str = "off";
const LONGEST_SLIP: usize = 64;
const MAX_SEEDS: u64 = 1_000_000;
/// 100 Tbit/s.
const MAX_RATE: u64 = 100_000_000_000_000;
