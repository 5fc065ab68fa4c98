//! Arguments of `fullpipe set`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// `fullpipe set`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Set {
    /// The socket of a running `fullpipe send --control PATH`
    #[arg(value_name = "PATH")]
    pub path: PathBuf,

    /// What changes, as `a=6,b=0.3`, `stack=cubic`, `window=8MB`, `rate=50Mbit/s` or `rate=off`;
    /// without it the flows are shown as they are
    #[arg(value_name = "NAME=VALUE[,...]")]
    pub words: Option<String>,

    /// Only this flow, as the answer without words names it [default: all]
    #[arg(long, value_name = "FLOW", requires = "words")]
    pub flow: Option<String>,
}

/// Long help of `fullpipe set`.
pub const ABOUT: &str = "\
Change parameters of flows that run, or show them.

The flows are those of a `fullpipe send --control PATH` of the same user. The words are those of \
[[flow.change]] in a scenario: parameters of the stack by their names in its spelling (`a` and `b` \
are `increase` and `decrease`), a whole `stack`, a `window`, a `rate`. A change takes effect with \
the next packet; congestion window and threshold stay. Words that a flow cannot take change \
nothing, and the exit code is 2. One line per flow: name, stack, window, smoothed RTT.";

const EXAMPLES: &str = "\
Examples:
  fullpipe set /run/user/1000/fp
  fullpipe set /run/user/1000/fp a=6,b=0.3
  fullpipe set /run/user/1000/fp 'stack=highspeed(low_window=31),window=8MB'
  fullpipe set /run/user/1000/fp rate=off --flow main.2";
