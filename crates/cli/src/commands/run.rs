//! `fullpipe run`.

mod left;
pub mod size;
mod summaries;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fullpipe_realtime::live::Live;
use fullpipe_report::figure::{self, Written};
use fullpipe_report::page;
use fullpipe_results::capture::Captures;
use fullpipe_results::result::{CaseLine, RunResult};
use fullpipe_results::run::{CaseSink, Keep, Options, Ran, RunError, Taken, run_on};
use fullpipe_results::store::{Earlier, ResultDir};
use fullpipe_run::Ground;
use fullpipe_scenario::{Diagnostics, Loaded, Overrides, Scenario, Study};

use self::left::{last, offer};
use self::size::Outlook;
use self::summaries::{summaries, without, writable};
use crate::args::{Format, Run};
use crate::commands::check::counted;
use crate::commands::compare::brought_text;
use crate::exit::{Exit, Failure};
use crate::live::{dashboard, prometheus};
use crate::progress::{Progress, clock};
use crate::table::number;
use crate::{commands, foreign, ground, output, view};

/// Runs the command.
pub fn run(args: &Run) -> Result<Exit, Failure> {
    if let Some(host) = &args.peer {
        foreign::honoured(&args.set, foreign::RUN, host)?;
    }
    let live = Arc::new(Live::default());
    let ground = ground::find(args, &live, &INTERRUPT)?;
    watchable(args, &*ground)?;
    let mut overrides = Overrides {
        set: args.set.clone(),
        seed: args.seed,
        repeat: args.repeat,
        quick: args.quick,
        world: Vec::new(),
    };
    if let Some(file) = &args.policy {
        let (plain, _) = read(&args.scenarios, &overrides)?;
        let mut set = commands::tune::flow_settings(file, &plain)?;
        set.extend(overrides.set);
        overrides.set = set;
    }
    let (scenarios, studies) = read(&args.scenarios, &overrides)?;
    warn(&scenarios, &overrides, args.peer.is_some());
    let last = last(args, &scenarios);
    let is_last = last.is_some();
    let args = last.as_ref().unwrap_or(args);
    let directories = directories(args, &scenarios, &studies)?;
    writable(args)?;
    listen_for_interrupts(RUNS_FINISH)?;
    if let Some(address) = args.live.prometheus {
        let live = Arc::clone(&live);
        prometheus::serve(address, move || prometheus::runs::page(&live))?;
    }
    let mut results = Vec::new();
    let mut stopped = None;
    let rows = Rows::wanted(args, &scenarios, &*ground);
    for (scenario, out) in scenarios.iter().zip(&directories) {
        let out = out.as_deref();
        let (ran, remarks) = match one(args, scenario, &*ground, &live, out, rows.as_ref()) {
            Ok(done) => done,
            Err(Stopped(failure, None)) => {
                // Results of earlier scenarios are on stdout already, or follow.
                stopped = Some(failure);
                break;
            }
            Err(Stopped(failure, Some(ran))) => {
                stopped = Some(failure);
                (*ran, Vec::new())
            }
        };
        match args.format {
            Format::Table if ran.result.cases.is_empty() => {}
            Format::Table => output::data(&headed_table(scenario, &ran.result, ground.peer()))?,
            Format::Ndjson if rows.is_none() => output::data(&view::ndjson(&ran.result))?,
            Format::Ndjson | Format::Json | Format::Csv => {}
        }
        // Last, so that on a terminal the places of the results stand below the table.
        if !args.quiet {
            remarks.iter().for_each(|line| output::say(line));
        }
        results.push(ran.result);
        if stopped.is_some() {
            break;
        }
    }
    if let Some(out) = args.out.as_deref()
        && stopped.is_none()
        && directories.iter().flatten().any(|d| d != out)
    {
        let line = commands::report::of_all(out, &together(&scenarios, &studies))?;
        if !args.quiet {
            output::say(&line);
        }
    }
    match (args.format, results.as_slice()) {
        (Format::Json | Format::Csv, []) => {}
        (Format::Json, [one]) => output::content(|out| one.write_json(out))?,
        (Format::Json, all) => output::data(&array(all))?,
        (Format::Csv, all) if rows.is_none() => output::data(&view::csv(all))?,
        (Format::Csv, _) => {}
        (Format::Table | Format::Ndjson, _) => {}
    }
    let without = without(&scenarios, &results, stopped.as_ref());
    summaries(args, &results, &without)?;
    // A table shows it already.
    if args.format != Format::Table {
        for sentence in results.iter().flat_map(view::not_passed) {
            output::say(&sentence);
        }
        for (result, untrue) in results.iter().filter_map(|r| Some((r, r.untrue()?))) {
            output::say(&format!("NOT VALID {}: {untrue}", result.scenario));
        }
    }
    if let Some(failure) = stopped {
        return Err(failure);
    }
    if let Some(failure) = results.iter().find_map(cut_short) {
        return Err(failure);
    }
    if let Some(line) = offer(args, is_last) {
        output::say(&line);
    }
    Ok(exit(&results, ground.peer().is_none()))
}

/// How the command ends. What an expectation says of a run that does not count is worth nothing;
/// but where the path is not ours, the hosts are part of what is measured.
fn exit(results: &[RunResult], own_path: bool) -> Exit {
    if own_path && results.iter().any(|r| r.untrue().is_some()) {
        Exit::NotValid
    } else if results.iter().all(RunResult::passed) {
        Exit::Ok
    } else {
        Exit::Failed
    }
}

/// What the page of all results is called: like the study, or like the scenarios.
fn together(scenarios: &[Scenario], studies: &[Study]) -> page::Study {
    let names: Vec<String> = scenarios.iter().map(|s| s.name.clone()).collect();
    let (name, about) = match studies {
        [study] => (study.name.clone(), study.about.clone()),
        _ => (names.join(", "), String::new()),
    };
    page::Study {
        name,
        about,
        results: names,
    }
}

/// Every scenario is read before the first one runs; a study is its scenarios. What is strange is
/// warned of.
pub fn load(
    names: &[String],
    overrides: &Overrides,
) -> Result<(Vec<Scenario>, Vec<Study>), Failure> {
    let read = read(names, overrides)?;
    warn(&read.0, overrides, false);
    Ok(read)
}

/// Warns of what is strange in scenarios; `elsewhere`: over a path that is not theirs.
fn warn(scenarios: &[Scenario], overrides: &Overrides, elsewhere: bool) {
    let warnings = scenarios.iter().flat_map(|s| &s.warnings);
    for warning in warnings.filter(|w| !elsewhere || foreign::holds(w)) {
        output::warning(&warning.to_string());
    }
    if overrides.quick && !scenarios.iter().any(|s| s.has_quick) {
        output::warning("--quick changes nothing: there is no [quick] in what is run");
    }
}

fn read(names: &[String], overrides: &Overrides) -> Result<(Vec<Scenario>, Vec<Study>), Failure> {
    if names.iter().filter(|name| *name == "-").count() > 1 {
        let message = "`-` stands twice: standard input is read once";
        return Err(Failure::new(Exit::Usage, message).hint("name it once"));
    }
    let mut scenarios = Vec::new();
    let mut studies = Vec::new();
    let mut wrong = false;
    let mut say = |diagnostics: Diagnostics| {
        wrong = true;
        let lines = diagnostics.0.iter();
        lines.for_each(|d| output::error(&d.to_string()));
    };
    for name in names {
        match fullpipe_scenario::load(name, overrides) {
            Ok(Loaded::Scenario(scenario)) => scenarios.push(*scenario),
            Ok(Loaded::Study(study)) => {
                for name in &study.scenarios {
                    match Scenario::load(name, overrides) {
                        Ok(scenario) => scenarios.push(scenario),
                        Err(diagnostics) => say(diagnostics),
                    }
                }
                studies.push(study);
            }
            Err(diagnostics) => say(diagnostics),
        }
    }
    if wrong {
        // The diagnostics are the message.
        return Err(Failure::new(Exit::Usage, ""));
    }
    Ok((scenarios, studies))
}

/// Where each result goes: into `--out` itself, or into one subdirectory per scenario if there are
/// several or may be.
fn directories(
    args: &Run,
    scenarios: &[Scenario],
    studies: &[Study],
) -> Result<Vec<Option<PathBuf>>, Failure> {
    let Some(out) = &args.out else {
        return Ok(vec![None; scenarios.len()]);
    };
    if let ([_], []) = (scenarios, studies) {
        return Ok(vec![Some(out.clone())]);
    }
    for (i, scenario) in scenarios.iter().enumerate() {
        if scenarios[..i].iter().any(|s| s.name == scenario.name) {
            let message = format!("two scenarios are named `{}`", scenario.name);
            let hint = "with `--out` each goes into the directory of its name: run them one by one";
            return Err(Failure::new(Exit::Usage, message).hint(hint));
        }
    }
    Ok(scenarios.iter().map(|s| Some(out.join(&s.name))).collect())
}

/// Why a scenario has no whole result, and what it has all the same.
struct Stopped(Failure, Option<Box<Ran>>);

impl<T: Into<Failure>> From<T> for Stopped {
    fn from(error: T) -> Self {
        Self(error.into(), None)
    }
}

/// The finished runs of a scenario that was stopped; there may be none.
fn stopped(error: RunError) -> Stopped {
    let mut finished = None;
    if let RunError::Interrupted { result, done, .. } = &error
        && let Some(result) = result.clone()
    {
        finished = Some(Box::new(Ran {
            result: *result,
            made: *done,
            reused: 0,
            remade: 0,
        }));
    }
    if let RunError::NotKept { ran, .. } = &error {
        finished = Some(ran.clone());
    }
    let by_user = INTERRUPT.load(Ordering::Relaxed);
    let cut = matches!(error, RunError::Interrupted { .. });
    let mut failure = Failure::from(error);
    if cut && !by_user {
        // The other side is gone.
        failure.exit = Exit::Environment;
    }
    Stopped(failure, finished)
}

/// How a command ends whose result is partial; it has been printed.
pub fn cut_short(result: &RunResult) -> Option<Failure> {
    let why = result.partial()?;
    let exit = match INTERRUPT.load(Ordering::Relaxed) {
        true => Exit::Interrupted,
        false => Exit::Environment,
    };
    Some(Failure::new(exit, format!("the result is partial: {why}")))
}

/// Runs one scenario, and says how fast and where the results are.
fn one(
    args: &Run,
    scenario: &Scenario,
    ground: &dyn Ground,
    live: &Live,
    out: Option<&Path>,
    rows: Option<&Rows>,
) -> Result<(Ran, Vec<String>), Stopped> {
    if ground.in_real_time() && !args.quiet {
        output::say(&real_time(scenario, ground));
    }
    if let (Some(peer), false) = (ground.peer(), args.quiet) {
        let notes = foreign::notes(scenario, peer);
        notes.iter().for_each(|note| output::warning(note));
    }
    output::detail(|| {
        let (cases, seeds) = (scenario.cases.len(), scenario.seeds.len());
        let (cases, seeds) = (counted(cases, "case"), counted(seeds, "seed"));
        format!(
            "{}: {cases} x {seeds} on ground {}",
            scenario.name,
            ground.name()
        )
    });
    let progress = args.progress.unless(args.quiet || args.live.dashboard);
    let mut progress = Progress::new(&scenario.name, progress);
    if let Some(dir) = out {
        progress = progress.into_directory(Outlook::new(args, scenario, dir));
    }
    let printed = rows.map(|rows| Printed {
        rows,
        progress: &progress,
    });
    let options = Options {
        jobs: args.jobs.map_or(0, usize::from),
        out,
        earlier: match args.replace {
            true => Earlier::Replaced,
            false => Earlier::resumed(args.resume),
        },
        captures: Captures {
            pcap: args.pcap,
            qlog: args.qlog,
        },
        cases: printed.as_ref().map(|by| Taken {
            by,
            // What continuous integration is given is made of everything.
            keep: match args.junit.is_some() || args.markdown.is_some() {
                true => Keep::All,
                false => Keep::Remarks,
            },
        }),
        progress: &progress,
        interrupt: &INTERRUPT,
    };
    let done = AtomicBool::new(false);
    let ran = std::thread::scope(|scope| {
        let dashboard = args.live.dashboard.then(|| {
            let title = format!("{} on ground {}", scenario.name, ground.name());
            let total = scenario.cases.len() * scenario.seeds.len();
            let done = &done;
            scope.spawn(move || dashboard::of_runs(title, total, live, &interrupt, done))
        });
        let ran = run_on(scenario, &options, ground);
        done.store(true, Ordering::Release);
        dashboard::closed(dashboard).map(|()| ran)
    })?;
    let took = progress.finish();
    let ran = ran.map_err(stopped)?;
    if !args.quiet {
        let notes = ground.notes();
        notes.iter().for_each(|note| output::warning(note));
    }
    let mut remarks = vec![speed(scenario, &ran, took, ground.in_real_time())];
    if let Some(dir) = out {
        let pictures = figure::write(scenario, &ResultDir::open(dir)?)?;
        remarks.push(format!("results: {}", dir.display()));
        remarks.extend(series_line(&ResultDir::open(dir)?));
        if args.pcap || args.qlog {
            remarks.push(format!("captures: {}", dir.join("captures").display()));
        }
        if pictures.cases > 0 {
            remarks.push(pictures_line(&pictures));
        }
        remarks.push(commands::report::beside(dir)?);
    }
    Ok((ran, remarks))
}

/// Rows that are printed as soon as their case is complete.
struct Rows {
    /// Those of CSV, under one header for all scenarios; `None`: NDJSON, without a header.
    columns: Option<view::Columns>,
    /// The header is printed.
    headed: AtomicBool,
    /// The runs are for these rows alone, not even for an exit code: they end when the reader does.
    are_all: bool,
}

impl Rows {
    /// The rows that are asked for, if they can be printed at once: not beside the dashboard, which
    /// has the terminal to itself, nor as CSV to another host, since only at the end is it known
    /// whether runs were cut short, for which CSV has a column.
    fn wanted(args: &Run, scenarios: &[Scenario], ground: &dyn Ground) -> Option<Rows> {
        let columns = match args.format {
            _ if args.live.dashboard => return None,
            Format::Csv if ground.peer().is_none() => Some(view::Columns::of_scenarios(scenarios)),
            Format::Ndjson => None,
            Format::Csv | Format::Json | Format::Table => return None,
        };
        Some(Rows {
            columns,
            headed: AtomicBool::new(false),
            are_all: match scenarios {
                [one] => one.expectations.is_empty() && !asks_for_more(args),
                _ => false,
            },
        })
    }
}

/// The runs are for more than what is printed.
fn asks_for_more(args: &Run) -> bool {
    args.out.is_some()
        || args.junit.is_some()
        || args.markdown.is_some()
        || args.live.prometheus.is_some()
}

/// Rows on stdout, beside the progress of their scenario.
struct Printed<'a> {
    rows: &'a Rows,
    progress: &'a Progress,
}

impl CaseSink for Printed<'_> {
    fn case(&self, index: usize, line: &CaseLine<'_>) -> io::Result<()> {
        let text = match &self.rows.columns {
            None => view::json_line(line),
            Some(columns) => {
                let head = match self.rows.headed.swap(true, Ordering::Relaxed) {
                    true => String::new(),
                    false => columns.head(),
                };
                head + &columns.rows(
                    view::Whose {
                        scenario: line.scenario,
                        ground: line.ground,
                        peer: line.peer,
                    },
                    index,
                    line.case,
                )
            }
        };
        let write = |out: &mut dyn io::Write| out.write_all(text.as_bytes());
        match self.progress.beside(|| output::part(write)) {
            // Ctrl-C ends the reader as well, and is the reason to report.
            Err(e) if output::is_closed(&e) && (!self.rows.are_all || interrupted_too()) => Ok(()),
            other => other,
        }
    }
}

/// Whether Ctrl-C was pressed. It also ends the reader of a pipe, which may be noticed here before
/// the signal is handled.
fn interrupted_too() -> bool {
    if !INTERRUPT.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    INTERRUPT.load(Ordering::Relaxed)
}

/// `time series: of 450 of 2250 runs, the first seeds of each case`, where not all runs have them.
fn series_line(dir: &ResultDir) -> Option<String> {
    let runs = &dir.manifest().runs;
    let having = runs.iter().filter(|r| !r.files.is_empty()).count();
    (0 < having && having < runs.len()).then(|| {
        let all = runs.len();
        format!("time series: of {having} of {all} runs, the first seeds of each case")
    })
}

/// The figures and the page of a result, and where they are.
pub fn pictures(scenario: &Scenario, dir: &Path) -> Result<Vec<String>, Failure> {
    let pictures = figure::write(scenario, &ResultDir::open(dir)?)?;
    let mut remarks = vec![format!("results: {}", dir.display())];
    if pictures.cases > 0 {
        remarks.push(pictures_line(&pictures));
    }
    remarks.push(commands::report::beside(dir)?);
    Ok(remarks)
}

/// `first-run: 4 runs on ground udp, one after the other in real time: 4 min 0 s`.
fn real_time(scenario: &Scenario, ground: &dyn Ground) -> String {
    let seconds: f64 = (scenario.cases.iter())
        .map(|case| case.run_spec(0).duration.as_secs_f64())
        .sum();
    let runs = scenario.cases.len() * scenario.seeds.len();
    format!(
        "{}: {} on ground {}, one after the other in real time: {}",
        scenario.name,
        counted(runs, "run"),
        ground.name(),
        clock(Duration::from_secs_f64(
            seconds * scenario.seeds.len() as f64
        ))
    )
}

/// Refuses to show runs that are over before anybody sees them.
fn watchable(args: &Run, ground: &dyn Ground) -> Result<(), Failure> {
    let asked = match &args.live {
        live if live.dashboard => "--dashboard",
        live if live.prometheus.is_some() => "--prometheus",
        _ => return Ok(()),
    };
    if !ground.in_real_time() {
        let message = format!("{asked}: ground {} is not in real time", ground.name());
        return Err(Failure::new(Exit::Usage, message)
            .hint("grounds in real time are udp and kernel, and udp with `--peer HOST`"));
    }
    if args.live.dashboard {
        dashboard::check()?;
    }
    Ok(())
}

/// `first-run: 4 runs, 240 s of virtual time in 1.3 s, 4.1 million packets per second`.
fn speed(scenario: &Scenario, ran: &Ran, took: Duration, real: bool) -> String {
    let mut line = format!("{}: {}", scenario.name, ran.counts());
    if ran.made > 0 && ran.reused == 0 {
        let cases = &ran.result.cases;
        let virtual_s: f64 = cases
            .iter()
            .map(|c| c.simulated_s * c.seeds.len() as f64)
            .sum();
        let packets: u64 = cases.iter().map(|c| c.delivered_packets).sum();
        let seconds = took.as_secs_f64().max(1e-9);
        let took = if seconds < 60.0 {
            format!("{} s", number(seconds, 2))
        } else {
            clock(took)
        };
        let covered = number(virtual_s, 3);
        // Writing to a string cannot fail.
        let _ = match real {
            true => write!(line, " of {covered} s together in {took}"),
            // Datagrams alone are no measure of speed.
            false if packets == 0 => write!(line, ", {covered} s of virtual time in {took}"),
            false => write!(
                line,
                ", {covered} s of virtual time in {took}, {} million packets per second",
                number(packets as f64 / seconds / 1e6, 2)
            ),
        };
    }
    if let Some(again) = ran.again() {
        let _ = write!(line, "; {again}");
    }
    line
}

/// `pictures: out/figures/overview.svg, and one of each of the 4 cases beside it (SVG and PNG)`.
fn pictures_line(pictures: &Written) -> String {
    match (&pictures.overview, &pictures.first) {
        (Some(overview), _) => format!(
            "pictures: {}, and one of each of {} beside it ({})",
            overview.display(),
            counted(pictures.cases, "case"),
            match pictures.as_png {
                true => "SVG and PNG",
                false => "SVG; PNG by `fullpipe figure`",
            }
        ),
        (None, first) => {
            let first = first.as_deref().unwrap_or(&pictures.dir);
            format!("picture: {} (SVG and PNG)", first.display())
        }
    }
}

fn headed_table(scenario: &Scenario, result: &RunResult, peer: Option<&str>) -> String {
    let cases = scenario.cases.len();
    let about = scenario
        .about
        .trim_start()
        .lines()
        .next()
        .unwrap_or_default();
    let colon = if about.is_empty() { "" } else { ": " };
    let (name, cases) = (&scenario.name, counted(cases, "case"));
    let seeds = seeds_text(scenario, result);
    let ground = match &result.kernel {
        Some(kernel) => format!(", on {kernel}"),
        None => String::new(),
    };
    let brought = brought_text(&result.brought);
    let brought = brought.map_or(String::new(), |brought| format!("{brought}\n"));
    // Labels of cases look like what a path was.
    let notes = peer.map_or_else(Vec::new, |peer| foreign::notes(scenario, peer));
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    let bursts = view::bursts(scenario, result);
    let bursts = bursts.map_or(String::new(), |bursts| format!("{bursts}\n"));
    format!(
        "{name}{colon}{about}\n{cases}, {seeds}{ground}\n{brought}{notes}\n{}{bursts}",
        view::table(result)
    )
}

/// `5 seeds each`; `5 to 12 seeds, by precision` where that decided how many there are.
fn seeds_text(scenario: &Scenario, result: &RunResult) -> String {
    let of = result.cases.iter().map(|case| case.seeds.len());
    let (Some(_), Some(least), Some(most)) =
        (&scenario.measure.precision, of.clone().min(), of.max())
    else {
        return format!("{} each", counted(scenario.seeds.len(), "seed"));
    };
    match least == most {
        true => format!("{}, by precision", counted(most, "seed")),
        false => format!("{least} to {}, by precision", counted(most, "seed")),
    }
}

fn array(results: &[RunResult]) -> String {
    let parts: Vec<String> = results
        .iter()
        .map(|r| r.to_json().trim_end().to_owned())
        .collect();
    format!("[\n{}\n]\n", parts.join(",\n"))
}

/// The first Ctrl-C sets [`INTERRUPT`] and says what is done until the end, `until_then`; the
/// second ends the program at once.
pub fn listen_for_interrupts(until_then: &'static str) -> Result<(), Failure> {
    let _ = UNTIL_THEN.set(until_then);
    let listening = ctrlc::set_handler(interrupt);
    listening.map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for Ctrl-C: {e}")))
}

/// Stops as a Ctrl-C does; the second time at once, with exit code 130. What follows within half a
/// second is the same wish: `timeout` signals a program and then its group.
pub fn interrupt() {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    if INTERRUPT.swap(true, Ordering::Relaxed) {
        if FIRST.get_or_init(Instant::now).elapsed() < SAME_WISH {
            return;
        }
        dashboard::leave();
        std::process::exit(Exit::Interrupted as i32);
    }
    FIRST.get_or_init(Instant::now);
    let until_then = UNTIL_THEN.get().copied().unwrap_or(RUNS_FINISH);
    output::say(&format!(
        "interrupted: {until_then}; once more to stop at once"
    ));
}

const SAME_WISH: Duration = Duration::from_millis(500);

/// What commands that make runs do when they are interrupted: no further one begins.
pub const RUNS_FINISH: &str = "waiting for the runs in flight";

static UNTIL_THEN: OnceLock<&'static str> = OnceLock::new();

/// Set by Ctrl-C.
pub static INTERRUPT: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use fullpipe_metrics::Fidelity;

    use super::*;
    use crate::view::testing::two_cases;

    #[test]
    fn a_run_that_does_not_count_has_an_exit_code_of_its_own() {
        let mut result = two_cases(1);
        assert_eq!(exit(&[result.clone()], true), Exit::Failed);
        result.cases[1].fidelity = Some(Fidelity::default());
        assert_eq!(exit(&[result.clone()], true), Exit::NotValid);
        assert_eq!(exit(&[result.clone()], false), Exit::Failed);
        result.expectations.clear();
        assert_eq!(exit(&[result.clone()], false), Exit::Ok);
        result.cases[1].fidelity.as_mut().unwrap().valid = true;
        assert_eq!(exit(&[result], true), Exit::Ok);
    }
}
