//! `fullpipe tune compare`: the flows of a path beside those that were left as they were.

use fullpipe_results::compare::Ratio;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::table::{Align, Table, number};

/// The daemon's answer, of one path or all, with the ratio of each path's rates.
pub fn compared(answer: &Value, path: Option<&str>) -> Result<Value, Failure> {
    let all: Vec<&Value> = answer["paths"].as_array().into_iter().flatten().collect();
    let named = |p: &&&Value| path.is_none_or(|name| p["path"] == name);
    let chosen: Vec<Value> = all.iter().filter(named).map(|p| with_ratio(p)).collect();
    match (path, all.is_empty()) {
        (_, true) => Err(
            Failure::new(Exit::Usage, "no path of the policy has a `share`").hint(
                "`share = \"50%\"` leaves half of a path's flows as they were, for comparison",
            ),
        ),
        (Some(name), _) if chosen.is_empty() => {
            let names: Vec<&str> = all.iter().filter_map(|p| p["path"].as_str()).collect();
            let message = format!("no path `{name}` with a `share`");
            Err(Failure::new(Exit::Usage, message).hint(format!("there are: {}", names.join(", "))))
        }
        _ => Ok(json!({ "paths": chosen })),
    }
}

fn with_ratio(path: &Value) -> Value {
    let mut path = path.clone();
    let [policy, control] = [0, 1].map(|arm| numbers(&path["arms"][arm]["rate_mbps"]));
    let ratio = Ratio::of(&policy, &control);
    path["rate_ratio"] = json!(ratio.map(|r| r.value));
    path["rate_ratio_ci95"] = json!(ratio.and_then(|r| r.interval));
    path
}

/// A table, and a sentence for each path.
pub fn text(compared: &Value) -> String {
    let mut table = Table::new();
    table.column(Align::Left, &["path"]);
    table.column(Align::Left, &["arm"]);
    table.column(Align::Left, &["algorithm"]);
    table.column(Align::Right, &["flows"]);
    table.column(Align::Right, &["data", "MB"]);
    table.column(Align::Right, &["rate", "Mbit/s"]);
    table.column(Align::Right, &["sent again", "%"]);
    table.column(Align::Right, &["srtt", "ms"]);
    let mut words = String::new();
    for path in compared["paths"].as_array().into_iter().flatten() {
        let name = path["path"].as_str().unwrap_or_default();
        for arm in path["arms"].as_array().into_iter().flatten() {
            let value = |key: &str| arm[key].as_f64().unwrap_or_default();
            let some = |text: String| {
                if arm["flows"] == 0 {
                    "-".to_owned()
                } else {
                    text
                }
            };
            let rates = numbers(&arm["rate_mbps"]);
            let srtt = numbers(&arm["srtt_ms"]);
            let mean = srtt.iter().sum::<f64>() / srtt.len().max(1) as f64;
            table.row(vec![
                name.to_owned(),
                arm["arm"].as_str().unwrap_or_default().to_owned(),
                some(words_of(&arm["algorithms"]).join(", ")),
                arm["flows"].to_string(),
                some(format!("{:.1}", value("bytes") / 1e6)),
                // Of one value to 1 the ratio is the geometric mean.
                Ratio::of(&rates, &[1.0]).map_or("-".to_owned(), |r| number(r.value, 4)),
                some(format!("{:.3}", 100.0 * value("retransmit_fraction"))),
                some(format!("{mean:.1}")),
            ]);
        }
        words += &format!("{name}: {}\n", verdict(path));
    }
    format!("{}\n{words}", table.text())
}

fn verdict(path: &Value) -> String {
    let stack = path["stack"].as_str().unwrap_or_default();
    let seconds = path["seconds"].as_f64().unwrap_or_default();
    let Some(ratio) = path["rate_ratio"].as_f64() else {
        return format!("in {seconds:.0} s not every arm had a flow with data on its way");
    };
    let said = format!(
        "in {seconds:.0} s `{stack}` had {} times the rate of the control flows",
        number(ratio, 3)
    );
    match numbers(&path["rate_ratio_ci95"])[..] {
        [low, high] => {
            let unclear = if low <= 1.0 && high >= 1.0 {
                ": no difference is shown"
            } else {
                ""
            };
            let [low, high] = [low, high].map(|x| number(x, 3));
            format!("{said}\n  (95 % interval {low} to {high}){unclear}")
        }
        _ => format!("{said}; an interval takes two flows in each arm"),
    }
}

fn words_of(values: &Value) -> Vec<&str> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_str).collect()
}

fn numbers(values: &Value) -> Vec<f64> {
    let values = values.as_array().into_iter().flatten();
    values.filter_map(Value::as_f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(policy: &[f64], control: &[f64]) -> Value {
        let arm = |name: &str, mbps: &[f64]| {
            json!({
                "arm": name,
                "algorithms": [if name == "control" { "cubic" } else { "fp_highspeed" }],
                "flows": mbps.len(),
                "bytes": 12_000_000,
                "busy_s": 8.0,
                "retransmit_fraction": 0.0125,
                "rate_mbps": mbps,
                "srtt_ms": vec![41.0; mbps.len()],
            })
        };
        let arms = [arm("policy", policy), arm("control", control)];
        let path = json!({ "path": "lab", "stack": "highspeed", "seconds": 61.2, "arms": arms });
        json!({ "paths": [path] })
    }

    fn words(answer: &Value) -> String {
        text(&compared(answer, None).unwrap())
    }

    #[test]
    fn a_path_is_said_in_a_sentence() {
        let clear = words(&answer(&[7.2, 9.0, 11.25], &[3.6, 4.5, 5.625]));
        let expected = [
            "path  arm      algorithm     flows  data    rate  sent again  srtt",
            "                                      MB  Mbit/s           %    ms",
            "----  -------  ------------  -----  ----  ------  ----------  ----",
            "lab   policy   fp_highspeed      3  12.0   9.000       1.250  41.0",
            "lab   control  cubic             3  12.0   4.500       1.250  41.0",
            "",
            "lab: in 61 s `highspeed` had 2.00 times the rate of the control flows",
            "  (95 % interval 1.21 to 3.32)",
            "",
        ];
        assert_eq!(clear, expected.join("\n"));
        let unclear = words(&answer(&[8.0, 10.0, 12.5], &[4.0, 20.0]));
        assert!(unclear.ends_with("no difference is shown\n"), "{unclear}");
        let few = words(&answer(&[8.0, 10.0], &[4.0]));
        assert!(
            few.ends_with("an interval takes two flows in each arm\n"),
            "{few}"
        );
        let lacking = words(&answer(&[8.0], &[]));
        assert!(
            lacking
                .contains("lab   control  -                 0     -       -           -     -\n")
        );
        assert!(lacking.ends_with("not every arm had a flow with data on its way\n"));
    }

    #[test]
    fn what_is_printed_has_the_schema() {
        let schema: Value =
            serde_json::from_str(include_str!("../../../schemas/tuner-compare.json")).unwrap();
        let valid = jsonschema::validator_for(&schema).unwrap();
        for answer in [answer(&[8.0, 10.0], &[4.0, 5.0]), answer(&[8.0], &[])] {
            let printed = compared(&answer, Some("lab")).unwrap();
            let wrong: Vec<String> = valid.iter_errors(&printed).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
            // As the daemon gives it, without the ratio, it is not what is promised.
            assert!(!valid.is_valid(&answer));
        }
    }

    #[test]
    fn a_path_without_a_share_is_told_what_one_is() {
        let none = compared(&json!({ "paths": [] }), None).unwrap_err();
        assert!(none.message.contains("no path of the policy has a `share`"));
        let other = compared(&answer(&[1.0], &[1.0]), Some("office")).unwrap_err();
        assert!(other.message.contains("no path `office` with a `share`"));
    }
}
