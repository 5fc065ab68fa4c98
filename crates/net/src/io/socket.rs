//! [`Socket`]: a UDP socket that never blocks.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::sys::stat::fstat;
use quinn_udp::{EcnCodepoint, Transmit, TransportErrorPayload, UdpSocketState};
use rustix::net::connect_unspec;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};

/// Which runs of equal datagrams leave as one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offload {
    /// Most datagrams of a call; 1: no offload.
    pub segments: usize,
    /// Only datagrams of up to so many bytes.
    pub longest: usize,
}

impl Offload {
    /// Each on its own.
    pub const NONE: Self = Self {
        segments: 1,
        longest: 0,
    };
}

/// How datagrams are handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each on its own, when its sender said so. Many may leave in one call if they are due at
    /// once, but each as a packet; only short ones (128 bytes and less: ACKs) as [`Mode::Bulk`]
    /// would.
    #[default]
    Packet,
    /// Runs of equal size to one address as one call with segmentation offload: one burst.
    Bulk,
}

/// What a socket is to be like.
#[derive(Clone, Copy, Debug)]
pub struct IoConfig {
    /// One by one, or in runs with segmentation offload.
    pub mode: Mode,
    /// Lets the kernel merge datagrams that arrive together. Several times cheaper; it hides the
    /// spacing of arrivals.
    pub coalesce: bool,
    /// Asks the kernel when each datagram arrived ([`Datagram::stamp`](super::Datagram::stamp)).
    pub stamps: bool,
    /// Bytes asked for, for what waits to leave.
    pub send_buffer: usize,
    /// Bytes asked for, for what waits to be read.
    pub receive_buffer: usize,
    /// Longest datagram that is received, in bytes of UDP payload; a longer one is dropped and
    /// counted.
    pub longest: usize,
    /// Has the kernel tell when a queue of this host drops a datagram. Otherwise it looks as if the
    /// datagram had left.
    pub report_stalls: bool,
}

impl IoConfig {
    /// For this mode: bulk merges what arrives, packets come one by one and with their time;
    /// buffers of 16 MB.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            coalesce: mode == Mode::Bulk,
            stamps: mode == Mode::Packet,
            send_buffer: 16 << 20,
            receive_buffer: 16 << 20,
            longest: 9216,
            report_stalls: true,
        }
    }
}

impl Default for IoConfig {
    fn default() -> Self {
        Self::new(Mode::default())
    }
}

/// What the kernel gave, in bytes as it counts them: with its own overhead, about twice the payload
/// of full packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// For what waits to leave.
    pub send_buffer: usize,
    /// For what waits to be read.
    pub receive_buffer: usize,
    /// Whether runs leave as one call with segmentation offload.
    pub segmentation: bool,
    /// Whether arrivals may come merged.
    pub coalescing: bool,
    /// Whether the kernel tells when a datagram arrived.
    pub stamps: bool,
}

/// A UDP socket that never blocks. One thread at a time sends through it.
#[derive(Debug)]
pub struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    config: IoConfig,
    granted: Granted,
    local: SocketAddr,
    peer: Option<SocketAddr>,
    /// Segmentation offload was refused after all.
    no_offload: AtomicBool,
    /// Code point of datagrams that leave one by one.
    mark: AtomicU8,
    unreachable: AtomicU64,
    /// Set when ICMP says that a datagram was too long.
    doubted: Option<Arc<AtomicBool>>,
}

impl Socket {
    /// Binds to `local`; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// The address is taken or not of this host; no sockets are left.
    pub fn bind(local: SocketAddr, config: &IoConfig) -> io::Result<Self> {
        Self::new(UdpSocket::bind(local)?, config)
    }

    /// Takes over a bound socket.
    ///
    /// # Errors
    /// The kernel lacks an option that every supported one has.
    pub fn new(udp: UdpSocket, config: &IoConfig) -> io::Result<Self> {
        let state = UdpSocketState::new((&udp).into())?;
        let local = udp.local_addr()?;
        let coalescing = config.coalesce && state.gro_segments() > 1;
        if state.gro_segments() > 1 && !coalescing {
            setsockopt(&udp, sockopt::UdpGroSegment, &false)?;
        }
        let anywhere = local.ip().is_unspecified();
        if !anywhere {
            forget_destinations(&udp, local)?;
        }
        // quinn-udp 0.6.3 has room for 96 bytes of control messages. If everything is asked for,
        // the last of them, the code point, is cut.
        let stamps = config.stamps && !(coalescing && anywhere);
        if !stamps {
            setsockopt(&udp, sockopt::ReceiveTimestampns, &false)?;
        }
        if config.report_stalls {
            state.enable_transport_errors((&udp).into())?;
        }
        let granted = Granted {
            send_buffer: enlarge(
                config.send_buffer,
                |n| setsockopt(&udp, sockopt::SndBufForce, &n),
                |n| setsockopt(&udp, sockopt::SndBuf, &n),
                || getsockopt(&udp, sockopt::SndBuf),
            )?,
            receive_buffer: enlarge(
                config.receive_buffer,
                |n| setsockopt(&udp, sockopt::RcvBufForce, &n),
                |n| setsockopt(&udp, sockopt::RcvBuf, &n),
                || getsockopt(&udp, sockopt::RcvBuf),
            )?,
            segmentation: config.mode == Mode::Bulk && state.max_gso_segments() > 1,
            coalescing,
            stamps,
        };
        Ok(Self {
            udp,
            state,
            config: *config,
            granted,
            local,
            peer: None,
            no_offload: AtomicBool::new(false),
            mark: AtomicU8::new(0),
            unreachable: AtomicU64::new(0),
            doubted: None,
        })
    }

    /// Talks to `peer` only from now on: what comes from elsewhere is dropped by the kernel, and
    /// sending is cheaper.
    ///
    /// # Errors
    /// No route; or another family of addresses.
    pub fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.udp.connect(peer)?;
        let was_anywhere = self.local.ip().is_unspecified();
        self.local = self.udp.local_addr()?;
        self.peer = Some(peer);
        if was_anywhere && !self.local.ip().is_unspecified() {
            forget_destinations(&self.udp, self.local)?;
            // Now there is room for the stamps that were asked for.
            if self.config.stamps && !self.granted.stamps {
                setsockopt(&self.udp, sockopt::ReceiveTimestampns, &true)?;
                self.granted.stamps = true;
            }
        }
        Ok(())
    }

    /// Connects anew if the way to the peer begins at another address of this host by now. The
    /// port is another one afterwards.
    ///
    /// # Errors
    /// There is no way at the moment.
    pub fn refresh(&mut self) -> io::Result<()> {
        let Some(peer) = self.peer else {
            return Ok(());
        };
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let other = UdpSocket::bind(any)?;
        other.connect(peer)?;
        if other.local_addr()?.ip() != self.local.ip() {
            // Without this the kernel keeps the address that it chose first.
            connect_unspec(&self.udp)?;
            self.udp.connect(peer)?;
            self.local = self.udp.local_addr()?;
        }
        Ok(())
    }

    /// Whether this host has lost the address that the socket sends from: sending then fails with
    /// `EINVAL` (`ip_route_output_key_hash_rcu`, net/ipv4/route.c).
    pub(super) fn is_homeless(&self, e: &io::Error) -> bool {
        let lost = matches!(
            e.raw_os_error().map(Errno::from_raw),
            Some(Errno::EINVAL | Errno::EADDRNOTAVAIL)
        );
        lost && UdpSocket::bind((self.local.ip(), 0))
            .is_err_and(|e| e.kind() == ErrorKind::AddrNotAvailable)
    }

    /// Sets this when an ICMP message says that a datagram was too long for the path.
    pub fn tell_doubts(&mut self, doubted: Arc<AtomicBool>) {
        self.doubted = Some(doubted);
    }

    /// Local address, with the port that the kernel chose.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The only address it talks to, if there is one.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Settings that it was opened with.
    pub fn config(&self) -> &IoConfig {
        &self.config
    }

    /// Buffer sizes and options that the kernel granted.
    pub fn granted(&self) -> Granted {
        Granted {
            segmentation: self.config.mode == Mode::Bulk && self.offload().segments > 1,
            ..self.granted
        }
    }

    /// Answers of the network that a datagram could not be delivered (ICMP), so far.
    pub fn unreachable(&self) -> u64 {
        self.unreachable.load(Ordering::Relaxed)
    }

    /// Datagrams that arrived and were dropped because nobody had read the earlier ones, so far;
    /// [`None`] if the kernel does not show it. Reads a file: not for each datagram.
    pub fn drops(&self) -> Option<u64> {
        let inode = fstat(&self.udp).ok()?.st_ino;
        let table = match self.local {
            SocketAddr::V4(_) => "/proc/thread-self/net/udp",
            SocketAddr::V6(_) => "/proc/thread-self/net/udp6",
        };
        drops_of(&fs::read_to_string(table).ok()?, inode)
    }

    /// Which datagrams leave as one call with segmentation offload.
    pub(super) fn offload(&self) -> Offload {
        let off = self.no_offload.load(Ordering::Relaxed);
        Offload {
            segments: if off {
                1
            } else {
                self.state.max_gso_segments()
            },
            longest: match self.config.mode {
                Mode::Packet => SHORT,
                Mode::Bulk => usize::MAX,
            },
        }
    }

    /// Sends `contents`, datagrams of `segment` bytes each but for the last, as one call.
    pub(super) fn send_segments(
        &self,
        to: SocketAddr,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        segment: usize,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn,
            contents,
            segment_size: Some(segment),
            src_ip: None,
        };
        self.state.try_send((&self.udp).into(), &transmit)
    }

    /// Has datagrams that leave one by one carry this code point from now on. It seldom changes, so
    /// that an option of the socket is cheaper than saying it with each.
    pub(super) fn mark(&self, ecn: Option<EcnCodepoint>) -> io::Result<()> {
        let bits = ecn.map_or(0, |ecn| ecn as u8);
        if self.mark.load(Ordering::Relaxed) == bits {
            return Ok(());
        }
        if self.local.is_ipv6() {
            set_ipv6_tclass(&self.udp, u32::from(bits))?;
            // For mapped addresses; fails where there are none.
            let _ = set_ip_tos(&self.udp, bits);
        } else {
            set_ip_tos(&self.udp, bits)?;
        }
        self.mark.store(bits, Ordering::Relaxed);
        Ok(())
    }

    /// Segmentation offload does not work here: single datagrams from now on.
    pub(super) fn give_up_segments(&self) {
        self.no_offload.store(true, Ordering::Relaxed);
    }

    /// Takes everything off the socket's queue of errors, which would else fail the next calls.
    /// Returns how many were answers of the network. A datagram longer than the interface allows
    /// is none: the kernel puts it there too (`ip_local_error`, net/ipv4/datagram.c), and it will
    /// never leave. ICMP cannot make it look so, because quinn-udp has the socket ignore what ICMP
    /// says of the path's MTU (`IP_PMTUDISC_PROBE`).
    pub(super) fn drain_errors(&self) -> u64 {
        let mut answers = 0;
        for _ in 0..1024 {
            let Ok(Some(error)) = self.state.recv_transport_error((&self.udp).into()) else {
                break;
            };
            let too_long_for_interface = matches!(error.payload, TransportErrorPayload::Other)
                && error.raw_errno == Errno::EMSGSIZE as i32;
            if matches!(error.payload, TransportErrorPayload::TooBig { .. })
                && let Some(doubted) = &self.doubted
            {
                doubted.store(true, Ordering::Relaxed);
            }
            answers += u64::from(!too_long_for_interface);
        }
        self.unreachable.fetch_add(answers, Ordering::Relaxed);
        answers
    }

    pub(super) fn receive_into(
        &self,
        buffers: &mut [io::IoSliceMut<'_>],
        meta: &mut [quinn_udp::RecvMeta],
    ) -> io::Result<usize> {
        // An answer of the network fails one call per answer.
        for _ in 0..8 {
            match self.state.recv((&self.udp).into(), buffers, meta) {
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(e) if may_be_icmp(&e) => {
                    if self.drain_errors() == 0 {
                        self.unreachable.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Err(e) => return Err(e),
            }
        }
        Ok(0)
    }
}

/// Whether this system can send runs of datagrams with one call. Without it [`Mode::Bulk`] sends
/// them one by one.
///
/// # Errors
/// There is no loopback, or no socket is left.
pub fn has_segmentation() -> io::Result<bool> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let socket = Socket::bind(any, &IoConfig::new(Mode::Bulk))?;
    Ok(socket.granted().segmentation)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.udp.as_raw_fd()
    }
}

/// In packet mode datagrams of up to so many bytes leave together nevertheless: ACKs of one batch.
const SHORT: usize = 128;

/// Whether this error is one of the network, which may pass: it tells of an earlier datagram, or
/// that there is no way at the moment.
pub(in crate::io) fn is_answer_of_the_network(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
    )
}

/// Whether an ICMP message, which anybody can forge who knows two addresses and ports, may have
/// raised this error on the socket: those of `icmp_err_convert` (Linux, net/ipv4/icmp.c) and
/// `icmpv6_err_convert` (net/ipv6/icmp.c). Some of them may also be about the very call.
pub(crate) fn may_be_icmp(e: &io::Error) -> bool {
    let raw = e.raw_os_error().map(Errno::from_raw);
    is_answer_of_the_network(e)
        || matches!(
            raw,
            Some(
                Errno::EMSGSIZE
                    | Errno::EACCES
                    | Errno::EPROTO
                    | Errno::ENOPROTOOPT
                    | Errno::EOPNOTSUPP
                    | Errno::EHOSTDOWN
                    | Errno::ENONET
            )
        )
}

/// Where datagrams arrive is known; saying so with each would cost time and room.
fn forget_destinations(udp: &UdpSocket, local: SocketAddr) -> io::Result<()> {
    match local {
        SocketAddr::V4(_) => setsockopt(udp, sockopt::Ipv4PacketInfo, &false)?,
        SocketAddr::V6(_) => setsockopt(udp, sockopt::Ipv6RecvPacketInfo, &false)?,
    }
    Ok(())
}

/// Asks for a buffer beyond the system's limit, which needs privilege, else up to the limit; never
/// makes one smaller.
fn enlarge(
    wanted: usize,
    force: impl Fn(usize) -> nix::Result<()>,
    ask: impl Fn(usize) -> nix::Result<()>,
    granted: impl Fn() -> nix::Result<usize>,
) -> nix::Result<usize> {
    // The kernel doubles what it is asked for, and its numbers are 32 bits wide.
    let wanted = wanted.min(i32::MAX as usize / 2);
    if granted()? < 2 * wanted {
        match force(wanted) {
            Ok(()) => {}
            Err(Errno::EPERM) => ask(wanted)?,
            Err(e) => return Err(e),
        }
    }
    granted()
}

/// The last column of the row of `inode` in the kernel's table of UDP sockets.
fn drops_of(table: &str, inode: u64) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let row_inode: u64 = fields.nth(9)?.parse().ok()?;
        (row_inode == inode).then(|| fields.last()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_stand_in_the_last_column() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
            1201: 0100007F:A7B5 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 71 2 0000000000000000 0\n\
            1202: 0100007F:A7B6 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 72 2 0000000000000000 913\n";
        assert_eq!(drops_of(table, 72), Some(913));
        assert_eq!(drops_of(table, 71), Some(0));
        assert_eq!(drops_of(table, 73), None);
        assert_eq!(drops_of("", 73), None);
    }

    #[test]
    fn a_buffer_is_forced_asked_for_and_never_made_smaller() {
        use std::cell::Cell;
        let size = Cell::new(1000);
        let set = |n: usize| {
            size.set(2 * n);
            Ok(())
        };
        let refuse = |_| Err(Errno::EPERM);
        let get = || Ok(size.get());
        assert_eq!(enlarge(400, set, set, get), Ok(1000));
        assert_eq!(enlarge(600, set, refuse, get), Ok(1200));
        assert_eq!(enlarge(700, refuse, set, get), Ok(1400));
        assert_eq!(enlarge(800, refuse, refuse, get), Err(Errno::EPERM));
    }
}
