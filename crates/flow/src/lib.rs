//! The endpoint: a sans-IO sender and receiver of numbered segments, used unchanged by the simulator and over real sockets.
//!
//! What it is: scoreboard, loss detection, recovery, timers, delivery rate, pacing, initial-window spreading, delayed ACKs,
//! window validation, each with a switch ([`SenderConfig`], [`ReceiverConfig`]). What it is not: it has no clock, no socket
//! and no wire format; segments are numbered, and a host moves them.
//!
//! ```
//! use fullpipe_cc::{Setup, StackSpec};
//! use fullpipe_flow::{Preset, Receiver, ReceiverConfig, Sender, SenderConfig};
//! use fullpipe_units::{Span, Time};
//!
//! let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false);
//! let cc = StackSpec::parse("reno").unwrap().controller(Setup::default());
//! let mut sender = Sender::new(cfg, cc, 0);
//! let mut receiver = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
//! sender.start(Time::ZERO);
//! let mut acks = Vec::new();
//! while let Some(segment) = sender.poll_transmit(Time::ZERO) {
//!     acks.extend(receiver.handle_segment(Time::ZERO, &segment));
//! }
//! assert_eq!(acks.len(), 5); // ten segments, every second acknowledged
//! for ack in &acks {
//!     sender.handle_ack(Time::ZERO + Span::from_millis(80), ack);
//! }
//! assert_eq!(sender.cwnd(), 20.0);
//! ```

mod clock;
pub mod config;
pub mod episode;
pub mod ranges;
pub mod receiver;
pub mod segment;
pub mod sender;
pub mod trace;

pub use config::{
    AckCompression, AckConfig, ArtificialLoss, Detector, HostConfig, LocalDrop, LossWindow,
    PacingConfig, Preset, ReceiveWindowConfig, ReceiverConfig, RecoveryConfig, Reduction,
    RtoConfig, RtoRule, RttSample, SackConfig, SenderConfig, TimerConfig, TimerGrain, Validation,
    WindowConfig,
};
pub use episode::{Episode, EpisodeKind};
pub use ranges::{Range, RangeSet};
pub use receiver::{Receiver, ReceiverCounts};
pub use segment::{Ack, SackBlocks, Segment};
pub use sender::{Prr, PrrAck, RttEstimator, Sender, SenderCounts};
pub use trace::{Events, TraceRow, TraceSink};
