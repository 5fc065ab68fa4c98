//! What the simulator says of a path: one flow of the policy's stack and, beside it, one of CUBIC,
//! each alone, with one loss.

use std::fmt::Write as _;

use fullpipe_grounds::Sim;
use fullpipe_metrics::Metric;
use fullpipe_policy::{PathFacts, Rule};
use fullpipe_results::run::{Options, run_on};
use fullpipe_scenario::{Overrides, Scenario};
use fullpipe_units::{BufferSize, Rate, Span};
use serde_json::{Value, json};

use crate::exit::{Exit, Failure};
use crate::table::{Align, Table, number};

/// A forecast, or why there is none.
pub struct Forecast {
    about: String,
    flows: Vec<Flow>,
    none: Option<String>,
}

/// A stack's numbers.
struct Flow {
    stack: String,
    goodput_mbps: Option<f64>,
    loss_events: Option<f64>,
    retransmits: Option<f64>,
    recovery_s: Option<f64>,
}

/// Runs the forecast of a path.
pub fn forecast(rule: &Rule, facts: &PathFacts) -> Result<Forecast, Failure> {
    let none = |why: &str| Forecast {
        about: String::new(),
        flows: Vec::new(),
        none: Some(why.to_owned()),
    };
    let (Some(rate), Some(rtt)) = (facts.rate, facts.rtt) else {
        return Ok(none("the path states no `rate` and `rtt`"));
    };
    let Some(stack) = facts.modelled(&rule.action) else {
        return Ok(none("there is no model of the kernel's algorithm"));
    };
    let packets_per_s = rate.as_bits_per_sec() as f64 / 8.0 / f64::from(facts.mtu);
    let Some(seconds) = seconds(packets_per_s, rtt) else {
        return Ok(none(
            "the path is too fast or too long to be simulated here",
        ));
    };
    let buffer = facts.buffer.unwrap_or(BufferSize::Bdp(1.0));
    if holds(buffer, rate, rtt).is_some_and(|bytes| bytes < f64::from(facts.mtu)) {
        return Ok(none("the buffer of the path holds less than one packet"));
    }
    let text = scenario(rule, facts, &stack.to_string(), buffer, seconds);
    let broken = |why: String| {
        Failure::new(
            Exit::Internal,
            format!("the forecast's scenario is wrong: {why}"),
        )
    };
    let scenario = Scenario::parse(&text, "forecast", &Overrides::default())
        .map_err(|why| broken(why.to_string()))?;
    let ran = run_on(&scenario, &Options::default(), &Sim)?;
    let first = ran
        .result
        .cases
        .iter()
        .filter_map(|case| case.flows.first());
    let flows = first.map(|flow| Flow {
        stack: flow.stack.clone(),
        goodput_mbps: flow.value(GOODPUT.name),
        loss_events: flow.value(LOSS_EVENTS.name),
        retransmits: flow.value(RETRANSMITS.name),
        recovery_s: flow.value(RECOVERY.name),
    });
    Ok(Forecast {
        about: format!(
            "forecast by the simulator: one flow alone for {seconds} s on {rate}, RTT {rtt}, \
             buffer {buffer}, between hosts that have room for all of it; one loss after {} s",
            loss_at(seconds)
        ),
        flows: flows.collect(),
        none: None,
    })
}

const GOODPUT: &Metric = Metric::flow("goodput_mbps");
const LOSS_EVENTS: &Metric = Metric::flow("loss_events");
const RETRANSMITS: &Metric = Metric::flow("retransmits");
const RECOVERY: &Metric = Metric::flow("recovery_time_s");

/// Bytes that a buffer holds; `None`: as many packets as it says, or all.
fn holds(buffer: BufferSize, rate: Rate, rtt: Span) -> Option<f64> {
    let during = |span: Span| rate.as_bits_per_sec() as f64 / 8.0 * span.as_secs_f64();
    match buffer {
        BufferSize::Bytes(bytes) => Some(bytes.get() as f64),
        BufferSize::Time(span) => Some(during(span)),
        BufferSize::Bdp(factor) => Some(factor * during(rtt)),
        BufferSize::Packets(_) | BufferSize::Unlimited => None,
    }
}

/// Length of the run: 600 round trips, at least 10 s and at most 120 s, and no more packets than
/// take some seconds; `None` where that leaves less than 60 round trips.
fn seconds(packets_per_s: f64, rtt: Span) -> Option<u64> {
    let rtt = rtt.as_secs_f64();
    let wanted = (600.0 * rtt).clamp(10.0, 120.0);
    let seconds = wanted.min(MOST_PACKETS / packets_per_s);
    (seconds >= (60.0 * rtt).max(1.0)).then_some(seconds as u64)
}

/// Packets of a run: some seconds of work.
const MOST_PACKETS: f64 = 4e7;

/// The loss comes when start-up is over, as a rule: after a third.
fn loss_at(seconds: u64) -> u64 {
    (seconds / 3).max(1)
}

fn scenario(rule: &Rule, facts: &PathFacts, stack: &str, buffer: BufferSize, s: u64) -> String {
    let (rate, rtt) = (
        facts.rate.unwrap_or_default(),
        facts.rtt.unwrap_or_default(),
    );
    let mut text = format!(
        "name = \"forecast\"\nduration = \"{s}s\"\n\
         [path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\nmtu = {}\n\
         [[flow]]\npreset = \"linux\"\nreceive_window = \"4BDP\"\npush = false\ndrop = {{ time = \"{}s\" }}\n",
        facts.mtu,
        loss_at(s)
    );
    // The law is an axis of the matrix, and how it begins is its own.
    let keys = facts.flow_keys(rule).unwrap_or_default();
    for (key, value) in keys
        .iter()
        .filter(|(key, _)| ["window", "rate"].contains(key))
    {
        let _ = writeln!(text, "{key} = \"{value}\"");
    }
    let _ = writeln!(
        text,
        "[matrix]\n\"flow.main.stack\" = [{}]",
        match stack {
            "cubic" => "\"cubic\"".to_owned(),
            stack => format!("\"{stack}\", \"cubic\""),
        }
    );
    text
}

impl Forecast {
    /// For people.
    pub fn text(&self) -> String {
        if let Some(why) = &self.none {
            return format!("no forecast: {why}\n");
        }
        let mut table = Table::new();
        table.column(Align::Left, &["stack"]);
        for head in [
            &["goodput", "Mbit/s"][..],
            &["loss", "events"],
            &["retransmits", "segments"],
            &["recovery", "1st, s"],
        ] {
            table.column(Align::Right, head);
        }
        let shown = |x: Option<f64>, digits| x.map_or("-".to_owned(), |x| number(x, digits));
        for flow in &self.flows {
            table.row(vec![
                flow.stack.clone(),
                shown(flow.goodput_mbps, 1),
                shown(flow.loss_events, 0),
                shown(flow.retransmits, 0),
                shown(flow.recovery_s, 1),
            ]);
        }
        format!("{}\n{}", self.about, table.text())
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let flows: Vec<Value> = self
            .flows
            .iter()
            .map(|flow| {
                json!({
                    "stack": flow.stack,
                    "goodput_mbps": flow.goodput_mbps,
                    "loss_events": flow.loss_events,
                    "retransmits": flow.retransmits,
                    "recovery_time_s": flow.recovery_s,
                })
            })
            .collect();
        json!({ "about": self.about, "flows": flows, "without": self.none })
    }
}
