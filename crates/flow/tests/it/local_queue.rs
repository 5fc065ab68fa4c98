//! Segments that the host's own queue refuses.

use fullpipe_cc::{CongestionKind, Phase};
use fullpipe_flow::{EpisodeKind, LocalDrop, Preset, Segment, Sender, SenderConfig};
use fullpipe_units::Time;

use crate::host::Out::{self, N, R};
use crate::host::{Halver, Host, ack, kinds, modern, ms, reduction, sack, span_ms, syn_ack};

fn stalled(policy: LocalDrop, prr: bool) -> (Host, Segment) {
    let cfg = modern().with(|c| {
        c.host.local_drop = policy;
        c.recovery.reduction = reduction(prr);
        c.ecn = true;
        c.recovery.tlp = false;
    });
    let mut h = Host::new(cfg, 20.0);
    h.wait(100.0);
    h.deliver(&ack(4, 0.0));
    let refused = h.s.poll_transmit(h.now).unwrap();
    assert_eq!(Out::of(&refused), N(20));
    h.s.refuse(h.now, &refused);
    h.s.audit().unwrap();
    (h, refused)
}

/// Section 4.8: `react` reduces once per window, kind local drop, no undo; the segment is sent
/// after all.
#[test]
fn a_local_drop_reduces_once_per_window() {
    for prr in [false, true] {
        let (mut h, _) = stalled(LocalDrop::React, prr);
        assert!(h.s.is_stalled());
        assert_eq!(h.s.nxt(), 20, "taken back");
        assert_eq!(h.poll(), [], "nothing leaves before the queue drains");
        assert_eq!(h.s.controller().congestions.len(), 1);
        assert_eq!(
            h.s.controller().congestions[0].kind,
            CongestionKind::LocalDrop
        );
        assert_eq!(h.s.phase(), Phase::Cwr);
        h.s.resume();
        // The window slides down (PRR) or dropped at once; new refusals in the same window change
        // nothing.
        let mut una = 4;
        while una < 18 {
            una += 2;
            h.now += span_ms(2);
            h.deliver(&ack(una, 0.0));
            if let Some(s) = h.s.poll_transmit(h.now) {
                h.s.refuse(h.now, &s);
                h.s.resume();
            }
            assert_eq!(h.s.controller().congestions.len(), 1);
        }
        h.ack(&ack(20, 0.0));
        assert_eq!(h.s.phase(), Phase::Open);
        // Nothing was skipped: new data continues at 20, and the first of it carries CWR.
        let new: Vec<&Segment> = h.log[20..].iter().map(|l| &l.1).collect();
        assert_eq!(new[0].seq, 20);
        assert!(new[0].cwr, "CWR survives the refusal");
        assert!(
            new.iter()
                .enumerate()
                .all(|(i, s)| s.seq == 20 + i as u64 && s.cwr == (i == 0))
        );
        assert_eq!(h.s.counts().sent, h.log.len() as u64);
        assert_eq!(h.s.controller().undos, 0);
    }
}

/// A socket refuses what is left of a batch, newest first: all of it is taken back, one reduction.
#[test]
fn a_refused_batch_reduces_once() {
    for policy in [LocalDrop::React, LocalDrop::Ignore] {
        for prr in [false, true] {
            let cfg = modern().with(|c| {
                c.host.local_drop = policy;
                c.recovery.reduction = reduction(prr);
                c.recovery.tlp = false;
            });
            let mut h = Host::new(cfg, 20.0);
            h.wait(100.0);
            h.deliver(&ack(4, 0.0));
            let mut batch = Vec::new();
            while let Some(s) = h.s.poll_transmit(h.now) {
                batch.push(s);
            }
            assert_eq!(batch.len(), 4);
            for segment in batch.iter().rev() {
                h.s.refuse(h.now, segment);
                h.s.audit().unwrap();
            }
            assert_eq!((h.s.nxt(), h.s.counts().sent), (20, 20));
            let reductions = usize::from(policy == LocalDrop::React);
            assert_eq!(h.s.controller().congestions.len(), reductions);
            h.s.resume();
            h.now += span_ms(100);
            h.ack(&ack(20, 0.0));
            assert_eq!(h.s.nxt(), 20 + h.s.flight());
            assert!(h.s.flight() > 0, "it goes on");
            h.now += span_ms(100);
            h.ack(&ack(h.s.nxt(), 0.0));
            assert_eq!(h.s.phase(), Phase::Open);
        }
    }
}

/// `ignore` touches nothing; `exit-slow-start` moves the threshold to the window.
#[test]
fn ignore_waits_and_exit_leaves_slow_start() {
    for policy in [LocalDrop::Ignore, LocalDrop::ExitSlowStart] {
        let (mut h, _) = stalled(policy, true);
        assert_eq!(h.s.cwnd(), 20.0);
        assert_eq!(h.s.phase(), Phase::Open);
        let exited = policy == LocalDrop::ExitSlowStart;
        assert_eq!(
            h.s.controller().ssth,
            if exited { 20.0 } else { f64::INFINITY }
        );
        assert_eq!(
            kinds(&mut h),
            if exited {
                vec![EpisodeKind::StartUpExit]
            } else {
                vec![]
            }
        );
        h.s.resume();
        assert_eq!(h.poll(), [N(20), N(21), N(22), N(23)]);
        assert_eq!(h.s.counts().local_stalls, 1);
    }
}

/// The very first segment is refused: nothing is outstanding, no ACK will come, the sender must
/// still go on.
#[test]
fn a_refusal_with_nothing_outstanding_is_no_deadlock() {
    for policy in [
        LocalDrop::React,
        LocalDrop::Ignore,
        LocalDrop::ExitSlowStart,
    ] {
        for prr in [false, true] {
            let cfg = modern().with(|c| {
                c.host.local_drop = policy;
                c.recovery.reduction = reduction(prr);
                c.handshake = false;
            });
            let mut s = Sender::new(cfg, Halver::new(10.0), 0);
            s.start(Time::ZERO);
            let first = s.poll_transmit(Time::ZERO).unwrap();
            s.refuse(Time::ZERO, &first);
            s.audit().unwrap();
            assert_eq!(s.next_timeout(), Time::MAX, "nothing is outstanding");
            s.resume();
            let again = s.poll_transmit(ms(5.0)).expect("a segment");
            assert_eq!((again.seq, again.retransmission), (0, false));
            assert_eq!(s.counts().sent, 1);
        }
    }
}

/// A refused retransmission is sent when the queue has room, and counts once.
#[test]
fn a_refused_retransmission_is_not_lost() {
    let cfg = modern().with(|c| c.host.local_drop = LocalDrop::React);
    let mut h = Host::new(cfg, 20.0);
    h.ack_at(80.0, &sack(0, &[(1, 2)]));
    h.ack_at(81.0, &sack(0, &[(1, 3)]));
    h.wait(82.0);
    h.deliver(&sack(0, &[(1, 4)]));
    let r = h.s.poll_transmit(h.now).unwrap();
    assert_eq!(Out::of(&r), R(0));
    h.s.refuse(h.now, &r);
    h.s.audit().unwrap();
    assert_eq!(h.s.counts().retransmits, 0);
    h.s.resume();
    h.now = ms(90.0);
    assert_eq!(h.poll(), [R(0)]);
    assert_eq!(h.s.counts().retransmits, 1);
    assert_eq!(
        h.s.controller().congestions.len(),
        1,
        "one reduction for loss and stall"
    );
}

#[test]
fn a_refused_syn_is_sent_again() {
    let cfg = SenderConfig::preset(Preset::Y2026, 1500);
    let mut s = Sender::new(cfg, Halver::new(10.0), 0);
    s.start(Time::ZERO);
    let syn = s.poll_transmit(Time::ZERO).unwrap();
    s.refuse(Time::ZERO, &syn);
    assert_eq!(s.poll_transmit(Time::ZERO), None);
    s.resume();
    assert!(s.poll_transmit(ms(3.0)).unwrap().syn);
    s.handle_ack(ms(83.0), &syn_ack(u64::MAX));
    assert_eq!(s.rtt().srtt(), span_ms(80));
}
