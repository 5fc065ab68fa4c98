//! Values of one row by metric name. A million runs have the same few lists of names: rows of a
//! kind share one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Index;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names of the values of a kind of row, in their order, each once. Equal lists are one list: there
/// are as many as kinds of rows, and they stay until the process ends.
#[derive(Clone)]
pub struct Names(Arc<[Cow<'static, str>]>);

impl Names {
    /// These names.
    pub fn new(names: impl IntoIterator<Item = Cow<'static, str>>) -> Names {
        let mut names: Vec<Cow<'static, str>> = names.into_iter().collect();
        names.sort();
        names.dedup();
        Names::of(names)
    }

    fn of(sorted: Vec<Cow<'static, str>>) -> Names {
        static KNOWN: Mutex<BTreeSet<Arc<[Cow<'static, str>]>>> = Mutex::new(BTreeSet::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = known.get(sorted.as_slice()) {
            return Names(Arc::clone(names));
        }
        let names: Arc<[Cow<'static, str>]> = sorted.into();
        known.insert(Arc::clone(&names));
        Names(names)
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name at a place.
    pub fn name(&self, place: usize) -> Option<&str> {
        self.0.get(place).map(AsRef::as_ref)
    }

    /// The names, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Index of a name, if it is among them.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|n| n.as_ref().cmp(name)).ok()
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Names {}

/// Values of one row by metric name, in the order of the names; `None` where the metric is
/// undefined.
#[derive(Clone, PartialEq)]
pub struct Values {
    names: Names,
    values: Box<[Option<f64>]>,
}

impl Values {
    /// No values.
    pub fn new() -> Values {
        Values::from([])
    }

    /// A value for each of these names.
    ///
    /// # Panics
    /// If there are more or fewer.
    pub fn with(names: &Names, values: impl IntoIterator<Item = Option<f64>>) -> Values {
        let values: Box<[Option<f64>]> = values.into_iter().collect();
        assert_eq!(values.len(), names.len(), "a value for each name");
        let names = names.clone();
        Values { names, values }
    }

    /// The names that have a value here, be it undefined.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The value of this name; `None` if there is none of it.
    pub fn get(&self, name: &str) -> Option<&Option<f64>> {
        self.names.place(name).map(|i| &self.values[i])
    }

    /// True if there is a value of this name, be it undefined.
    pub fn contains_key(&self, name: &str) -> bool {
        self.names.place(name).is_some()
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, Option<f64>)> {
        self.names.iter().zip(self.values.iter().copied())
    }

    /// The same, with names to keep.
    fn owned(&self) -> impl Iterator<Item = (Cow<'static, str>, Option<f64>)> {
        self.names
            .0
            .iter()
            .cloned()
            .zip(self.values.iter().copied())
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True without values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds values; one whose name is there takes its place.
    pub fn extend(&mut self, other: &Values) {
        *self = self.owned().chain(other.owned()).collect();
    }

    /// Takes away all values but those with these names.
    pub fn retain(&mut self, stays: impl Fn(&str) -> bool) {
        *self = self.owned().filter(|(name, _)| stays(name)).collect();
    }
}

impl Default for Values {
    fn default() -> Values {
        Values::new()
    }
}

/// Of values with one name the last one stays.
impl<N: Into<Cow<'static, str>>> FromIterator<(N, Option<f64>)> for Values {
    fn from_iter<I: IntoIterator<Item = (N, Option<f64>)>>(values: I) -> Values {
        let values = values.into_iter().map(|(name, value)| (name.into(), value));
        let mut all: Vec<(Cow<'static, str>, Option<f64>)> = values.collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        Values {
            names: Names::of(names),
            values: values.into(),
        }
    }
}

impl<const N: usize> From<[(&'static str, Option<f64>); N]> for Values {
    fn from(values: [(&'static str, Option<f64>); N]) -> Values {
        values.into_iter().collect()
    }
}

impl Index<&str> for Values {
    type Output = Option<f64>;

    /// # Panics
    /// If there is none of this name.
    fn index(&self, name: &str) -> &Option<f64> {
        self.get(name).expect("a value of this name")
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Values, D::Error> {
        let values = BTreeMap::<String, Option<f64>>::deserialize(d)?;
        Ok(values.into_iter().collect())
    }
}

/// A value by name; `None` when undefined or absent.
pub fn value(values: &Values, name: &str) -> Option<f64> {
    values.get(name).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_kind_share_their_names() {
        let a = Values::from([("b", Some(1.0)), ("a", None)]);
        let json = r#"{"a":null,"b":1.0}"#;
        assert_eq!(serde_json::to_string(&a).unwrap(), json);
        let b: Values = serde_json::from_str(json).unwrap();
        assert_eq!(a, b);
        assert!(Arc::ptr_eq(&a.names.0, &b.names.0), "one list");
        assert_eq!(Values::with(a.names(), [None, Some(1.0)]), a);
        assert_ne!(Values::with(a.names(), [None, Some(2.0)]), a);
        assert_ne!(Values::from([("a", None), ("c", Some(1.0))]), a);
    }

    #[test]
    fn the_later_value_takes_the_place_of_the_earlier() {
        let mut v = Values::from([("b", Some(1.0)), ("a", None), ("b", Some(2.0))]);
        assert_eq!((v.len(), v["b"], v.get("c")), (2, Some(2.0), None));
        v.extend(&Values::from([("c", None), ("a", Some(3.0))]));
        assert_eq!((v.len(), v["a"], v["c"]), (3, Some(3.0), None));
        v.retain(|name| name != "a");
        assert!(!v.contains_key("a") && v.contains_key("b") && v.contains_key("c"));
    }
}
