//! What the commands that run nothing take: `list`, `schema`, `check`, `completions`, `man`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::ShortFormat;
use super::parse::key_value;
use super::run::grounds;

/// `fullpipe list`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = LIST_EXAMPLES)]
pub struct List {
    /// What to list
    #[arg(value_enum)]
    pub what: Listed,

    /// Only this entry, in full detail
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Format of the list on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,
}

/// Argument of `fullpipe list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Window laws, start-ups and ways of sending, with their parameters
    Stacks,
    /// Built-in scenarios
    Scenarios,
    /// Metrics with unit, formula and source
    Metrics,
}

/// `fullpipe schema`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// What to describe; without it, the names
    #[arg(value_enum, value_name = "NAME")]
    pub what: Option<Described>,
}

/// Argument of `fullpipe schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// A scenario file
    Scenario,
    /// `run --format json` and `send --format json`; several scenarios: an array of such objects
    Result,
    /// A line of `run --format ndjson`, and the last of `send --format ndjson`
    Case,
    /// The lines of `send --format ndjson` before it
    Interval,
    /// `send FILE... TO --format json`
    Copy,
    /// `ping --format json`
    Ping,
    /// `compare --format json`
    Comparison,
    /// `history --format json`
    History,
    /// `agree --format json`
    Agreement,
    /// `falsify --format json`; several scenarios: an array of such objects
    Falsification,
    /// `law --format json`
    Law,
    /// `list stacks --format json`
    Stacks,
    /// `list scenarios --format json`
    Scenarios,
    /// `list metrics --format json`
    Metrics,
    /// A line of `observe --format ndjson`
    Observation,
    /// `doctor --format json`
    Doctor,
    /// `emulate --format json`
    Emulation,
    /// `tune check --json`
    Policy,
    /// `tune explain --json`
    Explanation,
    /// `tune status --json`
    TunerStatus,
    /// `tune flows --json`
    TunerFlows,
    /// `tune plan --json`
    TunerPlan,
    /// `tune compare --json`
    TunerCompare,
    /// A line of `serve --log json`
    Event,
    /// `config --format json`
    Config,
}

/// `fullpipe config`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = CONFIG_EXAMPLES)]
pub struct ConfigFlags {
    /// Every key that can be set, too, with its built-in default
    #[arg(long)]
    pub all: bool,

    /// Format of the list on stdout
    #[arg(long, value_enum, default_value_t = ShortFormat::Table)]
    pub format: ShortFormat,
}

/// `fullpipe check`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// Scenario files or names of built-in scenarios; `-` reads one from standard input
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,

    /// Set a key of the scenario before checking it; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Apply the scenario's [quick] settings
    #[arg(long)]
    pub quick: bool,

    /// List the cases
    #[arg(long)]
    pub cases: bool,

    /// Tell what this backend ("ground") refuses of the scenario, too
    #[arg(long, value_parser = grounds())]
    pub ground: Option<String>,

    /// Kernel of the ground linux, as `fullpipe linux list` names it
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
}

/// `fullpipe completions`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct Completions {
    /// Shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `fullpipe man`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = MAN_EXAMPLES)]
pub struct Man {
    /// Write one page per command into this directory; without it fullpipe(1) goes to stdout
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Print the whole reference as Markdown instead
    #[arg(long, conflicts_with = "dir")]
    pub markdown: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  fullpipe list stacks
  fullpipe list stacks highspeed
  fullpipe list metrics --format json";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  fullpipe schema                              what is printed as JSON, and by which name
  fullpipe schema scenario > scenario.schema.json
  fullpipe schema ping | jq .properties.rtt_ms";

pub(super) const CONFIG_ABOUT: &str = "\
Print the defaults of flags that a file or the environment sets, and where each comes from.

A table of the file is a command, a key in it a flag: `[send] stack = \"bbr\"` is `--stack bbr` of \
every `fullpipe send` that does not say otherwise, `[tune.check] json = true` is a flag of `fullpipe \
tune check`, and `color = \"never\"` above all tables is for every command. A variable is FULLPIPE_, the \
command and the flag: FULLPIPE_SEND_STACK=bbr. A flag goes before the environment, the environment \
before the file: also before what it cannot be used with. `[send] time` is how long tests last, and \
not the most that a copy may take. The file is $XDG_CONFIG_HOME/fullpipe/config.toml, or \
~/.config/fullpipe/config.toml, or what FULLPIPE_CONFIG names; empty, it switches the file off. A \
key that no command knows is an error, of every command.";

const CONFIG_EXAMPLES: &str = "\
Examples:
  fullpipe config
  fullpipe config --all | grep ^send
  FULLPIPE_RUN_JOBS=1 fullpipe config
  FULLPIPE_CONFIG= fullpipe run my.toml            without the file";

const CHECK_EXAMPLES: &str = "\
Examples:
  fullpipe check my.toml
  fullpipe check scenarios/*.toml
  fullpipe check early-loss --cases
  fullpipe check my.toml --ground linux";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  fullpipe completions bash > ~/.local/share/bash-completion/completions/fullpipe
  fullpipe completions zsh > ~/.zfunc/_fullpipe
  fullpipe completions fish > ~/.config/fish/completions/fullpipe.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  fullpipe man | man -l -
  fullpipe man ~/.local/share/man/man1";
