//! What held a flow back, and for how long.
//!
//! Linux answers the question with its chronographs (`net/ipv4/tcp_output.c`, `tcp_chrono_start`;
//! `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` of `TCP_INFO`), in fewer words.

use fullpipe_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// What kept a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Limit {
    /// The congestion window, and so the path: losses, marks and delay set the window.
    Network,
    /// The congestion window at its own cap ([`WindowConfig::max`](crate::WindowConfig::max)).
    WindowCap,
    /// The receiver's advertised window.
    ReceiveWindow,
    /// The queue of the sender's own host: full, or as full as small queues let it be; or its send
    /// buffer.
    LocalQueue,
    /// The flow's own ceiling ([`PacingConfig::max`](crate::PacingConfig::max)).
    Rate,
    /// Pacing, at the rate that follows from window and RTT or from the controller's model.
    Pacing,
    /// The application: there was nothing to send.
    Application,
}

impl Limit {
    /// All of them, in the order of [`LimitTimes`].
    pub const ALL: [Self; 7] = [
        Self::Network,
        Self::WindowCap,
        Self::ReceiveWindow,
        Self::LocalQueue,
        Self::Rate,
        Self::Pacing,
        Self::Application,
    ];

    /// Name in tables and columns.
    pub fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::WindowCap => "window cap",
            Self::ReceiveWindow => "receive window",
            Self::LocalQueue => "local queue",
            Self::Rate => "rate",
            Self::Pacing => "pacing",
            Self::Application => "application",
        }
    }
}

/// Time that a flow spent at each limit, by [`Limit`]; its sum is the flow's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitTimes([Span; Limit::ALL.len()]);

impl LimitTimes {
    /// `time` at `limit`, none at the others.
    pub fn one(limit: Limit, time: Span) -> Self {
        let mut times = Self::default();
        times.0[limit as usize] = time;
        times
    }

    /// Time at `limit`.
    pub fn of(&self, limit: Limit) -> Span {
        self.0[limit as usize]
    }

    /// Time at all limits.
    pub fn total(&self) -> Span {
        self.0.iter().fold(Span::ZERO, |sum, t| sum + *t)
    }

    /// The limit with the most time, the first of equals; `None` if all are zero.
    pub fn longest(&self) -> Option<Limit> {
        let mut longest = None;
        for limit in Limit::ALL {
            if self.of(limit) > longest.map_or(Span::ZERO, |l| self.of(l)) {
                longest = Some(limit);
            }
        }
        longest
    }

    /// The same where the local queue is full because somebody else's ceiling holds it.
    #[must_use]
    pub fn under_a_ceiling(self) -> Self {
        let refused = self.of(Limit::LocalQueue);
        self.since(Self::one(Limit::LocalQueue, refused))
            .plus(Self::one(Limit::Rate, refused))
    }

    /// The sum with those of another flow.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    /// Times since `earlier`, an older value of the same counters.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(std::array::from_fn(|i| {
            self.0[i].saturating_sub(earlier.0[i])
        }))
    }
}

/// The present limit, and since when. Only a change costs more than a comparison: the times stand
/// elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chronograph {
    limit: Limit,
    since: Time,
}

impl Chronograph {
    pub(crate) fn new() -> Self {
        Self {
            limit: Limit::Network,
            // Nothing holds back what has not begun.
            since: Time::MAX,
        }
    }

    /// The flow begins, with a handshake or with data: it waits for the network.
    pub(crate) fn start(&mut self, now: Time) {
        self.since = now;
    }

    /// From now on this is the limit.
    #[inline(always)]
    pub(crate) fn note(&mut self, now: Time, limit: Limit, times: &mut LimitTimes) {
        if limit != self.limit {
            self.change(now, limit, times);
        }
    }

    #[cold]
    fn change(&mut self, now: Time, limit: Limit, times: &mut LimitTimes) {
        *times = self.until(now, *times);
        (self.limit, self.since) = (limit, now);
    }

    /// `times`, which end with the last change, until `now`.
    pub(crate) fn until(&self, now: Time, mut times: LimitTimes) -> LimitTimes {
        let of = &mut times.0[self.limit as usize];
        *of += now.saturating_since(self.since);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instant belongs to exactly one limit.
    #[test]
    fn times_add_up() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let (mut c, mut t) = (Chronograph::new(), LimitTimes::default());
        assert_eq!(c.until(at(5), t), LimitTimes::default());
        c.start(at(10));
        c.note(at(30), Limit::LocalQueue, &mut t);
        c.note(at(35), Limit::LocalQueue, &mut t);
        c.note(at(60), Limit::Application, &mut t);
        let (early, late) = (c.until(at(60), t), c.until(at(100), t));
        assert_eq!(late.total(), Span::from_millis(90));
        assert_eq!(late.of(Limit::Network), Span::from_millis(20));
        assert_eq!(late.of(Limit::LocalQueue), Span::from_millis(30));
        assert_eq!(late.longest(), Some(Limit::Application));
        assert_eq!(early.longest(), Some(Limit::LocalQueue));
        let rest = late.since(early);
        assert_eq!(
            (rest.total(), rest.of(Limit::Application)),
            (Span::from_millis(40), Span::from_millis(40))
        );
        assert_eq!(LimitTimes::default().longest(), None);
        for (i, limit) in Limit::ALL.into_iter().enumerate() {
            assert_eq!(limit as usize, i);
        }
    }
}
