//! What is wrong with a network or its traffic, and the exact messages.

use super::HEAD;
use fullpipe_scenario::{Overrides, Scenario};
use std::fmt::Write as _;

/// Title, and what stands behind `[path]` with rate and rtt.
const WRONG: &[(&str, &str)] = &[
    (
        "a kind without its key",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\n",
    ),
    (
        "a key of another kind",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\namplitude = \"1Mbit/s\"\n",
    ),
    (
        "a transport's key of datagrams",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\nwindow = \"1MB\"\n",
    ),
    ("traffic without a name", "[[traffic]]\nkind = \"ping\"\n"),
    ("traffic without a kind", "[[traffic]]\nname = \"t\"\n"),
    (
        "traffic named as a flow",
        "[[flow]]\nstack = \"reno\"\n[[traffic]]\nname = \"main\"\nkind = \"ping\"\n",
    ),
    (
        "an amplitude above the mean",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-sine\"\nmean = \"1Mbit/s\"\namplitude = \"2Mbit/s\"\nperiod = \"1s\"\n",
    ),
    (
        "a staircase without stairs",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-staircase\"\nfrom = \"1Mbit/s\"\nto = \"2Mbit/s\"\nstep = \"5Mbit/s\"\nevery = \"1s\"\n",
    ),
    (
        "a period shorter than its staircase",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-staircase\"\nfrom = \"1Mbit/s\"\nto = \"2Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\nperiod = \"1s\"\n",
    ),
    (
        "a file that is not there",
        "[[traffic]]\nname = \"t\"\nkind = \"udp-file\"\nfile = \"no-such-file.csv\"\n",
    ),
    (
        "short flows without a number",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\n",
    ),
    (
        "short flows with two numbers",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\ncount = 5\n",
    ),
    (
        "short flows without a stack and a size",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nload = \"10%\"\n",
    ),
    (
        "no load at all",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = 0\n",
    ),
    (
        "a law of sizes in parts",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { uniform = [0.5, 2] }\nload = \"10%\"\n",
    ),
    (
        "two laws of sizes",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { uniform = [1, 2], file = \"x\" }\nload = \"10%\"\n",
    ),
    (
        "a Pareto law without a mean",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = { pareto = { shape = 1.2 } }\nload = \"10%\"\n",
    ),
    (
        "more flows than a machine holds",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nper_second = 1e6\n",
    ),
    (
        "a session of less than one transfer",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\nexchanges = 0.5\n",
    ),
    (
        "a think time that nothing follows",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\nthink = \"1s\"\n",
    ),
    (
        "sessions of datagrams",
        "[[traffic]]\nname = \"t\"\nkind = \"udp\"\nrate = \"1Mbit/s\"\nexchanges = 5\n",
    ),
    (
        "more sessions than a machine holds",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nper_second = 1e4\nexchanges = 100\n",
    ),
    (
        "paired with nobody",
        "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"u\"\n",
    ),
    (
        "paired with a name that is none",
        "[[traffic]]\nname = \"camp-a\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\n[[traffic]]\nname = \"camp-b\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"camp-aa\"\n",
    ),
    (
        "paired with itself",
        "[[traffic]]\nname = \"camp-a\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\n[[traffic]]\nname = \"camp-b\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"camp-b\"\n",
    ),
    (
        "a chain of pairs",
        "[[traffic]]\nname = \"a\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\n[[traffic]]\nname = \"b\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"a\"\n[[traffic]]\nname = \"c\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"b\"\n",
    ),
    (
        "paired both ways",
        "[[traffic]]\nname = \"a\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"b\"\n[[traffic]]\nname = \"b\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"a\"\n",
    ),
    (
        "paired with probes",
        "[[traffic]]\nname = \"p\"\nkind = \"ping\"\n[[traffic]]\nname = \"b\"\nkind = \"short-flows\"\nstack = \"cubic\"\nsize = \"1 segment\"\nload = \"10%\"\npaired_with = \"p\"\n",
    ),
    (
        "a probe in segments",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nsize = \"1 segment\"\n",
    ),
    (
        "a probe larger than the mtu",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nsize = \"1500B\"\n",
    ),
    (
        "traffic after the end",
        "[[traffic]]\nname = \"t\"\nkind = \"ping\"\nstart = \"60s\"\n",
    ),
    (
        "an unknown queue in a table",
        "queue = { kind = \"blue\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a queue without a kind",
        "queue = { ecn = true }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a parameter of another queue",
        "queue = { kind = \"codel\", min = \"5 packets\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a parameter of a plain queue",
        "queue = { kind = \"droptail\", ecn = true }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "thresholds in the wrong order",
        "queue = { kind = \"red\", min = \"20 packets\", max = \"10 packets\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a threshold without end",
        "queue = { kind = \"red\", min = \"unlimited\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "marking that is off",
        "queue = { kind = \"pie\", mark_until = 0.2 }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "gentle RED by the kernel",
        "queue = { kind = \"red\", by = \"linux\", gentle = true }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "what ns-2 is not asked for",
        "queue = { kind = \"pie\", by = \"ns-2\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "what the kernel has no switch for",
        "queue = { kind = \"pie\", by = \"linux\", max_burst = \"1s\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a queue by nobody",
        "queue = { kind = \"codel\", by = \"bsd\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "reordering by nothing",
        "reorder = { probability = 0.1 }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a bucket below one packet",
        "policer = { rate = \"1Mbit/s\", burst = \"100B\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an empty change",
        "schedule = { at = \"1s\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "changes out of order",
        "schedule = [{ at = \"2s\", rate = \"1Mbit/s\" }, { at = \"1s\", rate = \"2Mbit/s\" }]\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a rate in an outage",
        "schedule = [{ at = \"1s\", outage = \"5s\" }, { at = \"2s\", rate = \"2Mbit/s\" }]\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an outage with a rate",
        "schedule = { at = \"1s\", outage = \"5s\", rate = \"1Mbit/s\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a trace that is not there",
        "trace = \"no-such-file\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a return buffer below one packet",
        "return_rate = \"1kbit/s\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "an mtu above that of the path",
        "[[flow]]\nstack = \"reno\"\nmtu = 9000\n",
    ),
    (
        "a train below two segments",
        "[[flow]]\nstack = \"reno\"\ntso = \"2kB\"\n",
    ),
    (
        "a host on both sides",
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 5\n[[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\ndirection = \"reverse\"\n",
    ),
    (
        "a host with two queues",
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 5\n[[flow]]\nname = \"b\"\nstack = \"reno\"\nhost = \"h\"\ntxqueuelen = 6\n",
    ),
    (
        "a start after the end",
        "[[flow]]\nstack = \"reno\"\nstart_spread = \"2min\"\n",
    ),
    (
        "links without routes",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\n",
    ),
    (
        "an unknown link",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"left\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"lft\"]\n",
    ),
    (
        "an unknown flow of a route",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"left\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"man\"\nforward = [\"left\"]\n",
    ),
    (
        "a link twice in a route",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\", \"l\"]\n",
    ),
    (
        "two routes of a flow",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a route of pure delays",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\ndelay = \"1ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a route in reverse",
        "[[flow]]\nstack = \"reno\"\ndirection = \"reverse\"\n[[link]]\nname = \"l\"\nrate = \"1Mbit/s\"\ndelay = \"20ms\"\n[[route]]\nflow = \"main\"\nforward = [\"l\"]\n",
    ),
    (
        "a link called bottleneck",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"bottleneck\"\nrate = \"1Mbit/s\"\n[[route]]\nflow = \"main\"\nforward = [\"bottleneck\"]\n",
    ),
    (
        "a link called as an interface",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"nic-x\"\nrate = \"1Mbit/s\"\ndelay = \"5ms\"\n[[route]]\nflow = \"main\"\nforward = [\"nic-x\"]\n",
    ),
    (
        "more connections than a run has",
        "[[flow]]\nname = \"many\"\nstack = \"reno\"\nstreams = 100000\n[[flow]]\nname = \"other\"\nstack = \"reno\"\n",
    ),
    (
        "a queue without a rate",
        "[[flow]]\nstack = \"reno\"\n[[link]]\nname = \"l\"\ndelay = \"1ms\"\nqueue = \"red\"\n[[route]]\nflow = \"main\"\nforward = [\"bottleneck\", \"l\"]\n",
    ),
    (
        "a weight that the kernel cannot have",
        "queue = { kind = \"red\", max = \"6000 packets\", weight = 0.002, by = \"linux\" }\n[[flow]]\nstack = \"reno\"\n",
    ),
    (
        "a named axis without names",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\npath.mtu = 1500\n",
    ),
    (
        "a named axis that is called like a table of the file",
        "[[flow]]\nstack = \"reno\"\n[[matrix.path]]\nname = \"wide\"\npath.mtu = 9000\n",
    ),
    (
        "a named axis that is called like a key of the file",
        "[[flow]]\nstack = \"reno\"\n[[matrix.duration]]\nname = \"a\"\nduration = \"1s\"\n",
    ),
    (
        "axes that set the same",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\nname = \"a\"\npath.mtu = 1500\n[[matrix.second]]\nname = \"b\"\npath.mtu = 9000\n",
    ),
    (
        "quick: an unknown key",
        "[[flow]]\nstack = \"reno\"\n[quick]\npath.ratte = \"1Mbit/s\"\n",
    ),
    (
        "quick: an unknown name",
        "[[flow]]\nstack = \"reno\"\n[[matrix.first]]\nname = \"wide\"\npath.mtu = 1500\n[quick]\nfirst = [\"wid\"]\n",
    ),
    (
        "quick: a value twice",
        "[[flow]]\nstack = \"reno\"\n[matrix]\n\"path.mtu\" = [1500, 9000]\n[quick]\n\"path.mtu\" = [1500, 1500]\n",
    ),
    (
        "quick: a wrong value",
        "[[flow]]\nstack = \"reno\"\n[quick]\nduration = 5\n",
    ),
];

#[test]
fn wrong_networks() {
    let mut out = String::new();
    for (title, rest) in WRONG {
        let message =
            match Scenario::parse(&format!("{HEAD}{rest}"), "x.toml", &Overrides::default()) {
                Ok(_) => panic!("accepted: {title}"),
                Err(error) => error.to_string(),
            };
        writeln!(out, "# {title}\n{message}\n").unwrap();
    }
    insta::assert_snapshot!(out);
}
