//! `fullpipe observe`: flows of the running kernel, to a table, to NDJSON, to Prometheus, to a
//! trace.

pub mod policies;
pub mod trace;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fullpipe_observe::tcp_info::{MIN_RTT, RTT, SND_CWND};
use fullpipe_observe::{FIELDS, Observation, ObserveError, Observer, Tuned};
use fullpipe_trace::TraceError;
use fullpipe_units::Time;
use serde_json::Value;

use self::policies::{Policies, Tunings};
use self::trace::{Sample, Traced};
use crate::args::{Observe, ObserveFormat};
use crate::exit::{Exit, Failure};
use crate::live::prometheus::{self, tcp};
use crate::output;
use crate::table::{Align, Table, number};

/// Runs the command.
pub fn observe(args: &Observe) -> Result<Exit, Failure> {
    let observer = Observer::new(args.look.filter()).map_err(|e| failed(&e))?;
    let mut observer = match args.processes {
        true => observer.with_processes(),
        false => observer,
    };
    let interval = args.look.interval();
    let policies = Policies::begin(&args.tuner.state, interval);
    let laws = !policies.latest().is_empty();
    let begun = |file| Traced::begin(Some(file), laws);
    let traced = args.trace.as_deref().map(begun).transpose();
    let mut traced = traced.map_err(|e| unwritten(args, &e))?;
    let shown = Arc::new(Mutex::new(String::new()));
    if let Some(address) = args.prometheus {
        let page = Arc::clone(&shown);
        prometheus::serve(address, move || lock(&page).clone())?;
    }
    let stop = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    stop.map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for Ctrl-C: {e}")))?;
    let end = args.duration.map(|d| Duration::from_nanos(d.as_nanos()));
    let begin = Instant::now();
    let mut due = Duration::ZERO;
    let mut is_said = false;
    loop {
        let now = begin.elapsed();
        let flows = observer.observe(now).map_err(|e| failed(&e))?;
        if !is_said && flows.is_empty() {
            is_said = say_what_is_left(observer.left_within_host());
        }
        let tunings = policies.latest();
        if args.prometheus.is_some() {
            *lock(&shown) = tcp::page(&flows, &tunings);
        }
        if let Some(traced) = &mut traced {
            look(traced, now, &flows, &tunings).map_err(|e| unwritten(args, &e))?;
        }
        let text = match args.format {
            // The first look is what the second is held against.
            ObserveFormat::Table if due.is_zero() => String::new(),
            ObserveFormat::Table => table(now, &flows, &tunings),
            ObserveFormat::Ndjson => objects(now, &flows, &tunings),
        };
        // What is traced so far is kept.
        if !output::more(&text)? {
            break;
        }
        if end.is_some_and(|end| due >= end) {
            break;
        }
        due = next(begin.elapsed(), interval).min(end.unwrap_or(Duration::MAX));
        if !sleep_until(begin, due) {
            break;
        }
    }
    if let Some(traced) = traced {
        let rows = traced.finish(0).map_err(|e| unwritten(args, &e))?;
        let file = args.trace.as_deref().unwrap_or(Path::new(""));
        output::say(&format!("trace: {} ({rows} rows)", file.display()));
    }
    Ok(Exit::Ok)
}

/// Where all flows are within this host an empty table looks as if there were none. True once it
/// has been said.
fn say_what_is_left(within_host: usize) -> bool {
    let flows = match within_host {
        0 => return false,
        1 => "the only flow is".to_owned(),
        n => format!("all {n} flows are"),
    };
    output::hint(&format!(
        "{flows} within this host: `--loopback` shows them"
    ));
    true
}

/// A panic while it was held leaves an old page or a new one.
fn lock(page: &Mutex<String>) -> MutexGuard<'_, String> {
    page.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every flow of a look as a row.
fn look(
    traced: &mut Traced,
    now: Duration,
    flows: &[Observation],
    tunings: &Tunings,
) -> Result<(), TraceError> {
    let at = Time::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    for flow in flows {
        let tuned = tunings.get(&flow.socket.cookie);
        let law = tuned.map_or([None; 2], |t| [t.a, t.b]);
        let sample = Sample {
            at,
            cookie: flow.socket.cookie,
            name: &name(flow),
            stack: &flow.socket.congestion,
            info: &flow.socket.info,
            law: law.map(|x| x.unwrap_or(f64::NAN)),
        };
        traced.take(&sample, |_| ())?;
    }
    let there: HashSet<u64> = flows.iter().map(|f| f.socket.cookie).collect();
    traced.retain(|cookie| there.contains(&cookie));
    Ok(())
}

fn unwritten(args: &Observe, error: &TraceError) -> Failure {
    let file = args.trace.as_deref().unwrap_or(Path::new(""));
    let message = format!("cannot write the trace {}: {error}", file.display());
    Failure::new(Exit::Environment, message)
}

/// The next look: one that came late does not delay those after it, and what was missed is missed.
pub(super) fn next(now: Duration, interval: Duration) -> Duration {
    let passed = now.as_nanos() / interval.as_nanos();
    let nanos = (passed + 1).saturating_mul(interval.as_nanos());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// False if somebody has interrupted it.
fn sleep_until(begin: Instant, due: Duration) -> bool {
    loop {
        if STOP.load(Ordering::Relaxed) {
            return false;
        }
        match due.saturating_sub(begin.elapsed()) {
            Duration::ZERO => return true,
            rest => std::thread::sleep(rest.min(GLANCE)),
        }
    }
}

/// Set by Ctrl-C.
static STOP: AtomicBool = AtomicBool::new(false);
/// Longest sleep without a look at an interruption.
const GLANCE: Duration = Duration::from_millis(50);

pub(super) fn failed(error: &ObserveError) -> Failure {
    let failure = Failure::new(Exit::Environment, error.to_string());
    match error {
        ObserveError::Unavailable(_) => {
            failure.hint("the kernel needs INET_DIAG and INET_TCP_DIAG (`modprobe tcp_diag`)")
        }
        _ => failure,
    }
}

fn table(now: Duration, flows: &[Observation], tunings: &Tunings) -> String {
    let many = match flows.len() {
        1 => "1 flow".to_owned(),
        n => format!("{n} flows"),
    };
    let head = format!("{:.1} s, {many}\n", now.as_secs_f64());
    if flows.is_empty() {
        return head;
    }
    let named = flows.iter().any(|f| f.process.is_some());
    let mut table = Table::new();
    table.column(Align::Left, &["flow"]);
    if named {
        table.column(Align::Left, &["process"]);
    }
    table.column(Align::Left, &["congestion", "control"]);
    let tuned = |f: &Observation| tunings.get(&f.socket.cookie);
    let of_policy = flows.iter().any(|f| tuned(f).is_some());
    if of_policy {
        table.column(Align::Left, &["policy"]);
        table.column(Align::Right, &["a", "segments"]);
        table.column(Align::Right, &["b"]);
    }
    for (head, unit) in [
        ("window", "segments"),
        ("RTT", "ms"),
        ("min", "ms"),
        ("sent", "Mbit/s"),
        ("received", "Mbit/s"),
        ("resent", "segments"),
    ] {
        table.column(Align::Right, &[head, unit]);
    }
    table.column(Align::Left, &["limited by"]);
    for flow in flows {
        let info = &flow.socket.info;
        let none = || "-".to_owned();
        let shown = |x: Option<f64>| x.map_or_else(none, |x| number(x, 4));
        let millis = |field| shown(info.get(field).map(|us| us as f64 / 1000.0));
        let mut row = vec![name(flow)];
        if named {
            let process = flow.process.as_ref();
            row.push(process.map_or_else(none, |p| p.name.clone()));
        }
        row.push(flow.socket.congestion.clone());
        if of_policy {
            let t = tuned(flow);
            row.push(t.map_or_else(none, policy));
            row.push(shown(t.and_then(|t| t.a)));
            row.push(shown(t.and_then(|t| t.b)));
        }
        row.extend([
            info.get(&SND_CWND)
                .map_or_else(none, |w| number(w as f64, 1)),
            millis(&RTT),
            millis(&MIN_RTT),
            shown(flow.sending_rate().map(|bits| bits / 1e6)),
            shown(flow.receiving_rate().map(|bits| bits / 1e6)),
            flow.retransmits().map_or_else(none, |n| n.to_string()),
            flow.limited_by()
                .map_or("-", |limit| limit.word())
                .to_owned(),
        ]);
        table.row(row);
    }
    head + &table.text() + "\n"
}

/// The path, and whether the flow was left as it was, for comparison.
pub(super) fn policy(tuned: &Tuned) -> String {
    match tuned.control {
        true => format!("{} (control)", tuned.path),
        false => tuned.path.clone(),
    }
}

pub(super) fn name(flow: &Observation) -> String {
    format!("{} -> {}", flow.socket.local, flow.socket.remote)
}

/// A line per flow. Written and not built: with a thousand flows, trees of values took ten times as
/// long as asking the kernel.
fn objects(now: Duration, flows: &[Observation], tunings: &Tunings) -> String {
    let mut out = String::with_capacity(flows.len() * 2000);
    for flow in flows {
        object(&mut out, now, flow, tunings.get(&flow.socket.cookie));
        out.push('\n');
    }
    out
}

fn object(out: &mut String, now: Duration, flow: &Observation, tuned: Option<&Tuned>) {
    let (socket, info) = (&flow.socket, &flow.socket.info);
    let process = flow.process.as_ref();
    let mbps = |rate: Option<f64>| rate.map_or_else(null, |bits| (bits / 1e6).to_string());
    let word = flow.limited_by().map(|limit| text(limit.word()));
    let of = |x: fn(&Tuned) -> Option<f64>| tuned.and_then(x).map_or_else(null, |x| x.to_string());
    let members: [(&str, String); 17] = [
        ("time_s", (now.as_micros() as f64 / 1e6).to_string()),
        ("flow", text(&name(flow))),
        ("cookie", text(&socket.cookie.to_string())),
        ("local", text(&socket.local.to_string())),
        ("remote", text(&socket.remote.to_string())),
        ("uid", socket.uid.to_string()),
        ("pid", process.map_or_else(null, |p| p.pid.to_string())),
        ("process", process.map_or_else(null, |p| text(&p.name))),
        ("congestion_control", text(&socket.congestion)),
        ("path", tuned.map_or_else(null, |t| text(&t.path))),
        (
            "control",
            tuned.map_or_else(null, |t| t.control.to_string()),
        ),
        ("a_segments", of(|t| t.a)),
        ("b_fraction", of(|t| t.b)),
        ("limited_by", word.unwrap_or_else(null)),
        ("sent_mbps", mbps(flow.sending_rate())),
        ("received_mbps", mbps(flow.receiving_rate())),
        (
            "resent_segments",
            flow.retransmits().map_or_else(null, |n| n.to_string()),
        ),
    ];
    let mut separator = '{';
    // Writing to a string cannot fail.
    for (key, value) in members {
        let _ = write!(out, "{separator}\"{key}\":{value}");
        separator = ',';
    }
    let buffer = socket.send_buffer.map_or_else(null, |n| n.to_string());
    let _ = write!(out, ",\"send_buffer_bytes\":{buffer}");
    let fields = FIELDS.iter().zip(info.all());
    let fields = fields.filter_map(|(f, value)| Some((f.name, value?)));
    numbers(out, "tcp_info", fields);
    numbers(out, "rfc4898", info.rfc4898());
    out.push('}');
}

/// A member that is an object of numbers.
fn numbers(out: &mut String, key: &str, members: impl Iterator<Item = (&'static str, u64)>) {
    let _ = write!(out, ",\"{key}\":{{");
    for (i, (name, value)) in members.enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{name}\":{value}");
    }
    out.push('}');
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

fn null() -> String {
    "null".to_owned()
}

#[cfg(test)]
mod tests {
    use fullpipe_observe::Socket;
    use fullpipe_observe::tcp_info::TcpInfo;

    use super::*;

    #[test]
    fn an_object_is_json_whatever_a_name_holds() {
        let mut bytes = vec![0; 248];
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        let flow = Observation {
            socket: Socket {
                congestion: "a\"b\\c\u{1}".to_owned(),
                info: TcpInfo::new(&bytes),
                cookie: 0x1002,
                ..Socket::default()
            },
            process: None,
            since: Some((Duration::from_secs(1), TcpInfo::new(&bytes))),
        };
        let tuned = Tuned {
            path: "lab".to_owned(),
            b: Some(0.125),
            ..Tuned::default()
        };
        let tunings = Tunings::from([(flow.socket.cookie, tuned)]);
        let flows = [flow];
        let line = objects(Duration::from_millis(1500), &flows, &tunings);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["time_s"], 1.5);
        assert_eq!(value["cookie"], "4098", "as `tune flows` has it");
        assert_eq!(value["congestion_control"], "a\"b\\c\u{1}");
        assert_eq!(value["tcp_info"]["snd_cwnd"], 10);
        assert_eq!(value["sent_mbps"], 0);
        assert_eq!(value["limited_by"], Value::Null);
        assert_eq!(value["rfc4898"]["CurCwnd"], 0);
        assert_eq!(value["path"], "lab");
        assert_eq!(value["a_segments"], Value::Null);
        assert_eq!(value["b_fraction"], 0.125);
        let table = table(Duration::from_secs(1), &flows, &tunings);
        let head = table.lines().nth(1).unwrap();
        assert!(
            head.contains("policy") && table.contains(" lab "),
            "{table}"
        );
        let plain = super::table(Duration::from_secs(1), &flows, &Tunings::new());
        assert!(!plain.contains("policy"), "{plain}");
    }

    #[test]
    fn a_late_look_does_not_delay_the_next() {
        let ms = Duration::from_millis;
        assert_eq!(next(ms(0), ms(100)), ms(100));
        assert_eq!(next(ms(130), ms(100)), ms(200));
        assert_eq!(next(ms(200), ms(100)), ms(300));
        assert_eq!(
            next(ms(1234), ms(100)),
            ms(1300),
            "what was missed is missed"
        );
    }
}
