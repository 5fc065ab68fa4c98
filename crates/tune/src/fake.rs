//! A kernel for unit tests: sockets, both halves of the maps, and a memory of everything that was
//! asked of it, each with the journal's text at that moment. It does what `bpf/tune.bpf.c` does to
//! sockets and nothing at ACKs; its clock stands until a test moves it, and it fails on demand.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use fullpipe_policy::{Params, Prefix, Row, Side};
use tempfile::TempDir;

use crate::image::Image;
use crate::journal::Journal;
use crate::kernel::{Counters, Kernel, KernelError, Seen};
use crate::layout::{
    Control, Event, FlowRecord, Kind, Listing, NO_LAW, Opened, Order, OrderAction, Record,
    match_flag,
};
use crate::sockets::Resize;
use crate::tuner::Tuner;

/// How names of the tuner's algorithms begin.
pub const PREFIX: &str = "fp_";
/// States of a socket.
pub const ESTABLISHED: u32 = 1;
pub const CLOSE_WAIT: u32 = 8;
pub const FIN_WAIT1: u32 = 4;
/// Network namespace of every socket.
pub const NAMESPACE: u64 = 1;
/// Name of the process that has every socket.
pub const PROGRAM: &str = "iperf3";
/// The kernel's answer about an algorithm that it does not have.
pub const ENOENT: i32 = -2;

/// A call of the tuner that changes something, in the order of the calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    Filled(u32),
    Controlled(Control),
    Ordered(u64, Order),
    Resized(Resize),
}

/// The call that fails until a test takes it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// In the middle: the half holds nothing then.
    Fill,
    Control,
    /// Listing, with orders or without.
    Flows,
    /// Listing with orders, after so many of them.
    Orders(usize),
    /// No process can be reached.
    Resize,
}

/// The host.
#[derive(Debug)]
pub struct Host {
    pub now_us: u64,
    pub sockets: BTreeMap<u64, Seen>,
    pub halves: [Image; 2],
    pub control: Control,
    /// In order, each with the journal's text at that moment.
    pub deeds: Vec<(Deed, String)>,
    pub failing: Option<Failing>,
    /// Cookie and peer of a connection that is established right behind the next listing.
    pub opening: Option<(u64, &'static str)>,
    /// Algorithms that it has not.
    pub refused: BTreeSet<String>,
    /// The ring buffer has no room.
    pub is_full: bool,
    pub counters: Counters,
    records: Vec<Record>,
    folder: TempDir,
}

/// A hold on the host: the tuner has one, its test another.
#[derive(Clone, Debug)]
pub struct Fake(Rc<RefCell<Host>>);

impl Fake {
    /// A host with these running flows: cookie and peer.
    pub fn new(flows: &[(u64, &str)]) -> Self {
        let sockets = flows.iter().map(|&(cookie, to)| (cookie, seen(cookie, to)));
        Self(Rc::new(RefCell::new(Host {
            now_us: 1_000_000,
            sockets: sockets.collect(),
            halves: [Image::default(), Image::default()],
            control: Control::default(),
            deeds: Vec::new(),
            failing: None,
            opening: None,
            refused: BTreeSet::new(),
            is_full: false,
            counters: Counters::default(),
            records: Vec::new(),
            folder: tempfile::tempdir().expect("a folder"),
        })))
    }

    pub fn host(&self) -> RefMut<'_, Host> {
        self.0.borrow_mut()
    }

    /// The journal that is on the disk.
    pub fn journal(&self) -> Journal {
        Journal::open(&self.host().journal()).expect("a journal")
    }

    /// What was done since the last call.
    pub fn deeds(&self) -> Vec<Deed> {
        let deeds = std::mem::take(&mut self.host().deeds);
        deeds.into_iter().map(|(deed, _)| deed).collect()
    }

    /// Cookie, action and algorithm of the orders since the last call; forgets the other deeds.
    pub fn orders(&self) -> Vec<(u64, OrderAction, String)> {
        let order = |deed| match deed {
            Deed::Ordered(cookie, o) => Some((cookie, o.action, o.algorithm)),
            _ => None,
        };
        self.deeds().into_iter().filter_map(order).collect()
    }

    /// A socket as it is.
    pub fn listing(&self, cookie: u64) -> Listing {
        self.host().socket(cookie).clone()
    }

    /// A tuner over this host.
    pub fn tuner(&self) -> Tuner<Self> {
        Tuner::new(self.clone(), PREFIX, self.journal())
    }
}

impl Host {
    pub fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    fn did(&mut self, deed: Deed) {
        let journal = fs::read_to_string(self.journal()).unwrap_or_default();
        self.deeds.push((deed, journal));
    }

    pub fn socket(&mut self, cookie: u64) -> &mut Listing {
        let seen = self.sockets.get_mut(&cookie);
        &mut seen.expect("a socket of this cookie").listing
    }

    /// What a program or an administrator does.
    pub fn choose(&mut self, cookie: u64, algorithm: &str) {
        let socket = self.socket(cookie);
        (socket.algorithm, socket.chosen) = (algorithm.to_owned(), true);
    }

    /// A connection is established: the programs look for its rule in the half that is in force.
    pub fn opens(&mut self, cookie: u64, to: &str) {
        self.sockets.insert(cookie, seen(cookie, to));
        let (port, side) = (self.socket(cookie).remote.1, Side::Active);
        self.socket(cookie).side = Some(side);
        let never = self.control.never.iter();
        let mut never = never.map(|(low, high)| low..=high);
        if !self.is_in_force() || never.any(|range| range.contains(&&port)) {
            return;
        }
        let half = &self.halves[self.control.active as usize];
        let address = self.sockets[&cookie].listing.remote.0;
        let (address, _) = Prefix { address, bits: 32 }.mapped();
        let holds = |&(network, bits): &([u8; 16], u8)| {
            let differs = u128::from_be_bytes(network) ^ address;
            differs.checked_shr(128 - u32::from(bits)).unwrap_or(0) == 0
        };
        let longest = half.prefixes.iter().filter(|(p, _)| holds(p));
        let rules = longest.max_by_key(|((_, bits), _)| *bits);
        let rules = rules.map_or(0, |(_, rules)| *rules);
        let first = half.matches.iter().enumerate().find(|(k, m)| {
            rules >> k & 1 == 1
                && m.flags & match_flag::USED != 0
                && (m.side == 0 || m.side == side as u32)
                && (m.ranges.is_empty()
                    || m.ranges
                        .iter()
                        .any(|&(low, high)| (low..=high).contains(&port)))
        });
        let Some((_, m)) = first.map(|(k, m)| (k, m.clone())) else {
            return;
        };
        let control = (cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u32 >= m.share;
        let record = FlowRecord {
            rule: Some(m.policy as usize),
            control,
            ..remembered(self.socket(cookie))
        };
        self.socket(cookie).flow = Some(record);
        let mut done = 0;
        if control {
            self.counters.control += 1;
        } else {
            self.counters.matched += 1;
            let policy = self.halves[self.control.active as usize]
                .policies
                .get(&m.policy);
            let pacing = policy.filter(|(params, _)| params.law == NO_LAW.law);
            let pacing = pacing.map_or(0, |(params, _)| params.pacing as u32);
            give_buffers(self.socket(cookie), m.send_buffer, m.receive_buffer);
            done = self.set(cookie, &m.algorithm);
            if done == 0 {
                give_ceiling(self.socket(cookie), pacing);
            }
            self.counters.refused += u64::from(done != 0);
        }
        if self.is_full {
            self.counters.records_lost += 1;
            return;
        }
        let Seen {
            namespace, listing, ..
        } = &self.sockets[&cookie];
        self.records.push(Record::Opened(Box::new(Opened {
            local: listing.local,
            remote: listing.remote,
            done,
            namespace: *namespace,
            flow: listing.flow.clone().unwrap_or_default(),
        })));
    }

    /// The connection is no more.
    pub fn ends(&mut self, cookie: u64) {
        let ended = self.sockets.remove(&cookie);
        if ended.is_some_and(|s| s.listing.algorithm.starts_with(PREFIX)) {
            self.records.push(Record::Event(Event {
                cookie,
                kind: Kind::Release,
                value: 7,
                ..Event::default()
            }));
        }
    }

    /// The tuner was killed and its programs have gone: flows keep algorithms, not records.
    pub fn forgets(&mut self) {
        self.sockets
            .values_mut()
            .for_each(|s| s.listing.flow = None);
        self.records.clear();
    }

    /// `in_force` of the programs.
    fn is_in_force(&self) -> bool {
        let c = &self.control;
        !c.off && (c.keep || self.now_us <= c.heartbeat_us + c.patience_us)
    }

    /// What a flow runs at its next ACK; `None`: the standard, or an algorithm of the kernel's own.
    pub fn runs(&self, cookie: u64) -> Option<(Params, Vec<Row>)> {
        let listing = &self.sockets[&cookie].listing;
        let record = listing.flow.as_ref().filter(|f| !f.control);
        let number = record?.rule.filter(|_| self.is_in_force())? as u32;
        let half = &self.halves[self.control.active as usize];
        half.policies
            .get(&number)
            .filter(|_| listing.algorithm.starts_with(PREFIX))
            .cloned()
    }

    /// `TCP_CONGESTION`, by the programs.
    fn set(&mut self, cookie: u64, algorithm: &str) -> i32 {
        if self.refused.contains(algorithm) {
            return ENOENT;
        }
        self.choose(cookie, algorithm);
        if let Some(record) = &mut self.socket(cookie).flow {
            algorithm.clone_into(&mut record.given);
        }
        0
    }

    fn execute(&mut self, cookie: u64, order: &Order) -> Option<i32> {
        self.sockets.get(&cookie)?;
        let socket = self.socket(cookie);
        match order.action {
            OrderAction::None => None,
            OrderAction::Adopt => {
                let (adopted, record) = match socket.flow.take() {
                    Some(record) if !record.control => (record.adopted, record),
                    // Its program may have changed what it had when it began.
                    Some(control) => (control.adopted, remembered(socket)),
                    None => (true, remembered(socket)),
                };
                socket.flow = Some(FlowRecord {
                    rule: order.rule,
                    adopted,
                    ..record
                });
                give_buffers(socket, order.send_buffer, order.receive_buffer);
                let done = self.set(cookie, &order.algorithm);
                if done == 0 {
                    give_ceiling(self.socket(cookie), order.ceiling);
                    self.counters.matched += 1;
                }
                Some(done)
            }
            OrderAction::Release => {
                let done = self.set(cookie, &order.algorithm);
                if done == 0 {
                    let socket = self.socket(cookie);
                    let (before, ceiling) = match socket.flow.take() {
                        Some(f) => (f.max_pacing, f.ceiling),
                        None => (order.max_pacing, order.ceiling),
                    };
                    if ceiling > 0 && socket.max_pacing == u64::from(ceiling) {
                        socket.max_pacing = before;
                    }
                }
                Some(done)
            }
            OrderAction::Resize => {
                resized(
                    socket,
                    order.send_buffer * 2,
                    order.receive_buffer * 2,
                    true,
                );
                Some(0)
            }
        }
    }
}

impl Kernel for Fake {
    fn fill(&mut self, half: u32, image: &Image) -> Result<(), KernelError> {
        let mut host = self.host();
        host.did(Deed::Filled(half));
        let fails = host.failing == Some(Failing::Fill);
        host.halves[half as usize] = match fails {
            true => Image::default(),
            false => image.clone(),
        };
        answer(!fails)
    }

    fn control(&mut self, control: &Control) -> Result<(), KernelError> {
        let mut host = self.host();
        host.did(Deed::Controlled(control.clone()));
        answer(host.failing != Some(Failing::Control))?;
        host.control = control.clone();
        Ok(())
    }

    fn flows(&mut self, orders: &[(u64, Order)]) -> Result<Vec<Seen>, KernelError> {
        let mut host = self.host();
        let mut done = BTreeMap::new();
        let (most, works) = match host.failing {
            Some(Failing::Flows) => (0, false),
            Some(Failing::Orders(most)) => (most, orders.is_empty()),
            _ => (usize::MAX, true),
        };
        for (cookie, order) in orders.iter().take(most) {
            host.did(Deed::Ordered(*cookie, order.clone()));
            done.insert(*cookie, host.execute(*cookie, order));
        }
        answer(works)?;
        let all = host.sockets.values().cloned();
        let all = all.map(|mut seen| {
            seen.listing.done = done.get(&seen.listing.cookie).copied().flatten();
            seen
        });
        let all = all.collect();
        if let Some((cookie, to)) = host.opening.take() {
            host.opens(cookie, to);
        }
        Ok(all)
    }

    fn records(&mut self, _: Duration) -> Result<Vec<Record>, KernelError> {
        Ok(std::mem::take(&mut self.host().records))
    }

    fn counters(&mut self) -> Result<Counters, KernelError> {
        Ok(self.host().counters)
    }

    fn resize(&mut self, sizes: &[Resize]) -> Vec<io::Result<()>> {
        let mut host = self.host();
        let one = |size: &Resize| {
            host.did(Deed::Resized(*size));
            if host.failing == Some(Failing::Resize) {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            }
            let socket = host.socket(size.cookie);
            let [send, receive] = [size.send, size.receive].map(|s| s.unwrap_or(0));
            resized(socket, send, receive, false);
            Ok(())
        };
        sizes.iter().map(one).collect()
    }

    fn owners(&self) -> BTreeMap<u64, String> {
        let host = self.host();
        let sockets = host.sockets.values().map(|seen| &seen.listing);
        let held = sockets.filter(|listing| listing.inode != 0);
        held.map(|listing| (listing.inode, PROGRAM.to_owned()))
            .collect()
    }

    fn groups(&self) -> BTreeMap<u64, String> {
        BTreeMap::new()
    }

    fn sees(&self, namespace: u64) -> bool {
        namespace == NAMESPACE
    }

    fn now_us(&self) -> u64 {
        self.host().now_us
    }
}

fn answer(works: bool) -> Result<(), KernelError> {
    let error = || KernelError::Io("on demand", io::Error::other("no"));
    works.then_some(()).ok_or_else(error)
}

/// A flow of this host to port 80 of a peer, as its program has it.
pub fn seen(cookie: u64, to: &str) -> Seen {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    Seen {
        namespace: NAMESPACE,
        default: "reno".to_owned(),
        listing: Listing {
            cookie,
            local: (address("192.0.2.1"), 40_000 + cookie as u16),
            remote: (address(to), 80),
            state: ESTABLISHED,
            algorithm: "reno".to_owned(),
            max_pacing: u64::MAX,
            inode: cookie,
            send_buffer: 87_040,
            receive_buffer: 131_072,
            ..Listing::read(&[0; crate::layout::size::LISTING])
        },
    }
}

/// What the programs keep of a flow before they touch it.
fn remembered(socket: &Listing) -> FlowRecord {
    FlowRecord {
        cookie: socket.cookie,
        max_pacing: socket.max_pacing,
        locks: socket.locks,
        send_buffer: socket.send_buffer,
        receive_buffer: socket.receive_buffer,
        before: socket.algorithm.clone(),
        ..FlowRecord::default()
    }
}

/// Sizes that are the program's own stay, before and since.
fn give_buffers(socket: &mut Listing, send: u32, receive: u32) {
    let Some(f) = &mut socket.flow else { return };
    let sizes = [
        (
            send,
            &mut f.given_send,
            &mut f.send_buffer,
            &mut socket.send_buffer,
        ),
        (
            receive,
            &mut f.given_receive,
            &mut f.receive_buffer,
            &mut socket.receive_buffer,
        ),
    ];
    let locks = [&mut socket.locks.send, &mut socket.locks.receive];
    for ((option, given, before, now), lock) in sizes.into_iter().zip(locks) {
        if option == 0 {
            *given = 0;
        } else if if *given > 0 { given == now } else { !*lock } {
            if *given == 0 {
                *before = *now;
            }
            // The kernel keeps twice the option (socket(7)).
            (*now, *given, *lock) = (2 * option, 2 * option, true);
        }
    }
}

/// All ones: none. Zero: the programs do it at ACKs.
fn give_ceiling(socket: &mut Listing, wanted: u32) {
    let Some(f) = socket.flow.as_mut().filter(|_| wanted > 0) else {
        return;
    };
    if socket.max_pacing != u64::from(f.ceiling) {
        f.max_pacing = socket.max_pacing;
    }
    f.ceiling = match u64::from(wanted) < f.max_pacing && wanted < u32::MAX {
        true => wanted,
        false => 0,
    };
    socket.max_pacing = match f.ceiling {
        0 => f.max_pacing,
        ceiling => ceiling.into(),
    };
}

/// Zero: as it is.
fn resized(socket: &mut Listing, send: u32, receive: u32, is_locked: bool) {
    if send > 0 {
        (socket.send_buffer, socket.locks.send) = (send, is_locked);
    }
    if receive > 0 {
        (socket.receive_buffer, socket.locks.receive) = (receive, is_locked);
    }
}
