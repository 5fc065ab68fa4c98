//! The client of `contrib/python`, written from `docs/wire.md` alone, against our server: a test in
//! both directions, a ping, a copy each way. Python is `python3`, or what FULLPIPE_PYTHON names; it
//! needs the packages of `contrib/python/requirements.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use fullpipe_net::content::Allowed;
use fullpipe_net::file::Directory;
use fullpipe_net::io::Stop;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::server::{Config, Server};
use fullpipe_net::session::{Identity, Key, ServerId};
use fullpipe_units::Span;
use serde_json::Value;

use crate::moving::{Nat, Trick, slow};

/// A server with a directory, and what its clients need.
struct Setup {
    dir: tempfile::TempDir,
    server: String,
    identity: ServerId,
    stop: Stop,
    thread: JoinHandle<u64>,
}

fn python() -> Option<String> {
    let python = std::env::var("FULLPIPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut imports = Command::new(&python);
    imports.args(["-c", "import cryptography, blake3"]);
    match imports.output() {
        Ok(output) if output.status.success() => Some(python),
        Ok(_) => {
            eprintln!("skipped: {python} lacks the packages of contrib/python/requirements.txt");
            None
        }
        Err(e) => {
            eprintln!("skipped: {python}: {e}");
            None
        }
    }
}

impl Setup {
    fn new() -> Self {
        Self::within(Limits::default())
    }

    fn within(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there");
        std::fs::create_dir(&there).unwrap();
        let identity = Identity::generate().unwrap();
        let public = identity.public();
        let key = Key::create(&dir.path().join("key"), &public).unwrap();
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            key,
            limits,
            grace: Span::from_secs(1),
        };
        let allowed = Allowed {
            files: Some(Arc::new(Directory::open(&there).unwrap())),
            ..Allowed::default()
        };
        let server = Server::bind(config, Arc::new(|_| {})).unwrap();
        let server = server.with_identity(identity).with_files(allowed);
        let (address, stop) = (server.address(), Stop::new().unwrap());
        let until = stop.clone();
        Self {
            dir,
            server: address.to_string(),
            identity: public,
            stop,
            thread: std::thread::spawn(move || server.run(&until).unwrap()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What the client prints; its last words if it fails.
    fn client(&self, python: &str, options: &[&str], command: &[&str]) -> Result<Value, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/python/client.py");
        let mut client = Command::new(python);
        client.arg("-B").arg(script).arg(&self.server);
        client.args(options).args(command);
        let output = client.output().unwrap();
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn end(self) {
        self.stop.set();
        self.thread.join().unwrap();
    }
}

#[test]
fn a_client_written_from_the_page_alone_works() {
    let Some(python) = python() else {
        return;
    };
    let setup = Setup::new();
    let key = setup.path("key").display().to_string();
    for encrypt in [false, true] {
        let mut options = vec!["--key", &key];
        options.extend(encrypt.then_some("--encrypt"));
        let run = |command: &[&str]| setup.client(&python, &options, command).unwrap();
        let up = run(&["test", "--size", "1000000"]);
        let there = &up["there"][0];
        assert_eq!(there["end"], "receiver");
        assert_eq!(there["delivered"], up["here"]["acknowledged"], "{up}");
        let down = run(&["test", "--size", "1000000", "--reverse"]);
        let there = &down["there"][0];
        assert_eq!(there["end"], "sender");
        let number = |name: &str| there[name].as_u64().unwrap();
        let first = number("sent") - number("retransmits");
        assert_eq!(down["here"]["received"], first, "{down}");
        assert!(there["completed"].is_number(), "{down}");
        let ping = run(&["ping", "--count", "5"]);
        assert_eq!(ping["received"], 5, "{ping}");
        let bytes: Vec<u8> = (0..700_001u32).map(|i| (i ^ i >> 7) as u8).collect();
        std::fs::write(setup.path("here.bin"), &bytes).unwrap();
        let name = format!("there-{encrypt}.bin");
        let here = setup.path("here.bin").display().to_string();
        let put = run(&["put", &here, &name]);
        assert_eq!(put["verdict"], "published", "{put}");
        let there = std::fs::read(setup.path("there").join(&name)).unwrap();
        assert!(there == bytes, "the file is another");
        let back = setup.path("back.bin").display().to_string();
        let got = run(&["get", &name, &back]);
        assert_eq!(got["bytes"], 700_001, "{got}");
        assert!(
            std::fs::read(&back).unwrap() == bytes,
            "the file is another"
        );
    }
    setup.end();
}

/// Directories each way, twice; the second time there is nothing to send.
#[test]
fn that_client_copies_directories() {
    let Some(python) = python() else {
        return;
    };
    let setup = Setup::new();
    let key = setup.path("key").display().to_string();
    let here = setup.path("here");
    std::fs::create_dir_all(here.join("sub/deep")).unwrap();
    let files = [("a", 0), ("b", 70_001), ("sub/c", 1), ("sub/deep/d", 1448)];
    for (name, size) in files {
        std::fs::write(here.join(name), crate::transfer::bytes(size)).unwrap();
    }
    let here = here.display().to_string();
    for (name, encrypt) in [("clear", false), ("sealed", true)] {
        let mut options = vec!["--key", &key];
        options.extend(encrypt.then_some("--encrypt"));
        let run = |command: &[&str]| setup.client(&python, &options, command).unwrap();
        let first = run(&["store", &here, name]);
        assert_eq!(
            (&first["copied"], &first["bytes"]),
            (&4.into(), &71_450.into()),
            "{first}"
        );
        let again = run(&["store", &here, name]);
        assert_eq!(again["skipped"].as_array().unwrap().len(), 4, "{again}");
        assert_eq!(again["bytes"], 0, "{again}");
        let back = setup.path(&format!("back-{name}"));
        let fetched = run(&["fetch", name, &back.display().to_string()]);
        assert_eq!(fetched["copied"], 4, "{fetched}");
        for at in [setup.path("there").join(name), back] {
            for (name, size) in files {
                let bytes = std::fs::read(at.join(name)).unwrap();
                assert!(bytes == crate::transfer::bytes(size), "{name}");
            }
        }
    }
    setup.end();
}

/// What the page says of addresses that change and of paths that become narrower is enough: the
/// client answers challenges and probes and puts pieces together.
#[test]
fn that_client_outlasts_other_ports_and_narrower_paths() {
    let Some(python) = python() else {
        return;
    };
    let mut setup = Setup::within(slow());
    let (key, address) = (
        setup.path("key").display().to_string(),
        setup.server.clone(),
    );
    for encrypt in [false, true] {
        for (trick, met) in [(Trick::Port, "challenges"), (Trick::Narrow(1372), "pieces")] {
            let nat = Nat::start(address.parse().unwrap(), trick);
            setup.server = nat.address.to_string();
            let mut options = vec!["--key", &key];
            options.extend(encrypt.then_some("--encrypt"));
            let command = ["test", "--reverse", "--size", "6000000", "--time", "20"];
            let ran = setup.client(&python, &options, &command).unwrap();
            nat.end();
            let many = |name: &str| ran["met"][name].as_u64().unwrap();
            assert!(many(met) > 0, "{ran}");
            assert!(many("probes") > 0, "the new way may be narrower: {ran}");
            assert!(ran["there"][0]["completed"].is_number(), "{ran}");
        }
    }
    setup.end();
}

#[test]
fn that_client_is_refused_as_others_are() {
    let Some(python) = python() else {
        return;
    };
    let setup = Setup::new();
    let test = &["test", "--size", "1000"];
    let none = setup.client(&python, &[], test).unwrap_err();
    assert!(none.contains("reason 1"), "{none}");
    // A server that is not the one it knows: its COOKIE is passed over.
    let key = setup.path("key").display().to_string();
    let other = Identity::generate().unwrap().public().to_string();
    let options = ["--key", &key, "--identity", &other];
    let stranger = setup.client(&python, &options, test).unwrap_err();
    assert!(stranger.contains("no answer"), "{stranger}");
    let right = setup.identity.to_string();
    let options = ["--key", &key, "--identity", &right];
    setup.client(&python, &options, test).unwrap();
    setup.end();
}
