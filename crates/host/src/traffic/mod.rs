//! Traffic that is not a lasting flow: datagrams at prescribed times, answered or not, and short
//! flows that come and go.

mod class;
mod cross;

pub use class::ClassRecord;
pub(crate) use class::{Class, Short};
pub use cross::Cross;
