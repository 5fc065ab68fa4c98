//! From a scenario that shows something to the smallest one that still does.
//!
//! One change at a time: a key or a flow is left out, a congestion control becomes a better known
//! one, the run gets shorter, a number rounder. What still shows it stays; when no change does, the
//! rest is the minimum.

use toml::Value;

use super::draft::{Draft, Place, Step};

/// The smallest draft that `shows`, which is asked at most `budget` times.
pub fn minimise(draft: &Draft, budget: usize, shows: &mut dyn FnMut(&Draft) -> bool) -> Draft {
    let mut best = draft.clone();
    let mut left = budget;
    let mut tried: Vec<Draft> = Vec::new();
    'smaller: loop {
        for simpler in simpler(&best) {
            if tried.contains(&simpler) {
                continue;
            }
            if left == 0 {
                return best;
            }
            left -= 1;
            tried.push(simpler.clone());
            if shows(&simpler) {
                best = simpler;
                continue 'smaller;
            }
        }
        return best;
    }
}

/// Everything that is one step simpler, the largest steps first.
fn simpler(draft: &Draft) -> Vec<Draft> {
    let mut places = draft.places();
    places.sort_by_key(Vec::len);
    let without = places.iter().filter(|p| !needed(draft, p));
    let mut all: Vec<Draft> = without.filter_map(|p| draft.with(p, None)).collect();
    for place in &places {
        let Some(value) = draft.get(place) else {
            continue;
        };
        let values = match place.last() {
            Some(Step::Key(key)) if key == "stack" => stacks(value),
            Some(Step::Key(key)) if key == "duration" => shorter(value),
            Some(Step::Key(key)) if key == "name" || key == "preset" => Vec::new(),
            _ => rounder(value),
        };
        all.extend(
            values
                .into_iter()
                .filter_map(|v| draft.with(place, Some(v))),
        );
    }
    all
}

/// Without it there is no scenario, or not the one that runs on both grounds.
fn needed(draft: &Draft, place: &Place) -> bool {
    let [Step::Key(first), rest @ ..] = place.as_slice() else {
        return true;
    };
    match (first.as_str(), rest) {
        ("name" | "duration" | "path", []) => true,
        ("path", [Step::Key(key)]) => key == "rate" || key == "rtt",
        ("flow", []) => true,
        ("flow", [Step::Index(_)]) => {
            let flows = draft.get(&[Step::Key("flow".to_owned())]);
            flows.and_then(Value::as_array).is_none_or(|a| a.len() < 2)
        }
        ("flow", [Step::Index(_), Step::Key(key)]) => key == "stack" || key == "preset",
        _ => false,
    }
}

/// The best known stacks, until it is one of them.
fn stacks(value: &Value) -> Vec<Value> {
    let known = ["reno-linux", "cubic-linux"];
    let rank = known.iter().position(|k| value.as_str() == Some(k));
    let better = &known[..rank.unwrap_or(known.len())];
    better.iter().map(|k| Value::from(*k)).collect()
}

fn shorter(value: &Value) -> Vec<Value> {
    let Some((seconds, unit)) = value.as_str().and_then(quantity) else {
        return Vec::new();
    };
    let parts = [0.25, 0.5, 0.75].map(|part| (seconds * part).round());
    let parts = parts.into_iter().filter(|s| *s >= 1.0 && *s < seconds);
    parts.map(|s| Value::from(format!("{s}{unit}"))).collect()
}

/// One significant digit, then two.
fn rounder(value: &Value) -> Vec<Value> {
    let rounded = |x: f64| [format!("{x:.0e}"), format!("{x:.1e}")].map(|t| t.parse::<f64>());
    let rounded = |x: f64| rounded(x).into_iter().flatten().filter(move |r| *r != x);
    match value {
        Value::Integer(n) => rounded(*n as f64).map(|r| Value::from(r as i64)).collect(),
        Value::Float(x) => rounded(*x).map(Value::from).collect(),
        Value::String(text) => {
            let Some((x, unit)) = quantity(text) else {
                return Vec::new();
            };
            rounded(x)
                .map(|r| Value::from(format!("{r}{unit}")))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// A number and its unit, with the space between them.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = r#"
name = "x"
duration = "17s"
[path]
rate = "12.7Mbit/s"
rtt = "31ms"
buffer = "47 packets"
jitter = "300us"
reorder = { probability = 0.017, extra = "5ms" }
[[flow]]
name = "main"
stack = "htcp-linux"
preset = "linux"
[[flow]]
name = "other"
stack = "bic-linux"
preset = "linux"
"#;

    #[test]
    fn what_does_not_matter_goes() {
        // Shown by more than 1 % of late packets and at least three seconds.
        let late = [
            Step::Key("path".to_owned()),
            Step::Key("reorder".to_owned()),
            Step::Key("probability".to_owned()),
        ];
        let time = [Step::Key("duration".to_owned())];
        let mut shows = |d: &Draft| {
            let late = d.get(&late).and_then(Value::as_float);
            let time = d.get(&time).and_then(Value::as_str).and_then(quantity);
            late.is_some_and(|p| p > 0.01) && time.is_some_and(|(s, _)| s >= 3.0)
        };
        let least = minimise(&Draft::parse(LONG).unwrap(), 1000, &mut shows);
        let wanted = "name = \"x\"\nduration = \"3s\"\n\n[path]\nrate = \"10Mbit/s\"\n\
                      rtt = \"30ms\"\nreorder = { probability = 0.02 }\n\n[[flow]]\n\
                      stack = \"reno-linux\"\npreset = \"linux\"\n";
        assert_eq!(least.to_string(), wanted);
    }

    #[test]
    fn it_stops_when_its_budget_is_spent() {
        let mut asked = 0;
        let draft = Draft::parse(LONG).unwrap();
        let least = minimise(&draft, 7, &mut |_| {
            asked += 1;
            false
        });
        assert_eq!((asked, least), (7, draft));
    }
}
