//! What runs in real time share: room for packets under way, priority and pace of the path's
//! thread, how a run is getting on, and a log.
//!
//! A path in real time is `fullpipe_sim::Path`, fed by sockets
//! (`fullpipe-net`) or by TUN devices (`fullpipe-emulate`); what it decides is the simulator's, and
//! what is here decides only how late a thread carries it out.
//!
//! - [`alert`]: waking up in time.
//! - [`live`]: how a run is getting on, for whoever watches.
//! - [`log`]: lines for somebody who may not read them, for whom nobody waits.
//! - [`pool`]: where packets wait while the path computes with their sizes.
//! - [`pace`]: a wake-up for each packet while they are few, a tick when they are many.
//! - [`priority`]: real-time priority, given up before the kernel takes the core away.

pub mod alert;
pub mod live;
pub mod log;
pub mod pace;
pub mod pool;
pub mod priority;
