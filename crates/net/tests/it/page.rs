//! `docs/attacks.md` names the test that holds each attack: all of them are there.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_page_of_attacks_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/attacks.md")).unwrap();
    let (mut rows, mut named) = (Vec::new(), 0);
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let mut found = 0;
        for test in line.split('`').skip(1).step_by(2) {
            let Some((path, name)) = test.split_once(": ") else {
                continue;
            };
            let text = fs::read_to_string(root.join(path));
            let text = text.unwrap_or_else(|e| panic!("{path}: {e}"));
            let is_there = match path.ends_with(".py") {
                true => text.contains(&format!("def {name}(folder):")),
                false => text.contains(&format!("fn {name}(")),
            };
            assert!(is_there, "{path} has no test {name}");
            found += 1;
        }
        let number = line
            .split('|')
            .nth(1)
            .and_then(|n| n.trim().parse::<u32>().ok());
        assert!(found > 0 || number.is_none(), "no test: {line}");
        rows.extend(number);
        named += found;
    }
    assert_eq!(rows, (1..=19).collect::<Vec<_>>());
    assert!(named > 60, "{named}");
}
