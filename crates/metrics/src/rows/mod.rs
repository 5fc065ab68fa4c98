//! The rows of the table of metrics, each with the function that computes it.

mod case;
mod flow;
mod link;
mod traffic;

pub use case::CASE;
pub use flow::FLOW;
pub use link::LINK;
pub use traffic::TRAFFIC;
