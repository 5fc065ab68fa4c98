//! Values of keys: what a key accepts ([`Kind`]), reading it ([`Reader`]), and what was read
//! ([`Value`], [`Record`]).

// Fields and variants whose name says it all go without.
#![allow(missing_docs)]

mod at;
mod dotted;
mod hint;
mod kind;
mod quantity;
mod reader;
mod record;
mod rows;
mod scalar;
mod typed;

use fullpipe_cc::StackSpec;
use fullpipe_units::{BufferSize, Bytes, Rate, Span, WindowSize};

use super::document::{Entry, Place};

pub use at::{At, Findings, Table};
pub use dotted::{DEFAULT_FLOW, flow_path, is_name, member_path};
pub use hint::{Section, did_you_mean, meant, other_words};
pub use kind::{Default, Key, Kind, Word, nested};
pub use reader::Reader;
pub use record::Record;
pub use rows::{Kinds, Lands, Own, Target, by_variety, concat, default_of, owners, spelled};
pub use rows::{
    default, field, fields, keys, kind, kinds, land, lands, own, own_doc, own_value, tables,
    type_of, value_or, words,
};
pub use scalar::{LARGEST_SEED, MAX_SEEDS};
pub use typed::{
    Bounds, Either, Free, Parsed, Seeds, Setting, Settings, Sub, Tolerance, Typed, Words, Written,
    of_word, parsed,
};

/// A value after parsing and unit conversion.
#[derive(Clone, Debug)]
pub enum Value {
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
    Settings(Vec<Setting>),
    /// Given, but wrong: a fault says so.
    Broken,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Field {
    pub value: Value,
    pub at: Place,
}

impl Value {
    /// See [`Record::has`].
    fn has(&self, name: &str, at: Place) -> bool {
        match self {
            Self::Record(record) => record.has(name, at),
            Self::List(values) => values.iter().any(|value| value.has(name, at)),
            _ => false,
        }
    }

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
                let text = |key: &Key| {
                    let field = record.field(key)?;
                    Some(format!("{} = {}", key.name, field.value.canonical()))
                };
                let given: Vec<String> = record.given().filter_map(text).collect();
                format!("{{ {} }}", given.join(", "))
            }
            Value::List(values) if values.len() == 1 => values[0].canonical(),
            Value::List(values) => {
                let texts: Vec<String> = values.iter().map(Value::canonical).collect();
                format!("[{}]", texts.join(", "))
            }
            Value::Settings(settings) => {
                let text = |s: &Setting| format!("{} = {}", s.name, s.value);
                let texts: Vec<String> = settings.iter().map(text).collect();
                format!("{{ {} }}", texts.join(", "))
            }
            Value::Free(_) | Value::Broken => String::new(),
        }
    }
}

/// Word that switches a feature off.
pub const OFF: &str = "off";

/// The least time from one event of a run to the next that does without packets, in nanoseconds.
pub const MICROSECOND: u64 = 1_000;
pub const HOUR: u64 = 3_600_000_000_000;
pub const YEAR: u64 = 8760 * HOUR;
