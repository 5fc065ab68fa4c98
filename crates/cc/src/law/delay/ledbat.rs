//! LEDBAT: a background flow that holds a fixed queueing delay (RFC 6817).
//!
//! `off = (TARGET - q)/TARGET`, `w += GAIN off n/w`, where `q` is the smallest of the last four
//! one-way delays less the smallest of the last ten minutes. There is no slow start. An endpoint
//! without one-way delays is read by its RTT. Difference from section 2.4.2: the cap
//! `flight + ALLOWED_INCREASE` only stops growth, it does not lower the window, because the
//! sender's flight excludes what was SACKed.
//!
//! Loss and mark halve, not below two segments; a timeout leaves one, the next ACK two. Idle
//! minutes stay empty in the base history, so that after ten of them the base is unknown. Segment
//! sizes do not matter: the state is delays.

use fullpipe_units::{Span, Time};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, Phase, RtoEvent};
use crate::entry::Entry;

/// LEDBAT's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ledbat {
    /// Queueing delay to hold.
    pub target: Span,
    /// Window growth per RTT and segment of `off`.
    pub gain: f64,
    /// Segments the window may exceed the flight by.
    pub allowed_increase: f64,
    base: BaseHistory,
    current: [(Time, Span); CURRENT_FILTER],
    next: usize,
    queue: Span,
}

impl Ledbat {
    /// A flow that has measured nothing.
    pub fn new(target: Span, gain: f64, allowed_increase: f64) -> Self {
        Self {
            target,
            gain,
            allowed_increase,
            base: BaseHistory::EMPTY,
            current: [(Time::ZERO, Span::MAX); CURRENT_FILTER],
            next: 0,
            queue: Span::ZERO,
        }
    }

    /// `(TARGET - q)/TARGET`: 1 on an empty queue, 0 on target.
    pub fn off_target(&self) -> f64 {
        1.0 - self.queue.ratio(self.target)
    }

    fn sample(&mut self, delay: Span, now: Time, srtt: Span) {
        self.base.add(delay, now);
        self.current[self.next] = (now, delay);
        self.next = (self.next + 1) % CURRENT_FILTER;
        let recent = |at: Time| now.saturating_since(at) <= srtt;
        let smallest = self
            .current
            .iter()
            .filter(|(at, _)| recent(*at))
            .map(|(_, d)| *d)
            .min()
            .unwrap_or(delay);
        self.queue = smallest.min(Span::MAX).saturating_sub(self.base.min());
    }
}

impl WindowLaw for Ledbat {
    fn has_slow_start(&self) -> bool {
        false
    }

    fn reads_owd(&self) -> bool {
        true
    }

    /// Bytes are counted (RFC 6817 section 2.4.2).
    #[inline]
    fn counts_segments(&self, _w: f64) -> bool {
        true
    }

    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        // Whatever set a threshold (a timeout, window validation): LEDBAT has no slow start to go
        // back to.
        win.ssth = win.ssth.min(win.w);
        if let Some(delay) = ev.owd.or(ev.rtt) {
            self.sample(delay, ev.now, ev.srtt);
        }
        let off = self.off_target();
        if off < 0.0 && !matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            let n = (ev.delivered_now() as f64).min(win.w);
            win.w = (win.w + self.gain * off * n / win.w).max(MIN_WINDOW.min(win.w));
            win.ssth = win.ssth.min(win.w);
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, ev: &AckEvent) {
        let off = self.off_target();
        if off > 0.0 {
            let grown = win.w + self.gain * off * n / win.w;
            win.w = grown
                .min(ev.prior_flight as f64 + self.allowed_increase)
                .max(win.w);
        }
        win.w = win.w.max(MIN_WINDOW);
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        ((1.0 - DECREASE) * base).max(MIN_WINDOW.min(w))
    }

    fn on_rto(&mut self, _w: f64, _base: f64, _ev: &RtoEvent) -> f64 {
        MIN_WINDOW
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("queue_delay", self.queue.as_secs_f64());
        visit("off_target", self.off_target());
    }
}

/// Smallest delay of each of the last ten minutes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BaseHistory {
    minutes: [Span; BASE_HISTORY],
    minute: u64,
}

impl BaseHistory {
    const EMPTY: Self = Self {
        minutes: [Span::MAX; BASE_HISTORY],
        minute: 0,
    };

    fn add(&mut self, delay: Span, now: Time) {
        let minute = now.as_nanos() / MINUTE.as_nanos();
        // Minutes without a sample stay infinite; after ten of them nothing is known.
        for m in (self.minute + 1..=minute).rev().take(BASE_HISTORY) {
            self.minutes[(m % BASE_HISTORY as u64) as usize] = Span::MAX;
        }
        self.minute = self.minute.max(minute);
        let slot = &mut self.minutes[(self.minute % BASE_HISTORY as u64) as usize];
        *slot = delay.min(*slot);
    }

    fn min(&self) -> Span {
        self.minutes.iter().copied().min().unwrap_or(Span::MAX)
    }
}

/// Minutes of base delay kept (RFC 6817 section 2.4.2).
const BASE_HISTORY: usize = 10;
/// Length of one slot of the base history (RFC 6817 section 2.4.2).
const MINUTE: Span = Span::from_secs(60);
/// Samples of the current delay, of which the smallest counts (section 3.2: at least 4).
const CURRENT_FILTER: usize = 4;
/// MIN_CWND, segments (RFC 6817 section 2.5).
const MIN_WINDOW: f64 = 2.0;
/// Fraction removed on loss (RFC 6817 section 2.4.2).
const DECREASE: f64 = 0.5;

/// `ledbat`.
pub const LEDBAT: Entry<Ledbat> = Entry {
    name: "ledbat",
    aliases: &[],
    about: "background transfer that holds a fixed queueing delay, without slow start",
    source: "RFC 6817 sections 2.4.2, 2.5",
    params: &[
        param!(target: time =
            Span::from_millis(100), Span::from_micros(10)..=Span::from_millis(100),
            "queueing delay to hold", "RFC 6817 section 2.5"),
        param!(gain: number = 1.0, 1e-3..=1.0, "",
            "response to the distance from the target", "RFC 6817 section 2.5"),
        param!(allowed_increase: number = 1.0, 0.0..=1e6, "segments",
            "segments the window may grow beyond the flight", "RFC 6817 section 2.4.2"),
    ],
    build: |p| {
        Ok(Ledbat::new(
            p.time("target"),
            p.number("gain"),
            p.number("allowed_increase"),
        ))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn rfc() -> Ledbat {
        Ledbat::new(Span::from_millis(100), 1.0, 1.0)
    }

    /// Window after one segment acknowledged at a window of 10 and a queueing delay of `q` ms.
    fn after(q: f64) -> f64 {
        let mut law = rfc();
        let mut win = avoidance(10.0);
        law.base.add(ms(50.0), at_ms(0));
        let ev = AckEvent {
            owd: Some(ms(50.0 + q)),
            ..ack(at_ms(1), 1, ms(300.0))
        };
        law.observe(&mut win, &ev);
        law.increase(&mut win, 1.0, &ev);
        win.w
    }

    #[test]
    fn the_published_steps() {
        for (q, w) in [
            (0.0, 10.1),
            (50.0, 10.05),
            (100.0, 10.0),
            (150.0, 9.95),
            (200.0, 9.9),
        ] {
            near(after(q), w, 1e-9);
        }
    }

    #[test]
    fn the_smallest_of_four_recent_delays_counts() {
        let mut law = rfc();
        let srtt = ms(100.0);
        for (t, d) in [(0, 50.0), (1, 90.0), (2, 80.0), (3, 95.0)] {
            law.sample(ms(d), at_ms(t), srtt);
        }
        assert_eq!(law.queue, Span::ZERO);
        law.sample(ms(99.0), at_ms(4), srtt); // the 50 ms leave the filter, not the base
        assert_eq!(law.queue, ms(30.0));
        law.sample(ms(99.0), at_ms(200), srtt); // the others are older than an RTT
        assert_eq!(law.queue, ms(49.0));
    }

    #[test]
    fn the_base_is_forgotten_after_ten_minutes() {
        let mut base = BaseHistory::EMPTY;
        let minute = |m: u64| Time::ZERO + Span::from_secs(60) * m;
        base.add(ms(50.0), minute(0));
        for m in 1..10 {
            base.add(ms(80.0), minute(m));
            assert_eq!(base.min(), ms(50.0));
        }
        base.add(ms(80.0), minute(10));
        assert_eq!(base.min(), ms(80.0));
        base.add(ms(90.0), minute(40)); // half an hour without samples
        assert_eq!(base.min(), ms(90.0));
    }

    #[test]
    fn growth_stops_one_segment_beyond_the_flight() {
        let mut law = rfc();
        let mut win = avoidance(10.0);
        let ev = AckEvent {
            prior_flight: 9,
            ..ack(at_ms(0), 10, ms(100.0))
        };
        law.observe(&mut win, &ev);
        law.increase(&mut win, 10.0, &ev);
        assert_eq!(win.w, 10.0);
        law.increase(
            &mut win,
            10.0,
            &AckEvent {
                prior_flight: 10,
                ..ev
            },
        );
        assert_eq!(win.w, 11.0);
    }

    #[test]
    fn halves_on_loss_and_restarts_from_one_on_a_timeout() {
        let mut law = rfc();
        assert_eq!(law.decrease(100.0, 100.0, &loss(100)), 50.0);
        assert_eq!(law.decrease(3.0, 3.0, &loss(3)), 2.0);
        assert_eq!(law.on_rto(100.0, 100.0, &rto(100)), 2.0);
    }

    #[test]
    fn never_slow_starts() {
        let stack = crate::StackSpec::parse("ledbat").unwrap();
        let mut stack = stack.controller(crate::Setup::default());
        use crate::Controller;
        assert!(!stack.in_start_up());
        stack.on_rto(&rto(10));
        assert_eq!(stack.window(), 1.0);
        stack.on_ack(&ack(at_ms(0), 1, ms(100.0)));
        assert_eq!(stack.window(), 2.0);
        stack.on_ack(&ack(at_ms(0), 2, ms(100.0)));
        assert_eq!(stack.window(), 3.0);
        stack.on_ack(&ack(at_ms(0), 2, ms(100.0)));
        near(stack.window(), 3.0 + 2.0 / 3.0, 1e-9);
    }
}
