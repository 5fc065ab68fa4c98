//! `fullpipe falsify`: which expectations could fail at all.

use fullpipe_grounds::Sim;
use fullpipe_report::{falsification, page::REPORT};
use fullpipe_results::capture::Captures;
use fullpipe_results::falsify::{Depth, Falsification, Trial};
use fullpipe_results::run::{Options, RunError};
use fullpipe_results::store::{Cache, Earlier};
use fullpipe_scenario::Overrides;

use super::check::counted;
use super::run::{INTERRUPT, RUNS_FINISH, listen_for_interrupts, load};
use crate::args::{Falsify, ShortFormat, ShowProgress};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{output, view};

/// Runs the command.
pub fn falsify(args: &Falsify) -> Result<Exit, Failure> {
    let overrides = Overrides {
        set: args.set.clone(),
        seed: None,
        repeat: args.repeat,
        quick: args.quick,
        world: Vec::new(),
    };
    let (mut scenarios, _) = load(&args.scenarios, &overrides)?;
    let mut narrowed = false;
    for silent in scenarios.iter().filter(|s| s.expectations.is_empty()) {
        narrowed |= !silent.left_out.is_empty();
        let name = &silent.name;
        output::warning(&match silent.left_out.len() {
            0 => format!("{name} expects nothing: it cannot fail"),
            n => format!(
                "{name} expects nothing here: --quick or --set leaves out {}",
                counted(n, "expectation")
            ),
        });
    }
    scenarios.retain(|s| !s.expectations.is_empty());
    if scenarios.is_empty() {
        let hint = match narrowed {
            true => "keep a case in [quick] that an [[expect]] is about, or leave --quick out",
            false => "write an [[expect]]: metric, bound and the source of the bound",
        };
        return Err(Failure::new(Exit::Usage, "there is no expectation").hint(hint));
    }
    listen_for_interrupts(RUNS_FINISH)?;
    let mut all = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.clone();
        let trial = Trial::new(scenario, &overrides).map_err(|refused| {
            Failure::new(Exit::Usage, refused.to_string()).hint(refused.hint())
        })?;
        if args.dry_run {
            let (worlds, runs) = (trial.worlds(), trial.runs(&Sim));
            let (worlds, runs) = (counted(worlds, "wrong world"), counted(runs, "run"));
            output::data(&format!("{name}: {worlds}, at most {runs}\n"))?;
            for (world, left_out) in trial.left_out() {
                output::data(&view::left_out(&world.about, world.line, left_out))?;
            }
            continue;
        }
        let found = run(args, &name, &trial)?;
        if args.format == ShortFormat::Table {
            output::data(&view::falsification(&found))?;
        }
        all.push(found);
    }
    if args.format == ShortFormat::Table && all.len() > 1 {
        output::data(&format!("\n{}", view::falsifications(&all)))?;
    }
    if let Some(dir) = args.out.as_deref().filter(|_| !args.dry_run) {
        let made = std::fs::create_dir_all(dir);
        made.map_err(|e| Failure::io(dir.display(), &e))?;
        falsification::write(dir, &all, &view::advice).map_err(RunError::from)?;
        if dir.join(REPORT).exists() {
            // Results lie there: their report has a section for this.
            output::say(&super::report::beside(dir)?);
        }
    }
    match (args.format, all.as_slice()) {
        (ShortFormat::Json, [one]) => output::data(&one.to_json())?,
        (ShortFormat::Json, several) => {
            let texts: Vec<String> = several.iter().map(Falsification::to_json).collect();
            output::data(&format!("[\n{}]\n", texts.join(",\n")))?;
        }
        (ShortFormat::Table, _) => {}
    }
    match all.iter().all(Falsification::passed) {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}

fn run(args: &Falsify, name: &str, trial: &Trial) -> Result<Falsification, Failure> {
    let cache = Cache::new(&fullpipe_linux::user_cache().join("falsify"));
    let progress = Progress::new(name, ShowProgress::Auto.unless(args.quiet));
    let options = Options {
        jobs: args.jobs.map_or(0, usize::from),
        out: None,
        earlier: Earlier::Remade,
        captures: Captures::default(),
        cases: None,
        progress: &progress,
        interrupt: &INTERRUPT,
    };
    let depth = match args.quick && !args.every_world {
        true => Depth::FirstFailure,
        false => Depth::EveryWorld,
    };
    let found = trial.run(depth, &options, &Sim, (!args.fresh).then_some(&cache));
    progress.finish();
    cache.shrink(KEPT);
    found.map_err(|error| match error {
        // It has no directory to resume.
        RunError::Interrupted { kept, .. } => {
            let hint = match kept {
                true => "finished runs are kept: the same command goes on with them",
                false => "without `--fresh` finished runs are kept",
            };
            Failure::new(Exit::Interrupted, error.to_string()).hint(hint)
        }
        error => error.into(),
    })
}

/// Runs in the cache, of some 5 kB each.
const KEPT: usize = 20_000;
