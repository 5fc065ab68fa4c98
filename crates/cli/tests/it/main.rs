//! The program as a user meets it: command lines, exit codes, output.

mod command_lines;
mod formats;
mod process;
mod reference;
mod runs;
mod schema;
