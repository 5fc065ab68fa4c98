//! Valid input for the fuzz targets `control` and `files` to start from: whole dialogues, in the
//! form that the targets read. The files are those of the present types:
//! `UPDATE_DOCS=1 cargo test -p fullpipe-net --test it seeds` writes them anew.

use std::fs;
use std::path::Path;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_host::{HostOutcome, ReceiverReport, SenderReport};
use fullpipe_net::content::{Answer, Content, Question};
use fullpipe_net::file::{Identity, State};
use fullpipe_net::payload::Tally;
use fullpipe_net::session::client::Report;
use fullpipe_net::session::control::{ClientMessage, EndReason, Grant, ServerMessage};
use fullpipe_net::session::request::{Options, Request};
use fullpipe_run::{FlowSpec, FlowTotals, RunSpec};
use fullpipe_units::{Bytes, Rate, Span, Time};
use serde::Serialize;

/// A step that brings a body.
fn said(message: &impl Serialize) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(body(message));
    out
}

/// Two bytes of length, and the body.
fn body(message: &impl Serialize) -> Vec<u8> {
    let body = postcard::to_stdvec(message).unwrap();
    let mut out = (body.len() as u16).to_be_bytes().to_vec();
    out.extend(body);
    out
}

fn flow(name: &str, reverse: bool) -> FlowSpec {
    FlowSpec {
        reverse,
        ..FlowSpec::new(
            name,
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![],
            vec![],
        )
    }
}

pub(crate) fn request(content: Content) -> Vec<u8> {
    let spec = RunSpec {
        duration: Span::from_secs(10),
        flows: vec![flow("up", false), flow("down", true)],
        ..RunSpec::default()
    };
    let options = Options {
        label: "seed".to_owned(),
        until_complete: true,
        content,
        ..Options::default()
    };
    Request { spec, options }.encode().unwrap()
}

/// What a server leaves behind of that run.
pub(crate) fn report() -> Vec<u8> {
    let outcome = HostOutcome {
        senders: vec![SenderReport {
            flow: 1,
            totals: FlowTotals::default(),
            offered: 10,
            record: Default::default(),
            started: Time::ZERO,
            completed: Some(Time::from_nanos(5_000_000)),
            acked: 0,
        }],
        receivers: vec![ReceiverReport {
            flow: 0,
            totals: FlowTotals::default(),
            arrived: 5,
            not_taken: 0,
            arrivals: Default::default(),
        }],
        ..HostOutcome::default()
    };
    let error = None;
    postcard::to_stdvec(&Report { outcome, error }).unwrap()
}

/// Steps of the target: 3 brings the whole request, 4 lets time pass, 5 looks at the run, 6 ends
/// it, 7 sends the OPEN again.
fn a_session_at_the_server(how: u8) -> Vec<u8> {
    let tally = Question::Tally(0);
    let steps = [
        vec![0, how, 3],
        said(&ClientMessage::Start),
        vec![5, 10, 10, 4 | 20 << 3, 100],
        said(&ClientMessage::Alive),
        said(&ClientMessage::Stop),
        vec![5, 0, 0, 6, 40],
        said(&ClientMessage::Ask { from: 0, many: 32 }),
        said(&ClientMessage::Content {
            number: 1,
            question: tally,
        }),
        vec![7],
        said(&ClientMessage::Close),
    ];
    steps.concat()
}

/// Steps of the target: 5 asks, 6 says start, stop or goodbye, 7 fetches the result.
fn a_session_at_the_client() -> Vec<u8> {
    let result = report();
    let grant = Grant {
        max_rate: Some(Rate::from_bits_per_sec(1_000_000)),
        max_bytes: Some(Bytes(1_000_000)),
        notes: vec!["less than was asked for".to_owned()],
    };
    let answer = Answer::Tally {
        tally: Tally::default(),
        damaged: 0,
    };
    let ended = ServerMessage::Ended {
        why: EndReason::Stopped,
        length: result.len() as u32,
        digest: *blake3::hash(&result).as_bytes(),
    };
    let alive = ServerMessage::Alive {
        received: 9,
        sent: 9,
        complete: true,
    };
    let mut steps = [
        vec![1, 1],
        said(&ServerMessage::Have { at: 0 }),
        said(&ServerMessage::Granted(grant)),
        vec![5],
        body(&Question::Tally(0)),
        said(&ServerMessage::Content { number: 1, answer }),
        vec![6],
        said(&alive),
        vec![6 | 1 << 3],
        said(&ended),
        vec![7],
    ]
    .concat();
    for (at, part) in (0..).zip(result.chunks(fullpipe_net::session::control::PART)) {
        steps.extend(said(&ServerMessage::Part {
            at,
            bytes: part.to_vec(),
        }));
    }
    steps.extend([6 | 2 << 3]);
    steps.extend(said(&ServerMessage::Closed));
    steps
}

fn with_first(first: u8, rest: &[u8]) -> Vec<u8> {
    [&[first][..], rest].concat()
}

fn control() -> Vec<(&'static str, Vec<u8>)> {
    let name = "a/file".to_owned();
    let source = Identity {
        size: 5000,
        changed: 1,
    };
    let put = Content::Put {
        name: name.clone(),
        source,
        mode: 0o644,
        overwrite: true,
    };
    let refused = [
        vec![1, 0],
        said(&ServerMessage::Refused("no".to_owned())),
        vec![6 | 2 << 3],
    ];
    vec![
        ("server", a_session_at_the_server(0)),
        ("server-pattern", a_session_at_the_server(5)),
        ("server-encrypted", a_session_at_the_server(2)),
        ("client", a_session_at_the_client()),
        ("client-refused", refused.concat()),
        ("request", with_first(2, &request(Content::Nothing))),
        (
            "request-pattern",
            with_first(2, &request(Content::Pattern { key: 7 })),
        ),
        ("request-put", with_first(2, &request(put))),
        (
            "request-get",
            with_first(2, &request(Content::Get { name })),
        ),
        ("result", with_first(3, &report())),
    ]
}

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let question = |q: &Question| said(q);
    let dialogue = |first: &[u8], steps: &[Vec<u8>]| [first, &steps.concat()].concat();
    let nothing = *blake3::hash(b"").as_bytes();
    let source = Identity {
        size: 5000,
        changed: 1,
    };
    let whole = *blake3::hash(&[5; 5000]).as_bytes();
    let put = [
        question(&Question::Prepared),
        question(&Question::From(0)),
        vec![0xff],
        question(&Question::Verdict(nothing)),
    ];
    let get = [
        question(&Question::Prepared),
        question(&Question::Have {
            prefix: 0,
            digest: nothing,
        }),
        vec![0xff],
        question(&Question::Verdict(nothing)),
    ];
    let prepared = |source, prefix, digest| {
        said(&Answer::Prepared {
            source,
            mode: 0o644,
            prefix,
            digest,
        })
    };
    let sent = [
        prepared(source, 0, nothing),
        said(&Answer::From(0)),
        said(&Answer::Published),
    ];
    let taken = [
        prepared(
            Identity {
                size: 0,
                changed: 1,
            },
            0,
            nothing,
        ),
        said(&Answer::From(0)),
        said(&Answer::Digest(nothing)),
    ];
    let state = State {
        source,
        prefix: 5000,
        digest: whole.into(),
        ranges: Vec::new(),
        owner: 1,
    };
    vec![
        ("put", dialogue(&[0, 0, 100], &put)),
        ("put-again", dialogue(&[0, 0x0a, 100], &put)),
        ("get", dialogue(&[0, 3, 0], &get)),
        ("sent", dialogue(&[1, 0], &sent)),
        ("taken", dialogue(&[1, 5], &taken)),
        ("name", with_first(2, b"run 1/data.bin")),
        ("state", with_first(3, state.to_string().as_bytes())),
    ]
}

#[test]
fn seeds_of_fuzz_targets_are_what_is_said_today() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    for (target, seeds) in [("control", control()), ("files", files())] {
        let dir = root.join(target);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(&dir).unwrap();
            for (name, bytes) in &seeds {
                fs::write(dir.join(name), bytes).unwrap();
            }
        }
        for (name, bytes) in seeds {
            let file = fs::read(dir.join(name)).unwrap_or_default();
            assert!(file == bytes, "{target}/{name}: UPDATE_DOCS=1 writes it");
        }
    }
}
