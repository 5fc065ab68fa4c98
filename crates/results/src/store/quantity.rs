//! Parameters that are quantities: their numbers, and what the columns of these are called.

use fullpipe_units::{BufferSize, Bytes, Fraction, Packets, Rate, Segments, Span};

/// A quantity as scenario files write it: its value and the suffix of its unit (`s`, `mbps`,
/// `bytes`, `packets`, `segments`, `bdp`; empty for a plain number or a part). `None`: it is none.
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    if let Ok(x) = text.parse::<f64>() {
        return x.is_finite().then_some((x, ""));
    }
    if let Ok(span) = text.parse::<Span>() {
        return Some((span.as_secs_f64(), "s"));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.as_mbps(), "mbps"));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return Some((bytes.get() as f64, "bytes"));
    }
    if let Ok(packets) = text.parse::<Packets>() {
        return Some((packets.0 as f64, "packets"));
    }
    if let Ok(segments) = text.parse::<Segments>() {
        return Some((segments.0, "segments"));
    }
    if let Ok(part) = text.parse::<Fraction>() {
        return Some((part.get(), ""));
    }
    match text.parse() {
        Ok(BufferSize::Bdp(x)) => Some((x, "bdp")),
        _ => None,
    }
}

/// The end of the name of a column with the numbers of these texts: their unit, or `number` where
/// they have none. `None` if one is no quantity, or their units differ.
pub fn unit_of_all(texts: impl Iterator<Item = impl AsRef<str>>) -> Option<&'static str> {
    let units = texts.map(|text| Some(quantity(text.as_ref())?.1));
    let units: Vec<&str> = units.collect::<Option<_>>()?;
    let first = *units.first()?;
    let same = units.iter().all(|unit| *unit == first);
    same.then_some(if first.is_empty() { "number" } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_a_number_and_a_unit() {
        for (text, number, unit) in [
            ("1e-5", 1e-5, ""),
            ("2%", 0.02, ""),
            ("80ms", 0.08, "s"),
            ("622Mbit/s", 622.0, "mbps"),
            ("8MB", 8e6, "bytes"),
            ("200 packets", 200.0, "packets"),
            ("64 segments", 64.0, "segments"),
            ("0.25BDP", 0.25, "bdp"),
        ] {
            assert_eq!(quantity(text), Some((number, unit)), "{text}");
        }
        assert_eq!(quantity("reno"), None);
        assert_eq!(unit_of_all(["80ms", "1s"].iter()), Some("s"));
        assert_eq!(unit_of_all(["1500", "9000"].iter()), Some("number"));
        assert_eq!(unit_of_all(["1BDP", "8MB"].iter()), None);
        assert_eq!(unit_of_all(["", "8MB"].iter()), None);
    }
}
