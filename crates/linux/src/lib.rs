//! Linux's own TCP as a ground, in virtual time and without privilege.
//!
//! A user-mode Linux kernel runs as a process of this machine. Its clock stands still while
//! anything happens and jumps to the next timer when nothing does, so that neither the speed nor
//! the load of the machine changes a result. Two network namespaces of it are the hosts. Between
//! them a driver of this crate, compiled into the kernel (`kernel/driver`), does what the links
//! of the specification say, and records every sender after every ACK; TCP, its congestion modules
//! and the queue disciplines are the kernel's own.
//!
//! - `build`: makes a kernel, once per version, in the user's cache; `module`: one with a
//!   congestion module of the user's own.
//! - `plan`: what a run asks of the kernel, or why it cannot be done.
//! - `guest`: runs it.
//! - `outcome`: from its records to the outcome of a run.

mod build;
mod error;
mod ground;
mod guest;
mod module;
mod outcome;
mod patches;
mod plan;
mod product;
mod records;
pub mod switches;

pub use build::{Request, Source, build, needs, rehearse};
pub use error::LinuxError;
pub use ground::Linux;
pub use module::with_module;
pub use plan::{notes, phase};
pub use product::{DEFAULT_VERSION, Product, cache, user_cache};
pub use switches::MODULES;
