//! The 22 example test cases of the appendix of draft-ietf-ccwg-bbr (text of 3 August 2026), in its
//! order. Each runs the sender over a path; what a case says of internal flags that no trace shows
//! is held by the tests beside the controller (`crates/cc/src/model/bbr/tests.rs`).
//!
//! Four cases cannot hold as they are written. Each test says what it holds instead.

use fullpipe_units::Span;

use super::path::*;

/// 20 Mbit/s, 40 ms (a BDP of 69 segments) and a buffer that never overflows.
fn usual() -> World {
    World::new("bbr", 20.0, 40.0, 8.0)
}

/// The usual path in the state `state` of ProbeBW, past the first cycle.
#[track_caller]
fn probing(mut world: World, state: u32) -> World {
    world.reach(CRUISE, 5.0);
    world.reach(state, 10.0);
    world
}

/// Every `n`-th new segment is lost.
fn every(n: u64) -> Losses {
    Box::new(move |s| !s.retransmission && s.seq.is_multiple_of(n))
}

fn no_losses() -> Losses {
    Box::new(|_| false)
}

#[track_caller]
fn near(value: f64, expected: f64, tolerance: f64) {
    let error = (value / expected - 1.0).abs();
    assert!(error <= tolerance, "{value} is not {expected}");
}

#[test]
fn case_01_startup_ends_on_a_plateau() {
    let mut world = usual();
    world.record = true;
    let exit = world.leave(STARTUP, 5.0);
    assert_eq!(exit.state, DRAIN);
    near(exit.max_bw, world.rate, 0.02);
    assert_eq!(exit.full_bw_count, 3.0);
    assert_eq!(world.dropped, 0);
    // The three rounds are consecutive.
    let first = world.all.iter().find(|s| s.full_bw_count == 1.0).unwrap();
    let last = world.all.iter().rfind(|s| s.full_bw_count == 0.0).unwrap();
    assert!(last.round_count < first.round_count);
    assert_eq!(exit.round_count, first.round_count + 2.0);
}

#[test]
fn case_02_losses_end_an_application_limited_startup() {
    let mut world = World::new("bbr", 100.0, 100.0, 8.0);
    world.limit_application(0.02 * world.rate); // 17 segments per round
    world.run(1.5);
    assert_eq!(world.seen.state, STARTUP);
    world.losses = every(2); // 8 ranges per round
    let exit = world.leave(STARTUP, 1.0);
    // Little is in flight: the same ACK ends Drain and ProbeBW_DOWN too.
    assert_eq!(exit.state, CRUISE);
    assert!(exit.full_bw_count < 3.0, "no plateau: {exit:?}");
    // max(bdp, inflight_latest): the application's 17 segments and as many retransmissions at most,
    // not the path's 863.
    assert!((10.0..40.0).contains(&exit.inflight_longterm), "{exit:?}");
}

#[test]
fn case_03_drain_ends_when_inflight_is_a_bdp() {
    let mut world = usual();
    world.reach(DRAIN, 5.0);
    world.record = true;
    near(world.seen.pacing_gain(), 0.5, 0.01);
    let exit = world.leave(DRAIN, 1.0);
    // The same ACK finds that ProbeBW_DOWN has nothing to drain either.
    assert_eq!(exit.state, CRUISE);

    let (last, before) = world.all.split_last().unwrap();
    assert!(last.inflight <= last.inflight_of_bdp(), "{last:?}");
    for s in before {
        assert!(s.inflight > s.inflight_of_bdp() - 1.0, "{s:?}");
    }
    // "Normally within one round trip": the queue of a BDP leaves at half the rate.
    let entry = world.log.iter().rfind(|s| s.state == DRAIN).unwrap();
    assert!(
        exit.round_count - entry.round_count <= 2.0,
        "{entry:?} {exit:?}"
    );
}

/// The draft takes a tenth of the bandwidth away. Drain paces at half of it, so that inflight falls
/// all the same; three fifths keep it up.
#[test]
fn case_04_drain_ends_after_three_rounds() {
    let mut world = usual();
    let entry = world.reach(DRAIN, 5.0);
    world.rate *= 0.4;
    world.record = true;
    let exit = world.leave(DRAIN, 5.0);
    assert_eq!(exit.state, DOWN);
    for s in &world.all {
        assert!(s.inflight > s.inflight_of_bdp(), "{s:?}");
    }
    // round_count > drain_start_round + 3.
    assert_eq!(exit.round_count, entry.round_count + 4.0);
}

#[test]
fn case_05_probe_up_ends_on_a_plateau() {
    let mut world = probing(usual(), UP);
    let entry = world.seen;
    let exit = world.leave(UP, 2.0);
    assert_eq!((exit.state, exit.full_bw_count), (DOWN, 3.0));
    assert!(exit.round_count - entry.round_count >= 3.0);
    assert_eq!(world.dropped, 0);
    assert!(exit.inflight_longterm.is_infinite());
    near(exit.max_bw, world.rate, 0.02);
}

/// "`BBR.inflight_longterm` is updated [..] regardless of the application-limited state"
/// contradicts HandleInflightTooHigh() (section 5.5.10.2), which sets it only if the lost packet
/// was not application-limited. The pseudo-code holds.
#[test]
fn case_06_losses_end_an_application_limited_probe_up() {
    let spelling = "bbr(probe_rtt_interval=1000s)";
    let mut world = probing(World::new(spelling, 20.0, 40.0, 8.0), UP);
    world.limit_application(0.5 * world.rate);
    world.run(1.0);
    assert_eq!(world.seen.state, UP);
    world.losses = every(15); // 7 % of 34 segments in flight
    let exit = world.leave(UP, 1.0);
    // By way of ProbeBW_DOWN, which ends with the same ACK: little is in flight.
    assert_eq!(exit.state, CRUISE);
    assert!(exit.full_bw_count < 3.0, "{exit:?}");
    assert!(exit.inflight_longterm.is_infinite(), "{exit:?}");
    // Without the limit the same losses set it.
    let mut world = probing(World::new(spelling, 20.0, 40.0, 8.0), UP);
    world.losses = every(15);
    let exit = world.leave(UP, 1.0);
    assert_eq!(exit.state, DOWN);
    assert!(exit.inflight_longterm.is_finite(), "{exit:?}");
}

/// "Indefinitely" is up to ProbeRTT, which the draft enters from any state (section 5.3.4.3): its
/// interval is out of the way here.
#[test]
fn case_07_an_application_limited_probe_without_loss_goes_on() {
    let spelling = "bbr(probe_rtt_interval=1000s)";
    let mut world = World::new(spelling, 20.0, 40.0, 8.0);
    world.limit_application(0.2 * world.rate);
    world.run(30.0);
    assert_eq!(world.states(0), [STARTUP]);

    let mut world = probing(World::new(spelling, 20.0, 40.0, 8.0), UP);
    let from = world.log.len() - 1;
    world.limit_application(0.5 * world.rate);
    world.run(30.0);
    assert_eq!(world.states(from), [UP]);
}

#[test]
fn case_08_probe_down_ends_on_inflight() {
    // Without losses the BDP is the target; a quarter of a BDP of buffer sets inflight_longterm.
    for buffer in [8.0, 0.25] {
        let mut world = probing(World::new("bbr", 20.0, 40.0, buffer), UP);
        world.reach(DOWN, 5.0);
        assert_eq!(buffer < 1.0, world.seen.inflight_longterm.is_finite());
        near(world.seen.pacing_gain(), 0.9, 0.01);
        world.record = true;
        let exit = world.leave(DOWN, 2.0);
        assert_eq!(exit.state, CRUISE);
        let drained = |s: &Shown| {
            let bdp = s.max_bw * s.min_rtt;
            let target = bdp.max(s.offload_budget()).min(s.with_headroom());
            s.inflight <= target
        };
        let (last, before) = world.all.split_last().unwrap();
        assert!(drained(last), "{last:?}");
        for s in before {
            let above = Shown {
                inflight: s.inflight + 1.0,
                ..*s
            };
            assert!(!drained(&above), "{s:?}");
        }
    }
}

/// A bandwidth a tenth lower leaves 0.9 % of it to drain the queue with.
#[test]
fn case_09_probe_down_ends_after_its_longest_time() {
    let spelling = "bbr(probe_rtt_interval=1000s)";
    let mut world = probing(World::new(spelling, 20.0, 100.0, 8.0), UP);
    world.reach(DOWN, 5.0);
    world.rate *= 0.9;
    let entry = world.seen;
    let exit = world.leave(DOWN, 5.0);
    assert_eq!(exit.state, REFILL, "past ProbeBW_CRUISE");
    let waited = exit.at - entry.at;
    assert!((2.0..3.1).contains(&waited), "{waited} s");
}

#[test]
fn case_10_probe_rtt() {
    let mut world = usual();
    world.reach(CRUISE, 5.0);
    let entry = world.reach(PROBE_RTT, 6.0);
    // The handshake's RTT, without the transmission of a segment, is the smallest of all.
    near(entry.at, 5.0 + 0.04, 0.01);
    let before = entry.cwnd;
    world.record = true;
    let exit = world.leave(PROBE_RTT, 1.0);
    assert_eq!(exit.state, CRUISE, "ProbeBW, past its DOWN");
    let all = std::mem::take(&mut world.all);
    let held = all.iter().filter(|s| s.state == PROBE_RTT);
    let half = held.clone().map(|s| 0.5 * s.bdp()).fold(0.0, f64::max);
    assert!(held.clone().all(|s| s.cwnd <= half.max(4.0)), "{half}");
    let down = held.clone().find(|s| s.inflight <= half).unwrap();
    assert!(exit.at - down.at >= 0.2, "{} s", exit.at - down.at);
    assert!(exit.at - down.at <= 0.2 + 2.0 * 0.04);
    world.run(0.5);
    assert!(world.seen.cwnd >= 0.9 * before, "{:?}", world.seen);
    // The next is an interval later.
    let next = world.reach(PROBE_RTT, 6.0);
    near(next.at - exit.at, 5.0, 0.02);
}

#[test]
fn case_11_idle_time_stands_for_probe_rtt() {
    let mut world = usual();
    world.reach(CRUISE, 5.0);
    world.limit_application(0.0);
    world.run_while(2.0, |s| s.inflight > 0.0);
    assert_eq!(world.seen.inflight, 0.0);
    let from = world.log.len();
    world.now += Span::from_secs(6);
    world.app = None;
    world.run(2.0);
    assert!(!world.states(from).contains(&PROBE_RTT), "{:?}", world.log);
    // A flow that goes on sending probes: the pause was what spared it.
    let mut busy = usual();
    busy.run(8.0);
    assert!(busy.states(0).contains(&PROBE_RTT));
}

#[test]
fn case_12_startup_over_a_link_that_aggregates() {
    let mut world = usual();
    world.aggregation = Some(Span::from_millis(20));
    world.record = true;
    let exit = world.leave(STARTUP, 5.0);
    assert_eq!(exit.state, DRAIN);
    // A sample that begins within a burst of ACKs counts 20 ms of data too many over 40 ms, unless
    // the send rate caps it.
    assert!(
        (0.95..1.5).contains(&(exit.max_bw / world.rate)),
        "{exit:?}"
    );
    let bdp = world.bdp();
    let most = |f: fn(&Shown) -> f64| world.all.iter().map(f).fold(0.0, f64::max);
    assert!(most(|s| s.extra_acked) > 0.2 * bdp);
    assert!(most(|s| s.cwnd) > 2.0 * bdp);
    // The rate doubles per round: from 10 segments per round to 69 in three.
    let reached = world
        .all
        .iter()
        .find(|s| s.max_bw > 0.8 * world.rate)
        .unwrap();
    assert!(reached.round_count <= 6.0, "{reached:?}");
}

#[test]
fn case_13_cruise_over_a_link_that_aggregates() {
    let mut world = probing(usual(), CRUISE);
    let calm = world.seen;
    world.aggregation = Some(Span::from_millis(30));
    world.run(1.0);
    let bursty = world.seen;
    // The 30 ms of data that come at once are 52 segments.
    let burst = 0.03 * world.rate;
    near(bursty.extra_acked, burst, 0.3);
    assert!(bursty.cwnd > calm.cwnd + 0.5 * burst, "{calm:?} {bursty:?}");
    let used = world.utilization(10.0);
    assert!(used > 0.93, "{used}");
    // Ten rounds after the last burst it is forgotten.
    world.aggregation = None;
    world.run(3.0);
    assert!(world.seen.extra_acked < 0.3 * burst, "{:?}", world.seen);
}

#[test]
fn case_14_a_bdp_below_a_packet() {
    let mut world = World::new("bbr", 1.0, 2.0, 100.0);
    assert!(world.bdp() < 0.2);
    world.reach(CRUISE, 5.0);
    world.record = true;
    let used = world.utilization(20.0);
    assert!(used > 0.97, "{used}");
    assert!(world.all.iter().all(|s| s.cwnd >= 4.0));
    let probing = world.all.iter().filter(|s| s.state == PROBE_RTT);
    assert!(probing.clone().count() > 0);
    assert!(probing.clone().all(|s| s.cwnd == 4.0));
    let cruising = world.all.iter().filter(|s| s.state == CRUISE);
    for s in cruising {
        near(s.max_bw, world.rate, 0.02);
        near(s.pacing_rate, 0.99 * world.rate, 0.02);
    }
}

#[test]
fn case_15_ten_times_the_bandwidth_is_found() {
    // Half a BDP of buffer sets inflight_longterm first.
    let mut world = World::new("bbr", 40.0, 40.0, 0.5);
    world.run(12.0);
    world.reach(CRUISE, 5.0);
    assert!(world.seen.inflight_longterm.is_finite(), "{:?}", world.seen);
    let change = world.seconds();
    world.rate *= 10.0;
    world.buffer *= 10.0;
    world.record = true;
    let rate = world.rate;
    assert!(
        world.run_while(20.0, |s| s.max_bw < 0.9 * rate),
        "{:?}",
        world.seen
    );
    // inflight_longterm in ProbeBW_UP at the end of each round: it grows by 1, 2, 4, .. segments.
    let mut steps: Vec<f64> = Vec::new();
    let mut longest: Vec<f64> = Vec::new();
    let mut last: Option<Shown> = None;
    for s in world.all.iter().filter(|s| s.state == UP) {
        match last {
            Some(l) if s.round_count == l.round_count + 1.0 => {
                steps.push(s.inflight_longterm - l.inflight_longterm);
                last = Some(*s);
            }
            Some(l) if s.round_count == l.round_count => {}
            _ => {
                steps.clear();
                last = Some(*s);
            }
        }
        if steps.len() > longest.len() {
            longest.clone_from(&steps);
        }
    }
    // 2^k segments in the k-th round that the bound limits; one or two rounds go by before it does,
    // and a round's last segment may fall into the next.
    let doubles = |first: usize| {
        let due = (1..=6).map(|k| f64::from(1_u32 << k));
        let rounds = longest.iter().skip(first).zip(due);
        let near = rounds.filter(|(step, due)| (*step - due).abs() <= 1.0 + 0.02 * due);
        near.count() == 6
    };
    assert!((0..3).any(doubles), "{longest:?}");
    // 2 to 3 s until the probe, the precautionary one, and then O(log(BDP)) rounds.
    assert!(
        world.seen.at - change < 3.0 + 30.0 * 0.04,
        "{} s",
        world.seen.at - change
    );
}

#[test]
fn case_16_a_tenth_of_the_bandwidth_is_obeyed() {
    let mut world = World::new("bbr", 100.0, 40.0, 1.0);
    world.run(4.0);
    world.reach(CRUISE, 5.0);
    let before = world.seen;
    world.rate /= 10.0;
    world.buffer /= 10.0;
    let short = world.run_while(2.0, |s| s.bw_shortterm > 0.5 * before.max_bw);
    assert!(short, "{:?}", world.seen);
    let cycles = world.seen.cycle_count;
    assert!(world.run_while(30.0, |s| s.cycle_count < cycles + 2.0));
    world.run(0.5);
    near(world.seen.max_bw, world.rate, 0.05);
    let used = world.utilization(10.0);
    assert!(used > 0.85, "{used}");
}

#[test]
fn case_17_a_token_bucket() {
    let mut world = World::new("bbr", 100.0, 40.0, 4.0);
    let tokens = 0.2 * world.rate;
    // Half a second of the link.
    world.policer = Some((tokens, 0.5 * world.rate));
    world.run(2.0);
    assert!(world.dropped > 0, "the bucket is empty");
    let reacted = world.run_while(10.0, |s| {
        s.bw_shortterm.is_infinite() || s.inflight_shortterm.is_infinite()
    });
    assert!(reacted);
    world.run(15.0);
    let used = world.utilization(30.0) * world.rate / tokens;
    assert!((0.7..=1.01).contains(&used), "{used}");
    assert!(world.loss_rate() < 0.05, "{}", world.loss_rate());
}

/// The flow comes back to ProbeBW_UP by way of a round of ProbeBW_REFILL
/// (HandleSpuriousLossDetection(), section 5.5.11.2).
#[test]
fn case_18_a_spurious_fast_recovery() {
    let mut world = probing(usual(), UP);
    let entry = world.seen;
    let from = world.log.len() - 1;
    // Six segments are late by more than RACK waits (a quarter of the smallest RTT).
    let first = world.sender.nxt();
    world.data_delay = Box::new(move |s| match s.seq.checked_sub(first) {
        Some(0..6) if !s.retransmission => Span::from_millis(25),
        _ => Span::ZERO,
    });
    world.reach(DOWN, 1.0);
    assert!(world.seen.inflight_longterm.is_finite(), "{:?}", world.seen);
    world.reach(UP, 1.0);
    assert_eq!(world.states(from), [UP, DOWN, REFILL, UP]);
    assert!(world.sender.counts().undone >= 1);
    let back = world.seen;
    assert!(back.inflight_longterm.is_infinite() && back.bw_shortterm.is_infinite());
    assert!(back.inflight_shortterm.is_infinite());
    assert!(back.cwnd >= entry.cwnd, "{entry:?} {back:?}");
}

#[test]
fn case_19_a_spurious_timeout() {
    let mut world = probing(usual(), UP);
    let entry = world.seen;
    let from = world.log.len() - 1;
    world.ack_delay = Span::from_millis(1500); // above the smallest RTO, 1 s
    world.run(0.02);
    world.ack_delay = Span::ZERO;
    world.run_while(3.0, |_| true);
    let counts = *world.sender.counts();
    assert_eq!((counts.timeouts, counts.undone), (1, 1), "{counts:?}");
    let states = world.states(from);
    assert_eq!(states[..4], [UP, DOWN, REFILL, UP], "{states:?}");
    let back = world.log[from + 3];
    assert!(back.inflight_longterm.is_infinite() && back.bw_shortterm.is_infinite());
    assert!(back.cwnd >= entry.cwnd, "{entry:?} {back:?}");
}

#[test]
fn case_20_probe_rtt_during_startup() {
    let mut world = usual();
    world.limit_application(0.1 * world.rate);
    world.run(6.0);
    assert_eq!(world.states(0), [STARTUP, PROBE_RTT, STARTUP]);
    world.app = None;
    world.leave(STARTUP, 5.0);
    near(world.seen.max_bw, world.rate, 0.02);
}

/// `max(RS.tx_in_flight, TargetInflight() * Beta)`: the volume that was too high, where it is above
/// 0.7 of the BDP.
#[test]
fn case_21_losses_in_probe_up_with_a_long_term_bound() {
    let mut world = probing(usual(), UP);
    world.losses = every(10);
    world.reach(DOWN, 1.0);
    world.losses = no_losses();
    let set = world.seen.inflight_longterm;
    assert!(set.is_finite());
    // The next probe is precautionary and goes well, the one after it stays.
    world.reach(CRUISE, 5.0);
    world.reach(REFILL, 5.0);
    world.reach(UP, 5.0);
    world.reach(REFILL, 5.0);
    world.reach(UP, 5.0);
    world.losses = every(10);
    let before = world.seen;
    let exit = world.leave(UP, 1.0);
    assert_eq!(exit.state, DOWN);
    assert!(exit.full_bw_count < 3.0, "{exit:?}");
    let target = before.bdp().min(before.cwnd);
    assert!(
        exit.inflight_longterm >= 0.7 * target * 0.98,
        "{before:?} {exit:?}"
    );
    assert!(
        exit.inflight_longterm < before.inflight_longterm,
        "{before:?} {exit:?}"
    );
}

/// "Pause" is a rate of a fifth here: without any data no ACK would end the round.
#[test]
fn case_22_an_application_limited_refill() {
    let mut world = probing(usual(), REFILL);
    let entry = world.seen;
    world.limit_application(0.2 * world.rate);
    world.record = true;
    let up = world.leave(REFILL, 2.0);
    assert_eq!(up.state, UP);
    assert!(up.round_count - entry.round_count <= 2.0);
    world.run(1.0);
    assert!(
        world.all.iter().all(|s| s.max_bw >= entry.max_bw),
        "{entry:?}"
    );
    world.app = None;
    let exit = world.leave(UP, 5.0);
    assert_eq!(exit.state, DOWN);
    near(exit.max_bw, world.rate, 0.02);
}
