//! `fullpipe figure`: one figure or table of a result.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use fullpipe_cc::registry::nearest;
use fullpipe_metrics::{Expression, Metric, Scope, find, is_variable, names_of, scope_of};
use fullpipe_report::figure::asked::{Asked, AskedError, Kind, ask, chosen};
use fullpipe_report::figure::{Rows, Style};
use fullpipe_results::result::{Params, RunResult};
use fullpipe_results::store::{Manifest, ResultDir};

use crate::args::{Drawn, Figure, TableKind};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::picture::{Form, Picture};
use crate::view;

/// Runs the command.
pub fn figure(args: &Figure) -> Result<Exit, Failure> {
    match args.kind {
        Drawn::Picture(kind) => picture(args, kind)?,
        Drawn::Table(kind) => table(args, kind)?,
    }
    Ok(Exit::Ok)
}

/// Draws a picture of a result among its figures, as SVG, and returns where it is.
pub fn beside(dir: &Path, kind: Kind) -> Result<PathBuf, Failure> {
    let drawn = ask(&ResultDir::open(dir)?, kind, &Asked::default()).map_err(refused)?;
    let style = Style::default();
    let file = dir.join("figures").join(format!("{}.svg", kind.word()));
    let svg = drawn.svg(&style).map_err(refused)?;
    fs::write(&file, svg)
        .map_err(|e| Failure::io(format_args!("cannot write {}", file.display()), &e))?;
    Ok(file)
}

fn picture(args: &Figure, kind: Kind) -> Result<(), Failure> {
    let word = kind.word();
    if args.metric.len() > 1 {
        let message = "--metric: a picture is of one metric";
        let hint = "draw it once for each; `table` and `runs` take several";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if !args.metric.is_empty() && !kind.takes_a_metric() {
        let message = format!("--metric: `{word}` draws what its name says");
        let taking = Kind::ALL.iter().filter(|k| k.takes_a_metric());
        let taking: Vec<&str> = taking.map(|k| k.word()).collect();
        let hint = format!("{} take a metric", taking.join(", "));
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if args.lines.is_some() && !kind.takes_lines() {
        let message = format!("--lines: the lines of `{word}` are the stacks and their laws");
        let hint = "`--where KEY=VALUE` chooses among the cases";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let own = args.dir.join("figures").join(format!("{word}.svg"));
    let file = args.out.as_deref().unwrap_or(&own);
    let fits = |form: Form| matches!(form, Form::Csv) || !form.is_table() || kind == Kind::Matrix;
    let picture = Picture::named_or_output("--out", file, &format!("{word}.svg"), fits)?;
    if picture.form.is_table() {
        refuse_ranges(args, "the numbers are written whole")?;
    }
    let dir = ResultDir::open(&args.dir)?;
    let asked = Asked {
        metric: args.metric.first().cloned(),
        of: args.of.clone(),
        lines: args.lines.clone(),
        only: args.only.clone(),
        seed: args.seed,
    };
    let drawn = ask(&dir, kind, &asked).map_err(refused)?;
    if let Some(taken) = &drawn.taken {
        let others = taken.others.join("`, `");
        output::say(&format!(
            "drawn of `{}`; `--of NAME` takes another: `{others}`",
            taken.of
        ));
    }
    if let Some(words) = &drawn.left_out {
        output::say(words);
    }
    if picture.form.is_table() {
        let printed = drawn.printed.as_ref().filter(|_| picture.form != Form::Csv);
        let text = rows_text(printed.unwrap_or(&drawn.tidy), picture.form);
        return picture.write(text.as_bytes());
    }
    let drawn = drawn.within(&args.ranges()).map_err(refused)?;
    let style = Style {
        columns: args.columns.map(NonZeroUsize::get),
        ..args.print.style()
    };
    let svg = drawn.svg(&style).map_err(refused)?;
    let height = style.height_of(&svg).filter(|_| style.height_mm.is_none());
    if let Some(height) = height.filter(|height| *height > PAGE_MM) {
        output::warning(&format!(
            "the picture is {height:.0} mm tall: `--columns N` puts more panels side by side, \
             `--where KEY=VALUE` chooses among them"
        ));
    }
    picture.draw(&svg, &style, &origin(dir.manifest()))
}

/// What a page of A4 has room for.
const PAGE_MM: f64 = 247.0;

/// Which result a picture shows, so that it can be found again.
fn origin(manifest: &Manifest) -> String {
    let files = manifest.files.iter();
    let hashes = files.filter(|f| f.path == "result.json").map(|f| &f.sha256);
    let hashes = hashes.map(|hash| format!(", result.json sha256 {hash}"));
    let of = format!(
        "scenario {} of fullpipe {}",
        manifest.scenario, manifest.fullpipe
    );
    of + &hashes.collect::<String>()
}

fn table(args: &Figure, kind: TableKind) -> Result<(), Failure> {
    let picture = match &args.out {
        Some(file) => Some(Picture::named_or_output(
            "--out",
            file,
            "table.tex",
            Form::is_table,
        )?),
        None => None,
    };
    if args.of.is_some() || args.seed.is_some() {
        let message = "--of and --seed choose what a picture is drawn of";
        let hint = "a table has all flows and seeds; `--where` chooses cases";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    if args.lines.is_some() {
        let message = "--lines chooses what the lines of a picture are";
        let hint = "a table has a row for each case; `matrix` has one for each value";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    refuse_ranges(args, "a table has no axes")?;
    let form = picture.as_ref().map(|picture| picture.form);
    let dir = ResultDir::open(&args.dir)?;
    let result = dir.result()?;
    let all: Vec<&Params> = result.cases.iter().map(|c| &c.params).collect();
    let cases = chosen(&all, &args.only).map_err(refused)?;
    let warmup = result.warmup();
    let Some(text) = table_text(&dir, result, &cases, (kind, form), &args.metric)? else {
        let message = format!("`{}` has no {}", args.dir.display(), kind.of());
        let failure = Failure::new(Exit::Usage, message);
        return Err(match args.only.is_empty() {
            true => failure,
            false => failure.hint("without `--where` all cases are looked at"),
        });
    };
    if let Some(warmup) = warmup {
        output::say(&warmup);
    }
    match picture {
        None => output::data(&text),
        Some(picture) => picture.write(text.as_bytes()),
    }
}

/// Parts of axes are of a picture.
fn refuse_ranges(args: &Figure, why: &str) -> Result<(), Failure> {
    if args.x_range.is_none() && args.y_range.is_none() {
        return Ok(());
    }
    let message = format!("--x-range and --y-range cut the axes of a picture: {why}");
    let hint = "leave them out, or name a picture: `--out FILE.svg`";
    Err(Failure::new(Exit::Usage, message).hint(hint))
}

/// A table of these cases in its form, on a terminal without one; `None` without a row.
fn table_text(
    dir: &ResultDir,
    mut result: RunResult,
    cases: &[usize],
    (kind, form): (TableKind, Option<Form>),
    names: &[String],
) -> Result<Option<String>, Failure> {
    let metrics = columns(names, kind)?;
    let numbers = form == Some(Form::Csv);
    let table = match kind {
        TableKind::Runs => {
            let rows = view::runs(&dir.runs()?, cases, names);
            let form = form.unwrap_or(Form::Csv);
            return Ok((!rows.rows.is_empty()).then(|| rows_text(&rows, form)));
        }
        TableKind::Table if numbers => {
            return Ok(view::numbers(&result, cases, view::Kept::Flows, names));
        }
        TableKind::Traffic if numbers => {
            return Ok(view::numbers(&result, cases, view::Kept::Traffic, names));
        }
        TableKind::Links if numbers => {
            return Ok(view::numbers(&result, cases, view::Kept::Links, names));
        }
        TableKind::Table => {
            keep(&mut result, cases);
            view::flows_table(&result, &metrics)
        }
        TableKind::Traffic => {
            keep(&mut result, cases);
            view::traffic_table(&result, &metrics)
        }
        TableKind::Links => {
            keep(&mut result, cases);
            view::links_table(&result, &metrics)
        }
        TableKind::Expectations => {
            keep(&mut result, cases);
            view::expectations_table(&result)
        }
    };
    Ok((!table.is_empty()).then(|| match form {
        None => table.text(),
        Some(form) => rows_text(&table.rows(), form),
    }))
}

/// Leaves these cases of a result.
fn keep(result: &mut RunResult, cases: &[usize]) {
    let kept = cases.iter().map(|&i| result.cases[i].clone());
    result.cases = kept.collect();
    let mut expectations = std::mem::take(&mut result.expectations);
    let places = result.places();
    expectations.retain(|e| places.contains_key(&e.params));
    result.expectations = expectations;
}

/// The metrics of these names that a table has.
fn columns(names: &[String], kind: TableKind) -> Result<Vec<&'static Metric>, Failure> {
    let scopes: &[Scope] = match kind {
        TableKind::Table => &[Scope::Flow, Scope::Case],
        TableKind::Traffic => &[Scope::Traffic, Scope::Case],
        TableKind::Links => &[Scope::Link, Scope::Case],
        TableKind::Runs => &[Scope::Flow, Scope::Traffic, Scope::Case],
        TableKind::Expectations if names.is_empty() => return Ok(Vec::new()),
        TableKind::Expectations => {
            let message = "--metric: the table of expectations has those that they name";
            return Err(Failure::new(Exit::Usage, message).hint("leave --metric out"));
        }
    };
    let known = || scopes.iter().flat_map(|scope| names_of(*scope));
    let column = |name: &String| {
        let mut found = scopes.iter().filter_map(|scope| find(*scope, name));
        found.next().ok_or_else(|| {
            let message = format!("--metric: the table has no metric `{name}`");
            if find(Scope::Link, name).is_some() {
                let hint = "it is of a link: the table `links` has it, and `matrix`, `bars` and \
                            `distribution` draw it";
                return Failure::new(Exit::Usage, message).hint(hint);
            }
            let is_one = scope_of(name).is_some() || is_variable(name);
            if !is_one && Expression::parse(name).is_ok() {
                let hint = "expressions are drawn by `matrix`, `bars` and `distribution`; a table \
                            has the metrics that they are made of";
                return Failure::new(Exit::Usage, message).hint(hint);
            }
            let near = fullpipe_metrics::nearest(name).filter(|near| known().any(|n| n == *near));
            let near = near.or_else(|| nearest(name, known()));
            Failure::new(Exit::Usage, message).hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`fullpipe list metrics` shows all; expressions are drawn by `matrix`, \
                         `bars` and `distribution`"
                    .to_owned(),
            })
        })
    };
    // A law's variables have columns in the table of runs alone.
    let is_own = |name: &&String| kind != TableKind::Runs || !is_variable(name);
    names.iter().filter(is_own).map(column).collect()
}

fn rows_text(rows: &Rows, form: Form) -> String {
    match form {
        Form::Tex => rows.tex(),
        Form::Markdown => rows.markdown(),
        _ => rows.csv(),
    }
}

fn refused(error: AskedError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        AskedError::Store(error) => error.into(),
        error => Failure::new(Exit::Usage, error.to_string()),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
