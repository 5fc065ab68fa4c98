//! How close the simulator is, class by class, and every cell outside a limit.

use super::{about, both, line};
use crate::causes::{Causes, Outside};
use crate::cell::{Kernel, Kind};
use crate::compare::{Comparison, Fraction, Metric, Verdict};
use crate::report::limit_of;
use crate::wording;

/// The cells that keep each limit, in all and on each kernel.
pub(super) fn summary(p: &mut String, c: &Comparison) {
    p.push_str("## How close\n\n| cells | metric | limit | inside | |");
    for kernel in Kernel::ALL {
        line(p, format_args!(" {} |", kernel.title()));
        p.pop();
    }
    p.push_str("\n|---|---|---|---:|---:|---:|---:|---:|---:|\n");
    for kind in c.cells.keys() {
        row(p, c, *kind, None);
        for (_, metric, _) in c.metrics.iter().filter(|m| m.0 == *kind) {
            row(p, c, *kind, Some(*metric));
        }
    }
    let single = c.verdicts.iter().filter(|v| v.kind == Kind::Single);
    let mut rmse: Vec<f64> = single.flat_map(|v| v.rmse.iter().copied()).collect();
    rmse.sort_by(f64::total_cmp);
    if let Some(median) = rmse.get(rmse.len() / 2) {
        line(
            p,
            format_args!(
                "\nWindows over time, one flow each, drop-tail: with both curves aligned at the first loss, their\n\
                 root-mean-square difference is {:.1} % of the mean window in the median cell and at\n\
                 most {:.1} % in nine of ten.",
                100.0 * median,
                100.0 * rmse[(rmse.len() * 9).div_ceil(10) - 1]
            ),
        );
    }
    if !c.missing.is_empty() {
        line(
            p,
            format_args!(
                "\nNot compared, because a side has no result: {} cells.",
                c.missing.len()
            ),
        );
    }
    p.push('\n');
}

/// A row of the table: a metric of a kind of cells, or all of its limits.
fn row(p: &mut String, c: &Comparison, kind: Kind, metric: Option<Metric>) {
    let keeps = |v: &Verdict| match metric {
        None => Some(v.inside),
        Some(m) => {
            let mut limited = v.deviations.iter().filter(|d| d.metric == m);
            limited.any(|d| d.limit.is_some()).then(|| {
                let mut all = v.deviations.iter().filter(|d| d.metric == m);
                all.all(|d| d.inside)
            })
        }
    };
    let count = |kernel: Option<Kernel>| {
        let mut f = Fraction::default();
        let verdicts = c.verdicts.iter().filter(|v| v.kind == kind);
        let verdicts = verdicts.filter(|v| kernel.is_none_or(|k| Kernel::of(&v.cell) == k));
        for inside in verdicts.filter_map(keeps) {
            f.of += 1;
            f.inside += usize::from(inside);
        }
        f
    };
    let all = count(None);
    let name = metric.map_or("**all**", wording::name);
    let limit = metric
        .and_then(|m| limit_of(c, kind, m))
        .unwrap_or_default();
    let kernels = Kernel::ALL.map(|k| match count(Some(k)) {
        Fraction { of: 0, .. } => String::new(),
        f => format!("{} of {}", f.inside, f.of),
    });
    line(
        p,
        format_args!(
            "| {} | {name} | {limit} | {} of {} | {:.1} % | {} |",
            about(kind),
            all.inside,
            all.of,
            100.0 * all.value(),
            kernels.join(" | ")
        ),
    );
}

/// Every cell outside a limit, with its cause.
pub(super) fn deviations(p: &mut String, c: &Comparison, causes: &Causes) {
    p.push_str("## Known deviations\n\n");
    let outside = causes.explain(c);
    if outside.is_empty() {
        p.push_str("None: every cell is inside every limit.\n\n");
        return;
    }
    // Only causes that explain something have a number here, in the order of the file.
    let mut used: Vec<usize> = outside.iter().flat_map(|o| o.causes.clone()).collect();
    used.sort_unstable();
    used.dedup();
    let number = |i: &usize| used.iter().position(|u| u == i).map_or(0, |n| n + 1);
    let unexplained = outside.iter().filter(|o| o.causes.is_empty()).count();
    match unexplained {
        0 => p.push_str("Every cell outside a limit, and the cause.\n\n"),
        n => line(
            p,
            format_args!(
                "Every cell outside a limit, and the cause. Those of {n} of {} deviations are open.\n",
                outside.len()
            ),
        ),
    }
    p.push_str("| cell | metric | Linux | simulator | size | limit | cause |\n|---|---|---:|---:|---:|---|---|\n");
    for o in &outside {
        let Outside {
            verdict,
            deviation: d,
            causes,
        } = o;
        let flow = d
            .flow
            .map_or(String::new(), |f| format!(", flow {}", f + 1));
        let cause: Vec<String> = causes.iter().map(|i| number(i).to_string()).collect();
        line(
            p,
            format_args!(
                "| `{}` | {}{flow} | {} | {} | {} | {} | {} |",
                verdict.cell,
                wording::name(d.metric),
                both(d, d.oracle, 0),
                both(d, d.sim, 1),
                wording::size(d),
                d.limit
                    .map_or_else(String::new, |l| wording::limit(d.metric, l)),
                if cause.is_empty() {
                    "open".to_owned()
                } else {
                    cause.join(", ")
                }
            ),
        );
    }
    if !used.is_empty() {
        p.push_str("\nCauses:\n\n");
        for (n, i) in used.iter().enumerate() {
            let cause = &causes.0[*i];
            let switch = cause
                .switch
                .as_ref()
                .map_or(String::new(), |s| format!(" Switch: {s}."));
            line(p, format_args!("{}. {}{switch}", n + 1, cause.cause));
        }
    }
    p.push('\n');
}
