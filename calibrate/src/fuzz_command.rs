//! `fullpipe-calibrate fuzz`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use fullpipe_calibrate::fuzz::{
    Class, Draft, Kernel, Log, Paths, Record, Search, Summary, Trial, again, corpus_dir, disagrees,
    findings, least, line, read_corpus, search, trial,
};
use rayon::prelude::*;

#[derive(Clone, Copy, ValueEnum)]
enum SummaryFormat {
    /// For people
    Table,
    /// For pages: docs/search.md
    Markdown,
    /// For programs
    Json,
}

#[derive(Args)]
pub struct FuzzArgs {
    /// First seed; the following ones are tried in turn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Paths that scenarios are drawn over; a directory of --out is for one kind
    #[arg(long, value_enum, value_name = "KIND", default_value = "small")]
    paths: Paths,
    /// Scenarios that both grounds shall have run, earlier ones in --out included
    #[arg(long, value_name = "N", default_value_t = 2000)]
    count: usize,
    /// Time after which no further scenario is begun: 90s, 30m, 2h
    #[arg(long = "for", value_name = "TIME", value_parser = time, default_value = "30m")]
    time: Duration,
    /// Scenarios at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Kernel, as `fullpipe linux list` names it
    #[arg(long, value_name = "NAME", default_value = "6.1")]
    kernel: String,
    /// Only scenarios of these classes
    #[arg(long, value_enum, value_name = "CLASS", value_delimiter = ',')]
    class: Vec<Class>,
    /// Only scenarios in which a flow has this stack: cubic-linux
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    /// Try the scenario of this seed alone, print it with every metric, keep nothing
    #[arg(long, value_name = "SEED")]
    only: Option<u64>,
    /// Hold today's simulator against what the kernel did in --out, instead of new scenarios
    #[arg(long)]
    again: bool,
    /// With --again: fail if a scenario that agreed, or was within chance, does not any more
    #[arg(long, requires = "again")]
    strict: bool,
    /// Make the largest disagreements of --out as small as they get: one per class, metric and
    /// sign, so many at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    minimise: usize,
    /// Write what was minimised into this directory, with the kernel's numbers
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Hold the simulator against the corpus of the repository, or of this directory
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    corpus: Option<Option<PathBuf>>,
    /// With --corpus: take the kernel's numbers anew
    #[arg(long, requires = "corpus")]
    freeze: bool,
    /// Directory of what was tried; the same one goes on where it was
    #[arg(long, value_name = "DIR", default_value = "fullpipe-out/fuzz")]
    out: PathBuf,
    /// Form of the summary
    #[arg(long, value_enum, default_value = "table")]
    format: SummaryFormat,
    /// Where there is no kernel: say why, and succeed
    #[arg(long)]
    optional: bool,
    /// A line on the standard error for every scenario
    #[arg(long)]
    verbose: bool,
}

pub const EXAMPLES: &str = "Examples:
  fullpipe-calibrate fuzz --for 10m
  fullpipe-calibrate fuzz --count 500 --class aqm,ecn --stack cubic-linux
  fullpipe-calibrate fuzz --kernel 6.12 --out fuzz-6.12 --jobs 2
  fullpipe-calibrate fuzz --paths long-fat --out fuzz-long-fat
  fullpipe-calibrate fuzz --only 1234             one scenario, as a file and with all metrics
  fullpipe-calibrate fuzz --again                 has a change of the simulator helped?
  fullpipe-calibrate fuzz --count 0 --minimise 5  five of the disagreements found so far, small
  fullpipe-calibrate fuzz --only 1234 --minimise 1
  fullpipe-calibrate fuzz --corpus                what is known, against today's simulator

Stop it at any time: the same command goes on where it was. The kernel is made by
`fullpipe linux build`.";

static NEVER: AtomicBool = AtomicBool::new(false);

pub fn fuzz(a: &FuzzArgs) -> Result<(), String> {
    if let Some(dir) = &a.corpus {
        return corpus(a, &dir.clone().unwrap_or_else(corpus_dir));
    }
    if let Some(seed) = a.only {
        return one(a, seed);
    }
    let (mut log, mut records) = Log::open(&a.out).map_err(|e| e.to_string())?;
    if a.again {
        let kernel = Kernel::find(&a.kernel);
        if let Err(why) = &kernel {
            eprintln!("no run of the kernel is added: {why}");
        }
        let now = once_more(&records, kernel.ok().as_ref());
        let parted = parted(&records, &now);
        // Whoever runs it again is to find the same.
        if !a.strict || parted.is_empty() {
            log.replace(&now).map_err(|e| e.to_string())?;
        }
        print(a, &now)?;
        for record in &parted {
            eprintln!("does not agree any more: {}", line(record));
        }
        return match parted.len() {
            n if a.strict && n > 0 => Err(format!("{n} scenarios do not agree any more")),
            _ => Ok(()),
        };
    }
    let kernel = match Kernel::find(&a.kernel) {
        Err(why) if a.optional => {
            eprintln!("skipped: {why}");
            return Ok(());
        }
        other => other?,
    };
    let what = Search {
        first: a.seed,
        paths: a.paths,
        count: a.count,
        time: a.time,
        jobs: a.jobs,
        classes: a.class.clone(),
        stack: a.stack.clone(),
    };
    let progress = Progress::new(a.verbose);
    let hear = |r: &Record| progress.hear(r);
    search(&what, &kernel, &mut log, &mut records, &NEVER, &hear).map_err(|e| e.to_string())?;
    print(a, &records)?;
    for record in findings(&records).into_iter().take(a.minimise) {
        small(a, record, &kernel)?;
    }
    Ok(())
}

/// Minimises what a record shows, prints and keeps it.
fn small(a: &FuzzArgs, record: &Record, kernel: &Kernel) -> Result<(), String> {
    let Some((name, kept)) = least(record, kernel) else {
        println!("\n{} does not show it again", record.seed);
        return Ok(());
    };
    println!("\n# {}\n{kept}", line(record));
    let Some(dir) = &a.keep else { return Ok(()) };
    let path = dir.join(name).with_extension("toml");
    std::fs::create_dir_all(dir).map_err(|e| e.to_string())?;
    std::fs::write(&path, kept.to_string()).map_err(|e| format!("{}: {e}", path.display()))
}

/// Known scenarios, and whether they do what is expected.
fn corpus(a: &FuzzArgs, dir: &Path) -> Result<(), String> {
    let kernel = a.freeze.then(|| Kernel::find(&a.kernel)).transpose()?;
    let mut unexpected = 0;
    for (path, mut kept) in read_corpus(dir)? {
        if let Some(kernel) = &kernel {
            kept.freeze(kernel)?;
            std::fs::write(&path, kept.to_string()).map_err(|e| e.to_string())?;
        }
        let now = disagrees(&kept.check());
        unexpected += usize::from(now != Some(kept.disagrees));
        let word = |d: bool| if d { "disagrees" } else { "agrees" };
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let now = now.map_or("cannot be run", word);
        println!(
            "{name}: expected {}, {now}; {}",
            word(kept.disagrees),
            kept.cause
        );
    }
    match unexpected {
        0 => Ok(()),
        n => Err(format!("{n} are not as expected")),
    }
}

fn one(a: &FuzzArgs, seed: u64) -> Result<(), String> {
    // As it was tried, if it was: the draws of another version may be others.
    let logged = Log::open(&a.out)
        .map(|(_, records)| records)
        .unwrap_or_default();
    let logged = logged.into_iter().find(|r| r.seed == seed);
    let kernel = Kernel::find(&a.kernel)?;
    let (class, draft) = match logged {
        Some(r) => (r.class, Draft::parse(&r.scenario)?.with_kernel_queue()),
        None => {
            let drawn = kernel.draw(seed, a.paths, a.stack.as_deref());
            (drawn.class, drawn.draft)
        }
    };
    println!("{draft}");
    let result = trial(&draft, class, &kernel).map_err(|_| "interrupted")?;
    if a.minimise > 0 {
        let record = Record {
            seed,
            class,
            stack: draft.stacks(),
            scenario: draft.to_string(),
            kernel: kernel.fingerprint().to_owned(),
            trial: result,
        };
        return small(a, &record, &kernel);
    }
    match &result {
        Trial::Compared(c) if !matches!(a.format, SummaryFormat::Json) => {
            println!("metric        flow        Linux    simulator      size    chance");
            for d in &c.differences {
                println!(
                    "{:<12} {:>5} {:>12.4} {:>12.4} {:>+7.1} % {:>7.1} %  {}",
                    d.metric.name(),
                    d.flow,
                    d.linux,
                    d.sim,
                    d.size * 100.0,
                    d.chance * 100.0,
                    d.verdict.name()
                );
            }
            for broken in &c.broken {
                println!("{broken}");
            }
        }
        Trial::Refused { reason } if !matches!(a.format, SummaryFormat::Json) => {
            println!("{reason}")
        }
        other => println!(
            "{}",
            serde_json::to_string_pretty(other).map_err(|e| e.to_string())?
        ),
    }
    Ok(())
}

fn once_more(records: &[Record], kernel: Option<&Kernel>) -> Vec<Record> {
    let one = |r: &Record| again(r, kernel).unwrap_or_else(|_| r.clone());
    records.par_iter().map(one).collect()
}

/// Those of `now` that are not within the bounds or chance any more.
fn parted<'a>(before: &[Record], now: &'a [Record]) -> Vec<&'a Record> {
    let both = before.iter().zip(now);
    let parted = both.filter(|(b, n)| is_close(b) && !is_close(n));
    parted.map(|(_, n)| n).collect()
}

fn is_close(record: &Record) -> bool {
    disagrees(&record.trial) == Some(false)
}

fn print(a: &FuzzArgs, records: &[Record]) -> Result<(), String> {
    let summary = Summary::of(records);
    match a.format {
        SummaryFormat::Table => print!("{}", summary.table()),
        SummaryFormat::Markdown => print!("{}", summary.markdown()),
        SummaryFormat::Json => {
            let text = serde_json::to_string_pretty(&summary);
            println!("{}", text.map_err(|e| e.to_string())?);
        }
    }
    Ok(())
}

/// A line now and then.
struct Progress {
    verbose: bool,
    begin: Instant,
    state: Mutex<(usize, Instant)>,
}

impl Progress {
    #[allow(clippy::disallowed_methods)] // Progress for people.
    fn new(verbose: bool) -> Self {
        let begin = Instant::now();
        Self {
            verbose,
            begin,
            state: Mutex::new((0, begin)),
        }
    }

    #[allow(clippy::disallowed_methods)] // Progress for people.
    fn hear(&self, record: &Record) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        state.0 += 1;
        let now = Instant::now();
        if self.verbose {
            eprintln!("{}", line(record));
        } else if now.duration_since(state.1) >= Duration::from_secs(15) {
            state.1 = now;
            let seconds = now.duration_since(self.begin).as_secs_f64();
            let per_minute = state.0 as f64 / seconds * 60.0;
            eprintln!(
                "{} scenarios, {per_minute:.0} a minute; {}",
                state.0,
                line(record)
            );
        }
    }
}

/// A number of seconds, minutes or hours.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: write 90s, 30m or 2h");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}
