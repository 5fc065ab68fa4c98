//! Emulated hosts: processes and namespaces of a run, a TUN device in each, the congestion modules
//! that TCP has in there, and what an interface with a rate and a queue takes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use fullpipe_emulate::emulation::EmulationError;
use fullpipe_emulate::household::Household;
use fullpipe_emulate::namespace::{HostSide, Side};
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::queues::Drain;
use fullpipe_emulate::stage;
use fullpipe_linux::MODULES;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::utsname::uname;

use crate::{Finding, queues};

/// Tries all of it, as a run does. Enters a user namespace where that takes one.
pub fn examine() -> Vec<Finding> {
    const RIGHT: &str = "the right to make namespaces";
    let right = match Privilege::take() {
        Ok(privilege) => Finding::yes(RIGHT, privilege.word()),
        Err(e) => {
            return vec![Finding::no(RIGHT, e).remedy(
                "run as root, or: sudo sysctl user.max_user_namespaces=10000 \
                 kernel.unprivileged_userns_clone=1 \
                 kernel.apparmor_restrict_unprivileged_userns=0 (as far as there are such keys)",
            )];
        }
    };
    let mut findings = vec![right, household()];
    const HOST: &str = "network namespace with a TUN device";
    match HostSide::make(Side::Near, None, 1, 1500) {
        Ok((host, _device)) => {
            let datagrams = match host.merges_datagrams {
                true => "with segmentation offload",
                false => "with segmentation offload; datagrams not merged, Linux 6.2 does",
            };
            findings.push(Finding::yes(HOST, datagrams));
            findings.push(modules(&host));
            const INTERFACE: &str = "interfaces of hosts: `nic_rate` (htb)";
            findings.push(queues::of("sch_htb", INTERFACE, |links| {
                links.put_htb("lo", 1)?;
                links.put_drain("lo", 1, 1, Drain::TRIAL)
            }));
        }
        Err(e) => findings.push(Finding::no(HOST, &e).remedy(e.hint())),
    }
    findings.push(by_netem());
    findings
}

/// A path of the kernel's queues, made as a run makes it: two namespaces and a wire.
fn by_netem() -> Finding {
    const NAME: &str = "path by the kernel: `emulate --by netem`";
    // The trial would load them.
    let absent = ["sch_netem", "sch_tbf"].map(|module| (module, queues::not_loaded(module)));
    if let Some((module, Some(file))) = absent.into_iter().find(|(_, file)| file.is_some()) {
        let found = format!("not loaded: {}", file.display());
        return Finding::limited(NAME, found).remedy(format!("sudo modprobe {module}"));
    }
    match stage::try_kernel() {
        Ok(()) => Finding::yes(NAME, "wire, delay, rate and buffer accepted"),
        Err(EmulationError::Lacking(e)) => Finding::limited(NAME, e.to_string()).remedy(e.remedy()),
        Err(e) => Finding::limited(NAME, e.to_string()),
    }
}

fn household() -> Finding {
    const NAME: &str = "process namespace";
    match Household::begin() {
        Ok(household) if household.own_proc => Finding::yes(NAME, "with a /proc of its own"),
        Ok(_) => Finding::limited(NAME, "its programs see the host's /proc"),
        Err(e) => Finding::no(NAME, e).remedy("sudo sysctl user.max_pid_namespaces=10000"),
    }
}

/// Congestion modules of the simulator's grounds that this kernel gives to a socket in a host.
fn modules(host: &HostSide) -> Finding {
    const NAME: &str = "congestion control of the kernel";
    let offered = host.enter(|| {
        let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
        // A module that is not in the list would be loaded by being asked for.
        let here = list.split_whitespace().filter(|name| given(name));
        Ok(here.map(str::to_owned).collect::<BTreeSet<String>>())
    });
    let offered = match offered {
        Ok(offered) => offered,
        Err(e) => return Finding::no(NAME, e),
    };
    let found = offered.iter().map(String::as_str).collect::<Vec<_>>();
    let found = found.join(", ");
    let absent: Vec<&str> = (MODULES.iter().copied())
        .filter(|name| !offered.contains(*name))
        .collect();
    let there = modules_on_disk().unwrap_or_default();
    let loadable: Vec<String> = (absent.iter().map(|name| format!("tcp_{name}")))
        .filter(|module| there.contains(module))
        .collect();
    let rest = absent.len() - loadable.len();
    if absent.is_empty() {
        return Finding::yes(NAME, found);
    }
    let mut remedy = Vec::new();
    if !loadable.is_empty() {
        remedy.push(format!("sudo modprobe -a {}", loadable.join(" ")));
    }
    if rest > 0 {
        remedy.push(format!(
            "{rest} of {} are not in this kernel: `--ground linux` has them",
            MODULES.len()
        ));
    }
    Finding::limited(NAME, found).remedy(remedy.join("; "))
}

/// Whether a socket of this namespace takes it: others than root are refused some.
fn given(name: &str) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| {
            let name = name.to_owned().into();
            Ok(setsockopt(&socket, sockopt::TcpCongestion, &name)?)
        })
        .is_ok()
}

/// Names of this kernel's modules of IPv4, `tcp_bbr`.
fn modules_on_disk() -> io::Result<BTreeSet<String>> {
    let release = uname()?.release().to_string_lossy().into_owned();
    let dir = Path::new("/lib/modules")
        .join(release)
        .join("kernel/net/ipv4");
    let files = fs::read_dir(dir)?.flatten();
    // tcp_bbr.ko, tcp_bbr.ko.xz
    let names = files.filter_map(|f| {
        let name = f.file_name().into_string().ok()?;
        Some(name.split(".ko").next()?.to_owned())
    });
    Ok(names.collect())
}
