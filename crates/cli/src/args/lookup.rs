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
    /// What to describe
    #[arg(value_enum)]
    pub what: Described,
}

/// Argument of `fullpipe schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// A scenario file
    Scenario,
    /// What `run --format json` prints
    Result,
    /// What `falsify --format json` prints
    Falsification,
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
  fullpipe schema scenario > scenario.schema.json
  fullpipe schema result";

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
