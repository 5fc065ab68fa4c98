//! A module on a bench: a socket whose fields tests set, and the kernel's calls.

use fullpipe_units::Span;

use super::AnyModule;
use crate::classic::Setup;
use crate::controller::Phase;
use crate::entry::Entry;
use crate::linux::module::{AckSample, Event, Module};
use crate::linux::socket::Socket;

pub struct Bench<M = AnyModule> {
    pub sk: Socket,
    pub module: M,
    /// RTT of the ACKs to come; `None`: no sample.
    pub rtt_us: Option<u32>,
}

impl Bench {
    /// In slow start with window `w`; [`Module::init`] has not run.
    pub fn new<M: Into<AnyModule>>(
        entry: &Entry<M>,
        params: &[(&str, &str)],
        hz: u32,
        w: u32,
    ) -> Self {
        let mut sk = Socket::new(Setup {
            initial_window: f64::from(w),
            hz,
            ..Setup::default()
        });
        sk.cwnd_limited = true;
        sk.srtt_us = 8 * 100_000;
        sk.snd_nxt = u64::from(w);
        Self {
            sk,
            module: built(entry, params),
            rtt_us: None,
        }
    }

    /// Past slow start with window `w`, initialised.
    pub fn avoiding<M: Into<AnyModule>>(
        entry: &Entry<M>,
        params: &[(&str, &str)],
        hz: u32,
        w: u32,
    ) -> Self {
        let mut bench = Self::new(entry, params, hz, w);
        bench.init();
        bench.sk.ssthresh = 1;
        bench
    }
}

impl<M: Module> Bench<M> {
    /// A window-limited flow in slow start with window `w`, initialised; segments of 1000 bytes,
    /// 250 ticks per second.
    pub fn of(module: M, w: u32) -> Self {
        let sk = Socket::new(Setup {
            initial_window: f64::from(w),
            mss: 1000,
            hz: 250,
            ..Setup::default()
        });
        let mut bench = Self {
            sk,
            module,
            rtt_us: None,
        };
        bench.sk.cwnd_limited = true;
        bench.init();
        bench
    }

    /// The same past slow start.
    pub fn past_start_up(module: M, w: u32) -> Self {
        let mut bench = Self::of(module, w);
        bench.sk.ssthresh = 2;
        bench
    }

    pub fn init(&mut self) {
        self.module.init(&mut self.sk);
    }

    pub fn wait(&mut self, time: Span) {
        self.sk.now += time;
    }

    /// One ACK that advances and newly acknowledges `n` segments; a full window was outstanding
    /// before it.
    pub fn ack(&mut self, n: u32) {
        let window = self.sk.snd_una + u64::from(self.sk.cwnd);
        self.sk.snd_nxt = self.sk.snd_nxt.max(window);
        self.sk.snd_una += u64::from(n);
        let sample = AckSample {
            pkts_acked: n,
            rtt_us: self.rtt_us,
        };
        self.module.pkts_acked(&mut self.sk, &sample);
        self.module.on_ack_event(&mut self.sk, false);
        self.module.cong_avoid(&mut self.sk, n);
        self.sk.update_pacing_rate();
    }

    /// The same with an RTT of `us` microseconds, or none, from here on.
    pub fn ack_rtt(&mut self, n: u32, us: impl Into<Option<u32>>) {
        self.rtt_us = us.into();
        self.ack(n);
    }

    /// `n` ACKs for one segment each.
    pub fn acks(&mut self, n: u32) {
        for _ in 0..n {
            self.ack(1);
        }
    }

    /// The same with an RTT of `us` microseconds from here on.
    pub fn acks_rtt(&mut self, n: u32, us: u32) {
        self.rtt_us = Some(us);
        self.acks(n);
    }

    /// A reduction's threshold for the present window.
    pub fn ssthresh(&mut self) -> u32 {
        self.module.ssthresh(&mut self.sk)
    }

    /// A loss: recovery begins.
    pub fn lose(&mut self) {
        self.sk.prior_cwnd = self.sk.cwnd;
        self.sk.cwnd_cnt = 0;
        self.sk.ssthresh = self.ssthresh();
        self.sk.cwnd = self.sk.cwnd.min(self.sk.ssthresh);
        self.state(Phase::Recovery);
    }

    pub fn time_out(&mut self) {
        self.sk.prior_cwnd = self.sk.cwnd;
        self.sk.ssthresh = self.ssthresh();
        self.module.on_event(&mut self.sk, Event::Loss);
        self.sk.cwnd = 1;
        self.sk.cwnd_cnt = 0;
        self.state(Phase::Loss);
    }

    /// Recovery ends.
    pub fn open(&mut self) {
        self.state(Phase::Open);
        self.sk.cwnd = self.sk.ssthresh;
        self.module.on_event(&mut self.sk, Event::CompleteCwr);
    }

    pub fn state(&mut self, new: Phase) {
        self.module.set_state(&mut self.sk, new);
        self.sk.state = new;
    }

    pub fn undo(&mut self) {
        self.sk.cwnd = self.module.undo_cwnd(&mut self.sk);
    }

    /// Sending starts again after `idle`.
    pub fn restart(&mut self, idle: Span) {
        self.sk.idle = idle;
        self.module.on_event(&mut self.sk, Event::TxStart);
    }

    /// A variable that the module reports.
    pub fn reported(&self, name: &str) -> f64 {
        let mut found = None;
        self.module.report(&self.sk, &mut |key, value| {
            if key == name {
                found = Some(value);
            }
        });
        found.unwrap()
    }
}

/// The module that the registry builds.
pub fn built<M: Into<AnyModule>>(entry: &Entry<M>, params: &[(&str, &str)]) -> AnyModule {
    entry.make(params).unwrap().into()
}
