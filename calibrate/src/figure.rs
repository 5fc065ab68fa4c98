//! The README's figure: windows of six algorithms on one long path, Linux and the simulator
//! overlaid.

use std::fmt::Write as _;

use crate::cell::{self, Cell};
use crate::compare::compare;
use crate::measure::Curve;
use crate::reference::Run;
use crate::report::sampled;

/// The algorithms shown, in the order of the panels.
pub const SHOWN: [&str; 6] = ["reno", "highspeed", "scalable", "htcp", "bic", "cubic"];

/// A picture that cannot be drawn, by its cause.
#[derive(Debug, thiserror::Error)]
pub enum FigureError {
    /// A cell has no curve on one side.
    #[error("{0} has no curve on one side: run its cell first")]
    Missing(String),
}

/// The cells of the panels: 100 Mbit/s, 150 ms, buffer of one BDP.
pub fn cells() -> Vec<Cell> {
    let all = cell::all();
    let of = |module: &&str| {
        let id = format!("{module}-100x150-b1");
        all.iter().find(|c| c.id() == id).cloned()
    };
    SHOWN.iter().filter_map(of).collect()
}

/// The picture as SVG.
///
/// # Errors
/// [`FigureError::Missing`] if a curve is not there.
pub fn svg(oracle: &[Run], sim: &[Run]) -> Result<String, FigureError> {
    let cells = cells();
    let comparison = compare(&cells, oracle, sim);
    let curve = |runs: &[Run], id: &str| -> Result<Curve, FigureError> {
        runs.iter()
            .find(|r| r.cell == id && r.repeat == 0)
            .and_then(|r| r.flows[0].curve.as_ref())
            .map(sampled)
            .ok_or_else(|| FigureError::Missing(id.to_owned()))
    };
    let mut panels = Vec::new();
    for cell in &cells {
        let id = cell.id();
        let verdict = comparison.verdicts.iter().find(|v| v.cell == id);
        panels.push(Panel {
            name: cell.flows[0],
            difference: verdict.and_then(|v| v.rmse.first().copied()),
            linux: curve(oracle, &id)?,
            sim: curve(sim, &id)?,
        });
    }
    let end = cells.first().map_or(0.0, |c| c.end_ms() as f64);
    Ok(draw(&panels, end))
}

struct Panel {
    name: &'static str,
    difference: Option<f64>,
    linux: Curve,
    sim: Curve,
}

fn draw(panels: &[Panel], end_ms: f64) -> String {
    let highest = panels
        .iter()
        .flat_map(|p| p.linux.cwnd.iter().chain(&p.sim.cwnd))
        .copied()
        .fold(0.0, f64::max);
    let top = highest * 1.04;
    let step = nice(top / 4.5);
    let mut s = String::new();
    put(
        &mut s,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"{FONT}\" fill=\"{INK}\">\n<title>{TITLE}: {SUBTITLE}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>"
        ),
    );
    text(&mut s, LEFT, 32.0, 20.0, "start", INK, TITLE);
    text(&mut s, LEFT, 54.0, 14.0, "start", GREY, SUBTITLE);
    // Legend, at the right of the title.
    let right = WIDTH - GAP;
    for (x, label, stroke, width) in [
        (right - 330.0, "Linux 6.1", LINUX, LINUX_WIDTH),
        (right - 180.0, "simulator", SIM, SIM_WIDTH),
    ] {
        put(
            &mut s,
            format_args!("<path d=\"M{x} 27h44\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"),
        );
        text(&mut s, x + 54.0, 32.0, 16.0, "start", INK, label);
    }
    let width = (WIDTH - LEFT - GAP * COLUMNS as f64) / COLUMNS as f64;
    for (i, panel) in panels.iter().enumerate() {
        let (column, row) = (i % COLUMNS, i / COLUMNS);
        let left = LEFT + column as f64 * (width + GAP);
        let frame = Frame {
            left,
            top: 100.0 + row as f64 * (PANEL + 66.0),
            width,
            end_ms,
            highest: top,
        };
        frame.axes(&mut s, step, column == 0, row + 1 == panels.len() / COLUMNS);
        let (x, y) = (left, frame.top - 9.0);
        text(&mut s, x, y, 16.0, "start", INK, panel.name);
        if let Some(d) = panel.difference {
            let label = format!("rms difference {:.1} %", 100.0 * d);
            text(&mut s, x + width, y, 13.0, "end", GREY, &label);
        }
        for (curve, stroke, width) in [
            (&panel.linux, LINUX, LINUX_WIDTH),
            (&panel.sim, SIM, SIM_WIDTH),
        ] {
            put(
                &mut s,
                format_args!(
                    "<path d=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>",
                    frame.path(curve)
                ),
            );
        }
    }
    s.push_str("</svg>\n");
    s
}

struct Frame {
    left: f64,
    top: f64,
    width: f64,
    end_ms: f64,
    highest: f64,
}

impl Frame {
    fn x(&self, ms: f64) -> f64 {
        self.left + ms / self.end_ms * self.width
    }

    fn y(&self, segments: f64) -> f64 {
        self.top + PANEL * (1.0 - segments / self.highest)
    }

    fn axes(&self, s: &mut String, step: f64, labels: bool, last: bool) {
        let bottom = self.top + PANEL;
        let mut k = 0.0;
        while k <= self.highest {
            let y = self.y(k);
            let (x, width) = (self.left, self.width);
            put(
                s,
                format_args!("<path d=\"M{x:.1} {y:.1}h{width:.1}\" stroke=\"#ddd\"/>"),
            );
            if labels {
                let label = format!("{k:.0}");
                text(s, x - 8.0, y + 4.5, 13.0, "end", GREY, &label);
            }
            k += step;
        }
        for t in 0..=(self.end_ms / 3e4) as u32 {
            let x = self.x(f64::from(t) * 3e4);
            put(
                s,
                format_args!("<path d=\"M{x:.1} {bottom:.1}v5\" stroke=\"{INK}\"/>"),
            );
            let label = (30 * t).to_string();
            text(s, x, bottom + 19.0, 13.0, "middle", GREY, &label);
        }
        let (x, y, width) = (self.left, self.top, self.width);
        put(
            s,
            format_args!(
                "<path d=\"M{x:.1} {y:.1}v{PANEL}h{width:.1}\" fill=\"none\" stroke=\"{INK}\"/>"
            ),
        );
        if last {
            let middle = self.left + self.width / 2.0;
            text(s, middle, bottom + 38.0, 14.0, "middle", INK, "time, s");
        }
        if labels {
            let (x, y) = (20.0, self.top + PANEL / 2.0);
            put(
                s,
                format_args!(
                    "<text x=\"{x}\" y=\"{y}\" font-size=\"14\" text-anchor=\"middle\" transform=\"rotate(-90 {x} {y})\">window, segments</text>"
                ),
            );
        }
    }

    /// A curve at a tenth of a pixel; points on a straight line are left out.
    fn path(&self, curve: &Curve) -> String {
        let points: Vec<(i64, i64)> = curve
            .points()
            .map(|(ms, w)| {
                (
                    (self.x(ms) * 10.0).round() as i64,
                    (self.y(w) * 10.0).round() as i64,
                )
            })
            .collect();
        let straight = |a: (i64, i64), b: (i64, i64), c: (i64, i64)| {
            (b.0 - a.0) * (c.1 - b.1) == (c.0 - b.0) * (b.1 - a.1)
        };
        let mut d = String::new();
        for (i, p) in points.iter().enumerate() {
            let between = i > 0 && i + 1 < points.len();
            if between && straight(points[i - 1], *p, points[i + 1]) {
                continue;
            }
            let letter = if d.is_empty() { 'M' } else { 'L' };
            let _ = write!(d, "{letter}{} {}", p.0 as f64 / 10.0, p.1 as f64 / 10.0);
        }
        d
    }
}

/// The round number nearest above: 1, 2 or 5 times a power of ten.
fn nice(raw: f64) -> f64 {
    let power = 10f64.powi(raw.log10().floor() as i32);
    let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    steps.into_iter().find(|s| *s >= raw).unwrap_or(raw)
}

fn text(s: &mut String, x: f64, y: f64, size: f64, anchor: &str, fill: &str, text: &str) {
    put(
        s,
        format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>"
        ),
    );
}

fn put(s: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(s, "{text}");
}

const TITLE: &str = "Congestion window, Linux and simulator";
const SUBTITLE: &str = "one flow on 100 Mbit/s x 150 ms, buffer of one bandwidth-delay product; the curves are drawn over each other";
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 620.0;
const PANEL: f64 = 200.0;
const COLUMNS: usize = 3;
const LEFT: f64 = 84.0;
const GAP: f64 = 30.0;
const FONT: &str = "Ubuntu, sans-serif";
const INK: &str = "#1a1a1a";
const GREY: &str = "#444";
/// Okabe and Ito's orange, lightened: wide enough to be seen under the other curve.
const LINUX: &str = "#f5bd62";
const LINUX_WIDTH: f64 = 5.0;
const SIM: &str = "#10355c";
const SIM_WIDTH: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::reference::FlowResult;

    fn runs(cwnd: &[f64]) -> Vec<Run> {
        let run = |c: &Cell| Run {
            cell: c.id(),
            repeat: 0,
            kernel: String::new(),
            hz: 100,
            command: String::new(),
            counters: Default::default(),
            flows: vec![FlowResult {
                module: c.flows[0].into(),
                measure: Measure::default(),
                curve: Some(Curve {
                    start_ms: 100,
                    step_ms: 100,
                    cwnd: cwnd.to_vec(),
                }),
            }],
        };
        cells().iter().map(run).collect()
    }

    #[test]
    fn six_panels_with_two_curves_and_their_difference() {
        let (linux, sim) = (runs(&[10.0, 20.0, 30.0]), runs(&[10.0, 20.0, 36.0]));
        let svg = svg(&linux, &sim).unwrap();
        assert_eq!(svg.matches("stroke-linejoin").count(), 12);
        // sqrt(36 / 3) over 20.
        assert_eq!(svg.matches("rms difference 17.3 %").count(), 6);
        for name in SHOWN {
            assert!(svg.contains(&format!(">{name}</text>")));
        }
        let error = super::svg(&linux[1..], &sim).unwrap_err().to_string();
        assert!(error.starts_with("reno-100x150-b1"), "{error}");
    }

    #[test]
    fn straight_parts_need_no_points() {
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 100.0,
            end_ms: 1000.0,
            highest: 200.0,
        };
        let curve = Curve {
            start_ms: 0,
            step_ms: 100,
            cwnd: vec![0.0, 10.0, 20.0, 0.0],
        };
        assert_eq!(frame.path(&curve), "M0 200L20 180L30 200");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([nice(1.0), nice(1.1), nice(430.0)], [1.0, 2.0, 500.0]);
    }
}
