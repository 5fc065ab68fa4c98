//! The search for scenarios on which the simulator and the kernel part ways.
//!
//! - `draft`, `draw`: a scenario file from a seed, made of everything both grounds may do.
//! - `run`, `trial`, `judge`: both grounds run it, as often as it takes to tell a disagreement from
//!   chance; `invariant`: what neither may break.
//! - `log`, `report`: what is remembered, and what it comes to.
//! - `minimise`, `corpus`: what is found becomes a few lines of scenario, and is kept with the
//!   kernel's numbers.

mod corpus;
mod draft;
mod draw;
mod invariant;
mod judge;
mod log;
mod minimise;
mod report;
mod run;
mod search;
mod trial;

pub use corpus::{Kept, corpus_dir, disagrees, read as read_corpus};
pub use draft::Draft;
pub use draw::{Class, Drawn, Paths, draw};
pub use judge::{Difference, Metric, Verdict};
pub use log::{Log, Record};
pub use report::{Group, Row, Summary};
pub use run::{Kernel, Seen};
pub use search::{Search, again, findings, least, line, search, trial};
pub use trial::{Compared, Trial};
