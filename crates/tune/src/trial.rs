//! What the tuner takes of the kernel, each part tried by itself: programs are loaded, an algorithm
//! is registered, one is put on a control group, a flow of this process's own is changed by the
//! iterator, another one has its buffer set and an ACK recorded, a filter is put on the loopback of
//! a namespace of its own. Nothing is left of it, and no flow of anybody else is touched.

use std::fs;
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fullpipe_doctor::{Finding, bpf};
use fullpipe_emulate::namespace::on_a_thread;
use libbpf_rs::{
    ErrorKind, Iter, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, PrintLevel,
    ProgramType,
};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{AccessFlags, access};

use crate::bpf::{OBJECT, prefix_of_process, rename};
use crate::folder;
use crate::groups;
use crate::inject::{self, Fault, InjectError};
use crate::kernel::KernelError;
use crate::layout::{Listing, Order, OrderAction, size};
use crate::sockets::{self, Resize};
use crate::watch::{Sight, Watch};

/// Tries all of it; `state` is the folder that a daemon would have.
pub fn examine(state: &Path) -> Vec<Finding> {
    let mut findings = programs();
    findings.push(daemon_folder(state));
    findings
}

/// Tries what programs of eBPF do here.
pub fn programs() -> Vec<Finding> {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |_, _| {})));
    vec![
        tried("maps of eBPF (CAP_BPF)", maps()),
        tried("algorithms (struct_ops)", algorithms()),
        tried("new flows (sock_ops)", new_flows()),
        tried("running flows (iter/tcp)", running_flows()),
        tried("buffers of running flows (pidfd_getfd)", buffers()),
        kernel_algorithms(),
        tried("every ACK, for `watch` (tp_btf)", every_ack()),
        tried("loss on purpose, for `inject` (clsact)", loss()),
    ]
}

/// Why a trial failed: it decides what the remedy is.
enum Lack {
    /// A privilege.
    Privilege(String),
    /// Something else, and what mends it.
    Other(String, &'static str),
}

impl Lack {
    fn of(error: &KernelError, remedy: &'static str) -> Self {
        // What the verifier says of a program has many lines.
        let text = error.to_string();
        let why = text.lines().next().unwrap_or_default().to_owned();
        match bpf::privileges().is_some() {
            true => Self::Privilege(why),
            false => Self::Other(why, remedy),
        }
    }
}

fn tried(name: &str, done: Result<String, Lack>) -> Finding {
    match done {
        Ok(found) => Finding::yes(name, found),
        Err(Lack::Other(why, remedy)) => Finding::no(name, why).remedy(remedy),
        Err(Lack::Privilege(why)) => match bpf::privileges() {
            Some(bpf::Lack { names, remedy }) => {
                Finding::no(name, format!("{why} ({names})")).remedy(remedy)
            }
            None => Finding::no(name, why)
                .remedy("root of the host itself: this container or security module refuses it"),
        },
    }
}

fn lack(what: &str, error: &libbpf_rs::Error, remedy: &'static str) -> Lack {
    let why = format!("{what}: {error}");
    // The verifier calls what takes CAP_PERFMON an invalid access.
    match error.kind() == ErrorKind::PermissionDenied || bpf::privileges().is_some() {
        true => Lack::Privilege(why),
        false => Lack::Other(why, remedy),
    }
}

fn io_lack(what: &str, error: &io::Error, remedy: &'static str) -> Lack {
    Lack::Other(format!("{what}: {error}"), remedy)
}

fn maps() -> Result<String, Lack> {
    let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as u64,
        map_flags: NO_PREALLOC,
        ..Default::default()
    };
    let made = MapHandle::create(MapType::LpmTrie, Some("fp_trial"), 8, 8, 1, &options);
    let remedy = "a kernel with CONFIG_BPF_SYSCALL=y";
    made.map_err(|e| lack("a map", &e, remedy))?;
    Ok("one was made".to_owned())
}

/// `BPF_F_NO_PREALLOC`, which such a map takes.
const NO_PREALLOC: u32 = 1;

/// The tuner's object with its programs of one type alone.
fn loaded(kind: ProgramType, remedy: &'static str) -> Result<Object, Lack> {
    loaded_from(OBJECT, kind, remedy)
}

fn loaded_from(bytes: &[u8], kind: ProgramType, remedy: &'static str) -> Result<Object, Lack> {
    let failed = |e: libbpf_rs::Error| lack("loading", &e, remedy);
    // The parser wants its input aligned.
    let bytes = bytes.to_vec();
    let mut open = ObjectBuilder::default()
        .open_memory(&bytes)
        .map_err(failed)?;
    let prefix = prefix_of_process('d');
    rename(&mut open, &prefix).map_err(|e| Lack::Other(e.to_string(), remedy))?;
    let algorithms = kind == ProgramType::StructOps;
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().starts_with("name_") {
            map.set_autocreate(algorithms).map_err(failed)?;
        }
    }
    for mut program in open.progs_mut() {
        program.set_autoload(program.prog_type() == kind);
    }
    open.load().map_err(failed)
}

const NEW_KERNEL: &str = "Linux 6.4 or later with CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y";

fn algorithms() -> Result<String, Lack> {
    let mut object = loaded(ProgramType::StructOps, NEW_KERNEL)?;
    let named = |m: &libbpf_rs::MapMut<'_>| m.name().to_string_lossy() == "name_aimd";
    let mut map = object.maps_mut().find(named).expect("in the object");
    let link = map.attach_struct_ops();
    let _link = link.map_err(|e| lack("registering one", &e, NEW_KERNEL))?;
    let name = format!("{}aimd", prefix_of_process('d'));
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    match there.split_whitespace().any(|known| known == name) {
        true => Ok("one was registered, and is gone".to_owned()),
        false => Err(Lack::Other(
            format!("{name} was registered and TCP does not have it"),
            NEW_KERNEL,
        )),
    }
}

fn new_flows() -> Result<String, Lack> {
    const REMEDY: &str = "a kernel with CONFIG_CGROUP_BPF=y";
    const MOUNT: &str = "mount -t cgroup2 none /sys/fs/cgroup (or boot with \
                         systemd.unified_cgroup_hierarchy=1); a network namespace is entered \
                         by `nsenter --net=FILE`: `ip netns exec` mounts a /sys without them; \
                         `--no-cgroup` does without";
    let object = loaded(ProgramType::SockOps, REMEDY)?;
    let root = groups::root().map_err(|e| io_lack("control groups", &e, MOUNT))?;
    let group = match Group::new(&root) {
        Ok(group) => group,
        Err(e) => {
            return Ok(format!(
                "loaded; not tried on a control group, as none can be made in {}: {e}",
                root.display()
            ));
        }
    };
    let file = fs::File::open(&group.0).map_err(|e| io_lack("a control group", &e, MOUNT))?;
    let program = object.progs_mut().find(|p| p.name() == "fp_established");
    let link = program
        .expect("in the object")
        .attach_cgroup(file.as_raw_fd());
    drop(link.map_err(|e| lack("a control group", &e, REMEDY))?);
    Ok("put on a control group and taken off".to_owned())
}

/// A control group of its own, below that of this process.
struct Group(PathBuf);

impl Group {
    fn new(root: &Path) -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|l| l.strip_prefix("0::"));
        let own = own.unwrap_or("/").trim_start_matches('/');
        let path = root.join(own);
        let path = path.join(format!("fullpipe-doctor-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A link that has just gone holds it for a moment.
        let begin = Instant::now();
        while fs::remove_dir(&self.0).is_err() && begin.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A connection of this process over loopback, both ends, and the kernel's number of the first.
fn connection() -> Result<(TcpStream, TcpStream, u64), Lack> {
    let made = (|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let own = TcpStream::connect(listener.local_addr()?)?;
        let (peer, _) = listener.accept()?;
        let cookie = rustix::net::sockopt::socket_cookie(&own)?;
        Ok((own, peer, cookie))
    })();
    made.map_err(|e| io_lack("a connection over loopback", &e, "ip link set lo up"))
}

/// A connection of this process over loopback gets another algorithm by the iterator.
fn running_flows() -> Result<String, Lack> {
    const REMEDY: &str = "Linux 5.15 or later with CONFIG_DEBUG_INFO_BTF=y";
    let object = loaded(ProgramType::Tracing, REMEDY)?;
    let program = object.progs_mut().find(|p| p.name() == "fp_flows");
    let link = program.expect("in the object").attach();
    let link = link.map_err(|e| lack("an iterator", &e, REMEDY))?;
    let (own, _peer, cookie) = connection()?;
    let algorithm = || {
        let name = getsockopt(&own, sockopt::TcpCongestion).unwrap_or_default();
        let name = name.to_string_lossy();
        name.trim_end_matches('\0').to_owned()
    };
    let before = algorithm();
    let there = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let other = there.split_whitespace().find(|name| *name != before);
    let other = other.unwrap_or(&before);
    let order = Order {
        action: OrderAction::Adopt,
        algorithm: other.to_owned(),
        ..Order::default()
    };
    let orders = object.maps().find(|m| m.name() == "orders");
    let written =
        orders
            .expect("in the object")
            .update(&cookie.to_ne_bytes(), &order.bytes(), MapFlags::ANY);
    written.map_err(|e| lack("an order", &e, REMEDY))?;
    let mut bytes = Vec::new();
    let mut iterator = Iter::new(&link).map_err(|e| lack("an iterator", &e, REMEDY))?;
    iterator
        .read_to_end(&mut bytes)
        .map_err(|e| io_lack("listing", &e, REMEDY))?;
    let mut listed = bytes.chunks_exact(size::LISTING).map(Listing::read);
    let done = listed
        .find(|l| l.cookie == cookie)
        .and_then(|l| l.done)
        .ok_or_else(|| Lack::Other("a flow was not listed".to_owned(), REMEDY))?;
    match (done, algorithm()) {
        (0, now) if now == other => Ok(format!("a flow of its own went from {before} to {now}")),
        (e, now) => Err(Lack::Other(
            format!(
                "a flow was to go from {before} to {other} and runs {now} (error {})",
                -e
            ),
            REMEDY,
        )),
    }
}

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The send buffer of a connection of this process, as of any other's.
fn buffers() -> Result<String, Lack> {
    const REMEDY: &str = "Linux 5.14 or later; policies without buffers do without";
    let failed = |e: io::Error| io_lack("a buffer", &e, REMEDY);
    let (own, _peer, cookie) = connection()?;
    let descriptor = format!("/proc/self/fd/{}", own.as_raw_fd());
    let size = Resize {
        cookie,
        inode: fs::metadata(descriptor).map_err(failed)?.ino(),
        send: Some(BUFFER),
        receive: None,
    };
    for done in sockets::resize(&[size]) {
        done.map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => Lack::Privilege(format!("a buffer: {e}")),
            _ => failed(e),
        })?;
    }
    let now = getsockopt(&own, sockopt::SndBuf).unwrap_or_default();
    match now == BUFFER as usize {
        true => Ok("one was set".to_owned()),
        false => Err(Lack::Other(
            format!("a buffer was set to {BUFFER} B and has {now}"),
            REMEDY,
        )),
    }
}

/// Larger than the smallest, smaller than the limits of any host, bytes.
const BUFFER: u32 = 100_000;

/// What `kernel = "..."` of a policy may name: no name of the kernel's own has the sign that ends
/// the prefix of a tuner's.
fn kernel_algorithms() -> Finding {
    const NAME: &str = "algorithms of the kernel's own";
    match fs::read_to_string(AVAILABLE) {
        Ok(there) => {
            let own = there.split_whitespace().filter(|name| !name.contains('_'));
            Finding::yes(NAME, own.collect::<Vec<_>>().join(" "))
        }
        Err(e) => Finding::limited(NAME, format!("{AVAILABLE}: {e}")),
    }
}

/// One ACK of a connection over loopback is recorded.
fn every_ack() -> Result<String, Lack> {
    const REMEDY: &str = "Linux 5.15 or later with CONFIG_DEBUG_INFO_BTF=y and the tracepoint \
                          tcp:tcp_probe";
    let failed = |e: KernelError| Lack::of(&e, REMEDY);
    let mut watch = Watch::begin(None).map_err(failed)?;
    let (mut own, mut peer, cookie) = connection()?;
    watch.add(cookie).map_err(failed)?;
    let begin = Instant::now();
    let mut bytes = [0; 1];
    while begin.elapsed() < Duration::from_secs(1) {
        let sent = own.write_all(&bytes).and_then(|()| peer.read(&mut bytes));
        sent.map_err(|e| io_lack("a connection over loopback", &e, REMEDY))?;
        let is_ack = |sight: &Sight| matches!(sight, Sight::Ack(_));
        if watch.sights().map_err(failed)?.iter().any(is_ack) {
            return Ok("an ACK of its own was recorded".to_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(Lack::Other("no ACK was recorded".to_owned(), REMEDY))
}

/// A filter on the loopback of a network namespace that goes with it.
fn loss() -> Result<String, Lack> {
    const REMEDY: &str = "a kernel with CONFIG_BPF_JIT=y (net.core.bpf_jit_enable=1), \
                          CONFIG_NET_CLS_BPF=y and CONFIG_NET_SCH_INGRESS=y";
    loaded_from(inject::OBJECT, ProgramType::SchedCls, REMEDY)?;
    let tried = on_a_thread(|| {
        if let Err(e) = unshare(CloneFlags::CLONE_NEWNET) {
            return Ok(Err(e));
        }
        // A name that nobody can foretell: others may write there.
        let unknown = std::hash::RandomState::new().hash_one(std::process::id());
        let folder = std::env::temp_dir().join(format!("fullpipe-doctor-{unknown:x}"));
        let fault = Fault {
            to: Some((IpAddr::V4(Ipv4Addr::LOCALHOST), 32)),
            every: Some(2),
            ..Fault::default()
        };
        let never = AtomicBool::new(false);
        let ran = inject::run(&fault, "lo", Duration::ZERO, &folder, &never, || {});
        let _ = fs::remove_dir_all(&folder);
        Ok(Ok(ran.map(drop)))
    });
    match tried.map_err(|e| io_lack("a thread", &e, REMEDY))? {
        Err(e) => Ok(format!(
            "loaded; not tried on an interface, as no namespace can be made: {e}"
        )),
        Ok(Ok(())) => Ok("a filter was put on an interface of its own and taken off".to_owned()),
        Ok(Err(InjectError::Kernel(e))) => Err(Lack::of(&e, REMEDY)),
        Ok(Err(e)) => Err(Lack::Other(e.to_string(), REMEDY)),
    }
}

fn daemon_folder(state: &Path) -> Finding {
    const NAME: &str = "folder of the daemon";
    let shown = state.display();
    let there = fs::symlink_metadata(state).is_ok();
    let above = state.parent().unwrap_or(state);
    let fit = match there {
        true => folder::fit(state).map(|()| format!("{shown} is there")),
        false => access(above, AccessFlags::W_OK | AccessFlags::X_OK)
            .map(|()| format!("{shown} can be made"))
            .map_err(|e| io::Error::new(io::Error::from(e).kind(), format!("{shown}: {e}"))),
    };
    match fit {
        Ok(found) => Finding::yes(NAME, found),
        Err(e) => Finding::no(NAME, e).remedy(format!(
            "sudo install -d -o \"$USER\" {shown}, or `--state` with a folder of your own"
        )),
    }
}
