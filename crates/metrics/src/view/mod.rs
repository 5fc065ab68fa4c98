//! A run as the functions of the metrics see it: what several of them need, computed once.

mod case;
mod flow;
mod path;
mod traffic;

pub use case::CaseView;
pub use flow::{FlowView, goodput, inflation, measured_part, samples, stability};
pub use traffic::{DatagramsView, PingView, ShortFlowsView};

use fullpipe_run::Outcome;

/// Whether the path was the network to another host, whose rate and delays nobody knows: what the
/// scenario says of them is not its.
fn over_a_network(outcome: &Outcome) -> bool {
    let fidelity = outcome.fidelity.as_ref();
    fidelity.is_some_and(|f| f.path_added.is_none())
}
