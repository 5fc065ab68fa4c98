//! A result as rows of comma-separated values.

use std::borrow::Cow;

use fullpipe_metrics::{Metric, Scope, find, names_of, scope_of};
use fullpipe_report::figure::Rows;
use fullpipe_results::precision;
use fullpipe_results::result::{CaseResult, Estimate, Estimates, RunResult, StreamResult};
use fullpipe_results::store::{self, Column};
use fullpipe_scenario::Scenario;
use fullpipe_units::printed_text;

/// The header and the rows of several results: one row per flow (or traffic) and case. Parameters
/// that a scenario does not have are empty.
pub fn csv(results: &[RunResult]) -> String {
    let columns = Columns::of(results);
    let mut out = columns.head();
    for result in results {
        for (index, case) in result.cases.iter().enumerate() {
            out += &columns.rows(Whose::of(result), index, case);
        }
    }
    out
}

/// Scenario, ground and path of some rows: their first columns.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Ground.
    pub ground: &'a str,
    /// The other host of a path that was not the scenario's.
    pub peer: Option<&'a str>,
}

impl Whose<'_> {
    fn of(result: &RunResult) -> Whose<'_> {
        Whose {
            scenario: &result.scenario,
            ground: &result.ground,
            peer: result.peer.as_deref(),
        }
    }
}

/// Rows of a result that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A row per flow and case.
    Flows,
    /// A row per class of short flows, datagrams or probes, and case.
    Traffic,
    /// A row per link and case.
    Links,
}

/// The same of these cases, flows, traffic or links, and metrics, in their order (all of them, if
/// none is named); `None` without a row.
pub fn numbers(
    result: &RunResult,
    cases: &[usize],
    kept: Kept,
    metrics: &[String],
) -> Option<String> {
    let mut columns = Columns::of(std::slice::from_ref(result));
    columns.kept = Some(kept);
    let scope = match kept {
        Kept::Flows => Scope::Flow,
        Kept::Traffic => Scope::Traffic,
        Kept::Links => Scope::Link,
    };
    columns.metrics = match metrics {
        [] => {
            let of_case = columns
                .metrics
                .into_iter()
                .filter(|(_, of)| *of == Of::Case);
            names_of(scope)
                .map(|name| (name, Of::Row))
                .chain(of_case)
                .collect()
        }
        named => named
            .iter()
            .filter_map(|name| Of::find(scope, name))
            .collect(),
    };
    let rows = cases.iter().map(|&i| {
        let case = &result.cases[i];
        columns.rows(Whose::of(result), i, case)
    });
    let rows: String = rows.collect();
    (!rows.is_empty()).then(|| columns.head() + &rows)
}

/// The rows of `runs.parquet`, of these cases and with these metrics, in their order (all of them,
/// if none is named).
pub fn runs(table: &store::Table, cases: &[usize], metrics: &[String]) -> Rows {
    let wanted =
        |name: &String| metrics.is_empty() || scope_of(name).is_none() || metrics.contains(name);
    let columns = table.columns.iter().filter(|(name, _)| wanted(name));
    let mut columns: Vec<&(String, Column)> = columns.collect();
    // What is no metric stays in front: the sort is stable.
    columns.sort_by_key(|(name, _)| {
        metrics
            .iter()
            .position(|m| m == name)
            .map_or(0, |at| at + 1)
    });
    let case_of = columns.iter().find_map(|(name, values)| match values {
        Column::Int(values) if name == "case" => Some(values),
        _ => None,
    });
    let is_chosen = |row: &usize| {
        let case = case_of.map(|of| of[*row]);
        case.is_none_or(|case| usize::try_from(case).is_ok_and(|case| cases.contains(&case)))
    };
    let cell = |column: &Column, row: usize| match column {
        Column::Text(values) => values[row].clone(),
        Column::Int(values) => values[row].to_string(),
        Column::Float(values) => values[row].map_or(String::new(), printed_text),
    };
    let row = |row: usize| {
        columns
            .iter()
            .map(|(_, values)| cell(values, row))
            .collect()
    };
    let align = |column: &Column| match column {
        Column::Text(_) => 'l',
        Column::Int(_) | Column::Float(_) => 'r',
    };
    Rows {
        heads: columns.iter().map(|(name, _)| name.clone()).collect(),
        rows: (0..table.rows()).filter(is_chosen).map(row).collect(),
        align: columns.iter().map(|(_, values)| align(values)).collect(),
    }
}

/// The columns of rows, which are known before there is a row.
pub struct Columns {
    /// Parameters, in the order in which they were met.
    keys: Vec<String>,
    /// Means have intervals.
    several: bool,
    /// Metrics of flows, of traffic where there is any, and of cases.
    metrics: Vec<(&'static str, Of)>,
    /// Some run ended before its time.
    partial: bool,
    /// Some path was that to another host.
    peer: bool,
    /// Only these rows.
    kept: Option<Kept>,
}

/// Source of a column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The flow or traffic of the row.
    Row,
    /// The case of the row, the same for all its flows.
    Case,
}

impl Of {
    /// A metric of rows of a scope, or of their case.
    fn find(scope: Scope, name: &str) -> Option<(&'static str, Of)> {
        let of = |scope, of| find(scope, name).map(|metric| (metric.name, of));
        of(scope, Of::Row).or_else(|| of(Scope::Case, Of::Case))
    }
}

impl Columns {
    /// Columns that hold every parameter and metric of these results.
    fn of(results: &[RunResult]) -> Columns {
        let cases = || results.iter().flat_map(|r| &r.cases);
        let keys = cases().flat_map(|c| c.params.iter()).map(|(key, _)| key);
        let several = cases().any(|c| c.seeds.len() > 1);
        let traffic = cases().any(|c| !c.traffic.is_empty());
        Columns {
            partial: cases().any(|c| c.partial.is_some()),
            peer: results.iter().any(|r| r.peer.is_some()),
            ..Columns::new(keys, several, traffic)
        }
    }

    /// Those that the results of these scenarios will have, where all runs last until their end.
    pub fn of_scenarios(scenarios: &[Scenario]) -> Columns {
        let cases = || scenarios.iter().flat_map(|s| &s.cases);
        let first = scenarios.iter().filter_map(|s| s.cases.first());
        let keys: Vec<&str> = first
            .flat_map(|case| case.json_params().map(|(key, _)| key))
            .collect();
        let traffic = cases().any(|c| !c.traffic.is_empty());
        let several = scenarios.iter().any(|s| precision::seeds_of(s) > 1);
        Columns::new(keys.into_iter(), several, traffic)
    }

    fn new<'a>(all: impl Iterator<Item = &'a str>, several: bool, traffic: bool) -> Columns {
        let mut keys: Vec<String> = Vec::new();
        for key in all {
            if !keys.iter().any(|known| known == key) {
                keys.push(key.to_owned());
            }
        }
        // Names that flows have too are there already.
        let others = names_of(Scope::Traffic).filter(|n| traffic && find(Scope::Flow, n).is_none());
        let of_rows = names_of(Scope::Flow)
            .chain(others)
            .map(|name| (name, Of::Row));
        let of_cases = names_of(Scope::Case).map(|name| (name, Of::Case));
        Columns {
            keys,
            several,
            metrics: of_rows.chain(of_cases).collect(),
            partial: false,
            peer: false,
            kept: None,
        }
    }

    /// The header.
    pub fn head(&self) -> String {
        let mut head: Vec<String> = ["scenario", "ground", "case"].map(str::to_owned).to_vec();
        if self.peer {
            head.insert(2, "peer".to_owned());
        }
        let keys = self.keys.iter();
        head.extend(keys.map(|key| store::column_of_key(key).into_owned()));
        head.extend(match self.kept {
            Some(Kept::Links) => ["seeds", "link"].map(str::to_owned).to_vec(),
            _ => ["seeds", "flow", "kind", "stack"]
                .map(str::to_owned)
                .to_vec(),
        });
        for (metric, _) in &self.metrics {
            head.push((*metric).to_owned());
            if self.several {
                head.extend([format!("{metric}_ci95_low"), format!("{metric}_ci95_high")]);
            }
        }
        if self.partial {
            head.push("partial".to_owned());
        }
        csv_line(&head)
    }

    /// The rows of a case.
    pub fn rows(&self, whose: Whose<'_>, index: usize, case: &CaseResult) -> String {
        let flows = case.flows.iter();
        let flows = flows.flat_map(|f| {
            let own = (&f.name, "flow", &f.stack, Cow::Borrowed(&f.metrics));
            let streams = f.streams.iter().filter(|_| f.streams.len() > 1);
            let streams = streams.map(|s| (&s.name, "stream", &f.stack, Cow::Owned(of_stream(s))));
            std::iter::once(own).chain(streams)
        });
        let traffic = case.traffic.iter();
        let traffic = traffic.map(|t| {
            (
                &t.name,
                t.kind.as_str(),
                &t.stack,
                Cow::Borrowed(&t.metrics),
            )
        });
        let links = case.links.iter();
        let links = links.map(|l| (&l.name, "", &l.name, Cow::Borrowed(&l.metrics)));
        let of_links = self.kept == Some(Kept::Links);
        let flows = flows.filter(|_| matches!(self.kept, None | Some(Kept::Flows)));
        let traffic = traffic.filter(|_| matches!(self.kept, None | Some(Kept::Traffic)));
        let links = links.filter(|_| of_links);
        let mut out = String::new();
        for (name, kind, stack, metrics) in flows.chain(traffic).chain(links) {
            let mut row = vec![whose.scenario.to_owned(), whose.ground.to_owned()];
            row.extend(self.peer.then(|| whose.peer.unwrap_or_default().to_owned()));
            row.push(index.to_string());
            let keys = self.keys.iter();
            row.extend(keys.map(|k| case.params.text(k).unwrap_or_default()));
            row.extend([case.seeds.len().to_string(), name.clone()]);
            if !of_links {
                row.extend([kind.to_owned(), stack.clone()]);
            }
            for (metric, of) in &self.metrics {
                let estimate = match of {
                    Of::Row => metrics.get(metric),
                    Of::Case => case.metrics.0.get(metric),
                };
                push_estimate(&mut row, estimate, self.several);
            }
            if self.partial {
                row.push(case.partial.clone().unwrap_or_default());
            }
            out += &csv_line(&row);
        }
        out
    }
}

/// What is known of a stream, by the names of a flow's metrics.
fn of_stream(stream: &StreamResult) -> Estimates {
    let values = [
        (GOODPUT, stream.goodput_mbps),
        (RETRANSMITS, Some(stream.retransmits as f64)),
        (MEAN_WINDOW, stream.cwnd_mean_segments),
        (LARGEST_WINDOW, stream.cwnd_max_segments),
    ];
    let one = |mean| Estimate {
        mean,
        ..Estimate::default()
    };
    let named = values.map(|(name, mean)| (name.to_owned(), one(mean)));
    named.into()
}

const GOODPUT: &str = Metric::flow("goodput_mbps").name;
const RETRANSMITS: &str = Metric::flow("retransmits").name;
const MEAN_WINDOW: &str = Metric::flow("cwnd_segments.mean").name;
const LARGEST_WINDOW: &str = Metric::flow("cwnd_segments.max").name;

fn push_estimate(row: &mut Vec<String>, estimate: Option<&Estimate>, with_interval: bool) {
    let text = |x: Option<f64>| x.map_or(String::new(), printed_text);
    let estimate = estimate.copied().unwrap_or_default();
    row.push(text(estimate.mean));
    if with_interval {
        row.extend([
            text(estimate.ci95.map(|c| c[0])),
            text(estimate.ci95.map(|c| c[1])),
        ]);
    }
}

/// A line after RFC 4180, with `\n` at its end.
fn csv_line(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        if cell.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{case, result, two_cases};
    use super::*;

    /// Whose path it was stands in a row that labels call after the scenario's own.
    #[test]
    fn rows_say_whose_path_it_was() {
        let mut over = two_cases(1);
        over.peer = Some("dtn.example.org".to_owned());
        let text = csv(&[over, two_cases(1)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("scenario,ground,peer,case,"), "{text}");
        assert!(lines[1].contains(",dtn.example.org,0,"), "{text}");
        let cells = |line: &str| {
            line.replace("demo, \"\"quoted\"\"", "demo")
                .matches(',')
                .count()
        };
        assert_eq!(cells(lines[1]), cells(lines[3]), "{text}");
        assert!(!csv(&[two_cases(1)]).contains("peer"));
    }

    #[test]
    fn rows_have_as_many_cells_as_the_header() {
        let text = csv(&[two_cases(2), two_cases(1)]);
        assert!(
            text.starts_with(
                "scenario,ground,case,flow.main.stack,path.mtu,seeds,flow,kind,stack,goodput_mbps,"
            ),
            "{text}"
        );
        let cells = |line: &str| {
            line.replace("\"demo, \"\"quoted\"\"\"", "demo")
                .split(',')
                .count()
        };
        let counts: Vec<usize> = text.lines().map(cells).collect();
        assert_eq!(counts.len(), 5);
        assert!(counts.iter().all(|n| *n == counts[0]), "{counts:?}");
    }
    /// As in `runs.parquet`; a reader that goes by names would take one for the other.
    #[test]
    fn an_axis_that_is_called_like_a_column_has_another_name_there() {
        let axes = ["case", "seeds", "goodput_mbps"].map(|key| (key, json!("a")));
        let text = csv(&[result(vec![case(&axes, 1, &[("main", "reno", 1.0)])])]);
        assert!(
            text.starts_with(
                "scenario,ground,case,param.case,param.seeds,param.goodput_mbps,seeds,flow,"
            ),
            "{text}"
        );
    }
}
