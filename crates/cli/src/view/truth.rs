//! What is said of an emulated path after a run: links, lateness, and whether it was true.

use std::borrow::Cow;

use fullpipe_emulate::emulation::LoopOutcome;
use fullpipe_emulate::namespace::CongestionControl;
use fullpipe_emulate::privilege::Privilege;
use fullpipe_emulate::stage::KernelOutcome;
use fullpipe_emulate::truth::{Check, Verdict};
use fullpipe_results::result::printed;
use fullpipe_run::Lateness;
use fullpipe_units::Span;
use serde_json::{Value, json};

use crate::table::{Align, Table, number};

/// A run that is over.
#[derive(Debug)]
pub struct Emulated<'a> {
    /// Root, or a user namespace.
    pub privilege: Privilege,
    /// Congestion control of the near host's TCP.
    pub congestion_control: &'a CongestionControl,
    /// Who carried the packets, and what was counted.
    pub carried: &'a Carried,
    /// The checks before and during the run.
    pub verdict: &'a Verdict,
    /// Programs on the far host.
    pub far: &'a [Far<'a>],
    /// Status of the command as a shell has it; `None`: the run was ended.
    pub exit: Option<i32>,
    /// A signal ended the run before the command had ended.
    pub interrupted: bool,
}

/// Who carried the packets of a path, and what was counted.
#[derive(Debug)]
pub enum Carried {
    /// The path's thread.
    ByThread(LoopOutcome),
    /// The kernel's queues.
    ByKernel(KernelOutcome),
}

/// Packets of a link.
struct Row<'a> {
    name: &'a str,
    packets: u64,
    buffer_drops: u64,
    random_drops: u64,
    early_drops: u64,
    policer_drops: u64,
    marks: u64,
    /// Longest queue; nobody sees that of the kernel's.
    queue_max: Option<u64>,
}

impl Carried {
    fn word(&self) -> &'static str {
        match self {
            Self::ByThread(_) => "fullpipe",
            Self::ByKernel(_) => "netem",
        }
    }

    fn thread(&self) -> Option<&LoopOutcome> {
        match self {
            Self::ByThread(outcome) => Some(outcome),
            Self::ByKernel(_) => None,
        }
    }

    fn span(&self) -> Span {
        match self {
            Self::ByThread(outcome) => outcome.span,
            Self::ByKernel(outcome) => outcome.span,
        }
    }

    fn rows(&self) -> Vec<Row<'_>> {
        match self {
            Self::ByThread(outcome) => (outcome.links.iter())
                .map(|(_, link)| Row {
                    name: &link.name,
                    packets: link.offered,
                    buffer_drops: link.buffer_drops,
                    random_drops: link.random_drops,
                    early_drops: link.early_drops,
                    policer_drops: link.policer_drops,
                    marks: link.marks,
                    queue_max: Some(link.queue_max),
                })
                .collect(),
            Self::ByKernel(outcome) => (outcome.ways.iter())
                .map(|way| Row {
                    name: &way.name,
                    packets: way.packets,
                    buffer_drops: way.buffer_drops,
                    random_drops: way.random_drops,
                    early_drops: 0,
                    policer_drops: 0,
                    marks: 0,
                    queue_max: None,
                })
                .collect(),
        }
    }
}

/// A command on the far host.
#[derive(Debug)]
pub struct Far<'a> {
    /// The line of the shell.
    pub command: Cow<'a, str>,
    /// Its status; `None`: it was still running when the run ended.
    pub exit: Option<i32>,
}

impl Emulated<'_> {
    /// For people.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.column(Align::Left, &["path"]);
        for head in ["specified", "measured", "accepted"] {
            table.column(Align::Right, &[head]);
        }
        table.column(Align::Left, &[""]);
        for check in self.verdict.all() {
            table.row(vec![
                format!("{}, {}", check.name, check.unit),
                check.specified.map_or_else(|| "-".to_owned(), digits),
                digits(check.measured),
                accepted(check),
                if check.holds() { "" } else { "FLAGGED" }.to_owned(),
            ]);
        }
        let mut text = format!("{}\n{}\n\n{}", self.headline(), self.tcp(), table.text());
        for far in self.far {
            if let Some(exit @ 1..) = far.exit {
                text += &format!("\n`{}` on the far host ended with {exit}\n", far.command);
            }
        }
        let mut links = Table::new();
        links.column(Align::Left, &["link"]);
        for head in ["packets", "buffer", "random", "queue", "policer", "marked"] {
            links.column(Align::Right, &[head]);
        }
        for link in self.carried.rows() {
            let counts = [
                link.packets,
                link.buffer_drops,
                link.random_drops,
                link.early_drops,
                link.policer_drops,
                link.marks,
            ];
            let mut row = vec![link.name.to_owned()];
            row.extend(counts.map(|n| n.to_string()));
            links.row(row);
        }
        text += "\ndropped by\n";
        text + &links.text()
    }

    /// `emulated as root, in real-time priority, for 12.2 s: true to its specification`.
    fn headline(&self) -> String {
        let how = match self.carried.thread().map(|outcome| outcome.real_time) {
            Some(true) => "with real-time priority",
            Some(false) => "without real-time priority",
            None => "by netem and tbf of the kernel",
        };
        let flags = self.verdict.flags().count();
        let verdict = match (flags, &self.verdict.before) {
            (0, Some(_)) => "true to its specification".to_owned(),
            (0, None) => "not measured before, nothing wrong seen".to_owned(),
            (1, _) => "FLAGGED, 1 check fails".to_owned(),
            (n, _) => format!("FLAGGED, {n} checks fail"),
        };
        let interrupted = if self.interrupted {
            ", interrupted"
        } else {
            ""
        };
        format!(
            "emulated {}, {how}, for {} s{interrupted}: {verdict}",
            self.privilege.word(),
            number(self.carried.span().as_secs_f64(), 1),
        )
    }

    /// `TCP of the hosts: bbr; reno for programs that ask for it; cubic for root's that do`.
    fn tcp(&self) -> String {
        let congestion = self.congestion_control;
        let others = |names: &[String], known: &[String]| {
            let others = names
                .iter()
                .filter(|n| **n != congestion.default && !known.contains(n));
            others.cloned().collect::<Vec<_>>().join(", ")
        };
        let asked = [
            (others(&congestion.allowed, &[]), "programs that ask for it"),
            (
                others(&congestion.available, &congestion.allowed),
                "root's that do",
            ),
        ];
        let asked = asked.iter().filter(|(names, _)| !names.is_empty());
        let asked: String = asked
            .map(|(names, whose)| format!("; {names} for {whose}"))
            .collect();
        format!("TCP of the hosts: {}{asked}", congestion.default)
    }

    /// For programs.
    pub fn json(&self) -> String {
        let thread = self.carried.thread();
        let millis = |span: Span| span.as_secs_f64() * 1e3;
        let links = self.carried.rows();
        let links = links.iter().map(|link| {
            json!({
                "name": link.name,
                "packets": link.packets,
                "buffer_drops": link.buffer_drops,
                "random_drops": link.random_drops,
                "early_drops": link.early_drops,
                "policer_drops": link.policer_drops,
                "marks": link.marks,
                "queue_max_packets": link.queue_max,
            })
        });
        let value = json!({
            "fullpipe": env!("CARGO_PKG_VERSION"),
            "by": self.carried.word(),
            "privilege": self.privilege.word(),
            "congestion_control": {
                "default": self.congestion_control.default,
                "allowed": self.congestion_control.allowed,
                "available": self.congestion_control.available,
            },
            "real_time_priority": thread.map(|outcome| outcome.real_time),
            "tick_ms": thread.map(|outcome| millis(outcome.grain)),
            "seconds": self.carried.span().as_secs_f64(),
            "true": self.verdict.is_true(),
            "measured_before": self.verdict.before.is_some(),
            "flags": self.verdict.flags().map(sentence).collect::<Vec<_>>(),
            "checks": self.verdict.all().map(object).collect::<Vec<_>>(),
            "late_ms": thread.map(|outcome| {
                let late = Lateness::of(&outcome.lateness);
                json!({
                    "p50": millis(late.p50), "p99": millis(late.p99), "max": millis(late.max),
                })
            }),
            "packets": thread.map(|outcome| json!({
                "in": outcome.arrived,
                "out": outcome.left,
                "reads": outcome.reads,
                "writes": outcome.writes,
                "ignored": outcome.ignored,
            })),
            "cores": thread.map(|outcome| {
                outcome.cpu.as_secs_f64() / outcome.span.as_secs_f64()
            }),
            "links": links.collect::<Vec<_>>(),
            "far": self.far.iter().map(|far| {
                json!({ "command": far.command, "exit": far.exit })
            }).collect::<Vec<_>>(),
            "exit": self.exit,
            "interrupted": self.interrupted,
        });
        printed::pretty(&value)
    }
}

fn object(check: &Check) -> Value {
    json!({
        "name": check.name,
        "unit": check.unit,
        "specified": check.specified,
        "measured": check.measured,
        "accepted": [check.bound.0, check.bound.1],
        "holds": check.holds(),
    })
}

/// `late departures, p99: 3.2 ms, accepted 0 to 1`.
fn sentence(check: &Check) -> String {
    format!(
        "{}: {} {}, accepted {}",
        check.name,
        digits(check.measured),
        check.unit,
        accepted(check)
    )
}

fn accepted(check: &Check) -> String {
    match check.bound {
        (low, high) if low == high => digits(low),
        (0.0, high) => format!("up to {}", digits(high)),
        (low, high) => format!("{} to {}", digits(low), digits(high)),
    }
}

fn digits(value: f64) -> String {
    number(value, 4)
}
