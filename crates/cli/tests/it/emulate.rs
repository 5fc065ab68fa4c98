//! `fullpipe emulate`, where namespaces are to be had; elsewhere its tests say why they are
//! skipped.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Finished, command, finished, fullpipe, write};
use crate::schema::holds;

/// This program, as a shell writes it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_fullpipe");

/// `fullpipe emulate` with these arguments and this line of a shell on the near host; `None`: not
/// allowed here.
fn emulate(args: &[&str], line: &str) -> Option<Finished> {
    let all = [&["emulate"], args, &["--", "/bin/sh", "-c", line]].concat();
    let ended = finished(command(Path::new("."), &all).output().unwrap());
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return None;
    }
    Some(ended)
}

/// Of `timeout` or a batch system: the command has a second to end by itself.
#[test]
fn a_signal_to_the_emulator_is_passed_on() {
    let dir = tempfile::tempdir().unwrap();
    let line = "trap 'echo told > told; exit 7' TERM; touch begun; while :; do sleep 0.05; done";
    let out = dir.path().join("out.json");
    let args = [
        "emulate",
        "--rate",
        "20Mbit/s",
        "--rtt",
        "10ms",
        "--no-check",
        "--format",
        "json",
    ];
    let all = [
        &args[..],
        &["--out", "out.json", "--", "/bin/sh", "-c", line],
    ]
    .concat();
    let mut run = command(dir.path(), &all).spawn().unwrap();
    while !dir.path().join("begun").exists() {
        if run.try_wait().unwrap().is_some() {
            eprintln!("skipped");
            return;
        }
        sleep(Duration::from_millis(20));
    }
    let term = Command::new("kill").arg(run.id().to_string()).status();
    assert!(term.unwrap().success());
    assert_eq!(run.wait().unwrap().code(), Some(128 + 15));
    assert!(dir.path().join("told").exists());
    let verdict: Value = serde_json::from_str(&fs::read_to_string(out).unwrap()).unwrap();
    holds("emulation", &verdict);
    assert_eq!(
        (&verdict["interrupted"], &verdict["exit"]),
        (&json!(true), &json!(7))
    );
}

/// The measurement before the command takes some round trips; nothing waits for it to be over.
#[test]
fn a_signal_ends_the_measurement_before_the_command() {
    let Some(_) = emulate(&["--rate", "20Mbit/s", "--rtt", "10ms", "--no-check"], ":") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let args = ["emulate", "--rate", "10Mbit/s", "--rtt", "1h"];
        let all = [&args[..], &["--", "touch", "begun"]].concat();
        let mut run = command(dir.path(), &all).spawn().unwrap();
        // Hosts, and then the measurement.
        sleep(Duration::from_secs(2));
        let pid = run.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.unwrap().success());
        let mut waits = 0;
        let status = loop {
            match run.try_wait().unwrap() {
                Some(status) => break status,
                None if waits == 100 => {
                    let _ = run.kill();
                    panic!("SIG{signal} is not heard");
                }
                None => sleep(Duration::from_millis(50)),
            }
            waits += 1;
        };
        assert_eq!(status.code(), Some(code));
        assert!(!dir.path().join("begun").exists());
    }
}

#[test]
fn the_far_host_is_a_round_trip_away() {
    let serve = format!("{PROGRAM} serve --open");
    for address in ["$FULLPIPE_FAR", "[$FULLPIPE_FAR6]:6220"] {
        let ping = format!("{PROGRAM} ping {address} -c 10 -i 50ms --format json");
        let args = ["--rate", "20Mbit/s", "--rtt", "30ms", "--far", &serve];
        let Some(ended) = emulate(&args, &ping) else {
            return;
        };
        let found: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let min = found["rtt_ms"]["min"].as_f64().unwrap();
        // Never less than the path; on a busy machine the least of ten is not much more.
        assert!((30.0..45.0).contains(&min), "{address}: {min} ms");
    }
}

/// Its small packets take as long as four of them were apart.
#[test]
fn a_slow_path_is_measured_without_being_filled() {
    let slow = [
        "--rate",
        "32kbit/s",
        "--rtt",
        "20ms",
        "--buffer",
        "5 packets",
    ];
    let Some(ended) = emulate(&slow, "true") else {
        return;
    };
    let small = |line: &&str| line.starts_with("small packets");
    let rows: Vec<&str> = ended.stderr.lines().filter(small).collect();
    assert_eq!(rows.len(), 2, "{}", ended.stderr);
    assert!(rows.iter().all(|row| !row.contains("FLAGGED")), "{rows:?}");
}

/// A listener begins to offer 64 kB, 45 segments; the path holds 345, and preset `linux` asks for
/// megabytes.
#[test]
fn an_accepted_connection_offers_the_window_of_its_preset() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = "name = \"w\"\nduration = \"3s\"\nseeds = 1\n[path]\nrate = \
                    \"100Mbit/s\"\nrtt = \"40ms\"\n[[flow]]\nname = \"main\"\npreset = \
                    \"linux\"\nstack = \"reno-linux\"\n";
    write(dir.path(), "w.toml", scenario);
    let file = dir.path().join("w.toml");
    let serve = format!("{PROGRAM} serve --open");
    let args = ["--rate", "100Mbit/s", "--rtt", "40ms", "--far", &serve];
    let run = format!(
        "{PROGRAM} run {} --ground kernel --peer $FULLPIPE_FAR --format json --quiet",
        file.display()
    );
    let Some(ended) = emulate(&args, &run) else {
        return;
    };
    let mut found = serde_json::Deserializer::from_str(&ended.stdout).into_iter::<Value>();
    let found = found.next().expect(&ended.stderr).expect(&ended.stdout);
    let window = &found["cases"][0]["flows"][0]["cwnd_segments"]["max"];
    assert!(window.as_f64().unwrap() > 150.0, "{window}");
}

/// A window of 300 segments is on its way when the client is interrupted, 180 ms of the link: what
/// arrives of it counts, and so must its time.
#[test]
fn a_test_that_is_cut_shows_no_more_than_the_path_carries() {
    let serve = format!("{PROGRAM} serve --open");
    let args = ["--rate", "20Mbit/s", "--rtt", "20ms", "--buffer", "300 ms"];
    let args = [&args[..], &["--far", &serve]].concat();
    let send = format!(
        "timeout -s INT 2 {PROGRAM} send $FULLPIPE_FAR --time 30s --window '300 segments' --format json"
    );
    let Some(ended) = emulate(&args, &send) else {
        return;
    };
    let found: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let case = &found["cases"][0];
    assert_eq!(case["partial"], "interrupted");
    let throughput = case["flows"][0]["throughput_mbps"].as_f64().unwrap();
    // The slack is for a path that hands out in the moment what it owes.
    assert!((12.0..20.4).contains(&throughput), "{throughput}");
}

#[test]
fn the_command_sees_a_host_of_its_own_and_its_status_is_passed_on() {
    let line = "cat /proc/net/dev; ls -d /proc/[0-9]*; exit 7";
    let Some(ended) = emulate(&["--rate", "10Mbit/s", "--rtt", "10ms"], line) else {
        return;
    };
    assert_eq!(ended.code, 7, "{}", ended.stderr);
    let devices = ended.stdout.lines().filter(|l| l.contains(':')).count();
    assert_eq!(devices, 2, "its loopback and its end of the path");
    assert!(ended.stdout.contains("fullpipe0:"), "{}", ended.stdout);
    let processes = ended.stdout.lines().filter(|l| l.starts_with("/proc/"));
    assert!(processes.count() < 5, "{}", ended.stdout);
}

#[test]
fn a_signal_ends_a_program_of_the_run() {
    let line = "sleep 30 & kill -TERM $!; wait $!; exit $?";
    let Some(ended) = emulate(&["--rate", "10Mbit/s", "--rtt", "10ms"], line) else {
        return;
    };
    assert_eq!(ended.code, 128 + 15, "{}", ended.stderr);
}

/// The server's clock is ahead by a round trip, of which datagrams know nothing.
#[test]
fn datagrams_are_received_at_the_rate_at_which_they_are_sent() {
    let serve = format!("{PROGRAM} serve --open");
    let send =
        format!("{PROGRAM} send $FULLPIPE_FAR -t 1s --traffic udp,rate=5Mbit/s --only-traffic -J");
    let args = ["--rate", "50Mbit/s", "--rtt", "60ms", "--far", &serve];
    let mut seen = Vec::new();
    // A busy machine delivers late now and then; a clock that is off is off every time.
    for _ in 0..5 {
        let Some(ended) = emulate(&args, &send) else {
            return;
        };
        let result: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        let traffic = &result["cases"][0]["traffic"][0];
        assert_eq!(traffic["loss_rate"], 0.0);
        let [sent, received] = ["sent_mbps", "received_mbps"].map(|m| traffic[m].as_f64().unwrap());
        if (received / sent - 1.0).abs() < 0.02 {
            return;
        }
        seen.push((sent, received));
    }
    panic!("sent and received, Mbit/s: {seen:?}");
}

#[test]
fn what_is_said_of_a_run_agrees_with_its_exit_code() {
    let args = ["--rate", "50Mbit/s", "--rtt", "20ms", "--format", "json"];
    let Some(ended) = emulate(&args, "true") else {
        return;
    };
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    holds("emulation", &said);
    assert_eq!(said["by"], "fullpipe");
    assert_eq!(said["true"], ended.code == 0, "{}", ended.stdout);
    let checks = said["checks"].as_array().unwrap();
    let named = |name: &str| checks.iter().find(|c| c["name"] == name).expect(name);
    for (name, value) in [
        ("rate forward", 50.0),
        ("rate back", 50.0),
        ("delay back", 10.016),
    ] {
        assert_eq!(named(name)["specified"], value, "{name}");
    }
    // The 83 packets of a BDP, less the one in transmission.
    let room = named("buffer forward")["specified"].as_f64().unwrap();
    assert!((room - 82.0 * 0.24).abs() < 1e-9, "{room}");
    let flags = said["flags"].as_array().unwrap().len();
    let failing = checks.iter().filter(|c| c["holds"] == false).count();
    assert_eq!(flags, failing);
    assert_eq!(said["exit"], 0);
}

/// A client of other people's measures over the path what the simulator predicts of the same
/// scenario, within 3 %: CUBIC for five seconds, behind two that do not count.
#[test]
fn iperf3_measures_what_the_simulator_predicts() {
    const SCENARIO: &str = r#"name = "predicted"
duration = "7s"
path = { rate = "100Mbit/s", rtt = "20ms", buffer = "1BDP" }
measure = { warmup = "2s" }

[[flow]]
stack = "cubic-linux"
preset = "linux"
"#;
    let iperf3 = Command::new("iperf3").arg("--version").output();
    if !iperf3.as_ref().is_ok_and(|ran| ran.status.success()) {
        return eprintln!("skipped: no iperf3: {iperf3:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "predicted.toml", SCENARIO);
    let predicted = fullpipe(dir.path(), &["run", "predicted.toml", "--format", "json"]);
    let predicted: Value = serde_json::from_str(&predicted.stdout).expect(&predicted.stderr);
    let goodput = &predicted["cases"][0]["flows"][0]["goodput_mbps"];
    let predicted = goodput.as_f64().unwrap();
    let path = ["--rate", "100Mbit/s", "--rtt", "20ms", "--buffer", "1BDP"];
    let args = [&path[..], &["--far", "iperf3 -s -1 >/dev/null"]].concat();
    let line = "iperf3 -c $FULLPIPE_FAR -C cubic -t 5 -O 2 -J";
    for _ in 0..3 {
        let Some(ended) = emulate(&args, line) else {
            return;
        };
        if ended.code == 5 {
            eprintln!("made again: {}", ended.stderr);
            continue;
        }
        let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        if let Some(error) = said["error"].as_str() {
            return eprintln!("skipped: iperf3: {error}");
        }
        let received = &said["end"]["sum_received"]["bits_per_second"];
        let received = received.as_f64().unwrap() / 1e6;
        let part = received / predicted;
        assert!(
            (0.97..=1.03).contains(&part),
            "{received} Mbit/s, where the simulator predicts {predicted}"
        );
        return;
    }
    eprintln!("skipped: the machine was busy three times");
}

/// Two namespaces that are there already get a device each, which goes whatever ends the run.
#[test]
fn existing_namespaces_are_left_as_they_were() {
    struct Named([String; 2]);
    impl Drop for Named {
        fn drop(&mut self) {
            for name in &self.0 {
                let _ = Command::new("ip").args(["netns", "del", name]).status();
            }
        }
    }
    let names =
        Named(["near", "far"].map(|side| format!("fullpipe-{side}-{}", std::process::id())));
    for name in &names.0 {
        let made = Command::new("ip").args(["netns", "add", name]).output();
        if !made.as_ref().is_ok_and(|made| made.status.success()) {
            eprintln!("skipped: `ip netns add`: {made:?}");
            return;
        }
    }
    let devices = || {
        names.0.each_ref().map(|name| {
            let args = ["netns", "exec", name, "ip", "-o", "link"];
            let seen = Command::new("ip").args(args).output().unwrap();
            String::from_utf8_lossy(&seen.stdout).contains("fullpipe0")
        })
    };
    let [near, far] = &names.0;
    let hosts = ["--near-namespace", near, "--far-namespace", far];
    let path = ["--rate", "50Mbit/s", "--rtt", "20ms", "--no-check"];
    let args = [&hosts[..], &path].concat();
    let serve = format!("{PROGRAM} serve --open");
    let served = [&args[..], &["--far", &serve]].concat();
    // Without a check the command may be there before the server is.
    let ping = format!(
        "for i in 1 2 3 4 5; do {PROGRAM} ping $FULLPIPE_FAR -c 1 && exit; sleep 0.3; done; exit 1"
    );
    let Some(ended) = emulate(&served, &ping) else {
        return;
    };
    // On a busy machine the run is flagged, and the ping answered all the same.
    let answered = ended.stdout.contains("1 answer");
    assert!(answered, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(devices(), [false, false]);
    // Killed, it cannot tidy up.
    let line = [&["emulate"], &args[..], &["--", "sleep", "60"]].concat();
    struct Killed(std::process::Child);
    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
    let run = Killed(command(Path::new("."), &line).spawn().unwrap());
    for _ in 0..100 {
        if devices() == [true, true] {
            break;
        }
        sleep(Duration::from_millis(50));
    }
    assert_eq!(devices(), [true, true]);
    drop(run);
    for _ in 0..100 {
        if devices() == [false, false] {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("a device is left: {:?}", devices());
}

/// Whose TCP it is, which depends on the host, stands beside the numbers.
#[test]
fn the_congestion_control_of_the_hosts_is_named() {
    let line = "cat /proc/sys/net/ipv4/tcp_congestion_control";
    let path = ["--rate", "50Mbit/s", "--rtt", "20ms", "--no-check"];
    let Some(ended) = emulate(&path, line) else {
        return;
    };
    let default = ended.stdout.trim();
    let named = format!("\nTCP of the hosts: {default}");
    assert!(
        !default.is_empty() && ended.stderr.contains(&named),
        "{}",
        ended.stderr
    );
    // Reno cannot be left out of a kernel.
    assert!(ended.stderr.contains("reno"), "{}", ended.stderr);
}

/// One per cent is meant.
#[test]
fn a_loss_of_everything_is_remarked_on() {
    let args = [
        "--rate",
        "50Mbit/s",
        "--rtt",
        "20ms",
        "--no-check",
        "--loss",
    ];
    let told = "warning: --loss 1: every packet is lost; one of a hundred is \"1%\" or 0.01\n";
    for (loss, is_told) in [("1", true), ("1%", false)] {
        let Some(ended) = emulate(&[&args[..], &[loss]].concat(), "true") else {
            return;
        };
        assert_eq!(ended.stderr.contains(told), is_told, "{}", ended.stderr);
    }
}

#[test]
fn a_path_that_no_machine_carries_is_flagged() {
    let args = [
        "--rate",
        "400Gbit/s",
        "--rtt",
        "1ms",
        "--buffer",
        "2000 packets",
    ];
    let Some(ended) = emulate(&[&args[..], &["--format", "json"]].concat(), "true") else {
        return;
    };
    assert_eq!(ended.code, 5, "{}", ended.stdout);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    holds("emulation", &said);
    let flags = said["flags"].to_string();
    assert!(flags.contains("rate forward"), "{flags}");
}

/// The verdict of a command that ran for hours is not lost.
#[test]
fn a_file_that_cannot_be_written_is_told_before_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = ["emulate", "--rate", "20Mbit/s", "--rtt", "10ms"];
    let out = ["--no-check", "--out", "missing/out.json"];
    let all = [&path[..], &out, &["--", "touch", "begun"]].concat();
    let ended = finished(command(dir.path(), &all).output().unwrap());
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let told = "error: cannot write missing/out.json: ";
    assert!(ended.stderr.starts_with(told), "{}", ended.stderr);
    assert!(!dir.path().join("begun").exists());
    // A link to a file that is not there yet stays one.
    let (link, target) = (dir.path().join("link"), dir.path().join("target"));
    std::os::unix::fs::symlink("target", &link).unwrap();
    let all = [&path[..], &["--no-check", "--out", "link", "--", "true"]].concat();
    let ended = finished(command(dir.path(), &all).output().unwrap());
    if ended.stderr.is_empty() {
        assert!(link.is_symlink() && std::fs::metadata(target).unwrap().len() > 0);
    }
    // What is full is so at the end.
    let out = ["--no-check", "--out", "/dev/full"];
    let all = [&path[..], &out, &["--", "touch", "begun"]].concat();
    let ended = finished(command(dir.path(), &all).output().unwrap());
    if dir.path().join("begun").exists() {
        assert!(
            ended.stderr.contains("the path's thread"),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn a_wrong_path_is_refused_before_anything_is_made() {
    let refused = |path: &[&str], messages: &[&str]| {
        let line = [&["emulate"], path, &["--", "true"]].concat();
        let ended = finished(command(Path::new("."), &line).output().unwrap());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let said: Vec<&str> = (ended.stderr.lines())
            .filter(|line| line.starts_with("error: "))
            .collect();
        assert_eq!(said, messages, "{}", ended.stderr);
    };
    let unit = "error: --rate 80: a rate needs a unit";
    refused(&["--rate", "80", "--rtt", "10ms"], &[unit]);
    refused(&["first-run", "--rate", "80"], &[unit]);
    refused(
        &["first-run", "--return-rate", "80"],
        &["error: --return-rate 80: a rate needs a unit"],
    );
    refused(
        &["--buffer", "20ms"],
        &[
            "error: --rate: a path needs it",
            "error: --rtt: a path needs it",
        ],
    );
    let of_set = "error: --set: `path.rate = 80`: a rate needs a unit";
    refused(&["first-run", "--set", "path.rate=80"], &[of_set]);
}

#[test]
fn netem_is_refused_what_it_cannot_do_before_anything_is_made() {
    let path = [
        "emulate", "--by", "netem", "--rate", "50Mbit/s", "--rtt", "20ms",
    ];
    let refused = |more: &[&str], message: &str, remedy: &str| {
        let line = [&path[..], more, &["--", "true"]].concat();
        let ended = finished(command(Path::new("."), &line).output().unwrap());
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let (error, hint) = ended.stderr.split_once("\n").unwrap();
        assert_eq!(error, format!("error: {message}"));
        assert!(hint.contains("hint: ") && hint.contains(remedy), "{hint}");
    };
    let cannot = |what: &str| format!("netem and tbf cannot carry this path: {what}");
    let ours = "without `--by netem`";
    let queue = cannot("queue discipline CoDel at link `bottleneck`");
    refused(&["--queue", "codel"], &queue, ours);
    let jitter = cannot("jitter that keeps the order at link `bottleneck`");
    refused(&["--jitter", "1ms"], &jitter, ours);
    let spares = cannot("loss at link `bottleneck` that spares ACKs, SYNs and pings");
    refused(&["--loss", "1%"], &spares, "path.loss_of_acks=true");
    for side in ["--near-namespace", "--far-namespace"] {
        let own = "`--by netem` makes namespaces of its own";
        refused(&[side, "named"], own, "leave `--by netem` or the names out");
    }
}

/// Where the kernel has netem the path is its own, and the result says so; where it has none the
/// error names the module and what needs none.
#[test]
fn netem_carries_the_path_or_is_missed_by_name() {
    let path = [
        "emulate", "--by", "netem", "--rate", "50Mbit/s", "--rtt", "20ms",
    ];
    let loss = ["--loss", "100%", "--set", "path.loss_of_acks=true"];
    let run = |more: &[&str], line: &str| {
        let line = [&path[..], more, &["--", "/bin/sh", "-c", line]].concat();
        finished(command(Path::new("."), &line).output().unwrap())
    };
    let ended = run(&["--format", "json"], "ping -c 1 -W 5 $FULLPIPE_FAR >&2");
    if ended.code == 3 {
        let lines: Vec<&str> = ended.stderr.lines().collect();
        let Some(module) = lines[0].strip_prefix("error: no path by netem: this kernel has no `")
        else {
            eprintln!("skipped: {}", ended.stderr);
            return;
        };
        let config = module.trim_end_matches('`').to_uppercase();
        assert!(
            ["SCH_NETEM", "SCH_TBF", "VETH"].contains(&config.as_str()),
            "{config}"
        );
        assert!(
            ended
                .stderr
                .contains(&format!("{config}; without `--by netem`"))
        );
        return;
    }
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    holds("emulation", &said);
    assert_eq!(said["by"], "netem");
    assert_eq!(said["late_ms"], Value::Null);
    assert_eq!(said["exit"], 0, "{}", ended.stderr);
    let links = said["links"].as_array().unwrap();
    let names = links.iter().map(|link| &link["name"]);
    assert!(names.eq(["bottleneck", "return"]), "{links:?}");
    let checks = said["checks"].as_array().unwrap();
    let named = |name: &str| checks.iter().find(|c| c["name"] == name).expect(name);
    // Tokens are there already: nothing of the delay is transmission.
    assert_eq!(named("delay forward")["specified"], 10.0);
    assert_eq!(named("rate back")["specified"], 50.0);
    // Losses begin behind the measurements.
    let ended = run(&loss, "ping -c 3 -i 0.2 -W 1 $FULLPIPE_FAR");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("small packets forward"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_failure_on_the_far_host_is_told() {
    let args = ["--rate", "50Mbit/s", "--rtt", "20ms"];
    let far = ["--far", "exit 9", "--far", "sleep 60", "--format", "json"];
    let Some(ended) = emulate(&[&args[..], &far].concat(), "sleep 0.2") else {
        return;
    };
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    holds("emulation", &said);
    let far = [
        json!({ "command": "exit 9", "exit": 9 }),
        json!({ "command": "sleep 60", "exit": null }),
    ];
    assert_eq!(said["far"], Value::from(far.to_vec()));
    let ended = emulate(&[&args[..], &["--far", "exit 9"]].concat(), "sleep 0.2").unwrap();
    let line = "`exit 9` on the far host ended with 9";
    assert!(ended.stderr.contains(line), "{}", ended.stderr);
}

#[test]
fn nothing_is_left_of_a_run_that_is_killed() {
    killed("fullpipe");
    killed("netem");
}

fn killed(by: &str) {
    if emulate(&["--by", by, "--rate", "10Mbit/s", "--rtt", "10ms"], "true").is_none() {
        return;
    }
    let mut seen = 0;
    for round in 0..10 {
        // No other process sleeps for exactly so long.
        let marker = format!("98765{}{round}", std::process::id());
        let far = format!("(sleep {marker} &) ; sleep {marker}");
        // In the middle of the measurements, too.
        let unchecked = (round % 2 == 1).then_some("--no-check");
        let args = ["emulate", "--by", by, "--rate", "10Mbit/s", "--rtt", "10ms"];
        let mut emulator = command(Path::new("."), &args)
            .args(unchecked)
            .args(["--far", &far, "--", "/bin/sh", "-c", &far])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before the first namespace to after the last process.
        sleep(Duration::from_millis(20 * round * round));
        // The emulator's own command line has the marker, too.
        seen = seen.max(of_run(&marker).len());
        emulator.kill().unwrap();
        emulator.wait().unwrap();
        let mut left = of_run(&marker);
        for _ in 0..100 {
            if left.is_empty() {
                break;
            }
            sleep(Duration::from_millis(20));
            left = of_run(&marker);
        }
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(
        seen > 4,
        "no run had its four sleepers when it was killed: {seen}"
    );
    let host = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!host.contains("fullpipe0"), "{host}");
}

/// What a run could leave behind on this machine: devices, routes, named namespaces, settings of
/// TCP.
fn machine() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let devices = read("/proc/net/dev");
    let devices = devices
        .lines()
        .filter_map(|l| Some(l.split_once(':')?.0.trim().to_owned()));
    let names = |path: &str| -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.map(|e| e.path().display().to_string()).collect();
        all.sort();
        all
    };
    let settings = names("/proc/sys/net/ipv4");
    let settings = settings.iter().filter(|path| path.contains("/tcp_"));
    let settings: Vec<String> = settings
        .map(|path| format!("{path} {}", read(path)))
        .collect();
    let mut all: Vec<String> = devices.collect();
    all.extend([read("/proc/net/route"), read("/proc/net/ipv6_route")]);
    all.extend(names("/run/netns"));
    all.extend(settings);
    all
}

/// Network namespaces that any process is in, or holds open.
fn namespaces() -> std::collections::BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let links = processes.flat_map(|p| {
        let open = fs::read_dir(p.path().join("fd")).into_iter().flatten();
        let open = open.flatten().map(|fd| fd.path());
        let of_process = open.chain([p.path().join("ns/net")]);
        of_process.filter_map(|link| fs::read_link(link).ok())
    });
    let links = links.map(|l| l.display().to_string());
    links.filter(|l| l.starts_with("net:[")).collect()
}

/// Two and a half minutes, and the machine must make no namespaces of its own meanwhile.
#[test]
#[ignore = "long: `make verify-attacks`"]
fn nothing_is_left_of_a_hundred_runs_that_are_killed_at_any_moment() {
    if emulate(&["--rate", "10Mbit/s", "--rtt", "10ms"], "true").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let scenario = dir.path().join("one.toml");
    // A stack that every kernel has.
    let text = "name = \"one\"\nduration = \"20s\"\npath = { rate = \"10Mbit/s\", rtt = \"10ms\" }\n\
                [[flow]]\nstack = \"reno\"\n";
    fs::write(&scenario, text).unwrap();
    let scenario = scenario.to_str().unwrap();
    let (before, spaces) = (machine(), namespaces());
    let mut seen = [0; 2];
    // A generator of numbers that look drawn (Lehmer 1951), for moments.
    let mut state = 20_261_124u64;
    for round in 0..100 {
        state = state * 48_271 % 0x7fff_ffff;
        let moment = Duration::from_millis(state % 2500);
        let marker = format!("87654{}{round}", std::process::id());
        let far = format!("(sleep {marker} &) ; sleep {marker}");
        let line = match round % 2 {
            0 => vec![
                "emulate", "--rate", "10Mbit/s", "--rtt", "10ms", "--far", &far, "--",
            ],
            _ => vec!["run", scenario, "--ground", "kernel"],
        };
        let line = match round % 2 {
            0 => [&line[..], &["/bin/sh", "-c", &far]].concat(),
            _ => line,
        };
        let mut run = command(Path::new("."), &line)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(moment);
        seen[round % 2] += usize::from(namespaces().len() > spaces.len());
        let _ = run.kill();
        run.wait().unwrap();
        let is_clean = (0..250).any(|_| {
            sleep(Duration::from_millis(20));
            of_run(&marker).is_empty() && namespaces().is_subset(&spaces)
        });
        assert!(is_clean, "round {round}: {:?}", of_run(&marker));
    }
    assert!(
        seen.iter().all(|&of_kind| of_kind > 20),
        "only {seen:?} of fifty runs of each kind had a namespace when they were killed"
    );
    assert_eq!(machine(), before);
}

/// Whoever is late says so: with all cores busy and without real-time priority a path is flagged.
#[test]
#[ignore = "takes all cores: `make verify-attacks`"]
fn a_busy_machine_has_its_runs_flagged() {
    let over = std::sync::atomic::AtomicBool::new(false);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..4 * cores {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let args = [
            "--rate",
            "100Mbit/s",
            "--rtt",
            "20ms",
            "--no-real-time",
            "--format",
            "json",
        ];
        let ended = emulate(&args, "sleep 3");
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        let Some(ended) = ended else { return };
        let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
        assert_eq!(
            (ended.code, &said["true"]),
            (5, &Value::Bool(false)),
            "{}",
            ended.stdout
        );
    });
}

/// Command lines of processes with a marker.
fn of_run(marker: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|p| fs::read_to_string(p.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(marker)).collect()
}
