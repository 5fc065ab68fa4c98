//! A table that refers to what the rest of the scenario defines: its flows, its metrics and its matrix.

use super::super::document::{Place, shorten};
use super::super::matrix::{Axis, Names};
use super::super::value::{Reader, Record, did_you_mean, nearest};
use crate::Case;
use fullpipe_metrics as metrics;
use fullpipe_metrics::Scope;

/// What expectations and reports may refer to.
pub(crate) struct Known<'a> {
    pub names: &'a Names,
    pub axes: &'a [Axis],
    /// Empty if the cases could not be resolved.
    pub cases: &'a [Case],
    /// Read with `--quick`.
    pub quick: bool,
}

/// A table with such references.
pub(super) struct Table<'a> {
    pub record: &'a Record,
    /// Dotted key of the table.
    pub path: String,
    pub known: &'a Known<'a>,
}

impl<'a> Table<'a> {
    pub fn new(record: &'a Record, path: impl Into<String>, known: &'a Known<'a>) -> Table<'a> {
        Table {
            record,
            path: path.into(),
            known,
        }
    }
}

impl Table<'_> {
    /// Dotted key of one of its keys.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Place of a key's value.
    pub fn place(&self, name: &str) -> Place {
        self.record.place(name)
    }

    /// Notes a fault of a key's value.
    pub fn refuse(
        &self,
        reader: &mut Reader<'_>,
        name: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into());
        reader.refuse(self.place(name), &self.key(name), message, hint);
    }

    /// Notes that a key is missing; `line` is an example of it.
    pub fn missing(&self, reader: &mut Reader<'_>, name: &str, line: &str) {
        let hint = format!("write for example {line}");
        self.lacks(reader, name, "this key is missing", hint);
    }

    /// Notes that the table lacks what only this key could say.
    pub fn lacks(&self, reader: &mut Reader<'_>, name: &str, message: &str, hint: String) {
        reader.refuse_key(self.record.at, &self.key(name), message, Some(hint));
    }

    /// What a metric under this key is of; `None` if there is no such metric, which is a fault.
    pub fn metric(&self, reader: &mut Reader<'_>, key: &str, name: &str) -> Option<Scope> {
        if let Some(scope) = metrics::scope_of(name) {
            return Some(scope);
        }
        let names = metrics::names;
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean \"{near}\"? see `fullpipe list metrics`"),
            None => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
        };
        self.refuse(reader, key, "unknown metric", hint);
        None
    }

    /// Sees to it that there is a flow or traffic of this name.
    pub fn flow(&self, reader: &mut Reader<'_>, flow: &str) {
        let all = || {
            self.known
                .names
                .flows
                .iter()
                .chain(&self.known.names.traffic)
        };
        let names = || all().map(String::as_str);
        if names().any(|name| name == flow) {
            return;
        }
        let hint = did_you_mean(flow, names());
        let message = format!("there is no flow `{}`", shorten(flow));
        self.refuse(reader, "flow", message, hint);
    }

    /// What to write instead of a key that the matrix does not vary.
    pub fn axis_hint(&self, name: &str) -> String {
        let keys = || self.known.axes.iter().map(|axis| axis.key.as_str());
        match nearest(name, keys()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.known.axes.is_empty() => "there is no [matrix]: leave this out".to_owned(),
            None => format!("varied: {}", keys().collect::<Vec<_>>().join(", ")),
        }
    }
}
