//! What no path may ask for: by the kernel, by the room in the kernel side's maps, or because it
//! would reach more than an administrator means.

use fullpipe_scenario::value::{At, Findings, Key, Table};

use crate::compiled::Prefix;
use crate::keys::PathKeys;
use crate::spelling::Ports;

/// Paths that the kernel side holds.
pub const RULES: usize = 64;

/// Networks of all paths together.
pub const NETWORKS: usize = 16_384;

/// Ranges of ports of a path, and of `never_tune`.
pub const RANGES: usize = 8;

/// Bytes that `SO_SNDBUF` takes: the kernel doubles the number and keeps it in an `int`
/// (socket(7)).
const MOST_BUFFER: u64 = (1 << 30) - 1;

/// Bytes per second: `bpf_setsockopt(SO_MAX_PACING_RATE)` takes 32 bits, of which the highest value
/// lifts the ceiling.
const MOST_PACING: u64 = u32::MAX as u64 - 1;

/// Longest name of a process, `TASK_COMM_LEN` less its end, and of an algorithm, `TCP_CA_NAME_MAX`
/// less its end.
const LONGEST_NAME: usize = 15;

/// Networks that a path holds only where everything is allowed, and what they are.
const RESERVED: [(&str, u8, &str); 6] = [
    ("0.0.0.0", 0, "every address of IPv4"),
    (
        "::ffff:0:0",
        96,
        "every address of IPv4 (as ::ffff:a.b.c.d)",
    ),
    ("127.0.0.0", 8, "loopback"),
    ("::1", 128, "loopback"),
    ("169.254.0.0", 16, "link-local"),
    ("fe80::", 10, "link-local"),
];

/// Prefixes so short that they hold a part of the Internet, bits.
const WIDE: (u8, u8) = (8, 16);

pub(crate) fn networks(path: &At<'_, PathKeys>, everything: bool, findings: &mut Findings) {
    let networks = path.to.as_deref().unwrap_or_default();
    for network in networks {
        let allow = "write allow_everything = true in [defaults] if that is meant";
        if network.bits == 0 && !everything {
            let message = format!("{network} is a default route: the path would hold every flow");
            path.refuse(findings, &PathKeys::to, message, allow);
            continue;
        }
        let (width, wide) = match network.address.is_ipv4() {
            true => (32, WIDE.0),
            false => (128, WIDE.1),
        };
        let reserved = RESERVED.iter().find(|(address, bits, _)| {
            let reserved = Prefix {
                address: address.parse().expect("an address"),
                bits: *bits,
            };
            // IPv4 as a whole is held by no network of IPv4 but the default route.
            match *bits == 0 || *bits == 96 {
                true => network.address.is_ipv6() && network.contains(&reserved),
                false => reserved.contains(network) || network.contains(&reserved),
            }
        });
        match reserved {
            Some((address, bits, what)) if !everything => {
                let message = match *bits != 0 && network.bits < *bits {
                    true if *bits != 96 => format!("{network} holds {address}/{bits}, {what}"),
                    _ => format!("{network} is {what}"),
                };
                path.refuse(findings, &PathKeys::to, message, allow);
            }
            _ if network.bits < wide && !everything => {
                let message = format!(
                    "{network} holds 2^{} addresses, a part of the Internet",
                    width - network.bits
                );
                path.warn(findings, &PathKeys::to, &message);
            }
            _ => {}
        }
    }
}

/// `networks` of the paths up to this one.
pub(crate) fn many(path: &At<'_, PathKeys>, networks: usize, findings: &mut Findings) {
    if networks > NETWORKS {
        let message = format!("{networks} networks up to here; the kernel side holds {NETWORKS}");
        path.refuse(
            findings,
            &PathKeys::to,
            message,
            "join neighbours into wider networks",
        );
    }
}

pub(crate) fn selectors(path: &At<'_, PathKeys>, findings: &mut Findings) {
    ranges(
        path,
        &PathKeys::ports,
        path.ports.as_deref().unwrap_or_default(),
        findings,
    );
    if let Some(name) = &path.process
        && !(1..=LONGEST_NAME).contains(&name.len())
    {
        let message = format!("the kernel keeps 1 to {LONGEST_NAME} bytes of a process's name");
        let end = (0..=LONGEST_NAME.min(name.len()))
            .rev()
            .find(|i| name.is_char_boundary(*i));
        let hint = match &name[..end.unwrap_or(0)] {
            "" => "write for example \"iperf3\"".to_owned(),
            short => format!("write \"{short}\""),
        };
        path.refuse(findings, &PathKeys::process, message, hint);
    }
    if let Some(cgroup) = &path.cgroup {
        let message = match cgroup.as_str() {
            "/" => Some("every process is in the root"),
            path if !path.starts_with('/') => Some("the path begins at the root of the hierarchy"),
            path if path.split('/').any(|part| part == "..") => Some("`..` leads out of it"),
            _ => None,
        };
        if let Some(message) = message {
            let hint = "write for example \"/system.slice/gridftp.service\"";
            path.refuse(findings, &PathKeys::cgroup, message, hint);
        }
    }
    if path.is_given(&PathKeys::share) && path.share * 65536.0 < 0.5 {
        let message = "no flow gets the policy";
        path.refuse(
            findings,
            &PathKeys::share,
            message,
            "write for example \"50%\"",
        );
    }
}

/// A host, as the program that asks it takes it.
pub(crate) fn probe(path: &At<'_, PathKeys>, findings: &mut Findings) {
    let Some(host) = &path.probe else {
        if path.is_given(&PathKeys::probe_every) {
            let hint = "write for example probe = \"192.0.2.7\"";
            path.refuse(findings, &PathKeys::probe_every, "nothing is probed", hint);
        }
        return;
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if host.is_empty() || host.starts_with('-') || !host.chars().all(plain) {
        let hint = "write for example \"192.0.2.7\", \"dtn.example.org:6220\" or \"[2001:db8::7]\"";
        path.refuse(findings, &PathKeys::probe, "this is no host", hint);
    }
}

pub(crate) fn ranges<T>(table: &At<'_, T>, key: &Key, ranges: &[Ports], findings: &mut Findings) {
    if ranges.len() > RANGES {
        let message = format!("{} ranges; the kernel side holds {RANGES}", ranges.len());
        table.refuse(findings, key, message, "join neighbours: \"5000-5100\"");
    }
}

pub(crate) fn algorithm(path: &At<'_, PathKeys>, name: &str, findings: &mut Findings) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    if !(1..=LONGEST_NAME).contains(&name.len()) || !name.bytes().all(plain) {
        let message = format!("a name of the kernel has 1 to {LONGEST_NAME} letters and digits");
        let hint =
            "write for example \"cubic\"; `sysctl net.ipv4.tcp_available_congestion_control`";
        path.refuse(findings, &PathKeys::kernel, message, hint);
    } else if name.starts_with("fp_") {
        let message = "this is one of the names that fullpipe registers itself";
        path.refuse(
            findings,
            &PathKeys::kernel,
            message,
            "write `stack` instead",
        );
    }
}

/// Refuses what only a law of our own can do.
pub(crate) fn kernel_only(path: &At<'_, PathKeys>, findings: &mut Findings) {
    let keys = [
        &PathKeys::initial_window,
        &PathKeys::window,
        &PathKeys::sendstall,
        &PathKeys::update_interval,
    ];
    for key in keys.into_iter().filter(|key| path.is_given(key)) {
        let message = "an algorithm of the kernel does not read it";
        path.refuse(
            findings,
            key,
            message,
            "leave it out, or choose a law of fullpipe's own",
        );
    }
}

pub(crate) fn buffers(path: &At<'_, PathKeys>, largest: Option<u64>, findings: &mut Findings) {
    let keys = [
        &PathKeys::buffers,
        &PathKeys::send_buffer,
        &PathKeys::receive_buffer,
    ];
    let key = keys.into_iter().find(|key| path.is_given(key));
    if let (Some(bytes), Some(key)) = (largest.filter(|bytes| *bytes > MOST_BUFFER), key) {
        let message = format!("{bytes} B; the kernel takes less than 1 GiB");
        path.refuse(
            findings,
            key,
            message,
            "leave it out: the kernel tunes buffers itself",
        );
    }
}

pub(crate) fn pacing<T: Table>(path: &At<'_, T>, key: &Key, bytes: u64, findings: &mut Findings) {
    if !(1..=MOST_PACING).contains(&bytes) {
        let message = format!(
            "{bytes} bytes per second; the kernel takes 1 to {MOST_PACING} from a program, \
             34.3 Gbit/s"
        );
        let hint = match bytes {
            0 => "write for example \"500Mbit/s\"",
            _ => "leave the key out above that",
        };
        path.refuse(findings, key, message, hint);
    }
}
