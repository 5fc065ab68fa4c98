//! Jitter, reordering, policing, losses of ACKs, thin return paths, spread delays, and marks.

use fullpipe_run::{
    Buffer, CaptureEvent, Codel, Discipline, FqCodel, LinkSpec, Loss, Outcome, Pie, Policer,
    QueueRule, Red, Reorder, RunSpec,
};
use fullpipe_sim::run;
use fullpipe_units::{Rate, Span, Time};

use crate::build::{dumbbell, flow, link, mbit, ms, source};

/// A bulk flow over 12 Mbit/s and 40 ms with a window of 30 packets, below the path's.
fn windowed(seconds: f64, edit: impl FnOnce(&mut RunSpec)) -> Outcome {
    let mut f = flow("main", "reno");
    f.sender.window.max = 30.0;
    let mut spec = dumbbell(12.0, 40, Buffer::Packets(100), seconds, vec![f]);
    edit(&mut spec);
    run(&spec).unwrap()
}

#[test]
fn jitter_keeps_the_order() {
    let o = windowed(20.0, |s| s.links[0].jitter = ms(20));
    let f = &o.flows[0];
    assert_eq!((f.totals.out_of_order, f.totals.retransmits), (0, 0));
    let (least, most) = (f.rtt.min().unwrap(), f.rtt.max().unwrap());
    assert!(least >= ms(41) && least < ms(43), "{least}");
    assert!(most > ms(59), "{most}");
    // Datagrams too far apart to hold one another back: uniform from 0 to 20 ms.
    let mut spec = RunSpec {
        cross: vec![source("s", 0.3)],
        ..dumbbell(12.0, 20, Buffer::Unlimited, 400.0, vec![])
    };
    spec.links[0].jitter = ms(20);
    let s = &run(&spec).unwrap().cross[0];
    let mean = s.delay.mean_s().unwrap() * 1e3;
    assert!((mean - 21.0).abs() < 0.3, "{mean}");
    let q = s.delay.quantile(0.25).unwrap().as_millis_f64();
    assert!((q - 16.0).abs() < 0.5, "{q}");
}

/// Each reordered packet is overtaken by the packets behind it for 5 ms; every one of them is out
/// of order when it arrives.
#[test]
fn reordered_packets_are_out_of_order() {
    for p in [0.01, 0.1] {
        let mut spec = RunSpec {
            flows: vec![{
                let mut f = flow("main", "reno");
                f.sender.window.max = 30.0;
                f
            }],
            capture: true,
            ..dumbbell(12.0, 40, Buffer::Packets(100), 60.0, vec![])
        };
        spec.links[0].reorder = Some(Reorder {
            probability: p,
            extra: ms(5),
        });
        let o = run(&spec).unwrap();
        let mut newest = 0;
        let (mut late, mut all) = (0.0, 0.0);
        for row in &o.capture {
            if let CaptureEvent::SegmentReceived(s) = row.event
                && !s.retransmission
            {
                all += 1.0;
                late += f64::from(u8::from(s.seq < newest));
                newest = newest.max(s.seq);
            }
        }
        let deviation = (p * (1.0 - p) / all).sqrt();
        // A few of them find nobody behind them.
        assert!(
            late / all < p + 4.0 * deviation && late / all > 0.93 * p - 4.0 * deviation,
            "{p}: {} of {all}",
            late / all
        );
        assert_eq!(o.flows[0].totals.dropped, 0);
    }
}

/// A paced source of 12 Mbit/s against 3 Mbit/s and 60 packets: rate times time plus the burst
/// pass.
#[test]
fn a_policer_passes_rate_times_time_plus_burst() {
    let mut spec = RunSpec {
        cross: vec![source("s", 12.0)],
        ..dumbbell(100.0, 20, Buffer::Unlimited, 10.0, vec![])
    };
    spec.links[0].policer = Some(Policer {
        rate: Rate::from_bits_per_sec(3_000_000),
        burst: 60 * 1500,
    });
    let o = run(&spec).unwrap();
    let l = &o.links[0];
    // 2500 packets of 10 s plus 60.
    let passed = l.offered - l.policer_drops;
    assert!((2558..=2560).contains(&passed), "{passed}");
    assert_eq!(o.cross[0].dropped, l.policer_drops);
    assert_eq!(l.buffer_drops + l.random_drops + l.early_drops, 0);
    // Below its rate it drops nothing.
    spec.cross = vec![source("s", 2.9)];
    assert_eq!(run(&spec).unwrap().links[0].policer_drops, 0);
}

/// With every second segment acknowledged, a fifth of the ACKs lost is made up for by the next
/// ones.
#[test]
fn lost_acks_cost_a_bulk_flow_little() {
    let bulk = |edit: &dyn Fn(&mut LinkSpec)| {
        let mut f = flow("main", "cubic");
        f.receiver.acks.every = 2;
        let mut spec = dumbbell(12.0, 40, Buffer::Packets(60), 60.0, vec![f]);
        spec.measure_from = Time::ZERO + Span::from_secs(5);
        edit(&mut spec.links[1]);
        run(&spec).unwrap()
    };
    let lossy = |l: &mut LinkSpec| l.loss = Loss::Bernoulli { p: 0.2 };
    let clean = bulk(&|_| {});
    // Without the switch, losses spare ACKs.
    let spared = bulk(&lossy);
    assert_eq!(spared.links[1].random_drops, 0);
    let lost = bulk(&|l| {
        lossy(l);
        l.loss_of_acks = true;
    });
    let l = &lost.links[1];
    let part = l.random_drops as f64 / l.offered as f64;
    assert!((part - 0.2).abs() < 0.01, "{part}");
    let goodput = |o: &Outcome| o.flows[0].totals.delivered_measured as f64;
    let kept = goodput(&lost) / goodput(&clean);
    assert!(kept > 0.97, "{kept}");
    assert_eq!(lost.flows[0].totals.timeouts, 0);
}

/// 1000 ACKs of 52 B a second need 416 kbit/s. Through 104 kbit/s one takes 4 ms: what gets through
/// comes 4 ms apart, and acknowledges several segments.
#[test]
fn a_thin_return_path_spaces_acks() {
    let mut spec = dumbbell(
        12.0,
        40,
        Buffer::Packets(60),
        30.0,
        vec![flow("main", "reno")],
    );
    let ack = spec.flows[0].sender.header as f64;
    spec.links[1] = link(
        "return",
        mbit(ack * 8.0 / 4000.0),
        ms(20),
        Buffer::Packets(20),
    );
    spec.links[1].delay_spread = Span::ZERO;
    spec.capture = true;
    let o = run(&spec).unwrap();
    let acks = o
        .capture
        .iter()
        .filter(|r| matches!(r.event, CaptureEvent::AckReceived(_)));
    let times: Vec<Time> = acks.map(|r| r.at).collect();
    let gaps = times.windows(2).map(|w| w[1] - w[0]);
    assert!(gaps.clone().all(|g| g >= ms(4)));
    let exact = gaps.filter(|g| *g == ms(4)).count();
    assert!(
        exact as f64 > 0.9 * times.len() as f64,
        "{exact} of {}",
        times.len()
    );
    assert!(
        o.links[1].buffer_drops > 1000,
        "{}",
        o.links[1].buffer_drops
    );
    assert!(o.links[1].utilization > 0.95);
    // Bursts, but the way forward is still used.
    assert!(o.links[0].utilization > 0.7, "{}", o.links[0].utilization);
}

#[test]
fn a_spread_delay_is_drawn_once_per_run() {
    let delay = |seed, name: &str, edit: &dyn Fn(&mut LinkSpec)| {
        let mut spec = RunSpec {
            seed,
            cross: vec![source("s", 1.0)],
            ..dumbbell(12.0, 20, Buffer::Unlimited, 2.0, vec![])
        };
        spec.links[0].name = name.into();
        spec.links[0].delay_spread = ms(30);
        edit(&mut spec.links[0]);
        let s = run(&spec).unwrap().cross[0].delay.clone();
        assert_eq!(s.min(), s.max());
        s.min().unwrap()
    };
    let plain = |seed| delay(seed, "x", &|_| {});
    // Rare elements do not change what is drawn.
    let special = delay(7, "x", &|l| l.loss_of_acks = true);
    assert_eq!(plain(7), special);
    assert_ne!(plain(7), delay(7, "y", &|_| {}));
    let all: Vec<f64> = (0..400).map(|seed| plain(seed).as_millis_f64()).collect();
    assert!(all.iter().all(|d| (11.0..=41.0).contains(d)));
    let mean = all.iter().sum::<f64>() / 400.0;
    // Standard deviation of the mean: 30 / sqrt(12 * 400) = 0.43 ms.
    assert!((mean - 26.0).abs() < 1.5, "{mean}");
}

fn disciplines(ecn: bool) -> [Discipline; 4] {
    let codel = Codel {
        target: ms(5),
        interval: ms(100),
        ecn,
        ..Codel::default()
    };
    [
        Discipline::Red(Red {
            min: 5.0,
            max: 15.0,
            max_p: 0.1,
            weight: 0.002,
            ecn,
            ..Red::classic(60)
        }),
        Discipline::Pie(Pie {
            target: ms(15),
            update: ms(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: ms(150),
            ecn: ecn.then_some(0.1),
            ..Pie::default()
        }),
        Discipline::Codel(codel),
        Discipline::FqCodel(FqCodel {
            codel,
            flows: 1024,
            quantum: 1500,
        }),
    ]
}

/// Every mark arrives as CE, is echoed by the next ACK, reduces the window once per round trip, and
/// is answered by CWR; data that may be marked is not dropped.
#[test]
fn a_mark_reaches_the_sender() {
    for discipline in disciplines(true) {
        let mut f = flow("main", "reno");
        f.sender.ecn = true;
        f.receiver.ecn = true;
        // Slow start ends before any average can run away.
        f.sender.window.max = 70.0;
        let mut spec = dumbbell(12.0, 40, Buffer::Packets(1000), 60.0, vec![f]);
        spec.links[0].discipline = discipline;
        spec.capture = true;
        let o = run(&spec).unwrap();
        let (l, f) = (&o.links[0], &o.flows[0]);
        assert!(l.marks > 20, "{discipline:?}: {}", l.marks);
        assert_eq!(
            (l.early_drops, f.totals.retransmits),
            (0, 0),
            "{discipline:?}"
        );
        let times = |wanted: &dyn Fn(&CaptureEvent) -> bool| -> Vec<Time> {
            let rows = o.capture.iter().filter(|r| wanted(&r.event));
            rows.map(|r| r.at).collect()
        };
        let marked = times(&|e| matches!(e, CaptureEvent::SegmentReceived(s) if s.ce));
        let echoed = times(&|e| matches!(e, CaptureEvent::AckSent(a) if a.ece));
        let heard = times(&|e| matches!(e, CaptureEvent::AckReceived(a) if a.ece));
        let answered = times(&|e| matches!(e, CaptureEvent::SegmentSent(s) if s.cwr));
        // Some may be on the way at the end.
        let arrived = marked.len() as u64;
        assert!(
            arrived <= l.marks && l.marks <= arrived + 60,
            "{arrived} {}",
            l.marks
        );
        assert_eq!(echoed[0], marked[0]);
        assert_eq!(heard[0], marked[0] + ms(20));
        assert!(answered[0] >= heard[0] && answered[0] < heard[0] + ms(60));
        let reductions = f.totals.loss_events;
        assert!(
            reductions.abs_diff(answered.len() as u64) <= 1,
            "{discipline:?}"
        );
        assert!(
            reductions > 10 && reductions <= l.marks,
            "{discipline:?}: {reductions}"
        );
        // A receiver that does not echo: only what PIE drops above its limit for marks is noticed.
        spec.flows[0].receiver.ecn = false;
        let deaf = run(&spec).unwrap();
        assert!(deaf.links[0].marks > 20);
        let noticed = deaf.flows[0].totals.loss_events;
        assert!(
            noticed == 0 || deaf.links[0].early_drops >= noticed,
            "{discipline:?}"
        );
    }
}

/// Ten segments in one instant, and a buffer of eight that counts the one in transmission: an idle
/// transmitter takes the first before the others come (Linux `__dev_xmit_skb` sends at once what it
/// has enqueued), and two are lost. Flow queueing drops half of the longest queue.
#[test]
fn an_idle_transmitter_takes_the_first_of_a_burst() {
    let drops = |discipline: Discipline| {
        let mut f = flow("main", "reno");
        f.sender.transfer = Some(10);
        let mut spec = dumbbell(12.0, 80, Buffer::Packets(8), 0.02, vec![f]);
        spec.links[0].discipline = discipline;
        run(&spec).unwrap().links[0].buffer_drops
    };
    assert_eq!(drops(Discipline::DropTail), 2);
    for rule in [QueueRule::Rfc, QueueRule::Linux] {
        for mut discipline in disciplines(false) {
            let (by, expected) = match &mut discipline {
                Discipline::Red(red) => (&mut red.by, 2),
                Discipline::Pie(pie) => (&mut pie.by, 2),
                Discipline::Codel(codel) => (&mut codel.by, 2),
                Discipline::FqCodel(fq) => (&mut fq.codel.by, 4),
                Discipline::DropTail => continue,
            };
            *by = rule;
            assert_eq!(drops(discipline), expected, "{discipline:?}");
        }
    }
}

/// A window of one flow through a queue by hand: ten packets at once wait 0, 1 .. 9 ms.
#[test]
fn the_queueing_delay_is_the_time_before_transmission() {
    for discipline in [Discipline::DropTail, disciplines(false)[2]] {
        let mut f = flow("main", "reno");
        f.sender.transfer = Some(10);
        let mut spec = dumbbell(12.0, 80, Buffer::Packets(20), 0.2, vec![f]);
        spec.links[0].discipline = discipline;
        let l = &run(&spec).unwrap().links[0];
        let d = &l.queueing_delay;
        assert_eq!(d.count(), 10);
        assert_eq!((d.min(), d.max()), (Some(Span::ZERO), Some(ms(9))));
        assert!((d.mean_s().unwrap() - 4.5e-3).abs() < 1e-12);
        // 1 + 2 + .. + 10 packet-milliseconds in 200 ms.
        assert!(
            (l.queue_mean - 55.0 / 200.0).abs() < 1e-9,
            "{}",
            l.queue_mean
        );
        assert_eq!(l.queue_max, 10);
        spec.links[0].watched = false;
        assert_eq!(run(&spec).unwrap().links[0].queueing_delay.count(), 0);
    }
}
