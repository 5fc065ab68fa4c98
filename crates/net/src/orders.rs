//! Orders to flows that run: a Unix socket in the file system takes words from other programs of
//! the same user and hands changes to the endpoint.
//!
//! A connection carries one request, a line: `show`, or `set FLOW WORDS` with the words of
//! [`Change::parse`]; `*` is every flow. The answer is a line per flow, its fields separated by
//! tabs: name, stack, congestion window in segments, smoothed RTT in milliseconds; `-` for what is
//! not known. A request that cannot be granted changes nothing and is answered with a line
//! `error: WHY`, and perhaps a line `hint: WHAT`.
//!
//! Only the user who runs the flows, and root, are answered: the socket's mode is 0600, and the
//! kernel's word for the peer is asked for.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, str};

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Change, ChangeError};
use fullpipe_realtime::live::Live;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

/// A flow that takes orders.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// Index of the flow in the specification.
    pub flow: u32,
    /// Name of the flow.
    pub name: String,
    /// Stack after the orders so far, which the next one's parameters belong to.
    pub stack: StackSpec,
    /// Payload of a segment, bytes.
    pub mss: u32,
}

/// A socket that takes orders, and goes with this value.
#[derive(Debug)]
pub struct Orders {
    listener: UnixListener,
    path: PathBuf,
}

/// Longest request, bytes.
const LONGEST: u64 = 4096;
/// How long a client may take over its line.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);

impl Orders {
    /// Listens at `path`. A socket that nobody listens at any more is replaced.
    ///
    /// # Errors
    /// The path holds something else, or cannot be had.
    pub fn listen(path: &Path) -> io::Result<Self> {
        if let Ok(found) = fs::symlink_metadata(path) {
            if !found.file_type().is_socket() {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "there is a file of this name",
                ));
            }
            if UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another program listens there",
                ));
            }
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        let path = path.to_owned();
        Ok(Self { listener, path })
    }

    /// Answers clients, one after the other, until [`Orders::end`].
    pub fn serve(&self, live: &Live, flows: &mut [Ordered], over: &AtomicBool) {
        for client in self.listener.incoming() {
            if over.load(Ordering::Acquire) {
                return;
            }
            // A client that breaks off, or is another user's, gets no answer.
            if let Ok(client) = client
                && is_ours(&client)
            {
                let _ = answer(&client, live, flows);
            }
        }
    }

    /// Ends [`Orders::serve`] on another thread.
    pub fn end(&self, over: &AtomicBool) {
        over.store(true, Ordering::Release);
        let _ = UnixStream::connect(&self.path);
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn is_ours(client: &UnixStream) -> bool {
    let uid = getsockopt(client, PeerCredentials).map(|peer| peer.uid());
    uid.is_ok_and(|uid| uid == 0 || uid == geteuid().as_raw())
}

fn answer(mut client: &UnixStream, live: &Live, flows: &mut [Ordered]) -> io::Result<()> {
    client.set_write_timeout(Some(REQUEST_TIMEOUT))?;
    let within = Within {
        client,
        deadline: Instant::now() + REQUEST_TIMEOUT,
    };
    let mut line = Vec::new();
    BufReader::new(within.take(LONGEST)).read_until(b'\n', &mut line)?;
    let line = str::from_utf8(&line).unwrap_or_default();
    let text = match obey(line.trim(), live, flows) {
        Ok(()) => shown(live, flows),
        Err(refusal) => refusal,
    };
    client.write_all(text.as_bytes())
}

/// Reads until a deadline: a timeout of each read would begin anew with every byte.
struct Within<'c> {
    client: &'c UnixStream,
    deadline: Instant,
}

impl Read for Within<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(Some(left))?;
        self.client.read(into)
    }
}

/// Does what a request says, or says why not.
fn obey(request: &str, live: &Live, flows: &mut [Ordered]) -> Result<(), String> {
    if request == "show" {
        return Ok(());
    }
    let order = request.strip_prefix("set ");
    let Some((name, words)) = order.and_then(|rest| rest.trim().split_once(' ')) else {
        return Err("error: this is no request\nhint: write `show`, or `set FLOW WORDS`\n".into());
    };
    let is_meant = |f: &&mut Ordered| name == "*" || f.name == name;
    // All of them or none.
    let changes: Result<Vec<_>, _> = flows
        .iter_mut()
        .filter(is_meant)
        .map(|f| Change::parse(words, &f.stack, f.mss).map(|change| (f, change)))
        .collect();
    let changes = changes.map_err(|e: ChangeError| match e.hint() {
        Some(hint) => format!("error: {e}\nhint: {hint}\n"),
        None => format!("error: {e}\n"),
    })?;
    if changes.is_empty() {
        let known: Vec<&str> = flows.iter().map(|f| f.name.as_str()).collect();
        let known = known.join(", ");
        return Err(format!("error: no flow `{name}`\nhint: known: {known}\n"));
    }
    for (flow, change) in changes {
        if let Some(stack) = &change.stack {
            flow.stack = stack.clone();
        }
        live.order(flow.flow, change);
    }
    Ok(())
}

fn shown(live: &Live, flows: &[Ordered]) -> String {
    let latest = live.latest();
    let line = |f: &Ordered| {
        let now = latest.flows.get(f.flow as usize);
        let known = |x: Option<String>| x.unwrap_or_else(|| "-".to_owned());
        let cwnd = now.and_then(|n| n.cwnd).map(|w| format!("{w:.1}"));
        let srtt = now.and_then(|n| n.srtt);
        let srtt = srtt.map(|t| format!("{:.3}", t.as_secs_f64() * 1e3));
        format!(
            "{}\t{}\t{}\t{}\n",
            f.name,
            f.stack,
            known(cwnd),
            known(srtt)
        )
    };
    flows.iter().map(line).collect()
}

/// Makes a request at `path` and returns the lines of the answer.
///
/// # Errors
/// Nobody listens there, or the answer does not come.
pub fn ask(path: &Path, request: &str) -> io::Result<String> {
    if request.len() as u64 >= LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a request has at most {LONGEST} bytes"),
        ));
    }
    let mut server = UnixStream::connect(path)?;
    server.set_read_timeout(Some(REQUEST_TIMEOUT * 5))?;
    writeln!(server, "{request}")?;
    let mut text = String::new();
    server.read_to_string(&mut text)?;
    if text.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "no answer: these flows belong to another user, or are over",
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use fullpipe_flow::Ceiling;

    use super::*;

    fn flow(flow: u32, name: &str) -> Ordered {
        Ordered {
            flow,
            name: name.to_owned(),
            stack: StackSpec::parse("reno").unwrap(),
            mss: 1448,
        }
    }

    /// Answers to `requests`, in order, and the orders that followed.
    fn exchange(requests: &[&str]) -> (Vec<String>, Vec<(u32, Change)>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let orders = Orders::listen(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let (live, over) = (Live::default(), AtomicBool::new(false));
        let mut flows = [flow(0, "main.1"), flow(1, "main.2")];
        let answers = std::thread::scope(|scope| {
            scope.spawn(|| orders.serve(&live, &mut flows, &over));
            // A test that fails here would wait for the other thread.
            let answers: Vec<_> = requests.iter().map(|r| ask(&path, r)).collect();
            orders.end(&over);
            answers
        });
        let answers = answers.into_iter().map(Result::unwrap).collect();
        drop(orders);
        assert!(!path.exists(), "the socket goes with its owner");
        (answers, live.take_orders())
    }

    #[test]
    fn words_reach_the_flows() {
        let (answers, orders) = exchange(&["show", "set main.2 a=6", "set * b=0.3,rate=1Mbit/s"]);
        assert_eq!(answers[0], "main.1\treno\t-\t-\nmain.2\treno\t-\t-\n");
        assert_eq!(
            answers[2],
            "main.1\taimd(decrease=0.3)\t-\t-\nmain.2\taimd(increase=6,decrease=0.3)\t-\t-\n"
        );
        let of: Vec<u32> = orders.iter().map(|(flow, _)| *flow).collect();
        assert_eq!(of, [1, 0, 1]);
        let rate = Some(Ceiling::At("1Mbit/s".parse().unwrap()));
        assert_eq!((orders[0].1.rate, orders[2].1.rate), (None, rate));
    }

    #[test]
    fn what_cannot_be_granted_changes_nothing() {
        let requests = [
            "set * gamma=1",
            "set other a=6",
            "",
            "forget it",
            "set * b=2",
        ];
        let (answers, orders) = exchange(&requests);
        assert_eq!(
            answers[0],
            "error: `reno` has no parameter `gamma`\nhint: known: ecn_keep\n"
        );
        assert!(
            answers[1].contains("hint: known: main.1, main.2"),
            "{}",
            answers[1]
        );
        assert!(
            answers.iter().all(|a| a.starts_with("error: ")),
            "{answers:?}"
        );
        assert!(orders.is_empty());
        let long = format!("set * a={}", "6".repeat(5000));
        assert!(
            ask(Path::new("/nowhere"), &long)
                .unwrap_err()
                .to_string()
                .contains("4096")
        );
    }

    #[test]
    fn a_client_that_drips_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let orders = Orders::listen(&path).unwrap();
        let (live, over) = (Live::default(), AtomicBool::new(false));
        let mut flows = [flow(0, "main")];
        std::thread::scope(|scope| {
            scope.spawn(|| orders.serve(&live, &mut flows, &over));
            let mut slow = UnixStream::connect(&path).unwrap();
            // Each byte comes well within the time, a hundred do not.
            let refused = (0..100).any(|_| {
                std::thread::sleep(REQUEST_TIMEOUT / 10);
                slow.write_all(b"s").is_err()
            });
            drop(slow);
            orders.end(&over);
            assert!(refused);
        });
    }

    #[test]
    fn a_path_in_use_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(Orders::listen(&file).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"precious");
        let path = dir.path().join("control");
        let first = Orders::listen(&path).unwrap();
        assert!(Orders::listen(&path).is_err(), "somebody listens");
        // A program that was killed leaves its socket behind.
        let left = dir.path().join("left");
        drop(UnixListener::bind(&left).unwrap());
        Orders::listen(&left).unwrap();
        drop(first);
    }
}
