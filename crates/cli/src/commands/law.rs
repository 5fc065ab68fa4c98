//! `fullpipe law`: a(w), b(w), response function and recovery of stacks.

use std::fmt::Write as _;
use std::path::Path;

use clap::ValueEnum as _;
use fullpipe_cc::StackSpec;
use fullpipe_cc::response::{Conditions, Cycle, NoCycle, cycle};
use fullpipe_report::figure::{Axis, Chart, Line, Panel, Scale};
use fullpipe_results::result::printed;
use fullpipe_units::{Rate, printed_text};
use serde_json::{Value, json};

use crate::args::{Law, LawFormat, LawPanel};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::picture::{Form, Picture};
use crate::table::{Align, Table};

/// Runs the command.
pub fn law(args: &Law) -> Result<Exit, Failure> {
    // Before the work, which may take a while.
    let named =
        |file: &Path| Picture::named("--figure", file, "laws.svg", |form: Form| !form.is_table());
    let picture = args.figure.as_deref().map(named).transpose()?;
    if let Some(own) = args.stacks.iter().find(|s| !s.has_law()) {
        let message = format!("{own}: {}", NoCycle::InAKernel);
        return Err(Failure::new(Exit::Usage, message)
            .hint("`fullpipe run --ground linux --kernel-module FILE` runs it"));
    }
    let conditions = Conditions {
        rtt: args.rtt,
        mss: args.mss,
        hz: args.hz,
        ..Conditions::default()
    };
    let path = args.rate.map(|rate| path_window(args, rate)).transpose()?;
    let mut windows: Vec<f64> = args.window.iter().copied().chain(path).collect();
    windows.sort_by(f64::total_cmp);
    windows.dedup();
    let laws = responses(&args.stacks, &windows, &conditions);
    if let Some(response) = laws.iter().find(|l| l.cycles.is_empty()) {
        return Err(response.refused());
    }
    match args.format {
        LawFormat::Table => output::data(&text(&laws, args, path))?,
        LawFormat::Csv => {
            output::data(&csv(&laws, args))?;
            // The other forms have them.
            for law in &laws {
                for (window, why) in &law.without {
                    output::say(&format!("{}: window {}: {why}", law.stack, short(*window)));
                }
            }
        }
        LawFormat::Json => output::data(&as_json(&laws, args, path))?,
    }
    if let Some(picture) = &picture {
        draw(&laws, args, picture)?;
    }
    Ok(Exit::Ok)
}

/// The stacks, each on a thread of its own: a slow law takes seconds at a large window.
fn responses(stacks: &[StackSpec], windows: &[f64], conditions: &Conditions) -> Vec<Response> {
    std::thread::scope(|scope| {
        let running: Vec<_> = stacks
            .iter()
            .map(|spec| scope.spawn(|| Response::of(spec, windows, conditions)))
            .collect();
        let finished = running.into_iter().map(|thread| thread.join());
        finished
            .map(|response| response.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Bytes of a packet that are no payload: IPv4 and TCP with time stamps.
const HEADERS: u32 = 52;

fn path_window(args: &Law, rate: Rate) -> Result<f64, Failure> {
    let bdp = rate.bdp(args.rtt).get() as f64;
    let window = (bdp / f64::from(args.mss + HEADERS)).floor();
    if (4.0..=1e7).contains(&window) {
        return Ok(window);
    }
    let message = format!(
        "--rate {rate} x --rtt {}: a window of {window} segments",
        args.rtt
    );
    Err(Failure::new(Exit::Usage, message).hint("4 to 10,000,000 segments are possible"))
}

/// A stack and its cycles, in the order of the windows.
struct Response {
    stack: String,
    cycles: Vec<Cycle>,
    /// Windows that have none, and why.
    without: Vec<(f64, NoCycle)>,
}

impl Response {
    fn of(spec: &StackSpec, windows: &[f64], conditions: &Conditions) -> Self {
        let (mut cycles, mut without) = (Vec::new(), Vec::new());
        for &w in windows {
            match cycle(spec, w, conditions) {
                Ok(c) => cycles.push(c),
                Err(why) => without.push((w, why)),
            }
        }
        Self {
            stack: spec.to_string(),
            cycles,
            without,
        }
    }

    /// The command's refusal of a stack without any cycle.
    fn refused(&self) -> Failure {
        let why = self.without.first().map(|(_, why)| why.to_string());
        let message = format!("{}: {}", self.stack, why.unwrap_or_default());
        let hint = match self.stack.starts_with("udt") {
            true => {
                "its rate grows by the spare capacity every 10 ms and falls by a ninth at a loss \
                 report, whatever window and RTT; `fullpipe run slac-udt` shows it on a path"
            }
            false => {
                "`fullpipe run` shows what it does on a path, `fullpipe list stacks` the others"
            }
        };
        Failure::new(Exit::Usage, message).hint(hint)
    }
}

fn text(laws: &[Response], args: &Law, path: Option<f64>) -> String {
    let mut out = String::new();
    for (i, law) in laws.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{gap}{}, RTT {}, segments of {} B, no queue",
            law.stack, args.rtt, args.mss
        );
        out.push_str(&table(law, args).text());
        for (w, why) in &law.without {
            let _ = writeln!(out, "window {}: {why}", short(*w));
        }
        if law.cycles.iter().any(|c| !c.settled) {
            out.push_str("~ successive cycles differ: means\n");
        }
        let at_path = |w| law.cycles.iter().find(|c| c.window == w);
        if let (Some(rate), Some(c)) = (args.rate, path.and_then(at_path)) {
            let _ = writeln!(
                out,
                "{rate} x {}: {} segments; one loss in {} segments, one every {} s, holds the \
                 window there",
                args.rtt,
                short(c.window),
                short(c.segments),
                short(seconds(c, args)),
            );
        }
    }
    out
}

fn table(law: &Response, args: &Law) -> Table {
    let mut table = Table::new();
    let heads: [&[&str]; 11] = [
        &["window", "segments"],
        &["a first", "seg/RTT"],
        &["a mean", "seg/RTT"],
        &["a last", "seg/RTT"],
        &["b", ""],
        &["recovery", "RTTs"],
        &["recovery", "s"],
        &["loss rate", ""],
        &["mean window", "segments"],
        &["goodput", "Mbit/s"],
        &["Reno", "flows"],
    ];
    for head in heads {
        table.column(Align::Right, head);
    }
    for c in &law.cycles {
        let settled = if c.settled { "" } else { "~" };
        table.row(vec![
            format!("{settled}{}", short(c.window)),
            short(c.increase_first),
            short(c.increase_mean()),
            short(c.increase_last),
            format!("{:.4}", c.decrease),
            short(c.rounds),
            short(seconds(c, args)),
            format!("{:.2e}", c.loss_rate()),
            short(c.mean_window),
            short(mbps(c, args)),
            short(c.reno_flows()),
        ]);
    }
    table
}

/// Four significant digits, without exponent and without zeros that say nothing.
fn short(x: f64) -> String {
    let digits = if x == 0.0 {
        0
    } else {
        3 - x.abs().log10().floor() as i32
    };
    let text = format!("{x:.*}", digits.clamp(0, 6) as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn seconds(c: &Cycle, args: &Law) -> f64 {
    c.rounds * args.rtt.as_secs_f64()
}

/// Goodput, at most what the path carries.
fn mbps(c: &Cycle, args: &Law) -> f64 {
    let mss = f64::from(args.mss);
    let free = c.mean_window * mss * 8e-6 / args.rtt.as_secs_f64();
    let part = mss / (mss + f64::from(HEADERS));
    let path = args
        .rate
        .map(|rate| rate.as_bits_per_sec() as f64 / 1e6 * part);
    path.map_or(free, |path| free.min(path))
}

fn csv(laws: &[Response], args: &Law) -> String {
    let mut out = format!("stack,{}\n", FIELDS.join(","));
    for law in laws {
        // A spelling with commas is one field (RFC 4180).
        let stack = format!("\"{}\"", law.stack.replace('"', "\"\""));
        for c in &law.cycles {
            let cells = values(c, args).map(printed_text);
            let _ = writeln!(out, "{stack},{},{}", cells.join(","), c.settled);
        }
    }
    out
}

/// Names of [`values`], and of what follows them.
const FIELDS: [&str; 12] = [
    "window",
    "increase_first",
    "increase_mean",
    "increase_last",
    "decrease",
    "recovery_rtts",
    "recovery_s",
    "loss_rate",
    "mean_window",
    "goodput_mbps",
    "reno_flows",
    "settled",
];

fn values(c: &Cycle, args: &Law) -> [f64; 11] {
    [
        c.window,
        c.increase_first,
        c.increase_mean(),
        c.increase_last,
        c.decrease,
        c.rounds,
        seconds(c, args),
        c.loss_rate(),
        c.mean_window,
        mbps(c, args),
        c.reno_flows(),
    ]
}

fn as_json(laws: &[Response], args: &Law, path: Option<f64>) -> String {
    let row = |c: &Cycle| {
        let numbers = FIELDS.iter().zip(values(c, args));
        let mut row: serde_json::Map<String, Value> = numbers
            .map(|(name, x)| ((*name).to_owned(), json!(x)))
            .collect();
        row.insert("settled".to_owned(), json!(c.settled));
        Value::Object(row)
    };
    let without = |(w, why): &(f64, NoCycle)| json!({"window": w, "reason": why.to_string()});
    let laws: Vec<Value> = laws
        .iter()
        .map(|l| {
            json!({
                "stack": l.stack,
                "windows": l.cycles.iter().map(row).collect::<Vec<_>>(),
                "without": l.without.iter().map(without).collect::<Vec<_>>(),
            })
        })
        .collect();
    let doc = json!({
        "fullpipe": env!("CARGO_PKG_VERSION"),
        "rtt_ms": args.rtt.as_millis_f64(),
        "mss": args.mss,
        "hz": args.hz,
        "path_window": path,
        "laws": laws,
    });
    printed::pretty(&doc)
}

fn draw(laws: &[Response], args: &Law, picture: &Picture) -> Result<(), Failure> {
    let panel = |title: &str, x: &str, y: &str, point: &dyn Fn(&Cycle) -> (f64, f64)| Panel {
        title: title.to_owned(),
        x: Axis {
            label: x.to_owned(),
            scale: Scale::Log,
        },
        y: Axis {
            label: y.to_owned(),
            scale: Scale::Log,
        },
        lines: laws
            .iter()
            .enumerate()
            .map(|(group, law)| Line {
                name: law.stack.clone(),
                group,
                points: law.cycles.iter().map(point).collect(),
                ..Line::default()
            })
            .collect(),
        ..Panel::default()
    };
    let window = "window (segments)";
    let panel_of = |which: LawPanel| match which {
        LawPanel::A => panel(
            "increase a(w), mean of a cycle",
            window,
            "segments per RTT",
            &|c| (c.window, c.increase_mean()),
        ),
        LawPanel::B => panel("decrease b(w)", window, "fraction of the window", &|c| {
            (c.window, c.decrease)
        }),
        LawPanel::Response => panel(
            "response function",
            "loss rate p",
            "mean window (segments)",
            &|c| (c.loss_rate(), c.mean_window),
        ),
        LawPanel::Recovery => panel("recovery from one loss", window, "time (s)", &|c| {
            (c.window, seconds(c, args))
        }),
    };
    let all = LawPanel::value_variants().iter();
    let chosen = all.filter(|p| args.panel.is_empty() || args.panel.contains(p));
    let mut subtitle = format!(
        "one flow alone, a loss whenever the window is reached; RTT {}, segments of {} B, no queue",
        args.rtt, args.mss
    );
    let unsettled = laws.iter().filter(|l| l.cycles.iter().any(|c| !c.settled));
    let unsettled: Vec<&str> = unsettled.map(|l| l.stack.as_str()).collect();
    if !unsettled.is_empty() {
        let stacks = unsettled.join(", ");
        subtitle += &format!("; means where successive cycles differ: {stacks}");
    }
    let chart = Chart {
        title: "What a loss does".to_owned(),
        stacked: false,
        subtitle,
        panels: chosen.copied().map(panel_of).collect(),
    };
    let style = args.print.style();
    let stacks: Vec<&str> = laws.iter().map(|law| law.stack.as_str()).collect();
    let origin = format!("fullpipe law {}, RTT {}", stacks.join(" "), args.rtt);
    picture.draw(&chart.svg(&style), &style, &origin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.12345, "0.1235"),
            (83_333.0, "83333"),
            (13.4217, "13.42"),
            (4165.02, "4165"),
            (0.000_012_345, "0.000012"),
        ] {
            assert_eq!(short(x), text);
        }
    }
}
