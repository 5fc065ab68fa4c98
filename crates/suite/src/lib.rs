//! fullpipe-suite
