//! What the tuner takes of the kernel, each part tried by itself: programs are loaded, an algorithm
//! is registered, one is put on a control group, and a flow of this process's own is changed by the
//! iterator. Nothing is left of it, and no flow of anybody else is touched.

use std::fs;
use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fullpipe_doctor::{Finding, bpf};
use libbpf_rs::{
    ErrorKind, Iter, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, PrintLevel,
    ProgramType,
};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{AccessFlags, access};

use crate::bpf::{OBJECT, prefix_of_process, rename};
use crate::folder;
use crate::groups;
use crate::layout::{Listing, Order, OrderAction, size};

/// Tries all of it; `state` is the folder that a daemon would have.
pub fn examine(state: &Path) -> Vec<Finding> {
    libbpf_rs::set_print(Some((PrintLevel::Debug, |_, _| {})));
    vec![
        tried("maps of eBPF (CAP_BPF)", maps()),
        tried("algorithms (struct_ops)", algorithms()),
        tried("new flows (sock_ops)", new_flows()),
        tried("running flows (iter/tcp)", running_flows()),
        daemon_folder(state),
    ]
}

/// Why a trial failed: it decides what the remedy is.
enum Lack {
    /// A privilege.
    Privilege(String),
    /// Something else, and what mends it.
    Other(String, &'static str),
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

/// The object with its programs of one type alone.
fn loaded(kind: ProgramType, remedy: &'static str) -> Result<Object, Lack> {
    let failed = |e: libbpf_rs::Error| lack("loading", &e, remedy);
    // The parser wants its input aligned.
    let bytes = OBJECT.to_vec();
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
    let there = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let there = fs::read_to_string(there).unwrap_or_default();
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
                         systemd.unified_cgroup_hierarchy=1); `--no-cgroup` does without";
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

/// A connection of this process over loopback gets another algorithm by the iterator.
fn running_flows() -> Result<String, Lack> {
    const REMEDY: &str = "Linux 5.15 or later with CONFIG_DEBUG_INFO_BTF=y";
    let flow = |e: io::Error| io_lack("a connection over loopback", &e, "ip link set lo up");
    let object = loaded(ProgramType::Tracing, REMEDY)?;
    let program = object.progs_mut().find(|p| p.name() == "fp_flows");
    let link = program.expect("in the object").attach();
    let link = link.map_err(|e| lack("an iterator", &e, REMEDY))?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(flow)?;
    let own = listener
        .local_addr()
        .and_then(TcpStream::connect)
        .map_err(flow)?;
    let cookie = rustix::net::sockopt::socket_cookie(&own).map_err(|e| flow(e.into()))?;
    let algorithm = || {
        let name = getsockopt(&own, sockopt::TcpCongestion).unwrap_or_default();
        let name = name.to_string_lossy();
        name.trim_end_matches('\0').to_owned()
    };
    let before = algorithm();
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let there = there.unwrap_or_default();
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
