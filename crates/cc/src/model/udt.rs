//! UDT's native rate control (Gu and Grossman, "UDT: UDP-based data transfer for high-speed wide
//! area networks", Computer Networks 51, 2007; draft-gg-udt-03, "Native Control Algorithm").
//!
//! The sender keeps a period between packets and shortens it every 10 ms (SYN) in which an ACK came
//! and no loss report: by a number of packets that follows from the decimal order of what the path
//! has to spare. A loss report lengthens the period by an eighth, and further ones of the same
//! congestion period do so again at random distances, so that flows that lost together do not slow
//! down together. A window, the arrival rate times RTT and SYN, only bounds what is under way.
//!
//! Where this differs from the documents, because it runs over this endpoint:
//!
//! - UDT's receiver measures the link's capacity from pairs of packets, every 16th and its
//!   successor sent back to back. No receiver of this endpoint does. In its place stand the ACKs
//!   of slow start, whose segments leave back to back: what one acknowledges, over the time since
//!   the last, the median of 16 as the documents have it; or the largest delivery rate, if that is
//!   more. After slow start segments are paced, and pairs of them say nothing. ACKs that the way
//!   back bunches make the estimate too large where they are half of the 16.
//! - UDT's receiver acknowledges every SYN, and reports a loss when it sees the gap. Here what one
//!   ACK shows lost, by the rules of the sender's loss detection, is one report.
//! - The arrival rate is the delivery rate, smoothed once a SYN as the documents smooth theirs.
//! - A mark (ECN), which UDT does not know, counts as a loss report. A timeout moves nothing: the
//!   documents have no rule for it either.

use fullpipe_units::{Rate, Span, Time};

use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, LostSegment, RateSample,
    RtoEvent, TakeOver, assert_ratio,
};
use crate::draws::Draws;
use crate::entry::Entry;
use crate::params::ParamSpec;

/// Packets that the window allows beyond rate times RTT and SYN (draft-gg-udt-03).
const SPARE: f64 = 16.0;
/// Most further decreases of a congestion period (draft-gg-udt-03).
const MOST_DECREASES: u32 = 5;
/// Estimates of the capacity that the median is taken of (draft-gg-udt-03).
const PAIRS: usize = 16;
/// Packets by which an arrival rate is known: nine intervals (draft-gg-udt-03 section 6.2, step 4
/// of the ACK event: of the last 16 more than 8 must remain, else the rate is 0).
const ARRIVED: u64 = 10;
/// RTT before the first sample, in SYN: of UDT 4's program (`CUDT::open`), not of the documents.
const FIRST_RTT: u64 = 10;
/// Bits of spare capacity to bytes of increase: of a packet of 1500 bytes, one whole packet a SYN
/// at up to 1 Gbit/s (`Beta` of draft-gg-udt-03).
const BETA: f64 = 1.5e-6;

/// UDT.
#[derive(Clone, Debug)]
pub struct Udt {
    /// Interval of rate control.
    syn: Span,
    /// What a loss report multiplies the period by.
    backoff: f64,
    draws: Draws,
    /// Bytes of a packet, as far as the law knows.
    packet: f64,
    most: f64,
    slow_start: bool,
    /// CWND, packets.
    cwnd: f64,
    /// SND, seconds between two packets; 0 in slow start.
    period: f64,
    /// That before the last congestion period's first decrease.
    period_before: f64,
    /// A, packets/s.
    arrival: f64,
    /// B, packets/s.
    capacity: f64,
    pairs: Pairs,
    /// When the period was last looked at for an increase.
    looked: Time,
    /// A loss report came since.
    lost: bool,
    reports: Reports,
    srtt: Span,
    snd_nxt: u64,
}

/// Rates at which segments that left back to back were acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    /// When the latest ACK came.
    at: Option<Time>,
    /// The latest ones, packets/s.
    rates: [f64; PAIRS],
    count: usize,
}

impl Pairs {
    /// An ACK of so many packets; the median, packets/s, once there are three.
    fn add(&mut self, now: Time, packets: u64) -> Option<f64> {
        let since = now.saturating_since(self.at.replace(now)?).as_secs_f64();
        if since > 0.0 && packets > 0 {
            self.rates[self.count % PAIRS] = packets as f64 / since;
            self.count += 1;
        }
        let known = self.count.min(PAIRS);
        let mut sorted = self.rates;
        let sorted = &mut sorted[..known];
        sorted.sort_by(f64::total_cmp);
        (known >= 3).then(|| sorted[known / 2])
    }
}

/// Loss reports (NAKs) of a congestion period.
#[derive(Clone, Copy, Debug)]
struct Reports {
    /// Latest ACK or timer that showed losses: all that one shows are one report.
    at: Option<Time>,
    /// NAKCount, DecCount, DecRandom, AvgNAKNum.
    count: u32,
    decreases: u32,
    distance: u32,
    mean: f64,
    /// LastDecSeq: first segment beyond those sent when the rate was decreased.
    beyond: u64,
}

impl Udt {
    fn new(syn: Span, decrease: f64) -> Self {
        let setup = Setup::default();
        Self {
            syn,
            backoff: 1.0 / (1.0 - decrease),
            draws: Draws::new(setup.seed),
            packet: f64::from(setup.mss),
            most: setup.max_window,
            slow_start: true,
            cwnd: setup.initial_window,
            period: 0.0,
            period_before: 0.0,
            arrival: 0.0,
            capacity: 0.0,
            pairs: Pairs::default(),
            looked: Time::ZERO,
            lost: false,
            reports: Reports {
                at: None,
                count: 1,
                decreases: 1,
                distance: 1,
                mean: 1.0,
                beyond: 0,
            },
            srtt: Span::ZERO,
            snd_nxt: 0,
        }
    }

    fn rtt_and_syn(&self) -> f64 {
        let rtt = match self.srtt {
            Span::ZERO => self.syn * FIRST_RTT,
            known => known,
        };
        (rtt + self.syn).as_secs_f64()
    }

    /// The rate is from now on what arrived, or the window's if nobody knows.
    fn end_slow_start(&mut self) {
        self.slow_start = false;
        let rate = match self.arrival > 0.0 {
            true => self.arrival,
            false => self.cwnd / self.rtt_and_syn(),
        };
        self.period = 1.0 / rate;
        self.period_before = self.period;
    }

    /// Packets by which the next SYN may carry more than the last.
    fn increase(&self) -> f64 {
        let rate = 1.0 / self.period;
        let mut spare = self.capacity - rate;
        // Below the rate of the last loss it climbs towards that one.
        if self.period > self.period_before {
            spare = spare.min(self.capacity / 9.0);
        }
        let least = 1.0 / self.packet;
        if spare <= 0.0 {
            return least;
        }
        let order = libm::ceil(libm::log10(spare * self.packet * 8.0));
        (libm::pow(10.0, order) * BETA / self.packet).max(least)
    }

    /// Once a SYN.
    fn control(&mut self, now: Time) {
        let since = now.saturating_since(self.looked);
        if since < self.syn {
            return;
        }
        // An ACK rarely comes on the tick: the next SYN begins where this one ends.
        let late = since >= self.syn * 2;
        self.looked = if late { now } else { self.looked + self.syn };
        if core::mem::take(&mut self.lost) || self.slow_start {
            return;
        }
        let syn = self.syn.as_secs_f64();
        self.period = self.period * syn / (self.period * self.increase() + syn);
    }

    /// A report of losses, the first of which is `seq`.
    fn report_loss(&mut self, seq: u64) {
        self.lost = true;
        if self.slow_start {
            self.reports.beyond = self.snd_nxt;
            return self.end_slow_start();
        }
        let reports = &mut self.reports;
        if seq >= reports.beyond {
            self.period_before = self.period;
            reports.mean = libm::ceil(0.875 * reports.mean + 0.125 * f64::from(reports.count));
            reports.count = 1;
            reports.decreases = 1;
            reports.distance = 1 + self.draws.below(reports.mean as u32);
        } else {
            reports.count += 1;
            let due = reports.decreases * reports.distance;
            if reports.decreases > MOST_DECREASES || reports.count != due {
                return;
            }
            reports.decreases += 1;
        }
        reports.beyond = self.snd_nxt;
        self.period *= self.backoff;
    }
}

impl Controller for Udt {
    fn set_up(&mut self, setup: &Setup) {
        setup.assert_valid();
        self.draws = Draws::new(setup.seed);
        self.packet = f64::from(setup.mss);
        self.most = setup.max_window;
        self.cwnd = setup.initial_window.min(setup.max_window);
    }

    fn on_delivery(&mut self, ev: &AckEvent) {
        self.snd_nxt = ev.snd_nxt;
    }

    fn on_ack(&mut self, ev: &AckEvent) {
        self.srtt = ev.srtt;
        let begins = ev.now.saturating_since(self.looked) >= self.syn;
        let known = |rate: &RateSample| ev.delivered >= ARRIVED && rate.interval > Span::ZERO;
        if let Some(rate) = ev.rate.filter(known) {
            let rate = rate.per_second();
            self.capacity = self.capacity.max(rate);
            if self.slow_start || self.arrival == 0.0 {
                self.arrival = rate;
            } else if begins {
                self.arrival = 0.875 * self.arrival + 0.125 * rate;
            }
        }
        if self.slow_start {
            let paired = self.pairs.add(ev.now, ev.delivered_now());
            self.capacity = self.capacity.max(paired.unwrap_or(0.0));
            self.cwnd += ev.delivered_now() as f64;
            if self.cwnd >= self.most {
                self.cwnd = self.most;
                self.end_slow_start();
            }
        } else {
            let window = self.arrival * self.rtt_and_syn() + SPARE;
            self.cwnd = window.max(2.0).min(self.most);
        }
        self.control(ev.now);
    }

    fn on_lost(&mut self, ev: &LostSegment) {
        if self.reports.at != Some(ev.now) {
            self.reports.at = Some(ev.now);
            self.report_loss(ev.seq);
        }
    }

    /// Losses have been reported one by one; what remains is a mark, or a loss that only the sender
    /// pretends.
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        let told = self.reports.at == Some(ev.now);
        if ev.kind != CongestionKind::LocalDrop && !told {
            self.reports.at = Some(ev.now);
            self.report_loss(self.snd_nxt);
        }
    }

    fn on_rto(&mut self, _ev: &RtoEvent) {}

    fn on_recovery_exit(&mut self, _now: Time) {}

    fn on_undo(&mut self, _now: Time) {}

    /// A lost SYN lowers the first window; a pause leaves rate and window.
    fn on_idle(&mut self, ev: &IdleEvent) {
        if self.arrival == 0.0 {
            self.cwnd = ev.window.max(1.0);
        }
    }

    fn exit_start_up(&mut self, _now: Time) {
        if self.slow_start {
            self.end_slow_start();
        }
    }

    fn on_mss_change(&mut self, ratio: f64) {
        assert_ratio(ratio);
        self.packet /= ratio;
        self.cwnd = (self.cwnd * ratio).clamp(1.0, self.most);
        self.period /= ratio;
        self.period_before /= ratio;
        self.arrival *= ratio;
        self.capacity *= ratio;
    }

    fn cap_window(&mut self, most: f64) {
        self.most = most.max(1.0);
        self.cwnd = self.cwnd.min(self.most);
    }

    fn take_over(&mut self, ev: &TakeOver) {
        self.cwnd = ev.window.min(self.most).max(1.0);
        self.srtt = ev.restart.srtt;
        self.snd_nxt = ev.restart.snd_nxt;
        if ev.ssthresh.is_finite() {
            self.end_slow_start();
        }
    }

    #[inline]
    fn window(&self) -> f64 {
        self.cwnd
    }

    /// There is none: infinite in slow start, the smallest window afterwards.
    fn ssthresh(&self) -> f64 {
        match self.slow_start {
            true => f64::INFINITY,
            false => 2.0,
        }
    }

    fn in_start_up(&self) -> bool {
        self.slow_start
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let bits = self.packet * 8.0 / self.period;
        (self.period > 0.0).then(|| Rate::from_bits_per_sec((bits as u64).max(1)))
    }

    fn reads_owd(&self) -> bool {
        false
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let rate = match self.period > 0.0 {
            true => 1.0 / self.period,
            false => f64::NAN,
        };
        visit("rate", rate);
        visit("capacity", self.capacity);
        visit("arrival", self.arrival);
        visit("loss_reports", f64::from(self.reports.count));
        visit("distance", f64::from(self.reports.distance));
    }
}

const PARAMS: &[ParamSpec] = &[
    param!(syn: time = Span::from_millis(10), Span::from_micros(100)..=Span::from_secs(1),
        "interval of rate control (SYN)", "draft-gg-udt-03"),
    param!(decrease: number = 1.0 / 9.0, 0.001..=0.9, "fraction",
        "part of the rate that a loss report takes: the period grows to 1.125 of itself",
        "draft-gg-udt-03; Gu and Grossman 2007")
    .removed(),
];

/// `udt`.
pub const UDT: Entry<Udt> = Entry {
    name: "udt",
    aliases: &[],
    about: "UDT: a sending rate that grows every 10 ms by the order of the spare capacity, and loses \
        a ninth with a loss report; capacity from delivery rates, not packet pairs",
    source: "Gu and Grossman, Computer Networks 51 (2007); draft-gg-udt-03",
    params: PARAMS,
    build: |p| Ok(Udt::new(p.time("syn"), p.number("decrease"))),
};

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: Span = Span::from_millis(10);

    /// A rate of zero would be the last: nothing leaves any more, and no ACK raises it.
    #[test]
    fn losses_leave_a_rate() {
        let mut udt = at(1e6, 1e6);
        for seq in 0..200 {
            udt.snd_nxt = 10 * seq;
            udt.report_loss(10 * seq);
        }
        assert_eq!(udt.pacing_rate(), Some(Rate::from_bits_per_sec(1)));
    }

    /// After slow start in packets of 1500 bytes, at `rate` where `capacity` was seen, bit/s.
    fn at(rate: f64, capacity: f64) -> Udt {
        let mut udt = UDT.make(&[]).unwrap();
        let setup = Setup {
            mss: 1500,
            ..Setup::default()
        };
        udt.set_up(&setup);
        udt.slow_start = false;
        (udt.period, udt.period_before) = (12_000.0 / rate, 12_000.0 / rate);
        (udt.capacity, udt.arrival) = (capacity / 12_000.0, rate / 12_000.0);
        udt.srtt = Span::from_millis(100);
        udt
    }

    fn rate(udt: &Udt) -> f64 {
        12_000.0 / udt.period
    }

    fn tick(udt: &mut Udt, n: u64) {
        let mut ev = AckEvent::new(Time::ZERO + SYN * n);
        (ev.acked, ev.srtt) = (1, Span::from_millis(100));
        udt.on_ack(&ev);
    }

    fn lose(udt: &mut Udt, seq: u64, ms: u64) {
        udt.on_lost(&LostSegment::new(
            Time::ZERO + Span::from_millis(ms),
            seq,
            1,
        ));
    }

    /// Gu and Grossman 2007, table of the increase for packets of 1500 bytes: spare capacity,
    /// Mbit/s, and packets a SYN.
    #[test]
    fn the_increase_follows_the_order_of_the_spare_capacity() {
        for (spare, packets) in [
            (5e3, 10.0),
            (500.0, 1.0),
            (50.0, 0.1),
            (5.0, 0.01),
            (0.5, 0.001),
            (0.05, 1.0 / 1500.0),
            (-1.0, 1.0 / 1500.0),
        ] {
            let mut udt = at(1e9, 1e9 + spare * 1e6);
            let before = 1.0 / udt.period;
            tick(&mut udt, 1);
            // A SYN carries so many packets more.
            let more = (1.0 / udt.period - before) * 0.01;
            assert!((more / packets - 1.0).abs() < 1e-6, "{spare}: {more}");
        }
    }

    #[test]
    fn one_step_per_syn_however_many_acks_come() {
        let mut udt = at(1e9, 2e9);
        for n in 0..1000 {
            let mut ev = AckEvent::new(Time::ZERO + SYN + Span::from_micros(50 * n));
            (ev.acked, ev.srtt) = (1, Span::from_millis(100));
            udt.on_ack(&ev);
        }
        // 50 ms of ACKs, ticks at 10, 20, 30, 40 and 50 ms: of 1.2 Mbit/s each.
        let steps = (rate(&udt) - 1e9) / 1.2e6;
        assert!((steps - 5.0).abs() < 1e-3, "{steps}");
    }

    /// draft-gg-udt-03: a new congestion period takes a ninth; of the reports within it every
    /// DecRandom-th takes another, five at most.
    #[test]
    fn a_loss_report_takes_a_ninth() {
        let mut udt = at(900e6, 900e6);
        udt.snd_nxt = 1000;
        lose(&mut udt, 990, 1);
        assert!((rate(&udt) / 800e6 - 1.0).abs() < 1e-9);
        // The same ACK shows more: one report.
        lose(&mut udt, 991, 1);
        assert!((rate(&udt) / 800e6 - 1.0).abs() < 1e-9);
        assert_eq!(udt.reports.distance, 1, "the mean is one report a period");
        // Losses of before the decrease: the second report is the DecCount x DecRandom-th, 1 x 1
        // has passed.
        lose(&mut udt, 980, 2);
        assert!((rate(&udt) / 800e6 - 1.0).abs() < 1e-9);
        // Beyond: a new period.
        lose(&mut udt, 1000, 3);
        assert!((rate(&udt) / (800e6 * 8.0 / 9.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn reports_of_one_period_decrease_at_random_distances() {
        let mut seen = [0; 9];
        for seed in 0..400 {
            let mut udt = at(1e9, 1e9);
            udt.draws = Draws::new(seed);
            udt.reports.mean = 8.0;
            udt.reports.count = 8;
            udt.snd_nxt = 1000;
            lose(&mut udt, 1, 0);
            let distance = udt.reports.distance;
            seen[distance as usize] += 1;
            for n in 1..100 {
                lose(&mut udt, 2, n);
            }
            let times = libm::log(1e9 / rate(&udt)) / libm::log(1.125);
            // The first, and up to five behind it; at a distance of one the count has passed.
            let expected = if distance == 1 { 1.0 } else { 6.0 };
            assert!((times - expected).abs() < 1e-6, "{distance}: {times}");
        }
        assert!(seen[1..].iter().all(|n| (25..80).contains(n)), "{seen:?}");
    }

    #[test]
    fn no_increase_in_a_syn_with_a_loss() {
        let mut udt = at(900e6, 900e6);
        lose(&mut udt, 5, 5);
        let after = rate(&udt);
        tick(&mut udt, 1);
        assert_eq!(rate(&udt), after);
        tick(&mut udt, 2);
        assert!(rate(&udt) > after);
    }

    /// Gu and Grossman 2007: from a decrease at capacity 90 % of what was given up is back within
    /// 7.5 s, whatever the capacity in decimal orders.
    #[test]
    fn recovery_takes_seven_and_a_half_seconds() {
        for capacity in [1e7, 1e8, 1e9, 1e10] {
            let mut udt = at(capacity, capacity);
            lose(&mut udt, 5, 5);
            let mut ticks = 1;
            while rate(&udt) < capacity * (1.0 - 0.1 / 9.0) {
                tick(&mut udt, ticks);
                ticks += 1;
            }
            let seconds = ticks as f64 * 0.01;
            assert!((6.7..=7.6).contains(&seconds), "{capacity}: {seconds}");
        }
    }

    /// Ten segments a round of 100 ms, an ACK per two, over a link that takes 1.2 ms for each: the
    /// ACKs of a burst tell the link's 833 packets/s, the round only 100. Of two ACKs at once
    /// nothing is learnt, and a few that were bunched on their way change no median.
    #[test]
    fn the_capacity_is_that_of_back_to_back_segments() {
        let mut udt = UDT.make(&[]).unwrap();
        udt.set_up(&Setup::default());
        let mut ack = |round: u64, us: u64| {
            let mut ev = AckEvent::new(Time::ZERO + Span::from_micros(100_000 * round + us));
            (ev.acked, ev.delivered, ev.srtt) = (2, 10, Span::from_millis(100));
            ev.rate = Some(RateSample::new(10, Span::from_millis(100)));
            udt.on_ack(&ev);
            udt.capacity
        };
        assert!((ack(1, 0) - 100.0).abs() < 1e-9, "one ACK has no distance");
        for round in 1..5 {
            for n in 0..5 {
                ack(round, 2400 * n);
            }
        }
        let capacity = ack(5, 0);
        assert!((capacity - 2.0 / 2.4e-3).abs() < 1e-6, "{capacity}");
        for n in 1..4 {
            ack(5, n);
            ack(5, n);
        }
        let bunched = ack(5, 2400);
        assert!((bunched - capacity).abs() < 1e-6, "{bunched}");
    }

    #[test]
    fn slow_start_ends_at_the_rate_that_arrives() {
        let mut udt = UDT.make(&[]).unwrap();
        udt.set_up(&Setup::default());
        assert_eq!((udt.window(), udt.pacing_rate()), (10.0, None));
        let mut ev = AckEvent::new(Time::ZERO + Span::from_millis(100));
        (ev.acked, ev.delivered, ev.srtt) = (10, 10, Span::from_millis(100));
        ev.rate = Some(RateSample::new(100, Span::from_millis(100)));
        udt.on_ack(&ev);
        assert_eq!((udt.window(), udt.in_start_up()), (20.0, true));
        lose(&mut udt, 3, 110);
        assert!(!udt.in_start_up());
        // 1000 segments of 1448 bytes a second.
        let rate = udt.pacing_rate().unwrap().as_bits_per_sec();
        assert_eq!(rate, 1000 * 1448 * 8);
        // A (RTT + SYN) + 16.
        ev.now += Span::from_millis(1);
        ev.rate = None;
        udt.on_ack(&ev);
        assert!((udt.window() - 126.0).abs() < 1e-9);
    }
}
