//! A result as rows of comma-separated values.

use fullpipe_metrics::{Scope, find, names_of};
use fullpipe_results::result::{Estimate, RunResult};

/// The header and the rows of several results: one row per flow (or traffic) and case. Parameters
/// that a scenario does not have are empty.
pub fn csv(results: &[RunResult]) -> String {
    let cases = || results.iter().flat_map(|r| &r.cases);
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in cases().flat_map(|c| &c.params.0) {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let several = cases().any(|c| c.seeds.len() > 1);
    let mut flow_metrics: Vec<&str> = names_of(Scope::Flow).collect();
    // Only if there is traffic; names that flows have too are there already.
    if cases().any(|c| !c.traffic.is_empty()) {
        flow_metrics.extend(names_of(Scope::Traffic).filter(|n| find(Scope::Flow, n).is_none()));
    }
    let case_metrics: Vec<&str> = names_of(Scope::Case).collect();
    let partial = cases().any(|c| c.partial.is_some());
    let mut head: Vec<String> = ["scenario", "ground", "case"].map(str::to_owned).to_vec();
    head.extend(keys.iter().map(|k| (*k).to_owned()));
    head.extend(["seeds", "flow", "kind", "stack"].map(str::to_owned));
    for metric in flow_metrics.iter().chain(&case_metrics) {
        head.push((*metric).to_owned());
        if several {
            head.extend([format!("{metric}_ci95_low"), format!("{metric}_ci95_high")]);
        }
    }
    if partial {
        head.push("partial".to_owned());
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
                if partial {
                    row.push(case.partial.clone().unwrap_or_default());
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

#[cfg(test)]
mod tests {
    use super::super::testing::two_cases;
    use super::*;

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
