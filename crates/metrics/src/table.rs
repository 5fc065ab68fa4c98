//! The table of metrics. Scenario validation, `fullpipe list metrics`, the reference page and the
//! columns of every result come from it; the rows are in [`rows`](crate::rows).

use crate::metric::{Metric, Scope};
use crate::rows::{CASE, FLOW, LINK, TRAFFIC};

/// Every metric, in the order of columns and JSON keys.
pub static METRICS: &[Metric] = &{
    let mut all = [FLOW[0]; FLOW.len() + TRAFFIC.len() + LINK.len() + CASE.len()];
    let parts = [FLOW, TRAFFIC, LINK, CASE];
    let (mut part, mut row, mut at) = (0, 0, 0);
    while part < parts.len() {
        if row < parts[part].len() {
            all[at] = parts[part][row];
            (row, at) = (row + 1, at + 1);
        } else {
            (part, row) = (part + 1, 0);
        }
    }
    all
};

/// Rows by name, for code that means one metric: what is not in the table does not compile in a
/// constant.
impl Metric {
    /// A row of the metrics of flows, by the name that results have.
    pub const fn flow(name: &str) -> &'static Metric {
        row(FLOW, name)
    }

    /// A row of the metrics of traffic, whatever its kind.
    pub const fn traffic(name: &str) -> &'static Metric {
        row(TRAFFIC, name)
    }

    /// A row of the metrics of links.
    pub const fn link(name: &str) -> &'static Metric {
        row(LINK, name)
    }

    /// A row of the metrics of a whole case.
    pub const fn case(name: &str) -> &'static Metric {
        row(CASE, name)
    }
}

const fn row(rows: &'static [Metric], name: &str) -> &'static Metric {
    let mut i = 0;
    while i < rows.len() {
        if is_same(rows[i].name, name) {
            return &rows[i];
        }
        i += 1;
    }
    panic!("no metric of this name")
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The metric of this name in this scope. Controller variables are not in the table: see
/// [`is_variable`].
pub fn find(scope: Scope, name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|m| m.scope == scope && m.name == name)
}

/// The scope of the name; of a name that flows and traffic have, that of flows. `var.<name>.last`
/// and `var.<name>.max` belong to flows.
pub fn scope_of(name: &str) -> Option<Scope> {
    if is_variable(name) {
        return Some(Scope::Flow);
    }
    METRICS.iter().find(|m| m.name == name).map(|m| m.scope)
}

/// True for `var.<name>.last` and `var.<name>.max`.
pub fn is_variable(name: &str) -> bool {
    name.strip_prefix("var.")
        .and_then(|rest| {
            rest.strip_suffix(".last")
                .or_else(|| rest.strip_suffix(".max"))
        })
        .is_some_and(|v| !v.is_empty())
}

/// Every name of the table once, in its order.
pub fn names() -> impl Iterator<Item = &'static str> {
    let first = |m: &&Metric| scope_of(m.name) == Some(m.scope);
    METRICS.iter().filter(first).map(|m| m.name)
}

/// The names of a scope, in the order of the table.
pub fn names_of(scope: Scope) -> impl Iterator<Item = &'static str> {
    METRICS
        .iter()
        .filter(move |m| m.scope == scope)
        .map(|m| m.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_described_and_named_once() {
        let mut seen = BTreeSet::new();
        for m in METRICS {
            assert!(seen.insert((m.scope, m.name)), "{} twice", m.name);
            assert_eq!(
                m.kinds().is_empty(),
                m.scope != Scope::Traffic,
                "{}",
                m.name
            );
            assert!(
                !m.unit.is_empty()
                    && !m.about.is_empty()
                    && !m.formula.is_empty()
                    && !m.source.is_empty(),
                "{}",
                m.name
            );
            assert!(!m.about.ends_with('.'), "{}", m.name);
            assert!(!is_variable(m.name));
        }
    }

    #[test]
    fn names_that_share_an_object_stand_together() {
        let heads: Vec<_> = METRICS
            .iter()
            .map(|m| (m.scope, m.name.split('.').next().unwrap()))
            .collect();
        let mut seen = BTreeSet::new();
        for pair in heads.windows(2) {
            if pair[0] != pair[1] {
                assert!(seen.insert(pair[0]), "{:?} in two places", pair[0]);
            }
        }
    }

    #[test]
    fn variables_are_recognised() {
        assert!(is_variable("var.w_max.last") && is_variable("var.w_gamma.max"));
        assert!(
            !is_variable("var..max") && !is_variable("var.w_max") && !is_variable("w_max.last")
        );
        assert_eq!(scope_of("jain"), Some(Scope::Case));
        assert_eq!(scope_of("var.k.last"), Some(Scope::Flow));
        assert_eq!(scope_of("nope"), None);
        // A name of flows and of traffic is first of all that of flows.
        assert_eq!(scope_of("goodput_mbps"), Some(Scope::Flow));
        assert_eq!(scope_of("completion_time_s.p95"), Some(Scope::Traffic));
        assert_eq!(names().filter(|n| *n == "goodput_mbps").count(), 1);
    }
}
