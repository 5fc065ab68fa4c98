//! Scenarios that ship inside the program, by name.

use fullpipe_cc::registry::nearest;

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// Name and text of every built-in scenario and study, in the order `fullpipe list scenarios`
/// prints them.
pub const BUILT_IN: &[(&str, &str)] = files! {
    "first-run" "tour"
    "early-loss" "one-drop" "slow-start-cap" "gamma-window" "blast" "streams" "four-streams"
    "nikhef"
    "response" "ucl"
    "slac" "slac-throughput" "slac-txqueuelen" "slac-stability" "slac-fairness" "waves" "reverse"
    "slac-westwood" "slac-udt"
    "spreading" "spreading-rates" "spreading-mixed" "spreading-windows" "sender-host"
    "interface-stall" "tuning-daemon" "retuning" "alaska" "tuned-sharing" "ten-gigabit"
    "rtt-fairness" "rtt-fairness-bbr" "route-change" "parking" "random-loss" "random-loss-bbr"
    "marking"
    "tcpeval" "tcpeval-basic" "tcpeval-buffers" "tcpeval-ramp-up" "tcpeval-transients" "tcpeval-impact"
    "bbr" "bbr-share" "dtn" "core-scale"
    "rrul" "bidirectional" "versus"
    "grounds" "grounds-one-drop" "grounds-slow-start-cap" "grounds-spreading"
};

/// The built-in scenarios that are a question about any path, so that `fullpipe send --test` puts
/// it to a real one.
pub const TESTS: [&str; 3] = ["rrul", "bidirectional", "versus"];

/// The text of a built-in scenario.
pub fn find(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// The closest name.
pub fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, BUILT_IN.iter().map(|(known, _)| *known))
}

/// Every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}
