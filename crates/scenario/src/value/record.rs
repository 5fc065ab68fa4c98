//! A table that was read.

use super::{Field, Key, Typed};
use crate::document::Place;

/// A table that was read: one place per key of its table.
#[derive(Clone, Debug)]
pub struct Record {
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

    /// The value of a key, unless it is missing or wrong.
    pub fn get<T: Typed>(&self, key: &Key) -> Option<T> {
        T::of(&self.field(key)?.value)
    }

    /// Given, or misspelt.
    pub fn is_attempted(&self, key: &Key) -> bool {
        self.is_given(key) || self.meant.contains(&key.name)
    }

    pub fn is_given(&self, key: &Key) -> bool {
        self.field(key).is_some()
    }

    /// Keys that are given, in the order of the table.
    pub fn given(&self) -> impl Iterator<Item = &'static Key> {
        let pairs = self.keys.iter().zip(&self.fields);
        pairs.filter_map(|(key, field)| field.as_ref().map(|_| key))
    }

    /// `None` as well where the table has no such key.
    pub fn field(&self, key: &Key) -> Option<&Field> {
        self.fields[self.index(key)?].as_ref()
    }

    pub fn set(&mut self, key: &Key, field: Field) {
        if let Some(i) = self.index(key) {
            self.fields[i] = Some(field);
        }
    }

    pub fn take(&mut self, key: &Key) -> Option<Field> {
        let i = self.index(key)?;
        self.fields[i].take()
    }

    pub fn field_mut(&mut self, key: &Key) -> Option<&mut Field> {
        let i = self.index(key)?;
        self.fields[i].as_mut()
    }

    /// Place of a key's value, or of the table if the key is not given.
    pub fn place(&self, key: &Key) -> Place {
        self.field(key).map_or(self.at, |field| field.at)
    }

    /// Whether the value at this place is that of one of its keys, or of a table inside.
    pub fn has(&self, name: &str, at: Place) -> bool {
        let mut pairs = self.keys.iter().zip(&self.fields);
        pairs.any(|(key, field)| {
            field.as_ref().is_some_and(|field| {
                (key.name == name && field.at == at) || field.value.has(name, at)
            })
        })
    }

    fn index(&self, key: &Key) -> Option<usize> {
        self.keys.iter().position(|known| known.name == key.name)
    }

    /// Notes what a misspelt key probably means.
    pub(super) fn misspelt(&mut self, meant: Option<&'static str>) {
        self.meant.extend(meant);
    }
}
