//! Values of single runs, from the tables of a stored result, and their pairs by seed.

use std::collections::BTreeMap;

use crate::store::{ResultDir, StoreError, Table};
use fullpipe_metrics::Scope;

/// Every run's values, from the tables of a stored result.
pub(crate) struct Runs {
    flows: Table,
    links: Table,
    /// Rows of each case and name: of flows and traffic, and of links.
    rows: [BTreeMap<(i64, String), Vec<usize>>; 2],
}

impl Runs {
    pub(crate) fn of(dir: &ResultDir) -> Result<Runs, StoreError> {
        let (flows, links) = (dir.runs()?, dir.links()?);
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
        Ok(Runs { flows, links, rows })
    }

    /// Value of every seed.
    pub(crate) fn values(
        &self,
        case: usize,
        scope: Scope,
        name: Option<&str>,
        metric: &str,
    ) -> Vec<(i64, Option<f64>)> {
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

/// Values of the two sides with the same seed; `None` unless all seeds of a side have a partner and
/// there are two.
pub(super) fn pairs(a: &[(i64, Option<f64>)], b: &[(i64, Option<f64>)]) -> Option<Vec<[f64; 2]>> {
    let of_b: BTreeMap<i64, Option<f64>> = b.iter().copied().collect();
    let common: Vec<_> = a
        .iter()
        .filter_map(|(seed, x)| Some((*x, *of_b.get(seed)?)))
        .collect();
    if common.len() < 2 || (common.len() < a.len() && common.len() < b.len()) {
        return None;
    }
    common.into_iter().map(|(x, y)| Some([x?, y?])).collect()
}
