//! A run under way: whether the client keeps within what was granted.

use std::sync::Arc;

use fullpipe_units::{Span, Time};

use super::super::control::EndReason;
use super::super::control_port::Traffic;
use super::Job;

/// A run.
#[derive(Debug)]
pub struct Run {
    /// The run as granted.
    pub job: Arc<Job>,
    /// Why it has to end.
    pub why: Option<EndReason>,
    /// When the rate was last looked at, and the bytes then.
    judged: (Time, u64),
}

/// How much faster than allowed a client may be over [`JUDGED`].
const RATE_SLACK: f64 = 1.2;
const JUDGED: Span = Span::from_secs(2);

impl Run {
    /// Starts the accounting of a run.
    pub fn new(now: Time, job: Arc<Job>) -> Self {
        Self {
            job,
            why: None,
            judged: (now, 0),
        }
    }

    /// The limit that was exceeded, if one was.
    pub fn exceeded(&mut self, now: Time, traffic: &Traffic) -> Option<EndReason> {
        let all = traffic.received + traffic.sent;
        if self.job.grant.max_bytes.is_some_and(|most| all > most.0) {
            return Some(EndReason::Bytes);
        }
        let rate = self.job.grant.max_rate?;
        let (since, before) = self.judged;
        let span = now.saturating_since(since);
        if span < JUDGED {
            return None;
        }
        self.judged = (now, traffic.received);
        let allowed = rate.bytes_in(span).0 as f64 * RATE_SLACK;
        (traffic.received.saturating_sub(before) as f64 > allowed).then_some(EndReason::Rate)
    }
}
