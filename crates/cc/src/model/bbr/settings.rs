//! The constants of BBR, under the draft's names.

use fullpipe_units::Span;

use crate::params::{ParamSpec, Params};

/// Constants of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) startup_pacing_gain: f64,
    pub(super) drain_pacing_gain: f64,
    pub(super) probe_down_pacing_gain: f64,
    pub(super) probe_up_pacing_gain: f64,
    pub(super) default_cwnd_gain: f64,
    pub(super) probe_up_cwnd_gain: f64,
    pub(super) pacing_margin_percent: f64,
    pub(super) loss_thresh: f64,
    pub(super) beta: f64,
    pub(super) headroom: f64,
    pub(super) min_pipe_cwnd: f64,
    pub(super) startup_full_loss_cnt: f64,
    pub(super) extra_acked_filter_len: u32,
    pub(super) min_rtt_filter_len: Span,
    pub(super) probe_rtt_cwnd_gain: f64,
    pub(super) probe_rtt_duration: Span,
    pub(super) probe_rtt_interval: Span,
}

impl Settings {
    pub(super) fn new(p: &Params) -> Self {
        Self {
            startup_pacing_gain: p.number("startup_pacing_gain"),
            drain_pacing_gain: p.number("drain_pacing_gain"),
            probe_down_pacing_gain: p.number("probe_down_pacing_gain"),
            probe_up_pacing_gain: p.number("probe_up_pacing_gain"),
            default_cwnd_gain: p.number("default_cwnd_gain"),
            probe_up_cwnd_gain: p.number("probe_up_cwnd_gain"),
            pacing_margin_percent: p.number("pacing_margin_percent"),
            loss_thresh: p.number("loss_thresh"),
            beta: p.number("beta"),
            headroom: p.number("headroom"),
            min_pipe_cwnd: p.number("min_pipe_cwnd"),
            startup_full_loss_cnt: p.number("startup_full_loss_cnt"),
            extra_acked_filter_len: p.number("extra_acked_filter_len") as u32,
            min_rtt_filter_len: p.time("min_rtt_filter_len"),
            probe_rtt_cwnd_gain: p.number("probe_rtt_cwnd_gain"),
            probe_rtt_duration: p.time("probe_rtt_duration"),
            probe_rtt_interval: p.time("probe_rtt_interval"),
        }
    }
}

/// The draft's constants with their sections.
pub(super) const PARAMS: &[ParamSpec] = &[
    param!(startup_pacing_gain: number = 2.77, 1.0..=10.0, "",
        "StartupPacingGain: pacing in Startup, 4 ln 2 for a rate that doubles per round",
        "BBR draft section 2.5"),
    param!(drain_pacing_gain: number = 0.5, 0.05..=1.0, "",
        "DrainPacingGain: pacing in Drain", "BBR draft section 2.5"),
    param!(probe_down_pacing_gain: number = 0.9, 0.1..=1.0, "",
        "pacing in ProbeBW_DOWN", "BBR draft section 5.3.3.1"),
    param!(probe_up_pacing_gain: number = 1.25, 1.0..=4.0, "",
        "pacing in ProbeBW_UP", "BBR draft section 5.3.3.5"),
    param!(default_cwnd_gain: number = 2.0, 1.0..=10.0, "",
        "DefaultCwndGain: window in BDPs", "BBR draft section 2.6"),
    param!(probe_up_cwnd_gain: number = 2.25, 1.0..=10.0, "",
        "window in ProbeBW_UP, in BDPs", "BBR draft section 5.3.3.5"),
    param!(pacing_margin_percent: number = 1.0, 0.0..=50.0, "%",
        "PacingMarginPercent: pacing below the bandwidth by this much", "BBR draft section 2.5"),
    param!(loss_thresh: number = 0.02, 0.0..=0.5, "fraction",
        "LossThresh: tolerated loss per round while probing", "BBR draft section 2.8"),
    param!(beta: number = 0.7, 0.1..=0.99, "fraction",
        "Beta: kept in a round with losses", "BBR draft section 2.8"),
    param!(headroom: number = 0.15, 0.0..=0.9, "fraction",
        "Headroom: part of inflight_longterm left to others", "BBR draft section 2.8"),
    param!(min_pipe_cwnd: number = 4.0, 1.0..=100.0, "segments",
        "MinPipeCwnd: smallest window", "BBR draft section 2.8"),
    param!(startup_full_loss_cnt: number = 6.0, 1.0..=1000.0, "",
        "StartupFullLossCnt: lost ranges in a round that end Startup",
        "BBR draft section 5.3.1.3"),
    param!(extra_acked_filter_len: number = 10.0, 1.0..=1000.0, "rounds",
        "ExtraAckedFilterLen: memory for ACK aggregation", "BBR draft section 2.12"),
    param!(min_rtt_filter_len: time = Span::from_secs(10),
        Span::from_millis(1)..=Span::from_secs(3600),
        "MinRTTFilterLen: memory of the smallest RTT", "BBR draft section 2.16.1"),
    param!(probe_rtt_cwnd_gain: number = 0.5, 0.0..=1.0, "",
        "ProbeRTTCwndGain: window in ProbeRTT, in BDPs", "BBR draft section 2.16.2"),
    param!(probe_rtt_duration: time = Span::from_millis(200),
        Span::from_millis(1)..=Span::from_secs(10),
        "ProbeRTTDuration: how long ProbeRTT holds the window down", "BBR draft section 2.16.2"),
    param!(probe_rtt_interval: time = Span::from_secs(5),
        Span::from_millis(1)..=Span::from_secs(3600),
        "ProbeRTTInterval: least time between two ProbeRTTs", "BBR draft section 2.16.2"),
];
