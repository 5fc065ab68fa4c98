//! Westwood+: the window after a loss is the measured bandwidth times the smallest RTT (after Linux
//! `tcp_westwood.c` and ns-3; the papers were not read).
//!
//! Delivered segments are counted over windows of at least one RTT and 50 ms; the rate passes a
//! filter applied twice. The count is per window, not per ACK, so compressed ACKs do not inflate
//! it. Bandwidth is kept in segments per second: SACKed segments count when they are SACKed, which
//! is what the byte rule for duplicate ACKs approximates. The bandwidth-delay product is applied
//! when the loss is found (`timing=linux`: half then, the product at recovery's end); a product
//! above the present window leaves it alone.
//!
//! A loss before the first sample, which start-up can have, halves. Timeout: the product, and the
//! smallest RTT is learnt anew. Mark: as a loss. Idle time restarts the sampling window. A new
//! segment size scales the bandwidth.

use fullpipe_units::{Span, Time};

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, IdleEvent, RestartEvent, RtoEvent};
use crate::entry::Entry;

/// Filter between rate samples and the bandwidth estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Two first-order filters of weight 7/8 in a row.
    Linux,
    /// `0.9 bw + 0.1 (s + s_last)/2` (ns-3).
    Tustin,
}

/// The rate filter; segments per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    filter: Filter,
    /// First stage (Linux) or last sample (Tustin).
    stage: f64,
    /// The estimate; 0 before the first sample.
    estimate: f64,
}

impl Bandwidth {
    /// No sample yet.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            stage: 0.0,
            estimate: 0.0,
        }
    }

    /// A rate sample.
    pub fn add(&mut self, sample: f64) {
        if self.estimate == 0.0 && self.stage == 0.0 {
            self.stage = sample;
            self.estimate = sample;
            return;
        }
        match self.filter {
            Filter::Linux => {
                self.stage =
                    (LINUX_WEIGHT - 1.0) / LINUX_WEIGHT * self.stage + sample / LINUX_WEIGHT;
                self.estimate =
                    (LINUX_WEIGHT - 1.0) / LINUX_WEIGHT * self.estimate + self.stage / LINUX_WEIGHT;
            }
            Filter::Tustin => {
                self.estimate =
                    TUSTIN_POLE * self.estimate + (1.0 - TUSTIN_POLE) * (sample + self.stage) / 2.0;
                self.stage = sample;
            }
        }
    }

    /// The estimate, segments per second.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }
}

/// When the bandwidth-delay product is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// When the loss is found.
    Entry,
    /// Half when the loss is found, the product at recovery's end.
    Linux,
}

/// Westwood+'s state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Westwood {
    bandwidth: Bandwidth,
    timing: Timing,
    least_window: Span,
    since: Option<Time>,
    delivered: u64,
    /// Smallest smoothed RTT.
    min_rtt: Span,
    /// Linux timing: a reduction waits for recovery's end.
    pending: bool,
}

impl Westwood {
    /// A flow that has measured nothing.
    pub fn new(filter: Filter, timing: Timing, least_window: Span) -> Self {
        Self {
            bandwidth: Bandwidth::new(filter),
            timing,
            least_window,
            since: None,
            delivered: 0,
            min_rtt: Span::MAX,
            pending: false,
        }
    }

    /// Bandwidth times smallest RTT, segments; `None` before both are known.
    pub fn bdp(&self) -> Option<f64> {
        let known = self.bandwidth.estimate > 0.0 && self.min_rtt < Span::MAX;
        known.then(|| (self.bandwidth.estimate * self.min_rtt.as_secs_f64()).max(2.0))
    }

    /// After a pause.
    fn relearn(&mut self) {
        self.since = None;
        self.delivered = 0;
    }
}

impl WindowLaw for Westwood {
    fn observe(&mut self, _win: &mut Window, ev: &AckEvent) {
        if ev.srtt > Span::ZERO {
            self.min_rtt = self.min_rtt.min(ev.srtt);
        }
        let since = *self.since.get_or_insert(ev.now);
        let length = ev.now.saturating_since(since);
        if length > ev.srtt.max(self.least_window) {
            self.bandwidth
                .add(self.delivered as f64 / length.as_secs_f64());
            self.since = Some(ev.now);
            self.delivered = 0;
        }
        self.delivered += ev.delivered_now();
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += n / win.w;
    }

    fn decrease(&mut self, w: f64, base: f64, _ev: &CongestionEvent) -> f64 {
        match (self.timing, self.bdp()) {
            (Timing::Entry, Some(bdp)) => bdp.min(w),
            (timing, _) => {
                self.pending = timing == Timing::Linux;
                (1.0 - DECREASE) * base
            }
        }
    }

    fn on_rto(&mut self, w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        let ssth = self.bdp().map_or((1.0 - DECREASE) * base, |bdp| bdp.min(w));
        self.min_rtt = Span::MAX;
        self.pending = false;
        ssth
    }

    fn on_recovery_exit(&mut self, win: &mut Window, _now: Time) {
        if core::mem::take(&mut self.pending)
            && let Some(bdp) = self.bdp()
        {
            *win = Window { w: bdp, ssth: bdp };
        }
    }

    fn on_idle(&mut self, _ev: &IdleEvent) {
        self.relearn();
    }

    fn on_restart(&mut self, ev: &RestartEvent) {
        if ev.ends_a_pause() {
            self.relearn();
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.bandwidth.stage *= ratio;
        self.bandwidth.estimate *= ratio;
        self.delivered = (self.delivered as f64 * ratio) as u64;
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("bandwidth", self.bandwidth.estimate);
        visit("bdp", self.bdp().unwrap_or(0.0));
    }
}

/// Linux's filter keeps 7/8 of each stage (`tcp_westwood.c`).
const LINUX_WEIGHT: f64 = 8.0;
/// Pole of ns-3's filter (`tcp-westwood-plus.cc`).
const TUSTIN_POLE: f64 = 0.9;
/// Fraction removed while no estimate exists, and by Linux on entry: Reno's (RFC 5681 section 3.1).
const DECREASE: f64 = 0.5;

/// `westwood`.
pub const WESTWOOD: Entry<Westwood> = Entry {
    name: "westwood",
    aliases: &["westwoodplus"],
    about: "Reno growth; a loss sets the window to measured bandwidth times smallest RTT",
    source: "Linux tcp_westwood.c; ns-3 tcp-westwood-plus.cc",
    params: &[
        param!(filter: choice = &["linux", "tustin"],
            "filter of the rate samples", "Linux tcp_westwood.c; ns-3"),
        param!(timing: choice = &["entry", "linux"],
            "when the bandwidth-delay product is applied: at the loss, or at recovery's end",
            "ns-3; the paper's text is unverified"),
        param!(window: time = Span::from_millis(50), Span::from_micros(1)..=Span::from_secs(10),
            "shortest sampling window; one RTT if that is longer", "Linux tcp_westwood.c"),
    ],
    build: |p| {
        let filter = if p.word("filter") == "tustin" {
            Filter::Tustin
        } else {
            Filter::Linux
        };
        let timing = if p.word("timing") == "linux" {
            Timing::Linux
        } else {
            Timing::Entry
        };
        Ok(Westwood::new(filter, timing, p.time("window")))
    },
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn entry() -> Westwood {
        Westwood::new(Filter::Linux, Timing::Entry, Span::from_millis(50))
    }

    fn with(rate: f64, timing: Timing) -> Westwood {
        let mut law = Westwood {
            min_rtt: ms(100.0),
            timing,
            ..entry()
        };
        law.bandwidth.add(rate);
        law
    }

    /// The time in which the application had nothing to send is in no sample.
    #[test]
    fn a_pause_begins_a_window_of_its_own() {
        let mut law = Westwood {
            since: Some(Time::ZERO),
            delivered: 7,
            ..entry()
        };
        let mut restart = RestartEvent::new(Time::ZERO + ms(900.0));
        (restart.idle, restart.srtt) = (ms(90.0), ms(100.0));
        restart.app_limited = true;
        law.on_restart(&restart);
        assert_eq!((law.since, law.delivered), (Some(Time::ZERO), 7));
        restart.idle = ms(800.0);
        law.on_restart(&restart);
        assert_eq!((law.since, law.delivered), (None, 0));
    }

    #[test]
    fn the_published_filter_sequence() {
        let mut bw = Bandwidth::new(Filter::Linux);
        bw.add(1000.0);
        let stages = [1125.0, 1234.375, 1330.078125, 1413.818359];
        let outputs = [1015.625, 1042.96875, 1078.857422, 1120.727539];
        for (stage, output) in stages.into_iter().zip(outputs) {
            bw.add(2000.0);
            near(bw.stage, stage, 5e-7);
            near(bw.estimate, output, 5e-7);
        }
    }

    #[test]
    fn the_tustin_filter_averages_two_samples() {
        let mut bw = Bandwidth::new(Filter::Tustin);
        bw.add(1000.0);
        bw.add(2000.0);
        near(bw.estimate, 1050.0, 1e-9);
        bw.add(2000.0);
        near(bw.estimate, 1145.0, 1e-9);
    }

    #[test]
    fn a_loss_leaves_the_measured_product() {
        // 12.5e6 B/s in segments of 1460 B.
        let mut law = with(12.5e6 / 1460.0, Timing::Entry);
        near(law.decrease(2000.0, 2000.0, &loss(2000)), 856.164, 5e-4);
        near(law.decrease(500.0, 500.0, &loss(500)), 500.0, 1e-9);
        near(law.on_rto(2000.0, 2000.0, &rto(2000)), 856.164, 5e-4);
        assert_eq!(law.min_rtt, Span::MAX);
    }

    #[test]
    fn without_an_estimate_a_loss_halves() {
        assert_eq!(entry().decrease(100.0, 100.0, &loss(100)), 50.0);
        assert_eq!(entry().on_rto(100.0, 100.0, &rto(100)), 50.0);
    }

    #[test]
    fn linux_halves_first_and_sets_the_product_at_the_end() {
        let mut law = with(8000.0, Timing::Linux);
        assert_eq!(law.decrease(2000.0, 2000.0, &loss(2000)), 1000.0);
        let mut win = Window {
            w: 1000.0,
            ssth: 1000.0,
        };
        law.on_recovery_exit(&mut win, at_ms(0));
        near(win.w, 800.0, 1e-9);
        win.w = 900.0;
        law.on_recovery_exit(&mut win, at_ms(1)); // only once per reduction
        assert_eq!(win.w, 900.0);
    }

    #[test]
    fn one_sample_per_rtt_of_what_was_delivered_in_it() {
        let mut law = entry();
        let mut win = avoidance(100.0);
        for t in 0..=101 {
            law.observe(&mut win, &ack(at_ms(t), 10, ms(100.0)));
        }
        // 101 ms hold 101 ACKs of 10 segments; the ACK that closes the window counts for the next.
        near(law.bandwidth.estimate, 10_000.0, 1e-6);
        assert_eq!(law.delivered, 10);
    }

    #[test]
    fn short_rtts_are_sampled_over_fifty_milliseconds() {
        let mut law = entry();
        let mut win = avoidance(100.0);
        for t in 0..=50 {
            law.observe(&mut win, &ack(at_ms(t), 10, ms(10.0)));
        }
        assert_eq!(law.bandwidth.estimate, 0.0);
        law.observe(&mut win, &ack(at_ms(51), 10, ms(10.0)));
        assert!(law.bandwidth.estimate > 0.0);
    }

    #[test]
    fn idle_time_enters_no_sample() {
        let mut law = with(1000.0, Timing::Entry);
        let mut win = avoidance(100.0);
        law.observe(&mut win, &ack(at_ms(0), 10, ms(100.0)));
        law.observe(&mut win, &ack(at_ms(1), 10, ms(100.0)));
        law.on_idle(&restart(at_ms(60_000), Span::from_secs(59), win));
        law.observe(&mut win, &ack(at_ms(60_000), 10, ms(100.0)));
        assert_eq!(law.bandwidth.estimate, 1000.0);
    }

    #[test]
    fn a_new_segment_size_keeps_the_bandwidth_in_bytes() {
        let mut law = with(8000.0, Timing::Entry);
        law.on_mss_change(0.5);
        near(law.bdp().unwrap(), 400.0, 1e-9);
    }

    #[test]
    fn grows_as_reno() {
        let mut win = avoidance(100.0);
        entry().increase(&mut win, 100.0, &ack(at_ms(0), 100, ms(100.0)));
        near(win.w, 101.0, 1e-12);
    }
}
