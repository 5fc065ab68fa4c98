//! What `fullpipe agree` found, as a page that needs no network: each ground against the first,
//! what is beyond its threshold, the causes that were tried, and the windows over each other.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_results::agreement::study::{Agreement, CauseVerdict, Furthest, PairAgreement, Tried};
use fullpipe_results::compare::{Comparison, Method, Row, Side, Verdict, View};
use fullpipe_results::result::{Params, printed};
use fullpipe_results::store::{ResultDir, StoreError};

use crate::falsification::{HEAD, STYLE, prose, text};
use crate::figure::sides;

/// Name of the page.
pub const PAGE: &str = "agreement.html";
const JSON: &str = "agreement.json";

/// Directory, in that of the study, with the windows of a ground over those of the first.
pub fn pictures(ground: &str) -> PathBuf {
    PathBuf::from(format!("overlay-{ground}"))
}

/// All of it as one object.
pub fn json(found: &Agreement) -> String {
    printed::pretty(found)
}

/// Writes `agreement.html` and `agreement.json` into `dir`, with the pictures that lie there, and
/// returns the page's path.
///
/// # Errors
/// If they cannot be written.
pub fn write(dir: &Path, found: &Agreement) -> Result<PathBuf, StoreError> {
    ResultDir::write_beside(dir, JSON, json(found).as_bytes())?;
    ResultDir::write_beside(dir, PAGE, page(dir, found).as_bytes())?;
    Ok(dir.join(PAGE))
}

/// A comparison as its page shows it.
#[derive(Clone, Debug)]
pub struct Compared<'a> {
    /// Numbers of both sides, and which of them differ.
    pub comparison: &'a Comparison,
    /// A line for each setting in which the two differ.
    pub settings: &'a str,
    /// Directories of the two.
    pub dirs: [&'a Path; 2],
    /// Directory that has its pictures.
    pub pictures: PathBuf,
}

/// Writes `compare.html` into `dir`: comparisons with their settings and pictures.
///
/// # Errors
/// If it cannot be written.
pub fn write_compared(dir: &Path, all: &[Compared<'_>]) -> Result<PathBuf, StoreError> {
    let name = all.first().map_or("", |c| &c.comparison.a.scenario);
    let title = format!("Two results of {}", text(name));
    let mut out = format!("{HEAD}<title>{title}</title>\n{STYLE}<h1>{title}</h1>\n");
    for Compared {
        comparison,
        settings,
        dirs,
        pictures,
    } in all
    {
        let verdict = match comparison.agree {
            _ if comparison.is_empty() => "<b class=bad>nothing could be compared</b>",
            true => "they agree",
            false => "<b class=bad>they differ</b>",
        };
        let [a, b] = dirs.map(|dir| text(&dir.display().to_string()));
        let _ = writeln!(out, "<h2>{a} and {b}: {verdict}</h2>");
        let of = |(name, dir, side, first): (&str, &str, &Side, bool)| {
            let ground = text(&self::side(comparison, first));
            format!(
                "{}: {dir}, {} on {ground}",
                text(name),
                text(&side.scenario)
            )
        };
        let names = names(comparison);
        let sides = [
            of((&names[0], &a, &comparison.a, true)),
            of((&names[1], &b, &comparison.b, false)),
        ];
        let _ = writeln!(out, "<p>{}</p>", sides.join("<br>"));
        if !settings.is_empty() {
            let lines: Vec<String> = settings.lines().map(text).collect();
            let _ = writeln!(out, "<p>{}</p>", lines.join("<br>"));
        }
        out += &left_out(&comparison.left_out);
        let judged = method(comparison);
        let lines = judged
            .lines()
            .map(|line| format!("<p>{}</p>\n", prose(line)));
        out.extend(lines);
        out += &tables(comparison, &|row| {
            row.judged && !matches!(row.verdict, Verdict::Same | Verdict::Indistinguishable)
        });
        out += &figures(pictures, pictures);
    }
    out += "<p><small>Numbers that are not judged, the same or not distinguishable are left out.</small></p>\n";
    ResultDir::write_beside(dir, COMPARED, (out + "</html>\n").as_bytes())
}

/// Name of the page of a comparison.
const COMPARED: &str = "compare.html";

fn page(dir: &Path, found: &Agreement) -> String {
    let title = format!("Do they agree? {}", text(&found.scenario));
    let mut out = format!("{HEAD}<title>{title}</title>\n{STYLE}<h1>{title}</h1>\n{INTRODUCTION}");
    if let Some(stack) = &found.own_is {
        let _ = writeln!(
            out,
            "<p>{} in place of own-linux on every ground but linux.</p>",
            text(stack)
        );
    }
    for (pair, ground) in found.pairs.iter().zip(&found.grounds[1..]) {
        out += &self::pair(pair);
        let own = pictures(ground);
        out += &figures(&dir.join(&own), &own);
    }
    out + "</html>\n"
}

fn pair(pair: &PairAgreement) -> String {
    let c = &pair.comparison;
    let verdict = match c.agree {
        _ if pair.is_empty() => "<b class=bad>nothing could be compared</b>",
        true => "they agree",
        false => "<b class=bad>they part</b>",
    };
    let mut out = format!(
        "<h2>{} and {}: {verdict}</h2>\n",
        text(&side(c, true)),
        text(&side(c, false))
    );
    out += &left_out(&pair.left_out);
    out += &tables(c, &|row| row.judged);
    if !pair.causes.is_empty() {
        out += "<div class=wide><table><tr><th>cause, switched</th><th>on</th>\
                <th>beyond before</th><th>beyond then</th><th>furthest before</th>\
                <th>furthest then</th><th>verdict</th></tr>\n";
        pair.causes.iter().for_each(|tried| out += &cause(tried));
        out += "</table></div>\n<p><small>Beyond: numbers and distances over their thresholds. \
                Furthest: the largest, as a multiple of its threshold.</small></p>\n";
    }
    if !pair.conclusion.says.is_empty() {
        out += "<h3>What follows</h3>\n<ul class=follows>\n";
        for sentence in &pair.conclusion.says {
            let _ = writeln!(out, "<li>{}</li>", prose(sentence));
        }
        out += "</ul>\n";
    }
    out
}

/// The cases that do not count, if there are any.
fn left_out(cases: &[Params]) -> String {
    if cases.is_empty() {
        return String::new();
    }
    let cases: Vec<String> = cases.iter().map(|p| text(&p.to_string())).collect();
    format!(
        "<p class=bad>Left out, because a run was not what the scenario says: {}</p>\n",
        cases.join("; ")
    )
}

/// What each side was made on, the numbers that are shown, and the distances.
fn tables(c: &Comparison, shown: &dyn Fn(&Row) -> bool) -> String {
    let mut out = String::new();
    let [a, b] = names(c).map(|name| text(&name));
    for (side, what) in [(&c.a, &a), (&c.b, &b)] {
        if !side.brought.is_empty() {
            let _ = writeln!(
                out,
                "<p><small>laws of {what} that are fullpipe's own, loaded into the kernel: \
                 {}</small></p>",
                text(&side.brought.join(", "))
            );
        }
        if let Some(bed) = &side.test_bed {
            let _ = writeln!(
                out,
                "<p><small>test bed of {what}: {}</small></p>",
                text(bed)
            );
        }
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<div class=wide><table><tr><th>case</th><th>of</th><th>what</th><th>{a}</th><th>{b}</th>\
         <th>apart</th><th>accepted</th><th>verdict</th></tr>"
    );
    for row in c.rows.iter().filter(|r| shown(r)) {
        let apart = match (row.relative, row.difference) {
            (Some(part), _) => signed_percent(part),
            (None, Some(difference)) => format!("{difference:+.3}"),
            (None, None) => String::new(),
        };
        let interval = row.difference_ci95.map_or(String::new(), |ends| {
            format!("<small>difference {}</small>", interval(ends))
        });
        let metric = match row.unit {
            // An expression has no unit.
            "1" | "" => row.metric.clone(),
            unit => format!("{} ({unit})", row.metric),
        };
        let of = row.flow.as_deref().or(row.link.as_deref()).unwrap_or("");
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{apart}{interval}</td>\
             <td>{:.1} %</td><td>{}</td></tr>",
            text(&row.params.to_string()),
            text(of),
            text(&metric),
            row.a.mean.map_or("-".to_owned(), number),
            row.b.mean.map_or("-".to_owned(), number),
            100.0 * row.threshold,
            match c.view {
                View::Agreement => word(row.verdict).to_owned(),
                _ => in_bold(row.verdict, text(&verdict(row))),
            },
        );
    }
    for d in &c.distances {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td></td><td></td><td>{}</td><td>{}</td>\
             <td>{}</td></tr>",
            text(&d.params.to_string()),
            text(&d.flow),
            text(d.measure),
            match d.unit {
                "1" => format!("{} %", number(100.0 * d.mean)),
                unit => format!("{} {unit}", number(d.mean)),
            },
            match d.unit {
                "1" => percent(d.threshold),
                unit => format!("{} {unit}", d.threshold),
            },
            word(d.verdict),
        );
    }
    out += "</table></div>\n";
    out
}

fn cause(tried: &Tried) -> String {
    let verdict = match tried.verdict {
        CauseVerdict::Explains => "<b>explains it</b>".to_owned(),
        CauseVerdict::InPart => "in part".to_owned(),
        CauseVerdict::No => "no".to_owned(),
        CauseVerdict::Worse => "worse".to_owned(),
        CauseVerdict::Untried => prose(tried.why_not.as_deref().unwrap_or("untried")),
    };
    let times = |furthest: &Option<Furthest>| {
        let place = furthest.as_ref().map(Furthest::place);
        let place = place.map_or(String::new(), |p| format!(" <small>{}</small>", text(&p)));
        Furthest::text(furthest.as_ref()) + &place
    };
    format!(
        "<tr><td>{} <small>{}</small></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
         <td>{verdict}</td></tr>\n",
        text(&tried.cause),
        prose(&tried.about),
        text(&tried.ground),
        tried.before,
        tried.after.map_or("-".to_owned(), |n| n.to_string()),
        times(&tried.furthest_before),
        times(&tried.furthest_after),
    )
}

/// What the sides are called in the tables, as in the pictures.
fn names(c: &Comparison) -> [String; 2] {
    sides([&c.a.ground, &c.b.ground])
}

fn side(c: &Comparison, first: bool) -> String {
    let side = if first { &c.a } else { &c.b };
    match &side.kernel {
        Some(kernel) => format!("{} ({kernel})", side.ground),
        None => side.ground.clone(),
    }
}

/// How far a number of two results is apart, in words.
pub fn verdict(row: &Row) -> String {
    let accepted = percent(row.threshold);
    // Of single runs nobody knows what is chance.
    let real = match row.method {
        Method::Single => "",
        _ => "real, ",
    };
    let word = match row.verdict {
        Verdict::Same => "same".to_owned(),
        // There is no distance that a threshold could accept.
        Verdict::Indistinguishable if row.is_undefined_on_one_side() => {
            "undefined on one side, perhaps by chance".to_owned()
        }
        Verdict::Beyond if row.is_undefined_on_one_side() => "UNDEFINED on one side".to_owned(),
        Verdict::Indistinguishable if row.is_lost_among_many() => "not among so many".to_owned(),
        Verdict::Indistinguishable => "not distinguishable".to_owned(),
        Verdict::Within => format!("{real}within {accepted}"),
        Verdict::Beyond => format!("{real}BEYOND {accepted}"),
    };
    match row.judged {
        true => word,
        false => format!("{}, not judged", word.to_lowercase()),
    }
}

/// Where two single runs in real time are compared.
const SINGLE: &str = "thresholds alone, of goodput, round trips and completion times: with one run \
                      on each side in real time nobody knows what chance does; several (`--repeat \
                      5`) give intervals, `--metric` and `--threshold` judge others";

/// How numbers are judged, a line each: paired by seed, intervals, or thresholds; and what is to be
/// said of many of them.
pub fn method(comparison: &Comparison) -> String {
    let of = |method| comparison.rows.iter().filter(move |r| r.method == method);
    let mut parts = Vec::new();
    if let Some(most) = of(Method::Paired).filter_map(|r| r.pairs).max() {
        parts.push(format!(
            "95 % intervals over up to {most} pairs of runs with the same seed"
        ));
    }
    if of(Method::Welch).next().is_some() {
        parts.push("95 % intervals of two independent samples (Welch)".to_owned());
    }
    if of(Method::Prediction).next().is_some() {
        parts.push(
            "a single seed against the 95 % interval in which a run of the other side would lie \
             (`--repeat` gives it more)"
                .to_owned(),
        );
    }
    let single = |r: &&Row| r.a.seeds < 2 && r.b.seeds < 2;
    if comparison.single {
        parts.push(SINGLE.to_owned());
    } else if of(Method::Single).any(|r| single(&r)) {
        parts.push(
            "with 1 seed differences are exact, and the threshold alone judges them".to_owned(),
        );
    }
    let mut out = match parts.is_empty() {
        true => String::new(),
        false => format!("judged by: {}\n", parts.join("; ")),
    };
    let together = comparison.rows.iter().filter(|r| r.p_adjusted.is_some());
    let (all, lost) = (
        together.clone().count(),
        together.filter(|r| r.is_lost_among_many()).count(),
    );
    if lost > 0 {
        out += &format!(
            "of {all} numbers that chance moves {lost} would be beyond the threshold if each were \
             judged alone: among so many chance does that (false discovery rate 5 %); more seeds tell, or \
             `--metric` for what matters\n"
        );
    }
    out
}

/// A relative difference as `+3.14 %`; what rounds to nothing has no sign.
pub fn signed_percent(part: f64) -> String {
    match 100.0 * part {
        percent if percent.abs() < 0.005 => "0.00 %".to_owned(),
        percent => format!("{percent:+.2} %"),
    }
}

/// A fraction as `5 %`.
pub fn percent(fraction: f64) -> String {
    // Rounded, because 0.07 * 100 is not 7 in binary.
    format!("{} %", (fraction * 1e8).round() / 1e6)
}

fn in_bold(verdict: Verdict, words: String) -> String {
    match verdict {
        Verdict::Beyond => format!("<b class=bad>{words}</b>"),
        _ => words,
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::Within => "agrees",
        Verdict::Indistinguishable => "within chance",
        Verdict::Beyond => "<b class=bad>beyond</b>",
    }
}

/// Both ends, or the one number where they look the same.
fn interval(ends: [f64; 2]) -> String {
    let [low, high] = ends.map(number);
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

/// Four digits that count.
fn number(x: f64) -> String {
    if x == 0.0 {
        return "0".to_owned();
    }
    let digits = (3 - x.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
    format!("{x:.*}", digits as usize)
}

/// The pictures of a directory, by name, at most [`MOST`]; `named` is where a reader finds it.
fn figures(dir: &Path, named: &Path) -> String {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files.map(|f| f.path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "svg"));
    files.sort();
    let texts = files.iter().take(MOST).map(fs::read_to_string);
    let shown = texts.filter_map(Result::ok);
    let mut out: String = shown
        .map(|svg| format!("<figure>{svg}</figure>\n"))
        .collect();
    if files.len() > MOST {
        let (all, named) = (files.len(), text(&named.display().to_string()));
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<p>{MOST} of {all} pictures; the others are in {named}</p>"
        );
    }
    out
}

/// Pictures of a pair of grounds on the page.
const MOST: usize = 24;

const INTRODUCTION: &str = "<p>The same scenario ran on several grounds, and each is held against \
                            the first. Where two part, known causes were switched one after the \
                            other and the cases run again: what then agrees was the cause, and \
                            what agrees when nothing was switched (<i>wake-ups</i>) was chance.</p>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_how_many_pictures_there_are() {
        let dir = tempfile::tempdir().unwrap();
        let draw = |i: usize| fs::write(dir.path().join(format!("case-{i:04}.svg")), "<svg/>");
        (0..MOST).for_each(|i| draw(i).unwrap());
        let named = Path::new("f & g");
        let shown = figures(dir.path(), named);
        assert!(!shown.contains("<p>") && shown.matches("<svg/>").count() == MOST);
        draw(MOST).unwrap();
        let shown = figures(dir.path(), named);
        let words = "<p>24 of 25 pictures; the others are in f &amp; g</p>";
        assert!(shown.contains(words), "{shown}");
        assert_eq!(shown.matches("<svg/>").count(), MOST);
    }

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(
            prose("Chance was not tested (`a < b`), `c` was."),
            "Chance was not tested (<code>a &lt; b</code>), <code>c</code> was."
        );
    }

    #[test]
    fn an_exact_difference_is_one_number() {
        assert_eq!([0.0, -0.0, 1e-3].map(number), ["0", "0", "0.001000"]);
        assert_eq!(interval([-18.11, -18.11]), "-18.11");
        assert_eq!(interval([-18.11, 2.5]), "-18.11 to 2.500");
    }
}
