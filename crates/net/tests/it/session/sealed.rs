//! Encrypted sessions over loopback, with somebody between the two who reads, counts and does
//! worse.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use fullpipe_host::HostOutcome;
use fullpipe_net::content::{Allowed, Content, copy};
use fullpipe_net::file::Directory;
use fullpipe_net::headers::make_room;
use fullpipe_net::session::message::ENCRYPT;
use fullpipe_net::session::seal::{OVERHEAD, SEALED};

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

/// What the one in the middle has seen and done.
#[derive(Default)]
struct Tally {
    /// Datagrams that are not of handshake or control.
    carried: u64,
    in_clear: u64,
    /// Number and direction of each.
    numbers: HashSet<(bool, u64)>,
    longest: usize,
    kinds: HashSet<u8>,
    forged: u64,
}

/// Passes datagrams on between a client and a server.
struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Tally>,
}

/// What is sent on for a datagram: to where it was going, and back to where it came from. `up`:
/// from the client.
type Tamper = fn(&mut Vec<u8>, u64, bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>);

fn honest(datagram: &mut Vec<u8>, _: u64, _: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    (vec![std::mem::take(datagram)], vec![])
}

impl Relay {
    fn start(server: SocketAddr, tamper: Tamper) -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let turn = Duration::from_micros(200);
            socket.set_read_timeout(Some(turn)).unwrap();
            socket
        };
        let (front, back) = (bind(), bind());
        back.connect(server).unwrap();
        let address = front.local_addr().unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut tally = Tally::default();
            let (mut client, mut room) = (None, [0; 2048]);
            while !until.load(Ordering::Relaxed) {
                for up in [true, false] {
                    let socket = if up { &front } else { &back };
                    for _ in 0..32 {
                        let Ok((len, from)) = socket.recv_from(&mut room) else {
                            break;
                        };
                        if up {
                            client = Some(from);
                        }
                        let mut datagram = room[..len].to_vec();
                        tally.see(&datagram, up);
                        let (on, home) = tamper(&mut datagram, tally.carried, up);
                        tally.forged += (on.len() + home.len()).saturating_sub(1) as u64;
                        let to_server = if up { &on } else { &home };
                        let to_client = if up { &home } else { &on };
                        for bytes in to_server {
                            let _ = back.send(bytes);
                        }
                        for bytes in to_client {
                            let _ = front.send_to(bytes, client.unwrap());
                        }
                    }
                }
            }
            tally
        });
        Self {
            address,
            over,
            thread,
        }
    }

    fn end(self) -> Tally {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Tally {
    fn see(&mut self, datagram: &[u8], up: bool) {
        let kind = datagram[0] & 15;
        if kind < 8 {
            return;
        }
        self.carried += 1;
        self.kinds.insert(kind);
        self.longest = self.longest.max(datagram.len());
        self.in_clear += u64::from(datagram[1] & SEALED == 0);
        let number = u64::from_be_bytes(datagram[12..20].try_into().unwrap());
        assert!(self.numbers.insert((up, number)), "{number} was used twice");
    }
}

fn encrypted() -> Options {
    Options {
        encrypted: true,
        ..until_complete()
    }
}

/// Flows in both directions, one of which loses segments and sends them again, cross traffic and
/// probes.
fn everything() -> RunSpec {
    let mut spec = spec(
        20_000,
        vec![
            flow("up", Some(2000), false),
            flow("down", Some(1500), true),
        ],
    );
    for f in &mut spec.flows {
        f.sender.window.max = 40.0;
        f.drops.segments = vec![300, 700];
    }
    add_cross_traffic_and_probes(&mut spec);
    make_room(&mut spec, OVERHEAD);
    spec
}

/// Runs it through the relay; both sides.
fn through(relay: &Relay, spec: &RunSpec, options: Options) -> [HostOutcome; 2] {
    let request = Request {
        spec: spec.clone(),
        options,
    };
    let peer = Peer::new(relay.address, key("a"));
    let local = ground::Options::default();
    let mut client = Client::connect(&peer, &request, &local, &NEVER).unwrap();
    let spec = Arc::new(request.spec);
    let done = client.run(&spec, &local, Hooks::default(), &NEVER).unwrap();
    client.close();
    [done.near, done.far.unwrap()]
}

fn delivered(hosts: &[HostOutcome; 2]) -> Vec<u64> {
    let mut all: Vec<_> = hosts.iter().flat_map(|h| &h.receivers).collect();
    all.sort_by_key(|r| r.flow);
    all.iter().map(|r| r.totals.delivered).collect()
}

#[test]
fn everything_that_is_carried_is_sealed_and_arrives() {
    let server = Running::start(key("a"), Limits::default());
    let relay = Relay::start(server.address, honest);
    let spec = everything();
    let segments: Vec<u64> = (spec.flows.iter())
        .map(|f| f.sender.transfer.unwrap())
        .collect();
    assert_eq!(
        segments,
        [2034, 1526],
        "as many bytes as without encryption"
    );
    let hosts = through(&relay, &spec, encrypted());
    assert_eq!(delivered(&hosts), segments);
    let [near, far] = &hosts;
    assert_eq!((near.counts.ignored, far.counts.ignored), (0, 0));
    assert!(near.cross[1].delay.count() > 0);
    assert!(far.cross[0].arrived > 0);
    let again = |h: &HostOutcome| h.senders[0].totals.retransmits;
    assert!(again(near) >= 2 && again(far) >= 2);
    let tally = relay.end();
    assert_eq!(tally.kinds, HashSet::from([8, 9, 10, 11, 12]));
    assert_eq!(tally.in_clear, 0);
    // With the headers of IPv4 and UDP: the MTU.
    assert_eq!(tally.longest + 28, 1500);
    assert!(tally.carried >= 2034 + 1526 + 1000);
}

/// Sends on what came, and copies of it: the same again, bent, cut off, with another
/// number, and back to where it came from.
fn hostile(datagram: &mut Vec<u8>, n: u64, up: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    if datagram[0] & 15 < 8 {
        return honest(datagram, n, up);
    }
    let original = std::mem::take(datagram);
    let len = original.len();
    let mut forged = original.clone();
    match n % 5 {
        0 => {}
        1 => forged[n as usize % len] ^= 1 << (n % 8),
        2 => forged.truncate(n as usize % len),
        3 => forged[12..20].copy_from_slice(&(n << 20).to_be_bytes()),
        _ => return (vec![original.clone()], vec![original]),
    }
    // What is replayed comes behind, the others before.
    match n % 5 {
        0 => (vec![original, forged], vec![]),
        _ => (vec![forged, original], vec![]),
    }
}

#[test]
fn what_is_forged_replayed_or_sent_back_changes_nothing() {
    let server = Running::start(key("a"), Limits::default());
    let relay = Relay::start(server.address, hostile);
    let spec = everything();
    let hosts = through(&relay, &spec, encrypted());
    assert_eq!(delivered(&hosts), [2034, 1526]);
    let [near, far] = &hosts;
    // A segment that arrives twice was sent twice.
    for (sender, receiver) in [(near, far), (far, near)] {
        let sent_again = sender.senders[0].totals.retransmits;
        assert!(receiver.receivers[0].totals.duplicates <= sent_again);
    }
    assert!(far.cross[0].arrived <= near.cross[0].sent);
    let tally = relay.end();
    let ignored = near.counts.ignored + far.counts.ignored;
    assert!(tally.forged > 3000, "{}", tally.forged);
    assert!(ignored <= tally.forged);
    // Some may have come after the end, or found a full socket.
    assert!(ignored > tally.forged / 2, "{ignored} of {}", tally.forged);
}

#[test]
fn the_option_cannot_be_taken_out_on_the_way() {
    let server = Running::start(key("a"), Limits::default());
    let relay = Relay::start(server.address, |datagram, n, up| {
        if datagram[0] & 15 == 2 {
            // A stream cipher's text is bent where its plain text is: behind the cookie and the
            // ephemeral key come the kind of test and the options.
            datagram[64 + 32 + 1] ^= ENCRYPT;
        }
        honest(datagram, n, up)
    });
    let request = Request {
        spec: spec(100, vec![]),
        options: encrypted(),
    };
    let peer = Peer::new(relay.address, key("a"));
    let local = ground::Options::default();
    let error = Client::connect(&peer, &request, &local, &NEVER).unwrap_err();
    assert!(
        error.to_string().ends_with("authentication failed"),
        "{error}"
    );
    relay.end();
}

#[test]
fn a_server_may_insist() {
    let config = |key| Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        key,
        limits: Limits::default(),
        grace: Span::from_secs(1),
    };
    let server = Server::bind(config(key("a")), Arc::new(|_| {}))
        .unwrap()
        .only_encrypted(true);
    let (address, stop) = (server.address(), Stop::new().unwrap());
    let until = stop.clone();
    let thread = std::thread::spawn(move || server.run(&until).unwrap());
    let go = |options| {
        let peer = Peer::new(address, key("a"));
        let local = ground::Options::default();
        let spec = spec(20_000, vec![flow("down", Some(500), true)]);
        run_with_peer(&spec, &peer, options, &local, Hooks::default(), &NEVER)
    };
    let error = go(until_complete()).unwrap_err();
    let reason = HandshakeError::Refused(Reason::Unencrypted);
    assert!(matches!(&error, SessionError::Handshake { error, .. } if *error == reason));
    assert!(
        error.to_string().contains("encrypted tests only"),
        "{error}"
    );
    let (outcome, _) = go(encrypted()).unwrap();
    let f = &outcome.flows[0];
    assert_eq!((f.mss, f.totals.delivered), (1424, 509));
    stop.set();
    thread.join().unwrap();
}

/// The handshake gives keys without a shared one too.
#[test]
fn an_open_server_encrypts() {
    let server = Running::start(Key::open(), Limits::default());
    let relay = Relay::start(server.address, honest);
    let spec = spec(20_000, vec![flow("up", Some(300), false)]);
    let peer = Peer::new(relay.address, Key::open());
    let options = Options {
        until_complete: true,
        ..encrypted()
    };
    let local = ground::Options::default();
    let (outcome, _) =
        run_with_peer(&spec, &peer, options, &local, Hooks::default(), &NEVER).unwrap();
    // Segments are 24 bytes shorter.
    assert_eq!(
        outcome.flows[0].totals.delivered,
        (300u64 * 1448).div_ceil(1424)
    );
    let tally = relay.end();
    assert!(tally.carried > 300 && tally.in_clear == 0);
}

#[test]
fn a_file_is_put_in_an_encrypted_session() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    std::fs::create_dir(&there).unwrap();
    let here = dir.path().join("here.bin");
    let bytes: Vec<u8> = (0..1_000_003u32).map(|i| (i ^ i >> 9) as u8).collect();
    std::fs::write(&here, &bytes).unwrap();
    let files = Some(Arc::new(Directory::open(&there).unwrap()));
    let allowed = Allowed {
        files,
        ..Allowed::default()
    };
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        key: key("a"),
        limits: Limits::default(),
        grace: Span::from_secs(1),
    };
    let server = Server::bind(config, Arc::new(|_| {})).unwrap();
    let server = server.with_files(allowed);
    let (address, stop) = (server.address(), Stop::new().unwrap());
    let until = stop.clone();
    let thread = std::thread::spawn(move || server.run(&until).unwrap());
    let (file, content) = copy::put(&here, "there.bin", false).unwrap();
    assert!(matches!(content, Content::Put { .. }));
    let mut request = Request {
        spec: spec(20_000, vec![flow("main", Some(1), false)]),
        options: Options {
            content,
            ..encrypted()
        },
    };
    request.options.make_room(&mut request.spec);
    let mss = request.spec.flows[0].sender.mss;
    assert_eq!(mss as usize, 1448 - OVERHEAD);
    let (peer, local) = (Peer::new(address, key("a")), ground::Options::default());
    let mut client = Client::connect(&peer, &request, &local, &NEVER).unwrap();
    let ask = |client: &mut Client, q: &_| client.ask(q, &NEVER).map_err(|e| e.to_string());
    let mut copy = copy::Copy::send(file, &mut |q| ask(&mut client, q)).unwrap();
    let mut carried = copy.begin(&mut request.spec).unwrap();
    let run = Arc::new(request.spec);
    client.run(&run, &local, carried.hooks(), &NEVER).unwrap();
    copy.finish(Some(carried), &mut |q| ask(&mut client, q))
        .unwrap();
    client.close();
    assert!(std::fs::read(there.join("there.bin")).unwrap() == bytes);
    stop.set();
    thread.join().unwrap();
}
