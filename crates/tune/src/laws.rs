//! The tuner's laws for runs on the running kernel (ground `kernel`): stacks in fullpipe's spelling
//! that the kernel has no module for run by the same programs as under a policy.
//!
//! Sockets belong to the control group in which they are made. This process is in one of its own
//! while the ground makes those of a run, and the program that chooses algorithms is on that group
//! alone: nothing else on the host meets it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fullpipe_kernel::acks::{Ack, Record};
use fullpipe_kernel::laws::{Lack, Laws, Loaded, Wanted};
use fullpipe_policy::{
    Action, Compiled, Facts, OnDaemonLoss, Prefix, Rule, Selector, Side, Via, lower,
};
use fullpipe_run::GroundError;
use fullpipe_units::Span;

use crate::bpf::{Bpf, Load, OBJECT, now_us, prefix_of_process};
use crate::groups;
use crate::journal::Journal;
use crate::namespaces::Scope;
use crate::tuner::Tuner;
use crate::watch::{Sight, Watch};

/// By the programs of this build.
#[derive(Debug)]
pub struct Programs;

impl Laws for Programs {
    fn fingerprint(&self) -> String {
        // FNV-1a: it tells builds apart, and keeps nobody out.
        let hash = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3);
        let hash = OBJECT.iter().fold(0xcbf2_9ce4_8422_2325, hash);
        format!("laws-{hash:016x}")
    }

    fn check(&self, wanted: &Wanted) -> Result<(), Lack> {
        action(wanted).map(drop)
    }

    fn load(&self, flows: &[Wanted]) -> Result<Box<dyn Loaded>, GroundError> {
        sweep();
        let group = Group::enter().map_err(|e| GroundError::Environment {
            what: format!("a control group for the flows of a run: {e}"),
            hint: "run as root with control groups of version 2; `fullpipe tune doctor`".to_owned(),
        })?;
        let prefix = prefix_of_process('r');
        let bpf = Bpf::load(Load {
            prefix: &prefix,
            cgroup: Some(&group.path),
            scope: Scope::Some(Vec::new()),
            register: true,
        });
        let bpf = bpf.map_err(lacks)?;
        let journal = Journal::open(&group.folder.join("journal")).map_err(lacks)?;
        let mut tuner = Tuner::new(bpf, &prefix, journal);
        let rules = flows.iter().enumerate();
        let rules = rules.map(|(k, wanted)| rule(k, wanted));
        let compiled = Compiled {
            rules: rules.collect::<Result<_, _>>()?,
            warnings: Vec::new(),
            // Nobody gives signs of life: what is loaded ends with the run.
            on_daemon_loss: OnDaemonLoss::Keep,
            never_tune: Vec::new(),
        };
        tuner.apply(compiled).map_err(lacks)?;
        Ok(Box::new(Run { tuner, group }))
    }

    fn record(&self, sockets: &[u64]) -> Result<Box<dyn Record>, String> {
        let watch = Watch::begin(None).map_err(|e| e.to_string())?;
        for cookie in sockets {
            watch.add(*cookie).map_err(|e| e.to_string())?;
        }
        let flows = sockets.iter().enumerate().map(|(k, cookie)| (*cookie, k));
        Ok(Box::new(Acks {
            watch,
            flows: flows.collect(),
            zero: (Instant::now(), now_us()),
        }))
    }
}

/// ACKs of the flows of a run.
#[derive(Debug)]
struct Acks {
    watch: Watch,
    /// Flows by the cookies of their sockets.
    flows: HashMap<u64, usize>,
    /// One moment in the time of the program and of the kernel, microseconds.
    zero: (Instant, u64),
}

impl Record for Acks {
    fn acks(&mut self) -> Result<Vec<Ack>, String> {
        let sights = self.watch.sights().map_err(|e| e.to_string())?;
        let (instant, us) = self.zero;
        let acks = sights.into_iter().filter_map(|sight| {
            let Sight::Ack(seen) = sight else {
                return None;
            };
            Some(Ack {
                at: instant + Duration::from_micros(seen.time_us.saturating_sub(us)),
                flow: *self.flows.get(&seen.cookie)?,
                info: seen.info(),
                fraction: seen.ours.map_or(0.0, |(fraction, _, _)| fraction),
                rtt: Span::from_micros(seen.rtt_us.into()),
            })
        });
        Ok(acks.collect())
    }

    fn missed(&self) -> u64 {
        self.watch.missed().unwrap_or(0)
    }
}

struct Run {
    tuner: Tuner<Bpf>,
    group: Group,
}

impl Loaded for Run {
    fn sockets_made(&mut self) -> Result<(), GroundError> {
        let left = self.group.leave();
        left.map_err(|e| lacks(format!("leaving a control group: {e}")))
    }

    fn ran(&mut self) -> Result<usize, GroundError> {
        let counters = self.tuner.counters().map_err(lacks)?;
        match counters.refused {
            0 => Ok(usize::try_from(counters.begun).unwrap_or(usize::MAX)),
            n => Err(GroundError::Fault(format!(
                "the kernel refused the algorithm of {n} flows"
            ))),
        }
    }
}

fn lacks(why: impl ToString) -> GroundError {
    GroundError::Environment {
        what: why.to_string(),
        hint: "`fullpipe tune doctor` tries what it takes and says what mends it".to_owned(),
    }
}

fn action(wanted: &Wanted) -> Result<Action, Lack> {
    let facts = Facts {
        rtt: Some(wanted.rtt),
        ..Facts::default()
    };
    match lower(&wanted.stack, &facts) {
        Ok(lowered) => Ok(lowered.action),
        Err(refused) => {
            let of = |f: fn(&fullpipe_policy::Refusal) -> &str| {
                refused.iter().map(f).collect::<Vec<_>>().join("; ")
            };
            Err(Lack {
                message: of(|r| &r.message),
                hint: of(|r| &r.hint),
            })
        }
    }
}

fn rule(k: usize, wanted: &Wanted) -> Result<Rule, GroundError> {
    let action = action(wanted);
    let action = action.map_err(|lack| GroundError::Fault(lack.message))?;
    Ok(Rule {
        name: format!("flow{k}"),
        selector: Selector {
            to: vec![Prefix {
                address: wanted.to,
                bits: if wanted.to.is_ipv4() { 32 } else { 128 },
            }],
            ports: Vec::new(),
            side: Side::Active,
            cgroup: None,
            process: None,
        },
        // The ground has set the standard.
        respect_app: false,
        share: 1 << 16,
        divide: false,
        via: Via::Auto,
        action,
        send_buffer: None,
        receive_buffer: None,
        stack: wanted.stack.to_string(),
    })
}

/// A control group below that of this process, which is in it, and a folder of the same name; both
/// gone at the end.
struct Group {
    path: PathBuf,
    home: PathBuf,
    folder: PathBuf,
}

impl Group {
    fn enter() -> io::Result<Self> {
        let home = home()?;
        let name = format!("{NAME}{}", std::process::id());
        let group = Self {
            path: home.join(&name),
            folder: std::env::temp_dir().join(&name),
            home,
        };
        fs::create_dir(&group.path)?;
        let _ = fs::remove_dir_all(&group.folder);
        fs::create_dir(&group.folder)?;
        join(&group.path)?;
        Ok(group)
    }

    fn leave(&self) -> io::Result<()> {
        join(&self.home)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.leave();
        let _ = fs::remove_dir_all(&self.folder);
        // A link that has just gone holds it for a moment.
        let begin = Instant::now();
        while fs::remove_dir(&self.path).is_err() && begin.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

const NAME: &str = "fullpipe-run-";

fn home() -> io::Result<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let own = own.lines().find_map(|l| l.strip_prefix("0::"));
    let own = own.ok_or_else(|| io::Error::other("no version 2"))?;
    Ok(groups::root()?.join(own.trim_start_matches('/')))
}

fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Groups of runs that were killed: they are empty.
fn sweep() {
    let Ok(home) = home() else { return };
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|n| n.strip_prefix(NAME));
        if let Some(id) = id
            && !Path::new("/proc").join(id).exists()
        {
            let _ = fs::remove_dir(entry.path());
            let _ = fs::remove_dir_all(std::env::temp_dir().join(&name));
        }
    }
}
