//! A sender without a network: the test makes the ACKs and lets time pass.

use fullpipe_cc::{AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, RtoEvent};
use fullpipe_flow::{
    Ack, EpisodeKind, Preset, Range, Reduction, SackBlocks, Segment, Sender, SenderConfig,
};
use fullpipe_units::{Span, Time};

/// A controller that never grows and halves on everything, so that a test sees the sender alone.
#[derive(Clone, Debug)]
pub struct Halver {
    pub w: f64,
    pub ssth: f64,
    /// Grow by what is delivered while below `ssth`, as slow start after a timeout does.
    pub slow_start: bool,
    /// Keep this fraction on a mark (ABE).
    pub ecn_keep: f64,
    /// Never reduce: the window stays what it is.
    pub hold: bool,
    /// It says that it may set a pacing rate, which it never does.
    pub sets_rate: bool,
    saved: Option<(f64, f64)>,
    pub congestions: Vec<CongestionEvent>,
    pub rtos: Vec<RtoEvent>,
    pub undos: usize,
    /// Windows that [`Controller::on_cut_short`] told of.
    pub cut_short: Vec<f64>,
    /// Recoveries that were undone where they end.
    pub undone_at_end: usize,
    pub idles: Vec<IdleEvent>,
    /// Cloned from the last ACK.
    pub last: Option<AckEvent>,
}

impl Halver {
    pub fn new(w: f64) -> Self {
        Self {
            w,
            ssth: f64::INFINITY,
            slow_start: false,
            ecn_keep: 0.5,
            hold: false,
            sets_rate: true,
            saved: None,
            congestions: Vec::new(),
            rtos: Vec::new(),
            undos: 0,
            cut_short: Vec::new(),
            undone_at_end: 0,
            idles: Vec::new(),
            last: None,
        }
    }
}

impl Controller for Halver {
    fn on_ack(&mut self, ev: &AckEvent) {
        self.last = Some(*ev);
        if self.slow_start && ev.may_grow() && self.w < self.ssth {
            self.w += (ev.delivered_now() as f64).min(1.0);
        }
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        self.congestions.push(*ev);
        if self.hold {
            self.ssth = self.w;
            return;
        }
        if ev.first_in_window {
            self.saved = Some((self.w, self.ssth));
        }
        let keep = if ev.kind == CongestionKind::Ecn {
            self.ecn_keep
        } else {
            0.5
        };
        self.ssth = (keep * self.w.min(ev.flight as f64)).max(2.0);
        self.w = self.ssth;
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        self.rtos.push(*ev);
        if self.hold {
            return;
        }
        if ev.first {
            self.saved = Some((self.w, self.ssth));
            self.ssth = (self.w.min(ev.flight as f64) / 2.0).max(2.0);
        }
        self.w = 1.0;
    }

    fn on_recovery_exit(&mut self, _now: Time) {}

    fn on_undo(&mut self, _now: Time) {
        self.undos += 1;
        if let Some((w, ssth)) = self.saved.take() {
            self.w = self.w.max(w);
            self.ssth = self.ssth.max(ssth);
        }
    }

    fn on_cut_short(&mut self, _now: Time, window: f64) {
        self.cut_short.push(window);
    }

    fn on_undone_at_end(&mut self, _now: Time) {
        self.undone_at_end += 1;
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.idles.push(*ev);
        self.w = ev.window;
        self.ssth = ev.ssthresh;
    }

    fn exit_start_up(&mut self, _now: Time) {
        self.ssth = self.w;
    }

    fn on_mss_change(&mut self, _ratio: f64) {}

    fn window(&self) -> f64 {
        self.w
    }

    fn ssthresh(&self) -> f64 {
        self.ssth
    }

    fn sets_rate(&self) -> bool {
        self.sets_rate
    }

    fn report(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// Transmissions of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Out {
    /// New data.
    N(u64),
    /// A retransmission.
    R(u64),
    /// A SYN.
    Syn,
}

impl Out {
    pub fn of(s: &Segment) -> Self {
        match (s.syn, s.retransmission) {
            (true, _) => Out::Syn,
            (false, true) => Out::R(s.seq),
            (false, false) => Out::N(s.seq),
        }
    }
}

pub fn ms(ms: f64) -> Time {
    Time::from_secs_f64(ms * 1e-3)
}

pub fn span_ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Segment `seq`, sent at `stamp`.
pub fn data(seq: u64, stamp: Time) -> Segment {
    Segment {
        seq,
        syn: false,
        retransmission: false,
        stamp,
        ect: false,
        ce: false,
        cwr: false,
        push: false,
    }
}

/// A cumulative ACK that echoes a stamp of `echo_ms`.
pub fn ack(cum: u64, echo_ms: f64) -> Ack {
    Ack {
        cum,
        syn: false,
        echo: ms(echo_ms),
        stamp_ms: 0,
        one_way: None,
        sacks: SackBlocks::default(),
        dsack: false,
        ece: false,
        window_end: u64::MAX,
    }
}

/// An ACK with SACK blocks; its echo is newer than any transmission, so that it never looks
/// spurious.
pub fn sack(cum: u64, blocks: &[(u64, u64)]) -> Ack {
    let mut a = ack(cum, 1e9);
    for &(start, end) in blocks {
        a.sacks.push(Range { start, end });
    }
    a
}

/// An ACK with SACK blocks that echoes a stamp of `echo_ms`.
pub fn sack_echo(cum: u64, blocks: &[(u64, u64)], echo_ms: f64) -> Ack {
    Ack {
        echo: ms(echo_ms),
        ..sack(cum, blocks)
    }
}

/// A DSACK for one segment.
pub fn dsack(cum: u64, seq: u64) -> Ack {
    Ack {
        dsack: true,
        ..sack(cum, &[(seq, seq + 1)])
    }
}

/// Sender, clock and log of what left.
pub struct Host<C = Halver> {
    pub s: Sender<C>,
    pub now: Time,
    pub log: Vec<(Time, Segment)>,
}

/// The present preset without a handshake.
pub fn modern() -> SenderConfig {
    SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false)
}

impl Host<Halver> {
    /// Starts at time zero with a constant window of `w`.
    pub fn new(cfg: SenderConfig, w: f64) -> Self {
        Host::with(cfg, Halver::new(w))
    }
}

impl<C: Controller> Host<C> {
    pub fn with(cfg: SenderConfig, cc: C) -> Self {
        let mut s = Sender::new(cfg, cc, 1);
        s.start(Time::ZERO);
        let mut host = Self {
            s,
            now: Time::ZERO,
            log: Vec::new(),
        };
        host.poll();
        host
    }

    /// Everything the sender has for now.
    pub fn poll(&mut self) -> Vec<Out> {
        let from = self.log.len();
        while let Some(segment) = self.s.poll_transmit(self.now) {
            self.log.push((self.now, segment));
            self.audit();
            assert!(self.log.len() - from < 100_000, "the sender never stops");
        }
        self.log[from..].iter().map(|(_, s)| Out::of(s)).collect()
    }

    fn audit(&self) {
        self.s.audit().unwrap_or_else(|e| panic!("{e}"));
    }

    /// Lets time pass until `at` (milliseconds), firing every timer on the way; returns what left
    /// and when.
    pub fn wait(&mut self, at_ms: f64) -> Vec<(f64, Out)> {
        let from = self.log.len();
        let end = ms(at_ms);
        assert!(end >= self.now, "time runs forward");
        while self.s.next_timeout() <= end {
            assert!(
                self.s.next_timeout() >= self.now,
                "a timer in the past: {:?}",
                self.s.next_timeout()
            );
            self.now = self.s.next_timeout();
            self.s.handle_timeout(self.now);
            self.audit();
            self.poll();
        }
        self.now = end;
        self.log[from..]
            .iter()
            .map(|(t, s)| (t.as_secs_f64() * 1e3, Out::of(s)))
            .collect()
    }

    /// An ACK arrives now; returns what leaves.
    pub fn ack(&mut self, ack: &Ack) -> Vec<Out> {
        self.deliver(ack);
        self.poll()
    }

    /// An ACK arrives now and nothing is polled.
    pub fn deliver(&mut self, ack: &Ack) {
        self.s.handle_ack(self.now, ack);
        self.audit();
    }

    /// Lets time pass without anything happening, then the ACK.
    pub fn ack_at(&mut self, at_ms: f64, a: &Ack) -> Vec<Out> {
        self.wait(at_ms);
        self.ack(a)
    }
}

/// The SYN/ACK of a peer that takes segments below `window_end`.
pub fn syn_ack(window_end: u64) -> Ack {
    Ack {
        cum: 0,
        syn: true,
        echo: Time::ZERO,
        stamp_ms: 0,
        one_way: None,
        sacks: SackBlocks::default(),
        dsack: false,
        ece: false,
        window_end,
    }
}

/// PRR, or the window at once.
pub fn reduction(prr: bool) -> Reduction {
    if prr {
        Reduction::Prr
    } else {
        Reduction::Immediate
    }
}

/// Kinds of the episodes logged since the last call.
pub fn kinds<C: Controller>(h: &mut Host<C>) -> Vec<EpisodeKind> {
    h.s.drain_log().map(|e| e.kind).collect()
}
