//! What the search found, as files: a scenario of a few lines, what comes of it, why, and what the
//! kernel did, so that the simulator is held against it where there is no kernel.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::draft::Draft;
use super::draw::Class;
use super::judge::Verdict;
use super::run::{Failure, FlowSeen, Seen};
use super::trial::{Trial, attempt};

/// The corpus of the repository.
pub fn corpus_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// A file of a corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Decides by which bounds it is judged.
    pub class: Class,
    /// Whether the simulator is known to disagree.
    pub disagrees: bool,
    /// Why, or `open`; of one that agrees, what was mended.
    pub cause: String,
    /// The kernel.
    pub kernel: String,
    /// The kernel's runs.
    pub linux: Vec<Seen>,
    /// The scenario.
    pub draft: Draft,
}

impl Kept {
    /// Holds the simulator against the kernel's numbers.
    pub fn check(&self) -> Trial {
        let mut linux = |_: &_, n: u32| Ok(self.linux.get(n as usize).cloned());
        attempt(&self.draft, self.class, &self.kernel, &mut linux).unwrap_or_else(|_| {
            Trial::Fault {
                what: "interrupted".to_owned(),
            }
        })
    }

    /// Takes the kernel's numbers anew.
    ///
    /// # Errors
    /// The kernel's failure.
    pub fn freeze(&mut self, kernel: &super::run::Kernel) -> Result<(), String> {
        let spec = super::run::resolve(&self.draft)?;
        let runs = (0..super::trial::LINUX_RUNS).map(|n| {
            kernel
                .run(&super::run::perturbed(&spec, n))
                .map_err(|e| match e {
                    Failure::Refused(what) | Failure::Fault(what) => what,
                    Failure::Stopped => "interrupted".to_owned(),
                })
        });
        self.linux = runs.collect::<Result<_, _>>()?;
        self.kernel = kernel.fingerprint().to_owned();
        Ok(())
    }
}

/// Whether a comparison disagrees; `None`: there was none.
pub fn disagrees(trial: &Trial) -> Option<bool> {
    match trial {
        Trial::Compared(c) => Some(c.verdict == Verdict::Disagrees),
        _ => None,
    }
}

/// The files of a corpus, by name.
///
/// # Errors
/// One cannot be read.
pub fn read(dir: &Path) -> Result<Vec<(PathBuf, Kept)>, String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let paths = entries.flatten().map(|e| e.path());
    let mut paths: Vec<_> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    paths.sort();
    let one = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let kept = text
            .parse()
            .map_err(|e| format!("{}: {e}", path.display()))?;
        Ok((path, kept))
    };
    paths.into_iter().map(one).collect()
}

const COLUMNS: &str =
    "run flow Mbit/s ms least s sent resent drops twice events timeouts undone cwnd most";

/// As a file: what is not the scenario is in comments.
impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expect = if self.disagrees {
            "disagrees"
        } else {
            "agrees"
        };
        writeln!(f, "# class: {}", self.class.name())?;
        writeln!(f, "# expect: {expect}")?;
        for line in wrapped(&self.cause) {
            writeln!(f, "# cause: {line}")?;
        }
        writeln!(f, "# kernel: {}", self.kernel)?;
        writeln!(f, "# columns: {COLUMNS}")?;
        for (run, seen) in self.linux.iter().enumerate() {
            for (i, s) in seen.flows.iter().enumerate() {
                writeln!(f, "# linux: {run} {i} {}", Row(s))?;
            }
        }
        write!(f, "\n{}", self.draft)
    }
}

/// Lines of at most 85 characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            if line.is_empty() || line.len() + word.len() < 85 {
                let space = if line.is_empty() { "" } else { " " };
                // Writing to a `String` cannot fail.
                let _ = write!(line, "{space}{word}");
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines
}

struct Row<'a>(&'a FlowSeen);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        let time = s
            .completion
            .map_or_else(|| "-".to_owned(), |c| format!("{c:.6}"));
        write!(
            f,
            "{:.5} {:.4} {:.4} {time} {} {} {} {} {} {} {} {:.2} {}",
            s.goodput,
            s.rtt,
            s.rtt_min,
            s.sent,
            s.retransmits,
            s.dropped,
            s.duplicates,
            s.events,
            s.timeouts,
            s.undone,
            s.cwnd,
            s.cwnd_max
        )
    }
}

impl FromStr for Kept {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lines = |key: &str| {
            let head = format!("# {key}: ");
            let lines = text
                .lines()
                .filter_map(|l| l.strip_prefix(&head).map(str::to_owned));
            lines.collect::<Vec<_>>()
        };
        let one = |key: &str| {
            let found = lines(key);
            match found.is_empty() {
                true => Err(format!("it has no line `# {key}: ...`")),
                false => Ok(found.join(" ")),
            }
        };
        let class = clap::ValueEnum::from_str(&one("class")?, false)?;
        let disagrees = match one("expect")?.as_str() {
            "agrees" => false,
            "disagrees" => true,
            other => return Err(format!("`expect: {other}` is neither agrees nor disagrees")),
        };
        let mut linux: Vec<Seen> = Vec::new();
        for line in lines("linux") {
            let (run, flow) = row(&line).ok_or_else(|| format!("`{line}` is no row"))?;
            if run >= linux.len() {
                linux.push(Seen { flows: Vec::new() });
            }
            let last = linux.len() - 1;
            linux[run.min(last)].flows.push(flow);
        }
        if linux.is_empty() {
            return Err("it has no run of the kernel".to_owned());
        }
        Ok(Self {
            class,
            disagrees,
            cause: one("cause")?,
            kernel: one("kernel")?,
            linux,
            draft: Draft::parse(text)?,
        })
    }
}

fn row(line: &str) -> Option<(usize, FlowSeen)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let float = |i: usize| words.get(i)?.parse::<f64>().ok();
    let whole = |i: usize| words.get(i)?.parse::<u64>().ok();
    let count = |i: usize| words.get(i)?.parse::<u32>().ok();
    let flow = FlowSeen {
        goodput: float(2)?,
        rtt: float(3)?,
        rtt_min: float(4)?,
        completion: match *words.get(5)? {
            "-" => None,
            _ => Some(float(5)?),
        },
        sent: whole(6)?,
        retransmits: whole(7)?,
        dropped: whole(8)?,
        duplicates: whole(9)?,
        events: count(10)?,
        timeouts: count(11)?,
        undone: count(12)?,
        cwnd: float(13)?,
        cwnd_max: float(14)?,
    };
    Some((usize::try_from(whole(0)?).ok()?, flow))
}

#[cfg(test)]
mod tests {
    use super::super::run::{perturbed, resolve, simulate};
    use super::*;

    const SCENARIO: &str = "name = \"x\"\nduration = \"5s\"\n[path]\nrate = \"10Mbit/s\"\n\
                            rtt = \"30ms\"\n[[flow]]\nname = \"main\"\nstack = \"reno-linux\"\npreset = \"linux\"\n\
                            [[flow]]\nname = \"other\"\nstack = \"cubic-linux\"\n\
                            preset = \"linux\"\nsize = \"50 segments\"\n";

    /// The simulator in the place of the kernel.
    fn kept() -> Kept {
        let draft = Draft::parse(SCENARIO).unwrap();
        let spec = resolve(&draft).unwrap();
        let runs = (0..3).map(|n| simulate(&perturbed(&spec, n)).unwrap());
        Kept {
            class: Class::Mixed,
            disagrees: false,
            cause: "a sentence that is longer than a line "
                .repeat(5)
                .trim()
                .to_owned(),
            kernel: "none".to_owned(),
            linux: runs.collect(),
            draft,
        }
    }

    #[test]
    fn a_file_says_all_of_it() {
        let kept = kept();
        let text = kept.to_string();
        assert!(text.lines().all(|l| l.len() <= 100), "{text}");
        let back: Kept = text.parse().unwrap();
        assert_eq!(back.to_string(), text);
        assert_eq!(back.draft, kept.draft);
        assert_eq!(back.linux[2].flows[1].sent, kept.linux[2].flows[1].sent);
        assert_eq!(disagrees(&back.check()), Some(false));
    }

    #[test]
    fn other_numbers_of_the_kernel_are_a_disagreement() {
        let mut kept = kept();
        for seen in &mut kept.linux {
            seen.flows[0].rtt *= 1.5;
        }
        assert_eq!(disagrees(&kept.check()), Some(true));
    }
}
