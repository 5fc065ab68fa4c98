//! `fullpipe schema`: what the JSON that commands print looks like, and a scenario file.

use clap::ValueEnum;
use fullpipe_results::agreement::study::Agreement;
use fullpipe_results::compare::Compared;
use fullpipe_results::falsify::Falsification;
use fullpipe_results::history::Printed;
use fullpipe_results::result::{CaseLine, RunResult};
use fullpipe_scenario::Scenario;
use serde_json::Value;

use crate::args::{Described, Schema};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table};

/// Runs the command.
pub fn schema(args: &Schema) -> Result<Exit, Failure> {
    output::data(&match args.what {
        Some(what) => text(what),
        None => names(),
    })?;
    Ok(Exit::Ok)
}

fn names() -> String {
    let mut table = Table::new();
    table.column(Align::Left, &["schema"]);
    table.column(Align::Left, &["of"]);
    for what in Described::value_variants() {
        let value = what.to_possible_value();
        let value = value.expect("no schema is hidden");
        let help = value.get_help().map_or(String::new(), ToString::to_string);
        table.row(vec![value.get_name().to_owned(), help]);
    }
    table.text() + "\n`fullpipe schema NAME` prints one.\n"
}

macro_rules! written {
    ($name:literal) => {
        include_str!(concat!("../../schemas/", $name, ".json")).to_owned()
    };
}

/// Derived from the type that is written, or a file where the type is a tree of values.
fn text(what: Described) -> String {
    match what {
        Described::Scenario => pretty(Scenario::json_schema()),
        Described::Result => closed(RunResult::json_schema()),
        Described::Case => closed(CaseLine::json_schema()),
        Described::Comparison => closed(Compared::json_schema()),
        Described::Agreement => closed(Agreement::json_schema()),
        Described::Falsification => closed(Falsification::json_schema()),
        Described::History => closed(Printed::json_schema()),
        Described::Interval => written!("interval"),
        Described::Copy => written!("copy"),
        Described::Ping => written!("ping"),
        Described::Law => written!("law"),
        Described::Stacks => written!("stacks"),
        Described::Scenarios => written!("scenarios"),
        Described::Metrics => written!("metrics"),
        Described::Observation => written!("observation"),
        Described::Doctor => written!("doctor"),
        Described::Emulation => written!("emulation"),
        Described::Policy => written!("policy"),
        Described::Explanation => written!("explanation"),
        Described::TunerStatus => written!("tuner-status"),
        Described::TunerFlows => written!("tuner-flows"),
        Described::TunerPlan => written!("tuner-plan"),
        Described::TunerCompare => written!("tuner-compare"),
        Described::Event => written!("event"),
        Described::Config => written!("config"),
    }
}

/// What is printed has no other members than these.
fn closed(schema: impl Into<Value>) -> String {
    let mut schema = schema.into();
    close(&mut schema);
    pretty(schema)
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.contains_key("properties") && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

fn pretty(schema: impl Into<Value>) -> String {
    format!("{:#}\n", schema.into())
}
