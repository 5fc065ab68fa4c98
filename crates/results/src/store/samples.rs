//! What came through per interval, when each short flow came and went, what each probe saw.

use fullpipe_run::{ArrivalOutcome, CrossOutcome, FlowOutcome, Outcome};
use fullpipe_units::Time;

use super::{Column, Table};
use fullpipe_metrics::RunMetrics;
use fullpipe_scenario::FlowGroup;

/// One row per interval and flow of the scenario, class of short flows and source of datagrams:
/// rates of the interval that ends at `time_s`, and the mean rate from the flow's start to then.
pub(super) fn intervals(groups: &[FlowGroup], metrics: &RunMetrics, outcome: &Outcome) -> Table {
    let kind = |name: &str| {
        let row = metrics.traffic.iter().find(|t| t.name == name);
        row.map_or(String::new(), |t| t.kind.clone())
    };
    let mut rows = Rows::new(outcome);
    for g in groups {
        let members = &outcome.flows[g.members.clone()];
        let sum = |of: &dyn Fn(&FlowOutcome) -> (&Vec<u64>, u32)| {
            let series: Vec<_> = members.iter().map(of).collect();
            let longest = series.iter().map(|(s, _)| s.len()).max().unwrap_or(0);
            let bits = |i| {
                let of_one = |(s, bytes): &(&Vec<u64>, u32)| {
                    8.0 * f64::from(*bytes) * s.get(i).copied().unwrap_or(0) as f64
                };
                series.iter().map(of_one).sum()
            };
            (0..longest).map(bits).collect::<Vec<f64>>()
        };
        let started = members.iter().map(|f| f.started).min();
        rows.push(
            (&g.name, "flow", started.unwrap_or(Time::ZERO)),
            sum(&|f| (&f.delivered_per_interval, f.mss)),
            Some(sum(&|f| (&f.arrived_per_interval, f.packet))),
            None,
        );
    }
    for a in &outcome.arrivals {
        let goodput = bits(&a.delivered_per_interval, a.mss);
        rows.push((&a.name, &kind(&a.name), Time::ZERO), goodput, None, None);
    }
    for s in outcome.one_way() {
        let arrived = bits(&s.arrived_per_interval, s.packet);
        let sent = bits(&s.sent_per_interval, s.packet);
        // Nothing moves before its first interval with a datagram.
        let idle = sent.iter().take_while(|b| **b == 0.0).count() as u64;
        let begin = Time::from_nanos(idle * outcome.interval.as_nanos());
        rows.push(
            (&s.name, &kind(&s.name), begin),
            arrived.clone(),
            Some(arrived),
            Some(sent),
        );
    }
    rows.table()
}

/// Builds the table of [`intervals`].
struct Rows<'a> {
    outcome: &'a Outcome,
    names: Vec<String>,
    kinds: Vec<String>,
    rates: [Vec<Option<f64>>; RATES.len()],
}

impl Rows<'_> {
    fn new(outcome: &Outcome) -> Rows<'_> {
        Rows {
            outcome,
            names: Vec::new(),
            kinds: Vec::new(),
            rates: Default::default(),
        }
    }

    fn table(self) -> Table {
        let mut table = Table::default();
        table.push("name", Column::Text(self.names));
        table.push("kind", Column::Text(self.kinds));
        for (name, values) in RATES.into_iter().zip(self.rates) {
            table.push(name, Column::Float(values));
        }
        table
    }

    /// Bits per interval.
    fn push(
        &mut self,
        (name, kind, started): (&str, &str, Time),
        goodput: Vec<f64>,
        throughput: Option<Vec<f64>>,
        sent: Option<Vec<f64>>,
    ) {
        let width = self.outcome.interval.as_nanos().max(1);
        let end = (Time::ZERO + self.outcome.duration).as_nanos();
        let mut total = 0.0;
        for (i, bits) in goodput.iter().enumerate() {
            let begin = i as u64 * width;
            let until = (begin + width).min(end);
            // An event at the very end of the run falls into an interval of no width.
            if until <= begin {
                break;
            }
            total += bits;
            let seconds = (until - begin) as f64 * 1e-9;
            let rate = |b: f64| b * 1e-6 / seconds;
            let column = |c: &Option<Vec<f64>>| c.as_ref()?.get(i).copied().map(rate);
            let since = until.saturating_sub(started.as_nanos()) as f64 * 1e-9;
            let cumulative = (since > 0.0).then(|| total * 1e-6 / since);
            let values = [
                Some(until as f64 * 1e-9),
                Some(rate(*bits)),
                cumulative,
                column(&throughput),
                column(&sent),
            ];
            self.names.push(name.to_owned());
            self.kinds.push(kind.to_owned());
            for (column, value) in self.rates.iter_mut().zip(values) {
                column.push(value);
            }
        }
    }
}

fn bits(counts: &[u64], bytes: u32) -> Vec<f64> {
    let of = |n: &u64| 8.0 * f64::from(bytes) * *n as f64;
    counts.iter().map(of).collect()
}

/// One row per short flow. Bit `i` of `lost_mask` (64 bits, the highest as the sign) is set if the
/// first transmission of segment `i` was lost.
pub(super) fn transfers(classes: &[ArrivalOutcome]) -> Table {
    let all = || {
        classes
            .iter()
            .flat_map(|a| a.transfers.iter().map(move |t| (a, t)))
    };
    let mut table = Table::default();
    let text = all().map(|(a, _)| a.name.clone()).collect();
    table.push("name", Column::Text(text));
    let start = all().map(|(_, t)| Some(t.start.as_secs_f64())).collect();
    table.push("start_s", Column::Float(start));
    let size = all().map(|(_, t)| t.size as i64).collect();
    table.push("size_segments", Column::Int(size));
    let time = all()
        .map(|(_, t)| t.completion.map(|c| c.as_secs_f64()))
        .collect();
    table.push("completion_time_s", Column::Float(time));
    let retransmits = all().map(|(_, t)| i64::from(t.retransmits)).collect();
    table.push("retransmits", Column::Int(retransmits));
    let timeouts = all().map(|(_, t)| i64::from(t.timeouts)).collect();
    table.push("timeouts", Column::Int(timeouts));
    let lost = all().map(|(_, t)| t.lost.cast_signed()).collect();
    table.push("lost_mask", Column::Int(lost));
    table
}

/// One row per answer.
pub(super) fn answers(cross: &[CrossOutcome]) -> Table {
    let all = || {
        cross
            .iter()
            .flat_map(|p| p.series.iter().map(move |s| (p, s)))
    };
    let mut table = Table::default();
    let text = all().map(|(p, _)| p.name.clone()).collect();
    table.push("name", Column::Text(text));
    let time = all().map(|(_, s)| Some(s.0.as_secs_f64())).collect();
    table.push("time_s", Column::Float(time));
    let rtt = all().map(|(_, s)| Some(s.1.as_millis_f64())).collect();
    table.push("rtt_ms", Column::Float(rtt));
    table
}

const RATES: [&str; 5] = [
    "time_s",
    "goodput_mbps",
    "cumulative_mbps",
    "throughput_mbps",
    "sent_mbps",
];

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_metrics::testing::{
        arrivals, flow, group, outcome, ping, source, traffic_of, transfer,
    };
    use fullpipe_run::RunSpec;
    use fullpipe_units::Span;

    #[test]
    fn rates_per_interval_and_since_the_start() {
        // Packets of 1 Mbit, intervals of 2 s, a run of 5 s; two streams, the first of which starts
        // at 1 s.
        let mut streams = [flow("a.0"), flow("a.1")];
        for f in &mut streams {
            (f.mss, f.packet) = (125_000, 125_000);
        }
        streams[0].started = Time::from_secs_f64(1.0);
        streams[0].delivered_per_interval = vec![1, 4, 3];
        streams[1].started = Time::from_secs_f64(2.0);
        streams[1].delivered_per_interval = vec![0, 2];
        streams[1].arrived_per_interval = vec![0, 6];
        let mut mice = arrivals("mice");
        mice.mss = 125_000;
        mice.delivered_per_interval = vec![4];
        let mut udp = source("udp");
        udp.packet = 62_500;
        udp.sent_per_interval = vec![0, 8, 8];
        udp.arrived_per_interval = vec![0, 4, 8];
        let o = Outcome {
            arrivals: vec![mice],
            cross: vec![udp],
            ..outcome(streams.to_vec(), 5, 0, 2)
        };
        let groups = [group("a", 0..2)];
        let m = fullpipe_metrics::measure(&groups, &traffic_of(&o), &RunSpec::default(), &o);
        let t = intervals(&groups, &m, &o);
        assert_eq!(
            t.text("name").unwrap(),
            ["a", "a", "a", "mice", "udp", "udp", "udp"]
        );
        assert_eq!(
            t.text("kind").unwrap()[2..5],
            ["flow", "short-flows", "udp"]
        );
        let column = |name: &str| t.float(name).unwrap().to_vec();
        let some = |v: &[f64]| v.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(column("time_s"), some(&[2.0, 4.0, 5.0, 2.0, 2.0, 4.0, 5.0]));
        assert_eq!(
            column("goodput_mbps"),
            some(&[0.5, 3.0, 3.0, 2.0, 0.0, 1.0, 4.0])
        );
        // 1, 7 and 10 Mbit since 1 s; the datagrams since 2 s.
        assert_eq!(
            column("cumulative_mbps"),
            [
                Some(1.0),
                Some(7.0 / 3.0),
                Some(2.5),
                Some(2.0),
                None,
                Some(1.0),
                Some(2.0)
            ]
        );
        assert_eq!(column("throughput_mbps")[1], Some(3.0));
        assert_eq!(
            column("sent_mbps"),
            [None, None, None, None, Some(0.0), Some(2.0), Some(4.0)]
        );
    }

    #[test]
    fn short_flows_and_answers_are_kept_one_by_one() {
        let mut a = arrivals("mice");
        a.transfers = vec![transfer(1.0, 10, Some(0.5)), transfer(2.0, 30, None)];
        a.transfers[1].lost = 1 << 63 | 1;
        let t = transfers(&[a]);
        assert_eq!(t.float("completion_time_s").unwrap(), [Some(0.5), None]);
        assert_eq!(t.int("lost_mask").unwrap()[1].cast_unsigned(), 1 << 63 | 1);
        let mut p = ping("probe");
        p.series = vec![(Time::from_secs_f64(1.0), Span::from_millis(80))];
        assert_eq!(answers(&[p]).float("rtt_ms").unwrap(), [Some(80.0)]);
    }
}
