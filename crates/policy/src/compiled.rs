//! What a policy compiles to: plain data that the kernel side copies into its maps.
//!
//! No BPF, no root: the same values serve the simulator, `explain`, and the tests that hold the C
//! arithmetic against the Rust laws.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::keys::Via;

/// Rows of a table at most: a binary search takes seven steps.
pub const TABLE_ROWS: usize = 128;

/// All rules of a policy, in order: the first that matches a flow decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// In the order of the files and, within one, of its lines.
    pub rules: Vec<Rule>,
    /// Sentences for the administrator: what is more aggressive than CUBIC, what cannot be done.
    pub warnings: Vec<String>,
    /// What the kernel side does when the daemon's heartbeat stops.
    pub on_daemon_loss: OnDaemonLoss,
    /// Ports whose flows are never touched, either side.
    pub never_tune: Vec<RangeInclusive<u16>>,
}

impl Compiled {
    /// Algorithms of the kernel that paths name and that are not among `available`, the words of
    /// `tcp_available_congestion_control`: a sentence each. Without words nothing is known.
    pub fn lacking(&self, available: &str) -> Vec<String> {
        // Names of a tuner end their prefix with this sign, the kernel's own have none.
        let own = available.split_whitespace();
        let own: Vec<&str> = own.filter(|name| !name.contains('_')).collect();
        let lacks = |rule: &Rule| match &rule.action {
            Action::Kernel { name, .. } if !own.is_empty() => {
                let there = available.split_whitespace().any(|known| known == name);
                (!there).then(|| {
                    format!(
                        "`path.{}`: the running kernel has no congestion control `{name}`; it has \
                         {}; `modprobe tcp_{name}` loads its module, if there is one",
                        rule.name,
                        own.join(", ")
                    )
                })
            }
            _ => None,
        };
        self.rules.iter().filter_map(lacks).collect()
    }
}

/// One path of the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The path's name in the file, unique.
    pub name: String,
    /// Flows to which the rule applies.
    pub selector: Selector,
    /// A flow whose program chose its algorithm itself is left alone.
    pub respect_app: bool,
    /// Of 65536 matching flows, how many get the policy; the others stay as they were.
    pub share: u32,
    /// Divide window clamp and pacing among the flows that the rule holds now.
    pub divide: bool,
    /// How the initial window is spread, if it is.
    pub via: Via,
    /// What a flow of the rule runs.
    pub action: Action,
    /// `SO_SNDBUF`, bytes of payload; `None`: the kernel's autotuning.
    pub send_buffer: Option<u64>,
    /// `SO_RCVBUF`, bytes of payload.
    pub receive_buffer: Option<u64>,
    /// The stack in fullpipe's spelling, normalised, as `status` and `explain` print it.
    pub stack: String,
}

/// What a path asks of its flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Networks of the peer; IPv4 as itself, the kernel side maps it into v6.
    pub to: Vec<Prefix>,
    /// Empty: every port.
    pub ports: Vec<RangeInclusive<u16>>,
    /// Which end of the connection this host is.
    pub side: Side,
    /// Control group (v2) below which the socket was made.
    pub cgroup: Option<PathBuf>,
    /// Name of the process (`comm`, 15 bytes at most).
    pub process: Option<String>,
}

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Its bits past the prefix are zero.
    pub address: IpAddr,
    /// Length, 0 to 32 or to 128.
    pub bits: u8,
}

/// Which end opened the connection. A rule's ports are those of the end that was connected to, or
/// of either end for [`Side::Either`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// Both.
    #[default]
    Either,
    /// This host connected.
    Active,
    /// This host accepted.
    Passive,
}

/// What the kernel side does when the daemon is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDaemonLoss {
    /// Reno until the daemon is back.
    #[default]
    Standard,
    /// Go on by the tables as they are.
    Keep,
}

/// What a flow of a rule runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// An algorithm that the kernel has.
    Kernel {
        /// As the kernel spells it, at most 15 bytes (`TCP_CA_NAME_MAX`).
        name: String,
        /// Bytes per second at most; 0: no ceiling.
        pacing: u64,
    },
    /// The dispatcher of our own.
    Ours {
        /// Parameters that the kernel side reads on every ACK.
        params: Params,
        /// Empty for a law without a(w) and b(w) of its own; at most [`TABLE_ROWS`].
        table: Vec<Row>,
    },
}

/// A row of a(w), b(w): holds from `window` up to the next row's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Segments.
    pub window: u32,
    /// Segments per round trip, in 1/256.
    pub increase: u32,
    /// Fraction that a loss takes away, in 1/65536.
    pub decrease: u32,
}

/// What the dispatcher reads per ACK. Zero is "off" in every optional field.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// [`LAW_TABLE`] and the others.
    pub law: u32,
    /// Bits `FLAG_*`.
    pub flags: u32,
    /// Rows used of the table.
    pub rows: u32,
    /// RFC 3742, segments.
    pub max_ssthresh: u32,
    /// Segments of queue that end slow start, in 1/256.
    pub gamma: u32,
    /// After gamma: go on with limited slow start of this `max_ssthresh` (0: congestion avoidance;
    /// the window at the crossing, if that is smaller: [`u32::MAX`] is always the crossing's).
    pub gamma_then: u32,
    /// Window at most, segments.
    pub clamp: u32,
    /// Segments, before the first data.
    pub initial_window: u32,
    /// Spread the initial window over this time, microseconds.
    pub spread_us: u32,
    /// Recompute a and b only this often, microseconds (0: every ACK).
    pub update_interval_us: u32,
    /// Bytes per second at most.
    pub pacing: u64,
    /// The law's own numbers, meaning by law (see its constants), fixed point.
    pub number: [u64; 8],
}

impl Params {
    /// The fraction that a loss at this window takes, segments, where that does not depend on what
    /// came before.
    pub fn fixed_decrease(&self, window: u32) -> Option<f64> {
        let removed = match self.law {
            LAW_SCALABLE if u64::from(window) < self.number[2] => 32_768,
            LAW_SCALABLE => self.number[1],
            LAW_CUBIC => 65_536 - self.number[1],
            LAW_BIC => 65_536 - self.number[5],
            LAW_VEGAS => self.number[2],
            _ => return None,
        };
        Some(removed as f64 / 65_536.0)
    }
}

/// a(w) and b(w) from the table: AIMD, HighSpeed, n streams.
pub const LAW_TABLE: u32 = 0;
/// A fixed part of a segment per segment delivered. [`Params::number`]: 0 that part, in 2^-32
/// segments; 1 fraction removed, 1/65536; 2 window below which the flow is Reno, segments.
pub const LAW_SCALABLE: u32 = 1;
/// Increase by the time since the last congestion event. [`Params::number`]: 0 `delta_l`, us; 1
/// `beta_min`, 2 `beta_max`, 3 `bandwidth_switch`, all 1/65536; 4 bits: 1 adaptive decrease, 2
/// scaled by the RTT.
pub const LAW_HTCP: u32 = 2;
/// Binary search towards the window of the last loss. [`Params::number`]: 0 `low_window`, segments;
/// 1 `s_max`, 2 `s_min`, segments per round trip, 1/256; 3 divisor of the search; 4 the search
/// distance after the division up to which the increase is `s_min`, 1/256 segment; 5 fraction kept,
/// 1/65536; 6 bits: 1 fast convergence.
pub const LAW_BIC: u32 = 3;
/// RFC 9438. [`Params::number`]: 0 `C`, segments/s^3, 1/65536; 1 fraction kept, 1/65536; 2 bits: 1
/// fast convergence, 2 never slower than Reno.
pub const LAW_CUBIC: u32 = 4;
/// Reno whose decrease is to the measured bandwidth-delay product (Westwood+). [`Params::number`]:
/// 0 shortest sampling time, us.
pub const LAW_WESTWOOD: u32 = 5;
/// Between `alpha` and `beta` segments of queue. [`Params::number`]: 0 `alpha`, 1 `beta`, segments,
/// 1/256; 2 fraction removed, 1/65536.
pub const LAW_VEGAS: u32 = 6;
/// `alpha` segments of queue. [`Params::number`]: 0 `alpha`, segments, 1/256; 1 `gamma`, 2
/// `eta_max`, 1/65536.
pub const LAW_FAST: u32 = 7;
/// The table, and an early decrease when the delay grows. [`Params::number`]: 0 `delta`, 1/65536; 1
/// `granularity`, us.
pub const LAW_HSTCP_LP: u32 = 8;

/// A local stall does not reduce the window.
pub const FLAG_SENDSTALL_IGNORE: u32 = 1;
