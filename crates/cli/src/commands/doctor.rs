//! `fullpipe doctor`: what this host can do.

use std::env;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use fullpipe_doctor::tcp::LongPath;
use fullpipe_doctor::{Area, Finding, ROOT, Remedy, State};
use fullpipe_grounds::{Far, GROUNDS};
use serde_json::{Value, json};

use crate::args::{Doctor, Examined, ShortFormat};
use crate::commands::tune;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table};

/// Runs the command.
pub fn doctor(args: &Doctor) -> Result<Exit, Failure> {
    let wanted = |one: Examined| args.areas.is_empty() || args.areas.contains(&one);
    let path = judged_for(args, wanted(Examined::Tcp))?;
    let mut parts: Vec<Part> = Vec::new();
    if wanted(Examined::Grounds) {
        let mut findings = grounds()?;
        findings.push(build_of_a_kernel());
        parts.push(Part {
            word: "grounds",
            purpose: "one second of a flow on each ground",
            findings,
        });
    }
    for area in Area::ALL.into_iter().filter(|a| wanted(examined(*a))) {
        let mut findings = area.examine(path);
        if area == Area::Bpf {
            findings.extend(tune::programs());
        }
        parts.push(Part {
            word: area.word(),
            purpose: area.purpose(),
            findings,
        });
    }
    // Hosts are examined last and shown before eBPF.
    parts.sort_by_key(|part| part.word == Area::Bpf.word());
    let lacking = show(&parts, args.json || args.format == ShortFormat::Json)?;
    match !args.areas.is_empty() && lacking {
        true => Ok(Exit::Environment),
        false => Ok(Exit::Ok),
    }
}

/// The path that buffers are judged for, which only `tcp` looks at.
fn judged_for(args: &Doctor, is_judged: bool) -> Result<LongPath, Failure> {
    let default = LongPath::default();
    let given = args.rate.is_some() || args.rtt.is_some();
    if given && !is_judged {
        let message = "`--rate` and `--rtt` are of `tcp`, which is not asked for";
        return Err(Failure::new(Exit::Usage, message).hint("fullpipe doctor tcp --rate ..."));
    }
    Ok(LongPath {
        rate: args.rate.unwrap_or(default.rate),
        rtt: args.rtt.unwrap_or(default.rtt),
    })
}

/// Prints what was found; whether anything of it is lacking.
pub fn show(parts: &[Part], as_json: bool) -> Result<bool, Failure> {
    let most = match std::io::stdout().is_terminal() {
        true => MOST,
        false => usize::MAX,
    };
    output::data(&if as_json {
        json(parts)
    } else {
        table(parts, most)
    })?;
    let lacking = |part: &Part| part.findings.iter().any(|f| f.state == State::No);
    Ok(parts.iter().any(lacking))
}

/// Findings below one headline of the table.
pub struct Part {
    /// For programs.
    pub word: &'static str,
    /// The headline.
    pub purpose: &'static str,
    /// In the order of the trials.
    pub findings: Vec<Finding>,
}

fn examined(area: Area) -> Examined {
    match area {
        Area::Time => Examined::Time,
        Area::Sockets => Examined::Sockets,
        Area::Tcp => Examined::Tcp,
        Area::Hosts => Examined::Hosts,
        Area::Bpf => Examined::Bpf,
    }
}

/// One flow of one second, slow enough for any machine.
const SCENARIO: &str = r#"
name = "doctor"
duration = "1s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
preset = "linux"
"#;

/// Runs the scenario on each ground that needs no other host, by this program as a user runs it.
fn grounds() -> Result<Vec<Finding>, Failure> {
    let here = GROUNDS.iter().filter(|g| g.far == Far::Here);
    here.map(|ground| try_on(ground.name)).collect()
}

/// Whether `fullpipe linux build` would find what it takes.
fn build_of_a_kernel() -> Finding {
    const NAME: &str = "kernel of ground linux, to build";
    let request = fullpipe_linux::Request {
        source: fullpipe_linux::Source::Debian(fullpipe_linux::DEFAULT_VERSION.to_owned()),
        name: None,
        hz: 250,
        jobs: 1,
    };
    match fullpipe_linux::rehearse(&request) {
        Ok(found) => Finding::yes(NAME, found),
        // Kernels that are built already run without.
        Err(e) => Finding::limited(NAME, e.to_string()).remedy(e.hint()),
    }
}

fn try_on(ground: &str) -> Result<Finding, Failure> {
    let failed = |e| Failure::io(format_args!("a run on ground {ground}"), &e);
    let own = env::vars_os().map(|(name, _)| name);
    let own = own.filter(|name| name.to_string_lossy().starts_with("FULLPIPE_RUN_"));
    let mut run = Command::new(env::current_exe().map_err(failed)?);
    // What the user has set for runs is not what is tried.
    for name in own {
        run.env_remove(name);
    }
    let mut run = run
        .env(crate::config::VARIABLE, "")
        .args([
            "--color", "never", "run", "-", "--quiet", "--format", "json",
        ])
        .args(["--ground", ground])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = run.stdin.take() {
        // A run that does not read has said why.
        let _ = input.write_all(SCENARIO.as_bytes());
    }
    let ended = run.wait_with_output().map_err(failed)?;
    let said = String::from_utf8_lossy(&ended.stderr);
    Ok(judge(ground, ended.status.code(), &said))
}

/// What a run's exit code and messages say of its ground.
fn judge(ground: &str, exit: Option<i32>, said: &str) -> Finding {
    let state = match exit {
        Some(0) => State::Yes,
        Some(5) => State::Limited,
        _ => State::No,
    };
    let line = |start: &str| {
        let found = said
            .lines()
            .find_map(|l| l.trim_start().strip_prefix(start));
        found.map(|text| text.trim().to_owned())
    };
    let found = match state {
        State::Yes => Some("ran".to_owned()),
        // `... worst: the near host was late: 3 ms (bound 1 ms); the far host ...; do this`
        State::Limited => line("NOT VALID doctor:").map(|text| {
            let worst = text.rsplit("worst: ").next().unwrap_or_default();
            first_clause(worst).to_owned()
        }),
        State::No => line("error:"),
    };
    Finding {
        name: format!("ground {ground}"),
        state,
        found: found.unwrap_or_else(|| format!("ended with {exit:?}")),
        remedy: match state {
            State::Limited => Some("what is wrong with `time` is wrong here".into()),
            _ => line("hint:").map(Remedy::from),
        },
    }
}

/// Up to the first semicolon that stands in no brackets.
fn first_clause(text: &str) -> &str {
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ';' && depth == 0
    });
    &text[..end.unwrap_or(text.len())]
}

/// Characters of what was found in a table on a terminal.
const MOST: usize = 100;

/// `most` characters at most, in whole words.
fn short(found: &str, most: usize) -> String {
    let Some((end, _)) = found.char_indices().nth(most) else {
        return found.to_owned();
    };
    let words = found[..end].rfind(' ').unwrap_or(end);
    format!("{} …", &found[..words])
}

fn table(parts: &[Part], most: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let mut table = Table::new();
        table.column(Align::Left, &[part.purpose]);
        table.column(Align::Left, &[""]);
        table.column(Align::Left, &[""]);
        for finding in &part.findings {
            table.row(vec![
                finding.name.clone(),
                finding.state.word().to_owned(),
                short(&finding.found, most),
            ]);
        }
        text += &table.text();
        text += "\n";
    }
    let findings = || parts.iter().flat_map(|p| &p.findings);
    // A remedy of several findings stands once.
    let mut remedies: Vec<(String, Vec<&str>)> = Vec::new();
    let capabilities = capabilities(parts);
    for finding in findings() {
        let Some(remedy) = remedy(finding, &capabilities) else {
            continue;
        };
        match remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, names)) => names.push(finding.name.as_str()),
            None => remedies.push((remedy, vec![finding.name.as_str()])),
        }
    }
    for (remedy, names) in remedies {
        text += &format!("{}: {remedy}\n", names.join(", "));
    }
    let count = |state| findings().filter(|f| f.state == state).count();
    let (no, limited) = (count(State::No), count(State::Limited));
    let whole = findings().count() - no - limited;
    text + &format!("{whole} there, {limited} limited, {no} lacking\n")
}

/// Capabilities that findings ask for, all together.
fn capabilities(parts: &[Part]) -> Vec<&'static str> {
    let findings = parts.iter().flat_map(|p| &p.findings);
    let granted = findings.filter_map(|f| match f.remedy.as_ref()? {
        Remedy::Capabilities { names, .. } => Some(names),
        Remedy::Words(_) => None,
    });
    let mut all: Vec<&str> = Vec::new();
    for name in granted.flatten() {
        if !all.contains(name) {
            all.push(name);
        }
    }
    all
}

/// What mends a finding; of capabilities, with all that others lack.
fn remedy(finding: &Finding, capabilities: &[&'static str]) -> Option<String> {
    let remedy = finding.remedy.as_ref()?;
    let Remedy::Capabilities { names, or } = remedy else {
        return Some(remedy.to_string());
    };
    let are_all = names.len() == capabilities.len();
    let all = Remedy::Capabilities {
        names: capabilities.to_vec(),
        or: if are_all { or } else { ROOT },
    };
    Some(all.to_string())
}

fn json(parts: &[Part]) -> String {
    let capabilities = capabilities(parts);
    let of = |part: &Part| -> Vec<Value> {
        let findings = part.findings.iter();
        let objects = findings.map(|finding| {
            json!({
                "area": part.word,
                "name": finding.name,
                "state": finding.state.word(),
                "found": finding.found,
                "remedy": remedy(finding, &capabilities),
            })
        });
        objects.collect()
    };
    let all: Vec<Value> = parts.iter().flat_map(of).collect();
    let value = json!({ "fullpipe": env!("CARGO_PKG_VERSION"), "findings": all });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each command alone would take away what the other gave.
    #[test]
    fn capabilities_are_granted_by_one_command() {
        let lacks = |name: &str, names: &[&'static str], or| {
            let names = names.to_vec();
            Finding::no(name, "refused").remedy(Remedy::Capabilities { names, or })
        };
        let three = ["cap_net_admin", "cap_perfmon", "cap_bpf"];
        let part = |word, findings| Part {
            word,
            purpose: word,
            findings,
        };
        let parts = [
            part(
                "time",
                vec![lacks(
                    "real-time priority",
                    &["cap_sys_nice"],
                    "`ulimit -r 10`",
                )],
            ),
            part(
                "bpf",
                vec![
                    lacks("maps", &three, ROOT),
                    lacks("algorithms", &three, ROOT),
                ],
            ),
            part(
                "hosts",
                vec![Finding::no("tun", "refused").remedy("sudo modprobe tun")],
            ),
        ];
        let text = table(&parts, MOST);
        let remedies: Vec<&str> = text.lines().filter(|l| l.contains("sudo ")).collect();
        assert_eq!(
            remedies,
            [
                "real-time priority, maps, algorithms: sudo setcap cap_sys_nice,cap_net_admin,\
                 cap_perfmon,cap_bpf+ep \"$(command -v fullpipe)\", or run as root",
                "tun: sudo modprobe tun",
            ]
        );
        // By itself it keeps what else would do.
        let alone = table(&parts[..1], MOST);
        assert!(alone.contains("cap_sys_nice+ep"), "{alone}");
        assert!(alone.contains("or `ulimit -r 10`"), "{alone}");
    }

    #[test]
    fn a_run_s_messages_become_a_finding() {
        let lacking = "error: no kernel has been built\n  hint: fullpipe linux build\n";
        let finding = judge("linux", Some(3), lacking);
        assert_eq!(finding.state, State::No);
        assert_eq!(finding.found, "no kernel has been built");
        assert_eq!(finding.remedy, Some("fullpipe linux build".into()));
        let late = "NOT VALID doctor: 1 of 1 cases do not count; worst: late by 9 ms; do this\n";
        assert_eq!(judge("udp", Some(5), late).found, "late by 9 ms");
        let brackets =
            "NOT VALID doctor: worst: packets left 9 ms late (p99; bound 1 ms); do this\n";
        let found = judge("udp", Some(5), brackets).found;
        assert_eq!(found, "packets left 9 ms late (p99; bound 1 ms)");
        let long = "a round trip of some milliseconds ".repeat(4);
        let shown = short(&long, MOST);
        let words = shown.strip_suffix(" …").unwrap();
        assert!(shown.chars().count() <= 102, "{shown}");
        assert!(long[words.len()..].starts_with(' '), "{shown}");
        assert_eq!(short("ran", MOST), "ran");
        assert_eq!(judge("sim", Some(0), "").state, State::Yes);
        assert_eq!(judge("sim", None, "").found, "ended with None");
    }
}
