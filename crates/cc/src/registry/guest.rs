//! Controllers that join the registry while the program runs: those of another language.
//!
//! A guest is a whole, as a model-based controller is: it takes no start-up beside it. It has a
//! variant of [`Stack`](super::Stack) of its own behind the feature `guests`, so that a program
//! without the feature is the same program, and one with it pays for guests only where a flow runs
//! one.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use std::sync::{PoisonError, RwLock};

use ambassador::delegate_to_methods;
use fullpipe_units::{Rate, Time};

use super::spelling::is_name;
use super::{Component, FAMILIES, Kind, Registered};
use crate::classic::Setup;
use crate::controller::{
    AckEvent, CongestionEvent, Controller, IdleEvent, LostSegment, RestartEvent, RtoEvent,
    TakeOver, ambassador_impl_Controller,
};
use crate::entry::Entry;
use crate::params::{ParamSpec, Params};

/// A controller that is not of this crate. It is made without knowing its endpoint, copied, and
/// told with [`Controller::set_up`].
pub trait Guest: Controller + fmt::Debug + Send + Sync {
    /// The same controller in the same state once more.
    fn duplicate(&self) -> Box<dyn Guest>;
}

/// A guest where a stack has its controller.
#[derive(Debug)]
pub struct Hosted(Box<dyn Guest>);

impl Clone for Hosted {
    fn clone(&self) -> Self {
        Self(self.0.duplicate())
    }
}

#[delegate_to_methods]
#[delegate(Controller, target_ref = "guest", target_mut = "guest_mut")]
impl Hosted {
    fn guest(&self) -> &dyn Guest {
        &*self.0
    }

    fn guest_mut(&mut self) -> &mut dyn Guest {
        &mut *self.0
    }
}

/// Makes a guest with these parameters; an error is a sentence about those that contradict each
/// other.
pub type Make = dyn Fn(&Params) -> Result<Box<dyn Guest>, String> + Send + Sync;

/// What a guest states about itself, as an [`Entry`] does of a built-in part.
pub struct GuestEntry {
    /// Name in spellings.
    pub name: String,
    /// One line.
    pub about: String,
    /// Tells this code from another one of the same name: results are known by it.
    pub fingerprint: String,
    /// Numbers that it takes.
    pub params: Vec<GuestParam>,
    /// Makes it.
    pub make: Arc<Make>,
}

/// A number that a guest takes.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestParam {
    /// Name.
    pub name: String,
    /// Value when not given.
    pub default: f64,
    /// Smallest and largest accepted.
    pub range: [f64; 2],
}

/// Constructor of a registered guest, and the fingerprint of its code.
pub(super) struct Maker {
    pub(super) fingerprint: String,
    make: Arc<Make>,
}

impl Maker {
    pub(super) fn component(&self, params: &Params) -> Result<Component, String> {
        (self.make)(params).map(|guest| Component::Guest(Hosted(guest)))
    }
}

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Maker").field(&self.fingerprint).finish()
    }
}

static GUESTS: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// Every guest, the newest of a name only.
pub(super) fn guests() -> Vec<Registered> {
    GUESTS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Adds a guest, or puts it in the place of the one of its name: stacks that were parsed before
/// keep theirs. Its names are kept as long as the program runs.
///
/// # Errors
/// A sentence: the name is none, or that of a built-in part; a default lies outside its range.
pub fn register(guest: GuestEntry) -> Result<(), String> {
    let names = [&guest.name].into_iter();
    for name in names.chain(guest.params.iter().map(|p| &p.name)) {
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(format!(
                "`{name}` is no name: letters, digits, `-`, `_` and `.` are"
            ));
        }
    }
    let mut built_in = FAMILIES.iter().flat_map(|(_, entries)| entries.iter());
    if built_in.any(|e| e.answers_to(&guest.name)) {
        return Err(format!("`{}` is built in: choose another name", guest.name));
    }
    let mut specs = Vec::new();
    for p in guest.params {
        let [min, max] = p.range;
        if !(min <= p.default && p.default <= max) {
            return Err(format!(
                "`{}({})`: the default {} lies outside {min} to {max}",
                guest.name, p.name, p.default
            ));
        }
        let name = kept(p.name);
        specs.push(ParamSpec::number(name, p.default, min..=max, "", "", ""));
    }
    let entry = Entry {
        name: kept(guest.name),
        aliases: &[],
        about: kept(guest.about),
        source: "",
        params: Box::leak(specs.into_boxed_slice()),
        build: |_| Err("a guest is built by its maker".into()),
    };
    let registered = Registered {
        kind: Kind::Model,
        entry: Box::leak(Box::new(entry)),
        guest: Some(Box::leak(Box::new(Maker {
            fingerprint: guest.fingerprint,
            make: guest.make,
        }))),
    };
    let mut all = GUESTS.write().unwrap_or_else(PoisonError::into_inner);
    all.retain(|known| known.name != registered.name);
    all.push(registered);
    Ok(())
}

fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StackSpec;
    use crate::law::aimd::Aimd;
    use crate::startup::standard::Standard;
    use crate::{Classic, Stack};

    impl Guest for Classic<Standard, Aimd> {
        fn duplicate(&self) -> Box<dyn Guest> {
            Box::new(self.clone())
        }
    }

    fn aimd(name: &str, default: f64) -> GuestEntry {
        GuestEntry {
            name: name.into(),
            about: "AIMD from elsewhere".into(),
            fingerprint: "v1".into(),
            params: alloc::vec![GuestParam {
                name: "increase".into(),
                default,
                range: [0.5, 8.0],
            }],
            make: Arc::new(|params| {
                let law = Aimd {
                    increase: params.number("increase"),
                    decrease: 0.5,
                };
                Ok(Box::new(Classic::new(
                    Standard::UNLIMITED,
                    law,
                    None,
                    Setup::default(),
                )))
            }),
        }
    }

    #[test]
    fn a_guest_is_spelled_and_copied_like_any_other() {
        register(aimd("elsewhere", 2.0)).unwrap();
        let spec = StackSpec::parse("elsewhere(increase=4)+burst").unwrap();
        assert_eq!(spec.to_string(), "elsewhere(increase=4)+burst");
        assert_eq!(spec.made_of(), Some("v1"));
        let mut stack = spec.controller(Setup::default());
        assert!(matches!(stack, Stack::Guest(_)), "{stack:?}");
        let before = stack.clone();
        let mut ev = AckEvent::new(Time::ZERO);
        (ev.acked, ev.advanced, ev.cwnd_limited) = (2, true, true);
        stack.on_ack(&ev);
        assert_eq!((before.window(), stack.window()), (10.0, 12.0));
        let listed = super::super::entries().find(|e| e.name == "elsewhere");
        assert_eq!(listed.unwrap().about, "AIMD from elsewhere");
        let refused = StackSpec::parse("elsewhere(increase=9)").unwrap_err();
        assert!(
            refused.to_string().contains("outside 0.5 to 8"),
            "{refused}"
        );
        assert!(StackSpec::parse("elsewhere+limited").is_err());
    }

    #[test]
    fn the_newest_of_a_name_is_meant_and_built_in_ones_stay() {
        register(aimd("twice", 2.0)).unwrap();
        let old = StackSpec::parse("twice").unwrap();
        let mut newer = aimd("twice", 3.0);
        newer.fingerprint = "v2".into();
        register(newer).unwrap();
        let made = |spec: &StackSpec| spec.made_of().map(String::from);
        assert_eq!(made(&old).as_deref(), Some("v1"));
        assert_eq!(
            made(&StackSpec::parse("twice").unwrap()).as_deref(),
            Some("v2")
        );
        assert!(
            register(aimd("reno", 2.0))
                .unwrap_err()
                .contains("built in")
        );
        assert!(register(aimd("new reno", 2.0)).is_err());
        assert!(register(aimd("large", 9.0)).is_err());
        assert_eq!(StackSpec::parse("reno").unwrap().made_of(), None);
    }
}
