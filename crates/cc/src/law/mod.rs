//! The window laws: how a window grows in congestion avoidance and what a congestion event takes.
//!
//! One file per law, listed here. A law is what its paper says, in real-valued segments;
//! [`Classic`](crate::Classic) owns slow start, the base of a decrease, floors and undo. What the
//! Linux kernel makes of the same paper is in `linux`.

pub mod aimd;
pub mod bic;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod scalable;
pub mod westwood;

/// Laws that read the delay: Vegas and what grew from it.
pub mod delay {
    pub mod early;
    pub mod fast;
    pub mod hslp;
    pub mod ledbat;
    pub mod lp;
    pub mod vegas;
    pub mod veno;
    pub mod yeah;

    #[cfg(test)]
    pub(crate) mod testing;
}

pub use crate::classic::WindowLaw;

#[cfg(feature = "registry")]
use fullpipe_units::Time;

#[cfg(feature = "registry")]
use crate::{
    classic::{Frame, Setup, Window, ambassador_impl_WindowLaw},
    controller::{AckEvent, CongestionEvent, IdleEvent, RestartEvent, RtoEvent},
    params::Params,
    startup::{Start, StartUp},
};

#[cfg(feature = "registry")]
components! {
    /// Every window law of the registry.
    Law: WindowLaw {
        /// Constant increase and decrease: Reno, tuned AIMD, N-stream emulation.
        Aimd(aimd::Aimd): aimd::RENO, aimd::AIMD, aimd::MULTCP;
        /// Constant increase and decrease, taken from the flow's buffer.
        Pretuned(aimd::Pretuned): aimd::PRETUNED;
        /// HighSpeed TCP (RFC 3649).
        HighSpeed(highspeed::HighSpeed): highspeed::HIGHSPEED, highspeed::HIGHSPEED_NS2;
        /// Scalable TCP.
        Scalable(scalable::Scalable): scalable::SCALABLE;
        /// BIC.
        Bic(bic::Bic): bic::BIC, bic::BIC_PAPER;
        /// H-TCP.
        Htcp(htcp::Htcp): htcp::HTCP;
        /// CUBIC (RFC 9438).
        Cubic(cubic::Cubic): cubic::CUBIC;
        /// DCTCP (RFC 8257).
        Dctcp(dctcp::Dctcp): dctcp::DCTCP;
        /// TCP Hybla's congestion avoidance.
        Hybla(hybla::Hybla): hybla::HYBLA;
        /// Vegas.
        Vegas(delay::vegas::Vegas): delay::vegas::VEGAS;
        /// FAST TCP.
        Fast(delay::fast::Fast): delay::fast::FAST;
        /// TCP-LP.
        Lp(delay::lp::Lp): delay::lp::LP;
        /// HSTCP-LP.
        HsLp(delay::hslp::HsLp): delay::hslp::HSTCP_LP;
        /// Westwood+.
        Westwood(westwood::Westwood): westwood::WESTWOOD;
        /// Illinois.
        Illinois(illinois::Illinois): illinois::ILLINOIS;
        /// YeAH.
        Yeah(delay::yeah::Yeah): delay::yeah::YEAH;
        /// Veno.
        Veno(delay::veno::Veno): delay::veno::VENO;
        /// LEDBAT (RFC 6817).
        Ledbat(delay::ledbat::Ledbat): delay::ledbat::LEDBAT;
    }
}

#[cfg(feature = "registry")]
impl Law {
    /// How a law with a start-up of its own starts when the spelling names none.
    pub(crate) fn own_start_up(&self, params: &Params) -> Option<Start> {
        match self {
            Law::Hybla(_) => Some(hybla::start_up(params).into()),
            Law::Vegas(_) => Some(delay::vegas::start_up(params).into()),
            Law::Fast(_) => Some(delay::fast::start_up(params).into()),
            _ => None,
        }
    }
}
