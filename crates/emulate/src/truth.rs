//! Whether a path was what it was specified to be: measured before a run, watched during it, judged
//! after it.
//!
//! A run is flagged, not corrected: its numbers are those of another path.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

pub use fullpipe_run::Check;
use fullpipe_run::{Buffer, Discipline, Lateness, LinkSpec, Loss, RunSpec};
use fullpipe_units::Span;

use crate::emulation::{EmulationError, LoopConfig, LoopOutcome};
use crate::namespace::Side;
use crate::netem::{SAVED, Shape};
use crate::probe::{Arrival, Probe};
use crate::stage::{KernelOutcome, Stage};

/// Small packets of the test of the delay, those of pairs behind the first, and their size and
/// distance.
const PINGS: u32 = 25;
const FEW_PINGS: u32 = 9;
const PING: u16 = 100;
const PING_GAP: Duration = Duration::from_millis(4);
/// A train lasts so long at least, and no longer than that.
const SHORTEST: f64 = 0.06;
const LONGEST: f64 = 2.0;
/// Fewest and most packets of a train.
const FEW: u32 = 40;
const MANY: u32 = 300_000;
/// Of the rate: what a path may depart by.
const RATE_TOLERANCE: f64 = 0.005;
/// Of the buffer, beside two packets and [`SLACK`].
const BUFFER_TOLERANCE: f64 = 0.03;
/// A tick and the way into and out of the kernel, seconds: what a time may be longer by.
const SLACK: f64 = 200e-6;
/// Packets are late by at most this part of the round trip (99 of 100), but may be by [`LATE`]
/// seconds on a short one.
const LATE_PART: f64 = 0.01;
const LATE: f64 = 250e-6;
/// Most of a core that the path's thread may take: the kernel takes the core away at 95 %.
const CORE: f64 = 0.85;

/// One direction as specified, for packets of a size.
#[derive(Clone, Copy, Debug)]
struct Direction {
    /// Slowest rate, bit/s; `None`: nothing transmits.
    rate: Option<f64>,
    /// Of a small packet that finds every queue empty, seconds.
    delay: f64,
    /// Most that a full packet waits at the slowest link, seconds, if that is limited.
    room: Option<f64>,
    /// Time at the rate that a pause saves for what comes then, seconds.
    saved: f64,
}

impl Direction {
    fn of(spec: &RunSpec, links: &[usize], mtu: u16) -> Self {
        let delay = |l: &usize| spec.links[*l].unloaded(PING, spec.seed).as_secs_f64();
        let link = slowest_of(spec, links).map(|l| &spec.links[l]);
        let rate = link.and_then(|l| l.rate);
        let rate = rate.map(|r| r.as_bits_per_sec() as f64);
        let room = link.zip(rate).and_then(|(link, rate)| {
            let transmit = f64::from(mtu) * 8.0 / rate;
            match link.buffer {
                Buffer::Packets(n) => Some((n as f64 - 1.0) * transmit),
                Buffer::Bytes(n) => Some((n as f64 / f64::from(mtu)).floor() * transmit - transmit),
                Buffer::Time(t) => Some(t.as_secs_f64() - transmit),
                Buffer::Unlimited => None,
            }
        });
        Self {
            rate,
            delay: links.iter().map(delay).sum(),
            room,
            saved: 0.0,
        }
    }

    /// The same of the kernel's queues: a token bucket lets a packet go that finds it full, and
    /// takes no time to transmit it.
    fn in_kernel(mut self, shape: &Shape) -> Self {
        self.delay = shape.delay.as_secs_f64();
        self.saved = match shape.bottleneck {
            Some(_) => SAVED.as_secs_f64(),
            None => 0.0,
        };
        self
    }
}

/// Measures the path of each pair before a run: base delay, rate, buffer and burst, both ways, over
/// the links at their time zero without what is random, changes, or drops by an opinion. Pairs with
/// the same links are one; of links that several share rate and buffer are measured once. What
/// would take too long, or has no constant rate, is left out, and so are pairs behind the eighth.
///
/// # Errors
/// [`EmulationError`].
pub fn before(stage: &Stage, mtu: u16, config: LoopConfig) -> Result<Vec<Check>, EmulationError> {
    let ways = Way::all(stage.spec());
    let mut found: Vec<Vec<Check>> = vec![Vec::new(); ways.len()];
    let fails = |checks: &Vec<Check>| !checks.iter().all(Check::holds);
    // The instrument is an ordinary thread, and may be at fault itself; what is wrong with the path
    // is wrong every time.
    for again in 0..TRIES {
        let wanted: Vec<usize> = (0..ways.len())
            .filter(|k| again == 0 || fails(&found[*k]))
            .collect();
        if wanted.is_empty() {
            break;
        }
        let carrying = match stage.in_kernel() {
            Some(_) => None,
            None => Some(stage.carry_over(&plain(stage.spec()), config)?),
        };
        let measured = wanted.into_iter().try_for_each(|k| {
            found[k] = ways[k].measure(stage, mtu)?;
            Ok::<_, io::Error>(())
        });
        if let Some(carrying) = carrying {
            carrying.stop()?;
        }
        measured?;
    }
    Ok(found.concat())
}

/// Measurements before a run counts as flagged.
const TRIES: usize = 3;

/// Ways that are measured at most: each takes a tenth of a second and a round trip.
const WAYS: usize = 16;

/// What the packets of a pair cross, from one side.
#[derive(Debug)]
struct Way<'a> {
    pair: usize,
    from: Side,
    links: &'a [usize],
    /// In the names of its checks.
    word: String,
    /// Rate and buffer are measured here, and not on another way over the same slowest link.
    is_loaded: bool,
}

impl<'a> Way<'a> {
    fn all(spec: &'a RunSpec) -> Vec<Self> {
        let (mut known, mut slowest) = (BTreeSet::new(), BTreeSet::new());
        let mut ways = Vec::new();
        for (pair, flow) in spec.flows.iter().enumerate() {
            let (forward, back) = match flow.reverse {
                false => (&flow.forward, &flow.back),
                true => (&flow.back, &flow.forward),
            };
            if ways.len() == WAYS || !known.insert((forward, back)) {
                continue;
            }
            for (from, links, word) in [(Side::Near, forward, "forward"), (Side::Far, back, "back")]
            {
                let changes = links.iter().any(|l| spec.links[*l].trace.is_some());
                ways.push(Self {
                    pair,
                    from,
                    links,
                    word: match pair {
                        0 => word.to_owned(),
                        _ => format!("{word}, {}", flow.name),
                    },
                    is_loaded: !changes && slowest.insert(slowest_of(spec, links)),
                });
            }
        }
        ways
    }

    fn measure(&self, stage: &Stage, mtu: u16) -> io::Result<Vec<Check>> {
        let mut direction = Direction::of(&plain(stage.spec()), self.links, mtu);
        if let Some([near, far]) = stage.in_kernel() {
            direction = direction.in_kernel(match self.from {
                Side::Near => near,
                Side::Far => far,
            });
        }
        let probe = Probe::new(stage, self.from, self.pair)?;
        let pings = if self.pair == 0 { PINGS } else { FEW_PINGS };
        let mut checks = Vec::new();
        let base = delay(&probe, direction, pings, &self.word, &mut checks)?;
        if self.is_loaded {
            train(&probe, direction, mtu, (&self.word, base), &mut checks)?;
        }
        Ok(checks)
    }
}

/// The slowest of these links; `None`: nothing transmits.
fn slowest_of(spec: &RunSpec, links: &[usize]) -> Option<usize> {
    let with_rate = links.iter().copied();
    let with_rate = with_rate.filter(|l| spec.links[*l].rate.is_some());
    with_rate.min_by_key(|l| spec.links[*l].rate)
}

/// The base delay; returns the median as measured, seconds.
fn delay(
    probe: &Probe,
    direction: Direction,
    pings: u32,
    word: &str,
    checks: &mut Vec<Check>,
) -> io::Result<f64> {
    let patience = Duration::from_secs_f64(direction.delay + 0.2);
    let (pings, gap) = unhurried(pings, direction.rate);
    let came = probe.send(pings, PING, gap, patience)?;
    let mut delays: Vec<f64> = came.iter().map(|a| a.delay.as_secs_f64()).collect();
    delays.sort_by(f64::total_cmp);
    let median = delays.get(delays.len() / 2).copied().unwrap_or(f64::NAN);
    checks.push(Check {
        name: format!("delay {word}"),
        unit: "ms".to_owned(),
        specified: Some(direction.delay * 1e3),
        measured: median * 1e3,
        // Stamps of two clocks' readings, never before its time by more than their grain.
        bound: (
            direction.delay * 1e3 - 0.01,
            (direction.delay + SLACK) * 1e3,
        ),
    });
    checks.push(Check {
        name: format!("small packets {word}"),
        unit: "packets".to_owned(),
        specified: Some(f64::from(pings)),
        measured: came.len() as f64,
        bound: (f64::from(pings), f64::from(pings)),
    });
    Ok(median)
}

/// Small packets of which none waits for the one before, and their distance: of a slow path fewer.
fn unhurried(pings: u32, rate: Option<f64>) -> (u32, Duration) {
    let transmit = rate.map_or(0.0, |rate| f64::from(PING) * 8.0 / rate.max(1.0));
    let gap = (transmit + SLACK).max(PING_GAP.as_secs_f64());
    let most = (LONGEST / gap) as u32;
    (pings.min(most).max(1), Duration::from_secs_f64(gap))
}

/// Rate, buffer and burst, by packets as fast as they go.
fn train(
    probe: &Probe,
    direction: Direction,
    mtu: u16,
    (word, base): (&str, f64),
    checks: &mut Vec<Check>,
) -> io::Result<()> {
    let Some(rate) = direction.rate.filter(|rate| *rate > 0.0) else {
        return Ok(());
    };
    let bits = f64::from(mtu) * 8.0;
    let transmit = bits / rate;
    let room = direction.room.filter(|room| *room < LONGEST);
    // Twice the buffer: what the path sends on meanwhile must not keep it from being full.
    let lasts = room.map_or(SHORTEST, |room| (2.0 * room).max(SHORTEST));
    let count = ((lasts / transmit) as u32).clamp(FEW, MANY);
    let longest = f64::from(count) * transmit;
    if longest > 2.0 * LONGEST {
        return Ok(());
    }
    let patience = Duration::from_secs_f64(direction.delay + transmit * 3.0 + 0.3);
    let came = probe.send(count, mtu, Duration::ZERO, patience)?;
    let (Some(first), Some(last)) = (came.first(), came.last()) else {
        checks.push(Check {
            name: format!("rate {word}"),
            unit: "Mbit/s".to_owned(),
            specified: Some(rate / 1e6),
            measured: 0.0,
            bound: (rate / 1e6, rate / 1e6),
        });
        return Ok(());
    };
    let took = (last.at - first.at) as f64 / 1e9;
    let measured = (came.len() - 1) as f64 * bits / took.max(1e-9);
    let tolerance = RATE_TOLERANCE + 2.0 * SLACK / took.max(1e-9);
    checks.push(Check {
        name: format!("rate {word}"),
        unit: "Mbit/s".to_owned(),
        specified: Some(rate / 1e6),
        measured: measured / 1e6,
        bound: (
            rate * (1.0 - tolerance) / 1e6,
            rate * (1.0 + tolerance + direction.saved / took.max(1e-9)) / 1e6,
        ),
    });
    let missing = came.len() < count as usize;
    if let Some(room) = room.filter(|_| missing) {
        // Those that find the queue full are more than 2 of 100; the few longest delays are of a
        // sender that lost its processor between a stamp and its call.
        let mut delays: Vec<f64> = came.iter().map(|a| a.delay.as_secs_f64()).collect();
        delays.sort_by(f64::total_cmp);
        let queued = delays[delays.len() * 98 / 100] - base;
        let tolerance = room * BUFFER_TOLERANCE + 2.0 * transmit + 10.0 * SLACK;
        checks.push(Check {
            name: format!("buffer {word}"),
            unit: "ms".to_owned(),
            specified: Some(room * 1e3),
            measured: queued * 1e3,
            bound: ((room - tolerance) * 1e3, (room + tolerance) * 1e3),
        });
    }
    checks.push(Check {
        name: format!("burst {word}"),
        unit: "packets".to_owned(),
        specified: None,
        measured: burst(&came, transmit),
        bound: (1.0, (1e-3 / transmit).max(2.0)),
    });
    Ok(())
}

/// How many packets come at once: 99 of 100 are in a group of at most so many.
fn burst(came: &[Arrival], transmit: f64) -> f64 {
    let apart = (transmit * 1e9 / 2.0) as u64;
    let mut groups: Vec<usize> = Vec::new();
    let mut last = None;
    for arrival in came {
        match (last, groups.last_mut()) {
            (Some(before), Some(group)) if arrival.at.saturating_sub(before) < apart => *group += 1,
            _ => groups.push(1),
        }
        last = Some(arrival.at);
    }
    groups.sort_unstable();
    let mut rest = came.len() * 99 / 100;
    for group in &groups {
        if *group >= rest {
            return *group as f64;
        }
        rest -= group;
    }
    groups.last().map_or(1.0, |g| *g as f64)
}

/// The links of a specification as a measurement can foretell them.
fn plain(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    // However short the run: links end with it, and the measurement does not.
    spec.duration = spec.duration.max(Span::from_secs(3600));
    for link in &mut spec.links {
        // Every field, so that a new one is not forgotten.
        let LinkSpec {
            name: _,
            rate: _,
            delay: _,
            delay_spread: _,
            buffer: _,
            discipline,
            loss,
            loss_of_acks,
            jitter,
            reorder,
            policer,
            schedule,
            trace: _,
            watched: _,
            is_interface: _,
        } = link;
        *discipline = Discipline::DropTail;
        *loss = Loss::None;
        *loss_of_acks = false;
        *jitter = Span::ZERO;
        *reorder = None;
        *policer = None;
        schedule.clear();
    }
    spec
}

/// What was watched during a run beside the loop itself.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Packets that the two devices lost.
    pub device_drops: u64,
    /// How late an ordinary thread of this machine woke up; `None`: that says nothing of the run.
    pub wake_ups: Option<Lateness>,
}

/// Judges a run over the kernel's queues, of which nobody sees how late they are; `rtt` is that of
/// its path.
pub fn during_in_kernel(outcome: &KernelOutcome, watched: &Watched, rtt: Span) -> Vec<Check> {
    let others = [
        none("lost by devices", watched.device_drops),
        none(
            "without room where they are delayed",
            outcome.ways.iter().map(|way| way.refused).sum(),
        ),
    ];
    let wake_ups = watched.wake_ups.map(|late| wake_ups(late, bound(rtt)));
    wake_ups.into_iter().chain(others).collect()
}

/// What a packet may be late by on a round trip of `rtt`, milliseconds.
fn bound(rtt: Span) -> f64 {
    (rtt.as_secs_f64() * LATE_PART).max(LATE) * 1e3
}

fn none(name: &str, n: u64) -> Check {
    Check {
        name: name.to_owned(),
        unit: "packets".to_owned(),
        specified: Some(0.0),
        measured: n as f64,
        bound: (0.0, 0.0),
    }
}

fn wake_ups(late: Lateness, bound: f64) -> Check {
    Check {
        name: "late wake-ups of programs, p99".to_owned(),
        unit: "ms".to_owned(),
        specified: None,
        measured: late.p99.as_secs_f64() * 1e3,
        // An end host that is late adds to the round trip as the path does; programs are not the
        // path, so the bound is wider.
        bound: (0.0, 5.0 * bound.max(1.0)),
    }
}

/// Judges a run by what was watched during it; `rtt` is that of its path.
pub fn during(outcome: &LoopOutcome, watched: &Watched, rtt: Span) -> Vec<Check> {
    let late = Lateness::of(&outcome.lateness);
    let bound = bound(rtt);
    let late = Check {
        name: "late departures, p99".to_owned(),
        unit: "ms".to_owned(),
        specified: None,
        measured: late.p99.as_secs_f64() * 1e3,
        bound: (0.0, bound),
    };
    let others = [
        none("lost by devices", watched.device_drops),
        none("refused by devices", outcome.refused),
        none("without room in memory", outcome.overflow),
        Check {
            name: "the path's thread".to_owned(),
            unit: "cores".to_owned(),
            specified: None,
            measured: outcome.cpu.as_secs_f64() / outcome.span.as_secs_f64().max(1e-9),
            bound: (0.0, CORE),
        },
    ];
    let wake_ups = watched.wake_ups.map(|late| wake_ups(late, bound));
    let all = [late].into_iter().chain(wake_ups).chain(others);
    all.collect()
}

/// All that was measured of a run.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Before it; `None`: nobody looked.
    pub before: Option<Vec<Check>>,
    /// While it lasted.
    pub during: Vec<Check>,
}

impl Verdict {
    /// Whether the path was the one that was specified.
    pub fn is_true(&self) -> bool {
        self.flags().next().is_none()
    }

    /// What was not as it should have been.
    pub fn flags(&self) -> impl Iterator<Item = &Check> {
        self.all().filter(|check| !check.holds())
    }

    /// Every check, those before the run first.
    pub fn all(&self) -> impl Iterator<Item = &Check> {
        self.before.iter().flatten().chain(&self.during)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_packets_do_not_wait_for_one_another() {
        let ms = Duration::from_millis;
        assert_eq!(unhurried(25, Some(1e9)), (25, PING_GAP));
        assert_eq!(unhurried(25, None), (25, PING_GAP));
        for (rate, count, transmit) in [(32e3, 25, 25), (8e3, 19, 100), (1e3, 2, 800)] {
            let (pings, gap) = unhurried(25, Some(rate));
            assert_eq!(pings, count, "{rate}");
            assert!(gap >= ms(transmit) && gap <= ms(transmit + 1), "{gap:?}");
        }
        assert_eq!(unhurried(25, Some(1.0)).0, 1);
    }
}
