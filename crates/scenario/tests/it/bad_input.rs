//! Wrong scenarios and their exact messages.

use std::fmt::Write as _;
use std::fs;

use fullpipe_scenario::{Overrides, Scenario};

/// A valid file; `%` stands for what a test adds to or changes in it.
const BASE: &[(&str, &str)] = &[
    ("top", "name = \"x\"\nduration = \"60s\"\n"),
    ("path", "[path]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\n"),
    ("flow", "[[flow]]\nstack = \"reno\"\n"),
];

/// The valid file with one part replaced, or something appended.
fn file(part: &str, text: &str) -> String {
    let mut file = String::new();
    for (name, base) in BASE {
        match part.split_once('+') {
            Some((to, "")) if to == *name => file.push_str(&format!("{base}{text}\n")),
            _ if part == *name => file.push_str(&format!("{text}\n")),
            _ => file.push_str(base),
        }
    }
    if part == "end" {
        file.push_str(text);
    }
    file
}

const MATRIX: &str =
    "[matrix]\n\"path.mtu\" = [1500, 9000]\n\"flow.main.stack\" = [\"reno\", \"highspeed\"]\n";

/// Title, part of the file, and what stands there.
const CASES: &[(&str, &str, &str)] = &[
    (
        "text: what a terminal would obey",
        "top",
        "name = \"x\"\nduration = \"60s\"\nabout = \"a tab\\t,\\r\\nlines and \\u001b[2J\"",
    ),
    (
        "text: what a terminal would obey, as a key and in a list",
        "end",
        "[matrix]\n\"path.\\u009b1m\" = [1]\n\"flow.main.stack\" = [\"reno\", \"re\\u0008no\"]",
    ),
    (
        "limits: more short flows than the path carries",
        "end",
        "[[traffic]]\nname = \"mice\"\nkind = \"short-flows\"\nstack = \"reno\"\nsize = \"10 segments\"\nper_second = 100000",
    ),
    (
        "limits: turned on and off every nanosecond",
        "end",
        "[[traffic]]\nname = \"u\"\nkind = \"udp-on-off\"\nrate = \"1Mbit/s\"\non = \"1ns\"\noff = \"0s\"",
    ),
    (
        "limits: an update every nanosecond",
        "path+",
        "queue = { kind = \"pie\", update = \"1ns\" }",
    ),
    (
        "follow-up: expectations of a misspelt matrix",
        "end",
        "[matrx]\n\"path.mtu\" = [1500, 9000]\n[[expect]]\nmetric = \"goodput_mbps\"\nwhere = { \"path.mtu\" = 1500 }\nratio_to = { \"path.mtu\" = 9000 }\nat_least = 0.4",
    ),
    (
        "follow-up: expectations of cases that another key breaks",
        "end",
        "[matrix]\n\"path.mtu\" = [1500, 9000]\n[measure]\nwarmup = \"five\"\n[[expect]]\nmetric = \"goodput_mbps\"\nwhere = { \"path.mtu\" = 1500 }\nratio_to = { \"path.mtu\" = 9000 }\nat_least = 0.4",
    ),
    (
        "matrix: the same fault in several cases, with other numbers",
        "end",
        "[matrix]\n\"path.rtt\" = [\"1us\", \"2us\", \"3us\"]",
    ),
    (
        "negative: nothing set, nothing said",
        "end",
        "[[negative]]\nset = {}",
    ),
    (
        "negative: a key that is none",
        "end",
        "[[negative]]\nabout = \"a\"\nset = { \"flow.main.stak\" = \"reno\" }",
    ),
    (
        "negative: a key that no case is made of",
        "end",
        "[[negative]]\nabout = \"a\"\nset = { seeds = 3 }",
    ),
    (
        "negative: a value that is none",
        "end",
        "[[negative]]\nabout = \"a\"\nset = { \"path.rate\" = \"fast\" }",
    ),
    (
        "baseline: no matrix",
        "end",
        "[measure]\nbaseline = { \"path.mtu\" = 1500 }",
    ),
    ("syntax: an open string", "top+", "about = \"open"),
    ("syntax: a key twice", "path+", "mtu = 1500\nmtu = 9000"),
    (
        "syntax: a value without quotes",
        "top+",
        "about = early loss",
    ),
    ("an empty file", "whole", ""),
    (
        "a name that leads out of the directory",
        "whole",
        "name = \"../x\"\nduration = \"60s\"\n[path]\nrate = \"1Mbit/s\"\nrtt = \"10ms\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    ("no duration", "top", "name = \"x\""),
    (
        "no name, no path",
        "whole",
        "duration = \"60s\"\n[[flow]]\nstack = \"reno\"\n",
    ),
    ("no flow", "flow", ""),
    ("no stack", "flow", "[[flow]]\nwindow = \"1MB\""),
    ("unknown key, a slip", "path+", "bufer = \"1BDP\""),
    (
        "unknown key, at home elsewhere",
        "top+",
        "rate = \"1Gbit/s\"",
    ),
    (
        "unknown key, at home in several tables",
        "top+",
        "preset = \"2003\"",
    ),
    ("unknown key, nothing near", "flow+", "xyzzy = 1"),
    (
        "unknown key, another word, not the nearest",
        "path+",
        "mss = 1400",
    ),
    ("a drop by packets", "flow+", "drop = { packet = 3 }"),
    (
        "a bare number that no unit would make fit",
        "flow+",
        "initial_window = 0",
    ),
    ("a bare window", "flow+", "window = 100"),
    (
        "a link of a path that is wrong",
        "path",
        "[path]\nrate = \"622Mbps\"\nrtt = \"80ms\"\n[[expect]]\nmetric = \"utilization\"\nat_least = 0.5",
    ),
    (
        "expect: an expression without a metric",
        "end",
        "[[expect]]\nmetric = \"1 + 1\"\nat_least = 0.5",
    ),
    (
        "expect: a divisor that is always zero",
        "end",
        "[[expect]]\nmetric = \"utilization / 0\"\nat_least = 0.5",
    ),
    (
        "report: an unknown metric",
        "end",
        "[[report]]\nfigure = \"metric\"\ny = \"inflation\"",
    ),
    ("unknown section", "end", "[mesure]\nwarmup = \"1s\""),
    (
        "a time without a unit",
        "path",
        "[path]\nrate = \"100Mbit/s\"\nrtt = \"80\"",
    ),
    (
        "a bare number for a time",
        "top",
        "name = \"x\"\nduration = 60",
    ),
    (
        "a bare number for a rate",
        "path",
        "[path]\nrate = 100\nrtt = \"80ms\"",
    ),
    (
        "bytes for bits",
        "path",
        "[path]\nrate = \"100MB/s\"\nrtt = \"80ms\"",
    ),
    (
        "a size for a time",
        "path",
        "[path]\nrate = \"100Mbit/s\"\nrtt = \"2MB\"",
    ),
    (
        "a misspelt unit",
        "path",
        "[path]\nrate = \"100Mbps\"\nrtt = \"80msec\"",
    ),
    ("a negative time", "flow+", "start = \"-1s\""),
    (
        "a time of zero",
        "path",
        "[path]\nrate = \"100Mbit/s\"\nrtt = \"0ms\"",
    ),
    (
        "a rate of zero",
        "path",
        "[path]\nrate = \"0bit/s\"\nrtt = \"80ms\"",
    ),
    (
        "a name that is a number",
        "top",
        "name = 5\nduration = \"60s\"",
    ),
    ("a queue with a stray letter", "path+", "queue = \"codell\""),
    ("an unknown queue", "path+", "queue = \"dropptail\""),
    ("an mtu below the smallest", "path+", "mtu = 20"),
    ("an mtu in quotes", "path+", "mtu = \"1500\""),
    ("a probability above one", "path+", "loss = 1.5"),
    (
        "a loss table without a model",
        "path+",
        "loss = { to_bad = 0.1 }",
    ),
    (
        "a loss table with keys of another model",
        "path+",
        "loss = { model = \"bernoulli\", probability = 0.1, bad = 1 }",
    ),
    ("a buffer below one packet", "path+", "buffer = \"100B\""),
    ("a bare number for no buffer", "path+", "buffer = 0"),
    (
        "a buffer of a tiny BDP",
        "path",
        "[path]\nrate = \"1kbit/s\"\nrtt = \"1ms\"",
    ),
    ("an unknown stack", "flow", "[[flow]]\nstack = \"highsped\""),
    (
        "an unknown parameter of a stack",
        "flow",
        "[[flow]]\nstack = \"aimd(increse=2)\"",
    ),
    (
        "a parameter out of range",
        "flow",
        "[[flow]]\nstack = \"aimd(decrease=2)\"",
    ),
    ("an unknown preset", "flow+", "preset = 2004"),
    ("no streams", "flow+", "streams = 0"),
    (
        "an initial window of 65 segments",
        "flow+",
        "initial_window = \"65 segments\"",
    ),
    (
        "an initial window without a unit",
        "flow+",
        "initial_window = 10",
    ),
    ("a window without a unit", "flow+", "window = \"3500\""),
    ("a window below a segment", "flow+", "window = \"100B\""),
    (
        "stop before start",
        "flow+",
        "start = \"10s\"\nstop = \"5s\"",
    ),
    ("start after the end", "flow+", "start = \"61s\""),
    ("a flow's rtt below the path's", "flow+", "rtt = \"10ms\""),
    (
        "delayed ACK off and every fourth",
        "flow+",
        "delayed_ack = false\nack_every = 4",
    ),
    ("a word where a switch is due", "flow+", "prr = \"on\""),
    ("an unknown recovery", "flow+", "recovery = \"sacks\""),
    (
        "a ceiling of a flow that is not paced",
        "flow+",
        "rate = \"1Gbit/s\"\npacing = false",
    ),
    (
        "a model that shall not pace",
        "flow",
        "[[flow]]\nstack = \"bbr-linux\"\npacing = false",
    ),
    (
        "a drop of nothing",
        "flow+",
        "drop = { where = \"sender\" }",
    ),
    (
        "a drop with an unknown key",
        "flow+",
        "drop = { segmnet = 40 }",
    ),
    (
        "a drop at a window, at the receiver",
        "flow+",
        "drop = { at_cwnd = 32, where = \"receiver\" }",
    ),
    (
        "a drop at a window that is never reached",
        "flow+",
        "window = \"100 segments\"\ndrop = { at_cwnd = 101 }",
    ),
    (
        "a drop after the transfer",
        "flow+",
        "size = \"100 segments\"\ndrop = { segment = [5, 100] }",
    ),
    (
        "a drop before the flow",
        "flow+",
        "start = \"5s\"\ndrop = { time = \"4.73s\" }",
    ),
    (
        "a drop set twice",
        "flow+",
        "drop = [{ every = 100 }, { every = 200 }]",
    ),
    (
        "an empty list of segments",
        "flow+",
        "drop = { segment = [] }",
    ),
    ("a size of nothing", "flow+", "size = \"0B\""),
    ("one [flow] table", "flow", "[flow]\nstack = \"reno\""),
    (
        "two flows without names",
        "flow",
        "[[flow]]\nstack = \"reno\"\n[[flow]]\nstack = \"cubic\"",
    ),
    (
        "two flows of one name",
        "flow",
        "[[flow]]\nname = \"a\"\nstack = \"reno\"\n[[flow]]\nname = \"a\"\nstack = \"reno\"",
    ),
    (
        "a flow name with a dot",
        "flow",
        "[[flow]]\nname = \"a.b\"\nstack = \"reno\"",
    ),
    ("cross traffic", "end", "[[traffic]]\nkind = \"udp-sine\""),
    ("links", "end", "[[link]]\nname = \"a\""),
    (
        "an unknown key in the matrix",
        "end",
        "[matrix]\n\"path.mut\" = [1500]",
    ),
    (
        "an unknown flow in the matrix",
        "end",
        "[matrix]\n\"flow.mian.stack\" = [\"reno\"]",
    ),
    (
        "an empty list in the matrix",
        "end",
        "[matrix]\n\"path.mtu\" = []",
    ),
    (
        "no list in the matrix",
        "end",
        "[matrix]\n\"path.mtu\" = 9000",
    ),
    (
        "a value twice in the matrix",
        "end",
        "[matrix]\n\"path.rtt\" = [\"80ms\", \"0.08s\"]",
    ),
    (
        "a bad value in the matrix",
        "end",
        "[matrix]\n\"path.rtt\" = [\"80ms\", 160]",
    ),
    (
        "a name in the matrix",
        "end",
        "[matrix]\nname = [\"a\", \"b\"]",
    ),
    (
        "a key and its flow twice in the matrix",
        "end",
        "[matrix]\n\"flow.main.stack\" = [\"reno\"]\n\"flow.*.stack\" = [\"reno\"]",
    ),
    (
        "settings below the wrong table",
        "end",
        "seeds = 2\n[matrix]\n\"path.mtu\" = [1,2]",
    ),
    (
        "more cases than anyone waits for",
        "end",
        "[matrix]\n\"flow.main.drop.segment\" = [0,1,2,3,4,5,6,7,8,9]\n\"flow.main.drop.every\" = [2,3,4,5,6,7,8,9,10,11]\n\"path.mtu\" = [68,69,70,71,72,73,74,75,76,77]\n\"flow.main.ack_every\" = [1,2,3,4,5,6,7,8,9,10]\n\"flow.main.streams\" = [1,2,3,4,5,6,7,8,9,10]\n\"duration\" = [\"1s\", \"2s\"]",
    ),
    (
        "more connections than fit",
        "flow+",
        "streams = 10000\n[matrix]\n\"flow.main.drop.segment\" = [0,1,2,3,4,5,6]\n\"flow.main.ack_every\" = [1,2,3,4]",
    ),
    (
        "a fault of some cases",
        "end",
        "[matrix]\n\"duration\" = [\"60s\", \"10s\"]\n\"flow.main.start\" = [\"0s\", \"20s\"]",
    ),
    (
        "a case without a name",
        "end",
        "[[matrix.case]]\npath.rtt = \"10ms\"",
    ),
    (
        "a case with a key twice",
        "end",
        "[[matrix.case]]\nname = \"a\"\nflow.stack = \"reno\"\nflow.main.stack = \"highspeed\"",
    ),
    (
        "two cases of one name",
        "end",
        "[[matrix.case]]\nname = \"a\"\n[[matrix.case]]\nname = \"a\"",
    ),
    (
        "a case with an unknown key",
        "end",
        "[[matrix.case]]\nname = \"a\"\npath.rtx = \"1ms\"",
    ),
    (
        "a case and a list for one key",
        "end",
        "[matrix]\n\"path.mtu\" = [1500]\n[[matrix.case]]\nname = \"a\"\npath.mtu = 9000",
    ),
    (
        "an expectation of an unknown case",
        "end",
        "[[matrix.case]]\nname = \"long\"\n[[expect]]\nmetric = \"drops\"\nwhere = { case = \"lnog\" }\nat_most = 1",
    ),
    ("no seeds", "top+", "seeds = 0"),
    ("a seed twice", "top+", "seeds = [1, 2, 1]"),
    (
        "a warm-up as long as the run",
        "end",
        "[measure]\nwarmup = \"60s\"",
    ),
    (
        "an interval longer than the run",
        "end",
        "[measure]\ninterval = \"2min\"",
    ),
    (
        "recovered at a part of no window",
        "end",
        "[measure]\nrecovered_at = { window = 1.0 }",
    ),
    (
        "recovered from a time behind the end",
        "end",
        "[measure]\nrecovered_at = { rate = 0.9, from = \"1h\" }",
    ),
    (
        "an unknown metric",
        "end",
        "[[expect]]\nmetric = \"goodput\"\nat_least = 1",
    ),
    (
        "an expectation without a bound",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"",
    ),
    (
        "an expectation for no part of the seeds",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 1\nholds_for = \"p99\"",
    ),
    (
        "an expectation with two bounds",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [1, 2]\nequals = 1\ntolerance = 1",
    ),
    (
        "bounds in the wrong order",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"\nwithin = [2, 1]",
    ),
    (
        "equal without a tolerance",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"\nequals = 2",
    ),
    (
        "an expectation of an unknown flow",
        "end",
        "[[expect]]\nmetric = \"goodput_mbps\"\nflow = \"mian\"\nat_least = 1",
    ),
    (
        "an expectation of an unknown link",
        "end",
        "[[expect]]\nmetric = \"drops\"\nlink = \"botleneck\"\nat_most = 1",
    ),
    (
        "fairness of one flow",
        "end",
        "[[expect]]\nmetric = \"jain\"\nat_least = 0.9",
    ),
    (
        "a flow for a metric of the case",
        "end",
        "[[expect]]\nmetric = \"jain\"\nflow = \"main\"\nat_least = 0.9",
    ),
    (
        "an expectation of a key that does not vary",
        "matrix",
        "[[expect]]\nmetric = \"drops\"\nwhere = { \"path.rtt\" = \"80ms\" }\nat_most = 1",
    ),
    (
        "an expectation of a value that does not occur",
        "matrix",
        "[[expect]]\nmetric = \"drops\"\nwhere = { \"flow.main.stack\" = \"highspeed(low_window=31)\" }\nat_most = 1",
    ),
    (
        "a metric over nothing",
        "matrix",
        "[[report]]\nfigure = \"metric\"\ny = \"goodput_mbps\"",
    ),
    (
        "a metric over nothing, without a matrix",
        "end",
        "[[report]]\nfigure = \"metric\"\ny = \"goodput_mbps\"",
    ),
    ("an unknown figure", "end", "[[report]]\nfigure = \"cwdn\""),
    (
        "more in flight than a machine holds",
        "path",
        "[path]\nrate = \"10Tbit/s\"\nrtt = \"1s\"",
    ),
    (
        "a full trace of a long run",
        "whole",
        "name = \"x\"\nduration = \"24h\"\n[path]\nrate = \"100Gbit/s\"\nrtt = \"1ms\"\n[[flow]]\nstack = \"reno\"\n[measure]\ntrace = \"full\"",
    ),
    (
        "many things at once, in the order of the lines",
        "whole",
        "name = \"x\"\nduration = \"60\"\nsede = 1\n[path]\nrate = \"100Mbit\"\nrtt = \"80ms\"\nmtu = 0\n[[flow]]\nname = \"a\"\nstack = \"renno\"\nwindow = 5\n[[expect]]\nmetric = \"jian\"\nat_least = 1",
    ),
    (
        "units: what follows from a rate that cannot be read is no fault of its own",
        "path",
        "[[link]]\nname = \"l\"\nrate = \"10Mb\"\ndelay = \"1ms\"\nbuffer = \"1BDP\"\n\
         [[route]]\nflow = \"main\"\nforward = \"l\"\n",
    ),
    (
        "expectations: words of other tools",
        "end",
        "[[expect]]\nlabel = \"l\"\nmetric = \"goodput_mbps\"\nof = \"main\"\nmin = 1\n",
    ),
    (
        "top: a description",
        "top",
        "name = \"x\"\nduration = \"60s\"\ndescription = \"a text\"",
    ),
];

/// `--set` arguments that are wrong for the valid file with a matrix.
const SETTINGS: &[(&str, &str)] = &[
    ("path.rat", "1Gbit/s"),
    ("path.rtt", "80"),
    ("path", "x"),
    ("flow", "x"),
    ("flow.other.stack", "reno"),
    ("flow.main.stack", "renoo"),
    ("flow.main.name", "other"),
    ("matrix.path.mtu", "1"),
    ("expect", "[]"),
    ("path.mtu", "sixty"),
    ("seeds", "many"),
    ("path.mtu", "67"),
    ("measure.warmup", "2min"),
    ("", "1"),
    ("path.delay", "20ms"),
    ("path.queue", "{kind=\"codel\",limit=1000}"),
    ("path.loss", "101%"),
    ("path.reorder", "{probability=0.01,delay=\"5ms\"}"),
    ("seeds", "1.5"),
    ("flow.main.size", "0"),
    ("flow.main.pto", "true"),
    ("flow.main.reo_wnd", "3"),
];

/// The list of all stacks grows with every algorithm, and so would the snapshots.
fn without_registry(text: &str) -> String {
    let all: Vec<&str> = fullpipe_cc::registry::entries()
        .map(|entry| entry.name)
        .collect();
    text.replace(&all.join(", "), "(all stack components)")
}

#[test]
fn wrong_scenarios() {
    let mut out = String::new();
    for (title, part, text) in CASES {
        let file = match *part {
            "whole" => (*text).to_owned(),
            "matrix" => file("end", &format!("{MATRIX}{text}")),
            _ => file(part, text),
        };
        let message = match Scenario::parse(&file, "x.toml", &Overrides::default()) {
            Ok(_) => panic!("accepted: {title}"),
            Err(error) => error.to_string(),
        };
        writeln!(out, "# {title}\n{message}\n").unwrap();
    }
    assert!(CASES.len() >= 30);
    insta::assert_snapshot!(without_registry(&out));
}

#[test]
fn wrong_settings() {
    let mut out = String::new();
    let file = file("end", MATRIX);
    for (key, value) in SETTINGS {
        let set = vec![(key.to_string(), value.to_string())];
        let message = match Scenario::parse(
            &file,
            "x.toml",
            &Overrides {
                set,
                ..Overrides::default()
            },
        ) {
            Ok(_) => panic!("accepted: --set {key}={value}"),
            Err(error) => error.to_string(),
        };
        writeln!(out, "# --set {key}={value}\n{message}\n").unwrap();
    }
    insta::assert_snapshot!(without_registry(&out));
}

#[test]
fn missing_files_and_names() {
    let load = |name: &str| {
        Scenario::load(name, &Overrides::default())
            .unwrap_err()
            .to_string()
    };
    let slip = load("early-los");
    assert_eq!(
        slip,
        "error: early-los: no such file or built-in scenario\n  hint: did you mean the built-in scenario `early-loss`?"
    );
    let missing = load("no/such/file.toml");
    assert!(
        missing
            .starts_with("error: no/such/file.toml: no such file or built-in scenario\n  hint: "),
        "{missing}"
    );
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("rec2.toml"), "").unwrap();
    let beside = load(dir.path().join("rec.toml").to_str().unwrap());
    let hint = format!("did you mean `{}`?", dir.path().join("rec2.toml").display());
    assert!(beside.ends_with(&hint), "{beside}");
    let directory = load(".");
    assert!(
        directory.starts_with("error: .: this is a directory, not a scenario\n  hint: "),
        "{directory}"
    );
}
