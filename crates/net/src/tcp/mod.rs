//! Flows over the kernels' own TCP, beside a session: the session's control, cross traffic and
//! probes are UDP as ever, and each flow is a connection to the TCP port of the same number.
//!
//! - [`ticket`]: what a connection shows before it carries data.
//! - [`desk`]: the server's TCP port, open for as long as a test expects connections.
//! - [`beside`](mod@beside): what the connections carried, for the limits.
//! - [`flow`]: one of them at one side, and what `TCP_INFO` says of it.
//! - [`flows`]: the senders and sinks of one side, on one thread.

pub mod beside;
pub mod desk;
mod flow;
pub mod flows;
mod sink;
pub mod ticket;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fullpipe_cc::StackSpec;
use fullpipe_host::{HostOutcome, ReceiverReport, SenderReport};
use fullpipe_run::RunSpec;

pub use beside::Beside;
pub use desk::{Desk, Expected};
pub use flows::{Door, Flows};

/// What one side leaves behind of its flows.
#[derive(Debug, Default)]
pub struct Halves {
    /// Flows that send from here.
    pub senders: Vec<SenderReport>,
    /// Flows that are received here.
    pub receivers: Vec<ReceiverReport>,
    /// Connections that failed, one sentence each.
    pub failures: Vec<String>,
}

impl Halves {
    /// Puts the flows into what the endpoint beside them has left.
    pub fn join(self, outcome: &mut HostOutcome) -> Vec<String> {
        outcome.senders = self.senders;
        outcome.receivers = self.receivers;
        self.failures
    }
}

/// The kernel's name of a stack's congestion module.
pub fn module(stack: &StackSpec) -> &str {
    let law = stack.law_name();
    law.strip_suffix("-linux").unwrap_or(law)
}

/// Congestion modules that this kernel has loaded or built in.
pub fn modules() -> Vec<String> {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list = std::fs::read_to_string(file).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// What the endpoint beside the connections carries: all but the flows.
pub fn without_flows(spec: &RunSpec) -> RunSpec {
    RunSpec {
        flows: Vec::new(),
        ..spec.clone()
    }
}

/// Runs flows on a thread of their own for as long as `run` takes.
pub fn beside<T>(flows: Option<Flows<'_>>, run: impl FnOnce() -> T) -> (T, Option<Halves>) {
    let Some(flows) = flows else {
        return (run(), None);
    };
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let thread = scope.spawn(|| flows.run(&over));
        let ran = run();
        over.store(true, Ordering::Relaxed);
        let halves = thread.join();
        let halves = halves.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ran, Some(halves))
    })
}

/// What a sender counts is as old as its last sample; what arrived after that was sent.
pub fn settle(near: &mut HostOutcome, far: &mut HostOutcome) {
    for (senders, receivers) in [
        (&mut near.senders, &far.receivers),
        (&mut far.senders, &near.receivers),
    ] {
        for s in senders {
            let arrived = receivers.iter().find(|r| r.flow == s.flow);
            let arrived = arrived.map_or(0, |r| r.totals.delivered);
            s.offered = s.offered.max(arrived);
            s.totals.sent = s.totals.sent.max(arrived);
        }
    }
}
