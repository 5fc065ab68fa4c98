//! Names, parameters and provenance of everything a stack is made of, and the one parser of a stack's spelling.
//!
//! `law(params)+start-up(params)+sending(params)`, at most one component of each kind, the window law first:
//! `reno`, `highspeed(low_window=31)+limited(max_ssthresh=100)`, `cubic+hystart++`, `reno+spread(t_max=4ms,iw=10)`.

use std::fmt;

use crate::classic::{Classic, Setup};
use crate::controller::{AckEvent, CongestionEvent, Controller, IdleEvent, RestartEvent, RtoEvent};
use crate::delay::{fast, hslp, ledbat, lp, vegas, veno, yeah};
use crate::law::{
    Law, WindowLaw, aimd, bic, cubic, highspeed, htcp, hybla, illinois, scalable, westwood,
};
use crate::linux::{self, AnyModule, Linux};
use crate::params::{ParamSpec, Params};
use crate::sending::{self, InitialSending, PacingGains};
use crate::startup::{Start, gamma, hybla as hybla_start, hystart, hystart_pp, limited, standard};
use fullpipe_units::{Rate, Time};

/// Everything that can stand in a stack's spelling, in the order `fullpipe list stacks` prints it.
pub const ENTRIES: &[Entry] = &[
    aimd::RENO,
    aimd::AIMD,
    aimd::MULTCP,
    aimd::PRETUNED,
    highspeed::HIGHSPEED,
    highspeed::HIGHSPEED_NS2,
    scalable::SCALABLE,
    bic::BIC,
    bic::BIC_PAPER,
    htcp::HTCP,
    cubic::CUBIC,
    hybla::HYBLA,
    vegas::VEGAS,
    fast::FAST,
    lp::LP,
    hslp::HSTCP_LP,
    westwood::WESTWOOD,
    illinois::ILLINOIS,
    yeah::YEAH,
    veno::VENO,
    ledbat::LEDBAT,
    linux::RENO_LINUX,
    linux::VEGAS_LINUX,
    linux::YEAH_LINUX,
    linux::VENO_LINUX,
    linux::ILLINOIS_LINUX,
    linux::WESTWOOD_LINUX,
    linux::LP_LINUX,
    linux::HIGHSPEED_LINUX,
    linux::SCALABLE_LINUX,
    linux::BIC_LINUX,
    linux::HTCP_LINUX,
    linux::CUBIC_LINUX,
    linux::HYBLA_LINUX,
    standard::STANDARD,
    limited::LIMITED,
    hybla_start::HYBLA_START,
    gamma::GAMMA,
    hystart::HYSTART,
    hystart_pp::HYSTART_PP,
    sending::BURST,
    sending::SPREAD,
    sending::SPREAD_VARIABLE,
    sending::PACED,
];

/// Parameters that every window law accepts beside its own.
pub const COMMON_LAW_PARAMS: &[ParamSpec] = &[ParamSpec::number(
    "ecn_keep",
    0.0,
    0.0..=1.0,
    "fraction",
    "fraction kept on an ECN mark in congestion avoidance (ABE: 0.8, CUBIC 0.85); 0: as on loss",
    "RFC 8511 section 3",
)];

/// Which part of a stack an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Window law.
    Law,
    /// A congestion module of the Linux kernel: law and slow start in one.
    Module,
    /// Start-up.
    StartUp,
    /// Initial-window sending.
    Sending,
    /// Pacing of the connection.
    Pacing,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Law => "window law",
            Kind::Module => "Linux module",
            Kind::StartUp => "start-up",
            Kind::Sending => "initial-window sending",
            Kind::Pacing => "pacing",
        })
    }
}

/// One name of the registry.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name, lower case, as Linux spells it where it has one.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// Part of the stack.
    pub kind: Kind,
    /// One line.
    pub about: &'static str,
    /// Document and section.
    pub source: &'static str,
    /// Parameters with defaults and ranges.
    pub params: &'static [ParamSpec],
    /// Makes the component; an error is a sentence about parameters that contradict each other.
    pub build: fn(&Params) -> Result<Component, String>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

impl Entry {
    fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// A built part of a stack.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // one per part of a spelling, never on the ACK path
pub enum Component {
    /// A window law, with its own start-up when the standard one does not fit.
    Law(Law, Option<Start>),
    /// A kernel module.
    Module(AnyModule),
    /// A start-up.
    StartUp(Start),
    /// Initial-window sending.
    Sending(InitialSending),
    /// Pacing of the whole connection.
    Pacing(PacingGains),
}

/// Why a stack's spelling was refused. Messages are one line; [`StackError::hint`] says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Nothing there.
    #[error("empty stack name")]
    Empty,
    /// Parentheses, `=`, or `+` in the wrong place.
    #[error("stack `{text}` is malformed at column {column}: {why}")]
    Malformed {
        /// The whole spelling.
        text: String,
        /// 1-based.
        column: usize,
        /// What was expected.
        why: &'static str,
    },
    /// No such law, start-up or sending rule.
    #[error("unknown stack component `{name}`")]
    UnknownName {
        /// As written.
        name: String,
        /// Closest known name.
        nearest: Option<&'static str>,
        /// Every known name.
        known: Vec<&'static str>,
    },
    /// No such parameter.
    #[error("`{component}` has no parameter `{name}`")]
    UnknownParam {
        /// Component.
        component: &'static str,
        /// As written.
        name: String,
        /// Closest known name.
        nearest: Option<&'static str>,
        /// Every parameter of the component.
        known: Vec<&'static str>,
    },
    /// The same parameter twice.
    #[error("`{component}` sets `{name}` twice")]
    ParamTwice {
        /// Component.
        component: &'static str,
        /// Parameter.
        name: &'static str,
    },
    /// Not a value of the parameter.
    #[error("`{component}({name})`: {why}")]
    BadValue {
        /// Component.
        component: &'static str,
        /// Parameter.
        name: &'static str,
        /// What is wrong, with the accepted range.
        why: String,
    },
    /// Parameters that contradict each other.
    #[error("`{component}`: {why}")]
    Contradiction {
        /// Component.
        component: &'static str,
        /// Sentence.
        why: String,
    },
    /// Two components of one kind, or the law is not first.
    #[error("`{name}` is a {kind}, and the stack {why}")]
    Misplaced {
        /// Component.
        name: &'static str,
        /// Its kind.
        kind: Kind,
        /// What stands in the way.
        why: &'static str,
    },
}

impl StackError {
    /// What to write instead, if one can tell.
    pub fn hint(&self) -> Option<String> {
        match self {
            StackError::UnknownName { nearest, known, .. } => Some(match nearest {
                Some(n) => format!("did you mean `{n}`? known: {}", known.join(", ")),
                None => format!("known: {}", known.join(", ")),
            }),
            StackError::UnknownParam {
                known, component, ..
            } if known.is_empty() => Some(format!("`{component}` takes no parameters")),
            StackError::UnknownParam { nearest, known, .. } => Some(match nearest {
                Some(n) => format!("did you mean `{n}`? known: {}", known.join(", ")),
                None => format!("known: {}", known.join(", ")),
            }),
            StackError::Empty => Some("write a window law, for example `cubic`".to_owned()),
            StackError::Malformed { .. } => {
                Some("the form is `law(param=value,...)+startup(...)`".to_owned())
            }
            _ => None,
        }
    }
}

/// A parsed stack: what the scenario, the command line and a policy name.
#[derive(Clone, Debug)]
pub struct StackSpec {
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    entry: &'static Entry,
    params: Params,
    common: Params,
    component: Component,
}

impl Part {
    /// Why no start-up can be set beside this controller.
    fn refuses_start_up(&self) -> Option<String> {
        let name = self.entry.name;
        match &self.component {
            Component::Law(law, _) if !law.has_slow_start() => {
                Some(format!("`{name}` has no slow start: it would never run"))
            }
            Component::Module(_) => Some(format!(
                "`{name}` is a kernel module and brings its own slow start"
            )),
            _ => None,
        }
    }
}

impl StackSpec {
    /// Parses a spelling.
    ///
    /// # Errors
    /// [`StackError`], with the nearest known name where a name is unknown.
    pub fn parse(text: &str) -> Result<Self, StackError> {
        let mut parts: Vec<Part> = Vec::new();
        for raw in split(text)? {
            let entry = find(raw.name)?;
            let leads = matches!(entry.kind, Kind::Law | Kind::Module);
            if parts.is_empty() != leads {
                let why = if parts.is_empty() {
                    "begins with a window law"
                } else {
                    "has one already"
                };
                return Err(StackError::Misplaced {
                    name: entry.name,
                    kind: entry.kind,
                    why,
                });
            }
            if parts.iter().any(|p| p.entry.kind == entry.kind) {
                let why = "has one already";
                return Err(StackError::Misplaced {
                    name: entry.name,
                    kind: entry.kind,
                    why,
                });
            }
            let mut params = Params::defaults(entry.params);
            let common_specs = if entry.kind == Kind::Law {
                COMMON_LAW_PARAMS
            } else {
                &[]
            };
            let mut common = Params::defaults(common_specs);
            for (name, value) in raw.params {
                if common_specs.iter().any(|s| s.name == name) {
                    common.set(entry.name, name, value)?;
                } else {
                    params.set(entry.name, name, value)?;
                }
            }
            let component = (entry.build)(&params).map_err(|why| StackError::Contradiction {
                component: entry.name,
                why,
            })?;
            if let (Component::StartUp(_), Some(first)) = (&component, parts.first())
                && let Some(why) = first.refuses_start_up()
            {
                return Err(StackError::Contradiction {
                    component: entry.name,
                    why,
                });
            }
            parts.push(Part {
                entry,
                params,
                common,
                component,
            });
        }
        if parts.is_empty() {
            Err(StackError::Empty)
        } else {
            Ok(Self { parts })
        }
    }

    /// A fresh controller.
    pub fn controller(&self, setup: Setup) -> Stack {
        if let Component::Module(module) = &self.parts[0].component {
            return Stack::Linux(Linux::new(module.clone(), setup));
        }
        let mut law = None;
        let mut start = None;
        for part in &self.parts {
            match &part.component {
                Component::Law(l, own) => {
                    law = Some(l.clone());
                    start = start.or_else(|| own.clone());
                }
                Component::StartUp(s) => start = Some(s.clone()),
                Component::Module(_) | Component::Sending(_) | Component::Pacing(_) => {}
            }
        }
        let keep = self.parts[0].common.number("ecn_keep");
        // `parse` lets nothing through that does not begin with a law.
        let law = law.unwrap_or_else(|| unreachable!("a parsed stack has a law"));
        let start = start.unwrap_or(Start::Standard(standard::Standard));
        Stack::Classic(Classic::new(
            start,
            law,
            (keep > 0.0).then_some(keep),
            setup,
        ))
    }

    /// How the initial window is sent, if the spelling says.
    pub fn sending(&self) -> Option<InitialSending> {
        self.parts.iter().find_map(|p| match p.component {
            Component::Sending(s) => Some(s),
            _ => None,
        })
    }

    /// Pacing of the connection, if the spelling asks for it.
    pub fn pacing(&self) -> Option<PacingGains> {
        self.parts.iter().find_map(|p| match p.component {
            Component::Pacing(g) => Some(g),
            _ => None,
        })
    }

    /// Initial window, segments, if the spelling sets one.
    pub fn initial_window(&self) -> Option<f64> {
        self.parts
            .iter()
            .find(|p| {
                matches!(p.entry.kind, Kind::Sending | Kind::Pacing) && p.params.is_given("iw")
            })
            .map(|p| p.params.number("iw"))
    }

    /// The window law's registry name.
    pub fn law_name(&self) -> &'static str {
        self.parts[0].entry.name
    }
}

/// The canonical spelling: registry names, given parameters in table order.
impl fmt::Display for StackSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            f.write_str(part.entry.name)?;
            let given: Vec<String> = part
                .params
                .given()
                .chain(part.common.given())
                .map(|(name, value)| format!("{name}={}", value.text()))
                .collect();
            if !given.is_empty() {
                write!(f, "({})", given.join(","))?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for StackSpec {
    type Err = StackError;
    fn from_str(text: &str) -> Result<Self, StackError> {
        Self::parse(text)
    }
}

/// As its spelling, from which everything else follows.
impl serde::Serialize for StackSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for StackSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A running controller of any registered kind; dispatch by `match`, no pointer on the ACK path.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // one per flow; a pointer would cost a miss per ACK
pub enum Stack {
    /// Start-up x window law.
    Classic(Classic),
    /// A kernel module.
    Linux(Linux),
}

macro_rules! dispatch {
    ($self:ident, $c:ident => $call:expr) => {
        match $self {
            Stack::Classic($c) => $call,
            Stack::Linux($c) => $call,
        }
    };
}

impl Controller for Stack {
    #[inline]
    fn on_delivery(&mut self, ev: &AckEvent) {
        // Of all kinds only the kernel's modules look at an ACK this early.
        if let Stack::Linux(module) = self {
            module.on_delivery(ev);
        }
    }
    #[inline]
    fn on_ack(&mut self, ev: &AckEvent) {
        dispatch!(self, c => c.on_ack(ev))
    }
    fn on_congestion(&mut self, ev: &CongestionEvent) {
        dispatch!(self, c => c.on_congestion(ev))
    }
    fn on_rto(&mut self, ev: &RtoEvent) {
        dispatch!(self, c => c.on_rto(ev))
    }
    fn on_established(&mut self, ev: &RestartEvent) {
        dispatch!(self, c => c.on_established(ev))
    }
    fn on_restart(&mut self, ev: &RestartEvent) {
        dispatch!(self, c => c.on_restart(ev))
    }
    fn on_recovery_exit(&mut self, now: Time) {
        dispatch!(self, c => c.on_recovery_exit(now))
    }
    fn on_undo(&mut self, now: Time) {
        dispatch!(self, c => c.on_undo(now))
    }
    fn on_idle(&mut self, ev: &IdleEvent) {
        dispatch!(self, c => c.on_idle(ev))
    }
    fn exit_start_up(&mut self, now: Time) {
        dispatch!(self, c => c.exit_start_up(now))
    }
    fn on_mss_change(&mut self, ratio: f64) {
        dispatch!(self, c => c.on_mss_change(ratio))
    }
    #[inline]
    fn window(&self) -> f64 {
        dispatch!(self, c => c.window())
    }
    #[inline]
    fn ssthresh(&self) -> f64 {
        dispatch!(self, c => c.ssthresh())
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        dispatch!(self, c => c.pacing_rate())
    }
    fn report(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        dispatch!(self, c => c.report(visit))
    }
}

/// The known name closest to `name`, if close enough to be a slip.
pub fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    known
        .map(|k| (strsim::normalized_damerau_levenshtein(name, k), k))
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

fn find(name: &str) -> Result<&'static Entry, StackError> {
    ENTRIES
        .iter()
        .find(|e| e.answers_to(name))
        .ok_or_else(|| StackError::UnknownName {
            name: name.to_owned(),
            nearest: nearest(
                name,
                ENTRIES
                    .iter()
                    .flat_map(|e| std::iter::once(e.name).chain(e.aliases.iter().copied())),
            ),
            known: ENTRIES.iter().map(|e| e.name).collect(),
        })
}

struct RawPart<'a> {
    name: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

/// Splits `a(x=1)+b++ +c` into parts. A `++` that ends a name (`hystart++`) belongs to the name.
fn split(text: &str) -> Result<Vec<RawPart<'_>>, StackError> {
    let fail = |at: usize, why| StackError::Malformed {
        text: text.to_owned(),
        column: at + 1,
        why,
    };
    let bytes = text.as_bytes();
    let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let mut parts = Vec::new();
    let mut i = 0;
    if text.trim().is_empty() {
        return Err(StackError::Empty);
    }
    loop {
        let start = i;
        while i < bytes.len() && is_name(bytes[i]) {
            i += 1;
        }
        if i == start {
            return Err(fail(i, "a name is expected"));
        }
        if bytes[i..].starts_with(b"++")
            && bytes.get(i + 2).is_none_or(|b| matches!(b, b'+' | b'('))
        {
            i += 2;
        }
        let name = &text[start..i];
        let mut params = Vec::new();
        if bytes.get(i) == Some(&b'(') {
            let open = i;
            let close = text[i..]
                .find(')')
                .ok_or_else(|| fail(open, "`(` is never closed"))?
                + i;
            let inner = &text[open + 1..close];
            if !inner.trim().is_empty() {
                for pair in inner.split(',') {
                    let (name, value) = pair
                        .split_once('=')
                        .ok_or_else(|| fail(open + 1, "`name=value` is expected"))?;
                    params.push((name.trim(), value.trim()));
                }
            }
            i = close + 1;
        }
        parts.push(RawPart { name, params });
        match bytes.get(i) {
            None => return Ok(parts),
            Some(b'+') => i += 1,
            Some(_) => return Err(fail(i, "`+` or the end is expected")),
        }
    }
}
