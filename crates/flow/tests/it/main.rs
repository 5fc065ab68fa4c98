//! Integration tests of the endpoint.

mod detection;
mod host;
mod linux;
mod model;
mod prr;
mod scale;
mod sending;
mod timers;
