//! Which rule a flow is of: the first that matches it.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::compiled::{Compiled, Rule, Selector, Side};

/// What a selector can ask of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Port of this host.
    pub local_port: u16,
    /// The other end.
    pub remote: SocketAddr,
    /// Which end opened it; `None`: not known, and only rules for either match.
    pub side: Option<Side>,
    /// Control group below the root of its hierarchy, `/` first.
    pub cgroup: Option<String>,
    /// Name of the process.
    pub process: Option<String>,
    /// The program has set `TCP_CONGESTION` itself.
    pub chose_algorithm: bool,
    /// The kernel's number of the socket.
    pub cookie: u64,
}

/// Why a rule is not for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The address is in none of its networks.
    Address,
    /// Neither port, or not the port that counts, is in its ranges.
    Port,
    /// The other end opened it.
    Side,
    /// The socket is of another control group.
    Cgroup,
    /// Another process has it.
    Process,
}

/// Which rule decides on a flow, and if none does, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A port of either end is never touched.
    NeverTuned,
    /// No rule is for it.
    NoRule,
    /// The first rule that matches; its index.
    Rule(usize),
    /// The rule leaves flows alone whose program chose an algorithm.
    AppChose(usize),
    /// The rule's `share` leaves this one as it was.
    Control(usize),
}

impl Compiled {
    /// Tries the ports that are never tuned, then the rules in their order.
    pub fn verdict(&self, flow: &Flow) -> Verdict {
        let ports = [flow.local_port, flow.remote.port()];
        if ports.iter().any(|port| within(&self.never_tune, *port)) {
            return Verdict::NeverTuned;
        }
        let first = self
            .rules
            .iter()
            .position(|rule| rule.mismatch(flow).is_none());
        let Some(index) = first else {
            return Verdict::NoRule;
        };
        let rule = &self.rules[index];
        if rule.respect_app && flow.chose_algorithm {
            Verdict::AppChose(index)
        } else if !rule.takes(flow.cookie) {
            Verdict::Control(index)
        } else {
            Verdict::Rule(index)
        }
    }
}

impl Selector {
    /// Why it is not for a flow; `None` if it is.
    pub fn mismatch(&self, flow: &Flow) -> Option<Mismatch> {
        let remote: IpAddr = flow.remote.ip();
        if !self.to.iter().any(|prefix| prefix.holds(remote)) {
            return Some(Mismatch::Address);
        }
        if self.side != Side::Either && flow.side != Some(self.side) {
            return Some(Mismatch::Side);
        }
        let (local, remote) = (flow.local_port, flow.remote.port());
        let port = match self.side {
            Side::Either => within(&self.ports, local) || within(&self.ports, remote),
            Side::Active => within(&self.ports, remote),
            Side::Passive => within(&self.ports, local),
        };
        if !self.ports.is_empty() && !port {
            return Some(Mismatch::Port);
        }
        if let Some(above) = &self.cgroup {
            let below = flow.cgroup.as_ref().map(std::path::Path::new);
            if !below.is_some_and(|path| path.starts_with(above)) {
                return Some(Mismatch::Cgroup);
            }
        }
        if self.process.is_some() && self.process != flow.process {
            return Some(Mismatch::Process);
        }
        None
    }

    /// Whether no flow can reach a later one past this one.
    pub(crate) fn shadows(&self, later: &Self) -> bool {
        let ports = self.ports.is_empty()
            || (!later.ports.is_empty()
                && later.ports.iter().all(|range| {
                    self.ports
                        .iter()
                        .any(|own| own.start() <= range.start() && range.end() <= own.end())
                }));
        let side = self.side == later.side || (self.side == Side::Either);
        let cgroup = match (&self.cgroup, &later.cgroup) {
            (None, _) => true,
            (Some(above), Some(below)) => below.starts_with(above),
            (Some(_), None) => false,
        };
        let process = self.process.is_none() || self.process == later.process;
        let networks = later
            .to
            .iter()
            .all(|to| self.to.iter().any(|own| own.contains(to)));
        ports && side && cgroup && process && networks
    }
}

impl Rule {
    /// Why the rule is not for a flow; `None` if it is.
    pub fn mismatch(&self, flow: &Flow) -> Option<Mismatch> {
        self.selector.mismatch(flow)
    }

    /// Whether the flow with this cookie gets the policy: the 16 highest bits of the cookie times
    /// 2^64 over the golden ratio (multiplicative hashing, Knuth volume 3 section 6.4), below
    /// [`Rule::share`]. The same flow always gets the same answer, and neighbours differ.
    pub fn takes(&self, cookie: u64) -> bool {
        let hash = cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        hash < u64::from(self.share)
    }

    /// Whether some of its flows stay as they were: an experiment.
    pub fn is_shared(&self) -> bool {
        self.share < 65536
    }
}

fn within(ranges: &[RangeInclusive<u16>], port: u16) -> bool {
    ranges.iter().any(|range| range.contains(&port))
}
