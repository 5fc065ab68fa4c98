//! `fullpipe linux`.

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::time::Instant;

use fullpipe_linux::{LinuxError, Product, Request, Source, cache};

use crate::args::{Linux, LinuxAction, LinuxBuild};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::clock;

/// Runs the command.
pub fn run(args: &Linux) -> Result<Exit, Failure> {
    match &args.action {
        LinuxAction::Build(args) => build(args),
        LinuxAction::List => list(),
    }
}

fn build(args: &LinuxBuild) -> Result<Exit, Failure> {
    let source = match &args.source {
        Some(path) => Source::Path(path.clone()),
        None => Source::Debian(args.version.clone()),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let request = Request {
        source,
        name: args.name.clone(),
        hz: args.hz,
        jobs: args.jobs.map_or(cores, usize::from),
    };
    let name = request.name();
    if let Ok(source) = request.path() {
        output::say(&format!(
            "building {} into {}: about four minutes on two idle cores, {SIZE}",
            source.display(),
            cache().join(&name).display()
        ));
    }
    #[allow(clippy::disallowed_methods)] // How long a build took is for people.
    let begin = Instant::now();
    let product = fullpipe_linux::build(&request, &|step| output::say(step))?;
    let megabytes = size(&product.dir) / 1_000_000;
    output::say(&format!(
        "Linux {} with {} ticks a second in {}, {megabytes} MB: `fullpipe run SCENARIO --ground \
         linux{}`",
        product.release,
        product.hz,
        clock(begin.elapsed()),
        match name == fullpipe_linux::DEFAULT_VERSION {
            true => String::new(),
            false => format!(" --kernel {name}"),
        }
    ));
    Ok(Exit::Ok)
}

/// What a build takes on the disk.
const SIZE: &str = "0.6 GB";

/// Bytes below a directory.
fn size(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|e| match e.metadata() {
        Ok(m) if m.is_dir() => size(&e.path()),
        Ok(m) => m.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn list() -> Result<Exit, Failure> {
    let all = Product::all();
    if all.is_empty() {
        output::say("no kernel has been built: `fullpipe linux build`");
    } else if io::stdout().is_terminal() {
        output::data("kernel\trelease\tclock\tmodule\tBBR\n")?;
    }
    for (name, product) in all {
        let module = product.module.as_deref().unwrap_or("-");
        let (release, hz) = (&product.release, product.hz);
        let bbr = product
            .bbr
            .map_or("-".to_owned(), |n| format!("version {n}"));
        output::data(&format!("{name}\t{release}\tHZ={hz}\t{module}\t{bbr}\n"))?;
    }
    Ok(Exit::Ok)
}

impl From<LinuxError> for Failure {
    fn from(error: LinuxError) -> Self {
        let hint = error.hint();
        Self::new(Exit::Environment, error.to_string()).hint(hint)
    }
}
