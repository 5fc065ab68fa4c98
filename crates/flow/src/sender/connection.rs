//! The opening of a connection: SYN, its timer, and what the handshake tells the sender.

use fullpipe_cc::{Controller, IdleEvent, InitialSending, RestartEvent};
use fullpipe_units::{Span, Time};

use super::Sender;
use crate::segment::Segment;

/// How far the connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Idle,
    /// SYN to be sent.
    Opening {
        tries: u32,
    },
    /// SYN sent.
    SynSent {
        at: Time,
        tries: u32,
    },
    Open,
}

impl<C: Controller> Sender<C> {
    /// Opens the connection: with a SYN, or at once if the configuration has no handshake.
    pub fn start(&mut self, now: Time) {
        self.connection = if self.cfg.handshake {
            Connection::Opening { tries: 0 }
        } else {
            Connection::Open
        };
        self.last_sent = now;
        self.refresh_ready();
        if self.ready {
            self.open_controller(now);
        }
    }

    pub(super) fn poll_handshake(&mut self, now: Time) -> Option<Segment> {
        let Connection::Opening { tries } = self.connection else {
            return None;
        };
        if self.stalled {
            return None;
        }
        self.connection = Connection::SynSent { at: now, tries };
        self.rto_at = self.timer(now, self.syn_timeout(tries));
        Some(Segment {
            seq: 0,
            syn: true,
            retransmission: tries > 0,
            stamp: now,
            ect: false,
            ce: false,
            cwr: false,
            push: false,
        })
    }

    pub(super) fn syn_timeout(&self, tries: u32) -> Span {
        (self.cfg.rto.initial * (1 << tries.min(16))).min(self.cfg.rto.max)
    }

    pub(super) fn established(&mut self, now: Time, window_end: u64) {
        let Connection::SynSent { at, tries } = self.connection else {
            return; // a late copy: its window is out of date
        };
        // Into a window that is closed from the start the first segment is the probe: its timer repeats it.
        self.peer_limit = window_end.max(1);
        self.send_limit = self.app_limit.min(self.peer_limit);
        self.connection = Connection::Open;
        self.refresh_ready();
        self.rto_at = Time::MAX;
        if tries == 0 {
            self.rtt.take(now - at, now - at, 0, 0);
            if let InitialSending::Spread { .. } = self.cfg.pacing.initial {
                let iw = self.cc.window() as u64;
                let spacing = self.cfg.pacing.initial.spacing(now - at, iw);
                self.pacer.spread(now, iw, spacing.gap);
            }
        } else {
            // RFC 6298 section 5.7 and RFC 5681 section 3.1: a lost SYN means RTO 3 s and IW 1.
            self.rtt.start_from(Span::from_secs(3));
            self.cc.on_idle(&IdleEvent {
                now,
                idle: Span::ZERO,
                window: 1.0,
                ssthresh: self.cc.ssthresh(),
            });
        }
        self.open_controller(now);
    }

    fn open_controller(&mut self, now: Time) {
        let ev = self.restart_event(now);
        self.cc.on_established(&ev);
        self.refresh_budget();
    }

    pub(super) fn restart_event(&self, now: Time) -> RestartEvent {
        RestartEvent {
            now,
            idle: now.saturating_since(self.last_sent),
            srtt: self.rtt.srtt(),
            snd_una: self.board.una(),
            snd_nxt: self.board.nxt(),
        }
    }

    pub(super) fn refresh_ready(&mut self) {
        self.ready = self.connection == Connection::Open && !self.stalled;
    }
}
