//! A scenario while it is drawn and minimised: the tables of a scenario file, open to every change.

use std::fmt::{self, Write as _};

use toml::{Table, Value};

/// The tables of a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft(Table);

/// Where a value of a draft is: keys, and places in arrays.
pub type Place = Vec<Step>;

/// A step into a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

impl Draft {
    /// Without path and flows.
    pub fn new(name: &str, duration: &str) -> Self {
        let mut table = Table::new();
        table.insert("name".to_owned(), name.into());
        table.insert("duration".to_owned(), duration.into());
        Self(table)
    }

    /// From the text of a scenario file.
    ///
    /// # Errors
    /// It is no TOML.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|e| e.to_string())
    }

    /// With the kernel's queue discipline, which every scenario had on ground `linux` before one
    /// could say whose it is.
    #[must_use]
    pub fn with_kernel_queue(mut self) -> Self {
        let path = self.0.get_mut("path").and_then(Value::as_table_mut);
        let queue = path.and_then(|path| path.get_mut("queue"));
        if let Some(queue) = queue.and_then(Value::as_table_mut)
            && queue.get("kind").and_then(Value::as_str) != Some("droptail")
            && !queue.contains_key("by")
        {
            queue.insert("by".to_owned(), "linux".into());
        }
        self
    }

    /// Sets a key of a table, which is made if it is missing.
    pub fn set(&mut self, table: &str, key: &str, value: impl Into<Value>) {
        let empty = Value::Table(Table::new());
        let table = self.0.entry(table).or_insert(empty);
        if let Some(table) = table.as_table_mut() {
            table.insert(key.to_owned(), value.into());
        }
    }

    /// Adds a table to an array of tables: a flow, some traffic.
    pub fn push(&mut self, array: &str, entry: Table) {
        let empty = Value::Array(Vec::new());
        let array = self.0.entry(array).or_insert(empty);
        if let Some(array) = array.as_array_mut() {
            array.push(Value::Table(entry));
        }
    }

    /// The flows.
    pub fn flows(&mut self) -> impl Iterator<Item = &mut Table> {
        let flows = self.0.get_mut("flow").and_then(Value::as_array_mut);
        let flows = flows.into_iter().flatten();
        flows.filter_map(Value::as_table_mut)
    }

    /// Congestion control of each flow, joined by `+`.
    pub fn stacks(&self) -> String {
        let flows = self.0.get("flow").and_then(Value::as_array);
        let stack = |f: &Value| Some(f.get("stack")?.as_str()?.to_owned());
        let stacks = flows.into_iter().flatten().filter_map(stack);
        stacks.collect::<Vec<_>>().join("+")
    }

    /// Every value, tables and arrays before what is in them.
    pub fn places(&self) -> Vec<Place> {
        let mut found = Vec::new();
        for (key, value) in &self.0 {
            descend(value, vec![Step::Key(key.clone())], &mut found);
        }
        found
    }

    /// The value at a place.
    pub fn get(&self, place: &[Step]) -> Option<&Value> {
        let (Step::Key(first), rest) = place.split_first()? else {
            return None;
        };
        let mut value = self.0.get(first)?;
        for step in rest {
            value = match step {
                Step::Key(key) => value.get(key)?,
                Step::Index(i) => value.get(*i)?,
            };
        }
        Some(value)
    }

    /// With another value at a place; `None`: without it.
    #[must_use]
    pub fn with(&self, place: &[Step], value: Option<Value>) -> Option<Self> {
        let mut draft = self.clone();
        let (last, before) = place.split_last()?;
        if before.is_empty() {
            let Step::Key(key) = last else { return None };
            match value {
                Some(value) => draft.0.insert(key.clone(), value),
                None => draft.0.remove(key),
            };
            return Some(draft);
        }
        match (draft.get_mut(before)?, last, value) {
            (Value::Table(t), Step::Key(key), Some(v)) => drop(t.insert(key.clone(), v)),
            (Value::Table(t), Step::Key(key), None) => drop(t.remove(key)),
            (Value::Array(a), Step::Index(i), Some(v)) => *a.get_mut(*i)? = v,
            (Value::Array(a), Step::Index(i), None) if *i < a.len() => drop(a.remove(*i)),
            _ => return None,
        }
        Some(draft)
    }

    fn get_mut(&mut self, place: &[Step]) -> Option<&mut Value> {
        let (Step::Key(first), rest) = place.split_first()? else {
            return None;
        };
        let mut value = self.0.get_mut(first)?;
        for step in rest {
            value = match step {
                Step::Key(key) => value.get_mut(key)?,
                Step::Index(i) => value.get_mut(*i)?,
            };
        }
        Some(value)
    }
}

fn descend(value: &Value, place: Place, found: &mut Vec<Place>) {
    found.push(place.clone());
    let deeper = |step| place.iter().cloned().chain([step]).collect();
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                descend(value, deeper(Step::Key(key.clone())), found);
            }
        }
        Value::Array(array) => {
            for (i, value) in array.iter().enumerate() {
                descend(value, deeper(Step::Index(i)), found);
            }
        }
        _ => {}
    }
}

/// Keys that lead their table; the others follow in alphabetical order.
const FIRST: &[&str] = &[
    "name", "about", "duration", "kind", "at", "rate", "rtt", "buffer", "stack", "preset",
];

/// As a scenario file, tables below the first level inline.
impl fmt::Display for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = |v: &Value| match v {
            Value::Table(_) => true,
            Value::Array(a) => a.first().is_some_and(Value::is_table),
            _ => false,
        };
        let mut text = String::new();
        for (key, value) in ordered(&self.0).filter(|(_, v)| !tables(v)) {
            writeln!(text, "{key} = {value}")?;
        }
        // The path before the flows that cross it.
        let mut rest: Vec<_> = self.0.iter().filter(|(_, v)| tables(v)).collect();
        rest.sort_by_key(|(_, v)| v.is_array());
        for (key, value) in rest {
            let (open, close, entries) = match value {
                Value::Array(a) => ("[[", "]]", a.iter().collect()),
                other => ("[", "]", vec![other]),
            };
            for table in entries.into_iter().filter_map(Value::as_table) {
                writeln!(text, "\n{open}{key}{close}")?;
                for (key, value) in ordered(table) {
                    writeln!(text, "{key} = {value}")?;
                }
            }
        }
        f.write_str(&text)
    }
}

fn ordered(table: &Table) -> impl Iterator<Item = (&String, &Value)> {
    let rank = |key: &str| FIRST.iter().position(|k| *k == key).unwrap_or(FIRST.len());
    let mut rows: Vec<_> = table.iter().collect();
    rows.sort_by_key(|(key, _)| rank(key));
    rows.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Draft {
        let mut d = Draft::new("x", "5s");
        d.set("path", "rtt", "30ms");
        d.set("path", "rate", "10Mbit/s");
        let mut reorder = Table::new();
        reorder.insert("probability".to_owned(), 0.01.into());
        d.set("path", "reorder", reorder);
        for stack in ["reno-linux", "cubic-linux"] {
            let mut flow = Table::new();
            flow.insert("stack".to_owned(), stack.into());
            d.push("flow", flow);
        }
        d
    }

    #[test]
    fn it_is_written_as_a_person_would_and_read_back() {
        let text = "name = \"x\"\nduration = \"5s\"\n\n[path]\nrate = \"10Mbit/s\"\n\
                    rtt = \"30ms\"\nreorder = { probability = 0.01 }\n\n[[flow]]\n\
                    stack = \"reno-linux\"\n\n[[flow]]\nstack = \"cubic-linux\"\n";
        assert_eq!(draft().to_string(), text);
        assert_eq!(Draft::parse(text).unwrap(), draft());
        assert_eq!(draft().stacks(), "reno-linux+cubic-linux");
    }

    #[test]
    fn a_queue_of_an_earlier_search_is_the_kernels() {
        let text = |queue: &str| format!("[path]\nqueue = {queue}\n");
        let linux = |queue: &str| {
            let draft = Draft::parse(&text(queue)).unwrap().with_kernel_queue();
            draft.to_string().contains("by = \"linux\"")
        };
        assert!(linux("{ kind = \"pie\" }"));
        assert!(!linux("{ kind = \"pie\", by = \"rfc\" }"));
        assert!(!linux("{ kind = \"droptail\" }"));
        assert_eq!(draft().with_kernel_queue(), draft());
    }

    #[test]
    fn any_place_can_be_removed_or_changed() {
        let all = draft();
        for place in all.places() {
            let without = all.with(&place, None).unwrap();
            assert_ne!(without, all, "{place:?}");
            let value = all.get(&place).unwrap().clone();
            assert_eq!(all.with(&place, Some(value)).unwrap(), all);
        }
        let second = [Step::Key("flow".to_owned()), Step::Index(1)];
        assert_eq!(all.with(&second, None).unwrap().stacks(), "reno-linux");
        assert_eq!(all.with(&[Step::Index(0)], None), None);
    }
}
