//! Fewer rows of a trace: a row per step of time, with what happened in it.

use fullpipe_flow::{Events, TraceRow};
use fullpipe_trace::Trace;
use fullpipe_units::Span;

/// A row that is kept, and its place in the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
    /// The row, with the extremes of the window and the events of those it stands for.
    pub row: TraceRow,
    /// Index of the row whose variables it bears.
    pub at: usize,
}

/// Rows of a flow: all of them, or the last of every step; one in which more happened than ACKs and
/// retransmissions always stays.
pub fn thin(trace: &Trace, flow: usize, every: Option<Span>) -> Vec<Kept> {
    let step = every.map_or(0, Span::as_nanos);
    let mut kept: Vec<Kept> = Vec::new();
    for (at, row) in trace.of_flow(flow) {
        match kept.last_mut() {
            Some(last)
                if step > 0
                    && !is_special(last.row.events)
                    && last.row.time.as_nanos() / step == row.time.as_nanos() / step =>
            {
                last.row = TraceRow {
                    cwnd_min: last.row.cwnd_min.min(row.cwnd_min),
                    cwnd_max: last.row.cwnd_max.max(row.cwnd_max),
                    events: last.row.events.with(row.events),
                    ..*row
                };
                last.at = at;
            }
            _ => kept.push(Kept { row: *row, at }),
        }
    }
    kept
}

fn is_special(events: Events) -> bool {
    let usual = Events::ACK.with(Events::RETRANSMIT);
    !usual.has(events)
}

#[cfg(test)]
mod tests {
    use fullpipe_units::Time;

    use super::*;

    #[test]
    fn a_step_keeps_its_last_row_its_extremes_and_every_event() {
        let row = |ms, cwnd, events| TraceRow {
            time: Time::ZERO + Span::from_millis(ms),
            cwnd,
            cwnd_min: cwnd,
            cwnd_max: cwnd,
            events,
            ..TraceRow::default()
        };
        let trace = Trace {
            rows: vec![
                row(1, 10.0, Events::ACK),
                row(2, 30.0, Events::ACK),
                row(3, 20.0, Events::ACK.with(Events::RETRANSMIT)),
                row(4, 10.0, Events::LOSS),
                row(5, 11.0, Events::ACK),
                row(12, 12.0, Events::ACK),
            ],
            ..Trace::default()
        };
        let kept = thin(&trace, 0, Some(Span::from_millis(10)));
        let brief: Vec<_> = kept
            .iter()
            .map(|k| (k.at, k.row.cwnd_min, k.row.cwnd_max, k.row.events.text()))
            .collect();
        assert_eq!(
            brief,
            [
                (3, 10.0, 30.0, "loss+retransmit+ack".to_owned()),
                (4, 11.0, 11.0, "ack".to_owned()),
                (5, 12.0, 12.0, "ack".to_owned()),
            ]
        );
        assert_eq!(thin(&trace, 0, None).len(), 6);
        assert!(thin(&trace, 1, None).is_empty());
    }
}
