//! One release of the kernel beside another: what changed, and what did not.

use std::collections::BTreeMap;

use super::{about, both, line};
use crate::causes::Change;
use crate::cell::{Cell, Kernel, Kind};
use crate::compare::{Comparison, compare};
use crate::reference::Run;
use crate::report::Results;
use crate::wording;

/// The cells that ran on both releases with the same ticks.
pub(super) fn side_by_side(p: &mut String, results: &Results<'_>, changes: &[Change]) {
    let new: Vec<Cell> = of(results.cells, Kernel::V6_12);
    let old = renamed(&of(results.cells, Kernel::V6_1), results.oracle);
    let c = compare(&new, &old, results.oracle);
    if c.verdicts.is_empty() {
        return;
    }
    line(
        p,
        format_args!(
            "## 6.1 and 6.12\n\n\
             {} cells ran on both releases with 250 ticks a second. Limits are those above, with 6.1\n\
             in the place of Linux and 6.12 in that of the simulator.\n\n\
             | cells | on both | the same in every metric | inside every limit |\n\
             |---|---:|---:|---:|",
            c.verdicts.len()
        ),
    );
    let mut kinds: BTreeMap<Kind, [usize; 3]> = BTreeMap::new();
    for v in &c.verdicts {
        let counts = kinds.entry(v.kind).or_default();
        counts[0] += 1;
        counts[1] += usize::from(v.deviations.iter().all(|d| d.oracle == d.sim));
        counts[2] += usize::from(v.inside);
    }
    for (kind, [all, same, inside]) in kinds {
        let kind = about(kind);
        line(p, format_args!("| {kind} | {all} | {same} | {inside} |"));
    }
    differences(p, results, &c);
    p.push_str("\nWhat the sources say, and what the cells show of it:\n\n");
    for change in changes {
        line(p, format_args!("- **{}** {}", change.title, change.about));
    }
    p.push('\n');
}

/// The metrics in which the releases are further apart than a limit.
fn differences(p: &mut String, results: &Results<'_>, c: &Comparison) {
    if c.verdicts.iter().all(|v| v.inside) {
        p.push_str("\nNo cell is outside a limit.\n");
        return;
    }
    p.push_str(
        "\n| cell | metric | 6.1 | 6.12 | 6.12 against 6.1 | simulator |\n\
         |---|---|---:|---:|---:|---:|\n",
    );
    for v in c.verdicts.iter().filter(|v| !v.inside) {
        let simulated = results.comparison.verdicts.iter();
        let simulated = simulated.filter(|s| s.cell == v.cell);
        let simulated: Vec<_> = simulated.flat_map(|s| &s.deviations).collect();
        for d in v.deviations.iter().filter(|d| !d.inside) {
            let flow = d
                .flow
                .map_or(String::new(), |f| format!(", flow {}", f + 1));
            let sim = simulated
                .iter()
                .find(|s| s.metric == d.metric && s.flow == d.flow);
            line(
                p,
                format_args!(
                    "| `{}` | {}{flow} | {} | {} | {} | {} |",
                    v.cell.trim_end_matches("@6.12"),
                    wording::name(d.metric),
                    both(d, d.oracle, 0),
                    both(d, d.sim, 1),
                    wording::size(d),
                    sim.map_or_else(|| "-".to_owned(), |s| both(s, s.sim, 1)),
                ),
            );
        }
    }
}

fn of(cells: &[Cell], kernel: Kernel) -> Vec<Cell> {
    let of = cells.iter().filter(|c| c.kernel == kernel);
    of.cloned().collect()
}

/// The runs of 6.1 under the names that their cells have with 6.12.
fn renamed(cells: &[Cell], runs: &[Run]) -> Vec<Run> {
    let mut renamed = Vec::new();
    for cell in cells {
        let id = cell.id();
        let kernel = Kernel::V6_12;
        let other = Cell {
            kernel,
            ..cell.clone()
        };
        let of = runs.iter().filter(|r| r.cell == id);
        renamed.extend(of.map(|r| Run {
            cell: other.id(),
            ..r.clone()
        }));
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Causes;
    use crate::cell;
    use crate::measure::Measure;
    use crate::reference::FlowResult;

    #[test]
    fn a_release_that_differs_is_named_with_both_numbers() {
        let cells = ["@6.1", "@6.12"].map(|k| cell::of(&format!("reno-20x30-b1{k}")).unwrap());
        let run = |cell: &Cell, goodput_mbit| Run {
            cell: cell.id(),
            repeat: 0,
            kernel: String::new(),
            hz: 250,
            command: String::new(),
            counters: Default::default(),
            flows: vec![FlowResult {
                module: "reno".into(),
                measure: Measure {
                    goodput_mbit,
                    ..Measure::default()
                },
                curve: None,
            }],
        };
        let page = |old: f64, new: f64| {
            let oracle = [run(&cells[0], old), run(&cells[1], new)];
            let sim = [run(&cells[0], 7.0), run(&cells[1], 7.0)];
            let comparison = compare(&cells, &oracle, &sim);
            let mut p = String::new();
            let results = Results {
                cells: &cells,
                oracle: &oracle,
                sim: &sim,
                comparison: &comparison,
                causes: &Causes::default(),
            };
            side_by_side(&mut p, &results, &[]);
            p
        };
        let same = page(8.0, 8.0);
        assert!(same.contains("| one flow | 1 | 1 | 1 |"), "{same}");
        assert!(same.contains("No cell is outside"), "{same}");
        let other = page(8.0, 9.0);
        assert!(other.contains("| one flow | 1 | 0 | 0 |"), "{other}");
        let row = "| `reno-20x30-b1` | goodput | 8.0000 | 9.0000 | +12.5 % | 7.0000 |";
        assert!(other.contains(row), "{other}");
    }
}
