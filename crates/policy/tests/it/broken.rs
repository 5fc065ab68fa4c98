//! Messages about broken policies.

use std::fmt::Write as _;

use fullpipe_policy::Policy;

use crate::support::{sources, text};

/// Lines of a path, with its name and network before them.
const PATHS: &[&str] = &[
    "",
    "stack = \"higspeed\"",
    "stak = \"reno\"",
    "stack = \"aimd(increase=4,decrese=0.125)\"",
    "stack = \"reno\"\nkernel = \"cubic\"",
    "stack = \"aimd(decrease=0.9)\"",
    "stack = \"aimd(increase=5000)\"",
    "stack = \"multcp(n=100)\"",
    "stack = \"cubic+hystart++\"",
    "stack = \"reno+standard(ssthresh=100)\"",
    "stack = \"illinois\"",
    "stack = \"bbr\"",
    "stack = \"cubic-linux(beta=717)\"",
    "stack = \"highspeed(rto_b=0.5,first_decrease=half)\"",
    "stack = \"reno+paced\"",
    "stack = \"reno+spread(iw=24)\"",
    "stack = \"pretuned\"",
    "stack = \"reno\"\nbuffers = \"bdp*2\"",
    "stack = \"reno\"\nbuffers = 8",
    "stack = \"reno\"\nwindow = \"1 segments\"",
    "stack = \"reno\"\npacing = \"path.rate*0.9\"",
    "stack = \"reno\"\npacing = \"40Gbit/s\"",
    "stack = \"reno\"\npacing = \"1bit/s\"",
    "stack = \"reno\"\nrtt = \"80\"\nrate = \"10Gb/s\"",
    "stack = \"reno\"\nports = [\"0\", \"5100-5000\"]",
    "stack = \"reno\"\nside = \"sender\"",
    "stack = \"reno\"\nshare = 50",
    "stack = \"reno\"\nprocess = \"a-name-that-is-too-long\"\ncgroup = \"system.slice\"",
    "stack = \"reno\"\nsendstall = \"ignored\"\ndivide = \"yes\"",
    "stack = \"scalable\"\nupdate_interval = \"100ms\"",
    "stack = \"reno\"\ninitial_window = { segments = 24, spread = \"4ms\", via = \"netem\" }",
    "kernel = \"dctcp\"\nwindow = \"8MB\"\nsendstall = \"ignore\"",
    "stack = \"hstcp-lp(signal=owd)\"\nsend_buffer = \"2GiB\"",
    "stack = \"aimd\"\nchange = { set = { a = 6 } }",
    "stack = \"aimd\"\nchange = [{ at = \"20s\" }, { at = \"0s\", sett = { a = 6 } }]",
    "stack = \"aimd\"\nchange = [{ at = \"8s\", set = { c = 6 } }, { at = \"9s\", set = { a = 9999 } }]",
    "stack = \"aimd\"\nchange = { at = \"20s\", stack = \"reno+spread\", window = \"bdp\" }",
    "stack = \"aimd\"\nchange = { at = \"20s\", stack = \"cubic-linux\", pacing = \"path.rate\" }",
    "kernel = \"dctcp\"\nchange = { at = \"20s\", set = { a = 6 } }",
];

/// Whole policies: the file, then drop-ins.
const FILES: &[&[&str]] = &[
    &[""],
    &["[[path]\nname = \"a\""],
    &["[[path]]\nname = \"a\"\nto = \"0.0.0.0/0\"\nstack = \"reno\""],
    &[
        "[[path]]\nname = \"a\"\nto = [\"127.0.0.0/8\", \"fe80::/64\", \"::ffc0:0:0/90\"]\n\
       stack = \"reno\"",
    ],
    &[
        "[[path]]\nname = \"a\"\nto = [\"192.0.2.1/24\", \"example.org\", \"10.0.0.0/33\"]\n\
       stack = \"reno\"",
    ],
    &[
        "[[path]]\nname = \"cern\"\nto = \"192.0.2.0/24\"\nstack = \"reno\"",
        "[[path]]\nname = \"cern\"\nto = \"198.51.100.0/24\"\nstack = \"reno\"",
    ],
    &[
        "[defaults]\nrespect_app = false\n[[path]]\nname = \"a\"\nto = \"192.0.2.0/24\"\nstack = \"reno\"",
        "[defaults]\nrespect_app = true\non_daemon_loss = \"stop\"",
    ],
    &["[default]\nrespect_app = false\n[path]\nname = \"a\"\nstack = \"reno\""],
    &["never_tune = [\"22\"]\n[[path]]\nto = \"192.0.2.0/24\"\nstack = \"reno\""],
];

#[test]
fn every_broken_policy_is_told_what_is_wrong_and_what_to_write() {
    let mut out = String::new();
    let paths = PATHS.iter().map(|lines| vec![text(lines)]);
    let files = FILES
        .iter()
        .map(|texts| texts.iter().map(|text| (*text).to_owned()).collect());
    for texts in paths.chain(files) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        for text in &texts {
            let shown: String = text
                .trim_end()
                .lines()
                .map(|l| format!("    {l}\n"))
                .collect();
            let _ = write!(out, "{shown}");
        }
        match Policy::parse(&sources(&texts)) {
            Ok(_) => panic!("valid:\n{out}"),
            Err(why) => {
                for fault in &why.0 {
                    assert!(
                        fault.hint.is_some() || fault.message.contains("TOML"),
                        "{fault}"
                    );
                }
                let _ = writeln!(out, "{why}\n");
            }
        }
    }
    insta::assert_snapshot!("broken", out);
}
