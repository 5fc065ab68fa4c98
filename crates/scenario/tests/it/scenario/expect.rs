//! Expectations: bounds, several values of a key, ratios of cases.

use fullpipe_scenario::{Overrides, Scenario, WorldKey};

use super::{SMALL, parse, read, small};
use crate::ratios::RATIOS;

#[test]
fn bounds() {
    let bound = |lines: &str| {
        read(&small(&format!(
            "[[expect]]\nmetric = \"goodput_mbps\"\n{lines}"
        )))
        .expectations[0]
            .bound
    };
    assert_eq!(bound("within = [1, 2.5]"), (1.0, 2.5));
    assert_eq!(bound("at_least = 3"), (3.0, f64::INFINITY));
    assert_eq!(bound("at_most = -1"), (f64::NEG_INFINITY, -1.0));
    assert_eq!(bound("at_least = 1\nat_most = 2"), (1.0, 2.0));
    assert_eq!(bound("equals = 10\ntolerance = 1"), (9.0, 11.0));
    assert_eq!(
        bound("equals = 0.3298783\ntolerance = 1e-6"),
        (0.3298773, 0.3298793)
    );
    assert_eq!(bound("equals = -10\ntolerance = \"10%\""), (-11.0, -9.0));
    assert_eq!(
        read(&small("[[expect]]\nmetric = \"drops\"\nat_most = 0")).expectations[0]
            .link
            .as_deref(),
        Some("bottleneck")
    );
}

#[test]
fn an_expectation_may_name_several_values_of_a_key() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 1\n\
         where = {{ \"flow.main.stack\" = [\"cubic\", \"reno\"], \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].cases, [0, 2]);
    assert_eq!(
        scenario.expectations[0].name,
        "goodput_mbps: flow.main.stack = reno, cubic, flow.main.window = 4 segments"
    );
}

#[test]
fn an_expectation_may_be_a_ratio_of_two_cases() {
    let text = format!(
        "{RATIOS}[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1.98, 2.02]\n\
         where = {{ \"flow.main.window\" = \"8 segments\" }}\nratio_to = {{ \"flow.main.window\" = \"4 segments\" }}\n"
    );
    let scenario = read(&text);
    assert_eq!(scenario.expectations[0].pairs, [(1, 0), (3, 2), (5, 4)]);
}

/// The baseline case has no gain, loss or harm: it is not judged by them, and where nothing else
/// would be judged the file is wrong.
#[test]
fn the_baseline_is_not_judged_by_what_is_held_against_it() {
    let two = "[[flow]]\nname = \"b\"\nstack = \"reno\"\n[matrix]\n\
               \"flow.b.stack\" = [\"reno\", \"cubic\"]\n\"path.rtt\" = [\"20ms\", \"40ms\"]\n";
    let measure = "[measure]\nbaseline = { \"flow.b.stack\" = \"reno\" }\n";
    let text = |measure: &str, lines: &str| {
        let first = SMALL.replace("[[flow]]", "[[flow]]\nname = \"a\"");
        format!("{first}{two}{measure}[[expect]]\n{lines}\nat_least = 0.1\n")
    };
    for metric in ["gain", "harm.throughput", "gain - loss", "jain * gain"] {
        let lines = format!("metric = \"{metric}\"");
        let scenario = read(&text(measure, &lines));
        assert_eq!(scenario.expectations[0].cases, [2, 3], "{metric}");
        for (measure, lines, message) in [
            (
                "",
                lines.clone(),
                "`baseline = { \"flow.b.stack\" = \"reno\" }`",
            ),
            (
                measure,
                format!("{lines}\nwhere = {{ \"flow.b.stack\" = \"reno\" }}"),
                "not held against itself",
            ),
        ] {
            let said = refused(&text(measure, &lines));
            assert!(said.contains(message), "{metric}: {said}");
        }
    }
    let scenario = read(&text(measure, "metric = \"jain\""));
    assert_eq!(scenario.expectations[0].cases, [0, 1, 2, 3]);
    // Nobody has to take the expectation out where `--set` leaves the baseline alone.
    let set = [("flow.b.stack", "reno")];
    assert!(
        parse(&text(measure, "metric = \"gain\""), &set)
            .expectations
            .is_empty()
    );
}

/// What is undefined whatever happens could only fail.
#[test]
fn what_a_flow_never_has_is_found_before_the_run() {
    let expect = |metric: &str| format!("[[expect]]\nmetric = \"{metric}\"\nat_most = 5\n");
    for (flow, metric, message) in [
        ("", "completion_time_s", "`main` has no end"),
        ("", "completion_time_s / 2", "`main` has no end"),
        ("", "var.w_max.last", "`reno` has no variable `w_max`"),
        ("", "var.w_max.max - 1", "`reno` has no variable `w_max`"),
    ] {
        let said = refused(&small(&format!("{flow}{}", expect(metric))));
        assert!(said.contains(message), "{metric}: {said}");
    }
    for (flow, metric) in [
        ("size = \"1MB\"\n", "completion_time_s"),
        ("", "goodput_mbps"),
    ] {
        read(&small(&format!("{flow}{}", expect(metric))));
    }
    let cubic = small(&expect("var.w_max.last")).replace("\"reno\"", "\"cubic\"");
    read(&cubic);
    // A law that comes later may have it.
    let change = "[[flow.change]]\nat = \"9s\"\nstack = \"cubic\"\n";
    read(&small(&format!("{change}{}", expect("var.w_max.last"))));
}

/// A scenario has a metric of traffic only where it has traffic, be it switched off.
#[test]
fn a_metric_of_traffic_needs_traffic() {
    let expect = |lines: &str| format!("[[expect]]\n{lines}\nat_most = 5\n");
    let mice = "[[traffic]]\nname = \"mice\"\nkind = \"short-flows\"\nstack = \"reno\"\n\
                size = \"10 segments\"\nper_second = 5\n";
    let mean = expect("metric = \"completion_time_s.mean\"");
    for (text, message) in [
        (mean.clone(), "of traffic, and there is none"),
        (
            expect("metric = \"2 * completion_time_s.mean\""),
            "of traffic, and there is none",
        ),
        (
            mice.to_owned() + &expect("metric = \"completion_time_s.mean\"\nflow = \"main\""),
            "`main` is a flow",
        ),
    ] {
        let said = refused(&small(&text));
        assert!(
            said.contains("test.toml:") && said.contains(message),
            "{said}"
        );
    }
    let with_mice = small(&format!("{mice}{mean}"));
    let off = [("traffic.mice.enabled", "false")];
    read(&with_mice);
    parse(&with_mice, &off);
    let world = off.map(|(key, value)| WorldKey {
        case: None,
        key: key.to_owned(),
        value: value.to_owned(),
    });
    let overrides = Overrides {
        world: world.to_vec(),
        ..Overrides::default()
    };
    let scenario = Scenario::parse(&with_mice, "test.toml", &overrides).unwrap();
    assert_eq!(
        (scenario.expectations.len(), scenario.inapplicable),
        (1, vec![])
    );
}

#[test]
fn two_expectations_of_one_name_are_warned_of() {
    let warnings = |first: &str, second: &str| {
        let expect =
            |lines: &str| format!("[[expect]]\n{lines}\nmetric = \"goodput_mbps\"\nat_least = 1\n");
        let scenario = read(&format!("{RATIOS}{}{}", expect(first), expect(second)));
        let all = scenario.warnings.iter().map(ToString::to_string);
        all.filter(|warning| warning.contains("this name"))
            .collect::<Vec<_>>()
    };
    let named = "name = \"fast\"";
    let before = RATIOS.lines().count();
    let said = warnings(named, named);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with(&format!("test.toml:{}: ", before + 6))
            && said[0].contains(&format!("the expectation of line {} ", before + 1)),
        "{said:?}"
    );
    let of = |stack: &str| format!("{named}\nwhere = {{ \"flow.main.stack\" = \"{stack}\" }}");
    assert_eq!(warnings(&of("reno"), &of("cubic")), [""; 0]);
    assert_eq!(warnings("", ""), [""; 0]);
}

fn refused(text: &str) -> String {
    let read = Scenario::parse(text, "test.toml", &Overrides::default());
    read.expect_err("it is wrong").to_string()
}
