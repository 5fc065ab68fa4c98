//! An ACK arrives: scoreboard, RTT and rate, undo, loss detection, one congestion event at most,
//! then the window law.

use fullpipe_cc::{AckEvent, CongestionKind, Controller, IdleEvent, Stamps};
use fullpipe_units::{Span, Time};

use super::Sender;
use super::recovery::{Irregular, PrrAck, Verdict};
use super::rtt::RttUpdate;
use super::scoreboard::{Delivered, Sent};
use crate::config::{Detector, RttSample, SpuriousRule};
use crate::episode::{EpisodeKind, Proof};
use crate::segment::Ack;

/// What the start of an ACK's story leaves for its end.
struct Opening {
    una: u64,
    prior_pipe: u64,
    window_update: bool,
    /// The first one after the answer to the SYN, where Linux's rules make it a window update.
    first: bool,
    /// The window is that of the ACK before.
    steady: bool,
    /// Segments delivered before this ACK.
    delivered: u64,
}

impl<C: Controller> Sender<C> {
    /// An ACK arrived. Poll for segments afterwards.
    #[inline(always)]
    pub fn handle_ack(&mut self, now: Time, ack: &Ack) {
        if let Some(opening) = self.accept(now, ack) {
            self.copied_ack(now, *ack, opening);
        }
    }

    /// Takes copies, so that a caller need not have the plain ACK in memory.
    #[cold]
    #[inline(never)]
    fn copied_ack(&mut self, now: Time, ack: Ack, opening: Opening) {
        self.irregular_ack(now, &ack, &opening);
    }

    /// The same for an ACK that is in memory and hardly ever plain.
    #[inline]
    pub fn handle_ack_apart(&mut self, now: Time, ack: &Ack) {
        if let Some(opening) = self.accept(now, ack) {
            self.irregular_ack(now, ack, &opening);
        }
    }

    /// Takes in an ACK up to where it matters what is unusual of it: that is left to
    /// [`Sender::irregular_ack`].
    #[inline(always)]
    fn accept(&mut self, now: Time, ack: &Ack) -> Option<Opening> {
        if ack.syn {
            self.established(now, ack.echo, ack.window_end);
            return None;
        }
        let una = self.board.una();
        // An ACK for data never sent, or one overtaken by a later ACK that says nothing new.
        if ack.cum > self.board.nxt() || (ack.cum < una && ack.sacks.is_empty()) {
            return None;
        }
        if self.writes.is_due(una, self.budget.window()) {
            // Since the ACK before: what that let out left first (`tcp_data_snd_check`).
            self.write();
        }
        self.timers.release_probe();
        let first = self.limits.take_opened() && self.recovery.sees_every_first_window();
        let opening = Opening {
            una,
            prior_pipe: self.board.pipe(),
            window_update: self.limits.update(una, ack.cum, ack.window_end) || first,
            first,
            steady: self.limits.is_steady(ack.cum, ack.window_end),
            delivered: self.delivery.delivered(),
        };
        if ack.cum > una && self.is_plain(ack) {
            self.plain_ack(now, ack, &opening);
            return None;
        }
        Some(opening)
    }

    /// Nothing to look at but the cumulative number.
    #[inline]
    fn is_plain(&self, ack: &Ack) -> bool {
        self.recovery.is_open()
            && self.board.is_untouched()
            && ack.sacks.is_empty()
            && !self.timers.reorder_is_on()
    }

    /// A cumulative ACK in an open, clean window.
    #[inline(always)]
    fn plain_ack(&mut self, now: Time, ack: &Ack, opening: &Opening) {
        let d = self.board.ack_clean(ack.cum);
        let mut event = self.digest(now, ack, opening, &d);
        let starting = self.cc.in_start_up();
        self.cc.on_delivery(&event);
        // Copies, here too.
        if let Some((seq, newest)) = d.newest {
            self.recovery.on_plain_ack(now, seq, newest.xmit);
            if self.recovery.awaits_delivery() {
                let deliveries = self.delivery.delivered();
                self.recovery.note_delivery(newest.delivered, deliveries);
            }
        }
        self.conclude(opening, &mut event, starting);
        self.rearm(now, true);
    }

    /// Any other ACK: duplicates, SACK blocks, ACKs during a recovery.
    #[inline(always)]
    fn irregular_ack(&mut self, now: Time, ack: &Ack, opening: &Opening) {
        let advanced = ack.cum > opening.una;
        if self.writes.is_on() {
            // What the SACKs of the ACK before made room for.
            self.write();
        }
        self.timers.begin_ack();
        let prior_fack = self.board.fack();
        let scoreboard = self.board.sacked_out() > 0;
        let echo = self.echo(ack, advanced);
        let trust = self.recovery.trust(now, echo, self.rtt.min(), opening.una);
        let mut d = Delivered::trusting(trust.acked, trust.sacked);
        let dsack = self.update_scoreboard(ack, advanced, opening.first, &mut d);
        let mut event = self.digest(now, ack, opening, &d);
        let starting = self.cc.in_start_up();
        self.cc.on_delivery(&event);
        self.note_exit(now, starting);
        let ir = Irregular {
            now,
            ack,
            advanced,
            window_update: opening.window_update,
            dsack,
            echo,
            una: opening.una,
            scoreboard,
            delivered: &d,
            deliveries: self.delivery.delivered(),
            prior_fack,
        };
        event.duplicates = u64::from(dsack.is_some() && self.recovery.counts_duplicates());
        event.grows_out_of_order = self.recovery.is_reordering_high();
        self.repair(&ir, &mut event);
        let starting = self.cc.in_start_up();
        self.conclude(opening, &mut event, starting);
        let restarts = match advanced {
            true => !self.recovery.keeps_rto(),
            false => self.shows_life(&d),
        };
        self.rearm(now, restarts);
    }

    /// Newly SACKed data left before the first outstanding segment was sent last: nothing says yet
    /// that this transmission is late (Linux `tcp_clean_rtx_queue`).
    fn shows_life(&self, d: &Delivered) -> bool {
        self.timers.is_exclusive()
            && self.board.flight() > 0
            && d.sacked_sent
                .is_some_and(|(first, _)| first < self.board.get(self.board.una()).xmit)
    }

    /// Applies the ACK; returns the duplicate it reports, if any.
    fn update_scoreboard(
        &mut self,
        ack: &Ack,
        advanced: bool,
        first: bool,
        d: &mut Delivered,
    ) -> Option<u64> {
        if self.cfg.recovery.detector == Detector::NewReno {
            if advanced {
                self.recovery
                    .advance_without_sack(ack.cum, &mut self.board, d);
            } else if !first {
                self.recovery
                    .count_without_sack(ack.cum, &mut self.board, d);
            }
            return None;
        }
        if advanced {
            self.board.ack_to(ack.cum, d);
        }
        let mut dsack = None;
        for (i, block) in ack.sacks.iter().enumerate() {
            // RFC 2883: below the cumulative number, or inside the next block, the first block is a
            // duplicate.
            let covered = || {
                let second = ack.sacks.iter().nth(1);
                second.is_some_and(|b| b.start <= block.start && block.end <= b.end)
            };
            if i == 0 && (block.end <= ack.cum || (ack.dsack && covered())) {
                dsack = Some(block.start).filter(|seq| !self.persist.has_probed(*seq));
                if self.cfg.recovery.reordering_by == SpuriousRule::Linux {
                    self.board.note_duplicate(block.start, d);
                }
            } else {
                self.board.sack(block, d);
            }
        }
        self.board.end_sacks();
        if self.board.front_is_sacked() {
            self.board.forget_sacks();
        }
        dsack
    }

    /// Samples RTT and rate and counts rounds: the event before loss detection.
    #[inline(always)]
    fn digest(&mut self, now: Time, ack: &Ack, opening: &Opening, d: &Delivered) -> AckEvent {
        let advanced = ack.cum > opening.una;
        let stamps = match self.cfg.timestamps {
            true => Stamps {
                value_ms: ack.stamp_ms,
                echo: ack.echo,
            },
            false => Stamps::default(),
        };
        // Copies: a reference would keep all of `d` in memory.
        // A duplicate without SACK blocks, too: `tcp_in_ack_event` asks for the slow path alone.
        let predicted = opening.steady && ack.sacks.is_empty() && !ack.ece;
        let Some((seq, sent)) = d.newest else {
            self.delivery.on_unknown_delivered(now, d.acked + d.sacked);
            let mut event = self.event(now, d, advanced, opening.prior_pipe, stamps);
            event.predicted = predicted;
            event.ece = ack.ece && self.ecn.is_on();
            return event;
        };
        let sample = match self.cfg.rto.sample {
            RttSample::Newest => sample_newest(now, sent, || self.echo(ack, advanced)),
            RttSample::Oldest => self.sample_oldest(now, ack, opening.una, d),
        };
        if let Some((oldest, newest)) = sample {
            self.rtt.update(RttUpdate {
                seq,
                oldest,
                newest,
                una: self.board.una(),
                nxt: self.board.nxt(),
            });
            self.recovery.on_rtt_sample();
        }
        let since = self.delivery.on_delivered(d.acked + d.sacked, &sent);
        let mut event = self.event(now, d, advanced, opening.prior_pipe, stamps);
        event.predicted = predicted;
        event.ece = ack.ece && self.ecn.is_on();
        event.rtt = sample.map(|(_, newest)| newest);
        event.app_limited = sent.app_limited();
        if let Some(one_way) = &mut self.one_way
            && advanced
        {
            event.owd = Some(one_way.sample(ack, sent.xmit, self.rtt.min()));
        }
        if self.delivery.samples() {
            event.rate = self
                .delivery
                .sample(now, (seq, sent), since, self.rtt.min());
            event.next_send = self.pacer.next();
        }
        if let Some(volume) = self.delivery.next_round(since) {
            event.round = self.delivery.rounds();
            event.round_start = true;
            self.validate_round(now, volume);
        }
        event
    }

    /// Linux (`tcp_clean_rtx_queue`, `tcp_ack_update_rtt`): cumulative samples unless a
    /// retransmission is covered, SACKed ones for the controller where there are some, the time
    /// stamp where there is nothing else. Returns the oldest and the newest sample.
    #[inline(always)]
    fn sample_oldest(
        &self,
        now: Time,
        ack: &Ack,
        prior_una: u64,
        d: &Delivered,
    ) -> Option<(Span, Span)> {
        let acked = match (d.acked_sent, d.newest) {
            (None, Some((_, newest))) if d.clean => {
                Some((self.board.get(prior_una).xmit, newest.xmit))
            }
            (sent, _) => sent.filter(|_| !d.covers_retransmission),
        };
        let since =
            |(first, last): (Time, Time)| (now.saturating_since(first), now.saturating_since(last));
        match (acked.map(since), d.sacked_sent.map(since)) {
            (Some((oldest, _)), Some((_, newest))) => Some((oldest, newest)),
            (Some(both), None) | (None, Some(both)) => Some(both),
            (None, None) => {
                let ms = |t: Time| t.as_nanos() / 1_000_000;
                let echo = self.echo(ack, ack.cum > prior_una)?;
                let span = Span::from_millis(ms(now).saturating_sub(ms(echo)).max(1));
                Some((span, span))
            }
        }
    }

    /// The echoed time stamp, if the connection has time stamps and it belongs to what this ACK
    /// acknowledges.
    #[inline]
    fn echo(&self, ack: &Ack, advanced: bool) -> Option<Time> {
        (advanced && self.cfg.timestamps).then_some(ack.echo)
    }

    /// The event of an ACK before its samples, or of no ACK.
    #[inline(always)]
    pub(super) fn event(
        &self,
        now: Time,
        d: &Delivered,
        advanced: bool,
        prior_pipe: u64,
        stamps: Stamps,
    ) -> AckEvent {
        let mut event = AckEvent::new(now);
        event.acked = d.acked;
        event.sacked = d.sacked;
        event.advanced = advanced;
        event.srtt = self.rtt.srtt();
        event.min_rtt = self.rtt.min();
        event.prior_flight = prior_pipe;
        event.stamps = stamps;
        event.delivered = self.delivery.delivered();
        event.round = self.delivery.rounds();
        event.phase = self.recovery.phase();
        event.snd_una = self.board.una();
        event.snd_nxt = self.board.nxt();
        event
    }

    /// A round ended that delivered `volume` segments: window validation looks at it.
    fn validate_round(&mut self, now: Time, volume: u64) {
        let window = self.window_state();
        let changed = self
            .validation
            .on_round(now, volume, self.rtt.srtt(), window);
        if let Some(state) = changed {
            let idle = now.saturating_since(self.last_sent);
            let ev = IdleEvent::new(now, idle, state.window, state.ssthresh);
            self.cc.on_idle(&ev);
        }
    }

    /// What the ACK undoes, ends and shows to be lost, and the answer to it.
    fn repair(&mut self, ir: &Irregular<'_>, event: &mut AckEvent) {
        let now = ir.now;
        self.recovery
            .on_irregular_ack(ir, &self.board, self.rtt.min());
        if event.ece && self.cfg.recovery.undo_by == SpuriousRule::Linux {
            // By the RFCs the window is given back first (`tcp_fastretrans_alert`, point A).
            self.recovery.justify();
        }
        let verdict = self.recovery.judge_reduction(ir, &self.board);
        let mut undone = false;
        match verdict {
            Verdict::Stands => {}
            Verdict::Spurious { unmark, by } => {
                self.undo_reduction(now, unmark, by);
                undone = true;
            }
            Verdict::Doubtful => return self.recovery.doubt(),
        }
        if self.recovery.probe_repaired_loss(ir) {
            self.reduce(now, CongestionKind::Loss, 0, event);
        }
        let new_data = self.board.nxt() < self.limits.end();
        // What undoes a timeout is not asked twice (`tcp_process_loss`).
        if !undone
            && self.recovery.shows_spurious_timeout(
                ir,
                &self.board,
                new_data,
                self.record.counts().sent,
            )
        {
            self.undo_reduction(now, true, Proof::Forward);
            undone = true;
        }
        // Where the state stays it does so for this ACK (`tcp_process_loss`).
        let stays = undone && self.recovery.is_undone_in_loss();
        let ended = !stays && self.leave_phase_if_done(now);
        self.recovery.enter_disorder(&self.board);
        let losses = self.recovery.detect(
            now,
            ir.advanced,
            &mut self.board,
            &self.rtt,
            &mut self.timers,
        );
        event.lost = losses.all();
        self.report_losses(now);
        self.answer(now, losses, ended && !undone, event);
        self.recovery.on_answered(&self.board);
    }

    /// A controller that was in start-up before it took something in, and is not any more.
    #[inline(always)]
    fn note_exit(&mut self, now: Time, was_starting: bool) {
        if was_starting && !self.cc.in_start_up() {
            self.log(now, EpisodeKind::StartUpExit, self.cc.window());
        }
    }

    /// Losses that the sender pretends, marks, and the window law: the end of an ACK. `starting`:
    /// the controller was in start-up when the ACK came, unless a loss has ended that.
    #[inline(always)]
    fn conclude(&mut self, opening: &Opening, event: &mut AckEvent, mut starting: bool) {
        let now = event.now;
        let delivered_now = event.delivered_now();
        if let Some(artificial) = &mut self.artificial
            && artificial.drops(now, opening.delivered, delivered_now, self.cc.window())
        {
            self.reduce(now, CongestionKind::Loss, 0, event);
            starting &= self.cc.in_start_up();
        }
        if event.ece {
            self.on_ecn_echo(now, event);
            starting &= self.cc.in_start_up();
        }
        event.phase = self.recovery.phase();
        event.flight = self.board.pipe();
        event.cwnd_limited = self.cwnd_limited();
        self.cc.on_ack(event);
        self.note_exit(now, starting);
        if self.delivery.samples() && self.cc.limits_itself() {
            self.delivery.app_limited(event.flight);
        }
        self.recovery.allow(PrrAck {
            delivered: delivered_now + event.duplicates,
            inflight: event.flight,
            good: event.advanced && event.lost == 0,
        });
        self.refresh_budget();
        if !self.pacer.is_free() && self.board.nxt() > opening.una {
            self.fix_rate();
        }
    }

    /// The window was the limit during the last window of data.
    #[inline]
    pub(super) fn cwnd_limited(&self) -> bool {
        self.usage.was_limited()
            || (self.cc.in_start_up() && self.usage.was_half_used(self.cc.window()))
    }
}

/// Karn: a retransmission's sample counts only if its echo proves that it was the one acknowledged
/// (RFC 6298 section 3); without time stamps never.
#[inline]
fn sample_newest(
    now: Time,
    newest: Sent,
    echo: impl FnOnce() -> Option<Time>,
) -> Option<(Span, Span)> {
    if newest.retransmitted() && echo().is_none_or(|e| e < newest.xmit) {
        return None;
    }
    let rtt = now.saturating_since(newest.xmit);
    Some((rtt, rtt))
}
