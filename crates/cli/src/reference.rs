//! Generated from the command line's definition: completions, man pages, the Markdown reference.

use std::fmt::Write as _;
use std::path::Path;

use clap::{CommandFactory, builder::PossibleValue};

use crate::args::{Args, Completions, Man};
use crate::exit::{Exit, Failure};
use crate::output;

/// `fullpipe completions`.
pub fn completions(args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "fullpipe", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Ok)
}

/// `fullpipe man`.
pub fn man(args: &Man) -> Result<Exit, Failure> {
    let mut command = Args::command();
    command.build();
    match &args.dir {
        Some(dir) => write_pages(&command, dir)?,
        None if args.markdown => output::data(&markdown(&command))?,
        None => output::data(&page(&command)?)?,
    }
    Ok(Exit::Ok)
}

fn write_pages(command: &clap::Command, dir: &Path) -> Result<(), Failure> {
    let fail = |path: &Path, e: &std::io::Error| {
        Failure::io(format!("cannot write `{}`", path.display()), e)
    };
    std::fs::create_dir_all(dir).map_err(|e| fail(dir, &e))?;
    for command in std::iter::once(command).chain(every(command)) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).map_err(|e| fail(&path, &e))?;
        output::say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn page(command: &clap::Command) -> Result<String, Failure> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|e| Failure::new(Exit::Internal, format!("cannot render the man page: {e}")))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn subcommands(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|c| c.get_name() != "help" && !c.is_hide_set())
}

/// Subcommands and theirs, in the order of the help.
fn every(command: &clap::Command) -> Vec<&clap::Command> {
    subcommands(command)
        .flat_map(|c| std::iter::once(c).chain(every(c)))
        .collect()
}

/// `docs/cli.md`.
fn markdown(command: &clap::Command) -> String {
    let mut out = String::from(
        "# Command line\n\n<!-- Made by `fullpipe man --markdown`; a test compares the two. -->\n\n",
    );
    out += "Data goes to stdout, words and progress to stderr.\n\n";
    section(&mut out, command, "fullpipe");
    for sub in every(command) {
        let name = sub.get_bin_name().unwrap_or(sub.get_name());
        let _ = write!(out, "\n## {name}\n\n");
        section(&mut out, sub, name);
    }
    out
}

fn section(out: &mut String, command: &clap::Command, name: &str) {
    let about = command
        .get_long_about()
        .or(command.get_about())
        .map(ToString::to_string);
    let about = about.unwrap_or_default();
    let stop = if about.ends_with('.') { "" } else { "." };
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let usage = usage
        .strip_prefix(command.get_bin_name().unwrap_or(name))
        .unwrap_or(usage);
    // Writing to a string cannot fail.
    let _ = write!(out, "{about}{stop}\n\n```text\n{name}{usage}\n```\n");
    if command.get_name() == "fullpipe" {
        let _ = write!(out, "\n| command | |\n|---|---|\n");
        for sub in subcommands(command) {
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(out, "| [`{0}`](#fullpipe-{0}) | {about} |", sub.get_name());
        }
    }
    let arguments: Vec<&clap::Arg> = command
        .get_arguments()
        .filter(|a| !matches!(a.get_id().as_str(), "help" | "version"))
        .collect();
    if !arguments.is_empty() {
        let _ = write!(out, "\n| argument | |\n|---|---|\n");
    }
    for argument in arguments {
        let _ = writeln!(out, "| {} | {} |", spelling(argument), meaning(argument));
    }
    let after = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string);
    for block in after
        .unwrap_or_default()
        .split("\n\n")
        .filter(|b| !b.is_empty())
    {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        let body: Vec<&str> = body
            .lines()
            .map(|l| l.strip_prefix("  ").unwrap_or(l))
            .collect();
        let _ = write!(out, "\n{head}\n\n```text\n{}\n```\n", body.join("\n"));
    }
}

fn spelling(argument: &clap::Arg) -> String {
    let value = argument.get_value_names().map(|names| {
        names
            .iter()
            .map(|n| n.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    });
    let takes_value = argument.get_action().takes_values();
    let mut names = Vec::new();
    names.extend(argument.get_short().map(|c| format!("-{c}")));
    names.extend(argument.get_long().map(|l| format!("--{l}")));
    let value = value.filter(|_| takes_value).map(|v| format!("<{v}>"));
    if names.is_empty() {
        return format!("`{}`", value.unwrap_or_default());
    }
    match value {
        Some(value) => format!("`{} {value}`", names.join(", ")),
        None => format!("`{}`", names.join(", ")),
    }
}

fn meaning(argument: &clap::Arg) -> String {
    let mut text = argument
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace('|', "\\|");
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .map(possible)
        .collect();
    if !values.is_empty() && argument.get_action().takes_values() {
        text += &format!(": {}", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|v| format!("`{}`", v.to_string_lossy()))
        .collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        text += &format!(" [default: {}]", defaults.join(", "));
    }
    text
}

fn possible(value: &PossibleValue) -> String {
    match value.get_help() {
        Some(help) => format!("`{}` ({help})", value.get_name()),
        None => format!("`{}`", value.get_name()),
    }
}
