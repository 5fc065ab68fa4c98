//! How much the sink of a flow's data can take, and what the path would bring: flow control for a
//! reader that may be slow.
//!
//! The receiver's window ends where the room of the sink ends, so that a disk that cannot follow
//! holds the sender and costs no segment. The buffer behind it should hold what the path brings in
//! two round trips and no more, which is measured as Dynamic Right-Sizing does it (Fisk and Feng
//! 2001): the payload that arrives within one round trip, that of the handshake. What a sender in
//! slow start sends in answer to that is twice as much, as it is in Linux's `tcp_rcv_space_adjust`.

use fullpipe_flow::Receiver;
use fullpipe_units::{Span, Time};

/// Of one flow whose sink has bounds.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    mss: u64,
    handshake: bool,
    /// The SYN's arrival, then the time until the first data.
    opened: Option<Time>,
    rtt: Option<Span>,
    /// Beginning of the present round trip, and what had been delivered by then, segments.
    since: Time,
    before: u64,
    /// Most segments of one round trip.
    most: u64,
    /// Largest room there has been, segments; 0: the sink has said nothing yet.
    widest: u64,
    /// When to look whether there is more.
    look: Time,
}

impl Room {
    /// Before the first segment of `mss` bytes, with a SYN before it or none.
    pub fn new(mss: u32, handshake: bool) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            handshake,
            opened: None,
            rtt: None,
            since: Time::ZERO,
            before: 0,
            most: 0,
            widest: 0,
            look: Time::MAX,
        }
    }

    /// The SYN has come.
    pub fn open(&mut self, now: Time) {
        self.opened = Some(now);
    }

    /// A segment has come.
    #[inline]
    pub fn count(&mut self, now: Time, delivered: u64) {
        let rtt = match (self.rtt, self.opened) {
            (Some(rtt), _) => rtt,
            (None, Some(opened)) => *self.rtt.insert(now.saturating_since(opened)),
            (None, None) => return,
        };
        if now.saturating_since(self.since) >= rtt {
            // A pause of the sender is no round trip.
            if now.saturating_since(self.since) < rtt * 2 {
                self.most = self.most.max(delivered - self.before);
            }
            (self.since, self.before) = (now, delivered);
        }
    }

    /// Bytes that the path can bring within two round trips if it is in slow start; without a
    /// handshake that is not known.
    #[inline]
    pub fn wanted(&self) -> u64 {
        match self.handshake {
            true => self.most.saturating_mul(GROWTH * self.mss),
            false => u64::MAX,
        }
    }

    /// The sink has room for so many bytes: `receiver` hears of it.
    #[inline]
    pub fn set(&mut self, receiver: &mut Receiver, bytes: u64) {
        let segments = bytes / self.mss;
        self.widest = self.widest.max(segments).max(1);
        receiver.set_room(segments);
    }

    /// Segments that make an ACK worth its while which does nothing but open the window.
    pub fn step(&self) -> u64 {
        (self.widest / 16).clamp(1, MOST_STEP)
    }

    /// Decides whether to look again soon: a sender that knows of half of the window need not hear
    /// of the rest.
    #[inline]
    pub fn arm(&mut self, now: Time, receiver: &Receiver) {
        let restricted = 2 * receiver.window_known() < self.widest;
        match (restricted, self.look == Time::MAX) {
            (true, true) => self.look = now + GLANCE,
            (false, false) => self.look = Time::MAX,
            _ => {}
        }
    }

    /// When to look; [`Time::MAX`]: no need.
    #[inline]
    pub fn look(&self) -> Time {
        self.look
    }

    /// Notes that the window has been checked.
    pub fn looked(&mut self) {
        self.look = Time::MAX;
    }
}

/// Between two looks. A disk that could fill the buffer in this time would not need one.
const GLANCE: Span = Span::from_millis(1);
/// See [`Room::step`].
const MOST_STEP: u64 = 64;
/// Two round trips, each with twice of what the one before brought: with less the window, and not
/// the path, would end slow start.
const GROWTH: u64 = 4;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, Sender, SenderConfig};

    use super::*;

    const RTT: Span = Span::from_millis(100);

    /// The window of a sender after so many round trips of slow start over a path without a limit;
    /// `least`: segments that the sink has room for at first.
    fn grown(round_trips: u64, least: Option<u64>) -> f64 {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500);
        let mss = cfg.mss;
        let (cfg, setup) = cfg.with_stack(&StackSpec::parse("reno").unwrap());
        let stack = StackSpec::parse("reno").unwrap().controller(setup);
        let mut sender = Sender::new(cfg, stack, 1);
        let mut receiver = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
        let mut room = Room::new(mss, true);
        let mut capacity = least.unwrap_or(0);
        let (mut there, mut back) = (VecDeque::new(), VecDeque::new());
        let mut now = Time::ZERO;
        let end = now + RTT * round_trips;
        sender.start(now);
        while now < end {
            while let Some(segment) = sender.poll_transmit(now) {
                there.push_back((now + RTT / 2, segment));
            }
            let arrival = there.front().map_or(Time::MAX, |(at, _)| *at);
            let answer = back.front().map_or(Time::MAX, |(at, _)| *at);
            let timers = sender.next_timeout().min(receiver.next_timeout());
            now = arrival.min(answer).min(timers).max(now);
            if arrival <= now {
                let (_, segment) = there.pop_front().unwrap();
                if least.is_some() {
                    // What arrives is taken at once: only the path needs room.
                    capacity = capacity.max(room.wanted() / u64::from(mss));
                    room.set(&mut receiver, capacity * u64::from(mss));
                }
                let ack = receiver.handle_segment(now, &segment);
                match segment.syn {
                    true => room.open(now),
                    false => room.count(now, receiver.counts().delivered),
                }
                back.extend(ack.map(|ack| (now + RTT / 2, ack)));
            } else if answer <= now {
                let (_, ack) = back.pop_front().unwrap();
                sender.handle_ack(now, &ack);
            } else {
                if sender.next_timeout() <= now {
                    sender.handle_timeout(now);
                }
                let ack = receiver.handle_timeout(now);
                back.extend(ack.map(|ack| (now + RTT / 2, ack)));
            }
        }
        sender.cwnd()
    }

    #[test]
    fn a_buffer_that_grows_does_not_hold_slow_start_back() {
        let (free, bounded) = (grown(12, None), grown(12, Some(40)));
        assert!(free > 5000.0, "{free}");
        assert!(bounded > 0.9 * free, "{bounded} of {free}");
    }
    #[test]
    fn a_pause_of_the_sender_is_no_round_trip() {
        let mut room = Room::new(1000, true);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        room.open(at(1000));
        room.count(at(1100), 1);
        for (ms, delivered) in [(1150, 5), (1200, 11), (1300, 31)] {
            room.count(at(ms), delivered);
        }
        assert_eq!(room.wanted(), GROWTH * 20 * 1000);
        room.count(at(1550), 531);
        room.count(at(1650), 540);
        assert_eq!(room.wanted(), GROWTH * 20 * 1000);
        assert_eq!(Room::new(1000, false).wanted(), u64::MAX);
    }

    /// A sixteenth of the room is news, and 64 segments always are; who knows of half of the room
    /// need not hear more.
    #[test]
    fn what_is_worth_an_ack_and_when_to_look() {
        let now = Time::from_nanos(1);
        for (segments, step) in [(0, 1), (15, 1), (160, 10), (100_000, 64)] {
            let mut receiver = Receiver::new(ReceiverConfig::preset(Preset::Y2026));
            let mut room = Room::new(1000, true);
            room.set(&mut receiver, segments * 1000);
            assert_eq!(room.step(), step);
            room.arm(now, &receiver);
            assert_eq!(room.look(), now + Span::from_millis(1), "nothing is told");
            receiver.update_window(now, 1).unwrap();
            room.arm(now, &receiver);
            assert_eq!(room.look(), Time::MAX);
        }
    }
}
