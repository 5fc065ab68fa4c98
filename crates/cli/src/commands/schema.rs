//! `fullpipe schema`.

use fullpipe_results::falsify::Falsification;
use fullpipe_results::result::RunResult;
use fullpipe_scenario::Scenario;

use crate::args::{Described, Schema};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn schema(args: &Schema) -> Result<Exit, Failure> {
    let schema = match args.what {
        Described::Scenario => Scenario::json_schema(),
        Described::Result => RunResult::json_schema(),
        Described::Falsification => Falsification::json_schema(),
    };
    output::data(&format!("{:#}\n", schema.as_value()))?;
    Ok(Exit::Ok)
}
