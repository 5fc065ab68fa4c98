//! Explanations of cells outside their limits and of surprises in Linux: two hand-written files,
//! checked against the measurements.
//!
//! `causes.toml` says for cells and metrics why they deviate and which switch decides it. A
//! deviation without a cause is reported as unexplained; a cause that explains nothing any more is
//! an error, so that the list cannot go stale. `surprises.toml` says where the kernel departs from
//! the RFCs and which cell shows it; the numbers are put in by [`crate::docs`].

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::cell::{self, Cell};
use crate::compare::{Comparison, Deviation, Metric, Verdict};
use crate::wording;

/// A cause of deviations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Pattern of cells' names, as of `--only`.
    pub cells: String,
    /// Metrics that this cause may move outside their limits.
    pub metrics: Vec<Metric>,
    /// The explanation that the report prints, one sentence.
    pub cause: String,
    /// The switch that decides it, if there is one.
    pub switch: Option<String>,
}

/// The causes of the repository, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Causes(pub Vec<Cause>);

/// A deviation outside its limit, and why.
#[derive(Clone, Debug)]
pub struct Outside<'a> {
    /// The cell.
    pub verdict: &'a Verdict,
    /// The metric outside its limit, with both values.
    pub deviation: &'a Deviation,
    /// Places in [`Causes`] that explain it; none: unexplained.
    pub causes: Vec<usize>,
}

/// A departure of Linux from the RFCs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surprise {
    /// Heading in the report, a few words.
    pub title: String,
    /// What the kernel does, with file and function.
    pub linux: String,
    /// Behaviour that the RFC asks for, with section.
    pub rfc: String,
    /// The cell that shows it.
    pub cell: String,
    /// Metrics in which the difference is visible.
    pub shows: Vec<Metric>,
    /// The switch of the simulator that is set back to show it, see [`crate::ablation::without`].
    pub switch: Option<String>,
}

/// What a switch of preset `linux` is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// `sender.` or `receiver.` and the field of the configuration.
    pub name: String,
    /// What it means and where Linux has it.
    pub about: String,
}

/// What changed between two releases of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// A sentence.
    pub title: String,
    /// Where in the sources, and which cells show it.
    pub about: String,
}

/// The surprises of the repository and the words for the switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surprises {
    /// Departures, in the order of the file.
    pub list: Vec<Surprise>,
    /// Switches, in the order of the file.
    pub switches: Vec<Switch>,
    /// Changes from 6.1 to 6.12, in the order of the file.
    pub changes: Vec<Change>,
}

/// What is wrong with one of the files.
#[derive(Debug, thiserror::Error)]
pub enum CausesError {
    /// The file system.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// No TOML, or not of this form.
    #[error("{file}: {reason}")]
    Form {
        /// Name of the file.
        file: &'static str,
        /// The parser's or validator's message.
        reason: String,
    },
    /// A name of a metric that does not exist.
    #[error("{file}: entry {entry}: no metric `{metric}`; there are {known}")]
    Metric {
        /// Name of the file.
        file: &'static str,
        /// Number of the entry, from 1.
        entry: usize,
        /// The name.
        metric: String,
        /// Names of metrics, joined with commas.
        known: String,
    },
    /// No such cell.
    #[error("{file}: entry {entry}: no cell matches `{cells}`")]
    Cell {
        /// Name of the file.
        file: &'static str,
        /// Number of the entry, from 1.
        entry: usize,
        /// Glob or name.
        cells: String,
    },
    /// A cause that explains no deviation.
    #[error(
        "{CAUSES}: entry {entry} is stale: none of `{cells}` is outside its limit of {metrics} any more"
    )]
    Stale {
        /// Number of the entry, from 1.
        entry: usize,
        /// Pattern of cell names, `*` allowed.
        cells: String,
        /// Metrics of that entry, joined by commas.
        metrics: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CausesFile {
    #[serde(default)]
    cause: Vec<CauseEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CauseEntry {
    cells: String,
    metrics: Vec<String>,
    cause: String,
    switch: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SurprisesFile {
    #[serde(default)]
    surprise: Vec<SurpriseEntry>,
    #[serde(default)]
    switch: Vec<Switch>,
    #[serde(default)]
    change: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SurpriseEntry {
    title: String,
    linux: String,
    rfc: String,
    cell: String,
    shows: Vec<String>,
    switch: Option<String>,
}

impl Causes {
    /// The causes of this repository.
    ///
    /// # Errors
    /// [`CausesError`], with the entry.
    pub fn kept() -> Result<Self, CausesError> {
        Self::parse(&text(CAUSES)?)
    }

    /// Causes from the text of a file.
    ///
    /// # Errors
    /// [`CausesError`], with the entry.
    pub fn parse(text: &str) -> Result<Self, CausesError> {
        let file: CausesFile = toml::from_str(text).map_err(|e| form(CAUSES, &e))?;
        let known = cell::all();
        let mut causes = Vec::new();
        for (i, e) in file.cause.into_iter().enumerate() {
            if !known.iter().any(|c| cell::matches(&e.cells, &c.id())) {
                return Err(CausesError::Cell {
                    file: CAUSES,
                    entry: i + 1,
                    cells: e.cells,
                });
            }
            causes.push(Cause {
                metrics: metrics(CAUSES, i, &e.metrics)?,
                cells: e.cells,
                cause: tidy(&e.cause),
                switch: e.switch,
            });
        }
        Ok(Self(causes))
    }

    /// Every deviation outside its limit with its causes, in the order of the comparison.
    pub fn explain<'a>(&self, comparison: &'a Comparison) -> Vec<Outside<'a>> {
        let outside = |v: &'a Verdict| {
            let deviations = v.deviations.iter().filter(|d| !d.inside);
            deviations.map(move |deviation| (v, deviation))
        };
        comparison
            .verdicts
            .iter()
            .flat_map(outside)
            .map(|(verdict, deviation)| Outside {
                verdict,
                deviation,
                causes: (0..self.0.len())
                    .filter(|&i| self.0[i].explains(&verdict.cell, deviation.metric))
                    .collect(),
            })
            .collect()
    }

    /// Fails if a cause explains nothing. Those of which a cell was not compared are not judged.
    ///
    /// # Errors
    /// [`CausesError::Stale`] for the first.
    pub fn check(&self, comparison: &Comparison) -> Result<(), CausesError> {
        let used: BTreeSet<usize> = self
            .explain(comparison)
            .into_iter()
            .flat_map(|o| o.causes)
            .collect();
        let compared: BTreeSet<&str> = comparison
            .verdicts
            .iter()
            .map(|v| v.cell.as_str())
            .collect();
        let all = cell::all();
        for (i, cause) in self.0.iter().enumerate() {
            let ids = all.iter().map(Cell::id);
            let seen = ids
                .filter(|id| cell::matches(&cause.cells, id))
                .all(|id| compared.contains(id.as_str()));
            if seen && !used.contains(&i) {
                let metrics: Vec<&str> = cause.metrics.iter().map(|m| wording::name(*m)).collect();
                return Err(CausesError::Stale {
                    entry: i + 1,
                    cells: cause.cells.clone(),
                    metrics: metrics.join(", "),
                });
            }
        }
        Ok(())
    }
}

impl Cause {
    fn explains(&self, cell: &str, metric: Metric) -> bool {
        self.metrics.contains(&metric) && cell::matches(&self.cells, cell)
    }
}

impl Surprises {
    /// The surprises of this repository.
    ///
    /// # Errors
    /// [`CausesError`], with the entry.
    pub fn kept() -> Result<Self, CausesError> {
        Self::parse(&text(SURPRISES)?)
    }

    /// Surprises from the text of a file.
    ///
    /// # Errors
    /// [`CausesError`], with the entry.
    pub fn parse(text: &str) -> Result<Self, CausesError> {
        let file: SurprisesFile = toml::from_str(text).map_err(|e| form(SURPRISES, &e))?;
        let known: BTreeSet<String> = cell::all().iter().map(Cell::id).collect();
        let mut list = Vec::new();
        for (i, e) in file.surprise.into_iter().enumerate() {
            if !known.contains(&e.cell) {
                return Err(CausesError::Cell {
                    file: SURPRISES,
                    entry: i + 1,
                    cells: e.cell,
                });
            }
            list.push(Surprise {
                shows: metrics(SURPRISES, i, &e.shows)?,
                title: e.title,
                linux: tidy(&e.linux),
                rfc: tidy(&e.rfc),
                cell: e.cell,
                switch: e.switch,
            });
        }
        Ok(Self {
            list,
            switches: file.switch,
            changes: file
                .change
                .into_iter()
                .map(|c| Change {
                    about: tidy(&c.about),
                    ..c
                })
                .collect(),
        })
    }
}

fn metrics(file: &'static str, entry: usize, names: &[String]) -> Result<Vec<Metric>, CausesError> {
    if names.is_empty() {
        return Err(CausesError::Form {
            file,
            reason: format!("entry {}: no metric is named", entry + 1),
        });
    }
    let one = |name: &String| {
        wording::metric(name).ok_or_else(|| CausesError::Metric {
            file,
            entry: entry + 1,
            metric: name.clone(),
            known: wording::METRICS.map(wording::key).join(", "),
        })
    };
    names.iter().map(one).collect()
}

/// One line, whatever the lines of the file.
fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(file: &str) -> Result<String, CausesError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(&path).map_err(|source| CausesError::Io { path, source })
}

fn form(file: &'static str, error: &toml::de::Error) -> CausesError {
    CausesError::Form {
        file,
        reason: error.to_string(),
    }
}

const CAUSES: &str = "causes.toml";
const SURPRISES: &str = "surprises.toml";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Kind;
    use crate::compare::GOODPUT;

    fn verdict(cell: &str, metric: Metric, inside: bool) -> Verdict {
        let deviation = Deviation {
            metric,
            flow: None,
            oracle: Some(100.0),
            sim: Some(if inside { 100.0 } else { 90.0 }),
            half_widths: None,
            limit: Some(GOODPUT),
            inside,
        };
        Verdict {
            cell: cell.to_owned(),
            kind: Kind::Single,
            deviations: vec![deviation],
            rmse: Vec::new(),
            inside,
        }
    }

    fn comparison(verdicts: Vec<Verdict>) -> Comparison {
        Comparison {
            verdicts,
            missing: Vec::new(),
            cells: Default::default(),
            metrics: Vec::new(),
        }
    }

    const TEXT: &str = r#"
        [[cause]]
        cells = "reno-20x30-b0.?"
        metrics = ["goodput", "loss_events"]
        cause = """two
          lines"""
        switch = "hz"
    "#;

    #[test]
    fn a_cause_explains_its_cells_and_metrics_only() {
        let causes = Causes::parse(TEXT).unwrap();
        assert_eq!(causes.0[0].cause, "two lines");
        let c = comparison(vec![
            verdict("reno-20x30-b0.1", Metric::Goodput, false),
            verdict("reno-20x30-b0.1", Metric::RttMean, false),
            verdict("reno-20x30-b1", Metric::Goodput, false),
            verdict("reno-20x30-b2", Metric::Goodput, true),
        ]);
        let found: Vec<(&str, usize)> = causes
            .explain(&c)
            .iter()
            .map(|o| (o.verdict.cell.as_str(), o.causes.len()))
            .collect();
        assert_eq!(
            found,
            [
                ("reno-20x30-b0.1", 1),
                ("reno-20x30-b0.1", 0),
                ("reno-20x30-b1", 0)
            ]
        );
    }

    #[test]
    fn a_cause_without_a_deviation_is_stale_once_all_its_cells_are_known() {
        let causes = Causes::parse(&TEXT.replace("b0.?", "b0.1")).unwrap();
        let with =
            |inside| comparison(vec![verdict("reno-20x30-b0.1", Metric::LossEvents, inside)]);
        assert!(causes.check(&with(false)).is_ok());
        let error = causes.check(&with(true)).unwrap_err().to_string();
        assert!(error.contains("entry 1 is stale"), "{error}");
        assert!(causes.check(&comparison(Vec::new())).is_ok());
    }

    #[test]
    fn mistakes_name_the_entry() {
        let error = |text: &str| Causes::parse(text).unwrap_err().to_string();
        let e = error(&TEXT.replace("reno-20x30", "reno-21x30"));
        assert_eq!(e, "causes.toml: entry 1: no cell matches `reno-21x30-b0.?`");
        let e = error(&TEXT.replace("\"goodput\"", "\"godput\""));
        assert!(e.contains("entry 1: no metric `godput`"), "{e}");
        let e = error(&TEXT.replace("[\"goodput\", \"loss_events\"]", "[]"));
        assert!(e.contains("no metric is named"), "{e}");
        assert!(error(&TEXT.replace("switch", "swich")).contains("swich"));
        let surprise =
            "[[surprise]]\ntitle='t'\nlinux='l'\nrfc='r'\ncell='reno-20x30-b3'\nshows=['goodput']";
        let e = Surprises::parse(surprise).unwrap_err().to_string();
        assert_eq!(
            e,
            "surprises.toml: entry 1: no cell matches `reno-20x30-b3`"
        );
    }

    #[test]
    fn the_files_of_the_repository_are_valid() {
        Causes::kept().unwrap();
        assert!(!Surprises::kept().unwrap().list.is_empty());
    }
}
