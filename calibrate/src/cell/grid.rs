//! Which cells there are: long runs over four drop-tail paths, and short ones over everything else
//! that both sides can do.

use fullpipe_cc::StackSpec;
use fullpipe_linux::MODULES;

use super::{Cell, Condition, Kernel, Kind, NUDGES_MS, Path, Queue};

/// The paths of the long cells: Mbit/s and RTT in ms.
pub const PATHS: [Path; 4] = [
    Path::new(20, 30),
    Path::new(100, 40),
    Path::new(100, 150),
    Path::new(400, 80),
];

/// Buffers of the long single-flow cells, in bandwidth-delay products.
pub const BUFFERS: [f64; 4] = [0.1, 0.25, 1.0, 2.0];

/// Probabilities of random loss.
pub const LOSSES: [f64; 3] = [1e-4, 1e-3, 1e-2];

/// Runs of a cell in which something is drawn at random.
const REPEATS: u32 = 5;

/// The loss-based and delay-based modules of the kernel that the simulator has a law for: all but
/// BBR, which has a page of its own, and DCTCP, which is Reno where nothing is marked.
pub fn laws() -> Vec<&'static str> {
    let known = |m: &&str| StackSpec::parse(&format!("{m}-linux")).is_ok();
    let laws = MODULES.iter().copied().filter(known);
    laws.filter(|m| !["bbr", "dctcp"].contains(m)).collect()
}

/// The modules of the short cells that are not about the window law itself.
const SHORT: [&str; 7] = ["cubic", "reno", "bic", "htcp", "vegas", "westwood", "bbr"];

/// The path of most short cells: a second is 1,667 packets.
const SMALL: Path = Path::new(20, 30);

/// Every cell, in the order of a sweep: cheap and telling ones first.
pub fn all() -> Vec<Cell> {
    let mut cells = long_singles();
    cells.extend(long_pairs());
    cells.extend(long_losses());
    cells.push(many());
    cells.sort_by_key(sweep);
    for kernel in [Kernel::V6_1, Kernel::V6_12] {
        cells.extend(short(kernel));
    }
    cells.extend(ticks());
    cells
}

/// The cell of that name.
pub fn of(id: &str) -> Option<Cell> {
    all().into_iter().find(|c| c.id() == id)
}

/// Place of a long cell in a sweep: the well-known path first, the dearest last. Stable sorting
/// keeps the rest as listed.
fn sweep(cell: &Cell) -> u32 {
    match (cell.kind, cell.path.rate_mbit, cell.path.rtt_ms) {
        (Kind::Single, 100, 40) => 0,
        (Kind::Single, 20, _) => 1,
        (Kind::Single, 100, _) => 2,
        (Kind::Pair, ..) => 3,
        (Kind::Loss, ..) => 4,
        (Kind::Single, ..) => 6,
        _ => 5,
    }
}

/// One flow for two minutes, 100 ticks a second.
fn long(module: &'static str, path: Path) -> Cell {
    Cell {
        kind: Kind::Single,
        flows: vec![module],
        path,
        buffer_bdp: 1.0,
        loss: 0.0,
        stagger_ms: 0,
        condition: Condition::Plain,
        duration_s: 120,
        repeats: 1,
        kernel: Kernel::Hz100,
    }
}

/// One flow on every path with every buffer.
fn long_singles() -> Vec<Cell> {
    let mut cells = Vec::new();
    for module in laws() {
        for path in PATHS {
            cells.extend(BUFFERS.map(|buffer_bdp| Cell {
                buffer_bdp,
                ..long(module, path)
            }));
        }
    }
    cells
}

/// One flow under random loss.
fn long_losses() -> Vec<Cell> {
    let mut cells = Vec::new();
    for module in laws() {
        cells.extend(LOSSES.map(|loss| Cell {
            kind: Kind::Loss,
            loss,
            repeats: REPEATS,
            ..long(module, Path::new(100, 40))
        }));
    }
    cells
}

/// Two flows that share a path.
fn long_pairs() -> Vec<Cell> {
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
        cells.extend(list.map(|(a, b, stagger_ms)| Cell {
            kind: Kind::Pair,
            flows: vec![a, b],
            stagger_ms,
            // Two alike begin where nothing but chance tells them apart: Linux's own shares
            // spread by 21 points.
            repeats: if a == b { NUDGES_MS.len() as u32 } else { 3 },
            ..long(a, path)
        }));
    }
    cells
}

/// Sixteen flows of Reno, started 0.1 s apart so that they do not begin in lockstep.
fn many() -> Cell {
    Cell {
        kind: Kind::Many,
        flows: vec!["reno"; 16],
        stagger_ms: 100,
        ..long("reno", Path::new(100, 40))
    }
}

/// The short cells of a kernel with 250 ticks a second.
fn short(kernel: Kernel) -> Vec<Cell> {
    let cell = |module, duration_s| Cell {
        duration_s,
        kernel,
        ..long(module, SMALL)
    };
    let mut cells = Vec::new();
    for module in laws().into_iter().filter(|m| *m != "lp").chain(["bbr"]) {
        cells.extend([0.25, 1.0, 2.0].map(|buffer_bdp| Cell {
            buffer_bdp,
            ..cell(module, 60)
        }));
    }
    for module in SHORT {
        cells.push(Cell {
            path: Path::new(50, 60),
            ..cell(module, 20)
        });
        cells.push(Cell {
            path: Path::new(10, 100),
            ..cell(module, 60)
        });
        for ecn in [false, true] {
            cells.extend(["red", "pie", "codel", "fq-codel"].map(|discipline| {
                let queue = Queue { discipline, ecn };
                behind(queue, cell(module, 30))
            }));
        }
        cells.extend([1, 3, 10].map(|seconds| outage(seconds, cell(module, 40))));
        cells.push(Cell {
            kind: Kind::Reorder,
            condition: Condition::Reorder,
            repeats: REPEATS,
            ..cell(module, 30)
        });
        cells.push(Cell {
            kind: Kind::Acks,
            condition: Condition::AckLoss(0.3),
            repeats: REPEATS,
            ..cell(module, 30)
        });
        cells.extend([1e-3, 1e-2].map(|loss| Cell {
            kind: Kind::Loss,
            loss,
            repeats: REPEATS,
            ..cell(module, 30)
        }));
        cells.push(Cell {
            kind: Kind::Reverse,
            flows: vec![module, module],
            condition: Condition::Reverse,
            repeats: REPEATS,
            ..cell(module, 30)
        });
        // 100 kB, 1 MB, 10 MB.
        cells.extend([70, 700, 7000].map(|segments| transfer(segments, cell(module, 15))));
    }
    cells
}

/// What depends on the ticks of a kernel: timers, and what follows from them.
fn ticks() -> Vec<Cell> {
    let mut cells = Vec::new();
    for module in SHORT {
        let cell = |duration_s| Cell {
            duration_s,
            kernel: Kernel::Hz1000,
            ..long(module, SMALL)
        };
        cells.extend([0.25, 1.0].map(|buffer_bdp| Cell {
            buffer_bdp,
            ..cell(60)
        }));
        let (discipline, ecn) = ("codel", false);
        cells.push(behind(Queue { discipline, ecn }, cell(30)));
        cells.push(outage(3, cell(40)));
        cells.push(transfer(700, cell(15)));
    }
    cells
}

/// Behind an active queue with room for four bandwidth-delay products.
fn behind(queue: Queue, cell: Cell) -> Cell {
    Cell {
        kind: if queue.ecn { Kind::Ecn } else { Kind::Queue },
        buffer_bdp: 4.0,
        condition: Condition::Queue(queue),
        // RED and PIE draw, CoDel does not.
        repeats: match queue.discipline {
            "red" | "pie" => REPEATS,
            _ => 1,
        },
        ..cell
    }
}

fn outage(seconds: u32, cell: Cell) -> Cell {
    Cell {
        kind: Kind::Outage,
        condition: Condition::Outage(seconds),
        ..cell
    }
}

fn transfer(segments: u32, cell: Cell) -> Cell {
    Cell {
        kind: Kind::Transfer,
        condition: Condition::Transfer(segments),
        ..cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn counts() {
        let cells = all();
        let long: Vec<&Cell> = cells.iter().filter(|c| c.kernel == Kernel::Hz100).collect();
        let of = |kind| long.iter().filter(|c| c.kind == kind).count();
        assert_eq!(of(Kind::Single), 13 * 4 * 4);
        assert_eq!(of(Kind::Loss), 13 * 3);
        assert_eq!(of(Kind::Pair), 6 * 2);
        assert_eq!(of(Kind::Many), 1);
        let runs: u32 = long.iter().map(|c| c.repeats).sum();
        assert_eq!(runs, 208 + 39 * 5 + 10 * 3 + 2 * 8 + 1);
        let ids: BTreeSet<String> = cells.iter().map(Cell::id).collect();
        assert_eq!(ids.len(), cells.len());
        assert!(cells.len() >= 400);
    }

    #[test]
    fn both_releases_have_the_same_short_cells() {
        let of = |kernel| {
            let cells = all().into_iter().filter(move |c| c.kernel == kernel);
            cells.map(|c| c.experiment()).collect::<Vec<_>>()
        };
        assert_eq!(of(Kernel::V6_1), of(Kernel::V6_12));
        for experiment in of(Kernel::Hz1000) {
            assert!(of(Kernel::V6_1).contains(&experiment), "{experiment}");
        }
    }

    #[test]
    fn short_cells_are_short() {
        for cell in all().iter().filter(|c| c.kernel != Kernel::Hz100) {
            let bits = cell.path.rate_mbit * cell.duration_s * 1_000_000;
            assert!(bits / 12_000 <= 100_000, "{cell}");
        }
    }

    #[test]
    fn the_sweep_begins_with_reno_on_the_common_path() {
        assert_eq!(all()[0].id(), "reno-100x40-b0.1");
    }
}
