//! Samples of a time in a log-linear histogram: 512 buckets per octave, so a percentile is within
//! 0.2 %; minimum, maximum and mean are exact.

use fullpipe_units::Span;

/// Distribution of samples of a time.
///
/// The samples of one flow or link span an octave or two far above a nanosecond, so the buckets
/// below the first one in use are not stored: a flow's RTT takes 2 to 8 kB instead of 35 kB.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Histogram {
    /// Bucket of `counts[0]`, a multiple of [`BLOCK`].
    first: usize,
    /// Samples per bucket from `first` on.
    counts: Vec<u32>,
    sum: u128,
    /// [`Span::MAX`] before the first sample.
    min: Span,
    max: Span,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            first: 0,
            counts: Vec::new(),
            sum: 0,
            min: Span::MAX,
            max: Span::ZERO,
        }
    }
}

/// A histogram on its way to another host, every bucket from zero on.
#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    counts: Vec<u32>,
    count: u64,
    sum: u128,
    min: Span,
    max: Span,
}

impl TryFrom<Parts> for Histogram {
    type Error = &'static str;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        let Parts {
            counts,
            count,
            sum,
            min,
            max,
        } = parts;
        let most = index(u64::MAX) + 1;
        if counts.len() > most || counts.iter().map(|n| u64::from(*n)).sum::<u64>() != count {
            return Err("a histogram whose counts do not fit");
        }
        // What is added up over many of them stays in its range too.
        if sum > u128::from(count) * u128::from(u64::MAX) || (count > 0 && min > max) {
            return Err("a histogram whose sum or ends do not fit");
        }
        let Some(used) = counts.iter().position(|n| *n > 0) else {
            return Ok(Self::default());
        };
        let first = used - used % BLOCK;
        Ok(Self {
            first,
            counts: counts[first..].to_vec(),
            sum,
            min,
            max,
        })
    }
}

impl From<Histogram> for Parts {
    fn from(h: Histogram) -> Self {
        let unused = if h.counts.is_empty() { 0 } else { h.first };
        let count = h.count();
        let mut counts = vec![0; unused];
        counts.extend(h.counts);
        Self {
            counts,
            count,
            sum: h.sum,
            min: h.min,
            max: h.max,
        }
    }
}

/// Buckets are stored in blocks of this many, so that samples that fall move them rarely.
const BLOCK: usize = 64;
/// log2 of the buckets per octave.
const SUB: u32 = 9;
/// Samples below this many nanoseconds share the first octave.
const UNIT: u32 = 10;

impl Histogram {
    /// Adds one sample.
    #[inline(always)]
    pub fn record(&mut self, sample: Span) {
        let bucket = index(sample.as_nanos());
        match self.counts.get_mut(bucket.wrapping_sub(self.first)) {
            Some(n) => *n += 1,
            None => self.record_outside(bucket),
        }
        self.sum += u128::from(sample.as_nanos());
        // Hardly ever true: a jump is cheaper than a store at every sample.
        if sample < self.min {
            self.min = sample;
        }
        if sample > self.max {
            self.max = sample;
        }
    }

    /// Adds one sample to a bucket that is not stored yet.
    #[cold]
    #[inline(never)]
    fn record_outside(&mut self, bucket: usize) {
        self.cover(bucket, bucket + 1);
        self.counts[bucket - self.first] += 1;
    }

    /// Stores every bucket from `from` up to `to` (exclusive), beside those stored already.
    fn cover(&mut self, from: usize, to: usize) {
        let from = from - from % BLOCK;
        if self.counts.is_empty() {
            self.first = from;
        } else if from < self.first {
            let below = self.first - from;
            self.counts.splice(0..0, std::iter::repeat_n(0, below));
            self.first = from;
        }
        let most = self.counts.len().max(to - self.first);
        self.counts.resize(most, 0);
    }

    /// Adds the same sample `n` times.
    #[inline]
    pub fn record_many(&mut self, sample: Span, n: u32) {
        if n == 0 {
            return;
        }
        self.record(sample);
        let more = n - 1;
        self.counts[index(sample.as_nanos()) - self.first] += more;
        self.sum += u128::from(sample.as_nanos()) * u128::from(more);
    }

    /// Adds the samples of another one.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.is_empty() {
            return;
        }
        self.cover(other.first, other.first + other.counts.len());
        let own = self.counts[other.first - self.first..].iter_mut();
        for (own, more) in own.zip(&other.counts) {
            *own += more;
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.min = self.min.min(other.min);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(*n)).sum()
    }

    /// Smallest sample.
    pub fn min(&self) -> Option<Span> {
        (!self.counts.is_empty()).then_some(self.min)
    }

    /// Largest sample.
    pub fn max(&self) -> Option<Span> {
        (!self.counts.is_empty()).then_some(self.max)
    }

    /// Mean in seconds.
    pub fn mean_s(&self) -> Option<f64> {
        let mean = || self.sum as f64 / self.count() as f64 * 1e-9;
        (!self.counts.is_empty()).then(mean)
    }

    /// The sample below which a fraction `q` of all lies, to a bucket's width (0.2 %), clamped to
    /// the exact extremes.
    pub fn quantile(&self, q: f64) -> Option<Span> {
        let min = self.min()?;
        let rank = (q.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (i, &c) in (self.first..).zip(&self.counts) {
            seen += u64::from(c);
            if seen >= rank {
                // What waits for nothing is in the first bucket, which a nanosecond shares.
                let edge = if i == 0 { 0 } else { upper(i) };
                return Some(Span::from_nanos(edge).min(self.max).max(min));
            }
        }
        Some(self.max)
    }
}

#[inline]
fn index(ns: u64) -> usize {
    let v = ns >> (UNIT - SUB).min(63);
    if v < 1 << SUB {
        return v as usize;
    }
    // The mantissa keeps its leading one, which is worth an octave.
    let octave = v.ilog2() - SUB;
    ((octave as usize) << SUB) + (v >> octave) as usize
}

fn upper(i: usize) -> u64 {
    let octave = i >> SUB;
    let low = if octave == 0 {
        i as u64 + 1
    } else {
        ((1 << SUB) + (i as u64 & ((1 << SUB) - 1)) + 1) << (octave - 1)
    };
    low << (UNIT - SUB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_lies_within_a_bucket_of_its_quantile() {
        for ns in [
            1u64,
            999,
            1000,
            80_000_000,
            80_019_293,
            1_234_567_890,
            u64::MAX / 4,
        ] {
            let u = upper(index(ns));
            assert!(u >= ns && u as f64 <= ns as f64 * 1.002 + 4.0, "{ns} {u}");
        }
    }

    #[test]
    fn nothing_is_nothing_beside_something() {
        let mut h = Histogram::default();
        for us in [0, 0, 0, 5000] {
            h.record(Span::from_micros(us));
        }
        assert_eq!(h.quantile(0.5), Some(Span::ZERO));
        assert_eq!(h.quantile(1.0), Some(Span::from_millis(5)));
    }

    #[test]
    fn quantiles_of_a_ramp() {
        let mut h = Histogram::default();
        for i in 1..=1000u64 {
            h.record(Span::from_micros(100 * i));
        }
        let q = |q| h.quantile(q).unwrap().as_secs_f64();
        assert!((q(0.5) / 0.05 - 1.0).abs() < 0.02, "{}", q(0.5));
        assert!((q(0.95) / 0.095 - 1.0).abs() < 0.02);
        assert_eq!(h.quantile(1.0), Some(Span::from_millis(100)));
        assert_eq!(h.min(), Some(Span::from_micros(100)));
        assert!((h.mean_s().unwrap() - 0.05005).abs() < 1e-12);
    }

    #[test]
    fn merged_parts_are_the_whole() {
        let (mut whole, mut parts) = (Histogram::default(), [(); 3].map(|()| Histogram::default()));
        for i in 1..=3000u64 {
            let sample = Span::from_nanos(i * i * 17);
            whole.record(sample);
            parts[(i % 3) as usize].record(sample);
        }
        let mut merged = Histogram::default();
        parts.iter().for_each(|part| merged.merge(part));
        merged.merge(&Histogram::default());
        assert_eq!(merged.count(), 3000);
        assert_eq!((merged.min(), merged.max()), (whole.min(), whole.max()));
        assert_eq!(merged.mean_s(), whole.mean_s());
        for q in [0.0, 0.01, 0.5, 0.95, 0.999, 1.0] {
            assert_eq!(merged.quantile(q), whole.quantile(q));
        }
    }

    #[test]
    fn many_at_once_are_as_many_one_by_one() {
        let [mut one_by_one, mut at_once] = [(); 2].map(|()| Histogram::default());
        for (i, n) in [(7u64, 3u32), (40_000, 0), (1_000_000, 1), (900, 64)] {
            let sample = Span::from_nanos(i);
            (0..n).for_each(|_| one_by_one.record(sample));
            at_once.record_many(sample, n);
        }
        assert_eq!(at_once.first, one_by_one.first);
        assert_eq!(at_once.counts, one_by_one.counts);
        assert_eq!((at_once.count(), at_once.sum), (68, one_by_one.sum));
        assert_eq!(
            (at_once.min(), at_once.max()),
            (one_by_one.min(), one_by_one.max())
        );
    }

    /// Samples that fall by 64 octaves, and what a host sends of them, are the plain array's.
    #[test]
    fn buckets_below_the_first_sample_are_stored_when_they_are_needed() {
        let mut h = Histogram::default();
        let mut plain = vec![0u32; index(u64::MAX) + 1];
        for ns in [
            80_000_000u64,
            79_000_000,
            81_000_000,
            u64::MAX / 3,
            1500,
            7,
            0,
            80_000_000,
        ] {
            h.record(Span::from_nanos(ns));
            plain[index(ns)] += 1;
        }
        assert_eq!(h.first, 0);
        let of = |h: &Histogram| Parts::from(h.clone()).counts;
        let used = of(&h).len();
        assert_eq!(of(&h), plain[..used]);
        assert!(plain[used..].iter().all(|n| *n == 0));

        let mut high = Histogram::default();
        high.record(Span::from_millis(80));
        assert!(high.counts.len() <= BLOCK, "{}", high.counts.len());
        let back = Histogram::try_from(Parts::from(high.clone())).unwrap();
        assert_eq!((back.first, &back.counts), (high.first, &high.counts));
        let mut both = high.clone();
        both.merge(&h);
        let mut other = h.clone();
        other.merge(&high);
        assert_eq!(of(&both), of(&other));
        assert_eq!(both.count(), 9);
    }

    #[test]
    fn empty_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
