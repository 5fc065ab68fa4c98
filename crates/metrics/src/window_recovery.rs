//! What follows a flow's first congestion event, and the climb before it: recovery time, recovery
//! of the window, decrease and increase, as the plots of the Net100 project (2003) show them.
//!
//! The window is read as [`trajectory`] has it.

use fullpipe_flow::{Episode, EpisodeKind};
use fullpipe_run::{FlowOutcome, Round};
use fullpipe_units::{Span, Time};

use crate::group::{FlowGroup, RecoveredAt};
use crate::number::ratio;
use crate::trajectory::{Point, ROUNDING, crossing, reaches, trajectory};

/// Seconds from the start to the window cap.
pub fn climb_time(group: &FlowGroup, flow: &FlowOutcome) -> Option<f64> {
    let at = reaches(&trajectory(flow), flow.started, group.window_cap?)?;
    Some(at.saturating_since(flow.started).as_secs_f64())
}

/// The first reduction or timeout.
pub fn first_event(flow: &FlowOutcome) -> Option<Episode> {
    let counts = |e: &&Episode| matches!(e.kind, EpisodeKind::Congestion(_) | EpisodeKind::Timeout);
    flow.episodes.iter().find(counts).copied()
}

/// The first event that ended start-up, a reduction or its own decision.
pub fn startup_exit(flow: &FlowOutcome) -> Option<Episode> {
    let counts = |e: &&Episode| {
        matches!(
            e.kind,
            EpisodeKind::Congestion(_) | EpisodeKind::Timeout | EpisodeKind::StartUpExit
        )
    };
    flow.episodes.iter().find(counts).copied()
}

/// `b = 1 - after/before`.
pub fn decrease(event: &Episode) -> Option<f64> {
    ratio(event.before - event.after, event.before)
}

/// Seconds from the event until the flow is back at [`FlowGroup::recovered_at`].
pub fn recovery_time(group: &FlowGroup, flow: &FlowOutcome, event: &Episode) -> Option<f64> {
    let back = match group.recovered_at {
        RecoveredAt::Window(w) => returns_to(flow, event, w)?,
        RecoveredAt::Rate(part) => {
            let rate = part * full_rate(group);
            full_rate_again(flow, event, rate, group.base_rtt)?
        }
    };
    Some(back.saturating_since(event.at).as_secs_f64())
}

/// Seconds from a time of the run until the flow is at [`FlowGroup::recovered_at`]; 0 if it is
/// there already.
pub fn time_from(group: &FlowGroup, flow: &FlowOutcome, from: Time) -> Option<f64> {
    let from = from.max(flow.started);
    let at = match group.recovered_at {
        RecoveredAt::Window(w) => {
            let points = trajectory(flow);
            let before = points.partition_point(|p| p.at <= from).checked_sub(1);
            match before.is_some_and(|i| points[i].last >= w * (1.0 - ROUNDING)) {
                true => from,
                false => reaches(&points, from, w)?,
            }
        }
        RecoveredAt::Rate(part) => {
            let rate = part * full_rate(group);
            let begin = flow.rounds.partition_point(|r| r.start < from);
            let there = |i: &usize| {
                delivers(flow, *i, group.base_rtt).is_some_and(|(delivered, _)| delivered >= rate)
            };
            let first = (begin..flow.rounds.len()).find(there)?;
            match first == begin {
                true => from,
                false => delivers(flow, first, group.base_rtt)?.1,
            }
        }
    };
    Some(at.saturating_since(from).as_secs_f64())
}

/// Seconds from the event until the window is back at its value before it.
pub fn reopen_time(flow: &FlowOutcome, event: &Episode) -> Option<f64> {
    Some((returns_to(flow, event, event.before)? - event.at).as_secs_f64())
}

/// `min(capacity, window_cap * packet / base_rtt)` of one member, bit/s with headers.
fn full_rate(group: &FlowGroup) -> f64 {
    let capacity = group.capacity.as_bits_per_sec() as f64;
    let of_cap = group.window_cap.and_then(|w| {
        ratio(
            w * 8.0 * f64::from(group.packet),
            group.base_rtt.as_secs_f64(),
        )
    });
    of_cap.map_or(capacity, |r| r.min(capacity))
}

/// End of the first round after the event that delivers at `rate` again. The event's own time if no
/// round falls below it because of it: the data in flight hides a reduction for up to two rounds,
/// and a queue may hide it for good. What an AQM adds before a reduction has shown is of the same
/// episode: the flow is back after the last of them.
fn full_rate_again(flow: &FlowOutcome, event: &Episode, rate: f64, base: Span) -> Option<Time> {
    let last = last_of_episode(flow, event);
    let mut below = false;
    // Rounds that have ended since the last reduction.
    let mut since = 0;
    let begin = flow.rounds.partition_point(|r| r.start <= event.at);
    for i in begin.saturating_sub(1)..flow.rounds.len() {
        let Some((delivered, end)) = delivers(flow, i, base) else {
            continue;
        };
        if delivered < rate {
            // A fall that begins later has a cause of its own.
            if !below && since >= HIDDEN_ROUNDS {
                return Some(event.at);
            }
            below = true;
        } else if below && flow.rounds[i].start >= last {
            return Some(end);
        }
        since += usize::from(flow.rounds[i + 1].start > last);
    }
    (!below && since >= HIDDEN_ROUNDS).then_some(event.at)
}

/// What is delivered from the start of a round, bit/s with headers, and the end of what was looked
/// at: the round, and as many behind it as are over within the RTT of the idle path. An ACK that
/// fills a hole ends rounds that took no time of their own.
fn delivers(flow: &FlowOutcome, begin: usize, base: Span) -> Option<(f64, Time)> {
    let first = flow.rounds.get(begin)?;
    let behind = flow.rounds.get(begin + 1..)?;
    // Within the rounding of a start.
    let least = base.mul_f64(1.0 - 1e-3);
    let rounds = 1 + behind.iter().position(|r| r.start - first.start >= least)?;
    let end = &behind[rounds - 1];
    let seconds = (end.start - first.start).as_secs_f64();
    // A round delivers no more than its window. What goes beyond it was sent before: an ACK that
    // fills a hole after a timeout counts a whole window at once.
    let windows = flow.rounds[begin..=begin + rounds].iter().map(|r| r.cwnd);
    let window = windows.fold(0.0, f64::max).ceil();
    let trips = match rounds {
        1 => 1.0,
        _ => seconds / base.as_secs_f64(),
    };
    let segments = end.delivered.saturating_sub(first.delivered) as f64;
    let bits = 8.0 * f64::from(flow.packet) * segments.min(window * trips);
    Some((ratio(bits, seconds)?, end.start))
}

/// When the last event of an episode happened: each follows the one before within the rounds that
/// may hide it.
fn last_of_episode(flow: &FlowOutcome, event: &Episode) -> Time {
    use EpisodeKind::{Congestion, LostRetransmission, Timeout};
    let reduces = |e: &&Episode| {
        matches!(e.kind, Congestion(_) | LostRetransmission | Timeout) && e.after < e.before
    };
    let mut last = event.at;
    // A model may lose without reducing.
    if !reduces(&event) {
        return last;
    }
    let later = flow.episodes.iter().filter(|e| e.at > event.at);
    for e in later.filter(reduces) {
        let between = flow
            .rounds
            .iter()
            .filter(|r| r.start > last && r.start <= e.at);
        if between.count() > HIDDEN_ROUNDS {
            break;
        }
        last = e.at;
    }
    last
}

/// When the window is back at `target` after the event; the event's own time if the reduction left
/// it above.
fn returns_to(flow: &FlowOutcome, event: &Episode, target: f64) -> Option<Time> {
    if event.after >= target * (1.0 - ROUNDING) {
        return Some(event.at);
    }
    let points = trajectory(flow);
    // Reductions may be spread over a round, so first wait until half of this one has shown.
    let halfway = 0.5 * (event.after + target);
    let shown = points
        .iter()
        .position(|p| p.at >= event.at && p.low < halfway)?;
    let mut after = &points[shown..];
    // The row in which it shows may begin before the event: only what it ends with counts.
    let first = Point {
        low: after[0].last,
        high: after[0].last,
        ..after[0]
    };
    if first.last >= target * (1.0 - ROUNDING) {
        return Some(first.at);
    }
    after = &after[1..];
    crossing(Some(first), after, target)
}

/// Growth of the window over a round while it recovers, segments.
pub struct Growth {
    /// The first whole round of the recovery.
    pub first: f64,
    /// The last one.
    pub last: f64,
}

/// Growth over the first round that begins after the window has started to grow again, and over the
/// last that ends below the window before the event; both before whatever else changes the window
/// at one stroke. `None` after a timeout: slow start is no law of growth per round.
pub fn growth_per_round(flow: &FlowOutcome, event: &Episode) -> Option<Growth> {
    if event.kind == EpisodeKind::Timeout {
        return None;
    }
    let gentle = |kind| matches!(kind, EpisodeKind::StartUpExit | EpisodeKind::Change);
    let is_abrupt = |e: &&Episode| e.at > event.at && !gentle(e.kind);
    let next = flow.episodes.iter().find(is_abrupt);
    let until = next.map_or(Time::MAX, |e| e.at);
    let rounds = flow.rounds.iter();
    let after: Vec<&Round> = rounds
        .filter(|r| r.start > event.at && r.start < until)
        .collect();
    // Lowest point first: the window may still shrink during the recovery round.
    let dip = after
        .iter()
        .position(|r| r.cwnd < 0.5 * (event.after + event.before))?;
    let rising = dip
        + after[dip..]
            .windows(2)
            .position(|r| r[1].cwnd > r[0].cwnd)?;
    let begin = rising + 1;
    let growth = |i: usize| Some(after.get(i + 1)?.cwnd - after[i].cwnd);
    let back = after[begin..]
        .iter()
        .position(|r| r.cwnd >= event.before * (1.0 - ROUNDING))
        .map(|i| begin + i);
    // Rounds begin..=last lie whole inside the reopening: the round after `last` begins below the
    // old window.
    let last = back.unwrap_or(after.len()).checked_sub(2)?;
    (last >= begin)
        .then(|| {
            Some(Growth {
                first: growth(begin)?,
                last: growth(last)?,
            })
        })
        .flatten()
}

/// Rounds during which what was in flight may hide a reduction.
const HIDDEN_ROUNDS: usize = 3;
#[cfg(test)]
mod tests {
    use fullpipe_cc::CongestionKind;
    use fullpipe_flow::TraceRow;
    use fullpipe_units::Rate;

    use super::*;
    use crate::testing::{flow, flow_values, group, outcome, rounds};
    use crate::values::Values;

    const RTT: f64 = 0.1;

    fn loss(at: f64, before: f64, after: f64) -> Episode {
        Episode {
            at: Time::from_secs_f64(at),
            kind: EpisodeKind::Congestion(CongestionKind::Loss),
            before,
            after,
        }
    }

    /// Slow start to 1000, capped; a loss at 2.05 s; +1 per round from `after`.
    fn one_drop(after: f64, a: f64) -> FlowOutcome {
        let mut windows = vec![];
        let mut w: f64 = 2.0;
        while windows.len() < 21 {
            windows.push(w);
            w = (2.0 * w).min(1000.0);
        }
        windows.push(after);
        let mut w = after;
        for _ in 0..1000 {
            windows.push(w);
            w = (w + a).min(1000.0);
        }
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        f.episodes = vec![loss(2.05, 1000.0, after)];
        f
    }

    fn capped(cap: f64) -> FlowGroup {
        let mut g = group("a", 0..1);
        g.window_cap = Some(cap);
        g.capacity = Rate::from_bits_per_sec(1_000_000_000);
        g
    }

    fn close(got: Option<f64>, expected: f64, tolerance: f64) {
        let got = got.expect("defined");
        assert!(
            (got - expected).abs() <= tolerance,
            "{got} is not {expected} +- {tolerance}"
        );
    }

    fn all(g: &FlowGroup, f: &[FlowOutcome]) -> Values {
        let mut g = g.clone();
        g.members = 0..f.len();
        flow_values(&g, &outcome(f.to_vec(), 1000, 0, 1))
    }

    #[test]
    fn reno_reopens_in_500_rounds() {
        let f = one_drop(500.0, 1.0);
        let v = all(&capped(1000.0), &[f]);
        // The window is 500 at 2.1 and 2.2 s, then +1 per round: 1000 at 52.2 s.
        close(v["reopen_time_s"], 50.15, 1e-9);
        close(v["decrease_fraction"], 0.5, 0.0);
        close(v["increase_per_rtt_first"], 1.0, 1e-9);
        close(v["increase_per_rtt_last"], 1.0, 1e-9);
        close(v["first_loss_s"], 2.05, 1e-9);
        close(v["first_loss_cwnd"], 1000.0, 0.0);
    }

    #[test]
    fn full_rate_waits_for_the_dip() {
        // Cap 1000: full rate is that of the window; the round in which the loss falls still
        // delivers it.
        let f = one_drop(500.0, 1.0);
        let v = all(&capped(1000.0), &[f]);
        // 950 is the window at 2.2 + 45.0 s; that round ends 0.1 s later.
        close(v["recovery_time_s"], 47.2 + 0.1 - 2.05, 0.1);
        // Half of full rate: never below.
        let mut g = capped(1000.0);
        g.recovered_at = RecoveredAt::Rate(0.4);
        close(
            all(&g, &[one_drop(500.0, 1.0)])["recovery_time_s"],
            0.0,
            0.0,
        );
    }

    #[test]
    fn recovery_to_a_window() {
        let mut g = capped(1000.0);
        for (target, expected) in [(1000.0, 50.15), (900.0, 40.15), (500.5, 0.2), (400.0, 0.0)] {
            g.recovered_at = RecoveredAt::Window(target);
            close(
                all(&g, &[one_drop(500.0, 1.0)])["recovery_time_s"],
                expected,
                1e-6,
            );
        }
        g.recovered_at = RecoveredAt::Window(1001.0);
        assert_eq!(all(&g, &[one_drop(500.0, 1.0)])["recovery_time_s"], None);
    }

    /// The window grows by one per 0.1 s from 500 at 2.1 s.
    #[test]
    fn recovery_counted_from_a_time() {
        let mut g = capped(1000.0);
        let mut f = one_drop(500.0, 1.0);
        for (from, target, expected) in [
            (10.0, RecoveredAt::Window(900.0), Some(32.2)),
            (10.0, RecoveredAt::Window(560.0), Some(0.0)),
            (10.0, RecoveredAt::Window(1001.0), None),
            (10.0, RecoveredAt::Rate(0.95), Some(37.3)),
            (10.0, RecoveredAt::Rate(0.5), Some(0.0)),
            // Before the loss it is there.
            (2.04, RecoveredAt::Window(900.0), Some(0.0)),
        ] {
            (g.recovered_at, g.recovered_from) = (target, Some(Time::from_secs_f64(from)));
            let v = all(&g, std::slice::from_ref(&f))["recovery_time_s"];
            match expected {
                Some(expected) => close(v, expected, 0.11),
                None => assert_eq!(v, None, "{target:?}"),
            }
        }
        // Without a loss too, which it is not counted from.
        f.episodes.clear();
        g.recovered_at = RecoveredAt::Window(560.0);
        close(all(&g, &[f])["recovery_time_s"], 0.0, 1e-9);
    }

    #[test]
    fn without_an_event_everything_is_undefined() {
        let mut f = one_drop(500.0, 1.0);
        f.episodes.clear();
        let v = all(&capped(1000.0), &[f]);
        for name in [
            "recovery_time_s",
            "reopen_time_s",
            "decrease_fraction",
            "increase_per_rtt_first",
            "increase_per_rtt_last",
            "first_loss_s",
            "first_loss_cwnd",
            "startup_exit_s",
            "startup_exit_cwnd",
        ] {
            assert_eq!(v[name], None, "{name}");
        }
    }

    #[test]
    fn an_early_loss_recovers_once_the_rate_is_there() {
        // Capacity 100 Mbit/s x 100 ms = 833.3 packets; a loss at a window of 32.
        let mut windows = vec![2.0, 4.0, 8.0, 16.0, 32.0, 16.0];
        windows.extend((0..900).map(|i| 16.0 + f64::from(i)));
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        f.episodes = vec![loss(0.45, 32.0, 16.0)];
        let v = all(&group("a", 0..1), &[f]);
        // 0.95 * 833.33 = 791.67: the round with 792 begins at 0.6 + 77.6 s and ends 0.1 s later.
        close(v["recovery_time_s"], 78.2 + 0.1 - 0.45, 1e-6);
    }

    #[test]
    fn a_queue_that_hides_the_reduction_means_no_recovery_time() {
        // The pipe holds 833 packets; the window goes from 1600 to 900: never below.
        let windows: Vec<f64> = (0..400)
            .map(|i| if i < 21 { 833.4 } else { 833.5 })
            .collect();
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        f.episodes = vec![loss(2.05, 1600.0, 900.0)];
        close(
            all(&group("a", 0..1), &[f.clone()])["recovery_time_s"],
            0.0,
            0.0,
        );
        // Too few rounds to tell.
        let short = FlowOutcome {
            rounds: f.rounds[..23].to_vec(),
            ..f.clone()
        };
        assert_eq!(all(&group("a", 0..1), &[short])["recovery_time_s"], None);
        // A later event is not charged to the first.
        let mut w = windows;
        w[100..110].fill(10.0);
        f.rounds = rounds(0.0, RTT, &w);
        f.episodes.push(loss(9.95, 1600.0, 10.0));
        close(all(&group("a", 0..1), &[f])["recovery_time_s"], 0.0, 0.0);
    }

    /// A queue still hides the first cut of an AQM when the next ones come, and what it held makes
    /// a round of full rate between them: the flow is back after the last.
    #[test]
    fn reductions_in_a_row_are_one_episode() {
        let mut windows = vec![900.0; 21];
        // The last round of full rate is the one in which the last reduction falls.
        windows.extend([500.0, 850.0, 850.0]);
        windows.extend((0..900).map(|i| (125.0 + f64::from(i)).min(900.0)));
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        let again = Episode {
            kind: EpisodeKind::LostRetransmission,
            ..loss(2.25, 1000.0, 250.0)
        };
        let row = [loss(2.05, 1600.0, 1000.0), again, loss(2.35, 250.0, 125.0)];
        f.episodes = row.to_vec();
        let v = all(&group("a", 0..1), &[f.clone()]);
        // 792 is the window of round 24 + 667, which ends 0.1 s later.
        close(v["recovery_time_s"], 69.2 - 2.05, 0.1 + 1e-9);
        // One event alone, and the round of full rate is the end.
        f.episodes.truncate(1);
        close(
            all(&group("a", 0..1), &[f])["recovery_time_s"],
            2.3 - 2.05,
            1e-6,
        );
    }

    /// The path is away long after the event, and the timeout comes later still.
    #[test]
    fn an_outage_is_not_the_first_event_s() {
        let mut w = vec![833.5; 400];
        w[60..80].fill(1.0);
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &w);
        let timeout = Episode {
            kind: EpisodeKind::Timeout,
            ..loss(6.35, 833.5, 1.0)
        };
        f.episodes = vec![loss(2.05, 1600.0, 900.0), timeout];
        close(all(&group("a", 0..1), &[f])["recovery_time_s"], 0.0, 0.0);
    }

    #[test]
    fn table_steps_are_seen_at_both_ends() {
        // +7 below 800, +8 above, from 670.
        let mut windows = vec![1000.0; 21];
        windows.push(670.0);
        let mut w: f64 = 670.0;
        for _ in 0..100 {
            windows.push(w);
            w = (w + if w < 800.0 { 7.0 } else { 8.0 }).min(1000.0);
        }
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        f.episodes = vec![loss(2.05, 1000.0, 670.0)];
        let v = all(&capped(1000.0), &[f]);
        close(v["increase_per_rtt_first"], 7.0, 1e-9);
        close(v["increase_per_rtt_last"], 8.0, 1e-9);
        close(v["decrease_fraction"], 0.33, 1e-12);
    }

    #[test]
    fn a_partial_first_round_is_not_taken() {
        // Growth starts in the middle of a round: +3 there, +7 in each whole one.
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &[1000.0, 1000.0, 670.0, 673.0, 680.0, 687.0]);
        f.episodes = vec![loss(0.15, 1000.0, 670.0)];
        let v = all(&capped(2000.0), &[f]);
        close(v["increase_per_rtt_first"], 7.0, 1e-9);
    }

    /// A path that reorders: every tenth of a second an ACK fills a hole, and what it covers makes
    /// a round of 5 ms, faster than the path for no time at all.
    #[test]
    fn rounds_that_take_no_time_are_no_recovery() {
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &[900.0; 21]);
        let mut at = f.rounds[20];
        for i in 0..400 {
            let (takes, delivers) = if i % 2 == 0 { (95, 20) } else { (5, 50) };
            at.start += Span::from_millis(takes);
            at.delivered += delivers;
            at.cwnd = 59.0;
            f.rounds.push(at);
        }
        f.episodes = vec![loss(2.05, 1600.0, 59.0)];
        assert_eq!(
            all(&group("a", 0..1), &[f.clone()])["recovery_time_s"],
            None
        );
        // 420 and 420 of them are the rate: 840 in each tenth of a second.
        for (i, round) in f.rounds[21..].iter_mut().enumerate() {
            round.delivered += 385 * i as u64;
            round.cwnd = 900.0;
        }
        let v = all(&group("a", 0..1), &[f]);
        assert!(v["recovery_time_s"].is_some());
    }

    /// The first ACK behind a timeout shows that it was spurious: no round began meanwhile.
    #[test]
    fn an_undo_of_one_ack_reopens_the_window() {
        let mut f = flow("a");
        let mut windows = rounds(0.0, RTT, &[150.0; 60]);
        windows.retain(|r| !(2.05..2.45).contains(&r.start.as_secs_f64()));
        f.rounds = windows;
        let timeout = Episode {
            kind: EpisodeKind::Timeout,
            ..loss(2.1, 150.0, 1.0)
        };
        let undo = Episode {
            kind: EpisodeKind::Undo(None),
            ..loss(2.371, 1.0, 150.0)
        };
        f.episodes = vec![timeout, undo];
        let v = all(&group("a", 0..1), &[f]);
        close(v["reopen_time_s"], 0.271, 1e-9);
    }

    /// 500 segments, a loss, then a timeout whose first ACK fills the hole: 998 segments that had
    /// arrived before count at once in a round of four. The window is back after slow start to 250
    /// and one segment per round.
    #[test]
    fn a_hole_that_is_filled_is_no_recovery() {
        let mut windows = vec![1000.0; 21];
        windows.extend([500.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 250.0]);
        windows.extend((1..900).map(|i| (250.0 + f64::from(i)).min(1000.0)));
        let mut f = flow("a");
        f.rounds = rounds(0.0, RTT, &windows);
        for r in &mut f.rounds[24..] {
            r.delivered += 998;
        }
        let timeout = Episode {
            kind: EpisodeKind::Timeout,
            ..loss(2.15, 500.0, 1.0)
        };
        f.episodes = vec![loss(2.05, 1000.0, 500.0), timeout];
        let v = all(&capped(1000.0), &[f.clone()]);
        // 950 is the window of round 730, which ends at 73.1 s.
        close(v["recovery_time_s"], 73.1 - 2.05, 0.1 + 1e-9);
        // Neither slow start nor the drop to one segment is a growth of the law.
        assert_eq!(v["increase_per_rtt_first"], None);
        f.episodes.remove(0);
        assert_eq!(all(&capped(1000.0), &[f])["increase_per_rtt_first"], None);
    }

    /// A second reduction, or an undo, ends what is measured of the first one.
    #[test]
    fn growth_is_never_a_jump() {
        let measured = |windows: &[f64], second: Episode| {
            let mut f = flow("a");
            f.rounds = rounds(0.0, RTT, windows);
            f.episodes = vec![loss(0.15, 1000.0, 670.0), second];
            all(&capped(2000.0), &[f])
        };
        for (kind, to) in [
            (EpisodeKind::Congestion(CongestionKind::Loss), 460.0),
            (EpisodeKind::Undo(None), 990.0),
        ] {
            let windows = [1000.0, 1000.0, 670.0, 673.0, 680.0, 687.0, to, to + 7.0];
            let second = Episode {
                kind,
                ..loss(0.55, 687.0, to)
            };
            let v = measured(&windows, second);
            close(v["increase_per_rtt_first"], 7.0, 1e-9);
            close(v["increase_per_rtt_last"], 7.0, 1e-9);
        }
        // Before one whole round there is nothing to measure.
        let windows = [1000.0, 1000.0, 670.0, 673.0, 450.0, 457.0, 464.0];
        let v = measured(&windows, loss(0.35, 673.0, 450.0));
        assert_eq!(v["increase_per_rtt_first"], None);
    }

    #[test]
    fn climb_is_interpolated_between_rounds() {
        let mut f = flow("a");
        f.rounds = rounds(0.1, RTT, &[2.0, 4.0, 8.0, 16.0, 32.0]);
        close(climb_time(&capped(24.0), &f), 0.45, 1e-9);
        close(climb_time(&capped(32.0), &f), 0.5, 1e-9);
        assert_eq!(climb_time(&capped(33.0), &f), None);
        assert_eq!(climb_time(&group("a", 0..1), &f), None);
    }

    /// A window at its clamp is at it since it got there, not since the next round; and one that a
    /// loss cut in the middle of a round was back if it was back then.
    #[test]
    fn clamp_and_episodes_sharpen_the_rounds() {
        let mut f = one_drop(500.0, 1.0);
        f.at_cap = vec![(Time::from_secs_f64(0.85), 1000.0)];
        close(climb_time(&capped(1000.0), &f), 0.85, 1e-9);
        // A second loss at 1000 segments between 30.0 and 30.1 s.
        f.episodes.push(loss(30.05, 1000.0, 500.0));
        let v = all(&capped(1000.0), &[f.clone()]);
        close(v["reopen_time_s"], 28.0, 1e-9);
        f.episodes[1] = Episode {
            kind: EpisodeKind::Undo(None),
            ..loss(30.05, 500.0, 1000.0)
        };
        let v = all(&capped(1000.0), &[f.clone()]);
        close(v["reopen_time_s"], 28.0, 1e-9);
        // The trace says nothing.
        f.series.rows.push(TraceRow {
            time: Time::from_secs_f64(5.0),
            cwnd_max: 1000.0,
            ..TraceRow::default()
        });
        close(
            all(&capped(1000.0), &[f])["reopen_time_s"],
            v["reopen_time_s"].unwrap(),
            0.0,
        );
    }

    #[test]
    fn a_timeout_counts_as_the_first_event() {
        let mut f = one_drop(500.0, 1.0);
        f.episodes[0].kind = EpisodeKind::Timeout;
        f.episodes.insert(
            0,
            Episode {
                at: Time::from_secs_f64(0.3),
                kind: EpisodeKind::StartUpExit,
                before: 9.0,
                after: 9.0,
            },
        );
        let v = all(&capped(1000.0), &[f]);
        close(v["first_loss_s"], 2.05, 1e-9);
        close(v["startup_exit_s"], 0.3, 1e-9);
        close(v["startup_exit_cwnd"], 9.0, 0.0);
    }

    #[test]
    fn of_several_streams_the_slowest_counts() {
        let slow = one_drop(500.0, 1.0);
        let fast = one_drop(500.0, 10.0);
        let mut never = one_drop(500.0, 0.0);
        let quiet = flow("q");
        let v = all(&capped(1000.0), &[fast.clone(), slow.clone(), quiet]);
        close(v["reopen_time_s"], 50.15, 1e-9);
        close(v["increase_per_rtt_first"], 5.5, 1e-9);
        never.episodes[0].before = 1000.0;
        assert_eq!(all(&capped(1000.0), &[fast, never])["reopen_time_s"], None);
    }
}
