//! The ground.

use std::sync::atomic::AtomicBool;

use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::error::LinuxError;
use crate::product::Product;
use crate::{guest, outcome, plan};

/// Runs in guests of one kernel.
#[derive(Debug)]
pub struct Linux {
    product: Product,
    fingerprint: String,
    interrupt: &'static AtomicBool,
}

impl Linux {
    /// With the kernel called `name`; `interrupt` ends runs at once.
    ///
    /// # Errors
    /// It has not been built, or a program that runs need is missing.
    pub fn new(name: &str, interrupt: &'static AtomicBool) -> Result<Self, LinuxError> {
        let product = Product::find(name)?;
        crate::build::needs(false)?;
        Ok(Self::of(product, interrupt))
    }

    /// With this kernel.
    pub fn of(product: Product, interrupt: &'static AtomicBool) -> Self {
        let fingerprint = format!(
            "{}-linux-{}-hz{}-{}",
            env!("FULLPIPE_LINUX"),
            product.release,
            product.hz,
            product.hash
        );
        Self {
            product,
            fingerprint,
            interrupt,
        }
    }

    /// Makes one run.
    ///
    /// # Errors
    /// [`LinuxError`].
    pub fn run_one(&self, spec: &RunSpec) -> Result<Outcome, LinuxError> {
        let plan = plan::plan(spec, self.product.module.as_deref())?;
        let records = guest::run(&self.product, &plan, spec.seed, self.interrupt)?;
        outcome::outcome(spec, &records)
    }
}

impl Ground for Linux {
    fn name(&self) -> &str {
        "linux"
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        Ok(self.run_one(spec)?)
    }
}
