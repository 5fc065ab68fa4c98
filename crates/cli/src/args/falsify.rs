//! Arguments of `fullpipe falsify`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::ShortFormat;
use super::parse::{at_least_one, key_value};

/// `fullpipe falsify`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Falsify {
    /// Scenario files or names of built-in scenarios
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Set a key of the scenario in every world; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Apply the scenario's [quick] settings, and follow each expectation only to its first failure
    #[arg(long)]
    pub quick: bool,

    /// With --quick: look at every world all the same
    #[arg(long, requires = "quick")]
    pub every_world: bool,

    /// Number of seeds, counted up from 1
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, allow_negative_numbers = true)]
    pub repeat: Option<NonZeroU32>,

    /// Runs at a time; results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,

    /// Write falsification.html and falsification.json into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Make every run anew, and keep none
    #[arg(long)]
    pub fresh: bool,

    /// Print how many worlds and runs there would be, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,

    /// No progress on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

pub(super) const ABOUT: &str = "\
Tell which expectations of a scenario could fail at all.

Each expectation is held against wrong worlds: those that the scenario names itself ([[negative]]: \
keys to set, with a sentence), and those that can be made of any scenario, in which the stack it \
asks about is standard TCP, a law that no loss impresses, or a nonsense law, has its decrease moved \
by a fifth or lacks its start-up, or in which a traffic, a flow, drops, random loss, the limit of a \
queue, its discipline or an interface is taken away. An expectation that passes in all of them is \
toothless: it says nothing about its subject. One that fails in generated worlds of a single kind \
only, and in no [[negative]], is shown with `fails only in`: it says little. One that other seeds \
decide otherwise `holds with these seeds only`: what it notices may be chance. Knobs that change no \
number (dead), stacks that no expectation depends on, and cases whose seeds all give the same \
numbers, are named as well; of several scenarios, the counts together.

Runs are made in the simulator, each different one once, and kept in \
$XDG_CACHE_HOME/fullpipe/falsify (~/.cache/fullpipe/falsify): an edited bound is judged at once. \
The exit code is 1 if an expectation is toothless and its key `toothless` does not say why, or if \
nothing catches a [[negative]].";

const EXAMPLES: &str = "\
Examples:
  fullpipe falsify my.toml
  fullpipe falsify blast --quick
  fullpipe falsify my.toml --out teeth && xdg-open teeth/falsification.html
  fullpipe falsify my.toml --format json | jq '.expectations[] | select(.toothless or .weak).name'";
