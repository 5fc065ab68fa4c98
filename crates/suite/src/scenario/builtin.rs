//! Scenarios that ship inside the program, by name.

use super::value::nearest;

/// Name and text of every built-in scenario, in the order `fullpipe list scenarios` prints them.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "first-run",
        include_str!("../../../../scenarios/first-run.toml"),
    ),
    (
        "early-loss",
        include_str!("../../../../scenarios/early-loss.toml"),
    ),
    (
        "one-drop",
        include_str!("../../../../scenarios/one-drop.toml"),
    ),
    (
        "slow-start-cap",
        include_str!("../../../../scenarios/slow-start-cap.toml"),
    ),
    (
        "gamma-window",
        include_str!("../../../../scenarios/gamma-window.toml"),
    ),
    (
        "response",
        include_str!("../../../../scenarios/response.toml"),
    ),
];

/// The text of a built-in scenario.
pub fn find(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// The closest name.
pub(super) fn nearest_name(name: &str) -> Option<&'static str> {
    nearest(name, BUILT_IN.iter().map(|(known, _)| *known))
}

/// Every name.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}
