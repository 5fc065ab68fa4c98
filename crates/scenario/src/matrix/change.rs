//! What `--set` and `[quick]` change before the cases are made.

use super::address::{Address, Relation, Scope};
use super::axis::{Axis, AxisValue, refuse_twins};
use super::read::{flatten, items};
use super::{Config, EDIT_THE_FILE, Names};
use crate::document::{Data, Entry, Fault, Node, shorten};
use crate::keys::TrafficKeys;
use crate::value::{Field, Kind, Reader, did_you_mean};

/// A scenario's tables, and what varies in them.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub config: Config,
    pub axes: Vec<Axis>,
    /// Put in after the values of the axes: inside what an axis sets.
    pub last: Vec<(Address, Field)>,
    pub names: &'a Names,
}

impl Draft<'_> {
    /// Applies one `--set`: to the axis of that key, or to the tables, or after all axes.
    pub fn set(&mut self, reader: &mut Reader<'_>, key: &str, node: &Node) {
        self.put(reader, key, node, true);
    }

    /// The same of `[quick]`, whose author has named the cases, too, if not `by_hand`.
    fn put(&mut self, reader: &mut Reader<'_>, key: &str, node: &Node, by_hand: bool) {
        let whole = node.at;
        let bundled = |axis: &&mut Axis| axis.names.is_none() && axis.key == key;
        if let Some(axis) = self.axes.iter_mut().find(bundled) {
            // `--set case=name`: only this one.
            if let Some(one) = named(reader, axis, node, key) {
                axis.replace(vec![one]);
            }
            return;
        }
        let address = match Address::find(key, self.names) {
            Ok(address) => address,
            Err((message, hint)) => {
                reader.refuse_key(whole, &shorten(key), message, hint);
                return;
            }
        };
        if let (Kind::Name, Scope::Members(section, _)) = (address.key.kind, &address.scope)
            && address.key.name == TrafficKeys::name.name
        {
            reader.refuse_key(
                whole,
                key,
                format!("a {} cannot be renamed", section.word()),
                Some(EDIT_THE_FILE.to_owned()),
            );
            return;
        }
        let Some(value) = AxisValue::read(reader, &address, node, key) else {
            return;
        };
        let mut inside = false;
        for axis in &mut self.axes {
            if by_hand && axis.names.is_none() && overrule(axis, &address, &value) {
                reader.findings.warnings.push(Fault {
                    at: whole,
                    key: shorten(key),
                    shows_value: true,
                    message: format!(
                        "values of `{}` set this too: it runs in place of what they are named for, \
                         and expectations about these do not apply",
                        axis.key
                    ),
                    hint: None,
                });
            }
            for other in &axis.addresses {
                match address.relation(other) {
                    Relation::Apart => {}
                    Relation::Same if axis.names.is_some() => {
                        axis.replace(vec![value]);
                        return;
                    }
                    Relation::Inside => inside = true,
                    // Cases go by their names: what the command line sets holds in all of them.
                    _ if axis.names.is_none() => inside = true,
                    Relation::Same | Relation::Around | Relation::Crossing => {
                        let message = format!("[matrix] varies it in `{}`", axis.key);
                        let hint = Some(format!("set `{}` to one of its values", axis.key));
                        reader.refuse_key(whole, key, message, hint);
                        return;
                    }
                }
            }
        }
        let [(_, field)] = value.sets.as_slice() else {
            return;
        };
        if inside {
            self.last.push((address, field.clone()));
        } else if let Err(message) = address.apply(&mut self.config, field) {
            reader.refuse(whole, key, message, None);
        }
    }

    /// Applies `[quick]`: a list takes the place of an axis' list, anything else is as with
    /// `--set`.
    pub fn quick(&mut self, reader: &mut Reader<'_>, entries: &[Entry]) {
        let mut leaves = Vec::new();
        flatten(reader.sources, entries, "", &mut leaves);
        for (key, name_at, node) in leaves {
            let full = format!("quick.\"{}\"", shorten(&key));
            let address = Address::find(&key, self.names);
            let same = |axis: &Axis| match (&axis.names, &address) {
                (None, _) => axis.key == key,
                (Some(_), Ok(address)) => axis
                    .addresses
                    .iter()
                    .any(|other| address.relation(other) == Relation::Same),
                (Some(_), Err(_)) => false,
            };
            let Some(axis) = self.axes.iter_mut().find(|axis| same(axis)) else {
                match address {
                    Ok(_) => self.put(reader, &key, node, false),
                    Err((message, hint)) => reader.refuse_key(name_at, &full, message, hint),
                }
                continue;
            };
            let nodes = match &node.data {
                Data::List(_) => match items(reader, node, &full) {
                    Some(items) => items,
                    None => continue,
                },
                _ => std::slice::from_ref(node),
            };
            let mut values: Vec<AxisValue> = Vec::new();
            for node in nodes {
                let value = match &address {
                    Ok(address) if axis.names.is_some() => {
                        AxisValue::read(reader, address, node, &full)
                    }
                    _ => named(reader, axis, node, &full),
                };
                values.extend(value);
            }
            refuse_twins(reader, &values, &full);
            if values.len() == nodes.len() {
                axis.replace(values);
            }
        }
    }
}

/// Marks the values of an axis that set this key otherwise; true if there is one.
fn overrule(axis: &mut Axis, address: &Address, new: &AxisValue) -> bool {
    let [(_, new)] = new.sets.as_slice() else {
        return false;
    };
    let differs = |(other, field): &(Address, Field)| match address.relation(other) {
        Relation::Apart => false,
        Relation::Same => field.value.canonical() != new.value.canonical(),
        Relation::Inside | Relation::Around | Relation::Crossing => true,
    };
    let mut any = false;
    for value in &mut axis.values {
        let is_overruled = value.sets.iter().any(differs);
        value.overruled |= is_overruled;
        any |= is_overruled;
    }
    any
}

/// The value of this name.
fn named(reader: &mut Reader<'_>, axis: &Axis, node: &Node, key: &str) -> Option<AxisValue> {
    let name = node.plain(reader.sources);
    let all = || axis.replaced.iter().chain(&axis.values);
    let one = all().find(|value| value.plain == name).cloned();
    if one.is_none() {
        let names = || all().map(|value| value.plain.as_str());
        let hint = did_you_mean(&name, names());
        let message = format!("there is no such {}", axis.key);
        reader.refuse(node.at, key, message, Some(hint));
    }
    one
}
