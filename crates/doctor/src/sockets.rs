//! UDP over loopback, and what of it the network card or the kernel may do in one go.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::Finding;

/// Tries all of it.
pub fn examine() -> Vec<Finding> {
    vec![
        loopback("UDP over IPv4", Ipv4Addr::LOCALHOST.into()),
        loopback("UDP over IPv6", Ipv6Addr::LOCALHOST.into()),
        segmentation(),
        merging(),
        buffers(),
    ]
}

fn pair(address: IpAddr) -> io::Result<[UdpSocket; 2]> {
    let [near, far] = [
        UdpSocket::bind((address, 0))?,
        UdpSocket::bind((address, 0))?,
    ];
    near.connect(far.local_addr()?)?;
    far.connect(near.local_addr()?)?;
    far.set_read_timeout(Some(DATAGRAM_TIMEOUT))?;
    Ok([near, far])
}

/// Time that a datagram over loopback may take.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(1);

fn loopback(name: &str, address: IpAddr) -> Finding {
    let arrived = pair(address).and_then(|[near, far]| {
        near.send(b"doctor")?;
        far.recv(&mut [0; 16])
    });
    match (arrived, address.is_ipv6()) {
        (Ok(_), _) => Finding::yes(name, "a datagram came through"),
        (Err(e), true) => Finding::limited(name, e.to_string())
            .remedy("sudo sysctl net.ipv6.conf.lo.disable_ipv6=0"),
        (Err(e), false) => Finding::no(name, e).remedy("sudo ip link set lo up"),
    }
}

fn segmentation() -> Finding {
    const NAME: &str = "many datagrams in one call (UDP_SEGMENT)";
    const EACH: usize = 1_200;
    let lengths = || {
        let [near, far] = pair(Ipv4Addr::LOCALHOST.into())?;
        setsockopt(&near, sockopt::UdpGsoSegment, &(EACH as i32))?;
        near.send(&[0; 3 * EACH])?;
        let mut buffer = [0; 4 * EACH];
        Ok::<_, io::Error>([far.recv(&mut buffer)?, far.recv(&mut buffer)?])
    };
    match lengths() {
        Ok([EACH, EACH]) => Finding::yes(NAME, "three became three"),
        Ok(lengths) => Finding::limited(NAME, format!("lengths {lengths:?} arrived")),
        Err(e) => Finding::limited(NAME, format!("{e}: each costs a call of its own"))
            .remedy("Linux 4.18 or later has it"),
    }
}

fn merging() -> Finding {
    const NAME: &str = "datagrams merged on arrival (UDP_GRO)";
    let set = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| Ok(setsockopt(&socket, sockopt::UdpGroSegment, &true)?));
    match set {
        Ok(()) => Finding::yes(NAME, "accepted"),
        Err(e) => Finding::limited(NAME, e.to_string()).remedy("Linux 5.0 or later has it"),
    }
}

/// One round trip of 100 ms at 1 Gbit/s is 12.5 MB; a socket needs room for what waits while its
/// thread does not run, some 10 ms.
const ROOM: usize = 1 << 20;

fn buffers() -> Finding {
    const NAME: &str = "socket buffers";
    let granted = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        setsockopt(&socket, sockopt::RcvBuf, &ROOM)?;
        // The kernel doubles what it grants (socket(7)).
        Ok(getsockopt(&socket, sockopt::RcvBuf)? / 2)
    });
    match granted {
        Err(e) => Finding::no(NAME, e),
        Ok(bytes) => {
            let found = format!("{} kB of {} kB", bytes / 1024, ROOM / 1024);
            match bytes >= ROOM {
                true => Finding::yes(NAME, found),
                false => Finding::limited(NAME, found + ": losses at high rates")
                    .remedy("sudo sysctl net.core.rmem_max=4194304 net.core.wmem_max=4194304"),
            }
        }
    }
}
