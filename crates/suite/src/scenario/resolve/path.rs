//! What a table says about one link: capacity, buffer, queue discipline, loss, changes over time.

use std::sync::Arc;

use fullpipe_sim::{
    Buffer, Change, Codel, DeliveryTrace, Discipline, FqCodel, LinkSpec, Loss, Pie, Policer, Red,
    Reorder,
};
use fullpipe_units::{BufferSize, Bytes, Rate, Span, Time};

use super::super::bdp_packets;
use super::super::files::Files;
use super::super::value::{Record, Value};
use super::{Findings, required, significant, whole};

/// A table that describes a link.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub record: &'a Record,
    /// Dotted key of the table.
    pub path: &'a str,
    /// `return_` for the way back of `[path]`, otherwise empty.
    pub prefix: &'a str,
    /// Bytes of a full packet.
    pub packet: u32,
}

impl Element<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The prefixed key if it is given, otherwise the plain one.
    fn or_plain(&self, name: &'static str) -> String {
        let own = self.key(name);
        if self.record.is_given(&own) {
            own
        } else {
            name.to_owned()
        }
    }

    /// Delivery opportunities.
    pub fn trace(&self, files: &Files, findings: &mut Findings) -> Option<Arc<DeliveryTrace>> {
        let name = self.record.text("trace")?;
        let at = self.record.place("trace");
        match files.trace(&name, at.is_in_file()) {
            Ok(trace) => Some(trace),
            Err((message, hint)) => {
                findings.refuse(self.record, "trace", self.path, message, &hint);
                None
            }
        }
    }

    /// Buffer, and its room in packets (infinite if unlimited).
    pub fn buffer(&self, rate: Rate, rtt: Span, findings: &mut Findings) -> Option<(Buffer, f64)> {
        let (packet, key) = (self.packet, self.or_plain("buffer"));
        let size = self.record.buffer(&key).unwrap_or(BufferSize::Bdp(1.0));
        let transmit = rate.transmit(Bytes(u64::from(packet)));
        let (buffer, room) = match size {
            BufferSize::Packets(n) => (Buffer::Packets(n), n as f64),
            BufferSize::Bytes(bytes) => {
                (Buffer::Bytes(bytes.0), bytes.0 as f64 / f64::from(packet))
            }
            BufferSize::Time(span) => (Buffer::Time(span), span.ratio(transmit)),
            BufferSize::Bdp(factor) => {
                let n = whole(factor * bdp_packets(rate, rtt, packet));
                (Buffer::Packets(n as u64), n)
            }
            BufferSize::Unlimited => (Buffer::Unlimited, f64::INFINITY),
        };
        if room < 1.0 {
            let message = match size {
                BufferSize::Bdp(_) => format!(
                    "the buffer holds less than one packet of {packet} bytes: 1BDP is {} packets here",
                    significant(bdp_packets(rate, rtt, packet))
                ),
                _ => format!("the buffer holds less than one packet of {packet} bytes"),
            };
            let hint = "write at least \"1 packet\"";
            findings.refuse(self.record, &key, self.path, message, hint);
            return None;
        }
        Some((buffer, room))
    }

    /// Queue discipline.
    pub fn queue(&self, rate: Rate, rtt: Span, findings: &mut Findings) -> Discipline {
        let key = self.or_plain("queue");
        let path = format!("{}.{key}", self.path);
        let empty = Record::empty(super::super::keys::QUEUE, self.record.place(&key));
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

    /// Random loss.
    pub fn loss(&self, findings: &mut Findings) -> Loss {
        loss(self.record, &self.key("loss"), self.path, findings)
    }

    /// All that comes beside rate, buffer, queue and loss: jitter, reordering, a policer.
    pub fn disturb(&self, link: &mut LinkSpec, findings: &mut Findings) {
        let r = self.record;
        link.loss_of_acks = r.flag("loss_of_acks").unwrap_or(false);
        link.jitter = r.span("jitter").unwrap_or(Span::ZERO);
        if let Some(table) = r.record("reorder") {
            let path = format!("{}.reorder", self.path);
            let both = required(findings, table, "probability", &path, "probability = 0.01")
                & required(findings, table, "extra", &path, r#"extra = "5ms""#);
            if both
                && let (Some(probability), Some(extra)) =
                    (table.real("probability"), table.span("extra"))
            {
                link.reorder = Some(Reorder { probability, extra });
            }
        }
        if let Some(table) = r.record("policer") {
            let path = format!("{}.policer", self.path);
            let both = required(findings, table, "rate", &path, r#"rate = "50Mbit/s""#)
                & required(findings, table, "burst", &path, r#"burst = "100kB""#);
            if both && let (Some(rate), Some(burst)) = (table.rate("rate"), table.bytes("burst")) {
                if burst.0 < u64::from(self.packet) {
                    let message = format!(
                        "no packet of {} bytes fits the bucket: it would drop all of them",
                        self.packet
                    );
                    let hint = format!("write at least \"{}B\"", self.packet);
                    findings.refuse(table, "burst", &path, message, &hint);
                }
                link.policer = Some(Policer {
                    rate,
                    burst: burst.0,
                });
            }
        }
    }

    /// Changes over time. `delay` makes a link's delay of what an entry says about it.
    pub fn schedule(
        &self,
        rate: Option<Rate>,
        duration: Option<Span>,
        delay: impl Fn(&Record) -> Option<Span>,
        findings: &mut Findings,
    ) -> Vec<Change> {
        let entries = self.record.many("schedule");
        let mut changes: Vec<Change> = Vec::new();
        // Rate after the last change, and the end of the last outage.
        let (mut current, mut dark) = (rate, Time::ZERO);
        let mut last: Option<Time> = None;
        for (i, entry) in entries.iter().enumerate() {
            let Value::Record(entry) = entry else {
                continue;
            };
            let path = format!("{}.schedule[{}]", self.path, i + 1);
            if !required(findings, entry, "at", &path, r#"at = "10s""#) {
                continue;
            }
            let Some(at) = entry.span("at").map(|at| Time::ZERO + at) else {
                continue;
            };
            if last.is_some_and(|last| at <= last) {
                let message = "this entry is not after the one before it";
                findings.refuse(entry, "at", &path, message, "sort the entries by time");
            }
            last = Some(at);
            if duration.is_some_and(|duration| at >= Time::ZERO + duration) {
                findings.warn(
                    entry,
                    "at",
                    &path,
                    "the run is over by then: nothing changes",
                );
            }
            let what = ["rate", "outage", "loss", "rtt", "delay"];
            let known = |name: &&str| entry.keys.iter().any(|key| key.name == *name);
            if !what
                .iter()
                .filter(|name| known(name))
                .any(|name| entry.is_attempted(name))
            {
                let names: Vec<&str> = what.into_iter().filter(|name| known(name)).collect();
                let hint = format!("give one or more of {}", names.join(", "));
                findings.refuse_table(entry.at, &path, "nothing changes here", &hint);
            }
            for name in ["rate", "outage"]
                .iter()
                .filter(|name| entry.is_given(name))
            {
                if self.record.text("trace").is_some() {
                    let message = "the trace says when packets leave, not a rate";
                    let hint = "take it out of the schedule, or leave `trace` out";
                    findings.refuse(entry, name, &path, message, hint);
                } else if at < dark {
                    let message = "the outage before it lasts beyond this";
                    findings.refuse(
                        entry,
                        name,
                        &path,
                        message,
                        "shorten `outage`, or put it later",
                    );
                } else if rate.is_none() {
                    let message = "the link has no rate that could change";
                    findings.refuse(entry, name, &path, message, "set its `rate`");
                }
            }
            if entry.is_given("rate") && entry.is_given("outage") {
                let message = "an outage and a rate at once";
                let hint = "put the rate into an entry after the outage";
                findings.refuse(entry, "outage", &path, message, hint);
            }
            let loss = entry
                .is_given("loss")
                .then(|| loss(entry, "loss", &path, findings));
            let mut change = Change {
                at,
                rate: entry.rate("rate"),
                delay: delay(entry),
                loss,
            };
            current = change.rate.or(current);
            // What ends an outage does not come before what happens in it.
            if let Some(outage) = entry.span("outage") {
                change.rate = Some(Rate::from_bits_per_sec(0));
                dark = at + outage;
                changes.push(change);
                changes.push(Change {
                    at: dark,
                    rate: current,
                    delay: None,
                    loss: None,
                });
                continue;
            }
            changes.push(change);
        }
        changes.sort_by_key(|change| change.at);
        changes
    }
}

/// True if the discipline marks.
pub(super) fn marks(discipline: &Discipline) -> bool {
    match discipline {
        Discipline::DropTail => false,
        Discipline::Red(red) => red.ecn,
        Discipline::Pie(pie) => pie.ecn.is_some(),
        Discipline::Codel(codel) => codel.ecn,
        Discipline::FqCodel(fq) => fq.codel.ecn,
    }
}

/// Mean rate of a trace: an opportunity is 1504 bytes.
pub(super) fn mean_rate(trace: &DeliveryTrace) -> Rate {
    let bits = trace.opportunities.len() as u64 * OPPORTUNITY * 8;
    let period_ms = u64::from(trace.opportunities.last().copied().unwrap_or(1).max(1));
    Rate::from_bits_per_sec((bits * 1000 / period_ms).max(1))
}

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

/// Random loss, of a table that may be a `[path]`, a link or a change.
fn loss(table: &Record, name: &str, path: &str, findings: &mut Findings) -> Loss {
    if let Some(p) = table.real(name) {
        return if p > 0.0 {
            Loss::Bernoulli { p }
        } else {
            Loss::None
        };
    }
    let Some(table) = table.record(name) else {
        return Loss::None;
    };
    let key = &format!("{path}.{name}");
    let bernoulli: &[&str] = &["probability"];
    let gilbert: &[&str] = &["to_bad", "to_good", "good", "bad"];
    let (own, foreign, loss) = match table.word("model") {
        Some("bernoulli") => {
            let p = table.real("probability").unwrap_or(0.0);
            (bernoulli, gilbert, Loss::Bernoulli { p })
        }
        Some(_) => {
            let get = |name, default| table.real(name).unwrap_or(default);
            let (to_bad, to_good) = (get("to_bad", 0.0), get("to_good", 0.0));
            let (good, bad) = (get("good", 0.0), get("bad", 1.0));
            (
                gilbert,
                bernoulli,
                Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    good,
                    bad,
                },
            )
        }
        None => {
            required(
                findings,
                table,
                "model",
                key,
                r#"model = "gilbert-elliott""#,
            );
            return Loss::None;
        }
    };
    for name in own.iter().filter(|name| !matches!(**name, "good" | "bad")) {
        required(findings, table, name, key, &format!("{name} = 1e-4"));
    }
    for name in foreign.iter().filter(|name| table.is_given(name)) {
        let message = format!(
            "this key does not belong to the model `{}`",
            table.word("model").unwrap_or_default()
        );
        findings.refuse(
            table,
            name,
            key,
            message,
            &format!("its keys: {}", own.join(", ")),
        );
    }
    loss
}

const OPPORTUNITY: u64 = 1504;
const RED_MIN: f64 = 5.0;
const RED_MAX_P: f64 = 0.1;
const RED_WEIGHT: f64 = 0.002;
const RED_TARGET_S: f64 = 0.005;
