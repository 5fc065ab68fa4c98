//! Dotted keys, as messages and the command line spell them, and the names in them.

use crate::document::{Data, Entry, shorten};

/// Name of a flow as far as it can be told before reading it.
pub(super) fn flow_name(entries: &[Entry], index: usize, flows: usize) -> String {
    let written = entries
        .iter()
        .find(|e| e.name == "name")
        .and_then(|e| match &e.node.data {
            Data::Text(text) if is_name(text) => Some(text.clone()),
            _ => None,
        });
    match written {
        Some(name) => name,
        None if flows == 1 => DEFAULT_FLOW.to_owned(),
        None => format!("[{}]", index + 1),
    }
}

/// Dotted key of a flow's table; a flow without a name is known by its number.
pub fn flow_path(name: &str) -> String {
    member_path("flow", name)
}

/// Dotted key of a table of a list whose tables have names.
pub fn member_path(section: &str, name: &str) -> String {
    if name.starts_with('[') {
        format!("{section}{name}")
    } else {
        format!("{section}.{name}")
    }
}

/// Name of the only flow if it has none.
pub const DEFAULT_FLOW: &str = "main";

/// `path.key`, or `key` at the top.
pub(super) fn join(path: &str, name: &str) -> String {
    let name = shorten(name);
    if path.is_empty() {
        name
    } else {
        format!("{path}.{name}")
    }
}

/// True of text that can be a part of a dotted key.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
