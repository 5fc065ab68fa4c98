//! fullpipe-suite

pub mod figure;
pub mod scenario;
