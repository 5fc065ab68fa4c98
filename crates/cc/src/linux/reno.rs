//! Reno as Linux counts it (`tcp_reno_*` in `net/ipv4/tcp_cong.c`, Linux 6.1): every default of
//! [`Module`].
//!
//! Differs from RFC 5681 in the base of the decrease (the window, not FlightSize) and in whole
//! segments: the window grows by one when as many segments as it holds have been acknowledged.

use crate::entry::Entry;
use crate::linux::module::Module;

/// No state of its own.
#[derive(Clone, Debug)]
pub struct Reno;

impl Module for Reno {}

/// `reno-linux`.
pub const RENO_LINUX: Entry<Reno> = Entry {
    name: "reno-linux",
    aliases: &[],
    about: "Reno in whole segments, halving the window",
    source: "Linux 6.1 net/ipv4/tcp_cong.c",
    params: &[],
    build: |_| Ok(Reno),
};
