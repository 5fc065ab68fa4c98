//! Arguments of `fullpipe sweep`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::parse::{at_least_one, key_value, key_values};

/// `fullpipe sweep`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Sweep {
    /// A scenario file or the name of a built-in scenario
    #[arg(value_name = "SCENARIO")]
    pub scenario: String,

    /// Values of a key, separated by commas; several axes multiply
    #[arg(long, value_name = "KEY=A,B,...", value_parser = key_values)]
    pub axis: Vec<(String, String)>,

    /// Set a key of the scenario; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub set: Vec<(String, String)>,

    /// Seeds of every case, counted up from the scenario's first
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, default_value = "1")]
    pub seeds: NonZeroU32,

    /// Cases of a task
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, default_value = "50")]
    pub batch: NonZeroU32,

    /// Add seeds until the 95 % intervals are this narrow: half width against mean, as 2%
    #[arg(long, value_name = "P")]
    pub precision: Option<String>,

    /// Metric that --precision asks it of [default: goodput_mbps]; may be repeated
    #[arg(long, value_name = "METRIC", requires = "precision")]
    pub of: Vec<String>,

    /// No more seeds than this, precise or not [default: 64]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>, requires = "precision")]
    pub max_seeds: Option<NonZeroU32>,

    /// Ground
    #[arg(long, default_value = "sim")]
    pub ground: String,

    /// Directory of the results: a Parquet file per task
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Make folders of this axis, as Hive writes them (`path.rtt=20ms`); may be repeated
    #[arg(long, value_name = "KEY")]
    pub partition: Vec<String>,

    /// Remove what another sweep has left in --out
    #[arg(long)]
    pub replace: bool,

    /// Run the tasks on the Dask cluster of this scheduler
    #[arg(long, value_name = "ADDRESS", conflicts_with = "processes")]
    pub dask: Option<String>,

    /// Run the tasks in so many processes, instead of threads
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroU32>)]
    pub processes: Option<NonZeroU32>,

    /// Apply the scenario's [quick] settings
    #[arg(long)]
    pub quick: bool,

    /// No progress on stderr; errors are still printed
    #[arg(long, short)]
    pub quiet: bool,
}

pub(super) const ABOUT: &str = "\
Run a scenario over the product of axes, here or on a Dask cluster.

The cases are cut into tasks of --batch; each writes one Parquet file into --out, with a row per \
flow, case and seed, under the hash of what decides its content. A sweep that is started again \
makes only the files that are missing; their bytes do not depend on where they were made. A \
directory holds one sweep: another one in its place needs --replace. A sweep holds no expectations \
against its cases: `fullpipe run` does.

It needs the Python package of fullpipe on this host and on the workers (`pip install \
./crates/py` in its sources); FULLPIPE_PYTHON names the interpreter [default: python3].";

const EXAMPLES: &str = "\
Examples:
  fullpipe sweep first-run --axis path.rtt=20ms,80ms --axis flow.main.stack=reno,cubic --out sweep
  fullpipe sweep my.toml --axis path.rate=1Gbit/s,10Gbit/s --seeds 20 \\
      --dask tcp://10.0.0.1:8786 --out sweep
  fullpipe sweep my.toml --axis path.loss=1e-5,1e-4 --precision 2% --processes 8 --out sweep
  fullpipe sweep my.toml --axis path.rtt=20ms,80ms --partition path.rtt --out sweep --replace
  python3 -c 'import polars; print(polars.scan_parquet(\"sweep/*.parquet\").collect())'";
