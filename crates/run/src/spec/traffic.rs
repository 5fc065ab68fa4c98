//! Traffic that is not a lasting flow: short flows that come and go, datagrams at a prescribed
//! rate, round-trip probes.

use fullpipe_units::{Rate, Span, Time};

use super::FlowSpec;

/// Short flows that arrive at random and end by themselves.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ArrivalSpec {
    /// What each of them is: the first arrives after `start`, none after `stop`. The name seeds the
    /// generators; the transfer's size is overwritten, the spread of the start unused. The flows
    /// are called name#0, name#1 ...
    pub template: FlowSpec,
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Size distribution, segments.
    pub sizes: SizeLaw,
}

/// Arrival process of short flows.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson {
        /// Arrivals per second.
        per_second: f64,
    },
    /// Equal gaps, the first after one gap.
    Every(Span),
    /// This many, each at a uniform time between `start` and `start + within`.
    Spread {
        /// Number of flows.
        count: u64,
        /// Within this time.
        within: Span,
    },
}

/// Size of a short flow, whole segments, at least one.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum SizeLaw {
    /// All equal.
    Fixed(u64),
    /// Every whole number from the first to the second, equally likely.
    Uniform(u64, u64),
    /// Pareto, rounded up to whole segments.
    Pareto {
        /// Mean of the law before it is cut, segments.
        mean: f64,
        /// Shape, above 1.
        shape: f64,
        /// Larger values are cut to this.
        most: u64,
    },
    /// Distribution function: (size, probability of at most this), both rising, the last
    /// probability 1; values between two points are taken as linear.
    Empirical(Vec<(f64, f64)>),
}

/// Datagrams at a prescribed rate, answered by nobody.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct SourceSpec {
    /// Unique name; seeds the source's generator.
    pub name: String,
    /// Bytes of a datagram with its headers.
    pub packet: u16,
    /// Rate over time, headers included, counted from `start`.
    pub waveform: Waveform,
    /// How datagrams follow one another.
    pub spacing: Spacing,
    /// Links it crosses.
    #[serde(skip)]
    pub forward: Vec<usize>,
    /// First datagram at or after this time.
    pub start: Time,
    /// None at or after this time.
    pub stop: Option<Time>,
}

/// Rate over time.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Waveform {
    /// Each rate holds from its time (since the start) to the next one; the first time is zero.
    Steps {
        /// Time and rate.
        steps: Vec<(Span, Rate)>,
        /// The sequence begins anew after this time; `None`: the last rate stays.
        period: Option<Span>,
    },
    /// `mean + amplitude sin(2 pi t / period)`; the amplitude is at most the mean.
    Sine {
        /// Mean.
        mean: Rate,
        /// Amplitude.
        amplitude: Rate,
        /// Period.
        period: Span,
    },
    /// Exponential times of sending at a rate and of silence.
    OnOff {
        /// While on.
        rate: Rate,
        /// Mean time on; the source begins on.
        on: Span,
        /// Mean time off.
        off: Span,
    },
}

/// How datagrams follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Spacing {
    /// As even as the rate allows.
    Even,
    /// Exponential gaps with the mean that the rate asks for.
    Poisson,
}

/// Round-trip probes along the queues of others.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct PingSpec {
    /// Unique name.
    pub name: String,
    /// From one request to the next.
    pub interval: Span,
    /// Bytes of a request and of its answer.
    pub size: u16,
    /// Links of the request.
    #[serde(skip)]
    pub forward: Vec<usize>,
    /// Links of the answer.
    #[serde(skip)]
    pub back: Vec<usize>,
    /// First request.
    pub start: Time,
    /// No request at or after this time.
    pub stop: Option<Time>,
}
