//! A table that refers to what the rest of the scenario defines: its flows, its metrics and its
//! matrix.

use std::ops::Deref;

use fullpipe_cc::registry::nearest;

use crate::case::Case;
use crate::document::shorten;
use crate::matrix::{Axis, Names};
use crate::value::{At, Key, Reader, did_you_mean};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Scope};

/// What expectations and reports may refer to.
pub(crate) struct Known<'a> {
    pub names: &'a Names,
    pub axes: &'a [Axis],
    /// Empty if the cases could not be resolved.
    pub cases: &'a [Case],
    /// Read with `--quick`.
    pub quick: bool,
    /// Read as a wrong world of the file.
    pub in_a_world: bool,
}

impl Known<'_> {
    /// Names of the links of all cases.
    pub fn links(&self) -> impl Iterator<Item = &str> + Clone {
        let links = self.cases.iter().flat_map(|case| case.spec.links());
        links.map(|link| link.name.as_str())
    }
}

/// A table with such references.
pub(super) struct Referring<'a, T> {
    pub at: At<'a, T>,
    pub known: &'a Known<'a>,
}

impl<'a, T> Deref for Referring<'a, T> {
    type Target = At<'a, T>;

    fn deref(&self) -> &At<'a, T> {
        &self.at
    }
}

impl<T> Referring<'_, T> {
    /// Notes a fault of a key's value.
    pub fn refuse(
        &self,
        reader: &mut Reader<'_>,
        key: &Key,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into());
        reader.refuse(self.record.place(key), &self.key(key), message, hint);
    }

    /// Notes that the table lacks what only this key could say.
    pub fn lacks(&self, reader: &mut Reader<'_>, key: &Key, message: &str, hint: String) {
        reader.refuse_key(self.record.at, &self.key(key), message, Some(hint));
    }

    /// What a metric under this key is of; `None` if there is no such metric, which is a fault.
    pub fn metric(&self, reader: &mut Reader<'_>, key: &Key, name: &str) -> Option<Scope> {
        if let Some(scope) = metrics::scope_of(name) {
            return Some(scope);
        }
        if name.contains(|c: char| " +-*/()".contains(c)) {
            return self.expression(reader, key, name);
        }
        let near = metrics::called_otherwise(name);
        let near = near.or_else(|| nearest(name, metrics::names()));
        let near = near.or_else(|| metrics::nearest(name));
        let hint = match near {
            Some(near) => format!("did you mean \"{near}\"? see `fullpipe list metrics`"),
            None => "`fullpipe list metrics` shows all".to_owned(),
        };
        self.refuse(reader, key, "unknown metric", hint);
        None
    }

    /// The same of an expression over metrics.
    fn expression(&self, reader: &mut Reader<'_>, key: &Key, text: &str) -> Option<Scope> {
        match Expression::parse(text) {
            Ok(expression) if expression.metrics().is_empty() => {
                let message = "an expression without a metric is the same whatever happens";
                self.refuse(reader, key, message, EXPRESSIONS);
                None
            }
            Ok(expression) => Some(expression.scope()),
            Err(error) => {
                let hint = error.hint.clone();
                let hint = hint.unwrap_or_else(|| EXPRESSIONS.to_owned());
                self.refuse(reader, key, error.to_string(), hint);
                None
            }
        }
    }

    /// Sees to it that there is a flow or traffic of this name.
    pub fn flow(&self, reader: &mut Reader<'_>, key: &Key, flow: &str) {
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
        self.refuse(reader, key, message, hint);
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

const EXPRESSIONS: &str = "write for example \"utilization - 0.1 * rtt_inflation\"";
