//! Numbers that may be undefined.

use fullpipe_run::Histogram;
use fullpipe_units::Span;

/// `None` instead of a NaN or an infinity.
pub fn finite(v: f64) -> Option<f64> {
    v.is_finite().then_some(v)
}

/// `None` where the denominator is not positive.
pub fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b).and_then(finite)
}

/// Arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Smallest of the ascending values that the part `q` of them does not exceed.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

/// Milliseconds.
pub fn millis(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_millis_f64)
}

/// Mean of the samples, milliseconds.
pub fn mean_millis(samples: &Histogram) -> Option<f64> {
    samples.mean_s().map(|s| s * 1e3).and_then(finite)
}
