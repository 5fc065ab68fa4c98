//! From a stored result to what stands in a picture: curves, events and what the path holds.

use std::collections::HashMap;

use fullpipe_cc::{Kind, StackSpec};

use super::draw::thousands;
use super::{Curve, Figure, Level, LevelKind, Mark, MarkKind};
use fullpipe_results::store::{ResultDir, SeriesKind, StoreError, Table};
use fullpipe_scenario::{Case, FlowGroup, Scenario};

impl Figure {
    /// The picture of one case with the first seed, from its stored series; `None` if there are
    /// none. `texts`: its parameters, as those of all cases are told apart.
    ///
    /// # Errors
    /// If the series cannot be read.
    pub(super) fn of(
        scenario: &Scenario,
        result: &ResultDir,
        case: usize,
        texts: &[(String, String)],
    ) -> Result<Option<Figure>, StoreError> {
        let (Some(case), Some(&seed)) = (scenario.cases.get(case), scenario.seeds.first()) else {
            return Ok(None);
        };
        let Some(series) = result.series(case.index, seed, SeriesKind::Flows)? else {
            return Ok(None);
        };
        let events = result
            .series(case.index, seed, SeriesKind::Events)?
            .unwrap_or_default();
        let peer = result.manifest().peer.as_deref();
        let spec = case.run_spec(seed);
        let (series, events) = (ByFlow::new(&series), ByFlow::new(&events));
        let mut curves = Vec::new();
        for (group, flow) in case.flows.iter().enumerate() {
            for member in flow.members.clone() {
                let name = match flow.members.len() {
                    1 => format!("{}: {}", flow.name, flow.stack),
                    n => format!("{}: {}, {n} streams", flow.name, flow.stack),
                };
                let of = &spec.flows[member].name;
                let curve = Curve::of(name, group, of, &series, &events);
                curves.push(curve.of_stack(&flow.stack));
            }
        }
        Ok(Some(Figure {
            title: scenario.name.clone(),
            subtitle: subtitle(scenario, case, texts, peer),
            duration: drawn_until(&curves, case.duration.as_secs_f64()),
            warmup: case.warmup.as_secs_f64(),
            window_unit: window_unit(&case.flows),
            mss: same_mss(&case.flows),
            curves,
            levels: levels(case, seed, peer),
            ..Figure::default()
        }))
    }
}

/// Where the axis of time ends: with the run, or a little after the last row of the curves where
/// all of them end before it.
pub(super) fn drawn_until(curves: &[Curve], end: f64) -> f64 {
    let last = curves.iter().filter_map(|curve| curve.time.last());
    match last.fold(0.0, |last: f64, t| last.max(*t)) {
        0.0 => end,
        last => end.min(1.05 * last),
    }
}

/// True unless a stack is one whose law has no threshold.
pub(crate) fn has_threshold(stack: &str) -> bool {
    !StackSpec::parse(stack).is_ok_and(|stack| stack.kind() == Kind::Model)
}

/// A table, and which of its rows are whose: looked through once, however many flows there are.
pub(super) struct ByFlow<'a> {
    table: &'a Table,
    rows: HashMap<&'a str, Vec<usize>>,
}

impl Curve {
    /// Without a threshold where the law of its stack has none.
    pub(super) fn of_stack(mut self, stack: &str) -> Curve {
        if !has_threshold(stack) {
            self.ssthresh.fill(f64::INFINITY);
        }
        self
    }
}

impl<'a> ByFlow<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        let mut rows: HashMap<&str, Vec<usize>> = HashMap::new();
        for (row, flow) in table.text("flow").into_iter().flatten().enumerate() {
            rows.entry(flow).or_default().push(row);
        }
        Self { table, rows }
    }

    /// The rows of a flow, in the table's order.
    fn rows(&self, flow: &str) -> &[usize] {
        self.rows.get(flow).map_or(&[], Vec::as_slice)
    }

    /// A column's values in the rows of a flow; nothing there stands for infinity.
    fn floats(&self, flow: &str, column: &str) -> Vec<f64> {
        let Some(values) = self.table.float(column) else {
            return Vec::new();
        };
        let values = self.rows(flow).iter().filter_map(|row| values.get(*row));
        values.map(|v| v.unwrap_or(f64::INFINITY)).collect()
    }
}

impl Curve {
    /// The curve of the flow `flow`, from tables of a result.
    pub(super) fn of(
        name: String,
        group: usize,
        flow: &str,
        series: &ByFlow<'_>,
        events: &ByFlow<'_>,
    ) -> Self {
        let mut curve = Curve {
            name,
            group,
            ..Curve::default()
        };
        curve.time = series.floats(flow, "time_s");
        curve.window = series.floats(flow, "cwnd");
        curve.low = series.floats(flow, "cwnd_min");
        curve.high = series.floats(flow, "cwnd_max");
        curve.ssthresh = series.floats(flow, "ssthresh");
        let kinds = events.table.text("kind").unwrap_or_default();
        let kinds = events.rows(flow).iter().filter_map(|row| kinds.get(*row));
        let times = events.floats(flow, "time_s");
        let windows = events.floats(flow, "before");
        for ((kind, time), window) in kinds.zip(times).zip(windows) {
            let kind = match kind.as_str() {
                "loss" | "mark" | "local-stall" => MarkKind::Congestion,
                "timeout" => MarkKind::Timeout,
                "start-up-exit" => MarkKind::StartUpExit,
                "change" => MarkKind::Change,
                _ => continue,
            };
            curve.marks.push(Mark { time, window, kind });
        }
        curve
    }
}

/// The case's parameters, its path, and the seed where there are several.
fn subtitle(
    scenario: &Scenario,
    case: &Case,
    texts: &[(String, String)],
    peer: Option<&str>,
) -> String {
    let own = match case.json_params().any(|(_, value)| value.is_object()) {
        false => case.params(),
        true => texts.to_vec(),
    };
    let mut parts: Vec<String> = own.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    if let Some(peer) = peer {
        parts.push(as_it_is(peer));
    } else if let [flow] = case.flows.as_slice() {
        parts.push(format!(
            "path {}, {} round trip",
            flow.capacity, flow.base_rtt
        ));
    }
    if let [seed, _, ..] = scenario.seeds.as_slice() {
        parts.push(format!("seed {seed}, one of {}", scenario.seeds.len()));
    }
    parts.join("; ")
}

/// Whose the path was, where it was not the scenario's.
pub(super) fn as_it_is(peer: &str) -> String {
    format!("the network to {peer}, as it is")
}

fn window_unit(flows: &[FlowGroup]) -> String {
    match same_mss(flows) {
        Some(mss) => format!("segments of {} B", thousands(mss)),
        None => "segments".to_owned(),
    }
}

pub(super) fn same_mss(flows: &[FlowGroup]) -> Option<f64> {
    let first = flows.first()?.mss;
    let same = flows.iter().all(|f| f.mss == first);
    same.then(|| f64::from(first))
}

/// What the path holds, where one flow has it to itself; of a path to another host nobody knows.
pub(super) fn levels(case: &Case, seed: u64, peer: Option<&str>) -> Vec<Level> {
    let [flow] = case.flows.as_slice() else {
        return Vec::new();
    };
    if flow.members.len() != 1 {
        return Vec::new();
    }
    let spec = case.run_spec(seed);
    let bdp = flow.bdp();
    let mut levels = vec![Level {
        window: bdp,
        kind: LevelKind::Bdp,
        label: format!("BDP {}", thousands(bdp.round())),
    }];
    let forward = &spec.flows[flow.members.start].forward;
    let bottleneck = forward
        .iter()
        .filter_map(|&l| spec.links.get(l))
        .find(|l| l.rate == Some(flow.capacity));
    let buffer = bottleneck.and_then(|l| match l.buffer {
        fullpipe_run::Buffer::Packets(n) => Some(n as f64),
        fullpipe_run::Buffer::Bytes(n) => Some(n as f64 / f64::from(flow.packet)),
        _ => None,
    });
    if let Some(buffer) = buffer {
        let full = bdp + buffer;
        levels.push(Level {
            window: full,
            kind: LevelKind::WithBuffer,
            label: format!("BDP + buffer {}", thousands(full.round())),
        });
    }
    if let Some(cap) = flow.window_cap {
        levels.push(Level {
            window: cap,
            kind: LevelKind::Cap,
            label: format!("cap {}", thousands(cap.round())),
        });
    }
    levels.retain(|level| peer.is_none() || level.kind == LevelKind::Cap);
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_results::store::Column;

    #[test]
    fn a_curve_takes_its_own_rows() {
        let text = |v: &[&str]| Column::Text(v.iter().map(|s| (*s).to_owned()).collect());
        let mut series = Table::default();
        series.push("flow", text(&["a", "a", "b"]));
        for (name, values) in [
            ("time_s", [Some(0.0), Some(1.0), Some(0.5)]),
            ("cwnd", [Some(2.0), Some(4.0), Some(9.0)]),
            ("cwnd_min", [Some(2.0), Some(3.0), Some(9.0)]),
            ("cwnd_max", [Some(2.0), Some(5.0), Some(9.0)]),
            ("ssthresh", [None, Some(3.0), None]),
        ] {
            series.push(name, Column::Float(values.to_vec()));
        }
        let mut events = Table::default();
        events.push("flow", text(&["b", "a", "a", "a"]));
        events.push(
            "time_s",
            Column::Float(vec![Some(0.1), Some(0.6), Some(0.7), Some(0.8)]),
        );
        events.push("kind", text(&["loss", "loss", "undo", "timeout"]));
        events.push(
            "before",
            Column::Float(vec![Some(9.0), Some(5.0), Some(5.0), Some(4.0)]),
        );
        let (series, events) = (ByFlow::new(&series), ByFlow::new(&events));
        let curve = Curve::of("x".into(), 0, "a", &series, &events);
        let of = |stack: &str| curve.clone().of_stack(stack).ssthresh;
        assert_eq!(of("cubic"), curve.ssthresh);
        assert_eq!(of("bbr"), [f64::INFINITY; 2], "it has no threshold");
        let until = |end: f64| drawn_until(&[curve.clone(), Curve::default()], end);
        assert_eq!((until(10.0), until(1.01)), (1.05, 1.01));
        assert_eq!(drawn_until(&[], 10.0), 10.0);
        assert_eq!(curve.window, [2.0, 4.0]);
        assert_eq!(curve.high, [2.0, 5.0]);
        assert_eq!(curve.ssthresh, [f64::INFINITY, 3.0]);
        let mark = |time, window, kind| Mark { time, window, kind };
        assert_eq!(
            curve.marks,
            [
                mark(0.6, 5.0, MarkKind::Congestion),
                mark(0.8, 4.0, MarkKind::Timeout)
            ]
        );
    }
}
