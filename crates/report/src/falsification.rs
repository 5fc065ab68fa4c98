//! What `fullpipe falsify` found, as a page of its own that needs no network: which wrong worlds
//! make each expectation fail, and what changes nothing.

use std::fmt::Write as _;
use std::path::Path;

use fullpipe_results::falsify::{ExpectationTeeth, Falsification, WorldEffect, WorldResult};
use fullpipe_results::store::{ResultDir, StoreError};

use crate::page::data::{Falsified, Teeth, World};

const JSON: &str = "falsification.json";

/// Writes `falsification.html` and `falsification.json` into `dir`; `advice` is what each scenario
/// is advised, in words.
///
/// # Errors
/// If they cannot be written.
pub fn write(dir: &Path, all: &[Falsification], advice: &Advice<'_>) -> Result<(), StoreError> {
    let json = match all {
        [one] => one.to_json(),
        several => {
            let texts: Vec<String> = several.iter().map(Falsification::to_json).collect();
            format!("[\n{}]\n", texts.join(",\n"))
        }
    };
    ResultDir::write_beside(dir, JSON, json.as_bytes())?;
    ResultDir::write_beside(dir, "falsification.html", page(all, advice).as_bytes())?;
    Ok(())
}

/// What was found of the scenario of a result, from a file in its directory or in the one above, as
/// [`write`] leaves them there; `None` if there is none, or if the scenario has changed since.
pub(crate) fn beside(dir: &Path, scenario: &str, sha256: &str) -> Option<Falsified> {
    let places = [Some(dir), dir.parent()];
    let found = places.into_iter().flatten().find_map(|place| {
        let text = std::fs::read(place.join(JSON)).ok()?;
        let all: Vec<Falsification> = match serde_json::from_slice(&text) {
            Ok(all) => all,
            Err(_) => vec![serde_json::from_slice(&text).ok()?],
        };
        let is_its = |f: &Falsification| {
            f.scenario == scenario && f.scenario_sha256 == sha256 && f.ground == "sim"
        };
        all.into_iter().find(is_its)
    });
    found.map(|found| drawn(&found))
}

/// Worlds by number.
fn drawn(found: &Falsification) -> Falsified {
    let numbers = |abouts: &[String]| -> Vec<usize> {
        let number = |about: &String| found.worlds.iter().position(|w| w.about == *about);
        abouts.iter().filter_map(number).collect()
    };
    let expectation = |e: &ExpectationTeeth| Teeth {
        name: e.name.clone(),
        line: e.line,
        caught: numbers(&e.caught),
        missed: numbers(&e.missed),
        toothless: e.toothless,
        weak: e.weak,
        excuse: e.excuse.clone(),
    };
    let world = |w: &WorldResult| World {
        about: w.about.clone(),
        line: w.line,
        set: w.set.clone(),
        effect: match w.effect {
            WorldEffect::Caught => "caught",
            WorldEffect::Missed => "missed",
            WorldEffect::Dead if w.inert.is_some() => "inert",
            WorldEffect::Dead => "dead",
            WorldEffect::Untried => "untried",
        },
        caught_by: w.caught_by.len(),
    };
    Falsified {
        first_failure: found.first_failure,
        expectations: found.expectations.iter().map(expectation).collect(),
        worlds: found.worlds.iter().map(world).collect(),
    }
}

/// What to do about what was found.
pub type Advice<'a> = dyn Fn(&Falsification) -> String + 'a;

/// The page.
pub fn page(all: &[Falsification], advice: &Advice<'_>) -> String {
    let names: Vec<&str> = all.iter().map(|f| f.scenario.as_str()).collect();
    let title = format!("Can they fail? {}", text(&names.join(", ")));
    let mut out = format!("{HEAD}<title>{title}</title>\n{STYLE}<h1>{title}</h1>\n{INTRODUCTION}");
    for found in all {
        out += &scenario(found);
        match advice(found).trim() {
            "" => {}
            // Lines of the terminal, with what is to be pasted.
            advice => out += &format!("<pre>{}</pre>\n", text(advice)),
        }
    }
    out + "</html>\n"
}

fn scenario(found: &Falsification) -> String {
    let toothless = found.toothless().count();
    let weak = found.weak().count();
    let quick = match found.first_failure {
        true => " Each expectation was followed to its first failure only.",
        false => "",
    };
    let mut out = format!(
        "<h2>{}</h2>\n<p>{}, {}, {toothless} toothless, {weak} that {} only where one thing is \
         wrong or nothing is measured.{quick}</p>\n",
        text(&found.scenario),
        counted(found.expectations.len(), "expectation"),
        counted(found.worlds.len(), "wrong world"),
        if weak == 1 { "fails" } else { "fail" },
    );
    out += "<div class=wide><table><tr><th>expectation</th><th>accepted</th><th>as it is</th>\
            <th>in worlds it misses</th><th>fails in</th></tr>\n";
    for e in &found.expectations {
        out += &expectation(e);
    }
    out += "</table></div>\n<div class=wide><table><tr><th>wrong world</th><th>what differs</th>\
            <th>noticed by</th></tr>\n";
    for world in &found.worlds {
        out += &self::world(world);
    }
    out += "</table></div>\n";
    let same = &found.same_for_all_seeds;
    if !same.is_empty() {
        let cases: Vec<String> = same.iter().map(|case| text(&case.to_string())).collect();
        let named = match cases.iter().all(String::is_empty) {
            true => String::new(),
            false => format!(": {}", cases.join("; ")),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<p>The seed changes nothing in {} of the cases{named}. More seeds make nothing surer \
             there.</p>",
            same.len()
        );
    }
    out
}

/// `1 expectation`, `2 expectations`.
fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

fn expectation(e: &ExpectationTeeth) -> String {
    let fails = match (&e.excuse, e.toothless) {
        (Some(why), true) => format!("<b>none</b>, by intent: {}", text(why)),
        (None, true) => format!("<b class=bad>none of {}: toothless</b>", e.tried),
        (_, false) if e.caught.is_empty() => "it fails as it is".to_owned(),
        (_, false) => {
            let worlds: Vec<String> = e.caught.iter().map(|w| text(w)).collect();
            let only = match () {
                () if e.seed_decides => "<b>holds with these seeds only</b>; fails in: ",
                () if e.fails_only_undefined => "<b>only where it is undefined</b>: ",
                () if e.weak => "<b>only</b> in: ",
                () => "",
            };
            only.to_owned() + &worlds.join("<br>")
        }
    };
    format!(
        "<tr><td>{} <small>line {}, {}</small></td><td>{}</td><td>{}</td><td>{}</td><td>{fails}</td>\
         </tr>\n",
        text(&e.name),
        e.line,
        text(&e.metric),
        range(Some(e.bound)),
        range(e.here),
        range(e.elsewhere),
    )
}

fn world(world: &WorldResult) -> String {
    let noticed = match (world.effect, world.line) {
        (WorldEffect::Dead, _) if world.inert.is_some() => {
            let why = world.inert.as_deref().unwrap_or_default();
            format!("inert: {}", text(why))
        }
        (WorldEffect::Caught | WorldEffect::Missed, Some(_)) if world.inert.is_some() => {
            "<b class=bad>not inert: numbers change</b>".to_owned()
        }
        (WorldEffect::Caught, _) => {
            let all: Vec<String> = world.caught_by.iter().map(|e| text(e)).collect();
            all.join("<br>")
        }
        (WorldEffect::Missed, Some(_)) => "<b class=bad>nothing</b>".to_owned(),
        (WorldEffect::Missed, None) => "nothing".to_owned(),
        (WorldEffect::Dead, Some(_)) => "<b class=bad>dead: no number changes</b>".to_owned(),
        (WorldEffect::Dead, None) => "dead: no number changes".to_owned(),
        (WorldEffect::Untried, _) => "not judged".to_owned(),
    };
    let of_file = match world.line {
        Some(line) => format!(" <small>[[negative]], line {line}</small>"),
        None => String::new(),
    };
    let mut keys: Vec<String> = world.set.iter().take(KEYS).map(|key| text(key)).collect();
    if world.set.len() > KEYS {
        keys.push(format!("and {} more", world.set.len() - KEYS));
    }
    format!(
        "<tr><td>{}{of_file}</td><td><code>{}</code></td><td>{noticed}</td></tr>\n",
        text(&world.about),
        keys.join("<br>")
    )
}

/// `0.95 to 1.05`, `at least 0.8`, one number, or nothing.
fn range(range: Option<[f64; 2]>) -> String {
    let number = |x: f64| {
        let digits = (3 - x.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
        let text = format!("{x:.*}", digits as usize);
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    };
    match range {
        None => String::new(),
        Some([low, high]) if low == high => number(low),
        Some([low, high]) => match (low.is_finite(), high.is_finite()) {
            (true, true) => format!("{} to {}", number(low), number(high)),
            (true, false) => format!("at least {}", number(low)),
            (false, true) => format!("at most {}", number(high)),
            (false, false) => "no difference beyond chance".to_owned(),
        },
    }
}

/// Text inside an element.
pub(crate) fn text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The same of prose, in which what stands between backticks is code.
pub(crate) fn prose(words: &str) -> String {
    let parts = words.split('`').map(text).enumerate();
    let part = |(i, part): (usize, String)| match i % 2 {
        0 => part,
        _ => format!("<code>{part}</code>"),
    };
    parts.map(part).collect()
}

/// Keys of a world that are shown.
const KEYS: usize = 4;

pub(crate) const HEAD: &str = "<!doctype html>\n<html lang=en><meta charset=utf-8>\n";
pub(crate) const STYLE: &str = "<style>body{font:15px/1.45 system-ui,sans-serif;max-width:72em;margin:2em \
                     auto;padding:0 1em;color:#1a1a1a}table{border-collapse:collapse;margin:1em \
                     0;width:100%}td,th{border-top:1px solid #ccc;padding:.35em .6em;text-align:left;\
                     vertical-align:top}small{color:#555;display:block}code{font-size:12px}\
                     pre{white-space:pre-wrap}.bad\
                     {color:#b00020}.wide{overflow-x:auto}.wide td:nth-child(-n+3)\
                     {overflow-wrap:anywhere;min-width:6em}figure{margin:1em 0}\
                     svg{max-width:100%;height:auto}</style>\n";
const INTRODUCTION: &str = "<p>A wrong world is the scenario with something taken away or replaced: \
                            the stack, the losses, a traffic, a queue's limit. An expectation that \
                            holds in all of them is <b>toothless</b>: it would hold whatever the \
                            subject does, and shows nothing. A world that changes no number is \
                            <b>dead</b>: what it takes away has no part in the result.</p>\n";

#[cfg(test)]
mod tests {
    use fullpipe_results::result::Params;

    use super::*;

    fn teeth(name: &str, caught: &[&str]) -> ExpectationTeeth {
        ExpectationTeeth {
            name: name.to_owned(),
            line: 12,
            metric: "goodput_mbps".to_owned(),
            ratio: false,
            difference: false,
            bound: [0.8, f64::INFINITY],
            here: Some([47.81, 47.81]),
            elsewhere: Some([2.855, 47.81]),
            nearest: None,
            let_off: Vec::new(),
            tighter: None,
            passes: true,
            unclear: false,
            seed_decides: false,
            other_seeds: None,
            caught: caught.iter().map(|w| (*w).to_owned()).collect(),
            missed: Vec::new(),
            tried: 8,
            toothless: caught.is_empty(),
            weak: caught.len() == 1,
            fails_only_undefined: false,
            excuse: None,
        }
    }

    /// The report shows what was found of this very file, and nothing else.
    #[test]
    fn a_result_finds_what_was_found_of_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let world = WorldResult {
            about: "no loss".to_owned(),
            line: None,
            set: Vec::new(),
            inert: None,
            effect: WorldEffect::Caught,
            caught_by: vec!["full".to_owned()],
            left_out: Vec::new(),
        };
        let found = Falsification {
            scenario: "one".to_owned(),
            scenario_sha256: "abc".to_owned(),
            ground: "sim".to_owned(),
            expectations: vec![teeth("it works", &[]), teeth("full", &["no loss"])],
            worlds: vec![world],
            ..Falsification::default()
        };
        let here = dir.path();
        assert!(beside(here, "one", "abc").is_none());
        let other = Falsification::default();
        for all in [vec![found.clone()], vec![other, found]] {
            write(here, &all, &|_| String::new()).unwrap();
            for place in [here, &here.join("one")] {
                let drawn = beside(place, "one", "abc").unwrap();
                assert_eq!(drawn.expectations[1].caught, [0]);
                assert!(drawn.expectations[0].toothless && drawn.expectations[1].weak);
                assert_eq!(
                    (drawn.worlds[0].effect, drawn.worlds[0].caught_by),
                    ("caught", 1)
                );
            }
            assert!(beside(here, "one", "abd").is_none(), "the file has changed");
        }
    }

    #[test]
    fn the_page_names_teeth_dead_knobs_and_repeated_seeds() {
        let world = |about: &str, effect| WorldResult {
            about: about.to_owned(),
            line: Some(20),
            set: vec!["path.loss=0".to_owned(); 6],
            inert: None,
            effect,
            caught_by: Vec::new(),
            left_out: Vec::new(),
        };
        let found = Falsification {
            scenario: "a <b>".to_owned(),
            expectations: vec![teeth("it works", &[]), teeth("full", &["no loss"])],
            worlds: vec![
                world("no loss", WorldEffect::Dead),
                world("no wave", WorldEffect::Missed),
            ],
            same_for_all_seeds: vec![Params::default()],
            ..Falsification::default()
        };
        let page = page(std::slice::from_ref(&found), &|_| {
            "at_least < 2\n".to_owned()
        });
        for part in [
            "a &lt;b&gt;",
            "none of 8: toothless",
            "<td><b>only</b> in: no loss</td></tr>",
            "at least 0.8",
            "2.855 to 47.81",
            "dead: no number changes",
            "<b class=bad>nothing</b>",
            "and 2 more",
            "<p>2 expectations, 2 wrong worlds, 1 toothless, 1 that fails only",
            "<pre>at_least &lt; 2</pre>",
            "The seed changes nothing in 1 of the cases.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("http"), "{page}");
    }
}
