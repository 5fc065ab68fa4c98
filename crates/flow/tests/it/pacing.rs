//! When segments leave: spreading of the initial window, pacing, trains of segmentation offload.

use fullpipe_cc::{InitialSending, PacingGains};
use fullpipe_flow::{Ack, Limit, LocalDrop, PacerRule, Preset, SenderConfig, Validation};
use fullpipe_units::{Rate, Time};

use crate::host::Out::N;
use crate::host::{Halver, Host, ack, modern, reduction, sack, span_ms, syn_ack};

/// Section 3.2: segment i of the initial window leaves at t0 + i T; (RTT, jiffy, IW, T bounded, T
/// variable), ms.
#[test]
fn the_initial_window_leaves_at_the_times_of_the_table() {
    let rows = [
        (8, 1, 10, 0.0, 0.0),
        (8, 10, 10, 0.0, 0.0),
        (20, 1, 10, 2.0, 2.0),
        (20, 4, 10, 0.0, 0.0),
        (40, 1, 10, 4.0, 4.0),
        (40, 4, 10, 4.0, 4.0),
        (40, 10, 10, 0.0, 0.0),
        (80, 1, 10, 4.0, 8.0),
        (80, 4, 10, 4.0, 8.0),
        (250, 4, 10, 4.0, 25.0),
        (500, 1, 10, 4.0, 50.0),
        (600, 4, 10, 4.0, 60.0),
        (20, 4, 3, 4.0, 20.0 / 3.0),
    ];
    for (rtt, jiffy, iw, bounded, variable) in rows {
        for (t_max, gap) in [(Some(span_ms(4)), bounded), (None, variable)] {
            let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
                c.pacing.initial = InitialSending::Spread {
                    t_max,
                    jiffy: span_ms(jiffy),
                };
                c.recovery.tlp = false;
            });
            let mut h = Host::new(cfg, f64::from(iw));
            let rtt = f64::from(rtt);
            h.ack_at(rtt, &syn_ack(u64::MAX));
            h.wait(rtt * 2.0 - 0.001);
            let times: Vec<f64> = h.log[1..]
                .iter()
                .map(|l| l.0.as_secs_f64() * 1e3 - rtt)
                .collect();
            assert_eq!(times.len(), iw as usize, "RTT {rtt} jiffy {jiffy}");
            for (i, t) in times.iter().enumerate() {
                let expected = gap * i as f64;
                assert!(
                    (t - expected).abs() < 1e-4,
                    "RTT {rtt} jiffy {jiffy}: {i} at {t}, not {expected}"
                );
            }
        }
    }
}

fn spread(rtt_ms: f64, w: f64) -> Host {
    spread_with(rtt_ms, w, LocalDrop::React)
}

fn spread_with(rtt_ms: f64, w: f64, local_drop: LocalDrop) -> Host {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
        c.pacing.initial = InitialSending::Spread {
            t_max: Some(span_ms(4)),
            jiffy: span_ms(1),
        };
        c.ecn = true;
        c.host.local_drop = local_drop;
    });
    let mut cc = Halver::new(w);
    cc.sets_rate = false;
    let mut h = Host::with(cfg, cc);
    h.ack_at(rtt_ms, &syn_ack(u64::MAX));
    h
}

/// Spreading ends at the first loss, and after the initial window: then the rest is ACK-clocked.
#[test]
fn spreading_ends_on_loss_on_a_mark_and_after_the_initial_window() {
    // IW 40 at RTT 160: the last would leave at 156.
    for marked in [false, true] {
        let mut h = spread(160.0, 40.0);
        h.wait(319.0);
        assert_eq!(h.log.len(), 1 + 40);
        let mut h = spread(20.0, 10.0); // gap 2: 18 ms
        h.wait(34.0);
        assert_eq!(h.log.len(), 1 + 8);
        let before = h.log.len();
        let out = if marked {
            h.ack(&Ack {
                ece: true,
                ..ack(2, 20.0)
            })
        } else {
            h.ack(&sack(0, &[(1, 6)]))
        };
        assert_eq!(h.s.controller().congestions.len(), 1);
        // Whatever the window allows leaves at once; nothing waits for a pacer.
        let cwnd = h.s.cwnd() as u64;
        assert!(h.s.flight() >= cwnd, "{} {cwnd} {out:?}", h.s.flight());
        let left = h.wait(39.0).len();
        assert_eq!(left, 0, "{before}");
    }
    // After the initial window: bursts of what an ACK releases.
    let mut h = spread(20.0, 10.0);
    h.wait(39.9);
    assert_eq!(h.ack_at(40.0, &ack(2, 20.0)), [N(10), N(11)]);
}

/// Section 3.3, known number: w 1000, 1448 B, SRTT 87 ms, gain 1.2: 159.779310 Mbit/s, one segment
/// every 72.5 us.
#[test]
fn pacing_spaces_segments_by_the_published_gap() {
    for (ssth, gain) in [(1000.0, 1.2), (f64::INFINITY, 2.0)] {
        let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
            c.pacing.gains = Some(PacingGains::default());
            c.window.validation = Validation::None;
        });
        let mut cc = Halver::new(1000.0);
        cc.ssth = ssth;
        let mut h = Host::with(cfg, cc);
        h.ack_at(87.0, &syn_ack(u64::MAX));
        let rate = h.s.pacing_rate().unwrap() / 1e6;
        assert!((rate - 159.779310 * gain / 1.2).abs() < 1e-6, "{rate}");
        h.wait(87.0 + 30.0);
        let times: Vec<f64> = h.log[1..].iter().map(|l| l.0.as_secs_f64() * 1e6).collect();
        let gap = 72.5 * 1.2 / gain;
        // The start: at most a millisecond's worth at once.
        let burst = times.iter().filter(|t| **t < 87_000.5).count();
        let credit = (1000.0 / gap).max(2.0);
        assert!(burst as f64 <= credit + 1.0, "{burst} at once, gap {gap}");
        for pair in times[burst..].windows(2) {
            assert!((pair[1] - pair[0] - gap).abs() < 0.002, "{pair:?} {gap}");
        }
        let expected = burst as f64 + 30_000.0 / gap;
        assert!(
            (times.len() as f64 - expected).abs() <= 1.0,
            "{} {expected}",
            times.len()
        );
    }
}

/// Retransmissions are paced like the rest.
#[test]
fn retransmissions_are_paced() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500)
        .with(|c| c.pacing.gains = Some(PacingGains::default()));
    let mut h = Host::new(cfg, 40.0);
    h.ack_at(100.0, &syn_ack(u64::MAX));
    h.wait(200.0);
    h.ack(&sack(0, &[(30, 33)]));
    h.wait(290.0);
    let times: Vec<Time> = h
        .log
        .iter()
        .filter(|l| l.1.retransmission)
        .map(|l| l.0)
        .collect();
    assert!(times.len() >= 3);
    assert!(times.windows(2).skip(2).all(|w| w[1] > w[0]), "{times:?}");
}

/// Linux `tcp_tso_should_defer`: trains of the offload's size, or of a third of the window where
/// that is less.
#[test]
fn segmentation_offload_waits_for_a_train() {
    for (window, tso, train) in [(24.0, 8, 8), (24.0, 44, 8), (90.0, 44, 30), (60.0, 10, 10)] {
        let cfg = modern().with(|c| c.host.tso_segments = tso);
        let mut h = Host::new(cfg, window);
        assert!(h.log.len() + train > window as usize, "{}", h.log.len());
        let mut sizes = Vec::new();
        for cum in (2..=240).step_by(2) {
            let out = h.ack_at(cum as f64, &ack(cum, 0.0));
            if !out.is_empty() {
                sizes.push(out.len());
            }
        }
        assert!(
            sizes.len() > 3 && sizes.iter().all(|n| *n == train),
            "window {window}, offload {tso}: {sizes:?}"
        );
    }
}

/// The last segments of a transfer do not wait, and neither does a sender with nothing in flight.
#[test]
fn segmentation_offload_holds_nothing_back_at_the_end() {
    let cfg = modern().with(|c| {
        c.host.tso_segments = 44;
        c.transfer = Some(31);
    });
    let mut h = Host::new(cfg, 30.0);
    assert_eq!(h.log.len(), 30);
    assert_eq!(h.ack_at(80.0, &ack(1, 0.0)), [N(30)], "one is all there is");
    h.ack_at(81.0, &ack(31, 0.0));
    assert!(h.s.is_done());
}

/// Initial Spreading wants no offload for the first window: trains come after it.
#[test]
fn segmentation_offload_leaves_a_spread_initial_window_alone() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| {
        c.pacing.initial = InitialSending::Spread {
            t_max: Some(span_ms(4)),
            jiffy: span_ms(1),
        };
        c.host.tso_segments = 44;
    });
    let mut h = Host::new(cfg, 10.0);
    h.ack_at(100.0, &syn_ack(u64::MAX));
    h.wait(199.0);
    let times: Vec<f64> = h.log[1..]
        .iter()
        .map(|(t, _)| t.as_secs_f64() * 1e3)
        .collect();
    let expected: Vec<f64> = (0..10).map(|i| 100.0 + 4.0 * f64::from(i)).collect();
    assert_eq!(times, expected);
    assert_eq!(h.ack_at(200.0, &ack(2, 100.0)).len(), 0, "a third waits");
    assert_eq!(h.ack_at(204.0, &ack(3, 104.0)).len(), 3);
}

/// A pacer lets a train pass as one and charges it whole; at a low rate it is two segments long, at
/// a high one a millisecond.
#[test]
fn segmentation_offload_paces_trains() {
    let cfg = modern().with(|c| {
        c.host.tso_segments = 4;
        c.pacing.gains = Some(PacingGains {
            slow_start: 1.0,
            avoidance: 1.0,
        });
    });
    let mut h = Host::new(cfg, 20.0);
    h.s.drain_log().count();
    h.ack_at(100.0, &ack(20, 0.0));
    h.wait(199.0);
    let times: Vec<f64> = h.log[20..]
        .iter()
        .map(|(t, _)| t.as_secs_f64() * 1e3)
        .collect();
    assert_eq!(times.len(), 20);
    for train in times.chunks(2) {
        assert!(train.iter().all(|t| *t == train[0]), "{times:?}");
    }
    // 20 segments per 100 ms: a train of two every 10 ms, less what the pacer's credit of a burst
    // advances the first.
    for pair in times.chunks(2).collect::<Vec<_>>().windows(2) {
        assert!((pair[1][0] - pair[0][0] - 10.0).abs() < 10.1, "{times:?}");
    }
    let span = times[19] - times[0];
    assert!((80.0..=90.0).contains(&span), "{span}");
}

/// Departures after the first segment of the log, ms.
fn departures<C: fullpipe_cc::Controller>(h: &Host<C>, after: usize) -> Vec<f64> {
    h.log[after..]
        .iter()
        .map(|l| l.0.as_secs_f64() * 1e3)
        .collect()
}

/// Linux `tcp_update_skb_after_send`: ten segments leave unpaced, and behind one that leaves late
/// the next one waits half of its time, where virtual scheduling would wait none. 20 segments per
/// RTT of 100 ms: one every 5 ms.
#[test]
fn a_kernel_s_pacer_starts_unpaced_and_makes_up_for_half() {
    let cfg = modern().with(|c| {
        c.handshake = true;
        c.pacing.rule = PacerRule::Linux;
        c.pacing.gains = Some(PacingGains {
            slow_start: 1.0,
            avoidance: 1.0,
        });
        c.recovery.tlp = false;
    });
    let mut h = Host::new(cfg, 20.0);
    h.ack_at(100.0, &syn_ack(u64::MAX));
    h.wait(199.0);
    let times = departures(&h, 1);
    assert_eq!(times.len(), 20);
    assert!(times[..10].iter().all(|t| *t == 100.0), "{times:?}");
    for (i, t) in times[10..].iter().enumerate() {
        assert!((t - 105.0 - 5.0 * i as f64).abs() < 1e-4, "{times:?}");
    }
    // The last one left at 150 ms, so the next could from 155 ms on. It leaves at 200 ms.
    h.ack_at(200.0, &ack(4, 100.0));
    h.wait(220.0);
    let times = departures(&h, 21);
    assert_eq!(times[0], 200.0);
    let gaps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
    assert!((gaps[0] - 2.5).abs() < 0.1, "{gaps:?}");
    assert!(gaps[1..].iter().all(|g| (g - 5.0).abs() < 0.1), "{gaps:?}");
}

/// Linux `tcp_update_pacing_rate` takes everything outstanding (`packets_out`), also what is
/// SACKed: in a recovery the retransmissions leave at the rate of the window that was.
#[test]
fn a_kernel_s_rate_counts_what_is_sacked() {
    for rule in [PacerRule::Linux, PacerRule::Credit] {
        let cfg = modern().with(|c| {
            c.pacing.rule = rule;
            c.pacing.gains = Some(PacingGains {
                slow_start: 1.0,
                avoidance: 1.0,
            });
        });
        let mut h = Host::new(cfg, 20.0);
        h.wait(99.0);
        h.ack_at(100.0, &ack(1, 0.0));
        h.s.drain_log().count();
        let srtt = h.s.rtt().srtt().as_secs_f64();
        h.deliver(&sack(1, &[(6, 20)]));
        let rate = h.s.pacing_rate().unwrap() * srtt / f64::from(1448 * 8);
        let outstanding = (h.s.nxt() - h.s.una()) as f64;
        assert!(outstanding >= 20.0 && h.s.cwnd() < 20.0);
        match rule {
            PacerRule::Linux => assert!((rate - outstanding).abs() < 1e-6, "{rate}"),
            PacerRule::Credit => assert!(rate < 20.0, "{rate}"),
        }
    }
}

/// Linux works the rate out at an ACK, for all that the ACK lets out (`tcp_update_pacing_rate`):
/// what leaves afterwards is outstanding, too, and does not make the rest faster, and a timeout
/// does not make it slower. 30 segments are outstanding of which 28 are SACKed or lost, and the
/// window is 15.
#[test]
fn a_kernel_s_rate_stays_between_acks() {
    for rule in [PacerRule::Linux, PacerRule::Credit] {
        let cfg = modern().with(|c| {
            c.pacing.rule = rule;
            c.pacing.gains = Some(PacingGains {
                slow_start: 1.0,
                avoidance: 1.0,
            });
            c.recovery.reduction = reduction(false);
            c.recovery.tlp = false;
        });
        let mut h = Host::new(cfg, 30.0);
        h.wait(99.0);
        h.ack_at(100.0, &ack(1, 0.0));
        h.wait(199.0);
        let sent = h.log.len();
        let outstanding = (h.s.nxt() - h.s.una()) as f64;
        h.ack_at(200.0, &sack(1, &[(2, 29)]));
        let at_ack = h.s.pacing_rate().unwrap();
        h.wait(260.0);
        let times = departures(&h, sent);
        let gaps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
        assert!(h.s.cwnd() < outstanding && gaps.len() >= 10, "{gaps:?}");
        let srtt = h.s.rtt().srtt().as_secs_f64() * 1e3;
        let expected = srtt / outstanding;
        // Behind the first one, which leaves late, half of the time is waited.
        let is_steady = gaps[1..].iter().all(|g| (g - expected).abs() < 1e-4);
        assert_eq!(is_steady, rule == PacerRule::Linux, "{expected} {gaps:?}");
        let timeouts = h.s.counts().timeouts;
        h.wait(2000.0);
        assert!(h.s.counts().timeouts > timeouts && h.s.cwnd() < 2.0);
        let stays = h.s.pacing_rate() == Some(at_ack);
        assert_eq!(stays, rule == PacerRule::Linux);
    }
}

/// A ceiling paces a flow whose stack does not, from the first segment on: 1 Mbit/s is a segment of
/// 1448 bytes every 11.584 ms, where the window would allow 100 per RTT.
#[test]
fn a_ceiling_paces_a_flow() {
    let cfg = modern().with(|c| {
        c.pacing.max = Some(Rate::from_bits_per_sec(1_000_000));
        c.pacing.gains = Some(PacingGains::default());
        c.pacing.rule = PacerRule::Linux;
    });
    let mut h = Host::new(cfg, 100.0);
    h.wait(99.0);
    let times = departures(&h, 0);
    assert_eq!(times[9], 0.0, "ten at once");
    for pair in times[9..].windows(2) {
        assert!((pair[1] - pair[0] - 11.584).abs() < 1e-4, "{pair:?}");
    }
    assert_eq!(h.s.pacing_rate(), Some(1e6));
    let limits = h.s.limit_times(h.now);
    assert_eq!(limits.longest(), Some(Limit::Rate));
    assert_eq!(limits.of(Limit::Rate), limits.total());
}

/// Linux `tcp_tso_autosize`: a millisecond of the rate of window and RTT, not paced, at least two
/// segments; below an RTT of 512 us a whole offload more.
#[test]
fn offload_sizes_itself() {
    for (rtt, train) in [(100.0, 2), (0.4, 8)] {
        let cfg = modern().with(|c| {
            c.handshake = true;
            c.host.tso_segments = 44;
            c.host.tso_autosize = true;
        });
        let mut h = Host::new(cfg, 24.0);
        h.ack_at(rtt, &syn_ack(u64::MAX));
        h.wait(1.99 * rtt);
        let mut sizes = Vec::new();
        for cum in (2..=24).step_by(2) {
            // ACKs of a whole window within a millisecond: the next one is never far.
            let at = 2.0 * rtt + cum as f64 * 0.01;
            let out = h.ack_at(at, &ack(cum, rtt));
            sizes.extend((!out.is_empty()).then_some(out.len()));
        }
        assert!(
            sizes.len() > 2 && sizes.iter().all(|n| *n == train),
            "RTT {rtt} ms: {sizes:?}"
        );
    }
}

/// What holds a sender back: its window or the cap of it, then the receiver's, then nothing but the
/// end of the data. Every instant counts once.
#[test]
fn every_instant_has_its_limit() {
    for (cap, first) in [(f64::INFINITY, Limit::Network), (20.0, Limit::WindowCap)] {
        let cfg = modern().with(|c| {
            c.transfer = Some(40);
            c.window.max = cap;
        });
        let mut h = Host::new(cfg, 20.0);
        let closing = Ack {
            window_end: 30,
            ..ack(20, 0.0)
        };
        assert_eq!(h.ack_at(100.0, &closing).len(), 10);
        assert_eq!(h.ack_at(220.0, &ack(30, 100.0)).len(), 10);
        h.ack_at(370.0, &ack(40, 220.0));
        let limits = h.s.limit_times(h.now);
        assert_eq!(limits.of(first), span_ms(100));
        assert_eq!(limits.of(Limit::ReceiveWindow), span_ms(120));
        assert_eq!(limits.of(Limit::Application), span_ms(150));
        assert_eq!(limits.total(), span_ms(370));
    }
}

/// What the host refuses has not used its time up: it leaves as soon as there is room, and the
/// spreading goes on; a refusal after it does not begin it again.
#[test]
fn a_refused_segment_keeps_its_time() {
    let mut h = spread_with(100.0, 10.0, LocalDrop::Ignore);
    h.now = Time::ZERO + span_ms(104);
    h.s.handle_timeout(h.now);
    let refused = h.s.poll_transmit(h.now).unwrap();
    h.s.refuse(h.now, &refused);
    h.s.resume();
    let again = h.s.poll_transmit(h.now).unwrap();
    assert_eq!((refused.seq, again.seq), (1, 1));
    assert!(h.s.poll_transmit(h.now).is_none());
    h.wait(200.0);
    assert_eq!(h.s.nxt(), 10);
    // A mark in the midst of it: all that the window admits leaves at once from now on.
    let mut h = spread_with(160.0, 40.0, LocalDrop::Ignore);
    h.wait(250.0);
    assert_eq!(h.s.nxt(), 23);
    h.deliver(&Ack {
        ece: true,
        ..ack(19, 160.0)
    });
    h.deliver(&ack(20, 160.0));
    let refused = h.s.poll_transmit(h.now).unwrap();
    h.s.refuse(h.now, &refused);
    h.s.resume();
    let admitted = h.s.cwnd() as u64 - h.s.flight();
    assert!(admitted >= 4, "{admitted}");
    assert_eq!(h.poll().len() as u64, admitted);
}

/// A probe leaves while the pacer holds other segments back. If the host refuses it, the pacer
/// wakes nobody until there is room: its time would come again and again.
#[test]
fn a_full_host_is_not_woken_by_the_pacer() {
    let cfg = modern().with(|c| {
        c.pacing.max = Some(Rate::from_bits_per_sec(100_000));
        c.pacing.gains = Some(PacingGains::default());
        c.timers.max_ack_delay = span_ms(0);
        c.host.local_drop = LocalDrop::Ignore;
    });
    let mut h = Host::new(cfg, 100.0);
    h.ack_at(5.0, &ack(1, 0.0));
    h.wait(116.0);
    assert_eq!(h.s.nxt(), 2);
    h.now = h.s.next_timeout();
    h.s.handle_timeout(h.now);
    let probe = h.s.poll_transmit(h.now).unwrap();
    assert_eq!((probe.seq, h.s.counts().probes), (2, 1));
    assert!(h.s.poll_transmit(h.now).is_none());
    h.s.refuse(h.now, &probe);
    for _ in 0..3 {
        let at = h.s.next_timeout();
        assert!(at > h.now, "{at:?} at {:?}", h.now);
        h.now = at;
        h.s.handle_timeout(at);
        assert!(h.s.poll_transmit(at).is_none());
    }
    let timeouts = h.s.counts().timeouts;
    assert_eq!(timeouts, 3, "nothing but the timeouts");
}

/// Linux `tcp_reset_xmit_timer`: the retransmission timer waits as many whole ticks longer as the
/// pacer does. What it sends when it has gone off waits for no pacer (`tcp_retransmit_timer`).
#[test]
fn a_kernel_s_timeout_waits_for_the_pacer_and_its_segment_does_not() {
    let resent = |rate: Option<u64>| {
        let cfg = SenderConfig::preset(Preset::Linux, 1500).with(|c| {
            c.pacing.max = rate.map(Rate::from_bits_per_sec);
            c.pacing.gains = rate.map(|_| PacingGains::default());
            c.timers.hz = 1000;
            c.recovery.tlp = false;
            c.handshake = false;
            c.window.validation = Validation::None;
        });
        let mut h = Host::new(cfg, 12.0);
        h.ack_at(80.0, &ack(1, 0.0));
        h.wait(3000.0);
        let again = h.log.iter().find(|l| l.1.retransmission).unwrap();
        let last = h.log.iter().rfind(|l| !l.1.retransmission).unwrap();
        [last, again].map(|l| l.0.as_secs_f64() * 1e3)
    };
    // Of 120 kbit/s a segment takes 96.533 ms. The twelfth leaves at 96.533 ms, the next ones when
    // their time has come. At 80 ms the timer is set for 16 ms more.
    let ([_, free], [last, paced]) = (resent(None), resent(Some(120_000)));
    assert_eq!((free, paced), (368.0, 384.0));
    assert!(last + 96.5 > paced, "the pacer waits at {paced} ms: {last}");
}
