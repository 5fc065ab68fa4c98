//! The model-based controllers: a pacing rate and a window from samples of the delivery rate, as
//! BBR and UDT set them. One file or folder per controller, listed here.
//!
//! Such a controller is a whole. It implements [`Controller`] itself and takes no start-up beside
//! it. [`Controller::set_up`] gives it what the endpoint fixes. Its samples come with
//! [`Controller::on_ack`] ([`AckEvent::rate`]), losses one by one with [`Controller::on_lost`];
//! [`Controller::pacing_rate`] and [`Controller::window`] answer, in recovery too where
//! [`Controller::owns_window`] says so.
//!
//! Linux's own BBR, version 1, is a kernel module: [`crate::linux::bbr`]. What its authors keep of
//! version 3 is the draft's model with other [rules](bbr::BBR3_LINUX).

pub mod bbr;
pub mod udt;

#[cfg(doc)]
use crate::controller::{AckEvent, Controller};

#[cfg(feature = "registry")]
pub use list::Model;
#[cfg(feature = "registry")]
pub(crate) use list::entries;

#[cfg(feature = "registry")]
mod list {
    use fullpipe_units::{Rate, Time};

    use super::{bbr, udt};
    use crate::classic::Setup;
    use crate::controller::{
        AckEvent, CongestionEvent, Controller, IdleEvent, LostSegment, RestartEvent, RtoEvent,
        TakeOver, ambassador_impl_Controller,
    };

    components! {
        /// Every model-based controller of the registry.
        Model: Controller {
            /// BBR version 3.
            Bbr(bbr::Bbr): bbr::BBR, bbr::BBR3_LINUX;
            /// UDT.
            Udt(udt::Udt): udt::UDT;
        }
    }
}
