//! How far apart two curves, two lists of events and two samples are. Each definition stands here
//! once; `docs/metrics.md` says the same in words.

/// A quantity over time that keeps its value until the next row: zero before the first, the last
/// one after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steps {
    /// Time and value from then on; times ascend.
    rows: Vec<(f64, f64)>,
}

impl Steps {
    /// From rows in the order of time; a row that goes back is dropped.
    pub(crate) fn new(rows: impl IntoIterator<Item = (f64, f64)>) -> Steps {
        let mut kept: Vec<(f64, f64)> = Vec::new();
        for (time, value) in rows {
            if time.is_finite() && value.is_finite() && kept.last().is_none_or(|l| l.0 <= time) {
                kept.push((time, value));
            }
        }
        Steps { rows: kept }
    }

    /// The sum of several: the window of a flow with several streams.
    pub(crate) fn sum(parts: Vec<Steps>) -> Steps {
        let mut all: Vec<(f64, usize, f64)> = Vec::new();
        for (part, steps) in parts.into_iter().enumerate() {
            all.extend(steps.rows.into_iter().map(|(t, v)| (t, part, v)));
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut held = std::collections::BTreeMap::new();
        let mut total = 0.0;
        let add = |(time, part, value)| {
            total += value - held.insert(part, value).unwrap_or(0.0);
            (time, total)
        };
        Steps::new(all.into_iter().map(add))
    }

    /// True without a row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Time and value of every row.
    pub(crate) fn into_rows(self) -> Vec<(f64, f64)> {
        self.rows
    }

    /// First and last time.
    fn ends(&self) -> Option<(f64, f64)> {
        Some((self.rows.first()?.0, self.rows.last()?.0))
    }
}

/// Relative area between two curves: `integral |a - b| dt / integral a dt` from the first row of
/// either to the last row of either. `None` if there is no row or `a` has no area.
pub(crate) fn area_between(a: &Steps, b: &Steps) -> Option<f64> {
    let ((a_from, a_to), (b_from, b_to)) = (a.ends()?, b.ends()?);
    let end = a_to.max(b_to);
    let mut now = a_from.min(b_from);
    let (mut i, mut j) = (0, 0);
    let (mut at_a, mut at_b) = (0.0, 0.0);
    let (mut between, mut under) = (0.0f64, 0.0f64);
    while now < end {
        while let Some((_, v)) = a.rows.get(i).filter(|r| r.0 <= now) {
            at_a = *v;
            i += 1;
        }
        while let Some((_, v)) = b.rows.get(j).filter(|r| r.0 <= now) {
            at_b = *v;
            j += 1;
        }
        let next_of = |rows: &[(f64, f64)], k: usize| rows.get(k).map_or(end, |r| r.0);
        let next = next_of(&a.rows, i).min(next_of(&b.rows, j)).min(end);
        between += (at_a - at_b).abs() * (next - now);
        under += at_a * (next - now);
        now = next;
    }
    (under > 0.0).then(|| between / under)
}

/// The largest difference of two lists of times, matched in their order. Where one is longer, those
/// of its events are left out that make the sum of the differences smallest. `None` if either is
/// empty.
pub(crate) fn largest_shift(a: &[f64], b: &[f64]) -> Option<f64> {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let spare = many.len() - few.len();
    if few.is_empty() {
        return None;
    }
    // best[k]: sum and largest difference of the first events of `few`, k events of `many` left out
    // so far.
    let mut best = vec![(0.0, 0.0f64); spare + 1];
    for (i, x) in few.iter().enumerate() {
        let mut before = (f64::INFINITY, f64::INFINITY);
        for (k, at) in best.iter_mut().enumerate() {
            if at.0 < before.0 {
                before = *at;
            }
            let d = (x - many[i + k]).abs();
            *at = (before.0 + d, before.1.max(d));
        }
    }
    let by_sum = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    best.iter().min_by(by_sum).map(|b| b.1)
}

/// Relative area between two distributions: `integral |Qa(u) - Qb(u)| du` over `u` in 0..1 (the
/// Wasserstein distance), with the quantile functions `Q`, divided by the mean of `a`. `None` if
/// either is empty or the mean is not positive.
pub(crate) fn area_of_distributions(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len(), b.len());
    let mean = a.iter().sum::<f64>() / n as f64;
    if n == 0 || m == 0 || mean <= 0.0 {
        return None;
    }
    // Steps of 1/n and 1/m, counted in units of 1/(n m): exact.
    let (mut i, mut j, mut at) = (0, 0, 0u64);
    let (n, m) = (n as u64, m as u64);
    let mut sum = 0.0;
    while at < n * m {
        let next = ((i + 1) * m).min((j + 1) * n);
        sum += (a[i as usize] - b[j as usize]).abs() * (next - at) as f64;
        i += u64::from(next == (i + 1) * m);
        j += u64::from(next == (j + 1) * n);
        at = next;
    }
    Some(sum / (n * m) as f64 / mean)
}

/// Largest distance of two empirical distributions (Kolmogorov and Smirnov), and what it must
/// exceed to be real at 95 %: `1.358 sqrt((n + m) / (n m))` (Smirnov 1948). `None` if either is
/// empty.
pub(crate) fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<(f64, f64)> {
    let (a, b) = (sorted(a), sorted(b));
    let (n, m) = (a.len() as f64, b.len() as f64);
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (mut i, mut j, mut largest) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        let x = a[i].min(b[j]);
        i += a[i..].iter().take_while(|v| **v <= x).count();
        j += b[j..].iter().take_while(|v| **v <= x).count();
        largest = largest.max((i as f64 / n - j as f64 / m).abs());
    }
    Some((largest, 1.358 * ((n + m) / (n * m)).sqrt()))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    out.sort_by(f64::total_cmp);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(x: Option<f64>, y: f64) {
        assert!(x.is_some_and(|x| (x - y).abs() < 1e-9), "{x:?}, not {y}");
    }

    #[test]
    fn constants_a_fifth_apart() {
        let of = |v| Steps::new([(0.0, v), (10.0, v)]);
        near(area_between(&of(100.0), &of(80.0)), 0.2);
        near(area_between(&of(80.0), &of(100.0)), 0.25);
        near(area_between(&of(80.0), &of(80.0)), 0.0);
    }

    /// Stairs `w0 + floor(t)`, `w0..w0 + 9`, one late by a part `s` of a step: they differ by 1
    /// during `s` of each of the nine rises, and the late one is missing (zero) at the start.
    #[test]
    fn stairs_shifted_by_a_part_of_a_step() {
        let (w0, s) = (50.0, 0.3);
        let stairs = |late: f64| {
            let rise = move |i: u32| (f64::from(i) + late, w0 + f64::from(i));
            Steps::new((0..10).map(rise).chain([(10.0, w0 + 9.0)]))
        };
        let under = 10.0 * w0 + 45.0;
        near(
            area_between(&stairs(0.0), &stairs(s)),
            (9.0 * s + w0 * s) / under,
        );
    }

    /// A saw-tooth between W/2 and W with period T, drawn finely, against itself shifted by `s`. In
    /// each period the two are `slope s` apart during `T - s`, and `W/2 - slope s` during the `s`
    /// between the two falls, with `slope = W / 2T`; the mean is `3 W / 4`.
    #[test]
    fn saw_teeth_shifted_by_a_known_time() {
        let (w, period, s, n) = (1000.0, 5.0, 0.2, 50_000);
        let slope = w / 2.0 / period;
        let tooth = |shift: f64| {
            let of = move |i: i32| {
                let t = 4.0 * period * f64::from(i) / f64::from(n);
                let phase = (t - shift).rem_euclid(period);
                (t, w / 2.0 + slope * phase)
            };
            Steps::new((0..=n).map(of))
        };
        let per_period = (period - s) * slope * s + s * (w / 2.0 - slope * s);
        let expected = per_period / (0.75 * w * period);
        let seen = area_between(&tooth(0.0), &tooth(s)).unwrap();
        assert!(
            (seen / expected - 1.0).abs() < 0.002,
            "{seen} not {expected}"
        );
        // Two teeth of different height, in step: the difference of their means.
        let half = Steps::new(tooth(0.0).rows.into_iter().map(|(t, v)| (t, 0.9 * v)));
        near(area_between(&tooth(0.0), &half), 0.1);
    }

    #[test]
    fn a_curve_that_begins_late_or_ends_early_is_zero_before_and_holds_after() {
        let a = Steps::new([(0.0, 10.0), (10.0, 10.0)]);
        near(
            area_between(&a, &Steps::new([(2.0, 10.0), (10.0, 10.0)])),
            0.2,
        );
        near(
            area_between(&a, &Steps::new([(0.0, 10.0), (5.0, 10.0)])),
            0.0,
        );
        near(
            area_between(&a, &Steps::new([(0.0, 10.0), (5.0, 5.0)])),
            0.25,
        );
        // What follows after the end of the first counts too, for both.
        near(
            area_between(&a, &Steps::new([(0.0, 10.0), (10.0, 0.0), (20.0, 0.0)])),
            0.5,
        );
        assert_eq!(area_between(&a, &Steps::default()), None);
        assert_eq!(
            area_between(&Steps::new([(0.0, 0.0), (1.0, 0.0)]), &a),
            None
        );
    }

    #[test]
    fn streams_add_up() {
        let one = Steps::new([(0.0, 1.0), (2.0, 3.0)]);
        let two = Steps::new([(1.0, 10.0), (2.0, 20.0)]);
        let sum = Steps::sum(vec![one, two]);
        let whole = Steps::new([(0.0, 1.0), (1.0, 11.0), (2.0, 23.0)]);
        near(area_between(&sum, &whole), 0.0);
    }

    #[test]
    fn events_are_matched_in_order() {
        near(largest_shift(&[1.0, 5.0, 9.0], &[1.1, 5.0, 8.7]), 0.3);
        // One more at the start, or in the middle: the others keep their partners.
        near(largest_shift(&[1.0, 5.0, 9.0], &[0.2, 1.1, 5.0, 9.0]), 0.1);
        near(largest_shift(&[1.0, 3.0, 5.0, 9.0], &[1.0, 5.2, 9.0]), 0.2);
        near(largest_shift(&[4.0], &[0.0, 3.0, 6.0, 9.0]), 1.0);
        assert_eq!(largest_shift(&[], &[1.0]), None);
        // In order, even where crossing over would be nearer.
        near(largest_shift(&[1.0, 2.0], &[1.9, 2.0]), 0.9);
    }

    #[test]
    fn the_area_between_distributions() {
        // A shift, and a scale: every quantile moves by it.
        near(
            area_of_distributions(&[3.0, 1.0, 2.0], &[2.1, 1.1, 3.1]),
            0.05,
        );
        near(area_of_distributions(&[1.0, 3.0], &[1.1, 3.3]), 0.1);
        // Different sizes: [1, 3] against [2]: |1-2|/2 + |3-2|/2, mean 2.
        near(area_of_distributions(&[1.0, 3.0], &[2.0]), 0.5);
        // [0, 6] against [0, 3, 6]: thirds overlap halves.
        near(
            area_of_distributions(&[0.0, 6.0], &[0.0, 3.0, 6.0]),
            1.0 / 3.0,
        );
        near(
            area_of_distributions(&[1.0, 1.0, 4.0], &[4.0, 1.0, 1.0]),
            0.0,
        );
        assert_eq!(area_of_distributions(&[], &[1.0]), None);
    }

    #[test]
    fn the_largest_step_between_distributions() {
        let ks = |a: &[f64], b: &[f64]| kolmogorov_smirnov(a, b).map(|k| k.0);
        near(ks(&[1.0, 2.0, 3.0, 4.0], &[1.5, 2.5, 3.5, 4.5]), 0.25);
        near(ks(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        near(ks(&[1.0, 1.0, 2.0], &[1.0, 1.0, 2.0]), 0.0);
        let (_, critical) = kolmogorov_smirnov(&[0.0; 100], &[0.0; 100]).unwrap();
        // Tables give 0.192 for twice a hundred.
        assert!((critical - 0.192).abs() < 0.001);
    }
}
