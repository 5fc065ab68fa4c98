//! The model on a bench: events that a sender would make, and what the draft computes from them.

use fullpipe_units::{Span, Time};

use super::*;
use crate::controller::RateSample;

/// A flow on a path of 1000 segments per second and 100 ms: a BDP of 100 segments.
struct Bench {
    bbr: Bbr,
    now: Time,
    delivered: u64,
    lost: u64,
    next: u64,
}

/// What the next ACK shows, beside its round.
#[derive(Clone, Copy)]
struct Shows {
    rate: f64,
    flight: u64,
    app_limited: bool,
    tx_in_flight: u64,
    lost: u64,
}

const USUAL: Shows = Shows {
    rate: 1000.0,
    flight: 100,
    app_limited: false,
    tx_in_flight: 100,
    lost: 0,
};

impl Bench {
    fn new() -> Self {
        Self::of(&BBR)
    }

    fn of(edition: &Entry<Bbr>) -> Self {
        let mut bbr = edition.make(&[]).unwrap();
        bbr.set_up(&Setup::default());
        let mut open = RestartEvent::new(Time::ZERO);
        open.srtt = Span::from_millis(100);
        bbr.on_established(&open);
        Self {
            bbr,
            now: Time::ZERO,
            delivered: 0,
            lost: 0,
            next: 0,
        }
    }

    /// One ACK per round: everything delivered since the last one left after it.
    fn round(&mut self, shows: Shows) {
        let n = (shows.rate * 0.1) as u64;
        self.now += Span::from_millis(100);
        let prior = self.delivered;
        self.delivered += n;
        let mut ev = AckEvent::new(self.now);
        ev.acked = n;
        ev.advanced = true;
        ev.delivered = self.delivered;
        ev.rtt = Some(Span::from_millis(100));
        ev.srtt = Span::from_millis(100);
        ev.flight = shows.flight;
        let mut rate = RateSample::new(n, Span::from_millis(100));
        rate.prior_delivered = prior;
        rate.app_limited = shows.app_limited;
        rate.tx_in_flight = shows.tx_in_flight;
        rate.lost = shows.lost;
        ev.rate = Some(rate);
        self.bbr.on_delivery(&ev);
        self.bbr.on_ack(&ev);
    }

    fn rounds(&mut self, n: u32) {
        for _ in 0..n {
            self.round(USUAL);
        }
    }

    /// A segment that left as the last of `tx_in_flight` is the `lost`-th since then.
    fn lose(&mut self, tx_in_flight: u64, lost: u64) {
        self.lost += 1;
        self.next += 2; // every loss is a range of its own
        let mut ev = LostSegment::new(self.now, self.next, tx_in_flight);
        ev.lost = lost;
        ev.delivered = self.delivered;
        self.bbr.on_lost(&ev);
    }

    fn recover(&mut self) {
        let ev = CongestionEvent::new(self.now, CongestionKind::Loss, 100);
        self.bbr.on_congestion(&ev);
    }

    /// Past Startup and Drain, in ProbeBW_UP.
    fn probing() -> Self {
        let mut bench = Self::new();
        for _ in 0..100 {
            bench.round(USUAL);
            if bench.bbr.state == State::Up {
                return bench;
            }
        }
        panic!("{:?}", bench.bbr);
    }
}

/// Sections 2.5 to 2.16 and 5.3.3: what the draft's example cases run with.
#[test]
fn the_constants_are_the_drafts() {
    let set = Bench::new().bbr.set;
    for (name, value, drafts) in [
        ("StartupPacingGain", set.startup_pacing_gain, 2.77),
        ("DrainPacingGain", set.drain_pacing_gain, 0.5),
        (
            "pacing_gain of ProbeBW_DOWN",
            set.probe_down_pacing_gain,
            0.9,
        ),
        ("pacing_gain of ProbeBW_UP", set.probe_up_pacing_gain, 1.25),
        ("DefaultCwndGain", set.default_cwnd_gain, 2.0),
        ("cwnd_gain of ProbeBW_UP", set.probe_up_cwnd_gain, 2.25),
        ("PacingMarginPercent", set.pacing_margin_percent, 1.0),
        ("LossThresh", set.loss_thresh, 0.02),
        ("Beta", set.beta, 0.7),
        ("Headroom", set.headroom, 0.15),
        ("MinPipeCwnd", set.min_pipe_cwnd, 4.0),
        ("StartupFullLossCnt", set.startup_full_loss_cnt, 6.0),
        ("ExtraAckedFilterLen", set.extra_acked_filter_len, 10.0),
        ("ProbeRTTCwndGain", set.probe_rtt_cwnd_gain, 0.5),
    ] {
        assert_eq!(value, drafts, "{name}");
    }
    assert_eq!(set.min_rtt_filter_len, Span::from_secs(10));
    assert_eq!(set.probe_rtt_duration, Span::from_millis(200));
    assert_eq!(set.probe_rtt_interval, Span::from_secs(5));
}

/// Section 5.6.3: a millisecond of the pacing rate, 2 segments at least and 64 KiB at most.
#[test]
fn the_quantum_is_a_millisecond_of_the_rate() {
    let mut bbr = Bench::new().bbr;
    bbr.setup.smss = 1024.0;
    for (rate, quantum) in [(100.0, 2.0), (30_000.0, 30.0), (1e6, 64.0)] {
        bbr.pacing_rate = rate;
        bbr.set_send_quantum();
        assert_eq!(bbr.send_quantum, quantum, "{rate} segments/s");
    }
}

/// Sections 5.5.8 and 5.6.4.2: three quanta, MinPipeCwnd, and two segments more in ProbeBW_UP.
#[test]
fn small_volumes_leave_room_for_offload() {
    let mut bbr = Bench::new().bbr;
    for (state, quantum, cap) in [
        (State::Cruise, 2.0, 6.0),
        (State::Cruise, 1.0, 4.0),
        (State::Cruise, 100.0, 300.0),
        (State::Up, 2.0, 8.0),
    ] {
        (bbr.state, bbr.send_quantum) = (state, quantum);
        assert_eq!(bbr.inflight(0.0, 1.0), cap, "{state:?} {quantum}");
    }
}

/// Section 5.6.2: a nominal RTT of 1 ms until there is one.
#[test]
fn without_a_handshake_the_first_pacing_rate_takes_a_millisecond() {
    let mut bbr = BBR.make(&[]).unwrap();
    bbr.set_up(&Setup::default());
    bbr.on_established(&RestartEvent::new(Time::ZERO));
    assert_eq!(bbr.pacing_rate, 2.77 * 10.0 / 1e-3);
}

/// Section 5.3.3.9: `min(BBR.bw_probe_up_rounds + 1, 30)`, so that 2^30 segments per round are the
/// most.
#[test]
fn the_slope_stops_doubling_at_two_to_the_thirtieth() {
    let mut bbr = Bench::probing().bbr;
    bbr.cwnd = 2_f64.powi(31);
    for _ in 0..40 {
        bbr.raise_longterm_slope();
    }
    assert_eq!((bbr.probe.up_rounds, bbr.probe.acked_per_inc), (30, 2.0));
}

/// Section 5.5.9: the largest of ten rounds, of one round in Startup.
#[test]
fn ack_aggregation_is_forgotten_after_its_filter() {
    let mut bench = Bench::probing();
    assert!(bench.bbr.extra_acked.get() > 0.0);
    // A second between ACKs of nothing: no more than the rate explains.
    let mut rounds = 0;
    while bench.bbr.extra_acked.get() > 0.0 && rounds < 100 {
        let later = bench.now + Span::from_secs(1 + u64::from(rounds));
        bench.bbr.extra_acked.update(
            &Sample::of(&AckEvent::new(later)),
            Expected {
                bw: 1000.0,
                cwnd: 200.0,
                round: bench.bbr.rounds.count + rounds,
                filter_len: bench.bbr.set.extra_acked_filter_len as u32,
            },
            &bench.bbr.rules,
        );
        rounds += 1;
    }
    assert_eq!(rounds, 12, "the round of the burst and ten more are kept");
}

/// Section 5.6.2: `StartupPacingGain * InitialCwnd / srtt`.
#[test]
fn the_first_pacing_rate_follows_from_the_handshake() {
    let bench = Bench::new();
    assert_eq!(bench.bbr.pacing_rate, 2.77 * 10.0 / 0.1);
}

/// Section 5.3.1.2: three rounds without a quarter more; Drain and ProbeBW_DOWN in the same ACK.
#[test]
fn startup_ends_after_three_flat_rounds() {
    let mut bench = Bench::new();
    for rate in [100.0, 200.0, 400.0, 800.0, 1000.0] {
        bench.round(Shows {
            rate,
            flight: 200,
            ..USUAL
        });
        assert_eq!(bench.bbr.full.count, 0, "{rate}");
    }
    for count in 1..=3 {
        assert_eq!(bench.bbr.state, State::Startup);
        bench.round(Shows {
            flight: 200,
            ..USUAL
        });
        assert_eq!(bench.bbr.full.count, count);
    }
    assert_eq!(bench.bbr.state, State::Drain);
    assert!(bench.bbr.full.reached && bench.bbr.full.now);
    // 0.5 of the bandwidth less 1 %.
    assert_eq!(bench.bbr.pacing_rate, 0.5 * 1000.0 * 0.99);
}

/// Section 5.3.1.2: a fifth more is less than a quarter.
#[test]
fn a_fifth_more_bandwidth_counts_as_flat() {
    let mut bench = Bench::new();
    for (rate, count) in [
        (1000.0, 0),
        (1200.0, 1),
        (1250.0, 0),
        (1550.0, 1),
        (1570.0, 0),
    ] {
        bench.round(Shows {
            rate,
            flight: 200,
            ..USUAL
        });
        assert_eq!(bench.bbr.full.count, count, "{rate}");
    }
}

/// OnEnterRTO() (section 5.6.4.4): what is in flight and one more; the end restores the window.
#[test]
fn a_timeout_leaves_one_segment_beyond_what_is_in_flight() {
    let mut bench = Bench::probing();
    let before = bench.bbr.cwnd;
    let mut ev = RtoEvent::new(bench.now, 100);
    ev.pipe = 0;
    bench.bbr.on_rto(&ev);
    assert_eq!(bench.bbr.cwnd, 1.0);
    bench.bbr.on_recovery_exit(bench.now);
    assert_eq!(bench.bbr.cwnd, before);
}

/// Case 2: `full_bw_now` and `full_bw_reached`, although the samples are application-limited.
#[test]
fn losses_in_six_ranges_end_startup() {
    let limited = Shows {
        app_limited: true,
        tx_in_flight: 100,
        flight: 200,
        ..USUAL
    };
    for (ranges, lost, ends) in [(6, 3, true), (5, 3, false), (6, 2, false)] {
        let mut bench = Bench::new();
        bench.round(limited);
        for i in 1..=ranges {
            bench.lose(100, i);
        }
        bench.recover();
        bench.round(Shows { lost, ..limited });
        assert_eq!(bench.bbr.full.reached, ends, "{ranges} {lost}");
        assert_eq!(bench.bbr.full.now, ends);
        assert_eq!(
            bench.bbr.state == State::Drain,
            ends,
            "{:?}",
            bench.bbr.state
        );
        if ends {
            // max(bdp, inflight_latest).
            assert_eq!(bench.bbr.inflight_longterm, 100.0);
            assert_eq!(bench.bbr.undo.state, Some(State::Startup));
        }
    }
}

/// Section 5.5.10.2: of 100 in flight the third loss exceeds 2 %. `inflight_prev` is 99,
/// `lost_prev` 2 and `lost_prefix` `(0.02 * 99 - 2) / 0.98`.
#[test]
fn a_loss_too_many_ends_the_probe() {
    let mut bench = Bench::probing();
    let before = bench.bbr.clone();
    bench.lose(100, 1);
    bench.lose(100, 2);
    assert_eq!(bench.bbr.state, State::Up);
    bench.lose(100, 3);
    assert_eq!(bench.bbr.state, State::Down);
    let at_loss = 99.0 + (0.02 * 99.0 - 2.0) / 0.98;
    assert_eq!(bench.bbr.inflight_longterm, at_loss);
    assert!(bench.bbr.probe.too_high && !bench.bbr.probe.is_sample);
    assert_eq!(bench.bbr.undo.state, Some(State::Up));
    // Only once per probe.
    bench.lose(50, 4);
    assert_eq!(bench.bbr.inflight_longterm, at_loss);

    // A loss that left with little in flight: 0.7 of the BDP is the least (Beta).
    let mut small = Bench::probing();
    small.lose(20, 1);
    let target = before.target_inflight();
    assert_eq!(small.bbr.inflight_longterm, 0.7 * target);
}

/// Section 5.3.3.6: after a probe that went too high the next one ends where it reaches that level,
/// which an ACK then takes it from.
#[test]
fn a_precautionary_probe_ends_where_the_bound_is_reached() {
    let probe = |prior_flight: u64| {
        let mut bench = Bench::probing();
        bench.bbr.inflight_longterm = 120.6;
        bench.bbr.probe.too_high = true;
        let mut ev = AckEvent::new(bench.now);
        (ev.prior_flight, ev.flight) = (prior_flight, prior_flight - 2);
        bench.bbr.update_probe_bw(&Sample::of(&ev));
        (bench.bbr.state, bench.bbr.probe.precautionary)
    };
    assert_eq!(probe(117), (State::Up, false));
    assert_eq!(probe(118), (State::Down, true), "the next two fill 120.6");
}

/// Sections 2.15 and 5.5.11: what was saved when the recovery began, not what a later round made of
/// it, and the state.
#[test]
fn a_spurious_recovery_restores_what_was_before_it() {
    let mut bench = Bench::probing();
    let before = bench.bbr.clone();
    for i in 1..=3 {
        bench.lose(100, i);
    }
    bench.recover();
    assert_eq!(bench.bbr.undo.state, Some(State::Up), "recovery keeps it");
    assert_eq!(bench.bbr.prior_cwnd, before.cwnd);
    // Two more rounds with losses lower the short-term model.
    for _ in 0..2 {
        bench.lose(100, 1);
        bench.round(Shows {
            rate: 300.0,
            ..USUAL
        });
    }
    assert!(bench.bbr.short.bw < 1000.0 && bench.bbr.short.inflight < f64::INFINITY);
    assert!(bench.bbr.cwnd < before.cwnd);
    bench.bbr.on_undo(bench.now);
    assert_eq!(bench.bbr.state, State::Refill);
    assert_eq!(bench.bbr.short.bw, f64::INFINITY);
    assert_eq!(bench.bbr.short.inflight, f64::INFINITY);
    assert_eq!(bench.bbr.inflight_longterm, f64::INFINITY);
    assert_eq!(bench.bbr.cwnd, before.cwnd);
    assert_eq!(bench.bbr.undo.state, None);
}

/// Section 5.5.10.3: 0.7 of what was, and no less than what was delivered, once per round.
#[test]
fn a_round_with_losses_outside_a_probe_lowers_the_short_term_model() {
    let mut bench = Bench::probing();
    while bench.bbr.state != State::Cruise {
        bench.round(Shows {
            flight: 80,
            ..USUAL
        });
    }
    let cwnd = bench.bbr.cwnd;
    bench.lose(100, 1);
    bench.lose(100, 2);
    bench.round(Shows {
        rate: 500.0,
        flight: 80,
        ..USUAL
    });
    assert_eq!(bench.bbr.short.bw, 1000.0, "bw_latest of the round before");
    bench.lose(100, 3);
    bench.round(Shows {
        rate: 500.0,
        flight: 80,
        ..USUAL
    });
    assert_eq!(bench.bbr.short.bw, 700.0);
    assert!(
        (bench.bbr.short.inflight - 0.49 * cwnd).abs() < 1e-9 || bench.bbr.short.inflight >= 100.0
    );
    assert_eq!(bench.bbr.bw, 700.0);
    bench.round(Shows {
        rate: 500.0,
        flight: 80,
        ..USUAL
    });
    assert_eq!(bench.bbr.short.bw, 700.0, "no loss, no change");
}

/// Case 11's flag (section 5.4.1).
#[test]
fn a_restart_from_idle_paces_at_the_bandwidth() {
    let mut bench = Bench::probing();
    let mut ev = RestartEvent::new(bench.now);
    bench.bbr.on_restart(&ev);
    assert!(
        !bench.bbr.idle_restart,
        "a pause that is not the application's"
    );
    ev.app_limited = true;
    bench.bbr.on_restart(&ev);
    assert!(bench.bbr.idle_restart);
    assert_eq!(bench.bbr.pacing_rate, 0.99 * 1000.0);
    bench.round(USUAL);
    assert!(!bench.bbr.idle_restart);
}

/// Section 3.6 asks that a mark counts as congestion.
#[test]
fn a_mark_is_congestion() {
    let mark = CongestionEvent::new(Time::ZERO, CongestionKind::Ecn, 80);
    let mut bench = Bench::new();
    bench.round(USUAL);
    bench.bbr.on_congestion(&mark);
    assert_eq!(bench.bbr.state, State::Drain);

    let mut bench = Bench::probing();
    bench.bbr.on_congestion(&mark);
    assert_eq!(bench.bbr.state, State::Down);
    assert_eq!(bench.bbr.inflight_longterm, 80.0);
    bench.bbr.on_congestion(&CongestionEvent::new(
        Time::ZERO,
        CongestionKind::LocalDrop,
        80,
    ));
    assert_eq!(bench.bbr.state, State::Down);
}

/// Section 5.3.3.8: 2 to 3 s, or as many rounds as the target has segments, at most 63.
#[test]
fn probes_are_two_to_three_seconds_or_63_rounds_apart() {
    let mut waits = Vec::new();
    for seed in 0..50 {
        let mut bench = Bench::new();
        bench.bbr.set_up(&Setup {
            seed,
            ..Setup::default()
        });
        bench.bbr.start_down(bench.now, 0);
        assert!(bench.bbr.probe.rounds_since_up < 2);
        waits.push(bench.bbr.probe.wait.as_secs_f64());
    }
    assert!(waits.iter().all(|w| (2.0..3.0).contains(w)), "{waits:?}");
    let (low, high) = waits
        .iter()
        .fold((9.0_f64, 0.0_f64), |(l, h), w| (l.min(*w), h.max(*w)));
    assert!(low < 2.2 && high > 2.8, "{low} {high}");

    // 63 rounds of a BDP of 100 segments; 20 of one of 20.
    for (bdp, rounds) in [(100.0, 63), (20.0, 20)] {
        let mut bench = Bench::probing();
        bench.bbr.state = State::Cruise;
        bench.bbr.bw = bdp * 10.0;
        bench.bbr.probe.wait = Span::from_secs(1000);
        bench.bbr.probe.rounds_since_up = rounds - 1;
        let rs = Sample::of(&AckEvent::new(bench.now));
        assert!(!bench.bbr.probes_now(&rs));
        bench.bbr.probe.rounds_since_up = rounds;
        assert!(bench.bbr.probes_now(&rs));
        assert_eq!(bench.bbr.state, State::Refill);
    }
}

/// Section 5.3.3.9: the additive increase doubles per round: `cwnd / 2^k` segments acknowledged per
/// segment.
#[test]
fn the_slope_of_the_long_term_bound_doubles() {
    let mut bench = Bench::probing();
    bench.bbr.cwnd = 128.0;
    bench.bbr.probe.up_rounds = 0;
    for per_segment in [128.0, 64.0, 32.0, 16.0] {
        bench.bbr.raise_longterm_slope();
        assert_eq!(bench.bbr.probe.acked_per_inc, per_segment);
    }
}

/// Sections 5.6.4.2 and 5.6.4.7.
#[test]
fn the_window_is_two_bdps_within_its_bounds() {
    let mut bench = Bench::probing();
    let w = |bbr: &Bbr| bbr.inflight_with_headroom();
    assert_eq!(w(&bench.bbr), f64::INFINITY);
    bench.bbr.inflight_longterm = 100.0;
    assert_eq!(w(&bench.bbr), 85.0);
    bench.bbr.inflight_longterm = 6.0;
    assert_eq!(w(&bench.bbr), 5.0, "a segment at least");
    bench.bbr.inflight_longterm = 4.0;
    assert_eq!(w(&bench.bbr), 4.0, "MinPipeCwnd at least");
    bench.bbr.inflight_longterm = f64::INFINITY;
    bench.bbr.state = State::Cruise;
    bench.bbr.probe.wait = Span::from_secs(1000);
    bench.bbr.probe.rounds_since_up = 0;
    bench.rounds(5);
    // One ACK per round is a burst of 100 segments: two BDPs and that burst.
    assert_eq!(bench.bbr.cwnd, 200.0 + bench.bbr.extra_acked.get());
    bench.bbr.inflight_longterm = 100.0;
    bench.round(Shows {
        tx_in_flight: 50,
        ..USUAL
    });
    assert_eq!((bench.bbr.state, bench.bbr.cwnd), (State::Cruise, 85.0));
}

/// HandleProbeRTT() calls MarkConnectionAppLimited() before it looks whether ProbeRTT is over.
#[test]
fn the_ack_that_ends_probe_rtt_still_marks_what_is_in_flight() {
    let few = Shows { flight: 4, ..USUAL };
    let mut bench = Bench::probing();
    for _ in 0..100 {
        assert_eq!(
            bench.bbr.limits_itself(),
            bench.bbr.state == State::ProbeRtt
        );
        bench.round(few);
        if bench.bbr.state == State::ProbeRtt {
            break;
        }
    }
    while bench.bbr.state == State::ProbeRtt {
        assert!(bench.bbr.limits_itself());
        bench.round(few);
    }
    assert_eq!(bench.bbr.state, State::Cruise);
    assert!(bench.bbr.limits_itself());
    bench.round(USUAL);
    assert!(!bench.bbr.limits_itself());
}

/// What the two editions say of the same: the draft's, then the kernel's.
fn both<T>(tell: impl Fn(Bench) -> T) -> [T; 2] {
    [&BBR, &BBR3_LINUX].map(|edition| tell(Bench::of(edition)))
}

/// 2 % of 50 are a segment, and of 51, by the kernel's 5 of 256, less than one.
#[test]
fn the_kernel_counts_whole_segments() {
    let one_is_too_much = |in_flight| both(|bench| bench.bbr.is_inflight_too_high(1.0, in_flight));
    assert_eq!(one_is_too_much(49.0), [true, true]);
    assert_eq!(one_is_too_much(51.0), [false, true]);
    assert_eq!(one_is_too_much(52.0), [false, false]);
    let bdp = both(|mut bench| {
        bench.round(USUAL);
        bench.bbr.bdp(1004.0, 1.0)
    });
    assert_eq!(bdp, [100.4, 101.0]);
    // 0.7 or 180/256 of 101 and, in flight, of 99.
    let cut = both(|mut bench| {
        bench.rounds(2);
        bench.bbr.state = State::Cruise;
        bench.bbr.cwnd = 101.0;
        bench.bbr.latest.loss_in_round = true;
        bench.bbr.latest.inflight = 0.0;
        bench.bbr.adapt_lower_bounds();
        bench.bbr.short.inflight
    });
    assert_eq!(cut, [0.7 * 101.0, 71.0]);
    let slope = both(|mut bench| {
        (bench.bbr.cwnd, bench.bbr.probe.up_rounds) = (101.0, 1);
        bench.bbr.raise_longterm_slope();
        bench.bbr.probe.acked_per_inc
    });
    assert_eq!(slope, [50.5, 50.0]);
    // 1.9 segments were due, two came.
    let extra = both(|mut bench| {
        bench.rounds(2);
        bench.bbr.extra_acked = ExtraAcked::new(bench.now);
        for (ms, n) in [(1, 1), (190, 1)] {
            let mut ev = AckEvent::new(bench.now + Span::from_millis(ms));
            ev.acked = n;
            let at = Expected {
                bw: 10.0,
                cwnd: 200.0,
                round: 0,
                filter_len: 10,
            };
            let rules = bench.bbr.rules;
            bench.bbr.extra_acked.update(&Sample::of(&ev), at, &rules);
        }
        bench.bbr.extra_acked.get()
    });
    assert!((extra[0] - 1.0).abs() < 1e-9, "{extra:?}");
    assert_eq!(extra[1], 1.0);
}

/// Three of 100 were lost before the probe, and the ACKs of what left beside them end it.
#[test]
fn the_kernel_ends_a_probe_by_the_losses_before_it() {
    let ended = both(|mut bench| {
        bench.rounds(3);
        bench.bbr.full.reached = true;
        (bench.bbr.state, bench.bbr.probe.is_sample) = (State::Up, true);
        bench.round(Shows {
            tx_in_flight: 90,
            lost: 3,
            ..USUAL
        });
        let bbr = &bench.bbr;
        (bbr.probe.too_high, bbr.inflight_longterm.min(1000.0))
    });
    assert_eq!(ended, [(false, 1000.0), (true, 90.0)]);
}

/// Drain begins where the round of Startup that ended it is forgotten.
#[test]
fn the_kernel_forgets_startups_signals() {
    let latest = both(|mut bench| {
        bench.rounds(2);
        bench.bbr.latest.loss_in_round = true;
        bench.bbr.enter_drain();
        (bench.bbr.latest.loss_in_round, bench.bbr.latest.inflight)
    });
    assert_eq!(latest, [(true, 100.0), (false, 0.0)]);
}

/// A round with losses cuts 40 segments of BDP to 28, by the kernel at once: 31 rounds without a
/// probe are more than that.
#[test]
fn the_kernel_reckons_with_the_bandwidth_of_this_ack() {
    let probes = both(|mut bench| {
        let slow = |rate| Shows { rate, ..USUAL };
        (0..3).for_each(|_| bench.round(slow(400.0)));
        bench.bbr.full.reached = true;
        bench.bbr.state = State::Cruise;
        bench.bbr.probe.rounds_since_up = 30;
        bench.bbr.probe.wait = Span::from_secs(100);
        bench.lose(100, 1);
        bench.bbr.latest.bw = 0.0;
        bench.round(slow(40.0));
        assert!((bench.bbr.max_bw.get() - 400.0).abs() < 1e-9);
        bench.bbr.state == State::Refill
    });
    assert_eq!(probes, [false, true]);
}

/// Twice 25 % in the middle of a round, which its first ACK does not show.
#[test]
fn the_kernel_sees_growth_at_any_ack() {
    let bandwidth = both(|mut bench| {
        bench.round(USUAL);
        let mut ev = AckEvent::new(bench.now);
        ev.acked = 1;
        ev.delivered = bench.delivered;
        let mut rate = RateSample::new(200, Span::from_millis(100));
        rate.prior_delivered = 0;
        ev.rate = Some(rate);
        bench.bbr.on_ack(&ev);
        bench.bbr.full.bw
    });
    assert_eq!(bandwidth, [1000.0, 2000.0]);
}

/// Whether to cruise at a BDP of 100: the kernel asks what was in flight before the ACK, less what
/// arrives until pacing lets the next segment leave, with two segments more in the ACK that ends a
/// probe.
#[test]
fn the_kernel_looks_at_the_next_departure() {
    let cruises = |gain, wait_ms, before| {
        both(|mut bench| {
            bench.rounds(2);
            (bench.bbr.state, bench.bbr.gain_in_force) = (State::Down, gain);
            let mut ev = AckEvent::new(bench.now);
            (ev.prior_flight, ev.flight) = (before, before - 1);
            ev.next_send = bench.now + Span::from_millis(wait_ms);
            bench.bbr.is_time_to_cruise(&Sample::of(&ev))
        })
    };
    assert_eq!(cruises(0.9, 0, 100), [true, true]);
    assert_eq!(cruises(0.9, 0, 101), [true, false]);
    let later = cruises(0.9, 1, 101);
    assert_eq!(later, [true, true], "a segment a millisecond");
    assert_eq!(cruises(0.9, 2, 102), [false, true]);
    assert_eq!(cruises(1.25, 0, 99), [true, false]);
    assert_eq!(cruises(1.25, 0, 98), [true, true]);
}

#[test]
fn the_kernel_does_not_heed_marks() {
    let ended = both(|mut bench| {
        bench.round(USUAL);
        let ev = CongestionEvent::new(bench.now, CongestionKind::Ecn, 100);
        bench.bbr.on_congestion(&ev);
        bench.bbr.state != State::Startup
    });
    assert_eq!(ended, [true, false]);
}

/// A recovery that follows on a timeout has the window of before it.
#[test]
fn the_kernel_restores_the_window_as_a_timeout_ends() {
    let windows = both(|mut bench| {
        bench.rounds(3);
        let before = bench.bbr.window();
        let mut timeout = RtoEvent::new(bench.now, 100);
        timeout.pipe = 0;
        bench.bbr.on_rto(&timeout);
        assert_eq!(bench.bbr.window(), 1.0);
        bench.recover();
        bench.bbr.window() / before
    });
    assert!(windows[0] < 0.1, "{windows:?}");
    assert_eq!(windows[1], 1.0);
}

/// A path of one segment: Reno's share of it is six rounds of probing apart, not one.
#[test]
fn the_kernels_target_has_room_for_bursts() {
    let targets = both(|mut bench| {
        let slow = Shows {
            rate: 10.0,
            flight: 1,
            ..USUAL
        };
        bench.round(slow);
        bench.bbr.bw = 10.0;
        bench.bbr.target_inflight()
    });
    assert_eq!(targets, [1.0, 6.0]);
}

/// As `tcp_bbr.c` writes them, in parts of 256.
#[test]
fn the_constants_are_the_kernels() {
    let set = Bench::of(&BBR3_LINUX).bbr.set;
    const UNIT: u32 = 256;
    for (name, value, kernels) in [
        (
            "startup_pacing_gain",
            set.startup_pacing_gain,
            UNIT * 277 / 100 + 1,
        ),
        ("drain_gain", set.drain_pacing_gain, UNIT * 1000 / 2885),
        (
            "pacing_gain, DOWN",
            set.probe_down_pacing_gain,
            UNIT * 91 / 100,
        ),
        ("pacing_gain, UP", set.probe_up_pacing_gain, UNIT * 5 / 4),
        ("cwnd_gain", set.default_cwnd_gain, UNIT * 2),
        (
            "bw_probe_cwnd_gain",
            set.probe_up_cwnd_gain,
            UNIT * 2 + UNIT / 4,
        ),
        ("loss_thresh", set.loss_thresh, UNIT * 2 / 100),
        ("beta", set.beta, UNIT - UNIT * 30 / 100),
        ("inflight_headroom", set.headroom, UNIT * 15 / 100),
        ("probe_rtt_cwnd_gain", set.probe_rtt_cwnd_gain, UNIT / 2),
    ] {
        assert_eq!(value * f64::from(UNIT), f64::from(kernels), "{name}");
    }
    assert_eq!(set.pacing_margin_percent, 1.0);
    assert_eq!(set.min_pipe_cwnd, 4.0);
    assert_eq!(set.startup_full_loss_cnt, 6.0);
    assert_eq!(set.min_rtt_filter_len, Span::from_secs(10));
    assert_eq!(set.probe_rtt_duration, Span::from_millis(200));
    assert_eq!(set.probe_rtt_interval, Span::from_secs(5));
}
