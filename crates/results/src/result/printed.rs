//! Numbers as they are printed: fifteen significant digits, which every double has. Those behind
//! them tell how it was computed, not what was measured: `47.35307519999999` is 47.3530752. What a
//! store keeps are the doubles.

use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// The nearest double of fifteen significant digits.
pub fn float(x: f64) -> f64 {
    if !x.is_finite() || x.fract() == 0.0 {
        return x;
    }
    // Both are texts of the standard library, which reads what it writes.
    format!("{x:.14e}").parse().unwrap_or(x)
}

/// Writes a value as JSON of several lines.
///
/// # Errors
/// If it cannot be written, or has maps whose keys are no strings.
pub fn write_pretty(out: &mut dyn io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut to = Serializer::with_formatter(out, Printed(PrettyFormatter::new()));
    Ok(value.serialize(&mut to)?)
}

/// The same with a line break at the end.
///
/// # Panics
/// On maps whose keys are no strings: of these types none has any.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    write_pretty(&mut text, value).expect("maps with string keys only");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is text")
}

/// A value as JSON of one line, with a line break at the end.
///
/// # Panics
/// As [`pretty`].
pub fn line(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    let mut to = Serializer::with_formatter(&mut text, Printed(CompactFormatter));
    value
        .serialize(&mut to)
        .expect("maps with string keys only");
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is text")
}

/// The format of another formatter, with these numbers.
struct Printed<F>(F);

/// What both formatters of `serde_json` do otherwise than the trait does by itself.
macro_rules! as_inside {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $name<W: ?Sized + io::Write>(&mut self, out: &mut W $(, $arg: $type)*) -> io::Result<()> {
            self.0.$name(out $(, $arg)*)
        }
    )*};
}

impl<F: Formatter> Formatter for Printed<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, x: f64) -> io::Result<()> {
        self.0.write_f64(out, float(x))
    }

    as_inside! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digits_that_nobody_measured_are_not_printed() {
        assert_eq!(float(47.353_075_199_999_99), 47.353_075_2);
        assert_eq!(float(0.1 + 0.2), 0.3);
        assert_eq!(float(1.664_444_158_999_999_9e-9), 1.664_444_159e-9);
        // What has no more digits, or is whole, stays.
        for x in [
            0.0,
            -0.0,
            1.0 / 4.0,
            9_007_199_254_740_991.0,
            1e300,
            f64::MIN_POSITIVE,
        ] {
            assert_eq!(float(x).to_bits(), float(float(x)).to_bits());
            assert!((float(x) - x).abs() <= 1e-14 * x.abs(), "{x}");
        }
        assert_eq!(float(9_007_199_254_740_991.0), 9_007_199_254_740_991.0);
        assert!(float(f64::INFINITY).is_infinite());
    }

    #[test]
    fn it_is_the_json_of_serde_but_for_digits() {
        let value = json!({
            "a": [1, 2.5, null, [], {}, "x\"y"],
            "b": { "c": { "d": [[true], [false, 1e-7]] } },
            "e": {},
        });
        let both = serde_json::to_string_pretty(&value).unwrap() + "\n";
        assert_eq!(pretty(&value), both);
        assert_eq!(line(&value), serde_json::to_string(&value).unwrap() + "\n");
        assert_eq!(line(&json!([0.1 + 0.2, f64::NAN])), "[0.3,null]\n");
    }
}
