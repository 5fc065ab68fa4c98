//! Time-sequence data for xplot, in the idiom of tcptrace: sequence numbers over time, in segments.
//!
//! Document: the manual page of xplot (T. Shepard); the colours are those of tcptrace's
//! time-sequence graphs. From a capture: each segment as a vertical line between two arrows (white;
//! retransmissions red with an `R`), the cumulative ACK (green), the window's end (yellow), SACK
//! blocks (purple, `S`). From a trace, which has no segments: first unacknowledged and next new
//! segment, the congestion window from the first, and what happened as text.

use std::io::{self, Write};

use fullpipe_flow::Events;
use fullpipe_run::{CaptureEvent, CaptureRow};
use fullpipe_trace::Trace;
use fullpipe_units::{Span, Time};

use fullpipe_results::capture::thin::thin;

/// Writes one flow of a trace.
///
/// # Errors
/// If `out` refuses.
pub fn write_trace(
    out: &mut dyn Write,
    trace: &Trace,
    flow: usize,
    every: Option<Span>,
) -> io::Result<()> {
    let name = trace.meta.flows.get(flow).map_or("", |f| f.name.as_str());
    let (scenario, ground) = (&trace.meta.scenario, &trace.meta.ground);
    let of = match scenario.as_str() {
        "" => String::new(),
        scenario => format!(" of {scenario}"),
    };
    let mut plot = Plot::begin(out, &format!("{name}{of} ({ground})"))?;
    let (mut una, mut nxt, mut window) = (Stairs::of(GREEN), Stairs::of(WHITE), Stairs::of(YELLOW));
    for kept in thin(trace, flow, every) {
        let row = kept.row;
        una.step(&mut plot, row.time, row.snd_una)?;
        nxt.step(&mut plot, row.time, row.snd_nxt)?;
        window.step(&mut plot, row.time, row.snd_una + row.cwnd as u64)?;
        for (event, word) in Events::NAMES {
            if row.events.has(event) && event != Events::ACK && event != Events::RETRANSMIT {
                plot.text("atext", RED, (row.time, row.snd_nxt), word)?;
            }
        }
    }
    plot.end()
}

/// Writes one flow of a capture, as its sender's host saw it.
///
/// # Errors
/// If `out` refuses.
pub fn write_capture(
    out: &mut dyn Write,
    title: &str,
    flow: u32,
    rows: &[CaptureRow],
) -> io::Result<()> {
    let mut plot = Plot::begin(out, title)?;
    let (mut acked, mut window) = (Stairs::of(GREEN), Stairs::of(YELLOW));
    for row in rows.iter().filter(|r| r.flow == flow) {
        match row.event {
            CaptureEvent::SegmentSent(s) if !s.syn => {
                let colour = if s.retransmission { RED } else { WHITE };
                plot.bar(colour, row.at, s.seq, s.seq + 1)?;
                if s.retransmission {
                    plot.text("atext", RED, (row.at, s.seq + 1), "R")?;
                }
            }
            CaptureEvent::AckReceived(a) if !a.syn => {
                if !acked.step(&mut plot, row.at, a.cum)? {
                    plot.tick(row.at, a.cum)?;
                }
                // No limit is no line.
                if a.window_end < u64::MAX {
                    window.step(&mut plot, row.at, a.window_end)?;
                }
                for block in a.sacks.iter() {
                    plot.line(PURPLE, (row.at, block.start), (row.at, block.end))?;
                    plot.text("atext", PURPLE, (row.at, block.end), "S")?;
                }
            }
            _ => {}
        }
    }
    plot.end()
}

/// A file of xplot that is being written.
struct Plot<'a> {
    out: &'a mut dyn Write,
    colour: &'static str,
}

impl Plot<'_> {
    fn begin<'a>(out: &'a mut dyn Write, title: &str) -> io::Result<Plot<'a>> {
        // A line of the file is a line of the title.
        let title = title.replace(['\n', '\r'], " ");
        writeln!(
            out,
            "timeval unsigned\ntitle\n{title}\nxlabel\ntime\nylabel\nsequence number, segments"
        )?;
        Ok(Plot { out, colour: "" })
    }

    fn end(self) -> io::Result<()> {
        writeln!(self.out, "go")
    }

    fn colour(&mut self, colour: &'static str) -> io::Result<()> {
        if self.colour != colour {
            self.colour = colour;
            writeln!(self.out, "{colour}")?;
        }
        Ok(())
    }

    fn line(&mut self, colour: &'static str, a: (Time, u64), b: (Time, u64)) -> io::Result<()> {
        self.colour(colour)?;
        let ((at, from), (until, to)) = ((stamp(a.0), a.1), (stamp(b.0), b.1));
        writeln!(self.out, "line {at} {from} {until} {to}")
    }

    fn bar(&mut self, colour: &'static str, at: Time, from: u64, to: u64) -> io::Result<()> {
        self.colour(colour)?;
        let at = stamp(at);
        writeln!(
            self.out,
            "darrow {at} {to}\nuarrow {at} {from}\nline {at} {from} {at} {to}"
        )
    }

    /// A duplicate ACK.
    fn tick(&mut self, at: Time, seq: u64) -> io::Result<()> {
        self.colour(GREEN)?;
        writeln!(self.out, "dtick {} {seq}", stamp(at))
    }

    fn text(
        &mut self,
        command: &str,
        colour: &'static str,
        (at, seq): (Time, u64),
        text: &str,
    ) -> io::Result<()> {
        self.colour(colour)?;
        writeln!(self.out, "{command} {} {seq}\n{text}", stamp(at))
    }
}

/// A value that stays until it changes, as lines of a colour.
struct Stairs {
    colour: &'static str,
    last: Option<(Time, u64)>,
}

impl Stairs {
    fn of(colour: &'static str) -> Self {
        Stairs { colour, last: None }
    }

    /// Draws up to a new value; false if it is the old one.
    fn step(&mut self, plot: &mut Plot<'_>, at: Time, value: u64) -> io::Result<bool> {
        let Some((since, before)) = self.last else {
            self.last = Some((at, value));
            return Ok(true);
        };
        if before == value {
            return Ok(false);
        }
        plot.line(self.colour, (since, before), (at, before))?;
        plot.line(self.colour, (at, before), (at, value))?;
        self.last = Some((at, value));
        Ok(true)
    }
}

/// Seconds and microseconds, as xplot's `timeval`.
fn stamp(at: Time) -> String {
    let micros = at.as_nanos() / 1000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

const GREEN: &str = "green";
const WHITE: &str = "white";
const YELLOW: &str = "yellow";
const RED: &str = "red";
const PURPLE: &str = "purple";

#[cfg(test)]
mod tests {
    use fullpipe_flow::{Range, SackBlocks, Segment, TraceRow};
    use fullpipe_trace::{FlowMeta, Meta};

    use super::*;
    use fullpipe_results::capture::testing::{ack, ack_row, segment, sent};

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_capture_has_segments_acks_window_and_blocks() {
        let mut blocks = SackBlocks::default();
        blocks.push(Range { start: 1, end: 2 });
        let first = fullpipe_flow::Ack {
            window_end: 10,
            sacks: blocks,
            ..ack(0, ms(0), 0)
        };
        let again = Segment {
            retransmission: true,
            ..segment(0, ms(90))
        };
        let rows = [
            sent(0, ms(0), segment(0, ms(0))),
            sent(0, ms(0), segment(1, ms(0))),
            sent(1, ms(1), segment(7, ms(1))),
            ack_row(0, ms(80), first),
            ack_row(0, ms(81), first),
            sent(0, ms(90), again),
            ack_row(
                0,
                ms(170),
                fullpipe_flow::Ack {
                    window_end: 12,
                    ..ack(2, ms(90), 0)
                },
            ),
        ];
        let mut out = Vec::new();
        write_capture(&mut out, "main", 0, &rows).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn a_trace_has_its_lines_and_its_events() {
        let row = |at, snd_una, snd_nxt, cwnd, events| TraceRow {
            time: ms(at),
            snd_una,
            snd_nxt,
            cwnd,
            events,
            ..TraceRow::default()
        };
        let trace = Trace {
            meta: Meta {
                scenario: "one-drop".to_owned(),
                ground: "sim".to_owned(),
                flows: vec![FlowMeta {
                    name: "main".to_owned(),
                    ..FlowMeta::default()
                }],
                ..Meta::default()
            },
            rows: vec![
                row(0, 0, 10, 10.0, Events::NONE),
                row(80, 2, 14, 12.5, Events::ACK),
                row(90, 2, 14, 6.0, Events::LOSS.with(Events::ACK)),
            ],
            ..Trace::default()
        };
        let mut out = Vec::new();
        write_trace(&mut out, &trace, 0, None).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    /// Flows that were observed are of no scenario.
    #[test]
    fn a_title_names_what_there_is() {
        let mut trace = Trace {
            meta: Meta {
                ground: "host".to_owned(),
                flows: vec![FlowMeta {
                    name: "192.0.2.1:22 -> 192.0.2.7:5".to_owned(),
                    ..FlowMeta::default()
                }],
                ..Meta::default()
            },
            ..Trace::default()
        };
        let title = |trace: &Trace| {
            let mut out = Vec::new();
            write_trace(&mut out, trace, 0, None).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().nth(2).unwrap().to_owned()
        };
        assert_eq!(title(&trace), "192.0.2.1:22 -> 192.0.2.7:5 (host)");
        trace.meta.scenario = "send".to_owned();
        assert_eq!(title(&trace), "192.0.2.1:22 -> 192.0.2.7:5 of send (host)");
    }
}
