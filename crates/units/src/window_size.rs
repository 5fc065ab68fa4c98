//! [`WindowSize`]: a window, in bytes, segments or BDP.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, Dim, Expected, Finest};
use crate::{Bytes, ParseQuantityError, Segments};

/// A window in bytes, in segments, or relative to the path. Numbers are finite and not negative
/// when read from text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum WindowSize {
    /// `8MB`
    Bytes(Bytes),
    /// `3500 segments`
    Segments(f64),
    /// `1.05BDP`, of the bottleneck capacity and the base RTT of the flow.
    Bdp(f64),
}

impl FromStr for WindowSize {
    type Err = ParseQuantityError;
    fn from_str(text: &str) -> Result<WindowSize, ParseQuantityError> {
        let found = quantity::parse(text, &WINDOW)?;
        match found.dim {
            Dim::Segments => found.real().map(WindowSize::Segments),
            Dim::Bdp => found.real().map(WindowSize::Bdp),
            _ => found
                .whole(Finest::Exact)
                .map(|bytes| WindowSize::Bytes(Bytes(bytes))),
        }
    }
}

impl fmt::Display for WindowSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WindowSize::Bytes(bytes) => bytes.fmt(f),
            WindowSize::Segments(count) => Segments(count).fmt(f),
            WindowSize::Bdp(factor) => f.pad(&format!("{factor}BDP")),
        }
    }
}

static WINDOW: Expected = Expected {
    noun: "a window",
    dims: &[Dim::Size, Dim::Segments, Dim::Bdp],
    accepted: &[
        "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "segments", "BDP",
    ],
    bare: ["segments", "segments"],
    bare_is_plain: false,
    example: "8MB",
    reads: |text| text.parse::<WindowSize>().is_ok(),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_reads_refuses() {
        for (window, text) in [
            (WindowSize::Bytes(Bytes(8_000_000)), "8MB"),
            (WindowSize::Bytes(Bytes(2 << 20)), "2MiB"),
            (WindowSize::Segments(3500.0), "3500 segments"),
            (WindowSize::Bdp(1.05), "1.05BDP"),
        ] {
            assert_eq!(window.to_string(), text);
            assert_eq!(text.parse(), Ok(window));
        }
        for (text, hint) in [
            ("8", "write `8 segments`"),
            ("3500", "write `3500 segments`"),
            ("1 bdp", "write `1BDP`"),
            ("10 segs", "write `10 segments`"),
            ("80ms", "write for example `8MB`"),
        ] {
            assert_eq!(
                text.parse::<WindowSize>().unwrap_err().hint().as_deref(),
                Some(hint),
                "{text}"
            );
        }
    }
}
