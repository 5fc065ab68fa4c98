//! Values of single runs, from the tables of a stored result, and their pairs by seed.

use std::collections::{BTreeMap, BTreeSet};

use crate::store::{ResultDir, StoreError, Table};
use fullpipe_metrics as metrics;
use fullpipe_metrics::{Expression, Scope};

/// Every run's values, from the tables of a stored result.
pub struct Runs {
    flows: Table,
    links: Table,
    /// Rows of each case and name: of flows and traffic, and of links.
    rows: [BTreeMap<(i64, String), Vec<usize>>; 2],
    /// The metrics that were read, if not all.
    only: Option<BTreeSet<String>>,
}

impl Runs {
    /// Reads them.
    ///
    /// # Errors
    /// If a table is missing or damaged.
    pub fn of(dir: &ResultDir) -> Result<Runs, StoreError> {
        Ok(Runs::indexed(dir.runs_and_links(&|_| true)?, None))
    }

    /// Reads these metrics and expressions alone, or nothing if there are none. Nobody may ask for
    /// others.
    ///
    /// # Errors
    /// Like [`Runs::of`].
    pub fn of_metrics<'a>(
        dir: &ResultDir,
        asked: impl Iterator<Item = &'a str>,
    ) -> Result<Runs, StoreError> {
        let parsed: Vec<Expression> = asked.filter_map(|a| Expression::parse(a).ok()).collect();
        let metrics = parsed.iter().flat_map(Expression::metrics);
        let metrics: BTreeSet<String> = metrics.map(str::to_owned).collect();
        let tables = match metrics.is_empty() {
            true => <[Table; 2]>::default(),
            false => dir.runs_and_links(&|name| {
                ["case", "seed", "flow", "link"].contains(&name) || metrics.contains(name)
            })?,
        };
        Ok(Runs::indexed(tables, Some(metrics)))
    }

    fn indexed([flows, links]: [Table; 2], only: Option<BTreeSet<String>>) -> Runs {
        let index = |table: &Table, name: &str| {
            let mut rows: BTreeMap<(i64, String), Vec<usize>> = BTreeMap::new();
            let cases = table.int("case").unwrap_or_default();
            let names = table.text(name).unwrap_or_default();
            for (i, (case, name)) in cases.iter().zip(names).enumerate() {
                rows.entry((*case, name.clone())).or_default().push(i);
            }
            rows
        };
        let rows = [index(&flows, "flow"), index(&links, "link")];
        Runs {
            flows,
            links,
            rows,
            only,
        }
    }

    /// An expression over metrics: those of links of the link of this name, otherwise of the
    /// bottleneck.
    fn computed(
        &self,
        case: usize,
        scope: Scope,
        name: Option<&str>,
        text: &str,
    ) -> Vec<(i64, Option<f64>)> {
        let Ok(expression) = Expression::parse(text) else {
            return Vec::new();
        };
        // Without it, the first of the case.
        let bottleneck = || {
            let key = (case as i64, "bottleneck".to_owned());
            self.rows[1].contains_key(&key).then_some("bottleneck")
        };
        let mut seeds: Vec<i64> = Vec::new();
        let mut columns: BTreeMap<&str, BTreeMap<i64, Option<f64>>> = BTreeMap::new();
        for metric in expression.metrics() {
            let own = metrics::scope_of(metric).unwrap_or(scope);
            let of = match own {
                Scope::Link if scope == Scope::Link => name.or_else(bottleneck),
                Scope::Link => bottleneck(),
                Scope::Case => None,
                _ => name,
            };
            let values = self.values(case, own, of, metric);
            seeds = values.iter().map(|(seed, _)| *seed).collect();
            columns.insert(metric, values.into_iter().collect());
        }
        let value =
            |seed: i64| expression.value(&mut |name: &str| *columns.get(name)?.get(&seed)?);
        seeds.into_iter().map(|seed| (seed, value(seed))).collect()
    }

    /// Seed and value of every run of a case: of the flow, traffic or link of this name. The metric
    /// may be an expression.
    pub fn values(
        &self,
        case: usize,
        scope: Scope,
        name: Option<&str>,
        metric: &str,
    ) -> Vec<(i64, Option<f64>)> {
        if metrics::scope_of(metric).is_none() {
            return self.computed(case, scope, name, metric);
        }
        let was_read = |only: &BTreeSet<String>| only.contains(metric);
        debug_assert!(self.only.as_ref().is_none_or(was_read), "{metric}");
        let (table, index) = match scope {
            Scope::Link => (&self.links, &self.rows[1]),
            _ => (&self.flows, &self.rows[0]),
        };
        let (Some(values), Some(seeds)) = (table.float(metric), table.int("seed")) else {
            return Vec::new();
        };
        let case = case as i64;
        let rows = match name {
            Some(name) => index.get(&(case, name.to_owned())),
            // A metric of the case stands in the rows of each of its flows.
            None => index
                .range((case, String::new())..(case + 1, String::new()))
                .next()
                .map(|(_, rows)| rows),
        };
        let rows = rows.map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&i| (seeds[i], values[i])).collect()
    }
}
