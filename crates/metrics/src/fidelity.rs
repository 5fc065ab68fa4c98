//! How true a real run was to its specification, and when it does not count: because of the path,
//! or because of the hosts at its ends.
//!
//! The bounds, of the smallest round-trip time of the run:
//!
//! - packets leave the path late by 1 % of it at the 99th percentile, and always by a tenth of a
//!   millisecond;
//! - near host, path and far host together add 1 % of it to a mean round trip, or 0.2 ms if that is
//!   more, but never more than 5 %: a flow that is limited by its window
//!   loses as much of its goodput at the least, because a host that is late answers in bursts,
//!   which queue; a flow that listens to delay loses several times as much;
//! - no host is later than 5 % of it at the 99th percentile, and always by half a millisecond: that
//!   is the length of a silence, and of the burst behind it;
//! - nothing is lost that the specification does not lose.
//!
//! Over a network, where no scenario says what the path should be, they are five times as wide, and
//! of the mean round-trip time: its queues are a part of what is measured.
//!
//! `docs/grounds.md` has the measurements behind them. A run beyond one is flagged wherever it is
//! shown: its numbers are those of the test bed.

mod host;
mod words;

use fullpipe_run::Outcome;
use fullpipe_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use host::HostFidelity;
use host::worst_of;

/// Fidelity of one run, or the worst of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fidelity {
    /// How much later than computed packets left the path, milliseconds: median. Absent, like the
    /// other numbers of a path, where the path is that to another host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_p50_ms: Option<f64>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_p99_ms: Option<f64>,
    /// Largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_max_ms: Option<f64>,
    /// What `late_p99_ms` may be, milliseconds.
    pub late_bound_ms: f64,
    /// The smallest round-trip time of the run, milliseconds; 0 if there was none. The bounds are
    /// parts of it.
    #[serde(default)]
    pub rtt_ms: f64,
    /// What the path's lateness added to a mean round trip, both directions together, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_added_ms: Option<f64>,
    /// The host at which forward flows begin; absent where nothing of it was measured, as on ground
    /// kernel, and in results of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub near: Option<HostFidelity>,
    /// The other host; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far: Option<HostFidelity>,
    /// What near host, path and far host together added to a mean round trip, milliseconds: of each
    /// what is known.
    #[serde(default)]
    pub added_ms: f64,
    /// What `added_ms` may be, milliseconds.
    #[serde(default)]
    pub added_bound_ms: f64,
    /// What a host's 99th percentiles may be, milliseconds.
    #[serde(default)]
    pub host_bound_ms: f64,
    /// Packets lost that the specification does not lose.
    pub unplanned_drops: u64,
    /// Sends that the operating system refused; they are made up for, and part of a real host.
    pub local_stalls: u64,
    /// What else was measured before the run and during it; nothing on most grounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// False if the run was not what it claims: path or hosts too late, or with losses of its own.
    pub valid: bool,
}

/// A quantity of a path in real time that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was measured, with its direction or place, and its unit.
    pub name: String,
    /// By the specification; absent where there is only a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specified: Option<f64>,
    /// Absent where nothing came to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Smallest value that is accepted.
    pub least: f64,
    /// Largest one.
    pub most: f64,
    /// Within these bounds.
    pub holds: bool,
}

impl Check {
    fn of(check: &fullpipe_run::Check) -> Self {
        Self {
            name: format!("{}, {}", check.name, check.unit),
            specified: check.specified,
            measured: Some(check.measured).filter(|m| m.is_finite()),
            least: check.bound.0,
            most: check.bound.1,
            holds: check.holds(),
        }
    }

    /// Of two runs the one that failed, else the first.
    fn worse(a: &[Self], b: &[Self]) -> Vec<Self> {
        let failed = |name: &str| b.iter().find(|c| c.name == name && !c.holds);
        let of_both = a.iter().map(|c| match c.holds {
            true => failed(&c.name).unwrap_or(c).clone(),
            false => c.clone(),
        });
        let mut all: Vec<Self> = of_both.collect();
        let known: Vec<&str> = a.iter().map(|c| c.name.as_str()).collect();
        all.extend(
            b.iter()
                .filter(|c| !known.contains(&c.name.as_str()))
                .cloned(),
        );
        all
    }
}

impl Fidelity {
    /// Of a run; `None` where time is virtual.
    pub fn of(outcome: &Outcome) -> Option<Fidelity> {
        let f = outcome.fidelity.as_ref()?;
        let rtt = smallest_rtt(outcome);
        let late = |span: Span| f.path_added.map(|_| span.as_millis_f64());
        let path_added_ms = f.path_added.map(|span| span.as_millis_f64());
        let [near, far] = [&f.near, &f.far].map(HostFidelity::of);
        let bounds = match f.path_added {
            Some(_) => (added_bound(rtt), host_bound(rtt)),
            None => {
                let mean = mean_rtt(outcome);
                let added = (ADDED_OF_RTT * mean).max(WAKING_UP_MS);
                (OVER_A_NETWORK * added, OVER_A_NETWORK * host_bound(mean))
            }
        };
        let added = |host: &Option<HostFidelity>| host.as_ref().and_then(|h| h.added_ms);
        let parts = [added(&near), path_added_ms, added(&far)];
        let mut fidelity = Fidelity {
            late_p50_ms: late(f.late_p50),
            late_p99_ms: late(f.late_p99),
            late_max_ms: late(f.late_max),
            late_bound_ms: (LATE_OF_RTT * rtt).max(ALWAYS_LATE_MS),
            rtt_ms: rtt,
            path_added_ms,
            near,
            far,
            added_ms: parts.into_iter().flatten().sum(),
            added_bound_ms: bounds.0,
            host_bound_ms: bounds.1,
            unplanned_drops: f.unplanned_drops,
            local_stalls: f.local_stalls,
            checks: f.checks.iter().map(Check::of).collect(),
            valid: false,
        };
        let held = f.checks.iter().all(fullpipe_run::Check::holds);
        fidelity.valid = fidelity.excess() <= 1.0 && f.unplanned_drops == 0 && held;
        Some(fidelity)
    }

    /// The worst of several runs: latest and tightest, with all losses; `None` if none knows.
    pub fn worst<'a>(runs: impl Iterator<Item = &'a Fidelity>) -> Option<Fidelity> {
        runs.cloned().reduce(|a, b| Fidelity {
            late_p50_ms: worst_of(a.late_p50_ms, b.late_p50_ms, f64::max),
            late_p99_ms: worst_of(a.late_p99_ms, b.late_p99_ms, f64::max),
            late_max_ms: worst_of(a.late_max_ms, b.late_max_ms, f64::max),
            late_bound_ms: a.late_bound_ms.min(b.late_bound_ms),
            rtt_ms: a.rtt_ms.min(b.rtt_ms),
            path_added_ms: worst_of(a.path_added_ms, b.path_added_ms, f64::max),
            near: worst_of(a.near, b.near, HostFidelity::worse),
            far: worst_of(a.far, b.far, HostFidelity::worse),
            added_ms: a.added_ms.max(b.added_ms),
            added_bound_ms: a.added_bound_ms.min(b.added_bound_ms),
            host_bound_ms: a.host_bound_ms.min(b.host_bound_ms),
            unplanned_drops: a.unplanned_drops.saturating_add(b.unplanned_drops),
            local_stalls: a.local_stalls.saturating_add(b.local_stalls),
            checks: Check::worse(&a.checks, &b.checks),
            valid: a.valid && b.valid,
        })
    }

    /// How far beyond its bound the latest of all is: 1 at the bound.
    pub fn excess(&self) -> f64 {
        let hosts = [&self.near, &self.far].into_iter().flatten();
        let hosts = hosts.map(|h| part(h.p99_ms(), self.host_bound_ms));
        let path = self.late_p99_ms.map(|p99| part(p99, self.late_bound_ms));
        hosts
            .chain(path)
            .fold(part(self.added_ms, self.added_bound_ms), f64::max)
    }
}

/// A bound that an earlier version did not know binds nothing.
fn part(value: f64, bound: f64) -> f64 {
    if bound > 0.0 { value / bound } else { 0.0 }
}

/// Of flows, short flows and probes, milliseconds. A warm-up fills queues, whose delay is no part
/// of the path: where rows or answers of it are kept, they count.
fn smallest_rtt(outcome: &Outcome) -> f64 {
    let flows = outcome.flows.iter().map(|f| &f.rtt);
    let short = outcome.arrivals.iter().map(|a| &a.rtt);
    let probes = outcome.answered().map(|c| &c.delay);
    let measured = flows.chain(short).chain(probes).filter_map(|rtt| rtt.min());
    let rows = outcome.flows.iter().filter_map(|f| f.series.rows.last());
    let seen = rows.map(|row| row.min_rtt).filter(|rtt| *rtt < Span::MAX);
    let answers = outcome.answered().flat_map(|c| &c.series);
    let answers = answers.map(|(_, rtt)| *rtt);
    let all = measured.chain(seen).chain(answers);
    let all = all.filter(|rtt| *rtt > Span::ZERO);
    all.min().map_or(0.0, |rtt| rtt.as_millis_f64())
}

/// The smallest mean of flows, short flows and probes, milliseconds.
fn mean_rtt(outcome: &Outcome) -> f64 {
    let flows = outcome.flows.iter().map(|f| &f.rtt);
    let short = outcome.arrivals.iter().map(|a| &a.rtt);
    let probes = outcome.answered().map(|c| &c.delay);
    let all = flows
        .chain(short)
        .chain(probes)
        .filter_map(|rtt| rtt.mean_s());
    all.reduce(f64::min).map_or(0.0, |rtt| rtt * 1e3)
}

/// What hosts and path may add to a mean round trip of `rtt` milliseconds.
fn added_bound(rtt: f64) -> f64 {
    (ADDED_OF_RTT * rtt).max(WAKING_UP_MS.min(MOST_ADDED_OF_RTT * rtt))
}

/// How late a host may be at the 99th percentile.
fn host_bound(rtt: f64) -> f64 {
    (HOST_LATE_OF_RTT * rtt).max(ALWAYS_HOST_LATE_MS)
}

/// Part of the round-trip time by which packets may leave late at the 99th percentile.
const LATE_OF_RTT: f64 = 0.01;
/// What is never too late, milliseconds: the grain of timers on a busy machine.
const ALWAYS_LATE_MS: f64 = 0.1;
/// Part of the round-trip time that hosts and path may add to a mean round trip.
const ADDED_OF_RTT: f64 = 0.01;
/// What waking up four times takes on a quiet machine, milliseconds.
const WAKING_UP_MS: f64 = 0.2;
/// Part of the round-trip time that even that may not be.
const MOST_ADDED_OF_RTT: f64 = 0.05;
/// Part of the round-trip time by which a host may be late at the 99th percentile.
const HOST_LATE_OF_RTT: f64 = 0.05;
/// What is never too late for a host, milliseconds.
const ALWAYS_HOST_LATE_MS: f64 = 0.5;
/// Over a network the bounds are so many times as wide: 1 ms, or 5 % of the mean round trip. The
/// kernel's own TCP sends bursts of a millisecond there (`sk_pacing_shift` in `net/core/sock.c`,
/// Linux 6.1: 2^10 of a second).
const OVER_A_NETWORK: f64 = 5.0;

#[cfg(test)]
mod tests {
    use fullpipe_run::{HostLateness, Lateness};

    use super::*;
    use crate::testing::{flow, outcome};

    fn judged(rtt_ms: u64, f: fullpipe_run::Fidelity) -> Fidelity {
        let mut main = flow("a");
        main.rtt.record(Span::from_millis(rtt_ms));
        let mut o = outcome(vec![main], 1, 0, 1);
        o.fidelity = Some(f);
        Fidelity::of(&o).unwrap()
    }

    fn path(late_us: u64, drops: u64) -> fullpipe_run::Fidelity {
        fullpipe_run::Fidelity {
            late_p99: Span::from_micros(late_us),
            unplanned_drops: drops,
            path_added: Some(Span::ZERO),
            ..fullpipe_run::Fidelity::default()
        }
    }

    fn run(rtt_ms: u64, late_us: u64, drops: u64) -> Fidelity {
        judged(rtt_ms, path(late_us, drops))
    }

    /// Arrivals are handled so late: on average, and at the 99th percentile.
    fn host(mean_us: u64, p99_us: u64) -> HostLateness {
        let arrivals = Lateness {
            count: 1000,
            mean: Span::from_micros(mean_us),
            p99: Span::from_micros(p99_us),
            max: Span::from_micros(p99_us),
            ..Lateness::default()
        };
        HostLateness {
            arrivals: Some(arrivals),
            ..HostLateness::default()
        }
    }

    fn hosts(rtt_ms: u64, near: HostLateness, far: HostLateness) -> Fidelity {
        let f = path(100, 0);
        judged(rtt_ms, fullpipe_run::Fidelity { near, far, ..f })
    }

    /// A queue that a warm-up has filled stays full: the path itself was seen before.
    #[test]
    fn the_round_trip_is_that_of_the_whole_run() {
        let row = fullpipe_flow::TraceRow {
            min_rtt: Span::from_millis(40),
            ..fullpipe_flow::TraceRow::default()
        };
        let mut main = flow("a");
        main.rtt.record(Span::from_millis(54));
        main.series.rows.push(row);
        let mut o = outcome(vec![main], 1, 0, 1);
        o.fidelity = Some(path(10, 0));
        let f = Fidelity::of(&o).unwrap();
        assert_eq!(f.rtt_ms, 40.0);
        // Datagrams that nobody answers have none.
        let mut o = outcome(Vec::new(), 1, 0, 1);
        o.fidelity = Some(path(10, 0));
        let f = Fidelity {
            near: Some(HostFidelity::default()),
            ..Fidelity::of(&o).unwrap()
        };
        assert!(
            f.sentence()
                .contains("a round trip (RTT not measured) grew"),
            "{}",
            f.sentence()
        );
    }

    #[test]
    fn late_by_more_than_a_hundredth_of_the_rtt_or_a_loss_of_its_own_does_not_count() {
        assert!(run(80, 780, 0).valid);
        assert!(!run(80, 850, 0).valid);
        assert!(!run(80, 10, 1).valid);
        // A short path is not asked for what no timer does.
        assert!(run(1, 90, 0).valid && !run(1, 110, 0).valid);
        assert_eq!(Fidelity::of(&outcome(vec![flow("a")], 1, 0, 1)), None);
        assert!(run(80, 850, 0).faults()[0].starts_with("the path was late: packets left 0.85 ms"));
    }

    #[test]
    fn the_host_that_was_late_is_named() {
        let quiet = host(30, 150);
        assert!(hosts(80, quiet, quiet).valid);
        assert_eq!(hosts(80, quiet, quiet).faults(), [""; 0]);
        assert_eq!(hosts(80, quiet, quiet).remedy("udp", false), None);
        let late = host(900, 3900);
        for (near, far, name) in [(late, quiet, "near"), (quiet, late, "far")] {
            let f = hosts(80, near, far);
            let told = f.faults();
            assert!(!f.valid && told.len() == 1, "{told:?}");
            let expected = format!(
                "the {name} host was the latest: a round trip of 80 ms grew by 0.93 ms on average (bound 0.8 ms)"
            );
            assert!(told[0].starts_with(&expected), "{told:?}");
            let part = format!("{name} host 0.9 ms");
            assert!(f.sentence().contains(&part), "{}", f.sentence());
            let remedy = f.remedy("udp", false).unwrap();
            for word in ["chrt -r 10", "--spin", "--pin", "run fewer"] {
                assert!(remedy.contains(word), "{remedy}");
            }
            // Elsewhere there is no such flag.
            let remedy = f.remedy("kernel", false).unwrap();
            assert!(
                remedy.contains("chrt -r 10") && !remedy.contains("--"),
                "{remedy}"
            );
            // Nobody is advised what he has.
            for ground in ["udp", "kernel"] {
                let remedy = f.remedy(ground, true).unwrap();
                assert!(!remedy.contains("chrt"), "{remedy}");
            }
        }
        // Seldom, but for long: the mean does not show it.
        let seldom = host(100, 5000);
        let f = hosts(80, quiet, seldom);
        let told = f.faults();
        assert!(!f.valid && told.len() == 1, "{told:?}");
        assert!(
            told[0].starts_with("the far host was late: 5 ms at the 99th percentile (bound 4 ms)")
        );
    }

    /// The kernel's own TCP: the path is ours, of its hosts nothing is measured.
    #[test]
    fn of_a_host_that_was_not_measured_there_are_no_numbers() {
        let f = run(80, 10, 0);
        assert_eq!((&f.near, &f.far), (&None, &None));
        let json = serde_json::to_string(&f).unwrap();
        assert!(!json.contains("near") && !json.contains("far"), "{json}");
        let said = f.sentence();
        assert!(
            said.contains("near host not known") && said.contains("path 0 ms"),
            "{said}"
        );
        let lost = run(80, 10, 1);
        let (udp, kernel) = (
            lost.remedy("udp", false).unwrap(),
            lost.remedy("kernel", false).unwrap(),
        );
        assert!(
            udp.contains("rmem_max") && !kernel.contains("rmem_max"),
            "{kernel}"
        );
    }

    #[test]
    fn together_they_count_too() {
        let half = host(450, 2000);
        assert!(!hosts(80, half, half).valid);
        assert!(hosts(100, half, half).valid);
        let both = hosts(80, half, half);
        assert_eq!((both.added_ms, both.added_bound_ms), (0.9, 0.8));
    }

    /// Waking up is part of any real run, until it is a twentieth of the path; over a network it is
    /// always.
    #[test]
    fn short_paths_and_networks() {
        let awake = host(80, 200);
        assert!(hosts(5, awake, awake).valid);
        assert!(!hosts(2, awake, awake).valid);
        // A twentieth of 3 ms is 0.15.
        for (each_us, valid) in [(74, true), (76, false)] {
            let each = host(each_us, 200);
            assert_eq!(hosts(3, each, each).valid, valid, "{each_us}");
        }
        let network = fullpipe_run::Fidelity {
            near: awake,
            far: awake,
            ..fullpipe_run::Fidelity::default()
        };
        let f = judged(1, network.clone());
        assert!(f.valid);
        // A host that is busy with a gigabit per second; one that is in nobody's time slice.
        for (mean, p99, valid) in [(490, 2_400, true), (510, 2_400, false), (100, 2_600, false)] {
            let busy = host(mean, p99);
            let over = |f| {
                judged(
                    1,
                    fullpipe_run::Fidelity {
                        near: busy,
                        far: busy,
                        ..f
                    },
                )
            };
            assert_eq!(over(network.clone()).valid, valid, "{mean} {p99}");
            assert!(!over(path(10, 0)).valid, "on a path of the scenario");
        }
        // A queue of 40 ms is a part of the path. Of it 5 % may be added on average, and the 99th
        // percentile may be 25 %: each by itself.
        for (mean, p99) in [(980, 4_900), (490, 9_800)] {
            let busy = host(mean, p99);
            let f = fullpipe_run::Fidelity {
                near: busy,
                far: busy,
                ..network.clone()
            };
            let valid = [40, 39].map(|rtt| judged(rtt, f.clone()).valid);
            assert_eq!(valid, [true, false], "{mean} {p99}");
        }
        let f = judged(1, network);
        assert_eq!((f.late_p99_ms, f.path_added_ms), (None, None));
        let said = f.sentence();
        assert!(
            said.contains("path not known") && !said.contains("packets left"),
            "{said}"
        );
    }

    /// Of few timers the 99th percentile is the one that was latest.
    #[test]
    fn timers_are_judged_if_they_are_many() {
        let with = |count| {
            let mut paced = host(30, 100);
            paced.timers = Lateness {
                count,
                p99: Span::from_millis(6),
                ..Lateness::default()
            };
            hosts(80, paced, host(30, 100)).valid
        };
        assert!(with(20) && with(199));
        assert!(!with(200) && !with(2000));
    }

    #[test]
    fn what_is_not_measured_is_not_claimed() {
        // No receive stamps, but what left is known.
        let mut blind = HostLateness::default();
        blind.departures.count = 1;
        let f = hosts(80, host(30, 150), blind);
        assert_eq!(f.far.as_ref().unwrap().added_ms, None);
        assert!(
            f.sentence().contains("far host not known"),
            "{}",
            f.sentence()
        );
    }

    #[test]
    fn of_several_runs_the_worst_counts() {
        let runs = [
            run(80, 100, 0),
            run(40, 300, 2),
            hosts(80, host(900, 900), host(20, 70)),
        ];
        let worst = Fidelity::worst(runs.iter()).unwrap();
        assert_eq!((worst.late_p99_ms, worst.unplanned_drops), (Some(0.3), 2));
        assert!(!worst.valid);
        assert!((worst.late_bound_ms - 0.4).abs() < 0.01);
        assert_eq!(worst.near.as_ref().unwrap().added_ms, Some(0.9));
        assert_eq!(worst.far.as_ref().unwrap().added_ms, Some(0.02));
        assert!(
            worst.sentence().contains("2 unplanned drops"),
            "{}",
            worst.sentence()
        );
        assert_eq!(Fidelity::worst([].iter()), None);
        // Counted by another host, who may say anything.
        let mut claimed = path(100, u64::MAX);
        claimed.local_stalls = u64::MAX;
        let claimed = judged(80, claimed);
        let worst = Fidelity::worst([claimed.clone(), claimed].iter()).unwrap();
        assert_eq!(
            (worst.unplanned_drops, worst.local_stalls),
            (u64::MAX, u64::MAX)
        );
    }

    /// A result of an earlier version knows only its path.
    #[test]
    fn an_older_result_can_be_read() {
        let text = r#"{"late_p50_ms":0.1,"late_p99_ms":2.0,"late_max_ms":3.0,"late_bound_ms":0.8,"unplanned_drops":0,"local_stalls":0,"valid":false}"#;
        let old: Fidelity = serde_json::from_str(text).unwrap();
        assert_eq!((old.near.as_ref(), old.excess()), (None, 2.5));
        assert_eq!(old.faults().len(), 1);
        assert!(!old.sentence().contains("host"), "{}", old.sentence());
    }
}
