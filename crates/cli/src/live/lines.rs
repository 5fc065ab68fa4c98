//! How a run is getting on, in lines: for people on stderr, for programs on stdout.

use std::io::{IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fullpipe_realtime::live::{Live, NamedFlow, Snapshot};
use fullpipe_results::result::printed;
use fullpipe_units::{Span, Time};
use serde_json::{Value, json};

use crate::output;
use crate::table::number;

/// What is shown while a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing.
    Nothing,
    /// A line that changes, on a terminal.
    Line,
    /// A line per interval.
    Lines(Span),
    /// An object per interval on stdout.
    Objects(Span),
}

impl Shown {
    /// For people: only where somebody can see it.
    pub fn for_people(quiet: bool) -> Self {
        match !quiet && std::io::stderr().is_terminal() {
            true => Self::Line,
            false => Self::Nothing,
        }
    }
}

/// Watches until `done`.
pub fn watch(shown: Shown, live: &Live, done: &AtomicBool) {
    let every = match shown {
        Shown::Nothing => return,
        Shown::Line => LINE,
        Shown::Lines(every) | Shown::Objects(every) => every,
    };
    live.read_every(every);
    let mut before = Snapshot::default();
    let mut due = Time::ZERO + every;
    let mut next = Instant::now();
    loop {
        let ended = done.load(Ordering::Acquire);
        let now = live.latest();
        if now.at > before.at && (now.at >= due || ended) {
            // A line that comes late does not move those after it.
            while due <= now.at {
                due += every;
            }
            match shown {
                Shown::Line => draw(&line(&before, &now, Resent::SoFar)),
                Shown::Lines(_) => output::say(&line(&before, &now, Resent::Since)),
                _ => {
                    // A reader that has gone away is noticed when the result is written.
                    let _ = output::data(&printed::line(&object(&before, &now)));
                }
            }
            before = now;
        }
        if ended {
            break;
        }
        next += TICK;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    if shown == Shown::Line {
        draw("");
    }
}

/// In the place of the last line.
fn draw(line: &str) {
    let mut stderr = std::io::stderr().lock();
    // Nobody reads stderr: nothing more can be said.
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

/// Period over which a line counts retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resent {
    /// All of the run: the line is always the same one.
    SoFar,
    /// Since the line before.
    Since,
}

/// `  4.5 s   941 Mbit/s   cwnd 1,250   rtt 80.2 ms   12 retransmits`, of all flows together; of
/// flows in both directions `941 up, 388 down Mbit/s`.
fn line(before: &Snapshot, now: &Snapshot, resent: Resent) -> String {
    let flows = &now.run.flows;
    let seconds = (now.at - before.at).as_secs_f64();
    let all = || now.flows.iter().zip(flows).enumerate();
    let earlier = |i: usize| before.flows.get(i).map_or(0, |f| f.delivered);
    let rate = |is_in: &dyn Fn(&NamedFlow) -> bool| {
        let those = all().filter(|(_, (_, named))| is_in(named));
        let bits: f64 = those
            .map(|(i, (f, named))| delivered(f.delivered, earlier(i), named))
            .sum();
        number(bits / seconds / 1e6, 3)
    };
    let is_both = flows.iter().any(|f| f.reverse) && flows.iter().any(|f| !f.reverse);
    let rates = match is_both {
        true => format!(
            "{} up, {} down",
            rate(&|f| !f.reverse),
            rate(&|f| f.reverse)
        ),
        false => rate(&|_| true),
    };
    let at = (now.at - Time::ZERO).as_secs_f64();
    let mut line = format!("{at:>7.1} s  {rates} Mbit/s");
    let streams = flows.iter().filter(|f| f.reverse == flows[0].reverse);
    if streams.clone().count() > 1 {
        line += &format!("  {} streams", flows.len());
    }
    let sizes: Option<u64> = flows.iter().map(|f| f.size).sum();
    if let Some(size) = sizes.filter(|n| *n > 0) {
        let bytes: u64 = all()
            .map(|(_, (f, named))| f.delivered * u64::from(named.mss))
            .sum();
        let part = 100.0 * bytes.min(size) as f64 / size as f64;
        line += &format!("  {part:.1} %");
    }
    if all().any(|(_, (f, _))| f.cwnd.is_some()) {
        let cwnd: f64 = now.flows.iter().filter_map(|f| f.cwnd).sum();
        line += &format!("  cwnd {}", number(cwnd, 3));
    }
    let rtts: Vec<f64> = now
        .flows
        .iter()
        .filter_map(|f| f.srtt.map(Span::as_millis_f64))
        .collect();
    if !rtts.is_empty() {
        let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
        line += &format!("  rtt {} ms", number(mean, 3));
    }
    let all_of = |at: &Snapshot| -> u64 { at.flows.iter().filter_map(|f| f.retransmits).sum() };
    let again = match resent {
        Resent::SoFar => all_of(now),
        Resent::Since => all_of(now).saturating_sub(all_of(before)),
    };
    if all().any(|(_, (f, _))| f.retransmits.is_some()) {
        let plural = if again == 1 { "" } else { "s" };
        line += &format!("  {} retransmit{plural}", number(again as f64, 1));
    }
    line
}

/// The interval as an object, in the names of the result.
fn object(before: &Snapshot, now: &Snapshot) -> Value {
    let flows = &now.run.flows;
    let seconds = (now.at - before.at).as_secs_f64();
    let rows: Vec<Value> = now
        .flows
        .iter()
        .zip(flows)
        .enumerate()
        .map(|(i, (f, named))| {
            let earlier = before.flows.get(i);
            let bits = delivered(f.delivered, earlier.map_or(0, |e| e.delivered), named);
            let again = f.retransmits;
            let known = earlier.and_then(|e| e.retransmits).unwrap_or(0);
            let new = again.map(|n| n.saturating_sub(known));
            json!({
                "name": named.name,
                "goodput_mbps": bits / seconds / 1e6,
                "delivered_segments": f.delivered,
                "cwnd_segments": f.cwnd,
                "rtt_ms": f.srtt.map(Span::as_millis_f64),
                "retransmits": new,
            })
        })
        .collect();
    json!({
        "interval": {
            "from_s": (before.at - Time::ZERO).as_secs_f64(),
            "to_s": (now.at - Time::ZERO).as_secs_f64(),
        },
        "flows": rows,
    })
}

/// Payload bits between two counts of segments.
fn delivered(now: u64, before: u64, named: &NamedFlow) -> f64 {
    8.0 * f64::from(named.mss) * now.saturating_sub(before) as f64
}

const LINE: Span = Span::from_millis(500);
const TICK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fullpipe_realtime::live::{LiveFlow, LiveRun};

    use super::*;

    fn snapshots() -> (Snapshot, Snapshot) {
        let flow = |delivered, again| LiveFlow {
            delivered,
            retransmits: Some(again),
            cwnd: Some(1250.0),
            srtt: Some(Span::from_millis(80)),
        };
        let named = NamedFlow {
            name: "main".to_owned(),
            stack: "cubic".to_owned(),
            mss: 1250,
            size: Some(5_000_000),
            reverse: false,
        };
        let run = Arc::new(LiveRun {
            flows: vec![named],
            ..LiveRun::default()
        });
        let at = |s, flows| Snapshot {
            run: Arc::clone(&run),
            at: Time::ZERO + Span::from_secs(s),
            flows,
        };
        (at(1, vec![flow(1000, 3)]), at(2, vec![flow(3000, 12)]))
    }

    #[test]
    fn the_line_says_what_happened_since_the_last() {
        let (a, b) = snapshots();
        assert_eq!(
            line(&a, &b, Resent::SoFar),
            "    2.0 s  20.0 Mbit/s  75.0 %  cwnd 1,250  rtt 80.0 ms  12 retransmits"
        );
        // As the objects have it.
        let since = line(&a, &b, Resent::Since);
        assert!(since.ends_with("  9 retransmits"), "{since}");
    }

    #[test]
    fn both_directions_are_told_apart() {
        let (_, mut b) = snapshots();
        let mut run = (*b.run).clone();
        let back = NamedFlow {
            reverse: true,
            ..run.flows[0].clone()
        };
        run.flows.push(back);
        b.flows.push(LiveFlow {
            delivered: 1500,
            ..LiveFlow::default()
        });
        b.run = Arc::new(run);
        let line = line(&Snapshot::default(), &b, Resent::Since);
        assert!(line.contains("15.0 up, 7.50 down Mbit/s"), "{line}");
    }

    #[test]
    fn the_object_has_the_names_of_the_result() {
        let (a, b) = snapshots();
        assert_eq!(
            object(&a, &b),
            json!({
                "interval": { "from_s": 1.0, "to_s": 2.0 },
                "flows": [{
                    "name": "main", "goodput_mbps": 20.0, "delivered_segments": 3000,
                    "cwnd_segments": 1250.0, "rtt_ms": 80.0, "retransmits": 9
                }],
            })
        );
    }

    #[test]
    fn a_receiver_s_line_leaves_out_what_it_does_not_know() {
        let (_, mut b) = snapshots();
        b.flows[0] = LiveFlow {
            delivered: 3000,
            ..LiveFlow::default()
        };
        let line = line(&Snapshot::default(), &b, Resent::Since);
        assert_eq!(line, "    2.0 s  15.0 Mbit/s  75.0 %");
        let object = object(&Snapshot::default(), &b);
        assert_eq!(object["flows"][0]["cwnd_segments"], Value::Null);
    }
}
