//! Numbers, words and names: values without a unit.

use std::ops::RangeInclusive;

use fullpipe_cc::StackSpec;
use fullpipe_cc::registry::nearest;
use fullpipe_units::Fraction;

use super::dotted::is_name;
use super::hint::quoted;
use super::reader::Item;
use super::{Reader, Setting, Value, Word};
use crate::document::{Data, Entry, Node, shorten};

impl Reader<'_> {
    pub(super) fn name(&mut self, item: Item<'_>) -> Option<Value> {
        match &item.node.data {
            Data::Text(text) if is_name(text) => Some(Value::Text(text.clone())),
            Data::Text(_) => self.unfit(
                item,
                "a name consists of 1 to 64 letters, digits, `-` and `_`",
            ),
            _ => self.expected("a string", item),
        }
    }

    pub(super) fn word(&mut self, words: &'static [Word], item: Item<'_>) -> Option<Value> {
        let text = match &item.node.data {
            Data::Text(text) => text.as_str(),
            Data::Integer(_) => self.sources.text(item.node.at),
            _ => return self.expected("a word in quotes", item),
        };
        let names = || words.iter().map(|word| word.word);
        if let Some(word) = names().find(|word| *word == text) {
            return Some(Value::Word(word));
        }
        let hint = match nearest(text, names()) {
            Some(near) => format!("did you mean \"{near}\"? known: {}", quoted(names())),
            None if words.len() == 1 => format!("write {}", quoted(names())),
            None => format!("write one of {}", quoted(names())),
        };
        self.wrong(item, format!("unknown word `{}`", shorten(text)), hint)
    }

    pub(super) fn whole(
        &mut self,
        range: RangeInclusive<u64>,
        unit: &str,
        item: Item<'_>,
    ) -> Option<Value> {
        match item.node.data {
            Data::Integer(n) if u64::try_from(n).is_ok_and(|n| range.contains(&n)) => {
                Some(Value::Whole(n.unsigned_abs()))
            }
            Data::Integer(_) => {
                let (min, max) = range.into_inner();
                let blank = if unit.is_empty() { "" } else { " " };
                self.unfit(
                    item,
                    format!("a whole number from {min} to {max}{blank}{unit} is expected"),
                )
            }
            _ => self.expected("a whole number without quotes", item),
        }
    }

    pub(super) fn real(&mut self, range: RangeInclusive<f64>, item: Item<'_>) -> Option<Value> {
        let (min, max) = (*range.start(), *range.end());
        match number(item.node) {
            Some(x) if range.contains(&x) => Some(Value::Real(x)),
            Some(x) if min == f64::MIN || !x.is_finite() => self.expected("a finite number", item),
            Some(_) => self.unfit(item, format!("a number from {min} to {max} is expected")),
            None => self.expected("a number without quotes", item),
        }
    }

    pub(super) fn fraction(&mut self, item: Item<'_>) -> Option<Value> {
        let message = "a probability or part lies between 0 and 1";
        let Some(x) = number(item.node) else {
            let percent = match &item.node.data {
                Data::Text(text) => text.trim().strip_suffix('%'),
                _ => None,
            };
            let percent = percent.and_then(|text| text.trim().parse::<f64>().ok());
            if percent.is_some_and(|percent| percent > 100.0) {
                return self.unfit(item, message);
            }
            let fraction = self.quantity::<Fraction>(item)?;
            return Some(Value::Real(fraction.get()));
        };
        match Fraction::new(x) {
            Some(fraction) => Some(Value::Real(fraction.get())),
            None if (0.0..=100.0).contains(&x) => {
                self.wrong(item, message, format!("write \"{x}%\" for a percentage"))
            }
            None => self.unfit(item, message),
        }
    }

    pub(super) fn tolerance(&mut self, item: Item<'_>) -> Option<Value> {
        match (number(item.node), &item.node.data) {
            (Some(x), _) if x.is_finite() && x >= 0.0 => Some(Value::Tolerance(x, false)),
            (None, Data::Text(text)) if text.trim_end().ends_with('%') => {
                let part = self.quantity::<Fraction>(item)?;
                Some(Value::Tolerance(part.get(), true))
            }
            _ => self.expected("a number that is not negative, or a percentage", item),
        }
    }

    pub(super) fn bounds(&mut self, item: Item<'_>) -> Option<Value> {
        let pair = match &item.node.data {
            Data::List(items) if items.len() == 2 => number(&items[0]).zip(number(&items[1])),
            _ => None,
        };
        match pair {
            Some((low, high)) if !(low.is_finite() && high.is_finite()) => {
                let hint = "use `at_least` or `at_most` for one bound";
                self.wrong(item, "both bounds must be finite", hint)
            }
            Some((low, high)) if low > high => {
                let hint = format!("write [{high}, {low}]");
                self.wrong(item, "the lower bound is above the upper one", hint)
            }
            Some((low, high)) => Some(Value::Bounds(low, high)),
            None => self.unfit(item, "a list of two numbers is expected"),
        }
    }

    pub(super) fn seeds(&mut self, item: Item<'_>) -> Option<Value> {
        let hint = "write a number of seeds, or a list: [1, 2, 3]";
        let items = match &item.node.data {
            Data::Integer(n) => {
                return match u64::try_from(*n) {
                    Ok(n) if (1..=MAX_SEEDS).contains(&n) => Some(Value::Seeds((1..=n).collect())),
                    _ => self.wrong(item, format!("1 to {MAX_SEEDS} seeds are expected"), hint),
                };
            }
            Data::List(items) => items,
            Data::Float(_) => return self.wrong(item, "a number of seeds is whole", hint),
            _ => {
                let what = item.node.what();
                let message = format!("a number or a list of numbers is expected, this is {what}");
                return self.wrong(item, message, hint);
            }
        };
        let mut seeds = Vec::new();
        for node in items {
            match node.data {
                Data::Integer(n) if n >= 0 && n.unsigned_abs() <= LARGEST_SEED => {
                    seeds.push(n.unsigned_abs());
                }
                _ => {
                    let message = format!("a seed is a whole number from 0 to {LARGEST_SEED}");
                    return self.wrong(Item { node, ..item }, message, hint);
                }
            }
        }
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("seed {} stands twice in the list", twice[0]);
            return self.wrong(item, message, hint);
        }
        if seeds.is_empty() {
            return self.wrong(item, "the list is empty", hint);
        }
        Some(Value::Seeds(seeds))
    }

    /// Parameters of a stack: `{ increase = 6, limited.max_ssthresh = 100 }`.
    pub(super) fn settings(&mut self, item: Item<'_>) -> Option<Value> {
        let Data::Table(entries) = &item.node.data else {
            return self.expected("a table", item);
        };
        if entries.is_empty() {
            return self.unfit(item, "no parameter stands here");
        }
        let mut settings = Vec::new();
        // Every wrong one is named.
        let mut good = true;
        for entry in entries {
            good &= self.setting(entry, String::new(), item, &mut settings);
        }
        good.then_some(Value::Settings(settings))
    }

    fn setting(
        &mut self,
        entry: &Entry,
        prefix: String,
        item: Item<'_>,
        settings: &mut Vec<Setting>,
    ) -> bool {
        let name = format!("{prefix}{}", entry.name);
        let value = match &entry.node.data {
            Data::Integer(n) => n.to_string(),
            Data::Float(x) => x.to_string(),
            Data::Flag(on) => on.to_string(),
            Data::Text(text) => text.clone(),
            Data::Table(inner) => {
                let mut good = true;
                for inner in inner {
                    good &= self.setting(inner, format!("{name}."), item, settings);
                }
                return good;
            }
            _ => {
                let node = &entry.node;
                self.expected("a number, a word or a time", Item { node, ..item });
                return false;
            }
        };
        let at = entry.node.at;
        settings.push(Setting { name, value, at });
        true
    }

    /// Text that `check` accepts.
    pub(super) fn parsed(
        &mut self,
        what: &str,
        check: fn(&str) -> Result<(), (String, String)>,
        item: Item<'_>,
    ) -> Option<Value> {
        let text = match &item.node.data {
            Data::Text(text) => text,
            // What is right in quotes is meant without: a port.
            Data::Integer(n) if check(&n.to_string()).is_ok() => &n.to_string(),
            _ => return self.expected(&format!("{what} in quotes"), item),
        };
        match check(text) {
            Ok(()) => Some(Value::Text(text.clone())),
            Err((message, hint)) => self.wrong(item, message, hint),
        }
    }

    pub(super) fn stack(&mut self, item: Item<'_>) -> Option<Value> {
        let Data::Text(text) = &item.node.data else {
            return self.expected("a stack in quotes", item);
        };
        match StackSpec::parse(text) {
            Ok(stack) => Some(Value::Stack(Box::new(stack))),
            Err(error) => {
                let message = shorten_message(&error.to_string());
                self.refuse(item.node.at, item.key, message, error.hint());
                None
            }
        }
    }
}

fn number(node: &Node) -> Option<f64> {
    match node.data {
        Data::Integer(n) => Some(n as f64),
        Data::Float(x) => Some(x),
        _ => None,
    }
}

fn shorten_message(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.replace('\n', " "),
    }
}

/// A larger seed, and those that are counted up from it, would not fit the signed 64 bits of a
/// column.
pub const LARGEST_SEED: u64 = 9_000_000_000_000_000_000;
/// Seeds that a scenario may have, listed or not.
pub const MAX_SEEDS: u64 = 1_000_000;
