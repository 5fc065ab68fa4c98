//! The search itself: scenario after scenario, until there are enough or the time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::corpus::Kept;
use super::draft::Draft;
use super::draw::{Class, Paths};
use super::judge::{Metric, Verdict, worst};
use super::log::{Log, Record};
use super::minimise::minimise;
use super::run::Kernel;
use super::trial::{Stopped, Trial, attempt};

/// The limits of a search, and what it leaves out.
#[derive(Clone, Debug)]
pub struct Search {
    /// First of the scenarios' seeds.
    pub first: u64,
    /// Small paths or long fat ones: sets how many scenarios a minute are tried.
    pub paths: Paths,
    /// Scenarios that both grounds shall have run, those in the log included.
    pub count: usize,
    /// Wall time after which no further one is begun.
    pub time: Duration,
    /// Scenarios at once.
    pub jobs: usize,
    /// Classes that are tried; empty: all.
    pub classes: Vec<Class>,
    /// Only scenarios with this congestion control.
    pub stack: Option<String>,
}

impl Search {
    fn wants(&self, class: Class, stack: &str) -> bool {
        let classes = self.classes.is_empty() || self.classes.contains(&class);
        classes
            && self
                .stack
                .as_ref()
                .is_none_or(|s| stack.split('+').any(|one| one == s))
    }
}

/// Tries a scenario in the simulator and in a kernel.
///
/// # Errors
/// Stopped from outside.
pub fn trial(draft: &Draft, class: Class, kernel: &Kernel) -> Result<Trial, Stopped> {
    attempt(draft, class, kernel.fingerprint(), &mut |spec, _| {
        kernel.check(spec)?;
        kernel.run(spec).map(Some)
    })
}

/// Searches, and adds what comes of it to the log and to `records`. `hear` is told of every
/// scenario that was tried.
///
/// # Errors
/// The log cannot be written.
pub fn search(
    search: &Search,
    kernel: &Kernel,
    log: &mut Log,
    records: &mut Vec<Record>,
    stop: &AtomicBool,
    hear: &(dyn Fn(&Record) + Sync),
) -> io::Result<()> {
    let known: BTreeSet<u64> = records.iter().map(|r| r.seed).collect();
    let run = |r: &Record| matches!(r.trial, Trial::Compared(_));
    let compared = AtomicUsize::new(records.iter().filter(|r| run(r)).count());
    let next = AtomicU64::new(search.first);
    let begin = Instant::now();
    let over = AtomicBool::new(false);
    let kept = Mutex::new((log, records, None));
    let work = || {
        loop {
            let enough = compared.load(Ordering::Relaxed) >= search.count;
            let late = begin.elapsed() >= search.time;
            if enough || late || over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                return;
            }
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if known.contains(&seed) {
                continue;
            }
            let drawn = kernel.draw(seed, search.paths, search.stack.as_deref());
            let stack = drawn.draft.stacks();
            if !search.wants(drawn.class, &stack) {
                continue;
            }
            let Ok(trial) = trial(&drawn.draft, drawn.class, kernel) else {
                return;
            };
            let record = Record {
                seed,
                class: drawn.class,
                stack,
                scenario: drawn.draft.to_string(),
                kernel: kernel.fingerprint().to_owned(),
                trial,
            };
            hear(&record);
            if run(&record) {
                compared.fetch_add(1, Ordering::Relaxed);
            }
            let mut kept = kept.lock().unwrap_or_else(|e| e.into_inner());
            if let Err(error) = kept.0.add(&record) {
                kept.2 = Some(error);
                over.store(true, Ordering::Relaxed);
            }
            kept.1.push(record);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..search.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let kept = kept.into_inner().unwrap_or_else(|e| e.into_inner());
    kept.2.map_or(Ok(()), Err)
}

/// Holds the simulator as it is today against what the kernel did when a scenario was tried. Runs
/// that the verdict lacks are made if there is the same kernel.
///
/// # Errors
/// Stopped from outside.
pub fn again(record: &Record, kernel: Option<&Kernel>) -> Result<Record, Stopped> {
    let frozen = match &record.trial {
        Trial::Compared(c) => c.linux.clone(),
        _ => Vec::new(),
    };
    let kernel = kernel.filter(|k| k.fingerprint() == record.kernel);
    let same = Draft::parse(&record.scenario).map(Draft::with_kernel_queue);
    let (Ok(draft), false) = (same, frozen.is_empty()) else {
        return Ok(record.clone());
    };
    let trial = attempt(&draft, record.class, &record.kernel, &mut |spec, n| match (
        frozen.get(n as usize),
        kernel,
    ) {
        (Some(seen), _) => Ok(Some(seen.clone())),
        (None, Some(kernel)) => kernel.run(spec).map(Some),
        (None, None) => Ok(None),
    })?;
    Ok(Record {
        trial,
        scenario: draft.to_string(),
        ..record.clone()
    })
}

/// Of every class, metric and sign the record with the largest disagreement, the most frequent
/// first.
pub fn findings(records: &[Record]) -> Vec<&Record> {
    let mut found: BTreeMap<_, (usize, f64, &Record)> = BTreeMap::new();
    for record in records {
        let Some((metric, size)) = shown(record.class, &record.trial) else {
            continue;
        };
        let key = (record.class, metric, size > 0.0);
        let entry = found.entry(key).or_insert((0, 0.0, record));
        entry.0 += 1;
        if size.abs() > entry.1 {
            (entry.1, entry.2) = (size.abs(), record);
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    found.into_iter().map(|f| f.2).collect()
}

/// The metric that is furthest off, and how far.
fn shown(class: Class, trial: &Trial) -> Option<(Metric, f64)> {
    match trial {
        Trial::Compared(c) => worst(class, &c.differences).map(|d| (d.metric, d.size)),
        _ => None,
    }
}

/// Scenarios that are tried to make one smaller.
const TRIALS: usize = 60;

/// The smallest scenario that disagrees as that of a record does, and a name for it; `None` if that
/// one does not any more.
pub fn least(record: &Record, kernel: &Kernel) -> Option<(String, Kept)> {
    let class = record.class;
    let draft = Draft::parse(&record.scenario).ok()?.with_kernel_queue();
    let first = trial(&draft, class, kernel).ok()?;
    let (metric, size) = shown(class, &first)?;
    let mut last = first;
    let least = minimise(&draft, TRIALS, &mut |draft| {
        let Ok(now) = trial(draft, class, kernel) else {
            return false;
        };
        // As far in the same direction: another defect is another finding.
        let same = shown(class, &now).is_some_and(|(m, s)| m == metric && s * size > 0.0);
        if same {
            last = now;
        }
        same
    });
    let Trial::Compared(compared) = last else {
        return None;
    };
    let stack = least.stacks().replace("-linux", "").replace('+', "-");
    let more = if size > 0.0 { "more" } else { "less" };
    let name = format!("{}-{stack}-{more}-{}", class.name(), metric.name());
    let step = super::draft::Step::Key("name".to_owned());
    let draft = least.with(&[step], Some(name.clone().into()))?;
    let kept = Kept {
        class,
        disagrees: true,
        cause: "open".to_owned(),
        kernel: kernel.fingerprint().to_owned(),
        linux: compared.linux,
        draft,
    };
    Some((name, kept))
}

/// One line about a record, for the progress of a search.
pub fn line(record: &Record) -> String {
    let what = match &record.trial {
        Trial::Refused { reason } => format!("refused: {reason}"),
        Trial::Fault { what } => format!("FAULT: {what}"),
        Trial::Compared(c) => match worst(record.class, &c.differences) {
            Some(d) if c.verdict == Verdict::Disagrees => format!(
                "DISAGREES: {} {:.4} in Linux, {:.4} in the simulator ({:+.1} %)",
                d.metric.name(),
                d.linux,
                d.sim,
                d.size * 100.0
            ),
            _ => c.verdict.name().to_owned(),
        },
    };
    let (seed, class, stack) = (record.seed, record.class.name(), &record.stack);
    format!("{seed} {class} {stack}: {what}")
}
