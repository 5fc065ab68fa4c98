//! Scenario files: text in, resolved cases out. A [`Scenario`] that exists is a valid one.
//!
//! `document` turns TOML into values that know their line, `keys` and `value` say what each key
//! accepts, `matrix` makes the cases, `resolve` turns each into a [`RunSpec`], `expect` reads the
//! bounds. Faults are collected on the way and returned together, sorted by line.
//!
//! Other files of keys are read by the same modules `document`, `value`, `faults` and `tables`.

mod assemble;
pub mod builtin;
mod case;
pub mod diagnostic;
mod differing;
pub mod document;
mod expect;
pub mod faults;
mod files;
mod keys;
mod load;
mod matrix;
mod places;
mod point;
mod reference;
mod resolve;
mod scenario;
mod schema;
pub mod settings;
mod shared;
mod study;
pub mod tables;
pub mod value;
mod world;

pub use case::Case;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use differing::differing_keys;
pub use load::{Loaded, load, text};
pub use matrix::EDIT_THE_FILE;
pub use places::Places;
pub use point::Point;
pub use scenario::{
    Against, Expectation, HoldsFor, Inapplicable, Measure, Negative, Overrides, Precision, Report,
    Scenario, TraceMode, WorldKey,
};
pub use study::Study;
pub use value::LARGEST_SEED;

pub use fullpipe_metrics::{FlowGroup, RecoveredAt, TrafficGroup, TrafficKind};

impl Scenario {
    /// Reads a built-in scenario if `name_or_path` names one, otherwise a file.
    ///
    /// # Errors
    /// Everything that is wrong with it; that it is a study.
    pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
        let (text, origin) = load::read(name_or_path)?;
        Scenario::parse(&text, &origin, overrides)
    }

    /// Reads the text of a scenario file; `origin` names it in messages.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str, origin: &str, overrides: &Overrides) -> Result<Scenario, Diagnostics> {
        assemble::scenario(text, origin, overrides)
    }

    /// The first case alone, measured and not judged: for a path that the file does not describe.
    /// Its parameters, expectations, wrong worlds and figures are those of the file's own path.
    pub fn first_case_unjudged(mut self) -> Scenario {
        self.cases.truncate(1);
        for case in &mut self.cases {
            case.point = point::Point::only();
            case.baseline = None;
        }
        self.expectations.clear();
        self.left_out.clear();
        self.negatives.clear();
        self.reports.clear();
        self.measure.precision = None;
        self
    }

    /// JSON Schema of the scenario file, for editors.
    pub fn json_schema() -> schemars::Schema {
        schema::json()
    }

    /// The reference page of the scenario file, `docs/scenario.md`.
    pub fn reference() -> String {
        reference::markdown()
    }
}

/// Every key of every section of a file, as it heads a table there (`[path]`, `[[flow]]`; nothing
/// for the top), each with a value as it would be written.
pub fn every_key() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    keys::SECTIONS.iter().flat_map(|(section, keys)| {
        let of = |key: &value::Key| (*section, key.name, key.example);
        keys.iter().map(of).collect::<Vec<_>>()
    })
}

/// The keys of `[[flow]]`, each with a value as it would be written in a file.
pub fn flow_keys() -> impl Iterator<Item = (&'static str, &'static str)> {
    <keys::Flow as value::Table>::KEYS
        .iter()
        .map(|key| (key.name, key.example))
}
