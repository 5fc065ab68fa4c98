//! Arguments of `fullpipe agree`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use fullpipe_cc::StackSpec;
use fullpipe_grounds::CAUSES;

use super::ShortFormat;
use super::law::stack;
use super::parse::{at_least_one, key_value};

/// `fullpipe agree`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Agree {
    /// Scenario file or name of a built-in scenario
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// Backends ("grounds"), the first of which the others are held against: sim, udp, linux,
    /// kernel
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "sim,kernel"
    )]
    pub grounds: Vec<String>,

    /// Keep the results, the pictures and agreement.html in this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Take over the finished runs that `--out` holds, those of causes tried before included
    #[arg(long, requires = "out")]
    pub resume: bool,

    /// Replace what `--out` holds: of its runs those that are asked for again stay, the others go
    #[arg(long, requires = "out", conflicts_with = "resume")]
    pub replace: bool,

    /// Set a key of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Number of seeds, counted up from 1
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub repeat: Option<NonZeroU32>,

    /// Apply the scenario's [quick] settings
    #[arg(long)]
    pub quick: bool,

    /// Kernel of the ground linux
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,

    /// C file with a congestion module of your own, on ground linux: stack `own-linux`
    #[arg(long, value_name = "FILE")]
    pub kernel_module: Option<PathBuf>,

    /// Stack that the other grounds run where the scenario has `own-linux`
    #[arg(long, value_name = "STACK", value_parser = stack)]
    pub own_is: Option<StackSpec>,

    /// On ground udp: spin instead of sleeping before a departure, which occupies a processor
    #[arg(long)]
    pub spin: bool,

    /// On ground udp: keep the sending thread on this processor
    #[arg(long, value_name = "CPU")]
    pub pin: Option<usize>,

    /// Runs at a time [default: one per core; on ground kernel one, and too many flag one another]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Cases whose runs were flagged count, too
    #[arg(long)]
    pub with_flagged: bool,

    /// Compare only: try no cause
    #[arg(long)]
    pub no_causes: bool,

    /// Try these causes alone, separated by commas (docs/grounds.md names them)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = cause,
        conflicts_with = "no_causes"
    )]
    pub causes: Vec<String>,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,

    /// No progress on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

/// The name of a cause.
fn cause(text: &str) -> Result<String, String> {
    let mut names: Vec<&str> = CAUSES.iter().map(|cause| cause.name).collect();
    names.dedup();
    match names.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("known: {}", names.join(", "))),
    }
}

pub(super) const ABOUT: &str = "\
Run a scenario on several grounds, and tell where and why they part.

Every ground runs every case with every seed; each is held against the first one as `fullpipe \
compare` does it: windows over each other, congestion events in time, goodput, RTT, losses. The \
scenario's [measure] agreement says how far apart a metric may be.

Where two grounds part, known causes are tried one after the other, each by switching it and \
running those cases again: the kernel's own module in place of the law of that name, Linux's hosts \
in place of those of the preset, both together, segmentation offload (switched off in the kernel, \
brought into the simulator), the delay that the test bed added, merging, HyStart, jitter on both \
grounds where phase decides who loses, the receiver's buffer, what the kernel remembers of earlier \
connections, another kernel, and the same run once more. What then agrees was the cause; what \
agrees when nothing was switched was chance. The last lines say what follows, and what to try next.

`own-linux`, a module of your own (--kernel-module), exists on ground linux alone; --own-is names \
the stack that the other grounds run in its place.

Cases whose runs were not what the scenario says (flagged) are left out, unless --with-flagged. \
The exit code is 1 if two grounds part, 5 if none do and cases were left out, 0 if all agree.";

const EXAMPLES: &str = "\
Examples:
  fullpipe agree my.toml --grounds sim,kernel --out agreement
  fullpipe agree my.toml --grounds sim,linux,udp,kernel --repeat 5 --out agreement
  fullpipe agree my.toml --grounds sim,kernel --causes test-bed,offload --out agreement
  fullpipe agree race.toml --grounds sim,linux --kernel-module mine.c --own-is cubic --out mine
  fullpipe agree my.toml --out agreement --format json | jq '.pairs[].causes'";
