//! The axes of a matrix as the page needs them: numbers with a unit, and the role of each.

use std::collections::BTreeSet;

use fullpipe_results::label;
use fullpipe_units::{BufferSize, Bytes, Fraction, Rate, Span, WindowSize};

use super::data::Axis;

/// Keys that vary, with their values in the order in which they occur.
pub(crate) fn axes(params: &[Vec<(String, String)>], matrix: &toml::Table) -> Vec<Axis> {
    let varying = label::varying(params);
    let sets: Vec<Vec<String>> = varying.iter().map(|(key, _)| set_by(matrix, key)).collect();
    let keys = varying
        .iter()
        .zip(&sets)
        .map(|((key, _), sets)| (*key, sets));
    let competing = competing(&keys.collect::<Vec<_>>());
    let axis = |(at, (key, label)): (usize, &(&str, &str))| {
        let mut values: Vec<String> = Vec::new();
        for value in params.iter().filter_map(|p| label::find(p, key)) {
            if !values.iter().any(|v| v == value) {
                values.push(value.to_owned());
            }
        }
        let (numbers, unit) = numbers(&values).unzip();
        let subject = stack_key(key, &sets[at]).unwrap_or(key);
        Axis {
            key: (*key).to_owned(),
            label: (*label).to_owned(),
            heading: heading(label),
            texts: values.iter().map(|value| spaced(value)).collect(),
            of_stacks: key.ends_with(STACK),
            plain: key.ends_with(STACK) || !key.contains('.'),
            values,
            numbers,
            unit,
            competes: competing == Some(at),
            flow: named(subject, "flow"),
            traffic: named(subject, "traffic"),
        }
    };
    varying.iter().enumerate().map(axis).collect()
}

/// A label in words. That of several stacks is the flow or traffic whose they are.
fn heading(label: &str) -> String {
    let stack = label.strip_suffix(STACK);
    let owner = stack.and_then(|of| of.strip_prefix("flow.").or(of.strip_prefix("traffic.")));
    match (label, owner) {
        ("rtt", _) => "RTT".to_owned(),
        ("mtu", _) => "MTU".to_owned(),
        ("delayed_ack", _) => "delayed ACK".to_owned(),
        (_, Some(owner)) => owner.to_owned(),
        _ => label.replace('_', " "),
    }
}

/// A value with its number apart from the unit: `70 ms`.
fn spaced(value: &str) -> String {
    let is_number = |end: &usize| value[..*end].parse::<f64>().is_ok();
    let mut ends = value.char_indices().map(|(at, _)| at);
    match ends.rfind(is_number) {
        Some(end) if !is_number(&value.len()) && quantity(value).is_some() => {
            format!("{} {}", &value[..end], value[end..].trim_start())
        }
        _ => value.to_owned(),
    }
}

/// Whether an axis, by its key and what it sets, may be the one that competes.
type Rank<'a> = dyn Fn(&str, &[String]) -> bool + 'a;

/// The axis whose values compete, of keys with what each sets: one of stacks, one that sets a
/// stack, one with a name of its own that sets something else of a sender, the named cases, any
/// with a name of its own, the first.
fn competing(axes: &[(&str, &Vec<String>)]) -> Option<usize> {
    let is_own = |key: &str| !key.contains('.');
    let of_sender = |sets: &[String]| {
        let mut sets = sets.iter();
        sets.any(|s| s.starts_with("flow.") || s.starts_with("traffic."))
    };
    let ranks: [&Rank<'_>; 6] = [
        &|key, _| key.ends_with(STACK),
        &|key, sets| key != CASE && stack_key(key, sets).is_some(),
        &|key, sets| key != CASE && is_own(key) && of_sender(sets),
        &|key, _| key == CASE,
        &|key, _| is_own(key),
        &|_, _| true,
    ];
    let find = |rank: &&Rank<'_>| axes.iter().position(|(key, sets)| rank(key, sets));
    ranks.iter().find_map(find)
}

/// The stack that an axis sets: its own key, or one in its tables.
fn stack_key<'a>(key: &'a str, sets: &'a [String]) -> Option<&'a str> {
    let mut keys = std::iter::once(key).chain(sets.iter().map(String::as_str));
    keys.find(|k| k.ends_with(STACK))
}

/// `main` of `flow.main.stack`.
fn named(key: &str, section: &str) -> Option<String> {
    let (name, _) = key
        .strip_prefix(section)?
        .strip_prefix('.')?
        .split_once('.')?;
    Some(name.to_owned())
}

/// The numbers of some values and their unit; `None` where one is a word or the units differ.
fn numbers(values: &[String]) -> Option<(Vec<f64>, &'static str)> {
    let numbers: Vec<(f64, &str)> = values.iter().map(|v| quantity(v)).collect::<Option<_>>()?;
    let unit = numbers.first()?.1;
    let same = numbers.iter().all(|(_, u)| *u == unit);
    same.then(|| (numbers.into_iter().map(|(x, _)| x).collect(), unit))
}

/// A value of the matrix as a number of a base unit.
pub(crate) fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(x) = text.parse::<f64>() {
        return x.is_finite().then_some((x, "1"));
    }
    if let Ok(span) = text.parse::<Span>() {
        return Some((span.as_secs_f64(), "s"));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.as_bits_per_sec() as f64, "bit/s"));
    }
    if let Ok(part) = text.parse::<Fraction>() {
        return Some((part.get(), "1"));
    }
    match (text.parse(), text.parse()) {
        (Ok(BufferSize::Packets(n)), _) => Some((n as f64, "packets")),
        (Ok(BufferSize::Bdp(x)), _) => Some((x, "BDP")),
        (Ok(BufferSize::Bytes(Bytes(n))), _) => Some((n as f64, "B")),
        (_, Ok(WindowSize::Segments(x))) => Some((x, "segments")),
        _ => None,
    }
}

/// The keys that the tables of a named axis set.
fn set_by(matrix: &toml::Table, axis: &str) -> Vec<String> {
    fn leaves(at: &str, table: &toml::Table, to: &mut BTreeSet<String>) {
        for (key, value) in table {
            let path = if at.is_empty() {
                key.clone()
            } else {
                format!("{at}.{key}")
            };
            match value {
                toml::Value::Table(inner) => leaves(&path, inner, to),
                _ => drop(to.insert(path)),
            }
        }
    }
    let mut keys = BTreeSet::new();
    let tables = matrix.get(axis).and_then(toml::Value::as_array);
    for table in tables.into_iter().flatten().filter_map(|v| v.as_table()) {
        leaves("", table, &mut keys);
    }
    keys.remove("name");
    keys.into_iter().collect()
}

const STACK: &str = ".stack";
/// The axis of cases that have names.
const CASE: &str = "case";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_with_a_unit_is_a_number() {
        for (text, value, unit) in [
            ("70ms", 0.07, "s"),
            ("1.5BDP", 1.5, "BDP"),
            ("622Mbit/s", 622e6, "bit/s"),
            ("64 segments", 64.0, "segments"),
            ("200 packets", 200.0, "packets"),
            ("8MB", 8e6, "B"),
            ("2%", 0.02, "1"),
            ("9000", 9000.0, "1"),
        ] {
            assert_eq!(quantity(text), Some((value, unit)), "{text}");
        }
        for word in ["reno", "unlimited", "1KB", "inf", ""] {
            assert_eq!(quantity(word), None, "{word}");
        }
    }

    #[test]
    fn a_value_has_its_unit_apart() {
        for (value, text) in [
            ("20ms", "20 ms"),
            ("1BDP", "1 BDP"),
            ("2%", "2 %"),
            ("1e3Mbit/s", "1e3 Mbit/s"),
            ("64 segments", "64 segments"),
            ("1e-4", "1e-4"),
            ("1e6", "1e6"),
            ("0.5", "0.5"),
            ("reno", "reno"),
            ("4x1Gbit", "4x1Gbit"),
        ] {
            assert_eq!(spaced(value), text);
        }
    }

    #[test]
    fn an_axis_is_headed_by_words() {
        for (label, words) in [
            ("rtt", "RTT"),
            ("initial_window", "initial window"),
            ("flow.first.stack", "first"),
            ("traffic.web.stack", "web"),
            ("stack", "stack"),
            ("flow.first.window", "flow.first.window"),
        ] {
            assert_eq!(heading(label), words);
        }
    }

    #[test]
    fn numbers_share_a_unit() {
        let of =
            |values: &[&str]| numbers(&values.iter().map(|v| v.to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["10ms", "1s"]), Some((vec![0.01, 1.0], "s")));
        assert_eq!(of(&["64 segments", "1BDP"]), None);
        assert_eq!(of(&["10ms", "none"]), None);
    }

    fn competitor(axes: &[(&str, &[&str])]) -> usize {
        let sets = axes
            .iter()
            .map(|(_, sets)| sets.iter().map(|s| s.to_string()).collect());
        let sets: Vec<Vec<String>> = sets.collect();
        let axes: Vec<_> = axes
            .iter()
            .zip(&sets)
            .map(|((key, _), sets)| (*key, sets))
            .collect();
        competing(&axes).unwrap()
    }

    #[test]
    fn what_sets_a_stack_competes() {
        let load: (&str, &[&str]) = ("load", &["flow.long.streams"]);
        let sending: (&str, &[&str]) = ("sending", &["traffic.web.size", "traffic.web.stack"]);
        assert_eq!(competitor(&[load, sending]), 1);
        assert_eq!(competitor(&[sending, ("flow.main.stack", &[])]), 1);
        // Nobody sets a stack: what changes a sender comes before what changes the path.
        assert_eq!(competitor(&[("distance", &["path.rtt"]), load]), 1);
        assert_eq!(
            competitor(&[("path.rtt", &[]), ("case", &["flow.main.stack"])]),
            1
        );
        assert_eq!(competitor(&[("path.rtt", &[]), ("path.buffer", &[])]), 0);
    }

    #[test]
    fn an_axis_knows_whose_key_it_sets() {
        assert_eq!(named("flow.main.stack", "flow").as_deref(), Some("main"));
        assert_eq!(named("traffic.web.stack", "flow"), None);
        assert_eq!(named("path.rtt", "path"), None);
    }
}
