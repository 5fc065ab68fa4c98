//! The ground that the command line asks for.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_grounds::{Entry, Far, GROUNDS, Kernel, Running, Setting, Settings, Sim};
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
    let entry = match &args.peer {
        Some(_) => with_peer(&args.ground)?,
        None => without_peer(args)?,
    };
    if let Some(foreign) = Foreign::of(&[entry], &given(args)) {
        let hint = written(&foreign.grounds) + foreign.more;
        return Err(Failure::new(Exit::Usage, foreign.message()).hint(hint));
    }
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
    match &args.peer {
        Some(host) => {
            let server = Server::parse(host);
            let server = server.map_err(|e| Failure::new(Exit::Usage, format!("--peer: {e}")))?;
            settings.way = Some(peer::way(&server, &args.flags)?);
        }
        None => {
            settings.sockets.ipv6 = args.ipv6;
            settings.running.ipv6 = args.ipv6;
            settings.running.offload = !args.no_offload;
            settings.running.merge = !args.no_merge;
            settings.running.look_every = args.tcp_info_every;
            settings.running.at_once = args.jobs.unwrap_or(NonZeroUsize::MIN);
        }
    }
    (entry.build)(settings).map_err(Failure::from)
}

/// A ground by its name, to be asked and not to run.
///
/// # Errors
/// It needs another host, or the machine lacks something.
pub fn named(name: &str, kernel: Option<String>) -> Result<Box<dyn Ground>, Failure> {
    let entry = entry(name)?;
    let flags = [(&["`--kernel`"][..], kernel.is_some(), Setting::Kernel)];
    if let Some(foreign) = Foreign::of(&[entry], &flags) {
        let hint = written(&foreign.grounds);
        return Err(Failure::new(Exit::Usage, foreign.message()).hint(hint));
    }
    (entry.build)(settings(kernel, &NEVER)).map_err(Failure::from)
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

/// The entry of a ground on this machine.
///
/// # Errors
/// There is none of this name.
pub fn entry(name: &str) -> Result<&'static Entry, Failure> {
    fullpipe_grounds::find(name, Far::Here).ok_or_else(|| {
        let known = GROUNDS.iter().filter(|g| g.far == Far::Here);
        let known: Vec<&str> = known.map(|g| g.name).collect();
        let message = format!("there is no ground `{name}` without another host");
        Failure::new(Exit::Usage, message).hint(format!("known: {}", known.join(", ")))
    })
}

/// Flags of the command line that are named together, whether one of them is given, and what of the
/// settings they are about.
pub type Flags = (&'static [&'static str], bool, Setting);

/// Flags of a setting that none of the chosen grounds takes.
pub struct Foreign {
    flags: Vec<&'static [&'static str]>,
    /// What they are about, up to the name of the ground.
    of: &'static str,
    /// The grounds that take it.
    pub grounds: Vec<&'static str>,
    /// What else there is to say behind the names of those grounds.
    pub more: &'static str,
}

impl Foreign {
    /// Of the first setting that none of the chosen grounds takes; `None`: they take all.
    pub fn of(chosen: &[&Entry], flags: &[Flags]) -> Option<Self> {
        let mut given = flags.iter().filter(|(_, is_given, _)| *is_given);
        let (_, _, setting) = *given.find(|(.., s)| !chosen.iter().any(|g| g.takes(*s)))?;
        let flags = flags.iter().filter(|(_, given, s)| *given && *s == setting);
        let mut grounds: Vec<&str> = Vec::new();
        for ground in GROUNDS.iter().filter(|g| g.takes(setting)) {
            if !grounds.contains(&ground.name) {
                grounds.push(ground.name);
            }
        }
        let (of, more) = match setting {
            Setting::Datagrams => ("the datagrams of ", ""),
            Setting::Ipv6 => ("the sockets of ", ""),
            Setting::Card => (
                "the hosts of ",
                "; in a scenario `tso` is the simulator's offload",
            ),
            Setting::Looks => (
                "the senders of ",
                "; `[measure] trace` says how often rows are kept",
            ),
            Setting::Kernel => ("", ""),
        };
        Some(Self {
            flags: flags.map(|(names, ..)| *names).collect(),
            of,
            grounds,
            more,
        })
    }

    /// Which flags are about which grounds, as a sentence.
    pub fn message(&self) -> String {
        let named: Vec<String> = self.flags.iter().map(|names| names.join(" and ")).collect();
        let flags = self.flags.concat();
        format!(
            "{} {} about {}the ground{} {}",
            named.join(", "),
            if flags.len() == 1 { "is" } else { "are" },
            self.of,
            if self.grounds.len() == 1 { "" } else { "s" },
            self.grounds.join(" and "),
        )
    }
}

/// Flags of `run` that not every ground takes.
fn given(args: &Run) -> [Flags; 7] {
    let flags = &args.flags;
    [
        (
            &["`--mode`"],
            flags.mode != Mode::Packet,
            Setting::Datagrams,
        ),
        (&["`--spin`"], flags.spin, Setting::Datagrams),
        (&["`--pin`"], flags.pin.is_some(), Setting::Datagrams),
        (&["`--ipv6`"], args.ipv6, Setting::Ipv6),
        (
            &["`--no-offload`", "`--no-merge`"],
            args.no_offload || args.no_merge,
            Setting::Card,
        ),
        (
            &["`--tcp-info-every`"],
            args.tcp_info_every.is_some(),
            Setting::Looks,
        ),
        (
            &["`--kernel`", "`--kernel-module`"],
            args.kernel.is_some() || args.kernel_module.is_some(),
            Setting::Kernel,
        ),
    ]
}

/// `--peer` alone asks for the first that there is: the simulator has no other host.
fn with_peer(name: &str) -> Result<&'static Entry, Failure> {
    let all = || GROUNDS.iter().filter(|g| g.far == Far::Peer);
    let found = all().find(|g| g.name == name || name == Sim.name());
    found.ok_or_else(|| {
        let names: Vec<&str> = all().map(|g| g.name).collect();
        let message = format!("`--peer` is for the grounds {}", names.join(" and "));
        Failure::new(Exit::Usage, message).hint(written(&names))
    })
}

/// What to write for one of these grounds.
fn written(grounds: &[&str]) -> String {
    let flags = grounds.iter().map(|g| format!("`--ground {g}`"));
    let flags: Vec<String> = flags.collect();
    format!("write {}", flags.join(" or "))
}

fn without_peer(args: &Run) -> Result<&'static Entry, Failure> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_for_the_grounds_that_take_it() {
        let entry = |name| fullpipe_grounds::find(name, Far::Here).unwrap();
        let flags = |given: &[&str]| {
            let all: [(&'static [&'static str], Setting); 4] = [
                (&["--spin"], Setting::Datagrams),
                (&["--pin"], Setting::Datagrams),
                (&["--ipv6"], Setting::Ipv6),
                (&["--kernel", "--module"], Setting::Kernel),
            ];
            all.map(|(names, setting)| (names, given.contains(&names[0]), setting))
        };
        let said = |chosen: &[&Entry], given: &[&str]| {
            let foreign = Foreign::of(chosen, &flags(given));
            foreign.map(|f| (f.message(), f.grounds))
        };
        let (sim, udp, linux) = (entry("sim"), entry("udp"), entry("linux"));
        assert_eq!(said(&[sim], &[]), None);
        assert_eq!(said(&[sim, udp], &["--spin", "--ipv6"]), None);
        assert_eq!(
            said(&[sim, linux], &["--spin", "--pin", "--kernel"]),
            Some((
                "--spin, --pin are about the datagrams of the ground udp".to_owned(),
                vec!["udp"]
            ))
        );
        let (message, grounds) = said(&[linux], &["--ipv6", "--kernel"]).unwrap();
        assert_eq!(
            message,
            "--ipv6 is about the sockets of the grounds udp and kernel"
        );
        assert_eq!(
            written(&grounds),
            "write `--ground udp` or `--ground kernel`"
        );
        // To another host over its TCP no datagrams of ours leave.
        let kernel = fullpipe_grounds::find("kernel", Far::Peer).unwrap();
        assert!(said(&[kernel], &["--pin"]).is_some());
        let (message, _) = said(&[kernel], &["--kernel"]).unwrap();
        assert_eq!(message, "--kernel and --module are about the ground linux");
        // Every setting is somebody's, and who else would be named?
        for (names, _, setting) in flags(&[]) {
            assert!(GROUNDS.iter().any(|g| g.takes(setting)), "{names:?}");
        }
    }
}
