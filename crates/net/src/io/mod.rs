//! UDP sockets with batched system calls, and precise waiting.
//!
//! - [`Clock`]: real time as the sans-IO endpoint wants it.
//! - [`Socket`]: a UDP socket that never blocks; [`Outbox`] sends through it, [`Inbox`] receives.
//! - [`Waiter`]: sleeps until a datagram arrives or a moment is reached; [`Stop`] ends the loop
//!   from another thread.
//!
//! Two ways to send ([`Mode`]): one datagram per packet with `sendmmsg`, so that each leaves when
//! its sender said so; or runs of equal datagrams as one call with segmentation offload, which is
//! several times cheaper and leaves as one burst. Receiving has its own switch,
//! [`IoConfig::coalesce`], because a merged receive hides the spacing of what arrives.
//!
//! Nothing here allocates per datagram.
//! `quinn-udp` does offload, code points and receive time stamps; `nix` the rest, so that no line
//! of this crate is unsafe.

mod clock;
mod inbox;
mod outbox;
mod socket;
mod waiter;

pub use clock::Clock;
pub use inbox::{Datagram, Inbox};
pub use outbox::{Flushed, Outbox};
pub use quinn_udp::EcnCodepoint as Ecn;
pub(crate) use socket::may_be_icmp;
pub use socket::{Granted, IoConfig, Mode, Socket, has_segmentation};
pub use waiter::{Ready, Stop, WaitStrategy, Waiter, pin};

#[cfg(test)]
mod tests;
