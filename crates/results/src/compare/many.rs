//! Many differences judged together.

use std::collections::BTreeMap;

use super::difference::size;
use super::row::{Chance, FALSE, Method, Row, Verdict};
use crate::result::student_p;

/// Gives every number that chance has a say in its probability, and calls indistinguishable what is
/// real alone, but not among so many: of a hundred numbers that chance alone tells apart five leave
/// their 95 % interval. False discovery rate after Benjamini and Hochberg (1995); where nothing
/// differs, one comparison of twenty says that something does.
///
/// The numbers are those that decide. Where both sides have the same in every run there is nothing
/// that could have come out otherwise, and no test.
pub(super) fn judge<'a>(rows: impl Iterator<Item = &'a mut Row>) {
    let mut rows: Vec<&mut Row> = rows.filter(|row| row.judged).collect();
    let usual = usual(&rows);
    for row in &mut rows {
        let usual = usual.get(&(row.metric.clone(), row.method));
        row.p = p(row, usual.copied().unwrap_or(0.0));
    }
    let is_test = |row: &&mut Row| row.verdict != Verdict::Same && row.p.is_some();
    let mut tests: Vec<&mut Row> = rows.into_iter().filter(is_test).collect();
    tests.sort_by(|x, y| x.p.partial_cmp(&y.p).expect("probabilities are numbers"));
    let all = tests.len() as f64;
    let mut least = 1.0_f64;
    for (i, row) in tests.into_iter().enumerate().rev() {
        let p = row.p.expect("of a test");
        least = least.min(p * all / (i + 1) as f64);
        row.p_adjusted = Some(least);
        if least > FALSE && matches!(row.verdict, Verdict::Within | Verdict::Beyond) {
            row.verdict = Verdict::Indistinguishable;
        }
    }
}

/// Standard errors of the same metric, squared and as a part of its value: the mean over all rows
/// that have it, made in the same way.
fn usual(rows: &[&mut Row]) -> BTreeMap<(String, Method), f64> {
    let mut all: BTreeMap<(String, Method), Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let Some(Chance::Spread(spread)) = row.chance {
            let key = (row.metric.clone(), row.method);
            let part = spread.error / value(row);
            all.entry(key)
                .or_default()
                .push(if part.is_finite() { part * part } else { 0.0 });
        }
    }
    let mean = |parts: Vec<f64>| parts.iter().sum::<f64>() / parts.len() as f64;
    all.into_iter()
        .map(|(key, parts)| (key, mean(parts)))
        .collect()
}

fn value(row: &Row) -> f64 {
    size(row.a.mean.iter().chain(&row.b.mean))
}

/// Three seeds that lie close together by chance, or on the same of two values, would make any
/// difference certain: their variance counts as no less than the mean of theirs and the usual one.
/// A rule of ours, in the spirit of a moderated t (Smyth 2004): it never makes a difference surer.
fn p(row: &Row, usual: f64) -> Option<f64> {
    match row.chance? {
        Chance::Undefined(p) => Some(p),
        Chance::Spread(spread) => {
            let own = spread.error * spread.error;
            let elsewhere = usual * value(row) * value(row);
            let error = own.max((own + elsewhere) / 2.0).sqrt();
            match row.method {
                // One run beside others that happen to be equal: it is the odd one of them all with
                // this probability.
                Method::Prediction if error == 0.0 => Some(1.0 / (spread.freedom + 2.0)),
                _ if error == 0.0 => None,
                _ => Some(student_p(
                    row.difference.unwrap_or(0.0) / error,
                    spread.freedom,
                )),
            }
        }
    }
}
