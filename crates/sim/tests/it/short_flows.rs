//! Short flows that come and go: how many, how long, how fast, and each the same as a lasting flow
//! of its own.

use fullpipe_run::{
    ArrivalOutcome, ArrivalSpec, Arrivals, Buffer, FlowSpec, Loss, RunSpec, Session, SizeLaw,
};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{dumbbell, flow, ms, source};

/// Mice of 10 segments each.
fn mice(arrivals: Arrivals) -> ArrivalSpec {
    ArrivalSpec {
        template: flow("mice", "reno"),
        arrivals,
        sizes: SizeLaw::Fixed(10),
        session: Session::default(),
        seeded_by: None,
    }
}

/// A bottleneck of 12 Mbit/s (a packet per millisecond), 40 ms each way.
fn path(arrivals: Vec<ArrivalSpec>, seconds: f64) -> RunSpec {
    RunSpec {
        arrivals,
        ..dumbbell(12.0, 80, Buffer::Unlimited, seconds, vec![])
    }
}

fn result(spec: &RunSpec) -> ArrivalOutcome {
    run(spec).unwrap().arrivals.remove(0)
}

/// Ten segments of a millisecond and one round trip; with a handshake one more and the time of the
/// SYN, 52 bytes.
#[test]
fn on_an_idle_path_completion_has_a_closed_form() {
    let every = Arrivals::Every(ms(500));
    let r = result(&path(vec![mice(every.clone())], 10.0));
    // At 500 ... 9500 ms: one at the end itself would have no time.
    assert_eq!(r.transfers.len(), 19);
    for (i, t) in r.transfers.iter().enumerate() {
        assert_eq!(t.start, Time::ZERO + ms(500 * (i as u64 + 1)));
        assert_eq!(t.completion, Some(ms(90)));
        assert_eq!((t.size, t.lost, t.retransmits, t.timeouts), (10, 0, 0, 0));
    }
    let mut shaking = mice(every);
    shaking.template.sender.handshake = true;
    let syn = u64::from(shaking.template.sender.header) * 8_000 / 12;
    let r = result(&path(vec![shaking], 10.0));
    assert_eq!(
        r.transfers[0].completion,
        Some(Span::from_nanos(syn) + ms(170))
    );
}

/// A window of 4 takes three rounds for 10 segments: 4, then 8 would go, so 6 on the heels of the
/// first four ACKs.
#[test]
fn a_smaller_initial_window_takes_a_round_more() {
    let mut m = mice(Arrivals::Every(ms(500)));
    m.template.sender.window.initial = 4.0;
    let r = result(&path(vec![m], 2.0));
    // The first ACK is back after 81 ms; then two segments follow each ACK: the last six leave
    // within 6 ms.
    assert_eq!(r.transfers[0].completion, Some(ms(81 + 6 + 80)));
}

#[test]
fn arrivals_follow_their_law() {
    // 50 per second for 200 s: 10000, standard deviation 100; per second variance equals mean.
    let r = result(&path(
        vec![mice(Arrivals::Poisson { per_second: 50.0 })],
        200.0,
    ));
    let n = r.transfers.len() as f64;
    assert!((n - 1e4).abs() < 400.0, "{n}");
    let mut per_second = vec![0.0f64; 200];
    for t in &r.transfers {
        per_second[(t.start.as_secs_f64() as usize).min(199)] += 1.0;
    }
    let mean = n / 200.0;
    let variance = per_second.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 199.0;
    assert!((variance / mean - 1.0).abs() < 0.4, "{variance} {mean}");

    // Sizes tell nothing of the times: 2000 flows, a correlation within four standard errors of
    // zero.
    let mut varied = mice(Arrivals::Poisson { per_second: 50.0 });
    varied.sizes = SizeLaw::Uniform(1, 20);
    let r = result(&path(vec![varied], 40.0));
    let pairs: Vec<(f64, f64)> = r
        .transfers
        .windows(2)
        .map(|w| ((w[1].start - w[0].start).as_secs_f64(), w[1].size as f64))
        .collect();
    let n = pairs.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let covariance = mean(&|p| (p.0 - x) * (p.1 - y));
    let deviations = (mean(&|p| (p.0 - x).powi(2)) * mean(&|p| (p.1 - y).powi(2))).sqrt();
    assert!((covariance / deviations).abs() < 4.0 / n.sqrt());

    let mut bounded = mice(Arrivals::Every(ms(100)));
    bounded.template.start = Time::ZERO + ms(1000);
    bounded.template.stop = Some(Time::ZERO + ms(2000));
    let r = result(&path(vec![bounded], 5.0));
    assert_eq!(r.transfers.len(), 10, "1100, 1200 ... 2000 ms");
    assert!(
        r.transfers.iter().all(|t| t.completion.is_some()),
        "a stop ends arrivals, not flows"
    );

    let mut spread = mice(Arrivals::Spread {
        count: 300,
        within: ms(10_000),
    });
    spread.template.start = Time::ZERO + ms(5000);
    let r = result(&path(vec![spread], 30.0));
    let starts: Vec<f64> = r.transfers.iter().map(|t| t.start.as_secs_f64()).collect();
    assert_eq!(starts.len(), 300);
    assert!(starts.is_sorted() && starts[0] >= 5.0 && starts[299] <= 15.0);
    let mean = starts.iter().sum::<f64>() / 300.0;
    assert!(
        (mean - 10.0).abs() < 4.0 * 10.0 / 12f64.sqrt() / 300f64.sqrt(),
        "{mean}"
    );
}

/// Forced drops strike every flow of the class: the mask has them, each is resent once.
#[test]
fn the_mask_shows_lost_first_transmissions() {
    let mut m = mice(Arrivals::Every(ms(2000)));
    m.sizes = SizeLaw::Fixed(80);
    m.template.drops.segments = vec![0, 3, 9, 63, 64];
    let r = result(&path(vec![m], 21.0));
    for t in &r.transfers[..9] {
        assert_eq!(t.lost, 1 | 1 << 3 | 1 << 9 | 1 << 63);
        assert_eq!(t.retransmits, 5);
        assert!(t.completion.is_some());
    }
    let sum: u32 = r.transfers.iter().map(|t| t.retransmits).sum();
    assert_eq!(r.totals.retransmits, u64::from(sum));
    assert!(r.totals.dropped >= 45);
}

/// Losses of a link, too: every dropped packet of the first transmissions is a bit.
#[test]
fn the_mask_shows_losses_of_a_full_buffer() {
    let mut spec = path(vec![mice(Arrivals::Every(ms(400)))], 30.0);
    spec.links[0].buffer = Buffer::Packets(6);
    let r = result(&spec);
    // Ten at once, six fit: the last four are lost. All are resent.
    for t in &r.transfers[..70] {
        assert_eq!(t.lost, 0b11_1100_0000);
        assert!(t.retransmits >= 4 && t.completion.is_some());
    }
}

/// A round trip of 3 s outlasts the first timeout: segment 0 goes again although it was not lost.
/// Only that copy is dropped.
#[test]
fn the_mask_has_no_lost_copies() {
    let mut m = mice(Arrivals::Every(ms(10_000)));
    m.sizes = SizeLaw::Fixed(1);
    m.template.drops.times = vec![Time::ZERO + ms(10_500)];
    let mut spec = path(vec![m], 19.0);
    spec.links[1].delay = ms(3000);
    let r = result(&spec);
    let t = &r.transfers[0];
    assert_eq!((t.lost, r.totals.dropped), (0, 1));
    assert!(t.retransmits >= 1);
    assert_eq!(t.completion, Some(ms(3041)));
}

/// The interface refuses a copy sent on a timeout that was not needed; the flow completes before
/// the interface has room. Whoever comes next is not woken by that.
#[test]
fn a_refused_flow_keeps_its_slot_until_it_was_woken() {
    let mut m = mice(Arrivals::Every(Span::from_micros(1_000_500)));
    m.sizes = SizeLaw::Fixed(1);
    m.template.local_queue = true;
    m.template.sender.recovery.tlp = false;
    let mut spec = path(vec![m], 3.0);
    spec.links[0].buffer = Buffer::Packets(1);
    // There and back: one transmission and 999.3 ms.
    spec.links[1].delay = Span::from_micros(959_300);
    // In the interface from 0.2 ms before the timeout until 0.8 ms after it.
    let mut s = source("background", 12.0);
    s.start = Time::ZERO + Span::from_micros(1_000_500 + 1_000_000 - 200 - 1_000);
    s.stop = Some(s.start + Span::from_micros(1_100));
    spec.cross = vec![s];
    let r = result(&spec);
    assert_eq!(
        r.totals.local_stalls, 2,
        "the copy, and the newcomer at once"
    );
    assert_eq!(
        r.transfers[0].completion,
        Some(Span::from_micros(1_000_300))
    );
}

#[test]
fn totals_add_up() {
    let mut spec = path(vec![mice(Arrivals::Poisson { per_second: 40.0 })], 20.0);
    spec.arrivals[0].sizes = SizeLaw::Uniform(1, 30);
    spec.links[0].loss = Loss::Bernoulli { p: 0.03 };
    spec.measure_from = Time::ZERO + ms(5000);
    let r = result(&spec);
    let t = r.totals;
    assert_eq!(r.delivered_per_interval.iter().sum::<u64>(), t.delivered);
    assert_eq!(
        r.delivered_per_interval[5..].iter().sum::<u64>(),
        t.delivered_measured
    );
    let done = r.transfers.iter().filter(|t| t.completion.is_some());
    let (count, segments) = done.fold((0, 0), |(n, s), t| (n + 1, s + t.size));
    assert!(count > 700, "{count}");
    assert!(t.delivered >= segments && t.delivered <= r.transfers.iter().map(|t| t.size).sum());
    assert!(t.timeouts > 0 && t.retransmits > 0 && t.dropped > 0 && t.acks > 0);
    assert!(t.delivered_measured <= t.arrived_measured && t.loss_events_measured < t.loss_events);
    assert!(r.rtt.count() > 1000 && r.rtt.min().unwrap() >= ms(81));
    spec.measure_from = Time::ZERO;
    let part = r.rtt.count() as f64 / result(&spec).rtt.count() as f64;
    assert!((0.65..0.85).contains(&part), "15 of 20 s: {part}");
}

/// A class is nothing but its flows: the same flows, named, started and sized as the class drew
/// them, as lasting ones over the same lossy bottleneck, complete to the nanosecond at the same
/// times. Slots are reused a hundred times meanwhile.
#[test]
fn a_short_flow_is_a_flow_like_any_other() {
    let going_on = Session {
        exchanges: 3.0,
        think: ms(300),
    };
    for (handshake, ack_every, session) in [
        (false, 1, Session::default()),
        (true, 2, Session::default()),
        (true, 2, going_on),
    ] {
        let mut class = mice(Arrivals::Poisson { per_second: 20.0 });
        class.sizes = SizeLaw::Pareto {
            mean: 12.0,
            shape: 1.3,
            most: 300,
        };
        class.template.sender.handshake = handshake;
        class.template.receiver.acks.every = ack_every;
        class.template.drops.probability = 0.01;
        class.session = session;
        let mut spec = path(vec![class.clone()], 60.0);
        spec.links[0].loss = Loss::Bernoulli { p: 0.02 };
        spec.links[0].buffer = Buffer::Packets(40);
        spec.cross = vec![source("background", 3.0)];
        let short = result(&spec);
        assert!(short.transfers.len() > 1000);
        let flows: Vec<FlowSpec> = short
            .transfers
            .iter()
            .enumerate()
            .map(|(i, t)| {
                let mut f = class.template.clone();
                f.name = format!("mice#{i}");
                f.start = t.start;
                f.sender.transfer = Some(t.size);
                f
            })
            .collect();
        let lasting = RunSpec {
            arrivals: vec![],
            flows,
            ..spec
        };
        let o = run(&lasting).unwrap();
        for (i, (t, f)) in short.transfers.iter().zip(&o.flows).enumerate() {
            assert_eq!(t.completion.map(|c| t.start + c), f.completed, "{i}");
            assert_eq!(u64::from(t.retransmits), f.totals.retransmits);
            assert_eq!(u64::from(t.timeouts), f.totals.timeouts);
        }
        let sum = |get: fn(&fullpipe_run::FlowTotals) -> u64| -> u64 {
            o.flows.iter().map(|f| get(&f.totals)).sum()
        };
        assert_eq!(short.totals.sent, sum(|t| t.sent));
        assert_eq!(short.totals.acks, sum(|t| t.acks));
        assert_eq!(short.totals.duplicates, sum(|t| t.duplicates));
        assert_eq!(short.totals.out_of_order, sum(|t| t.out_of_order));
        assert_eq!(short.totals.dropped, sum(|t| t.dropped));
        assert_eq!(
            short.rtt.count(),
            o.flows.iter().map(|f| f.rtt.count()).sum::<u64>()
        );
    }
}

/// Common random numbers: another transport, a bigger buffer, another law of arrivals or sizes, one
/// more class or flow leave the other draws as they are.
#[test]
fn variants_share_arrivals_and_sizes() {
    let mut class = mice(Arrivals::Poisson { per_second: 30.0 });
    class.sizes = SizeLaw::Uniform(2, 30);
    let base = path(vec![class.clone()], 20.0);
    let starts = |r: &ArrivalOutcome| r.transfers.iter().map(|t| t.start).collect::<Vec<_>>();
    let sizes = |r: &ArrivalOutcome| r.transfers.iter().map(|t| t.size).collect::<Vec<_>>();
    let a = result(&base);
    let mut variant = base.clone();
    variant.arrivals[0].template.stack = flow("x", "cubic").stack;
    variant.arrivals[0].template.sender.window.initial = 3.0;
    variant.links[0].buffer = Buffer::Packets(20);
    let mut other = mice(Arrivals::Poisson { per_second: 10.0 });
    other.template.name = "other".into();
    variant.arrivals.push(other);
    variant.flows = vec![flow("bulk", "reno")];
    let b = result(&variant);
    assert_eq!((starts(&a), sizes(&a)), (starts(&b), sizes(&b)));
    assert_ne!(a.transfers, b.transfers);

    let mut rarer = base.clone();
    rarer.arrivals[0].arrivals = Arrivals::Poisson { per_second: 15.0 };
    let c = result(&rarer);
    assert_ne!(starts(&a)[..50], starts(&c)[..50]);
    assert_eq!(sizes(&a)[..200], sizes(&c)[..200]);

    let mut longer = base.clone();
    longer.arrivals[0].sizes = SizeLaw::Uniform(2, 60);
    let d = result(&longer);
    assert_eq!(starts(&a), starts(&d));
    assert_ne!(sizes(&a)[..50], sizes(&d)[..50]);

    assert_eq!(
        result(&base).transfers,
        a.transfers,
        "the same specification twice"
    );
    let seed = RunSpec { seed: 2, ..base };
    assert_ne!(starts(&result(&seed))[..50], starts(&a)[..50]);
}

/// The start of a flow is uniform over its spread, drawn from its own generator.
#[test]
fn starts_are_spread() {
    let start = |seed: u64, name: &str, edit: &dyn Fn(&mut FlowSpec)| {
        let mut f = flow(name, "reno");
        f.start = Time::ZERO + ms(1000);
        f.start_spread = ms(500);
        f.sender.transfer = Some(2);
        edit(&mut f);
        let mut spec = dumbbell(12.0, 80, Buffer::Unlimited, 3.0, vec![f]);
        spec.seed = seed;
        let o = run(&spec).unwrap();
        // It really starts then: two segments later it is done.
        assert_eq!(o.flows[0].completed, Some(o.flows[0].started + ms(82)));
        (o.flows[0].started - Time::ZERO).as_millis_f64()
    };
    let starts: Vec<f64> = (0..200).map(|seed| start(seed, "a", &|_| {})).collect();
    assert!(starts.iter().all(|s| (1000.0..1500.0).contains(s)));
    let mean = starts.iter().sum::<f64>() / 200.0;
    assert!(
        (mean - 1250.0).abs() < 4.0 * 500.0 / 12f64.sqrt() / 200f64.sqrt(),
        "{mean}"
    );
    assert_ne!(start(1, "a", &|_| {}), start(1, "b", &|_| {}));
    let again = start(1, "a", &|f| f.drops.probability = 1e-9);
    assert_eq!(start(1, "a", &|_| {}), again, "loss draws elsewhere");
    assert_eq!(start(1, "a", &|f| f.start_spread = Span::ZERO), 1000.0);
}

/// Classes of one session each, `c0`, `c1` ..., of transfers of 1 to 20 segments.
fn alone(count: usize, session: Session) -> Vec<ArrivalSpec> {
    let one = |i: usize| {
        let mut class = mice(Arrivals::Spread {
            count: 1,
            within: ms(1000),
        });
        class.template.name = format!("c{i}");
        class.sizes = SizeLaw::Uniform(1, 20);
        class.session = session;
        class
    };
    (0..count).map(one).collect()
}

/// From the completion of each transfer of a lone session to the start of the next one.
fn thoughts(session: &ArrivalOutcome) -> Vec<Span> {
    let pairs = session.transfers.windows(2);
    pairs
        .map(|w| w[1].start - (w[0].start + w[0].completion.unwrap()))
        .collect()
}

/// 300 sessions of five transfers in the mean: geometric, with a deviation of sqrt(5 * 4); think
/// times are exponential, of a second.
#[test]
fn sessions_follow_their_law() {
    let session = Session {
        exchanges: 5.0,
        think: ms(1000),
    };
    let o = run(&path(alone(300, session), 100.0)).unwrap();
    let lengths: Vec<f64> = (o.arrivals.iter())
        .map(|a| a.transfers.len() as f64)
        .collect();
    let mean = lengths.iter().sum::<f64>() / 300.0;
    let error = (20f64 / 300.0).sqrt();
    assert!((mean - 5.0).abs() < 4.0 * error, "{mean}");
    // A fifth are over after the first transfer, 0.8^4 go on after the fourth.
    let part = |is: &dyn Fn(f64) -> bool| lengths.iter().filter(|n| is(**n)).count() as f64 / 300.0;
    assert!((part(&|n| n == 1.0) - 0.2).abs() < 4.0 * (0.16f64 / 300.0).sqrt());
    assert!((part(&|n| n > 4.0) - 0.4096).abs() < 4.0 * (0.25f64 / 300.0).sqrt());

    let seconds: Vec<f64> = (o.arrivals.iter().flat_map(thoughts))
        .map(|t| t.as_secs_f64())
        .collect();
    let n = seconds.len() as f64;
    let mean = seconds.iter().sum::<f64>() / n;
    assert!((mean - 1.0).abs() < 4.0 / n.sqrt(), "{mean} of {n}");
    let longer = seconds.iter().filter(|t| **t > 1.0).count() as f64 / n;
    assert!((longer - (-1f64).exp()).abs() < 2.0 / n.sqrt(), "{longer}");

    // Without a think time the next one begins with the ACK of the last segment.
    let at_once = Session {
        exchanges: 5.0,
        think: Span::ZERO,
    };
    let o = run(&path(alone(9, at_once), 60.0)).unwrap();
    let thoughts: Vec<Span> = o.arrivals.iter().flat_map(thoughts).collect();
    assert!(thoughts.len() > 9 && thoughts.iter().all(|t| *t == Span::ZERO));
}

/// Common random numbers of sessions: a slower path, another stack, a longer think time leave what
/// a session draws as it is; and sessions leave the arrivals, and the sizes of those, as they are.
#[test]
fn sessions_share_their_draws_and_disturb_nobody() {
    let session = Session {
        exchanges: 4.0,
        think: ms(500),
    };
    let base = path(alone(20, session), 120.0);
    let mut variant = base.clone();
    variant.links[0].rate = Some(fullpipe_units::Rate::from_bits_per_sec(3_000_000));
    for class in &mut variant.arrivals {
        class.template.stack = flow("x", "cubic").stack;
    }
    let (a, b) = (run(&base).unwrap(), run(&variant).unwrap());
    let sizes = |r: &ArrivalOutcome| r.transfers.iter().map(|t| t.size).collect::<Vec<_>>();
    for (a, b) in a.arrivals.iter().zip(&b.arrivals) {
        assert_eq!(
            (sizes(a), thoughts(a)),
            (sizes(b), thoughts(b)),
            "{}",
            a.name
        );
    }
    assert_ne!(a.arrivals[0].transfers, b.arrivals[0].transfers);

    // Many sessions of one class: whichever goes on first, all transfer the same.
    let mut many = mice(Arrivals::Spread {
        count: 200,
        within: ms(10_000),
    });
    many.sizes = SizeLaw::Uniform(1, 1000);
    many.session = session;
    let base = path(vec![many], 1500.0);
    let mut slower = base.clone();
    slower.links[0].rate = Some(fullpipe_units::Rate::from_bits_per_sec(6_000_000));
    let (a, b) = (result(&base), result(&slower));
    let sorted = |r: &ArrivalOutcome| {
        let mut all = sizes(r);
        all.sort_unstable();
        all
    };
    assert!(a.transfers.len() > 600, "{}", a.transfers.len());
    assert_ne!(sizes(&a), sizes(&b));
    assert_eq!(sorted(&a), sorted(&b));

    // The first transfers are those of the class without sessions.
    let mut single = base.clone();
    single.arrivals[0].session = Session::default();
    let first = result(&single).transfers;
    let known = |r: &ArrivalOutcome| {
        r.transfers
            .iter()
            .map(|t| (t.start, t.size))
            .collect::<Vec<_>>()
    };
    let all = known(&a);
    assert_eq!(first.len(), 200);
    assert!(first.iter().all(|t| all.contains(&(t.start, t.size))));
    // Nothing is drawn for a session of one transfer.
    single.arrivals[0].session.think = ms(700);
    assert_eq!(result(&single).transfers, first);
}

/// Fifty users who want five times what the path carries: closed, none of them has more than one
/// transfer open; open arrivals that want as much pile up.
#[test]
fn a_closed_loop_bounds_what_is_open() {
    let mut closed = mice(Arrivals::Spread {
        count: 50,
        within: ms(1000),
    });
    closed.sizes = SizeLaw::Fixed(100);
    let mut open = closed.clone();
    closed.session = Session {
        exchanges: 1e6,
        think: ms(900),
    };
    open.arrivals = Arrivals::Poisson { per_second: 50.0 };
    let most_open = |class: ArrivalSpec| {
        let r = result(&path(vec![class], 60.0));
        let ends = r.transfers.iter().map(|t| {
            let end = t.completion.map_or(Time::MAX, |c| t.start + c);
            (end, -1i64)
        });
        let begins = r.transfers.iter().map(|t| (t.start, 1));
        let mut changes: Vec<(Time, i64)> = begins.chain(ends).collect();
        changes.sort_unstable();
        let count = changes.iter().scan(0, |open, (_, change)| {
            *open += change;
            Some(*open)
        });
        (count.max().unwrap(), r.transfers.len())
    };
    let ((closed, transfers), (open, _)) = (most_open(closed), most_open(open));
    assert!((40..=50).contains(&closed), "{closed}");
    // A minute of a full path is 600 of them.
    assert!((590..=650).contains(&transfers), "{transfers}");
    assert!(open > 1500, "{open}");
}

#[test]
fn no_session_goes_on_after_the_stop() {
    let mut class = mice(Arrivals::Every(ms(100)));
    class.session = Session {
        exchanges: 1e6,
        think: ms(50),
    };
    class.sizes = SizeLaw::Fixed(1);
    let stop = Time::ZERO + ms(2000);
    let mut stopped = class.clone();
    stopped.template.stop = Some(stop);
    let r = result(&path(vec![stopped], 6.0));
    assert!(r.transfers.len() > 100, "{}", r.transfers.len());
    assert!(
        r.transfers
            .iter()
            .all(|t| t.start <= stop && t.completion.is_some())
    );
    let end = Time::ZERO + ms(6000);
    let r = result(&path(vec![class], 6.0));
    let last = r.transfers.last().unwrap().start;
    assert!(last > stop && last < end, "{last}");
}

/// Paired camps: the same transfers at the same times, whatever stack either has.
#[test]
fn paired_camps_have_the_same_transfers() {
    let mut a = mice(Arrivals::Poisson { per_second: 20.0 });
    a.template.name = "camp-a".into();
    a.sizes = SizeLaw::Uniform(2, 30);
    let mut b = a.clone();
    b.template.name = "camp-b".into();
    b.seeded_by = Some("camp-a".into());
    let camps = |a: &ArrivalSpec, b: &ArrivalSpec| {
        let o = run(&path(vec![a.clone(), b.clone()], 30.0)).unwrap();
        let drawn = |i: usize| -> Vec<(Time, u64)> {
            let rows = o.arrivals[i].transfers.iter();
            rows.map(|t| (t.start, t.size)).collect()
        };
        let names = o.arrivals.iter().map(|a| a.name.clone());
        assert_eq!(names.collect::<Vec<_>>(), ["camp-a", "camp-b"]);
        (drawn(0), drawn(1))
    };
    let (of_a, of_b) = camps(&a, &b);
    assert!(of_a.len() > 500);
    assert_eq!(of_a, of_b);
    let mut another = b.clone();
    another.template.stack = flow("x", "cubic").stack;
    another.template.sender.window.initial = 3.0;
    assert_eq!(camps(&a, &another), (of_a.clone(), of_b));
    let unpaired = ArrivalSpec {
        seeded_by: None,
        ..b.clone()
    };
    let (again, apart) = camps(&a, &unpaired);
    assert_eq!(again, of_a);
    assert_ne!(apart[..50], of_a[..50]);

    // Sessions too, on paths where neither camp is in the way of the other.
    let session = Session {
        exchanges: 4.0,
        think: ms(500),
    };
    let mut o = run(&{
        let lone = alone(1, session).remove(0);
        let mut other = lone.clone();
        other.template.name = "other".into();
        other.seeded_by = Some("c0".into());
        let mut spec = path(vec![lone, other], 60.0);
        spec.seed = 7;
        spec
    })
    .unwrap();
    let (b, a) = (o.arrivals.pop().unwrap(), o.arrivals.pop().unwrap());
    assert!(a.transfers.len() > 2, "{}", a.transfers.len());
    assert_eq!(thoughts(&a), thoughts(&b));
}
