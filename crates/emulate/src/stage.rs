//! Two hosts, the processes on them, and a path between them for as long as somebody wants it.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fullpipe_run::{RunSpec, Trace};
use fullpipe_sim::Path;
use fullpipe_units::Span;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::emulation::{EmulationError, Loop, LoopConfig, LoopOutcome};
use crate::household::{Household, Member};
use crate::namespace::{self, DEVICE, Devices, HostError, HostSide, Side, addresses};
use crate::netem::{self, Counts, Shape};
use crate::netlink::Links;
use crate::ways::Ways;

/// Two hosts and their processes. Dropped, all of it is gone.
#[derive(Debug)]
pub struct Stage {
    // Processes first: they end before what they stand on.
    household: Option<Household>,
    hosts: [HostSide; 2],
    carrier: Carrier,
    spec: RunSpec,
}

/// Who carries packets from one host to the other.
#[derive(Debug)]
enum Carrier {
    /// A thread of this process, between these devices.
    Thread(Devices),
    /// The kernel, always, over what each host's end of the wire has.
    Kernel([Shape; 2]),
}

/// A path that carries packets now.
#[derive(Debug)]
pub struct Carrying {
    stop: Arc<EventFd>,
    thread: JoinHandle<Result<LoopOutcome, EmulationError>>,
    /// When the links were at their time zero.
    pub epoch: Instant,
}

/// A path of the kernel's queues while it is in use.
#[derive(Debug)]
pub struct InKernel {
    before: [Counts; 2],
    begun: Instant,
}

/// Counters of the kernel's queues, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelOutcome {
    /// What the near host sends, and what the far one does.
    pub ways: [Through; 2],
    /// Real time.
    pub span: Span,
}

/// What went through a direction of the kernel's queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The link of the specification that it stands for.
    pub name: String,
    /// Packets that came.
    pub packets: u64,
    /// Dropped because the buffer was full.
    pub buffer_drops: u64,
    /// Dropped at random.
    pub random_drops: u64,
    /// Dropped for want of room where packets are delayed, which is no buffer of the path; where
    /// there is random loss it cannot be told from that.
    pub refused: u64,
}

/// Longer than any session: whoever emulates says when it is over.
const ENDLESS: Span = Span::from_secs(10 * 365 * 24 * 3600);

impl Stage {
    /// Hosts for every flow of `spec`, with packets of up to `mtu` bytes, in namespaces of their
    /// own or in the existing ones of these `names`, near and far. Nothing but the links of `spec`
    /// and the ways of its flows counts.
    ///
    /// # Errors
    /// The system lacks or refuses something; the message names it.
    pub fn set_up(
        spec: &RunSpec,
        mtu: u16,
        names: [Option<&str>; 2],
    ) -> Result<Self, EmulationError> {
        let household = Household::begin().map_err(EmulationError::Household)?;
        let mut stage = Self::without_processes(spec, mtu, names)?;
        stage.household = Some(household);
        stage.spec.duration = ENDLESS;
        stage.spec.trace = Trace::Off;
        Ok(stage)
    }

    /// The same for whoever has sockets of its own on the hosts, and starts no process there. Links
    /// and counters end with the duration of `spec`.
    ///
    /// # Errors
    /// See [`Stage::set_up`].
    pub fn without_processes(
        spec: &RunSpec,
        mtu: u16,
        names: [Option<&str>; 2],
    ) -> Result<Self, EmulationError> {
        let pairs = spec.flows.len();
        if pairs > crate::namespace::PAIRS {
            return Err(EmulationError::TooMany);
        }
        let near = HostSide::make(Side::Near, names[0], pairs, mtu)?;
        let far = HostSide::make(Side::Far, names[1], pairs, mtu)?;
        Ok(Self {
            household: None,
            hosts: [near.0, far.0],
            carrier: Carrier::Thread(Arc::new([near.1, far.1])),
            spec: spec.clone(),
        })
    }

    /// Two hosts in namespaces of their own with a path of the kernel's queues between them
    /// ([`netem`]), in use from now on but for its random loss.
    ///
    /// # Errors
    /// The kernel's queues cannot do it, or the system lacks or refuses something; the message
    /// names it.
    pub fn by_kernel(spec: &RunSpec, mtu: u16) -> Result<Self, EmulationError> {
        let shapes = Shape::of(spec, mtu)?;
        let household = Household::begin().map_err(EmulationError::Household)?;
        let hosts = wired(&shapes, mtu)?;
        let mut spec = spec.clone();
        (spec.duration, spec.trace) = (ENDLESS, Trace::Off);
        Ok(Self {
            household: Some(household),
            hosts,
            carrier: Carrier::Kernel(shapes),
            spec,
        })
    }

    /// Puts a path of the kernel's queues to use, with its random loss, and begins to count.
    ///
    /// # Errors
    /// The path is not of the kernel's queues, or they do not answer.
    pub fn carry_in_kernel(&self) -> Result<InKernel, EmulationError> {
        let shapes = self.in_kernel().ok_or_else(not_so)?;
        for (host, shape) in self.hosts.iter().zip(shapes) {
            if shape.loss > 0.0 {
                host.enter(move || Ok(Links::open()?.put_delay(DEVICE, shape, true)))??;
            }
        }
        Ok(InKernel {
            before: self.counts()?,
            begun: Instant::now(),
        })
    }

    /// What a path of the kernel's queues has done since it was put to use.
    ///
    /// # Errors
    /// See [`Stage::carry_in_kernel`].
    pub fn over_in_kernel(&self, carried: &InKernel) -> Result<KernelOutcome, EmulationError> {
        let shapes = self.in_kernel().ok_or_else(not_so)?;
        let nanos = u64::try_from(carried.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let after = self.counts()?;
        let of = |k: usize| Through::new(&shapes[k], carried.before[k], after[k]);
        Ok(KernelOutcome {
            ways: [of(0), of(1)],
            span: Span::from_nanos(nanos),
        })
    }

    fn counts(&self) -> io::Result<[Counts; 2]> {
        let of = |host: &HostSide| host.enter(|| Links::open()?.counts(DEVICE));
        Ok([of(&self.hosts[0])?, of(&self.hosts[1])?])
    }

    /// Both directions of a path of the kernel's queues, what the near host sends first.
    pub fn in_kernel(&self) -> Option<&[Shape; 2]> {
        match &self.carrier {
            Carrier::Thread(_) => None,
            Carrier::Kernel(shapes) => Some(shapes),
        }
    }

    /// Begins to carry packets over the links of the specification, at their time zero, beside its
    /// datagrams and probes.
    ///
    /// # Errors
    /// [`EmulationError::TooMany`], or no thread is to be had.
    pub fn carry(&self, config: LoopConfig) -> Result<Carrying, EmulationError> {
        let spec = &self.spec;
        self.begin(spec, config, |carrier| carrier.with_cross_traffic(spec))
    }

    /// The same over other links, and without other traffic.
    ///
    /// # Errors
    /// See [`Stage::carry`].
    pub fn carry_over(
        &self,
        spec: &RunSpec,
        config: LoopConfig,
    ) -> Result<Carrying, EmulationError> {
        self.begin(spec, config, Some)
    }

    /// A run of the specification: all of it but its flows. The connections of `watched`, which are
    /// the first of them, are counted.
    ///
    /// # Errors
    /// See [`Stage::carry`].
    pub fn run(&self, watched: &RunSpec, config: LoopConfig) -> Result<Carrying, EmulationError> {
        let spec = &self.spec;
        self.begin(spec, config, |carrier| {
            carrier.with_tap(watched).with_cross_traffic(spec)
        })
    }

    fn begin(
        &self,
        spec: &RunSpec,
        config: LoopConfig,
        with: impl FnOnce(Loop) -> Option<Loop>,
    ) -> Result<Carrying, EmulationError> {
        let Carrier::Thread(devices) = &self.carrier else {
            return Err(not_so());
        };
        let mut path = Path::new(spec);
        let ways = Ways::new(spec, &mut path).ok_or(EmulationError::TooMany)?;
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let stop = Arc::new(stop.map_err(io::Error::from)?);
        let epoch = Instant::now();
        let carrier = Loop::new(spec, ways, path, devices.clone(), epoch);
        let carrier = with(carrier).ok_or(EmulationError::TooMany)?;
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("emulator".into());
        let thread = thread.spawn(move || carrier.run(&config, &stopped))?;
        Ok(Carrying {
            stop,
            thread,
            epoch,
        })
    }

    /// Starts a process on a host.
    ///
    /// # Errors
    /// There is no such program.
    pub fn spawn(&self, side: Side, command: Command) -> io::Result<Member> {
        let none = || io::Error::other("a stage without processes");
        let household = self.household.as_ref().ok_or_else(none)?;
        household.spawn(self.host(side), command)
    }

    /// Until a process of the far host listens, or for `most`.
    pub fn wait_for_listener(&self, most: Duration) {
        let looked = self.host(Side::Far).enter(move || {
            let until = Instant::now() + most;
            while Instant::now() < until && !namespace::has_listener() {
                thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        });
        // Whoever does not find the server says so better than this.
        let _ = looked;
    }

    /// One of the hosts.
    pub fn host(&self, side: Side) -> &HostSide {
        match side {
            Side::Near => &self.hosts[0],
            Side::Far => &self.hosts[1],
        }
    }

    /// Links and flows, endless in time.
    pub fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// Shortest propagation delay of a pair, there and back.
    pub fn rtt(&self) -> Span {
        let pairs = self.spec.flows.iter().map(|f| {
            let links = f.forward.iter().chain(&f.back);
            links.fold(Span::ZERO, |sum, l| sum + self.spec.links[*l].delay)
        });
        pairs.min().unwrap_or(Span::ZERO)
    }

    /// Packets that the two devices have lost so far.
    pub fn device_drops(&self) -> io::Result<u64> {
        Ok(self.hosts[0].drops()? + self.hosts[1].drops()?)
    }

    /// `/proc` shows the processes of the run.
    pub fn own_proc(&self) -> bool {
        self.household.as_ref().is_some_and(|h| h.own_proc)
    }

    /// Names and values for the environment of its processes: `FULLPIPE_NEAR` and `FULLPIPE_FAR`,
    /// with `6` behind over IPv6, and of every further pair with its number or its flow's name.
    pub fn environment(&self) -> Vec<(String, IpAddr)> {
        let mut all = Vec::new();
        for (k, flow) in self.spec.flows.iter().enumerate() {
            let name: String = flow.name.chars().map(variable).collect();
            let behind = match k {
                0 => vec![String::new(), format!("_{name}")],
                k => vec![format!("_{k}"), format!("_{name}")],
            };
            for (side, word) in [(Side::Near, "NEAR"), (Side::Far, "FAR")] {
                let (v4, v6) = addresses(side, k);
                for behind in &behind {
                    all.push((format!("FULLPIPE_{word}{behind}"), v4));
                    all.push((format!("FULLPIPE_{word}6{behind}"), v6));
                }
            }
        }
        all
    }
}

impl Carrying {
    /// Whether the thread has ended by itself, which it does only by a fault.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`EmulationError`] of the thread.
    pub fn stop(self) -> Result<LoopOutcome, EmulationError> {
        // Fails only if it is set already.
        let _ = self.stop.write(1);
        self.thread.join().map_err(|_| EmulationError::Thread)?
    }
}

impl Through {
    fn new(shape: &Shape, before: Counts, after: Counts) -> Self {
        let dropped = after.delay.dropped - before.delay.dropped;
        let buffer_drops = after.rate.dropped - before.rate.dropped;
        // Those of the buffer are in both.
        let others = dropped.saturating_sub(buffer_drops);
        let (random_drops, refused) = match shape.loss > 0.0 {
            true => (others, 0),
            false => (0, others),
        };
        let left = after.delay.left - before.delay.left;
        let waiting = after.delay.waiting.saturating_sub(before.delay.waiting);
        Self {
            name: shape.name.clone(),
            packets: left + dropped + waiting,
            buffer_drops,
            random_drops,
            refused,
        }
    }
}

/// Tries whether this kernel has all that a path of its queues takes, between two hosts that are
/// made for it. May load modules.
///
/// # Errors
/// [`EmulationError::Lacking`] with the module, or why there are no namespaces.
pub fn try_kernel() -> Result<(), EmulationError> {
    wired(&[Shape::TRIAL, Shape::TRIAL], 1500).map(|_| ())
}

/// Two hosts with a wire between them.
fn wired(shapes: &[Shape; 2], mtu: u16) -> Result<[HostSide; 2], EmulationError> {
    let hosts = [HostSide::alone()?, HostSide::alone()?];
    let far = hosts[1].as_fd();
    hosts[0]
        .enter(|| Links::open()?.add_wire(DEVICE, far, u32::from(mtu)))
        .map_err(netem::of("veth"))?;
    for ((host, side), shape) in hosts.iter().zip([Side::Near, Side::Far]).zip(shapes) {
        host.enter(move || Ok(put(side, shape, mtu)))??;
    }
    Ok(hosts)
}

/// A host's end of a wire: its queues, then its addresses.
fn put(side: Side, shape: &Shape, mtu: u16) -> Result<(), EmulationError> {
    let mut links = Links::open()?;
    links.put_shape(DEVICE, shape)?;
    // What TCP hands over at once would be one packet to the queues.
    links.set_offload(DEVICE, 1)?;
    namespace::set_up(side, 1, mtu)
        .map_err(|e| HostError::new("addresses of a wire", e))
        .map_err(EmulationError::Host)
}

fn not_so() -> EmulationError {
    EmulationError::Io(io::Error::other("somebody else carries this path"))
}

/// Of a flow's name, what a variable of a shell may have.
fn variable(c: char) -> char {
    match c.to_ascii_uppercase() {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    }
}
