//! Tests of a server.

use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_net::session::board::Board;
use fullpipe_net::session::event::Event;

use super::{Kind, Page};

/// What has happened to a server so far: its events, counted.
#[derive(Debug, Default)]
pub struct Tally {
    opened: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    finished: AtomicU64,
    /// Bytes received in tests that have ended.
    received: AtomicU64,
    sent: AtomicU64,
    /// The most that was shown of both with the tests that ran then: between the end of a test
    /// and its event its bytes are in neither.
    shown: [AtomicU64; 2],
}

impl Tally {
    /// One more event.
    pub fn note(&self, event: &Event) {
        let add = |n: &AtomicU64, more| n.fetch_add(more, Ordering::Relaxed);
        let one = |n: &AtomicU64| add(n, 1);
        match event {
            // A session without flows is no test: clients measure a round trip before one.
            Event::Granted { flows, .. } if *flows > 0 => _ = one(&self.opened),
            Event::Refused { .. } | Event::Denied { .. } => _ = one(&self.refused),
            Event::Turned {
                wrong_key, refused, ..
            } => _ = add(&self.refused, wrong_key + refused),
            Event::Lost { .. } => _ = one(&self.lost),
            Event::Finished { received, sent, .. } => {
                one(&self.finished);
                self.received.fetch_add(*received, Ordering::Relaxed);
                self.sent.fetch_add(*sent, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Tests granted, and tests and clients refused.
    pub fn opened_and_refused(&self) -> [u64; 2] {
        [&self.opened, &self.refused].map(|n| n.load(Ordering::Relaxed))
    }

    /// Bytes that came and left, with those of the tests that run.
    pub fn bytes(&self, board: &Board) -> [u64; 2] {
        let mut both = [&self.received, &self.sent].map(|n| n.load(Ordering::Relaxed));
        for test in board.tests() {
            let traffic = test.traffic();
            both[0] += traffic.received;
            both[1] += traffic.sent;
        }
        [0, 1].map(|i| {
            self.shown[i]
                .fetch_max(both[i], Ordering::Relaxed)
                .max(both[i])
        })
    }
}

/// The server at this moment.
pub fn page(tally: &Tally, board: &Board) -> String {
    let mut page = Page::default();
    let alone = |value: u64| [(String::new(), value as f64)];
    let count = |n: &AtomicU64| alone(n.load(Ordering::Relaxed));
    let running = board.tests().len() as u64;
    page.family(
        Kind::Gauge,
        "tests_running",
        "Tests that run",
        alone(running),
    );
    for (name, help, n) in [
        (
            "tests_opened_total",
            "Tests that clients were granted",
            &tally.opened,
        ),
        (
            "tests_finished_total",
            "Tests that ran and have ended, whatever ended them",
            &tally.finished,
        ),
        (
            "tests_lost_total",
            "Sessions and connections that broke off, of tests that ran too",
            &tally.lost,
        ),
        (
            "tests_refused_total",
            "Refusals of clients, also for another key, and of tests",
            &tally.refused,
        ),
    ] {
        page.family(Kind::Counter, name, help, count(n));
    }
    let [received, sent] = tally.bytes(board);
    for (name, help, n) in [
        (
            "received_bytes_total",
            "Bytes that came, headers of IP and UDP included",
            received,
        ),
        (
            "sent_bytes_total",
            "Bytes that left, headers of IP and UDP included",
            sent,
        ),
    ] {
        page.family(Kind::Counter, name, help, alone(n));
    }
    page.text()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn what_ended_is_counted() {
        let (tally, board) = (Tally::default(), Board::default());
        let peer = SocketAddr::from(([192, 0, 2, 1], 9)).into();
        let granted = |test, flows| Event::Granted {
            test,
            peer,
            label: "send".to_owned(),
            flows,
            seconds: 1.0,
            notes: Vec::new(),
        };
        // The first only measures a round trip.
        tally.note(&Event::Opened { test: 1, peer });
        tally.note(&granted(1, 0));
        tally.note(&Event::Opened { test: 2, peer });
        tally.note(&granted(2, 1));
        tally.note(&Event::Finished {
            test: 1,
            peer,
            why: String::new(),
            seconds: 1.0,
            received: 10,
            sent: 20,
        });
        tally.note(&Event::Denied {
            test: 3,
            peer,
            reason: String::new(),
        });
        tally.note(&Event::Turned {
            garbage: 7,
            wrong_key: 2,
            replayed: 0,
            bad_cookie: 0,
            other_version: 0,
            refused: 5,
            last_wrong_key: Some(peer),
        });
        let page = page(&tally, &board);
        super::super::tests::holds(&page);
        for line in [
            "fullpipe_tests_running 0",
            "fullpipe_tests_opened_total 1",
            "fullpipe_tests_finished_total 1",
            "fullpipe_tests_refused_total 8",
            "fullpipe_received_bytes_total 10",
            "fullpipe_sent_bytes_total 20",
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\n{page}");
        }
    }
}
