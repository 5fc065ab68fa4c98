//! How long a flow takes to deliver its first bytes.

use fullpipe_run::FlowOutcome;

/// Seconds from the flow's start until so many bytes of payload have been acknowledged, in whole
/// segments; linear within a round.
pub fn delivery_time(flow: &FlowOutcome, bytes: u64) -> Option<f64> {
    let segments = bytes.div_ceil(u64::from(flow.mss));
    let after = flow.rounds.partition_point(|r| r.delivered < segments);
    let (end, delivered) = match flow.rounds.get(after) {
        Some(round) => (round.start, round.delivered),
        // What a transfer ends with begins no other round.
        None if flow.totals.delivered >= segments => (flow.completed?, flow.totals.delivered),
        None => return None,
    };
    let at = match after.checked_sub(1).map(|i| &flow.rounds[i]) {
        None => end,
        Some(begin) => {
            let part = (segments - begin.delivered) as f64 / (delivered - begin.delivered) as f64;
            begin.start + (end - begin.start).mul_f64(part)
        }
    };
    Some(at.saturating_since(flow.started).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use fullpipe_run::Round;
    use fullpipe_units::Time;

    use super::*;
    use crate::testing::flow;

    fn close(got: Option<f64>, expected: f64) {
        assert!((got.unwrap() - expected).abs() < 1e-9, "{got:?}");
    }

    /// A hundred segments per round of 0.1 s: 150 kB are 104 segments of 1448 bytes.
    #[test]
    fn delivery_is_linear_within_a_round() {
        let mut f = flow("a");
        f.started = Time::from_secs_f64(1.0);
        f.rounds = (0..=20)
            .map(|i| Round {
                start: Time::from_secs_f64(1.0 + 0.1 * f64::from(i)),
                delivered: 100 * i as u64,
                cwnd: 100.0,
            })
            .collect();
        f.totals.delivered = 2050;
        close(delivery_time(&f, 15_000), 0.011);
        close(delivery_time(&f, 150_000), 0.104);
        close(delivery_time(&f, 1_500_000), 1.036);
        assert_eq!(delivery_time(&f, 15_000_000), None);
        // The end of a transfer begins no round.
        f.mss = 732;
        close(delivery_time(&f, 1_464_000), 2.0);
        assert_eq!(delivery_time(&f, 1_500_000), None);
        f.completed = Some(Time::from_secs_f64(3.2));
        close(delivery_time(&f, 1_500_600), 2.2);
    }
}
