//! Keys of a transport that do nothing beside what else is set: one table says what each needs.
//!
//! The tests hold every row against simulations: without what it needs all values of a key give the
//! same run, with it they do not.

use fullpipe_cc::{Count, Kind, StackSpec};
use fullpipe_flow::{Detector, LossWindow, TimerGrain};

use super::transport::{needs_ecn, paces_by_itself};
use crate::keys::{Ends, FlowKeys, Transport};
use crate::value::{At, Findings, Key, Record, Value};

/// A connection with all its keys landed.
pub(super) struct Situation<'a> {
    pub ends: &'a Ends,
    pub stack: &'a StackSpec,
    /// The table that says it.
    pub record: &'a Record,
    /// A queue on the way marks packets.
    pub marks: bool,
    /// Kind of a queue that would mark, for the hint.
    pub could_mark: &'static str,
}

struct Need {
    key: Key,
    acts: fn(&Situation<'_>) -> bool,
    /// The key to write, or what has to be there, for the message.
    needs: &'static str,
}

const fn need(key: Key, acts: fn(&Situation<'_>) -> bool, needs: &'static str) -> Need {
    Need { key, acts, needs }
}

const NEEDS: &[Need] = &[
    need(
        Transport::tlp,
        |s| s.ends.sender.recovery.may_probe(),
        "`recovery = \"rack\"`, or `\"sack\"` and the `prr` of preset `linux`",
    ),
    need(Transport::lost_retransmission, rack, RACK),
    need(Transport::recover_from_loss, rack, RACK),
    need(Transport::loss_window, rack, RACK),
    need(
        Transport::steady_newreno,
        |s| s.ends.sender.recovery.detector == Detector::NewReno,
        "`recovery = \"newreno\"`",
    ),
    need(
        Transport::frto_by,
        // Segments that RACK spares at a timeout are held by the rule that `frto_by` names.
        |s| {
            let spares = s.ends.sender.recovery.loss_window == LossWindow::FlightPlusOne;
            s.ends.sender.recovery.frto || (spares && rack(s))
        },
        "`frto = true`",
    ),
    need(
        Transport::undo_by,
        |s| s.ends.sender.recovery.undo,
        "`undo = true`",
    ),
    need(Transport::ack_delay, delays, DELAYED),
    need(Transport::receiver, delays, DELAYED),
    need(Transport::push, delays, DELAYED),
    need(
        Transport::handshake_ack,
        |s| s.ends.sender.handshake,
        "`handshake = true`",
    ),
    need(
        Transport::pacer,
        |s| {
            let of_flow = s.record.is_given(&FlowKeys::rate);
            let of_stack = s.stack.kind() == Kind::Model || paces_by_itself(s.stack);
            s.ends.sender.pacing.gains.is_some() || of_stack || of_flow
        },
        "`pacing`",
    ),
    need(
        Transport::slow_start_limit,
        |s| s.ends.sender.window.count == Count::Segments && s.stack.kind() == Kind::Law,
        "a window law that counts segments",
    ),
    need(
        Transport::decrease_base,
        |s| s.stack.kind() == Kind::Law,
        "a window law; modules of Linux and controllers with a rate have their own",
    ),
    need(
        Transport::hz,
        |s| {
            let of_kernel = matches!(s.stack.kind(), Kind::Module | Kind::Model);
            s.ends.sender.timers.grain == TimerGrain::Wheel || of_kernel
        },
        "`timers = \"wheel\"` or a module of Linux as `stack`",
    ),
    need(
        Transport::tso_autosize,
        |s| s.ends.sender.host.tso_segments > 1,
        "`tso`",
    ),
    need(
        Transport::ecn,
        |s| s.marks,
        "a queue on its way that marks packets",
    ),
    need(
        Transport::ecn_echo,
        |s| s.marks && s.ends.sender.ecn,
        "`ecn = true` and a queue on its way that marks packets",
    ),
];

const RACK: &str = "`recovery = \"rack\"`";
const DELAYED: &str = "`delayed_ack = true`";

fn rack(s: &Situation<'_>) -> bool {
    s.ends.sender.recovery.detector == Detector::Rack
}

fn delays(s: &Situation<'_>) -> bool {
    s.ends.receiver.acks.every > 1
}

/// Warns of keys that are given and do nothing; of one that is `false` there is nothing to warn.
pub(super) fn warn<T>(at: &At<'_, T>, situation: &Situation<'_>, findings: &mut Findings) {
    for need in NEEDS {
        let field = at.record.field(&need.key);
        let asks = field.is_some_and(|field| !matches!(field.value, Value::Flag(false)));
        if asks && !(need.acts)(situation) {
            let mut message = format!("this changes nothing: it needs {}", need.needs);
            if need.key.name == Transport::ecn.name {
                let kind = situation.could_mark;
                message += &format!(", as `queue = {{ kind = \"{kind}\", ecn = true }}`");
            }
            at.warn(findings, &need.key, &message);
        }
    }
    if needs_ecn(situation.stack) && !(situation.marks && situation.ends.sender.ecn) {
        let law = situation.stack.law_name();
        let missing = match situation.ends.sender.ecn {
            true => {
                "no queue on its way marks packets, as `queue = { kind = \"codel\", \
                     ce_threshold = \"1ms\" }`"
            }
            false => "its `ecn` is false",
        };
        let message = format!("`{law}` lives on marks, and is Reno without: {missing}");
        at.warn(findings, &Transport::ecn, &message);
    }
}
