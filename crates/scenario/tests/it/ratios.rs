//! Three stacks with windows of 4 and of 8 segments.

pub const RATIOS: &str = r#"
name = "ratios"
duration = "2s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
[matrix]
"flow.main.stack" = ["reno", "cubic", "scalable"]
"flow.main.window" = ["4 segments", "8 segments"]
"#;
