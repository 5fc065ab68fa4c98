//! What the kernel's TCP is set to, judged for a long fat path; read, not changed.

use std::fs;
use std::path::Path;

use fullpipe_units::{Rate, Span};

use crate::Finding;

/// Reads all of it, and judges it for a path.
pub fn examine(path: LongPath) -> Vec<Finding> {
    examine_in(Path::new("/"), path)
}

/// The path that settings are judged for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongPath {
    /// Rate of the bottleneck, headers included.
    pub rate: Rate,
    /// Without queues.
    pub rtt: Span,
}

impl Default for LongPath {
    fn default() -> Self {
        Self {
            rate: Rate::from_bits_per_sec(1_000_000_000),
            rtt: Span::from_millis(100),
        }
    }
}

impl LongPath {
    /// Bytes on their way, rate times round-trip time.
    fn product(self) -> f64 {
        self.rate.as_bits_per_sec() as f64 / 8.0 * self.rtt.as_secs_f64()
    }

    /// Bytes of a buffer that fills the path, where so much of it is payload.
    fn least(self, holds: Payload) -> f64 {
        self.product() / holds.part
    }

    /// The buffer to set: with room for a queue as long as the path, a power of two.
    fn enough(self, holds: Payload) -> f64 {
        let bytes = (2.0 * self.least(holds)).max(USUAL);
        (bytes as u64).next_power_of_two() as f64
    }

    /// Mbit/s of a window of so many bytes.
    fn mbps(self, window: f64) -> f64 {
        window * 8.0 / self.rtt.as_secs_f64() / 1e6
    }
}

/// The third value of `tcp_rmem` and `tcp_wmem` is a C `int`.
const LARGEST: f64 = i32::MAX as f64;
/// What is set at the least: memory that a flow does not need it does not take.
const USUAL: f64 = 67_108_864.0;

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

fn examine_in(root: &Path, path: LongPath) -> Vec<Finding> {
    let sysctl = Sysctl {
        dir: &root.join("proc/sys/net"),
        path,
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

/// What is left where no buffer is large enough.
const STREAMS: &str = "several streams share a path that is larger";

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
    path: LongPath,
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
        let (path, most) = (self.path, most as f64);
        let rtt = path.rtt;
        let (megabytes, rate) = (most / 1e6, path.mbps(most * holds.part));
        let why = holds.why;
        let found = format!("up to {megabytes:.1} MB: at least {rate:.0} Mbit/s at {rtt}; {why}");
        if most >= path.least(holds) {
            return Some(Finding::yes(name, found));
        }
        let enough = path.enough(holds);
        let remedy = if enough <= LARGEST {
            format!("sudo sysctl '{key}={least} {usual} {enough}'")
        } else if most < LARGEST {
            // What Linux takes at the most, and what it is good for.
            let rate = path.mbps(LARGEST * holds.part);
            format!("sudo sysctl '{key}={least} {usual} {LARGEST}', {rate:.0} Mbit/s; {STREAMS}")
        } else {
            format!("none is larger; {STREAMS}")
        };
        Some(Finding::limited(name, found).remedy(remedy))
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
        host_on(LongPath::default(), settings)
    }

    fn host_on(path: LongPath, settings: &[(&str, &str)]) -> Vec<Finding> {
        let dir = std::env::temp_dir().join(format!(
            "fullpipe-doctor-{}-{}-{}",
            std::process::id(),
            path.rate.as_bits_per_sec(),
            settings.iter().map(|s| s.1.len()).sum::<usize>()
        ));
        for (name, text) in settings {
            let file = dir.join(name);
            fs::create_dir_all(file.parent().expect("a folder")).expect("folder");
            fs::write(file, text).expect("file");
        }
        let findings = examine_in(&dir, path);
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
        let remedy = rmem.remedy.as_ref().unwrap().to_string();
        assert!(remedy.contains("net.ipv4.tcp_rmem=4096 131072 67108864"));
        assert_eq!(wmem.state, State::Yes);
        assert_eq!(sack.state, State::Limited);
        assert!(sack.remedy.is_some());
        assert_eq!(qdisc.state, State::Yes);
        assert_eq!(mtu.found, "eth0 9000");
    }

    /// 10 Gbit/s x 120 ms are 150 MB: with a queue as long, of which half is payload, 600 MB, and
    /// 2^30 is the power of two above. Of what is sent 1,448 of 2,216 bytes are payload: 229.6 MB.
    #[test]
    fn buffers_are_judged_for_the_path_that_is_asked_for() {
        let settings = [
            ("proc/sys/net/ipv4/tcp_rmem", "4096 131072 67108864"),
            ("proc/sys/net/ipv4/tcp_wmem", "4096 16384 230000000"),
        ];
        let path = |gbps: u64, ms| LongPath {
            rate: Rate::from_bits_per_sec(gbps * 1_000_000_000),
            rtt: Span::from_millis(ms),
        };
        let fit = host_on(path(1, 100), &settings);
        assert!(fit.iter().all(|f| f.state == State::Yes), "{fit:?}");
        let long = host_on(path(10, 120), &settings);
        let [rmem, wmem] = &long[..] else {
            panic!("{long:?}");
        };
        let rate = "at least 2237 Mbit/s at 120ms";
        assert!(rmem.found.contains(rate), "{rmem:?}");
        let enough = "sudo sysctl 'net.ipv4.tcp_rmem=4096 131072 1073741824'";
        assert_eq!(rmem.remedy, Some(enough.into()));
        assert_eq!(wmem.state, State::Yes, "{wmem:?}");
        // Half of an `int`'s bytes each 0.3 s.
        let beyond = host_on(path(100, 300), &settings);
        let remedy = beyond[0].remedy.as_ref().unwrap().to_string();
        let most = "131072 2147483647', 28633 Mbit/s; several streams";
        assert!(remedy.contains(most), "{remedy}");
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let findings = host(&[("proc/sys/net/ipv4/tcp_rmem", "many\n")]);
        assert_eq!(findings[0].state, State::Limited);
        assert!(findings[0].found.contains("many"), "{findings:?}");
    }
}
