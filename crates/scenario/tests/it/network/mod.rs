//! Networks and traffic of a scenario file: what they resolve to, and what is wrong with them.

mod graph;
mod matrix;
mod path;
mod traffic;
mod wrong;

use fullpipe_run::{LinkSpec, RunSpec};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{Rate, Span};

const HEAD: &str =
    "name = \"x\"\nduration = \"60s\"\n[path]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\n";

fn read(text: &str) -> Scenario {
    read_with(text, false)
}

fn read_with(text: &str, quick: bool) -> Scenario {
    let overrides = Overrides {
        quick,
        ..Overrides::default()
    };
    Scenario::parse(text, "test.toml", &overrides).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The run of a path with these keys and what follows.
fn spec(rest: &str) -> RunSpec {
    let scenario = read(&format!("{HEAD}{rest}"));
    assert_eq!(scenario.warnings, [], "{rest}");
    scenario.cases[0].run_spec(1)
}

fn link<'a>(spec: &'a RunSpec, name: &str) -> &'a LinkSpec {
    let found = spec.links.iter().find(|link| link.name == name);
    found.unwrap_or_else(|| panic!("no link {name} among {:?}", names(spec)))
}

fn names(spec: &RunSpec) -> Vec<&str> {
    spec.links.iter().map(|link| link.name.as_str()).collect()
}

fn way<'a>(spec: &'a RunSpec, links: &[usize]) -> Vec<&'a str> {
    links.iter().map(|i| spec.links[*i].name.as_str()).collect()
}

const fn mbit(n: u64) -> Rate {
    Rate::from_bits_per_sec(n * 1_000_000)
}

const fn ms(n: u64) -> Span {
    Span::from_millis(n)
}

const FLOW: &str = "[[flow]]\nstack = \"reno\"\n";
