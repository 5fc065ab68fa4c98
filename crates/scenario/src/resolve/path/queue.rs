//! Queue disciplines and their parameters.

use fullpipe_run::{Codel, Discipline, FqCodel, Pie, Red};
use fullpipe_units::{BufferSize, Rate, Span};

use super::Element;
use crate::bdp_packets;
use crate::keys::QUEUE;
use crate::resolve::{Findings, required};
use crate::value::Record;

impl Element<'_> {
    /// Queue discipline.
    pub fn queue(&self, rate: Rate, rtt: Span, findings: &mut Findings) -> Discipline {
        let key = self.or_plain("queue");
        let path = format!("{}.{key}", self.path);
        let empty = Record::empty(QUEUE, self.record.place(&key));
        let (table, kind) = match self.record.record(&key) {
            Some(table) => {
                required(findings, table, "kind", &path, r#"kind = "red""#);
                (table, table.word("kind"))
            }
            None => (&empty, self.record.word(&key)),
        };
        let Some(kind) = kind else {
            return Discipline::DropTail;
        };
        let own = queue_keys(kind);
        let given = table.keys.iter().map(|key| key.name);
        for name in given.filter(|name| table.is_given(name) && !own.contains(name)) {
            let message = format!("this key does not belong to the kind `{kind}`");
            let hint = match own {
                ["kind"] => "leave it out".to_owned(),
                own => format!("its keys: {}", own[1..].join(", ")),
            };
            findings.refuse(table, name, &path, message, &hint);
        }
        let ecn = table.flag("ecn").unwrap_or(false);
        let codel = || Codel {
            target: table.span("target").unwrap_or(Span::from_millis(5)),
            interval: table.span("interval").unwrap_or(Span::from_millis(100)),
            ecn,
        };
        match kind {
            "red" | "adaptive-red" => {
                let red = self.red(table, &path, kind == "adaptive-red", rate, rtt, findings);
                Discipline::Red(Red { ecn, ..red })
            }
            "pie" => {
                if table.is_given("mark_until") && !ecn {
                    let message = "nothing is marked without `ecn`";
                    findings.refuse(table, "mark_until", &path, message, "write ecn = true");
                }
                Discipline::Pie(Pie {
                    target: table.span("target").unwrap_or(Span::from_millis(15)),
                    update: table.span("update").unwrap_or(Span::from_millis(15)),
                    alpha: table.real("alpha").unwrap_or(0.125),
                    beta: table.real("beta").unwrap_or(1.25),
                    max_burst: table.span("max_burst").unwrap_or(Span::from_millis(150)),
                    ecn: ecn.then(|| table.real("mark_until").unwrap_or(0.1)),
                })
            }
            "codel" => Discipline::Codel(codel()),
            "fq-codel" => {
                let whole = |name, default| {
                    table
                        .whole(name)
                        .and_then(|n| u32::try_from(n).ok())
                        .unwrap_or(default)
                };
                Discipline::FqCodel(FqCodel {
                    codel: codel(),
                    flows: whole("flows", 1024),
                    quantum: whole("quantum", self.packet),
                })
            }
            _ => Discipline::DropTail,
        }
    }

    /// RED as its authors recommend it; an adaptive one aims at half of 5 ms below which nothing is dropped (Floyd,
    /// Gummadi, Shenker 2001, sections 4.3 and 5).
    fn red(
        &self,
        table: &Record,
        path: &str,
        adaptive: bool,
        rate: Rate,
        rtt: Span,
        findings: &mut Findings,
    ) -> Red {
        let per_second = rate.as_bits_per_sec() as f64 / (8.0 * f64::from(self.packet));
        let mut threshold = |name: &str| {
            let packets = match table.buffer(name)? {
                BufferSize::Packets(n) => n as f64,
                BufferSize::Bytes(bytes) => bytes.0 as f64 / f64::from(self.packet),
                BufferSize::Time(span) => span.as_secs_f64() * per_second,
                BufferSize::Bdp(factor) => factor * bdp_packets(rate, rtt, self.packet),
                BufferSize::Unlimited => {
                    let message = "a threshold is finite";
                    findings.refuse(
                        table,
                        name,
                        path,
                        message,
                        "write for example \"5 packets\"",
                    );
                    return None;
                }
            };
            Some(packets)
        };
        let (min, max) = (threshold("min"), threshold("max"));
        let usual = if adaptive {
            (RED_TARGET_S * per_second / 2.0).max(RED_MIN)
        } else {
            RED_MIN
        };
        let min = min.unwrap_or(usual);
        let max = max.unwrap_or(3.0 * min);
        if max <= min {
            let message =
                format!("the upper threshold is not above the lower one of {min} packets");
            let key = if table.is_given("max") { "max" } else { "min" };
            findings.refuse(
                table,
                key,
                path,
                message,
                "write for example three times `min`",
            );
        }
        let weight = if adaptive {
            -libm::expm1(-1.0 / per_second)
        } else {
            RED_WEIGHT
        };
        Red {
            min,
            max,
            max_p: table.real("max_p").unwrap_or(RED_MAX_P),
            weight: table.real("weight").unwrap_or(weight),
            gentle: table.flag("gentle").unwrap_or(true),
            adaptive,
            ecn: false,
        }
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

/// Keys that a kind has.
fn queue_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "red" | "adaptive-red" => &["kind", "ecn", "min", "max", "max_p", "weight", "gentle"],
        "pie" => &[
            "kind",
            "ecn",
            "target",
            "update",
            "alpha",
            "beta",
            "max_burst",
            "mark_until",
        ],
        "codel" => &["kind", "ecn", "target", "interval"],
        "fq-codel" => &["kind", "ecn", "target", "interval", "flows", "quantum"],
        _ => &["kind"],
    }
}

const RED_MIN: f64 = 5.0;
const RED_MAX_P: f64 = 0.1;
const RED_WEIGHT: f64 = 0.002;
const RED_TARGET_S: f64 = 0.005;
