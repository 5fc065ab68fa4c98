//! A module with its socket, driven one ACK at a time.

use super::{AckSample, AnyModule, Module, Socket};
use crate::classic::Setup;
use crate::params::Params;
use crate::registry::{Component, Entry};

/// A window-limited flow in the open state; segments of 1000 bytes, 250 ticks per second.
pub(super) struct Trial<M> {
    pub sk: Socket,
    pub module: M,
}

impl<M: Module> Trial<M> {
    /// Established with a window of `cwnd`, in slow start.
    pub fn new(module: M, cwnd: u32) -> Self {
        let sk = Socket::new(Setup {
            initial_window: f64::from(cwnd),
            mss: 1000,
            hz: 250,
            ..Setup::default()
        });
        let mut trial = Self { sk, module };
        trial.sk.cwnd_limited = true;
        trial.module.init(&mut trial.sk);
        trial
    }

    /// The same, out of slow start.
    pub fn avoiding(module: M, cwnd: u32) -> Self {
        let mut trial = Self::new(module, cwnd);
        trial.sk.ssthresh = 2;
        trial
    }

    /// An ACK for `n` segments with an RTT of `us` microseconds, or none; a full window was outstanding before it.
    pub fn ack(&mut self, n: u32, us: impl Into<Option<u32>>) {
        let window = self.sk.snd_una + u64::from(self.sk.cwnd);
        self.sk.snd_nxt = self.sk.snd_nxt.max(window);
        self.sk.snd_una += u64::from(n);
        let sample = AckSample {
            pkts_acked: n,
            rtt_us: us.into(),
        };
        self.module.pkts_acked(&mut self.sk, &sample);
        self.module.on_ack_event(&mut self.sk, n == 0);
        if n > 0 {
            self.module.cong_avoid(&mut self.sk, n);
        }
    }

    /// `count` ACKs for one segment each.
    pub fn acks(&mut self, count: u32, us: u32) {
        for _ in 0..count {
            self.ack(1, us);
        }
    }

    /// A reduction's threshold for the present window.
    pub fn ssthresh(&mut self) -> u32 {
        self.module.ssthresh(&mut self.sk)
    }

    /// What the module reports under `name`.
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
pub(super) fn built(entry: &Entry, params: &[(&str, &str)]) -> AnyModule {
    let mut values = Params::defaults(entry.params);
    for (key, value) in params {
        values.set(entry.name, key, value).unwrap();
    }
    match (entry.build)(&values) {
        Ok(Component::Module(module)) => module,
        other => panic!("{other:?} is no module"),
    }
}
