//! What a controller is told.

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
        now: f64 = |ev| ev.now.as_secs_f64();
        acked: u64 = |ev| ev.acked;
        sacked: u64 = |ev| ev.sacked;
        delivered_now: u64 = |ev| ev.delivered_now();
        lost: u64 = |ev| ev.lost;
        acks: u64 = |ev| ev.acks;
        advanced: bool = |ev| ev.advanced;
        rtt: Option<f64> = |ev| ev.rtt.map(Span::as_secs_f64);
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
        prior_flight: u64 = |ev| ev.prior_flight;
        flight: u64 = |ev| ev.flight;
        delivered: u64 = |ev| ev.delivered;
        delivery_rate: Option<f64> = |ev| ev.rate.map(|r| r.per_second());
        cwnd_limited: bool = |ev| ev.cwnd_limited;
        app_limited: bool = |ev| ev.app_limited;
        may_grow: bool = |ev| ev.may_grow();
        ece: bool = |ev| ev.ece;
        round: u64 = |ev| ev.round;
        round_start: bool = |ev| ev.round_start;
        phase: &'static str = |ev| phase(ev.phase);
        snd_una: u64 = |ev| ev.snd_una;
        snd_nxt: u64 = |ev| ev.snd_nxt;
    }
}

event! {
    /// A sign of congestion.
    Congestion(CongestionEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        kind: &'static str = |ev| match ev.kind {
            CongestionKind::Loss => "loss",
            CongestionKind::Ecn => "ecn",
            CongestionKind::LocalDrop => "local-drop",
        };
        first_in_window: bool = |ev| ev.first_in_window;
        lost: u64 = |ev| ev.lost;
        flight: u64 = |ev| ev.flight;
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// A segment that was marked lost.
    Lost(LostSegment) {
        now: f64 = |ev| ev.now.as_secs_f64();
        seq: u64 = |ev| ev.seq;
        tx_in_flight: u64 = |ev| ev.tx_in_flight;
        lost: u64 = |ev| ev.lost;
        delivered: u64 = |ev| ev.delivered;
    }
}

event! {
    /// A retransmission timeout.
    Timeout(RtoEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        first: bool = |ev| ev.first;
        nested: bool = |ev| ev.nested;
        flight: u64 = |ev| ev.flight;
        pipe: u64 = |ev| ev.pipe;
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// The connection is open.
    Start(RestartEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
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
    /// Its end, and how long it lasted, seconds.
    #[pyo3(get)]
    now: f64,
    #[pyo3(get)]
    duration: f64,
    /// ACKs, and segments that they newly acknowledged or SACKed.
    #[pyo3(get)]
    acks: u64,
    #[pyo3(get)]
    delivered_now: u64,
    /// Segments that its ACKs marked lost, not those that timers did, and ACKs with an echo of a
    /// mark (RFC 3168).
    #[pyo3(get)]
    lost: u64,
    #[pyo3(get)]
    ece: u64,
    /// RTT samples: smallest, mean and largest, seconds; none without a sample.
    #[pyo3(get)]
    rtt_min: Option<f64>,
    #[pyo3(get)]
    rtt: Option<f64>,
    #[pyo3(get)]
    rtt_max: Option<f64>,
    /// Smoothed RTT, and the smallest ever.
    #[pyo3(get)]
    srtt: f64,
    #[pyo3(get)]
    min_rtt: Option<f64>,
    /// Segments in the network now.
    #[pyo3(get)]
    flight: u64,
    /// The window was the limit at some ACK.
    #[pyo3(get)]
    cwnd_limited: bool,
    #[pyo3(get)]
    app_limited: bool,
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
