//! Random topologies and flows: the simulator's own checks never fail, and nothing is created or
//! lost.

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Detector, LocalDrop, Preset, ReceiverConfig, Reduction, SenderConfig};
use fullpipe_run::{
    ArrivalSpec, Arrivals, CaptureEvent, CrossSpec, Departures, Drops, FlowSpec, LinkSpec, RunSpec,
    Session, SizeLaw, Spacing, Trace, Waveform,
};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};
use proptest::prelude::*;

use crate::any_link::links;

const STACKS: &[&str] = &[
    "reno",
    "cubic",
    "highspeed+limited",
    "htcp",
    "fast",
    "vegas",
    "westwood",
    "ledbat",
    "scalable+spread",
    "bic+paced",
    "illinois+hystart",
];

prop_compose! {
    fn flow()(
        stack in 0..STACKS.len(),
        ecn in any::<bool>(),
        detector in prop_oneof![Just(Detector::Rack), Just(Detector::Sack), Just(Detector::NewReno)],
        old in any::<bool>(),
        prr in any::<bool>(),
        ack_every in 1u32..4,
        window in prop::option::weighted(0.3, 1u64..60),
        transfer in prop::option::weighted(0.4, 1u64..300),
        forward in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        back in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        local_queue in prop::bool::weighted(0.3),
        local_drop in prop_oneof![Just(LocalDrop::React), Just(LocalDrop::Ignore), Just(LocalDrop::ExitSlowStart)],
        start in 0u64..2_500,
        stop in prop::option::weighted(0.3, 0u64..3_000),
        drops in (
            prop::collection::vec(0u64..200, 0..5),
            prop::collection::vec(0u64..2_000, 0..4),
            prop::option::weighted(0.2, 2u64..50),
            prop::option::weighted(0.2, 1.0..40.0),
            prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        ),
    ) -> (FlowSpec, Vec<prop::sample::Index>, Vec<prop::sample::Index>) {
        let preset = if old { Preset::Y2003 } else { Preset::Y2026 };
        let mut sender = SenderConfig::preset(preset, 1500);
        sender.ecn = ecn;
        sender.recovery.detector = detector;
        sender.recovery.reduction = if prr {
            Reduction::Prr
        } else {
            Reduction::Immediate
        };
        sender.transfer = transfer;
        sender.host.local_drop = local_drop;
        sender.window.max = 300.0;
        let mut receiver = ReceiverConfig::preset(preset);
        receiver.ecn = ecn;
        receiver.sack.enabled = detector != Detector::NewReno;
        receiver.acks.every = ack_every;
        receiver.window.max = window;
        let time = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let spec = FlowSpec {
            name: String::new(),
            stack: StackSpec::parse(STACKS[stack]).unwrap(),
            sender,
            receiver,
            forward: vec![],
            back: vec![],
            local_queue,
            start: time(start),
            start_spread: Span::ZERO,
            stop: stop.map(time),
            drops: Drops {
                segments: drops.0,
                times: drops.1.into_iter().map(time).collect(),
                every: drops.2,
                at_window: drops.3,
                probability: drops.4,
            },
 arrival_drops: Default::default(),
            changes: Vec::new(),
 reverse: false,
 preset: None,
 written: Vec::new(),
};
        (spec, forward, back)
    }
}

/// Nanoseconds.
fn least_delay(link: &LinkSpec) -> u64 {
    let later = link.schedule.iter().filter_map(|c| c.delay);
    later.fold(link.delay, Span::min).as_nanos()
}

fn rate(most: u64) -> impl Strategy<Value = Rate> {
    (0..most).prop_map(Rate::from_bits_per_sec)
}

fn span(low: u64, high: u64) -> impl Strategy<Value = Span> {
    (low..high).prop_map(Span::from_micros)
}

fn waveform() -> impl Strategy<Value = Waveform> {
    prop_oneof![
        (
            rate(5_000_000),
            rate(5_000_000),
            span(1, 900_000),
            prop::option::of(span(1_000, 2_000_000))
        )
            .prop_map(|(a, b, at, period)| Waveform::Steps {
                steps: vec![(Span::ZERO, a), (at, b)],
                period,
            }),
        (rate(4_000_000), span(1_000, 2_000_000)).prop_map(|(mean, period)| Waveform::Sine {
            mean,
            amplitude: mean,
            period,
        }),
        (rate(10_000_000), span(0, 200_000), span(0, 200_000))
            .prop_map(|(rate, on, off)| Waveform::OnOff { rate, on, off }),
    ]
}

fn arrivals() -> impl Strategy<Value = (Arrivals, SizeLaw)> {
    (
        prop_oneof![
            (0.0..60.0).prop_map(|per_second| Arrivals::Poisson { per_second }),
            span(10_000, 500_000).prop_map(Arrivals::Every),
            (0u64..80, span(0, 3_000_000))
                .prop_map(|(count, within)| Arrivals::Spread { count, within }),
        ],
        prop_oneof![
            (0u64..40).prop_map(SizeLaw::Fixed),
            (1u64..10, 10u64..40).prop_map(|(a, b)| SizeLaw::Uniform(a, b)),
            Just(SizeLaw::Pareto {
                mean: 8.0,
                shape: 1.1,
                most: 500
            }),
        ],
    )
}

/// What follows a transfer, and whether another class seeds this one.
fn sessions() -> impl Strategy<Value = (Session, bool)> {
    let going_on = (1.0..50.0, 0u64..500).prop_map(|(exchanges, think)| Session {
        exchanges,
        think: Span::from_millis(think),
    });
    (
        prop_oneof![Just(Session::default()), going_on],
        any::<bool>(),
    )
}

/// Traffic besides the flows: sources, probes, classes, by places of their links.
#[derive(Clone, Debug)]
struct Besides {
    sources: Vec<(Waveform, bool, u16, u64, Vec<prop::sample::Index>)>,
    pings: Vec<(u64, u16, Vec<prop::sample::Index>, Vec<prop::sample::Index>)>,
    classes: Vec<(Law, (Session, bool), Shape)>,
}

type Law = (Arrivals, SizeLaw);
type Shape = (FlowSpec, Vec<prop::sample::Index>, Vec<prop::sample::Index>);

prop_compose! {
    fn besides()(
        sources in prop::collection::vec(
            (waveform(), any::<bool>(), 40u16..1500, 0u64..2_500, prop::collection::vec(any::<prop::sample::Index>(), 1..4)), 0..3
        ),
        pings in prop::collection::vec(
            (1_000u64..500_000, 64u16..1500, prop::collection::vec(any::<prop::sample::Index>(), 1..4),
             prop::collection::vec(any::<prop::sample::Index>(), 1..4)), 0..3
        ),
        classes in prop::collection::vec((arrivals(), sessions(), flow()), 0..3),
    ) -> Besides {
        Besides { sources, pings, classes }
    }
}

impl Besides {
    fn add_to(self, spec: &mut RunSpec) {
        let n = spec.links.len();
        let places =
            |route: &[prop::sample::Index]| route.iter().map(|x| x.index(n)).collect::<Vec<_>>();
        for (i, (waveform, poisson, packet, start, route)) in self.sources.into_iter().enumerate() {
            let spacing = match poisson {
                true => Spacing::Poisson,
                false => Spacing::Even,
            };
            spec.cross.push(CrossSpec {
                departures: Departures::Rate(waveform.clone(), spacing),
                start: Time::ZERO + Span::from_millis(start),
                ..CrossSpec::source(&format!("s{i}"), packet, waveform, places(&route))
            });
        }
        for (i, (interval, size, forward, back)) in self.pings.into_iter().enumerate() {
            let (name, every) = (format!("p{i}"), Span::from_micros(interval));
            let (forward, back) = (places(&forward), places(&back));
            spec.cross
                .push(CrossSpec::probes(&name, size, every, forward, back));
        }
        for (i, class) in self.classes.into_iter().enumerate() {
            let ((arrivals, sizes), (session, paired), (mut f, forward, back)) = class;
            f.name = format!("c{i}");
            f.forward = places(&forward);
            f.back = places(&back);
            if f.forward.iter().all(|l| spec.links[*l].rate.is_none()) {
                f.forward.push(0);
            }
            spec.arrivals.push(ArrivalSpec {
                template: f,
                arrivals,
                sizes,
                session,
                seeded_by: paired.then(|| "c0".to_owned()),
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_random_run_conserves(
        seed in any::<u64>(),
        links in links(4),
        flows in prop::collection::vec(flow(), 0..5),
        besides in besides(),
        capture in any::<bool>(),
        measure in 0u64..3_000,
        trace in prop_oneof![Just(Trace::Off), Just(Trace::Full), Just(Trace::Every(Span::from_millis(5)))],
    ) {
        let n = links.len();
        let mut links = links;
        links[0].rate = links[0].rate.or(Some(Rate::from_bits_per_sec(1_000_000)));
        let flows: Vec<FlowSpec> = flows
            .into_iter()
            .enumerate()
            .map(|(i, (mut f, forward, back))| {
                f.name = format!("f{i}");
                f.forward = forward.iter().map(|x| x.index(n)).collect();
                f.back = back.iter().map(|x| x.index(n)).collect();
                // Something must bound the packets of a second.
                if f.forward.iter().all(|l| links[*l].rate.is_none()) {
                    f.forward.push(0);
                }
                f
            })
            .collect();
        let mut spec = RunSpec {
            seed,
            duration: Span::from_secs(3),
            measure_from: Time::ZERO + Span::from_millis(measure),
            interval: Span::from_millis(100),
            links,
            flows,
            trace,
            capture,
            ..RunSpec::default()
        };
        besides.add_to(&mut spec);
        let o = match run(&spec) {
            Ok(o) => o,
            Err(v) => return Err(TestCaseError::fail(v.to_string())),
        };
        for l in &o.links {
            prop_assert!((0.0..=1.0).contains(&l.utilization), "{}: {}", l.name, l.utilization);
            prop_assert!(l.queueing_delay.count() <= l.delivered);
            prop_assert!(l.marks <= l.delivered + l.queue_max);
            prop_assert!(l.queue_mean >= 0.0 && l.queue_mean <= l.queue_max.max(1) as f64, "{}: {} {}", l.name, l.queue_mean, l.queue_max);
            prop_assert!(trace != Trace::Off || l.series.is_empty());
            let most = l.series.iter().map(|s| s.max).max();
            prop_assert!(most.is_none_or(|most| most >= l.queue_max), "{}: {most:?} {}", l.name, l.queue_max);
            prop_assert!(l.series.iter().all(|s| s.min <= s.packets && s.packets <= s.max));
            prop_assert!(l.series.is_sorted_by(|a, b| a.at < b.at && b.min <= a.packets && a.packets <= b.max));
            prop_assert!(l.series.last().is_none_or(|s| s.at == Time::ZERO + spec.duration));
        }
        for (f, s) in o.flows.iter().zip(&spec.flows) {
            let t = &f.totals;
            prop_assert!(t.delivered + t.duplicates + t.dropped <= t.sent);
            prop_assert!(t.delivered <= s.sender.transfer.unwrap_or(u64::MAX));
            prop_assert!(t.delivered_measured <= t.arrived_measured && t.delivered_measured <= t.delivered);
            prop_assert_eq!(f.delivered_per_interval.iter().sum::<u64>(), t.delivered);
            if f.completed.is_some() && s.stop.is_none() {
                prop_assert_eq!(Some(t.delivered), s.sender.transfer);
            }
            if let Some(min) = f.rtt.min() {
                // Propagation there and back is the least.
                let base: u64 = s.forward.iter().chain(&s.back).map(|l| least_delay(&spec.links[*l])).sum();
                prop_assert!(min.as_nanos() >= base, "{} {}", min, base);
            }
        }
        for s in o.one_way() {
            prop_assert_eq!(s.sent_per_interval.iter().sum::<u64>(), s.sent);
            prop_assert_eq!(s.arrived_per_interval.iter().sum::<u64>(), s.arrived);
            prop_assert!(s.arrived + s.dropped <= s.sent && s.delay.count() == s.arrived_measured);
        }
        for (p, s) in o.answered().zip(spec.cross.iter().filter(|c| c.answered)) {
            let base: u64 = s.forward.iter().chain(&s.back).map(|l| least_delay(&spec.links[*l])).sum();
            prop_assert!(p.delay.min().is_none_or(|least| least.as_nanos() >= base));
            prop_assert!(p.series.len() as u64 + p.dropped <= p.sent);
        }
        for a in &o.arrivals {
            let rows = &a.transfers;
            prop_assert_eq!(a.delivered_per_interval.iter().sum::<u64>(), a.totals.delivered);
            prop_assert_eq!(rows.iter().map(|t| u64::from(t.retransmits)).sum::<u64>(), a.totals.retransmits);
            prop_assert_eq!(rows.iter().map(|t| u64::from(t.timeouts)).sum::<u64>(), a.totals.timeouts);
            let done: u64 = rows.iter().filter(|t| t.completion.is_some()).map(|t| t.size).sum();
            let all: u64 = rows.iter().map(|t| t.size).sum();
            prop_assert!((done..=all).contains(&a.totals.delivered));
            let lost: u64 = rows.iter().map(|t| u64::from(t.lost.count_ones())).sum();
            prop_assert!(lost <= a.totals.dropped);
        }
        // Every packet of a flow that any link dropped, and every exact loss, is one row.
        let rows = |is: fn(&CaptureEvent) -> bool| o.capture.iter().filter(|r| is(&r.event)).count() as u64;
        let dropped = rows(|e| matches!(e, CaptureEvent::SegmentDropped(s) if !s.syn));
        let expected: u64 = o.flows.iter().map(|f| f.totals.dropped).sum();
        prop_assert_eq!(dropped, if capture { expected } else { 0 });
    }
}
