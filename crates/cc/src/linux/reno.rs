//! Reno as Linux counts it (`tcp_reno_*` in `net/ipv4/tcp_cong.c`, Linux 6.1): every default of [`Module`].
//!
//! Differs from RFC 5681 in the base of the decrease (the window, not FlightSize) and in whole segments: the window grows by one
//! when as many segments as it holds have been acknowledged.

use super::Module;
use crate::params::Params;
use crate::registry::{Component, Entry, Kind};

/// No state of its own.
#[derive(Clone, Debug)]
pub struct Reno;

impl Module for Reno {}

/// `reno-linux`.
pub const RENO_LINUX: Entry = Entry {
    name: "reno-linux",
    aliases: &[],
    kind: Kind::Module,
    about: "Reno in whole segments, halving the window",
    source: "Linux 6.1 net/ipv4/tcp_cong.c",
    params: &[],
    build: |_: &Params| Ok(Component::Module(Reno.into())),
};
