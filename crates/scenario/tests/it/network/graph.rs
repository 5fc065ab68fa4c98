//! Networks of links and routes.

use super::{FLOW, HEAD, link, mbit, ms, names, read, way};
use fullpipe_run::{Buffer, Discipline};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::Span;

const PARKING: &str = "name = \"x\"\nduration = \"60s\"\n\
    [[flow]]\nname = \"long\"\nstack = \"reno\"\nwindow = \"1BDP\"\n\
    [[flow]]\nname = \"first\"\nstack = \"reno\"\nrtt = \"50ms\"\n\
    [[flow]]\nname = \"second\"\nstack = \"reno\"\n\
    [[link]]\nname = \"l1\"\nrate = \"10Mbit/s\"\ndelay = \"10ms\"\nqueue = \"red\"\n\
    [[link]]\nname = \"l2\"\nrate = \"20Mbit/s\"\ndelay = \"5ms\"\nbuffer = \"30 packets\"\nschedule = { at = \"1s\", delay = \"7ms\" }\n\
    [[link]]\nname = \"home\"\ndelay = \"20ms\"\n\
    [[route]]\nflow = \"long\"\nforward = [\"l1\", \"l2\"]\n\
    [[route]]\nflow = \"first\"\nforward = \"l1\"\nback = [\"home\"]\n\
    [[route]]\nflow = \"second\"\nforward = [\"l2\"]\nback = [\"home\"]\n";

#[test]
fn links_make_any_graph() {
    let scenario = read(PARKING);
    assert_eq!(scenario.warnings, []);
    let spec = scenario.cases[0].run_spec(1);
    let [long, first, second] = spec.flows.as_slice() else {
        panic!("three flows")
    };
    assert_eq!(way(&spec, &long.forward), ["l1", "l2"]);
    assert_eq!(way(&spec, &long.back), ["return-15ms"]);
    assert_eq!(way(&spec, &first.forward), ["l1"]);
    assert_eq!(way(&spec, &first.back), ["home", "extra-20ms"]);
    assert_eq!(way(&spec, &second.back), ["home"]);
    let groups = &scenario.cases[0].flows;
    let rtts: Vec<Span> = groups.iter().map(|group| group.base_rtt).collect();
    assert_eq!(rtts, [ms(30), ms(50), ms(25)]);
    assert_eq!(groups[0].capacity, mbit(10));
    assert_eq!(groups[2].capacity, mbit(20));
    // 10 Mbit/s in 30 ms: 25 packets.
    assert_eq!(groups[0].window_cap, Some(25.0));
    // The longest RTT over the first link is 50 ms: 41 packets.
    assert_eq!(link(&spec, "l1").buffer, Buffer::Packets(41));
    assert_eq!(link(&spec, "l2").buffer, Buffer::Packets(30));
    assert!(matches!(link(&spec, "l1").discipline, Discipline::Red(_)));
    assert_eq!(link(&spec, "l2").schedule[0].delay, Some(ms(7)));
    // Keys of links vary.
    let varied = read(&format!(
        "{PARKING}[matrix]\n\"link.l1.rate\" = [\"5Mbit/s\", \"10Mbit/s\"]\n"
    ));
    assert_eq!(varied.cases[0].flows[0].capacity, mbit(5));
}

/// Whoever has no route crosses `[path]`; where there is none, the route is what is missing.
#[test]
fn a_flow_without_a_route_needs_one_or_a_path() {
    let (some, _) = PARKING.rsplit_once("[[route]]").unwrap();
    let refused = Scenario::parse(some, "x.toml", &Overrides::default()).unwrap_err();
    let keys: Vec<&str> = refused.0.iter().map(|d| d.key.as_str()).collect();
    assert_eq!(keys, ["flow.second"], "{refused}");
    let half = some.replacen("[[flow]]", "[path]\nrtt = \"20ms\"\n[[flow]]", 1);
    let refused = Scenario::parse(&half, "x.toml", &Overrides::default()).unwrap_err();
    assert_eq!(refused.0[0].key, "path.rate", "{refused}");
    let path = "[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n[[flow]]";
    let spec = read(&some.replacen("[[flow]]", path, 1)).cases[0].run_spec(1);
    assert_eq!(way(&spec, &spec.flows[2].forward), ["bottleneck"]);
}

#[test]
fn what_is_not_enabled_is_left_out() {
    let scenario = read(&format!(
        "{HEAD}[[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\nstack = \"reno\"\ndirection = \"reverse\"\n\
         [[traffic]]\nname = \"p\"\nkind = \"ping\"\n\
         [matrix]\n\"flow.b.enabled\" = [false, true]\n\"traffic.p.enabled\" = [false, true]\n"
    ));
    let shape = |i: usize| {
        let spec = scenario.cases[i].run_spec(1);
        (
            spec.flows.len(),
            spec.cross.len(),
            names(&spec).contains(&"return"),
        )
    };
    assert_eq!([shape(0), shape(3)], [(1, 0, false), (2, 1, true)]);
}

#[test]
fn a_metric_of_a_link_asks_which_where_none_is_the_bottleneck() {
    let links = ["access", "core"]
        .map(|name| format!("[[link]]\nname = \"{name}\"\nrate = \"1Gbit/s\"\ndelay = \"5ms\"\n"))
        .concat();
    let text = format!(
        "name = \"x\"\nduration = \"60s\"\n{links}{FLOW}[[route]]\nflow = \"main\"\n\
         forward = [\"access\", \"core\"]\n[[expect]]\nmetric = \"utilization\"\nat_least = 0.9\n"
    );
    let wrong = |text: &str| {
        let read = Scenario::parse(text, "x.toml", &Overrides::default());
        read.unwrap_err().to_string()
    };
    assert_eq!(
        wrong(&text).trim_end(),
        "error: x.toml:16: `expect[1].link`: which link is meant?\n  \
         hint: write link = \"access\" or \"core\" or \"return-10ms\""
    );
    let misspelt = wrong(&format!("{text}link = \"cor\"\n"));
    assert!(misspelt.contains("there is no link `cor`"), "{misspelt}");
}
