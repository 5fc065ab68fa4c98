//! The wrong worlds of a scenario: those that its file names, and those that can be made of any
//! scenario by taking something away from it.

use std::collections::BTreeSet;

use fullpipe_cc::{Kind, StackSpec};
use fullpipe_run::{Buffer, Loss};
use fullpipe_scenario::{Case, Overrides, Scenario, WorldKey};

/// A world in which something differs from the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct World {
    /// Description: the change that makes it wrong.
    pub about: String,
    /// Line of its `[[negative]]`; `None`: made here.
    pub line: Option<usize>,
    /// Why no number changes in it, as its file says.
    pub inert: Option<String>,
    /// Keys with other values than in the scenario.
    pub keys: Vec<WorldKey>,
    /// It changes cases that are held against others, and leaves those others alone.
    pub one_sided: bool,
}

impl World {
    /// The scenario in this world, without the expectations that are invalid there.
    ///
    /// # Errors
    /// Why there is none: a key of it contradicts the others, or the cases are no longer the same
    /// ones.
    pub fn of(&self, scenario: &Scenario, overrides: &Overrides) -> Result<Scenario, String> {
        let overrides = Overrides {
            world: self.keys.clone(),
            ..overrides.clone()
        };
        let other = Scenario::parse(&scenario.text, &scenario.origin, &overrides);
        let other = other.map_err(|wrong| {
            let messages = wrong.0.iter().map(|wrong| match wrong.key.as_str() {
                "" => wrong.message.clone(),
                key => format!("`{key}`: {}", wrong.message),
            });
            messages.collect::<Vec<_>>().join("; ")
        })?;
        let (here, there) = (scenario.cases.len(), other.cases.len());
        match here == there {
            true => Ok(other),
            false => Err(format!("it has {there} cases, and the scenario {here}")),
        }
    }

    /// Keys and values as `--set` takes them, each once: `flow.main.stack=reno`.
    pub fn assignments(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for change in &self.keys {
            let text = format!("{}={}", change.key, change.value);
            if !all.contains(&text) {
                all.push(text);
            }
        }
        all
    }

    /// What is wrong with it, whichever flow or link it is wrong with: worlds of one kind are one
    /// piece of evidence.
    pub fn kind(&self) -> &str {
        let about = self.about.as_str();
        match self.line {
            Some(_) => about,
            None => {
                let about = about.split_once(": ").map_or(about, |(_, kind)| kind);
                about.strip_suffix(NOT_THE_OTHER).unwrap_or(about)
            }
        }
    }

    /// The flow or traffic that is not there, if nothing else differs.
    pub fn switched_off(&self) -> Option<&str> {
        let mut names = self.keys.iter().map(|change| {
            let name = change.key.strip_suffix(".enabled")?;
            let (table, name) = name.split_once('.')?;
            let off = change.value == "false" && matches!(table, "flow" | "traffic");
            off.then_some(name)
        });
        let first = names.next()??;
        names.all(|name| name == Some(first)).then_some(first)
    }

    fn everywhere(about: String, key: String, value: &str) -> World {
        let value = value.to_owned();
        let case = None;
        World {
            about,
            line: None,
            inert: None,
            keys: vec![WorldKey { case, key, value }],
            one_sided: false,
        }
    }
}

/// All worlds of a scenario, those of its file first. Worlds that change none of its cases are
/// among them.
pub fn worlds(scenario: &Scenario) -> Vec<World> {
    let mut all: Vec<World> = Vec::new();
    for negative in &scenario.negatives {
        let keys = negative.set.iter().map(|(key, value)| WorldKey {
            case: None,
            key: key.clone(),
            value: value.clone(),
        });
        all.push(World {
            about: negative.about.clone(),
            line: Some(negative.line),
            inert: negative.inert.clone(),
            keys: keys.collect(),
            one_sided: false,
        });
    }
    let subjects = subjects(scenario);
    for tables in &subjects {
        all.extend(other_stacks(scenario, tables, SWAPS, &|_| true, ""));
    }
    let one_side = one_side(scenario);
    if !one_side.is_empty() {
        for tables in &subjects {
            let here = |case| one_side.contains(&case);
            all.extend(other_stacks(
                scenario,
                tables,
                ON_ONE_SIDE,
                &here,
                NOT_THE_OTHER,
            ));
        }
    }
    all.extend(without_parts(scenario));
    all
}

/// Tables whose stack is replaced, as `flow.main`: of each flow that an expectation is about, of
/// each class of short flows, of all flows together where one is about anything else, and each
/// whose stack is not the same in all cases.
fn subjects(scenario: &Scenario) -> Vec<Vec<String>> {
    let tables = owned_names(scenario, |case| {
        stacks(case).map(|(table, _)| table).collect()
    });
    let flows = tables.iter().filter(|table| table.starts_with(FLOW));
    let flows: Vec<String> = flows.cloned().collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut add = |group: Vec<String>| {
        if !group.is_empty() && !groups.contains(&group) {
            groups.push(group);
        }
    };
    for expectation in &scenario.expectations {
        let name = expectation.flow.as_deref();
        let own = tables.iter().find(|table| Some(name_in(table)) == name);
        add(own.into_iter().cloned().collect());
        if own.is_none_or(|own| !flows.contains(own)) {
            add(flows.clone());
        }
    }
    for table in tables.iter().filter(|table| varies(scenario, table)) {
        if !groups.iter().flatten().any(|known| known == table) {
            groups.push(vec![table.clone()]);
        }
    }
    groups
}

/// True if this table does not have the same stack in all cases.
fn varies(scenario: &Scenario, table: &str) -> bool {
    let of = |case: &'_ Case| -> Option<String> {
        let mut all = stacks(case);
        all.find_map(|(name, stack)| (name == table).then(|| stack.to_owned()))
    };
    let mut all = scenario.cases.iter().map(of);
    let first = all.next();
    all.any(|stack| Some(stack) != first)
}

/// What has a stack in a case, as `flow.main` or `traffic.web`, and its stack.
fn stacks(case: &Case) -> impl Iterator<Item = (String, &str)> {
    let flows = case.flows.iter();
    let flows = flows.map(|f| (format!("{FLOW}{}", f.name), f.stack.as_str()));
    let traffic = case.traffic.iter();
    let traffic =
        traffic.filter_map(|t| Some((format!("traffic.{}", t.name), t.stack.as_deref()?)));
    flows.chain(traffic)
}

const FLOW: &str = "flow.";

/// `flow.main` is `main`.
fn name_in(table: &str) -> &str {
    table.split_once('.').map_or(table, |(_, name)| name)
}

/// Cases that are held against another one, and that no other one is held against.
fn one_side(scenario: &Scenario) -> BTreeSet<usize> {
    let pairs = || scenario.expectations.iter().flat_map(|e| &e.pairs);
    let peers: BTreeSet<usize> = pairs().map(|(_, peer)| *peer).collect();
    let cases = pairs().map(|(case, _)| *case);
    cases.filter(|case| !peers.contains(case)).collect()
}

/// Worlds in which these tables have another stack in some of the cases.
fn other_stacks(
    scenario: &Scenario,
    tables: &[String],
    swaps: &[Swap],
    cases: &dyn Fn(usize) -> bool,
    remark: &str,
) -> Vec<World> {
    let of: Vec<&str> = tables.iter().map(|table| name_in(table)).collect();
    let of = of.join(", ");
    let mut all = Vec::new();
    for (about, other) in swaps {
        let mut keys = Vec::new();
        for case in scenario.cases.iter().filter(|case| cases(case.index)) {
            let here = stacks(case).filter(|(table, _)| tables.contains(table));
            for (table, stack) in here {
                let stack = StackSpec::parse(stack).ok();
                if let Some(value) = stack.and_then(|stack| other(&stack)) {
                    keys.push(WorldKey {
                        case: Some(case.index),
                        key: format!("{table}.stack"),
                        value: format!("{value:?}"),
                    });
                }
            }
        }
        if !keys.is_empty() {
            all.push(World {
                about: format!("{of}: {about}{remark}"),
                line: None,
                inert: None,
                keys,
                one_sided: !remark.is_empty(),
            });
        }
    }
    all
}

/// Worlds without one of the things that are there: a traffic, a loss, a limit.
fn without_parts(scenario: &Scenario) -> Vec<World> {
    let mut all = Vec::new();
    let mut add = |about: String, key: String, value: &str| {
        all.push(World::everywhere(about, key, value));
    };
    for name in names(scenario, |case| {
        case.traffic.iter().map(|t| &t.name).collect()
    }) {
        add(
            format!("{name}: switched off"),
            format!("traffic.{name}.enabled"),
            "false",
        );
    }
    let flows = flow_names(scenario);
    for name in &flows {
        if flows.len() > 1 {
            add(
                format!("{name}: switched off"),
                format!("flow.{name}.enabled"),
                "false",
            );
        }
        for (key, value, about) in OF_A_FLOW {
            add(
                format!("{name}: {about}"),
                format!("flow.{name}.{key}"),
                value,
            );
        }
        if has_interface(scenario, name) {
            let about = "an interface that nothing fills";
            add(
                format!("{name}: {about}"),
                format!("flow.{name}.nic_rate"),
                "\"10Tbit/s\"",
            );
            let about = "no small queues";
            add(
                format!("{name}: {about}"),
                format!("flow.{name}.tsq"),
                "false",
            );
        }
    }
    if loses_on_the_way_back(scenario) {
        let about = "path: no loss on the way back";
        add(about.to_owned(), "path.return_loss".to_owned(), "0");
    }
    let links = |case: &'_ Case| case.run_spec(0).links.into_iter().map(|l| l.name).collect();
    let links = owned_names(scenario, links);
    for (key, value, about) in OF_A_LINK {
        let whole = ("path", format!("path.{key}"), None);
        let single = links.iter().map(|name| {
            let key = format!("link.{name}.{key}");
            (name.as_str(), key, Some(name.as_str()))
        });
        for (of, key, link) in [whole].into_iter().chain(single) {
            let about = format!("{of}: {about}");
            if value == &ANY_QUEUE {
                all.extend(where_a_queue_ends(scenario, about, &key, link));
            } else {
                all.push(World::everywhere(about, key, value));
            }
        }
    }
    all
}

/// The world with room for any queue, in the cases in which a link, or this one, has an end of its
/// own: an unlimited queue is another one only in that nobody counts its ties.
fn where_a_queue_ends(
    scenario: &Scenario,
    about: String,
    key: &str,
    link: Option<&str>,
) -> Option<World> {
    let ends = |case: &Case| {
        let links = case.run_spec(0).links;
        let mut asked = links
            .iter()
            .filter(|l| link.is_none_or(|name| l.name == name));
        asked.any(|l| l.buffer != Buffer::Unlimited)
    };
    let cases: Vec<&Case> = scenario.cases.iter().filter(|case| ends(case)).collect();
    let everywhere = World::everywhere(about, key.to_owned(), ANY_QUEUE);
    if cases.len() == scenario.cases.len() {
        return Some(everywhere);
    }
    let of_case = |case: &&Case| WorldKey {
        case: Some(case.index),
        ..everywhere.keys[0].clone()
    };
    let keys: Vec<WorldKey> = cases.iter().map(of_case).collect();
    (!keys.is_empty()).then_some(World { keys, ..everywhere })
}

/// What another stack is called, and how it follows from the scenario's; `None`: no other one.
type Swap = (&'static str, fn(&StackSpec) -> Option<String>);

const SWAPS: &[Swap] = &[
    ("standard TCP in its place", |_| Some("reno".to_owned())),
    ("a law that no loss impresses", |_| Some(UNMOVED.to_owned())),
    ("a nonsense law", |_| Some(NONSENSE.to_owned())),
    ("decreases a fifth larger", |stack| decrease(stack, 1.2)),
    ("decreases a fifth smaller", |stack| decrease(stack, 0.8)),
    ("plain slow start", |stack| without(stack, Kind::StartUp)),
    ("a start-up that crawls", crawling),
    ("the first window in one burst", |stack| {
        without(stack, Kind::Sending)
    }),
    ("not paced", |stack| without(stack, Kind::Pacing)),
];

/// For comparisons, of which only one side changes.
const ON_ONE_SIDE: &[Swap] = &[
    ("a law that no loss impresses", |_| Some(UNMOVED.to_owned())),
    ("a nonsense law", |_| Some(NONSENSE.to_owned())),
    ("decreases a fifth larger", |stack| decrease(stack, 1.2)),
    ("decreases a fifth smaller", |stack| decrease(stack, 0.8)),
    ("a start-up that crawls", crawling),
];
/// End of the name of a world that is wrong on one side of a comparison only.
pub const NOT_THE_OTHER: &str = ", not in the case it is compared with";

/// Limited slow start from two segments on: one segment per round trip (RFC 3742).
fn crawling(stack: &StackSpec) -> Option<String> {
    let plain = stack.without(Kind::StartUp);
    let plain = plain.as_ref().unwrap_or(stack).to_string();
    // The start-up comes behind the law, before what sends and paces.
    let at = plain.find('+').unwrap_or(plain.len());
    let (law, rest) = plain.split_at(at);
    let slow = format!("{law}+limited(max_ssthresh=2){rest}");
    StackSpec::parse(&slow).is_ok().then_some(slow)
}

/// Grows by 40 segments in a round trip and keeps a tenth of the window at a loss.
const NONSENSE: &str = "aimd(increase=40,decrease=0.9)";
/// Keeps its window at a loss.
const UNMOVED: &str = "aimd(decrease=0.000001)";

/// What a flow is without: key, value, and how the world is called.
const OF_A_FLOW: [(&str, &str, &str); 4] = [
    ("drop", "[]", "no drops ordered"),
    ("change", "[]", "nothing changes while it runs"),
    ("streams", "1", "one stream"),
    (
        "window",
        "\"10 segments\"",
        "a fixed window of ten segments",
    ),
];

/// As a buffer, and one whose ties are counted.
const ANY_QUEUE: &str = "\"10000000 packets\"";

/// Impairments taken away from a link: key, neutral value, name of the world.
const OF_A_LINK: &[(&str, &str, &str)] = &[
    ("loss", "0", "no random loss"),
    ("buffer", ANY_QUEUE, "room for any queue"),
    ("queue", "\"droptail\"", "first in, first out"),
    ("jitter", "\"0s\"", "no jitter"),
    ("reorder", "\"off\"", "no reordering"),
    ("policer", "\"off\"", "no policer"),
    ("schedule", "[]", "nothing changes on it"),
];

/// The stack with losses that remove `times` as much; standard TCP, which takes no such parameter,
/// as the AIMD that it is.
fn decrease(stack: &StackSpec, times: f64) -> Option<String> {
    if stack.law_name() == "reno" {
        let aimd = format!("aimd(decrease={})", 0.5 * times);
        return Some(stack.to_string().replacen("reno", &aimd, 1));
    }
    stack.removing(times).map(|stack| stack.to_string())
}

fn without(stack: &StackSpec, kind: Kind) -> Option<String> {
    stack.without(kind).map(|stack| stack.to_string())
}

fn flow_names(scenario: &Scenario) -> Vec<String> {
    names(scenario, |case| {
        case.flows.iter().map(|f| &f.name).collect()
    })
}

/// Names that any case has, in order.
fn names<'a>(scenario: &'a Scenario, of: impl Fn(&'a Case) -> Vec<&'a String>) -> Vec<String> {
    owned_names(scenario, |case| of(case).into_iter().cloned().collect())
}

fn owned_names<'a>(scenario: &'a Scenario, of: impl Fn(&'a Case) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in scenario.cases.iter().flat_map(of) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// True if ACKs or flows in reverse are lost at random in any case.
fn loses_on_the_way_back(scenario: &Scenario) -> bool {
    scenario.cases.iter().any(|case| {
        let spec = case.run_spec(0);
        let mut back = spec.flows.iter().flat_map(|f| &f.back);
        back.any(|&link| spec.links[link].loss != Loss::None)
    })
}

/// True if the flow has an interface of its own in any case.
fn has_interface(scenario: &Scenario, name: &str) -> bool {
    scenario.cases.iter().any(|case| {
        let flows = case.run_spec(0).flows;
        let group = case.flows.iter().find(|f| f.name == name);
        group.is_some_and(|g| flows[g.members.clone()].iter().any(|f| f.local_queue))
    })
}
