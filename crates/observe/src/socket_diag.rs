//! All TCP sockets, from the kernel (sock_diag(7), `NETLINK_SOCK_DIAG`).
//!
//! Messages are those of include/uapi/linux/inet_diag.h in the byte order of the machine, ports and
//! addresses in that of the network.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
    sockopt,
};

use crate::tcp_info::TcpInfo;

/// Failure to read the kernel's TCP sockets through netlink.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// The kernel has no sock_diag, or none for TCP.
    #[error("this kernel does not show its TCP sockets (sock_diag): {0}")]
    Unavailable(io::Error),
    /// The kernel says something that is no answer.
    #[error("the kernel's answer cannot be read: {0}")]
    Malformed(&'static str),
    /// The system refuses.
    #[error("netlink: {0}")]
    Io(#[from] io::Error),
}

/// A TCP socket that is connected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// The kernel's own number: no other socket has it until the next start of the system.
    pub cookie: u64,
    /// Address and port of this host.
    pub local: SocketAddr,
    /// Address and port of the other.
    pub remote: SocketAddr,
    /// Effective user that made it.
    pub uid: u32,
    /// Its inode; 0 for one that no process holds any more.
    pub inode: u32,
    /// Name of its congestion control.
    pub congestion: String,
    /// What the kernel shows of the connection.
    pub info: TcpInfo,
    /// Bytes that the send buffer may hold (`sk_sndbuf`), where the kernel says so.
    pub send_buffer: Option<u32>,
    /// Bytes that what is in it takes of that (`sk_wmem_queued`).
    pub send_queued: Option<u32>,
}

impl Socket {
    /// Whether a writer may write more: two thirds of the send buffer are not exceeded
    /// (`sk_stream_is_writeable`), or the kernel does not say.
    pub fn has_room(&self) -> bool {
        let (Some(size), Some(queued)) = (self.send_buffer, self.send_queued) else {
            return true;
        };
        size.saturating_sub(queued) >= queued / 2
    }

    /// Bytes of a send buffer that has no room.
    pub(crate) fn full_buffer(&self) -> Option<u32> {
        self.send_buffer.filter(|_| !self.has_room())
    }
}

impl Default for Socket {
    fn default() -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Self {
            cookie: 0,
            local: nowhere,
            remote: nowhere,
            uid: 0,
            inode: 0,
            congestion: String::new(),
            info: TcpInfo::default(),
            send_buffer: None,
            send_queued: None,
        }
    }
}

/// A question channel to the kernel.
#[derive(Debug)]
pub struct SocketDiag {
    netlink: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl SocketDiag {
    /// Opens it; no privilege is needed.
    ///
    /// # Errors
    /// [`ObserveError::Unavailable`] where the kernel has none.
    pub fn open() -> Result<Self, ObserveError> {
        let protocol = SockProtocol::NetlinkSockDiag;
        let (family, flags) = (AddressFamily::Netlink, SockFlag::SOCK_CLOEXEC);
        let netlink = socket(family, SockType::Raw, flags, protocol)
            .map_err(|e| ObserveError::Unavailable(e.into()))?;
        // Of 100,000 sockets the answer has 60 MB: what waits to be read holds the kernel, and
        // loses nothing, but larger pieces cost fewer calls.
        let _ = setsockopt(&netlink, sockopt::RcvBuf, &(1 << 20));
        Ok(Self {
            netlink,
            sequence: 0,
            buffer: vec![0; 1 << 16],
        })
    }

    /// All established or closing connections of both families.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn connections(&mut self) -> Result<Vec<Socket>, ObserveError> {
        let mut all = Vec::new();
        for family in [
            libc_family(AddressFamily::Inet),
            libc_family(AddressFamily::Inet6),
        ] {
            self.dump(family, &mut all)?;
        }
        Ok(all)
    }

    /// The connection between these two, however many others there are; `None`: there is none.
    ///
    /// # Errors
    /// [`ObserveError`].
    pub fn connection(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Result<Option<Socket>, ObserveError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request_of(local, remote, self.sequence);
        let mut found = Vec::new();
        match self.ask(&request, &mut found) {
            Ok(()) => Ok(found.pop()),
            Err(ObserveError::Unavailable(e)) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn dump(&mut self, family: u8, all: &mut Vec<Socket>) -> Result<(), ObserveError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(family, self.sequence);
        self.ask(&request, all)
    }

    /// Until the answer is complete: that to a dump has an end of its own, any other is one
    /// message.
    fn ask(&mut self, request: &[u8], all: &mut Vec<Socket>) -> Result<(), ObserveError> {
        let one = u16_at(request, 6).is_some_and(|flags| flags & FLAG_DUMP == 0);
        send(self.netlink.as_raw_fd(), request, MsgFlags::empty()).map_err(io::Error::from)?;
        loop {
            let n = match recv(
                self.netlink.as_raw_fd(),
                &mut self.buffer,
                MsgFlags::MSG_TRUNC,
            ) {
                Ok(n) => n,
                Err(Errno::EINTR) => continue,
                Err(e) => return Err(io::Error::from(e).into()),
            };
            let bytes = self.buffer.get(..n);
            let bytes = bytes.ok_or(ObserveError::Malformed("longer than its buffer"))?;
            for message in Messages(bytes) {
                let message = message?;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    DONE => return Ok(()),
                    ERROR => return Err(refused(message.body)),
                    BY_FAMILY => {
                        all.extend(connection(message.body));
                        if one {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// One datagram of netlink has many messages.
struct Messages<'a>(&'a [u8]);

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, ObserveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let message = Message::first(self.0);
        self.0 = match &message {
            Some((_, rest)) => rest,
            None => &[],
        };
        let cut = ObserveError::Malformed("a message is cut");
        Some(message.map(|(message, _)| message).ok_or(cut))
    }
}

impl<'a> Message<'a> {
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = u32_at(bytes, 0)? as usize;
        let message = Self {
            kind: u16_at(bytes, 4)?,
            sequence: u32_at(bytes, 8)?,
            body: bytes.get(HEADER..length)?,
        };
        let next = length.next_multiple_of(4).min(bytes.len());
        Some((message, &bytes[next..]))
    }
}

/// `struct nlmsghdr`, then `struct inet_diag_req_v2` for every socket that carries data.
fn request(family: u8, sequence: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(REQUEST);
    out.extend((REQUEST as u32).to_ne_bytes());
    out.extend(BY_FAMILY.to_ne_bytes());
    out.extend((FLAG_REQUEST | FLAG_DUMP).to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    let wanted = [INFO, CONGESTION, MEMORY].map(|attribute| 1u8 << (attribute - 1));
    out.extend([family, TCP, wanted.iter().fold(0, |all, bit| all | bit), 0]);
    let states = STATES.iter().fold(0u32, |all, state| all | 1 << state);
    out.extend(states.to_ne_bytes());
    // Any addresses, ports, interface.
    out.resize(REQUEST, 0);
    out
}

/// The same for one connection: ports, addresses, any interface and cookie.
fn request_of(local: SocketAddr, remote: SocketAddr, sequence: u32) -> Vec<u8> {
    let ends = [local, remote].map(|end| (end.ip().to_canonical(), end.port()));
    let family = match ends[0].0 {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    let mut out = request(libc_family(family), sequence);
    out[6..8].copy_from_slice(&FLAG_REQUEST.to_ne_bytes());
    out.truncate(REQUEST - ID);
    for (_, port) in ends {
        out.extend(port.to_be_bytes());
    }
    for (ip, _) in ends {
        let mut bytes = [0; 16];
        match ip {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        out.extend(bytes);
    }
    out.extend(0u32.to_ne_bytes());
    out.extend([u8::MAX; 8]);
    out
}

/// `struct inet_diag_msg` and its attributes; [`None`] for what is no connection any more.
fn connection(body: &[u8]) -> Option<Socket> {
    let family = *body.first()?;
    let address = |at: usize| -> Option<IpAddr> {
        let bytes = body.get(at..at + 16)?;
        if family == libc_family(AddressFamily::Inet) {
            return Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?).into());
        }
        Some(Ipv6Addr::from(*bytes.first_chunk::<16>()?).to_canonical())
    };
    let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
    let (low, high) = (u32_at(body, 44)?, u32_at(body, 48)?);
    // Of two links the same address may be two hosts.
    let interface = u32_at(body, 40)?;
    let end = |address: IpAddr, port: u16| match address {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => {
            SocketAddrV6::new(ip, port, 0, interface).into()
        }
        _ => SocketAddr::from((address, port)),
    };
    let mut socket = Socket {
        cookie: u64::from(high) << 32 | u64::from(low),
        local: end(address(8)?, port(4)?),
        remote: end(address(24)?, port(6)?),
        uid: u32_at(body, 64)?,
        inode: u32_at(body, 68)?,
        ..Socket::default()
    };
    let mut has_info = false;
    let mut rest = body.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(rest, 0), u16_at(rest, 2)) {
        let value = rest.get(4..usize::from(length))?;
        match kind {
            INFO => {
                socket.info = TcpInfo::new(value);
                has_info = true;
            }
            CONGESTION => {
                let name = value.split(|b| *b == 0).next().unwrap_or_default();
                socket.congestion = String::from_utf8_lossy(name).into_owned();
            }
            // The fourth and the sixth of `SK_MEMINFO_*`.
            MEMORY => {
                socket.send_buffer = u32_at(value, 12);
                socket.send_queued = u32_at(value, 20);
            }
            _ => {}
        }
        let next = usize::from(length).next_multiple_of(4).min(rest.len());
        rest = &rest[next..];
    }
    // Without it: closed, and waiting for the other end's FIN (`struct inet_timewait_sock`).
    has_info.then_some(socket)
}

/// `struct nlmsgerr`.
fn refused(body: &[u8]) -> ObserveError {
    let code = u32_at(body, 0).map_or(0, |code| -(code as i32));
    let error = io::Error::from_raw_os_error(code);
    match Errno::from_raw(code) {
        Errno::ENOENT | Errno::EOPNOTSUPP | Errno::EINVAL => ObserveError::Unavailable(error),
        _ => error.into(),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn libc_family(family: AddressFamily) -> u8 {
    family as i32 as u8
}

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// With `struct inet_diag_req_v2` behind it.
const REQUEST: usize = HEADER + 56;
/// Bytes of the last part of it, `struct inet_diag_sockid`.
const ID: usize = 48;
/// Bytes of `struct inet_diag_msg`.
const MESSAGE: usize = 72;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
const FLAG_REQUEST: u16 = 1;
const FLAG_DUMP: u16 = 0x300;
/// `IPPROTO_TCP`.
const TCP: u8 = 6;
/// `INET_DIAG_INFO`, `_CONG` and `_SKMEMINFO`.
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const MEMORY: u16 = 7;
/// Established, FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK and CLOSING: all in which data may
/// still go out or come in.
const STATES: [u32; 6] = [1, 4, 5, 8, 9, 11];

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::tcp_info::{BYTES_ACKED, SND_CWND};

    /// A connection over loopback, found by its ports.
    fn seen(any: &str) -> Option<(Socket, Socket)> {
        let listener = TcpListener::bind(any).ok()?;
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(&[7; 100_000]).unwrap();
        far.read_exact(&mut vec![0; 100_000]).unwrap();
        let mut diag = match SocketDiag::open() {
            Ok(diag) => diag,
            Err(e) => {
                eprintln!("skipped: {e}");
                return None;
            }
        };
        let all = diag.connections().unwrap();
        let of = |stream: &TcpStream| {
            let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let mut same = all
                .iter()
                .filter(|s| s.local == local && s.remote == remote);
            same.next().unwrap().clone()
        };
        Some((of(&near), of(&far)))
    }

    #[test]
    fn a_connection_shows_addresses_owner_and_what_it_carried() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Some((near, far)) = seen(any) else {
                continue;
            };
            assert_eq!(near.remote, far.local);
            assert_ne!(near.cookie, far.cookie);
            assert_eq!(near.uid, nix::unistd::geteuid().as_raw());
            assert!(!near.congestion.is_empty());
            // All of it was read, and so acknowledged but for the last ACK on its way.
            assert!(near.info.get(&BYTES_ACKED).unwrap() > 30_000);
            assert_eq!(
                far.info.get(&crate::tcp_info::BYTES_RECEIVED),
                Some(100_000)
            );
            assert!(near.info.get(&SND_CWND).unwrap() >= 1);
            assert!(near.send_buffer.unwrap() > 0);
            assert!(near.has_room());
        }
    }

    #[test]
    fn a_send_buffer_that_nobody_empties_has_no_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        while near.write(&[7; 100_000]).is_ok() {}
        let Ok(mut diag) = SocketDiag::open() else {
            return eprintln!("skipped: no sock_diag");
        };
        let ends = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        let found = diag.connection(ends.0, ends.1).unwrap().expect("is there");
        assert!(!found.has_room(), "{found:?}");
    }

    #[test]
    fn one_connection_is_found_by_its_ends() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else {
                continue;
            };
            let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let ends = (near.local_addr().unwrap(), near.peer_addr().unwrap());
            let Ok(mut diag) = SocketDiag::open() else {
                return eprintln!("skipped: no sock_diag");
            };
            let found = diag.connection(ends.0, ends.1).unwrap().expect("is there");
            assert_eq!((found.local, found.remote), ends);
            let other = SocketAddr::new(ends.1.ip(), 1);
            assert_eq!(diag.connection(ends.0, other).unwrap(), None);
            // The channel goes on as before. What the kernel counts of it may have gone on too.
            let all = diag.connections().unwrap();
            assert!(all.iter().any(|socket| socket.cookie == found.cookie));
        }
    }

    #[test]
    fn nonsense_is_an_error_or_nothing() {
        assert!(connection(&[]).is_none());
        assert!(connection(&[2; 71]).is_none());
        assert!(connection(&[2; 72]).is_none(), "no connection any more");
        let cut: Vec<_> = Messages(&[200, 0, 0, 0, 20, 0]).collect();
        assert!(matches!(cut[..], [Err(ObserveError::Malformed(_))]));
        // A length of zero would go round for ever.
        let zero: Vec<_> = Messages(&[0; 32]).collect();
        assert_eq!(zero.len(), 1);
        assert!(zero[0].is_err());
        let mut attribute_of_no_length = vec![2u8; 72];
        attribute_of_no_length.extend([0, 0, 2, 0]);
        assert!(connection(&attribute_of_no_length).is_none());
    }
}
