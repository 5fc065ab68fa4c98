//! What a table says about one link: capacity and buffer, queue discipline, loss, changes over
//! time.

mod schedule;

use std::sync::Arc;

use fullpipe_run::{Buffer, DeliveryTrace, Discipline, LinkSpec, Policer, Reorder};
use fullpipe_units::{BufferSize, Bytes, Rate, Span};

use super::sizes::{significant, whole};
use crate::files::Files;
use crate::keys::{Element, PolicerTable, QueueKind, QueueTable, Served, discipline};
use crate::value::{At, Either, Findings, Key, Lands, Sub};
use fullpipe_metrics::bdp_packets;

pub(super) use schedule::Entry;

/// Reads what a table says of a link.
pub(super) struct ElementResolver<'a> {
    pub at: At<'a, Element>,
    /// Bytes of a full packet.
    pub packet: u32,
}

impl ElementResolver<'_> {
    /// Delivery opportunities.
    pub fn trace(&self, files: &Files, findings: &mut Findings) -> Option<Arc<DeliveryTrace>> {
        let name = self.at.trace.as_ref()?;
        let at = self.at.record.place(&Element::trace);
        match files.trace(name, at.is_in_file()) {
            Ok(trace) => Some(trace),
            Err((message, hint)) => {
                self.at.refuse(findings, &Element::trace, message, hint);
                None
            }
        }
    }

    /// Buffer of the size that a key gives, and its room in packets (infinite if unlimited).
    pub fn buffer(
        &self,
        size: BufferSize,
        key: &Key,
        rate: Rate,
        rtt: Span,
        findings: &mut Findings,
    ) -> Option<(Buffer, f64)> {
        let packet = self.packet;
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
                    "the buffer holds less than one packet of {packet} bytes: 1BDP is {} packets \
                     here",
                    significant(bdp_packets(rate, rtt, packet))
                ),
                _ => format!("the buffer holds less than one packet of {packet} bytes"),
            };
            self.at
                .refuse(findings, key, message, "write at least \"1 packet\"");
            return None;
        }
        Some((buffer, room))
    }

    /// Warns of a bottleneck that holds two or three packets. Those that ACKs clock arrive in the
    /// instants of departures; a longer buffer holds what comes in bursts either way, and a lone
    /// packet is in nobody's way.
    pub fn warn_of_ties(&self, room: f64, rate: Rate, findings: &mut Findings) {
        if !(2.0..4.0).contains(&room) || self.at.jitter > Some(Span::ZERO) {
            return;
        }
        let transmit = rate.transmit(Bytes(u64::from(self.packet)));
        let message = format!(
            "ties decide in so short a buffer: packets that ACKs clock arrive in the instants of \
             departures, and find room here, but not always in a kernel; `jitter` of {transmit}, \
             the time that a packet takes, makes it chance"
        );
        self.at.warn(findings, &Element::buffer, &message);
    }

    /// Queue discipline that a key gives, on a link of this rate whose flows have this round trip.
    pub fn queue(
        &self,
        queue: &Either<QueueKind, Sub<QueueTable>>,
        key: &Key,
        (rate, rtt): (Rate, Span),
        findings: &mut Findings,
    ) -> Discipline {
        let packet = self.packet;
        discipline(&self.at, key, queue, Served { rate, rtt, packet }, findings)
    }

    /// All that comes beside rate, buffer, queue and loss: jitter, reordering, a policer.
    pub fn disturb(&self, link: &mut LinkSpec, findings: &mut Findings) {
        self.at.land(link);
        if let Some(table) = &self.at.reorder {
            let reorder = self.at.inside(&Element::reorder, table);
            reorder.required_keys(findings);
            if let (Some(probability), Some(extra)) = (reorder.probability, reorder.extra) {
                link.reorder = Some(Reorder { probability, extra });
            }
        }
        if let Some(table) = &self.at.policer {
            let policer = self.at.inside(&Element::policer, table);
            policer.required_keys(findings);
            if let (Some(rate), Some(burst)) = (policer.rate, policer.burst) {
                if burst.0 < u64::from(self.packet) {
                    let message = format!(
                        "no packet of {} bytes fits the bucket: it would drop all of them",
                        self.packet
                    );
                    let hint = format!("write at least \"{}B\"", self.packet);
                    policer.refuse(findings, &PolicerTable::burst, message, hint);
                }
                let burst = burst.0;
                link.policer = Some(Policer { rate, burst });
            }
        }
    }
}

/// Mean rate of a trace.
pub(super) fn mean_rate(trace: &DeliveryTrace) -> Rate {
    Rate::from_bits_per_sec(trace.mean_rate().max(1))
}

/// What is wrong with a run that is as short as its round trip.
pub(super) const NO_ROUND_TRIP: &str = "the run is over before the first ACK is back";
