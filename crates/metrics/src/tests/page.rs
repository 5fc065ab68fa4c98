//! The reference page.

use crate::markdown;

/// `UPDATE_DOCS=1 cargo test -p fullpipe-metrics` writes the page.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/metrics.md is out of date: UPDATE_DOCS=1 cargo test -p fullpipe-metrics"
    );
}
