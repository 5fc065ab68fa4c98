//! `fullpipe figure`: every kind in every form, own metrics, and what is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::{Finished, fullpipe, write};

/// Two stacks, two distances, three seeds, short flows beside.
const STUDY: &str = r#"name = "study"
duration = "6s"
seeds = 3

[path]
rate = "10Mbit/s"
rtt = "40ms"
buffer = "1BDP"
loss = 0.002

[[flow]]
name = "main"
stack = "reno"

[[traffic]]
name = "web"
kind = "short-flows"
every = "500ms"
size = "10 segments"
stack = "reno"

[matrix]
"flow.main.stack" = ["reno", "cubic"]
"path.rtt" = ["20ms", "40ms"]

[measure]
warmup = "1s"

[[expect]]
metric = "goodput_mbps / 10 - 0.01 * rtt_inflation"
where = { "flow.main.stack" = "cubic" }
at_least = 0.5
source = "own metric"

[[expect]]
metric = "utilization + goodput_mbps"
at_least = 100
source = "more than there is"
"#;

fn study(dir: &Path) {
    write(dir, "study.toml", STUDY);
    let run = fullpipe(dir, &["run", "study.toml", "--out", "r", "--quiet"]);
    // The second expectation cannot come true.
    assert_eq!(run.code, 1, "{}", run.stderr);
    let line = |words: &str| {
        run.stdout
            .lines()
            .find(|l| l.contains(words))
            .unwrap()
            .to_owned()
    };
    assert!(line("rtt_inflation").starts_with("pass"), "{}", run.stdout);
    assert!(line("utilization +").starts_with("FAIL"), "{}", run.stdout);
}

fn figure(dir: &Path, args: &[&str]) -> Finished {
    fullpipe(dir, &[&["figure", "r"], args].concat())
}

fn drawn(dir: &Path, args: &[&str], file: &str) -> String {
    let ended = figure(dir, &[args, &["--out", file]].concat());
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    fs::read_to_string(dir.join(file)).unwrap()
}

#[test]
fn every_kind_is_drawn_and_told_in_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    for (kind, words, heads) in [
        (
            "window",
            &[">reno<", ">cubic<", "rtt 20ms"][..],
            "curve,time_s,cwnd,cwnd_min,cwnd_max",
        ),
        (
            "goodput",
            &[">goodput (Mbit/s)<", "rtt 40ms"],
            "curve,time_s,goodput_mbps_mean",
        ),
        (
            "rtt",
            &[">round-trip time (ms)<", ">median and range<"],
            "curve,time_s,rtt_ms_median,rtt_ms_min,rtt_ms_max",
        ),
        (
            "queue",
            &[">queue (packets)<"],
            "curve,time_s,queue_packets_median,queue_packets_min,queue_packets_max",
        ),
        (
            "matrix",
            &[">goodput (Mbit/s)<", ">rtt 20ms<", ">cubic<"],
            "row,column,mean,ci95_low,ci95_high",
        ),
        (
            "bars",
            &[">rtt<"],
            "panel,line,value,mean,ci95_low,ci95_high",
        ),
        (
            "distribution",
            &[">completion time (s)<"],
            "panel,curve,value,fraction",
        ),
        (
            "response",
            &[">loss events per segment<"],
            "stack,rtt_ms,kind,loss_event_rate,window_segments",
        ),
    ] {
        let svg = drawn(dir, &[kind], "f.svg");
        for word in words {
            assert!(svg.contains(word), "{kind} {word}: {svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{kind}");
        let csv = drawn(dir, &[kind], "f.csv");
        assert_eq!(csv.lines().next(), Some(heads), "{kind}");
        assert!(csv.lines().count() > 4, "{kind}: {csv}");
    }
    // Without a file it goes beside the other pictures.
    assert_eq!(figure(dir, &["window"]).code, 0);
    assert!(dir.join("r/figures/window.svg").exists());
}

/// A part of the axes in every figure that has them, in the units that they show.
#[test]
fn a_range_cuts_the_axes_of_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let one = ["--where", "rtt=20ms"];
    for (kind, x, y, has, lacks) in [
        ("window", "2:4", "10:20", &[">2<", ">4<", ">20<"][..], ">6<"),
        ("goodput", "2:4", ":9", &[">2<", ">4<", ">9<"], ">10<"),
        ("rtt", "5:", "21:23", &[">5<", ">21<", ">23<"], ">1<"),
        ("queue", ":3", "-1:40", &[">3<", ">40<"], ">6<"),
        (
            "distribution",
            "0.1:1.3",
            "0.3:0.9",
            &[">0.2<", ">0.9<"],
            ">0.01<",
        ),
        ("response", "1e-4:1e-1", "2:50", &[">1e-4<", ">5<"], ">100<"),
    ] {
        let args = [&[kind, "--x-range", x, "--y-range", y][..], &one].concat();
        let svg = drawn(dir, &args, "f.svg");
        assert!(svg.contains("<clipPath"), "{kind}");
        for word in has {
            assert!(svg.contains(word), "{kind} {word}: {svg}");
        }
        assert!(!svg.contains(lacks), "{kind} {lacks}: {svg}");
    }
    // Below an axis of the matrix stand milliseconds.
    let bars = drawn(dir, &["bars", "--x-range", "10:30"], "f.svg");
    assert!(
        bars.contains(">20 ms<") && !bars.contains(">40 ms<"),
        "{bars}"
    );
    // Two panels beside each other have the same axes.
    let both = drawn(dir, &["window", "--x-range", "2:4"], "f.svg");
    assert!(both.contains(">4<") && !both.contains(">6<"), "{both}");
    for (args, words) in [
        (
            &["matrix", "--x-range", "1:2"][..],
            "--x-range: a table has no axes",
        ),
        (
            &["bars", "--where", "rtt=20ms", "--x-range", "1:2"],
            "the axis has names, no numbers",
        ),
        (&["response", "--x-range", "0:1"], "the axis is logarithmic"),
        (
            &["window", "--x-range", "60:"],
            "nothing of the figure is between the ends of 60:",
        ),
        (
            &["window", "--y-range", "1e6:"],
            "--y-range: nothing of the figure",
        ),
        (
            &["window", "--x-range", "4:2"],
            "it ends where it begins, or before",
        ),
        (&["window", "--x-range", "4"], "expected `FROM:TO`"),
        (
            &["window", "--x-range", "2:4", "--out", "f.csv"],
            "the numbers are written whole",
        ),
        (&["table", "--y-range", "2:4"], "a table has no axes"),
    ] {
        let refused = figure(dir, args);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(words),
            "{args:?}: {}",
            refused.stderr
        );
    }
}

/// What is drawn of a window is what `--where` leaves; a single panel lays both stacks over one
/// another.
#[test]
fn a_column_of_a_paper_is_as_wide_as_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let paper = [
        "--width",
        "84mm",
        "--font-size",
        "8",
        "--no-title",
        "--font",
        "Times",
    ];
    let args = [&["window", "--where", "rtt=20ms"], &paper[..]].concat();
    let svg = drawn(dir, &args, "w.svg");
    assert!(
        svg.contains("width=\"84.00mm\"") && svg.contains("'Times New Roman'"),
        "{svg}"
    );
    assert!(!svg.contains(">study<") && !svg.contains("rtt 20ms"));
    assert_eq!(svg.matches("stroke-width=\"1.3\"").count(), 2, "two curves");
    // The letters of all texts are of one size.
    let sizes: std::collections::BTreeSet<&str> = svg
        .split("font-size=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), ["12"]);
    let grey = drawn(dir, &[&args[..], &["--grey"]].concat(), "g.svg");
    let coloured = |svg: &str| svg.contains("#0072B2") || svg.contains("#D55E00");
    assert!(coloured(&svg) && !coloured(&grey));
}

/// Every kind of picture takes the height that it is given, and says what it needs where that is
/// too little.
#[test]
fn a_picture_is_as_tall_as_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let one = ["window", "--where", "rtt=20ms"];
    let kinds = [&one[..], &["window"], &["goodput"], &["matrix"], &["bars"]];
    for kind in kinds {
        let sized =
            |height: &'static str| [kind, &["--width", "174mm", "--height", height]].concat();
        for height in ["120mm", "190mm"] {
            let svg = drawn(dir, &sized(height), "h.svg");
            let written = format!(" height=\"{}.00mm\"", height.trim_end_matches("mm"));
            assert!(svg.contains(&written), "{kind:?} {height}: {}", &svg[..300]);
            // Nothing stands below the lower edge.
            let (_, rest) = svg.split_once("viewBox=\"0 0 ").unwrap();
            let size = rest.split('"').next().unwrap();
            let tall: f64 = size.split(' ').nth(1).unwrap().parse().unwrap();
            let places = svg.split("<text x=\"").skip(1);
            let lowest =
                places.filter_map(|t| t.split(" y=\"").nth(1)?.split('"').next()?.parse().ok());
            let lowest = lowest.fold(0.0, f64::max);
            assert!(
                0.6 * tall < lowest && lowest < tall,
                "{kind:?} {height}: {lowest} of {tall}"
            );
        }
        let ended = figure(dir, &[&sized("20mm")[..], &["--out", "low.svg"]].concat());
        assert_eq!(ended.code, 2, "{kind:?}");
        let words = "--height: the picture is ";
        assert!(ended.stderr.contains(words) && ended.stderr.contains("mm tall at least"));
        assert!(!dir.join("low.svg").exists());
    }
}

#[cfg(feature = "pdf")]
#[test]
fn a_pdf_has_text_and_its_font() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let ended = figure(dir, &["window", "--width", "84mm", "--out", "w.pdf"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let pdf = fs::read(dir.join("w.pdf")).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(
        text.starts_with("%PDF-") && text.contains("/FontFile2") && text.contains("/ToUnicode")
    );
    assert!(
        text.contains("/Title (study)") && text.contains("result.json sha256 "),
        "a figure can be traced"
    );
    // 84 mm are 238.11 points.
    let wide = text.split("/MediaBox [0 0 ").nth(1).unwrap();
    let wide: f64 = wide.split(' ').next().unwrap().parse().unwrap();
    assert!((wide - 238.11).abs() < 0.05, "{wide}");
    let missing = figure(
        dir,
        &["window", "--font", "No Such Family", "--out", "n.pdf"],
    );
    assert_eq!(missing.code, 3);
    assert!(
        missing.stderr.contains("no font `No Such Family`"),
        "{}",
        missing.stderr
    );
    assert!(
        missing.stderr.contains("hint: install one of them"),
        "{}",
        missing.stderr
    );
}

#[test]
fn tables_are_printed_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let printed = figure(dir, &["table"]);
    assert_eq!(printed.code, 0);
    assert!(printed.stdout.starts_with("stack"), "{}", printed.stdout);
    let tex = drawn(dir, &["table", "--where", "stack=cubic"], "t.tex");
    let spelled = [
        "table",
        "--where",
        "main.stack=cubic()",
        "--where",
        "rtt=0.02s",
    ];
    let one = figure(dir, &spelled);
    assert!(
        !one.stdout.contains("reno") && !one.stdout.contains("40ms"),
        "{}",
        one.stdout
    );
    assert!(one.stdout.contains("cubic"), "{}", one.stderr);
    assert!(
        tex.starts_with("\\begin{tabular}{llr") && !tex.contains("reno"),
        "{tex}"
    );
    assert!(tex.contains(" \\pm ") && tex.ends_with("\\end{tabular}\n"));
    for (what, form) in [("table", "csv"), ("matrix", "svg")] {
        let file = drawn(dir, &[what], &format!("o.{form}"));
        let piped = figure(dir, &[what, "--out", "-"]);
        let said = piped.stderr.contains("written:");
        assert_eq!((piped.code, said), (0, false), "{what}: {}", piped.stderr);
        assert_eq!(piped.stdout, file, "{what}");
    }
    let csv = drawn(dir, &["expectations"], "e.csv");
    assert!(csv.contains("own metric") && csv.contains("FAIL"), "{csv}");
    let matrix = drawn(dir, &["matrix", "--metric", "rtt_ms.p95"], "m.md");
    assert!(
        matrix
            .starts_with("| rtt p95 (ms) by stack | rtt 20ms | rtt 40ms |\n| :-- | --: | --: |\n"),
        "{matrix}"
    );
    assert!(drawn(dir, &["traffic"], "web.md").contains("web"));
    let links = figure(dir, &["links", "--where", "rtt=20ms"]);
    assert!(links.stdout.contains("wait mean"), "{}", links.stdout);
    assert!(links.stderr.contains("(warm-up)"), "{}", links.stderr);
    let asked = ["links", "--metric", "queueing_delay_ms.mean"];
    let csv = drawn(dir, &asked, "l.csv");
    let head = "seeds,link,queueing_delay_ms.mean,queueing_delay_ms.mean_ci95_low";
    assert!(csv.lines().next().unwrap().contains(head), "{csv}");
    assert!(csv.contains(",3,bottleneck,"), "{csv}");
}

/// Queue disciplines are called by what tells them apart, and found by that and by their tables.
#[test]
fn queues_that_compete_have_short_names_and_a_table_of_links() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let queues = STUDY.replace(
        "\"path.rtt\" = [\"20ms\", \"40ms\"]",
        "\"path.queue\" = [\"droptail\", { kind = \"codel\", ecn = true, target = \"5ms\" }]",
    );
    write(dir, "study.toml", &queues);
    let run = fullpipe(dir, &["run", "study.toml", "--out", "r", "--quiet"]);
    assert!(
        run.stdout.contains("codel with ecn and target 5ms"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("wait mean"), "{}", run.stdout);
    for queue in [
        "{target=\"5ms\",kind=\"codel\",ecn=true}",
        "codel with ecn and target 5ms",
    ] {
        let only = format!("queue={queue}");
        let table = figure(dir, &["table", "--where", &only]);
        assert_eq!(table.code, 0, "{}", table.stderr);
        assert!(!table.stdout.contains("droptail"), "{}", table.stdout);
        let matrix = figure(dir, &["matrix", "--where", &only, "--out", "m.md"]);
        assert_eq!(matrix.code, 0, "{}", matrix.stderr);
    }
    let bars = drawn(dir, &["bars"], "b.svg");
    assert!(
        bars.contains("codel with ecn") && !bars.contains("{&quot;"),
        "{bars}"
    );
}

/// A spreadsheet takes numbers: a column for each metric and end of its interval, or a row for each
/// seed.
#[test]
fn a_table_as_csv_has_numbers_and_the_metrics_that_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let two = ["--metric", "goodput_mbps", "--metric", "rtt_ms.p95"];
    let of = |kind: &str, file: &str| drawn(dir, &[&[kind][..], &two].concat(), file);
    let cells = |csv: &str| -> Vec<Vec<String>> {
        let cells = |line: &str| line.split(',').map(str::to_owned).collect();
        csv.lines().map(cells).collect()
    };
    let table = cells(&of("table", "numbers.csv"));
    let metrics = [
        "goodput_mbps",
        "goodput_mbps_ci95_low",
        "goodput_mbps_ci95_high",
        "rtt_ms.p95",
        "rtt_ms.p95_ci95_low",
        "rtt_ms.p95_ci95_high",
    ];
    let first = table[0].len() - metrics.len();
    assert_eq!(table[0][first..], metrics);
    for row in &table[1..] {
        let numbers = row[first..].iter().map(|cell| cell.parse::<f64>().unwrap());
        let numbers: Vec<f64> = numbers.collect();
        assert!(
            numbers[1] <= numbers[0] && numbers[0] <= numbers[2],
            "{row:?}"
        );
        assert_eq!(row.len(), table[0].len());
    }
    // The columns stand in the order of the flags, whatever they are metrics of.
    let turned = ["rtt_ms.p95", "jain", "goodput_mbps"];
    let flags = turned.map(|name| ["--metric", name]).concat();
    for kind in ["table", "runs"] {
        let csv = cells(&drawn(dir, &[&[kind][..], &flags].concat(), "turned.csv"));
        let heads = csv[0].iter().filter(|head| turned.contains(&head.as_str()));
        assert_eq!(heads.collect::<Vec<_>>(), turned, "{kind}");
        // Values follow their heads.
        let at = |name: &str| csv[0].iter().position(|head| head == name).unwrap();
        let value = |name: &str| csv[1][at(name)].parse::<f64>().unwrap();
        assert!(
            value("rtt_ms.p95") > 20.0 && value("goodput_mbps") < 10.0,
            "{kind}"
        );
    }
    // The mean of the seeds is that of the table.
    let runs = cells(&of("runs", "runs.csv"));
    let column = |name: &str| runs[0].iter().position(|head| head == name).unwrap();
    assert!(
        !runs[0]
            .iter()
            .any(|head| head.starts_with("var.") || head == "jain")
    );
    let (case, flow, goodput) = (column("case"), column("kind"), column("goodput_mbps"));
    let of_first = runs[1..]
        .iter()
        .filter(|row| row[case] == "0" && row[flow] == "flow");
    let seeds: Vec<f64> = of_first.map(|row| row[goodput].parse().unwrap()).collect();
    let mean: f64 = table[1][first].parse().unwrap();
    assert!(seeds.len() > 1, "{runs:?}");
    assert!((seeds.iter().sum::<f64>() / seeds.len() as f64 - mean).abs() < 1e-9);
    // A slip is answered, and a picture has one vertical axis.
    let refused = figure(dir, &["table", "--metric", "goodput_mbp"]);
    assert!(
        refused.stderr.contains("did you mean `goodput_mbps`?"),
        "{}",
        refused.stderr
    );
    let refused = figure(dir, &[&["bars"][..], &two].concat());
    assert!(
        refused.stderr.contains("`table` and `runs` take several"),
        "{}",
        refused.stderr
    );
}

/// Two flows whose stacks vary: every line says whose it is, and the panel whose stack it names.
#[test]
fn lines_of_two_competitors_name_their_flow_and_its_stack() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pair = r#"name = "pair"
duration = "3s"
seeds = 1
[path]
rate = "5Mbit/s"
rtt = "20ms"
return_rate = "5Mbit/s"
[[flow]]
name = "a"
stack = "reno"
[[flow]]
name = "b"
stack = "reno"
[matrix]
"flow.a.stack" = ["reno", "cubic"]
"flow.b.stack" = ["reno", "cubic"]
"#;
    write(dir, "pair.toml", pair);
    let run = fullpipe(dir, &["run", "pair.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let svg = drawn(dir, &["window"], "w.svg");
    for words in [
        "b: reno",
        "b: cubic",
        "a: reno",
        "a: cubic",
        "b against cubic",
    ] {
        assert!(svg.contains(&format!(">{words}<")), "{words}: {svg}");
    }
    assert!(!svg.contains(">reno, b<"), "{svg}");
    let csv = drawn(dir, &["window"], "w.csv");
    // Panel, then flow, opponent and its own stack.
    let line = "\"b: cubic, b against reno: cubic\",";
    assert!(csv.lines().any(|l| l.starts_with(line)), "{csv}");
    assert!(csv.lines().any(|l| l.starts_with("\"b: cubic, a: reno\",")));
    let one = drawn(dir, &["goodput", "--where", "flow.b.stack=cubic"], "g.svg");
    assert!(one.contains(">b against reno: cubic<"), "{one}");
    // Of two links the bottleneck is meant, as in an expectation; a missing directory is made.
    let of = |args: &[&str], file: &str| drawn(dir, &[&["matrix"], args].concat(), file);
    let usual = of(&["--metric", "utilization"], "new/below/u.csv");
    let named = of(&["--metric", "utilization", "--of", "bottleneck"], "n.csv");
    assert!(usual.lines().count() == 5 && usual == named, "{usual}");
    // What differs in the settings is said above the numbers.
    let again = [
        "run",
        "pair.toml",
        "--set",
        "path.rtt=40ms",
        "--out",
        "s",
        "-q",
    ];
    assert_eq!(fullpipe(dir, &again).code, 0);
    let compared = fullpipe(
        dir,
        &["compare", "r", "s", "--metric", "2 * utilization", "--all"],
    );
    assert!(
        compared.stdout.contains("\npath.rtt: 20ms -> 40ms\n"),
        "{}",
        compared.stdout
    );
    assert!(!compared.stdout.contains("()"), "{}", compared.stdout);
}

/// Where another flow has the stack of the second case, too, it still is the second.
#[test]
fn a_stack_looks_the_same_in_every_figure() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let pair = r#"name = "pair"
duration = "6s"
seeds = 1
[path]
rate = "5Mbit/s"
rtt = "20ms"
loss = 0.005
[[flow]]
name = "a"
stack = "cubic"
[[flow]]
name = "b"
stack = "reno"
[matrix]
"flow.b.stack" = ["reno", "cubic"]
"path.buffer" = ["1BDP", "2BDP"]
"#;
    write(dir, "pair.toml", pair);
    let run = fullpipe(dir, &["run", "pair.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    // The last colour before the name in the legend.
    let colour = |svg: &str, name: &str| {
        let at = svg
            .find(&format!(">{name}<"))
            .unwrap_or_else(|| panic!("{name}: {svg}"));
        let before = &svg[..svg[..at].rfind("<text").unwrap()];
        let from = before.rfind("=\"#").unwrap();
        before[from + 2..from + 9].to_owned()
    };
    let bars = drawn(dir, &["bars", "--of", "b"], "b.svg");
    let response = drawn(dir, &["response"], "r.svg");
    let goodput = drawn(dir, &["goodput"], "g.svg");
    for stack in ["reno", "cubic"] {
        let own = colour(&bars, stack);
        assert_eq!(colour(&response, stack), own, "{stack}");
        assert_eq!(colour(&goodput, &format!("b: {stack}")), own, "{stack}");
    }
}

/// The law of a stack is that of each round-trip time, and what is of one seed says so.
#[test]
fn a_response_is_one_of_each_round_trip_time() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"
name = "r"
duration = "20s"
seeds = 2
[path]
rate = "100Mbit/s"
rtt = "10ms"
[[flow]]
stack = "cubic"
drop = { every = 500 }
start_spread = "10ms"
[matrix]
"path.rtt" = ["10ms", "100ms"]
"flow.main.drop.every" = [500, 2000]
[measure]
warmup = "10s"
"#;
    write(dir, "r.toml", text);
    let run = fullpipe(dir, &["run", "r.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let csv = drawn(dir, &["response"], "r.csv");
    let laws = csv.lines().filter(|line| line.contains("law alone"));
    let mut rtts: Vec<&str> = laws.filter_map(|line| line.split(',').nth(1)).collect();
    rtts.dedup();
    let rtts: Vec<f64> = rtts.into_iter().map(|rtt| rtt.parse().unwrap()).collect();
    assert!(matches!(rtts[..], [a, b] if (10.0..12.0).contains(&a) && (100.0..102.0).contains(&b)));
    let svg = drawn(dir, &["response"], "r.svg");
    assert!(
        svg.contains(">cubic, 10 ms<") && svg.contains(">cubic, 100 ms<"),
        "{svg}"
    );
    for (kind, seed) in [("rtt", 1), ("goodput", 1), ("window", 1), ("load", 2)] {
        let asked = [
            kind,
            "--where",
            "path.rtt=10ms",
            "--where",
            "flow.main.drop.every=500",
        ];
        let second = ["--seed", "2"];
        let asked = [&asked[..], if seed == 2 { &second } else { &[] }].concat();
        let svg = drawn(dir, &asked, "s.svg");
        assert!(
            svg.contains(&format!("seed {seed}, one of 2")),
            "{kind}: {svg}"
        );
    }
}

/// An own metric is what its parts say: 2 x goodput, from the same seeds, with its interval.
#[test]
fn own_metrics_are_drawn_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let numbers = |metric: &str| -> Vec<[f64; 3]> {
        let csv = drawn(dir, &["matrix", "--metric", metric], "m.csv");
        let row = |line: &str| {
            let cells: Vec<f64> = line
                .split(',')
                .rev()
                .take(3)
                .map(|c| c.parse().unwrap())
                .collect();
            [cells[2], cells[1], cells[0]]
        };
        csv.lines().skip(1).map(row).collect()
    };
    let (once, twice) = (numbers("goodput_mbps"), numbers("2 * goodput_mbps"));
    assert_eq!(once.len(), 4);
    for (a, b) in once.iter().flatten().zip(twice.iter().flatten()) {
        assert!((2.0 * a - b).abs() < 1e-9, "{a} {b}");
    }
    let same = fullpipe(
        dir,
        &[
            "compare",
            "r",
            "r",
            "--metric",
            "utilization - 0.1 * rtt_inflation",
            "--all",
        ],
    );
    assert_eq!(same.code, 0, "{}", same.stderr);
    assert!(
        same.stdout.contains("utilization - 0.1 * rtt_inflation"),
        "{}",
        same.stdout
    );
}

#[test]
fn what_cannot_be_drawn_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    for (args, words) in [
        (
            &["window", "--out", "f.gif"][..],
            "write for example window.svg",
        ),
        (&["window", "--out", "f.tex"], "not a name with"),
        (
            &["window", "--metric", "jain"],
            "matrix, bars, distribution take a metric",
        ),
        (
            &["matrix", "--metric", "goodput"],
            "did you mean `goodput_mbps`?",
        ),
        (
            &["matrix", "--metric", "2 *"],
            "column 4: a number or a metric is missing",
        ),
        (&["matrix", "--of", "mein"], "there are main, web"),
        (
            &["matrix", "--where", "rtt=30ms"],
            "`path.rtt` is 20ms, 40ms",
        ),
        (
            &["matrix", "--where", "mtu=9000"],
            "the keys that vary are flow.main.stack, path.rtt",
        ),
        (&["matrix", "--width", "84"], "as `84mm`"),
        (&["matrix", "--font-size", "40"], "--width"),
        (&["matrix", "--height", "60mm"], "--width"),
        (
            &["matrix", "--width", "20mm", "--font-size", "12"],
            "--width",
        ),
        (
            &["table", "--where", "rtt=30ms"],
            "no case has `rtt = 30ms`: `path.rtt` is 20ms, 40ms",
        ),
    ] {
        let ended = figure(dir, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{args:?}");
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    let wrong = STUDY.replace("goodput_mbps / 10", "goodput / 10");
    write(dir, "wrong.toml", &wrong);
    let ended = fullpipe(dir, &["check", "wrong.toml"]);
    assert_eq!(ended.code, 2);
    let message = "wrong.toml:30: `expect[1].metric = \"goodput / 10 - 0.01 * rtt_inflation\"`: \
                   column 1: unknown metric `goodput`";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
}

/// An expression has no flow of its own: the one that is drawn is named, and how to draw another.
#[test]
fn whose_metric_is_drawn_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let second = "[[flow]]\nname = \"second\"\nstack = \"reno\"\nstart = \"3s\"\n\n[[traffic]]";
    let two = STUDY.replacen("[[traffic]]", second, 1);
    let (two, _) = two.split_once("[[expect]]").unwrap();
    write(dir, "two.toml", two);
    let run = fullpipe(dir, &["run", "two.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let metric = "goodput_mbps / 10";
    let bars = ["bars", "--metric", metric];
    let first = figure(dir, &[&bars[..], &["--out", "first.svg"]].concat());
    let said = "drawn of `main`; `--of NAME` takes another: `second`, `web`\n";
    assert!(first.stderr.starts_with(said), "{}", first.stderr);
    let svg = fs::read_to_string(dir.join("first.svg")).unwrap();
    assert!(svg.contains(">main: goodput_mbps / 10<"), "{svg}");
    let own = figure(
        dir,
        &[&bars[..], &["--of", "second", "--out", "own.svg"]].concat(),
    );
    assert!(!own.stderr.contains("drawn of"), "{}", own.stderr);
    let svg = fs::read_to_string(dir.join("own.svg")).unwrap();
    assert!(svg.contains(">second: goodput_mbps / 10<"), "{svg}");
    // What is of a case is of nobody, and where there is one link it need not be named.
    for metric in ["jain * 2", "utilization"] {
        let ended = figure(dir, &["bars", "--metric", metric, "--out", "case.svg"]);
        assert!(
            !ended.stderr.contains("drawn of"),
            "{metric}: {}",
            ended.stderr
        );
    }
}

/// Stacks that compete are named in the panel of either flow, each as that which it has there.
#[test]
fn under_load_each_flow_has_its_own_stack() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = "name = \"pair\"\nduration = \"4s\"\n[path]\nrate = \"20Mbit/s\"\nrtt = \"20ms\"\n\
                [[flow]]\nname = \"a\"\nstack = \"cubic\"\n[[flow]]\nname = \"b\"\n\
                stack = \"reno\"\n[matrix]\n\"flow.b.stack\" = [\"reno\", \"bbr\"]\n";
    fs::write(dir.join("pair.toml"), text).unwrap();
    let ran = fullpipe(dir, &["run", "pair.toml", "--out", "r", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let csv = drawn(dir, &["load"], "load.csv");
    let curves = csv.lines().skip(1);
    let curves: BTreeSet<(&str, &str)> = curves
        .filter_map(|line| {
            let mut cells = line.split(',');
            Some((cells.next()?, cells.next()?))
        })
        .collect();
    let wanted = [
        ("a: goodput (Mbit/s)", "a against bbr: cubic"),
        ("a: goodput (Mbit/s)", "a against reno: cubic"),
        ("b: goodput (Mbit/s)", "b: bbr"),
        ("b: goodput (Mbit/s)", "b: reno"),
    ];
    assert_eq!(curves, BTreeSet::from(wanted));
}

/// Throughput in both directions and the ping, one below the other; the streams of a flow add up to
/// what the table says of it.
#[test]
fn latency_under_load_is_one_picture() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let line = [
        "run", "rrul", "--quick", "--repeat", "1", "--out", "r", "--format", "json", "-q",
    ];
    let result: serde_json::Value = serde_json::from_str(&fullpipe(dir, &line).stdout).unwrap();
    let svg = drawn(dir, &["load"], "load.svg");
    for words in [
        "up: goodput (Mbit/s)",
        "down: goodput (Mbit/s)",
        "ping: ping (ms)",
        "queue droptail",
        "queue fq-codel",
    ] {
        assert!(svg.contains(&format!(">{words}<")), "{words}");
    }
    let csv = drawn(dir, &["load"], "load.csv");
    let rows = csv.lines().map(|l| l.split(',').collect::<Vec<_>>());
    // `up: goodput (Mbit/s),queue fq-codel,12.4,47.1,mean,,`, after the warm-up.
    for row in rows.clone().skip(1) {
        let (stat, is_mean) = (row[4], !row[0].starts_with("ping"));
        assert_eq!(stat, if is_mean { "mean" } else { "median" }, "{row:?}");
        assert_eq!(row[5].is_empty(), is_mean, "{row:?}");
    }
    let late = rows.filter(|r| r[2].parse().is_ok_and(|t: f64| t > 10.0));
    let late: Vec<Vec<&str>> = late.collect();
    let mean = |panel: &str, curve: &str| {
        let of = late
            .iter()
            .filter(|r| r[0].starts_with(panel) && r[1] == curve);
        let values: Vec<f64> = of.map(|r| r[3].parse().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    for (case, queue) in ["queue droptail", "queue fq-codel"].into_iter().enumerate() {
        for (flow, name) in ["up", "down"].into_iter().enumerate() {
            let said = &result["cases"][case]["flows"][flow]["goodput_mbps"];
            let (said, drawn) = (said.as_f64().unwrap(), mean(name, queue));
            assert!(
                (said - drawn).abs() < 0.02 * said,
                "{name}, {queue}: {said}, {drawn}"
            );
        }
        let said = &result["cases"][case]["traffic"][0]["rtt_ms"]["mean"];
        let (said, drawn) = (said.as_f64().unwrap(), mean("ping", queue));
        assert!((said - drawn).abs() < 2.0, "{queue}: {said} ms, {drawn} ms");
    }
}

/// Two flows, two buffers, pings beside, a row for every ACK.
const DUEL: &str = r#"name = "duel"
duration = "4s"
seeds = 2

[path]
rate = "10Mbit/s"
rtt = "40ms"

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
"path.buffer" = ["0.5BDP", "2BDP"]

[measure]
warmup = "1s"
trace = "full"
"#;

#[test]
fn flows_that_compete_have_a_panel_for_each_buffer() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(dir, "duel.toml", DUEL);
    let run = fullpipe(dir, &["run", "duel.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let curves = |csv: &str| -> Vec<String> {
        let lines = csv.lines().skip(1);
        let names = lines.filter_map(|l| Some(l.rsplitn(5, ',').nth(4)?.to_owned()));
        names
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect()
    };
    for kind in ["window", "rtt"] {
        let svg = drawn(dir, &[kind], "f.svg");
        for panel in [">buffer 0.5BDP<", ">buffer 2BDP<"] {
            assert!(svg.contains(panel), "{kind} {panel}: {svg}");
        }
    }
    // Whatever the buffer, the vertical axes are the same: numbers end beside their axis.
    let svg = drawn(dir, &["rtt"], "f.svg");
    let numbers = svg.split("text-anchor=\"end\"").skip(1);
    let numbers: Vec<&str> = numbers
        .map(|t| &t[t.find('>').unwrap()..t.find("</").unwrap()])
        .collect();
    let (left, right) = numbers.split_at(numbers.len() / 2);
    assert!(left.len() > 2 && left == right, "{numbers:?}");
    // A row of a picture has several samples; what is between their ends is shaded.
    assert_eq!(svg.matches("fill-opacity").count(), 4, "{svg}");
    let csv = drawn(dir, &["rtt"], "f.csv");
    for line in csv.lines().skip(1) {
        let numbers = line.rsplitn(4, ',').take(3);
        let numbers: Vec<f64> = numbers.map(|n| n.parse().unwrap()).collect();
        let [max, min, median] = numbers[..] else {
            panic!("{line}")
        };
        assert!(min <= median && median <= max, "{line}");
    }
    let names = [
        "0.5BDP, a: reno",
        "0.5BDP, b: cubic",
        "2BDP, a: reno",
        "2BDP, b: cubic",
    ];
    let names = names.map(|name| format!("\"buffer {name}\""));
    assert_eq!(curves(&csv), names);
    // One flow alone is laid over itself.
    let svg = drawn(dir, &["rtt", "--of", "a"], "f.svg");
    assert!(
        !svg.contains(">buffer 2BDP<") || svg.matches("buffer 2BDP").count() < 4,
        "{svg}"
    );
    // Distributions of the flows' samples, and of the pings'.
    let csv = drawn(dir, &["cdf"], "f.csv");
    assert_eq!(csv.lines().next(), Some("panel,curve,rtt_ms,fraction"));
    let svg = drawn(dir, &["cdf"], "f.svg");
    for words in [">a: reno<", "all 2 seeds together, without the warm-up"] {
        assert!(svg.contains(words), "{words}: {svg}");
    }
    for of in ["a: reno", "b: cubic", "p"] {
        let of = format!("buffer 2BDP,{of},");
        let last = csv.lines().rfind(|l| l.starts_with(&of));
        assert!(last.is_some_and(|l| l.ends_with(",1")), "{of}: {last:?}");
    }
    let pings = drawn(dir, &["cdf", "--of", "p"], "f.csv");
    let rtts = pings
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(2).unwrap().parse::<f64>());
    assert!(rtts.map(Result::unwrap).all(|rtt| rtt >= 40.0), "{pings}");
}

#[test]
fn what_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    let tables = "`matrix`, `bars` and `distribution`";
    for (args, what, hint) in [
        (
            &["window", "--seed", "77"][..],
            "no seed 77",
            "there are 1 to 3",
        ),
        (&["rtt", "--seed", "77"], "no seed 77", "there are 1 to 3"),
        (
            &["window", "--of", "renno"],
            "no flow `renno`",
            "there is `main`",
        ),
        (&["rtt", "--of", "web"], "no flow `web`", "there is `main`"),
        (
            &["cdf"],
            "no round-trip times one by one",
            "trace = \"full\"",
        ),
        (
            &["runs", "--metric", "stability*2"],
            "no metric `stability*2`",
            tables,
        ),
        (
            &["table", "--metric", "queueing_delay_ms.mean"],
            "no metric",
            "it is of a link",
        ),
    ] {
        let ended = figure(dir, args);
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        for words in [what, hint] {
            assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        }
    }
}

/// The rate of losses is that of a segment whichever stream sends it, and a law's window that of
/// one stream.
#[test]
fn a_response_is_that_of_one_stream() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"
name = "r"
duration = "10s"
[path]
rate = "100Mbit/s"
rtt = "20ms"
loss = 0.001
[[flow]]
stack = "reno"
streams = 4
"#;
    write(dir, "r.toml", text);
    let run = fullpipe(dir, &["run", "r.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let sum = drawn(dir, &["table", "--metric", "cwnd_segments.mean"], "t.csv");
    let sum = sum.lines().nth(1).unwrap().rsplit(',');
    let sum: f64 = sum.filter_map(|cell| cell.parse().ok()).next().unwrap();
    let csv = drawn(dir, &["response"], "r.csv");
    let measured = csv.lines().find(|line| line.contains("measured")).unwrap();
    let window: f64 = measured.rsplit(',').next().unwrap().parse().unwrap();
    assert!((window / sum - 0.25).abs() < 1e-3, "{window} of {sum}");
    let svg = drawn(dir, &["response"], "r.svg");
    assert!(
        svg.contains(">mean window of a stream (segments)<"),
        "{svg}"
    );
}

/// A flow that lost nothing has no place on an axis of loss rates.
#[test]
fn a_response_says_which_flows_it_leaves_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"
name = "r"
duration = "5s"
[path]
rate = "100Mbit/s"
rtt = "10ms"
[[flow]]
stack = "reno"
receive_window = "40 segments"
drop = { every = 500 }
[matrix]
"flow.main.drop.every" = [500, 100000000]
"#;
    write(dir, "r.toml", text);
    let run = fullpipe(dir, &["run", "r.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let ended = figure(dir, &["response", "--out", "r.svg"]);
    let said = "not drawn, without a loss after the warm-up: main (every 100000000)";
    assert!(
        ended.code == 0 && ended.stderr.contains(said),
        "{}",
        ended.stderr
    );
    let svg = fs::read_to_string(dir.join("r.svg")).unwrap();
    assert!(
        svg.contains("not drawn: 1 of 2 flows, without a loss"),
        "{svg}"
    );
}

/// A metric of an expression is read from the table of runs.
#[test]
fn a_damaged_table_of_runs_is_no_lack_of_values() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    study(dir);
    fs::write(dir.join("r/runs.parquet"), b"").unwrap();
    for kind in ["matrix", "bars", "distribution"] {
        let args = [kind, "--of", "main", "--metric", "goodput_mbps - 1"];
        let refused = figure(dir, &args);
        assert_eq!(refused.code, 2, "{kind}: {}", refused.stderr);
        let words = "`r/runs.parquet` is damaged";
        assert!(refused.stderr.contains(words), "{kind}: {}", refused.stderr);
    }
}

/// A window of five segments never loses any: when it first does is not defined.
#[test]
fn what_is_undefined_has_an_empty_place() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"
name = "u"
duration = "5s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
buffer = "10 packets"
[[flow]]
stack = "reno"
[matrix]
"flow.main.receive_window" = ["5 segments", "500 segments"]
"flow.main.stack" = ["reno", "cubic"]
"#;
    write(dir, "u.toml", text);
    let run = fullpipe(dir, &["run", "u.toml", "--out", "r", "--quiet"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let metric = ["--metric", "first_loss_s"];
    let dashes = |svg: &str| svg.matches(">–<").count();
    let bars = drawn(dir, &[&["bars"], &metric[..]].concat(), "u.svg");
    // One of them is the legend's.
    assert_eq!(dashes(&bars), 3, "{bars}");
    assert!(bars.contains(">no value<"), "{bars}");
    let matrix = drawn(dir, &[&["matrix"], &metric[..]].concat(), "u.svg");
    assert_eq!(dashes(&matrix), 2, "{matrix}");
    let panels = drawn(dir, &[&["distribution"], &metric[..]].concat(), "u.svg");
    let words = "receive window 5 segments (no value: reno, cubic)";
    assert!(panels.contains(words), "{panels}");
    for (kind, rows) in [
        ("bars", [",reno,5 segments,,,", ",cubic,5 segments,,,"]),
        (
            "matrix",
            [
                "reno,receive window 5 segments,,,",
                "cubic,receive window 5 segments,,,",
            ],
        ),
        (
            "distribution",
            [
                "receive window 5 segments,reno,,",
                "receive window 5 segments,cubic,,",
            ],
        ),
    ] {
        let csv = drawn(dir, &[&[kind], &metric[..]].concat(), "u.csv");
        for row in rows {
            assert!(csv.lines().any(|line| line == row), "{row}: {csv}");
        }
    }
}

/// Names and reasons are a foreign author's: none of their characters is markdown, and none ends a
/// row.
#[test]
fn a_table_in_markdown_keeps_names_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = r#"
name = "m"
duration = "1s"
[path]
rate = "10Mbit/s"
rtt = "20ms"
[[flow]]
stack = "reno"
[[matrix.case]]
name = "a|b\n<img> _u_ $x$ [l](u)"
path.rtt = "20ms"
[[matrix.case]]
name = "other"
path.rtt = "40ms"
"#;
    write(dir, "m.toml", text);
    let summary = ["--quiet", "--markdown", "s.md"];
    let run = fullpipe(
        dir,
        &[&["run", "m.toml", "--out", "r"], &summary[..]].concat(),
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    let own = drawn(dir, &["table"], "t.md");
    let summary = fs::read_to_string(dir.join("s.md")).unwrap();
    for text in [own, summary] {
        let row = text.lines().find(|line| line.contains("a\\|b")).unwrap();
        let name = "a\\|b \\<img> \\_u\\_ \\$x\\$ \\[l](u)";
        assert!(row.contains(name) && row.ends_with('|'), "{text}");
    }
}
