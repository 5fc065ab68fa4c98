//! What works without privileges: as root this program is started as nobody; elsewhere, or where
//! nobody may not run it, the tests say why they are skipped.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{Finished, finished};

/// This program as nobody; `None`: not possible here.
fn as_nobody(args: &[&str]) -> Option<Finished> {
    let run = |args: &[&str]| {
        let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
        Command::new("setpriv")
            .current_dir(Path::new("/"))
            .args(nobody)
            .arg(env!("CARGO_BIN_EXE_fullpipe"))
            .args(args)
            .output()
    };
    match run(&["--version"]) {
        Ok(ended) if ended.status.success() => Some(finished(run(args).unwrap())),
        ended => {
            eprintln!("skipped: nobody cannot run it: {ended:?}");
            None
        }
    }
}

/// udev opens /dev/net/tun to everybody; a container without it may not.
fn tun_is_for_root() -> bool {
    const EVERYBODY_READS_AND_WRITES: u32 = 0o006;
    let mode = |metadata: Metadata| metadata.permissions().mode();
    fs::metadata("/dev/net/tun")
        .map(mode)
        .is_ok_and(|mode| mode & EVERYBODY_READS_AND_WRITES != EVERYBODY_READS_AND_WRITES)
}

#[test]
fn flows_are_observed_by_everybody() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let near = std::net::TcpStream::connect(address).unwrap();
    let port = address.port().to_string();
    let args = [
        "observe",
        "--loopback",
        "--port",
        &port,
        "--duration",
        "100ms",
    ];
    let args = [&args[..], &["--interval", "50ms", "--format", "ndjson"]].concat();
    let Some(ended) = as_nobody(&args) else {
        return;
    };
    if ended.code == 3 {
        eprintln!("skipped: {}", ended.stderr);
        return;
    }
    let local = near.local_addr().unwrap().to_string();
    let seen = ended
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap());
    let seen: Vec<Value> = seen.collect();
    let ours = seen.iter().find(|o| o["local"] == local.as_str());
    let ours = ours.unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
    assert!(ours["tcp_info"]["snd_cwnd"].as_u64().unwrap() > 0);
}

#[test]
fn the_running_kernel_is_a_ground_for_everybody() {
    let Some(ended) = as_nobody(&["doctor", "grounds", "--json"]) else {
        return;
    };
    let said: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let findings = said["findings"].as_array().unwrap();
    let kernel = findings.iter().find(|f| f["name"] == "ground kernel");
    let kernel = kernel.unwrap();
    let found = kernel["found"].as_str().unwrap();
    if found.contains("namespace") || tun_is_for_root() {
        eprintln!("skipped: {found}");
        return;
    }
    // Late on a busy machine, but there.
    assert_ne!(kernel["state"], "no", "{kernel}");
}

#[test]
fn what_a_user_may_not_do_is_found_out() {
    let Some(ended) = as_nobody(&["doctor", "bpf", "--json"]) else {
        return;
    };
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    let findings = said["findings"].as_array().unwrap();
    let first = findings.first().unwrap();
    assert_eq!(first["state"], "no", "{first}");
    let remedy = first["remedy"].as_str().unwrap();
    assert!(remedy.contains("setcap cap_net_admin"), "{remedy}");
}
