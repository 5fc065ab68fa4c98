//! The unit of `contrib/systemd`: systemd accepts it, and its privileges are enough.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::daemon::{POLICY, Running, road, until};
use crate::support::{Ground, prefix};

fn unit() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    fs::read_to_string(folder.join("fullpipe-tune.service")).unwrap()
}

fn value(key: &str) -> String {
    let unit = unit();
    let line = unit
        .lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}")).to_owned()
}

/// What systemd says of a unit, and whether it is content; `None`: no systemd.
fn verified(unit: &str) -> Option<(bool, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fullpipe-tune.service");
    // It looks for the programs and their pages, which are not installed here.
    fs::write(&file, unit.replace("/usr/bin/fullpipe", "/bin/true")).unwrap();
    let mut command = Command::new("systemd-analyze");
    match command.args(["verify", "--man=no"]).arg(&file).output() {
        Err(e) => {
            eprintln!("skipped: no systemd-analyze: {e}");
            None
        }
        Ok(ended) => {
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            Some((ended.status.success(), said))
        }
    }
}

#[test]
fn systemd_accepts_the_unit() {
    let Some((content, said)) = verified(&unit()) else {
        return;
    };
    assert!(content && said.is_empty(), "{said}");
    let (_, said) = verified(&unit().replace("UMask", "Umask")).unwrap();
    assert!(
        said.contains("Umask"),
        "it does not see a wrong key: {said}"
    );
}

#[test]
fn the_unit_is_hardened() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    let file = file.join("fullpipe-tune.service");
    let asked = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--threshold=25"])
        .arg(file)
        .output();
    let Ok(ended) = asked else {
        eprintln!("skipped: no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&ended.stderr);
    if said.contains("unrecognized option") {
        eprintln!("skipped: systemd before 250: {said}");
        return;
    }
    let table = String::from_utf8_lossy(&ended.stdout);
    let last = table.lines().last().unwrap_or_default();
    assert!(ended.status.success(), "more than 2.5 of 10: {last} {said}");
}

/// A daemon as another user, with the unit's capabilities and no other, in the namespace of its
/// flows: it takes a running one and a new one, and gives both back.
#[test]
fn the_unit_s_privileges_are_enough() {
    let Some(mut ground) = Ground::new(&[road(), road()]) else {
        return;
    };
    let Some(mut eye) = ground.eye() else { return };
    let nobody = || {
        let capabilities = value("AmbientCapabilities")
            .to_lowercase()
            .replace("cap_", "+");
        assert_eq!(value("AmbientCapabilities"), value("CapabilityBoundingSet"));
        let only = capabilities.replace(' ', ",");
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command.args([
            "--no-new-privs",
            "--inh-caps",
            &only,
            "--ambient-caps",
            &only,
        ]);
        command.args(["--bounding-set", &format!("-all,{only}")]);
        command
    };
    let try_it = nobody()
        .arg(std::env::current_exe().unwrap())
        .arg("--list")
        .output();
    if !try_it.as_ref().is_ok_and(|ended| ended.status.success()) {
        eprintln!("skipped: nobody cannot run this program: {try_it:?}");
        return;
    }
    let everybody = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    everybody(ground.folder.path(), 0o755);
    let state = ground.folder.path().join("state");
    fs::create_dir(&state).unwrap();
    std::os::unix::fs::chown(&state, Some(65534), Some(65534)).unwrap();
    fs::write(state.join("policy.toml"), POLICY).unwrap();
    let notify = ground.folder.path().join("notify");
    let manager = UnixDatagram::bind(&notify).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    everybody(&notify, 0o777);
    ground.flow_outside(0);
    let mut by = nobody();
    by.env("NOTIFY_SOCKET", &notify);
    let mut daemon = Running::inside(&ground, &state, by);
    let aimd = format!("{}aimd", prefix());
    until(&mut eye, Duration::from_secs(10), &[&aimd]);
    let line = daemon.line();
    assert!(line.ends_with(", was reno"), "{line}");
    ground.flow(1);
    until(&mut eye, Duration::from_secs(2), &[&aimd, &aimd]);
    let heard = || {
        let mut bytes = [0; 64];
        let n = manager.recv(&mut bytes).expect("a word to the manager");
        String::from_utf8_lossy(&bytes[..n]).into_owned()
    };
    assert_eq!([heard(), heard()], ["READY=1", "WATCHDOG=1"]);
    drop(daemon.child.stdin.take());
    assert!(daemon.child.wait().unwrap().success());
    until(&mut eye, Duration::ZERO, &["reno", "reno"]);
    assert!(eye.gets_on(), "a flow stalls");
}
