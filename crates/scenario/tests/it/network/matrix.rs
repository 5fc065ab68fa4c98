//! Named axes, quick runs, measurements, figures and studies.

use super::{FLOW, HEAD, ms, read, read_with};
use fullpipe_scenario::{Loaded, Overrides, Precision, Scenario, load};
use fullpipe_units::Span;

const AXES: &str = "[matrix]\n\"path.buffer\" = [\"0.5BDP\", \"1BDP\", \"2BDP\"]\n\
    [[matrix.first]]\nname = \"reno\"\nflow.main.stack = \"reno\"\n\
    [[matrix.first]]\nname = \"cubic, wide\"\nflow.main.stack = \"cubic\"\nflow.main.window = \"9MB\"\n\
    [[matrix.place]]\nname = \"near\"\npath.rtt = \"10ms\"\n\
    [[matrix.place]]\nname = \"far\"\npath.rtt = \"70ms\"\n\
    [[expect]]\nmetric = \"utilization\"\nwhere = { first = \"cubic, wide\", \"path.buffer\" = \"2BDP\" }\nat_least = 0.1\n\
    [[expect]]\nmetric = \"utilization\"\nat_least = 0.2\nquick = false\n\
    [[expect]]\nmetric = \"utilization\"\nat_least = 0.3\nquick = true\n\
    [[report]]\nfigure = \"metric\"\nx = \"first\"\ny = \"goodput_mbps\"\n";

#[test]
fn named_axes_multiply() {
    let scenario = read(&format!("{HEAD}{FLOW}{AXES}"));
    assert_eq!(scenario.cases.len(), 12);
    assert_eq!(
        scenario.cases[11].params(),
        [
            ("path.buffer".to_owned(), "2BDP".to_owned()),
            ("first".to_owned(), "cubic, wide".to_owned()),
            ("place".to_owned(), "far".to_owned())
        ]
    );
    assert_eq!(scenario.cases[11].flows[0].base_rtt, ms(70));
    assert_eq!(scenario.cases[11].flows[0].stack, "cubic");
    assert_eq!(scenario.expectations[0].cases, [10, 11]);
    assert_eq!(scenario.expectations.len(), 2);
}

#[test]
fn a_quick_run_has_fewer_cases() {
    let quick = "[quick]\nduration = \"5s\"\nseeds = 2\npath.buffer = [\"1BDP\"]\nplace = [\"far\"]\nflow.main.ack_every = 1\n";
    let text = format!("{HEAD}{FLOW}{AXES}{quick}");
    let full = read(&text);
    assert_eq!(
        (full.cases.len(), full.seeds.len(), full.quick),
        (12, 1, false)
    );
    let quick = read_with(&text, true);
    assert_eq!(
        (quick.cases.len(), quick.seeds.len(), quick.quick),
        (2, 2, true)
    );
    for case in &quick.cases {
        assert_eq!(case.duration, Span::from_secs(5));
        assert_eq!(case.params()[0].1, "1BDP");
        assert_eq!(case.params()[2].1, "far");
        assert_eq!(case.run_spec(1).flows[0].receiver.acks.every, 1);
    }
    // The first expectation's buffer is left out, the second is not for a quick run, the third only
    // for one.
    let bounds: Vec<f64> = quick.expectations.iter().map(|e| e.bound.0).collect();
    assert_eq!(bounds, [0.3]);
    // A key set on the command line comes after.
    let overrides = Overrides {
        quick: true,
        set: vec![("place".to_owned(), "near".to_owned())],
        ..Overrides::default()
    };
    let set = Scenario::parse(&text, "test.toml", &overrides).unwrap();
    assert_eq!(set.cases[0].params()[2].1, "near");
}

#[test]
fn measurements_may_be_repeated_and_held_against_a_baseline() {
    let axes =
        "[matrix]\n\"flow.main.stack\" = [\"cubic\", \"reno\"]\n\"path.mtu\" = [1500, 9000]\n";
    let scenario = read(&format!(
        "{HEAD}{FLOW}{axes}[measure]\nprecision = \"2%\"\nprecision_of = [\"goodput_mbps\", \"rtt_ms.p95\"]\n\
         max_seeds = 50\nbaseline = {{ \"flow.main.stack\" = \"reno\" }}\n"
    ));
    let precision = Precision {
        target: 0.02,
        of: vec!["goodput_mbps".to_owned(), "rtt_ms.p95".to_owned()],
        max_seeds: 50,
    };
    assert_eq!(scenario.measure.precision, Some(precision));
    let baselines: Vec<Option<usize>> = scenario.cases.iter().map(|c| c.baseline).collect();
    assert_eq!(baselines, [Some(2), Some(3), None, None]);
    let short = read(&format!("{HEAD}{FLOW}[measure]\nprecision = 0.05\n"));
    let precision = short.measure.precision.unwrap();
    assert_eq!(
        (precision.of, precision.max_seeds),
        (vec!["goodput_mbps".to_owned()], 30)
    );
}

#[test]
fn figures_of_two_keys() {
    let scenario = read(&format!(
        "{HEAD}[[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\nstack = \"reno\"\n\
         [matrix]\n\"flow.a.stack\" = [\"reno\", \"cubic\"]\n\"flow.b.stack\" = [\"reno\", \"cubic\"]\n\
         [[report]]\nfigure = \"matrix\"\nx = \"flow.a.stack\"\ny = \"flow.b.stack\"\nmetric = \"asymmetry\"\n"
    ));
    let figure = &scenario.reports[0];
    assert_eq!(figure.metric.as_deref(), Some("asymmetry"));
    assert_eq!(figure.y.as_deref(), Some("flow.b.stack"));
}

#[test]
fn figures_of_a_link() {
    let with = |figure: &str, flow: &str| {
        format!(
            "{HEAD}[[flow]]\nstack = \"reno\"\n[matrix]\n\"flow.main.stack\" = [\"reno\", \
             \"cubic\"]\n[[report]]\nfigure = \"{figure}\"\nflow = \"{flow}\"\n"
        )
    };
    let axes = "x = \"flow.main.stack\"\ny = \"utilization\"\n";
    let scenario = read(&(with("metric", "bottleneck") + axes));
    assert_eq!(scenario.reports[0].flow.as_deref(), Some("bottleneck"));
    assert_eq!(read(&with("queue", "bottleneck")).reports.len(), 1);
    // A link has no window, a flow no queue, and neither has completion times of short flows.
    for (text, what) in [
        (with("cwnd", "bottleneck"), "flow"),
        (with("queue", "main"), "link"),
        (with("completion", "main"), "traffic"),
        (with("metric", "botleneck") + axes, "flow, traffic or link"),
    ] {
        let wrong = Scenario::parse(&text, "test.toml", &Overrides::default()).unwrap_err();
        let message = format!("there is no {what} `");
        assert!(wrong.to_string().contains(&message), "{wrong}");
    }
}

#[test]
fn a_study_names_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("mine.toml"), format!("{HEAD}{FLOW}")).unwrap();
    let write = |text: &str| std::fs::write(at("study.toml"), text).unwrap();
    write("name = \"both\"\nabout = \"Two\"\nstudy = [\"first-run\", \"mine.toml\"]\n");
    let study = match load(&at("study.toml"), &Overrides::default()).unwrap() {
        Loaded::Study(study) => study,
        Loaded::Scenario(_) => panic!("a study"),
    };
    assert_eq!((study.name.as_str(), study.about.as_str()), ("both", "Two"));
    assert_eq!(study.scenarios, ["first-run".to_owned(), at("mine.toml")]);
    let refused = Scenario::load(&at("study.toml"), &Overrides::default()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("this is a study, not a scenario"),
        "{refused}"
    );
    write(
        "name = \"both\"\nduration = \"5s\"\nstudy = [\"first-rum\", \"study.toml\", \"first-run\", \"first-run\"]\n",
    );
    let error = load(&at("study.toml"), &Overrides::default())
        .unwrap_err()
        .to_string();
    for part in [
        "study.toml:2: `duration`: a study has no cases of its own",
        "study.toml:3: `study = [\"first-rum\", \"study.toml\", \"first-run\", \"first-run\"]`: there is no scenario `first-rum`\n  hint: did you mean \"first-run\"?",
        "`study.toml` is a study itself",
        "`first-run` stands twice",
    ] {
        assert!(error.contains(part), "{part}\n{error}");
    }
}
