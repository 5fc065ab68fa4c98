//! `fullpipe emulate`: a path, and what runs over it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{key_value, seed};

/// `fullpipe emulate`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Emulate {
    /// Take the path from this scenario: a file or a built-in name; flags below change it
    #[arg(value_name = "SCENARIO")]
    pub scenario: Option<String>,

    /// What runs on the near host [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,

    /// Run this on the far host meanwhile, by `sh -c`; may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub far: Vec<OsString>,

    /// Use this network namespace as the near host (ip-netns(8)): only a device is added, and taken
    /// away again
    #[arg(long, value_name = "NAME")]
    pub near_namespace: Option<String>,

    /// Use this network namespace as the far host
    #[arg(long, value_name = "NAME")]
    pub far_namespace: Option<String>,

    /// Capacity in both directions, IP headers included, such as `100Mbit/s`
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,

    /// Two-way propagation delay
    #[arg(long, value_name = "TIME")]
    pub rtt: Option<String>,

    /// Room of the queues [default: 1BDP]
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,

    /// Queue discipline: droptail, red, adaptive-red, codel, fq-codel, pie, or a table
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,

    /// Random loss towards the far host, of packets with data
    #[arg(long, value_name = "LOSS")]
    pub loss: Option<String>,

    /// Each packet towards the far host is later by a uniform part of this
    #[arg(long, value_name = "TIME")]
    pub jitter: Option<String>,

    /// Delivery opportunities towards the far host in place of a rate, as mahimahi writes them
    #[arg(long, value_name = "FILE")]
    pub trace: Option<String>,

    /// Capacity towards the near host [default: that of `--rate`]
    #[arg(long, value_name = "RATE")]
    pub return_rate: Option<String>,

    /// Longest packet of the devices [default: 1500]
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<String>,

    /// Change any other key of the scenario, such as `path.reorder`; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// The case of the scenario's matrix, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub case: usize,

    /// Seed of whatever is random
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed)]
    pub seed: u64,

    /// Who carries the packets: this program, or queues of the kernel that do less
    #[arg(long, value_enum, value_name = "CARRIER", default_value_t = Carrier::Fullpipe)]
    pub by: Carrier,

    /// Write every packet by itself: receivers see no merged packets, and acknowledge more often
    #[arg(long)]
    pub no_merge: bool,

    /// Do not measure the path before the command runs
    #[arg(long)]
    pub no_check: bool,

    /// Do not ask for real-time priority
    #[arg(long)]
    pub no_real_time: bool,

    /// Format of what is said about the run
    #[arg(long, value_enum, default_value_t = EmulateFormat::Table)]
    pub format: EmulateFormat,

    /// Write what is said about the run here instead
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Who carries the packets of an emulated path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Carrier {
    /// A thread of this program, over the simulator's links
    Fullpipe,
    /// The kernel's netem and tbf: delay, rate, buffer, and loss of whatever comes
    Netem,
}

/// Format of `fullpipe emulate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EmulateFormat {
    /// For people: on stderr, beside the command's own output
    Table,
    /// For programs: one object, on stdout after the command's own output
    Json,
}

/// Description of `fullpipe emulate`.
pub(super) const ABOUT: &str = "\
Run real programs over an emulated path.

Two hosts are made, each a network namespace with a TUN device; the path between them is carried in \
real time by the links, queues, losses and schedules of the simulator. The command runs on the near \
host and reaches the far one at the address in FULLPIPE_FAR (FULLPIPE_FAR6 over IPv6); `--far` starts \
what is to answer there. Segmentation offload is used, and every packet is cut to its size on the \
wire before any queue sees it. Namespaces, devices and processes belong to the run and end with it, \
however it ends; the host's own network is not touched. Works as root, or in a user namespace where \
the system allows that to users.

With `--by netem` the namespaces are joined by a wire (veth) instead, and the kernel's netem and tbf \
make the path: one pair of hosts with a delay, a rate, a buffer and a loss of whatever comes. What \
they cannot do is refused.

Before the command runs, rate, base delay, buffer and burst of the path are measured; meanwhile \
lateness, lost packets and processor time are watched. If anything is not as specified, the run is \
flagged: its numbers are those of another path. The exit code is that of the command; if that is 0 \
and the run is flagged, it is 5. A signal to this program alone is passed on to the command, which \
has a second to end; the exit code is then 128 and the number of the signal, 143 for SIGTERM.";

const EXAMPLES: &str = "\
Examples:
  fullpipe emulate --rate 100Mbit/s --rtt 40ms -- sh -c 'ping -c 5 $FULLPIPE_FAR'
  fullpipe emulate --rate 1Gbit/s --rtt 100ms --far 'iperf3 -s -1' -- \\
      sh -c 'iperf3 -c $FULLPIPE_FAR'
  fullpipe emulate --rate 20Mbit/s --rtt 30ms --buffer 250ms --queue fq-codel
  fullpipe emulate --rate 50Mbit/s --rtt 20ms --by netem
  fullpipe emulate first-run --far 'iperf3 -s -1' -- sh -c 'iperf3 -c $FULLPIPE_FAR -C reno'";
