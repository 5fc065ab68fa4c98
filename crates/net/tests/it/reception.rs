//! Clients that acknowledge what they have not received: what a server sends to their address.

use std::time::{Duration, Instant};

use fullpipe_flow::{Ack, Receiver, ReceiverConfig, SackBlocks};
use fullpipe_net::session::control::{ClientMessage, ServerMessage};
use fullpipe_net::session::limits::Limits;
use fullpipe_net::wire::reception::Heard;
use fullpipe_net::wire::{AckDatagram, DataDatagram, Header, Kind};
use fullpipe_units::{Span, Time};

use crate::attack::Dice;
use crate::hostile::{Raw, ask_for, encoded};
use crate::session::{Running, flow, key, spec};

/// What a client does once the flow's handshake is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Reads, and acknowledges what it has read.
    Honest,
    /// Reads nothing, and acknowledges a segment more every millisecond: never more than was sent,
    /// for the window is ten at first.
    Blind,
    /// The same, by SACK blocks above a hole.
    BlindWithBlocks,
}

/// Bytes that the server has sent after two seconds.
fn sent_to(client: Client) -> u64 {
    let server = Running::start(key("k"), Limits::default());
    let mut dice = Dice(21);
    let request = encoded(spec(10_000, vec![flow("down", None, true)]));
    let asked = ask_for(&request);
    let mut raw = Raw::open(server.address, &key("k"), asked, &mut dice).unwrap();
    let verdict = raw.verdict(&request);
    assert!(matches!(verdict, ServerMessage::Granted(_)), "{verdict:?}");
    raw.say(&ClientMessage::Start);
    let session = raw.secrets.session;
    let ack = |ack, proof| {
        let datagram = AckDatagram {
            session,
            flow: 0,
            ack,
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
            proof,
        };
        let mut out = vec![0; datagram.bytes()];
        datagram.encode(&mut out);
        out
    };
    let mut receiver = Receiver::new(ReceiverConfig::preset(fullpipe_flow::Preset::Y2026));
    let (mut heard, mut buffer) = (Heard::default(), [0; 2048]);
    let patience = Duration::from_millis(1);
    raw.udp.set_read_timeout(Some(patience)).unwrap();
    let (begin, mut alive, mut open, mut turns) = (Instant::now(), 0, false, 0u64);
    let mut echo = Time::ZERO;
    while begin.elapsed() < Duration::from_secs(2) {
        if begin.elapsed() > Duration::from_millis(500) * alive {
            raw.say(&ClientMessage::Alive);
            alive += 1;
        }
        if open && client != Client::Honest {
            // The first segments are given time to leave.
            std::thread::sleep(patience.max(Duration::from_millis(200 * u64::from(turns == 0))));
            turns += 1;
            let mut claim = Ack {
                cum: turns,
                syn: false,
                echo,
                stamp_ms: 0,
                one_way: None,
                sacks: SackBlocks::default(),
                dsack: false,
                ece: false,
                window_end: u64::MAX,
            };
            if client == Client::BlindWithBlocks {
                let (start, end) = (1, 1 + turns);
                claim.cum = 0;
                claim.sacks.push(fullpipe_flow::Range { start, end });
            }
            raw.send(&ack(claim, dice.next() as u32));
            continue;
        }
        let Ok(n) = raw.udp.recv(&mut buffer) else {
            continue;
        };
        let header = Header::decode(&buffer[..n]).unwrap();
        if header.kind != Kind::Data {
            continue;
        }
        let datagram = DataDatagram::decode(&header, &buffer[..n]).unwrap();
        let now = Time::ZERO + Span::from_secs_f64(begin.elapsed().as_secs_f64());
        let before = receiver.counts().delivered;
        let answer = receiver.handle_segment(now, &datagram.segment);
        if receiver.counts().delivered > before {
            heard.take(datagram.segment.seq, datagram.nonce);
        }
        echo = datagram.segment.stamp;
        open |= datagram.segment.syn;
        if let Some(answer) = answer {
            raw.send(&ack(answer, heard.proof(&answer)));
        }
    }
    raw.udp
        .set_read_timeout(Some(Duration::from_secs(2)))
        .unwrap();
    raw.say(&ClientMessage::Alive);
    loop {
        match raw.hear().expect("alive") {
            ServerMessage::Alive { sent, .. } if begin.elapsed() > Duration::from_secs(2) => {
                return sent;
            }
            _ => {}
        }
    }
}

/// Ten segments at the start, and a few that timeouts send: less than 40 packets, whatever is
/// acknowledged; and a client that reads gets a thousand times as much.
#[test]
fn what_was_not_received_cannot_be_acknowledged() {
    let honest = sent_to(Client::Honest);
    assert!(honest > 1_000_000, "{honest}");
    for blind in [Client::Blind, Client::BlindWithBlocks] {
        let sent = sent_to(blind);
        assert!(sent < 40 * 1500, "{sent}");
    }
}
