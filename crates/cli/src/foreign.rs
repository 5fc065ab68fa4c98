//! What a scenario says of a path, of a host's interface or of headers, where the path is the
//! network between two hosts: nobody makes it there.

use fullpipe_run::{LinkSpec, Loss};
use fullpipe_scenario::{Case, Diagnostic, Scenario, TrafficKind, differing_keys};
use fullpipe_units::Span;

use crate::exit::{Exit, Failure};

/// Keys that nobody can honour with another host.
struct Row {
    /// Tables whose keys they are.
    tables: &'static [&'static str],
    /// Their names; none: all keys of the tables, but those of [`Kept`].
    keys: &'static [&'static str],
    /// What they are about; `{host}` is the other one.
    about: &'static str,
    /// A command or a key that does what was meant, or nearly.
    remedy: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        tables: &["path", "link", "route"],
        keys: &[],
        about: PATH,
        remedy: MADE,
    },
    Row {
        tables: &["flow", "traffic"],
        keys: &["rtt", "rtt_spread"],
        about: PATH,
        remedy: MADE,
    },
    Row {
        tables: &["flow", "traffic"],
        keys: &["nic_rate", "txqueuelen", "host", "sendstall", "tsq"],
        about: "the interface of a host is its system's, as it is",
        remedy: "leave it out; `fullpipe run` without `--peer` makes hosts with an interface",
    },
    Row {
        tables: &["flow", "traffic"],
        keys: &["tcp_options"],
        about: "packets have the headers of the transport that carries them",
        remedy: "leave it out; `path.mtu` is the length of packets",
    },
];

const PATH: &str = "the path is the network to {host}, as it is";
const MADE: &str = "`fullpipe emulate` makes one between two programs, `run --ground udp` for a \
                    run";

/// Keys of `[path]` that mean something all the same.
pub type Kept = [&'static str];

/// `send` measures the round trip: the length of packets, and what 1BDP is of.
pub const SEND: &Kept = &["mtu", "rate"];
/// `run --peer` takes the round trip from the scenario.
pub const RUN: &Kept = &["mtu", "rate", "rtt"];

/// The row of a dotted key; one without a table is a flow's.
fn row(key: &str, kept: &Kept) -> Option<&'static Row> {
    let parts: Vec<&str> = key.split('.').collect();
    let (table, own) = match parts.as_slice() {
        ["path", own, ..] => ("path", *own),
        [table @ ("link" | "route"), ..] => (*table, ""),
        // Of the only one, or of one with a name.
        [table @ ("flow" | "traffic"), own] | [table @ ("flow" | "traffic"), _, own, ..] => {
            (*table, *own)
        }
        [own, ..] => ("flow", *own),
        [] => return None,
    };
    let is_kept = table == "path" && kept.contains(&own);
    ROWS.iter().find(|row| {
        let all = row.keys.is_empty() && !is_kept;
        row.tables.contains(&table) && (all || row.keys.contains(&own))
    })
}

/// Refuses settings that nobody can honour with another host.
///
/// # Errors
/// There is one; the message names it.
pub fn honoured(set: &[(String, String)], kept: &Kept, host: &str) -> Result<(), Failure> {
    let found = set.iter().find_map(|(key, _)| Some((key, row(key, kept)?)));
    let Some((key, row)) = found else {
        return Ok(());
    };
    let about = row.about.replace("{host}", host);
    let failure = Failure::new(Exit::Usage, format!("--set {key}: {about}"));
    let known: Vec<String> = kept.iter().map(|key| format!("path.{key}")).collect();
    let of_path = format!("of a path there are {}", known.join(", "));
    let hints = [Some(of_path).filter(|_| row.about == PATH)];
    let hints = hints.into_iter().flatten().chain([row.remedy.to_owned()]);
    Err(hints.fold(failure, Failure::hint))
}

/// Traffic that is to set out at the other host, and cannot: datagrams and pings leave here.
fn one_way(scenario: &Scenario) -> impl Iterator<Item = &str> {
    let all = scenario.cases.iter().flat_map(|case| case.traffic.iter());
    let stays = all.filter(|t| t.reverse && t.kind != TrafficKind::ShortFlows);
    stays.map(|t| t.name.as_str())
}

/// Refuses directions that traffic cannot have with another host.
///
/// # Errors
/// There is one; the message names it.
pub fn directions(scenario: &Scenario) -> Result<(), Failure> {
    let Some(name) = one_way(scenario).next() else {
        return Ok(());
    };
    let message = format!("`traffic.{name}.direction`: {FROM_HERE}");
    Err(Failure::new(Exit::Usage, message)
        .hint("leave `direction` out, or give the command on the other host"))
}

const FROM_HERE: &str = "datagrams and pings set out here";

/// Whether a warning holds with another host: what its queues do nobody knows, so that ECN is no
/// key that does nothing, and none that the scenario's queues have.
pub fn holds(warning: &Diagnostic) -> bool {
    let is_ecn = matches!(warning.key.rsplit('.').next(), Some("ecn" | "ecn_echo"));
    !is_ecn && row(&warning.key, &[]).is_none()
}

/// What a scenario says of a path that is the one to `peer`: it makes or varies what is not ours,
/// or expects what nobody sees.
pub fn notes(scenario: &Scenario, peer: &str) -> Vec<String> {
    let path = format!("the path is the network to {peer}");
    let mut notes = Vec::new();
    let vary = || {
        scenario
            .cases
            .iter()
            .flat_map(|c| c.json_params().map(|(k, _)| k))
    };
    for key in vary() {
        if SIZE_OF_A_BDP.contains(&key) {
            notes.push(format!(
                "{path}: `{key}` is only what 1BDP means, cases have its label"
            ));
        } else if let Some(row) = row(key, RUN) {
            let about = row.about.replace("{host}", peer);
            notes.push(format!(
                "{about}: `{key}` has no effect, cases differ by chance"
            ));
        }
    }
    let fixed = SIZE_OF_A_BDP.iter();
    let fixed = fixed.filter(|key| !vary().any(|varies| varies == **key));
    let fixed: Vec<String> = fixed.map(|key| format!("`{key}`")).collect();
    if !fixed.is_empty() {
        let verb = if fixed.len() == 1 { "is" } else { "are" };
        notes.push(format!(
            "{path}: {} {verb} only what 1BDP means",
            fixed.join(" and ")
        ));
    }
    let links = scenario.cases.iter().flat_map(|c| c.run_spec(0).links);
    for what in links.flat_map(|link| disturbances(&link)) {
        notes.push(format!(
            "{path}: what the scenario says of {what} is not made there"
        ));
    }
    // Those that vary have been named.
    let written = differing_keys((&scenario.text, &scenario.set), ("", &[]));
    let is_of = |key: &str, name: &str| {
        let rest = key.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let same = |name: &&&str| !vary().any(|key| is_of(key, name));
    for name in QUEUE.iter().filter(same) {
        if written.iter().any(|(key, ..)| is_of(key, name)) {
            notes.push(format!(
                "{path}: what the scenario says of `{name}` is not made there"
            ));
        }
    }
    let differ = |case: &Case| {
        let mut rtts = case.flows.iter().map(|flow| flow.base_rtt);
        let first = rtts.next();
        rtts.any(|rtt| Some(rtt) != first)
    };
    if scenario.cases.iter().any(differ) {
        notes.push(format!(
            "{path}: what the scenario says of round trips of its flows is not made there"
        ));
    }
    for name in one_way(scenario) {
        notes.push(format!(
            "{FROM_HERE}: the direction of `{name}` is not made"
        ));
    }
    for e in scenario.expectations.iter().filter(|e| e.link.is_some()) {
        notes.push(format!(
            "{path}: its links cannot be observed, so the expectation about `{}` cannot hold",
            e.metric
        ));
    }
    let mut said = Vec::new();
    notes.retain(|note| {
        !said.contains(note) && {
            said.push(note.clone());
            true
        }
    });
    notes
}

/// What a link does beside carrying packets at its rate.
fn disturbances(link: &LinkSpec) -> Vec<&'static str> {
    // Every field, so that a new one is not forgotten.
    let LinkSpec {
        name: _,
        rate: _,
        delay: _,
        delay_spread: _,
        buffer: _,
        discipline: _,
        loss,
        loss_of_acks: _,
        jitter,
        reorder,
        policer,
        schedule,
        trace,
        watched: _,
        is_interface,
    } = link;
    let all = [
        (*loss != Loss::None, "loss"),
        (*jitter > Span::ZERO, "jitter"),
        (reorder.is_some(), "reordering"),
        (policer.is_some(), "a policer"),
        (trace.is_some(), "a trace"),
        (!schedule.is_empty(), "changes over time"),
        (*is_interface, "the interface of a host"),
    ];
    all.into_iter()
        .filter(|(is, _)| *is)
        .map(|(_, what)| what)
        .collect()
}

/// Keys of `[path]` that say what a BDP is where the path is not ours.
const SIZE_OF_A_BDP: [&str; 2] = ["path.rate", "path.rtt"];

/// Keys of the bottleneck's queue, which is the network's own.
const QUEUE: [&str; 2] = ["path.buffer", "path.queue"];

#[cfg(test)]
mod tests {
    use fullpipe_scenario::Overrides;

    use super::*;
    use crate::args::send::SEND_ABOUT;

    #[test]
    fn the_help_of_send_names_what_it_refuses_of_a_flow() {
        let of_flow = ROWS.iter().filter(|row| row.tables.contains(&"flow"));
        for key in of_flow.flat_map(|row| row.keys) {
            assert!(SEND_ABOUT.contains(&format!("`{key}`")), "{key}");
        }
    }

    #[test]
    fn a_queue_of_the_scenario_is_not_made_in_a_network() {
        let said = |path: &str, matrix: &str| {
            let text = format!(
                "name = \"n\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \
                 \"10ms\"\n{path}[[flow]]\nstack = \"reno\"\n[matrix]\n{matrix}"
            );
            let scenario = Scenario::parse(&text, "n", &Overrides::default()).unwrap();
            notes(&scenario, "a.example").join("\n")
        };
        let plain = said("", "");
        assert!(
            plain.ends_with("`path.rate` and `path.rtt` are only what 1BDP means"),
            "{plain}"
        );
        let both = said("buffer = \"2BDP\"\nqueue = { kind = \"codel\" }\n", "");
        assert!(both.contains("`path.buffer`") && both.contains("`path.queue`"));
        // Once: cases differ in it.
        let varied = said("", "\"path.buffer\" = [\"1BDP\", \"2BDP\"]\n");
        assert_eq!(varied.matches("path.buffer").count(), 1, "{varied}");
    }

    #[test]
    fn a_key_is_of_its_table() {
        let refused = |key| row(key, SEND).is_some();
        for key in [
            "path.rtt",
            "path.queue.ecn",
            "link.a.rate",
            "tsq",
            "flow.a.tsq",
            "flow.tsq",
            "traffic.p.rtt",
        ] {
            assert!(refused(key), "{key}");
        }
        for key in [
            "path.rate",
            "mtu",
            "flow.rtt.window",
            "traffic.p.rate",
            "measure.trace",
        ] {
            assert!(!refused(key), "{key}");
        }
        assert!(row("path.rtt", RUN).is_none());
    }
}
