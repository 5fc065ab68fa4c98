//! Two stored results against each other.

use fullpipe_suite::compare::{Options, Verdict, compare};
use fullpipe_suite::scenario::Overrides;
use fullpipe_suite::store::ResultDir;

use crate::store_support::{MATRIX, run, scenario, with};

#[test]
fn stored_results_agree_with_themselves_and_not_with_a_slower_path() {
    let root = tempfile::tempdir().unwrap();
    let (a, b) = (root.path().join("a"), root.path().join("b"));
    run(&scenario(MATRIX), Some(&a), 2, false).unwrap();
    let slower = Overrides {
        set: vec![("path.rate".into(), "5Mbit/s".into())],
        ..Overrides::default()
    };
    run(&with(MATRIX, &slower), Some(&b), 2, false).unwrap();
    let read = |dir| ResultDir::open(dir).unwrap().result().unwrap();
    let (a, b) = (read(a.as_path()), read(b.as_path()));

    assert!(compare(&a, &a, &Options::default()).agree);
    let c = compare(&a, &b, &Options::default());
    assert!(!c.agree && c.missing.is_empty());
    let total = c
        .rows
        .iter()
        .filter(|r| r.metric == "aggregate_goodput_mbps");
    let total: Vec<_> = total.collect();
    assert_eq!(total.len(), 4);
    for row in total {
        assert_eq!(row.verdict, Verdict::Beyond, "{row:?}");
        // Half the rate; with jumbo frames the buffer holds two packets, and less than half gets through.
        assert!((-0.85..-0.4).contains(&row.relative.unwrap()), "{row:?}");
    }
    let text = serde_json::to_string(&c).unwrap();
    assert!(text.contains(r#""verdict":"beyond""#) && text.contains(r#""agree":false"#));
}
