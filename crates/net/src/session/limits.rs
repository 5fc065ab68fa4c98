//! What a server is willing to do for one client. What a limit forbids is refused; where a limit
//! can be kept without making another experiment of it, the run is granted within it, and the
//! client is told.

use fullpipe_flow::SenderConfig;
use fullpipe_run::{FlowSpec, RunSpec, Trace};
use fullpipe_units::{Bytes, Rate, Span};
use serde::Serialize;

use super::control::Grant;
use crate::content::Content;
use crate::too_many::too_many;

pub mod memory;

/// Limits of a server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// Bit rate of either direction of a test, headers of IP and UDP included.
    #[serde(rename = "max_rate_bits_per_s")]
    pub max_rate: Option<Rate>,
    /// Length of a test.
    #[serde(rename = "max_duration_s", serialize_with = "seconds")]
    pub max_duration: Span,
    /// Bytes of a test in both directions; of a copy, those of each file.
    pub max_bytes: Option<Bytes>,
    /// Tests at a time.
    pub max_tests: u32,
    /// Tests at a time for one address.
    pub max_tests_per_peer: u32,
    /// Flows, sources and probes of a test.
    pub max_flows: u32,
    /// Segments in flight of all flows of a test together: about 100 bytes of memory each at the
    /// side that sends.
    pub max_window: u64,
    /// What the buffers of all tests together may grow to. A test that asks for no window gets one
    /// that leaves room for others.
    pub max_memory: Bytes,
}

fn seconds<S: serde::Serializer>(span: &Span, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64())
}

impl Default for Limits {
    /// Ten minutes, 16 tests, 4 for each address, 256 flows, 4 million segments, 1 GB; any rate,
    /// any number of bytes.
    fn default() -> Self {
        Self {
            max_rate: None,
            max_duration: Span::from_secs(600),
            max_bytes: None,
            max_tests: 16,
            max_tests_per_peer: 4,
            max_flows: 256,
            max_window: 1 << 22,
            max_memory: Bytes(1_000_000_000),
        }
    }
}

/// Rows of time series that the server keeps for the flows of a test together.
const MOST_ROWS: u64 = 1_000_000;
/// Samples, one per interval, that it keeps for all flows, classes and sources together.
const MOST_SAMPLES: u64 = 1 << 23;
/// Short flows under way at a time: so many numbers there are.
const MOST_SHORT: u64 = 32_768;
/// Shortest step of one.
const FINEST: Span = Span::from_micros(100);
/// Short flows in all, and answers to probes: each leaves a row.
const MOST_ROWS_OF_TRAFFIC: f64 = 1e6;

/// Bytes of whole segments that a flow has to send, if those have an end.
pub(super) fn transfer(flow: &FlowSpec) -> Option<u64> {
    let segments = flow.sender.transfer?;
    Some(segments.saturating_mul(u64::from(flow.sender.mss)))
}

/// Whether one direction of a run may carry more than this, by the ceilings of its flows.
fn may_exceed(spec: &RunSpec, most: Rate) -> bool {
    let wire = |sender: &SenderConfig| {
        let cap = sender.pacing.max?.as_bits_per_sec() as f64;
        Some(cap * f64::from(sender.packet()) / f64::from(sender.mss.max(1)))
    };
    [false, true].into_iter().any(|reverse| {
        let flows = spec.flows.iter().filter(|f| f.reverse == reverse);
        let mut ceilings = flows.map(|f| wire(&f.sender));
        let sum = ceilings.try_fold(0.0, |sum, cap| Some(sum + cap?));
        let short = spec.arrivals.iter().any(|a| a.template.reverse == reverse);
        short || sum.is_none_or(|sum| sum > most.as_bits_per_sec() as f64)
    })
}

impl Limits {
    /// What the server does of a run that has been [checked](super::check) and carries `content`:
    /// the run as it hosts it, and what it tells the client.
    ///
    /// # Errors
    /// A sentence that names the limit.
    pub fn grant(&self, mut spec: RunSpec, content: &Content) -> Result<(RunSpec, Grant), String> {
        if spec.duration > self.max_duration {
            return Err(format!(
                "{} is longer than the server's limit of {} (--max-duration)",
                spec.duration, self.max_duration
            ));
        }
        self.grant_flows(&spec)?;
        self.grant_rate(&spec)?;
        // Of a copy the bytes of each file count, where it is known what those are.
        if !content.is_file() {
            self.grant_bytes(&spec)?;
        }
        let mut grant = Grant {
            max_rate: self.max_rate,
            max_bytes: self.max_bytes,
            notes: Vec::new(),
        };
        if let Some(most) = self.max_rate.filter(|most| may_exceed(&spec, *most)) {
            let note = format!("no direction gets more than {most} (--max-rate)");
            grant.notes.push(note);
        }
        self.bound_windows(&mut spec, &mut grant);
        bound_series(&mut spec, &mut grant);
        if spec.capture {
            spec.capture = false;
            let note = "packets are captured at the client only";
            grant.notes.push(note.to_owned());
        }
        Ok((spec, grant))
    }

    fn grant_flows(&self, spec: &RunSpec) -> Result<(), String> {
        let one_way = spec.cross_numbers().one_way;
        let counted = (spec.flows.len() + spec.arrivals.len() + one_way) as u64;
        let samples = spec.duration.as_nanos() / spec.interval.as_nanos().max(1) + 1;
        if samples.saturating_mul(2 * counted) > MOST_SAMPLES {
            return Err(format!(
                "{samples} samples for each of {counted} flows, classes and sources are more than a server keeps; choose a longer interval"
            ));
        }
        let flows = spec.flows.len() + spec.arrivals.len() + spec.cross.len();
        if flows > self.max_flows as usize {
            return Err(format!(
                "{flows} flows, sources and probes are more than the server's limit of {} (--max-flows)",
                self.max_flows
            ));
        }
        let short = spec.arrivals.iter().map(|a| a.transfers(spec.duration));
        if short.sum::<f64>() > MOST_ROWS_OF_TRAFFIC {
            return Err("more short flows than a server keeps account of (1,000,000)".to_owned());
        }
        Ok(())
    }

    fn grant_rate(&self, spec: &RunSpec) -> Result<(), String> {
        let Some(most) = self.max_rate else {
            return Ok(());
        };
        let peaks = spec.cross.iter().map(|c| c.departures.peak());
        let peak = peaks.fold(0u64, |sum, r| sum.saturating_add(r.as_bits_per_sec()));
        if peak > most.as_bits_per_sec() {
            return Err(format!(
                "cross traffic of {} is more than the server's limit of {most} (--max-rate)",
                Rate::from_bits_per_sec(peak)
            ));
        }
        Ok(())
    }

    fn grant_bytes(&self, spec: &RunSpec) -> Result<(), String> {
        let Some(most) = self.max_bytes else {
            return Ok(());
        };
        let sizes = spec.flows.iter().filter_map(transfer);
        let all = sizes.fold(0u64, u64::saturating_add);
        if all > most.0 {
            return Err(too_many(all, most.0));
        }
        Ok(())
    }

    /// Every flow gets an equal part. Where nothing was said this only bounds memory and is not
    /// worth a word.
    fn bound_windows(&self, spec: &mut RunSpec, grant: &mut Grant) {
        // All sessions of a class may be under way at the same time, each with one transfer.
        let short = spec.arrivals.iter();
        let short = short.map(|a| at_once(a.most_sessions(spec.duration)));
        let flows = spec.flows.len() as u64 + short.sum::<u64>();
        let most = (self.max_window / flows.max(1)).max(16);
        let quiet = (self.quiet_window() / flows.max(1)).clamp(16, most);
        let mut clipped = false;
        let templates = spec.arrivals.iter_mut().map(|a| &mut a.template);
        for f in spec.flows.iter_mut().chain(templates) {
            clipped |= f.sender.window.max.is_finite() && f.sender.window.max > most as f64;
            clipped |= f.receiver.window.max.is_some_and(|w| w > most);
            f.sender.window.max = match f.sender.window.max.is_finite() {
                true => f.sender.window.max.min(most as f64),
                false => quiet as f64,
            };
            f.sender.window.initial = f.sender.window.initial.min(f.sender.window.max);
            for change in &mut f.changes {
                if let Some(window) = &mut change.change.window {
                    clipped |= window.is_finite() && *window > most as f64;
                    *window = match window.is_finite() {
                        true => window.min(most as f64),
                        false => quiet as f64,
                    };
                }
            }
            f.receiver.window.first = f.receiver.window.first.map(|w| w.min(most));
            if f.receiver.window.max.is_some_and(|w| w > most) {
                f.receiver.window.max = Some(most);
            }
        }
        if clipped {
            grant.notes.push(format!(
                "windows are clipped to {most} segments at the server (--max-window)"
            ));
        }
    }
}

/// Room for the flows of a class, which can be so many.
fn at_once(most: u64) -> u64 {
    most.min(MOST_SHORT)
}

fn bound_series(spec: &mut RunSpec, grant: &mut Grant) {
    let step = match spec.trace {
        Trace::Off => return,
        Trace::Every(step) => step,
        Trace::Full => Span::ZERO,
    };
    let sent = spec.flows.iter().filter(|f| f.reverse).count() as u64;
    let finest = FINEST.max(spec.duration / (MOST_ROWS / sent.max(1)).max(1));
    if step < finest {
        spec.trace = Trace::Every(finest);
        if spec.flows.iter().any(|f| f.reverse) {
            grant.notes.push(format!(
                "time series of flows that the server sends have a row every {finest}"
            ));
        }
    }
}
