//! Integration tests of the endpoint.

mod detection;
mod host;
mod model;
mod prr;
mod scale;
mod sending;
mod timers;
