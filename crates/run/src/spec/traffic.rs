//! Traffic that is not a lasting flow: short flows that come and go, datagrams at prescribed times,
//! answered or not.

use fullpipe_units::{Rate, Span, Time};

use super::FlowSpec;

/// Short flows that arrive at random and end by themselves.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ArrivalSpec {
    /// What each of them is: the first arrives after `start`, none begins after `stop`. The
    /// transfer's size is overwritten, the spread of the start unused. The flows are called name#0,
    /// name#1 ... in the order in which they begin.
    pub template: FlowSpec,
    /// Arrival process, of sessions.
    pub arrivals: Arrivals,
    /// Size distribution of every transfer, segments.
    pub sizes: SizeLaw,
    /// Whether others follow a transfer, and when.
    pub session: Session,
    /// Name that seeds the generators of arrivals, sizes and sessions; `None`: that of the
    /// template. Two classes of one name and the same laws have the same transfers at the same
    /// times: the paired camps of draft-irtf-iccrg-tcpeval-01 section 6.1.2.
    pub seeded_by: Option<String>,
}

impl ArrivalSpec {
    /// Name that seeds the generators of arrivals, sizes and sessions.
    pub fn seed_name(&self) -> &str {
        self.seeded_by.as_deref().unwrap_or(&self.template.name)
    }

    /// Sessions to expect in a run of this length.
    pub fn sessions(&self, duration: Span) -> f64 {
        let seconds = duration.as_secs_f64();
        match self.arrivals {
            Arrivals::Poisson { per_second } => per_second * seconds,
            Arrivals::Every(gap) => seconds / gap.as_secs_f64(),
            Arrivals::Spread { count, .. } => count as f64,
        }
    }

    /// Transfers to expect in a run of this length, at most: how fast the path is nobody knows.
    pub fn transfers(&self, duration: Span) -> f64 {
        self.sessions(duration) * self.session.transfers(duration, Span::ZERO)
    }

    /// Sessions after which the class ends, whatever the seed says, so that who hosts it can tell
    /// beforehand what it takes: where n are [expected](Self::sessions), (sqrt(n) + 4)^2. Of
    /// Poisson's sessions with geometric numbers of transfers the chance of more is at most
    /// exp(-16), one in nine million: Chernoff's bound with exponential numbers in their place.
    pub fn most_sessions(&self, duration: Span) -> u64 {
        // The cast saturates.
        most_of(self.sessions(duration)) as u64
    }

    /// Transfers after which it ends: those of so many [sessions](Self::most_sessions), each of the
    /// expected number.
    pub fn most_transfers(&self, duration: Span) -> u64 {
        let of_session = self.session.transfers(duration, Span::ZERO);
        (of_session * most_of(self.sessions(duration))) as u64
    }
}

fn most_of(sessions: f64) -> f64 {
    let root = libm::sqrt(sessions) + 4.0;
    root * root
}

/// What a user does after a transfer: goes on, after a pause, or leaves. The next transfer is a
/// connection of its own, and waits for the end of this one, so that a slow path is offered less:
/// traffic in a closed loop (draft-irtf-iccrg-tcpeval-01 section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Session {
    /// Mean number of transfers, at least 1: after each the session goes on with probability
    /// 1 - 1/exchanges.
    pub exchanges: f64,
    /// Mean of the exponential time from the completion of a transfer to the next one.
    pub think: Span,
}

impl Default for Session {
    /// One transfer.
    fn default() -> Self {
        Self {
            exchanges: 1.0,
            think: Span::ZERO,
        }
    }
}

impl Session {
    /// More than one transfer is possible.
    pub fn goes_on(&self) -> bool {
        self.exchanges > 1.0
    }

    /// Transfers to expect of a session, at most, if it has so much time and none of them is over
    /// before `shortest`.
    pub fn transfers(&self, time: Span, shortest: Span) -> f64 {
        let each = (self.think + shortest).as_secs_f64();
        // Without any time for each there is no bound but the mean; `min` ignores 0/0.
        self.exchanges.min(1.0 + time.as_secs_f64() / each)
    }
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

/// Datagrams without congestion control that leave at prescribed times: one way, or each of them
/// answered at once by a datagram of the same size (a sequence of probes).
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CrossSpec {
    /// Unique name; seeds the generators.
    pub name: String,
    /// Bytes of a datagram, and of its answer, with headers.
    pub packet: u16,
    /// When datagrams leave, counted from `start`.
    pub departures: Departures,
    /// The far host answers. In [`RunSpec::cross`](super::RunSpec) what is answered comes last.
    pub answered: bool,
    /// Links that a datagram crosses.
    #[serde(skip)]
    pub forward: Vec<usize>,
    /// Links that its answer crosses.
    #[serde(skip)]
    pub back: Vec<usize>,
    /// First datagram at or after this time.
    pub start: Time,
    /// None at or after this time.
    pub stop: Option<Time>,
}

/// The law of the times at which datagrams leave, counted from the start of the traffic.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Departures {
    /// Each when the integral of a rate, headers included, has reached it.
    Rate(Waveform, Spacing),
    /// The first at once, then one after each of these times.
    Every(Span),
}

impl Departures {
    /// The highest rate, headers included; zero for probes, which are few.
    pub fn peak(&self) -> Rate {
        match self {
            Self::Rate(waveform, _) => waveform.peak(),
            Self::Every(_) => Rate::default(),
        }
    }

    /// Mean rate while the source runs; `None` where it changes once and for all, and for probes.
    pub fn mean(&self) -> Option<Rate> {
        match self {
            Self::Rate(waveform, _) => waveform.mean(),
            Self::Every(_) => None,
        }
    }
}

impl CrossSpec {
    /// Datagrams at a rate over these links, evenly spaced, all the time.
    pub fn source(name: &str, packet: u16, rate: Waveform, forward: Vec<usize>) -> Self {
        Self {
            name: name.to_owned(),
            packet,
            departures: Departures::Rate(rate, Spacing::Even),
            answered: false,
            forward,
            back: Vec::new(),
            start: Time::ZERO,
            stop: None,
        }
    }

    /// Round-trip probes over the first links and back over the others, all the time.
    pub fn probes(
        name: &str,
        packet: u16,
        every: Span,
        forward: Vec<usize>,
        back: Vec<usize>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            packet,
            departures: Departures::Every(every),
            answered: true,
            forward,
            back,
            start: Time::ZERO,
            stop: None,
        }
    }

    /// Links of every way that it takes.
    pub fn routes(&self) -> impl Iterator<Item = &Vec<usize>> {
        let back = self.answered.then_some(&self.back);
        std::iter::once(&self.forward).chain(back)
    }
}

/// Numbers of cross traffic on the wire and in queues: from zero for what is one-way, and again for
/// what is answered.
#[derive(Clone, Copy, Debug)]
pub struct CrossNumbers {
    /// How many are one-way, and come first in the specification.
    pub one_way: usize,
    /// Length of the list in the specification.
    pub all: usize,
}

impl CrossNumbers {
    /// Index in the specification; `None`: there is no such number.
    pub fn index(self, answered: bool, number: usize) -> Option<usize> {
        let (from, to) = match answered {
            true => (self.one_way, self.all),
            false => (0, self.one_way),
        };
        Some(from + number).filter(|i| *i < to)
    }

    /// The number of what has this index.
    pub fn number(self, index: usize) -> usize {
        index.checked_sub(self.one_way).unwrap_or(index)
    }
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

impl Waveform {
    fn peak(&self) -> Rate {
        match self {
            Self::Steps { steps, .. } => steps.iter().map(|s| s.1).max().unwrap_or_default(),
            Self::Sine {
                mean, amplitude, ..
            } => Rate::from_bits_per_sec(
                mean.as_bits_per_sec()
                    .saturating_add(amplitude.as_bits_per_sec()),
            ),
            Self::OnOff { rate, .. } => *rate,
        }
    }

    fn mean(&self) -> Option<Rate> {
        match self {
            Self::Sine { mean, .. } => Some(*mean),
            Self::OnOff { rate, on, off } => {
                let part = on.as_secs_f64() / (*on + *off).as_secs_f64();
                Some(rounded(rate.as_bits_per_sec() as f64 * part))
            }
            Self::Steps { steps, .. } if steps.len() == 1 => Some(steps[0].1),
            Self::Steps { period: None, .. } => None,
            Self::Steps {
                steps,
                period: Some(period),
            } => {
                let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([*period]);
                let bits = steps.iter().zip(ends).map(|((at, rate), end)| {
                    rate.as_bits_per_sec() as f64 * (end - *at).as_secs_f64()
                });
                Some(rounded(bits.sum::<f64>() / period.as_secs_f64()))
            }
        }
    }
}

fn rounded(bits_per_sec: f64) -> Rate {
    Rate::from_bits_per_sec(bits_per_sec.round().min(1e18) as u64)
}

/// Distribution of the gaps between datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Spacing {
    /// Equal gaps.
    Even,
    /// Exponential gaps with the mean that the rate asks for.
    Poisson,
}
