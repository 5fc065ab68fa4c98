//! Runs before the one that is measured: what their connections leave in the kernel.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fullpipe_emulate::emulation::LoopConfig;
use fullpipe_emulate::namespace::Side;
use fullpipe_emulate::stage::Stage as Hosts;
use fullpipe_run::{GroundError, RunSpec};
use fullpipe_units::{Span, Time};

use super::errors::{environment, lacks};
use super::setup::pairs;
use crate::plan::Plan;
use crate::sockets::Stage;

/// The ceiling of a window is taken from what the kernel remembers of a destination
/// (`tcp_init_metrics`, net/ipv4/tcp_metrics.c), and it remembers one after a whole connection: a
/// segment and both FINs.
pub(super) fn introduce(
    hosts: &Hosts,
    spec: &RunSpec,
    plan: &Plan,
    ipv6: bool,
) -> Result<(), GroundError> {
    let mut brief = plan.clone();
    brief.flows.iter_mut().for_each(|f| {
        f.bytes = Some(u64::from(f.mss));
        f.start = Time::ZERO;
        f.stop = None;
    });
    remember(hosts, true)?;
    precede(hosts, spec, hosts.rtt() * 4 + SETTLED, &brief, ipv6)?;
    remember(hosts, false)
}

/// Beside four round trips: most of a second for the slowest link and a busy machine.
pub(super) const SETTLED: Span = Span::from_millis(400);

/// Flows that end: the kernel remembers of a connection what it was when both FINs had come. Each
/// has a part of what the slowest link on its way carries in the half of a time, after which links
/// carry nothing any more.
pub(super) fn whole(spec: &RunSpec, plan: &Plan, lasts: Span) -> Plan {
    let mut plan = plan.clone();
    let many = spec.flows.len().max(1) as f64;
    for (flow, f) in plan.flows.iter_mut().zip(&spec.flows) {
        let rates = f.forward.iter().filter_map(|l| spec.links[*l].rate);
        let bits = rates
            .min()
            .map_or(UNLIMITED, |r| r.as_bits_per_sec() as f64);
        let bytes = (bits / 8.0 * lasts.as_secs_f64() / 2.0 / many) as u64;
        flow.bytes = Some(bytes.max(u64::from(flow.mss)));
        (flow.start, flow.stop) = (Time::ZERO, None);
    }
    plan
}

/// What a flow before sends where no link has a rate, bit/s.
pub(super) const UNLIMITED: f64 = 1e9;

/// Whether connections leave something behind.
pub(super) fn remember(hosts: &Hosts, on: bool) -> Result<(), GroundError> {
    let value = if on { "0" } else { "1" };
    // Thresholds are left out by default since Linux 5.6.
    for name in ["tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save"] {
        for side in [Side::Near, Side::Far] {
            let file = format!("/proc/sys/net/ipv4/{name}");
            let to = file.clone();
            let written = hosts.host(side).enter(move || std::fs::write(to, value));
            match written {
                // Kernels that have no such choice save all of it.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(|e| lacks(&file, &e))?,
            }
        }
    }
    Ok(())
}

/// A run whose connections leave something behind.
pub(super) fn precede(
    hosts: &Hosts,
    spec: &RunSpec,
    lasts: Span,
    plan: &Plan,
    ipv6: bool,
) -> Result<(), GroundError> {
    let config = LoopConfig {
        merge: true,
        real_time: true,
    };
    let carrying = hosts.run(spec, config).map_err(environment)?;
    let over = AtomicBool::new(false);
    let stage = Stage {
        epoch: carrying.epoch,
        stop: &over,
    };
    let lasts = Duration::from_nanos(lasts.as_nanos());
    let pairs = pairs(hosts, plan, ipv6)?;
    thread::scope(|scope| {
        for (pair, flow) in pairs.into_iter().zip(&plan.flows) {
            let (sender, sink) = pair.split();
            scope.spawn(move || sink.run(stage));
            scope.spawn(move || sender.run(flow, stage));
        }
        thread::sleep(lasts);
        over.store(true, Ordering::Relaxed);
    });
    carrying.stop().map_err(environment)?;
    Ok(())
}

/// Long enough for a loss and the threshold that it leaves.
pub(super) const BEFORE: Span = Span::from_secs(5);
