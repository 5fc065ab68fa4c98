//! What `tune doctor` finds is so, with and without each privilege.

use std::fs;
use std::path::Path;
use std::process::Command;

use fullpipe_doctor::State;
use fullpipe_tune::trial;

/// The trials in a process of their own: a line per finding.
#[test]
#[ignore = "the process of the other tests, which start it"]
fn trial_process() {
    let Ok(state) = std::env::var("TRIAL_STATE") else {
        return;
    };
    for f in trial::examine(Path::new(&state)) {
        let remedy = f.remedy.map_or_else(String::new, |r| r.to_string());
        println!("finding|{}|{}|{}|{remedy}", f.name, f.state.word(), f.found);
    }
}

/// Name, state, words and remedy of each, as found by root without these capabilities.
fn without(absent: &[&str]) -> Vec<[String; 4]> {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new("setpriv");
    // Whoever may administrate the system needs none of the others.
    let drop: Vec<String> = absent.iter().map(|name| format!("-{name}")).collect();
    if !drop.is_empty() {
        process.args(["--bounding-set", &drop.join(",")]);
    }
    let ended = process
        .arg(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "trial::trial_process",
        ])
        .env("TRIAL_STATE", folder.path().join("state"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let lines = text.lines().filter_map(|l| l.split_once("finding|"));
    let found: Vec<[String; 4]> = lines
        .map(|(_, line)| {
            let cells: Vec<&str> = line.split('|').collect();
            [cells[0], cells[1], cells[2], cells[3]].map(str::to_owned)
        })
        .collect();
    assert_eq!(found.len(), 9, "{text} {:?}", ended.stderr);
    found
}

fn of<'a>(found: &'a [[String; 4]], name: &str) -> &'a [String; 4] {
    found.iter().find(|f| f[0].contains(name)).expect(name)
}

#[test]
fn each_lacking_privilege_is_named_where_it_lacks() {
    if !nix::unistd::geteuid().is_root() || Command::new("setpriv").arg("-V").output().is_err() {
        eprintln!("skipped: takes root and setpriv(1), to go without a privilege");
        return;
    }
    let whole = without(&[]);
    if !Path::new("/sys/kernel/btf/vmlinux").exists() || of(&whole, "maps")[1] == "no" {
        eprintln!("skipped: nobody may load programs here: {whole:?}");
        return;
    }
    assert!(whole.iter().all(|f| f[1] != "no"), "{whole:?}");
    let maps = "maps of eBPF";
    let all = [
        "struct_ops",
        "sock_ops",
        "iter/tcp",
        maps,
        "pidfd_getfd",
        "tp_btf",
        "clsact",
    ];
    let programs = ["struct_ops", "sock_ops", "iter/tcp", "tp_btf", "clsact"];
    // What `inject` loads reads no memory of the kernel's own.
    let tracing = &programs[..4];
    let bpf = [&programs[..], &[maps]].concat();
    for (capability, lacking) in [
        ("net_admin", &["sock_ops", "pidfd_getfd", "clsact"][..]),
        ("perfmon", tracing),
        ("bpf", &bpf),
    ] {
        let found = without(&["sys_admin", capability]);
        for name in all {
            let [_, state, words, remedy] = of(&found, name);
            if lacking.contains(&name) {
                assert_eq!(state, "no", "{name} without {capability}");
                assert!(
                    words.ends_with(&format!("(not cap_{capability})")),
                    "{words}"
                );
                assert!(remedy.starts_with("sudo setcap cap_net_admin,cap_perfmon,cap_bpf+ep"));
            } else {
                assert_ne!(state, "no", "{name} without {capability}: {words}");
            }
        }
    }
}

#[test]
fn nothing_is_left_of_the_trials() {
    let names = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let found = trial::examine(&state);
    assert!(!state.exists());
    let mine = format!("fullpipe-doctor-{}", std::process::id());
    let groups = fullpipe_tune::groups::paths();
    assert!(!groups.values().any(|path| path.ends_with(&mine)), "{mine}");
    if found.iter().any(|f| f.state == State::No) {
        eprintln!("skipped: whether names stay ({found:?})");
        return;
    }
    // A name goes a moment after its program.
    let begin = std::time::Instant::now();
    let left = || {
        let there = fs::read_to_string(names).unwrap();
        there
            .split_whitespace()
            .any(|n| n.starts_with('d') && n.ends_with("aimd"))
    };
    while left() {
        assert!(
            begin.elapsed().as_secs() < 5,
            "{:?}",
            fs::read_to_string(names)
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_folder_that_cannot_be_had_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let found = trial::examine(&file);
    let folder = found
        .iter()
        .find(|f| f.name == "folder of the daemon")
        .unwrap();
    assert_eq!(
        (folder.state, folder.found.as_str()),
        (State::No, "it is no folder")
    );
}
