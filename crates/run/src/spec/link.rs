//! A link: a queue discipline over a buffer, a transmitter, a propagation delay, and what goes
//! wrong on the way.

use std::sync::Arc;

use fullpipe_units::{Rate, Span, Time};

use super::DeliveryTrace;
use crate::rng::ComponentRng;

/// A link.
///
/// A packet meets, in this order: random loss, the policer, the queue discipline and the buffer,
/// the transmitter, the delay (with jitter), reordering.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Unique name; seeds the link's generators.
    pub name: String,
    /// Capacity; `None`: no transmitter, only delay.
    pub rate: Option<Rate>,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The delay is longer by a uniform part of this, drawn once per run from the link's generator.
    pub delay_spread: Span,
    /// Room for packets that wait or are being transmitted.
    pub buffer: Buffer,
    /// Who is dropped or marked, and who is sent next; nobody on a link that only delays. Where it
    /// decides at the exit (CoDel, FQ-CoDel), a `buffer` given as a time means that time's bytes at
    /// the first rate.
    pub discipline: Discipline,
    /// Random loss at the entry.
    pub loss: Loss,
    /// Random loss drops ACKs, SYNs and pings too, not only data and datagrams.
    pub loss_of_acks: bool,
    /// Each packet's delay is longer by a uniform part of this; order is kept.
    pub jitter: Span,
    /// Some packets are overtaken by later ones.
    pub reorder: Option<Reorder>,
    /// A token bucket at the entry that drops what exceeds its rate.
    pub policer: Option<Policer>,
    /// Changes over time, earliest first; their rates do not apply to a `trace`.
    pub schedule: Vec<Change>,
    /// Delivery opportunities in place of `rate`.
    pub trace: Option<Arc<DeliveryTrace>>,
    /// Record the queueing delay of every packet and the queue over time.
    pub watched: bool,
    /// It is the transmit queue of a host's own interface: where it is full, the host stalls.
    pub is_interface: bool,
}

impl LinkSpec {
    /// A drop-tail link with no impairment; watched if it has a rate.
    pub fn new(name: &str, rate: Option<Rate>, delay: Span, buffer: Buffer) -> Self {
        Self {
            name: name.to_owned(),
            rate,
            delay,
            delay_spread: Span::ZERO,
            buffer,
            discipline: Discipline::DropTail,
            loss: Loss::None,
            loss_of_acks: false,
            jitter: Span::ZERO,
            reorder: None,
            policer: None,
            schedule: Vec::new(),
            trace: None,
            watched: rate.is_some(),
            is_interface: false,
        }
    }

    /// A link that only delays.
    pub fn pure_delay(name: &str, delay: Span) -> Self {
        Self::new(name, None, delay, Buffer::Unlimited)
    }

    /// True if the link has nothing but a buffer, a rate, a delay and random loss.
    pub fn is_fifo(&self) -> bool {
        // Every field, so that a new one is not forgotten.
        let Self {
            name: _,
            rate,
            delay: _,
            delay_spread: _,
            buffer: _,
            discipline,
            loss: _,
            loss_of_acks,
            jitter,
            reorder,
            policer,
            schedule,
            trace,
            watched: _,
            is_interface: _,
        } = self;
        // A rate of zero is an outage that never ends.
        rate.is_none_or(|rate| rate.as_bits_per_sec() > 0)
            && *discipline == Discipline::DropTail
            && !loss_of_acks
            && *jitter == Span::ZERO
            && reorder.is_none()
            && policer.is_none()
            && schedule.is_empty()
            && trace.is_none()
    }

    /// Bits per second at the start; of a trace, its mean.
    pub fn first_rate(&self) -> u64 {
        match (&self.trace, self.rate) {
            (Some(trace), _) => trace.mean_rate(),
            (None, rate) => rate.map_or(0, Rate::as_bits_per_sec),
        }
    }

    /// Packets that may wait in a discipline of Linux: a buffer has one more, in the transmitter.
    /// Its limits are numbers of packets (`tc-codel(8)`), so bytes and times become packets of 1500
    /// bytes.
    pub fn linux_limit(&self) -> u64 {
        let packets = match self.buffer {
            Buffer::Packets(n) => n,
            Buffer::Bytes(n) => n / 1500,
            Buffer::Time(t) => (self.first_rate() as f64 * t.as_secs_f64() / 12e3) as u64,
            Buffer::Unlimited => MOST_PACKETS,
        };
        packets.saturating_sub(1).clamp(1, MOST_PACKETS)
    }

    /// Bytes that may wait in RED of Linux, whose limit is one of bytes: a buffer in packets has
    /// those of the path.
    pub fn linux_bytes(&self) -> u64 {
        let packet = match self.buffer {
            Buffer::Packets(_) => self.discipline.mtu().unwrap_or(MTU),
            Buffer::Bytes(_) | Buffer::Time(_) | Buffer::Unlimited => MTU,
        };
        // `struct tc_red_qopt` has 32 bits.
        (self.linux_limit() * u64::from(packet)).min(u64::from(u32::MAX))
    }

    /// Most packets that there may be in the queue and in transmission, if that is limited.
    pub fn most_packets(&self) -> Option<u64> {
        match (self.buffer, self.discipline, self.discipline.by()) {
            // Its limit is one of bytes.
            (_, Discipline::Red(_), Some(QueueRule::Linux)) => None,
            (_, _, Some(QueueRule::Linux)) => Some(self.linux_limit() + 1),
            (Buffer::Packets(n), ..) => Some(n),
            _ => None,
        }
    }

    /// The link's part of its spread of delays in the run with `seed`.
    pub fn drawn_spread(&self, seed: u64) -> Span {
        if self.delay_spread == Span::ZERO {
            return Span::ZERO;
        }
        let mut rng = ComponentRng::new(seed, &format!("{} spread", self.name));
        Span::from_nanos((self.delay_spread.as_nanos() as f64 * rng.uniform()) as u64)
    }

    /// What the schedule adds to `delay` from one time to another, in the mean, seconds; below zero
    /// where it takes away.
    pub fn scheduled_delay_s(&self, from: Time, to: Time) -> f64 {
        let given = self.delay.as_secs_f64();
        let (mut at, mut now, mut area) = (from, given, 0.0);
        for change in self.schedule.iter().filter(|c| c.delay.is_some()) {
            let until = change.at.clamp(at, to.max(from));
            area += (now - given) * (until - at).as_secs_f64();
            at = until;
            if change.at <= to {
                now = change.delay.map_or(now, Span::as_secs_f64);
            }
        }
        area += (now - given) * to.saturating_since(at).as_secs_f64();
        match to.saturating_since(from).as_secs_f64() {
            0.0 => now - given,
            length => area / length,
        }
    }

    /// Transmission time and delay of a packet of `size` bytes that finds the link idle, at its
    /// first rate and delay; an opportunity of a trace counts as taking no time.
    pub fn unloaded(&self, size: u16, seed: u64) -> Span {
        let rate = self.rate.filter(|_| self.trace.is_none());
        let rate = rate.map_or(0, Rate::as_bits_per_sec);
        let ns = (u64::from(size) * 8_000_000_000).checked_div(rate);
        Span::from_nanos(ns.unwrap_or(0)) + self.delay + self.drawn_spread(seed)
    }
}

/// Limit of a kernel's discipline without one.
const MOST_PACKETS: u64 = 1_000_000;

/// Size of a buffer, the packet in transmission included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Packets.
    Packets(u64),
    /// Bytes of packets.
    Bytes(u64),
    /// Time to drain: a packet that would leave later than this after its arrival is dropped.
    Time(Span),
    /// No limit.
    Unlimited,
}

/// Queue discipline. Where one marks, a packet that is not ECN-capable is dropped instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Discipline {
    /// First in, first out; what finds no room is lost.
    DropTail,
    /// Random early detection (Floyd and Jacobson 1993; adaptive: Floyd, Gummadi, Shenker 2001).
    Red(Red),
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(Pie),
    /// Controlled delay (RFC 8289).
    Codel(Codel),
    /// Flow queueing with controlled delay (RFC 8290).
    FqCodel(FqCodel),
}

impl Discipline {
    /// True if it marks packets instead of dropping them.
    pub fn marks(&self) -> bool {
        match self {
            Self::DropTail => false,
            Self::Red(red) => red.ecn,
            Self::Pie(pie) => pie.ecn.is_some(),
            Self::Codel(codel) => codel.marks(),
            Self::FqCodel(fq) => fq.codel.marks(),
        }
    }

    /// Bytes of a full packet of the path, where it matters.
    pub fn mtu(&self) -> Option<u32> {
        match self {
            Self::DropTail => None,
            Self::Red(red) => Some(red.mtu),
            Self::Pie(pie) => Some(pie.mtu),
            Self::Codel(codel) => Some(codel.mtu),
            Self::FqCodel(fq) => Some(fq.codel.mtu),
        }
    }

    /// Whose it is; `None`: everybody's.
    pub fn by(&self) -> Option<QueueRule> {
        match self {
            Self::DropTail => None,
            Self::Red(red) => Some(red.by),
            Self::Pie(pie) => Some(pie.by),
            Self::Codel(codel) => Some(codel.by),
            Self::FqCodel(fq) => Some(fq.codel.by),
        }
    }
}

/// Whose queue discipline it is, where a kernel or a simulator departs from the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueRule {
    /// The RFC; RED: the papers.
    #[default]
    Rfc,
    /// Linux 6.1 (`net/sched`): fixed-point arithmetic, timers in ticks, limits of its own.
    Linux,
    /// ns-2.35, of RED alone: gaps of other lengths between drops, and the queue without the packet
    /// in transmission.
    Ns2,
}

/// Ticks per second of a kernel that distributions build (Debian).
const HZ: u32 = 250;
/// Bytes of a full packet of Ethernet.
const MTU: u32 = 1500;

/// Parameters of RED; queue lengths in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// `min_th`: below this average nothing is dropped.
    pub min: f64,
    /// `max_th`.
    pub max: f64,
    /// `max_p`: drop probability at `max_th`.
    pub max_p: f64,
    /// `w_q`: weight of a new sample in the average.
    pub weight: f64,
    /// Above `max_th` the probability rises to one at twice `max_th` instead of jumping to one.
    pub gentle: bool,
    /// `max_p` follows the average towards the middle between the thresholds (Adaptive RED); not
    /// with [`QueueRule::Linux`], whose `tc` asks for it in vain.
    pub adaptive: bool,
    /// Mark instead of drop.
    pub ecn: bool,
    /// Where the probability is one packets are dropped, `ecn` or not (RFC 3168, section 7).
    pub harddrop: bool,
    /// By its document, or as Linux or ns-2 has it.
    pub by: QueueRule,
    /// Bytes of a full packet, of which so many could leave in an idle time.
    pub mtu: u32,
}

impl Red {
    /// No smaller `min_th` by default, packets (Floyd 1997; FGS01, section 5).
    pub const LEAST_MIN: f64 = 5.0;

    /// RED for a buffer of `packets`: `max_th` a quarter of it and `min_th` a third of that (the
    /// defaults of `tc-red(8)`), but not less than 15 and 5 packets; `w_q` 0.002, `max_p` 0.1,
    /// gentle (Floyd, "RED: Discussions of Setting Parameters", 1997, and the note on gentle RED,
    /// 2000).
    pub fn classic(packets: u64) -> Self {
        let max = (packets as f64 / 4.0).max(3.0 * Self::LEAST_MIN);
        Self {
            min: max / 3.0,
            max,
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            adaptive: false,
            ecn: false,
            harddrop: true,
            by: QueueRule::Rfc,
            mtu: MTU,
        }
    }

    /// Adaptive RED with everything automatic (FGS01): for `packets_per_second`, the link's
    /// capacity C, and an average queueing delay of `target` (the paper: 5 ms): `w_q` = 1 -
    /// exp(-1/C), `min_th` = max(5, target C / 2), `max_th` = 3 `min_th`. `max_p` starts at 0.1.
    pub fn adaptive(packets_per_second: f64, target: Span) -> Self {
        let min = (target.as_secs_f64() * packets_per_second / 2.0).max(Self::LEAST_MIN);
        Self {
            min,
            max: 3.0 * min,
            max_p: 0.1,
            weight: -libm::expm1(-1.0 / packets_per_second),
            gentle: true,
            adaptive: true,
            ecn: false,
            harddrop: true,
            by: QueueRule::Rfc,
            mtu: MTU,
        }
    }

    /// Smallest weight that the kernel's RED can have, for a `max_th` in packets of `mtu` bytes:
    /// the threshold, in bytes and shifted by `W`, has 31 bits (`red_check_params`).
    pub fn least_linux_weight(max: f64, mtu: u32) -> f64 {
        let bits = 64 - ((max * f64::from(mtu)) as u64).leading_zeros() as i32;
        libm::exp2(-f64::from((31 - bits).max(1)))
    }
}

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pie {
    /// `QDELAY_REF`, 15 ms.
    pub target: Span,
    /// `T_UPDATE`, 15 ms.
    pub update: Span,
    /// `alpha`, 1/8 per second.
    pub alpha: f64,
    /// `beta`, 1 1/4 per second.
    pub beta: f64,
    /// `MAX_BURST`, 150 ms.
    pub max_burst: Span,
    /// `MARK_ECNTH`: mark up to this probability, drop above it (0.1); `None`: never mark.
    pub ecn: Option<f64>,
    /// Whose it is; Linux has fixed values of `max_burst` and `MARK_ECNTH`, the RFC's.
    pub by: QueueRule,
    /// Ticks per second of the kernel's timers: of [`QueueRule::Linux`] the updates.
    pub hz: u32,
    /// Bytes of a full packet: two of them may always wait.
    pub mtu: u32,
}

impl Default for Pie {
    /// The constants of RFC 8033, without marking.
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Span::from_millis(150),
            ecn: None,
            by: QueueRule::Rfc,
            hz: HZ,
            mtu: MTU,
        }
    }
}

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codel {
    /// `TARGET`, 5 ms.
    pub target: Span,
    /// `INTERVAL`, 100 ms.
    pub interval: Span,
    /// Mark instead of drop.
    pub ecn: bool,
    /// An ECN-capable packet that has waited longer is marked, whatever the control law says and
    /// whether it marks or not: the step of DCTCP's queues in time (Linux `ce_threshold`).
    pub ce_threshold: Option<Span>,
    /// By its document or as Linux has it.
    pub by: QueueRule,
    /// Bytes of a full packet: one may always wait.
    pub mtu: u32,
}

impl Default for Codel {
    /// The constants of RFC 8289, without marking.
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: false,
            ce_threshold: None,
            by: QueueRule::Rfc,
            mtu: MTU,
        }
    }
}

impl Codel {
    /// Some packets are marked.
    pub fn marks(&self) -> bool {
        self.ecn || self.ce_threshold.is_some()
    }
}

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodel {
    /// CoDel parameters of each queue.
    pub codel: Codel,
    /// Number of queues, 1024; flows are spread over them by a hash that each run draws anew.
    pub flows: u32,
    /// Bytes that a queue may send per round, one MTU.
    pub quantum: u32,
}

impl Default for FqCodel {
    /// The constants of RFC 8290 (section 5.2), without marking.
    fn default() -> Self {
        Self {
            codel: Codel::default(),
            flows: 1024,
            quantum: 1514,
        }
    }
}

/// Random loss at a link's entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// None.
    None,
    /// Each packet independently.
    Bernoulli {
        /// Probability of loss.
        p: f64,
    },
    /// Two-state Markov chain, one step per packet (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Probability to go from good to bad.
        to_bad: f64,
        /// Probability to go from bad to good.
        to_good: f64,
        /// Loss probability in the good state.
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// Packets that are overtaken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Part of the packets.
    pub probability: f64,
    /// They arrive this much later.
    pub extra: Span,
}

/// A token bucket that drops what finds too few tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Rate at which tokens come.
    pub rate: Rate,
    /// Depth of the bucket, bytes; it is full at the start.
    pub burst: u64,
}

/// What changes at a time; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// New capacity; zero is an outage: packets wait. The packet in transmission goes on at the new
    /// rate.
    pub rate: Option<Rate>,
    /// New delay of packets that leave the transmitter from now on; a shorter one does not let them
    /// overtake.
    pub delay: Option<Span>,
    /// New random loss.
    pub loss: Option<Loss>,
}
