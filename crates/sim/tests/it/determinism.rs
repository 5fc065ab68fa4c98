//! The same specification gives the same bits; a component's randomness is its own.

use std::sync::Arc;

use fullpipe_run::{
    Buffer, Codel, DeliveryTrace, Discipline, FqCodel, Loss, Reorder, RunSpec, Trace,
};
use fullpipe_sim::run;
use fullpipe_units::{Span, Time};

use crate::build::{dumbbell, flow, ms};

fn spec() -> RunSpec {
    let mut flows = vec![
        flow("a", "cubic+hystart++"),
        flow("b", "fast"),
        flow("c", "reno+paced"),
    ];
    flows[0].drops.probability = 1e-3;
    flows[1].start = Time::ZERO + ms(300);
    flows[2].sender.artificial_loss.probability = 1e-3;
    let mut spec = dumbbell(20.0, 30, Buffer::Packets(40), 8.0, flows);
    spec.links[0].loss = Loss::Bernoulli { p: 1e-3 };
    spec.trace = Trace::Every(ms(10));
    spec
}

#[test]
fn the_same_specification_twice_is_identical() {
    let text = |s: &RunSpec| format!("{:?}", run(s).unwrap());
    assert_eq!(text(&spec()), text(&spec()));
    let mut other = spec();
    other.seed = 2;
    assert_ne!(text(&spec()), text(&other), "the seed matters");
}

/// A flow that starts after the end, and a link nobody uses: nothing changes for the others.
#[test]
fn an_idle_component_changes_nobodys_randomness() {
    let alone = run(&spec()).unwrap();
    let mut more = spec();
    let mut idle = flow("idle", "reno");
    idle.start = Time::ZERO + Span::from_secs(100);
    idle.drops.probability = 0.5;
    more.flows.insert(1, idle);
    let mut unused = more.links[0].clone();
    unused.name = "unused".into();
    more.links.push(unused);
    let o = run(&more).unwrap();
    for (i, f) in alone.flows.iter().enumerate() {
        let mut same = o.flows.iter().find(|g| g.name == f.name).unwrap().clone();
        // A row of a trace bears the flow's place in its run.
        same.series.rows.iter_mut().for_each(|r| r.flow = i as u32);
        assert_eq!(format!("{f:?}"), format!("{same:?}"));
    }
    assert_eq!(format!("{:?}", alone.links), format!("{:?}", &o.links[..2]));
    assert_eq!(o.flows[1].totals.sent, 0);
}

/// Links with every element draw from generators of their own: twice the same bits, and a switch of
/// one link leaves the draws of the others alone.
#[test]
fn rare_elements_are_deterministic() {
    let mut spec = spec();
    let fq = FqCodel {
        codel: Codel {
            target: ms(5),
            interval: ms(100),
            ..Codel::default()
        },
        flows: 16,
        quantum: 1500,
    };
    spec.links[0].discipline = Discipline::FqCodel(fq);
    spec.links[0].trace = Some(Arc::new(DeliveryTrace::parse("1\n1\n2\n7").unwrap()));
    spec.links[1].jitter = ms(2);
    spec.links[1].delay_spread = ms(3);
    spec.links[1].loss = Loss::Bernoulli { p: 0.05 };
    spec.links[1].loss_of_acks = true;
    spec.links[1].reorder = Some(Reorder {
        probability: 0.05,
        extra: ms(3),
    });
    let text = |s: &RunSpec| format!("{:?}", run(s).unwrap());
    assert_eq!(text(&spec), text(&spec));
    let one = run(&spec).unwrap();
    assert!(one.links[1].random_drops > 100);
    // A link that nobody uses, with elements of its own.
    let mut unused = spec.links[1].clone();
    unused.name = "unused".into();
    spec.links.push(unused);
    let two = run(&spec).unwrap();
    assert_eq!(format!("{:?}", one.links), format!("{:?}", &two.links[..2]));
}
