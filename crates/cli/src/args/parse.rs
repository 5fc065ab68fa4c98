//! Values of flags.

use std::net::SocketAddr;
use std::str::FromStr;

use fullpipe_metrics::LOSS_TIME;
use fullpipe_scenario::LARGEST_SEED;
use fullpipe_units::{ParseQuantityError, Rate, Span};

/// A seed.
pub fn seed(text: &str) -> Result<u64, String> {
    let seed: Option<u64> = text.parse().ok();
    seed.filter(|seed| *seed <= LARGEST_SEED)
        .ok_or_else(|| format!("expected a whole number from 0 to {LARGEST_SEED}"))
}

/// A number.
pub fn at_least_one<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number, at least 1".to_owned())
}

/// A quantity with its unit; where it has none, or another's, with what to write instead.
pub(super) fn quantity<T: FromStr<Err = ParseQuantityError>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|e: ParseQuantityError| hinted(&e, e.hint()))
}

/// A time. People who leave its unit out mean seconds.
pub(super) fn time(text: &str) -> Result<Span, String> {
    time_in(text, "s")
}

/// A time; `unit` is what people mean who leave it out.
fn time_in(text: &str, unit: &str) -> Result<Span, String> {
    text.parse().map_err(|e: ParseQuantityError| {
        let number = text.trim().parse::<f64>().is_ok_and(|s| s >= 0.0);
        let hint = match number {
            true => Some(format!("write `{}{unit}`", text.trim())),
            false => e.hint(),
        };
        hinted(&e, hint)
    })
}

/// A round-trip time.
pub(super) fn round_trip(text: &str) -> Result<Span, String> {
    let rtt = time_in(text, "ms")?;
    match rtt.as_secs_f64() {
        s if (1e-6..=60.0).contains(&s) => Ok(rtt),
        _ => Err("expected a time from 1us to 60s".to_owned()),
    }
}

/// Capacity of a path.
pub(super) fn positive_rate(text: &str) -> Result<Rate, String> {
    let rate: Rate = quantity(text)?;
    match rate.as_bits_per_sec() {
        0 => Err("expected a rate above zero".to_owned()),
        _ => Ok(rate),
    }
}

fn hinted(error: &ParseQuantityError, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{error}\n\n  hint: {hint}"),
        None => error.to_string(),
    }
}

/// A port, by its number.
pub(super) fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected the number of a port, 1 to 65535".to_owned()),
        Ok(port) => Ok(port),
    }
}

/// Time between two looks at flows.
pub(super) fn interval(text: &str) -> Result<Span, String> {
    let interval = time(text)?;
    match interval.as_secs_f64() {
        s if (0.01..=10.0).contains(&s) => Ok(interval),
        _ => Err("expected a time from 10ms to 10s".to_owned()),
    }
}

/// Between two looks at a sender: 10 to 1000 a second.
pub(super) fn between_looks(text: &str) -> Result<Span, String> {
    let span = time(text)?;
    match (Span::from_millis(1)..=Span::from_millis(100)).contains(&span) {
        true => Ok(span),
        false => Err("1ms to 100ms, which is 1000 to 10 times a second".to_owned()),
    }
}

/// An address of this host's loopback.
pub(super) fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "expected an address and a port, such as 127.0.0.1:9464".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("only this host may ask: give an address of the loopback".to_owned()),
    }
}

/// `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let expected = "expected `key=value`, for example `path.rtt=80ms`";
    parted(text).ok_or_else(|| expected.to_owned())
}

/// `KEY=A,B,...`.
pub(super) fn key_values(text: &str) -> Result<(String, String), String> {
    let expected = "expected `key=a,b`, for example `path.rtt=20ms,80ms`";
    parted(text)
        .filter(|(_, values)| !values.is_empty())
        .ok_or_else(|| expected.to_owned())
}

fn parted(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    (!key.trim().is_empty()).then(|| (key.trim().to_owned(), value.trim().to_owned()))
}

/// `[METRIC=]FRACTION`.
pub(super) fn threshold(text: &str) -> Result<(Option<String>, f64), String> {
    match text.split_once('=') {
        // In round trips.
        Some((metric, text)) if metric.trim() == LOSS_TIME => {
            Ok((Some(LOSS_TIME.to_owned()), fraction(text)?))
        }
        Some((metric, text)) => Ok((Some(metric.trim().to_owned()), part(text)?)),
        None => Ok((None, part(text)?)),
    }
}

/// A fraction whose writer did not forget the percent sign.
fn part(text: &str) -> Result<f64, String> {
    let x = fraction(text)?;
    match x > 1.0 && !text.ends_with('%') {
        true => Err(format!(
            "{text} is {} %\n\n  hint: write `{text}%`",
            100.0 * x
        )),
        false => Ok(x),
    }
}

/// A width on paper, in millimetres.
pub(super) fn millimetres(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 4] = [("mm", 1.0), ("cm", 10.0), ("in", 25.4), ("pt", 25.4 / 72.0)];
    let unit = UNITS
        .iter()
        .find_map(|(unit, mm)| Some((text.strip_suffix(unit)?, mm)));
    let length = unit.and_then(|(number, mm)| Some(number.trim().parse::<f64>().ok()? * mm));
    length
        .filter(|mm| (20.0..=1500.0).contains(mm))
        .ok_or_else(|| "expected 20 mm to 1500 mm, as `84mm`, `8.4cm` or `3.3in`".to_owned())
}

fn fraction(text: &str) -> Result<f64, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x / scale),
        _ => Err("expected a fraction such as `0.05`, or a percentage such as `5%`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Rate;

    use super::*;

    #[test]
    fn what_lacks_a_unit_is_told_how_it_is_written() {
        let refused = quantity::<Rate>("1G").unwrap_err();
        assert!(
            refused.ends_with("\n\n  hint: write `1Gbit/s`"),
            "{refused}"
        );
        for (text, hint) in [("60", "60s"), ("0.5", "0.5s")] {
            let refused = time(text).unwrap_err();
            assert!(
                refused.ends_with(&format!("\n\n  hint: write `{hint}`")),
                "{refused}"
            );
        }
        assert_eq!(time("80ms"), Ok(Span::from_millis(80)));
        let refused = interval("0.5").unwrap_err();
        assert!(refused.contains("write `0.5s`"), "{refused}");
        assert_eq!(port("443"), Ok(443));
        for text in ["http", "0", "70000", ""] {
            let refused = port(text).unwrap_err();
            assert!(refused.contains("1 to 65535"), "{refused}");
        }
    }

    #[test]
    fn widths_on_paper() {
        assert_eq!(millimetres("84mm"), Ok(84.0));
        assert_eq!(millimetres("8.4 cm"), Ok(84.0));
        assert!((millimetres("3.5in").unwrap() - 88.9).abs() < 1e-9);
        for text in ["84", "mm", "0mm", "2m", "1e9mm"] {
            assert!(millimetres(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fractions_and_percentages() {
        assert_eq!(fraction("0.05"), Ok(0.05));
        assert_eq!(fraction("5%"), Ok(0.05));
        assert_eq!(threshold("jain=1%"), Ok((Some("jain".to_owned()), 0.01)));
        for text in ["5", "jain=5"] {
            let refused = threshold(text).unwrap_err();
            assert!(
                refused.ends_with("5 is 500 %\n\n  hint: write `5%`"),
                "{refused}"
            );
        }
        assert_eq!(threshold("500%"), Ok((None, 5.0)));
        assert_eq!(threshold("1"), Ok((None, 1.0)));
        assert!(threshold("loss_time_rtt=2").is_ok());
        assert!(fraction("-1").is_err() && fraction("x%").is_err() && fraction("inf").is_err());
    }
}
