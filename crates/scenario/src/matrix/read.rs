//! `[matrix]` as it is written: lists of values under dotted keys, and tables of values under a
//! name.

use super::Names;
use super::address::{Address, Relation, find};
use super::axis::{Axis, AxisValue, clash, refuse_twins};
use crate::document::{Data, Entry, Node, Place, Sources, shorten};
use crate::keys::Top;
use crate::value::{Field, Reader, Table, is_name};

/// Reads the axes of `[matrix]`.
pub(crate) fn axes(reader: &mut Reader<'_>, entries: &[Entry], names: &Names) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut leaves = Vec::new();
    flatten(reader.sources, entries, "", &mut leaves);
    for (key, name_at, node) in leaves {
        let named = is_named_axis(&key, node);
        if !named && is_named_like_a_key(&key, node) {
            let message = format!("`{key}` is a key of the scenario, and no name of an axis");
            let hint = format!("another name will do: `[[matrix.{key}-case]]`");
            reader.refuse_key(name_at, &format!("matrix.{key}"), message, Some(hint));
            continue;
        }
        let full = if named {
            format!("matrix.{key}")
        } else {
            format!("matrix.\"{}\"", shorten(&key))
        };
        let Some(items) = items(reader, node, &full) else {
            continue;
        };
        let axis = if named {
            bundles(reader, &key, items, &full, names)
        } else {
            let Some(address) = varying(reader, &key, name_at, &full, names) else {
                continue;
            };
            let values = items
                .iter()
                .filter_map(|item| AxisValue::read(reader, &address, item, &full))
                .collect();
            Axis {
                key,
                names: Some(address.key),
                addresses: vec![address],
                values,
                replaced: Vec::new(),
            }
        };
        if let Some((other, around)) = axes.iter().find_map(|other| clash(other, &axis)) {
            let message = format!("sets what `{other}` sets already");
            let hint = if around {
                "a key comes before the keys inside it"
            } else {
                "keep one of them"
            };
            reader.refuse_key(name_at, &full, message, Some(hint.to_owned()));
            continue;
        }
        refuse_twins(reader, &axis.values, &full);
        axes.push(axis);
    }
    axes
}

/// `[[matrix.case]]`, or under another name: tables under a key that is none of the format.
fn is_named_axis(key: &str, node: &Node) -> bool {
    let is_free = || is_name(key) && find(Top::KEYS, key).is_none();
    key == CASE || (is_free() && are_tables(node, |_| true))
}

/// `[[matrix.path]]` with a name in each: an axis that is called like a key of the format. No value
/// of such a key is a table with a name.
fn is_named_like_a_key(key: &str, node: &Node) -> bool {
    let has_name = |entries: &[Entry]| entries.iter().any(|entry| entry.name == "name");
    find(Top::KEYS, key).is_some() && are_tables(node, has_name)
}

fn are_tables(node: &Node, each: impl Fn(&[Entry]) -> bool) -> bool {
    let is_one = |item: &Node| match &item.data {
        Data::Table(entries) => each(entries),
        _ => false,
    };
    match &node.data {
        Data::List(items) => !items.is_empty() && items.iter().all(is_one),
        _ => false,
    }
}

/// The values of a key, which stand in a list.
pub(super) fn items<'a>(reader: &mut Reader<'_>, node: &'a Node, key: &str) -> Option<&'a [Node]> {
    match &node.data {
        Data::List(items) if items.is_empty() => {
            let hint = Some("list the values to run, or remove the key".to_owned());
            reader.refuse(node.at, key, "the list is empty", hint);
            None
        }
        Data::List(items) => Some(items),
        _ => {
            let message = format!("a list of values is expected, this is {}", node.what());
            let hint = format!("write [{}]", shorten(reader.sources.text(node.at)));
            reader.refuse(node.at, key, message, Some(hint));
            None
        }
    }
}

/// The address of a key that may differ between cases.
fn varying(
    reader: &mut Reader<'_>,
    key: &str,
    at: Place,
    full: &str,
    names: &Names,
) -> Option<Address> {
    match Address::find(key, names) {
        Ok(address) if address.key.varies => Some(address),
        Ok(_) => {
            let hint = Some("set it once, outside [matrix]".to_owned());
            reader.refuse_key(at, full, "this key cannot vary between cases", hint);
            None
        }
        Err((message, hint)) => {
            reader.refuse_key(at, full, message, hint);
            None
        }
    }
}

/// `[[matrix.case]]`: named values that set several keys at once.
fn bundles(reader: &mut Reader<'_>, name: &str, items: &[Node], full: &str, names: &Names) -> Axis {
    let mut axis = Axis {
        key: name.to_owned(),
        names: None,
        addresses: Vec::new(),
        values: Vec::new(),
        replaced: Vec::new(),
    };
    for (i, item) in items.iter().enumerate() {
        let full = format!("{full}[{}]", i + 1);
        let Data::Table(entries) = &item.data else {
            let message = format!("a table is expected, this is {}", item.what());
            let hint = "write [[matrix.case]], with a `name` and dotted keys below".to_owned();
            reader.refuse(item.at, &full, message, Some(hint));
            continue;
        };
        let name = entries
            .iter()
            .find(|e| e.name == "name")
            .and_then(|e| match &e.node.data {
                Data::Text(text) if !text.trim().is_empty() => Some((text.clone(), e.node.at)),
                _ => None,
            });
        let Some((name, at)) = name else {
            let hint = Some("write for example name = \"long path\"".to_owned());
            reader.refuse_key(
                item.at,
                &format!("{full}.name"),
                "this key is missing",
                hint,
            );
            continue;
        };
        let mut leaves = Vec::new();
        flatten(reader.sources, entries, "", &mut leaves);
        let mut sets: Vec<(Address, Field)> = Vec::new();
        for (key, key_at, node) in leaves.into_iter().filter(|(key, ..)| key != "name") {
            let full = format!("{full}.{}", shorten(&key));
            let Some(address) = varying(reader, &key, key_at, &full, names) else {
                continue;
            };
            if sets
                .iter()
                .any(|(other, _)| !matches!(address.relation(other), Relation::Apart))
            {
                let hint = Some("keep one of them".to_owned());
                reader.refuse_key(
                    key_at,
                    &full,
                    "another key of this table sets it already",
                    hint,
                );
                continue;
            }
            let Some(value) = reader.value(&address.key.kind, node, &full, address.key.example)
            else {
                continue;
            };
            axis.addresses.push(address.clone());
            sets.push((address, Field { value, at: node.at }));
        }
        let json = serde_json::Value::String(name.clone());
        axis.values.push(AxisValue {
            sets,
            at,
            canonical: name.clone(),
            overruled: false,
            plain: name,
            json,
        });
    }
    axis
}

/// `flow.main.stack = [...]` without quotes is a nest of tables in TOML. A table in braces is a
/// value.
pub(crate) fn flatten<'a>(
    sources: &Sources,
    entries: &'a [Entry],
    path: &str,
    leaves: &mut Vec<(String, Place, &'a Node)>,
) {
    for entry in entries {
        let key = if path.is_empty() {
            entry.name.clone()
        } else {
            format!("{path}.{}", entry.name)
        };
        match &entry.node.data {
            Data::Table(inner) if !sources.text(entry.node.at).starts_with('{') => {
                flatten(sources, inner, &key, leaves);
            }
            _ => leaves.push((key, entry.name_at, &entry.node)),
        }
    }
}

/// The usual name of an axis whose values set several keys.
const CASE: &str = "case";
