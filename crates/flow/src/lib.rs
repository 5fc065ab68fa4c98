#![doc = include_str!("../README.md")]

pub mod change;
mod clock;
pub mod config;
pub mod episode;
mod limit;
pub mod ranges;
pub mod receiver;
mod recent;
pub mod segment;
pub mod sender;
pub mod trace;

pub use change::{Ceiling, Change, ChangeError};
pub use clock::TimerClock;
pub use config::{
    AckCompression, AckConfig, ArtificialLoss, CeEcho, Detector, HEADERS, HEADERS_WITH_STAMPS,
    HostConfig, LocalDrop, LossWindow, PacerRule, PacingConfig, PacketLengths, Preset,
    ReceiveWindowConfig, ReceiverConfig, RecoveryConfig, Reduction, RtoConfig, RtoRule, RttSample,
    SackConfig, SenderConfig, SpuriousRule, TimerConfig, TimerGrain, Validation, WindowConfig,
};
pub use episode::{Episode, EpisodeKind, Proof};
pub use limit::{Limit, LimitTimes};
pub use ranges::{Range, RangeSet};
pub use receiver::{Receiver, ReceiverCounts, Taken};
pub use segment::{Ack, SackBlocks, Segment};
pub use sender::{Allowance, Prr, PrrAck, RttEstimator, Sender, SenderCounts};
pub use trace::{Events, TraceRow, TraceSink};
