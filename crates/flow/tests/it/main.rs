//! Integration tests of the endpoint.

mod detection;
mod host;
mod model;
