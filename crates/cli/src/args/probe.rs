//! Arguments of `fullpipe tune probe`.

use clap::Args as ClapArgs;
use fullpipe_units::Span;

use super::{PeerFlags, TunerJson};

/// `fullpipe tune probe`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct TunerProbe {
    /// Host at the far end of the path, which runs `fullpipe serve` or a tuner with
    /// `--answer-probes`, as HOST, HOST:PORT or [IPV6]:PORT [default: the daemon measures anew what
    /// its policy probes]
    #[arg(value_name = "HOST")]
    pub host: Option<String>,

    /// How long the path is filled
    #[arg(
        long,
        short,
        value_name = "TIME",
        default_value = "5s",
        requires = "host"
    )]
    pub time: Span,

    /// Print a scenario with that path, for `run` and `emulate`
    #[arg(long, requires = "host", conflicts_with = "json")]
    pub scenario: bool,

    #[command(flatten)]
    pub json: TunerJson,

    #[command(flatten)]
    pub flags: PeerFlags,
}

/// Description of `fullpipe tune probe`.
pub const ABOUT: &str = "\
Measure a path to a host: its rate, its round-trip time and the buffer of its bottleneck.

One flow of Scalable TCP over UDP fills the path for some seconds, and its buffer with it: others on \
the path feel it. The rate is the highest that arrived over two round trips, the round-trip time the \
shortest, and the buffer what the longest one says; where nothing was lost, it is at least that. A \
path of a policy with `probe = \"HOST\"` is measured by the daemon, which keeps what it found.";

const EXAMPLES: &str = "\
Examples:
  fullpipe tune probe 192.0.2.7
  fullpipe tune probe dtn.example.org --scenario > dtn.toml && fullpipe run dtn.toml
  fullpipe tune probe            the daemon's paths, anew";
