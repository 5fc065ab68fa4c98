//! One name that a stack's spelling can hold: its parameters and how they make a component.

use alloc::string::String;
use core::fmt;

use crate::params::{ParamError, ParamSpec, Params};

/// What a law, a start-up, a kernel module or a controller states about itself under one name.
///
/// It stands in the component's own file and names no other component. `T` is what it builds, so
/// that an entry serves without the registry:
///
/// ```
/// use fullpipe_cc::law::cubic::CUBIC;
///
/// assert!(CUBIC.make(&[("beta", "0.5")]).is_ok());
/// assert!(CUBIC.make(&[("beta", "2")]).is_err());
/// ```
pub struct Entry<T> {
    /// Name, lower case, as Linux spells it where it has one.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// One line.
    pub about: &'static str,
    /// Document and section.
    pub source: &'static str,
    /// Parameters with defaults and ranges.
    pub params: &'static [ParamSpec],
    /// Makes the component; an error is a sentence about parameters that contradict each other.
    pub build: fn(&Params) -> Result<T, String>,
}

impl<T> Entry<T> {
    /// The component with `given` parameters, the others at their defaults.
    ///
    /// # Errors
    /// A parameter that is unknown, set twice or outside its range, or parameters that contradict
    /// each other.
    pub fn make(&self, given: &[(&str, &str)]) -> Result<T, ParamError> {
        let mut params = Params::defaults(self.params);
        for (name, value) in given {
            params.set(name, value)?;
        }
        (self.build)(&params).map_err(|why| ParamError::Contradiction { why })
    }

    /// True if `name` is this entry's name or one of its aliases.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The same entry with another way to build.
    #[cfg(feature = "registry")]
    pub(crate) const fn built_by<U>(self, build: fn(&Params) -> Result<U, String>) -> Entry<U> {
        Entry {
            name: self.name,
            aliases: self.aliases,
            about: self.about,
            source: self.source,
            params: self.params,
            build,
        }
    }
}

// Derived, both would ask the same of `T`.
impl<T> Clone for Entry<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Entry<T> {}

impl<T> fmt::Debug for Entry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

/// Declares the list of a family of components: the enum that dispatches to each of them by
/// `match`, without a pointer, and the entries in the order in which people see them.
///
/// `Family: Trait { /// Doc. Variant(type): ENTRY, ENTRY; .. }`
#[cfg(feature = "registry")]
macro_rules! components {
    ($(#[$meta:meta])* $family:ident: $trait:ident {
        $($(#[$doc:meta])* $variant:ident($type:ty): $($entry:path),+;)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, ambassador::Delegate)]
        #[delegate($trait)]
        #[allow(clippy::large_enum_variant)] // one per flow; a pointer would cost a miss per ACK
        #[repr(u8)] // a tag of its own: see `Stack`
        pub enum $family { $($(#[$doc])* $variant($type)),+ }

        $(impl From<$type> for $family {
            fn from(component: $type) -> Self {
                Self::$variant(component)
            }
        })+

        /// Every entry of the family, for a registry whose components are `C`.
        pub(crate) const fn entries<C: From<$family>>()
        -> [$crate::entry::Entry<C>; [$($(stringify!($entry)),+),+].len()] {
            [$($($entry.built_by(|p| {
                ($entry.build)(p).map(|component| C::from($family::$variant(component)))
            })),+),+]
        }
    };
}
