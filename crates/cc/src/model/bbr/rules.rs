//! Where the kernel of BBR's authors does otherwise than the draft.

use fullpipe_units::Span;

/// What differs beside the constants. Functions are those of `net/ipv4/tcp_bbr.c` in branch `v3` of
/// github.com/google/bbr; docs/bbr.md has what a search shows of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Growth of the bandwidth is looked for at every ACK, not at the first of a round
    /// (`bbr_check_full_bw_reached`).
    pub(super) growth_at_every_ack: bool,
    /// Startup grows in any case below this many initial windows of window; without it, until one
    /// initial window is delivered (`bbr_set_cwnd`).
    pub(super) least_startup: Option<f64>,
    /// Losses that end Startup are ACKs that report some, not ranges
    /// (`bbr_check_loss_too_high_in_startup`).
    pub(super) counts_lossy_acks: bool,
    /// Drain ends at the BDP of the largest bandwidth and no earlier; otherwise at that of the
    /// present one, or after three rounds (`bbr_check_drain`).
    pub(super) drains_to_max_bw: bool,
    /// Drain begins without the signals of Startup (`bbr_check_drain`).
    pub(super) drain_forgets: bool,
    /// Volumes follow from the bandwidth that this ACK showed; otherwise from that of the ACK
    /// before (`bbr_bw`).
    pub(super) bw_at_once: bool,
    /// In flight is what will be when the next segment may leave, and probes and cruising ask what
    /// was before the ACK (`bbr_packets_in_net_at_edt`).
    pub(super) inflight_at_departure: bool,
    /// The target has room for the offload engine's budget (`bbr_target_inflight`).
    pub(super) target_has_budget: bool,
    /// A burst is longer where the RTT is short (`bbr_tso_segs_generic`).
    pub(super) bursts_by_rtt: bool,
    /// The window rises for aggregated ACKs by this much of the bandwidth at most
    /// (`bbr_ack_aggregation_cwnd`).
    pub(super) most_aggregation: Option<Span>,
    /// A timeout makes the window before it the short-term bound, and looks for growth anew
    /// (`bbr_set_state`).
    pub(super) timeout_bounds: bool,
    /// The window of before comes back at the end of a recovery; otherwise that of before a timeout
    /// alone, and as soon as another recovery follows on it (`bbr_set_state`).
    pub(super) restores_at_the_end: bool,
    /// What an undo restores is saved at the first loss, and the state is part of it; otherwise
    /// when the recovery begins, after its losses have had their effect (`bbr_ssthresh`,
    /// `bbr_undo_cwnd`).
    pub(super) saves_at_first_loss: bool,
    /// An ACK's sample, too, can show an inflight that was too high, not only a segment found lost:
    /// losses before the probe end it (`bbr_adapt_upper_bounds`).
    pub(super) heeds_samples: bool,
    /// Without SACK any loss is too much (section 5.5.10.2).
    pub(super) distrusts_without_sack: bool,
    /// A mark counts as congestion; otherwise it does not on routes without `ecn_low`, which are
    /// all here (`bbr_can_use_ecn`).
    pub(super) heeds_marks: bool,
    /// Volumes are whole: a BDP is rounded up, all else down, as what losses are held against and
    /// what bounds are cut to (`bbr_bdp`, `bbr_is_inflight_too_high`, `bbr_loss_lower_bounds`).
    pub(super) whole: bool,
}

impl Rules {
    /// The draft's.
    pub(super) const DRAFT: Self = Self {
        growth_at_every_ack: false,
        least_startup: None,
        counts_lossy_acks: false,
        drains_to_max_bw: false,
        drain_forgets: false,
        bw_at_once: false,
        inflight_at_departure: false,
        target_has_budget: false,
        bursts_by_rtt: false,
        most_aggregation: None,
        timeout_bounds: false,
        restores_at_the_end: true,
        saves_at_first_loss: true,
        heeds_samples: false,
        distrusts_without_sack: true,
        heeds_marks: true,
        whole: false,
    };

    /// The kernel's.
    pub(super) const LINUX: Self = Self {
        growth_at_every_ack: true,
        least_startup: Some(2.0),
        counts_lossy_acks: true,
        drains_to_max_bw: true,
        drain_forgets: true,
        bw_at_once: true,
        inflight_at_departure: true,
        target_has_budget: true,
        bursts_by_rtt: true,
        most_aggregation: Some(Span::from_millis(100)),
        timeout_bounds: true,
        restores_at_the_end: false,
        saves_at_first_loss: false,
        heeds_samples: true,
        distrusts_without_sack: false,
        heeds_marks: false,
        whole: true,
    };

    /// A volume that rises to a whole one.
    #[inline]
    pub(super) fn up(&self, volume: f64) -> f64 {
        if self.whole {
            libm::ceil(volume)
        } else {
            volume
        }
    }

    /// A volume that falls to a whole one.
    #[inline]
    pub(super) fn down(&self, volume: f64) -> f64 {
        if self.whole {
            libm::floor(volume)
        } else {
            volume
        }
    }
}
