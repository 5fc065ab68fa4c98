//! What eBPF takes: capabilities of this process and the kernel's own description of its types.
//! These are read; no program is loaded.

use std::fs;

use crate::Finding;

/// Looks at all of it.
pub fn examine() -> Vec<Finding> {
    vec![capabilities(), congestion_control(), compiler()]
}

/// Names and bits of `CapEff` in `/proc/self/status` (capabilities(7)).
const WANTED: [(&str, u32); 3] = [("cap_net_admin", 12), ("cap_perfmon", 38), ("cap_bpf", 39)];

fn capabilities() -> Finding {
    const NAME: &str = "capabilities for eBPF";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let absent = absent(&status);
    if absent.is_empty() {
        return Finding::yes(NAME, "all three");
    }
    let absent = absent.join(",");
    Finding::no(NAME, format!("not {absent}")).remedy(format!(
        "sudo setcap {absent}+ep \"$(command -v fullpipe)\", or run as root"
    ))
}

fn absent(status: &str) -> Vec<&'static str> {
    let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let bits = line.and_then(|l| u64::from_str_radix(l.trim(), 16).ok());
    let bits = bits.unwrap_or(0);
    let lacking = WANTED.iter().filter(|(_, bit)| bits & (1 << bit) == 0);
    lacking.map(|(name, _)| *name).collect()
}

/// Types of the running kernel, in BTF.
const TYPES: &str = "/sys/kernel/btf/vmlinux";
/// Type by which a kernel takes congestion control from eBPF (Linux 5.6).
const OPS: &[u8] = b"bpf_struct_ops_tcp_congestion_ops";

fn congestion_control() -> Finding {
    const NAME: &str = "congestion control by eBPF (struct_ops)";
    match fs::read(TYPES) {
        Err(e) => Finding::no(NAME, format!("{TYPES}: {e}"))
            .remedy("a kernel with CONFIG_DEBUG_INFO_BTF=y, as all large distributions have"),
        Ok(types) if types.windows(OPS.len()).any(|w| w == OPS) => {
            Finding::yes(NAME, "in the kernel's types")
        }
        Ok(_) => Finding::no(NAME, "not in the kernel's types")
            .remedy("Linux 5.6 or later with CONFIG_BPF_JIT=y and CONFIG_BPF_SYSCALL=y"),
    }
}

const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";

fn compiler() -> Finding {
    const NAME: &str = "compiler of eBPF (JIT)";
    match fs::read_to_string(JIT).as_deref().map(str::trim) {
        Ok("0") => Finding::no(NAME, "off").remedy("sudo sysctl net.core.bpf_jit_enable=1"),
        Ok(_) => Finding::yes(NAME, "on"),
        Err(e) => Finding::no(NAME, format!("{JIT}: {e}")).remedy("a kernel with CONFIG_BPF_JIT=y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lacking_capabilities_are_named() {
        let root = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert!(absent(root).is_empty());
        // cap_net_admin alone.
        assert_eq!(
            absent("CapEff:\t0000000000001000"),
            ["cap_perfmon", "cap_bpf"]
        );
        assert_eq!(absent(""), ["cap_net_admin", "cap_perfmon", "cap_bpf"]);
    }
}
