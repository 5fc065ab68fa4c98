//! A parsed stack: from its spelling to a controller and back.

use std::fmt;

use super::spelling::split;
use super::{COMMON_LAW_PARAMS, Component, Entry, Kind, Stack, StackError, find};
use crate::classic::{Classic, Setup};
use crate::law::WindowLaw;
use crate::linux::Linux;
use crate::params::Params;
use crate::sending::{InitialSending, PacingGains};
use crate::startup::{Start, standard};

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
