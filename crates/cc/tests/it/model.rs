//! Random sequences of sender events over every registered window law with every registered
//! start-up.
//!
//! [`Flow`] keeps the bookkeeping a sender would (time, rounds, phase, RTT filters), so that events
//! are consistent; what happens next is random. After each event the controller must hold the
//! promises of the `Controller` trait.

use std::collections::BTreeSet;

use fullpipe_cc::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, Phase, RateSample,
};
use fullpipe_cc::registry::{Kind, entries};
use fullpipe_cc::{MOST_VARIABLES, Setup, Stack, StackSpec};
use fullpipe_units::{Span, Time};
use proptest::prelude::*;

use crate::rounds::{ack, changed, loss, rto};

/// An event of a flow, or a wait.
#[derive(Clone, Debug)]
pub enum Op {
    /// An ACK for `n` segments, `gap` after the last event, whose RTT holds `queue` beyond the
    /// path's.
    Ack {
        n: u64,
        gap: Span,
        queue: Span,
        round_start: bool,
        cwnd_limited: bool,
        sample: bool,
    },
    /// ACKs out of order: the phase alternates between open and disorder.
    Reorder,
    /// A congestion event.
    Congest {
        kind: CongestionKind,
        flight: f64,
        first: bool,
    },
    /// A timeout.
    Rto { first: bool },
    /// Recovery ends.
    Exit,
    /// The last reduction was spurious.
    Undo,
    /// A restart after `idle` with at most `window` segments.
    Idle { idle: Span, window: f64 },
    /// Start-up is left without a reduction.
    LeaveStartUp,
    /// The segment size changes.
    Mss { ratio: f64 },
    /// The path becomes one of RTT `base`.
    Path { base: Span },
}

/// Any event; ACKs are most of them.
pub fn op() -> impl Strategy<Value = Op> {
    let span = |from: u64, to: u64| (from..to).prop_map(Span::from_micros);
    prop_oneof![
        40 => (0_u64..200, span(0, 20_000), span(0, 150_000), prop::bool::weighted(0.2),
               prop::bool::weighted(0.9), prop::bool::weighted(0.95))
            .prop_map(|(n, gap, queue, round_start, cwnd_limited, sample)| Op::Ack {
                n, gap, queue, round_start, cwnd_limited, sample
            }),
        2 => Just(Op::Reorder),
        3 => (kind(), 0.0..1.5, prop::bool::weighted(0.8))
            .prop_map(|(kind, flight, first)| Op::Congest { kind, flight, first }),
        1 => any::<bool>().prop_map(|first| Op::Rto { first }),
        4 => Just(Op::Exit),
        1 => Just(Op::Undo),
        1 => (span(0, 2_000_000_000), 1.0..20.0)
            .prop_map(|(idle, window)| Op::Idle { idle, window }),
        1 => Just(Op::LeaveStartUp),
        1 => (0.1..10.0).prop_map(|ratio| Op::Mss { ratio }),
        1 => span(10, 500_000).prop_map(|base| Op::Path { base }),
    ]
}

/// Any kind of congestion event, losses most often.
pub fn kind() -> impl Strategy<Value = CongestionKind> {
    prop_oneof![
        3 => Just(CongestionKind::Loss),
        1 => Just(CongestionKind::Ecn),
        1 => Just(CongestionKind::LocalDrop),
    ]
}

/// A controller and the sender's view around it.
#[derive(Clone)]
pub struct Flow {
    pub stack: Stack,
    pub now: Time,
    base: Span,
    srtt: Span,
    min_rtt: Span,
    phase: Phase,
    round: u64,
    delivered: u64,
}

impl Flow {
    pub fn new(spelling: &str, setup: Setup) -> Self {
        let stack = StackSpec::parse(spelling).unwrap_or_else(|e| panic!("{spelling}: {e}"));
        Self {
            stack: stack.controller(setup),
            now: Time::ZERO,
            base: Span::from_millis(50),
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            phase: Phase::Open,
            round: 0,
            delivered: 0,
        }
    }

    /// The sender owns the window (PRR) or repairs a timeout.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// An ACK as the flow would see it now.
    pub fn ack_event(&self, n: u64, rtt: Span, round_start: bool, cwnd_limited: bool) -> AckEvent {
        let flight = (self.stack.window() as u64).max(1);
        changed(ack(self.now, n), |ev| {
            ev.rtt = Some(rtt);
            ev.srtt = if self.srtt == Span::ZERO {
                rtt
            } else {
                self.srtt
            };
            ev.min_rtt = self.min_rtt.min(rtt);
            ev.owd = self.delivered.is_multiple_of(2).then_some(rtt / 2);
            ev.prior_flight = flight;
            ev.flight = flight.saturating_sub(n);
            ev.delivered = self.delivered + n;
            ev.rate = (n > 0).then(|| {
                changed(RateSample::new(n, rtt), |sample| {
                    sample.prior_delivered = self.delivered;
                    sample.app_limited = !cwnd_limited;
                })
            });
            ev.cwnd_limited = cwnd_limited;
            ev.app_limited = !cwnd_limited;
            ev.round = self.round;
            ev.round_start = round_start;
            ev.phase = self.phase;
            ev.snd_una = self.delivered + n;
            ev.snd_nxt = self.delivered + n + flight;
        })
    }

    /// A congestion event as the flow would see it now, `flight` in parts of the window.
    pub fn congestion_event(&self, kind: CongestionKind, flight: f64) -> CongestionEvent {
        let flight = ((self.stack.window() * flight) as u64).max(1);
        changed(loss(self.now, flight), |ev| {
            ev.kind = kind;
            ev.srtt = self.srtt;
            ev.min_rtt = self.min_rtt;
        })
    }

    /// Lets `op` happen.
    pub fn apply(&mut self, op: &Op) {
        match *op {
            Op::Ack {
                n,
                gap,
                queue,
                round_start,
                cwnd_limited,
                sample,
            } => {
                self.now += gap;
                let rtt = self.base + queue;
                self.round += u64::from(round_start);
                let mut ev = self.ack_event(n, rtt, round_start, cwnd_limited);
                if sample {
                    self.min_rtt = self.min_rtt.min(rtt);
                    self.srtt = if self.srtt == Span::ZERO {
                        rtt
                    } else {
                        (self.srtt * 7 + rtt) / 8
                    };
                } else {
                    ev.rtt = None;
                    ev.owd = None;
                }
                self.delivered += n;
                self.stack.on_delivery(&ev);
                self.stack.on_ack(&ev);
            }
            Op::Reorder => match self.phase {
                Phase::Open => self.phase = Phase::Disorder,
                Phase::Disorder => self.phase = Phase::Open,
                _ => {}
            },
            Op::Congest {
                kind,
                flight,
                first,
            } => {
                let ev = changed(self.congestion_event(kind, flight), |ev| {
                    ev.first_in_window = first;
                });
                self.stack.on_congestion(&ev);
                self.phase = if kind == CongestionKind::Loss {
                    Phase::Recovery
                } else {
                    Phase::Cwr
                };
            }
            Op::Rto { first } => {
                let flight = (self.stack.window() as u64).max(1);
                self.stack.on_rto(&changed(rto(self.now, flight), |ev| {
                    ev.first = first;
                    ev.srtt = self.srtt;
                    ev.min_rtt = self.min_rtt;
                }));
                self.phase = Phase::Loss;
            }
            Op::Exit => {
                if !matches!(self.phase, Phase::Open | Phase::Disorder) {
                    self.stack.on_recovery_exit(self.now);
                    self.phase = Phase::Open;
                }
            }
            Op::Undo => {
                self.stack.on_undo(self.now);
                self.phase = Phase::Open;
            }
            Op::Idle { idle, window } => {
                self.now += idle;
                let w = self.stack.window().min(window);
                let ssthresh = self.stack.ssthresh().max(0.75 * self.stack.window());
                self.stack
                    .on_idle(&IdleEvent::new(self.now, idle, w, ssthresh));
            }
            Op::LeaveStartUp => self.stack.exit_start_up(self.now),
            Op::Mss { ratio } => self.stack.on_mss_change(ratio),
            Op::Path { base } => self.base = base,
        }
    }
}

/// Registered names of a kind.
pub fn names(kind: Kind) -> impl Iterator<Item = &'static str> {
    entries().filter(move |e| e.kind == kind).map(|e| e.name)
}

/// Every law with its own start-up, and with every start-up; LEDBAT has none and refuses them.
pub fn spellings() -> Vec<String> {
    let mut all: Vec<String> = names(Kind::Law).map(str::to_owned).collect();
    for law in names(Kind::Law).filter(|law| *law != "ledbat") {
        all.extend(names(Kind::StartUp).map(|start| format!("{law}+{start}")));
    }
    all.extend(OPTIONS.iter().map(|s| (*s).to_owned()));
    all
}

#[test]
fn a_law_without_slow_start_refuses_a_start_up() {
    let error = StackSpec::parse("ledbat+limited").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`limited`: `ledbat` has no slow start: it would never run"
    );
}

/// Options that take another path through a law.
const OPTIONS: &[&str] = &[
    "vegas(exit=ca,growth=every,diff_over=base)",
    "fast(mi=on,base_window=1s,gamma=1)",
    "lp(linux_ssth=on,signal=rtt,granularity=0s)",
    "hstcp-lp(early_b=hs,signal=owd,linux_ssth=on)",
    "westwood(timing=linux,filter=tustin)",
    "ledbat(target=10us,gain=1,allowed_increase=1000)",
    "illinois(alpha_min=0.1,win_thresh=0,theta=0)",
    "reno(ecn_keep=0.8)+gamma(then=linux,growth=every-other)",
    "highspeed+gamma(limit=2,max_ssthresh=2,threshold=0)",
    "reno+gamma(sample=mean,grain=10ms,then=vegas)",
    "reno+gamma(crossing=50,threshold=0)",
    "reno+hystart(paced=on,low_window=1,ack_delay=0s)",
    "reno+hystart++(css_divisor=2,css_rounds=1)",
];

const MAX_WINDOW: f64 = 30_000.0;

fn check(flow: &Flow, what: &str) -> Result<(), TestCaseError> {
    let (w, ssth) = (flow.stack.window(), flow.stack.ssthresh());
    prop_assert!(
        w.is_finite() && (1.0..=MAX_WINDOW).contains(&w),
        "{what}: window {w}"
    );
    prop_assert!(ssth > 0.0, "{what}: ssthresh {ssth}");
    let mut seen = BTreeSet::new();
    let mut fault = None;
    flow.stack.report(&mut |name, value| {
        if !seen.insert(name) {
            fault = Some(format!("{what}: {name} is reported twice"));
        }
        if value.is_infinite() {
            fault = Some(format!("{what}: {name} is {value}"));
        }
    });
    prop_assert!(seen.len() <= MOST_VARIABLES, "{what}: {seen:?}");
    prop_assert!(fault.is_none(), "{}", fault.unwrap_or_default());
    if let Some(rate) = flow.stack.pacing_rate() {
        prop_assert!(rate.as_bits_per_sec() > 0, "{what}: pacing rate 0");
    }
    Ok(())
}

fn variables(flow: &Flow) -> Vec<&'static str> {
    let mut names = Vec::new();
    flow.stack.report(&mut |name, _| names.push(name));
    names
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn every_stack_keeps_its_promises(
        ops in prop::collection::vec(op(), 1..120),
        initial_window in 1.0..40.0,
        limit in prop_oneof![Just(2.0), Just(f64::INFINITY)],
    ) {
        let setup = Setup {
            initial_window,
            max_window: MAX_WINDOW,
            slow_start_limit: limit,
            ..Setup::default()
        };
        for spelling in spellings() {
            let mut flow = Flow::new(&spelling, setup);
            let names = variables(&flow);
            check(&flow, &spelling)?;
            for op in &ops {
                flow.apply(op);
                check(&flow, &format!("{spelling} after {op:?}"))?;
            }
            prop_assert_eq!(variables(&flow), names, "{}", spelling);
        }
    }
}

/// The model reaches what it is meant to reach: both growth and reductions in every stack, and
/// large windows.
#[test]
fn the_model_is_not_idle() {
    for spelling in spellings() {
        let mut flow = Flow::new(
            &spelling,
            Setup {
                max_window: MAX_WINDOW,
                ..Setup::default()
            },
        );
        let grow = Op::Ack {
            n: 10,
            gap: Span::from_millis(1),
            queue: Span::ZERO,
            round_start: false,
            cwnd_limited: true,
            sample: true,
        };
        for i in 0..200 {
            let mut op = grow.clone();
            if let (0, Op::Ack { round_start, .. }) = (i % 10, &mut op) {
                *round_start = true;
            }
            flow.apply(&op);
        }
        let grown = flow.stack.window();
        assert!(grown > 12.0, "{spelling}: {grown}");
        flow.apply(&Op::Congest {
            kind: CongestionKind::Loss,
            flight: 1.0,
            first: true,
        });
        // Westwood+ has measured more than this window uses, and keeps it.
        let keeps = spelling.starts_with("westwood");
        assert!(flow.stack.window() < grown || keeps, "{spelling}");
        assert!(flow.stack.ssthresh() <= grown, "{spelling}");
    }
}
