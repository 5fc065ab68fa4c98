//! What `fullpipe falsify` prints for people.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fullpipe_results::falsify::{
    ExpectationTeeth, Falsification, LeftOut, NOT_THE_OTHER, Tighter, WorldEffect, WorldResult,
};

use super::expectations::bound_text;
use crate::commands::check::counted;
use crate::table::{Align, Table, number};

/// Two tables, expectations and worlds, and what to do about them.
pub fn falsification(found: &Falsification) -> String {
    let (expectations, worlds) = (found.expectations.len(), found.worlds.len());
    let mut out = format!(
        "{}: {} against {}\n\n",
        found.scenario,
        counted(expectations, "expectation"),
        counted(worlds, "wrong world")
    );
    out += &expectations_table(found);
    out.push('\n');
    out += &worlds_table(found);
    out.push('\n');
    out += &advice(found);
    out
}

fn expectations_table(found: &Falsification) -> String {
    let mut table = Table::new();
    for (align, head) in [
        (Align::Left, "expectation"),
        (Align::Left, "line"),
        (Align::Right, "fails in"),
        (Align::Left, ""),
    ] {
        table.column(align, &[head]);
    }
    for e in &found.expectations {
        let fails = match (found.first_failure, e.caught.len()) {
            (true, 1..) => "a world".to_owned(),
            (_, 0) => format!("none of {}", e.tried),
            (false, n) => format!("{n} of {}", e.tried),
        };
        let line = e.line.to_string();
        table.row(vec![e.name.clone(), line, fails, remark(e)]);
    }
    table.text()
}

fn remark(e: &ExpectationTeeth) -> String {
    match (&e.excuse, e.toothless, e.passes) {
        (Some(why), true, _) => format!("toothless by intent: {why}"),
        (Some(_), false, _) => "it can fail: `toothless` is untrue and can go".to_owned(),
        (None, true, _) => "TOOTHLESS".to_owned(),
        (None, false, true) if e.seed_decides => "holds with these seeds only".to_owned(),
        (None, false, true) if e.fails_only_undefined => {
            "fails only where it is undefined".to_owned()
        }
        (None, false, true) if e.weak => format!("fails only in: {}", e.caught.join("; ")),
        (None, false, true) => e.caught.first().cloned().unwrap_or_default(),
        (None, false, false) => "fails as it is".to_owned(),
    }
}

fn worlds_table(found: &Falsification) -> String {
    let mut table = Table::new();
    for head in ["wrong world", "noticed by", "what differs"] {
        table.column(Align::Left, &[head]);
    }
    for world in &found.worlds {
        let noticed = match (world.effect, world.line) {
            (WorldEffect::Dead, _) if world.inert.is_some() => "inert, as the file says".to_owned(),
            (effect, Some(line)) if world.inert.is_some() && effect != WorldEffect::Untried => {
                format!("NOT INERT ([[negative]], line {line})")
            }
            (WorldEffect::Caught, _) => counted(world.caught_by.len(), "expectation"),
            (WorldEffect::Missed, Some(line)) => format!("NONE ([[negative]], line {line})"),
            (WorldEffect::Missed, None) => "none".to_owned(),
            (WorldEffect::Untried, None) => "not judged".to_owned(),
            (WorldEffect::Untried, Some(line)) => {
                format!("not judged ([[negative]], line {line})")
            }
            (WorldEffect::Dead, Some(line)) => {
                format!("NONE: changes no number ([[negative]], line {line})")
            }
            (WorldEffect::Dead, None) if is_off(world) => {
                "none: changes no other number (dead)".to_owned()
            }
            (WorldEffect::Dead, None) => "none: changes no number (dead)".to_owned(),
        };
        let mut differs = world.set.first().cloned().unwrap_or_default();
        if world.set.len() > 1 {
            // Writing to a string cannot fail.
            let _ = write!(differs, " and {} more", world.set.len() - 1);
        }
        table.row(vec![world.about.clone(), noticed, differs]);
    }
    let mut out = table.text();
    let untried = found.worlds.iter();
    let untried = untried.filter(|world| world.effect == WorldEffect::Untried);
    let untried = untried.count();
    if untried > 0 && found.first_failure {
        out += &format!(
            "\n{} not judged: with --quick an expectation is followed to its first failure \
             (--every-world)\n",
            match untried {
                1 => "1 world was".to_owned(),
                n => format!("{n} worlds were"),
            }
        );
    }
    out
}

pub fn advice(found: &Falsification) -> String {
    let mut out = String::new();
    for e in found.toothless() {
        out += &what_to_do(found, e);
    }
    for world in found.uncaught() {
        if let Some(why) = &world.inert {
            out += &format!(
                "The world \"{}\" of line {} is said to be inert ({why}), but {}.\n",
                world.about,
                world.line.unwrap_or_default(),
                match world.effect {
                    WorldEffect::Untried =>
                        "it changes no case: its keys have these values already",
                    _ => "numbers change in it: take `inert` away, and expect one of them",
                }
            );
            continue;
        }
        out += &format!(
            "No expectation notices the world \"{}\" of line {}: {}.\n",
            world.about,
            world.line.unwrap_or_default(),
            match world.effect {
                WorldEffect::Dead => "no number changes in it, so its keys do nothing here",
                WorldEffect::Untried =>
                    "no number changes in the cases that were run, so expect something of the others",
                _ => "numbers change in it, so tighten a bound or expect one of them",
            }
        );
    }
    for world in &found.worlds {
        out += &left_out(&world.about, world.line, &world.left_out);
    }
    out += &weak(found);
    out += &unclear(found);
    out += &seeds_decide(found);
    out += &unnoticed(found);
    out += &dead_knobs(found);
    out += &repeated_seeds(found);
    if !found.left_out.is_empty() {
        let lines: Vec<String> = found.left_out.iter().map(usize::to_string).collect();
        out += &format!(
            "{} not looked at, since --quick or --set leaves {} out (line {})\n",
            match lines.len() {
                1 => "1 expectation was".to_owned(),
                n => format!("{n} expectations were"),
            },
            if lines.len() == 1 { "it" } else { "them" },
            lines.join(", ")
        );
    }
    let failing = found.expectations.iter().filter(|e| !e.passes).count();
    if failing > 0 {
        out += &format!(
            "{}: `fullpipe run` says in which cases and by how much\n",
            match failing {
                1 => "1 expectation fails as it is".to_owned(),
                n => format!("{n} expectations fail as they are"),
            }
        );
    }
    if found.passed() && failing < found.expectations.len() {
        let excused = found.expectations.iter();
        let excused = excused
            .filter(|e| e.toothless && e.excuse.is_some())
            .count();
        if excused > 0 {
            out += &format!("{} toothless by intent\n", counted(excused, "expectation"));
        }
        if failing + excused >= found.expectations.len() {
            return out;
        }
        let every = match failing + excused {
            0 => "every expectation can fail",
            _ => "every other expectation can fail",
        };
        out += &match found.weak().count() {
            0 => format!("{every}\n"),
            n if found.weak().any(|e| e.fails_only_undefined) => {
                format!("{every}, {n} only where one thing is wrong or nothing is measured\n")
            }
            n => format!("{every}, {n} only where one thing is wrong\n"),
        };
    }
    out
}

/// Expectations that are invalid in a world, and why; nothing if there is none.
pub fn left_out(about: &str, line: Option<usize>, left_out: &[LeftOut]) -> String {
    let of_file = line.map_or_else(String::new, |line| format!(" of line {line}"));
    let of = |out: &LeftOut| {
        format!(
            "`{}` (line {}) is not held against the world \"{about}\"{of_file}, in which it is \
             invalid: {}\n",
            out.name, out.line, out.why
        )
    };
    left_out.iter().map(of).collect()
}

/// The counts of several scenarios together.
pub fn falsifications(all: &[Falsification]) -> String {
    let of = |count: &dyn Fn(&Falsification) -> usize| -> usize { all.iter().map(count).sum() };
    let expecting = |which: &dyn Fn(&ExpectationTeeth) -> bool| {
        of(&|f| f.expectations.iter().filter(|e| which(e)).count())
    };
    let inert = |w: &&WorldResult| w.effect == WorldEffect::Dead && w.inert.is_some();
    let mut out = format!(
        "{} scenarios: {} against {}, {} of them named by the files\n",
        all.len(),
        counted(of(&|f| f.expectations.len()), "expectation"),
        counted(of(&|f| f.worlds.len()), "wrong world"),
        of(&|f| f.worlds.iter().filter(|w| w.line.is_some()).count()),
    );
    for (what, count) in [
        ("toothless", of(&|f| f.toothless().count())),
        (
            "toothless by intent",
            expecting(&|e| e.toothless && e.excuse.is_some()),
        ),
        ("left out by --quick or --set", of(&|f| f.left_out.len())),
        ("fail as they are", expecting(&|e| !e.passes)),
        (
            "fail only in worlds of one kind, or without a value",
            of(&|f| f.weak().count()),
        ),
        ("hold with these seeds only", expecting(&|e| e.seed_decides)),
        ("unclear as they are", expecting(&|e| e.unclear)),
    ] {
        out += &format!("  {count:>4} {what}\n");
    }
    for (what, count) in [
        (
            "of a file that nothing notices",
            of(&|f| f.uncaught().count()),
        ),
        (
            "in which no number changes, unexplained",
            of(&|f| f.dead().count()),
        ),
        (
            "in which no number changes, as the file says",
            of(&|f| f.worlds.iter().filter(inert).count()),
        ),
    ] {
        out += &format!(
            "  {count:>4} {} {what}\n",
            if count == 1 { "world" } else { "worlds" }
        );
    }
    let cases = of(&|f| f.same_for_all_seeds.len());
    out + &format!(
        "  {cases:>4} {} whose seeds all give the same numbers\n",
        match cases {
            1 => "case",
            _ => "cases",
        }
    )
}

/// Expectations that other seeds decide otherwise.
fn seeds_decide(found: &Falsification) -> String {
    let mut out = String::new();
    for e in found.expectations.iter().filter(|e| e.seed_decides) {
        out += &format!(
            "`{}` (line {}) holds with these seeds only: with others {}{} is {}; accepted is {}.\n  \
             That it fails in a wrong world may be chance. Widen the bound, or run more seeds \
             (--repeat).\n\n",
            e.name,
            e.line,
            of_what(e),
            e.metric,
            e.other_seeds.map_or("undefined".to_owned(), span),
            bound_text(e.bound)
        );
    }
    out
}

/// Flows whose stack no expectation depends on, where one depends on something.
fn unnoticed(found: &Falsification) -> String {
    let mut out = String::new();
    if found.expectations.iter().all(|e| e.caught.is_empty()) {
        return out;
    }
    for (table, worlds) in found.unnoticed() {
        let name = table.split_once('.').map_or(table, |(_, name)| name);
        out += &format!(
            "No expectation notices another stack of `{name}`: with {} numbers change, and \
             everything passes.\n  If it is what the scenario is about, expect something of it \
             (flow = {name:?}).\n\n",
            match worlds {
                1 => "another one".to_owned(),
                n => format!("{n} others"),
            }
        );
    }
    out
}

/// Expectations that next to nothing fails, and how to make them say more.
fn weak(found: &Falsification) -> String {
    let mut out = String::new();
    let all = || found.weak().filter(|e| e.excuse.is_none());
    for e in all().filter(|e| !e.fails_only_undefined) {
        out += &format!(
            "`{}` (line {}) fails only in: {}. {}; accepted is {}.\n",
            e.name,
            e.line,
            e.caught.join("; "),
            values(e),
            bound_text(e.bound)
        );
    }
    if !out.is_empty() {
        out += "  That is little: whatever else is wrong, it passes. Tighten the bound, or write the \
                world that it is\n  meant to tell from yours as a [[negative]].\n\n";
    }
    for e in all().filter(|e| e.fails_only_undefined) {
        out += &format!(
            "`{}` (line {}) fails only where {} is undefined, with no value that was seen: {}; \
             accepted is {}.\n  Tighten the bound, or write a world with a value that it is meant \
             to refuse as a [[negative]].\n\n",
            e.name,
            e.line,
            e.metric,
            values(e),
            bound_text(e.bound)
        );
    }
    out
}

/// Expectations that pass by the width of their intervals, in wrong worlds as well.
fn unclear(found: &Falsification) -> String {
    let mut out = String::new();
    for e in found
        .expectations
        .iter()
        .filter(|e| e.unclear && !e.toothless)
    {
        out += &format!("`{}` (line {}) is unclear as it is: ", e.name, e.line);
        out += "its 95 % interval reaches across an end of what is\n  accepted, and so do those of \
                wrong worlds that pass. More seeds (--repeat) make it narrower.\n\n";
    }
    out
}

/// What the values are in place of the metric.
fn of_what(e: &ExpectationTeeth) -> &'static str {
    match (e.ratio, e.difference) {
        (true, _) => "the ratio of ",
        (_, true) => "the difference of ",
        _ => "",
    }
}

/// One number, or the first and the last.
fn span([low, high]: [f64; 2]) -> String {
    match low == high {
        true => number(low, 4),
        false => format!("{} to {}", number(low, 4), number(high, 4)),
    }
}

/// The values of an expectation, as it is and where it does not notice.
fn values(e: &ExpectationTeeth) -> String {
    let here = e.here.map_or("undefined".to_owned(), span);
    let elsewhere = match (e.elsewhere, e.missed.len()) {
        _ if e.tried == 0 => "no wrong world changes its cases".to_owned(),
        (Some(values), 1..) if e.toothless => {
            format!("in the wrong worlds it is {}", span(values))
        }
        (Some(values), 1..) => format!("in the other wrong worlds {}", span(values)),
        _ if e.toothless => "no wrong world moves it".to_owned(),
        _ => "no other wrong world moves it".to_owned(),
    };
    let of = of_what(e);
    let nearest = e.nearest.as_ref().map_or_else(String::new, |n| {
        let [low, high] = e.here.unwrap_or([n.value; 2]);
        let can_fail =
            (n.value < low && e.bound[0].is_finite()) || (n.value > high && e.bound[1].is_finite());
        format!(
            ", {} {} in \"{}\"",
            if can_fail {
                "nearest to failing with"
            } else {
                "farthest from that with"
            },
            number(n.value, 4),
            n.world
        )
    });
    format!("{of}{} is {here} as it is, {elsewhere}{nearest}", e.metric)
}

/// Where a toothless expectation stands, what was seen, and the ways out.
fn what_to_do(found: &Falsification, e: &ExpectationTeeth) -> String {
    let mut out = format!(
        "`{}` (line {}) cannot fail: {}; accepted is {}.\n",
        e.name,
        e.line,
        values(e),
        bound_text(e.bound)
    );
    if !e.passes {
        out += "  In some of its cases it fails as it is (`fullpipe run` says in which): mend that first. \
                What fails\n  already tells no wrong world from yours.\n";
    } else if e.difference && e.unclear {
        return out
            + "  One seed has no interval, so that no difference is too large: run more of them \
               (for example --repeat 12).\n\n";
    } else if let Some(first) = e.let_off.first() {
        // A tighter bound would only be let off again.
        let these = match e.let_off.len() {
            1 => format!("\"{first}\""),
            n => format!("{n} of these worlds, such as \"{first}\","),
        };
        return out
            + &format!(
                "  In {these} the value lies outside and passes, since its 95 % interval reaches in:\n  \
             - more seeds (for example --repeat 12) make it narrower, or\n  \
             - holds_for = \"mean\" asks for the mean alone\n\n"
            );
    }
    let negative = |(about, set): (String, String)| {
        format!(
            "\n\n        [[negative]]\n        about = {about:?}\n        set = {{ {set} }}\n\n    \
             or\n"
        )
    };
    let invented = || {
        let about = "what this is about is switched off".to_owned();
        (
            about,
            "\"a.key.of.this.scenario\" = \"another value\"".to_owned(),
        )
    };
    out += &match (&e.tighter, e.missed.is_empty()) {
        (Some(tighter), _) => {
            let world = suggestion(found, e, tighter);
            let [from, to] = match &world {
                Some((about, _)) => tighter.leaving_out(about),
                None => tighter.between,
            };
            let bound = format!(
                "  - Choose a bound that leaves out values of the wrong worlds, `{}` between {} and {}",
                tighter.end,
                number(from, 4),
                number(to, 4)
            );
            bound
                + &match world {
                    Some(world) => format!(
                        ", and\n    keep a world in which it fails then:{}",
                        negative(world)
                    ),
                    None => format!(
                        ", or\n  - name a world in which it must fail, such as:{}",
                        negative(invented())
                    ),
                }
        }
        (None, moved) => format!(
            "  - {}, or\n  - name a world in which it must fail, such as:{}",
            match moved {
                true => "Expect a metric that follows from what you want to show",
                false => "Expect a metric that the wrong worlds move further than chance",
            },
            negative(invented())
        ),
    };
    out + "  - if it is right as it is, write why into its [[expect]]: toothless = \"...\"\n\n"
}

/// A world that fails with a tighter bound, by a key that the scenario has: that in which it is
/// nearest to failing, or what is taken away rather than a stack replaced, unless stacks are
/// compared. Its name, and its key with the value.
fn suggestion(
    found: &Falsification,
    e: &ExpectationTeeth,
    tighter: &Tighter,
) -> Option<(String, String)> {
    // A [[negative]] is wrong in every case, and in all of them alike.
    let alike = |w: &WorldResult| {
        let keys: BTreeSet<_> = w
            .set
            .iter()
            .map(|set| set.split_once('=').map(|s| s.0))
            .collect();
        keys.len() == w.set.len() && !w.about.ends_with(NOT_THE_OTHER)
    };
    let fails =
        |w: &&WorldResult| tighter.worlds.contains(&w.about) && w.line.is_none() && alike(w);
    let all: Vec<&WorldResult> = found.worlds.iter().filter(fails).collect();
    let nearest = |w: &&&WorldResult| {
        w.set.len() == 1 && e.nearest.as_ref().is_some_and(|n| n.world == w.about)
    };
    let plain = |w: &&&WorldResult| w.set.len() == 1 && w.set[0].contains(".stack=") == e.ratio;
    let best = all.iter().find(nearest).or_else(|| all.iter().find(plain));
    let best = best.or(all.first())?;
    let pairs = best.set.iter().map(|set| set.split_once('='));
    let pairs: Option<Vec<_>> = pairs
        .map(|pair| pair.map(|(key, value)| format!("{key:?} = {value}")))
        .collect();
    Some((best.about.clone(), pairs?.join(", ")))
}

/// Generated worlds that change no number: what they take away has no part in the result.
fn dead_knobs(found: &Falsification) -> String {
    let mut out = String::new();
    let dead: Vec<&WorldResult> = found.dead().filter(|w| w.line.is_none()).collect();
    for world in &dead {
        out += &format!(
            "dead: \"{}\" changes no number {}: what it takes away has no part in the result\n",
            world.about,
            match is_off(world) {
                true => "of any other flow or traffic",
                false => "of any case",
            }
        );
    }
    let simple = dead.iter().find(|w| w.set.len() == 1);
    if let Some((key, value)) = simple.and_then(|w| w.set[0].split_once('=')) {
        out += &format!(
            "  If it should have one, the file sets something else than it means to. If not, say \
             so, and falsify holds you to it:\n\n        [[negative]]\n        about = {:?}\n        \
             set = {{ {key:?} = {value} }}\n        inert = \"why it plays no part\"\n\n",
            simple.map_or("", |w| w.about.as_str())
        );
    }
    out
}

/// True if a flow or a traffic is not there, and nothing else differs.
fn is_off(world: &WorldResult) -> bool {
    let mut keys = world.set.iter();
    keys.all(|key| key.ends_with(".enabled=false"))
}

fn repeated_seeds(found: &Falsification) -> String {
    let same = &found.same_for_all_seeds;
    let Some(first) = same.first() else {
        return String::new();
    };
    let first = match first.is_empty() {
        true => String::new(),
        false => format!(", for example {first}"),
    };
    format!(
        "{} the same numbers with every seed{first}: more seeds make nothing surer\n",
        match same.len() {
            1 => "1 case gives".to_owned(),
            n => format!("{n} cases give"),
        }
    )
}

#[cfg(test)]
mod tests {
    use fullpipe_results::falsify::Nearest;

    use super::*;

    /// A ratio is called one, and who reads values outside of the bound is told why they pass.
    #[test]
    fn what_an_interval_lets_pass_is_explained() {
        let e = ExpectationTeeth {
            name: "better".to_owned(),
            line: 7,
            metric: "goodput_mbps".to_owned(),
            ratio: true,
            difference: false,
            bound: [1.0, f64::INFINITY],
            here: Some([1.08, 1.08]),
            elsewhere: Some([0.96, 1.14]),
            nearest: None,
            let_off: vec!["main: standard TCP in its place".to_owned()],
            tighter: None,
            passes: true,
            unclear: false,
            seed_decides: false,
            other_seeds: None,
            caught: Vec::new(),
            missed: vec!["main: standard TCP in its place".to_owned()],
            tried: 2,
            toothless: true,
            weak: false,
            fails_only_undefined: false,
            excuse: None,
        };
        let found = |e: &ExpectationTeeth| Falsification {
            expectations: vec![e.clone()],
            worlds: ["path.loss=0", "flow.main.stack=\"reno\""]
                .iter()
                .map(|set| WorldResult {
                    about: e.missed[0].clone(),
                    line: None,
                    set: vec![(*set).to_owned()],
                    inert: None,
                    effect: WorldEffect::Missed,
                    caught_by: Vec::new(),
                    left_out: Vec::new(),
                })
                .collect(),
            ..Falsification::default()
        };
        let text = advice(&found(&e));
        assert!(text.contains("the ratio of goodput_mbps is 1.08"), "{text}");
        assert!(text.contains("its 95 % interval reaches in"), "{text}");
        assert!(
            text.contains("--repeat 12") && text.contains("holds_for = \"mean\""),
            "{text}"
        );
        // Neither a bound that would be let off again, nor a world that passes.
        assert!(
            !text.contains("[[negative]]") && !text.contains("at_least"),
            "{text}"
        );
        let passing = ExpectationTeeth {
            toothless: false,
            unclear: true,
            nearest: Some(Nearest {
                world: "other".to_owned(),
                value: 0.96,
            }),
            ..e.clone()
        };
        let text = advice(&found(&passing));
        assert!(text.contains("`better` (line 7) is unclear"), "{text}");
        let weak = ExpectationTeeth {
            weak: true,
            ..passing
        };
        let text = advice(&found(&weak));
        assert!(
            text.contains("nearest to failing with 0.9600 in \"other\""),
            "{text}"
        );
        let inside = ExpectationTeeth {
            elsewhere: Some([1.01, 1.14]),
            let_off: Vec::new(),
            ..e
        };
        let text = advice(&found(&inside));
        assert!(
            !text.contains("interval") && text.contains("a.key.of.this"),
            "{text}"
        );
        let tighter = |ratio| ExpectationTeeth {
            ratio,
            tighter: Some(Tighter {
                end: "at_least".to_owned(),
                between: [0.64, 1.08],
                worlds: [vec!["one side".to_owned()], inside.missed.clone()].concat(),
                ends: vec![0.64, 1.02],
            }),
            ..inside.clone()
        };
        let text = advice(&found(&tighter(true)));
        assert!(
            text.contains("`at_least` between 1.020 and 1.080"),
            "{text}"
        );
        assert!(text.contains("\"flow.main.stack\" = \"reno\""), "{text}");
        let text = advice(&found(&tighter(false)));
        assert!(text.contains("\"path.loss\" = 0"), "{text}");
        let failing = ExpectationTeeth {
            here: Some([0.9, 1.08]),
            elsewhere: Some([0.96, 1.14]),
            passes: false,
            let_off: inside.missed.clone(),
            ..inside
        };
        let text = advice(&found(&failing));
        assert!(text.contains("fails as it is"), "{text}");
        assert!(!text.contains("interval"), "{text}");
    }
}
