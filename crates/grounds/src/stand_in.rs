//! A ground on which another stack stands for the user's own kernel module.

use std::num::NonZeroUsize;

use fullpipe_cc::StackSpec;
use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::OWN;

/// A ground that runs a stack where the scenario has `own-linux`.
pub struct StandIn {
    ground: Box<dyn Ground>,
    stack: StackSpec,
    fingerprint: String,
}

impl StandIn {
    /// `stack` stands for `own-linux` on `ground`.
    pub fn new(ground: Box<dyn Ground>, stack: &StackSpec) -> Self {
        Self {
            fingerprint: crate::switched(&*ground, &format!("own-is-{stack}")),
            stack: stack.clone(),
            ground,
        }
    }

    /// The run with the stack in place of `own-linux`.
    pub fn in_place(spec: &RunSpec, stack: &StackSpec) -> RunSpec {
        let mut spec = spec.clone();
        let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
        for flow in spec.flows.iter_mut().chain(templates) {
            if flow.stack.law_name() == OWN {
                flow.stack = stack.clone();
            }
        }
        spec
    }

    fn of(&self, spec: &RunSpec) -> RunSpec {
        Self::in_place(spec, &self.stack)
    }
}

impl Ground for StandIn {
    fn name(&self) -> &str {
        self.ground.name()
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn peer(&self) -> Option<&str> {
        self.ground.peer()
    }

    fn kernel(&self) -> Option<String> {
        self.ground.kernel()
    }

    fn brought(&self, spec: &RunSpec) -> Vec<String> {
        self.ground.brought(&self.of(spec))
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
        self.ground.check(&self.of(spec))
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        self.ground.run(&self.of(spec))
    }
}
