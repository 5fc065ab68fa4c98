//! The simulator held against Linux: one list of cells, run with both, reduced by one code,
//! compared with stated limits.
//!
//! [`cell`] lists the experiments; [`kernel`] runs them with Linux and [`simulated`] with the
//! simulator; [`observed`] turns what either saw into one kind of record, [`measure`] reduces it;
//! [`mod@reference`] keeps results as text, [`compare`] judges. [`causes`] says why cells are
//! outside; [`report`], [`docs`] and [`figure`] show it all. [`fuzz`] searches for what no cell
//! asks.

// Runs of the kernel show the time left.
#![allow(clippy::disallowed_methods)]

pub mod ablation;
pub mod causes;
pub mod cell;
pub mod compare;
pub mod docs;
pub mod figure;
pub mod fuzz;
pub mod kernel;
pub mod measure;
pub mod observed;
pub mod reference;
pub mod report;
pub mod simulated;
pub mod wording;
