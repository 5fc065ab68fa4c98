//! The congestion modules of Linux 6.1, to the integer.
//!
//! A kernel module is not a window law: it counts whole segments and whole clock ticks, shifts where a paper divides, and acts
//! at the kernel's own call sites (section 0.5 of the algorithm reference). [`Linux`] is those call sites: it turns the sender's
//! events into the calls that a [`Module`] gets in `net/ipv4/tcp_input.c` and keeps the part of the socket that modules share,
//! [`Socket`]. One file per module; each states what its paper says differently.
//!
//! | kernel hook | here | called |
//! |---|---|---|
//! | `init` | [`Module::init`] | connection established, SRTT known |
//! | `in_ack_event` | [`Module::on_ack_event`] | every ACK, after its samples |
//! | `pkts_acked` | [`Module::pkts_acked`] | every ACK, with the RTT sample |
//! | `ssthresh` | [`Module::ssthresh`] | entering recovery, CWR or loss |
//! | `set_state` | [`Module::set_state`] | before the state changes |
//! | `cong_avoid` | [`Module::cong_avoid`] | an ACK that advances, outside recovery and CWR |
//! | `cwnd_event` | [`Module::on_event`] | sending starts again, a reduction ends, a timeout |
//! | `undo_cwnd` | [`Module::undo_cwnd`] | a reduction was spurious |

use fullpipe_units::Time;

use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, CongestionKind, Controller, IdleEvent, Phase, RestartEvent, RtoEvent,
};

mod bic;
mod cubic;
mod highspeed;
mod htcp;
mod hybla;
mod illinois;
mod lp;
mod reno;
mod round_delay;
mod scalable;
mod socket;
#[cfg(test)]
mod testing;
mod vegas;
mod veno;
mod westwood;
mod yeah;

pub use bic::BIC_LINUX;
pub use cubic::CUBIC_LINUX;
pub use highspeed::HIGHSPEED_LINUX;
pub use htcp::HTCP_LINUX;
pub use hybla::HYBLA_LINUX;
pub use illinois::ILLINOIS_LINUX;
pub use lp::LP_LINUX;
pub use reno::RENO_LINUX;
pub use scalable::SCALABLE_LINUX;
pub use socket::Socket;
pub use vegas::VEGAS_LINUX;
pub use veno::VENO_LINUX;
pub use westwood::WESTWOOD_LINUX;
pub use yeah::YEAH_LINUX;

/// What a module of `struct tcp_congestion_ops` defines. The defaults are Reno's, as in the kernel.
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

    /// An ACK arrived and moved [`Socket::snd_una`]; `slow_path` if it carried SACK blocks or met an unusual state.
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
    /// RTT of the newest segment newly acknowledged or SACKed, microseconds; `None` if every one was retransmitted.
    pub rtt_us: Option<u32>,
}

/// A module at the kernel's call sites.
#[derive(Clone, Debug)]
pub struct Linux {
    sk: Socket,
    module: AnyModule,
    established: bool,
    first_segment: u64,
    prior_ssthresh: u32,
}

impl Linux {
    /// A controller at the start of a connection.
    pub fn new(module: AnyModule, setup: Setup) -> Self {
        Self {
            sk: Socket::new(setup),
            module,
            established: false,
            first_segment: 0,
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

impl Controller for Linux {
    fn on_established(&mut self, ev: &RestartEvent) {
        self.clock(ev.now);
        self.sk.set_srtt(ev.srtt);
        self.sk.snd_una = ev.snd_una;
        self.sk.snd_nxt = ev.snd_nxt;
        self.first_segment = ev.snd_una;
        self.established = true;
        self.module.init(&mut self.sk);
    }

    /// `tcp_event_data_sent`.
    fn on_restart(&mut self, ev: &RestartEvent) {
        self.clock(ev.now);
        self.sk.idle = ev.idle;
        self.sk.snd_nxt = ev.snd_nxt;
        self.module.on_event(&mut self.sk, Event::TxStart);
    }

    /// The order of `tcp_ack`: `tcp_clean_rtx_queue`, `tcp_in_ack_event`, `tcp_fastretrans_alert`, `tcp_cong_control`. The first
    /// two see the state that the ACK met.
    #[inline]
    fn on_delivery(&mut self, ev: &AckEvent) {
        let sk = &mut self.sk;
        sk.now = ev.now;
        let pkts_acked = (ev.snd_una - sk.snd_una) as u32;
        sk.snd_una = ev.snd_una;
        sk.snd_nxt = ev.snd_nxt;
        sk.stamps = ev.stamps;
        sk.set_srtt(ev.srtt);
        let sample = AckSample {
            pkts_acked,
            rtt_us: ev.rtt.map(|rtt| (rtt.as_nanos() / 1000) as u32),
        };
        self.module.pkts_acked(sk, &sample);
        let slow_path = ev.sacked > 0
            || !ev.advanced
            || ev.ece
            || ev.phase != Phase::Open
            || ev.snd_una - self.first_segment < OPENING;
        self.module.on_ack_event(sk, slow_path);
    }

    #[inline]
    fn on_ack(&mut self, ev: &AckEvent) {
        self.sk.cwnd_limited = ev.cwnd_limited;
        self.set_state(ev.phase);
        if ev.advanced && !matches!(ev.phase, Phase::Recovery | Phase::Cwr) {
            self.module
                .cong_avoid(&mut self.sk, ev.delivered_now() as u32);
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
        sk.cwnd = sk.cwnd.min(sk.ssthresh);
        self.set_state(match ev.kind {
            CongestionKind::Loss => Phase::Recovery,
            CongestionKind::Ecn | CongestionKind::LocalDrop => Phase::Cwr,
        });
    }

    /// `tcp_enter_loss`: the window is what recent transmissions keep in flight and one more.
    fn on_rto(&mut self, ev: &RtoEvent) {
        self.clock(ev.now);
        let sk = &mut self.sk;
        if ev.first {
            self.prior_ssthresh = sk.current_ssthresh();
            sk.prior_cwnd = sk.cwnd;
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
        if matches!(was, Phase::Recovery | Phase::Cwr) {
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

    /// `tcp_cwnd_restart`; the segments counted towards the next growth stay.
    fn on_idle(&mut self, ev: &IdleEvent) {
        self.clock(ev.now);
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
        self.sk.scale(ratio);
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

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.module.report(&self.sk, visit);
    }
}

/// Header prediction wants the window that the last ACK had, and that of a young receiver opens with every segment it gets
/// (`tcp_grow_window`): none of the first ACKs takes the fast path. With the usual limits that lasts for thousands of segments;
/// only Westwood tells the paths apart, and what it has to correct after the first ACK is over within these.
const OPENING: u64 = 1000;

/// Declares the enum that dispatches to every module without a pointer.
macro_rules! modules {
    ($($(#[$doc:meta])* $variant:ident($type:ty)),+ $(,)?) => {
        /// Every module of the registry.
        #[derive(Clone, Debug)]
        pub enum AnyModule { $($(#[$doc])* $variant($type)),+ }

        $(impl From<$type> for AnyModule { fn from(module: $type) -> Self { AnyModule::$variant(module) } })+

        impl Module for AnyModule {
            fn init(&mut self, sk: &mut Socket) {
                match self { $(AnyModule::$variant(m) => m.init(sk)),+ }
            }
            fn ssthresh(&mut self, sk: &mut Socket) -> u32 {
                match self { $(AnyModule::$variant(m) => m.ssthresh(sk)),+ }
            }
            #[inline]
            fn cong_avoid(&mut self, sk: &mut Socket, acked: u32) {
                match self { $(AnyModule::$variant(m) => m.cong_avoid(sk, acked)),+ }
            }
            fn undo_cwnd(&mut self, sk: &mut Socket) -> u32 {
                match self { $(AnyModule::$variant(m) => m.undo_cwnd(sk)),+ }
            }
            fn set_state(&mut self, sk: &mut Socket, new: Phase) {
                match self { $(AnyModule::$variant(m) => m.set_state(sk, new)),+ }
            }
            fn on_event(&mut self, sk: &mut Socket, event: Event) {
                match self { $(AnyModule::$variant(m) => m.on_event(sk, event)),+ }
            }
            #[inline]
            fn pkts_acked(&mut self, sk: &mut Socket, sample: &AckSample) {
                match self { $(AnyModule::$variant(m) => m.pkts_acked(sk, sample)),+ }
            }
            #[inline]
            fn on_ack_event(&mut self, sk: &mut Socket, slow_path: bool) {
                match self { $(AnyModule::$variant(m) => m.on_ack_event(sk, slow_path)),+ }
            }
            fn report(&self, sk: &Socket, visit: &mut dyn FnMut(&'static str, f64)) {
                match self { $(AnyModule::$variant(m) => m.report(sk, visit)),+ }
            }
        }
    };
}

modules! {
    /// Reno.
    Reno(reno::Reno),
    /// Westwood+.
    Westwood(westwood::Westwood),
    /// TCP-LP.
    Lp(lp::Lp),
    /// Veno.
    Veno(veno::Veno),
    /// Illinois.
    Illinois(illinois::Illinois),
    /// YeAH.
    Yeah(yeah::Yeah),
    /// Vegas.
    Vegas(vegas::Vegas),
    /// CUBIC.
    Cubic(cubic::Cubic),
    /// Hybla.
    Hybla(hybla::Hybla),
    /// Scalable TCP.
    Scalable(scalable::Scalable),
    /// HighSpeed TCP.
    HighSpeed(highspeed::HighSpeed),
    /// BIC.
    Bic(bic::Bic),
    /// H-TCP.
    Htcp(htcp::Htcp),
}
