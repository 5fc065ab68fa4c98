//! A ground that is given what a switch makes of each run.

use std::num::NonZeroUsize;
use std::ops::Deref;

use fullpipe_cc::StackSpec;
use fullpipe_run::{Ground, GroundError, Network, Outcome, RunSpec};

use crate::OWN;

/// `ground`, which is given what `by` makes of a run.
pub(crate) struct Changed<G, F> {
    ground: G,
    by: F,
    fingerprint: String,
}

impl<G, F> Changed<G, F>
where
    G: Deref<Target: Ground>,
    F: Fn(&RunSpec) -> RunSpec,
{
    /// `as_what` tells these runs from the ground's own, and from those of another `by`.
    pub fn new(ground: G, as_what: &str, by: F) -> Self {
        // What a switch does is written in this crate.
        let switches = env!("FULLPIPE_SWITCHES");
        Self {
            fingerprint: format!("{}-{switches}-{as_what}", ground.fingerprint()),
            ground,
            by,
        }
    }
}

impl<G, F> Ground for Changed<G, F>
where
    G: Deref<Target: Ground> + Sync,
    F: Fn(&RunSpec) -> RunSpec + Sync,
{
    fn name(&self) -> &str {
        self.ground.name()
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn peer(&self) -> Option<&str> {
        self.ground.peer()
    }

    fn network(&self) -> Option<Network> {
        self.ground.network()
    }

    fn kernel(&self) -> Option<String> {
        self.ground.kernel()
    }

    fn brought(&self, spec: &RunSpec) -> Vec<String> {
        self.ground.brought(&(self.by)(spec))
    }

    fn reads(&self, spec: &dyn Fn() -> RunSpec) -> String {
        self.ground.reads(&|| (self.by)(&spec()))
    }

    fn at_once(&self) -> Option<NonZeroUsize> {
        self.ground.at_once()
    }

    fn in_real_time(&self) -> bool {
        self.ground.in_real_time()
    }

    fn notes(&self) -> Vec<String> {
        self.ground.notes()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        self.ground.check(&(self.by)(spec))
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        self.ground.run(&(self.by)(spec))
    }
}

/// `ground`, where `stack` stands for `own-linux`, the user's own kernel module.
pub fn with_stand_in(ground: Box<dyn Ground>, stack: &StackSpec) -> Box<dyn Ground> {
    let as_what = format!("own-is-{stack}");
    let stack = stack.clone();
    Box::new(Changed::new(ground, &as_what, move |spec: &RunSpec| {
        stand_in(spec, &stack)
    }))
}

/// The run with `stack` in place of `own-linux`.
pub fn stand_in(spec: &RunSpec, stack: &StackSpec) -> RunSpec {
    let mut spec = spec.clone();
    let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
    for flow in spec.flows.iter_mut().chain(templates) {
        if flow.stack.law_name() == OWN {
            flow.stack = stack.clone();
        }
    }
    spec
}
