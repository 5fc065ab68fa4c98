//! Initial Spreading where TCP does not pace: its first ten segments. A packet scheduler on the
//! interface spaces them, which one is tried: sch_fq, which keeps departure times, or classes of
//! sch_htb, or none (then the kernel's pacing spaces the segments from the eleventh on).
//!
//! What is put on an interface is written down before, and taken off at the end or by `revert`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fullpipe_emulate::netlink::Links;
use fullpipe_emulate::queues::{Hook, Queue};
use fullpipe_policy::{Action, Rule, Via};
use nix::fcntl::OFlag;
use serde_json::{Value, json};

use crate::folder;
use crate::layout::{CLASSES, QUEUE};
use crate::namespaces::{Scope, within};

/// The programs that sort packets.
#[derive(Debug)]
pub struct Classifiers {
    /// Class of sch_htb.
    pub class: OwnedFd,
    /// Departure time for sch_fq.
    pub departure: OwnedFd,
}

/// Spreads initial windows on the interfaces that lead to paths that want it.
#[derive(Debug)]
pub struct Spreading {
    classifiers: Classifiers,
    scope: Scope,
    record: Record,
    /// By namespace and interface, and whether the mechanism was asked for by name.
    put: BTreeMap<(u64, String), Mechanism>,
}

/// What spaces the first ten segments on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Departure times, which sch_fq keeps.
    Edt,
    /// Classes of sch_htb.
    Htb,
    /// Nothing: the kernel's pacing spaces those from the eleventh on.
    BeyondTen,
}

impl Mechanism {
    /// Word in a policy.
    pub fn word(self) -> &'static str {
        match self {
            Mechanism::Edt => "edt",
            Mechanism::Htb => "htb",
            Mechanism::BeyondTen => "beyond-ten",
        }
    }
}

/// A path whose initial window is spread.
struct Wish<'a> {
    rule: &'a Rule,
    /// The policy's number.
    number: u32,
    /// Microseconds between two segments.
    gap_us: f64,
}

/// Of the classifiers, among others on the same interface.
const PRIORITY: u16 = 0xfb10;

impl Spreading {
    /// None yet. `record`: the file in which changes of interfaces are written down.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(classifiers: Classifiers, scope: Scope, record: &Path) -> io::Result<Self> {
        Ok(Self {
            classifiers,
            scope,
            record: Record::open(record)?,
            put: BTreeMap::new(),
        })
    }

    /// Puts what `rules` want on interfaces, and takes away what none wants any more; `number`: of
    /// a rule. Says what was done.
    ///
    /// # Errors
    /// Namespaces, or the record.
    pub fn apply(
        &mut self,
        rules: &[Rule],
        number: impl Fn(&str) -> Option<usize>,
    ) -> io::Result<Vec<String>> {
        let wishes: Vec<Wish<'_>> = rules
            .iter()
            .filter_map(|rule| {
                let Action::Ours { params, .. } = &rule.action else {
                    return None;
                };
                let spreads = params.spread_us > 0 && params.initial_window > 0;
                spreads.then_some(Wish {
                    rule,
                    number: u32::try_from(number(&rule.name)?).ok()?,
                    gap_us: f64::from(params.spread_us) / f64::from(params.initial_window),
                })
            })
            .collect();
        let mut lines = Vec::new();
        let mut wanted = BTreeSet::new();
        if !wishes.is_empty() || !self.put.is_empty() {
            for (&namespace, fd) in &self.scope.open()? {
                // One that may not be entered has the kernel's pacing alone.
                let put = within(fd, || self.put_in(namespace, &wishes, &mut lines));
                wanted.extend(put.unwrap_or_default());
            }
        }
        let gone: Vec<(u64, String)> = self
            .put
            .keys()
            .filter(|k| !wanted.contains(*k))
            .cloned()
            .collect();
        for key in &gone {
            self.put.remove(key);
        }
        if !gone.is_empty() {
            let is_gone = |key: &(u64, String)| gone.contains(key);
            self.record.undo(&self.scope, is_gone, &mut lines)?;
        }
        Ok(lines)
    }

    /// In the namespace of this thread. Returns the interfaces that are wanted there.
    fn put_in(
        &mut self,
        namespace: u64,
        wishes: &[Wish<'_>],
        lines: &mut Vec<String>,
    ) -> io::Result<BTreeSet<(u64, String)>> {
        let mut links = Links::open()?;
        let mut ways: BTreeMap<String, Vec<&Wish<'_>>> = BTreeMap::new();
        for wish in wishes {
            let ways_there: BTreeSet<String> = wish
                .rule
                .selector
                .to
                .iter()
                .filter_map(|network| links.towards(network.address).ok())
                .filter(|name| name != "lo")
                .collect();
            for name in ways_there {
                ways.entry(name).or_default().push(wish);
            }
        }
        let mut wanted = BTreeSet::new();
        for (name, wishes) in ways {
            let key = (namespace, name);
            let known = self.put.get(&key).copied();
            let (mechanism, why) = match known {
                Some(mechanism) => (mechanism, None),
                None => self.put_on(&mut links, &key, wishes[0].rule.via)?,
            };
            if mechanism == Mechanism::Htb {
                for wish in &wishes {
                    classes(&mut links, &key.1, wish)?;
                }
            }
            if known.is_none() {
                let paths: Vec<&str> = wishes.iter().map(|w| w.rule.name.as_str()).collect();
                let why = why.map_or(String::new(), |why| format!(" ({why})"));
                lines.push(format!(
                    "{}: initial windows of {} are spread by {}{why}",
                    key.1,
                    paths.join(", "),
                    mechanism.word()
                ));
            }
            self.put.insert(key.clone(), mechanism);
            wanted.insert(key);
        }
        Ok(wanted)
    }

    /// Tries the mechanisms in their order; which one is there, and why none before it.
    fn put_on(
        &mut self,
        links: &mut Links,
        key: &(u64, String),
        via: Via,
    ) -> io::Result<(Mechanism, Option<String>)> {
        let name = &key.1;
        let mut why = Vec::new();
        if matches!(via, Via::Auto | Via::Edt) {
            match self.edt(links, key) {
                Ok(()) => return Ok((Mechanism::Edt, None)),
                Err(e) => why.push(format!("edt: {e}")),
            }
        }
        if matches!(via, Via::Auto | Via::Htb) {
            match self.htb(links, key) {
                Ok(()) => {
                    return Ok((
                        Mechanism::Htb,
                        Some(why.join("; ")).filter(|w| !w.is_empty()),
                    ));
                }
                Err(e) => {
                    why.push(format!("htb: {e}"));
                    self.record.undo_here(links, name, key);
                    self.record.write()?;
                }
            }
        }
        Ok((
            Mechanism::BeyondTen,
            Some(why.join("; ")).filter(|w| !w.is_empty()),
        ))
    }

    fn edt(&mut self, links: &mut Links, key: &(u64, String)) -> io::Result<()> {
        let name = &key.1;
        let queues = links.queues(name)?;
        let root = queues.iter().find(|q| q.is_root);
        // A device of many queues has a scheduler for each.
        let keeps = |q: &&Queue| q.kind == "fq";
        let all = queues.iter().filter(|q| !q.is_root && q.kind != "clsact");
        let fq = match root {
            Some(root) if root.kind == "mq" => {
                all.clone().count() > 0 && all.clone().all(|q| keeps(&q))
            }
            Some(root) => keeps(&root),
            None => false,
        };
        if !fq {
            let kind = root.map_or("none", |q| q.kind.as_str());
            return Err(io::Error::other(format!("the queue is {kind}, not fq")));
        }
        self.record.note(key, What::Program)?;
        if links.put_egress(name)? {
            self.record.note(key, What::Egress)?;
        }
        let program = self.classifiers.departure.as_fd();
        links.put_program(name, Hook::Egress, PRIORITY, program, "fp_departure")
    }

    fn htb(&mut self, links: &mut Links, key: &(u64, String)) -> io::Result<()> {
        let name = &key.1;
        let queues = links.queues(name)?;
        if let Some(root) = queues.iter().find(|q| q.is_root) {
            // One that somebody chose stays, and so do many queues.
            if root.handle != 0 {
                let why = format!("the queue {} was put there by somebody", root.kind);
                return Err(io::Error::other(why));
            }
            if root.kind == "mq" {
                return Err(io::Error::other("the interface has many queues"));
            }
        }
        if links.queue_length(name)? == 0 {
            return Err(io::Error::other("the interface has no queue"));
        }
        self.record.note(key, What::Htb)?;
        links.put_htb(name, QUEUE)?;
        let (at, program) = (Hook::Queue(QUEUE), self.classifiers.class.as_fd());
        links.put_program(name, at, PRIORITY, program, "fp_class")
    }

    /// How each interface spreads, by its name.
    pub fn mechanisms(&self) -> impl Iterator<Item = (&str, Mechanism)> {
        self.put
            .iter()
            .map(|((_, name), how)| (name.as_str(), *how))
    }

    /// Takes everything off. A line for each interface goes to `lines`.
    ///
    /// # Errors
    /// Namespaces, or the record; what could be taken off is off.
    pub fn finish(&mut self, lines: &mut Vec<String>) -> io::Result<()> {
        self.put.clear();
        self.record.undo(&self.scope, |_| true, lines)
    }
}

/// Classes of a path: flows that begin together share one only where chance has it so.
fn classes(links: &mut Links, name: &str, wish: &Wish<'_>) -> io::Result<()> {
    let rate = (PACKET * 1e6 / wish.gap_us).min(f64::from(u32::MAX)) as u32;
    for lane in 0..CLASSES {
        let class = (wish.number + 1) * CLASSES + lane;
        links.put_class(name, QUEUE, class as u16, rate)?;
    }
    Ok(())
}

/// Bytes of a packet as sch_htb counts it; a shorter one is followed sooner.
const PACKET: f64 = 1500.0;

/// A thing of ours on an interface, by which it is found and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// sch_htb with our handle at the root.
    Htb,
    /// The classifier of departures.
    Program,
    /// Room for it.
    Egress,
}

impl What {
    const ALL: [(What, &'static str); 3] = [
        (What::Htb, "htb"),
        (What::Program, "program"),
        (What::Egress, "egress"),
    ];

    fn word(self) -> &'static str {
        let all = Self::ALL.iter();
        all.filter(|(w, _)| *w == self)
            .map(|(_, word)| *word)
            .next()
            .unwrap_or_default()
    }
}

/// What was put on interfaces, written down before: a line each.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    all: BTreeSet<(u64, String, What)>,
    boot: String,
}

impl Record {
    /// Numbers of namespaces begin anew with each boot.
    fn open(path: &Path) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let text = match folder::text(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let of = |line: &str| {
            let line: Value = serde_json::from_str(line).ok()?;
            (line["boot"] == boot.trim()).then_some(())?;
            let what = What::ALL.iter().find(|(_, word)| line["put"] == *word)?.0;
            let name = line["interface"].as_str()?.to_owned();
            Some((line["namespace"].as_u64()?, name, what))
        };
        Ok(Self {
            path: path.to_owned(),
            all: text.lines().filter_map(of).collect(),
            boot: boot.trim().to_owned(),
        })
    }

    fn note(&mut self, key: &(u64, String), what: What) -> io::Result<()> {
        self.all.insert((key.0, key.1.clone(), what));
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        if self.all.is_empty() {
            // A full disk has room for that.
            return match fs::remove_file(&self.path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        }
        let lines = self.all.iter().map(|(namespace, name, what)| {
            let line = json!({
                "boot": self.boot, "namespace": namespace, "interface": name, "put": what.word(),
            });
            format!("{line}\n")
        });
        let text: String = lines.collect();
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut options = OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        let mut file: File = options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }

    /// Takes off what `which` holds, unless somebody has changed it since. A line for each goes to
    /// `lines`.
    fn undo(
        &mut self,
        scope: &Scope,
        which: impl Fn(&(u64, String)) -> bool,
        lines: &mut Vec<String>,
    ) -> io::Result<()> {
        if self.all.is_empty() {
            return Ok(());
        }
        let namespaces = scope.open()?;
        let all: Vec<(u64, String)> = self.all.iter().map(|(n, i, _)| (*n, i.clone())).collect();
        for key in BTreeSet::from_iter(all).iter().filter(|k| which(k)) {
            match namespaces.get(&key.0) {
                Some(fd) => {
                    let undone =
                        within(fd, || Ok(self.undo_here(&mut Links::open()?, &key.1, key)));
                    // Others are not kept for that.
                    lines.extend(
                        undone.unwrap_or_else(|e| vec![format!("{}: its queue stays: {e}", key.1)]),
                    );
                }
                // The namespace has gone, and its interfaces with it.
                None => self.all.retain(|(n, i, _)| (*n, i) != (key.0, &key.1)),
            }
        }
        self.write()
    }

    /// Of one interface; what is written down of it is not changed yet.
    fn undo_here(&mut self, links: &mut Links, name: &str, key: &(u64, String)) -> Vec<String> {
        let mine: Vec<What> = self
            .all
            .iter()
            .filter(|(n, i, _)| (*n, i) == (key.0, &key.1))
            .map(|(.., what)| *what)
            .collect();
        let mut lines = Vec::new();
        for what in mine {
            let done = match what {
                What::Htb => {
                    let root = links.queues(name).unwrap_or_default().into_iter();
                    let is_ours = |q: &Queue| q.is_root && q.handle == QUEUE && q.kind == "htb";
                    match root.into_iter().any(|q| is_ours(&q)) {
                        true => links.remove_root(name, QUEUE),
                        false => Ok(()),
                    }
                }
                What::Program => match links.programs(name, Hook::Egress) {
                    Ok(all) if all.contains(&PRIORITY) => {
                        links.remove_programs(name, Hook::Egress, PRIORITY)
                    }
                    _ => Ok(()),
                },
                What::Egress => match links.programs(name, Hook::Egress) {
                    Ok(all) if all.is_empty() => links.remove_egress(name),
                    _ => Ok(()),
                },
            };
            if let Err(e) = done {
                lines.push(format!("{name}: {} stays: {e}", what.word()));
                continue;
            }
            if what != What::Egress {
                lines.push(format!("{name}: its queue is as before"));
            }
            self.all.remove(&(key.0, key.1.clone(), what));
        }
        lines
    }
}

/// Takes off what a daemon that is gone has put on interfaces. A line for each goes to `lines`.
///
/// # Errors
/// Namespaces, or the record; what could be taken off is off.
pub fn take_off(record: &Path, scope: &Scope, lines: &mut Vec<String>) -> io::Result<()> {
    Record::open(record)?.undo(scope, |_| true, lines)
}
