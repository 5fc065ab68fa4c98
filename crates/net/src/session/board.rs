//! The tests of a server that run, for whoever watches it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_realtime::live::{EVERY, Live};
use fullpipe_units::Time;

use super::control_port::Traffic;
use crate::shown::Address;

/// Where sessions write that they run. Clones are the same board.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Vec<Arc<Posted>>>>);

/// A test that runs.
#[derive(Debug)]
pub struct Posted {
    /// Number of the test, as in the log.
    pub test: u64,
    /// The client, when the test began.
    pub peer: Address,
    /// Label that the client chose for the test.
    pub label: String,
    /// How its flows are getting on, as this host sees them.
    pub live: Live,
    received: AtomicU64,
    data: AtomicU64,
    sent: AtomicU64,
}

impl Posted {
    /// Bytes that came and left so far, headers of IP and UDP included.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            received: self.received.load(Ordering::Relaxed),
            data: self.data.load(Ordering::Relaxed),
            sent: self.sent.load(Ordering::Relaxed),
        }
    }
}

/// A test on the board, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Post {
    board: Board,
    posted: Arc<Posted>,
}

impl Board {
    /// The tests that run, in the order in which they began.
    pub fn tests(&self) -> Vec<Arc<Posted>> {
        self.posted().clone()
    }

    pub(super) fn post(&self, test: u64, peer: SocketAddr, label: &str) -> Post {
        let posted = Arc::new(Posted {
            test,
            peer: peer.into(),
            label: label.to_owned(),
            live: Live::default(),
            received: AtomicU64::new(0),
            data: AtomicU64::new(0),
            sent: AtomicU64::new(0),
        });
        self.posted().push(Arc::clone(&posted));
        Post {
            board: self.clone(),
            posted,
        }
    }

    fn posted(&self) -> MutexGuard<'_, Vec<Arc<Posted>>> {
        // A panic while it was held leaves a list that is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Post {
    /// State of the test on the board.
    pub fn posted(&self) -> &Arc<Posted> {
        &self.posted
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let gone = &self.posted;
        self.board.posted().retain(|p| !Arc::ptr_eq(p, gone));
    }
}

/// Writes the traffic of a test on the board, ten times a second.
#[derive(Debug)]
pub(super) struct Shown {
    posted: Arc<Posted>,
    next: Time,
}

impl Shown {
    pub fn new(posted: &Arc<Posted>) -> Self {
        Self {
            posted: Arc::clone(posted),
            next: Time::ZERO,
        }
    }

    /// How the flows of the test are getting on.
    pub fn live(&self) -> &Live {
        &self.posted.live
    }

    /// Called at every turn of a run.
    #[inline]
    pub fn take(&mut self, now: Time, traffic: &Traffic) {
        if now >= self.next {
            self.next = now + EVERY;
            let Traffic {
                received,
                data,
                sent,
            } = *traffic;
            self.posted.received.store(received, Ordering::Relaxed);
            self.posted.data.store(data, Ordering::Relaxed);
            self.posted.sent.store(sent, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_on_the_board_as_long_as_it_runs() {
        let board = Board::default();
        let peer = SocketAddr::from(([192, 0, 2, 1], 9));
        let first = board.post(1, peer, "a");
        let second = board.post(2, peer, "b");
        let numbers = || board.tests().iter().map(|t| t.test).collect::<Vec<_>>();
        assert_eq!(numbers(), [1, 2]);
        let traffic = |received| Traffic {
            received,
            data: 0,
            sent: 0,
        };
        let mut shown = Shown::new(second.posted());
        shown.take(Time::ZERO, &traffic(5));
        shown.take(Time::from_nanos(1), &traffic(6));
        assert_eq!(board.tests()[1].traffic(), traffic(5));
        shown.take(Time::ZERO + EVERY, &traffic(7));
        assert_eq!(board.tests()[1].traffic(), traffic(7));
        drop(first);
        assert_eq!(numbers(), [2]);
    }
}
