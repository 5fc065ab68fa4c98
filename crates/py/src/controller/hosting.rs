//! A ground whose runs end when a controller raises an exception, or when somebody interrupts.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_run::{Ground, GroundError, Outcome, RunSpec, derive_seed};
use fullpipe_units::Time;
use pyo3::prelude::*;

use crate::error::FullpipeError;

/// Ends a run whose controller cannot go on.
pub(super) struct Raised {
    pub(super) why: Why,
    /// Name of its class's stack, and its method that was called last.
    pub(super) stack: String,
    pub(super) method: &'static str,
    pub(super) now: Time,
    /// Seed of its flow, which nothing else says which one it is.
    pub(super) seed: u64,
}

/// A controller that cannot go on, by its cause.
pub(super) enum Why {
    /// A method raised this exception.
    Exception(PyErr),
    /// It has left what is no window or rate, in words.
    Numbers(String),
}

impl From<PyErr> for Why {
    fn from(error: PyErr) -> Why {
        Why::Exception(error)
    }
}

impl Raised {
    /// The exception, with class, flow and time; a run knows its flows by their seeds.
    fn error(self, flow_of: &dyn Fn(u64) -> Option<String>) -> PyErr {
        let flow = flow_of(self.seed).map_or(String::new(), |flow| format!(" of flow `{flow}`"));
        let (stack, method, now) = (&self.stack, self.method, self.now.as_secs_f64());
        let place = format!("`{stack}`{flow}, {now} s: {method}");
        match self.why {
            Why::Numbers(what) => FullpipeError::new_err(format!("{place} {what}")),
            Why::Exception(error) => {
                let note = format!("in {place}");
                // Whoever refuses a note keeps the exception.
                let _ = Python::attach(|py| {
                    error.value(py).call_method1("add_note", (note,)).map(drop)
                });
                error
            }
        }
    }
}

/// Ends a run that was interrupted.
pub(super) struct Stopped;

thread_local! {
    /// Set from outside when the run of this thread is to end.
    pub(super) static INTERRUPT: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
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
        let flow_of = |seed: u64| {
            let templates = spec.arrivals.iter().map(|a| &a.template.name);
            let mut names = spec.flows.iter().map(|f| &f.name).chain(templates);
            names
                .find(|name| derive_seed(spec.seed, name) == seed)
                .cloned()
        };
        let goes_on = || !self.interrupt.load(Ordering::Relaxed);
        match hosted(self.interrupt, &flow_of, || {
            self.ground.run_while(spec, &goes_on)
        }) {
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

/// Does something that calls controllers, whose flows `flow_of` knows by their seeds; the error is
/// what one has raised, `None` after an interrupt.
pub fn hosted<T>(
    interrupt: &'static AtomicBool,
    flow_of: &dyn Fn(u64) -> Option<String>,
    work: impl FnOnce() -> T,
) -> Result<T, Option<PyErr>> {
    let before = INTERRUPT.replace(Some(interrupt));
    let done = catch_unwind(AssertUnwindSafe(work));
    INTERRUPT.set(before);
    done.map_err(
        |panic: Box<dyn Any + Send>| match panic.downcast::<Raised>() {
            Ok(raised) => Some(raised.error(flow_of)),
            Err(panic) if panic.is::<Stopped>() => None,
            Err(panic) => resume_unwind(panic),
        },
    )
}
