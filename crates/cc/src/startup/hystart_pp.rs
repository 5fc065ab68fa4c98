//! HyStart++ (RFC 9406): on growing delay slow down first, leave when it stays.
//!
//! When the smallest RTT of a round exceeds the last round's by `clamp(last/8, 4 ms, 16 ms)`,
//! Conservative Slow Start grows at a quarter of the pace; a lower RTT resumes slow start, five
//! rounds end it with `ssth = w`. Initial slow start only. The per-ACK limit `L` of section 4.2 is
//! the composition's ([`Setup::slow_start_limit`](crate::Setup)). On loss the window law decides
//! (the RFC's `ssth = cwnd` is then multiplied by the law).

use fullpipe_units::Span;

use crate::classic::{StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;
use crate::startup::hystart::delay_threshold;

/// HyStart++'s state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartPp {
    css_divisor: f64,
    css_rounds: u32,
    last_min: Span,
    current_min: Span,
    samples: u32,
    /// Conservative Slow Start: its baseline and the rounds finished in it.
    css: Option<Css>,
    /// This ACK grows as in Conservative Slow Start: it was on when the ACK came.
    slow: bool,
    /// Initial slow start is over.
    done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Css {
    baseline: Span,
    rounds: u32,
}

impl HyStartPp {
    /// A start-up that has measured nothing.
    pub fn new(css_divisor: f64, css_rounds: u32) -> Self {
        Self {
            css_divisor,
            css_rounds,
            last_min: Span::MAX,
            current_min: Span::MAX,
            samples: 0,
            css: None,
            slow: false,
            done: false,
        }
    }

    fn end_of_round(&mut self, win: &mut Window) {
        self.last_min = self.current_min;
        self.current_min = Span::MAX;
        self.samples = 0;
        if let Some(css) = &mut self.css {
            css.rounds += 1;
            if css.rounds >= self.css_rounds {
                win.ssth = win.w;
                self.done = true;
            }
        }
    }

    fn sample(&mut self, rtt: Span) {
        self.current_min = self.current_min.min(rtt);
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.css {
            None if self.last_min < Span::MAX
                && self.current_min >= self.last_min + delay_threshold(self.last_min) =>
            {
                self.css = Some(Css {
                    baseline: self.current_min,
                    rounds: 0,
                });
            }
            Some(css) if self.current_min < css.baseline => self.css = None,
            _ => {}
        }
    }
}

impl StartUp for HyStartPp {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        if self.done {
            return;
        }
        if ev.round_start {
            self.end_of_round(win);
        }
        // The window grows first, then the sample tells how it goes on.
        self.slow = self.css.is_some() && !self.done;
        if let Some(rtt) = ev.rtt
            && !self.done
        {
            self.sample(rtt);
        }
    }

    fn grow(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) -> f64 {
        let divisor = if self.slow { self.css_divisor } else { 1.0 };
        win.climb(n, 1.0 / divisor)
    }

    fn on_congestion(&mut self) {
        (self.done, self.slow) = (true, false);
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("css", f64::from(u8::from(self.css.is_some())));
        visit("css_rounds", self.css.map_or(0.0, |c| f64::from(c.rounds)));
    }
}

/// Samples of a round before its minimum counts (RFC 9406 section 4.3).
const N_RTT_SAMPLE: u32 = 8;

/// `hystart++`.
pub const HYSTART_PP: Entry<HyStartPp> = Entry {
    name: "hystart++",
    aliases: &["hystartpp"],
    about: "slow start that slows down when the delay grows and leaves when it stays",
    source: "RFC 9406 section 4",
    params: &[
        param!(css_divisor: number = 4.0, 2.0..=100.0, "",
            "CSS_GROWTH_DIVISOR", "RFC 9406 section 4.3"),
        param!(css_rounds: number = 5.0, 1.0..=1000.0, "rounds",
            "CSS_ROUNDS", "RFC 9406 section 4.3"),
    ],
    build: |p| {
        Ok(HyStartPp::new(
            p.number("css_divisor"),
            p.number("css_rounds") as u32,
        ))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn rfc() -> HyStartPp {
        HyStartPp::new(4.0, 5)
    }

    /// One round of `acks` ACKs of one segment at `rtt`.
    fn round(start: &mut HyStartPp, win: &mut Window, acks: u64, rtt: f64) {
        for i in 0..acks {
            let ev = AckEvent {
                round_start: i == 0,
                ..ack(at_ms(i), 1, ms(rtt))
            };
            start.observe(win, &ev);
            if win.w < win.ssth {
                start.grow(win, 1.0, &ev);
            }
        }
    }

    #[test]
    fn growing_delay_quarters_the_pace_and_five_rounds_end_it() {
        let mut start = rfc();
        let mut win = start_up(10.0);
        round(&mut start, &mut win, 10, 80.0);
        assert_eq!(win.w, 20.0);
        // The eighth sample enters CSS, its ACK counts in full.
        round(&mut start, &mut win, 20, 90.0);
        near(win.w, 20.0 + 8.0 + 12.0 / 4.0, 1e-12);
        let w = win.w;
        round(&mut start, &mut win, 40, 90.0);
        near(win.w, w + 10.0, 1e-12);
        for _ in 0..3 {
            round(&mut start, &mut win, 8, 90.0);
            assert_eq!(win.ssth, f64::INFINITY);
        }
        let w = win.w;
        round(&mut start, &mut win, 8, 90.0); // the partial round counted as one of five
        assert_eq!((win.w, win.ssth), (w, w));
    }

    #[test]
    fn the_threshold_is_inclusive() {
        for (rtt, enters) in [(89.999, false), (90.0, true)] {
            let mut start = rfc();
            let mut win = start_up(10.0);
            round(&mut start, &mut win, 10, 80.0);
            round(&mut start, &mut win, 10, rtt);
            assert_eq!(start.css.is_some(), enters, "{rtt}");
        }
    }

    #[test]
    fn seven_samples_do_not_decide() {
        let mut start = rfc();
        let mut win = start_up(10.0);
        round(&mut start, &mut win, 10, 80.0);
        round(&mut start, &mut win, 7, 200.0);
        assert_eq!(start.css, None);
    }

    #[test]
    fn a_lower_delay_resumes_slow_start() {
        let mut start = rfc();
        let mut win = start_up(10.0);
        round(&mut start, &mut win, 10, 80.0);
        round(&mut start, &mut win, 10, 95.0);
        assert!(start.css.is_some());
        round(&mut start, &mut win, 10, 94.0);
        assert_eq!(start.css, None);
    }

    #[test]
    fn only_the_first_slow_start() {
        let mut start = rfc();
        start.on_congestion();
        let mut win = Window { w: 2.0, ssth: 50.0 };
        round(&mut start, &mut win, 10, 80.0);
        round(&mut start, &mut win, 10, 200.0);
        assert_eq!((win.w, win.ssth), (22.0, 50.0));
    }
}
