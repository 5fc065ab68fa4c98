//! A record of every ACK of chosen flows, whatever they run: `bpf/watch.bpf.c`, in the kernel as
//! long as a [`Watch`] lives. It changes no flow, and takes no daemon.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fullpipe_observe::tcp_info::{
    BYTES_ACKED, CA_STATE, DELIVERED, DELIVERED_CE, LOST, MIN_RTT, PACING_RATE, RETRANS, RTT,
    SACKED, SND_CWND, SND_MSS, SND_SSTHRESH, TOTAL_RETRANS, TOTAL_RTO, UNACKED,
};
use fullpipe_observe::{Filter, Network, TcpInfo};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};

use crate::bpf::{lacks, load, missing};
use crate::kernel::KernelError;
use crate::layout::{FRACTION, Reader, mapped};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));

/// Sizes of the structures of `bpf/seen.h`, bytes.
pub mod size {
    /// `struct filter`.
    pub const FILTER: usize = 28;
    /// `struct known`.
    pub const KNOWN: usize = 40;
    /// `struct met`.
    pub const MET: usize = 80;
    /// `struct seen`.
    pub const SEEN: usize = 112;
}

/// Ports that a filter may name (`WATCHED_PORTS`).
pub const PORTS: usize = 8;
/// Networks that it may name.
pub const NETWORKS: usize = 256;

/// Programs in the kernel that record ACKs. Dropped, they are gone.
pub struct Watch {
    flows: MapHandle,
    missed: MapHandle,
    ring: RingBuffer<'static>,
    incoming: Arc<Mutex<Vec<Sight>>>,
    _link: Link,
    _object: Object,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// A record of the kernel's programs, in the order in which they wrote them.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// A flow, before its first ACK.
    Met(Met),
    /// A sender as an ACK finds it.
    Ack(Box<Seen>),
}

/// `struct met`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// `CLOCK_MONOTONIC`, microseconds.
    pub time_us: u64,
    /// The kernel's number of the socket.
    pub cookie: u64,
    /// This host's end.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The algorithm's name.
    pub algorithm: String,
    /// Bytes.
    pub mss: u32,
}

/// `struct seen`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// `CLOCK_MONOTONIC`, microseconds.
    pub time_us: u64,
    /// The flow.
    pub cookie: u64,
    /// Part of a segment that the window has beyond [`Seen::cwnd`], and a(w), b(w) in force; of
    /// algorithms that are the tuner's.
    pub ours: Option<(f64, f64, f64)>,
    /// Segments.
    pub cwnd: u32,
    /// Segments; `0x7fffffff` before the first reduction.
    pub ssthresh: u32,
    /// Microseconds.
    pub srtt_us: u32,
    /// Latest RTT sample, microseconds.
    pub rtt_us: u32,
    /// Smallest of the last minutes, microseconds.
    pub min_rtt_us: u32,
    /// Segments sent and not acknowledged.
    pub packets_out: u32,
    /// SACKed segments of `packets_out`.
    pub sacked_out: u32,
    /// Segments of `packets_out` that are marked lost.
    pub lost_out: u32,
    /// Segments of them that left a second time.
    pub retrans_out: u32,
    /// Segments since the start.
    pub delivered: u32,
    /// Delivered segments with a CE mark.
    pub delivered_ce: u32,
    /// Segments sent again since the start.
    pub retransmitted: u32,
    /// Retransmission timeouts since the start.
    pub timeouts: u32,
    /// Bytes.
    pub mss: u32,
    /// State of the sender: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub state: u32,
    /// Bytes per second; `u64::MAX`: not paced.
    pub pacing: u64,
    /// Since the start.
    pub bytes_acked: u64,
}

impl Seen {
    /// What the kernel's own structure says of it; fields that no ACK shows are 0.
    pub fn info(&self) -> TcpInfo {
        TcpInfo::of(&[
            (SND_CWND, self.cwnd.into()),
            (SND_SSTHRESH, self.ssthresh.into()),
            (CA_STATE, self.state.into()),
            (TOTAL_RETRANS, self.retransmitted.into()),
            (TOTAL_RTO, self.timeouts.into()),
            (DELIVERED, self.delivered.into()),
            (DELIVERED_CE, self.delivered_ce.into()),
            (RTT, self.srtt_us.into()),
            (MIN_RTT, self.min_rtt_us.into()),
            (PACING_RATE, self.pacing),
            (UNACKED, self.packets_out.into()),
            (SACKED, self.sacked_out.into()),
            (LOST, self.lost_out.into()),
            (RETRANS, self.retrans_out.into()),
            (BYTES_ACKED, self.bytes_acked),
            (SND_MSS, self.mss.into()),
        ])
    }
}

impl Sight {
    /// From the bytes of a record; `None` if it is none of ours.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let (time_us, cookie, kind) = (r.u64(), r.u64(), r.u32());
        match (kind, bytes.len()) {
            (1, size::MET) => {
                let mss = r.u32();
                let (local, remote) = (r.address(), r.address());
                let (near, far) = (r.u16(), r.u16());
                let _family = r.u32();
                Some(Sight::Met(Met {
                    time_us,
                    cookie,
                    local: (local, near).into(),
                    remote: (remote, far).into(),
                    algorithm: r.name(),
                    mss,
                }))
            }
            (2, size::SEEN) => {
                let ours = r.flag();
                let fraction = f64::from(r.u32()) / FRACTION;
                let (a, b) = (f64::from(r.u32()) / 256.0, f64::from(r.u32()) / 65536.0);
                Some(Sight::Ack(Box::new(Seen {
                    time_us,
                    cookie,
                    ours: ours.then_some((fraction, a, b)),
                    cwnd: r.u32(),
                    ssthresh: r.u32(),
                    srtt_us: r.u32() / 8,
                    rtt_us: r.u32(),
                    min_rtt_us: r.u32(),
                    packets_out: r.u32(),
                    sacked_out: r.u32(),
                    lost_out: r.u32(),
                    retrans_out: r.u32(),
                    delivered: r.u32(),
                    delivered_ce: r.u32(),
                    retransmitted: r.u32(),
                    timeouts: r.u32(),
                    mss: r.u32(),
                    state: r.u32(),
                    pacing: r.u64(),
                    bytes_acked: r.u64(),
                })))
            }
            _ => None,
        }
    }
}

/// `struct filter`; nothing of it is on without `filter`.
pub fn filter_bytes(filter: Option<&Filter>) -> Vec<u8> {
    let none = Filter::default();
    let (on, filter) = (filter.is_some(), filter.unwrap_or(&none));
    let mut bytes = Vec::with_capacity(size::FILTER);
    let ports = &filter.ports[..filter.ports.len().min(PORTS)];
    for word in [
        u32::from(on),
        filter.remote.len() as u32,
        ports.len() as u32,
    ] {
        bytes.extend(word.to_ne_bytes());
    }
    for k in 0..PORTS {
        bytes.extend(ports.get(k).copied().unwrap_or(0).to_ne_bytes());
    }
    bytes
}

/// `struct network`: key of the trie.
pub fn network_bytes(network: &Network) -> Vec<u8> {
    let (address, bits) = network.prefix();
    let bits = bits + if address.is_ipv4() { 96 } else { 0 };
    [&bits.to_ne_bytes()[..], &mapped(address)].concat()
}

impl Watch {
    /// Loads them. Flows that `filter` takes are recorded from their first ACK on; `None`: only
    /// those that are named.
    ///
    /// # Errors
    /// A privilege or a feature is missing.
    pub fn begin(filter: Option<&Filter>) -> Result<Self, KernelError> {
        let object = load(OBJECT, |_| Ok(()))?;
        let map = |name: &str| {
            let found = object.maps().find(|m| m.name() == name);
            let found = found.ok_or_else(|| missing(name))?;
            MapHandle::try_from(&found).map_err(|e| lacks(name, &e))
        };
        let write = |map: &MapHandle, key: &[u8], value: &[u8]| {
            let written = map.update(key, value, MapFlags::ANY);
            written.map_err(|e| lacks("writing a map", &e))
        };
        let networks = map("networks")?;
        for network in filter.iter().flat_map(|f| &f.remote) {
            write(&networks, &network_bytes(network), &[0; 4])?;
        }
        write(&map("filters")?, &[0; 4], &filter_bytes(filter))?;
        let incoming = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&incoming);
        let events = map("events")?;
        let mut ring = RingBufferBuilder::new();
        ring.add(&events, move |bytes: &[u8]| {
            if let Some(sight) = Sight::read(bytes) {
                into.lock().unwrap_or_else(|e| e.into_inner()).push(sight);
            }
            0
        })
        .map_err(|e| lacks("the ring buffer", &e))?;
        let ring = ring.build().map_err(|e| lacks("the ring buffer", &e))?;
        let program = object.progs_mut().find(|p| p.name() == "fp_watch");
        let program = program.ok_or_else(|| missing("fp_watch"))?;
        let link = program.attach_trace();
        let link = link.map_err(|e| lacks("the tracepoint tcp:tcp_probe", &e))?;
        Ok(Self {
            flows: map("flows")?,
            missed: map("missed")?,
            ring,
            incoming,
            _link: link,
            _object: object,
        })
    }

    /// Records this flow, too.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn add(&self, cookie: u64) -> Result<(), KernelError> {
        let mut known = vec![0; size::KNOWN];
        known[..4].copy_from_slice(&1u32.to_ne_bytes());
        let written = self
            .flows
            .update(&cookie.to_ne_bytes(), &known, MapFlags::ANY);
        written.map_err(|e| lacks("writing a map", &e))
    }

    /// What has come since the last call; the kernel side keeps 8 MiB, some 70,000 ACKs.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sights(&mut self) -> Result<Vec<Sight>, KernelError> {
        let n = self.ring.consume_raw();
        if n < 0 && n != -nix::libc::EINTR {
            let error = std::io::Error::from_raw_os_error(-n);
            return Err(KernelError::Io("the ring buffer", error));
        }
        let mut incoming = self.incoming.lock().unwrap_or_else(|e| e.into_inner());
        Ok(std::mem::take(&mut *incoming))
    }

    /// Records that found the ring buffer full.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn missed(&self) -> Result<u64, KernelError> {
        let value = self.missed.lookup(&[0; 4], MapFlags::ANY);
        let value = value
            .map_err(|e| lacks("the counter", &e))?
            .unwrap_or_default();
        Ok(value.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b)))
    }
}

/// How long to wait between two calls of [`Watch::sights`].
pub const GLANCE: Duration = Duration::from_millis(20);

/// Whether an end is of this host's loopback.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
