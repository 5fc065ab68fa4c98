//! Set-ups of the tests.

use fullpipe_policy::{Action, Params, Policy, Row, Source};

/// Files of a policy: `policy.toml`, then drop-ins.
pub fn sources(texts: &[&str]) -> Vec<Source> {
    let name = |i: usize| match i {
        0 => "policy.toml".to_owned(),
        i => format!("policy.d/{i}.toml"),
    };
    let each = texts.iter().enumerate();
    each.map(|(i, text)| Source {
        name: name(i),
        text: (*text).to_owned(),
    })
    .collect()
}

/// A policy that is expected to be valid.
pub fn policy(text: &str) -> Policy {
    Policy::parse(&sources(&[text])).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// One path with these lines beside its name and network.
pub fn path(lines: &str) -> Policy {
    policy(&text(lines))
}

/// The same as text.
pub fn text(lines: &str) -> String {
    format!("[[path]]\nname = \"a\"\nto = \"192.0.2.0/24\"\n{lines}\n")
}

/// What the path of [`path`] gives the dispatcher.
pub fn ours(lines: &str) -> (Params, Vec<Row>) {
    match path(lines).compiled.rules.swap_remove(0).action {
        Action::Ours { params, table } => (params, table),
        kernel => panic!("{lines}: {kernel:?}"),
    }
}

/// Errors of a policy of one path with these lines.
pub fn errors(lines: &str) -> String {
    match Policy::parse(&sources(&[&text(lines)])) {
        Err(why) => why.to_string(),
        Ok(_) => panic!("{lines} is valid"),
    }
}
