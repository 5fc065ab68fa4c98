//! `fullpipe`: the command line. Data goes to stdout, words and progress to stderr; the exit codes
//! are in [`exit`].
//!
//! What it is: arguments, messages, tables. What it is not: it decides nothing about results;
//! `fullpipe-results` runs scenarios, computes metrics and keeps them.

// Progress shows how long a run has taken: the one place where the clock on the wall is asked.
#![allow(clippy::disallowed_methods)]

mod args;
mod commands;
mod exit;
mod ground;
mod output;
mod peer;
mod picture;
mod progress;
mod reference;
mod state;
mod table;
mod view;

use clap::Parser;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failure};

fn main() -> std::process::ExitCode {
    if fullpipe_emulate::household::is_first_process() {
        return Exit::Ok.into();
    }
    // The panic's own message has been printed by then.
    std::panic::catch_unwind(run)
        .unwrap_or_else(|_| {
            let version = env!("CARGO_PKG_VERSION");
            let failure = Failure::new(
                Exit::Internal,
                format!("internal error in fullpipe {version}"),
            );
            report(
                &failure
                    .hint("please report the lines above, with the command line and the scenario"),
            )
        })
        .into()
}

fn run() -> Exit {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    output::set_colour(args.color);
    let result = match &args.command {
        Command::Run(run) => commands::run::run(run),
        Command::Compare(compare) => commands::compare::compare(compare),
        Command::Agree(agree) => commands::agree::agree(agree),
        Command::Report(report) => commands::report::report(report),
        Command::Figure(figure) => commands::figure::figure(figure),
        Command::Export(export) => commands::export::export(export),
        Command::Serve(serve) => commands::serve::serve(serve),
        Command::List(list) => commands::list::list(list),
        Command::Schema(schema) => commands::schema::schema(schema),
        Command::Check(check) => commands::check::check(check),
        Command::Falsify(falsify) => commands::falsify::falsify(falsify),
        Command::Sweep(sweep) => commands::sweep::sweep(sweep),
        Command::Law(law) => commands::law::law(law),
        Command::Send(send) => commands::send::send(send),
        Command::Set(set) => commands::set::set(set),
        Command::Ping(ping) => commands::send::ping::ping(ping),
        Command::Observe(observe) => commands::observe::observe(observe),
        Command::Doctor(doctor) => commands::doctor::doctor(doctor),
        Command::Emulate(emulate) => commands::emulate::emulate(emulate),
        Command::Tune(tune) => commands::tune::tune(tune),
        Command::Linux(linux) => commands::linux::run(linux),
        Command::Completions(completions) => reference::completions(completions),
        Command::Man(man) => reference::man(man),
    };
    result.unwrap_or_else(|failure| report(&failure))
}

fn report(failure: &Failure) -> Exit {
    if !failure.message.is_empty() {
        output::error(&failure.message);
    }
    for hint in &failure.hints {
        output::hint(hint);
    }
    failure.exit
}
