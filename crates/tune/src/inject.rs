//! Artificial loss for a few flows and a time: `bpf/inject.bpf.c` on an interface.
//!
//! A filter of traffic control outlives the process that made it. After its time this one lets
//! everything pass; a note, written before, says what a process that was killed has left on which
//! interface, and the next one takes it away.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{
    ErrorKind, MapCore, MapFlags, Object, TC_EGRESS, TC_INGRESS, TcHook, TcHookBuilder,
};
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};
use serde_json::{Value, json};

use crate::bpf::{lacks, load, missing, now_us};
use crate::folder;
use crate::kernel::KernelError;
use crate::layout::{Reader, mapped};
use crate::namespaces;

pub(crate) static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inject.bpf.o"));

/// Sizes of the structures of `bpf/seen.h`, bytes.
pub mod size {
    /// `struct fault`.
    pub const FAULT: usize = 184;
    /// `struct losses`.
    pub const LOSSES: usize = 40;
}

/// Places that a fault may name (`FAULT_PLACES`).
pub const PLACES: usize = 16;
/// Longest fault.
pub const LONGEST: Duration = Duration::from_secs(600);

/// How segments go, and who is told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Data that leave are lost, and the sender is not told.
    #[default]
    Loss = 0,
    /// Data that leave are refused: the sender is told, as by a full queue of its own interface.
    Stall = 1,
    /// Acknowledgements that arrive are lost.
    Ack = 2,
}

/// Artificial loss: kind, flows, frequency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// Silently, or with the sender told; [`Kind::Ack`]: of what arrives.
    pub kind: Kind,
    /// Network of the peer: address and bits.
    pub to: Option<(IpAddr, u32)>,
    /// TCP port of either end; `None`: any.
    pub port: Option<u16>,
    /// Each so-many-th.
    pub every: Option<u32>,
    /// Each by chance.
    pub probability: f64,
    /// Gilbert and Elliott: chance that a time of losses begins, and that it ends, per packet.
    pub bursts: Option<(f64, f64)>,
    /// By number, from 0 on.
    pub places: BTreeSet<u64>,
}

/// Packets that a fault was for, and those that went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// That the fault was for; a super-packet is several segments.
    pub packets: u64,
    /// See [`Losses::packets`].
    pub segments: u64,
    /// Packets that were dropped.
    pub lost_packets: u64,
    /// See [`Losses::lost_packets`].
    pub lost_segments: u64,
}

/// Why no fault begins, or how one ended.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// Others would be hit, or nobody.
    #[error("{0}")]
    Refused(String),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The system.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}

impl Fault {
    /// Whether it is narrow: one host, or a port of at most 256.
    ///
    /// # Errors
    /// It is not, or nothing is lost.
    pub fn narrow(&self) -> Result<(), InjectError> {
        let refused = |why: &str| Err(InjectError::Refused(why.to_owned()));
        let Some((address, bits)) = self.to else {
            return refused("no network is given");
        };
        let hosts = if address.is_ipv4() { 32 } else { 128 } - bits;
        match (hosts, self.port) {
            (0, _) | (1..=8, Some(_)) => {}
            (1..=8, None) => return refused("a network takes a port besides"),
            _ => return refused("the network has more than 256 addresses"),
        }
        let nothing = self.every.is_none() && self.probability <= 0.0 && self.bursts.is_none();
        if nothing && self.places.is_empty() {
            return refused("nothing says what is lost");
        }
        if self.places.len() > PLACES {
            return refused("more than 16 segments by number");
        }
        Ok(())
    }

    /// `struct fault`.
    pub fn bytes(&self, until_ns: u64) -> Vec<u8> {
        let (address, bits) = self.to.unwrap_or((IpAddr::from([0; 16]), 128));
        let bits = bits + if address.is_ipv4() { 96 } else { 0 };
        let of_2_32 = |p: f64| (p * 4_294_967_296.0).clamp(0.0, f64::from(u32::MAX)) as u32;
        let (bad, good) = self.bursts.unwrap_or((0.0, 0.0));
        let mut out = until_ns.to_ne_bytes().to_vec();
        let mut word = |x: u32| out.extend(x.to_ne_bytes());
        word(self.kind as u32);
        word(bits);
        out.extend(mapped(address));
        for x in [
            u32::from(self.port.unwrap_or(0)),
            self.every.unwrap_or(0),
            of_2_32(self.probability),
            of_2_32(bad),
            of_2_32(good),
            self.places.len().min(PLACES) as u32,
        ] {
            out.extend(x.to_ne_bytes());
        }
        let places = self.places.iter().copied().chain(std::iter::repeat(0));
        places
            .take(PLACES)
            .for_each(|x| out.extend(x.to_ne_bytes()));
        out
    }
}

impl Losses {
    /// `struct losses`.
    pub fn read(bytes: &[u8]) -> Self {
        let mut r = Reader(bytes);
        Self {
            packets: r.u64(),
            segments: r.u64(),
            lost_packets: r.u64(),
            lost_segments: r.u64(),
        }
    }
}

/// The interface that packets to this address leave by, in this process's network namespace.
///
/// # Errors
/// There is no way there.
pub fn interface_to(address: IpAddr) -> io::Result<String> {
    let any: SocketAddr = match address {
        IpAddr::V4(_) => ([0; 4], 0).into(),
        IpAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    // Nothing is sent: the kernel chooses the source address.
    let socket = UdpSocket::bind(any)?;
    socket.connect((address, 9))?;
    let source = socket.local_addr()?.ip();
    let mut all = nix::ifaddrs::getifaddrs()?;
    let own = all.find(|i| {
        let at = i.address.as_ref();
        let four = at
            .and_then(|a| a.as_sockaddr_in())
            .map(|a| IpAddr::from(a.ip()));
        let six = at
            .and_then(|a| a.as_sockaddr_in6())
            .map(|a| IpAddr::from(a.ip()));
        four.or(six) == Some(source)
    });
    let none = || {
        io::Error::new(
            io::ErrorKind::NotFound,
            format!("no interface has {source}"),
        )
    };
    own.map(|i| i.interface_name).ok_or_else(none)
}

/// Loses segments on `interface` for `time`, or until `stop`; `folder` keeps the note. `begun` is
/// called when the program is in place.
///
/// # Errors
/// [`InjectError`]; then nothing is left.
pub fn run(
    fault: &Fault,
    interface: &str,
    time: Duration,
    folder: &Path,
    stop: &AtomicBool,
    begun: impl FnOnce(),
) -> Result<Losses, InjectError> {
    fault.narrow()?;
    if time > LONGEST {
        let message = format!("longer than {} s", LONGEST.as_secs());
        return Err(InjectError::Refused(message));
    }
    let at = |what: &str| {
        let what = what.to_owned();
        move |e: io::Error| InjectError::Io(what, e)
    };
    let index = nix::net::if_::if_nametoindex(interface);
    let index = index.map_err(|e| InjectError::Io(interface.to_owned(), e.into()))? as i32;
    let mut note = Note::open(folder).map_err(at(&folder.display().to_string()))?;
    note.clear()?;
    let (name, way) = match fault.kind {
        Kind::Ack => ("fp_arriving", TC_INGRESS),
        Kind::Loss | Kind::Stall => ("fp_leaving", TC_EGRESS),
    };
    let object = load(OBJECT, |open| {
        open.progs_mut()
            .for_each(|mut p| p.set_autoload(p.name() == name));
        Ok(())
    })?;
    let map = |name: &str| object.maps().find(|m| m.name() == name);
    let faults = map("faults").ok_or_else(|| missing("faults"))?;
    let until_ns = now_us() * 1000 + time.as_nanos() as u64;
    let written = faults.update(&[0; 4], &fault.bytes(until_ns), MapFlags::ANY);
    written.map_err(|e| lacks("writing a map", &e))?;
    let program = object.progs().find(|p| p.name() == name);
    let program = program.ok_or_else(|| missing("the program"))?;
    let before = priorities(index, way).map_err(at("filters of the interface"))?;
    let priority = first_of(&before);
    let mut hook = hook(program.as_fd(), index, way, priority);
    let made = !has_clsact(&mut hook);
    note.write(index, made, fault.kind, priority)
        .map_err(at("the note"))?;
    let attached = (|| {
        hook.create()?;
        hook.attach()
    })();
    if let Err(e) = attached {
        let _ = note.clear();
        if before.contains(&priority) {
            let message = format!(
                "another filter has the first place on {interface}, and what it lets pass is not \
                 seen behind it: `tc filter show dev {interface}`"
            );
            return Err(InjectError::Refused(message));
        }
        return Err(lacks("a filter on the interface (CAP_NET_ADMIN)", &e).into());
    }
    begun();
    let end = Instant::now() + time;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        thread::sleep(GLANCE.min(end.saturating_duration_since(Instant::now())));
    }
    let losses = losses(&object)?;
    note.clear()?;
    Ok(losses)
}

const GLANCE: Duration = Duration::from_millis(20);

fn losses(object: &Object) -> Result<Losses, KernelError> {
    let map = object.maps().find(|m| m.name() == "losses");
    let map = map.ok_or_else(|| missing("losses"))?;
    let value = map.lookup(&[0; 4], MapFlags::ANY);
    let value = value.map_err(|e| lacks("the counters", &e))?;
    Ok(Losses::read(&value.unwrap_or_default()))
}

/// Takes away what a process that was killed has left; whether there was anything.
///
/// # Errors
/// Somebody loses segments right now, or the kernel refuses.
pub fn clear(folder: &Path) -> Result<bool, InjectError> {
    let failed = |e| InjectError::Io(folder.display().to_string(), e);
    if !folder.exists() {
        return Ok(false);
    }
    Note::open(folder).map_err(failed)?.clear()
}

/// Of all filters on an interface ours has this number, and this place if it is the first one
/// there.
const HANDLE: u32 = 0x6670;
const PRIORITY: u32 = 0x6670;

/// The place before all of these: a filter that says what becomes of a packet hides it from those
/// behind it. Of the first place a newer program is before an older one.
fn first_of(priorities: &[u32]) -> u32 {
    let first = priorities.iter().min();
    first.map_or(PRIORITY, |first| first.saturating_sub(1).clamp(1, PRIORITY))
}

fn hook(program: BorrowedFd<'_>, index: i32, way: u32, priority: u32) -> TcHook {
    let mut builder = TcHookBuilder::new(program);
    builder.ifindex(index).replace(false);
    builder.handle(HANDLE).priority(priority);
    builder.hook(way)
}

/// Whether the interface has the place for such filters already: then it stays.
fn has_clsact(hook: &mut TcHook) -> bool {
    match hook.query() {
        Ok(_) => true,
        // No such filter; without the place for it, the question itself is refused.
        Err(e) => e.kind() == ErrorKind::NotFound,
    }
}

/// What has been put where, written before.
struct Note {
    file: Flock<File>,
    path: PathBuf,
}

impl Note {
    /// One at a time.
    fn open(folder: &Path) -> io::Result<Self> {
        folder::own(folder)?;
        let path = folder.join("note");
        let mut options = File::options();
        options
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .mode(0o600);
        let file = options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(&path)?;
        let another = || io::Error::new(io::ErrorKind::AddrInUse, "another `inject` runs");
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let file = lock.map_err(|_| another())?;
        // One that was removed in between is no lock against anybody.
        match fs::metadata(&path) {
            Ok(there) if there.ino() == file.metadata()?.ino() => Ok(Self { file, path }),
            _ => Err(another()),
        }
    }

    fn write(&mut self, index: i32, made: bool, kind: Kind, priority: u32) -> io::Result<()> {
        let namespace = fs::metadata(namespaces::OWN)?.ino();
        let note = json!({
            "namespace": namespace,
            "interface": index,
            "made": made,
            "arriving": kind == Kind::Ack,
            "priority": priority,
        });
        self.file.rewind()?;
        self.file.write_all(note.to_string().as_bytes())?;
        self.file.sync_all()
    }

    /// Takes away what it says, and forgets it.
    fn clear(&mut self) -> Result<bool, InjectError> {
        let failed = |e| InjectError::Io("the note".to_owned(), e);
        let mut text = Vec::new();
        self.file.rewind().map_err(failed)?;
        self.file.read_to_end(&mut text).map_err(failed)?;
        if text.is_empty() {
            return Ok(false);
        }
        // One that is not whole was written before anything was put anywhere.
        if let Ok(note) = serde_json::from_slice::<Value>(&text) {
            take_away(&note).map_err(failed)?;
        }
        self.file.set_len(0).map_err(failed)?;
        self.file.sync_all().map_err(failed)?;
        Ok(true)
    }
}

impl Drop for Note {
    /// One that says nothing is not left behind.
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn take_away(note: &Value) -> io::Result<()> {
    let namespace = note["namespace"].as_u64().unwrap_or(0);
    let spaces = namespaces::Scope::All.open()?;
    // One that has gone took its interfaces along.
    let Some(fd) = spaces.get(&namespace) else {
        return Ok(());
    };
    let index = note["interface"].as_i64().unwrap_or(0) as i32;
    let way = match note["arriving"] == true {
        true => TC_INGRESS,
        false => TC_EGRESS,
    };
    let priority = note["priority"]
        .as_u64()
        .map_or(PRIORITY, |priority| priority as u32);
    let (made, none) = (note["made"] == true, File::open("/dev/null")?);
    namespaces::within(fd, || {
        let mut hook = hook(none.as_fd(), index, way, priority);
        if hook.query().is_ok() {
            hook.detach().map_err(io::Error::other)?;
        }
        // With it goes the place, if nobody else has put anything there.
        let mut all = priorities(index, TC_EGRESS)?;
        all.extend(priorities(index, TC_INGRESS)?);
        if made && all.is_empty() {
            let mut both = hook;
            both.attach_point(TC_EGRESS | TC_INGRESS);
            let _ = both.destroy();
        }
        Ok(())
    })
}

/// Places of the filters that see what leaves by an interface, or what arrives (rtnetlink(7),
/// `RTM_GETTFILTER`); a place is named once for each of its filters, and once more.
fn priorities(index: i32, way: u32) -> io::Result<Vec<u32>> {
    let parent: u32 = match way {
        TC_INGRESS => 0xffff_fff2,
        _ => 0xffff_fff3,
    };
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkRoute,
    )?;
    // Header, then `struct tcmsg`: family, interface, handle, parent, info.
    let mut request = Vec::with_capacity(36);
    request.extend(36u32.to_ne_bytes());
    request.extend(RTM_GETTFILTER.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 12]);
    request.extend(index.to_ne_bytes());
    request.extend([0; 4]);
    request.extend(parent.to_ne_bytes());
    request.extend([0; 4]);
    send(socket.as_raw_fd(), &request, MsgFlags::empty())?;
    let mut found = Vec::new();
    let mut answer = [0; 32768];
    loop {
        let n = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let mut rest = &answer[..n];
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let [a, b, c, d, e, f, ..] = *header;
            let info = rest.get(HEADER + 16..HEADER + 20);
            let info = info.and_then(|info| info.first_chunk().copied());
            match (u16::from_ne_bytes([e, f]), info) {
                (RTM_NEWTFILTER, Some(info)) => found.push(u32::from_ne_bytes(info) >> 16),
                // The end, or an error: there is no place for filters.
                _ => return Ok(found),
            }
            let length = u32::from_ne_bytes([a, b, c, d]) as usize;
            let next = length.max(HEADER).next_multiple_of(4);
            rest = rest.get(next..).unwrap_or_default();
        }
    }
}

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
const RTM_NEWTFILTER: u16 = 44;
const RTM_GETTFILTER: u16 = 46;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
