//! Hosts, sockets and settings of a run before anything is sent.

use std::io;

use fullpipe_emulate::namespace::{DEVICE, HostSide, Side, addresses};
use fullpipe_emulate::netlink::{Links, Metric};
use fullpipe_emulate::stage::Stage as Hosts;
use fullpipe_observe::SocketDiag;
use fullpipe_run::{GroundError, RunSpec};

use super::Options;
use super::errors::{lacks, sockets};
use crate::brief::Brief;
use crate::plan::{HANDLE, Plan};
use crate::sockets::{Ends, Pair};

/// Sockets of a run.
pub(super) struct Connected<'a> {
    pub pairs: Vec<Pair>,
    pub classes: Vec<Brief<'a>>,
}

pub(super) fn sides(hosts: &Hosts) -> [&HostSide; 2] {
    [hosts.host(Side::Near), hosts.host(Side::Far)]
}

pub(super) fn pairs(hosts: &Hosts, plan: &Plan, ipv6: bool) -> Result<Vec<Pair>, GroundError> {
    let pairs = plan.flows.iter().enumerate();
    let pairs = pairs.map(|(k, flow)| {
        let ends = Ends::new(flow.from, k, ipv6);
        Pair::new(ends, flow, sides(hosts)).map_err(sockets)
    });
    pairs.collect()
}

/// Classes of short flows have the pairs of hosts behind those of the flows.
pub(super) fn classes<'a>(
    hosts: &Hosts,
    spec: &'a RunSpec,
    plan: &'a Plan,
    ipv6: bool,
) -> Result<Vec<Brief<'a>>, GroundError> {
    let classes = plan.classes.iter().zip(&spec.arrivals).enumerate();
    let classes = classes.map(|(k, (class, of))| {
        let ends = Ends::new(class.flow.from, plan.flows.len() + k, ipv6);
        Brief::new(class, of, spec, ends, sides(hosts)).map_err(|e| lacks("a sink", &e))
    });
    classes.collect()
}

/// Settings and routes of both hosts.
pub(super) fn prepare(hosts: &Hosts, plan: &Plan, options: Options) -> io::Result<()> {
    for side in [Side::Near, Side::Far] {
        let other = match side {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        };
        let mut settings = plan.settings.clone();
        if options.autotuning {
            settings.push(("tcp_rmem", DEFAULT_BUFFER.to_owned()));
        }
        let classes = plan.classes.iter().map(|c| &c.flow);
        let routes: Vec<(usize, Vec<(Metric, u32)>)> = plan
            .flows
            .iter()
            .chain(classes)
            .map(|f| if f.from == side { &f.data } else { &f.acks })
            .cloned()
            .enumerate()
            .filter(|(_, metrics)| !metrics.is_empty())
            .collect();
        let interfaces = plan.interfaces.iter().filter(|i| i.side == side);
        let interfaces: Vec<_> = interfaces.map(|i| (i.class, i.drain)).collect();
        hosts.host(side).enter(move || {
            for (name, value) in settings {
                let file = format!("/proc/sys/net/ipv4/{name}");
                let named = |e: io::Error| io::Error::new(e.kind(), format!("{file}: {e}"));
                std::fs::write(&file, value).map_err(named)?;
            }
            let mut links = Links::open()?;
            // A packet takes one place in the queue of an interface, not a train of them.
            if !options.offload || !interfaces.is_empty() {
                links.set_offload(DEVICE, 1)?;
            }
            if !interfaces.is_empty() {
                links.put_htb(DEVICE, HANDLE)?;
            }
            for (class, drain) in interfaces {
                links.put_drain(DEVICE, HANDLE, class, drain)?;
            }
            for (k, metrics) in routes {
                let (v4, v6) = addresses(other, k);
                let to = if options.ipv6 { v6 } else { v4 };
                links.add_route(DEVICE, to, &metrics)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Smallest, first and largest buffer of a receiver (`tcp_rmem`, tcp(7)).
pub(super) const DEFAULT_BUFFER: &str = "4096 131072 6291456";

pub(super) fn diags(hosts: &Hosts) -> Result<Vec<(Side, SocketDiag)>, GroundError> {
    let open = |side: Side| -> io::Result<(Side, SocketDiag)> {
        let host: &HostSide = hosts.host(side);
        let diag = host.enter(|| SocketDiag::open().map_err(io::Error::other))?;
        Ok((side, diag))
    };
    let all = [Side::Near, Side::Far].into_iter().map(open);
    all.collect::<io::Result<_>>()
        .map_err(|e| lacks("sockets of a namespace", &e))
}
