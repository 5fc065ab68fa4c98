//! The tuner on the running kernel: flows over emulated paths between namespaces of their own, in a
//! control group of their own. As root only; elsewhere each test says why it is skipped.

#![allow(clippy::disallowed_methods)]

mod arithmetic;
mod daemon;
mod departures;
mod drift;
mod evidence;
mod flows;
mod ground;
mod laws;
mod layout;
mod long;
mod many;
mod returned;
mod schedule;
mod seen;
mod service;
mod spreading;
mod start;
mod support;
mod table;
mod trial;
