//! The receive window of a connection that is read.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

/// Has a socket offer `bytes` at most, connected or not; less where the host allows less
/// (`net.core.rmem_max`).
///
/// What was accepted has begun to offer what its listener had, and stays there: a buffer that is
/// set is not tuned, and ends the tuning of what is offered. That is raised by its own name.
pub fn offer(socket: &impl AsFd, bytes: usize) -> io::Result<()> {
    setsockopt(socket, sockopt::RcvBuf, &bytes)?;
    // Half of the buffer is for what the kernel needs beside the bytes.
    let granted = getsockopt(socket, sockopt::RcvBuf)? / 2;
    let clamp = i32::try_from(granted).unwrap_or(i32::MAX);
    Ok(setsockopt(socket, option::WindowClamp, &clamp)?)
}

mod option {
    // The macro calls others by their bare names.
    use nix::sys::socket::sockopt::SetStruct;
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// The most that is offered, bytes.
        WindowClamp,
        SetOnly,
        libc::IPPROTO_TCP,
        libc::TCP_WINDOW_CLAMP,
        i32,
        SetStruct<'_, i32>
    );
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use fullpipe_observe::{FIELDS, SocketDiag};

    use super::*;

    /// The largest window that is offered to a sender of 40 MB.
    fn offered(set: impl FnOnce(&TcpStream)) -> u64 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        set(&far);
        let reader = thread::spawn(move || {
            let mut chunk = vec![0; 1 << 16];
            while far.read(&mut chunk).unwrap() > 0 {}
        });
        let mut diag = SocketDiag::open().unwrap();
        let window = FIELDS.iter().find(|f| f.name == "snd_wnd").unwrap();
        let (local, remote) = (near.local_addr().unwrap(), near.peer_addr().unwrap());
        let mut most = 0;
        for _ in 0..40 {
            near.write_all(&vec![0; 1_000_000]).unwrap();
            let info = diag.connection(local, remote).unwrap();
            most = most.max(info.map_or(0, |socket| socket.info.count(window)));
        }
        drop(near);
        reader.join().unwrap();
        most
    }

    /// Less would be offered over the segments of a network, and not over this interface:
    /// `emulate::an_accepted_connection_offers_the_window_of_its_preset` looks at that.
    #[test]
    fn no_more_is_offered_than_was_asked_for() {
        // A page of bytes costs little beside them: up to the whole buffer is offered.
        for bytes in [300_000, 1_500_000] {
            let most = offered(|socket| offer(socket, bytes).unwrap()) as usize;
            assert!(most <= bytes * 21 / 10, "{bytes}: {most}");
        }
    }
}
