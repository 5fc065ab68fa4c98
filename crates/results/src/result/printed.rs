//! JSON as it is printed, its numbers with fifteen significant digits. What a store keeps are the
//! doubles.

use std::io;

use fullpipe_units::printed;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

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
        self.0.write_f64(out, printed(x))
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
