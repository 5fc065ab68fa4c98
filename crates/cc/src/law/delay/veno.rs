//! Veno: Reno that asks Vegas' backlog whether a loss was congestion (Linux `tcp_veno.c`; ns-3
//! `tcp-veno.cc`).
//!
//! With fewer than `beta` segments queued the window grows as Reno and a loss, taken for a random
//! one, keeps 0.8 of it; with more it grows by one segment every second round and a loss halves it.
//! Marks and local drops are congestion whatever the backlog.
//!
//! In start-up each ACK's own RTT makes the backlog, as in `tcp_veno_cong_avoid`, which forgets the
//! smallest RTT with every ACK: the smallest of a doubling round is that of its first segments,
//! which find the queue empty, so that an overflowing buffer would look like a random loss.
//! Timeout: as a loss. Idle time: base and backlog are learnt anew. A new segment size scales the
//! backlog.

use fullpipe_units::Span;

use crate::classic::{Window, WindowLaw};
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, IdleEvent, Phase, RestartEvent, RtoEvent,
};
use crate::entry::Entry;
use crate::round::{RoundMin, queued};

/// Veno's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Veno {
    /// Backlog from which on the path counts as congested, segments.
    pub beta: f64,
    round: RoundMin,
    backlog: f64,
}

impl Veno {
    /// A flow that has measured nothing.
    pub fn new(beta: f64) -> Self {
        Self {
            beta,
            round: RoundMin::EMPTY,
            backlog: 0.0,
        }
    }

    /// The path queues at least `beta` of this flow's segments.
    fn congested(&self) -> bool {
        self.backlog >= self.beta
    }

    /// Fraction a loss leaves.
    fn keep(&self) -> f64 {
        if self.congested() {
            KEEP_CONGESTED
        } else {
            KEEP_RANDOM
        }
    }

    /// After a pause.
    fn relearn(&mut self) {
        self.round.relearn();
        self.backlog = 0.0;
    }
}

impl WindowLaw for Veno {
    fn observe(&mut self, win: &mut Window, ev: &AckEvent) {
        let end = self.round.on_ack(ev);
        if matches!(ev.phase, Phase::Recovery | Phase::Cwr | Phase::Loss) {
            self.round.forget_round();
        } else if win.w < win.ssth {
            if let Some(rtt) = ev.rtt {
                // At least what the base is.
                let (base, rtt) = (self.round.base(), rtt.max(Span::from_nanos(1)));
                self.backlog = queued(win.w, base.as_secs_f64(), rtt.as_secs_f64());
            }
        } else if let Some(end) = end.filter(|e| e.enough()) {
            self.backlog = end.queued(win.w);
        }
    }

    fn increase(&mut self, win: &mut Window, n: f64, _ev: &AckEvent) {
        let a = if self.congested() { HALF_SPEED } else { 1.0 };
        win.w += a * n / win.w;
    }

    fn decrease(&mut self, _w: f64, base: f64, ev: &CongestionEvent) -> f64 {
        let keep = if ev.kind == CongestionKind::Loss {
            self.keep()
        } else {
            KEEP_CONGESTED
        };
        keep * base
    }

    fn on_rto(&mut self, _w: f64, base: f64, _ev: &RtoEvent) -> f64 {
        self.round.forget_round();
        self.keep() * base
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
        self.backlog *= ratio;
    }

    fn report(&self, _w: f64, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("backlog", self.backlog);
    }
}

/// Fraction kept when the loss is taken for a random one (Linux `tcp_veno.c`, as what follows).
const KEEP_RANDOM: f64 = 0.8;
/// Fraction kept when the backlog says congestion.
const KEEP_CONGESTED: f64 = 0.5;
/// One segment every second round.
const HALF_SPEED: f64 = 0.5;

/// `veno`.
pub const VENO: Entry<Veno> = Entry {
    name: "veno",
    aliases: &[],
    about: "Reno that halves only when Vegas' backlog says the loss was congestion",
    source: "Linux tcp_veno.c",
    params: &[param!(beta: number = 3.0, 0.0..=1e6, "segments",
        "backlog from which on a loss counts as congestion", "Linux tcp_veno.c")],
    build: |p| Ok(Veno::new(p.number("beta"))),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::delay::testing::*;

    fn with_backlog(backlog: f64) -> Veno {
        Veno {
            backlog,
            ..Veno::new(3.0)
        }
    }

    #[test]
    fn the_backlog_decides_what_a_loss_takes() {
        near(
            with_backlog(2.9).decrease(100.0, 100.0, &loss(100)),
            80.0,
            1e-12,
        );
        near(
            with_backlog(3.0).decrease(100.0, 100.0, &loss(100)),
            50.0,
            1e-12,
        );
        near(
            with_backlog(2.9).on_rto(100.0, 100.0, &rto(100)),
            80.0,
            1e-12,
        );
        near(
            with_backlog(3.0).on_rto(100.0, 100.0, &rto(100)),
            50.0,
            1e-12,
        );
    }

    #[test]
    fn a_mark_is_congestion_whatever_the_backlog() {
        for kind in [CongestionKind::Ecn, CongestionKind::LocalDrop] {
            near(
                with_backlog(0.0).decrease(100.0, 100.0, &congestion(kind, 100)),
                50.0,
                1e-12,
            );
        }
    }

    #[test]
    fn grows_by_one_or_by_a_half() {
        let ev = ack(at_ms(0), 1, ms(100.0));
        let mut win = avoidance(100.0);
        with_backlog(2.9).increase(&mut win, 100.0, &ev);
        near(win.w, 101.0, 1e-12);
        let mut win = avoidance(100.0);
        with_backlog(3.0).increase(&mut win, 100.0, &ev);
        near(win.w, 100.5, 1e-12);
    }

    /// 100 segments, base 100 ms: the last ACK of a round says 150 ms, a backlog of 33, whatever
    /// the first said.
    #[test]
    fn in_start_up_the_latest_sample_makes_the_backlog() {
        for (ssth, left) in [(f64::INFINITY, 50.0), (100.0, 80.0)] {
            let mut law = Veno::new(3.0);
            let mut win = Window { w: 100.0, ssth };
            law.observe(&mut win, &round_start(at_ms(0), 1, ms(100.0)));
            for rtt in [100.0, 120.0, 150.0] {
                law.observe(&mut win, &ack(at_ms(1), 1, ms(rtt)));
            }
            near(law.decrease(100.0, 100.0, &loss(100)), left, 1e-12);
        }
    }

    #[test]
    fn the_rounds_minimum_makes_the_backlog() {
        let mut law = Veno::new(3.0);
        let mut win = avoidance(100.0);
        for rtt in [100.0, 130.0, 125.0] {
            law.observe(&mut win, &ack(at_ms(0), 1, ms(rtt)));
        }
        law.observe(&mut win, &round_start(at_ms(1), 1, ms(130.0)));
        assert_eq!(law.backlog, 0.0);
        for rtt in [128.0, 125.0] {
            law.observe(&mut win, &ack(at_ms(1), 1, ms(rtt)));
        }
        law.observe(&mut win, &round_start(at_ms(2), 1, ms(130.0)));
        near(law.backlog, 20.0, 1e-9);
        law.on_idle(&restart(at_ms(3), Span::from_secs(1), win));
        assert_eq!((law.backlog, law.round), (0.0, RoundMin::EMPTY));
    }
}
