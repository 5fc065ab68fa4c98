//! Flows over time.

use std::collections::HashMap;
use std::time::Duration;

use crate::filter::Filter;
use crate::limit::Limit;
use crate::process::{self, Process};
use crate::socket_diag::{ObserveError, Socket, SocketDiag};
use crate::tcp_info::{BYTES_ACKED, BYTES_RECEIVED, Field, TOTAL_RETRANS, TcpInfo};

/// Looks at flows again and again.
#[derive(Debug)]
pub struct Observer {
    diag: SocketDiag,
    filter: Filter,
    /// Flows of the latest look that only their loopback addresses keep out.
    left_within_host: usize,
    /// The sample before, by cookie.
    before: HashMap<u64, (Duration, TcpInfo)>,
    /// By inode, [`None`] where it may not be known; looked for where a new socket is met.
    processes: Option<HashMap<u32, Option<Process>>>,
}

/// A flow at a moment, and since the moment before.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Addresses, state and `tcp_info` of this sample.
    pub socket: Socket,
    /// Who holds it, if that was asked for and may be known.
    pub process: Option<Process>,
    /// The sample before and the time between the two; [`None`] for a flow that is new.
    pub since: Option<(Duration, TcpInfo)>,
}

impl Observer {
    /// Of the flows that `filter` takes.
    ///
    /// # Errors
    /// [`ObserveError::Unavailable`].
    pub fn new(filter: Filter) -> Result<Self, ObserveError> {
        Ok(Self {
            diag: SocketDiag::open()?,
            filter,
            left_within_host: 0,
            before: HashMap::new(),
            processes: None,
        })
    }

    /// Names the processes that hold the sockets. Each new socket costs a look through `/proc`.
    pub fn with_processes(self) -> Self {
        Self {
            processes: Some(HashMap::new()),
            ..self
        }
    }

    /// Flows of the latest look that the filter would take if flows within this host counted.
    pub fn left_within_host(&self) -> usize {
        self.left_within_host
    }

    /// All flows now, in the order of their addresses; `now` is the time since any moment.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn observe(&mut self, now: Duration) -> Result<Vec<Observation>, ObserveError> {
        let mut sockets = self.diag.connections()?;
        let left = |s: &&Socket| self.filter.leaves_within_host(s);
        self.left_within_host = sockets.iter().filter(left).count();
        sockets.retain(|socket| self.filter.takes(socket));
        sockets.sort_by_key(|s| (s.remote, s.local));
        if let Some(known) = &mut self.processes {
            name(known, &sockets);
        }
        let mut before = std::mem::take(&mut self.before);
        let seen = sockets.into_iter().map(|socket| {
            let since = before.remove(&socket.cookie);
            let since = since.map(|(at, info)| (now.saturating_sub(at), info));
            self.before
                .insert(socket.cookie, (now, socket.info.clone()));
            let known = self.processes.as_ref();
            let process = known.and_then(|known| known.get(&socket.inode).cloned().flatten());
            Observation {
                socket,
                process,
                since,
            }
        });
        Ok(seen.collect())
    }
}

/// Looks for the processes of the sockets that are new, and forgets those that are gone.
fn name(known: &mut HashMap<u32, Option<Process>>, sockets: &[Socket]) {
    let is_new = |s: &Socket| s.inode != 0 && !known.contains_key(&s.inode);
    if !sockets.iter().any(is_new) {
        return;
    }
    let mut found = process::by_inode();
    let now = sockets.iter().filter(|s| s.inode != 0);
    *known = now.map(|s| (s.inode, found.remove(&s.inode))).collect();
}

impl Observation {
    /// What kept it from sending more since the sample before; [`None`] if nothing was sent.
    pub fn limited_by(&self) -> Option<Limit> {
        let (elapsed, before) = self.since.as_ref()?;
        let socket = &self.socket;
        Limit::between(before, &socket.info, *elapsed, socket.full_buffer())
    }

    /// Rate of acknowledged data since the sample before, bit/s.
    pub fn sending_rate(&self) -> Option<f64> {
        self.rate(&BYTES_ACKED)
    }

    /// Rate of received data since the sample before, bit/s.
    pub fn receiving_rate(&self) -> Option<f64> {
        self.rate(&BYTES_RECEIVED)
    }

    /// Segments sent again since the sample before.
    pub fn retransmits(&self) -> Option<u64> {
        self.grown(&TOTAL_RETRANS)
    }

    fn rate(&self, field: &Field) -> Option<f64> {
        let (elapsed, _) = self.since.as_ref()?;
        let seconds = elapsed.as_secs_f64();
        (seconds > 0.0).then_some(self.grown(field)? as f64 * 8.0 / seconds)
    }

    fn grown(&self, field: &Field) -> Option<u64> {
        let (_, before) = self.since.as_ref()?;
        self.socket.info.get(field)?.checked_sub(before.get(field)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn rates_are_of_the_time_between_two_samples() {
        let Ok(observer) = Observer::new(Filter::default()) else {
            eprintln!("skipped: no sock_diag");
            return;
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut observer = Observer {
            filter: Filter {
                ports: vec![port],
                loopback: true,
                ..Filter::default()
            },
            ..observer
        }
        .with_processes();
        let mut near = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let first = observer.observe(Duration::from_secs(5)).unwrap();
        assert_eq!(first.len(), 2);
        assert!(
            first
                .iter()
                .all(|o| o.since.is_none() && o.limited_by().is_none())
        );
        near.write_all(&[1; 50_000]).unwrap();
        far.read_exact(&mut vec![0; 50_000]).unwrap();
        let second = observer.observe(Duration::from_secs(7)).unwrap();
        let far_port = |o: &&Observation| o.socket.local.port() == port;
        let receiver = second.iter().find(far_port).unwrap();
        assert_eq!(receiver.receiving_rate(), Some(200_000.0));
        assert_eq!(receiver.sending_rate(), Some(0.0));
        let own = receiver.process.as_ref().unwrap();
        assert_eq!(own.pid, std::process::id());
        drop((near, far));
        // At most the listener is left: no memory for closed sockets.
        observer.observe(Duration::from_secs(8)).unwrap();
        assert!(observer.before.len() <= 1);
    }
}
