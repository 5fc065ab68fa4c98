//! Sizes of short flows, in whole segments, drawn by inversion: one uniform number each, so that
//! two variants of a scenario with the same seed see the same sizes in the same order.

use crate::rng::ComponentRng;
use crate::spec::SizeLaw;

/// Size for the uniform number that `rng` draws; at least one segment.
pub fn draw(law: &SizeLaw, rng: &mut ComponentRng) -> u64 {
    let u = rng.uniform();
    let size = match law {
        SizeLaw::Fixed(n) => *n,
        SizeLaw::Uniform(low, high) => {
            let span = high.saturating_sub(*low).saturating_add(1);
            low.saturating_add((u * span as f64) as u64).min(*high)
        }
        SizeLaw::Pareto { mean, shape, most } => {
            (libm::ceil(pareto(u, *mean, *shape)) as u64).min(*most)
        }
        SizeLaw::Empirical(points) => libm::ceil(empirical(u, points)) as u64,
    };
    size.max(1)
}

/// `P(X > x) = (x_m / x)^shape` with `x_m = mean (shape - 1) / shape`.
fn pareto(u: f64, mean: f64, shape: f64) -> f64 {
    mean * (shape - 1.0) / shape * libm::pow(u, -1.0 / shape)
}

/// Linear between the points of a distribution function; what lies below the first point's
/// probability is its size.
fn empirical(u: f64, points: &[(f64, f64)]) -> f64 {
    let i = points.partition_point(|(_, p)| *p < u);
    match (points.get(i.wrapping_sub(1)), points.get(i)) {
        (Some((x0, p0)), Some((x1, p1))) => x0 + (u - p0) / (p1 - p0) * (x1 - x0),
        (None, Some((x, _))) | (Some((x, _)), None) => *x,
        (None, None) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(law: &SizeLaw, n: usize) -> Vec<u64> {
        let mut rng = ComponentRng::new(5, "sizes");
        (0..n).map(|_| draw(law, &mut rng)).collect()
    }

    fn mean(sizes: &[u64]) -> f64 {
        sizes.iter().sum::<u64>() as f64 / sizes.len() as f64
    }

    #[test]
    fn fixed_and_uniform() {
        assert_eq!(sizes(&SizeLaw::Fixed(0), 1), [1]);
        assert_eq!(sizes(&SizeLaw::Fixed(7), 2), [7, 7]);
        let u = sizes(&SizeLaw::Uniform(2, 5), 40_000);
        for n in 2..=5 {
            let share = u.iter().filter(|x| **x == n).count() as f64 / 4e4;
            assert!((share - 0.25).abs() < 0.01, "{n} {share}");
        }
        assert!(u.iter().all(|n| (2..=5).contains(n)));
    }

    /// Whole segments: `P(N > n) = (x_m / n)^shape` for whole `n >= x_m`, hence the mean
    /// `ceil(x_m) + sum over n >= ceil(x_m) of (x_m / n)^shape`; the shape 2.5 has a variance, so
    /// 10^6 draws give 0.5 %.
    #[test]
    fn pareto_has_its_tail_and_mean() {
        let (m, shape) = (10.0, 2.5);
        let s = sizes(
            &SizeLaw::Pareto {
                mean: m,
                shape,
                most: u64::MAX,
            },
            1_000_000,
        );
        let x_m = m * (shape - 1.0) / shape;
        let tail = |n: f64| f64::powf(x_m / n, shape);
        for n in [6u64, 10, 20, 50] {
            let share = s.iter().filter(|x| **x > n).count() as f64 / 1e6;
            let expected = tail(n as f64);
            assert!(
                (share - expected).abs() < 4.0 * (expected / 1e6).sqrt(),
                "{n} {share}"
            );
        }
        let exact: f64 = x_m.ceil() + (6..1_000_000).map(|n| tail(f64::from(n))).sum::<f64>();
        assert!(
            (mean(&s) / exact - 1.0).abs() < 0.005,
            "{} {exact}",
            mean(&s)
        );
        let cut = sizes(
            &SizeLaw::Pareto {
                mean: m,
                shape,
                most: 12,
            },
            10_000,
        );
        assert_eq!(cut.iter().max(), Some(&12));
        assert_eq!(cut.iter().min(), Some(&7), "nothing below x_m = 6");
    }

    #[test]
    fn an_empirical_law_is_linear_between_its_points() {
        let law = SizeLaw::Empirical(vec![(10.0, 0.5), (20.0, 0.9), (100.0, 1.0)]);
        let s = sizes(&law, 100_000);
        let share = |f: &dyn Fn(u64) -> bool| s.iter().filter(|n| f(**n)).count() as f64 / 1e5;
        assert!((share(&|n| n == 10) - 0.5).abs() < 0.007);
        assert!((share(&|n| n <= 15) - 0.7).abs() < 0.007);
        assert!((share(&|n| n <= 20) - 0.9).abs() < 0.005);
        assert!((share(&|n| n <= 60) - 0.95).abs() < 0.004);
        assert_eq!(s.iter().max(), Some(&100));
    }
}
