//! Scenario files, runs, metrics and results.
//!
//! What it is: a scenario file goes in ([`scenario`]), its cases run ([`run`]) on a [`ground`], each run is reduced to metrics
//! that are defined once ([`metrics`]), means over seeds are held against the scenario's expectations ([`result`]), kept in a
//! directory that survives a kill ([`store`]), captured for other tools ([`export`]), drawn ([`figure`]), made into a page
//! ([`report`]) and compared ([`compare`]). What it is not: it prints nothing and knows no command line.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use fullpipe_suite::export::Captures;
//! use fullpipe_suite::run::{Options, Silent, run_all};
//! use fullpipe_suite::scenario::{Overrides, Scenario};
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
//! let ran = run_all(&scenario, &options)?;
//! let main = ran.result.cases[0].flow("main").expect("it is in the scenario");
//! assert!(main.value("goodput_mbps").is_some_and(|g| g > 5.0 && g < 10.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agreement;
pub mod compare;
pub mod export;
pub mod figure;
pub mod ground;
pub mod label;
pub mod metrics;
pub mod precision;
pub mod report;
pub mod result;
pub mod run;
pub mod scenario;
pub mod store;
