//! Metrics of a whole case: fairness, convergence, and what the first flow does to the others.

use crate::harm::{
    completion_time, first_goodput, harm_of_less, harm_of_more, other_goodput, other_rtt, quotient,
};
use crate::metric::Better::{Higher, Lower, Neither};
use crate::metric::{Metric, UNBOUNDED, against, case};
use crate::sharing::{aggregate_goodput, asymmetry, convergence_time, jain, rtt_unfairness};
use crate::synchronization::synchronization;

const SLAC: &str = "\
SLAC 2003 (Cottrell and Bulot, \"Evaluation of Advanced TCP Stacks on Fast Long-Distance \
Production Networks\")";
const WUSTL: &str = "\
definition of an epoch ours; after \"Loss Synchronization of TCP Connections at a Shared \
Bottleneck Link\", Washington University 2006";
const TCPEVAL: &str = "draft-irtf-iccrg-tcpeval, impact on standard traffic";
const WARE: &str = "Ware et al. 2019, taken against a baseline case instead of the others alone";

/// Metrics of a case, in the order of columns and JSON keys.
pub const CASE: &[Metric] = &[
    case("jain", "1", Higher, |c| jain(&c.goodputs()))
        .part()
        .means(
            "Jain's fairness of the flows' goodput; 1 when all are equal, `1/n` when one has \
             everything",
            "`(sum x)^2 / (n * sum x^2)`, x = goodput of a flow (all its streams); flows that are \
             over before the measured part do not count; `null` when nothing was delivered",
            "Jain 1984, RFC 5166 section 2.3.1, SLAC 2003",
        )
        .titled("Fairness (Jain)")
        .column("jain"),
    case("asymmetry", "1", Neither, |c| {
        asymmetry((*c.goodput.first()?)?, (*c.goodput.get(1)?)?)
    })
    .between([-1.0, 1.0])
    .means(
        "Who gets more of the first two flows; `null` with one flow",
        "`(x1 - x2) / (x1 + x2)` in the order of the scenario",
        SLAC,
    )
    .titled("Asymmetry")
    .signed(),
    case(
        "aggregate_goodput_mbps",
        "Mbit/s",
        Higher,
        aggregate_goodput,
    )
    .means(
        "Payload first delivered by all flows",
        "`sum of 8 * mss * delivered / (duration - warm-up)`",
        "RFC 5166 section 2.1.1",
    )
    .titled("Goodput of all flows"),
    case("convergence_time_s", "s", Lower, convergence_time)
        .means(
            "Time from the start of the last flow until the flows share fairly; `null` with one \
             flow or if they never do",
            "beginning of the first of 3 consecutive samples with Jain's fairness >= 0.95, \
             counted from that start; samples in which every flow was sending, the warm-up's \
             too",
            SLAC,
        )
        .titled("Convergence time"),
    case("rtt_unfairness", "1", Neither, |c| {
        let [a, b, ..] = c.groups else { return None };
        let rtts = [a, b].map(|group| c.base_rtt_s(group));
        if !c.path_is_known() {
            return None;
        }
        rtt_unfairness([c.goodput[0]?, c.goodput[1]?], rtts)
    })
    .between(UNBOUNDED)
    .means(
        "How the shares of the first two flows follow their RTTs: 0 equal shares, 1 inverse \
             to the RTT; `null` for equal base RTTs and on a real path",
        "exponent `a` of `x1 / x2 = (R2 / R1)^a`: `ln(x1 / x2) / ln(R2 / R1)`, x = goodput, R \
             = base RTT",
        "Lakshman and Madhow 1997",
    ),
    case("synchronization", "1", Lower, |c| {
        synchronization(c.streams(), c.longest_base_rtt(c.groups)?, c.outcome)
    })
    .part()
    .means(
        "Whether flows lose together: the mean part of all streams that takes part in a \
             congestion epoch, `1/n` to 1; `null` with one stream or without an event",
        "an epoch begins with a congestion event and takes in those of the next longest base \
             RTT; part: streams with an event in it / streams present; mean over the epochs that \
             begin in the measured part with two streams or more present",
        WUSTL,
    ),
    case("half_ratio", "1", Neither, |c| {
        c.second_half_against_first()
    })
    .means(
        "Whether the run is in equilibrium: 1 if its second half delivers as much as its \
             first; `null` if the first delivers nothing",
        "payload that was delivered in the second half of the measured part, of all flows and \
             short flows, / that of the first half, in whole intervals, the middle one of an odd \
             number left out",
        "draft-irtf-iccrg-tcpeval-01 section 3.2",
    )
    .titled("Second half against first"),
    against("gain", "1", Higher, |x, b| {
        quotient(first_goodput(x)?, first_goodput(b)?)
    })
    .means(
        "What the first flow gets against the baseline case; `null` without one",
        "`x_first / x_first of the baseline`, seed by seed, x = goodput; the baseline is the \
             case that `[measure] baseline` names",
        TCPEVAL,
    ),
    against("loss", "1", Higher, |x, b| {
        quotient(other_goodput(x)?, other_goodput(b)?)
    })
    .means(
        "What is left to the other flows against the baseline case: 1 is no loss",
        "`x_others / x_others of the baseline`, x = sum of the goodput of all flows but the \
             first",
        TCPEVAL,
    ),
    against("harm.throughput", "1", Lower, |x, b| {
        harm_of_more(other_goodput(x)?, other_goodput(b)?)
    })
    .between([f64::NEG_INFINITY, 1.0])
    .means(
        "Harm to the goodput of the other flows beyond that of the baseline; negative if they \
             fare better",
        "`(b - x) / b`, x = sum of the goodput of all flows but the first, b = the same of \
             the baseline",
        WARE,
    ),
    against("harm.rtt", "1", Lower, |x, b| {
        harm_of_less(other_rtt(x)?, other_rtt(b)?)
    })
    .between([f64::NEG_INFINITY, 1.0])
    .means(
        "Harm to the delay of the other flows",
        "`(x - b) / x`, x = mean over all flows but the first of their mean RTT, b = the same \
             of the baseline",
        WARE,
    ),
    against("harm.completion_time", "1", Lower, |x, b| {
        harm_of_less(completion_time(x)?, completion_time(b)?)
    })
    .between([f64::NEG_INFINITY, 1.0])
    .means(
        "Harm to the completion time of short flows",
        "`(x - b) / x`, x = mean completion time of all short flows, b = the same of the \
             baseline",
        WARE,
    ),
];
