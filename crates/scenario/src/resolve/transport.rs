//! What a transport is: endpoint switches, congestion control, windows; of a flow and of short
//! flows.

use fullpipe_cc::{Controller as _, PacingGains, Setup, StackSpec};
use fullpipe_flow::{CeEcho, Preset};
use fullpipe_run::WrittenKey;
use fullpipe_units::{Rate, Span, WindowSize};

use super::graph::{Layout, Leg};
use super::inert::{self, Situation};
use super::sizes::{segments, significant};
use crate::keys::{Ends, Transport};
use crate::value::{At, Findings, Key, Lands, Record};
use fullpipe_metrics::bdp_packets;

/// Reads a transport that runs over a leg.
pub(super) struct TransportResolver<'a> {
    at: At<'a, Transport>,
    /// Bytes of a full packet.
    pub packet: u32,
    pub rtt: Span,
    capacity: Rate,
    /// A queue on the way marks packets.
    marks: bool,
    /// Kind of a queue that would.
    could_mark: &'static str,
}

/// Both ends of a connection and its congestion control.
pub(super) struct Connection {
    pub preset: Preset,
    /// Keys that are given.
    pub written: Vec<WrittenKey>,
    pub ends: Ends,
    pub stack: StackSpec,
    /// The smaller of both windows, segments.
    pub cap: Option<f64>,
}

impl<'a> TransportResolver<'a> {
    /// Size of packets and round-trip time.
    pub fn new(
        record: &'a Record,
        path: &str,
        layout: &Layout,
        leg: &Leg,
        findings: &mut Findings,
    ) -> Self {
        let at = At::<Transport>::new(record, path);
        let rtt = at.rtt.unwrap_or(leg.rtt);
        if rtt < leg.rtt {
            let (of, hint) = match leg.is_route {
                true => ("its links", "shorten their `delay`"),
                false => ("the path", "lower `path.rtt` to the shortest RTT"),
            };
            let message = format!("the flow's RTT is below that of {of}, {}", leg.rtt);
            at.refuse(findings, &Transport::rtt, message, hint);
        }
        let packet = at.mtu.unwrap_or(layout.mtu);
        if packet > layout.mtu {
            let message = format!("the path takes packets of {} bytes", layout.mtu);
            at.refuse(findings, &Transport::mtu, message, "raise `path.mtu`");
        }
        Self {
            at,
            packet,
            rtt,
            capacity: leg.capacity,
            marks: layout.marks(leg),
            could_mark: layout.could_mark(leg),
        }
    }

    /// Reads it; `None` if the stack is missing or wrong.
    pub fn read(&self, findings: &mut Findings) -> Option<Connection> {
        let t = &self.at;
        let mut ends = Ends::new(t.preset, self.packet);
        if let Some(receiver) = t.receiver {
            receiver.land(&mut ends);
        }
        t.land(&mut ends);
        let mss = ends.sender.mss;
        let window = self.window(&Transport::window, t.window, mss, findings);
        let advertised = self.window(&Transport::receive_window, t.receive_window, mss, findings);
        if let Some(advertised) = advertised {
            let (window, advertised) = (&mut ends.receiver.window, Some(advertised as u64));
            if window.max != advertised {
                // It is what limits, not the buffer.
                (window.max, window.widest, window.buffer) = (advertised, None, None);
            }
        }
        let advertised = ends
            .receiver
            .window
            .largest()
            .map(|segments| segments as f64);
        ends.sender.window.max = window.unwrap_or(f64::INFINITY);
        let cap = match (window, advertised) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(size) = t.tso {
            ends.sender.host.tso_segments = self.train(size, mss, findings);
        }
        self.acks(&mut ends, findings);
        if !ends.sender.timestamps {
            if t.paws == Some(true) {
                let message = "there are no time stamps to check";
                let hint = "leave out `paws`, or `timestamps = false`";
                t.refuse(findings, &Transport::paws, message, hint);
            }
            ends.receiver.paws = false;
        }
        let stack = t.stack.clone();
        if let Some(stack) = &stack {
            self.stack(stack, &mut ends, findings);
            let situation = Situation {
                ends: &ends,
                stack,
                record: t.record,
                marks: self.marks,
                could_mark: self.could_mark,
            };
            inert::warn(t, &situation, findings);
        }
        Some(Connection {
            preset: t.preset,
            written: self.written(),
            ends,
            stack: *stack?,
            cap,
        })
    }

    /// The keys that are given.
    fn written(&self) -> Vec<WrittenKey> {
        let linux = Ends::new(Preset::Linux, self.packet);
        let given = self.at.record.given().map(|key| {
            let mut ends = linux.clone();
            let lands = self.at.land_key(key, &mut ends);
            WrittenKey {
                name: key.name,
                fields: key.fields,
                is_linux: lands && ends == linux,
            }
        });
        given.collect()
    }

    /// Whole segments of a train.
    fn train(&self, size: WindowSize, mss: u32, findings: &mut Findings) -> u32 {
        let whole = segments(size, self.capacity, self.rtt, self.packet, mss);
        if whole < 2.0 {
            let message = format!("this is less than two segments of {mss} bytes");
            let hint = "write \"off\", or for example \"64kB\"";
            self.at.refuse(findings, &Transport::tso, message, hint);
        }
        // Larger trains than a window make no difference.
        whole.min(1e6) as u32
    }

    /// A window in whole segments.
    fn window(
        &self,
        key: &Key,
        size: Option<WindowSize>,
        mss: u32,
        findings: &mut Findings,
    ) -> Option<f64> {
        let size = size?;
        let segments = segments(size, self.capacity, self.rtt, self.packet, mss);
        if segments < 1.0 {
            let message = match size {
                WindowSize::Bdp(_) => format!(
                    "the window is below one segment: 1BDP is {} packets here",
                    significant(bdp_packets(self.capacity, self.rtt, self.packet))
                ),
                _ => format!("the window is below one segment of {mss} bytes"),
            };
            let hint = "write at least \"1 segment\"";
            self.at.refuse(findings, key, message, hint);
        }
        Some(segments)
    }

    /// How many segments an ACK is for.
    fn acks(&self, ends: &mut Ends, findings: &mut Findings) {
        match (self.at.delayed_ack, self.at.ack_every) {
            (Some(false), Some(2..)) | (Some(true), Some(1)) => {
                let message = "contradicts `delayed_ack`";
                let hint = "leave one of them out";
                self.at
                    .refuse(findings, &Transport::ack_every, message, hint);
            }
            (Some(false), _) => ends.receiver.acks.every = 1,
            (_, Some(every)) => ends.receiver.acks.every = every,
            (_, None) => {}
        }
    }

    /// What the stack's spelling says about sending, and what the keys beside it say.
    fn stack(&self, stack: &StackSpec, ends: &mut Ends, findings: &mut Findings) {
        let sender = &mut ends.sender;
        sender.pacing.initial = stack.sending().unwrap_or(sender.pacing.initial);
        let wanted = self.at.initial_window.map(|segments| segments.0);
        if let (Some(spelled), Some(wanted)) = (stack.initial_window(), wanted)
            && spelled != wanted
        {
            let message = format!("the stack sets an initial window of {spelled} segments");
            let hint = "keep `iw` or `initial_window`";
            self.at
                .refuse(findings, &Transport::initial_window, message, hint);
        }
        if let Some(iw) = wanted.or(stack.initial_window()) {
            sender.window.initial = iw;
        }
        if needs_ecn(stack) {
            if self.at.ecn.is_none() {
                sender.ecn = true;
            }
            if self.at.ecn_echo.is_none() {
                ends.receiver.ce_echo = CeEcho::EachChange;
            }
        }
        sender.pacing.gains = stack.pacing();
        match self.at.pacing {
            Some(false) if sender.pacing.gains.is_some() => {
                let hint = "take the pacing out of `stack`";
                self.at
                    .refuse(findings, &Transport::pacing, "the stack paces", hint);
            }
            Some(false) if paces_by_itself(stack) => {
                let message = format!("`{}` paces by itself: it sets the rate", stack.law_name());
                let hint = "leave out `pacing`";
                self.at.refuse(findings, &Transport::pacing, message, hint);
            }
            Some(true) if sender.pacing.gains.is_none() => {
                sender.pacing.gains = Some(PacingGains::default())
            }
            _ => {}
        }
    }
}

/// The stack lives on marks; of a controller from elsewhere that is not known.
pub(super) fn needs_ecn(stack: &StackSpec) -> bool {
    stack.made_of().is_none() && stack.controller(Setup::default()).needs_ecn()
}

/// The stack sets the rate itself, whatever is said of pacing. What a controller from elsewhere
/// will do is not known.
pub(super) fn paces_by_itself(stack: &StackSpec) -> bool {
    stack.made_of().is_none() && stack.controller(Setup::default()).sets_rate()
}
