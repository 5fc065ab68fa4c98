//! The ground that the command line asks for.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_grounds::{Entry, Far, GROUNDS, Kernel, Running, Settings};
use fullpipe_net::ground::Options;
use fullpipe_net::io::{self, WaitStrategy};
use fullpipe_realtime::live::Live;
use fullpipe_run::{Ground, GroundError};

use crate::args::{Mode, PeerFlags, Run};
use crate::commands::send::target::Server;
use crate::commands::tune;
use crate::exit::{Exit, Failure};
use crate::peer;

/// Nothing that is only asked has to be stopped.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The ground of these arguments, which tells `live` how runs in real time are getting on.
///
/// # Errors
/// If flags contradict it, the other host cannot be found, or this version does not have it.
pub fn find(
    args: &Run,
    live: &Arc<Live>,
    interrupt: &'static AtomicBool,
) -> Result<Box<dyn Ground>, Failure> {
    about_datagrams(args)?;
    let mut settings = Settings {
        sockets: options(&args.flags),
        way: None,
        kernel: Kernel {
            name: args.kernel.clone(),
            module: args.kernel_module.clone(),
        },
        running: Running {
            laws: tune::laws(),
            ..Running::default()
        },
        live: Some(Arc::clone(live)),
        interrupt,
    };
    let entry = match &args.peer {
        Some(host) => {
            let entry = with_peer(&args.ground)?;
            let server = Server::parse(host);
            let server = server.map_err(|e| Failure::new(Exit::Usage, format!("--peer: {e}")))?;
            settings.way = Some(peer::way(&server, &args.flags)?);
            entry
        }
        None => {
            settings.sockets.ipv6 = args.ipv6;
            settings.running.ipv6 = args.ipv6;
            settings.running.offload = !args.no_offload;
            settings.running.merge = !args.no_merge;
            settings.running.look_every = args.tcp_info_every;
            settings.running.at_once = args.jobs.unwrap_or(NonZeroUsize::MIN);
            without_peer(args)?
        }
    };
    (entry.build)(settings).map_err(Failure::from)
}

/// A ground by its name, to be asked and not to run.
///
/// # Errors
/// It needs another host, or the machine lacks something.
pub fn named(name: &str, kernel: Option<String>) -> Result<Box<dyn Ground>, Failure> {
    if name != "linux" && kernel.is_some() {
        let message = "`--kernel` is about the ground linux";
        return Err(Failure::new(Exit::Usage, message).hint("write `--ground linux`"));
    }
    here(name, settings(kernel, &NEVER))
}

/// Settings without another host, flags or modules.
pub fn settings(kernel: Option<String>, interrupt: &'static AtomicBool) -> Settings {
    Settings {
        sockets: Options::default(),
        way: None,
        kernel: Kernel {
            name: kernel,
            module: None,
        },
        running: Running {
            laws: tune::laws(),
            ..Running::default()
        },
        live: None,
        interrupt,
    }
}

/// The ground of this name on this machine.
///
/// # Errors
/// There is none, or the machine lacks something.
pub fn here(name: &str, settings: Settings) -> Result<Box<dyn Ground>, Failure> {
    let entry = fullpipe_grounds::find(name, Far::Here).ok_or_else(|| {
        let known = GROUNDS.iter().filter(|g| g.far == Far::Here);
        let known: Vec<&str> = known.map(|g| g.name).collect();
        let message = format!("there is no ground `{name}` without another host");
        Failure::new(Exit::Usage, message).hint(format!("known: {}", known.join(", ")))
    })?;
    (entry.build)(settings).map_err(Failure::from)
}

/// Refuses what is about fullpipe's own sockets where the kernel sends, or nobody.
fn about_datagrams(args: &Run) -> Result<(), Failure> {
    let flags = &args.flags;
    let given = [
        ("`--mode`", flags.mode != Mode::Packet),
        ("`--spin`", flags.spin),
        ("`--pin`", flags.pin.is_some()),
    ];
    let given = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name);
    let given: Vec<&str> = given.collect();
    // `--peer` alone asks for sockets.
    let has_sockets = match args.ground.as_str() {
        "udp" => true,
        "sim" => args.peer.is_some(),
        _ => false,
    };
    if has_sockets || given.is_empty() {
        return Ok(());
    }
    let are = if given.len() == 1 { "is" } else { "are" };
    let message = format!(
        "{} {are} about the datagrams of the ground udp",
        given.join(", ")
    );
    Err(Failure::new(Exit::Usage, message).hint("write `--ground udp`"))
}

/// `--peer` alone asks for sockets too: the simulator has no other host.
fn with_peer(name: &str) -> Result<&'static Entry, Failure> {
    let name = if name == "sim" { "udp" } else { name };
    fullpipe_grounds::find(name, Far::Peer).ok_or_else(|| {
        let message = "`--peer` is for the grounds udp and kernel";
        Failure::new(Exit::Usage, message).hint("write `--ground udp` or `--ground kernel`")
    })
}

fn without_peer(args: &Run) -> Result<&'static Entry, Failure> {
    if args.ipv6 && !["udp", "kernel"].contains(&args.ground.as_str()) {
        let message = "`--ipv6` is about the sockets of the grounds udp and kernel";
        let hint = "write `--ground udp` or `--ground kernel`";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if args.ground != "kernel" && (args.no_offload || args.no_merge) {
        let message = "`--no-offload` and `--no-merge` are about the hosts of the ground kernel";
        let hint = "write `--ground kernel`; in a scenario `tso` is the simulator's offload";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if args.ground != "kernel" && args.tcp_info_every.is_some() {
        let message = "`--tcp-info-every` is about the senders of the ground kernel";
        let hint = "write `--ground kernel`; `[measure] trace` says how often rows are kept";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if args.ground != "linux" && (args.kernel.is_some() || args.kernel_module.is_some()) {
        let message = "`--kernel` and `--kernel-module` are about the ground linux";
        return Err(Failure::new(Exit::Usage, message).hint("write `--ground linux`"));
    }
    if args.flags.encrypt || args.flags.key.is_some() {
        let message = "`--encrypt` and `--key` are about another host, and there is none";
        return Err(Failure::new(Exit::Usage, message).hint("name it with `--peer HOST`"));
    }
    fullpipe_grounds::find(&args.ground, Far::Here).ok_or_else(|| {
        let message = format!("ground `{}` needs another host", args.ground);
        Failure::new(Exit::Usage, message).hint("name it with `--peer HOST`")
    })
}

impl From<GroundError> for Failure {
    fn from(error: GroundError) -> Self {
        match error {
            GroundError::Fault(what) => Self::new(Exit::Internal, what),
            GroundError::Unable { key, what, hint } => {
                let key = key.map_or(String::new(), |key| format!("`{key}`: "));
                Self::new(Exit::Usage, format!("{key}{what}")).hint(hint)
            }
            GroundError::Environment { what, hint } => {
                Self::new(Exit::Environment, what).hint(hint)
            }
            GroundError::Interrupted => Self::new(Exit::Interrupted, "interrupted"),
        }
    }
}

/// Socket options from the command line.
pub fn options(flags: &PeerFlags) -> Options {
    Options {
        mode: match flags.mode {
            Mode::Packet => io::Mode::Packet,
            Mode::Bulk => io::Mode::Bulk,
        },
        wait: match flags.spin {
            true => WaitStrategy::Spin,
            false => WaitStrategy::Sleep,
        },
        pin: flags.pin,
        ipv6: false,
        until_complete: false,
    }
}
