//! The model-based controllers: a pacing rate and a window from samples of the delivery rate, as
//! BBR sets them. One file or folder per controller, listed here.
//!
//! Such a controller is a whole. It implements [`Controller`] itself and takes no start-up beside
//! it. Its samples come with [`Controller::on_delivery`] ([`AckEvent::rate`], [`AckEvent::round`]),
//! losses and marks with [`Controller::on_ack`]; [`Controller::pacing_rate`] and
//! [`Controller::window`] answer. The first one registered replaces [`NoModel`] by
//!
//! ```text
//! components! {
//!     /// Every model-based controller of the registry.
//!     Model: Controller {
//!         /// BBRv3.
//!         Bbr(bbr::Bbr): bbr::BBR;
//!     }
//! }
//! ```

use fullpipe_units::Time;

use crate::controller::{AckEvent, CongestionEvent, Controller, IdleEvent, RtoEvent};

/// No model-based controller is registered yet: a type without values.
#[derive(Clone, Debug)]
pub enum NoModel {}

impl Controller for NoModel {
    fn on_ack(&mut self, _ev: &AckEvent) {
        match *self {}
    }
    fn on_congestion(&mut self, _ev: &CongestionEvent) {
        match *self {}
    }
    fn on_rto(&mut self, _ev: &RtoEvent) {
        match *self {}
    }
    fn on_recovery_exit(&mut self, _now: Time) {
        match *self {}
    }
    fn on_undo(&mut self, _now: Time) {
        match *self {}
    }
    fn on_idle(&mut self, _ev: &IdleEvent) {
        match *self {}
    }
    fn exit_start_up(&mut self, _now: Time) {
        match *self {}
    }
    fn on_mss_change(&mut self, _ratio: f64) {
        match *self {}
    }
    fn window(&self) -> f64 {
        match *self {}
    }
    fn ssthresh(&self) -> f64 {
        match *self {}
    }
    fn report(&self, _visit: &mut dyn FnMut(&'static str, f64)) {
        match *self {}
    }
}

#[cfg(feature = "registry")]
pub use list::Model;
#[cfg(feature = "registry")]
pub(crate) use list::entries;

#[cfg(all(feature = "registry", not(test)))]
mod list {
    pub use super::NoModel as Model;

    pub(crate) const fn entries<C>() -> [crate::entry::Entry<C>; 0] {
        []
    }
}

// The unit tests register one, so that the registry's whole way for such a controller is run.
#[cfg(feature = "registry")]
#[cfg(test)]
#[allow(dead_code)] // the derived dispatch over a single variant has a helper that it does not use
mod list {
    use fullpipe_units::Rate;

    use super::*;
    use crate::controller::{LostSegment, RestartEvent, ambassador_impl_Controller};
    use crate::fixed_share;

    components! {
        /// The controller of the tests.
        Model: Controller {
            /// A fixed share of the largest delivery rate.
            FixedShare(fixed_share::FixedShare): fixed_share::FIXED_SHARE;
        }
    }
}
