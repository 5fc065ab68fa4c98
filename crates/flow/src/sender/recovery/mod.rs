//! The recovery phases: what is lost, which reduction is under way, when it ends, and whether it
//! was spurious.
//!
//! Each part owns its state: `rack` the clock of time-based detection, `newreno` the duplicate ACKs
//! of a peer without SACK, `prr` the quota of a reduction, `undo` and `frto` what shows that a
//! reduction was spurious, `probe` tail loss probes. What a sign of congestion does to the window
//! is the sender's part (`sender/congestion.rs`).

mod detect;
mod frto;
mod newreno;
mod probe;
mod prr;
mod rack;
mod reduction;
mod timeout;
mod undo;

use std::collections::VecDeque;

use fullpipe_cc::Phase;
use fullpipe_units::{Span, Time};

pub use prr::{Prr, PrrAck};

pub(super) use detect::Losses;
use rack::Trust;
pub(super) use undo::Verdict;

use super::scoreboard::{Delivered, Scoreboard, Sent};
use crate::config::{Detector, RecoveryConfig, Reduction, SpuriousRule};
use crate::segment::Ack;
use frto::Frto;
use newreno::NewReno;
use probe::TailProbe;
use rack::Rack;
use undo::UndoMark;

/// State of loss recovery. What every ACK touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Recovery {
    probe: TailProbe,
    phase: Phase,
    /// The fast retransmit has yet to leave, whatever the window (RFC 5681 section 3.2 step 3, RFC
    /// 6675 section 5 step 4.3; PRR sees to that by itself), or that of a timeout (RFC 6298 section
    /// 5.4).
    fast_retransmit: bool,
    /// Until the next ACK nothing is judged lost or resent.
    doubtful: bool,
    frto: Frto,
    cfg: RecoveryConfig,
    prr: Option<Prr>,
    rack: Rack,
    /// Data below this number was sent when the present reduction began (RFC 6675 RecoveryPoint).
    point: u64,
    /// When it began: a lost retransmission that left before is part of it.
    reduced_at: Time,
    undo: Option<UndoMark>,
    /// When the first retransmission left of the present recovery, or since nothing that was resent
    /// is outstanding (Linux `retrans_stamp`).
    first_retransmission: Option<Time>,
    /// Retransmissions of the reduction that no DSACK has reported as duplicates yet, for RFC 3708.
    unexplained: VecDeque<u64>,
    /// Duplicates that the peer has reported, and retransmissions so far.
    dsacks: u64,
    retransmitted: u64,
    /// A segment that was never resent arrived twice: DSACKs of this connection prove nothing (RFC
    /// 3708 section 3, condition D).
    network_duplicates: bool,
    /// An undo gives the window back, too: nothing but losses has made it smaller (Linux
    /// `prior_ssthresh`, which an undo leaves).
    gives_back: bool,
    /// What the last timeout took is undone; it matters as long as the phase stays.
    undone_in_loss: bool,
    /// Until this segment is acknowledged a retransmission counts as delivered only if a stamp says
    /// that it is none of its predecessors: some have been taken for them.
    stamped_until: u64,
    /// Of all segments the one before which F-RTO lets them leave.
    frto_until: u64,
    newreno: NewReno,
    /// RFC 6675 RescueRxt: the one rescue retransmission is due once `una` has passed it;
    /// [`u64::MAX`] when used.
    rescue_after: u64,
    /// Segments sent by Limited Transmit in this disorder: not part of FlightSize.
    limited_sent: u64,
    /// Timeouts since the last ACK that advanced.
    expiries: u32,
}

/// An ACK that is not a plain cumulative one in an open, clean window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Irregular<'a> {
    pub(super) now: Time,
    pub(super) ack: &'a Ack,
    /// The ACK advanced `una`.
    pub(super) advanced: bool,
    /// It moved the end of the advertised window: it is no duplicate (RFC 5681 section 2).
    pub(super) window_update: bool,
    /// The segment that it reports as a duplicate.
    pub(super) dsack: Option<u64>,
    /// The echoed time stamp, if there are time stamps and it belongs to what this ACK
    /// acknowledges.
    pub(super) echo: Option<Time>,
    /// First unacknowledged segment before this ACK.
    pub(super) una: u64,
    /// Something was SACKed before this ACK.
    pub(super) scoreboard: bool,
    pub(super) delivered: &'a Delivered,
    /// Segments delivered so far, these included.
    pub(super) deliveries: u64,
    /// One past the highest segment delivered before this ACK.
    pub(super) prior_fack: u64,
}

/// State when proportional rate reduction starts, segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrrStart {
    pub(super) ssthresh: u64,
    /// Outstanding and not SACKed before the ACK that started it.
    pub(super) outstanding: u64,
    /// Window before the reduction.
    pub(super) window: u64,
}

impl Recovery {
    pub(super) fn new(cfg: &RecoveryConfig) -> Self {
        Self {
            phase: Phase::Open,
            point: 0,
            reduced_at: Time::ZERO,
            prr: None,
            undo: None,
            first_retransmission: None,
            unexplained: VecDeque::new(),
            dsacks: 0,
            retransmitted: 0,
            network_duplicates: false,
            doubtful: false,
            frto: Frto::Off,
            gives_back: false,
            undone_in_loss: false,
            stamped_until: 0,
            frto_until: 0,
            rack: Rack::new(cfg.reordering_by),
            newreno: NewReno::new(cfg.reordering_by),
            probe: TailProbe::new(cfg.tlp && cfg.may_probe()),
            rescue_after: u64::MAX,
            limited_sent: 0,
            fast_retransmit: false,
            expiries: 0,
            cfg: cfg.clone(),
        }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// Nothing unusual: a plain cumulative ACK has nothing to end and nothing to confirm.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.phase == Phase::Open && !self.probe.is_out()
    }

    /// The window is being reduced, or was after a timeout.
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Cwr | Phase::Recovery | Phase::Loss)
    }

    /// A loss would begin a recovery.
    pub(super) fn may_begin(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr)
    }

    /// Fast recovery is under way.
    pub(super) fn is_recovering(&self) -> bool {
        self.phase == Phase::Recovery
    }

    /// Fast recovery is under way, and its data is acknowledged up to `una`.
    pub(super) fn is_recovered(&self, una: u64) -> bool {
        self.is_recovering() && una >= self.point
    }

    /// PRR's window while it is the one in force, segments.
    #[inline]
    pub(super) fn prr_window(&self) -> Option<u64> {
        self.prr.as_ref().map(Prr::cwnd)
    }

    /// The controller's own window is the one in force from now on.
    pub(super) fn end_prr(&mut self) {
        self.prr = None;
    }

    /// Limited Transmit's segments in this disorder.
    pub(super) fn limited_sent(&self) -> u64 {
        self.limited_sent
    }

    /// The data of the present reduction is acknowledged up to `una`, and more.
    fn is_behind(&self, una: u64) -> bool {
        una > self.point
    }

    /// An echo that comes outside of a reduction asks for one. By RFC 3168 section 6.1.2 it is
    /// still that of the last mark until the segment with CWR can have arrived; Linux asks for the
    /// state alone (`tcp_try_to_open`, `tcp_enter_cwr`), so that a mark on the ACK that ends a
    /// recovery reduces once more.
    pub(super) fn answers_mark(&self, una: u64) -> bool {
        self.cfg.reduction == Reduction::PrrWindow || self.is_behind(una)
    }

    /// Lost segments may be sent again: F-RTO does not try new data first, and no doubt stands.
    #[inline]
    pub(super) fn may_retransmit(&self) -> bool {
        !self.frto.holds_retransmissions() && !self.doubtful
    }

    // Transmission.

    #[inline]
    pub(super) fn owes_fast_retransmit(&self) -> bool {
        self.fast_retransmit
    }

    pub(super) fn take_fast_retransmit(&mut self) -> bool {
        std::mem::take(&mut self.fast_retransmit)
    }

    #[inline]
    pub(super) fn on_sent(&mut self) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
    }

    #[inline]
    pub(super) fn on_new_data(&mut self) {
        if self.phase == Phase::Disorder {
            self.limited_sent += 1;
        }
    }

    /// The last segment sent never left the host.
    pub(super) fn on_unsent(&mut self, retransmission: bool) {
        if let Some(undo) = self.undo.as_mut().filter(|_| retransmission) {
            undo.on_unsent();
            self.unexplained.pop_back();
        }
        if let Some(prr) = &mut self.prr {
            prr.on_unsent();
        }
    }

    /// With the window open and nothing else to send: the hole that RFC 6675 NextSeg names by its
    /// rules 3 and 4. Linux resends what is marked lost alone (`tcp_xmit_retransmit_queue`).
    pub(super) fn next_hole(&mut self, board: &mut Scoreboard) -> Option<u64> {
        let by_rfc = self.cfg.reordering_by == SpuriousRule::Rfc;
        if self.cfg.detector != Detector::Sack || !by_rfc || self.phase != Phase::Recovery {
            return None;
        }
        if let Some(seq) = board.next_hole() {
            board.mark_lost(seq);
            return Some(seq);
        }
        let rescue = board.highest_unsacked()?;
        if board.una() <= self.rescue_after {
            return None;
        }
        self.rescue_after = u64::MAX;
        Some(rescue)
    }

    // ACKs.

    /// A plain cumulative ACK; `seq` is the most recently sent segment that it delivered.
    #[inline]
    pub(super) fn on_plain_ack(&mut self, now: Time, seq: u64, xmit: Time) {
        if self.cfg.detector == Detector::Rack {
            self.rack.advance(now, seq, xmit);
        }
    }

    /// See [`Rack::awaits_delivery`].
    #[inline]
    pub(super) fn awaits_delivery(&self) -> bool {
        self.rack.awaits_delivery()
    }

    /// Linux (`tcp_rack_update_reo_wnd`): every ACK that delivers something, `deliveries` in all;
    /// `delivered` are the low bits of how many there were when the newest of it left.
    #[cold]
    pub(super) fn note_delivery(&mut self, delivered: u32, deliveries: u64) {
        if self.cfg.reordering_by == SpuriousRule::Linux {
            let since = (deliveries as u32).wrapping_sub(delivered);
            let prior = deliveries - u64::from(since);
            self.rack.on_delivery(prior, deliveries);
        }
    }

    /// Which retransmissions an ACK is trusted to show delivered, before which `una` was the first
    /// outstanding segment.
    pub(super) fn trust(&self, now: Time, echo: Option<Time>, min_rtt: Span, una: u64) -> Trust {
        let strict = una < self.stamped_until;
        Trust::new(self.cfg.reordering_by, now, echo, min_rtt, strict)
    }

    /// Any other ACK, before it is asked whether anything was spurious, lost or ended.
    #[inline]
    pub(super) fn on_irregular_ack(
        &mut self,
        ir: &Irregular<'_>,
        board: &Scoreboard,
        min_rtt: Span,
    ) {
        let d = ir.delivered;
        self.doubtful = false;
        if self.phase == Phase::Open {
            // What was resent without a recovery is none (`tcp_fastretrans_alert`).
            self.first_retransmission = None;
        }
        if self.cfg.detector == Detector::Rack {
            // One that is no retransmission needs no trust, and of a clean window nothing else is
            // known. By Linux the others were judged one by one.
            let by = self.cfg.reordering_by;
            let is_certain = |sent: &Sent| {
                let trusted = || self.trust(ir.now, ir.echo, min_rtt, ir.una).acked;
                !sent.retransmitted() || (by == SpuriousRule::Rfc && sent.xmit <= trusted())
            };
            let newest = d.newest.filter(|(_, sent)| is_certain(sent));
            if let Some((seq, newest)) = newest.or_else(|| d.certain()) {
                match by == SpuriousRule::Rfc && newest.retransmitted() {
                    true => self
                        .rack
                        .advance_by_retransmission(ir.now, seq, newest.xmit),
                    false => self.rack.advance(ir.now, seq, newest.xmit),
                }
                if by == SpuriousRule::Linux
                    && let Some(xmit) = d.processed_last()
                {
                    self.rack.time(ir.now, xmit);
                }
            }
            if by == SpuriousRule::Linux
                && let Some(seq) = ir.dsack
                && self.explains_duplicate()
                && !self.probe.is_of(seq)
            {
                // Before what this ACK shows of reordering (`tcp_check_dsack`).
                self.rack.note_dsack();
            }
        }
        if self.measures_reordering()
            && let Some(lowest) = d.reordered
        {
            // How far is measured against what earlier ACKs reported.
            let overtaken = lowest < ir.prior_fack;
            let distance = if overtaken { board.fack() - lowest } else { 0 };
            self.rack.saw_reordering(distance);
        }
        if self.cfg.detector == Detector::Rack {
            self.widen_window(ir, board);
        }
        if ir.advanced {
            self.expiries = 0;
        }
    }

    /// How far segments are overtaken says when others are lost: RACK's window, and the count of
    /// SACKed segments that Linux waits for without it (`tcp_check_sack_reordering`).
    fn measures_reordering(&self) -> bool {
        match self.cfg.detector {
            Detector::Rack => true,
            Detector::Sack => self.cfg.reordering_by == SpuriousRule::Linux,
            Detector::NewReno => false,
        }
    }

    /// A DSACK widens RACK's window, once per round.
    #[inline]
    fn widen_window(&mut self, ir: &Irregular<'_>, board: &Scoreboard) {
        match self.cfg.reordering_by {
            SpuriousRule::Rfc => {
                let dsack = ir.dsack.is_some();
                self.rack.on_ack(dsack, board.una(), board.nxt());
            }
            SpuriousRule::Linux => {
                if let Some((_, newest)) = ir.delivered.newest {
                    self.note_delivery(newest.delivered, ir.deliveries);
                }
            }
        }
    }

    /// One duplicate more than reported so far is still explained by a retransmission (Linux
    /// `tcp_dsack_seen`).
    fn explains_duplicate(&self) -> bool {
        self.dsacks < self.retransmitted
    }

    /// A duplicate that is reported now counts as delivered (Linux `tcp_dsack_seen`). To be asked
    /// before it is judged.
    pub(super) fn counts_duplicates(&self) -> bool {
        self.cfg.reordering_by == SpuriousRule::Linux && self.explains_duplicate()
    }

    /// The window may grow on SACKs too.
    pub(super) fn is_reordering_high(&self) -> bool {
        self.rack.is_reordering_high()
    }

    /// Reordering seen, segments (Linux `reordering`): without SACK as many duplicates call a hole
    /// lost.
    #[inline]
    pub(super) fn reordering(&self) -> u64 {
        match self.cfg.detector {
            Detector::NewReno => self.newreno.threshold(),
            Detector::Rack | Detector::Sack => self.rack.distance(),
        }
    }

    /// The answer to an ACK is over. Outside of a recovery what was resent is forgotten when it has
    /// arrived (`tcp_try_to_open`).
    #[inline]
    pub(super) fn on_answered(&mut self, board: &Scoreboard) {
        if !matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.forget_old_retransmissions(board);
        }
    }

    /// Scoreboard of an ACK that advances, without SACK (RFC 6582).
    pub(super) fn advance_without_sack(
        &mut self,
        cum: u64,
        board: &mut Scoreboard,
        d: &mut Delivered,
    ) {
        let recovering = self.phase == Phase::Recovery;
        self.newreno.on_advance(cum, recovering, board, d);
    }

    /// The same of one that does not.
    pub(super) fn count_without_sack(
        &mut self,
        cum: u64,
        board: &mut Scoreboard,
        d: &mut Delivered,
    ) {
        if !self.is_held_blind() || (board.una() < self.point && self.has_new_data(board)) {
            self.newreno.on_duplicate(cum, board, d);
        }
    }

    /// The first ACK after the answer to the SYN counts as a window update in any case.
    #[inline]
    pub(super) fn sees_every_first_window(&self) -> bool {
        self.cfg.reordering_by == SpuriousRule::Linux
    }

    /// After a timeout duplicates count once new data has left (`tcp_process_loss`): all else is
    /// lost, and duplicates of that would look like reordering.
    fn has_new_data(&self, board: &Scoreboard) -> bool {
        self.phase != Phase::Loss || board.nxt() > self.point
    }

    /// SACKed segments in an open window begin disorder.
    pub(super) fn enter_disorder(&mut self, board: &Scoreboard) {
        if self.phase == Phase::Open && board.sacked_out() > 0 {
            self.phase = Phase::Disorder;
            self.limited_sent = 0;
        }
    }

    /// Ends disorder that healed, and a reduction whose data is acknowledged; true for the latter.
    #[inline]
    pub(super) fn leave_if_done(&mut self, board: &mut Scoreboard) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Disorder => {
                if board.sacked_out() == 0 {
                    self.phase = Phase::Open;
                    self.limited_sent = 0;
                }
                false
            }
            Phase::Cwr | Phase::Recovery | Phase::Loss => {
                // CWR is held until something above is acknowledged (Linux
                // `tcp_fastretrans_alert`).
                let held = self.phase == Phase::Cwr && self.cfg.reduction == Reduction::PrrWindow;
                let blind = self.is_held_blind();
                let done = match held || blind {
                    true => self.is_behind(board.una()),
                    false => board.una() >= self.point,
                };
                if done {
                    self.leave(board);
                } else if blind && board.una() == self.point {
                    self.newreno.forget(board);
                }
                done
            }
        }
    }

    /// Without SACK nothing tells a duplicate of a new loss from one of what was resent for
    /// nothing: Linux holds the recovery until something above its point is acknowledged, and the
    /// duplicates that come meanwhile say nothing (`tcp_is_non_sack_preventing_reopen`).
    fn is_held_blind(&self) -> bool {
        self.cfg.detector == Detector::NewReno
            && self.cfg.reduction == Reduction::PrrWindow
            && matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    fn leave(&mut self, board: &mut Scoreboard) {
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.rack.on_recovery_exit();
        }
        if self.cfg.detector == Detector::NewReno {
            self.newreno.forget(board);
        }
        self.limited_sent = 0;
        self.fast_retransmit = false;
        self.rest(board);
        self.prr = None;
        self.frto = Frto::Off;
    }

    /// Open, or disorder where something is SACKed.
    fn rest(&mut self, board: &Scoreboard) {
        if board.sacked_out() == 0 {
            self.limited_sent = 0;
        }
        self.phase = match board.sacked_out() {
            0 => Phase::Open,
            _ => Phase::Disorder,
        };
    }

    /// PRR's quota after an ACK.
    #[inline]
    pub(super) fn allow(&mut self, ack: PrrAck) {
        if let Some(prr) = &mut self.prr {
            prr.on_ack(ack);
        }
    }

    /// RFC 6582 section 4, "Impatient": of the partial ACKs only the first restarts the
    /// retransmission timer. To be asked once per ACK that advanced.
    pub(super) fn keeps_rto(&mut self) -> bool {
        self.cfg.detector == Detector::NewReno
            && !self.cfg.steady_newreno
            && self.phase == Phase::Recovery
            && self.newreno.has_seen_partial_ack()
    }

    /// For the same reason the retransmissions that later partial ACKs ask for do not.
    pub(super) fn may_restart_rto(&self) -> bool {
        self.phase != Phase::Recovery || self.cfg.steady_newreno || !self.newreno.partial_ack_seen()
    }
}
