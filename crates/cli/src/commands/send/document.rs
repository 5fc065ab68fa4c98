//! The scenario that the flags of `send` and `ping` describe, as text: what is checked, run,
//! measured and stored is the same as for a file.

use std::fmt::Write as _;

use fullpipe_grounds::within_bounds;
use fullpipe_scenario::{Case, Diagnostics, Overrides, Scenario, flow_keys};

use crate::args::Send;
use crate::exit::{Exit, Failure};
use crate::output;

/// Lines of a scenario file, and the flag behind each.
#[derive(Clone, Debug, Default)]
pub struct Document {
    text: String,
    /// The flag that each line comes from; empty: none.
    flags: Vec<String>,
    set: Vec<(String, String)>,
    /// Table whose keys need no table before them in `--set`.
    of: String,
}

impl Document {
    /// A scenario of this name.
    pub fn new(name: &str, about: &str) -> Self {
        let mut document = Self {
            of: format!("flow.{MAIN}"),
            ..Self::default()
        };
        document.text("name", name, "");
        // A path may have characters in its name that no text of a scenario has.
        let is_none = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        document.text("about", &about.replace(is_none, "\u{fffd}"), "");
        document
    }

    /// Begins a table: `[path]`, `[[flow]]`.
    pub fn table(&mut self, head: &str) {
        self.line(String::new(), "");
        self.line(head.to_owned(), "");
    }

    /// A key whose value is text, or a quantity with its unit.
    pub fn text(&mut self, key: &str, value: &str, flag: &str) {
        self.line(format!("{key} = {}", quoted(value)), flag);
    }

    /// A key whose value is a number, a truth value or the like.
    pub fn plain(&mut self, key: &str, value: impl std::fmt::Display, flag: &str) {
        self.line(format!("{key} = {value}"), flag);
    }

    /// Keys without a table are of this one, and not of the flow `main`.
    pub fn keys_are_of(&mut self, table: String) {
        self.of = table;
    }

    /// `--set`; a key of a flow alone means the flow `main`.
    pub fn set(&mut self, key: &str, value: &str) {
        let first = key.split('.').next().unwrap_or(key);
        let of_top = ["duration", "seeds", "name", "about"].contains(&key);
        let of_flow = flow_keys().any(|(name, _)| name == first) || (first == key && !of_top);
        let key = match of_flow {
            true => format!("{}.{key}", self.of),
            false => key.to_owned(),
        };
        self.set.push((key, value.to_owned()));
    }

    /// Whether `--set`, or what stands for it, sets such a key.
    pub fn sets(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.set.iter().any(|(key, _)| is_one(key))
    }

    /// Reads it, as `run` reads a file. What is wrong is said of the flag it comes from.
    pub fn scenario(&self, seed: Option<u64>) -> Result<Scenario, Diagnostics> {
        let overrides = Overrides {
            set: self.set.clone(),
            seed,
            ..Overrides::default()
        };
        Scenario::parse(&self.text, ORIGIN, &overrides).map_err(|mut diagnostics| {
            for d in diagnostics.0.iter_mut().filter(|d| d.file == ORIGIN) {
                let flag = d.line.checked_sub(1).and_then(|i| self.flags.get(i));
                d.file = match flag {
                    Some(flag) if !flag.is_empty() => flag.clone(),
                    _ => "the flags together".to_owned(),
                };
                (d.line, d.column) = (0, 0);
            }
            // There is none to edit.
            for d in &mut diagnostics.0 {
                if d.hint.as_deref() == Some(fullpipe_scenario::EDIT_THE_FILE) {
                    d.hint = Some("leave it out".to_owned());
                }
            }
            diagnostics.0.dedup();
            diagnostics
        })
    }

    fn line(&mut self, text: String, flag: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{text}");
        self.flags.push(flag.to_owned());
    }
}

/// The scenario, or all that is wrong with the flags.
pub fn checked(document: &Document, args: &Send) -> Result<Scenario, Failure> {
    let scenario = document.scenario(args.seed).map_err(wrong)?;
    sends_something(&scenario, args)?;
    for case in &scenario.cases {
        within_bounds(&case.run_spec(0))?;
    }
    Ok(scenario)
}

/// Refuses settings that leave neither a flow nor traffic: the test would pass its time in silence.
///
/// # Errors
/// There are such; the message names one.
pub fn sends_something(scenario: &Scenario, args: &Send) -> Result<(), Failure> {
    let is_silent = |case: &Case| case.flows.is_empty() && case.traffic.is_empty();
    if !scenario.cases.iter().any(is_silent) {
        return Ok(());
    }
    let off = |key: &str| key.rsplit('.').next() == Some("enabled");
    let set = args.set.iter();
    let set = set.rev().find(|(key, value)| off(key) && value != "true");
    let flag = set.map_or_else(
        || "the flags".to_owned(),
        |(key, value)| format!("`--set {key}={value}`"),
    );
    Err(
        Failure::new(Exit::Usage, format!("{flag}: nothing is left that sends")).hint(
            "leave it out; `--traffic KIND --only-traffic` sends cross traffic without a flow",
        ),
    )
}

/// Prints what is wrong with the flags, all of it.
pub fn wrong(diagnostics: Diagnostics) -> Failure {
    let lines = diagnostics.0.iter();
    lines.for_each(|d| output::error(&d.to_string()));
    // The diagnostics have said it all.
    Failure::new(Exit::Usage, "")
}

/// `KIND[,KEY=VALUE]...`: commas inside brackets belong to a value.
pub fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// `text` as a quoted TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Name of the flow.
pub const MAIN: &str = "main";

const ORIGIN: &str = "command line";

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Document {
        let mut d = Document::new("send", "to \"there\" \\ and\nback\r");
        d.text("duration", "60s", "--time");
        d.table("[path]");
        d.text("rate", "10Mbit/s", "");
        d.text("rtt", "10ms", "");
        d.table("[[flow]]");
        d.text("name", MAIN, "");
        d.text("stack", "cubic", "--stack");
        d
    }

    #[test]
    fn the_text_is_a_scenario() {
        let scenario = small().scenario(Some(7)).unwrap();
        assert_eq!(scenario.name, "send");
        assert_eq!(scenario.about, "to \"there\" \\ and\nback\u{fffd}");
        assert_eq!((scenario.seeds, scenario.cases.len()), (vec![7], 1));
    }

    #[test]
    fn what_is_wrong_is_said_of_its_flag() {
        let mut d = small();
        d.text("window", "3 apples", "--window");
        let error = d.scenario(None).unwrap_err().to_string();
        assert!(
            error.starts_with("error: --window: `flow.main.window"),
            "{error}"
        );
        let mut d = small();
        d.set("delayed_akc", "false");
        let error = d.scenario(None).unwrap_err().to_string();
        assert!(
            error.contains("--set") && error.contains("delayed_ack"),
            "{error}"
        );
    }

    /// Every key that a flow of a file has, with the example of the table it is documented by.
    #[test]
    fn set_takes_every_key_of_a_flow() {
        let mut taken = 0;
        for (key, example) in flow_keys().filter(|(key, _)| *key != "name") {
            let mut d = small();
            d.set("path.rate", "1Gbit/s");
            d.set(key, example);
            // What it changes are parameters of AIMD.
            if key == "change" {
                d.set("stack", "reno");
            }
            // `first_window` is a part of the receiver's, `nic_rate` one of an interface.
            if matches!(key, "nic_rate" | "host") {
                d.set("txqueuelen", "100");
            }
            if key == "enabled" {
                d.table("[[traffic]]");
                d.text("name", "x", "");
                d.text("kind", "ping", "");
            }
            let read = d.scenario(None);
            assert!(read.is_ok(), "{key} = {example}: {}", read.unwrap_err());
            taken += 1;
        }
        assert!(taken > 40, "{taken} keys");
    }

    #[test]
    fn commas_inside_brackets_stay() {
        assert_eq!(parts("udp"), ["udp"]);
        assert_eq!(
            parts("short-flows, size={ uniform = [2, 30] }, stack=highspeed(low_window=31,x=1)"),
            [
                "short-flows",
                "size={ uniform = [2, 30] }",
                "stack=highspeed(low_window=31,x=1)"
            ]
        );
    }
}
