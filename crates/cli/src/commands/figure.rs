//! `fullpipe figure`: one figure or table of a result.

use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_report::figure::asked::{Asked, AskedError, Kind, ask, chosen};
use fullpipe_report::figure::{Rows, Style};
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
    if args.metric.is_some() && !kind.takes_a_metric() {
        let message = format!("--metric: `{word}` draws what its name says");
        let taking = Kind::ALL.iter().filter(|k| k.takes_a_metric());
        let taking: Vec<&str> = taking.map(|k| k.word()).collect();
        let hint = format!("{} take a metric", taking.join(", "));
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    let own = args.dir.join("figures").join(format!("{word}.svg"));
    let file = args.out.as_deref().unwrap_or(&own);
    let fits = |form: Form| matches!(form, Form::Csv) || !form.is_table() || kind == Kind::Matrix;
    let picture = Picture::named("--out", file, &format!("{word}.svg"), fits)?;
    let dir = ResultDir::open(&args.dir)?;
    let asked = Asked {
        metric: args.metric.clone(),
        of: args.of.clone(),
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
    if picture.form.is_table() {
        let printed = drawn.printed.as_ref().filter(|_| picture.form != Form::Csv);
        let text = rows_text(printed.unwrap_or(&drawn.tidy), picture.form);
        return picture.write(text.as_bytes());
    }
    let style = args.print.style();
    let svg = drawn.svg(&style).map_err(refused)?;
    picture.draw(&svg, &style, &origin(dir.manifest()))
}

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
        Some(file) => Some(Picture::named("--out", file, "table.tex", Form::is_table)?),
        None => None,
    };
    let mut result = ResultDir::open(&args.dir)?.result()?;
    let all: Vec<_> = result.cases.iter().map(|c| c.params.texts()).collect();
    let cases = chosen(&all, &args.only).map_err(refused)?;
    result
        .expectations
        .retain(|e| cases.iter().any(|&i| result.cases[i].params == e.params));
    let cases = cases.into_iter().map(|i| result.cases[i].clone());
    result.cases = cases.collect();
    let (table, what) = match kind {
        TableKind::Traffic => (view::traffic_table(&result), "traffic"),
        TableKind::Expectations => (view::expectations_table(&result), "expectations"),
        TableKind::Table => (view::flows_table(&result), "flows"),
    };
    if table.is_empty() {
        let message = format!("`{}` has no {what}", args.dir.display());
        let failure = Failure::new(Exit::Usage, message);
        return Err(match args.only.is_empty() {
            true => failure,
            false => failure.hint("without `--where` all cases are looked at"),
        });
    }
    match picture {
        None => output::data(&table.text()),
        Some(picture) => picture.write(rows_text(&table.rows(), picture.form).as_bytes()),
    }
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
