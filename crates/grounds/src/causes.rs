//! Known causes for which two grounds part, each with its switch: the same ground with the cause
//! taken away, or brought in.

use fullpipe_cc::StackSpec;
use fullpipe_kernel::{Options, RunningKernel};
use fullpipe_linux::{DEFAULT_VERSION, Linux, Product};
use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::{Far, Settings, Sim, find};

/// A cause that can be switched.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// One word.
    pub name: &'static str,
    /// The sentence that is shown while it is tried.
    pub about: &'static str,
    /// Name of the ground that has the switch.
    pub ground: &'static str,
    make: Make,
}

/// The switched ground; `None`: there is nothing to switch here.
type Make = fn(&Settings) -> Option<Result<Box<dyn Ground>, GroundError>>;

impl Cause {
    /// The ground with the switch turned; `None`: not on this machine.
    pub fn switched(&self, settings: &Settings) -> Option<Result<Box<dyn Ground>, GroundError>> {
        (self.make)(settings)
    }
}

/// Every cause, the cheapest to test first.
pub const CAUSES: &[Cause] = &[
    Cause {
        name: "hystart",
        about: "the simulator's CUBIC without HyStart: the other side did not leave slow start by it",
        ground: "sim",
        make: |_| Some(restacked("hystart", "cubic-linux(hystart=off)")),
    },
    Cause {
        name: "hystart-gso",
        about: "the simulator's HyStart allows trains of 64 kB, as on a device with segmentation \
                offload",
        ground: "sim",
        make: |_| Some(restacked("hystart-gso", "cubic-linux(gso_max_size=65536)")),
    },
    Cause {
        name: "version",
        about: "another kernel of the cache",
        ground: "linux",
        make: |settings| {
            let own = settings.kernel.name.as_deref().unwrap_or(DEFAULT_VERSION);
            let release = Product::find(own).ok()?.release;
            let others = Product::all().into_iter();
            // One that another version of the program has built does not run.
            let mut others = others.filter(|(_, other)| other.release != release);
            let other = others.find_map(|(name, _)| Linux::new(&name, settings.interrupt).ok())?;
            Some(Ok(boxed(other)))
        },
    },
    Cause {
        name: "wake-ups",
        about: "the same once more: nothing differs but who woke up when",
        ground: "kernel",
        make: |settings| Some(kernel(settings, |options| options)),
    },
    Cause {
        name: "wake-ups",
        about: "the same once more: nothing differs but who woke up when",
        ground: "udp",
        make: |settings| (find("udp", Far::Here)).map(|entry| (entry.build)(settings.clone())),
    },
    Cause {
        name: "offload",
        about: "the hosts hand over single segments, not up to 64 kB at once",
        ground: "kernel",
        make: |settings| {
            Some(kernel(settings, |options| Options {
                offload: false,
                ..options
            }))
        },
    },
    Cause {
        name: "merging",
        about: "packets that arrive together are not merged, so ACKs are not either",
        ground: "kernel",
        make: |settings| {
            Some(kernel(settings, |options| Options {
                merge: false,
                ..options
            }))
        },
    },
    Cause {
        name: "autotuning",
        about: "the receiver's buffer grows from 128 kB to 6 MB by itself, as it comes",
        ground: "kernel",
        make: |settings| {
            Some(kernel(settings, |options| Options {
                autotuning: true,
                ..options
            }))
        },
    },
    Cause {
        name: "metrics-cache",
        about: "the kernel remembers thresholds and RTTs of earlier connections; one went before",
        ground: "kernel",
        make: |settings| {
            Some(kernel(settings, |options| Options {
                remembers: true,
                ..options
            }))
        },
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

/// The simulator with another stack in the place of Linux' CUBIC.
fn restacked(name: &str, stack: &str) -> Result<Box<dyn Ground>, GroundError> {
    let stack = StackSpec::parse(stack).map_err(|e| GroundError::Fault(e.to_string()))?;
    Ok(boxed(Restacked {
        stack,
        fingerprint: format!("{}-{name}", Sim.fingerprint()),
    }))
}

struct Restacked {
    stack: StackSpec,
    fingerprint: String,
}

impl Ground for Restacked {
    fn name(&self) -> &str {
        "sim"
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        let mut spec = spec.clone();
        let cubic = spec.flows.iter_mut();
        let cubic = cubic.filter(|f| f.stack.to_string() == CUBIC);
        cubic.for_each(|f| f.stack = self.stack.clone());
        Sim.run(&spec)
    }
}

const CUBIC: &str = "cubic-linux";
