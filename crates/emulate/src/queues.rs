//! Queues, classes and classifiers of an interface, and which interface leads to an address, in the
//! namespace of the calling thread (rtnetlink(7), tc(8)).
//!
//! Messages are those of include/uapi/linux/{pkt_sched,pkt_cls}.h.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use fullpipe_units::Span;
use nix::net::if_::{if_indextoname, if_nametoindex};
use nix::sched::{CloneFlags, unshare};

use crate::namespace::on_a_thread;

use crate::netlink::{
    CLSACT, CREATE_EXCLUSIVE, CREATE_REPLACE, DESTINATION, EGRESS, INET, INET6, INTERFACE, KIND,
    Links, NEW_FILTER, NEW_QUEUE, QUEUE, ROOT, attribute, traffic, value,
};

const GET_LINK: u16 = 18;
const GET_ROUTE: u16 = 26;
const REMOVE_QUEUE: u16 = 37;
const GET_QUEUE: u16 = 38;
const NEW_CLASS: u16 = 40;
const GET_CLASS: u16 = 42;
const REMOVE_FILTER: u16 = 45;
const GET_FILTER: u16 = 46;
/// `TCA_BPF_FD` and `TCA_BPF_NAME`.
const PROGRAM: u16 = 6;
const NAME: u16 = 7;
/// `TCA_HTB_PARMS`, `TCA_HTB_INIT`, `TCA_HTB_RATE64` and `TCA_HTB_CEIL64`.
const PARAMETERS: u16 = 1;
const GLOBAL: u16 = 2;
const WIDE_RATE: u16 = 6;
const WIDE_CEILING: u16 = 7;
/// `TCA_STATS2`, and `TCA_STATS_BASIC`, `TCA_STATS_QUEUE` and `TCA_STATS_PKT64` in it.
const STATISTICS: u16 = 7;
const BASIC: u16 = 1;
const OF_QUEUE: u16 = 3;
const PACKETS: u16 = 8;
/// Nanoseconds of a tick, in which sch_htb is told how much it may save (`PSCHED_SHIFT`).
const TICK: u64 = 64;

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// `fq`, `htb`, ...
    pub kind: String,
    /// Major number; 0: the kernel put it there by itself.
    pub handle: u16,
    /// It is at the root of its interface.
    pub is_root: bool,
}

/// What a queueing discipline has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets that left it.
    pub left: u64,
    /// Packets lost in it or below it.
    pub dropped: u64,
    /// Packets in it or below it now.
    pub waiting: u64,
}

/// How packets leave by a class of sch_htb: as by an interface that has a rate and a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Bytes per second.
    pub rate: u64,
    /// Time at this rate that is made up for behind a timer that came late.
    pub saved: Span,
    /// Packets that may wait. One that finds no room goes back to its sender, whose TCP is told.
    pub waiting: u32,
    /// Longest packet, bytes.
    pub packet: u32,
}

/// The `SO_PRIORITY` of sockets whose packets leave by a class of sch_htb.
pub fn priority_of(handle: u16, class: u16) -> i32 {
    (u32::from(handle) << 16 | u32::from(class)).cast_signed()
}

impl Drain {
    /// One as good as any, to try whether the kernel gives it.
    pub const TRIAL: Self = Self {
        rate: 1_250_000,
        saved: Span::ZERO,
        waiting: 100,
        packet: 1500,
    };
}

/// Tries whether this kernel has what a [`Drain`] takes, in a namespace that is made for it. May
/// load modules.
///
/// # Errors
/// The kernel has no sch_htb or no queue for its classes, or there are no namespaces.
pub fn try_drain() -> io::Result<()> {
    on_a_thread(|| {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let mut links = Links::open()?;
        links.put_htb("lo", 1)?;
        links.put_drain("lo", 1, 1, Drain::TRIAL)
    })
}

/// Packets that a classifier is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// All that leave by the interface (`clsact`).
    Egress,
    /// Those that the queue with this major number is to sort.
    Queue(u16),
}

impl Hook {
    fn parent(self) -> u32 {
        match self {
            Hook::Egress => EGRESS,
            Hook::Queue(handle) => u32::from(handle) << 16,
        }
    }
}

impl Links {
    /// Name of the interface by which packets to `address` leave.
    pub fn towards(&mut self, address: IpAddr) -> io::Result<String> {
        let (family, bytes) = match address {
            IpAddr::V4(a) => (INET, a.octets().to_vec()),
            IpAddr::V6(a) => (INET6, a.octets().to_vec()),
        };
        let mut body = vec![family, (bytes.len() * 8) as u8];
        body.resize(12, 0);
        attribute(&mut body, DESTINATION, &bytes);
        let answers = self.look(GET_ROUTE, false, &body)?;
        let route = answers.first().and_then(|(_, route)| route.get(12..));
        let index = route.and_then(|r| value(r, INTERFACE)?.first_chunk());
        let index = index.ok_or_else(|| io::Error::other("a route without an interface"))?;
        let name = if_indextoname(u32::from_ne_bytes(*index))?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// Packets that the queue of an interface holds (`txqueuelen`).
    pub fn queue_length(&mut self, name: &str) -> io::Result<u32> {
        let mut body = vec![0; 4];
        body.extend_from_slice(&if_nametoindex(name)?.to_ne_bytes());
        body.resize(16, 0);
        let answers = self.look(GET_LINK, false, &body)?;
        let link = answers.first().and_then(|(_, link)| link.get(16..));
        let length = link.and_then(|l| value(l, QUEUE)?.first_chunk());
        let length = length.ok_or_else(|| io::Error::other("an interface without a queue"))?;
        Ok(u32::from_ne_bytes(*length))
    }

    /// The queueing disciplines of an interface.
    pub fn queues(&mut self, name: &str) -> io::Result<Vec<Queue>> {
        let index = if_nametoindex(name)?;
        let answers = self.look(GET_QUEUE, true, &[0; 20])?;
        let of = |body: &[u8]| {
            let word = |k: usize| Some(u32::from_ne_bytes(*body.get(4 * k..)?.first_chunk()?));
            (word(1)? == index).then_some(())?;
            let kind = value(body.get(20..)?, KIND)?;
            let kind = kind.split(|b| *b == 0).next().unwrap_or_default();
            Some(Queue {
                kind: String::from_utf8_lossy(kind).into_owned(),
                handle: (word(2)? >> 16) as u16,
                is_root: word(3)? == ROOT,
            })
        };
        Ok(answers.iter().filter_map(|(_, body)| of(body)).collect())
    }

    /// What the queueing disciplines of an interface have counted, by their major numbers.
    pub(crate) fn counted(&mut self, name: &str) -> io::Result<Vec<(u16, Counted)>> {
        let index = if_nametoindex(name)?;
        let answers = self.look(GET_QUEUE, true, &[0; 20])?;
        let word = |of: &[u8], k: usize| Some(u32::from_ne_bytes(*of.get(4 * k..)?.first_chunk()?));
        let of = |body: &[u8]| {
            (word(body, 1)? == index).then_some(())?;
            let statistics = value(body.get(20..)?, STATISTICS)?;
            // struct gnet_stats_basic: bytes (64 bits), packets.
            let left = u64::from(word(value(statistics, BASIC)?, 2)?);
            let wide = value(statistics, PACKETS).and_then(|n| n.first_chunk());
            // struct gnet_stats_queue: length, bytes, drops.
            let queue = value(statistics, OF_QUEUE)?;
            let counted = Counted {
                left: wide.map_or(left, |n| u64::from_ne_bytes(*n)),
                dropped: u64::from(word(queue, 2)?),
                waiting: u64::from(word(queue, 0)?),
            };
            Some(((word(body, 2)? >> 16) as u16, counted))
        };
        Ok(answers.iter().filter_map(|(_, body)| of(body)).collect())
    }

    /// Puts sch_htb, with this major number, at the root of an interface. What no class is for
    /// leaves as before.
    pub fn put_htb(&mut self, name: &str, handle: u16) -> io::Result<()> {
        // struct tc_htb_glob: version, rate to quantum, class of the rest, two of no meaning.
        let mut options = Vec::new();
        let global = [3u32, 10, 0, 0, 0].map(u32::to_ne_bytes).concat();
        attribute(&mut options, GLOBAL, &global);
        let body = traffic(name, "htb", [u32::from(handle) << 16, ROOT, 0], &options)?;
        self.ask(NEW_QUEUE, CREATE_REPLACE, &body)
    }

    /// A class of it from which packets leave one by one at `rate` bytes per second.
    pub fn put_class(&mut self, name: &str, handle: u16, class: u16, rate: u32) -> io::Result<()> {
        // The least: no tokens are saved for a second packet.
        let body = class_of(name, [handle, class], u64::from(rate), 1, 1514)?;
        self.ask(NEW_CLASS, CREATE_REPLACE, &body)
    }

    /// A class of it as the interface of a host, with a queue (pfifo) of its own; packets leave by
    /// it that have its [priority](priority_of).
    pub fn put_drain(
        &mut self,
        name: &str,
        handle: u16,
        class: u16,
        drain: Drain,
    ) -> io::Result<()> {
        let ticks = u32::try_from(drain.saved.as_nanos() / TICK).unwrap_or(u32::MAX);
        let body = class_of(
            name,
            [handle, class],
            drain.rate,
            ticks.max(1),
            drain.packet,
        )?;
        self.ask(NEW_CLASS, CREATE_REPLACE, &body)?;
        // struct tc_fifo_qopt: packets.
        let limit = drain.waiting.max(1).to_ne_bytes();
        let parent = u32::from(handle) << 16 | u32::from(class);
        let body = traffic(name, "pfifo", [0, parent, 0], &limit)?;
        self.ask(NEW_QUEUE, CREATE_REPLACE, &body)
    }

    /// Packets that each class of a queue has sent back so far, for want of room.
    pub fn refused(&mut self, name: &str, handle: u16) -> io::Result<Vec<(u16, u64)>> {
        let body = bare(name, 0, u32::from(handle) << 16, 0)?;
        let answers = self.look(GET_CLASS, true, &body)?;
        let of = |body: &[u8]| {
            let word =
                |of: &[u8], k: usize| Some(u32::from_ne_bytes(*of.get(4 * k..)?.first_chunk()?));
            let class = word(body, 2)? as u16;
            // struct gnet_stats_queue: length, bytes, drops.
            let queue = value(value(body.get(20..)?, STATISTICS)?, OF_QUEUE)?;
            Some((class, u64::from(word(queue, 2)?)))
        };
        Ok(answers.iter().filter_map(|(_, body)| of(body)).collect())
    }

    /// Removes the queue with this major number from the root of an interface, which gets the
    /// kernel's own again.
    pub fn remove_root(&mut self, name: &str, handle: u16) -> io::Result<()> {
        let body = bare(name, u32::from(handle) << 16, ROOT, 0)?;
        self.ask(REMOVE_QUEUE, 0, &body)
    }

    /// Makes room for classifiers of what leaves. False: there was some.
    pub fn put_egress(&mut self, name: &str) -> io::Result<bool> {
        let body = traffic(name, "clsact", [CLSACT.0, CLSACT.1, 0], &[])?;
        match self.ask(NEW_QUEUE, CREATE_EXCLUSIVE, &body) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Takes that room away.
    pub fn remove_egress(&mut self, name: &str) -> io::Result<()> {
        let body = bare(name, CLSACT.0, CLSACT.1, 0)?;
        self.ask(REMOVE_QUEUE, 0, &body)
    }

    /// Has a program classify packets of every protocol; its priority tells it from others.
    pub fn put_program(
        &mut self,
        name: &str,
        at: Hook,
        priority: u16,
        program: BorrowedFd<'_>,
        called: &str,
    ) -> io::Result<()> {
        let mut options = Vec::new();
        attribute(&mut options, PROGRAM, &program.as_raw_fd().to_ne_bytes());
        attribute(&mut options, NAME, format!("{called}\0").as_bytes());
        let body = traffic(
            name,
            "bpf",
            [1, at.parent(), of_priority(priority)],
            &options,
        )?;
        self.ask(NEW_FILTER, CREATE_EXCLUSIVE, &body)
    }

    /// Takes the classifiers of a priority away.
    pub fn remove_programs(&mut self, name: &str, at: Hook, priority: u16) -> io::Result<()> {
        let body = bare(name, 0, at.parent(), of_priority(priority))?;
        self.ask(REMOVE_FILTER, 0, &body)
    }

    /// Priorities of the classifiers that look there.
    pub fn programs(&mut self, name: &str, at: Hook) -> io::Result<Vec<u16>> {
        let body = bare(name, 0, at.parent(), 0)?;
        let answers = self.look(GET_FILTER, true, &body)?;
        let priority =
            |body: &[u8]| Some(u32::from_ne_bytes(*body.get(16..)?.first_chunk()?) >> 16);
        let all = answers.iter().filter_map(|(_, body)| priority(body));
        Ok(all.map(|p| p as u16).collect())
    }
}

/// `tcm_info` of a classifier for every protocol (`ETH_P_ALL`).
fn of_priority(priority: u16) -> u32 {
    u32::from(priority) << 16 | u32::from(3u16.to_be())
}

/// A class of sch_htb with its rate in bytes per second, the ticks at this rate that are saved, and
/// the bytes of its turn among others.
fn class_of(
    name: &str,
    [handle, class]: [u16; 2],
    rate: u64,
    ticks: u32,
    quantum: u32,
) -> io::Result<Vec<u8>> {
    // struct tc_ratespec: log of a cell, link layer, overhead, alignment, smallest, rate.
    let mut spec = vec![0; 8];
    let narrow = u32::try_from(rate.max(1)).unwrap_or(u32::MAX);
    spec.extend_from_slice(&narrow.to_ne_bytes());
    // struct tc_htb_opt: rate, ceiling, tokens of both, quantum, level, priority.
    let mut parameters = [spec.clone(), spec].concat();
    parameters.extend([ticks, ticks, quantum, 0, 0].map(u32::to_ne_bytes).concat());
    let mut options = Vec::new();
    attribute(&mut options, PARAMETERS, &parameters);
    if rate > u64::from(narrow) {
        attribute(&mut options, WIDE_RATE, &rate.to_ne_bytes());
        attribute(&mut options, WIDE_CEILING, &rate.to_ne_bytes());
    }
    let root = u32::from(handle) << 16;
    traffic(name, "htb", [root | u32::from(class), root, 0], &options)
}

/// `struct tcmsg` alone.
fn bare(name: &str, handle: u32, parent: u32, info: u32) -> io::Result<Vec<u8>> {
    let mut body = vec![0; 4];
    body.extend_from_slice(&if_nametoindex(name)?.to_ne_bytes());
    for number in [handle, parent, info] {
        body.extend_from_slice(&number.to_ne_bytes());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use nix::sys::socket::{setsockopt, sockopt};

    use super::*;

    /// On the loopback of a namespace of its own.
    #[test]
    fn what_is_put_on_an_interface_is_seen_and_goes() {
        let tried = on_a_thread(|| -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let mut links = Links::open()?;
            links.up("lo")?;
            assert_eq!(links.towards(IpAddr::from([127, 0, 0, 1]))?, "lo");
            assert!(links.towards(IpAddr::from([192, 0, 2, 1])).is_err());
            assert_eq!(links.queue_length("lo")?, 1000);
            let before = links.queues("lo")?;
            assert!(before.iter().all(|q| q.handle == 0), "{before:?}");
            links.put_htb("lo", 0xfb10)?;
            links.put_class("lo", 0xfb10, 17, 375_000)?;
            links.put_class("lo", 0xfb10, 17, 100_000)?;
            let root = Queue {
                kind: "htb".into(),
                handle: 0xfb10,
                is_root: true,
            };
            assert!(links.queues("lo")?.contains(&root));
            assert!(links.remove_root("lo", 0xfb11).is_err(), "another's");
            links.remove_root("lo", 0xfb10)?;
            assert_eq!(links.queues("lo")?, before);
            assert!(links.put_egress("lo")?);
            assert!(!links.put_egress("lo")?);
            assert_eq!(links.programs("lo", Hook::Egress)?, [0; 0]);
            links.remove_egress("lo")?;
            assert_eq!(links.queues("lo")?, before);
            Ok(())
        });
        skip_or_fail(tried);
    }

    /// A hundred bytes per second: the first packet leaves, two wait, and the others are refused,
    /// which their own class counts. What has no class leaves at once.
    #[test]
    fn a_full_class_refuses_and_counts() {
        let tried = on_a_thread(|| -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let mut links = Links::open()?;
            links.up("lo")?;
            let drain = Drain {
                rate: 100,
                saved: Span::ZERO,
                waiting: 2,
                packet: 1500,
            };
            links.put_htb("lo", 1)?;
            links.put_drain("lo", 1, 17, drain)?;
            let fast = Drain {
                rate: 10_000_000_000,
                ..drain
            };
            links.put_drain("lo", 1, 18, fast)?;
            let to = UdpSocket::bind("127.0.0.1:0")?;
            let from = UdpSocket::bind("127.0.0.1:0")?;
            to.set_nonblocking(true)?;
            let sent = |n: usize| {
                (0..n)
                    .filter(|_| from.send_to(&[0; 1000], to.local_addr().unwrap()).is_ok())
                    .count()
            };
            assert_eq!(sent(5), 5);
            setsockopt(&from, sockopt::Priority, &priority_of(1, 17))?;
            sent(7);
            let mut refused = links.refused("lo", 1)?;
            refused.sort_unstable();
            assert_eq!(refused, [(17, 4), (18, 0)]);
            let came = std::iter::from_fn(|| to.recv(&mut [0; 2000]).ok()).count();
            assert_eq!(came, 6);
            Ok(())
        });
        skip_or_fail(tried);
    }

    fn skip_or_fail(tried: io::Result<()>) {
        match tried {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                eprintln!("skipped: a network namespace: {e}");
            }
            Err(e) => panic!("{e}"),
        }
    }
}
