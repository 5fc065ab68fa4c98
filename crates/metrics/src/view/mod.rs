//! A run as the functions of the metrics see it: what several of them need, computed once.

mod case;
mod flow;
mod path;
mod traffic;

pub use case::CaseView;
pub use flow::{FlowView, goodput, inflation, measured_part, samples, stability};
pub use traffic::{DatagramsView, PingView, ShortFlowsView};
