//! What a table says about one link: capacity and buffer, queue discipline, loss, changes over time.

mod loss;
mod queue;
mod schedule;

use std::sync::Arc;

use fullpipe_run::{Buffer, DeliveryTrace, LinkSpec, Loss, Policer, Reorder};
use fullpipe_units::{BufferSize, Bytes, Rate, Span};

use super::{Findings, required, significant, whole};
use crate::bdp_packets;
use crate::files::Files;
use crate::value::Record;

pub(super) use queue::marks;

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

    /// Random loss.
    pub fn loss(&self, findings: &mut Findings) -> Loss {
        loss::loss(self.record, &self.key("loss"), self.path, findings)
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
}

/// Mean rate of a trace: an opportunity is 1504 bytes.
pub(super) fn mean_rate(trace: &DeliveryTrace) -> Rate {
    let bits = trace.opportunities.len() as u64 * OPPORTUNITY * 8;
    let period_ms = u64::from(trace.opportunities.last().copied().unwrap_or(1).max(1));
    Rate::from_bits_per_sec((bits * 1000 / period_ms).max(1))
}

/// Bytes of a delivery opportunity.
const OPPORTUNITY: u64 = 1504;
