//! A module on a bench: a socket whose fields tests set, and the kernel's calls.

use fullpipe_units::Span;

use super::{AckSample, AnyModule, Event, Module, Socket};
use crate::classic::Setup;
use crate::controller::Phase;
use crate::params::Params;
use crate::registry::{Component, Entry};

pub struct Bench {
    pub sk: Socket,
    pub module: AnyModule,
    /// RTT of the ACKs to come; `None`: no sample.
    pub rtt_us: Option<u32>,
}

impl Bench {
    /// In slow start with window `w`; [`Module::init`] has not run.
    pub fn new(entry: &'static Entry, params: &[(&str, &str)], hz: u32, w: u32) -> Self {
        let mut values = Params::defaults(entry.params);
        for (name, value) in params {
            values.set(entry.name, name, value).unwrap();
        }
        let Component::Module(module) = (entry.build)(&values).unwrap() else {
            panic!("{entry:?} is no module")
        };
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
            module,
            rtt_us: None,
        }
    }

    /// Past slow start with window `w`, initialised.
    pub fn avoiding(entry: &'static Entry, params: &[(&str, &str)], hz: u32, w: u32) -> Self {
        let mut bench = Self::new(entry, params, hz, w);
        bench.init();
        bench.sk.ssthresh = 1;
        bench
    }

    pub fn init(&mut self) {
        self.module.init(&mut self.sk);
    }

    pub fn wait(&mut self, time: Span) {
        self.sk.now += time;
    }

    /// One ACK for `n` segments.
    pub fn ack(&mut self, n: u32) {
        self.sk.snd_una += u64::from(n);
        self.sk.snd_nxt = self.sk.snd_nxt.max(self.sk.snd_una);
        let sample = AckSample {
            pkts_acked: n,
            rtt_us: self.rtt_us,
        };
        self.module.pkts_acked(&mut self.sk, &sample);
        self.module.cong_avoid(&mut self.sk, n);
        self.sk.update_pacing_rate();
    }

    /// `n` ACKs for one segment each.
    pub fn acks(&mut self, n: u32) {
        for _ in 0..n {
            self.ack(1);
        }
    }

    /// A loss: recovery begins.
    pub fn lose(&mut self) {
        self.sk.prior_cwnd = self.sk.cwnd;
        self.sk.cwnd_cnt = 0;
        self.sk.ssthresh = self.module.ssthresh(&mut self.sk);
        self.sk.cwnd = self.sk.cwnd.min(self.sk.ssthresh);
        self.state(Phase::Recovery);
    }

    pub fn time_out(&mut self) {
        self.sk.prior_cwnd = self.sk.cwnd;
        self.sk.ssthresh = self.module.ssthresh(&mut self.sk);
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
