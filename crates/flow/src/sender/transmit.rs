//! A segment leaves: retransmissions first, then new data as the window, the peer, the pacer and
//! trains allow.

use fullpipe_cc::{Controller, IdleEvent, PacingGains, Phase};
use fullpipe_units::{Span, Time};

use super::Sender;
use super::pacer::TrainRoom;
use super::rate::Outstanding;
use super::small_queue::Entry;
use super::validation::{Starvation, WindowState};
use crate::config::PacerRule;
use crate::limit::Limit;
use crate::segment::Segment;

/// What a sender may send without being asked before every segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// So many new segments, one or more: each is taken with [`Sender::send_more`].
    New(u64),
    /// Nothing, the window is full: [`Sender::note_full_window`] ends the turn.
    Full,
    /// [`Sender::poll_again`] knows.
    Ask,
}

impl<C: Controller> Sender<C> {
    /// The next segment to put on the wire now, or `None` until an ACK or a timeout.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        match self.allowance() {
            Allowance::New(_) => Some(self.send_more(now)),
            Allowance::Full => {
                self.note_full_window(now);
                None
            }
            // A copy of what comes from elsewhere: a new segment keeps out of its memory.
            Allowance::Ask => Some(Segment {
                ..self.poll_again(now)?
            }),
        }
    }

    /// What may leave now, for a host that need not ask before every segment.
    #[inline(always)]
    pub fn allowance(&self) -> Allowance {
        let pipe = self.board.pipe();
        if pipe > 0 && self.only_window_limits() {
            let window = self.budget.window();
            if pipe < window {
                let data = self.limits.end().saturating_sub(self.board.nxt());
                if !self.board.may_have_lost() && data > 0 {
                    return Allowance::New(data.min(window - pipe));
                }
            } else if !self.recovery.owes_fast_retransmit() {
                return Allowance::Full;
            }
        }
        Allowance::Ask
    }

    /// The next of the segments that [`Allowance::New`] admits.
    #[inline(always)]
    pub fn send_more(&mut self, now: Time) -> Segment {
        self.send_in_flight(now, self.board.pipe())
    }

    /// The window is full ([`Allowance::Full`]), and the host asks no more until an ACK or a
    /// timeout.
    #[inline(always)]
    pub fn note_full_window(&mut self, now: Time) {
        self.note_window_limit(now);
    }

    /// What [`Sender::poll_transmit`] returns where it is to be asked ([`Allowance::Ask`]).
    #[inline(never)]
    pub fn poll_again(&mut self, now: Time) -> Option<Segment> {
        let pipe = self.board.pipe();
        let free = pipe > 0 && self.only_window_limits() && pipe < self.budget.window();
        if free && self.board.lost_out() > 0 {
            if self.recovery.may_retransmit()
                && let Some(seq) = self.board.next_lost()
            {
                return Some(self.retransmit(now, seq));
            }
            if self.board.nxt() < self.limits.end() {
                return Some(self.send_new(now, pipe));
            }
        }
        self.poll_every_limit(now)
    }

    /// The congestion window held the sender back.
    #[inline(always)]
    fn note_window_limit(&mut self, now: Time) {
        self.note_usage(true);
        self.note_limit(now, self.budget.limit());
    }

    /// Nothing is to be probed, and neither pacer nor trains have a say.
    #[inline]
    fn only_window_limits(&self) -> bool {
        self.connection.is_ready()
            && !self.recovery.probe_is_due()
            && !self.persist.is_due()
            && self.pacer.is_free()
    }

    #[inline(never)]
    fn poll_every_limit(&mut self, now: Time) -> Option<Segment> {
        if !self.connection.is_ready() {
            return self.open(now);
        }
        if self.recovery.probe_is_due()
            && let Some(segment) = self.send_tail_probe(now)
        {
            return Some(segment);
        }
        if self.persist.is_due()
            && let Some(segment) = self.send_window_probe(now)
        {
            return Some(segment);
        }
        let pipe = self.board.pipe();
        let cwnd = self.budget.window();
        if self.pacer.holds(now) && !self.timers.resends(now) {
            self.pacer.gate(pipe < cwnd);
            self.recovery.pace_frto(&self.board);
            self.note_usage(pipe >= cwnd);
            let limit = match self.pacer.is_capped() {
                _ if pipe >= cwnd => self.budget.limit(),
                true => Limit::Rate,
                false => Limit::Pacing,
            };
            self.note_limit(now, limit);
            return None;
        }
        self.pacer.gate(false);
        if pipe >= cwnd {
            if self.recovery.take_fast_retransmit()
                && let Some(seq) = self.board.next_lost()
            {
                return Some(self.retransmit(now, seq));
            }
            self.pacer.end_train();
            self.note_window_limit(now);
            return None;
        }
        if self.board.lost_out() > 0
            && self.recovery.may_retransmit()
            && let Some(seq) = self.board.next_lost()
        {
            if self.small_queue.is_on() && self.queue_holds(now, 1, true) {
                return None;
            }
            return Some(self.retransmit(now, seq));
        }
        if self.board.nxt() < self.limits.end() {
            if self.pacer.has_trains() {
                if self.pacer.continue_train() {
                    return Some(self.send_new(now, pipe));
                }
                if !self.start_train(now, pipe, cwnd) {
                    self.note_window_limit(now);
                    return None;
                }
            }
            if self.small_queue.is_on() && self.queue_holds(now, self.pacer.train(), false) {
                self.pacer.end_train();
                return None;
            }
            return Some(self.send_new(now, pipe));
        }
        self.pacer.end_train();
        self.poll_exhausted(now, pipe)
    }

    /// What the handshake sends: the SYN, or the ACK that ends it.
    fn open(&mut self, now: Time) -> Option<Segment> {
        let (seq, tries) = match self.connection.take_ack() {
            true => (1, 0),
            false => {
                let syn = self.connection.send_syn(now)?;
                self.timers.start_rto(now, self.syn_timeout(syn.tries));
                (0, syn.tries)
            }
        };
        Some(Segment {
            seq,
            syn: true,
            retransmission: tries > 0,
            stamp: now,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        })
    }

    /// One segment beyond the window (RFC 8985 section 7.3): new data if there is some, the newest
    /// sent otherwise.
    fn send_tail_probe(&mut self, now: Time) -> Option<Segment> {
        if !self.recovery.take_probe(&self.board) {
            return None;
        }
        self.record.tail_probe();
        let nxt = self.board.nxt();
        let segment = if nxt < self.limits.end() {
            self.recovery.probe_sent(nxt + 1, false);
            self.send_new(now, self.board.pipe())
        } else {
            self.recovery.probe_sent(nxt, true);
            self.retransmit(now, nxt - 1)
        };
        self.timers.stop_probe();
        Some(segment)
    }

    /// Probes a closed window. The next probe is later, whether this one is answered or not.
    #[cold]
    fn send_window_probe(&mut self, now: Time) -> Option<Segment> {
        self.persist.take();
        if !self.limits.is_closed(self.board.nxt()) || self.board.flight() > 0 {
            return None;
        }
        // The window after the handshake has one segment at least: something was acknowledged.
        let seq = self.board.una().checked_sub(1)?;
        self.persist.sent(seq);
        self.record.window_probe();
        self.arm_persist(now);
        Some(self.segment(now, seq, true))
    }

    fn start_train(&mut self, now: Time, pipe: u64, cwnd: u64) -> bool {
        let mss = f64::from(self.cfg.mss);
        let autosize = self.cfg.host.tso_autosize;
        let millisecond = match autosize {
            true => {
                let small = small_rtt_bonus(self.rtt.min());
                (self.window_rate() / (8.0 * SECOND_PARTS) + small) / mss
            }
            false => self
                .pacing_rate()
                .map_or(f64::INFINITY, |rate| rate * 1e-3 / (8.0 * mss)),
        };
        let open = matches!(self.recovery.phase(), Phase::Open | Phase::Disorder);
        let room = TrainRoom {
            window: cwnd,
            free: cwnd - pipe,
            data: self.limits.end() - self.board.nxt(),
            millisecond,
            may_wait: pipe > 0 && open && !(autosize && self.ack_is_far(now)),
        };
        self.pacer.start_train(room)
    }

    /// An ACK that could lengthen the train is not to be waited for: the sender has been silent for
    /// a millisecond, or the ACK is due later than in a millisecond or half an RTT (Linux
    /// `tcp_tso_should_defer`).
    fn ack_is_far(&self, now: Time) -> bool {
        let millisecond = Span::from_millis(1);
        let last = self.last_sent.max(self.pacer.next());
        let srtt = self.rtt.srtt();
        let due = self.board.get(self.board.una()).xmit + srtt;
        now.saturating_since(last) > millisecond
            || due.saturating_since(now) > millisecond.min(srtt / 2)
    }

    /// Small queues keep `segments` that would leave as one waiting in the sender.
    fn queue_holds(&mut self, now: Time, segments: u64, retransmission: bool) -> bool {
        let entry = Entry {
            mss: u64::from(self.cfg.mss),
            segments,
            outstanding: self.board.flight(),
            rate: self.window_rate() / 8.0,
            paced: self.pacing_rate().is_some(),
            retransmission,
        };
        let holds = self.small_queue.holds(entry);
        if holds {
            self.pacer.gate(false);
            self.note_usage(false);
            self.note_limit(now, Limit::LocalQueue);
        }
        holds
    }

    #[inline(always)]
    fn send_new(&mut self, now: Time, pipe: u64) -> Segment {
        if pipe == 0 {
            self.after_idle(now);
        }
        self.send_in_flight(now, pipe)
    }

    /// A new segment leaves behind others.
    #[inline(always)]
    fn send_in_flight(&mut self, now: Time, pipe: u64) -> Segment {
        let delivery = &mut self.delivery;
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let out = Outstanding {
            una,
            flight: nxt - una,
            pipe,
        };
        delivery.on_sent(now, nxt, out);
        let seq = self
            .board
            .push(now, delivery.delivered(), delivery.is_app_limited());
        self.recovery.on_new_data();
        let cwr = self.ecn.take_cwr();
        self.on_sent(now);
        self.arm_probe(now, true);
        let mut segment = self.segment(now, seq, false);
        segment.cwr = cwr;
        segment.push = self.writes.takes(seq, self.limits.largest());
        segment
    }

    fn retransmit(&mut self, now: Time, seq: u64) -> Segment {
        self.pacer.end_train();
        let pipe = self.board.pipe();
        if pipe == 0 {
            let ev = self.restart_event(now);
            self.cc.on_restart(&ev);
        }
        let out = Outstanding {
            una: self.board.una(),
            flight: self.board.flight(),
            pipe,
        };
        self.delivery.on_sent(now, seq, out);
        let app_limited = self.delivery.is_app_limited();
        self.recovery.on_retransmit(now, seq, &self.board);
        self.board
            .resend(seq, now, self.delivery.delivered(), app_limited);
        self.record.retransmitted();
        self.on_sent(now);
        if !self.timers.take_expiry(now)
            && self.cfg.timers.head_restarts_rto
            && seq == self.board.una()
            && self.recovery.may_restart_rto()
            && !self.timers.waits_for_reordering()
        {
            self.timers.start_rto(now, self.rtt.rto());
            if self.timers.is_exclusive() {
                self.timers.stop_probe();
            }
        }
        self.segment(now, seq, true)
    }

    #[inline(always)]
    fn on_sent(&mut self, now: Time) {
        self.record.sent();
        self.last_sent = now;
        self.recovery.on_sent();
        if !self.pacer.is_free() {
            let gap = self.pacing_gap();
            self.pacer.on_sent(now, self.record.counts().sent, gap);
            self.timers.note_pacing(self.pacer.next());
        }
        if !self.timers.rto_is_on() && !self.timers.waits_for_reordering() {
            self.timers.start_rto(now, self.rtt.rto());
        }
    }

    /// Takes back `segment`, the last one sent, which never left the host.
    pub(super) fn unsend(&mut self, segment: &Segment) {
        self.pacer.take_back(self.record.counts().sent);
        self.record.unsent(segment.retransmission);
        if segment.retransmission {
            self.board.unsend_retransmission(segment.seq);
        } else {
            self.board.unsend_new();
            self.ecn.put_back(segment.cwr);
        }
        if self.board.flight() == 0 {
            self.timers.stop_rto();
            self.timers.stop_probe();
        }
        self.recovery.on_unsent(segment.retransmission);
    }

    #[inline]
    fn segment(&self, now: Time, seq: u64, retransmission: bool) -> Segment {
        Segment {
            seq,
            syn: false,
            retransmission,
            stamp: now,
            ect: self.ecn.is_capable(retransmission),
            ce: false,
            cwr: false,
            push: false,
        }
    }

    /// The window allows more, but nothing new may be sent.
    fn poll_exhausted(&mut self, now: Time, pipe: u64) -> Option<Segment> {
        if self.write() && self.board.nxt() < self.limits.end() {
            return self.poll_every_limit(now);
        }
        if self.board.nxt() >= self.limits.app_end() {
            self.delivery.app_limited(pipe);
        }
        if let Some(seq) = self.recovery.next_hole(&mut self.board) {
            return Some(self.retransmit(now, seq));
        }
        self.note_usage(false);
        let limit = match self.limits.is_closed(self.board.nxt()) {
            true => {
                // Data may have been written since the last ACK.
                if self.board.flight() == 0 {
                    self.arm_persist(now);
                }
                Limit::ReceiveWindow
            }
            // The send buffer is full.
            false if self.board.nxt() < self.limits.app_end() => Limit::LocalQueue,
            false => Limit::Application,
        };
        if limit == Limit::Application {
            self.starve(now);
        }
        self.note_limit(now, limit);
        None
    }

    /// There is nothing to send.
    fn starve(&mut self, now: Time) {
        let at = Starvation {
            now,
            una: self.board.una(),
            nxt: self.board.nxt(),
            limited: self.cwnd_limited(),
            open: self.recovery.phase() == Phase::Open,
            rto: self.rtt.base_rto(),
        };
        let window = self.window_state();
        if let Some(state) = self.validation.on_starved(&at, window)
            && !self.cc.owns_window()
        {
            let idle = now.saturating_since(self.last_sent);
            let ev = IdleEvent::new(now, idle, state.window, state.ssthresh);
            self.cc.on_idle(&ev);
            self.refresh_budget();
        }
    }

    /// The first segment after nothing was in flight.
    fn after_idle(&mut self, now: Time) {
        let idle = now.saturating_since(self.last_sent);
        let window = self.window_state();
        let changed = self
            .validation
            .on_restart(idle, self.rtt.base_rto(), window);
        if let Some(state) = changed {
            let ev = IdleEvent::new(now, idle, state.window, state.ssthresh);
            self.cc.on_idle(&ev);
        }
        let ev = self.restart_event(now);
        self.cc.on_restart(&ev);
        self.refresh_budget();
    }

    /// The window as validation sees it.
    pub(super) fn window_state(&self) -> WindowState {
        WindowState {
            window: self.cc.window(),
            ssthresh: self.cc.ssthresh(),
            initial: self.cfg.window.initial,
        }
    }

    /// Present pacing rate, bit/s of payload, if the connection is paced.
    pub fn pacing_rate(&self) -> Option<f64> {
        let max = self.max_rate();
        if let Some(rate) = self.cc.pacing_rate() {
            return Some((rate.as_bits_per_sec() as f64).min(max));
        }
        let gains = self.cfg.pacing.gains?;
        let rate = self.rate_of_window(gains).min(max);
        rate.is_finite().then_some(rate)
    }

    /// The same, also of a connection that is not paced (Linux `tcp_update_pacing_rate`); infinite
    /// before the first RTT sample.
    fn window_rate(&self) -> f64 {
        if let Some(rate) = self.pacing_rate() {
            return rate;
        }
        self.rate_of_window(self.cfg.pacing.gains.unwrap_or_default())
    }

    fn rate_of_window(&self, gains: PacingGains) -> f64 {
        match self.cfg.pacing.rule {
            PacerRule::Credit => self.present_rate_of_window(gains),
            PacerRule::Linux => self.fixed_rate,
        }
    }

    /// An ACK is done with, or the handshake: Linux works the rate out once for all that the ACK
    /// lets out, before any of it leaves (`tcp_update_pacing_rate`, `net/ipv4/tcp_input.c`).
    #[inline]
    pub(super) fn fix_rate(&mut self) {
        if self.cfg.pacing.rule == PacerRule::Linux && !self.pacer.is_free() {
            let gains = self.cfg.pacing.gains.unwrap_or_default();
            self.fixed_rate = self.present_rate_of_window(gains);
        }
    }

    fn present_rate_of_window(&self, gains: PacingGains) -> f64 {
        if !self.rtt.has_sample() {
            return f64::INFINITY;
        }
        let w = self.cwnd();
        let gain = if w < self.cc.ssthresh() / 2.0 {
            gains.slow_start
        } else {
            gains.avoidance
        };
        // Linux counts what is SACKed or lost as well (`packets_out`).
        let out = match self.cfg.pacing.rule {
            PacerRule::Credit => self.board.pipe(),
            PacerRule::Linux => self.board.flight(),
        };
        let window = w.max(out as f64);
        gain * window * f64::from(self.cfg.mss) * 8.0 / self.rtt.srtt().as_secs_f64()
    }

    /// The flow's own ceiling, bit/s of payload; infinite: none.
    fn max_rate(&self) -> f64 {
        let max = self.cfg.pacing.max;
        max.map_or(f64::INFINITY, |rate| rate.as_bits_per_sec() as f64)
    }

    fn pacing_gap(&mut self) -> Option<Span> {
        if self.cfg.pacing.gains.is_none() && self.cc.pacing_rate().is_none() {
            return None;
        }
        let bits = f64::from(self.cfg.mss) * 8.0;
        let rate = self.pacing_rate()?;
        self.pacer.cap(rate == self.max_rate());
        Some(Span::from_secs_f64(bits / rate))
    }
}

/// Bytes that a train may have beyond a millisecond of the rate: all of an offload's at RTTs below
/// 512 us, half as many for each 512 us more (Linux `tcp_tso_autosize`, `tcp_tso_rtt_log` 9).
fn small_rtt_bonus(min_rtt: Span) -> f64 {
    match (min_rtt.as_nanos() / 1000) >> 9 {
        halvings @ 0..32 => f64::from(GSO_MAX >> halvings),
        _ => 0.0,
    }
}

/// Parts of a second that a train's rate is taken over (`sk_pacing_shift` 10).
const SECOND_PARTS: f64 = 1024.0;

/// Most bytes of a segment before offload (`GSO_LEGACY_MAX_SIZE`).
const GSO_MAX: u32 = 65_536;
