//! The law that CONTRIBUTING.md prints is the file that the unit tests compile, format and lint.

const GENTLE: &str = include_str!("gentle.rs");

#[test]
fn the_example_of_contributing_is_compiled_as_printed() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../CONTRIBUTING.md");
    let page = std::fs::read_to_string(page).expect("CONTRIBUTING.md");
    let printed = page.split("```rust\n").nth(1).expect("a snippet");
    let printed = printed.split("```").next().unwrap_or_default();
    assert_eq!(
        printed, GENTLE,
        "copy crates/cc/tests/it/gentle.rs into the page"
    );
}
