//! A run in virtual time: hosts and links, from the first event to the outcome.

use fullpipe_host::{HostCounts, HostOutcome, PathReport, outcome};
use fullpipe_run::{Outcome, RunSpec, Violation};
use fullpipe_units::Time;

use crate::hosts::Hosts;
use crate::link::{Link, Watch};
use crate::net::Net;
use crate::queue::EventQueue;
use crate::target::Layout;

/// A run in progress.
struct World {
    net: Net,
    hosts: Hosts,
    /// Events taken from the queue.
    events: u64,
}

impl World {
    fn new(spec: &RunSpec) -> Self {
        let watch = Watch::new(spec);
        let links = spec.links.iter().map(|l| Link::new(l, spec.seed, &watch));
        let mut net = Net::new(links.collect(), layout(spec));
        net.sample_queues(&watch, |_| true);
        Self {
            hosts: Hosts::new(spec, &mut net),
            net,
            events: 0,
        }
    }

    /// Runs to `end`.
    fn run(&mut self, end: Time) {
        while let Some((now, target)) = self.net.queue.next() {
            if now > end {
                break;
            }
            self.events += 1;
            self.net.step(now, target, &mut self.hosts);
        }
    }

    /// The same, until `goes_on` says no; true at the end. A loop of its own: a question costs
    /// every event of the other some instructions.
    #[cold]
    fn run_while(&mut self, end: Time, goes_on: &dyn Fn() -> bool) -> bool {
        while goes_on() {
            for taken in 0..BETWEEN {
                match self.net.queue.next() {
                    Some((now, target)) if now <= end => {
                        self.net.step(now, target, &mut self.hosts);
                    }
                    _ => {
                        self.events += taken;
                        return true;
                    }
                }
            }
            self.events += BETWEEN;
        }
        false
    }

    /// Checks conservation and returns the result.
    fn finish(self, spec: &RunSpec, end: Time) -> Result<Outcome, String> {
        let mut hosts: HostOutcome = self.hosts.finish(spec, &self.net, end)?;
        hosts.counts = HostCounts {
            turns: self.events,
            ..hosts.counts
        };
        let links = self.net.links.into_iter().enumerate();
        let links = links.map(|(i, link)| Ok((i, link.finish()?)));
        let path = PathReport {
            links: links.collect::<Result<_, String>>()?,
            exact: true,
            ..PathReport::default()
        };
        outcome(spec, hosts, path)
    }
}

fn layout(spec: &RunSpec) -> Layout {
    Layout::new(spec.links.len(), spec.cross.len(), spec.arrivals.len())
}

/// Events between two questions whether a run goes on, some hundredths of a second of it.
const BETWEEN: u64 = 1 << 16;

/// Runs one specification to its end.
///
/// # Errors
/// [`Violation`] if a conservation check fails: a fault of the simulator, never of the scenario.
pub fn run(spec: &RunSpec) -> Result<Outcome, Violation> {
    let end = Time::ZERO + spec.duration;
    let mut world = made(spec)?;
    world.run(end);
    finished(world, spec)
}

/// Runs one specification to its end, or until `goes_on` says no: then there is no outcome. It is
/// asked many times a second.
///
/// # Errors
/// As [`run`].
pub fn run_while(spec: &RunSpec, goes_on: &dyn Fn() -> bool) -> Result<Option<Outcome>, Violation> {
    let end = Time::ZERO + spec.duration;
    let mut world = made(spec)?;
    match world.run_while(end, goes_on) {
        true => finished(world, spec).map(Some),
        false => Ok(None),
    }
}

fn made(spec: &RunSpec) -> Result<World, Violation> {
    let targets = layout(spec).targets(spec.flows.len());
    if targets >= EventQueue::MAX_TARGETS {
        let what = format!("{targets} event targets are more than fit");
        return Err(violation(spec, what));
    }
    Ok(World::new(spec))
}

fn finished(world: World, spec: &RunSpec) -> Result<Outcome, Violation> {
    let end = Time::ZERO + spec.duration;
    world
        .finish(spec, end)
        .map_err(|what| violation(spec, what))
}

fn violation(spec: &RunSpec, what: String) -> Violation {
    Violation {
        seed: spec.seed,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{ArrivalSpec, Arrivals, Buffer, FlowSpec, LinkSpec, Loss, Session, SizeLaw};
    use fullpipe_units::{Rate, Span};

    /// The same run to its end, and none that is ended between two events.
    #[test]
    fn a_run_that_is_asked_is_the_same_run() {
        let rate = Rate::from_bits_per_sec(50_000_000);
        let half = Span::from_millis(10);
        let links = vec![
            LinkSpec::new("bottleneck", Some(rate), half, Buffer::Packets(50)),
            LinkSpec::pure_delay("return", half),
        ];
        let flow = FlowSpec::new(
            "main",
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![0],
            vec![1],
        );
        let spec = RunSpec {
            duration: Span::from_secs(20),
            links,
            flows: vec![flow],
            ..RunSpec::default()
        };
        let whole = run(&spec).unwrap();
        let asked = run_while(&spec, &|| true).unwrap().unwrap();
        assert_eq!(asked.flows[0].totals, whole.flows[0].totals);
        assert_eq!(asked.events, whole.events);
        let left = std::cell::Cell::new(1);
        let goes_on = || left.replace(left.get() - 1) > 0;
        assert!(run_while(&spec, &goes_on).unwrap().is_none());
    }

    /// 100 flows a second, each there for some tenths of a second: dozens of slots serve 20 000
    /// flows, with losses, timeouts and delayed ACKs that leave timers behind.
    #[test]
    fn slots_are_reused() {
        let rate = Rate::from_bits_per_sec(100_000_000);
        let delay = Span::from_millis(20);
        let mut bottleneck = LinkSpec::new("bottleneck", Some(rate), delay, Buffer::Packets(100));
        bottleneck.loss = Loss::Bernoulli { p: 0.02 };
        let spec = RunSpec {
            duration: Span::from_secs(200),
            links: vec![bottleneck, LinkSpec::pure_delay("return", delay)],
            arrivals: vec![ArrivalSpec {
                template: FlowSpec::new(
                    "mice",
                    StackSpec::parse("reno").unwrap(),
                    SenderConfig::preset(Preset::Y2026, 1500),
                    ReceiverConfig::preset(Preset::Y2026),
                    vec![0],
                    vec![1],
                ),
                arrivals: Arrivals::Poisson { per_second: 100.0 },
                sizes: SizeLaw::Uniform(1, 20),
                session: Session::default(),
                seeded_by: None,
            }],
            ..RunSpec::default()
        };
        let mut world = World::new(&spec);
        world.run(Time::ZERO + spec.duration);
        let slots = world.hosts.host.senders.len();
        assert!(slots < 120, "{slots}");
        assert!(world.net.queue.len() < 1000, "{}", world.net.queue.len());
        let senders = world.hosts.host.senders.iter();
        let busy = senders.filter(|s| s.is_short()).count();
        let o = world.finish(&spec, Time::ZERO + spec.duration).unwrap();
        let transfers = &o.arrivals[0].transfers;
        assert!(transfers.len() > 19_000);
        let unfinished = transfers.iter().filter(|t| t.completion.is_none()).count();
        assert!(unfinished <= busy, "{unfinished} {busy}");
        assert!(o.arrivals[0].totals.timeouts > 10);
    }
}
