//! The running controller of any registered kind.

use ambassador::Delegate;
use fullpipe_units::{Rate, Time};

#[cfg(feature = "guests")]
use super::guest::Hosted;
use crate::classic::{Classic, Setup};
use crate::controller::{
    AckEvent, CongestionEvent, Controller, IdleEvent, LostSegment, RestartEvent, RtoEvent,
    TakeOver, ambassador_impl_Controller,
};
use crate::law::Law;
#[cfg(feature = "linux")]
use crate::linux::{AnyModule, Linux};
use crate::model::Model;
use crate::startup::Start;

/// A running controller of any registered kind; dispatch by `match`, no pointer on the ACK path.
///
/// `M` is what a model-based controller is: the registry's own, or that of an endpoint that runs
/// its controller beside the registered ones.
#[derive(Clone, Debug, Delegate)]
#[delegate(Controller)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // one per flow; a pointer would cost a miss per ACK
#[repr(u8)] // an ACK asks several times: a tag of its own costs less than one out of a niche
pub enum Stack<M = Model> {
    /// Start-up x window law.
    Classic(Classic<Start, Law>),
    /// A kernel module.
    #[cfg(feature = "linux")]
    Linux(Linux<AnyModule>),
    /// A model-based controller.
    Model(M),
    /// A controller from elsewhere.
    #[cfg(feature = "guests")]
    Guest(Hosted),
}
