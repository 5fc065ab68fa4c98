//! Values of keys as types of Rust, and as they would be written in the file.

use std::marker::PhantomData;

use fullpipe_cc::StackSpec;
use fullpipe_units::{BufferSize, Bytes, Rate, Segments, Span, WindowSize};

use super::{Record, Value, Word};
use crate::document::{Entry, Place};

/// A type that a value can have.
pub trait Typed: Sized {
    /// `None` for a value of another type.
    fn of(value: &Value) -> Option<Self>;
}

/// A type whose values can be written into a file.
pub trait Written {
    fn written(&self) -> String;
}

/// A type with a spelling of its own: a network, a range of ports.
pub trait Parsed: Sized {
    /// Name with its article, for messages: `a network`.
    const WHAT: &'static str;

    /// # Errors
    /// What is wrong with the text, and what to write.
    fn parse(text: &str) -> Result<Self, (String, String)>;
}

/// The value of a key of this type.
pub fn parsed<T: Parsed>(value: &Value) -> Option<T> {
    match value {
        Value::Text(text) => T::parse(text).ok(),
        _ => None,
    }
}

/// An enum whose variants are words of the file.
pub trait Words: Sized + Copy + 'static {
    /// In the order of `ALL`.
    const WORDS: &'static [Word];
    const ALL: &'static [Self];

    fn word(self) -> &'static str;
}

/// The variant that a word stands for.
pub fn of_word<T: Words>(value: &Value) -> Option<T> {
    match value {
        Value::Word(word) => T::ALL.iter().copied().find(|known| known.word() == *word),
        _ => None,
    }
}

/// The first or the second of two types.
#[derive(Clone, Debug)]
pub enum Either<A, B> {
    First(A),
    Second(B),
}

/// A table whose keys are those of `T`.
#[derive(Clone, Debug)]
pub struct Sub<T> {
    pub record: Record,
    keys: PhantomData<T>,
}

/// A list of seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Two bounds, the lower one first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds(pub f64, pub f64);

/// How far from a value another may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    By(f64),
    /// Relative: a part of the value.
    ByPart(f64),
}

/// A table with keys of its own.
#[derive(Clone, Debug)]
pub struct Free(pub Vec<Entry>);

/// A parameter of a stack, as a spelling would have it, and where it stands.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: String,
    pub value: String,
    pub at: Place,
}

/// A table of parameters.
#[derive(Clone, Debug)]
pub struct Settings(pub Vec<Setting>);

macro_rules! typed {
    ($($variant:ident => $type:ty;)*) => {
        $(impl Typed for $type {
            fn of(value: &Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value.clone()),
                    _ => None,
                }
            }
        })*
    };
}

typed! {
    Text => String;
    Flag => bool;
    Whole => u64;
    Real => f64;
    Rate => Rate;
    Bytes => Bytes;
    Span => Span;
    Window => WindowSize;
    Buffer => BufferSize;
    Stack => Box<StackSpec>;
}

impl Typed for u32 {
    fn of(value: &Value) -> Option<Self> {
        u64::of(value).and_then(|n| u32::try_from(n).ok())
    }
}

impl Typed for Segments {
    fn of(value: &Value) -> Option<Self> {
        f64::of(value).map(Segments)
    }
}

impl Typed for Seeds {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Seeds(seeds) => Some(Seeds(seeds.clone())),
            _ => None,
        }
    }
}

impl Typed for Bounds {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bounds(low, high) => Some(Bounds(*low, *high)),
            _ => None,
        }
    }
}

impl Typed for Tolerance {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Tolerance(part, true) => Some(Tolerance::ByPart(*part)),
            Value::Tolerance(distance, false) => Some(Tolerance::By(*distance)),
            _ => None,
        }
    }
}

impl Typed for Free {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Free(entries) => Some(Free(entries.clone())),
            _ => None,
        }
    }
}

impl Typed for Settings {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Settings(settings) => Some(Settings(settings.clone())),
            _ => None,
        }
    }
}

impl<T> Typed for Sub<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Record(record) => Some(Sub {
                record: record.clone(),
                keys: PhantomData,
            }),
            _ => None,
        }
    }
}

impl<T: Typed> Typed for Vec<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::List(values) => values.iter().map(T::of).collect(),
            value => Some(vec![T::of(value)?]),
        }
    }
}

impl<A: Typed, B: Typed> Typed for Either<A, B> {
    fn of(value: &Value) -> Option<Self> {
        let first = A::of(value).map(Either::First);
        first.or_else(|| B::of(value).map(Either::Second))
    }
}

macro_rules! written {
    ($plain:literal: $($type:ty)*) => {
        $(impl Written for $type {
            fn written(&self) -> String {
                format!($plain, self)
            }
        })*
    };
}

written!("{}": bool u32 u64 f64);
written!("\"{}\"": Rate Bytes Span Segments WindowSize BufferSize);
written!("{:?}": &str String);

impl Written for Seeds {
    fn written(&self) -> String {
        match self.0.as_slice() {
            [1] => "1".to_owned(),
            seeds => format!("{seeds:?}"),
        }
    }
}

impl<T: Written> Written for Vec<T> {
    fn written(&self) -> String {
        let all: Vec<String> = self.iter().map(T::written).collect();
        format!("[{}]", all.join(", "))
    }
}

impl<A: Written, B> Written for Either<A, B> {
    fn written(&self) -> String {
        match self {
            Either::First(first) => first.written(),
            Either::Second(_) => String::new(),
        }
    }
}
