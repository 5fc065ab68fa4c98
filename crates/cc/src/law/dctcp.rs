//! DCTCP (RFC 8257): a window that gives way to the fraction of marked segments.
//!
//! Every window of data ends with `Alpha <- (1 - g) Alpha + g M`, where `M` is the fraction of its
//! delivered segments whose ACKs said "congestion experienced" (section 3.3). A mark takes `Alpha /
//! 2` of the window, once per window of data, by the Alpha of the windows before it and of one that
//! ends with the very ACK; growth and losses are Reno's. It needs a receiver that echoes marks
//! exactly (section 3.2): where the echo lasts until the sender answers (RFC 3168), `M` is
//! overstated, and the law comes close to Reno.
//!
//! Timeout: half, as a loss (section 3.4: Alpha does not apply). Idle time and undo leave Alpha
//! alone: it is of the path. A new segment size scales the counts of the window under way.

use crate::classic::{Window, WindowLaw};
use crate::controller::{AckEvent, CongestionEvent, CongestionKind, RtoEvent};
use crate::entry::Entry;

/// DCTCP's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dctcp {
    /// `g`: weight of a window in Alpha.
    weight: f64,
    /// Estimated fraction of marked segments.
    alpha: f64,
    /// `DCTCP.WindowEnd`: the segment whose acknowledgment ends the window.
    window_end: u64,
    /// Segments delivered in this window.
    delivered: f64,
    /// Of these, those that ACKs with ECE covered.
    marked: f64,
}

impl Dctcp {
    /// `weight` is `g`, `alpha` what a flow that has measured nothing assumes.
    pub fn new(weight: f64, alpha: f64) -> Self {
        Self {
            weight,
            alpha,
            window_end: 0,
            delivered: 0.0,
            marked: 0.0,
        }
    }

    /// Estimated fraction of marked segments.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl WindowLaw for Dctcp {
    fn needs_ecn(&self) -> bool {
        true
    }

    fn on_delivery(&mut self, ev: &AckEvent) {
        let delivered = ev.delivered_now() as f64;
        self.delivered += delivered;
        if ev.ece {
            self.marked += delivered;
        }
        if ev.snd_una <= self.window_end {
            return;
        }
        if self.delivered > 0.0 {
            let fraction = self.marked / self.delivered;
            self.alpha += self.weight * (fraction - self.alpha);
        }
        (self.window_end, self.delivered, self.marked) = (ev.snd_nxt, 0.0, 0.0);
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        win.w += n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, ev: &CongestionEvent) -> f64 {
        match ev.kind {
            CongestionKind::Ecn => (1.0 - self.alpha / 2.0) * base,
            CongestionKind::Loss | CongestionKind::LocalDrop => KEPT * base,
        }
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        KEPT * base
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.delivered *= ratio;
        self.marked *= ratio;
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("alpha", self.alpha);
    }
}

/// Fraction kept on loss and timeout (section 3.4: RFC 5681).
const KEPT: f64 = 0.5;

/// `dctcp(g, alpha)`.
pub const DCTCP: Entry<Dctcp> = Entry {
    name: "dctcp",
    aliases: &[],
    about: "gives way to the fraction of marked segments; for networks whose queues mark early",
    source: "RFC 8257",
    params: &[
        param!(g: number = 0.0625, 1e-6..=1.0, "",
            "weight of a window's fraction of marked segments in Alpha", "RFC 8257 section 4.2"),
        param!(alpha: number = 1.0, 0.0..=1.0, "",
            "Alpha of a flow that has measured nothing", "RFC 8257 section 3.3"),
    ],
    build: |p| Ok(Dctcp::new(p.number("g"), p.number("alpha"))),
};

#[cfg(test)]
mod tests {
    use fullpipe_units::Time;

    use super::*;
    use crate::classic::{Classic, Setup};
    use crate::controller::Controller;
    use crate::rounds::loss;
    use crate::startup::limited::{LIMITED, Limited};

    /// A window of 100 segments ends, `marked` of them under ACKs with ECE.
    fn window(law: &mut Dctcp, marked: u64) {
        let end = law.window_end;
        for (acked, ece, una) in [(marked, true, end), (100 - marked, false, end + 1)] {
            let mut ev = AckEvent::new(Time::ZERO);
            (ev.acked, ev.advanced, ev.ece) = (acked, true, ece);
            (ev.snd_una, ev.snd_nxt) = (una, end + 100);
            law.on_delivery(&ev);
        }
    }

    fn mark() -> CongestionEvent {
        CongestionEvent::new(Time::ZERO, CongestionKind::Ecn, 100)
    }

    fn law() -> Dctcp {
        DCTCP.make(&[]).unwrap()
    }

    /// The windows of which all, none, none and half are marked, from Alpha 1.
    #[test]
    fn alpha_follows_the_fraction_of_marked_segments() {
        let mut law = law();
        let ended = [100, 0, 0, 50].map(|marked| {
            window(&mut law, marked);
            (law.alpha(), law.decrease(100.0, 100.0, &mark()))
        });
        let expected = [
            (1.0, 50.0),
            (0.9375, 53.125),
            (0.878_906_25, 56.054_687_5),
            (0.855_224_609_375, 57.238_769_531_25),
        ];
        assert_eq!(ended, expected);
    }

    #[test]
    fn a_loss_and_a_timeout_take_half_whatever_alpha_is() {
        let mut law = DCTCP.make(&[("alpha", "0")]).unwrap();
        assert_eq!(law.decrease(100.0, 100.0, &mark()), 100.0);
        let lost = CongestionEvent::new(Time::ZERO, CongestionKind::Loss, 100);
        assert_eq!(law.decrease(100.0, 100.0, &lost), 50.0);
        let rto = RtoEvent::new(Time::ZERO, 100);
        assert_eq!(law.on_rto(100.0, 80.0, &rto), 40.0);
        let mut cc = flow("0");
        assert!(cc.needs_ecn());
        cc.on_congestion(&loss(Time::ZERO, 100));
        assert_eq!(cc.window(), 50.0);
    }

    fn flow(alpha: &str) -> Classic<Limited, Dctcp> {
        let setup = Setup {
            initial_window: 100.0,
            ..Setup::default()
        };
        let law = DCTCP.make(&[("alpha", alpha)]).unwrap();
        Classic::new(LIMITED.make(&[]).unwrap(), law, None, setup)
    }

    /// Once, and not behind a local drop, which has taken as much.
    #[test]
    fn a_loss_behind_a_mark_halves_what_the_mark_has_left() {
        let lost = loss(Time::ZERO, 100);
        let mut cc = flow("0.2");
        cc.on_congestion(&mark());
        assert_eq!(cc.window(), 90.0);
        cc.on_loss_in_reduction(&lost, 95.0);
        assert_eq!(cc.window(), 45.0);
        cc.on_loss_in_reduction(&lost, 95.0);
        assert_eq!(cc.window(), 45.0);
        let mut cc = flow("0.2");
        cc.on_congestion(&CongestionEvent::new(
            Time::ZERO,
            CongestionKind::LocalDrop,
            100,
        ));
        assert_eq!(cc.window(), 50.0);
        cc.on_loss_in_reduction(&lost, 95.0);
        assert_eq!(cc.window(), 50.0);
    }

    #[test]
    fn growth_is_that_of_reno() {
        let (mut law, mut win) = (law(), Window { w: 10.0, ssth: 5.0 });
        law.increase(&mut win, 2.0, &AckEvent::new(Time::ZERO));
        assert_eq!(win.w, 10.2);
    }
}
