//! Numbers for people: how many digits are worth printing, of a mean beside its interval and alone.

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

/// A number with about `digits` significant digits, whole part in groups of three: `1,295`,
/// `93.1`, `0.00341`.
pub fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    let before_point = x.abs().log10().floor() as i32 + 1;
    let decimals = (digits as i32 - before_point).clamp(0, 12) as usize;
    if x.abs() < 1e-6 {
        return format!("{x:.*e}", digits.saturating_sub(1));
    }
    grouped(&format!("{x:.decimals$}"))
}

/// `85.2 ± 1.3`: the mean stops where its interval begins, which has two digits. Without an
/// interval, or with one below a millionth of the mean, the mean alone with about `digits`
/// significant digits.
pub fn number_with(mean: f64, half: Option<f64>, digits: usize) -> String {
    match mean_and_half(mean, half, digits) {
        (mean, Some(half)) => format!("{mean} ± {half}"),
        (mean, None) => mean,
    }
}

/// The same as two numbers, of which the second may be none.
pub(crate) fn mean_and_half(
    mean: f64,
    half: Option<f64>,
    digits: usize,
) -> (String, Option<String>) {
    match half.and_then(|half| with_interval(mean, half)) {
        Some([mean, half]) => (grouped(&mean), Some(grouped(&half))),
        None => (number(mean, digits), None),
    }
}

/// Groups the whole part of a number in threes; what follows its digits, decimals or an exponent,
/// stays.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (whole, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
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

    #[test]
    fn a_mean_in_words_stops_there_too() {
        for (mean, half, text) in [
            (10_730.8, Some(23.4), "10,731 ± 23"),
            (100.1, Some(6.8e-7), "100.1"),
            (3_573.7, Some(15_301.0), "3,574 ± 15,000"),
            (0.2907, Some(0.012), "0.291 ± 0.012"),
            (0.3, None, "0.3000"),
        ] {
            assert_eq!(number_with(mean, half, 4), text);
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1_234_567.8, "1,234,568"),
            (93.14159, "93.1"),
            (0.003_411, "0.00341"),
            (-5.0, "-5.00"),
            (284.13, "284"),
            (1e-9, "1.00e-9"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x, 3), text, "{x}");
        }
    }

    /// Of every size, and of both notations: the number is what it was, and commas stand between
    /// threes of its whole part only.
    #[test]
    fn a_number_of_any_size_reads_as_itself() {
        for (mean, half, text) in [
            (4e-17, 1.6e-16, "4e-17 ± 1.6e-16"),
            (-2.1e-17, 2.1e-16, "-2e-17 ± 2.1e-16"),
        ] {
            assert_eq!(number_with(mean, Some(half), 3), text);
        }
        for exponent in -300..=300 {
            for (digits, sign) in [(1.0, 1.0), (1.234_567, -1.0), (9.996, 1.0)] {
                let x: f64 = sign * digits * 10f64.powi(exponent);
                for half in [None, Some(x.abs() * 0.3), Some(x.abs() * 1e-3)] {
                    let text = number_with(x, half, 4);
                    let mean = text.split(" ± ").next().unwrap();
                    let back: f64 = mean.replace(',', "").parse().unwrap();
                    let near = half.unwrap_or(0.0).max(x.abs() * 1e-3);
                    assert!((back - x).abs() <= near, "{x:e}: {text}");
                    for number in text.split(" ± ") {
                        let mut threes = number.trim_start_matches('-').split(',');
                        let first = threes.next().unwrap();
                        let plain = |part: &str| part.chars().all(|c| c.is_ascii_digit());
                        let threes: Vec<&str> = threes.collect();
                        let Some((last, inner)) = threes.split_last() else {
                            continue;
                        };
                        let whole = last.split('.').next().unwrap();
                        assert!(plain(first) && (1..=3).contains(&first.len()), "{text}");
                        let all = inner.iter().chain([&whole]);
                        let all: Vec<_> = all.filter(|p| !plain(p) || p.len() != 3).collect();
                        assert!(all.is_empty(), "{text}");
                    }
                }
            }
        }
    }
}
