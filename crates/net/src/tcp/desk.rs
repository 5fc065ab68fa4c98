//! The server's TCP port: it listens only while a granted test expects connections, takes a ticket
//! from each, and hands the connection to its session. Whoever has no ticket is cut off.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::ticket::{self, BYTES, Ticket};
use crate::session::Secrets;

/// Connections that have not shown their ticket; the oldest goes when there are more.
const MOST_PENDING: usize = 64;
/// How long one may take to show it.
const TICKET_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait, after which the desk looks whether anybody still expects somebody.
const GLANCE: u16 = 50;

/// A desk, open or closed; clones are the same desk.
#[derive(Clone, Debug)]
pub struct Desk {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_open: bool,
    waiting: HashMap<u64, Waiting>,
}

/// A session that expects connections.
#[derive(Debug)]
struct Waiting {
    /// By the number of the flow; gone once it was shown.
    tickets: HashMap<u16, Ticket>,
    to: Sender<(usize, TcpStream)>,
}

/// Connections of one session, as they come. Dropped, no more are let in.
#[derive(Debug)]
pub struct Expected {
    session: u64,
    come: Receiver<(usize, TcpStream)>,
    state: Arc<Mutex<State>>,
}

/// One that has come and not shown its ticket.
struct Pending {
    stream: TcpStream,
    shown: Ticket,
    bytes: usize,
    since: Instant,
}

impl Desk {
    /// At this address, closed yet.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            state: Arc::default(),
        }
    }

    /// Number of the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Lets in one connection for each of so many flows of a session.
    ///
    /// # Errors
    /// The port is taken, or there is no thread.
    pub fn expect(&self, secrets: &Secrets, flows: usize) -> io::Result<Expected> {
        let session = ticket::session(secrets);
        let numbers = (0..flows).filter_map(|flow| u16::try_from(flow).ok());
        let tickets = numbers.map(|flow| (flow, ticket::ticket(secrets, flow)));
        let (to, come) = mpsc::channel();
        let waiting = Waiting {
            tickets: tickets.collect(),
            to,
        };
        let mut state = lock(&self.state);
        if !state.is_open {
            let listener = TcpListener::bind(self.address)?;
            listener.set_nonblocking(true)?;
            let shared = Arc::clone(&self.state);
            let thread = thread::Builder::new().name("tcp desk".into());
            thread.spawn(move || attend(&listener, &shared))?;
            state.is_open = true;
        }
        state.waiting.insert(session, waiting);
        Ok(Expected {
            session,
            come,
            state: Arc::clone(&self.state),
        })
    }
}

impl Expected {
    /// The next that has come: its flow, and the connection, which does not block.
    pub fn take(&self) -> Option<(usize, TcpStream)> {
        self.come.try_recv().ok()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        lock(&self.state).waiting.remove(&self.session);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until nobody expects anybody.
fn attend(listener: &TcpListener, state: &Mutex<State>) {
    let mut pending: Vec<Pending> = Vec::new();
    loop {
        {
            let mut state = lock(state);
            if state.waiting.is_empty() {
                // Under the lock: who comes next opens it anew.
                state.is_open = false;
                return;
            }
        }
        wait(listener, &pending);
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if pending.len() >= MOST_PENDING {
                pending.remove(0);
            }
            pending.push(Pending {
                stream,
                shown: [0; BYTES],
                bytes: 0,
                since: Instant::now(),
            });
        }
        let mut i = 0;
        while i < pending.len() {
            match pending[i].read() {
                Some(false) => i += 1,
                Some(true) => admit(pending.remove(i), state),
                None => drop(pending.remove(i)),
            }
        }
    }
}

fn wait(listener: &TcpListener, pending: &[Pending]) {
    let first = std::iter::once(listener.as_fd());
    let all = first.chain(pending.iter().map(|p| p.stream.as_fd()));
    let mut polled: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    if poll(&mut polled, PollTimeout::from(GLANCE)).is_err() {
        // Never a busy loop, whatever the system says.
        thread::sleep(Duration::from_millis(1));
    }
}

impl Pending {
    /// Whether the ticket is whole; `None`: it will not be.
    fn read(&mut self) -> Option<bool> {
        match self.stream.read(&mut self.shown[self.bytes..]) {
            Ok(0) => return None,
            Ok(n) => self.bytes += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if self.bytes == BYTES {
            return Some(true);
        }
        (self.since.elapsed() < TICKET_TIMEOUT).then_some(false)
    }
}

fn admit(pending: Pending, state: &Mutex<State>) {
    let (session, flow) = ticket::names(&pending.shown);
    let mut state = lock(state);
    let Some(waiting) = state.waiting.get_mut(&session) else {
        return;
    };
    let expected = waiting.tickets.get(&flow);
    if expected.is_some_and(|expected| ticket::same(expected, &pending.shown)) {
        waiting.tickets.remove(&flow);
        // A session that has just ended does not want it.
        let _ = waiting.to.send((usize::from(flow), pending.stream));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::session::Directions;
    use crate::wire::SessionId;

    fn secrets(session: u64) -> Secrets {
        Secrets {
            session: SessionId(session),
            keys: Directions {
                up: [session as u8; 32],
                down: [7; 32],
            },
        }
    }

    /// A desk at a port that is free, and one that expects two flows of session 1.
    fn open() -> (Desk, Expected, SocketAddr) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let desk = Desk::new(address);
        let expected = desk.expect(&secrets(1), 2).unwrap();
        (desk, expected, address)
    }

    fn dial(address: SocketAddr, shown: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(shown).unwrap();
        let patience = Some(Duration::from_secs(10));
        stream.set_read_timeout(patience).unwrap();
        stream
    }

    fn taken(expected: &Expected) -> Option<(usize, TcpStream)> {
        for _ in 0..200 {
            if let Some(taken) = expected.take() {
                return Some(taken);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }

    fn is_cut_off(mut stream: TcpStream) -> bool {
        matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_))
    }

    #[test]
    fn only_a_ticket_lets_in_and_only_once() {
        let (_desk, expected, address) = open();
        let own = ticket::ticket(&secrets(1), 1);
        let forged = {
            let mut forged = own;
            forged[BYTES - 1] ^= 1;
            forged
        };
        let of_other = ticket::ticket(&secrets(2), 1);
        for wrong in [forged, of_other] {
            assert!(is_cut_off(dial(address, &wrong)));
        }
        let client = dial(address, &own);
        let (flow, mut stream) = taken(&expected).expect("let in");
        assert_eq!(flow, 1);
        assert!(is_cut_off(dial(address, &own)), "a second time");
        // What comes behind the ticket is the session's.
        let mut client = client;
        client.write_all(b"data").unwrap();
        stream.set_nonblocking(false).unwrap();
        let mut data = [0; 4];
        stream.read_exact(&mut data).unwrap();
        assert_eq!(&data, b"data");
    }

    #[test]
    fn strangers_do_not_keep_others_out() {
        let (_desk, expected, address) = open();
        let idle: Vec<_> = (0..2 * MOST_PENDING).map(|_| dial(address, b"x")).collect();
        let _client = dial(address, &ticket::ticket(&secrets(1), 0));
        assert_eq!(taken(&expected).expect("let in").0, 0);
        drop(idle);
    }

    #[test]
    fn it_listens_only_while_somebody_is_expected() {
        let (desk, expected, address) = open();
        drop(expected);
        let closed = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            TcpStream::connect(address).is_err()
        });
        assert!(closed);
        let _again = desk.expect(&secrets(3), 1).unwrap();
        TcpStream::connect(address).unwrap();
    }
}
