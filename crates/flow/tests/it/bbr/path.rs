//! A sender and a receiver with a bottleneck between them that a test changes while it runs, and
//! what BBR shows after every event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fullpipe_cc::{Controller, Setup, Stack, StackSpec};
use fullpipe_flow::{Ack, Preset, Receiver, ReceiverConfig, Segment, Sender, SenderConfig};
use fullpipe_units::{Span, Time};

pub const MSS: f64 = 1448.0;

/// States of BBR version 3 by the numbers that it reports.
pub const STARTUP: u32 = 0;
pub const DRAIN: u32 = 1;
pub const DOWN: u32 = 2;
pub const CRUISE: u32 = 3;
pub const REFILL: u32 = 4;
pub const UP: u32 = 5;
pub const PROBE_RTT: u32 = 6;

/// What the controller shows. Volumes in segments, rates in segments per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    pub at: f64,
    pub state: u32,
    pub max_bw: f64,
    pub bw_shortterm: f64,
    pub inflight_longterm: f64,
    pub inflight_shortterm: f64,
    pub min_rtt: f64,
    pub extra_acked: f64,
    pub full_bw_count: f64,
    pub round_count: f64,
    pub cycle_count: f64,
    pub cwnd: f64,
    pub inflight: f64,
    pub pacing_rate: f64,
}

impl Shown {
    /// BBR.bw.
    pub fn bw(&self) -> f64 {
        self.max_bw.min(self.bw_shortterm)
    }

    /// BBR.bdp.
    pub fn bdp(&self) -> f64 {
        self.bw() * self.min_rtt
    }

    /// The pacing gain in force, with the margin of 1 % taken out.
    pub fn pacing_gain(&self) -> f64 {
        self.pacing_rate / (0.99 * self.bw())
    }

    /// The largest quantum's offload budget: `3 * max(rate * 1 ms, 2)`.
    pub fn offload_budget(&self) -> f64 {
        3.0 * (self.pacing_rate * 1e-3).max(2.0)
    }

    /// Inflight(1.0).
    pub fn inflight_of_bdp(&self) -> f64 {
        self.bdp().max(self.offload_budget()).max(4.0)
    }

    /// InflightWithHeadroom().
    pub fn with_headroom(&self) -> f64 {
        let long = self.inflight_longterm;
        if long.is_infinite() {
            return long;
        }
        (long - (0.15 * long).max(1.0)).max(4.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Data(Segment),
    Ack(Ack),
}

/// An event in the heap; earlier ones first, then in the order of their making.
struct Pending(Reverse<(Time, u64)>, Event);

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Pending {}
impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

/// Which segments the network loses, by the number of its arrival at the bottleneck.
pub type Losses = Box<dyn FnMut(&Segment) -> bool>;

pub struct World {
    pub now: Time,
    pub sender: Sender<Stack>,
    receiver: Receiver,
    /// Bottleneck, segments/s; half the propagation delay each way.
    pub rate: f64,
    half: Span,
    /// Segments that the queue holds, the one in transmission included.
    pub buffer: f64,
    free: Time,
    /// ACKs reach the sender only at multiples of this.
    pub aggregation: Option<Span>,
    /// Extra delay of the ACKs.
    pub ack_delay: Span,
    /// Extra delay of a data segment.
    pub data_delay: Box<dyn FnMut(&Segment) -> Span>,
    pub losses: Losses,
    /// Token bucket: rate and depth in segments, tokens at the time of the last arrival.
    pub policer: Option<(f64, f64)>,
    tokens: (f64, Time),
    /// The application writes at this rate, segments/s; `None`: it always has data.
    pub app: Option<f64>,
    written: (f64, Time),
    last_ack: Time,
    events: BinaryHeap<Pending>,
    made: u64,
    pub offered: u64,
    pub dropped: u64,
    pub log: Vec<Shown>,
    /// Largest and summed queue, segments, at arrivals.
    pub queue_max: f64,
    queue_sum: f64,
    pub seen: Shown,
    /// After every event, not only at changes of the state.
    pub record: bool,
    pub all: Vec<Shown>,
}

impl World {
    /// `stack` over `mbit` Mbit/s of payload, `rtt_ms` milliseconds and `buffer` BDPs.
    pub fn new(stack: &str, mbit: f64, rtt_ms: f64, buffer: f64) -> Self {
        let rate = mbit * 1e6 / (8.0 * MSS);
        let bdp = rate * rtt_ms * 1e-3;
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.handshake = true;
            c.transfer = Some(0);
        });
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = cfg.with_stack(&spec);
        let cc = spec.controller(Setup { seed: 7, ..setup });
        let mut sender = Sender::new(cfg, cc, 7);
        sender.start(Time::ZERO);
        Self {
            now: Time::ZERO,
            sender,
            receiver: Receiver::new(ReceiverConfig::preset(Preset::Y2026)),
            rate,
            half: Span::from_secs_f64(rtt_ms * 5e-4),
            buffer: (buffer * bdp).max(1.0),
            free: Time::ZERO,
            aggregation: None,
            ack_delay: Span::ZERO,
            data_delay: Box::new(|_| Span::ZERO),
            losses: Box::new(|_| false),
            policer: None,
            tokens: (0.0, Time::ZERO),
            app: None,
            written: (0.0, Time::ZERO),
            last_ack: Time::ZERO,
            events: BinaryHeap::new(),
            made: 0,
            offered: 0,
            dropped: 0,
            log: Vec::new(),
            queue_max: 0.0,
            queue_sum: 0.0,
            seen: Shown::default(),
            record: false,
            all: Vec::new(),
        }
    }

    pub fn bdp(&self) -> f64 {
        self.rate * self.rtt().as_secs_f64()
    }

    pub fn rtt(&self) -> Span {
        self.half * 2
    }

    pub fn seconds(&self) -> f64 {
        self.now.as_secs_f64()
    }

    fn push(&mut self, at: Time, event: Event) {
        self.made += 1;
        self.events.push(Pending(Reverse((at, self.made)), event));
    }

    /// The application has written as much as its rate allows, or more than is sent at once.
    fn write(&mut self) {
        match self.app {
            None => self.written.0 = self.written.0.max((self.sender.nxt() + 2) as f64),
            Some(rate) => {
                let since = self.now.saturating_since(self.written.1).as_secs_f64();
                self.written.0 += rate * since;
            }
        }
        self.written.1 = self.now;
        self.sender.write_until(self.written.0 as u64);
    }

    /// From now on the application writes at `rate` segments/s; what was written before stays.
    pub fn limit_application(&mut self, rate: f64) {
        self.app = Some(rate);
        self.written.1 = self.now;
    }

    /// One departure time or event; true while something happens.
    pub fn step(&mut self) {
        self.write();
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if segment.syn {
                self.answer_syn();
            } else {
                self.offer(segment);
            }
            self.write();
        }
        let event = self.events.peek().map_or(Time::MAX, |p| p.0.0.0);
        let app = match self.app {
            // The next whole segment of the application.
            Some(rate) if rate > 0.0 => {
                let missing = 1.0 - self.written.0.fract();
                self.now + Span::from_secs_f64(missing / rate) + Span::from_nanos(1)
            }
            _ => Time::MAX,
        };
        let next = event
            .min(self.sender.next_timeout())
            .min(self.receiver.next_timeout())
            .min(app);
        assert_ne!(next, Time::MAX, "nothing to wait for");
        self.now = next.max(self.now);
        if event == next {
            let Pending(_, event) = self.events.pop().unwrap();
            match event {
                Event::Data(segment) => {
                    if let Some(ack) = self.receiver.handle_segment(self.now, &segment) {
                        self.send_ack(ack);
                    }
                }
                Event::Ack(ack) => self.sender.handle_ack(self.now, &ack),
            }
        } else if self.receiver.next_timeout() == next {
            if let Some(ack) = self.receiver.handle_timeout(self.now) {
                self.send_ack(ack);
            }
        } else if self.sender.next_timeout() == next {
            self.sender.handle_timeout(self.now);
        }
        self.look();
    }

    fn answer_syn(&mut self) {
        let ack = crate::host::syn_ack(u64::MAX);
        let at = self.now + self.half * 2;
        self.push(at, Event::Ack(ack));
    }

    fn offer(&mut self, segment: Segment) {
        self.offered += 1;
        let queue = self.free.saturating_since(self.now).as_secs_f64() * self.rate;
        self.queue_max = self.queue_max.max(queue);
        self.queue_sum += queue;
        let full = queue + 1.0 > self.buffer + 1.0;
        if full || self.is_policed() || (self.losses)(&segment) {
            self.dropped += 1;
            return;
        }
        self.free = self.free.max(self.now) + Span::from_secs_f64(1.0 / self.rate);
        let at = self.free + self.half + (self.data_delay)(&segment);
        self.push(at, Event::Data(segment));
    }

    fn is_policed(&mut self) -> bool {
        let Some((rate, depth)) = self.policer else {
            return false;
        };
        let since = self.now.saturating_since(self.tokens.1).as_secs_f64();
        let tokens = (self.tokens.0 + rate * since).min(depth);
        let passes = tokens >= 1.0;
        self.tokens = (tokens - f64::from(u8::from(passes)), self.now);
        !passes
    }

    fn send_ack(&mut self, ack: Ack) {
        let mut at = self.now + self.half + self.ack_delay;
        if let Some(grain) = self.aggregation {
            let grain = grain.as_nanos();
            at = Time::from_nanos(at.as_nanos().div_ceil(grain) * grain);
        }
        self.last_ack = self.last_ack.max(at);
        self.push(self.last_ack, Event::Ack(ack));
    }

    fn look(&mut self) {
        let mut shown = Shown {
            at: self.seconds(),
            cwnd: self.sender.cwnd(),
            inflight: self.sender.flight() as f64,
            pacing_rate: self.sender.pacing_rate().unwrap_or(0.0) / (8.0 * MSS),
            ..Shown::default()
        };
        self.sender.controller().report(&mut |name, value| {
            let set = if value.is_nan() { f64::INFINITY } else { value };
            match name {
                "state" => shown.state = value as u32,
                "max_bw" => shown.max_bw = value,
                "bw_shortterm" => shown.bw_shortterm = set,
                "inflight_longterm" => shown.inflight_longterm = set,
                "inflight_shortterm" => shown.inflight_shortterm = set,
                "min_rtt" => shown.min_rtt = set,
                "extra_acked" => shown.extra_acked = value,
                "full_bw_count" => shown.full_bw_count = value,
                "round_count" => shown.round_count = value,
                "cycle_count" => shown.cycle_count = value,
                _ => {}
            }
        });
        if shown.state != self.seen.state || self.log.is_empty() {
            self.log.push(shown);
        }
        self.seen = shown;
        if self.record {
            self.all.push(shown);
        }
    }

    /// Runs for `seconds` more.
    pub fn run(&mut self, seconds: f64) {
        self.run_while(seconds, |_| true);
    }

    /// Runs while `goes_on` holds, at most for `seconds`; whether it ended before.
    pub fn run_while(&mut self, seconds: f64, goes_on: impl Fn(&Shown) -> bool) -> bool {
        let end = self.seconds() + seconds;
        while self.seconds() < end {
            self.step();
            if !goes_on(&self.seen) {
                return true;
            }
        }
        false
    }

    /// Runs until the state is `state`.
    #[track_caller]
    pub fn reach(&mut self, state: u32, seconds: f64) -> Shown {
        assert!(
            self.run_while(seconds, |s| s.state != state),
            "state {state} not reached within {seconds} s: {:?}",
            self.seen
        );
        self.seen
    }

    /// Runs until the state is no longer `state`.
    #[track_caller]
    pub fn leave(&mut self, state: u32, seconds: f64) -> Shown {
        assert_eq!(self.seen.state, state);
        assert!(
            self.run_while(seconds, |s| s.state == state),
            "state {state} not left within {seconds} s: {:?}",
            self.seen
        );
        self.seen
    }

    /// States in the order in which they were entered, since entry `from` of the log.
    pub fn states(&self, from: usize) -> Vec<u32> {
        self.log[from..].iter().map(|s| s.state).collect()
    }

    /// Goodput of the next `seconds` as a part of the bottleneck.
    pub fn utilization(&mut self, seconds: f64) -> f64 {
        let (from, delivered) = (self.seconds(), self.receiver.counts().delivered);
        (self.queue_sum, self.offered, self.dropped) = (0.0, 0, 0);
        self.run(seconds);
        let delivered = self.receiver.counts().delivered - delivered;
        delivered as f64 / (self.seconds() - from) / self.rate
    }

    /// Mean queue that a segment met since the last [`World::utilization`], segments.
    pub fn mean_queue(&self) -> f64 {
        self.queue_sum / self.offered as f64
    }

    /// Part of the segments that was lost since the last [`World::utilization`].
    pub fn loss_rate(&self) -> f64 {
        self.dropped as f64 / self.offered as f64
    }
}
