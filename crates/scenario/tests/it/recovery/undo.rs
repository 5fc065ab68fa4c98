//! Reductions are undone where they were spurious, and nowhere else.

use fullpipe_flow::{Episode, EpisodeKind};

use crate::recovery::{flow, scenario};

/// Four segments lost once each, no reordering: the loss of 1130 is found, and resent, in the
/// recovery of 1000; the recovery of 1102 then begins with that retransmission in flight.
const FOUR_LOSSES: &str = r#"
name = "four-losses"
duration = "6s"
[path]
rate = "100Mbit/s"
rtt = "100ms"
buffer = "5000 packets"
[[flow]]
stack = "reno"
window = "100 segments"
delayed_ack = false
[flow.drop]
segment = [1000, 1060, 1102, 1130]
[measure]
trace = "off"
"#;

#[test]
fn a_retransmission_of_the_recovery_before_is_no_original() {
    for preset in ["2026", "linux"] {
        for third in 1099..1106 {
            let third = format!("[1000, 1060, {third}, 1130]");
            let set = [
                ("flow.main.preset", preset),
                ("flow.main.drop.segment", third.as_str()),
            ];
            let t = flow(FOUR_LOSSES, &set).totals;
            assert_eq!((t.retransmits, t.duplicates), (4, 0), "{preset} {third}");
            assert_eq!((t.undone, t.timeouts), (0, 0), "{preset} {third}");
        }
    }
}

/// Early drops between the buffer's: a recovery follows the other, often with retransmissions in
/// flight. Nothing is reordered or delayed beyond the timer.
const AQM: &str = r#"
name = "aqm"
duration = "20s"
[path]
rate = "20Mbit/s"
rtt = "100ms"
buffer = "1BDP"
[[flow]]
stack = "reno"
[measure]
trace = "off"
[matrix]
"path.queue" = ["red", "adaptive-red", "codel", "pie", "fq-codel"]
"flow.main.stack" = [STACKS]
"#;

fn none_is_undone(preset: &str, stacks: &str) {
    let text = AQM.replace("STACKS", stacks);
    let scenario = scenario(&text, &[("flow.main.preset", preset)]);
    assert!(scenario.cases.len() >= 20);
    for case in &scenario.cases {
        let outcome = fullpipe_sim::run(&case.run_spec(1)).unwrap();
        let t = outcome.flows[0].totals;
        assert!(t.loss_events > 0, "{:?}", case.params());
        // Of the overshoot of slow start adaptive RED drops what comes until its average is down,
        // retransmissions too: that may take the timer once.
        let params = case.params();
        let adaptive = params.iter().any(|(_, value)| value == "adaptive-red");
        assert!(t.timeouts <= u64::from(adaptive), "{params:?}");
        assert_eq!(t.undone, 0, "{params:?}");
        assert!(t.retransmits <= t.dropped, "{params:?} {t:?}");
    }
}

#[test]
fn early_drops_are_losses() {
    none_is_undone("2026", r#""reno", "cubic", "bic", "bic-paper", "htcp""#);
}

#[test]
fn early_drops_are_losses_to_linux_too() {
    let stacks = r#""reno-linux", "cubic-linux", "bic-linux", "illinois-linux""#;
    none_is_undone("linux", stacks);
}

/// Without SACK: a timeout inside a recovery that repairs one hole per round trip resends what has
/// arrived, and duplicates of that are no loss (RFC 6582 section 3.2 step 2).
const WITHOUT_SACK: &str = r#"
name = "without-sack"
duration = "30s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "5BDP"
[[flow]]
stack = "bic"
recovery = "newreno"
frto = false
[measure]
trace = "off"
"#;

#[test]
fn a_timeout_inside_a_recovery_stays() {
    for timer in [&[][..], &EARLY_TIMER] {
        let t = flow(WITHOUT_SACK, timer).totals;
        assert!(t.timeouts > 0);
        assert_eq!(t.undone, 0);
    }
}

/// Segment 1000 and its retransmission are lost. The SACKs that are under way when the timer goes
/// off were sent for what had arrived before: they say nothing of the timeout.
const LOST_TWICE: &str = r#"
name = "lost-twice"
duration = "6s"
[path]
rate = "100Mbit/s"
rtt = "100ms"
buffer = "5000 packets"
[[flow]]
stack = "reno"
recovery = "sack"
window = "100 segments"
delayed_ack = false
[[flow.drop]]
segment = 1000
[[flow.drop]]
time = "1.4078442s"
[measure]
trace = "off"
"#;

#[test]
fn a_timeout_for_a_lost_retransmission_stays() {
    for timer in [&[][..], &EARLY_TIMER] {
        let t = flow(LOST_TWICE, timer).totals;
        assert_eq!((t.dropped, t.timeouts, t.undone), (2, 1, 0));
    }
}

/// A timer that counts from the last ACK that advanced, with a sample per ACK: it goes off while
/// SACKs of what left before are under way.
const EARLY_TIMER: [(&str, &str); 2] = [
    ("flow.main.head_restarts_timer", "false"),
    ("flow.main.rto_formula", "rfc6298"),
];

/// Five holes, each lost twice: one timeout, not one for each.
const FIVE_LOST_TWICE: &str = r#"
name = "five-lost-twice"
duration = "6s"
[path]
rate = "100Mbit/s"
rtt = "100ms"
buffer = "5000 packets"
[[flow]]
stack = "reno"
recovery = "sack"
window = "100 segments"
delayed_ack = false
[[flow.drop]]
segment = [1000, 1010, 1020, 1030, 1040]
[[flow.drop]]
time = ["1.407923160s", "1.409243160s", "1.410323160s", "1.411643160s", "1.412723160s"]
[measure]
trace = "off"
"#;

#[test]
fn holes_are_not_repaired_one_per_timeout() {
    for timer in [&[][..], &EARLY_TIMER] {
        let t = flow(FIVE_LOST_TWICE, timer).totals;
        assert_eq!((t.dropped, t.timeouts, t.undone), (10, 1, 0));
    }
}

/// The buffer of ten BDP is full when the path goes away for five seconds.
const OUTAGE: &str = r#"
name = "outage"
duration = "60s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "10BDP"
schedule = [{ at = "20s", outage = "5s" }]
[[flow]]
stack = "cubic"
[measure]
trace = "off"
"#;

#[test]
fn after_an_outage_no_hole_is_left_to_the_timer() {
    for timer in [&[][..], &EARLY_TIMER] {
        let t = flow(OUTAGE, timer).totals;
        assert!(t.timeouts <= 4, "{t:?}"); // 1, 2 and 4 s fit into five
        assert!(t.undone <= 2, "{t:?}");
    }
}

/// One segment in five hundred is late by more than a round trip.
const LATE: &str = r#"
name = "late"
duration = "20s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "1BDP"
reorder = { probability = 0.002, extra = "90ms" }
[[flow]]
stack = "reno"
recovery = "newreno"
frto = false
[measure]
trace = "off"
"#;

#[test]
fn without_time_stamps_nothing_is_told_by_them() {
    let text = FOUR_LOSSES.replace("delayed_ack", "timestamps = false\ndelayed_ack");
    let t = flow(&text, &[]).totals;
    assert_eq!((t.undone, t.retransmits), (0, 4));
    // Without SACK a stamp alone can tell that a late segment was no loss.
    for (timestamps, told) in [("true", true), ("false", false)] {
        let t = flow(LATE, &[("flow.main.timestamps", timestamps)]).totals;
        assert_eq!(t.undone > 0, told, "{timestamps}: {t:?}");
    }
}

/// The way back loses every ACK for three seconds; the path delays nothing.
const LOST_ACKS: &str = r#"
name = "lost-acks"
duration = "30s"
[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "1BDP"
[[flow]]
stack = "reno"
size = "100 segments"
start = "4.5s"
[[link]]
name = "home"
delay = "30ms"
loss_of_acks = true
schedule = [{ at = "4.75s", loss = 1.0 }, { at = "8s", loss = 0 }]
[[route]]
flow = "main"
forward = ["bottleneck"]
back = ["home"]
[measure]
trace = "full"
"#;

/// RFC 3522 section 3.2 step 5, RFC 3708 section 3: a DSACK for the whole window is no proof.
#[test]
fn lost_acks_are_no_delay() {
    let flow = flow(LOST_ACKS, &[]);
    assert_eq!((flow.totals.undone, flow.totals.delivered), (0, 100));
    let srtt = flow.series.rows.iter().map(|r| r.srtt).max().unwrap();
    // 60 ms, 100 segments of 0.6 ms ahead in the queue, and a delayed ACK's 40 ms.
    assert!(srtt.as_millis_f64() <= 160.0, "{srtt}");
}

/// The overshoot of slow start is congestion to Veno: its RTT says so. The first segments of a
/// round find an empty queue, and by them alone it would be a random loss, keep 4/5 and lose again.
#[test]
fn veno_halves_after_the_overshoot_of_slow_start() {
    let text = r#"
name = "veno-overshoot"
about = "Slow start into a drop-tail buffer"
duration = "5s"

[path]
rate = "20Mbit/s"
rtt = "60ms"
buffer = "1BDP"

[[flow]]
name = "main"
stack = "veno"
"#;
    for buffer in ["0.5BDP", "1BDP", "2BDP"] {
        let f = flow(text, &[("path.buffer", buffer)]);
        let reductions = |e: &&Episode| matches!(e.kind, EpisodeKind::Congestion(_));
        let first = f.episodes.iter().find(reductions).unwrap();
        let kept = first.after / first.before;
        assert!((kept - 0.5).abs() < 0.01, "{buffer}: keeps {kept}");
    }
}
