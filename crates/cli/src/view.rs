//! A result as a table for people, as one case per line, or as rows.

use std::fmt::Write as _;

use fullpipe_cc::StackSpec;
use fullpipe_suite::label;
use fullpipe_suite::metrics::{Scope, find, names_of};
use fullpipe_suite::result::{
    CaseResult, Estimate, Estimates, ExpectationResult, FlowResult, RunResult, scalar_text,
};
use serde_json::json;

use crate::table::{Align, Table, number};

/// The table: one row per flow and case, one per traffic and case, what the spread is, then the expectations.
pub fn table(result: &RunResult) -> String {
    let mut out = String::new();
    let traffics = result.cases.iter().any(|c| !c.traffic.is_empty());
    if !traffics || result.cases.iter().any(|c| !c.flows.is_empty()) {
        out += &flows(result);
    }
    if traffics {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &traffic(result);
    }
    out.push('\n');
    out += &spread(result);
    if !result.expectations.is_empty() {
        out.push('\n');
        out += &expectations(result);
    }
    out
}

/// One case per line, each with the names of version, scenario and ground.
pub fn ndjson(result: &RunResult) -> String {
    let mut out = String::new();
    for case in &result.cases {
        let judged: Vec<_> = result
            .expectations
            .iter()
            .filter(|e| e.params == case.params)
            .collect();
        // Maps with string keys and finite numbers only: this cannot fail, nor can writing to a string.
        let case = serde_json::to_string(case).unwrap_or_default();
        let head = format!(
            "{{\"fullpipe\":{},\"scenario\":{},\"ground\":{}",
            json!(result.fullpipe),
            json!(result.scenario),
            json!(result.ground)
        );
        let judged = serde_json::to_string(&judged).unwrap_or_default();
        let body = case
            .strip_prefix('{')
            .and_then(|c| c.strip_suffix('}'))
            .unwrap_or_default();
        let _ = writeln!(out, "{head},{body},\"expectations\":{judged}}}");
    }
    out
}

/// The header and the rows of several results: one row per flow (or traffic) and case. Parameters that a scenario does not have are empty.
pub fn csv(results: &[RunResult]) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in results
        .iter()
        .flat_map(|r| &r.cases)
        .flat_map(|c| &c.params.0)
    {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let several = results
        .iter()
        .flat_map(|r| &r.cases)
        .any(|c| c.seeds.len() > 1);
    let mut flow_metrics: Vec<&str> = names_of(Scope::Flow).collect();
    // Only if there is traffic; names that flows have too are there already.
    if results
        .iter()
        .flat_map(|r| &r.cases)
        .any(|c| !c.traffic.is_empty())
    {
        flow_metrics.extend(names_of(Scope::Traffic).filter(|n| find(Scope::Flow, n).is_none()));
    }
    let case_metrics: Vec<&str> = names_of(Scope::Case).collect();
    let mut head: Vec<String> = ["scenario", "ground", "case"].map(str::to_owned).to_vec();
    head.extend(keys.iter().map(|k| (*k).to_owned()));
    head.extend(["seeds", "flow", "kind", "stack"].map(str::to_owned));
    for metric in flow_metrics.iter().chain(&case_metrics) {
        head.push((*metric).to_owned());
        if several {
            head.extend([format!("{metric}_ci95_low"), format!("{metric}_ci95_high")]);
        }
    }
    let mut out = csv_line(&head);
    for result in results {
        for (index, case) in result.cases.iter().enumerate() {
            let flows = case.flows.iter();
            let flows = flows.map(|f| (&f.name, "flow", &f.stack, &f.metrics));
            let traffic = case.traffic.iter();
            let traffic = traffic.map(|t| (&t.name, t.kind.as_str(), &t.stack, &t.metrics));
            for (name, kind, stack, metrics) in flows.chain(traffic) {
                let mut row = vec![
                    result.scenario.clone(),
                    result.ground.clone(),
                    index.to_string(),
                ];
                row.extend(keys.iter().map(|k| case.params.text(k).unwrap_or_default()));
                row.extend([
                    case.seeds.len().to_string(),
                    name.clone(),
                    kind.to_owned(),
                    stack.clone(),
                ]);
                for metric in &flow_metrics {
                    push_estimate(&mut row, metrics.get(*metric), several);
                }
                for metric in &case_metrics {
                    push_estimate(&mut row, case.metrics.0.get(*metric), several);
                }
                out += &csv_line(&row);
            }
        }
    }
    out
}

fn push_estimate(row: &mut Vec<String>, estimate: Option<&Estimate>, with_interval: bool) {
    let text = |x: Option<f64>| x.map_or(String::new(), |x| x.to_string());
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

/// Parameters of every case as text.
fn params_of(cases: &[CaseResult]) -> Vec<Vec<(String, String)>> {
    let text = |c: &CaseResult| {
        c.params
            .0
            .iter()
            .map(|(k, v)| (k.clone(), scalar_text(v)))
            .collect()
    };
    cases.iter().map(text).collect()
}

/// What stands behind the `±`, so that no number is read as surer than it is.
fn spread(result: &RunResult) -> String {
    let seeds = || result.cases.iter().map(|c| c.seeds.len());
    let (few, many) = (seeds().min().unwrap_or(0), seeds().max().unwrap_or(0));
    let mut out = match (few, many) {
        (_, 0 | 1) => "1 seed: how far another one would be from it is not known\n".to_owned(),
        (a, b) if a == b => format!("mean ± half width of its 95 % interval, over {a} seeds\n"),
        (a, b) => format!("mean ± half width of its 95 % interval, over {a} to {b} seeds\n"),
    };
    if let Some(missed) = result.unsure() {
        out += &format!("{missed}\n");
    }
    if let Some(untrue) = result.untrue() {
        out += &format!("NOT VALID: {untrue}\n");
    }
    out
}

/// Short flows, datagrams and probes: one row per name and case.
fn traffic(result: &RunResult) -> String {
    let all_params = params_of(&result.cases);
    let params = label::varying(&all_params);
    let rows = || {
        let cases = result.cases.iter();
        cases.flat_map(|c| c.traffic.iter().map(move |t| (c, t)))
    };
    let columns: Vec<_> = TRAFFIC
        .iter()
        .filter(|(_, metric)| rows().any(|(_, t)| t.value(metric).is_some()))
        .collect();
    let mut table = Table::new();
    for (_, head) in &params {
        table.column(Align::Left, &[head]);
    }
    table.column(Align::Left, &["traffic"]);
    table.column(Align::Left, &["kind"]);
    for (head, _) in &columns {
        table.column(Align::Right, head);
    }
    for (case, row) in rows() {
        let mut cells: Vec<String> = params
            .iter()
            .map(|(key, _)| case.params.text(key).unwrap_or_default())
            .collect();
        cells.extend([row.name.clone(), row.kind.clone()]);
        cells.extend(columns.iter().map(|(_, metric)| {
            let count = find(Scope::Traffic, metric).is_some_and(|m| m.count);
            estimate_text(of(&row.metrics, metric), if count { 1 } else { 4 })
        }));
        table.row(cells);
    }
    table.text()
}

/// Columns of the table of traffic, each shown if a row has a value.
const TRAFFIC: &[([&str; 2], &str)] = &[
    (["arrivals", ""], "arrivals"),
    (["completed", ""], "completed"),
    (["complete", "mean s"], "completion_time_s.mean"),
    (["complete", "p95 s"], "completion_time_s.p95"),
    (["goodput", "Mbit/s"], "goodput_mbps"),
    (["sent", "Mbit/s"], "sent_mbps"),
    (["received", "Mbit/s"], "received_mbps"),
    (["delay mean", "ms"], "delay_ms.mean"),
    (["delay p95", "ms"], "delay_ms.p95"),
    (["rtt mean", "ms"], "rtt_ms.mean"),
    (["rtt p95", "ms"], "rtt_ms.p95"),
    (["inflation", ""], "rtt_inflation"),
    (["loss rate", ""], "loss_rate"),
];

/// One column of the table of flows.
struct Column {
    head: [&'static str; 2],
    digits: usize,
    value: fn(&CaseResult, &FlowResult) -> Estimate,
    /// Left out where no row has a value.
    optional: bool,
}

const COLUMNS: &[Column] = &[
    column(["goodput", "Mbit/s"], 4, |_, f| {
        of(&f.metrics, "goodput_mbps")
    }),
    column(["rtt mean", "ms"], 4, |_, f| of(&f.metrics, "rtt_ms.mean")),
    column(["rtt p95", "ms"], 4, |_, f| of(&f.metrics, "rtt_ms.p95")),
    column(["cwnd mean", "segments"], 4, |_, f| {
        of(&f.metrics, "cwnd_segments.mean")
    }),
    column(["cwnd max", "segments"], 4, |_, f| {
        of(&f.metrics, "cwnd_segments.max")
    }),
    column(["losses", "events"], 1, |_, f| {
        of(&f.metrics, "loss_events")
    }),
    column(["rexmit", "segments"], 1, |_, f| {
        of(&f.metrics, "retransmits")
    }),
    column(["timeouts", ""], 1, |_, f| of(&f.metrics, "timeouts")),
    optional(["recovery", "s"], 3, |_, f| {
        of(&f.metrics, "recovery_time_s")
    }),
    optional(["complete", "s"], 4, |_, f| {
        of(&f.metrics, "completion_time_s")
    }),
    optional(["jain", ""], 4, |c, _| {
        if c.flows.len() > 1 {
            of(&c.metrics.0, "jain")
        } else {
            Estimate::default()
        }
    }),
];

const fn column(
    head: [&'static str; 2],
    digits: usize,
    value: fn(&CaseResult, &FlowResult) -> Estimate,
) -> Column {
    Column {
        head,
        digits,
        value,
        optional: false,
    }
}

const fn optional(
    head: [&'static str; 2],
    digits: usize,
    value: fn(&CaseResult, &FlowResult) -> Estimate,
) -> Column {
    Column {
        head,
        digits,
        value,
        optional: true,
    }
}

fn of(estimates: &Estimates, metric: &str) -> Estimate {
    estimates.get(metric).copied().unwrap_or_default()
}

fn flows(result: &RunResult) -> String {
    let cases = &result.cases;
    let all_params = params_of(cases);
    let params = label::varying(&all_params);
    let rows: Vec<(&CaseResult, &FlowResult)> = cases
        .iter()
        .flat_map(|c| c.flows.iter().map(move |f| (c, f)))
        .collect();
    let first_name = rows.first().map(|(_, f)| f.name.as_str());
    let named = rows
        .iter()
        .any(|(_, f)| Some(f.name.as_str()) != first_name);
    let shown_by_param = |(case, flow): &(&CaseResult, &FlowResult)| {
        let key = format!("flow.{}.stack", flow.name);
        let written = case
            .params
            .text(&key)
            .filter(|_| params.iter().any(|(k, _)| *k == key));
        // The scenario may spell a stack in another way than the registry.
        written.is_some_and(|s| StackSpec::parse(&s).is_ok_and(|s| s.to_string() == flow.stack))
    };
    let with_stack = !rows.iter().all(shown_by_param);
    let columns: Vec<&Column> = COLUMNS
        .iter()
        .filter(|column| {
            !column.optional
                || rows
                    .iter()
                    .any(|(c, f)| (column.value)(c, f).mean.is_some())
        })
        .collect();
    let mut table = Table::new();
    for (_, head) in &params {
        table.column(Align::Left, &[head]);
    }
    if named {
        table.column(Align::Left, &["flow"]);
    }
    if with_stack {
        table.column(Align::Left, &["stack"]);
    }
    for column in &columns {
        table.column(Align::Right, &column.head);
    }
    for (case, flow) in rows {
        let mut row: Vec<String> = params
            .iter()
            .map(|(key, _)| case.params.text(key).unwrap_or_default())
            .collect();
        if named {
            row.push(flow.name.clone());
        }
        if with_stack {
            row.push(flow.stack.clone());
        }
        row.extend(
            columns
                .iter()
                .map(|c| estimate_text((c.value)(case, flow), c.digits)),
        );
        table.row(row);
    }
    table.text()
}

/// `85.2`, `85.2 ±1.3`, or `-` where it is undefined.
fn estimate_text(estimate: Estimate, digits: usize) -> String {
    let Some(mean) = estimate.mean else {
        return "-".to_owned();
    };
    // Counts of one run have no decimals; their means do.
    let text = if digits == 1 {
        count_text(mean)
    } else {
        number(mean, digits)
    };
    match estimate.ci95 {
        Some([low, high]) => format!("{text} ±{}", number((high - low) / 2.0, 2)),
        None => text,
    }
}

fn count_text(x: f64) -> String {
    let digits = (x.abs().max(1.0).log10().floor() as usize) + if x.fract() == 0.0 { 1 } else { 2 };
    number(x, digits)
}

fn expectations(result: &RunResult) -> String {
    let mut table = Table::new();
    for (align, head) in [
        (Align::Left, "expectation"),
        (Align::Left, "metric"),
        (Align::Left, "case"),
        (Align::Right, "observed"),
        (Align::Left, "accepted"),
        (Align::Left, "source"),
    ] {
        table.column(align, &[head]);
    }
    let flows_per_case = result
        .cases
        .iter()
        .map(|c| c.flows.len())
        .max()
        .unwrap_or(0);
    let labels = label::labels(&params_of(&result.cases));
    for e in &result.expectations {
        let case = result.cases.iter().position(|c| c.params == e.params);
        let label = case.map_or(String::new(), |i| labels[i].clone());
        let of = e
            .flow
            .as_ref()
            .filter(|_| flows_per_case > 1)
            .or(e.link.as_ref());
        let metric = of.map_or(e.metric.clone(), |of| format!("{} of {of}", e.metric));
        let pass = if e.pass { "pass" } else { "FAIL" };
        let source = if e.pass {
            cut(&e.source)
        } else {
            e.source.clone()
        };
        let observed = match e.observed {
            Some(mean) => estimate_text(
                Estimate {
                    mean: Some(mean),
                    ci95: e.observed_ci95,
                    undefined: 0,
                },
                observed_digits(e, mean),
            ),
            None => "undefined".to_owned(),
        };
        table.row(vec![
            pass.to_owned(),
            metric,
            label,
            observed,
            bound_text(e.bound),
            source,
        ]);
    }
    let failed = result.expectations.iter().filter(|e| !e.pass).count();
    let all = result.expectations.len();
    let mut out = table.text();
    // Writing to a string cannot fail.
    let _ = match (failed, all) {
        (0, 1) => writeln!(out, "\nthe expectation passed"),
        (0, _) => writeln!(out, "\nall {all} expectations passed"),
        _ => writeln!(out, "\n{failed} of {all} expectations FAILED"),
    };
    out
}

/// Enough digits to see on which side of the bound a value lies.
fn observed_digits(e: &ExpectationResult, observed: f64) -> usize {
    if find(Scope::Flow, &e.metric).is_some_and(|m| m.count) {
        return 1;
    }
    let apart = e
        .bound
        .iter()
        .filter(|b| b.is_finite())
        .map(|b| (b - observed).abs());
    let nearest = apart
        .fold(f64::INFINITY, f64::min)
        .max(observed.abs() * 1e-9);
    let relative = (observed.abs() / nearest).max(1.0).log10().ceil();
    (relative as usize + 1).clamp(4, 10)
}

fn bound_text([low, high]: [f64; 2]) -> String {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => format!("{} to {}", plain(low), plain(high)),
        (true, false) => format!("at least {}", plain(low)),
        (false, true) => format!("at most {}", plain(high)),
        (false, false) => "anything".to_owned(),
    }
}

/// A number as it was written, without the last bits of its binary form.
fn plain(x: f64) -> String {
    let rounded: f64 = format!("{x:.11e}").parse().unwrap_or(x);
    rounded.to_string()
}

/// A long source is cut; the other formats have it whole.
fn cut(text: &str) -> String {
    match text.char_indices().nth(SOURCE_WIDTH) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

const SOURCE_WIDTH: usize = 60;

#[cfg(test)]
mod tests {
    use fullpipe_suite::result::{CaseMetrics, Params};

    use super::*;

    fn case(
        params: &[(&str, serde_json::Value)],
        seeds: u64,
        flows: &[(&str, &str, f64)],
    ) -> CaseResult {
        let flow = |(name, stack, x): &(&str, &str, f64)| {
            let estimate = |x: f64| Estimate {
                mean: Some(x),
                ci95: (seeds > 1).then_some([x * 0.9, x * 1.1]),
                undefined: 0,
            };
            let metrics = [
                ("goodput_mbps", estimate(*x)),
                ("rtt_ms.mean", estimate(93.14)),
                ("retransmits", estimate(1234.0)),
                ("timeouts", estimate(0.0)),
                ("recovery_time_s", Estimate::default()),
            ];
            FlowResult {
                name: (*name).to_owned(),
                stack: (*stack).to_owned(),
                metrics: metrics.map(|(k, v)| (k.to_owned(), v)).into(),
            }
        };
        CaseResult {
            params: Params(
                params
                    .iter()
                    .map(|(k, v)| ((*k).to_owned(), v.clone()))
                    .collect(),
            ),
            seeds: (1..=seeds).collect(),
            flows: flows.iter().map(flow).collect(),
            traffic: vec![],
            links: Vec::new(),
            metrics: CaseMetrics::default(),
            precision: None,
            fidelity: None,
            simulated_s: 60.0,
            delivered_packets: 1,
            wall_s: None,
            packets_per_s: None,
        }
    }

    fn result(cases: Vec<CaseResult>) -> RunResult {
        let judged = |observed: Option<f64>, bound: [f64; 2], pass| ExpectationResult {
            name: "n".into(),
            params: cases[0].params.clone(),
            observed,
            observed_ci95: None,
            bound,
            pass,
            metric: "goodput_mbps".into(),
            flow: Some("main".into()),
            link: None,
            source: "Net100 2003: 85".into(),
        };
        RunResult {
            fullpipe: "0.1.0".into(),
            scenario: "demo, \"quoted\"".into(),
            ground: "sim".into(),
            quick: false,
            expectations: vec![
                judged(Some(85.25), [80.0, 90.0], true),
                judged(Some(0.329_879), [0.329_88, f64::INFINITY], false),
                judged(None, [f64::NEG_INFINITY, 1.0], false),
            ],
            cases,
        }
    }

    fn two_cases(seeds: u64) -> RunResult {
        let stack = |s: &str| [("flow.main.stack", json!(s)), ("path.mtu", json!(1500))];
        result(vec![
            case(&stack("reno"), seeds, &[("main", "reno", 85.25)]),
            case(&stack("highspeed"), seeds, &[("main", "highspeed", 1290.0)]),
        ])
    }

    #[test]
    fn the_table_of_one_seed() {
        insta::assert_snapshot!(table(&two_cases(1)));
    }

    #[test]
    fn the_table_of_several_seeds_and_flows() {
        let flows = [("main", "reno", 85.25), ("other", "cubic", 12.5)];
        insta::assert_snapshot!(table(&result(vec![case(&[], 5, &flows)])));
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
}
