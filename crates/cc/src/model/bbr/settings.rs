//! The constants of BBR, under the draft's names.

use fullpipe_units::Span;

use crate::params::{ParamSpec, Params};

impl Settings {
    /// Those of the authors' kernel, most in parts of 256.
    pub(super) const LINUX: Self = Self {
        startup_pacing_gain: 710.0 / 256.0,
        drain_pacing_gain: 88.0 / 256.0,
        probe_down_pacing_gain: 232.0 / 256.0,
        probe_up_pacing_gain: 1.25,
        default_cwnd_gain: 2.0,
        probe_up_cwnd_gain: 2.25,
        pacing_margin_percent: 1.0,
        loss_thresh: 5.0 / 256.0,
        beta: 180.0 / 256.0,
        headroom: 38.0 / 256.0,
        min_pipe_cwnd: 4.0,
        startup_full_loss_cnt: 6.0,
        extra_acked_filter_len: 10.0,
        min_rtt_filter_len: Span::from_secs(10),
        probe_rtt_cwnd_gain: 0.5,
        probe_rtt_duration: Span::from_millis(200),
        probe_rtt_interval: Span::from_secs(5),
    };
}

/// The constants of one flow, and what a user may set them to, from one table.
macro_rules! settings {
    (@type number) => { f64 };
    (@type time) => { Span };
    ($($name:ident: $kind:ident = $($spec:expr),+ $(=> $share:ident)?;)+) => {
        /// Constants of one flow.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Settings {
            $(pub(super) $name: settings!(@type $kind)),+
        }

        impl Settings {
            pub(super) fn new(p: &Params) -> Self {
                Self { $($name: p.$kind(stringify!($name))),+ }
            }
        }

        /// The draft's constants with their sections.
        pub(super) const PARAMS: &[ParamSpec] = &[$(param!($name: $kind = $($spec),+)$(.$share())?),+];
    };
}

settings! {
    startup_pacing_gain: number = 2.77, 1.0..=10.0, "",
        "StartupPacingGain: pacing in Startup, 4 ln 2 for a rate that doubles per round",
        "BBR draft section 2.5";
    drain_pacing_gain: number = 0.5, 0.05..=1.0, "",
        "DrainPacingGain: pacing in Drain", "BBR draft section 2.5";
    probe_down_pacing_gain: number = 0.9, 0.1..=1.0, "",
        "pacing in ProbeBW_DOWN", "BBR draft section 5.3.3.1";
    probe_up_pacing_gain: number = 1.25, 1.0..=4.0, "",
        "pacing in ProbeBW_UP", "BBR draft section 5.3.3.5";
    default_cwnd_gain: number = 2.0, 1.0..=10.0, "",
        "DefaultCwndGain: window in BDPs", "BBR draft section 2.6";
    probe_up_cwnd_gain: number = 2.25, 1.0..=10.0, "",
        "window in ProbeBW_UP, in BDPs", "BBR draft section 5.3.3.5";
    pacing_margin_percent: number = 1.0, 0.0..=50.0, "%",
        "PacingMarginPercent: pacing below the bandwidth by this much", "BBR draft section 2.5";
    loss_thresh: number = 0.02, 0.0..=0.5, "fraction",
        "LossThresh: tolerated loss per round while probing", "BBR draft section 2.8";
    beta: number = 0.7, 0.1..=0.99, "fraction",
        "Beta: kept in a round with losses", "BBR draft section 2.8" => kept;
    headroom: number = 0.15, 0.0..=0.9, "fraction",
        "Headroom: part of inflight_longterm left to others", "BBR draft section 2.8";
    min_pipe_cwnd: number = 4.0, 1.0..=100.0, "segments",
        "MinPipeCwnd: smallest window", "BBR draft section 2.8";
    startup_full_loss_cnt: number = 6.0, 1.0..=1000.0, "",
        "StartupFullLossCnt: lost ranges in a round that end Startup",
        "BBR draft section 5.3.1.3";
    extra_acked_filter_len: number = 10.0, 1.0..=1000.0, "rounds",
        "ExtraAckedFilterLen: memory for ACK aggregation", "BBR draft section 2.12";
    min_rtt_filter_len: time = Span::from_secs(10),
        Span::from_millis(1)..=Span::from_secs(3600),
        "MinRTTFilterLen: memory of the smallest RTT", "BBR draft section 2.16.1";
    probe_rtt_cwnd_gain: number = 0.5, 0.0..=1.0, "",
        "ProbeRTTCwndGain: window in ProbeRTT, in BDPs", "BBR draft section 2.16.2";
    probe_rtt_duration: time = Span::from_millis(200),
        Span::from_millis(1)..=Span::from_secs(10),
        "ProbeRTTDuration: how long ProbeRTT holds the window down", "BBR draft section 2.16.2";
    probe_rtt_interval: time = Span::from_secs(5),
        Span::from_millis(1)..=Span::from_secs(3600),
        "ProbeRTTInterval: least time between two ProbeRTTs", "BBR draft section 2.16.2";
}
