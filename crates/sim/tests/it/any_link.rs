//! Random links with every element.

use std::sync::Arc;

use fullpipe_run::{
    Buffer, Change, Codel, DeliveryTrace, Discipline, FqCodel, LinkSpec, Loss, Pie, Policer,
    QueueRule, Red, Reorder,
};
use fullpipe_units::{Rate, Span, Time};
use proptest::prelude::*;

fn buffer() -> impl Strategy<Value = Buffer> {
    prop_oneof![
        (1u64..60).prop_map(Buffer::Packets),
        (1500u64..60_000).prop_map(Buffer::Bytes),
        (2_000u64..100_000).prop_map(|us| Buffer::Time(Span::from_micros(us))),
        Just(Buffer::Unlimited),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        4 => Just(Loss::None),
        1 => (0.0..0.2).prop_map(|p| Loss::Bernoulli { p }),
        1 => (0.0..0.1, 0.01..1.0, 0.0..0.05, 0.0..1.0)
            .prop_map(|(to_bad, to_good, good, bad)| Loss::GilbertElliott { to_bad, to_good, good, bad }),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    (100_000u64..20_000_000).prop_map(Rate::from_bits_per_sec)
}

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    range.prop_map(Span::from_micros)
}

fn by() -> impl Strategy<Value = QueueRule> {
    prop_oneof![Just(QueueRule::Rfc), Just(QueueRule::Linux)]
}

fn hz() -> impl Strategy<Value = u32> {
    prop_oneof![Just(100), Just(250), Just(1000)]
}

/// Settings that nobody wants, too: a target of zero, thresholds that are equal, a probability of
/// one.
fn discipline() -> impl Strategy<Value = Discipline> {
    let red = (
        0.0..20.0,
        prop_oneof![1 => Just(0.0), 5 => 1.0..30.0],
        prop_oneof![1 => Just(1.0), 5 => 0.02..1.0],
        0.002..1.0,
        any::<[bool; 4]>(),
        by(),
    );
    let red = red.prop_map(|(min, above, max_p, weight, switches, by)| {
        let [gentle, adaptive, ecn, harddrop] = switches;
        Red {
            min,
            max: min + above,
            max_p,
            weight,
            gentle,
            adaptive,
            ecn,
            harddrop,
            by,
            mtu: 1500,
        }
    });
    let pie = (0u64..30, prop::option::of(0.0..0.5), by(), hz());
    let pie = pie.prop_map(|(ms, ecn, by, hz)| Pie {
        target: Span::from_millis(ms),
        update: Span::from_millis(15),
        alpha: 0.125,
        beta: 1.25,
        max_burst: Span::from_millis(10 * ms),
        ecn,
        by,
        hz,
        mtu: 1500,
    });
    let codel = || {
        let step = prop::option::of((0u64..20).prop_map(Span::from_millis));
        (0u64..30, any::<bool>(), by(), step).prop_map(|(ms, ecn, by, ce_threshold)| Codel {
            target: Span::from_millis(ms),
            interval: Span::from_millis(10 * ms),
            ecn,
            ce_threshold,
            by,
            mtu: 1500,
        })
    };
    let fq = (codel(), 1u32..20, 100u32..3000).prop_map(|(codel, flows, quantum)| FqCodel {
        codel,
        flows,
        quantum,
    });
    prop_oneof![
        5 => Just(Discipline::DropTail),
        1 => red.prop_map(Discipline::Red),
        1 => pie.prop_map(Discipline::Pie),
        1 => codel().prop_map(Discipline::Codel),
        1 => fq.prop_map(Discipline::FqCodel),
    ]
}

fn schedule() -> impl Strategy<Value = Vec<Change>> {
    let outage_or_rate = prop_oneof![1 => Just(Rate::from_bits_per_sec(0)), 3 => rate()];
    let change = (
        0u64..3_000_000,
        prop::option::of(outage_or_rate),
        prop::option::weighted(0.3, micros(0..50_000)),
        prop::option::weighted(0.3, loss()),
    );
    prop::collection::vec(change, 1..6).prop_map(|mut changes| {
        changes.sort_by_key(|c| c.0);
        let change = |(at, rate, delay, loss)| Change {
            at: Time::ZERO + Span::from_micros(at),
            rate,
            delay,
            loss,
        };
        changes.into_iter().map(change).collect()
    })
}

fn trace() -> impl Strategy<Value = Arc<DeliveryTrace>> {
    prop::collection::vec(0u32..1000, 1..500).prop_map(|mut opportunities| {
        opportunities.push(1000);
        opportunities.sort_unstable();
        Arc::new(DeliveryTrace { opportunities })
    })
}

/// Not more than so many links, at least two; a third of them plain.
pub fn links(most: usize) -> impl Strategy<Value = Vec<LinkSpec>> {
    let policer = (rate(), 1500u64..100_000).prop_map(|(rate, burst)| Policer { rate, burst });
    let reorder = (0.0..1.0, micros(0..20_000));
    let reorder = reorder.prop_map(|(probability, extra)| Reorder { probability, extra });
    let rare = (
        discipline(),
        any::<bool>(),
        prop_oneof![2 => Just(Span::ZERO), 1 => micros(1..10_000)],
        prop_oneof![2 => Just(Span::ZERO), 1 => micros(1..10_000)],
        prop::option::weighted(0.2, reorder),
        prop::option::weighted(0.2, policer),
        prop_oneof![2 => Just(vec![]), 1 => schedule()],
        prop::option::weighted(0.2, trace()),
    );
    let plain = (
        prop::option::weighted(0.8, rate()),
        micros(0..50_000),
        buffer(),
        loss(),
        any::<bool>(),
    );
    let link = (plain, prop::option::weighted(0.67, rare)).prop_map(|(plain, rare)| {
        let (rate, delay, buffer, loss, watched) = plain;
        let mut link = LinkSpec::new("", rate, delay, buffer);
        (link.loss, link.watched) = (loss, watched);
        if let Some((discipline, acks, spread, jitter, reorder, policer, schedule, trace)) = rare {
            link.discipline = discipline;
            link.loss_of_acks = acks;
            link.delay_spread = spread;
            link.jitter = jitter;
            link.reorder = reorder;
            link.policer = policer;
            link.schedule = schedule;
            link.trace = trace;
        }
        link
    });
    prop::collection::vec(link, 2..=most).prop_map(|mut links| {
        for (i, link) in links.iter_mut().enumerate() {
            link.name = format!("l{i}");
        }
        links
    })
}
