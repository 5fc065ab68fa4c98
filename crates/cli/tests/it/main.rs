//! The program as a user meets it: command lines, exit codes, output.

// Waiting for another process takes the clock on the wall.
#![allow(clippy::disallowed_methods)]

mod agree;
mod architecture;
mod captures;
mod command_lines;
mod config;
mod copies;
mod crashes;
mod doctor;
mod emulate;
mod export;
mod falsify;
mod figure;
mod figure_looks;
mod figure_of;
mod first_minutes;
mod formats;
mod history;
mod law;
mod live;
mod observe;
mod pages;
mod pair;
mod partial;
mod process;
mod reference;
mod runs;
mod schema;
mod send;
mod serve;
mod server;
mod streams;
mod transfers;
mod tune;
mod unprivileged;
