//! The simulator held against Linux: one list of cells, run with both, reduced by one code, compared with stated limits.
//!
//! [`cell`] lists the experiments, [`oracle`] runs them with Linux.

#![allow(clippy::disallowed_methods)] // The oracle is a process of the host: its runner waits and tells the time left.

pub mod cell;
pub mod oracle;
