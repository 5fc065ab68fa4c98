//! `fullpipe figure`: one figure or table of a result.

use fullpipe_report::figure::Rows;
use fullpipe_report::figure::asked::{Asked, AskedError, Kind, ask};
use fullpipe_results::store::ResultDir;

use crate::args::{Figure, FigureKind};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::picture::{Form, Picture};
use crate::view;

/// Runs the command.
pub fn figure(args: &Figure) -> Result<Exit, Failure> {
    match kind(args.kind) {
        Some(kind) => picture(args, kind)?,
        None => table(args)?,
    }
    Ok(Exit::Ok)
}

fn kind(kind: FigureKind) -> Option<Kind> {
    Some(match kind {
        FigureKind::Window => Kind::Window,
        FigureKind::Goodput => Kind::Goodput,
        FigureKind::Rtt => Kind::Rtt,
        FigureKind::Queue => Kind::Queue,
        FigureKind::Load => Kind::Load,
        FigureKind::Matrix => Kind::Matrix,
        FigureKind::Bars => Kind::Bars,
        FigureKind::Distribution => Kind::Distribution,
        FigureKind::Response => Kind::Response,
        FigureKind::Table | FigureKind::Traffic | FigureKind::Expectations => return None,
    })
}

fn picture(args: &Figure, kind: Kind) -> Result<(), Failure> {
    let word = clap::ValueEnum::to_possible_value(&args.kind);
    let word = word.map_or_else(String::new, |v| v.get_name().to_owned());
    let takes = [Kind::Matrix, Kind::Bars, Kind::Distribution].contains(&kind);
    if args.metric.is_some() && !takes {
        let message = format!("--metric: `{word}` draws what its name says");
        return Err(
            Failure::new(Exit::Usage, message).hint("matrix, bars and distribution take a metric")
        );
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
    if picture.form.is_table() {
        let printed = drawn.printed.as_ref().filter(|_| picture.form != Form::Csv);
        let text = rows_text(printed.unwrap_or(&drawn.tidy), picture.form);
        return picture.write(text.as_bytes());
    }
    let style = args.print.style();
    picture.draw(&drawn.svg(&style).map_err(refused)?, &style)
}

fn table(args: &Figure) -> Result<(), Failure> {
    let picture = match &args.out {
        Some(file) => Some(Picture::named("--out", file, "table.tex", Form::is_table)?),
        None => None,
    };
    let mut result = ResultDir::open(&args.dir)?.result()?;
    for (key, value) in &args.only {
        let ends = |k: &str| k == key || k.rsplit('.').next() == Some(key);
        let fits = |params: &fullpipe_results::result::Params| {
            let texts = params.texts();
            texts.iter().any(|(k, v)| ends(k) && v == value)
        };
        result.cases.retain(|c| fits(&c.params));
        result.expectations.retain(|e| fits(&e.params));
    }
    let (table, what) = match args.kind {
        FigureKind::Traffic => (view::traffic_table(&result), "traffic"),
        FigureKind::Expectations => (view::expectations_table(&result), "expectations"),
        _ => (view::flows_table(&result), "flows"),
    };
    if table.is_empty() {
        let message = format!("no {what} in `{}` as it is chosen", args.dir.display());
        return Err(Failure::new(Exit::Usage, message)
            .hint("`fullpipe figure DIR table` without --where shows all cases"));
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
