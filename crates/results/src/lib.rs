//! Runs and results.
//!
//! What it is: the cases of a scenario run ([`run`]) on a ground, each run is reduced to
//! [`metrics`], means over seeds are held against the scenario's expectations ([`result`]), kept in
//! a directory that survives a kill ([`store`]), captured for other tools ([`capture`]), compared
//! ([`compare`]), and followed over time ([`history`]). What it is not: it draws and prints nothing
//! and knows no command line.
//!
//! ```
//! use fullpipe_results::run::{Options, run_on};
//! use fullpipe_scenario::{Overrides, Scenario};
//!
//! // A built-in scenario, shortened: four stacks, each alone on 200 Mbit/s x 60 ms.
//! let overrides = Overrides {
//!     set: vec![("duration".into(), "15s".into())],
//!     ..Overrides::default()
//! };
//! let scenario = Scenario::load("first-run", &overrides)?;
//! let ran = run_on(&scenario, &Options::default(), &fullpipe_sim::run)?;
//! for case in &ran.result.cases {
//!     let main = case.flow("main").expect("it is in the scenario");
//!     assert!(main.value("goodput_mbps").is_some_and(|mbps| mbps > 140.0 && mbps < 200.0));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agreement;
pub mod capture;
pub mod compare;
pub mod falsify;
pub mod history;
pub mod label;
mod moment;
pub mod precision;
pub mod result;
pub mod run;
pub mod slow_start;
pub mod store;

pub use fullpipe_metrics as metrics;
