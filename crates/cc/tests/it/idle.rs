//! A pause is no congestion-free time: an endpoint without window validation, which calls
//! `on_restart` alone, resumes as if the pause had not been (RFC 9438 section 5.8 for CUBIC).

use fullpipe_cc::registry::Kind;
use fullpipe_cc::{Controller, IdleEvent, RestartEvent};
use fullpipe_units::{Span, Time};

use crate::model::names;
use crate::rounds::{Rounds, changed};

const RTT: Span = Span::from_millis(100);
const MINUTE: Span = Span::from_secs(60);

/// A flow two seconds after a loss at 100 segments.
fn after_loss(law: &str) -> Rounds {
    let mut flow = Rounds::avoiding(law, RTT, 100.0);
    flow.round();
    flow.lose();
    for _ in 0..20 {
        flow.round();
    }
    flow
}

fn restart(now: Time) -> RestartEvent {
    changed(RestartEvent::new(now), |ev| {
        (ev.idle, ev.srtt, ev.app_limited) = (MINUTE, RTT, true);
    })
}

/// Growth over the three rounds from here.
fn three_rounds(mut flow: Rounds) -> f64 {
    let w = flow.w();
    for _ in 0..3 {
        flow.round();
    }
    flow.w() - w
}

/// A law that measures rounds may take one of them to begin again.
#[test]
fn no_law_grows_for_a_pause() {
    for law in names(Kind::Law) {
        let mut paused = after_loss(law);
        paused.now += MINUTE;
        paused.stack.on_restart(&restart(paused.now));
        let (was, is) = (three_rounds(after_loss(law)), three_rounds(paused));
        assert!(
            is <= was.max(0.0) + 0.1,
            "{law}: {was} without a pause, {is}"
        );
    }
}

/// A window of one segment leaves nothing in flight either: time runs on while it waits.
#[test]
fn who_waits_for_an_ack_does_not_pause() {
    for law in ["cubic", "htcp"] {
        let [mut waited, mut told] = [after_loss(law), after_loss(law)];
        waited.now += RTT * 10;
        told.now += RTT * 10;
        let busy = changed(restart(told.now), |ev| {
            (ev.idle, ev.app_limited) = (RTT * 10, false);
        });
        told.stack.on_restart(&busy);
        let (waited, told) = (three_rounds(waited), three_rounds(told));
        assert!((waited - told).abs() < 1e-9, "{law}: {waited} {told}");
    }
}

/// With window validation both methods are called, in this order, and the pause counts once.
#[test]
fn validation_and_restart_leave_out_one_pause() {
    for law in ["cubic", "htcp"] {
        let mut one = after_loss(law);
        one.now += MINUTE;
        one.stack.on_restart(&restart(one.now));
        let mut both = after_loss(law);
        both.now += MINUTE;
        let (w, ssthresh) = (both.w(), both.stack.ssthresh());
        both.stack
            .on_idle(&IdleEvent::new(both.now, MINUTE, w, ssthresh));
        both.stack.on_restart(&restart(both.now));
        let (one, both) = (three_rounds(one), three_rounds(both));
        assert!(
            one > 1.0 && (one - both).abs() < 1e-9,
            "{law}: {one} {both}"
        );
    }
}
