//! The hosts: routes with what each flow's connection is told, and settings of the whole kernel.

use std::fmt::Write as _;

use fullpipe_run::{FlowSpec, RunSpec};

use super::{Plan, Traffic, address, longest_packet};
use crate::error::LinuxError;
use crate::plan::flow::sides;
use crate::switches::{self, Switches};

/// One frame of 1500 bytes: hosts hand over single segments, for which HyStart allows no trains.
/// The default of `cubic-linux`.
const BURST: u32 = 1514;

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
            let _ = writeln!(
                ip,
                "link set lo up\nlink set fp{side} mtu {mtu} gso_max_size {BURST} up"
            );
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
            if s.echoes_changes {
                // A connection that is accepted takes the algorithm of its route.
                acks += " congctl dctcp";
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
        let (first, most) = receive_buffers(switches);
        // Hosts and routers share a kernel, but no wire carries a socket's hash: with a new one at
        // every timeout the retransmission would overtake its flow in a router's FQ-CoDel.
        let _ = write!(
            self.sysctl,
            "core/rmem_max 268435456\ncore/wmem_max 268435456\n\
             core/netdev_max_backlog 1000000\ncore/txrehash 0\n\
             ipv4/tcp_mem 400000 600000 800000\n\
             ipv4/tcp_rmem 4096 {first} {most}\n\
             ipv4/tcp_wmem 4096 16384 268435456\n\
             ipv4/tcp_no_metrics_save 1\n\
             ipv4/tcp_early_retrans {tlp}\nipv4/tcp_frto {frto}\n\
             ipv4/tcp_slow_start_after_idle {after_idle}\nipv4/tcp_recovery {rack}\n\
             ipv4/tcp_comp_sack_nr {merged}\n",
        );
        Ok(())
    }
}

/// The first and the largest buffer of a receiver, bytes, half of which is window: 32 MB of window
/// are what preset linux has, and a scenario's own may be wider. Where nothing shall limit, the
/// buffer may grow.
fn receive_buffers(switches: &[Switches]) -> (u64, u64) {
    let widest = switches.iter().map(|s| s.window.1).max().unwrap_or(0);
    let first = (2 * widest).clamp(PRESET, LARGEST);
    let unlimited = switches.iter().any(|s| s.unlimited_window);
    (first, first.max(if unlimited { 4 * PRESET } else { 0 }))
}

const PRESET: u64 = 67_108_864;
/// Largest value of a sysctl, which is an `int`.
const LARGEST: u64 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_window_has_its_buffer() {
        let with = |cap: u64, unlimited_window: bool| Switches {
            window: (0, cap),
            unlimited_window,
            ..Switches::default()
        };
        let of = |all: &[Switches]| receive_buffers(all);
        assert_eq!(of(&[with(1_000_000, false)]), (67_108_864, 67_108_864));
        assert_eq!(of(&[with(0, true)]), (67_108_864, 268_435_456));
        let both = [with(1_000_000, false), with(200_000_000, false)];
        assert_eq!(of(&both), (400_000_000, 400_000_000));
        assert_eq!(of(&[with(1 << 31, true)]), (0x7fff_ffff, 0x7fff_ffff));
    }
}
