//! Events of a controller, as Python sees them.

use fullpipe_cc::{
    AckEvent, CongestionEvent, CongestionKind, LostSegment, Phase, RestartEvent, RtoEvent,
};
use fullpipe_units::{Span, Time};
use pyo3::prelude::*;

/// Seconds; `None` for no sample.
fn seconds(span: Span) -> Option<f64> {
    (span != Span::MAX).then(|| span.as_secs_f64())
}

macro_rules! event {
    ($(#[$meta:meta])* $name:ident($of:ty) {
        $($(#[$doc:meta])* $field:ident: $kind:ty = |$ev:ident| $value:expr;)+
    }) => {
        $(#[$meta])*
        #[pyclass(frozen, module = "fullpipe._native")]
        pub struct $name(pub(super) $of);

        #[pymethods]
        impl $name {
            $($(#[$doc])* #[getter] fn $field(&self) -> $kind { let $ev = &self.0; $value })+
        }
    };
}

event! {
    /// One ACK.
    Ack(AckEvent) {
        /// Time of the run, seconds.
        now: f64 = |ev| ev.now.as_secs_f64();
        /// Segments newly acknowledged that had not been SACKed before.
        acked: u64 = |ev| ev.acked;
        /// Segments newly SACKed.
        sacked: u64 = |ev| ev.sacked;
        /// Both together: what this ACK says has arrived.
        delivered_now: u64 = |ev| ev.delivered_now();
        /// Segments that it made the sender mark lost.
        lost: u64 = |ev| ev.lost;
        /// ACK packets merged into it, at least 1.
        acks: u64 = |ev| ev.acks;
        /// It moved the first unacknowledged segment.
        advanced: bool = |ev| ev.advanced;
        /// RTT sample, seconds, if the ACK gives one.
        rtt: Option<f64> = |ev| ev.rtt.map(Span::as_secs_f64);
        /// Smoothed RTT, seconds; zero before the first sample.
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        /// Smallest RTT seen, seconds; none before the first sample.
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
        /// Segments in the network before it.
        prior_flight: u64 = |ev| ev.prior_flight;
        /// Segments in the network after it.
        flight: u64 = |ev| ev.flight;
        /// Segments delivered since the start, with those of this ACK.
        delivered: u64 = |ev| ev.delivered;
        /// Segments per second, of a class with `reads_rate`, if there is a sample.
        delivery_rate: Option<f64> = |ev| ev.rate.map(|r| r.per_second());
        /// The window was what held the sender back.
        cwnd_limited: bool = |ev| ev.cwnd_limited;
        /// The application had nothing to send when the sample was taken.
        app_limited: bool = |ev| ev.app_limited;
        /// A window may grow: the ACK advances, the window is the limit, no reduction is on.
        may_grow: bool = |ev| ev.may_grow();
        /// The ACK echoes a mark (RFC 3168).
        ece: bool = |ev| ev.ece;
        /// Round trips since the start.
        round: u64 = |ev| ev.round;
        /// It is the first of a new round trip.
        round_start: bool = |ev| ev.round_start;
        /// `open`, `disorder`, `cwr`, `recovery` or `loss`: the state of the sender.
        phase: &'static str = |ev| phase(ev.phase);
        /// First unacknowledged segment, after it.
        snd_una: u64 = |ev| ev.snd_una;
        /// Next new segment.
        snd_nxt: u64 = |ev| ev.snd_nxt;
    }
}

event! {
    /// A sign of congestion.
    Congestion(CongestionEvent) {
        /// Time of the run, seconds.
        now: f64 = |ev| ev.now.as_secs_f64();
        /// `loss`, `ecn` (a mark) or `local-drop` (the own interface had no room).
        kind: &'static str = |ev| match ev.kind {
            CongestionKind::Loss => "loss",
            CongestionKind::Ecn => "ecn",
            CongestionKind::LocalDrop => "local-drop",
        };
        /// False for a lost retransmission in a recovery that has reduced already.
        first_in_window: bool = |ev| ev.first_in_window;
        /// Segments marked lost so far.
        lost: u64 = |ev| ev.lost;
        /// Segments outstanding before they were marked lost (RFC 5681 equation 4).
        flight: u64 = |ev| ev.flight;
        /// Smoothed RTT, seconds; zero before the first sample.
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        /// Smallest RTT seen, seconds; none before the first sample.
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// A segment that was marked lost.
    Lost(LostSegment) {
        /// Time of the run, seconds.
        now: f64 = |ev| ev.now.as_secs_f64();
        /// Number of the segment, from 0 on.
        seq: u64 = |ev| ev.seq;
        /// Segments in the network right after it was sent.
        tx_in_flight: u64 = |ev| ev.tx_in_flight;
        /// Segments marked lost since then, this one with them.
        lost: u64 = |ev| ev.lost;
        /// Segments delivered since the start.
        delivered: u64 = |ev| ev.delivered;
    }
}

event! {
    /// A retransmission timeout.
    Timeout(RtoEvent) {
        /// Time of the run, seconds.
        now: f64 = |ev| ev.now.as_secs_f64();
        /// First time for this segment: only then the threshold changes.
        first: bool = |ev| ev.first;
        /// In a recovery that may yet turn out to be for nothing.
        nested: bool = |ev| ev.nested;
        /// Segments outstanding.
        flight: u64 = |ev| ev.flight;
        /// Segments still taken to be in the network.
        pipe: u64 = |ev| ev.pipe;
        /// Smoothed RTT, seconds; zero before the first sample.
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        /// Smallest RTT seen, seconds; none before the first sample.
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// The connection is open.
    Start(RestartEvent) {
        /// Time of the run, seconds.
        now: f64 = |ev| ev.now.as_secs_f64();
        /// Smoothed RTT, seconds; zero before the first sample.
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Cwr => "cwr",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

/// What the ACKs of a round trip said, together.
#[pyclass(frozen, module = "fullpipe._native")]
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Time of the run at its end, seconds.
    #[pyo3(get)]
    now: f64,
    /// Length of the round, seconds.
    #[pyo3(get)]
    duration: f64,
    /// ACK packets.
    #[pyo3(get)]
    acks: u64,
    /// Segments newly acknowledged or SACKed.
    #[pyo3(get)]
    delivered_now: u64,
    /// Segments that its ACKs marked lost, not those that timers did.
    #[pyo3(get)]
    lost: u64,
    /// ACKs that echo a mark (RFC 3168).
    #[pyo3(get)]
    ece: u64,
    /// Smallest RTT sample, seconds; none without a sample.
    #[pyo3(get)]
    rtt_min: Option<f64>,
    /// Mean of the RTT samples, seconds.
    #[pyo3(get)]
    rtt: Option<f64>,
    /// Largest RTT sample, seconds.
    #[pyo3(get)]
    rtt_max: Option<f64>,
    /// Smoothed RTT, seconds; zero before the first sample.
    #[pyo3(get)]
    srtt: f64,
    /// Smallest RTT ever, seconds.
    #[pyo3(get)]
    min_rtt: Option<f64>,
    /// Segments in the network at its end.
    #[pyo3(get)]
    flight: u64,
    /// The window was the limit at some ACK.
    #[pyo3(get)]
    cwnd_limited: bool,
    /// The application was the limit at some ACK.
    #[pyo3(get)]
    app_limited: bool,
    /// `open`, `disorder`, `cwr`, `recovery` or `loss`: the state of the sender.
    #[pyo3(get)]
    phase: &'static str,
    /// Its begin, seconds; RTT samples and their sum.
    begin: f64,
    samples: u64,
    sum: f64,
}

impl Round {
    /// One that begins now.
    pub(super) fn from(now: Time) -> Self {
        let begin = now.as_secs_f64();
        Self {
            begin,
            ..Self::default()
        }
    }

    /// Adds an ACK.
    pub(super) fn take(&mut self, ev: &AckEvent) {
        self.now = ev.now.as_secs_f64();
        self.duration = self.now - self.begin;
        self.acks += ev.acks;
        self.delivered_now += ev.delivered_now();
        self.lost += ev.lost;
        self.ece += u64::from(ev.ece);
        if let Some(rtt) = ev.rtt.map(Span::as_secs_f64) {
            self.samples += 1;
            self.sum += rtt;
            self.rtt = Some(self.sum / self.samples as f64);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |x| x.min(rtt)));
            self.rtt_max = Some(self.rtt_max.map_or(rtt, |x| x.max(rtt)));
        }
        self.srtt = ev.srtt.as_secs_f64();
        self.min_rtt = seconds(ev.min_rtt);
        self.flight = ev.flight;
        self.cwnd_limited |= ev.cwnd_limited;
        self.app_limited |= ev.app_limited;
        self.phase = phase(ev.phase);
    }
}
