//! What the daemon does, over any [`Kernel`]: applies rules, gives running flows theirs, takes them
//! back, and says what it did.

mod decide;
mod force;
mod give_back;
mod orders;
mod records;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fullpipe_policy::{Action, Compiled, OnDaemonLoss, Rule};

pub use self::decide::Decision;
pub use self::give_back::{Back, give_back};
use crate::arms::{Arms, Member};
use crate::divide::Flows;
use crate::image::{Numbers, Unfit};
use crate::journal::{Journal, JournalError, Key};
use crate::kernel::{Counters, Kernel, KernelError, Seen};
use crate::layout::{Control, Event, Listing, Order, OrderAction};

/// A thing that the tuner cannot do, by its cause.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The policy.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nothing of that name.
    #[error("{0}")]
    Unknown(String),
}

/// How long the kernel side waits for a sign of life before flows turn standard.
pub const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);

/// Applied rules and what became of flows.
#[derive(Debug)]
pub struct Tuner<K> {
    kernel: K,
    compiled: Compiled,
    /// The rules as each of their flows gets them, among `shares` of them; behind those of paths
    /// those of single flows.
    each: Vec<Rule>,
    shares: Flows,
    numbers: Numbers,
    control: Control,
    journal: Journal,
    prefix: String,
    /// Flows that have been given a rule, by cookie.
    known: BTreeMap<u64, Known>,
    /// Flows that were to be left alone by order.
    spared: BTreeSet<u64>,
    /// Flows with parameters of their own, by cookie.
    own: BTreeMap<u64, Own>,
    log: Vec<String>,
    watched: Vec<Event>,
    arms: Arms,
    /// What a tuner before this one left has been taken back.
    began: bool,
}

/// A flow that has other parameters than its path.
#[derive(Clone, Debug)]
struct Own {
    /// The path's rule with the flow's parameters; its name is the flow's own.
    rule: Rule,
    /// Name of the path.
    path: String,
}

/// Flows that may have parameters of their own at a time.
pub const OWN: usize = 32;

/// No path has such a name.
fn own_name(cookie: u64) -> String {
    format!("#{cookie}")
}

/// A flow of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    label: String,
    key: Key,
    rule: Option<usize>,
    /// Options of its buffers, and the ceiling of its order ([`Order::ceiling`]).
    sizes: (u32, u32, u32),
    /// The kernel does not give it its rule's algorithm: it is asked again with other rules.
    refused: bool,
}

impl<K: Kernel> Tuner<K> {
    /// Over `kernel`; algorithms of ours have names that begin with `prefix`.
    pub fn new(kernel: K, prefix: &str, journal: Journal) -> Self {
        let empty = Compiled {
            rules: Vec::new(),
            warnings: Vec::new(),
            on_daemon_loss: OnDaemonLoss::Standard,
            never_tune: Vec::new(),
        };
        Self {
            kernel,
            compiled: empty,
            each: Vec::new(),
            shares: Flows::new(),
            numbers: Numbers::default(),
            control: Control {
                patience_us: HEARTBEAT_TIMEOUT.as_micros() as u64,
                ..Control::default()
            },
            journal,
            prefix: prefix.to_owned(),
            known: BTreeMap::new(),
            spared: BTreeSet::new(),
            own: BTreeMap::new(),
            log: Vec::new(),
            watched: Vec::new(),
            arms: Arms::default(),
            began: false,
        }
    }

    /// How long flows wait for a sign of life ([`HEARTBEAT_TIMEOUT`] by default).
    pub fn set_patience(&mut self, patience: Duration) {
        self.control.patience_us = patience.as_micros() as u64;
    }

    /// Lines of the log since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        mem::take(&mut self.log)
    }

    /// Records of watched flows, and what happened to windows of all, since the last call.
    pub fn take_watched(&mut self) -> Vec<Event> {
        mem::take(&mut self.watched)
    }

    /// The rules in force.
    pub fn rules(&self) -> &[Rule] {
        &self.compiled.rules
    }

    /// The number by which the kernel side knows a path.
    pub fn number(&self, path: &str) -> Option<usize> {
        self.numbers.of(path)
    }

    /// Whether all flows run the standard by order ([`Tuner::switch`]).
    pub fn is_off(&self) -> bool {
        self.control.off
    }

    /// Whether the loss of the daemon changes nothing.
    pub fn keeps(&self) -> bool {
        self.control.keep
    }

    /// Applies rules: to new flows from now on, and to those that run. The first time, what another
    /// tuner has left behind is given back before.
    ///
    /// # Errors
    /// [`TuneError`]; then the rules before are in force.
    pub fn apply(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        self.replace(compiled, self.own.clone())
    }

    /// The same, and all flows have the parameters of their paths again.
    ///
    /// # Errors
    /// See [`Tuner::apply`].
    pub fn apply_to_all(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        self.replace(compiled, BTreeMap::new())
    }

    /// Changes parameters of rules that stay: one write, no flow is moved.
    ///
    /// # Errors
    /// [`TuneError`]; then the rules before are in force.
    pub fn install(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        self.put(compiled)?;
        self.known.retain(|_, known| !known.refused);
        Ok(())
    }

    /// How many flows share a path that divides.
    pub fn shares(&self, path: &str) -> Option<u32> {
        self.shares.get(path).copied()
    }

    /// The rule of this name, of a path or of one flow.
    fn named<'a>(&'a self, rules: &'a [Rule], name: Option<&str>) -> Option<&'a Rule> {
        let own = self.own.values().map(|own| &own.rule);
        let mut all = rules.iter().chain(own);
        all.find(|rule| Some(rule.name.as_str()) == name)
    }

    /// What a flow runs that has a path: the path, and the rule with the flow's parameters.
    pub fn rule_of(&self, listing: &Listing) -> Option<(&str, &Rule)> {
        let number = listing.flow.as_ref().filter(|f| !f.control)?.rule?;
        let name = self.numbers.name(number);
        let path = self.own.get(&listing.cookie).map(|o| o.path.as_str());
        let rule = self.named(&self.compiled.rules, name)?;
        Some((
            path.filter(|_| rule.name.starts_with('#'))
                .unwrap_or(&rule.name),
            rule,
        ))
    }

    /// Gives one flow, which has a path, parameters of its own, until [`Tuner::apply_to_all`].
    ///
    /// # Errors
    /// [`TuneError`]; then nothing has changed.
    pub fn set_flow(
        &mut self,
        cookie: u64,
        path: &str,
        action: Action,
        stack: &str,
    ) -> Result<(), TuneError> {
        let unknown = |why: String| Err(TuneError::Unknown(why));
        let Some(rule) = self.compiled.rules.iter().find(|r| r.name == path) else {
            return unknown(format!("no path `{path}`"));
        };
        let rule = Rule {
            name: own_name(cookie),
            action,
            stack: stack.to_owned(),
            ..rule.clone()
        };
        let path = path.to_owned();
        let mut own = self.own.clone();
        own.insert(cookie, Own { rule, path });
        if own.len() > OWN {
            return unknown(format!("{OWN} flows have parameters of their own already"));
        }
        self.replace(self.compiled.clone(), own)
    }

    /// What would change now, by the rules in force.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn plan(&mut self) -> Result<Vec<Decision>, TuneError> {
        let seen = self.kernel.flows(&[])?;
        Ok(self.decide(seen))
    }

    /// What would change if these rules were applied now. Nothing is written.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn preview(&mut self, compiled: Compiled) -> Result<Vec<Decision>, TuneError> {
        let seen = self.kernel.flows(&[])?;
        // Applied rules take parameters of single flows back, and ask the kernel again for what it
        // has refused.
        let own = mem::take(&mut self.own);
        let known = self.known.clone();
        self.known.retain(|_, known| !known.refused);
        let decisions = self.fit(compiled).map(|(mut fitted, _)| {
            self.exchange(&mut fitted);
            let decisions = self.decide(seen);
            self.exchange(&mut fitted);
            decisions
        });
        (self.own, self.known) = (own, known);
        Ok(decisions?)
    }

    /// Gives running flows the rule that they match, and takes back those that match none any more.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn settle(&mut self) -> Result<(), TuneError> {
        let seen = self.kernel.flows(&[])?;
        let alive: BTreeSet<u64> = seen.iter().map(|s| s.listing.cookie).collect();
        self.journal.retain(|(_, cookie)| alive.contains(cookie))?;
        self.spared.retain(|cookie| alive.contains(cookie));
        self.known.retain(|cookie, _| alive.contains(cookie));
        self.own.retain(|cookie, _| alive.contains(cookie));
        let decisions = self.decide(seen);
        self.execute(&decisions)?;
        self.learn(&decisions)?;
        self.divide()?;
        self.compare(&decisions);
        self.numbers.settled();
        Ok(())
    }

    /// Both arms of the paths that have two.
    fn compare(&mut self, decisions: &[Decision]) {
        if self.control.off {
            return;
        }
        let rules = &self.compiled.rules;
        // Those that close are looked at where they are ours alone: no comparison.
        let open = |d: &&Decision| d.seen.listing.state == ESTABLISHED;
        let members = decisions.iter().filter(open).filter_map(|d| {
            let (index, control) = d.arm?;
            let rule = rules.get(index).filter(|r| r.is_shared())?;
            Some(Member {
                key: d.seen.key(),
                path: &rule.name,
                control,
                algorithm: &d.seen.listing.algorithm,
                look: (&d.seen.listing).into(),
            })
        });
        self.arms.look(self.kernel.now_us(), members);
    }

    /// Whether the kernel has refused a flow the algorithm of its rule.
    pub fn is_refused(&self, cookie: u64) -> bool {
        self.known.get(&cookie).is_some_and(|known| known.refused)
    }

    /// What became of flows since they are looked at.
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// The clock of [`Tuner::arms`], microseconds.
    pub fn now_us(&self) -> u64 {
        self.kernel.now_us()
    }

    /// A sign of life: without one the kernel side turns to the standard.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn beat(&mut self) -> Result<(), TuneError> {
        self.control.heartbeat_us = self.kernel.now_us();
        Ok(self.kernel.control(&self.control)?)
    }

    /// Switches everything off or on, at once: flows keep their algorithm's name and run Reno.
    /// Those that run an algorithm of the kernel's own get back what they had.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn switch(&mut self, off: bool) -> Result<(), TuneError> {
        self.control.off = off;
        self.log.push(if off { "off" } else { "on" }.to_owned());
        self.beat()?;
        self.settle()
    }

    /// After a time without a sign of life: others may have given flows back in the meantime.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn resume(&mut self, journal: Journal) -> Result<(), TuneError> {
        self.journal = journal;
        self.beat()?;
        self.settle()
    }

    /// Records the ACKs of one flow, of all (`u64::MAX`), or of none (0).
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn watch(&mut self, cookie: u64) -> Result<(), TuneError> {
        self.control.watched = cookie;
        self.beat()
    }

    /// Gives flows back what they had: all, or those that `which` accepts, which stay so. Flows of
    /// the comparison arm have nothing to get back.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn release(&mut self, which: impl Fn(&Listing) -> bool) -> Result<usize, TuneError> {
        let decisions = self.releasing(which, "released by order")?;
        self.spared
            .extend(decisions.iter().map(|d| d.seen.listing.cookie));
        self.execute(&decisions)?;
        Ok(decisions.len())
    }

    /// What gives flows back what they had.
    fn releasing(
        &mut self,
        which: impl Fn(&Listing) -> bool,
        why: &str,
    ) -> Result<Vec<Decision>, TuneError> {
        let seen = self.kernel.flows(&[])?;
        let ours = |s: &Seen| self.is_tuned(&s.listing) && which(&s.listing);
        let released = seen.into_iter().filter(ours).map(|seen| Decision {
            order: Some(Order {
                action: OrderAction::Release,
                ..Order::default()
            }),
            why: why.to_owned(),
            arm: None,
            seen,
        });
        Ok(released.collect())
    }

    /// Takes back `release` and gives flows that match a rule theirs.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn adopt(&mut self) -> Result<(), TuneError> {
        self.spared.clear();
        self.settle()
    }

    /// All sockets with a rule, and their rule's name.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn flows(&mut self) -> Result<Vec<(Seen, String)>, TuneError> {
        let seen = self.kernel.flows(&[])?;
        let named = seen.into_iter().filter_map(|s| {
            let rule = s.listing.flow.as_ref()?.rule;
            let own = self.rule_of(&s.listing).map(|(path, _)| path);
            let name = own
                .or(rule.and_then(|r| self.numbers.name(r)))
                .unwrap_or("-");
            let name = name.to_owned();
            Some((s, name))
        });
        Ok(named.collect())
    }

    /// Sums.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn counters(&mut self) -> Result<Counters, TuneError> {
        Ok(self.kernel.counters()?)
    }

    /// The end: flows get back what they had, and the journal forgets those that have ended.
    ///
    /// # Errors
    /// [`TuneError`]; flows have back what they had where it is the journal's.
    pub fn finish(&mut self) -> Result<(), TuneError> {
        // The kernel side gives new flows their rules by itself, and nobody would give those back.
        self.control.off = true;
        let closed = self.beat();
        let mut seen = self.give_all_back()?;
        // One that was on its way then.
        if seen.iter().any(|s| self.is_tuned(&s.listing)) {
            seen = self.give_all_back()?;
        }
        let alive: BTreeSet<Key> = seen.iter().map(Seen::key).collect();
        let (kernel, journal) = (&self.kernel, &mut self.journal);
        journal.conclude(|key| alive.contains(key), |ns| kernel.sees(ns))?;
        closed
    }

    /// Sockets as they are when all have back what they had.
    fn give_all_back(&mut self) -> Result<Vec<Seen>, TuneError> {
        match self.release(|_| true) {
            // All of it is written anew at the end.
            Ok(_) | Err(TuneError::Journal(_)) => {}
            Err(e) => return Err(e),
        }
        Ok(self.kernel.flows(&[])?)
    }

    /// Of the flows that have been given something, those of network namespaces that could not be
    /// looked into, ended ones too: they keep it.
    pub fn out_of_reach(&self) -> usize {
        let keys = self.journal.entries().map(|(key, _)| key);
        keys.filter(|(ns, _)| !self.kernel.sees(*ns)).count()
    }
}

/// A rule's ceiling of pacing, bytes per second; 0: none.
fn ceiling(rule: &Rule) -> u32 {
    let pacing = match &rule.action {
        Action::Ours { params, .. } => params.pacing,
        Action::Kernel { pacing, .. } => *pacing,
    };
    pacing.min(u64::from(u32::MAX) - 1) as u32
}

/// The ceiling of an order that gives a flow this rule ([`Order::ceiling`]).
fn ordered_ceiling(rule: &Rule) -> u32 {
    match (&rule.action, ceiling(rule)) {
        (Action::Ours { .. }, _) => 0,
        (Action::Kernel { .. }, 0) => u32::MAX,
        (Action::Kernel { .. }, ceiling) => ceiling,
    }
}

/// The kernel's numbers of a socket's state.
const ESTABLISHED: u32 = 1;
const CLOSED: u32 = 7;
const LISTEN: u32 = 10;

/// A flow in words.
pub fn label(listing: &Listing) -> String {
    ends(listing.local, listing.remote)
}

fn ends(local: (IpAddr, u16), remote: (IpAddr, u16)) -> String {
    let local = SocketAddr::from(local);
    format!("{local} -> {}", SocketAddr::from(remote))
}
