//! The keys of a scenario file: name, values, default, example and description, once.
//!
//! Reading, the search for the nearest name, the JSON Schema and `docs/scenario.md` all come from these tables.

mod flow;
mod measure;
mod path;
mod queue;
mod traffic;
mod transport;

use super::value::Kind;

pub(super) use flow::FLOW;
pub(super) use measure::{EXPECT, MEASURE, REPORT};
pub(super) use path::{LINK, PATH, ROUTE};
pub(super) use queue::QUEUE;
pub(super) use traffic::{SIZE, TRAFFIC, TRAFFIC_OWN};

/// One key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    /// As it would be written in the file, or words in parentheses; empty: none.
    pub default: &'static str,
    /// As it would be written in the file.
    pub example: &'static str,
    /// Sentence without a full stop.
    pub doc: &'static str,
    /// May stand in `[matrix]`.
    pub varies: bool,
}

/// One word of a choice.
#[derive(Debug)]
pub(super) struct Word {
    pub word: &'static str,
    pub doc: &'static str,
}

const fn key(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        example,
        doc,
        varies: true,
    }
}

const fn fixed(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        example,
        doc,
        varies: false,
    }
}

const fn word(word: &'static str, doc: &'static str) -> Word {
    Word { word, doc }
}

/// Tables one after the other, in one.
const fn concat<const N: usize>(parts: &[&[Key]]) -> [Key; N] {
    let mut all = [parts[0][0]; N];
    let (mut part, mut at) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[at] = parts[part][i];
            (i, at) = (i + 1, at + 1);
        }
        part += 1;
    }
    assert!(at == N);
    all
}

/// The least time from one event of a run to the next that does without packets.
const MICROSECOND: u64 = 1_000;
const HOUR: u64 = 3_600_000_000_000;
const YEAR: u64 = 8760 * HOUR;
const ANY_TIME: Kind = Kind::Span { min: 0, max: YEAR };
const POSITIVE_TIME: Kind = Kind::Span { min: 1, max: YEAR };

/// Top level of the file.
pub(super) const TOP: &[Key] = &[
    fixed(
        "name",
        Kind::Name,
        "",
        r#""early-loss""#,
        "name of the scenario, and of its directory when several are run",
    ),
    fixed(
        "about",
        Kind::Text,
        r#""""#,
        r#""Time to full bandwidth after one early loss""#,
        "what it shows, with its sources",
    ),
    key(
        "duration",
        POSITIVE_TIME,
        "",
        r#""60s""#,
        "virtual time of a run",
    ),
    fixed(
        "seeds",
        Kind::Seeds,
        "1",
        "[1, 2, 3]",
        "seeds of every case: a number `n` stands for 1 to n, a list for itself",
    ),
    fixed(
        "path",
        Kind::Table(PATH),
        "",
        "",
        "the bottleneck of a dumbbell, shared by all flows",
    ),
    fixed(
        "flow",
        Kind::Tables(FLOW),
        "",
        "",
        "one sender and its receiver",
    ),
    fixed(
        "traffic",
        Kind::Tables(TRAFFIC),
        "",
        "",
        "short flows, datagrams or probes",
    ),
    fixed(
        "link",
        Kind::Tables(LINK),
        "",
        "",
        "a link beside those of [path]",
    ),
    fixed(
        "route",
        Kind::Tables(ROUTE),
        "",
        "",
        "the links that a flow or traffic crosses",
    ),
    fixed(
        "matrix",
        Kind::Free,
        "",
        r#"{ "path.mtu" = [1500, 9000] }"#,
        "dotted keys and lists of values: the product of all lists is run, the last key varies fastest",
    ),
    fixed(
        "quick",
        Kind::Free,
        "",
        r#"{ "duration" = "10s" }"#,
        "dotted keys that `--quick` sets; for a key of [matrix] a list takes the place of its list",
    ),
    fixed(
        "study",
        Kind::OneOrMany(&Kind::Text),
        "",
        r#"["first-run", "early-loss"]"#,
        "in a file with `name`, `about` and this alone: scenarios that make one report",
    ),
    fixed(
        "measure",
        Kind::Table(MEASURE),
        "",
        "",
        "what is measured and from when",
    ),
    fixed(
        "expect",
        Kind::Tables(EXPECT),
        "",
        "",
        "a bound that the result must keep",
    ),
    fixed("report", Kind::Tables(REPORT), "", "", "a figure to draw"),
];

#[cfg(test)]
mod tests {
    use super::super::document::{Data, Sources};
    use super::super::value::{Reader, nested};
    use super::*;

    /// Every key of every table, with its table's name.
    fn all() -> Vec<(String, &'static Key)> {
        fn walk(path: &str, keys: &'static [Key], out: &mut Vec<(String, &'static Key)>) {
            for key in keys {
                let full = format!("{path}.{}", key.name);
                out.push((full.clone(), key));
                let inner = match key.kind {
                    Kind::Tables(keys) => Some(keys),
                    _ => nested(&key.kind),
                };
                walk(&full, inner.unwrap_or_default(), out);
            }
        }
        let mut out = Vec::new();
        walk("", TOP, &mut out);
        out
    }

    #[test]
    fn defaults_and_examples_are_values_of_their_keys() {
        for (path, key) in all() {
            for text in [key.default, key.example] {
                if text.is_empty() || text.starts_with('(') {
                    continue;
                }
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, faults) = sources.parse(source);
                assert!(faults.is_empty(), "{path}: {text}: {faults:?}");
                let mut reader = Reader {
                    sources: &sources,
                    faults: Vec::new(),
                };
                let value = reader.value(&key.kind, &entries[0].node, &path, "");
                assert!(
                    value.is_some() && reader.faults.is_empty(),
                    "{path}: {text}: {:?}",
                    reader.faults
                );
            }
        }
    }

    #[test]
    fn keys_are_documented_and_unique() {
        let all = all();
        for (path, key) in &all {
            assert!(!key.doc.is_empty() && !key.doc.ends_with('.'), "{path}");
            let table = matches!(key.kind, Kind::Table(_) | Kind::Tables(_));
            assert!(table || !key.example.is_empty(), "{path} has no example");
        }
        let mut names: Vec<&String> = all.iter().map(|(path, _)| path).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }

    /// A value of any shape is read, or refused with a fault.
    #[test]
    fn every_kind_refuses_every_other_shape() {
        let shapes = [
            "\"\"",
            "\"x\"",
            "0",
            "-1",
            "1e300",
            "nan",
            "inf",
            "true",
            "1979-05-27",
            "[]",
            "[[]]",
            "{}",
            "[{}]",
            "\"\\u0000\"",
        ];
        for (path, key) in all() {
            for text in shapes {
                let mut sources = Sources::default();
                let source = sources.file("table", &format!("x = {text}"));
                let (entries, _) = sources.parse(source);
                let mut reader = Reader {
                    sources: &sources,
                    faults: Vec::new(),
                };
                let value = reader.value(&key.kind, &entries[0].node, &path, key.example);
                assert!(
                    value.is_some() || !reader.faults.is_empty(),
                    "{path} = {text}"
                );
                if matches!(entries[0].node.data, Data::Date) {
                    assert!(value.is_none(), "{path} = {text}");
                }
            }
        }
    }
}
