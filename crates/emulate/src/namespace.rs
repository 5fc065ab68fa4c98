//! The two hosts: a network namespace each, without a name, so that nothing of them is left when
//! the last process in them and this one are gone, whatever ended them.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

use crate::netlink::{self, Links};

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The command's: senders, in a scenario.
    Near,
    /// That of the servers; of receivers, in a scenario.
    Far,
}

/// A host: its namespace.
#[derive(Debug)]
pub struct HostSide {
    namespace: OwnedFd,
    /// Datagrams that a program hands over at once come to the path as one, which it cuts; and it
    /// may merge some on their way in (Linux 6.2).
    pub merges_datagrams: bool,
}

/// A host's end of a path that this process carries: the other end of its device.
pub struct Device {
    tun: SyncDevice,
    /// See [`HostSide::merges_datagrams`].
    pub merges_datagrams: bool,
}

/// The ends of a path: near, far.
pub type Devices = Arc<[Device; 2]>;

/// Congestion control of a host's TCP, by the kernel's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionControl {
    /// Of sockets that do not ask for another. A namespace takes over that of the host, and
    /// `sysctl` inside sets another one of the `allowed`.
    pub default: String,
    /// Algorithms that any program may select.
    pub allowed: Vec<String>,
    /// What the kernel has; what is not allowed is for programs with `CAP_NET_ADMIN`.
    pub available: Vec<String>,
}

/// What opens the TUN device to this user, where it is missing or closed.
pub const TUN_REMEDY: &str = "sudo modprobe tun; in a container: --device /dev/net/tun; where \
                              users may not open it: sudo chmod 666 /dev/net/tun";

/// What is said of a namespace of a name whose device somebody has.
const TAKEN: &str = "the device fullpipe0 of that namespace is another program's: one emulator at \
                     a time has it";

/// Where ip-netns(8) keeps namespaces by name.
const NAMED: &str = "/run/netns";
/// Name of the device, the same in both namespaces.
pub const DEVICE: &str = "fullpipe0";
/// Packets that wait in a device for the emulator: it must never be full, because nobody is told of
/// what is lost there.
const QUEUE: u32 = 20_000;
/// Largest windows of TCP, bytes: no path is limited by a default of 6 MB.
const WINDOW: &str = "4096 131072 268435456";

/// Settings of a namespace before its device comes: they are the namespace's own.
const SETTINGS: [(&str, &str); 8] = [
    // A threshold remembered from one flow would be the start of the next.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    ("net/ipv4/tcp_rmem", WINDOW),
    ("net/ipv4/tcp_wmem", WINDOW),
    // Nobody asks for a router or announces groups on a path that has two ends.
    ("net/ipv6/conf/default/accept_dad", "0"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv4/ping_group_range", "0 2147483647"),
];

/// The address of a side in pair `k` of hosts: networks for benchmarks (RFC 2544, RFC 5180), which
/// no host has.
pub fn addresses(side: Side, k: usize) -> (IpAddr, IpAddr) {
    let host = match side {
        Side::Near => 1,
        Side::Far => 2,
    };
    let v4 = Ipv4Addr::new(198, 18, k as u8, host);
    let v6 = Ipv6Addr::new(0x2001, 2, 0, k as u16, 0, 0, 0, u16::from(host));
    (v4.into(), v6.into())
}

/// Most pairs of hosts.
pub const PAIRS: usize = 255;

impl HostSide {
    /// A host with the addresses of `pairs` pairs, in a namespace of its own or in an existing one
    /// of that name (ip-netns(8)), whose settings stay as they are, and its device.
    pub fn make(
        side: Side,
        name: Option<&str>,
        pairs: usize,
        mtu: u16,
    ) -> Result<(Self, Device), HostError> {
        on_a_thread(move || {
            let namespace = enter_new(name)?;
            let tun = DeviceBuilder::new()
                .name(DEVICE)
                .offload(true)
                .enable(false)
                .build_sync()
                .map_err(|e| match e.raw_os_error() {
                    Some(nix::libc::EBUSY) => HostError::new(TAKEN, e),
                    _ => HostError::new("a TUN device (/dev/net/tun)", e),
                })?;
            let merges_datagrams = tun.udp_gso();
            tun.set_nonblocking(true)
                .and_then(|()| set_up(side, pairs, mtu))
                .map_err(|e| HostError::new("addresses of a TUN device", e))?;
            let host = Self {
                namespace,
                merges_datagrams,
            };
            let device = Device {
                tun,
                merges_datagrams,
            };
            Ok((host, device))
        })
    }

    /// A host with nothing but a loopback, in a namespace of its own.
    pub fn alone() -> Result<Self, HostError> {
        on_a_thread(|| {
            Ok(Self {
                namespace: enter_new(None)?,
                merges_datagrams: false,
            })
        })
    }

    /// Runs `f` on a thread inside.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let namespace = self.namespace.try_clone()?;
        on_a_thread(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            f()
        })
    }

    /// The congestion control of its TCP, as it is now.
    pub fn congestion_control(&self) -> io::Result<CongestionControl> {
        let words = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{name}"))?;
            io::Result::Ok(
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        self.enter(|| {
            Ok(CongestionControl {
                default: words("congestion_control")?.concat(),
                allowed: words("allowed_congestion_control")?,
                available: words("available_congestion_control")?,
            })
        })
    }

    /// Packets that its device has lost.
    pub fn drops(&self) -> io::Result<u64> {
        self.enter(|| netlink::drops(DEVICE))
    }
}

impl AsFd for HostSide {
    /// The namespace, for setns(2) and for a device that is to be made in it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.namespace.as_fd()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            merges_datagrams, ..
        } = self;
        f.debug_struct("Device")
            .field("merges_datagrams", merges_datagrams)
            .finish_non_exhaustive()
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// A part of a host that the system does not give.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {error}")]
pub struct HostError {
    /// The part.
    pub what: Cow<'static, str>,
    /// The system's answer.
    pub error: io::Error,
}

impl HostError {
    /// A remedy, for a `hint:` line.
    pub fn hint(&self) -> &'static str {
        match (self.what.as_ref(), self.error.raw_os_error()) {
            (what, _) if what.starts_with(BY_NAME) => {
                "`ip netns list` shows the names that there are"
            }
            (what, _) if what == TAKEN => {
                "end the other one, or name another namespace (`--near-namespace`)"
            }
            (_, Some(nix::libc::EACCES | nix::libc::EPERM)) => {
                "run as root, or open the device to users: sudo chmod 666 /dev/net/tun"
            }
            _ => TUN_REMEDY,
        }
    }

    pub(crate) fn new(what: impl Into<Cow<'static, str>>, error: io::Error) -> Self {
        let what = what.into();
        Self { what, error }
    }
}

/// A namespace that is there already.
const BY_NAME: &str = "the network namespace";

/// Moves the thread into a namespace, new or of that name; a new one gets its settings and a
/// loopback.
fn enter_new(name: Option<&str>) -> Result<OwnedFd, HostError> {
    match name {
        Some(name) => File::open(Path::new(NAMED).join(name))
            .and_then(|namespace| Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?))
            .map_err(|e| HostError::new(format!("{BY_NAME} `{name}`"), e))?,
        None => unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|e| HostError::new("a network namespace", e.into()))?,
    }
    if name.is_none() {
        for (setting, value) in SETTINGS {
            // Kernels without one of them do without it.
            let _ = std::fs::write(format!("/proc/sys/{setting}"), value);
        }
        let up = Links::open().and_then(|mut links| links.up("lo"));
        up.map_err(|e| HostError::new("a loopback", e))?;
    }
    let namespace = File::open("/proc/thread-self/ns/net");
    let namespace = namespace.map_err(|e| HostError::new("/proc/thread-self/ns/net", e))?;
    Ok(namespace.into())
}

/// Switches the device of the thread's namespace on and gives it the addresses of a side.
pub(crate) fn set_up(side: Side, pairs: usize, mtu: u16) -> io::Result<()> {
    let mut links = Links::open()?;
    links.set_up(DEVICE, u32::from(mtu), QUEUE)?;
    for k in 0..pairs {
        let (v4, v6) = addresses(side, k);
        links.add_address(DEVICE, v4, 24)?;
        if mtu >= LEAST_OF_IPV6 {
            match links.add_address(DEVICE, v6, 64) {
                // A kernel without IPv6.
                Err(e) if e.raw_os_error() == Some(nix::libc::EOPNOTSUPP) => {}
                other => other?,
            }
        }
    }
    Ok(())
}

/// Shortest MTU that IPv6 works with (RFC 8200, section 5).
const LEAST_OF_IPV6: u16 = 1280;

/// A namespace belongs to a thread: the caller's stays as it is.
pub fn on_a_thread<T: Send, E: Send>(f: impl FnOnce() -> Result<T, E> + Send) -> Result<T, E> {
    thread::scope(|scope| {
        let thread = scope.spawn(f);
        thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether the namespace of this thread has a socket of TCP that listens, or one of UDP.
pub fn has_listener() -> bool {
    let table = |name: &str| {
        let path = format!("/proc/thread-self/net/{name}");
        std::fs::read_to_string(path).unwrap_or_default()
    };
    // `sl local_address rem_address st`: 0A is TCP_LISTEN.
    let listens = |line: &str| line.split_ascii_whitespace().nth(3) == Some("0A");
    ["tcp", "tcp6"]
        .iter()
        .any(|t| table(t).lines().any(listens))
        || ["udp", "udp6"].iter().any(|t| table(t).lines().count() > 1)
}
