//! Many differences judged together.

use super::row::{FALSE, Row, Verdict};

/// Calls indistinguishable what is real alone, but not among so many: of a hundred numbers that
/// chance alone tells apart five leave their 95 % interval. False discovery rate after Benjamini
/// and Hochberg (1995); where nothing differs, one comparison of twenty says that something does.
///
/// The numbers are those that decide and that chance tells apart. Where both sides have the same in
/// every run there is nothing that could have come out otherwise, and no test.
pub(super) fn judge<'a>(rows: impl Iterator<Item = &'a mut Row>) {
    let is_test = |r: &&mut Row| r.judged && r.verdict != Verdict::Same && r.p.is_some();
    let mut tests: Vec<&mut Row> = rows.filter(is_test).collect();
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
