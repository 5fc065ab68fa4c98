//! A small matrix, quick to run.

use fullpipe_scenario::{Overrides, Scenario};

/// Two stacks, two packet sizes, two flows one of which has two streams, random losses.
pub const MATRIX: &str = r#"
name = "small"
about = "A matrix that runs in a moment"
duration = "4s"
seeds = [1, 2]

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "reno"
drop = { probability = 1e-3 }

[[flow]]
name = "late"
stack = "cubic"
streams = 2
start = "1s"

[matrix]
"flow.main.stack" = ["reno", "highspeed"]
"path.mtu" = [1500, 9000]

[measure]
interval = "500ms"
warmup = "1s"

[[expect]]
metric = "goodput_mbps"
flow = "main"
where = { "path.mtu" = 1500 }
within = [0.1, 10]
source = "at most the capacity"

[[expect]]
metric = "climb_time_s"
flow = "main"
where = { "path.mtu" = 1500, "flow.main.stack" = "reno" }
within = [0, 100]
source = "undefined without a window cap: fails"
"#;

pub fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "small.toml", &Overrides::default()).unwrap_or_else(|e| panic!("{e}"))
}
