//! The kernel's own queue disciplines, as `tc` is told them.

use std::fmt::Write as _;

use fullpipe_run::{Codel, Discipline, LinkSpec, QueueRule};
use fullpipe_units::Span;

use super::Plan;
use crate::error::LinuxError;

impl Plan {
    /// The kernel's discipline behind the transmitter of link `i`.
    pub(super) fn discipline(&mut self, i: usize, link: &LinkSpec) -> Result<(), LinuxError> {
        let rate = link.first_rate();
        let limit = link.linux_limit();
        let by = link.discipline.by();
        if by.is_some_and(|by| by != QueueRule::Linux) {
            let what = "the queue disciplines of the kernel are its own, not the RFCs'";
            let hint = "set `by = \"linux\"` in `queue`, or use --ground sim";
            let key = format!("{}.queue.by", link.name);
            return Err(LinuxError::unable_to(key, what, hint));
        }
        let us = |t: Span| format!("{}us", (t.as_nanos() / 1000).max(1));
        let ecn = |on: bool| if on { "ecn" } else { "noecn" };
        let late = |c: &Codel| match c.ce_threshold {
            Some(threshold) => format!(" ce_threshold {}us", threshold.as_nanos() / 1000),
            None => String::new(),
        };
        let text = match link.discipline {
            Discipline::DropTail => format!("pfifo limit {limit}"),
            Discipline::Codel(c) => format!(
                "codel limit {limit} target {} interval {} {}{}",
                us(c.target),
                us(c.interval),
                ecn(c.ecn),
                late(&c)
            ),
            Discipline::FqCodel(f) => format!(
                "fq_codel limit {limit} flows {} quantum {} target {} interval {} \
                 memory_limit 2gb {}{}",
                f.flows,
                f.quantum,
                us(f.codel.target),
                us(f.codel.interval),
                ecn(f.codel.ecn),
                late(&f.codel)
            ),
            Discipline::Pie(p) => {
                // tc's alpha and beta are in units of 1/16 Hz (tc-pie(8)): 0.125 and 1.25 Hz are
                // its defaults of 2 and 20.
                let scaled = |x: f64| (x * 16.0).round();
                format!(
                    "pie limit {limit} target {} tupdate {} alpha {} beta {} {}",
                    us(p.target),
                    us(p.update),
                    scaled(p.alpha),
                    scaled(p.beta),
                    ecn(p.ecn.is_some())
                )
            }
            Discipline::Red(r) => {
                // The weight of the average follows from `burst` (tc-red(8)); its closest.
                let burst = red_burst(r.min, r.weight);
                let bytes = |packets: f64| (packets * f64::from(r.mtu)) as u64;
                format!(
                    "red limit {} min {} max {} avpkt {} burst {burst} probability {} \
                     bandwidth {rate}bit {} {} {}",
                    link.linux_bytes(),
                    bytes(r.min),
                    bytes(r.max),
                    r.mtu,
                    r.max_p,
                    if r.ecn { "ecn" } else { "" },
                    if r.ecn && r.harddrop { "harddrop" } else { "" },
                    if r.adaptive { "adaptive" } else { "" },
                )
            }
        };
        let _ = writeln!(self.tc, "qdisc replace dev fpl{i} root {text}");
        Ok(())
    }
}

/// The `burst` of tc-red(8) whose weight comes closest: tc finds the largest `W` (weight `2^-W`)
/// for which `burst + 1 - min/avpkt >= (1 - (1 - 2^-W)^burst) / 2^-W` (iproute2,
/// `tc_red_eval_ewma`).
fn red_burst(min: f64, weight: f64) -> u64 {
    let wanted = (-weight.log2()).round().clamp(1.0, 31.0);
    let found = |burst: f64| {
        let mut w = 1.0;
        let mut weight = 0.5_f64;
        let a = burst + 1.0 - min;
        if a < 1.0 {
            return -1.0;
        }
        while w < 32.0 {
            if a <= (1.0 - (1.0 - weight).powf(burst)) / weight {
                return w;
            }
            w += 1.0;
            weight /= 2.0;
        }
        w
    };
    let first = min.ceil() as u64 + 1;
    let enough = (first..1_000_000).find(|b| found(*b as f64) >= wanted);
    enough.unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_run::{Buffer, Pie, Red};

    fn tc(discipline: Discipline) -> Result<String, LinuxError> {
        let rate = Some(fullpipe_units::Rate::from_bits_per_sec(10_000_000));
        let mut link = LinkSpec::new("l", rate, Span::ZERO, Buffer::Packets(61));
        link.discipline = discipline;
        let mut plan = Plan::default();
        plan.discipline(0, &link)?;
        Ok(plan.tc)
    }

    /// The kernel has no other discipline than its own: the RFCs' are refused, with the remedy.
    #[test]
    fn the_disciplines_are_the_kernels() {
        let rfc = [
            Discipline::Codel(Codel::default()),
            Discipline::Pie(Pie::default()),
            Discipline::Red(Red::classic(60)),
        ];
        for discipline in rfc {
            let error = tc(discipline).unwrap_err();
            assert!(error.hint().contains("by = \"linux\""), "{error}");
        }
        let by = QueueRule::Linux;
        let codel = Codel {
            by,
            ..Codel::default()
        };
        assert_eq!(
            tc(Discipline::Codel(codel)).unwrap(),
            "qdisc replace dev fpl0 root codel limit 60 target 5000us interval 100000us noecn\n"
        );
        for (harddrop, words) in [(false, "ecn  \n"), (true, "ecn harddrop \n")] {
            let red = Red {
                by,
                harddrop,
                ecn: true,
                ..Red::classic(60)
            };
            let text = tc(Discipline::Red(red)).unwrap();
            assert!(text.ends_with(words), "{text}");
        }
    }
}
