//! Arguments of the verbs of `fullpipe tune` that need the kernel. A program that was built without
//! them says how to get them.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use fullpipe_observe::Network;
use fullpipe_units::Span;

use super::key_value;
use super::parse::{loopback, port, time};

/// Subcommands of `fullpipe tune` that need the kernel.
#[derive(Clone, Debug, Subcommand)]
pub enum TunerVerb {
    /// Apply a policy to the kernel's TCP until Ctrl-C or SIGTERM, which take everything back
    Run(TunerRun),
    /// Have the daemon read its policy again; one with a mistake changes nothing
    Apply(TunerState),
    /// Tell which paths are in force, and what has happened
    Status(TunerJson),
    /// List the flows that have a path
    Flows(TunerJson),
    /// Tell what would change now, and why; or what another policy would, before it is applied
    #[command(after_help = PLAN)]
    Plan(TunerPlan),
    /// Compare the flows of a path with those that its `share` left as they were
    #[command(after_help = COMPARE)]
    Compare(TunerCompare),
    /// Give running flows their path, those too that were released
    Adopt(TunerState),
    /// Give flows back what they ran before, until `adopt`
    Release(TunerRelease),
    /// Have all flows run Reno, at once, until `on`
    Off(TunerState),
    /// Take back `off`
    On(TunerState),
    /// Print every parameter of the stacks of paths, or of one flow's
    #[command(after_help = GET)]
    Get(TunerGet),
    /// Change parameters of a path's stack, or of one flow's, while flows run, until `apply`
    #[command(after_help = SET)]
    Set(TunerSet),
    /// Record every ACK of chosen flows, with or without a daemon, in the schema of `run`'s traces
    #[command(after_help = WATCH)]
    Watch(TunerWatch),
    /// Lose segments of a few flows on purpose, for a time: a test of a policy
    #[command(after_help = INJECT)]
    Inject(TunerInject),
    /// Give flows back when the daemon whose pipe is the input hangs or ends; `run` starts it
    #[command(hide = true)]
    Guard(TunerScope),
    /// Answer probes of paths as long as the input is open; `run --answer-probes` starts it
    #[command(hide = true)]
    Answer(TunerAnswer),
    /// Take back what a daemon that was killed has left
    Revert(TunerScope),
}

impl TunerVerb {
    /// True if JSON was asked for.
    pub fn prints_json(&self) -> bool {
        match self {
            Self::Status(args) | Self::Flows(args) => args.json,
            Self::Plan(args) => args.json,
            Self::Compare(args) => args.json.json,
            Self::Get(args) => args.json.json,
            _ => false,
        }
    }
}

/// The daemon that a verb speaks to.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerState {
    /// Folder of the daemon's socket, lock and journal
    #[arg(long, value_name = "DIR", default_value = TunerState::DEFAULT)]
    pub state: PathBuf,
}

impl TunerState {
    /// Where a daemon is that was not told another folder.
    pub const DEFAULT: &str = "/run/fullpipe-tune";
}

/// `fullpipe tune revert`, and a part of `run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerScope {
    #[command(flatten)]
    pub state: TunerState,

    /// Only flows of this process's network namespace, not of all that can be found
    #[arg(long)]
    pub own_namespace: bool,

    /// How names of algorithms begin: `fp`, at most three letters or digits, and `_`. Names are the
    /// whole machine's, and two tuners on one kernel need different ones
    #[arg(long, value_name = "PREFIX", default_value = "fp_", value_parser = prefix)]
    pub prefix: String,
}

/// No name of the kernel's own begins like that, and `highspeed` has room behind it.
fn prefix(text: &str) -> Result<String, String> {
    let between = text.strip_prefix("fp").and_then(|t| t.strip_suffix('_'));
    let fits = |t: &str| t.len() <= 3 && t.bytes().all(|b| b.is_ascii_alphanumeric());
    match between.is_some_and(fits) {
        true => Ok(text.to_owned()),
        false => Err("write `fp`, at most three letters or digits, and `_`".to_owned()),
    }
}

/// `fullpipe tune run`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerRun {
    /// Policy; the files of the folder beside it, FILE with .d, belong to it
    #[arg(value_name = "FILE")]
    pub policy: PathBuf,

    #[command(flatten)]
    pub scope: TunerScope,

    /// Control group (v2) whose new flows are given paths, with those below it [default: all]
    #[arg(long, value_name = "DIR")]
    pub cgroup: Option<PathBuf>,

    /// Leave new flows to the look at running flows, which is taken every second
    #[arg(long, conflicts_with = "cgroup")]
    pub no_cgroup: bool,

    /// Answer the probes of tuners at other hosts, at this address; with the key in the variable
    /// FULLPIPE_KEY, or without a key
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub answer_probes: Option<String>,

    /// Also serve what the daemon did, and its flows, to Prometheus, at this address of the
    /// loopback
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    pub prometheus: Option<SocketAddr>,
}

/// `fullpipe tune answer`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerAnswer {
    /// As of `fullpipe serve --listen`
    #[arg(value_name = "ADDRESS[:PORT]")]
    pub listen: String,

    #[command(flatten)]
    pub state: TunerState,
}

/// A verb that prints something.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerJson {
    #[command(flatten)]
    pub state: TunerState,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `fullpipe tune plan`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerPlan {
    /// Policy, with the files of its folder, as `run` takes it [default: the one in force]
    #[arg(value_name = "FILE")]
    pub policy: Option<PathBuf>,

    #[command(flatten)]
    pub scope: TunerScope,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const PLAN: &str = "\
Nothing changes. With FILE, which takes root, the daemon compares it with what is in force. Where
none runs, programs are loaded to look at the flows of this host, with the prefix and in the
namespaces that are given, and are gone afterwards.

Examples:
  fullpipe tune plan                        what the daemon would do at its next look
  sudo fullpipe tune plan science.toml      what `run science.toml`, or `apply` of it, would do
  sudo fullpipe tune plan science.toml --json | jq -r '.plan[] | select(.changes).flow'";

/// `fullpipe tune compare`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerCompare {
    /// Path of the policy [default: all that have a `share`]
    #[arg(value_name = "PATH")]
    pub path: Option<String>,

    #[command(flatten)]
    pub json: TunerJson,
}

const COMPARE: &str = "\
A path with `share = \"50%\"` is an experiment: chance decides which of its flows get the policy. Each
flow counts once, with its rate while it had data on the way, from the first look of the daemon on.
Both arms use the same links: what one of them takes, the other lacks.

Examples:
  fullpipe tune compare             all paths with a share
  fullpipe tune compare lab --json  one path, the rate of every flow";

/// `fullpipe tune release`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerRelease {
    /// Cookie of a flow, or both its ends as `flows` lists them [default: all flows]
    #[arg(value_name = "FLOW")]
    pub flow: Option<String>,

    #[command(flatten)]
    pub state: TunerState,
}

/// `fullpipe tune get`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerGet {
    /// Path of the policy, or the cookie of a flow, or both its ends as `flows` lists them
    /// [default: all paths]
    #[arg(value_name = "PATH|FLOW")]
    pub what: Option<String>,

    #[command(flatten)]
    pub json: TunerJson,
}

const GET: &str = "\
Examples:
  fullpipe tune get
  fullpipe tune get cern --json | jq -r '.[].parameters[] | \"\\(.name)=\\(.value)\"'";

const SET: &str = "\
In force from the next ACK of every flow. A flow keeps parameters of its own until it ends, or until
`apply`; 32 flows may have some.

Examples:
  sudo fullpipe tune set cern increase=6 decrease=0.3
  sudo fullpipe tune set '192.0.2.1:40000 -> 198.51.100.7:5001' a=6";

/// `fullpipe tune set`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerSet {
    /// Path of the policy, or the cookie of a flow, or both its ends as `flows` lists them
    #[arg(value_name = "PATH|FLOW")]
    pub path: String,

    /// Parameter of its stack and the new value, such as `a=6` or `max_ssthresh=200`; several as
    /// words or behind commas
    #[arg(value_name = "KEY=VALUE", required = true, value_delimiter = ',', value_parser = key_value)]
    pub set: Vec<(String, String)>,

    #[command(flatten)]
    pub state: TunerState,
}

/// `fullpipe tune watch`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerWatch {
    /// Cookies of flows, or both ends of each, as `flows` and `observe` list them
    #[arg(value_name = "FLOW")]
    pub flows: Vec<String>,

    /// Flows of this path of the daemon's policy; may be given several times
    #[arg(long, value_name = "NAME")]
    pub path: Vec<String>,

    /// Flows to this address or network, new ones too; may be given several times
    #[arg(long, value_name = "NETWORK")]
    pub to: Vec<Network>,

    /// Flows from or to this port, new ones too; may be given up to 8 times
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub port: Vec<u16>,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Span>,

    /// Also write a Parquet trace with a row per ACK; the file is there when the command ends
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = WatchFormat::Table)]
    pub format: WatchFormat,

    #[command(flatten)]
    pub state: TunerState,
}

/// Format of `fullpipe tune watch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WatchFormat {
    /// For people: a line per ACK
    Table,
    /// For programs: an object per ACK, with the columns of a trace
    Ndjson,
    /// Nothing: the trace alone
    None,
}

const WATCH: &str = "\
A row is a sender as an ACK finds it, before that ACK changes anything: the kernel's tracepoint
tcp:tcp_probe. a(w) and b(w) are there for algorithms of the tuner (`fp_...`). Takes CAP_BPF and
CAP_PERFMON, and costs under a microsecond per segment of this host while it runs.

Examples:
  sudo fullpipe tune watch --path cern
  sudo fullpipe tune watch --to 192.0.2.7 --duration 30s --format none --trace ack.parquet
  sudo fullpipe tune watch --port 5201 --format ndjson | jq -c '[.time_s, .cwnd, .var_a]'";

/// `fullpipe tune inject`.
#[derive(Clone, Debug, ClapArgs)]
pub struct TunerInject {
    /// Address of the other end, or a network of at most 256 with `--port`
    #[arg(long, value_name = "NETWORK", required_unless_present = "clear")]
    pub to: Option<Network>,

    /// Only flows from or to this port
    #[arg(long, value_name = "PORT", value_parser = port)]
    pub port: Option<u16>,

    /// What is lost
    #[arg(long, value_enum, default_value_t = Injected::Loss)]
    pub kind: Injected,

    /// Lose these segments, counted from 0 when it begins; up to 16
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub at: Vec<u64>,

    /// Lose every n-th segment
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    pub every: Option<u32>,

    /// Lose each segment with this probability, as `0.001` or `0.1%`
    #[arg(long, value_name = "P", value_parser = probability)]
    pub probability: Option<f64>,

    /// Lose in bursts (Gilbert and Elliott): chance per packet that a burst begins, and that it
    /// ends
    #[arg(long, value_name = "P,P", value_delimiter = ',', num_args = 1, value_parser = probability)]
    pub bursts: Vec<f64>,

    /// How long, at most 10 minutes
    #[arg(long, value_name = "TIME", required_unless_present = "clear", value_parser = time)]
    pub duration: Option<Span>,

    /// Interface [default: the one that packets to `--to` leave by]
    #[arg(long, value_name = "NAME")]
    pub dev: Option<String>,

    /// Yes, lose segments of real flows
    #[arg(long)]
    pub i_mean_it: bool,

    /// Only take away what an `inject` that was killed has left
    #[arg(long)]
    pub clear: bool,

    /// Folder of the note of what was put where
    #[arg(long, value_name = "DIR", default_value = "/run/fullpipe-inject")]
    pub state: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `fullpipe tune inject` loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Injected {
    /// Data that leave, silently: the sender learns of it from its peer, as on a path
    Loss,
    /// Data that leave, and the sender is told: a full queue of its own interface (a send stall)
    Stall,
    /// Acknowledgements that arrive
    Ack,
}

fn probability(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 0.01),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>().map(|x| x * scale) {
        Ok(p) if p > 0.0 && p <= 1.0 => Ok(p),
        _ => Err("expected a probability above 0 and at most 1, as `0.001` or `0.1%`".to_owned()),
    }
}

const INJECT: &str = "\
Segments with data (of `--kind ack`: pure acknowledgements) of TCP connections to one host, or to one
port of at most 256, in this process's network namespace. A packet that the kernel will cut into
segments later is lost as a whole. The program in the kernel has the end of the time in it; should
this command be killed, everything passes then, and the next `inject`, or `inject --clear`, takes
the program away.

Examples:
  sudo fullpipe tune inject --to 192.0.2.7 --at 300 --duration 30s --i-mean-it
  sudo fullpipe tune inject --to 192.0.2.7 --port 5201 --probability 0.01% --duration 1min \\
      --i-mean-it
  sudo fullpipe tune inject --to 192.0.2.7 --kind stall --every 1000 --duration 10s --i-mean-it";

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    #[test]
    fn the_service_s_commands_are_understood() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
        let unit = std::fs::read_to_string(folder.join("fullpipe-tune.service")).unwrap();
        let commands = unit.lines().filter_map(|line| {
            let (key, command) = line.split_once('=')?;
            key.starts_with("Exec").then_some(command)
        });
        let commands: Vec<&str> = commands.collect();
        assert_eq!(commands.len(), 3, "{commands:?}");
        for command in commands {
            let parsed = Args::try_parse_from(command.split_whitespace());
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
    }
}
