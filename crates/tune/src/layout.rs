//! The bytes in the maps: `bpf/shared.h`, written and read as plain bytes in the machine's order. A
//! test compiles the header and compares.

use std::net::{IpAddr, Ipv6Addr};

use fullpipe_policy::{Params, Row, Side, TABLE_ROWS};

/// Rules of a policy at most.
pub const RULES: usize = 64;
/// Numbers of what flows get: those of rules that go beside those of rules that come.
pub const POLICIES: usize = 128;
/// Networks of a policy at most.
pub const NETWORKS: usize = 16_384;
/// Port ranges of a rule at most.
pub const RANGES: usize = 8;
/// Classes of sch_htb, of a rule that spreads initial windows.
pub const CLASSES: u32 = 16;
/// Handle of the queue with these classes.
pub const QUEUE: u16 = 0xfb10;

/// Sizes of the structures, bytes.
pub mod size {
    /// `struct listing`.
    pub const LISTING: usize = 256;
    /// `struct event`.
    pub const EVENT: usize = 64;
    /// `struct opened`.
    pub const OPENED: usize = 176;
}

/// Room of an algorithm's name with its end (`TCP_CA_NAME_MAX`, include/net/tcp.h).
const NAME: usize = 16;

/// Fields one after the other.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u32(mut self, x: u32) -> Self {
        self.0.extend(x.to_ne_bytes());
        self
    }

    fn u64(mut self, x: u64) -> Self {
        self.0.extend(x.to_ne_bytes());
        self
    }

    fn bytes(mut self, x: &[u8]) -> Self {
        self.0.extend(x);
        self
    }

    fn ranges(mut self, ranges: &[(u16, u16)]) -> Self {
        for k in 0..RANGES {
            let (low, high) = ranges.get(k).copied().unwrap_or_default();
            self.0.extend(low.to_ne_bytes());
            self.0.extend(high.to_ne_bytes());
        }
        self
    }

    fn name(self, name: &str) -> Self {
        let mut bytes = [0; NAME];
        let n = name.len().min(NAME - 1);
        bytes[..n].copy_from_slice(&name.as_bytes()[..n]);
        self.bytes(&bytes)
    }
}

/// Fields one after the other; zeros behind the end.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let n = N.min(self.0.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        out
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn i32(&mut self) -> i32 {
        i32::from_ne_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.u32() != 0
    }

    fn rule(&mut self) -> Option<usize> {
        self.u32().checked_sub(1).map(|n| n as usize)
    }

    pub(crate) fn name(&mut self) -> String {
        let bytes: [u8; NAME] = self.take();
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(NAME);
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    pub(crate) fn address(&mut self) -> IpAddr {
        let mapped = Ipv6Addr::from(self.take::<16>());
        mapped.to_ipv4_mapped().map_or(mapped.into(), IpAddr::V4)
    }
}

/// An address as the maps have it: IPv4 as `::ffff:a.b.c.d`.
pub fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// `struct prefix`; `bits` of the mapped address.
pub fn prefix(half: u32, address: [u8; 16], bits: u8) -> Vec<u8> {
    let w = Writer::default().u32(8 + u32::from(bits));
    w.bytes(&[half as u8]).bytes(&address).0
}

/// What a number without a rule has: no law, so that its flows run the standard.
pub const NO_LAW: Params = Params {
    law: u32::MAX,
    flags: 0,
    rows: 0,
    max_ssthresh: 0,
    gamma: 0,
    gamma_then: 0,
    clamp: 0,
    initial_window: 0,
    spread_us: 0,
    update_interval_us: 0,
    pacing: 0,
    number: [0; 8],
};

/// `struct params`.
pub fn params(p: &Params) -> Vec<u8> {
    let words = [
        p.law,
        p.flags,
        p.rows,
        p.max_ssthresh,
        p.gamma,
        p.gamma_then,
        p.clamp,
        p.initial_window,
        p.spread_us,
        p.update_interval_us,
    ];
    let w = words.iter().fold(Writer::default(), |w, &x| w.u32(x));
    p.number.iter().fold(w.u64(p.pacing), |w, &x| w.u64(x)).0
}

/// `struct table`.
pub fn table(rows: &[Row]) -> Vec<u8> {
    let row = |k| rows.get(k).copied().unwrap_or_default();
    let add = |w: Writer, r: Row| w.u32(r.window).u32(r.increase).u32(r.decrease);
    (0..TABLE_ROWS).map(row).fold(Writer::default(), add).0
}

/// `struct match`: which flows a rule is for, beside its prefixes, and what they get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Bits of [`match_flag`].
    pub flags: u32,
    /// 0 either end opened the connection, 1 this host, 2 the peer.
    pub side: u32,
    /// Flows of 65536 that get the policy.
    pub share: u32,
    /// Ranges of ports, both ends included, at most [`RANGES`].
    pub ranges: Vec<(u16, u16)>,
    /// The algorithm's name.
    pub algorithm: String,
    /// Bytes for `SO_SNDBUF`; 0: as it is.
    pub send_buffer: u32,
    /// Bytes for `SO_RCVBUF`; 0: as it is.
    pub receive_buffer: u32,
    /// Number of what they get: rules move when a file changes, numbers stay.
    pub policy: u32,
}

/// Bits of [`Match::flags`].
pub mod match_flag {
    /// There is a rule, and nothing of it is the daemon's to decide.
    pub const USED: u32 = 1;
    /// A program's own choice stays.
    pub const RESPECT_APP: u32 = 2;
}

impl Match {
    /// The structure in the machine's byte order.
    pub fn bytes(&self) -> Vec<u8> {
        Writer::default()
            .u32(self.flags)
            .u32(self.side)
            .u32(self.share)
            .u32(self.ranges.len().min(RANGES) as u32)
            .ranges(&self.ranges)
            .name(&self.algorithm)
            .u32(self.send_buffer)
            .u32(self.receive_buffer)
            .u32(self.policy)
            .0
    }
}

/// `struct control`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Which half of the maps readers use, 0 or 1.
    pub active: u32,
    /// Another one makes flows look again which rule they are of.
    pub generation: u32,
    /// Every flow runs the standard.
    pub off: bool,
    /// The daemon's end changes nothing.
    pub keep: bool,
    /// Last sign of life, microseconds of `CLOCK_MONOTONIC`.
    pub heartbeat_us: u64,
    /// Longest time between two signs, microseconds.
    pub patience_us: u64,
    /// Cookie of the flow whose ACKs are recorded; all: `u64::MAX`; none: 0.
    pub watched: u64,
    /// Ports that are never touched, at most [`RANGES`].
    pub never: Vec<(u16, u16)>,
    /// Network namespace whose new flows get rules, its inode; 0: all.
    pub namespace: u32,
}

impl Control {
    /// The structure in the machine's byte order.
    pub fn bytes(&self) -> Vec<u8> {
        Writer::default()
            .u32(self.active)
            .u32(self.generation)
            .u32(self.off.into())
            .u32(self.keep.into())
            .u64(self.heartbeat_us)
            .u64(self.patience_us)
            .u64(self.watched)
            .u32(self.never.len().min(RANGES) as u32)
            .ranges(&self.never)
            .u32(self.namespace)
            .0
    }
}

/// Which sizes of its buffers a program has set itself (`SO_SNDBUF`, `SO_RCVBUF`): the kernel tunes
/// the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Locks {
    /// `sk_sndbuf` is the program's.
    pub send: bool,
    /// `sk_rcvbuf` is the program's.
    pub receive: bool,
}

impl Locks {
    /// From `sk_userlocks`, or the option `SO_BUF_LOCK`.
    pub fn of(bits: u32) -> Self {
        Self {
            send: bits & 1 != 0,
            receive: bits & 2 != 0,
        }
    }

    /// Value of the socket option, one bit per direction.
    pub fn bits(self) -> u32 {
        u32::from(self.send) | u32::from(self.receive) << 1
    }
}

/// `struct order`: what is done to a running flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// One thing at a time.
    pub action: OrderAction,
    /// Number of the rule of an adopted flow.
    pub rule: Option<usize>,
    /// The algorithm that it gets.
    pub algorithm: String,
    /// Bytes for `SO_SNDBUF`; 0: as it is.
    pub send_buffer: u32,
    /// Bytes for `SO_RCVBUF`; 0: as it is.
    pub receive_buffer: u32,
    /// On release, where the kernel side keeps no record: `sk_max_pacing_rate` before.
    pub max_pacing: u64,
    /// And the ceiling that it was given; 0: none. On adoption by an algorithm of the kernel: the
    /// ceiling that it gets, all ones for none; 0 where the programs set it at the next ACK.
    pub ceiling: u32,
}

/// What is done to a running flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OrderAction {
    /// Nothing is changed: the socket is listed as it is.
    #[default]
    None = 0,
    /// It gets what a rule says, and what it had is kept.
    Adopt = 1,
    /// It gets back what it had, its buffers aside.
    Release = 2,
    /// It gets buffers by options, which end their tuning.
    Resize = 3,
}

impl Order {
    /// The structure in the machine's byte order.
    pub fn bytes(&self) -> Vec<u8> {
        Writer::default()
            .u64(self.max_pacing)
            .u32(self.ceiling)
            .u32(self.action as u32)
            .u32(self.rule.map_or(0, |r| r as u32 + 1))
            .u32(self.send_buffer)
            .u32(self.receive_buffer)
            .name(&self.algorithm)
            .u32(0)
            .0
    }
}

/// `struct flow`: what the kernel side keeps of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// `sk_max_pacing_rate` before, bytes per second; `u64::MAX`: no ceiling.
    pub max_pacing: u64,
    /// The rule that it is of.
    pub rule: Option<usize>,
    /// It stays as it was, for comparison (`share`).
    pub control: bool,
    /// It ran before it was given a rule.
    pub adopted: bool,
    /// The ceiling of pacing that it was given; 0: none.
    pub ceiling: u32,
    /// `sk_pacing_status` before: whether the sender paced at all.
    pub pacing_status: u32,
    /// Before.
    pub locks: Locks,
    /// `sk_sndbuf` before.
    pub send_buffer: u32,
    /// `sk_rcvbuf` before.
    pub receive_buffer: u32,
    /// `sk_sndbuf` that it was given; 0: none.
    pub given_send: u32,
    /// `sk_rcvbuf` that it was given; 0: none.
    pub given_receive: u32,
    /// Algorithm before.
    pub before: String,
    /// Algorithm that it was given.
    pub given: String,
    /// Reductions after a loss or a mark.
    pub cuts: u32,
    /// After a timeout.
    pub timeouts: u32,
    /// After a local stall.
    pub stalls: u32,
    /// Local stalls without a reduction.
    pub stalls_ignored: u32,
}

impl FlowRecord {
    fn read(r: &mut Reader<'_>) -> Self {
        Self {
            cookie: r.u64(),
            max_pacing: r.u64(),
            rule: r.rule(),
            control: r.flag(),
            adopted: r.flag(),
            ceiling: r.u32(),
            pacing_status: r.u32(),
            locks: Locks::of(r.u32()),
            send_buffer: r.u32(),
            receive_buffer: r.u32(),
            given_send: r.u32(),
            given_receive: r.u32(),
            before: r.name(),
            given: r.name(),
            cuts: r.u32(),
            timeouts: r.u32(),
            stalls: r.u32(),
            stalls_ignored: r.u32(),
        }
    }
}

/// `struct listing`: a TCP socket of the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// This host's end.
    pub local: (IpAddr, u16),
    /// The peer's.
    pub remote: (IpAddr, u16),
    /// The kernel's number: 1 is ESTABLISHED, 10 LISTEN.
    pub state: u32,
    /// The algorithm's name.
    pub algorithm: String,
    /// Somebody has chosen it for this socket: its program, or this one.
    pub chosen: bool,
    /// Result of an order: 0, or why the kernel refused; `None`: there was none.
    pub done: Option<i32>,
    /// Segments.
    pub cwnd: u32,
    /// Segments; `0x7fffffff` before the first reduction.
    pub ssthresh: u32,
    /// Microseconds.
    pub srtt_us: u32,
    /// Bytes.
    pub mss: u32,
    /// Segments sent again.
    pub retransmitted: u32,
    /// Which end opened the connection, if the kernel side has seen it begin.
    pub side: Option<Side>,
    /// Bytes.
    pub bytes_acked: u64,
    /// `sk_max_pacing_rate`, bytes per second; `u64::MAX`: no ceiling.
    pub max_pacing: u64,
    /// Of its file; 0: no program has it.
    pub inode: u64,
    /// Number of its control group.
    pub cgroup: u64,
    /// `sk_sndbuf`.
    pub send_buffer: u32,
    /// `sk_rcvbuf`.
    pub receive_buffer: u32,
    /// Sizes that the kernel does not tune.
    pub locks: Locks,
    /// `sk_pacing_status`: 0 where the sender does not pace.
    pub pacing_status: u32,
    /// Increase in force, segments per round trip; `None` before the first, and of algorithms that
    /// are not ours.
    pub a: Option<f64>,
    /// Fraction that a loss removes, in force.
    pub b: Option<f64>,
    /// What the kernel side keeps of it, if it is ours.
    pub flow: Option<FlowRecord>,
}

impl Listing {
    /// From [`size::LISTING`] bytes, the kernel's `srtt_us` in eighths of a microsecond.
    pub fn read(bytes: &[u8]) -> Self {
        let mut r = Reader(bytes);
        let cookie = r.u64();
        let (local, remote) = (r.address(), r.address());
        let (local_port, remote_port) = (r.u16(), r.u16());
        let state = r.u32();
        let algorithm = r.name();
        let chosen = r.flag();
        let done = Some(r.i32()).filter(|&done| done != 1);
        let (cwnd, ssthresh, srtt, mss) = (r.u32(), r.u32(), r.u32(), r.u32());
        let retransmitted = r.u32();
        let has_flow = r.u16() != 0;
        let side = match r.u16() {
            1 => Some(Side::Active),
            2 => Some(Side::Passive),
            _ => None,
        };
        let (bytes_acked, max_pacing) = (r.u64(), r.u64());
        let (inode, cgroup) = (r.u64(), r.u64());
        let (send_buffer, receive_buffer) = (r.u32(), r.u32());
        let (locks, pacing_status) = (Locks::of(r.u32()), r.u32());
        let in_force = |fixed: u32, one: f64| (fixed > 0).then(|| f64::from(fixed) / one);
        let (a, b) = (in_force(r.u32(), 256.0), in_force(r.u32(), 65536.0));
        let flow = FlowRecord::read(&mut r);
        Self {
            cookie,
            local: (local, local_port),
            remote: (remote, remote_port),
            state,
            algorithm,
            chosen,
            done,
            cwnd,
            ssthresh,
            srtt_us: srtt / 8,
            mss,
            retransmitted,
            side,
            bytes_acked,
            max_pacing,
            inode,
            cgroup,
            send_buffer,
            receive_buffer,
            locks,
            pacing_status,
            a,
            b,
            flow: has_flow.then_some(flow),
        }
    }
}

/// A record of the ring buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Something happened to a window.
    Event(Event),
    /// A new flow was given a rule.
    Opened(Box<Opened>),
}

/// `struct event`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event {
    /// `CLOCK_MONOTONIC`, microseconds.
    pub time_us: u64,
    /// The flow.
    pub cookie: u64,
    /// Event, as the BPF side classified it.
    pub kind: Kind,
    /// Number of the flow's rule, if it has one.
    pub rule: Option<usize>,
    /// Segments, with the fraction that the kernel does not know of.
    pub window: f64,
    /// Segments.
    pub ssthresh: u32,
    /// After a reduction the new threshold; with an ACK the segments that it acknowledged; on
    /// release the kernel's number of the socket's state.
    pub value: u32,
    /// Smoothed; that of the sample with [`Kind::Gamma`].
    pub rtt_us: u32,
    /// Increase in force, segments per round trip.
    pub a: f64,
    /// Fraction that a loss removes, in force.
    pub b: f64,
    /// Segments under way.
    pub flight: u32,
    /// Segments delivered since the start.
    pub delivered: u32,
    /// State of the sender: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub state: u32,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal $word:literal,)*) => {
        /// `enum event_kind`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Kind {
            /// Not one of ours.
            #[default]
            Unknown,
            $($(#[$doc])* $name,)*
        }

        impl Kind {
            fn of(number: u32) -> Self {
                match number {
                    $($number => Kind::$name,)*
                    _ => Kind::Unknown,
                }
            }

            /// The word that `watch` prints.
            pub fn word(self) -> &'static str {
                match self {
                    Kind::Unknown => "unknown",
                    $(Kind::$name => $word,)*
                }
            }
        }
    };
}

kinds! {
    /// The flow runs its rule from now on.
    Init = 1 "init",
    /// It runs another algorithm from now on, or has ended.
    Release = 2 "release",
    /// An ACK of a watched flow.
    Ack = 3 "ack",
    /// A reduction after a loss or a mark.
    Cut = 4 "cut",
    /// A reduction after a timeout.
    Timeout = 5 "timeout",
    /// A reduction after a local stall.
    Stall = 6 "stall",
    /// A local stall without one.
    StallIgnored = 7 "stall-ignored",
    /// The queue has ended slow start.
    Gamma = 8 "gamma",
    /// The last reduction was spurious.
    Undo = 9 "undo",
    /// [`Opened`]: by the policy.
    Matched = 10 "matched",
    /// [`Opened`]: left as it was, for comparison.
    Control = 11 "control",
}

/// `struct opened`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// This host's end.
    pub local: (IpAddr, u16),
    /// The peer's.
    pub remote: (IpAddr, u16),
    /// 0, or the kernel's refusal.
    pub done: i32,
    /// Inode of its network namespace.
    pub namespace: u64,
    /// What the kernel side keeps of it.
    pub flow: FlowRecord,
}

impl Record {
    /// From the bytes of a record; `None` if it is none of ours.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let (time_us, cookie) = (r.u64(), r.u64());
        let (kind, rule) = (Kind::of(r.u32()), r.rule());
        match (kind, bytes.len()) {
            (Kind::Matched | Kind::Control, size::OPENED) => {
                let (local, remote) = (r.address(), r.address());
                let (local_port, remote_port) = (r.u16(), r.u16());
                let (done, namespace) = (r.i32(), r.u32().into());
                let _padding = r.u32();
                Some(Record::Opened(Box::new(Opened {
                    local: (local, local_port),
                    remote: (remote, remote_port),
                    done,
                    namespace,
                    flow: FlowRecord::read(&mut r),
                })))
            }
            (_, size::EVENT) => Some(Record::Event(Event {
                time_us,
                cookie,
                kind,
                rule,
                window: f64::from(r.u32()) + f64::from(r.u32()) / FRACTION,
                ssthresh: r.u32(),
                value: r.u32(),
                rtt_us: r.u32(),
                a: f64::from(r.u32()) / 256.0,
                b: f64::from(r.u32()) / 65536.0,
                flight: r.u32(),
                delivered: r.u32(),
                state: r.u32(),
            })),
            _ => None,
        }
    }
}

/// 2^32.
pub(crate) const FRACTION: f64 = 4_294_967_296.0;
