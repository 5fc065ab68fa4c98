//! Controllers written in Python: a flow's controller calls the methods that its class defines, and
//! does in Rust what the class leaves as it is.
//!
//! What a class leaves is AIMD with slow start, with its `increase` and `decrease`: Reno's as they
//! are. So a class may define one method and have the rest right.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::registry::guest::{Guest, GuestEntry, GuestParam, register as add};
use fullpipe_cc::startup::standard::Standard;
use fullpipe_cc::{
    AckEvent, Classic, CongestionEvent, CongestionKind, Controller as Cc, IdleEvent, LostSegment,
    Phase, RestartEvent, RtoEvent, Setup, TakeOver, Window,
};
use fullpipe_run::{Ground, GroundError, Outcome, RunSpec};
use fullpipe_units::{Rate, Span, Time};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::{FullpipeError, ScenarioError};

/// What a controller written in Python and its flow share: the base of `fullpipe.Controller`.
#[pyclass(subclass, module = "fullpipe._native")]
pub struct Controller {
    /// Congestion window, segments.
    #[pyo3(get, set)]
    window: f64,
    /// Slow-start threshold, segments.
    #[pyo3(get, set)]
    ssthresh: f64,
    /// Segments per round trip in congestion avoidance, where `on_ack` is not defined.
    #[pyo3(get, set)]
    increase: f64,
    /// Part of the window that a loss removes, where `on_congestion` is not defined.
    #[pyo3(get, set)]
    decrease: f64,
    /// Pacing rate; `None`: what the sender makes of the window.
    #[pyo3(get, set)]
    pacing_rate_mbps: Option<f64>,
    /// Window at the start, segments.
    #[pyo3(get)]
    initial_window: f64,
    /// Most that the window can be, segments; infinite without a cap.
    #[pyo3(get)]
    max_window: f64,
    /// Payload of a segment, bytes.
    #[pyo3(get)]
    mss: u32,
    /// Most segments that one ACK may add in slow start (RFC 3465 section 2.2).
    #[pyo3(get)]
    slow_start_limit: f64,
    /// A seed for what it draws at random, another one in each flow and run.
    #[pyo3(get)]
    seed: u64,
}

#[pymethods]
impl Controller {
    #[new]
    fn new() -> Self {
        let setup = Setup::default();
        Self {
            window: setup.initial_window,
            ssthresh: f64::INFINITY,
            increase: Aimd::RENO.increase,
            decrease: Aimd::RENO.decrease,
            pacing_rate_mbps: None,
            initial_window: setup.initial_window,
            max_window: setup.max_window,
            mss: setup.mss,
            slow_start_limit: setup.slow_start_limit,
            seed: setup.seed,
        }
    }
}

/// The methods that a class can define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    Start,
    Ack,
    Round,
    Congestion,
    Lost,
    Timeout,
    RecoveryExit,
    Undo,
    Idle,
}

impl Hook {
    const ALL: [(Hook, &'static str); 9] = [
        (Hook::Start, "on_start"),
        (Hook::Ack, "on_ack"),
        (Hook::Round, "on_round"),
        (Hook::Congestion, "on_congestion"),
        (Hook::Lost, "on_lost"),
        (Hook::Timeout, "on_timeout"),
        (Hook::RecoveryExit, "on_recovery_exit"),
        (Hook::Undo, "on_undo"),
        (Hook::Idle, "on_idle"),
    ];
}

/// Names of the methods that a class can define.
#[pyfunction]
pub fn hooks() -> Vec<&'static str> {
    Hook::ALL.iter().map(|(_, name)| *name).collect()
}

/// A class of controllers.
#[derive(Debug)]
struct Class {
    class: Py<PyType>,
    defined: [bool; Hook::ALL.len()],
    /// Attributes that traces and tables show.
    variables: Vec<&'static str>,
    owns_window: bool,
    reads_rate: bool,
}

/// Adds a class to the registry of stacks, or puts it in the place of the one of its name.
/// `defined` names the methods that it defines, `params` are name, default, smallest and largest
/// value.
#[pyfunction]
// Named in Python.
#[allow(clippy::too_many_arguments)]
pub fn register(
    class: Py<PyType>,
    name: String,
    about: String,
    fingerprint: String,
    params: Vec<(String, f64, f64, f64)>,
    defined: Vec<String>,
    variables: Vec<String>,
    owns_window: bool,
    reads_rate: bool,
) -> PyResult<()> {
    let class = Arc::new(Class {
        class,
        defined: Hook::ALL.map(|(_, name)| defined.iter().any(|d| d == name)),
        // Traces hold names for as long as the program runs.
        variables: variables
            .into_iter()
            .map(|name| &*Box::leak(name.into_boxed_str()))
            .collect(),
        owns_window,
        reads_rate,
    });
    let names: Vec<String> = params.iter().map(|p| p.0.clone()).collect();
    let entry = GuestEntry {
        name,
        about,
        fingerprint,
        params: params
            .into_iter()
            .map(|(name, default, low, high)| GuestParam {
                name,
                default,
                range: [low, high],
            })
            .collect(),
        make: Arc::new(move |params| {
            let values = names.iter().map(|n| (n.clone(), params.number(n)));
            Ok(Box::new(Written::new(class.clone(), values.collect())))
        }),
    };
    add(entry).map_err(|why| ScenarioError::new_err(format!("error: {why}")))
}

/// A flow's controller.
#[derive(Debug)]
struct Written {
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

/// No pacing rate is as high, Mbit/s.
const FASTEST_MBPS: f64 = 1e9;

/// Ends a run whose controller has raised an exception.
struct Raised(PyErr);

/// Ends a run that was interrupted.
struct Stopped;

thread_local! {
    /// Set from outside when the run of this thread is to end.
    static INTERRUPT: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

impl Written {
    fn new(class: Arc<Class>, params: Vec<(String, f64)>) -> Self {
        let setup = Setup::default();
        Self {
            class,
            params,
            own: Classic::new(Standard, Aimd::RENO, None, setup),
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
    fn call<E>(&mut self, hook: Hook, before: Window, event: E)
    where
        E: for<'py> IntoPyObject<'py>,
    {
        let called = Python::attach(|py| self.called(py, hook, before, event));
        if let Err(error) = called {
            resume_unwind(Box::new(Raised(error)));
        }
        if INTERRUPT.get().is_some_and(|i| i.load(Ordering::Relaxed)) {
            resume_unwind(Box::new(Stopped));
        }
    }

    fn called<E>(&mut self, py: Python<'_>, hook: Hook, before: Window, event: E) -> PyResult<()>
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
            let (_, name) = Hook::ALL[hook as usize];
            let what = format!(
                "{name} left window = {:?}, ssthresh = {:?}, increase = {:?}, decrease = {:?}: \
                 not all of them are numbers, or the window is below 0 or above {LARGEST:e} \
                 segments",
                c.window, c.ssthresh, c.increase, c.decrease
            );
            return Err(FullpipeError::new_err(what));
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
            let (_, name) = Hook::ALL[hook as usize];
            let what = format!(
                "{name} left pacing_rate_mbps = {rate:?}: it is more than 0 and less than \
                 {FASTEST_MBPS:e}, or None where the sender paces"
            );
            return Err(FullpipeError::new_err(what));
        }
        let rate = c.pacing_rate_mbps;
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
        self.own = Classic::new(Standard, Aimd::RENO, None, *setup);
    }

    fn on_established(&mut self, ev: &RestartEvent) {
        self.own.on_established(ev);
        self.call(Hook::Start, self.present(), Start(*ev));
    }

    fn on_ack(&mut self, ev: &AckEvent) {
        if self.defines(Hook::Ack) {
            self.call(Hook::Ack, self.present(), Ack(*ev));
        } else {
            self.own.on_ack(ev);
            if self.own.window() > LARGEST {
                let increase = self.own.law_mut().increase;
                let what = format!(
                    "increase = {increase:?} lets the window grow above {LARGEST:e} segments"
                );
                resume_unwind(Box::new(Raised(FullpipeError::new_err(what))));
            }
        }
        if self.defines(Hook::Round) {
            self.round.take(ev);
            if ev.round_start {
                let round = std::mem::replace(&mut self.round, Round::from(ev.now));
                self.call(Hook::Round, self.present(), round);
            }
        }
    }

    fn on_congestion(&mut self, ev: &CongestionEvent) {
        let before = self.present();
        self.own.on_congestion(ev);
        if self.defines(Hook::Congestion) {
            self.call(Hook::Congestion, before, Congestion(*ev));
        }
    }

    fn on_lost(&mut self, ev: &LostSegment) {
        if self.defines(Hook::Lost) {
            self.call(Hook::Lost, self.present(), Lost(*ev));
        }
    }

    fn on_rto(&mut self, ev: &RtoEvent) {
        let before = self.present();
        self.own.on_rto(ev);
        if self.defines(Hook::Timeout) {
            self.call(Hook::Timeout, before, Timeout(*ev));
        }
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.own.on_recovery_exit(now);
        if self.defines(Hook::RecoveryExit) {
            self.call(Hook::RecoveryExit, self.present(), now.as_secs_f64());
        }
    }

    fn on_undo(&mut self, now: Time) {
        let before = self.present();
        self.own.on_undo(now);
        if self.defines(Hook::Undo) {
            self.call(Hook::Undo, before, now.as_secs_f64());
        }
    }

    fn on_idle(&mut self, ev: &IdleEvent) {
        self.own.on_idle(ev);
        if self.defines(Hook::Idle) {
            self.call(Hook::Idle, self.present(), ev.idle.as_secs_f64());
        }
    }

    fn exit_start_up(&mut self, now: Time) {
        self.own.exit_start_up(now);
    }

    fn on_mss_change(&mut self, ratio: f64) {
        self.own.on_mss_change(ratio);
    }

    fn cap_window(&mut self, most: f64) {
        self.setup.max_window = most;
        self.own.cap_window(most);
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

/// A ground on which controllers are written in Python: what one raises ends its run and is kept.
pub struct Hosting {
    ground: Box<dyn Ground>,
    interrupt: &'static AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Hosting {
    /// Of a ground whose runs end when `interrupt` is set.
    pub fn new(ground: Box<dyn Ground>, interrupt: &'static AtomicBool) -> Self {
        Self {
            ground,
            interrupt,
            raised: Mutex::new(None),
        }
    }

    /// The exception of a controller, or what `otherwise` makes of the error.
    pub fn error<E>(&self, error: E, otherwise: impl Fn(&E) -> PyErr) -> PyErr {
        let mut raised = self.raised.lock().unwrap_or_else(|e| e.into_inner());
        raised.take().unwrap_or_else(|| otherwise(&error))
    }
}

impl Ground for Hosting {
    fn name(&self) -> &str {
        self.ground.name()
    }

    fn fingerprint(&self) -> &str {
        self.ground.fingerprint()
    }

    fn kernel(&self) -> Option<String> {
        self.ground.kernel()
    }

    fn brought(&self, spec: &RunSpec) -> Vec<String> {
        self.ground.brought(spec)
    }

    fn at_once(&self) -> Option<std::num::NonZeroUsize> {
        self.ground.at_once()
    }

    fn in_real_time(&self) -> bool {
        self.ground.in_real_time()
    }

    fn notes(&self) -> Vec<String> {
        self.ground.notes()
    }

    fn check(&self, spec: &RunSpec) -> Result<(), GroundError> {
        let templates = spec.arrivals.iter().map(|a| &a.template);
        let mut flows = spec.flows.iter().chain(templates);
        let later = |f: &fullpipe_run::FlowSpec| {
            let stacks = f.changes.iter().filter_map(|c| c.change.stack.as_ref());
            stacks.chain([&f.stack]).any(|s| s.made_of().is_some())
        };
        match flows.find(|f| self.name() != "sim" && later(f)) {
            None => self.ground.check(spec),
            Some(f) => Err(GroundError::Unable {
                key: Some(format!("{}.stack", f.name)),
                what: format!("`{}` is written in Python", f.stack),
                hint: "such controllers run in the simulator: ground=\"sim\"".to_owned(),
            }),
        }
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        match hosted(self.interrupt, || self.ground.run(spec)) {
            Ok(outcome) => outcome,
            Err(Some(error)) => {
                let fault = GroundError::Fault(error.to_string());
                let mut first = self.raised.lock().unwrap_or_else(|e| e.into_inner());
                first.get_or_insert(error);
                Err(fault)
            }
            Err(None) => Err(GroundError::Interrupted),
        }
    }
}

/// Does something that calls controllers; the error is what one has raised, `None` after an
/// interrupt.
pub fn hosted<T>(
    interrupt: &'static AtomicBool,
    work: impl FnOnce() -> T,
) -> Result<T, Option<PyErr>> {
    let before = INTERRUPT.replace(Some(interrupt));
    let done = catch_unwind(AssertUnwindSafe(work));
    INTERRUPT.set(before);
    done.map_err(
        |panic: Box<dyn Any + Send>| match panic.downcast::<Raised>() {
            Ok(raised) => Some(raised.0),
            Err(panic) if panic.is::<Stopped>() => None,
            Err(panic) => resume_unwind(panic),
        },
    )
}

/// Seconds; `None` for no sample.
fn seconds(span: Span) -> Option<f64> {
    (span != Span::MAX).then(|| span.as_secs_f64())
}

macro_rules! event {
    ($(#[$meta:meta])* $name:ident($of:ty) {
        $($(#[$doc:meta])* $field:ident: $kind:ty = |$ev:ident| $value:expr;)+
    }) => {
        $(#[$meta])*
        #[pyclass(frozen, module = "fullpipe._native")]
        pub struct $name($of);

        #[pymethods]
        impl $name {
            $($(#[$doc])* #[getter] fn $field(&self) -> $kind { let $ev = &self.0; $value })+
        }
    };
}

event! {
    /// One ACK.
    Ack(AckEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        acked: u64 = |ev| ev.acked;
        sacked: u64 = |ev| ev.sacked;
        delivered_now: u64 = |ev| ev.delivered_now();
        lost: u64 = |ev| ev.lost;
        acks: u64 = |ev| ev.acks;
        advanced: bool = |ev| ev.advanced;
        rtt: Option<f64> = |ev| ev.rtt.map(Span::as_secs_f64);
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
        prior_flight: u64 = |ev| ev.prior_flight;
        flight: u64 = |ev| ev.flight;
        delivered: u64 = |ev| ev.delivered;
        delivery_rate: Option<f64> = |ev| ev.rate.map(|r| r.per_second());
        cwnd_limited: bool = |ev| ev.cwnd_limited;
        app_limited: bool = |ev| ev.app_limited;
        may_grow: bool = |ev| ev.may_grow();
        ce: u64 = |ev| ev.ce;
        round: u64 = |ev| ev.round;
        round_start: bool = |ev| ev.round_start;
        phase: &'static str = |ev| phase(ev.phase);
        snd_una: u64 = |ev| ev.snd_una;
        snd_nxt: u64 = |ev| ev.snd_nxt;
    }
}

event! {
    /// A sign of congestion.
    Congestion(CongestionEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        kind: &'static str = |ev| match ev.kind {
            CongestionKind::Loss => "loss",
            CongestionKind::Ecn => "ecn",
            CongestionKind::LocalDrop => "local-drop",
        };
        first_in_window: bool = |ev| ev.first_in_window;
        lost: u64 = |ev| ev.lost;
        flight: u64 = |ev| ev.flight;
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// A segment that was marked lost.
    Lost(LostSegment) {
        now: f64 = |ev| ev.now.as_secs_f64();
        seq: u64 = |ev| ev.seq;
        tx_in_flight: u64 = |ev| ev.tx_in_flight;
        lost: u64 = |ev| ev.lost;
        delivered: u64 = |ev| ev.delivered;
    }
}

event! {
    /// A retransmission timeout.
    Timeout(RtoEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        first: bool = |ev| ev.first;
        nested: bool = |ev| ev.nested;
        flight: u64 = |ev| ev.flight;
        pipe: u64 = |ev| ev.pipe;
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
        min_rtt: Option<f64> = |ev| seconds(ev.min_rtt);
    }
}

event! {
    /// The connection is open.
    Start(RestartEvent) {
        now: f64 = |ev| ev.now.as_secs_f64();
        srtt: f64 = |ev| ev.srtt.as_secs_f64();
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Disorder => "disorder",
        Phase::Cwr => "cwr",
        Phase::Recovery => "recovery",
        Phase::Loss => "loss",
    }
}

/// What the ACKs of a round trip said, together.
#[pyclass(frozen, module = "fullpipe._native")]
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// Its end, and how long it lasted, seconds.
    #[pyo3(get)]
    now: f64,
    #[pyo3(get)]
    duration: f64,
    /// ACKs, and segments that they newly acknowledged or SACKed.
    #[pyo3(get)]
    acks: u64,
    #[pyo3(get)]
    delivered_now: u64,
    /// Segments marked lost, and reported as marked by the network.
    #[pyo3(get)]
    lost: u64,
    #[pyo3(get)]
    ce: u64,
    /// RTT samples: smallest, mean and largest, seconds; none without a sample.
    #[pyo3(get)]
    rtt_min: Option<f64>,
    #[pyo3(get)]
    rtt: Option<f64>,
    #[pyo3(get)]
    rtt_max: Option<f64>,
    /// Smoothed RTT, and the smallest ever.
    #[pyo3(get)]
    srtt: f64,
    #[pyo3(get)]
    min_rtt: Option<f64>,
    /// Segments in the network now.
    #[pyo3(get)]
    flight: u64,
    /// The window was the limit at some ACK.
    #[pyo3(get)]
    cwnd_limited: bool,
    #[pyo3(get)]
    app_limited: bool,
    #[pyo3(get)]
    phase: &'static str,
    /// Its begin, seconds; RTT samples and their sum.
    begin: f64,
    samples: u64,
    sum: f64,
}

impl Round {
    fn from(now: Time) -> Self {
        let begin = now.as_secs_f64();
        Self {
            begin,
            ..Self::default()
        }
    }

    fn take(&mut self, ev: &AckEvent) {
        self.now = ev.now.as_secs_f64();
        self.duration = self.now - self.begin;
        self.acks += ev.acks;
        self.delivered_now += ev.delivered_now();
        self.lost += ev.lost;
        self.ce += ev.ce;
        if let Some(rtt) = ev.rtt.map(Span::as_secs_f64) {
            self.samples += 1;
            self.sum += rtt;
            self.rtt = Some(self.sum / self.samples as f64);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |x| x.min(rtt)));
            self.rtt_max = Some(self.rtt_max.map_or(rtt, |x| x.max(rtt)));
        }
        self.srtt = ev.srtt.as_secs_f64();
        self.min_rtt = seconds(ev.min_rtt);
        self.flight = ev.flight;
        self.cwnd_limited |= ev.cwnd_limited;
        self.app_limited |= ev.app_limited;
        self.phase = phase(ev.phase);
    }
}
