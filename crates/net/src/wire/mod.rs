//! The wire format, version 1: every datagram of fullpipe over UDP. All numbers are big-endian.
//!
//! Every datagram begins with the same twelve bytes ([`Header`]). Data has twelve more, so that a packet of 1500 bytes carries
//! 1448 bytes of payload, as TCP with time stamps does: 20 (IPv4) + 8 (UDP) + 24.
//!
//! ```text
//!  0               1               2               3
//! |version|  kind | flags         | flow                          |
//! | session                                                       |
//! |                                                               |
//! ```

mod ack;
mod data;
mod header;

pub use ack::AckDatagram;
pub use data::DataDatagram;
pub use header::{HEADER, Header, Kind, SessionId, VERSION};

/// Why a datagram is none of ours. It says nothing about its content: whoever sent it learns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Shorter than its kind.
    #[error("truncated")]
    Truncated,
    /// Another version.
    #[error("unknown version")]
    Version,
    /// A kind or flag that this version does not have, or a field out of its range.
    #[error("malformed")]
    Malformed,
}
