use fullpipe_realtime::live::LiveFlow;
use fullpipe_units::Span;

use super::super::board::Board;
use super::super::client_session::ClientSession;
use super::super::control::PART;
use super::super::cookie::{COOKIE, Cookie};
use super::super::message::{Nonce, OPEN_BYTES};
use super::super::request::{Options, Request};
use super::super::{Directions, Secrets};
use super::*;
use crate::wire::SessionId;

fn secrets() -> Secrets {
    Secrets {
        session: SessionId(7),
        keys: Directions {
            up: [1; 32],
            down: [2; 32],
        },
    }
}

/// A session that runs, and its client.
fn running(until_complete: bool) -> (ServerSession, ClientSession) {
    let spec = RunSpec {
        duration: Span::from_secs(1),
        ..RunSpec::default()
    };
    let options = Options::default();
    let request = Request { spec, options }.encode().unwrap();
    let ask = Ask {
        kind: 1,
        options: 0,
        length: request.len() as u32,
        digest: *blake3::hash(&request).as_bytes(),
    };
    let open = Open {
        nonce: Nonce([1; 16]),
        cookie: Cookie([2; COOKIE]),
        bytes: [3; OPEN_BYTES],
    };
    let from = "192.0.2.1:1000".parse().unwrap();
    let now = Time::ZERO;
    let mut server = ServerSession::new(
        now,
        (from, &open, ask),
        vec![4; 84],
        &secrets(),
        Arc::default(),
        Allowed::default(),
        Arc::default(),
    );
    let mut client = ClientSession::new(now, &secrets(), request, until_complete);
    pass(now, &mut client, &mut server);
    client.start(now);
    pass(now, &mut client, &mut server);
    assert_eq!(server.at(), SessionState::Running);
    (server, client)
}

/// A session that has run, whose result is `bytes`, and its client, which has not fetched it.
fn ended(bytes: &[u8]) -> (ServerSession, ClientSession) {
    let (mut server, mut client) = running(false);
    let now = Time::ZERO;
    server.end(now, bytes.to_vec(), false);
    client.stop(now);
    pass(now, &mut client, &mut server);
    (server, client)
}

/// What both have to say, until neither has anything.
fn pass(now: Time, client: &mut ClientSession, server: &mut ServerSession) {
    loop {
        let mut any = false;
        while let Some(up) = client.poll_transmit(now) {
            server.on_datagram(now, &up);
            any = true;
        }
        while let Some(down) = server.poll_transmit(now) {
            client.on_datagram(now, &down);
            any = true;
        }
        if !any {
            return;
        }
    }
}

fn result() -> Vec<u8> {
    (0..3_000_000u32).map(|i| (i ^ (i >> 7)) as u8).collect()
}

#[test]
fn a_client_that_hears_gets_a_long_result() {
    let bytes = result();
    let (mut server, mut client) = ended(&bytes);
    let (mut now, told) = (Time::ZERO, client.ended().unwrap());
    client.fetch(now, &told).unwrap();
    let fetched = loop {
        pass(now, &mut client, &mut server);
        if let Some(fetched) = client.result() {
            break fetched.unwrap();
        }
        now += Span::from_millis(20);
    };
    assert!(fetched == bytes);
    assert!(now < Time::ZERO + Span::from_secs(5), "{now}");
}

#[test]
fn an_address_that_hears_nothing_is_not_sent_a_result() {
    let (mut server, _client) = ended(&result());
    let mut blind = Channel::new(&secrets(), End::Client);
    // Beyond those that the client has used.
    for _ in 0..100 {
        blind.seal(&ClientMessage::Alive);
    }
    let (mut said, mut got) = (0, 0);
    for millis in 0..5000 {
        let now = Time::ZERO + Span::from_millis(millis);
        let question = ClientMessage::Ask { from: 0, many: 32 };
        let question = blind.seal(&question).unwrap();
        said += question.len();
        server.on_datagram(now, &question);
        while let Some(answer) = server.poll_transmit(now) {
            got += answer.len();
        }
    }
    assert!(got > 100 * PART, "the credit is given: {got}");
    assert!(got < said + 270_000, "{got} for {said}");
}

/// The end of a run does not make a server that has vanished any younger.
#[test]
fn silence_goes_on_when_the_run_is_over() {
    for heard in [0, 300] {
        let (mut server, mut client) = running(false);
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        pass(at(heard), &mut client, &mut server);
        client.stop(at(6000));
        assert!(!client.is_silent(at(10_000)));
        assert!(client.is_silent(at(10_301)));
    }
    // Nobody listened for a while: what has come meanwhile is still heard.
    let (_, mut client) = running(false);
    let late = Time::ZERO + Span::from_secs(60);
    client.stop(late);
    assert!(!client.is_silent(late + Span::from_millis(900)));
}

/// The client asks, at most ten times a second and for a part of many flows at a time; a server
/// that has nothing to show says nothing, and the session goes on.
#[test]
fn a_client_that_watches_is_told_of_the_server_s_flows() {
    let at = |millis| Time::ZERO + Span::from_millis(millis);
    let (mut server, mut client) = running(false);
    pass(at(0), &mut client, &mut server);
    client.watch_flows(Span::ZERO);
    pass(at(1), &mut client, &mut server);
    assert_eq!(client.take_flows(), [], "no board");
    let board = Board::default();
    let post = board.post(1, "192.0.2.1:1000".parse().unwrap(), "send");
    server.show(post.posted());
    // Every second flow is sent from here.
    let state = |i: u64| LiveFlow {
        delivered: i,
        retransmits: i.is_multiple_of(2).then_some(i),
        cwnd: Some(i as f64),
        srtt: None,
    };
    post.posted().live.publish(at(1), (0..80).map(state));
    let mut asked = |millis| {
        pass(at(millis), &mut client, &mut server);
        let flows = client.take_flows();
        flows.iter().map(|f| f.flow).collect::<Vec<_>>()
    };
    assert!(asked(100).is_empty(), "a moment after the last question");
    let all: Vec<u32> = (0..80).step_by(2).collect();
    assert_eq!(asked(101), all[..32]);
    assert_eq!(asked(201), all[32..]);
    assert_eq!(asked(301), all[..32]);
    // Nobody is told of a run that is over.
    server.end(at(301), vec![1], false);
    pass(at(401), &mut client, &mut server);
    assert_eq!(client.take_flows(), []);
}

/// A server says what it likes; nobody asked, or it says too much.
#[test]
fn states_that_nobody_asked_for_are_left() {
    let (_, mut client) = running(false);
    let mut channel = Channel::new(&secrets(), End::Server);
    // Beyond the numbers that the server has used.
    (0..9).for_each(|_| drop(channel.seal(&ServerMessage::Closed)));
    let state = |flow| FlowState {
        flow,
        retransmits: 0,
        cwnd: 0,
        srtt: None,
    };
    let mut say = |client: &mut ClientSession| {
        let many = ServerMessage::Flows((0..200).map(state).collect());
        client.on_datagram(Time::ZERO, &channel.seal(&many).unwrap());
        client.take_flows().len()
    };
    assert_eq!(say(&mut client), 0);
    client.watch_flows(Span::ZERO);
    assert_eq!(say(&mut client), MOST_FLOWS);
}

/// Seconds until the client gives up, if its server is there all the time; the flows bring a byte
/// at these moments.
fn given_up(until_complete: bool, begin: u64, moments: &[u64]) -> Option<u64> {
    let (mut server, mut client) = running(until_complete);
    client.begins_at(Time::ZERO + Span::from_secs(begin));
    let mut traffic = Traffic::default();
    for second in 1..2000 {
        let now = Time::ZERO + Span::from_secs(second);
        pass(now, &mut client, &mut server);
        traffic.received += 100;
        traffic.data += u64::from(moments.contains(&second));
        assert!(!client.is_silent(now));
        if client.is_over(now, &traffic) {
            assert!(client.is_stalled());
            return Some(second);
        }
    }
    None
}

#[test]
fn a_server_that_answers_and_sends_nothing_is_given_up() {
    assert_eq!(given_up(true, 0, &[]), Some(121));
    assert_eq!(given_up(true, 0, &[100, 200, 320]), Some(441));
    assert_eq!(given_up(true, 500, &[]), Some(621));
    // A test ends when its time is over.
    assert_eq!(given_up(false, 0, &[]), None);
}
