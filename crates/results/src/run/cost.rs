//! How much a run takes, from its specification alone: which one starts first, and what a capture
//! of it would weigh.

use fullpipe_run::RunSpec;
use fullpipe_units::Span;

use super::error::params_text;
use super::{Options, RunError};
use crate::capture;
use fullpipe_scenario::Scenario;

/// Rough number of packets of a run: what the fastest link, or all window caps together, let
/// through.
pub(crate) fn cost(spec: &RunSpec) -> f64 {
    let seconds = spec.duration.as_secs_f64();
    let per_flow = |f: &fullpipe_run::FlowSpec| {
        let packet = f64::from(f.sender.mss + f.sender.header);
        let crossed = || f.forward.iter().filter_map(|&l| spec.links.get(l));
        let rate = crossed()
            .filter_map(|l| l.rate)
            .map(|r| r.as_bits_per_sec() as f64 / 8.0 / packet);
        let delay: f64 = crossed().map(|l| l.delay.as_secs_f64()).sum();
        let by_window = f.sender.window.max / (2.0 * delay).max(1e-6);
        rate.fold(f64::INFINITY, f64::min).min(by_window)
    };
    let offered: f64 = spec.flows.iter().map(per_flow).sum();
    let fastest = spec
        .links
        .iter()
        .filter_map(|l| l.rate)
        .map(|r| r.as_bits_per_sec() as f64 / 8.0 / 1500.0)
        .fold(0.0, f64::max);
    seconds
        * if fastest > 0.0 {
            offered.min(fastest)
        } else {
            offered
        }
}

/// Refuses captures that are too long; warns of those that may take much of the disk.
pub(super) fn check_captures(scenario: &Scenario, options: &Options<'_>) -> Result<(), RunError> {
    if options.out.is_none() {
        return Err(RunError::CaptureNowhere);
    }
    let mut bytes = 0.0;
    for case in &scenario.cases {
        let spec = case.run_spec(0);
        let packets = cost(&spec);
        if packets > capture::MOST_PACKETS as f64 {
            let part = capture::MOST_PACKETS as f64 / packets;
            let shorter = spec.duration.as_secs_f64() * part;
            // Rounded down, so that the hint is good.
            let grain = if shorter >= 1.0 { 1.0 } else { 1e3 };
            return Err(RunError::CaptureTooLong {
                case: case.index,
                params: params_text(&case.params()),
                millions: (packets / 1e6).ceil() as u64,
                shorter: Span::from_secs_f64((shorter * grain).floor() / grain),
            });
        }
        let runs = scenario.seeds.len() as f64;
        bytes += runs * packets * options.captures.bytes_per_packet() as f64;
    }
    if bytes > capture::LARGE as f64 {
        options.progress.warn(&format!(
            "captures may take {:.1} GB: fewer cases, fewer seeds or a shorter run make them smaller",
            bytes / 1e9
        ));
    }
    Ok(())
}
