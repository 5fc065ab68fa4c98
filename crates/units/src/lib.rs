//! Times, sizes, rates, windows and buffers as types that carry their unit.
//!
//! What it is: integer newtypes for simulation arithmetic ([`Time`], [`Span`], [`Bytes`], [`Rate`],
//! [`Packets`]), quantities as people write them ([`WindowSize`], [`BufferSize`], [`Fraction`],
//! [`Segments`]), and one way to read and print them all. Printing and reading back gives the same
//! value.
//!
//! What it is not: a general unit library. There is no unit conversion beyond what a path needs, no
//! clock, and no default unit: a bare number where a quantity is due is an error that names the
//! accepted units.
//!
//! ```
//! use fullpipe_units::{BufferSize, Bytes, Rate, Span};
//!
//! let capacity: Rate = "622Mbit/s".parse()?;
//! let rtt: Span = "80 ms".parse()?;
//! assert_eq!(capacity.bdp(rtt), Bytes(6_220_000));
//! assert_eq!(capacity.transmit(Bytes(1500)).to_string(), "19.293us");
//! assert_eq!("0.5BDP".parse(), Ok(BufferSize::Bdp(0.5)));
//!
//! let error = "80".parse::<Span>().unwrap_err();
//! assert_eq!(error.hint().as_deref(), Some("write `80ms`"));
//! # Ok::<(), fullpipe_units::ParseQuantityError>(())
//! ```
//!
//! Units, case matters: `ns us µs ms s min h`; `bit/s kbit/s Mbit/s Gbit/s Tbit/s`; `B kB MB GB TB`
//! (powers of 1000) and `KiB MiB GiB TiB` (powers of 1024); `segments`, `packets`, `BDP`, `%`.
//! Blanks before the unit, decimals, exponents and `_` between digits are allowed.

#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;

mod buffer_size;
mod bytes;
mod fraction;
mod packets;
mod printed;
mod quantity;
mod rate;
mod segments;
mod span;
mod time;
mod window_size;

pub use buffer_size::BufferSize;
pub use bytes::Bytes;
pub use fraction::Fraction;
pub use packets::Packets;
pub use printed::{printed, printed_text};
pub use quantity::{ParseQuantityError, QuantityErrorKind};
pub use rate::Rate;
pub use segments::Segments;
pub use span::Span;
pub use time::Time;
pub use window_size::WindowSize;
