//! The table of links: one row per link and case.

use fullpipe_metrics::Metric;
use fullpipe_results::label;
use fullpipe_results::result::{LinkResult, RunResult};

use super::column::{Column, Row, optional, rare};
use super::{column, params_of};
use crate::table::Table;

/// With the metrics that are asked for, or without any with those that are usual. Links at which
/// nothing happens are left out where there are others.
pub(super) fn table(result: &RunResult, metrics: &[&'static Metric]) -> Table {
    let params = params_of(&result.cases);
    let all = || result.cases.iter().flat_map(|case| &case.links);
    let idle = all().all(LinkResult::only_delays);
    let mut rows = Vec::new();
    for (case, of) in result.cases.iter().zip(&params) {
        let shown = case.links.iter().filter(|link| idle || !link.only_delays());
        rows.extend(shown.map(|link| Row {
            case,
            of,
            names: vec![link.name.clone()],
            metrics: &link.metrics,
        }));
    }
    column::table(&label::varying(&params), &["link"], rows, COLUMNS, metrics)
}

const COLUMNS: &[Column] = &[
    optional(Metric::link("utilization")),
    optional(Metric::link("queueing_delay_ms.mean")),
    optional(Metric::link("queueing_delay_ms.p95")),
    optional(Metric::link("queue_packets.mean")),
    optional(Metric::link("queue_packets.max")),
    optional(Metric::link("drops")),
    rare(Metric::link("marks")),
    optional(Metric::link("drop_rate")),
];

#[cfg(test)]
mod tests {
    use fullpipe_results::result::{Estimate, Estimates};

    use super::super::testing::two_cases;
    use super::*;

    #[test]
    fn links_at_which_nothing_happens_are_left_out() {
        let link = |name: &str, used: f64| {
            let of = |metric: &str, mean: f64| {
                let estimate = Estimate {
                    mean: Some(mean),
                    ..Estimate::default()
                };
                (metric.to_owned(), estimate)
            };
            let rest = ["drops", "marks", "queue_packets.max"].map(|metric| of(metric, 0.0));
            let metrics = rest.into_iter().chain([of("utilization", used)]);
            LinkResult {
                name: name.to_owned(),
                metrics: metrics.collect::<Estimates>(),
            }
        };
        let mut found = two_cases(1);
        for case in &mut found.cases {
            case.links = vec![link("bottleneck", 0.5), link("return", 0.0)];
        }
        insta::assert_snapshot!(table(&found, &[]).text());
        found
            .cases
            .iter_mut()
            .for_each(|case| drop(case.links.remove(0)));
        assert!(table(&found, &[]).text().contains("return"));
    }
}
