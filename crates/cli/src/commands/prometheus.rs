//! The latest values of flows, for Prometheus: its text format over HTTP, to this host only.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fullpipe_observe::tcp_info::{
    BUSY_TIME, BYTES_ACKED, BYTES_RECEIVED, DELIVERY_RATE, MIN_RTT, PACING_RATE, RTT, RWND_LIMITED,
    SND_CWND, SND_SSTHRESH, SNDBUF_LIMITED, TOTAL_RETRANS,
};
use fullpipe_observe::{Field, Observation};

use crate::exit::{Exit, Failure};
use crate::output;

/// Answers whoever asks, one after the other.
pub struct Exporter(Arc<Mutex<String>>);

impl Exporter {
    /// Listens until the program ends.
    pub fn listen(address: SocketAddr) -> Result<Self, Failure> {
        let failed = |e: &io::Error| {
            Failure::new(
                Exit::Environment,
                format!("cannot listen on {address}: {e}"),
            )
            .hint("choose another port for `--prometheus`")
        };
        let listener = TcpListener::bind(address).map_err(|e| failed(&e))?;
        let bound = listener.local_addr().map_err(|e| failed(&e))?;
        output::say(&format!("for Prometheus: http://{bound}/metrics"));
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        let serve = move || {
            for stream in listener.incoming().flatten() {
                // Whoever is slow, or asks for something else, is left.
                let _ = answer(stream, &shown);
            }
        };
        let thread = thread::Builder::new().name("prometheus".to_owned());
        thread.spawn(serve).map_err(|e| failed(&e))?;
        Ok(Self(page))
    }

    /// Shows these from now on.
    pub fn show(&self, flows: &[Observation]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = page(flows);
    }
}

fn answer(mut stream: TcpStream, page: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = [0; 4096];
    let (mut n, mut reads) = (0, 0);
    // A request ends with an empty line; one that is longer, or comes byte by byte, is left.
    while n < request.len() && reads < 64 && !request[..n].windows(4).any(|w| w == b"\r\n\r\n") {
        reads += 1;
        match stream.read(&mut request[n..])? {
            0 => break,
            more => n += more,
        }
    }
    let (status, body) = match request[..n].starts_with(b"GET /metrics ") {
        true => (
            "200 OK",
            page.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        ),
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

/// Longest wait for the other side.
const PATIENCE: Duration = Duration::from_secs(1);

/// A metric: name without prefix, kind, help, field, and its unit in that of the metric.
type Metric = (&'static str, &'static str, &'static str, Field, f64);

const METRICS: [Metric; 12] = [
    (
        "window_segments",
        "gauge",
        "Congestion window",
        SND_CWND,
        1.0,
    ),
    (
        "ssthresh_segments",
        "gauge",
        "Slow-start threshold",
        SND_SSTHRESH,
        1.0,
    ),
    (
        "rtt_seconds",
        "gauge",
        "Smoothed round-trip time",
        RTT,
        1e-6,
    ),
    (
        "min_rtt_seconds",
        "gauge",
        "Smallest round-trip time",
        MIN_RTT,
        1e-6,
    ),
    (
        "pacing_rate_bytes_per_second",
        "gauge",
        "Pacing rate",
        PACING_RATE,
        1.0,
    ),
    (
        "delivery_rate_bytes_per_second",
        "gauge",
        "Latest delivery rate",
        DELIVERY_RATE,
        1.0,
    ),
    (
        "acked_bytes_total",
        "counter",
        "Bytes acknowledged",
        BYTES_ACKED,
        1.0,
    ),
    (
        "received_bytes_total",
        "counter",
        "Bytes received",
        BYTES_RECEIVED,
        1.0,
    ),
    (
        "resent_segments_total",
        "counter",
        "Segments sent again",
        TOTAL_RETRANS,
        1.0,
    ),
    (
        "busy_seconds_total",
        "counter",
        "Time with data to send or in flight",
        BUSY_TIME,
        1e-6,
    ),
    (
        "receive_window_limited_seconds_total",
        "counter",
        "Time held back by the receive window",
        RWND_LIMITED,
        1e-6,
    ),
    (
        "send_buffer_limited_seconds_total",
        "counter",
        "Time held back by the send buffer",
        SNDBUF_LIMITED,
        1e-6,
    ),
];

fn page(flows: &[Observation]) -> String {
    let mut out = String::new();
    for (name, kind, help, field, unit) in METRICS {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP fullpipe_tcp_{name} {help}.");
        let _ = writeln!(out, "# TYPE fullpipe_tcp_{name} {kind}");
        for flow in flows {
            if let Some(value) = flow.socket.info.get(&field) {
                let value = value as f64 * unit;
                let _ = writeln!(out, "fullpipe_tcp_{name}{{{}}} {value}", labels(flow));
            }
        }
    }
    let _ = writeln!(
        out,
        "# HELP fullpipe_tcp_limited What limits the flow: 1 for what does."
    );
    let _ = writeln!(out, "# TYPE fullpipe_tcp_limited gauge");
    for flow in flows {
        if let Some(limit) = flow.limited_by() {
            let (labels, by) = (labels(flow), limit.word());
            let _ = writeln!(out, "fullpipe_tcp_limited{{{labels},by=\"{by}\"}} 1");
        }
    }
    out
}

fn labels(flow: &Observation) -> String {
    let socket = &flow.socket;
    let mut out = format!(
        "local=\"{}\",remote=\"{}\",congestion_control=\"{}\"",
        socket.local,
        socket.remote,
        escaped(&socket.congestion)
    );
    if let Some(process) = &flow.process {
        let _ = write!(out, ",process=\"{}\"", escaped(&process.name));
    }
    out
}

/// As label values are written.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\");
    text.replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use fullpipe_observe::{Socket, TcpInfo};

    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_sample() {
        let mut bytes = vec![0; 248];
        bytes[68..72].copy_from_slice(&20_000u32.to_ne_bytes());
        let flow = Observation {
            socket: Socket {
                congestion: "a\"b".to_owned(),
                info: TcpInfo::new(&bytes),
                ..Socket::default()
            },
            process: None,
            since: None,
        };
        let page = page(&[flow]);
        let sample = "fullpipe_tcp_rtt_seconds{local=\"0.0.0.0:0\",remote=\"0.0.0.0:0\",\
                      congestion_control=\"a\\\"b\"} 0.02";
        assert!(page.lines().any(|line| line == sample), "{page}");
        for line in page.lines() {
            assert!(
                line.starts_with("# ") || line.starts_with("fullpipe_tcp_"),
                "{line}"
            );
        }
    }
}
