//! What the kernel's TCP is set to, judged for a long fat path; read, not changed.

use std::fs;
use std::path::Path;

use crate::Finding;

/// Reads all of it.
pub fn examine() -> Vec<Finding> {
    examine_in(Path::new("/"))
}

/// The path that settings are judged for, 1 Gbit/s and 100 ms: bytes on their way.
const PRODUCT: u64 = 12_500_000;

/// How much of a buffer is payload, at the least.
#[derive(Clone, Copy)]
struct Payload {
    part: f64,
    why: &'static str,
}

/// `tcp_adv_win_scale`; since Linux 6.6 the part that payload had of the memory of what came in.
const HALF_OF_IT: Payload = Payload {
    part: 0.5,
    why: "the window offered is half of it, or more since Linux 6.6",
};
/// 1,448 bytes of payload in 2,216 of memory, where every segment has a buffer of its own.
const A_SEGMENT_EACH: Payload = Payload {
    part: 1448.0 / 2216.0,
    why: "segments that leave together need less memory",
};

fn examine_in(root: &Path) -> Vec<Finding> {
    let sysctl = Sysctl {
        dir: &root.join("proc/sys/net"),
    };
    let mut findings = Vec::new();
    findings.extend(sysctl.buffer(
        "receive buffer (tcp_rmem)",
        "ipv4/tcp_rmem",
        "net.ipv4.tcp_rmem",
        HALF_OF_IT,
    ));
    findings.extend(sysctl.buffer(
        "send buffer (tcp_wmem)",
        "ipv4/tcp_wmem",
        "net.ipv4.tcp_wmem",
        A_SEGMENT_EACH,
    ));
    findings.extend(SWITCHES.iter().filter_map(|switch| sysctl.switch(switch)));
    findings.extend(sysctl.qdisc());
    findings.extend(interfaces(&root.join("sys/class/net")));
    findings
}

/// A setting that is to be on.
struct Switch {
    name: &'static str,
    /// Below `/proc/sys/net`.
    file: &'static str,
    off: &'static str,
    remedy: &'static str,
}

const SWITCHES: [Switch; 5] = [
    Switch {
        name: "receive buffer grows by itself",
        file: "ipv4/tcp_moderate_rcvbuf",
        off: "off: a program that sets no buffer has the middle value of tcp_rmem",
        remedy: "sudo sysctl net.ipv4.tcp_moderate_rcvbuf=1",
    },
    Switch {
        name: "window scaling",
        file: "ipv4/tcp_window_scaling",
        off: "off: no window above 64 kB",
        remedy: "sudo sysctl net.ipv4.tcp_window_scaling=1",
    },
    Switch {
        name: "selective acknowledgements (SACK)",
        file: "ipv4/tcp_sack",
        off: "off: a window with many losses takes a round trip for each",
        remedy: "sudo sysctl net.ipv4.tcp_sack=1",
    },
    Switch {
        name: "slow-start threshold of earlier connections",
        file: "ipv4/tcp_no_metrics_save",
        off: "kept: a connection may leave slow start where an earlier one to the host lost",
        remedy: "for measurements: `sudo sysctl net.ipv4.tcp_no_metrics_save=1`",
    },
    Switch {
        name: "search for the path's MTU (tcp_mtu_probing)",
        file: "ipv4/tcp_mtu_probing",
        off: "off: where ICMP is lost, large segments are lost for good",
        remedy: "with jumbo frames: `sudo sysctl net.ipv4.tcp_mtu_probing=1`",
    },
];

struct Sysctl<'a> {
    dir: &'a Path,
}

impl Sysctl<'_> {
    /// `None` where this network namespace does not have it.
    fn text(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.dir.join(name)).ok()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The last of three numbers: the largest buffer that the kernel makes by itself.
    fn buffer(&self, name: &str, file: &str, key: &str, holds: Payload) -> Option<Finding> {
        let text = self.text(file)?;
        let numbers: Vec<u64> = text.split(' ').filter_map(|n| n.parse().ok()).collect();
        let [least, usual, most] = numbers[..] else {
            return Some(Finding::limited(name, format!("not understood: {text}")));
        };
        let megabytes = most as f64 / 1e6;
        let rate = most as f64 * holds.part * 8.0 / 0.1 / 1e6;
        let why = holds.why;
        let found = format!("up to {megabytes:.1} MB: at least {rate:.0} Mbit/s at 100 ms; {why}");
        Some(match most >= 2 * PRODUCT {
            true => Finding::yes(name, found),
            false => Finding::limited(name, found)
                .remedy(format!("sudo sysctl '{key}={least} {usual} 67108864'")),
        })
    }

    fn switch(&self, switch: &Switch) -> Option<Finding> {
        let text = self.text(switch.file)?;
        Some(match text.parse::<u64>() {
            Ok(1..) => Finding::yes(switch.name, format!("as it should be: {text}")),
            _ => Finding::limited(switch.name, switch.off).remedy(switch.remedy),
        })
    }

    fn qdisc(&self) -> Option<Finding> {
        const NAME: &str = "queue of new interfaces (default_qdisc)";
        let text = self.text("core/default_qdisc")?;
        Some(match text.as_str() {
            "fq" => Finding::yes(NAME, "fq: paces what TCP gives it"),
            _ => Finding::limited(NAME, format!("{text}: TCP paces by a timer for each flow"))
                .remedy("`sudo sysctl net.core.default_qdisc=fq`, where the kernel has sch_fq"),
        })
    }
}

/// MTUs of what is up, but for loopback.
fn interfaces(dir: &Path) -> Option<Finding> {
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "lo" || read("operstate").trim() == "down" {
            continue;
        }
        found.push(format!("{name} {}", read("mtu").trim()));
    }
    found.sort();
    let found = match found.is_empty() {
        true => "none is up".to_owned(),
        false => found.join(", "),
    };
    Some(Finding::yes("MTU of interfaces, bytes", found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn host(settings: &[(&str, &str)]) -> Vec<Finding> {
        let dir = std::env::temp_dir().join(format!(
            "fullpipe-doctor-{}-{}",
            std::process::id(),
            settings.iter().map(|s| s.1.len()).sum::<usize>()
        ));
        for (name, text) in settings {
            let file = dir.join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
            fs::write(file, text).expect("file");
        }
        let findings = examine_in(&dir);
        fs::remove_dir_all(&dir).expect("removed");
        findings
    }

    #[test]
    fn small_buffers_come_with_what_mends_them() {
        let findings = host(&[
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
            ("proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t67108864\n"),
            ("proc/sys/net/ipv4/tcp_sack", "0\n"),
            ("proc/sys/net/core/default_qdisc", "fq\n"),
            ("sys/class/net/eth0/mtu", "9000\n"),
            ("sys/class/net/eth1/mtu", "1500\n"),
            ("sys/class/net/eth1/operstate", "down\n"),
        ]);
        let [rmem, wmem, sack, qdisc, mtu] = &findings[..] else {
            panic!("{findings:?}");
        };
        assert_eq!(rmem.state, State::Limited);
        // 6,291,456 / 2 bytes each 0.1 s.
        assert!(
            rmem.found.starts_with("up to 6.3 MB: at least 252 Mbit/s"),
            "{rmem:?}"
        );
        // 67,108,864 * 1448 / 2216.
        assert!(
            wmem.found
                .starts_with("up to 67.1 MB: at least 3508 Mbit/s"),
            "{wmem:?}"
        );
        let remedy = rmem.remedy.as_deref().unwrap_or_default();
        assert!(remedy.contains("net.ipv4.tcp_rmem=4096 131072 67108864"));
        assert_eq!(wmem.state, State::Yes);
        assert_eq!(sack.state, State::Limited);
        assert!(sack.remedy.is_some());
        assert_eq!(qdisc.state, State::Yes);
        assert_eq!(mtu.found, "eth0 9000");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let findings = host(&[("proc/sys/net/ipv4/tcp_rmem", "many\n")]);
        assert_eq!(findings[0].state, State::Limited);
        assert!(findings[0].found.contains("many"), "{findings:?}");
    }
}
