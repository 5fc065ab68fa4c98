//! fullpipe-suite

pub mod scenario;
