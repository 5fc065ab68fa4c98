//! Names of flows, traffic and links.

use std::collections::HashSet;

use crate::keys::{FlowKeys, TrafficKeys};
use crate::matrix::{Names, Section};
use crate::value::{DEFAULT_FLOW, Reader, Record, flow_path, member_path};

/// Names of the flows, in order; the only one may have none.
pub(super) fn flow_names(reader: &mut Reader<'_>, flows: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for (i, record) in flows.iter().enumerate() {
        let name = match record.get(&FlowKeys::name) {
            Some(name) => name,
            None if flows.len() == 1 => DEFAULT_FLOW.to_owned(),
            None => {
                if !record.is_given(&FlowKeys::name) {
                    let hint = Some(format!("write for example name = \"flow{}\"", i + 1));
                    let key = format!("flow[{}].name", i + 1);
                    reader.refuse_key(record.at, &key, "one of several flows needs a name", hint);
                }
                format!("[{}]", i + 1)
            }
        };
        if !known.insert(name.clone()) {
            let hint = Some("give every flow its own name".to_owned());
            let key = format!("{}.name", flow_path(&name));
            reader.refuse(
                record.place(&FlowKeys::name),
                &key,
                "another flow has this name",
                hint,
            );
        }
        names.push(name);
    }
    names
}

/// Names of the tables of another list, in order; each has one.
pub(super) fn member_names(
    reader: &mut Reader<'_>,
    section: Section,
    tables: &[Record],
) -> Vec<String> {
    let (mut names, key_of_name) = (Vec::new(), section.key_of_name());
    let section = section.word();
    for (i, record) in tables.iter().enumerate() {
        let name = record.get(key_of_name);
        let name = name.unwrap_or_else(|| format!("[{}]", i + 1));
        if !record.is_attempted(key_of_name) {
            let hint = Some(format!("write for example name = \"{section}{}\"", i + 1));
            let key = format!("{section}[{}].name", i + 1);
            reader.refuse_key(record.at, &key, "this key is missing", hint);
        }
        if names.contains(&name) {
            let hint = Some(format!("give every {section} its own name"));
            let key = format!("{}.name", member_path(section, &name));
            let message = format!("another {section} has this name");
            reader.refuse(record.place(key_of_name), &key, message, hint);
        }
        names.push(name);
    }
    names
}

/// Flows and traffic are told apart by their names.
pub(super) fn distinct(reader: &mut Reader<'_>, names: &Names, traffic: &[Record]) {
    for (name, record) in names.traffic.iter().zip(traffic) {
        if names.flows.contains(name) {
            let key = format!("{}.name", member_path("traffic", name));
            let hint = Some("give the traffic its own name".to_owned());
            let at = record.place(&TrafficKeys::name);
            reader.refuse(at, &key, "a flow has this name", hint);
        }
    }
}
