//! Two results of one scenario in one picture.

use fullpipe_report::figure::write_overlay;
use fullpipe_results::store::ResultDir;
use fullpipe_run::{Ground, GroundError};
use fullpipe_run::{Outcome, RunSpec};

use crate::small::{MATRIX, scenario};
use crate::support::run_on_ground;

/// The simulator under another name.
struct Other;

impl Ground for Other {
    fn name(&self) -> &str {
        "udp"
    }

    fn fingerprint(&self) -> &str {
        "altered"
    }

    fn run(&self, spec: &RunSpec) -> Result<Outcome, GroundError> {
        Ok(fullpipe_sim::run(spec)?)
    }
}

#[test]
fn the_curves_of_either_ground_bear_its_name() {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|name| root.path().join(name));
    let s = scenario(MATRIX);
    run_on_ground(&s, &dirs[0], &fullpipe_sim::run);
    run_on_ground(&s, &dirs[1], &Other);
    let [a, b] = dirs.map(|dir| ResultDir::open(&dir).unwrap());
    let figures = write_overlay(&a, &b, &root.path().join("figures")).unwrap();
    assert_eq!(figures.cases, s.cases.len());
    let svg = std::fs::read_to_string(figures.first.unwrap()).unwrap();
    assert!(
        svg.contains(">sim, main<") && svg.contains(">udp, main<"),
        "{svg}"
    );
    // A flow has one colour on either side, that of the figures of a run.
    let colour = |name: &str| {
        let (before, _) = svg.split_once(&format!(">{name}<")).unwrap();
        let (_, after) = before.rsplit_once(" stroke=\"").unwrap();
        after.split('"').next().unwrap()
    };
    assert_eq!(colour("sim, main"), colour("udp, main"), "{svg}");
    assert_ne!(colour("sim, main"), colour("sim, late"), "{svg}");
    // As the figures of a run do.
    assert!(svg.contains("; seed 1, one of 2<"), "{svg}");
    let overview = std::fs::read_to_string(figures.overview.unwrap()).unwrap();
    assert!(overview.contains("; seed 1, one of 2<"), "{overview}");
}
