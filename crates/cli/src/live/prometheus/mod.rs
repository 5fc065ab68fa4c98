//! The latest values, for Prometheus: its text format over HTTP, to this host only.

pub mod runs;
pub mod server;
pub mod tcp;

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::exit::Failure;
use crate::output;

/// Answers whoever asks until the program ends, each in a thread: nobody waits for somebody who
/// connects and asks nothing. `page` is made for each question.
///
/// # Errors
/// The address cannot be had.
pub fn serve(
    address: SocketAddr,
    page: impl Fn() -> String + Send + Sync + 'static,
) -> Result<(), Failure> {
    let failed = |e: io::Error| no_listener(address, &e);
    let listener = TcpListener::bind(address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    output::say(&format!("for Prometheus: http://{bound}/metrics"));
    let serve = move || answer_all(&listener, &Arc::new(page));
    named().spawn(serve).map_err(failed)?;
    Ok(())
}

fn answer_all(listener: &TcpListener, page: &Arc<impl Fn() -> String + Send + Sync + 'static>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // This process has no descriptor left: the connection waits.
            thread::sleep(SCRAPE_TIMEOUT);
            continue;
        };
        // Beyond these, and where no thread is to be had, a connection is closed.
        if Arc::strong_count(page) > MOST_AT_A_TIME {
            continue;
        }
        let page = Arc::clone(page);
        // Whoever is slow, or asks for something else, is left.
        let _ = named().spawn(move || answer(stream, &*page));
    }
}

fn named() -> thread::Builder {
    thread::Builder::new().name("prometheus".to_owned())
}

fn no_listener(address: SocketAddr, error: &io::Error) -> Failure {
    let failure = Failure::io(format!("cannot listen on {address}"), error);
    match (error.kind(), address.ip().is_loopback()) {
        (io::ErrorKind::AddrNotAvailable, true) => {
            failure.hint("the loopback interface is down: `ip link set lo up`")
        }
        (io::ErrorKind::AddrNotAvailable, false) => failure.hint(
            "no interface of this host that is up has that address: `ip address` lists those there \
             are",
        ),
        _ => failure.hint("choose another port for `--prometheus`"),
    }
}

fn answer(mut stream: TcpStream, page: &impl Fn() -> String) -> io::Result<()> {
    stream.set_write_timeout(Some(SCRAPE_TIMEOUT))?;
    let until = Instant::now() + SCRAPE_TIMEOUT;
    let mut request = [0; 4096];
    let mut n = 0;
    // A request ends with an empty line; one that is longer, or comes byte by byte, is left.
    while n < request.len() && !request[..n].windows(4).any(|w| w == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        // An error if none is left.
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut request[n..])? {
            0 => break,
            more => n += more,
        }
    }
    let (status, body) = match request[..n].starts_with(b"GET /metrics ") {
        true => ("200 OK", page()),
        false => ("404 Not Found", "ask for /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Of a scrape, for its whole request and for each write of the answer.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(1);
/// Connections at a time.
const MOST_AT_A_TIME: usize = 64;

/// A page in the text format of Prometheus.
#[derive(Debug, Default)]
pub struct Page(String);

/// What kind of metric a family is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A value that only grows, until what it counts begins anew.
    Counter,
}

impl Page {
    /// Adds a family of samples, each with its labels (`flow="main"`), under `fullpipe_NAME`.
    pub fn family(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (String, f64)>,
    ) {
        let word = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let out = &mut self.0;
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP fullpipe_{name} {help}.");
        let _ = writeln!(out, "# TYPE fullpipe_{name} {word}");
        for (labels, value) in samples {
            let _ = match labels.as_str() {
                "" => writeln!(out, "fullpipe_{name} {value}"),
                labels => writeln!(out, "fullpipe_{name}{{{labels}}} {value}"),
            };
        }
    }

    /// The text.
    pub fn text(self) -> String {
        self.0
    }
}

/// Labels of a sample.
pub fn labels(all: &[(&str, &str)]) -> String {
    let all = all.iter().map(|(name, value)| {
        let value = value.replace('\\', "\\\\");
        let value = value.replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    all.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_there_is_told_from_a_port_that_is_taken() {
        let hint = |address: &str, kind: io::ErrorKind| {
            let failure = no_listener(address.parse().unwrap(), &kind.into());
            failure.hints.concat()
        };
        let away = io::ErrorKind::AddrNotAvailable;
        assert!(hint("127.0.0.1:9111", away).contains("`ip link set lo up`"));
        assert!(hint("192.0.2.1:9111", away).contains("`ip address`"));
        assert!(hint("127.0.0.1:9111", io::ErrorKind::AddrInUse).contains("another port"));
    }

    #[test]
    fn nobody_waits_for_connections_that_ask_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || answer_all(&listener, &Arc::new(|| "a page\n".to_owned())));
        let begun = Instant::now();
        let idle: Vec<_> = (0..30)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut asking = TcpStream::connect(address).unwrap();
        asking.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("a page\n"), "{answer}");
        // One after the other they would have had a second each.
        assert!(begun.elapsed() < Duration::from_secs(15));
        drop(idle);
    }

    /// Every line of a page is a comment or a sample.
    pub(super) fn holds(page: &str) {
        assert!(page.ends_with('\n'), "{page}");
        for line in page.lines() {
            let sample = line
                .strip_prefix("fullpipe_")
                .and_then(|l| l.rsplit_once(' '));
            let is_sample = sample.is_some_and(|(_, value)| value.parse::<f64>().is_ok());
            assert!(line.starts_with("# ") || is_sample, "{line}");
        }
    }

    #[test]
    fn labels_are_escaped() {
        assert_eq!(
            labels(&[("a", "x\"y\\z\n"), ("b", "c")]),
            r#"a="x\"y\\z\n",b="c""#
        );
        let mut page = Page::default();
        page.family(Kind::Gauge, "x", "Help", [(String::new(), 1.5)]);
        let page = page.text();
        assert_eq!(
            page,
            "# HELP fullpipe_x Help.\n# TYPE fullpipe_x gauge\nfullpipe_x 1.5\n"
        );
        holds(&page);
    }
}
