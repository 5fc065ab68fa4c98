//! Number grammar, unit tables and the search for the unit that was meant; shared by every type here.
//!
//! Numbers are kept as decimal digits until the unit is known, so integer quantities are exact over the
//! whole range of `u64` and real ones are rounded once.

use crate::error::QuantityErrorKind as Kind;
use crate::{
    BufferSize, Bytes, Fraction, Packets, ParseQuantityError, Rate, Segments, Span, WindowSize,
};

/// What a unit measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dim {
    Time,
    Rate,
    Size,
    Segments,
    Packets,
    Bdp,
    Percent,
    /// No unit, where a bare number is a value of its own.
    Plain,
}

/// What an integer quantity does with digits below its resolution.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finest {
    /// Indivisible things: refuse.
    Exact,
    /// Measured things: round to nearest, but never a non-zero value to zero.
    Rounded,
}

pub(crate) struct Unit {
    name: &'static str,
    scale: u64,
    /// Most decimals when printing.
    decimals: u32,
}

/// What may be read in one place.
#[derive(Debug)]
pub(crate) struct Expected {
    noun: &'static str,
    dims: &'static [Dim],
    accepted: &'static [&'static str],
    /// Likely meant by a bare number below 1000, and by a larger one.
    bare: [&'static str; 2],
    /// A bare number is a value of its own (fractions only).
    pub(crate) bare_is_plain: bool,
    pub(crate) example: &'static str,
    /// Whether a text reads as this quantity, so that no hint proposes what would be refused too.
    pub(crate) reads: fn(&str) -> bool,
}

/// A number with an accepted unit.
pub(crate) struct Found<'a> {
    text: &'a str,
    spec: &'static Expected,
    number: Decimal,
    pub(crate) dim: Dim,
    scale: u64,
}

/// Reads a number and a unit out of `spec.accepted`.
pub(crate) fn parse<'a>(
    text: &'a str,
    spec: &'static Expected,
) -> Result<Found<'a>, ParseQuantityError> {
    let error = |kind| Err(spec.error(text, kind));
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return error(Kind::Empty);
    }
    let (negative, unsigned) = sign(trimmed);
    if NOT_FINITE
        .iter()
        .any(|word| starts_with_ignore_case(unsigned, word))
    {
        return error(Kind::NotFinite);
    }
    let Some((number, unit)) = Decimal::split(unsigned) else {
        // A misspelt word such as `unlimted`; anything with digits is a misspelt number.
        let word = nearest(trimmed, spec).filter(|word| *word == UNLIMITED);
        return error(match word {
            Some(_) => Kind::UnknownUnit {
                unit: trimmed.to_owned(),
                nearest: word,
            },
            None => Kind::BadNumber,
        });
    };
    if negative {
        return error(Kind::Negative);
    }
    if unit.is_empty() && spec.bare_is_plain {
        return Ok(Found {
            text,
            spec,
            number,
            dim: Dim::Plain,
            scale: 1,
        });
    }
    if unit.is_empty() {
        return error(Kind::NoUnit);
    }
    let known = TABLES
        .iter()
        .find_map(|(dim, units)| units.iter().find(|u| u.name == unit).map(|u| (*dim, u)));
    match known {
        Some((dim, unit)) if spec.dims.contains(&dim) => Ok(Found {
            text,
            spec,
            number,
            dim,
            scale: unit.scale,
        }),
        Some((dim, _)) => error(Kind::WrongKind { found: dim.noun() }),
        None => error(Kind::UnknownUnit {
            unit: unit.to_owned(),
            nearest: nearest(unit, spec),
        }),
    }
}

impl Found<'_> {
    /// The value as a whole number of base units.
    pub(crate) fn whole(&self, finest: Finest) -> Result<u64, ParseQuantityError> {
        self.number
            .to_u64(self.scale, finest)
            .map_err(|kind| self.error(kind))
    }

    /// The value as a real number; for units of scale 1 and percent.
    pub(crate) fn real(&self) -> Result<f64, ParseQuantityError> {
        let shift = if self.dim == Dim::Percent { -2 } else { 0 };
        self.number.to_f64(shift).map_err(|kind| self.error(kind))
    }

    pub(crate) fn error(&self, kind: Kind) -> ParseQuantityError {
        self.spec.error(self.text, kind)
    }
}

impl Expected {
    fn error(&'static self, text: &str, kind: Kind) -> ParseQuantityError {
        ParseQuantityError {
            expected: self.noun,
            text: text.to_owned(),
            kind,
            accepted: self.accepted,
            spec: self,
        }
    }

    /// The unit most likely meant by the bare number `number`.
    pub(crate) fn bare_unit(&self, number: &str) -> &'static str {
        let small = Decimal::split(number)
            .and_then(|(n, _)| n.to_f64(0).ok())
            .is_some_and(|n| n < 1000.0);
        self.bare[usize::from(!small)]
    }
}

impl Dim {
    fn noun(self) -> &'static str {
        match self {
            Dim::Time => "a time",
            Dim::Rate => "a rate",
            Dim::Size => "a size",
            Dim::Segments => "a number of segments",
            Dim::Packets => "a number of packets",
            Dim::Bdp => "a multiple of the BDP",
            Dim::Percent => "a percentage",
            Dim::Plain => "a bare number",
        }
    }
}

/// `value` in the largest of `units` (largest first) that is not above it and needs no more than its
/// decimals; `None` if there is none.
pub(crate) fn exact(value: u64, units: &[Unit]) -> Option<String> {
    units.iter().find_map(|unit| {
        let Unit {
            name,
            scale,
            decimals,
        } = *unit;
        let steps = 10u128.pow(decimals);
        let scaled = u128::from(value) * steps;
        if (value < scale && scale > 1) || scaled % u128::from(scale) != 0 {
            return None;
        }
        let scaled = scaled / u128::from(scale);
        let digits = format!("{:0width$}", scaled % steps, width = decimals as usize);
        Some(match digits.trim_end_matches('0') {
            "" => format!("{}{name}", scaled / steps),
            decimals => format!("{}.{decimals}{name}", scaled / steps),
        })
    })
}

/// `number` and `unit` as they are best written.
pub(crate) fn join(number: &str, unit: &str) -> String {
    let blank = if unit.ends_with("segments") || unit.ends_with("packets") {
        " "
    } else {
        ""
    };
    format!("{number}{blank}{unit}")
}

/// The number at the start of `text`, as written and without its sign.
pub(crate) fn number_text(text: &str) -> Option<&str> {
    let (_, unsigned) = sign(text.trim());
    Decimal::split(unsigned).map(|(_, unit)| unsigned[..unsigned.len() - unit.len()].trim_end())
}

/// `number` of a unit such as `MB/s` or `MBps`, as a rate in bits.
pub(crate) fn byte_rate_in_bits(number: &str, unit: &str) -> Option<String> {
    let prefix = byte_rate_prefix(unit)?;
    let (number, _) = Decimal::split(number)?;
    Some(format!(
        "{}{}bit/s",
        number.to_f64(0).ok()? * 8.0,
        if prefix == "K" { "k" } else { prefix }
    ))
}

fn byte_rate_prefix(unit: &str) -> Option<&str> {
    let prefix = ["B/s", "Bps"]
        .iter()
        .find_map(|suffix| unit.strip_suffix(suffix))?;
    ["", "k", "K", "M", "G", "T"]
        .contains(&prefix)
        .then_some(prefix)
}

/// Decimal digits times a power of ten; no leading or trailing zeros, empty for zero.
struct Decimal {
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Splits `12_000.5e-3 unit` into number and unit. `None` if it does not start with a number or if
    /// what follows looks like more of it.
    fn split(text: &str) -> Option<(Decimal, &str)> {
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

    fn to_u64(&self, scale: u64, finest: Finest) -> Result<u64, Kind> {
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
    fn to_f64(&self, shift: i64) -> Result<f64, Kind> {
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

fn sign(text: &str) -> (bool, &str) {
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

fn starts_with_ignore_case(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// The accepted unit most likely meant by `unit`.
fn nearest(unit: &str, spec: &Expected) -> Option<&'static str> {
    if unit.chars().count() > LONGEST_MISSPELLING
        || (spec.dims.contains(&Dim::Rate) && byte_rate_prefix(unit).is_some())
    {
        return None;
    }
    let accepted = |name: &str| spec.accepted.iter().copied().find(|a| *a == name);
    let lower = unit.to_lowercase();
    spec.accepted
        .iter()
        .copied()
        .find(|a| a.to_lowercase() == lower)
        .or_else(|| {
            SYNONYMS
                .iter()
                .filter(|(_, words)| words.contains(&&*lower))
                .find_map(|(name, _)| accepted(name))
        })
        .or_else(|| {
            spec.dims
                .contains(&Dim::Rate)
                .then(|| respell(&lower, RATE_SUFFIXES, "bit/s", RATES))
                .flatten()
        })
        .or_else(|| {
            spec.dims
                .contains(&Dim::Size)
                .then(|| respell_size(&lower))
                .flatten()
        })
        .or_else(|| {
            let reach = (lower.chars().count() / 3).min(2);
            let near = spec
                .accepted
                .iter()
                .map(|a| (edit_distance(&lower, &a.to_lowercase()), *a));
            near.filter(|(distance, _)| *distance <= reach)
                .min_by_key(|(distance, _)| *distance)
                .map(|(_, a)| a)
        })
}

fn respell_size(lower: &str) -> Option<&'static str> {
    respell(lower, SIZE_SUFFIXES, "b", DECIMAL_SIZES)
        .or_else(|| respell(lower, SIZE_SUFFIXES, "b", BINARY_SIZES))
}

/// The unit of `units` that consists of the prefix of `lower` and `base`, when `lower` ends in one of
/// `suffixes` or is a bare prefix.
fn respell(
    lower: &str,
    suffixes: &[&str],
    base: &str,
    units: &'static [Unit],
) -> Option<&'static str> {
    suffixes
        .iter()
        .filter_map(|suffix| lower.strip_suffix(suffix))
        .find_map(|prefix| {
            let wanted = format!("{prefix}{base}");
            units
                .iter()
                .map(|unit| unit.name)
                .find(|name| name.to_lowercase() == wanted)
        })
}

/// Levenshtein distance.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit {
        name,
        scale,
        decimals: 4,
    }
}

pub(crate) const UNLIMITED: &str = "unlimited";
const NOT_FINITE: &[&str] = &["inf", "nan", "∞"];
/// Beyond any exponent that matters, small enough never to overflow.
const EXPONENT_LIMIT: i64 = 1 << 40;
const LONGEST_MISSPELLING: usize = 16;
const RATE_SUFFIXES: &[&str] = &["bits/s", "bps", "b/s", "bits", "bit", "b", ""];
const SIZE_SUFFIXES: &[&str] = &["bytes", "byte", ""];

const SYNONYMS: &[(&str, &[&str])] = &[
    ("ns", &["nsec", "nsecs", "nanos", "nanoseconds"]),
    ("us", &["usec", "usecs", "micros", "microseconds"]),
    ("ms", &["msec", "msecs", "millis", "milliseconds"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["m", "mins", "minute", "minutes"]),
    ("h", &["hr", "hrs", "hour", "hours"]),
    ("segments", &["seg", "segs", "mss"]),
    ("packets", &["p", "pkt", "pkts"]),
    ("%", &["percent", "pct"]),
];

// Minutes and hours print whole only: `90s` reads better than `1.5min`, and than `1.025h` for `3690s`.
pub(crate) const TIMES: &[Unit] = &[
    Unit {
        name: "h",
        scale: 3_600_000_000_000,
        decimals: 0,
    },
    Unit {
        name: "min",
        scale: 60_000_000_000,
        decimals: 0,
    },
    unit("s", 1_000_000_000),
    unit("ms", 1_000_000),
    unit("us", 1_000),
    unit("ns", 1),
];
/// U+00B5 and U+03BC, as keyboards and Unicode normalisation give them; read, not printed.
const MICROS: &[Unit] = &[unit("\u{b5}s", 1_000), unit("\u{3bc}s", 1_000)];
pub(crate) const RATES: &[Unit] = &[
    unit("Tbit/s", 1_000_000_000_000),
    unit("Gbit/s", 1_000_000_000),
    unit("Mbit/s", 1_000_000),
    unit("kbit/s", 1_000),
    unit("bit/s", 1),
];
pub(crate) const DECIMAL_SIZES: &[Unit] = &[
    unit("TB", 1_000_000_000_000),
    unit("GB", 1_000_000_000),
    unit("MB", 1_000_000),
    unit("kB", 1_000),
    unit("B", 1),
];
pub(crate) const BINARY_SIZES: &[Unit] = &[
    unit("TiB", 1 << 40),
    unit("GiB", 1 << 30),
    unit("MiB", 1 << 20),
    unit("KiB", 1 << 10),
];

const TABLES: &[(Dim, &[Unit])] = &[
    (Dim::Time, TIMES),
    (Dim::Time, MICROS),
    (Dim::Rate, RATES),
    (Dim::Size, DECIMAL_SIZES),
    (Dim::Size, BINARY_SIZES),
    (Dim::Segments, &[unit("segments", 1), unit("segment", 1)]),
    (Dim::Packets, &[unit("packets", 1), unit("packet", 1)]),
    (Dim::Bdp, &[unit("BDP", 1)]),
    (Dim::Percent, &[unit("%", 1)]),
];

pub(crate) static SPAN: Expected = Expected {
    noun: "a time",
    dims: &[Dim::Time],
    accepted: &["ns", "us", "ms", "s", "min", "h"],
    bare: ["ms", "ms"],
    bare_is_plain: false,
    example: "80ms",
    reads: |text| text.parse::<Span>().is_ok(),
};
pub(crate) static RATE: Expected = Expected {
    noun: "a rate",
    dims: &[Dim::Rate],
    accepted: &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    bare: ["Mbit/s", "bit/s"],
    bare_is_plain: false,
    example: "10Mbit/s",
    reads: |text| text.parse::<Rate>().is_ok(),
};
pub(crate) static BYTES: Expected = Expected {
    noun: "a size",
    dims: &[Dim::Size],
    accepted: &["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"],
    bare: ["MB", "B"],
    bare_is_plain: false,
    example: "8MB",
    reads: |text| text.parse::<Bytes>().is_ok(),
};
pub(crate) static SEGMENTS: Expected = Expected {
    noun: "a number of segments",
    dims: &[Dim::Segments],
    accepted: &["segments"],
    bare: ["segments", "segments"],
    bare_is_plain: false,
    example: "3500 segments",
    reads: |text| text.parse::<Segments>().is_ok(),
};
pub(crate) static PACKETS: Expected = Expected {
    noun: "a number of packets",
    dims: &[Dim::Packets],
    accepted: &["packets"],
    bare: ["packets", "packets"],
    bare_is_plain: false,
    example: "200 packets",
    reads: |text| text.parse::<Packets>().is_ok(),
};
pub(crate) static FRACTION: Expected = Expected {
    noun: "a fraction",
    dims: &[Dim::Percent],
    accepted: &["%"],
    bare: ["%", "%"],
    bare_is_plain: true,
    example: "2%",
    reads: |text| text.parse::<Fraction>().is_ok(),
};
pub(crate) static WINDOW: Expected = Expected {
    noun: "a window",
    dims: &[Dim::Size, Dim::Segments, Dim::Bdp],
    accepted: &[
        "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "segments", "BDP",
    ],
    bare: ["MB", "segments"],
    bare_is_plain: false,
    example: "8MB",
    reads: |text| text.parse::<WindowSize>().is_ok(),
};
pub(crate) static BUFFER: Expected = Expected {
    noun: "a buffer size",
    dims: &[Dim::Packets, Dim::Size, Dim::Time, Dim::Bdp],
    accepted: &[
        "packets", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s",
        "min", "h", "BDP", UNLIMITED,
    ],
    bare: ["packets", "packets"],
    bare_is_plain: false,
    example: "200 packets",
    reads: |text| text.parse::<BufferSize>().is_ok(),
};
