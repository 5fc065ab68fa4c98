//! What a run remembers of a flow: at the sender rounds, RTT distribution, window statistics and
//! time series, at the receiver interval samples. The two halves may live on two hosts.

use fullpipe_cc::{Controller, Stack};
use fullpipe_flow::{Episode, EpisodeKind, ReceiverCounts, Sender, TraceSink};
use fullpipe_units::{Span, Time};

use crate::histogram::Histogram;
use crate::looks::Looks;
use crate::outcome::{Extent, Round, Series};
use crate::rows::{Between, Stream};
use crate::spec::Trace;

/// Record of a flow at its sender.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct SenderRecord {
    /// RTT samples of the measured part.
    pub rtt: Histogram,
    /// Time-weighted mean window of the measured part, segments.
    pub cwnd_mean: f64,
    /// Largest window of the measured part, segments.
    pub cwnd_max: f64,
    /// One row per packet-timed round.
    pub rounds: Vec<Round>,
    /// Every reduction, timeout and undo.
    pub episodes: Vec<Episode>,
    /// Every time the window reached its clamp, and the window then, segments.
    pub at_cap: Vec<(Time, f64)>,
    /// What the controller's own variables were, whatever the series holds.
    #[serde(with = "crate::travel")]
    pub variables: Vec<(&'static str, Extent)>,
    /// Time series, decimated or full.
    pub series: Series,
    /// Stacks that took over while the flow ran: when, and their spelling. Known where it sends.
    #[serde(skip)]
    pub stacks: Vec<(Time, String)>,
    /// What the kernel showed of it, where it sends; empty where its TCP is not a kernel's.
    #[serde(skip)]
    pub looks: Looks,
    /// Segments marked lost and when, of a run that is captured, where it sends.
    #[serde(skip)]
    pub verdicts: Vec<(Time, u64)>,
}

/// No event waits for a row.
pub const NOTHING: Time = Time::MAX;

/// What is remembered at a flow's sender. What every ACK touches comes first.
#[derive(Debug)]
#[repr(C)]
pub struct SenderRecorder {
    rtt: Histogram,
    rtt_samples: u64,
    window: f64,
    window_area: f64,
    window_since: Time,
    window_max: f64,
    /// The window's clamp: the moment it is reached is always on the record.
    cap: f64,
    round: u64,
    /// Before this no event makes a row, here or in a stream.
    look_at: Time,
    /// When the latest event came that no row tells of yet; [`NOTHING`]: there is none.
    waiting: Time,
    next_row: Time,
    /// The controller's state at the latest ACK, if it has any and not every ACK makes a row.
    state: Option<u8>,
    /// Rows that leave at once.
    stream: Option<Box<Stream>>,
    between: Between,
    /// Every how many rounds there is a row, and how many rows there may be before it doubles.
    round_step: u64,
    most: usize,
    rounds: Vec<Round>,
    variables: Vec<(&'static str, Extent)>,
    episodes: Vec<Episode>,
    at_cap: Vec<(Time, f64)>,
    window_from: Time,
    /// Mean window of the measured part up to the completion.
    window_mean: Option<f64>,
    step: Span,
    ack_delay: Span,
    series: Series,
}

impl SenderRecorder {
    /// For a flow that starts at `start` and whose window is clamped to `cap` segments.
    pub fn new(trace: Trace, start: Time, cap: f64) -> Self {
        let (step, next_row) = match trace {
            Trace::Off => (Span::MAX, Time::MAX),
            Trace::Every(step) => (step, start),
            Trace::Full => (Span::ZERO, start),
        };
        Self {
            rtt: Histogram::default(),
            rtt_samples: 0,
            rounds: Vec::new(),
            round: 0,
            round_step: 1,
            most: usize::MAX,
            variables: Vec::new(),
            episodes: Vec::new(),
            at_cap: Vec::new(),
            window_area: 0.0,
            window_since: start,
            window_from: start,
            window: 0.0,
            window_mean: None,
            window_max: 0.0,
            cap,
            step,
            next_row,
            look_at: next_row,
            waiting: NOTHING,
            between: Between::new(),
            ack_delay: Span::MAX,
            state: None,
            series: Series::default(),
            stream: None,
        }
    }

    /// At most `most` rounds and as many episodes, for runs that last billions of round trips:
    /// whenever there are more rounds, every second row goes and half as many come from then on; of
    /// episodes the first are kept.
    pub fn limit_rows(&mut self, most: usize) {
        self.most = most.max(2);
    }

    /// Rounds or episodes that are kept, whichever are more.
    pub fn rows(&self) -> usize {
        self.rounds.len().max(self.episodes.len())
    }

    /// Rows bear this index of the flow.
    #[must_use]
    pub fn with_flow(mut self, index: usize) -> Self {
        self.between.flow = u32::try_from(index).unwrap_or(u32::MAX);
        self
    }

    /// The controller begins in this state; every change of it makes a row.
    pub fn watch_state(&mut self, first: Option<u8>) {
        self.state = first.filter(|_| self.step != Span::MAX);
    }

    /// Rows go to `sink` while the run lasts, whatever the series holds: one per `step` (zero: one
    /// per ACK), and one at every episode and change of phase. To be called after
    /// [`SenderRecorder::with_flow`].
    pub fn stream_to(&mut self, sink: Box<dyn TraceSink>, step: Span) {
        self.stream = Some(Box::new(Stream::new(sink, step, self.between.flow)));
        self.look_at = Time::ZERO;
    }

    /// The receiver says how long it held the ACK that [`SenderRecorder::on_sender`] is about.
    pub fn on_ack_delay(&mut self, held: Span) {
        self.ack_delay = held;
    }

    /// The measured part begins: what came before is dropped from means and percentiles.
    pub fn begin_measurement(&mut self, now: Time) {
        self.rtt = Histogram::default();
        self.window_area = 0.0;
        self.window_mean = None;
        self.window_since = now.max(self.window_from);
        self.window_from = self.window_since;
        self.window_max = self.window;
    }

    /// The last segment is acknowledged: the window of an idle connection is of no interest.
    #[cold]
    pub fn complete(&mut self, now: Time) {
        self.window_mean = Some(self.mean_window(now));
        if self.step != Span::MAX {
            self.force_row(now);
        }
    }

    fn force_row(&mut self, now: Time) {
        (self.next_row, self.look_at) = (now, now);
    }

    fn mean_window(&self, to: Time) -> f64 {
        let rest = to.saturating_since(self.window_since).as_nanos() as f64;
        let span = to.saturating_since(self.window_from).as_nanos();
        if span > 0 {
            (self.window_area + self.window * rest) / span as f64
        } else {
            self.window
        }
    }

    /// The sender is about to process something. What waited in a step that is over goes on the
    /// record as it was until now, with the time since which it was so: the step's last event may
    /// lie long before this one. Returns until when this need not be asked again.
    #[cold]
    #[inline(never)]
    pub fn end_step(&mut self, now: Time, sender: &Sender<Stack>) -> Time {
        if self.waiting != NOTHING && now >= self.next_row {
            self.tell_waiting(sender);
            self.next_row = now + self.step;
            self.look_at = self.next_look();
        }
        let of_stream = self.stream.as_mut().map(|stream| {
            stream.end_step(now, self.ack_delay, sender);
            stream.step_ends()
        });
        // Nothing waits where every event has a row.
        let own = if self.step > Span::ZERO {
            self.next_row
        } else {
            Time::MAX
        };
        own.min(of_stream.unwrap_or(Time::MAX))
    }

    fn tell_waiting(&mut self, sender: &Sender<Stack>) {
        // What has left since may have moved PRR's window.
        self.between.window(sender.cwnd());
        self.row(self.waiting, sender);
    }

    /// A stream looks at every event.
    fn next_look(&self) -> Time {
        match self.stream {
            None => self.next_row,
            Some(_) => Time::ZERO,
        }
    }

    /// The sender has processed an ACK or a timeout.
    #[inline(always)] // once per ACK: what it reads of the sender is at hand there
    pub fn on_sender(&mut self, now: Time, sender: &mut Sender<Stack>) {
        let samples = sender.rtt().samples();
        if samples != self.rtt_samples {
            self.rtt_samples = samples;
            self.rtt.record(sender.rtt().latest());
        }
        let w = sender.cwnd();
        // Signed, which is one instruction.
        let lasted = (now - self.window_since).as_nanos() as i64;
        self.window_area += self.window * lasted as f64;
        self.window_since = now;
        if w >= self.cap && self.window < self.cap {
            self.note_cap(now, w);
        }
        self.window = w;
        if w > self.window_max {
            self.window_max = w;
        }
        self.between.window(w);
        if sender.round() != self.round {
            self.round = sender.round();
            if self.round.is_multiple_of(self.round_step) {
                self.note_round(now, sender);
            }
        }
        if sender.has_log() {
            self.note_episodes(now, sender);
        }
        if self.state.is_some() {
            self.note_state(now, sender);
        }
        if now >= self.look_at {
            self.look(now, sender);
        } else {
            self.waiting = now;
        }
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, now: Time, sender: &Sender<Stack>) {
        if now >= self.next_row {
            self.row(now, sender);
        } else {
            self.waiting = now;
        }
        if let Some(stream) = &mut self.stream {
            stream.on_sender(now, self.ack_delay, sender);
        }
        self.look_at = self.next_look();
    }

    #[cold]
    fn note_cap(&mut self, now: Time, window: f64) {
        if self.at_cap.len() < self.most {
            self.at_cap.push((now, window));
        }
        if self.step != Span::MAX && self.episodes.len() < self.most {
            self.force_row(now);
        }
    }

    #[inline]
    fn note_round(&mut self, now: Time, sender: &Sender<Stack>) {
        self.rounds.push(Round {
            start: now,
            delivered: sender.delivered(),
            cwnd: self.window,
        });
        self.note_variables(sender);
        if self.rounds.len() > self.most {
            self.thin_rounds();
        }
    }

    fn note_variables(&mut self, sender: &Sender<Stack>) {
        let (known, mut i) = (&mut self.variables, 0);
        sender.controller().report(&mut |name, value| {
            // A controller reports in one order, but not always everything.
            let here = known.get(i).is_some_and(|(n, _)| *n == name);
            let at = match here.then_some(i) {
                None => known.iter().position(|(n, _)| *n == name),
                found => found,
            };
            let at = at.unwrap_or_else(|| {
                known.push((name, Extent::default()));
                known.len() - 1
            });
            known[at].1.take(value);
            i = at + 1;
        });
    }

    /// The window is clamped to so many segments from now on.
    pub fn cap_window(&mut self, cap: f64) {
        self.cap = cap;
    }

    #[cold]
    fn thin_rounds(&mut self) {
        let mut i = 0;
        self.rounds.retain(|_| {
            i += 1;
            i % 2 == 0
        });
        self.round_step *= 2;
    }

    #[cold]
    fn note_episodes(&mut self, now: Time, sender: &mut Sender<Stack>) {
        for e in sender.drain_log() {
            let event = e.kind.into();
            let stream = self.stream.as_mut().map(|s| &mut s.between);
            for between in std::iter::once(&mut self.between).chain(stream) {
                between.high = between.high.max(e.before);
                between.events = between.events.with(event);
            }
            if matches!(e.kind, EpisodeKind::Congestion(_) | EpisodeKind::Timeout) {
                self.window_max = self.window_max.max(e.before);
            }
            if self.episodes.len() < self.most {
                self.episodes.push(e);
            }
        }
        self.note_variables(sender);
        if self.step != Span::MAX && self.episodes.len() < self.most {
            // An episode is always on the record, whatever the decimation.
            self.force_row(now);
        }
    }

    fn note_state(&mut self, now: Time, sender: &Sender<Stack>) {
        let state = sender.controller().state();
        if state != self.state && self.series.rows.len() < self.most {
            self.force_row(now);
        }
        self.state = state;
    }

    #[cold]
    fn row(&mut self, now: Time, sender: &Sender<Stack>) {
        self.next_row = now + self.step;
        self.waiting = NOTHING;
        let row = self.between.row(now, self.ack_delay, sender);
        let s = &mut self.series;
        s.rows.push(row);
        let rows = s.rows.len();
        sender.controller().report(&mut |name, value| {
            let column = match s.variables.iter().position(|(n, _)| *n == name) {
                Some(i) => &mut s.variables[i].1,
                None => {
                    s.variables.push((name, Vec::new()));
                    // Just pushed.
                    let last = s.variables.len() - 1;
                    &mut s.variables[last].1
                }
            };
            column.resize(rows - 1, f64::NAN);
            column.push(value);
        });
    }

    /// The run ends: hands over what is remembered, the columns squared.
    pub fn finish(&mut self, end: Time, sender: &Sender<Stack>) -> SenderRecord {
        self.note_variables(sender);
        if self.waiting != NOTHING && self.step != Span::MAX {
            self.tell_waiting(sender);
        }
        if let Some(stream) = &mut self.stream {
            stream.finish(self.ack_delay, sender);
        }
        let rows = self.series.rows.len();
        for (_, column) in &mut self.series.variables {
            column.resize(rows, f64::NAN);
        }
        SenderRecord {
            rtt: std::mem::take(&mut self.rtt),
            cwnd_mean: self.window_mean.unwrap_or_else(|| self.mean_window(end)),
            cwnd_max: self.window_max,
            rounds: std::mem::take(&mut self.rounds),
            episodes: std::mem::take(&mut self.episodes),
            at_cap: std::mem::take(&mut self.at_cap),
            variables: std::mem::take(&mut self.variables),
            series: std::mem::take(&mut self.series),
            stacks: Vec::new(),
            looks: Looks::default(),
            verdicts: sender.verdicts().to_vec(),
        }
    }
}

/// What is remembered at a flow's receiver: segments per interval.
#[derive(Clone, Debug)]
pub struct ArrivalRecorder {
    interval_end: Time,
    /// In a place of its own: every arrival reads the other.
    closed: Box<Intervals>,
}

/// The intervals that have ended.
#[derive(Clone, Debug)]
struct Intervals {
    /// Length of one.
    length: Span,
    /// What was counted when the last one ended.
    counts: ReceiverCounts,
    record: ArrivalRecord,
}

/// Segments per interval since time zero; the last interval may be shorter.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ArrivalRecord {
    /// First deliveries.
    pub delivered: Vec<u64>,
    /// All arrivals.
    pub arrived: Vec<u64>,
}

impl ArrivalRecorder {
    /// With samples as wide as `interval`.
    pub fn new(interval: Span) -> Self {
        Self {
            interval_end: Time::ZERO + interval,
            closed: Box::new(Intervals {
                length: interval,
                counts: ReceiverCounts::default(),
                record: ArrivalRecord::default(),
            }),
        }
    }

    /// A packet arrives: closes every interval that ended before.
    #[inline]
    pub fn on_arrival(&mut self, now: Time, counts: &ReceiverCounts) {
        if now >= self.interval_end {
            self.close_intervals(now, counts);
        }
    }

    #[cold]
    fn close_intervals(&mut self, now: Time, counts: &ReceiverCounts) {
        while now >= self.interval_end {
            self.closed.push(counts);
            self.interval_end += self.closed.length;
        }
    }

    /// The run ends: closes the open interval.
    pub fn finish(mut self, end: Time, counts: &ReceiverCounts) -> ArrivalRecord {
        self.close_intervals(end, counts);
        let closed = &mut self.closed;
        if end > self.interval_end - closed.length {
            closed.push(counts);
        } else if let (Some(delivered), Some(arrived)) = (
            closed.record.delivered.last_mut(),
            closed.record.arrived.last_mut(),
        ) {
            // What came at the end itself belongs to the last whole interval.
            *delivered += counts.delivered - closed.counts.delivered;
            *arrived += counts.arrived - closed.counts.arrived;
        }
        self.closed.record
    }
}

impl Intervals {
    fn push(&mut self, counts: &ReceiverCounts) {
        let (delivered, arrived) = (&mut self.record.delivered, &mut self.record.arrived);
        delivered.push(counts.delivered - self.counts.delivered);
        arrived.push(counts.arrived - self.counts.arrived);
        self.counts = *counts;
    }
}
