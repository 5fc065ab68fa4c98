//! What a policy asks for and the kernel of this host has not.

use std::fs;

use fullpipe_policy::Compiled;

/// Algorithms of the policy that the kernel here does not have, a sentence each; nothing where it
/// does not say which it has.
pub(super) fn kernel_lacks(compiled: &Compiled) -> Vec<String> {
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    compiled.lacking(&there)
}

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
