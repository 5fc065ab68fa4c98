//! Keys, and what each of them accepts.

use super::rows::{Own, Owners, doc_by_kind};

/// A key of a table: all that a reader, the JSON Schema and the reference page have to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// As it would be written in the file; empty for a table.
    pub example: &'static str,
    /// What a hint shows where the key is missing, as it would be written in the file.
    pub sample: &'static str,
    /// Sentence without a full stop.
    pub doc: &'static str,
    /// The kinds among which the table's word chooses, if there is one.
    pub owners: Option<fn() -> Owners>,
    /// May stand in `[matrix]`.
    pub varies: bool,
    /// Places of the table's target that it lands on.
    pub fields: &'static [&'static str],
}

/// Value of a key that is not given.
#[derive(Clone, Copy, Debug)]
pub enum Default {
    /// Nothing.
    None,
    /// Nothing: the key must be given.
    Required,
    /// Depends on other keys, as these words explain.
    Words(&'static str),
    /// A value, as it would be written in the file, or words in parentheses.
    Value(fn() -> String),
}

impl Key {
    /// What it is, behind the kinds that have it if not all do.
    pub fn about(&self) -> String {
        match self.owners {
            Some(owners) => doc_by_kind(self, &owners()),
            None => self.doc.to_owned(),
        }
    }

    /// The default as it would be written in the file, or words in parentheses; empty: none.
    pub fn default(&self) -> String {
        let words = match self.default {
            Default::None => String::new(),
            Default::Required => "required".to_owned(),
            Default::Words(words) => words.to_owned(),
            Default::Value(value) => return value(),
        };
        match (self.requiring().as_str(), words.as_str()) {
            ("", "") => String::new(),
            ("", only) | (only, "") => format!("({only})"),
            (required, words) => format!("({required}; {words})"),
        }
    }

    /// The kinds that cannot do without the key: `udp, udp-blast: required`.
    fn requiring(&self) -> String {
        let owners = self.owners.map(|owners| owners()).unwrap_or_default();
        let needs = |keys: &[Own]| {
            keys.iter()
                .any(|own| own.required && own.key.name == self.name)
        };
        let words: Vec<&str> = (owners.iter())
            .filter(|(_, keys)| needs(keys))
            .map(|(word, _)| *word)
            .collect();
        match words.as_slice() {
            [] => String::new(),
            words => format!("{}: required", words.join(", ")),
        }
    }

    /// The key of a table must be given.
    pub fn is_required(&self) -> bool {
        matches!(self.default, Default::Required)
    }
}

/// One word of a choice.
#[derive(Debug)]
pub struct Word {
    pub word: &'static str,
    pub doc: &'static str,
}

/// Type of a key's value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
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
    /// Text that a function reads; the error is what is wrong with it and what to write.
    Parsed {
        what: &'static str,
        check: fn(&str) -> Result<(), (String, String)>,
    },
    /// `[[...]]`.
    Tables(&'static [Key]),
    OneOrMany(&'static Kind),
    /// The second for a table or a plain number, the first otherwise.
    Either(&'static Kind, &'static Kind),
    /// The word `"off"`, or a value.
    OrOff(&'static Kind),
    /// A table whose keys are checked elsewhere.
    Free,
    /// A table of parameters of a stack.
    Settings,
}

/// Keys inside a key.
pub fn nested(kind: &'static Kind) -> Option<&'static [Key]> {
    match kind {
        Kind::Table(keys) => Some(keys),
        Kind::OneOrMany(inner) | Kind::OrOff(inner) => nested(inner),
        Kind::Either(first, second) => nested(first).or_else(|| nested(second)),
        _ => None,
    }
}
