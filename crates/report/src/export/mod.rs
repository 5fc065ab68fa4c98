//! Stored runs and traces in the formats of other people's tools: [`csv`] for everything, [`xplot`]
//! for xplot, qlog for qvis.

pub mod csv;
mod source;
pub mod xplot;

pub use source::{ExportError, Form, Lack, Wanted, export};
