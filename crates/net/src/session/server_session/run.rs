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
    /// Reason, if it has to end.
    pub why: Option<EndReason>,
    /// Bytes in both directions, headers and all.
    max_bytes: Option<u64>,
    /// When the rate was last looked at, and the bytes then.
    judged: (Time, u64),
}

/// How much faster than allowed a client may be over [`JUDGED`].
const RATE_SLACK: f64 = 1.2;
const JUDGED: Span = Span::from_secs(2);
/// What a copy of a few bytes may take: retransmissions on a path that loses most of them.
const OF_SMALL_COPY: u64 = 1_000_000;

impl Run {
    /// Starts the accounting of a run.
    pub fn new(now: Time, job: Arc<Job>) -> Self {
        let max_bytes = job.grant.max_bytes.map(|most| most.0);
        Self {
            job,
            why: None,
            max_bytes,
            judged: (now, 0),
        }
    }

    /// The run carries files of so many bytes, each of which is within the limit: as many again may
    /// be headers, acknowledgments and retransmissions.
    pub fn carries(&mut self, bytes: u64) {
        let with_the_rest = bytes.saturating_mul(2).saturating_add(OF_SMALL_COPY);
        self.max_bytes = self.max_bytes.map(|_| with_the_rest);
    }

    /// The limit that was exceeded, if one was.
    pub fn exceeded(&mut self, now: Time, traffic: &Traffic) -> Option<EndReason> {
        let all = traffic.received + traffic.sent;
        if self.max_bytes.is_some_and(|most| all > most) {
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

#[cfg(test)]
mod tests {
    use fullpipe_run::RunSpec;
    use fullpipe_units::Bytes;

    use super::super::super::control::Grant;
    use super::super::super::request::Options;
    use super::*;

    /// A test is limited to what is granted, a copy to what its files take on the wire.
    #[test]
    fn headers_and_retransmissions_of_a_copy_do_not_count() {
        let job = |max_bytes| {
            Arc::new(Job {
                spec: Arc::new(RunSpec::default()),
                options: Options::default(),
                grant: Grant {
                    max_bytes,
                    ..Grant::default()
                },
            })
        };
        let ends = |run: &mut Run, received: u64| {
            let traffic = Traffic {
                received,
                ..Traffic::default()
            };
            run.exceeded(Time::ZERO, &traffic)
        };
        let mut test = Run::new(Time::ZERO, job(Some(Bytes(5_000_000))));
        assert_eq!(ends(&mut test, 5_000_000), None);
        assert_eq!(ends(&mut test, 5_000_001), Some(EndReason::Bytes));
        let mut copy = Run::new(Time::ZERO, job(Some(Bytes(5_000_000))));
        copy.carries(5_000_000);
        assert_eq!(ends(&mut copy, 9_000_000), None);
        assert_eq!(ends(&mut copy, 12_000_000), Some(EndReason::Bytes));
        let mut free = Run::new(Time::ZERO, job(None));
        free.carries(1);
        assert_eq!(ends(&mut free, u64::MAX), None);
    }
}
