//! Doubles as they are printed.

use alloc::string::{String, ToString as _};

/// The nearest double of fifteen significant digits, which every double has. Those behind them tell
/// how a number was computed, not what was measured: `47.35307519999999` is 47.3530752.
///
/// ```
/// assert_eq!(fullpipe_units::printed(0.1 + 0.2), 0.3);
/// ```
pub fn printed(x: f64) -> f64 {
    if !x.is_finite() || x % 1.0 == 0.0 {
        return x;
    }
    // The standard library reads what it writes.
    format!("{x:.14e}").parse().unwrap_or(x)
}

/// [`printed`] as text.
pub fn printed_text(x: f64) -> String {
    printed(x).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_that_nobody_measured_are_not_printed() {
        assert_eq!(printed_text(47.353_075_199_999_99), "47.3530752");
        assert_eq!(printed(1.664_444_158_999_999_9e-9), 1.664_444_159e-9);
        assert_eq!(printed(0.1), 0.1);
        // What is whole has no digits behind the point to lose.
        let whole = 9_007_199_254_740_991.0;
        assert_eq!(printed(whole), whole);
        assert!(printed(f64::INFINITY).is_infinite() && printed(f64::NAN).is_nan());
        for x in [0.25, -1e-300, f64::MIN_POSITIVE, 1.0 / 3.0, -2e15 / 3.0] {
            assert!((printed(x) - x).abs() <= 1e-14 * x.abs(), "{x}");
            assert_eq!(printed(x).to_bits(), printed(printed(x)).to_bits(), "{x}");
        }
    }
}
