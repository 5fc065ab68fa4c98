//! `fullpipe compare`.

mod agreement;

use std::path::Path;

use fullpipe_metrics::Expression;
use fullpipe_report::agreement::{method, percent, signed_percent, verdict};
use fullpipe_report::digits::with_interval;
use fullpipe_report::{agreement as agreement_page, figure};
use fullpipe_results::agreement::MEASURES;
use fullpipe_results::compare::{
    Compared, Comparison, Missing, Number, Options, Row, Verdict, View, compare_all,
};
use fullpipe_results::label;
use fullpipe_results::result::{Params, printed};
use fullpipe_results::store::{Manifest, ResultDir};
use fullpipe_scenario::differing_keys;

use crate::args::{Compare, ShortFormat};
use crate::commands::check::counted;
use crate::commands::list::unknown_metric;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table, number, number_with};

/// Runs the command.
pub fn compare(args: &Compare) -> Result<Exit, Failure> {
    let options = options(args)?;
    let pairs = pairs(args)?;
    let comparisons = compare_all(pairs.iter().map(|(a, b)| (a, b)), &options)?;
    are_known(&comparisons)?;
    let mut different = Vec::new();
    let mut pictures = Vec::new();
    for (a, b) in &pairs {
        different.push(settings([a.manifest(), b.manifest()]));
        if let Some(dir) = &args.figures {
            let own = match pairs.len() {
                1 => dir.clone(),
                _ => dir.join(&a.manifest().scenario),
            };
            let written = figure::write_overlay(a, b, &own)?;
            output::say(&match written.cases {
                0 => format!("{}: no time series to draw", a.manifest().scenario),
                n => format!("{n} figures in {}", own.display()),
            });
            pictures.push(own);
        }
    }
    if let Some(dir) = &args.figures {
        let both = comparisons.iter().zip(&different).zip(&pairs).zip(pictures);
        let compared =
            both.map(
                |(((comparison, settings), (a, b)), pictures)| agreement_page::Compared {
                    comparison,
                    settings,
                    dirs: [a.path(), b.path()],
                    pictures,
                },
            );
        let all: Vec<_> = compared.collect();
        let page = agreement_page::write_compared(dir, &all)?;
        output::say(&format!("page: {}", page.display()));
    }
    let part = comparisons.iter().any(|c| !c.agree && !c.is_empty());
    let left_out = comparisons.iter().any(|c| !c.left_out.is_empty());
    match args.format {
        ShortFormat::Table => {
            let both = comparisons.iter().zip(&different);
            let texts: Vec<String> = both.map(|(c, s)| text(c, s, args.all)).collect();
            output::data(&texts.join("\n"))?;
        }
        ShortFormat::Json => {
            output::data(&printed::pretty(&Compared::from(comparisons)))?;
        }
    }
    Ok(exit(part, left_out))
}

/// Results that part in a case that counts do so whatever was left out beside it; where all that
/// differs was left out, nobody knows.
pub fn exit(part: bool, left_out: bool) -> Exit {
    match (part, left_out) {
        (true, _) => Exit::Failed,
        (false, true) => Exit::NotValid,
        (false, false) => Exit::Ok,
    }
}

/// A metric that is asked for has to be somewhere, or a misspelt variable would agree for ever.
fn are_known(comparisons: &[Comparison]) -> Result<(), Failure> {
    let Some((first, others)) = comparisons.split_first() else {
        return Ok(());
    };
    let nowhere = |metric: &&String| others.iter().all(|c| c.unknown.contains(metric));
    match first.unknown.iter().find(nowhere) {
        None => Ok(()),
        Some(metric) => {
            let message = format!("--metric {metric}: neither result has it");
            Err(Failure::new(Exit::Usage, message).hint(
                "`fullpipe list metrics` says what each is; the variables of a controller are the \
                 columns `var.NAME.last` of runs.parquet",
            ))
        }
    }
}

fn options(args: &Compare) -> Result<Options, Failure> {
    let mut options = Options {
        metrics: args.metrics.clone(),
        view: if args.agreement {
            View::Agreement
        } else {
            View::Auto
        },
        with_flagged: args.with_flagged,
        ..Options::default()
    };
    for (metric, fraction) in &args.threshold {
        match metric {
            Some(metric) => _ = options.thresholds.insert(metric.clone(), *fraction),
            None => options.threshold = *fraction,
        }
    }
    let thresholds = options.thresholds.keys();
    let measure = |name: &&String| MEASURES.contains(&name.as_str());
    for name in options
        .metrics
        .iter()
        .chain(thresholds.filter(|t| !measure(t)))
    {
        if let Err(error) = Expression::parse(name) {
            return Err(match name.contains(|c: char| " +-*/()".contains(c)) {
                false => unknown_metric(name),
                true => {
                    let message = format!("--metric {name}: {error}");
                    let failure = Failure::new(Exit::Usage, message);
                    error.hint.into_iter().fold(failure, Failure::hint)
                }
            });
        }
    }
    Ok(options)
}

/// The two results; of two studies those of the same scenario.
fn pairs(args: &Compare) -> Result<Vec<(ResultDir, ResultDir)>, Failure> {
    let one = ResultDir::is_one(&args.a) || ResultDir::is_one(&args.b);
    let below = match one || !args.a.is_dir() || !args.b.is_dir() {
        true => Vec::new(),
        false => ResultDir::below(&args.a)?,
    };
    if below.is_empty() {
        return Ok(vec![(ResultDir::open(&args.a)?, ResultDir::open(&args.b)?)]);
    }
    let mut others = ResultDir::below(&args.b)?;
    let mut pairs = Vec::new();
    let lacks = |dir: &Path, scenario: &str| {
        let message = format!("`{}` has no result of `{scenario}`", dir.display());
        Failure::new(Exit::Usage, message)
            .hint("compare single results, or studies of the same scenarios")
    };
    for a in below {
        let scenario = &a.manifest().scenario;
        let at = others
            .iter()
            .position(|b| b.manifest().scenario == *scenario);
        let at = at.ok_or_else(|| lacks(&args.b, scenario))?;
        pairs.push((a, others.remove(at)));
    }
    match others.first() {
        Some(left) => Err(lacks(&args.a, &left.manifest().scenario)),
        None => Ok(pairs),
    }
}

/// `: Linux 6.1.192, 250 ticks a second`, behind the name of a ground.
pub fn kernel_text(kernel: Option<&str>) -> String {
    kernel.map_or(String::new(), |kernel| format!(": {kernel}"))
}

/// That these stacks are not the kernel's.
pub fn brought_text(stacks: &[String]) -> Option<String> {
    let quoted: Vec<String> = stacks.iter().map(|stack| format!("`{stack}`")).collect();
    let (one, all) = (quoted.len() == 1, quoted.join(", "));
    let is = if one { "is" } else { "are" };
    let law = if one { "law" } else { "laws" };
    (!quoted.is_empty())
        .then(|| format!("{all} {is} fullpipe's own {law}, loaded into the kernel (eBPF)"))
}

/// A line for each key of the scenario in which the two differ, as far as they are few.
fn settings(of: [&Manifest; 2]) -> String {
    let [a, b] = of.map(|m| {
        (
            m.scenario_text.as_str(),
            m.set.as_deref().unwrap_or_default(),
        )
    });
    let mut differing = differing_keys(a, b);
    if of.iter().all(|m| m.peer.is_some()) {
        // Of a network it is what the handshake took, and nobody's setting.
        differing.retain(|(key, ..)| key != MEASURED);
    }
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".to_owned());
    let mut out = String::new();
    for (key, a, b) in differing.iter().take(MOST_KEYS) {
        out += &format!("{key}: {} -> {}\n", said(a), said(b));
    }
    if differing.len() > MOST_KEYS {
        out += &format!("and {} more keys differ\n", differing.len() - MOST_KEYS);
    }
    if of[0].quick != of[1].quick {
        out += &format!("{} with --quick\n", if of[0].quick { "A" } else { "B" });
    }
    out
}

/// Key that `send` writes into its scenario.
const MEASURED: &str = "path.rtt";

/// Of two scenarios that are not the same at all nearly every key differs.
const MOST_KEYS: usize = 8;

/// Two results of which no case counts.
pub fn not_compared(comparison: &Comparison) -> String {
    let (a, b) = (&comparison.a, &comparison.b);
    let mut out = format!(
        "nothing of {} on {} and {} could be compared\n",
        a.scenario, a.ground, b.ground
    );
    for side in [a, b] {
        if let Some(untrue) = &side.untrue {
            out += &format!("{} is NOT VALID: {untrue}\n", side.ground);
        }
    }
    out
}

/// The cases that do not count, if there are any.
pub fn left_out(cases: &[Params]) -> String {
    if cases.is_empty() {
        return String::new();
    }
    let named = |p: &Params| match p.to_string() {
        none if none.is_empty() => "  the only case\n".to_owned(),
        some => format!("  {some}\n"),
    };
    let cases: Vec<String> = cases.iter().map(named).collect();
    format!(
        "left out, because a run was not what the scenario says (`--with-flagged` counts them):\n{}",
        cases.concat()
    )
}

/// Both sides, the settings in which they differ, their tables and the last line.
pub fn text(comparison: &Comparison, settings: &str, all: bool) -> String {
    if comparison.is_empty() {
        return not_compared(comparison) + &left_out(&comparison.left_out);
    }
    let mut out = String::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        out += &format!(
            "{name}: {} on {}{} (fullpipe {})\n",
            side.scenario,
            side.ground,
            kernel_text(side.kernel.as_deref()),
            side.fullpipe
        );
        if let Some(brought) = brought_text(&side.brought) {
            out += &format!("{name}: {brought}\n");
        }
        if let Some(test_bed) = &side.test_bed {
            out += &format!("{name}'s test bed, worst case: {test_bed}\n");
        }
        if let Some(untrue) = &side.untrue {
            out += &format!("{name} is NOT VALID: {untrue}\n");
        }
    }
    match (&comparison.a.warmup, &comparison.b.warmup) {
        (Some(a), Some(b)) if a == b => out += &format!("{a}\n"),
        sides => {
            for (name, warmup) in [("A", sides.0), ("B", sides.1)] {
                out += &warmup
                    .as_ref()
                    .map_or(String::new(), |w| format!("{name}: {w}\n"));
            }
        }
    }
    out += settings;
    let agreement = comparison.view == View::Agreement;
    if agreement {
        out.push('\n');
        out += &agreement::tables(comparison);
    }
    let differs = |r: &&Row| !matches!(r.verdict, Verdict::Same | Verdict::Indistinguishable);
    let rows: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(|r| all || (!agreement && (differs(r) || r.is_lost_among_many())))
        .collect();
    if !rows.is_empty() {
        out.push('\n');
        out += &table(comparison, &rows);
    }
    for missing in &comparison.missing {
        out += &format!(
            "\nonly in {}: {}",
            if missing.missing_in == "a" { "B" } else { "A" },
            what(missing)
        );
    }
    if !comparison.missing.is_empty() {
        out.push('\n');
    }
    if !comparison.left_out.is_empty() {
        out.push('\n');
        out += &left_out(&comparison.left_out);
    }
    out.push('\n');
    out += &match comparison.view {
        View::Agreement => agreement::summary(comparison),
        _ => summary(comparison),
    };
    out
}

/// A line per number.
pub fn table(comparison: &Comparison, rows: &[&Row]) -> String {
    let shown = rows.iter().map(|row| &row.params);
    let texts = label::texts(comparison.rows.iter().map(|row| &row.params).chain(shown));
    let (all, own) = texts.split_at(comparison.rows.len());
    let params = label::varying(all);
    let mut table = Table::new();
    for (_, head) in &params {
        table.column(Align::Left, &[head]);
    }
    for (align, head) in [
        (Align::Left, "of"),
        (Align::Left, "metric"),
        (Align::Right, "A"),
        (Align::Right, "B"),
        (Align::Right, "difference"),
        (Align::Right, "effect"),
        (Align::Left, "verdict"),
    ] {
        table.column(align, &[head]);
    }
    for (row, own) in rows.iter().zip(own) {
        let text = |(key, _): &(&str, &str)| label::find(own, key).unwrap_or_default().to_owned();
        let mut cells: Vec<String> = params.iter().map(text).collect();
        let of = row.flow.as_ref().or(row.link.as_ref());
        cells.push(of.map_or("case".to_owned(), Clone::clone));
        cells.push(match row.unit {
            // An own metric has no unit.
            "1" | "" => row.metric.clone(),
            unit => format!("{} ({unit})", row.metric),
        });
        cells.extend([
            number_text(&row.a),
            number_text(&row.b),
            difference(row),
            effect(row),
            verdict(row),
        ]);
        table.row(cells);
    }
    table.text()
}

fn number_text(n: &Number) -> String {
    let half = n.ci95.map(|[low, high]| (high - low) / 2.0);
    let text = |mean| number_with(mean, half, 5);
    n.mean.map_or("undefined".to_owned(), text)
}

fn difference(row: &Row) -> String {
    let half = row.difference_ci95.map(|[low, high]| (high - low) / 2.0);
    match (row.relative, row.difference) {
        (Some(relative), _) => {
            let half = half.zip(row.a.mean).map(|(half, a)| 100.0 * half / a.abs());
            let percent = 100.0 * relative;
            match half.and_then(|half| with_interval(percent, half)) {
                Some(_) => signed(number_with(percent, half, 3), percent) + " %",
                None => signed_percent(relative),
            }
        }
        (None, Some(difference)) => signed(number_with(difference, half, 5), difference),
        (None, None) => "-".to_owned(),
    }
}

/// With the sign of what is added.
fn signed(text: String, value: f64) -> String {
    match value > 0.0 {
        true => format!("+{text}"),
        false => text,
    }
}

fn effect(row: &Row) -> String {
    row.effect.map_or("-".to_owned(), |e| {
        format!("{} = {}", e.measure, number(e.value, 2))
    })
}

fn what(missing: &Missing) -> String {
    let params: Vec<String> = missing
        .params
        .texts()
        .into_iter()
        .map(|(k, v)| format!("{k} = {v}"))
        .collect();
    let mut parts = vec![if params.is_empty() {
        "the case".to_owned()
    } else {
        params.join(", ")
    }];
    parts.extend(missing.flow.as_ref().map(|f| format!("flow `{f}`")));
    parts.extend(missing.link.as_ref().map(|l| format!("link `{l}`")));
    let remark = if missing.judged { "" } else { " (not judged)" };
    parts.join(", ") + remark
}

/// What only one of the two has, as far as they are judged by it.
fn judged_missing(comparison: &Comparison) -> usize {
    comparison.missing.iter().filter(|m| m.judged).count()
}

fn summary(comparison: &Comparison) -> String {
    let judged = || comparison.rows.iter().filter(|r| r.judged);
    let count = |verdict| judged().filter(|r| r.verdict == verdict).count();
    let (all, within, beyond) = (
        judged().count(),
        count(Verdict::Within),
        count(Verdict::Beyond),
    );
    let mut parts = Vec::new();
    if beyond > 0 {
        parts.push(format!(
            "{beyond} of {all} numbers differ beyond their threshold"
        ));
    }
    if within > 0 {
        parts.push(format!(
            "{within} of {all} numbers differ within their threshold"
        ));
    }
    let apart = count(Verdict::Indistinguishable);
    if apart > 0 {
        parts.push(format!("{apart} of {all} numbers are not distinguishable"));
    }
    let same = count(Verdict::Same);
    if same > 0 && same < all {
        parts.push(format!("{same} are the same"));
    }
    let missing = judged_missing(comparison);
    if missing > 0 {
        parts.push(format!("{missing} on one side only"));
    }
    if parts.is_empty() {
        parts.push(format!("no difference in {}", counted(all, "number")));
    }
    let word = if comparison.agree {
        "agree"
    } else {
        "DISAGREE"
    };
    format!("{}{word}: {}\n", method(comparison), parts.join(", "))
}
