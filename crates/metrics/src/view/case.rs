//! One run as a whole.

use fullpipe_run::{FlowOutcome, Outcome};

use super::flow::goodput;
use crate::FlowGroup;

/// A run of a case: what the metrics of the case are computed of.
pub struct CaseView<'a> {
    /// The flows of the scenario; their members index the flows of the outcome.
    pub groups: &'a [FlowGroup],
    /// Counters, samples and series of the run.
    pub outcome: &'a Outcome,
    /// Goodput of every flow, Mbit/s; 0 where it is undefined.
    pub goodput: Vec<f64>,
}

impl<'a> CaseView<'a> {
    /// # Panics
    /// If a group's members are not in the outcome.
    pub fn new(groups: &'a [FlowGroup], outcome: &'a Outcome) -> CaseView<'a> {
        let of =
            |g: &FlowGroup| goodput(g, &outcome.flows[g.members.clone()], outcome).unwrap_or(0.0);
        CaseView {
            groups,
            outcome,
            goodput: groups.iter().map(of).collect(),
        }
    }

    /// The streams of all flows.
    pub fn streams(&self) -> impl Iterator<Item = &'a FlowOutcome> {
        let flows = &self.outcome.flows;
        let groups = self.groups.iter();
        groups.flat_map(|g| &flows[g.members.clone()])
    }
}
