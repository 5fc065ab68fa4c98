//! Parameters of a component: name, default, range, unit, documentation and source in one table.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

use fullpipe_units::Span;

/// One parameter in one line: `param!(name: kind = default, .., "doc", "source")`.
///
/// ```
/// use fullpipe_cc::param;
/// use fullpipe_cc::params::{ParamSpec, Params};
/// use fullpipe_units::Span;
///
/// const PARAMS: &[ParamSpec] = &[
///     param!(beta: number = 0.7, 0.01..=0.99, "fraction", "fraction kept", "RFC 9438 4.6"),
///     param!(grain: time = Span::ZERO, Span::ZERO..=Span::from_secs(1), "clock tick", "ours"),
///     param!(form: choice = &["exact", "table"], "which p(w); the first is the default", "ours"),
///     param!(friendly: flag = true, "at least as fast as Reno", "RFC 9438 4.3"),
/// ];
/// assert_eq!(Params::defaults(PARAMS).number("beta"), 0.7);
/// ```
#[macro_export]
macro_rules! param {
    ($name:ident: number = $default:expr, $range:expr, $unit:expr, $doc:expr, $source:expr) => {
        $crate::params::ParamSpec::number(stringify!($name), $default, $range, $unit, $doc, $source)
    };
    ($name:ident: time = $default:expr, $range:expr, $doc:expr, $source:expr) => {
        $crate::params::ParamSpec::time(stringify!($name), $default, $range, $doc, $source)
    };
    ($name:ident: choice = $words:expr, $doc:expr, $source:expr) => {
        $crate::params::ParamSpec::choice(stringify!($name), $words, $doc, $source)
    };
    ($name:ident: flag = $default:expr, $doc:expr, $source:expr) => {
        $crate::params::ParamSpec::flag(stringify!($name), $default, $doc, $source)
    };
}

/// One parameter of a law, a start-up or a sending rule.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Name, as in the document.
    pub name: &'static str,
    /// Accepted values.
    pub domain: Domain,
    /// Unit in words; empty for a choice or a flag.
    pub unit: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Document and section of the default.
    pub source: &'static str,
    /// Of the window at a loss, if it is that.
    pub share: Option<Share>,
}

/// What a number is of the window (of a model: of its rate) at a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// The fraction that the loss takes.
    Removed,
    /// What the loss leaves, in parts of a whole.
    Kept {
        /// The whole: 1 for a fraction.
        whole: f64,
    },
}

impl Share {
    /// The number with which a loss removes `times` as much, and no more than [`MOST_REMOVED`].
    fn scaled(self, value: f64, times: f64) -> f64 {
        match self {
            Share::Removed => (value * times).min(MOST_REMOVED),
            Share::Kept { whole } => {
                let removed = ((1.0 - value / whole) * times).min(MOST_REMOVED);
                whole * (1.0 - removed)
            }
        }
    }
}

/// What removes more leaves no window worth the name.
const MOST_REMOVED: f64 = 0.99;

/// Rounding of computed fractions, so that they are written as a person would.
const DIGITS: f64 = 1e9;

/// Values a parameter takes, with the default.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// A plain number in the unit of the specification.
    Number {
        /// Value when not given.
        default: f64,
        /// Smallest accepted.
        min: f64,
        /// Largest accepted.
        max: f64,
    },
    /// A time with a unit.
    Time {
        /// Value when not given.
        default: Span,
        /// Smallest accepted.
        min: Span,
        /// Largest accepted.
        max: Span,
    },
    /// One of some words; the first is the default.
    Choice(&'static [&'static str]),
    /// `on` or `off` (`true` and `false` are accepted).
    Flag(bool),
}

impl ParamSpec {
    /// A number with its default and range.
    pub const fn number(
        name: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        unit: &'static str,
        doc: &'static str,
        source: &'static str,
    ) -> Self {
        let domain = Domain::Number {
            default,
            min: *range.start(),
            max: *range.end(),
        };
        Self {
            name,
            domain,
            unit,
            doc,
            source,
            share: None,
        }
    }

    /// A time with its default and range.
    pub const fn time(
        name: &'static str,
        default: Span,
        range: RangeInclusive<Span>,
        doc: &'static str,
        source: &'static str,
    ) -> Self {
        let domain = Domain::Time {
            default,
            min: *range.start(),
            max: *range.end(),
        };
        Self {
            name,
            domain,
            unit: "time",
            doc,
            source,
            share: None,
        }
    }

    /// A choice of words; the first is the default.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        doc: &'static str,
        source: &'static str,
    ) -> Self {
        Self {
            name,
            domain: Domain::Choice(words),
            unit: "",
            doc,
            source,
            share: None,
        }
    }

    /// A switch.
    pub const fn flag(
        name: &'static str,
        default: bool,
        doc: &'static str,
        source: &'static str,
    ) -> Self {
        Self {
            name,
            domain: Domain::Flag(default),
            unit: "",
            doc,
            source,
            share: None,
        }
    }

    /// It is the fraction of the window that a loss removes.
    #[must_use]
    pub const fn removed(mut self) -> Self {
        self.share = Some(Share::Removed);
        self
    }

    /// It is the fraction of the window that a loss leaves.
    #[must_use]
    pub const fn kept(self) -> Self {
        self.kept_of(1.0)
    }

    /// It is what a loss leaves, in parts of `whole`, which are not divided further.
    #[must_use]
    pub const fn kept_of(mut self, whole: f64) -> Self {
        self.share = Some(Share::Kept { whole });
        self
    }

    /// The accepted value with which a loss removes `times` what it does with `value`; `None` if
    /// this is no share of the window.
    pub fn removing(&self, value: f64, times: f64) -> Option<f64> {
        let (Some(share), Domain::Number { min, max, .. }) = (self.share, self.domain) else {
            return None;
        };
        let grain = match share {
            Share::Kept { whole } if whole > 1.0 => 1.0,
            _ => DIGITS,
        };
        let moved = libm::round(share.scaled(value, times) * grain) / grain;
        Some(moved.clamp(min, max))
    }

    /// The default as it would be written.
    pub fn default_text(&self) -> String {
        self.default_value().text()
    }

    /// The accepted values in words.
    pub fn range_text(&self) -> String {
        match self.domain {
            Domain::Number { min, max, .. } => {
                format!("{} to {}", number_text(min), number_text(max))
            }
            Domain::Time { min, max, .. } => format!("{min} to {max}"),
            Domain::Choice(words) => words.join(" | "),
            Domain::Flag(_) => "on | off".to_owned(),
        }
    }

    /// `0.1 to 0.95 fraction; 0.7 without it`.
    fn accepted_text(&self) -> String {
        let unit = match self.domain {
            Domain::Number { .. } if !self.unit.is_empty() => format!(" {}", self.unit),
            _ => String::new(),
        };
        format!(
            "{}{unit}; {} without it",
            self.range_text(),
            self.default_text()
        )
    }

    fn default_value(&self) -> Value {
        match self.domain {
            Domain::Number { default, .. } => Value::Number(default),
            Domain::Time { default, .. } => Value::Time(default),
            Domain::Choice(words) => Value::Word(words[0]),
            Domain::Flag(on) => Value::Flag(on),
        }
    }

    fn parse(&self, text: &str) -> Result<Value, String> {
        match self.domain {
            Domain::Number { min, max, .. } => {
                let value: f64 = text
                    .parse()
                    .map_err(|_| format!("`{text}` is not a number ({})", self.unit))?;
                if value >= min && value <= max {
                    Ok(Value::Number(value))
                } else {
                    Err(format!(
                        "`{text}` is outside {} {}",
                        self.range_text(),
                        self.unit
                    ))
                }
            }
            Domain::Time { min, max, .. } => {
                let value: Span =
                    text.parse()
                        .map_err(|e: fullpipe_units::ParseQuantityError| match e.hint() {
                            Some(hint) => format!("{e}; {hint}"),
                            None => e.to_string(),
                        })?;
                if value >= min && value <= max {
                    Ok(Value::Time(value))
                } else {
                    Err(format!("`{text}` is outside {}", self.range_text()))
                }
            }
            Domain::Choice(words) => words
                .iter()
                .find(|w| **w == text)
                .map(|w| Value::Word(w))
                .ok_or_else(|| format!("`{text}` is not one of {}", self.range_text())),
            Domain::Flag(_) => match text {
                "on" | "true" => Ok(Value::Flag(true)),
                "off" | "false" => Ok(Value::Flag(false)),
                _ => Err(format!("`{text}` is not one of on | off")),
            },
        }
    }
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number in the unit of its [`ParamSpec`].
    Number(f64),
    /// A time.
    Time(Span),
    /// One of the words of its [`ParamSpec`].
    Word(&'static str),
    /// A switch.
    Flag(bool),
}

impl Value {
    /// Spelling inside a stack's parentheses, which the parser reads back.
    pub fn text(&self) -> String {
        match self {
            Value::Number(x) => number_text(*x),
            Value::Time(t) => t.to_string(),
            Value::Word(w) => (*w).to_owned(),
            Value::Flag(on) => if *on { "on" } else { "off" }.to_owned(),
        }
    }
}

fn number_text(x: f64) -> String {
    if x != 0.0 && (x.abs() < 1e-4 || x.abs() >= 1e9) {
        format!("{x:e}")
    } else {
        x.to_string()
    }
}

/// The values of one component's parameters: every parameter has one, given or default.
#[derive(Clone, Debug)]
pub struct Params {
    specs: &'static [ParamSpec],
    values: Vec<Value>,
    given: Vec<bool>,
}

impl Params {
    /// All defaults.
    pub fn defaults(specs: &'static [ParamSpec]) -> Self {
        Self {
            specs,
            values: specs.iter().map(ParamSpec::default_value).collect(),
            given: vec![false; specs.len()],
        }
    }

    /// Sets `name` from text.
    ///
    /// # Errors
    /// An unknown name, a name set twice, or a value outside its range.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let i = self.place(name)?;
        if self.given[i] {
            let name = self.specs[i].name;
            return Err(ParamError::Twice { name });
        }
        self.put(i, text)
    }

    /// Sets `name` from text, whether it was set before or not.
    ///
    /// # Errors
    /// An unknown name, or a value outside its range.
    pub fn replace(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        let i = self.place(name)?;
        self.put(i, text)
    }

    fn place(&self, name: &str) -> Result<usize, ParamError> {
        let place = self.specs.iter().position(|s| s.name == name);
        place.ok_or_else(|| ParamError::Unknown {
            name: name.to_owned(),
            known: self.specs.iter().map(|s| s.name).collect(),
        })
    }

    fn put(&mut self, i: usize, text: &str) -> Result<(), ParamError> {
        let name = self.specs[i].name;
        self.values[i] = self.specs[i]
            .parse(text)
            .map_err(|why| ParamError::BadValue {
                name,
                why,
                accepted: self.specs[i].accepted_text(),
            })?;
        self.given[i] = true;
        Ok(())
    }

    /// Value of a number parameter of this component's table.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(x) => x,
            other => unreachable!("parameter {name} is {other:?}, not a number"),
        }
    }

    /// Value of a number parameter that is an integer in the kernel.
    ///
    /// # Errors
    /// A sentence if it has a fractional part.
    pub fn whole(&self, name: &str) -> Result<u32, String> {
        let x = self.number(name);
        if x == f64::from(x as u32) {
            Ok(x as u32)
        } else {
            Err(format!(
                "{name} takes whole numbers, not {}",
                number_text(x)
            ))
        }
    }

    /// Value of a time parameter.
    pub fn time(&self, name: &str) -> Span {
        match self.value(name) {
            Value::Time(t) => t,
            other => unreachable!("parameter {name} is {other:?}, not a time"),
        }
    }

    /// Value of a choice.
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Word(w) => w,
            other => unreachable!("parameter {name} is {other:?}, not a word"),
        }
    }

    /// Value of a switch.
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Flag(on) => on,
            other => unreachable!("parameter {name} is {other:?}, not a switch"),
        }
    }

    /// True if the spelling set this parameter.
    pub fn is_given(&self, name: &str) -> bool {
        self.specs
            .iter()
            .zip(&self.given)
            .any(|(s, given)| s.name == name && *given)
    }

    /// Parameters that were given, in table order, with their values.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Value)> + '_ {
        self.specs
            .iter()
            .zip(&self.values)
            .zip(&self.given)
            .filter(|(_, given)| **given)
            .map(|((s, v), _)| (s.name, *v))
    }

    fn value(&self, name: &str) -> Value {
        let i = self.specs.iter().position(|s| s.name == name);
        // Entries read only the names of their own table; a test builds every entry.
        self.values[i.unwrap_or_else(|| unreachable!("no parameter {name} in this table"))]
    }
}

/// Error of a component's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParamError {
    /// No such parameter.
    Unknown {
        /// Name as written in the spelling.
        name: String,
        /// Every parameter of the component.
        known: Vec<&'static str>,
    },
    /// The same parameter twice.
    Twice {
        /// Parameter.
        name: &'static str,
    },
    /// Not a value of the parameter.
    BadValue {
        /// Parameter.
        name: &'static str,
        /// Why it is refused, as `outside 0.01 to 0.99`.
        why: String,
        /// Range and default.
        accepted: String,
    },
    /// Parameters that contradict each other.
    Contradiction {
        /// Sentence.
        why: String,
    },
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamError::Unknown { name, .. } => write!(f, "no parameter `{name}`"),
            ParamError::Twice { name } => write!(f, "`{name}` is set twice"),
            ParamError::BadValue { name, why, .. } => write!(f, "`{name}`: {why}"),
            ParamError::Contradiction { why } => f.write_str(why),
        }
    }
}

impl core::error::Error for ParamError {}
