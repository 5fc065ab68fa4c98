//! Dotted keys: what `flow.main.stack` names, and how a value gets there.

use fullpipe_cc::registry::nearest;

use super::{Config, EDIT_THE_FILE, Names, Section};
use crate::document::shorten;
use crate::keys::{Measures, Path, Top};
use crate::value::{Field, Key, Kind, Record, Table, Value, meant, nested, other_words};

/// A dotted key, resolved: tables, members and keys that it names.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(super) scope: Scope,
    chain: Vec<&'static Key>,
    pub key: &'static Key,
}

/// How two addresses lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Apart,
    Same,
    /// The first is a part of the second.
    Inside,
    /// The second is a part of the first.
    Around,
    /// They share some flows, but not all.
    Crossing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Top,
    Path,
    Measure,
    Members(Section, Vec<usize>),
}

impl Address {
    /// Finds what `text` names; the error is a message and a hint.
    pub fn find(text: &str, names: &Names) -> Result<Address, (String, Option<String>)> {
        let mut parts = text.split('.');
        let unknown = || {
            let all = all_keys(names);
            let near =
                slip_of(text, &all).or_else(|| nearest(text, all.iter().map(String::as_str)));
            let hint = near.map_or_else(
                || "keys look like `path.rate`, `flow.main.stack` or `duration`".to_owned(),
                |near| meant(text, near),
            );
            ("unknown key".to_owned(), Some(hint))
        };
        let whole = |name: &str| {
            (
                format!("`{name}` cannot be set as a whole"),
                Some(format!("name one of its keys, such as `{}`", sample(name))),
            )
        };
        let first = parts.next().unwrap_or_default();
        let (scope, keys) = match first {
            "path" => (Scope::Path, Path::KEYS),
            "measure" => (Scope::Measure, Measures::KEYS),
            word if Section::ALL.iter().any(|section| section.word() == word) => {
                let section = Section::ALL.into_iter().find(|s| s.word() == word);
                let section = section.unwrap_or(Section::Flow);
                let (all, keys) = (names.of(section), section.keys());
                let mut rest = parts.clone();
                let second = rest.next().ok_or_else(|| whole(word))?;
                let has_key = find(keys, second).is_some();
                let indices = match all.iter().position(|name| name == second) {
                    Some(i) => vec![i],
                    None if second == "*" => (0..all.len()).collect(),
                    // `flow.stack` with one flow.
                    None if all.len() == 1 && has_key => {
                        rest = parts.clone();
                        vec![0]
                    }
                    None if rest.clone().next().is_none() && has_key && !all.is_empty() => {
                        let hint = format!("write `{word}.<name>.{second}` or `{word}.*.{second}`");
                        return Err((format!("which {word} is meant?"), Some(hint)));
                    }
                    None if rest.clone().next().is_some() => {
                        let key: Vec<&str> = rest.collect();
                        let near = nearest(second, all.iter().map(String::as_str))
                            .or(all.first().map(String::as_str));
                        let hint = near
                            .map(|near| format!("did you mean `{word}.{near}.{}`?", key.join(".")));
                        return Err((format!("there is no {word} `{}`", shorten(second)), hint));
                    }
                    None => return Err(unknown()),
                };
                parts = rest;
                (Scope::Members(section, indices), keys)
            }
            name => {
                let key = find(Top::KEYS, name).ok_or_else(unknown)?;
                if matches!(key.kind, Kind::Free | Kind::Tables(_)) || key.name == Top::study.name {
                    return Err((
                        format!("`{name}` cannot be set"),
                        Some(EDIT_THE_FILE.to_owned()),
                    ));
                }
                if parts.next().is_some() {
                    return Err(unknown());
                }
                return Ok(Address {
                    scope: Scope::Top,
                    chain: vec![key],
                    key,
                });
            }
        };
        let mut key = find(keys, parts.next().ok_or_else(|| whole(first))?).ok_or_else(unknown)?;
        let mut chain = vec![key];
        for part in parts {
            key = nested(&key.kind)
                .and_then(|keys| find(keys, part))
                .ok_or_else(unknown)?;
            chain.push(key);
        }
        Ok(Address { scope, chain, key })
    }

    /// Whether one address contains the other.
    pub(super) fn relation(&self, other: &Address) -> Relation {
        let same_members = match (&self.scope, &other.scope) {
            (Scope::Members(s, a), Scope::Members(t, b)) if s == t => {
                if !a.iter().any(|i| b.contains(i)) {
                    return Relation::Apart;
                }
                a == b
            }
            (a, b) if a == b => true,
            _ => return Relation::Apart,
        };
        let shared = self
            .chain
            .iter()
            .zip(&other.chain)
            .take_while(|(a, b)| a.name == b.name)
            .count();
        let relation = match (shared == self.chain.len(), shared == other.chain.len()) {
            (true, true) => Relation::Same,
            (true, false) => Relation::Around,
            (false, true) => Relation::Inside,
            (false, false) => return Relation::Apart,
        };
        if same_members {
            relation
        } else {
            Relation::Crossing
        }
    }

    /// Puts a value in; the error says why it cannot be put there.
    pub fn apply(&self, config: &mut Config, field: &Field) -> Result<(), String> {
        match &self.scope {
            Scope::Top => put(&mut config.top, &self.chain, field),
            Scope::Path => put(&mut config.path, &self.chain, field),
            Scope::Measure => put(&mut config.measure, &self.chain, field),
            Scope::Members(section, indices) => {
                for &i in indices {
                    put(&mut config.tables(*section)[i], &self.chain, field)?;
                }
                Ok(())
            }
        }
    }
}

fn put(record: &mut Record, chain: &[&'static Key], field: &Field) -> Result<(), String> {
    let (key, rest) = match chain {
        [key] => {
            record.set(key, field.clone());
            return Ok(());
        }
        [key, rest @ ..] => (*key, rest),
        [] => return Ok(()),
    };
    let Some(inner) = nested(&key.kind) else {
        return Ok(());
    };
    if !record.is_given(key) {
        let value = Value::Record(Record::empty(inner, field.at));
        record.set(
            key,
            Field {
                value,
                at: field.at,
            },
        );
    }
    // `queue = "codel"` is `{kind = "codel"}`.
    if let (Some(Value::Word(kind)), Some(name)) = (
        record.field(key).map(|field| field.value.clone()),
        find(inner, "kind"),
    ) {
        let at = record.place(key);
        let mut table = Record::empty(inner, at);
        let value = Value::Word(kind);
        table.set(name, Field { value, at });
        let value = Value::Record(table);
        record.set(key, Field { value, at });
    }
    match record.field_mut(key).map(|field| &mut field.value) {
        Some(Value::Record(inner)) => put(inner, rest, field),
        Some(Value::List(items)) => match items.as_mut_slice() {
            [Value::Record(inner)] => put(inner, rest, field),
            [Value::Broken] => Ok(()),
            _ => Err(format!(
                "`{}` is a list of several tables here: vary or set it as a whole",
                key.name
            )),
        },
        Some(Value::Broken) | None => Ok(()),
        Some(_) => Err(format!("`{}` is not a table here", key.name)),
    }
}

/// The key of this name.
pub(super) fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

/// The key that is named without its table, or by the word that other tools have for it: of a table
/// itself before one of a table inside it.
fn slip_of<'a>(text: &str, all: &'a [String]) -> Option<&'a str> {
    let (table, name) = text.rsplit_once('.').unwrap_or(("", text));
    let of = |name: &str| {
        let known = all.iter().filter(|key| match key.rsplit_once('.') {
            Some((home, key)) => key == name && (home == table || table.is_empty()),
            None => *key == name,
        });
        known.min_by_key(|key| depth(key)).map(String::as_str)
    };
    let own = of(name);
    let other = other_words(name).find_map(of);
    match (own, other) {
        (Some(own), Some(other)) if depth(other) < depth(own) => Some(other),
        (own, other) => own.or(other),
    }
}

/// Tables around a key that are not those of the file itself: `flow.main.drop.time` has one,
/// `path.rtt` and `flow.main.stack` none.
fn depth(key: &str) -> usize {
    let mut parts = key.split('.');
    let named = parts
        .next()
        .is_some_and(|first| Section::ALL.iter().any(|s| s.word() == first));
    parts.count().saturating_sub(if named { 2 } else { 1 })
}

fn sample(name: &str) -> &'static str {
    match name {
        "flow" => "flow.main.stack",
        "traffic" => "traffic.mice.load",
        "link" => "link.first.rate",
        "measure" => "measure.warmup",
        _ => "path.rate",
    }
}

/// Every dotted key that can be set, for the search of the nearest.
fn all_keys(names: &Names) -> Vec<String> {
    let top = [Top::duration, Top::seeds, Top::name];
    let mut all: Vec<String> = top.iter().map(|key| key.name.to_owned()).collect();
    let mut add = |prefix: &str, keys: &'static [Key]| {
        for key in keys {
            all.push(format!("{prefix}.{}", key.name));
            for inner in nested(&key.kind).unwrap_or_default() {
                all.push(format!("{prefix}.{}.{}", key.name, inner.name));
            }
        }
    };
    add("path", Path::KEYS);
    add("measure", Measures::KEYS);
    for section in Section::ALL {
        for name in names.of(section).iter().take(MAX_SEARCHED) {
            add(&format!("{}.{name}", section.word()), section.keys());
        }
    }
    all
}

const MAX_SEARCHED: usize = 16;
