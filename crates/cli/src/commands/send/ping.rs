//! `fullpipe ping`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_grounds::{Peer, within_bounds};
use fullpipe_net::session::client::Cut;
use fullpipe_realtime::live::Live;
use fullpipe_results::result::printed;
use fullpipe_run::CrossOutcome;
use fullpipe_units::{Bytes, Span, Time};
use serde_json::json;

use super::document::Document;
use super::target::{Server, habit};
use super::{INTERRUPT, listen_for_interrupts, memory, usage, wrong};
use crate::args::Ping;
use crate::args::ShortFormat;
use crate::commands::check::counted;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::peer;

/// Runs the command.
pub fn ping(args: &Ping) -> Result<Exit, Failure> {
    let server = Server::parse(&args.host).map_err(|why| {
        habit(&args.host)
            .into_iter()
            .fold(usage(why), Failure::hint)
    })?;
    let spec = document(args)?.scenario(None).map_err(wrong)?.cases[0].run_spec(1);
    within_bounds(&spec)?;
    let way = peer::way(&server, &args.peer)?;
    listen_for_interrupts("keeping what was measured")?;
    let name = way.name.clone();
    let (live, done) = (Arc::new(Live::default()), AtomicBool::new(false));
    let enough = AtomicBool::new(false);
    let mut ground = Peer::new(way, &enough);
    ground.live = Some(Arc::clone(&live));
    let lines = args.format == ShortFormat::Table && !args.quiet;
    if lines {
        output::data(&format!(
            "ping {name}: {} of {}\n",
            counted(args.count.get() as usize, "probe"),
            size(&args.size)
        ))?;
    }
    let awaited = Awaited {
        count: args.count.get() as usize,
        sent: sent(args)?,
    };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| watch(&live, lines, &awaited, &enough, &done));
        let outcome = ground.run_one(&spec);
        done.store(true, Ordering::Release);
        outcome
    });
    let outcome = outcome.map_err(Failure::from)?;
    let Some(ping) = outcome.cross.first() else {
        return Err(Failure::new(Exit::Internal, "no probes in the result"));
    };
    // An end that nobody asked for is that of the watch.
    let is_whole = |why: &String| {
        !INTERRUPT.load(Ordering::Relaxed) && why.starts_with(Cut::Interrupted.text())
    };
    let partial = outcome.partial.clone().filter(|why| !is_whole(why));
    let summary = Summary::new(ping, partial);
    output::data(&match args.format {
        ShortFormat::Table => summary.text(),
        ShortFormat::Json => summary.json(&name),
    })?;
    if let Some(why) = &summary.partial {
        let exit = match INTERRUPT.load(Ordering::Relaxed) {
            true => Exit::Interrupted,
            false => Exit::Environment,
        };
        return Err(Failure::new(exit, format!("the result is partial: {why}")));
    }
    Ok(match summary.rtts.is_empty() {
        true => Exit::Failed,
        false => Exit::Ok,
    })
}

/// The time by which the last probe has been sent.
fn sent(args: &Ping) -> Result<Span, Failure> {
    let interval = memory::span(&args.interval, "--interval")?;
    Ok(interval * u64::from(args.count.get()) - interval / 2)
}

/// One sequence of probes, and some time for the last answer.
fn document(args: &Ping) -> Result<Document, Failure> {
    let stop = sent(args)?;
    let mut d = Document::new("ping", "round-trip times");
    d.text("duration", &(stop + WAIT).to_string(), "--count");
    d.table("[path]");
    if let Some(packet) = long_packet(&args.size)? {
        d.plain("mtu", packet, "--size");
    }
    d.text("rate", "100Gbit/s", "");
    d.text("rtt", "1ms", "");
    d.table("[measure]");
    d.text("trace", "off", "");
    d.table("[[traffic]]");
    d.text("name", "ping", "");
    d.text("kind", "ping", "");
    d.text("interval", &args.interval, "--interval");
    d.text("size", &size(&args.size), "--size");
    let stop = stop.max(Span::from_nanos(1));
    d.text("stop", &stop.to_string(), "--count");
    Ok(d)
}

/// Packets of probes that are longer than those of a path as a rule. The route decides whether they
/// fit.
///
/// # Errors
/// No path takes such, or no server.
fn long_packet(text: &str) -> Result<Option<u64>, Failure> {
    // What is no number of bytes is refused with the key.
    let Ok(Bytes(bytes)) = size(text).parse() else {
        return Ok(None);
    };
    if !(SHORTEST..=LONGEST).contains(&bytes) {
        let message = format!("--size: a probe has {SHORTEST} to {LONGEST} bytes");
        return Err(usage(message).hint("write for example `--size 64B`"));
    }
    let packet = bytes + HEADERS;
    Ok((packet > MTU).then_some(packet))
}

/// A number alone counts bytes, as for ping(8).
fn size(text: &str) -> String {
    match !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        true => format!("{text}B"),
        false => text.to_owned(),
    }
}

/// Answers that a run goes on for.
struct Awaited {
    /// One for each probe.
    count: usize,
    /// By then the last probe has left.
    sent: Span,
}

impl Awaited {
    /// Whether no more answers are waited for, a time `now` after the start, when `came` of them
    /// have come, after `longest` at most.
    fn is_over(&self, came: usize, longest: Span, now: Span) -> bool {
        came >= self.count || came > 0 && now >= self.sent + (longest * 2).max(LEAST_WAIT)
    }
}

/// Looks at answers as they come, until no more are awaited, and prints them.
fn watch(live: &Live, lines: bool, awaited: &Awaited, enough: &AtomicBool, done: &AtomicBool) {
    let (mut came, mut longest) = (0, Span::ZERO);
    // Moments of the run and of this thread.
    let mut last = (Span::ZERO, Instant::now());
    loop {
        let ended = done.load(Ordering::Acquire);
        for (at, rtt) in live.take_answers() {
            came += 1;
            longest = longest.max(rtt);
            let at = at - Time::ZERO;
            last = (at, Instant::now());
            let line = format!(
                "{:>9.3} s  rtt {:.3} ms\n",
                at.as_secs_f64(),
                rtt.as_millis_f64()
            );
            if lines {
                // A reader that has gone away is noticed when the summary is written.
                let _ = output::data(&line);
            }
        }
        if ended {
            return;
        }
        let now = last.0 + Span::from_secs_f64(last.1.elapsed().as_secs_f64());
        if INTERRUPT.load(Ordering::Relaxed) || awaited.is_over(came, longest, now) {
            enough.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Statistics over all probes.
#[derive(Debug)]
struct Summary {
    sent: u64,
    /// Milliseconds, in the order of arrival.
    rtts: Vec<f64>,
    sorted: Vec<f64>,
    /// Why it ended before the last probe; `None` of a whole one.
    partial: Option<String>,
}

impl Summary {
    fn new(ping: &CrossOutcome, partial: Option<String>) -> Self {
        let rtts = ping.series.iter();
        let rtts: Vec<f64> = rtts.map(|(_, rtt)| rtt.as_millis_f64()).collect();
        let mut sorted = rtts.clone();
        sorted.sort_by(f64::total_cmp);
        Self {
            sent: ping.sent,
            rtts,
            sorted,
            partial,
        }
    }

    fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.rtts.len() as u64)
    }

    /// The smallest value that this part of the answers does not exceed.
    fn quantile(&self, part: f64) -> Option<f64> {
        let rank = (part * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.max(1) - 1).copied()
    }

    fn mean(&self) -> Option<f64> {
        let n = self.rtts.len() as f64;
        (n > 0.0).then(|| self.rtts.iter().sum::<f64>() / n)
    }

    /// Standard deviation, as ping(8) prints it.
    fn mdev(&self) -> Option<f64> {
        let (mean, n) = (self.mean()?, self.rtts.len() as f64);
        let squares: f64 = self.rtts.iter().map(|x| (x - mean).powi(2)).sum();
        Some((squares / n).sqrt())
    }

    fn text(&self) -> String {
        let percent = 100.0 * self.lost() as f64 / (self.sent as f64).max(1.0);
        let mut text = format!(
            "{}, {}, {percent:.1} % lost\n",
            counted(self.sent as usize, "probe"),
            counted(self.rtts.len(), "answer")
        );
        if let Some(mean) = self.mean() {
            let q = |part| self.quantile(part).unwrap_or(f64::NAN);
            text += &format!(
                "rtt min/mean/p50/p95/p99/max/mdev = {:.3}/{mean:.3}/{:.3}/{:.3}/{:.3}/{:.3}/{:.3} ms\n",
                q(0.0),
                q(0.5),
                q(0.95),
                q(0.99),
                q(1.0),
                self.mdev().unwrap_or(f64::NAN),
            );
        }
        if let Some(why) = &self.partial {
            text += &format!("PARTIAL: {why}\n");
        }
        text
    }

    fn json(&self, host: &str) -> String {
        let mut object = json!({
            "fullpipe": env!("CARGO_PKG_VERSION"),
            "host": host,
            "sent": self.sent,
            "received": self.rtts.len(),
            "lost": self.lost(),
            "rtt_ms": {
                "min": self.quantile(0.0),
                "mean": self.mean(),
                "p50": self.quantile(0.5),
                "p95": self.quantile(0.95),
                "p99": self.quantile(0.99),
                "max": self.quantile(1.0),
                "mdev": self.mdev(),
            },
            "rtts_ms": self.rtts,
        });
        if let Some(why) = &self.partial {
            object["partial"] = why.clone().into();
        }
        printed::line(&object)
    }
}

/// IPv4 and UDP.
const HEADERS: u64 = 28;
/// Payload of a packet of 64 bytes, the shortest that a server echoes.
const SHORTEST: u64 = 64 - HEADERS;
/// Bytes of a packet that every path is taken to carry.
const MTU: u64 = 1500;
/// Payload of a packet of 9000 bytes, the longest that Ethernet carries as a rule.
const LONGEST: u64 = 9000 - HEADERS;
/// For the last answer, where none came at all.
const WAIT: Span = Span::from_secs(4);
/// The same where some came, unless twice the longest round trip is more.
const LEAST_WAIT: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(rtts: &[f64], sent: u64) -> Summary {
        let mut sorted = rtts.to_vec();
        sorted.sort_by(f64::total_cmp);
        Summary {
            sent,
            rtts: rtts.to_vec(),
            sorted,
            partial: None,
        }
    }

    #[test]
    fn a_size_without_a_unit_is_in_bytes() {
        assert_eq!((size("1400"), size("64B")), ("1400B".into(), "64B".into()));
        assert_eq!(size("1kB"), "1kB");
    }

    #[test]
    fn a_probe_may_be_as_long_as_a_jumbo_frame() {
        for (size, packet) in [
            ("64B", None),
            ("1472", None),
            ("1473", Some(1501)),
            ("8000B", Some(8028)),
            ("8972B", Some(9000)),
        ] {
            assert_eq!(long_packet(size).unwrap(), packet, "{size}");
        }
        for size in ["8973", "35", "0"] {
            let refused = long_packet(size).unwrap_err();
            assert!(refused.message.starts_with("--size: "), "{refused:?}");
        }
        assert_eq!(long_packet("36").unwrap(), None);
        // What is wrong with it otherwise is the scenario's to say.
        assert_eq!(long_packet("big").unwrap(), None);
    }

    #[test]
    fn the_last_answers_are_waited_for() {
        let awaited = Awaited {
            count: 3,
            sent: Span::from_secs(2),
        };
        let ms = Span::from_millis;
        assert!(awaited.is_over(3, ms(1), ms(1500)), "all are here");
        assert!(!awaited.is_over(2, ms(1), ms(2900)) && awaited.is_over(2, ms(1), ms(3000)));
        let slow = ms(1600);
        assert!(!awaited.is_over(2, slow, ms(5100)) && awaited.is_over(2, slow, ms(5200)));
        assert!(!awaited.is_over(0, Span::ZERO, ms(9000)));
    }

    #[test]
    fn the_summary_is_that_of_the_samples() {
        let s = summary(&[4.0, 1.0, 3.0, 2.0], 5);
        assert_eq!(
            s.text(),
            "5 probes, 4 answers, 20.0 % lost\n\
             rtt min/mean/p50/p95/p99/max/mdev = 1.000/2.500/2.000/4.000/4.000/4.000/1.118 ms\n"
        );
        let json: serde_json::Value = serde_json::from_str(&s.json("dtn")).unwrap();
        assert_eq!(json["rtt_ms"]["p50"], 2.0);
        assert_eq!(
            (&json["lost"], &json["rtts_ms"][0]),
            (&json!(1), &json!(4.0))
        );
    }

    #[test]
    fn without_an_answer_there_are_no_times() {
        let s = summary(&[], 3);
        assert_eq!(s.text(), "3 probes, 0 answers, 100.0 % lost\n");
        let text = summary(&[2.0], 1).text();
        assert!(
            text.starts_with("1 probe, 1 answer, 0.0 % lost\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&s.json("dtn")).unwrap();
        assert!(json["rtt_ms"]["mean"].is_null());
    }
}
