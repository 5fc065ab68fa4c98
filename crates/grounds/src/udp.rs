//! UDP sockets on this machine.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_net::ground::{Options, run_local};
use fullpipe_realtime::live::{Live, LiveRun};
use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};

use crate::{Entry, Setting};

/// Both hosts and the path between them on this machine, over UDP on the loopback interface, in
/// real time.
#[derive(Clone, Debug)]
pub struct Udp<'a> {
    /// How datagrams leave, and how precisely the hosts wait.
    pub options: Options,
    /// Told how the flows are getting on.
    pub live: Option<Arc<Live>>,
    /// Set by someone else to stop.
    pub interrupt: &'a AtomicBool,
}

impl Ground for Udp<'_> {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn fingerprint(&self) -> &str {
        FINGERPRINT
    }

    /// Two runs at a time would wait for each other's processors.
    fn at_once(&self) -> Option<NonZeroUsize> {
        NonZeroUsize::new(1)
    }

    fn in_real_time(&self) -> bool {
        true
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        crate::no_kernel(spec)?;
        let live = self.live.as_deref();
        if let Some(live) = live {
            live.begin(LiveRun::new(spec));
        }
        Ok(run_local(spec, &self.options, live, self.interrupt)?)
    }
}

/// Fingerprint of the sources of everything that runs over sockets.
pub(crate) const FINGERPRINT: &str = env!("FULLPIPE_UDP");

/// `udp`.
pub(crate) const ENTRY: Entry = Entry::here(
    "udp",
    "Real UDP sockets on this machine, the path between them in real time",
    |settings| {
        Ok(Box::new(Udp {
            options: settings.sockets,
            live: settings.live,
            interrupt: settings.interrupt,
        }))
    },
)
.taking(&[Setting::Datagrams, Setting::Ipv6]);
