//! Controllers written in Python: a flow's controller calls the methods that its class defines, and
//! does in Rust what the class leaves as it is.
//!
//! What a class leaves is AIMD with slow start, with its `increase` and `decrease`: Reno's as they
//! are. So a class may define one method and have the rest right.
//!
//! Here is what a class says of itself; [`written`] is the controller of a flow, [`events`] what it
//! is told, [`hosting`] the ground whose runs such controllers may end.

mod events;
mod hosting;
mod written;

use std::sync::Arc;

use fullpipe_cc::Setup;
use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::registry::guest::{GuestEntry, GuestParam, register as add};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::ScenarioError;
use written::Written;

pub use events::{Ack, Congestion, Lost, Round, Start, Timeout};
pub use hosting::{Hosting, hosted};

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
    /// Name of the stack.
    stack: String,
    defined: [bool; Hook::ALL.len()],
    /// Attributes that traces and tables show.
    variables: Vec<&'static str>,
    owns_window: bool,
    reads_rate: bool,
    /// It may set a pacing rate.
    sets_rate: bool,
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
    sets_rate: bool,
) -> PyResult<()> {
    let class = Arc::new(Class {
        class,
        stack: name.clone(),
        defined: Hook::ALL.map(|(_, name)| defined.iter().any(|d| d == name)),
        // Traces hold names for as long as the program runs.
        variables: variables
            .into_iter()
            .map(|name| &*Box::leak(name.into_boxed_str()))
            .collect(),
        owns_window,
        reads_rate,
        sets_rate,
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
