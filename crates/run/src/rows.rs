//! How a sender's state becomes rows of a trace: what happened since the row before, and rows that
//! leave while the run goes on.

use fullpipe_cc::{Controller, MOST_VARIABLES, Phase, Stack};
use fullpipe_flow::{Events, Sender, TraceRow, TraceSink};
use fullpipe_units::{Span, Time};

use crate::recorder::NOTHING;

/// What lies between two rows of a flow.
#[derive(Debug)]
pub struct Between {
    /// Index of the flow.
    pub flow: u32,
    /// Extremes of the window.
    pub low: f64,
    pub high: f64,
    /// Episodes.
    pub events: Events,
    /// Tail loss probes until the row before.
    probes: u64,
    /// That row, in a place of its own: every ACK reads the rest.
    before: Box<TraceRow>,
}

impl Between {
    pub fn new() -> Self {
        Self {
            flow: 0,
            low: f64::INFINITY,
            high: 0.0,
            events: Events::NONE,
            probes: 0,
            before: Box::default(),
        }
    }

    /// The window is this now.
    #[inline]
    pub fn window(&mut self, w: f64) {
        // A window is a number: `min` and `max` would ask, at every ACK.
        if w < self.low {
            self.low = w;
        }
        if w > self.high {
            self.high = w;
        }
    }

    /// A row, and a new beginning.
    pub fn row(&mut self, now: Time, ack_delay: Span, sender: &Sender<Stack>) -> TraceRow {
        // One that is due leaves at this instant: its event is not to wait for the next ACK.
        let probes = sender.counts().probes + u64::from(sender.probe_is_due());
        let (row, before) = (TraceRow::of(now, self.flow, sender), &self.before);
        let events = self
            .events
            .with_if(
                row.snd_una > before.snd_una || row.delivered > before.delivered,
                Events::ACK,
            )
            .with_if(row.retransmits > before.retransmits, Events::RETRANSMIT)
            .with_if(row.local_stalls > before.local_stalls, Events::STALL)
            .with_if(probes > self.probes, Events::PROBE);
        let row = TraceRow {
            cwnd_min: self.low,
            cwnd_max: self.high,
            ack_delay,
            events,
            ..row
        };
        self.low = row.cwnd;
        self.high = row.cwnd;
        self.events = Events::NONE;
        self.probes = probes;
        *self.before = row;
        row
    }
}

/// Rows of a flow that leave while the run goes on: at every change of its phase or of its
/// controller's state, at every episode, and once per step.
#[derive(Debug)]
pub struct Stream {
    sink: Box<dyn TraceSink>,
    step: Span,
    next: Time,
    /// When the latest event came that no row tells of yet.
    waiting: Time,
    phase: Phase,
    state: Option<u8>,
    /// Of the variables, in their order; of the stack that the flow began with, as are the columns.
    names: Vec<&'static str>,
    pub between: Between,
}

impl Stream {
    pub fn new(sink: Box<dyn TraceSink>, step: Span, flow: u32) -> Self {
        Self {
            sink,
            step,
            next: Time::ZERO,
            waiting: NOTHING,
            phase: Phase::Open,
            state: None,
            names: Vec::new(),
            between: Between {
                flow,
                ..Between::new()
            },
        }
    }

    /// The sender has processed an ACK or a timeout.
    #[inline(never)] // few flows are streamed
    pub fn on_sender(&mut self, now: Time, ack_delay: Span, sender: &Sender<Stack>) {
        self.between.window(sender.cwnd());
        let (phase, state) = (sender.phase(), sender.controller().state());
        let changed = (phase, state) != (self.phase, self.state);
        if now < self.next && !changed && self.between.events.is_empty() {
            self.waiting = now;
            return;
        }
        self.next = now + self.step;
        (self.phase, self.state) = (phase, state);
        self.put(now, ack_delay, sender);
    }

    /// Until then nothing that waits is to leave; never, where every event has a row.
    pub fn step_ends(&self) -> Time {
        match self.step {
            Span::ZERO => Time::MAX,
            _ => self.next,
        }
    }

    /// See [`crate::SenderRecorder::end_step`].
    pub fn end_step(&mut self, now: Time, ack_delay: Span, sender: &Sender<Stack>) {
        if now >= self.next && self.waiting != NOTHING {
            self.finish(ack_delay, sender);
            self.next = now + self.step;
        }
    }

    /// What waits leaves, as it is.
    pub fn finish(&mut self, ack_delay: Span, sender: &Sender<Stack>) {
        if self.waiting != NOTHING {
            self.between.window(sender.cwnd());
            self.put(self.waiting, ack_delay, sender);
        }
    }

    fn put(&mut self, now: Time, ack_delay: Span, sender: &Sender<Stack>) {
        self.waiting = NOTHING;
        let row = self.between.row(now, ack_delay, sender);
        let (mut variables, names) = ([f64::NAN; MOST_VARIABLES], &mut self.names);
        if names.is_empty() {
            sender.controller().report(&mut |name, _| names.push(name));
            names.truncate(MOST_VARIABLES);
        }
        let mut next = 0;
        sender.controller().report(&mut |name, value| {
            // Another stack may have taken over: what it has in common stays in its column.
            let here = names.get(next).is_some_and(|n| *n == name);
            let place = here.then_some(next);
            if let Some(place) = place.or_else(|| names.iter().position(|n| *n == name)) {
                variables[place] = value;
                next = place + 1;
            }
        });
        self.sink.put(&row, &variables[..names.len()]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use fullpipe_cc::{Setup, Stack, StackSpec};
    use fullpipe_flow::{Change, Preset, SenderConfig};

    use super::*;
    use crate::{SenderRecorder, Trace};

    /// A row, and its variables.
    type Rows = Vec<(TraceRow, Vec<f64>)>;

    #[derive(Debug, Default, Clone)]
    struct Kept(Arc<Mutex<Rows>>);

    impl TraceSink for Kept {
        fn put(&mut self, row: &TraceRow, variables: &[f64]) {
            self.0.lock().unwrap().push((*row, variables.to_vec()));
        }
    }

    /// HighSpeed TCP's variables are not in the columns of CUBIC's, and CUBIC's own return.
    #[test]
    fn a_variable_of_another_stack_is_in_no_column_of_the_first() {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.handshake = false;
            c.changeable = true;
        });
        let stack = |text| StackSpec::parse(text).unwrap();
        let first = stack("cubic").controller(Setup::default());
        let mut sender = Sender::new(cfg, first, 0);
        let kept = Kept::default();
        let mut recorder = SenderRecorder::new(Trace::Off, Time::ZERO, f64::INFINITY);
        recorder.stream_to(Box::new(kept.clone()), Span::ZERO);
        sender.start(Time::ZERO);
        let mut row = |sender: &mut Sender<Stack>, ms| {
            recorder.on_sender(Time::ZERO + Span::from_millis(ms), sender);
            let (_, variables) = kept.0.lock().unwrap().pop().unwrap();
            variables.iter().map(|v| v.is_nan()).collect::<Vec<_>>()
        };
        let cubic = row(&mut sender, 1);
        for (ms, text) in [(2, "highspeed"), (4, "cubic")] {
            let change = Change {
                stack: Some(stack(text)),
                ..Change::default()
            };
            sender.change(Time::ZERO + Span::from_millis(ms), &change, 1);
            let empty = row(&mut sender, ms + 1);
            let expected = if text == "cubic" {
                cubic.clone()
            } else {
                vec![true; cubic.len()]
            };
            assert_eq!(empty, expected, "{text}");
        }
    }

    /// A step's last event keeps its time, however late the next one comes, and so does that before
    /// the end of the run.
    #[test]
    fn what_waits_in_a_step_is_told_of_with_its_time() {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false);
        let cc = StackSpec::parse("cubic").unwrap();
        let mut sender = Sender::new(cfg, cc.controller(Setup::default()), 0);
        let (step, kept) = (Span::from_millis(100), Kept::default());
        let mut recorder = SenderRecorder::new(Trace::Every(step), Time::ZERO, f64::INFINITY);
        recorder.stream_to(Box::new(kept.clone()), step);
        sender.start(Time::ZERO);
        for ms in [0, 30, 90, 700, 705] {
            let now = Time::ZERO + Span::from_millis(ms);
            recorder.end_step(now, &sender);
            recorder.on_sender(now, &mut sender);
        }
        let end = Time::ZERO + Span::from_secs(1);
        let rows = recorder.finish(end, &sender).series.rows;
        let ms = |row: &TraceRow| row.time.as_nanos() / 1_000_000;
        assert_eq!(rows.iter().map(ms).collect::<Vec<_>>(), [0, 90, 705]);
        let streamed: Vec<u64> = kept
            .0
            .lock()
            .unwrap()
            .iter()
            .map(|(row, _)| ms(row))
            .collect();
        assert_eq!(streamed, [0, 90, 705]);
    }

    /// A sender whose first window is lost: what leaves is a row per step, and one at once when the
    /// timer goes off.
    #[test]
    fn a_step_an_episode_and_a_change_of_phase_make_rows() {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false);
        let cc = StackSpec::parse("cubic").unwrap();
        let mut sender = Sender::new(cfg, cc.controller(Setup::default()), 0);
        let kept = Kept::default();
        let mut recorder = SenderRecorder::new(Trace::Off, Time::ZERO, f64::INFINITY).with_flow(5);
        recorder.stream_to(Box::new(kept.clone()), Span::from_millis(100));
        sender.start(Time::ZERO);
        while sender.poll_transmit(Time::ZERO).is_some() {}
        for ms in (0..250).step_by(10) {
            recorder.on_sender(Time::ZERO + Span::from_millis(ms), &mut sender);
        }
        assert_eq!(kept.0.lock().unwrap().len(), 3, "at 0, 100 and 200 ms");
        recorder.on_ack_delay(Span::from_millis(7));
        // A probe may come first.
        let mut expiry = Time::ZERO;
        while sender.counts().timeouts == 0 {
            expiry = sender.next_timeout();
            sender.handle_timeout(expiry);
            recorder.on_sender(expiry, &mut sender);
        }
        let rows = kept.0.lock().unwrap().clone();
        let (row, variables) = rows.last().expect("a row for the timeout");
        assert!(row.events.has(Events::TIMEOUT), "{}", row.events.text());
        assert_eq!((row.time, row.flow, variables.len()), (expiry, 5, 3));
        assert_eq!((row.phase, row.timeouts), (Phase::Loss, 1));
        assert_eq!(row.cwnd_max, 10.0, "the window before");
        assert_eq!(row.ack_delay, Span::from_millis(7));
        assert!(recorder.finish(expiry, &sender).series.rows.is_empty());
    }
}
