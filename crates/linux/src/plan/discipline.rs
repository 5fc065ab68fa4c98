//! The kernel's own queue disciplines, as `tc` is told them.

use std::fmt::Write as _;

use fullpipe_run::{Buffer, Discipline, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::Plan;
use crate::error::LinuxError;

/// Packets that may wait: one more of the buffer is in the transmitter.
pub(super) fn waiting(link: &LinkSpec) -> u64 {
    let packets = match link.buffer {
        Buffer::Packets(n) => n,
        Buffer::Bytes(n) => n / 1500,
        Buffer::Time(t) => (first_rate(link) as f64 * t.as_secs_f64() / 12e3) as u64,
        Buffer::Unlimited => 1_000_000,
    };
    packets.saturating_sub(1).clamp(1, 1_000_000)
}

impl Plan {
    /// The kernel's discipline behind the transmitter of link `i`.
    pub(super) fn discipline(&mut self, i: usize, link: &LinkSpec) -> Result<(), LinuxError> {
        let rate = first_rate(link);
        let limit = waiting(link);
        let us = |t: Span| format!("{}us", (t.as_nanos() / 1000).max(1));
        let ecn = |on: bool| if on { "ecn" } else { "noecn" };
        let text = match link.discipline {
            Discipline::DropTail => format!("pfifo limit {limit}"),
            Discipline::Codel(c) => format!(
                "codel limit {limit} target {} interval {} {}",
                us(c.target),
                us(c.interval),
                ecn(c.ecn)
            ),
            Discipline::FqCodel(f) => format!(
                "fq_codel limit {limit} flows {} quantum {} target {} interval {} \
                 memory_limit 2gb {}",
                f.flows,
                f.quantum,
                us(f.codel.target),
                us(f.codel.interval),
                ecn(f.codel.ecn)
            ),
            Discipline::Pie(p) => {
                let fixed = [
                    ("max_burst", "150ms", p.max_burst == Span::from_millis(150)),
                    ("mark_until", "0.1", p.ecn.is_none_or(|th| th == 0.1)),
                ];
                if let Some((key, value, _)) = fixed.iter().find(|(.., same)| !same) {
                    let what = format!("link {}: `{key}` is {value} in the kernel", link.name);
                    let hint = format!("leave out `{key}`, or use --ground sim");
                    return Err(LinuxError::unable(what, hint));
                }
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
                if r.gentle {
                    let what = format!(
                        "link {}: `gentle` RED is not in the kernel (sch_red)",
                        link.name
                    );
                    let hint = "set `queue = { kind = \"red\", gentle = false }`, \
                                or use --ground sim";
                    return Err(LinuxError::unable(what, hint));
                }
                // The weight of the average follows from `burst` (tc-red(8)); its closest.
                let burst = red_burst(r.min, r.weight);
                format!(
                    "red limit {} min {} max {} avpkt 1500 burst {burst} probability {} \
                     bandwidth {rate}bit {} {}",
                    limit * 1500,
                    (r.min * 1500.0) as u64,
                    (r.max * 1500.0) as u64,
                    r.max_p,
                    if r.ecn { "ecn" } else { "" },
                    if r.adaptive { "adaptive" } else { "" },
                )
            }
        };
        let _ = writeln!(self.tc, "qdisc replace dev fpl{i} root {text}");
        Ok(())
    }
}

/// Bits per second at the start; of a trace, its mean.
fn first_rate(link: &LinkSpec) -> u64 {
    match (&link.trace, link.rate) {
        (Some(trace), _) => {
            let period = trace.opportunities.last().map_or(1, |ms| u64::from(*ms));
            trace.opportunities.len() as u64 * OPPORTUNITY_BITS * 1000 / period.max(1)
        }
        (None, rate) => rate.map_or(0, Rate::as_bits_per_sec),
    }
}

/// Bits of a delivery opportunity: 1504 bytes, as mahimahi counts them.
const OPPORTUNITY_BITS: u64 = 12_032;

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
