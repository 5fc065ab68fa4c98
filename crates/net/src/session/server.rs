//! The server: one port, a gate at it, and for every session a socket and a thread of its own.
//!
//! A session's socket has the same address and port as the listening one and is connected to its
//! client, so that the kernel sorts datagrams: a firewall has one port to open, the gate never sees
//! data, and the endpoint never sees strangers. (Both have `SO_REUSEPORT`; that the port is free is
//! tried out before.) Until the new socket is connected it may catch datagrams of others: these are
//! given to the gate.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use fullpipe_units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket,
    sockopt,
};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

use super::board::Board;
use super::cleanup::Cleanup;
use super::cookie::{CookieJar, MOST_OF_HOST, host};
use super::event::Event;
use super::gate::{Gate, GateCounts, GateOutput, Opened};
use super::limits::Limits;
use super::limits::memory::Memory;
use super::message::{ENCRYPT, Open, Reason, TestKind};
use super::path::MigrationInbox;
use super::session_thread::{self, Session};
use super::{Identity, Key, entropy};
use crate::content::Allowed;
use crate::io::{Clock, Stop, may_be_icmp};
use crate::shown::Address;
use crate::tcp::Desk;
use crate::wire::{Header, Kind, SessionId};

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and UDP port to listen on.
    pub listen: SocketAddr,
    /// Shared key that clients must prove; open if the key is.
    pub key: Key,
    /// Limits on rate, duration, bytes, tests and memory.
    pub limits: Limits,
    /// How long tests that run may go on once it is summary to stop.
    pub grace: Span,
}

/// Receives every event of the server.
pub type Log = Arc<dyn Fn(&Event) + Send + Sync>;

/// A server that listens.
pub struct Server {
    config: Config,
    limits: Arc<Limits>,
    memory: Memory,
    allowed: Allowed,
    log: Log,
    udp: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    clock: Clock,
    gate: Gate,
    live: Vec<Handle>,
    tests: u64,
    stopping: Arc<AtomicBool>,
    summary: LogSummary,
    only_encrypted: bool,
    cleanup: Cleanup,
    /// The TCP port of the same number.
    desk: Desk,
    board: Board,
}

/// A session from outside.
struct Handle {
    peer: SocketAddr,
    session: SessionId,
    open: Box<Open>,
    accept: Vec<u8>,
    shut: Arc<AtomicBool>,
    /// The client has said goodbye: only the answer to that is left.
    over: Arc<AtomicBool>,
    /// What comes from other addresses than the client's.
    inbox: Arc<MigrationInbox>,
    test: u64,
    thread: JoinHandle<()>,
}

/// A client that is turned away, and what it is told.
struct Refusal {
    /// Reason that the answer carries.
    reason: Reason,
    /// Of this host, which the client is not told.
    error: Option<io::Error>,
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self {
            reason,
            error: None,
        }
    }
}

/// Last log summary of unauthenticated datagrams; it limits the rate of logging.
#[derive(Default)]
struct LogSummary {
    at: Time,
    counts: GateCounts,
    /// Refusals in this period.
    refusals: u64,
    last_wrong_key: Option<SocketAddr>,
}

/// Interval between summaries.
const SUMMARY: Span = Span::from_secs(10);
/// Refusals that get their own log line, per summary period.
const MOST_REFUSALS: u64 = 10;
/// Datagrams of a batch, and bytes that are read of each.
const BATCH: usize = 32;
const LONGEST: usize = 2048;
/// Descriptors that a session needs beside its socket's: copies of that, one to be woken by, a file
/// and its directory, its state.
const SPARE: usize = 8;
/// Datagrams of other clients that a new socket may have received before it was connected.
const MOST_CAUGHT: usize = 1024;

impl Server {
    /// Binds.
    ///
    /// # Errors
    /// The address is taken or not of this host; no random bytes.
    pub fn bind(config: Config, log: Log) -> io::Result<Self> {
        // With `SO_REUSEPORT` alone two servers could share a port and steal each other's clients,
        // also where the system chooses it.
        let free = UdpSocket::bind(config.listen)?.local_addr()?;
        let udp = bound(free)?;
        let state = UdpSocketState::new((&udp).into())?;
        if state.gro_segments() > 1 {
            setsockopt(&udp, sockopt::UdpGroSegment, &false)?;
        }
        let local = udp.local_addr()?;
        // Once before, so that a missing generator is an error.
        let mut last = [0; 32];
        entropy(&mut last).map_err(|e| io::Error::other(e.to_string()))?;
        let fresh = move || {
            last = secret_after(&last, entropy);
            last
        };
        let clock = Clock::new();
        let jar = CookieJar::new(clock.now(), Box::new(fresh));
        let identity = Identity::generate().map_err(|e| io::Error::other(e.to_string()))?;
        Ok(Self {
            limits: Arc::new(config.limits.clone()),
            memory: Memory::new(&config.limits),
            allowed: Allowed::default(),
            gate: Gate::new(config.key.clone(), identity, jar),
            config,
            log,
            udp,
            state,
            local,
            clock,
            live: Vec::new(),
            tests: 0,
            stopping: Arc::default(),
            summary: LogSummary::default(),
            only_encrypted: false,
            cleanup: Cleanup::default(),
            desk: Desk::new(local),
            board: Board::default(),
        })
    }

    /// As this server; without it, as one that nobody has met.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.gate.be(identity);
        self
    }

    /// Takes and gives files.
    pub fn with_files(mut self, allowed: Allowed) -> Self {
        self.allowed = allowed;
        self
    }

    /// Refuses tests that are not encrypted, if `only`.
    pub fn only_encrypted(mut self, only: bool) -> Self {
        self.only_encrypted = only;
        self
    }

    /// Tests that run write it on this board.
    pub fn with_board(mut self, board: Board) -> Self {
        self.board = board;
        self
    }

    /// Address that the socket is bound to.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `stop` is set and the tests that run then are over, or the grace time is.
    /// Returns the number of tests.
    ///
    /// # Errors
    /// Of the operating system; those of one client are no errors of the server.
    pub fn run(mut self, stop: &Stop) -> io::Result<u64> {
        let key = &self.config.key;
        (self.log)(&Event::Listening {
            address: self.local,
            key: (!key.is_open()).then(|| key.fingerprint()),
            identity: self.gate.identity().to_string(),
            limits: self.config.limits.clone(),
        });
        let mut deadline = None;
        loop {
            let now = self.clock.now();
            self.reap();
            self.follow();
            self.summarize(now, false);
            if !stop.is_set() {
                self.cleanup.run_if_due(now, &self.allowed, &self.log);
            }
            if deadline.is_none() && stop.is_set() {
                self.stopping.store(true, Ordering::Relaxed);
                deadline = Some(now + self.config.grace);
                let tests = self.live.len();
                (self.log)(&Event::Stopping { tests });
            }
            if let Some(deadline) = deadline {
                if self.live.is_empty() {
                    break;
                }
                if now >= deadline {
                    let shut = |handle: &Handle| handle.shut.store(true, Ordering::Relaxed);
                    self.live.iter().for_each(shut);
                }
                if now >= deadline + Span::from_secs(3) {
                    break;
                }
            }
            self.wait(stop, deadline.is_some())?;
            self.receive()?;
        }
        self.summarize(self.clock.now(), true);
        (self.log)(&Event::Stopped { tests: self.tests });
        Ok(self.tests)
    }

    fn wait(&self, stop: &Stop, stopping: bool) -> io::Result<()> {
        let mut fds = vec![PollFd::new(self.udp.as_fd(), PollFlags::POLLIN)];
        if !stopping {
            fds.push(PollFd::new(stop.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, PollTimeout::from(100u8)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// One batch.
    fn receive(&mut self) -> io::Result<()> {
        let mut storage = [[0u8; LONGEST]; BATCH];
        let mut meta = [RecvMeta::default(); BATCH];
        let n = {
            let mut slices = storage.each_mut().map(|buffer| IoSliceMut::new(buffer));
            match self.state.recv((&self.udp).into(), &mut slices, &mut meta) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                // What the network says of an answer of ours.
                Err(e) if transient(&e) => return Ok(()),
                Err(e) => return Err(e),
            }
        };
        for (buffer, meta) in storage.iter().zip(&meta).take(n) {
            let datagram = &buffer[..meta.len.min(LONGEST)];
            self.take(meta.addr, meta.dst_ip, datagram);
        }
        Ok(())
    }

    /// A datagram of somebody who has no session's socket.
    fn take(&mut self, from: SocketAddr, to: Option<IpAddr>, datagram: &[u8]) {
        let now = self.clock.now();
        // An OPEN whose answer was lost, from before its session's socket was there.
        let again = |h: &&Handle| h.peer == from && h.open.bytes[..] == *datagram;
        if let Some(handle) = self.live.iter().find(again) {
            let accept = handle.accept.clone();
            return self.send(from, to, &accept);
        }
        // Of a client that has another address now, or of somebody who copies it: the session
        // finds out.
        if let Ok(header) = Header::decode(datagram)
            && header.kind == Kind::Control
            && let Some(handle) = self.live.iter().find(|h| h.session == header.session)
        {
            return handle.inbox.put(from, datagram);
        }
        let wrong_before = self.gate.counts().bad_proofs;
        match self.gate.handle(now, from, datagram) {
            GateOutput::Nothing => {}
            GateOutput::Answer(answer) => {
                if self.gate.counts().bad_proofs > wrong_before {
                    self.summary.last_wrong_key = Some(from);
                }
                self.send(from, to, &answer);
            }
            GateOutput::Open(mut opened) => {
                if let Err(refusal) = self.admit(now, &mut opened, to) {
                    let Refusal { reason, error } = refusal;
                    if let Some(answer) = self.gate.refuse(&mut opened, reason) {
                        self.send(from, to, &answer);
                    }
                    self.summary.refusals += 1;
                    if self.summary.refusals <= MOST_REFUSALS {
                        (self.log)(&Event::refused(from, reason, error.as_ref()));
                    }
                }
            }
        }
    }

    /// Opens a session, or says why not.
    fn admit(&mut self, now: Time, opened: &mut Opened, to: Option<IpAddr>) -> Result<(), Refusal> {
        let ask = opened.ask;
        if self.stopping.load(Ordering::Relaxed) {
            return Err(Reason::Stopping.into());
        }
        let kernel_tcp = ask.kind == TestKind::KernelTcp as u8;
        // What the kernels' TCP carries is not sealed.
        let options = if kernel_tcp { 0 } else { ENCRYPT };
        let known = kernel_tcp || ask.kind == TestKind::Udp as u8;
        if !known || ask.options & !options != 0 {
            return Err(Reason::Unsupported.into());
        }
        if self.only_encrypted && ask.options & ENCRYPT == 0 {
            return Err(Reason::Unencrypted.into());
        }
        let busy = Reason::Busy(self.limits.max_tests);
        // A client that has just said goodbye comes again with its next question.
        self.reap();
        let counted = |h: &&Handle| !h.over.load(Ordering::Acquire);
        if self.live.iter().filter(counted).count() >= self.limits.max_tests as usize {
            return Err(busy.into());
        }
        let here = host(opened.from);
        let same = self.live.iter().filter(counted);
        let same = same.filter(|h| host(h.peer) == here);
        if same.count() >= self.limits.max_tests_per_peer as usize {
            return Err(Reason::BusyForPeer(self.limits.max_tests_per_peer).into());
        }
        let ip = to.unwrap_or(self.local.ip());
        let here = reached_from(opened.from, ip, self.local.port());
        // There is no other word for it in the answer; the log has the error.
        let lacking = |error| Refusal {
            reason: busy,
            error: Some(error),
        };
        let session = self.fresh_session().ok_or(busy)?;
        let (udp, caught) = connected(here, opened.from).map_err(lacking)?;
        // A session that finds none later would end without a word.
        let spare: io::Result<Vec<UdpSocket>> = (0..SPARE).map(|_| udp.try_clone()).collect();
        drop(spare.map_err(lacking)?);
        let accepted = self.gate.accept(now, opened, session);
        let accepted = accepted.ok_or(Reason::Hurried(MOST_OF_HOST))?;
        self.tests += 1;
        let (accept, secrets) = accepted;
        let (shut, over): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let inbox = Arc::new(MigrationInbox::new(opened.from));
        let session_of_thread = Session {
            test: self.tests,
            udp,
            clock: self.clock,
            peer: opened.from,
            open: Box::new(opened.open.clone()),
            ask,
            accept: accept.clone(),
            secrets,
            limits: Arc::clone(&self.limits),
            allowed: self.allowed.clone(),
            memory: self.memory.clone(),
            desk: self.desk.clone(),
            log: Arc::clone(&self.log),
            stopping: Arc::clone(&self.stopping),
            shut: Arc::clone(&shut),
            over: Arc::clone(&over),
            inbox: Arc::clone(&inbox),
            board: self.board.clone(),
        };
        let thread = thread::Builder::new()
            .name(format!("test-{}", self.tests))
            .spawn(move || session_thread::run(session_of_thread))
            .map_err(lacking)?;
        (self.log)(&Event::Opened {
            test: self.tests,
            peer: opened.from.into(),
        });
        self.send(opened.from, to, &accept);
        self.live.push(Handle {
            peer: opened.from,
            session,
            open: Box::new(opened.open.clone()),
            accept,
            shut,
            over,
            inbox,
            test: self.tests,
            thread,
        });
        for (from, datagram) in caught {
            self.take(from, to, &datagram);
        }
        Ok(())
    }

    fn fresh_session(&self) -> Option<SessionId> {
        let mut bytes = [0; 8];
        entropy(&mut bytes).ok()?;
        let session = SessionId(u64::from_be_bytes(bytes));
        let taken = self.live.iter().any(|h| h.session == session);
        (session != SessionId(0) && !taken).then_some(session)
    }

    /// What cannot be sent is as good as lost on the way.
    fn send(&self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: datagram,
            segment_size: None,
            src_ip: from,
        };
        let _ = self.state.try_send((&self.udp).into(), &transmit);
    }

    fn reap(&mut self) {
        let mut i = 0;
        while i < self.live.len() {
            if self.live[i].thread.is_finished() {
                let handle = self.live.swap_remove(i);
                // A session that panicked has said so on stderr; the server goes on.
                let _ = handle.thread.join();
            } else {
                i += 1;
            }
        }
    }

    /// Clients that have moved.
    fn follow(&mut self) {
        for handle in &mut self.live {
            let (from, to) = (handle.peer, handle.inbox.peer());
            if from != to {
                handle.peer = to;
                let (test, from, to) = (handle.test, from.into(), to.into());
                (self.log)(&Event::Moved { test, from, to });
            }
        }
    }

    /// Logs a summary of unauthenticated datagrams, if there is anything new.
    fn summarize(&mut self, now: Time, at_once: bool) {
        if !at_once && now < self.summary.at + SUMMARY {
            return;
        }
        let (counts, before) = (self.gate.counts(), self.summary.counts);
        let event = Event::Turned {
            garbage: counts.garbage - before.garbage,
            wrong_key: counts.bad_proofs - before.bad_proofs,
            replayed: counts.replays - before.replays,
            bad_cookie: counts.bad_cookies - before.bad_cookies,
            other_version: counts.other_versions - before.other_versions,
            refused: self.summary.refusals.saturating_sub(MOST_REFUSALS),
            last_wrong_key: self.summary.last_wrong_key.take().map(Address::from),
        };
        if let Event::Turned {
            garbage,
            wrong_key,
            replayed,
            bad_cookie,
            other_version,
            refused,
            ..
        } = event
            && garbage + wrong_key + replayed + bad_cookie + other_version + refused > 0
        {
            (self.log)(&event);
        }
        self.summary = LogSummary {
            at: now,
            counts,
            ..LogSummary::default()
        };
    }
}

/// The secret after `last`: random bytes mixed with it, so that it stays a secret even if there are
/// none this time.
fn secret_after<E>(last: &[u8; 32], entropy: impl FnOnce(&mut [u8]) -> Result<(), E>) -> [u8; 32] {
    let mut random = [0; 32];
    let there = entropy(&mut random).is_ok();
    let hash = blake3::Hasher::new_keyed(last)
        .update(&[u8::from(there)])
        .update(&random)
        .finalize();
    *hash.as_bytes()
}

fn transient(e: &io::Error) -> bool {
    e.kind() == ErrorKind::Interrupted || may_be_icmp(e)
}

/// An address of this host, as `peer` reaches it: one that is good on one link only is that of the
/// link that the peer is on.
fn reached_from(peer: SocketAddr, ip: IpAddr, port: u16) -> SocketAddr {
    match (ip, peer) {
        (IpAddr::V6(ip), SocketAddr::V6(peer)) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, port, 0, peer.scope_id()).into()
        }
        _ => SocketAddr::new(ip, port),
    }
}

/// A socket that shares its port with others of this process.
fn bound(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Datagram, flags, SockProtocol::Udp)?;
    setsockopt(&fd, sockopt::ReusePort, &true)?;
    if at.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        // Every address: those of IPv4 too.
        setsockopt(&fd, sockopt::Ipv6V6Only, &false)?;
    }
    bind(
        std::os::fd::AsRawFd::as_raw_fd(&fd),
        &SockaddrStorage::from(at),
    )?;
    Ok(UdpSocket::from(fd))
}

/// Datagrams that a socket caught, with their senders.
type Caught = Vec<(SocketAddr, Vec<u8>)>;

/// A socket for one client, and what it caught of others before it was one.
fn connected(here: SocketAddr, peer: SocketAddr) -> io::Result<(UdpSocket, Caught)> {
    let udp = bound(here)?;
    udp.connect(peer)?;
    let mut caught = Vec::new();
    let mut buffer = [0; LONGEST];
    while caught.len() < MOST_CAUGHT {
        match udp.recv_from(&mut buffer) {
            Ok((n, from)) => caught.push((from, buffer[..n].to_vec())),
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) if transient(&e) => {}
            Err(e) => return Err(e),
        }
    }
    Ok((udp, caught))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the link of an interface, if this host has one with such an address.
    #[test]
    fn a_client_on_the_same_link_gets_a_socket() {
        let interfaces = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        // Address, index of the interface and scope, in hexadecimal digits.
        let found = interfaces.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let address = u128::from_str_radix(words.next()?, 16).ok()?;
            let index = u32::from_str_radix(words.next()?, 16).ok()?;
            let address = Ipv6Addr::from(address);
            address.is_unicast_link_local().then_some((address, index))
        });
        let Some((address, index)) = found else {
            eprintln!("skipped: this host has no link-local address");
            return;
        };
        let client = UdpSocket::bind(SocketAddrV6::new(address, 0, 0, index)).unwrap();
        let client = client.local_addr().unwrap();
        let (udp, _) = connected(reached_from(client, address.into(), 0), client).unwrap();
        assert_eq!(udp.peer_addr().unwrap(), client);
        let global: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
        assert_eq!(reached_from(client, global.ip(), 9), global);
    }

    #[test]
    fn without_random_bytes_the_next_secret_is_still_one() {
        let none = |_: &mut [u8]| Err(());
        let mut last = [7; 32];
        let mut seen = vec![[0; 32], last];
        for _ in 0..3 {
            last = secret_after(&last, none);
            assert!(!seen.contains(&last));
            seen.push(last);
        }
        assert_ne!(secret_after(&[7; 32], none), secret_after(&[8; 32], none));
        let zeros = |_: &mut [u8]| Ok::<(), ()>(());
        assert_ne!(secret_after(&[7; 32], none), secret_after(&[7; 32], zeros));
    }
}
