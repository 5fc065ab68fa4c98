//! Queue disciplines: their keys, and what the simulator makes of them.

use fullpipe_metrics::bdp_packets;
use fullpipe_run::{Codel, Discipline, FqCodel, Pie, QueueRule, Red};
use fullpipe_units::{BufferSize, Rate, Span};

use crate::value::{
    At, Either, Findings, HOUR, Key, Kinds, MICROSECOND, Record, Sub, Table, Words, by_variety,
    keys, kinds, words,
};

keys! {
    /// `queue` as a table.
    QueueTable by QueueKind {
        kind: word(QueueKind) [!], "red", "discipline";
        ecn: flag [= false], true, "mark packets of flows with `ecn` instead of dropping them";
        ce_threshold: span(1000, HOUR) [or "never"], "1ms",
            "an ECN-capable packet that has waited longer is marked whatever the discipline says: \
             the step of DCTCP's queues, in time (Linux `ce_threshold`)";
        by: word(QueueRule) [= QueueRule::Rfc], "linux",
            "whose discipline, where the kernel's or ns-2's departs from its document";
        hz: whole(24, 10_000, "") [= Pie::default().hz], 1000,
            "by linux: ticks per second of the clock on which the probability is updated";
        min: buffer [shows red_min()], "5 packets",
            "below this average nothing is dropped";
        max: buffer [or "three times `min`"], "15 packets",
            "average from which the probability rises to 1";
        max_p: fraction [= 0.1], 0.02,
            "drop probability at `max`, at the start of an adaptive one";
        weight: real(1e-9, 1.0)
            [shows format!(
                "(red: {}; adaptive-red: 1 - exp(-1/C) with C packets per second; by linux at \
                 least what the kernel can count beside `max`, in 31 bits)",
                classic_weight(),
            )], 0.002,
            "weight of a new sample in the average";
        gentle: flag [or "that of `by`"], false,
            "the probability reaches 1 at twice `max` instead of at `max`; \
             rfc, ns-2: true, linux: always false";
        harddrop: flag [or "that of `by`"], false,
            "with `ecn`, drop packets where the probability is 1 (RFC 3168, section 7); \
             rfc, ns-2: true, linux: false";
        target: span(1, HOUR) [shows of_kinds("target")], "5ms",
            "queueing delay aimed at";
        interval: span(1, HOUR) [= Codel::default().interval], "100ms",
            "a round trip, the time a queue may stay above the target";
        update: span(MICROSECOND, HOUR) [= Pie::default().update], "16ms",
            "time between two updates of the probability";
        alpha: real(0.0, 1e6) [= Pie::default().alpha], 0.125,
            "weight of the distance from the target, per second";
        beta: real(0.0, 1e6) [= Pie::default().beta], 1.25, "weight of the change of the delay, per second";
        max_burst: span(0, HOUR) [= Pie::default().max_burst], "150ms",
            "nothing is dropped for so long after an idle time; fixed by linux";
        mark_until: fraction [= MARK_UNTIL], 0.1,
            "with `ecn`, above this probability packets are dropped after all; fixed by linux";
        flows: whole(1, 65_536, "queues") [= FqCodel::default().flows], 1024, "number of queues";
        quantum: whole(1, 1_000_000, "bytes") [or "`path.mtu`"], 1514,
            "bytes that a queue may send per round";
    }
}

kinds! {
    /// A queue discipline.
    Queue of QueueTable,
    /// Word of a queue discipline.
    by QueueKind {
        DropTail = "droptail", "packets that find the buffer full are lost" => {};
        Red = "red", "random early detection (Floyd and Jacobson 1993)" => {
            ecn: bool,
            min: Option<BufferSize>,
            max: Option<BufferSize>,
            max_p: f64,
            weight: f64 [= f64, classic_weight()],
            gentle: Option<bool>,
            harddrop: Option<bool>,
            by: QueueRule,
        };
        AdaptiveRed = "adaptive-red",
            "random early detection that sets itself (Floyd, Gummadi, Shenker 2001); by linux: \
             its settings, but no adaptation, which `tc` has not switched on since iproute2 5.7" => {
            ecn: bool,
            min: Option<BufferSize>,
            max: Option<BufferSize>,
            max_p: f64,
            weight: Option<f64>,
            gentle: Option<bool>,
            harddrop: Option<bool>,
            by: QueueRule,
        };
        Codel = "codel", "controlled delay (RFC 8289); a packet of `path.mtu` may always wait" => {
            ecn: bool,
            ce_threshold: Option<Span>,
            by: QueueRule,
            target: Span [= Span, Codel::default().target],
            interval: Span,
        };
        FqCodel = "fq-codel", "flow queueing with controlled delay (RFC 8290)" => {
            ecn: bool,
            ce_threshold: Option<Span>,
            by: QueueRule,
            target: Span [= Span, Codel::default().target],
            interval: Span,
            flows: u32,
            quantum: Option<u32>,
        };
        Pie = "pie",
            "proportional integral controller (RFC 8033); two packets of `path.mtu` may always \
             wait; the delay is what waits at the present rate, in an outage at the last one, and \
             before a `trace`, or by linux, the wait of the packet that left last" => {
            ecn: bool,
            by: QueueRule,
            hz: u32,
            target: Span [= Span, Pie::default().target],
            update: Span,
            alpha: f64,
            beta: f64,
            max_burst: Span,
            mark_until: f64,
        };
    }
}

words! {
    QueueRule {
        Rfc = "rfc",
            "the RFC's; random early detection: its papers'; the queue that red and pie judge has \
             the packet in transmission in it";
        Linux = "linux",
            "that of Linux 6.1 (`net/sched`), as ground `linux` has it; the queue that it judges \
             is what waits behind the packet in transmission";
        Ns2 = "ns-2",
            "red, adaptive-red: those of ns-2.35, which wait between drops (`wait_`): gaps are 1/p \
             to 2/p packets, not 1 to 1/p, so that a third is dropped; judged is what waits, and \
             nothing is dropped while a single packet does";
    }
}

/// The defaults that the kinds have of a key, each with its kind.
fn of_kinds(name: &str) -> String {
    let defaults = QueueKind::ALL.iter().filter_map(|kind| {
        let own = kind.own().iter().find(|own| own.key.name == name)?;
        Some((kind.word(), own.default.map(|default| default())))
    });
    by_variety("", &defaults.collect::<Vec<_>>())
}

/// The default of `min`.
fn red_min() -> String {
    let least = Red::LEAST_MIN;
    format!(
        "(red: \"{least} packets\"; adaptive-red: half of {RED_TARGET} at the link's rate, at \
         least {least} packets)"
    )
}

/// Default weight of RED, the same for every buffer.
fn classic_weight() -> f64 {
    Red::classic(0).weight
}

/// A link that a discipline serves, and its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub rate: Rate,
    /// Round trip of the flows that cross it.
    pub rtt: Span,
    /// Bytes of a full packet.
    pub packet: u32,
}

/// The queue discipline that a key gives to a link.
pub(crate) fn discipline<T>(
    at: &At<'_, T>,
    key: &Key,
    queue: &Either<QueueKind, Sub<QueueTable>>,
    link: Served,
    findings: &mut Findings,
) -> Discipline {
    let plain = Record::empty(QueueTable::KEYS, at.record.place(key));
    let table = match queue {
        Either::First(_) => At::new(&plain, at.key(key)),
        Either::Second(table) => at.inside(key, table),
    };
    let kind = match queue {
        Either::First(kind) => Some(*kind),
        Either::Second(_) => {
            table.required_keys(findings);
            table.kind
        }
    };
    let Some((kind, queue)) = kind.and_then(|kind| Some((kind, kind.with(&table)?))) else {
        return Discipline::DropTail;
    };
    let common = |key: &Key| key.name == QueueTable::kind.name;
    let what = format!("kind `{}`", kind.word());
    table.refuse_foreign(&what, kind.own(), common, findings);
    let is_red = matches!(kind, QueueKind::Red | QueueKind::AdaptiveRed);
    if table.by == QueueRule::Ns2 && !is_red {
        let message = format!(
            "the rules of ns-2 are those of red, and this is {}",
            kind.word()
        );
        let hint = "write \"rfc\" or \"linux\", or kind = \"red\"";
        table.refuse(findings, &QueueTable::by, &message, hint);
    }
    let red = Thresholds {
        table: &table,
        link,
        per_second: link.rate.as_bits_per_sec() as f64 / (8.0 * f64::from(link.packet)),
    };
    let mtu = link.packet;
    let discipline = match queue {
        Queue::DropTail {} => Discipline::DropTail,
        Queue::Red {
            ecn,
            min,
            max,
            max_p,
            weight,
            gentle,
            harddrop,
            by,
        } => {
            let (min, max) = red.packets(min, max, Red::LEAST_MIN, findings);
            Discipline::Red(Red {
                min,
                max,
                max_p,
                weight: red.weight(weight, max, by, findings),
                gentle: red.gentle(gentle, by, findings),
                adaptive: false,
                ecn,
                harddrop: harddrop.unwrap_or(by != QueueRule::Linux),
                by,
                mtu,
            })
        }
        Queue::AdaptiveRed {
            ecn,
            min,
            max,
            max_p,
            weight,
            gentle,
            harddrop,
            by,
        } => {
            let usual = Red::adaptive(red.per_second, RED_TARGET);
            let (min, max) = red.packets(min, max, usual.min, findings);
            Discipline::Red(Red {
                min,
                max,
                max_p,
                weight: red.weight(weight.unwrap_or(usual.weight), max, by, findings),
                gentle: red.gentle(gentle, by, findings),
                adaptive: true,
                ecn,
                harddrop: harddrop.unwrap_or(by != QueueRule::Linux),
                by,
                mtu,
            })
        }
        Queue::Codel {
            ecn,
            ce_threshold,
            by,
            target,
            interval,
        } => Discipline::Codel(Codel {
            target,
            interval,
            ecn,
            ce_threshold,
            by,
            mtu,
        }),
        Queue::FqCodel {
            ecn,
            ce_threshold,
            by,
            target,
            interval,
            flows,
            quantum,
        } => Discipline::FqCodel(FqCodel {
            codel: Codel {
                target,
                interval,
                ecn,
                ce_threshold,
                by,
                mtu,
            },
            flows,
            quantum: quantum.unwrap_or(mtu),
        }),
        Queue::Pie {
            ecn,
            by,
            hz,
            target,
            update,
            alpha,
            beta,
            max_burst,
            mark_until,
        } => {
            if table.is_given(&QueueTable::mark_until) && !ecn {
                let message = "nothing is marked without `ecn`";
                table.refuse(
                    findings,
                    &QueueTable::mark_until,
                    message,
                    "write ecn = true",
                );
            }
            let fixed = [
                (
                    &QueueTable::max_burst,
                    max_burst == Pie::default().max_burst,
                ),
                (&QueueTable::mark_until, mark_until == MARK_UNTIL),
            ];
            for (key, _) in fixed.iter().filter(|f| by == QueueRule::Linux && !f.1) {
                let message = "the kernel has no switch for it";
                table.refuse(
                    findings,
                    key,
                    message,
                    "leave it out, or write by = \"rfc\"",
                );
            }
            Discipline::Pie(Pie {
                target,
                update,
                alpha,
                beta,
                max_burst,
                ecn: ecn.then_some(mark_until),
                by,
                hz,
                mtu,
            })
        }
    };
    warn_of_late_step(&table, &discipline, findings);
    discipline
}

/// A step of marks that comes after the control law has begun to act.
fn warn_of_late_step(table: &At<'_, QueueTable>, queue: &Discipline, findings: &mut Findings) {
    let (Discipline::Codel(codel) | Discipline::FqCodel(FqCodel { codel, .. })) = queue else {
        return;
    };
    let target = codel.target;
    if codel.ce_threshold.is_some_and(|step| step > target) {
        let message = format!(
            "the law acts from `target`, {target}, on: packets are dropped, or marked with `ecn`, \
             before they reach this threshold"
        );
        table.warn(findings, &QueueTable::ce_threshold, &message);
    }
}

/// The thresholds of random early detection, in packets.
struct Thresholds<'a> {
    table: &'a At<'a, QueueTable>,
    link: Served,
    /// Packets that the link sends per second.
    per_second: f64,
}

impl Thresholds<'_> {
    /// Whether the probability rises gently; refused where the kernel shall do it.
    fn gentle(&self, gentle: Option<bool>, by: QueueRule, findings: &mut Findings) -> bool {
        if by == QueueRule::Linux && gentle == Some(true) {
            let (key, message) = (&QueueTable::gentle, "the kernel's RED is not gentle");
            let hint = "write gentle = false, or by = \"rfc\"";
            self.table.refuse(findings, key, message, hint);
        }
        gentle.unwrap_or(by != QueueRule::Linux)
    }

    /// The weight, at least what the kernel can have where it is the kernel's.
    fn weight(&self, weight: f64, max: f64, by: QueueRule, findings: &mut Findings) -> f64 {
        let least = Red::least_linux_weight(max, self.link.packet);
        // The kernel's is a power of two: the next one counts.
        let fits = libm::round(libm::log2(weight)) >= libm::log2(least);
        if by != QueueRule::Linux || fits {
            return weight;
        }
        let key = &QueueTable::weight;
        if self.table.is_given(key) {
            let message = format!(
                "the kernel's RED cannot have it beside a `max` of {} packets: it counts in 31 bits",
                max.round()
            );
            let hint = format!("write at least {least}, a lower `max`, or by = \"rfc\"");
            self.table.refuse(findings, key, message, hint);
        }
        least
    }

    /// The lower and the upper threshold; without one the lower is `usual`, and the upper three
    /// times the lower.
    fn packets(
        &self,
        min: Option<BufferSize>,
        max: Option<BufferSize>,
        usual: f64,
        findings: &mut Findings,
    ) -> (f64, f64) {
        let mut threshold = |key: &Key, size: Option<BufferSize>| match size? {
            BufferSize::Packets(n) => Some(n as f64),
            BufferSize::Bytes(bytes) => Some(bytes.0 as f64 / f64::from(self.link.packet)),
            BufferSize::Time(span) => Some(span.as_secs_f64() * self.per_second),
            BufferSize::Bdp(factor) => {
                let Served { rate, rtt, packet } = self.link;
                Some(factor * bdp_packets(rate, rtt, packet))
            }
            BufferSize::Unlimited => {
                let hint = "write for example \"5 packets\"";
                self.table
                    .refuse(findings, key, "a threshold is finite", hint);
                None
            }
        };
        let (min, max) = (
            threshold(&QueueTable::min, min).unwrap_or(usual),
            threshold(&QueueTable::max, max),
        );
        let max = max.unwrap_or(3.0 * min);
        if max <= min {
            let message =
                format!("the upper threshold is not above the lower one of {min} packets");
            let key = match self.table.is_given(&QueueTable::max) {
                true => &QueueTable::max,
                false => &QueueTable::min,
            };
            let hint = "write for example three times `min`";
            self.table.refuse(findings, key, message, hint);
        }
        (min, max)
    }
}

/// `MARK_ECNTH` (RFC 8033, section 5.1).
const MARK_UNTIL: f64 = 0.1;
/// Average queueing delay that adaptive RED aims at (Floyd, Gummadi, Shenker 2001, section 5).
const RED_TARGET: Span = Span::from_millis(5);
