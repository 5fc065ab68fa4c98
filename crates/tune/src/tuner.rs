//! What the daemon does, over any [`Kernel`]: applies rules, gives running flows theirs, takes them
//! back, and says what it did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fullpipe_policy::{Action, Compiled, OnDaemonLoss, Rule, Side};

use crate::image::{Image, Numbers, Unfit, algorithm, fits};
use crate::journal::{Journal, JournalError};
use crate::kernel::{Counters, Kernel, KernelError, Seen};
use crate::layout::{Control, Event, Kind, Listing, Order, OrderAction, Record};

/// Why the tuner cannot do it.
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
pub const PATIENCE: Duration = Duration::from_secs(3);

/// Applied rules and what became of flows.
#[derive(Debug)]
pub struct Tuner<K> {
    kernel: K,
    compiled: Compiled,
    numbers: Numbers,
    control: Control,
    journal: Journal,
    prefix: String,
    /// Flows that have been given a rule, by cookie.
    known: BTreeMap<u64, Known>,
    /// Flows that were to be left alone by order.
    spared: BTreeSet<u64>,
    log: Vec<String>,
    watched: Vec<Event>,
}

/// A flow of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    label: String,
    rule: Option<usize>,
}

/// What is to be done about a running flow, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The socket.
    pub seen: Seen,
    /// `None`: it is left alone.
    pub order: Option<Order>,
    /// In words, for the log and for `plan`.
    pub why: String,
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
            numbers: Numbers::default(),
            control: Control {
                patience_us: PATIENCE.as_micros() as u64,
                ..Control::default()
            },
            journal,
            prefix: prefix.to_owned(),
            known: BTreeMap::new(),
            spared: BTreeSet::new(),
            log: Vec::new(),
            watched: Vec::new(),
        }
    }

    /// How long flows wait for a sign of life ([`PATIENCE`] by default).
    pub fn set_patience(&mut self, patience: Duration) {
        self.control.patience_us = patience.as_micros() as u64;
    }

    /// Lines of the log since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Records of watched flows, and what happened to windows of all, since the last call.
    pub fn take_watched(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.watched)
    }

    /// The rules in force.
    pub fn rules(&self) -> &[Rule] {
        &self.compiled.rules
    }

    /// Whether all flows run the standard by order ([`Tuner::switch`]).
    pub fn is_off(&self) -> bool {
        self.control.off
    }

    /// Applies rules: to new flows from now on, and to those that run.
    ///
    /// # Errors
    /// [`TuneError`]; then the rules before are in force.
    pub fn apply(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        self.install(compiled)?;
        self.settle()
    }

    /// Changes parameters of rules that stay: one write, no flow is moved.
    ///
    /// # Errors
    /// [`TuneError`]; then the rules before are in force.
    pub fn install(&mut self, compiled: Compiled) -> Result<(), TuneError> {
        let mut numbers = self.numbers.clone();
        numbers.assign(&compiled.rules);
        let image = Image::new(&compiled, &numbers, &self.prefix)?;
        let mut control = self.control.clone();
        control.active ^= 1;
        control.generation = control.generation.wrapping_add(1);
        control.keep = compiled.on_daemon_loss == OnDaemonLoss::Keep;
        control.heartbeat_us = self.kernel.now_us();
        control.never = image.never.clone();
        // The half that nobody reads, then one word that says which half is read.
        self.kernel.fill(control.active, &image)?;
        self.kernel.control(&control)?;
        (self.control, self.numbers, self.compiled) = (control, numbers, compiled);
        Ok(())
    }

    /// What would change now, by the rules in force.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn plan(&mut self) -> Result<Vec<Decision>, TuneError> {
        let seen = self.kernel.flows(&[])?;
        Ok(self.decide(seen))
    }

    /// Gives running flows the rule that they match, and takes back those that match none any more.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn settle(&mut self) -> Result<(), TuneError> {
        let seen = self.kernel.flows(&[])?;
        let decisions = self.decide(seen);
        self.execute(&decisions)
    }

    fn execute(&mut self, decisions: &[Decision]) -> Result<(), TuneError> {
        let orders: Vec<(u64, Order)> = decisions
            .iter()
            .filter_map(|d| Some((d.seen.listing.cookie, d.order.clone()?)))
            .collect();
        if orders.is_empty() {
            return Ok(());
        }
        for d in decisions {
            if d.order
                .as_ref()
                .is_some_and(|o| o.action == OrderAction::Adopt)
                && !self.is_ours(&d.seen.listing.algorithm)
            {
                self.journal.before(&d.seen)?;
            }
        }
        let after = self.kernel.flows(&orders)?;
        for d in decisions.iter().filter(|d| d.order.is_some()) {
            let listing = &d.seen.listing;
            let now = after.iter().find(|s| s.listing.cookie == listing.cookie);
            let done = now.and_then(|s| s.listing.done);
            let label = label(listing);
            match done {
                Some(0) => self.log.push(format!("{label}: {}", d.why)),
                Some(e) => self
                    .log
                    .push(format!("{label}: {}: refused, error {}", d.why, -e)),
                None => continue,
            }
            match d.order.as_ref().map(|o| (o.action, o.rule)) {
                Some((OrderAction::Adopt, rule)) => {
                    self.known.insert(listing.cookie, Known { label, rule });
                }
                Some((OrderAction::Release, _)) => {
                    self.known.remove(&listing.cookie);
                    if let (Some(0), Some(order)) = (done, &d.order) {
                        self.journal.returned(&d.seen, &order.algorithm)?;
                    }
                }
                None => {}
            }
        }
        // Flows that changed their rule and kept their algorithm look again.
        self.control.generation = self.control.generation.wrapping_add(1);
        self.beat()
    }

    fn is_ours(&self, algorithm: &str) -> bool {
        algorithm.starts_with(&self.prefix)
    }

    fn decide(&self, seen: Vec<Seen>) -> Vec<Decision> {
        let listeners: BTreeSet<(u64, u16)> = seen
            .iter()
            .filter(|s| s.listing.state == LISTEN)
            .map(|s| (s.namespace, s.listing.local.1))
            .collect();
        let flows = seen.into_iter().filter(|s| s.listing.state == ESTABLISHED);
        flows
            .map(|seen| {
                let accepted = listeners.contains(&(seen.namespace, seen.listing.local.1));
                let side = if accepted {
                    Side::Passive
                } else {
                    Side::Active
                };
                let (order, why) = self.decide_one(&seen, side);
                Decision { seen, order, why }
            })
            .collect()
    }

    /// A rule's flows get its algorithm, all others what they had before.
    fn decide_one(&self, seen: &Seen, side: Side) -> (Option<Order>, String) {
        let flow = &seen.listing;
        let leave = |why: &str| (None, why.to_owned());
        let ports = (flow.local.1, flow.remote.1);
        let never = self.compiled.never_tune.iter();
        let never = never
            .clone()
            .any(|r| r.contains(&ports.0) || r.contains(&ports.1));
        let rule = self.compiled.rules.iter().find(|r| {
            r.process.is_none() && r.cgroup.is_none() && fits(r, flow.remote.0, ports, side)
        });
        let ours = self.is_ours(&flow.algorithm) || flow.flow.as_ref().is_some_and(|f| !f.control);
        let rule = rule.filter(|_| !never && !self.spared.contains(&flow.cookie));
        let Some(rule) = rule else {
            let why = match never {
                true => "its port is never tuned",
                false => "no rule",
            };
            return match ours {
                true => (Some(self.release_order(seen)), format!("released: {why}")),
                false => leave(why),
            };
        };
        let number = self.numbers.of(&rule.name);
        let name = algorithm(rule, &self.prefix);
        if flow.flow.as_ref().is_some_and(|f| f.control) {
            return leave("kept as it was, for comparison");
        }
        let has = flow.flow.as_ref().is_some_and(|f| f.rule == number);
        if has && flow.algorithm == name {
            return leave("as its rule says");
        }
        let by_program = flow.chosen && !self.journal.has_returned(seen);
        if !ours && by_program && rule.respect_app {
            return leave("its program chose the algorithm");
        }
        if has {
            return leave("its program has changed the algorithm since");
        }
        if !in_share(flow.cookie, rule.share) {
            return leave("kept as it was, for comparison");
        }
        let was = flow.algorithm.clone();
        let why = format!("rule {} ({}), was {was}", rule.name, rule.stack);
        let bytes = |b: Option<u64>| b.map_or(0, |b| u32::try_from(b).unwrap_or(i32::MAX as u32));
        let order = Order {
            action: OrderAction::Adopt,
            rule: number,
            algorithm: name,
            send_buffer: bytes(rule.send_buffer),
            receive_buffer: bytes(rule.receive_buffer),
        };
        (Some(order), why)
    }

    fn release_order(&self, seen: &Seen) -> Order {
        let mut order = release_order(seen, &self.prefix, &self.journal);
        let flow = seen.listing.flow.as_ref();
        let rule = flow.and_then(|f| self.numbers.name(f.rule?));
        let rule = rule.and_then(|name| self.compiled.rules.iter().find(|r| r.name == name));
        if let (Some(flow), Some(rule)) = (flow, rule) {
            // The kernel doubles what an option sets. A buffer that no rule set is left alone:
            // setting it would end its autotuning.
            let before = |set: Option<u64>, before: u32| set.map_or(0, |_| before / 2);
            order.send_buffer = before(rule.send_buffer, flow.send_buffer);
            order.receive_buffer = before(rule.receive_buffer, flow.receive_buffer);
        }
        order
    }

    /// A sign of life, and everything that happened since the last one.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn tick(&mut self, wait: Duration) -> Result<(), TuneError> {
        self.beat()?;
        for record in self.kernel.records(wait)? {
            self.note(record);
        }
        Ok(())
    }

    fn beat(&mut self) -> Result<(), TuneError> {
        self.control.heartbeat_us = self.kernel.now_us();
        Ok(self.kernel.control(&self.control)?)
    }

    fn note(&mut self, record: Record) {
        match record {
            Record::Opened(o) => {
                let rule = o.rule.and_then(|n| self.numbers.name(n)).unwrap_or("?");
                let stack = self.compiled.rules.iter().find(|r| r.name == rule);
                let stack = stack.map_or("?", |r| &r.stack);
                let label = ends(o.local, o.remote);
                self.log.push(match (o.control, o.done) {
                    (true, _) => format!("{label}: new, rule {rule}: kept for comparison"),
                    (_, 0) => format!("{label}: new, rule {rule} ({stack}), was {}", o.before),
                    (_, e) => format!("{label}: new, rule {rule}: refused, error {}", -e),
                });
                if !o.control && o.done == 0 {
                    let rule = o.rule;
                    self.known.insert(o.cookie, Known { label, rule });
                }
            }
            Record::Event(event) => {
                if event.kind == Kind::Release
                    && let Some(known) = self.known.remove(&event.cookie)
                {
                    self.log.push(format!("{}: ended", known.label));
                }
                self.watched.push(event);
            }
        }
    }

    /// Switches everything off or on, at once: flows keep their algorithm's name and run Reno.
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn switch(&mut self, off: bool) -> Result<(), TuneError> {
        self.control.off = off;
        self.log.push(if off { "off" } else { "on" }.to_owned());
        self.beat()
    }

    /// Records the ACKs of one flow, of all (`u64::MAX`), or of none (0).
    ///
    /// # Errors
    /// [`TuneError::Kernel`].
    pub fn watch(&mut self, cookie: u64) -> Result<(), TuneError> {
        self.control.watched = cookie;
        self.beat()
    }

    /// Gives flows back what they had: all, or those that `which` accepts, which stay so.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn release(&mut self, which: impl Fn(&Listing) -> bool) -> Result<usize, TuneError> {
        let seen = self.kernel.flows(&[])?;
        let ours = |s: &Seen| {
            let listing = &s.listing;
            let tuned = self.is_ours(&listing.algorithm) || listing.flow.is_some();
            tuned && which(listing)
        };
        let decisions: Vec<Decision> = seen
            .into_iter()
            .filter(ours)
            .map(|seen| Decision {
                order: Some(self.release_order(&seen)),
                why: "released by order".to_owned(),
                seen,
            })
            .collect();
        self.spared
            .extend(decisions.iter().map(|d| d.seen.listing.cookie));
        self.execute(&decisions)?;
        Ok(decisions.len())
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
            let name = rule.and_then(|r| self.numbers.name(r)).unwrap_or("-");
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

    /// The end: flows get back what they had.
    ///
    /// # Errors
    /// [`TuneError`].
    pub fn finish(&mut self) -> Result<(), TuneError> {
        self.release(|_| true).map(drop)
    }
}

/// What gives a flow back what it had: what the kernel side remembers, or the journal, or the
/// default of its namespace.
pub fn release_order(seen: &Seen, prefix: &str, journal: &Journal) -> Order {
    let flow = seen.listing.flow.as_ref();
    let before = flow.map(|f| f.before.clone());
    let known = before.filter(|b| !b.is_empty() && !b.starts_with(prefix));
    let known = known.or_else(|| journal.algorithm(seen.namespace, seen.listing.cookie));
    Order {
        action: OrderAction::Release,
        rule: Some(0),
        algorithm: known.unwrap_or_else(|| seen.default.clone()),
        send_buffer: 0,
        receive_buffer: 0,
    }
}

/// The kernel's numbers of a socket's state.
const ESTABLISHED: u32 = 1;
const LISTEN: u32 = 10;

/// Whether a flow is of the part that gets the policy: the BPF side decides by the same hash.
fn in_share(cookie: u64, share: u32) -> bool {
    ((cookie.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u32) < share
}

/// A flow in words.
pub fn label(listing: &Listing) -> String {
    ends(listing.local, listing.remote)
}

fn ends(local: (std::net::IpAddr, u16), remote: (std::net::IpAddr, u16)) -> String {
    let local = std::net::SocketAddr::from(local);
    format!("{local} -> {}", std::net::SocketAddr::from(remote))
}

/// Whether a rule runs one of the kernel's own algorithms.
pub fn is_kernels(rule: &Rule) -> bool {
    matches!(rule.action, Action::Kernel(_))
}
