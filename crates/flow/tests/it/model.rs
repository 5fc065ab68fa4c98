//! A real sender and a real receiver over a random network, for every detector: after every call
//! the sender's promises hold, and in the end everything has arrived.
//!
//! The network drops, delays, reorders and duplicates data and ACKs, marks, and its local queue
//! refuses segments; from `bad_until` on it behaves. A run that has nothing left to happen, or does
//! not end, is a deadlock. A round trip takes time: at zero, RACK cannot tell a retransmission from
//! its original.

use std::collections::BTreeMap;

use fullpipe_cc::{PacingGains, StackSpec};
use fullpipe_flow::{
    Ack, AckCompression, Detector, LocalDrop, Preset, Receiver, ReceiverConfig, Reduction, Segment,
    Sender, SenderConfig, Validation,
};
use fullpipe_units::{Span, Time};
use proptest::prelude::*;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn hits(&mut self, p: f64) -> bool {
        ((self.next() >> 11) as f64) < p * (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }
}

/// Probabilities and delays by which the network misbehaves.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub drop: f64,
    pub drop_ack: f64,
    pub duplicate: f64,
    /// Extra delay of a packet, up to this many microseconds.
    pub jitter_us: u64,
    pub mark: f64,
    pub refuse: f64,
    /// Everything is lost in this window of time: a blackout, milliseconds.
    pub blackout: (u64, u64),
    pub bad_until: Time,
}

enum Event {
    Data(Segment),
    Ack(Ack),
    Sender,
    Receiver,
    Resume,
}

/// The pair, its network and its clock.
pub struct Pair {
    pub sender: Sender,
    pub receiver: Receiver,
    weather: Weather,
    dice: Dice,
    delay: Span,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    n: u64,
    window_end: u64,
    check: bool,
    newreno: bool,
    /// A run with more events than this is a loop.
    most_events: u64,
    /// Fast retransmits that left although the window was full.
    beyond: u64,
    /// Hole of the last partial ACK without SACK that did (RFC 6582 section 3.2 step 3).
    partial: Option<u64>,
    pub sent: u64,
    /// Most segments that the sender's answer to one event put on the wire.
    pub longest_burst: u64,
}

impl Pair {
    pub fn new(
        cfg: SenderConfig,
        rcfg: ReceiverConfig,
        stack: &str,
        weather: Weather,
        delay: Span,
        seed: u64,
    ) -> Self {
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = cfg.with_stack(&spec);
        // Without a handshake the first ACK brings the window; until then the initial window and
        // one probe with new data leave.
        let window_end = match rcfg.window.max {
            Some(w) if cfg.handshake => w,
            Some(w) => w.max(cfg.window.initial as u64 + u64::from(cfg.recovery.tlp)),
            None => u64::MAX,
        };
        let newreno = cfg.recovery.detector == Detector::NewReno;
        Self {
            newreno,
            sender: Sender::new(cfg, spec.controller(setup), seed),
            receiver: Receiver::new(rcfg),
            weather,
            dice: Dice(seed),
            delay,
            now: Time::ZERO,
            events: BTreeMap::new(),
            n: 0,
            window_end,
            check: true,
            most_events: 2_000_000,
            beyond: 0,
            partial: None,
            sent: 0,
            longest_burst: 0,
        }
    }

    /// Without the checks that walk the window.
    pub fn unchecked(mut self) -> Self {
        self.check = false;
        self
    }

    fn push(&mut self, at: Time, event: Event) {
        self.n += 1;
        self.events.insert((at, self.n), event);
    }

    fn bad(&self) -> bool {
        self.now < self.weather.bad_until
    }

    /// Fate of a packet: when its copies arrive.
    fn fate(&mut self, drop: f64) -> Vec<Time> {
        let at = self.now + self.delay;
        if !self.bad() {
            return vec![at];
        }
        let ms = self.now.as_nanos() / 1_000_000;
        if (self.weather.blackout.0..self.weather.blackout.1).contains(&ms) || self.dice.hits(drop)
        {
            return Vec::new();
        }
        let copies = 1 + u64::from(self.dice.hits(self.weather.duplicate));
        (0..copies)
            .map(|_| at + Span::from_micros(self.dice.below(self.weather.jitter_us)))
            .collect()
    }

    fn audit(&self) -> Result<(), String> {
        if self.check {
            self.sender
                .audit()
                .map_err(|e| format!("{:?}: {e}", self.now))?;
        }
        Ok(())
    }

    fn pump(&mut self) -> Result<(), String> {
        let before = self.sent;
        loop {
            let probes = self.sender.counts().probes;
            let (pipe, window) = (self.sender.flight(), self.sender.cwnd());
            let Some(mut segment) = self.sender.poll_transmit(self.now) else {
                break;
            };
            self.audit()?;
            if !segment.syn {
                let probe = self.sender.counts().probes > probes;
                if pipe >= window as u64 && !probe {
                    // The fast retransmit of each recovery (RFC 5681 section 3.2 step 3), and the
                    // retransmission of each timeout (RFC 6298 section 5.4).
                    let hole = self.newreno && segment.seq == self.sender.una();
                    if !hole || self.partial.replace(segment.seq) == Some(segment.seq) {
                        self.beyond += 1;
                    }
                    let counts = self.sender.counts();
                    let allowed = counts.loss_events + counts.timeouts;
                    if !segment.retransmission || self.beyond > allowed {
                        return Err(format!("sent with pipe {pipe} of window {window}"));
                    }
                }
                if segment.seq >= self.window_end {
                    return Err(format!("{} beyond {}", segment.seq, self.window_end));
                }
            }
            if self.bad() && self.dice.hits(self.weather.refuse) {
                self.sender.refuse(self.now, &segment);
                self.audit()?;
                let wait = Span::from_micros(1 + self.dice.below(20_000));
                self.push(self.now + wait, Event::Resume);
                break;
            }
            self.sent += 1;
            if self.sent - before > 1_000_000 {
                return Err("the sender never stops".into());
            }
            segment.ce = segment.ect && self.bad() && self.dice.hits(self.weather.mark);
            for at in self.fate(self.weather.drop) {
                self.push(at, Event::Data(segment));
            }
        }
        self.longest_burst = self.longest_burst.max(self.sent - before);
        let wake = self.sender.next_timeout();
        if wake != Time::MAX {
            if wake < self.now {
                return Err(format!("a timer in the past: {wake:?} at {:?}", self.now));
            }
            self.push(wake, Event::Sender);
        } else if self.sender.una() < self.sender.nxt() && !self.sender.is_stalled() {
            return Err(format!(
                "data outstanding and no timer in {:?}",
                self.sender.phase()
            ));
        }
        Ok(())
    }

    fn answer(&mut self, ack: Ack) {
        self.window_end = self.window_end.max(ack.window_end);
        for at in self.fate(self.weather.drop_ack) {
            self.push(at, Event::Ack(ack));
        }
    }

    /// Runs until the transfer is done; an error says what went wrong.
    pub fn run(&mut self, limit: Time) -> Result<Time, String> {
        self.sender.start(self.now);
        self.pump()?;
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.now = at;
            if self.n > self.most_events {
                return Err(format!(
                    "{} events by {at:?}: it goes round in circles",
                    self.n
                ));
            }
            if at > limit {
                let s = &self.sender;
                return Err(format!(
                    "not done by {limit:?}: {}..{} in {:?}, window {}, {:?}",
                    s.una(),
                    s.nxt(),
                    s.phase(),
                    s.cwnd(),
                    s.counts()
                ));
            }
            match event {
                Event::Data(segment) => {
                    if let Some(ack) = self.receiver.handle_segment(at, &segment) {
                        self.answer(ack);
                    }
                    if self.receiver.next_timeout() != Time::MAX {
                        self.push(self.receiver.next_timeout(), Event::Receiver);
                    }
                    continue;
                }
                Event::Receiver => {
                    if let Some(ack) = self.receiver.handle_timeout(at) {
                        self.answer(ack);
                    }
                    continue;
                }
                Event::Ack(ack) => self.sender.handle_ack(at, &ack),
                Event::Sender => {
                    if self.sender.next_timeout() > at {
                        continue;
                    }
                    self.sender.handle_timeout(at);
                }
                Event::Resume => self.sender.resume(),
            }
            self.audit()?;
            if self.sender.is_done() {
                return Ok(at);
            }
            self.pump()?;
        }
        Err(format!(
            "deadlock at {:?}: {}..{} in {:?}, stalled {}",
            self.now,
            self.sender.una(),
            self.sender.nxt(),
            self.sender.phase(),
            self.sender.is_stalled()
        ))
    }
}

/// Stacks of different shape: a plain law, a start-up, a whole-model law, spreading, pacing.
const STACKS: &[&str] = &[
    "reno",
    "cubic+hystart++",
    "highspeed+limited",
    "fast",
    "scalable+spread",
    "bic+paced",
    "ledbat",
];

fn weather() -> impl Strategy<Value = Weather> {
    let rate = |most: f64| prop_oneof![2 => Just(0.0), 2 => 0.0..most / 10.0, 1 => 0.0..most];
    (
        rate(0.4),
        rate(0.4),
        rate(0.3),
        prop_oneof![2 => Just(0u64), 2 => 0u64..2_000, 1 => 0u64..400_000],
        rate(0.2),
        rate(0.2),
        prop_oneof![
            3 => Just((0u64, 0u64)),
            1 => (0u64..1500, 0u64..3000).prop_map(|(a, l)| (a, a + l)),
        ],
    )
        .prop_map(
            |(drop, drop_ack, duplicate, jitter_us, mark, refuse, blackout)| Weather {
                drop,
                drop_ack,
                duplicate,
                jitter_us,
                mark,
                refuse,
                blackout,
                bad_until: Time::ZERO + Span::from_secs(5),
            },
        )
}

prop_compose! {
    fn sender_config()(
        detector in prop_oneof![
            Just(Detector::Rack), Just(Detector::Sack), Just(Detector::NewReno),
        ],
        reduction in prop_oneof![
            Just(Reduction::Immediate), Just(Reduction::Prr), Just(Reduction::PrrWindow),
        ],
        linux in any::<bool>(),
        tlp in any::<bool>(),
        frto in any::<bool>(),
        undo in any::<bool>(),
        again in any::<bool>(),
        ecn in any::<bool>(),
        handshake in any::<bool>(),
        transfer in 1u64..400,
        min_rto in prop_oneof![Just(10u64), Just(200), Just(1000)],
        local_drop in prop_oneof![
            Just(LocalDrop::React), Just(LocalDrop::Ignore), Just(LocalDrop::ExitSlowStart),
        ],
        pacing in prop::bool::weighted(0.2),
        validation in prop_oneof![
            Just(Validation::None), Just(Validation::Rfc5681),
            Just(Validation::Rfc2861), Just(Validation::Rfc7661),
        ],
        artificial in prop_oneof![4 => Just(0.0), 1 => 0.0..0.2],
        max_window in prop_oneof![2 => Just(f64::INFINITY), 1 => 1.0..30.0],
        iw in prop_oneof![Just(1.0), Just(2.0), Just(10.0), Just(64.0)],
    ) -> SenderConfig {
        let mut cfg = SenderConfig::preset(Preset::Y2026, 1500);
        cfg.recovery.detector = detector;
        cfg.recovery.reduction = reduction;
        if linux {
            // Everything of the preset that the fields below do not set.
            let kernel = SenderConfig::preset(Preset::Linux, 1500);
            cfg.rto = kernel.rto;
            cfg.recovery.recover_from_loss = true;
            cfg.recovery.loss_window = kernel.recovery.loss_window;
            cfg.timers.grain = kernel.timers.grain;
            cfg.recovery.timeout_reduces_in_recovery = false;
            cfg.timers.head_restarts_rto = true;
            cfg.host.send_buffer = kernel.host.send_buffer;
            cfg.timers.probe_margin = kernel.timers.probe_margin;
        }
        cfg.recovery.tlp = tlp;
        cfg.recovery.frto = frto;
        cfg.recovery.undo = undo;
        cfg.recovery.reduce_on_lost_retransmission = again;
        cfg.ecn = ecn;
        cfg.handshake = handshake;
        cfg.transfer = Some(transfer);
        cfg.rto.min = Span::from_millis(min_rto);
        cfg.host.local_drop = local_drop;
        cfg.pacing.gains = pacing.then(PacingGains::default);
        cfg.window.validation = validation;
        cfg.artificial_loss.probability = artificial;
        cfg.window.max = max_window;
        cfg.window.initial = iw;
        cfg
    }
}

prop_compose! {
    fn receiver_config()(
        ack_every in 1u32..5,
        ack_delay in 1u64..500,
        blocks in 0usize..5,
        window in prop_oneof![2 => Just(None), 1 => (1u64..40).prop_map(Some)],
        quick in 0u32..16,
        grows in any::<bool>(),
        merge in prop_oneof![1 => Just(None), 1 => (1u64..2000, 0u64..200, 1u32..50).prop_map(Some)],
        hz in prop_oneof![1 => Just(None), 1 => (50u32..1001).prop_map(Some)],
    ) -> ReceiverConfig {
        ReceiverConfig::preset(Preset::Y2026).with(|c| {
            c.acks.every = ack_every;
            c.acks.delay = Span::from_millis(ack_delay);
            c.acks.quick = quick;
            c.acks.compression = merge.map(|(us, slack_us, most)| AckCompression {
                delay: Span::from_micros(us),
                rtt_part: 20,
                slack: Span::from_micros(slack_us),
                most,
            });
            c.acks.hz = hz;
            c.sack.enabled = blocks > 0;
            c.sack.blocks = blocks.max(1);
            c.window.max = window;
            c.window.first = grows.then_some(1);
        })
    }
}

/// `PROPERTY_CASES` multiplies the number of networks.
fn times() -> u32 {
    let asked = std::env::var("PROPERTY_CASES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(1)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000 * times(),
        max_shrink_iters: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn everything_arrives_over_a_random_network(
        cfg in sender_config(),
        mut rcfg in receiver_config(),
        stack in 0..STACKS.len(),
        weather in weather(),
        delay_us in prop_oneof![Just(1u64), 1u64..1_000, 1_000u64..100_000],
        seed in any::<u64>(),
    ) {
        rcfg.sack.enabled &= cfg.recovery.detector != Detector::NewReno;
        let transfer = cfg.transfer.unwrap();
        let delay = Span::from_micros(delay_us);
        let mut pair = Pair::new(cfg, rcfg, STACKS[stack], weather, delay, seed);
        let done = pair.run(Time::ZERO + Span::from_secs(4000));
        prop_assert!(done.is_ok(), "{}", done.unwrap_err());
        prop_assert_eq!(pair.receiver.next_expected(), transfer);
        prop_assert_eq!(pair.receiver.counts().delivered, transfer);
        prop_assert_eq!(pair.sender.nxt(), transfer);
    }
}
