//! Random loss.

use fullpipe_run::Loss;

use crate::resolve::{Findings, required};
use crate::value::Record;

/// Of a table that may be a `[path]`, a link or a change.
pub(super) fn loss(table: &Record, name: &str, path: &str, findings: &mut Findings) -> Loss {
    if let Some(p) = table.real(name) {
        return if p > 0.0 {
            Loss::Bernoulli { p }
        } else {
            Loss::None
        };
    }
    let Some(table) = table.record(name) else {
        return Loss::None;
    };
    let key = &format!("{path}.{name}");
    let bernoulli: &[&str] = &["probability"];
    let gilbert: &[&str] = &["to_bad", "to_good", "good", "bad"];
    let (own, foreign, loss) = match table.word("model") {
        Some("bernoulli") => {
            let p = table.real("probability").unwrap_or(0.0);
            (bernoulli, gilbert, Loss::Bernoulli { p })
        }
        Some(_) => {
            let get = |name, default| table.real(name).unwrap_or(default);
            let (to_bad, to_good) = (get("to_bad", 0.0), get("to_good", 0.0));
            let (good, bad) = (get("good", 0.0), get("bad", 1.0));
            (
                gilbert,
                bernoulli,
                Loss::GilbertElliott {
                    to_bad,
                    to_good,
                    good,
                    bad,
                },
            )
        }
        None => {
            required(
                findings,
                table,
                "model",
                key,
                r#"model = "gilbert-elliott""#,
            );
            return Loss::None;
        }
    };
    for name in own.iter().filter(|name| !matches!(**name, "good" | "bad")) {
        required(findings, table, name, key, &format!("{name} = 1e-4"));
    }
    for name in foreign.iter().filter(|name| table.is_given(name)) {
        let message = format!(
            "this key does not belong to the model `{}`",
            table.word("model").unwrap_or_default()
        );
        findings.refuse(
            table,
            name,
            key,
            message,
            &format!("its keys: {}", own.join(", ")),
        );
    }
    loss
}
