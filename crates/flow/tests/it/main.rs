//! Integration tests of the endpoint.

mod bbr;
mod change;
mod detection;
#[path = "../../../cc/tests/it/fixed_share.rs"]
mod fixed_share;
mod handshake;
mod host;
mod lateness;
mod linux;
mod local_queue;
mod marks;
mod model;
mod pacing;
mod persist;
mod prr;
mod rate_based;
mod scale;
mod sending;
mod timers;
mod walls;
