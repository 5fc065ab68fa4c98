//! Queue disciplines apart from the link that hosts them: what is dropped or marked, and who is
//! sent next.
//!
//! Two kinds. RED and PIE decide at the entry, so that the queue behind them stays a FIFO whose
//! departures are known when a packet enters. CoDel and FQ-CoDel decide at the exit, so they own
//! the queue, and so do RED and PIE as Linux 6.1 has them (`linux_*`): integers in the kernel's
//! scales, updates on the ticks of its clock, and what they know of a queue learnt from departures.
//! None of them draws from anything but the generator it is given, and none has a timer of its own:
//! what their documents do periodically is made up for exactly at the next packet, since a queue
//! that nobody enters only drains.
//!
//! Where a discipline marks, a packet that is not ECN-capable is dropped (RFC 3168, 5).

mod codel;
mod fq_codel;
mod linux_clock;
mod linux_codel;
mod linux_pie;
mod linux_red;
mod pie;
mod red;
#[cfg(test)]
mod testing;

use fullpipe_run::{Buffer, ComponentRng, Discipline, LinkSpec, QueueRule};
use fullpipe_units::{Span, Time};

use crate::packet::Packet;

pub use codel::{CodelLaw, CodelQueue};
pub use fq_codel::FqCodelQueue;
pub use linux_codel::LinuxLaw;
pub use linux_pie::LinuxPie;
pub use linux_red::LinuxRed;
pub use pie::PieState;
pub use red::RedState;

/// What a discipline sees of the queue when a packet arrives, that packet not included.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Packets that wait or are being transmitted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time that they take, as far as it is known now; PIE asks for it.
    pub delay: Span,
    /// Since when the transmitter has been idle; `None` while it is busy. Zero before the first
    /// packet.
    pub idle_since: Option<Time>,
}

/// Decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Enqueue the packet.
    Admit,
    /// It enters with the CE mark.
    Mark,
    /// Drop the packet before the buffer is full.
    Drop,
}

/// A discipline that decides at the entry. The host asks it about every packet, then looks for room
/// in the buffer.
#[derive(Debug)]
pub enum EntryAqm {
    /// Random early detection.
    Red(Box<RedState>),
    /// Proportional integral controller enhanced.
    Pie(Box<PieState>),
}

impl EntryAqm {
    /// The discipline at a link of `rate` bits per second; `None` if `d` decides nothing at the
    /// entry.
    pub fn new(d: &Discipline, rate: u64, rng: ComponentRng) -> Option<Self> {
        if d.by() == Some(QueueRule::Linux) {
            return None;
        }
        match d {
            Discipline::Red(red) => Some(Self::Red(Box::new(RedState::new(*red, rate, rng)))),
            Discipline::Pie(pie) => Some(Self::Pie(Box::new(PieState::new(*pie, rng)))),
            Discipline::DropTail | Discipline::Codel(_) | Discipline::FqCodel(_) => None,
        }
    }

    /// The link transmits `rate` bits per second from now on; 0: an outage.
    pub fn set_rate(&mut self, rate: u64) {
        if let Self::Red(red) = self {
            red.set_rate(rate);
        }
    }

    /// When the delay of the queue is to be told next ([`EntryAqm::update`]), if it is by `now`.
    #[inline]
    pub fn due(&self, now: Time) -> Option<Time> {
        match self {
            Self::Red(_) => None,
            Self::Pie(pie) => pie.due(now),
        }
    }

    /// The delay of the queue at the time that was due.
    pub fn update(&mut self, delay: Span) {
        if let Self::Pie(pie) = self {
            pie.update(delay);
        }
    }

    /// Decides about a packet, when nothing is due; `ect`: it may be marked. Times never fall from
    /// call to call.
    #[inline]
    pub fn judge(&mut self, now: Time, backlog: &Backlog, ect: bool) -> Verdict {
        match self {
            Self::Red(red) => red.judge(now, backlog, ect),
            Self::Pie(pie) => pie.judge(backlog, ect),
        }
    }
}

/// A packet to transmit.
#[derive(Clone, Copy, Debug)]
pub struct Popped {
    /// The packet, perhaps with the CE mark now.
    pub packet: Packet,
    /// Sojourn time in the queue.
    pub waited: Span,
}

/// A discipline that owns the queue of waiting packets.
#[derive(Debug)]
pub enum HeldAqm {
    /// Controlled delay.
    Codel(Box<CodelQueue<CodelLaw>>),
    /// Flow queueing with controlled delay.
    FqCodel(Box<FqCodelQueue<CodelLaw>>),
    /// Linux's controlled delay.
    LinuxCodel(Box<CodelQueue<LinuxLaw>>),
    /// Linux's flow queueing with controlled delay.
    LinuxFqCodel(Box<FqCodelQueue<LinuxLaw>>),
    /// Linux's random early detection.
    LinuxRed(Box<LinuxRed>),
    /// Linux's proportional integral controller.
    LinuxPie(Box<LinuxPie>),
}

/// The same expression for every discipline.
macro_rules! of_each {
    ($aqm:expr, $q:ident => $value:expr) => {
        match $aqm {
            HeldAqm::Codel($q) => $value,
            HeldAqm::FqCodel($q) => $value,
            HeldAqm::LinuxCodel($q) => $value,
            HeldAqm::LinuxFqCodel($q) => $value,
            HeldAqm::LinuxRed($q) => $value,
            HeldAqm::LinuxPie($q) => $value,
        }
    };
}

impl HeldAqm {
    /// The discipline before the transmitter of a link; `None` if it decides at the entry.
    ///
    /// A buffer given as a time is turned into bytes at the first rate.
    pub fn new(link: &LinkSpec, rate: u64, rng: ComponentRng) -> Option<Self> {
        let limit = link.linux_limit();
        let room = match link.discipline.by() {
            Some(QueueRule::Linux) => Room::waiting(limit),
            _ => Room::new(link.buffer, rate),
        };
        match (link.discipline, link.discipline.by()?) {
            (Discipline::Codel(p), QueueRule::Rfc | QueueRule::Ns2) => {
                Some(Self::Codel(Box::new(CodelQueue::new(p, room))))
            }
            (Discipline::Codel(p), QueueRule::Linux) => {
                Some(Self::LinuxCodel(Box::new(CodelQueue::new(p, room))))
            }
            (Discipline::FqCodel(p), QueueRule::Rfc | QueueRule::Ns2) => {
                Some(Self::FqCodel(Box::new(FqCodelQueue::new(p, room, rng))))
            }
            (Discipline::FqCodel(p), QueueRule::Linux) => Some(Self::LinuxFqCodel(Box::new(
                FqCodelQueue::new(p, room, rng),
            ))),
            (Discipline::Red(p), QueueRule::Linux) => Some(Self::LinuxRed(Box::new(
                LinuxRed::new(&p, link.linux_bytes(), rate, rng),
            ))),
            (Discipline::Pie(p), QueueRule::Linux) => {
                Some(Self::LinuxPie(Box::new(LinuxPie::new(&p, limit, rng))))
            }
            (Discipline::Red(_) | Discipline::Pie(_), QueueRule::Rfc | QueueRule::Ns2)
            | (Discipline::DropTail, _) => None,
        }
    }

    /// A packet arrives; `sending` is the size of the packet in transmission, 0 if there is none,
    /// for it takes room too. What is dropped is appended to `dropped`: this packet, or, for want
    /// of room, packets of FQ-CoDel's fattest queue. Returns how many of them there was room for.
    pub fn push(
        &mut self,
        now: Time,
        packet: Packet,
        sending: u16,
        dropped: &mut Vec<Packet>,
    ) -> u64 {
        match self {
            Self::Codel(q) => q.push(now, packet, sending, dropped),
            Self::FqCodel(q) => q.push(now, packet, sending, dropped),
            Self::LinuxCodel(q) => q.push(now, packet, sending, dropped),
            Self::LinuxFqCodel(q) => q.push(now, packet, sending, dropped),
            Self::LinuxRed(q) => return q.push(now, packet, dropped),
            Self::LinuxPie(q) => return q.push(now, packet, dropped),
        }
        0
    }

    /// The transmitter is free: the next packet to send. What the control law drops before it is
    /// appended to `dropped`.
    pub fn pop(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Popped> {
        match self {
            Self::Codel(q) => q.pop(now, dropped),
            Self::FqCodel(q) => q.pop(now, dropped),
            Self::LinuxCodel(q) => q.pop(now, dropped),
            Self::LinuxFqCodel(q) => q.pop(now, dropped),
            Self::LinuxRed(q) => q.pop(now),
            Self::LinuxPie(q) => q.pop(now),
        }
    }

    /// It wants to know of idle times.
    pub fn notes_idle_times(&self) -> bool {
        matches!(
            self,
            Self::FqCodel(_) | Self::LinuxFqCodel(_) | Self::LinuxRed(_)
        )
    }

    /// Nothing waits, and the transmitter is free from `at` on, which lies ahead.
    pub fn ran_empty(&mut self, at: Time) {
        match self {
            Self::FqCodel(q) => q.ran_empty(at),
            Self::LinuxFqCodel(q) => q.ran_empty(at),
            Self::LinuxRed(q) => q.ran_empty(at),
            Self::Codel(_) | Self::LinuxCodel(_) | Self::LinuxPie(_) => {}
        }
    }

    /// Packets waiting, the one in transmission not included.
    pub fn packets(&self) -> u64 {
        of_each!(self, q => q.packets())
    }

    /// Bytes of the packets waiting.
    pub fn bytes(&self) -> u64 {
        of_each!(self, q => q.bytes())
    }

    /// CE marks so far.
    pub fn marks(&self) -> u64 {
        of_each!(self, q => q.marks())
    }

    /// Every packet waiting, in no order of service.
    pub fn waiting(&self) -> Box<dyn Iterator<Item = &Packet> + '_> {
        of_each!(self, q => Box::new(q.waiting()))
    }
}

/// A limit in packets and bytes.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    packets: u64,
    bytes: u64,
    /// The packet in transmission is included.
    sending: bool,
}

impl Room {
    fn new(buffer: Buffer, rate: u64) -> Self {
        let (packets, bytes) = match buffer {
            Buffer::Packets(n) => (n, u64::MAX),
            Buffer::Bytes(n) => (u64::MAX, n),
            // Only an absurdly long time saturates.
            Buffer::Time(t) => (u64::MAX, (rate as f64 * t.as_secs_f64() / 8.0) as u64),
            Buffer::Unlimited => (u64::MAX, u64::MAX),
        };
        Self {
            packets,
            bytes,
            sending: true,
        }
    }

    /// For so many packets beside the one in transmission.
    fn waiting(packets: u64) -> Self {
        Self {
            packets,
            bytes: u64::MAX,
            sending: false,
        }
    }

    /// True if a queue of this size, beside a packet of `sending` bytes in transmission (0: none),
    /// keeps to the limit.
    fn holds(&self, packets: u64, bytes: u64, sending: u16) -> bool {
        let sending = if self.sending { sending } else { 0 };
        packets + u64::from(sending > 0) <= self.packets && bytes + u64::from(sending) <= self.bytes
    }
}
