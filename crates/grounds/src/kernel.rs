//! TCP of the running kernel.

use fullpipe_kernel::RunningKernel;

use crate::{Entry, Setting};

/// `kernel`.
pub(crate) const ENTRY: Entry = Entry::here(
    RunningKernel::NAME,
    "TCP of the running kernel, over a path on this machine in real time",
    |settings| {
        let ground = RunningKernel::new(settings.running, settings.interrupt)?;
        Ok(Box::new(ground.with_live(settings.live)))
    },
)
.taking(&[Setting::Ipv6, Setting::Card, Setting::Looks]);
