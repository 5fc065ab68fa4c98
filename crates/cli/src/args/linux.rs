//! Arguments of `fullpipe linux`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use fullpipe_linux::DEFAULT_VERSION;

use super::parse::at_least_one;

/// `fullpipe linux`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Linux {
    /// Build, or list.
    #[command(subcommand)]
    pub action: LinuxAction,
}

/// Subcommands of `fullpipe linux`.
#[derive(Clone, Debug, Subcommand)]
pub enum LinuxAction {
    /// Build a user-mode kernel into the user's cache
    Build(LinuxBuild),
    /// List the kernels that are there
    List,
}

/// `fullpipe linux build`.
#[derive(Clone, Debug, ClapArgs)]
pub struct LinuxBuild {
    /// Version of Debian's package linux-source-VERSION
    #[arg(long, value_name = "VERSION", default_value = DEFAULT_VERSION)]
    pub version: String,

    /// Sources in another place: a tree, or an archive of one
    #[arg(long, value_name = "PATH", conflicts_with = "version")]
    pub source: Option<PathBuf>,

    /// Name for `fullpipe run --kernel` [default: the version, or what the path ends in]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Ticks of the kernel's timers per second
    #[arg(long, value_name = "N", default_value_t = 250, value_parser = ticks)]
    pub hz: u32,

    /// Compilers that run at once [default: one per core]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>, allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,
}

/// The values of `CONFIG_HZ` that distributions choose from.
fn ticks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(hz @ (100 | 250 | 300 | 1000)) => Ok(hz),
        _ => Err("100, 250, 300 or 1000".to_owned()),
    }
}

pub(super) const ABOUT: &str = "\
Build the kernels of the ground linux, and list them.

`fullpipe run SCENARIO --ground linux` runs flows over Linux's own TCP: in a user-mode kernel, an \
ordinary process whose clock is virtual. `build` makes one such kernel per version, in \
$XDG_CACHE_HOME/fullpipe/linux (~/.cache/fullpipe/linux). It takes about four minutes on two idle \
cores and needs the packages linux-source-VERSION, make, gcc, flex, bison, bc, xz-utils, and \
iproute2 for the runs. No privilege is needed for either.";

const EXAMPLES: &str = "\
Examples:
  fullpipe linux build                                Debian's 6.1
  fullpipe linux build --version 6.12 --hz 1000 --name 6.12-hz1000
  fullpipe linux build --source ~/src/linux-6.6
  fullpipe linux list";
