//! What a transport is: endpoint switches, congestion control, windows; of a flow and of short flows.

use fullpipe_cc::{Base, Count, PacingGains, StackSpec};
use fullpipe_flow::{
    AckCompression, Detector, LocalDrop, LossWindow, Preset, ReceiverConfig, Reduction, RtoRule,
    RttSample, SenderConfig, TimerGrain, Validation,
};
use fullpipe_units::{Rate, Span, WindowSize};

use super::super::bdp_packets;
use super::super::value::Record;
use super::graph::{Layout, Leg};
use super::{Findings, segments, significant};

/// A transport under examination.
pub(super) struct TransportJudge<'a> {
    pub record: &'a Record,
    /// Dotted key of its table.
    pub path: &'a str,
    /// Bytes of a full packet.
    pub packet: u32,
    pub rtt: Span,
    pub capacity: Rate,
    /// A queue on the way marks packets.
    pub marks: bool,
}

/// A transport.
pub(super) struct Transport {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub stack: StackSpec,
    /// The smaller of both windows, segments.
    pub cap: Option<f64>,
}

impl<'a> TransportJudge<'a> {
    /// Size of packets and round-trip time.
    pub fn new(
        record: &'a Record,
        path: &'a str,
        layout: &Layout,
        leg: &Leg,
        findings: &mut Findings,
    ) -> Self {
        let rtt = record.span("rtt").unwrap_or(leg.rtt);
        if rtt < leg.rtt {
            let (of, hint) = match leg.is_route {
                true => ("its links", "shorten their `delay`"),
                false => ("the path", "lower `path.rtt` to the shortest RTT"),
            };
            let message = format!("the flow's RTT is below that of {of}, {}", leg.rtt);
            findings.refuse(record, "rtt", path, message, hint);
        }
        let mtu = record.whole("mtu").and_then(|mtu| u32::try_from(mtu).ok());
        let packet = mtu.unwrap_or(layout.mtu);
        if packet > layout.mtu {
            let message = format!("the path takes packets of {} bytes", layout.mtu);
            findings.refuse(record, "mtu", path, message, "raise `path.mtu`");
        }
        Self {
            record,
            path,
            packet,
            rtt,
            capacity: leg.capacity,
            marks: layout.marks(leg),
        }
    }

    /// Reads it; `None` if the stack is missing or wrong.
    pub fn read(&self, findings: &mut Findings) -> Option<Transport> {
        let r = self.record;
        let preset = match r.word("preset") {
            Some("2003") => Preset::Y2003,
            Some("linux") => Preset::Linux,
            _ => Preset::Y2026,
        };
        let mut sender = SenderConfig::preset(preset, self.packet);
        let mut receiver = ReceiverConfig::preset(preset);
        if r.flag("timestamps") == Some(false) {
            sender.header = 40;
            sender.mss = self.packet.saturating_sub(40).max(1);
            receiver.sack.blocks = 4;
        }
        let mss = sender.mss;
        let window = self.window("window", mss, findings);
        let advertised = self.window("receive_window", mss, findings);
        sender.window.max = window.unwrap_or(f64::INFINITY);
        receiver.window.max = advertised.map(|w| w as u64);
        let cap = match (window, advertised) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(size) = r.window("tso") {
            sender.host.tso_segments = self.train(size, mss, findings);
        }
        self.receiver(&mut sender, &mut receiver, findings);
        self.switches(&mut sender, &mut receiver);
        let stack = r.stack("stack");
        if let Some(stack) = &stack {
            self.stack(stack, &mut sender, findings);
        }
        Some(Transport {
            sender,
            receiver,
            stack: *stack?,
            cap,
        })
    }

    /// Whole segments of a train.
    fn train(&self, size: WindowSize, mss: u32, findings: &mut Findings) -> u32 {
        let whole = segments(size, self.capacity, self.rtt, self.packet, mss);
        if whole < 2.0 {
            let message = format!("this is less than two segments of {mss} bytes");
            self.refuse(
                findings,
                "tso",
                message,
                "write \"off\", or for example \"64kB\"",
            );
        }
        // Larger trains than a window make no difference.
        whole.min(1e6) as u32
    }

    /// A window in whole segments.
    fn window(&self, key: &str, mss: u32, findings: &mut Findings) -> Option<f64> {
        let size = self.record.window(key)?;
        let segments = segments(size, self.capacity, self.rtt, self.packet, mss);
        if segments < 1.0 {
            let message = match size {
                WindowSize::Bdp(_) => format!(
                    "the window is below one segment: 1BDP is {} packets here",
                    significant(bdp_packets(self.capacity, self.rtt, self.packet))
                ),
                _ => format!("the window is below one segment of {mss} bytes"),
            };
            self.refuse(findings, key, message, "write at least \"1 segment\"");
        }
        Some(segments)
    }

    fn receiver(
        &self,
        sender: &mut SenderConfig,
        receiver: &mut ReceiverConfig,
        findings: &mut Findings,
    ) {
        let r = self.record;
        let every = r.whole("ack_every").map(|n| u32::try_from(n).unwrap_or(1));
        match (r.flag("delayed_ack"), every) {
            (Some(false), Some(2..)) | (Some(true), Some(1)) => {
                let message = "contradicts `delayed_ack`";
                self.refuse(findings, "ack_every", message, "leave one of them out");
            }
            (Some(false), _) => receiver.acks.every = 1,
            (_, Some(n)) => receiver.acks.every = n,
            (_, None) => {}
        }
        if let Some(delay) = r.span("ack_delay") {
            receiver.acks.delay = delay;
            sender.timers.max_ack_delay = sender.timers.max_ack_delay.max(delay);
        }
    }

    fn switches(&self, sender: &mut SenderConfig, receiver: &mut ReceiverConfig) {
        let r = self.record;
        match r.word("recovery") {
            Some("rack") => sender.recovery.detector = Detector::Rack,
            Some("sack") => sender.recovery.detector = Detector::Sack,
            Some("newreno") => sender.recovery.detector = Detector::NewReno,
            _ => {}
        }
        receiver.sack.enabled = sender.recovery.detector != Detector::NewReno;
        for (key, switch) in [
            ("tlp", &mut sender.recovery.tlp),
            ("frto", &mut sender.recovery.frto),
            ("undo", &mut sender.recovery.undo),
            ("ecn", &mut sender.ecn),
            ("handshake", &mut sender.handshake),
            ("recover_from_loss", &mut sender.recovery.recover_from_loss),
            (
                "timeout_reduces_in_recovery",
                &mut sender.recovery.timeout_reduces_in_recovery,
            ),
            ("head_restarts_timer", &mut sender.timers.head_restarts_rto),
        ] {
            *switch = r.flag(key).unwrap_or(*switch);
        }
        sender.recovery.reduction = match (r.flag("prr"), sender.recovery.reduction) {
            (Some(false), _) => Reduction::Immediate,
            (Some(true), Reduction::Immediate) => Reduction::Prr,
            (_, preset) => preset,
        };
        if let Some(min) = r.span("min_rto") {
            sender.rto.min = min;
            sender.rto.max = sender.rto.max.max(min);
        }
        if let Some(hz) = r.whole("hz").and_then(|n| u32::try_from(n).ok()) {
            sender.timers.hz = hz;
            receiver.acks.hz = receiver.acks.hz.map(|_| hz);
        }
        match r.word("timers") {
            Some("exact") => (sender.timers.grain, receiver.acks.hz) = (TimerGrain::Exact, None),
            Some("wheel") => {
                (sender.timers.grain, receiver.acks.hz) =
                    (TimerGrain::Wheel, Some(sender.timers.hz))
            }
            _ => {}
        }
        match r.word("rto_formula") {
            Some("rfc6298") => sender.rto.rule = RtoRule::Rfc6298,
            Some("linux") => sender.rto.rule = RtoRule::Linux,
            _ => {}
        }
        match r.word("rtt_sample") {
            Some("newest") => sender.rto.sample = RttSample::Newest,
            Some("oldest") => sender.rto.sample = RttSample::Oldest,
            _ => {}
        }
        match r.word("loss_window") {
            Some("one") => sender.recovery.loss_window = LossWindow::One,
            Some("flight") => sender.recovery.loss_window = LossWindow::FlightPlusOne,
            _ => {}
        }
        match r.flag("push") {
            Some(false) => sender.host.refill = None,
            Some(true) => {
                sender.host.refill = SenderConfig::preset(Preset::Linux, 1500).host.refill
            }
            None => {}
        }
        if let Some(n) = r.real("first_window") {
            receiver.window.first = Some(n as u64);
        }
        if let Some(n) = r.whole("quick_acks").and_then(|n| u32::try_from(n).ok()) {
            receiver.acks.quick = n;
        }
        receiver.acks.compression = match (r.flag("merge_acks"), receiver.acks.compression) {
            (Some(false), _) => None,
            (Some(true), None) => Some(AckCompression::LINUX),
            (_, preset) => preset,
        };
        // `count` of short flows is their number: they count as the preset does.
        match r.word("count") {
            Some("segments") => sender.window.count = Count::Segments,
            Some("acks") => sender.window.count = Count::Acks,
            _ => {}
        }
        match r.word("validation") {
            Some("none") => sender.window.validation = Validation::None,
            Some("rfc5681") => sender.window.validation = Validation::Rfc5681,
            Some("rfc2861") => sender.window.validation = Validation::Rfc2861,
            Some("rfc7661") => sender.window.validation = Validation::Rfc7661,
            _ => {}
        }
        match r.word("sendstall") {
            Some("react") => sender.host.local_drop = LocalDrop::React,
            Some("ignore") => sender.host.local_drop = LocalDrop::Ignore,
            Some("exit-slow-start") => sender.host.local_drop = LocalDrop::ExitSlowStart,
            _ => {}
        }
        match r.word("lost_retransmission") {
            Some("reduce") => sender.recovery.reduce_on_lost_retransmission = true,
            Some("ignore") => sender.recovery.reduce_on_lost_retransmission = false,
            _ => {}
        }
        match r.word("decrease_base") {
            Some("flight") => sender.window.decrease_base = Base::MinFlight,
            Some("cwnd") => sender.window.decrease_base = Base::Cwnd,
            _ => {}
        }
        if let Some(limit) = r.real("slow_start_limit") {
            sender.window.slow_start_limit = Some(limit);
        }
    }

    /// What the stack's spelling says about sending, and what the keys beside it say.
    fn stack(&self, stack: &StackSpec, sender: &mut SenderConfig, findings: &mut Findings) {
        let r = self.record;
        sender.pacing.initial = stack.sending().unwrap_or(sender.pacing.initial);
        let wanted = r.real("initial_window");
        if let (Some(spelled), Some(wanted)) = (stack.initial_window(), wanted)
            && spelled != wanted
        {
            let message = format!("the stack sets an initial window of {spelled} segments");
            self.refuse(
                findings,
                "initial_window",
                message,
                "keep `iw` or `initial_window`",
            );
        }
        if let Some(iw) = wanted.or(stack.initial_window()) {
            sender.window.initial = iw;
        }
        sender.pacing.gains = stack.pacing();
        match r.flag("pacing") {
            Some(false) if sender.pacing.gains.is_some() => {
                let message = "the stack paces";
                self.refuse(
                    findings,
                    "pacing",
                    message,
                    "take the pacing out of `stack`",
                );
            }
            Some(true) if sender.pacing.gains.is_none() => {
                sender.pacing.gains = Some(PacingGains::default())
            }
            _ => {}
        }
        if sender.ecn && !self.marks {
            let message = "no queue on its way marks packets: `ecn` changes nothing";
            findings.warn(r, "ecn", self.path, message);
        }
    }

    fn refuse(&self, findings: &mut Findings, key: &str, message: impl Into<String>, hint: &str) {
        findings.refuse(self.record, key, self.path, message, hint);
    }
}
