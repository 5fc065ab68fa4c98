//! From flags to a scenario: data from memory to memory.

use std::num::NonZeroU32;

use fullpipe_units::Span;

use super::document::{Document, MAIN, parts};
use crate::args::{Format, Send};
use crate::exit::{Exit, Failure};
use crate::live::lines::Shown;

/// The scenario that the flags describe.
/// `rtt`: what the handshake took, the best that is known of the path; `size`: that of a file.
///
/// # Errors
/// A flag cannot be read.
pub fn document(args: &Send, host: &str, rtt: Span) -> Result<Document, Failure> {
    let mut d = Document::new("send", &about(args, host));
    duration(&mut d, args, rtt)?;
    path(&mut d, rtt);
    d.table("[measure]");
    d.text("interval", &interval(args)?, "--interval");
    let direction = if args.reverse { "reverse" } else { "forward" };
    match args.request {
        Some(segments) => {
            d.table("[[traffic]]");
            d.text("name", REQUESTS, "");
            d.keys_are_of(format!("traffic.{REQUESTS}"));
            d.text("kind", "short-flows", "");
            d.text("direction", direction, "--reverse");
            d.text("size", &format!("{segments} segments"), "--request");
            d.text("every", &args.every, "--every");
            if let Some(count) = args.count {
                let stop = span(&args.every, "--every")? * u64::from(count.get());
                d.text("stop", &stop.to_string(), "--count");
            }
            transport(&mut d, args);
        }
        None if args.only_traffic => {}
        None => {
            d.table("[[flow]]");
            d.text("name", MAIN, "");
            d.plain(
                "streams",
                args.streams.unwrap_or(NonZeroU32::MIN),
                "--streams",
            );
            d.text("direction", direction, "--reverse");
            sender(&mut d, args);
            if args.bidir {
                d.table("[[flow]]");
                d.text("name", BACK, "");
                d.plain(
                    "streams",
                    args.streams.unwrap_or(NonZeroU32::MIN),
                    "--streams",
                );
                d.text("direction", "reverse", "--bidir");
                sender(&mut d, args);
            }
        }
    }
    for (i, text) in args.traffic.iter().enumerate() {
        traffic(&mut d, args, i, text)?;
    }
    set(&mut d, args);
    let of_traffic = |key: &str| key.starts_with("traffic.") && key.ends_with(".load");
    if d.sets(of_traffic) && !d.sets(|key| key == "path.rate") {
        let message = "--traffic: `load` is a part of a capacity that nobody knows";
        let hint = "write `per_second=5`, or name the capacity: `--set path.rate=1Gbit/s`";
        return Err(Failure::new(Exit::Usage, message).hint(hint));
    }
    Ok(d)
}

/// The scenario of a copy of `size` bytes.
///
/// # Errors
/// A flag cannot be read.
pub fn of_file(args: &Send, about: &str, reverse: bool, size: u64) -> Result<Document, Failure> {
    let mut d = Document::new("send", about);
    d.text("duration", args.time.as_deref().unwrap_or(LONG), "--time");
    path(&mut d, Span::from_millis(1));
    d.table("[measure]");
    d.text("interval", &interval(args)?, "--interval");
    d.table("[[flow]]");
    d.text("name", MAIN, "");
    d.text("direction", if reverse { "reverse" } else { "forward" }, "");
    d.text("size", &format!("{}B", size.max(1)), "");
    transport(&mut d, args);
    set(&mut d, args);
    Ok(d)
}

/// A span of a flag.
///
/// # Errors
/// It cannot be read.
pub fn span(text: &str, flag: &str) -> Result<Span, Failure> {
    text.parse().map_err(|e| {
        let message = format!("{flag}: `{text}`: {e}");
        Failure::new(Exit::Usage, message).hint(match text.parse::<f64>() {
            Ok(seconds) if seconds > 0.0 => format!("write `{text}s`"),
            _ => "write for example `10s` or `200ms`".to_owned(),
        })
    })
}

fn about(args: &Send, host: &str) -> String {
    match (args.reverse, args.request, args.only_traffic) {
        (_, _, true) => format!("cross traffic with {host}"),
        (false, None, _) if args.bidir => format!("memory to memory, to {host} and back"),
        (false, None, _) => format!("memory to memory, to {host}"),
        (true, None, _) => format!("memory to memory, from {host}"),
        (false, Some(_), _) => format!("requests of {host}"),
        (true, Some(_), _) => format!("responses from {host}"),
    }
}

/// Of datagrams alone: how long the last ones may take, when none are sent any more.
fn tail(rtt: Span) -> Span {
    (rtt * 2).max(LEAST_TAIL)
}

fn duration(d: &mut Document, args: &Send, rtt: Span) -> Result<(), Failure> {
    if args.only_traffic {
        let time = span(args.time.as_deref().unwrap_or("10s"), "--time")?;
        let all = time + tail(rtt);
        d.text("duration", &all.to_string(), "--time");
        return Ok(());
    }
    let default = match (&args.size, args.request.and(args.count)) {
        (Some(_), _) => LONG.to_owned(),
        // The last one has as long as the one before, and two seconds.
        (None, Some(count)) => {
            let all = span(&args.every, "--every")? * (u64::from(count.get()) + 1);
            (all + Span::from_secs(2)).to_string()
        }
        (None, None) => "10s".to_owned(),
    };
    d.text(
        "duration",
        args.time.as_deref().unwrap_or(&default),
        "--time",
    );
    Ok(())
}

/// The path is what it is. What a scenario says of one is used only to count windows in BDP and to
/// say how much longer than an empty path's a round-trip time was. Its buffer fits any rate that is
/// set for the BDP.
fn path(d: &mut Document, rtt: Span) {
    d.table("[path]");
    d.text("rate", "100Gbit/s", "");
    d.text("buffer", BUFFER, "");
    d.text("rtt", &rtt.max(Span::from_nanos(1)).to_string(), "");
}

pub(super) fn interval(args: &Send) -> Result<String, Failure> {
    let interval = lines(args)?;
    // A run shorter than a few intervals has shorter ones.
    let most = match &args.time {
        Some(time) => span(time, "--time")? / 4,
        None => interval,
    };
    let interval = interval.min(most).max(SHORTEST);
    Ok(interval.to_string())
}

/// Time between two lines on the terminal.
pub(super) fn lines(args: &Send) -> Result<Span, Failure> {
    let text = args.interval.as_deref().unwrap_or(INTERVAL);
    match span(text, "--interval")? {
        short if short < SHORTEST => {
            let message = format!("--interval: `{text}` is less than {SHORTEST}");
            Err(Failure::new(Exit::Usage, message).hint("write for example `1s` or `100ms`"))
        }
        interval => Ok(interval),
    }
}

/// What is shown while it runs: what was asked for, else what can be seen.
pub(super) fn shown(args: &Send) -> Result<Shown, Failure> {
    let every = lines(args)?;
    Ok(match (args.format(), &args.interval) {
        (Format::Ndjson, _) => Shown::Objects(every),
        (_, Some(_)) if !args.quiet => Shown::Lines(every),
        _ => Shown::for_people(args.quiet || args.live.dashboard),
    })
}

/// What of a flow is of its sender.
fn sender(d: &mut Document, args: &Send) {
    if let Some(size) = &args.size {
        d.text("size", size, "--size");
    }
    transport(d, args);
}

fn transport(d: &mut Document, args: &Send) {
    d.text("stack", args.stack(), "--stack");
    if let Some(window) = &args.window {
        d.text("window", window, "--window");
    }
    if let Some(rate) = args.rate_cap() {
        d.text("rate", rate, "--bitrate");
    }
}

fn traffic(d: &mut Document, args: &Send, index: usize, text: &str) -> Result<(), Failure> {
    let name = match index {
        0 => "cross".to_owned(),
        n => format!("cross-{}", n + 1),
    };
    let all = parts(text);
    let kind = match all[0] {
        short @ ("on-off" | "sine" | "blast" | "staircase" | "file") => format!("udp-{short}"),
        kind => kind.to_owned(),
    };
    d.table("[[traffic]]");
    d.text("name", &name, "");
    d.text("kind", &kind, "--traffic");
    // Datagrams and pings leave here.
    let turns = args.reverse && kind == "short-flows";
    if turns && !all.iter().any(|p| p.starts_with("direction")) {
        d.text("direction", "reverse", "--reverse");
    }
    let mut rated = false;
    // What is sent last arrives, too, and is not taken for lost.
    if args.only_traffic && !all.iter().any(|p| p.starts_with("stop")) {
        d.text("stop", args.time.as_deref().unwrap_or("10s"), "--time");
    }
    for part in &all[1..] {
        let Some((key, value)) = part.split_once('=') else {
            let message = format!("--traffic: `{part}`: expected KEY=VALUE");
            return Err(Failure::new(Exit::Usage, message)
                .hint("write for example `--traffic udp,rate=50Mbit/s,spacing=poisson`"));
        };
        let (key, value) = (key.trim(), value.trim());
        rated |= matches!(key, "rate" | "mean");
        d.set(&format!("traffic.{name}.{key}"), value);
    }
    if let Some(rate) = args.rate.as_deref().filter(|_| !rated) {
        match kind.as_str() {
            "udp" | "udp-on-off" | "udp-blast" => d.text("rate", rate, "--rate"),
            "udp-sine" => d.text("mean", rate, "--rate"),
            _ => {}
        }
    }
    Ok(())
}

fn set(d: &mut Document, args: &Send) {
    for (key, value) in &args.set {
        d.set(key, value);
    }
}

/// Of a path whose buffer nobody knows.
pub(super) const BUFFER: &str = "1000 packets";
/// Queues of a congested path hold datagrams longer than a short round trip.
const LEAST_TAIL: Span = Span::from_millis(500);
/// Name of the short flows of `--request`.
const REQUESTS: &str = "requests";
/// Name of the flow from the server that `--bidir` adds.
const BACK: &str = "back";
/// Between two lines of a run in progress.
const INTERVAL: &str = "1s";
/// The shortest of them: series have no rows that are closer.
const SHORTEST: Span = Span::from_millis(10);
/// Of a transfer that ends by itself.
const LONG: &str = "24h";
