//! fullpipe-flow
pub mod config;
pub use config::*;
