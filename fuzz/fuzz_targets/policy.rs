//! No text makes the reader of policies panic, and what it accepts keeps the limits of the kernel
//! side.
#![no_main]

use std::net::SocketAddr;

use fullpipe_policy::{Action, Flow, Policy, Source, TABLE_ROWS, Verdict};
use libfuzzer_sys::fuzz_target;

// A line `#file` begins a drop-in.
fuzz_target!(|text: &str| {
    let sources: Vec<Source> = text
        .split("\n#file\n")
        .take(3)
        .enumerate()
        .map(|(i, text)| Source {
            name: format!("{i}.toml"),
            text: text.to_owned(),
        })
        .collect();
    match Policy::parse(&sources) {
        Ok(policy) => {
            let rules = &policy.compiled.rules;
            assert!(!rules.is_empty() && rules.len() == policy.paths.len());
            for (i, rule) in rules.iter().enumerate() {
                assert!(!rule.selector.to.is_empty() && rule.share <= 65536);
                assert!(rules[..i].iter().all(|other| other.name != rule.name));
                let flow = Flow {
                    local_port: 0,
                    remote: SocketAddr::new(rule.selector.to[0].address, 0),
                    side: None,
                    cgroup: None,
                    process: None,
                    chose_algorithm: false,
                    cookie: 0,
                };
                // A rule that asks for nothing but a network has the network's first address.
                let selector = &rule.selector;
                let plain = selector.ports.is_empty()
                    && selector.side == fullpipe_policy::Side::Either
                    && selector.cgroup.is_none()
                    && selector.process.is_none();
                if plain && rule.share > 0 {
                    assert!(matches!(policy.compiled.verdict(&flow), Verdict::Rule(at) if at <= i));
                }
                let Action::Ours { params, table } = &rule.action else {
                    continue;
                };
                assert!(table.len() <= TABLE_ROWS && params.rows as usize == table.len());
                assert!(table.windows(2).all(|pair| pair[0].window < pair[1].window));
                for row in table {
                    assert!((1..=4096 << 8).contains(&row.increase));
                    assert!((65536 / 128..=65536 / 2).contains(&row.decrease));
                }
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.0.is_empty());
            let _ = diagnostics.to_string();
        }
    }
});
