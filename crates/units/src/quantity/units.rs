//! The units, and a value in the one that suits it.

use alloc::string::String;

use super::Dim;

pub(crate) struct Unit {
    pub(super) name: &'static str,
    pub(super) scale: u64,
    /// Most decimals when printing.
    decimals: u32,
}

/// `value` in the largest of `units` (largest first) that is not above it and needs no more than
/// its decimals; `None` if there is none.
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

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit {
        name,
        scale,
        decimals: 4,
    }
}

// Minutes and hours print whole only: `90s` reads better than `1.5min`, and than
// `1.025h` for `3690s`.
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

pub(super) const TABLES: &[(Dim, &[Unit])] = &[
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
