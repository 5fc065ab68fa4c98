//! Laws of traffic: sizes of short flows, rates over time, and counts per interval.

mod interval;
mod sizes;
mod waveform;

pub use interval::PerInterval;
pub use sizes::draw as draw_size;
pub use waveform::{Integral, amount};
