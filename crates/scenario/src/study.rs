//! Studies: files that name scenarios.

use std::path::Path;

use super::builtin;
use super::diagnostic::Diagnostics;
use super::document::{Entry, Sources};
use super::faults::written_out;
use super::keys::{SECTIONS, Top};
use super::value::{At, Key, Reader, Table};

/// Scenarios that make one report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Study {
    /// Name, from the file.
    pub name: String,
    /// One sentence or more.
    pub about: String,
    /// Names of built-in scenarios and paths, as [`Scenario::load`](super::Scenario::load) takes
    /// them.
    pub scenarios: Vec<String>,
    /// The file's text as it was read.
    pub text: String,
    /// Path of the file, or `built-in:<name>`.
    pub origin: String,
}

/// Reads a study; `None` if the text is that of something else.
pub(super) fn parse(text: &str, origin: &str) -> Option<Result<Study, Diagnostics>> {
    let mut sources = Sources::default();
    let file = sources.file(origin, text);
    let (entries, faults) = sources.parse(file);
    if !faults.is_empty() || !entries.iter().any(is_of_study) {
        return None;
    }
    let mut reader = Reader::new(&sources, SECTIONS);
    let record = reader.record(Top::KEYS, &entries, sources.top(file), "");
    let top = At::<Top>::new(&record, "");
    let is = |key: &Key, entry: &Entry| key.name == entry.name;
    for entry in &entries {
        let own = [Top::name, Top::about, Top::study];
        if !own.iter().any(|key| is(key, entry)) && Top::KEYS.iter().any(|key| is(key, entry)) {
            let message = "a study has no cases of its own";
            let hint = Some("put it into one of its scenarios".to_owned());
            reader.refuse_key(entry.name_at, &entry.name, message, hint);
        }
    }
    if !top.is_attempted(&Top::name) {
        let hint = Some("write for example name = \"my-study\"".to_owned());
        reader.refuse_key(record.at, Top::name.name, "this key is missing", hint);
    }
    let beside = match origin.starts_with("built-in:") {
        true => Path::new(""),
        false => Path::new(origin).parent().unwrap_or(Path::new("")),
    };
    let mut scenarios: Vec<String> = Vec::new();
    for name in top.study.iter().flatten() {
        let path = beside.join(name);
        let text = match builtin::find(name) {
            Some(text) => Some(text.to_owned()),
            None if path.is_file() => std::fs::read_to_string(&path).ok(),
            None => None,
        };
        let wrong = match &text {
            None => {
                let hint = match builtin::nearest_name(name) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => "name a built-in scenario, or a file beside this one".to_owned(),
                };
                Some((format!("there is no scenario `{name}`"), hint))
            }
            Some(text) if is_study(text) => {
                let hint = "name its scenarios instead".to_owned();
                Some((format!("`{name}` is a study itself"), hint))
            }
            Some(_) => None,
        };
        let known = match builtin::find(name) {
            Some(_) => name.clone(),
            None => path.display().to_string(),
        };
        let twice = scenarios.contains(&known);
        let twice = twice.then(|| (format!("`{name}` stands twice"), "name it once".to_owned()));
        if let Some((message, hint)) = wrong.or(twice) {
            top.refuse(&mut reader.findings, &Top::study, message, hint);
        }
        scenarios.push(known);
    }
    let faults = std::mem::take(&mut reader.findings.faults);
    if !faults.is_empty() {
        return Some(Err(written_out(&sources, faults)));
    }
    Some(Ok(Study {
        name: top.name.clone().unwrap_or_default(),
        about: top.about.trim().to_owned(),
        scenarios,
        text: text.to_owned(),
        origin: origin.to_owned(),
    }))
}

fn is_study(text: &str) -> bool {
    let mut sources = Sources::default();
    let file = sources.file("", text);
    sources.parse(file).0.iter().any(is_of_study)
}

fn is_of_study(entry: &Entry) -> bool {
    entry.name == Top::study.name
}
