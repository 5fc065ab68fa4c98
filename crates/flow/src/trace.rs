//! The record of a trace: a sender at one moment, the same on every ground.
//!
//! What it is: one fixed-width row, made from a [`Sender`] without allocation, and the words for
//! what happened since the row before. What it is not: it decides neither how often rows are made
//! nor where they go. The columns it becomes on disk are in the trace crate; the names of Web100
//! and `TCP_INFO` for the same things stand beside them there.

use fullpipe_cc::{CongestionKind, Controller, Phase};
use fullpipe_units::{Span, Time};

use crate::episode::{EpisodeKind, Proof};
use crate::sender::Sender;

/// A sender at one moment. Windows and counts in segments of `mss` bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TraceRow {
    /// Since the start of the run.
    pub time: Time,
    /// Window the sender uses: PRR's during a reduction, the controller's otherwise.
    pub cwnd: f64,
    /// Smallest since the row before.
    pub cwnd_min: f64,
    /// Largest since the row before.
    pub cwnd_max: f64,
    /// Threshold; infinite before the first reduction.
    pub ssthresh: f64,
    /// Pacing rate, bit/s of payload; 0 when not paced.
    pub pacing_rate: f64,
    /// Latest RTT sample, without the receiver's delay where the ground knows it; zero before the
    /// first.
    pub rtt: Span,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// How long the receiver held the latest ACK; [`Span::MAX`] where nobody says.
    pub ack_delay: Span,
    /// In the network (RFC 6675 `pipe`).
    pub flight: u64,
    /// Delivered so far, as far as the sender knows.
    pub delivered: u64,
    /// First unacknowledged segment.
    pub snd_una: u64,
    /// Next new segment.
    pub snd_nxt: u64,
    /// Sent again so far.
    pub retransmits: u64,
    /// Congestion events so far that reduced the window.
    pub loss_events: u32,
    /// Retransmission timeouts so far.
    pub timeouts: u32,
    /// Segments refused by the local queue so far.
    pub local_stalls: u32,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Index of the flow in its run.
    pub flow: u32,
    /// Events since the row before.
    pub events: Events,
    /// Recovery state.
    pub phase: Phase,
    /// The controller is in its start-up.
    pub start_up: bool,
}

const _: () = assert!(size_of::<TraceRow>() == TraceRow::BYTES);

impl TraceRow {
    /// Size of a row in memory, bytes.
    pub const BYTES: usize = 144;

    /// What `sender` of flow `flow` shows now. The extremes are those of the moment; the events,
    /// and the receiver's delay, are for the caller to fill in.
    #[inline]
    pub fn of<C: Controller>(time: Time, flow: u32, sender: &Sender<C>) -> Self {
        let (rtt, counts) = (sender.rtt(), sender.counts());
        let cwnd = sender.cwnd();
        Self {
            time,
            cwnd,
            cwnd_min: cwnd,
            cwnd_max: cwnd,
            ssthresh: sender.controller().ssthresh(),
            pacing_rate: sender.pacing_rate().unwrap_or(0.0),
            rtt: rtt.latest(),
            srtt: rtt.srtt(),
            min_rtt: rtt.min(),
            ack_delay: Span::MAX,
            flight: sender.flight(),
            delivered: sender.delivered(),
            snd_una: sender.una(),
            snd_nxt: sender.nxt(),
            retransmits: counts.retransmits,
            loss_events: saturated(counts.loss_events),
            timeouts: saturated(counts.timeouts),
            local_stalls: saturated(counts.local_stalls),
            mss: sender.mss(),
            flow,
            events: Events::NONE,
            phase: sender.phase(),
            start_up: sender.controller().in_start_up(),
        }
    }

    /// The phase in one word: `start-up`, `congestion-avoidance`, `disorder`, `cwr`, `recovery` or
    /// `loss`.
    pub fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::Open if self.start_up => "start-up",
            Phase::Open => "congestion-avoidance",
            Phase::Disorder => "disorder",
            Phase::Cwr => "cwr",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
        }
    }
}

impl Default for TraceRow {
    /// Before anything is known.
    fn default() -> Self {
        Self {
            time: Time::ZERO,
            cwnd: 0.0,
            cwnd_min: 0.0,
            cwnd_max: 0.0,
            ssthresh: f64::INFINITY,
            pacing_rate: 0.0,
            rtt: Span::ZERO,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            ack_delay: Span::MAX,
            flight: 0,
            delivered: 0,
            snd_una: 0,
            snd_nxt: 0,
            retransmits: 0,
            loss_events: 0,
            timeouts: 0,
            local_stalls: 0,
            mss: 0,
            flow: 0,
            events: Events::NONE,
            phase: Phase::Open,
            start_up: true,
        }
    }
}

/// Takes rows while a run goes on. It must not wait.
pub trait TraceSink: std::fmt::Debug + Send {
    /// A row, and the values of the controller's variables in the order in which it reports them.
    fn put(&mut self, row: &TraceRow, variables: &[f64]);
}

fn saturated(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A set of things that happened to a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Events(u16);

impl Events {
    /// Nothing.
    pub const NONE: Events = Events(0);
    /// An ACK brought something new.
    pub const ACK: Events = Events(1);
    /// A congestion event for a lost segment.
    pub const LOSS: Events = Events(1 << 1);
    /// A congestion event for an ECN mark.
    pub const MARK: Events = Events(1 << 2);
    /// A congestion event for a refusal by the local queue.
    pub const LOCAL_DROP: Events = Events(1 << 3);
    /// A further reduction for a lost retransmission.
    pub const LOST_RETRANSMISSION: Events = Events(1 << 4);
    /// A retransmission timeout.
    pub const TIMEOUT: Events = Events(1 << 5);
    /// A reduction was undone.
    pub const UNDO: Events = Events(1 << 6);
    /// Start-up was left without a reduction.
    pub const START_UP_EXIT: Events = Events(1 << 7);
    /// A tail loss probe left.
    pub const PROBE: Events = Events(1 << 8);
    /// The local queue refused a segment.
    pub const STALL: Events = Events(1 << 9);
    /// A segment was sent again.
    pub const RETRANSMIT: Events = Events(1 << 10);
    /// What was undone was so by a time stamp.
    pub const EIFEL: Events = Events(1 << 11);
    /// By a count of duplicates.
    pub const DSACK: Events = Events(1 << 12);
    /// What was undone was so by forward RTO recovery (RFC 5682).
    pub const F_RTO: Events = Events(1 << 13);
    /// Parameters of the flow were changed.
    pub const CHANGE: Events = Events(1 << 14);

    /// Every event with its name, the rarest first.
    pub const NAMES: [(Events, &'static str); 15] = [
        (Events::TIMEOUT, "timeout"),
        (Events::UNDO, "undo"),
        (Events::EIFEL, "eifel"),
        (Events::DSACK, "dsack"),
        (Events::F_RTO, "f-rto"),
        (Events::CHANGE, "change"),
        (Events::LOSS, "loss"),
        (Events::MARK, "mark"),
        (Events::LOCAL_DROP, "local-stall"),
        (Events::LOST_RETRANSMISSION, "again"),
        (Events::START_UP_EXIT, "start-up-exit"),
        (Events::STALL, "stall"),
        (Events::PROBE, "probe"),
        (Events::RETRANSMIT, "retransmit"),
        (Events::ACK, "ack"),
    ];

    /// Both.
    #[must_use]
    pub const fn with(self, other: Events) -> Events {
        Events(self.0 | other.0)
    }

    /// `other`, if `condition` holds, beside these.
    #[must_use]
    pub fn with_if(self, condition: bool, other: Events) -> Events {
        if condition { self.with(other) } else { self }
    }

    /// True if all of `other` are among these.
    pub const fn has(self, other: Events) -> bool {
        self.0 & other.0 == other.0
    }

    /// True without any.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as a number, one bit per event.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// From what [`Events::bits`] gave; unknown bits are dropped.
    pub fn from_bits(bits: u16) -> Events {
        let known = Events::NAMES.iter().fold(0, |all, (e, _)| all | e.0);
        Events(bits & known)
    }

    /// Names joined by `+`, the rarest first; empty for none.
    pub fn text(self) -> String {
        let names = Events::NAMES.iter().filter(|(e, _)| self.has(*e));
        names.map(|(_, n)| *n).collect::<Vec<_>>().join("+")
    }

    /// From what [`Events::text`] gave; `None` for a name nobody knows.
    pub fn parse(text: &str) -> Option<Events> {
        let mut events = Events::NONE;
        for name in text.split('+').filter(|n| !n.is_empty()) {
            let (event, _) = Events::NAMES.iter().find(|(_, n)| *n == name)?;
            events = events.with(*event);
        }
        Some(events)
    }
}

impl From<EpisodeKind> for Events {
    fn from(kind: EpisodeKind) -> Events {
        match kind {
            EpisodeKind::Congestion(CongestionKind::Loss) => Events::LOSS,
            EpisodeKind::Congestion(CongestionKind::Ecn) => Events::MARK,
            EpisodeKind::Congestion(CongestionKind::LocalDrop) => Events::LOCAL_DROP,
            EpisodeKind::LostRetransmission => Events::LOST_RETRANSMISSION,
            EpisodeKind::Timeout => Events::TIMEOUT,
            EpisodeKind::Undo(None) => Events::UNDO,
            EpisodeKind::Undo(Some(Proof::Stamp)) => Events::UNDO.with(Events::EIFEL),
            EpisodeKind::Undo(Some(Proof::Duplicates)) => Events::UNDO.with(Events::DSACK),
            EpisodeKind::Undo(Some(Proof::Forward)) => Events::UNDO.with(Events::F_RTO),
            EpisodeKind::StartUpExit => Events::START_UP_EXIT,
            EpisodeKind::Change => Events::CHANGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_cc::{Setup, StackSpec};

    use super::*;
    use crate::config::{Preset, SenderConfig};
    use crate::segment::{Ack, SackBlocks};

    #[test]
    fn a_row_shows_what_the_sender_shows() {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false);
        let cc = StackSpec::parse("reno")
            .unwrap()
            .controller(Setup::default());
        let mut sender = Sender::new(cfg, cc, 0);
        sender.start(Time::ZERO);
        while sender.poll_transmit(Time::ZERO).is_some() {}
        let before = TraceRow::of(Time::ZERO, 3, &sender);
        assert_eq!(
            (before.flight, before.snd_una, before.snd_nxt, before.flow),
            (10, 0, 10, 3)
        );
        assert_eq!((before.rtt, before.min_rtt), (Span::ZERO, Span::MAX));
        let now = Time::ZERO + Span::from_millis(80);
        let ack = Ack {
            cum: 2,
            syn: false,
            echo: Time::ZERO,
            stamp_ms: 40,
            one_way: None,
            sacks: SackBlocks::default(),
            dsack: false,
            ece: false,
            window_end: u64::MAX,
        };
        sender.handle_ack(now, &ack);
        let row = TraceRow::of(now, 3, &sender);
        assert_eq!((row.time, row.cwnd, row.flight), (now, 12.0, 8));
        assert_eq!((row.delivered, row.snd_una), (2, 2));
        assert_eq!((row.rtt, row.min_rtt), (now - Time::ZERO, now - Time::ZERO));
        assert_eq!((row.mss, row.phase_name()), (1448, "start-up"));
        assert_eq!(row.ack_delay, Span::MAX, "nobody said");
    }

    #[test]
    fn events_are_bits_of_their_own_and_read_back() {
        let mut all = Events::NONE;
        for (event, name) in Events::NAMES {
            assert_eq!(event.bits().count_ones(), 1, "{name}");
            assert!(!all.has(event), "{name}");
            all = all.with(event);
            assert_eq!(event.text(), name);
            assert_eq!(Events::parse(name), Some(event));
        }
        assert_eq!(Events::parse(&all.text()), Some(all));
        assert_eq!(Events::from_bits(u16::MAX), all);
        let two = Events::ACK.with(Events::LOSS);
        assert_eq!(two.text(), "loss+ack");
        assert_eq!(Events::parse(""), Some(Events::NONE));
        assert_eq!(Events::parse("loss+nonsense"), None);
    }
}
