//! In which keys two scenarios differ: why a result is not that of this scenario.

use std::collections::BTreeMap;

use super::document::{Data, Entry, Node, Sources, shorten};
use super::value::member_path;

/// The text of a scenario and what was changed in it: keys and values of `--set`.
pub type Written<'a> = (&'a str, &'a [(String, String)]);

/// Keys with their values in `a` and in `b`, as written, where these are not the same; `None` where
/// it is not given. What only tells, judges, chooses or draws is left out.
pub fn differing_keys(
    a: Written<'_>,
    b: Written<'_>,
) -> Vec<(String, Option<String>, Option<String>)> {
    let (a, b) = (written(a), written(b));
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort();
    keys.dedup();
    let both = keys.into_iter().map(|key| (key, a.get(key), b.get(key)));
    let differ = both.filter(|(_, a, b)| a != b);
    let owned = differ.map(|(key, a, b)| (key.clone(), a.cloned(), b.cloned()));
    owned.collect()
}

fn written((text, set): Written<'_>) -> BTreeMap<String, String> {
    let mut sources = Sources::default();
    let file = sources.file("", text);
    let (entries, _) = sources.parse(file);
    let mut out = BTreeMap::new();
    for entry in entries.iter().filter(|e| !ASIDE.contains(&e.name.as_str())) {
        collect(&sources, entry.name.clone(), &entry.node, &mut out);
    }
    out.extend(set.iter().cloned());
    out
}

fn collect(sources: &Sources, key: String, node: &Node, out: &mut BTreeMap<String, String>) {
    match &node.data {
        Data::Table(entries) => {
            for entry in entries {
                collect(sources, format!("{key}.{}", entry.name), &entry.node, out);
            }
        }
        Data::List(items) if items.iter().any(|i| matches!(i.data, Data::Table(_))) => {
            for (i, item) in items.iter().enumerate() {
                let numbered = || format!("[{}]", i + 1);
                let name = match &item.data {
                    Data::Table(entries) => name_of(entries).unwrap_or_else(numbered),
                    _ => numbered(),
                };
                collect(sources, member_path(&key, &name), item, out);
            }
        }
        _ => {
            out.insert(key, shorten(&node.plain(sources)));
        }
    }
}

fn name_of(entries: &[Entry]) -> Option<String> {
    let name = entries.iter().find(|e| e.name == "name")?;
    match &name.node.data {
        Data::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// Keys and tables at the top that no run depends on; the cases are compared for themselves.
const ASIDE: [&str; 8] = [
    "about", "expect", "matrix", "name", "negative", "quick", "report", "seeds",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_differ_have_both_values_as_written() {
        let file = |duration: &str, rest: &str| {
            format!(
                "name = \"x\"\nduration = {duration}\n[path]\nrtt = \"80ms\"\nloss = 1e-5\n\
                 [[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"b\"\n{rest}"
            )
        };
        let one = file("\"60s\"", "stack = \"reno\"\n");
        let two = file(
            "\"12s\"",
            "stack = \"cubic\"\nstart = \"1s\"\n[[expect]]\nmetric = \"jain\"\n",
        );
        let set = [("path.loss".to_owned(), "0".to_owned())];
        let differ = differing_keys((&one, &[]), (&two, &set));
        let some = |text: &str| Some(text.to_owned());
        let row = |key: &str, a, b| (key.to_owned(), a, b);
        assert_eq!(
            differ,
            [
                row("duration", some("60s"), some("12s")),
                row("flow.b.stack", some("reno"), some("cubic")),
                row("flow.b.start", None, some("1s")),
                row("path.loss", some("1e-5"), some("0")),
            ]
        );
        assert_eq!(differing_keys((&one, &set), (&one, &set)), []);
    }
}
