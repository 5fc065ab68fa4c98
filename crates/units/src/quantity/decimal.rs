//! Decimal digits, exact until the unit is known.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::Finest;
use super::QuantityErrorKind as Kind;

/// Decimal digits times a power of ten; no leading or trailing zeros, empty for zero.
pub(super) struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Splits `12_000.5e-3 unit` into number and unit. `None` if it does not start with a number or
    /// if what follows looks like more of it.
    pub(super) fn split(text: &str) -> Option<(Decimal, &str)> {
        let (mut digits, mut rest) = take_digits(text);
        let mut exponent = 0;
        if let Some(after) = rest.strip_prefix('.') {
            let (decimals, after) = take_digits(after);
            if decimals.is_empty() {
                return None;
            }
            exponent = -(decimals.len() as i64);
            digits += &decimals;
            rest = after;
        }
        if digits.is_empty() {
            return None;
        }
        if let Some(after) = rest.strip_prefix(['e', 'E']) {
            let (negative, after) = sign(after);
            let (power, after) = take_digits(after);
            if !power.is_empty() {
                let power = power
                    .parse::<i64>()
                    .map_or(EXPONENT_LIMIT, |p| p.min(EXPONENT_LIMIT));
                exponent += if negative { -power } else { power };
                rest = after;
            }
        }
        let unit = rest.trim_start();
        if unit.starts_with(|c: char| c.is_ascii_digit() || ".,_".contains(c)) {
            return None;
        }
        let significant = digits.trim_end_matches('0');
        exponent += (digits.len() - significant.len()) as i64;
        let digits = significant.trim_start_matches('0').to_owned();
        Some((Decimal { digits, exponent }, unit))
    }

    pub(super) fn to_u64(&self, scale: u64, finest: Finest) -> Result<u64, Kind> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        // 25 digits times the largest scale (3.6e12) stay within 38 digits, the reach of a `u128`.
        let kept = &self.digits[..self.digits.len().min(25)];
        let exponent = self
            .exponent
            .saturating_add((self.digits.len() - kept.len()) as i64);
        let scaled = kept.parse::<u128>().map_err(|_| Kind::BadNumber)? * u128::from(scale);
        let power = u32::try_from(exponent.unsigned_abs())
            .ok()
            .and_then(|e| 10u128.checked_pow(e));
        if exponent >= 0 {
            let value = power
                .and_then(|power| scaled.checked_mul(power))
                .ok_or(Kind::TooLarge)?;
            return u64::try_from(value).map_err(|_| Kind::TooLarge);
        }
        let Some(power) = power else {
            return Err(Kind::Fractional); // below 10^-38 of 10^38, hence below one
        };
        let (floor, rest) = (scaled / power, scaled % power);
        let cut = kept.len() < self.digits.len();
        if finest == Finest::Exact && (rest != 0 || cut) {
            return Err(Kind::Fractional);
        }
        let value = floor + u128::from(rest >= power - rest);
        if value == 0 {
            return Err(Kind::Fractional);
        }
        u64::try_from(value).map_err(|_| Kind::TooLarge)
    }

    /// The nearest `f64` to the number times ten to the `shift`.
    pub(super) fn to_f64(&self, shift: i64) -> Result<f64, Kind> {
        if self.digits.is_empty() {
            return Ok(0.0);
        }
        let text = format!("{}e{}", self.digits, self.exponent + shift);
        match text.parse::<f64>() {
            Ok(value) if value.is_infinite() => Err(Kind::TooLarge),
            Ok(0.0) => Err(Kind::Fractional),
            Ok(value) => Ok(value),
            Err(_) => Err(Kind::BadNumber),
        }
    }
}

pub(super) fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// The digits at the start of `text` without their `_` separators, and the rest.
fn take_digits(text: &str) -> (String, &str) {
    let bytes = text.as_bytes();
    let is_digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let mut end = 0;
    while is_digit(end)
        || (end > 0 && bytes.get(end) == Some(&b'_') && is_digit(end - 1) && is_digit(end + 1))
    {
        end += 1;
    }
    (text[..end].replace('_', ""), &text[end..])
}

/// Beyond any exponent that matters, small enough never to overflow.
const EXPONENT_LIMIT: i64 = 1 << 40;
