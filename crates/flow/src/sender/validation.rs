//! Congestion window validation after idle or application-limited time.
//!
//! RFC 5681 section 4.1 (restart window), RFC 2861 in its Linux form (halve per idle RTO,
//! and halfway to what was used), RFC 7661
//! (`pipeACK`, five minutes).

use fullpipe_units::{Span, Time};

use crate::config::Validation;

/// State of window validation.
#[derive(Clone, Debug)]
pub struct WindowValidation {
    mode: Validation,
    /// Volume acknowledged per round, maximum over the last measurement period: value and time of
    /// two periods.
    best: [(u64, Time); 2],
    /// Start of the non-validated phase.
    unvalidated_since: Option<Time>,
    starved: Starved,
}

/// What a sender used of its window while its application kept it waiting.
#[derive(Clone, Copy, Debug, Default)]
struct Starved {
    /// Most segments outstanding (Linux `snd_cwnd_used`).
    used: u64,
    /// First unacknowledged segment, and when it became that (Linux `snd_cwnd_stamp`).
    una: u64,
    since: Time,
}

/// The application has nothing to send at `now`.
#[derive(Clone, Copy, Debug)]
pub struct Starvation {
    pub now: Time,
    /// Outstanding are the segments from here,
    pub una: u64,
    /// to here.
    pub nxt: u64,
    /// The window was the limit during the last window of data.
    pub limited: bool,
    /// No reduction, loss or reordering is under way.
    pub open: bool,
    pub rto: Span,
}

/// The window so far, segments.
#[derive(Clone, Copy, Debug)]
pub struct WindowState {
    /// Window.
    pub window: f64,
    /// Threshold.
    pub ssthresh: f64,
    /// Initial window.
    pub initial: f64,
}

/// The window and the threshold from now on, segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NewWindow {
    /// Window.
    pub window: f64,
    /// Threshold.
    pub ssthresh: f64,
}

impl WindowValidation {
    /// At the start of a connection.
    pub fn new(mode: Validation) -> Self {
        Self {
            mode,
            best: [(0, Time::ZERO); 2],
            unvalidated_since: None,
            starved: Starved::default(),
        }
    }

    /// RFC 7661 section 4.2: `pipeACK`, segments; `None` while undefined or unused.
    pub fn pipe_ack(&self) -> Option<u64> {
        let best = self.best[0].0.max(self.best[1].0);
        (self.mode == Validation::Rfc7661 && best > 0).then_some(best)
    }

    /// A round ended in which `volume` segments were acknowledged.
    pub fn on_round(
        &mut self,
        now: Time,
        volume: u64,
        srtt: Span,
        state: WindowState,
    ) -> Option<NewWindow> {
        let (w, ssth, iw) = (state.window, state.ssthresh, state.initial);
        if self.mode != Validation::Rfc7661 {
            return None;
        }
        let period = (srtt * 3).max(Span::from_secs(1));
        let is_over = |(_, at): (u64, Time)| now.saturating_since(at) > period;
        if is_over(self.best[0]) {
            self.best = [self.best[1], (0, now)];
        }
        if volume >= self.best[0].0 || is_over(self.best[0]) {
            self.best = [(volume, now), (0, now)];
        } else if volume >= self.best[1].0 || now.saturating_since(self.best[1].1) > period / 2 {
            self.best[1] = (volume, now);
        }
        let validated = self.pipe_ack().is_none_or(|p| p as f64 >= w / 2.0);
        if validated {
            self.unvalidated_since = None;
            return None;
        }
        let since = *self.unvalidated_since.get_or_insert(now);
        if now.saturating_since(since) < FIVE_MINUTES {
            return None;
        }
        self.unvalidated_since = None;
        Some(NewWindow {
            window: (w / 2.0).max(iw.min(w)),
            ssthresh: ssth.max(0.75 * w),
        })
    }

    /// The application keeps the sender waiting. In the Linux form (`tcp_cwnd_application_limited`)
    /// the window falls halfway to what was used of it, at a segment that leaves a timeout after
    /// the last ACK of new data, and before the next one: `tcp_cong_avoid` stamps the window with
    /// each, so that a flow which never pauses for so long keeps it.
    pub fn on_starved(&mut self, at: &Starvation, state: WindowState) -> Option<NewWindow> {
        if self.mode != Validation::Rfc2861 {
            return None;
        }
        let starved = &mut self.starved;
        if at.limited || at.una > starved.una {
            (starved.una, starved.since) = (at.una, at.now);
        }
        if at.limited {
            starved.used = 0;
            return None;
        }
        starved.used = starved.used.max(at.nxt - at.una);
        if at.now.saturating_since(starved.since) < at.rto {
            return None;
        }
        starved.since = at.now;
        if !at.open {
            return None;
        }
        let used = (std::mem::take(&mut starved.used) as f64).max(state.initial);
        (used < state.window).then(|| NewWindow {
            window: ((state.window + used) / 2.0).floor(),
            ssthresh: state.ssthresh.max(0.75 * state.window),
        })
    }

    /// The first segment after `idle` without sending.
    pub fn on_restart(&mut self, idle: Span, rto: Span, state: WindowState) -> Option<NewWindow> {
        let (w, ssth, iw) = (state.window, state.ssthresh, state.initial);
        if idle <= rto {
            return None;
        }
        match self.mode {
            Validation::None => None,
            Validation::Rfc5681 => Some(NewWindow {
                window: w.min(iw),
                ssthresh: ssth,
            }),
            Validation::Rfc2861 => {
                self.starved.used = 0;
                let mut window = w;
                let mut left = idle;
                while left > rto && window > iw.min(w) {
                    window /= 2.0;
                    left = left.saturating_sub(rto);
                }
                let window = window.max(iw.min(w));
                Some(NewWindow {
                    window,
                    ssthresh: ssth.max(0.75 * w),
                })
            }
            Validation::Rfc7661 => {
                let long = idle > FIVE_MINUTES;
                long.then(|| NewWindow {
                    window: (w / 2.0).max(iw.min(w)),
                    ssthresh: ssth.max(0.75 * w),
                })
            }
        }
    }
}

/// RFC 7661 section 4.4.
const FIVE_MINUTES: Span = Span::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: WindowState = WindowState {
        window: 1000.0,
        ssthresh: 500.0,
        initial: 10.0,
    };

    /// Known numbers: w = 1000, ssthresh 500, idle 3.5 RTO -> Linux form: ssthresh 750, w 125.
    #[test]
    fn the_linux_form_halves_per_idle_timeout() {
        let rto = Span::from_secs(1);
        let restart =
            |mode| WindowValidation::new(mode).on_restart(Span::from_millis(3500), rto, STATE);
        assert_eq!(
            restart(Validation::Rfc2861),
            Some(NewWindow {
                window: 125.0,
                ssthresh: 750.0
            })
        );
        assert_eq!(
            restart(Validation::Rfc5681),
            Some(NewWindow {
                window: 10.0,
                ssthresh: 500.0
            })
        );
        assert_eq!(restart(Validation::None), None);
        assert_eq!(restart(Validation::Rfc7661), None);
    }

    /// RFC 7661 section 4.2: the maximum over the period, not what came last.
    #[test]
    fn the_second_best_follows_the_best_that_is_too_old() {
        let mut v = WindowValidation::new(Validation::Rfc7661);
        let mut round = |ms: u64, volume: u64| {
            let at = Time::ZERO + Span::from_millis(ms);
            v.on_round(at, volume, Span::from_millis(100), STATE);
            v.pipe_ack()
        };
        assert_eq!(round(0, 900), Some(900));
        assert_eq!(round(600, 700), Some(900));
        assert_eq!(round(900, 100), Some(900));
        // The period is a second.
        assert_eq!(round(1100, 100), Some(700));
        assert_eq!(round(1700, 200), Some(200));
    }

    #[test]
    fn five_minutes_without_use_halve_the_window() {
        let mut v = WindowValidation::new(Validation::Rfc7661);
        let rtt = Span::from_millis(100);
        let mut at = Time::ZERO;
        let mut changes = Vec::new();
        for _ in 0..3100 {
            at += rtt;
            changes.extend(v.on_round(at, 100, rtt, STATE).map(|w| (at, w)));
        }
        assert_eq!(changes.len(), 1);
        let (at, changed) = changes[0];
        assert_eq!(
            changed,
            NewWindow {
                window: 500.0,
                ssthresh: 750.0
            }
        );
        assert!(at >= Time::ZERO + Span::from_secs(300));
        assert_eq!(v.pipe_ack(), Some(100));
    }
}
