//! What eBPF takes: capabilities of this process and the kernel's own description of its types.
//! These are read; the tuner's own trial loads programs.

use std::fs;
use std::io;

use crate::{Finding, ROOT, Remedy};

/// Looks at all of it.
pub fn examine() -> Vec<Finding> {
    vec![capabilities(), congestion_control(), compiler()]
}

/// Names and bits of `CapEff` in `/proc/self/status` (capabilities(7)).
const WANTED: [(&str, u32); 3] = [("cap_net_admin", 12), ("cap_perfmon", 38), ("cap_bpf", 39)];

fn capabilities() -> Finding {
    const NAME: &str = "capabilities for eBPF";
    match privileges() {
        None => Finding::yes(NAME, "all three"),
        Some(lack) => Finding::no(NAME, lack.names).remedy(lack.remedy),
    }
}

/// Capabilities that this process lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Missing capabilities: `not cap_bpf,cap_net_admin`.
    pub names: String,
    /// Grants them together with those that are there.
    pub remedy: Remedy,
}

/// What of the three capabilities this process lacks; `None`: nothing.
pub fn privileges() -> Option<Lack> {
    lack(&absent(&status(), &WANTED))
}

/// Capabilities that the tuner can do without: name, bit, what for, and what is so without.
const HELPFUL: [(&str, u32, &str, &str); 2] = [
    (
        "cap_sys_ptrace",
        19,
        "buffers of other users' flows",
        "their sizes come back, and the kernel does not tune them any more",
    ),
    (
        "cap_sys_admin",
        21,
        "running flows of other namespaces",
        "they are left alone",
    ),
];

/// Findings about capabilities beyond the three that every program needs.
pub fn helpful() -> Vec<Finding> {
    let status = status();
    let each = HELPFUL.iter().map(|(capability, bit, name, without)| {
        match lack(&absent(&status, &[(capability, *bit)])) {
            None => Finding::yes(*name, *capability),
            Some(Lack { names, remedy }) => {
                Finding::limited(*name, format!("{names}: {without}")).remedy(remedy)
            }
        }
    });
    each.collect()
}

fn lack(absent: &[&'static str]) -> Option<Lack> {
    // The command replaces what the file had: it names the three, too.
    let three = WANTED.map(|(name, _)| name);
    let more = absent.iter().filter(|name| !three.contains(name));
    let names = three.iter().chain(more).copied().collect();
    (!absent.is_empty()).then(|| Lack {
        names: format!("not {}", absent.join(",")),
        remedy: Remedy::Capabilities { names, or: ROOT },
    })
}

fn status() -> String {
    fs::read_to_string("/proc/self/status").unwrap_or_default()
}

fn absent<'a>(status: &str, wanted: &[(&'a str, u32)]) -> Vec<&'a str> {
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let bits = line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
    let bits = bits.unwrap_or(0);
    let lacking = wanted.iter().filter(|(_, bit)| bits & (1 << bit) == 0);
    lacking.map(|(name, _)| *name).collect()
}

/// Types of the running kernel, in BTF.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Type by which a kernel takes congestion control from eBPF (Linux 5.6).
const OPS: &[u8] = b"bpf_struct_ops_tcp_congestion_ops";

fn congestion_control() -> Finding {
    const NAME: &str = "congestion control by eBPF (struct_ops)";
    match has_ops() {
        Err(e) => Finding::no(NAME, format!("{TYPES}: {e}"))
            .remedy("a kernel with CONFIG_DEBUG_INFO_BTF=y, as all large distributions have"),
        Ok(true) => Finding::yes(NAME, "in the kernel's types"),
        Ok(false) => Finding::no(NAME, "not in the kernel's types")
            .remedy("Linux 5.6 or later with CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y"),
    }
}

fn has_ops() -> io::Result<bool> {
    let types = fs::read(TYPES)?;
    Ok(types.windows(OPS.len()).any(|w| w == OPS))
}

/// In the first network namespace alone.
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";

fn compiler() -> Finding {
    const NAME: &str = "compiler of eBPF (JIT)";
    match fs::read_to_string(JIT).as_deref().map(str::trim) {
        Ok("0") => Finding::no(NAME, "off").remedy("sudo sysctl net.core.bpf_jit_enable=1"),
        Ok(_) => Finding::yes(NAME, "on"),
        // No kernel without it has congestion control by eBPF.
        Err(_) if has_ops().unwrap_or(false) => {
            let words = "in the kernel; the first network namespace tells whether it is on";
            Finding::yes(NAME, words)
        }
        Err(e) => Finding::no(NAME, format!("{JIT}: {e}")).remedy("a kernel with CONFIG_BPF_JIT=y"),
    }
}

#[cfg(test)]
mod tests {
    use nix::sched::{CloneFlags, unshare};

    use super::*;

    /// The sysctl is missing in a namespace of its own.
    #[test]
    fn a_compiler_is_found_in_a_network_namespace_too() {
        let here = compiler();
        let there = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok::<_, nix::Error>(compiler())
        });
        match there.join().unwrap() {
            Ok(there) => assert_eq!(there.state, here.state, "{here:?} {there:?}"),
            Err(e) => eprintln!("skipped: no network namespace: {e}"),
        }
    }

    #[test]
    fn lacking_capabilities_are_named() {
        let root = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert!(absent(root, &WANTED).is_empty());
        // cap_net_admin alone.
        assert_eq!(
            absent("CapEff:\t0000000000001000", &WANTED),
            ["cap_perfmon", "cap_bpf"]
        );
        assert_eq!(
            absent("", &WANTED),
            ["cap_net_admin", "cap_perfmon", "cap_bpf"]
        );
    }
}
