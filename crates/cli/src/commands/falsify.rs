//! `fullpipe falsify`: which expectations could fail at all.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use fullpipe_grounds::Sim;
use fullpipe_results::capture::Captures;
use fullpipe_results::falsify::{Falsification, Trial};
use fullpipe_results::run::Options;
use fullpipe_scenario::Overrides;

use super::check::counted;
use super::run::{INTERRUPT, listen_for_interrupts, load};
use crate::args::{Falsify, ShortFormat};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{output, view};

/// Runs the command.
pub fn falsify(args: &Falsify) -> Result<Exit, Failure> {
    let overrides = Overrides {
        set: args.set.clone(),
        seed: None,
        repeat: args.repeat.map(u32::from),
        quick: args.quick,
        world: Vec::new(),
    };
    let (mut scenarios, _) = load(&args.scenarios, &overrides)?;
    for silent in scenarios.iter().filter(|s| s.expectations.is_empty()) {
        output::warning(&format!("{} expects nothing: it cannot fail", silent.name));
    }
    scenarios.retain(|s| !s.expectations.is_empty());
    if scenarios.is_empty() {
        let hint = "write an [[expect]]: metric, bound and the source of the bound";
        return Err(Failure::new(Exit::Usage, "there is no expectation").hint(hint));
    }
    listen_for_interrupts()?;
    let mut all = Vec::new();
    for scenario in scenarios {
        let name = scenario.name.clone();
        let trial = Trial::new(scenario, &overrides);
        if args.dry_run {
            let (worlds, runs) = (trial.worlds(), trial.runs());
            let (worlds, runs) = (counted(worlds, "wrong world"), counted(runs, "run"));
            output::data(&format!("{name}: {worlds}, {runs} in all\n"))?;
            continue;
        }
        let found = run(args, &name, &trial)?;
        if args.format == ShortFormat::Table {
            output::data(&view::falsification(&found))?;
        }
        all.push(found);
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
    let cache = fullpipe_linux::user_cache().join("falsify");
    let directory = (!args.fresh).then(|| trial.directory(&cache, &Sim));
    if let Some(directory) = &directory {
        let made = std::fs::create_dir_all(directory);
        made.map_err(|e| Failure::io(directory.display(), &e))?;
    }
    let progress = Progress::new(name, args.quiet);
    let options = Options {
        jobs: args.jobs.map_or(0, usize::from),
        out: directory.as_deref(),
        resume: directory.is_some(),
        captures: Captures::default(),
        progress: &progress,
        interrupt: &INTERRUPT,
    };
    let found = trial.run(&options, &Sim);
    progress.finish();
    forget_the_oldest(&cache);
    Ok(found?)
}

/// Removes what was not looked at for longest, so that the cache does not grow for ever.
fn forget_the_oldest(cache: &Path) {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let dated = |entry: std::fs::DirEntry| -> Option<(SystemTime, PathBuf)> {
        Some((entry.metadata().ok()?.modified().ok()?, entry.path()))
    };
    let mut all: Vec<(SystemTime, PathBuf)> = entries.filter_map(dated).collect();
    all.sort();
    let too_many = all.len().saturating_sub(KEPT);
    for (_, path) in all.iter().take(too_many) {
        // What stays is removed the next time.
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Trials in the cache.
const KEPT: usize = 64;
