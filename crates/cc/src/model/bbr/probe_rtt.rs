//! ProbeRTT (section 5.3.4.3): half a BDP for 200 ms and a round, so that the path's RTT shows.

use fullpipe_units::Time;

use super::probe_bw::AckPhase;
use super::sample::Sample;
use super::signals::ShortTerm;
use super::{Bbr, State};

/// BBR.probe_rtt_done_stamp and BBR.probe_rtt_round_done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    done: Option<Time>,
    round_done: bool,
    /// The last ACK came in ProbeRTT, the one that ended it included: MarkConnectionAppLimited().
    pub(super) limits: bool,
}

impl Bbr {
    pub(super) fn check_probe_rtt(&mut self, rs: &Sample) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.state = State::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt = ProbeRtt::default();
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.rounds.begin(rs.c_delivered);
        }
        self.probe_rtt.limits = self.state == State::ProbeRtt;
        if self.probe_rtt.limits {
            self.handle_probe_rtt(rs);
        }
        if rs.newly_acked > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, rs: &Sample) {
        if self.probe_rtt.done.is_some() {
            self.probe_rtt.round_done |= self.rounds.start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(rs.now, rs.c_delivered);
            }
        } else if rs.inflight <= self.probe_rtt_cwnd() {
            self.probe_rtt.done = Some(rs.now + self.set.probe_rtt_duration);
            self.probe_rtt.round_done = false;
            self.rounds.begin(rs.c_delivered);
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time, c_delivered: u64) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt.schedule(now);
        self.restore_cwnd();
        self.short = ShortTerm::UNSET;
        if self.full.reached {
            self.start_down(now, c_delivered);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp(self.bw, self.set.probe_rtt_cwnd_gain)
            .max(self.set.min_pipe_cwnd)
    }
}
