//! Parameters of a running flow change: what stays, what is new, and from when.

use std::collections::VecDeque;

use fullpipe_cc::{Controller, Stack, StackSpec};
use fullpipe_flow::{Ack, Ceiling, Change, EpisodeKind, Sender};
use fullpipe_units::{Span, Time};

use crate::host::{modern, syn_ack};

const RTT: Span = Span::from_millis(80);

/// A sender whose every segment is acknowledged one round trip after it left.
struct Rounds {
    sender: Sender<Stack>,
    now: Time,
    acks: VecDeque<(Time, Ack)>,
}

impl Rounds {
    fn new(stack: &str) -> Self {
        let cfg = modern().with(|c| {
            c.handshake = false;
            c.changeable = true;
        });
        let spec = StackSpec::parse(stack).unwrap();
        let (cfg, setup) = cfg.with_stack(&spec);
        let mut sender = Sender::new(cfg, spec.controller(setup), 1);
        sender.start(Time::ZERO);
        Self {
            sender,
            now: Time::ZERO,
            acks: VecDeque::new(),
        }
    }

    /// What happens in a round trip, its end included: the window then.
    fn round(&mut self) -> f64 {
        let end = self.now + RTT;
        loop {
            while let Some(segment) = self.sender.poll_transmit(self.now) {
                let ack = Ack {
                    cum: segment.seq + 1,
                    syn: false,
                    echo: self.now,
                    ..syn_ack(u64::MAX)
                };
                self.acks.push_back((self.now + RTT, ack));
            }
            let arrival = self.acks.front().map_or(Time::MAX, |(at, _)| *at);
            let due = self.sender.next_timeout();
            if arrival.min(due) > end {
                self.now = end;
                return self.sender.cwnd();
            }
            self.now = arrival.min(due);
            if arrival <= due {
                while let Some((_, ack)) = self.acks.pop_front_if(|(at, _)| *at <= self.now) {
                    self.sender.handle_ack(self.now, &ack);
                }
            } else {
                self.sender.handle_timeout(self.now);
            }
        }
    }

    /// Growth over the next round.
    fn growth(&mut self) -> f64 {
        let before = self.sender.cwnd();
        self.round() - before
    }

    fn change(&mut self, words: &str) {
        let present = StackSpec::parse("reno").unwrap();
        let change = Change::parse(words, &present, self.sender.mss()).unwrap();
        self.sender.change(self.now, &change, 1);
    }

    /// In congestion avoidance at 100 segments.
    fn avoiding(stack: &str) -> Self {
        let mut rounds = Self::new(stack);
        rounds.change("window=100 segments");
        while rounds.round() < 100.0 {}
        rounds.sender.change(
            rounds.now,
            &Change {
                window: Some(1e9),
                ..Change::default()
            },
            1,
        );
        // Leave slow start as a loss would, at the window there is.
        let out = Change {
            stack: Some(StackSpec::parse("ledbat").unwrap()),
            ..Change::default()
        };
        rounds.sender.change(rounds.now, &out, 1);
        rounds.change(&format!("stack={stack}"));
        rounds
    }
}

/// RFC 5681 section 3.1 with a in place of one segment: over a round at w the window grows by a,
/// less a^2 / 2w because it grows on every ACK: 5.8.
#[test]
fn the_slope_is_the_new_one_from_the_next_round_on() {
    let mut rounds = Rounds::avoiding("reno");
    let slope = rounds.growth();
    assert!((slope - 1.0).abs() < 0.02, "{slope}");
    let before = rounds.sender.cwnd();
    rounds.change("a=6,b=0.3");
    assert_eq!(
        rounds.sender.cwnd(),
        before,
        "the change itself moves nothing"
    );
    assert!(
        (rounds.growth() - 6.0).abs() < 0.3,
        "{}",
        rounds.sender.cwnd()
    );
    let kinds: Vec<_> = rounds.sender.drain_log().map(|e| e.kind).collect();
    assert!(kinds.iter().all(|k| *k == EpisodeKind::Change) && !kinds.is_empty());
}

/// Every kind of controller takes over every other: window and threshold stay.
#[test]
fn any_stack_takes_over_from_any_other() {
    let stacks = [
        "reno",
        "cubic",
        "ledbat",
        "vegas",
        "cubic-linux",
        "westwood-linux",
        "bbr",
        "bbr-linux",
    ];
    for from in stacks {
        for to in stacks {
            let mut rounds = Rounds::new(from);
            for _ in 0..4 {
                rounds.round();
            }
            let (window, ssthresh) = (rounds.sender.cwnd(), rounds.sender.controller().ssthresh());
            rounds.change(&format!("stack={to}"));
            let cc = rounds.sender.controller();
            // Modules of the kernel count whole segments.
            let near = (cc.window() - window).abs() < 1.0;
            assert!(near, "{from} to {to}: {window}, {}", cc.window());
            let own = to.starts_with("bbr") || to == "ledbat";
            assert!(
                own || cc.ssthresh() == ssthresh || from.starts_with("bbr"),
                "{from} to {to}"
            );
            // It goes on.
            for _ in 0..3 {
                rounds.round();
            }
            let delivered = rounds.sender.delivered();
            rounds.round();
            assert!(rounds.sender.delivered() > delivered, "{from} to {to}");
        }
    }
}

/// Paced by a rate the ACKs of a window span as much of the round trip as the window fills of the
/// path: HyStart leaves at half of it on a connection that is not paced, at all of it on one that
/// is (Linux 6.8 `hystart_update`, which reads `sk_pacing_status` at each ACK). 50 Mbit/s and 80 ms
/// are 333 packets.
#[test]
fn a_rate_that_comes_is_known_to_hystart() {
    for stack in ["cubic+hystart", "cubic-linux", "cubic+hystart(paced=off)"] {
        let mut rounds = Rounds::new(stack);
        rounds.change("rate=50Mbit/s");
        for _ in 0..7 {
            rounds.round();
        }
        let whole = !stack.contains("off");
        let w = rounds.sender.cwnd();
        assert_eq!(w > 300.0, whole, "{stack}: {w}");
    }
}

#[test]
fn caps_and_ceilings_move() {
    for stack in ["reno", "cubic-linux", "bbr"] {
        let mut rounds = Rounds::new(stack);
        for _ in 0..5 {
            rounds.round();
        }
        assert!(rounds.sender.cwnd() > 50.0, "{stack}");
        rounds.change("window=20 segments");
        assert_eq!(rounds.sender.cwnd(), 20.0, "{stack}");
        assert_eq!(rounds.round(), 20.0, "{stack}");
        rounds.change("window=1000 segments");
        for _ in 0..4 {
            rounds.round();
        }
        assert!(rounds.sender.cwnd() > 20.0, "{stack}");
    }
    let mut rounds = Rounds::new("reno");
    rounds.round();
    assert_eq!(rounds.sender.pacing_rate(), None);
    rounds.change("rate=1Mbit/s");
    assert_eq!(rounds.sender.pacing_rate(), Some(1e6));
    let off = Change {
        rate: Some(Ceiling::Off),
        ..Change::default()
    };
    rounds.sender.change(rounds.now, &off, 1);
    assert!(
        rounds.sender.pacing_rate().unwrap() > 1e6,
        "paced, without a ceiling"
    );
}
