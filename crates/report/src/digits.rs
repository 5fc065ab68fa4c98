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
        // The report's page has the same rule, and tests it by the same list.
        let examples: Vec<Vec<serde_json::Value>> =
            serde_json::from_str(include_str!("digits.json")).unwrap();
        for example in examples {
            let [mean, half] = [0, 1].map(|i: usize| example[i].as_f64().unwrap());
            let found = with_interval(mean, half).map_or(Vec::new(), Vec::from);
            assert_eq!(found, example[2..], "{mean} {half}");
        }
        assert_eq!(with_interval(1.0, f64::NAN), None);
    }
}
