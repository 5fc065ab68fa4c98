//! The Wireshark dissector, `contrib/wireshark/fullpipe.lua`, reads the test vectors as we do.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::vectors::{bytes, list, plain, text, vectors};

/// A port that the dissector knows, and one where it has to recognise a datagram by what is in it.
const PORT: u16 = 6220;
const OTHER_PORT: u16 = 40_001;

/// What is asked of tshark, and how the file of vectors spells it.
const FIELDS: &[(&str, &str)] = &[
    ("fullpipe.session", "session"),
    ("fullpipe.flow", "flow"),
    ("fullpipe.seq", "seq"),
    ("fullpipe.number", "number"),
    ("fullpipe.syn", "syn"),
    ("fullpipe.retransmission", "retransmission"),
    ("fullpipe.cwr", "cwr"),
    ("fullpipe.push", "push"),
    ("fullpipe.stamp", "stamp_us"),
    ("fullpipe.payload", "payload"),
    ("fullpipe.padding", "padding"),
    ("fullpipe.cum", "cum"),
    ("fullpipe.dsack", "dsack"),
    ("fullpipe.ece", "ece"),
    ("fullpipe.window", "window"),
    ("fullpipe.echo", "echo_us"),
    ("fullpipe.hold", "hold_us"),
    ("fullpipe.receiver_stamp", "stamp_ms"),
    ("fullpipe.ce", "ce"),
    ("fullpipe.ect", "ect"),
    ("fullpipe.nonce", "nonce"),
    ("fullpipe.proof", "proof"),
    ("fullpipe.segment.nonce", "bits"),
    ("fullpipe.cookie", "cookie"),
    ("fullpipe.reason", "reason"),
    ("fullpipe.server", "server"),
    ("fullpipe.ephemeral", "ephemeral"),
    ("fullpipe.ciphertext", "ciphertext"),
    ("fullpipe.tag", "tag"),
    ("fullpipe.piece", "piece"),
    ("fullpipe.piece.index", "index"),
    ("fullpipe.piece.count", "count"),
    ("fullpipe.whole", "whole"),
    ("fullpipe.part", "part"),
    ("fullpipe.sack.start", "sack.0"),
    ("fullpipe.sack.end", "sack.1"),
];

#[test]
fn tshark_shows_what_the_vectors_say() {
    if skip() {
        return;
    }
    let file = vectors();
    let valid = list(&file, "valid");
    let payloads: Vec<_> = valid.iter().map(|v| bytes(text(v, "hex"))).collect();
    let dir = tempfile::tempdir().unwrap();
    let capture = write(dir.path(), &payloads, PORT);
    let mut asked = vec!["fullpipe.kind", "_ws.expert.severity", "_ws.malformed"];
    asked.extend(FIELDS.iter().map(|(field, _)| field));
    let rows = tshark(&capture, &asked);
    assert_eq!(rows.len(), valid.len());
    for (vector, row) in valid.iter().zip(rows) {
        let name = text(vector, "name");
        assert_eq!(kind(&row[0]), text(vector, "kind"), "{name}");
        assert!(
            !row[1].contains(ERROR) && row[2].is_empty(),
            "{name}: {row:?}"
        );
        for ((field, key), shown) in FIELDS.iter().zip(&row[3..]) {
            assert_eq!(*shown, expected(&vector["fields"], key), "{name}: {field}");
        }
    }
}

#[test]
fn tshark_shows_what_is_in_clear_of_sealed_datagrams() {
    if skip() {
        return;
    }
    let file = vectors();
    let sealed = list(&file, "sealed");
    let payloads: Vec<_> = sealed.iter().map(|v| bytes(text(v, "hex"))).collect();
    let dir = tempfile::tempdir().unwrap();
    let fields = [
        "fullpipe.kind",
        "fullpipe.flow",
        "fullpipe.number",
        "fullpipe.syn",
        "fullpipe.retransmission",
        "fullpipe.sack.count",
        "fullpipe.ciphertext",
        "fullpipe.tag",
        "_ws.expert.severity",
    ];
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    // Recognised by what can be told of it.
    for port in [PORT, OTHER_PORT] {
        let capture = write(dir.path(), &payloads, port);
        let rows = tshark(&capture, &fields);
        assert_eq!(rows.len(), sealed.len());
        for ((vector, datagram), row) in sealed.iter().zip(&payloads).zip(rows) {
            let (plain, name) = (plain(&file, vector), text(vector, "name"));
            let (kind, tag) = (plain[0] & 15, datagram.len() - 16);
            let bit = |of: u8, bit: u8| match kind == of {
                true => (plain[1] >> bit & 1).to_string(),
                false => String::new(),
            };
            let syn = if kind == 9 { bit(9, 0) } else { bit(8, 0) };
            let blocks = match kind {
                9 => (plain[1] >> 4).to_string(),
                _ => String::new(),
            };
            let expected = [
                kind.to_string(),
                u16::from_be_bytes([plain[2], plain[3]]).to_string(),
                text(vector, "number").to_owned(),
                syn,
                bit(8, 1),
                blocks,
                hex(&datagram[20..tag]),
                hex(&datagram[tag..]),
                String::new(),
            ];
            assert_eq!(row, expected, "{name}");
        }
    }
    // One byte less is no longer one, where the length can be told.
    let shorter: Vec<_> = (sealed.iter().zip(&payloads))
        .filter(|(v, _)| ["syn", "ack", "ack-sack"].contains(&text(v, "plain")))
        .map(|(_, bytes)| bytes[..bytes.len() - 1].to_vec())
        .collect();
    let capture = write(dir.path(), &shorter, PORT);
    let rows = tshark(&capture, &["fullpipe.malformed"]);
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| !row[0].is_empty()), "{rows:?}");
}

#[test]
fn tshark_calls_malformed_what_we_refuse() {
    if skip() {
        return;
    }
    let file = vectors();
    // UDP without payload never reaches a dissector.
    let invalid = list(&file, "invalid")
        .iter()
        .filter(|v| !text(v, "hex").is_empty());
    let invalid: Vec<_> = invalid.collect();
    let payloads: Vec<_> = invalid.iter().map(|v| bytes(text(v, "hex"))).collect();
    let dir = tempfile::tempdir().unwrap();
    let capture = write(dir.path(), &payloads, PORT);
    let experts = [
        "fullpipe.truncated",
        "fullpipe.version.unknown",
        "fullpipe.malformed",
    ];
    let rows = tshark(&capture, &experts);
    assert_eq!(rows.len(), invalid.len());
    for (vector, row) in invalid.iter().zip(rows) {
        let error = match text(vector, "error") {
            "truncated" => 0,
            "version" => 1,
            _ => 2,
        };
        for (i, shown) in row.iter().enumerate() {
            assert_eq!(
                !shown.is_empty(),
                i == error,
                "{}: {row:?}",
                text(vector, "name")
            );
        }
    }
    // Nothing of it is taken for ours where only its content could tell.
    let capture = write(dir.path(), &payloads, OTHER_PORT);
    for (vector, row) in invalid.iter().zip(tshark(&capture, &["fullpipe.version"])) {
        assert_eq!(row, [""], "{}", text(vector, "name"));
    }
}

#[test]
fn tshark_recognises_datagrams_by_their_content() {
    if skip() {
        return;
    }
    let file = vectors();
    let payloads: Vec<_> = list(&file, "valid")
        .iter()
        .map(|v| bytes(text(v, "hex")))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let capture = write(dir.path(), &payloads, OTHER_PORT);
    let rows = tshark(&capture, &["fullpipe.session"]);
    assert_eq!(rows.len(), payloads.len());
    assert!(rows.iter().all(|row| !row[0].is_empty()));
}

/// What segmentation offload leaves of several datagrams in a capture on loopback, the last one
/// shorter or not.
#[test]
fn tshark_splits_trains() {
    if skip() {
        return;
    }
    let file = vectors();
    let of = |list_name: &str, name: &str| {
        let vector = list(&file, list_name)
            .iter()
            .find(|v| text(v, "name") == name);
        bytes(text(vector.unwrap(), "hex"))
    };
    let (data, ack) = (of("valid", "data"), of("valid", "ack"));
    let cut = &data[..data.len() - 1];
    let trains = [
        [&data[..], &data, &data].concat(),
        [&data[..], &data, cut].concat(),
        [&ack[..], &ack, &ack].concat(),
    ];
    let dir = tempfile::tempdir().unwrap();
    let fields = ["fullpipe.kind", "fullpipe.malformed"];
    for port in [PORT, OTHER_PORT] {
        let capture = write(dir.path(), &trains, port);
        let kinds: Vec<_> = tshark(&capture, &fields);
        assert_eq!(kinds, [["8,8,8", ""], ["8,8,8", ""], ["9,9,9", ""]]);
    }
    // A train whose last datagram is an ACK with a byte too few.
    let broken = [[&ack[..], &ack[..ack.len() - 1]].concat()];
    let capture = write(dir.path(), &broken, PORT);
    let rows = tshark(&capture, &["fullpipe.truncated"]);
    assert_eq!(rows.len(), 1);
    assert!(!rows[0][0].is_empty(), "{rows:?}");
}

/// A value as tshark prints it.
fn expected(fields: &Value, key: &str) -> String {
    let (key, half) = match key.split_once('.') {
        Some((key, half)) => (key, half.parse().ok()),
        None => (key, None::<usize>),
    };
    match &fields[key] {
        // A window without a limit, as it is on the wire.
        Value::Null if key == "window" && fields.get(key).is_some() => u32::MAX.to_string(),
        // Handshakes have neither in their fields, and zeros in their header.
        Value::Null if key == "session" => format!("0x{:016x}", 0),
        Value::Null if key == "flow" => "0".to_owned(),
        // The number of a reason is another field.
        _ if key == "number" && fields.get("reason").is_some() => String::new(),
        Value::Null => String::new(),
        Value::Bool(set) => u8::from(*set).to_string(),
        Value::String(session) if key == "session" => format!("0x{session}"),
        Value::String(s) => s.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .map(|block| block[half.unwrap()].as_str().unwrap())
            .collect::<Vec<_>>()
            .join(","),
        other => other.to_string(),
    }
}

fn kind(shown: &str) -> &'static str {
    match shown {
        "0" => "hello",
        "1" => "cookie",
        "2" => "open",
        "3" => "accept",
        "4" => "refuse",
        "5" => "control",
        "8" => "data",
        "9" => "ack",
        "10" => "datagram",
        "11" => "ping",
        "12" => "pong",
        "13" => "piece",
        _ => "?",
    }
}

/// Severity of an error (`PI_ERROR`).
const ERROR: &str = "8388608";

fn skip() -> bool {
    let missing = Command::new("tshark").arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: tshark is not installed");
    }
    missing
}

/// What tshark prints for each packet: one text for each field.
fn tshark(capture: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib/wireshark/fullpipe.lua");
    let script = format!("lua_script:{}", script.display());
    let mut command = Command::new("tshark");
    command.args(["-X", &script, "-r"]).arg(capture);
    command.args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!words.to_lowercase().contains("lua"), "{words}");
    let booleans = |s: &str| match s {
        "True" => "1".to_owned(),
        "False" => "0".to_owned(),
        other => other.to_owned(),
    };
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.split('\t').map(booleans).collect())
        .collect()
}

/// A capture of raw IPv4 packets (libpcap's `pcap-savefile`, link type 101), each payload in a UDP
/// datagram of its own conversation, so that one does not decide about the next.
fn write(dir: &Path, payloads: &[Vec<u8>], port: u16) -> PathBuf {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 101] {
        out.extend(word.to_le_bytes());
    }
    for (i, payload) in payloads.iter().enumerate() {
        let udp = 8 + payload.len() as u16;
        let ip = 20 + udp;
        for word in [i as u32, 0, u32::from(ip), u32::from(ip)] {
            out.extend(word.to_le_bytes());
        }
        out.extend([0x45, 0]);
        out.extend(ip.to_be_bytes());
        // No fragment, 64 hops, UDP, no checksum; from 192.0.2.1 to 198.51.100.2.
        out.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
        for word in [50_000 + i as u16, port, udp, 0] {
            out.extend(word.to_be_bytes());
        }
        out.extend(payload);
    }
    let path = dir.join(format!("vectors-{port}.pcap"));
    std::fs::write(&path, out).unwrap();
    path
}
