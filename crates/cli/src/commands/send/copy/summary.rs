//! What a copy did, or would do: for people, and as CSV and JSON.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use fullpipe_flow::{Limit, LimitTimes};
use fullpipe_net::content::batch::Fact;
use fullpipe_net::file::{Item, LeftOut};
use fullpipe_net::session::control::Grant;
use fullpipe_net::shown::{harmless, shown, steers};
use fullpipe_results::result::printed;
use fullpipe_units::Rate;
use serde_json::{Value, json};

use crate::args::Format;
use crate::exit::Failure;
use crate::output;
use crate::table::number;

/// All that became of a copy.
#[derive(Debug, Default)]
pub struct Summary {
    /// Source, spelled by the user.
    pub from: String,
    /// With the address of the server.
    pub to: String,
    /// In the order of the copy.
    pub files: Vec<Fact>,
    /// Places of these by their names, as the files have them: two may look alike.
    pub places: HashMap<String, usize>,
    /// What stands for the names of entries that cannot be sent.
    pub missed: HashSet<String>,
    /// All that is to be sent, as far as it is known before.
    pub planned: Vec<Fact>,
    /// Entries of directories that are of no kind that is copied.
    pub left_out: HashSet<String>,
    /// Segments, of the runs of all sessions.
    pub retransmits: u64,
    /// What held the senders back, in all sessions.
    pub limited: LimitTimes,
    /// Rate that the server allows.
    pub max_rate: Option<Rate>,
    /// Bytes that arrived in sessions that ended before all had come; of which file each is, is
    /// not known.
    pub arrived: u64,
    /// Handshakes and all.
    pub took: Duration,
    /// In words, the cause if it ended before its time.
    pub partial: Option<String>,
    /// Nothing was changed.
    pub dry_run: bool,
}

/// Outcome for one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sent,
    Skipped,
    Resumed,
    Repaired,
    Failed,
    /// The copy ended before it had its name.
    Unfinished,
}

impl State {
    fn of(fact: &Fact, dry_run: bool) -> Self {
        match fact {
            _ if fact.failure.is_some() => Self::Failed,
            _ if fact.skipped => Self::Skipped,
            _ if fact.digest.is_none() && !dry_run => Self::Unfinished,
            _ if fact.damaged + fact.wrong > 0 => Self::Repaired,
            _ if fact.kept > 0 => Self::Resumed,
            _ => Self::Sent,
        }
    }

    /// Of a copy that was not made.
    fn would(self) -> &'static str {
        match self {
            Self::Sent => "would be sent",
            Self::Skipped => "would be skipped",
            Self::Resumed => "would be resumed",
            Self::Repaired => "would be repaired",
            Self::Failed => "would fail",
            Self::Unfinished => "would be unfinished",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Skipped => "skipped",
            Self::Resumed => "resumed",
            Self::Repaired => "repaired",
            Self::Failed => "failed",
            Self::Unfinished => "unfinished",
        }
    }
}

const STATES: [State; 6] = [
    State::Sent,
    State::Skipped,
    State::Resumed,
    State::Repaired,
    State::Failed,
    State::Unfinished,
];

impl Summary {
    /// Takes in what another session learnt of the same files, or of more.
    pub fn add(&mut self, facts: Vec<Fact>) {
        for mut fact in facts {
            // The server may have written it.
            fact.failure = fact.failure.as_deref().map(shown);
            match self.places.get(&fact.name) {
                None => {
                    self.places.insert(fact.name.clone(), self.files.len());
                    self.files.push(fact);
                }
                Some(place) => again(&mut self.files[*place], fact),
            }
        }
    }

    /// Takes in an entry that the copy lacks. Its name is none: a file may have what is shown.
    fn miss(&mut self, name: &str, why: &str) {
        if !self.missed.insert(name.to_owned()) {
            return;
        }
        self.files.push(Fact {
            name: name.to_owned(),
            failure: Some(shown(&format!("{name}: {why}"))),
            ..Fact::default()
        });
    }

    /// Takes in what a session learnt that ended before all had come: so many bytes had.
    pub fn add_partly(&mut self, mut facts: Vec<Fact>, arrived: u64) {
        facts.iter_mut().for_each(|fact| fact.sent = 0);
        self.add(facts);
        self.arrived += arrived;
    }

    /// Takes note of what is to be sent.
    pub fn plan<'i>(&mut self, items: impl Iterator<Item = &'i Item>) {
        self.planned.extend(items.map(|item| Fact {
            name: item.name.clone(),
            size: item.source.map(|source| source.size),
            ..Fact::default()
        }));
    }

    /// Takes in what no session has come to, of a copy that ended before its time.
    pub fn add_what_was_not_begun(&mut self) {
        let mut planned = std::mem::take(&mut self.planned);
        planned.retain(|fact| !self.places.contains_key(&fact.name));
        self.add(planned);
    }

    /// Takes in entries of directories that are no part of the copy: what it lacks has failed; of
    /// the others there is a warning each, unless it is to be `quiet`.
    pub fn leave_out(&mut self, entries: &[LeftOut], quiet: bool) {
        for entry in entries {
            if entry.is_missed {
                self.miss(&entry.name, &entry.why);
            } else if self.left_out.insert(entry.name.clone()) && !quiet {
                let (name, why) = (shown(&entry.name), shown(&entry.why));
                output::warning(&format!("{name}: left out: {why}"));
            }
        }
    }

    /// Takes note of what the server allows; a session that it ends is followed by another.
    pub fn granted(&mut self, grant: &Grant, quiet: bool) {
        if let (Some(most), None, false) = (grant.max_rate, self.max_rate, quiet) {
            output::warning(&format!(
                "server: no direction gets more than {most} (--max-rate)"
            ));
        }
        self.max_rate = grant.max_rate;
    }

    /// What held the senders back for most of the time, in a word.
    fn limited_by(&self) -> Option<&'static str> {
        let limited = match self.max_rate {
            Some(_) => self.limited.under_a_ceiling(),
            None => self.limited,
        };
        limited.longest().map(Limit::word)
    }

    /// Nothing is known of any file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Why files were not copied, each.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.files.iter().filter_map(|file| file.failure.clone());
        failures.collect()
    }

    /// Files, without directories.
    pub fn regular(&self) -> impl Iterator<Item = &Fact> {
        self.listed().filter(|fact| !fact.is_directory)
    }

    /// Files, and directories that could not be made.
    pub fn listed(&self) -> impl Iterator<Item = &Fact> {
        let is_told = |fact: &&Fact| fact.size.is_some() || fact.failure.is_some();
        self.files.iter().filter(is_told)
    }

    /// How many files were not copied; of a copy that lacks directories only, how many of these.
    pub fn lacks(&self) -> String {
        let failed = |fact: &&Fact| fact.failure.is_some();
        let all = self.regular().count();
        match self.regular().filter(failed).count() {
            0 => format!(
                "{} directories could not be made",
                self.listed().filter(failed).count()
            ),
            n => format!("{n} of {all} files were not copied"),
        }
    }

    fn count(&self, state: State) -> usize {
        let of = |fact: &&Fact| State::of(fact, self.dry_run) == state;
        self.regular().filter(of).count()
    }

    fn sum(&self, of: impl Fn(&Fact) -> u64) -> u64 {
        self.regular().map(of).fold(0, u64::saturating_add)
    }

    /// Bytes that need not be sent.
    fn before(&self) -> u64 {
        self.sum(|fact| match fact.skipped {
            true => fact.size.unwrap_or(0),
            false => fact.kept,
        })
    }

    fn sent(&self) -> u64 {
        self.sum(|fact| fact.sent) + self.arrived
    }

    fn seconds(&self) -> f64 {
        self.took.as_secs_f64().max(1e-9)
    }

    fn mbps(&self) -> f64 {
        8e-6 * self.sent() as f64 / self.seconds()
    }

    /// Prints it.
    ///
    /// # Errors
    /// Nobody reads.
    pub fn show(&self, format: Format) -> Result<(), Failure> {
        match format {
            Format::Table => output::data(&self.text()),
            Format::Csv => output::data(&self.csv()),
            Format::Json | Format::Ndjson => output::data(&escaped(&printed::line(&self.json()))),
        }
    }

    fn text(&self) -> String {
        let whole = |n: u64| number(n as f64, 1);
        let mut text = format!("{} -> {}\n", self.from, self.to);
        let all = self.sum(|fact| fact.size.unwrap_or(0));
        // Of what the copy lacks none have come, and the rate is without them.
        let bytes = self.sum(|fact| match fact.failure {
            None => fact.size.unwrap_or(0),
            Some(_) => 0,
        });
        if self.dry_run {
            let sent = whole(self.sum(|fact| fact.sent));
            text += &format!("would send {sent} of {} bytes\n", whole(all));
        } else if self.partial.is_some() {
            let (sent, seconds) = (whole(self.sent()), number(self.seconds(), 3));
            text += &format!("{sent} of {} bytes sent in {seconds} s\n", whole(all));
        } else if self.sent() == 0 && self.count(State::Sent) == 0 {
            let (bytes, seconds) = (whole(bytes), number(self.seconds(), 3));
            text += &format!("{bytes} bytes, nothing to send, in {seconds} s\n");
        } else {
            text += &format!(
                "{} bytes in {} s, {} Mbit/s, {} retransmits{}\n",
                whole(bytes),
                number(self.seconds(), 3),
                number(self.mbps(), 3),
                whole(self.retransmits),
                self.limited_by()
                    .map_or(String::new(), |word| format!(", limited by {word}")),
            );
        }
        let files: Vec<&Fact> = self.regular().collect();
        match files.as_slice() {
            [one] => {
                if let Some(digest) = one.digest {
                    text += &format!("BLAKE3 {} on both sides\n", digest.to_hex());
                }
            }
            many => {
                let word = |state: &State| match self.dry_run {
                    true => state.would(),
                    false => state.word(),
                };
                let counts = STATES.iter().map(|state| (self.count(*state), word(state)));
                let counts = counts.filter(|(n, _)| *n > 0);
                let counts: Vec<String> = counts.map(|(n, word)| format!("{n} {word}")).collect();
                text += &format!(
                    "{} files: {}\n",
                    whole(many.len() as u64),
                    counts.join(", ")
                );
            }
        }
        let (before, damaged) = match self.dry_run {
            true => (
                "bytes are there already",
                "bytes are damaged and would be sent again",
            ),
            false => (
                "bytes were there before",
                "bytes were damaged and sent again",
            ),
        };
        let left_out = match self.left_out.len() {
            1 => "entry of a directory left out",
            _ => "entries of directories left out",
        };
        for (bytes, what) in [
            (self.before(), before),
            (self.sum(|f| f.wrong + f.damaged), damaged),
            (self.left_out.len() as u64, left_out),
        ] {
            if bytes > 0 {
                text += &format!("{} {what}\n", whole(bytes));
            }
        }
        if let Some(why) = &self.partial {
            text += &format!("PARTIAL: {why}\n");
        }
        text
    }

    fn csv(&self) -> String {
        let mut text =
            "name,bytes,state,bytes_before,bytes_sent,bytes_repaired,blake3,error\n".to_owned();
        for fact in self.listed() {
            let digest = fact
                .digest
                .map_or(String::new(), |d| d.to_hex().to_string());
            text += &format!(
                "{},{},{},{},{},{},{digest},{}\n",
                cell(&harmless(&fact.name)),
                fact.size.unwrap_or(0),
                State::of(fact, self.dry_run).word(),
                before(fact),
                fact.sent,
                fact.wrong + fact.damaged,
                cell(fact.failure.as_deref().unwrap_or_default()),
            );
        }
        text
    }

    fn json(&self) -> Value {
        let files: Vec<Value> = self.listed().map(|fact| self.file(fact)).collect();
        let mut object = json!({
            "fullpipe": env!("CARGO_PKG_VERSION"),
            "from": self.from,
            "to": self.to,
            "bytes": self.sum(|fact| fact.size.unwrap_or(0)),
            "bytes_before": self.before(),
            "bytes_sent": self.sent(),
            "bytes_repaired": self.sum(|fact| fact.wrong + fact.damaged),
            "left_out": self.left_out.len(),
            "files": files,
        });
        for state in STATES {
            object[state.word()] = self.count(state).into();
        }
        match self.dry_run {
            true => object["dry_run"] = true.into(),
            false => {
                object["duration_s"] = self.seconds().into();
                object["goodput_mbps"] = self.mbps().into();
                object["retransmits"] = self.retransmits.into();
                object["limited_by"] = self.limited_by().into();
                let most = self.max_rate.map(Rate::as_mbps);
                object["server_limits"] = json!({ "max_rate_mbps": most });
            }
        }
        if let (1, Some(digest)) = (
            self.regular().count(),
            self.regular().find_map(|f| f.digest),
        ) {
            object["blake3"] = digest.to_hex().to_string().into();
        }
        if let Some(why) = &self.partial {
            object["partial"] = why.clone().into();
        }
        object
    }

    fn file(&self, fact: &Fact) -> Value {
        let mut object = json!({
            "name": fact.name,
            "bytes": fact.size,
            "state": State::of(fact, self.dry_run).word(),
            "bytes_before": before(fact),
            "bytes_sent": fact.sent,
            "bytes_repaired": fact.wrong + fact.damaged,
        });
        if let Some(digest) = fact.digest {
            object["blake3"] = digest.to_hex().to_string().into();
        }
        if let Some(why) = &fact.failure {
            object["error"] = why.clone().into();
        }
        object
    }
}

/// A file was copied once more, to repair it.
fn again(old: &mut Fact, new: Fact) {
    let first = old.clone();
    *old = Fact {
        // What it takes for the same is what the first attempt brought.
        skipped: first.skipped,
        kept: first.kept,
        wrong: first.wrong,
        damaged: first.damaged + new.damaged,
        sent: first.sent + new.sent,
        ..new
    };
}

fn before(fact: &Fact) -> u64 {
    match fact.skipped {
        true => fact.size.unwrap_or(0),
        false => fact.kept,
    }
}

/// JSON with the characters as escapes that would steer a terminal: names are exact, and harmless.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match steers(c) && c != '\n' {
            true => {
                let units = c.encode_utf16(&mut [0; 2]).to_vec();
                units
                    .iter()
                    .for_each(|unit| text += &format!("\\u{unit:04x}"));
            }
            false => text.push(c),
        }
    }
    text
}

/// A cell of a CSV table.
fn cell(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_dry_run_all_is_yet_to_come() {
        let fact = |name: &str, wrong| Fact {
            name: name.to_owned(),
            size: Some(100),
            kept: 50 - wrong,
            wrong,
            ..Fact::default()
        };
        let mut summary = Summary {
            dry_run: true,
            ..Summary::default()
        };
        summary.add(vec![fact("a", 10), fact("b", 0)]);
        let text = summary.text();
        for said in [
            "2 files: 1 would be resumed, 1 would be repaired\n",
            "90 bytes are there already\n",
            "10 bytes are damaged and would be sent again\n",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn names_that_look_alike_are_two_files() {
        let long = "d/".repeat(300);
        let pairs = [
            ("a\u{200b}".to_owned(), "a\u{200c}".to_owned()),
            (format!("{long}x"), format!("{long}y")),
        ];
        for (lost, came) in pairs {
            let mut summary = Summary::default();
            let failed = Fact {
                name: lost.clone(),
                size: Some(1),
                failure: Some(format!("{lost}: not a regular file")),
                ..Fact::default()
            };
            let whole = Fact {
                name: came.clone(),
                size: Some(1),
                digest: Some(blake3::hash(b"1")),
                ..Fact::default()
            };
            summary.add(vec![failed, whole]);
            assert_eq!(summary.failures().len(), 1);
            let text = summary.text();
            assert!(text.contains("\n1 bytes in"), "{text}");
            assert!(summary.failures()[0].ends_with(": not a regular file"));
            assert_eq!(summary.csv().lines().count(), 3);
            let json = escaped(&printed::line(&summary.json()));
            assert!(!json.contains(['\u{200b}', '\u{200c}']), "{json}");
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["files"][0]["name"], lost);
            assert_eq!(json["files"][1]["name"], came);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_no_file_that_looks_like_it() {
        let mut summary = Summary::default();
        let entry = LeftOut {
            name: "bad\u{fffd}".to_owned(),
            why: "its name is not UTF-8".to_owned(),
            is_missed: true,
        };
        summary.leave_out(std::slice::from_ref(&entry), true);
        summary.add(vec![Fact {
            name: entry.name.clone(),
            size: Some(1),
            digest: Some(blake3::hash(b"1")),
            ..Fact::default()
        }]);
        // Another session of the same copy.
        summary.leave_out(&[entry], true);
        assert_eq!(summary.failures(), ["bad\u{fffd}: its name is not UTF-8"]);
        assert_eq!(summary.lacks(), "1 of 2 files were not copied");
    }
}
