//! The parameters of a case.

use std::fmt;

use serde_json::Value;

use fullpipe_scenario::Case;

/// Matrix keys and values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Vec<(String, Value)>);

impl Params {
    /// Those of a case.
    pub fn of(case: &Case) -> Params {
        let params = case.json_params();
        Params(params.map(|(k, v)| (k.to_owned(), v.clone())).collect())
    }

    /// Keys and values as text.
    pub fn texts(&self) -> Vec<(String, String)> {
        let all = self.0.iter();
        all.map(|(k, v)| (k.clone(), scalar_text(v))).collect()
    }

    /// Value of a key as text: strings without quotes.
    pub fn text(&self, key: &str) -> Option<String> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| scalar_text(v))
    }
}

/// `key=value` pairs, blanks between.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            let blank = if i == 0 { "" } else { " " };
            write!(f, "{blank}{key}={}", scalar_text(value))?;
        }
        Ok(())
    }
}

/// A parameter's value as people write it: strings without quotes, small numbers as `1e-5`, the
/// rest as JSON, which would have 0.00001 beside 1e-6.
pub fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Number(n) if n.as_f64().is_some_and(|x| x != 0.0 && x.abs() < 1e-3) => {
            format!("{:e}", n.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_keep_their_order_and_types() {
        let text = r#"{"path.mtu":1500,"flow.main.stack":"reno","b":true}"#;
        let p: Params = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&p).unwrap(), text);
        assert_eq!(p.to_string(), "path.mtu=1500 flow.main.stack=reno b=true");
        assert_eq!(p.text("path.mtu").as_deref(), Some("1500"));
    }

    #[test]
    fn small_numbers_have_one_notation() {
        for (number, text) in [
            ("0.000001", "1e-6"),
            ("1e-5", "1e-5"),
            ("0.00025", "2.5e-4"),
            ("0.001", "0.001"),
            ("0", "0"),
            ("0.0", "0.0"),
        ] {
            let value: Value = serde_json::from_str(number).unwrap();
            assert_eq!(scalar_text(&value), text);
        }
    }
}
