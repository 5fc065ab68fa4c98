//! Columns, or values, whose names live as long as the program, as they travel between hosts.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Names that may come from elsewhere in the life of a program, and characters of each: a name is
/// never given back.
const MOST_NAMES: usize = 256;
const LONGEST_NAME: usize = 64;

pub fn serialize<S: Serializer, T: Serialize>(
    columns: &[(&'static str, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    columns.serialize(serializer)
}

pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<(&'static str, T)>, D::Error> {
    let columns: Vec<(String, T)> = Vec::deserialize(deserializer)?;
    columns
        .into_iter()
        .map(|(name, column)| match lasting(&name) {
            Some(name) => Ok((name, column)),
            None => Err(D::Error::custom("too many names of variables")),
        })
        .collect()
}

/// The one copy of a name.
fn lasting(name: &str) -> Option<&'static str> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= MOST_NAMES || name.len() > LONGEST_NAME {
        return None;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_their_number_is_bounded() {
        let (a, b) = (lasting("w_max").unwrap(), lasting("w_max").unwrap());
        assert!(std::ptr::eq(a, b));
        assert_eq!(lasting(&"x".repeat(LONGEST_NAME + 1)), None);
        let kept = (0..2 * MOST_NAMES).filter(|i| lasting(&format!("v{i}")).is_some());
        assert!(kept.count() < MOST_NAMES);
    }
}
