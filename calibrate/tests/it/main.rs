//! The simulator against the frozen references, and what is written of that in the repository.
//!
//! All tests share one simulation of every cell. `UPDATE_DOCS=1` writes the page and the picture
//! anew.

mod corpus;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use fullpipe_calibrate::causes::{Causes, Surprises};
use fullpipe_calibrate::cell::{self, Cell, Kernel, Kind, Model};
use fullpipe_calibrate::compare::{Comparison, Fraction, Metric, compare};
use fullpipe_calibrate::reference::{self, Run};
use fullpipe_calibrate::report::{self, Results};
use fullpipe_calibrate::{docs, figure, simulated};

struct Both {
    cells: Vec<Cell>,
    oracle: Vec<Run>,
    sim: Vec<Run>,
    comparison: Comparison,
    causes: Causes,
}

impl Both {
    fn results(&self) -> Results<'_> {
        Results {
            cells: &self.cells,
            oracle: &self.oracle,
            sim: &self.sim,
            comparison: &self.comparison,
            causes: &self.causes,
        }
    }
}

fn both() -> &'static Both {
    static BOTH: OnceLock<Both> = OnceLock::new();
    BOTH.get_or_init(|| {
        let oracle = reference::read(&reference::frozen_dir())
            .expect("`fullpipe-calibrate freeze` writes the references");
        let cells = cell::all();
        let sim = simulated::run_all(&cells, Model::Linux, &|_| {})
            .into_iter()
            .map(|run| run.unwrap_or_else(|e| panic!("{e}")))
            .collect::<Vec<Run>>();
        let comparison = compare(&cells, &oracle, &sim);
        Both {
            cells,
            oracle,
            sim,
            comparison,
            causes: Causes::kept().unwrap(),
        }
    })
}

#[test]
fn the_simulator_is_within_its_limits() {
    let both = both();
    let c = &both.comparison;
    assert!(c.missing.is_empty(), "no reference: {:?}", c.missing);
    // Behind active queues and under reordering the simulator is not there yet.
    let close = [
        Kind::Single,
        Kind::Loss,
        Kind::Acks,
        Kind::Outage,
        Kind::Reverse,
        Kind::Transfer,
    ];
    for kind in close {
        let inside = c.cells[&kind];
        assert!(inside.value() >= 0.9, "{kind}: {inside:?}");
    }
    // A pair's share is a matter of phase, too: one of twelve is outside.
    for (kind, outside) in [(Kind::Pair, 1), (Kind::Many, 0)] {
        let inside = c.cells[&kind];
        assert!(inside.inside + outside >= inside.of, "{kind}: {inside:?}");
    }
    let winners = c.metrics.iter().find(|m| m.1 == Metric::Winner).unwrap().2;
    assert_eq!(winners.inside, winners.of);
}

#[test]
fn every_cause_has_a_deviation() {
    let both = both();
    both.causes.check(&both.comparison).unwrap();
}

#[test]
fn the_page_is_up_to_date() {
    let both = both();
    let surprises = Surprises::kept().unwrap();
    let page = docs::page(&both.results(), &surprises).unwrap();
    same("linux.md", page.as_bytes());
}

#[test]
fn the_picture_is_up_to_date() {
    let both = both();
    let svg = figure::svg(&both.oracle, &both.sim).unwrap();
    same("img/linux.svg", svg.as_bytes());
}

#[test]
fn the_references_and_the_report_are_small() {
    let both = both();
    let report = report::html(&both.results());
    assert!(report.len() < 5_000_000, "{}", report.len());
    let files = std::fs::read_dir(reference::frozen_dir()).unwrap();
    let bytes: u64 = files.map(|f| f.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 2_500_000, "{bytes}");
}

/// Compares a file of `docs` with what it is made from.
fn same(name: &str, made: &[u8]) {
    let path = docs_file(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/{name} is not what the references and the simulator give: run this test with UPDATE_DOCS=1"
    );
}

fn docs_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name)
}

/// The counts that the front page prints.
#[test]
fn the_front_page_has_the_counts() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let words = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |kind| {
        let verdicts = both().comparison.verdicts.iter();
        let long = verdicts.filter(|v| v.kind == kind && Kernel::of(&v.cell) == Kernel::Hz100);
        let long: Vec<bool> = long.map(|v| v.inside).collect();
        Fraction {
            inside: long.iter().filter(|inside| **inside).count(),
            of: long.len(),
        }
    };
    let (single, loss, pair) = (of(Kind::Single), of(Kind::Loss), of(Kind::Pair));
    for phrase in [
        format!("{} of {} cells agree", single.inside, single.of),
        format!("random loss overlap in all {} cells", loss.of),
        format!("within 5 points in {} of {}.", pair.inside, pair.of),
    ] {
        assert!(words.contains(&phrase), "README.md does not say: {phrase}");
    }
    assert_eq!(loss.inside, loss.of);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
