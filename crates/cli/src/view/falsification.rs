//! What `fullpipe falsify` prints for people.

use std::fmt::Write as _;

use fullpipe_results::falsify::{ExpectationTeeth, Falsification, WorldEffect, WorldResult};

use crate::commands::check::counted;
use crate::table::{Align, Table};

/// Two tables, expectations and worlds, and what to do about them.
pub fn falsification(found: &Falsification) -> String {
    let (expectations, worlds) = (found.expectations.len(), found.worlds.len());
    let mut out = format!(
        "{}: {} against {}\n\n",
        found.scenario,
        counted(expectations, "expectation"),
        counted(worlds, "wrong world")
    );
    out += &expectations_table(&found.expectations);
    out.push('\n');
    out += &worlds_table(&found.worlds);
    out.push('\n');
    out += &advice(found);
    out
}

fn expectations_table(all: &[ExpectationTeeth]) -> String {
    let mut table = Table::new();
    for (align, head) in [
        (Align::Left, "expectation"),
        (Align::Left, "line"),
        (Align::Right, "fails in"),
        (Align::Left, ""),
    ] {
        table.column(align, &[head]);
    }
    for e in all {
        let remark = match (&e.excuse, e.toothless, e.passes) {
            (Some(why), true, _) => format!("toothless by intent: {why}"),
            (Some(_), false, _) => "not toothless: `toothless` can go".to_owned(),
            (None, true, _) => {
                let missed = counted(e.missed.len(), "world");
                format!("TOOTHLESS: its value moves in {missed} and it passes")
            }
            (None, false, true) => e.caught.first().cloned().unwrap_or_default(),
            (None, false, false) => "fails as it is".to_owned(),
        };
        let line = e.line.to_string();
        table.row(vec![
            e.name.clone(),
            line,
            counted(e.caught.len(), "world"),
            remark,
        ]);
    }
    table.text()
}

fn worlds_table(all: &[WorldResult]) -> String {
    let mut table = Table::new();
    for head in ["world", "caught by", "what differs"] {
        table.column(Align::Left, &[head]);
    }
    for world in all {
        let caught = match (world.effect, world.line) {
            (WorldEffect::Caught, _) => counted(world.caught_by.len(), "expectation"),
            (WorldEffect::Missed, Some(line)) => format!("NONE ([[negative]], line {line})"),
            (WorldEffect::Missed, None) => "none".to_owned(),
            (WorldEffect::Dead, Some(line)) => {
                format!("NONE: changes no number ([[negative]], line {line})")
            }
            (WorldEffect::Dead, None) => "none: changes no number (dead)".to_owned(),
        };
        let mut differs = world.set.first().cloned().unwrap_or_default();
        if world.set.len() > 1 {
            // Writing to a string cannot fail.
            let _ = write!(differs, " and {} more", world.set.len() - 1);
        }
        table.row(vec![world.about.clone(), caught, differs]);
    }
    table.text()
}

fn advice(found: &Falsification) -> String {
    let mut out = String::new();
    let toothless = found.toothless().count();
    if toothless > 0 {
        out += &format!(
            "{} toothless: no wrong world makes it fail. Tighten its bound, measure what its \
             subject does,\nor name a world in which it must fail:\n\n    [[negative]]\n    \
             about = \"the traffic is switched off\"\n    set = {{ \"traffic.blast.enabled\" = \
             false }}\n\nIf it is right as it is, say why: toothless = \"...\" in its \
             [[expect]].\n",
            match toothless {
                1 => "1 expectation is".to_owned(),
                n => format!("{n} expectations are"),
            }
        );
    }
    for world in found.uncaught() {
        out += &format!("no expectation notices \"{}\"\n", world.about);
    }
    let same = &found.same_for_all_seeds;
    if let Some(first) = same.first() {
        let first = match first.0.is_empty() {
            true => String::new(),
            false => format!(", for example {first}"),
        };
        out += &format!(
            "{} the same numbers with every seed{first}: more seeds make nothing surer\n",
            match same.len() {
                1 => "1 case gives".to_owned(),
                n => format!("{n} cases give"),
            }
        );
    }
    if found.passed() {
        out += "every expectation can fail\n";
    }
    out
}
