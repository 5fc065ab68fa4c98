//! What connections carry, counted where the limits of a session are kept.

use std::sync::atomic::AtomicU64;

/// Bytes that the connections carried, headers as they are on full packets: what the limits of a
/// session count beside its datagrams.
#[derive(Debug, Default)]
pub struct Beside {
    /// Bytes that came, from either side's point of view its own.
    pub received: AtomicU64,
    /// Bytes that left, as far as the kernel has taken them.
    pub sent: AtomicU64,
}
