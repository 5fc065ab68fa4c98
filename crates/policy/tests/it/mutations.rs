//! Texts that are almost policies: none makes the reader panic, and what it accepts keeps the
//! limits of the kernel side.

use fullpipe_policy::{Action, Policy, TABLE_ROWS};
use proptest::prelude::*;

use crate::support::sources;

const VALID: &str = include_str!("../../../../contrib/policies/science.toml");

const PIECES: &[&str] = &[
    "\"",
    "[[path]]\n",
    "[defaults]\n",
    "=",
    "\n",
    "0",
    "-1",
    "1e300",
    "nan",
    "true",
    "{}",
    "[]",
    "é",
    "[[path]]\nname = \"x\"\nto = \"192.0.2.9\"\nstack = \"reno\"\n",
    "allow_everything = true\n",
    "name = \"cern\"\n",
    "to = \"::/0\"\n",
    "kernel = \"bbr\"\n",
    "\"0.0.0.0/0\"",
    "\"::ffff:0:0/96\"",
    "\"/\"",
    "\"1-\"",
    "\"65535\"",
    "\"bdp*1e9\"",
    "\"0bit/s\"",
    "\"100Tbit/s\"",
    "\"1ns\"",
    "\"1h\"",
    "\"1e18 segments\"",
    "\"unlimited\"",
    "window = \"bdp\"\n",
    "stack = \"highspeed(high_window=1e9,high_p=1e-15)\"\n",
    "stack = \"highspeed(low_window=1)\"\n",
    "stack = \"multcp(n=64)\"\n",
    "stack = \"scalable(increase=1)\"\n",
    "stack = \"bic-paper\"\n",
    "stack = \"reno+gamma(limit=1e9)\"\n",
    "stack = \"fast(alpha=1e6)\"\n",
    "mtu = 576\n",
    "update_interval = \"100ms\"\n",
    "initial_window = { segments = 1000, spread = \"10s\" }\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_text_panics_and_what_is_accepted_is_within_the_limits(
        changes in prop::collection::vec(
            (0.0..1.0_f64, 0_usize..30, prop::option::of(prop::sample::select(PIECES))),
            1..4,
        ),
        at_lines: bool,
    ) {
        let mut text = VALID.to_owned();
        for (at, length, piece) in changes {
            let mut from = (at * text.len() as f64) as usize;
            // Whole lines keep the text TOML more often.
            let mut to = (from + length).min(text.len());
            if at_lines {
                from = text[..floor(&text, from)].rfind('\n').map_or(0, |i| i + 1);
                to = from;
            }
            let (from, to) = (floor(&text, from), floor(&text, to));
            text.replace_range(from..to.max(from), piece.unwrap_or(""));
        }
        match Policy::parse(&sources(&[&text])) {
            Ok(policy) => {
                prop_assert_eq!(policy.compiled.rules.len(), policy.paths.len());
                for rule in &policy.compiled.rules {
                    prop_assert!(!rule.selector.to.is_empty() && rule.share <= 65536);
                    let Action::Ours { params, table } = &rule.action else { continue };
                    prop_assert!(table.len() <= TABLE_ROWS && params.rows as usize == table.len());
                    for row in table {
                        prop_assert!((1..=4096 << 8).contains(&row.increase), "{row:?}\n{text}");
                        prop_assert!((512..=32768).contains(&row.decrease), "{row:?}\n{text}");
                    }
                }
            }
            Err(why) => prop_assert!(!why.0.is_empty() && !why.to_string().is_empty()),
        }
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0)
}
