//! No text, however odd, makes the reader of scenario files panic, and every diagnostic is
//! printable.

use fullpipe_scenario::{Overrides, Scenario, builtin};
use proptest::prelude::*;

fn survives(text: &str, overrides: &Overrides) {
    match Scenario::parse(text, "x.toml", overrides) {
        Ok(scenario) => {
            for case in &scenario.cases {
                let spec = case.run_spec(1);
                // A lasting flow, or short ones alone.
                assert!(!spec.flows.is_empty() || !spec.arrivals.is_empty());
                assert!(!case.key_text().is_empty());
            }
            for expectation in &scenario.expectations {
                assert!(
                    !expectation.cases.is_empty(),
                    "an expectation that cannot fail"
                );
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.0.is_empty());
            let lines: Vec<usize> = diagnostics
                .0
                .iter()
                .map(|d| d.line)
                .filter(|line| *line > 0)
                .collect();
            assert!(lines.is_sorted(), "{diagnostics}");
            assert!(
                lines
                    .iter()
                    .all(|line| *line <= text.lines().count().max(1) + 1),
                "{diagnostics}"
            );
            assert!(diagnostics.0.iter().all(|d| !d.to_string().is_empty()));
        }
    }
}

/// Pieces that mean something to the reader.
fn token() -> impl Strategy<Value = String> {
    let words = [
        "name = \"x\"\n",
        "duration = \"60s\"\n",
        "seeds = 3\n",
        "[path]\n",
        "[[flow]]\n",
        "[matrix]\n",
        "[measure]\n",
        "[[expect]]\n",
        "[[report]]\n",
        "[[matrix.case]]\n",
        "rate = \"1Gbit/s\"\n",
        "rtt = \"80ms\"\n",
        "mtu = 9000\n",
        "stack = \"reno\"\n",
        "stack = \"highspeed(low_window=31)+limited\"\n",
        "window = \"1BDP\"\n",
        "drop = ",
        "{ segment = 40 }\n",
        "[{ every = 10 }, { time = \"1s\" }]\n",
        "loss = { model = \"gilbert-elliott\" }\n",
        "\"path.mtu\" = [1500, 9000]\n",
        "\"flow.*.stack\" = [\"reno\"]\n",
        "path.rtt = \"1ms\"\n",
        "metric = \"jain\"\n",
        "where = { \"path.mtu\" = 1500 }\n",
        "within = [1, 2]\n",
        "at_least = nan\n",
        "\u{0}",
        "é",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "=",
        "1e999",
        "-1",
        "inf",
        "\n",
    ];
    prop_oneof![
        proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        any::<String>()
    ]
}

/// A built-in scenario with pieces cut out, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        0usize..40,
        prop_oneof![Just(String::new()), token(), "[ -~]{0,8}"],
    );
    (
        any::<prop::sample::Index>(),
        prop::collection::vec(edit, 1..6),
    )
        .prop_map(|(which, edits)| {
            let mut text = which.get(builtin::BUILT_IN).1.to_owned();
            for (at, length, new) in edits {
                if text.is_empty() {
                    break;
                }
                let mut from = at.index(text.len());
                let mut to = (from + length).min(text.len());
                while !text.is_char_boundary(from) {
                    from -= 1;
                }
                while !text.is_char_boundary(to) {
                    to += 1;
                }
                text.replace_range(from..to, &new);
            }
            text
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text(text in any::<String>()) {
        survives(&text, &Overrides::default());
    }

    #[test]
    fn any_tokens(tokens in prop::collection::vec(token(), 0..30)) {
        survives(&tokens.concat(), &Overrides::default());
    }

    #[test]
    fn mutated_files(text in mutated()) {
        survives(&text, &Overrides::default());
    }

    #[test]
    fn any_setting(key in "[a-z_.*]{0,24}", value in any::<String>()) {
        let known = ["path.rate", "flow.main.drop", "seeds", "duration", "case", "measure.recovered_at"];
        for key in known.into_iter().chain([key.as_str()]) {
            let set = vec![(key.to_owned(), value.clone())];
            survives(builtin::BUILT_IN[0].1, &Overrides { set, ..Overrides::default() });
        }
    }
}
