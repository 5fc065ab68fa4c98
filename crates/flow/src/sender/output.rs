//! What to send now: retransmissions first, then new data as the window, the peer, the pacer and trains allow.

use fullpipe_cc::{Controller, IdleEvent, Phase};
use fullpipe_units::{Span, Time};

use super::Sender;
use crate::config::Detector;
use crate::segment::Segment;

impl<C: Controller> Sender<C> {
    /// The next segment to put on the wire now, or `None` until an ACK or a timeout.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        if !self.ready {
            return self.poll_handshake(now);
        }
        if self.probe_due {
            self.probe_due = false;
            if let Some(segment) = self.send_probe(now) {
                return Some(segment);
            }
        }
        if self.persist.is_due()
            && let Some(segment) = self.send_window_probe(now)
        {
            return Some(segment);
        }
        let pipe = self.board.pipe();
        let cwnd = self.budget;
        if now < self.pacer.next() && self.train == 0 {
            self.gated = pipe < cwnd;
            self.note_usage(pipe >= cwnd);
            return None;
        }
        self.gated = false;
        if pipe >= cwnd {
            self.train = 0;
            self.note_usage(true);
            return None;
        }
        if self.board.lost_out() > 0
            && !self.frto.holds_retransmissions()
            && let Some(seq) = self.board.next_lost()
        {
            return Some(self.retransmit(now, seq));
        }
        if self.board.nxt() < self.send_limit {
            if self.cfg.host.tso_segments > 1 && !self.continue_train(pipe, cwnd) {
                self.note_usage(true);
                return None;
            }
            return Some(self.send_new(now, pipe));
        }
        self.train = 0;
        self.poll_exhausted(now, pipe)
    }

    /// One more segment of a train, the first if enough may leave together; false: wait for more ACKs. What is in flight
    /// brings them, so an empty network is never waited for.
    fn continue_train(&mut self, pipe: u64, cwnd: u64) -> bool {
        if self.train == 0 {
            // Spreading needs every segment on its own (Initial Spreading 2014: no offload for the first window).
            if self.pacer.is_spreading() {
                return true;
            }
            let room = cwnd - pipe;
            let data = self.send_limit - self.board.nxt();
            let whole = u64::from(self.cfg.host.tso_segments).min(self.paced_train());
            let enough = whole.min((cwnd / TSO_WINDOW_DIVISOR).max(1));
            let waits = room < enough && room < data && pipe > 0;
            if waits && matches!(self.phase, Phase::Open | Phase::Disorder) {
                return false;
            }
            self.train = whole.min(room).min(data);
        }
        self.train -= 1;
        true
    }

    /// Longest train of a paced sender: a millisecond of its rate, at least two segments (Linux `tcp_tso_autosize`).
    fn paced_train(&self) -> u64 {
        match self.pacing_rate() {
            Some(rate) => {
                let millisecond = rate * 1e-3 / (8.0 * f64::from(self.cfg.mss));
                (millisecond as u64).max(2)
            }
            None => u64::MAX,
        }
    }

    #[inline(always)]
    pub(super) fn send_new(&mut self, now: Time, pipe: u64) -> Segment {
        if pipe == 0 {
            self.after_idle(now);
        }
        self.rate.before_send(now, pipe);
        let rate = &self.rate;
        let seq = self.board.push(
            now,
            rate.delivered(),
            rate.delivered_time(),
            rate.first_sent(),
            rate.is_app_limited(),
        );
        if self.phase == Phase::Disorder {
            self.limited_sent += 1;
        }
        let cwr = std::mem::take(&mut self.cwr_pending);
        self.sent(now);
        self.arm_probe(now);
        let mut segment = self.segment(now, seq, false, cwr);
        if seq >= self.next_push {
            segment.push = true;
            let part = self.cfg.host.refill.unwrap_or(f64::INFINITY) * self.peak as f64;
            self.next_push = seq.saturating_add((part as u64).max(1));
        }
        segment
    }

    pub(super) fn retransmit(&mut self, now: Time, seq: u64) -> Segment {
        self.train = 0;
        let pipe = self.board.pipe();
        if pipe == 0 {
            let ev = self.restart_event(now);
            self.cc.on_restart(&ev);
        }
        self.rate.before_send(now, pipe);
        let rate = &self.rate;
        self.board.resend(
            seq,
            now,
            rate.delivered(),
            rate.delivered_time(),
            rate.first_sent(),
        );
        self.counts.retransmits += 1;
        if self.cfg.timers.head_restarts_rto && seq == self.board.una() {
            self.rto_at = self.timer(now, self.rtt.rto());
        }
        if let Some(undo) = &mut self.undo {
            undo.on_retransmit(now);
        }
        self.sent(now);
        self.segment(now, seq, true, false)
    }

    #[inline(always)]
    fn sent(&mut self, now: Time) {
        self.counts.sent += 1;
        self.last_sent = now;
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        if self.rto_at == Time::MAX {
            self.rto_at = self.timer(now, self.rtt.rto());
        }
        let gap = self.pacing_gap();
        self.pacer.on_sent(now, gap);
    }

    #[inline]
    pub(super) fn segment(&self, now: Time, seq: u64, retransmission: bool, cwr: bool) -> Segment {
        let ect = self.cfg.ecn && !retransmission;
        Segment {
            seq,
            syn: false,
            retransmission,
            stamp: now,
            ect,
            ce: false,
            cwr,
            push: false,
        }
    }

    /// The window allows more, but nothing new may be sent.
    fn poll_exhausted(&mut self, now: Time, pipe: u64) -> Option<Segment> {
        if self.board.nxt() >= self.app_limit {
            self.rate.app_limited(pipe);
        }
        // RFC 6675 NextSeg rules 3 and 4.
        if self.cfg.recovery.detector == Detector::Sack && self.phase == Phase::Recovery {
            if let Some(seq) = self.board.next_hole() {
                self.board.mark_lost(seq);
                return Some(self.retransmit(now, seq));
            }
            if self.board.una() > self.rescue_after
                && let Some(seq) = self.board.highest_unsacked()
            {
                self.rescue_after = u64::MAX;
                return Some(self.retransmit(now, seq));
            }
        }
        self.note_usage(false);
        None
    }

    fn after_idle(&mut self, now: Time) {
        let idle = now.saturating_since(self.last_sent);
        let (w, ssth) = (self.cc.window(), self.cc.ssthresh());
        let iw = self.cfg.window.initial;
        if let Some(v) = self
            .validation
            .on_restart(idle, self.rtt.base_rto(), w, ssth, iw)
        {
            self.cc.on_idle(&IdleEvent {
                now,
                idle,
                window: v.window,
                ssthresh: v.ssthresh,
            });
        }
        let ev = self.restart_event(now);
        self.cc.on_restart(&ev);
        self.refresh_budget();
    }

    /// Present pacing rate, bit/s of payload, if the connection is paced.
    pub fn pacing_rate(&self) -> Option<f64> {
        if let Some(rate) = self.cc.pacing_rate() {
            return Some(rate.as_bits_per_sec() as f64);
        }
        let gains = self.gains?;
        if !self.rtt.has_sample() {
            return None;
        }
        let w = self.cwnd();
        let gain = if w < self.cc.ssthresh() / 2.0 {
            gains.slow_start
        } else {
            gains.avoidance
        };
        let window = w.max(self.board.pipe() as f64);
        Some(gain * window * f64::from(self.cfg.mss) * 8.0 / self.rtt.srtt().as_secs_f64())
    }

    #[inline]
    fn pacing_gap(&self) -> Option<Span> {
        if self.gains.is_none() && self.cc.pacing_rate().is_none() {
            return None;
        }
        let bits = f64::from(self.cfg.mss) * 8.0;
        self.pacing_rate()
            .map(|rate| Span::from_secs_f64(bits / rate))
    }
}

/// The part of the window that is always enough for a train (Linux `tcp_tso_win_divisor`).
const TSO_WINDOW_DIVISOR: u64 = 3;
