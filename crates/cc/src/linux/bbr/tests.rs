//! Integers worked out by hand from the kernel's formulas.

use fullpipe_units::{Span, Time};

use super::*;
use crate::classic::Setup;
use crate::controller::RateSample;

/// Segments of 1000 bytes, 250 ticks per second, a handshake of `rtt_us`.
fn flow(rtt_us: u32) -> (Bbr, Socket) {
    let mut sk = socket();
    sk.srtt_us = 8 * rtt_us;
    let mut bbr = Bbr::new();
    bbr.init(&mut sk);
    (bbr, sk)
}

fn socket() -> Socket {
    Socket::new(Setup {
        mss: 1000,
        hz: 250,
        seed: 3,
        ..Setup::default()
    })
}

/// A round of 100 ms that delivers `n` segments, `lost` of them after losses.
fn round(bbr: &mut Bbr, sk: &mut Socket, n: u64, lost: u64) {
    sk.now += Span::from_millis(100);
    let prior = sk.delivered;
    sk.delivered += n;
    sk.lost += lost;
    let mut ev = AckEvent::new(sk.now);
    ev.acked = n;
    ev.lost = lost;
    ev.delivered = sk.delivered;
    ev.flight = n;
    ev.prior_flight = n;
    ev.rtt = Some(Span::from_millis(100));
    let mut rate = RateSample::new(n, Span::from_millis(100));
    rate.prior_delivered = prior;
    ev.rate = Some(rate);
    bbr.cong_control(sk, &ev);
}

#[test]
fn gains_are_those_of_the_kernel() {
    assert_eq!((HIGH_GAIN, DRAIN_GAIN, CWND_GAIN), (739, 88, 512));
    assert_eq!(CYCLE, [320, 192, 256, 256, 256, 256, 256, 256]);
    assert_eq!(BW_ROUNDS, 10);
}

/// 10 segments of 1000 bytes per 100 ms, 739/256 of it, less 1 %: `10 << 24 / 100000 = 1677`;
/// `1677 * 1000 * 739 >> 8 = 4841027`; `* 990000 >> 24 = 285662`.
#[test]
fn the_first_pacing_rate() {
    let (bbr, _) = flow(100_000);
    assert_eq!(bbr.pacing_rate, 285_662);
    assert_eq!(
        Module::pacing_rate(&bbr),
        Some(285_662),
        "in force from the handshake on (`bbr_init`)"
    );
    assert_eq!(Module::pacing_rate(&Bbr::new()), None);
    // Without a handshake the nominal RTT is 1 ms.
    let (bbr, _) = flow(0);
    assert_eq!(
        bbr.pacing_rate,
        bytes_per_second(1000, (10 << 24) / 1000, 739)
    );
    assert_eq!(bbr.bdp(1, UNIT), 10, "TCP_INIT_CWND without an RTT");
}

/// 1000 segments/s are 16777 of 2^-24 per us; with 100 ms and gain 1 a BDP of 99.9996: 100, and
/// 289 with 739/256 (288.67).
#[test]
fn the_bdp_is_rounded_up() {
    let (bbr, sk) = flow(100_000);
    assert_eq!(bbr.bdp(16_777, UNIT), 100);
    assert_eq!(bbr.bdp(16_777, HIGH_GAIN), 289);
    // Three bursts of two segments (286 kB/s >> 10 is less than two), to the next even number.
    assert_eq!(bbr.quantized(&sk, 100), 106);
    assert_eq!(bbr.quantized(&sk, 99), 106);
    let mut probing = bbr.clone();
    (probing.mode, probing.cycle) = (Mode::ProbeBw, 0);
    assert_eq!(probing.quantized(&sk, 100), 108);
}

/// 100 MB/s: 2^-10 s of it are 97 segments of 1000 bytes; the largest burst has 65215 bytes; below
/// 1.2 Mbit/s a burst is one segment.
#[test]
fn a_burst_is_a_millisecond_of_the_rate() {
    let (mut bbr, sk) = flow(100_000);
    let mut burst = |rate| {
        bbr.pacing_rate = rate;
        bbr.burst(&sk)
    };
    assert_eq!(burst(149_999), 1);
    assert_eq!(burst(150_000), 2);
    assert_eq!(burst(30_000_000), 29);
    assert_eq!(burst(100_000_000), 65);
}

#[test]
fn startup_ends_after_three_rounds_without_a_quarter_more() {
    let (mut bbr, mut sk) = flow(100_000);
    for n in [20, 40, 80, 100] {
        round(&mut bbr, &mut sk, n, 0);
        assert_eq!((bbr.mode, bbr.full.rounds), (Mode::Startup, 0), "{n}");
    }
    for rounds in 1..=3 {
        assert_eq!(bbr.mode, Mode::Startup);
        round(&mut bbr, &mut sk, 110, 0); // a tenth more is not enough
        assert_eq!(bbr.full.rounds, rounds);
    }
    // 110 in flight is a BDP: Drain ends in the same ACK.
    assert_eq!(bbr.mode, Mode::ProbeBw);
    assert_ne!(bbr.cycle, 1, "the phase that drains is never the first");
    // A BDP of 110 and three bursts of three segments (3.1 MB/s >> 10), to the next even number.
    assert_eq!(sk.ssthresh, 120);
}

/// Every phase but the second may be the first, and the flow's generator decides.
#[test]
fn the_first_phase_is_drawn() {
    let mut seen = [0; 8];
    for seed in 0..200 {
        let (mut bbr, _) = flow(100_000);
        let mut sk = Socket::new(Setup {
            seed,
            ..Setup::default()
        });
        bbr.probe_bw(&mut sk);
        seen[bbr.cycle] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!((0..8).filter(|i| *i != 1).all(|i| seen[i] > 10), "{seen:?}");
}

/// Entering recovery: what is in flight and what was acknowledged; at its end the window before.
#[test]
fn recovery_conserves_packets_for_a_round() {
    let (mut bbr, mut sk) = flow(100_000);
    for n in [20, 40, 80, 100, 100, 100, 100] {
        round(&mut bbr, &mut sk, n, 0);
    }
    let before = sk.cwnd;
    assert_eq!(bbr.ssthresh(&mut sk), sk.ssthresh);
    sk.state = Phase::Recovery;
    let mut ev = AckEvent::new(sk.now);
    (ev.sacked, ev.lost, ev.flight) = (1, 3, 90);
    sk.delivered += 1;
    bbr.cong_control(&mut sk, &ev);
    assert_eq!(sk.cwnd, 91);
    (ev.lost, ev.flight) = (0, 91);
    bbr.cong_control(&mut sk, &ev);
    assert_eq!(sk.cwnd, 92);
    sk.state = Phase::Open;
    bbr.cong_control(&mut sk, &ev);
    assert_eq!(sk.cwnd, before);
}

/// A quarter lost in each of two intervals of four rounds at the same rate: a policer.
#[test]
fn two_lossy_intervals_at_one_rate_are_a_policer() {
    let (mut bbr, mut sk) = flow(100_000);
    for n in [20, 40, 80, 100, 100, 100, 100] {
        round(&mut bbr, &mut sk, n, 0);
    }
    let mut rounds = 0;
    while bbr.policer.rate().is_none() {
        round(&mut bbr, &mut sk, 100, 25);
        rounds += 1;
        assert!(rounds < 20);
    }
    // The first loss starts an interval, and its round counts: 4 rounds, then 4 more.
    assert_eq!(rounds, 8);
    let rate = bbr.policer.rate().unwrap();
    assert_eq!(rate, 16_777, "2^24 / 1000: 100 segments per 100 ms");
    assert_eq!(bbr.pacing_gain, UNIT);
    for round_of_rate in 1..48 {
        round(&mut bbr, &mut sk, 100, 0);
        assert!(bbr.policer.rate().is_some(), "{round_of_rate}");
    }
    round(&mut bbr, &mut sk, 100, 0);
    assert_eq!(bbr.policer.rate(), None, "after 48 rounds");

    // 50/256 are 19.5 of a hundred.
    for (lost, enough) in [(10, false), (19, false), (20, true)] {
        let (mut bbr, mut sk) = flow(100_000);
        for _ in 0..30 {
            round(&mut bbr, &mut sk, 100, lost);
        }
        assert_eq!(bbr.policer.rate().is_some(), enough, "{lost}");
    }
}

/// ProbeRTT ten seconds after the smallest RTT: four segments, and the window comes back.
#[test]
fn probe_rtt_holds_four_segments() {
    let (mut bbr, mut sk) = flow(99_000);
    for n in [20, 40, 80, 100, 100, 100, 100] {
        round(&mut bbr, &mut sk, n, 0);
    }
    let before = sk.cwnd;
    while bbr.mode != Mode::ProbeRtt {
        round(&mut bbr, &mut sk, 100, 0);
    }
    // 2500 ticks of 4 ms have passed.
    assert_eq!(sk.now, Time::ZERO + Span::from_millis(10_100));
    assert_eq!(sk.cwnd, 4);
    assert!(bbr.limits_itself());
    round(&mut bbr, &mut sk, 4, 0);
    assert_eq!(bbr.probe_rtt_done, Some(sk.jiffies() + 50), "200 ms");
    for _ in 0..3 {
        round(&mut bbr, &mut sk, 4, 0);
    }
    assert_eq!(bbr.mode, Mode::ProbeBw);
    assert!(sk.cwnd >= before, "{} {before}", sk.cwnd);
    // The ACK that ends it comes in ProbeRTT, too (`bbr_update_min_rtt`): what is in flight then
    // says nothing of the bandwidth.
    assert!(bbr.limits_itself());
    round(&mut bbr, &mut sk, 100, 0);
    assert!(!bbr.limits_itself());
}

/// The smallest RTT is as old, and ProbeRTT as long, where the ticks wrap in between (`after`).
#[test]
fn min_rtt_ages_across_a_wrap_of_the_clock() {
    // A tick is 4 ms, and the first second of them is `jiffies`' own.
    let wrap = Span::from_millis(4) * (1 << 32) - Span::from_secs(1);
    for before in [1_000, 5_000, 10_050, 10_250, 10_450] {
        let mut sk = socket();
        sk.now = Time::ZERO + wrap - Span::from_millis(before);
        sk.srtt_us = 8 * 99_000;
        let mut bbr = Bbr::new();
        bbr.init(&mut sk);
        let began = sk.now;
        while bbr.mode != Mode::ProbeRtt {
            round(&mut bbr, &mut sk, 100, 0);
        }
        assert_eq!(sk.now - began, Span::from_millis(10_100), "{before}");
        for _ in 0..4 {
            assert_eq!(bbr.mode, Mode::ProbeRtt, "{before}");
            round(&mut bbr, &mut sk, 4, 0);
        }
        assert_eq!(bbr.mode, Mode::ProbeBw, "{before}");
    }
}

/// `epoch_us` is a `u32`: an epoch of 2^32 us and 100 ms is one of 100 ms.
#[test]
fn an_epoch_of_aggregation_wraps() {
    let mut short = Aggregation::new(Time::ZERO);
    short.update(Time::ZERO, false, 300, 16_777, 1000);
    let mut wrapped = short;
    let at = Time::ZERO + Span::from_millis(100);
    short.update(at, false, 200, 16_777, 1000);
    wrapped.update(at + Span::from_micros(1 << 32), false, 200, 16_777, 1000);
    // 500 in 100 ms, of which the bandwidth explains 99.
    assert_eq!((short.extra(), wrapped.extra()), (401, 401));
}

/// 100 segments per 100 ms are `100 << 24 / 100000 = 16777`; of 100 ms `16777 * 100000 >> 24 = 99`,
/// however many were acknowledged in one go, and none before the pipe is full.
#[test]
fn aggregation_raises_the_window_by_a_tenth_of_a_second_at_most() {
    let (mut bbr, mut sk) = flow(99_000);
    for n in [20, 40, 80, 100, 100] {
        round(&mut bbr, &mut sk, n, 0);
    }
    bbr.aggregation.update(sk.now, false, 5000, 16_777, 10_000);
    assert_eq!((bbr.full.reached, bbr.aggregated()), (false, 0));
    for _ in 0..2 {
        round(&mut bbr, &mut sk, 100, 0);
    }
    assert!(bbr.full.reached && bbr.aggregation.extra() > 1000);
    assert_eq!(bbr.aggregated(), 99);
}

/// What came in one go counts in two halves of five rounds each: nine rounds on, not ten.
#[test]
fn aggregation_is_forgotten_after_ten_rounds() {
    let mut aggregation = Aggregation::new(Time::ZERO);
    let mut now = Time::ZERO + Span::from_secs(1);
    aggregation.update(now, false, 50, 0, 100);
    for round in 1..=10 {
        now += Span::from_millis(100);
        // A segment per microsecond is expected, and none comes.
        aggregation.update(now, true, 0, 1 << BW_SCALE, 100);
        let left = if round < 10 { 50 } else { 0 };
        assert_eq!(aggregation.extra(), left, "{round}");
    }
}

/// 88 of a hundred are within an eighth, 87 are not.
#[test]
fn lossy_intervals_of_unlike_rates_are_no_policer() {
    for (second, same) in [(880, true), (870, false)] {
        let (mut bbr, mut sk) = flow(100_000);
        for (n, rounds) in [(1000, 4), (second, 4)] {
            for _ in 0..rounds {
                round(&mut bbr, &mut sk, n, n / 4);
            }
        }
        assert_eq!(bbr.policer.rate().is_some(), same, "{second}");
    }
}

/// Four segments in 400 ms and five are a quarter apart, 42 of 2^24 per microsecond: with segments
/// of 200 bytes 495 bytes/s, less than the 500 that are the same rate, with 210 bytes 520.
#[test]
fn slow_rates_may_be_half_a_kilobyte_apart() {
    for (mss, same) in [(200, true), (210, false)] {
        let (mut bbr, mut sk) = flow(100_000);
        sk.mss = mss;
        for n in [1, 1, 1, 1, 1, 1, 1, 2] {
            round(&mut bbr, &mut sk, n, 1);
        }
        assert_eq!(bbr.policer.rate().is_some(), same, "{mss}");
    }
}
