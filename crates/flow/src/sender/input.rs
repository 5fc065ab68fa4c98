//! What an ACK means: scoreboard, RTT and rate, undo, loss detection, one congestion event at most, then the window law.

use fullpipe_cc::{AckEvent, CongestionKind, Controller, IdleEvent, Phase, Stamps};
use fullpipe_units::{Span, Time};

use super::scoreboard::{Delivered, Sent};
use super::{PrrAck, Sender};
use crate::config::{Detector, RttSample};
use crate::episode::EpisodeKind;
use crate::segment::Ack;

impl<C: Controller> Sender<C> {
    /// An ACK arrived. Poll for segments afterwards.
    #[inline]
    pub fn handle_ack(&mut self, now: Time, ack: &Ack) {
        if ack.syn {
            return self.established(now, ack.window_end);
        }
        let una = self.board.una();
        // An ACK for data never sent, or one overtaken by a later ACK that says nothing new.
        if ack.cum > self.board.nxt() || (ack.cum < una && ack.sacks.is_empty()) {
            return;
        }
        // Of two ACKs for the same number the one with the smaller window is the older (RFC 9293 compares its sequence numbers).
        let newer =
            ack.cum > una || ack.window_end > self.peer_limit || self.peer_limit == u64::MAX;
        if ack.window_end != self.peer_limit && ack.cum >= una && newer {
            self.peer_limit = ack.window_end;
            self.send_limit = self.app_limit.min(ack.window_end);
            self.persist.note_update();
        }

        let prior_pipe = self.board.pipe();
        let advanced = ack.cum > una;
        let mut d = Delivered::default();
        let lost = if advanced && self.is_regular(ack) {
            self.board.ack_to(ack.cum, &mut d);
            None
        } else {
            Some(self.update_scoreboard(ack, advanced, &mut d))
        };

        let delivered_now = d.acked + d.sacked;
        let before = self.rate.delivered();
        let stamps = Stamps {
            value_ms: ack.stamp_ms,
            echo: ack.echo,
        };
        let mut event = self.event(now, &d, advanced, prior_pipe, stamps);
        if let Some((_, newest)) = d.newest {
            event.rtt = match self.cfg.rto.sample {
                RttSample::Newest => self.sample_newest(now, ack, advanced, &newest),
                RttSample::Oldest => self.sample_oldest(now, ack, (advanced, una), &d),
            };
            if event.rtt.is_some() {
                self.probe_allowed = true;
                event.srtt = self.rtt.srtt();
                event.min_rtt = self.rtt.min();
            }
            event.rate = self
                .rate
                .on_delivered(now, delivered_now, &newest, self.rtt.min());
            event.app_limited = newest.app_limited();
            event.delivered = self.rate.delivered();
            let prior = event.delivered
                - u64::from((event.delivered as u32).wrapping_sub(newest.delivered));
            if prior >= self.round_ends {
                self.new_round(now, &mut event);
            }
        }

        event.ece = ack.ece && self.cfg.ecn;
        self.cc.on_delivery(&event);
        if let Some(dsack) = lost {
            self.irregular_ack(now, ack, advanced, dsack, &d, &mut event);
        } else if advanced
            && self.cfg.recovery.detector == Detector::Rack
            && let Some((seq, newest)) = d.newest
        {
            self.rack.advance(now, seq, &newest, None, self.rtt.min());
        }
        if let Some(artificial) = &mut self.artificial
            && artificial.strikes(now, before, delivered_now, self.cc.window())
        {
            self.reduce(now, CongestionKind::Loss, 0, &mut event);
        }
        if event.ece {
            self.on_ecn_echo(now, &mut event);
        }

        event.phase = self.phase;
        event.flight = self.board.pipe();
        event.cwnd_limited = self.cwnd_limited();
        let starting = self.cc.in_start_up();
        self.cc.on_ack(&event);
        if starting && !self.cc.in_start_up() {
            let w = self.cc.window();
            self.note(now, EpisodeKind::StartUpExit, w);
        }
        if let Some(prr) = &mut self.prr {
            let good = advanced && event.lost == 0;
            prr.on_ack(PrrAck {
                delivered: delivered_now,
                inflight: event.flight,
                good,
            });
        }
        self.refresh_budget();
        let kept = lost.is_some() && advanced && self.keeps_timer();
        self.rearm(now, advanced && !kept);
    }

    /// Karn: a retransmission counts only if its echo proves that it was the one acknowledged.
    #[inline]
    fn sample_newest(
        &mut self,
        now: Time,
        ack: &Ack,
        advanced: bool,
        newest: &Sent,
    ) -> Option<Span> {
        let echo = advanced.then_some(ack.echo);
        if newest.retransmitted() && echo.is_none_or(|e| e < newest.xmit) {
            return None;
        }
        let rtt = now.saturating_since(newest.xmit);
        self.rtt.take(rtt, rtt, self.board.una(), self.board.nxt());
        Some(rtt)
    }

    /// Linux: cumulative samples unless a retransmission is covered, SACKed ones for the controller where there are some, the
    /// time stamp where there is nothing else.
    #[inline]
    fn sample_oldest(
        &mut self,
        now: Time,
        ack: &Ack,
        (advanced, prior_una): (bool, u64),
        d: &Delivered,
    ) -> Option<Span> {
        let acked = match (d.acked_sent, d.newest) {
            (None, Some((_, newest))) if d.clean => {
                Some((self.board.get(prior_una).xmit, newest.xmit))
            }
            (sent, _) => sent.filter(|_| !d.covers_retransmission),
        };
        let ms = |t: Time| t.as_nanos() / 1_000_000;
        let stamp = || {
            let span = Span::from_millis(ms(now).saturating_sub(ms(ack.echo)).max(1));
            advanced.then_some((span, span))
        };
        let since =
            |(first, last): (Time, Time)| (now.saturating_since(first), now.saturating_since(last));
        let (oldest, newest) = match (acked.map(since), d.sacked_sent.map(since)) {
            (Some((oldest, _)), Some((_, newest))) => (oldest, newest),
            (Some(both), None) | (None, Some(both)) => both,
            (None, None) => stamp()?,
        };
        self.rtt
            .take(oldest, newest, self.board.una(), self.board.nxt());
        Some(newest)
    }

    /// Nothing to look at but the cumulative number.
    #[inline]
    fn is_regular(&self, ack: &Ack) -> bool {
        self.phase == Phase::Open
            && self.board.is_clean()
            && self.board.sacked_out() == 0
            && ack.sacks.is_empty()
            && self.probe.is_none()
    }

    /// Applies the ACK; returns the duplicate it reports, if any.
    #[cold]
    fn update_scoreboard(&mut self, ack: &Ack, advanced: bool, d: &mut Delivered) -> Option<u64> {
        if self.cfg.recovery.detector == Detector::NewReno {
            self.update_without_sack(ack, advanced, d);
            return None;
        }
        if advanced {
            self.board.ack_to(ack.cum, d);
        }
        let mut dsack = None;
        for (i, block) in ack.sacks.iter().enumerate() {
            // RFC 2883: below the cumulative number, or inside the next block, the first block is a duplicate.
            let covered = ack
                .sacks
                .iter()
                .nth(1)
                .is_some_and(|b| b.start <= block.start && block.end <= b.end);
            if i == 0 && (block.end <= ack.cum || (ack.dsack && covered)) {
                dsack = Some(block.start).filter(|seq| !self.persist.has_probed(*seq));
            } else {
                self.board.sack(block, d);
            }
        }
        if self.board.front_is_sacked() {
            self.board.forget_sacks();
        }
        dsack
    }

    /// RFC 6582: duplicates stand for deliveries whose numbers are unknown.
    fn update_without_sack(&mut self, ack: &Ack, advanced: bool, d: &mut Delivered) {
        if advanced {
            let known = self.duplicates.min(ack.cum - self.board.una() - 1);
            self.board
                .remove_duplicates(if self.phase == Phase::Recovery {
                    known
                } else {
                    u64::MAX
                });
            self.duplicates = if self.phase == Phase::Recovery {
                self.duplicates - known
            } else {
                0
            };
            self.board.ack_to(ack.cum, d);
            self.duplicates = self.board.bound_duplicates();
            d.acked -= known.min(d.acked);
        } else if self.board.flight() > 0
            && ack.cum == self.board.una()
            && self.board.add_duplicate()
        {
            self.duplicates += 1;
            d.sacked = 1;
        }
    }

    #[inline]
    pub(super) fn event(
        &self,
        now: Time,
        d: &Delivered,
        advanced: bool,
        prior_pipe: u64,
        stamps: Stamps,
    ) -> AckEvent {
        AckEvent {
            now,
            acked: d.acked,
            sacked: d.sacked,
            lost: 0,
            acks: 1,
            advanced,
            rtt: None,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min(),
            owd: None,
            prior_flight: prior_pipe,
            flight: 0,
            stamps,
            delivered: self.rate.delivered(),
            rate: None,
            cwnd_limited: false,
            app_limited: false,
            ece: false,
            ce: 0,
            round: self.round,
            round_start: false,
            phase: self.phase,
            snd_una: self.board.una(),
            snd_nxt: self.board.nxt(),
        }
    }

    fn new_round(&mut self, now: Time, event: &mut AckEvent) {
        self.round += 1;
        event.round = self.round;
        event.round_start = true;
        let volume = event.delivered - self.round_began;
        self.round_began = event.delivered;
        self.round_ends = event.delivered;
        let (w, ssth, iw) = (
            self.cc.window(),
            self.cc.ssthresh(),
            self.cfg.window.initial,
        );
        if let Some(v) = self
            .validation
            .on_round(now, volume, self.rtt.srtt(), w, ssth, iw)
        {
            let idle = now.saturating_since(self.last_sent);
            self.cc.on_idle(&IdleEvent {
                now,
                idle,
                window: v.window,
                ssthresh: v.ssthresh,
            });
        }
    }

    #[inline]
    fn rearm(&mut self, now: Time, advanced: bool) {
        if self.board.flight() == 0 {
            self.rto_at = Time::MAX;
            self.probe_at = Time::MAX;
            self.reorder_at = Time::MAX;
            self.arm_persist(now);
        } else if advanced {
            self.rto_at = self.timer(now, self.rtt.rto());
            self.arm_probe(now);
        } else if self.board.sacked_out() > 0 {
            self.probe_at = Time::MAX;
        }
    }
}
