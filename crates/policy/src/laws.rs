//! Stacks for the kernel side: law, slow start and initial window in fixed point, and what cannot
//! be done there, by name.
//!
//! Scales are those of [`Params`]: fractions in 1/65536, windows and increases in 1/256 segment
//! where a comment says so, times in microseconds. The numbers of each law stand in the order in
//! which the kernel side reads them.

use fullpipe_cc::law::Law;
use fullpipe_cc::law::aimd::Aimd;
use fullpipe_cc::law::highspeed::{Form, HighSpeed};
use fullpipe_cc::params::Params as Given;
use fullpipe_cc::registry::{Component, Registered, entries, nearest};
use fullpipe_cc::{InitialSending, Kind, StackError, StackSpec};
use fullpipe_units::Span;

use crate::compiled::{
    Action, LAW_BIC, LAW_CUBIC, LAW_FAST, LAW_HSTCP_LP, LAW_HTCP, LAW_SCALABLE, LAW_TABLE,
    LAW_VEGAS, LAW_WESTWOOD, Params, Row,
};
use crate::table::{MOST_FITTED, fit};

/// What the path says that a law is derived from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Round-trip time without queues.
    pub rtt: Option<Span>,
    /// Window at most, segments.
    pub clamp: Option<f64>,
    /// Rate x RTT and the buffer of the bottleneck, segments.
    pub reach: Option<f64>,
    /// a and b are taken this often.
    pub update_interval: Option<Span>,
}

/// Something that the kernel side cannot do: what and why, and what to write instead.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    pub hint: String,
}

/// A stack in fixed point.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    pub action: Action,
    /// Where the kernel side departs from the stack as the simulator runs it.
    pub departures: Vec<String>,
    /// Largest relative error of the table's a and b.
    pub error: (f64, f64),
}

/// Limits that the kernel side holds whatever the tables say: segments per round trip, and the
/// fraction that a loss takes.
pub const INCREASE: (f64, f64) = (1.0 / 256.0, 4096.0);
/// See [`INCREASE`].
pub const DECREASE: (f64, f64) = (1.0 / 128.0, 0.5);

/// Compiles a stack.
///
/// # Errors
/// Everything that the kernel side cannot do of it.
pub fn lower(stack: &StackSpec, facts: &Facts) -> Result<Lowered, Vec<Refusal>> {
    match stack.kind() {
        Kind::Module => kernel(stack),
        Kind::Law => ours(stack, facts),
        _ => Err(vec![model(stack)]),
    }
}

/// What to write for a name that no part of a stack has: among those that a path can have, which
/// are not all.
pub fn instead_of(name: &str) -> String {
    let known = can_have();
    let (near, is_slip) = match StackSpec::parse(name) {
        Err(StackError::Absent { nearest, .. }) => (nearest, false),
        _ => (nearest(name, entries().map(|entry| entry.name)), true),
    };
    let first = match near {
        Some("bbr") => "write kernel = \"bbr\" for the kernel's own BBR; ".to_owned(),
        Some(near) if is_slip && known.contains(&near) => format!("did you mean `{near}`? "),
        _ if !is_slip => "`kernel` names a module that the kernel has; ".to_owned(),
        _ => String::new(),
    };
    format!("{first}a path can have: {}", known.join(", "))
}

/// Names that a path can have as parts of its stack.
fn can_have() -> Vec<&'static str> {
    let facts = Facts {
        rtt: Some(Span::from_millis(100)),
        reach: Some(1000.0),
        ..Facts::default()
    };
    let can_be = |entry: &Registered| {
        let stack = match entry.kind {
            Kind::Law | Kind::Module | Kind::Model => entry.name.to_owned(),
            _ => format!("reno+{}", entry.name),
        };
        StackSpec::parse(&stack).is_ok_and(|stack| lower(&stack, &facts).is_ok())
    };
    let known = entries().filter(|entry| can_be(entry));
    known.map(|entry| entry.name).collect()
}

/// A module of the kernel, by the kernel's name.
fn kernel(stack: &StackSpec) -> Result<Lowered, Vec<Refusal>> {
    let spelled = stack.law_name();
    let name = spelled.strip_suffix("-linux").unwrap_or(spelled);
    let mut refused = Vec::new();
    if name == "own" {
        refused.push(Refusal {
            message: "`own-linux` is a module of ground `linux` alone".to_owned(),
            hint: "load the module and write kernel = \"NAME\"".to_owned(),
        });
    }
    let given = stack.params(Kind::Module).map(|(_, params)| params.given());
    if let Some((param, _)) = given.and_then(|mut all| all.next()) {
        refused.push(Refusal {
            message: format!(
                "`{spelled}({param})`: a module's parameters belong to the whole host \
                 (/sys/module), not to a path"
            ),
            hint: format!("write \"{spelled}\", or the law `{name}`, which takes parameters here"),
        });
    }
    if stack
        .kinds()
        .any(|kind| matches!(kind, Kind::Sending | Kind::Pacing))
    {
        refused.push(Refusal {
            message: format!("`{stack}`: a module of the kernel sends as the kernel does"),
            hint: format!("write \"{spelled}\", and `pacing` for a ceiling of the rate"),
        });
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    Ok(Lowered {
        // Linux calls them by other names than the papers.
        action: Action::Kernel {
            name: name.to_owned(),
            pacing: 0,
        },
        departures: Vec::new(),
        error: (0.0, 0.0),
    })
}

fn model(stack: &StackSpec) -> Refusal {
    let name = stack.law_name();
    let hint = match name {
        "bbr" => "write kernel = \"bbr\" for the kernel's own BBR, where it has one".to_owned(),
        _ => format!("choose a law of the window; `fullpipe run` has `{name}`"),
    };
    Refusal {
        message: format!(
            "`{name}` sets a rate from a model of the path; the kernel side has laws of the window"
        ),
        hint,
    }
}

/// A law, with its slow start, of the dispatcher.
fn ours(stack: &StackSpec, facts: &Facts) -> Result<Lowered, Vec<Refusal>> {
    let mut work = Work {
        params: Params::default(),
        table: Vec::new(),
        error: (0.0, 0.0),
        departures: Vec::new(),
        refused: Vec::new(),
    };
    work.law(stack, facts);
    work.start_up(stack);
    work.sending(stack, facts);
    if stack.ecn_keep().is_some() {
        work.refuse(
            "`ecn_keep`: the kernel side takes the same for a mark as for a loss",
            "leave `ecn_keep` out",
        );
    }
    if !work.refused.is_empty() {
        return Err(work.refused);
    }
    Ok(Lowered {
        action: Action::Ours {
            params: work.params,
            table: work.table,
        },
        departures: work.departures,
        error: work.error,
    })
}

struct Work {
    params: Params,
    table: Vec<Row>,
    error: (f64, f64),
    departures: Vec<String>,
    refused: Vec<Refusal>,
}

impl Work {
    fn refuse(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.refused.push(Refusal {
            message: message.into(),
            hint: hint.into(),
        });
    }

    fn departs(&mut self, what: &str) {
        self.departures.push(what.to_owned());
    }

    /// Refuses a parameter unless it has the one value that the kernel side does.
    fn only(&mut self, part: &str, param: &str, holds: bool, does: &str) {
        if !holds {
            let message = format!("`{part}({param})`: the kernel side {does}");
            let hint = match param {
                "rto_b" => "write rto_b=0".to_owned(),
                _ => format!("leave `{param}` out of the stack"),
            };
            self.refuse(message, hint);
        }
    }

    fn law(&mut self, stack: &StackSpec, facts: &Facts) {
        let (Some(Component::Law(law)), Some((name, p))) =
            (stack.component(Kind::Law), stack.params(Kind::Law))
        else {
            return;
        };
        let n = &mut self.params.number;
        match law {
            Law::Aimd(pair) => self.pair(name, *pair),
            Law::Pretuned(tuned) => {
                let window = facts.clamp.or(facts.reach);
                match (tuned.from_buffer, window) {
                    (Some(form), Some(w)) => self.pair(name, Aimd::pretuned(w, form)),
                    (Some(_), None) => self.refuse(
                        "`pretuned` takes a and b from the window that the path can hold",
                        "give `rate` and `rtt`, or `window`, or write \"pretuned(window=3000)\"",
                    ),
                    (None, _) => self.pair(name, tuned.pair),
                }
            }
            Law::HighSpeed(law) => {
                self.tabulate(facts, law);
                let first = "takes b(w) at the first loss as at every other";
                self.only(
                    name,
                    "first_decrease",
                    p.word("first_decrease") == "law",
                    first,
                );
                let rto = "takes b(w) after a timeout, too";
                self.only(name, "rto_b", p.number("rto_b") == 0.0, rto);
                let retune = p.time("retune");
                if retune > Span::ZERO {
                    self.params.update_interval_us = micros(retune);
                }
            }
            Law::HsLp(_) => {
                self.params.law = LAW_HSTCP_LP;
                n[0] = part65536(p.number("delta"));
                n[1] = u64::from(micros(p.time("granularity")));
                self.tabulate(facts, &HighSpeed::rfc(Form::of(p.word("form"))));
                self.only(name, "signal", p.word("signal") == "rtt", "reads the RTT");
                let half = "halves at an early indication";
                self.only(name, "early_b", p.word("early_b") == "half", half);
                let both = "lowers the threshold with the window";
                self.only(name, "linux_ssth", !p.flag("linux_ssth"), both);
            }
            Law::Scalable(_) => {
                self.params.law = LAW_SCALABLE;
                // Segments per segment, 2^-32; a whole segment at most.
                n[0] = (p.number("increase") * 4_294_967_296.0).round() as u64;
                n[1] = part65536(p.number("decrease"));
                n[2] = p.number("lwnd").round() as u64;
                self.taken(name, "decrease", p.number("decrease"));
            }
            Law::Htcp(_) => {
                self.params.law = LAW_HTCP;
                n[0] = u64::from(micros(p.time("delta_l")));
                n[1] = part65536(p.number("beta_min"));
                n[2] = part65536(p.number("beta_max"));
                n[3] = part65536(p.number("bandwidth_switch"));
                n[4] =
                    u64::from(p.flag("adaptive_backoff")) | u64::from(p.flag("rtt_scaling")) << 1;
                self.taken(name, "beta_min", 1.0 - p.number("beta_min"));
                self.taken(name, "beta_max", 1.0 - p.number("beta_max"));
            }
            Law::Bic(_) => self.bic(name, p),
            Law::Cubic(_) => {
                self.params.law = LAW_CUBIC;
                n[0] = part65536(p.number("c"));
                n[1] = part65536(p.number("beta"));
                n[2] = u64::from(p.flag("fast_convergence"))
                    | u64::from(p.flag("tcp_friendliness")) << 1;
                self.taken(name, "beta", 1.0 - p.number("beta"));
            }
            Law::Westwood(_) => {
                self.params.law = LAW_WESTWOOD;
                n[0] = u64::from(micros(p.time("window")));
                let filter = "filters as Linux does";
                self.only(name, "filter", p.word("filter") == "linux", filter);
                let entry = "sets the window when the loss is found";
                self.only(name, "timing", p.word("timing") == "entry", entry);
                self.departs("westwood: a loss takes half of the window at most");
            }
            Law::Vegas(_) => {
                self.params.law = LAW_VEGAS;
                n[0] = part256(p.number("alpha"));
                n[1] = part256(p.number("beta"));
                n[2] = part65536(p.number("decrease"));
                self.taken(name, "decrease", p.number("decrease"));
                let rtt = "divides by the RTT";
                self.only(name, "diff_over", p.word("diff_over") == "rtt", rtt);
                let law = "adds one segment a round";
                self.only(name, "law", p.word("law") == "standard", law);
                self.own_gate(name, p.number("gamma"));
            }
            Law::Fast(_) => {
                self.params.law = LAW_FAST;
                n[0] = part256(p.number("alpha"));
                n[1] = part65536(p.number("gamma"));
                n[2] = part65536(p.number("eta_max"));
                self.only(name, "mi", !p.flag("mi"), "has no multiplicative increase");
                let whole = "takes the base RTT over the whole flow";
                self.only(
                    name,
                    "base_window",
                    p.time("base_window") == Span::ZERO,
                    whole,
                );
                self.own_gate(name, p.number("gamma_ss"));
            }
            _ => {
                let module = format!("{name}-linux");
                let hint = match StackSpec::parse(&module) {
                    Ok(_) => format!("write \"{module}\" for the kernel's module, if it has it"),
                    Err(_) => "choose another law; `fullpipe run` has this one".to_owned(),
                };
                self.refuse(format!("the kernel side has no law `{name}`"), hint);
            }
        }
        if let Some(interval) = facts.update_interval {
            self.interval(name, interval);
        }
    }

    fn interval(&mut self, name: &str, interval: Span) {
        if self.params.update_interval_us > 0 {
            self.refuse(
                "`update_interval` and `retune` of the stack say the same",
                "leave one of them out",
            );
        } else if !matches!(self.params.law, LAW_TABLE | LAW_HSTCP_LP) {
            self.refuse(
                format!("`update_interval`: `{name}` has no table of a(w) and b(w)"),
                "leave `update_interval` out",
            );
        }
        self.params.update_interval_us = micros(interval);
    }

    /// Slow start of a law that measures the queue by itself.
    fn own_gate(&mut self, name: &str, threshold: f64) {
        self.params.gamma = gate(threshold);
        self.departures.push(format!(
            "{name}: slow start doubles every round, and ends when the smallest of eight RTTs \
             shows its threshold of queue"
        ));
    }

    fn bic(&mut self, name: &str, p: &Given) {
        let paper = name == "bic-paper";
        let s_min = match paper {
            true => p.number("s_min"),
            false => 4.0 / p.number("smooth_part"),
        };
        self.params.law = LAW_BIC;
        let n = &mut self.params.number;
        n[0] = p.number("low_window").round() as u64;
        n[1] = part256(p.number("s_max"));
        n[2] = part256(s_min).max(1);
        n[3] = if paper { 2 } else { 4 };
        n[4] = if paper { part256(s_min).max(1) } else { 256 };
        n[5] = part65536(p.number("beta"));
        n[6] = u64::from(p.flag("fast_convergence"));
        self.taken(name, "beta", 1.0 - p.number("beta"));
        if !paper {
            let real = "computes the increase without rounding to whole segments";
            self.only(name, "rule", p.word("rule") == "real", real);
        }
    }

    /// A pair that holds at every window.
    fn pair(&mut self, name: &str, pair: Aimd) {
        let (least, most) = INCREASE;
        if !(least..=most).contains(&pair.increase) {
            let message = format!(
                "`{name}`: an increase of {} segments per round trip is outside 1/256 to {most}, \
                 the limits of the kernel side",
                pair.increase
            );
            self.refuse(message, "write an increase within them");
        }
        self.taken(name, "decrease", pair.decrease);
        let fit = fit(|_| pair.increase, |_| pair.decrease, MOST_FITTED);
        (self.table, self.error) = (fit.rows, fit.error);
        self.params.rows = self.table.len() as u32;
    }

    /// Refuses a fraction that a loss takes which the kernel side would not keep.
    fn taken(&mut self, name: &str, param: &str, decrease: f64) {
        let (least, most) = DECREASE;
        // A kept fraction of 1/2 is 0.5 taken, but for the last bit.
        if !(least - 1e-9..=most + 1e-9).contains(&decrease) {
            let message = format!(
                "`{name}({param})`: a loss takes {:.4} of the window, outside 1/128 to 1/2, the \
                 limits of the kernel side",
                decrease
            );
            self.refuse(message, "write a value within them");
        }
    }

    fn tabulate(&mut self, facts: &Facts, law: &HighSpeed) {
        let most = facts.clamp.map_or(MOST_FITTED, |w| w.ceil() as u32);
        let fit = fit(|w| law.a(w), |w| law.b(w), most);
        (self.table, self.error) = (fit.rows, fit.error);
        self.params.rows = self.table.len() as u32;
        let past = |row: &&Row| {
            let (a, b) = (
                f64::from(row.increase) / 256.0,
                f64::from(row.decrease) / 65536.0,
            );
            a > INCREASE.1 || !(DECREASE.0..=DECREASE.1).contains(&b)
        };
        if let Some(row) = self.table.iter().find(past) {
            let message = format!(
                "at {} segments a(w) is {:.1} and b(w) {:.4}, outside the limits of the kernel \
                 side: at most 4096 segments per round trip, 1/128 to 1/2 of the window",
                row.window,
                f64::from(row.increase) / 256.0,
                f64::from(row.decrease) / 65536.0
            );
            self.refuse(
                message,
                "choose other parameters, or bound the window by `window`",
            );
        }
    }

    fn start_up(&mut self, stack: &StackSpec) {
        let Some((name, p)) = stack.params(Kind::StartUp) else {
            return;
        };
        match name {
            "standard" => {
                self.params.gamma = 0;
                let first = "has no threshold before the first loss";
                self.only(name, "ssthresh", p.number("ssthresh") >= 1e9, first);
            }
            "limited" => {
                self.params.gamma = 0;
                self.params.max_ssthresh = segments(p.number("max_ssthresh"));
                let rule = "grows by 1/K per segment, with the RFC's floor";
                self.only(name, "rule", p.word("rule") == "rfc", rule);
            }
            "gamma" => self.gamma(name, p),
            _ => self.refuse(
                format!("the kernel side has no slow start `{name}`"),
                "write `+limited`, `+gamma`, or cubic-linux, which brings HyStart",
            ),
        }
    }

    fn gamma(&mut self, name: &str, p: &Given) {
        self.params.gamma = gate(p.number("threshold"));
        self.params.max_ssthresh = segments(p.number("max_ssthresh"));
        let limit = p.number("limit");
        match p.word("then") {
            // Without a limit, the window at the crossing: the kernel side takes the smaller.
            "limited" if limit == 0.0 => self.params.gamma_then = u32::MAX,
            "limited" => {
                self.params.gamma_then = segments(limit);
                self.departs("gamma: the limit is that of the stack, or the window if smaller");
            }
            "ca" => {}
            then => self.refuse(
                format!("`gamma(then={then})`: the kernel side keeps the window at the crossing"),
                "write then=limited or then=ca",
            ),
        }
        let every = "doubles every round";
        self.only(name, "growth", p.word("growth") == "every", every);
        self.only(
            name,
            "diff_over",
            p.word("diff_over") == "rtt",
            "divides by the RTT",
        );
        let least = "takes the smallest of eight samples";
        self.only(name, "sample", p.word("sample") == "min", least);
        self.only(
            name,
            "grain",
            p.time("grain") == Span::ZERO,
            "has microseconds",
        );
        let measured = "measures the crossing";
        self.only(name, "crossing", p.number("crossing") == 0.0, measured);
        self.departs(
            "gamma: the smallest of eight RTTs is tested, several times a round, not that of a \
             round",
        );
    }

    fn sending(&mut self, stack: &StackSpec, facts: &Facts) {
        if stack.pacing().is_some() {
            self.refuse(
                "`paced`: the kernel side leaves the pacing of segments to the host",
                "set net.core.default_qdisc=fq for the host, or `pacing` for a ceiling",
            );
        }
        let iw = stack.initial_window();
        if let Some(iw) = iw {
            self.params.initial_window = segments(iw);
        }
        let sending = stack.sending();
        let spreads = |s: &InitialSending| matches!(s, InitialSending::Spread { .. });
        if let Some(sending) = sending.filter(spreads) {
            let iw = iw.unwrap_or(DEFAULT_IW);
            self.params.initial_window = segments(iw);
            match facts.rtt {
                Some(rtt) => {
                    self.params.spread_us = spread_us(sending, rtt, iw as u32);
                    if let Some(remark) = remark(sending, rtt, iw as u32) {
                        self.departs(remark);
                    }
                }
                None => self.refuse(
                    "spreading over the first round trip needs its length",
                    "give the path's `rtt`",
                ),
            }
        }
    }
}

/// A warning where a spread was asked for and there is none.
const TOO_CLOSE: &str =
    "nothing is spread: RTT/segments is less than a jiffy (1 ms, or the stack's `jiffy`)";

/// A warning where the gap that a spread asks for at most is one that no timer keeps.
const TOO_FINE: &str = "segments leave a jiffy apart (1 ms, or the stack's `jiffy`), which is more \
     than the largest gap that is asked for";

/// What is to be said of the spread of an initial window on a path of `rtt`.
pub(crate) fn remark(sending: InitialSending, rtt: Span, iw: u32) -> Option<&'static str> {
    let gap = sending.spacing(rtt, iw.into());
    let InitialSending::Spread { t_max, .. } = sending else {
        return None;
    };
    match t_max {
        _ if iw <= 1 => None,
        _ if gap == Span::ZERO => Some(TOO_CLOSE),
        Some(most) if gap > most => Some(TOO_FINE),
        _ => None,
    }
}

/// The initial window leaves over this time, in microseconds: its segments times the gap between
/// them; 0: at once.
pub fn spread_us(sending: InitialSending, rtt: Span, iw: u32) -> u32 {
    let iw = u64::from(iw);
    let us = (sending.spacing(rtt, iw) * iw).as_nanos() / 1000;
    u32::try_from(us).unwrap_or(u32::MAX)
}

/// Linux, `include/net/tcp.h`: `TCP_INIT_CWND`, RFC 6928.
pub const DEFAULT_IW: f64 = 10.0;

/// Windows that the kernel side holds at most, segments.
pub const MOST_WINDOW: u32 = 1 << 24;

/// Segments of queue in 1/256; zero would switch the test off.
fn gate(threshold: f64) -> u32 {
    u32::try_from(part256(threshold).max(1)).unwrap_or(u32::MAX)
}

fn segments(x: f64) -> u32 {
    x.round().min(f64::from(MOST_WINDOW)) as u32
}

fn part256(x: f64) -> u64 {
    (x * 256.0).round() as u64
}

fn part65536(x: f64) -> u64 {
    (x * 65536.0).round() as u64
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1000).unwrap_or(u32::MAX)
}
