//! Integration tests of the endpoint.

mod detection;
mod handshake;
mod host;
mod linux;
mod local_queue;
mod marks;
mod model;
mod pacing;
mod persist;
mod prr;
mod scale;
mod sending;
mod timers;
mod walls;
