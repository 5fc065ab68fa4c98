//! Worlds: the cases of a scenario with some keys changed after its matrix. In a wrong world an
//! expectation must fail, or it says nothing.

use crate::document::{Node, shorten};
use crate::keys::Negative as Keys;
use crate::matrix::{self, Address, AxisValue, Names};
use crate::scenario::{Negative, WorldKey};
use crate::value::{At, Field, Free, Reader, Record};

/// A [`WorldKey`] that has been read.
#[derive(Clone, Debug)]
pub(super) struct Changed {
    case: Option<usize>,
    pub address: Address,
    pub field: Field,
}

impl Changed {
    pub fn applies_to(&self, case: usize) -> bool {
        self.case.is_none_or(|only| only == case)
    }
}

/// Reads the keys of a world.
pub(super) fn changes(
    reader: &mut Reader<'_>,
    world: &[WorldKey],
    values: &[usize],
    names: &Names,
) -> Vec<Changed> {
    let mut all = Vec::new();
    for (change, &source) in world.iter().zip(values) {
        let (node, faults) = reader.sources.parse_value(source);
        reader.findings.faults.extend(faults);
        let read = assignment(reader, &change.key, &node, &change.key, names);
        all.extend(read.map(|(address, field)| Changed {
            case: change.case,
            address,
            field,
        }));
    }
    all
}

/// Reads `[[negative]]`; those of the other setting of `--quick` are checked and left out.
pub(super) fn negatives(
    reader: &mut Reader<'_>,
    tables: &[Record],
    names: &Names,
    quick: bool,
) -> Vec<Negative> {
    let mut all = Vec::new();
    for (i, record) in tables.iter().enumerate() {
        let table = At::<Keys>::new(record, format!("negative[{}]", i + 1));
        table.required_keys(&mut reader.findings);
        let Some(Free(entries)) = table.set.clone() else {
            continue;
        };
        let mut leaves = Vec::new();
        matrix::flatten(reader.sources, &entries, "", &mut leaves);
        if leaves.is_empty() {
            let hint = "name the keys that differ in this world";
            table.refuse(&mut reader.findings, &Keys::set, "the table is empty", hint);
        }
        let mut set = Vec::new();
        for (key, _, node) in leaves {
            let full = format!("negative[{}].set.\"{}\"", i + 1, shorten(&key));
            if assignment(reader, &key, node, &full, names).is_some() {
                set.push((key, reader.sources.text(node.at).to_owned()));
            }
        }
        if table.quick.is_some_and(|only| only != quick) {
            continue;
        }
        all.push(Negative {
            about: table.about.clone().unwrap_or_default(),
            set,
            inert: table.inert.clone(),
            line: reader.sources.line(record.at),
        });
    }
    all
}

/// The place that `key` names, and what is to stand there.
fn assignment(
    reader: &mut Reader<'_>,
    key: &str,
    node: &Node,
    full: &str,
    names: &Names,
) -> Option<(Address, Field)> {
    let address = match Address::find(key, names) {
        Ok(address) if address.key.varies => address,
        Ok(_) => {
            let hint = Some("a world changes what a case is made of".to_owned());
            reader.refuse_key(node.at, full, "this key is the same in every world", hint);
            return None;
        }
        Err((message, hint)) => {
            reader.refuse_key(node.at, full, message, hint);
            return None;
        }
    };
    let value = AxisValue::read(reader, &address, node, full)?;
    let (_, field) = value.sets.into_iter().next()?;
    Some((address, field))
}
