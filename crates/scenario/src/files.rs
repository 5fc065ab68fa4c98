//! Files that a scenario refers to: delivery traces, waveforms, distributions of sizes. Each is
//! read once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fullpipe_run::DeliveryTrace;
use fullpipe_units::{Rate, Segments, Span};

use super::document::shorten;

/// Message and hint.
pub(super) type Wrong = (String, String);

type Known<T> = RefCell<BTreeMap<PathBuf, Result<Arc<T>, Wrong>>>;

/// The files, and where relative paths begin.
#[derive(Debug, Default)]
pub(super) struct Files {
    base: PathBuf,
    texts: Known<String>,
    traces: Known<DeliveryTrace>,
    rates: Known<Vec<(Span, Rate)>>,
    sizes: Known<Vec<(f64, f64)>>,
}

impl Files {
    /// Files beside the scenario of this path; those of a built-in one are beside the user.
    pub fn new(origin: &str) -> Self {
        let base = match origin.starts_with("built-in:") {
            true => None,
            false => Path::new(origin).parent(),
        };
        Self {
            base: base.unwrap_or(Path::new("")).to_owned(),
            ..Self::default()
        }
    }

    /// Every file that was read, by the path it was read from.
    pub fn read_so_far(&self) -> Vec<(String, String)> {
        let texts = self.texts.borrow();
        let read = texts.iter().filter_map(|(path, text)| {
            let text = text.as_ref().ok()?;
            Some((path.display().to_string(), text.as_ref().clone()))
        });
        read.collect()
    }

    /// Delivery opportunities of a mahimahi trace: one time in milliseconds per line, never
    /// falling.
    pub fn trace(&self, name: &str, beside: bool) -> Result<Arc<DeliveryTrace>, Wrong> {
        self.known(&self.traces, name, beside, |text| {
            let mut opportunities: Vec<u32> = Vec::new();
            for (line, words) in lines(text) {
                let hint = || "each line is a time in milliseconds, as in `15`".to_owned();
                let time = match words.as_slice() {
                    [word] => word
                        .parse::<u32>()
                        .ok()
                        .filter(|time| *time <= MAX_TRACE_MS),
                    _ => None,
                };
                let Some(time) = time else {
                    let message = format!("line {line} is no whole number of milliseconds");
                    return Err((message, hint()));
                };
                if opportunities.last().is_some_and(|last| time < *last) {
                    return Err((format!("line {line} is before the one above it"), hint()));
                }
                opportunities.push(time);
            }
            match opportunities.last() {
                None => Err(empty()),
                Some(0) => {
                    let hint = "the last line is the period of the trace".to_owned();
                    Err(("the trace lasts no time".to_owned(), hint))
                }
                Some(_) => Ok(DeliveryTrace { opportunities }),
            }
        })
    }

    /// Seconds and the rate that holds from then on.
    pub fn rates(&self, name: &str, beside: bool) -> Result<Arc<Vec<(Span, Rate)>>, Wrong> {
        self.known(&self.rates, name, beside, |text| {
            let mut steps: Vec<(Span, Rate)> = Vec::new();
            for (line, words) in lines(text) {
                let hint =
                    || "each line is a time in seconds and a rate, as in `2.5 10Mbit/s`".to_owned();
                let wrong = |what: &str| (format!("line {line}: {what}"), hint());
                let [time, rate] = words.as_slice() else {
                    // A heading.
                    if steps.is_empty() && words.iter().all(|word| word.parse::<f64>().is_err()) {
                        continue;
                    }
                    return Err(wrong("two columns are expected"));
                };
                let heading = steps.is_empty() && line == 1 && time.parse::<f64>().is_err();
                if heading {
                    continue;
                }
                let seconds = time.parse::<f64>().ok();
                let seconds = seconds.filter(|s| (0.0..=MAX_SECONDS).contains(s));
                let seconds = seconds
                    .ok_or_else(|| wrong(&format!("`{}` is no time in seconds", shorten(time))))?;
                let plain = rate
                    .parse::<f64>()
                    .ok()
                    .filter(|r| (0.0..=MAX_RATE).contains(r));
                let rate = match plain {
                    Some(bits) => Some(Rate::from_bits_per_sec(bits.round() as u64)),
                    None => rate.parse::<Rate>().ok(),
                };
                let rate = rate.ok_or_else(|| wrong("the rate needs a unit, or counts bit/s"))?;
                let at = Span::from_secs_f64(seconds);
                if steps.last().is_some_and(|(last, _)| at <= *last) {
                    return Err(wrong("the times must rise"));
                }
                if steps.is_empty() && at != Span::ZERO {
                    steps.push((Span::ZERO, Rate::from_bits_per_sec(0)));
                }
                steps.push((at, rate));
            }
            if steps.is_empty() {
                Err(empty())
            } else {
                Ok(steps)
            }
        })
    }

    /// Segments, and the probability of at most so many.
    pub fn sizes(&self, name: &str, beside: bool) -> Result<Arc<Vec<(f64, f64)>>, Wrong> {
        self.known(&self.sizes, name, beside, |text| {
            let mut points: Vec<(f64, f64)> = Vec::new();
            for (line, words) in lines(text) {
                let hint = || {
                    "each line is a number of segments and a probability, as in `10 0.5`".to_owned()
                };
                let wrong = |what: &str| (format!("line {line}: {what}"), hint());
                let [size, part] = words.as_slice() else {
                    return Err(wrong("two columns are expected"));
                };
                let number = |word: &str| {
                    let segments = || Some(word.parse::<Segments>().ok()?.0);
                    word.parse::<f64>()
                        .ok()
                        .or_else(segments)
                        .filter(|x| x.is_finite())
                };
                if points.is_empty() && line == 1 && number(size).is_none() {
                    continue;
                }
                let (Some(size), Some(part)) = (number(size), number(part)) else {
                    return Err(wrong("two numbers are expected"));
                };
                if !(0.0..=MAX_SIZE).contains(&size) || !(0.0..=1.0).contains(&part) {
                    return Err(wrong(
                        "a size is not negative, a probability between 0 and 1",
                    ));
                }
                if points.last().is_some_and(|(s, p)| size <= *s || part < *p) {
                    return Err(wrong("sizes and probabilities must rise"));
                }
                points.push((size, part));
            }
            match points.last() {
                None => Err(empty()),
                Some((_, 1.0)) => Ok(points),
                Some((_, part)) => {
                    let hint = "write a last line with probability 1".to_owned();
                    Err((format!("the last probability is {part}, not 1"), hint))
                }
            }
        })
    }

    fn known<T>(
        &self,
        known: &Known<T>,
        name: &str,
        beside: bool,
        read: impl Fn(&str) -> Result<T, Wrong>,
    ) -> Result<Arc<T>, Wrong> {
        let path = if beside {
            self.base.join(name)
        } else {
            PathBuf::from(name)
        };
        if let Some(result) = known.borrow().get(&path) {
            return result.clone();
        }
        let result = self.text(&path).and_then(|text| match read(&text) {
            Ok(value) => Ok(Arc::new(value)),
            Err((message, hint)) => Err((format!("{}: {message}", path.display()), hint)),
        });
        known.borrow_mut().insert(path, result.clone());
        result
    }

    fn text(&self, path: &Path) -> Result<Arc<String>, Wrong> {
        if let Some(text) = self.texts.borrow().get(path) {
            return text.clone();
        }
        let text = open(path);
        self.texts
            .borrow_mut()
            .insert(path.to_owned(), text.clone());
        text
    }
}

fn open(path: &Path) -> Result<Arc<String>, Wrong> {
    let shown = path.display();
    let hint = || "paths count from the scenario file".to_owned();
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => (format!("there is no file {shown}"), hint()),
        _ => (format!("{shown} cannot be read: {error}"), hint()),
    })?;
    // Neither a device nor a pipe: reading them may never end.
    if !metadata.is_file() {
        return Err((format!("{shown} is no file"), hint()));
    }
    if metadata.len() > MAX_BYTES {
        let message = format!("{shown} is larger than {} MB", MAX_BYTES / 1_000_000);
        return Err((message, "shorten it".to_owned()));
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Arc::new(text)),
        Err(error) => Err((format!("{shown} cannot be read: {error}"), hint())),
    }
}

/// Numbers and words of the lines that have some; `#` begins a remark.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    fn words(line: &str) -> Vec<&str> {
        let line = line.split('#').next().unwrap_or_default();
        let words = line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        words.filter(|word| !word.is_empty()).collect()
    }
    let numbered = text.lines().enumerate();
    numbered
        .map(move |(i, line)| (i + 1, words(line)))
        .filter(|(_, words)| !words.is_empty())
}

fn empty() -> Wrong {
    (
        "the file has no values".to_owned(),
        "one line per value".to_owned(),
    )
}

const MAX_BYTES: u64 = 64_000_000;
/// A day.
const MAX_TRACE_MS: u32 = 86_400_000;
const MAX_SECONDS: f64 = 1e8;
const MAX_RATE: f64 = 1e14;
const MAX_SIZE: f64 = 1e12;
