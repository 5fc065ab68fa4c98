//! Traffic that is not a lasting flow: datagrams at a prescribed rate, round-trip probes, short flows that come and go.

mod interval;
mod ping;
mod source;
mod waveform;

pub use ping::Ping;
pub use source::Source;
