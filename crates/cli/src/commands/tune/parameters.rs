//! `fullpipe tune get`: every parameter of a stack by its name.

use fullpipe_cc::StackSpec;
use fullpipe_cc::registry::entries;
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::table::{Align, Table};

/// Paths and flows with their parameters: all paths, or the path or flow of this name. `status` and
/// `flows`: the daemon's answers.
pub fn parameters(
    status: &Value,
    flows: &Value,
    which: Option<&str>,
) -> Result<Vec<Value>, Failure> {
    let rules = status["rules"].as_array().into_iter().flatten();
    let paths = rules.filter_map(|r| {
        let name = r["name"].as_str()?;
        Some((name, Value::Null, r["stack"].as_str()?))
    });
    let paths: Vec<(&str, Value, &str)> = paths.collect();
    let mut chosen: Vec<_> = match which {
        None => paths,
        Some(which) => paths
            .into_iter()
            .filter(|(name, ..)| *name == which)
            .collect(),
    };
    if let (Some(which), true) = (which, chosen.is_empty()) {
        let all = flows["flows"].as_array().into_iter().flatten();
        let cookie = which.parse::<u64>().ok();
        let named = |f: &&Value| f["flow"] == which || cookie.is_some_and(|c| f["cookie"] == c);
        chosen.extend(all.filter(named).filter_map(|f| {
            let path = f["path"].as_str()?;
            Some((path, f["flow"].clone(), f["stack"].as_str()?))
        }));
    }
    if let (Some(which), true) = (which, chosen.is_empty()) {
        let message = format!("no path and no tuned flow `{which}`");
        return Err(Failure::new(Exit::Usage, message)
            .hint("`fullpipe tune status` lists paths, `fullpipe tune flows` flows"));
    }
    let with = |(path, flow, stack): (&str, Value, &str)| json!({ "path": path, "flow": flow, "stack": stack, "parameters": of(stack) });
    Ok(chosen.into_iter().map(with).collect())
}

/// Given or default; nothing of an algorithm of the kernel.
fn of(stack: &str) -> Vec<Value> {
    let Ok(stack) = StackSpec::parse(stack) else {
        return Vec::new();
    };
    let kinds: Vec<_> = stack.kinds().collect();
    let mut all = Vec::new();
    for kind in kinds {
        let Some((part, params)) = stack.params(kind) else {
            continue;
        };
        let entry = entries().find(|e| e.kind == kind && e.name == part);
        for spec in entry.iter().flat_map(|e| e.params) {
            let given = params.given().find(|(name, _)| *name == spec.name);
            let value = given.map_or_else(|| spec.default_text(), |(_, v)| v.text());
            all.push(json!({
                "part": part,
                "name": spec.name,
                "value": value,
                "given": given.is_some(),
                "unit": spec.unit,
                "about": spec.doc,
            }));
        }
    }
    all
}

/// A table.
pub fn text(all: &[Value]) -> String {
    let mut table = Table::new();
    for head in ["path", "part", "parameter"] {
        table.column(Align::Left, &[head]);
    }
    table.column(Align::Right, &["value"]);
    for head in ["unit", "meaning"] {
        table.column(Align::Left, &[head]);
    }
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for one in all {
        for p in one["parameters"].as_array().into_iter().flatten() {
            table.row(vec![
                word(&one["path"]),
                word(&p["part"]),
                word(&p["name"]),
                word(&p["value"]),
                word(&p["unit"]),
                word(&p["about"]),
            ]);
        }
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_named_with_its_value_given_or_not() {
        let status = json!({ "rules": [
            { "name": "lab", "stack": "aimd(increase=6)+limited(max_ssthresh=50)" },
            { "name": "own", "stack": "nv" },
        ]});
        let flows = json!({ "flows": [
            { "flow": "a -> b", "cookie": 7, "path": "lab", "stack": "aimd(decrease=0.25)" },
        ]});
        let values = |which: &str| -> Vec<String> {
            let all = parameters(&status, &flows, Some(which)).unwrap();
            let all = all[0]["parameters"].as_array().unwrap().clone();
            all.iter()
                .map(|p| {
                    format!(
                        "{}={}",
                        p["name"].as_str().unwrap(),
                        p["value"].as_str().unwrap()
                    )
                })
                .collect()
        };
        assert_eq!(
            values("lab"),
            ["increase=6", "decrease=0.5", "max_ssthresh=50", "rule=rfc"]
        );
        for which in ["a -> b", "7"] {
            assert_eq!(values(which), ["increase=1", "decrease=0.25"]);
        }
        assert!(values("own").is_empty());
        assert_eq!(parameters(&status, &flows, None).unwrap().len(), 2);
        assert!(parameters(&status, &flows, Some("lap")).is_err());
        let text = text(&parameters(&status, &flows, None).unwrap());
        assert!(
            text.contains("max_ssthresh") && text.contains(" 50 "),
            "{text}"
        );
    }
}
