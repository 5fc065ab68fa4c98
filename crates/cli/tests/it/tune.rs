//! `fullpipe tune`: policies checked and explained, without any privilege.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::{Finished, SMALL, command, finished, fullpipe};
use crate::schema::holds;
use crate::server::Server;

const POLICY: &str = r#"
[defaults]
never_tune = ["22"]

[[path]]
name = "backup"
to = "192.0.2.0/24"
ports = "5000-5100"
rate = "20Mbit/s"
rtt = "40ms"
stack = "aimd(increase=4,decrease=0.125)"
window = "2*bdp"

[[path]]
name = "rest"
to = ["192.0.2.0/24", "2001:db8::/32"]
stack = "highspeed"
"#;

fn tune(text: &str, args: &[&str]) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("policy.toml"), text).unwrap();
    in_folder(dir.path(), args)
}

fn in_folder(dir: &Path, args: &[&str]) -> Finished {
    finished(command(dir, &[&["tune"], args].concat()).output().unwrap())
}

#[test]
fn a_good_policy_is_ok_with_its_warnings() {
    let ended = tune(POLICY, &["check", "policy.toml"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout, "policy.toml: ok: 2 paths, 2 warnings\n");
    let warnings: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(warnings.len(), 2, "{}", ended.stderr);
    for (line, place) in warnings.iter().zip(["policy.toml:11", "policy.toml:17"]) {
        let start = format!("warning: {place}: `path.");
        assert!(
            line.starts_with(&start) && line.contains("Reno flows"),
            "{line}"
        );
    }
}

#[test]
fn what_is_said_of_a_good_policy_fits_its_schema() {
    let ended = tune(POLICY, &["check", "policy.toml", "--json"]);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(doc["paths"].as_array().unwrap().len(), 2);
    holds("policy", &doc);
}

#[test]
fn without_a_daemon_json_says_why() {
    let dir = tempfile::tempdir().unwrap();
    for verb in ["status", "flows", "plan", "compare", "get", "probe"] {
        let ended = in_folder(dir.path(), &[verb, "--json", "--state", "nowhere"]);
        assert_eq!(ended.code, 3, "{verb}: {}", ended.stderr);
        let said: Value = serde_json::from_str(&ended.stdout).unwrap();
        let why = said["error"].as_str().unwrap();
        assert!(ended.stderr.contains(why), "{verb}: {}", ended.stderr);
        assert!(said["hints"][0].is_string(), "{verb}: {said}");
    }
}

/// Nobody writes into a pipe that has a name of the daemon's files.
#[test]
fn a_pipe_in_the_folder_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("policy.toml"), POLICY).unwrap();
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&dir.path().join("measured"), mode).unwrap();
    let ended = in_folder(dir.path(), &["check", "policy.toml", "--state", "."]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn a_broken_policy_ends_with_2_and_all_its_errors() {
    let broken = POLICY
        .replace("192.0.2.0/24", "0.0.0.0/0")
        .replace("stack", "stak");
    let ended = tune(&broken, &["check", "policy.toml"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (2, ""));
    assert_eq!(
        ended.stderr.matches("error: policy.toml:").count(),
        4,
        "{}",
        ended.stderr
    );
    assert_eq!(
        ended.stderr.matches("hint: ").count(),
        4,
        "{}",
        ended.stderr
    );

    let ended = tune(&broken, &["check", "policy.toml", "--json"]);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    holds("policy", &doc);
    assert_eq!((ended.code, &doc["ok"]), (2, &Value::Bool(false)));
    let errors = doc["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 4);
    assert_eq!(
        (&errors[0]["line"], &errors[0]["key"]),
        (&7.into(), &"path.backup.to".into())
    );
}

#[test]
fn explain_names_the_path_and_why_the_others_are_not() {
    for (args, head, other) in [
        (
            &["192.0.2.7:5001"][..],
            "path `backup` (policy.toml:5)",
            "not `rest`: it comes later",
        ),
        (
            &["192.0.2.7:80"],
            "path `rest` (policy.toml:14)",
            "not `backup`: the port is in none",
        ),
        (
            &["192.0.2.7"],
            "path `rest`",
            "not `backup`: it has ports, and no port is given",
        ),
        (
            &["2001:db8::1"],
            "path `rest`",
            "not `backup`: the address is in none",
        ),
        (
            &["[2001:db8::1]:80"],
            "path `rest`",
            "not `backup`: the address",
        ),
        (
            &["198.51.100.1"],
            "no path: the flow stays as it is",
            "not `rest`: the address",
        ),
        (&["192.0.2.7:22"], "never touched", ""),
        (
            &["192.0.2.7:80", "--chose"],
            "path `rest` (policy.toml:14), which leaves",
            "",
        ),
    ] {
        let fixed = ["--policy", "policy.toml", "--no-forecast"];
        let ended = tune(POLICY, &[&["explain"], args, &fixed].concat());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(ended.stdout.starts_with(head), "{args:?}: {}", ended.stdout);
        assert!(ended.stdout.contains(other), "{args:?}: {}", ended.stdout);
    }
}

#[test]
fn explain_names_a_path_that_waits_to_be_measured() {
    let policy = "[[path]]\nname = \"far\"\nto = \"192.0.2.0/24\"\nstack = \"reno\"\n\
                  window = \"bdp\"\nprobe = \"192.0.2.7\"\n";
    let explain = |address: &str| {
        let args = [
            "explain",
            address,
            "--policy",
            "policy.toml",
            "--state",
            "state",
        ];
        let ended = tune(policy, &args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let due = "no path yet: `far` (policy.toml:1) waits for its first measurement, by a probe of \
               192.0.2.7; until then the flow stays as it is\n";
    assert_eq!(explain("192.0.2.9:80"), due);
    let said = explain("198.51.100.1:80");
    assert_eq!(
        said,
        "no path: the flow stays as it is\n  not `far`: the address is in none of its networks\n"
    );
}

#[test]
fn explain_shows_the_law_and_its_forecast() {
    let args = [
        "explain",
        "192.0.2.7:5001",
        "--policy",
        "policy.toml",
        "--json",
    ];
    let ended = tune(POLICY, &args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let doc: Value = serde_json::from_str(&ended.stdout).unwrap();
    holds("explanation", &doc);
    assert_eq!(doc["path"]["name"], "backup");
    for row in doc["windows"].as_array().unwrap() {
        assert_eq!(
            (&row["table_increase"], &row["table_decrease"]),
            (&4.0.into(), &0.125.into())
        );
        // b w / a rounds of 40 ms.
        let w = row["window"].as_f64().unwrap();
        let recovery = row["recovery_s"].as_f64().unwrap();
        let expected = 0.125 * w / 4.0 * 0.04;
        assert!(
            (recovery - expected).abs() < 0.04 + 0.05 * expected,
            "{row}"
        );
    }
    let flows = doc["forecast"]["flows"].as_array().unwrap();
    let stacks: Vec<&str> = flows.iter().map(|f| f["stack"].as_str().unwrap()).collect();
    assert_eq!(stacks, ["aimd(increase=4,decrease=0.125)", "cubic"]);
    for flow in flows {
        let goodput = flow["goodput_mbps"].as_f64().unwrap();
        assert!((15.0..20.0).contains(&goodput), "{flow}");
        assert!(flow["loss_events"].as_f64().unwrap() >= 1.0, "{flow}");
    }
}

/// What is shipped as an example does not slow down who copies it.
#[test]
fn no_example_is_forecast_far_below_cubic() {
    let policies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/policies");
    for (file, address) in [
        ("science.toml", "192.0.2.1:5000"),
        ("net100.toml", "192.0.2.1"),
        ("net100.toml", "192.0.2.65"),
        ("net100.toml", "192.0.2.129"),
        ("net100.toml", "192.0.2.193"),
    ] {
        let args = ["explain", address, "--policy", file, "--json"];
        let ended = in_folder(&policies, &args);
        let doc: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let flows = doc["forecast"]["flows"].as_array().unwrap();
        let goodput = |i: usize| flows[i]["goodput_mbps"].as_f64().unwrap();
        assert_eq!(flows[1]["stack"], "cubic");
        assert!(goodput(0) > 0.9 * goodput(1), "{file} {address}: {flows:?}");
    }
}

#[test]
fn a_fault_of_a_policy_is_labelled_once() {
    let ended = tune("x = 1\n", &["run", "policy.toml"]);
    if ended.stderr.contains("built without the tuner") {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.starts_with("error: policy.toml:1: "),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_path_of_the_other_side_says_how_to_ask_for_it() {
    let passive = POLICY.replacen("stack", "side = \"passive\"\nstack", 1);
    let ask = |side: &str| {
        let args = [
            "explain",
            "192.0.2.7:5001",
            "--policy",
            "policy.toml",
            "--no-forecast",
        ];
        tune(&passive, &[&args[..], &["--side", side]].concat()).stdout
    };
    let active = ask("active");
    assert!(
        active.contains("not `backup`: ") && active.contains("`--side passive`"),
        "{active}"
    );
    assert!(
        ask("passive").starts_with("path `backup`"),
        "{}",
        ask("passive")
    );
}

#[test]
fn what_cannot_be_forecast_is_said() {
    let ended = tune(
        POLICY,
        &["explain", "192.0.2.7:80", "--policy", "policy.toml"],
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let why = "no forecast: the path states no `rate` and `rtt`";
    assert!(ended.stdout.contains(why), "{}", ended.stdout);
}

/// A path of a few rooms, or a buffer that somebody measured as one.
#[test]
fn a_buffer_of_less_than_a_packet_has_no_forecast() {
    for (rtt, buffer) in [("1ms", "1BDP"), ("20ms", "1us"), ("20ms", "1000 B")] {
        let text = format!(
            "[[path]]\nname = \"a\"\nto = \"192.0.2.0/24\"\nstack = \"reno\"\n\
             rate = \"10Mbit/s\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\n"
        );
        let ended = tune(&text, &["explain", "192.0.2.7", "--policy", "policy.toml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let why = "no forecast: the buffer of the path holds less than one packet";
        assert!(ended.stdout.contains(why), "{}", ended.stdout);
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    for address in ["example.org", "192.0.2.7:0", "192.0.2.7:x", "192.0.2.300"] {
        let ended = tune(POLICY, &["explain", address, "--policy", "policy.toml"]);
        assert_eq!(ended.code, 2);
        assert!(
            ended.stderr.contains("192.0.2.7:443"),
            "{address}: {}",
            ended.stderr
        );
    }
}

#[test]
fn doctor_works_for_everybody_and_mends_what_it_finds() {
    let ended = tune(POLICY, &["doctor", "--json", "--state", "state"]);
    let doc: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let findings = doc["findings"].as_array().unwrap();
    for area in ["bpf", "tuner", "queues"] {
        assert!(findings.iter().any(|f| f["area"] == area), "{area}");
    }
    let lacking = |f: &&Value| f["state"] == "no";
    assert_eq!(ended.code == 3, findings.iter().any(|f| lacking(&f)));
    let helpless = |f: &&Value| f["state"] != "yes" && f["remedy"].is_null();
    assert_eq!(findings.iter().find(helpless), None);
    if cfg!(not(feature = "tune")) {
        let side = findings.iter().find(|f| f["area"] == "tuner").unwrap();
        assert!(
            side["remedy"].as_str().unwrap().contains("--features tune"),
            "{side}"
        );
    }
}

/// A flow that is named like a path is what the path says, on the simulator as under the tuner.
#[test]
fn the_simulator_runs_a_policy() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("small.toml"), SMALL).unwrap();
    let policy = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nto = \"192.0.2.0/24\"\nrate = \"10Mbit/s\"\nrtt = \
             \"40ms\"\nstack = \"aimd(increase=4,decrease=0.125)\"\nwindow = \"0.5*bdp\"\npacing = \
             \"8Mbit/s\"\ninitial_window = {{ segments = 4 }}\n"
        )
    };
    fs::write(dir.path().join("policy.toml"), policy("main")).unwrap();
    fs::write(dir.path().join("other.toml"), policy("other")).unwrap();
    let ran = |args: &[&str]| {
        let ended = fullpipe(
            dir.path(),
            &[&["run", "small.toml", "--format", "csv"], args].concat(),
        );
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let by_policy = ran(&["--policy", "policy.toml"]);
    let by_hand = ran(&[
        "--set",
        "flow.main.stack=aimd(increase=4,decrease=0.125)",
        "--set",
        "flow.main.window=16 segments",
        "--set",
        "flow.main.rate=8Mbit/s",
        "--set",
        "flow.main.initial_window=4 segments",
    ]);
    assert_eq!(by_policy, by_hand);
    assert_ne!(by_policy, ran(&[]));
    // What is set counts after it.
    let other = ran(&[
        "--policy",
        "policy.toml",
        "--set",
        "flow.main.window=8 segments",
    ]);
    assert_ne!(other, by_policy);
    let ended = fullpipe(dir.path(), &["run", "small.toml", "--policy", "other.toml"]);
    assert_eq!(ended.code, 2);
    assert_eq!(
        ended.stderr,
        "error: no flow is named like a path: flows main\n  hint: the policy has the paths other\n"
    );
}

/// Over loopback nothing but the numbers is known beforehand.
#[test]
fn a_path_to_a_server_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--open"]);
    let probe = |more: &[&str]| {
        let args = [&["tune", "probe", &server.address, "--time", "1s"], more].concat();
        let ended = fullpipe(dir.path(), &args);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    let measured: Value = serde_json::from_str(&probe(&["--json"])).unwrap();
    assert!(measured["rate_bps"].as_f64().unwrap() > 1e6, "{measured}");
    let rtt = measured["rtt_ns"].as_u64().unwrap();
    assert!((1_000..1_000_000_000).contains(&rtt), "{measured}");
    assert!(
        measured["at"].as_u64().unwrap() > 1_700_000_000,
        "{measured}"
    );
    let text = probe(&[]);
    let heads: Vec<&str> = text.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(heads[..4], ["rate", "rtt", "buffer", "bdp"]);
    // On a busy machine hosts are late, and that is said.
    assert!(matches!(heads[4..], [] | ["valid"]), "{heads:?}");
    assert!(measured["valid"].is_boolean(), "{measured}");
}

/// What came until a server's bytes were used up is no measure of the path.
#[test]
fn a_probe_that_a_limit_of_bytes_ends_says_at_least() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["--open", "--max-bytes", "5MB"]);
    let args = ["tune", "probe", &server.address, "--time", "20s", "--json"];
    let ended = fullpipe(dir.path(), &args);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let measured: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(measured["rate_at_least"], true, "{measured}");
    assert_eq!(measured["server_max_bytes"], 5_000_000, "{measured}");
}
