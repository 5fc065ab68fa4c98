//! What a kernel module is, and the call sites that drive it.

use fullpipe_units::{Rate, Time};

use super::socket::Socket;
use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, LostSegment, Phase,
    RestartEvent, RtoEvent, TakeOver, assert_ratio,
};

/// What a module of `struct tcp_congestion_ops` defines. The defaults are Reno's, as in the kernel.
#[cfg_attr(feature = "registry", ambassador::delegatable_trait)]
pub trait Module: Clone {
    /// The connection is established; [`Socket::srtt_us`] holds the handshake's sample.
    fn init(&mut self, _sk: &mut Socket) {}

    /// The threshold for a reduction of the present window, segments.
    fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
        sk.half()
    }

    /// `acked` segments were newly delivered by an ACK that advanced: grow [`Socket::cwnd`].
    fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
        sk.reno_cong_avoid(acked);
    }

    /// The window to return to after a spurious reduction.
    fn undo_cwnd(&mut self, sk: &mut Socket) -> u32 {
        sk.cwnd.max(sk.prior_cwnd)
    }

    /// [`Socket::state`] is about to become `new`.
    fn set_state(&mut self, _sk: &mut Socket, _new: Phase) {}

    /// Something happened that is not an ACK.
    fn on_event(&mut self, _sk: &mut Socket, _event: Event) {}

    /// An ACK's RTT sample and segment count.
    fn pkts_acked(&mut self, _sk: &mut Socket, _sample: &AckSample) {}

    /// `TCP_CONG_NEEDS_ECN`.
    fn needs_ecn(&self) -> bool {
        false
    }

    /// The module sets window and pacing rate itself, in recovery too: [`Module::cong_control`]
    /// takes the place of growth and of proportional rate reduction.
    fn takes_control(&self) -> bool {
        false
    }

    /// The end of an ACK for a module that [takes control](Module::takes_control).
    fn cong_control(&mut self, _sk: &mut Socket, _ev: &AckEvent) {}

    /// The pacing rate that it set (`sk_pacing_rate`), bytes/s; `None`: not paced.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// It holds the sender back: rates of what is in flight are to be marked application-limited.
    fn limits_itself(&self) -> bool {
        false
    }

    /// A module that takes control is in its start-up.
    fn is_starting(&self) -> bool {
        false
    }

    /// [`Controller::state`].
    fn state(&self) -> Option<u8> {
        None
    }

    /// An ACK arrived and moved [`Socket::snd_una`]; `slow_path` unless header prediction
    /// expected it ([`AckEvent::predicted`]).
    fn on_ack_event(&mut self, _sk: &mut Socket, _slow_path: bool) {}

    /// Named variables for traces.
    fn report(&self, _sk: &Socket, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// `enum tcp_ca_event`, as far as the modules use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A segment leaves and nothing was in flight (`CA_EVENT_TX_START`).
    TxStart,
    /// The window was lowered after idle time (`CA_EVENT_CWND_RESTART`).
    CwndRestart,
    /// A reduction ended and the window is the threshold (`CA_EVENT_COMPLETE_CWR`).
    CompleteCwr,
    /// The retransmission timer expired (`CA_EVENT_LOSS`).
    Loss,
}

/// `struct ack_sample`.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Segments that left the retransmission queue: the advance of `snd_una`, SACKed ones included.
    pub pkts_acked: u32,
    /// RTT of the newest segment newly acknowledged or SACKed, microseconds; `None` if every one
    /// was retransmitted.
    pub rtt_us: Option<u32>,
}

/// A module at the kernel's call sites.
#[derive(Clone, Debug)]
pub struct Linux<M> {
    sk: Socket,
    module: M,
    established: bool,
    /// [`Module::takes_control`].
    controls: bool,
    prior_ssthresh: u32,
}

impl<M: Module> Linux<M> {
    /// A controller at the start of a connection.
    pub fn new(module: M, setup: Setup) -> Self {
        Self {
            sk: Socket::new(setup),
            controls: module.takes_control(),
            module,
            established: false,
            prior_ssthresh: 0,
        }
    }

    fn clock(&mut self, now: Time) {
        self.sk.now = now;
    }

    fn set_state(&mut self, new: Phase) {
        if self.sk.state != new {
            self.module.set_state(&mut self.sk, new);
            self.sk.state = new;
        }
    }
}

impl<M: Module> Controller for Linux<M> {
    fn on_established(&mut self, ev: &RestartEvent) {
        self.clock(ev.now);
        self.sk.set_srtt(ev.srtt);
        self.sk.snd_una = ev.snd_una;
        self.sk.snd_nxt = ev.snd_nxt;
        self.established = true;
        self.module.init(&mut self.sk);
    }

    /// `tcp_event_data_sent`.
    fn on_restart(&mut self, ev: &RestartEvent) {
        self.clock(ev.now);
        self.sk.idle = ev.idle;
        self.sk.snd_nxt = ev.snd_nxt;
        self.sk.app_limited = ev.app_limited;
        self.module.on_event(&mut self.sk, Event::TxStart);
    }

    /// The order of `tcp_ack`: `tcp_clean_rtx_queue`, `tcp_in_ack_event`, `tcp_fastretrans_alert`,
    /// `tcp_cong_control`. The first two see the state that the ACK met.
    #[inline(never)]
    fn on_delivery(&mut self, ev: &AckEvent) {
        let sk = &mut self.sk;
        sk.now = ev.now;
        let pkts_acked = (ev.snd_una - sk.snd_una) as u32;
        sk.snd_una = ev.snd_una;
        sk.snd_nxt = ev.snd_nxt;
        sk.stamps = ev.stamps;
        sk.set_srtt(ev.srtt);
        if ev.ece {
            sk.delivered_ce += ev.delivered - sk.delivered;
        }
        sk.delivered = ev.delivered;
        let sample = AckSample {
            pkts_acked,
            rtt_us: ev.rtt.map(|rtt| (rtt.as_nanos() / 1000) as u32),
        };
        self.module.pkts_acked(sk, &sample);
        self.module.on_ack_event(sk, !ev.predicted);
    }

    #[inline(never)]
    fn on_ack(&mut self, ev: &AckEvent) {
        self.sk.cwnd_limited = ev.cwnd_limited;
        self.set_state(ev.phase);
        if self.controls {
            return self.module.cong_control(&mut self.sk, ev);
        }
        // `tcp_may_raise_cwnd`; a duplicate counts as delivered (`tcp_dsack_seen`).
        let moves = ev.advanced || (ev.grows_out_of_order && ev.sacked > 0);
        if moves && !matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            let delivered = ev.delivered_now() + ev.duplicates;
            self.module.cong_avoid(&mut self.sk, delivered as u32);
        }
        self.sk.update_pacing_rate();
    }

    /// `tcp_init_cwnd_reduction` and `tcp_enter_recovery` or `tcp_enter_cwr`.
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        self.clock(ev.now);
        if !ev.first_in_window {
            return; // the kernel reduces once per recovery
        }
        let sk = &mut self.sk;
        // A mark or a local drop is never undone (`tcp_enter_cwr`).
        self.prior_ssthresh = match ev.kind {
            CongestionKind::Loss => sk.current_ssthresh(),
            CongestionKind::Ecn | CongestionKind::LocalDrop => 0,
        };
        sk.prior_cwnd = sk.cwnd;
        sk.cwnd_cnt = 0;
        sk.ssthresh = self.module.ssthresh(sk);
        if !self.controls {
            sk.cwnd = sk.cwnd.min(sk.ssthresh);
        }
        self.set_state(match ev.kind {
            CongestionKind::Loss => Phase::Recovery,
            CongestionKind::Ecn | CongestionKind::LocalDrop => Phase::Cwr,
        });
    }

    /// `tcp_enter_recovery` from `TCP_CA_CWR`: no reduction begins, but the module hears of it.
    fn on_loss_in_reduction(&mut self, ev: &CongestionEvent, window: f64) {
        self.clock(ev.now);
        if self.controls {
            return self.set_state(Phase::Recovery);
        }
        let target = self.sk.cwnd;
        self.sk.cwnd = (window as u32).max(1);
        self.set_state(Phase::Recovery);
        self.sk.cwnd = target.min(self.sk.ssthresh);
    }

    /// `tcp_enter_loss`: the window is what recent transmissions keep in flight and one more.
    fn on_rto(&mut self, ev: &RtoEvent) {
        self.clock(ev.now);
        let sk = &mut self.sk;
        if ev.first {
            if !ev.nested {
                self.prior_ssthresh = sk.current_ssthresh();
                sk.prior_cwnd = sk.cwnd;
            }
            sk.ssthresh = self.module.ssthresh(sk);
            self.module.on_event(sk, Event::Loss);
        }
        sk.cwnd = ev.pipe as u32 + 1;
        sk.cwnd_cnt = 0;
        // The kernel tells the module again at every expiry.
        self.module.set_state(&mut self.sk, Phase::Loss);
        self.sk.state = Phase::Loss;
    }

    /// `tcp_try_undo_recovery` opens the state, then `tcp_end_cwnd_reduction` sets the window.
    fn on_recovery_exit(&mut self, now: Time) {
        self.clock(now);
        let was = self.sk.state;
        self.set_state(Phase::Open);
        if matches!(was, Phase::Recovery | Phase::Cwr) && !self.controls {
            if self.sk.ssthresh < Socket::INFINITE {
                self.sk.cwnd = self.sk.ssthresh;
            }
            self.module.on_event(&mut self.sk, Event::CompleteCwr);
        }
    }

    /// `tcp_undo_cwnd_reduction`.
    fn on_undo(&mut self, now: Time) {
        self.clock(now);
        let sk = &mut self.sk;
        if self.prior_ssthresh > 0 {
            sk.cwnd = self.module.undo_cwnd(sk);
            sk.ssthresh = sk.ssthresh.max(self.prior_ssthresh);
        }
    }

    fn on_cut_short(&mut self, now: Time, window: f64) {
        self.clock(now);
        self.sk.cwnd = (window as u32).max(1);
    }

    fn on_undone_at_end(&mut self, now: Time) {
        self.clock(now);
        self.set_state(Phase::Open);
        if !self.controls {
            self.module.on_event(&mut self.sk, Event::CompleteCwr);
        }
    }

    /// `tcp_cwnd_restart`; the segments counted towards the next growth stay. A module that takes
    /// control keeps its window over a pause (`tcp_slow_start_after_idle_check`); only a lost SYN
    /// lowers it.
    fn on_idle(&mut self, ev: &IdleEvent) {
        self.clock(ev.now);
        if self.controls && self.established {
            return;
        }
        let sk = &mut self.sk;
        self.module.on_event(sk, Event::CwndRestart);
        sk.cwnd = (ev.window as u32).max(1);
        sk.ssthresh = Socket::threshold(ev.ssthresh);
    }

    fn exit_start_up(&mut self, now: Time) {
        self.clock(now);
        self.sk.ssthresh = self.sk.cwnd;
    }

    fn on_mss_change(&mut self, ratio: f64) {
        assert_ratio(ratio);
        self.sk.scale(ratio);
    }

    fn on_pacing(&mut self) {
        self.sk.paced = true;
    }

    fn cap_window(&mut self, most: f64) {
        self.sk.set_clamp(most);
    }

    /// `tcp_reinit_congestion_control`: window and threshold stay, the module begins anew.
    fn take_over(&mut self, ev: &TakeOver) {
        self.sk.cwnd = (ev.window as u32).clamp(1, self.sk.clamp.max(1));
        self.sk.ssthresh = Socket::threshold(ev.ssthresh);
        self.on_established(&ev.restart);
        self.set_state(ev.phase);
    }

    #[inline]
    fn window(&self) -> f64 {
        f64::from(self.sk.cwnd)
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        if self.sk.ssthresh >= Socket::INFINITE {
            f64::INFINITY
        } else {
            f64::from(self.sk.ssthresh)
        }
    }

    /// `tcp_mark_skb_lost`.
    fn on_lost(&mut self, _ev: &LostSegment) {
        self.sk.lost += 1;
    }

    #[inline]
    fn in_start_up(&self) -> bool {
        if self.controls {
            return self.module.is_starting();
        }
        self.window() < self.ssthresh()
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let rate = self.controls.then(|| self.module.pacing_rate())??;
        Some(Rate::from_bits_per_sec(rate * 8))
    }

    fn sets_rate(&self) -> bool {
        self.controls
    }

    fn reads_rate(&self) -> bool {
        self.controls
    }

    fn reads_owd(&self) -> bool {
        false
    }

    fn needs_ecn(&self) -> bool {
        self.module.needs_ecn()
    }

    fn owns_window(&self) -> bool {
        self.controls
    }

    fn limits_itself(&self) -> bool {
        self.module.limits_itself()
    }

    fn state(&self) -> Option<u8> {
        self.module.state()
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.module.report(&self.sk, visit);
    }
}
