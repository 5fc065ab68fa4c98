//! Generates `docs/linux.md`: how close the simulator is, where it is not and why, and what in
//! Linux surprises.
//!
//! `close` has the limits and what is outside, `releases` holds one kernel against another,
//! `surprises` what departs from the RFCs, `settings` the switches of preset `linux`.
//!
//! Every number of the page comes from the comparison it is made from. The page cannot be made when
//! a cause is stale, when a surprise names a metric that its cell does not have, or when the
//! switches that preset `linux` sets are not those that are described.

mod close;
mod releases;
mod settings;
mod surprises;

use std::fmt::{self, Write as _};

pub use settings::{Setting, settings};

use fullpipe_metrics::wrapped;

use crate::ablation;
use crate::causes::{CausesError, Surprises};
use crate::cell::{self, Cell, Kernel, Kind};
use crate::compare::{Deviation, compare};
use crate::report::Results;
use crate::simulated::SimulatedError;
use crate::wording;

/// A page that cannot be made, by its cause.
#[derive(Debug, thiserror::Error)]
pub enum DocsError {
    /// A cause is stale.
    #[error(transparent)]
    Causes(#[from] CausesError),
    /// A switch that changes nothing in the cell that is to show it.
    #[error("surprises.toml: `{title}`: {cell} shows nothing: its numbers are the same {switch}")]
    ShowsNothing {
        /// Title of the surprise.
        title: String,
        /// The cell that should show it.
        cell: String,
        /// The switch that leaves its numbers as they are.
        switch: String,
    },
    /// The run without a switch.
    #[error(transparent)]
    Simulated(#[from] SimulatedError),
    /// A surprise whose numbers are not there.
    #[error("surprises.toml: `{title}`: {cell} has no {metric}")]
    Shows {
        /// Heading of the entry in surprises.toml.
        title: String,
        /// The cell that it names.
        cell: String,
        /// The metric.
        metric: &'static str,
    },
    /// Preset `linux` sets a switch that no entry describes.
    #[error("surprises.toml: no [[switch]] describes `{0}`, which preset linux sets")]
    Undescribed(String),
    /// An entry describes what preset `linux` does not set.
    #[error(
        "surprises.toml: [[switch]] `{0}`: preset linux does not set it, or there are two entries"
    )]
    NoSwitch(String),
}

/// The page. Simulates the cells of the surprises once more, each without its switch.
///
/// # Errors
/// [`DocsError`].
pub fn page(results: &Results<'_>, kept: &Surprises) -> Result<String, DocsError> {
    let c = results.comparison;
    results.causes.check(c)?;
    let of = |kernel: Kernel| {
        let known = results.oracle.iter();
        let mut of = known.filter(|r| Kernel::of(&r.cell) == kernel);
        of.next().map_or("-", |r| r.kernel.as_str())
    };
    let mut p = String::new();
    line(&mut p, format_args!("# Linux\n"));
    line(
        &mut p,
        format_args!(
            "<!-- Made by `fullpipe-calibrate docs` from the references in `calibrate/reference`;\n\
             a test compares the two. -->\n"
        ),
    );
    line(
        &mut p,
        format_args!(
            "Preset `linux` with the stacks `<module>-linux` models Linux {}. This page compares\n\
             the two in {} cells, of which {} ran on Linux {}: the same paths, the same modules,\n\
             one definition of every metric for both sides. Linux ran in virtual time, so its\n\
             results do not depend on the machine, and a seed repeats to the last row.\n",
            of(Kernel::V6_1),
            c.verdicts.len(),
            c.verdicts
                .iter()
                .filter(|v| Kernel::of(&v.cell) == Kernel::V6_12)
                .count(),
            of(Kernel::V6_12),
        ),
    );
    close::summary(&mut p, c);
    close::deviations(&mut p, c, results.causes);
    releases::side_by_side(&mut p, results, &kept.changes);
    p.push_str(SURPRISES);
    for s in &kept.list {
        let cells: Vec<Cell> = cell::all()
            .into_iter()
            .filter(|c| c.id() == s.cell)
            .collect();
        let mut runs = Vec::new();
        // A cell that was not compared needs no second run.
        if c.verdicts.iter().any(|v| v.cell == s.cell) {
            for cell in &cells {
                runs.extend(ablation::without(cell, s.switch.as_deref())?);
            }
        }
        surprises::told(&mut p, s, c, &compare(&cells, results.oracle, &runs))?;
    }
    settings::switches(&mut p, kept)?;
    p.push_str(REPRODUCE);
    Ok(wrapped(&p))
}

/// A side's value with its interval.
fn both(d: &Deviation, value: Option<f64>, side: usize) -> String {
    let text = wording::value(d.metric, value);
    match d.half_widths {
        Some((a, b)) => format!(
            "{text} ± {}",
            wording::value(d.metric, Some([a, b][side.min(1)]))
        ),
        None => text,
    }
}

/// A kind of cells for people.
pub fn about(kind: Kind) -> &'static str {
    match kind {
        Kind::Single => "one flow",
        Kind::Pair => "two flows",
        Kind::Loss => "one flow, random loss",
        Kind::Many => "sixteen flows",
        Kind::Queue => "RED, PIE, CoDel, FQ-CoDel",
        Kind::Ecn => "the same with ECN",
        Kind::Outage => "outage",
        Kind::Reorder => "reordering",
        Kind::Acks => "ACK loss",
        Kind::Reverse => "reverse traffic",
        Kind::Transfer => "finite transfer",
    }
}

fn line(p: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(p, "{text}");
}

const SURPRISES: &str = "## Surprises in Linux

Where the kernel departs from the text of the RFCs, with a cell that shows it. The last column is the
simulator with that one switch set as in preset `2026`.

";

const REPRODUCE: &str = "## Reproduce it\n
```sh
cargo build --release --package fullpipe --package fullpipe-calibrate
fullpipe linux build                   # 6.1 with 250 ticks a second
fullpipe linux build --version 6.12
fullpipe linux build --hz 100 --name 6.1-hz100
fullpipe linux build --hz 1000 --name 6.1-hz1000
fullpipe-calibrate measure --jobs 2    # runs the cells that have no reference; resumes
fullpipe-calibrate freeze              # writes calibrate/reference
fullpipe-calibrate compare             # the table in the terminal
fullpipe-calibrate report --to linux.html   # every cell with both windows, one file
fullpipe-calibrate docs                # this page
fullpipe-calibrate figure              # the picture of the README
```

The references are frozen: what follows `freeze` needs neither a kernel nor a network. Each row of
`calibrate/reference/runs.csv` says which kernel made it, with how many ticks a second, and ends with
the command; `fullpipe-calibrate cells --only CELL --toml` prints a cell as a scenario.

Any scenario, not only these cells, runs over the same kernel's TCP with `--ground linux`, see
[grounds.md](grounds.md#linux); `fullpipe compare` holds it against the simulator:

```sh
fullpipe linux build
fullpipe run my.toml --out results/sim
fullpipe run my.toml --ground linux --out results/linux
fullpipe compare results/sim results/linux
```
";
