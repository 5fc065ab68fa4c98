//! Two stored results against each other.

use std::num::NonZeroU32;
use std::path::Path;

use fullpipe_results::compare::{
    Comparison, Method, Number, Options, Row, Verdict, compare_stored,
};
use fullpipe_results::store::ResultDir;
use fullpipe_run::Ground;
use fullpipe_run::{Outcome, RunSpec, Violation};
use fullpipe_scenario::Overrides;

use crate::small::{MATRIX, scenario};
use crate::store_support::{run, run_in, with};

#[test]
fn stored_results_agree_with_themselves_and_not_with_a_slower_path() {
    let root = tempfile::tempdir().unwrap();
    let (a, b) = (root.path().join("a"), root.path().join("b"));
    // With two seeds chance does nearly as much to one of so many numbers.
    let seeds = Overrides {
        repeat: NonZeroU32::new(3),
        ..Overrides::default()
    };
    run(&with(MATRIX, &seeds), Some(&a), 2, false).unwrap();
    let slower = Overrides {
        repeat: NonZeroU32::new(3),
        set: vec![("path.rate".into(), "5Mbit/s".into())],
        ..Overrides::default()
    };
    run(&with(MATRIX, &slower), Some(&b), 2, false).unwrap();
    let same = held(&a, &a);
    assert!(same.agree && same.rows.iter().all(|r| r.verdict == Verdict::Same));
    let c = held(&a, &b);
    assert!(!c.agree && c.missing.is_empty());
    let total = c
        .rows
        .iter()
        .filter(|r| r.metric == "aggregate_goodput_mbps");
    let total: Vec<_> = total.collect();
    assert_eq!(total.len(), 4);
    for row in total {
        assert_eq!(row.verdict, Verdict::Beyond, "{row:?}");
        assert_eq!((row.method, row.pairs), (Method::Paired, Some(3)));
        // Half the rate; with jumbo frames the buffer holds two packets, and less than half gets
        // through.
        assert!((-0.85..-0.4).contains(&row.relative.unwrap()), "{row:?}");
    }
    let text = serde_json::to_string(&c).unwrap();
    assert!(text.contains(r#""verdict":"beyond""#) && text.contains(r#""agree":false"#));
}

/// A metric of links beside one of flows is that of the bottleneck of the same case.
#[test]
fn an_expression_takes_the_link_of_its_case() {
    let root = tempfile::tempdir().unwrap();
    // By its name the first.
    let link = "[[link]]\nname = \"access\"\nrate = \"50Mbit/s\"\ndelay = \"10ms\"\n\
                [[route]]\nflow = \"late\"\nforward = \"access\"\n[matrix]";
    let two = MATRIX.replace("[matrix]", link);
    run(&scenario(&two), Some(root.path()), 2, false).unwrap();
    let stored = ResultDir::open(root.path()).unwrap();
    let options = Options {
        metrics: vec!["utilization + 0 * goodput_mbps".to_owned()],
        ..Options::default()
    };
    let compared = compare_stored(&stored, &stored, &options).unwrap();
    let mut seen = Vec::new();
    for case in stored.result().unwrap().cases {
        let used = case
            .link("bottleneck")
            .unwrap()
            .value("utilization")
            .unwrap();
        let of_case = compared.rows.iter().filter(|r| r.params == case.params);
        // Found seed by seed on both sides, not only as a mean.
        assert!(
            of_case.clone().all(|r| r.pairs == Some(2)),
            "{:?}",
            compared.rows
        );
        let of_flows: Vec<f64> = of_case.filter_map(|r| r.a.mean).collect();
        assert_eq!(of_flows.len(), 2);
        let is_used = |u: &f64| (u - used).abs() < 1e-9;
        assert!(of_flows.iter().all(is_used), "{of_flows:?} {used}");
        seen.push(used);
    }
    assert!(seen.windows(2).any(|w| w[0] != w[1]), "{seen:?}");
}

fn held(a: &Path, b: &Path) -> Comparison {
    let open = |dir| ResultDir::open(dir).unwrap();
    compare_stored(&open(a), &open(b), &Options::default()).unwrap()
}

/// The same text, seeds and program, delivered segments changed on the way.
fn with_bias(
    bias: impl Fn(u64, u64) -> u64 + Sync,
) -> impl Fn(&RunSpec) -> Result<Outcome, Violation> {
    move |spec| {
        let mut o = fullpipe_sim::run(spec)?;
        for f in &mut o.flows {
            f.totals.delivered_measured = bias(spec.seed, f.totals.delivered_measured);
        }
        Ok(o)
    }
}

#[test]
fn a_bias_is_found_below_the_noise_of_the_seeds() {
    let root = tempfile::tempdir().unwrap();
    let seeds = Overrides {
        repeat: NonZeroU32::new(5),
        ..Overrides::default()
    };
    let s = with(MATRIX, &seeds);
    let made = |name: &str, engine: &dyn Ground| {
        let dir = root.path().join(name);
        run_in(&s, Some(&dir), 2, false, engine).unwrap();
        dir
    };
    let a = made("a", &fullpipe_sim::run);
    // Nothing was changed: nothing is found.
    let again = held(&a, &made("again", &fullpipe_sim::run));
    assert!(again.agree && again.rows.iter().all(|r| r.verdict == Verdict::Same));
    let rows = |c: &Comparison| -> Vec<Row> {
        let small = |r: &&Row| r.params.text("path.mtu").as_deref() == Some("1500");
        let all = c.rows.iter().filter(|r| r.metric == "goodput_mbps");
        all.filter(small).cloned().collect()
    };
    // A hundred segments more in every run, or one more: less than the spread of the seeds, and yet
    // real.
    let c = held(&a, &made("more", &with_bias(|seed, n| n + 100 + seed % 2)));
    assert!(!c.agree);
    for row in rows(&c) {
        assert_eq!(
            (row.verdict, row.pairs),
            (Verdict::Beyond, Some(5)),
            "{row:?}"
        );
        assert!(row.effect.unwrap().value > 10.0);
    }
    let spread = |n: &Number| n.ci95.map(|[low, high]| (high - low) / 2.0);
    assert!(
        rows(&c)
            .iter()
            .any(|r| spread(&r.a).unwrap() > r.difference.unwrap())
    );
    // Five segments more are as real, but within 5 %.
    let c = held(&a, &made("little", &with_bias(|seed, n| n + 5 + seed % 2)));
    assert!(rows(&c).iter().all(|r| r.verdict == Verdict::Within));
    // Up in some runs and down in others: nothing to be told apart, however large.
    let c = held(
        &a,
        &made(
            "both",
            &with_bias(|seed, n| {
                if seed % 2 == 0 {
                    n * 12 / 10
                } else {
                    n * 9 / 10
                }
            }),
        ),
    );
    let mut rows = c
        .rows
        .iter()
        .filter(|r| r.metric == "aggregate_goodput_mbps");
    assert!(rows.all(|r| r.verdict == Verdict::Indistinguishable));
}

/// What a link without a rate is, a stored result has no word for: its numbers say it.
#[test]
fn a_link_that_only_delays_on_one_side_is_no_disagreement() {
    let root = tempfile::tempdir().unwrap();
    let made = |name: &str, link: &str| {
        let dir = root.path().join(name);
        run(&scenario(&format!("{GRAPH}{link}")), Some(&dir), 2, false).unwrap();
        dir
    };
    let plain = made("plain", "");
    let c = held(&plain, &made("wire", WIRE));
    assert!(
        c.missing.len() == 1 && !c.missing[0].judged,
        "{:?}",
        c.missing
    );
    assert!(
        c.agree,
        "{:?}",
        c.rows.iter().find(|r| r.verdict == Verdict::Beyond)
    );
    let c = held(
        &plain,
        &made("slow", &format!("{WIRE}rate = \"1Gbit/s\"\n")),
    );
    assert!(c.missing[0].judged && !c.agree, "{:?}", c.missing);
}

const GRAPH: &str = r#"
name = "graph"
duration = "2s"
seeds = 2

[path]
rate = "10Mbit/s"
rtt = "20ms"
buffer = "20 packets"

[[flow]]
name = "main"
stack = "reno"
"#;

const WIRE: &str = r#"
[[route]]
flow = "main"
forward = ["bottleneck", "wire"]

[[link]]
name = "wire"
delay = "0s"
"#;
