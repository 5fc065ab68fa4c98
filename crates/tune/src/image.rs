//! From compiled rules to what one half of the maps holds.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use fullpipe_policy::{
    Action, Compiled, LAW_BIC, LAW_CUBIC, LAW_FAST, LAW_HSTCP_LP, LAW_HTCP, LAW_SCALABLE,
    LAW_VEGAS, LAW_WESTWOOD, Params, Prefix, Row, Rule, Side,
};

use crate::layout::{self, Match, RANGES, RULES, match_flag};

/// What one half of the maps holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Image {
    /// Prefixes of mapped addresses, with their length, and a bit for each rule that covers them.
    pub prefixes: BTreeMap<([u8; 16], u8), u64>,
    /// Rules in their order.
    pub matches: Vec<Match>,
    /// What flows get, by number.
    pub policies: BTreeMap<u32, (Params, Vec<Row>)>,
    /// Ports that are never touched.
    pub never: Vec<(u16, u16)>,
}

/// Numbers of policies: a rule keeps its number as long as its name is in the file, so that running
/// flows find it again.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Vec<Option<String>>);

impl Numbers {
    /// Takes over the names of `rules`: those that are new get numbers that were free.
    pub fn assign(&mut self, rules: &[Rule]) {
        for name in &mut self.0 {
            if name
                .as_ref()
                .is_some_and(|n| rules.iter().all(|r| r.name != *n))
            {
                *name = None;
            }
        }
        for rule in rules {
            if self.of(&rule.name).is_some() {
                continue;
            }
            match self.0.iter_mut().find(|name| name.is_none()) {
                Some(free) => *free = Some(rule.name.clone()),
                None => self.0.push(Some(rule.name.clone())),
            }
        }
    }

    /// The number of a rule.
    pub fn of(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|n| n.as_deref() == Some(name))
    }

    /// The rule of a number.
    pub fn name(&self, number: usize) -> Option<&str> {
        self.0.get(number)?.as_deref()
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
    /// More ranges than fields.
    #[error("{0} ranges of ports that are never touched; the kernel side holds {RANGES}")]
    Never(usize),
}

impl Image {
    /// What `compiled` makes of the maps. `prefix`: how names of algorithms of ours begin.
    ///
    /// # Errors
    /// It does not fit.
    pub fn new(compiled: &Compiled, numbers: &Numbers, prefix: &str) -> Result<Self, Unfit> {
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
            let number = numbers.of(&rule.name).unwrap_or(RULES - 1) as u32;
            image.matches.push(match_of(rule, number, prefix)?);
            if let Action::Ours { params, table } = &rule.action {
                image.policies.insert(number, (*params, table.clone()));
            }
        }
        let all: Vec<([u8; 16], u8)> = rules.iter().flat_map(|r| &r.to).map(mapped).collect();
        for &(address, bits) in &all {
            // The trie finds the longest: it has to know the rules of the shorter ones, too.
            let covers = |p: &Prefix| covers(mapped(p), (address, bits));
            let with = rules.iter().enumerate();
            let with = with.filter(|(_, r)| r.to.iter().any(covers));
            let mask = with.fold(0, |mask, (k, _)| mask | 1 << k);
            image.prefixes.insert((address, bits), mask);
        }
        Ok(image)
    }
}

fn match_of(rule: &Rule, number: u32, prefix: &str) -> Result<Match, Unfit> {
    let ranges = ranges(&rule.ports);
    if ranges.len() > RANGES {
        return Err(Unfit::Ranges(rule.name.clone(), ranges.len()));
    }
    let flags = [
        (true, match_flag::USED),
        (rule.respect_app, match_flag::RESPECT_APP),
        (
            rule.cgroup.is_some() || rule.process.is_some(),
            match_flag::USER_ONLY,
        ),
        (matches!(rule.action, Action::Kernel(_)), match_flag::KERNEL),
    ];
    let bytes = |b: Option<u64>| b.map_or(0, |b| u32::try_from(b).unwrap_or(i32::MAX as u32));
    Ok(Match {
        flags: flags.iter().filter(|(is, _)| *is).map(|(_, f)| f).sum(),
        side: match rule.side {
            Side::Either => 0,
            Side::Active => 1,
            Side::Passive => 2,
        },
        share: rule.share,
        ranges,
        algorithm: algorithm(rule, prefix),
        send_buffer: bytes(rule.send_buffer),
        receive_buffer: bytes(rule.receive_buffer),
        policy: number,
    })
}

/// The name that the kernel knows a rule's algorithm by.
pub fn algorithm(rule: &Rule, prefix: &str) -> String {
    let law = match &rule.action {
        Action::Kernel(name) => return name.clone(),
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

/// Address and length of a prefix as the maps have it.
fn mapped(prefix: &Prefix) -> ([u8; 16], u8) {
    let before = if prefix.address.is_ipv4() { 96 } else { 0 };
    (layout::mapped(prefix.address), before + prefix.bits)
}

fn covers((outer, bits): ([u8; 16], u8), (inner, length): ([u8; 16], u8)) -> bool {
    let shift = 128 - u32::from(bits);
    let of = |a: [u8; 16]| u128::from_be_bytes(a).checked_shr(shift).unwrap_or(0);
    bits <= length && of(outer) == of(inner)
}

/// Whether a rule is for a flow, its process and control group aside: what `rule_fits` of the BPF
/// side decides.
pub fn fits(rule: &Rule, remote: std::net::IpAddr, ports: (u16, u16), side: Side) -> bool {
    let address = (layout::mapped(remote), 128);
    let (local, remote) = ports;
    let one = |r: &RangeInclusive<u16>| match rule.side {
        Side::Active => r.contains(&remote),
        Side::Passive => r.contains(&local),
        Side::Either => r.contains(&local) || r.contains(&remote),
    };
    rule.to.iter().any(|p| covers(mapped(p), address))
        && (rule.side == Side::Either || rule.side == side)
        && (rule.ports.is_empty() || rule.ports.iter().any(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rule;

    #[test]
    fn a_longer_prefix_carries_the_rules_of_the_shorter_ones() {
        let rules = vec![
            rule("inner", "10.1.0.0", 16),
            rule("other", "192.0.2.0", 24),
            rule("outer", "10.0.0.0", 8),
        ];
        let mut numbers = Numbers::default();
        numbers.assign(&rules);
        let compiled = Compiled {
            rules,
            ..crate::testing::empty()
        };
        let image = Image::new(&compiled, &numbers, "fp_").unwrap();
        let masks: Vec<(u8, u64)> = image.prefixes.iter().map(|((_, b), m)| (*b, *m)).collect();
        assert_eq!(masks, [(104, 0b100), (112, 0b101), (120, 0b010)]);
    }

    #[test]
    fn a_rule_keeps_its_number_when_others_come_and_go() {
        let mut numbers = Numbers::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| rule(name, "10.0.0.0", 8));
        numbers.assign(&[a.clone(), b.clone()]);
        assert_eq!((numbers.of("a"), numbers.of("b")), (Some(0), Some(1)));
        numbers.assign(&[c.clone(), b.clone()]);
        assert_eq!((numbers.of("c"), numbers.of("b")), (Some(0), Some(1)));
        numbers.assign(&[b, c, a]);
        assert_eq!((numbers.of("a"), numbers.name(1)), (Some(2), Some("b")));
    }

    #[test]
    fn ports_are_those_of_the_end_that_was_connected_to() {
        let mut rule = rule("web", "10.0.0.0", 8);
        rule.ports = vec![443..=443];
        let at = |rule: &Rule, local, remote, side| {
            fits(rule, [10, 1, 2, 3].into(), (local, remote), side)
        };
        assert!(at(&rule, 443, 5000, Side::Passive) && at(&rule, 5000, 443, Side::Passive));
        rule.side = Side::Passive;
        assert!(at(&rule, 443, 5000, Side::Passive));
        assert!(!at(&rule, 5000, 443, Side::Passive) && !at(&rule, 443, 5000, Side::Active));
        assert!(!fits(
            &rule,
            [11, 1, 2, 3].into(),
            (443, 5000),
            Side::Passive
        ));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_number() {
        let mut numbers = Numbers::default();
        let mut many = rule("many", "10.0.0.0", 8);
        many.ports = (0..9).map(|k| k..=k).collect();
        numbers.assign(std::slice::from_ref(&many));
        let compiled = Compiled {
            rules: vec![many],
            ..crate::testing::empty()
        };
        let refused = Image::new(&compiled, &numbers, "fp_").unwrap_err();
        assert_eq!(refused, Unfit::Ranges("many".into(), 9));
    }
}
