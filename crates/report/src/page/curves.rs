//! Series of a run on one grid of time, small enough for a page: what a pixel column of a chart
//! shows.
//!
//! A row of the grid keeps the smallest and the largest value of its span, so no peak and no valley
//! is lost however few rows there are (the idea of Jugel et al., "M4", VLDB 2014, without the inner
//! order of a column).

use std::collections::BTreeMap;

use super::data::Curve;
use fullpipe_results::store::Table;

/// A column and its values, NaN where there are none.
pub(crate) type Drawn = (Curve, Vec<f64>);

/// A grid of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Width of a row, seconds.
    pub step: f64,
    /// Rows.
    pub rows: usize,
}

impl Grid {
    /// `rows` rows over `duration` seconds.
    pub fn new(duration: f64, rows: usize) -> Grid {
        Grid {
            step: duration / rows as f64,
            rows,
        }
    }

    fn row(&self, time: f64) -> usize {
        ((time / self.step) as usize).min(self.rows - 1)
    }

    /// Smallest and largest value in each row of a quantity that keeps its value until the next
    /// sample. Rows before the first and after the last sample have none.
    fn range(&self, samples: &[Sample]) -> (Vec<f64>, Vec<f64>) {
        let mut low = vec![f64::NAN; self.rows];
        let mut high = vec![f64::NAN; self.rows];
        let mut widen = |row: usize, a: f64, b: f64| {
            low[row] = a.min(if low[row].is_nan() { a } else { low[row] });
            high[row] = b.max(if high[row].is_nan() { b } else { high[row] });
        };
        let mut before: Option<&Sample> = None;
        for s in samples {
            let row = self.row(s.time);
            if let Some(b) = before {
                for held in self.row(b.time) + 1..row {
                    widen(held, b.last, b.last);
                }
            }
            widen(row, s.low, s.high);
            before = Some(s);
        }
        (low, high)
    }

    /// The rows of the same quantity as a figure draws them, with the time of their middle, from
    /// the first sample to the last; NaN in a gap.
    pub fn spans(&self, samples: &[Sample]) -> Vec<Span> {
        let (low, high) = self.range(samples);
        let mut within: Vec<Vec<f64>> = vec![Vec::new(); self.rows];
        for s in samples {
            if !s.last.is_nan() {
                within[self.row(s.time)].push(s.last);
            }
        }
        let span = |(row, mut values): (usize, Vec<f64>)| {
            values.sort_by(f64::total_cmp);
            let middle = values.get(values.len().saturating_sub(1) / 2).copied();
            Span {
                time: (row as f64 + 0.5) * self.step,
                median: middle.unwrap_or(low[row]),
                range: [low[row], high[row]],
            }
        };
        let ends = samples.first().zip(samples.last());
        let ends = ends.map_or(0..0, |(a, b)| self.row(a.time)..self.row(b.time) + 1);
        let rows = within.into_iter().enumerate();
        rows.filter(|(row, _)| ends.contains(row))
            .map(span)
            .collect()
    }

    /// Last value in each row, held from the row before where there is none.
    fn last(&self, samples: &[Sample]) -> Vec<f64> {
        let mut out = vec![f64::NAN; self.rows];
        let mut held: Option<(usize, f64)> = None;
        for s in samples {
            let row = self.row(s.time);
            if let Some((from, value)) = held {
                out[from + 1..row.max(from + 1)].fill(value);
            }
            out[row] = s.last;
            held = Some((row, s.last));
        }
        out
    }

    /// Means over intervals that end at the given times, each drawn over its whole interval.
    pub fn steps(&self, ends: &[(f64, f64)]) -> Vec<f64> {
        let mut at = 0;
        let middle = |row: usize| (row as f64 + 0.5) * self.step;
        (0..self.rows)
            .map(|row| {
                while at < ends.len() && ends[at].0 <= middle(row) {
                    at += 1;
                }
                ends.get(at).map_or(f64::NAN, |e| e.1)
            })
            .collect()
    }
}

/// What the samples in a row of a grid have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Span {
    /// Middle of the row, seconds.
    pub time: f64,
    /// Median of the samples; where there is none, the value that is held, NaN in a gap.
    pub median: f64,
    /// Smallest and largest.
    pub range: [f64; 2],
}

/// A value and the range it stood in since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    time: f64,
    last: f64,
    low: f64,
    high: f64,
}

/// The curves of every flow: window, threshold, RTT. Connections of one flow are added up (window,
/// threshold) or stand together (RTT).
pub(crate) fn flows(grid: Grid, series: &Table) -> Vec<Drawn> {
    let mut out = Vec::new();
    for (of, members) in groups(series, "flow") {
        let streams = members.len();
        let head = |what, stat| Curve {
            what,
            of: of.clone(),
            stat,
            streams,
        };
        let window = sum(&members
            .iter()
            .map(|m| m.samples("cwnd", true))
            .collect::<Vec<_>>());
        let (low, high) = grid.range(&window);
        out.push((head("cwnd", "low"), low));
        out.push((head("cwnd", "high"), high));
        let threshold = sum(&members
            .iter()
            .map(|m| m.samples("ssthresh", false))
            .collect::<Vec<_>>());
        if !threshold.is_empty() {
            out.push((head("ssthresh", "last"), grid.last(&threshold)));
        }
        let (low, high) = grid.range(&rtt(&members));
        out.push((head("rtt", "low"), low));
        out.push((head("rtt", "high"), high));
    }
    out
}

/// The queue of every link that ever had one.
pub(crate) fn links(grid: Grid, series: &Table) -> Vec<Drawn> {
    let queues = queues(series).into_iter();
    queues
        .flat_map(|(of, samples)| band("queue", of, grid, &samples))
        .collect()
}

/// A name and its samples, ascending in time.
pub(crate) type Sampled = (String, Vec<Sample>);

/// Round-trip times of every flow, those of its connections together.
pub(crate) fn rtts(series: &Table) -> Vec<Sampled> {
    let flows = groups(series, "flow").into_iter();
    flows.map(|(of, members)| (of, rtt(&members))).collect()
}

fn rtt(members: &[Member<'_>]) -> Vec<Sample> {
    let mut rtt = samples_of(members, "rtt_ms");
    rtt.retain(|s| s.last > 0.0);
    rtt.sort_by(|a, b| a.time.total_cmp(&b.time));
    with_gaps(rtt)
}

/// The same round-trip times with one that is NaN where a silence begins. A round-trip time is not
/// held as a queue is: in an outage there is none.
fn with_gaps(samples: Vec<Sample>) -> Vec<Sample> {
    let mut apart: Vec<f64> = samples.windows(2).map(|s| s[1].time - s[0].time).collect();
    apart.sort_by(f64::total_cmp);
    // Most of them, so that pauses which come again and again are no gaps.
    let usual = apart.get(apart.len().saturating_sub(1) * 19 / 20);
    let usual = usual.copied().unwrap_or(0.0);
    let mut out: Vec<Sample> = Vec::with_capacity(samples.len());
    for s in samples {
        if let Some(before) = out.last().copied()
            && s.time - before.time > SILENCE * (usual + before.last / 1e3)
        {
            let [last, low, high] = [f64::NAN; 3];
            let time = before.time;
            out.push(Sample {
                time,
                last,
                low,
                high,
            });
        }
        out.push(s);
    }
    out
}

/// How often the usual distance of two samples and a round trip fit into what is a gap.
const SILENCE: f64 = 4.0;

/// Lengths of the queue of every link that ever had one.
pub(crate) fn queues(series: &Table) -> Vec<Sampled> {
    let links = groups(series, "link").into_iter();
    let samples = |members: Vec<Member<'_>>| {
        let all = members.iter();
        all.flat_map(|m| m.samples("queue_packets", true)).collect()
    };
    links
        .map(|(of, members)| (of, samples(members)))
        .filter(|(_, samples): &Sampled| samples.iter().any(|s| s.high != 0.0))
        .collect()
}

/// Round-trip times of every probe.
pub(crate) fn probes(series: &Table) -> Vec<Sampled> {
    let names = groups(series, "name").into_iter();
    names
        .map(|(of, members)| (of, with_gaps(samples_of(&members, "rtt_ms"))))
        .collect()
}

fn samples_of(members: &[Member<'_>], column: &str) -> Vec<Sample> {
    let all = members.iter();
    all.flat_map(|m| m.samples(column, false)).collect()
}

/// The smallest and the largest of something over time.
fn band(what: &'static str, of: String, grid: Grid, samples: &[Sample]) -> [Drawn; 2] {
    let (low, high) = grid.range(samples);
    let head = |stat| Curve {
        what,
        of: of.clone(),
        stat,
        streams: 1,
    };
    [(head("low"), low), (head("high"), high)]
}

/// Goodput of flows, arrivals of short flows and datagrams: the rate of each interval, over all of
/// it.
pub(crate) fn samples(grid: Grid, series: &Table) -> Vec<Drawn> {
    let rates = rates(series).into_iter();
    rates
        .map(|(head, ends)| (head, grid.steps(&ends)))
        .collect()
}

/// The same as ends of the intervals and the rates in them.
pub(crate) fn rates(series: &Table) -> Vec<(Curve, Vec<(f64, f64)>)> {
    let kinds = series.text("kind").unwrap_or_default();
    let mut out = Vec::new();
    for (of, members) in groups(series, "name") {
        let first = members.first().and_then(|m| m.rows.first());
        let flow = first
            .and_then(|&row| kinds.get(row))
            .is_some_and(|k| k == "flow");
        let ends: Vec<(f64, f64)> = members
            .iter()
            .flat_map(|m| m.points("goodput_mbps"))
            .collect();
        out.push((
            Curve {
                what: if flow { "goodput" } else { "rate" },
                of,
                stat: "mean",
                streams: 1,
            },
            ends,
        ));
    }
    out
}

/// Round-trip times that probes saw.
pub(crate) fn pings(grid: Grid, series: &Table) -> Vec<Drawn> {
    let probes = probes(series).into_iter();
    probes
        .flat_map(|(of, samples)| band("ping", of, grid, &samples))
        .collect()
}

/// Rows of one connection in a table.
pub(crate) struct Member<'a> {
    table: &'a Table,
    pub(crate) rows: Vec<usize>,
}

impl Member<'_> {
    fn number(&self, column: &str, row: usize) -> Option<f64> {
        match (self.table.float(column), self.table.int(column)) {
            (Some(v), _) => v[row],
            (None, Some(v)) => Some(v[row] as f64),
            (None, None) => None,
        }
    }

    fn samples(&self, column: &str, with_range: bool) -> Vec<Sample> {
        let end = |suffix: &str, row, last| {
            let wide = with_range.then(|| self.number(&format!("{column}{suffix}"), row));
            wide.flatten().unwrap_or(last)
        };
        let sample = |&row: &usize| {
            let last = self.number(column, row)?;
            Some(Sample {
                time: self.number("time_s", row)?,
                last,
                low: end("_min", row, last),
                high: end("_max", row, last),
            })
        };
        self.rows.iter().filter_map(sample).collect()
    }

    fn points(&self, column: &str) -> Vec<(f64, f64)> {
        let point = |&row: &usize| Some((self.number("time_s", row)?, self.number(column, row)?));
        self.rows.iter().filter_map(point).collect()
    }
}

/// Rows by name, in the order of the table; connections `name.1`, `name.2`, ... make one group.
pub(crate) fn groups<'a>(table: &'a Table, column: &str) -> Vec<(String, Vec<Member<'a>>)> {
    let names = table.text(column).unwrap_or_default();
    let mut order: Vec<&str> = Vec::new();
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, name) in names.iter().enumerate() {
        let known = rows.entry(name).or_default();
        if known.is_empty() {
            order.push(name);
        }
        known.push(row);
    }
    let mut out: Vec<(String, Vec<Member<'a>>)> = Vec::new();
    for name in order {
        let member = Member {
            table,
            rows: rows.remove(name).unwrap_or_default(),
        };
        let group = stream_of(name).filter(|_| column == "flow").unwrap_or(name);
        match out.iter_mut().find(|(g, _)| g == group) {
            Some((_, members)) => members.push(member),
            None => out.push((group.to_owned(), vec![member])),
        }
    }
    out
}

/// The flow that `name.12` is a stream of.
fn stream_of(name: &str) -> Option<&str> {
    let (flow, number) = name.rsplit_once('.')?;
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some(flow)
}

/// The sum of several quantities over time. One alone keeps its ranges.
fn sum(members: &[Vec<Sample>]) -> Vec<Sample> {
    if let [one] = members {
        return one.clone();
    }
    let mut all: Vec<(usize, &Sample)> = members
        .iter()
        .enumerate()
        .flat_map(|(m, samples)| samples.iter().map(move |s| (m, s)))
        .collect();
    all.sort_by(|a, b| a.1.time.total_cmp(&b.1.time));
    let mut held = vec![0.0; members.len()];
    let mut total = 0.0;
    all.into_iter()
        .map(|(m, s)| {
            total += s.last - std::mem::replace(&mut held[m], s.last);
            Sample {
                time: s.time,
                last: total,
                low: total,
                high: total,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_results::store::Column;

    fn samples(points: &[(f64, f64)]) -> Vec<Sample> {
        let sample = |&(time, last): &(f64, f64)| Sample {
            time,
            last,
            low: last,
            high: last,
        };
        points.iter().map(sample).collect()
    }

    #[test]
    fn extremes_survive_however_few_rows() {
        let mut points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i) * 0.01, 10.0)).collect();
        points[123].1 = 500.0;
        points[777].1 = 1.0;
        for rows in [1, 3, 10, 100] {
            let (low, high) = Grid::new(10.0, rows).range(&samples(&points));
            assert_eq!(high.iter().copied().fold(0.0, f64::max), 500.0, "{rows}");
            assert_eq!(low.iter().copied().fold(99.0, f64::min), 1.0, "{rows}");
            assert_eq!(high[(1.23 / 10.0 * rows as f64) as usize], 500.0);
        }
    }

    /// One sample in a hundred is late: the range has it, the median does not.
    #[test]
    fn few_extremes_do_not_move_the_median() {
        let late = |i: u32| if i % 100 == 7 { 200.0 } else { 80.0 };
        let points: Vec<(f64, f64)> = (0..4000).map(|i| (f64::from(i) * 0.01, late(i))).collect();
        let spans = Grid::new(40.0, 10).spans(&samples(&points));
        assert_eq!(spans.len(), 10);
        for (span, middle) in spans.iter().zip([2.0, 6.0, 10.0]) {
            assert_eq!((span.time, span.median), (middle, 80.0));
        }
        assert!(spans.iter().all(|s| s.range == [80.0, 200.0]), "{spans:?}");
        // A value that is held is a line without a range; before the first sample there is none.
        let held = Grid::new(10.0, 10).spans(&samples(&[(2.5, 7.0), (5.5, 9.0)]));
        let drawn: Vec<_> = held.iter().map(|s| (s.time, s.median)).collect();
        assert_eq!(drawn, [(2.5, 7.0), (3.5, 7.0), (4.5, 7.0), (5.5, 9.0)]);
        assert!(held.iter().all(|s| s.range == [s.median; 2]), "{held:?}");
    }

    #[test]
    fn values_are_held_between_samples_only() {
        let grid = Grid::new(10.0, 10);
        let s = samples(&[(2.5, 7.0), (5.5, 9.0)]);
        let (low, high) = grid.range(&s);
        assert!(low[0].is_nan() && low[1].is_nan() && low[6].is_nan());
        assert_eq!(low[2..6], [7.0, 7.0, 7.0, 9.0]);
        assert_eq!(high[2..6], [7.0, 7.0, 7.0, 9.0]);
        assert_eq!(grid.last(&s)[2..6], [7.0, 7.0, 7.0, 9.0]);
        assert!(grid.last(&s)[6].is_nan());
    }

    #[test]
    fn round_trip_times_have_a_gap_where_there_is_none() {
        let times = (0..100).filter(|i| !(40..60).contains(i));
        let points: Vec<_> = times.map(|i| (0.1 * f64::from(i), 50.0)).collect();
        let with_gaps = with_gaps(samples(&points));
        assert_eq!(with_gaps.iter().filter(|s| s.last.is_nan()).count(), 1);
        let spans = Grid::new(10.0, 10).spans(&with_gaps);
        let drawn: Vec<bool> = spans.iter().map(|s| !s.median.is_nan()).collect();
        assert_eq!(
            drawn.iter().filter(|drawn| !**drawn).count(),
            2,
            "{spans:?}"
        );
        assert!(!drawn[4] && !drawn[5]);
        assert_eq!(
            spans[3].range, [50.0; 2],
            "the row in which it begins has its values"
        );
    }

    /// The extremes of a step are drawn, and a link has a queue that only they tell of; a result of
    /// before them has its samples.
    #[test]
    fn queues_are_drawn_with_their_extremes() {
        let mut t = Table::default();
        let links = ["a", "a", "a", "b", "b", "c", "c"].map(str::to_owned);
        t.push("link", Column::Text(links.to_vec()));
        let times = [0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 1.0].map(Some).to_vec();
        t.push("time_s", Column::Float(times));
        t.push("queue_packets", Column::Int(vec![0, 4, 0, 0, 0, 0, 0]));
        let old = queues(&t);
        assert_eq!(old.len(), 1);
        assert!(old[0].1.iter().all(|s| [s.low, s.high] == [s.last; 2]));
        let (min, max) = (vec![0, 0, 0, 0, 0, 0, 0], vec![0, 9, 4, 0, 2, 0, 0]);
        t.push("queue_packets_min", Column::Int(min));
        t.push("queue_packets_max", Column::Int(max));
        let new = queues(&t);
        assert_eq!(
            new.iter().map(|q| q.0.as_str()).collect::<Vec<_>>(),
            ["a", "b"]
        );
        let spans = Grid::new(3.0, 3).spans(&new[0].1);
        let drawn: Vec<_> = spans.iter().map(|s| (s.median, s.range)).collect();
        assert_eq!(
            drawn,
            [(0.0, [0.0; 2]), (4.0, [0.0, 9.0]), (0.0, [0.0, 4.0])]
        );
    }

    #[test]
    fn a_mean_stands_over_its_interval() {
        let steps = Grid::new(10.0, 10).steps(&[(2.0, 7.0), (4.0, 9.0), (9.0, 1.0)]);
        assert_eq!(steps[..9], [7.0, 7.0, 9.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert!(steps[9].is_nan());
    }

    #[test]
    fn streams_are_added_up() {
        let a = samples(&[(0.0, 10.0), (2.0, 20.0)]);
        let b = samples(&[(1.0, 5.0), (3.0, 1.0)]);
        let total: Vec<f64> = sum(&[a.clone(), b]).iter().map(|s| s.last).collect();
        assert_eq!(total, [10.0, 15.0, 25.0, 21.0]);
        assert_eq!(sum(std::slice::from_ref(&a)), a);
        assert_eq!(stream_of("main.16"), Some("main"));
        assert_eq!(stream_of("main.x"), None);
        assert_eq!(stream_of("main"), None);
    }

    #[test]
    fn flows_of_a_table() {
        let mut t = Table::default();
        t.push(
            "flow",
            Column::Text(
                ["a.1", "a.1", "a.2", "a.2", "b"]
                    .map(str::to_owned)
                    .to_vec(),
            ),
        );
        for (name, values) in [
            ("time_s", [0.0, 9.0, 0.0, 9.0, 5.0]),
            ("cwnd", [2.0, 4.0, 3.0, 5.0, 9.0]),
            ("rtt_ms", [80.0, 90.0, 0.0, 70.0, 80.0]),
        ] {
            t.push(
                name,
                Column::Float(values.iter().map(|&v| Some(v)).collect()),
            );
        }
        let drawn = flows(Grid::new(10.0, 10), &t);
        let of = |what, of: &str, stat| {
            drawn
                .iter()
                .find(|(c, _)| c.what == what && c.of == of && c.stat == stat)
                .unwrap()
        };
        assert_eq!(of("cwnd", "a", "high").0.streams, 2);
        assert_eq!(of("cwnd", "a", "high").1[9], 9.0);
        assert_eq!(of("rtt", "a", "low").1[9], 70.0);
        assert_eq!(of("cwnd", "b", "low").1[5], 9.0);
    }
}
