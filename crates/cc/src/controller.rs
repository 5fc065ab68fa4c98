//! What a controller is: a pure function of the sender's events.
//!
//! A [`Controller`] never sees a packet, a clock or a generator: the sender digests each ACK into
//! an [`AckEvent`], each loss episode into a [`CongestionEvent`], and so on, and the controller
//! answers with a window and perhaps a pacing rate. Windows are real-valued segments (`w` in the
//! papers); the sender floors them when it sends.
//!
//! Events grow by a field from time to time. An endpoint therefore starts from a constructor and
//! sets what it knows; the constructor's values mean "not known" or "nothing of it":
//!
//! ```
//! use fullpipe_cc::AckEvent;
//! use fullpipe_units::{Span, Time};
//!
//! let mut ev = AckEvent::new(Time::from_nanos(5_000_000));
//! (ev.acked, ev.advanced, ev.cwnd_limited) = (2, true, true);
//! ev.rtt = Some(Span::from_millis(80));
//! assert_eq!(ev.delivered_now(), 2);
//! ```
//!
//! The order of calls is in the documentation of [`Controller`].

use fullpipe_units::{Rate, Span, Time};

use crate::classic::Setup;

/// Most variables that a controller reports.
pub const MOST_VARIABLES: usize = 10;

/// The interface between the endpoint and a congestion-control algorithm.
///
/// No method allocates, and none returns an error: an argument out of its range is a mistake of the
/// endpoint, which debug builds refuse with a panic. Windows are in segments.
///
/// Order of the calls:
///
/// 1. [`set_up`](Controller::set_up), where the controller was built without its [`Setup`].
/// 2. [`on_established`](Controller::on_established), when the handshake is done.
/// 3. [`on_idle`](Controller::on_idle) where window validation lowers the window, then
///    [`on_restart`](Controller::on_restart), whenever a segment leaves and nothing was in flight,
///    the first one included.
/// 4. For each ACK, after scoreboard, delivered count, RTT and rate sample:
///    [`on_delivery`](Controller::on_delivery); [`on_undo`](Controller::on_undo) if it shows that
///    a reduction was spurious; [`on_recovery_exit`](Controller::on_recovery_exit) if it ends a
///    recovery; [`on_lost`](Controller::on_lost) for each segment that it shows to be lost; at most
///    one [`on_congestion`](Controller::on_congestion) or
///    [`on_loss_in_reduction`](Controller::on_loss_in_reduction); [`on_ack`](Controller::on_ack).
/// 5. Between ACKs, when it happens: [`on_rto`](Controller::on_rto), `on_lost` before it;
///    `on_congestion` for a local drop; [`cap_window`](Controller::cap_window);
///    [`on_pacing`](Controller::on_pacing); [`on_mss_change`](Controller::on_mss_change).
#[cfg_attr(feature = "registry", ambassador::delegatable_trait)]
pub trait Controller {
    /// What the endpoint fixes, before everything else, for a controller that was built without it.
    fn set_up(&mut self, _setup: &Setup) {}

    /// An ACK's samples, before anything is judged lost or a recovery ends: [`AckEvent::phase`] is
    /// the phase that the ACK met, and what an ACK only decides later (`lost`, `flight`,
    /// `cwnd_limited`) is not filled in.
    fn on_delivery(&mut self, _ev: &AckEvent) {}

    /// One ACK (or a batch merged by the receiver's offload) that was new in any way.
    fn on_ack(&mut self, ev: &AckEvent);

    /// A loss, an ECN mark or a local drop. Called at most once per window of data, and once more
    /// for a lost retransmission (RFC 5681 section 4.3). Sets `ssthresh` and lowers the window at
    /// once; while the sender runs PRR the window it uses is PRR's, and this one applies again from
    /// recovery's end.
    fn on_congestion(&mut self, ev: &CongestionEvent);

    /// Losses are found in a window of data whose reduction began with a mark or a local drop; the
    /// window in force on the way down is `window`, segments. Nothing more is taken (RFC 3168
    /// section 6.1.2) but by a controller that takes less for a mark.
    fn on_loss_in_reduction(&mut self, _ev: &CongestionEvent, _window: f64) {}

    /// A segment was marked lost, before the [`CongestionEvent`] or timeout that follows from it
    /// and before the end of the ACK that showed it. Only for a controller that
    /// [reads rates](Controller::reads_rate).
    fn on_lost(&mut self, _ev: &LostSegment) {}

    /// The retransmission timer expired. From here until
    /// [`on_recovery_exit`](Controller::on_recovery_exit) slow start adds at most one segment per
    /// ACK, whatever [`Setup::slow_start_limit`] allows (RFC 3465 section 2.3).
    fn on_rto(&mut self, ev: &RtoEvent);

    /// The connection is open; [`RestartEvent::srtt`] is the handshake's sample, zero without a
    /// handshake.
    fn on_established(&mut self, _ev: &RestartEvent) {}

    /// A segment leaves and nothing was in flight. If the application had nothing to send before
    /// ([`RestartEvent::app_limited`]), growth that depends on time leaves out
    /// [`RestartEvent::idle`] (RFC 9438 section 5.8), once where [`Controller::on_idle`] reported
    /// the same pause; a window of one segment is no pause. A kernel module does what the kernel's
    /// does.
    fn on_restart(&mut self, _ev: &RestartEvent) {}

    /// Recovery ended, or what a timeout began: everything sent before the congestion event or the
    /// timeout has been acknowledged.
    fn on_recovery_exit(&mut self, now: Time);

    /// The last reduction was spurious (Eifel, DSACK, F-RTO): restore what the snapshot of that
    /// reduction holds.
    fn on_undo(&mut self, now: Time);

    /// The recovery under way, or what a timeout began, ends before its time, and gives nothing
    /// back: the window in force on the way down, segments, stays (Linux `tcp_undo_cwnd_reduction`
    /// without `prior_ssthresh`). A controller may stay with the window that it has chosen, as at
    /// any other end of a recovery.
    fn on_cut_short(&mut self, now: Time, _window: f64) {
        self.on_recovery_exit(now);
    }

    /// The recovery that [`Controller::on_undo`] or [`Controller::on_cut_short`] has just told of
    /// would have ended with this ACK anyway (Linux `tcp_end_cwnd_reduction` after
    /// `tcp_try_undo_recovery`: a module hears of that end, too).
    fn on_undone_at_end(&mut self, _now: Time) {}

    /// The sender's window validation changed the window after idle or application-limited time. An
    /// endpoint without window validation need not call it.
    fn on_idle(&mut self, ev: &IdleEvent);

    /// Leave start-up without a reduction: `ssthresh` becomes the present window (policy
    /// `exit-slow-start` of a local drop).
    fn exit_start_up(&mut self, now: Time);

    /// The sender's segment size changed; `ratio` is old over new, finite and above 0.
    fn on_mss_change(&mut self, ratio: f64);

    /// The endpoint, which did not pace ([`Setup::paced`]), does so from now on. It never stops: as
    /// in Linux (`sk_pacing_status`) a ceiling that is lifted leaves the pacing.
    fn on_pacing(&mut self) {}

    /// The endpoint's cap of the window is this from now on, segments; infinite for none, below 1
    /// as 1. An endpoint that never changes it need not be answered.
    fn cap_window(&mut self, _most: f64) {}

    /// From now on this controller runs a connection that another one ran until now: the first
    /// event of a controller that was built for a running flow. It keeps window and threshold and
    /// learns the rest anew, as Linux does it (`tcp_reinit_congestion_control`).
    fn take_over(&mut self, ev: &TakeOver) {
        self.on_established(&ev.restart);
    }

    /// Congestion window, segments, at least 1.
    fn window(&self) -> f64;

    /// Slow-start threshold, segments; infinite before the first reduction.
    fn ssthresh(&self) -> f64;

    /// True while the window is below `ssthresh`.
    fn in_start_up(&self) -> bool {
        self.window() < self.ssthresh()
    }

    /// The controller's own pacing rate on the wire's payload, or `None` to let the sender derive
    /// one from the window.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// True if [`Controller::pacing_rate`] may be something: a sender need not ask the others for
    /// every segment.
    fn sets_rate(&self) -> bool {
        true
    }

    /// True if the controller reads [`AckEvent::rate`]: a sender may leave it out for those that do
    /// not, and with it 24 bytes per segment in flight.
    fn reads_rate(&self) -> bool {
        true
    }

    /// True if the controller reads [`AckEvent::owd`]: a sender may leave it out for those that do
    /// not.
    fn reads_owd(&self) -> bool {
        true
    }

    /// True if the controller lives on marks (Linux `TCP_CONG_NEEDS_ECN`): a sender makes every
    /// segment ECN-capable, retransmissions too, and asks for a receiver that echoes each change of
    /// the marks (RFC 8257 section 3.2).
    fn needs_ecn(&self) -> bool {
        false
    }

    /// True if [`Controller::window`] is the window in force during a reduction too: the sender
    /// runs no PRR (`cong_control` in Linux).
    fn owns_window(&self) -> bool {
        false
    }

    /// True while the controller holds the sender back on purpose: the sender marks the rates of
    /// what is in flight application-limited. Asked after each ACK of a controller that
    /// [reads rates](Controller::reads_rate).
    fn limits_itself(&self) -> bool {
        false
    }

    /// The state of a controller that has named ones, as its variable `state` numbers them: every
    /// change of it is on the record of a trace, whatever the decimation.
    fn state(&self) -> Option<u8> {
        None
    }

    /// Names and values of the algorithm's own variables, for traces: the same names in the same
    /// order at any time, at most [`MOST_VARIABLES`], NaN for what is not defined at the moment.
    fn report(&self, visit: &mut dyn FnMut(&'static str, f64));
}

/// Panics in debug builds unless `ratio` is finite and above zero.
#[track_caller]
pub(crate) fn assert_ratio(ratio: f64) {
    debug_assert!(
        ratio > 0.0 && ratio.is_finite(),
        "segment size changed by a factor of {ratio}, which is not finite and above 0"
    );
}

/// What one ACK told the sender. Counts are segments; `n` of the formulas is
/// [`AckEvent::delivered_now`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AckEvent {
    /// Time the ACK was processed.
    pub now: Time,
    /// Segments newly acknowledged by the cumulative part that had not been SACKed before.
    pub acked: u64,
    /// Segments newly SACKed.
    pub sacked: u64,
    /// Segments this ACK made the sender mark lost.
    pub lost: u64,
    /// ACK packets merged into this event, at least 1; read by [`Count::Acks`].
    pub acks: u64,
    /// The ACK moved `snd_una`.
    pub advanced: bool,
    /// RTT sample of the most recently sent segment that this ACK covers, if unambiguous.
    pub rtt: Option<Span>,
    /// Smoothed RTT (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Smallest RTT seen; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// One-way delay of the acknowledged segment from sender to receiver, the wait of a delayed
    /// ACK included: its growth over the smallest seen is measured, the smallest itself may be a
    /// guess, because the hosts' clocks need not agree (`fullpipe-flow`: half of the smallest RTT;
    /// whole milliseconds). `None` where the endpoint cannot tell, as without time stamps; TCP-LP
    /// and LEDBAT then read the RTT. Filled in for a controller that
    /// [reads it](Controller::reads_owd).
    pub owd: Option<Span>,
    /// Segments in the network (`pipe`) before this ACK.
    pub prior_flight: u64,
    /// Segments in the network (`pipe`) after this ACK.
    pub flight: u64,
    /// Time stamps of the ACK.
    pub stamps: Stamps,
    /// Segments delivered since the start, this ACK included.
    pub delivered: u64,
    /// Delivery-rate sample, if this ACK yields one: what a model-based controller lives on.
    pub rate: Option<RateSample>,
    /// When pacing lets the next segment leave: [`AckEvent::now`] or before if at once. Filled in
    /// for a controller that [reads rates](Controller::reads_rate).
    pub next_send: Time,
    /// The window was what held the sender back: growth is allowed (RFC 9002 section 7.8).
    pub cwnd_limited: bool,
    /// The sample was taken while the application had nothing to send.
    pub app_limited: bool,
    /// The ACK is but for its number what the one before it was: no SACK block, no ECE, the same
    /// window. Linux's header prediction takes such ACKs on its fast path, duplicates too.
    pub predicted: bool,
    /// The ACK carries ECE (RFC 3168).
    pub ece: bool,
    /// Packet-timed rounds since the start.
    pub round: u64,
    /// This ACK is the first of a new round: the data outstanding at the last round's start is
    /// acknowledged.
    pub round_start: bool,
    /// Segments arrive so far out of order that the window grows on SACKs too (Linux
    /// `tcp_may_raise_cwnd`).
    pub grows_out_of_order: bool,
    /// Duplicates that this ACK reports and that a retransmission explains; Linux counts them as
    /// delivered.
    pub duplicates: u64,
    /// The sender's state while this ACK is processed.
    pub phase: Phase,
    /// First unacknowledged segment, after this ACK.
    pub snd_una: u64,
    /// Next new segment.
    pub snd_nxt: u64,
}

impl AckEvent {
    /// An ACK that tells nothing yet: no segment, no sample, phase [`Phase::Open`].
    #[inline]
    pub const fn new(now: Time) -> Self {
        Self {
            now,
            acked: 0,
            sacked: 0,
            lost: 0,
            acks: 1,
            advanced: false,
            rtt: None,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
            owd: None,
            prior_flight: 0,
            flight: 0,
            stamps: Stamps {
                value_ms: 0,
                echo: Time::ZERO,
            },
            delivered: 0,
            rate: None,
            next_send: Time::ZERO,
            cwnd_limited: false,
            app_limited: false,
            predicted: false,
            ece: false,
            round: 0,
            round_start: false,
            grows_out_of_order: false,
            duplicates: 0,
            phase: Phase::Open,
            snd_una: 0,
            snd_nxt: 0,
        }
    }

    /// Segments newly delivered: `n` in the formulas.
    pub fn delivered_now(&self) -> u64 {
        self.acked + self.sacked
    }

    /// True where a window law may grow: on an ACK that advances (RFC 5681 section 3.1; a SACK
    /// alone does not, section 3.2), and not during recovery or a reduction, which the sender owns
    /// (PRR).
    pub fn may_grow(&self) -> bool {
        self.advanced && self.cwnd_limited && !matches!(self.phase, Phase::Recovery | Phase::Cwr)
    }
}

/// Time stamps of an ACK (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// TSval: the receiver's clock when the ACK left, milliseconds.
    pub value_ms: u32,
    /// TSecr: the sender's clock when the acknowledged segment left.
    pub echo: Time,
}

/// The sender's recovery state (RFC 5681, RFC 6675, RFC 3168; the names are Linux's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Phase {
    /// Nothing unusual.
    Open,
    /// Duplicate ACKs or SACKs seen, nothing declared lost.
    Disorder,
    /// Reducing after an ECN mark or a local drop, nothing to retransmit.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// A delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation; RFC text: BBR draft section
/// 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RateSample {
    /// Segments delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the ACK interval.
    pub interval: Span,
    /// `delivered` counter when the sampled segment was sent.
    pub prior_delivered: u64,
    /// The sampled segment was sent while the application limited the sender.
    pub app_limited: bool,
    /// Segments in the network right after the sampled one left.
    pub tx_in_flight: u64,
    /// Segments marked lost since the sampled one left.
    pub lost: u64,
}

impl RateSample {
    /// `delivered` segments over `interval`, the path being what limited them.
    #[inline]
    pub const fn new(delivered: u64, interval: Span) -> Self {
        Self {
            delivered,
            interval,
            prior_delivered: 0,
            app_limited: false,
            tx_in_flight: 0,
            lost: 0,
        }
    }

    /// Segments per second.
    pub fn per_second(&self) -> f64 {
        self.delivered as f64 / self.interval.as_secs_f64()
    }
}

/// Cause of a congestion event, in the network or at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CongestionKind {
    /// A segment was lost in the network.
    Loss,
    /// A congestion mark came back (RFC 3168).
    Ecn,
    /// The sender's own interface queue refused a segment ("sendstall").
    LocalDrop,
}

/// At most one per window of data, plus one per lost retransmission.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CongestionEvent {
    /// Time of detection.
    pub now: Time,
    /// Cause: a lost segment, an ECN mark or a local stall.
    pub kind: CongestionKind,
    /// False for a lost retransmission inside a recovery that already reduced the window.
    pub first_in_window: bool,
    /// Segments marked lost so far in this episode.
    pub lost: u64,
    /// FlightSize before the loss marks, segments, segments of Limited Transmit excluded (RFC 5681
    /// eq. 4).
    pub flight: u64,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Smallest RTT seen.
    pub min_rtt: Span,
}

impl CongestionEvent {
    /// The first event of a window of `flight` segments.
    pub const fn new(now: Time, kind: CongestionKind, flight: u64) -> Self {
        Self {
            now,
            kind,
            first_in_window: true,
            lost: 0,
            flight,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
        }
    }
}

/// A segment was marked lost.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LostSegment {
    /// Time of detection.
    pub now: Time,
    /// Number of the segment, not of its first byte.
    pub seq: u64,
    /// Segments in the network right after it left for the last time.
    pub tx_in_flight: u64,
    /// Segments marked lost since then, this one included.
    pub lost: u64,
    /// Segments delivered since the start.
    pub delivered: u64,
    /// It was sent while the application limited the sender.
    pub app_limited: bool,
}

impl LostSegment {
    /// Segment `seq`, the only loss since it left as the last of `tx_in_flight` segments.
    pub const fn new(now: Time, seq: u64, tx_in_flight: u64) -> Self {
        Self {
            now,
            seq,
            tx_in_flight,
            lost: 1,
            delivered: 0,
            app_limited: false,
        }
    }
}

/// The retransmission timer expired (RFC 6298 section 5, RFC 5681 section 3.1).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RtoEvent {
    /// Time of expiry.
    pub now: Time,
    /// First expiry for this segment: only then `ssthresh` changes.
    pub first: bool,
    /// A recovery is under way that [`Controller::on_undo`] would take back as a whole: the
    /// snapshot from its start stays (RFC 3522 section 3.2).
    pub nested: bool,
    /// FlightSize, segments.
    pub flight: u64,
    /// Segments still taken to be in the network after everything old was marked lost (RFC 8985
    /// section 6.3).
    pub pipe: u64,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Smallest RTT seen.
    pub min_rtt: Span,
}

impl RtoEvent {
    /// The first expiry for the oldest of `flight` segments; none of them is in the network any
    /// more.
    pub const fn new(now: Time, flight: u64) -> Self {
        Self {
            now,
            first: true,
            nested: false,
            flight,
            pipe: 0,
            srtt: Span::ZERO,
            min_rtt: Span::MAX,
        }
    }
}

/// Transmission begins with nothing in flight: the first segment of the connection, or the first
/// after all was acknowledged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RestartEvent {
    /// Time of the transmission.
    pub now: Time,
    /// Time since the last transmission.
    pub idle: Span,
    /// Smoothed RTT; zero before the first sample.
    pub srtt: Span,
    /// First unacknowledged segment.
    pub snd_una: u64,
    /// Next new segment.
    pub snd_nxt: u64,
    /// The application had nothing to send before.
    pub app_limited: bool,
}

impl RestartEvent {
    /// The application paused for longer than a round trip: what was measured before says nothing
    /// of the path now.
    pub fn ends_a_pause(&self) -> bool {
        self.app_limited && self.idle > self.srtt
    }

    /// A transmission without a pause before it and without an RTT sample.
    pub const fn new(now: Time) -> Self {
        Self {
            now,
            idle: Span::ZERO,
            srtt: Span::ZERO,
            snd_una: 0,
            snd_nxt: 0,
            app_limited: false,
        }
    }
}

/// A connection changes its controller; what the one before leaves behind.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TakeOver {
    /// The connection now.
    pub restart: RestartEvent,
    /// Window that the controller before had set, segments.
    pub window: f64,
    /// Its slow-start threshold, segments; infinite before the first reduction.
    pub ssthresh: f64,
    /// The sender's state.
    pub phase: Phase,
}

impl TakeOver {
    /// Of a connection in which nothing is unusual.
    pub const fn new(restart: RestartEvent, window: f64, ssthresh: f64) -> Self {
        Self {
            restart,
            window,
            ssthresh,
            phase: Phase::Open,
        }
    }
}

/// Window validation's verdict after idle or application-limited time (RFC 5681 4.1, RFC 2861, RFC
/// 7661).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct IdleEvent {
    /// Time of the restart.
    pub now: Time,
    /// Time since the last transmission.
    pub idle: Span,
    /// New window, segments.
    pub window: f64,
    /// New threshold, segments.
    pub ssthresh: f64,
}

impl IdleEvent {
    /// The window and the threshold after a pause of `idle`, segments.
    pub const fn new(now: Time, idle: Span, window: f64, ssthresh: f64) -> Self {
        Self {
            now,
            idle,
            window,
            ssthresh,
        }
    }
}

/// How an ACK is counted by an increase law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Count {
    /// Every newly delivered segment counts (byte counting, RFC 3465 and RFC 5681).
    #[default]
    Segments,
    /// Every ACK that advances counts one, however much it covers (RFC 2581 form, ns-2, Linux 2.4),
    /// except under a law with a count of its own
    /// ([`WindowLaw::counts_segments`](crate::WindowLaw::counts_segments)).
    Acks,
}

impl Count {
    /// Effective segments `n_eff` of one ACK.
    pub fn of(self, ev: &AckEvent) -> f64 {
        match self {
            // Signed, which is one instruction.
            Count::Segments => ev.delivered_now() as i64 as f64,
            Count::Acks if ev.advanced => ev.acks as i64 as f64,
            Count::Acks => 0.0,
        }
    }
}
