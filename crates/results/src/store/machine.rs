//! What a manifest says about the machine: enough to compare wall times, nothing that identifies a
//! person or a host.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine a result was made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub arch: String,
    /// Processor's name, where the system tells it.
    pub cpu: Option<String>,
    /// Processors this process may use.
    pub cpus: usize,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn this() -> Machine {
        Machine {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpu: fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| model_name(&text)),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn model_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_name_is_read() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t: x\n";
        assert_eq!(model_name(text).as_deref(), Some("Some CPU @ 2 GHz"));
        assert_eq!(model_name("Features: fp asimd\n"), None);
    }
}
