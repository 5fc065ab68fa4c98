//! Rows of `run --format csv` and `ndjson` come while later cases are still to be run, and memory
//! does not depend on how many there are.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::process::{command, fullpipe, write};

/// A matrix of 6^5 cases of some packets each.
const MANY: &str = r#"name = "many"
duration = "20ms"
seeds = [1]

[path]
rate = "10Mbit/s"
rtt = "4ms"

[[flow]]
name = "main"
stack = "reno"

[matrix]
"flow.main.stack" = ["reno", "cubic", "bic", "highspeed", "scalable", "htcp"]
"path.rate" = ["1Mbit/s", "2Mbit/s", "3Mbit/s", "4Mbit/s", "5Mbit/s", "6Mbit/s"]
"path.rtt" = ["1ms", "2ms", "3ms", "4ms", "5ms", "6ms"]
"path.buffer" = ["5 packets", "6 packets", "7 packets", "8 packets", "9 packets", "10 packets"]
"path.loss" = [0, 0.01, 0.02, 0.03, 0.04, 0.05]

[measure]
trace = "off"
"#;

const CASES: usize = 7776;

/// A sixth of them: still many times what a pipe holds.
const FEWER: usize = 1296;

fn fewer() -> String {
    let lines = MANY.lines().filter(|line| !line.starts_with("\"path.loss"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Starts `run` and gives what it prints to `see`, line by line, with its number.
fn watched(dir: &Path, args: &[&str], mut see: impl FnMut(usize, &str, &Child)) -> Child {
    let mut command = command(dir, args);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (i, line) in lines.enumerate() {
        see(i, &line.unwrap(), &child);
    }
    child
}

#[test]
fn rows_come_while_later_cases_are_still_to_be_run() {
    let dir = tempfile::tempdir().unwrap();
    // Long enough that the signal finds most of them waiting.
    write(dir.path(), "many.toml", &MANY.replace("\"20ms\"", "\"1s\""));
    for (format, heads) in [("csv", 1), ("ndjson", 0)] {
        let mut rows = 0;
        let args = ["run", "many.toml", "--format", format];
        let mut child = watched(dir.path(), &args, |i, line, child| {
            if i == heads {
                let first = ["many,sim,0,reno,1Mbit/s,1ms,", "{\"fullpipe\":"][1 - heads];
                assert!(line.starts_with(first), "{line}");
                let id = child.id().to_string();
                let sent = Command::new("kill").args(["-INT", &id]).status();
                assert!(sent.unwrap().success());
            }
            rows += usize::from(i >= heads);
        });
        assert_eq!(child.wait().unwrap().code(), Some(130), "{format}");
        assert!((1..CASES / 2).contains(&rows), "{format}: {rows} rows");
    }
}

/// `run ... --format csv | head`: nothing else would come of the runs, so that they end; a file
/// that was asked for is whole all the same.
#[test]
fn runs_end_with_the_reader_of_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "many.toml", &fewer());
    for (file, is_whole) in [(None, false), (Some("all.xml"), true)] {
        let mut args = vec!["run", "many.toml", "--format", "csv"];
        args.extend(file.map(|f| ["--junit", f]).into_iter().flatten());
        let mut command = command(dir.path(), &args);
        let mut child = (command.stdout(Stdio::piped()).stderr(Stdio::piped()))
            .spawn()
            .unwrap();
        let mut rows = BufReader::new(child.stdout.take().unwrap());
        let mut head = String::new();
        rows.read_line(&mut head).unwrap();
        drop(rows);
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(
            head.starts_with("scenario,ground,") && ended.status.success(),
            "{said}"
        );
        let all = said.contains(&format!("many: {FEWER} runs"));
        assert_eq!(all, is_whole, "{said}");
        assert_eq!(dir.path().join("all.xml").exists(), is_whole);
    }
}

/// Neither an expectation that fails nor Ctrl-C, which ends a pipe's reader as well, is silent
/// because nobody reads.
#[test]
fn a_closed_pipe_hides_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let failing = "\n[[expect]]\nmetric = \"goodput_mbps\"\nat_least = 1e6\n";
    write(dir.path(), "fails.toml", &(fewer() + failing));
    write(dir.path(), "long.toml", &MANY.replace("\"20ms\"", "\"1s\""));
    for (file, signal, code) in [("fails.toml", false, 1), ("long.toml", true, 130)] {
        let mut command = command(dir.path(), &["run", file, "--format", "ndjson"]);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        if signal {
            while !catches_interrupts(&child) {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            let id = child.id().to_string();
            let sent = Command::new("kill").args(["-INT", &id]).status();
            assert!(sent.unwrap().success());
        }
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{file}");
    }
}

/// It has a handler for SIGINT, or is over.
fn catches_interrupts(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_none_or(|mask| mask & 2 != 0)
}

/// Ten runs of each of a hundred thousand cases, the most that a matrix may have, are to fit into
/// 300 MB: 3 kB a case.
#[test]
#[cfg(target_os = "linux")]
fn memory_of_many_cases_is_small() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "many.toml", MANY);
    let peak = |set: &[&str]| {
        let (mut peak, mut rows) = (0, 0);
        let args = [&["run", "many.toml", "--format", "csv"], set].concat();
        let mut child = watched(dir.path(), &args, |i, _, child| {
            rows = i;
            // A pipe holds some ten rows: the last look is at a run that is all but over.
            if i % 50 == 0 || i == 1 {
                peak = high_water(child).unwrap_or(peak);
            }
        });
        assert!(child.wait().unwrap().success());
        (peak, rows)
    };
    // Runs that last, so that the process is there to be looked at.
    let few = [
        "path.rate=100Mbit/s",
        "path.rtt=1ms",
        "path.loss=0",
        "duration=5s",
    ];
    let few: Vec<&str> = few.iter().flat_map(|set| ["--set", set]).collect();
    let (few, rows) = peak(&few);
    assert!(few > 0, "it was over at once");
    assert_eq!(rows, 36);
    let (many, rows) = peak(&[]);
    assert_eq!(rows, CASES);
    let each = many.saturating_sub(few) / (CASES - 36);
    assert!(each < 3000, "{few} bytes, then {many}: {each} a case");
}

/// A run of a result takes its key, its seed and its place: a million are to fit into 300 MB.
#[test]
#[cfg(target_os = "linux")]
#[ignore = "makes 61,200 runs: a part of `make verify`"]
fn memory_of_many_runs_with_a_directory_is_small() {
    // Each run is flushed to the disk, which takes longer than all the rest.
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: no /dev/shm");
        return;
    };
    let small = MANY.split("[matrix]").next().unwrap();
    write(dir.path(), "one.toml", small);
    let peak = |runs: usize| {
        let out = runs.to_string();
        let args = [
            "run", "one.toml", "--repeat", &out, "--out", &out, "--quiet",
        ];
        let mut command = command(dir.path(), &args);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            peak = high_water(&child).unwrap_or(peak);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(child.wait().unwrap().success());
        std::fs::remove_dir_all(dir.path().join(&out)).unwrap();
        peak
    };
    // Both have as many series as a result has at most, and buffers that are as large as they get.
    let (few, many) = (peak(20_600), peak(40_600));
    let each = many.saturating_sub(few) / 20_000;
    assert!(each < 350, "{few} bytes, then {many}: {each} a run");
}

/// Most memory that a process has had, bytes; `None` when it is over.
#[cfg(target_os = "linux")]
fn high_water(child: &Child) -> Option<usize> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// What was printed row by row is what is printed at the end where a dashboard or a table stands
/// before it: header, order and cells.
#[test]
fn rows_of_several_scenarios_have_one_header() {
    let dir = tempfile::tempdir().unwrap();
    let small = crate::process::SMALL;
    write(dir.path(), "a.toml", small);
    let traffic = "[[traffic]]\nname = \"p\"\nkind = \"ping\"\ninterval = \"100ms\"\n\
                   [matrix]\n\"path.mtu\" = [1500, 9000]\n";
    let other = small.replace("\"small\"", "\"other\"");
    write(
        dir.path(),
        "b.toml",
        &format!("seeds = [1, 2]\n{other}{traffic}"),
    );
    let ended = fullpipe(
        dir.path(),
        &["run", "a.toml", "b.toml", "-q", "--format", "csv"],
    );
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows: Vec<Vec<&str>> = ended
        .stdout
        .lines()
        .map(|l| l.split(',').collect())
        .collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    let cells = |name: &str| -> Vec<&str> {
        let at = column(name);
        rows[1..].iter().map(|row| row[at]).collect()
    };
    assert_eq!(
        cells("scenario"),
        ["small", "other", "other", "other", "other"]
    );
    assert_eq!(cells("path.mtu"), ["", "1500", "1500", "9000", "9000"]);
    assert_eq!(cells("flow"), ["main", "main", "p", "main", "p"]);
    assert_eq!(cells("seeds"), ["1", "2", "2", "2", "2"]);
    assert!(cells("goodput_mbps_ci95_low")[0].is_empty());
}
