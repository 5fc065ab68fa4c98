//! Another controller takes over while the flow runs, or caps move.

use std::sync::Arc;

use fullpipe_cc::{Controller, PacingGains, Stack, TakeOver};
use fullpipe_units::Time;

use super::Sender;
use crate::change::{Ceiling, Change};
use crate::config::SenderConfig;
use crate::episode::EpisodeKind;

impl Sender<Stack> {
    /// Changes the flow from now on. The configuration must allow it
    /// ([`SenderConfig::changeable`](crate::SenderConfig::changeable)) where a stack changes or a
    /// rate comes; `seed` feeds what a new controller draws at random. Poll for segments
    /// afterwards.
    pub fn change(&mut self, now: Time, change: &Change, seed: u64) {
        let before = self.cc.window();
        let rate = self.pacing_rate().filter(|_| change.rate.is_some());
        match change.rate {
            Some(Ceiling::At(rate)) => {
                let pacing = &mut Arc::make_mut(&mut self.cfg).pacing;
                pacing.max = Some(rate);
                if pacing.gains.is_none() {
                    pacing.gains = Some(PacingGains::default());
                    self.cc.on_pacing();
                }
            }
            Some(Ceiling::Off) => {
                Arc::make_mut(&mut self.cfg).pacing.max = None;
                self.pacer.cap(false);
            }
            None => {}
        }
        if let Some(most) = change.window {
            self.set_cap(most);
        }
        if let Some(stack) = &change.stack {
            let (cfg, mut setup) = SenderConfig::clone(&self.cfg).with_stack(stack);
            setup.seed = seed;
            Arc::make_mut(&mut self.cfg).pacing.gains = cfg.pacing.gains;
            self.hand_over(now, stack.controller(setup));
        }
        if let Some(rate) = rate {
            let next = self.pacing_rate().unwrap_or(f64::INFINITY);
            self.pacer.hasten(now, rate, next);
        }
        self.refresh_budget();
        self.log(now, EpisodeKind::Change, before);
    }

    /// The window grows to `most` segments at most from now on; no episode of the flow.
    pub fn cap_window(&mut self, most: f64) {
        self.set_cap(most);
        self.refresh_budget();
    }

    fn set_cap(&mut self, most: f64) {
        Arc::make_mut(&mut self.cfg).window.max = most;
        self.budget.cap(most);
        self.cc.cap_window(most);
    }

    fn hand_over(&mut self, now: Time, next: Stack) {
        let before = std::mem::replace(&mut self.cc, next);
        if !self.connection.is_open() {
            return; // it hears of the connection when that opens
        }
        let mut event = TakeOver::new(self.restart_event(now), before.window(), before.ssthresh());
        event.phase = self.recovery.phase();
        self.cc.take_over(&event);
        if self.cc.owns_window() {
            self.recovery.end_prr();
        }
    }
}
