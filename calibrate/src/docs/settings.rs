//! What preset `linux` sets: the fields in which it differs from today's RFCs.

use std::collections::BTreeMap;

use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_units::Span;

use super::{DocsError, line};
use crate::causes::Surprises;
use crate::cell::PACKET;

/// A field in which preset `linux` differs from preset `2026`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// `sender.` or `receiver.` and the field.
    pub name: String,
    /// Its value in preset `linux`.
    pub linux: String,
    /// Its value in preset `2026`.
    pub rfc: String,
}

pub(super) fn switches(p: &mut String, surprises: &Surprises) -> Result<(), DocsError> {
    p.push_str(
        "## What preset `linux` sets\n\nEvery field of the endpoints' configuration in which it differs from preset\n\
         `2026`, today's RFCs. The congestion-control modules are separate stacks:\n\
         `fullpipe list stacks` lists them.\n\n\
         | field | preset `linux` | preset `2026` | |\n|---|---|---|---|\n",
    );
    let settings = settings();
    let mut about: BTreeMap<&str, &str> = BTreeMap::new();
    for s in &surprises.switches {
        let known = settings.iter().any(|x| x.name == s.name);
        if !known || about.insert(&s.name, &s.about).is_some() {
            return Err(DocsError::NoSwitch(s.name.clone()));
        }
    }
    for s in settings {
        let Some(about) = about.get(s.name.as_str()) else {
            return Err(DocsError::Undescribed(s.name));
        };
        line(
            p,
            format_args!("| `{}` | `{}` | `{}` | {about} |", s.name, s.linux, s.rfc),
        );
    }
    p.push('\n');
    Ok(())
}

/// What preset `linux` sets, read off the presets themselves.
pub fn settings() -> Vec<Setting> {
    let sender = |p| fields("sender", &format!("{:?}", SenderConfig::preset(p, PACKET)));
    let receiver = |p| fields("receiver", &format!("{:?}", ReceiverConfig::preset(p)));
    let of = |p| [sender(p), receiver(p)].concat();
    of(Preset::Linux)
        .into_iter()
        .zip(of(Preset::Y2026))
        .filter(|(linux, rfc)| linux.1 != rfc.1)
        .map(|(linux, rfc)| Setting {
            name: linux.0,
            linux: plain(&linux.1),
            rfc: plain(&rfc.1),
        })
        .collect()
}

/// A value of the debug text for people: spans with a unit, options without their wrapping.
fn plain(value: &str) -> String {
    let mut text = value.to_owned();
    while let Some((before, rest)) = text.split_once("Span(") {
        let Some((nanos, after)) = rest.split_once(')') else {
            break;
        };
        let Ok(nanos) = nanos.trim_end_matches("ns").parse() else {
            break;
        };
        text = format!("{before}{}{after}", Span::from_nanos(nanos));
    }
    let inner = text.strip_prefix("Some(").and_then(|t| t.strip_suffix(')'));
    match inner.unwrap_or(&text) {
        "inf" => "unlimited".to_owned(),
        "None" => "none".to_owned(),
        inner => inner.to_owned(),
    }
}

/// The fields of a structure's derived debug text, those of structures inside with their path.
fn fields(path: &str, text: &str) -> Vec<(String, String)> {
    let is_name = |s: &str| s.chars().all(|c| c.is_alphanumeric() || c == '_');
    let inner = text
        .split_once(" { ")
        .filter(|(name, _)| is_name(name))
        .and_then(|(_, rest)| rest.strip_suffix(" }"));
    let Some(inner) = inner else {
        return vec![(path.to_owned(), text.to_owned())];
    };
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (i, c) in inner.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[from..i]);
                from = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[from..]);
    parts
        .into_iter()
        .filter_map(|part| part.trim().split_once(": "))
        .flat_map(|(name, value)| fields(&format!("{path}.{name}"), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_debug_text() {
        let text =
            "A { x: 1, y: Some(B { z: 2, w: 3 }), r: C { min: 1s, max: D(4, 5) }, e: [1, 2] }";
        let found = fields("a", text);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(
            found,
            [
                ("a.x", "1"),
                ("a.y", "Some(B { z: 2, w: 3 })"),
                ("a.r.min", "1s"),
                ("a.r.max", "D(4, 5)"),
                ("a.e", "[1, 2]")
            ]
        );
    }

    #[test]
    fn values_for_people() {
        assert_eq!(plain("Span(200000000)"), "200ms");
        assert_eq!(
            plain("A { x: Span(1000000), y: Span(0) }"),
            "A { x: 1ms, y: 0s }"
        );
        assert_eq!(plain("Some(250)"), "250");
        assert_eq!(plain("Some(inf)"), "unlimited");
        assert_eq!(plain("None"), "none");
    }

    #[test]
    fn settings_are_where_the_presets_differ() {
        let settings = settings();
        let timers = settings
            .iter()
            .find(|s| s.name == "sender.timers.grain")
            .unwrap();
        assert_eq!((&*timers.linux, &*timers.rfc), ("Wheel", "Exact"));
        assert!(settings.iter().any(|s| s.name == "sender.rto.rule"));
        let rto = settings
            .iter()
            .find(|s| s.name == "sender.rto.min")
            .unwrap();
        assert_eq!((&*rto.linux, &*rto.rfc), ("200ms", "1s"));
        assert!(settings.iter().all(|s| s.name != "sender.mss"));
    }

    #[test]
    fn every_switch_is_described_once() {
        let kept = Surprises::kept().unwrap();
        let mut p = String::new();
        switches(&mut p, &kept).unwrap();
        assert!(
            p.contains("| `sender.timers.grain` | `Wheel` | `Exact` |"),
            "{p}"
        );
        let mut fewer = kept.clone();
        let gone = fewer.switches.remove(0);
        let error = switches(&mut p, &fewer).unwrap_err().to_string();
        assert!(error.contains(&gone.name), "{error}");
        let mut more = kept;
        more.switches.push(gone);
        assert!(switches(&mut p, &more).is_err());
    }
}
