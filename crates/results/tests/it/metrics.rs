//! The reference page explains the test bed; metrics of real runs are sane.

use fullpipe_metrics as metrics;
use fullpipe_results::result::RunResult;

use crate::small::{MATRIX, scenario};
use crate::store_support::run;

/// Every number of a real run's fidelity is explained, and nothing is that is not there.
#[test]
fn what_a_result_says_of_the_test_bed_is_on_the_page() {
    let page = metrics::markdown();
    let section = page
        .split("\n## ")
        .find(|s| s.starts_with("Of the test bed"));
    let rows = section
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| `"));
    let mut explained: Vec<&str> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|word| {
            word.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        })
        .collect();
    explained.sort_unstable();
    explained.dedup();
    let schema = RunResult::json_schema();
    let definitions = &schema.as_value()["$defs"];
    let mut keys: Vec<&str> = ["Fidelity", "HostFidelity"]
        .iter()
        .flat_map(|d| definitions[d]["properties"].as_object().unwrap().keys())
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(keys.len() > 20, "{keys:?}");
    assert_eq!(explained, keys);
}

#[test]
fn metrics_of_a_run_hang_together() {
    let (ran, _) = run(&scenario(MATRIX), None, 2, false).unwrap();
    for case in &ran.result.cases {
        let mut goodput = 0.0;
        let mut share = 0.0;
        for flow in &case.flows {
            let v = |name: &str| {
                flow.value(name)
                    .unwrap_or_else(|| panic!("{}: {name}", flow.name))
            };
            assert!(v("goodput_mbps") > 0.0 && v("goodput_mbps") < v("throughput_mbps"));
            assert!(v("rtt_ms.min") >= 40.0 && v("rtt_ms.min") <= v("rtt_ms.mean"));
            assert!(v("rtt_ms.p50") <= v("rtt_ms.p95") && v("rtt_ms.p95") <= v("rtt_ms.p99"));
            // One BDP of buffer: at most twice the base and a packet or two.
            assert!(v("rtt_ms.p99") <= 120.0, "{}", v("rtt_ms.p99"));
            assert!(
                v("cwnd_segments.mean") > 0.0 && v("cwnd_segments.mean") <= v("cwnd_segments.max")
            );
            assert!((v("rtt_inflation") - (v("rtt_ms.mean") / 40.0 - 1.0)).abs() < 1e-9);
            assert!(v("delivered_segments") <= v("sent_segments"));
            goodput += v("goodput_mbps");
            share += v("share");
        }
        assert!((share - 1.0).abs() < 1e-9);
        let total = case.metrics.value("aggregate_goodput_mbps").unwrap();
        assert!(
            (total - goodput).abs() < 1e-9 * total,
            "both flows run through the measured part"
        );
        let jain = case.metrics.value("jain").unwrap();
        assert!((0.5..=1.0).contains(&jain));
        let bottleneck = case.link("bottleneck").unwrap();
        let used = bottleneck.value("utilization").unwrap();
        assert!(used > 0.5 && used <= 1.0 && total < 10.0 * used);
    }
}

/// Reno alone, capped at 50 segments on a path that holds 333: goodput is window / RTT, and the
/// window climbs in slow start.
#[test]
fn a_window_limited_flow_gets_its_window_per_rtt() {
    let s = scenario(
        r#"
name = "capped"
about = "Window below the path"
duration = "20s"

[path]
rate = "100Mbit/s"
rtt = "40ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "reno"
window = "50 segments"

[measure]
warmup = "2s"
interval = "1s"
"#,
    );
    let (ran, _) = run(&s, None, 1, false).unwrap();
    let flow = &ran.result.cases[0].flows[0];
    let expected = 50.0 * 1448.0 * 8.0 / 0.040 * 1e-6;
    let goodput = flow.value("goodput_mbps").unwrap();
    assert!(
        (goodput / expected - 1.0).abs() < 0.01,
        "{goodput} is not {expected}"
    );
    // Ten segments to fifty: between two and four round trips, after the handshake.
    let climb = flow.value("climb_time_s").unwrap();
    assert!((0.08..0.25).contains(&climb), "{climb}");
    assert_eq!(flow.value("recovery_time_s"), None);
    assert_eq!(flow.value("loss_events"), Some(0.0));
    assert!(flow.value("stability").unwrap() < 0.02);
}

/// One loss at a full window of 50: half of it goes, and comes back by one segment per RTT.
#[test]
fn one_drop_shows_the_law() {
    let s = scenario(
        r#"
name = "one-drop-small"
about = "One loss in a window-limited flow"
duration = "20s"

[path]
rate = "100Mbit/s"
rtt = "40ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "reno"
preset = "2003"
delayed_ack = false
window = "50 segments"
drop = { segment = 5000 }
"#,
    );
    let (ran, _) = run(&s, None, 1, false).unwrap();
    let flow = &ran.result.cases[0].flows[0];
    let v = |name: &str| {
        flow.value(name)
            .unwrap_or_else(|| panic!("{name} is undefined"))
    };
    assert!(
        (v("decrease_fraction") - 0.5).abs() < 0.02,
        "{}",
        v("decrease_fraction")
    );
    assert!(
        (v("increase_per_rtt_first") - 1.0).abs() < 0.05,
        "{}",
        v("increase_per_rtt_first")
    );
    assert!(
        (v("increase_per_rtt_last") - 1.0).abs() < 0.05,
        "{}",
        v("increase_per_rtt_last")
    );
    // 25 segments at one per 40 ms, and a round or two for the recovery itself.
    assert!(
        (1.0..1.15).contains(&v("reopen_time_s")),
        "{}",
        v("reopen_time_s")
    );
    // 95 % of the rate of 50 segments: 47.5.
    assert!(
        (0.9..1.1).contains(&v("recovery_time_s")),
        "{}",
        v("recovery_time_s")
    );
    assert!((v("first_loss_cwnd") - 50.0).abs() < 0.5);
    assert_eq!(v("loss_events"), 1.0);
}
