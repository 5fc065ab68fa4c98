//! The cells: experiments that run both in Linux and in the simulator.
//!
//! A cell is a path, a buffer, the algorithms that share it, a loss rate and a number of repeats.
//! The list is fixed ([`all`]); its order is the order of [`sweep`], cheap and telling cells first.

use std::fmt;

/// The congestion-control modules of Linux 6.1 that the simulator has a law for, by the kernel's
/// names.
pub const MODULES: [&str; 13] = [
    "reno",
    "cubic",
    "highspeed",
    "scalable",
    "htcp",
    "bic",
    "vegas",
    "westwood",
    "hybla",
    "illinois",
    "yeah",
    "veno",
    "lp",
];

/// The paths: Mbit/s and RTT in ms.
pub const PATHS: [Path; 4] = [
    Path::new(20, 30),
    Path::new(100, 40),
    Path::new(100, 150),
    Path::new(400, 80),
];

/// Buffers of the single-flow cells, in bandwidth-delay products.
pub const BUFFERS: [f64; 4] = [0.1, 0.25, 1.0, 2.0];

/// Probabilities of random loss.
pub const LOSSES: [f64; 3] = [1e-4, 1e-3, 1e-2];

/// Runs of a cell with random loss: the oracle's loss has no seed.
pub const REPEATS: u32 = 5;

/// Length of the measured part, s.
pub const DURATION_S: u32 = 120;

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
    const fn new(rate_mbit: u32, rtt_ms: u32) -> Self {
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
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Single => "single",
            Self::Pair => "pair",
            Self::Loss => "loss",
            Self::Many => "many",
        })
    }
}

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
    /// Runs.
    pub repeats: u32,
}

impl Cell {
    /// Buffer of the bottleneck, packets, the one in transmission included: [`Self::buffer_bdp`]
    /// rounded to whole packets, halves up.
    pub fn buffer(&self) -> u64 {
        (self.buffer_bdp * self.path.bdp()).round() as u64
    }

    /// Name: algorithms, path, buffer, and what else sets it apart:
    /// `reno+cubic-100x40-b1`, `reno-100x40-b1-p1e-3`, `reno16-100x40-b1-s0.1`.
    pub fn id(&self) -> String {
        let flows = if self.kind == Kind::Many {
            format!("{}{}", self.flows[0], self.flows.len())
        } else {
            self.flows.join("+")
        };
        let mut id = format!("{flows}-{}-b{}", self.path, self.buffer_bdp);
        if self.loss > 0.0 {
            id += &format!("-p{:e}", self.loss);
        }
        if self.stagger_ms > 0 {
            id += &format!("-s{}", f64::from(self.stagger_ms) / 1e3);
        }
        id
    }

    /// The cell as its `n`-th run has it. Runs of a pair differ in when the second flow starts:
    /// which of two flows loses the one packet too many is decided by microseconds, and decides
    /// their shares for tens of seconds.
    pub fn run(&self, n: u32) -> Self {
        let mut cell = self.clone();
        if self.kind == Kind::Pair {
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
        self.from_ms() + u64::from(DURATION_S) * 1000
    }

    /// The oracle's parameters, as `run.sh` takes them.
    pub fn parameters(&self) -> Vec<String> {
        let cc = if self.kind == Kind::Many {
            format!("{}*{}", self.flows[0], self.flows.len())
        } else {
            self.flows.join("+")
        };
        let mut p = vec![
            format!("CC={cc}"),
            format!("BW={}", self.path.rate_mbit),
            format!("DELAY={}", f64::from(self.path.rtt_ms) / 2.0),
            format!("BUF={}", self.buffer()),
            format!("DUR={DURATION_S}"),
        ];
        if self.loss > 0.0 {
            // Percent; the product is rounded to what a person would write.
            p.push(format!("LOSS={}", (self.loss * 1e8).round() / 1e6));
        }
        if self.stagger_ms > 0 {
            p.push(format!("STAGGER={}", f64::from(self.stagger_ms) / 1e3));
        }
        p
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id())
    }
}

/// How much later the second flow of a pair starts, in each of its runs.
const NUDGES_MS: [u32; 8] = [0, 3, 13, 1, 7, 19, 23, 29];

/// Every cell, in the order of [`sweep`].
pub fn all() -> Vec<Cell> {
    let mut cells = singles();
    cells.extend(pairs());
    cells.extend(losses());
    cells.push(many());
    cells.sort_by_key(sweep);
    cells
}

/// Place of a cell in a sweep: the well-known path first, the dearest last. Stable sorting keeps
/// the rest as listed.
pub fn sweep(cell: &Cell) -> u32 {
    match (cell.kind, cell.path.rate_mbit, cell.path.rtt_ms) {
        (Kind::Single, 100, 40) => 0,
        (Kind::Single, 20, _) => 1,
        (Kind::Single, 100, _) => 2,
        (Kind::Pair, ..) => 3,
        (Kind::Loss, ..) => 4,
        (Kind::Many, ..) => 5,
        (Kind::Single, ..) => 6,
    }
}

/// One flow on every path with every buffer.
fn singles() -> Vec<Cell> {
    let mut cells = Vec::new();
    for module in MODULES {
        for path in PATHS {
            for buffer_bdp in BUFFERS {
                cells.push(Cell {
                    kind: Kind::Single,
                    flows: vec![module],
                    path,
                    buffer_bdp,
                    loss: 0.0,
                    stagger_ms: 0,
                    repeats: 1,
                });
            }
        }
    }
    cells
}

/// One flow under random loss.
fn losses() -> Vec<Cell> {
    let mut cells = Vec::new();
    for module in MODULES {
        for loss in LOSSES {
            cells.push(Cell {
                kind: Kind::Loss,
                flows: vec![module],
                path: Path::new(100, 40),
                buffer_bdp: 1.0,
                loss,
                stagger_ms: 0,
                repeats: REPEATS,
            });
        }
    }
    cells
}

/// Two flows that share a path.
fn pairs() -> Vec<Cell> {
    let list: [(&'static str, &'static str, u32); 6] = [
        ("reno", "cubic", 0),
        ("reno", "highspeed", 0),
        ("cubic", "htcp", 0),
        ("reno", "scalable", 0),
        ("reno", "vegas", 0),
        ("cubic", "cubic", 20_000),
    ];
    let mut cells = Vec::new();
    for path in [Path::new(100, 40), Path::new(100, 150)] {
        for (a, b, stagger_ms) in list {
            cells.push(Cell {
                kind: Kind::Pair,
                flows: vec![a, b],
                path,
                buffer_bdp: 1.0,
                loss: 0.0,
                stagger_ms,
                // Two alike begin where nothing but chance tells them apart: Linux' own shares
                // spread by 21 points.
                repeats: if a == b { NUDGES_MS.len() as u32 } else { 3 },
            });
        }
    }
    cells
}

/// Sixteen flows of Reno, started 0.1 s apart so that they do not begin in lockstep.
fn many() -> Cell {
    Cell {
        kind: Kind::Many,
        flows: vec!["reno"; 16],
        path: Path::new(100, 40),
        buffer_bdp: 1.0,
        loss: 0.0,
        stagger_ms: 100,
        repeats: 1,
    }
}

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
    use std::collections::BTreeSet;

    #[test]
    fn counts() {
        let cells = all();
        let of = |kind| cells.iter().filter(|c| c.kind == kind).count();
        assert_eq!(of(Kind::Single), 13 * 4 * 4);
        assert_eq!(of(Kind::Loss), 13 * 3);
        assert_eq!(of(Kind::Pair), 6 * 2);
        assert_eq!(of(Kind::Many), 1);
        let runs: u32 = cells.iter().map(|c| c.repeats).sum();
        assert_eq!(runs, 208 + 39 * 5 + 10 * 3 + 2 * 8 + 1);
        let ids: BTreeSet<String> = cells.iter().map(Cell::id).collect();
        assert_eq!(ids.len(), cells.len());
    }

    #[test]
    fn buffers_in_packets() {
        let packets = |path: Path| {
            BUFFERS.map(|buffer_bdp| {
                Cell {
                    buffer_bdp,
                    path,
                    ..many()
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
    fn names_and_parameters() {
        let cells = all();
        let find = |id: &str| cells.iter().find(|c| c.id() == id).unwrap();
        assert_eq!(
            find("reno-20x30-b0.25").parameters().join(" "),
            "CC=reno BW=20 DELAY=15 BUF=13 DUR=120"
        );
        assert_eq!(
            find("lp-100x40-b1-p1e-4").parameters().join(" "),
            "CC=lp BW=100 DELAY=20 BUF=333 DUR=120 LOSS=0.01"
        );
        let staggered = find("cubic+cubic-100x150-b1-s20");
        assert_eq!(
            staggered.parameters().join(" "),
            "CC=cubic+cubic BW=100 DELAY=75 BUF=1250 DUR=120 STAGGER=20"
        );
        assert_eq!((staggered.from_ms(), staggered.end_ms()), (20_000, 140_000));
        let many = find("reno16-100x40-b1-s0.1");
        assert_eq!(
            many.parameters().join(" "),
            "CC=reno*16 BW=100 DELAY=20 BUF=333 DUR=120 STAGGER=0.1"
        );
        assert_eq!(many.end_ms(), 121_500);
    }

    #[test]
    fn the_sweep_begins_with_reno_on_the_common_path() {
        let cells = all();
        assert_eq!(cells[0].id(), "reno-100x40-b0.1");
        assert_eq!(cells.last().unwrap().path, Path::new(400, 80));
    }

    #[test]
    fn patterns() {
        assert!(matches("reno-*", "reno-100x40-b1"));
        assert!(!matches("reno-*", "reno+cubic-100x40-b1"));
        assert!(matches("*-20x30-b?", "lp-20x30-b1"));
        assert!(!matches("*-20x30-b?", "lp-20x30-b0.1"));
        assert!(matches("a*,cubic*", "cubic-20x30-b1"));
        assert!(!matches("", "x"));
    }
}
