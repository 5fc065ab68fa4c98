//! The sans-IO sender: what to send now, what an ACK means, when to be called again.
//!
//! A host drives it with [`Sender::poll_transmit`] until it returns `None`, [`Sender::handle_ack`], and
//! [`Sender::handle_timeout`] when [`Sender::next_timeout`] is due. The sender reads no clock: the host passes `now`.
//! Work per ACK does not grow with the window.

mod artificial;
mod audit;
mod input;
mod pacer;
mod prr;
mod rack;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod validation;

use fullpipe_cc::{Controller, IdleEvent, InitialSending, PacingGains, Phase, RestartEvent, Stack};
use fullpipe_units::{Span, Time};

pub use prr::{Prr, PrrAck};
pub use rtt::RttEstimator;

use crate::clock::wheel;
use crate::config::{Detector, LocalDrop, SenderConfig, TimerGrain};
use crate::episode::{Episode, EpisodeKind};
use crate::segment::Segment;
use artificial::Artificial;
use pacer::Pacer;
use rack::Rack;
use rate::RateEstimator;
use recovery::{Frto, UndoMark};
use scoreboard::Scoreboard;
use validation::WindowValidation;

/// Sender of one flow.
#[derive(Clone, Debug)]
pub struct Sender<C = Stack> {
    cfg: SenderConfig,
    cc: C,
    board: Scoreboard,
    rtt: RttEstimator,
    rate: RateEstimator,
    pacer: Pacer,
    gains: Option<PacingGains>,
    rack: Rack,
    validation: WindowValidation,
    artificial: Option<Artificial>,
    connection: Connection,
    phase: Phase,
    /// Data up to here was sent when the present reduction began.
    recovery_point: u64,
    /// When it began: an older retransmission that is lost again is part of it.
    reduced_at: Time,
    prr: Option<Prr>,
    undo: Option<UndoMark>,
    frto: Frto,
    probe: Option<Probe>,
    probe_due: bool,
    /// An RTT sample arrived since the last probe.
    probe_allowed: bool,
    /// RFC 6675 RescueRxt: the one rescue retransmission is due once `una` has passed it; [`u64::MAX`] when used.
    rescue_after: u64,
    duplicates: u64,
    /// RFC 6582: a partial ACK of this recovery has restarted the retransmission timer.
    partial_ack_seen: bool,
    /// Segments sent by Limited Transmit in this disorder: not part of FlightSize.
    limited_sent: u64,
    cwr_pending: bool,
    stalled: bool,
    /// Open and not stalled.
    ready: bool,
    /// Whole segments of the window in force: recomputed by every call that can change it.
    budget: u64,
    /// Largest of it.
    peak: u64,
    /// The segment that ends a refill of the send buffer; [`u64::MAX`]: none does.
    next_push: u64,
    /// Timeouts since the last ACK that advanced.
    expiries: u32,
    /// New data may be sent below this number.
    send_limit: u64,
    app_limit: u64,
    peer_limit: u64,
    usage: Usage,
    rto_at: Time,
    probe_at: Time,
    reorder_at: Time,
    /// The pacer holds a segment back: wake at its time.
    gated: bool,
    /// Segments left of the train that segmentation offload sends as one.
    train: u64,
    last_sent: Time,
    round: u64,
    round_ends: u64,
    round_began: u64,
    counts: SenderCounts,
    log: Vec<Episode>,
}

/// Totals of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderCounts {
    /// Data segments sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmits: u64,
    /// Congestion events that reduced the window.
    pub loss_events: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Refusals by the local queue.
    pub local_stalls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Connection {
    Idle,
    /// SYN to be sent.
    Opening {
        tries: u32,
    },
    /// SYN sent.
    SynSent {
        at: Time,
        tries: u32,
    },
    Open,
}

/// A tail loss probe under way (RFC 8985 section 7).
#[derive(Clone, Copy, Debug)]
struct Probe {
    end: u64,
    retransmission: bool,
}

/// Was the window the limit during the last window of data? (Linux' rule; RFC 7661 has the same aim.)
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    limited: bool,
    most: u64,
    until: u64,
}

impl<C: Controller> Sender<C> {
    /// A sender before its start. `seed` feeds the random rule of artificial loss, nothing else.
    pub fn new(cfg: SenderConfig, cc: C, seed: u64) -> Self {
        let app_limit = cfg.transfer.unwrap_or(u64::MAX);
        Self {
            board: Scoreboard::default(),
            rtt: RttEstimator::new(cfg.rto),
            rate: RateEstimator::new(),
            pacer: Pacer::new(),
            gains: cfg.pacing,
            rack: Rack::new(),
            validation: WindowValidation::new(cfg.validation),
            artificial: Artificial::new(cfg.artificial_loss.clone(), seed),
            connection: Connection::Idle,
            phase: Phase::Open,
            recovery_point: 0,
            reduced_at: Time::ZERO,
            prr: None,
            undo: None,
            frto: Frto::Off,
            probe: None,
            probe_due: false,
            probe_allowed: true,
            rescue_after: u64::MAX,
            duplicates: 0,
            partial_ack_seen: false,
            limited_sent: 0,
            cwr_pending: false,
            stalled: false,
            ready: false,
            budget: cc.window() as u64,
            peak: cc.window() as u64,
            next_push: if cfg.refill.is_some() { 0 } else { u64::MAX },
            expiries: 0,
            send_limit: app_limit,
            app_limit,
            peer_limit: u64::MAX,
            usage: Usage::default(),
            rto_at: Time::MAX,
            probe_at: Time::MAX,
            reorder_at: Time::MAX,
            gated: false,
            train: 0,
            last_sent: Time::ZERO,
            round: 0,
            round_ends: 0,
            round_began: 0,
            counts: SenderCounts::default(),
            log: Vec::new(),
            cfg,
            cc,
        }
    }

    /// Opens the connection: with a SYN, or at once if the configuration has no handshake.
    pub fn start(&mut self, now: Time) {
        self.connection = if self.cfg.handshake {
            Connection::Opening { tries: 0 }
        } else {
            Connection::Open
        };
        self.last_sent = now;
        self.refresh_ready();
        if self.ready {
            self.open_controller(now);
        }
    }

    /// No new data from now on.
    pub fn stop(&mut self) {
        self.app_limit = self.app_limit.min(self.board.nxt());
        self.send_limit = self.app_limit.min(self.peer_limit);
    }

    /// True once every segment of a finite or stopped transfer is acknowledged.
    pub fn is_done(&self) -> bool {
        self.connection == Connection::Open && self.board.una() >= self.app_limit
    }

    /// The congestion controller.
    pub fn controller(&self) -> &C {
        &self.cc
    }

    /// Window in force, segments: PRR's during a reduction, the controller's otherwise.
    #[inline]
    pub fn cwnd(&self) -> f64 {
        match &self.prr {
            Some(prr) => prr.cwnd() as f64,
            None => self.cc.window(),
        }
    }

    /// When a timer set now for `span` goes off.
    #[inline]
    fn timer(&self, now: Time, span: Span) -> Time {
        match self.cfg.timers {
            TimerGrain::Exact => now + span,
            TimerGrain::Wheel => wheel(now, span, self.cfg.hz),
        }
    }

    /// When the verdict over a suspect that is due `at` is passed. Linux adds 2 ms (`TCP_TIMEOUT_MIN_US`).
    fn reordering_timer(&self, now: Time, at: Time) -> Time {
        match self.cfg.timers {
            TimerGrain::Exact => at,
            TimerGrain::Wheel => wheel(now, at - now + Span::from_millis(2), self.cfg.hz),
        }
    }

    fn refresh_ready(&mut self) {
        self.ready = self.connection == Connection::Open && !self.stalled;
    }

    #[inline]
    fn refresh_budget(&mut self) {
        self.budget = match &self.prr {
            Some(prr) => prr.cwnd(),
            None => self.cc.window() as u64,
        };
        self.peak = self.peak.max(self.budget);
    }

    /// Payload of a segment, bytes.
    pub fn mss(&self) -> u32 {
        self.cfg.mss
    }

    /// Segments in the network (`pipe`).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.board.pipe()
    }

    /// Recovery state.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// RTT estimates.
    #[inline]
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Packet-timed rounds since the start.
    #[inline]
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Segments delivered, as far as the sender knows.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.rate.delivered()
    }

    /// First unacknowledged segment.
    pub fn una(&self) -> u64 {
        self.board.una()
    }

    /// Next new segment.
    pub fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// Totals so far.
    pub fn counts(&self) -> &SenderCounts {
        &self.counts
    }

    /// Reductions, timeouts and undos since the last call.
    pub fn drain_log(&mut self) -> impl Iterator<Item = Episode> + '_ {
        self.log.drain(..)
    }

    /// True if [`Sender::drain_log`] has something.
    #[inline]
    pub fn has_log(&self) -> bool {
        !self.log.is_empty()
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

    /// When to call [`Sender::handle_timeout`]; [`Time::MAX`] for never.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        let timers = self.rto_at.min(self.probe_at).min(self.reorder_at);
        if self.gated {
            timers.min(self.pacer.next())
        } else {
            timers
        }
    }

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
            if self.cfg.tso_segments > 1 && !self.continue_train(pipe, cwnd) {
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
            let whole = u64::from(self.cfg.tso_segments).min(self.paced_train());
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

    /// The local queue refused `segment`, the last one polled: it never left the host. Of several that it refused at once the
    /// newest comes back first.
    pub fn refuse(&mut self, now: Time, segment: &Segment) {
        self.stalled = true;
        self.ready = false;
        if let Connection::SynSent { tries, .. } = self.connection {
            self.connection = Connection::Opening { tries };
            self.rto_at = Time::MAX;
            return;
        }
        self.counts.local_stalls += 1;
        // The local queue held the sender back, not the window (C-GATE).
        self.note_usage(false);
        self.counts.sent -= 1;
        if segment.retransmission {
            self.counts.retransmits -= 1;
            self.board.unsend_again(segment.seq);
            if let Some(undo) = &mut self.undo {
                undo.on_unsent();
            }
        } else {
            self.board.unsend_new();
            self.cwr_pending |= segment.cwr;
        }
        if self.board.flight() == 0 {
            self.rto_at = Time::MAX;
            self.probe_at = Time::MAX;
        }
        if let Some(prr) = &mut self.prr {
            prr.on_unsent();
        }
        match self.cfg.local_drop {
            LocalDrop::Ignore => {}
            LocalDrop::ExitSlowStart => {
                if self.cc.in_start_up() {
                    let w = self.cc.window();
                    self.cc.exit_start_up(now);
                    self.note(now, EpisodeKind::StartUpExit, w);
                }
            }
            LocalDrop::React => self.reduce_for_local_drop(now),
        }
        self.refresh_budget();
    }

    /// The local queue has room again.
    pub fn resume(&mut self) {
        self.stalled = false;
        self.refresh_ready();
    }

    /// True between [`Sender::refuse`] and [`Sender::resume`].
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// A timer is due: retransmission, reordering, probe or pacing. Poll for segments afterwards.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Connection::SynSent { at, tries } = self.connection {
            if now >= self.timer(at, self.syn_timeout(tries)) {
                self.connection = Connection::Opening { tries: tries + 1 };
                self.rto_at = Time::MAX;
            }
            return;
        }
        if now >= self.reorder_at {
            self.reorder_at = Time::MAX;
            self.on_reordering_timer(now);
        }
        // The probe goes first where both are due: it is there to spare the timeout.
        let probing = now >= self.probe_at && self.on_probe_timer(now);
        if !probing && now >= self.rto_at {
            self.on_rto(now);
        }
        self.refresh_budget();
    }

    fn poll_handshake(&mut self, now: Time) -> Option<Segment> {
        let Connection::Opening { tries } = self.connection else {
            return None;
        };
        if self.stalled {
            return None;
        }
        self.connection = Connection::SynSent { at: now, tries };
        self.rto_at = self.timer(now, self.syn_timeout(tries));
        Some(Segment {
            seq: 0,
            syn: true,
            retransmission: tries > 0,
            stamp: now,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        })
    }

    fn syn_timeout(&self, tries: u32) -> Span {
        (self.cfg.rto.initial * (1 << tries.min(16))).min(self.cfg.rto.max)
    }

    fn established(&mut self, now: Time, window_end: u64) {
        let Connection::SynSent { at, tries } = self.connection else {
            return; // a late copy: its window is out of date
        };
        self.peer_limit = window_end;
        self.send_limit = self.app_limit.min(window_end);
        self.connection = Connection::Open;
        self.refresh_ready();
        self.rto_at = Time::MAX;
        if tries == 0 {
            self.rtt.take(now - at, now - at, 0, 0);
            if let InitialSending::Spread { .. } = self.cfg.sending {
                let iw = self.cc.window() as u64;
                let spacing = self.cfg.sending.spacing(now - at, iw);
                self.pacer.spread(now, iw, spacing.gap);
            }
        } else {
            // RFC 6298 section 5.7 and RFC 5681 section 3.1: a lost SYN means RTO 3 s and IW 1.
            self.rtt.start_from(Span::from_secs(3));
            self.cc.on_idle(&IdleEvent {
                now,
                idle: Span::ZERO,
                window: 1.0,
                ssthresh: self.cc.ssthresh(),
            });
        }
        self.open_controller(now);
    }

    fn open_controller(&mut self, now: Time) {
        let ev = self.restart_event(now);
        self.cc.on_established(&ev);
        self.refresh_budget();
    }

    fn restart_event(&self, now: Time) -> RestartEvent {
        RestartEvent {
            now,
            idle: now.saturating_since(self.last_sent),
            srtt: self.rtt.srtt(),
            snd_una: self.board.una(),
            snd_nxt: self.board.nxt(),
        }
    }

    #[inline(always)]
    fn send_new(&mut self, now: Time, pipe: u64) -> Segment {
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
            let part = self.cfg.refill.unwrap_or(f64::INFINITY) * self.peak as f64;
            self.next_push = seq.saturating_add((part as u64).max(1));
        }
        segment
    }

    fn retransmit(&mut self, now: Time, seq: u64) -> Segment {
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
        if self.cfg.head_restarts_timer && seq == self.board.una() {
            self.rto_at = self.timer(now, self.rtt.rto());
        }
        if let Some(undo) = &mut self.undo {
            undo.on_retransmit(now);
        }
        self.sent(now);
        self.segment(now, seq, true, false)
    }

    #[inline]
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
    fn pacing_gap(&self) -> Option<Span> {
        if self.gains.is_none() && self.cc.pacing_rate().is_none() {
            return None;
        }
        let bits = f64::from(self.cfg.mss) * 8.0;
        self.pacing_rate()
            .map(|rate| Span::from_secs_f64(bits / rate))
    }

    #[inline]
    fn segment(&self, now: Time, seq: u64, retransmission: bool, cwr: bool) -> Segment {
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
        if self.cfg.detector == Detector::Sack && self.phase == Phase::Recovery {
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
        let iw = self.cfg.initial_window;
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

    #[inline]
    fn note_usage(&mut self, limited: bool) {
        let out = self.board.flight();
        let u = &mut self.usage;
        if self.board.una() >= u.until || limited || (!u.limited && out > u.most) {
            *u = Usage {
                limited,
                most: out,
                until: self.board.nxt(),
            };
        }
    }

    #[inline]
    fn cwnd_limited(&self) -> bool {
        self.usage.limited
            || (self.cc.in_start_up() && self.cc.window() < 2.0 * self.usage.most as f64)
    }

    fn note(&mut self, at: Time, kind: EpisodeKind, before: f64) {
        let after = self.cc.window();
        self.log.push(Episode {
            at,
            kind,
            before,
            after,
        });
    }
}

/// The part of the window that is always enough for a train (Linux `tcp_tso_win_divisor`).
const TSO_WINDOW_DIVISOR: u64 = 3;
