//! The simulator.

use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::Entry;

/// The simulator, in virtual time: the same run, the same bits, on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sim;

impl Ground for Sim {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn fingerprint(&self) -> &str {
        env!("FULLPIPE_SIM")
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        crate::no_kernel(spec)?;
        Ok(fullpipe_sim::run(spec)?)
    }

    fn run_while(
        &self,
        spec: &RunSpec,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Outcome, GroundError> {
        crate::no_kernel(spec)?;
        fullpipe_sim::run_while(spec, goes_on)?.ok_or(GroundError::Interrupted)
    }
}

/// `sim`.
pub(crate) const ENTRY: Entry =
    Entry::here("sim", "Simulator, in virtual time", |_| Ok(Box::new(Sim)));
