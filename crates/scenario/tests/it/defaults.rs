//! Every default that the reference page prints is the one that holds without the key.

use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_scenario::{Overrides, Scenario};

/// A key of the page, and what is printed as its default.
struct Row {
    /// Heading of its table: `[path]`, `queue`, `size.pareto`.
    table: String,
    key: String,
    /// The second column: type, range or words.
    accepts: String,
    default: String,
}

fn rows() -> Vec<Row> {
    let page = Scenario::reference();
    let mut table = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
            table = heading.replace('`', "").replace(" as a table", "");
            // The loss of an entry is that of the link.
            table = table.trim_start_matches("schedule.").to_owned();
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        if let [key, accepts, default, _, _] = cells.as_slice()
            && let Some(key) = key.strip_prefix("| `")
        {
            rows.push(Row {
                table: table.clone(),
                key: key.trim_end_matches('`').to_owned(),
                accepts: (*accepts).to_owned(),
                default: (*default).to_owned(),
            });
        }
    }
    rows
}

impl Row {
    /// Values of the default, each with the varieties it is for; none: for all.
    fn values(&self) -> Vec<(Vec<String>, String)> {
        let plain = self
            .default
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'));
        if let Some(value) = plain {
            return vec![(Vec::new(), value.to_owned())];
        }
        let words = self
            .default
            .strip_prefix("preset ")
            .unwrap_or(&self.default);
        let parts = words.split("; ").filter_map(|part| part.split_once(": "));
        let varieties = |words: &str| words.split(", ").map(str::to_owned).collect();
        parts
            .map(|(words, value)| (varieties(words), value.to_owned()))
            .collect()
    }
}

/// A scenario without the key and one that writes it out; `variety`: preset, discipline, model or
/// kind.
fn texts(row: &Row, variety: &str, value: &str) -> Option<(String, String)> {
    let (key, line) = (&row.key, format!("{} = {value}\n", row.key));
    let mut top = "name = \"x\"\nduration = \"60s\"\n".to_owned();
    let mut path =
        "[path]\nrate = \"100Mbit/s\"\nrtt = \"80ms\"\nreturn_rate = \"50Mbit/s\"\n".to_owned();
    let mut flow = "[[flow]]\nstack = \"reno\"\ntxqueuelen = 100\n".to_owned();
    let mut rest = String::new();
    let without =
        |top: &str, path: &str, flow: &str, rest: &str| format!("{top}{path}{flow}{rest}");
    let inline = |key: &str, own: &str, key_of_own: &str| {
        let own = own.replace('\n', "");
        let line = line.trim();
        (
            format!("{key} = {{ {key_of_own}{own} }}\n"),
            format!("{key} = {{ {key_of_own}{own}, {line} }}\n"),
        )
    };
    let pair = |target: &mut String, before: String, with: String| {
        let start = target.clone();
        *target = format!("{start}{before}");
        (format!("{start}{before}"), format!("{start}{with}"))
    };
    match row.table.as_str() {
        "Top level" => {
            let bare = without(&top, &path, &flow, &rest);
            top.push_str(&line);
            return Some((bare, without(&top, &path, &flow, &rest)));
        }
        "[path]" => {
            let bare = without(&top, &path, &flow, &rest);
            path.push_str(&line);
            return Some((bare, without(&top, &path, &flow, &rest)));
        }
        "[[flow]]" => {
            if key != "preset" {
                flow.push_str(&format!("preset = \"{variety}\"\n"));
            }
            let bare = without(&top, &path, &flow, &rest);
            flow.push_str(&line);
            return Some((bare, without(&top, &path, &flow, &rest)));
        }
        "[[traffic]]" => {
            rest = format!(
                "[[traffic]]\nname = \"t\"\nkind = \"{variety}\"\n{}",
                of_kind(variety)
            );
        }
        "[[link]]" => {
            rest = "[[route]]\nflow = \"main\"\nforward = [\"l\"]\nback = [\"home\"]\n\
                    [[link]]\nname = \"home\"\ndelay = \"10ms\"\n\
                    [[link]]\nname = \"l\"\nrate = \"10Mbit/s\"\n"
                .to_owned();
        }
        "[measure]" => {
            let precision = match key.as_str() {
                "max_seeds" | "precision_of" => "precision = \"2%\"\n",
                _ => "",
            };
            rest = format!("[measure]\n{precision}");
        }
        "[[expect]]" => {
            let metric = match key.as_str() {
                "link" => "drops",
                _ => "goodput_mbps",
            };
            rest = format!("[[expect]]\nmetric = \"{metric}\"\nat_least = 0\n");
        }
        "[[report]]" => rest = "[[report]]\ntitle = \"t\"\n".to_owned(),
        "queue" => {
            let (bare, with) = inline("queue", "", &format!("kind = \"{variety}\""));
            let (bare, with) = pair(&mut path, bare, with);
            let marks = key == "mark_until" && variety == "pie";
            let ecn = if marks { ", ecn = true }" } else { " }" };
            return Some((
                without(&top, &bare.replace(" }", ecn), &flow, &rest),
                without(&top, &with.replace(" }", ecn), &flow, &rest),
            ));
        }
        "loss" => {
            let own = match variety {
                "bernoulli" => ", probability = 0.1",
                _ => ", to_bad = 0.1, to_good = 0.1",
            };
            let (bare, with) = inline("loss", own, &format!("model = \"{variety}\""));
            let (bare, with) = pair(&mut path, bare, with);
            return Some((
                without(&top, &bare, &flow, &rest),
                without(&top, &with, &flow, &rest),
            ));
        }
        "drop" => {
            let (bare, with) = inline("drop", "", "segment = 40");
            let (bare, with) = pair(&mut flow, bare, with);
            return Some((
                without(&top, &path, &bare, &rest),
                without(&top, &path, &with, &rest),
            ));
        }
        "size.pareto" => {
            let flows = |most: &str| {
                let law = format!("mean = \"10 segments\", shape = 1.2{most}");
                format!(
                    "[[traffic]]\nname = \"t\"\nkind = \"short-flows\"\nstack = \"reno\"\n\
                     per_second = 5\nsize = {{ pareto = {{ {law} }} }}\n"
                )
            };
            return Some((
                without(&top, &path, &flow, &flows("")),
                without(&top, &path, &flow, &flows(&format!(", {}", line.trim()))),
            ));
        }
        "recovered_at" => {
            rest = "[measure]\n".to_owned();
            let with = format!("recovered_at = {{ {} }}\n", line.trim());
            let (bare, with) = pair(&mut rest, String::new(), with);
            return Some((
                without(&top, &path, &flow, &bare),
                without(&top, &path, &flow, &with),
            ));
        }
        _ => return None,
    }
    let bare = without(&top, &path, &flow, &rest);
    rest.push_str(&line);
    Some((bare, without(&top, &path, &flow, &rest)))
}

/// Keys that a kind of traffic cannot do without.
fn of_kind(kind: &str) -> &'static str {
    match kind {
        "short-flows" => "stack = \"reno\"\nsize = \"10 segments\"\nper_second = 5\n",
        "udp" | "udp-blast" => "rate = \"1Mbit/s\"\n",
        "udp-on-off" => "rate = \"1Mbit/s\"\non = \"1s\"\noff = \"1s\"\n",
        "udp-sine" => "mean = \"5Mbit/s\"\namplitude = \"1Mbit/s\"\nperiod = \"1s\"\n",
        "udp-staircase" => {
            "from = \"1Mbit/s\"\nto = \"5Mbit/s\"\nstep = \"1Mbit/s\"\nevery = \"1s\"\n"
        }
        "udp-file" => concat!(
            "file = \"",
            env!("CARGO_MANIFEST_DIR"),
            "/tests/rates.csv\"\n"
        ),
        _ => "",
    }
}

/// All that a scenario says, but not how it is written.
fn meaning(text: &str) -> Result<String, String> {
    let scenario = Scenario::parse(text, "test.toml", &Overrides::default());
    let mut scenario = scenario.map_err(|error| error.to_string())?;
    scenario.text.clear();
    scenario.places = fullpipe_scenario::Places::default();
    // A key that changes nothing may draw one.
    scenario.warnings.clear();
    let all = format!("{scenario:#?}");
    // That a key is written is no meaning of it.
    let (mut meaning, mut end) = (String::new(), None);
    for line in all.lines() {
        if end.is_none() && line.trim_start() == "written: [" {
            end = Some(line.replace("written: [", "],"));
        } else if end.as_deref() == Some(line) {
            end = None;
        } else if end.is_none() && line.trim_start() != "written: []," {
            meaning = meaning + line + "\n";
        }
    }
    Ok(meaning)
}

/// The words among which a key of the page chooses.
fn varieties(rows: &[Row], table: &str, key: &str) -> Vec<String> {
    let mut rows = rows.iter();
    let row = rows.find(|row| row.table == table && row.key == key);
    let row = row.unwrap_or_else(|| panic!("{table} has no `{key}`"));
    let words = row.accepts.split(", ");
    words
        .map(|word| word.trim_matches(['`', '"']).to_owned())
        .collect()
}

/// The defaults that are no value of their key.
const WORDS: &[&str] = &[
    "the mean of `trace`",
    "`rate`, if something runs in reverse or another `return_` key is given; otherwise the way back \
     only delays",
    "`buffer`",
    "`queue`",
    "`path.rtt`",
    "`path.rate`",
    "`path.mtu`",
    "of the stack",
    "of its own",
    "with `txqueuelen` that of the fastest link on the flow's way",
    "with `nic_rate` 1000",
    "three times `min`",
    "that of `by`",
    "that of `preset`",
    "until `stop` or the end",
    "until `stop`",
    "a delay equal to that of the way there",
    "the only flow",
    "every case",
    "never",
    "metric, flow or link, and where",
    "with and without `--quick`",
    "all",
    "\"5s\", or 1/20 of the duration if that is shorter",
];

/// What stands in the place of a value where a preset or a kind has none.
const NO_VALUE: &[&str] = &[
    "required",
    "unlimited",
    "2, unlimited when paced",
    "half of 5ms at the link's rate, at least 5 packets",
    "1 - exp(-1/C) with C packets per second",
    "the last rate stays",
];

#[test]
fn every_printed_default_is_the_resolved_one() {
    let rows = rows();
    let presets = varieties(&rows, "[[flow]]", "preset");
    let traffic = varieties(&rows, "[[traffic]]", "kind");
    let queues = varieties(&rows, "queue", "kind");
    let models = varieties(&rows, "loss", "model");
    let mut held = 0;
    for row in &rows {
        let name = format!("{}.{}", row.table, row.key);
        if row.default.is_empty()
            || row.default == "required"
            || WORDS.contains(&row.default.as_str())
        {
            continue;
        }
        let values = row.values();
        assert!(
            !values.is_empty(),
            "{name}: {} is neither value nor words",
            row.default
        );
        let all = match row.table.as_str() {
            "[[flow]]" => presets.as_slice(),
            "[[traffic]]" => &traffic,
            "queue" => &queues,
            "loss" => &models,
            _ => &[String::new()],
        };
        let mut of_row = 0;
        for variety in all {
            let value = values.iter().find(|(varieties, _)| {
                varieties.is_empty() || varieties.iter().any(|known| known == variety)
            });
            let Some((varieties, value)) = value else {
                continue;
            };
            if NO_VALUE.contains(&value.as_str()) || value.starts_with("that of `") {
                of_row += 1;
                continue;
            }
            let (bare, with) = texts(row, variety, value)
                .unwrap_or_else(|| panic!("{name}: the test does not know this table"));
            let bare = meaning(&bare).unwrap_or_else(|e| panic!("{name}: {e}\n{bare}"));
            match meaning(&with) {
                Ok(with) => {
                    assert!(
                        bare == with,
                        "{name} of {variety}: the default is not {value}"
                    );
                    of_row += 1;
                    held += 1;
                }
                // A key that this kind of traffic or queue does not have.
                Err(e) if varieties.is_empty() && e.contains("does not belong to the") => {}
                Err(e) => panic!("{name}: {e}\n{with}"),
            }
        }
        assert!(
            of_row > 0,
            "{name}: {} was never held against anything",
            row.default
        );
    }
    assert!(held > 150, "only {held} defaults were compared");
}

/// A preset is a set of defaults: where the file says nothing, its hosts are those of the preset.
#[test]
fn a_preset_resolves_to_its_own_hosts() {
    let presets = [
        ("2003", Preset::Y2003),
        ("2026", Preset::Y2026),
        ("linux", Preset::Linux),
        ("linux-6.6", Preset::Linux66),
    ];
    for (word, preset) in presets {
        let text = format!(
            r#"
            name = "x"
            duration = "60s"
            [path]
            rate = "2Gbit/s"
            rtt = "200ms"
            [[flow]]
            stack = "cubic-linux"
            preset = "{word}"
            "#
        );
        let scenario = Scenario::parse(&text, "test.toml", &Overrides::default()).unwrap();
        let case = &scenario.cases[0];
        let flow = &case.run_spec(1).flows[0];
        assert_eq!(flow.sender, SenderConfig::preset(preset, 1500), "{word}");
        assert_eq!(flow.receiver, ReceiverConfig::preset(preset), "{word}");
        let window = ReceiverConfig::preset(preset).window.largest();
        assert_eq!(case.flows[0].window_cap, window.map(|w| w as f64), "{word}");
    }
    // Linux's receive buffer bounds the flow: 32 MB, half of `tcp_rmem`.
    assert_eq!(
        ReceiverConfig::preset(Preset::Linux).window.max,
        Some(23_172)
    );
}
