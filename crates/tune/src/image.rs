//! From compiled rules to what one half of the maps holds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use fullpipe_policy::{
    Action, Compiled, LAW_BIC, LAW_CUBIC, LAW_FAST, LAW_HSTCP_LP, LAW_HTCP, LAW_SCALABLE,
    LAW_VEGAS, LAW_WESTWOOD, Params, Row, Rule, Side,
};

use crate::layout::{Match, NETWORKS, NO_LAW, POLICIES, RANGES, RULES, match_flag};

/// What one half of the maps holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Prefixes of mapped addresses, with their length, and a bit for each rule that covers them.
    pub prefixes: BTreeMap<([u8; 16], u8), u64>,
    /// Rules in their order.
    pub matches: Vec<Match>,
    /// Parameters and table of each law, by number of the policy.
    pub policies: BTreeMap<u32, (Params, Vec<Row>)>,
    /// Ports that are never touched.
    pub never: Vec<(u16, u16)>,
}

/// Numbers of policies: a rule keeps its number as long as its name is in the file, so that running
/// flows find it again.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<Number>);

#[derive(Clone, Debug)]
enum Number {
    Free,
    Rule(String),
    /// Of a rule that has gone. Flows still have it, until they are moved.
    Left,
}

impl Numbers {
    /// Takes over these names: those that are new get numbers that no flow has, in their order.
    pub fn assign<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let names: Vec<&str> = names.collect();
        let there: BTreeSet<&str> = names.iter().copied().collect();
        for number in &mut self.0 {
            if matches!(number, Number::Rule(name) if !there.contains(name.as_str())) {
                *number = Number::Left;
            }
        }
        for name in names {
            if self.of(name).is_some() {
                continue;
            }
            let new = Number::Rule(name.to_owned());
            let free = self.0.iter().position(|n| matches!(n, Number::Free));
            let left = self.0.iter().position(|n| matches!(n, Number::Left));
            match free.or(left.filter(|_| self.0.len() == POLICIES)) {
                Some(number) => self.0[number] = new,
                None => self.0.push(new),
            }
        }
    }

    /// All flows have been moved.
    pub fn settled(&mut self) {
        for number in &mut self.0 {
            if matches!(number, Number::Left) {
                *number = Number::Free;
            }
        }
    }

    /// The number of a rule.
    pub fn of(&self, name: &str) -> Option<usize> {
        let is = |n: &Number| matches!(n, Number::Rule(of) if of == name);
        self.0.iter().position(is)
    }

    /// The rule of a number.
    pub fn name(&self, number: usize) -> Option<&str> {
        match self.0.get(number)? {
            Number::Rule(name) => Some(name),
            Number::Free | Number::Left => None,
        }
    }
}

/// Why a policy does not fit into the maps.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unfit {
    /// More rules than bits.
    #[error("{0} rules; the kernel side holds {RULES}")]
    Rules(usize),
    /// More ranges than fields.
    #[error("path {0}: {1} ranges of ports; the kernel side holds {RANGES}")]
    Ranges(String, usize),
    /// More networks than the trie has room for.
    #[error("{0} networks; the kernel side holds {NETWORKS}")]
    Networks(usize),
    /// More ranges than fields.
    #[error("{0} ranges of ports that are never touched; the kernel side holds {RANGES}")]
    Never(usize),
}

impl Image {
    /// What `compiled` makes of the maps, and rules of single flows. `prefix`: how names of
    /// algorithms of ours begin.
    ///
    /// # Errors
    /// It does not fit.
    pub fn new<'a>(
        compiled: &Compiled,
        own: impl Iterator<Item = &'a Rule>,
        numbers: &Numbers,
        prefix: &str,
    ) -> Result<Self, Unfit> {
        let rules = &compiled.rules;
        if rules.len() > RULES {
            return Err(Unfit::Rules(rules.len()));
        }
        let never = ranges(&compiled.never_tune);
        if never.len() > RANGES {
            return Err(Unfit::Never(never.len()));
        }
        let mut image = Self {
            never,
            ..Self::default()
        };
        for rule in rules {
            let number = numbers.of(&rule.name).unwrap_or(POLICIES - 1) as u32;
            image.matches.push(match_of(rule, number, prefix)?);
            let policy = match &rule.action {
                Action::Ours { params, table } => (*params, table.clone()),
                Action::Kernel { pacing, .. } => {
                    let pacing = *pacing;
                    (Params { pacing, ..NO_LAW }, Vec::new())
                }
            };
            image.policies.insert(number, policy);
        }
        for rule in own {
            if let (Some(number), Action::Ours { params, table }) =
                (numbers.of(&rule.name), &rule.action)
            {
                image
                    .policies
                    .insert(number as u32, (*params, table.clone()));
            }
        }
        image.prefixes = prefixes(rules);
        match image.prefixes.len() {
            0..=NETWORKS => Ok(image),
            many => Err(Unfit::Networks(many)),
        }
    }
}

/// A bit for each rule that covers a network. The trie finds the longest prefix alone: it has to
/// know the rules of the shorter ones, too.
fn prefixes(rules: &[Rule]) -> BTreeMap<([u8; 16], u8), u64> {
    let mut own: BTreeMap<(u128, u32), u64> = BTreeMap::new();
    for (k, rule) in rules.iter().enumerate() {
        for network in &rule.selector.to {
            *own.entry(network.mapped()).or_default() |= 1 << k;
        }
    }
    let lengths: BTreeSet<u32> = own.keys().map(|&(_, bits)| bits).collect();
    let with_shorter = |&(address, bits): &(u128, u32)| {
        let cut = |to: u32| address & u128::MAX.checked_shl(128 - to).unwrap_or(0);
        let covering = lengths.range(..=bits);
        let mask = covering.fold(0, |mask, &to| mask | own.get(&(cut(to), to)).unwrap_or(&0));
        ((address.to_be_bytes(), bits as u8), mask)
    };
    own.keys().map(with_shorter).collect()
}

fn match_of(rule: &Rule, number: u32, prefix: &str) -> Result<Match, Unfit> {
    let selector = &rule.selector;
    let ranges = ranges(&selector.ports);
    if ranges.len() > RANGES {
        return Err(Unfit::Ranges(rule.name.clone(), ranges.len()));
    }
    let flags = [
        // What is by process or control group the daemon decides, when it looks at running flows.
        (
            selector.cgroup.is_none() && selector.process.is_none(),
            match_flag::USED,
        ),
        (rule.respect_app, match_flag::RESPECT_APP),
    ];
    Ok(Match {
        flags: flags.iter().filter(|(is, _)| *is).map(|(_, f)| f).sum(),
        side: match selector.side {
            Side::Either => 0,
            Side::Active => 1,
            Side::Passive => 2,
        },
        share: rule.share,
        ranges,
        algorithm: algorithm(rule, prefix),
        send_buffer: buffer_option(rule.send_buffer),
        receive_buffer: buffer_option(rule.receive_buffer),
        policy: number,
    })
}

/// What `SO_SNDBUF` and `SO_RCVBUF` are set to; 0: they are not.
pub fn buffer_option(bytes: Option<u64>) -> u32 {
    bytes.map_or(0, |b| u32::try_from(b).unwrap_or(i32::MAX as u32))
}

/// The name that the kernel knows a rule's algorithm by.
pub fn algorithm(rule: &Rule, prefix: &str) -> String {
    let law = match &rule.action {
        Action::Kernel { name, .. } => return name.clone(),
        Action::Ours { params, .. } => params.law,
    };
    let name = match law {
        LAW_SCALABLE => "scalable",
        LAW_HTCP => "htcp",
        LAW_BIC => "bic",
        LAW_CUBIC => "cubic",
        LAW_WESTWOOD => "westwood",
        LAW_VEGAS => "vegas",
        LAW_FAST => "fast",
        LAW_HSTCP_LP => "hslp",
        _ if rule.stack.starts_with("highspeed") => "highspeed",
        _ => "aimd",
    };
    format!("{prefix}{name}")
}

fn ranges(ports: &[RangeInclusive<u16>]) -> Vec<(u16, u16)> {
    ports.iter().map(|r| (*r.start(), *r.end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rule;

    fn names(rules: &[Rule]) -> impl Iterator<Item = &str> {
        rules.iter().map(|r| r.name.as_str())
    }

    #[test]
    fn a_longer_prefix_carries_the_rules_of_the_shorter_ones() {
        let rules = vec![
            rule("inner", "10.1.0.0", 16),
            rule("other", "192.0.2.0", 24),
            rule("outer", "10.0.0.0", 8),
        ];
        let mut numbers = Numbers::default();
        numbers.assign(names(&rules));
        let compiled = Compiled {
            rules,
            ..crate::testing::empty()
        };
        let image = Image::new(&compiled, std::iter::empty(), &numbers, "fp_").unwrap();
        let masks: Vec<(u8, u64)> = image.prefixes.iter().map(|((_, b), m)| (*b, *m)).collect();
        assert_eq!(masks, [(104, 0b100), (112, 0b101), (120, 0b010)]);
    }

    #[test]
    fn a_rule_keeps_its_number_when_others_come_and_go() {
        let mut numbers = Numbers::default();
        numbers.assign(["b", "a"].into_iter());
        assert_eq!((numbers.of("b"), numbers.of("a")), (Some(0), Some(1)));
        // Flows of `b` still have its number.
        numbers.assign(["c", "a"].into_iter());
        assert_eq!((numbers.of("c"), numbers.of("a")), (Some(2), Some(1)));
        numbers.settled();
        numbers.assign(["a", "c", "b"].into_iter());
        assert_eq!((numbers.of("b"), numbers.name(1)), (Some(0), Some("a")));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_number() {
        let mut numbers = Numbers::default();
        let mut many = rule("many", "10.0.0.0", 8);
        many.selector.ports = (0..9).map(|k| k..=k).collect();
        numbers.assign(["many"].into_iter());
        let compiled = Compiled {
            rules: vec![many],
            ..crate::testing::empty()
        };
        let refused = Image::new(&compiled, std::iter::empty(), &numbers, "fp_").unwrap_err();
        assert_eq!(refused, Unfit::Ranges("many".into(), 9));
    }
}
