//! Which cases are drawn: those that have the values of `--where`, each by any of its spellings.

use fullpipe_cc::StackSpec;
use fullpipe_results::label;
use fullpipe_results::result::{Params, scalar_text};

use super::AskedError;
use crate::page::axes::quantity;

/// Indices of the cases that have all of these parameters.
///
/// # Errors
/// If no case has one of them.
pub fn chosen(of: &[&Params], only: &[(String, String)]) -> Result<Vec<usize>, AskedError> {
    let mut cases: Vec<usize> = (0..of.len()).collect();
    if only.is_empty() {
        return Ok(cases);
    }
    let all = label::texts(of.iter().copied());
    for (key, value) in only {
        let full = full_key(&all, key);
        let table = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let table = table
            .ok()
            .and_then(|t| serde_json::to_value(&t["value"]).ok());
        let table = table.filter(serde_json::Value::is_object);
        let has = |full: &str, i: usize| match &table {
            Some(table) => of[i].get(full).is_some_and(|v| alike(v, table)),
            None => label::find(&all[i], full).is_some_and(|v| same(v, value)),
        };
        let left: Vec<usize> = match full {
            Some(full) => cases.iter().copied().filter(|&i| has(full, i)).collect(),
            None => Vec::new(),
        };
        if left.is_empty() {
            return Err(no_case(&all, &cases, key, full, value));
        }
        cases = left;
    }
    Ok(cases)
}

/// True of two spellings of one table.
fn alike(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    match (a.as_object(), b.as_object()) {
        (Some(a), Some(b)) => {
            let has = |(key, x): (&String, _)| b.get(key).is_some_and(|y| alike(x, y));
            a.len() == b.len() && a.iter().all(has)
        }
        _ => same(&scalar_text(a), &scalar_text(b)),
    }
}

/// The key that is meant: itself, or the only one that ends in it.
pub(super) fn full_key<'b>(all: &'b [Vec<(String, String)>], key: &str) -> Option<&'b str> {
    let keys = || all.first().into_iter().flatten().map(|(k, _)| k.as_str());
    let ends = |k: &&str| k.strip_suffix(key).is_some_and(|head| head.ends_with('.'));
    keys().find(|k| *k == key).or_else(|| {
        let mut ending = keys().filter(ends);
        ending.next().filter(|_| ending.next().is_none())
    })
}

/// True of two spellings of one value: `1e-5` and `0.00001`, `0.5BDP` and `0.50BDP`.
fn same(a: &str, b: &str) -> bool {
    let stack = |text: &str| Some(StackSpec::parse(text).ok()?.to_string());
    match (quantity(a), quantity(b)) {
        // 0.7 % is not the nearest double to 0.007.
        (Some((x, unit)), Some((y, other))) => {
            unit == other && (x - y).abs() <= 1e-12 * x.abs().max(y.abs())
        }
        (None, None) => a == b || stack(a).is_some_and(|a| stack(b) == Some(a)),
        _ => false,
    }
}

fn no_case(
    all: &[Vec<(String, String)>],
    cases: &[usize],
    key: &str,
    full: Option<&str>,
    value: &str,
) -> AskedError {
    let known = match full {
        None => {
            let keys: Vec<&str> = label::varying(all).iter().map(|(k, _)| *k).collect();
            match keys.is_empty() {
                true => "there is one case only".to_owned(),
                false => format!("the keys that vary are {}", keys.join(", ")),
            }
        }
        Some(full) => {
            let mut values: Vec<&str> = Vec::new();
            for value in cases.iter().filter_map(|&i| label::find(&all[i], full)) {
                if !values.contains(&value) {
                    values.push(value);
                }
            }
            let known = format!("`{full}` is {}", values.join(", "));
            // The others may well have it.
            match cases.len() < all.len() {
                true => format!("{known} where the conditions before it hold; all have to hold"),
                false => known,
            }
        }
    };
    AskedError::NoCase {
        key: key.to_owned(),
        value: value.to_owned(),
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_chosen_by_any_of_its_spellings() {
        for (a, b) in [
            ("0.00001", "1e-5"),
            ("0.001", "0.1%"),
            ("0.007", "0.7%"),
            ("0.5BDP", "0.50BDP"),
            ("1Gbit/s", "1000Mbit/s"),
            ("cubic(beta=0.7)", "cubic( beta = 0.7 )"),
            ("with a loss", "with a loss"),
        ] {
            assert!(same(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("1e-5", "1e-6"),
            ("20ms", "20"),
            ("reno", "cubic"),
            ("1", "one"),
        ] {
            assert!(!same(a, b), "{a} {b}");
        }
    }

    /// A key is known by any number of its last parts.
    #[test]
    fn a_key_is_chosen_by_its_end() {
        let case = |a: &str, b: &str| {
            let stacks = [("flow.a.stack", a), ("flow.b.stack", b)];
            Params::new(stacks.map(|(k, v)| (k.to_owned(), v.into())).to_vec())
        };
        let all = [&case("reno", "cubic"), &case("cubic", "cubic")];
        let only = |key: &str| chosen(&all, &[(key.to_owned(), "reno".to_owned())]);
        assert_eq!(only("a.stack").unwrap(), [0]);
        assert!(only("b.stack").is_err(), "no case has it");
        assert!(only("stack").is_err(), "two keys end in it");
        assert!(only(".stack").is_err() && only("w.a.stack").is_err());
    }

    /// A value that other cases have is not denied to exist.
    #[test]
    fn conditions_add_up() {
        let case = |rtt: &str| Params::new(vec![("path.rtt".to_owned(), rtt.into())]);
        let all = [&case("20ms"), &case("80ms")];
        let refused = |values: &[&str]| {
            let only = values.iter().map(|v| ("rtt".to_owned(), (*v).to_owned()));
            let refused = chosen(&all, &only.collect::<Vec<_>>()).unwrap_err();
            refused.to_string()
        };
        assert_eq!(
            refused(&["80ms", "20ms"]),
            "no case has `rtt = 20ms`: `path.rtt` is 80ms where the conditions before it hold; all \
             have to hold"
        );
        assert!(refused(&["40ms"]).ends_with("`path.rtt` is 20ms, 80ms"));
    }

    #[test]
    fn a_table_is_chosen_whatever_the_order_of_its_keys_and_by_its_label() {
        let case = |text: &str| {
            let value = serde_json::from_str(text).unwrap();
            Params::new(vec![("path.queue".to_owned(), value)])
        };
        let all = [
            &case(r#"{"ecn":true,"kind":"codel","target":"5ms"}"#),
            &case(r#"{"kind":"codel","target":"5ms"}"#),
            &case(r#""droptail""#),
        ];
        let only = |value: &str| chosen(&all, &[("queue".to_owned(), value.to_owned())]);
        for value in [
            r#"{kind="codel",target="5ms",ecn=true}"#,
            r#"{kind="codel",ecn=true,target="0.005s"}"#,
            "codel with ecn and target 5ms",
        ] {
            assert_eq!(only(value).unwrap(), [0], "{value}");
        }
        assert_eq!(only("droptail").unwrap(), [2]);
        assert!(only(r#"{kind="codel",ecn=true}"#).is_err());
    }
}
