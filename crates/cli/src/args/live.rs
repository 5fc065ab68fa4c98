//! How runs in real time are watched, of every command that makes or serves them.

use std::net::SocketAddr;

use clap::Args as ClapArgs;

use super::parse::loopback;

/// Flags of `send`, of `serve`, and of `run` on grounds in real time.
#[derive(Clone, Debug, Default, ClapArgs)]
pub struct LiveFlags {
    /// Show what happens on the terminal, in pictures that move; `q` stops as Ctrl-C does
    #[arg(long)]
    pub dashboard: bool,

    /// Serve the latest values to Prometheus, at this address of the loopback
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    pub prometheus: Option<SocketAddr>,
}
