//! Every control message, written by hand from the tables of `docs/wire.md`, "Control messages",
//! "Files" and "Copies of several files", beside what this program writes and reads.

use fullpipe_net::content::{Answer, Found, Held, Question};
use fullpipe_net::file::{Identity, Item, LeftOut};
use fullpipe_net::payload::Tally;
use fullpipe_net::session::control::{ClientMessage, EndReason, Grant, ServerMessage};
use fullpipe_units::{Bytes, Rate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// `u16`, `u32`, `u64`, and the number of a choice.
fn n(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 128 {
        out.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Bytes and text.
fn t(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [&n(bytes.len() as u64), bytes].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    [n(items.len() as u64), items.concat()].concat()
}

fn some(field: Vec<u8>) -> Vec<u8> {
    [vec![1], field].concat()
}

/// The message is these fields, in either direction, and nothing shorter or longer is it.
fn is<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T, fields: &[Vec<u8>]) {
    let bytes = fields.concat();
    assert_eq!(postcard::to_stdvec(message).unwrap(), bytes, "{message:?}");
    assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), message);
    for end in 0..bytes.len() {
        assert!(postcard::from_bytes::<T>(&bytes[..end]).is_err(), "{end}");
    }
}

const DIGEST: [u8; 32] = [0xd1; 32];
const LARGE: u64 = 1 << 63 | 5;
/// Alone in its field it takes two bytes.
const MODE: u16 = 0o640;

fn digest() -> Vec<u8> {
    DIGEST.to_vec()
}

#[test]
fn a_clients_messages_are_those_of_the_page() {
    use ClientMessage as C;
    let bytes = vec![9; 1100];
    let part = C::Part {
        at: 300,
        bytes: bytes.clone(),
    };
    is(&part, &[n(0), n(300), t(&bytes)]);
    is(&C::Start, &[n(1)]);
    is(&C::Alive, &[n(2)]);
    is(&C::Stop, &[n(3)]);
    is(
        &C::Ask {
            from: 128,
            many: 32,
        },
        &[n(4), n(128), n(32)],
    );
    let content = C::Content {
        number: 70_000,
        question: Question::From(LARGE),
    };
    is(&content, &[n(5), n(70_000), n(1), n(LARGE)]);
    is(&C::Close, &[n(6)]);
    is(
        &C::Path([1, 2, 3, 4, 5, 6, 7, 200]),
        &[n(7), vec![1, 2, 3, 4, 5, 6, 7, 200]],
    );
    let probe = C::Probe {
        number: u32::MAX,
        padding: vec![0; 200],
    };
    is(&probe, &[n(8), n(u32::MAX.into()), t([0; 200])]);
    is(&C::Probed(3), &[n(9), n(3)]);
}

#[test]
fn a_servers_messages_are_those_of_the_page() {
    use ServerMessage as S;
    is(&S::Have { at: 7 }, &[n(0), n(7)]);
    let granted = S::Granted(Grant {
        max_rate: Some(Rate::from_bits_per_sec(5_000_000_000)),
        max_bytes: None,
        notes: vec!["ä".to_owned(), String::new()],
    });
    let notes = list(&[t("ä"), t("")]);
    is(&granted, &[n(1), some(n(5_000_000_000)), n(0), notes]);
    let granted = S::Granted(Grant {
        max_bytes: Some(Bytes(1 << 40)),
        ..Grant::default()
    });
    is(&granted, &[n(1), n(0), some(n(1 << 40)), n(0)]);
    is(&S::Refused("no".to_owned()), &[n(2), t("no")]);
    let alive = S::Alive {
        received: 1 << 35,
        sent: 2,
        complete: true,
    };
    is(&alive, &[n(3), n(1 << 35), n(2), vec![1]]);
    for (number, why) in [
        (0, EndReason::Over),
        (1, EndReason::Stopped),
        (2, EndReason::Bytes),
        (3, EndReason::Rate),
        (4, EndReason::Vanished),
        (5, EndReason::Superseded),
        (6, EndReason::ShuttingDown),
        (7, EndReason::Failed),
    ] {
        let ended = S::Ended {
            why,
            length: 1101,
            digest: DIGEST,
        };
        is(&ended, &[n(4), n(number), n(1101), digest()]);
    }
    let part = S::Part {
        at: 1,
        bytes: vec![5],
    };
    is(&part, &[n(5), n(1), t([5])]);
    let content = S::Content {
        number: 2,
        answer: Answer::Busy,
    };
    is(&content, &[n(6), n(2), n(0)]);
    is(&S::Closed, &[n(7)]);
    is(&S::Challenge([255; 8]), &[n(8), vec![255; 8]]);
    let probe = S::Probe {
        number: 1,
        padding: vec![0; 1500],
    };
    is(&probe, &[n(9), n(1), t([0; 1500])]);
    is(&S::Probed(129), &[n(10), n(129)]);
}

#[test]
fn questions_are_those_of_the_page() {
    use Question as Q;
    let spans = vec![(0, 65_536), (131_072, LARGE)];
    let ranges = list(&[[n(0), n(65_536)].concat(), [n(131_072), n(LARGE)].concat()]);
    is(&Q::Prepared, &[n(0)]);
    is(&Q::From(0), &[n(1), n(0)]);
    let have = Q::Have {
        prefix: 1000,
        digest: DIGEST,
    };
    is(&have, &[n(2), n(1000), digest()]);
    is(&Q::Verdict(DIGEST), &[n(3), digest()]);
    is(&Q::Tally(3), &[n(4), n(3)]);
    is(&Q::Items(1), &[n(5), n(1)]);
    is(&Q::Found(200), &[n(6), n(200)]);
    let held = Held {
        file: 4,
        spans: spans.clone(),
        digest: DIGEST,
    };
    let here = [n(4), ranges.clone(), digest()].concat();
    is(&Q::Here(vec![held]), &[n(7), list(&[here])]);
    let tree = Q::Tree {
        file: 1,
        from: 2,
        to: 4096,
    };
    is(&tree, &[n(8), n(1), n(2), n(4096)]);
    let plan = vec![(0, None), (1, Some(vec![])), (300, Some(spans.clone()))];
    let orders = list(&[
        [n(0), n(0)].concat(),
        [n(1), some(list(&[]))].concat(),
        [n(300), some(ranges.clone())].concat(),
    ]);
    is(&Q::Plan(plan), &[n(9), orders]);
    is(&Q::Ready(LARGE), &[n(10), n(LARGE)]);
    is(&Q::Roots(32), &[n(11), n(32)]);
    let damaged = list(&[[n(5), ranges].concat()]);
    is(&Q::Damaged(vec![(5, spans)]), &[n(12), damaged]);
    is(&Q::Publish(DIGEST), &[n(13), digest()]);
    is(&Q::LeftOut(6), &[n(14), n(6)]);
}

#[test]
fn answers_are_those_of_the_page() {
    use Answer as A;
    let source = Identity {
        size: 1 << 33,
        changed: 1_700_000_000_123_456_789,
    };
    let about = [n(1 << 33), n(1_700_000_000_123_456_789)].concat();
    is(&A::Busy, &[n(0)]);
    is(&A::Failed("why".to_owned()), &[n(1), t("why")]);
    let prepared = A::Prepared {
        source,
        mode: MODE,
        prefix: 77,
        digest: DIGEST,
    };
    let mode = n(MODE.into());
    is(
        &prepared,
        &[n(2), about.clone(), mode.clone(), n(77), digest()],
    );
    is(&A::From(500), &[n(3), n(500)]);
    is(&A::Published, &[n(4)]);
    is(&A::Digest(DIGEST), &[n(5), digest()]);
    let tally = A::Tally {
        tally: Tally {
            segments: 1,
            bytes: 2,
            sum: LARGE,
        },
        damaged: 4,
    };
    is(&tally, &[n(6), n(1), n(2), n(LARGE), n(4)]);
    is(&A::Nonsense, &[n(7)]);
    let item = |name: &str, source| Item {
        name: name.to_owned(),
        source,
        mode: MODE,
    };
    let items = A::Items {
        items: vec![item("d", None), item("d/f", Some(source))],
        all: 1000,
        left_out: 9,
    };
    let entries = list(&[
        [t("d"), n(0), mode.clone()].concat(),
        [t("d/f"), some(about), mode].concat(),
    ]);
    is(&items, &[n(8), entries, n(1000), n(9)]);
    let part = Found::Part {
        spans: vec![(0, 5)],
        digest: DIGEST,
    };
    let found = A::Found {
        found: vec![
            (3, part),
            (4, Found::Whole(DIGEST)),
            (500, Found::Refused("no".to_owned())),
        ],
        next: 501,
    };
    let entries = list(&[
        [n(3), n(0), list(&[[n(0), n(5)].concat()]), digest()].concat(),
        [n(4), n(1), digest()].concat(),
        [n(500), n(2), t("no")].concat(),
    ]);
    is(&found, &[n(9), entries, n(501)]);
    is(&A::Differ(vec![1, 300]), &[n(10), list(&[n(1), n(300)])]);
    is(
        &A::Tree(vec![DIGEST; 2]),
        &[n(11), list(&[digest(), digest()])],
    );
    is(&A::Noted, &[n(12)]);
    is(&A::Ready, &[n(13)]);
    is(&A::Roots(vec![DIGEST]), &[n(14), list(&[digest()])]);
    let named = A::Named {
        same: true,
        failed: vec![(2, "why".to_owned())],
        all: 200,
    };
    let failed = list(&[[n(2), t("why")].concat()]);
    is(&named, &[n(15), vec![1], failed, n(200)]);
    let left_out = A::LeftOut(vec![LeftOut {
        name: "link".to_owned(),
        why: "a symbolic link".to_owned(),
        is_missed: false,
    }]);
    let entry = [t("link"), t("a symbolic link"), vec![0]].concat();
    is(&left_out, &[n(16), list(&[entry])]);
}
