//! The reference page of the metrics, `docs/metrics.md`.

use crate::metric::Scope;
use crate::table::METRICS;
use crate::wrapped::wrapped;

/// The reference page `docs/metrics.md`.
pub fn markdown() -> String {
    let mut out = String::from(PAGE_HEAD);
    for (scope, title) in [
        (Scope::Flow, "Of a flow"),
        (Scope::Traffic, "Of short flows, datagrams and probes"),
        (Scope::Link, "Of a link"),
        (Scope::Case, "Of a case"),
    ] {
        out += &format!("\n## {title}\n");
        for m in METRICS.iter().filter(|m| m.scope == scope) {
            out += &format!(
                "\n### `{}`\n\n{}.\n\n- unit: {}\n- formula: {}\n",
                m.name, m.about, m.unit, m.formula
            );
            if m.scope == Scope::Traffic {
                out += &format!("- of: {}\n", m.kinds());
            }
            if !m.streams.is_empty() {
                out += &format!("- several streams: {}\n", m.streams);
            }
            out += &format!("- source: {}\n", m.source);
        }
        if scope == Scope::Flow {
            out += PAGE_VARIABLES;
        }
    }
    wrapped(&(out + PAGE_FIDELITY + PAGE_AGREEMENT))
}

const PAGE_HEAD: &str = "\
# Metrics

<!-- Made from the table in `crates/metrics/src/rows/`; a test compares the two. -->

A metric has one definition, used by every command. Names are those of the JSON output, of the columns of `runs.parquet`
and of `metric = ...` in an `[[expect]]`; a dot leads into a JSON object (`rtt_ms.p95` is `\"rtt_ms\": {\"p95\": ...}`).

Values over several seeds are means, with the 95 % Student interval beside them as `<name>_ci95`. A metric that is
undefined (no loss, never recovered, one sample only) is `null`; when it is undefined in some of the seeds the mean is
`null` too and `<name>_undefined` says in how many. An expectation on an undefined metric fails.
The baseline case (`[measure] baseline`) has no `gain`, `loss` and `harm.*`, and an expectation about them does not judge
it.

Where a metric is named, in `[[expect]]`, `compare --metric` and the `--metric` of the figures `matrix`, `bars` and
`distribution` (tables have columns of metrics alone), an expression may stand:
numbers, metrics, `+ - * /`, brackets, `min`, `max`, `abs`, `sqrt`, `log10`. It is computed for every seed and then
averaged, so its interval is its own. A metric of a link in it is that of the `link` of the expectation, otherwise of
the bottleneck; where any of its metrics is one of a flow, it is one of that flow.

Words used below:

- measured part of a flow: from the end of the warm-up, or the flow's start if that is later, to the end of the run, the
  flow's `stop` or the completion of its transfer, whichever is first. What was sent before a `stop` and arrives after it
  is part of `goodput_mbps`, `throughput_mbps` and `received_mbps`, and so is the time it takes, until all is acknowledged
  (datagrams: until the last arrives);
- measured part of traffic: from the end of the warm-up, or of datagrams their start if that is later, to the end of the run or
  the datagrams' `stop`; a short flow counts if it starts in it, one that started during the warm-up does not, and the delay of
  a packet counts if the packet leaves (a queue) or arrives in it. Counts and the rates made of counts (`retransmits`,
  `loss_rate`, `drop_rate`) say that they begin at the start: a loss during the warm-up is a loss;
- samples: the payload first delivered in each whole interval (`[measure] interval`, counted from time zero) inside the
  measured part, divided by the interval;
- congestion event: a reduction for a loss, a mark or a local stall, or a timeout; at most one per window;
  `loss_events` and `loss_event_rate` are without timeouts;
- round: packet-timed, from the ACK of the first segment sent after the previous round's end to the next such ACK;
- full rate: `min(capacity, window_cap * packet / base_rtt)`, with headers; `base_rtt` is the round-trip propagation delay;
- `cwnd` against time is read from the rounds (one row per RTT), from the congestion events, and from the moment at which
  it reaches its cap (ground `linux`: the next round); in between it is taken as linear. No metric depends on
  `measure.trace`.
";

const PAGE_VARIABLES: &str = "
### `var.<name>.last`, `var.<name>.max`

Last and largest value of a variable that the controller reports (`var.w_max.last`, `var.w_gamma.max`).

- unit: the variable's
- formula: as reported at the start of each round, at each congestion event and at the end
- several streams: mean of the last values, largest of the largest
- source: the law's or start-up's file
";

const PAGE_FIDELITY: &str = "
## Of the test bed

Is it the algorithm, the code or the test bed? A case of a real run has an object `fidelity`, the worst of its seeds, number by number; in
the simulator it is absent. It is what `run`, `send`, `report` and `compare` show as test bed, and call NOT VALID; `compare`
leaves it out, unless `--with-flagged`. All times are milliseconds. Where the bounds come from is measured in [grounds.md](grounds.md#how-late-the-hosts-were).

| | | may be |
|---|---|---|
| `valid` | false if anything below is beyond its bound | |
| `rtt_ms` | smallest round-trip time of flows, short flows and probes; 0 if there is none | |
| `late_p50_ms`, `late_p99_ms`, `late_max_ms` | how much later than computed packets left the path | p99: `late_bound_ms`, 1 % of `rtt_ms`, at least 0.1 |
| `path_added_ms` | what that added to a mean round trip: the mean of each direction, added up | |
| `near`, `far` | the hosts, see below: forward flows begin at the near one; absent on the running kernel, where nothing of them is measured | |
| `added_ms` | the sum of the three parts of a mean round trip that an event in virtual time would not take: `path_added_ms`, and `added_ms` of either host | `added_bound_ms`, 1 % of `rtt_ms`, at least 0.2, but on a path of the scenario 5 % of `rtt_ms` at most |
| `unplanned_drops` | packets lost that the specification does not lose: overflows of sockets | 0 |
| `local_stalls` | batches that the operating system refused; made up for, and part of a real host | |
| `checks` | on the running kernel: rate, delay, buffer and burst of the path before the run, lateness, lost packets and processor time during it, each with what was specified and measured | of each: least and most |

The numbers of the path are absent where it is a network (`--peer`, `send`); the bounds of `added_ms` and of hosts are five times as wide
there, and of the mean round trip: 1 ms or 5 %, 2.5 ms or 25 %. Of each host, measured by itself:

| | | may be |
|---|---|---|
| `added_ms` | `arrival_mean_ms + departure_mean_ms`: from a packet's arrival to the departure of its answer | |
| `arrival_mean_ms`, `arrival_p99_ms`, `arrival_max_ms` | from the kernel's receive stamp of a datagram (`SO_TIMESTAMPNS`) until it was handled | p99: `host_bound_ms`, 5 % of `rtt_ms`, at least 0.5 |
| `departure_mean_ms`, `departure_p99_ms`, `departure_max_ms` | from the time that a datagram takes for that of its departure until the system call was back | as above |
| `timer_mean_ms`, `timer_p99_ms`, `timer_max_ms`, `timers` | from when a timer was due until it was served: pacing, delayed ACKs, timeouts, datagrams of sources; and how many there were | as above, from 200 timers on |
| `local_stalls` | those of this host | |

Where the kernel gives no stamps, `added_ms` and the `arrival_` numbers of a host are absent: then nobody knows. A mean round trip is its propagation,
the queues, and `added_ms`; part of the queues is the work of late hosts too, because who wakes late answers with a burst.
";

const PAGE_AGREEMENT: &str = "
## Of two results

`fullpipe compare A B` of results from different grounds (and with `--agreement` always) says how far apart they are. Runs are
paired by seed (in their order, where the two have none in common); a value is the mean over the pairs. Where chance decides, no two runs are alike on any ground: with several
seeds a distance beyond its threshold is held against that of neighbouring seeds on one ground (the ground where it is larger),
and is `within chance` if it is not larger, judged by Welch's 95 % interval.

Judged beside these are the metrics `goodput_mbps`, `rtt_ms.mean`, `retransmits` and
`completion_time_s` of flows (5 %), `loss_events` and `timeouts` (equal), `completion_time_s.mean`,
`rtt_ms.mean` and `received_mbps` of traffic (5 %); or those of `--metric`. With several seeds a
difference counts only if its 95 % interval leaves out zero; a count that chance made equal in all
of them is given the spread of what is rounded to it.

### `cwnd_area`

Relative area between the curves of the congestion window.

- unit: 1
- formula: `integral |a - b| dt / integral a dt`, from the first row of either series to the last row of either. A window keeps
  its value until the next row; it is zero before the first row and keeps the last one after it. The series with a row per ACK is
  used where there is one (`trace = \"full\"`)
- several streams: of the sum of the windows
- threshold: 5 %
- source: definition ours

### `loss_time_rtt`

Largest difference of the times of congestion events (reductions and timeouts).

- unit: RTT: `rtt_ms.min` of the run in A
- formula: maximum of `|t_a - t_b|`, events matched in their order. Where one side has more, those are left out that make the
  sum of the differences smallest; no event on one side: 0, the count of `loss_events` tells
- several streams: events of all streams, by time
- threshold: 1
- source: definition ours

### `completion_area`

Relative area between the distributions of the completion times of short flows, all runs together.

- unit: 1
- formula: `integral |Qa(u) - Qb(u)| du / mean(a)` over `u` from 0 to 1, with the quantile functions `Q` (Wasserstein distance).
  The transfers of a run share its queues, so chance is judged by the distances of single runs, as above; with one seed it is within
  chance if the largest step between the distributions is below `1.358 sqrt((n + m) / (n m))` (Kolmogorov and Smirnov, 95 %)
- threshold: 5 %
- source: definition ours
";
