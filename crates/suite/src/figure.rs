//! Congestion window over time: one case as a picture, or all cases of a scenario side by side.
//!
//! The SVG is drawn here, text stays text, and the PNG is the same SVG rasterised with one bundled font, so that a machine
//! without fonts draws the same picture. The same input gives the same bytes. A curve is reduced per column of pixels to its
//! first, smallest, largest and last value (Jugel et al., "M4", VLDB 2014), so no peak of a sawtooth is lost and the file
//! stays small whatever the length of the run.
//!
//! [`write`] draws from a stored result, so a picture can be made again without running anything.

mod draw;
mod overlay;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::label;
use crate::scenario::{Case, FlowGroup, Scenario};
use crate::store::{ResultDir, SeriesKind, StoreError, Table};

pub use draw::{OVERVIEW_PANELS, overview_svg, png};
pub use overlay::write_overlay;

/// What stands in one picture: the flows of one case and one seed.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Headline: the scenario.
    pub title: String,
    /// Second line: the parameters of the case.
    pub subtitle: String,
    /// Length of the time axis, seconds; longer curves are cut.
    pub duration: f64,
    /// Unit of the window axis in words, for example `segments of 1448 B`.
    pub window_unit: String,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Horizontal lines with a label, for example what the path holds.
    pub levels: Vec<Level>,
}

/// The window of one flow over time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Colour and dash: curves of one group look alike and share one line of the legend.
    pub group: usize,
    /// Drawn as a broad pale line that others can lie on.
    pub band: bool,
    /// Time of each row, seconds, ascending.
    pub time: Vec<f64>,
    /// Window at that time, segments.
    pub window: Vec<f64>,
    /// Smallest since the row before.
    pub low: Vec<f64>,
    /// Largest since the row before.
    pub high: Vec<f64>,
    /// Threshold; not drawn where it is not finite.
    pub ssthresh: Vec<f64>,
    /// Events on the curve, ascending.
    pub marks: Vec<Mark>,
}

/// An event on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// When, seconds.
    pub time: f64,
    /// Window before the event, segments.
    pub window: f64,
    /// What.
    pub kind: MarkKind,
}

/// Kinds of [`Mark`]; each has its own shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// Start-up left without a reduction.
    StartUpExit,
    /// The window was reduced.
    Congestion,
    /// A retransmission timeout.
    Timeout,
}

/// A horizontal line.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Window, segments.
    pub window: f64,
    /// Label at its right end.
    pub label: String,
}

/// The SVG could not be turned into a PNG.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot rasterise the figure: {0}")]
pub struct RasterError(String);

/// Why the figures of a result could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The result could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A picture could not be drawn.
    #[error(transparent)]
    Raster(#[from] RasterError),
    /// The system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// Verb.
        doing: &'static str,
        /// File or directory.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// The pictures of a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The directory they are in.
    pub dir: PathBuf,
    /// Cases that have one.
    pub cases: usize,
    /// All cases in one picture, if there are at least two.
    pub overview: Option<PathBuf>,
    /// The first case's picture.
    pub first: Option<PathBuf>,
}

/// Draws every case of a result as SVG and PNG into `figures/`, with the first seed, and an overview. Pictures that an earlier
/// run left there are removed. Cases without a time series (`trace = "off"`) have no picture.
///
/// # Errors
/// If the result cannot be read or the pictures cannot be written.
pub fn write(scenario: &Scenario, result: &ResultDir) -> Result<Written, FigureError> {
    let dir = result.path().join(FIGURES);
    fs::create_dir_all(&dir).map_err(io_error("create", &dir))?;
    let params: Vec<Vec<(String, String)>> =
        scenario.cases.iter().map(|c| c.params.clone()).collect();
    let labels = label::labels(&params);
    let drawn: Vec<Option<(String, Figure)>> = (0..scenario.cases.len())
        .into_par_iter()
        .map(|i| {
            let Some(figure) = Figure::of(scenario, result, i)? else {
                return Ok(None);
            };
            let name = file_name(i, &labels[i]);
            write_both(&dir, &name, &figure.svg())?;
            Ok(Some((name, figure)))
        })
        .collect::<Result<_, FigureError>>()?;
    let mut names: Vec<String> = Vec::new();
    let mut panels: Vec<Figure> = Vec::new();
    for (i, (name, mut figure)) in drawn
        .into_iter()
        .enumerate()
        .filter_map(|(i, d)| Some((i, d?)))
    {
        names.push(name);
        if panels.len() <= OVERVIEW_PANELS {
            figure.subtitle.clone_from(&labels[i]);
            panels.push(figure);
        } else {
            panels.push(Figure::default());
        }
    }
    let mut written = Written {
        cases: names.len(),
        ..Written::default()
    };
    written.first = names.first().map(|name| dir.join(format!("{name}.svg")));
    if panels.len() > 1 {
        let subtitle = scenario
            .about
            .trim_start()
            .lines()
            .next()
            .unwrap_or_default();
        write_both(
            &dir,
            OVERVIEW,
            &overview_svg(&scenario.name, subtitle, &panels),
        )?;
        names.push(OVERVIEW.to_owned());
        written.overview = Some(dir.join(format!("{OVERVIEW}.svg")));
    }
    remove_others(&dir, &names)?;
    written.dir = dir;
    Ok(written)
}

impl Figure {
    /// The picture of one case with the first seed, from its stored series; `None` if there are none.
    ///
    /// # Errors
    /// If the series cannot be read.
    pub fn of(
        scenario: &Scenario,
        result: &ResultDir,
        case: usize,
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
        let spec = case.run_spec(seed);
        let mut curves = Vec::new();
        for (group, flow) in case.flows.iter().enumerate() {
            for member in flow.members.clone() {
                let name = match flow.members.len() {
                    1 => format!("{}: {}", flow.name, flow.stack),
                    n => format!("{}: {}, {n} streams", flow.name, flow.stack),
                };
                curves.push(Curve::of(
                    name,
                    group,
                    &spec.flows[member].name,
                    &series,
                    &events,
                ));
            }
        }
        Ok(Some(Figure {
            title: scenario.name.clone(),
            subtitle: subtitle(scenario, case),
            duration: case.duration.as_secs_f64(),
            window_unit: window_unit(&case.flows),
            curves,
            levels: levels(case, seed),
        }))
    }
}

impl Curve {
    /// The curve of the flow `flow`, from tables of a result.
    fn of(name: String, group: usize, flow: &str, series: &Table, events: &Table) -> Self {
        let mut curve = Curve {
            name,
            group,
            ..Curve::default()
        };
        let column = |table: &Table, name: &str| -> Vec<f64> {
            let (Some(flows), Some(values)) = (table.text("flow"), table.float(name)) else {
                return Vec::new();
            };
            let of_flow = flows.iter().zip(values).filter(|(f, _)| f.as_str() == flow);
            of_flow.map(|(_, v)| v.unwrap_or(f64::INFINITY)).collect()
        };
        curve.time = column(series, "time_s");
        curve.window = column(series, "cwnd");
        curve.low = column(series, "cwnd_min");
        curve.high = column(series, "cwnd_max");
        curve.ssthresh = column(series, "ssthresh");
        let kinds: Vec<&String> = events
            .text("flow")
            .into_iter()
            .zip(events.text("kind"))
            .flat_map(|(flows, kinds)| flows.iter().zip(kinds))
            .filter(|(f, _)| f.as_str() == flow)
            .map(|(_, kind)| kind)
            .collect();
        let times = column(events, "time_s");
        let windows = column(events, "before");
        for ((kind, time), window) in kinds.into_iter().zip(times).zip(windows) {
            let kind = match kind.as_str() {
                "loss" | "mark" | "local-stall" => MarkKind::Congestion,
                "timeout" => MarkKind::Timeout,
                "start-up-exit" => MarkKind::StartUpExit,
                _ => continue,
            };
            curve.marks.push(Mark { time, window, kind });
        }
        curve
    }
}

/// The case's parameters, its path, and the seed where there are several.
fn subtitle(scenario: &Scenario, case: &Case) -> String {
    let mut parts: Vec<String> = case
        .params
        .iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect();
    if let [flow] = case.flows.as_slice() {
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

fn window_unit(flows: &[FlowGroup]) -> String {
    match flows {
        [first, rest @ ..] if rest.iter().all(|f| f.mss == first.mss) => {
            format!("segments of {} B", draw::thousands(f64::from(first.mss)))
        }
        _ => "segments".to_owned(),
    }
}

/// What the path holds, where one flow has it to itself.
fn levels(case: &Case, seed: u64) -> Vec<Level> {
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
        label: format!("BDP {}", draw::thousands(bdp.round())),
    }];
    let forward = &spec.flows[flow.members.start].forward;
    let bottleneck = forward
        .iter()
        .filter_map(|&l| spec.links.get(l))
        .find(|l| l.rate == Some(flow.capacity));
    let buffer = bottleneck.and_then(|l| match l.buffer {
        fullpipe_sim::Buffer::Packets(n) => Some(n as f64),
        fullpipe_sim::Buffer::Bytes(n) => Some(n as f64 / f64::from(flow.packet)),
        _ => None,
    });
    if let Some(buffer) = buffer {
        let full = bdp + buffer;
        levels.push(Level {
            window: full,
            label: format!("+ buffer {}", draw::thousands(full.round())),
        });
    }
    if let Some(cap) = flow.window_cap {
        levels.push(Level {
            window: cap,
            label: format!("cap {}", draw::thousands(cap.round())),
        });
    }
    levels
}

/// `case-0003-highspeed-mtu-9000`.
fn file_name(case: usize, label: &str) -> String {
    let mut name = format!("case-{case:04}");
    let mut dash = true;
    for c in label.chars().take(60) {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '=') {
            if dash {
                name.push('-');
            }
            name.push(c.to_ascii_lowercase());
            dash = false;
        } else {
            dash = true;
        }
    }
    name
}

fn write_both(dir: &Path, name: &str, svg: &str) -> Result<(), FigureError> {
    write_file(&dir.join(format!("{name}.svg")), svg.as_bytes())?;
    write_file(&dir.join(format!("{name}.png")), &png(svg, PNG_SCALE)?)
}

/// A picture is whole or absent.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), FigureError> {
    let temporary = path.with_added_extension("tmp");
    let written = fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(io_error("write", path))
}

/// Removes pictures of earlier runs, and nothing else.
fn remove_others(dir: &Path, names: &[String]) -> Result<(), FigureError> {
    for entry in fs::read_dir(dir).map_err(io_error("list", dir))? {
        let path = entry.map_err(io_error("list", dir))?.path();
        let (Some(name), Some(extension)) =
            (path.file_name().and_then(|n| n.to_str()), path.extension())
        else {
            continue;
        };
        let stem = name
            .trim_end_matches(".tmp")
            .rsplit_once('.')
            .map_or(name, |(stem, _)| stem);
        let ours = stem == OVERVIEW || stem.starts_with("case-");
        let left = extension == "tmp" || !names.iter().any(|n| n == stem);
        if ours && left && ["svg", "png", "tmp"].iter().any(|e| extension == *e) {
            fs::remove_file(&path).map_err(io_error("remove", &path))?;
        }
    }
    Ok(())
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FigureError {
    let path = path.to_owned();
    move |source| FigureError::Io {
        doing,
        path,
        source,
    }
}

const FIGURES: &str = "figures";
const OVERVIEW: &str = "overview";
/// Pixels per unit of the SVG.
const PNG_SCALE: f32 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Column;

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(
            file_name(3, "highspeed(low_window=31), mtu 9000"),
            "case-0003-highspeed-low_window=31-mtu-9000"
        );
        assert_eq!(file_name(0, ""), "case-0000");
        assert_eq!(file_name(1, "../../etc"), "case-0001-..-..-etc");
    }

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
        let curve = Curve::of("x".into(), 0, "a", &series, &events);
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

    #[test]
    fn only_pictures_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "case-0000-a.svg",
            "case-0000-b.png",
            "overview.svg",
            "case-0001.svg.tmp",
            "notes.svg",
            "case-0000-b.txt",
        ] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        remove_others(dir.path(), &["case-0000-a".to_owned()]).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["case-0000-a.svg", "case-0000-b.txt", "notes.svg"]);
    }
}
