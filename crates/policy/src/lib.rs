//! Tuning policies: which congestion control, windows and buffers the flows of a path get.
//!
//! A policy is a TOML file and a folder of drop-ins ([`Policy::load`]). It is read with the keys of
//! `keys`, every fault with its place; each path's stack is lowered to fixed-point numbers and rows
//! of a(w) and b(w) (`laws`, `table`); [`Compiled`] is what the kernel side executes, and
//! [`Compiled::verdict`] says which rule a flow is of.
//!
//! ```
//! use fullpipe_policy::{Action, Policy, Source};
//!
//! let text = r#"
//!     [[path]]
//!     name = "cern"
//!     to = "192.0.2.0/24"
//!     stack = "aimd(increase=4,decrease=0.125)"
//! "#;
//! let source = Source { name: "policy.toml".into(), text: text.into() };
//! let policy = Policy::parse(&[source]).unwrap();
//! let Action::Ours { table, .. } = &policy.compiled.rules[0].action else { unreachable!() };
//! assert_eq!((table[0].increase, table[0].decrease), (4 << 8, 65536 / 8));
//! ```

mod aggression;
mod change;
mod compiled;
mod keys;
mod laws;
mod limits;
mod matching;
pub mod measured;
mod policy;
mod read;
mod reference;
mod simulated;
mod sizes;
mod spelling;
mod table;
mod warnings;

pub use aggression::Aggression;
pub use change::beside;
pub use compiled::{
    Action, Compiled, FLAG_SENDSTALL_IGNORE, LAW_BIC, LAW_CUBIC, LAW_FAST, LAW_HSTCP_LP, LAW_HTCP,
    LAW_SCALABLE, LAW_TABLE, LAW_VEGAS, LAW_WESTWOOD, OnDaemonLoss, Params, Prefix, Row, Rule,
    Selector, Side, TABLE_ROWS,
};
pub use keys::{Via, of_a_path};
pub use laws::{Facts, Lowered, Refusal, lower};
pub use matching::{Flow, Mismatch, Verdict};
pub use measured::{Measured, Measurements, ServerLimit};
pub use policy::{HEADERS, Later, PathFacts, Policy, Source, Waiting};
pub use reference::markdown as reference;
