//! A result as a table for people ([`table`]), as one case per line ([`ndjson`]), as rows
//! ([`csv`]), and as what continuous integration shows ([`junit`], [`markdown`]).

mod bursts;
mod column;
mod expectations;
mod falsification;
mod flows;
mod junit;
mod links;
mod markdown;
mod rows;
#[cfg(test)]
pub(crate) mod testing;
mod text;
mod traffic;
pub mod truth;

use fullpipe_metrics::Metric;
use fullpipe_results::label;
use fullpipe_results::result::{CaseLine, CaseResult, LinkResult, RunResult, printed};

use crate::table::Table;
pub use bursts::bursts;
pub use falsification::{advice, falsification, falsifications, left_out};
pub use junit::junit;
pub use markdown::markdown;
pub use rows::{Columns, Kept, Whose, csv, numbers, runs};

/// A scenario that has no result, not even a part of one.
pub struct NoResult<'a> {
    /// `name` of the file.
    pub scenario: &'a str,
    /// A refusal, or an interruption before its first run was over.
    pub why: String,
}

/// The table: one row per flow and case, one per traffic and case, what the spread is, then the
/// expectations.
pub fn table(result: &RunResult) -> String {
    let mut out = String::new();
    let traffics = result.cases.iter().any(|c| !c.traffic.is_empty());
    if !traffics || result.cases.iter().any(|c| !c.flows.is_empty()) {
        out += &flows::table(result, &[]).text();
        out += &flows::streams(result);
    }
    if traffics {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &traffic::table(result, &[]).text();
    }
    if links_tell(result) {
        out.push('\n');
        out += &links::table(result, &[]).text();
    }
    out.push('\n');
    out += &spread(result);
    out += &interrupted(result).unwrap_or_default();
    out += &not_valid(result).unwrap_or_default();
    if !result.expectations.is_empty() {
        out.push('\n');
        out += &expectations::table(result).text();
        out.push('\n');
        out += &expectations::summary(result);
    }
    out
}

/// One row per flow and case, with these metrics, or without any with those that are usual.
pub fn flows_table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    flows::table(result, metrics)
}

/// One row per short flows, datagrams or pings and case; metrics as in [`flows_table`].
pub fn traffic_table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    traffic::table(result, metrics)
}

/// One row per link and case; metrics as in [`flows_table`].
pub fn links_table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    links::table(result, metrics)
}

/// One row per expectation.
pub fn expectations_table(result: &RunResult) -> Table {
    expectations::table(result)
}

/// What did not pass, a sentence each: `FAIL ...`, `unclear ...`.
pub fn not_passed(result: &RunResult) -> Vec<String> {
    let judged = expectations::judged(result).into_iter();
    let told = judged.filter(|row| !row.result.pass || row.result.unclear);
    let told = told.map(|row| format!("{} {}", row.verdict, row.sentence(&result.scenario)));
    told.collect()
}

/// One case per line, each with the names of version, scenario and ground.
pub fn ndjson(result: &RunResult) -> String {
    result.lines().map(|line| json_line(&line)).collect()
}

/// A case as a line.
pub fn json_line(line: &CaseLine<'_>) -> String {
    printed::line(line)
}

/// Parameters of every case as text.
fn params_of(cases: &[CaseResult]) -> Vec<Vec<(String, String)>> {
    label::texts(cases.iter().map(|c| &c.params))
}

/// Whether the links say what the flows do not: at which of several there is a queue, what a queue
/// marks, and what comes of queues where the cases differ in them.
fn links_tell(result: &RunResult) -> bool {
    let has = |link: &LinkResult, metric: &str| link.value(metric).is_some_and(|mean| mean > 0.0);
    let queue = const { Metric::link("queue_packets.max").name };
    let marks = const { Metric::link("marks").name };
    let tells = |case: &CaseResult| {
        let queues = case.links.iter().filter(|link| has(link, queue));
        queues.count() > 1 || case.links.iter().any(|link| has(link, marks))
    };
    let has_links = result.cases.iter().any(|c| !c.links.is_empty());
    let params = params_of(&result.cases);
    let varying = label::varying(&params);
    let vary = varying.iter().any(|(key, _)| key.contains("queue"));
    has_links && vary || result.cases.iter().any(tells)
}

/// How far the runs came if they were stopped; `None` if all were made.
fn interrupted(result: &RunResult) -> Option<String> {
    let interrupted = result.interrupted?;
    Some(format!(
        "INTERRUPTED {interrupted}: no expectation was judged\n"
    ))
}

/// That the numbers do not count, and why; `None` if they do.
fn not_valid(result: &RunResult) -> Option<String> {
    Some(format!("NOT VALID: {}\n", result.untrue()?))
}

/// What stands behind the `±`, so that no number is read as surer than it is.
fn spread(result: &RunResult) -> String {
    let seeds = || result.cases.iter().map(|c| c.seeds.len());
    let (few, many) = (seeds().min().unwrap_or(0), seeds().max().unwrap_or(0));
    let partial = result.partial();
    let mut out = partial.map_or(String::new(), |why| format!("PARTIAL: {why}\n"));
    out += &match (few, many) {
        // What another run over a network would bring, no seed decides.
        (_, 0 | 1) if result.peer.is_some() => String::new(),
        (_, 0 | 1) => "1 seed: the spread between seeds is unknown\n".to_owned(),
        (a, b) if a == b => {
            format!("{MEAN} {a} seeds; without ±: {SAME}\n")
        }
        (1, b) => format!("{MEAN} 1 to {b} seeds; without ±: one seed, {SAME}\n"),
        (a, b) => format!("{MEAN} {a} to {b} seeds; without ±: {SAME}\n"),
    };
    if let Some(warmup) = result.warmup() {
        out += &format!("{warmup}\n");
    }
    if let Some(missed) = result.unsure() {
        out += &format!("{missed}\n");
    }
    if let Some(repeated) = result.repeated() {
        out += &format!("{repeated}\n");
    }
    if let Some(test_bed) = result.test_bed() {
        out += &format!("test bed, worst case: {test_bed}\n");
    }
    out
}

/// What stands in the table where there are several seeds.
const MEAN: &str = "mean ± half width of its 95 % interval, over";
/// What a mean of several seeds without an interval is.
const SAME: &str = "the same with every seed, or to a millionth";

#[cfg(test)]
mod tests {
    use fullpipe_results::result::Estimate;

    use super::testing::{case, result, two_cases};
    use super::*;

    #[test]
    fn the_table_of_one_seed() {
        insta::assert_snapshot!(table(&two_cases(1)));
    }

    #[test]
    fn the_table_of_several_seeds_and_flows() {
        let flows = [("main", "reno", 85.25), ("other", "cubic", 12.5)];
        insta::assert_snapshot!(table(&result(vec![case(&[], 5, &flows)])));
    }

    /// A flow's largest share is the word, refusals by its own host are a column where there are
    /// any.
    #[test]
    fn the_table_names_what_limited_a_flow() {
        let mut case = case(&[], 1, &[("main", "reno", 85.25), ("other", "cubic", 12.5)]);
        let mut set = |flow: usize, metric: &str, mean: f64| {
            let value = Estimate {
                mean: Some(mean),
                ci95: None,
                undefined: 0,
            };
            case.flows[flow].metrics.insert(metric.to_owned(), value);
        };
        let shares = [
            [("limited.network", 0.2), ("limited.local_queue", 0.8)],
            [("limited.network", 0.6), ("limited.local_queue", 0.4)],
        ];
        for (flow, shares) in shares.iter().enumerate() {
            for (metric, share) in shares {
                set(flow, metric, *share);
            }
        }
        set(1, "local_stalls", 0.0);
        let text = table(&result(vec![case.clone()]));
        let line = |text: &str, flow: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with(flow));
            lines.next().unwrap().trim_end().to_owned()
        };
        assert!(line(&text, "main").ends_with("local queue"), "{text}");
        assert!(line(&text, "other").ends_with("network"), "{text}");
        assert!(!text.contains("stalls"), "{text}");
        case.flows[1].metrics.get_mut("local_stalls").unwrap().mean = Some(7.0);
        let text = table(&result(vec![case]));
        assert!(line(&text, "flow").contains("stalls"), "{text}");
    }

    #[test]
    fn links_have_a_table_where_several_queue_or_one_marks() {
        let link = |name: &str, of: &[(&str, f64)]| {
            let metrics = of.iter().map(|(metric, mean)| {
                let estimate = Estimate {
                    mean: Some(*mean),
                    ..Estimate::default()
                };
                ((*metric).to_owned(), estimate)
            });
            LinkResult {
                name: name.to_owned(),
                metrics: metrics.collect(),
            }
        };
        let shown = |links: Vec<LinkResult>| {
            let mut found = two_cases(1);
            found.cases[1].links = links;
            table(&found).contains("access")
        };
        let queue = [("queue_packets.max", 9.0), ("utilization", 0.5)];
        assert!(!shown(vec![link("access", &queue)]));
        assert!(!shown(vec![link("access", &queue), link("core", &[])]));
        assert!(shown(vec![link("access", &queue), link("core", &queue)]));
        assert!(shown(vec![link("access", &[("marks", 2.0)])]));
    }

    /// Neither a pass nor a failure: in the table, in the last line, and for other programs.
    #[test]
    fn what_is_unclear_is_said_to_be() {
        let mut found = two_cases(2);
        found.expectations.truncate(1);
        found.expectations[0].unclear = true;
        let text = table(&found);
        assert!(text.contains("\nunclear      n "), "{text}");
        assert!(
            text.contains("0 of 1 expectations passed, 1 unclear"),
            "{text}"
        );
        assert_eq!(not_passed(&found).len(), 1);
        let xml = junit(&[found], &[]);
        assert!(
            xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""),
            "{xml}"
        );
        assert!(xml.contains("<skipped message="), "{xml}");
    }

    #[test]
    fn lines_of_json_parse() {
        let text = ndjson(&two_cases(2));
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["scenario"], "demo, \"quoted\"");
        assert_eq!(lines[0]["params"]["flow.main.stack"], "reno");
        assert_eq!(lines[0]["expectations"].as_array().unwrap().len(), 3);
        assert_eq!(lines[1]["expectations"].as_array().unwrap().len(), 0);
    }
}
