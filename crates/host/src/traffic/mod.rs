//! Traffic that is not a lasting flow: datagrams at a prescribed rate, round-trip probes, short
//! flows that come and go.

mod class;
mod ping;
mod source;

pub use class::ClassRecord;
pub(crate) use class::{Class, Short};
pub use ping::Ping;
pub use source::Source;
