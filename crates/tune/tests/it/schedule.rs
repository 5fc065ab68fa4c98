//! Parameters that change at their time, and for one flow alone.

use std::fs;
use std::time::{Duration, Instant};

use fullpipe_tune::control::ask;
use fullpipe_tune::daemon::SOCKET;
use serde_json::{Value, json};

use crate::daemon::{PROBER, Running, road, until};
use crate::support::{Ground, prefix};

const POLICY: &str = r#"
[[path]]
name = "lab"
to = ["198.18.0.0/15"]
stack = "aimd(increase=4,decrease=0.125)"
change = [
  { at = "3s", stack = "scalable" },
  { at = "1500ms", set = { a = 6, b = 0.25 }, window = "30 segments" },
]
"#;

#[test]
fn a_policy_changes_at_its_times_and_begins_anew_when_it_is_applied() {
    let Some(mut ground) = Ground::new(&[road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    ground.flow_outside(0);
    let mut daemon = Running::begin(&ground, &state);
    let socket = state.join(SOCKET);
    let stack = || {
        let status = ask(&socket, &json!({ "verb": "status" })).unwrap();
        status["rules"][0]["stack"].as_str().unwrap().to_owned()
    };
    let waits = |due: &str, since: Instant, from: f64, to: f64| {
        while stack() != due {
            assert!(since.elapsed().as_secs_f64() < to, "{} late", stack());
            std::thread::sleep(Duration::from_millis(20));
        }
        let at = since.elapsed().as_secs_f64();
        println!("{due} after {at:.2} s");
        assert!(at >= from, "{due} after {at} s");
    };
    let [aimd, scalable] = ["aimd", "scalable"].map(|name| format!("{}{name}", prefix()));
    for _ in 0..2 {
        let begin = Instant::now();
        assert_eq!(stack(), "aimd(increase=4,decrease=0.125)");
        until(&mut eye, Duration::from_secs(2), &[&aimd]);
        waits("aimd(increase=6,decrease=0.25)", begin, 1.0, 2.5);
        // The cap holds from the next ACK on, and after a recovery that is under way.
        let window = || {
            let flows = ask(&socket, &json!({ "verb": "flows" })).unwrap();
            flows["flows"][0]["cwnd_segments"].as_u64().unwrap()
        };
        while window() > 30 {
            let late = begin.elapsed() > Duration::from_secs(4);
            assert!(!late, "{} segments", window());
            std::thread::sleep(Duration::from_millis(20));
        }
        waits("scalable", begin, 2.5, 4.0);
        until(&mut eye, Duration::from_secs(2), &[&scalable]);
        ask(&socket, &json!({ "verb": "apply" })).unwrap();
    }
    let mut said = Vec::new();
    while said
        .iter()
        .filter(|l: &&String| l.contains("from now on"))
        .count()
        < 4
    {
        said.push(daemon.line());
    }
    assert!(
        said.iter()
            .any(|l| l == "path lab: scalable from now on (3s after the policy)"),
        "{said:?}"
    );
}

/// Two flows of a path; one gets other parameters, the other keeps the path's.
#[test]
fn one_flow_has_parameters_of_its_own_until_the_file_is_applied() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let policy = POLICY.split("change").next().unwrap();
    fs::write(state.join("policy.toml"), policy).unwrap();
    ground.flow_outside(0);
    ground.flow_outside(1);
    let _daemon = Running::begin(&ground, &state);
    let socket = state.join(SOCKET);
    let flows = || {
        let answer = ask(&socket, &json!({ "verb": "flows" })).unwrap();
        let mut flows = answer["flows"].as_array().unwrap().clone();
        flows.sort_by_key(|f| f["flow"].to_string().split("->").nth(1).unwrap().to_owned());
        flows
    };
    let stacks = || {
        flows()
            .iter()
            .map(|f| f["stack"].clone())
            .collect::<Vec<_>>()
    };
    let path = "aimd(increase=4,decrease=0.125)";
    assert_eq!(stacks(), [path, path]);
    let set = |which: &str, key: &str, value: &str| {
        ask(
            &socket,
            &json!({ "verb": "set", "path": which, "set": { key: value } }),
        )
    };
    let label = flows()[0]["flow"].as_str().unwrap().to_owned();
    let answer = set(&label, "a", "7").unwrap();
    assert_eq!(answer["stack"], "aimd(increase=7,decrease=0.125)");
    assert_eq!(stacks(), ["aimd(increase=7,decrease=0.125)", path]);
    // Another parameter of it, by its cookie; and the path's own after that.
    let cookie = flows()[0]["cookie"].to_string();
    set(&cookie, "b", "0.25").unwrap();
    let begin = Instant::now();
    let laws = || {
        flows()
            .iter()
            .map(|f| (f["a_segments"].as_f64(), f["path"].clone()))
            .collect::<Vec<_>>()
    };
    // a(w) is in force from the first ACK in congestion avoidance on.
    while laws() != [(Some(7.0), "lab".into()), (Some(4.0), "lab".into())] {
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", laws());
        std::thread::sleep(Duration::from_millis(50));
    }
    set("lab", "a", "5").unwrap();
    let own = "aimd(increase=7,decrease=0.25)";
    assert_eq!(stacks(), [own, "aimd(increase=5,decrease=0.125)"]);
    let wrong = set(&cookie, "c", "1").unwrap_err().to_string();
    assert!(wrong.contains("no parameter `c`"), "{wrong}");
    let wrong = set("nobody", "a", "1").unwrap_err().to_string();
    assert!(wrong.starts_with("no path `nobody`"), "{wrong}");
    ask(&socket, &json!({ "verb": "apply" })).unwrap();
    assert_eq!(stacks(), [path, path]);
}

/// A probe has the policy read again: of paths that are known better, with all that was changed.
#[test]
fn what_was_changed_stays_when_a_path_is_measured() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    let policy = r#"
        [[path]]
        name = "lab"
        to = ["198.18.0.0/15"]
        stack = "aimd(increase=4,decrease=0.125)"
        window = "60 segments"
        divide = true
        probe = "192.0.2.7"
        change = { at = "500ms", set = { a = 6 } }

        [[path]]
        name = "far"
        to = ["192.0.2.0/24"]
        stack = "reno"
        window = "bdp"
        probe = "192.0.2.7"
        change = { at = "500ms", stack = "scalable" }
    "#;
    fs::write(state.join("policy.toml"), policy).unwrap();
    let go = state.join("go");
    let prober = format!(
        "until test -e {}; do sleep 0.05; done\n\
         echo '{{\"rate_bps\": 100000000, \"rtt_ns\": 80000000, \"buffer_bytes\": 450000, \
         \"lost\": true, \"at\": '$(date +%s)'}}'\n",
        go.display()
    );
    fs::write(state.join(PROBER), prober).unwrap();
    ground.flow_outside(0);
    ground.flow_outside(1);
    let mut daemon = Running::begin(&ground, &state);
    let socket = state.join(SOCKET);
    let status = || ask(&socket, &json!({ "verb": "status" })).unwrap();
    let rules = || {
        let of = |rule: &Value| {
            let stack = rule["stack"].as_str().unwrap().to_owned();
            (stack, rule["divided_among"].as_u64())
        };
        let status = status();
        let rules = status["rules"].as_array().unwrap();
        rules.iter().map(of).collect::<Vec<_>>()
    };
    let waits = |due: &[(&str, Option<u64>)]| {
        let begin = Instant::now();
        let due: Vec<_> = due.iter().map(|(s, n)| ((*s).to_owned(), *n)).collect();
        while rules() != due {
            assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", rules());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    waits(&[("aimd(increase=6,decrease=0.125)", Some(2))]);
    let set = |which: &str, key: &str, value: &str| {
        let set = json!({ "verb": "set", "path": which, "set": { key: value } });
        ask(&socket, &set).unwrap();
    };
    set("lab", "b", "0.25");
    let flows = || {
        let flows = ask(&socket, &json!({ "verb": "flows" })).unwrap();
        flows["flows"].as_array().unwrap().clone()
    };
    let flow = flows()[0]["flow"].as_str().unwrap().to_owned();
    set(&flow, "a", "9");
    // The flow with parameters of its own shares the path as before.
    waits(&[("aimd(increase=6,decrease=0.25)", Some(2))]);
    fs::write(&go, "").unwrap();
    waits(&[
        ("aimd(increase=6,decrease=0.25)", Some(2)),
        ("scalable", None),
    ]);
    assert_eq!(status()["measured"][0]["rate_bps"], 100_000_000);
    let own = flows().into_iter().find(|f| f["flow"] == flow).unwrap();
    assert_eq!(own["stack"], "aimd(increase=9,decrease=0.25)");
    let due = "path far: scalable from now on (500ms after the policy)";
    while daemon.line() != due {}
    // The file has it as it says.
    ask(&socket, &json!({ "verb": "apply" })).unwrap();
    waits(&[("aimd(increase=4,decrease=0.125)", Some(2)), ("reno", None)]);
    waits(&[
        ("aimd(increase=6,decrease=0.125)", Some(2)),
        ("scalable", None),
    ]);
}
