//! The report: one HTML file with the table of cells and, behind each, both windows.
//!
//! The file needs nothing but a browser: data, style and script are inside. Both windows are shown
//! at the same moments, every 0.1 s, as the references keep them; the simulator's finer curve is
//! sampled there, not smoothed.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::causes::Causes;
use crate::cell::{self, BUFFERS, Cell, Kind, LOSSES, PATHS};
use crate::compare::{Comparison, Deviation, Fraction, Metric, Verdict};
use crate::measure::{CURVE_MS, Curve};
use crate::reference::{FlowResult, Run};
use crate::wording;

/// Everything that a report shows.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a> {
    /// The cells, compared or not.
    pub cells: &'a [Cell],
    /// Linux.
    pub oracle: &'a [Run],
    /// The simulator.
    pub sim: &'a [Run],
    /// The judgement of both.
    pub comparison: &'a Comparison,
    /// Explanations of cells outside their limits.
    pub causes: &'a Causes,
}

#[derive(Serialize)]
struct Data {
    kernel: String,
    metrics: Vec<MetricWords>,
    modules: Vec<&'static str>,
    paths: Vec<[u32; 2]>,
    buffers: Vec<f64>,
    losses: Vec<f64>,
    summary: Vec<Line>,
    causes: Vec<CauseWords>,
    unexplained: usize,
    missing: Vec<String>,
    cells: Vec<CellData>,
}

#[derive(Serialize)]
struct MetricWords {
    key: &'static str,
    name: &'static str,
    unit: &'static str,
}

/// Cells that keep a limit; without a metric: that keep all.
#[derive(Serialize)]
struct Line {
    kind: Kind,
    metric: Option<&'static str>,
    limit: String,
    inside: usize,
    of: usize,
}

#[derive(Serialize)]
struct CauseWords {
    cause: String,
    switch: Option<String>,
}

#[derive(Serialize)]
struct CellData {
    id: String,
    kernel: &'static str,
    kind: Kind,
    flows: Vec<&'static str>,
    path: [u32; 2],
    buffer: f64,
    packets: u64,
    loss: f64,
    stagger: f64,
    repeats: u32,
    end: f64,
    inside: bool,
    unexplained: bool,
    rmse: Vec<f64>,
    deviations: Vec<Value>,
    command: String,
    simulate: String,
    curves: Vec<[Value; 2]>,
    /// First loss of each flow, s: Linux, simulator.
    first: Vec<[Option<f64>; 2]>,
    goodput: Vec<[f64; 2]>,
}

/// The report as HTML.
pub fn html(results: &Results<'_>) -> String {
    let data = serde_json::to_string(&data(results)).unwrap_or_else(|e| {
        // Strings, numbers and lists of them always have a JSON form.
        unreachable!("the report's data: {e}")
    });
    // A `</script>` in a text would end the element.
    let data = data.replace("</", "<\\/");
    TEMPLATE
        .replace("/*STYLE*/", STYLE)
        .replace("/*SCRIPT*/", SCRIPT)
        .replace("/*DATA*/", &data)
}

fn data(r: &Results<'_>) -> Data {
    let outside = r.causes.explain(r.comparison);
    let mut causes: BTreeMap<(&str, Metric), Vec<usize>> = BTreeMap::new();
    for o in &outside {
        causes.insert((&o.verdict.cell, o.deviation.metric), o.causes.clone());
    }
    let cell = |c: &Cell| {
        let id = c.id();
        let verdict = r.comparison.verdicts.iter().find(|v| v.cell == id)?;
        let first = |runs: &'_ [Run]| runs.iter().position(|run| run.cell == id);
        let (o, s) = (&r.oracle[first(r.oracle)?], &r.sim[first(r.sim)?]);
        Some(cell_data(c, verdict, o, s, &causes))
    };
    let kernel = r.oracle.iter().map(|run| run.kernel.as_str()).max();
    Data {
        kernel: kernel.unwrap_or_default().to_owned(),
        metrics: wording::METRICS
            .iter()
            .map(|m| MetricWords {
                key: wording::key(*m),
                name: wording::name(*m),
                unit: wording::unit(*m),
            })
            .collect(),
        modules: cell::laws(),
        paths: PATHS.iter().map(|p| [p.rate_mbit, p.rtt_ms]).collect(),
        buffers: BUFFERS.to_vec(),
        losses: LOSSES.to_vec(),
        summary: summary(r.comparison),
        causes: r
            .causes
            .0
            .iter()
            .map(|c| CauseWords {
                cause: c.cause.clone(),
                switch: c.switch.clone(),
            })
            .collect(),
        unexplained: outside.iter().filter(|o| o.causes.is_empty()).count(),
        missing: r.comparison.missing.clone(),
        cells: r.cells.iter().filter_map(cell).collect(),
    }
}

fn summary(c: &Comparison) -> Vec<Line> {
    let line = |kind, metric: Option<Metric>, f: Fraction| Line {
        kind,
        metric: metric.map(wording::key),
        limit: metric
            .and_then(|m| limit_of(c, kind, m))
            .unwrap_or_default(),
        inside: f.inside,
        of: f.of,
    };
    let mut lines: Vec<Line> = c
        .cells
        .iter()
        .map(|(kind, f)| line(*kind, None, *f))
        .collect();
    lines.extend(c.metrics.iter().map(|(k, m, f)| line(*k, Some(*m), *f)));
    lines
}

/// The limit that cells of a kind have for a metric, in words.
pub fn limit_of(c: &Comparison, kind: Kind, metric: Metric) -> Option<String> {
    c.verdicts
        .iter()
        .filter(|v| v.kind == kind)
        .flat_map(|v| &v.deviations)
        .find(|d| d.metric == metric && d.limit.is_some())
        .and_then(|d| d.limit)
        .map(|l| wording::limit(metric, l))
}

fn cell_data(
    cell: &Cell,
    verdict: &Verdict,
    oracle: &Run,
    sim: &Run,
    causes: &BTreeMap<(&str, Metric), Vec<usize>>,
) -> CellData {
    let of = |d: &Deviation| causes.get(&(verdict.cell.as_str(), d.metric));
    let flows = || oracle.flows.iter().zip(&sim.flows);
    let curve = |f: &FlowResult| f.curve.as_ref().map_or(Value::Null, curve_data);
    CellData {
        id: verdict.cell.clone(),
        kernel: cell.kernel.name(),
        kind: cell.kind,
        flows: cell.flows.clone(),
        path: [cell.path.rate_mbit, cell.path.rtt_ms],
        buffer: cell.buffer_bdp,
        packets: cell.buffer(),
        loss: cell.loss,
        stagger: f64::from(cell.stagger_ms) / 1e3,
        repeats: cell.repeats,
        end: cell.end_ms() as f64 / 1e3,
        inside: verdict.inside,
        unexplained: verdict
            .deviations
            .iter()
            .any(|d| !d.inside && of(d).is_none_or(Vec::is_empty)),
        rmse: verdict.rmse.iter().map(|v| short(*v)).collect(),
        deviations: verdict
            .deviations
            .iter()
            .map(|d| deviation_data(d, of(d).filter(|_| !d.inside)))
            .collect(),
        command: oracle.command.clone(),
        simulate: sim.command.clone(),
        curves: flows().map(|(o, s)| [curve(o), curve(s)]).collect(),
        first: flows()
            .map(|(o, s)| [o.measure.first_loss_s, s.measure.first_loss_s])
            .collect(),
        goodput: flows()
            .map(|(o, s)| [short(o.measure.goodput_mbit), short(s.measure.goodput_mbit)])
            .collect(),
    }
}

/// Numbers for marks, words for people, both made here so that report and page cannot differ.
fn deviation_data(d: &Deviation, causes: Option<&Vec<usize>>) -> Value {
    let load = wording::load(d);
    json!({
        "m": wording::key(d.metric),
        "f": d.flow,
        "o": d.oracle.map(short),
        "s": d.sim.map(short),
        "ot": wording::value(d.metric, d.oracle),
        "st": wording::value(d.metric, d.sim),
        "size": wording::size(d),
        "half": d.half_widths.map(|(a, b)| [short(a), short(b)]),
        "limit": d.limit.map(|l| wording::limit(d.metric, l)),
        // JSON has no infinity: null is a limit that no number can keep.
        "load": load.filter(|l| l.is_finite()).map(short),
        "inside": d.inside,
        "causes": causes,
    })
}

/// Six digits: what a picture or a tooltip can use.
fn short(v: f64) -> f64 {
    if v == 0.0 || !v.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powi(5 - v.abs().log10().floor() as i32);
    (v * scale).round() / scale
}

/// First moment in units of 0.1 s, and the values on that grid as text.
fn curve_data(curve: &Curve) -> Value {
    let sampled = sampled(curve);
    json!({ "t": sampled.start_ms / CURVE_MS, "w": encode(&sampled.cwnd) })
}

/// A curve at the moments of the references.
pub fn sampled(curve: &Curve) -> Curve {
    let start_ms = curve.start_ms.div_ceil(CURVE_MS) * CURVE_MS;
    let at = |k: u64| curve.at((start_ms + k * CURVE_MS) as f64);
    Curve {
        start_ms,
        step_ms: CURVE_MS,
        cwnd: (0..).map_while(at).collect(),
    }
}

/// Differences of the rounded values, each zig-zagged (0, -1, 1, -2, ...) and written with 45
/// digits, lowest first; all but the last digit of a number come from a second set of 45
/// characters. No character needs an escape in JSON or HTML.
fn encode(values: &[f64]) -> String {
    let mut text = String::with_capacity(values.len());
    let mut last = 0i64;
    for value in values {
        let value = value.round() as i64;
        let step = value - last;
        last = value;
        let mut n = ((step << 1) ^ (step >> 63)) as u64;
        while n >= BASE {
            text.push(char::from(ALPHABET[(BASE + n % BASE) as usize]));
            n /= BASE;
        }
        text.push(char::from(ALPHABET[n as usize]));
    }
    text
}

const BASE: u64 = 45;
/// Printable ASCII from `#` without `&`, `<` and the backslash; the script has the same.
const ALPHABET: &[u8; 90] =
    b"#$%'()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~!";

const TEMPLATE: &str = include_str!("../assets/report.html");
const STYLE: &str = include_str!("../assets/report.css");
const SCRIPT: &str = include_str!("../assets/report.js");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell;
    use crate::compare::compare;
    use crate::measure::Measure;

    fn decode(text: &str) -> Vec<i64> {
        let digit = |c: u8| ALPHABET.iter().position(|a| *a == c).unwrap() as u64;
        let (mut values, mut last, mut n, mut place) = (Vec::new(), 0, 0, 1);
        for d in text.bytes().map(digit) {
            n += d % BASE * place;
            place *= BASE;
            if d < BASE {
                last += (n >> 1) as i64 ^ -((n & 1) as i64);
                values.push(last);
                (n, place) = (0, 1);
            }
        }
        values
    }

    #[test]
    fn curves_come_back() {
        let values = [10.0, 10.0, 9.0, 11.0, 31.0, 5000.0, 2.0, 33.0, 10.0, 2035.0];
        let expected: Vec<i64> = values.iter().map(|v| *v as i64).collect();
        assert_eq!(decode(&encode(&values)), expected);
        // Small steps take one character each.
        assert_eq!(encode(&[10.0, 12.0, 12.0, 7.0]).len(), 4);
    }

    #[test]
    fn the_alphabet_is_safe_in_html() {
        for c in *b"\"\\<&" {
            assert!(!ALPHABET.contains(&c));
        }
        let script = std::str::from_utf8(ALPHABET).unwrap();
        assert!(SCRIPT.contains(script), "report.js has another alphabet");
    }

    #[test]
    fn the_simulator_s_curve_is_taken_at_the_moments_of_the_references() {
        let fine = Curve {
            start_ms: 40,
            step_ms: 10,
            cwnd: (4..=31).map(f64::from).collect(),
        };
        let coarse = sampled(&fine);
        assert_eq!(
            (coarse.start_ms, coarse.cwnd),
            (100, vec![10.0, 20.0, 30.0])
        );
    }

    fn run(cell: &Cell, goodput_mbit: f64) -> Run {
        let measure = Measure {
            goodput_mbit,
            cwnd_mean: 40.0,
            ..Measure::default()
        };
        Run {
            cell: cell.id(),
            repeat: 0,
            kernel: "6.1.0".into(),
            hz: 250,
            command: "run.sh </script> BW=20".into(),
            counters: Default::default(),
            flows: vec![FlowResult {
                module: cell.flows[0].into(),
                measure,
                curve: Some(Curve {
                    start_ms: 100,
                    step_ms: 100,
                    cwnd: vec![10.0, 20.0],
                }),
            }],
        }
    }

    #[test]
    fn the_file_stands_alone_and_tells_what_deviates() {
        let cells: Vec<Cell> = cell::all().into_iter().take(2).collect();
        let oracle: Vec<Run> = cells.iter().map(|c| run(c, 90.0)).collect();
        let sim = [run(&cells[0], 90.0), run(&cells[1], 81.0)];
        let comparison = compare(&cells, &oracle, &sim);
        let results = Results {
            cells: &cells,
            oracle: &oracle,
            sim: &sim,
            comparison: &comparison,
            causes: &Causes::default(),
        };
        let html = html(&results);
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(
                !html
                    .replace("http://www.w3.org/2000/svg", "")
                    .contains(outside),
                "{outside}"
            );
        }
        // The command cannot end the script.
        assert_eq!(html.matches("</script>").count(), 2);
        let json = html.split("id=\"data\">").nth(1).unwrap();
        let json = json.split("</script>").next().unwrap();
        let data: Value = serde_json::from_str(json).unwrap();
        assert_eq!(data["unexplained"], 1);
        assert_eq!(data["cells"][0]["inside"], true);
        let far = &data["cells"][1];
        assert_eq!(
            (&far["inside"], &far["unexplained"]),
            (&json!(false), &json!(true))
        );
        let goodput = &far["deviations"][0];
        assert_eq!(goodput["m"], "goodput");
        assert_eq!(goodput["size"], "-10.0 %");
        assert_eq!(goodput["load"], 5.0);
        assert_eq!(far["command"], "run.sh </script> BW=20");
        assert_eq!(decode(far["curves"][0][0]["w"].as_str().unwrap()), [10, 20]);
    }
}
