//! Hosts, flows and a tuner over them, all gone at the end of a test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullpipe_cc::StackSpec;
use fullpipe_emulate::emulation::LoopConfig;
use fullpipe_emulate::namespace::{HostSide, Side, addresses};
use fullpipe_emulate::stage::{Carrying, Stage};
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_policy::{Action, Compiled, OnDaemonLoss, Params, Prefix, Row, Rule, Via};
use fullpipe_run::{Buffer, Drops, FlowSpec, LinkSpec, RunSpec};
use fullpipe_tune::bpf::{Bpf, Load, prefix_of_process};
use fullpipe_tune::journal::Journal;
use fullpipe_tune::kernel::{Kernel, KernelError};
use fullpipe_tune::layout::{Event, Listing};
use fullpipe_tune::namespaces::Scope;
use fullpipe_tune::spread::Classifiers;
use fullpipe_tune::tuner::Tuner;
use fullpipe_units::{Rate, Span};

/// What a flow of a test crosses.
#[derive(Clone, Debug)]
pub struct Road {
    /// Rate of the bottleneck, Mbit/s.
    pub mbit: u64,
    /// Round trip, milliseconds.
    pub rtt_ms: u64,
    /// Packets.
    pub buffer: u64,
    /// Segments that are lost once, by number.
    pub lost: Vec<u64>,
}

/// One test at a time: a process is in one control group.
static TURN: Mutex<()> = Mutex::new(());

/// Until it is dropped no other test moves this process to another group.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Two hosts, a path for each road, and a control group for the senders.
pub struct Ground {
    stage: Stage,
    carrying: Option<Carrying>,
    pub group: Group,
    pub folder: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    _turn: MutexGuard<'static, ()>,
}

impl Ground {
    /// `None`, with the reason on stderr, where the machine cannot make one.
    pub fn new(roads: &[Road]) -> Option<Self> {
        Self::over(&spec(roads))
    }

    /// The same with `pairs` pairs of addresses over one road.
    pub fn shared(road: &Road, pairs: usize) -> Option<Self> {
        let mut spec = spec(&vec![road.clone(); pairs]);
        spec.links.truncate(2);
        for flow in &mut spec.flows {
            (flow.forward, flow.back) = (vec![0], vec![1]);
        }
        Self::over(&spec)
    }

    fn over(spec: &RunSpec) -> Option<Self> {
        let turn = turn();
        if !nix::unistd::geteuid().is_root() {
            eprintln!(
                "skipped: the tuner's tests need root (CAP_BPF, CAP_NET_ADMIN, CAP_SYS_ADMIN)"
            );
            return None;
        }
        let group = match Group::new() {
            Ok(group) => group,
            Err(e) => {
                eprintln!("skipped: no control group (v2) of its own: {e}");
                return None;
            }
        };
        let stage = match Stage::without_processes(spec, 1500, [None, None]) {
            Ok(stage) => stage,
            Err(e) => {
                eprintln!("skipped: {e}");
                return None;
            }
        };
        // What flows run before: the machine's default differs from one to the next.
        let default = "/proc/sys/net/ipv4/tcp_congestion_control";
        let near = stage.host(Side::Near);
        near.enter(move || fs::write(default, "reno"))
            .expect("reno is always there");
        let config = LoopConfig {
            merge: false,
            real_time: true,
        };
        let carrying = stage.run(spec, config).expect("a path");
        Some(Self {
            stage,
            carrying: Some(carrying),
            group,
            folder: tempfile::tempdir().expect("a folder"),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
            _turn: turn,
        })
    }

    /// The near host's namespace.
    pub fn near(&self) -> OwnedFd {
        let own = || File::open("/proc/thread-self/ns/net").map(OwnedFd::from);
        self.stage.host(Side::Near).enter(own).expect("a namespace")
    }

    /// A tuner over the near host and the group; `None` where the kernel lacks something.
    pub fn tuner(&self) -> Option<Tuner<Bpf>> {
        self.tuner_with_classifiers().map(|(tuner, _)| tuner)
    }

    /// The same, and the programs that sort its flows' packets.
    pub fn tuner_with_classifiers(&self) -> Option<(Tuner<Bpf>, Classifiers)> {
        let load = Load {
            prefix: &prefix(),
            cgroup: Some(&self.group.path),
            scope: Scope::Some(vec![self.near()]),
            register: true,
        };
        let bpf = match Bpf::load(load) {
            Ok(bpf) => bpf,
            Err(e) => return lacking(&e),
        };
        let classifiers = bpf.classifiers().expect("descriptors");
        let journal = Journal::open(&self.folder.path().join("journal")).expect("a journal");
        Some((Tuner::new(bpf, &prefix(), journal), classifiers))
    }

    /// Looks at the near host's flows without being their tuner.
    pub fn eye(&self) -> Option<Eye> {
        let load = Load {
            prefix: "eye",
            cgroup: None,
            scope: Scope::Some(vec![self.near()]),
            register: false,
        };
        match Bpf::load(load) {
            Ok(bpf) => Some(Eye(bpf)),
            Err(e) => lacking(&e),
        }
    }

    /// A bulk flow over road `k`, from a sender in the control group. Runs until the ground ends.
    pub fn flow(&mut self, k: usize) {
        self.prepared(k, true, |_| ());
    }

    /// The same from the host's own control group: no rule is looked for when it begins.
    pub fn flow_outside(&mut self, k: usize) {
        self.prepared(k, false, |_| ());
    }

    /// The same with options of its program's own, which `prepare` sets before it connects.
    pub fn prepared(
        &mut self,
        k: usize,
        inside: bool,
        prepare: impl FnOnce(&TcpStream) + Send + 'static,
    ) -> TcpStream {
        self.prepared_to(addresses(Side::Far, k).0, inside, prepare)
    }

    /// The same to an address of the far host.
    pub fn prepared_to(
        &mut self,
        to: IpAddr,
        inside: bool,
        prepare: impl FnOnce(&TcpStream) + Send + 'static,
    ) -> TcpStream {
        // A mapped address is one of IPv4 on the other end.
        let to = SocketAddr::new(to, self.sink(to.to_canonical()));
        let near = self.stage.host(Side::Near);
        let _inside = inside.then(|| self.group.enter());
        let begin = move || connect(to, prepare);
        let sender = near.enter(begin).expect("a connection");
        let copy = sender.try_clone().expect("a descriptor");
        let stop = Arc::clone(&self.stop);
        self.threads
            .push(thread::spawn(move || send(sender, &stop)));
        copy
    }

    /// Packets that the devices of both hosts have lost so far, without anybody's doing.
    pub fn device_drops(&self) -> u64 {
        self.stage.device_drops().expect("counters of the devices")
    }

    /// Does something in the near host's namespace.
    pub fn on_near<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> T {
        self.on(Side::Near, f)
    }

    /// Does something in a host's namespace.
    pub fn on<T: Send + 'static>(
        &self,
        side: Side,
        f: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> T {
        self.stage.host(side).enter(f).expect("it can be done")
    }

    /// A connection from one host, whose sender is in the control group if that is the near one,
    /// to an address of the other: the near end and the far end.
    pub fn pair(&self, from: Side, to: IpAddr) -> (TcpStream, TcpStream) {
        let _inside = self.group.enter();
        let other = match from {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        };
        let listener = self.on(other, move || TcpListener::bind((to, 0)));
        let at = listener.local_addr().expect("an address");
        let opened = self.on(from, move || TcpStream::connect(at));
        let accepted = listener.accept().expect("a connection").0;
        match from {
            Side::Near => (opened, accepted),
            Side::Far => (accepted, opened),
        }
    }

    /// Listens on the far host and takes what comes; its port.
    fn sink(&mut self, at: IpAddr) -> u16 {
        let far: &HostSide = self.stage.host(Side::Far);
        let listener = far
            .enter(move || TcpListener::bind((at, 0)))
            .expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let stop = Arc::clone(&self.stop);
        self.threads
            .push(thread::spawn(move || take(&listener, &stop)));
        port
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.end();
        if let Some(carrying) = self.carrying.take() {
            let _ = carrying.stop();
        }
    }
}

fn connect(to: SocketAddr, prepare: impl FnOnce(&TcpStream)) -> io::Result<TcpStream> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, socket};
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let stream = TcpStream::from(socket(family, SockType::Stream, SockFlag::empty(), None)?);
    prepare(&stream);
    nix::sys::socket::connect(stream.as_raw_fd(), &SockaddrStorage::from(to))?;
    Ok(stream)
}

/// `TCP_CONGESTION`.
pub fn choose(socket: &TcpStream, algorithm: &str) {
    let option = nix::sys::socket::sockopt::TcpCongestion;
    nix::sys::socket::setsockopt(socket, option, &algorithm.into()).expect("it is there");
}

/// `SO_MAX_PACING_RATE`, bytes per second.
pub fn pace(socket: &TcpStream, rate: u32) {
    nix::sys::socket::setsockopt(socket, option::MaxPacing, &rate).expect("it is there");
}

/// `SO_SNDBUF`.
pub fn send_buffer(socket: &TcpStream, bytes: usize) {
    let option = nix::sys::socket::sockopt::SndBuf;
    nix::sys::socket::setsockopt(socket, option, &bytes).expect("it is there");
}

mod option {
    // The macro calls others by their bare names.
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        MaxPacing,
        SetOnly,
        libc::SOL_SOCKET,
        libc::SO_MAX_PACING_RATE,
        u32
    );
}

fn send(mut sender: TcpStream, stop: &AtomicBool) -> io::Result<()> {
    sender.set_write_timeout(Some(GLANCE))?;
    let zeros = vec![0; 1 << 18];
    while !stop.load(Ordering::Relaxed) {
        match sender.write(&zeros) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    // Nothing of a flow goes on behind the test.
    let abort = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    let _ = nix::sys::socket::setsockopt(&sender, nix::sys::socket::sockopt::Linger, &abort);
    Ok(())
}

fn take(listener: &TcpListener, stop: &AtomicBool) -> io::Result<()> {
    // The last packet of a handshake can be lost, and its sender be gone before it is repeated.
    listener.set_nonblocking(true)?;
    let mut connection = loop {
        match listener.accept() {
            Ok((connection, _)) => break connection,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        std::thread::sleep(GLANCE);
    };
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(GLANCE))?;
    let mut bytes = vec![0; 1 << 20];
    while !stop.load(Ordering::Relaxed) {
        match connection.read(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

const GLANCE: Duration = Duration::from_millis(20);

/// Compiles a file of `tests/` for this machine; `None`, with the reason, without a C compiler.
pub fn compile(file: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    compile_in(Path::new(env!("CARGO_MANIFEST_DIR")), file)
}

/// The same of another folder like this crate's.
pub fn compile_in(root: &Path, file: &str) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let source = root.join("tests").join(file);
    let mut cc = std::process::Command::new("cc");
    let cc = cc
        .args([
            "-O1",
            "-Wno-unknown-pragmas",
            "-fno-builtin",
            "-Wall",
            "-Werror",
            "-o",
        ])
        .arg(&program)
        .arg(source);
    match cc.output() {
        Err(e) => {
            eprintln!("skipped: no C compiler (cc): {e}");
            None
        }
        Ok(made) => {
            let said = String::from_utf8_lossy(&made.stderr);
            assert!(made.status.success(), "{file}: {said}");
            Some((folder, program))
        }
    }
}

/// Names of algorithms are the whole machine's: those of this process.
pub fn prefix() -> String {
    prefix_of_process('t')
}

fn spec(roads: &[Road]) -> RunSpec {
    let mut spec = RunSpec {
        duration: Span::from_secs(600),
        ..RunSpec::default()
    };
    for (k, road) in roads.iter().enumerate() {
        let half = Span::from_micros(road.rtt_ms * 500);
        let rate = Rate::from_bits_per_sec(road.mbit * 1_000_000);
        let buffer = Buffer::Packets(road.buffer);
        let there = LinkSpec::new(&format!("there{k}"), Some(rate), half, buffer);
        spec.links.push(there);
        spec.links
            .push(LinkSpec::pure_delay(&format!("back{k}"), half));
        let mut flow = FlowSpec::new(
            &format!("flow{k}"),
            StackSpec::parse("reno").expect("a stack"),
            SenderConfig::preset(Preset::Linux, 1500),
            ReceiverConfig::preset(Preset::Linux),
            vec![2 * k],
            vec![2 * k + 1],
        );
        flow.drops = Drops {
            segments: road.lost.clone(),
            ..Drops::default()
        };
        spec.flows.push(flow);
    }
    spec
}

/// See [`Ground::eye`].
pub struct Eye(Bpf);

impl Eye {
    pub fn flows(&mut self) -> Vec<Listing> {
        let seen = self.0.flows(&[]).expect("a list").into_iter();
        seen.map(|s| s.listing).filter(|l| l.state == 1).collect()
    }

    /// Names of the algorithms of established flows.
    pub fn algorithms(&mut self) -> Vec<String> {
        self.flows().into_iter().map(|l| l.algorithm).collect()
    }

    /// Whether each flow has something acknowledged within two seconds.
    pub fn gets_on(&mut self) -> bool {
        let acked = |flows: Vec<Listing>| -> BTreeMap<u64, u64> {
            flows.iter().map(|l| (l.cookie, l.bytes_acked)).collect()
        };
        let (begin, from) = (Instant::now(), acked(self.flows()));
        while begin.elapsed() < Duration::from_secs(2) {
            let now = acked(self.flows());
            if from.iter().all(|(flow, n)| now.get(flow) > Some(n)) {
                return true;
            }
            thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

/// A machine that lets nobody load programs is no reason to fail; a program that the verifier
/// refuses is.
fn lacking<T>(why: &KernelError) -> Option<T> {
    let (said, btf) = (why.to_string(), Path::new("/sys/kernel/btf/vmlinux"));
    assert!(said.contains("not permitted") || !btf.exists(), "{said}");
    eprintln!("skipped: {said}");
    None
}

/// A control group of this process's own, below the one that it is in.
pub struct Group {
    pub path: PathBuf,
    home: PathBuf,
}

impl Group {
    fn new() -> io::Result<Self> {
        let root = mount()?;
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|l| l.strip_prefix("0::"));
        let own = own.ok_or_else(|| io::Error::other("no version 2"))?;
        let home = root.join(own.trim_start_matches('/'));
        let path = home.join(format!("fullpipe-test-{}", std::process::id()));
        let _ = fs::remove_dir(&path);
        fs::create_dir(&path)?;
        Ok(Self { path, home })
    }

    /// This process is in it until the guard goes; sockets belong to the group in which they are
    /// made.
    pub fn enter(&self) -> Inside<'_> {
        join(&self.path).expect("an own group lets its process in");
        Inside(self)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

pub struct Inside<'a>(&'a Group);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let _ = join(&self.0.home);
    }
}

fn join(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string())
}

/// Where version 2 is mounted: not at /sys/fs/cgroup where version 1 is there, too.
fn mount() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let v2 = mounts.lines().find(|l| l.contains(" - cgroup2 "));
    let at = v2.and_then(|l| l.split(' ').nth(4));
    at.map(PathBuf::from)
        .ok_or_else(|| io::Error::other("no cgroup2 is mounted"))
}

/// A rule for road `k`.
pub fn rule(name: &str, k: usize, stack: &str, params: Params, table: Vec<Row>) -> Rule {
    let IpAddr::V4(address) = addresses(Side::Far, k).0 else {
        unreachable!("the first is IPv4")
    };
    let rows = table.len() as u32;
    Rule {
        name: name.into(),
        selector: fullpipe_policy::Selector {
            to: vec![Prefix {
                address: address.into(),
                bits: 32,
            }],
            ports: Vec::new(),
            side: fullpipe_policy::Side::Either,
            cgroup: None,
            process: None,
        },
        respect_app: true,
        share: 1 << 16,
        divide: false,
        via: Via::Auto,
        action: Action::Ours {
            params: Params { rows, ..params },
            table,
        },
        send_buffer: None,
        receive_buffer: None,
        stack: stack.into(),
    }
}

/// One that gives road `k` an algorithm of the kernel's own.
pub fn kernels(name: &str, k: usize, algorithm: &str) -> Rule {
    Rule {
        action: Action::Kernel {
            name: algorithm.into(),
            pacing: 0,
        },
        ..rule(name, k, algorithm, Params::default(), Vec::new())
    }
}

pub fn policy(rules: Vec<Rule>) -> Compiled {
    Compiled {
        rules,
        warnings: Vec::new(),
        on_daemon_loss: OnDaemonLoss::Standard,
        never_tune: Vec::new(),
    }
}

/// AIMD(a, b) as a table of one row.
pub fn aimd(a: f64, b: f64) -> Vec<Row> {
    vec![Row {
        window: 0,
        increase: (a * 256.0) as u32,
        decrease: (b * 65536.0) as u32,
    }]
}

/// Runs the tuner for a time, or until `enough` of what it has seen.
pub fn run(
    tuner: &mut Tuner<Bpf>,
    most: Duration,
    enough: impl Fn(&[Event]) -> bool,
) -> Vec<Event> {
    let until = Instant::now() + most;
    let mut events = Vec::new();
    while Instant::now() < until && !enough(&events) {
        tuner
            .tick(Duration::from_millis(50))
            .expect("the kernel side answers");
        events.extend(tuner.take_watched());
    }
    events
}
