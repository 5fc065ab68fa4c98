//! The server as it listens, on loopback: strangers without a key, and clients that have it and
//! lie; results of a server that lies.
//!
//! The ordinary test sends 20,000 datagrams.
//! `cargo test --release -p fullpipe-net --test it -- --ignored --nocapture hostile` sends a
//! million and prints what that costs.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_host::{HostCounts, HostOutcome, PathReport, ReceiverReport, SenderReport, merge};
use fullpipe_net::content::Content;
use fullpipe_net::session::channel::Channel;
use fullpipe_net::session::control::{ClientMessage, EndReason, MOST_PARTS, PART, ServerMessage};
use fullpipe_net::session::event::Event;
use fullpipe_net::session::limits::Limits;
use fullpipe_net::session::message::{self, Answer, Ask, Nonce, Opening};
use fullpipe_net::session::request::{Options, Request};
use fullpipe_net::session::seal::End;
use fullpipe_net::session::{Key, Reason, Secrets};
use fullpipe_net::wire::{Header, Kind};
use fullpipe_run::{
    ArrivalSpec, Arrivals, FlowTotals, HostLateness, Lateness, RunSpec, Session, SizeLaw, Trace,
};
use fullpipe_units::{Rate, Span, Time};
use serde::ser::{Serialize, SerializeTuple, Serializer};

use crate::attack::{Attacker, Dice, resident};
use crate::session::{Running, flow, go, key, spec, until_complete};
use crate::vectors::{bytes, list, text, vectors};

/// A client that says what it likes.
pub(crate) struct Raw {
    pub(crate) udp: UdpSocket,
    open: Opening,
    pub(crate) secrets: Secrets,
    channel: Channel,
}

/// Bytes in the place of a message.
struct Noise(Vec<u8>);

impl Serialize for Noise {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(self.0.len())?;
        self.0.iter().try_for_each(|b| tuple.serialize_element(b))?;
        tuple.end()
    }
}

fn socket() -> UdpSocket {
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_secs(2));
    udp.set_read_timeout(patience).unwrap();
    udp
}

/// Says it until something comes back.
fn until_answered(udp: &UdpSocket, to: SocketAddr, datagram: &[u8]) -> Vec<u8> {
    let mut buffer = [0; 2048];
    for _ in 0..10 {
        udp.send_to(datagram, to).unwrap();
        if let Ok((n, _)) = udp.recv_from(&mut buffer) {
            return buffer[..n].to_vec();
        }
    }
    panic!("no answer");
}

pub(crate) fn ask_for(request: &[u8]) -> Ask {
    Ask {
        kind: 1,
        options: 0,
        length: request.len() as u32,
        digest: *blake3::hash(request).as_bytes(),
    }
}

pub(crate) fn encoded(spec: RunSpec) -> Vec<u8> {
    let options = Options::default();
    Request { spec, options }.encode().unwrap()
}

impl Raw {
    pub(crate) fn open(
        to: SocketAddr,
        key: &Key,
        ask: Ask,
        dice: &mut Dice,
    ) -> Result<Self, Reason> {
        let udp = socket();
        let nonce = Nonce(dice.array());
        let hello = until_answered(&udp, to, &message::hello(&nonce));
        let (_, cookie, server) = message::read_cookie(&hello).unwrap();
        let mut open = Opening::new(key, &server, nonce, cookie, &ask, None).unwrap();
        let answer = until_answered(&udp, to, open.bytes());
        if let Ok((_, reason)) = message::read_refuse(&answer) {
            return Err(reason);
        }
        let secrets = match open.read_answer(&answer).unwrap().unwrap() {
            Answer::Accepted(secrets) => secrets,
            Answer::Refused(reason) => return Err(reason),
        };
        Ok(Self {
            channel: Channel::new(&secrets, End::Client),
            udp,
            open,
            secrets,
        })
        .inspect(|raw| raw.udp.connect(to).unwrap())
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        let _ = self.udp.send(datagram);
    }

    /// The datagram of a message, which is not sent.
    pub(crate) fn sealed(&mut self, message: &impl Serialize) -> Vec<u8> {
        self.channel.seal(message).unwrap()
    }

    pub(crate) fn say(&mut self, message: &impl Serialize) {
        if let Some(datagram) = self.channel.seal(message) {
            self.send(&datagram);
        }
    }

    /// The next message; `None`: nothing for two seconds.
    pub(crate) fn hear(&mut self) -> Option<ServerMessage> {
        let mut buffer = [0; 2048];
        loop {
            let n = self.udp.recv(&mut buffer).ok()?;
            let header = Header::decode(&buffer[..n]).ok()?;
            if header.kind == Kind::Control {
                return Some(self.channel.open(&buffer[..n]).expect("understood"));
            }
        }
    }

    fn part(&mut self, request: &[u8], at: usize) {
        let end = ((at + 1) * PART).min(request.len());
        self.say(&ClientMessage::Part {
            at: at as u32,
            bytes: request[at * PART..end].to_vec(),
        });
    }

    /// Brings the request, the last part first, until there is a verdict.
    pub(crate) fn verdict(&mut self, request: &[u8]) -> ServerMessage {
        for _ in 0..5 {
            for at in (0..request.len().div_ceil(PART)).rev() {
                self.part(request, at);
                if let Some(verdict @ (ServerMessage::Granted(_) | ServerMessage::Refused(_))) =
                    self.hear()
                {
                    return verdict;
                }
            }
        }
        panic!("no verdict");
    }

    fn close(&mut self) {
        self.say(&ClientMessage::Close);
        while !matches!(self.hear().expect("goodbye"), ServerMessage::Closed) {}
    }

    /// Hears the end of a run.
    fn end(&mut self) -> (EndReason, u32) {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            self.say(&ClientMessage::Alive);
            if let Some(ServerMessage::Ended { why, length, .. }) = self.hear() {
                return (why, length);
            }
        }
        panic!("it does not end");
    }
}

/// Seconds of processor time of the threads with this name.
fn processor_time(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = tasks.filter(|task| {
        let comm = std::fs::read_to_string(task.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    });
    let ticks = of.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()?
            .split_whitespace()
            .filter_map(|f| f.parse().ok())
            .collect();
        // Without name and state: user and system time are fields 11 and 12, in hundredths of a
        // second.
        Some(fields[10] + fields[11])
    });
    ticks.sum::<u64>() as f64 / 100.0
}

/// `n` datagrams of strangers and forgers from eight addresses, beside a test of a friend.
fn attack_server(n: usize) {
    let server = Running::start(key("k"), Limits::default());
    let to = server.address;
    let mut dice = Dice(11);
    let friend = Raw::open(to, &key("k"), ask_for(&[1; 700]), &mut dice).unwrap();
    let file = vectors();
    let sockets: Vec<UdpSocket> = (0..8).map(|_| socket()).collect();
    for udp in &sockets {
        udp.set_nonblocking(true).unwrap();
    }
    let own = sockets[0].local_addr().unwrap();
    let nonce = Nonce(dice.array());
    let patient = socket();
    let hello = until_answered(&patient, to, &message::hello(&nonce));
    let mut attacker = Attacker {
        own,
        nonce,
        cookie: message::read_cookie(&hello).unwrap().1,
        server: message::read_cookie(&hello).unwrap().2,
        overheard: friend.open.bytes().to_vec(),
        vectors: ["valid", "invalid"]
            .into_iter()
            .flat_map(|which| list(&file, which))
            .map(|v| bytes(text(v, "hex")))
            .collect(),
        dice,
    };
    let before = (resident(), processor_time("listener"), Instant::now());
    let over = AtomicBool::new(false);
    let balance = std::thread::scope(|s| {
        let over = &over;
        let flood = s.spawn(move || {
            let mut balance = vec![(0usize, 0usize); sockets.len()];
            let mut buffer = [0; 2048];
            let mut i = 0;
            // To the end of the friend's test, and to the number at least.
            while i < n || !over.load(Ordering::Relaxed) {
                let (from, mut datagram) = attacker.datagram();
                let mut k = if from == own { 0 } else { i % sockets.len() };
                if i.is_multiple_of(1000) {
                    attacker.nonce = Nonce(attacker.dice.array());
                    datagram = message::hello(&attacker.nonce).to_vec();
                    k = 0;
                }
                if let Ok(sent) = sockets[k].send_to(&datagram, to) {
                    balance[k].0 += sent;
                }
                for (udp, balance) in sockets.iter().zip(&mut balance) {
                    while let Ok((got, _)) = udp.recv_from(&mut buffer) {
                        balance.1 += got;
                        assert!(balance.1 <= balance.0, "more came back than was sent");
                        if let Ok((nonce, cookie, _)) = message::read_cookie(&buffer[..got])
                            && nonce == attacker.nonce
                        {
                            attacker.cookie = cookie;
                        }
                    }
                }
                if i.is_multiple_of(64) {
                    std::thread::sleep(Duration::from_micros(200));
                }
                i += 1;
            }
            (i, balance)
        });
        let flows = vec![
            flow("up", Some(3000), false),
            flow("down", Some(3000), true),
        ];
        let outcome = go(&server, key("k"), &spec(40_000, flows), until_complete());
        over.store(true, Ordering::Relaxed);
        for f in &outcome.unwrap().flows {
            assert_eq!(f.totals.delivered, 3000, "{}", f.name);
            assert!(f.completed.is_some());
        }
        flood.join().unwrap()
    });
    let (sent, balance) = balance;
    let grown = resident().saturating_sub(before.0);
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
    let cpu = processor_time("listener") - before.1;
    println!(
        "{sent} datagrams in {:.1} s: {:.1} s of processor time per million at the listener, memory grew by {} KiB; bytes to and from {balance:?}",
        before.2.elapsed().as_secs_f64(),
        cpu * 1e6 / sent as f64,
        grown >> 10,
    );
    assert!(
        cpu * 1e6 / (sent as f64) < 200.0,
        "{cpu} s for {sent} datagrams"
    );
    // Another OPEN of the friend again, from its own address, once its session is over and before
    // its cookie is too old.
    let mut dice = Dice(12);
    let mut friend = Raw::open(to, &key("k"), ask_for(&[1; 700]), &mut dice).unwrap();
    friend.say(&ClientMessage::Close);
    let closed = (0..50).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        friend.send(friend.open.bytes());
        let mut buffer = [0; 2048];
        let n = friend.udp.recv(&mut buffer).ok()?;
        // Sealed for whoever made the OPEN, and from then on not read again.
        let sealed = n == message::SEALED_REFUSE_BYTES && buffer[0] & 15 == Kind::Refuse as u8;
        sealed.then_some(())
    });
    assert!(closed.is_some(), "a used OPEN is refused");
    friend.send(friend.open.bytes());
    let mut buffer = [0; 2048];
    let n = friend.udp.recv(&mut buffer).unwrap();
    let (_, reason) = message::read_refuse(&buffer[..n]).unwrap();
    assert_eq!(reason, Reason::Cookie);
    let events = server.end();
    let opened = events.iter().filter(|e| matches!(e, Event::Opened { .. }));
    assert_eq!(opened.count(), 3, "the friend, its test, the friend again");
    let lines = events.len();
    assert!(lines < 40, "the log is not a way to fill a disk: {lines}");
}

#[test]
fn strangers_at_the_port_open_nothing_and_disturb_nobody() {
    attack_server(20_000);
}

#[test]
#[ignore = "a million datagrams: cargo test --release -p fullpipe-net --test it -- --ignored --nocapture hostile"]
fn a_million_strangers_at_the_port_open_nothing_and_disturb_nobody() {
    attack_server(1_000_000);
}

/// Any key but the right one is told the same, whatever else is right.
#[test]
fn every_wrong_key_is_told_the_same() {
    let server = Running::start(key("k"), Limits::default());
    let mut dice = Dice(5);
    for wrong in [key("x"), Key::open()] {
        let refused = Raw::open(server.address, &wrong, ask_for(&[1; 700]), &mut dice).err();
        assert_eq!(refused, Some(Reason::Authentication));
    }
    let open = Running::start(Key::open(), Limits::default());
    let refused = Raw::open(open.address, &key("x"), ask_for(&[1; 700]), &mut dice).err();
    assert_eq!(refused, Some(Reason::Authentication));
}

fn small() -> Limits {
    Limits {
        max_duration: Span::from_secs(3),
        max_rate: Some(Rate::from_bits_per_sec(5_000_000)),
        max_tests: 4,
        max_tests_per_peer: 3,
        ..Limits::default()
    }
}

#[test]
fn a_client_that_babbles_after_its_tag_is_borne() {
    let server = Running::start(Key::open(), small());
    let mut dice = Dice(3);
    let request = encoded(spec(300, vec![flow("down", Some(10), true)]));
    let mut raw = Raw::open(server.address, &Key::open(), ask_for(&request), &mut dice).unwrap();
    let babble = |raw: &mut Raw, dice: &mut Dice, n: usize| {
        for _ in 0..n {
            let noise = match dice.below(3) {
                0 => dice.noise(1000),
                // The kind of a message, then anything.
                _ => [vec![dice.below(8) as u8], dice.noise(60)].concat(),
            };
            // Not "close".
            if !matches!(noise[..], [6, ..]) {
                raw.say(&Noise(noise));
            }
        }
    };
    babble(&mut raw, &mut dice, 500);
    for at in [1, 7, u32::MAX] {
        let bytes = request[..request.len().min(PART)].to_vec();
        raw.say(&ClientMessage::Part { at, bytes });
    }
    raw.say(&ClientMessage::Part {
        at: 0,
        bytes: vec![0; PART + 1],
    });
    raw.say(&ClientMessage::Ask {
        from: 0,
        many: u16::MAX,
    });
    assert!(matches!(raw.verdict(&request), ServerMessage::Granted(_)));
    babble(&mut raw, &mut dice, 500);
    // What it says itself may be lost in its own noise: a client says it until it is heard.
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(100));
        raw.say(&ClientMessage::Start);
    }
    babble(&mut raw, &mut dice, 200);
    // Some of the noise may have said "stop".
    let (why, length) = raw.end();
    assert!(
        matches!(why, EndReason::Over | EndReason::Stopped),
        "{why:?}"
    );
    for (from, many) in [
        (u32::MAX, u16::MAX),
        (length, 5),
        (u32::MAX / PART as u32, 9),
    ] {
        raw.say(&ClientMessage::Ask { from, many });
    }
    raw.udp
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    while let Some(message) = raw.hear() {
        assert!(
            !matches!(message, ServerMessage::Part { .. }),
            "there is no such part"
        );
    }
    // A result may be fetched again and again, but not for ever, and not faster than the limit.
    let begin = Instant::now();
    let (mut asked, mut got) = (0u64, 0u64);
    while begin.elapsed() < Duration::from_secs(3) {
        raw.say(&ClientMessage::Ask {
            from: 0,
            many: u16::MAX,
        });
        asked += u64::from(MOST_PARTS);
        raw.udp
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        while let Some(message) = raw.hear() {
            got += u64::from(matches!(message, ServerMessage::Part { .. }));
        }
    }
    let parts = u64::from(length).div_ceil(PART as u64);
    assert!(got > 0 && got <= 64 + 8 * parts, "{got} of {asked}");
    raw.say(&ClientMessage::Close);
    server.wait_for(|e| matches!(e, Event::Finished { .. }));
    server.end();
}

#[test]
fn a_client_that_sends_faster_and_more_than_granted_is_ended() {
    let server = Running::start(Key::open(), small());
    let mut dice = Dice(4);
    let request = encoded(spec(3000, vec![flow("up", None, false)]));
    let mut raw = Raw::open(server.address, &Key::open(), ask_for(&request), &mut dice).unwrap();
    assert!(matches!(raw.verdict(&request), ServerMessage::Granted(_)));
    raw.say(&ClientMessage::Start);
    while !matches!(raw.hear(), Some(ServerMessage::Alive { .. })) {
        raw.say(&ClientMessage::Start);
    }
    // Segments of a flow that there is, and of flows that there are not.
    let mut segment = vec![0; 24 + 1448];
    Header {
        kind: Kind::Data,
        flags: 0,
        flow: 0,
        session: raw.secrets.session,
    }
    .encode(&mut segment);
    let begin = Instant::now();
    let mut i = 0u64;
    while begin.elapsed() < Duration::from_millis(2900) {
        for _ in 0..20 {
            segment[3] = (i % 5) as u8;
            segment[12..20].copy_from_slice(&(i / 5).to_be_bytes());
            raw.send(&segment);
            i += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
        if i.is_multiple_of(2000) {
            raw.say(&ClientMessage::Alive);
        }
    }
    let (why, _) = raw.end();
    assert!(matches!(why, EndReason::Rate), "{why:?}");
    raw.say(&ClientMessage::Close);
    server.end();
}

/// Longer, more flows, a longer request than is allowed; and places that nobody comes back to.
#[test]
fn what_is_beyond_a_limit_is_refused_and_whoever_vanishes_is_forgotten() {
    let server = Running::start(Key::open(), small());
    let (to, open, mut dice) = (server.address, Key::open(), Dice(6));
    let ask = Ask {
        length: u32::MAX,
        ..ask_for(&[])
    };
    let refused = Raw::open(to, &open, ask, &mut dice).err();
    assert!(matches!(refused, Some(Reason::TooLong(_))), "{refused:?}");
    let long = encoded(spec(3001, vec![]));
    let many = encoded(spec(
        100,
        (0..257)
            .map(|i| flow(&format!("{i}"), None, false))
            .collect(),
    ));
    for request in [&long, &many] {
        let mut raw = Raw::open(to, &open, ask_for(request), &mut dice).unwrap();
        assert!(matches!(raw.verdict(request), ServerMessage::Refused(_)));
        raw.close();
    }
    // Another request than was announced.
    let mut other = long.clone();
    other[3] ^= 1;
    let mut raw = Raw::open(to, &open, ask_for(&long), &mut dice).unwrap();
    assert!(matches!(raw.verdict(&other), ServerMessage::Refused(_)));
    raw.close();
    // All places of an address; one of those who hold them never stops sending what means nothing.
    let begin = Instant::now();
    let mut held = Vec::new();
    let refused = loop {
        match Raw::open(to, &open, ask_for(&long), &mut dice) {
            Ok(raw) => held.push(raw),
            Err(reason) if held.len() == 3 => break reason,
            // The places of those who said goodbye are free in a moment.
            Err(_) => assert!(begin.elapsed() < Duration::from_secs(20)),
        }
        assert!(held.len() <= 3);
    };
    assert_eq!(refused, Reason::BusyForPeer(3));
    let over = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let noise = [0; 40];
            while !over.load(Ordering::Relaxed) {
                held[0].send(&noise);
            }
        });
        let lost = || server.count(|e| matches!(e, Event::Lost { .. }));
        while lost() < held.len() && begin.elapsed() < Duration::from_secs(40) {
            std::thread::sleep(Duration::from_millis(50));
        }
        over.store(true, Ordering::Relaxed);
    });
    let lost = server.end();
    let lost = lost.iter().filter(|e| matches!(e, Event::Lost { .. }));
    assert_eq!(lost.count(), held.len());
}

fn grant(spec: RunSpec) -> Result<RunSpec, String> {
    let granted = Limits::default().grant(spec, &Content::Nothing);
    granted.map(|granted| granted.0)
}

/// What a request makes the server remember is bounded over all of its flows together.
#[test]
fn many_flows_do_not_multiply_what_is_kept() {
    let minutes = Span::from_secs(600);
    let flows = |n: usize| (0..n).map(|i| flow(&format!("{i}"), None, true)).collect();
    let fine = RunSpec {
        duration: minutes,
        interval: Span::from_micros(100),
        flows: flows(200),
        ..RunSpec::default()
    };
    assert!(grant(fine).unwrap_err().contains("longer interval"));
    let traced = RunSpec {
        duration: minutes,
        interval: Span::from_secs(1),
        trace: Trace::Full,
        flows: flows(200),
        ..RunSpec::default()
    };
    let Trace::Every(step) = grant(traced).unwrap().trace else {
        panic!("a full trace");
    };
    assert!(minutes.as_nanos() / step.as_nanos() * 200 <= 1_000_000);
    let class = ArrivalSpec {
        template: flow("short", None, true),
        arrivals: Arrivals::Every(Span::from_millis(1)),
        sizes: SizeLaw::Fixed(1 << 40),
        session: Session::default(),
        seeded_by: None,
    };
    let mut many = RunSpec {
        duration: minutes,
        interval: Span::from_secs(1),
        arrivals: vec![class],
        ..RunSpec::default()
    };
    many.arrivals[0].template.sender.window.max = f64::INFINITY;
    let window = grant(many).unwrap().arrivals[0].template.sender.window.max;
    assert!(window * 32_768.0 <= (1u64 << 22) as f64, "{window}");
}

fn results(far: impl FnOnce(&mut HostOutcome)) -> Result<(), String> {
    let run = spec(
        1000,
        vec![flow("up", None, false), flow("down", None, true)],
    );
    let sender = |flow| SenderReport {
        flow,
        totals: FlowTotals::default(),
        offered: 10,
        record: Default::default(),
        started: Time::ZERO,
        completed: None,
        acked: 0,
    };
    let receiver = |flow| ReceiverReport {
        flow,
        totals: FlowTotals::default(),
        arrived: 5,
        not_taken: 0,
        arrivals: Default::default(),
    };
    let host = |s, r| HostOutcome {
        senders: vec![sender(s)],
        receivers: vec![receiver(r)],
        ..HostOutcome::default()
    };
    let mut remote = host(1, 0);
    far(&mut remote);
    let outcome = merge(&run, host(0, 1), remote, PathReport::default())?;
    assert_eq!(outcome.flows.len(), 2);
    Ok(())
}

/// A server's result may be anything that can be read: it fits, or it is refused with a sentence.
#[test]
fn a_result_that_lies_is_refused_or_harmless() {
    results(|_| ()).unwrap();
    let all = u64::MAX;
    // Numbers at their ends: nothing overflows.
    results(|far| {
        far.counts = HostCounts {
            socket_drops: all,
            refused: all,
            local_stalls: all,
            turns: all,
            ..HostCounts::default()
        };
        let late = Lateness {
            count: all,
            mean: Span::MAX,
            p50: Span::MAX,
            p99: Span::ZERO,
            max: Span::MAX,
        };
        far.lateness = HostLateness {
            arrivals: Some(late),
            departures: late,
            timers: late,
            local_stalls: all,
        };
        far.senders[0].totals.sent = all;
        far.receivers[0].arrived = all;
        far.receivers[0].not_taken = all;
        far.receivers[0].totals.dropped = all;
        far.capture.push(fullpipe_run::CaptureRow {
            at: Time::ZERO,
            flow: 2,
            event: fullpipe_run::CaptureEvent::AckDropped(1),
        });
    })
    .unwrap();
    let lies: [fn(&mut HostOutcome); 5] = [
        |far| far.receivers[0].totals.delivered = u64::MAX,
        |far| far.senders[0].flow = 0,
        |far| far.receivers[0].flow = u32::MAX,
        |far| far.senders.clear(),
        |far| {
            let series = &mut far.senders[0].record.series;
            series.variables.push(("w_max", vec![1.0; 7]));
        },
    ];
    for (i, lie) in lies.into_iter().enumerate() {
        let refused = results(lie);
        assert!(refused.is_err(), "lie {i}");
    }
}
