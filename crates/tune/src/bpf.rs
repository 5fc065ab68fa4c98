//! The kernel itself: programs, maps and links through libbpf.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use libbpf_rs::{
    Iter, Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel,
    RingBuffer, RingBufferBuilder,
};
use nix::time::{ClockId, clock_gettime};

use crate::groups;
use crate::image::Image;
use crate::kernel::{Counters, Kernel, KernelError, Seen};
use crate::layout::{self, Control, Listing, Order, POLICIES, RULES, Record, size};
use crate::namespaces::{self, Scope};
use crate::sockets::{self, Resize};
use crate::spread::Classifiers;

/// Compiled by `build.rs`, or from the repository.
pub(crate) static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tune.bpf.o"));

/// Prefix of the names of algorithms.
pub const PREFIX: &str = "fp_";

/// Programs in the kernel. Dropped, the names of the algorithms and the hook for new flows are
/// gone; flows that run one of them keep its code until they end or are released.
pub struct Bpf {
    scope: Scope,
    /// The only namespace whose new flows get rules, its inode; 0: there are others.
    only: u32,
    /// Namespaces that sockets were looked for in.
    looked: BTreeSet<u64>,
    /// Namespaces that could not be entered for it.
    shut: BTreeSet<u64>,
    maps: Maps,
    ring: RingBuffer<'static>,
    incoming: Arc<Mutex<Vec<Record>>>,
    iterator: Link,
    /// Keep what they stand for alive.
    _links: Vec<Link>,
    /// Prefixes of each half, to be removed before the next.
    prefixes: [Vec<Vec<u8>>; 2],
    object: Object,
}

impl std::fmt::Debug for Bpf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bpf")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Maps {
    prefixes: MapHandle,
    matches: MapHandle,
    policies: MapHandle,
    tables: MapHandle,
    controls: MapHandle,
    orders: MapHandle,
    counters: MapHandle,
}

/// What is loaded, and for which flows.
#[derive(Debug)]
pub struct Load<'a> {
    /// How names begin: at most six bytes, so that the longest has room. Names are the whole
    /// machine's, whatever the namespace.
    pub prefix: &'a str,
    /// The control group whose new flows are looked at, with those below it.
    pub cgroup: Option<&'a Path>,
    /// Network namespaces in which running flows are looked for.
    pub scope: Scope,
    /// Register the names; otherwise flows can be listed and released only.
    pub register: bool,
}

impl Bpf {
    /// Loads everything.
    ///
    /// # Errors
    /// A privilege or a feature is missing, or another tuner runs.
    pub fn load(load: Load<'_>) -> Result<Self, KernelError> {
        let mut object = self::load(OBJECT, |open| rename(open, load.prefix))?;
        let mut links = Vec::new();
        if load.register {
            for mut map in object.maps_mut() {
                let name = map.name().to_string_lossy().into_owned();
                if name.starts_with("name_") {
                    let link = map.attach_struct_ops().map_err(|e| {
                        let name = &name["name_".len()..];
                        if e.kind() == libbpf_rs::ErrorKind::AlreadyExists {
                            return KernelError::Taken(format!("{}{name}", load.prefix));
                        }
                        lacks(&format!("registering the algorithm {name}"), &e)
                    })?;
                    links.push(link);
                }
            }
        }
        let program = |name: &str| {
            let found = object.progs_mut().find(|p| p.name() == name);
            found.ok_or_else(|| missing(name))
        };
        if let Some(path) = load.cgroup {
            let group = groups::open(path);
            let group = group.map_err(|e| KernelError::Group {
                path: path.to_owned(),
                error: e,
            })?;
            let link = program("fp_established")?.attach_cgroup(group.as_raw_fd());
            links.push(link.map_err(|e| lacks("new flows of the control group", &e))?);
        }
        let iterator = program("fp_flows")?.attach();
        let iterator = iterator.map_err(|e| lacks("an iterator over TCP sockets", &e))?;
        let map = |name: &str| {
            let found = object.maps().find(|m| m.name() == name);
            let found = found.ok_or_else(|| missing(name))?;
            MapHandle::try_from(&found).map_err(|e| lacks(name, &e))
        };
        let maps = Maps {
            prefixes: map("prefixes")?,
            matches: map("matches")?,
            policies: map("policies")?,
            tables: map("tables")?,
            controls: map("controls")?,
            orders: map("orders")?,
            counters: map("counters")?,
        };
        let incoming = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&incoming);
        let events = map("events")?;
        let mut ring = RingBufferBuilder::new();
        ring.add(&events, move |bytes: &[u8]| {
            if let Some(record) = Record::read(bytes) {
                into.lock().unwrap_or_else(|e| e.into_inner()).push(record);
            }
            0
        })
        .map_err(|e| lacks("the ring buffer", &e))?;
        let ring = ring.build().map_err(|e| lacks("the ring buffer", &e))?;
        let only = match load.scope {
            Scope::Own => own(&load.scope)?,
            Scope::All | Scope::Some(_) => 0,
        };
        Ok(Self {
            scope: load.scope,
            only,
            looked: BTreeSet::new(),
            shut: BTreeSet::new(),
            maps,
            ring,
            incoming,
            iterator,
            _links: links,
            prefixes: [Vec::new(), Vec::new()],
            object,
        })
    }

    /// The programs that sort packets of initial windows.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn classifiers(&self) -> Result<Classifiers, KernelError> {
        let of = |name: &str| {
            let mut all = self.object.progs();
            let program = all.find(|p| p.name() == name);
            let program = program.ok_or_else(|| missing(name))?;
            let fd = program.as_fd().try_clone_to_owned();
            fd.map_err(|e| KernelError::Io("a program's descriptor", e))
        };
        Ok(Classifiers {
            class: of("fp_class")?,
            departure: of("fp_departure")?,
        })
    }

    fn list(&mut self, found: &mut Vec<Seen>) -> Result<(), KernelError> {
        let namespaces = self.scope.open();
        let namespaces = namespaces.map_err(|e| KernelError::Io("network namespaces", e))?;
        self.looked = namespaces.keys().copied().collect();
        self.shut.clear();
        for (&namespace, fd) in &namespaces {
            let inside = || {
                let iterator = Iter::new(&self.iterator).map_err(std::io::Error::other)?;
                Ok((iterator, namespaces::default_algorithm()))
            };
            // Its flows are out of reach, those too that got a rule when they began.
            let Ok((mut iterator, default)) = namespaces::within(fd, inside) else {
                self.shut.insert(namespace);
                continue;
            };
            let mut bytes = Vec::new();
            iterator
                .read_to_end(&mut bytes)
                .map_err(|e| KernelError::Io("listing TCP sockets", e))?;
            found.extend(bytes.chunks_exact(size::LISTING).map(|listing| Seen {
                namespace,
                default: default.clone(),
                listing: Listing::read(listing),
            }));
        }
        Ok(())
    }
}

impl Kernel for Bpf {
    fn fill(&mut self, half: u32, image: &Image) -> Result<(), KernelError> {
        let half = half & 1;
        let write = |map: &MapHandle, key: &[u8], value: &[u8]| {
            let written = map.update(key, value, MapFlags::ANY);
            written.map_err(|e| lacks("writing a map", &e))
        };
        let known = &mut self.prefixes[half as usize];
        while let Some(key) = known.last() {
            match self.maps.prefixes.delete(key) {
                Ok(()) => {}
                Err(e) if e.kind() == libbpf_rs::ErrorKind::NotFound => {}
                Err(e) => return Err(lacks("removing a prefix", &e)),
            }
            known.pop();
        }
        for rule in 0..RULES {
            let key = (half * RULES as u32 + rule as u32).to_ne_bytes();
            let empty = layout::Match::default();
            let m = image.matches.get(rule).unwrap_or(&empty);
            write(&self.maps.matches, &key, &m.bytes())?;
        }
        for number in 0..POLICIES as u32 {
            let key = (half * POLICIES as u32 + number).to_ne_bytes();
            // Flows of a rule that has gone run the standard until they are moved.
            let Some((params, table)) = image.policies.get(&number) else {
                write(&self.maps.policies, &key, &layout::params(&layout::NO_LAW))?;
                continue;
            };
            write(&self.maps.tables, &key, &layout::table(table))?;
            write(&self.maps.policies, &key, &layout::params(params))?;
        }
        for (&(address, bits), rules) in &image.prefixes {
            let key = layout::prefix(half, address, bits);
            write(&self.maps.prefixes, &key, &rules.to_ne_bytes())?;
            self.prefixes[half as usize].push(key);
        }
        Ok(())
    }

    fn control(&mut self, control: &Control) -> Result<(), KernelError> {
        let key = 0u32.to_ne_bytes();
        let control = Control {
            namespace: self.only,
            ..control.clone()
        };
        let written = self
            .maps
            .controls
            .update(&key, &control.bytes(), MapFlags::ANY);
        written.map_err(|e| lacks("writing the control map", &e))
    }

    fn flows(&mut self, orders: &[(u64, Order)]) -> Result<Vec<Seen>, KernelError> {
        for (cookie, order) in orders {
            let key = cookie.to_ne_bytes();
            let written = self.maps.orders.update(&key, &order.bytes(), MapFlags::ANY);
            written.map_err(|e| lacks("writing an order", &e))?;
        }
        let mut found = Vec::new();
        let listed = self.list(&mut found);
        for (cookie, _) in orders {
            let _ = self.maps.orders.delete(&cookie.to_ne_bytes());
        }
        listed.map(|()| found)
    }

    fn records(&mut self, wait: Duration) -> Result<Vec<Record>, KernelError> {
        // Records of ACKs wake nobody.
        for n in [self.ring.poll_raw(wait), self.ring.consume_raw()] {
            if n < 0 && n != -nix::libc::EINTR {
                let error = std::io::Error::from_raw_os_error(-n);
                return Err(KernelError::Io("the ring buffer", error));
            }
        }
        let mut incoming = self.incoming.lock().unwrap_or_else(|e| e.into_inner());
        Ok(std::mem::take(&mut *incoming))
    }

    fn counters(&mut self) -> Result<Counters, KernelError> {
        let mut sums = [0; Counters::COUNT];
        for (k, sum) in sums.iter_mut().enumerate() {
            let each = self
                .maps
                .counters
                .lookup_percpu(&(k as u32).to_ne_bytes(), MapFlags::ANY);
            let each = each.map_err(|e| lacks("counters", &e))?.unwrap_or_default();
            let read = |b: &Vec<u8>| b.first_chunk().map_or(0, |b| u64::from_ne_bytes(*b));
            *sum = each.iter().map(read).sum();
        }
        Ok(Counters::from_array(sums))
    }

    fn resize(&mut self, sizes: &[Resize]) -> Vec<io::Result<()>> {
        sockets::resize(sizes)
    }

    fn owners(&self) -> BTreeMap<u64, String> {
        sockets::owners()
    }

    fn groups(&self) -> BTreeMap<u64, String> {
        crate::groups::paths()
    }

    fn sees(&self, namespace: u64) -> bool {
        // One that cannot be found any more has gone, and its flows with it.
        let found = matches!(self.scope, Scope::All) || self.looked.contains(&namespace);
        found && !self.shut.contains(&namespace)
    }

    fn now_us(&self) -> u64 {
        now_us()
    }
}

/// The namespace of a scope that has one.
fn own(scope: &Scope) -> Result<u32, KernelError> {
    let found = scope.open();
    let found = found.map_err(|e| KernelError::Io("network namespaces", e))?;
    Ok(found.keys().next().map_or(0, |inode| *inode as u32))
}

/// Loads an object's programs, prepared by `prepare`.
pub(crate) fn load(
    object: &[u8],
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), KernelError>,
) -> Result<Object, KernelError> {
    libbpf_rs::set_print(Some((PrintLevel::Warn, hear)));
    heard().clear();
    // The parser wants its input aligned.
    let bytes = object.to_vec();
    let mut open = ObjectBuilder::default()
        .open_memory(&bytes)
        .map_err(|e| lacks("the BPF object", &e))?;
    prepare(&mut open)?;
    open.load().map_err(|e| KernelError::Lacks {
        what: "loading BPF programs (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN)".to_owned(),
        error: format!("{e:#}{}", reasons()),
    })
}

/// `CLOCK_MONOTONIC`, microseconds: the clock of `tcp_mstamp`.
pub fn now_us() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        t.tv_sec() as u64 * 1_000_000 + t.tv_nsec() as u64 / 1000
    })
}

/// Names of algorithms are the whole machine's: those of this process, after a letter.
pub fn prefix_of_process(letter: char) -> String {
    let mut id = std::process::id();
    let mut name = letter.to_string();
    while id > 0 {
        name.extend(char::from_digit(id % 36, 36));
        id /= 36;
    }
    name
}

/// Gives the algorithms names that begin with `prefix`.
pub(crate) fn rename(open: &mut OpenObject, prefix: &str) -> Result<(), KernelError> {
    for mut map in open.maps_mut() {
        if !map.name().to_string_lossy().starts_with("name_") {
            continue;
        }
        let value = map.initial_value_mut().ok_or_else(|| missing("a name"))?;
        let at = value
            .windows(PREFIX.len())
            .position(|w| w == PREFIX.as_bytes());
        let at = at.ok_or_else(|| missing("a name"))?;
        let name: Vec<u8> = value[at + PREFIX.len()..]
            .iter()
            .copied()
            .take_while(|&b| b != 0)
            .collect();
        let name = [prefix.as_bytes(), &name, &[0]].concat();
        value[at..at + name.len()].copy_from_slice(&name);
    }
    Ok(())
}

/// What the library and the kernel's verifier have said since.
fn heard() -> MutexGuard<'static, String> {
    static HEARD: Mutex<String> = Mutex::new(String::new());
    HEARD.lock().unwrap_or_else(|e| e.into_inner())
}

fn hear(_: PrintLevel, text: String) {
    heard().push_str(&text);
}

/// The end of it, which names the instruction or the privilege.
fn reasons() -> String {
    let heard = heard();
    let lines: Vec<&str> = heard.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(REASONS)..];
    last.iter().map(|line| format!("\n  {line}")).collect()
}

const REASONS: usize = 12;

pub(crate) fn missing(what: &str) -> KernelError {
    KernelError::Lacks {
        what: what.to_owned(),
        error: "not in the BPF object".to_owned(),
    }
}

pub(crate) fn lacks(what: &str, error: &libbpf_rs::Error) -> KernelError {
    KernelError::Lacks {
        what: what.to_owned(),
        error: format!("{error:#}"),
    }
}
