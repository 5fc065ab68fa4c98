//! Matrices, named cases, what the command line sets, and the keys of equal cases.

use std::num::NonZeroU32;

use super::{CONTRACT, SMALL, parse, read, small};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{Rate, Span};

#[test]
fn tables_and_keys_inside_them_vary() {
    let scenario = read(&small(
        r#"
drop = { probability = 0.01 }
[matrix]
"flow.main.drop.where" = ["path", "sender"]
"flow.main.drop.probability" = [1e-2, 1e-3]
"#,
    ));
    let losses: Vec<(f64, f64)> = scenario
        .cases
        .iter()
        .map(|case| {
            let flow = &case.run_spec(1).flows[0];
            (
                flow.drops.probability,
                flow.sender.artificial_loss.probability,
            )
        })
        .collect();
    assert_eq!(losses, [(1e-2, 0.0), (1e-3, 0.0), (0.0, 1e-2), (0.0, 1e-3)]);

    let scenario = read(&small(
        "[matrix]\n\"flow.*.drop\" = [{ every = 100 }, { segment = 7, where = \"sender\" }]",
    ));
    assert_eq!(
        scenario.cases[1].params()[0].1,
        "{ segment = 7, where = \"sender\" }"
    );
    assert_eq!(
        scenario.cases[1].run_spec(1).flows[0]
            .sender
            .artificial_loss
            .segments,
        [7]
    );

    // A table of a case takes the place of the file's table; a dotted key goes into it.
    let scenario = read(&small(
        r#"
drop = { segment = 20 }
[[matrix.case]]
name = "as in the file"
[[matrix.case]]
name = "replaced"
flow.main.drop = { every = 100 }
[[matrix.case]]
name = "refined"
flow.main.drop.every = 100
[[matrix.case]]
name = "none"
flow.main.drop = []
"#,
    ));
    let drops: Vec<(usize, Option<u64>)> = scenario
        .cases
        .iter()
        .map(|case| case.run_spec(1).flows.remove(0).drops)
        .map(|drops| (drops.segments.len(), drops.every))
        .collect();
    assert_eq!(
        drops,
        [(1, None), (0, Some(100)), (1, Some(100)), (0, None)]
    );

    // Without quotes a dotted key is a nest of tables.
    let scenario = read(&small(
        "[matrix]\nflow.main.stack = [\"reno\", \"highspeed\"]",
    ));
    assert_eq!(scenario.cases[1].flows[0].stack, "highspeed");
}

#[test]
fn settings() {
    let scenario = parse(
        SMALL,
        &[
            ("path.rate", "1Gbit/s"),
            ("flow.stack", "highspeed(low_window=31)"),
            ("duration", "\"10s\""),
            ("seeds", "[4, 5]"),
        ],
    );
    let spec = scenario.cases[0].run_spec(1);
    assert_eq!(
        spec.links[0].rate,
        Some(Rate::from_bits_per_sec(1_000_000_000))
    );
    assert_eq!(spec.flows[0].stack.to_string(), "highspeed(low_window=31)");
    assert_eq!(
        (spec.duration, scenario.seeds.as_slice()),
        (Span::from_secs(10), [4, 5].as_slice())
    );
    assert_eq!(scenario.cases[0].params(), []);

    // A key of the matrix keeps its place with one value; expectations about the others do not
    // apply.
    let scenario = parse(CONTRACT, &[("flow.main.stack", "highspeed")]);
    assert_eq!(scenario.cases.len(), 2);
    assert_eq!(
        scenario.cases[1].params()[0],
        ("flow.main.stack".to_owned(), "highspeed".to_owned())
    );
    assert_eq!(scenario.expectations, []);
    let scenario = parse(
        CONTRACT,
        &[("path.mtu", "1500"), ("flow.main.drop.segment", "41")],
    );
    assert_eq!((scenario.cases.len(), scenario.expectations.len()), (3, 1));
    assert_eq!(scenario.cases[2].run_spec(1).flows[0].drops.segments, [41]);

    // A word is the table with that kind.
    let table = [("path.queue", "{ kind = \"codel\", target = \"1ms\" }")];
    let word = [("path.queue", "codel"), ("path.queue.target", "1ms")];
    let queue = |set: &[(&str, &str)]| {
        let spec = parse(SMALL, set).cases[0].run_spec(1);
        spec.links[0].discipline
    };
    assert_eq!(queue(&word), queue(&table));

    let seeded = |seed, repeat: Option<u32>| {
        Scenario::parse(
            SMALL,
            "x",
            &Overrides {
                seed,
                repeat: repeat.and_then(NonZeroU32::new),
                ..Overrides::default()
            },
        )
        .map(|scenario| scenario.seeds)
    };
    assert_eq!(seeded(Some(9), None).unwrap(), [9]);
    assert_eq!(seeded(None, Some(3)).unwrap(), [1, 2, 3]);
    assert_eq!(seeded(Some(9), Some(2)).unwrap(), [9, 10]);
    // One, however many the file has.
    let first = Overrides {
        seed: Some(100),
        ..Overrides::default()
    };
    let text = format!("seeds = 5\n{SMALL}");
    let scenario = Scenario::parse(&text, "x", &first).unwrap();
    assert_eq!(scenario.seeds, [100]);
    // Refused, not allocated.
    let refused = seeded(None, Some(u32::MAX)).unwrap_err().to_string();
    assert!(
        refused.contains("1 to 1000000 seeds are expected"),
        "{refused}"
    );
}

#[test]
fn equal_cases_have_equal_keys() {
    let key = |text: &str| read(text).cases[0].key_text();
    let base = key(SMALL);
    assert_eq!(key(&SMALL.replace("80ms", "0.08s")), base);
    assert_eq!(key(&SMALL.replace("\"x\"", "\"y\"")), base);
    assert_eq!(key(&small("preset = \"2026\"")), base);
    for other in [
        "ack_every = 1",
        "start = \"1ms\"",
        "name = \"other\"",
        "drop = { segment = 1 }",
        "window = \"1BDP\"",
    ] {
        assert_ne!(key(&small(other)), base, "{other}");
    }
    assert_ne!(
        key(&small("[measure]\nrecovered_at = { rate = 0.9 }")),
        base
    );
}

#[test]
fn named_cases_set_several_keys() {
    let scenario = parse(CASES, &[]);
    let names: Vec<String> = scenario
        .cases
        .iter()
        .map(|case| case.params()[0].1.clone())
        .collect();
    assert_eq!(names, ["short", "short", "long", "long"]);
    let spec = scenario.cases[3].run_spec(1);
    assert_eq!(spec.links[0].delay, Span::from_millis(85));
    assert_eq!(
        (spec.flows[0].sender.window.max, spec.flows[0].drops.every),
        (5524.0, Some(100))
    );
    assert_eq!(
        (spec.flows[0].stack.to_string().as_str(), spec.duration),
        ("highspeed", Span::from_secs(60))
    );
    assert_eq!(scenario.cases[0].run_spec(1).duration, Span::from_secs(10));
    assert_eq!(scenario.expectations[0].cases, [2, 3]);
    assert_eq!(
        scenario.expectations[0].where_,
        [("case".to_owned(), "long".to_owned())]
    );

    // What the command line sets holds in every case, also in those that set it themselves.
    let scenario = parse(
        CASES,
        &[("path.rtt", "20ms"), ("flow.main.drop.every", "7")],
    );
    let delays: Vec<Span> = scenario
        .cases
        .iter()
        .map(|case| case.run_spec(1).links[0].delay)
        .collect();
    assert_eq!(delays, [Span::from_millis(10); 4]);
    assert_eq!(scenario.cases[0].run_spec(1).flows[0].drops.every, Some(7));

    // A name that says something else is about the case without what was set.
    let scenario = parse(CASES, &[("path.rtt", "170ms")]);
    assert_eq!(
        (scenario.expectations.len(), scenario.warnings.len()),
        (1, 1)
    );
    let scenario = parse(CASES, &[("path.rtt", "20ms")]);
    assert_eq!(scenario.expectations, []);
    let said = scenario.warnings[0].to_string();
    assert!(said.contains("`case` set this too"), "{said}");
    // A key that no case sets is no part of it, beside one that some do.
    let both = [("path.rtt", "20ms"), ("path.rate", "2Gbit/s")];
    assert_eq!(parse(CASES, &both).warnings.len(), 1);
    let scenario = parse(CASES, &[("flow.main.stack", "cubic")]);
    assert_eq!(
        (scenario.expectations.len(), scenario.warnings.len()),
        (1, 0)
    );

    let scenario = parse(CASES, &[("case", "short")]);
    assert_eq!((scenario.cases.len(), scenario.expectations.len()), (2, 0));
}

pub(super) const CASES: &str = r#"
name = "x"
duration = "60s"
[path]
rate = "1Gbit/s"
rtt = "80ms"
[[flow]]
stack = "reno"
[[matrix.case]]
name = "short"
duration = "10s"
path.rtt = "10ms"
[[matrix.case]]
name = "long"
path.rtt = "170ms"
flow.main.window = "8MB"
flow.main.drop = { every = 100 }
[matrix]
"flow.main.stack" = ["reno", "highspeed"]
[[expect]]
metric = "goodput_mbps"
where = { case = "long" }
at_least = 100
"#;
