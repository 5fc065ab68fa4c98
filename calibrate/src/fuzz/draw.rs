//! Drawing scenarios: every one from a seed of its own, small, and of what both grounds may do.
//!
//! What a ground cannot do is not known here: it is asked.

use fullpipe_cc::StackSpec;
use fullpipe_linux::MODULES;
use fullpipe_run::ComponentRng;
use toml::{Table, Value};

use super::draft::Draft;

/// Class of a scenario: the report counts agreement for each.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// One flow, losses of a drop-tail buffer only.
    DropTail,
    /// One flow behind RED, PIE, CoDel or FQ-CoDel.
    Aqm,
    /// The same with marks.
    Ecn,
    /// The link transmits nothing for a while.
    Outage,
    /// Late packets, jitter.
    Reordering,
    /// Random losses, losses at exact places.
    Loss,
    /// Losses of ACKs.
    AckLoss,
    /// A flow in the other direction.
    Reverse,
    /// Finite transfers.
    Finite,
    /// Two flows in one direction.
    Pairs,
    /// Rate or delay change.
    Schedule,
    /// Settings of the hosts: ACKs, windows, time stamps, SACK, pacing.
    Host,
    /// A token bucket at the entry.
    Policer,
    /// Datagrams or short flows beside one flow.
    Traffic,
    /// Two or three of the others.
    Mixed,
}

/// The paths that scenarios are drawn over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Paths {
    /// 2 to 50 Mbit/s, 5 to 300 ms: windows of some hundred segments at most, so that a search sees
    /// many scenarios
    #[default]
    Small,
    /// 100 Mbit/s to 1 Gbit/s, 20 to 200 ms: windows of thousands, receivers that run out of buffer
    LongFat,
}

/// What the draws of a kind of path keep to.
#[derive(Clone, Copy)]
struct Limits {
    /// Mbit/s.
    rate: (f64, f64),
    /// ms.
    rtt: (f64, f64),
    /// Packets of 1500 bytes that the link can send in the scenario's time: about 20 us each in the
    /// kernel.
    packets: f64,
    /// Fastest that a change makes the link, Mbit/s.
    fastest: f64,
    /// Probability of a loss.
    loss: (f64, f64),
    /// Probability that a packet is late.
    late: (f64, f64),
    /// Segments from one regular loss to the next.
    every: (f64, f64),
    /// Longest finite transfer, segments.
    longest: f64,
}

impl Paths {
    const fn limits(self) -> Limits {
        match self {
            Self::Small => Limits {
                rate: (2.0, 50.0),
                rtt: (5.0, 300.0),
                packets: 20_000.0,
                fastest: 60.0,
                loss: (1e-4, 0.03),
                late: (3e-4, 0.1),
                every: (50.0, 3000.0),
                longest: 5000.0,
            },
            Self::LongFat => Limits {
                rate: (100.0, 1000.0),
                rtt: (20.0, 200.0),
                packets: 400_000.0,
                fastest: 1500.0,
                loss: (1e-6, 3e-3),
                late: (1e-5, 0.03),
                every: (1000.0, 100_000.0),
                longest: 100_000.0,
            },
        }
    }
}

/// How often each class is drawn: drop-tail and what has a bound of its own most often.
const WEIGHTS: &[(Class, u64)] = &[
    (Class::DropTail, 20),
    (Class::Aqm, 12),
    (Class::Ecn, 8),
    (Class::Outage, 8),
    (Class::Reordering, 8),
    (Class::Loss, 8),
    (Class::AckLoss, 5),
    (Class::Reverse, 5),
    (Class::Finite, 5),
    (Class::Pairs, 5),
    (Class::Schedule, 5),
    (Class::Host, 6),
    (Class::Policer, 3),
    (Class::Traffic, 2),
    (Class::Mixed, 6),
];

impl Class {
    /// The word that `--class` takes, in kebab case.
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

/// A drawn scenario.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The seed it was drawn from.
    pub seed: u64,
    /// The class, drawn first.
    pub class: Class,
    /// The scenario.
    pub draft: Draft,
}

/// The scenario of a seed, over a path of this kind.
pub fn draw(seed: u64, paths: Paths) -> Drawn {
    let mut dice = Dice(ComponentRng::new(seed, "fuzz"));
    let class = dice.class();
    let (mut draft, path) = dice.plain(seed, paths.limits());
    match class {
        Class::Mixed => {
            let mut left = MIXABLE.to_vec();
            for _ in 0..2 + dice.below(2) {
                let class = left.swap_remove(dice.below(left.len() as u64) as usize);
                dice.add(class, path, &mut draft);
            }
        }
        class => dice.add(class, path, &mut draft),
    }
    draft.flows().for_each(lose_what_is_sent);
    Drawn { seed, class, draft }
}

/// What can be put on top of something else.
const MIXABLE: &[Class] = &[
    Class::Aqm,
    Class::Outage,
    Class::Reordering,
    Class::Loss,
    Class::AckLoss,
    Class::Reverse,
    Class::Finite,
    Class::Schedule,
    Class::Host,
];

/// Stacks that the kernel has as a module and the simulator as `NAME-linux`.
pub fn stacks() -> Vec<String> {
    let names = MODULES.iter().map(|m| format!("{m}-linux"));
    names.filter(|s| StackSpec::parse(s).is_ok()).collect()
}

/// The path before anything is added to it.
#[derive(Clone, Copy)]
struct Path {
    /// Mbit/s.
    rate: f64,
    /// ms.
    rtt: f64,
    /// s.
    duration: f64,
    /// Packets.
    bdp: f64,
    limits: Limits,
}

struct Dice(ComponentRng);

impl Dice {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.uniform()
    }

    /// Equally likely in every octave.
    fn octaves(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.0.uniform())
    }

    fn within(&mut self, (low, high): (f64, f64)) -> f64 {
        self.octaves(low, high)
    }

    fn below(&mut self, n: u64) -> u64 {
        ((n as f64 * self.0.uniform()) as u64).min(n - 1)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.0.uniform() < p
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }

    fn class(&mut self) -> Class {
        let mut left = self.below(WEIGHTS.iter().map(|(_, w)| w).sum());
        for (class, weight) in WEIGHTS {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return *class,
            }
        }
        Class::Mixed
    }

    fn flow(&mut self) -> Table {
        let stacks = stacks();
        let mut flow = Table::new();
        put(&mut flow, "stack", self.of(&stacks).clone());
        put(&mut flow, "preset", "linux");
        flow
    }

    /// One flow over a drop-tail path.
    fn plain(&mut self, seed: u64, limits: Limits) -> (Draft, Path) {
        let rate = two_digits(self.within(limits.rate));
        let rtt = self.within(limits.rtt).round();
        let longest = (limits.packets * 12e-3 / rate).clamp(5.0, 20.0);
        // Fifty round trips where there is room: a loss every few.
        let shortest = (rtt * 50e-3).clamp(5.0, longest);
        let duration = self.between(shortest, longest).round();
        let bdp = rate * rtt / 12.0;
        let buffer = (bdp * self.octaves(0.1, 4.0)).round().max(3.0);
        let mut draft = Draft::new(&format!("fuzz-{seed}"), &format!("{duration}s"));
        draft.set("path", "rate", mbit(rate));
        draft.set("path", "rtt", ms(rtt));
        draft.set("path", "buffer", packets(buffer));
        draft.push("flow", self.flow());
        let path = Path {
            rate,
            rtt,
            duration,
            bdp,
            limits,
        };
        (draft, path)
    }

    fn add(&mut self, class: Class, path: Path, draft: &mut Draft) {
        match class {
            Class::DropTail | Class::Mixed => {}
            Class::Aqm => self.aqm(path, false, draft),
            Class::Ecn => self.aqm(path, true, draft),
            Class::Outage => self.outage(path, draft),
            Class::Reordering => self.reordering(path, draft),
            Class::Loss => self.loss(path, draft),
            Class::AckLoss => {
                draft.set("path", "return_loss", digits(self.octaves(0.003, 0.5)));
                draft.set("path", "loss_of_acks", true);
            }
            Class::Reverse => self.reverse(path, draft),
            Class::Finite => self.finite(path, draft),
            Class::Pairs => self.second(path, draft),
            Class::Schedule => self.schedule(path, draft),
            Class::Host => self.host(path, draft),
            Class::Policer => {
                let mut policer = Table::new();
                let rate = two_digits(path.rate * self.between(0.3, 0.95));
                put(&mut policer, "rate", mbit(rate));
                let kilobytes = (path.bdp * 1.5 * self.octaves(0.2, 4.0)).round().max(5.0);
                put(&mut policer, "burst", format!("{kilobytes}kB"));
                draft.set("path", "policer", policer);
            }
            Class::Traffic => self.traffic(path, draft),
        }
    }

    fn aqm(&mut self, path: Path, ecn: bool, draft: &mut Draft) {
        let mut queue = Table::new();
        let kind = *self.of(&["red", "adaptive-red", "pie", "codel", "fq-codel"]);
        put(&mut queue, "kind", kind);
        put(&mut queue, "by", "linux");
        match kind {
            "red" => {
                let min = (path.bdp * self.octaves(0.1, 1.0)).round().max(3.0);
                put(&mut queue, "min", packets(min));
                let max = (min * self.between(2.0, 4.0)).round();
                put(&mut queue, "max", packets(max));
                put(&mut queue, "max_p", *self.of(&[0.02, 0.05, 0.1, 0.3]));
            }
            "adaptive-red" => {}
            "pie" => {
                if self.chance(0.5) {
                    put(&mut queue, "target", ms(self.octaves(5.0, 40.0).round()));
                }
            }
            _ => {
                if self.chance(0.5) {
                    put(&mut queue, "target", ms(self.octaves(2.0, 20.0).round()));
                    put(
                        &mut queue,
                        "interval",
                        ms(self.octaves(50.0, 200.0).round()),
                    );
                }
            }
        }
        if ecn {
            put(&mut queue, "ecn", true);
            draft.flows().for_each(|f| put(f, "ecn", true));
        }
        draft.set("path", "queue", queue);
        // Room enough that the discipline decides, most of the time.
        if self.chance(0.8) {
            draft.set(
                "path",
                "buffer",
                packets((path.bdp * 6.0).round().max(200.0)),
            );
        }
        if self.chance(0.25) {
            draft.flows().for_each(|f| put(f, "pacing", true));
        }
    }

    fn outage(&mut self, path: Path, draft: &mut Draft) {
        let mut change = Table::new();
        let at = self.between(1.0, path.duration * 0.7);
        put(&mut change, "at", ms((at * 1e3).round()));
        let longest = (path.duration - at - 1.0).clamp(0.3, 6.0);
        let outage = self.octaves(0.1, longest);
        put(&mut change, "outage", ms((outage * 1e3).round()));
        draft.set("path", "schedule", vec![Value::Table(change)]);
    }

    fn reordering(&mut self, path: Path, draft: &mut Draft) {
        if self.chance(0.2) {
            let jitter = (path.rtt * self.octaves(0.02, 0.5) * 1e3).round();
            draft.set("path", "jitter", format!("{jitter}us"));
            return;
        }
        let mut reorder = Table::new();
        put(
            &mut reorder,
            "probability",
            digits(self.within(path.limits.late)),
        );
        let extra = (path.rtt * self.octaves(0.03, 2.0) * 1e3).round();
        put(&mut reorder, "extra", format!("{extra}us"));
        draft.set("path", "reorder", reorder);
    }

    fn loss(&mut self, path: Path, draft: &mut Draft) {
        let p = digits(self.within(path.limits.loss));
        match self.below(4) {
            0 => draft.set("path", "loss", p),
            1 => {
                let mut loss = Table::new();
                put(&mut loss, "model", "gilbert-elliott");
                put(&mut loss, "to_bad", p);
                put(&mut loss, "to_good", digits(self.octaves(0.05, 0.8)));
                draft.set("path", "loss", loss);
            }
            kind => {
                let mut rule = Table::new();
                if kind == 2 {
                    put(&mut rule, "every", self.within(path.limits.every) as i64);
                } else {
                    let most = path.rate * path.duration / 12e-3 * 0.7;
                    let mut places: Vec<i64> = (0..1 + self.below(12))
                        .map(|_| self.octaves(5.0, most.max(10.0)) as i64)
                        .collect();
                    // Half of them in runs, as an overflow leaves them.
                    if self.chance(0.5) {
                        let run = 1 + self.below(8) as i64;
                        places.extend((0..run).map(|i| places[0] + 1 + i).collect::<Vec<_>>());
                    }
                    places.sort_unstable();
                    places.dedup();
                    let places: Vec<Value> = places.into_iter().map(Value::from).collect();
                    put(&mut rule, "segment", places);
                }
                // Room for the window between two losses.
                let room = packets((path.bdp * 3.0).round().max(100.0));
                draft.set("path", "buffer", room);
                draft.flows().for_each(|f| put(f, "drop", rule.clone()));
            }
        }
    }

    fn reverse(&mut self, path: Path, draft: &mut Draft) {
        if self.chance(0.5) {
            let rate = two_digits(path.rate * self.octaves(0.1, 1.0));
            draft.set("path", "return_rate", mbit(rate));
        }
        name_all(draft);
        let mut flow = self.flow();
        put(&mut flow, "name", "back");
        put(&mut flow, "direction", "reverse");
        put(&mut flow, "start", ms(self.between(0.0, 3000.0).round()));
        draft.push("flow", flow);
    }

    fn second(&mut self, path: Path, draft: &mut Draft) {
        name_all(draft);
        let mut flow = self.flow();
        put(&mut flow, "name", "other");
        if self.chance(0.7) {
            put(&mut flow, "start", ms(self.between(0.0, 3000.0).round()));
        }
        if self.chance(0.3) {
            let rtt = (path.rtt * self.between(1.1, 4.0)).round().min(400.0);
            put(&mut flow, "rtt", ms(rtt));
        }
        draft.push("flow", flow);
    }

    fn finite(&mut self, path: Path, draft: &mut Draft) {
        let most = path.rate * path.duration / 12e-3 * 0.3;
        let size = self
            .octaves(1.0, most.clamp(20.0, path.limits.longest))
            .round();
        for f in draft.flows() {
            put(f, "size", format!("{size} segments"));
        }
    }

    fn schedule(&mut self, path: Path, draft: &mut Draft) {
        let mut changes = Vec::new();
        let mut at = 0.0;
        for _ in 0..1 + self.below(3) {
            at += self.between(0.5, path.duration * 0.35);
            let mut change = Table::new();
            put(&mut change, "at", ms((at * 1e3).round()));
            if self.chance(0.65) {
                let rate =
                    two_digits((path.rate * self.octaves(0.2, 3.0)).min(path.limits.fastest));
                put(&mut change, "rate", mbit(rate));
            } else {
                let rtt = (path.rtt * self.octaves(0.4, 3.0))
                    .round()
                    .clamp(3.0, 400.0);
                put(&mut change, "rtt", ms(rtt));
            }
            changes.push(Value::Table(change));
        }
        draft.set("path", "schedule", changes);
    }

    fn host(&mut self, path: Path, draft: &mut Draft) {
        let window = (path.bdp * self.octaves(0.3, 3.0)).round().max(4.0);
        for _ in 0..1 + self.below(2) {
            let (key, value): (_, Value) = match self.below(8) {
                0 => ("delayed_ack", false.into()),
                1 => ("receive_window", format!("{window} segments").into()),
                2 => ("window", format!("{window} segments").into()),
                3 => (
                    "initial_window",
                    format!("{} segments", 1 + self.below(40)).into(),
                ),
                4 => ("min_rto", ms(self.octaves(20.0, 1000.0).round()).into()),
                5 => ("timestamps", false.into()),
                6 => ("recovery", "newreno".into()),
                _ => ("pacing", true.into()),
            };
            draft.flows().for_each(|f| put(f, key, value.clone()));
        }
    }

    fn traffic(&mut self, path: Path, draft: &mut Draft) {
        let mut traffic = Table::new();
        put(&mut traffic, "name", "cross");
        if self.chance(0.5) {
            put(&mut traffic, "kind", "udp");
            put(
                &mut traffic,
                "rate",
                mbit(two_digits(path.rate * self.between(0.1, 0.6))),
            );
        } else {
            put(&mut traffic, "kind", "short-flows");
            put(&mut traffic, "stack", "cubic-linux");
            put(&mut traffic, "preset", "linux");
            put(
                &mut traffic,
                "size",
                format!("{} segments", 3 + self.below(60)),
            );
            put(&mut traffic, "load", digits(self.between(0.05, 0.4)));
        }
        draft.push("traffic", traffic);
    }
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

/// A loss beyond the end of a transfer is an error of its scenario.
fn lose_what_is_sent(flow: &mut Table) {
    let size = flow.get("size").and_then(Value::as_str);
    let size: Option<i64> = size.and_then(|size| size.strip_suffix(" segments")?.parse().ok());
    let rule = flow
        .get_mut("drop")
        .and_then(|rule| rule.get_mut("segment"));
    let (Some(size), Some(places)) = (size, rule.and_then(Value::as_array_mut)) else {
        return;
    };
    places.retain(|place| place.as_integer().is_some_and(|place| place < size));
    if places.is_empty() {
        flow.remove("drop");
    }
}

/// Flows need names once there are two.
fn name_all(draft: &mut Draft) {
    for (i, f) in draft.flows().enumerate() {
        let name = if i == 0 {
            "main".to_owned()
        } else {
            format!("main{i}")
        };
        f.entry("name").or_insert_with(|| name.into());
    }
}

fn mbit(rate: f64) -> String {
    format!("{rate}Mbit/s")
}

fn ms(ms: f64) -> String {
    format!("{ms}ms")
}

fn packets(n: f64) -> String {
    format!("{n} packets")
}

/// Two significant digits of a rate in Mbit/s.
fn two_digits(x: f64) -> f64 {
    digits(x).max(0.1)
}

/// Two significant digits.
fn digits(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::super::run::resolve;
    use super::*;

    #[test]
    fn every_draw_is_a_scenario_and_repeats() {
        let mut seen = Vec::new();
        for (seed, &paths) in (0..3000).zip([Paths::Small, Paths::LongFat].iter().cycle()) {
            let drawn = draw(seed, paths);
            let text = drawn.draft.to_string();
            resolve(&drawn.draft).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(draw(seed, paths).draft, drawn.draft);
            seen.push(drawn.class);
        }
        for (class, _) in WEIGHTS {
            assert!(seen.contains(class), "{class:?} is never drawn");
        }
    }

    #[test]
    fn draws_are_small() {
        for (paths, most) in [(Paths::Small, 22e3), (Paths::LongFat, 440e3)] {
            for seed in 0..300 {
                let spec = resolve(&draw(seed, paths).draft).unwrap();
                let rate = spec.links[0].rate.unwrap().as_bits_per_sec() as f64;
                let packets = rate * spec.duration.as_secs_f64() / 12e3;
                assert!(packets <= most, "{packets}");
            }
        }
    }
}
