//! `fullpipe`: the command line. Data goes to stdout, words and progress to stderr; the exit codes
//! are in [`exit`].
//!
//! What it is: arguments, messages, tables. What it is not: it decides nothing about results;
//! `fullpipe-results` runs scenarios, computes metrics and keeps them.

// Progress shows how long a run has taken: the one place where the clock on the wall is asked.
#![allow(clippy::disallowed_methods)]

mod args;
mod commands;
mod config;
mod exit;
mod foreign;
mod ground;
mod hangup;
mod live;
mod one_path;
mod output;
mod peer;
mod picture;
mod progress;
mod reference;
mod state;
mod stdout;
mod table;
mod view;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};
use fullpipe_scenario::Diagnostics;

use crate::args::{Args, Command};
use crate::config::Config;
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
    hangup::stays_ignored();
    let (args, config) = match parsed() {
        Ok(parsed) => parsed,
        Err(exit) => return exit,
    };
    output::set_colour(args.color);
    output::set_verbose(args.verbose);
    for setting in config.in_force() {
        let (key, value, place) = (setting.key(), setting.values.join(" "), &setting.place);
        output::detail(|| format!("{key} = {value} ({place})"));
    }
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
        Command::History(history) => commands::history::history(history),
        Command::Set(set) => commands::set::set(set),
        Command::Ping(ping) => commands::send::ping::ping(ping),
        Command::Top(top) => commands::top::top(top),
        Command::Observe(observe) => commands::observe::observe(observe),
        Command::Doctor(doctor) => commands::doctor::doctor(doctor),
        Command::Emulate(emulate) => commands::emulate::emulate(emulate),
        Command::Tune(tune) => commands::tune::tune(tune),
        Command::Linux(linux) => commands::linux::run(linux),
        Command::Config(flags) => commands::config::config(flags, &config),
        Command::Completions(completions) => reference::completions(completions),
        Command::Man(man) => reference::man(man),
    };
    result.unwrap_or_else(|failure| {
        let behind = config.behind(&failure.message);
        report(&behind.iter().fold(failure, Failure::hint))
    })
}

/// The command line, with the defaults that the user has set.
fn parsed() -> Result<(Args, Config), Exit> {
    let root = Args::command();
    let plain = root.clone().try_get_matches();
    // Help and version need no defaults, and may be what a wrong file is mended with.
    if let Err(shown) = &plain
        && !shown.use_stderr()
    {
        return Err(exit::usage(shown));
    }
    let usage = |wrong: Diagnostics| {
        wrong.0.iter().for_each(|d| output::error(&d.to_string()));
        Exit::Usage
    };
    let config = Config::read(&root).map_err(usage)?;
    if config.settings.is_empty() {
        return finished(plain, config);
    }
    let all = config.applied(root.clone()).try_get_matches();
    let config = match &all {
        Ok(all) => config.beside(&root, all).map_err(usage)?,
        Err(_) => config,
    };
    let matches = config.applied(root).try_get_matches();
    finished(matches, config)
}

fn finished(
    matches: clap::error::Result<ArgMatches>,
    config: Config,
) -> Result<(Args, Config), Exit> {
    let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
    match args {
        Ok(args) => Ok((args, config)),
        Err(error) => Err(exit::usage(&error)),
    }
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
