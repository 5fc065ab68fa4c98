//! A path that the kernel carries by itself: between two namespaces a wire (veth), and at each of
//! its ends sch_netem, which delays and loses, over sch_tbf, which has the rate and the buffer.
//!
//! A packet meets the delay first and the bottleneck then: netem hands what is due to its child
//! (`netem_dequeue` in net/sched/sch_netem.c, Linux 6.1), and what finds no room there is lost on
//! the way, where its sender is not told. Messages are those of include/uapi/linux/pkt_sched.h.

#[cfg(test)]
mod tests;

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
    // Every field, so that a new one is not forgotten.
    let LinkSpec {
        name,
        rate,
        delay: _,
        delay_spread: _,
        buffer: _,
        discipline,
        loss: _,
        loss_of_acks: _,
        jitter,
        reorder,
        policer,
        schedule,
        trace,
        watched: _,
        is_interface: _,
    } = link;
    let queue = match discipline {
        Discipline::DropTail => None,
        Discipline::Red(_) => Some("queue discipline RED"),
        Discipline::Pie(_) => Some("queue discipline PIE"),
        Discipline::Codel(_) => Some("queue discipline CoDel"),
        Discipline::FqCodel(_) => Some("queue discipline FQ-CoDel"),
    };
    let others = [
        (trace.is_some(), "a trace of delivery opportunities"),
        (!schedule.is_empty(), "changes over time"),
        (*jitter > Span::ZERO, "jitter that keeps the order"),
        (reorder.is_some(), "packets that are overtaken"),
        (policer.is_some(), "a policer"),
        (rate.is_some_and(|r| r.as_bits_per_sec() < 8), "an outage"),
    ];
    let other = others
        .iter()
        .find(|(is_so, _)| *is_so)
        .map(|(_, what)| what);
    match queue.or(other.copied()) {
        Some(what) => Err(ours(format!("{what} at link `{name}`"))),
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
