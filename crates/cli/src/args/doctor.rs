//! `fullpipe doctor`: what this host can do.

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_units::{Rate, Span};

use super::ShortFormat;
use super::parse::{positive_rate, round_trip};

/// `fullpipe doctor`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Examine only this, and end with exit code 3 if anything of it is lacking [default: all]
    #[arg(value_enum, value_name = "AREA")]
    pub areas: Vec<Examined>,

    /// Bottleneck of the path that the buffers of `tcp` are judged for [default: 1Gbit/s]
    #[arg(long, value_name = "RATE", value_parser = positive_rate)]
    pub rate: Option<Rate>,

    /// Round-trip time of that path [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    pub rtt: Option<Span>,

    /// Format of the findings on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,

    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Groups of capabilities that are needed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Examined {
    /// A run of one second on each ground
    Grounds,
    /// Cores, priority, clock and load
    Time,
    /// UDP and its offloads
    Sockets,
    /// Buffers and switches of the kernel's TCP, judged for `--rate` and `--rtt`
    Tcp,
    /// Namespaces, TUN devices and the kernel's congestion modules
    Hosts,
    /// Capabilities, types and, in a build with the tuner, programs of eBPF
    Bpf,
}

/// Description of `fullpipe doctor`.
pub(super) const ABOUT: &str = "\
Tell what this host can do, each thing tried.

A second of one flow runs on every ground, as `fullpipe run` would; sockets, offloads, namespaces, \
devices, priority, clock and congestion modules are used once each; settings of TCP are read. What is lacking or limited \
comes with the command that mends it. Nothing of the host is changed by the trials, modules of the \
kernel are not loaded, and nothing is left of them. Works as root and without privileges: what it \
finds is what this user can do.";

const EXAMPLES: &str = "\
Examples:
  fullpipe doctor
  fullpipe doctor tcp --rate 10Gbit/s --rtt 120ms
  fullpipe doctor hosts || echo 'no emulated paths here'
  fullpipe doctor --json | jq '.findings[] | select(.state != \"yes\")'";
