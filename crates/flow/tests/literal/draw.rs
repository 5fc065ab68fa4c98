//! Histories: a setup, and the fates of its packets; random ones.

use std::fmt::Write;

use fullpipe_flow::{self as flow, Preset, SenderConfig, Validation};
use fullpipe_units::{Span, Time};

use crate::law::{self, Law};
use crate::path::{Echo, Fate, Fates, Host};
use crate::reference::{
    Choices, Departures, Detector, Literal, NewReno, OnTimeout, Reduction, Reference,
};

/// One history: everything that two runs of it have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    pub detector: Detector,
    pub reduction: Reduction,
    pub tlp: bool,
    pub frto: bool,
    pub undo: bool,
    pub reduce_again: bool,
    /// A timeout spares what was sent a moment ago (RFC 8985 section 6.3).
    pub spare: bool,
    /// The timer's constants of preset 2003 instead of 2026.
    pub old_timer: bool,
    pub law: law::Kind,
    /// Initial window, segments.
    pub window: u32,
    /// Segments in all.
    pub transfer: u64,
    /// One way, microseconds.
    pub delay_us: u64,
    /// Between two packets on the path, microseconds.
    pub gap_us: u64,
    pub host: Host,
    pub fates: Fates,
    /// Known differences that the reference imitates.
    pub departs: Departures,
}

impl History {
    /// Nothing happens in it, and nothing optional is on: what differs is printed.
    pub fn plain() -> Self {
        Self {
            detector: Detector::Rack,
            reduction: Reduction::Prr,
            tlp: false,
            frto: false,
            undo: false,
            reduce_again: false,
            spare: false,
            old_timer: false,
            law: law::Kind::Fixed,
            window: 10,
            transfer: 10,
            delay_us: 30_000,
            gap_us: 100,
            host: Host {
                every: 1,
                wait_us: 40_000,
                sack: true,
                dsack: false,
                echo: Echo::Never,
                window: None,
            },
            fates: Fates::default(),
            departs: Departures::TODAY,
        }
    }

    fn config(&self) -> SenderConfig {
        let times = match self.old_timer {
            true => Preset::Y2003,
            false => Preset::Y2026,
        };
        let rto = SenderConfig::preset(times, 1500).rto;
        SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.handshake = false;
            c.transfer = Some(self.transfer);
            c.window.initial = f64::from(self.window);
            c.window.validation = Validation::None;
            c.rto = rto;
            c.timers.head_restarts_rto = false;
            c.recovery.detector = match self.detector {
                Detector::Sack => flow::Detector::Sack,
                Detector::Rack => flow::Detector::Rack,
                Detector::NewReno => flow::Detector::NewReno,
            };
            c.recovery.reduction = match self.reduction {
                Reduction::Immediate => flow::Reduction::Immediate,
                Reduction::Prr => flow::Reduction::Prr,
            };
            c.recovery.tlp = self.tlp;
            c.recovery.frto = self.frto;
            c.recovery.undo = self.undo;
            c.recovery.reduce_on_lost_retransmission = self.reduce_again;
            c.recovery.recover_from_loss = self.reduce_again;
            if self.spare {
                c.recovery.loss_window = flow::LossWindow::FlightPlusOne;
            }
        })
    }

    /// The real sender.
    pub fn sender(&self) -> flow::Sender<Law> {
        let law = Law::new(self.law, f64::from(self.window));
        let mut sender = flow::Sender::new(self.config(), law, 1);
        sender.start(Time::ZERO);
        sender
    }

    /// The literal one.
    pub fn reference(&self) -> Box<dyn Literal> {
        let cfg = self.config();
        let ns = Span::as_nanos;
        let choices = Choices {
            detector: self.detector,
            reduction: self.reduction,
            tlp: self.tlp,
            frto: self.frto,
            undo: self.undo,
            on_timeout: match self.spare {
                true => OnTimeout::Old,
                false => OnTimeout::All,
            },
            reduce_again: self.reduce_again,
            rto_min: ns(cfg.rto.min),
            rto_max: ns(cfg.rto.max),
            granularity: ns(cfg.rto.granularity),
            rto_initial: ns(cfg.rto.initial),
            rto_rounds: cfg.rto.rule == flow::RtoRule::Rounds,
            max_ack_delay: ns(cfg.timers.max_ack_delay),
            departs: self.departs,
        };
        // Until the first ACK nothing limits it.
        let law = Law::new(self.law, f64::from(self.window));
        match self.detector {
            Detector::NewReno => Box::new(NewReno::new(choices, law, self.transfer, u64::MAX)),
            _ => Box::new(Reference::new(choices, law, self.transfer, u64::MAX)),
        }
    }

    /// Rust that builds it again.
    pub fn paste(&self) -> String {
        let mut text = String::from("History {\n");
        macro_rules! field {
            ($($name:ident)+) => {$(
                if self.$name != Self::plain().$name {
                    let value = format!("{:?}", self.$name);
                    let path = match stringify!($name) {
                        "detector" => "Detector::",
                        "reduction" => "Reduction::",
                        "law" => "law::Kind::",
                        _ => "",
                    };
                    writeln!(text, "    {}: {path}{value},", stringify!($name)).unwrap();
                }
            )+};
        }
        field!(detector reduction tlp frto undo reduce_again spare old_timer law window transfer);
        field!(delay_us gap_us);
        let (host, plain) = (self.host, Self::plain().host);
        if host != plain {
            text.push_str("    host: Host {\n");
            macro_rules! host {
                ($($name:ident)+) => {$(
                    if host.$name != plain.$name {
                        let value = format!("{:?}", host.$name);
                        let path = if stringify!($name) == "echo" { "Echo::" } else { "" };
                        writeln!(text, "        {}: {path}{value},", stringify!($name)).unwrap();
                    }
                )+};
            }
            host!(every wait_us sack dsack echo window);
            text.push_str("        ..History::plain().host\n    },\n");
        }
        let list = |fates: &std::collections::BTreeMap<u64, Fate>| -> String {
            let all: Vec<String> = fates
                .iter()
                .map(|(n, f)| format!("({n}, Fate::{f:?})"))
                .collect();
            all.join(", ")
        };
        writeln!(
            text,
            "    fates: fates(&[{}], &[{}]),",
            list(&self.fates.data),
            list(&self.fates.acks)
        )
        .unwrap();
        text.push_str("    ..History::plain()\n}");
        text
    }
}

/// Fates from lists.
pub fn fates(data: &[(u64, Fate)], acks: &[(u64, Fate)]) -> Fates {
    Fates {
        data: data.iter().copied().collect(),
        acks: acks.iter().copied().collect(),
    }
}

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
        self.next() % n.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// One way's weather.
#[derive(Clone, Copy, Debug, Default)]
struct Weather {
    /// Loss of single packets.
    drop: f64,
    /// Gilbert-Elliott: a burst begins, and ends, with these probabilities; within it everything
    /// is lost.
    burst: (f64, f64),
    late: f64,
    most_late_us: u64,
    twice: f64,
}

/// Random fates, remembered.
#[derive(Clone, Debug)]
pub struct Sky {
    dice: Dice,
    data: Weather,
    acks: Weather,
    /// Nothing arrives in these, nanoseconds.
    outage: Option<(u64, u64)>,
    /// Data that leaves in the first arrives as if it had left at its end: a delay spike.
    spike: Option<(u64, u64)>,
    in_burst: [bool; 2],
    pub seen: Fates,
}

impl Sky {
    fn fate(&mut self, way: usize, now: Time) -> Option<Fate> {
        let w = [self.data, self.acks][way];
        let now = now.as_nanos();
        let inside = |at: Option<(u64, u64)>| at.filter(|&(a, b)| (a..b).contains(&now));
        let flip = if self.in_burst[way] {
            w.burst.1
        } else {
            w.burst.0
        };
        self.in_burst[way] ^= self.dice.hits(flip);
        if inside(self.outage).is_some() || self.in_burst[way] || self.dice.hits(w.drop) {
            return Some(Fate::Drop);
        }
        if let Some((_, end)) = inside(self.spike)
            && way == 0
        {
            return Some(Fate::Late((end - now) / 1000));
        }
        if self.dice.hits(w.late) {
            return Some(Fate::Late(1 + self.dice.below(w.most_late_us)));
        }
        let twice = self.dice.hits(w.twice);
        twice.then(|| Fate::Twice(1 + self.dice.below(w.most_late_us)))
    }

    pub fn data(&mut self, n: u64, now: Time) -> Option<Fate> {
        let fate = self.fate(0, now);
        fate.inspect(|&f| {
            self.seen.data.insert(n, f);
        })
    }

    pub fn ack(&mut self, n: u64, now: Time) -> Option<Fate> {
        let fate = self.fate(1, now);
        fate.inspect(|&f| {
            self.seen.acks.insert(n, f);
        })
    }
}

/// What a set of histories has in common: `narrow` turns off what it leaves out.
pub type Narrow = fn(&mut History);

/// A random history of `seed`, its fates still to be drawn.
pub fn draw(seed: u64, narrow: Narrow) -> (History, Sky) {
    let mut d = Dice(seed.wrapping_mul(0x2545_F491_4F6C_DD1D));
    for _ in 0..3 {
        d.next();
    }
    let rates = [0.0, 0.0, 0.002, 0.01, 0.03, 0.1, 0.3];
    let weather = |d: &mut Dice| Weather {
        drop: d.one_of(&rates),
        burst: match d.below(3) {
            0 => (d.one_of(&[0.005, 0.02, 0.1]), d.one_of(&[0.1, 0.3, 0.6])),
            _ => (0.0, 1.0),
        },
        late: d.one_of(&[0.0, 0.0, 0.01, 0.05, 0.3]),
        most_late_us: d.one_of(&[300, 3_000, 30_000, 200_000]),
        twice: d.one_of(&[0.0, 0.0, 0.0, 0.02, 0.1]),
    };
    let (data, acks) = (weather(&mut d), weather(&mut d));
    let span = |d: &mut Dice, one_in: u64, most_ms: u64| {
        let at = d.below(1_000) * 1_000_000;
        let long = (1 + d.below(most_ms)) * 1_000_000;
        (d.below(one_in) == 0).then_some((at, at + long))
    };
    let (outage, spike) = (span(&mut d, 4, 3_000), span(&mut d, 3, 4_000));
    let mut h = History {
        detector: d.one_of(&[Detector::Rack, Detector::Rack, Detector::Sack]),
        reduction: d.one_of(&[Reduction::Prr, Reduction::Prr, Reduction::Immediate]),
        tlp: d.hits(0.5),
        frto: d.hits(0.5),
        undo: d.hits(0.5),
        reduce_again: d.hits(0.7),
        spare: d.hits(0.3),
        old_timer: d.hits(0.3),
        law: d.one_of(&[law::Kind::Reno, law::Kind::Reno, law::Kind::Fixed]),
        window: d.one_of(&[1, 2, 3, 4, 6, 10, 10, 10, 20]),
        transfer: 1 + d.below(d.clone().one_of(&[5, 15, 40, 100])),
        delay_us: d.one_of(&[1_000, 10_000, 30_000, 50_000, 300_000, 700_000]),
        gap_us: d.one_of(&[10, 120, 1_200, 5_000]),
        host: Host {
            every: d.one_of(&[1, 2, 2, 4]),
            wait_us: d.one_of(&[10_000, 40_000, 100_000, 300_000]),
            sack: true,
            dsack: d.hits(0.5),
            echo: d.one_of(&[Echo::Never, Echo::Recent, Echo::InOrder]),
            window: d.one_of(&[None, None, None, Some(4), Some(12)]),
        },
        fates: Fates::default(),
        departs: Departures::TODAY,
    };
    // Probes belong to RACK, and their first wait is that of the modern timer (1 s).
    h.tlp &= h.detector == Detector::Rack;
    h.old_timer &= !h.tlp;
    h.spare &= h.detector == Detector::Rack;
    narrow(&mut h);
    let sky = Sky {
        dice: d,
        data,
        acks,
        outage,
        spike,
        in_burst: [false; 2],
        seen: Fates::default(),
    };
    (h, sky)
}
