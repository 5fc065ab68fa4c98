//! Loss detection and the recovery phases: RACK (RFC 8985), RFC 6675, NewReno (RFC 6582), PRR (RFC 9937), F-RTO (RFC 5682),
//! Eifel and DSACK undo (RFC 3522, RFC 3708, RFC 4015), tail loss probes.

use fullpipe_cc::{AckEvent, CongestionEvent, CongestionKind, Controller, Phase, RtoEvent, Stamps};
use fullpipe_units::{Span, Time};

use super::scoreboard::Delivered;
use super::{Probe, Prr, Sender};
use crate::config::{Detector, LossWindow, Reduction};
use crate::episode::EpisodeKind;
use crate::segment::{Ack, Segment};

/// Forward RTO recovery, SACK version in Linux' form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frto {
    Off,
    /// The timed-out segment was resent; the next ACK decides what to send.
    AwaitFirst,
    /// Two new segments were sent instead of retransmissions; the next ACK is the verdict.
    AwaitSecond,
}

impl Frto {
    pub(super) fn holds_retransmissions(self) -> bool {
        self == Frto::AwaitSecond
    }
}

/// What is needed to recognise a reduction as spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndoMark {
    /// First unacknowledged segment when it began.
    una: u64,
    /// Time of the first retransmission, for Eifel.
    first_retransmission: Option<Time>,
    /// Retransmissions not yet reported as duplicates.
    unexplained: i64,
    retransmissions: u64,
    by_timeout: bool,
    /// The first ACK that advanced has been examined.
    examined: bool,
}

impl UndoMark {
    fn new(una: u64, by_timeout: bool) -> Self {
        Self {
            una,
            first_retransmission: None,
            unexplained: 0,
            retransmissions: 0,
            by_timeout,
            examined: false,
        }
    }

    /// The last retransmission never left the host.
    pub(super) fn on_unsent(&mut self) {
        self.unexplained -= 1;
        self.retransmissions = self.retransmissions.saturating_sub(1);
    }

    pub(super) fn on_retransmit(&mut self, now: Time) {
        self.first_retransmission.get_or_insert(now);
        self.unexplained += 1;
        self.retransmissions += 1;
    }
}

impl<C: Controller> Sender<C> {
    /// Everything but a plain cumulative ACK in an open, clean window.
    #[cold]
    pub(super) fn irregular_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        advanced: bool,
        dsack: Option<u64>,
        d: &Delivered,
        event: &mut AckEvent,
    ) {
        if self.cfg.detector == Detector::Rack {
            if let Some((seq, newest)) = d.newest {
                let echo = advanced.then_some(ack.echo);
                self.rack.advance(now, seq, &newest, echo, self.rtt.min());
            }
            if d.reordered {
                self.rack.saw_reordering();
            }
            if dsack.is_some() {
                self.rack.on_dsack(self.board.una(), self.board.nxt());
            }
        }
        if advanced {
            self.expiries = 0;
        }
        self.check_undo(now, ack, advanced, dsack);
        self.check_probe(now, advanced, dsack, event);
        self.check_frto(now, ack, advanced, d);
        let ended = self.leave_phase_if_done(now);

        if self.phase == Phase::Open && self.board.sacked_out() > 0 {
            self.phase = Phase::Disorder;
            self.limited_sent = 0;
        }
        let (lost, again) = self.detect(now, advanced);
        event.lost = lost + again;
        // What is missing of the data sent since the last reduction is the next window's loss.
        let lost = if ended { self.board.lost_out() } else { lost };
        if lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr) {
            self.reduce(now, CongestionKind::Loss, lost, event);
        } else if again > 0 && self.phase == Phase::Recovery {
            self.reduce_again(now, lost + again);
        } else if again > 0 && self.phase == Phase::Loss && self.cfg.recover_from_loss {
            self.reduce(now, CongestionKind::Loss, again, event);
        }
    }

    /// Judges what is lost; returns segments newly lost and retransmissions lost again after the reduction began.
    fn detect(&mut self, now: Time, advanced: bool) -> (u64, u64) {
        match self.cfg.detector {
            Detector::Rack => self.detect_by_time(now),
            Detector::Sack => (self.detect_by_sack(), 0),
            Detector::NewReno => (self.detect_by_duplicates(advanced), 0),
        }
    }

    fn detect_by_time(&mut self, now: Time) -> (u64, u64) {
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let window = self.rack.window(
            self.rtt.min(),
            self.rtt.srtt(),
            recovering,
            self.board.sacked_out(),
        );
        let rack = &self.rack;
        let (mut lost, mut again) = (0, 0);
        let limit = self.board.nxt();
        let reduced_at = self.reduced_at;
        let pending = self.board.judge_originals(limit, &mut lost, |seq, s| {
            rack.is_before(seq, s) && rack.verdict_at(s.xmit, window) <= now
        });
        let mut counted = 0;
        let pending_again = self.board.judge_retransmissions(&mut again, |seq, s| {
            let dead = rack.is_before(seq, s) && rack.verdict_at(s.xmit, window) <= now;
            counted += u64::from(dead && s.xmit >= reduced_at);
            dead
        });
        // Only segments sent before the newest delivery are suspects that wait for the timer.
        let newest = rack.xmit();
        let due = [pending, pending_again]
            .into_iter()
            .flatten()
            .filter(|xmit| *xmit <= newest)
            .map(|xmit| rack.verdict_at(xmit, window))
            .filter(|at| *at > now)
            .min();
        self.reorder_at = due.map_or(Time::MAX, |at| self.reordering_timer(now, at));
        (lost, counted)
    }

    fn detect_by_sack(&mut self) -> u64 {
        let limit = self.board.sacked_threshold(DUP_THRESH);
        let mut lost = 0;
        if limit > 0 {
            self.board.judge_originals(limit, &mut lost, |_, _| true);
        }
        lost
    }

    fn detect_by_duplicates(&mut self, advanced: bool) -> u64 {
        let una = self.board.una();
        let head = self.board.flight() > 0
            && match self.phase {
                // A partial ACK names the next hole.
                Phase::Recovery => advanced && una < self.recovery_point,
                // The cumulative number must be beyond the last recovery (RFC 6582 section 3.2 step 1).
                Phase::Open | Phase::Disorder => {
                    self.duplicates >= DUP_THRESH && una >= self.recovery_point
                }
                Phase::Cwr => self.duplicates >= DUP_THRESH,
                Phase::Loss => false,
            };
        let news = head && self.board.mark_lost(una);
        self.duplicates = self.board.bound_duplicates();
        u64::from(news)
    }

    /// One reduction per window of data: on loss into recovery, on a mark, a local drop or an artificial loss into CWR.
    pub(super) fn reduce(
        &mut self,
        now: Time,
        kind: CongestionKind,
        lost: u64,
        event: &mut AckEvent,
    ) {
        let real_loss = lost > 0;
        let reducing = matches!(self.phase, Phase::Cwr | Phase::Recovery | Phase::Loss);
        if reducing && !real_loss {
            return;
        }
        if self.phase == Phase::Cwr {
            // Already answered in this window: only the repair is new.
            self.phase = Phase::Recovery;
            self.recovery_point = self.board.nxt();
            return;
        }
        let before = self.cc.window();
        let delivered = (event.acked, event.sacked);
        self.cc
            .on_congestion(&self.congestion(now, kind, true, lost, delivered));
        self.note(now, EpisodeKind::Congestion(kind), before);
        self.counts.loss_events += 1;
        self.pacer.end_spreading();
        self.phase = if real_loss {
            Phase::Recovery
        } else {
            Phase::Cwr
        };
        self.recovery_point = self.board.nxt();
        self.reduced_at = now;
        self.rescue_after = self.board.una() + 1;
        self.probe_at = Time::MAX;
        self.probe = None;
        self.partial_ack_seen = false;
        self.cwr_pending = self.cfg.ecn;
        self.undo = (real_loss && self.cfg.undo).then(|| UndoMark::new(self.board.una(), false));
        let scale = match self.cfg.reduction {
            Reduction::Immediate => return,
            Reduction::Prr => {
                let flight = self.board.flight();
                flight - self.board.sacked_out().min(flight) + event.acked + event.sacked
            }
            Reduction::PrrWindow => before as u64,
        };
        let ssthresh = self.cc.ssthresh() as u64;
        self.prr = Some(Prr::new(ssthresh, scale, before as u64));
    }

    /// A retransmission was lost: a second sign of congestion (RFC 5681 section 4.3).
    fn reduce_again(&mut self, now: Time, lost: u64) {
        if !self.cfg.reduce_on_lost_retransmission {
            return;
        }
        let before = self.cc.window();
        self.cc
            .on_congestion(&self.congestion(now, CongestionKind::Loss, false, lost, (0, 0)));
        self.note(now, EpisodeKind::Again, before);
        self.reduced_at = now;
        if let Some(prr) = &mut self.prr {
            prr.lower(self.cc.ssthresh() as u64);
        }
    }

    pub(super) fn reduce_for_local_drop(&mut self, now: Time) {
        if matches!(self.phase, Phase::Open | Phase::Disorder) {
            let none = Delivered::default();
            let mut event = self.event_for(now, &none);
            self.reduce(now, CongestionKind::LocalDrop, 0, &mut event);
            if let Some(prr) = &mut self.prr {
                let pipe = self.board.pipe();
                *prr = Prr::new(self.cc.ssthresh() as u64, pipe, pipe.max(1));
            }
            // With nothing outstanding no ACK will come to end the reduction.
            self.leave_phase_if_done(now);
        } else {
            self.undo = None;
        }
    }

    /// RFC 3168 section 6.1.2: one answer per window of data. Until the segment with CWR can have arrived, the echo is still
    /// that of the last mark.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, now: Time, event: &mut AckEvent) {
        if !matches!(self.phase, Phase::Open | Phase::Disorder) {
            // The reduction under way is justified by the mark as well: it must not be undone.
            self.undo = None;
        } else if self.board.una() > self.recovery_point {
            self.reduce(now, CongestionKind::Ecn, 0, event);
        }
    }

    /// RFC 6582 section 4, "Impatient": of the partial ACKs only the first restarts the retransmission timer.
    pub(super) fn keeps_timer(&mut self) -> bool {
        self.cfg.detector == Detector::NewReno
            && self.phase == Phase::Recovery
            && std::mem::replace(&mut self.partial_ack_seen, true)
    }

    fn event_for(&self, now: Time, d: &Delivered) -> AckEvent {
        self.event(now, d, false, self.board.pipe(), Stamps::default())
    }

    fn congestion(
        &self,
        now: Time,
        kind: CongestionKind,
        first_in_window: bool,
        lost: u64,
        (acked, sacked): (u64, u64),
    ) -> CongestionEvent {
        // As it was when the ACK came. Each segment of Limited Transmit answers one that was SACKed before.
        let before = self.board.sacked_out().saturating_sub(sacked);
        let limited = self.limited_sent.min(before);
        let flight = (self.board.flight() + acked).saturating_sub(limited);
        // RFC 7661 section 4.3: a window that was not used is judged by what was.
        let flight = self
            .validation
            .pipe_ack()
            .map_or(flight, |used| flight.max(used));
        CongestionEvent {
            now,
            kind,
            first_in_window,
            lost,
            flight,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
        }
    }

    /// Ends disorder that healed, and a reduction whose data is acknowledged; true for the latter.
    fn leave_phase_if_done(&mut self, now: Time) -> bool {
        let una = self.board.una();
        match self.phase {
            Phase::Open => {}
            Phase::Disorder => {
                if self.board.sacked_out() == 0 {
                    self.phase = Phase::Open;
                    self.limited_sent = 0;
                }
            }
            Phase::Cwr | Phase::Recovery | Phase::Loss => {
                if una >= self.recovery_point {
                    if self.phase == Phase::Recovery {
                        self.rack.on_recovery_exit();
                    }
                    self.board_healed();
                    self.prr = None;
                    self.frto = Frto::Off;
                    self.cc.on_recovery_exit(now);
                    return true;
                }
            }
        }
        false
    }

    fn board_healed(&mut self) {
        if self.cfg.detector == Detector::NewReno {
            self.board.remove_duplicates(u64::MAX);
            self.duplicates = 0;
        }
        self.limited_sent = 0;
        self.phase = if self.board.sacked_out() > 0 {
            Phase::Disorder
        } else {
            Phase::Open
        };
    }

    /// Eifel and DSACK (sections 4.7 of the algorithm reference; RFC 4015 for the answer).
    fn check_undo(&mut self, now: Time, ack: &Ack, advanced: bool, dsack: Option<u64>) {
        let Some(mark) = &mut self.undo else { return };
        let mut spurious = false;
        if advanced && !mark.examined && ack.cum > mark.una {
            mark.examined = true;
            spurious = mark.first_retransmission.is_some_and(|t| ack.echo < t)
                && matches!(self.phase, Phase::Recovery | Phase::Loss);
        }
        if let Some(seq) = dsack
            && seq >= mark.una
            && seq < self.recovery_point
        {
            mark.unexplained -= 1;
            spurious |= mark.unexplained == 0 && mark.retransmissions > 0;
        }
        if spurious {
            self.undo_reduction(now, advanced.then_some(ack.echo));
        }
    }

    fn undo_reduction(&mut self, now: Time, echo: Option<Time>) {
        let Some(mark) = self.undo.take() else { return };
        let before = self.cc.window();
        self.cc.on_undo(now);
        self.note(now, EpisodeKind::Undo, before);
        self.counts.undone += 1;
        self.board.forget_losses();
        self.rack.saw_reordering();
        self.prr = None;
        self.frto = Frto::Off;
        if mark.by_timeout {
            // RFC 4015 section 3.2: the delay that fooled the timer counts.
            let delay = echo.map_or(self.rtt.latest(), |sent| now.saturating_since(sent));
            self.rtt.widen(delay, delay / 2);
        }
        if matches!(self.phase, Phase::Recovery | Phase::Loss) {
            self.phase = if self.board.sacked_out() > 0 {
                Phase::Disorder
            } else {
                Phase::Open
            };
        }
    }

    /// RFC 8985 section 7.4.2: did the probe repair a loss?
    fn check_probe(&mut self, now: Time, advanced: bool, dsack: Option<u64>, event: &mut AckEvent) {
        let Some(probe) = self.probe else { return };
        let una = self.board.una();
        if dsack.is_some_and(|s| s + 1 == probe.end) {
            self.probe = None;
        } else if una >= probe.end {
            if !probe.retransmission {
                self.probe = None;
            } else if una > probe.end {
                self.probe = None;
                self.reduce(now, CongestionKind::Loss, 0, event);
            } else if !advanced && self.board.sacked_out() == 0 {
                self.probe = None;
            }
        }
    }

    /// RFC 5682 section 3.1 (SACK version).
    fn check_frto(&mut self, now: Time, ack: &Ack, advanced: bool, d: &Delivered) {
        if self.frto == Frto::Off || self.phase != Phase::Loss {
            return;
        }
        // Without SACK an ACK that covers a retransmission says nothing about the originals behind it.
        let ambiguous = self.cfg.detector == Detector::NewReno
            && d.newest.is_some_and(|(_, sent)| sent.retransmitted());
        let original = !ambiguous && d.original.is_some_and(|seq| seq < self.recovery_point);
        if original {
            // Data sent before the timeout arrived without being resent: the timeout was spurious.
            self.frto = Frto::Off;
            if self.undo.as_ref().is_some_and(|m| m.by_timeout) {
                self.undo_reduction(now, advanced.then_some(ack.echo));
            }
            return;
        }
        let undecided = advanced && self.board.una() < self.recovery_point;
        let new_data = self.board.nxt() < self.send_limit;
        self.frto = match self.frto {
            Frto::AwaitFirst if undecided && new_data => Frto::AwaitSecond,
            _ => Frto::Off,
        };
    }

    /// RACK's reordering timer: some suspects have waited long enough.
    pub(super) fn on_reordering_timer(&mut self, now: Time) {
        let (lost, again) = self.detect_by_time(now);
        let none = Delivered::default();
        let mut event = self.event_for(now, &none);
        event.lost = lost + again;
        if lost > 0 && matches!(self.phase, Phase::Open | Phase::Disorder | Phase::Cwr) {
            self.reduce(now, CongestionKind::Loss, lost, &mut event);
            if let Some(prr) = &mut self.prr {
                // No ACK brings a quota: the fast retransmit leaves all the same.
                *prr = Prr::new(
                    self.cc.ssthresh() as u64,
                    self.board.pipe() + lost,
                    self.board.pipe() + 1,
                );
            }
        } else if again > 0 && self.phase == Phase::Recovery {
            self.reduce_again(now, lost + again);
        }
    }

    /// The retransmission timer (RFC 6298 section 5).
    pub(super) fn on_rto(&mut self, now: Time) {
        self.rto_at = Time::MAX;
        self.probe_at = Time::MAX;
        self.reorder_at = Time::MAX;
        if self.board.flight() == 0 {
            return;
        }
        let first = self.timeout_reduces();
        self.expiries += 1;
        let was_loss = self.phase == Phase::Loss;
        let before = self.cc.window();
        let event = self.congestion(now, CongestionKind::Loss, first, 0, (0, 0));
        if self.cfg.detector == Detector::NewReno {
            self.board.remove_duplicates(u64::MAX);
            self.duplicates = 0;
        }
        let rack = &self.rack;
        let keeps_recent = self.cfg.loss_window == LossWindow::FlightPlusOne
            && self.cfg.detector == Detector::Rack;
        self.board
            .lose_all(|sent| keeps_recent && rack.verdict_at(sent.xmit, Span::ZERO) > now);
        self.cc.on_rto(&RtoEvent {
            now,
            first,
            flight: event.flight,
            pipe: self.board.pipe(),
            srtt: event.srtt,
            min_rtt: event.min_rtt,
        });
        self.note(now, EpisodeKind::Timeout, before);
        self.counts.timeouts += 1;
        if first && !was_loss {
            self.undo = self.cfg.undo.then(|| UndoMark::new(self.board.una(), true));
        }
        self.frto = if self.cfg.frto && first && !was_loss {
            Frto::AwaitFirst
        } else {
            Frto::Off
        };
        self.phase = Phase::Loss;
        self.recovery_point = self.board.nxt();
        self.reduced_at = now;
        self.limited_sent = 0;
        self.prr = None;
        self.probe = None;
        self.probe_due = false;
        self.cwr_pending = self.cfg.ecn;
        self.pacer.end_spreading();
        self.rtt.back_off();
        // Armed here, not by the retransmission: the pacer or the local queue may hold that back.
        self.rto_at = self.timer(now, self.rtt.rto());
    }

    /// Does this expiry lower `ssthresh`? Not twice for the same data.
    fn timeout_reduces(&self) -> bool {
        let answered = self.board.una() >= self.recovery_point;
        match self.phase {
            Phase::Open | Phase::Disorder => true,
            Phase::Cwr | Phase::Recovery => answered || self.cfg.timeout_reduces_in_recovery,
            Phase::Loss if self.cfg.timeout_reduces_in_recovery => answered,
            Phase::Loss => answered || self.expiries == 0,
        }
    }

    /// RFC 8985 section 7.3: the probe's timer is due; true if a probe is to be sent. The RTO then starts anew.
    pub(super) fn on_probe_timer(&mut self, now: Time) -> bool {
        self.probe_at = Time::MAX;
        let idle = self.probe.is_none() && self.probe_allowed;
        let due = idle && self.phase == Phase::Open && self.board.flight() > 0;
        if due {
            self.probe_due = true;
            self.probe_allowed = false;
            self.rto_at = self.timer(now, self.rtt.rto());
        }
        due
    }

    /// One segment beyond the window: new data if there is some, the newest sent otherwise.
    pub(super) fn send_probe(&mut self, now: Time) -> Option<Segment> {
        if self.board.flight() == 0 || self.phase != Phase::Open {
            return None;
        }
        self.counts.probes += 1;
        let nxt = self.board.nxt();
        let pipe = self.board.pipe();
        let segment = if nxt < self.send_limit {
            self.probe = Some(Probe {
                end: nxt + 1,
                retransmission: false,
            });
            self.send_new(now, pipe)
        } else {
            self.probe = Some(Probe {
                end: nxt,
                retransmission: true,
            });
            self.retransmit(now, nxt - 1)
        };
        self.probe_at = Time::MAX;
        Some(segment)
    }
}

/// RFC 6675, RFC 5681: duplicates that call a hole lost.
const DUP_THRESH: u64 = 3;
