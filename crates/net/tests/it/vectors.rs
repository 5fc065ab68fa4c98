//! The test vectors of the wire format, `tests/vectors/wire-v2.json`, in both directions, and their
//! table in `docs/wire.md`. They were computed from the tables of that page by a program that is
//! not ours.

use std::fmt::Write as _;
use std::path::PathBuf;

use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_net::session::channel::Channel;
use fullpipe_net::session::control::ClientMessage;
use fullpipe_net::session::cookie::Cookie;
use fullpipe_net::session::message::{self, Answer, Ask, Nonce, Open, Opening};
use fullpipe_net::session::seal::{End, OVERHEAD, SEALED, Seal};
use fullpipe_net::session::{Directions, Identity, Key, Reason, Secrets, ServerId};
use fullpipe_net::wire::{
    AckDatagram, CrossDatagram, DataDatagram, Header, Kind, Parsed, PieceDatagram, SessionId,
    WireError,
};
use fullpipe_units::{Span, Time};
use serde_json::{Value, json};

/// The file.
pub fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/wire-v2.json")).unwrap()
}

/// The list named `which` in the file of vectors.
pub fn list<'a>(vectors: &'a Value, which: &str) -> &'a [Value] {
    vectors[which].as_array().unwrap()
}

/// A text of a vector.
pub fn text<'a>(vector: &'a Value, key: &str) -> &'a str {
    vector[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {vector}"))
}

/// The bytes of a vector.
pub fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2) && hex.is_ascii(), "{hex}");
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut s, b| {
        write!(s, "{b:02x}").unwrap();
        s
    })
}

fn micros(t: Time) -> u64 {
    t.as_nanos() / 1000
}

/// What a datagram says, as the file spells it.
fn fields(datagram: &Parsed<'_>) -> (&'static str, Value) {
    let session = |s: SessionId| format!("{:016x}", s.0);
    match datagram {
        Parsed::Data(d, payload) => {
            let s = &d.segment;
            let fields = json!({
                "session": session(d.session), "flow": d.flow, "seq": s.seq.to_string(), "syn": s.syn,
                "retransmission": s.retransmission, "cwr": s.cwr, "push": s.push, "bits": d.nonce, "stamp_us": micros(s.stamp),
                "payload": hex(payload),
            });
            ("data", fields)
        }
        Parsed::Ack(d) => {
            let a = &d.ack;
            let window = (a.window_end != u64::MAX).then(|| a.window_end - a.cum);
            let blocks: Vec<_> = a
                .sacks
                .iter()
                .map(|r| [r.start.to_string(), r.end.to_string()])
                .collect();
            let fields = json!({
                "session": session(d.session), "flow": d.flow, "cum": a.cum.to_string(), "syn": a.syn, "dsack": a.dsack,
                "ece": a.ece, "window": window, "echo_us": micros(a.echo), "hold_us": d.hold.as_nanos() / 1000,
                "stamp_ms": a.stamp_ms, "ce": d.ce, "ect": d.ect, "proof": d.proof, "sack": blocks,
            });
            ("ack", fields)
        }
        Parsed::Cross(d, padding) => {
            let fields = json!({
                "session": session(d.session), "flow": d.flow, "number": d.number.to_string(), "stamp_us": micros(d.stamp),
                "padding": hex(padding),
            });
            let kind = match d.kind {
                Kind::Ping => "ping",
                Kind::Pong => "pong",
                _ => "datagram",
            };
            (kind, fields)
        }
        Parsed::Piece(d, part) => {
            let fields = json!({
                "session": session(d.session), "flow": d.flow, "piece": d.number, "index": d.index,
                "count": d.count, "whole": d.whole, "part": hex(part),
            });
            ("piece", fields)
        }
        Parsed::Session(..) => ("session", Value::Null),
    }
}

/// The handshake of the file as its client has it: the OPEN, with the same ephemeral key.
fn opening(file: &Value) -> Opening {
    let fields = &named(file, "open")["fields"];
    let key = Key::from_text(text(fields, "key"), "vector").unwrap();
    let ask = Ask {
        kind: fields["test"].as_u64().unwrap() as u8,
        options: fields["options"].as_u64().unwrap() as u8,
        length: fields["length"].as_u64().unwrap() as u32,
        digest: array(text(fields, "digest")),
    };
    let (nonce, cookie) = (text(fields, "nonce"), text(fields, "cookie"));
    let (nonce, cookie) = (Nonce(array(nonce)), Cookie(array(cookie)));
    let ephemeral = array(text(fields, "chosen"));
    let server = ServerId(array(text(fields, "meant")));
    Opening::new(&key, &server, nonce, cookie, &ask, Some(&ephemeral)).unwrap()
}

/// What both sides share once the ACCEPT of the file is read.
fn secrets(file: &Value) -> Secrets {
    let accept = bytes(text(named(file, "accept"), "hex"));
    match opening(file).read_answer(&accept) {
        Ok(Some(Answer::Accepted(secrets))) => secrets,
        other => panic!("{other:?}"),
    }
}

/// The valid vector of this name.
fn named<'a>(file: &'a Value, name: &str) -> &'a Value {
    let mut valid = list(file, "valid").iter();
    valid.find(|v| v["name"] == name).unwrap()
}

/// Handshake and control: the bytes that fields stand for. The server's own Noise messages are
/// read only: its ephemeral keys are its own.
fn encode_session(file: &Value, name: &str, fields: &Value) -> Option<Vec<u8>> {
    let nonce = || Nonce(array(text(fields, "nonce")));
    Some(match name {
        "hello" => message::hello(&nonce()).to_vec(),
        "cookie" => {
            let identity = Identity::from_private(array(text(fields, "private")));
            assert_eq!(identity.public().to_string(), text(fields, "server"));
            let cookie = Cookie(array(text(fields, "cookie")));
            message::cookie(&nonce(), &cookie, &identity.public()).to_vec()
        }
        "open" => opening(file).bytes().to_vec(),
        "refuse-clear" => message::refuse(&nonce(), Reason::Authentication).to_vec(),
        "control" => {
            let mut client = Channel::new(&secrets(file), End::Client);
            client.seal(&ClientMessage::Alive).unwrap()
        }
        "accept" | "refuse" => return None,
        other => panic!("vector {other}"),
    })
}

/// Handshake and control: the bytes are understood, by who has to.
fn understand_session(file: &Value, name: &str, fields: &Value, bytes: &[u8]) {
    let nonce = || Nonce(array(text(fields, "nonce")));
    match name {
        "hello" => assert_eq!(message::read_hello(bytes), Ok(nonce())),
        "cookie" => {
            let cookie = Cookie(array(text(fields, "cookie")));
            let server = ServerId(array(text(fields, "server")));
            assert_eq!(message::read_cookie(bytes), Ok((nonce(), cookie, server)));
        }
        "open" => {
            let key = Key::from_text(text(fields, "key"), "vector").unwrap();
            let private = array(text(&named(file, "cookie")["fields"], "private"));
            let open = Open::read(bytes).unwrap();
            let (_, ask) = open
                .understand(&key, &Identity::from_private(private))
                .unwrap();
            assert_eq!(u64::from(ask.length), fields["length"]);
        }
        "accept" => {
            let secrets = secrets(file);
            assert_eq!(
                format!("{:016x}", secrets.session.0),
                text(fields, "session")
            );
            assert_eq!(hex(&secrets.keys.up), text(fields, "up"));
            assert_eq!(hex(&secrets.keys.down), text(fields, "down"));
        }
        "refuse-clear" => {
            let refusal = (nonce(), Reason::Authentication);
            assert_eq!(message::read_refuse(bytes), Ok(refusal));
        }
        "refuse" => {
            let answer = opening(file).read_answer(bytes).unwrap();
            let busy = matches!(answer, Some(Answer::Refused(Reason::Busy(4))));
            assert!(busy, "{answer:?}");
        }
        "control" => {
            let mut server = Channel::new(&secrets(file), End::Server);
            assert_eq!(server.open(bytes), Some(ClientMessage::Alive));
        }
        other => panic!("vector {other}"),
    }
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

/// As strict as the server, or the client that wrote this OPEN.
fn judge(datagram: &[u8], open: &mut Opening) -> Result<(), WireError> {
    let header = Header::decode(datagram)?;
    match header.kind {
        Kind::Hello => message::read_hello(datagram).map(|_| ()),
        Kind::Cookie => message::read_cookie(datagram).map(|_| ()),
        Kind::Open => Open::read(datagram).map(|_| ()),
        Kind::Accept => open.read_answer(datagram).map(|_| ()),
        Kind::Refuse => message::read_refuse(datagram).map(|_| ()),
        Kind::Control if header.flags & SEALED == 0 => Err(WireError::Malformed),
        _ => Parsed::decode(datagram).map(|_| ()),
    }
}

/// The bytes that fields stand for.
fn encode(kind: &str, fields: &Value) -> Vec<u8> {
    let small = |key: &str| fields[key].as_u64().unwrap();
    let word = |key: &str| u32::try_from(small(key)).unwrap();
    let long = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    let flag = |key: &str| fields[key].as_bool().unwrap();
    let time = |key: &str| Time::from_nanos(small(key) * 1000);
    let session = SessionId(u64::from_str_radix(text(fields, "session"), 16).unwrap());
    let flow = u16::try_from(small("flow")).unwrap();
    let mut out = vec![0; 2048];
    let n = match kind {
        "data" => {
            let segment = Segment {
                seq: long(&fields["seq"]),
                syn: flag("syn"),
                retransmission: flag("retransmission"),
                stamp: time("stamp_us"),
                ect: false,
                ce: false,
                cwr: flag("cwr"),
                push: flag("push"),
            };
            let data = DataDatagram {
                session,
                flow,
                segment,
                nonce: small("bits") as u8,
            };
            Parsed::Data(data, &bytes(text(fields, "payload"))).encode(&mut out)
        }
        "ack" => {
            let cum = long(&fields["cum"]);
            let mut sacks = SackBlocks::default();
            for block in list(fields, "sack") {
                sacks.push(Range {
                    start: long(&block[0]),
                    end: long(&block[1]),
                });
            }
            let ack = Ack {
                cum,
                syn: flag("syn"),
                echo: time("echo_us"),
                stamp_ms: word("stamp_ms"),
                one_way: None,
                sacks,
                dsack: flag("dsack"),
                ece: flag("ece"),
                window_end: fields["window"].as_u64().map_or(u64::MAX, |w| cum + w),
            };
            Parsed::Ack(AckDatagram {
                session,
                flow,
                ack,
                hold: Span::from_micros(small("hold_us")),
                ce: word("ce"),
                ect: word("ect"),
                proof: word("proof"),
            })
            .encode(&mut out)
        }
        "datagram" | "ping" | "pong" => {
            let cross = CrossDatagram {
                kind: match kind {
                    "ping" => Kind::Ping,
                    "pong" => Kind::Pong,
                    _ => Kind::Datagram,
                },
                session,
                flow,
                number: long(&fields["number"]),
                stamp: time("stamp_us"),
            };
            Parsed::Cross(cross, &bytes(text(fields, "padding"))).encode(&mut out)
        }
        "piece" => {
            let piece = PieceDatagram {
                session,
                flow,
                number: word("piece"),
                index: small("index") as u8,
                count: small("count") as u8,
                whole: small("whole") as u16,
            };
            Parsed::Piece(piece, &bytes(text(fields, "part"))).encode(&mut out)
        }
        other => panic!("kind {other}"),
    };
    out.truncate(n);
    out
}

#[test]
fn valid_vectors_are_read_and_written() {
    let file = vectors();
    assert_eq!(file["version"], u64::from(fullpipe_net::wire::VERSION));
    for vector in list(&file, "valid") {
        let name = text(vector, "name");
        let bytes = bytes(text(vector, "hex"));
        let read = Parsed::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        if let Parsed::Session(..) = read {
            let fields = &vector["fields"];
            if let Some(written) = encode_session(&file, name, fields) {
                assert_eq!(hex(&written), text(vector, "hex"), "{name}");
            }
            understand_session(&file, name, fields, &bytes);
            continue;
        }
        let (kind, fields) = fields(&read);
        assert_eq!(kind, text(vector, "kind"), "{name}");
        assert_eq!(fields, vector["fields"], "{name}");
        assert_eq!(hex(&encode(kind, &fields)), text(vector, "hex"), "{name}");
    }
}

#[test]
fn invalid_vectors_are_refused() {
    let file = vectors();
    for vector in list(&file, "invalid") {
        let name = text(vector, "name");
        let error = judge(&bytes(text(vector, "hex")), &mut opening(&file)).expect_err(name);
        let word = error.to_string();
        let word = word.rsplit(' ').next().unwrap();
        assert_eq!(word, text(vector, "error"), "{name}");
    }
}

#[test]
fn names_are_unique() {
    let file = vectors();
    let mut names: Vec<&str> = ["valid", "invalid", "sealed"]
        .into_iter()
        .flat_map(|which| list(&file, which))
        .map(|v| text(v, "name"))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// The bytes of a vector in a table; of long ones the beginning.
fn cell(vector: &Value) -> String {
    match text(vector, "hex") {
        "" => String::new(),
        hex if hex.len() > 400 => format!("`{}...`, {} bytes", &hex[..80], hex.len() / 2),
        hex => format!("`{hex}`"),
    }
}

/// The valid datagram that a sealed one was before.
pub fn plain(file: &Value, sealed: &Value) -> Vec<u8> {
    let mut valid = list(file, "valid").iter();
    let vector = valid.find(|v| v["name"] == sealed["plain"]);
    bytes(text(vector.unwrap(), "hex"))
}

#[test]
fn sealed_vectors_are_written_and_opened() {
    let file = vectors();
    let keys = Directions {
        up: array(text(&file, "sealed_key")),
        down: [1; 32],
    };
    let secrets = Secrets {
        session: SessionId(0x0123_4567_89ab_cdef),
        keys,
    };
    let mut client = Seal::new(&secrets, End::Client);
    let mut server = Seal::new(&secrets, End::Server);
    let mut next = 0;
    for vector in list(&file, "sealed") {
        let (name, datagram) = (text(vector, "name"), bytes(text(vector, "hex")));
        let plain = plain(&file, vector);
        let mut room = [0; 2048];
        let number: u64 = text(vector, "number").parse().unwrap();
        assert_eq!(
            server.open(&datagram, &mut room),
            Some(&plain[..]),
            "{name}"
        );
        assert_eq!(server.open(&datagram, &mut room), None, "{name} again");
        // The numbers of a direction count from 0.
        if number == next {
            let mut written = vec![0; plain.len() + OVERHEAD];
            client.seal(&mut written, |out| out.copy_from_slice(&plain));
            assert_eq!(hex(&written), hex(&datagram), "{name}");
            next += 1;
        }
    }
    assert!(next > 7);
}

/// The tables of the page.
fn tables() -> String {
    let file = vectors();
    let mut out = String::from("| name | what it is | bytes |\n|---|---|---|\n");
    for v in list(&file, "valid") {
        writeln!(
            out,
            "| `{}` | {} | {} |",
            text(v, "name"),
            text(v, "about"),
            cell(v)
        )
        .unwrap();
    }
    let key = text(&file, "sealed_key");
    writeln!(
        out,
        "\nEncrypted under the key `{key}`:\n\n| name | what it is | number | bytes |\n|---|---|---:|---|"
    )
    .unwrap();
    for v in list(&file, "sealed") {
        writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            text(v, "name"),
            text(v, "about"),
            text(v, "number"),
            cell(v)
        )
        .unwrap();
    }
    out.push_str("\nNot valid:\n\n| name | what is wrong | error | bytes |\n|---|---|---|---|\n");
    for v in list(&file, "invalid") {
        writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            text(v, "name"),
            text(v, "about"),
            text(v, "error"),
            cell(v)
        )
        .unwrap();
    }
    out
}

/// `UPDATE_DOCS=1 cargo test -p fullpipe-net` writes them anew.
#[test]
fn the_page_shows_the_vectors() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect(BEGIN);
    let (shown, after) = rest.split_once(END).expect(END);
    let wanted = format!("\n\n{}\n", tables());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        shown, wanted,
        "docs/wire.md does not show the vectors: run this test with UPDATE_DOCS=1"
    );
}

const BEGIN: &str = "<!-- vectors: made from crates/net/tests/vectors/wire-v2.json -->";
const END: &str = "<!-- end of vectors -->";
