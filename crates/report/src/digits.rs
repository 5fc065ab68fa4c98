//! How many digits of a mean are worth printing beside its interval.

/// A mean and the half width of its interval: the interval with two significant digits, the mean
/// down to the same decimal place, in plain decimals. Whole digits of the mean stay. `None` where
/// the interval is so narrow that it says nothing: the mean stands alone then.
pub fn with_interval(mean: f64, half: f64) -> Option<[String; 2]> {
    if !(half > NARROW * mean.abs() && half.is_finite()) {
        return None;
    }
    // Rounded first: 0.0996 is 0.10, whose last digit is the second decimal.
    let rounded = format!("{half:.1e}");
    let exponent: i32 = rounded.split_once('e')?.1.parse().ok()?;
    let half: f64 = rounded.parse().ok()?;
    let last = 1 - exponent;
    if mean.abs().max(half) < SMALL {
        let first = match mean == 0.0 {
            true => exponent,
            false => mean.abs().log10().floor() as i32,
        };
        let digits = (first + last).max(0) as usize;
        return Some([format!("{mean:.digits$e}"), rounded]);
    }
    let decimals = last.max(0) as usize;
    let text = format!("{mean:.decimals$}");
    // What is rounded to zero has no sign.
    let zero = !text.contains(|c: char| ('1'..='9').contains(&c));
    let text = text.trim_start_matches(|c| zero && c == '-');
    Some([text.to_owned(), format!("{half:.decimals$}")])
}

/// Part of its mean from which on an interval is printed.
const NARROW: f64 = 1e-6;
/// Smaller numbers are printed with an exponent.
const SMALL: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_stops_where_its_interval_begins() {
        for (mean, half, texts) in [
            (10_730.8, 23.4, ["10731", "23"]),
            (8_014.2, 91.0, ["8014", "91"]),
            (0.2907, 0.012, ["0.291", "0.012"]),
            (3_573.7, 15_301.0, ["3574", "15000"]),
            (157.55, 109.0, ["158", "110"]),
            (85.2, 1.3, ["85.2", "1.3"]),
            (85.2, 0.0996, ["85.20", "0.10"]),
            (0.000_002_513_2, 9.9e-7, ["0.00000251", "0.00000099"]),
            (2.5132e-9, 9.9e-10, ["2.51e-9", "9.9e-10"]),
            (0.0, 3e-9, ["0.0e0", "3.0e-9"]),
            (0.0, 0.3, ["0.00", "0.30"]),
            (-0.1, 23.0, ["0", "23"]),
            (-5.04, 0.3, ["-5.04", "0.30"]),
        ] {
            let found = with_interval(mean, half);
            assert_eq!(found, Some(texts.map(str::to_owned)), "{mean} {half}");
        }
        for (mean, half) in [(100.1, 6.8e-7), (100.1, 0.0), (0.0, 0.0), (1.0, f64::NAN)] {
            assert_eq!(with_interval(mean, half), None, "{mean} {half}");
        }
    }
}
