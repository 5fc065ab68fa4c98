//! Every parser of what others write, with bent, cut and spliced input: nothing panics, what is
//! read is written back as it was, and most of it is refused.

use fullpipe_net::content::{Answer, Content, Found, Held, Question};
use fullpipe_net::file::{Identity, Item, Name, State};
use fullpipe_net::session::client::Report;
use fullpipe_net::session::control::{ClientMessage, EndReason, ServerMessage};
use fullpipe_net::session::message::{self, Nonce};
use fullpipe_net::session::request::Request;
use fullpipe_net::session::{Key, Reason};
use fullpipe_net::wire::Parsed;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attack::Dice;
use crate::seeds;
use crate::vectors::{bytes, list, text, vectors};

/// A parser: valid input, and what it makes of any: true if it takes it.
struct Parser {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    read: fn(&[u8]) -> bool,
}

/// Numbers that are at an edge, as the encoding of control messages writes them.
fn edge(dice: &mut Dice) -> Vec<u8> {
    let edges = [
        0,
        1,
        127,
        128,
        1 << 31,
        u64::from(u32::MAX),
        1 << 62,
        1 << 63,
        u64::MAX,
    ];
    postcard::to_stdvec(&edges[dice.below(edges.len())]).unwrap()
}

fn bend(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut out = seeds[dice.below(seeds.len())].clone();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(out.len() + 1);
        match dice.below(7) {
            0 if at < out.len() => out[at] ^= 1 << dice.below(8),
            1 if at < out.len() => out[at] = [0, 1, 2, 127, 128, 255][dice.below(6)],
            2 => out.truncate(at),
            3 => drop(out.splice(at.., dice.noise(40))),
            4 if at < out.len() => drop(out.splice(at..=at, edge(dice))),
            5 => {
                let other = &seeds[dice.below(seeds.len())];
                let from = dice.below(other.len() + 1);
                drop(out.splice(at.., other[from..].iter().copied()));
            }
            _ => drop(out.splice(at..at, dice.noise(4))),
        }
        out.truncate(4096);
    }
    out
}

fn read_as<T: DeserializeOwned + Serialize>(input: &[u8]) -> bool {
    let Ok((message, rest)) = postcard::take_from_bytes::<T>(input) else {
        return false;
    };
    // Numbers may be written longer than they need be: what was read is written and read the same.
    let once = postcard::to_stdvec(&message).unwrap();
    assert!(once.len() <= input.len() - rest.len());
    let again: T = postcard::from_bytes(&once).unwrap();
    assert_eq!(postcard::to_stdvec(&again).unwrap(), once);
    true
}

fn reads_datagram(input: &[u8]) -> bool {
    let Ok(datagram) = Parsed::decode(input) else {
        return false;
    };
    let mut out = vec![0xaa; 8192];
    let n = datagram.encode(&mut out);
    assert_eq!(&out[..n], input);
    true
}

fn reads_handshake(input: &[u8]) -> bool {
    let nonce = Nonce([7; 16]);
    let _ = (
        message::refuse_version(input),
        message::other_version(input, &nonce),
    );
    let hello = message::read_hello(input).is_ok();
    hello || message::read_cookie(input).is_ok() || message::read_refuse(input).is_ok()
}

fn reads_name(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let Ok(name) = Name::parse(&text) else {
        return false;
    };
    let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
    assert!(name.as_str().split('/').all(inside), "{text:?}");
    true
}

fn parsers() -> Vec<Parser> {
    let message = |m: &ClientMessage| postcard::to_stdvec(m).unwrap();
    let said = |m: &ServerMessage| postcard::to_stdvec(m).unwrap();
    let question = |question| {
        message(&ClientMessage::Content {
            number: 1,
            question,
        })
    };
    let answer = |answer| said(&ServerMessage::Content { number: 1, answer });
    let source = Identity {
        size: 200_000,
        changed: 1,
    };
    let item = Item {
        name: "d/x".to_owned(),
        source: Some(source),
        mode: 0o644,
    };
    let spans = vec![(0, 65_536), (131_072, 200_000)];
    let held = Held {
        file: 1,
        spans: spans.clone(),
        digest: [5; 32],
    };
    let part = Found::Part {
        spans: spans.clone(),
        digest: [6; 32],
    };
    let store = Content::Store {
        items: vec![item.clone(); 3],
        overwrite: true,
    };
    let json = r#"{"form": 1, "duration": 10, "flows": [{"name": "a", "direction": "down",
        "bytes": 1000000, "stack": "cubic", "window": 10}], "pings": [{"name": "p",
        "every": 0.05}], "store": {"items": [{"name": "d"}, {"name": "d/x", "size": 5}]}}"#;
    let all = vectors();
    let good = list(&all, "valid").iter().map(|v| bytes(text(v, "hex")));
    let good = good.collect();
    let state = State::of_ranges(source, spans.clone(), 4).to_string();
    vec![
        Parser {
            name: "datagrams",
            seeds: good,
            read: reads_datagram,
        },
        Parser {
            name: "handshake",
            seeds: vec![
                message::hello(&Nonce([7; 16])).to_vec(),
                message::refuse(&Nonce([7; 16]), Reason::Version(3)).to_vec(),
                message::hello_of_version_1(&Nonce([7; 16])).to_vec(),
            ],
            read: reads_handshake,
        },
        Parser {
            name: "messages of clients",
            seeds: vec![
                message(&ClientMessage::Part {
                    at: 1,
                    bytes: vec![3; 90],
                }),
                message(&ClientMessage::Ask { from: 0, many: 32 }),
                message(&ClientMessage::Path([1; 8])),
                question(Question::Here(vec![held.clone(), held])),
                question(Question::Plan(vec![(0, None), (1, Some(spans))])),
                question(Question::Verdict([8; 32])),
            ],
            read: read_as::<ClientMessage>,
        },
        Parser {
            name: "messages of servers",
            seeds: vec![
                said(&ServerMessage::Refused("no".to_owned())),
                said(&ServerMessage::Ended {
                    why: EndReason::Over,
                    length: 5000,
                    digest: [1; 32],
                }),
                answer(Answer::Items {
                    items: vec![item; 2],
                    all: 2,
                    left_out: 0,
                }),
                answer(Answer::Found {
                    found: vec![(0, part), (1, Found::Whole([3; 32]))],
                    next: 2,
                }),
                answer(Answer::Named {
                    same: true,
                    failed: vec![(1, "x".to_owned())],
                    all: 1,
                }),
            ],
            read: read_as::<ServerMessage>,
        },
        Parser {
            name: "requests",
            seeds: vec![
                seeds::request(Content::Nothing),
                seeds::request(store),
                json.into(),
            ],
            read: |input| Request::decode(input).is_ok(),
        },
        Parser {
            name: "results",
            seeds: vec![seeds::report()],
            // ACKs of captures, which no server sends, are not written as they are read.
            read: |input| postcard::take_from_bytes::<Report>(input).is_ok(),
        },
        Parser {
            name: "states of unfinished files",
            seeds: vec![state.into_bytes()],
            read: |input| State::parse(&String::from_utf8_lossy(input)).is_some(),
        },
        Parser {
            name: "names",
            seeds: vec![
                b"a/b.c/d".to_vec(),
                b"../x".to_vec(),
                "\u{202e}x/./y".into(),
            ],
            read: reads_name,
        },
        Parser {
            name: "keys",
            seeds: vec![[b'k'; 44].to_vec()],
            read: |input| Key::from_text(&String::from_utf8_lossy(input), "test").is_ok(),
        },
    ]
}

fn attack(n: usize) {
    for parser in parsers() {
        let mut dice = Dice(41);
        let taken = (0..n)
            .filter(|_| (parser.read)(&bend(&mut dice, &parser.seeds)))
            .count();
        println!("{}: {n} inputs, {taken} taken", parser.name);
        // Valid input is read, so that what is tried comes far.
        assert!(
            parser.seeds.iter().any(|seed| (parser.read)(seed)),
            "{}",
            parser.name
        );
        assert!(taken < n, "{}", parser.name);
    }
}

#[test]
fn no_parser_panics() {
    attack(3000);
}

#[test]
#[ignore = "a million inputs each: cargo test -p fullpipe-net --test it -- --ignored malformed --nocapture"]
fn no_parser_panics_a_million_times() {
    attack(1_000_000);
}
