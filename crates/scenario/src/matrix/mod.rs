//! What varies in a scenario: dotted keys ([`address`]), the axes of `[matrix]` ([`Axis`]), what
//! `--set` and `[quick]` change ([`Draft`]), and the product of the axes.

mod address;
mod axis;
mod change;
mod read;

use super::document::Place;
use super::keys::{Flow, FlowKeys, Link, LinkKeys, Traffic, TrafficKeys};
use super::value::{Key, Record, Table};

pub(super) use address::Address;
pub(super) use axis::{Axis, AxisValue, digits, moved, neighbours};
pub(super) use change::Draft;
pub(super) use read::{axes, flatten};

/// What to do about a key that only a file can have.
pub const EDIT_THE_FILE: &str = "edit the file";

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

impl Config {
    /// Whether a key of this name has the value at this place.
    pub fn has(&self, name: &str, at: Place) -> bool {
        let alone = [&self.top, &self.path, &self.measure];
        let lists = [&self.flows, &self.traffic, &self.links, &self.routes];
        let mut all = alone.into_iter().chain(lists.into_iter().flatten());
        all.any(|record| record.has(name, at))
    }
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

    /// Name of the section in the file.
    pub fn word(self) -> &'static str {
        match self {
            Section::Flow => "flow",
            Section::Traffic => "traffic",
            Section::Link => "link",
        }
    }

    /// The key that names a table.
    pub fn key_of_name(self) -> &'static Key {
        match self {
            Section::Flow => &FlowKeys::name,
            Section::Traffic => &TrafficKeys::name,
            Section::Link => &LinkKeys::name,
        }
    }

    fn keys(self) -> &'static [Key] {
        match self {
            Section::Flow => Flow::KEYS,
            Section::Traffic => Traffic::KEYS,
            Section::Link => Link::KEYS,
        }
    }
}

impl Names {
    /// Names of the tables of one section.
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
