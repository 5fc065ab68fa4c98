//! Many differences judged together.

use std::collections::BTreeMap;

use super::difference::{Spread, size};
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
    let spreads = spreads(&rows);
    for row in &mut rows {
        let like = spreads.get(&(row.metric.clone(), row.method));
        row.p = p(row, like.map_or(&[], Vec::as_slice));
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

/// Standard errors of the same metric, as parts of its value, of all rows that have it, made in the
/// same way: in order.
fn spreads(rows: &[&mut Row]) -> BTreeMap<(String, Method), Vec<f64>> {
    let mut all: BTreeMap<(String, Method), Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let Some(Chance::Spread(spread)) = row.chance {
            let part = part(spread, row);
            let key = (row.metric.clone(), row.method);
            all.entry(key).or_default().push(part);
        }
    }
    for parts in all.values_mut() {
        parts.sort_by(f64::total_cmp);
    }
    all
}

/// A standard error as a part of the values; of none where they are zero.
fn part(spread: Spread, row: &Row) -> f64 {
    let part = spread.error / value(row);
    if part.is_finite() { part } else { 0.0 }
}

fn value(row: &Row) -> f64 {
    size(row.a.mean.iter().chain(&row.b.mean))
}

/// Student's probability, of the row's own spread. Seeds that lie close together by chance, or on
/// the same of two values, would make any difference certain: it is no less than the probability
/// that the row is like those in whose spread the difference is nothing (their part of the others
/// of the same metric, `like`), times that of seeds that fall apart so cleanly nevertheless.
///
/// A rule of ours. A moderated t (Smyth 2004) takes spreads for those of normal distributions: of
/// two lots of seeds of the same it finds more to be different than Student's t does. A spread that
/// counts as no less than that of others hides what is certain in a case without losses behind the
/// noise of those with.
fn p(row: &Row, like: &[f64]) -> Option<f64> {
    let spread = match row.chance? {
        Chance::Undefined(p) => return Some(p),
        Chance::Spread(spread) => spread,
    };
    if spread.error == 0.0 && row.verdict == Verdict::Same {
        return None;
    }
    let difference = row.difference.unwrap_or(0.0);
    let own = match (spread.error, row.method) {
        // One run beside others that happen to be equal: it is the odd one of them all with this
        // probability.
        (0.0, Method::Prediction) => 1.0 / (spread.freedom + 2.0),
        (0.0, _) => 0.0,
        (error, _) => student_p(difference / error, spread.freedom),
    };
    let clean = clean(row.pairs.map_or([row.a.seeds, row.b.seeds], |n| [n, n]));
    let explains = |part: &f64| {
        let error = part * value(row);
        error > 0.0 && student_p(difference / error, spread.freedom) > clean
    };
    let noisy = like.len() - like.partition_point(|part| !explains(part));
    // Of the others, not of the row itself.
    let noisy = noisy.saturating_sub(usize::from(explains(&part(spread, row))));
    let others = like.len().saturating_sub(1);
    let share = noisy as f64 / others.max(1) as f64;
    let p = own.max(share * clean);
    (spread.error > 0.0 || p > 0.0).then_some(p)
}

/// Probability that of runs with two values those of one side all have the one, and those of the
/// other side the other, if the values are as frequent as makes it largest.
fn clean([a, b]: [usize; 2]) -> f64 {
    let part = |n: usize| (n as f64 / (a + b) as f64).powf(n as f64);
    2.0 * part(a) * part(b)
}
