//! Queue disciplines and their parameters.

use fullpipe_run::{Codel, Discipline, FqCodel, Pie, Red};
use fullpipe_units::{BufferSize, Rate, Span};

use super::super::super::bdp_packets;
use super::super::super::keys::{Queue, QueueKind, QueueTable};
use super::super::super::value::{At, Either, Findings, Key, Record, Sub, Table, Words};
use super::ElementResolver;

impl ElementResolver<'_> {
    /// The queue discipline that a key gives, on a link of this rate whose flows have this round trip.
    pub fn queue(
        &self,
        queue: &Either<QueueKind, Sub<QueueTable>>,
        key: &Key,
        (rate, rtt): (Rate, Span),
        findings: &mut Findings,
    ) -> Discipline {
        let plain = Record::empty(QueueTable::KEYS, self.at.record.place(key));
        let table = match queue {
            Either::First(_) => At::new(&plain, self.at.key(key)),
            Either::Second(table) => self.at.inside(key, table),
        };
        let kind = match queue {
            Either::First(kind) => Some(*kind),
            Either::Second(_) => {
                table.required(&QueueTable::kind, findings);
                table.kind
            }
        };
        let Some((kind, queue)) = kind.and_then(|kind| Some((kind, kind.with(&table)?))) else {
            return Discipline::DropTail;
        };
        let common = |key: &Key| key.name == QueueTable::kind.name;
        let what = format!("kind `{}`", kind.word());
        table.refuse_foreign(&what, kind.own(), common, findings);
        let red = Thresholds {
            table: &table,
            per_second: rate.as_bits_per_sec() as f64 / (8.0 * f64::from(self.packet)),
            packet: self.packet,
            bdp: bdp_packets(rate, rtt, self.packet),
        };
        match queue {
            Queue::DropTail {} => Discipline::DropTail,
            Queue::Red {
                ecn,
                min,
                max,
                max_p,
                weight,
                gentle,
            } => {
                let (min, max) = red.packets(min, max, RED_MIN, findings);
                Discipline::Red(Red {
                    min,
                    max,
                    max_p,
                    weight,
                    gentle,
                    adaptive: false,
                    ecn,
                })
            }
            Queue::AdaptiveRed {
                ecn,
                min,
                max,
                max_p,
                weight,
                gentle,
            } => {
                // Half of the delay aimed at, below which nothing is dropped (Floyd, Gummadi, Shenker 2001,
                // sections 4.3 and 5).
                let usual = (RED_TARGET_S * red.per_second / 2.0).max(RED_MIN);
                let (min, max) = red.packets(min, max, usual, findings);
                Discipline::Red(Red {
                    min,
                    max,
                    max_p,
                    weight: weight.unwrap_or_else(|| -libm::expm1(-1.0 / red.per_second)),
                    gentle,
                    adaptive: true,
                    ecn,
                })
            }
            Queue::Codel {
                ecn,
                target,
                interval,
            } => Discipline::Codel(Codel {
                target,
                interval,
                ecn,
            }),
            Queue::FqCodel {
                ecn,
                target,
                interval,
                flows,
                quantum,
            } => Discipline::FqCodel(FqCodel {
                codel: Codel {
                    target,
                    interval,
                    ecn,
                },
                flows,
                quantum: quantum.unwrap_or(self.packet),
            }),
            Queue::Pie {
                ecn,
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
                Discipline::Pie(Pie {
                    target,
                    update,
                    alpha,
                    beta,
                    max_burst,
                    ecn: ecn.then_some(mark_until),
                })
            }
        }
    }
}

/// The thresholds of random early detection, in packets.
struct Thresholds<'a> {
    table: &'a At<'a, QueueTable>,
    /// Packets that the link sends per second.
    per_second: f64,
    /// Bytes of a packet.
    packet: u32,
    /// Bandwidth-delay product, packets.
    bdp: f64,
}

impl Thresholds<'_> {
    /// The lower and the upper threshold; without one the lower is `usual`, and the upper three times the lower.
    fn packets(
        &self,
        min: Option<BufferSize>,
        max: Option<BufferSize>,
        usual: f64,
        findings: &mut Findings,
    ) -> (f64, f64) {
        let mut threshold = |key: &Key, size: Option<BufferSize>| match size? {
            BufferSize::Packets(n) => Some(n as f64),
            BufferSize::Bytes(bytes) => Some(bytes.0 as f64 / f64::from(self.packet)),
            BufferSize::Time(span) => Some(span.as_secs_f64() * self.per_second),
            BufferSize::Bdp(factor) => Some(factor * self.bdp),
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

/// True if the discipline marks.
pub(in crate::resolve) fn marks(discipline: &Discipline) -> bool {
    match discipline {
        Discipline::DropTail => false,
        Discipline::Red(red) => red.ecn,
        Discipline::Pie(pie) => pie.ecn.is_some(),
        Discipline::Codel(codel) => codel.ecn,
        Discipline::FqCodel(fq) => fq.codel.ecn,
    }
}

/// Packets; as its authors recommend.
const RED_MIN: f64 = 5.0;
/// Queueing delay that adaptive RED aims at, seconds.
const RED_TARGET_S: f64 = 0.005;
