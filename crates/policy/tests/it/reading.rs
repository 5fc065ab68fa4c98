//! Valid policies: what is read, from which files, and what is warned of.

use std::fs;
use std::path::Path;

use fullpipe_policy::{Action, Measured, Measurements, OnDaemonLoss, Params, Policy, Side, Source};
use fullpipe_units::{Bytes, Rate, Span};

use crate::support::{errors, path, policy, sources, text};

#[test]
fn a_path_has_what_its_keys_say() {
    let policy = policy(
        r#"
        [defaults]
        respect_app = false
        on_daemon_loss = "keep"
        never_tune = ["22", "873"]
        [[path]]
        name = "cern"
        to = ["192.0.2.0/24", "2001:db8:1::/48"]
        ports = ["443", "5000-5100"]
        side = "passive"
        cgroup = "/system.slice"
        process = "gridftp"
        share = "50%"
        rate = "1Gbit/s"
        rtt = "120ms"
        stack = "limited+reno"
        "#
        .replace("limited+reno", "reno+limited(max_ssthresh=200)")
        .as_str(),
    );
    let compiled = &policy.compiled;
    assert_eq!(compiled.on_daemon_loss, OnDaemonLoss::Keep);
    assert_eq!(compiled.never_tune, [22..=22, 873..=873]);
    let rule = &compiled.rules[0];
    let selector = &rule.selector;
    assert_eq!(
        (rule.name.as_str(), selector.to.len(), selector.side),
        ("cern", 2, Side::Passive)
    );
    assert_eq!(selector.ports, [443..=443, 5000..=5100]);
    assert_eq!(selector.cgroup.as_deref(), Some(Path::new("/system.slice")));
    assert_eq!(selector.process.as_deref(), Some("gridftp"));
    assert_eq!((rule.share, rule.respect_app), (32768, false));
    assert_eq!(rule.stack, "reno+limited(max_ssthresh=200)");
    assert_eq!(policy.paths[0].bdp(), Some(10_000.0));
}

#[test]
fn windows_and_buffers_are_of_the_paths_product() {
    // 1 Gbit/s x 120 ms / (8 x 1500 B) = 10,000 packets.
    let policy = path(
        "rate = \"1Gbit/s\"\nrtt = \"120ms\"\nstack = \"reno\"\nbuffers = \"bdp*2\"\n\
         window = \"1.5*bdp\"\npacing = \"path.rate*0.9\"",
    );
    let rule = &policy.compiled.rules[0];
    assert_eq!(rule.send_buffer, Some(20_000 * 1448));
    assert_eq!(rule.receive_buffer, rule.send_buffer);
    let Action::Ours { params, .. } = &rule.action else {
        panic!("{rule:?}");
    };
    assert_eq!((params.clamp, params.pacing), (15_000, 112_500_000));
}

#[test]
fn drop_ins_are_read_in_the_order_of_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    let path = |name: &str| {
        format!(
            "[[path]]\nname = \"{name}\"\nto = \"192.0.2.0/24\"\nports = \"80\"\nstack = \"reno\"\n"
        )
    };
    fs::write(&file, path("first")).unwrap();
    fs::create_dir(folder.path().join("policy.d")).unwrap();
    for (name, text) in [
        ("20-b.toml", path("third")),
        ("10-a.toml", path("second")),
        ("readme.txt", "not TOML".to_owned()),
    ] {
        fs::write(folder.path().join("policy.d").join(name), text).unwrap();
    }
    let policy = Policy::load(&file).unwrap();
    let names: Vec<&str> = policy
        .compiled
        .rules
        .iter()
        .map(|rule| rule.name.as_str())
        .collect();
    assert_eq!(names, ["first", "second", "third"]);

    fs::write(folder.path().join("policy.d/30.toml"), path("first")).unwrap();
    let why = Policy::load(&file).unwrap_err().to_string();
    assert!(
        why.contains("30.toml:2") && why.contains("policy.toml:2"),
        "{why}"
    );
}

/// The laws that a path can have are not all that there are.
#[test]
fn a_name_that_no_path_can_have_is_answered_once() {
    let why = crate::support::errors("stack = \"bbr2\"");
    assert!(why.contains("write kernel = \"bbr\""), "{why}");
    let known = why.split("a path can have: ").nth(1).unwrap();
    let known: Vec<&str> = known.trim().split(", ").collect();
    assert!(
        known.contains(&"cubic") && known.contains(&"limited"),
        "{why}"
    );
    assert!(
        !known.contains(&"bbr") && !known.contains(&"hystart"),
        "{why}"
    );
    let why = crate::support::errors("stack = \"prague\"");
    let said = "`prague` is not in this version\n  hint: `kernel` names a module that the kernel has; a \
                path can have: reno, ";
    assert!(why.contains(said), "{why}");
    let why = crate::support::errors("stack = \"cubicc\"");
    assert!(
        why.contains("did you mean `cubic`? a path can have"),
        "{why}"
    );
}

#[test]
fn a_port_may_be_a_number() {
    for ports in ["5201", "[5201]", "\"5201\""] {
        let policy = path(&format!("stack = \"reno\"\nports = {ports}"));
        let selector = &policy.compiled.rules[0].selector;
        assert_eq!(selector.ports, [5201..=5201], "{ports}");
    }
    let why = crate::support::errors("stack = \"reno\"\nports = 70000");
    assert!(
        why.contains("a port or a range of ports in quotes is expected"),
        "{why}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let why = Policy::load(Path::new("/nowhere/policy.toml")).unwrap_err();
    assert!(
        why.to_string()
            .contains("/nowhere/policy.toml: no such file"),
        "{why}"
    );
}

#[test]
fn a_spread_that_is_none_is_told() {
    let said = |lines: &str| path(lines).compiled.warnings;
    for lines in [
        "stack = \"reno\"\nrtt = \"20ms\"\ninitial_window = { segments = 24, spread = \"4ms\" }",
        "stack = \"reno+spread\"\nrtt = \"9ms\"",
    ] {
        let warnings = said(lines);
        let text = format!("{warnings:?}");
        assert!(text.contains("nothing is spread"), "{text}");
        let longer = lines.replace("20ms", "40ms").replace("9ms", "10ms");
        let text = format!("{:?}", said(&longer));
        assert!(!text.contains("nothing is spread"), "{text}");
    }
}

/// No timer keeps a gap below its jiffy: where a shorter one is asked for at most, it is exceeded.
#[test]
fn a_gap_longer_than_the_largest_is_told() {
    let said = |lines: &str| format!("{:?}", path(lines).compiled.warnings);
    for (lines, longer) in [
        (
            "stack = \"reno\"\nrtt = \"200ms\"\ninitial_window = { segments = 10, spread = \"0.5ms\" }",
            "0.5ms",
        ),
        (
            "stack = \"reno+spread(t_max=500us)\"\nrtt = \"200ms\"",
            "500us",
        ),
        (
            "stack = \"reno+spread(t_max=3ms,jiffy=4ms)\"\nrtt = \"200ms\"",
            "3ms",
        ),
    ] {
        let text = said(lines);
        assert!(text.contains("leave a jiffy apart"), "{text}");
        let text = said(&lines.replace(longer, "4ms"));
        assert!(!text.contains("jiffy apart"), "{text}");
    }
}

#[test]
fn more_than_cubic_is_a_warning_with_its_reno_flows_and_less_is_none() {
    let of = |stack: &str| path(&format!("stack = \"{stack}\"")).compiled.warnings;
    for stack in [
        "reno",
        "cubic",
        "aimd(decrease=0.125,increase=0.2)",
        "reno-linux",
    ] {
        assert_eq!(of(stack), Vec::<String>::new(), "{stack}");
    }
    let warnings = of("multcp(n=16)");
    assert_eq!(warnings.len(), 1);
    let said = &warnings[0];
    assert!(
        said.starts_with("policy.toml:4: `path.a.stack = \"multcp(n=16)\"`"),
        "{said}"
    );
    // sqrt(16 (2 - 1/32) 16 / 3 * 2 / 2) = 18.3 flows.
    assert!(said.contains("as 18."), "{said}");
}

#[test]
fn a_path_behind_a_wider_one_is_a_warning() {
    let wide = "[[path]]\nname = \"wide\"\nto = \"192.0.0.0/16\"\nstack = \"reno\"\n";
    let narrow =
        "[[path]]\nname = \"narrow\"\nto = \"192.0.2.0/24\"\nports = \"80\"\nstack = \"reno\"\n";
    let warnings = |text: &str| policy(text).compiled.warnings.join("\n");
    let said = warnings(&format!("{wide}{narrow}"));
    assert!(
        said.contains("`path.narrow`: no flow reaches it: `wide`"),
        "{said}"
    );
    assert_eq!(warnings(&format!("{narrow}{wide}")), "");
}

#[test]
fn everything_is_allowed_only_where_the_file_says_so() {
    let text = |allow: bool| {
        format!(
            "[defaults]\nallow_everything = {allow}\n[[path]]\nname = \"a\"\n\
             to = [\"::/0\", \"127.0.0.1\"]\nstack = \"reno\"\n"
        )
    };
    assert!(Policy::parse(&sources(&[&text(true)])).is_ok());
    let why = Policy::parse(&sources(&[&text(false)])).unwrap_err();
    assert_eq!(why.0.len(), 2, "{why}");
}

#[test]
fn networks_around_loopback_and_link_local_addresses_are_refused_too() {
    let text = |to: &str| format!("[[path]]\nname = \"a\"\nto = \"{to}\"\nstack = \"reno\"\n");
    for (to, what) in [
        ("126.0.0.0/7", "126.0.0.0/7 holds 127.0.0.0/8, loopback"),
        ("0.0.0.0/1", "0.0.0.0/1 holds 127.0.0.0/8, loopback"),
        (
            "169.0.0.0/8",
            "169.0.0.0/8 holds 169.254.0.0/16, link-local",
        ),
        ("::/127", "::/127 holds ::1/128, loopback"),
        ("fe80::/9", "fe80::/9 holds fe80::/10, link-local"),
        ("::/64", "::/64 is every address of IPv4"),
    ] {
        let why = Policy::parse(&sources(&[&text(to)])).unwrap_err();
        assert!(why.to_string().contains(what), "{why}");
        let all = format!("[defaults]\nallow_everything = true\n{}", text(to));
        assert!(Policy::parse(&sources(&[&all])).is_ok());
    }
    for to in ["128.0.0.0/3", "2000::/3", "fec0::/10", "126.0.0.0/8"] {
        assert!(Policy::parse(&sources(&[&text(to)])).is_ok(), "{to}");
    }
}

#[test]
fn more_networks_than_the_kernel_side_holds_are_refused() {
    let with = |many: u32| {
        let networks = (0..many).map(|k| std::net::Ipv4Addr::from_bits(0xc612_0000 + k));
        let list: Vec<String> = networks.map(|n| format!("\"{n}\"")).collect();
        let to = format!("to = [{}]\nstack = \"reno\"\n", list.join(","));
        format!(
            "[[path]]\nname = \"a\"\nto = \"192.0.2.1\"\nstack = \"reno\"\n[[path]]\nname = \"b\"\n{to}"
        )
    };
    assert!(Policy::parse(&sources(&[&with(16_383)])).is_ok());
    let why = Policy::parse(&sources(&[&with(16_384)]))
        .unwrap_err()
        .to_string();
    assert!(why.contains("`path.b.to"), "{why}");
    assert!(
        why.contains("16385 networks up to here; the kernel side holds 16384"),
        "{why}"
    );
}

#[test]
fn what_changes_nothing_is_said() {
    let said = |lines: &str| {
        let lines = format!("stack = \"reno\"\n{lines}");
        path(&lines).compiled.warnings.join("\n")
    };
    assert_eq!(said(""), "");
    let nothing = said("divide = true");
    assert!(nothing.contains("nothing is divided"), "{nothing}");
    let folder = said("cgroup = \"/sys/fs/cgroup/batch\"");
    assert!(folder.contains("write \"/batch\""), "{folder}");
    for lines in [
        "divide = true\nwindow = \"1MB\"",
        "divide = true\npacing = \"10Mbit/s\"",
        "divide = true\nreceive_buffer = \"1MB\"",
        "cgroup = \"/batch\"",
        "rtt = \"80ms\"\ninitial_window = { segments = 24, spread = \"4ms\" }",
    ] {
        assert_eq!(said(lines), "", "{lines}");
    }
}

/// 100 Mbit/s, 80 ms and 450 kB, as a probe of 192.0.2.7 found them.
fn measured() -> Measurements {
    let measured = Measured {
        rate: Rate::from_bits_per_sec(100_000_000),
        rtt: Span::from_millis(80),
        buffer: Bytes(450_000),
        lost: true,
        limit: None,
        valid: true,
        at: 1,
    };
    Measurements::from([("192.0.2.7".to_owned(), measured)])
}

#[test]
fn what_was_measured_stands_in_for_what_is_not_stated() {
    let read = |lines: &str, known: &Measurements| {
        let text = text(&format!("probe = \"192.0.2.7\"\n{lines}"));
        Policy::parse_with(&sources(&[&text]), known).unwrap()
    };
    let (nothing, known) = (Measurements::new(), measured());
    for (lines, params) in [
        ("stack = \"reno\"\nwindow = \"bdp\"", |p: &Params| {
            p.clamp == 666
        }),
        (
            "stack = \"reno\"\npacing = \"path.rate*0.9\"",
            |p: &Params| p.pacing == 11_250_000,
        ),
        (
            "stack = \"reno\"\ninitial_window = { segments = 20, spread = \"9ms\" }",
            |p: &Params| p.spread_us == 80_000,
        ),
        // From rate x RTT and the buffer: 666 + 300 segments.
        ("stack = \"pretuned\"", |p: &Params| p.rows == 1),
    ] as [(&str, fn(&Params) -> bool); 4]
    {
        let waits = read(lines, &nothing);
        assert!(waits.compiled.rules.is_empty(), "{lines}");
        assert_eq!(waits.waiting.len(), 1, "{lines}");
        let warnings = waits.compiled.warnings.join("\n");
        assert!(
            warnings.contains("waits for its first measurement"),
            "{warnings}"
        );
        let policy = read(lines, &known);
        assert!(policy.waiting.is_empty(), "{lines}");
        let Action::Ours { params: p, .. } = policy.compiled.rules[0].action else {
            panic!("{lines}")
        };
        assert!(params(&p), "{lines}: {p:?}");
    }
    // A path whose changes depend on it waits, too.
    for change in [
        "window = \"bdp*2\"",
        "pacing = \"path.rate*0.5\"",
        "stack = \"pretuned\"",
    ] {
        let lines = format!("stack = \"reno\"\n[[path.change]]\nat = \"1h\"\n{change}");
        assert_eq!(read(&lines, &nothing).waiting.len(), 1, "{lines}");
        assert_eq!(read(&lines, &known).paths[0].changes.len(), 1, "{lines}");
    }
    // What does not depend on it need not wait, and what is stated counts.
    assert_eq!(read("stack = \"reno\"", &nothing).compiled.rules.len(), 1);
    let stated = read("stack = \"reno\"\nrtt = \"40ms\"\nwindow = \"bdp\"", &known);
    let Action::Ours { params, .. } = stated.compiled.rules[0].action else {
        panic!("a law of ours")
    };
    assert_eq!(params.clamp, 333);
}

#[test]
fn what_cannot_be_probed_is_refused() {
    for (lines, words) in [
        ("probe = \"--help\"", "this is no host"),
        ("probe = \"\"", "this is no host"),
        ("probe = \"a b\"", "this is no host"),
        ("probe = \"a/b\"", "this is no host"),
        ("probe_every = \"1h\"", "nothing is probed"),
        ("probe = \"192.0.2.7\"\nprobe_every = \"1s\"", "probe_every"),
    ] {
        let why = errors(&format!("stack = \"reno\"\n{lines}"));
        assert!(why.contains(words), "{lines}: {why}");
    }
    // A measurement would not mend it.
    let why = errors("probe = \"192.0.2.7\"\nstack = \"reno+hystart\"\nwindow = \"1MB\"");
    assert!(why.contains("no slow start `hystart`"), "{why}");
}

#[test]
fn changes_stand_on_one_another_in_the_order_of_their_times() {
    let policy = path(
        "rate = \"1Gbit/s\"\nrtt = \"120ms\"\nstack = \"aimd(increase=4)\"\nwindow = \"bdp\"\n\
         sendstall = \"ignore\"\n\
         [[path.change]]\nat = \"8h\"\nset = { b = 0.25 }\npacing = \"path.rate*0.5\"\n\
         [[path.change]]\nat = \"20s\"\nset = { a = 6 }\nwindow = \"bdp*2\"\n\
         [[path.change]]\nat = \"1s\"\nstack = \"scalable\"\n\
         [[path.change]]\nat = \"2s\"\nstack = \"aimd(decrease=0.4)\"",
    );
    let flags = |action: &Action| match action {
        Action::Ours { params, .. } => (params.flags, params.clamp, params.pacing),
        Action::Kernel { name, .. } => panic!("{name}"),
    };
    let changes = policy.paths[0].changes.iter();
    let found: Vec<_> = changes
        .map(|c| (c.at.as_secs_f64(), c.stack.to_string(), flags(&c.action)))
        .collect();
    let due = [
        (1.0, "scalable", (1, 10_000, 0)),
        (2.0, "aimd(decrease=0.4)", (1, 10_000, 0)),
        (20.0, "aimd(increase=6,decrease=0.4)", (1, 20_000, 0)),
        (
            28_800.0,
            "aimd(increase=6,decrease=0.25)",
            (1, 20_000, 62_500_000),
        ),
    ];
    let due = due.map(|(at, stack, beside)| (at, stack.to_owned(), beside));
    assert_eq!(found, due);
}

/// Half of `max_ssthresh` a round trip is little where a path holds a hundred thousand segments.
#[test]
fn a_start_that_takes_minutes_is_remarked_on() {
    let warnings = |stack: &str| {
        let lines = format!("rate = \"10Gbit/s\"\nrtt = \"170ms\"\nstack = \"{stack}\"");
        path(&lines).compiled.warnings.join("\n")
    };
    let slow = warnings("reno+limited(max_ssthresh=100)");
    // (141,666 - 100) / 50 round trips of 0.17 s.
    assert!(
        slow.contains("by 50 segments a round trip") && slow.contains(" take 481 s"),
        "{slow}"
    );
    assert_eq!(warnings("reno+limited(max_ssthresh=5000)"), "");
}

/// What gives way takes nothing from others.
#[test]
fn a_law_that_gives_way_is_not_called_aggressive() {
    let of = |stack: &str| {
        let lines = format!("rate = \"1Gbit/s\"\nrtt = \"30ms\"\nstack = \"{stack}\"");
        path(&lines).compiled.warnings.join("\n")
    };
    assert!(
        of("cubic-linux").is_empty() && of("cubic").is_empty(),
        "{}",
        of("cubic-linux")
    );
    assert!(
        of("highspeed").contains("more aggressive"),
        "{}",
        of("highspeed")
    );
    assert_eq!(of("hstcp-lp"), "");
}

/// A name that the kernel does not have is told with those that it has.
#[test]
fn an_algorithm_that_the_kernel_lacks_is_named() {
    let lacking = |name: &str, there: &str| {
        let policy = path(&format!("kernel = \"{name}\""));
        policy.compiled.lacking(there)
    };
    assert_eq!(
        lacking("nope", "reno cubic fp_aimd\n"),
        [
            "`path.a`: the running kernel has no congestion control `nope`; it has reno, cubic; \
             `modprobe tcp_nope` loads its module, if there is one"
        ]
    );
    assert!(lacking("cubic", "reno cubic").is_empty());
    // A kernel that does not say what it has is not doubted.
    assert!(lacking("nope", "").is_empty());
    assert!(
        path("stack = \"reno\"")
            .compiled
            .lacking("cubic")
            .is_empty()
    );
}

/// A pipe has no end before somebody writes it, and /dev/zero none at all.
#[test]
fn a_policy_is_a_regular_file_of_a_length() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("policy.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()), "mkfifo(1)");
    for file in [pipe.as_path(), Path::new("/dev/zero")] {
        let why = Policy::load(file).unwrap_err().to_string();
        assert!(
            why.contains("cannot be read: it is no regular file"),
            "{why}"
        );
    }
    let long = folder.path().join("long.toml");
    // It has no blocks of its own.
    fs::File::create(&long).unwrap().set_len(1 << 40).unwrap();
    let why = Policy::load(&long).unwrap_err().to_string();
    assert!(why.contains("the file is larger than 1000 kB"), "{why}");
}

/// Emacs leads `.#10.toml` nowhere while somebody edits `10.toml`.
#[test]
fn hidden_files_are_no_part_of_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    fs::write(&file, "").unwrap();
    let beside = folder.path().join("policy.d");
    fs::create_dir(&beside).unwrap();
    std::os::unix::fs::symlink("somebody@nowhere", beside.join(".#10.toml")).unwrap();
    fs::write(beside.join(".20.toml"), "x = 1").unwrap();
    assert_eq!(Source::all(&file).unwrap().len(), 1);
}
