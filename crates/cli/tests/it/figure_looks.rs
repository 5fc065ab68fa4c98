//! `fullpipe figure`: what a legend says of the lines, and which key gives them.

use std::fs;
use std::path::Path;

use crate::process::{Finished, fullpipe, write};

/// Two flows with stacks of their own, two buffers, pings beside.
const RACE: &str = r#"name = "race"
duration = "4s"

[path]
rate = "20Mbit/s"
rtt = "20ms"

[[flow]]
name = "a"
stack = "reno"

[[flow]]
name = "b"
stack = "cubic"

[[traffic]]
name = "p"
kind = "ping"
interval = "100ms"

[matrix]
"flow.a.stack" = ["reno", "bbr"]
"flow.b.stack" = ["cubic", "htcp"]
"path.buffer" = ["0.5BDP", "2BDP"]
"#;

fn run(dir: &Path, text: &str) {
    write(dir, "r.toml", text);
    let run = fullpipe(dir, &["run", "r.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

fn figure(dir: &Path, args: &[&str]) -> Finished {
    fullpipe(dir, &[&["figure", "r"], args].concat())
}

fn drawn(dir: &Path, args: &[&str], file: &str) -> String {
    let ended = figure(dir, &[args, &["--out", file]].concat());
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    fs::read_to_string(dir.join(file)).unwrap()
}

/// Names of lines in the legend, each with colour and dashes of its sample.
fn legend(svg: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = svg.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let look = line.split_once("stroke=").map(|(_, look)| look);
        let look = look.filter(|look| line.starts_with("<line") && look.contains("width=\"2.2\""));
        // A dot may stand between.
        let name = lines[i + 1..]
            .iter()
            .take(2)
            .find(|l| l.starts_with("<text"));
        if let (Some(look), Some(name)) = (look, name.and_then(|text| text.split('>').nth(1))) {
            let name = name.split('<').next().unwrap();
            found.push((name.to_owned(), look.to_owned()));
        }
    }
    found
}

fn names(svg: &str) -> Vec<String> {
    legend(svg).into_iter().map(|(name, _)| name).collect()
}

/// A line of one look in two panels is one entry, and another's looks are its own.
#[test]
fn a_look_has_one_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    run(dir, RACE);
    let svg = drawn(dir, &["goodput", "--where", "buffer=2BDP"], "g.svg");
    let found = names(&svg);
    assert_eq!(
        found,
        ["a: reno", "b against reno", "a: bbr", "b against bbr"]
    );
    // The panel of either flow and that of the pings show the same cases.
    let one = ["--where", "buffer=2BDP", "--where", "b.stack=htcp"];
    let load = drawn(dir, &[&["load"][..], &one].concat(), "l.svg");
    assert_eq!(names(&load), ["a: reno", "a: bbr"]);
    for axis in [
        "a: goodput (Mbit/s)",
        "b, htcp: goodput (Mbit/s)",
        "p: ping (ms)",
    ] {
        assert!(load.contains(&format!(">{axis}<")), "{axis}: {load}");
    }
}

#[test]
fn a_stack_stands_once_in_the_legend_of_a_load() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "name = \"r\"\nduration = \"3s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nstack = \"reno\"\n[[traffic]]\nname = \"p\"\nkind = \"ping\"\n\
                [matrix]\n\"flow.main.stack\" = [\"reno\", \"bbr\"]\n";
    run(dir, text);
    assert_eq!(names(&drawn(dir, &["load"], "l.svg")), ["reno", "bbr"]);
}

/// A flow keeps its looks in the cases that lack another.
#[test]
fn a_flow_that_is_left_out_takes_no_looks_along() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut flows = String::new();
    for name in ["a", "b", "c"] {
        flows += &format!("[[flow]]\nname = \"{name}\"\nstack = \"reno\"\n");
    }
    let text = format!(
        "name = \"r\"\nduration = \"3s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n{flows}\
         [matrix]\n\"flow.a.stack\" = [\"reno\", \"cubic\"]\n\"flow.b.enabled\" = [true, false]\n"
    );
    run(dir, &text);
    for kind in ["goodput", "rtt", "window"] {
        let of_both = legend(&drawn(dir, &[kind], "f.svg"));
        let names: Vec<&str> = of_both.iter().map(|(name, _)| name.as_str()).collect();
        let c = |name: &&&str| name.starts_with("c against cubic");
        assert_eq!(names.iter().filter(c).count(), 1, "{kind}: {names:?}");
        for (i, (_, look)) in of_both.iter().enumerate() {
            assert!(
                of_both[..i].iter().all(|(_, l)| l != look),
                "{kind}: {of_both:?}"
            );
        }
    }
}

/// What the lines are can be chosen; the other keys are panels or columns.
#[test]
fn any_key_gives_the_lines() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    run(dir, RACE);
    let lines = ["--lines", "buffer"];
    let svg = drawn(dir, &[&["cdf"][..], &lines].concat(), "c.svg");
    assert_eq!(names(&svg), ["buffer 0.5BDP", "buffer 2BDP"]);
    for panel in ["a: reno, b: cubic", "a: bbr, b: htcp"] {
        assert!(svg.contains(&format!(">{panel}<")), "{panel}: {svg}");
    }
    let svg = drawn(dir, &[&["goodput"][..], &lines].concat(), "g.svg");
    assert!(names(&svg).contains(&"buffer 2BDP, b".to_owned()), "{svg}");
    let csv = drawn(
        dir,
        &[&["matrix", "--of", "b"][..], &lines].concat(),
        "m.csv",
    );
    let row = "buffer 2BDP,\"a: bbr, b: htcp\",";
    assert!(csv.lines().any(|line| line.starts_with(row)), "{csv}");
    for (args, said) in [
        (
            ["cdf", "--lines", "mtu"],
            "these vary: `flow.a.stack`, `flow.b.stack`",
        ),
        (["cdf", "--lines", "stack"], "`stack` is no key that varies"),
        (
            ["response", "--lines", "buffer"],
            "are the stacks and their laws",
        ),
        (["table", "--lines", "buffer"], "a row for each case"),
    ] {
        let ended = figure(dir, &args);
        assert!(
            ended.code == 2 && ended.stderr.contains(said),
            "{}",
            ended.stderr
        );
    }
}

/// CUBIC behind a standing queue has the law of the round trip that the queue makes; Reno's is one
/// whatever the queue. The laws of kernel modules are lines, too.
#[test]
fn a_response_has_the_laws_of_mean_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"name = "r"
duration = "20s"
[path]
rate = "50Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
[matrix]
"flow.main.stack" = ["reno", "cubic", "reno-linux"]
"path.buffer" = ["0.5BDP", "6BDP"]
"#;
    run(dir, text);
    let table = drawn(dir, &["table", "--metric", "rtt_ms.mean"], "t.csv");
    let rtt = |buffer: &str| -> f64 {
        let row = table
            .lines()
            .find(|l| l.contains(&format!(",cubic,{buffer},")));
        let heads = table.lines().next().unwrap().split(',');
        let at = heads.take_while(|head| *head != "rtt_ms.mean").count();
        row.unwrap().split(',').nth(at).unwrap().parse().unwrap()
    };
    let rtts = [rtt("0.5BDP"), rtt("6BDP")];
    assert!(rtts[1] > 2.0 * rtts[0], "{table}");
    let svg = drawn(dir, &["response"], "r.svg");
    let found = names(&svg);
    let cubic = rtts.map(|rtt| format!("cubic, {} ms", rtt.round()));
    assert_eq!(
        found,
        ["reno", &cubic[0], &cubic[1], "reno-linux"],
        "{table}"
    );
    let csv = drawn(dir, &["response"], "r.csv");
    let mut laws = Vec::new();
    for line in csv
        .lines()
        .filter(|l| l.starts_with("cubic,") && l.contains(",law alone,"))
    {
        let rtt: f64 = line.split(',').nth(1).unwrap().parse().unwrap();
        laws.push(rtt);
    }
    laws.dedup();
    assert_eq!(laws.len(), 2, "{csv}");
    for (law, rtt) in laws.iter().zip(rtts) {
        assert!((law - rtt).abs() < 1e-9 * rtt, "{law} {rtt}");
    }
    let module = csv
        .lines()
        .filter(|l| l.starts_with("reno-linux,") && l.contains("law alone"));
    assert!(module.count() > 10, "{csv}");
}

/// Panels of one metric are compared: they have one vertical axis.
#[test]
fn bars_side_by_side_have_one_axis() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "name = \"r\"\nduration = \"3s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nstack = \"reno\"\n[matrix]\n\"flow.main.stack\" = [\"reno\", \"bbr\"]\n\
                \"path.loss\" = [0, 0.05]\n\"path.buffer\" = [\"0.5BDP\", \"1BDP\", \"2BDP\"]\n";
    run(dir, text);
    let svg = drawn(dir, &["bars"], "b.svg");
    let numbers = svg.split("text-anchor=\"end\"").skip(1);
    let numbers: Vec<&str> = numbers
        .map(|t| &t[t.find('>').unwrap()..t.find("</").unwrap()])
        .collect();
    let (left, right) = numbers.split_at(numbers.len() / 2);
    assert!(left.len() > 2 && left == right, "{numbers:?}");
}

/// Sixty flows have more names than looks, and more panels than a picture has room for.
#[test]
fn many_flows_are_named_as_far_as_looks_tell_them_apart() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut text = "name = \"m\"\nduration = \"2s\"\n[path]\nrate = \"20Mbit/s\"\n\
                    rtt = \"20ms\"\n"
        .to_owned();
    for i in 1..=60 {
        text += &format!("[[flow]]\nname = \"f{i}\"\nstack = \"reno\"\n");
    }
    run(dir, &text);
    for kind in ["window", "goodput", "rtt"] {
        let svg = drawn(dir, &[kind], "m.svg");
        for (words, is_there) in [("f49", true), ("f50", false), ("and 11 more", true)] {
            let found = svg.contains(&format!(">{words}<")) || svg.contains(&format!(">{words}: "));
            assert_eq!(found, is_there, "{kind}: {words}");
        }
    }
    let ended = fullpipe(dir, &["figure", "r", "load", "--out", "m.png"]);
    assert_eq!(ended.code, 2);
    for words in [
        "error: 60 panels, one below the other: a picture has room for 16",
        "choose one with `--of NAME`; `--out FILE.csv` has the numbers of all",
    ] {
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
    assert!(!dir.join("m.png").exists());
    let numbers = drawn(dir, &["load"], "m.csv");
    assert!(numbers.contains("\nf60: "), "{numbers}");
    let ended = fullpipe(
        dir,
        &["figure", "r", "load", "--of", "f60", "--out", "m.png"],
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}
