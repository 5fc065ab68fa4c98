//! What a policy may say, and had better not.

use fullpipe_cc::Kind;
use fullpipe_scenario::value::{At, Findings};
use fullpipe_units::Span;

use crate::aggression::Aggression;
use crate::compiled::Action;
use crate::keys::PathKeys;
use crate::policy::PathFacts;

/// Warns of what changes nothing.
pub(crate) fn of_the_void(path: &At<'_, PathKeys>, findings: &mut Findings) {
    let divisible = [
        &PathKeys::window,
        &PathKeys::pacing,
        &PathKeys::buffers,
        &PathKeys::send_buffer,
        &PathKeys::receive_buffer,
    ];
    if path.divide && !divisible.into_iter().any(|key| path.is_given(key)) {
        let message = "nothing is divided: the path has no `window`, `pacing` or buffers";
        path.warn(findings, &PathKeys::divide, message);
    }
    let mounted = path.cgroup.as_deref().and_then(|c| c.strip_prefix(MOUNT));
    if let Some(own) = mounted.filter(|own| own.starts_with('/')) {
        let message = format!(
            "no process is in it: groups are named from where they are mounted on, as in \
             /proc/PID/cgroup; write \"{own}\""
        );
        path.warn(findings, &PathKeys::cgroup, &message);
    }
}

/// A warning where a path takes more than CUBIC would.
pub(crate) fn of_aggression(
    path: &At<'_, PathKeys>,
    facts: &PathFacts,
    action: &Action,
    clamp: Option<u32>,
    findings: &mut Findings,
) {
    let key = match facts.stack {
        Some(_) => &PathKeys::stack,
        None => &PathKeys::kernel,
    };
    let Some(stack) = facts.modelled(action) else {
        return;
    };
    if NEVER_GREEDY.contains(&stack.law_name()) {
        return;
    }
    let reach = reach(facts, clamp);
    let window = match reach.is_finite() {
        true => reach.clamp(4.0, MOST_WEIGHED),
        false => UNKNOWN_PATH,
    };
    let rtt = facts.rtt.unwrap_or(UNKNOWN_RTT);
    let Some(aggression) = Aggression::of(&stack, window.floor(), rtt, facts.mss()) else {
        return;
    };
    if aggression.exceeds_cubic() {
        let message = format!(
            "more aggressive than CUBIC: at a window of {:.0} segments and {rtt} (one loss in {:.0} \
             segments) as {:.1} Reno flows, CUBIC as {:.1}",
            aggression.window,
            1.0 / aggression.loss_rate,
            aggression.reno_flows,
            aggression.cubic
        );
        path.warn(findings, key, &message);
    }
}

/// A warning where limited slow start takes long to reach what the path holds: it opens by half of
/// `max_ssthresh` a round trip (RFC 3742).
pub(crate) fn of_a_slow_start(
    path: &At<'_, PathKeys>,
    facts: &PathFacts,
    clamp: Option<u32>,
    findings: &mut Findings,
) {
    let start = facts
        .stack
        .as_ref()
        .and_then(|stack| stack.params(Kind::StartUp));
    let (Some(("limited", params)), Some(rtt)) = (start, facts.rtt) else {
        return;
    };
    let (limit, window) = (params.number("max_ssthresh"), reach(facts, clamp));
    let rounds = (window - limit) / (limit / 2.0);
    let seconds = rounds * rtt.as_secs_f64();
    if seconds.is_finite() && seconds > LONG_START {
        let message = format!(
            "slow start opens by {:.0} segments a round trip: the {window:.0} that the path holds \
             take {seconds:.0} s; with a larger `max_ssthresh` less",
            limit / 2.0
        );
        path.warn(findings, &PathKeys::stack, &message);
    }
}

/// The window that the path can hold, or to which it is clamped, segments.
fn reach(facts: &PathFacts, clamp: Option<u32>) -> f64 {
    let reach = facts.reach().into_iter().chain(clamp.map(f64::from));
    reach.fold(f64::INFINITY, f64::min)
}

/// Where control groups are mounted, as a rule.
const MOUNT: &str = "/sys/fs/cgroup";

/// Laws that give way before anybody else loses, so that what they take where nothing gives way is
/// not taken from others; and the kernel's CUBIC, which a host has without a policy.
const NEVER_GREEDY: [&str; 4] = ["hstcp-lp", "ledbat", "lp", "cubic-linux"];

/// A start-up that lasts longer is remarked on, seconds: most transfers are over by then.
const LONG_START: f64 = 30.0;

/// Window and RTT at which a law is weighed where the path has none.
pub(crate) const UNKNOWN_PATH: f64 = 1000.0;
pub(crate) const UNKNOWN_RTT: Span = Span::from_millis(100);

/// Largest window at which a law is weighed, segments: a cycle of Reno at more takes seconds.
const MOST_WEIGHED: f64 = 20_000.0;
