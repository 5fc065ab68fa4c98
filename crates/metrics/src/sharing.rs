//! Several flows together: fairness, asymmetry, convergence. Fairness and asymmetry as in SLAC 2003
//! (Cottrell and Bulot); when flows have converged is defined here.

use fullpipe_units::Time;

use crate::number::{finite, ratio};
use crate::view::{CaseView, measured_part, samples};

/// Jain's fairness `(sum x)^2 / (n sum x^2)`; `None` when no `x` is positive.
pub fn jain(x: &[f64]) -> Option<f64> {
    let sum: f64 = x.iter().sum();
    let squares: f64 = x.iter().map(|x| x * x).sum();
    ratio(sum * sum, x.len() as f64 * squares)
}

/// Asymmetry `(x1 - x2)/(x1 + x2)`; `None` when both are zero.
pub fn asymmetry(x1: f64, x2: f64) -> Option<f64> {
    ratio(x1 - x2, x1 + x2)
}

/// Exponent `a` of `x1/x2 = (R2/R1)^a`, rates `x` and base RTTs `R` in seconds; `None` for equal
/// RTTs or a rate of zero.
pub fn rtt_unfairness(x: [f64; 2], rtt: [f64; 2]) -> Option<f64> {
    let defined = x.iter().chain(&rtt).all(|v| *v > 0.0) && rtt[0] != rtt[1];
    defined
        .then(|| (x[0] / x[1]).ln() / (rtt[1] / rtt[0]).ln())
        .and_then(finite)
}

/// Payload first delivered by all flows, Mbit/s from the end of the warm-up to the end of the run.
pub fn aggregate_goodput(case: &CaseView<'_>) -> Option<f64> {
    let end = Time::ZERO + case.outcome.duration;
    let bits: f64 = case
        .streams()
        .map(|f| 8.0 * f64::from(f.mss) * f.totals.delivered_measured as f64)
        .sum();
    // The sum of no flows is -0.0.
    ratio(
        (bits + 0.0) * 1e-6,
        end.saturating_since(case.outcome.measure_from)
            .as_secs_f64(),
    )
}

/// Seconds from the start of the last flow to the beginning of the first of [`CONVERGED_SAMPLES`]
/// consecutive samples with `F >= CONVERGED`. Samples are whole intervals in which every flow was
/// sending.
pub fn convergence_time(case: &CaseView<'_>) -> Option<f64> {
    let (groups, outcome) = (case.groups, case.outcome);
    if groups.len() < 2 {
        return None;
    }
    let start = case.streams().map(|f| f.started).max()?;
    let end = groups
        .iter()
        .map(|g| measured_part(g, &outcome.flows[g.members.clone()], outcome).1)
        .min()?;
    let per_group: Vec<Vec<f64>> = groups
        .iter()
        .map(|g| samples(&outcome.flows[g.members.clone()], outcome, start, end).1)
        .collect();
    let first = samples(&[], outcome, start, end).0;
    let count = per_group.iter().map(Vec::len).min()?;
    let fair = |i: usize| {
        let x: Vec<f64> = per_group.iter().map(|g| g[i]).collect();
        jain(&x).is_some_and(|f| f >= CONVERGED)
    };
    let mut run = 0;
    for i in 0..count {
        run = if fair(i) { run + 1 } else { 0 };
        if run == CONVERGED_SAMPLES {
            let index = first + (i + 1 - CONVERGED_SAMPLES) as u64;
            let at = Time::from_nanos(index * outcome.interval.as_nanos());
            return Some(at.saturating_since(start).as_secs_f64());
        }
    }
    None
}

/// Jain's fairness at which flows count as converged; definition ours.
const CONVERGED: f64 = 0.95;
/// For this many consecutive samples.
const CONVERGED_SAMPLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{flow, group, outcome};
    use crate::{FlowGroup, measure};
    use fullpipe_run::{Outcome, RunSpec};

    #[test]
    fn jain_known_numbers() {
        // By hand: (1 + 3)^2 / (2 (1 + 9)); 16 streams against one: 17^2 / (2 (256 + 1)).
        assert!((jain(&[1.0, 3.0]).unwrap() - 0.8).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]).unwrap() - 0.25).abs() < 1e-12);
        assert!((jain(&[7.0; 5]).unwrap() - 1.0).abs() < 1e-12);
        assert!((jain(&[16.0, 1.0]).unwrap() - 0.562257).abs() < 5e-7);
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    /// A case of pings or datagrams alone.
    #[test]
    fn without_flows_their_goodput_is_zero_without_a_sign() {
        let none = outcome(vec![], 12, 2, 1);
        let measured = measure(&[], &[], &RunSpec::default(), &none);
        let goodput = crate::value(&measured.metrics, "aggregate_goodput_mbps").unwrap();
        assert!(goodput == 0.0 && goodput.is_sign_positive(), "{goodput}");
    }

    #[test]
    fn asymmetry_known_numbers() {
        assert!((asymmetry(16.0, 1.0).unwrap() - 15.0 / 17.0).abs() < 1e-15);
        assert!((asymmetry(16.0, 1.0).unwrap() - 0.882353).abs() < 5e-7);
        assert_eq!(asymmetry(1.0, 16.0), asymmetry(16.0, 1.0).map(|a| -a));
        assert_eq!(asymmetry(0.0, 0.0), None);
    }

    #[test]
    fn fairness_of_two_follows_from_asymmetry() {
        // F = 1/(1 + A^2): A = 0.5 -> 0.8; F = 0.98 at |A| = 0.143; F = 0.69 at 0.670.
        for (a, f, tolerance) in [(0.5, 0.8, 1e-12), (0.143, 0.98, 5e-5), (0.670, 0.69, 5e-4)] {
            let (x1, x2) = (1.0 + a, 1.0 - a);
            assert!((asymmetry(x1, x2).unwrap() - a).abs() < 1e-12);
            assert!((jain(&[x1, x2]).unwrap() - f).abs() < tolerance);
            assert!((jain(&[x1, x2]).unwrap() - 1.0 / (1.0 + a * a)).abs() < 1e-12);
        }
    }

    #[test]
    fn rtt_unfairness_known_exponents() {
        // Rates as 1/RTT: 1; as 1/RTT^2: 2; equal: 0. The order does not matter.
        for (a, x2) in [(0.0, 100.0), (1.0, 25.0), (2.0, 6.25)] {
            let got = rtt_unfairness([100.0, x2], [0.04, 0.16]).unwrap();
            assert!((got - a).abs() < 1e-12, "{got}");
            let turned = rtt_unfairness([x2, 100.0], [0.16, 0.04]).unwrap();
            assert!((turned - a).abs() < 1e-12, "{turned}");
        }
        assert_eq!(rtt_unfairness([1.0, 2.0], [0.1, 0.1]), None);
        assert_eq!(rtt_unfairness([1.0, 0.0], [0.1, 0.2]), None);
    }

    /// Each rate goes with its own round trip, and the first flow comes first in both.
    #[test]
    fn a_case_pairs_each_flow_with_its_round_trip() {
        let (mut groups, mut outcome) = two(&[], &[], 0.0);
        outcome.duration = fullpipe_units::Span::from_secs(10);
        for (flow, delivered) in outcome.flows.iter_mut().zip([400, 100]) {
            flow.totals.delivered_measured = delivered;
        }
        groups[0].base_rtt = fullpipe_units::Span::from_millis(40);
        groups[1].base_rtt = fullpipe_units::Span::from_millis(160);
        let values = measure(&groups, &[], &RunSpec::default(), &outcome).metrics;
        let got = |name: &str| values[name].unwrap();
        assert!((got("rtt_unfairness") - 1.0).abs() < 1e-12);
        assert!((got("asymmetry") - 0.6).abs() < 1e-12);
    }

    fn two(a: &[u64], b: &[u64], start_b: f64) -> (Vec<FlowGroup>, Outcome) {
        let groups = vec![group("a", 0..1), group("b", 1..2)];
        let mut fa = flow("a");
        fa.delivered_per_interval = a.to_vec();
        let mut fb = flow("b");
        fb.delivered_per_interval = b.to_vec();
        fb.started = Time::from_secs_f64(start_b);
        let n = a.len() as u64;
        (groups, outcome(vec![fa, fb], 5 * n, 0, 5))
    }

    #[test]
    fn convergence_counts_from_the_later_start() {
        // Intervals of 5 s; the second flow starts at 12 s, so the first whole sample begins at 15
        // s.
        let (g, o) = two(
            &[90, 90, 90, 80, 60, 50, 50, 50],
            &[0, 0, 5, 20, 30, 50, 50, 50],
            12.0,
        );
        // F(60, 30) = 0.9: not yet. Fair from the sample that begins at 25 s.
        assert_eq!(
            convergence_time(&CaseView::new(&g, &RunSpec::default(), &o)),
            Some(13.0)
        );
    }

    #[test]
    fn convergence_needs_three_samples_in_a_row() {
        let (g, o) = two(&[50, 50, 90, 50, 50, 90], &[50, 50, 10, 50, 50, 10], 0.0);
        assert_eq!(
            convergence_time(&CaseView::new(&g, &RunSpec::default(), &o)),
            None
        );
        let (g, o) = two(&[50, 50, 90, 50, 50, 50], &[50, 50, 10, 50, 50, 50], 0.0);
        assert_eq!(
            convergence_time(&CaseView::new(&g, &RunSpec::default(), &o)),
            Some(15.0)
        );
        let (g, o) = two(&[50, 50, 50], &[50, 50, 50], 0.0);
        assert_eq!(
            convergence_time(&CaseView::new(&g, &RunSpec::default(), &o)),
            Some(0.0)
        );
        let (g, o) = two(&[0, 0, 0], &[0, 0, 0], 0.0);
        assert_eq!(
            convergence_time(&CaseView::new(&g, &RunSpec::default(), &o)),
            None
        );
    }
}
