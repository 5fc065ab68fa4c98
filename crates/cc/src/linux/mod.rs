//! The congestion modules of Linux 6.1, to the integer.
//!
//! A kernel module is not a window law: it counts whole segments and whole clock ticks, shifts
//! where a paper divides, and acts at the kernel's own call sites.
//! [`Linux`] is those call sites: it turns the sender's events into the calls that a
//! [`Module`] gets in `net/ipv4/tcp_input.c` and keeps the part of the socket that modules share,
//! [`Socket`]. One file per module; each states what its paper says differently.
//!
//! | kernel hook | here | called |
//! |---|---|---|
//! | `init` | [`Module::init`] | connection established, SRTT known |
//! | `in_ack_event` | [`Module::on_ack_event`] | every ACK, after its samples |
//! | `pkts_acked` | [`Module::pkts_acked`] | every ACK, with the RTT sample |
//! | `ssthresh` | [`Module::ssthresh`] | entering recovery, CWR or loss |
//! | `set_state` | [`Module::set_state`] | before the state changes |
//! | `cong_avoid` | [`Module::cong_avoid`] | an ACK that advances, outside recovery and CWR |
//! | `cwnd_event` | [`Module::on_event`] | sending starts again, a reduction ends, a timeout |
//! | `cong_control` | [`Module::cong_control`] | the end of every ACK, in place of growth and PRR |
//! | `undo_cwnd` | [`Module::undo_cwnd`] | a reduction was spurious |

pub mod bbr;
pub mod bic;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod lp;
pub mod module;
pub mod own;
pub mod reno;
mod round_delay;
pub mod scalable;
mod socket;
#[cfg(test)]
mod testing;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;

pub use module::{AckSample, Event, Linux, Module};
pub use socket::Socket;

#[cfg(feature = "registry")]
use crate::controller::{AckEvent, Phase};
#[cfg(feature = "registry")]
use crate::linux::module::ambassador_impl_Module;

#[cfg(feature = "registry")]
components! {
    /// Every kernel module of the registry.
    AnyModule: Module {
        /// Reno.
        Reno(reno::Reno): reno::RENO_LINUX;
        /// Vegas.
        Vegas(vegas::Vegas): vegas::VEGAS_LINUX;
        /// YeAH.
        Yeah(yeah::Yeah): yeah::YEAH_LINUX;
        /// Veno.
        Veno(veno::Veno): veno::VENO_LINUX;
        /// Illinois.
        Illinois(illinois::Illinois): illinois::ILLINOIS_LINUX;
        /// Westwood+.
        Westwood(westwood::Westwood): westwood::WESTWOOD_LINUX;
        /// TCP-LP.
        Lp(lp::Lp): lp::LP_LINUX;
        /// HighSpeed TCP.
        HighSpeed(highspeed::HighSpeed): highspeed::HIGHSPEED_LINUX;
        /// Scalable TCP.
        Scalable(scalable::Scalable): scalable::SCALABLE_LINUX;
        /// BIC.
        Bic(bic::Bic): bic::BIC_LINUX;
        /// H-TCP.
        Htcp(htcp::Htcp): htcp::HTCP_LINUX;
        /// CUBIC.
        Cubic(cubic::Cubic): cubic::CUBIC_LINUX;
        /// BBR.
        Bbr(bbr::Bbr): bbr::BBR_LINUX;
        /// DCTCP.
        Dctcp(dctcp::Dctcp): dctcp::DCTCP_LINUX;
        /// Hybla.
        Hybla(hybla::Hybla): hybla::HYBLA_LINUX;
        /// The user's own.
        Own(own::Own): own::OWN_LINUX;
    }
}
