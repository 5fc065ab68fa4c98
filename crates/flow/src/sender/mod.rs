//! The sans-IO sender: what to send now, what an ACK means, when to be called again.
//!
//! A host drives it with [`Sender::poll_transmit`] until it returns `None`, [`Sender::handle_ack`], and
//! [`Sender::handle_timeout`] when [`Sender::next_timeout`] is due. The sender reads no clock: the host passes `now`.
//! Work per ACK does not grow with the window.

mod artificial;
mod audit;
mod connection;
mod input;
mod local;
mod output;
mod pacer;
mod persist;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod timers;
mod usage;
mod validation;

use fullpipe_cc::{Controller, PacingGains, Phase, Stack};
use fullpipe_units::Time;

pub use recovery::{Prr, PrrAck};
pub use rtt::RttEstimator;

use crate::config::SenderConfig;
use crate::episode::{Episode, EpisodeKind};
use artificial::Artificial;
use connection::Connection;
use pacer::Pacer;
use persist::Persist;
use rate::RateEstimator;
use recovery::{Frto, Probe, Rack, UndoMark};
use scoreboard::Scoreboard;
use usage::Usage;
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
    /// The peer's window is closed.
    persist: Persist,
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
    /// Probes of a closed window; part of `sent`.
    pub window_probes: u64,
    /// Reductions undone.
    pub undone: u64,
    /// Refusals by the local queue.
    pub local_stalls: u64,
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
            gains: cfg.pacing.gains,
            rack: Rack::new(),
            validation: WindowValidation::new(cfg.window.validation),
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
            next_push: if cfg.host.refill.is_some() {
                0
            } else {
                u64::MAX
            },
            expiries: 0,
            send_limit: app_limit,
            app_limit,
            peer_limit: u64::MAX,
            usage: Usage::default(),
            rto_at: Time::MAX,
            probe_at: Time::MAX,
            reorder_at: Time::MAX,
            persist: Persist::default(),
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
