//! `[path]`: one bottleneck, and a way back that is a link of its own if something can wait there.

use fullpipe_run::LinkSpec;
use fullpipe_units::{Rate, Span};

use super::sender::Sender;
use super::{Layout, required};
use crate::files::Files;
use crate::matrix::Config;
use crate::resolve::Findings;
use crate::resolve::path::{Element, mean_rate};
use crate::value::{Record, Value};

/// What `[path]` is.
#[derive(Clone, Copy, Debug)]
pub(in crate::resolve) struct Dumbbell {
    pub rate: Rate,
    pub rtt: Span,
    /// The link named `return`, if it is more than a delay.
    pub(super) back: Option<usize>,
    pub(super) back_rate: Rate,
    /// Propagation over `bottleneck`, and over `return`.
    pub(super) delays: (Span, Span),
}

impl Layout {
    pub(super) fn dumbbell(
        &mut self,
        config: &Config,
        senders: &[Sender<'_>],
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let record = &config.path;
        let element = self.element(record, "path");
        let trace = element.trace(files, findings);
        let has_rate = record.text("trace").is_some()
            || required(findings, record, "rate", "path", r#"rate = "100Mbit/s""#);
        let has_rtt = required(findings, record, "rtt", "path", r#"rtt = "80ms""#);
        let loss = element.loss(findings);
        let rate = record.rate("rate").or(trace.as_deref().map(mean_rate));
        let (Some(rate), Some(rtt), true) = (rate, record.span("rtt"), has_rate && has_rtt) else {
            return;
        };
        let Some((buffer, room)) = element.buffer(rate, rtt, findings) else {
            return;
        };
        // Half of the shortest RTT each way, unless the RTT is to become shorter than that.
        let own = senders.iter().filter(|s| s.has("rtt"));
        let shortest = own.filter_map(|s| s.record.span("rtt")).chain(
            senders
                .iter()
                .any(|s| !s.has("rtt") || !s.record.is_given("rtt"))
                .then_some(rtt),
        );
        let shortest = shortest.min().unwrap_or(rtt);
        let lowest = record
            .many("schedule")
            .iter()
            .filter_map(|entry| match entry {
                Value::Record(entry) => entry.span("rtt"),
                _ => None,
            });
        let lowest = lowest.min().unwrap_or(rtt).min(rtt);
        let forward = (shortest / 2).max(rtt - lowest);
        if forward > shortest {
            let message = "a flow's own `rtt` is too short for these changes";
            findings.refuse(
                record,
                "schedule",
                "path",
                message,
                "raise the lowest `rtt`",
            );
            return;
        }
        let mut link = LinkSpec {
            loss,
            discipline: element.queue(rate, rtt, findings),
            trace,
            ..LinkSpec::new("bottleneck", Some(rate), forward, buffer)
        };
        element.disturb(&mut link, findings);
        let later = |entry: &Record| Some((forward + entry.span("rtt")?).saturating_sub(rtt));
        link.schedule = element.schedule(Some(rate), duration, later, findings);
        self.links.push(link);
        self.room += room;

        let keys = [
            "return_rate",
            "return_buffer",
            "return_queue",
            "return_loss",
        ];
        let given = keys.iter().any(|key| record.is_given(key));
        let reverse = senders.iter().any(Sender::is_reverse);
        let back_rate = record
            .rate("return_rate")
            .or(record.rate("rate"))
            .unwrap_or(rate);
        let mut back = None;
        if given || reverse {
            let element = Element {
                prefix: "return_",
                ..element
            };
            let loss = element.loss(findings);
            let Some((buffer, room)) = element.buffer(back_rate, rtt, findings) else {
                return;
            };
            let acks = record.flag("loss_of_acks").unwrap_or(false);
            if record.is_given("return_loss") && !acks && !reverse {
                let message = "only ACKs cross the way back, and `loss_of_acks` is not set";
                findings.warn(record, "return_loss", "path", message);
            }
            self.links.push(LinkSpec {
                loss,
                loss_of_acks: acks,
                discipline: element.queue(back_rate, rtt, findings),
                ..LinkSpec::new("return", Some(back_rate), shortest - forward, buffer)
            });
            self.room += room;
            back = Some(self.links.len() - 1);
        }
        self.dumbbell = Some(Dumbbell {
            rate,
            rtt,
            back,
            back_rate,
            delays: (forward, shortest - forward),
        });
    }
}
