//! What is made from the definition of the command line.

use std::path::Path;

use crate::process::{SMALL, command, finished, fullpipe, write};

#[test]
fn the_reference_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let written = std::fs::read_to_string(&page).unwrap();
    let made = fullpipe(Path::new("."), &["man", "--markdown"]).stdout;
    assert!(
        written == made,
        "docs/cli.md is out of date: cargo run -p fullpipe -- man --markdown > docs/cli.md"
    );
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = fullpipe(Path::new("."), &["completions", shell]);
        assert_eq!(ended.code, 0, "{shell}");
        // fish spells long flags without dashes, and not every shell completes the values of
        // arguments without a flag.
        for word in ["compare", "resume", "completions", "threshold"] {
            assert!(ended.stdout.contains(word), "{shell} does not know {word}");
        }
    }
}

/// A shell offers the names that an argument can have.
#[test]
fn completions_know_scenarios_stacks_metrics_and_keys() {
    for shell in ["bash", "zsh", "fish"] {
        let script = fullpipe(Path::new("."), &["completions", shell]).stdout;
        for word in [
            "goodput_mbps",
            "path.rtt=",
            "scalable",
            "delayed_ack=",
            "flow.stack=",
            "goodput_mbps=",
            "first-run",
        ] {
            // fish completes the values of flags only.
            let flag = shell != "fish" || word != "first-run";
            assert!(
                !flag || script.contains(word),
                "{shell} does not know {word}"
            );
        }
    }
}

/// What bash offers at the end of a line, as readline splits it, in a directory with the script.
fn offered(dir: &Path, line: &str, split: &str) -> Vec<String> {
    let program = format!(
        "type compgen > /dev/null || exit 9\n. ./script\nCOMP_LINE={line:?}\n\
         COMP_POINT=${{#COMP_LINE}}\nCOMP_WORDS=({split})\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _fullpipe_beyond_words fullpipe \"${{COMP_WORDS[COMP_CWORD]#=}}\" \
         \"${{COMP_WORDS[COMP_CWORD - 1]}}\"\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
    );
    let binaries = Path::new(env!("CARGO_BIN_EXE_fullpipe")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let ended = std::process::Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &program])
        .env("PATH", format!("{}:{path}", binaries.display()))
        .current_dir(dir)
        .output();
    let text = String::from_utf8(ended.unwrap().stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn with_script() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let script = fullpipe(dir.path(), &["completions", "bash"]).stdout;
    std::fs::write(dir.path().join("script"), script).unwrap();
    dir
}

/// Names that no script knows are those of the result that stands in the line.
#[test]
fn bash_offers_the_flows_of_a_result() {
    let dir = with_script();
    two_flows(dir.path());
    let offered = |line: &str| offered(dir.path(), line, line);
    let line = "fullpipe export --to csv r --flow ";
    assert_eq!(offered(&format!("{line}m")), ["main"]);
    assert_eq!(offered(&format!("{line}s")), ["second"]);
    let trace = "fullpipe export r/series/case-0000-seed1.parquet --to qlog --flow s";
    assert_eq!(offered(trace), ["second"]);
    assert_eq!(offered("fullpipe figure r bars --of b"), ["bottleneck"]);
    assert_eq!(offered("fullpipe export nowhere --to csv --flow m"), [""]);
}

/// A result `r` of two flows.
fn two_flows(dir: &Path) {
    let two = format!("{SMALL}\n[[flow]]\nname = \"second\"\nstack = \"cubic\"\n");
    write(dir, "two.toml", &two);
    let run = [
        "run",
        "two.toml",
        "--out",
        "r",
        "-q",
        "--set",
        "duration=1s",
    ];
    let ended = fullpipe(dir, &run);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

/// What a program of another shell prints, in a directory with a result of two flows and the
/// shell's script; `None` where there is no such shell.
fn told(shell: &str, script: &str, args: &[&str]) -> Option<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    two_flows(dir.path());
    let completions = fullpipe(dir.path(), &["completions", shell]).stdout;
    std::fs::write(dir.path().join("script"), completions).unwrap();
    let binaries = Path::new(env!("CARGO_BIN_EXE_fullpipe")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let ended = std::process::Command::new(shell)
        .args(args)
        .args(["-c", script])
        .env("PATH", format!("{}:{path}", binaries.display()))
        .env("HOME", dir.path())
        .current_dir(dir.path())
        .output();
    let Ok(ended) = ended else {
        eprintln!("skipped: there is no {shell}");
        return None;
    };
    let text = String::from_utf8(ended.stdout).unwrap();
    let more = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.success(), "{text}\n{more}");
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn fish_offers_the_flows_of_a_result() {
    let script = "source script\n\
         complete -C 'fullpipe export --to csv r --flow '\necho\n\
         complete -C 'fullpipe export r/series/case-0000-seed1.parquet --to qlog --flow s'\necho\n\
         complete -C 'fullpipe figure r bars --of b'\necho\n\
         complete -C 'fullpipe export nowhere --to csv --flow m'";
    if let Some(told) = told("fish", script, &["--no-config"]) {
        assert_eq!(told, ["main", "second", "", "second", "", "bottleneck", ""]);
    }
}

/// The completion system itself needs a terminal: the script's function is called as it calls it.
#[test]
fn zsh_offers_the_flows_of_a_result() {
    let of_zsh = fullpipe(Path::new("."), &["completions", "zsh"]).stdout;
    for ask in ["export --to csv --flow'", "figure matrix --of'"] {
        let argument = format!(":NAME: _fullpipe_names {ask}");
        assert_eq!(of_zsh.matches(&argument).count(), 1, "{argument}");
    }
    let script = "compdef() { }\n\
         compadd() { shift; print -l -- $@; print }\n\
         _call_program() { shift; eval \"$@\" }\n\
         . ./script\n\
         words=(export --to csv r --flow ''); _fullpipe_names export --to csv --flow\n\
         words=(export r/series/case-0000-seed1.parquet --to qlog --flow ''); \
         _fullpipe_names export --to csv --flow\n\
         words=(figure r bars --of b); _fullpipe_names figure matrix --of\n\
         words=(export nowhere --to csv --flow m)\n\
         _fullpipe_names export --to csv --flow || print none";
    if let Some(told) = told("zsh", script, &["-f"]) {
        let flows = ["main", "second", ""];
        let of = ["main", "second", "bottleneck", "return-20ms", "", "none"];
        assert_eq!(told, [&flows[..], &flows, &of].concat());
    }
}

#[test]
fn bash_offers_what_stands_behind_a_sign_and_directories() {
    let dir = with_script();
    for name in ["r1", "rm", "other"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let offered = |line: &str, split: &str| offered(dir.path(), line, split);
    assert_eq!(
        offered("fullpipe figure r", "fullpipe figure r"),
        ["r1", "rm"]
    );
    let kinds = offered("fullpipe figure r1 re", "fullpipe figure r1 re");
    assert_eq!(kinds, ["response"]);
    let queues = offered(
        "fullpipe run x --set path.queue=co",
        "fullpipe run x --set path.queue = co",
    );
    assert!(queues.contains(&"codel".to_owned()), "{queues:?}");
    let stack = "fullpipe run x --set flow.main.stack=";
    let stacks = offered(stack, "fullpipe run x --set flow.main.stack =");
    assert!(stacks.contains(&"cubic".to_owned()), "{stacks:?}");
    let flow = offered("fullpipe run x --set flow.", "fullpipe run x --set flow.");
    assert!(flow.contains(&"flow.stack=".to_owned()), "{flow:?}");
    let list = "fullpipe agree x --grounds sim,k";
    assert_eq!(offered(list, list), ["sim,kernel"]);
    let listed = offered("fullpipe list metrics util", "fullpipe list metrics util");
    assert_eq!(listed, ["utilization"]);
    let threshold = "fullpipe compare a b --threshold goodp";
    assert_eq!(offered(threshold, threshold), ["goodput_mbps="]);
}

#[test]
fn man_pages_are_written_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let ended = fullpipe(dir.path(), &["man", "man1"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut names: Vec<String> = std::fs::read_dir(dir.path().join("man1"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let commands = [
        "",
        "-agree",
        "-check",
        "-compare",
        "-completions",
        "-config",
        "-doctor",
        "-emulate",
        "-export",
        "-falsify",
        "-figure",
        "-history",
        "-law",
        "-linux",
        "-linux-build",
        "-linux-list",
        "-list",
        "-man",
        "-observe",
        "-ping",
        "-report",
        "-run",
        "-schema",
        "-send",
        "-serve",
        "-set",
        "-sweep",
        "-top",
        "-tune",
        "-tune-adopt",
        "-tune-apply",
        "-tune-check",
        "-tune-compare",
        "-tune-doctor",
        "-tune-explain",
        "-tune-flows",
        "-tune-get",
        "-tune-inject",
        "-tune-off",
        "-tune-on",
        "-tune-plan",
        "-tune-probe",
        "-tune-release",
        "-tune-revert",
        "-tune-run",
        "-tune-set",
        "-tune-status",
        "-tune-watch",
    ];
    let mut wanted: Vec<String> = commands.iter().map(|c| format!("fullpipe{c}.1")).collect();
    wanted.sort();
    assert_eq!(names, wanted);
    let page = std::fs::read_to_string(dir.path().join("man1/fullpipe-run.1")).unwrap();
    assert!(
        page.contains(".SH OPTIONS") && page.contains("\\-\\-resume"),
        "{page}"
    );
    // Examples stand as they can be copied, and the synopsis says what is repeated.
    let (_, examples) = page.split_once("\n.SH EXAMPLES\n.nf\n").unwrap();
    let (examples, _) = examples.split_once("\n.fi\n").unwrap();
    assert!(
        examples.starts_with("  fullpipe run first\\-run\n"),
        "{examples}"
    );
    assert!(!page.contains("SH EXTRA"));
    assert!(
        page.contains("fullpipe run [OPTIONS] <SCENARIO>...\n.fi\n"),
        "{page}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &["list", "stacks"][..],
        &["schema", "result"],
        &["man"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(Path::new("."), args)
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn the_lists_are_complete_and_parse() {
    let json = |what: &str| -> serde_json::Value {
        let ended = fullpipe(Path::new("."), &["list", what, "--format", "json"]);
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let names = |list: &serde_json::Value| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|e| e["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let stacks = names(&json("stacks")["stacks"]);
    let text = fullpipe(Path::new("."), &["list", "stacks"]).stdout;
    for name in &stacks {
        assert!(
            text.lines()
                .any(|l| l.trim_start().split("  ").next() == Some(name)),
            "{name}"
        );
    }
    for name in [
        "reno",
        "highspeed",
        "cubic",
        "limited",
        "hystart++",
        "spread",
    ] {
        assert!(stacks.iter().any(|s| s == name), "{name}");
    }
    let metrics = names(&json("metrics")["metrics"]);
    assert!(metrics.iter().any(|m| m == "rtt_ms.p95"));
    let scenarios = names(&json("scenarios")["scenarios"]);
    for name in [
        "first-run",
        "early-loss",
        "one-drop",
        "slow-start-cap",
        "response",
    ] {
        assert!(scenarios.iter().any(|s| s == name), "{name}");
    }
}

#[test]
fn one_entry_is_shown_with_its_parameters() {
    let ended = fullpipe(Path::new("."), &["list", "stacks", "aimd"]);
    insta::assert_snapshot!(ended.stdout);
}

fn readme() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// `UPDATE_DOCS=1 cargo test -p fullpipe` writes the output and the picture anew.
#[test]
fn the_readme_shows_the_real_output() {
    let dir = tempfile::tempdir().unwrap();
    let ended = fullpipe(dir.path(), &["run", "first-run", "--out", "results"]);
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let (path, text) = readme();
    let (before, rest) = text
        .split_once(README_COMMAND)
        .expect("README.md shows the command");
    let (shown, after) = rest
        .split_once("first-run: 4 runs")
        .expect("README.md shows the speed");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let made = format!(
            "{before}{README_COMMAND}{}first-run: 4 runs{after}",
            ended.stdout
        );
        std::fs::write(&path, made).unwrap();
        let picture = path.with_file_name("docs").join("img/first-run.png");
        std::fs::copy(dir.path().join("results/figures/overview.png"), picture).unwrap();
        return;
    }
    assert!(
        shown == ended.stdout,
        "README.md shows\n{shown}\nbut it is\n{}",
        ended.stdout
    );
}

const README_COMMAND: &str = "$ fullpipe run first-run --out results\n";

#[test]
fn the_readme_s_scenario_is_valid() {
    let (_, text) = readme();
    let scenario = text
        .split_once("```toml\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .unwrap()
        .0;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("my-path.toml"), scenario).unwrap();
    let ended = fullpipe(dir.path(), &["check", "my-path.toml"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(
        ended.stdout,
        "my-path.toml: ok: 8 cases x 5 seeds = 40 runs, 1 expectation\n"
    );
    for stack in text
        .lines()
        .filter_map(|l| l.strip_prefix("| `")?.split('`').next())
    {
        let set = format!("flow.main.stack={stack}");
        std::fs::write(dir.path().join("small.toml"), crate::process::SMALL).unwrap();
        let ended = fullpipe(dir.path(), &["check", "small.toml", "--set", &set]);
        assert_eq!(ended.code, 0, "{stack}: {}", ended.stderr);
    }
}

#[test]
fn an_axis_without_values_says_what_it_takes() {
    for axis in ["path.rate", "path.rate=", "=20ms"] {
        let args = ["sweep", "one-drop", "--out", "never", "--axis", axis];
        let ended = fullpipe(Path::new("."), &args);
        assert_eq!(ended.code, 2);
        let said = "expected `key=a,b`, for example `path.rtt=20ms,80ms`";
        assert!(ended.stderr.contains(said), "{axis}: {}", ended.stderr);
    }
}

#[test]
fn a_sweep_without_the_package_says_how_to_get_it() {
    let args = ["sweep", "one-drop", "--out", "never"];
    let with = |python: &str| {
        let ended = command(Path::new("."), &args)
            .env("FULLPIPE_PYTHON", python)
            .output();
        finished(ended.unwrap())
    };
    let ended = with("/nowhere/python");
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("cannot start /nowhere/python"),
        "{}",
        ended.stderr
    );
    // It starts and has no such package, whatever it is asked.
    let ended = with("false");
    assert_eq!(ended.code, 3);
    assert!(
        ended.stderr.contains("pip install ./crates/py"),
        "{}",
        ended.stderr
    );
}
