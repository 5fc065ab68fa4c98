//! The controller of a flow: what the class defines in Python, the rest in Rust.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::registry::guest::Guest;
use fullpipe_cc::startup::standard::Standard;
use fullpipe_cc::{
    AckEvent, Classic, CongestionEvent, Controller as Cc, IdleEvent, LostSegment, RestartEvent,
    RtoEvent, Setup, TakeOver, Window,
};
use fullpipe_units::{Rate, Time};
use pyo3::prelude::*;

use super::events::{Ack, Congestion, Lost, Round, Start, Timeout};
use super::hosting::{INTERRUPT, Raised, Stopped, Why};
use super::{Class, Controller, Hook};
use crate::error::ScenarioError;

/// A flow's controller.
#[derive(Debug)]
pub(super) struct Written {
    class: Arc<Class>,
    params: Vec<(String, f64)>,
    setup: Setup,
    /// What the class leaves as it is; window and threshold are here.
    own: Classic<Standard, Aimd>,
    pacing_rate: Option<Rate>,
    round: Round,
    /// Made when the connection opens.
    object: Option<Object>,
}

#[derive(Debug)]
struct Object {
    controller: Py<Controller>,
    methods: [Option<Py<PyAny>>; Hook::ALL.len()],
}

/// The largest window, segments: as many as a scenario may have on the way, which would all be sent
/// at once.
const LARGEST: f64 = 5e7;

const UNNAMED_RATE: &str = "set pacing_rate_mbps from outside of the class, which never names it: a \
                            flow is only paced where its class does; assign it in a method";
const IN_INIT: &str = "`__init__` sets window or ssthresh, which a flow has when it opens: set them \
                       in `on_start`";

/// No pacing rate is as high, Mbit/s.
const FASTEST_MBPS: f64 = 1e9;

impl Written {
    pub(super) fn new(class: Arc<Class>, params: Vec<(String, f64)>) -> Self {
        let setup = Setup::default();
        Self {
            class,
            params,
            own: Classic::new(Standard::UNLIMITED, Aimd::RENO, None, setup),
            setup,
            pacing_rate: None,
            round: Round::default(),
            object: None,
        }
    }

    fn defines(&self, hook: Hook) -> bool {
        self.class.defined[hook as usize]
    }

    /// The object, made at its first use.
    fn made(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.object.is_some() {
            return Ok(());
        }
        let object = self.class.class.bind(py).call0()?;
        {
            let c = object.cast::<Controller>()?.borrow();
            let fresh = Setup::default();
            if c.window != fresh.initial_window || c.ssthresh != f64::INFINITY {
                return Err(ScenarioError::new_err(IN_INIT));
            }
        }
        for (name, value) in &self.params {
            object.setattr(name.as_str(), *value)?;
        }
        let controller = object.cast_into::<Controller>()?;
        {
            let setup = &self.setup;
            let mut c = controller.borrow_mut();
            (c.initial_window, c.max_window) = (setup.initial_window, setup.max_window);
            (c.mss, c.seed) = (setup.mss, setup.seed);
            c.slow_start_limit = setup.slow_start_limit;
        }
        let mut methods = [const { None }; Hook::ALL.len()];
        for (hook, name) in Hook::ALL {
            if self.defines(hook) {
                methods[hook as usize] = Some(controller.getattr(name)?.unbind());
            }
        }
        self.object = Some(Object {
            controller: controller.unbind(),
            methods,
        });
        Ok(())
    }

    /// Calls a method, if the class defines it, with the window as it is; what it has set is in
    /// force afterwards. `before`: the window and threshold that it meets.
    fn call<E>(&mut self, (hook, now): (Hook, Time), before: Window, event: E)
    where
        E: for<'py> IntoPyObject<'py>,
    {
        let called = Python::attach(|py| self.called(py, hook, before, event));
        if let Err(why) = called {
            self.end(why, hook, now);
        }
        if INTERRUPT.get().is_some_and(|i| i.load(Ordering::Relaxed)) {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Ends the run.
    fn end(&self, why: Why, hook: Hook, now: Time) -> ! {
        let (_, method) = Hook::ALL[hook as usize];
        resume_unwind(Box::new(Raised {
            why,
            stack: self.class.stack.clone(),
            method,
            now,
            seed: self.setup.seed,
        }))
    }

    fn called<E>(&mut self, py: Python<'_>, hook: Hook, before: Window, event: E) -> Result<(), Why>
    where
        E: for<'py> IntoPyObject<'py>,
    {
        self.made(py)?;
        let Some(object) = &self.object else {
            return Ok(());
        };
        if let Some(method) = &object.methods[hook as usize] {
            {
                let mut c = object.controller.borrow_mut(py);
                (c.window, c.ssthresh) = (before.w, before.ssth);
            }
            method.call1(py, (event,))?;
        }
        let c = object.controller.borrow(py);
        let numbers = [c.window, c.ssthresh, c.increase, c.decrease];
        if numbers.iter().any(|x| x.is_nan()) || !(0.0..=LARGEST).contains(&c.window) {
            let what = format!(
                "left window = {:?}, ssthresh = {:?}, increase = {:?}, decrease = {:?}: \
                 not all of them are numbers, or the window is below 0 or above {LARGEST:e} \
                 segments",
                c.window, c.ssthresh, c.increase, c.decrease
            );
            return Err(Why::Numbers(what));
        }
        *self.own.law_mut() = Aimd {
            increase: c.increase,
            decrease: c.decrease,
        };
        if object.methods[hook as usize].is_some() {
            self.own.set_window(Window {
                w: c.window,
                ssth: c.ssthresh,
            });
        }
        if let Some(rate) = c
            .pacing_rate_mbps
            .filter(|r| !(*r > 0.0 && *r < FASTEST_MBPS))
        {
            let what = format!(
                "left pacing_rate_mbps = {rate:?}: it is more than 0 and less than \
                 {FASTEST_MBPS:e}, or None where the sender paces"
            );
            return Err(Why::Numbers(what));
        }
        let rate = c.pacing_rate_mbps;
        if rate.is_some() && !self.class.sets_rate {
            return Err(Why::Numbers(UNNAMED_RATE.to_owned()));
        }
        self.pacing_rate = rate.map(|mbps| Rate::from_bits_per_sec((mbps * 1e6) as u64));
        Ok(())
    }

    fn present(&self) -> Window {
        Window {
            w: self.own.window(),
            ssth: self.own.ssthresh(),
        }
    }
}

impl Guest for Written {
    fn duplicate(&self) -> Box<dyn Guest> {
        // Nothing copies a flow that runs; a copy begins anew with the window of now.
        Box::new(Self {
            class: self.class.clone(),
            params: self.params.clone(),
            setup: self.setup,
            own: self.own.clone(),
            pacing_rate: self.pacing_rate,
            round: self.round.clone(),
            object: None,
        })
    }
}

impl Cc for Written {
    fn set_up(&mut self, setup: &Setup) {
        self.setup = *setup;
        self.own = Classic::new(Standard::UNLIMITED, Aimd::RENO, None, *setup);
    }

    fn on_established(&mut self, ev: &RestartEvent) {
        self.own.on_established(ev);
        self.round = Round::from(ev.now);
        self.call((Hook::Start, ev.now), self.present(), Start(*ev));
    }

    fn on_ack(&mut self, ev: &AckEvent) {
        if self.defines(Hook::Ack) {
            self.call((Hook::Ack, ev.now), self.present(), Ack(*ev));
        } else {
            self.own.on_ack(ev);
            if self.own.window() > LARGEST {
                let increase = self.own.law_mut().increase;
                let what = format!(
                    "with increase = {increase:?} lets the window grow above {LARGEST:e} segments"
                );
                self.end(Why::Numbers(what), Hook::Ack, ev.now);
            }
        }
        if self.defines(Hook::Round) {
            self.round.take(ev);
            if ev.round_start {
                let round = std::mem::replace(&mut self.round, Round::from(ev.now));
                self.call((Hook::Round, ev.now), self.present(), round);
            }
        }
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        let before = self.present();
        self.own.on_congestion(ev);
        if self.defines(Hook::Congestion) {
            self.call((Hook::Congestion, ev.now), before, Congestion(*ev));
        }
    }

    fn on_lost(&mut self, ev: &LostSegment) {
        if self.defines(Hook::Lost) {
            self.call((Hook::Lost, ev.now), self.present(), Lost(*ev));
        }
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        let before = self.present();
        self.own.on_rto(ev);
        if self.defines(Hook::Timeout) {
            self.call((Hook::Timeout, ev.now), before, Timeout(*ev));
        }
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.own.on_recovery_exit(now);
        if self.defines(Hook::RecoveryExit) {
            self.call((Hook::RecoveryExit, now), self.present(), now.as_secs_f64());
        }
    }

    fn on_undo(&mut self, now: Time) {
        let before = self.present();
        self.own.on_undo(now);
        if self.defines(Hook::Undo) {
            self.call((Hook::Undo, now), before, now.as_secs_f64());
        }
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.own.on_idle(ev);
        if self.defines(Hook::Idle) {
            self.call((Hook::Idle, ev.now), self.present(), ev.idle.as_secs_f64());
        }
    }

    fn exit_start_up(&mut self, now: Time) {
        self.own.exit_start_up(now);
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.own.on_mss_change(ratio);
    }

    fn on_pacing(&mut self) {
        self.own.on_pacing();
    }

    fn cap_window(&mut self, most: f64) {
        self.setup.max_window = most;
        self.own.cap_window(most);
        if let Some(object) = &self.object {
            Python::attach(|py| object.controller.borrow_mut(py).max_window = most);
        }
    }

    fn take_over(&mut self, ev: &TakeOver) {
        self.own.take_over(ev);
        self.on_established(&ev.restart);
    }

    fn window(&self) -> f64 {
        self.own.window()
    }

    fn ssthresh(&self) -> f64 {
        self.own.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing_rate
    }

    fn reads_rate(&self) -> bool {
        self.class.reads_rate || self.defines(Hook::Lost)
    }

    fn reads_owd(&self) -> bool {
        false
    }

    fn sets_rate(&self) -> bool {
        self.class.sets_rate
    }

    fn owns_window(&self) -> bool {
        self.class.owns_window
    }

    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let none = || vec![f64::NAN; self.class.variables.len()];
        let values = match &self.object {
            Some(object) if !self.class.variables.is_empty() => Python::attach(|py| {
                let names = self.class.variables.iter();
                let of = |name: &&str| object.controller.getattr(py, *name)?.extract::<f64>(py);
                // What is not set yet, or no number, is not defined.
                names.map(|n| of(n).unwrap_or(f64::NAN)).collect()
            }),
            _ => none(),
        };
        for (name, value) in self.class.variables.iter().zip(values) {
            visit(name, value);
        }
    }
}
