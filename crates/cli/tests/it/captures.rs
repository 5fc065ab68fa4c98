//! `--pcap` and `--qlog`: the files, and what tshark makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{SMALL, fullpipe, write};

/// Losses at random and to the buffer, a handshake, two flows, one of them with ECN and without
/// time stamps.
const LOSSY: &str = r#"name = "lossy"
duration = "8s"

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1BDP"
loss = 0.003

[[flow]]
name = "main"
stack = "cubic"
preset = "2026"

[[flow]]
name = "second"
stack = "reno"
preset = "2026"
timestamps = false
start = "1s"
"#;

fn run(dir: &Path, args: &[&str]) {
    let done = fullpipe(dir, args);
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn a_captured_run_gives_the_same_numbers() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    run(dir.path(), &["run", "lossy.toml", "--out", "plain"]);
    let flags = ["run", "lossy.toml", "--out", "with", "--pcap", "--qlog"];
    run(dir.path(), &flags);
    let (plain, with) = (dir.path().join("plain"), dir.path().join("with"));
    let names = |at: &Path, part: &str| {
        let entries = fs::read_dir(at.join(part)).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(&with, "captures"),
        [
            "case-0000-seed1-flow0-main.sqlog",
            "case-0000-seed1-flow1-second.sqlog",
            "case-0000-seed1-receiver.pcap",
            "case-0000-seed1-sender.pcap",
        ]
    );
    assert!(!plain.join("captures").exists());
    assert_eq!(names(&plain, "runs"), names(&with, "runs"), "the keys");
    assert_eq!(names(&plain, "series"), names(&with, "series"));
    let mut same = vec!["result.json".to_owned(), "runs.parquet".to_owned()];
    same.extend(
        names(&plain, "series")
            .iter()
            .map(|n| format!("series/{n}")),
    );
    for name in same {
        let [a, b] = [&plain, &with].map(|d| fs::read(d.join(&name)).unwrap());
        assert!(a == b, "{name} differs");
    }
    let manifest = fs::read_to_string(with.join("manifest.json")).unwrap();
    assert!(manifest.contains("\"captures/case-0000-seed1-sender.pcap\""));

    // Resuming keeps captures, and makes a run again that has none.
    let before = fs::read(with.join("captures/case-0000-seed1-sender.pcap")).unwrap();
    let done = fullpipe(
        dir.path(),
        &["run", "lossy.toml", "--out", "with", "--resume"],
    );
    assert!(done.stderr.contains("1 taken over"), "{}", done.stderr);
    assert_eq!(names(&with, "captures").len(), 4);
    // One that is made again, here since a file of it is damaged, is captured again.
    fs::write(with.join("captures/case-0000-seed1-sender.pcap"), b"half").unwrap();
    run(
        dir.path(),
        &["run", "lossy.toml", "--out", "with", "--resume"],
    );
    assert_eq!(names(&with, "captures").len(), 4);
    let again = fs::read(with.join("captures/case-0000-seed1-sender.pcap")).unwrap();
    assert!(before == again, "as it was");
    let flags = ["run", "lossy.toml", "--out", "plain", "--resume", "--pcap"];
    run(dir.path(), &flags);
    assert_eq!(names(&plain, "captures").len(), 2);
    let after = fs::read(plain.join("captures/case-0000-seed1-sender.pcap")).unwrap();
    assert!(before == after, "the same bytes");
}

#[test]
fn captures_need_a_directory_and_a_short_run() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "small.toml", SMALL);
    let done = fullpipe(dir.path(), &["run", "small.toml", "--pcap"]);
    assert_eq!(done.code, 2);
    assert!(done.stderr.contains("--out"), "{}", done.stderr);

    let long = [
        "run",
        "small.toml",
        "--out",
        "long",
        "--qlog",
        "--set",
        "duration=3000s",
        "--set",
        "path.rate=1Gbit/s",
    ];
    let done = fullpipe(dir.path(), &long);
    assert_eq!(done.code, 2, "{}", done.stderr);
    let hint = "--set duration=";
    assert!(done.stderr.contains(hint), "{}", done.stderr);
    assert!(!dir.path().join("long").exists(), "refused before anything");
}

#[test]
fn tshark_reads_the_packets_without_complaint() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "lossy.toml", LOSSY);
    let flags = ["run", "lossy.toml", "--out", "out", "--pcap", "--qlog"];
    run(dir.path(), &flags);
    let result = fs::read_to_string(dir.path().join("out/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    let total = |flow: usize, metric: &str| {
        let value = &result["cases"][0]["flows"][flow][metric];
        value
            .as_f64()
            .unwrap_or_else(|| panic!("{metric}: {value}"))
    };

    let captures = dir.path().join("out/captures");
    let sender = Packets::read(&captures.join("case-0000-seed1-sender.pcap"));
    let receiver = Packets::read(&captures.join("case-0000-seed1-receiver.pcap"));
    for packets in [&sender, &receiver] {
        assert_eq!(packets.count("_ws.malformed"), 0);
        assert_eq!(packets.having("ip.checksum.status", "1"), packets.0.len());
        // 0 is bad, 1 good, 2 not verified: the payload is cut off.
        assert_eq!(packets.having("tcp.checksum.status", "0"), 0);
        assert!(packets.having("tcp.checksum.status", "1") > 1000);
        assert_eq!(packets.streams(), 2);
        assert_eq!(packets.count("tcp.analysis.ack_lost_segment"), 0);
        assert!(packets.count("tcp.options.sack_le") > 20);
        assert!(packets.count("tcp.analysis.duplicate_ack") > 20);
    }
    let headers = sender.having("tcp.flags.syn", "1");
    assert_eq!(headers, 4, "two handshakes");
    // What left the sender a second time is a retransmission of one kind or another, and nothing
    // else is.
    for flow in 0..2 {
        let stream = sender.stream(flow);
        let seen = stream.either(&["tcp.analysis.retransmission", "tcp.analysis.out_of_order"]);
        let expected = total(flow, "retransmits");
        assert!(expected > 5.0, "the test needs losses: {expected}");
        assert_eq!(seen as f64, expected, "flow {flow}");
        assert_eq!(
            stream.count("tcp.analysis.lost_segment"),
            0,
            "nothing is lost before it leaves"
        );
        let stamps = stream.count("tcp.options.timestamp.tsval");
        assert_eq!(stamps, if flow == 0 { stream.0.len() } else { 0 });
    }
    assert!(receiver.count("tcp.analysis.lost_segment") > 5);

    let events = fs::read_to_string(captures.join("case-0000-seed1-flow0-main.sqlog")).unwrap();
    let lost = events.matches("\"recovery:packet_lost\"").count();
    assert_eq!(lost as f64, total(0, "retransmits"));
    assert!(events.contains("recovery:metrics_updated"));
}

/// What tshark says about the packets of a file: fields that are present, with their values.
struct Packets(Vec<BTreeMap<&'static str, String>>);

impl Packets {
    fn read(file: &Path) -> Packets {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(file).args(["-T", "fields"]);
        // One pass over a file that is not live, every checksum looked at.
        command.args([
            "-o",
            "tcp.check_checksum:TRUE",
            "-o",
            "ip.check_checksum:TRUE",
        ]);
        for field in FIELDS {
            command.args(["-e", field]);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let row = |line: &str| {
            let values = FIELDS.into_iter().zip(line.split('\t'));
            values
                .filter(|(_, v)| !v.is_empty())
                .map(|(f, v)| (f, v.to_owned()))
                .collect()
        };
        Packets(text.lines().map(row).collect())
    }

    fn either(&self, fields: &[&str]) -> usize {
        let has = |p: &&BTreeMap<&str, String>| fields.iter().any(|f| p.contains_key(f));
        self.0.iter().filter(has).count()
    }

    fn count(&self, field: &str) -> usize {
        self.either(&[field])
    }

    fn having(&self, field: &str, value: &str) -> usize {
        let has = |p: &&BTreeMap<&str, String>| p.get(field).is_some_and(|v| v == value);
        self.0.iter().filter(has).count()
    }

    /// Streams are numbered as they appear.
    fn stream(&self, number: usize) -> Packets {
        let number = number.to_string();
        let of_it = self.0.iter().filter(|p| p["tcp.stream"] == number);
        Packets(of_it.cloned().collect())
    }

    fn streams(&self) -> usize {
        let numbers = self.0.iter().map(|p| &p["tcp.stream"]);
        numbers.collect::<std::collections::BTreeSet<_>>().len()
    }
}

const FIELDS: [&str; 12] = [
    "tcp.stream",
    "_ws.malformed",
    "ip.checksum.status",
    "tcp.checksum.status",
    "tcp.flags.syn",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.analysis.duplicate_ack",
    "tcp.options.sack_le",
    "tcp.options.timestamp.tsval",
];
