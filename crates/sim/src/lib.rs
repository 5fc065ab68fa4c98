//! fullpipe-sim
