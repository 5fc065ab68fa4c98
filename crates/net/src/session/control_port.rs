//! The port of a session's endpoint: demultiplexes control messages from data, interleaves outgoing
//! ones, counts bytes and enforces a rate limit. Data passes through unchanged.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_units::{Rate, Time};
use rustix::io::Errno;

use super::path::PathStep;
use super::shaper::Shaper;
use crate::endpoint::{Mark, Port, forward};
use crate::headers;
use crate::io::{Clock, Stop};
use crate::tcp::beside::Beside;
use crate::wire::{Kind, VERSION};

/// First byte of a control message.
const CONTROL: u8 = VERSION << 4 | Kind::Control as u8;
/// Control messages that are handled per batch; further ones are dropped.
const MAX_CONTROL_PER_BATCH: usize = 32;

/// The control channel of one side of a session, sans I/O, polled while the endpoint runs.
pub trait ControlChannel {
    /// A control message has arrived.
    fn on_datagram(&mut self, now: Time, datagram: &[u8]);

    /// The next message to send now, if there is one.
    fn poll_transmit(&mut self, now: Time) -> Option<Vec<u8>>;

    /// Latest time at which [`poll_transmit`](Self::poll_transmit) has to be called again.
    fn next_timeout(&self) -> Time;

    /// What is to be done about the path, if there is anything.
    fn poll_path(&mut self, now: Time) -> Option<PathStep>;

    /// True when the run has to end.
    fn is_over(&mut self, now: Time, traffic: &Traffic) -> bool;
}

/// Bytes so far, including IP and UDP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes received.
    pub received: u64,
    /// Those of flows among them: no control messages.
    pub data: u64,
    /// Bytes sent or queued for sending.
    pub sent: u64,
}

/// Datagrams of the run that arrived before its endpoint started: source, ECN mark, bytes.
pub type Early = Vec<(SocketAddr, Option<Mark>, Vec<u8>)>;

/// A port with a control channel beside the data.
pub struct ControlPort<'t, P, T> {
    port: P,
    control: &'t mut T,
    peer: SocketAddr,
    /// Bytes of IP and UDP headers per datagram.
    headers: u64,
    /// Clock of the session, which is older than the run.
    clock: Clock,
    stop: &'t Stop,
    inbound: RefCell<Vec<Vec<u8>>>,
    received: Cell<u64>,
    data: Cell<u64>,
    sent: u64,
    /// What connections beside it carry, if there are any.
    beside: Option<Arc<Beside>>,
    shaper: Option<Shaper>,
    early: Early,
    /// The early datagrams have not been delivered yet.
    is_first: bool,
}

impl<'t, P: Port, T: ControlChannel> ControlPort<'t, P, T> {
    /// Wraps `port`; `stop` is set when the run has to end.
    pub fn new(
        port: P,
        control: &'t mut T,
        peer: SocketAddr,
        clock: Clock,
        stop: &'t Stop,
        max_rate: Option<Rate>,
    ) -> Self {
        let shaper = max_rate.map(|rate| Shaper::new(rate, port.now()));
        Self {
            port,
            control,
            peer,
            headers: headers::bytes(peer) as u64,
            clock,
            stop,
            inbound: RefCell::default(),
            received: Cell::new(0),
            data: Cell::new(0),
            sent: 0,
            beside: None,
            shaper,
            early: Early::new(),
            is_first: false,
        }
    }

    /// Delivers `early` datagrams before any other.
    pub fn with_early(self, early: Early) -> Self {
        Self {
            is_first: !early.is_empty(),
            early,
            ..self
        }
    }

    /// Counts what connections carry, too.
    pub fn with_beside(self, beside: Option<Arc<Beside>>) -> Self {
        Self { beside, ..self }
    }

    fn traffic(&self) -> Traffic {
        let (received, sent) = self.beside.as_ref().map_or((0, 0), |beside| {
            let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
            (now(&beside.received), now(&beside.sent))
        });
        let (datagrams, bytes) = self.port.passed_over();
        let passed_over = bytes + datagrams * self.headers;
        Traffic {
            received: self.received.get() + received + passed_over,
            sent: self.sent + sent,
            data: self.data.get() + received,
        }
    }

    /// A probe may be longer than the interface allows, and is as good as lost then.
    fn flush_control(&mut self) -> io::Result<()> {
        match self.port.flush() {
            Err(e) if Errno::from_io_error(&e) == Some(Errno::MSGSIZE) => Ok(()),
            flushed => flushed.map(drop),
        }
    }

    /// Delivers received control messages and sends due ones, between two batches of data.
    fn exchange_control(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        for datagram in self.inbound.get_mut().drain(..) {
            self.control.on_datagram(now, &datagram);
        }
        let mut sent_any = false;
        while let Some(step) = self.control.poll_path(now) {
            sent_any |= take_step(&mut self.port, self.peer, step);
        }
        while let Some(datagram) = self.control.poll_transmit(now) {
            self.port.push(self.peer, None, datagram.len(), |out| {
                out[..datagram.len()].copy_from_slice(&datagram);
            });
            sent_any = true;
            if self.port.is_full() {
                // Messages that are refused are sent_any again.
                self.flush_control()?;
            }
        }
        if sent_any {
            self.flush_control()?;
        }
        let traffic = self.traffic();
        if self.control.is_over(now, &traffic) {
            self.stop.set();
        }
        Ok(())
    }
}

/// Does what the session says about its path; true if something was pushed. A way that cannot be
/// gone now is looked for again.
pub(super) fn take_step(port: &mut impl Port, peer: SocketAddr, step: PathStep) -> bool {
    match step {
        PathStep::Challenge(to, datagram) => {
            port.push(to, None, datagram.len(), |out| {
                out[..datagram.len()].copy_from_slice(&datagram);
            });
            return true;
        }
        PathStep::Move(to) => _ = port.reroute(peer, Some(to)),
        PathStep::Look => _ = port.reroute(peer, None),
    }
    false
}

impl<P: Port, T: ControlChannel> Port for ControlPort<'_, P, T> {
    #[inline]
    fn push(
        &mut self,
        to: SocketAddr,
        mark: Option<Mark>,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let bytes = len as u64 + self.headers;
        self.sent += bytes;
        if let Some(shaper) = &mut self.shaper {
            shaper.spend(bytes);
        }
        self.port.push(to, mark, len, fill);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.port.is_full() || self.shaper.as_ref().is_some_and(Shaper::is_empty)
    }

    fn held_until(&mut self) -> Option<Time> {
        let now = self.port.now();
        let own = self.shaper.as_mut().and_then(|shaper| shaper.refill(now));
        own.max(self.port.held_until())
    }

    fn receive(&mut self) -> io::Result<usize> {
        // The batch that was pushed in the last turn has left.
        self.exchange_control()?;
        let arrived = self.port.receive()?;
        if self.early.is_empty() {
            return Ok(arrived);
        }
        if !std::mem::take(&mut self.is_first) {
            self.early.clear();
        }
        Ok(arrived + self.early.len())
    }

    #[inline]
    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        let (mut data, mut control) = (0, 0);
        for (from, mark, datagram) in &self.early {
            data += datagram.len() as u64 + self.headers;
            take(*from, *mark, datagram);
        }
        self.port.each(|from, mark, datagram| {
            let bytes = datagram.len() as u64 + self.headers;
            if datagram.first() == Some(&CONTROL) {
                control += bytes;
                let mut inbound = self.inbound.borrow_mut();
                if from == self.peer && inbound.len() < MAX_CONTROL_PER_BATCH {
                    inbound.push(datagram.to_vec());
                }
            } else {
                data += bytes;
                take(from, mark, datagram);
            }
        });
        self.received.set(self.received.get() + data + control);
        self.data.set(self.data.get() + data);
    }

    fn wait(&mut self, until: Time, writable: bool) -> io::Result<bool> {
        let now = self.port.now();
        let due = self.control.next_timeout();
        let session = self.clock.now();
        let until = match due {
            Time::MAX => until,
            due => until.min(now + due.saturating_since(session)),
        };
        match self.shaper.as_mut().and_then(|s| s.refill(now)) {
            // The socket has room; we do not use it.
            Some(_) => {
                self.port.wait(until, false)?;
                Ok(self.held_until().is_none())
            }
            None => self.port.wait(until, writable),
        }
    }

    forward!(|this| this.port; overhead, flush, received_at, has_stamps);
    forward!(|this| this.port; pause, now, drops, passed_over, reroute);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Flush, PathLimit, Pieces};
    use crate::session::seal::{End, Seal};
    use crate::session::{Directions, Sealed, Secrets};
    use crate::wire::SessionId;

    /// Notes what it is asked for.
    #[derive(Default)]
    struct Noting(RefCell<Vec<&'static str>>);

    impl Noting {
        fn note(&self, what: &'static str) {
            let mut all = self.0.borrow_mut();
            if !all.contains(&what) {
                all.push(what);
            }
        }
    }

    impl Port for Noting {
        fn push(
            &mut self,
            _: SocketAddr,
            _: Option<Mark>,
            len: usize,
            fill: impl FnOnce(&mut [u8]),
        ) {
            self.note("push");
            fill(&mut vec![0; len]);
        }
        fn is_full(&self) -> bool {
            self.note("is_full");
            false
        }
        fn overhead(&self) -> usize {
            self.note("overhead");
            0
        }
        fn held_until(&mut self) -> Option<Time> {
            self.note("held_until");
            None
        }
        fn flush(&mut self) -> io::Result<Flush> {
            self.note("flush");
            Ok(Flush::default())
        }
        fn receive(&mut self) -> io::Result<usize> {
            self.note("receive");
            Ok(0)
        }
        fn each(&self, _: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
            self.note("each");
        }
        fn received_at(&self, _: impl FnMut(Time)) {
            self.note("received_at");
        }
        fn has_stamps(&self) -> bool {
            self.note("has_stamps");
            true
        }
        fn wait(&mut self, _: Time, _: bool) -> io::Result<bool> {
            self.note("wait");
            Ok(true)
        }
        fn pause(&mut self, _: Time) -> io::Result<()> {
            self.note("pause");
            Ok(())
        }
        fn now(&self) -> Time {
            self.note("now");
            Time::ZERO
        }
        fn drops(&self) -> u64 {
            self.note("drops");
            0
        }
        fn passed_over(&self) -> (u64, u64) {
            self.note("passed_over");
            (3, 4000)
        }
        fn reroute(&mut self, _: SocketAddr, _: Option<SocketAddr>) -> io::Result<()> {
            self.note("reroute");
            Ok(())
        }
    }

    struct Silent;

    impl ControlChannel for Silent {
        fn on_datagram(&mut self, _: Time, _: &[u8]) {}
        fn poll_transmit(&mut self, _: Time) -> Option<Vec<u8>> {
            None
        }
        fn next_timeout(&self) -> Time {
            Time::MAX
        }
        fn poll_path(&mut self, _: Time) -> Option<PathStep> {
            None
        }
        fn is_over(&mut self, _: Time, _: &Traffic) -> bool {
            false
        }
    }

    fn peer() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 9))
    }

    fn everything(mut port: impl Port) {
        port.push(peer(), None, 100, |_| {});
        port.flush().unwrap();
        port.receive().unwrap();
        port.each(|_, _, _| {});
        port.received_at(|_| {});
        assert!(port.has_stamps());
        port.wait(Time::ZERO, true).unwrap();
        port.pause(Time::ZERO).unwrap();
        port.held_until();
        port.reroute(peer(), None).unwrap();
        let _ = (port.is_full(), port.overhead(), port.now(), port.drops());
        port.passed_over();
    }

    /// A client that sends longer ones than it has asked for would meet no limit.
    #[test]
    fn what_is_passed_over_counts_against_the_limits() {
        let (mut control, stop) = (Silent, Stop::new().unwrap());
        let (plain, clock) = (Noting::default(), Clock::new());
        let port = ControlPort::new(plain, &mut control, peer(), clock, &stop, None);
        assert_eq!(port.traffic().received, 4000 + 3 * 28);
    }

    #[test]
    fn a_port_around_another_passes_everything_on() {
        let key = Directions {
            up: [1; 32],
            down: [2; 32],
        };
        let secrets = Secrets {
            session: SessionId(7),
            keys: key,
        };
        let (mut control, stop) = (Silent, Stop::new().unwrap());
        let mut seal = Seal::new(&secrets, End::Client);
        let mut plain = Noting::default();
        everything(&mut plain);
        let mut all = plain.0.into_inner();
        all.sort_unstable();
        assert_eq!(all.len(), 15);
        let mut controlled = Noting::default();
        let clock = Clock::new();
        everything(ControlPort::new(
            &mut controlled,
            &mut control,
            peer(),
            clock,
            &stop,
            None,
        ));
        let mut sealed = Noting::default();
        everything(Sealed::new(&mut sealed, &mut seal, 1500));
        let mut pieces = Noting::default();
        let path = Arc::new(PathLimit::default());
        everything(Pieces::new(&mut pieces, SessionId(7), path, 1500, 0));
        for noted in [controlled, sealed, pieces] {
            let mut noted = noted.0.into_inner();
            noted.sort_unstable();
            assert_eq!(noted, all);
        }
    }
}
