//! The grounds that runs are made on: the simulator, UDP sockets with the path between them on this
//! machine, UDP to another host, Linux's own TCP in virtual time, and TCP of the running kernel, on
//! this machine or to another host.
//!
//! A *ground* takes a [`RunSpec`](fullpipe_run::RunSpec) and returns an
//! [`Outcome`](fullpipe_run::Outcome); `fullpipe-run` has the trait. A new one is a crate that
//! depends on `fullpipe-run` and has an `impl Ground` with a fingerprint (`fullpipe-fingerprint`
//! makes it), and here one line in [`GROUNDS`]: `Entry::here("toy", "Toy", |_| Ok(Box::new(Toy)))`,
//! with the [`Setting`]s that it takes. From there on `fullpipe run --ground toy`, the results and
//! their comparison know it.
//!
//! ```
//! use fullpipe_grounds::Sim;
//! use fullpipe_run::{Ground, RunSpec};
//!
//! let outcome = Sim.run(&RunSpec::default())?;
//! assert!(outcome.flows.is_empty());
//! # Ok::<(), fullpipe_run::GroundError>(())
//! ```

mod causes;
mod changed;
mod kernel;
mod linux;
mod peer;
mod sim;
mod trace;
mod udp;
mod way;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_net::ground::Options;
use fullpipe_realtime::live::Live;
use fullpipe_run::{Ground, GroundError, RunSpec};

pub use causes::{CAUSES, Cause, Switched};
pub use changed::{stand_in, with_stand_in};
pub use fullpipe_kernel::Options as Running;
pub use fullpipe_kernel::laws::Laws;
pub use linux::Kernel;
pub use peer::{Peer, Stream, within_bounds};
pub use sim::Sim;
pub use udp::Udp;
pub use way::{Way, WayError};

/// Every ground, in the order in which help shows them.
pub const GROUNDS: &[Entry] = &[
    sim::ENTRY,
    udp::ENTRY,
    peer::ENTRY,
    peer::KERNEL,
    linux::ENTRY,
    kernel::ENTRY,
];

/// A ground as a command line or a library finds it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name by which it is chosen; unique among those with the same `far`.
    pub name: &'static str,
    /// Help text of the command line, a few words.
    pub about: &'static str,
    /// Where the far side of a run is.
    pub far: Far,
    /// Of the settings that are not for every ground those that this one takes.
    pub takes: &'static [Setting],
    /// Makes it.
    pub build: Build,
}

/// Makes a ground.
pub type Build = fn(Settings) -> Result<Box<dyn Ground>, GroundError>;

impl Entry {
    /// A ground with both sides in this program.
    pub const fn here(name: &'static str, about: &'static str, build: Build) -> Self {
        Self {
            name,
            about,
            far: Far::Here,
            takes: &[],
            build,
        }
    }

    /// A ground with the far side at another host.
    pub const fn with_peer(name: &'static str, about: &'static str, build: Build) -> Self {
        Self {
            far: Far::Peer,
            ..Self::here(name, about, build)
        }
    }

    /// The same ground, which takes these settings.
    pub const fn taking(self, takes: &'static [Setting]) -> Self {
        Self { takes, ..self }
    }

    /// Whether this setting changes anything here.
    pub fn takes(&self, setting: Setting) -> bool {
        self.takes.contains(&setting)
    }
}

/// Where the far side of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// Both hosts run in this process.
    Here,
    /// The far host is named by [`Settings::way`].
    Peer,
}

/// A part of [`Settings`] that not every ground takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// How datagrams leave, and how precisely hosts wait: `sockets`, but for its `ipv6`.
    Datagrams,
    /// IPv6 between hosts on this machine: `sockets.ipv6`, `running.ipv6`.
    Ipv6,
    /// What a network card does: `running.offload`, `running.merge`.
    Card,
    /// How often senders are looked at: `running.look_every`.
    Looks,
    /// Which kernel, and the user's own module in it: `kernel`.
    Kernel,
}

/// What grounds are built from; each takes what it needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How datagrams leave, and how precisely hosts wait.
    pub sockets: Options,
    /// The way to another host.
    pub way: Option<Way>,
    /// The kernel of the ground linux.
    pub kernel: Kernel,
    /// How runs of the ground kernel are made.
    pub running: Running,
    /// Told how flows in real time are getting on; `None`: nobody watches.
    pub live: Option<Arc<Live>>,
    /// Set by someone else to stop: runs over sockets end within a tenth of a second.
    pub interrupt: &'static AtomicBool,
}

/// The ground of that name.
pub fn find(name: &str, far: Far) -> Option<&'static Entry> {
    GROUNDS.iter().find(|g| g.name == name && g.far == far)
}

/// The stack that is the user's own module, in a kernel of ground linux.
const OWN: &str = "own-linux";

/// Refuses a stack that only a kernel can run.
fn no_kernel(spec: &RunSpec) -> Result<(), GroundError> {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let mut flows = spec.flows.iter().chain(templates);
    match flows.find(|f| f.stack.law_name() == OWN) {
        None => Ok(()),
        Some(f) => Err(GroundError::Unable {
            key: None,
            what: format!(
                "flow {}: `stack = \"own-linux\"` is a module for the kernel of ground linux",
                f.name
            ),
            hint: "use --ground linux --kernel-module FILE".to_owned(),
        }),
    }
}
