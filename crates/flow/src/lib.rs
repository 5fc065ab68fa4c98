//! fullpipe-flow
