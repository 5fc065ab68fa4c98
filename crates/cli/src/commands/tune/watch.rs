//! `fullpipe tune watch`: every ACK of chosen flows.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_flow::TraceRow;
use fullpipe_observe::tuner::{SOCKET, ask};
use fullpipe_observe::{Filter, Observer};
use fullpipe_trace::{COLUMNS, TraceError};
use fullpipe_tune::bpf::now_us;
use fullpipe_tune::watch::{GLANCE, Met, PORTS, Seen, Sight, Watch};
use fullpipe_units::{Span, Time};
use serde_json::{Value, json};

use super::super::observe::trace::{Sample, Traced};
use super::kernel::say;
use crate::args::{TunerWatch, WatchFormat};
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the verb.
pub fn watch(args: &TunerWatch) -> Result<(), Failure> {
    let filter = filter(args)?;
    let named = named(args)?;
    are_there(args)?;
    let mut watch = Watch::begin(filter.as_ref()).map_err(|e| {
        Failure::new(Exit::Environment, e.to_string())
            .hint("it takes CAP_BPF and CAP_PERFMON; `fullpipe tune doctor` tries them")
    })?;
    let begin_us = now_us();
    for cookie in named {
        watch.add(cookie).map_err(|e| lost(&e))?;
    }
    let traced = Traced::begin(args.trace.as_deref(), true);
    let mut rows = Rows {
        traced: traced.map_err(|e| unwritten(args, &e))?,
        met: HashMap::new(),
        begin_us,
        format: args.format,
    };
    let stop = ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed));
    stop.map_err(|e| Failure::new(Exit::Environment, format!("cannot listen for Ctrl-C: {e}")))?;
    if args.format == WatchFormat::Table {
        output::data(HEAD)?;
    }
    let end = args.duration.map(|d| Duration::from_nanos(d.as_nanos()));
    let begin = Instant::now();
    let mut of_paths = Paths::new(&args.path, &args.state.state);
    loop {
        let over = STOP.load(Ordering::Relaxed) || end.is_some_and(|end| begin.elapsed() >= end);
        for cookie in of_paths.new_ones() {
            watch.add(cookie).map_err(|e| lost(&e))?;
        }
        let sights = watch.sights().map_err(|e| lost(&e))?;
        let text = rows.take(sights).map_err(|e| unwritten(args, &e))?;
        if !output::more(&text)? || over {
            break;
        }
        thread::sleep(GLANCE);
    }
    let missed = watch.missed().map_err(|e| lost(&e))?;
    if missed > 0 {
        output::say(&format!("{missed} ACKs found no room and are not recorded"));
    }
    let flows = rows.met.len();
    let written = rows
        .traced
        .finish(missed)
        .map_err(|e| unwritten(args, &e))?;
    if let Some(file) = &args.trace {
        output::say(&format!("trace: {} ({written} rows)", file.display()));
    }
    if flows == 0 {
        output::say("no chosen flow had an ACK");
    }
    Ok(())
}

static STOP: AtomicBool = AtomicBool::new(false);

fn lost(error: &fullpipe_tune::kernel::KernelError) -> Failure {
    Failure::new(Exit::Environment, error.to_string())
}

fn unwritten(args: &TunerWatch, error: &TraceError) -> Failure {
    let file = args.trace.as_deref().unwrap_or(Path::new(""));
    let message = format!("cannot write the trace {}: {error}", file.display());
    Failure::new(Exit::Environment, message)
}

/// Refuses a path that the daemon's policy has not: nothing would ever come of it.
fn are_there(args: &TunerWatch) -> Result<(), Failure> {
    if args.path.is_empty() {
        return Ok(());
    }
    let status = say(&args.state, json!({ "verb": "status" }))?;
    let rules = status["rules"].as_array().into_iter().flatten();
    let known: Vec<&str> = rules.filter_map(|rule| rule["name"].as_str()).collect();
    match args
        .path
        .iter()
        .find(|path| !known.contains(&path.as_str()))
    {
        None => Ok(()),
        Some(path) => {
            let message = format!("no path `{path}`; there are: {}", known.join(", "));
            Err(Failure::new(Exit::Usage, message))
        }
    }
}

/// Flows that are chosen by address and port.
fn filter(args: &TunerWatch) -> Result<Option<Filter>, Failure> {
    if args.port.len() > PORTS {
        let message = format!("{} ports; the kernel side holds {PORTS}", args.port.len());
        return Err(Failure::new(Exit::Usage, message));
    }
    if !args.to.is_empty() || !args.port.is_empty() {
        return Ok(Some(Filter {
            remote: args.to.clone(),
            ports: args.port.clone(),
            loopback: true,
        }));
    }
    match args.flows.is_empty() && args.path.is_empty() {
        true => Err(Failure::new(Exit::Usage, "nothing says which flows")
            .hint("name FLOW, `--path`, `--to` or `--port`; `fullpipe observe` lists flows")),
        false => Ok(None),
    }
}

/// Cookies of the flows that are named.
fn named(args: &TunerWatch) -> Result<HashSet<u64>, Failure> {
    let mut named = HashSet::new();
    let mut listed: Option<HashMap<String, u64>> = None;
    for flow in &args.flows {
        if let Ok(cookie) = flow.parse() {
            named.insert(cookie);
            continue;
        }
        let listed = listed.get_or_insert_with(|| by_ends(&args.state.state));
        let Some(cookie) = listed.get(flow) else {
            return Err(Failure::new(Exit::Usage, format!("no flow `{flow}`"))
                .hint("write a cookie, or both ends as `observe` and `tune flows` list them"));
        };
        named.insert(*cookie);
    }
    Ok(named)
}

/// Flows of this network namespace, and those that a tuner knows in others.
fn by_ends(state: &Path) -> HashMap<String, u64> {
    let all = Filter {
        loopback: true,
        ..Filter::default()
    };
    let own = Observer::new(all).and_then(|mut o| o.observe(Duration::ZERO));
    let own = own.unwrap_or_default().into_iter();
    let own = own.map(|f| (super::super::observe::name(&f), f.socket.cookie));
    let answer = ask(&state.join(SOCKET), &json!({ "verb": "flows" })).unwrap_or_default();
    let others = answer["flows"].as_array().into_iter().flatten();
    let others =
        others.filter_map(|f| Some((f["flow"].as_str()?.to_owned(), f["cookie"].as_u64()?)));
    others.chain(own).collect()
}

/// Flows of paths of the daemon's policy, as they come.
struct Paths<'a> {
    names: &'a [String],
    state: &'a Path,
    known: HashSet<u64>,
    asked: Option<Instant>,
}

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(200);

impl<'a> Paths<'a> {
    fn new(names: &'a [String], state: &'a Path) -> Self {
        Self {
            names,
            state,
            known: HashSet::new(),
            asked: None,
        }
    }

    /// Cookies of flows on the watched paths that were not known yet.
    fn new_ones(&mut self) -> Vec<u64> {
        if self.names.is_empty() || self.asked.is_some_and(|at| at.elapsed() < PAUSE) {
            return Vec::new();
        }
        self.asked = Some(Instant::now());
        let answer = ask(&self.state.join(SOCKET), &json!({ "verb": "flows" }));
        let answer = answer.unwrap_or_default();
        let flows = answer["flows"].as_array().into_iter().flatten();
        let mine = flows.filter(|f| self.names.iter().any(|name| f["path"] == *name.as_str()));
        let cookies = mine.filter_map(|f| f["cookie"].as_u64());
        cookies
            .filter(|cookie| self.known.insert(*cookie))
            .collect()
    }
}

struct Rows {
    traced: Traced,
    /// Both ends and algorithm, by cookie.
    met: HashMap<u64, (String, String)>,
    begin_us: u64,
    format: WatchFormat,
}

const HEAD: &str = "      time s     window  threshold   RTT ms  srtt ms   flight  resent        a       b  \
                    event, flow\n";

impl Rows {
    /// Into the trace; what is to be printed.
    fn take(&mut self, sights: Vec<Sight>) -> Result<String, TraceError> {
        let mut out = String::new();
        for sight in sights {
            match sight {
                Sight::Met(met) => {
                    let names = (ends(&met), met.algorithm);
                    self.met.insert(met.cookie, names);
                }
                Sight::Ack(seen) => self.ack(&seen, &mut out)?,
            }
        }
        Ok(out)
    }

    fn ack(&mut self, seen: &Seen, out: &mut String) -> Result<(), TraceError> {
        let Some((name, stack)) = self.met.get(&seen.cookie) else {
            return Ok(());
        };
        let (info, law) = (seen.info(), seen.ours);
        let known = |x: f64| if x > 0.0 { x } else { f64::NAN };
        let law = law.map_or([f64::NAN; 2], |(_, a, b)| [known(a), known(b)]);
        let since = seen.time_us.saturating_sub(self.begin_us);
        let sample = Sample {
            at: Time::from_nanos(since.saturating_mul(1000)),
            cookie: seen.cookie,
            name,
            stack,
            info: &info,
            law,
        };
        let fraction = seen.ours.map_or(0.0, |(fraction, _, _)| fraction);
        let exact = |row: &mut TraceRow| {
            row.cwnd += fraction;
            row.rtt = Span::from_micros(seen.rtt_us.into());
        };
        if let Some((row, name)) = self.traced.take(&sample, exact)? {
            match self.format {
                WatchFormat::Table => line(out, &row, law, name),
                WatchFormat::Ndjson => object(out, &row, law, name),
                WatchFormat::None => {}
            }
        }
        Ok(())
    }
}

fn ends(met: &Met) -> String {
    format!("{} -> {}", met.local, met.remote)
}

fn line(out: &mut String, row: &TraceRow, law: [f64; 2], name: &str) {
    let number = |x: f64, digits: usize| match x.is_finite() {
        true => format!("{x:.digits$}"),
        false => "-".to_owned(),
    };
    let millis = |span: Span| number(span.as_secs_f64() * 1000.0, 3);
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:12.6} {:>10} {:>10} {:>8} {:>8} {:>8} {:>7} {:>8} {:>7}  {} {name}",
        row.time.as_secs_f64(),
        number(row.cwnd, 3),
        number(row.ssthresh, 0),
        millis(row.rtt),
        millis(row.srtt),
        row.flight,
        row.retransmits,
        number(law[0], 3),
        number(law[1], 4),
        row.events.text(),
    );
}

/// The columns of a trace as members.
fn object(out: &mut String, row: &TraceRow, law: [f64; 2], name: &str) {
    let mut separator = '{';
    for column in COLUMNS {
        let text = column.text(row, name);
        let value = match (text.is_empty(), text.parse::<f64>().is_ok()) {
            (true, _) if ["event", "flow", "phase"].contains(&column.name) => "\"\"".to_owned(),
            (true, _) => "null".to_owned(),
            (_, true) => text,
            (_, false) => Value::from(text).to_string(),
        };
        let _ = write!(out, "{separator}\"{}\":{value}", column.name);
        separator = ',';
    }
    for (name, value) in ["a", "b"].into_iter().zip(law) {
        let value = if value.is_finite() {
            value.to_string()
        } else {
            "null".to_owned()
        };
        let _ = write!(out, ",\"var_{name}\":{value}");
    }
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_is_a_row_with_the_window_s_fraction_and_the_law() {
        let mut rows = Rows {
            traced: Traced::begin(None, true).unwrap(),
            met: HashMap::new(),
            begin_us: 1_000_000,
            format: WatchFormat::Ndjson,
        };
        let seen = Seen {
            time_us: 1_250_000,
            cookie: 7,
            ours: Some((0.5, 4.0, 0.125)),
            cwnd: 20,
            ssthresh: 18,
            srtt_us: 80_000,
            rtt_us: 81_000,
            min_rtt_us: 79_000,
            packets_out: 20,
            sacked_out: 3,
            lost_out: 2,
            retrans_out: 1,
            delivered: 100,
            retransmitted: 2,
            mss: 1448,
            state: 3,
            pacing: u64::MAX,
            bytes_acked: 144_800,
            ..Seen::default()
        };
        let ack = Sight::Ack(Box::new(seen.clone()));
        assert_eq!(
            rows.take(vec![ack.clone()]).unwrap(),
            "",
            "nobody has met it"
        );
        let met = Met {
            time_us: 0,
            cookie: 7,
            local: "192.0.2.1:4000".parse().unwrap(),
            remote: "[2001:db8::1]:5001".parse().unwrap(),
            algorithm: "fp_aimd".to_owned(),
            mss: 1448,
        };
        let text = rows.take(vec![Sight::Met(met), ack]).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        for (key, due) in [
            ("flow", json!("192.0.2.1:4000 -> [2001:db8::1]:5001")),
            ("time_s", json!(0.25)),
            ("cwnd", json!(20.5)),
            ("ssthresh", json!(18)),
            ("rtt_ms", json!(81)),
            ("srtt_ms", json!(80)),
            ("min_rtt_ms", json!(79)),
            ("flight", json!(16)),
            ("delivered_segments", json!(100)),
            ("snd_una", json!(100)),
            ("snd_nxt", json!(120)),
            ("retransmits", json!(2)),
            ("phase", json!("recovery")),
            ("ack_delay_ms", Value::Null),
            ("pacing_mbps", json!(0)),
            ("var_a", json!(4)),
            ("var_b", json!(0.125)),
        ] {
            assert_eq!(
                value[key].as_f64().map_or(value[key].clone(), |x| json!(x)),
                due.as_f64().map_or(due.clone(), |x| json!(x)),
                "{key}"
            );
        }
        // Another algorithm has no law of ours.
        rows.format = WatchFormat::Table;
        let other = Seen {
            ours: None,
            time_us: 1_300_000,
            ..seen
        };
        let text = rows.take(vec![Sight::Ack(Box::new(other))]).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        assert_eq!(words[..2], ["0.300000", "20.000"]);
        assert_eq!(words[7..9], ["-", "-"]);
    }
}
