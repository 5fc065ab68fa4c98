//! The engine of a run: the ground and the metrics that its outcome was reduced to.

use std::collections::BTreeSet;

use fullpipe_run::Ground;
use fullpipe_scenario::Scenario;

use super::sha256;

/// Fingerprint of the sources that decide the rows of a run on `ground`, 16 hexadecimal digits.
pub fn of(ground: &dyn Ground) -> String {
    let text = format!("{} {METRICS}", ground.fingerprint());
    sha256(text.as_bytes())[..16].to_owned()
}

/// Fingerprint of the metrics' sources, made by the build script.
const METRICS: &str = env!("FULLPIPE_METRICS");

/// Stacks that the program brought into the system whose TCP makes the runs, each once.
pub(crate) fn brought(scenario: &Scenario, ground: &dyn Ground) -> Vec<String> {
    if ground.kernel().is_none() {
        return Vec::new();
    }
    let seed = scenario.seeds.first().copied().unwrap_or_default();
    let cases = scenario.cases.iter();
    let all = cases.flat_map(|case| ground.brought(&case.run_spec(seed)));
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use fullpipe_run::{GroundError, Outcome, RunSpec};

    use super::*;

    struct Named(&'static str, &'static str);

    impl Ground for Named {
        fn name(&self) -> &str {
            self.0
        }
        fn fingerprint(&self) -> &str {
            self.1
        }
        fn run(&self, _: &RunSpec) -> Result<Outcome, GroundError> {
            Err(GroundError::Interrupted)
        }
    }

    #[test]
    fn the_ground_s_sources_make_the_engine_and_its_name_does_not() {
        let engine = of(&Named("sim", "0123"));
        assert_eq!(engine.len(), 16);
        assert_eq!(of(&Named("udp", "0123")), engine);
        assert_ne!(of(&Named("sim", "4567")), engine);
        assert_ne!(engine, of(&Named("sim", METRICS)));
    }
}
