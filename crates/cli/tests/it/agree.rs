//! `fullpipe agree`: its page says what its JSON says.

use std::path::Path;

use serde_json::Value;

use crate::process::{command, finished, fullpipe, write};

/// What `fullpipe agree` judges where a scenario names nothing.
const JUDGED: [&str; 7] = [
    "goodput_mbps",
    "\"rtt_ms.mean\"",
    "retransmits",
    "loss_events",
    "timeouts",
    "cwnd_area",
    "loss_time_rtt",
];

/// `tolerance` of everything, on the simulator and over UDP of this host.
fn agreed(dir: &Path, tolerance: &str) -> (i32, Value, String) {
    let bounds = JUDGED.map(|name| format!("{name} = {tolerance}"));
    let scenario = format!(
        "name = \"twice\"\nduration = \"1s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
         [[flow]]\nstack = \"reno\"\n[measure]\nagreement = {{ {} }}\n",
        bounds.join(", ")
    );
    let name = tolerance;
    write(dir, &format!("{name}.toml"), &scenario);
    let args = ["agree", &format!("{name}.toml"), "--grounds", "sim,udp"];
    let more = [
        "--causes",
        "wake-ups",
        "--with-flagged",
        "--format",
        "json",
        "--out",
        name,
    ];
    let ended = finished(command(dir, &[&args[..], &more].concat()).output().unwrap());
    let json = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let page = std::fs::read_to_string(dir.join(name).join("agreement.html")).unwrap();
    (ended.code, json, page)
}

#[test]
fn the_page_says_what_the_numbers_say() {
    let dir = tempfile::tempdir().unwrap();
    // No two runs in real time are alike to a millionth. On a busy machine a run may lose so much
    // that no bound holds it (a loss event beside none): that one is made again.
    for (tolerance, parts) in [("0.000001", true), ("1000.0", false)] {
        let mut made = agreed(dir.path(), tolerance);
        for _ in 0..4 {
            if made.0 == i32::from(parts) {
                break;
            }
            made = agreed(dir.path(), tolerance);
        }
        let (code, json, page) = made;
        let pair = &json["pairs"][0];
        let comparison = &pair["comparison"];
        assert_eq!(comparison["agree"], !parts);
        assert_eq!(code, i32::from(parts));
        let said = if parts { "they part" } else { "they agree" };
        assert_eq!(page.matches("<h2>").count(), 1);
        assert!(page.contains(said), "{tolerance}: no `{said}`");
        let rows = comparison["rows"].as_array().unwrap();
        let judged: Vec<&Value> = rows.iter().filter(|row| row["judged"] == true).collect();
        let distances = comparison["distances"].as_array().unwrap();
        let causes = pair["causes"].as_array().unwrap();
        assert_eq!(causes.len(), usize::from(parts), "{causes:?}");
        // Each table has a headline.
        let lines = judged.len() + distances.len() + 1 + if parts { 1 + causes.len() } else { 0 };
        assert_eq!(page.matches("<tr>").count(), lines);
        let beyond = |all: &[Value]| all.iter().filter(|x| x["verdict"] == "beyond").count();
        assert_eq!(
            page.matches("beyond</b>").count(),
            judged
                .iter()
                .filter(|row| row["verdict"] == "beyond")
                .count()
                + beyond(distances),
        );
        for row in judged {
            let metric = row["metric"].as_str().unwrap();
            let named = match row["unit"].as_str().unwrap() {
                "1" | "" => metric.to_owned(),
                unit => format!("{metric} ({unit})"),
            };
            assert!(page.contains(&format!("<td>{named}</td>")), "{named}");
        }
        for cause in causes {
            assert!(page.contains(cause["about"].as_str().unwrap()), "{cause}");
        }
        // Whole without a network.
        assert!(page.contains("twice"));
        assert!(page.contains("<svg") && !page.contains("<script"));
        let links = page.matches("http").count();
        assert_eq!(
            links,
            page.matches("http://www.w3.org/").count(),
            "links to elsewhere"
        );
    }
}

/// A second call with other causes keeps what the first has found; without a directory nothing is
/// kept.
#[test]
fn causes_that_were_tried_before_are_not_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "name = \"one\"\nduration = \"1s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nstack = \"reno\"\n[measure]\nagreement = { goodput_mbps = 1e-9 }\n";
    write(dir, "one.toml", text);
    let agree = |more: &[&str]| {
        let args = [
            "agree",
            "one.toml",
            "--grounds",
            "sim,udp",
            "--with-flagged",
        ];
        let args = [&args[..], &["--format", "json"], more].concat();
        finished(command(dir, &args).output().unwrap())
    };
    assert_eq!(agree(&["--causes", "ties", "--out", "o"]).code, 1);
    let ended = agree(&["--causes", "trains", "--out", "o", "--resume"]);
    let json: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    let pair = &json["pairs"][0];
    let causes = pair["causes"].as_array().unwrap();
    let causes: Vec<&Value> = causes.iter().map(|c| &c["cause"]).collect();
    assert_eq!(causes, ["ties", "trains"]);
    let left = pair["conclusion"]["not_tried"].as_array().unwrap();
    assert!(
        !left.is_empty() && !left.contains(&"ties".into()),
        "{left:?}"
    );
    assert_eq!(pair["conclusion"]["furthest"]["metric"], "goodput_mbps");

    assert_eq!(agree(&["--no-causes"]).code, 1);
    let refused = agree(&["--replace"]);
    assert!(
        refused.code == 2 && refused.stderr.contains("--out"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        agree(&["--causes", "ties", "--out", "o", "--replace"]).code,
        1
    );
}

/// A module of one's own has a stand-in beside ground linux; what follows closes the answer.
#[test]
fn a_stack_stands_in_for_the_own_module() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let own = "name = \"own\"\nduration = \"1s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
               [[flow]]\nstack = \"own-linux\"\nwindow = \"20 segments\"\n";
    write(dir, "own.toml", own);
    let agree = |more: &[&str]| {
        let args = [
            "agree",
            "own.toml",
            "--grounds",
            "sim,udp",
            "--with-flagged",
            "--out",
            "o",
        ];
        finished(command(dir, &[&args[..], more].concat()).output().unwrap())
    };
    let refused = agree(&[]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let remedy = "--grounds sim,linux --kernel-module FILE --own-is STACK";
    assert!(refused.stderr.contains(remedy), "{}", refused.stderr);
    let ended = agree(&["--own-is", "reno", "--no-causes", "--format", "json"]);
    assert!(ended.code < 2, "{}", ended.stderr);
    let json: Value = serde_json::from_str(&ended.stdout).expect(&ended.stderr);
    assert_eq!(json["own_is"], "reno");
    let conclusion = &json["pairs"][0]["conclusion"];
    assert_eq!(conclusion["unexercised"].as_array().map(Vec::len), Some(1));
    let page = std::fs::read_to_string(dir.join("o/agreement.html")).unwrap();
    assert!(
        page.contains("No congestion event: the laws were not exercised"),
        "{page}"
    );
    let module = agree(&["--kernel-module", "x.c"]);
    assert!(
        module.stderr.contains("--grounds sim,linux"),
        "{}",
        module.stderr
    );
    assert_eq!(module.code, 2);
    let about = "`--kernel-module` is about the ground linux, which is not among these";
    assert!(module.stderr.contains(about), "{}", module.stderr);
    let grounds = ["agree", "own.toml", "--grounds", "sim,linux", "--spin"];
    let spin = fullpipe(dir, &grounds);
    let about = "`--spin` is about the datagrams of the ground udp, which is not among these";
    assert!(spin.stderr.contains(about), "{}", spin.stderr);
    assert!(
        spin.stderr.contains("write `--grounds sim,udp`"),
        "{}",
        spin.stderr
    );
    assert_eq!(spin.code, 2);
}
