//! Valid policies: what is read, from which files, and what is warned of.

use std::fs;
use std::path::Path;

use fullpipe_policy::{Action, OnDaemonLoss, Policy, Side};

use crate::support::{path, policy, sources};

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
    assert_eq!(
        (rule.name.as_str(), rule.to.len(), rule.side),
        ("cern", 2, Side::Passive)
    );
    assert_eq!(rule.ports, [443..=443, 5000..=5100]);
    assert_eq!(rule.cgroup.as_deref(), Some(Path::new("/system.slice")));
    assert_eq!(rule.process.as_deref(), Some("gridftp"));
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
fn what_the_kernel_side_does_not_act_on_is_said() {
    let said = |lines: &str| {
        let lines = format!("stack = \"reno\"\n{lines}");
        path(&lines).compiled.warnings.join("\n")
    };
    assert_eq!(said(""), "");
    for (lines, words) in [
        ("divide = true", "each flow gets the whole"),
        (
            "rtt = \"80ms\"\ninitial_window = { segments = 24, spread = \"4ms\" }",
            "leaves as one burst",
        ),
    ] {
        assert!(said(lines).contains(words), "{lines}: {}", said(lines));
    }
}
