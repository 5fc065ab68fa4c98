//! Windows and buffers in segments and packets.

use fullpipe_metrics::bdp_packets;
use fullpipe_units::{Rate, Span, WindowSize};

/// Whole segments of a window: bytes are payload, a BDP is counted in packets.
pub(super) fn segments(size: WindowSize, rate: Rate, rtt: Span, packet: u32, mss: u32) -> f64 {
    match size {
        WindowSize::Bytes(bytes) => (bytes.0 / u64::from(mss.max(1))) as f64,
        WindowSize::Segments(n) => n.floor(),
        WindowSize::Bdp(factor) => whole(factor * bdp_packets(rate, rtt, packet)),
    }
}

/// A small number as people read it.
pub(super) fn significant(x: f64) -> String {
    if x >= 0.01 {
        format!("{x:.3}")
    } else {
        format!("{x:.1e}")
    }
}

/// Rounds down, but lets 3499.9999999999995 be 3500.
pub(super) fn whole(x: f64) -> f64 {
    (x * (1.0 + 1e-12)).floor()
}
