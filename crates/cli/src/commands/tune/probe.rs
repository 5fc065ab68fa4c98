//! `fullpipe tune probe`: what a path is, measured over UDP.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use fullpipe_grounds::Peer;
use fullpipe_metrics::Fidelity;
use fullpipe_net::session::control::EndReason;
use fullpipe_observe::tcp_info::UNACKED;
use fullpipe_observe::{Socket, SocketDiag};
use fullpipe_policy::{Measured, ServerLimit};
use fullpipe_results::result::in_real_time;
use fullpipe_run::{FlowOutcome, Ground, Network, Outcome};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{Bytes, Rate, Span};

use crate::args::{PeerFlags, TunerProbe};
use crate::commands::check::counted;
use crate::commands::send::target::Server;
use crate::exit::{Exit, Failure};
use crate::table::number;
use crate::{output, peer};

/// Runs the command.
pub fn probe(args: &TunerProbe) -> Result<Exit, Failure> {
    let Some(host) = &args.host else {
        return super::kernel::measure_anew(&args.json);
    };
    let server = Server::parse(host).map_err(|e| Failure::new(Exit::Usage, e))?;
    let (measured, doubt) = measure(&server, args.time, &args.flags)?;
    if let Some(doubt) = doubt {
        output::warning(&doubt);
    }
    let text = match (args.json.json, args.scenario) {
        (true, _) => format!("{}\n", measured.to_json()),
        (false, true) => scenario(&measured, host),
        (false, false) => words(&measured),
    };
    output::data(&text)?;
    Ok(Exit::Ok)
}

/// Fills the path for so long. Beside what was measured, why it is not valid.
fn measure(
    server: &Server,
    time: Span,
    flags: &PeerFlags,
) -> Result<(Measured, Option<String>), Failure> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed))
        .map_err(|e| Failure::new(Exit::Internal, format!("signals: {e}")))?;
    let way = peer::way(server, flags)?;
    let beside = own_flows(way.addresses());
    if beside > 0 {
        let flows = counted(beside, "TCP flow");
        output::warning(&format!(
            "this host has {flows} with data on the way to {server}: what they take, the probe does not \
             find"
        ));
    }
    let ground = Peer::new(way, &STOP);
    // The path is what it is; a scenario has to name one.
    let text = format!(
        "name = \"probe\"\nduration = \"{time}\"\n[path]\nrate = \"100Gbit/s\"\nrtt = \
         \"1ms\"\n[[flow]]\npreset = \"2026\"\nstack = \"scalable\"\n"
    );
    let broken = |why: String| Failure::new(Exit::Internal, format!("the probe's scenario: {why}"));
    let scenario = Scenario::parse(&text, "probe", &Overrides::default());
    let scenario = scenario.map_err(|why| broken(why.to_string()))?;
    let mut spec = scenario.cases[0].run_spec(0);
    spec.interval = STEP;
    ground.fit(&mut spec);
    let outcome = ground.run(&spec)?;
    let flow = outcome.flows.first();
    let flow = flow.ok_or_else(|| broken("no flow came back".to_owned()))?;
    let limit = ground
        .network()
        .and_then(|network| limit(&network, ground.ended()));
    let measured = what_it_says(flow, &outcome, limit).ok_or_else(|| {
        Failure::new(Exit::Environment, format!("nothing arrived at {server}"))
            .hint("give it more time: `--time 20s`")
    })?;
    Ok((measured, doubt(&outcome)))
}

/// Why the numbers are the hosts' and not the path's, if they are.
fn doubt(outcome: &Outcome) -> Option<String> {
    let fidelity = Fidelity::of(outcome).filter(|f| !f.valid)?;
    let why = fidelity.faults().join("; ");
    let remedy = fidelity
        .remedy("udp", in_real_time())
        .map_or(String::new(), |r| format!("; {r}"));
    Some(format!(
        "NOT VALID: {why}. Rate and buffer may be too large{remedy}"
    ))
}

/// Connections of this host to one of these addresses that have data on the way.
fn own_flows(to: &[SocketAddr]) -> usize {
    let all = SocketDiag::open().and_then(|mut diag| diag.connections());
    let is_there = |socket: &Socket| {
        let ip = socket.remote.ip().to_canonical();
        to.iter().any(|address| address.ip().to_canonical() == ip)
    };
    // Where the kernel does not show them there is nothing to say.
    let all = all.unwrap_or_default().into_iter();
    let busy = |socket: &Socket| socket.info.count(&UNACKED) > 0;
    all.filter(|socket| is_there(socket) && busy(socket))
        .count()
}

/// Grain of the arrivals.
const STEP: Span = Span::from_millis(20);

/// The server's limit that a probe may have met: bytes that were used up cut it short, whatever the
/// rate was.
fn limit(network: &Network, ended: Option<EndReason>) -> Option<ServerLimit> {
    match ended {
        Some(EndReason::Bytes) => network.max_bytes.map(ServerLimit::Bytes),
        _ => network.max_rate.map(ServerLimit::Rate),
    }
}

/// `limit`: what the server lets through.
fn what_it_says(
    flow: &FlowOutcome,
    outcome: &Outcome,
    limit: Option<ServerLimit>,
) -> Option<Measured> {
    let rtt = flow.rtt.min()?;
    // Over two round trips, and so long that what a busy host hands out in one go counts little.
    let steps = (2 * rtt.as_nanos()).max(LEAST.as_nanos()) / outcome.interval.as_nanos().max(1);
    let arrived = &flow.arrived_per_interval;
    let sums = arrived.windows((steps as usize + 1).min(arrived.len().max(1)));
    let most = sums
        .map(|some| some.iter().sum::<u64>() as f64 / some.len() as f64)
        .fold(0.0, f64::max);
    let bits = most * f64::from(flow.packet) * 8.0 / outcome.interval.as_secs_f64();
    let rate = Rate::from_bits_per_sec(bits.round() as u64);
    let longest = flow.rtt.quantile(FULL)?;
    let waited = longest.saturating_sub(rtt);
    let hides = |limit: &ServerLimit| match limit {
        ServerLimit::Rate(most) => most.as_mbps() < rate.as_mbps() * NEAR,
        ServerLimit::Bytes(_) => true,
    };
    (bits >= 1.0).then_some(Measured {
        rate,
        rtt,
        buffer: Bytes(rate.bytes_in(waited).get()),
        lost: flow.totals.retransmits > 0,
        valid: Fidelity::of(outcome).is_none_or(|f| f.valid),
        limit: limit.filter(hides),
        at: now(),
    })
}

/// A rate that is less than so many times smaller than what the server lets through is the
/// server's: its limit counts headers otherwise, and has a burst.
const NEAR: f64 = 1.1;
const LEAST: Span = Span::from_millis(1000);
/// Of the round-trip times, the part below the one that a full buffer makes: some are long because
/// a host was late.
const FULL: f64 = 0.99;

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |t| t.as_secs())
}

fn words(m: &Measured) -> String {
    let packets = m.buffer.get() as f64 / 1500.0;
    let least = if m.lost { "" } else { "at least " };
    let (bound, why) = match m.limit {
        Some(limit) => ("at least ", format!(": the server allows {limit}")),
        None => ("", String::new()),
    };
    let valid = match m.valid {
        true => "",
        false => "valid   no: rate and buffer may be too large\n",
    };
    format!(
        "rate    {bound}{} Mbit/s{why}\nrtt     {} ms\nbuffer  {least}{} kB, {} packets of 1500 B\nbdp     {} \
         packets\n{valid}",
        number(m.rate.as_mbps(), 2),
        number(m.rtt.as_millis_f64(), 2),
        number(m.buffer.get() as f64 / 1000.0, 1),
        number(packets, 0),
        number(m.rate.bdp(m.rtt).get() as f64 / 1500.0, 0)
    )
}

/// A scenario with the path as it was measured: CUBIC and BBR as Linux has them, one at a time.
fn scenario(m: &Measured, host: &str) -> String {
    let packets = (m.buffer.get() as f64 / 1500.0).round().max(1.0);
    let bound = match m.limit {
        Some(limit) => format!("    # at least: the server allows {limit}"),
        None => String::new(),
    };
    let least = match (m.valid, m.lost) {
        (false, _) => "    # not valid: the hosts were late, it may be too large",
        (true, true) => "",
        (true, false) => "    # at least: nothing was lost",
    };
    format!(
        "name = \"measured\"\n\
         about = \"The path to {host}, measured by `fullpipe tune probe`\"\n\
         duration = \"30s\"\n\n\
         [path]\n\
         rate = \"{} Mbit/s\"{bound}\n\
         rtt = \"{} ms\"\n\
         buffer = \"{packets} packets\"{least}\n\n\
         [[flow]]\n\
         name = \"main\"\n\
         stack = \"cubic-linux\"\n\
         preset = \"linux\"\n\n\
         [matrix]\n\
         \"flow.main.stack\" = [\"cubic-linux\", \"bbr-linux\"]\n",
        three_digits(m.rate.as_mbps()),
        three_digits(m.rtt.as_millis_f64()),
    )
}

/// To three decimals, the precision of a probe.
fn three_digits(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use fullpipe_grounds::Sim;
    use fullpipe_run::{Histogram, HostLateness, Lateness};
    use fullpipe_scenario::{Overrides, Scenario};

    use super::*;

    #[test]
    fn bytes_that_are_used_up_go_before_the_rate() {
        let network = Network {
            near: ([192, 0, 2, 1], 6220).into(),
            far: ([192, 0, 2, 2], 6220).into(),
            max_rate: Some(Rate::from_bits_per_sec(20_000_000)),
            max_bytes: Some(Bytes(1_000_000)),
        };
        for (ended, due) in [
            (EndReason::Over, network.max_rate.map(ServerLimit::Rate)),
            (EndReason::Bytes, network.max_bytes.map(ServerLimit::Bytes)),
        ] {
            assert_eq!(limit(&network, Some(ended)), due);
        }
    }

    /// The simulator's path is known: so is what a probe of it would have to find.
    #[test]
    fn rate_round_trip_and_buffer_are_those_of_the_path() {
        for (rate, rtt, buffer) in [(50, 40, 100), (200, 80, 700), (10, 10, 40)] {
            let text = format!(
                "name = \"probe\"\nduration = \"5s\"\n[path]\nrate = \"{rate}Mbit/s\"\nrtt = \
                 \"{rtt}ms\"\nbuffer = \"{buffer} packets\"\n[[flow]]\npreset = \"2026\"\nstack = \
                 \"scalable\"\n"
            );
            let scenario = Scenario::parse(&text, "probe", &Overrides::default()).unwrap();
            let mut spec = scenario.cases[0].run_spec(0);
            spec.interval = STEP;
            let outcome = Sim.run(&spec).unwrap();
            let m = what_it_says(&outcome.flows[0], &outcome, None).unwrap();
            let of = |measured: f64, due: f64| (measured / due - 1.0).abs();
            assert!(
                of(m.rate.as_mbps(), f64::from(rate)) < 0.02,
                "{rate}: {m:?}"
            );
            assert!(
                of(m.rtt.as_millis_f64(), f64::from(rtt)) < 0.05,
                "{rtt}: {m:?}"
            );
            let packets = m.buffer.get() as f64 / 1500.0;
            assert!(of(packets, f64::from(buffer)) < 0.1, "{buffer}: {packets}");
            assert!(m.lost);
            // A server that lets hardly more through hides the path; one that does, does not.
            let with = |mbps: f64| {
                let most = Rate::from_bits_per_sec((mbps * 1e6) as u64);
                let limit = Some(ServerLimit::Rate(most));
                what_it_says(&outcome.flows[0], &outcome, limit).unwrap()
            };
            let due = f64::from(rate);
            let limited = with(due);
            assert!(limited.limit.is_some() && with(due * 1.2).limit.is_none());
            // One whose bytes were used up does, whatever came until then.
            let bytes = Some(ServerLimit::Bytes(Bytes(1_000_000)));
            let cut = what_it_says(&outcome.flows[0], &outcome, bytes).unwrap();
            assert_eq!(cut.limit, bytes);
            for (m, option) in [(limited, "--max-rate"), (cut, "--max-bytes")] {
                let words = words(&m);
                assert!(words.starts_with("rate    at least "), "{words}");
                assert!(words.contains(option), "{words}");
            }
            assert!(!words(&m).contains("--max-rate") && !words(&m).contains("valid"));
            // The same, by hosts that answered late.
            let mut samples = Histogram::default();
            samples.record(Span::from_millis(1000));
            let late = HostLateness {
                timers: Lateness::of(&samples),
                departures: Lateness::of(&samples),
                ..HostLateness::default()
            };
            let mut outcome = outcome.clone();
            outcome.fidelity = Some(fullpipe_run::Fidelity {
                near: late,
                ..Default::default()
            });
            let m = what_it_says(&outcome.flows[0], &outcome, None).unwrap();
            assert!(!m.valid && words(&m).ends_with("too large\n"));
            assert!(doubt(&outcome).unwrap().contains("the near host was late"));
            // What it prints runs, over that path.
            let printed = super::scenario(&m, "dtn.example.org");
            let again = Scenario::parse(&printed, "printed", &Overrides::default()).unwrap();
            let link = &again.cases[0].run_spec(0).links[0];
            assert_eq!(link.rate.unwrap().as_mbps(), three_digits(m.rate.as_mbps()));
        }
    }
}
