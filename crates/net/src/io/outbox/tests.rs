//! An outbox before a host that is made up.

use std::cell::{Cell, RefCell};

use super::*;

/// A host that takes so many datagrams and then answers each call with the next of its errors.
struct Fake {
    segments: Cell<usize>,
    longest: Cell<usize>,
    room: Cell<usize>,
    errors: RefCell<Vec<Errno>>,
    answers: Cell<u64>,
    /// Lengths, by call.
    calls: RefCell<Vec<Vec<usize>>>,
}

impl Fake {
    fn new(segments: usize, room: usize, errors: &[Errno]) -> Self {
        Self {
            segments: Cell::new(segments),
            longest: Cell::new(usize::MAX),
            room: Cell::new(room),
            errors: RefCell::new(errors.iter().rev().copied().collect()),
            answers: Cell::new(0),
            calls: RefCell::default(),
        }
    }

    fn take(&self, lengths: Vec<usize>, whole: bool) -> io::Result<usize> {
        let n = lengths.len().min(self.room.get());
        if n == 0 || whole && n < lengths.len() {
            return Err(self
                .errors
                .borrow_mut()
                .pop()
                .expect("no call after the last error")
                .into());
        }
        self.room.set(self.room.get() - n);
        self.calls.borrow_mut().push(lengths[..n].to_vec());
        Ok(n)
    }
}

impl Port for Fake {
    fn offload(&self) -> Offload {
        Offload {
            segments: self.segments.get(),
            longest: self.longest.get(),
        }
    }

    fn send_segments(&self, first: &Item, contents: &[u8]) -> io::Result<()> {
        self.take(contents.chunks(first.len).map(<[u8]>::len).collect(), true)
            .map(drop)
    }

    fn send_singles(&self, _: &mut Addresses, items: &[Item], _: &[u8]) -> io::Result<usize> {
        self.take(items.iter().map(|item| item.len).collect(), false)
    }

    fn give_up_segments(&self) {
        self.segments.set(1);
        self.room.set(usize::MAX);
    }

    fn is_homeless(&self, _: &io::Error) -> bool {
        false
    }

    fn drain_errors(&self) -> u64 {
        self.room.set(if self.answers.get() > 0 {
            usize::MAX
        } else {
            self.room.get()
        });
        self.answers.take()
    }
}

fn filled(lengths: &[usize]) -> Outbox {
    let mut outbox = Outbox::new(300, 1500);
    for (i, &len) in lengths.iter().enumerate() {
        let to = SocketAddr::from(([127, 0, 0, 1], 9));
        assert!(outbox.push(to, None, len, |place| place.fill(i as u8)));
    }
    outbox
}

fn taken_back(outbox: &mut Outbox) -> Vec<u8> {
    let mut back = Vec::new();
    outbox.take_refused(|_, bytes| back.push(bytes[0]));
    back
}

#[test]
fn runs_of_equal_datagrams_leave_together() {
    let port = Fake::new(64, usize::MAX, &[]);
    let mut outbox = filled(&[100, 100, 100, 40, 40, 1400, 60, 70, 80, 100, 100]);
    assert_eq!(
        outbox.flush_to(&port).unwrap(),
        Flushed {
            sent: 11,
            refused: 0
        }
    );
    let calls: [&[usize]; 5] = [
        &[100, 100, 100, 40],
        &[40],
        &[1400, 60],
        &[70, 80],
        &[100, 100],
    ];
    // A single before a run leaves alone; singles in a row leave by one call.
    assert_eq!(*port.calls.borrow(), calls);
}

#[test]
fn short_ones_alone_may_leave_together() {
    let port = Fake::new(64, usize::MAX, &[]);
    port.longest.set(100);
    filled(&[100, 100, 101, 101, 101, 44, 44])
        .flush_to(&port)
        .unwrap();
    let calls: [&[usize]; 3] = [&[100, 100], &[101, 101, 101], &[44, 44]];
    assert_eq!(*port.calls.borrow(), calls);
}

#[test]
fn a_run_is_at_most_64_datagrams_and_65000_bytes() {
    let port = Fake::new(64, usize::MAX, &[]);
    filled(&[50; 130]).flush_to(&port).unwrap();
    filled(&[1472; 50]).flush_to(&port).unwrap();
    let calls: Vec<usize> = port.calls.borrow().iter().map(Vec::len).collect();
    assert_eq!(calls, [64, 64, 2, 44, 6]);
}

#[test]
fn a_full_host_keeps_the_rest_for_the_sender_newest_first() {
    for errno in [Errno::AGAIN, Errno::NOBUFS] {
        for (segments, sent) in [(1, 70), (64, 64)] {
            let port = Fake::new(segments, 70, &[errno]);
            let mut outbox = filled(&[100; 100]);
            let flushed = outbox.flush_to(&port).unwrap();
            assert_eq!(
                flushed,
                Flushed {
                    sent,
                    refused: 100 - sent
                }
            );
            let newest_first: Vec<u8> = (sent as u8..100).rev().collect();
            assert_eq!(taken_back(&mut outbox), newest_first);
            assert!(outbox.is_empty() && outbox.has_room(1500));
        }
    }
}

#[test]
fn what_was_refused_can_be_tried_again() {
    let port = Fake::new(1, 3, &[Errno::AGAIN]);
    let mut outbox = filled(&[100; 5]);
    assert_eq!(
        outbox.flush_to(&port).unwrap(),
        Flushed {
            sent: 3,
            refused: 2
        }
    );
    assert_eq!(
        outbox.flush_to(&port).unwrap(),
        Flushed {
            sent: 0,
            refused: 2
        }
    );
    port.room.set(9);
    assert_eq!(
        outbox.flush_to(&port).unwrap(),
        Flushed {
            sent: 2,
            refused: 0
        }
    );
}

#[test]
fn what_finds_no_way_is_lost_and_no_error() {
    for errno in [Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::NETDOWN] {
        let port = Fake::new(1, 0, &[errno; 20]);
        let mut outbox = filled(&[100; 5]);
        let lost = Flushed {
            sent: 5,
            refused: 0,
        };
        assert_eq!(outbox.flush_to(&port).unwrap(), lost, "{errno:?}");
        assert!(outbox.is_empty() && outbox.has_room(1500));
    }
}

#[test]
fn a_call_cut_short_by_an_answer_of_the_network_is_no_stall() {
    let port = Fake::new(1, 3, &[]);
    port.answers.set(1);
    assert_eq!(
        filled(&[100; 5]).flush_to(&port).unwrap(),
        Flushed {
            sent: 5,
            refused: 0
        }
    );
    let port = Fake::new(1, 0, &[Errno::CONNREFUSED]);
    port.answers.set(1);
    assert_eq!(
        filled(&[100; 5]).flush_to(&port).unwrap(),
        Flushed {
            sent: 5,
            refused: 0
        }
    );
}

#[test]
fn without_offload_datagrams_leave_one_by_one() {
    for errno in [Errno::IO, Errno::INVAL] {
        let port = Fake::new(64, 0, &[errno]);
        assert_eq!(
            filled(&[100; 5]).flush_to(&port).unwrap(),
            Flushed {
                sent: 5,
                refused: 0
            }
        );
        assert_eq!(port.segments.get(), 1);
    }
}

#[test]
fn a_run_too_long_for_the_interface_is_tried_datagram_by_datagram() {
    let port = Fake::new(64, 0, &[Errno::MSGSIZE; 3]);
    let mut outbox = filled(&[1500, 1500, 100, 100, 100]);
    assert!(outbox.flush_to(&port).is_err());
    outbox.skip();
    port.room.set(usize::MAX);
    outbox.flush_to(&port).unwrap();
    let calls: [&[usize]; 2] = [&[1500, 100], &[100, 100]];
    assert_eq!(*port.calls.borrow(), calls);
    assert_eq!(port.segments.get(), 64);
}

#[test]
fn an_error_leaves_its_datagram_at_the_front() {
    let port = Fake::new(1, 0, &[Errno::PERM, Errno::CONNREFUSED]);
    let mut outbox = filled(&[10, 20]);
    assert_eq!(
        outbox.flush_to(&port).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    outbox.skip();
    assert_eq!(taken_back(&mut outbox), [1]);
    outbox.skip();
    assert!(outbox.is_empty());
}

/// "Fragmentation needed" and the like, forged or not, tell of an earlier datagram: the present one
/// leaves. What the system itself refuses it refuses again.
#[test]
fn icmp_ends_nothing() {
    for error in [
        Errno::MSGSIZE,
        Errno::ACCESS,
        Errno::PROTO,
        Errno::NOPROTOOPT,
    ] {
        for answers in [0, 1] {
            let port = Once::new(error, answers);
            let sent = filled(&[100, 200]).flush_to(&port).unwrap();
            assert_eq!((sent.sent, sent.refused), (2, 0), "{error:?}");
        }
        let always = Fake::new(1, 0, &[error, error]);
        let raised = filled(&[100]).flush_to(&always).unwrap_err();
        assert_eq!(Errno::from_io_error(&raised), Some(error));
    }
}

/// Raises an error once, and then takes everything.
struct Once {
    error: Cell<Option<Errno>>,
    answers: Cell<u64>,
}

impl Once {
    fn new(error: Errno, answers: u64) -> Self {
        Self {
            error: Cell::new(Some(error)),
            answers: Cell::new(answers),
        }
    }
}

impl Port for Once {
    fn offload(&self) -> Offload {
        Offload::NONE
    }

    fn send_segments(&self, _: &Item, _: &[u8]) -> io::Result<()> {
        unreachable!("no offload")
    }

    fn send_singles(&self, _: &mut Addresses, items: &[Item], _: &[u8]) -> io::Result<usize> {
        match self.error.take() {
            Some(error) => Err(error.into()),
            None => Ok(items.len()),
        }
    }

    fn give_up_segments(&self) {}

    fn is_homeless(&self, _: &io::Error) -> bool {
        false
    }

    fn drain_errors(&self) -> u64 {
        self.answers.take()
    }
}
