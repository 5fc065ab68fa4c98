//! The sender: RFC 5681 with the algorithms of the other files in their places.

use fullpipe_flow::Ack;

use super::dsack::Dsack;
use super::eifel::Eifel;
use super::frto::{self, Frto};
use super::prr::Prr;
use super::rack::{Marked, Rack, Standing};
use super::rto::Rto;
use super::sack::{self, Next, Sack};
use super::tlp::{self, Tlp};
use super::{Choices, Detector, Literal, Ns, OnTimeout, Reduction, Seg};
use crate::law::Law;

/// The reaction to a loss that is under way, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Timeout,
    /// The answer to a loss that a probe repaired (RFC 8985 section 7.4.2): a reduction with
    /// nothing to retransmit.
    Reducing,
}

/// What [`Reference::react`] reads of an ACK.
#[derive(Clone, Copy, Debug)]
struct AckKind {
    /// SND.UNA moved.
    advanced: bool,
    /// It moved the connection from any other state to [`State::Open`], and not by an undo.
    ended: bool,
}

/// The sender.
#[derive(Clone, Debug)]
pub struct Reference {
    c: Choices,
    pub law: Law,
    /// Every segment ever sent.
    segs: Vec<Seg>,
    pub una: u64,
    transfer: u64,
    window_end: u64,
    pub state: State,
    /// The ACK undid a reduction.
    undone: bool,
    recovery_point: u64,
    /// With [`Departures::undo_asks_stamps`](super::Departures::undo_asks_stamps).
    stamped_until: u64,
    /// The segment that leaves whatever the window: RFC 6675 section 5 step 4.3, RFC 6298 step 5.4.
    at_once: Option<u64>,
    /// A probe leaves.
    probe: bool,
    /// Segments of Limited Transmit in this disorder (RFC 6675 section 5 step 4.2).
    limited: u64,
    /// When the window came down last.
    reduced_at: Ns,
    pub rto: Rto,
    rto_at: Option<Ns>,
    sack: Sack,
    /// Rescue retransmissions since the last SetPipe (RFC 6675 section 5 step C.4).
    rescued: Vec<u64>,
    pub rack: Rack,
    rack_at: Option<Ns>,
    tlp: Tlp,
    pto_at: Option<Ns>,
    prr: Option<Prr>,
    frto: Frto,
    /// RecoveryPoint of RFC 5682.
    frto_point: u64,
    eifel: Eifel,
    dsack: Dsack,
    /// RFC 4015: the recovery under way is a timeout's; SRTT_prev and RTTVAR_prev.
    previous: Option<(Ns, Ns)>,
    /// Step 11: the sample of a segment from here on adapts the estimate.
    adapt: Option<(u64, Ns, Ns)>,
    /// The last RTT sample.
    latest: Ns,
    pub timeouts: u64,
}

impl Literal for Reference {
    fn una(&self) -> u64 {
        self.una
    }

    fn nxt(&self) -> u64 {
        self.nxt()
    }

    fn is_done(&self) -> bool {
        self.is_done()
    }

    fn law(&self) -> &Law {
        &self.law
    }

    fn rto(&self) -> &Rto {
        &self.rto
    }

    fn state(&self) -> State {
        self.state
    }

    fn cwnd(&self) -> f64 {
        self.cwnd()
    }

    fn pipe(&self) -> u64 {
        self.pipe()
    }

    fn poll(&mut self, now: Ns) -> Option<(u64, bool)> {
        self.poll(now)
    }

    fn next_timer(&self) -> Option<Ns> {
        self.next_timer()
    }

    fn on_timer(&mut self, now: Ns) {
        self.on_timer(now);
    }

    fn on_ack(&mut self, now: Ns, ack: &Ack) {
        self.on_ack(now, ack);
    }

    fn board(&self) -> String {
        self.board()
    }
}

impl Reference {
    pub fn new(c: Choices, law: Law, transfer: u64, window_end: u64) -> Self {
        Self {
            c,
            law,
            segs: Vec::new(),
            una: 0,
            transfer,
            window_end,
            state: State::Open,
            undone: false,
            recovery_point: 0,
            stamped_until: 0,
            at_once: None,
            probe: false,
            limited: 0,
            reduced_at: 0,
            rto: Rto::new(&c),
            rto_at: None,
            sack: Sack::default(),
            rescued: Vec::new(),
            rack: Rack::new(),
            rack_at: None,
            tlp: Tlp {
                sampled: true,
                ..Tlp::default()
            },
            pto_at: None,
            prr: None,
            frto: Frto::Off,
            frto_point: 0,
            eifel: Eifel::default(),
            dsack: Dsack::default(),
            previous: None,
            adapt: None,
            latest: 0,
            timeouts: 0,
        }
    }

    pub fn nxt(&self) -> u64 {
        self.segs.len() as u64
    }

    pub fn is_done(&self) -> bool {
        self.una == self.transfer
    }

    /// The window in force.
    pub fn cwnd(&self) -> f64 {
        match &self.prr {
            Some(prr) => prr.cwnd as f64,
            None => self.law.cwnd,
        }
    }

    fn outstanding(&self) -> impl Iterator<Item = (u64, &Seg)> {
        let all = self.segs.iter().enumerate();
        all.skip(self.una as usize).map(|(n, s)| (n as u64, s))
    }

    fn sacked(&self) -> u64 {
        self.outstanding().filter(|(_, s)| s.sacked).count() as u64
    }

    /// Segments in the network: RFC 6675 section 4 SetPipe, or RFC 9937 section 6.2 with RACK and
    /// after a timeout, where NextSeg does not apply (RFC 6675 section 5.1).
    pub fn pipe(&self) -> u64 {
        let high_rxt = self.c.detector == Detector::Sack && !self.c.departs.sack_marks;
        if high_rxt && self.state != State::Timeout {
            let high = match self.state {
                State::Recovery => self.sack.high_rxt,
                _ => self.una,
            };
            return sack::set_pipe(&self.segs, self.una, high) + self.rescued();
        }
        // What was sent again without being lost counts twice, as in RFC 6675.
        self.outstanding()
            .filter(|(_, s)| !s.sacked && !s.lost)
            .map(|(_, s)| 1 + u64::from(s.twice))
            .sum()
    }

    fn rescued(&self) -> u64 {
        let there = |n: &&u64| **n >= self.una && !self.segs[**n as usize].sacked;
        self.rescued.iter().filter(there).count() as u64
    }

    /// FlightSize of RFC 5681 equation 4, as it was when the ACK came that delivered this much.
    /// Each segment of Limited Transmit answers one that was SACKed before.
    fn flight(&self, acked: u64, sacked: u64) -> u64 {
        let limited = self.limited.min(self.sacked() - sacked);
        (self.nxt() - self.una + acked).saturating_sub(limited)
    }

    fn can_send_new(&self) -> bool {
        self.nxt() < self.transfer && self.nxt() < self.window_end
    }

    /// The scoreboard in a line, for failures.
    pub fn board(&self) -> String {
        let segs: Vec<String> = self
            .outstanding()
            .map(|(n, s)| {
                let mark = |on: bool, text: &'static str| if on { text } else { "" };
                format!(
                    "{n}{}{}{}@{:.6}",
                    mark(s.sacked, "s"),
                    mark(s.lost, "l"),
                    mark(s.retransmitted, "r"),
                    s.xmit as f64 * 1e-9
                )
            })
            .collect();
        format!(
            "board {}; RACK.xmit_ts {:.6} end {} rtt {:.6}",
            segs.join(" "),
            self.rack.xmit_ts as f64 * 1e-9,
            self.rack.end_seq,
            self.rack.rtt as f64 * 1e-9
        )
    }

    // Sending.

    /// The next segment to leave, and whether it left before.
    pub fn poll(&mut self, now: Ns) -> Option<(u64, bool)> {
        if self.is_done() {
            return None;
        }
        if std::mem::take(&mut self.probe) {
            return Some(self.send_probe(now));
        }
        if let Some(n) = self.at_once.take() {
            // RFC 6675 section 5 step 4.3.
            self.sack.high_rxt = n + 1;
            return Some(self.send(now, n));
        }
        if self.cwnd() - (self.pipe() as f64) < 1.0 {
            return None;
        }
        let new = self.can_send_new().then_some(self.nxt());
        let lost = self.outstanding().find(|(_, s)| s.lost && !s.sacked);
        let lost = lost.map(|(n, _)| n);
        let marks = self.c.departs.sack_marks;
        let n = match self.state {
            State::Open | State::Reducing => new?,
            State::Recovery if self.c.detector == Detector::Sack && !marks => {
                match self.sack.next_seg(&self.segs, self.una, new.is_some())? {
                    Next::New => self.nxt(),
                    Next::Again(n) => {
                        // C.2.
                        self.sack.high_rxt = n + 1;
                        n
                    }
                    Next::Rescue(n) => self.rescue(n),
                }
            }
            State::Recovery if self.c.detector == Detector::Sack => match lost.or(new) {
                Some(n) => n,
                None => self.marked_hole()?,
            },
            State::Recovery => lost.or(new)?,
            State::Timeout => match &mut self.frto {
                Frto::Off => lost.or(new)?,
                // Step 2: the ACK of the retransmission first.
                Frto::Step2 => return None,
                // Step 2b: new segments alone, at most two.
                Frto::Step3 { may_send } => {
                    let n = new.filter(|_| *may_send > 0)?;
                    *may_send = may_send.saturating_sub(1);
                    n
                }
            },
        };
        Some(self.send(now, n))
    }

    fn send(&mut self, now: Ns, n: u64) -> (u64, bool) {
        let again = n < self.nxt();
        if again {
            self.note_retransmission(now);
            self.dsack.retransmits(n);
            self.segs[n as usize].sent_again(now);
        } else {
            self.segs.push(Seg::sent(now));
            if self.state == State::Open && self.sacked() > 0 {
                self.limited += 1;
            }
        }
        if let Some(prr) = &mut self.prr {
            // RFC 9937 section 6.3.
            prr.out += 1;
        }
        // RFC 6298 step 5.1.
        if self.rto_at.is_none() {
            self.rto_at = Some(now + self.rto.rto());
        }
        if !again {
            self.schedule_probe(now);
        }
        (n, again)
    }

    /// RFC 3522 step 2, before the segment leaves again.
    fn note_retransmission(&mut self, now: Ns) {
        let head = &self.segs[self.una as usize];
        let before = head.retransmitted.then_some(head.xmit);
        self.eifel.retransmits(now, before);
    }

    /// RFC 3708: what was sent again and is under way belongs to the window that begins.
    fn begin_dsack(&mut self) {
        let there = |(n, s): (u64, &Seg)| (s.out && !s.sacked).then_some(n);
        let out: Vec<u64> = self.outstanding().filter_map(there).collect();
        self.dsack.begin(out.into_iter());
    }

    /// RFC 6675 NextSeg rule 4.
    fn rescue(&mut self, n: u64) -> u64 {
        self.sack.rescue_rxt = Some(self.recovery_point);
        self.rescued.push(n);
        n
    }

    /// Rules 3 and 4 with [`Departures::sack_marks`](super::Departures::sack_marks).
    fn marked_hole(&mut self) -> Option<u64> {
        let top = self.outstanding().filter(|(_, s)| s.sacked).last();
        let top = top.map_or(self.una, |(n, _)| n);
        let clean = |s: &Seg| !s.sacked && !s.retransmitted;
        let hole = self.outstanding().find(|(n, s)| *n < top && clean(s));
        if let Some((n, _)) = hole {
            // And it counts as a loss at the end.
            self.segs[n as usize].missing = true;
            return Some(n);
        }
        let (n, _) = self.outstanding().filter(|(_, s)| !s.sacked).last()?;
        (self.una > self.sack.rescue_rxt?).then(|| self.rescue(n))
    }

    /// A loss is being repaired.
    fn repairs(&self) -> bool {
        matches!(self.state, State::Recovery | State::Timeout)
    }

    /// RFC 8985 section 7.2.
    fn schedule_probe(&mut self, now: Ns) {
        let quiet = !self.repairs() && self.sacked() == 0;
        self.pto_at = None;
        if self.c.tlp && quiet && self.una < self.nxt() {
            let flight = self.nxt() - self.una;
            let pto = now + Tlp::pto(self.rto.acks.srtt, flight, self.c.max_ack_delay);
            self.pto_at = Some(self.rto_at.map_or(pto, |rto| pto.min(rto)));
        }
    }

    /// RFC 8985 section 7.3.
    fn send_probe(&mut self, now: Ns) -> (u64, bool) {
        self.tlp.sampled = false;
        self.tlp.is_retrans = !self.can_send_new();
        let n = match self.can_send_new() {
            true => self.nxt(),
            false => self.nxt() - 1,
        };
        let sent = self.send(now, n);
        self.tlp.end_seq = Some(self.nxt());
        self.pto_at = None;
        sent
    }

    // Timers.

    pub fn next_timer(&self) -> Option<Ns> {
        [self.rack_at, self.pto_at, self.rto_at]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn on_timer(&mut self, now: Ns) {
        let due = |at: Option<Ns>| at.is_some_and(|at| at <= now);
        if due(self.rack_at) {
            let marked = self.detect(now);
            self.react(now, marked, [0, 0], None);
        }
        if due(self.pto_at) {
            self.pto_at = None;
            self.probe = self.tlp.end_seq.is_none() && self.tlp.sampled;
            // Section 7.3: sent or not.
            self.rto_at = Some(now + self.rto.rto());
        }
        if due(self.rto_at) {
            self.timeout(now);
        }
    }

    /// RFC 6298 steps 5.4 to 5.6, RFC 5681 section 3.1.
    fn timeout(&mut self, now: Ns) {
        self.timeouts += 1;
        let first = !self.segs[self.una as usize].timed_out;
        let flight = self.flight(0, 0);
        self.rto.back_off();
        let fresh = matches!(self.state, State::Open | State::Reducing);
        if self.c.undo && fresh {
            self.eifel.begin();
            self.begin_dsack();
            // RFC 4015 step 0.
            let g = 2 * self.c.granularity;
            self.previous = Some((self.rto.acks.srtt + g, self.rto.acks.rttvar));
        }
        // RFC 5682 step 1.
        self.frto = match self.c.frto && self.frto_point <= self.una {
            true if self.state != State::Recovery => Frto::Step2,
            _ => {
                self.frto_point = self.nxt();
                Frto::Off
            }
        };
        match self.c.on_timeout {
            OnTimeout::All => {
                for seg in &mut self.segs[self.una as usize..] {
                    if !seg.sacked {
                        seg.lose();
                    }
                }
            }
            OnTimeout::Old => {
                let reo_wnd = self.rack.reo_wnd(self.standing(false, false));
                self.rack
                    .mark_on_rto(now, &mut self.segs, self.una, reo_wnd);
            }
        }
        self.state = State::Timeout;
        self.law.timed_out(flight, first, self.pipe());
        self.recovery_point = self.nxt();
        self.reduced_at = now;
        self.prr = None;
        self.sack = Sack::default();
        self.rescued.clear();
        self.limited = 0;
        // RFC 8985 section 7.1.
        self.tlp.init();
        (self.pto_at, self.rack_at, self.probe) = (None, None, false);
        self.segs[self.una as usize].timed_out = true;
        self.at_once = Some(self.una);
        self.rto_at = Some(now + self.rto.rto());
    }

    // ACKs.

    pub fn on_ack(&mut self, now: Ns, ack: &Ack) {
        // RFC 9293 section 3.10.7.4: an old ACK is ignored, but for its SACK blocks (RFC 6675
        // section 5: those of any ACK count).
        if ack.cum > self.nxt() || (ack.cum < self.una && ack.sacks.is_empty()) {
            return;
        }
        self.window_end = match self.window_end {
            u64::MAX => ack.window_end,
            end => end.max(ack.window_end),
        };
        let (before, was) = (self.una, self.state);
        self.undone = false;
        let empty = self.sacked() == 0;
        self.una = self.una.max(ack.cum);
        let advanced = self.una > before;
        // RFC 7323 section 4.3: the echo is that of the segment that moved the window.
        let echo = advanced.then(|| ack.echo.as_nanos());
        // RFC 6675 section 4, Update; a DSACK block is no SACK (RFC 2883 section 4).
        let mut newly: Vec<u64> = (before..self.una)
            .filter(|&n| !self.segs[n as usize].sacked)
            .collect();
        let acked = newly.len();
        for block in ack.sacks.iter().skip(usize::from(ack.dsack)) {
            for n in block.start.max(self.una)..block.end.min(self.nxt()) {
                if !std::mem::replace(&mut self.segs[n as usize].sacked, true) {
                    newly.push(n);
                }
            }
        }
        let delivered = [acked as u64, (newly.len() - acked) as u64];
        let duplicate = !advanced && self.una < self.nxt();
        // SetPipe.
        self.rescued.clear();

        if let Some(r) = self.sample(now, &newly, echo) {
            let newest = newly
                .iter()
                .max_by_key(|n| (self.segs[**n as usize].xmit, **n));
            let newest = *newest.expect("it was sampled");
            self.rto.sample(r, newest, self.nxt());
            if let Some((from, srtt, rttvar)) = self.adapt
                && newest >= from
            {
                self.rto.adapt(r, srtt, rttvar);
                self.adapt = None;
            }
            self.latest = r;
            self.rack.min_rtt = self.rack.min_rtt.min(r);
            self.tlp.sampled = true;
        }
        self.rack.strict = before < self.stamped_until;
        self.rack.delivered(now, &self.segs, &newly, echo);

        let covers_all = self.una == self.nxt();
        let late = self.eifel.on_ack(echo, ack.dsack, covers_all);
        let twice = ack.dsack.then(|| ack.sacks.iter().next().unwrap().start);
        let useless =
            twice.is_some_and(|n| self.dsack.on_ack(n, before, empty, &self.segs, self.una));
        if self.c.undo && (late || useless) {
            let asks = self.c.departs.undo_asks_stamps && !useless;
            if asks && self.rack.take_back() {
                self.stamped_until = self.nxt();
            }
            self.undo();
        }
        let dsack = ack.dsack.then(|| ack.sacks.iter().next().unwrap().end);
        let bare = duplicate && ack.sacks.is_empty();
        let verdict = self.tlp.process_ack(ack.cum, dsack, bare);
        if verdict == tlp::Verdict::Repaired && self.state == State::Open {
            self.reduce(now, State::Reducing, delivered);
        }
        self.forward_rto(&newly, echo, duplicate);

        // RFC 6675 section 5 step A, and the same for the others.
        if self.state != State::Open && self.una >= self.recovery_point {
            self.state = State::Open;
            self.prr = None;
            self.frto = Frto::Off;
            self.limited = 0;
            self.eifel.end();
        }
        if self.sacked() == 0 && self.state == State::Open {
            self.limited = 0;
        }
        let ended = self.state == State::Open && was != State::Open;
        let mut marked = Marked::default();
        match self.c.detector {
            Detector::Rack => {
                let exiting = ended && was != State::Reducing;
                self.rack.adapt(self.standing(exiting, ack.dsack));
                marked = self.detect(now);
            }
            Detector::NewReno => unreachable!("it has a sender of its own"),
            Detector::Sack => {
                if advanced {
                    self.sack.dup_acks = 0;
                }
                self.sack.dup_acks += u64::from(delivered[1] > 0);
                marked.lost = self.mark_by_sack();
            }
        }
        let kind = AckKind {
            advanced,
            ended: ended && !self.undone,
        };
        self.react(now, marked, delivered, Some(kind));
        if advanced && !matches!(self.state, State::Recovery | State::Reducing) {
            self.law.grow();
        }

        // RFC 6298 steps 5.2 and 5.3.
        if self.una == self.nxt() {
            (self.rto_at, self.pto_at, self.rack_at) = (None, None, None);
        } else if advanced {
            self.rto_at = Some(now + self.rto.rto());
        }
        // RFC 8985 sections 7.2 and 8.
        if advanced || self.repairs() || self.sacked() > 0 {
            self.schedule_probe(now);
        }
    }

    /// RFC 6298 section 3: the segment of this ACK that was sent last; of a retransmission only if
    /// the echo is not older.
    fn sample(&self, now: Ns, newly: &[u64], echo: Option<Ns>) -> Option<Ns> {
        let newest = newly
            .iter()
            .max_by_key(|&&n| (self.segs[n as usize].xmit, n))?;
        let seg = &self.segs[*newest as usize];
        let its_own = echo.is_some_and(|echo| echo >= seg.xmit);
        (!seg.retransmitted || its_own).then(|| now - seg.xmit)
    }

    fn standing(&self, exiting: bool, dsack: bool) -> Standing {
        Standing {
            una: self.una,
            nxt: self.nxt(),
            srtt: self.rto.acks.srtt,
            recovering: matches!(self.state, State::Recovery | State::Timeout),
            exiting,
            dsack,
            segs_sacked: self.sacked(),
        }
    }

    /// RFC 8985 section 6.2 step 5.
    fn detect(&mut self, now: Ns) -> Marked {
        let reo_wnd = self.rack.reo_wnd(self.standing(false, false));
        let since = self.reduced_at;
        let marked = self
            .rack
            .detect(now, &mut self.segs, self.una, reo_wnd, since);
        self.rack_at = marked.look_again;
        marked
    }

    /// What IsLost says of segments for the first time, and how many. They are marked with
    /// [`Departures::sack_marks`](super::Departures::sack_marks), and after a timeout, where RFC
    /// 6675 section 5.1 leaves the choice.
    fn mark_by_sack(&mut self) -> u64 {
        let marks = self.c.departs.sack_marks || self.state == State::Timeout;
        let mut found = 0;
        for n in self.una..self.nxt() {
            let seg = &self.segs[n as usize];
            let news = !seg.sacked && !seg.twice && !seg.missing;
            if news && sack::is_lost(&self.segs, n) {
                let seg = &mut self.segs[n as usize];
                (seg.lost, seg.missing) = (marks, true);
                found += 1;
            }
        }
        found
    }

    /// What was found lost, and PRR's share of the ACK; of a timer there is none.
    fn react(&mut self, now: Ns, marked: Marked, delivered: [u64; 2], ack: Option<AckKind>) {
        let ended = ack.is_some_and(|a| a.ended);
        // At the end of a reduction: what is missing of the data sent since is the next window's
        // loss (RFC 5681 section 4.3), whether it was sent again or not.
        let marked_lost = self
            .outstanding()
            .any(|(_, s)| (s.lost || (ended && s.missing)) && !s.sacked);
        let lost = match self.c.detector {
            Detector::Rack | Detector::NewReno => marked_lost,
            // RFC 6675 section 5 steps 1 and 2.
            Detector::Sack if self.c.departs.sack_marks => {
                marked.lost > 0 || (ended && marked_lost)
            }
            Detector::Sack => {
                self.sack.dup_acks >= sack::DUP_THRESH
                    || (self.sack.dup_acks > 0
                        && self.una < self.nxt()
                        && sack::is_lost(&self.segs, self.una))
            }
        };
        let all = delivered[0] + delivered[1];
        match self.state {
            State::Open if lost => self.reduce(now, State::Recovery, delivered),
            // What a probe repaired was answered; this is repaired.
            State::Reducing if lost => {
                self.state = State::Recovery;
                self.recovery_point = self.nxt();
            }
            State::Recovery if self.c.reduce_again && marked.retransmissions > 0 => {
                let before = self.cwnd();
                self.law.lost(self.flight(0, 0), false);
                self.reduced_at = now;
                // RFC 9937 section 6.1: a new response begins a new episode.
                self.begin_prr(all, before);
            }
            State::Timeout if self.c.reduce_again && marked.retransmissions > 0 => {
                self.reduce(now, State::Recovery, delivered);
            }
            _ => {}
        }
        let pipe = self.pipe();
        let Some(prr) = &mut self.prr else {
            return;
        };
        match ack {
            Some(ack) if all > 0 => {
                prr.on_ack(all, pipe, ack.advanced && marked.lost == 0);
            }
            // No ACK brings a quota: the fast retransmit leaves all the same.
            None if self.reduced_at == now && prr.out == 0 => prr.cwnd = pipe as i64 + 1,
            _ => {}
        }
    }

    /// RFC 6675 section 5 step 4; with RACK the same but for the scoreboard's variables.
    fn reduce(&mut self, now: Ns, state: State, delivered: [u64; 2]) {
        let before = self.cwnd();
        self.law.lost(self.flight(delivered[0], delivered[1]), true);
        self.state = state;
        self.recovery_point = self.nxt();
        if state == State::Recovery {
            self.frto_point = self.nxt();
        }
        self.reduced_at = now;
        // RFC 8985 section 7.1.
        self.tlp.init();
        self.pto_at = None;
        if self.c.undo && state == State::Recovery {
            self.eifel.begin();
            // What an earlier recovery has sent again is this one's retransmission, too.
            let head = self.segs[self.una as usize];
            if head.retransmitted {
                self.eifel.retransmits(now, Some(head.xmit));
            }
            self.begin_dsack();
            self.previous = None;
        } else {
            self.dsack.end();
        }
        if self.c.detector == Detector::Sack {
            // 4.3.
            self.sack.high_rxt = self.una;
            self.sack.rescue_rxt = Some(self.una + 1);
        }
        // The fast retransmit leaves at once (step 4.3; RFC 5681 section 3.2 step 3): with PRR by
        // its own rule.
        if self.c.reduction == Reduction::Immediate && state == State::Recovery {
            let waiting = self.outstanding().find(|(_, s)| s.lost && !s.sacked);
            let by_number = self.c.detector == Detector::Sack && !self.c.departs.sack_marks;
            self.at_once = match by_number {
                true => Some(self.una),
                false => waiting.map(|(n, _)| n),
            };
        }
        self.begin_prr(delivered[0] + delivered[1], before);
    }

    fn begin_prr(&mut self, delivered: u64, before: f64) {
        if self.c.reduction == Reduction::Prr {
            let outstanding = self.nxt() - self.una;
            let ssthresh = self.law.ssthresh as u64;
            let mut prr = Prr::new(ssthresh, outstanding, self.sacked(), delivered);
            // An ACK that delivers nothing leaves the window alone (RFC 9937 section 6.2).
            prr.cwnd = before as i64;
            self.prr = Some(prr);
        }
    }

    /// RFC 5682 steps 2 and 3.
    fn forward_rto(&mut self, newly: &[u64], echo: Option<Ns>, duplicate: bool) {
        let advanced = echo.is_some();
        if self.frto == Frto::Step2 && advanced {
            self.frto_point = self.nxt();
        }
        let highest = self.outstanding().filter(|(_, s)| s.sacked).last();
        let verdict = self.frto.on_ack(frto::AckView {
            advanced,
            duplicate,
            cum: self.una,
            covers: highest.map_or(self.una, |(n, _)| n + 1),
            new_below: newly.iter().any(|&n| n < self.frto_point),
            recovery_point: self.frto_point,
            can_send: self.can_send_new(),
        });
        match verdict {
            frto::Verdict::Wait | frto::Verdict::SendNew | frto::Verdict::Conventional => {}
            frto::Verdict::Spurious if self.c.undo && self.previous.is_some() => {
                self.undo();
            }
            // No answer is on (RFC 5682 section 4): conventional.
            frto::Verdict::Spurious => {}
        }
    }

    /// RFC 4015 steps 8 and 9: transmission goes on with new data, the window returns.
    fn undo(&mut self) {
        self.undone = true;
        self.law.undo();
        self.state = State::Open;
        self.prr = None;
        self.frto = Frto::Off;
        self.at_once = None;
        self.eifel.end();
        self.dsack.end();
        // RFC 5682 section 3.1, last paragraph.
        self.frto_point = self.una;
        // What waits to be sent again is in the network after all; what was sent again is still
        // missing, and is no loss of its own unless it is lost again (step 8).
        for seg in &mut self.segs[self.una as usize..] {
            seg.missing &= !seg.lost;
            seg.lost = false;
        }
        self.rack.reordering_seen |= self.c.departs.undo_is_reordering;
        // Step 11.
        if let Some((srtt, rttvar)) = self.previous.take() {
            self.adapt = Some((self.nxt(), srtt, rttvar));
        }
    }
}
