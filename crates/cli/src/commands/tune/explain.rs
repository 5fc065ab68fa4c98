//! `fullpipe tune explain`: which path an address is of, and what the path does.

use std::fmt::Write as _;
use std::net::SocketAddr;

use fullpipe_cc::response::{Conditions, Cycle, cycle};
use fullpipe_policy::{
    Action, Aggression, Flow, Mismatch, PathFacts, Policy, Row, Rule, Side, Verdict, Via, Waiting,
};
use fullpipe_results::result::printed;
use fullpipe_units::Span;
use serde_json::{Value, json};

use super::check::{path_json, refuse};
use super::forecast::{Forecast, forecast};
use super::measured::known;
use crate::args::{Opened, TuneExplain};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::{Align, Table, number};

/// Runs the command.
pub fn explain(args: &TuneExplain) -> Result<Exit, Failure> {
    let policy = match Policy::load_with(&args.policy, &known(&args.state)) {
        Ok(policy) => policy,
        Err(wrong) => {
            refuse(&wrong);
            return Ok(Exit::Usage);
        }
    };
    let flow = flow(args);
    let verdict = policy.compiled.verdict(&flow);
    let chosen = match verdict {
        Verdict::Rule(i) | Verdict::AppChose(i) | Verdict::Control(i) => {
            Some((i, &policy.compiled.rules[i], &policy.paths[i]))
        }
        Verdict::NeverTuned | Verdict::NoRule => None,
    };
    let laws = chosen.map(|(_, rule, facts)| Laws::of(rule, facts));
    let forecast = match (&chosen, args.no_forecast) {
        (Some((_, rule, facts)), false) => Some(forecast(rule, facts)?),
        _ => None,
    };
    let told = Told {
        args,
        policy: &policy,
        flow: &flow,
        verdict,
    };
    let text = match args.json {
        true => printed::pretty(&told.json(chosen, laws.as_ref(), forecast.as_ref())),
        false => told.text(chosen, laws.as_ref(), forecast.as_ref()),
    };
    output::data(&text)?;
    Ok(Exit::Ok)
}

/// The flow that is asked about. Without a port no range holds it.
fn flow(args: &TuneExplain) -> Flow {
    let port = args.peer.port.unwrap_or(0);
    let (local_port, remote_port, side) = match args.side {
        Opened::Active => (0, port, Side::Active),
        Opened::Passive => (port, 0, Side::Passive),
    };
    Flow {
        local_port,
        remote: SocketAddr::new(args.peer.address, remote_port),
        side: Some(side),
        cgroup: args.cgroup.clone(),
        process: args.process.clone(),
        chose_algorithm: args.chose,
        // In the share of every path: what a flow of the path gets is what is asked.
        cookie: 0,
    }
}

/// A law at several windows.
struct Laws {
    rtt: Span,
    rtt_is_assumed: bool,
    rows: Vec<At>,
    /// The first reason for which a window has no row; `None` if each has one.
    none: Option<String>,
}

struct At {
    cycle: Cycle,
    reno_flows: f64,
    cubic: f64,
    /// a and b in force on the kernel side, where they are a table's.
    table: Option<(f64, f64)>,
}

impl Laws {
    fn of(rule: &Rule, facts: &PathFacts) -> Self {
        let (rtt, rtt_is_assumed) = match facts.rtt {
            Some(rtt) => (rtt, false),
            None => (Conditions::default().rtt, true),
        };
        let mut laws = Self {
            rtt,
            rtt_is_assumed,
            rows: Vec::new(),
            none: None,
        };
        let Some(stack) = facts.modelled(&rule.action) else {
            laws.none = Some(format!(
                "there is no model of the kernel's `{}`",
                rule.stack
            ));
            return laws;
        };
        let conditions = Conditions {
            rtt,
            mss: facts.mss(),
            ..Conditions::default()
        };
        for window in windows(facts) {
            match cycle(&stack, window, &conditions) {
                Ok(cycle) => {
                    let Ok(aggression) = Aggression::at(&cycle, &conditions) else {
                        continue;
                    };
                    laws.rows.push(At {
                        cycle,
                        reno_flows: aggression.reno_flows,
                        cubic: aggression.cubic,
                        table: in_force(&rule.action, window),
                    });
                }
                Err(why) => laws.none = Some(why.to_string()),
            }
        }
        if !laws.rows.is_empty() {
            laws.none = None;
        }
        laws
    }
}

/// Windows of the table, and what the path can hold.
fn windows(facts: &PathFacts) -> Vec<f64> {
    let mut windows = vec![10.0, 100.0, 1_000.0, 10_000.0];
    windows.extend(facts.reach().map(|w| w.floor().clamp(4.0, LARGEST)));
    windows.sort_by(f64::total_cmp);
    windows.dedup();
    windows
}

/// A window above it takes a cycle of seconds.
const LARGEST: f64 = 200_000.0;

/// The row of the table that holds a window.
fn in_force(action: &Action, window: f64) -> Option<(f64, f64)> {
    let Action::Ours { table, .. } = action else {
        return None;
    };
    let at = table.partition_point(|row: &Row| f64::from(row.window) <= window);
    let row = table.get(at.checked_sub(1)?)?;
    Some((
        f64::from(row.increase) / 256.0,
        f64::from(row.decrease) / 65536.0,
    ))
}

type Chosen<'a> = Option<(usize, &'a Rule, &'a PathFacts)>;

struct Told<'a> {
    args: &'a TuneExplain,
    policy: &'a Policy,
    flow: &'a Flow,
    verdict: Verdict,
}

impl Told<'_> {
    /// What is said of each path before the chosen one, and of those that wait to be measured.
    fn others(&self) -> Vec<(&str, &'static str)> {
        let rules = self.policy.compiled.rules.iter();
        let rules = rules.filter_map(|rule| {
            let mismatch = rule.mismatch(self.flow)?;
            Some((rule.name.as_str(), self.why_not(mismatch)))
        });
        let waiting = self.policy.waiting.iter().map(|path| {
            let why = match path.selector.mismatch(self.flow) {
                Some(mismatch) => self.why_not(mismatch),
                None => "it waits for its first measurement",
            };
            (path.name.as_str(), why)
        });
        rules.chain(waiting).collect()
    }

    fn why_not(&self, mismatch: Mismatch) -> &'static str {
        match mismatch {
            Mismatch::Address => "the address is in none of its networks",
            Mismatch::Port if self.args.peer.port.is_none() => "it has ports, and no port is given",
            Mismatch::Port => "the port is in none of its ranges",
            Mismatch::Side => match self.args.side {
                Opened::Active => "the other end opens its connections (ask with `--side passive`)",
                Opened::Passive => "this host opens its connections (ask with `--side active`)",
            },
            Mismatch::Cgroup => "it is for another control group",
            Mismatch::Process => "it is for another process",
        }
    }

    /// The first path that the flow will be of when it is measured.
    fn awaited(&self) -> Option<&Waiting> {
        let mut waiting = self.policy.waiting.iter();
        waiting.find(|path| path.selector.mismatch(self.flow).is_none())
    }

    fn headline(&self, chosen: Chosen<'_>) -> String {
        let name = chosen.map(|(_, rule, facts)| format!("`{}` ({})", rule.name, facts.place));
        let name = name.unwrap_or_default();
        match self.verdict {
            Verdict::NeverTuned => "never touched: the port is in `never_tune`".to_owned(),
            Verdict::NoRule => match self.awaited() {
                None => "no path: the flow stays as it is".to_owned(),
                Some(Waiting { name, facts, .. }) => {
                    let host = facts.probe.as_ref().map_or("", |(host, _)| host);
                    format!(
                        "no path yet: `{name}` ({}) waits for its first measurement, by a probe of \
                         {host}; until then the flow stays as it is",
                        facts.place
                    )
                }
            },
            Verdict::AppChose(_) => format!(
                "path {name}, which leaves the flow alone: its program chose an algorithm \
                 (`respect_app`)"
            ),
            Verdict::Rule(_) | Verdict::Control(_) => format!("path {name}"),
        }
    }

    fn text(&self, chosen: Chosen<'_>, laws: Option<&Laws>, cast: Option<&Forecast>) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", self.headline(chosen));
        let last = chosen.map(|(i, ..)| i);
        // The headline has said it of this one.
        let said = self.awaited().filter(|_| self.verdict == Verdict::NoRule);
        let said = said.map(|path| path.name.as_str());
        let others = self.others().into_iter();
        for (name, why) in others.filter(|(name, _)| said != Some(*name)) {
            let _ = writeln!(out, "  not `{name}`: {why}");
        }
        let rules = self.policy.compiled.rules.iter().enumerate();
        for (_, rule) in rules.filter(|(i, rule)| {
            last.is_some_and(|last| *i > last) && rule.mismatch(self.flow).is_none()
        }) {
            let _ = writeln!(out, "  not `{}`: it comes later", rule.name);
        }
        let Some((_, rule, facts)) = chosen else {
            return out;
        };
        out.push('\n');
        given(&mut out, rule, facts);
        if let Some(laws) = laws {
            laws_text(&mut out, laws);
        }
        let warnings = self.policy.compiled.warnings.iter();
        let own = format!("`path.{}", rule.name);
        for warning in warnings.filter(|w| w.contains(&format!("{own}."))) {
            let _ = writeln!(out, "warning: {warning}");
        }
        if let Some(cast) = cast {
            out.push('\n');
            out.push_str(&cast.text());
        }
        out
    }

    fn json(&self, chosen: Chosen<'_>, laws: Option<&Laws>, cast: Option<&Forecast>) -> Value {
        let others: Vec<Value> = self
            .others()
            .iter()
            .map(|(name, why)| json!({ "name": name, "why": why }))
            .collect();
        let rows: Vec<Value> = laws.map_or(Vec::new(), |laws| {
            let row = |at: &At| {
                json!({
                    "window": at.cycle.window,
                    "increase": at.cycle.increase_mean(),
                    "decrease": at.cycle.decrease,
                    "table_increase": at.table.map(|(a, _)| a),
                    "table_decrease": at.table.map(|(_, b)| b),
                    "recovery_s": at.cycle.rounds * laws.rtt.as_secs_f64(),
                    "loss_rate": at.cycle.loss_rate(),
                    "reno_flows": at.reno_flows,
                    "cubic_reno_flows": at.cubic,
                })
            };
            laws.rows.iter().map(row).collect()
        });
        json!({
            "fullpipe": env!("CARGO_PKG_VERSION"),
            "address": self.args.peer.address.to_string(),
            "port": self.args.peer.port,
            "verdict": match self.verdict {
                Verdict::NeverTuned => "never-tuned",
                Verdict::NoRule => "no-path",
                Verdict::AppChose(_) => "application-chose",
                Verdict::Rule(_) | Verdict::Control(_) => "path",
            },
            "path": chosen.map(|(_, rule, facts)| path_json(rule, facts)),
            "others": others,
            "rtt_ms": laws.map(|laws| laws.rtt.as_millis_f64()),
            "windows": rows,
            "without": laws.and_then(|laws| laws.none.clone()),
            "forecast": cast.map(Forecast::json),
        })
    }
}

/// What a flow of the path gets.
fn given(out: &mut String, rule: &Rule, facts: &PathFacts) {
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "{name:<16} {text}");
    };
    let (rows, what, pacing) = match &rule.action {
        Action::Kernel { name, pacing } => (0, format!("the kernel's `{name}`"), *pacing),
        Action::Ours { params, table } => (table.len(), rule.stack.clone(), params.pacing),
    };
    line("stack", what);
    if let (Some(m), Some((host, _))) = (&facts.measured, &facts.probe) {
        line("measured", format!("{m}, by a probe of {host}"));
    }
    if rule.divide {
        let what = "window, pacing and buffers, among the flows that the path has";
        line("divided", what.to_owned());
    }
    if rows > 1 {
        let (a, b) = facts.table_error;
        let percent = |x: f64| number(x * 100.0, 2);
        line(
            "table",
            format!(
                "{rows} rows; a within {} %, b within {} %",
                percent(a),
                percent(b)
            ),
        );
    }
    if pacing > 0 {
        let mbps = pacing as f64 * 8e-6;
        line("pacing", format!("at most {} Mbit/s", number(mbps, 1)));
    }
    if let Action::Ours { params, .. } = &rule.action {
        if params.clamp > 0 {
            line("window", format!("at most {} segments", params.clamp));
        }
        if params.initial_window > 0 {
            let spread = match params.spread_us {
                0 => String::new(),
                us => {
                    let by = match facts.via {
                        Via::Auto => "the first of edt, htb and beyond-ten that the host has",
                        Via::Edt => "edt",
                        Via::Htb => "htb",
                        Via::BeyondTen => "beyond-ten",
                    };
                    format!(", over {} ms, by {by}", number(f64::from(us) / 1000.0, 1))
                }
            };
            line(
                "initial window",
                format!("{} segments{spread}", params.initial_window),
            );
        }
        if params.update_interval_us > 0 {
            line(
                "a and b",
                format!("every {} ms", params.update_interval_us / 1000),
            );
        }
    }
    for (name, bytes) in [
        ("send buffer", rule.send_buffer),
        ("receive buffer", rule.receive_buffer),
    ] {
        if let Some(bytes) = bytes {
            line(name, format!("{bytes} B"));
        }
    }
    if rule.share < 65536 {
        let percent = number(f64::from(rule.share) / 655.36, 1);
        line(
            "share",
            format!("{percent} % of the flows, the others stay as they were"),
        );
    }
    if rule.receive_buffer.is_some() {
        line(
            "cannot",
            "widen the window that the other end offers: that is its own".to_owned(),
        );
    }
}

fn laws_text(out: &mut String, laws: &Laws) {
    if let Some(why) = &laws.none {
        let _ = writeln!(out, "\nno a(w) and b(w): {why}");
        return;
    }
    let assumed = if laws.rtt_is_assumed {
        ", for want of the path's `rtt`"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "\none loss whenever the window is reached; RTT {}{assumed}",
        laws.rtt
    );
    let mut table = Table::new();
    for head in [
        &["window", "segments"][..],
        &["a", "seg/RTT"],
        &["b", ""],
        &["climb", "s"],
        &["loss rate", ""],
        &["Reno", "flows"],
        &["CUBIC", "Reno flows"],
    ] {
        table.column(Align::Right, head);
    }
    for at in &laws.rows {
        let (a, b) = at
            .table
            .unwrap_or((at.cycle.increase_mean(), at.cycle.decrease));
        table.row(vec![
            number(at.cycle.window, 0),
            number(a, 2),
            number(b, 4),
            number(at.cycle.rounds * laws.rtt.as_secs_f64(), 1),
            format!("{:.2e}", at.cycle.loss_rate()),
            format!("{:.1}", at.reno_flows),
            format!("{:.1}", at.cubic),
        ]);
    }
    out.push_str(&table.text());
}
