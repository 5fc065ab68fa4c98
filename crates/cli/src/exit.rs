//! Exit codes, and the error type that carries them.

use std::fmt;
use std::process::ExitCode;

use fullpipe_report::figure::FigureError;
use fullpipe_results::run::RunError;
use fullpipe_results::store::StoreError;

use crate::one_path;

/// Exit statuses; `docs/cli.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done, and everything that was expected came true.
    Ok = 0,
    /// An expectation or a threshold failed.
    Failed = 1,
    /// The command line or the scenario is wrong.
    Usage = 2,
    /// The environment lacks something: a ground, a privilege, a writable directory.
    Environment = 3,
    /// A fault of fullpipe itself.
    Internal = 4,
    /// A run does not count: the test bed was not what the scenario says.
    NotValid = 5,
    /// Stopped by the user; finished runs are kept.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// What went wrong, in words, and how the program ends.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// One or more lines; empty: nothing to say.
    pub message: String,
    /// Remedies, printed after `hint:`.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The environment is at fault: `what` could not be done because of `error`.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Exit::Environment, format!("{what}: {error}"))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        if let RunError::Output(error) = &error {
            return crate::output::unwritten(error);
        }
        let exit = match error.exit_code() {
            2 => Exit::Usage,
            3 => Exit::Environment,
            130 => Exit::Interrupted,
            _ => Exit::Internal,
        };
        let hints = error.hint().into_iter().collect();
        Self {
            exit,
            message: error.to_string(),
            hints,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        RunError::from(error).into()
    }
}

impl From<FigureError> for Failure {
    fn from(error: FigureError) -> Self {
        match error {
            FigureError::Store(error) => error.into(),
            FigureError::Raster(_) => Self::new(Exit::Internal, error.to_string()),
            _ => Self::new(Exit::Environment, error.to_string()),
        }
    }
}

/// Prints what clap has to say: help and version to stdout, a wrong command line to stderr with a
/// `hint:`.
pub fn usage(error: &clap::Error) -> Exit {
    if !error.use_stderr() {
        return match crate::output::by_itself(|| error.print()) {
            Ok(()) => Exit::Ok,
            Err(failure) => {
                crate::output::error(&failure.message);
                failure.exit
            }
        };
    }
    let styled = error.render();
    let text = if crate::output::colour() {
        styled.ansi().to_string()
    } else {
        styled.to_string()
    };
    let text = text.replace("tip:", "hint:");
    let near = nearest_command(error).map(|near| format!("did you mean `{near}`?"));
    let text = match near.or_else(|| habit(error)) {
        Some(hint) => {
            // Neither how to pass it as a value nor what is only spelled alike was asked for.
            let others = [
                "as a value, use",
                "a similar argument exists",
                "a similar value exists",
                "a similar subcommand exists",
                "some similar subcommands exist",
            ];
            let lines = text
                .lines()
                .filter(|line| !others.iter().any(|other| line.contains(other)));
            let text = lines.collect::<Vec<_>>().join("\n");
            let text = text.replacen("\n\n", &format!("\n\n  hint: {hint}\n\n"), 1);
            text.replace("\n\n\n", "\n\n")
        }
        None => {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.retain(|line| !line.contains("as a value, use"));
            lines.join("\n").replace("\n\n\n", "\n\n")
        }
    };
    crate::output::say_styled(text.trim_end());
    Exit::Usage
}

/// How a flag that iperf3, scp or another command here has is spelled.
fn habit(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(written)) => Some(written.as_str()),
        _ => None,
    };
    let command = std::env::args_os().nth(1)?;
    let command = command.to_str()?;
    if let (ErrorKind::UnknownArgument, "serve") = (error.kind(), command)
        && let Some(Ok(port)) = named(ContextKind::InvalidArg).map(str::parse::<u16>)
    {
        return Some(format!(
            "`--listen '[::]:{port}'`: every address of this host, port {port}"
        ));
    }
    if let (ErrorKind::InvalidValue, "send") = (error.kind(), command)
        && named(ContextKind::InvalidArg).is_some_and(|arg| arg.starts_with("--test"))
    {
        return one_path::no_test(named(ContextKind::InvalidValue)?);
    }
    let spelling = match (error.kind(), command) {
        (
            ErrorKind::UnknownArgument,
            "send" | "serve" | "ping" | "run" | "emulate" | "observe" | "top",
        ) => {
            let written = named(ContextKind::InvalidArg)?.split('=').next()?;
            let flag = written.trim_start_matches('-');
            match command {
                "send" => habit_at_send(flag),
                "serve" => habit_at_serve(flag),
                "run" => habit_at_run(flag),
                "emulate" => habit_at_emulate(flag),
                "observe" | "top" => habit_at_observe(flag),
                _ => habit_at_ping(flag),
            }?
        }
        (ErrorKind::UnknownArgument, "-c" | "--client") => {
            "the client is a command: `fullpipe send HOST`"
        }
        (ErrorKind::UnknownArgument, "-s" | "-D" | "--server" | "--daemon") => {
            "the server is a command: `fullpipe serve --key FILE`"
        }
        // The flags of a test from memory beside files.
        (ErrorKind::ArgumentConflict, "send") => {
            let both = [ContextKind::InvalidArg, ContextKind::PriorArg].map(named);
            let has = |flag: &str| both.iter().flatten().any(|name| name.starts_with(flag));
            match has("[FILE|TO]") {
                true if has("--streams") => {
                    "a copy uses one stream: leave out `-P` (a port follows the host: \
                     `HOST:PORT:NAME`)"
                }
                true if has("--size") => "a copy sends whole files: leave out `-n`",
                true if has("--reverse") => {
                    "directories need no flag; what comes from there is `fullpipe send HOST:NAME .`"
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(spelling.to_owned())
}

fn habit_at_send(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "c" | "client" => "the host needs no flag: `fullpipe send HOST`",
        "p" | "port" => "a port follows the host: `fullpipe send HOST:7000`",
        "u" | "udp" => "datagrams are cross traffic: `--traffic udp,rate=50Mbit/s --only-traffic`",
        "k" | "blockcount" => "`--size '1000 segments'` sends an amount",
        "M" | "set-mss" => {
            "`--set path.mtu=1452` for segments of 1400 bytes: packets with their 52 of headers"
        }
        "l" | "len" | "length" => {
            "there is none: programs write and read by themselves; `--set path.mtu=9000` sets the \
             size of packets"
        }
        "O" | "omit" => {
            "`--set measure.warmup=3s` leaves out the beginning; it is a part of the time of `-t`"
        }
        "fq-rate" => "`--bitrate RATE` paces every stream",
        "cport" => "there is none: the kernel chooses the port of this host",
        "json-stream" => "`--format ndjson`",
        "pacing-timer" => "there is none: every packet leaves at its own time",
        "forceflush" => "there is none: every line is written at once",
        "Z" | "zerocopy" => "`--mode bulk` sends many packets per system call",
        "A" | "affinity" => "`--pin CPU` keeps the sending thread on a processor",
        "congestion" => "`--stack NAME`, or `-C NAME`",
        "parallel" => "`--streams N`, or `-P N`",
        "bytes" => "`--size 1GB`, or `-n 1GB`",
        "logfile" => "redirect stdout, or `--out DIR`",
        "d" | "dualtest" => "`--bidir`",
        "server" => "`fullpipe serve` is the server",
        "get-server-output" => "the result holds what both ends measured: `--format json`",
        "V" => "`-v` says more; `--format json` has every number",
        "1" | "one-off" | "s" => OF_A_SERVER,
        "B" | "bind" | "bind-dev" => {
            "there is none: the route to the host decides which of this host's addresses is used"
        }
        "F" | "file" => "files are copied: `fullpipe send FILE HOST:`",
        "N" | "no-delay" => "there is none to switch off: no segment waits for more data (Nagle)",
        "S" | "tos" | "dscp" => "there is none: packets leave with DSCP 0",
        "T" | "title" => "there is none: `--history DIR` keeps each run under its time",
        "rcv-timeout" | "snd-timeout" => {
            "there is none: a host that falls silent is given up after 10 s"
        }
        "connect-timeout" => "there is none: a host that does not answer is given up after 10 s",
        "f" => "rates are in Mbit/s; `--format json` is for programs",
        "r" | "recursive" | "a" | "archive" => {
            "directories need no flag: they are copied with all that is below them"
        }
        "4" | "6" => OF_A_FAMILY,
        _ => return None,
    })
}

fn habit_at_serve(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "s" | "server" => "`fullpipe serve` needs no flag",
        "p" | "port" => "`--listen '[::]:7000'`: every address of this host, port 7000",
        "B" | "bind" => "`--listen ADDRESS`",
        "D" | "daemon" => "`fullpipe serve &`; docs/packages.md has it as a service of systemd",
        "J" | "json" => "`--log json`",
        "1" | "one-off" => OF_A_SERVER,
        "4" => "`--listen 0.0.0.0`: IPv4 only",
        "6" => "`--listen '[::]'`, the default: IPv6, and IPv4 with it",
        _ => return None,
    })
}

fn habit_at_run(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "seeds" | "runs" => "`--repeat N` is how many seeds; `--seed N` is the first",
        "stack" | "cc" | "congestion" => "`--set flow.NAME.stack=cubic`, with the flow's name",
        "duration" | "time" | "t" => "`--set duration=5s`",
        "rate" | "bandwidth" => "`--set path.rate=1Gbit/s`",
        "rtt" | "delay" => "`--set path.rtt=60ms`",
        "buffer" | "queue" | "loss" | "mtu" => "a key of the path: `--set path.buffer=1BDP`",
        "dry-run" | "n" | "check" => "`fullpipe check FILE` runs nothing",
        "output" | "o" => "`--out DIR`",
        "json" | "J" => "`--format json`",
        "csv" => "`--format csv`",
        _ => return None,
    })
}

fn habit_at_emulate(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "bandwidth" | "bw" => "`--rate 200Mbit/s`",
        "delay" | "latency" => "`--rtt 40ms`, there and back",
        "limit" => "`--buffer '100 packets'`, or in bytes, time or `1BDP`",
        "reorder" => "`--set 'path.reorder={ probability = 0.01, extra = \"5ms\" }'`",
        "duplicate" | "corrupt" => "there is none: `--set path.KEY=VALUE` sets any key of [path]",
        _ if flag.starts_with(|c: char| c.is_ascii_digit()) => "nothing of a path is below zero",
        _ if flag.len() == 1 => {
            "the command follows `--`: `fullpipe emulate --rate 1Gbit/s --rtt 40ms -- iperf3 -c ...`"
        }
        _ => return None,
    })
}

fn habit_at_observe(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "t" | "time" | "seconds" => "`--duration 10s`",
        "n" | "count" => "`--duration`: how long; `--interval`: how often",
        "H" | "host" | "dst" => "`--to 192.0.2.0/24`",
        _ => return None,
    })
}

fn habit_at_ping(flag: &str) -> Option<&'static str> {
    Some(match flag {
        "p" | "port" => "a port follows the host: `fullpipe ping HOST:7000`",
        "f" | "flood" => "`--interval 10ms --count 1000` sends many; there is no flood",
        "W" | "w" | "timeout" | "deadline" => {
            "there is none: a probe is lost two round trips, at least 1 s, after the last was sent"
        }
        "4" | "6" => OF_A_FAMILY,
        _ => return None,
    })
}

/// The command that was probably meant: by the word that other tools have for it, or where clap's
/// own measure of likeness finds none (`rnu`).
fn nearest_command(error: &clap::Error) -> Option<&'static str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let other = OTHER_COMMANDS
        .iter()
        .find(|(words, _)| words.contains(&written.as_str()));
    let near = || match error.get(ContextKind::SuggestedSubcommand) {
        Some(_) => None,
        None => fullpipe_cc::registry::nearest(written, crate::args::COMMANDS.into_iter()),
    };
    other.map(|(_, command)| *command).or_else(near)
}

/// Words that other tools have for what a command does.
const OTHER_COMMANDS: &[(&[&str], &str)] = &[
    (
        &["plot", "fig", "draw", "graph", "chart", "picture", "table"],
        "figure",
    ),
    (
        &["simulate", "sim", "start", "exec", "bench", "test"],
        "run",
    ),
    (&["validate", "lint", "verify"], "check"),
    (&["html", "show", "view", "open"], "report"),
    (&["diff", "cmp"], "compare"),
    (&["server", "listen"], "serve"),
    (
        &["client", "iperf", "iperf3", "transfer", "copy", "put"],
        "send",
    ),
    (&["shell", "netem", "link", "mahimahi"], "emulate"),
    (&["ss", "monitor", "watch"], "observe"),
    (&["daemon", "policy", "apply"], "tune"),
    (&["ls", "scenarios", "stacks", "metrics"], "list"),
    (&["info", "capabilities"], "doctor"),
    (&["response", "formula"], "law"),
];

/// `-1`, which ends iperf3's server after a test.
const OF_A_SERVER: &str = "there is none: `fullpipe serve` serves until Ctrl-C";

/// `-4` and `-6` where another host is named.
const OF_A_FAMILY: &str = "the address decides: give that of IPv4 or IPv6 for the name";

#[cfg(test)]
mod tests {
    use fullpipe_results::store::Other;

    use super::*;

    #[test]
    fn failures_of_a_run_have_the_contract_s_exit_codes() {
        let internal = RunError::Internal {
            case: 0,
            params: String::new(),
            seed: 7,
            what: "1 packet too many".to_owned(),
        };
        let interrupted = RunError::Interrupted {
            done: 1,
            total: 2,
            kept: true,
            result: None,
        };
        let other = StoreError::OtherResult {
            dir: "out".into(),
            other: Other::Scenario("x".to_owned()),
        };
        let locked = StoreError::Locked { dir: "out".into() };
        for (failure, code) in [
            (Failure::from(internal), 4),
            (Failure::from(interrupted), 130),
            (Failure::from(other), 2),
            (Failure::from(locked), 3),
        ] {
            assert_eq!(failure.exit as u8, code, "{failure:?}");
            assert!(
                !failure.message.is_empty() && !failure.hints.is_empty(),
                "{failure:?}"
            );
        }
    }
}
