//! Dotted keys, the axes of `[matrix]`, `--set`, and the product of the axes.

use super::document::{Data, Entry, Node, Place, Sources, shorten};
use super::keys::{self, Key};
use super::value::{Field, Kind, Reader, Record, Value, is_name, nearest};

/// A scenario's tables as read; a case is a copy with the values of the axes put in.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// `duration` and the other plain keys.
    pub top: Record,
    pub path: Record,
    pub measure: Record,
    pub flows: Vec<Record>,
    pub traffic: Vec<Record>,
    pub links: Vec<Record>,
    pub routes: Vec<Record>,
}

/// Names of the tables of a list, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub flows: Vec<String>,
    pub traffic: Vec<String>,
    pub links: Vec<String>,
}

/// A list of tables that have names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Flow,
    Traffic,
    Link,
}

impl Section {
    const ALL: [Section; 3] = [Section::Flow, Section::Traffic, Section::Link];

    /// As in the file.
    pub fn word(self) -> &'static str {
        match self {
            Section::Flow => "flow",
            Section::Traffic => "traffic",
            Section::Link => "link",
        }
    }

    fn keys(self) -> &'static [Key] {
        match self {
            Section::Flow => keys::FLOW,
            Section::Traffic => keys::TRAFFIC,
            Section::Link => keys::LINK,
        }
    }
}

impl Names {
    /// Those of one list.
    pub fn of(&self, section: Section) -> &[String] {
        match section {
            Section::Flow => &self.flows,
            Section::Traffic => &self.traffic,
            Section::Link => &self.links,
        }
    }
}

impl Config {
    fn tables(&mut self, section: Section) -> &mut [Record] {
        match section {
            Section::Flow => &mut self.flows,
            Section::Traffic => &mut self.traffic,
            Section::Link => &mut self.links,
        }
    }
}

/// What a dotted key names.
#[derive(Clone, Debug)]
pub(super) struct Address {
    scope: Scope,
    chain: Vec<&'static str>,
    pub key: &'static Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Scope {
    Top,
    Path,
    Measure,
    Members(Section, Vec<usize>),
}

/// A key of `[matrix]` and its values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// As written.
    pub key: String,
    /// The key it names; `None` for `case`, whose values set several keys each.
    pub names: Option<&'static Key>,
    /// All that any of its values sets.
    addresses: Vec<Address>,
    pub values: Vec<AxisValue>,
    /// Values in the file, if `--set` replaced them.
    pub replaced: Vec<AxisValue>,
}

#[derive(Clone, Debug)]
pub(super) struct AxisValue {
    pub sets: Vec<(Address, Field)>,
    pub at: Place,
    pub plain: String,
    pub json: serde_json::Value,
    pub canonical: String,
}

/// How two addresses lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Apart,
    Same,
    /// The first is a part of the second.
    Inside,
    /// The second is a part of the first.
    Around,
    /// They share some flows, but not all.
    Crossing,
}

impl Address {
    /// Finds what `text` names; the error is a message and a hint.
    pub fn find(text: &str, names: &Names) -> Result<Address, (String, Option<String>)> {
        let mut parts = text.split('.');
        let unknown = || {
            let all = all_keys(names);
            let hint = nearest(text, all.iter().map(String::as_str)).map_or_else(
                || "keys look like `path.rate`, `flow.main.stack` or `duration`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            ("unknown key".to_owned(), Some(hint))
        };
        let whole = |name: &str| {
            (
                format!("`{name}` cannot be set as a whole"),
                Some(format!("name one of its keys, such as `{}`", sample(name))),
            )
        };
        let first = parts.next().unwrap_or_default();
        let (scope, keys) = match first {
            "path" => (Scope::Path, keys::PATH),
            "measure" => (Scope::Measure, keys::MEASURE),
            word if Section::ALL.iter().any(|section| section.word() == word) => {
                let section = Section::ALL.into_iter().find(|s| s.word() == word);
                let section = section.unwrap_or(Section::Flow);
                let (all, keys) = (names.of(section), section.keys());
                let mut rest = parts.clone();
                let second = rest.next().ok_or_else(|| whole(word))?;
                let has_key = find(keys, second).is_some();
                let indices = match all.iter().position(|name| name == second) {
                    Some(i) => vec![i],
                    None if second == "*" => (0..all.len()).collect(),
                    // `flow.stack` with one flow.
                    None if all.len() == 1 && has_key => {
                        rest = parts.clone();
                        vec![0]
                    }
                    None if rest.clone().next().is_none() && has_key && !all.is_empty() => {
                        let hint = format!("write `{word}.<name>.{second}` or `{word}.*.{second}`");
                        return Err((format!("which {word} is meant?"), Some(hint)));
                    }
                    None if rest.clone().next().is_some() => {
                        let key: Vec<&str> = rest.collect();
                        let near = nearest(second, all.iter().map(String::as_str))
                            .or(all.first().map(String::as_str));
                        let hint = near
                            .map(|near| format!("did you mean `{word}.{near}.{}`?", key.join(".")));
                        return Err((format!("there is no {word} `{}`", shorten(second)), hint));
                    }
                    None => return Err(unknown()),
                };
                parts = rest;
                (Scope::Members(section, indices), keys)
            }
            name => {
                let key = find(keys::TOP, name).ok_or_else(unknown)?;
                if matches!(key.kind, Kind::Free | Kind::Tables(_)) || key.name == "study" {
                    return Err((
                        format!("`{name}` cannot be set"),
                        Some("edit the file".to_owned()),
                    ));
                }
                if parts.next().is_some() {
                    return Err(unknown());
                }
                return Ok(Address {
                    scope: Scope::Top,
                    chain: vec![key.name],
                    key,
                });
            }
        };
        let mut key = find(keys, parts.next().ok_or_else(|| whole(first))?).ok_or_else(unknown)?;
        let mut chain = vec![key.name];
        for part in parts {
            key = nested(&key.kind)
                .and_then(|keys| find(keys, part))
                .ok_or_else(unknown)?;
            chain.push(key.name);
        }
        Ok(Address { scope, chain, key })
    }

    /// How this address lies to another.
    pub fn relation(&self, other: &Address) -> Relation {
        let same_members = match (&self.scope, &other.scope) {
            (Scope::Members(s, a), Scope::Members(t, b)) if s == t => {
                if !a.iter().any(|i| b.contains(i)) {
                    return Relation::Apart;
                }
                a == b
            }
            (a, b) if a == b => true,
            _ => return Relation::Apart,
        };
        let shared = self
            .chain
            .iter()
            .zip(&other.chain)
            .take_while(|(a, b)| a == b)
            .count();
        let relation = match (shared == self.chain.len(), shared == other.chain.len()) {
            (true, true) => Relation::Same,
            (true, false) => Relation::Around,
            (false, true) => Relation::Inside,
            (false, false) => return Relation::Apart,
        };
        if same_members {
            relation
        } else {
            Relation::Crossing
        }
    }

    /// Puts a value in; the error says why it cannot be put there.
    pub fn apply(&self, config: &mut Config, field: &Field) -> Result<(), String> {
        match &self.scope {
            Scope::Top => put(&mut config.top, &self.chain, field),
            Scope::Path => put(&mut config.path, &self.chain, field),
            Scope::Measure => put(&mut config.measure, &self.chain, field),
            Scope::Members(section, indices) => {
                for &i in indices {
                    put(&mut config.tables(*section)[i], &self.chain, field)?;
                }
                Ok(())
            }
        }
    }
}

/// Reads the axes of `[matrix]`.
pub(super) fn axes(reader: &mut Reader<'_>, entries: &[Entry], names: &Names) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut leaves = Vec::new();
    flatten(reader.sources, entries, "", &mut leaves);
    for (key, name_at, node) in leaves {
        let named = is_named_axis(&key, node);
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
                .filter_map(|item| read(reader, &address, item, &full))
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
        for (i, value) in axis.values.iter().enumerate() {
            if axis.values[..i]
                .iter()
                .any(|other| other.canonical == value.canonical)
            {
                let hint = Some("every value stands once".to_owned());
                reader.refuse(value.at, &full, "this value stands twice in the list", hint);
            }
        }
        axes.push(axis);
    }
    axes
}

/// `[[matrix.case]]`, or under another name: tables under a key that is none of the format.
fn is_named_axis(key: &str, node: &Node) -> bool {
    let tables = || match &node.data {
        Data::List(items) => {
            !items.is_empty() && items.iter().all(|item| matches!(item.data, Data::Table(_)))
        }
        _ => false,
    };
    key == CASE || (is_name(key) && find(keys::TOP, key).is_none() && tables())
}

fn items<'a>(reader: &mut Reader<'_>, node: &'a Node, key: &str) -> Option<&'a [Node]> {
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
            plain: name,
            json,
        });
    }
    axis
}

/// Applies one `--set`: to the axis of that key, or to the tables, or after all axes (`last`).
pub(super) fn set(
    reader: &mut Reader<'_>,
    config: &mut Config,
    axes: &mut [Axis],
    last: &mut Vec<(Address, Field)>,
    names: &Names,
    key: &str,
    node: &Node,
) {
    let whole = node.at;
    if let Some(axis) = axes
        .iter_mut()
        .find(|axis| axis.names.is_none() && axis.key == key)
    {
        pick(reader, axis, node);
        return;
    }
    let address = match Address::find(key, names) {
        Ok(address) => address,
        Err((message, hint)) => {
            reader.refuse_key(whole, &shorten(key), message, hint);
            return;
        }
    };
    if let (Kind::Name, Scope::Members(section, _)) = (address.key.kind, &address.scope)
        && address.key.name == "name"
    {
        reader.refuse_key(
            whole,
            key,
            format!("a {} cannot be renamed", section.word()),
            Some("edit the file".to_owned()),
        );
        return;
    }
    let Some(value) = read(reader, &address, node, key) else {
        return;
    };
    let mut inside = false;
    for axis in axes.iter_mut() {
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
        last.push((address, field.clone()));
    } else if let Err(message) = address.apply(config, field) {
        reader.refuse(whole, key, message, None);
    }
}

/// Applies `[quick]`: a list takes the place of an axis' list, anything else is as with `--set`.
pub(super) fn quick(
    reader: &mut Reader<'_>,
    config: &mut Config,
    axes: &mut [Axis],
    last: &mut Vec<(Address, Field)>,
    names: &Names,
    entries: &[Entry],
) {
    let mut leaves = Vec::new();
    flatten(reader.sources, entries, "", &mut leaves);
    for (key, name_at, node) in leaves {
        let full = format!("quick.\"{}\"", shorten(&key));
        let address = Address::find(&key, names);
        let same = |axis: &Axis| match (&axis.names, &address) {
            (None, _) => axis.key == key,
            (Some(_), Ok(address)) => axis
                .addresses
                .iter()
                .any(|other| address.relation(other) == Relation::Same),
            (Some(_), Err(_)) => false,
        };
        let Some(axis) = axes.iter_mut().find(|axis| same(axis)) else {
            match address {
                Ok(_) => set(reader, config, axes, last, names, &key, node),
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
                Ok(address) if axis.names.is_some() => read(reader, address, node, &full),
                _ => named(reader, axis, node, &full),
            };
            let Some(value) = value else { continue };
            if values.iter().any(|v| v.canonical == value.canonical) {
                let hint = Some("every value stands once".to_owned());
                reader.refuse(value.at, &full, "this value stands twice in the list", hint);
            }
            values.push(value);
        }
        if values.len() == nodes.len() {
            axis.replace(values);
        }
    }
}

impl Axis {
    /// Other values; the old ones stay known.
    fn replace(&mut self, values: Vec<AxisValue>) {
        let old = std::mem::replace(&mut self.values, values);
        let known =
            |value: &AxisValue| self.replaced.iter().any(|v| v.canonical == value.canonical);
        let new: Vec<AxisValue> = old.into_iter().filter(|value| !known(value)).collect();
        self.replaced.extend(new);
    }

    /// Makes values known that this run does not have.
    pub fn remember(&mut self, other: &Axis) {
        for value in &other.values {
            let known = |v: &AxisValue| v.canonical == value.canonical;
            if !self.values.iter().any(known) && !self.replaced.iter().any(known) {
                self.replaced.push(value.clone());
            }
        }
    }
}

/// `--set case=name`: only this one.
fn pick(reader: &mut Reader<'_>, axis: &mut Axis, node: &Node) {
    let key = axis.key.clone();
    if let Some(one) = named(reader, axis, node, &key) {
        axis.replace(vec![one]);
    }
}

/// The value of this name.
fn named(reader: &mut Reader<'_>, axis: &Axis, node: &Node, key: &str) -> Option<AxisValue> {
    let name = node.plain(reader.sources);
    let all = || axis.replaced.iter().chain(&axis.values);
    let one = all().find(|value| value.plain == name).cloned();
    if one.is_none() {
        let names = || all().map(|value| value.plain.as_str());
        let hint = match nearest(&name, names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("known: {}", super::value::quoted(names())),
        };
        let message = format!("there is no such {}", axis.key);
        reader.refuse(node.at, key, message, Some(hint));
    }
    one
}

/// Values of the axes in one case; later axes vary fastest.
pub(super) fn digits(mut index: usize, axes: &[Axis]) -> Vec<usize> {
    let mut digits = vec![0; axes.len()];
    for (digit, axis) in digits.iter_mut().zip(axes).rev() {
        *digit = index % axis.values.len();
        index /= axis.values.len();
    }
    digits
}

/// The case with some axes moved to other values.
pub(super) fn moved(case: usize, axes: &[Axis], to: &[(usize, usize)]) -> usize {
    let mut digits = digits(case, axes);
    for (axis, value) in to {
        digits[*axis] = *value;
    }
    let place = |index, (digit, axis): (&usize, &Axis)| index * axis.values.len() + digit;
    digits.iter().zip(axes).fold(0, place)
}

fn read(reader: &mut Reader<'_>, address: &Address, node: &Node, key: &str) -> Option<AxisValue> {
    let value = reader.value(&address.key.kind, node, key, address.key.example)?;
    let canonical = value.canonical();
    let plain = node.plain(reader.sources);
    let field = Field { value, at: node.at };
    Some(AxisValue {
        sets: vec![(address.clone(), field)],
        at: node.at,
        plain,
        json: node.json(),
        canonical,
    })
}

/// A later axis may refine an earlier one, and nothing else: otherwise the name of the earlier one, and whether the later
/// one is around it.
fn clash<'a>(earlier: &'a Axis, later: &Axis) -> Option<(&'a str, bool)> {
    for a in &earlier.addresses {
        for b in &later.addresses {
            match b.relation(a) {
                Relation::Apart | Relation::Inside => {}
                relation => return Some((&earlier.key, relation == Relation::Around)),
            }
        }
    }
    None
}

/// `flow.main.stack = [...]` without quotes is a nest of tables in TOML. A table in braces is a value.
fn flatten<'a>(
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

fn put(record: &mut Record, chain: &[&'static str], field: &Field) -> Result<(), String> {
    let (name, rest) = match chain {
        [name] => {
            *record.field_mut(name) = Some(field.clone());
            return Ok(());
        }
        [name, rest @ ..] => (*name, rest),
        [] => return Ok(()),
    };
    let inner = record
        .keys
        .iter()
        .find(|key| key.name == name)
        .and_then(|key| nested(&key.kind));
    let Some(inner) = inner else { return Ok(()) };
    let slot = record.field_mut(name).get_or_insert_with(|| Field {
        value: Value::Record(Record::empty(inner, field.at)),
        at: field.at,
    });
    match &mut slot.value {
        Value::Record(inner) => put(inner, rest, field),
        Value::List(items) => match items.as_mut_slice() {
            [Value::Record(inner)] => put(inner, rest, field),
            [Value::Broken] => Ok(()),
            _ => Err(format!(
                "`{name}` is a list of several tables here: vary or set it as a whole"
            )),
        },
        Value::Broken => Ok(()),
        _ => Err(format!("`{name}` is not a table here")),
    }
}

/// Keys inside a key.
pub(super) fn nested(kind: &'static Kind) -> Option<&'static [Key]> {
    match kind {
        Kind::Table(keys) => Some(keys),
        Kind::OneOrMany(inner) | Kind::OrOff(inner) => nested(inner),
        Kind::Either(first, second) => nested(first).or_else(|| nested(second)),
        _ => None,
    }
}

fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

fn sample(name: &str) -> &'static str {
    match name {
        "flow" => "flow.main.stack",
        "traffic" => "traffic.mice.load",
        "link" => "link.first.rate",
        "measure" => "measure.warmup",
        _ => "path.rate",
    }
}

/// Every dotted key that can be set, for the search of the nearest.
fn all_keys(names: &Names) -> Vec<String> {
    let mut all: Vec<String> = vec!["duration".to_owned(), "seeds".to_owned(), "name".to_owned()];
    let mut add = |prefix: &str, keys: &'static [Key]| {
        for key in keys {
            all.push(format!("{prefix}.{}", key.name));
            for inner in nested(&key.kind).unwrap_or_default() {
                all.push(format!("{prefix}.{}.{}", key.name, inner.name));
            }
        }
    };
    add("path", keys::PATH);
    add("measure", keys::MEASURE);
    for section in Section::ALL {
        for name in names.of(section).iter().take(MAX_SEARCHED) {
            add(&format!("{}.{name}", section.word()), section.keys());
        }
    }
    all
}

/// The usual name of an axis whose values set several keys.
const CASE: &str = "case";
const MAX_SEARCHED: usize = 16;
