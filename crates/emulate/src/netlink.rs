//! Addresses, states and queues of interfaces, in the namespace of the calling thread
//! (rtnetlink(7)).
//!
//! Messages are those of include/uapi/linux/{netlink,rtnetlink,if_link,if_addr}.h in the byte order
//! of the machine.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// A channel to the kernel's table of interfaces.
#[derive(Debug)]
pub struct Links {
    netlink: OwnedFd,
    sequence: u32,
}

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
pub(crate) const NEW_QUEUE: u16 = 36;
pub(crate) const NEW_FILTER: u16 = 44;
/// Table, origin, scope and type of a route to a neighbour.
const MAIN: u8 = 254;
const STATIC: u8 = 4;
const LINK: u8 = 253;
const UNICAST: u8 = 1;
/// Attributes of a route.
pub(crate) const DESTINATION: u16 = 1;
pub(crate) const INTERFACE: u16 = 4;
const METRICS: u16 = 8;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 1;
const REQUEST_ACK: u16 = 1 | 4;
const REQUEST_LIST: u16 = 1 | 0x300;
pub(crate) const CREATE_EXCLUSIVE: u16 = 0x400 | 0x200;
pub(crate) const CREATE_REPLACE: u16 = 0x400 | 0x100;
/// Attributes of a queueing discipline and of a filter.
pub(crate) const KIND: u16 = 1;
const OPTIONS: u16 = 2;
/// `TC_H_ROOT`.
pub(crate) const ROOT: u32 = u32::MAX;
/// `TC_H_CLSACT`, whose handle and end of departure have numbers of their own.
pub(crate) const CLSACT: (u32, u32) = (0xffff_0000, 0xffff_fff1);
pub(crate) const EGRESS: u32 = 0xffff_fff3;
const UP: u32 = 1;
const NO_ARP: u32 = 0x80;
/// Attributes of a link: longest packet, length of its queue, segments of a large packet.
const MTU: u16 = 4;
pub(crate) const QUEUE: u16 = 13;
const MOST_SEGMENTS: u16 = 40;
/// The same of its making: address, name, kind with the kind's own, namespace.
const HARDWARE: u16 = 1;
const CALLED: u16 = 3;
const KIND_OF_LINK: u16 = 18;
const NAMESPACE: u16 = 28;
/// Inside [`KIND_OF_LINK`]; the kind veth has the other end inside its data.
const LINK_KIND: u16 = 1;
const LINK_DATA: u16 = 2;
const PEER: u16 = 1;
/// Of both ends of a wire: what one sends to itself is what the other takes (locally administered).
const BOTH_ENDS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Attributes of an address.
const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
/// No duplicate address detection, which would take a second.
const NO_DAD: u8 = 2;
pub(crate) const INET: u8 = 2;
pub(crate) const INET6: u8 = 10;

/// What a route knows of its connections (`RTAX_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Metric {
    /// Bits of the metrics that are locked.
    Lock = 1,
    /// Longest packet, bytes.
    Mtu = 2,
    /// Ceiling of the receive window, bytes.
    Window = 3,
    /// Ceiling of the congestion window if locked, segments.
    Cwnd = 7,
    /// Initial window, segments.
    InitialCwnd = 11,
    /// Bit 0: ECN.
    Features = 12,
    /// Smallest retransmission timeout, milliseconds.
    MinRto = 13,
    /// Every packet is acknowledged at once.
    QuickAck = 15,
}

impl Links {
    /// In the namespace that the thread is in now.
    pub fn open() -> io::Result<Self> {
        let (family, flags) = (AddressFamily::Netlink, SockFlag::SOCK_CLOEXEC);
        let protocol = SockProtocol::NetlinkRoute;
        let netlink = socket(family, SockType::Raw, flags, protocol)?;
        Ok(Self {
            netlink,
            sequence: 0,
        })
    }

    /// Switches an interface on.
    pub fn up(&mut self, name: &str) -> io::Result<()> {
        self.link(name, &[])
    }

    /// Sets an interface up: longest packet and length of its queue in packets.
    pub fn set_up(&mut self, name: &str, mtu: u32, queue: u32) -> io::Result<()> {
        self.link(name, &[(QUEUE, queue), (MTU, mtu)])
    }

    /// Hosts hand over so many segments at once at most on this interface; one: segmentation
    /// offload is off.
    pub fn set_offload(&mut self, name: &str, segments: u32) -> io::Result<()> {
        self.link(name, &[(MOST_SEGMENTS, segments)])
    }

    /// Makes a wire (veth): an interface here and one of the same name in the namespace `far`.
    ///
    /// Nobody is asked for addresses on it, which would be packets in its queues (IFF_NOARP): each
    /// end sends to its own, which is that of the other.
    pub fn add_wire(&mut self, name: &str, far: BorrowedFd<'_>, mtu: u32) -> io::Result<()> {
        self.ask(NEW_LINK, CREATE_EXCLUSIVE, &wire(name, far, mtu))
    }

    fn link(&mut self, name: &str, attributes: &[(u16, u32)]) -> io::Result<()> {
        let index = if_nametoindex(name)?;
        // ifinfomsg: family, padding, type, index, flags, mask of flags.
        let mut body = vec![0; 4];
        body.extend_from_slice(&index.to_ne_bytes());
        body.extend_from_slice(&UP.to_ne_bytes());
        body.extend_from_slice(&UP.to_ne_bytes());
        for (kind, value) in attributes {
            attribute(&mut body, *kind, &value.to_ne_bytes());
        }
        self.ask(NEW_LINK, 0, &body)
    }

    /// Gives an interface an address.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix: u8) -> io::Result<()> {
        let index = if_nametoindex(name)?;
        let (family, flags, bytes) = match address {
            IpAddr::V4(a) => (INET, 0, a.octets().to_vec()),
            IpAddr::V6(a) => (INET6, NO_DAD, a.octets().to_vec()),
        };
        // ifaddrmsg: family, length of the prefix, flags, scope, index.
        let mut body = vec![family, prefix, flags, 0];
        body.extend_from_slice(&index.to_ne_bytes());
        attribute(&mut body, LOCAL, &bytes);
        attribute(&mut body, ADDRESS, &bytes);
        self.ask(NEW_ADDRESS, CREATE_EXCLUSIVE, &body)
    }

    /// A route to one address over an interface, with metrics (`RTAX_*`) for the connections on it.
    pub fn add_route(
        &mut self,
        name: &str,
        to: IpAddr,
        metrics: &[(Metric, u32)],
    ) -> io::Result<()> {
        let index = if_nametoindex(name)?;
        let (family, bytes) = match to {
            IpAddr::V4(a) => (INET, a.octets().to_vec()),
            IpAddr::V6(a) => (INET6, a.octets().to_vec()),
        };
        // rtmsg: family, lengths of destination and source, type of service, table, who made it,
        // scope, type, flags.
        let length = (bytes.len() * 8) as u8;
        let mut body = vec![
            family, length, 0, 0, MAIN, STATIC, LINK, UNICAST, 0, 0, 0, 0,
        ];
        attribute(&mut body, DESTINATION, &bytes);
        attribute(&mut body, INTERFACE, &index.to_ne_bytes());
        let mut nested = Vec::new();
        for (metric, value) in metrics {
            attribute(&mut nested, *metric as u16, &value.to_ne_bytes());
        }
        attribute(&mut body, METRICS, &nested);
        self.ask(NEW_ROUTE, CREATE_EXCLUSIVE, &body)
    }

    /// Puts a queueing discipline of this kind at the root of an interface, in place of what is
    /// there.
    pub fn set_queue(&mut self, name: &str, kind: &str, options: &[u8]) -> io::Result<()> {
        let message = traffic(name, kind, [0, ROOT, 0], options)?;
        self.ask(NEW_QUEUE, CREATE_REPLACE, &message)
    }

    /// Has a BPF classifier look at what leaves by an interface: one of a single instruction, which
    /// lets everything pass.
    pub fn add_classifier(&mut self, name: &str) -> io::Result<()> {
        let hook = traffic(name, "clsact", [CLSACT.0, CLSACT.1, 0], &[])?;
        self.ask(NEW_QUEUE, CREATE_EXCLUSIVE, &hook)?;
        // TCA_BPF_CLASSID, TCA_BPF_OPS_LEN, TCA_BPF_OPS.
        let (class, length, program) = (3, 4, 5);
        let mut options = Vec::new();
        attribute(&mut options, class, &1u32.to_ne_bytes());
        attribute(&mut options, length, &1u16.to_ne_bytes());
        // struct sock_filter: BPF_RET | BPF_K, two jumps, 0 (no match).
        let pass = [6u16.to_ne_bytes().as_slice(), &[0; 6]].concat();
        attribute(&mut options, program, &pass);
        // Of the first priority, for every protocol.
        let of = 1 << 16 | u32::from(3u16.to_be());
        let filter = traffic(name, "bpf", [0, EGRESS, of], &options)?;
        self.ask(NEW_FILTER, CREATE_EXCLUSIVE, &filter)
    }

    pub(crate) fn ask(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.request(kind, REQUEST_ACK | flags, body)?;
        let mut answer = [0; 4096];
        let n = recv(self.netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        match answer.get(..n) {
            // nlmsgerr: minus the error, or 0.
            Some(a) if n >= 20 && u16::from_ne_bytes([a[4], a[5]]) == ERROR => {
                match i32::from_ne_bytes([a[16], a[17], a[18], a[19]]) {
                    0 => Ok(()),
                    error => Err(Errno::from_raw(-error).into()),
                }
            }
            _ => Err(io::Error::other("netlink: an answer that is none")),
        }
    }

    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence += 1;
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&flags.to_ne_bytes());
        message.extend_from_slice(&self.sequence.to_ne_bytes());
        message.extend_from_slice(&0u32.to_ne_bytes());
        message.extend_from_slice(body);
        send(self.netlink.as_raw_fd(), &message, MsgFlags::empty())?;
        Ok(())
    }

    /// Answers with their type, without their headers: one, or all of a list.
    pub(crate) fn look(&mut self, kind: u16, list: bool, body: &[u8]) -> io::Result<Vec<Answer>> {
        self.request(kind, if list { REQUEST_LIST } else { REQUEST }, body)?;
        let mut answers = Vec::new();
        let mut bytes = vec![0; 1 << 16];
        loop {
            let n = recv(self.netlink.as_raw_fd(), &mut bytes, MsgFlags::empty())?;
            let mut left = &bytes[..n];
            while let Some((length, kind)) = header(left) {
                let (message, rest) = left.split_at(length.min(left.len()));
                let body = message.get(16..).unwrap_or_default();
                match kind {
                    DONE => return Ok(answers),
                    ERROR => {
                        let error = body.first_chunk().map_or(0, |e| i32::from_ne_bytes(*e));
                        return Err(Errno::from_raw(-error).into());
                    }
                    kind => answers.push((kind, body.to_vec())),
                }
                left = rest
                    .get(length.next_multiple_of(4) - length..)
                    .unwrap_or_default();
            }
            if !list {
                return Ok(answers);
            }
        }
    }
}

/// Type and body of a message.
pub(crate) type Answer = (u16, Vec<u8>);

/// Length and type of the message that `bytes` begin with.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    (16..=bytes.len())
        .contains(&length)
        .then_some((length, kind))
}

/// The value of an attribute among those that `bytes` hold.
pub(crate) fn value(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let value = bytes.get(4..length)?;
        if kind & 0x3fff == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

fn wire(name: &str, far: BorrowedFd<'_>, mtu: u32) -> Vec<u8> {
    // ifinfomsg: family, padding, type, index, flags, mask of flags.
    let end = || {
        let mut end = [0, 0, NO_ARP, NO_ARP].map(u32::to_ne_bytes).concat();
        attribute(&mut end, CALLED, format!("{name}\0").as_bytes());
        attribute(&mut end, HARDWARE, &BOTH_ENDS);
        attribute(&mut end, MTU, &mtu.to_ne_bytes());
        end
    };
    let mut peer = end();
    attribute(&mut peer, NAMESPACE, &far.as_raw_fd().to_ne_bytes());
    let mut data = Vec::new();
    attribute(&mut data, PEER, &peer);
    let mut kind = Vec::new();
    attribute(&mut kind, LINK_KIND, b"veth\0");
    attribute(&mut kind, LINK_DATA, &data);
    let mut body = end();
    attribute(&mut body, KIND_OF_LINK, &kind);
    body
}

/// `struct tcmsg` and its attributes; handle, parent and info of what is made.
pub(crate) fn traffic(
    name: &str,
    kind: &str,
    numbers: [u32; 3],
    options: &[u8],
) -> io::Result<Vec<u8>> {
    let mut body = vec![0; 4];
    body.extend_from_slice(&if_nametoindex(name)?.to_ne_bytes());
    for number in numbers {
        body.extend_from_slice(&number.to_ne_bytes());
    }
    attribute(&mut body, KIND, format!("{kind}\0").as_bytes());
    if !options.is_empty() {
        attribute(&mut body, OPTIONS, options);
    }
    Ok(body)
}

pub(crate) fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Packets that an interface lost, in either direction, in the namespace of the calling thread
/// (`/proc/net/dev`).
pub fn drops(name: &str) -> io::Result<u64> {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = table.lines().find_map(|line| {
        let (interface, counters) = line.split_once(':')?;
        (interface.trim() == name).then_some(counters)
    });
    let counters: Vec<u64> = line
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    // Received: bytes packets errs drop ...; sent, from the ninth on, likewise.
    match counters.as_slice() {
        [_, _, rx_errors, rx, _, _, _, _, _, _, tx_errors, tx, ..] => {
            Ok(rx_errors + rx + tx_errors + tx)
        }
        _ => Err(io::Error::other(format!("no counters of interface {name}"))),
    }
}
