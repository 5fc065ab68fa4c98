//! The cells: experiments that run both in Linux and in the simulator.
//!
//! A cell is a path, a buffer, the algorithms that share it, one condition that sets it apart (a
//! queue discipline, an outage, ...), a number of repeats, and the kernel it is held against.
//! [`all`] lists them (`grid`), [`Cell::scenario`] says each in the language of `fullpipe run`.

mod grid;
mod scenario;

use std::fmt;

pub use grid::{BUFFERS, LOSSES, PATHS, all, laws, of};
pub use scenario::{Model, ScenarioError, guest};

/// Bytes of a full packet on the wire, IP header included.
pub const PACKET: u32 = 1500;

/// Payload of a full packet (IP, TCP and the time-stamp option take 52 bytes).
pub const MSS: u32 = 1448;

/// Capacity and two-way propagation delay of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// Capacity of the bottleneck, Mbit/s; a packet of 1500 bytes takes `12000 / rate` us.
    pub rate_mbit: u32,
    /// Propagation delay, there and back, ms.
    pub rtt_ms: u32,
}

impl Path {
    /// A path.
    pub const fn new(rate_mbit: u32, rtt_ms: u32) -> Self {
        Self { rate_mbit, rtt_ms }
    }

    /// Bandwidth-delay product, packets.
    pub fn bdp(self) -> f64 {
        f64::from(self.rate_mbit) * f64::from(self.rtt_ms) * 1e3 / (8.0 * f64::from(PACKET))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rate_mbit, self.rtt_ms)
    }
}

/// A kernel that cells are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kernel {
    /// Linux 6.1 with 100 ticks a second.
    Hz100,
    /// Linux 6.1 with 250, as distributions ship it.
    V6_1,
    /// Linux 6.12 with 250.
    V6_12,
    /// Linux 6.1 with 1000.
    Hz1000,
}

impl Kernel {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] = [Self::Hz100, Self::V6_1, Self::V6_12, Self::Hz1000];

    /// Name in the cache, as `fullpipe linux build --name` gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hz100 => "6.1-hz100",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Hz1000 => "6.1-hz1000",
        }
    }

    /// Name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Hz100 => "6.1, 100 Hz",
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::Hz1000 => "6.1, 1000 Hz",
        }
    }

    /// Clock in a cell's name, behind the `@`; without one [`Self::Hz100`].
    pub fn of(id: &str) -> Self {
        let name = id.split_once('@').map_or(Self::Hz100.name(), |(_, n)| n);
        let known = Self::ALL.into_iter().find(|k| k.name() == name);
        known.unwrap_or(Self::Hz100)
    }

    /// Ticks per second.
    pub const fn hz(self) -> u32 {
        match self {
            Self::Hz100 => 100,
            Self::V6_1 | Self::V6_12 => 250,
            Self::Hz1000 => 1000,
        }
    }
}

/// What a cell is about; decides how it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One flow, losses of the buffer only: judged metric by metric.
    Single,
    /// Two flows: judged by their shares.
    Pair,
    /// One flow under random loss: judged by the means of several runs.
    Loss,
    /// Many flows of one algorithm: judged by the sum.
    Many,
    /// One flow behind an active queue that drops.
    Queue,
    /// One flow behind an active queue that marks.
    Ecn,
    /// One flow over a link that stands still for a while.
    Outage,
    /// One flow some of whose packets are overtaken.
    Reorder,
    /// One flow some of whose ACKs are lost.
    Acks,
    /// One flow whose ACKs share a queue with data of another one.
    Reverse,
    /// One finite transfer: judged by its completion time.
    Transfer,
}

impl Kind {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 11] = [
        Self::Single,
        Self::Pair,
        Self::Loss,
        Self::Many,
        Self::Queue,
        Self::Ecn,
        Self::Outage,
        Self::Reorder,
        Self::Acks,
        Self::Reverse,
        Self::Transfer,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Pair => "pair",
            Self::Loss => "loss",
            Self::Many => "many",
            Self::Queue => "queue",
            Self::Ecn => "ecn",
            Self::Outage => "outage",
            Self::Reorder => "reorder",
            Self::Acks => "acks",
            Self::Reverse => "reverse",
            Self::Transfer => "transfer",
        })
    }
}

/// An active queue, by the scenario's and `tc`'s name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// `red`, `pie`, `codel`, `fq-codel`.
    pub discipline: &'static str,
    /// Marks instead of dropping; the flows are ECN-capable.
    pub ecn: bool,
}

/// What sets a cell apart from a drop-tail queue on an undisturbed path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// Nothing.
    Plain,
    /// An active queue.
    Queue(Queue),
    /// The bottleneck stands still from [`OUTAGE_AT_S`] on, s.
    Outage(u32),
    /// [`REORDERED`] of the data packets arrive [`REORDERED_MS`] later.
    Reorder,
    /// Probability that an ACK is lost.
    AckLoss(f64),
    /// The second flow sends the other way, over a bottleneck like the first one's.
    Reverse,
    /// The flow has so many segments to send.
    Transfer(u32),
}

/// Start of an outage, s after the flow's.
pub const OUTAGE_AT_S: u32 = 10;
/// Part of the packets that later ones overtake.
pub const REORDERED: f64 = 0.01;
/// How much later they arrive, ms.
pub const REORDERED_MS: u32 = 5;

/// One experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Decides which metrics are compared and with which limits.
    pub kind: Kind,
    /// Algorithm of each flow, by the kernel's name.
    pub flows: Vec<&'static str>,
    /// The path.
    pub path: Path,
    /// Buffer of the bottleneck, in bandwidth-delay products.
    pub buffer_bdp: f64,
    /// Probability that a data packet is lost after the bottleneck.
    pub loss: f64,
    /// Time between the starts of two flows, ms.
    pub stagger_ms: u32,
    /// A queue discipline, an outage, reordering: at most one of them.
    pub condition: Condition,
    /// Length of the measured part, s.
    pub duration_s: u32,
    /// Runs.
    pub repeats: u32,
    /// Version and tick rate of the kernel that was measured.
    pub kernel: Kernel,
}

impl Cell {
    /// Buffer of the bottleneck, packets, the one in transmission included: [`Self::buffer_bdp`]
    /// rounded to whole packets, halves up.
    pub fn buffer(&self) -> u64 {
        (self.buffer_bdp * self.path.bdp()).round() as u64
    }

    /// Name: algorithms, path, buffer, what else sets it apart, and the kernel unless it has 100
    /// ticks a second: `reno+cubic-100x40-b1`, `reno-100x40-b1-p1e-3`, `reno16-100x40-b1-s0.1`,
    /// `cubic-20x30-b4-codel-ecn@6.12`.
    pub fn id(&self) -> String {
        let kernel = match self.kernel {
            Kernel::Hz100 => String::new(),
            other => format!("@{}", other.name()),
        };
        self.experiment() + &kernel
    }

    /// The name without the kernel.
    pub fn experiment(&self) -> String {
        let flows = match (self.kind, self.condition) {
            (Kind::Many, _) => format!("{}{}", self.flows[0], self.flows.len()),
            (_, Condition::Reverse) => self.flows[0].to_owned(),
            _ => self.flows.join("+"),
        };
        let mut id = format!("{flows}-{}-b{}", self.path, self.buffer_bdp);
        id += &match self.condition {
            Condition::Plain => String::new(),
            Condition::Queue(q) if q.ecn => format!("-{}-ecn", q.discipline),
            Condition::Queue(q) => format!("-{}", q.discipline),
            Condition::Outage(seconds) => format!("-outage{seconds}"),
            Condition::Reorder => "-reorder".to_owned(),
            Condition::AckLoss(p) => format!("-acks{p}"),
            Condition::Reverse => "-reverse".to_owned(),
            Condition::Transfer(segments) => format!("-size{segments}"),
        };
        if self.loss > 0.0 {
            id += &format!("-p{:e}", self.loss);
        }
        if self.stagger_ms > 0 {
            id += &format!("-s{}", f64::from(self.stagger_ms) / 1e3);
        }
        id
    }

    /// Name of a run: `reno-20x30-b1.r0`.
    pub fn run_name(&self, repeat: u32) -> String {
        format!("{}.r{repeat}", self.id())
    }

    /// The cell as its `n`-th run has it. Runs of two flows differ in when the second one starts:
    /// which of two flows loses the one packet too many is decided by microseconds, and decides
    /// their shares for tens of seconds.
    pub fn run(&self, n: u32) -> Self {
        let mut cell = self.clone();
        if matches!(self.kind, Kind::Pair | Kind::Reverse) {
            cell.stagger_ms += NUDGES_MS[n as usize % NUDGES_MS.len()];
        }
        cell
    }

    /// Start of a flow, ms after the first one's.
    pub fn start_ms(&self, flow: usize) -> u64 {
        flow as u64 * u64::from(self.stagger_ms)
    }

    /// Start of the part that is measured, ms: all flows have started.
    pub fn from_ms(&self) -> u64 {
        self.start_ms(self.flows.len() - 1)
    }

    /// End of the run and of the measured part, ms.
    pub fn end_ms(&self) -> u64 {
        self.from_ms() + u64::from(self.duration_s) * 1000
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

/// How much later the second flow of a pair starts, in each of its runs.
const NUDGES_MS: [u32; 8] = [0, 3, 13, 1, 7, 19, 23, 29];

/// True if `pattern` matches all of `text`: `*` any run of characters, `?` one character, `,`
/// between alternatives.
pub fn matches(pattern: &str, text: &str) -> bool {
    fn one(p: &[u8], t: &[u8]) -> bool {
        match (p.first(), t.first()) {
            (None, None) => true,
            (Some(b'*'), _) => one(&p[1..], t) || (!t.is_empty() && one(p, &t[1..])),
            (Some(b'?'), Some(_)) => one(&p[1..], &t[1..]),
            (Some(a), Some(b)) if a == b => one(&p[1..], &t[1..]),
            _ => false,
        }
    }
    pattern
        .split(',')
        .any(|p| one(p.as_bytes(), text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_in_packets() {
        let packets = |path: Path| {
            BUFFERS.map(|buffer_bdp| {
                let cell = all().remove(0);
                Cell {
                    buffer_bdp,
                    path,
                    ..cell
                }
                .buffer()
            })
        };
        assert_eq!(packets(PATHS[0]), [5, 13, 50, 100]);
        assert_eq!(packets(PATHS[1]), [33, 83, 333, 667]);
        assert_eq!(packets(PATHS[2]), [125, 313, 1250, 2500]);
        assert_eq!(packets(PATHS[3]), [267, 667, 2667, 5333]);
    }

    #[test]
    fn times_of_staggered_flows() {
        let staggered = of("cubic+cubic-100x150-b1-s20").unwrap();
        assert_eq!((staggered.from_ms(), staggered.end_ms()), (20_000, 140_000));
        assert_eq!(of("reno16-100x40-b1-s0.1").unwrap().end_ms(), 121_500);
    }

    #[test]
    fn a_name_says_the_kernel() {
        for cell in all() {
            assert_eq!(Kernel::of(&cell.id()), cell.kernel, "{cell}");
        }
    }

    #[test]
    fn patterns() {
        assert!(matches("reno-*", "reno-100x40-b1"));
        assert!(!matches("reno-*", "reno+cubic-100x40-b1"));
        assert!(matches("*-20x30-b?", "lp-20x30-b1"));
        assert!(!matches("*-20x30-b?", "lp-20x30-b0.1"));
        assert!(!matches("*-20x30-b?", "lp-20x30-b1@6.12"));
        assert!(matches("a*,cubic*", "cubic-20x30-b1"));
        assert!(!matches("", "x"));
    }
}
