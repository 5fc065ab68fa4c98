//! A path that the kernel carries by itself: between two namespaces a wire (veth), and at each of
//! its ends sch_netem, which delays and loses, over sch_tbf, which has the rate and the buffer.
//!
//! A packet meets the delay first and the bottleneck then: netem hands what is due to its child
//! (`netem_dequeue` in net/sched/sch_netem.c, Linux 6.1), and what finds no room there is lost on
//! the way, where its sender is not told. Messages are those of include/uapi/linux/pkt_sched.h.

use std::fmt;
use std::io;

use fullpipe_run::{Buffer, Discipline, LinkSpec, Loss, RunSpec};
use fullpipe_units::Span;
use nix::errno::Errno;

use crate::netlink::{CREATE_REPLACE, Links, NEW_QUEUE, ROOT, attribute, traffic};
use crate::queues::Counted;

/// One direction of such a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Link of the specification that it stands for: the one with the rate, or the first.
    pub link: usize,
    /// Name of that link.
    pub name: String,
    /// Propagation delay of all links together.
    pub delay: Span,
    /// Part of the packets that is lost at random, whatever they are.
    pub loss: f64,
    /// Rate and buffer, if a link has a rate.
    pub bottleneck: Option<Bottleneck>,
}

/// Rate and buffer of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bottleneck {
    /// Bytes of IP packets per second.
    pub rate: u64,
    /// What may wait, the packet that waits for its tokens included.
    pub room: Room,
    /// Longest packet, bytes.
    pub packet: u16,
}

/// Room of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Packets (pfifo).
    Packets(u32),
    /// Bytes of packets (bfifo).
    Bytes(u32),
}

impl Bottleneck {
    /// Bytes of tokens: a packet, and what the rate sends in [`SAVED`].
    pub fn bucket(&self) -> u32 {
        let saved = self.rate as f64 * SAVED.as_secs_f64();
        u32::from(self.packet).saturating_add(saved as u32)
    }
}

/// Time at the rate that is made up for behind a timer that came late, and that a pause saves.
pub const SAVED: Span = Span::from_micros(250);

/// A part of a path that sch_netem and sch_tbf cannot carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netem and tbf cannot carry this path: {what}")]
pub struct Refused {
    /// The part of the path, and where it is.
    pub what: String,
    /// What carries such a path, or a change that netem carries.
    pub remedy: &'static str,
}

const OURS: &str = "without `--by netem` the path has it";
const OF_ACKS: &str =
    "netem loses whatever comes: `--set path.loss_of_acks=true`, or leave `--by netem` out";

impl Shape {
    /// One as good as any, to try whether the kernel carries it.
    pub const TRIAL: Self = Self {
        link: 0,
        name: String::new(),
        delay: Span::from_millis(10),
        loss: 0.0,
        bottleneck: Some(Bottleneck {
            rate: 1_250_000,
            room: Room::Packets(100),
            packet: 1500,
        }),
    };

    /// Both directions of the path of `spec`, what the near host sends first, for packets of up to
    /// `mtu` bytes.
    ///
    /// # Errors
    /// The first thing that the kernel's queues cannot do.
    pub fn of(spec: &RunSpec, mtu: u16) -> Result<[Self; 2], Refused> {
        let [flow] = spec.flows.as_slice() else {
            return Err(ours(format!("{} pairs of hosts", spec.flows.len())));
        };
        if let Some(cross) = spec.cross.first() {
            return Err(ours(format!("datagrams of `{}`", cross.name)));
        }
        let (near, far) = match flow.reverse {
            false => (&flow.forward, &flow.back),
            true => (&flow.back, &flow.forward),
        };
        Ok([
            Self::direction(spec, near, mtu)?,
            Self::direction(spec, far, mtu)?,
        ])
    }

    fn direction(spec: &RunSpec, links: &[usize], mtu: u16) -> Result<Self, Refused> {
        let mut shape = Self {
            link: links.first().copied().unwrap_or(0),
            name: String::new(),
            delay: Span::ZERO,
            loss: 0.0,
            bottleneck: None,
        };
        for index in links {
            let link = &spec.links[*index];
            plain(link)?;
            shape.delay = shape.delay + link.delay + link.drawn_spread(spec.seed);
            shape.loss = 1.0 - (1.0 - shape.loss) * (1.0 - loss(link)?);
            if let Some(bottleneck) = bottleneck(link, mtu) {
                if shape.bottleneck.is_some() {
                    return Err(ours(format!("a second rate, that of link `{}`", link.name)));
                }
                shape.bottleneck = Some(bottleneck);
                shape.link = *index;
            }
        }
        if let Some(link) = spec.links.get(shape.link) {
            shape.name.clone_from(&link.name);
        }
        Ok(shape)
    }

    /// Packets that the delay has room for: it must never be full, and is no buffer of the path.
    fn limit(&self) -> u32 {
        let waiting = match self.bottleneck.map(|b| b.room) {
            Some(Room::Packets(n)) => n,
            // None is shorter.
            Some(Room::Bytes(n)) => n / 20,
            None => 0,
        };
        let delayed = self.delay.as_secs_f64() * FASTEST;
        waiting.saturating_add(delayed as u32).saturating_add(1000)
    }
}

/// Packets per second that no sender exceeds for long.
const FASTEST: f64 = 2e6;

fn ours(what: String) -> Refused {
    Refused { what, remedy: OURS }
}

/// Refuses what is more than a rate, a buffer, a delay and a loss.
fn plain(link: &LinkSpec) -> Result<(), Refused> {
    let queue = match link.discipline {
        Discipline::DropTail => None,
        Discipline::Red(_) => Some("queue discipline RED"),
        Discipline::Pie(_) => Some("queue discipline PIE"),
        Discipline::Codel(_) => Some("queue discipline CoDel"),
        Discipline::FqCodel(_) => Some("queue discipline FQ-CoDel"),
    };
    let others = [
        (link.trace.is_some(), "a trace of delivery opportunities"),
        (!link.schedule.is_empty(), "changes over time"),
        (link.jitter > Span::ZERO, "jitter that keeps the order"),
        (link.reorder.is_some(), "packets that are overtaken"),
        (link.policer.is_some(), "a policer"),
        (
            link.rate.is_some_and(|r| r.as_bits_per_sec() < 8),
            "an outage",
        ),
    ];
    let other = others
        .iter()
        .find(|(is_so, _)| *is_so)
        .map(|(_, what)| what);
    match queue.or(other.copied()) {
        Some(what) => Err(ours(format!("{what} at link `{}`", link.name))),
        None => Ok(()),
    }
}

fn loss(link: &LinkSpec) -> Result<f64, Refused> {
    match link.loss {
        Loss::None => Ok(0.0),
        Loss::Bernoulli { p } if link.loss_of_acks => Ok(p),
        Loss::Bernoulli { .. } => Err(Refused {
            what: format!(
                "loss at link `{}` that spares ACKs, SYNs and pings",
                link.name
            ),
            remedy: OF_ACKS,
        }),
        Loss::GilbertElliott { .. } => {
            Err(ours(format!("losses in bursts at link `{}`", link.name)))
        }
    }
}

fn bottleneck(link: &LinkSpec, mtu: u16) -> Option<Bottleneck> {
    let bits = link.rate?.as_bits_per_sec();
    let within = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).max(1);
    let room = match link.buffer {
        Buffer::Packets(n) => Room::Packets(within(n)),
        Buffer::Bytes(n) => Room::Bytes(within(n)),
        Buffer::Time(t) => Room::Bytes(within((bits as f64 * t.as_secs_f64() / 8.0) as u64)),
        Buffer::Unlimited => Room::Packets(u32::MAX),
    };
    Some(Bottleneck {
        rate: (bits + 4) / 8,
        room,
        packet: mtu,
    })
}

/// A part of the kernel that the path takes and that is not to be had.
#[derive(Debug, thiserror::Error)]
pub struct Lacking {
    /// Name of the kernel module.
    pub module: &'static str,
    /// The kernel's answer.
    pub error: io::Error,
}

impl Lacking {
    /// How to get the module, and what needs none.
    pub fn remedy(&self) -> String {
        let module = self.module;
        let net = if module == "veth" { "" } else { "NET_" };
        format!(
            "`sudo modprobe {module}`, or a kernel with CONFIG_{net}{}; without `--by netem` the \
             path needs no module but tun",
            module.to_uppercase()
        )
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { module, error } = self;
        let unknown = [Errno::ENOENT as i32, Errno::EOPNOTSUPP as i32];
        match error.raw_os_error() {
            Some(code) if unknown.contains(&code) => {
                write!(f, "no path by netem: this kernel has no `{module}`")
            }
            _ => write!(f, "no path by netem: `{module}`: {error}"),
        }
    }
}

/// Names what was asked for where the kernel refuses it.
pub(crate) fn of(module: &'static str) -> impl Fn(io::Error) -> Lacking {
    move |error| Lacking { module, error }
}

/// Major numbers of the queues: of the delay, of the rate, and of the buffer.
const DELAY: u16 = 1;
const RATE: u16 = 2;
const BUFFER: u16 = 3;
/// `TCA_STAB`, and `TCA_STAB_BASE` in it.
const SIZES: u16 = 8;
const SIZES_BASE: u16 = 1;
/// Ethernet's header, which the kernel's queues count and a path of IP packets does not, bytes.
const FRAME: i32 = 14;
/// `TC_LINKLAYER_ETHERNET`: the time of a packet is that of its bytes.
const PLAIN_BYTES: u8 = 1;
/// `TCA_NETEM_LATENCY64`.
const LATENCY: u16 = 10;
/// `TCA_TBF_PARMS`, `TCA_TBF_RATE64` and `TCA_TBF_BURST`.
const PARAMETERS: u16 = 1;
const WIDE_RATE: u16 = 4;
const BURST: u16 = 6;

/// The two queues of a direction that count something of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The delay and all below it.
    pub delay: Counted,
    /// The rate and its buffer.
    pub rate: Counted,
}

impl Links {
    /// Has what leaves by an interface cross `shape`, without its loss.
    ///
    /// # Errors
    /// [`Lacking`]: the module of a queue that the kernel refuses.
    pub fn put_shape(&mut self, name: &str, shape: &Shape) -> Result<(), Lacking> {
        self.put_delay(name, shape, false)?;
        let Some(bottleneck) = &shape.bottleneck else {
            return Ok(());
        };
        self.put_rate(name, u32::from(DELAY) << 16 | 1, bottleneck)
    }

    /// Delay and, if `is_lossy`, loss of a direction, new or changed; what is below stays.
    pub(crate) fn put_delay(
        &mut self,
        name: &str,
        shape: &Shape,
        is_lossy: bool,
    ) -> Result<(), Lacking> {
        let numbers = [u32::from(DELAY) << 16, ROOT, 0];
        let options = netem(shape, is_lossy);
        let body = traffic(name, "netem", numbers, &options).map(|mut body| {
            attribute(&mut body, SIZES, &sizes());
            body
        });
        body.and_then(|body| self.ask(NEW_QUEUE, CREATE_REPLACE, &body))
            .map_err(of("sch_netem"))
    }

    /// Rate and buffer, below a class or at the root of an interface.
    fn put_rate(&mut self, name: &str, below: u32, to: &Bottleneck) -> Result<(), Lacking> {
        let numbers = [u32::from(RATE) << 16, below, 0];
        let body = traffic(name, "tbf", numbers, &tbf(to));
        body.and_then(|body| self.ask(NEW_QUEUE, CREATE_REPLACE, &body))
            .map_err(of("sch_tbf"))?;
        // The queue that tbf makes for itself counts bytes only.
        let (kind, room) = match to.room {
            Room::Packets(n) => ("pfifo", n),
            Room::Bytes(n) => ("bfifo", n),
        };
        let numbers = [u32::from(BUFFER) << 16, u32::from(RATE) << 16 | 1, 0];
        let body = traffic(name, kind, numbers, &room.to_ne_bytes());
        body.and_then(|body| self.ask(NEW_QUEUE, CREATE_REPLACE, &body))
            .map_err(of("sch_fifo"))
    }

    /// What the queues of [`Links::put_shape`] have counted.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn counts(&mut self, name: &str) -> io::Result<Counts> {
        let all = self.counted(name)?;
        let of = |handle: u16| {
            let found = all.iter().find(|(of, _)| *of == handle);
            found.map_or_else(Counted::default, |(_, counted)| *counted)
        };
        Ok(Counts {
            delay: of(DELAY),
            rate: of(RATE),
        })
    }
}

/// `struct tc_netem_qopt` and the delay in nanoseconds.
fn netem(shape: &Shape, is_lossy: bool) -> Vec<u8> {
    let loss = if is_lossy { shape.loss } else { 0.0 };
    // Of all numbers of 32 bits; a conversion goes no further than the last.
    let loss = (loss * 2f64.powi(32)) as u32;
    // Delay in ticks, limit, loss, gap, duplicates, jitter.
    let mut options = [0, shape.limit(), loss, 0, 0, 0]
        .map(u32::to_ne_bytes)
        .concat();
    // Without any delay a packet would stay its sender's, which would be held back by the queue.
    let nanos = shape.delay.as_nanos().max(1);
    let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
    attribute(&mut options, LATENCY, &nanos.to_ne_bytes());
    options
}

/// `struct tc_sizespec`: what queues count of a packet is less than what the interface sends.
fn sizes() -> Vec<u8> {
    // Logs of cell and size, alignment; overhead; link layer, smallest, largest, length of a table.
    let mut base = vec![0; 4];
    base.extend_from_slice(&(-FRAME).to_ne_bytes());
    base.extend(
        [u32::from(PLAIN_BYTES), 0, 0, 0]
            .map(u32::to_ne_bytes)
            .concat(),
    );
    let mut sizes = Vec::new();
    attribute(&mut sizes, SIZES_BASE, &base);
    sizes
}

/// `struct tc_tbf_qopt`, the bytes of the bucket, and the rate where 32 bits do not hold it.
fn tbf(of: &Bottleneck) -> Vec<u8> {
    let narrow = u32::try_from(of.rate).unwrap_or(u32::MAX);
    // struct tc_ratespec: log of a cell, link layer, overhead, alignment, smallest, rate.
    let mut parameters = vec![0, PLAIN_BYTES, 0, 0, 0, 0, 0, 0];
    parameters.extend_from_slice(&narrow.to_ne_bytes());
    // No rate of peaks.
    parameters.extend_from_slice(&[0; 12]);
    // Limit of a queue that is replaced at once, bucket in ticks, bucket of the peak.
    parameters.extend([of.bucket(), 0, 0].map(u32::to_ne_bytes).concat());
    let mut options = Vec::new();
    attribute(&mut options, PARAMETERS, &parameters);
    attribute(&mut options, BURST, &of.bucket().to_ne_bytes());
    if of.rate > u64::from(narrow) {
        attribute(&mut options, WIDE_RATE, &of.rate.to_ne_bytes());
    }
    options
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;
    use std::sync::Arc;
    use std::thread::sleep;
    use std::time::Duration;

    use fullpipe_cc::StackSpec;
    use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
    use fullpipe_run::{Change, CrossSpec, DeliveryTrace, FlowSpec, Policer, Red, Reorder};
    use fullpipe_units::{Rate, Time};
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::namespace::{DEVICE, HostSide, on_a_thread};
    use crate::netlink::value;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap())
    }

    fn shape() -> Shape {
        Shape {
            link: 0,
            name: "bottleneck".into(),
            delay: Span::from_micros(10_500),
            loss: 0.25,
            bottleneck: Some(Bottleneck {
                rate: 2_500_000,
                room: Room::Packets(33),
                packet: 1500,
            }),
        }
    }

    /// Places are those of `struct tc_netem_qopt` and `TCA_NETEM_LATENCY64` in
    /// include/uapi/linux/pkt_sched.h.
    #[test]
    fn netem_is_told_delay_loss_and_room() {
        let told = netem(&shape(), true);
        assert_eq!(word(&told, 0), 0, "latency, which the attribute has");
        // 33 packets, 10.5 ms at 2 Mpps, 1000.
        assert_eq!(word(&told, 4), 33 + 21_000 + 1000, "limit");
        assert_eq!(word(&told, 8), 1 << 30, "loss");
        assert_eq!(told[12..24], [0; 12], "gap, duplicate, jitter");
        let latency = value(&told[24..], 10).unwrap();
        assert_eq!(i64::from_ne_bytes(latency.try_into().unwrap()), 10_500_000);
        assert_eq!(told.len(), 24 + 4 + 8);
        assert_eq!(word(&netem(&shape(), false), 8), 0);
        let all = Shape {
            loss: 1.0,
            delay: Span::ZERO,
            ..shape()
        };
        let told = netem(&all, true);
        assert_eq!(word(&told, 8), u32::MAX);
        let latency = value(&told[24..], 10).unwrap();
        assert_eq!(latency, 1i64.to_ne_bytes(), "not none");
    }

    /// Places are those of `struct tc_tbf_qopt` in the same file.
    #[test]
    fn tbf_is_told_rate_and_bucket() {
        let told = tbf(&shape().bottleneck.unwrap());
        let parameters = value(&told, 1).unwrap();
        assert_eq!(parameters.len(), 12 + 12 + 3 * 4);
        assert_eq!(parameters[1], 1, "link layer");
        assert_eq!(word(parameters, 8), 2_500_000, "rate");
        assert_eq!(parameters[12..24], [0; 12], "rate of peaks");
        // A packet, and 250 us at the rate.
        assert_eq!(word(value(&told, 6).unwrap(), 0), 1500 + 625);
        assert_eq!(value(&told, 4), None);
        let fast = Bottleneck {
            rate: 5_000_000_000,
            ..shape().bottleneck.unwrap()
        };
        let told = tbf(&fast);
        assert_eq!(word(value(&told, 1).unwrap(), 8), u32::MAX);
        assert_eq!(value(&told, 4), Some(&5_000_000_000u64.to_ne_bytes()[..]));
    }

    /// Places are those of `struct tc_sizespec` in the same file.
    #[test]
    fn the_header_of_ethernet_does_not_count() {
        let told = sizes();
        let base = value(&told, 1).unwrap();
        assert_eq!(base.len(), 24);
        assert_eq!(word(base, 4).cast_signed(), -14, "overhead");
        assert_eq!(word(base, 8), 1, "link layer");
        assert_eq!(word(base, 20), 0, "length of the table");
    }

    fn path() -> RunSpec {
        let rate = Some(Rate::from_bits_per_sec(20_000_000));
        let delay = Span::from_millis(10);
        let mut spec = RunSpec {
            links: vec![
                LinkSpec::new("bottleneck", rate, delay, Buffer::Packets(33)),
                LinkSpec::new("return", rate, delay, Buffer::Time(Span::from_millis(12))),
                LinkSpec::pure_delay("access", Span::from_millis(2)),
            ],
            ..RunSpec::default()
        };
        spec.flows = vec![flow("one")];
        spec
    }

    fn flow(name: &str) -> FlowSpec {
        FlowSpec::new(
            name,
            StackSpec::parse("reno").unwrap(),
            SenderConfig::preset(Preset::Y2026, 1500),
            ReceiverConfig::preset(Preset::Y2026),
            vec![2, 0],
            vec![1, 2],
        )
    }

    #[test]
    fn delays_add_up_around_one_rate() {
        let mut spec = path();
        let [near, far] = Shape::of(&spec, 1500).unwrap();
        assert_eq!((near.name.as_str(), near.link), ("bottleneck", 0));
        assert_eq!(near.delay, Span::from_millis(12));
        let bottleneck = near.bottleneck.unwrap();
        assert_eq!(bottleneck.rate, 2_500_000);
        assert_eq!(bottleneck.room, Room::Packets(33));
        assert_eq!((far.name.as_str(), far.link), ("return", 1));
        assert_eq!(far.bottleneck.unwrap().room, Room::Bytes(30_000));
        // The sender of data is on the far host.
        spec.flows[0].reverse = true;
        let [near, far] = Shape::of(&spec, 1500).unwrap();
        assert_eq!(
            (near.name.as_str(), far.name.as_str()),
            ("return", "bottleneck")
        );
        // Losses of what comes, one after the other.
        for link in &mut spec.links {
            link.loss = Loss::Bernoulli { p: 0.5 };
            link.loss_of_acks = true;
        }
        assert_eq!(Shape::of(&spec, 1500).unwrap()[0].loss, 0.75);
    }

    #[test]
    fn what_the_kernels_queues_cannot_do_is_named() {
        type With = fn(&mut RunSpec);
        let changes: [(With, &str); 14] = [
            (|s| s.flows.push(flow("two")), "2 pairs of hosts"),
            (
                |s| {
                    let every = Span::from_millis(100);
                    let pings = CrossSpec::probes("pings", 100, every, vec![0], vec![1]);
                    s.cross.push(pings);
                },
                "datagrams of `pings`",
            ),
            (
                |s| s.links[0].discipline = Discipline::Red(Red::classic(100)),
                "queue discipline RED at link `bottleneck`",
            ),
            (
                |s| s.links[1].discipline = Discipline::Codel(Default::default()),
                "queue discipline CoDel at link `return`",
            ),
            (
                |s| s.links[1].discipline = Discipline::Pie(Default::default()),
                "queue discipline PIE at link `return`",
            ),
            (
                |s| s.links[1].discipline = Discipline::FqCodel(Default::default()),
                "queue discipline FQ-CoDel at link `return`",
            ),
            (
                |s| s.links[0].jitter = Span::from_millis(1),
                "jitter that keeps the order at link `bottleneck`",
            ),
            (
                |s| {
                    s.links[2].reorder = Some(Reorder {
                        probability: 0.1,
                        extra: Span::from_millis(1),
                    });
                },
                "packets that are overtaken at link `access`",
            ),
            (
                |s| {
                    s.links[0].policer = Some(Policer {
                        rate: Rate::from_bits_per_sec(1_000_000),
                        burst: 3000,
                    });
                },
                "a policer at link `bottleneck`",
            ),
            (
                |s| {
                    s.links[0].schedule = vec![Change {
                        at: Time::ZERO,
                        rate: None,
                        delay: None,
                        loss: None,
                    }];
                },
                "changes over time at link `bottleneck`",
            ),
            (
                |s| {
                    let trace = DeliveryTrace {
                        opportunities: vec![1],
                    };
                    s.links[0].trace = Some(Arc::new(trace));
                },
                "a trace of delivery opportunities at link `bottleneck`",
            ),
            (
                |s| {
                    s.links[1].loss = Loss::GilbertElliott {
                        to_bad: 0.1,
                        to_good: 0.5,
                        good: 0.0,
                        bad: 1.0,
                    };
                },
                "losses in bursts at link `return`",
            ),
            (
                |s| s.links[0].rate = Some(Rate::from_bits_per_sec(0)),
                "an outage at link `bottleneck`",
            ),
            (
                |s| s.links[2].rate = Some(Rate::from_bits_per_sec(1_000_000)),
                "a second rate, that of link `bottleneck`",
            ),
        ];
        let refused = |change: &dyn Fn(&mut RunSpec)| {
            let mut spec = path();
            change(&mut spec);
            Shape::of(&spec, 1500).unwrap_err()
        };
        for (change, what) in changes {
            let refused = refused(&change);
            assert_eq!((refused.what.as_str(), refused.remedy), (what, OURS));
        }
        let spares = refused(&|s| s.links[0].loss = Loss::Bernoulli { p: 0.1 });
        assert!(spares.what.ends_with("spares ACKs, SYNs and pings"));
        assert!(spares.remedy.contains("path.loss_of_acks=true"));
    }

    /// tbf alone, which more kernels have: the first packet takes the tokens, two wait, and the
    /// others find no room.
    #[test]
    fn a_full_buffer_drops_and_counts() {
        let tried = on_a_thread(|| -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let mut links = Links::open()?;
            links.up("lo")?;
            let slow = Bottleneck {
                rate: 100,
                room: Room::Packets(2),
                packet: 1500,
            };
            match links.put_rate("lo", ROOT, &slow) {
                Err(Lacking { error, .. }) if error.raw_os_error() == Some(2) => {
                    eprintln!("skipped: no sch_tbf");
                    return Ok(());
                }
                other => other.unwrap(),
            }
            let to = UdpSocket::bind("127.0.0.1:0")?;
            let from = UdpSocket::bind("127.0.0.1:0")?;
            for _ in 0..7 {
                // The kernel tells of packets that its own queue drops; these are on their way.
                let _ = from.send_to(&[0; 1000], to.local_addr()?);
            }
            let counted = links.counts("lo")?.rate;
            let expected = Counted {
                left: 1,
                dropped: 4,
                waiting: 2,
            };
            assert_eq!(counted, expected);
            Ok(())
        });
        skip_or_fail(tried);
    }

    /// Addresses, MTU and both ends; and with one host the other's end goes, too.
    #[test]
    fn a_wire_ends_with_a_host() {
        let tried = || -> io::Result<()> {
            let denied = |e: crate::namespace::HostError| e.error;
            let near = HostSide::alone().map_err(denied)?;
            let far = HostSide::alone().map_err(denied)?;
            let end = far.as_fd();
            near.enter(|| Links::open()?.add_wire(DEVICE, end, 1400))?;
            let devices = || {
                far.enter(|| {
                    let read = |name: &str| {
                        let file = format!("/proc/thread-self/net/{name}");
                        std::fs::read_to_string(file)
                    };
                    Ok(read("dev")?.contains(DEVICE))
                })
            };
            assert!(devices()?);
            drop(near);
            for _ in 0..200 {
                if !devices()? {
                    return Ok(());
                }
                sleep(Duration::from_millis(10));
            }
            panic!("the far end is left");
        };
        match tried() {
            Err(e) if e.raw_os_error() == Some(Errno::EOPNOTSUPP as i32) => {
                eprintln!("skipped: no veth");
            }
            other => skip_or_fail(other),
        }
    }

    /// Without netem the error names the module and what needs none.
    #[test]
    fn a_kernel_without_netem_is_told_from_a_refusal() {
        let lacking = Lacking {
            module: "sch_netem",
            error: Errno::ENOENT.into(),
        };
        let said = "no path by netem: this kernel has no `sch_netem`";
        assert_eq!(lacking.to_string(), said);
        assert!(lacking.remedy().contains("CONFIG_NET_SCH_NETEM"));
        assert!(lacking.remedy().contains("without `--by netem`"));
        assert!(
            of("veth")(Errno::EPERM.into())
                .remedy()
                .contains("CONFIG_VETH")
        );
        let refused = of("sch_tbf")(Errno::EPERM.into()).to_string();
        assert!(
            refused.starts_with("no path by netem: `sch_tbf`: "),
            "{refused}"
        );
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
