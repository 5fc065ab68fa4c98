//! `fullpipe send`.

mod copy;
mod document;
#[cfg(test)]
mod every_key;
mod memory;
mod named;
pub mod ping;
mod quantities;
pub mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fullpipe_grounds::{Peer, Stream};
use fullpipe_metrics::Metric;
use fullpipe_net::orders::{Ordered, Orders};
use fullpipe_realtime::live::Live;
use fullpipe_report::figure::asked::Kind;
use fullpipe_results::history::{History, Moment};
use fullpipe_results::result::{Direction, FlowResult, RunResult, StreamResult};
use fullpipe_results::run::{Options, Ran, RunError, run_on};
use fullpipe_results::store::StoreError;
use fullpipe_run::Ground as _;
use fullpipe_scenario::Scenario;
use fullpipe_units::{Rate, Span};

use self::document::{checked, wrong};
use self::target::{Server, habit};
use super::figure;
use super::run::{self, INTERRUPT, listen_for_interrupts};
use crate::args::{Format, Send};
use crate::exit::{Exit, Failure};
use crate::foreign;
use crate::live::lines;
use crate::live::{dashboard, prometheus};
use crate::peer;
use crate::table::number;
use crate::{output, view};

/// `HOST:NAME` without the place where it goes.
fn is_file(text: &str) -> bool {
    let name = text.rsplit_once(':').map_or("", |(_, name)| name);
    name.contains(|c: char| !c.is_ascii_digit())
}

/// Runs the command.
pub fn send(args: &Send) -> Result<Exit, Failure> {
    quantities::check(args)?;
    if let Some((to, more)) = args.to.split_last() {
        return copy::copy(args, more, to);
    }
    let server = Server::parse(&args.from).map_err(|why| match is_file(&args.from) {
        true => usage(why).hint(format!(
            "to fetch a file from there, say where it goes: `fullpipe send {} .`",
            args.from
        )),
        false => habit(&args.from)
            .into_iter()
            .fold(usage(why), Failure::hint),
    })?;
    // Everything that can be said about the flags is said before anybody is asked.
    if let (Some(rate), []) = (&args.rate, &args.traffic[..]) {
        let message = "`--rate` is that of cross traffic, and there is no `--traffic`";
        let hint = format!("no flow exceeds `--bitrate {rate}`; `--traffic udp` sends datagrams");
        return Err(usage(message.to_owned()).hint(hint));
    }
    foreign::honoured(&args.set, foreign::SEND, &args.from)?;
    asked(args, &args.from, Span::from_millis(1))?;
    if args.live.dashboard {
        dashboard::check()?;
    }
    let way =
        peer::way(&server, &args.peer).map_err(|failure| match Path::new(&args.from).exists() {
            true => failure.hint(format!(
                "`{0}` is here: to copy it, say where to: `fullpipe send {0} HOST:`",
                args.from
            )),
            false => failure,
        })?;
    listen_for_interrupts("keeping what was measured")?;
    let rtt = way.round_trip(&INTERRUPT)?;
    output::detail(|| {
        let ms = number(rtt.as_millis_f64(), 3);
        format!("{}: a round trip of {ms} ms", way.name)
    });
    let scenario = asked(args, &way.name, rtt)?;
    if !args.quiet {
        if args
            .stack
            .iter()
            .any(|stack| stack.split(['(', '+']).next() == Some("bbr"))
        {
            output::say("`bbr` is BBRv3; `bbr-linux` is BBRv1, as Linux has it");
        }
        let warnings = scenario.warnings.iter().filter(|w| foreign::holds(w));
        warnings.for_each(|w| output::warning(&w.to_string()));
    }
    let live = Arc::new(Live::default());
    if let Some(address) = args.live.prometheus {
        let live = Arc::clone(&live);
        prometheus::serve(address, move || prometheus::runs::page(&live))?;
    }
    let mut ground = Peer::new(way, &INTERRUPT);
    ground.live = Some(Arc::clone(&live));
    ground.round_trip = rtt;
    ground.until_complete = args.size.is_some();
    ground.verify = args.verify;
    ground.trace = args.trace.clone();
    ground.takes_orders = args.control.is_some();
    let kept = args.history.as_deref().map(begin).transpose()?;
    let out = kept.as_deref().or(args.out.as_deref());
    let begun = moment();
    let ran = watched(args, &scenario, &ground, &live, out);
    if let (Err(_), Some(run)) = (&ran, &kept) {
        History::cancel(run);
    }
    let (mut ran, unkept) = ran?;
    dated(&mut ran.result, &scenario, &ground, begun);
    say_notes(args, &ground);
    if !args.quiet {
        for case in &ran.result.cases {
            let short = case
                .flows
                .iter()
                .filter_map(|flow| short_of_rate(flow, case.simulated_s));
            short.for_each(|line| output::warning(&line));
        }
    }
    let whole = say_proofs(args, &scenario, &ground)?;
    let ended = finish(args, &scenario, &ran, whole, unkept.is_none());
    if let Some(failure) = unkept {
        return Err(failure);
    }
    if let (Some(run), false) = (&kept, args.quiet) {
        output::say(&format!("kept: {}", run.display()));
    }
    if let Some(error) = ground.untraced() {
        return Err(Failure::from(error).hint(NOT_TRACED));
    }
    ended
}

/// The directory of this run in the history `dir`.
fn begin(dir: &Path) -> Result<PathBuf, Failure> {
    History::begin(dir, moment())
        .map_err(|e| Failure::io(format_args!("cannot write into {}", dir.display()), &e))
}

/// What monitoring takes beside the metrics: when it was, how long, what was asked for, and bytes
/// and streams by flow.
fn dated(result: &mut RunResult, scenario: &Scenario, ground: &Peer<'_>, begun: Moment) {
    result.began = Some(begun.rfc3339());
    let (Some(case), Some(of)) = (result.cases.first_mut(), scenario.cases.first()) else {
        return;
    };
    result.duration_s = Some(case.simulated_s);
    let mut spec = of.run_spec(0);
    ground.fit(&mut spec);
    let streams = ground.streams();
    for (flow, group) in case.flows.iter_mut().zip(of.flows.iter()) {
        let segments = flow.value(DELIVERED.name);
        let first = spec.flows.get(group.members.start);
        let bytes = segments
            .zip(first)
            .map(|(n, f)| n * f64::from(f.sender.mss));
        flow.delivered_bytes = bytes.map(|bytes| bytes as u64);
        flow.direction = first.map(|f| match f.reverse {
            true => Direction::Reverse,
            false => Direction::Forward,
        });
        let asked = first.and_then(|f| f.sender.pacing.max);
        flow.rate_asked_mbps = asked.map(Rate::as_mbps);
        let members = streams.get(group.members.clone()).unwrap_or_default();
        let all: u64 = members.iter().map(|s| s.delivered).sum();
        let goodput = flow.value(GOODPUT.name);
        let names = spec.flows[group.members.clone()].iter().map(|f| &f.name);
        let finite = |x: f64| Some(x).filter(|x| x.is_finite());
        let one = |(name, s): (&String, &Stream)| StreamResult {
            name: name.clone(),
            stack: s.stack.clone(),
            goodput_mbps: goodput.map(|sum| sum * s.delivered as f64 / all.max(1) as f64),
            retransmits: s.retransmits,
            cwnd_mean_segments: finite(s.cwnd_mean),
            cwnd_max_segments: finite(s.cwnd_max),
        };
        flow.streams = names.zip(members).map(one).collect();
    }
}

/// Of a flow that its own ceiling held back nearly always, and that still stayed below it:
/// segments that a late host sends late are made up for by a millisecond of data only.
fn short_of_rate(flow: &FlowResult, seconds: f64) -> Option<String> {
    let asked = flow.rate_asked_mbps? * flow.streams.len().max(1) as f64;
    let goodput = flow.value(GOODPUT.name)?;
    let held = flow.value(AT_CEILING.name)? > MOSTLY && flow.value(LOSS_EVENTS.name)? == 0.0;
    // Nothing has arrived for the first round trips.
    let idle = ROUND_TRIPS * flow.value(MEAN_RTT.name)? / 1e3 / seconds;
    let least = asked * (NEARLY - idle);
    (held && goodput < least).then(|| {
        format!(
            "{}: {} of {} Mbit/s that were asked for: a host was late, and what leaves late is not \
             made up for; `--traffic udp,rate={asked}Mbit/s` keeps a rate whatever happens",
            flow.name,
            number(goodput, 3),
            number(asked, 3)
        )
    })
}

const DELIVERED: &Metric = Metric::flow("delivered_segments");
const GOODPUT: &Metric = Metric::flow("goodput_mbps");
const AT_CEILING: &Metric = Metric::flow("limited.rate");
const LOSS_EVENTS: &Metric = Metric::flow("loss_events");
const MEAN_RTT: &Metric = Metric::flow("rtt_ms.mean");

/// From the start of a flow to its first deliveries.
const ROUND_TRIPS: f64 = 2.0;

/// A part of a flow's time that leaves no other cause.
const MOSTLY: f64 = 0.9;

/// A part of the rate that is taken for the rate.
const NEARLY: f64 = 0.97;

fn moment() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    Moment(u64::try_from(ms).unwrap_or(Moment::LAST.0))
}

/// The scenario that the flags ask for, over a path with this round trip.
fn asked(args: &Send, host: &str, rtt: Span) -> Result<Scenario, Failure> {
    if let Some(test) = &args.test {
        return named::scenario(args, test, host, rtt);
    }
    if args.stack.len() > 1 {
        let message = "`--stack` is given more than once, and there is one flow";
        return Err(
            usage(message.to_owned()).hint("`--test versus --stack A --stack B` lets two compete")
        );
    }
    let scenario = checked(&memory::document(args, host, rtt)?, args)?;
    foreign::directions(&scenario)?;
    Ok(scenario)
}

/// Runs it while somebody watches; the failure is that the result could not be kept.
fn watched(
    args: &Send,
    scenario: &Scenario,
    ground: &Peer<'_>,
    live: &Live,
    out: Option<&Path>,
) -> Result<(Ran, Option<Failure>), Failure> {
    let shown = memory::shown(args)?;
    let orders = args.control.as_deref().map(listen).transpose()?;
    let mut ordered = ordered(ground, scenario);
    let done = AtomicBool::new(false);
    let options = Options {
        jobs: 1,
        out,
        interrupt: &INTERRUPT,
        ..Options::default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| lines::watch(shown, live, &done));
        let dashboard = args.live.dashboard.then(|| {
            let title = format!("send with {}", args.from);
            scope.spawn(|| dashboard::of_runs(title, 1, live, &run::interrupt, &done))
        });
        if let Some(orders) = &orders {
            scope.spawn(|| orders.serve(live, &mut ordered, &done));
        }
        let ran = run_on(scenario, &options, ground);
        done.store(true, Ordering::Release);
        if let Some(orders) = &orders {
            orders.end(&done);
        }
        dashboard::closed(dashboard)?;
        match ran {
            Ok(ran) => Ok((ran, None)),
            Err(RunError::NotKept { error, ran }) => {
                let failure = Failure {
                    hints: vec![NOT_KEPT.to_owned()],
                    ..alone(error.into())
                };
                Ok((*ran, Some(failure)))
            }
            Err(error) => Err(alone(error)),
        }
    })
}

const NOT_KEPT: &str = "this run was printed, and is not kept";
const NOT_TRACED: &str = "this run was printed; its trace is lost";

fn listen(path: &Path) -> Result<Orders, Failure> {
    Orders::listen(path).map_err(|error| {
        let what = format!("--control {}: {error}", path.display());
        Failure::new(Exit::Usage, what).hint("name a new file in a directory of yours")
    })
}

/// The flows that send from here.
fn ordered(ground: &Peer<'_>, scenario: &Scenario) -> Vec<Ordered> {
    let Some(case) = scenario.cases.first() else {
        return Vec::new();
    };
    let mut spec = case.run_spec(0);
    ground.fit(&mut spec);
    let flows = (0..).zip(spec.flows).filter(|(_, f)| !f.reverse);
    flows
        .map(|(flow, f)| Ordered {
            flow,
            name: f.name,
            stack: f.stack,
            mss: f.sender.mss,
        })
        .collect()
}

/// There is one run: nobody needs to be told which, and nothing could be gone on with.
fn alone(error: RunError) -> Failure {
    match error {
        RunError::Unable { what, hint, .. } => Failure::new(Exit::Usage, what).hint(hint),
        RunError::Interrupted { .. } => Failure::new(
            Exit::Interrupted,
            "interrupted before anything was measured",
        ),
        // There is nothing to resume, and nothing that a flag of this command would take away.
        RunError::Store(error @ StoreError::OtherResult { .. }) => {
            let message = error.to_string();
            Failure::new(Exit::Usage, message)
                .hint("name another directory with `--out`, or keep every run with `--history DIR`")
        }
        error => error.into(),
    }
}

fn say_notes(args: &Send, ground: &Peer<'_>) {
    if !args.quiet {
        for note in ground.notes() {
            output::warning(&note);
        }
    }
}

/// Whether all data arrived as they were sent.
fn say_proofs(args: &Send, scenario: &Scenario, ground: &Peer<'_>) -> Result<bool, Failure> {
    let finite = args.size.is_some();
    let flows = scenario.cases.first().map(|case| case.run_spec(0).flows);
    let flows = flows.unwrap_or_default();
    let mut whole = true;
    for proof in &ground.proofs() {
        let name = flows.get(proof.flow as usize).map_or("", |f| &f.name);
        let good = proof.damaged == 0 && (!finite || proof.is_whole());
        whole &= good;
        let (sum, segments) = (proof.received.sum, proof.received.segments);
        let segments = number(segments as f64, 1);
        let line = match (good, finite) {
            (true, true) => format!(
                "{name}: checksum {sum:016x} on both sides, {segments} segments, none missing"
            ),
            (true, false) => {
                format!("{name}: every byte of {segments} segments is right, checksum {sum:016x}")
            }
            (false, _) => format!(
                "{name}: {} of {segments} segments damaged; checksum {:016x} of {} segments sent, {sum:016x} of {segments} received",
                proof.damaged,
                proof.sent.sum,
                number(proof.sent.segments as f64, 1),
            ),
        };
        match good {
            false => output::error(&line),
            true if !args.quiet => output::say(&line),
            true => {}
        }
    }
    Ok(whole)
}

/// Prints the result, as `run` does.
fn finish(
    args: &Send,
    scenario: &Scenario,
    ran: &Ran,
    whole: bool,
    is_kept: bool,
) -> Result<Exit, Failure> {
    let result: &RunResult = &ran.result;
    match args.format() {
        Format::Table => output::data(&format!(
            "send: {}\n\n{}",
            scenario.about,
            view::table(result)
        ))?,
        Format::Json => output::data(&result.to_json())?,
        Format::Ndjson => output::data(&view::ndjson(result))?,
        Format::Csv => output::data(&view::csv(std::slice::from_ref(result)))?,
    }
    if let Some(dir) = args.out.as_ref().filter(|_| is_kept) {
        let mut lines = run::pictures(scenario, dir)?;
        if args.test.is_some() && ran.result.cases.iter().any(|c| !c.seeds.is_empty()) {
            let load = figure::beside(dir, Kind::Load)?;
            lines.push(format!("goodput and pings: {}", load.display()));
        }
        if !args.quiet {
            lines.iter().for_each(|line| output::say(line));
        }
    }
    if let Some(failure) = run::cut_short(result) {
        return Err(failure);
    }
    Ok(match whole {
        true => Exit::Ok,
        false => Exit::Failed,
    })
}

fn usage(message: String) -> Failure {
    Failure::new(Exit::Usage, message)
}

#[cfg(test)]
mod tests {
    use fullpipe_results::result::Estimate;

    use super::*;
    use crate::view::testing::case;

    #[test]
    fn a_rate_that_was_not_reached_is_told_unless_the_path_or_the_start_explains_it() {
        let said = |goodput: f64, held: f64, events: f64, seconds: f64| {
            let mut flow = case(&[], 1, &[("main", "cubic", goodput)]).flows.remove(0);
            flow.rate_asked_mbps = Some(20.0);
            let metrics = [
                ("goodput_mbps", goodput),
                ("rtt_ms.mean", 100.0),
                ("limited.rate", held),
                ("loss_events", events),
            ];
            let estimate = |x| Estimate {
                mean: Some(x),
                ..Estimate::default()
            };
            flow.metrics = metrics.map(|(k, x)| (k.to_owned(), estimate(x))).into();
            short_of_rate(&flow, seconds)
        };
        let line = said(17.7, 0.99, 0.0, 10.0).unwrap();
        assert!(line.contains("17.7 of 20.0 Mbit/s"), "{line}");
        assert_eq!(said(19.9, 0.99, 0.0, 10.0), None);
        assert_eq!(said(17.7, 0.5, 0.0, 10.0), None, "its window held it back");
        assert_eq!(
            said(17.7, 0.99, 3.0, 10.0),
            None,
            "the path lost some of it"
        );
        assert_eq!(
            said(17.0, 0.99, 0.0, 1.0),
            None,
            "two round trips of a second"
        );
    }
}
