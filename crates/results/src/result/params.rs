//! The parameters of a case.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;

use fullpipe_scenario::{Case, Point};

/// Matrix keys and values, in the order of the file.
#[derive(Clone)]
pub struct Params(Source);

#[derive(Clone)]
enum Source {
    /// In the matrix, which a hundred thousand cases share.
    Matrix(Point),
    /// In a result that was read.
    List(Arc<[(String, Value)]>),
}

impl Params {
    /// Parameters of a case: its point of the matrix.
    pub fn of(case: &Case) -> Params {
        Params(Source::Matrix(case.point().clone()))
    }

    /// These keys and values.
    pub fn new(all: Vec<(String, Value)>) -> Params {
        Params(Source::List(all.into()))
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let (point, list) = match &self.0 {
            Source::Matrix(point) => (Some(point), &[][..]),
            Source::List(list) => (None, &list[..]),
        };
        let of_point = point.into_iter().flat_map(Point::json);
        of_point.chain(list.iter().map(|(key, value)| (key.as_str(), value)))
    }

    /// True without a matrix.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Keys and values as text.
    pub fn texts(&self) -> Vec<(String, String)> {
        let text = |(key, value): (&str, &Value)| (key.to_owned(), scalar_text(value));
        self.iter().map(text).collect()
    }

    /// Value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.iter().find(|(k, _)| *k == key).map(|(_, v)| v)
    }

    /// Value of a key as text: strings without quotes.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).map(scalar_text)
    }
}

impl Default for Params {
    fn default() -> Params {
        Params::new(Vec::new())
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Params {}

impl Hash for Params {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.iter().for_each(|pair| pair.hash(state));
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// `key=value` pairs, blanks between.
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.iter().enumerate() {
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
