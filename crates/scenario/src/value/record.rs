//! A table that was read.

use fullpipe_cc::StackSpec;
use fullpipe_units::{BufferSize, Bytes, Rate, Span, WindowSize};

use super::super::document::Place;
use super::super::keys::Key;
use super::{Field, Value};

/// A table that was read: one place per key of its table.
#[derive(Clone, Debug)]
pub(crate) struct Record {
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

    /// Notes what a misspelt key probably means.
    pub(super) fn misspelt(&mut self, meant: Option<&'static str>) {
        self.meant.extend(meant);
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
