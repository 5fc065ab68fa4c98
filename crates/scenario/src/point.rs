//! Where a case stands in the matrix. A hundred thousand cases share the values of its axes.

use std::sync::Arc;

/// One value of each axis.
#[derive(Clone, Debug)]
pub struct Point {
    axes: Arc<[AxisTexts]>,
    /// Number of the point, the last axis varying fastest.
    at: usize,
}

/// An axis as results have it.
#[derive(Clone, Debug)]
struct AxisTexts {
    key: String,
    /// Values in their order, each as written and as JSON.
    values: Vec<(String, serde_json::Value)>,
}

/// The points of a matrix.
pub(crate) struct Points(Arc<[AxisTexts]>);

impl Points {
    /// Of the axes: the key of each, and its values as written and as JSON.
    pub fn of(axes: impl Iterator<Item = (String, Vec<(String, serde_json::Value)>)>) -> Points {
        let texts = axes.map(|(key, values)| AxisTexts { key, values });
        Points(texts.collect())
    }

    pub fn at(&self, at: usize) -> Point {
        let axes = Arc::clone(&self.0);
        Point { axes, at }
    }
}

impl Point {
    /// That of a scenario without a matrix.
    pub(crate) fn only() -> Point {
        let axes = Arc::new([]);
        Point { axes, at: 0 }
    }

    /// Keys and values as JSON, in file order: numbers stay numbers.
    pub fn json(&self) -> impl Iterator<Item = (&str, &serde_json::Value)> {
        self.values().map(|(key, (_, json))| (key, json))
    }

    /// The same with the values as they are written too.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&str, &(String, serde_json::Value))> {
        let digits = digits_of(self.at, self.axes.iter().map(|axis| axis.values.len()));
        let axes = self.axes.iter().zip(digits);
        axes.map(|(axis, digit)| (axis.key.as_str(), &axis.values[digit]))
    }
}

/// Places of a point along axes of these lengths; later ones vary fastest.
pub(crate) fn digits_of(
    mut index: usize,
    lengths: impl ExactSizeIterator<Item = usize> + DoubleEndedIterator,
) -> Vec<usize> {
    let mut digits = vec![0; lengths.len()];
    for (digit, length) in digits.iter_mut().zip(lengths).rev() {
        *digit = index % length;
        index /= length;
    }
    digits
}
