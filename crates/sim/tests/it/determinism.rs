//! The same specification gives the same bits; a component's randomness is its own.

use fullpipe_sim::{Buffer, Loss, RunSpec, Trace, run};
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
    for f in &alone.flows {
        let same = o.flows.iter().find(|g| g.name == f.name).unwrap();
        assert_eq!(format!("{f:?}"), format!("{same:?}"));
    }
    assert_eq!(format!("{:?}", alone.links), format!("{:?}", &o.links[..2]));
    assert_eq!(o.flows[1].totals.sent, 0);
}
