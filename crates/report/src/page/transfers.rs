//! Short flows of a case as distributions: completion times, and losses inside the first segments.

use super::data::{Completions, Losses};
use super::pack;
use fullpipe_results::store::Table;

/// The classes of short flows in the tables of all seeds of a case: those flows that start after
/// the warm-up, as in the metrics.
pub(super) fn completions(seeds: &[Table], warmup_s: f64) -> Vec<Completions> {
    let classes = classes(seeds, warmup_s).into_iter();
    classes.map(|(name, c)| c.finish(name)).collect()
}

/// Completion times of every class, seconds, and how many did not finish.
pub(crate) fn times(seeds: &[Table], warmup_s: f64) -> Vec<(String, Vec<f64>, u64)> {
    let classes = classes(seeds, warmup_s).into_iter();
    classes
        .map(|(name, c)| (name, c.times, c.unfinished))
        .collect()
}

fn classes(seeds: &[Table], warmup_s: f64) -> Vec<(String, Class)> {
    let mut classes: Vec<(String, Class)> = Vec::new();
    for table in seeds {
        let names = table.text("name").unwrap_or_default();
        let sizes = table.int("size_segments").unwrap_or_default();
        let times = table.float("completion_time_s").unwrap_or_default();
        let lost = table.int("lost_mask").unwrap_or_default();
        let starts = table.float("start_s").unwrap_or_default();
        let rows = names.iter().zip(sizes).zip(times).zip(lost).zip(starts);
        for ((((name, &size), &time), &lost), &start) in rows {
            if start.is_some_and(|start| start < warmup_s) {
                continue;
            }
            let class = match classes.iter().position(|(n, _)| n == name) {
                Some(at) => &mut classes[at].1,
                None => {
                    classes.push((name.clone(), Class::default()));
                    &mut classes.last_mut().expect("just pushed").1
                }
            };
            class.add(size, time, lost.cast_unsigned());
        }
    }
    classes
}

#[derive(Debug, Default)]
struct Class {
    times: Vec<f64>,
    unfinished: u64,
    /// Transfers with segment `i`.
    with: [u64; FIRST],
    /// Transfers that lost segment `i`.
    lost: [u64; FIRST],
    /// Transfers with segment `i + 1` that lost segment `i`.
    before: [u64; FIRST],
    /// Those of them that lost segment `i + 1` as well.
    both: [u64; FIRST],
}

impl Class {
    fn add(&mut self, size: i64, time: Option<f64>, lost: u64) {
        match time {
            Some(t) => self.times.push(t),
            None => self.unfinished += 1,
        }
        let segments = usize::try_from(size).unwrap_or(0).min(FIRST);
        let bit = |i: usize| lost >> i & 1;
        for i in 0..segments {
            self.with[i] += 1;
            self.lost[i] += bit(i);
            if i + 1 < segments {
                self.before[i] += bit(i);
                self.both[i] += bit(i) & bit(i + 1);
            }
        }
    }

    fn finish(mut self, name: String) -> Completions {
        self.times.sort_by(f64::total_cmp);
        let n = self.times.len();
        let points = n.min(QUANTILES);
        let quantile = |k: usize| self.times[k * (n - 1) / (points - 1).max(1)];
        let quantiles: Vec<f64> = (0..points).map(quantile).collect();
        let part = |a: u64, of: u64| (of > 0).then(|| a as f64 / of as f64);
        let segments = self.with.iter().take_while(|&&w| w > 0).count();
        let any = self.lost.iter().any(|&l| l > 0);
        Completions {
            name,
            finished: n as u64,
            unfinished: self.unfinished,
            quantiles: pack::f32s(&quantiles),
            losses: any.then(|| Losses {
                each: (0..segments)
                    .map(|i| part(self.lost[i], self.with[i]))
                    .collect(),
                next: (1..segments)
                    .map(|i| part(self.both[i - 1], self.before[i - 1]))
                    .collect(),
                transfers: self.with[..segments].to_vec(),
            }),
        }
    }
}

/// Points of a distribution.
const QUANTILES: usize = 200;
/// Segments whose losses are looked at: the largest initial windows of the documents.
const FIRST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_results::store::Column;

    fn table(rows: &[(&str, i64, Option<f64>, i64)]) -> Table {
        let mut t = Table::default();
        t.push(
            "name",
            Column::Text(rows.iter().map(|r| r.0.to_owned()).collect()),
        );
        t.push(
            "size_segments",
            Column::Int(rows.iter().map(|r| r.1).collect()),
        );
        t.push(
            "completion_time_s",
            Column::Float(rows.iter().map(|r| r.2).collect()),
        );
        t.push("lost_mask", Column::Int(rows.iter().map(|r| r.3).collect()));
        let starts = (0..rows.len()).map(|i| Some(i as f64));
        t.push("start_s", Column::Float(starts.collect()));
        t
    }

    #[test]
    fn seeds_are_pooled_by_class() {
        let a = table(&[("web", 3, Some(0.5), 0), ("mice", 9, Some(1.0), 0)]);
        let b = table(&[("web", 3, None, 0)]);
        let c = completions(&[a, b], 0.0);
        assert_eq!(
            c.iter()
                .map(|c| (c.name.as_str(), c.finished, c.unfinished))
                .collect::<Vec<_>>(),
            [("web", 1, 1), ("mice", 1, 0)]
        );
        assert!(c[0].losses.is_none());
    }

    #[test]
    fn losses_and_those_after_a_loss() {
        // Four transfers of three segments: none, the second, the second and third, and one of two
        // segments that lost its second.
        let seed = table(&[
            ("w", 3, Some(1.0), 0b000),
            ("w", 3, Some(1.0), 0b010),
            ("w", 3, Some(1.0), 0b110),
            ("w", 2, Some(1.0), 0b10),
        ]);
        let after_warmup = &completions(std::slice::from_ref(&seed), 2.0)[0];
        assert_eq!(after_warmup.finished, 2);
        assert_eq!(after_warmup.losses.as_ref().unwrap().transfers, [2, 2, 1]);
        let c = completions(&[seed], 0.0);
        let l = c[0].losses.as_ref().unwrap();
        assert_eq!(l.transfers, [4, 4, 3]);
        assert_eq!(l.each, [Some(0.0), Some(0.75), Some(1.0 / 3.0)]);
        // No transfer lost its first; of two that lost the second and had a third, one lost that
        // too.
        assert_eq!(l.next, [None, Some(0.5)]);
    }

    #[test]
    fn a_distribution_keeps_its_ends() {
        let rows: Vec<_> = (0..1000)
            .map(|i| ("w", 1, Some(f64::from(1000 - i)), 0))
            .collect();
        let mut class = Class::default();
        for r in &rows {
            class.add(r.1, r.2, 0);
        }
        let first = pack::f32s(&[1.0]);
        let last = pack::f32s(&[1000.0]);
        let text = class.finish("w".into()).quantiles;
        assert_eq!(text.len(), (QUANTILES * 4).div_ceil(3) * 4);
        assert_eq!(text[..5], first[..5]);
        // The last two of 200 floats end the base64 text together: compare the distribution of a
        // short one instead.
        let mut few = Class::default();
        few.add(1, Some(1000.0), 0);
        assert_eq!(few.finish("w".into()).quantiles, last);
    }
}
