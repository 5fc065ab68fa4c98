//! The values of a table together with where they stand, and what is found wrong with them.

use std::ops::Deref;

use super::dotted::join;
use super::{Key, Own, Record, Sub, Value};
use crate::document::{Fault, Place};

/// Keys that a table has, read into a type.
pub trait Table: Sized {
    const KEYS: &'static [Key];

    /// The value of every key, or its default.
    fn read(record: &Record) -> Self;
}

/// A table's values, and where they stand.
#[derive(Clone, Debug)]
pub struct At<'a, T> {
    values: T,
    pub record: &'a Record,
    /// Dotted key of the table; empty at the top of the file.
    pub path: String,
}

/// Faults and warnings so far.
#[derive(Debug, Default)]
pub struct Findings {
    pub faults: Vec<Fault>,
    pub warnings: Vec<Fault>,
}

impl<T> Deref for At<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.values
    }
}

impl<'a, T: Table> At<'a, T> {
    pub fn new(record: &'a Record, path: impl Into<String>) -> Self {
        Self {
            values: T::read(record),
            record,
            path: path.into(),
        }
    }
}

impl<T> At<'_, T> {
    /// A table inside this one.
    pub fn inside<'b, U: Table>(&self, key: &Key, sub: &'b Sub<U>) -> At<'b, U> {
        At::new(&sub.record, join(&self.path, key.name))
    }

    pub fn is_given(&self, key: &Key) -> bool {
        self.record.is_given(key)
    }

    /// Given, or misspelt.
    pub fn is_attempted(&self, key: &Key) -> bool {
        self.record.is_attempted(key)
    }

    /// Dotted key of one of its keys.
    pub fn key(&self, key: &Key) -> String {
        join(&self.path, key.name)
    }

    /// True if the key is given, be it wrong; notes that it is missing unless it is misspelt.
    pub fn required(&self, key: &Key, findings: &mut Findings) -> bool {
        if self.is_given(key) {
            return true;
        }
        if !self.is_attempted(key) {
            self.missing(key, findings);
        }
        false
    }

    /// Notes which of the required keys are missing; true if all are given.
    pub fn required_keys(&self, findings: &mut Findings) -> bool
    where
        T: Table,
    {
        let required = T::KEYS.iter().filter(|key| key.is_required());
        required.filter(|key| !self.required(key, findings)).count() == 0
    }

    /// Notes that a key is missing.
    pub fn missing(&self, key: &Key, findings: &mut Findings) {
        let hint = format!("write for example {} = {}", key.name, key.sample);
        let at = self.record.at;
        findings.refuse_table(at, &self.key(key), "this key is missing", &hint);
    }

    /// Notes a fault of a key's value.
    pub fn refuse(
        &self,
        findings: &mut Findings,
        key: &Key,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let fault = self.fault(key, message.into(), Some(hint.into()));
        findings.faults.push(fault);
    }

    /// Notes something strange.
    pub fn warn(&self, findings: &mut Findings, key: &Key, message: &str) {
        let fault = self.fault(key, message.to_owned(), None);
        findings.warnings.push(fault);
    }

    fn fault(&self, key: &Key, message: String, hint: Option<String>) -> Fault {
        let field = self.record.field(key);
        Fault {
            at: self.record.place(key),
            key: self.key(key),
            shows_value: field.is_some_and(|field| !matches!(field.value, Value::Record(_))),
            message,
            hint,
        }
    }
}

impl<T> At<'_, T> {
    /// Notes what is missing of the keys that a kind cannot do without; true if all of them are
    /// given.
    pub fn required_of(&self, own: &[Own], findings: &mut Findings) -> bool {
        let required = own.iter().filter(|own| own.required);
        let missing = required.filter(|own| !self.required(&own.key, findings));
        missing.count() == 0
    }

    /// Refuses keys that are neither a kind's own nor `common`.
    pub fn refuse_foreign(
        &self,
        kind: &str,
        own: &[Own],
        common: impl Fn(&Key) -> bool,
        findings: &mut Findings,
    ) {
        let is_own = |key: &Key| own.iter().any(|own| own.key.name == key.name);
        for key in self
            .record
            .given()
            .filter(|key| !is_own(key) && !common(key))
        {
            let message = format!("this key does not belong to the {kind}");
            let names: Vec<&str> = own.iter().map(|own| own.key.name).collect();
            let hint = match names.as_slice() {
                [] => "leave it out".to_owned(),
                names => format!("its keys: {}", names.join(", ")),
            };
            self.refuse(findings, key, message, hint);
        }
    }
}

impl Findings {
    /// Notes a fault of a table, or of something that it lacks.
    pub fn refuse_table(&mut self, at: Place, key: &str, message: &str, hint: &str) {
        self.faults.push(Fault {
            at,
            key: key.to_owned(),
            shows_value: false,
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
        });
    }
}
