//! TCP flows of the running kernel, as the kernel shows them to every user: the heir of the Web100
//! tracer (Mathis, Heffner and Reddy 2003).
//!
//! - [`socket_diag`]: asks the kernel for all TCP sockets (sock_diag(7)), without privilege.
//! - [`tcp_info`]: the fields of `struct tcp_info`, one row each, with the names of RFC 4898.
//! - [`filter`]: which flows count.
//! - [`flow`]: samples of a flow over time, its rates between two of them.
//! - [`limit`]: what kept a flow from sending more in between, in a word.
//! - [`sampled`]: samples as rows of a trace, and the reductions, timeouts and undos between them.
//! - [`process`]: whose socket it is.
//! - [`tuner`]: which policy it has, where a tuner runs.
//!
//! What it is: reading. What it is not: it changes no flow, and it asks nothing that an
//! unprivileged user may not ask; other users' processes stay unnamed.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use fullpipe_observe::{Filter, Observer};
//!
//! let mut observer = Observer::new(Filter::default())?;
//! observer.observe(Duration::ZERO)?;
//! std::thread::sleep(Duration::from_secs(1));
//! for flow in observer.observe(Duration::from_secs(1))? {
//!     println!("{} -> {}: {:?}", flow.socket.local, flow.socket.remote, flow.limited_by());
//! }
//! # Ok::<(), fullpipe_observe::ObserveError>(())
//! ```

pub mod filter;
pub mod flow;
pub mod limit;
pub mod process;
pub mod sampled;
pub mod socket_diag;
pub mod tcp_info;
pub mod tuner;

pub use filter::{Filter, Network};
pub use flow::{Observation, Observer};
pub use limit::Limit;
pub use sampled::Sampled;
pub use socket_diag::{ObserveError, Socket, SocketDiag};
pub use tcp_info::{FIELDS, Field, TcpInfo};
pub use tuner::Tuned;
