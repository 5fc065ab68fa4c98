//! Numbers with a unit.

use std::ops::RangeInclusive;
use std::str::FromStr;

use fullpipe_units::{
    BufferSize, Bytes, ParseQuantityError, QuantityErrorKind, Rate, Segments, Span, WindowSize,
};

use super::reader::Item;
use super::{Reader, Value};
use crate::document::{Data, shorten};

impl Reader<'_> {
    /// At least `least` bits per second.
    pub(super) fn rate(&mut self, least: u64, item: Item<'_>) -> Option<Value> {
        let fits = |rate: &Rate| (least..=MAX_RATE).contains(&rate.as_bits_per_sec());
        let rate = self.quantity_of::<Rate>(item, fits)?;
        if !fits(&rate) {
            let message = format!("a rate from {least}bit/s to 100Tbit/s is expected");
            return self.unfit(item, message);
        }
        Some(Value::Rate(rate))
    }

    /// A time; `range` in nanoseconds.
    pub(super) fn span(&mut self, range: RangeInclusive<u64>, item: Item<'_>) -> Option<Value> {
        let fits = |span: &Span| range.contains(&span.as_nanos());
        let span = self.quantity_of::<Span>(item, fits)?;
        if range.contains(&span.as_nanos()) {
            return Some(Value::Span(span));
        }
        let (least, most) = range.into_inner();
        if span.as_nanos() == 0 && least > 0 {
            return self.unfit(item, "the time must be longer than zero");
        }
        let (least, most) = (Span::from_nanos(least), Span::from_nanos(most));
        self.unfit(item, format!("a time from {least} to {most} is expected"))
    }

    pub(super) fn segments(&mut self, range: RangeInclusive<u64>, item: Item<'_>) -> Option<Value> {
        let (min, max) = range.into_inner();
        let fits = |&Segments(n): &Segments| n >= min as f64 && n <= max as f64 && n.fract() == 0.0;
        let segments = self.quantity_of::<Segments>(item, fits)?.0;
        if !fits(&Segments(segments)) {
            let message = format!("{min} to {max} whole segments are expected");
            return self.unfit(item, message);
        }
        Some(Value::Real(segments))
    }

    /// Bytes or segments.
    pub(super) fn volume(&mut self, item: Item<'_>) -> Option<Value> {
        let none = [WindowSize::Bytes(Bytes(0)), WindowSize::Segments(0.0)];
        match self
            .quantity_of::<Volume>(item, |volume| !none.contains(&volume.0))?
            .0
        {
            WindowSize::Bdp(_) => self.unfit(item, "a size is expected in bytes or segments"),
            volume if none.contains(&volume) => self.unfit(item, NO_BYTE),
            volume => Some(Value::Window(volume)),
        }
    }

    pub(super) fn size(&mut self, item: Item<'_>) -> Option<Value> {
        match self.quantity_of::<Bytes>(item, |bytes| *bytes != Bytes(0))? {
            Bytes(0) => self.unfit(item, NO_BYTE),
            bytes => Some(Value::Bytes(bytes)),
        }
    }

    /// Room of any size; whether a packet fits into it is known only where the path is.
    pub(super) fn buffer(&mut self, item: Item<'_>) -> Option<Value> {
        let none = [
            BufferSize::Packets(0),
            BufferSize::Bytes(Bytes(0)),
            BufferSize::Time(Span::ZERO),
            BufferSize::Bdp(0.0),
        ];
        let size = self.quantity_of::<BufferSize>(item, |size| !none.contains(size))?;
        Some(Value::Buffer(size))
    }

    /// Any number with a unit of its kind.
    pub(super) fn quantity<T: FromStr<Err = ParseQuantityError>>(
        &mut self,
        item: Item<'_>,
    ) -> Option<T> {
        self.quantity_of(item, |_| true)
    }

    /// A number with a unit; the hint proposes none that does not fit.
    fn quantity_of<T: FromStr<Err = ParseQuantityError>>(
        &mut self,
        item: Item<'_>,
        fits: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let text = match &item.node.data {
            Data::Text(text) => text.as_str(),
            Data::Integer(_) | Data::Float(_) => self.sources.text(item.node.at),
            _ => {
                self.expected("a quantity in quotes", item);
                return None;
            }
        };
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let better = match error.kind {
                    QuantityErrorKind::NoUnit => with_unit_of::<T>(text, item.example),
                    _ => None,
                };
                let (message, hint) = quantity_fault(&error, better);
                let refused = proposed(hint.as_deref())
                    .and_then(|text| text.parse::<T>().ok())
                    .is_some_and(|value| !fits(&value));
                let hint = match refused {
                    true => Some(format!("write for example {}", item.example)),
                    false => hint,
                };
                self.refuse(item.node.at, item.key, message, hint);
                None
            }
        }
    }
}

/// A size in bytes or segments, in words of its own.
struct Volume(WindowSize);

impl FromStr for Volume {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        text.parse()
            .map(Self)
            .map_err(|mut error: ParseQuantityError| {
                error.expected = "a size";
                error.accepted = error
                    .accepted
                    .strip_suffix(&["BDP"])
                    .unwrap_or(error.accepted);
                error
            })
    }
}

/// Message and hint in the words of the file, where quantities stand in quotes.
fn quantity_fault(error: &ParseQuantityError, better: Option<String>) -> (String, Option<String>) {
    use QuantityErrorKind as Kind;
    let expected = error.expected;
    let message = match &error.kind {
        Kind::Empty => format!("{expected} is expected, this is empty"),
        Kind::NoUnit => format!("{expected} needs a unit"),
        Kind::UnknownUnit { unit, .. } => {
            format!(
                "{expected} is expected, `{}` is no unit of it",
                shorten(unit)
            )
        }
        Kind::WrongKind { found } => format!("{expected} is expected, this is {found}"),
        Kind::BadNumber => format!("{expected} is expected, the number cannot be read"),
        Kind::Negative => format!("{expected} cannot be negative"),
        Kind::NotFinite => format!("{expected} must be finite"),
        Kind::TooLarge => "the value is too large".to_owned(),
        Kind::Fractional => "the value is finer than the smallest step".to_owned(),
        _ => error.to_string(),
    };
    let several = matches!(&error.kind, Kind::UnknownUnit { unit, .. } if unit.contains(','));
    if several {
        let hint = "one value stands here; several belong in [matrix], as a list".to_owned();
        return (message, Some(hint));
    }
    let hint = better
        .map(|text| format!("write \"{text}\""))
        .or_else(|| Some(error.hint()?.replace('`', "\"")));
    (
        message,
        hint.map(|hint| format!("{hint} (units: {})", error.accepted.join(" "))),
    )
}

/// The quantity that a hint proposes: `write "80ms" (units: ...)`.
fn proposed(hint: Option<&str>) -> Option<&str> {
    let (text, _) = hint?.strip_prefix("write \"")?.split_once('"')?;
    Some(text)
}

/// A bare number of a time or an amount of data with the unit of the key's example: `duration = 60`
/// means seconds, `rtt = 80` milliseconds, `size = 20` megabytes.
fn with_unit_of<T: FromStr>(number: &str, example: &str) -> Option<String> {
    let example = example.strip_prefix('"')?.strip_suffix('"')?;
    if example.parse::<Span>().is_err() && !example.ends_with("MB") {
        return None;
    }
    let unit = example.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let text = format!("{}{unit}", number.trim());
    text.parse::<T>().ok().map(|_| text)
}

const NO_BYTE: &str = "at least one byte is expected";
/// 100 Tbit/s.
const MAX_RATE: u64 = 100_000_000_000_000;
