//! Running a draft on both grounds, and what is seen there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use fullpipe_linux::{Linux, LinuxError, Product};
use fullpipe_run::{FlowOutcome, Ground as _, GroundError, Outcome, RunSpec, Trace};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{Span, Time};
use toml::Value;

use super::draft::Draft;
use super::draw::{Drawn, Paths, draw};
use crate::cell::guest;

/// The first case of a draft with its first seed, without time series.
///
/// # Errors
/// The text that it makes does not parse, or has no case.
pub fn resolve(draft: &Draft) -> Result<RunSpec, String> {
    let text = draft.to_string();
    let scenario = Scenario::parse(&text, "drawn", &Overrides::default());
    let scenario = scenario.map_err(|e| e.to_string())?;
    let case = scenario.cases.first().ok_or("it has no case")?;
    let mut spec = case.run_spec(scenario.seeds.first().copied().unwrap_or(1));
    spec.trace = Trace::Off;
    Ok(spec)
}

/// A run that differs from the given one in nothing that anybody could set: other random numbers,
/// the start elsewhere in a tick, the round trip some microseconds longer. The run itself for
/// `nth` 0.
pub fn perturbed(spec: &RunSpec, nth: u32) -> RunSpec {
    let mut spec = spec.clone();
    spec.seed += u64::from(nth);
    // 16 of them: at most 3.615 ms, no multiple of a packet time. Where in a tick of 4 ms its runs
    // begin is drawn by ground linux, too.
    let later = Span::from_micros(241) * u64::from(nth);
    for f in &mut spec.flows {
        f.start += later;
    }
    let longer = Span::from_micros(u64::from(nth));
    if let Some(link) = spec.links.first_mut() {
        link.delay += longer;
        for change in &mut link.schedule {
            change.delay = change.delay.map(|d| d + longer);
        }
    }
    spec
}

/// Between flows that start in one instant: longer than the kernel takes for a SYN.
const START_STEP: Span = Span::from_micros(1);

/// A run on [late hosts](RunSpec::with_late_hosts), and of flows that start in the same instant
/// another one is first in every other run.
pub fn by_late_hosts(mut spec: RunSpec, nth: u32) -> RunSpec {
    let flows = spec.flows.len() as u64;
    for (i, f) in spec.flows.iter_mut().enumerate() {
        let place = (i as u64 + u64::from(nth)) % flows;
        f.start += START_STEP * place;
    }
    spec.with_late_hosts()
}

/// A run of the simulator between hosts of the kernel that has this [fingerprint]: those of
/// preset `linux` are of 6.1.
///
/// [fingerprint]: Kernel::fingerprint
pub fn on_its_hosts(mut spec: RunSpec, fingerprint: &str) -> RunSpec {
    if release(fingerprint).is_some_and(|release| release >= NEW_HOSTS) {
        spec.flows.iter_mut().for_each(guest::on_6_12);
    }
    spec
}

/// First release of such hosts: windows follow `scaling_ratio` since then, send buffers since 6.3.
const NEW_HOSTS: (u32, u32) = (6, 6);

/// The first two numbers of the release in a fingerprint, which says `-linux-6.12.117-` of it.
fn release(fingerprint: &str) -> Option<(u32, u32)> {
    let (_, release) = fingerprint.split_once("-linux-")?;
    let mut numbers = release.split(['.', '-']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// What a ground made of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Seen {
    /// In the order of the scenario.
    pub flows: Vec<FlowSeen>,
}

/// A flow as one ground has shown it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FlowSeen {
    /// Mbit/s of payload, from the flow's start to its completion or to the end of the run.
    pub goodput: f64,
    /// Mean of its RTT samples, ms.
    pub rtt: f64,
    /// Smallest one, ms.
    pub rtt_min: f64,
    /// From the start to the last ACK, s; the rest of the run if it did not complete. `None`: no
    /// finite transfer.
    pub completion: Option<f64>,
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Data packets dropped on the path.
    pub dropped: u64,
    /// Segments that arrived a second time.
    pub duplicates: u64,
    /// Reductions.
    pub events: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Reductions undone.
    pub undone: u32,
    /// Mean window, segments.
    pub cwnd: f64,
    /// Largest window, segments.
    pub cwnd_max: f64,
}

impl Seen {
    /// From the outcome of a run.
    pub fn of(spec: &RunSpec, outcome: &Outcome) -> Self {
        let flows = spec.flows.iter().zip(&outcome.flows);
        let flows = flows.map(|(f, o)| FlowSeen::of(f.sender.transfer.is_some(), spec, o));
        Self {
            flows: flows.collect(),
        }
    }
}

impl FlowSeen {
    fn of(finite: bool, spec: &RunSpec, o: &FlowOutcome) -> Self {
        let end = o.completed.unwrap_or(Time::ZERO + spec.duration);
        let lasted = end.saturating_since(o.started).as_secs_f64();
        let bits = o.totals.delivered as f64 * f64::from(o.mss) * 8.0;
        let t = &o.totals;
        let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            goodput: bits / 1e6 / lasted.max(1e-6),
            rtt: o.rtt.mean_s().unwrap_or(0.0) * 1e3,
            rtt_min: o.rtt.min().map_or(0.0, Span::as_millis_f64),
            completion: finite.then_some(lasted),
            sent: t.sent,
            retransmits: t.retransmits,
            dropped: t.dropped,
            duplicates: t.duplicates,
            events: count(t.loss_events),
            timeouts: count(t.timeouts),
            undone: count(t.undone),
            cwnd: o.cwnd_mean,
            cwnd_max: o.cwnd_max,
        }
    }
}

/// A ground without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It cannot do this, and says why.
    Refused(String),
    /// A fault: of the program, or the kernel ended early.
    Fault(String),
    /// Stopped from outside.
    Stopped,
}

impl From<GroundError> for Failure {
    fn from(error: GroundError) -> Self {
        match error {
            GroundError::Unable { .. } => Self::Refused(error.to_string()),
            GroundError::Interrupted => Self::Stopped,
            other => Self::Fault(other.to_string()),
        }
    }
}

/// Runs in the simulator.
///
/// # Errors
/// [`Failure`]; a panic is a fault.
pub fn simulate(spec: &RunSpec) -> Result<Seen, Failure> {
    let run = || fullpipe_sim::run(spec);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(outcome)) => Ok(Seen::of(spec, &outcome)),
        Ok(Err(violation)) => Err(Failure::Fault(violation.what)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(Failure::Fault(format!("panic: {}", text.unwrap_or("?"))))
        }
    }
}

/// The kernel that runs are made in.
pub struct Kernel {
    product: Product,
    ground: Linux,
}

/// Wall time after which a run is given up. A run takes a second; on a machine where the search has
/// the lowest priority, minutes.
const LIMIT: Duration = Duration::from_secs(600);

impl Kernel {
    /// The one called `name` in the cache.
    ///
    /// # Errors
    /// It is not there, with the remedy.
    pub fn find(name: &str) -> Result<Self, String> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let words = |error: LinuxError| format!("{error}: {}", error.hint());
        Ok(Self {
            product: Product::find(name).map_err(words)?,
            ground: Linux::new(name, &NEVER).map_err(words)?,
        })
    }

    /// The scenario of this seed, with the version of BBR that this kernel has: as the kernel does
    /// it, or as the draft does where `bbr` is asked for.
    pub fn draw(&self, seed: u64, paths: Paths, asked: Option<&str>) -> Drawn {
        let mut drawn = draw(seed, paths);
        if self.product.bbr == Some(3) {
            let version_3 = if asked == Some("bbr") {
                "bbr"
            } else {
                "bbr3-linux"
            };
            for flow in drawn.draft.flows() {
                if flow.get("stack").and_then(Value::as_str) == Some("bbr-linux") {
                    flow.insert("stack".to_owned(), version_3.into());
                }
            }
        }
        drawn
    }

    /// What tells its runs from those of another kernel.
    pub fn fingerprint(&self) -> &str {
        self.ground.fingerprint()
    }

    /// Whether it can do a run.
    ///
    /// # Errors
    /// [`Failure::Refused`].
    pub fn check(&self, spec: &RunSpec) -> Result<(), Failure> {
        Ok(self.ground.check(spec)?)
    }

    /// Makes a run.
    ///
    /// # Errors
    /// [`Failure`]; a run that does not end is a fault.
    pub fn run(&self, spec: &RunSpec) -> Result<Seen, Failure> {
        // One byte a run: the ground asks for a flag that lives as long as the program.
        let late: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let ground = Linux::of(self.product.clone(), late);
        let (ended, end) = mpsc::channel::<()>();
        let outcome = std::thread::scope(|scope| {
            scope.spawn(move || {
                if end.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                    late.store(true, Ordering::Relaxed);
                }
            });
            let outcome = ground.run(spec);
            drop(ended);
            outcome
        });
        match outcome {
            Err(GroundError::Interrupted) if late.load(Ordering::Relaxed) => {
                let seconds = LIMIT.as_secs();
                Err(Failure::Fault(format!("no result after {seconds} s")))
            }
            other => Ok(Seen::of(spec, &other?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulators_hosts_are_of_the_kernels_release() {
        let text = "name = \"drawn\"\nduration = \"2s\"\n[path]\nrate = \"9Mbit/s\"\nrtt = \"20ms\"\n\
                    buffer = \"30 packets\"\n[[flow]]\nstack = \"reno-linux\"\npreset = \"linux\"\n";
        let first = |text: &str, fingerprint: &str| {
            let spec = resolve(&Draft::parse(text).unwrap()).unwrap();
            on_its_hosts(spec, fingerprint).flows[0]
                .receiver
                .window
                .first
        };
        let old = first(
            text,
            "8498193681d1f625-linux-6.1.192-hz250-1b0def79b14ea770",
        );
        assert_eq!(old, Some(45));
        let new = "a0e0c4f551ccf933-linux-6.12.117-hz250-bbr3-8f3046084c9cfcd6";
        assert!(first(text, new) > Some(20_000));
        let set = format!("{text}receive_window = \"50 segments\"\n");
        assert_eq!(first(&set, new), first(&set, "no kernel"));
    }
}
