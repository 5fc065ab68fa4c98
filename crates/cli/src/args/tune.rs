//! Arguments of `fullpipe tune`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

/// `fullpipe tune`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Tune {
    /// The subcommand.
    #[command(subcommand)]
    pub verb: TuneVerb,
}

/// Subcommands of `fullpipe tune`.
#[derive(Clone, Debug, Subcommand)]
pub enum TuneVerb {
    /// Check a policy: every mistake, and what it would do that others may not like
    Check(TuneCheck),
    /// Tell what a policy does with the flows to an address, and forecast it
    #[command(long_about = EXPLAIN_ABOUT)]
    Explain(TuneExplain),
    /// Tell what of the tuner this host can do, each thing tried, and how to mend what it cannot
    #[command(long_about = DOCTOR_ABOUT, after_help = DOCTOR_EXAMPLES)]
    Doctor(super::TunerJson),
    /// Measure a path: its rate, round-trip time and buffer
    #[command(long_about = super::probe::ABOUT)]
    Probe(super::TunerProbe),
    #[command(flatten)]
    #[allow(missing_docs)]
    Tuner(super::TunerVerb),
}

/// `fullpipe tune check`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TuneCheck {
    /// Policy; the files of the folder beside it, FILE with .d, belong to it
    #[arg(value_name = "FILE")]
    pub policy: PathBuf,

    #[command(flatten)]
    pub state: super::TunerState,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `fullpipe tune explain`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TuneExplain {
    /// Address of the other end, and the port of the end that was connected to
    #[arg(value_name = "ADDR[:PORT]", value_parser = peer)]
    pub peer: Peer,

    /// Policy
    #[arg(long, value_name = "FILE")]
    pub policy: PathBuf,

    #[command(flatten)]
    pub state: super::TunerState,

    /// Which end opened the connection
    #[arg(long, value_enum, default_value_t = Opened::Active)]
    pub side: Opened,

    /// Control group of the socket
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,

    /// Name of the process
    #[arg(long, value_name = "NAME")]
    pub process: Option<String>,

    /// The program chose its algorithm itself
    #[arg(long)]
    pub chose: bool,

    /// Leave the forecast out
    #[arg(long)]
    pub no_forecast: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Address, and the port if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// IPv4 or IPv6, without a zone.
    pub address: IpAddr,
    /// Of the end that was connected to.
    pub port: Option<u16>,
}

/// The end that opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Opened {
    /// This host connected
    Active,
    /// This host accepted
    Passive,
}

fn peer(text: &str) -> Result<Peer, String> {
    if let Ok(address) = text.trim_matches(['[', ']']).parse() {
        let port = None;
        return Ok(Peer { address, port });
    }
    match text.parse::<SocketAddr>() {
        Ok(both) if both.port() > 0 => Ok(Peer {
            address: both.ip(),
            port: Some(both.port()),
        }),
        _ => Err("write for example 192.0.2.7, 192.0.2.7:443 or [2001:db8::7]:443".to_owned()),
    }
}

/// Description of `fullpipe tune`.
pub(super) const ABOUT: &str = "\
Give the TCP flows of a path another congestion control, other windows and buffers.

A policy is a TOML file (docs/policy.md). `check` and `explain` read it without any privilege, and \
`doctor` tells what this host can do. The other verbs take a program that was built with \
`--features tune`; one that was not says how to get it.";

const EXPLAIN_ABOUT: &str = "\
Tell what a policy does with the flows to an address, and forecast it.

Which path of the policy is theirs, and why the others are not; a(w) and b(w) of its law at several
windows; the number of Reno flows that take as much at the same loss rate; the time until a window
is back after a loss. Where the path states `rate` and `rtt`, the simulator runs one flow of the
policy's stack and, beside it, one of CUBIC, each alone on that path with one loss.";

const DOCTOR_ABOUT: &str = "\
Tell what of the tuner this host can do, each thing tried, and how to mend what it cannot.

An algorithm is registered, a program put on a control group, a flow of this process's own changed \
by the iterator, and queues are put on a network namespace made for it; nothing is left of the \
trials, and no other flow is touched. Every user may ask: what it finds is what this user can do. \
Ends with exit code 3 if the tuner cannot run.";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  fullpipe tune doctor
  fullpipe tune doctor --json | jq -r '.findings[] | select(.remedy) | .remedy'";

const EXAMPLES: &str = "\
Examples:
  fullpipe tune check /etc/fullpipe/policy.toml
  fullpipe tune explain 192.0.2.7:5001 --policy policy.toml
  fullpipe tune doctor
  sudo fullpipe tune run /etc/fullpipe/policy.toml";
