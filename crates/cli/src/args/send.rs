//! Arguments of `fullpipe send` and `fullpipe ping`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_net::session::ServerId;
use fullpipe_scenario::builtin;

use super::{Format, LiveFlags, ShortFormat, at_least_one, key_value, seed};

/// `fullpipe send`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = SEND_EXAMPLES, override_usage = "\
fullpipe send [OPTIONS] <HOST>
       fullpipe send [OPTIONS] <FILE>... <TO>")]
pub struct Send {
    /// Host that runs `fullpipe serve`, as HOST, HOST:PORT or [IPV6]:PORT; with TO: a file here, or
    /// there as HOST:NAME
    #[arg(value_name = "HOST|FILE")]
    pub from: String,

    /// Copy files and directories: any more of them, and last where they go, as HOST:NAME,
    /// HOST:PORT:NAME, HOST:DIR/ or a path here
    #[arg(value_name = "FILE|TO")]
    pub to: Vec<String>,

    /// Run a named test: the first case of the built-in scenario, over the path to HOST. `rrul`
    /// (four flows each way and pings), `bidirectional` (one each way and pings), `versus` (one
    /// stack against another)
    #[arg(long, value_name = "NAME", value_parser = tests(), conflicts_with_all = [
        "to", "size", "reverse", "bidir", "request", "traffic", "trace", "control"
    ])]
    pub test: Option<String>,

    /// Duration of the test [default: 10s; that of --test]; with --size or a file: give up after
    /// this time [default: 24h]
    #[arg(long, short, value_name = "TIME", allow_negative_numbers = true)]
    pub time: Option<String>,

    /// Amount to send from memory, per stream, as `20GB` or `1000 segments`
    #[arg(long, short = 'n', value_name = "SIZE", conflicts_with = "to")]
    pub size: Option<String>,

    /// Congestion control; see `fullpipe list stacks`: `bbr` is BBRv3, `bbr-linux` Linux's own
    /// BBRv1 [default: cubic]; with --test: of every flow, or, repeated, of one flow each
    #[arg(long, short, visible_short_alias = 'C', value_name = "STACK")]
    pub stack: Vec<String>,

    /// Number of parallel connections [default: 1; that of --test]
    #[arg(long, short = 'P', value_name = "N", conflicts_with = "to", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub streams: Option<NonZeroU32>,

    /// The server sends
    #[arg(long, short = 'R', conflicts_with = "to")]
    pub reverse: bool,

    /// Both ends send at the same time
    #[arg(long, conflicts_with_all = ["to", "reverse", "request", "only_traffic"])]
    pub bidir: bool,

    /// Rate that no connection exceeds, as `100Mbit/s`; 0: none
    #[arg(
        long,
        short = 'b',
        value_name = "RATE",
        conflicts_with = "only_traffic"
    )]
    pub bitrate: Option<String>,

    /// Cap of the congestion window, as `8MB` or `1000 segments`
    #[arg(long, short, value_name = "WINDOW")]
    pub window: Option<String>,

    /// Set a key that a [[flow]] of a scenario has, as `delayed_ack=false`, or another key with its
    /// table, as `path.mtu=9000`; what is the network's or the host's own is refused; may be
    /// repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Request-response traffic instead of a long flow: connections that open, fetch K segments and
    /// close
    #[arg(long, value_name = "K", conflicts_with_all = ["to", "size", "streams"], value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub request: Option<NonZeroU32>,

    /// Number of requests [default: as many as the time allows]
    #[arg(long, value_name = "N", requires = "request", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub count: Option<NonZeroU32>,

    /// Interval between requests
    #[arg(long, value_name = "TIME", requires = "request", default_value = "1s")]
    pub every: String,

    /// Cross traffic beside the flow: udp, udp-on-off, udp-sine, udp-blast, udp-staircase,
    /// short-flows or ping, with the keys of a scenario's [[traffic]] after commas, as
    /// `udp-sine,mean=50Mbit/s,amplitude=30Mbit/s,period=10s`; may be repeated
    #[arg(long, value_name = "KIND[,KEY=VALUE]...", conflicts_with = "to")]
    pub traffic: Vec<String>,

    /// Rate of cross traffic for which --traffic gives none
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,

    /// Send only the cross traffic, no flow
    #[arg(long, requires = "traffic", conflicts_with_all = ["size", "request", "verify"])]
    pub only_traffic: bool,

    /// Verify data sent from memory: the receiver checks every byte, and checksums are compared at
    /// the end
    #[arg(long, conflicts_with_all = ["to", "request"])]
    pub verify: bool,

    /// Replace an existing file; a server must allow it too
    #[arg(long, requires = "to")]
    pub overwrite: bool,

    /// Go on with a copy whose server, or the path to it, was silent for up to this time; `0s`
    /// gives up at once
    #[arg(long, value_name = "TIME", default_value = "2min", requires = "to")]
    pub patience: String,

    /// Say what a copy would send and what is there already, and change nothing
    #[arg(long, requires = "to")]
    pub dry_run: bool,

    /// Seed of the random generators
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Print what every interval of this length brought: to stderr, with `--format ndjson` as
    /// objects to stdout [default of these: 1s]
    #[arg(long, short, value_name = "TIME")]
    pub interval: Option<String>,

    /// Format of the result on stdout; `ndjson` begins with a line per interval
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// The same as `--format json`
    #[arg(long, short = 'J', conflicts_with = "format")]
    pub json: bool,

    /// Keep results, time series, figures and the report in this directory
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    pub out: Option<PathBuf>,

    /// Keep the run in this directory, under the moment at which it begins, beside those that are
    /// there: `fullpipe history DIR` lists, draws and compares them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["to", "out"])]
    pub history: Option<PathBuf>,

    /// Write the sender's state at every ACK into this file during the run (Parquet, see
    /// docs/trace.md); `fullpipe export` converts it to CSV, qlog or xplot data
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "request", "reverse", "only_traffic"])]
    pub trace: Option<PathBuf>,

    /// Take changes of the running flows at this Unix socket, from `fullpipe set` (see
    /// docs/serve.md); it is made, and gone at the end
    #[arg(long, value_name = "PATH", conflicts_with_all = ["to", "request", "reverse", "only_traffic"])]
    pub control: Option<PathBuf>,

    /// How the test is watched
    #[command(flatten)]
    pub live: LiveFlags,

    /// The server, and how to talk to it
    #[command(flatten)]
    pub peer: PeerFlags,

    /// No live line and no remarks on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

impl Send {
    /// The cap of `--bitrate`; of 0 none, as iperf3 has it.
    pub fn rate_cap(&self) -> Option<&String> {
        self.bitrate.as_ref().filter(|rate| *rate != "0")
    }

    /// Format of the result.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }

    /// Congestion control of flows that no test names.
    pub fn stack(&self) -> &str {
        self.stack.last().map_or("cubic", String::as_str)
    }
}

/// The named tests.
fn tests() -> PossibleValuesParser {
    PossibleValuesParser::new(builtin::TESTS)
}

/// Flags of a session with a server: key, identity, encryption, mode.
#[derive(Clone, Debug, ClapArgs)]
pub struct PeerFlags {
    /// File with the shared key, readable by its owner only [default: the variable FULLPIPE_KEY, if
    /// it is set]
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Identity of the server, as `fullpipe serve` prints it [default: what the file of the key
    /// says, or what was met under this name before]
    #[arg(long, value_name = "ID")]
    pub server_id: Option<ServerId>,

    /// File of the servers that were met before; a new one is added [default:
    /// $XDG_STATE_HOME/fullpipe/known-servers, or ~/.local/state/fullpipe/known-servers]
    #[arg(long, value_name = "FILE")]
    pub known_servers: Option<PathBuf>,

    /// Encrypt the data
    #[arg(long)]
    pub encrypt: bool,

    /// How datagrams are sent: one by one, each at its time, or in bulk, many per system call
    #[arg(long, value_enum, default_value_t = Mode::Packet)]
    pub mode: Mode,

    /// Spin instead of sleeping before a departure: precise to a microsecond, occupies a processor
    #[arg(long)]
    pub spin: bool,

    /// Keep the sending thread on this processor
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,
}

/// Argument of `--mode`: one system call per datagram, or segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One by one, with exact spacing
    Packet,
    /// With segmentation offload: faster, in bursts
    Bulk,
}

/// `fullpipe ping`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = PING_EXAMPLES)]
pub struct Ping {
    /// Host that runs `fullpipe serve`, as HOST, HOST:PORT or [IPV6]:PORT
    #[arg(value_name = "HOST")]
    pub host: String,

    /// Number of probes
    #[arg(long, short, value_name = "N", default_value = "10", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub count: NonZeroU32,

    /// Interval between probes
    #[arg(long, short, value_name = "TIME", default_value = "1s")]
    pub interval: String,

    /// Payload of a probe, 36 to 8972 bytes: of packets of 64 to 9000
    #[arg(long, short, value_name = "BYTES", default_value = "64B")]
    pub size: String,

    /// Format of the result on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,

    /// The server, and how to talk to it
    #[command(flatten)]
    pub peer: PeerFlags,

    /// Only the summary
    #[arg(long, short)]
    pub quiet: bool,
}

/// Long help of `fullpipe send`.
pub const SEND_ABOUT: &str = "\
Send to, or receive from, a host that runs `fullpipe serve`.

With one argument data goes from memory to memory, for a time or up to a size, over fullpipe's own \
transport (UDP); `fullpipe run --ground kernel --peer HOST` measures the kernels' TCP. The result has \
the form of `run`: the same metrics under the same names and, with `--out`, the same directory. Any key \
of a scenario's [[flow]] can be set but those of what is not fullpipe's: of the path (`rtt`, \
`rtt_spread`), of the host's interface (`nic_rate`, `txqueuelen`, `host`, `sendstall`, `tsq`) and of \
headers (`tcp_options`). On a terminal a line shows the progress; `--format ndjson` \
prints an object per interval, then the result. The path is not fullpipe's, and the hosts are part \
of what is measured: a result whose test bed is NOT VALID says so and ends with exit code 0.

`--test` runs a built-in scenario that is a question about any path (`fullpipe run rrul` puts it to \
a simulated one). The times of a shorter `--time` shrink with it; what the scenario expects of its \
own path is not asked. With `--out` figures/load.svg has goodput in each direction and the pings, \
one below the other.

With more arguments files and directories are copied: `HOST:NAME` is in the directory that the server \
serves (`serve --files DIR`), the others are local paths; the last one is where they go, and its \
place decides the direction. Directories are copied with all that is below them and made where they \
are missing; symbolic links, special files and hidden names are left out, with a warning. A name that \
cannot be sent (longer than 200 bytes, ending in `.part` or `.part.state`, not UTF-8, with a backslash \
or a control character) is an error of its own: everything else is copied, and the exit code is 3. \
An interrupted copy resumes when the same command is given again: what is there is compared by \
blocks, and only what is missing or wrong is sent. So does a copy whose server, or the path to it, is \
silent for a while, by itself (--patience). A file gets its name when all of it has arrived \
and its BLAKE3 hash equals the sender's; until then it is NAME.part. A file that is there already is \
skipped.";

const SEND_EXAMPLES: &str = "\
Examples:
  fullpipe send dtn.example.org                        10 s of CUBIC
  fullpipe send dtn.example.org:7000 --reverse --time 30s \\
      --stack 'highspeed+limited(max_ssthresh=100)'
  fullpipe send dtn.example.org -t 30s -P 4 -i 1s -C bbr -b 200Mbit/s --bidir
  fullpipe send dtn.example.org --test rrul --out results      latency under load; load.svg shows it
  fullpipe send dtn.example.org --test versus --stack bbr --stack cubic --time 30s
  fullpipe send dtn.example.org --size 20GB --verify --mode bulk
  fullpipe send dtn.example.org --set delayed_ack=false --set 'drop={ segment = 40 }' --out results
  fullpipe send dtn.example.org --request 10 --every 200ms --count 100
  fullpipe send dtn.example.org --stack reno --time 60s --control /run/user/1000/fp
  fullpipe send dtn.example.org --traffic udp --rate 50Mbit/s
  fullpipe send dtn.example.org --format ndjson | jq .flows[0].goodput_mbps
  fullpipe send data.tar dtn.example.org:              copy a file there, under its own name
  fullpipe send dtn.example.org:run7/data.tar .        and one from there
  fullpipe send run8 notes.txt dtn.example.org:in/     a directory and a file, into `in`
  fullpipe send dtn.example.org:in/run8 . --dry-run    what fetching it would cost";

/// Long help of `fullpipe ping`.
pub const PING_ABOUT: &str = "\
Measure round-trip times to a host that runs `fullpipe serve`.

Probes are fullpipe's own datagrams, answered at once by the server: they take the path of data, \
through the same sockets. A probe without an answer one second after the last was sent is lost.";

const PING_EXAMPLES: &str = "\
Examples:
  fullpipe ping dtn.example.org
  fullpipe ping dtn.example.org --count 1000 --interval 10ms --quiet
  fullpipe ping dtn.example.org --format json | jq .rtt_ms.p99";
