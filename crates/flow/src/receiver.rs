//! The receiver: reassembly by number, delayed ACKs, SACK and DSACK blocks, ECN echo.
//!
//! RFC 9293 section 3.8.6 and RFC 5681 section 4.2 (when to acknowledge), RFC 2018 and RFC 2883
//! (what to report), RFC 7323 section 4.3 (which time stamp to echo), RFC 3168 section 6.1.3 (ECE
//! until CWR). Linux's own rules, as switches: quick ACKs, merged ACKs while a hole is open, a
//! delayed-ACK timer that ticks (`__tcp_ack_snd_check` in `net/ipv4/tcp_input.c`, 6.1).
//!
//! Flow control (RFC 9293 section 3.8.6): a host whose reader may be slow says how much room there
//! is ([`Receiver::set_room`]) and asks now and then whether the sender must be told of more
//! ([`Receiver::update_window`]). The window's end never moves back.

use std::sync::Arc;

use fullpipe_units::{Span, Time};

use crate::clock::TimerClock;
use crate::config::{AckCompression, CeEcho, ReceiveWindowConfig, ReceiverConfig};
use crate::ranges::{Range, RangeSet};
use crate::recent::Recent;
use crate::segment::{Ack, SackBlocks, Segment};

/// Receiver of one flow. Feed it segments and timer expiries; it answers with ACKs.
///
/// In memory as it stands here: what every segment touches comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Receiver {
    next: u64,
    ahead: RangeSet,
    /// Segments not yet acknowledged.
    pending: u32,
    quick: u32,
    /// ACKs that the next one stands for.
    merged: u32,
    ece: bool,
    /// ACKs carry the one-way delay.
    measures_one_way: bool,
    clock: TimerClock,
    cfg: Arc<ReceiverConfig>,
    deadline: Time,
    /// When the timer of delayed ACKs goes off, which an ACK that leaves earlier does not stop.
    delay_timer: Time,
    /// When the merged ACKs leave.
    merge_until: Time,
    echo: Time,
    /// One-way delay of the segment whose stamp is echoed.
    one_way: Span,
    counts: ReceiverCounts,
    highest: u64,
    /// Window in force, segments (Linux `rcv_wnd`, as `rcv_ssthresh` bounds it).
    rcv_wnd: u64,
    /// Largest window, segments (Linux `window_clamp`).
    max_rcv_wnd: u64,
    /// Largest window that an ACK can say, segments.
    widest: u64,
    /// Window that segments take which nobody has read when the next ACK leaves, bytes: room for
    /// one is reserved.
    unread: u64,
    /// One past the last segment that the host has room for; it only grows. [`u64::MAX`]: the host
    /// has not said.
    rcv_wnd_right_edge: u64,
    /// One past the last segment that the last ACK admitted.
    last_advertised: u64,
    /// End of the window in bytes, where ACKs have rounded it up.
    edge: u64,
    /// The ranges of `ahead` reported last.
    recent: Recent,
    /// A cumulative number and the ACKs due for it while a hole is open.
    repeated: (u64, u32),
    /// The SYN's arrival, then the RTT that the first data shows.
    opened: Option<Time>,
    rtt: Option<Span>,
    last_arrival: Time,
    /// The last segment came in the same instant as the one before.
    together: bool,
    /// The last duplicate, until an ACK reports it.
    duplicate: Range,
    /// ECN-capable segments have come.
    seen_ect: bool,
    /// What segments say of ECN is heard.
    hears_ecn: bool,
    /// Each change of the marks is echoed.
    echoes_changes: bool,
}

/// What [`Receiver::take_next`] made of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the next one, and no ACK is due.
    Silently,
    /// It is the next one: [`Receiver::plain_ack`] is due.
    Due,
    /// Nothing yet: [`Receiver::take_apart`] follows.
    Not,
}

/// Totals of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Data segments that arrived.
    pub arrived: u64,
    /// First copies among `arrived`.
    pub delivered: u64,
    /// Of these, not the first copy.
    pub duplicates: u64,
    /// Of `delivered`, first transmissions that arrived below the highest number seen.
    pub out_of_order: u64,
    /// ACKs sent.
    pub acks: u64,
    /// Of the segments that arrived, those discarded for their time stamps
    /// ([`ReceiverConfig::paws`]).
    pub discarded: u64,
}

/// A stamp is older than another if it is less than half of its range before it: on a wire that has
/// 32 bits of microseconds it begins anew every 72 minutes (RFC 7323 section 5.2).
fn is_older(stamp: Time, than: Time) -> bool {
    stamp < than && than.saturating_since(stamp) < Span::from_micros(1 << 31)
}

impl Receiver {
    /// A receiver before the connection opens.
    pub fn new(cfg: impl Into<Arc<ReceiverConfig>>) -> Self {
        let mut cfg = cfg.into();
        if let (true, Some(max)) = (cfg.acks.quick > 0, cfg.window.max) {
            let half = u32::try_from(max.div_ceil(2)).unwrap_or(u32::MAX).max(1);
            if cfg.acks.every > half {
                Arc::make_mut(&mut cfg).acks.every = half;
            }
        }
        let max_rcv_wnd = cfg.window.largest().unwrap_or(u64::MAX);
        let first = cfg.window.first.unwrap_or(max_rcv_wnd);
        let rcv_wnd = first.min(max_rcv_wnd);
        let quick = quick_acks(cfg.acks.quick, rcv_wnd);
        let widest = cfg.window.widest.unwrap_or(u64::MAX);
        Self {
            clock: match cfg.acks.hz {
                None => TimerClock::Exact,
                Some(hz) => TimerClock::Wheel { hz },
            },
            hears_ecn: cfg.ecn,
            echoes_changes: cfg.ecn && cfg.ce_echo == CeEcho::EachChange,
            cfg,
            next: 0,
            ahead: RangeSet::default(),
            recent: Recent::new(),
            pending: 0,
            deadline: Time::MAX,
            delay_timer: Time::ZERO,
            echo: Time::ZERO,
            ece: false,
            quick,
            rcv_wnd,
            max_rcv_wnd,
            widest,
            unread: 0,
            rcv_wnd_right_edge: u64::MAX,
            last_advertised: 0,
            edge: 0,
            repeated: (0, 0),
            merged: 0,
            merge_until: Time::MAX,
            opened: None,
            rtt: None,
            last_arrival: Time::ZERO,
            together: false,
            highest: 0,
            counts: ReceiverCounts::default(),
            measures_one_way: false,
            one_way: Span::ZERO,
            duplicate: Range::EMPTY,
            seen_ect: false,
        }
    }

    /// The sender does not use ECN: nothing of it has to be looked for.
    pub fn ignore_ecn(&mut self) {
        (self.hears_ecn, self.echoes_changes) = (false, false);
    }

    /// From now on ACKs carry the one-way delay ([`Ack::one_way`]), for a controller that
    /// [reads it](fullpipe_cc::Controller::reads_owd).
    pub fn measure_one_way(&mut self) {
        self.measures_one_way = true;
    }

    /// The next ACK echoes this stamp, unless an earlier arrival had a later one (RFC 7323 section
    /// 4.3).
    #[inline]
    fn note_stamp(&mut self, now: Time, stamp: Time) {
        if is_older(stamp, self.echo) {
            return;
        }
        self.echo = stamp;
        if self.measures_one_way {
            self.one_way = now.saturating_since(stamp);
        }
    }

    /// Totals so far.
    pub fn counts(&self) -> &ReceiverCounts {
        &self.counts
    }

    /// Next segment expected in order.
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// When [`Receiver::handle_timeout`] is due; [`Time::MAX`] for never.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.deadline.min(self.merge_until)
    }

    /// A segment arrived; an ACK may be due at once. Where the receiver echoes each change of the
    /// marks, [`Receiver::ack_before`] comes first.
    #[inline(always)]
    pub fn handle_segment(&mut self, now: Time, segment: &Segment) -> Option<Ack> {
        match self.take_next(now, segment) {
            Taken::Silently => None,
            Taken::Due => Some(self.plain_ack(now)),
            Taken::Not => self.take_apart(now, segment),
        }
    }

    /// The same for a host that sends an ACK without blocks, which need not be in memory, apart
    /// from others.
    #[inline(always)]
    pub fn take_next(&mut self, now: Time, segment: &Segment) -> Taken {
        // Those of a sender that uses ECN are apart as well: most do not.
        if segment.syn || self.hears_ecn {
            return Taken::Not;
        }
        self.take_data(now, segment, segment.push)
    }

    /// Data, whose ACK is asked for `at_once` or not.
    #[inline(always)]
    fn take_data(&mut self, now: Time, segment: &Segment, at_once: bool) -> Taken {
        self.counts.arrived += 1;
        if self.cfg.acks.quick > 0 {
            self.note_gap(now);
        }
        if self.cfg.paws && self.is_stale(segment.stamp)
            || segment.seq != self.next
            || !self.ahead.is_empty()
        {
            return Taken::Not;
        }
        match self.in_order(now, segment, at_once) {
            true => Taken::Due,
            false => Taken::Silently,
        }
    }

    /// What [`Receiver::take_next`] did not take: a part of the handshake, a segment that is out of
    /// order or out of date, any of a sender that uses ECN.
    #[inline(always)]
    pub fn take_apart(&mut self, now: Time, segment: &Segment) -> Option<Ack> {
        if segment.syn {
            return self.answer_syn(now, segment.stamp, segment.ends_handshake());
        }
        if self.hears_ecn {
            let at_once = self.note_ecn(segment) || segment.push;
            match self.take_data(now, segment, at_once) {
                Taken::Silently => return None,
                Taken::Due => return Some(self.plain_ack(now)),
                Taken::Not => {}
            }
        }
        if self.cfg.paws && self.is_stale(segment.stamp) {
            return Some(self.discard(now, segment.seq));
        }
        self.irregular(now, segment.seq, segment.stamp, segment.retransmission)
    }

    #[cold]
    fn answer_syn(&mut self, now: Time, stamp: Time, ends_handshake: bool) -> Option<Ack> {
        if ends_handshake {
            return None;
        }
        // A late copy must not disturb the ACK of data that is pending.
        self.counts.acks += 1;
        if self.opened.is_none() {
            self.echo = stamp;
        }
        // Linux answers with the stamp of the first SYN that came (`tcp_check_req`): where its
        // answer was lost, the first RTT sample of the sender includes the timeout.
        let echo = if self.cfg.paws { self.echo } else { stamp };
        self.opened = Some(now);
        self.last_advertised = self.window_end();
        Some(Ack {
            cum: self.next,
            syn: true,
            echo,
            stamp_ms: stamp_ms(now),
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: self.window_end(),
        })
    }

    /// Older than the stamp that is echoed by more than one tick of it (`TCP_PAWS_WINDOW`).
    #[inline]
    fn is_stale(&self, stamp: Time) -> bool {
        is_older(stamp, self.echo) && stamp_ms(self.echo) - stamp_ms(stamp) > 1
    }

    /// The segment is not looked at; its ACK says what the last one said (`tcp_send_dupack`).
    #[cold]
    fn discard(&mut self, now: Time, seq: u64) -> Ack {
        self.counts.discarded += 1;
        let known = seq < self.next;
        if known {
            self.quick = self.quick_again();
            self.duplicate = Range::one(seq);
        }
        self.ack_with_blocks(now)
    }

    /// A delayed or merged ACK is due.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Ack> {
        if self.next_timeout() > now {
            return None;
        }
        Some(self.ack_with_blocks(now))
    }

    /// A sender that was silent for a timeout begins anew: its ACKs are quick again
    /// (`tcp_event_data_recv`).
    #[inline]
    fn note_gap(&mut self, now: Time) {
        if self.rtt.is_none() {
            self.rtt = self.opened.map(|at| now.saturating_since(at));
        }
        let rtt = self.rtt.unwrap_or(Span::ZERO);
        if now.saturating_since(self.last_arrival) > rtt + SILENCE {
            self.quick = self.quick_again();
        }
        self.together = now == self.last_arrival;
        self.last_arrival = now;
    }

    #[inline]
    fn grow_window(&mut self) {
        self.grow_window_to(self.max_rcv_wnd);
    }

    /// The same as far as the buffer has room beside what lies in it: `in_order` segments that have
    /// come together, and those `ahead` of a hole (`tcp_grow_window`).
    #[inline]
    fn grow_window_beside(&mut self, in_order: u64, ahead: u64) {
        let Some(buffer) = self.cfg.window.buffer else {
            return self.grow_window();
        };
        let taken = ReceiveWindowConfig::unread(in_order, ahead);
        let room = buffer.saturating_sub(taken.div_ceil(ReceiveWindowConfig::SEGMENT));
        self.grow_window_to(room.min(self.max_rcv_wnd));
    }

    #[inline(always)]
    fn grow_window_to(&mut self, most: u64) {
        if self.rcv_wnd < most {
            self.rcv_wnd = (self.rcv_wnd + 2).min(most);
            // The lowest bit, as `tcp_grow_window` sets it: quick ACKs left from the start stay.
            self.quick |= 1;
        }
    }

    fn quick_again(&self) -> u32 {
        self.quick
            .max(quick_acks(self.cfg.acks.quick, self.rcv_wnd))
    }

    /// The next segment, which asks for its ACK `at_once` or not; true if its ACK is due.
    #[inline(always)]
    fn in_order(&mut self, now: Time, segment: &Segment, at_once: bool) -> bool {
        self.counts.delivered += 1;
        self.next += 1;
        if self.pending == 0 {
            // The first of a delayed group carries the stamp that is echoed.
            self.note_stamp(now, segment.stamp);
        }
        self.pending += 1;
        self.grow_window();
        if self.quick == 0 && self.pending < self.cfg.acks.every && !at_once {
            if self.deadline == Time::MAX {
                self.deadline = self.clock.after(now, self.cfg.acks.delay);
                self.delay_timer = self.deadline;
            }
            return false;
        }
        if self.together && self.waits_for_reader() {
            // Not before the last of them.
            self.deadline = now + Span::from_nanos(1);
            return false;
        }
        true
    }

    /// Two segments that arrive in one instant are more than the buffer has in reserve: a window
    /// that has grown as far as it can is short until somebody has read them, and the ACK waits for
    /// that (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`). All that arrive together share it.
    #[cold]
    fn waits_for_reader(&self) -> bool {
        let whole = |buffer| self.rcv_wnd.saturating_add(1) >= buffer;
        self.cfg.window.buffer.is_some_and(whole) && self.quick == 0 && self.cfg.acks.every > 1
    }

    /// Out of order, a duplicate, or the filling of a gap: acknowledged at once unless ACKs are
    /// merged.
    #[inline]
    fn irregular(&mut self, now: Time, seq: u64, stamp: Time, again: bool) -> Option<Ack> {
        let (is_late, delivered) = (seq < self.highest && !again, self.counts.delivered);
        let next = self.next;
        self.highest = self.highest.max(seq);
        let alone = Range::one(seq);
        let mut overdue = None;
        if self.reports_whole() && self.recent.end() == seq && self.ahead.extend_last(seq) {
            // Behind a hole almost everything follows the newest block.
            self.counts.delivered += 1;
            self.grow_window_beside(0, delivered - next);
            self.recent.extend();
        } else if seq < self.next {
            self.counts.duplicates += 1;
            self.duplicate = alone;
            self.quick = self.quick_again();
            // The last segment that the last ACK covers is within the window still, the one behind
            // it is the next in order, and the stamp of both is taken (`tcp_sequence`,
            // `tcp_replace_ts_recent`).
            let acked = self.next - u64::from(self.pending);
            if self.cfg.paws && (acked == seq || acked == seq + 1) {
                self.note_stamp(now, stamp);
            }
        } else if self.ahead.holding(seq).is_some() {
            // Above a hole: told with the next ACK, which it does not make quick
            // (`tcp_data_queue_ofo`).
            self.counts.duplicates += 1;
            self.duplicate = alone;
            if !self.cfg.sack.whole {
                overdue = self.make_block_room(now, seq);
                self.recent.recall(alone, self.next);
            }
        } else {
            self.counts.delivered += 1;
            let fills = seq == self.next;
            if fills || self.cfg.sack.enabled {
                // Without SACK a window that moves would hide that the ACK is a duplicate; one
                // above a hole is not in the buffer yet (`tcp_data_queue_ofo`).
                self.grow_window_beside(fills.into(), delivered - next);
            }
            if seq == self.next {
                // Not beyond what the last ACK said (RFC 7323 section 4.3).
                if self.pending == 0 {
                    self.note_stamp(now, stamp);
                }
                self.next += 1;
                if let Some(first) = self.ahead.first().filter(|r| r.start == self.next) {
                    self.next = first.end;
                }
                self.ahead.trim_below(self.next);
                self.pending += (self.next - next) as u32;
            } else {
                overdue = self.make_block_room(now, seq);
                let block = self.ahead.insert(alone, |_| {});
                match self.cfg.sack.whole {
                    true => self.recent.remember(block),
                    false => self.recent.recall(alone, self.next),
                }
            }
        }
        // A copy of what has arrived is no reordering: first arrivals count (RFC 4737).
        if is_late && self.counts.delivered > delivered {
            self.counts.out_of_order += 1;
        }
        if self.cfg.window.buffer.is_some() {
            let ahead = self.counts.delivered - self.next;
            self.unread = ReceiveWindowConfig::unread(self.next - next, ahead);
        }
        if overdue.is_some() {
            // It went for this arrival, which waits for no other (`tcp_ack_snd_check`).
            return overdue;
        }
        // Without SACK each is a duplicate that counts (`__tcp_ack_snd_check`).
        if let Some(rule) = self.cfg.acks.compression
            && self.cfg.sack.enabled
            && self.may_merge(rule)
        {
            self.merge(now, rule);
            return None;
        }
        Some(self.ack_and_report(now))
    }

    fn reports_whole(&self) -> bool {
        self.cfg.sack.enabled && self.cfg.sack.whole
    }

    /// What waits must be reported before a newer block takes its place (`tcp_sack_new_ofo_skb`).
    #[inline]
    fn make_block_room(&mut self, now: Time, seq: u64) -> Option<Ack> {
        let is_due = self.merged > 0 && self.recent.slot(seq, self.next) >= UNREPORTED_BLOCKS;
        is_due.then(|| self.ack_with_blocks(now))
    }

    /// Only repetitions beyond the third are merged: a filled hole, an advance by two segments and
    /// quick ACKs are not, and are no repetition; an advance is one while the window is short.
    fn may_merge(&mut self, rule: AckCompression) -> bool {
        let every = self.cfg.acks.every;
        // An ACK for each segment is what the route asks for (`RTAX_QUICKACK`): always quick.
        let quick = self.quick > 0 || every <= 1;
        let advances = self.pending >= every && !self.is_window_short();
        let at_once = self.ahead.is_empty() || advances || quick;
        if at_once || self.merged >= rule.most {
            return false;
        }
        if self.repeated.0 != self.next {
            self.repeated = (self.next, 0);
        }
        self.repeated.1 += 1;
        self.repeated.1 > DUP_THRESH
    }

    /// True if what lies in the buffer, unread or above a hole, leaves less room than the last ACK
    /// granted (`__tcp_select_window` and `rcv_wnd` in `__tcp_ack_snd_check`).
    #[cold]
    fn is_window_short(&self) -> bool {
        let Some(buffer) = self.cfg.window.buffer else {
            return false;
        };
        let segment = ReceiveWindowConfig::SEGMENT;
        let acked = self.next - u64::from(self.pending);
        let granted = self.last_advertised.saturating_sub(acked);
        let room = (buffer * segment).saturating_sub(self.unread);
        room.min(self.rcv_wnd.saturating_mul(segment)) < granted.saturating_mul(segment)
    }

    fn merge(&mut self, now: Time, rule: AckCompression) {
        self.merged += 1;
        if self.merge_until == Time::MAX {
            let part = self.rtt.map_or(rule.delay, |rtt| rtt / rule.rtt_part);
            self.merge_until = now + rule.delay.min(part) + rule.slack;
            if self.delay_timer > now {
                // Whatever it was set for, it sends what is merged (`tcp_delack_timer_handler`).
                self.merge_until = self.merge_until.min(self.delay_timer);
            }
        }
    }

    /// The duplicate comes first (RFC 2883), then what was received out of order.
    #[inline(always)]
    fn report(&mut self, ack: &mut Ack) {
        let duplicate = core::mem::replace(&mut self.duplicate, Range::EMPTY);
        if !self.cfg.sack.enabled {
            return;
        }
        if !duplicate.is_empty() {
            ack.dsack = true;
            ack.sacks.push(duplicate);
        }
        if self.ahead.is_empty() {
            return;
        }
        let most = self.cfg.sack.blocks.min(4);
        self.recent.report(self.next, most, &mut ack.sacks);
    }

    /// What a segment says of ECN; true if that is to be acknowledged at once.
    ///
    /// Receivers that know quick ACKs are Linux's: it sends some after a first mark and for a
    /// segment that is not ECN-capable among others that are, and one for CWR
    /// (`__tcp_ecn_check_ce`, `tcp_ecn_accept_cwr`). Where each change of the marks is echoed, the
    /// change is acknowledged at once instead (`dctcp_ece_ack_update`).
    fn note_ecn(&mut self, segment: &Segment) -> bool {
        let capable = segment.ect || segment.ce;
        if !capable && !self.seen_ect && !segment.cwr {
            return false;
        }
        self.seen_ect |= capable;
        let is_quick = self.cfg.acks.quick > 0;
        let begins = segment.ce && (!self.ece || segment.cwr) && !self.echoes_changes;
        if is_quick && (begins || !capable) {
            let quick = quick_acks(QUICK_FOR_MARK, self.rcv_wnd);
            self.quick = self.quick.max(quick);
        }
        match self.cfg.ce_echo {
            CeEcho::UntilCwr => {
                self.ece = segment.ce || self.ece && !segment.cwr;
                is_quick && segment.cwr
            }
            CeEcho::EachChange if capable => {
                let changes = self.ece != segment.ce;
                self.ece = segment.ce;
                is_quick && (changes || segment.cwr)
            }
            CeEcho::EachChange => false,
        }
    }

    /// The ACK of what has arrived, where the segment that arrives now has another mark than what
    /// came last, and each change is echoed: to be sent before the segment is handled (RFC 8257
    /// section 3.2).
    #[inline(always)]
    pub fn ack_before(&mut self, now: Time, segment: &Segment) -> Option<Ack> {
        match self.echoes_changes {
            false => None,
            true => self.ack_before_change(now, segment),
        }
    }

    #[cold]
    #[inline(never)]
    fn ack_before_change(&mut self, now: Time, segment: &Segment) -> Option<Ack> {
        let capable = segment.ect || segment.ce;
        let changes = capable && segment.ce != self.ece;
        let waits = self.pending > 0 || self.merged > 0;
        (changes && waits).then(|| self.ack_with_blocks(now))
    }

    /// The ACK that is due, and what was received out of order.
    fn ack_with_blocks(&mut self, now: Time) -> Ack {
        self.ack_and_report(now)
    }

    #[inline(always)]
    fn ack_and_report(&mut self, now: Time) -> Ack {
        let mut ack = self.plain_ack(now);
        self.report(&mut ack);
        ack
    }

    /// The ACK that is due, without blocks: that of [`Taken::Due`].
    #[inline(always)]
    pub fn plain_ack(&mut self, now: Time) -> Ack {
        self.pending = 0;
        self.quick = self.quick.saturating_sub(1);
        self.merged = 0;
        self.deadline = Time::MAX;
        self.merge_until = Time::MAX;
        self.counts.acks += 1;
        self.highest = self.highest.max(self.next);
        self.last_advertised = match self.unread {
            0 => self.window_end(),
            _ => self.crowded_window_end(),
        };
        Ack {
            cum: self.next,
            syn: false,
            echo: self.echo,
            stamp_ms: stamp_ms(now),
            one_way: self.measures_one_way.then_some(self.one_way),
            sacks: SackBlocks::default(),
            dsack: false,
            ece: self.ece,
            window_end: self.last_advertised,
        }
    }

    /// One past the last segment that the advertised window admits.
    #[inline]
    pub fn window_end(&self) -> u64 {
        self.next
            .saturating_add(self.rcv_wnd.min(self.widest))
            .min(self.rcv_wnd_right_edge)
    }

    /// The same while segments lie in the buffer unread. The window is in units of the scale, and
    /// rounded up to one: where its end must not move back each ACK moves it on by what is missing
    /// (`tcp_select_window`).
    #[cold]
    fn crowded_window_end(&mut self) -> u64 {
        let unread = core::mem::take(&mut self.unread);
        let end = self.window_end();
        let Some(buffer) = self.cfg.window.buffer else {
            return end;
        };
        let segment = ReceiveWindowConfig::SEGMENT;
        let unit = match self.widest {
            u64::MAX => 1,
            widest => (widest * segment).div_ceil(MOST_UNITS).next_power_of_two(),
        };
        let next = self.next.saturating_mul(segment);
        let granted = self.rcv_wnd.saturating_mul(segment);
        let room = (buffer * segment).saturating_sub(unread).min(granted);
        let held = self.edge.max(self.last_advertised.saturating_mul(segment));
        let window = room.max(held.saturating_sub(next));
        self.edge = next.saturating_add(window.next_multiple_of(unit));
        end.min(self.edge / segment)
    }

    /// The host has room for so many segments that have not arrived yet. What was promised once
    /// stays promised: a host that has less room now must find it all the same. The first segment
    /// is always admitted: a sender needs one to ask with.
    #[inline]
    pub fn set_room(&mut self, segments: u64) {
        // Every segment that arrived first is below `next` or in `ahead`, and is out of the host's
        // room already.
        let edge = self.counts.delivered.saturating_add(segments).max(1);
        if self.rcv_wnd_right_edge == u64::MAX || edge > self.rcv_wnd_right_edge {
            self.rcv_wnd_right_edge = edge;
        }
    }

    /// Segments that the sender may still send as far as the last ACK said.
    #[inline]
    pub fn window_known(&self) -> u64 {
        self.last_advertised.saturating_sub(self.next)
    }

    /// An ACK that does nothing but open the window, if its sender may be waiting for one: as the
    /// ACKs that data brings would not reach it, there must be twice the room that it knows of, and
    /// at least `step` segments more (RFC 9293 section 3.8.6.2.2).
    pub fn update_window(&mut self, now: Time, step: u64) -> Option<Ack> {
        let end = self.window_end();
        let known = self.window_known();
        // Without SACK an ACK that does not advance counts as a sign of loss while anything is on
        // its way.
        if self.last_advertised >= end || (known > 0 && !self.cfg.sack.enabled) {
            return None;
        }
        let more = end - self.last_advertised;
        if more < step.max(1) || more < known {
            return None;
        }
        Some(self.ack_with_blocks(now))
    }

    /// Holes below the highest segment held: what a host bounds.
    #[inline]
    pub fn holes(&self) -> usize {
        self.ahead.ranges()
    }
}

/// ACKs that are not delayed: one for every second segment that fits into the window, as many as
/// the window's growth in slow start takes (`tcp_incr_quickack`).
fn quick_acks(most: u32, rcv_wnd: u64) -> u32 {
    let of_window = match rcv_wnd / 2 {
        0 => 2,
        half => u32::try_from(half).unwrap_or(u32::MAX),
    };
    most.min(of_window)
}

fn stamp_ms(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// What the window's field of an ACK can say, in units of the scale.
const MOST_UNITS: u64 = 65_535;

/// ACKs for one cumulative number that are never merged (`TCP_FASTRETRANS_THRESH`).
const DUP_THRESH: u32 = 3;

/// Blocks that may change while an ACK waits: Linux trusts an ACK with two
/// (`TCP_SACK_BLOCKS_EXPECTED`).
const UNREPORTED_BLOCKS: usize = 2;

/// Quick ACKs after a mark, at most.
const QUICK_FOR_MARK: u32 = 2;

/// Beyond an RTT, this long without data means that the sender timed out.
const SILENCE: Span = Span::from_millis(200);

#[cfg(test)]
mod tests;
