//! Every key of a scenario file that says something of a run is honoured here, or refused by its
//! name: none is silently ignored. The keys are those of `docs/scenario.md`, which a test of
//! `fullpipe-scenario` holds against the reader itself.

use std::collections::{BTreeMap, BTreeSet};

use fullpipe_scenario::{Overrides, Scenario};

use super::{Traffic, plan};
use crate::error::LinuxError;
use crate::switches::Kernel;

/// What becomes of a key at a value that is not the kernel's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// The guest is given something else.
    Honoured,
    /// The run is refused, by the key.
    Refused,
    /// The run is that of the kernel's own host in part, and the user is warned.
    Warned,
}
use Fate::{Honoured as H, Refused as R, Warned as W};

/// Where lines of a row stand in the file.
#[derive(Clone, Copy)]
enum Spot {
    Top,
    Path,
    Flow,
    /// Behind everything.
    End,
}

/// Section of the documentation, key, spot, lines without and with it, and what it comes to. Where
/// several lines belong together they are one text.
type Row = (
    &'static str,
    &'static str,
    Spot,
    &'static str,
    &'static str,
    Fate,
);

/// Sections and keys that no ground sees: what is run, expected and drawn, and how a result is
/// judged.
const NOT_OF_A_RUN: &[(&str, &str)] = &[
    (
        "Top level",
        "name about seeds path flow traffic link route matrix quick study measure expect negative report",
    ),
    ("`[[flow]]`", "name"),
    ("`[[traffic]]`", "name kind"),
    ("`[[link]]`", "name"),
    (
        "`[measure]`",
        "recovered_at precision precision_of max_seeds baseline agreement",
    ),
    ("`recovered_at` as a table", "*"),
    ("`[[expect]]`", "*"),
    ("`[[negative]]`", "*"),
    ("`[[report]]`", "*"),
    ("How a path becomes links", "*"),
];

const FLOW: &str = "`[[flow]]`";
const PATH: &str = "`[path]`";
const QUEUE: &str = "`queue` as a table";
const LOSS: &str = "`loss` as a table";
const TRAFFIC: &str = "`[[traffic]]`";
const LINK: &str = "`[[link]]`";
const SIZE: &str = "`size` as a table";
const PARETO: &str = "`size.pareto` as a table";
const SCHEDULE: &str = "`schedule` as a table";
const CHANGE: &str = "`change` as a table";
const DROP: &str = "`drop` as a table";

macro_rules! web {
    ($lines:literal) => {
        concat!(
            "[[traffic]]\nname = \"web\"\nkind = \"short-flows\"\nstack = \"cubic-linux\"\n\
             preset = \"linux\"\n",
            $lines
        )
    };
}

macro_rules! camp {
    ($lines:literal) => {
        concat!(
            "[[traffic]]\nname = \"camp\"\nkind = \"short-flows\"\nstack = \"reno-linux\"\n\
             preset = \"linux\"\nsize = \"10kB\"\nper_second = 5\n",
            $lines
        )
    };
}

macro_rules! datagrams {
    ($kind:literal, $lines:literal) => {
        concat!(
            "[[traffic]]\nname = \"u\"\nkind = \"",
            $kind,
            "\"\n",
            $lines
        )
    };
}

macro_rules! second_link {
    ($lines:literal) => {
        concat!(
            "[[link]]\nname = \"l\"\nrate = \"9Mbit/s\"\ndelay = \"20ms\"\n[[link]]\nname = \"m\"\n",
            $lines,
            "[[route]]\nflow = \"other\"\nforward = [\"l\", \"m\"]\n[[flow]]\nname = \"other\"\n\
             stack = \"reno\"\npreset = \"linux\"\n"
        )
    };
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("Top level", "duration", Spot::Top, "duration = \"5s\"", "duration = \"6s\"", H),
    (PATH, "rate", Spot::Path, "rate = \"10Mbit/s\"", "rate = \"11Mbit/s\"", H),
    (PATH, "rtt", Spot::Path, "rtt = \"40ms\"", "rtt = \"41ms\"", H),
    (PATH, "mtu", Spot::Path, "", "mtu = 9000", H),
    (PATH, "preset", Spot::Path, "", "preset = \"cellular\"", H),
    (PATH, "buffer", Spot::Path, "", "buffer = \"9 packets\"", H),
    (PATH, "queue", Spot::Path, "", "queue = { kind = \"codel\", by = \"linux\" }", H),
    (PATH, "loss", Spot::Path, "", "loss = 0.01", H),
    (PATH, "loss_of_acks", Spot::Path, "loss = 0.01", "loss = 0.01\nloss_of_acks = true", H),
    (PATH, "jitter", Spot::Path, "", "jitter = \"2ms\"", H),
    (PATH, "reorder", Spot::Path, "", "reorder = { probability = 0.01, extra = \"5ms\" }", H),
    (PATH, "policer", Spot::Path, "", "policer = { rate = \"5Mbit/s\", burst = \"100kB\" }", H),
    (PATH, "trace", Spot::Path, "", "trace = \"TRACE\"", H),
    (PATH, "schedule", Spot::Path, "", "schedule = { at = \"1s\", rate = \"5Mbit/s\" }", H),
    (PATH, "return_rate", Spot::Path, "", "return_rate = \"1Mbit/s\"", H),
    (PATH, "return_buffer", Spot::Path, "return_rate = \"1Mbit/s\"",
     "return_rate = \"1Mbit/s\"\nreturn_buffer = \"5 packets\"", H),
    (PATH, "return_queue", Spot::Path, "return_rate = \"1Mbit/s\"",
     "return_rate = \"1Mbit/s\"\nreturn_queue = { kind = \"codel\", by = \"linux\" }", H),
    (PATH, "return_loss", Spot::Path, "return_rate = \"1Mbit/s\"",
     "return_rate = \"1Mbit/s\"\nreturn_loss = 0.01", H),
    (QUEUE, "kind", Spot::Path, "queue = { kind = \"codel\", by = \"linux\" }", "queue = { kind = \"pie\", by = \"linux\" }", H),
    (QUEUE, "ecn", Spot::Path, "queue = { kind = \"codel\", by = \"linux\" }",
     "queue = { kind = \"codel\", by = \"linux\", ecn = true }", H),
    (QUEUE, "by", Spot::Path, "", "queue = { kind = \"codel\", by = \"rfc\" }", R),
    (QUEUE, "hz", Spot::Path, "", "queue = { kind = \"pie\", by = \"linux\", hz = 1000 }", R),
    (QUEUE, "ce_threshold", Spot::Path, "queue = { kind = \"codel\", by = \"linux\" }",
     "queue = { kind = \"codel\", by = \"linux\", ce_threshold = \"2ms\" }", H),
    (QUEUE, "harddrop", Spot::Path, "queue = { kind = \"red\", by = \"linux\", ecn = true }",
     "queue = { kind = \"red\", by = \"linux\", ecn = true, harddrop = true }", H),
    (QUEUE, "min", Spot::Path, "queue = { kind = \"red\", by = \"linux\" }",
     "queue = { kind = \"red\", by = \"linux\", min = \"7 packets\" }", H),
    (QUEUE, "max", Spot::Path, "queue = { kind = \"red\", by = \"linux\" }",
     "queue = { kind = \"red\", by = \"linux\", max = \"30 packets\" }", H),
    (QUEUE, "max_p", Spot::Path, "queue = { kind = \"red\", by = \"linux\" }",
     "queue = { kind = \"red\", by = \"linux\", max_p = 0.5 }", H),
    (QUEUE, "weight", Spot::Path, "queue = { kind = \"red\", by = \"linux\" }",
     "queue = { kind = \"red\", by = \"linux\", weight = 0.1 }", H),
    (QUEUE, "gentle", Spot::Path, "", "queue = { kind = \"red\", by = \"linux\", gentle = true }", R),
    (QUEUE, "target", Spot::Path, "queue = { kind = \"pie\", by = \"linux\" }",
     "queue = { kind = \"pie\", by = \"linux\", target = \"9ms\" }", H),
    (QUEUE, "interval", Spot::Path, "queue = { kind = \"codel\", by = \"linux\" }",
     "queue = { kind = \"codel\", by = \"linux\", interval = \"50ms\" }", H),
    (QUEUE, "update", Spot::Path, "queue = { kind = \"pie\", by = \"linux\" }",
     "queue = { kind = \"pie\", by = \"linux\", update = \"30ms\" }", H),
    (QUEUE, "alpha", Spot::Path, "queue = { kind = \"pie\", by = \"linux\" }",
     "queue = { kind = \"pie\", by = \"linux\", alpha = 0.5 }", H),
    (QUEUE, "beta", Spot::Path, "queue = { kind = \"pie\", by = \"linux\" }",
     "queue = { kind = \"pie\", by = \"linux\", beta = 2.5 }", H),
    (QUEUE, "max_burst", Spot::Path, "", "queue = { kind = \"pie\", by = \"linux\", max_burst = \"50ms\" }", R),
    (QUEUE, "mark_until", Spot::Path, "",
     "queue = { kind = \"pie\", by = \"linux\", ecn = true, mark_until = 0.5 }", R),
    (QUEUE, "flows", Spot::Path, "queue = { kind = \"fq-codel\", by = \"linux\" }",
     "queue = { kind = \"fq-codel\", by = \"linux\", flows = 16 }", H),
    (QUEUE, "quantum", Spot::Path, "queue = { kind = \"fq-codel\", by = \"linux\" }",
     "queue = { kind = \"fq-codel\", by = \"linux\", quantum = 300 }", H),
    (LOSS, "model", Spot::Path, "",
     "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2 }", H),
    (LOSS, "probability", Spot::Path, "loss = { model = \"bernoulli\", probability = 0.1 }",
     "loss = { model = \"bernoulli\", probability = 0.2 }", H),
    (LOSS, "to_bad", Spot::Path, "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2 }",
     "loss = { model = \"gilbert-elliott\", to_bad = 0.02, to_good = 0.2 }", H),
    (LOSS, "to_good", Spot::Path, "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2 }",
     "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.3 }", H),
    (LOSS, "good", Spot::Path, "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2 }",
     "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2, good = 0.1 }", H),
    (LOSS, "bad", Spot::Path, "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2 }",
     "loss = { model = \"gilbert-elliott\", to_bad = 0.01, to_good = 0.2, bad = 0.9 }", H),
    ("`reorder` as a table", "probability", Spot::Path,
     "reorder = { probability = 0.01, extra = \"5ms\" }",
     "reorder = { probability = 0.02, extra = \"5ms\" }", H),
    ("`reorder` as a table", "extra", Spot::Path,
     "reorder = { probability = 0.01, extra = \"5ms\" }",
     "reorder = { probability = 0.01, extra = \"6ms\" }", H),
    ("`policer` as a table", "rate", Spot::Path,
     "policer = { rate = \"5Mbit/s\", burst = \"100kB\" }",
     "policer = { rate = \"6Mbit/s\", burst = \"100kB\" }", H),
    ("`policer` as a table", "burst", Spot::Path,
     "policer = { rate = \"5Mbit/s\", burst = \"100kB\" }",
     "policer = { rate = \"5Mbit/s\", burst = \"200kB\" }", H),
    (SCHEDULE, "at", Spot::Path, "schedule = { at = \"1s\", rate = \"5Mbit/s\" }",
     "schedule = { at = \"2s\", rate = \"5Mbit/s\" }", H),
    (SCHEDULE, "rate", Spot::Path, "schedule = { at = \"1s\", rate = \"5Mbit/s\" }",
     "schedule = { at = \"1s\", rate = \"6Mbit/s\" }", H),
    (SCHEDULE, "outage", Spot::Path, "", "schedule = { at = \"1s\", outage = \"1s\" }", H),
    (SCHEDULE, "loss", Spot::Path, "", "schedule = { at = \"1s\", loss = 0.1 }", H),
    (SCHEDULE, "delay", Spot::Path, "", "schedule = { at = \"1s\", rtt = \"60ms\" }", H),
    (SCHEDULE, "rtt", Spot::Path, "", "schedule = { at = \"1s\", rtt = \"60ms\" }", H),
    ("`schedule.loss` as a table", "*", Spot::Path, "",
     "schedule = { at = \"1s\", loss = { model = \"bernoulli\", probability = 0.1 } }", H),
    (FLOW, "streams", Spot::Flow, "", "streams = 2", H),
    (FLOW, "direction", Spot::Flow, "", "direction = \"reverse\"", H),
    (FLOW, "start_spread", Spot::Flow, "", "start_spread = \"100ms\"", H),
    (FLOW, "rtt_spread", Spot::Flow, "streams = 2", "streams = 2\nrtt_spread = \"10ms\"", H),
    (FLOW, "enabled", Spot::Flow, OTHER_FLOW, OFF_FLOW, H),
    (FLOW, "start", Spot::Flow, "", "start = \"1s\"", H),
    (FLOW, "stop", Spot::Flow, "", "stop = \"3s\"", H),
    (FLOW, "size", Spot::Flow, "", "size = \"1MB\"", H),
    (FLOW, "rate", Spot::Flow, "", "rate = \"5Mbit/s\"", H),
    (FLOW, "drop", Spot::Flow, "", "drop = { segment = 40 }", H),
    (FLOW, "change", Spot::Flow, "", "change = { at = \"2s\", window = \"9 segments\" }", R),
    (FLOW, "stack", Spot::Flow, "", "stack = \"highspeed+limited\"", R),
    (FLOW, "preset", Spot::Flow, "", "preset = \"2026\"", W),
    (FLOW, "window", Spot::Flow, "", "window = \"30 segments\"", H),
    (FLOW, "receive_window", Spot::Flow, "", "receive_window = \"30 segments\"", H),
    (FLOW, "initial_window", Spot::Flow, "", "initial_window = \"2 segments\"", H),
    (FLOW, "delayed_ack", Spot::Flow, "", "delayed_ack = false", H),
    (FLOW, "rtt", Spot::Flow, "", "rtt = \"160ms\"", H),
    (FLOW, "recovery", Spot::Flow, "", "recovery = \"newreno\"", H),
    (FLOW, "recovery", Spot::Flow, "", "recovery = \"sack\"", H),
    (FLOW, "tlp", Spot::Flow, "", "tlp = false", H),
    (FLOW, "frto", Spot::Flow, "", "frto = false", H),
    (FLOW, "min_rto", Spot::Flow, "", "min_rto = \"1s\"", H),
    (FLOW, "pacing", Spot::Flow, "", "pacing = true", H),
    (FLOW, "validation", Spot::Flow, "", "validation = \"none\"", H),
    (FLOW, "validation", Spot::Flow, "", "validation = \"rfc7661\"", R),
    (FLOW, "validation", Spot::Flow, "", "validation = \"rfc5681\"", R),
    (FLOW, "ecn", Spot::Flow, "", "ecn = true", H),
    (FLOW, "ecn_echo", Spot::Flow, "ecn = true", "ecn = true\necn_echo = \"rfc8257\"", H),
    (FLOW, "sendstall", Spot::Flow, "nic_rate = \"1Gbit/s\"",
     "nic_rate = \"1Gbit/s\"\nsendstall = \"ignore\"", H),
    (FLOW, "sendstall", Spot::Flow, "nic_rate = \"1Gbit/s\"",
     "nic_rate = \"1Gbit/s\"\nsendstall = \"exit-slow-start\"", R),
    (FLOW, "nic_rate", Spot::Flow, "", "nic_rate = \"1Gbit/s\"", H),
    (FLOW, "txqueuelen", Spot::Flow, "", "txqueuelen = 7", H),
    (FLOW, "tsq", Spot::Flow, "nic_rate = \"1Gbit/s\"", "nic_rate = \"1Gbit/s\"\ntsq = false", H),
    (FLOW, "timestamps", Spot::Flow, "", "timestamps = false", H),
    (FLOW, "handshake_ack", Spot::Flow, "", "handshake_ack = false", R),
    (FLOW, "first_window", Spot::Flow, "", "first_window = \"9 segments\"", R),
    (FLOW, "receiver", Spot::Flow, "", "receiver = \"linux-2.4\"", H),
    (FLOW, "merge_acks", Spot::Flow, "", "merge_acks = false", H),
    (FLOW, "mtu", Spot::Flow, "", "mtu = 576", H),
    (FLOW, "host", Spot::Flow, TWO_HOSTS, ONE_HOST, H),
    (CHANGE, "at", Spot::Flow, "", "change = { at = \"2s\", stack = \"reno\" }", R),
    (CHANGE, "set", Spot::Flow, "", "change = { at = \"2s\", set = { beta = 600 } }", R),
    (CHANGE, "stack", Spot::Flow, "", "change = { at = \"2s\", stack = \"reno\" }", R),
    (CHANGE, "window", Spot::Flow, "", "change = { at = \"2s\", window = \"9 segments\" }", R),
    (CHANGE, "rate", Spot::Flow, "", "change = { at = \"2s\", rate = \"5Mbit/s\" }", R),
    (DROP, "segment", Spot::Flow, "", "drop = { segment = 40 }", H),
    (DROP, "at_cwnd", Spot::Flow, "", "drop = { at_cwnd = 32 }", H),
    (DROP, "every", Spot::Flow, "", "drop = { every = 100 }", H),
    (DROP, "probability", Spot::Flow, "", "drop = { probability = 0.01 }", H),
    (DROP, "time", Spot::Flow, "", "drop = { time = \"2s\" }", H),
    (DROP, "where", Spot::Flow, "drop = { segment = 40 }",
     "drop = { segment = 40, where = \"receiver\" }", H),
    (DROP, "where", Spot::Flow, "", "drop = { segment = 40, where = \"sender\" }", R),
    (TRAFFIC, "enabled", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\nenabled = false\n"), H),
    (TRAFFIC, "direction", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\ndirection = \"reverse\"\n"), H),
    (TRAFFIC, "start", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\nstart = \"1s\"\n"), H),
    (TRAFFIC, "stop", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\nstop = \"1s\"\n"), H),
    (TRAFFIC, "size", Spot::End, web!("size = \"10kB\"\nevery = \"1s\"\n"),
     web!("size = \"20kB\"\nevery = \"1s\"\n"), H),
    (TRAFFIC, "load", Spot::End, web!("size = \"10kB\"\nload = 0.1\n"),
     web!("size = \"10kB\"\nload = 0.2\n"), H),
    (TRAFFIC, "per_second", Spot::End, web!("size = \"10kB\"\nper_second = 5\n"),
     web!("size = \"10kB\"\nper_second = 6\n"), H),
    (TRAFFIC, "every", Spot::End, web!("size = \"10kB\"\nevery = \"1s\"\n"),
     web!("size = \"10kB\"\nevery = \"2s\"\n"), H),
    (TRAFFIC, "count", Spot::End, web!("size = \"10kB\"\ncount = 5\n"),
     web!("size = \"10kB\"\ncount = 6\n"), H),
    (TRAFFIC, "within", Spot::End, web!("size = \"10kB\"\ncount = 5\n"),
     web!("size = \"10kB\"\ncount = 5\nwithin = \"1s\"\n"), H),
    (TRAFFIC, "exchanges", Spot::End, web!("size = \"10kB\"\nevery = \"1s\"\n"),
     web!("size = \"10kB\"\nevery = \"1s\"\nexchanges = 5\n"), R),
    (TRAFFIC, "think", Spot::End, web!("size = \"10kB\"\nevery = \"1s\"\n"),
     web!("size = \"10kB\"\nevery = \"1s\"\nthink = \"1s\"\n"), R),
    (TRAFFIC, "paired_with", Spot::End,
     concat!(web!("size = \"10kB\"\nper_second = 5\n"), camp!("")),
     concat!(web!("size = \"10kB\"\nper_second = 5\n"), camp!("paired_with = \"web\"\n")), H),
    (TRAFFIC, "rate", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"2Mbit/s\"\n"), H),
    (TRAFFIC, "on", Spot::End,
     datagrams!("udp-on-off", "rate = \"1Mbit/s\"\non = \"1s\"\noff = \"1s\"\n"),
     datagrams!("udp-on-off", "rate = \"1Mbit/s\"\non = \"500ms\"\noff = \"1s\"\n"), H),
    (TRAFFIC, "off", Spot::End,
     datagrams!("udp-on-off", "rate = \"1Mbit/s\"\non = \"1s\"\noff = \"1s\"\n"),
     datagrams!("udp-on-off", "rate = \"1Mbit/s\"\non = \"1s\"\noff = \"500ms\"\n"), H),
    (TRAFFIC, "mean", Spot::End, datagrams!("udp-sine",
     "mean = \"2Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"2s\"\n"), datagrams!("udp-sine",
     "mean = \"3Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"2s\"\n"), H),
    (TRAFFIC, "amplitude", Spot::End, datagrams!("udp-sine",
     "mean = \"2Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"2s\"\n"), datagrams!("udp-sine",
     "mean = \"2Mbit/s\"\namplitude = \"2Mbit/s\"\nperiod = \"2s\"\n"), H),
    (TRAFFIC, "period", Spot::End, datagrams!("udp-sine",
     "mean = \"2Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"2s\"\n"), datagrams!("udp-sine",
     "mean = \"2Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"3s\"\n"), H),
    (TRAFFIC, "volume", Spot::End, datagrams!("udp-blast", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp-blast", "rate = \"1Mbit/s\"\nvolume = \"100kB\"\n"), H),
    (TRAFFIC, "from", Spot::End, datagrams!("udp-staircase",
     "from = \"1Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"),
     datagrams!("udp-staircase",
     "from = \"2Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"), H),
    (TRAFFIC, "to", Spot::End, datagrams!("udp-staircase",
     "from = \"1Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"),
     datagrams!("udp-staircase",
     "from = \"1Mbit/s\"\nto = \"3Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"), H),
    (TRAFFIC, "step", Spot::End, datagrams!("udp-staircase",
     "from = \"1Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"),
     datagrams!("udp-staircase",
     "from = \"1Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"2Mbit/s\"\nevery = \"1s\"\n"), H),
    (TRAFFIC, "file", Spot::End, "", datagrams!("udp-file", "file = \"RATES\"\n"), H),
    (TRAFFIC, "packet", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\npacket = 200\n"), H),
    (TRAFFIC, "spacing", Spot::End, datagrams!("udp", "rate = \"1Mbit/s\"\n"),
     datagrams!("udp", "rate = \"1Mbit/s\"\nspacing = \"poisson\"\n"), H),
    (TRAFFIC, "interval", Spot::End, datagrams!("ping", ""),
     datagrams!("ping", "interval = \"1s\"\n"), H),
    (SIZE, "uniform", Spot::End, web!("size = \"10kB\"\nevery = \"100ms\"\n"),
     web!("size = { uniform = [2, 30] }\nevery = \"100ms\"\n"), H),
    (SIZE, "pareto", Spot::End, web!("size = \"10kB\"\nevery = \"100ms\"\n"),
     web!("size = { pareto = { mean = \"9 segments\", shape = 1.2 } }\nevery = \"100ms\"\n"), H),
    (SIZE, "file", Spot::End, web!("size = \"10kB\"\nevery = \"100ms\"\n"),
     web!("size = { file = \"SIZES\" }\nevery = \"100ms\"\n"), H),
    (PARETO, "mean", Spot::End,
     web!("size = { pareto = { mean = \"9 segments\", shape = 1.2 } }\nevery = \"100ms\"\n"),
     web!("size = { pareto = { mean = \"90 segments\", shape = 1.2 } }\nevery = \"100ms\"\n"), H),
    (PARETO, "shape", Spot::End,
     web!("size = { pareto = { mean = \"90 segments\", shape = 1.2 } }\nevery = \"100ms\"\n"),
     web!("size = { pareto = { mean = \"90 segments\", shape = 2.2 } }\nevery = \"100ms\"\n"), H),
    (PARETO, "most", Spot::End,
     web!("size = { pareto = { mean = \"90 segments\", shape = 1.2 } }\nevery = \"5ms\"\n"),
     web!("size = { pareto = { mean = \"90 segments\", shape = 1.2, most = \"900 segments\" } }\n\
           every = \"5ms\"\n"), H),
    (LINK, "rate", Spot::End, second_link!(""), second_link!("rate = \"1Mbit/s\"\n"), H),
    (LINK, "delay", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\ndelay = \"5ms\"\n"), H),
    (LINK, "buffer", Spot::End, second_link!("rate = \"1Mbit/s\"\ndelay = \"5ms\"\n"),
     second_link!("rate = \"1Mbit/s\"\ndelay = \"5ms\"\nbuffer = \"9 packets\"\n"), H),
    (LINK, "queue", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\nqueue = { kind = \"codel\", by = \"linux\" }\n"), H),
    (LINK, "loss", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\nloss = 0.1\n"), H),
    (LINK, "loss_of_acks", Spot::End, second_link!("rate = \"1Mbit/s\"\nloss = 0.1\n"),
     second_link!("rate = \"1Mbit/s\"\nloss = 0.1\nloss_of_acks = true\n"), H),
    (LINK, "jitter", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\njitter = \"1ms\"\n"), H),
    (LINK, "reorder", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\nreorder = { probability = 0.1, extra = \"1ms\" }\n"), H),
    (LINK, "policer", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\npolicer = { rate = \"1Mbit/s\", burst = \"9kB\" }\n"), H),
    (LINK, "trace", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("trace = \"TRACE\"\n"), H),
    (LINK, "schedule", Spot::End, second_link!("rate = \"1Mbit/s\"\n"),
     second_link!("rate = \"1Mbit/s\"\nschedule = { at = \"1s\", delay = \"9ms\" }\n"), H),
    ("`[[route]]`", "flow", Spot::End, "", second_link!(""), H),
    ("`[[route]]`", "forward", Spot::End, "", second_link!(""), H),
    ("`[[route]]`", "back", Spot::End, "[[link]]\nname = \"l\"\nrate = \"9Mbit/s\"\ndelay = \"9ms\"\n[[route]]\n\
     flow = \"main\"\nforward = \"l\"\n", "[[link]]\nname = \"l\"\nrate = \"9Mbit/s\"\ndelay = \"9ms\"\n[[route]]\n\
     flow = \"main\"\nforward = \"l\"\nback = \"l\"\n", H),
    ("`[measure]`", "interval", Spot::End, "", "[measure]\ninterval = \"1s\"\n", H),
    ("`[measure]`", "warmup", Spot::End, "", "[measure]\nwarmup = \"1s\"\n", H),
    ("`[measure]`", "trace", Spot::End, "", "[measure]\ntrace = \"full\"\n", H),
];

const OTHER_FLOW: &str = "[[flow]]\nname = \"b\"\nstack = \"reno\"\npreset = \"linux\"\n";
const OFF_FLOW: &str =
    "[[flow]]\nname = \"b\"\nstack = \"reno\"\npreset = \"linux\"\nenabled = false\n";
const TWO_HOSTS: &str = "nic_rate = \"1Gbit/s\"\n\
    [[flow]]\nname = \"b\"\nstack = \"reno\"\npreset = \"linux\"\nnic_rate = \"1Gbit/s\"\n";
const ONE_HOST: &str = "host = \"h\"\nnic_rate = \"1Gbit/s\"\n\
    [[flow]]\nname = \"b\"\nstack = \"reno\"\npreset = \"linux\"\nhost = \"h\"\n";

/// Keys of the documentation, `section` and key, with their values and the example.
fn documented() -> BTreeMap<(String, String), (String, String)> {
    let text = include_str!("../../../../docs/scenario.md");
    let mut section = String::new();
    let mut keys = BTreeMap::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            section = heading.to_owned();
        } else if let Some((key, rest)) = line.strip_prefix("| `").and_then(|l| l.split_once("` |"))
        {
            let not_ours = NOT_OF_A_RUN
                .iter()
                .any(|(s, keys)| *s == section && keys.split(' ').any(|k| k == key || k == "*"));
            // The table of units is no table of keys.
            if !not_ours && section != "Quantities" {
                let cells: Vec<&str> = rest.split('|').collect();
                let cells = (cells[0].to_owned(), cells[2].to_owned());
                keys.insert((section.clone(), key.to_owned()), cells);
            }
        }
    }
    keys
}

/// Values of a switch: what its cells have in backquotes, that is words, true and false, and the
/// example.
fn values(words: &str, example: &str) -> BTreeSet<String> {
    let quoted = [words, example].map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.into_iter().flatten().map(str::to_owned).collect()
}

/// The file with these lines in their spot; a line of the base gives way to one of the same key.
fn file(spot: Spot, lines: &str) -> String {
    let has = |key: &str| lines.lines().any(|l| l.split(' ').next() == Some(key));
    let base = |lines: &[(&str, &str)], here: bool| -> String {
        let kept = lines.iter().filter(|(key, _)| !(here && has(key)));
        kept.map(|(key, value)| format!("{key} = {value}\n"))
            .collect()
    };
    let at = |here: Spot| match std::mem::discriminant(&here) == std::mem::discriminant(&spot) {
        true => format!("{lines}\n"),
        false => String::new(),
    };
    let top = base(
        &[("name", "\"a\""), ("duration", "\"5s\"")],
        matches!(spot, Spot::Top),
    );
    let path = base(
        &[("rate", "\"10Mbit/s\""), ("rtt", "\"40ms\"")],
        matches!(spot, Spot::Path),
    );
    // A second flow's lines may follow: only those of the first table are its own.
    let own = !lines.starts_with("[[");
    let flow = base(
        &[
            ("name", "\"main\""),
            ("stack", "\"cubic-linux\""),
            ("preset", "\"linux\""),
        ],
        matches!(spot, Spot::Flow) && own && !lines.contains("[["),
    );
    format!(
        "{top}{}[path]\n{path}{}[[flow]]\n{flow}{}{}",
        at(Spot::Top),
        at(Spot::Path),
        at(Spot::Flow),
        at(Spot::End)
    )
}

/// What a file comes to: everything the guest is given, with the warnings, or the refused key.
fn result(text: &str, origin: &str) -> (Result<String, String>, Vec<String>) {
    let scenario = match Scenario::parse(text, origin, &Overrides::default()) {
        Ok(scenario) => scenario,
        // A row that is no scenario: shown with the others that are wrong.
        Err(error) => return (Err(error.to_string()), Vec::new()),
    };
    let spec = scenario.cases[0].run_spec(1);
    let kernel = Kernel {
        hz: Some(250),
        bbr: Some(1),
        module: None,
    };
    let notes = super::notes(&spec);
    let result = match plan(&spec, &Traffic::of(&spec), kernel) {
        Ok(plan) => Ok(format!("{plan:?}")),
        Err(LinuxError::Unable { key, .. }) => Err(key),
        Err(other) => panic!("{text}\n{other}"),
    };
    (result, notes)
}

/// `` `drop` as a table `` is `drop`.
fn table(section: &str) -> &str {
    section.split('`').nth(1).unwrap_or(section)
}

#[test]
fn no_key_is_silently_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    put("TRACE", "1\n5\n9\n");
    put("RATES", "0,1Mbit/s\n1,2Mbit/s\n");
    put("SIZES", "2,0.5\n20,1\n");
    let origin = dir.path().join("a.toml").display().to_string();
    let mut wrong = Vec::new();
    for (section, key, spot, without, with, fate) in ROWS {
        let (before, _) = result(&file(*spot, without), &origin);
        let (after, notes) = result(&file(*spot, with), &origin);
        let noted = notes.iter().any(|n| n.contains(&format!("`{key}")));
        let found = match (&before, &after) {
            (_, Err(refused)) if refused.ends_with(&format!(".{key}")) => Some(R),
            // The table that holds the key.
            (_, Err(refused)) if refused.ends_with(&format!(".{}", table(section))) => Some(R),
            // By the reader of scenarios.
            (_, Err(refused)) if refused.contains(&format!(".{key} = ")) => Some(R),
            (Ok(_), Ok(_)) if noted => Some(W),
            (Ok(before), Ok(after)) if before != after => Some(H),
            _ => None,
        };
        if found != Some(*fate) {
            let after = after.map_or_else(|key| key, |_| "a plan".to_owned());
            wrong.push(format!(
                "{section} `{key}`: {found:?} for {fate:?}: {after}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A switch of a flow that has no row: the kernel has it at one value and is told of none, so any
/// other one is refused by its name, whatever the preset has.
#[test]
fn a_switch_without_a_row_is_refused() {
    let mut tried = 0;
    for ((section, key), (words, example)) in documented() {
        if section != FLOW || ROWS.iter().any(|(s, k, ..)| *s == FLOW && *k == key) {
            continue;
        }
        let taken = ["linux", "2026", "2003"].map(|preset| {
            let file = |line: &str| file(Spot::Flow, &format!("preset = {preset:?}\n{line}"));
            let (own, _) = result(&file(""), "a.toml");
            let taken = |value: &String| {
                let (result, _) = result(&file(&format!("{key} = {value}")), "a.toml");
                tried += 1;
                match result {
                    Err(refused) => {
                        assert_eq!(refused, format!("main.{key}"), "{value} of {preset}");
                        false
                    }
                    plan => {
                        assert_eq!(plan, own, "`{key} = {value}` needs a row");
                        true
                    }
                }
            };
            let all = values(&words, &example);
            let some = all.len();
            let taken: Vec<String> = all.into_iter().filter(taken).collect();
            assert!(
                taken.len() < some && taken.len() < 2,
                "`{key}` is ignored at {taken:?}"
            );
            taken
        });
        assert!(taken.iter().all(|t| *t == taken[0]), "{key}: {taken:?}");
    }
    assert!(tried > 150, "{tried}");
}

#[test]
fn every_documented_key_is_tried() {
    let documented = documented();
    let rows = |(s, k): &&(String, String)| {
        ROWS.iter()
            .any(|(section, key, ..)| s == section && (k == key || *key == "*"))
    };
    // Switches of a flow are tried without a row, too.
    let missing: Vec<_> = documented
        .keys()
        .filter(|key| key.0 != FLOW && !rows(key))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let known = |(s, k, ..): &&Row| {
        *k == "*" || documented.contains_key(&((*s).to_owned(), (*k).to_owned()))
    };
    let unknown: Vec<_> = ROWS.iter().filter(|row| !known(row)).collect();
    let unknown: Vec<_> = unknown.iter().map(|(s, k, ..)| (s, k)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
