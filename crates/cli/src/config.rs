//! Defaults of flags that are not built in: a file, and the environment.
//!
//! `[send] stack = "bbr"` in the file and `FULLPIPE_SEND_STACK=bbr` in the environment are
//! `--stack bbr` of every `fullpipe send` that does not say otherwise. A flag goes before the
//! environment, the environment before the file: also before what it cannot be used with. They are
//! clap's defaults, so that whatever takes a default takes them, and `--help` shows them.

use std::env;
use std::fs;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use fullpipe_cc::registry::nearest;
use fullpipe_scenario::document::{Data, Entry, Fault, Node, Place, Sources};
use fullpipe_scenario::faults::{whole_file, written_out};
use fullpipe_scenario::{Diagnostic, Diagnostics};

/// Every default that is not built in.
#[derive(Debug, Default)]
pub struct Config {
    /// Where the file is, or would be; `None`: without a home, or switched off.
    pub file: Option<PathBuf>,
    /// Those of the environment before those of the file, which they override.
    pub settings: Vec<Setting>,
    /// Flags of the command that runs which have their value from here, as `--stack`.
    mine: Vec<String>,
}

/// One flag's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Names of the commands below `fullpipe`, then the flag: `["tune", "check", "json"]`.
    pub path: Vec<String>,
    /// One, or several of a flag that may be repeated.
    pub values: Vec<String>,
    /// `environment` or `file`.
    pub from: &'static str,
    /// Name of the variable, or file and line.
    pub place: String,
}

impl Setting {
    /// `tune.check.json`.
    pub fn key(&self) -> String {
        self.path.join(".")
    }
}

impl Config {
    /// Reads what there is for this command line.
    ///
    /// # Errors
    /// The file cannot be read, a key or a variable names no flag, or a flag refuses its value.
    pub fn read(root: &Command) -> Result<Self, Diagnostics> {
        let mut wrong = Diagnostics::default();
        let mut settings = environment(root, &mut wrong);
        let file = place();
        match file
            .as_ref()
            .map(|(path, needed)| (fs::read_to_string(path), path, *needed))
        {
            Some((Ok(text), path, _)) => match parsed(root, &path.display().to_string(), &text) {
                Ok(found) => settings.extend(found),
                Err(found) => wrong.0.extend(found.0),
            },
            Some((Err(e), path, true)) => wrong.0.push(Diagnostic {
                hint: Some(format!(
                    "{VARIABLE} names it; empty, it switches the file off"
                )),
                ..remark(path.display().to_string(), "", e.to_string())
            }),
            Some((Err(_), _, false)) | None => {}
        }
        match wrong.0.is_empty() {
            true => Ok(Self {
                file: file.map(|(path, _)| path),
                settings,
                mine: Vec::new(),
            }),
            false => Err(wrong),
        }
    }

    /// The command line with these defaults.
    pub fn applied(&self, root: Command) -> Command {
        // The environment, which comes first, is put over the file.
        self.settings.iter().rev().fold(root, |command, setting| {
            with_default(command, &setting.path, &setting.values)
        })
    }

    /// For this command line, which `matches` is with all of them: without those that it writes
    /// itself, and those that cannot be used with what it writes or with a default that goes before
    /// them.
    ///
    /// # Errors
    /// Two of the same place exclude each other.
    pub fn beside(self, root: &Command, matches: &ArgMatches) -> Result<Self, Diagnostics> {
        let (mut kept, mut mine): (Vec<Setting>, Vec<(usize, Placed<'_>)>) = Default::default();
        let mut wrong = Diagnostics::default();
        for setting in self.settings {
            let Some(of) = Placed::of(&setting, root, matches) else {
                kept.push(setting);
                continue;
            };
            if of.is_written(of.arg) || of.gives_way() {
                continue;
            }
            let excluded = mine.iter().find(|(_, other)| of.excludes(other));
            match excluded.map(|(index, _)| &kept[*index]) {
                None => {
                    mine.push((kept.len(), of));
                    kept.push(setting);
                }
                Some(other) if other.from != setting.from => {}
                Some(other) => wrong.0.push(Diagnostic {
                    hint: Some("leave out one of them; a flag goes before both".to_owned()),
                    ..remark(
                        setting.place.clone(),
                        "",
                        format!("`{}` cannot be used with `{}`", setting.key(), other.key()),
                    )
                }),
            }
        }
        if !wrong.0.is_empty() {
            return Err(wrong);
        }
        Ok(Self {
            mine: mine.iter().map(|(_, of)| of.long()).collect(),
            settings: kept,
            ..self
        })
    }

    /// Of the flags that a message is about, those that have their value from here: where it
    /// stands.
    pub fn behind(&self, message: &str) -> Vec<String> {
        let other = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
        let words: Vec<&str> = message.split(other).collect();
        let is_meant = |s: &&Setting| {
            let flag = s.path.last().map(|flag| format!("--{flag}"));
            flag.is_some_and(|f| words.contains(&f.as_str()) && self.mine.contains(&f))
        };
        let told = self.in_force().into_iter().filter(is_meant);
        told.map(|s| format!("it is set by {}", s.place)).collect()
    }

    /// What is in force, by key: that of the file is not where the environment has its own.
    pub fn in_force(&self) -> Vec<&Setting> {
        let first = |i: usize, s: &Setting| !self.settings[..i].iter().any(|t| t.path == s.path);
        let all = self.settings.iter().enumerate();
        let mut kept: Vec<&Setting> = all.filter(|(i, s)| first(*i, s)).map(|(_, s)| s).collect();
        kept.sort_by_key(|s| s.key());
        kept
    }
}

/// A setting of the command that runs, and what else the command line has.
struct Placed<'a> {
    command: &'a Command,
    arg: &'a Arg,
    matches: &'a ArgMatches,
    /// A switch that is off excludes nothing.
    is_on: bool,
}

impl<'a> Placed<'a> {
    /// `None`: another command runs.
    fn of(setting: &Setting, root: &'a Command, matches: &'a ArgMatches) -> Option<Self> {
        let (flag, names) = setting.path.split_last()?;
        let (mut command, mut inner) = (root, matches);
        for name in names {
            let (_, below) = inner.subcommand().filter(|(called, _)| called == name)?;
            (command, inner) = (command.find_subcommand(name)?, below);
        }
        let (_, arg) = flags(command).find(|(long, _)| long == flag)?;
        Some(Self {
            command,
            arg,
            matches: inner,
            is_on: takes_value(arg) || setting.values.iter().any(|v| v != "false"),
        })
    }

    fn long(&self) -> String {
        format!("--{}", self.arg.get_long().unwrap_or_default())
    }

    fn is_written(&self, arg: &Arg) -> bool {
        self.matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    }

    fn excludes(&self, other: &Self) -> bool {
        self.is_on && other.is_on && self.cannot_be_with(other.arg)
    }

    fn cannot_be_with(&self, other: &Arg) -> bool {
        let names = |a: &Arg, b: &Arg| {
            let all = self.command.get_arg_conflicts_with(a);
            all.iter().any(|arg| arg.get_id() == b.get_id())
        };
        names(self.arg, other) || names(other, self.arg)
    }

    /// The command line has what it cannot be used with, or is not meant for as a default.
    fn gives_way(&self) -> bool {
        let mut written = self.command.get_arguments().filter(|a| self.is_written(a));
        self.is_on && written.any(|arg| self.cannot_be_with(arg) || self.is_not_for(arg))
    }

    fn is_not_for(&self, other: &Arg) -> bool {
        let [own, other] = [self.arg, other].map(|arg| arg.get_id().as_str());
        NOT_FOR.contains(&(self.command.get_name(), own, other))
    }
}

/// Path of the file, and whether it was asked for: it may be missing if not.
fn place() -> Option<(PathBuf, bool)> {
    if let Some(named) = env::var_os(VARIABLE) {
        return (!named.is_empty()).then(|| (named.into(), true));
    }
    let base = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let base = base.or_else(home).filter(|path| path.is_absolute())?;
    Some((base.join("fullpipe/config.toml"), false))
}

/// Command, a flag of it, and what the flag's default gives way to although both can be written:
/// how long tests last says nothing of how long a copy may take.
const NOT_FOR: [(&str, &str, &str); 1] = [("send", "time", "to")];

/// Names the file.
pub const VARIABLE: &str = "FULLPIPE_CONFIG";

/// Flags that can have a default: those with a long name, without `--help` and `--version`.
pub fn flags(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let own = |arg: &Arg| !matches!(arg.get_action(), ArgAction::Help | ArgAction::Version);
    let long = command.get_arguments().filter(move |arg| own(arg));
    long.filter_map(|arg| Some((arg.get_long()?, arg)))
        .filter(|(long, _)| !["help", "version"].contains(long))
}

/// Every command with the names that lead to it, `fullpipe` itself with none.
pub fn commands(root: &Command) -> Vec<(Vec<String>, &Command)> {
    let mut all = vec![(Vec::new(), root)];
    let mut next = 0;
    while let Some((path, command)) = all.get(next).cloned() {
        for sub in command.get_subcommands() {
            all.push(([&path[..], &[sub.get_name().to_owned()]].concat(), sub));
        }
        next += 1;
    }
    all
}

fn with_default(command: Command, path: &[String], values: &[String]) -> Command {
    match path {
        [flag] => {
            let found = flags(&command).find(|(long, _)| long == flag);
            let id = found.map(|(_, arg)| arg.get_id().clone());
            match id {
                Some(id) => command.mut_arg(id, |arg| arg.default_values(values.to_vec())),
                None => command,
            }
        }
        [name, rest @ ..] => command.mut_subcommand(name, |sub| with_default(sub, rest, values)),
        [] => command,
    }
}

/// Of every variable that names a flag.
fn environment(root: &Command, wrong: &mut Diagnostics) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut known = Vec::new();
    let commands = commands(root);
    for (path, command) in &commands {
        for (long, arg) in flags(command) {
            let variable = variable(path, long);
            let value = env::var(&variable).unwrap_or_default();
            known.push(variable.clone());
            if value.is_empty() {
                continue;
            }
            let value = match (takes_value(arg), value.as_str()) {
                (false, "1") => "true".to_owned(),
                (false, "0") => "false".to_owned(),
                _ => value,
            };
            match refused(command, arg, long, &value) {
                Some(why) => wrong.0.push(remark(format!("{variable}={value}"), "", why)),
                None => settings.push(Setting {
                    path: [&path[..], &[long.to_owned()]].concat(),
                    values: vec![value],
                    from: "environment",
                    place: variable,
                }),
            }
        }
    }
    let of_command = |name: &str| {
        let starts = |p: &Vec<String>| !p.is_empty() && name.starts_with(&variable(p, ""));
        commands.iter().any(|(path, _)| starts(path))
    };
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|n| of_command(n) && !known.contains(n)) {
        wrong.0.push(Diagnostic {
            hint: likely(&name, known.iter().map(String::as_str)),
            ..remark(name.clone(), "", "no flag has this variable".to_owned())
        });
    }
    settings
}

/// `FULLPIPE_TUNE_CHECK_JSON`.
pub fn variable(path: &[String], long: &str) -> String {
    let names = path.iter().map(String::as_str).chain([long]);
    let names: Vec<String> = names.map(|n| n.to_uppercase().replace('-', "_")).collect();
    format!("FULLPIPE_{}", names.join("_"))
}

fn parsed(root: &Command, name: &str, text: &str) -> Result<Vec<Setting>, Diagnostics> {
    let mut sources = Sources::default();
    let source = sources.file(name, text);
    if text.len() > MAX_TEXT {
        let message = format!("the file is larger than {} kB", MAX_TEXT / 1000);
        return Err(whole_file(&sources, source, message));
    }
    let (entries, faults) = sources.parse(source);
    let mut reader = Reader {
        sources: &sources,
        name,
        settings: Vec::new(),
        faults,
    };
    if reader.faults.is_empty() {
        reader.table(root, &[], &entries);
    }
    match reader.faults.is_empty() {
        true => Ok(reader.settings),
        false => Err(written_out(&sources, reader.faults)),
    }
}

/// Longest file.
const MAX_TEXT: usize = 1 << 20;

struct Reader<'a> {
    sources: &'a Sources,
    name: &'a str,
    settings: Vec<Setting>,
    faults: Vec<Fault>,
}

impl Reader<'_> {
    fn table(&mut self, command: &Command, path: &[String], entries: &[Entry]) {
        for entry in entries {
            let inner = [path, std::slice::from_ref(&entry.name)].concat();
            let sub = command.find_subcommand(&entry.name);
            let flag = flags(command).find(|(long, _)| *long == entry.name);
            match (sub, &entry.node.data, flag) {
                (Some(sub), Data::Table(entries), _) => self.table(sub, &inner, entries),
                (_, _, Some((long, arg))) => self.flag(command, arg, long, inner, &entry.node),
                _ => {
                    let subs = command.get_subcommands().map(Command::get_name);
                    let known = flags(command).map(|(long, _)| long).chain(subs);
                    let hint = likely(&entry.name, known);
                    let message = match path {
                        [] => "unknown key".to_owned(),
                        some => format!("unknown key of `fullpipe {}`", some.join(" ")),
                    };
                    self.fault(&inner, entry.name_at, false, message, hint);
                }
            }
        }
    }

    fn flag(&mut self, command: &Command, arg: &Arg, long: &str, path: Vec<String>, node: &Node) {
        let several = matches!(arg.get_action(), ArgAction::Append);
        let nodes = match &node.data {
            Data::List(nodes) if several => nodes.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut values = Vec::new();
        for node in nodes {
            let value = match &node.data {
                Data::Text(text) => Ok(text.clone()),
                Data::Integer(n) => Ok(n.to_string()),
                Data::Float(x) => Ok(x.to_string()),
                Data::Flag(on) => Ok(on.to_string()),
                Data::Date | Data::List(_) | Data::Table(_) => {
                    Err("one value is expected".to_owned())
                }
            };
            let value = value.and_then(|value| match refused(command, arg, long, &value) {
                Some(why) => Err(why),
                None => Ok(value),
            });
            match value {
                Ok(value) => values.push(value),
                Err(why) => self.fault(&path, node.at, true, why, None),
            }
        }
        let line = self.sources.line(node.at);
        self.settings.push(Setting {
            path,
            values,
            from: "file",
            place: format!("{}:{line}", self.name),
        });
    }

    fn fault(
        &mut self,
        path: &[String],
        at: Place,
        shows_value: bool,
        message: String,
        hint: Option<String>,
    ) {
        let key = path.join(".");
        self.faults.push(Fault {
            at,
            key,
            shows_value,
            message,
            hint,
        });
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// Why a flag does not take the value, in clap's words.
fn refused(command: &Command, arg: &Arg, long: &str, value: &str) -> Option<String> {
    match arg.get_action() {
        ArgAction::Count if value.parse::<u8>().is_ok() => return None,
        ArgAction::Count => return Some("a small number is expected".to_owned()),
        _ if !takes_value(arg) => {
            let known = ["true", "false"].contains(&value);
            return (!known).then(|| "true or false is expected".to_owned());
        }
        _ => {}
    }
    // All of the command, because flags refer to each other; nothing else of it is asked.
    let probe = command.clone().mut_args(|arg| arg.required(false));
    let line = [command.get_name().to_owned(), format!("--{long}={value}")];
    let error = probe.try_get_matches_from(line).err()?;
    let of_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::NoEquals
    );
    let text = error.to_string();
    let said = text.lines().take_while(|line| !line.is_empty());
    let said: Vec<&str> = said.map(str::trim).collect();
    let said = said.join(" ");
    of_value.then(|| said.trim_start_matches("error: ").to_owned())
}

fn likely<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = nearest(name, known);
    Some(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`fullpipe config --all` lists what can be set".to_owned(),
    })
}

fn remark(file: String, key: &str, message: String) -> Diagnostic {
    Diagnostic {
        file,
        line: 0,
        column: 0,
        key: key.to_owned(),
        value: None,
        message,
        hint: None,
    }
}
