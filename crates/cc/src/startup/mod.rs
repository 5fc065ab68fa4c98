//! The start-ups: how the window climbs while it is below `ssthresh`. One file per start-up, listed
//! here.

pub mod gamma;
pub mod hybla;
pub mod hystart;
pub mod hystart_pp;
pub mod limited;
pub mod standard;

pub use crate::classic::StartUp;

#[cfg(feature = "registry")]
use crate::{
    classic::{Setup, Window, ambassador_impl_StartUp},
    controller::{AckEvent, IdleEvent},
};

#[cfg(feature = "registry")]
components! {
    /// Every start-up of the registry.
    Start: StartUp {
        /// Exponential growth to `ssthresh`.
        Standard(standard::Standard): standard::STANDARD;
        /// Limited Slow-Start (RFC 3742).
        Limited(limited::Limited): limited::LIMITED;
        /// Slow start of TCP Hybla.
        Hybla(hybla::HyblaStart): hybla::HYBLA_START;
        /// Slow start with Vegas' test.
        Gamma(gamma::Gamma): gamma::GAMMA;
        /// HyStart of Linux.
        HyStart(hystart::HyStart): hystart::HYSTART;
        /// HyStart++ (RFC 9406).
        HyStartPp(hystart_pp::HyStartPp): hystart_pp::HYSTART_PP;
    }
}
