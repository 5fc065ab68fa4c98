//! The unit that was meant.

use alloc::string::String;
use alloc::vec::Vec;

use super::decimal::Decimal;
use super::units::{BINARY_SIZES, DECIMAL_SIZES, RATES, Unit};
use super::{Dim, Expected};

/// The accepted unit most likely meant by `unit`.
pub(super) fn nearest(unit: &str, spec: &Expected) -> Option<&'static str> {
    if unit.chars().count() > LONGEST_MISSPELLING
        || (spec.dims.contains(&Dim::Rate) && byte_rate_prefix(unit).is_some())
    {
        return None;
    }
    let accepted = |name: &str| spec.accepted.iter().copied().find(|a| *a == name);
    let lower = unit.to_lowercase();
    spec.accepted
        .iter()
        .copied()
        .find(|a| a.to_lowercase() == lower)
        .or_else(|| {
            SYNONYMS
                .iter()
                .filter(|(_, words)| words.contains(&&*lower))
                .find_map(|(name, _)| accepted(name))
        })
        .or_else(|| {
            spec.dims
                .contains(&Dim::Rate)
                .then(|| respell(&lower, RATE_SUFFIXES, "bit/s", RATES))
                .flatten()
        })
        .or_else(|| {
            spec.dims
                .contains(&Dim::Size)
                .then(|| respell_size(&lower))
                .flatten()
        })
        .or_else(|| {
            let reach = (lower.chars().count() / 3).min(2);
            let near = spec
                .accepted
                .iter()
                .map(|a| (edit_distance(&lower, &a.to_lowercase()), *a));
            near.filter(|(distance, _)| *distance <= reach)
                .min_by_key(|(distance, _)| *distance)
                .map(|(_, a)| a)
        })
}

/// `number` of a unit such as `MB/s` or `MBps`, as a rate in bits.
pub(crate) fn byte_rate_in_bits(number: &str, unit: &str) -> Option<String> {
    let prefix = byte_rate_prefix(unit)?;
    let (number, _) = Decimal::split(number)?;
    Some(format!(
        "{}{}bit/s",
        number.to_f64(0).ok()? * 8.0,
        if prefix == "K" { "k" } else { prefix }
    ))
}

fn byte_rate_prefix(unit: &str) -> Option<&str> {
    let prefix = ["B/s", "Bps"]
        .iter()
        .find_map(|suffix| unit.strip_suffix(suffix))?;
    ["", "k", "K", "M", "G", "T"]
        .contains(&prefix)
        .then_some(prefix)
}

fn respell_size(lower: &str) -> Option<&'static str> {
    respell(lower, SIZE_SUFFIXES, "b", DECIMAL_SIZES)
        .or_else(|| respell(lower, SIZE_SUFFIXES, "b", BINARY_SIZES))
}

/// The unit of `units` that consists of the prefix of `lower` and `base`, when `lower` ends in one
/// of `suffixes` or is a bare prefix.
fn respell(
    lower: &str,
    suffixes: &[&str],
    base: &str,
    units: &'static [Unit],
) -> Option<&'static str> {
    suffixes
        .iter()
        .filter_map(|suffix| lower.strip_suffix(suffix))
        .find_map(|prefix| {
            let wanted = format!("{prefix}{base}");
            units
                .iter()
                .map(|unit| unit.name)
                .find(|name| name.to_lowercase() == wanted)
        })
}

/// Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

const LONGEST_MISSPELLING: usize = 16;

const RATE_SUFFIXES: &[&str] = &["bits/s", "bps", "b/s", "bits", "bit", "b", ""];

const SIZE_SUFFIXES: &[&str] = &["bytes", "byte", ""];

const SYNONYMS: &[(&str, &[&str])] = &[
    ("ns", &["nsec", "nsecs", "nanos", "nanoseconds"]),
    ("us", &["usec", "usecs", "micros", "microseconds"]),
    ("ms", &["msec", "msecs", "millis", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["m", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("segments", &["seg", "segs", "mss"]),
    ("packets", &["p", "pkt", "pkts"]),
    ("%", &["percent", "pct"]),
];
