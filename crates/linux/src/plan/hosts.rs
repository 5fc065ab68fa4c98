//! The hosts: routes with what each flow's connection is told, and settings of the whole kernel.

use std::fmt::Write as _;

use fullpipe_run::{FlowSpec, RunSpec};

use super::{Plan, Traffic, address, longest_packet};
use crate::error::LinuxError;
use crate::plan::flow::sides;
use crate::switches::{self, Switches};

impl Plan {
    /// `flows`: the lasting ones and what those of each class are like.
    pub(super) fn hosts(
        &mut self,
        spec: &RunSpec,
        traffic: &Traffic,
        flows: &[&FlowSpec],
        switches: &[Switches],
    ) -> Result<(), LinuxError> {
        let mtu = longest_packet(spec);
        for (side, ip) in self.ip.iter_mut().enumerate() {
            let (own, other) = (side + 1, 2 - side);
            let _ = writeln!(ip, "link set lo up\nlink set fp{side} mtu {mtu} up");
            let _ = writeln!(ip, "route add local 10.{own}.0.0/16 dev lo");
            let _ = writeln!(ip, "route add 10.{other}.0.0/16 dev fp{side}");
        }
        let first = traffic.first_of_class(spec);
        let lasting = (0..spec.flows.len()).map(|i| i..i + 1);
        let classes = first.iter().zip(&traffic.classes);
        let brief = classes.map(|(first, all)| *first..first + all.len());
        for ((f, s), numbers) in flows.iter().zip(switches).zip(lasting.chain(brief)) {
            let (near, far) = sides(f);
            let mut data = String::new();
            if f.sender.packet() != mtu {
                let _ = write!(data, " mtu lock {}", f.sender.packet());
            }
            let mut acks = data.clone();
            if let Some(min) = s.min_rto {
                let _ = write!(data, " rto_min {}ms", min.as_millis_f64().round());
            }
            if f.sender.ecn {
                data += " features ecn";
            }
            if f.receiver.acks.every == 1 {
                acks += " quickack 1";
            }
            for (host, to, options) in [(near, far, data), (far, near, acks)] {
                if options.is_empty() {
                    continue;
                }
                for i in numbers.clone() {
                    let to = address(to, i);
                    let ip = &mut self.ip[host];
                    let _ = writeln!(ip, "route add {to}/32 dev fp{host}{options}");
                }
            }
        }
        let common = |key, value: fn(&Switches) -> bool| {
            switches::common(flows, switches, key, value).map(u8::from)
        };
        let tlp = 3 * common("tlp", |s| s.tlp)?;
        let frto = 2 * common("frto", |s| s.frto)?;
        let after_idle = common("validation", |s| s.validates)?;
        let rack = common("recovery", |s| s.rack)?;
        let merged = 44 * common("merge_acks", |s| s.merges_acks)?;
        // 32 MB of window (half of the buffer) is what preset linux has; where nothing shall limit,
        // more.
        let room = if switches.iter().any(|s| s.unlimited_window) {
            268_435_456
        } else {
            67_108_864
        };
        // Hosts and routers share a kernel, but no wire carries a socket's hash: with a new one at
        // every timeout the retransmission would overtake its flow in a router's FQ-CoDel.
        let _ = write!(
            self.sysctl,
            "core/rmem_max 268435456\ncore/wmem_max 268435456\n\
             core/netdev_max_backlog 1000000\ncore/txrehash 0\n\
             ipv4/tcp_mem 400000 600000 800000\n\
             ipv4/tcp_rmem 4096 67108864 {room}\n\
             ipv4/tcp_wmem 4096 16384 268435456\n\
             ipv4/tcp_no_metrics_save 1\n\
             ipv4/tcp_early_retrans {tlp}\nipv4/tcp_frto {frto}\n\
             ipv4/tcp_slow_start_after_idle {after_idle}\nipv4/tcp_recovery {rack}\n\
             ipv4/tcp_comp_sack_nr {merged}\n",
        );
        Ok(())
    }
}
