//! Runs and results.
//!
//! What it is: the cases of a scenario run ([`run`]) on a ground, each run is reduced to
//! [`metrics`], means over seeds are held against the scenario's expectations ([`result`]), kept in
//! a directory that survives a kill ([`store`]), captured for other tools ([`capture`]) and
//! compared ([`compare`]). What it is not: it draws and prints nothing and knows no command line.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use fullpipe_results::capture::Captures;
//! use fullpipe_results::run::{Options, Silent, run_on};
//! use fullpipe_scenario::{Overrides, Scenario};
//!
//! let text = r#"
//! name = "short"
//! about = "Five seconds of Reno"
//! duration = "5s"
//!
//! [path]
//! rate = "10Mbit/s"
//! rtt = "40ms"
//!
//! [[flow]]
//! name = "main"
//! stack = "reno"
//! "#;
//! let scenario = Scenario::parse(text, "short.toml", &Overrides::default())?;
//! let interrupt = AtomicBool::new(false);
//! let options = Options {
//!     jobs: 1,
//!     out: None,
//!     resume: false,
//!     captures: Captures::default(),
//!     progress: &Silent,
//!     interrupt: &interrupt,
//! };
//! let ran = run_on(&scenario, &options, &fullpipe_sim::run)?;
//! let main = ran.result.cases[0].flow("main").expect("it is in the scenario");
//! assert!(main.value("goodput_mbps").is_some_and(|g| g > 5.0 && g < 10.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agreement;
pub mod capture;
pub mod compare;
pub mod label;
pub mod precision;
pub mod result;
pub mod run;
pub mod store;

pub use fullpipe_metrics as metrics;
