//! A parsed stack: from its spelling to a controller and back.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::spelling::split;
use super::{COMMON_LAW_PARAMS, Component, Kind, Registered, Stack, StackError, find};
use crate::classic::{Classic, Setup, WindowLaw};
use crate::controller::Controller;
#[cfg(feature = "linux")]
use crate::linux::Linux;
use crate::params::{Domain, ParamError, ParamSpec, Params};
use crate::sending::{InitialSending, PacingGains};
use crate::startup::Start;
use crate::startup::standard::Standard;

/// A parsed stack: what the scenario, the command line and a policy name.
#[derive(Clone, Debug)]
pub struct StackSpec {
    pub(super) parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) entry: Registered,
    pub(super) params: Params,
    pub(super) common: Params,
    pub(super) component: Component,
}

impl Part {
    /// Parameters that the part takes beside its own.
    pub(super) fn common_specs(&self) -> &'static [ParamSpec] {
        common_of(self.entry.kind)
    }

    /// Why no start-up can be set beside this controller.
    fn refuses_start_up(&self) -> Option<String> {
        let name = self.entry.name;
        match (&self.component, self.entry.kind) {
            (Component::Law(law), _) if !law.has_slow_start() => {
                Some(format!("`{name}` has no slow start: it would never run"))
            }
            (_, Kind::Module) => Some(format!(
                "`{name}` is a kernel module and brings its own slow start"
            )),
            (_, Kind::Model) => Some(format!(
                "`{name}` is a model-based controller and brings its own start-up"
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
            let leads = matches!(entry.kind, Kind::Law | Kind::Module | Kind::Model);
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
            let common_specs = common_of(entry.kind);
            let mut common = Params::defaults(common_specs);
            let refuse = |error| StackError::of_param(entry.name, error);
            for (name, value) in raw.params {
                if common_specs.iter().any(|s| s.name == name) {
                    common.set(name, value).map_err(refuse)?;
                } else {
                    params.set(name, value).map_err(refuse)?;
                }
            }
            let component = entry
                .component(&params)
                .map_err(|why| refuse(ParamError::Contradiction { why }))?;
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
            return Err(StackError::Empty);
        }
        // A vector makes room for four at first, of some 700 bytes each.
        parts.shrink_to_fit();
        let spec = Self { parts };
        let mut sets = spec.initial_windows();
        if let (Some(first), Some(other)) = (sets.next(), sets.next())
            && first.1 != other.1
        {
            return Err(StackError::Contradiction {
                component: other.0,
                why: format!(
                    "an initial window of {}, and `{}` sets {}",
                    other.1, first.0, first.1
                ),
            });
        }
        drop(sets);
        Ok(spec)
    }

    /// A fresh controller.
    pub fn controller(&self, setup: Setup) -> Stack {
        setup.assert_valid();
        let leader = &self.parts[0];
        let law = match &leader.component {
            Component::Law(law) => law,
            #[cfg(feature = "linux")]
            Component::Module(module) => return Stack::Linux(Linux::new(module.clone(), setup)),
            Component::Model(model) => {
                let mut model = model.clone();
                model.set_up(&setup);
                return Stack::Model(model);
            }
            #[cfg(feature = "guests")]
            Component::Guest(guest) => {
                let mut guest = guest.clone();
                guest.set_up(&setup);
                return Stack::Guest(guest);
            }
            // `parse` lets nothing through that begins otherwise.
            other => unreachable!("{other:?} leads a stack"),
        };
        let start = self
            .parts
            .iter()
            .find_map(|part| match &part.component {
                Component::StartUp(start) => Some(start.clone()),
                _ => None,
            })
            .or_else(|| law.own_start_up(&leader.params))
            .unwrap_or(Start::Standard(Standard::UNLIMITED));
        let keep = leader.common.number("ecn_keep");
        let keep = (keep > 0.0).then_some(keep);
        Stack::Classic(Classic::new(start, law.clone(), keep, setup))
    }

    /// What tells the code of a controller from elsewhere from another one of its name; `None` for
    /// a stack that is built in.
    pub fn made_of(&self) -> Option<&str> {
        #[cfg(feature = "guests")]
        if let Some(guest) = self.parts[0].entry.guest {
            return Some(&guest.fingerprint);
        }
        None
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
        self.initial_windows().next().map(|(_, iw)| iw)
    }

    /// Components that set it, and what to.
    fn initial_windows(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let sends = |p: &&Part| matches!(p.entry.kind, Kind::Sending | Kind::Pacing);
        let given = |p: &Part| (p.params.is_given("iw")).then(|| p.params.number("iw"));
        let parts = self.parts.iter().filter(sends);
        parts.filter_map(move |p| Some((p.entry.name, given(p)?)))
    }

    /// The window law's registry name.
    pub fn law_name(&self) -> &'static str {
        self.parts[0].entry.name
    }

    /// False for the user's own module of ground linux: of its law only that kernel knows, and what
    /// drives the stack elsewhere gets the placeholder's, Reno.
    pub fn has_law(&self) -> bool {
        #[cfg(feature = "linux")]
        let own = crate::linux::own::OWN_LINUX.name;
        #[cfg(not(feature = "linux"))]
        let own = "";
        self.law_name() != own
    }

    /// Kind of the first part: law, module or model.
    pub fn kind(&self) -> Kind {
        self.parts[0].entry.kind
    }

    /// Kinds of its parts, in order.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.parts.iter().map(|part| part.entry.kind)
    }

    /// The part of this kind as it was built.
    pub fn component(&self, kind: Kind) -> Option<&Component> {
        self.part(kind).map(|part| &part.component)
    }

    /// Name and parameters of the part of this kind.
    pub fn params(&self, kind: Kind) -> Option<(&'static str, &Params)> {
        self.part(kind).map(|part| (part.entry.name, &part.params))
    }

    /// Fraction kept on an ECN mark; `None`: as on a loss.
    pub fn ecn_keep(&self) -> Option<f64> {
        let law = self.part(Kind::Law)?;
        Some(law.common.number("ecn_keep")).filter(|keep| *keep > 0.0)
    }

    fn part(&self, kind: Kind) -> Option<&Part> {
        self.parts.iter().find(|part| part.entry.kind == kind)
    }

    /// The same stack without its part of this kind; `None` if it has no such part, or cannot be
    /// without it.
    pub fn without(&self, kind: Kind) -> Option<StackSpec> {
        let mut rest = self.clone();
        let at = rest
            .parts
            .iter()
            .skip(1)
            .position(|p| p.entry.kind == kind)?
            + 1;
        rest.parts.remove(at);
        Some(rest)
    }

    /// Numbers that the first part takes, given or not, with their values.
    pub fn numbers(&self) -> impl Iterator<Item = (&'static ParamSpec, f64)> {
        let leader = &self.parts[0];
        let number = |p: &&ParamSpec| matches!(p.domain, Domain::Number { .. });
        let params = leader.entry.params.iter().filter(number);
        params.map(|p| (p, leader.params.number(p.name)))
    }

    /// The same stack with losses that remove `times` as much; `None` if no parameter of its first
    /// part says how much, or if it takes no such value.
    pub fn removing(&self, times: f64) -> Option<StackSpec> {
        let mut other = self.clone();
        let leader = &mut other.parts[0];
        let mut found = false;
        for (param, value) in self.numbers() {
            if let Some(moved) = param.removing(value, times) {
                leader.params.replace(param.name, &moved.to_string()).ok()?;
                found = true;
            }
        }
        leader.component = leader.entry.component(&leader.params).ok()?;
        found.then_some(other)
    }
}

fn common_of(kind: Kind) -> &'static [ParamSpec] {
    match kind {
        Kind::Law => COMMON_LAW_PARAMS,
        _ => &[],
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

impl core::str::FromStr for StackSpec {
    type Err = StackError;
    fn from_str(text: &str) -> Result<Self, StackError> {
        Self::parse(text)
    }
}

/// Two stacks are one if they are spelled alike and made of the same code.
impl PartialEq for StackSpec {
    fn eq(&self, other: &StackSpec) -> bool {
        self.made_of() == other.made_of() && self.to_string() == other.to_string()
    }
}

/// As its spelling, from which everything else follows.
#[cfg(feature = "serde")]
impl serde::Serialize for StackSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for StackSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use fullpipe_units::{Span, Time};

    use super::*;
    use crate::controller::{AckEvent, RateSample, RestartEvent};

    /// What `bbr` reports under `name`.
    fn reported(stack: &Stack, name: &str) -> f64 {
        let mut found = f64::NAN;
        stack.report(&mut |key, value| {
            if key == name {
                found = value;
            }
        });
        found
    }

    #[test]
    fn two_initial_windows_contradict() {
        let said = StackSpec::parse("reno+paced(iw=20)+spread(iw=10)").unwrap_err();
        assert_eq!(
            said.to_string(),
            "`spread`: an initial window of 10, and `paced` sets 20"
        );
        for same in ["reno+paced(iw=20)+spread(iw=20)", "reno+paced+spread(iw=9)"] {
            let iw = StackSpec::parse(same).unwrap().initial_window();
            assert!(matches!(iw, Some(20.0 | 9.0)), "{same}: {iw:?}");
        }
    }

    /// Also where the nearest is another name (`bbr3`) of one that is listed.
    #[test]
    fn the_name_that_was_meant_is_among_the_known_ones() {
        for (typed, meant) in [("bbr4", "bbr"), ("Cubic", "cubic")] {
            let said = StackSpec::parse(typed).unwrap_err().hint().unwrap();
            let listed = format!(" {meant},");
            assert!(
                said.starts_with(&format!("did you mean `{meant}`?")),
                "{said}"
            );
            assert!(said.contains(&listed), "{said}");
        }
    }

    #[test]
    fn a_model_based_controller_has_its_place_in_a_stack() {
        let spec = StackSpec::parse("bbr3(min_pipe_cwnd=5)+burst").unwrap();
        assert_eq!(spec.to_string(), "bbr(min_pipe_cwnd=5)+burst");
        let mut stack = spec.controller(Setup {
            initial_window: 20.0,
            ..Setup::default()
        });
        assert!(matches!(stack, Stack::Model(_)), "{stack:?}");
        assert!(stack.owns_window() && stack.reads_rate());
        assert_eq!((stack.window(), stack.pacing_rate()), (20.0, None));

        let mut open = RestartEvent::new(Time::ZERO);
        open.srtt = Span::from_millis(100);
        stack.on_established(&open);
        assert!(stack.pacing_rate().is_some());

        let mut ev = AckEvent::new(Time::from_secs_f64(0.1));
        ev.acked = 10;
        ev.delivered = 10;
        ev.rate = Some(RateSample::new(100, Span::from_millis(100)));
        stack.on_ack(&ev);
        assert_eq!(reported(&stack, "max_bw"), 1000.0);
        assert_eq!(stack.window(), 30.0);
    }

    #[test]
    fn a_model_based_controller_brings_its_own_start_up() {
        let why = |text| StackSpec::parse(text).unwrap_err().to_string();
        assert_eq!(
            why("bbr+limited"),
            "`limited`: `bbr` is a model-based controller and brings its own start-up"
        );
        assert_eq!(
            why("reno+bbr"),
            "`bbr` is a model-based controller, and the stack has one already"
        );
        assert_eq!(
            why("bbr(beta=2)"),
            "`bbr(beta)`: `2` is outside 0.1 to 0.99 fraction"
        );
        assert_eq!(
            why("bbr(ecn_keep=0.8)"),
            "`bbr` has no parameter `ecn_keep`"
        );
    }
}
