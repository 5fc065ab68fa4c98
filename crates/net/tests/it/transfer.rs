//! Files and data that prove themselves, between a client and a server over loopback.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_net::content::copy::{self, Copy, CopyError, put};
use fullpipe_net::content::{Allowed, Content};
use fullpipe_net::endpoint::Hooks;
use fullpipe_net::file::Directory;
use fullpipe_net::ground;
use fullpipe_net::io::Stop;
use fullpipe_net::session::Key;
use fullpipe_net::session::client::{Client, Peer, SessionError};
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::server::{Config, Server};
use fullpipe_run::{FlowSpec, RunSpec};
use fullpipe_units::Span;

static NEVER: AtomicBool = AtomicBool::new(false);

pub(crate) struct Serving {
    pub(crate) peer: Peer,
    stop: Stop,
    thread: Option<std::thread::JoinHandle<u64>>,
}

impl Serving {
    pub(crate) fn start(files: Option<&Path>) -> Self {
        Self::within(files, Limits::default())
    }

    pub(crate) fn within(files: Option<&Path>, limits: Limits) -> Self {
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            key: Key::open(),
            limits,
            grace: Span::from_secs(1),
        };
        let files = files.map(|dir| Arc::new(Directory::open(dir).unwrap()));
        let server = Server::bind(config, Arc::new(|_| {}))
            .unwrap()
            .with_files(Allowed {
                files,
                ..Allowed::default()
            });
        let peer = Peer::new(server.address(), Key::open());
        let stop = Stop::new().unwrap();
        let until = stop.clone();
        let thread = std::thread::spawn(move || server.run(&until).unwrap());
        Self {
            peer,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn spec(millis: u64, segments: u64, reverse: bool) -> RunSpec {
    let mut flow = FlowSpec::new(
        "main",
        StackSpec::parse("cubic").unwrap(),
        SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.transfer = Some(segments);
            c.window.max = 200.0;
        }),
        ReceiverConfig::preset(Preset::Y2026),
        vec![],
        vec![],
    );
    flow.reverse = reverse;
    flow.drops.segments = vec![3, 50];
    RunSpec {
        duration: Span::from_millis(millis),
        flows: vec![flow],
        ..RunSpec::default()
    }
}

fn connect(server: &Serving, spec: &RunSpec, content: Content) -> Result<Client, SessionError> {
    let request = Request {
        spec: spec.clone(),
        options: Options {
            until_complete: true,
            content,
            ..Options::default()
        },
    };
    Client::connect(&server.peer, &request, &ground::Options::default(), &NEVER)
}

pub(crate) fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i ^ (i >> 8) ^ (i >> 15)) as u8).collect()
}

fn text<T>(r: Result<T, SessionError>) -> Result<T, String> {
    r.map_err(|e| e.to_string())
}

/// Sends or fetches; the run lasts `millis` at most. Bytes that were there before, or why not.
pub(crate) fn transfer(
    server: &Serving,
    here: &Path,
    name: &str,
    get: bool,
    millis: u64,
) -> Result<u64, String> {
    let mut spec = spec(millis, 1, get);
    let (mut client, copy) = if get {
        let name = name.to_owned();
        let mut client = text(connect(server, &spec, Content::Get { name }))?;
        let copy = Copy::take(here, false, &mut |q| text(client.ask(q, &NEVER)));
        (client, copy)
    } else {
        let (file, content) = put(here, name, false).map_err(|e| e.to_string())?;
        let mut client = text(connect(server, &spec, content))?;
        let copy = Copy::send(file, &mut |q| text(client.ask(q, &NEVER)));
        (client, copy)
    };
    let mut copy = copy.map_err(|e| e.to_string())?;
    let before = copy.from();
    let mut carried = None;
    if copy.missing() > 0 {
        let mut data = copy
            .begin(&mut spec)
            .map_err(|e: CopyError| e.to_string())?;
        let spec = Arc::new(spec);
        let local = ground::Options::default();
        text(client.run(&spec, &local, data.hooks(), &NEVER))?;
        carried = Some(data);
    }
    let mut ask = |q: &_| text(client.ask(q, &NEVER));
    copy.finish(carried, &mut ask).map_err(|e| e.to_string())?;
    client.close();
    Ok(before)
}

/// A copy in so short a time that not all of it gets across, and some does: how long that is
/// depends on the machine.
fn begin(server: &Serving, here: &Path, name: &str, get: bool) {
    for millis in [20, 40, 80, 160, 320] {
        let error = transfer(server, here, name, get, millis).unwrap_err();
        let (have, _) = error
            .split_once(" of 20000001 bytes are there")
            .expect(&error);
        if have.split(' ').next_back() != Some("0") {
            return;
        }
    }
}

#[test]
fn a_file_goes_there_and_comes_back_and_goes_on_where_it_ended() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Serving::start(Some(there.path()));
    let data = bytes(20_000_001);
    let a = here.path().join("a");
    fs::write(&a, &data).unwrap();
    begin(&server, &a, "b", false);
    assert!(!there.path().join("b").exists());
    let before = transfer(&server, &a, "b", false, 60_000).unwrap();
    assert!(before > 0 && before < 20_000_001, "{before}");
    assert!(fs::read(there.path().join("b")).unwrap() == data);
    assert_eq!(transfer(&server, &a, "b", false, 60_000), Ok(20_000_001));
    let c = here.path().join("c");
    begin(&server, &c, "b", true);
    let before = transfer(&server, &c, "b", true, 60_000).unwrap();
    assert!(before > 0 && before < 20_000_001, "{before}");
    assert!(fs::read(&c).unwrap() == data);
    for dir in [here.path(), there.path()] {
        let names = fs::read_dir(dir).unwrap();
        let left = names.filter(|n| {
            let name = n.as_ref().unwrap().file_name();
            name.to_string_lossy().contains(".part")
        });
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn a_server_without_files_says_so() {
    let here = tempfile::tempdir().unwrap();
    let server = Serving::start(None);
    let a = here.path().join("a");
    fs::write(&a, b"x").unwrap();
    for get in [false, true] {
        let error = transfer(&server, &a, "b", get, 1000).unwrap_err();
        assert!(error.contains("--files"), "{error}");
    }
}

#[test]
fn the_same_copy_begun_again_takes_the_place_of_the_first() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = Serving::start(Some(there.path()));
    let a = here.path().join("a");
    fs::write(&a, bytes(1_000_000)).unwrap();
    let (file, content) = put(&a, "b", false).unwrap();
    let mut first = connect(&server, &spec(60_000, 1, false), content).unwrap();
    // It holds the file, and is never heard of again.
    Copy::send(file, &mut |q| text(first.ask(q, &NEVER))).unwrap();
    transfer(&server, &a, "b", false, 60_000).unwrap();
    assert!(fs::read(there.path().join("b")).unwrap() == bytes(1_000_000));
}

#[test]
fn data_from_memory_prove_themselves_in_both_directions() {
    let server = Serving::start(None);
    for reverse in [false, true] {
        let spec = Arc::new(spec(60_000, 5000, reverse));
        let mut client = connect(&server, &spec, Content::Pattern { key: 9 }).unwrap();
        let mut carried = copy::patterns(9, &spec);
        let hooks: Hooks<'_> = carried.hooks();
        let local = ground::Options::default();
        client.run(&spec, &local, hooks, &NEVER).unwrap();
        let mut ask = |q: &_| text(client.ask(q, &NEVER));
        let proofs = copy::tallies(&carried, &spec, &mut ask).unwrap();
        client.close();
        assert_eq!(proofs.len(), 1);
        assert!(proofs[0].is_whole(), "{proofs:?}");
        assert_eq!(proofs[0].received.segments, 5000);
    }
}
