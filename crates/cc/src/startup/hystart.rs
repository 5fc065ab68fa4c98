//! HyStart: leave slow start when the delay grows or the ACK train is as long as the pipe (Linux
//! 6.8 `tcp_cubic.c`). A congestion event or a timeout begins a new round; the smallest RTT stays.
//!
//! From 16 segments on two detectors run; either ends slow start with `ssth = w`. ACK train: ACKs
//! less than 2 ms apart since the round's start span more than half of the smallest RTT plus up to
//! 1 ms of ACK delay, or all of it on a paced connection. Delay: after 8 samples of a round its
//! minimum exceeds the flow's by more than `clamp(min/8, 4 ms, 16 ms)`.

use fullpipe_units::{Span, Time};

use crate::classic::{Setup, StartUp, Window};
use crate::controller::AckEvent;
use crate::entry::Entry;

/// Growth of the round minimum that ends slow start: `clamp(min/8, 4 ms, 16 ms)` (Linux; RFC 9406
/// section 4.3).
pub fn delay_threshold(min_rtt: Span) -> Span {
    (min_rtt / RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

/// Detectors and thresholds of HyStart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartParams {
    /// Run the ACK-train detector.
    pub train: bool,
    /// Run the delay detector.
    pub delay: bool,
    /// The connection is paced: the train must span the whole RTT. `None`: as the endpoint says.
    pub paced: Option<bool>,
    /// Smallest window that may leave, segments.
    pub low_window: f64,
    /// Allowance for delayed ACKs in the train.
    pub ack_delay: Span,
}

/// HyStart's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStart {
    params: HyStartParams,
    paced: bool,
    min_rtt: Span,
    round_start: Time,
    last_ack: Time,
    round_min: Span,
    samples: u32,
    started: bool,
    w_exit: f64,
}

impl HyStart {
    /// A start-up that has measured nothing.
    pub fn new(params: HyStartParams) -> Self {
        Self {
            params,
            paced: params.paced == Some(true),
            min_rtt: Span::MAX,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            round_min: Span::MAX,
            samples: 0,
            started: false,
            w_exit: 0.0,
        }
    }

    fn new_round(&mut self, now: Time) {
        self.round_start = now;
        self.last_ack = now;
        self.round_min = Span::MAX;
        self.samples = 0;
        self.started = true;
    }

    fn train_is_long(&mut self, now: Time) -> bool {
        if now.saturating_since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = now;
        let whole = self.min_rtt + self.params.ack_delay;
        let threshold = if self.paced { whole } else { whole / 2 };
        now.saturating_since(self.round_start) > threshold
    }

    fn delay_grew(&mut self, rtt: Span) -> bool {
        self.round_min = self.round_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_min > self.min_rtt + delay_threshold(self.min_rtt)
    }
}

impl StartUp for HyStart {
    fn set_up(&mut self, setup: &Setup) {
        self.paced = self.params.paced.unwrap_or(setup.paced);
    }

    fn on_pacing(&mut self) {
        self.paced = self.params.paced.unwrap_or(true);
    }

    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        let Some(rtt) = ev.rtt else { return };
        self.min_rtt = self.min_rtt.min(rtt);
        if ev.round_start || !self.started {
            self.new_round(ev.now);
        }
        if win.w < self.params.low_window {
            return;
        }
        let train = self.params.train && self.train_is_long(ev.now);
        let delay = self.params.delay && self.delay_grew(rtt);
        if train || delay {
            win.ssth = win.w;
            self.w_exit = win.w;
        }
    }

    fn grow(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) -> f64 {
        win.climb(n, 1.0)
    }

    fn on_congestion(&mut self) {
        self.started = false;
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("hystart_exit", self.w_exit);
    }
}

/// ACKs further apart end the train (`hystart_ack_delta_us`).
const TRAIN_GAP: Span = Span::from_millis(2);
/// Samples of a round before its minimum counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Part of the smallest RTT by which the round's minimum must grow (RFC 9406 section 4.3, as its
/// bounds).
const RTT_DIVISOR: u64 = 8;
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);

/// `hystart`.
pub const HYSTART: Entry<HyStart> = Entry {
    name: "hystart",
    aliases: &[],
    about: "slow start that leaves when the delay grows or the ACK train fills the pipe",
    source: "Linux 6.8 tcp_cubic.c",
    params: &[
        param!(detect: choice = &["both", "train", "delay"],
            "detectors that run", "Linux 6.8 tcp_cubic.c"),
        param!(low_window: number = 16.0, 1.0..=1e6, "segments",
            "smallest window that may leave", "Linux 6.8 tcp_cubic.c"),
        param!(paced: choice = &["auto", "on", "off"],
            "the train must span the whole RTT; `auto`: where the sender paces",
            "Linux 6.8 tcp_cubic.c"),
        param!(ack_delay: time = Span::from_millis(1), Span::ZERO..=Span::from_millis(100),
            "allowance for delayed ACKs in the train", "Linux 6.8 tcp_cubic.c, upper end"),
    ],
    build: |p| {
        let detect = p.word("detect");
        Ok(HyStart::new(HyStartParams {
            train: detect != "delay",
            delay: detect != "train",
            paced: match p.word("paced") {
                "auto" => None,
                word => Some(word == "on"),
            },
            low_window: p.number("low_window"),
            ack_delay: p.time("ack_delay"),
        }))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::law::delay::testing::*;

    fn linux() -> HyStartParams {
        HyStartParams {
            train: true,
            delay: true,
            paced: None,
            low_window: 16.0,
            ack_delay: Span::from_millis(1),
        }
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// ACKs every `gap` microseconds from 1 s on, the first starts a round; returns the time of the
    /// exit since then.
    fn train(params: HyStartParams, gap: u64, acks: u64) -> Option<u64> {
        let mut start = HyStart::new(params);
        let mut win = start_up(100.0);
        for i in 0..acks {
            let ev = ack(us(1_000_000 + i * gap), 1, ms(100.0));
            start.observe(
                &mut win,
                &AckEvent {
                    round_start: i == 0,
                    ..ev
                },
            );
            if win.ssth.is_finite() {
                return Some(i * gap);
            }
        }
        None
    }

    #[test]
    fn a_train_of_half_the_pipe_ends_slow_start() {
        assert_eq!(train(linux(), 100, 2000), Some(50_600));
        assert_eq!(
            train(
                HyStartParams {
                    paced: Some(true),
                    ..linux()
                },
                100,
                2000
            ),
            Some(101_100)
        );
        assert_eq!(
            train(
                HyStartParams {
                    train: false,
                    ..linux()
                },
                100,
                2000
            ),
            None
        );
    }

    /// Microseconds until 1000 ACKs 100 us apart end the start-up of a flow whose sender begins to
    /// pace between a reduction and its undoing.
    fn paced_late(spelling: &str) -> Option<u64> {
        let mut flow = crate::rounds::Rounds::starting(spelling, Span::from_millis(100), 100.0);
        flow.lose();
        flow.stack.on_pacing();
        flow.stack.on_undo(flow.now);
        assert!(flow.stack.ssthresh().is_infinite(), "{spelling}");
        (0..2000).map(|i| i * 100).find(|&at| {
            let ev = ack(us(1_000_000 + at), 1, ms(100.0));
            flow.stack.on_ack(&AckEvent {
                round_start: at == 0,
                ..ev
            });
            flow.stack.ssthresh().is_finite()
        })
    }

    #[test]
    fn the_train_of_a_sender_that_begins_to_pace_spans_the_whole_rtt() {
        assert_eq!(paced_late("reno+hystart"), Some(101_100));
        assert_eq!(paced_late("reno+hystart(paced=off)"), Some(50_600));
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_breaks_the_train() {
        assert_eq!(train(linux(), 2000, 100), Some(52_000));
        assert_eq!(train(linux(), 2001, 100), None);
    }

    /// One round at 100 ms, then one at `rtt`; the number of the sample that left.
    fn delay(rtt: f64, w: f64) -> Option<u32> {
        let mut start = HyStart::new(HyStartParams {
            train: false,
            ..linux()
        });
        let mut win = start_up(w);
        for i in 0..20 {
            start.observe(
                &mut win,
                &AckEvent {
                    round_start: i == 0,
                    ..ack(at_ms(i), 1, ms(100.0))
                },
            );
        }
        for i in 0..20 {
            let ev = ack(at_ms(100 + i), 1, ms(rtt));
            start.observe(
                &mut win,
                &AckEvent {
                    round_start: i == 0,
                    ..ev
                },
            );
            if win.ssth.is_finite() {
                return Some(i as u32 + 1);
            }
        }
        None
    }

    #[test]
    fn an_eighth_more_delay_over_eight_samples_ends_slow_start() {
        assert_eq!(delay(112.6, 100.0), Some(9));
        assert_eq!(delay(112.5, 100.0), None);
        assert_eq!(delay(200.0, 15.9), None);
        assert_eq!(delay(200.0, 16.0), Some(9));
    }

    #[test]
    fn the_published_thresholds() {
        let cases = [
            (10, 4),
            (20, 4),
            (32, 4),
            (40, 5),
            (80, 10),
            (128, 16),
            (160, 16),
            (200, 16),
        ];
        for (rtt, threshold) in cases {
            assert_eq!(
                delay_threshold(Span::from_millis(rtt)),
                Span::from_millis(threshold)
            );
        }
    }
}
