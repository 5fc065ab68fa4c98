//! What may be read in each place.

use super::{Dim, Expected, UNLIMITED};
use crate::{BufferSize, Bytes, Fraction, Packets, Rate, Segments, Span, WindowSize};

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
