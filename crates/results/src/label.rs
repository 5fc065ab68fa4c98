//! Names of cases for people: only the parameters that differ, and only as much of a key and of a
//! table as is needed.

use serde_json::{Map, Value};

use crate::result::{Params, scalar_text};

/// Parameters of cases as text. A value that is a table, `{kind = "codel", ecn = true}`, is its
/// kind and what tells it from the others of its key: `codel with ecn`; a list of tables, as a
/// schedule has, is what they say: `rate 20Mbit/s at 5s; outage 2s at 8s`. Numbers of a key have
/// one notation, `1e-4` and `3e-3`.
pub fn texts<'a>(cases: impl IntoIterator<Item = &'a Params>) -> Vec<Vec<(String, String)>> {
    let cases: Vec<&Params> = cases.into_iter().collect();
    let mut texts: Vec<_> = cases.iter().map(|params| params.texts()).collect();
    let all = cases.iter().flat_map(|params| params.iter());
    let by_others = all.filter(|(_, v)| v.is_object() || is_small(v) || list(v).is_some());
    let mut keys: Vec<&str> = by_others.map(|(key, _)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let mut values: Vec<&Value> = Vec::new();
        for value in cases.iter().filter_map(|params| params.get(key)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let short = short(&values);
        for (params, texts) in cases.iter().zip(&mut texts) {
            let at = params
                .get(key)
                .and_then(|v| values.iter().position(|x| *x == v));
            let text = texts.iter_mut().find(|(k, _)| k == key);
            if let (Some(at), Some((_, text))) = (at, text) {
                text.clone_from(&short[at]);
            }
        }
    }
    texts
}

/// The values of a key, tables in short; whole where that would make two of them look alike.
fn short(values: &[&Value]) -> Vec<String> {
    // `"codel"` is `{kind = "codel"}`.
    let table = |value: &Value| match value {
        Value::Object(table) => Some(table.clone()),
        Value::String(kind) => Some(Map::from_iter([(KIND.to_owned(), kind.as_str().into())])),
        _ => None,
    };
    let tables: Vec<Option<Map<String, Value>>> = values.iter().map(|v| table(v)).collect();
    let same = |key: &str, value: &Value| {
        let mut others = tables.iter().flatten();
        values.len() > 1 && others.all(|table| table.get(key) == Some(value))
    };
    let exponents = values.iter().any(|value| is_small(value));
    let text = |(value, table): (&&Value, &Option<Map<String, Value>>)| {
        if let Some(x) = value.as_f64().filter(|x| exponents && *x != 0.0) {
            return format!("{x:e}");
        }
        let Some(table) = table.as_ref().filter(|_| value.is_object()) else {
            return list(value).unwrap_or_else(|| scalar_text(value));
        };
        let others = || table.iter().filter(|(key, _)| *key != KIND);
        let mut words: Vec<String> = others().filter(|(k, v)| !same(k, v)).map(entry).collect();
        let kind = table.get(KIND).map(scalar_text);
        if kind.is_none() && words.is_empty() {
            words.extend(others().map(entry));
        }
        // Without a comma: it stands in lists of such values.
        let words = words.join(" and ");
        match kind {
            Some(kind) if words.is_empty() => kind,
            Some(kind) => format!("{kind} with {words}"),
            None => words,
        }
    };
    let short: Vec<String> = values.iter().zip(&tables).map(text).collect();
    let alone = |text: &String| short.iter().filter(|other| *other == text).count() == 1;
    match short.iter().all(alone) {
        true => short,
        false => values.iter().map(|value| scalar_text(value)).collect(),
    }
}

/// Tables of a list, each with its time at the end; `None` of any other value.
fn list(value: &Value) -> Option<String> {
    let tables = value.as_array()?.iter().map(|item| {
        let table = item.as_object()?;
        let words = table.iter().filter(|(key, _)| *key != AT).map(entry);
        let words = words.collect::<Vec<_>>().join(" and ");
        Some(match table.get(AT) {
            Some(at) => format!("{words} at {}", scalar_text(at)),
            None => words,
        })
    });
    let words = tables.collect::<Option<Vec<_>>>()?.join("; ");
    Some(if words.is_empty() {
        "none".to_owned()
    } else {
        words
    })
}

/// The key of a table that names its time.
const AT: &str = "at";

/// `ecn`, `no ecn`, `target 5ms`, `set a 6 and b 0.3`.
fn entry((key, value): (&String, &Value)) -> String {
    let key = key.replace('_', " ");
    match value {
        Value::Bool(true) => key,
        Value::Bool(false) => format!("no {key}"),
        Value::Object(table) => {
            let words: Vec<String> = table.iter().map(entry).collect();
            format!("{key} {}", words.join(" and "))
        }
        value => format!("{key} {}", scalar_text(value)),
    }
}

/// True of a number that is written with an exponent.
fn is_small(value: &Value) -> bool {
    value.is_number() && scalar_text(value).contains('e')
}

/// The key of a table that names what it is.
const KIND: &str = "kind";

/// Keys that take more than one value, each with a short heading: the part after the last dot where
/// that is enough.
pub fn varying<'a>(cases: &'a [Vec<(String, String)>]) -> Vec<(&'a str, &'a str)> {
    let Some(first) = cases.first() else {
        return Vec::new();
    };
    let varies =
        |key: &str, value: &String| cases.iter().any(|c| find(c, key) != Some(value.as_str()));
    let keys: Vec<&str> = first
        .iter()
        .filter(|(key, value)| varies(key, value))
        .map(|(key, _)| key.as_str())
        .collect();
    let short = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let alone = |key: &&'a str| keys.iter().filter(|k| short(k) == short(key)).count() == 1;
    keys.iter()
        .map(|key| (*key, if alone(key) { short(key) } else { *key }))
        .collect()
}

/// What tells each case from the others: `reno, mtu 9000`. Empty where there is one case only.
pub fn labels(cases: &[Vec<(String, String)>]) -> Vec<String> {
    let varying = varying(cases);
    let one = |case: &Vec<(String, String)>| {
        let parts = varying.iter().map(|(key, head)| {
            let value = find(case, key).unwrap_or_default();
            // A stack names itself (two of them need their keys), and so does the name that a
            // scenario gives a case.
            if matches!(*head, "stack" | "case") {
                value.to_owned()
            } else {
                format!("{head} {value}")
            }
        });
        parts.collect::<Vec<_>>().join(", ")
    };
    cases.iter().map(one).collect()
}

/// Value of a key.
pub fn find<'a>(params: &'a [(String, String)], key: &str) -> Option<&'a str> {
    params
        .iter()
        .find(|(k, _)| k == key)
        .map(|(_, v)| v.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(params: &[(&str, &str)]) -> Vec<(String, String)> {
        params
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn only_what_differs_is_named() {
        let cases = [
            case(&[
                ("flow.main.stack", "reno"),
                ("path.mtu", "1500"),
                ("path.rtt", "80ms"),
            ]),
            case(&[
                ("flow.main.stack", "cubic"),
                ("path.mtu", "9000"),
                ("path.rtt", "80ms"),
            ]),
        ];
        assert_eq!(
            varying(&cases),
            [("flow.main.stack", "stack"), ("path.mtu", "mtu")]
        );
        assert_eq!(labels(&cases), ["reno, mtu 1500", "cubic, mtu 9000"]);
        assert_eq!(labels(&cases[..1]), [""]);
        let named = [
            case(&[("case", "with a loss")]),
            case(&[("case", "without")]),
        ];
        assert_eq!(labels(&named), ["with a loss", "without"]);
    }

    #[test]
    fn a_list_of_tables_is_what_they_say() {
        let of = |values: &[&str]| {
            let params = |value: &&str| {
                let value: Value = serde_json::from_str(value).unwrap();
                Params::new(vec![("path.schedule".to_owned(), value)])
            };
            let all: Vec<Params> = values.iter().map(params).collect();
            let texts = texts(&all).into_iter().flatten();
            texts.map(|(_, text)| text).collect::<Vec<_>>()
        };
        let found = of(&[
            "[]",
            r#"[{"at":"5s","rate":"20Mbit/s"}]"#,
            r#"[{"at":"5s","outage":"2s"},{"at":"8s","rtt":"120ms","loss":{"model":"bernoulli"}}]"#,
            r#"[{"at":"20s","set":{"a":6,"b":0.3}}]"#,
            "[40,41]",
        ]);
        let short = [
            "none",
            "rate 20Mbit/s at 5s",
            "outage 2s at 5s; loss model bernoulli and rtt 120ms at 8s",
            "set a 6 and b 0.3 at 20s",
            "[40,41]",
        ];
        assert_eq!(found, short);
    }

    /// The order of keys does not matter, and no two values look alike.
    #[test]
    fn a_table_is_its_kind_and_what_tells_it_apart() {
        let of = |values: &[&str]| {
            let params = |value: &&str| {
                let value: Value = serde_json::from_str(value).unwrap();
                Params::new(vec![("path.queue".to_owned(), value)])
            };
            let all: Vec<Params> = values.iter().map(params).collect();
            let texts = texts(&all).into_iter().flatten();
            texts.map(|(_, text)| text).collect::<Vec<_>>()
        };
        let codel = r#"{"kind":"codel","limit":9,"ecn":true}"#;
        let other = r#"{"ecn":true,"kind":"codel","limit":9}"#;
        let red = r#"{"kind":"red","limit":9,"ecn":false}"#;
        let found = of(&[
            codel,
            red,
            r#""codel""#,
            other,
            r#"{"kind":"pie","limit":9}"#,
        ]);
        let short = [
            "codel with ecn and limit 9",
            "red with no ecn and limit 9",
            "codel",
        ];
        assert_eq!(found[..3], short);
        assert_eq!(
            found[3..],
            ["codel with ecn and limit 9", "pie with limit 9"]
        );
        assert_eq!(of(&[codel, red]), ["codel with ecn", "red with no ecn"]);
        assert_eq!(of(&[codel]), ["codel with ecn and limit 9"]);
        assert_eq!(of(&["0.0001", "0.003", "0"]), ["1e-4", "3e-3", "0"]);
        assert_eq!(of(&["0.001", "0.3"]), ["0.001", "0.3"]);
        let reordered = r#"{"probability":0.01,"extra":"5ms"}"#;
        assert_eq!(
            of(&[reordered, "0"]),
            ["extra 5ms and probability 0.01", "0"]
        );
        assert_eq!(
            of(&[r#"{"kind":"codel"}"#, r#""codel""#])[0],
            r#"{"kind":"codel"}"#
        );
    }

    #[test]
    fn keys_that_end_alike_stay_whole() {
        let cases = [
            case(&[("flow.a.stack", "reno"), ("flow.b.stack", "reno")]),
            case(&[("flow.a.stack", "cubic"), ("flow.b.stack", "bic")]),
        ];
        assert_eq!(labels(&cases)[1], "flow.a.stack cubic, flow.b.stack bic");
    }
}
