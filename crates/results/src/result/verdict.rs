//! Whether the values of the seeds lie in a bound: their mean, its interval, each of them, or a
//! quantile.

use super::Estimate;
use fullpipe_scenario::HoldsFor;

/// What is said of some values and a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// The value that decides.
    pub observed: Option<f64>,
    /// It lies in the bound, or the interval that is judged does not contradict that.
    pub pass: bool,
    /// An end of the bound lies in the 95 % interval of the mean: more seeds decide.
    pub unclear: bool,
}

/// Judges the values of the seeds. An interval that one seed does not have would hold its value:
/// it may lie in the bound where that does.
pub(super) fn verdict(
    holds_for: HoldsFor,
    values: &[Option<f64>],
    estimate: &Estimate,
    fixed: bool,
    (low, high): (f64, f64),
) -> Verdict {
    let within = |x: f64| low <= x && x <= high;
    let inside = estimate.ci95.map(|ci| ci.into_iter().all(within));
    let overlap = estimate.ci95.map(|[from, to]| from <= high && low <= to);
    let judged = |observed: Option<f64>| {
        let pass = observed.is_some_and(within);
        Verdict {
            observed,
            pass,
            unclear: false,
        }
    };
    match holds_for {
        HoldsFor::Overlap => {
            let judged = judged(estimate.mean);
            Verdict {
                pass: overlap.unwrap_or(judged.pass),
                unclear: overlap == Some(true) && inside == Some(false),
                ..judged
            }
        }
        HoldsFor::Mean => judged(estimate.mean),
        HoldsFor::Interval => {
            let judged = judged(estimate.mean);
            Verdict {
                pass: judged.pass && inside != Some(false),
                unclear: judged.pass && inside.is_none() && !fixed,
                ..judged
            }
        }
        HoldsFor::EverySeed => judged(worst(values, (low, high))),
        HoldsFor::Quantile(p) => judged(quantile(values, p)),
    }
}

/// The value that is farthest outside the bound, or nearest to its end; `None` if one is
/// undefined.
fn worst(values: &[Option<f64>], (low, high): (f64, f64)) -> Option<f64> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    let room = |x: &f64| (x - low).min(high - x);
    values
        .into_iter()
        .min_by(|a, b| room(a).total_cmp(&room(b)))
}

/// Quantile by definition 7 of Hyndman and Fan, The American Statistician 50 (1996): linear between
/// the order statistics, the first at 0 and the last at 1, as R and NumPy have it by default.
/// `None` if a value is undefined.
fn quantile(values: &[Option<f64>], p: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let at = p * values.len().checked_sub(1)? as f64;
    let below = values[at.floor() as usize];
    let above = values[at.ceil() as usize];
    Some(below + at.fract() * (above - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|&x| Some(x)).collect()
    }

    fn of(holds_for: HoldsFor, values: &[f64], bound: (f64, f64)) -> Verdict {
        let values = some(values);
        verdict(holds_for, &values, &Estimate::of(&values), false, bound)
    }

    /// R: `quantile(c(1, 2, 3, 4), 0.4)` is 2.2; `quantile(c(3, 1, 2), 0.5)` is the median;
    /// `quantile(1:11, 0.9)` is 10.
    #[test]
    fn quantiles_are_those_of_r() {
        let q = |values: &[f64], p| quantile(&some(values), p).unwrap();
        assert!((q(&[1.0, 2.0, 3.0, 4.0], 0.4) - 2.2).abs() < 1e-12);
        assert_eq!(q(&[3.0, 1.0, 2.0], 0.5), 2.0);
        let eleven: Vec<f64> = (1..=11).map(f64::from).collect();
        assert!((q(&eleven, 0.9) - 10.0).abs() < 1e-12);
        assert_eq!(q(&[5.0], 0.1), 5.0);
        assert_eq!(quantile(&[Some(1.0), None], 0.5), None);
    }

    /// Utilization of three seeds, one of them at 0.68: mean 0.8787, t(2) = 4.303 makes the
    /// interval 0.43 wide to either side.
    #[test]
    fn an_interval_across_an_end_neither_shows_nor_contradicts() {
        let seeds = [0.68, 0.975, 0.981];
        let overlap = |from, to| of(HoldsFor::Overlap, &seeds, (from, to));
        // The interval is 0.45 to 1.31: the mean may be on either side of an end within it.
        for (from, to) in [
            (0.8, f64::INFINITY),
            (0.9, f64::INFINITY),
            (0.0, 0.5),
            (0.88, 0.89),
        ] {
            let v = overlap(from, to);
            assert!(v.pass && v.unclear, "{from} to {to}: {v:?}");
        }
        for (from, to) in [(1.35, f64::INFINITY), (0.0, 0.4)] {
            let v = overlap(from, to);
            assert!(!v.pass && !v.unclear, "{from} to {to}: {v:?}");
        }
        assert!(overlap(0.4, 1.4).pass && !overlap(0.4, 1.4).unclear);

        let least = (0.8, f64::INFINITY);
        let mean = of(HoldsFor::Mean, &seeds, least);
        assert!(mean.pass && !mean.unclear);
        assert!(!of(HoldsFor::Mean, &seeds, (0.9, 1.0)).pass);
        let interval = of(HoldsFor::Interval, &seeds, least);
        assert!(!interval.pass && interval.observed == mean.observed);
        let every = of(HoldsFor::EverySeed, &seeds, least);
        assert_eq!((every.pass, every.observed), (false, Some(0.68)));
        let tenth = of(HoldsFor::Quantile(0.5), &seeds, least);
        assert_eq!((tenth.pass, tenth.observed), (true, Some(0.975)));
        // Three seeds that are close: sure by every measure.
        let close = [0.975, 0.978, 0.981];
        for holds_for in [
            HoldsFor::Overlap,
            HoldsFor::Mean,
            HoldsFor::Interval,
            HoldsFor::EverySeed,
        ] {
            let v = of(holds_for, &close, least);
            assert!(v.pass && !v.unclear, "{holds_for}: {v:?}");
        }
    }

    #[test]
    fn the_worst_seed_is_the_one_nearest_to_an_end() {
        assert_eq!(worst(&some(&[4.0, 5.0, 8.5]), (3.0, 9.0)), Some(8.5));
        assert_eq!(worst(&some(&[4.0, 5.0, 9.5]), (3.0, 9.0)), Some(9.5));
        assert_eq!(worst(&[Some(4.0), None], (3.0, 9.0)), None);
    }

    #[test]
    fn one_seed_has_no_interval() {
        let alone = |bound| of(HoldsFor::Overlap, &[1.0], bound);
        assert!(alone((0.0, 2.0)).pass && !alone((1.5, 2.0)).pass);
        let asked = |bound| of(HoldsFor::Interval, &[1.0], bound);
        assert!(asked((0.0, 2.0)).pass && asked((0.0, 2.0)).unclear);
        assert!(!asked((1.5, 2.0)).pass && !asked((1.5, 2.0)).unclear);
        let one = some(&[1.0]);
        let fixed = verdict(
            HoldsFor::Interval,
            &one,
            &Estimate::of(&one),
            true,
            (0.0, 2.0),
        );
        assert!(fixed.pass && !fixed.unclear);
    }
}
