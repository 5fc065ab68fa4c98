//! Whoever holds the key may still say anything: bodies of control messages to both sides of a
//! session, requests, results. Nothing panics, no queue grows without end, and what is answered can
//! be read.
#![no_main]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_fuzz::{Raw, Script};
use fullpipe_host::{HostOutcome, ReceiverReport, SenderReport};
use fullpipe_net::content::{Allowed, Carried, Content, Question};
use fullpipe_net::headers;
use fullpipe_net::session::channel::Channel;
use fullpipe_net::session::client::{Done, Report};
use fullpipe_net::session::client_session::ClientSession;
use fullpipe_net::session::control::{
    ClientMessage, EndReason, MOST_FLOWS, PART, ServerMessage,
};
use fullpipe_net::session::control_port::{ControlChannel, Traffic};
use fullpipe_net::session::cookie::{COOKIE, Cookie};
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::message::{Ask, ENCRYPT, Nonce, OPEN_BYTES, Open};
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::seal::End;
use fullpipe_net::session::server_session::{ServerSession, SessionState};
use fullpipe_net::session::shaper::Shaper;
use fullpipe_net::session::{Directions, Secrets};
use fullpipe_net::wire::SessionId;
use fullpipe_realtime::live::{Live, LiveFlow, LiveRun};
use fullpipe_run::{FlowSpec, FlowTotals, RunSpec};
use fullpipe_units::{Bytes, Rate, Span, Time};
use libfuzzer_sys::fuzz_target;

/// Answers that may wait, and bytes of the longest.
const MOST_ANSWERS: usize = 128;
const LONGEST: usize = 1300;
/// Results that a client begins to fetch, and bytes of the longest: more than it asks for at once.
const MOST_FETCHES: u32 = 4;
const LONGEST_RESULT: u32 = 1 << 18;

fn flow(name: &str, reverse: bool) -> FlowSpec {
    let stack = StackSpec::parse("reno").expect("a stack");
    let sender = SenderConfig::preset(Preset::Y2026, 1500);
    let receiver = ReceiverConfig::preset(Preset::Y2026);
    FlowSpec {
        reverse,
        ..FlowSpec::new(name, stack, sender, receiver, vec![], vec![])
    }
}

fn spec() -> RunSpec {
    RunSpec {
        duration: Span::from_secs(10),
        flows: vec![flow("up", false), flow("down", true)],
        ..RunSpec::default()
    }
}

fn limits() -> Limits {
    Limits {
        max_rate: Some(Rate::from_bits_per_sec(10_000_000)),
        max_bytes: Some(Bytes(1_000_000)),
        max_window: 4096,
        max_flows: 8,
        ..Limits::default()
    }
}

/// The keys of a session that is open; they need not come from a handshake.
fn secrets() -> Secrets {
    Secrets {
        session: SessionId(7),
        keys: Directions {
            up: [1; 32],
            down: [2; 32],
        },
    }
}

fn open(request: &[u8], options: u8) -> (Open, Ask) {
    let ask = Ask {
        kind: 1,
        options,
        length: request.len() as u32,
        digest: *blake3::hash(request).as_bytes(),
    };
    let open = Open {
        nonce: Nonce([1; 16]),
        cookie: Cookie([2; COOKIE]),
        bytes: [3; OPEN_BYTES],
    };
    (open, ask)
}

/// A server, and a client that has the key.
fn server(script: &mut Script<'_>) {
    let how = script.byte();
    let options = Options {
        until_complete: how & 1 != 0,
        encrypted: how & 2 != 0,
        content: match how & 4 {
            0 => Content::Nothing,
            _ => Content::Pattern { key: 7 },
        },
        ..Options::default()
    };
    let request = Request {
        spec: spec(),
        options,
    };
    let request = match how & 8 {
        0 => request.encode().expect("short"),
        _ => script.body().to_vec(),
    };
    let (open, ask) = open(&request, if how & 2 == 0 { 0 } else { ENCRYPT });
    let (secrets, accept) = (secrets(), vec![4; 84]);
    let from = "192.0.2.1:1000".parse().expect("an address");
    let mut now = Time::ZERO;
    let shut = Arc::default();
    let mut serving = ServerSession::new(
        now,
        (from, &open, ask),
        accept.clone(),
        &secrets,
        Arc::new(limits()),
        Allowed::default(),
        Arc::clone(&shut),
    );
    let mut client = Channel::new(&secrets, End::Client);
    let mut traffic = Traffic::default();
    while let Some(step) = script.step() {
        match step % 8 {
            0..=2 => {
                let body = script.body();
                hear(&mut serving, now, client.seal(&Raw(body)));
            }
            3 => {
                for (at, bytes) in (0..).zip(request.chunks(PART)) {
                    let bytes = bytes.to_vec();
                    hear(
                        &mut serving,
                        now,
                        client.seal(&ClientMessage::Part { at, bytes }),
                    );
                }
            }
            4 => now = now + Span::from_micros(u64::from(script.byte()) << (step >> 3)),
            5 => {
                traffic.received += u64::from(script.byte()) << (step >> 3);
                traffic.sent += u64::from(script.byte());
                if step & 8 != 0 {
                    serving.complete().store(true, Ordering::Release);
                }
                let running = serving.at() == SessionState::Running;
                assert!(serving.is_over(now, &traffic) || running);
            }
            6 if serving.at() == SessionState::Running => {
                let mut spec = spec();
                let _ = serving.begin_content(&mut spec);
                serving.end_content(Carried::default());
                let result = vec![7; usize::from(script.byte()) * 100];
                serving.end(now, result, step & 8 != 0);
            }
            6 => hear(&mut serving, now, Some(script.body().to_vec())),
            _ => hear(&mut serving, now, Some(open.bytes.to_vec())),
        }
        if serving.is_abandoned(now) {
            return;
        }
        let mut said = 0;
        while let Some(datagram) = serving.poll_transmit(now) {
            assert!(datagram.len() <= LONGEST);
            assert!(datagram == accept || client.open::<ServerMessage>(&datagram).is_some());
            said += 1;
        }
        assert!(said <= MOST_ANSWERS + 1, "{said} answers");
        assert!(serving.next_timeout() == Time::MAX);
    }
}

fn hear(talk: &mut impl ControlChannel, now: Time, datagram: Option<Vec<u8>>) {
    if let Some(datagram) = datagram {
        talk.on_datagram(now, &datagram);
    }
}

/// A client, and a server that has the key.
fn client(script: &mut Script<'_>) {
    let how = script.byte();
    let request = vec![3; usize::from(how) * 100];
    let secrets = secrets();
    let mut now = Time::ZERO;
    let mut asking = ClientSession::new(now, &secrets, request, how & 1 != 0);
    if how & 2 != 0 {
        asking.watch_flows(Span::ZERO);
    }
    let mut server = Channel::new(&secrets, End::Server);
    let mut fetches = MOST_FETCHES;
    let live = Live::default();
    live.begin(LiveRun::new(&spec()));
    live.publish(now, [LiveFlow::default(); 2].into_iter());
    while let Some(step) = script.step() {
        match step % 8 {
            0..=3 => {
                let body = script.body();
                hear(&mut asking, now, server.seal(&Raw(body)));
            }
            4 => now = now + Span::from_micros(u64::from(script.byte()) << (step >> 3)),
            5 => {
                if let Ok(question) = postcard::from_bytes::<Question>(script.body()) {
                    asking.ask(now, &question);
                }
            }
            6 => match step >> 3 & 3 {
                0 => asking.start(now),
                1 => asking.stop(now),
                2 => asking.close(now),
                _ => asking.complete().store(true, Ordering::Release),
            },
            _ => {
                // Each takes memory for the whole result: many would last seconds.
                let ended = asking.ended().filter(|e| fetches > 0 && e.length <= LONGEST_RESULT);
                if let Some(ended) = ended {
                    fetches -= 1;
                    let _ = asking.fetch(now, &ended);
                }
            }
        }
        let mut said = 0;
        while let Some(datagram) = asking.poll_transmit(now) {
            assert!(datagram.len() <= LONGEST);
            assert!(server.open::<ClientMessage>(&datagram).is_some());
            said += 1;
            assert!(said <= MOST_ANSWERS, "it does not stop talking");
        }
        if let Some(Ok(grant)) = asking.decision() {
            assert!(
                grant.notes.len() <= 16 && grant.notes.iter().all(|n| n.chars().count() <= 400)
            );
            if let Some(rate) = grant.max_rate {
                let _ = Shaper::new(rate, now);
            }
        }
        let told = asking.take_flows();
        assert!(told.len() <= MOST_FLOWS);
        for state in told {
            live.told(state.flow, state.live());
        }
        let _ = (
            live.latest(),
            asking.take_answer(),
            asking.is_over(now, &Traffic::default()),
        );
        if let Some(Ok(bytes)) = asking.result() {
            merge(&bytes);
        }
        if asking.is_closed() && step == 0xff {
            return;
        }
    }
}

/// A request that anybody wrote: what is accepted can be sent again as it is, and what is granted
/// is within the limits.
fn request(bytes: &[u8]) {
    let Ok(request) = Request::decode(bytes) else {
        return;
    };
    let again = request.encode().expect("it came in");
    assert!(Request::decode(&again).is_ok());
    let limits = limits();
    if let Ok((spec, grant)) = limits.grant(request.spec, &request.options.content) {
        let all = spec.flows.len() + spec.arrivals.len() + spec.cross.len();
        assert!(all <= limits.max_flows as usize && spec.duration <= limits.max_duration);
        assert_eq!(grant.max_rate, limits.max_rate);
        let _ = headers::longest(&spec);
    }
}

/// A result that anybody wrote fits the run, or is refused.
fn merge(bytes: &[u8]) {
    let Ok(Report {
        outcome,
        error: None,
    }) = postcard::from_bytes::<Report>(bytes)
    else {
        return;
    };
    let near = HostOutcome {
        senders: vec![SenderReport {
            flow: 0,
            totals: FlowTotals::default(),
            offered: 10,
            acked: 3,
            record: Default::default(),
            started: Time::ZERO,
            completed: None,
        }],
        receivers: vec![ReceiverReport {
            flow: 1,
            totals: FlowTotals::default(),
            arrived: 5,
            not_taken: 0,
            arrivals: Default::default(),
        }],
        ..HostOutcome::default()
    };
    let done = Done {
        near,
        far: Some(outcome),
        why: EndReason::Over,
        cut: None,
        notes: Vec::new(),
    };
    if let Ok(outcome) = done.merge(&spec()) {
        assert_eq!(outcome.flows.len(), 2);
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else {
        return;
    };
    match mode % 4 {
        0 => server(&mut Script(rest)),
        1 => client(&mut Script(rest)),
        2 => request(rest),
        _ => merge(rest),
    }
});
