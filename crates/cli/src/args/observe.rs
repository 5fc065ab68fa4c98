//! `fullpipe observe`: which flows, how often, and where to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_observe::{Filter, Network};
use fullpipe_units::Span;

use super::parse::{interval, loopback, port, time};

/// Which flows are looked at, and how often.
#[derive(Clone, Debug, ClapArgs)]
pub struct Look {
    /// Only flows to this address or network, such as `192.0.2.0/24`; may be given several times
    #[arg(long, value_name = "NETWORK")]
    pub to: Vec<Network>,

    /// Only flows from or to this port; may be given several times
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub port: Vec<u16>,

    /// Also flows within this host
    #[arg(long)]
    pub loopback: bool,

    /// Time between two looks, 10 ms to 10 s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Span,
}

impl Look {
    /// The flows.
    pub fn filter(&self) -> Filter {
        Filter {
            remote: self.to.clone(),
            ports: self.port.clone(),
            loopback: self.loopback,
        }
    }

    /// Time between two looks.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval.as_nanos())
    }
}

/// `fullpipe observe`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Observe {
    #[command(flatten)]
    pub look: Look,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Span>,

    /// Name the processes that hold the flows; those of other users need root
    #[arg(long)]
    pub processes: bool,

    /// Also serve the latest values to Prometheus, at this address of the loopback
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    pub prometheus: Option<SocketAddr>,

    /// Also write a Parquet trace with a row per look and flow, in the schema of `run`'s traces;
    /// the file is there when the command ends
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = ObserveFormat::Table)]
    pub format: ObserveFormat,

    #[command(flatten)]
    pub tuner: TunerFolder,
}

/// Where a tuner listens, for what it says of flows.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerFolder {
    /// Folder of the tuner whose policy is shown, if one runs
    #[arg(long, value_name = "DIR", default_value = "/run/fullpipe-tune")]
    pub state: PathBuf,
}

/// `fullpipe top`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = TOP_EXAMPLES)]
pub struct Top {
    #[command(flatten)]
    pub look: Look,

    /// Stop after this time [default: at q or Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Span>,

    /// What the flows are sorted by
    #[arg(long, value_enum, default_value_t = TopOrder::Rate)]
    pub sort: TopOrder,

    #[command(flatten)]
    pub tuner: TunerFolder,
}

/// What the rows of `fullpipe top` are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TopOrder {
    /// Sending rate, the largest first
    #[default]
    Rate,
    /// Congestion window, the largest first
    Window,
    /// Smoothed round-trip time, the longest first
    Rtt,
    /// Segments sent again since the flow is shown, the most first
    Resent,
    /// Address of the other end
    Peer,
}

/// Description of `fullpipe top`.
pub(super) const TOP_ABOUT: &str = "\
Show the TCP flows of this host in a table that renews itself: each with its window over the last \
looks, its rates, round-trip time, what was sent again, what limits it, and the policy that a tuner \
gave it.

No privilege is needed, and no flow is changed. Keys: `q` ends, `s` sorts by the next column, arrows \
and page keys scroll, space holds the picture.";

const TOP_EXAMPLES: &str = "\
Examples:
  fullpipe top
  fullpipe top --to 198.51.100.0/24 --interval 200ms
  fullpipe top --sort resent";

/// Format of `fullpipe observe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObserveFormat {
    /// For people: a table at every look
    Table,
    /// For programs: an object per flow and look, with all of `tcp_info`
    Ndjson,
}

/// Description of `fullpipe observe`.
pub(super) const ABOUT: &str = "\
Watch the TCP flows of this host: window, round-trip time, rates, and what limits each.

The kernel is asked (sock_diag) as `ss -ti` does it: no privilege is needed, no flow is changed, \
nothing is captured. A flow is limited, for most of the time between two looks, by

  application     there was nothing to send
  receive window  the window that the receiver advertises
  send buffer     the send buffer held less than the window
  rate            a ceiling of the rate (SO_MAX_PACING_RATE)
  pacing          the rate that the congestion control chose
  local queue     an interface or a queue of this host
  window          the congestion window, which still grows
  window cap      the congestion window at a ceiling
  network         the congestion window, as losses, marks or delay have set it

The first three come from the kernel's own clocks (busy_time, rwnd_limited, sndbuf_limited), the \
others from the latest window, flight, rates and threshold.

`fullpipe tune watch` records every ACK of chosen flows (as root, in a build with the tuner).";

const EXAMPLES: &str = "\
Examples:
  fullpipe observe
  fullpipe observe --to 198.51.100.0/24 --interval 100ms --duration 1min
  fullpipe observe --port 443 --processes
  fullpipe observe --format ndjson | jq -c '[.flow, .limited_by, .tcp_info.snd_cwnd]'
  fullpipe observe --interval 10ms --duration 30s --trace flows.parquet
  fullpipe observe --prometheus 127.0.0.1:9464 --format ndjson > flows.ndjson";
