//! Known causes for which two grounds part, each with its switch: the same ground with the cause
//! taken away, or brought in.

use std::collections::BTreeSet;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_kernel::{Options, RunningKernel};
use fullpipe_linux::{DEFAULT_VERSION, Linux, Product};
use fullpipe_run::{FlowSpec, Ground, GroundError, RunSpec};
use fullpipe_units::{Bytes, Span};

use crate::changed::Changed;
use crate::{Settings, Sim, sim, udp};

const SIM: &str = sim::ENTRY.name;
const UDP: &str = udp::ENTRY.name;

/// A cause that can be switched.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// One word.
    pub name: &'static str,
    /// The sentence that is shown while it is tried.
    pub about: &'static str,
    /// Name of the ground that has the switch; `None`: it is one of the scenario, of any ground.
    pub ground: Option<&'static str>,
    concerns: Concerns,
    make: Make,
}

/// Whether this flow can be part of it.
type Concerns = fn(&FlowSpec) -> bool;

/// The switched ground; `None`: there is nothing to switch here.
type MakeNow = fn(&Settings) -> Option<Result<Box<dyn Ground>, GroundError>>;

/// The way to the switched ground, by when what it needs is known.
#[derive(Clone, Copy, Debug)]
enum Make {
    /// Needs nothing of what ran before.
    Now(MakeNow),
    /// The same of the ground of this name, of what the other ground's test bed added to a mean
    /// round trip.
    Later(&'static str, fn(Span) -> Box<dyn Ground>),
    /// What any ground runs, where phase decides who loses, in the place of what it is given.
    Phase(fn(&RunSpec) -> RunSpec),
}

/// A ground with a switch turned.
pub enum Switched {
    /// Ready to run.
    Now(Box<dyn Ground>),
    /// Of the ground of this name: made of what the other ground's test bed added to a mean round
    /// trip.
    Later(&'static str, Box<dyn Fn(Span) -> Box<dyn Ground>>),
    /// Any ground can be switched, and both of a pair are, where phase decides who loses.
    Phase(Box<Switching>),
}

/// A ground, and the same with a switch turned.
pub type Switching = dyn for<'a> Fn(&'a dyn Ground) -> Box<dyn Ground + 'a>;

impl Cause {
    /// Whether this flow can show it.
    pub fn concerns(&self, flow: &FlowSpec) -> bool {
        (self.concerns)(flow)
    }

    /// The ground with the switch turned; `None`: not on this machine.
    pub fn switched(&self, settings: &Settings) -> Option<Result<Switched, GroundError>> {
        match self.make {
            Make::Now(make) => make(settings).map(|made| made.map(Switched::Now)),
            Make::Later(on, make) => Some(Ok(Switched::Later(on, Box::new(make)))),
            Make::Phase(by) => {
                let name = self.name;
                Some(Ok(Switched::Phase(Box::new(move |ground| {
                    Box::new(Changed::new(ground, name, by))
                }))))
            }
        }
    }
}

/// Every cause, the cheapest to test first.
pub const CAUSES: &[Cause] = &[
    Cause {
        name: "module",
        about: "the simulator's flows by the kernel's own modules, such as `cubic-linux` for `cubic`",
        ground: Some(SIM),
        concerns: |flow| module(&flow.stack).is_some(),
        make: Make::Now(|_| Some(Ok(restacked("module", module)))),
    },
    Cause {
        name: "preset",
        about: "the simulator's hosts are Linux's: preset `linux`, but for the keys that the \
                scenario sets",
        ground: Some(SIM),
        concerns: another_host,
        make: Make::Now(|_| Some(Ok(switched_sim("preset", on_linux)))),
    },
    Cause {
        name: "host",
        about: "`module` and `preset` together: the kernel's own modules on Linux's hosts",
        ground: Some(SIM),
        concerns: |flow| module(&flow.stack).is_some() || another_host(flow),
        make: Make::Now(|_| Some(Ok(switched_sim("host", linux_host)))),
    },
    Cause {
        name: "release",
        about: "the simulator's Linux hosts are those of the other release: preset `linux-6.6` in \
                the place of `linux`, or the other way round",
        ground: Some(SIM),
        concerns: |flow| flow.preset.is_some_and(Preset::is_linux),
        make: Make::Now(|_| Some(Ok(switched_sim("release", on_other_release)))),
    },
    Cause {
        name: "hystart",
        about: "the simulator's CUBIC without HyStart: the other side did not leave slow start by it",
        ground: Some(SIM),
        concerns: |flow| without_hystart(&flow.stack).is_some(),
        make: Make::Now(|_| Some(Ok(restacked("hystart", without_hystart)))),
    },
    Cause {
        name: "hystart-gso",
        about: "the simulator's HyStart allows trains of 64 kB, as on a device with segmentation \
                offload",
        ground: Some(SIM),
        concerns: |flow| with_trains(&flow.stack).is_some(),
        make: Make::Now(|_| Some(Ok(restacked("hystart-gso", with_trains)))),
    },
    Cause {
        name: "host-gso",
        about: "`host` and `hystart-gso` together: the kernel's own modules on Linux's hosts, whose \
                device takes trains of 64 kB",
        ground: Some(SIM),
        concerns: |flow| {
            let own = module(&flow.stack);
            let is_other = own.is_some() || another_host(flow);
            is_other && with_trains(own.as_ref().unwrap_or(&flow.stack)).is_some()
        },
        make: Make::Now(|_| {
            Some(Ok(switched_sim("host-gso", |spec| {
                with_stacks(&linux_host(spec), with_trains)
            })))
        }),
    },
    Cause {
        name: "ties",
        about: "the simulator's hosts are up to 0.4 us late, as a kernel's are: a packet that \
                arrives in the instant of a departure does not always find room",
        ground: Some(SIM),
        concerns: |_| true,
        make: Make::Now(|_| {
            Some(Ok(switched_sim("ties", |spec| {
                spec.clone().with_late_hosts()
            })))
        }),
    },
    Cause {
        name: "trains",
        about: "the simulator's senders hand over trains of up to 64 kB, as over a device with \
                segmentation offload",
        ground: Some(SIM),
        concerns: |_| true,
        make: Make::Now(|_| Some(Ok(switched_sim("trains", in_trains)))),
    },
    Cause {
        name: "late",
        about: "the simulator's path is longer by what the test bed added to a mean round trip",
        ground: Some(SIM),
        concerns: |_| true,
        make: Make::Later(SIM, |late| {
            switched_sim(&named("late", late), move |s| longer(s, late))
        }),
    },
    Cause {
        name: "test-bed",
        about: "`ties`, `trains` and `late` together: hosts that are late now and then, trains, and \
                a longer path",
        ground: Some(SIM),
        concerns: |_| true,
        make: Make::Later(SIM, |late| {
            switched_sim(&named("test-bed", late), move |spec| {
                in_trains(&longer(spec, late)).with_late_hosts()
            })
        }),
    },
    Cause {
        name: "all",
        about: "`host` and `test-bed` together: all that the simulator can imitate",
        ground: Some(SIM),
        concerns: |flow| module(&flow.stack).is_some() || another_host(flow),
        make: Make::Later(SIM, |late| {
            switched_sim(&named("all", late), move |spec| {
                in_trains(&longer(&linux_host(spec), late)).with_late_hosts()
            })
        }),
    },
    Cause {
        name: "phase",
        about: "on both grounds, links have jitter of up to the time of one packet: chance, not phase, \
                decides who comes first into a queue",
        ground: None,
        concerns: |_| true,
        make: Make::Phase(jittered),
    },
    Cause {
        name: "version",
        about: "another kernel of the cache",
        ground: Some(Linux::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| {
            let own = settings.kernel.name.as_deref().unwrap_or(DEFAULT_VERSION);
            let release = Product::find(own).ok()?.release;
            let others = Product::all().into_iter();
            // One that another version of the program has built does not run.
            let mut others = others.filter(|(_, other)| other.release != release);
            let other = others.find_map(|(name, _)| Linux::new(&name, settings.interrupt).ok())?;
            Some(Ok(boxed(other)))
        }),
    },
    Cause {
        name: "wake-ups",
        about: "the same once more: nothing differs but who woke up when",
        ground: Some(RunningKernel::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| Some(kernel(settings, |options| options))),
    },
    Cause {
        name: "wake-ups",
        about: "the same once more: nothing differs but who woke up when",
        ground: Some(UDP),
        concerns: |_| true,
        make: Make::Now(|settings| Some((udp::ENTRY.build)(settings.clone()))),
    },
    Cause {
        name: "offload",
        about: "the hosts hand over single segments, not up to 64 kB at once",
        ground: Some(RunningKernel::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| {
            Some(kernel(settings, |options| Options {
                offload: false,
                ..options
            }))
        }),
    },
    Cause {
        name: "merging",
        about: "packets that arrive together are not merged, so ACKs are not either",
        ground: Some(RunningKernel::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| {
            Some(kernel(settings, |options| Options {
                merge: false,
                ..options
            }))
        }),
    },
    Cause {
        name: "autotuning",
        about: "the receiver's buffer grows from 128 kB to 6 MB by itself, as it comes",
        ground: Some(RunningKernel::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| {
            Some(kernel(settings, |options| Options {
                autotuning: true,
                ..options
            }))
        }),
    },
    Cause {
        name: "metrics-cache",
        about: "the kernel remembers thresholds and RTTs of earlier connections; one went before",
        ground: Some(RunningKernel::NAME),
        concerns: |_| true,
        make: Make::Now(|settings| {
            Some(kernel(settings, |options| Options {
                remembers: true,
                ..options
            }))
        }),
    },
];

fn boxed(ground: impl Ground + 'static) -> Box<dyn Ground> {
    Box::new(ground)
}

fn kernel(
    settings: &Settings,
    change: fn(Options) -> Options,
) -> Result<Box<dyn Ground>, GroundError> {
    RunningKernel::new(change(settings.running), settings.interrupt).map(boxed)
}

/// The simulator with other stacks in the place of those that `by` knows.
fn restacked(name: &str, by: Restack) -> Box<dyn Ground> {
    switched_sim(name, move |spec| with_stacks(spec, by))
}

fn with_stacks(spec: &RunSpec, by: Restack) -> RunSpec {
    let mut spec = spec.clone();
    for flow in all_flows(&mut spec) {
        if let Some(other) = by(&flow.stack) {
            flow.stack = other;
        }
    }
    spec
}

/// Lasting flows, and what short ones are like.
fn all_flows(spec: &mut RunSpec) -> impl Iterator<Item = &mut FlowSpec> {
    let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
    spec.flows.iter_mut().chain(templates)
}

/// The kernel's modules on Linux's hosts.
fn linux_host(spec: &RunSpec) -> RunSpec {
    on_linux(&with_stacks(spec, module))
}

/// True of a flow whose preset is a host other than Linux.
fn another_host(flow: &FlowSpec) -> bool {
    flow.preset.is_some_and(|preset| !preset.is_linux())
}

/// The same flows on Linux's hosts, as the grounds `linux` and `kernel` run them.
fn on_linux(spec: &RunSpec) -> RunSpec {
    on_hosts(spec, |preset| match preset {
        Preset::Y2003 | Preset::Y2026 => Preset::Linux,
        Preset::Linux | Preset::Linux66 => preset,
    })
}

/// The same flows on Linux's hosts of the other release.
fn on_other_release(spec: &RunSpec) -> RunSpec {
    on_hosts(spec, |preset| match preset {
        Preset::Linux => Preset::Linux66,
        Preset::Linux66 => Preset::Linux,
        Preset::Y2003 | Preset::Y2026 => preset,
    })
}

/// The same flows on the hosts of another preset, but for the keys that the scenario sets.
fn on_hosts(spec: &RunSpec, other: fn(Preset) -> Preset) -> RunSpec {
    let mut spec = spec.clone();
    for flow in all_flows(&mut spec) {
        let Some(preset) = flow.preset else {
            continue;
        };
        let other = other(preset);
        flow.preset = Some(other);
        let packet = flow.sender.packet();
        let of = |preset| SenderConfig::preset(preset, packet);
        // At its preset's value, too.
        let written = |of: &str, name: &str| {
            let field = format!("{of}.{name}");
            let mut keys = flow.written.iter().filter(|key| !key.is_linux);
            keys.any(|key| key.fields.contains(&&*field))
        };
        let keeps = |name: &str| written("sender", name);
        flow.sender.follow(&of(preset), &of(other), keeps);
        let of = |preset| ReceiverConfig::preset_for(preset, of(preset).mss);
        let keeps = |name: &str| written("receiver", name);
        flow.receiver.follow(&of(preset), &of(other), keeps);
    }
    spec
}

/// The stack that takes the place of this one; `None`: it stays.
type Restack = fn(&StackSpec) -> Option<StackSpec>;

/// The module of the kernel that bears the name of the law, and is the same law: `bbr-linux` is
/// version 1 and `bbr` is 3.
fn module(stack: &StackSpec) -> Option<StackSpec> {
    if stack.law_name() == "bbr" {
        return None;
    }
    StackSpec::parse(&format!("{}-linux", stack.law_name())).ok()
}

fn without_hystart(stack: &StackSpec) -> Option<StackSpec> {
    cubic(stack, "cubic-linux(hystart=off)")
}

fn with_trains(stack: &StackSpec) -> Option<StackSpec> {
    cubic(stack, "cubic-linux(gso_max_size=65536)")
}

/// Linux's CUBIC, where it is that with nothing set.
fn cubic(stack: &StackSpec, other: &str) -> Option<StackSpec> {
    let is_cubic = stack.to_string() == CUBIC;
    is_cubic.then(|| StackSpec::parse(other).ok()).flatten()
}

/// Trains of up to 64 kB, which HyStart allows for.
fn in_trains(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    for flow in &mut spec.flows {
        let host = &mut flow.sender.host;
        host.tso_segments = host.tso_segments.max(GSO_MAX / flow.sender.mss);
        if let Some(other) = with_trains(&flow.stack) {
            flow.stack = other;
        }
    }
    spec
}

/// Every round trip longer by this: on the way back, and by half where that is a way forward of
/// others.
fn longer(spec: &RunSpec, late: Span) -> RunSpec {
    let mut spec = spec.clone();
    let ways = spec
        .flows
        .iter()
        .filter_map(|flow| flow.back.first().copied());
    let ways: BTreeSet<usize> = ways.collect();
    let forward = spec
        .flows
        .iter()
        .flat_map(|flow| flow.forward.iter().copied());
    let forward: BTreeSet<usize> = forward.collect();
    for way in ways {
        if let Some(link) = spec.links.get_mut(way) {
            link.delay += match forward.contains(&way) {
                true => late / 2,
                false => late,
            };
        }
    }
    spec
}

/// Jitter of the largest packet's time, at least, at every link that has a rate. With less of it
/// what came in the same instant still comes together, and a queue in step stays in step.
fn jittered(spec: &RunSpec) -> RunSpec {
    let mut spec = spec.clone();
    let segments = all_flows(&mut spec).map(|flow| flow.sender.packet()).max();
    let datagrams = spec.cross.iter().map(|cross| u32::from(cross.packet)).max();
    let packet = Bytes::new(segments.max(datagrams).unwrap_or_default().into());
    for link in &mut spec.links {
        if let Some(rate) = link.rate {
            link.jitter = link.jitter.max(rate.transmit(packet));
        }
    }
    spec
}

/// A cause's name with its size, so that runs of another size are others.
fn named(cause: &str, late: Span) -> String {
    format!("{cause}-{}ns", late.as_nanos())
}

/// The simulator, which is given what `by` makes of a run.
fn switched_sim(
    name: &str,
    by: impl Fn(&RunSpec) -> RunSpec + Send + Sync + 'static,
) -> Box<dyn Ground> {
    boxed(Changed::new(&Sim, name, by))
}

const CUBIC: &str = "cubic-linux";

/// Bytes of the largest train (Linux `GSO_LEGACY_MAX_SIZE`).
const GSO_MAX: u32 = 65_536;

#[cfg(test)]
mod tests {
    use fullpipe_run::WrittenKey;

    use super::*;

    fn flow(preset: Preset) -> FlowSpec {
        let stack = StackSpec::parse("cubic").unwrap();
        let sender = SenderConfig::preset(preset, 1500);
        let receiver = ReceiverConfig::preset(preset);
        let mut flow = FlowSpec::new("main", stack, sender, receiver, vec![0], vec![1]);
        flow.preset = Some(preset);
        flow
    }

    #[test]
    fn what_a_flow_has_of_its_preset_becomes_that_of_linux() {
        let linux = flow(Preset::Linux);
        for preset in [Preset::Y2003, Preset::Y2026, Preset::Linux] {
            let plain = flow(preset);
            let spec = RunSpec {
                flows: vec![plain.clone()],
                ..RunSpec::default()
            };
            let found = &linux_host(&spec).flows[0];
            // A kernel is told the initial window.
            let mut wanted = linux.clone();
            wanted.sender.window.initial = plain.sender.window.initial;
            assert_eq!(found.sender, wanted.sender, "{preset:?}");
            assert_eq!(found.receiver, wanted.receiver, "{preset:?}");
            assert_eq!(found.stack.to_string(), "cubic-linux");
            assert_eq!(on_linux(&spec).flows[0].stack.to_string(), "cubic");
            assert_eq!(another_host(&plain), preset != Preset::Linux);
        }
        // A switch that the scenario sets is not the preset's to change.
        let mut by_hand = flow(Preset::Y2026);
        by_hand.sender.recovery.tlp = false;
        by_hand.receiver.acks.every = 1;
        let spec = RunSpec {
            flows: vec![by_hand],
            ..RunSpec::default()
        };
        let found = &on_linux(&spec).flows[0];
        assert!(!found.sender.recovery.tlp);
        assert_eq!(found.receiver.acks.every, 1);
        assert_eq!(
            found.sender.recovery.reduction,
            linux.sender.recovery.reduction
        );
    }

    #[test]
    fn the_other_release_is_the_other_way_too() {
        let other = |preset| {
            let spec = RunSpec {
                flows: vec![flow(preset)],
                ..RunSpec::default()
            };
            let mut spec = on_other_release(&spec);
            // A flow on Linux's hosts stays there.
            let same = on_linux(&spec).flows[0].preset;
            let found = spec.flows.remove(0);
            let is_kept = !preset.is_linux() || same == found.preset;
            (found.preset, found.sender, found.receiver, is_kept)
        };
        let pairs = [
            (Preset::Linux, Preset::Linux66),
            (Preset::Linux66, Preset::Linux),
            (Preset::Y2026, Preset::Y2026),
        ];
        for (preset, wanted) in pairs {
            let hosts = flow(wanted);
            let wanted = (Some(wanted), hosts.sender, hosts.receiver, true);
            assert_eq!(other(preset), wanted, "{preset:?}");
        }
    }

    /// What a file writes is the file's, at the preset's value too.
    #[test]
    fn what_is_written_stays() {
        let mut flow = flow(Preset::Y2003);
        let key = |name, fields, is_linux| WrittenKey {
            name,
            fields,
            is_linux,
        };
        flow.written = vec![
            key("tlp", &["sender.recovery.tlp"], false),
            key("ack_delay", &["receiver.acks.delay"], false),
            key("undo", &["sender.recovery.undo"], true),
        ];
        let delay = flow.receiver.acks.delay;
        let spec = RunSpec {
            flows: vec![flow],
            ..RunSpec::default()
        };
        let found = &on_linux(&spec).flows[0];
        assert!(!found.sender.recovery.tlp && found.sender.recovery.frto);
        assert!(found.sender.recovery.undo);
        assert_eq!(found.receiver.acks.delay, delay);
        let linux = ReceiverConfig::preset(Preset::Linux);
        assert!(found.receiver.acks.delay != linux.acks.delay);
        assert_eq!(found.receiver.acks.quick, linux.acks.quick);
    }

    #[test]
    fn a_stack_of_the_simulator_has_the_module_of_its_name() {
        let parsed = |text: &str| StackSpec::parse(text).unwrap();
        let module = |text: &str| module(&parsed(text)).map(|m| m.to_string());
        for law in ["reno", "cubic", "highspeed"] {
            assert_eq!(module(law), Some(format!("{law}-linux")), "{law}");
        }
        assert_eq!(module("bbr"), None, "another version");
        assert_eq!(module("cubic-linux"), None, "it is one");
        assert_eq!(module("fast"), None, "the kernel has none");
        for by in [without_hystart, with_trains] {
            let other = by(&parsed(CUBIC)).expect("the spelling is known");
            assert_ne!(other.to_string(), CUBIC);
            assert!(by(&parsed("cubic")).is_none(), "there is no HyStart in it");
        }
    }
}
