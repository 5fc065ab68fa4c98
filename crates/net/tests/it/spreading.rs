//! Initial Spreading on the wire (Initial Spreading 2014): the first window leaves with one segment
//! every `min(RTT/IW, t_max)`, or at once where that is below a tick of the timer.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_net::ground::{Options, run_local};
use fullpipe_net::io::WaitStrategy;
use fullpipe_run::ComponentRng;
use fullpipe_run::{CaptureEvent, FlowSpec, LinkSpec, Outcome, RunSpec};
use fullpipe_units::{Span, Time};

const T_MAX: Span = Span::from_millis(4);
const JIFFY: Span = Span::from_millis(1);

/// A flow that sends its initial window over a path of its own.
struct Drawn {
    iw: u64,
    rtt: Span,
}

/// Times of one flow, as the hosts saw them.
struct Seen {
    handshake: Span,
    left: Vec<Time>,
    arrived: Vec<Time>,
}

fn spec(drawn: &[Drawn], within: Span) -> RunSpec {
    let mut spec = RunSpec {
        capture: true,
        ..RunSpec::default()
    };
    for (i, d) in drawn.iter().enumerate() {
        let name = format!("flow{i}");
        let link = |way| LinkSpec::pure_delay(&format!("{name} {way}"), d.rtt / 2);
        let at = spec.links.len();
        spec.links.extend([link("there"), link("back")]);
        let stack = format!("reno+spread(iw={},t_max=4ms,jiffy=1ms)", d.iw);
        let mut flow = FlowSpec::new(
            &name,
            StackSpec::parse(&stack).unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.transfer = Some(d.iw)),
            ReceiverConfig::preset(Preset::Y2026),
            vec![at],
            vec![at + 1],
        );
        flow.start_spread = within;
        spec.flows.push(flow);
    }
    spec.duration = within + Span::from_secs(2);
    spec
}

fn seen(outcome: &Outcome, flow: usize) -> Seen {
    let rows = || outcome.capture.iter().filter(|r| r.flow as usize == flow);
    let at = |wanted: fn(&CaptureEvent) -> bool| -> Vec<Time> {
        let rows = rows().filter(|r| wanted(&r.event));
        rows.map(|r| r.at).collect()
    };
    let syn = at(|e| matches!(e, CaptureEvent::SegmentSent(s) if s.syn));
    let answer = at(|e| matches!(e, CaptureEvent::AckReceived(a) if a.syn));
    Seen {
        handshake: answer[0] - syn[0],
        left: at(|e| matches!(e, CaptureEvent::SegmentSent(s) if !s.syn && !s.retransmission)),
        arrived: at(
            |e| matches!(e, CaptureEvent::SegmentReceived(s) if !s.syn && !s.retransmission),
        ),
    }
}

fn gaps(times: &[Time]) -> Vec<Span> {
    let mut gaps: Vec<Span> = times.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort();
    gaps
}

/// The rule for what the handshake took; `None`: not spread.
fn rule(handshake: Span, iw: u64) -> Option<Span> {
    let x = handshake / iw;
    (x >= JIFFY && iw > 1).then_some(x.min(T_MAX))
}

/// However busy the machine: no segment leaves early, and what is to leave at once does. That most
/// do not leave late either is asked of a machine that was not; the test below looks closely.
#[test]
fn a_hundred_paths_follow_the_rule() {
    let mut rng = ComponentRng::new(1, "paths");
    let mut between = |low: f64, high: f64| low + (high - low) * rng.uniform();
    let drawn: Vec<Drawn> = (0..100)
        .map(|_| Drawn {
            iw: between(2.0, 41.0) as u64,
            // As many short paths as long ones.
            rtt: Span::from_secs_f64(0.004 * f64::powf(75.0, between(0.0, 1.0))),
        })
        .collect();
    let spec = spec(&drawn, Span::from_secs(2));
    let outcome = run_local(&spec, &Options::default(), None, &AtomicBool::new(false)).unwrap();
    let (mut spread, mut capped, mut at_once, mut punctual) = (0, 0, 0, 0);
    for (i, d) in drawn.iter().enumerate() {
        let seen = seen(&outcome, i);
        assert!(seen.handshake >= d.rtt, "{i}");
        assert_eq!(seen.left.len() as u64, d.iw, "{i}");
        let left = gaps(&seen.left);
        let arrived = gaps(&seen.arrived);
        let median = arrived[arrived.len() / 2];
        match rule(seen.handshake, d.iw) {
            None => {
                at_once += 1;
                assert_eq!(left[left.len() - 1], Span::ZERO, "{i}: {left:?}");
                punctual += u64::from(median < JIFFY);
            }
            Some(gap) => {
                *(if gap == T_MAX {
                    &mut capped
                } else {
                    &mut spread
                }) += 1;
                // Clocks are read in whole microseconds.
                let least = gap - Span::from_micros(1);
                assert!(left[0] >= least, "{i}: {:?} {gap:?}", left[0]);
                let error = median.as_secs_f64() - gap.as_secs_f64();
                punctual += u64::from(error.abs() < 0.5e-3);
            }
        }
    }
    println!("{spread} by RTT/IW, {capped} by t_max, {at_once} at once; {punctual} punctual");
    assert!(spread >= 10 && capped >= 10 && at_once >= 1);
    let fidelity = outcome.fidelity.unwrap();
    assert_eq!(fidelity.unplanned_drops, 0);
    // What the test bed did is known: of a machine that woke its timers late nothing is asked.
    let (woken, passed_on) = (fidelity.near.timers.mean, fidelity.late_p50);
    if woken.max(passed_on) < Span::from_micros(200) {
        assert!(punctual >= 75, "{punctual} of 100");
    } else {
        println!("not judged: timers {woken:?} late in the mean, the path {passed_on:?}");
    }
}

/// Gaps of 4 ms at the receiver: 99 % within 100 us. For a machine that is not busy:
/// `cargo test --release -p fullpipe-net --test it -- --ignored --nocapture gaps_of_four`
#[test]
#[ignore = "precise timing: for a quiet machine, see above"]
fn gaps_of_four_milliseconds_are_precise() {
    let drawn: Vec<Drawn> = (0..40)
        .map(|_| Drawn {
            iw: 10,
            rtt: Span::from_millis(80),
        })
        .collect();
    let spec = spec(&drawn, Span::from_secs(10));
    let options = Options {
        wait: WaitStrategy::Spin,
        ..Options::default()
    };
    let outcome = run_local(&spec, &options, None, &AtomicBool::new(false)).unwrap();
    let mut errors: Vec<f64> = (0..drawn.len())
        .flat_map(|i| gaps(&seen(&outcome, i).arrived))
        .map(|gap| (gap.as_secs_f64() - T_MAX.as_secs_f64()).abs() * 1e6)
        .collect();
    errors.sort_by(f64::total_cmp);
    let at = |q: f64| errors[(q * (errors.len() - 1) as f64) as usize];
    println!(
        "{} gaps of 4 ms: error p50 {:.1} us, p99 {:.1} us, largest {:.1} us",
        errors.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    assert!(at(0.99) < 100.0);
}
