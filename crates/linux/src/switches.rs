//! What of a flow's endpoint the kernel can be told, and what it cannot.
//!
//! A preset is a whole host, and this ground has another one: Linux. Switches at the value that a
//! preset gives them are therefore the kernel's own; one that was set by hand is obeyed, or refused
//! by its key.

use fullpipe_flow::{Detector, Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::FlowSpec;
use fullpipe_units::Span;
use serde_json::Value;

use crate::error::LinuxError;

/// A flow's endpoint, as far as the kernel is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// Congestion module.
    pub module: String,
    pub timestamps: bool,
    pub sack: bool,
    /// Ceiling of the kernel's own pacer, bytes of payload per second; 0: it does not run.
    pub pace: u64,
    /// Smallest retransmission timeout, if not the kernel's.
    pub min_rto: Option<Span>,
    /// The receiver's buffer and the cap of its window, bytes; 0: the kernel's own.
    pub window: (u64, u64),
    /// The receive window shall not limit.
    pub unlimited_window: bool,
}

/// Those of a flow, in a kernel that has the user's `module` beside its own.
///
/// # Errors
/// [`LinuxError::Unable`] with the key that the kernel has no switch for.
pub fn of(f: &FlowSpec, module: Option<&str>) -> Result<Switches, LinuxError> {
    let (sender, receiver) = (&f.sender, &f.receiver);
    let by_hand = by_hand(sender, receiver);
    for path in &by_hand {
        if !OBEYED.contains(&path.as_str()) {
            let key = KEYS.iter().find(|(p, _)| path.starts_with(p));
            let key = key.map_or(path.as_str(), |(_, key)| key);
            let what = format!(
                "flow {}: `{key}` is set to what the kernel has no switch for",
                f.name
            );
            let hint = format!("leave out `{key}`, or use --ground sim");
            return Err(LinuxError::unable(what, hint));
        }
    }
    if !(1..=2).contains(&receiver.acks.every) {
        let what = format!(
            "flow {}: `ack_every` is 1 or 2 in the kernel, not {}",
            f.name, receiver.acks.every
        );
        return Err(LinuxError::unable(what, "set `ack_every = 2`"));
    }
    if f.local_queue {
        let what = format!(
            "flow {}: `nic_rate` and `txqueuelen` are not implemented on ground linux",
            f.name
        );
        return Err(LinuxError::unable(what, "leave them out"));
    }
    let set = |path: &str| by_hand.iter().any(|p| p == path);
    Ok(Switches {
        module: module_of(f, module)?,
        timestamps: sender.header > WITHOUT_STAMPS,
        sack: sender.recovery.detector != Detector::NewReno,
        pace: match (sender.pacing.max, sender.pacing.gains) {
            (Some(most), _) => (most.as_bits_per_sec() / 8).max(1),
            (None, Some(_)) => TCPS_OWN_RATE,
            (None, None) => 0,
        },
        min_rto: set("sender.rto.min").then_some(sender.rto.min),
        window: match receiver.window.max.map(|w| w * u64::from(sender.mss)) {
            None => (0, 0),
            Some(bytes) if set("receiver.window.max") => (0, bytes),
            // SO_RCVBUF doubles it, and half of that is window.
            Some(bytes) => (bytes, 0),
        },
        unlimited_window: receiver.window.max.is_none(),
    })
}

/// A ceiling that no flow reaches: the pacer runs at TCP's own rate.
const TCPS_OWN_RATE: u64 = 1 << 62;

/// Headers without time stamps (IPv4), bytes.
const WITHOUT_STAMPS: u32 = 40;

/// Fields that the kernel is told, or that mean nothing to it at any value.
const OBEYED: &[&str] = &[
    "sender.mss",
    "sender.header",
    "sender.timestamps",
    "sender.transfer",
    "sender.ecn",
    "sender.window.initial",
    "sender.window.max",
    "sender.recovery.detector",
    "sender.rto.min",
    "sender.rto.max",
    "sender.timers.max_ack_delay",
    "sender.timers.hz",
    "sender.pacing.gains",
    "sender.pacing.max",
    "receiver.acks.every",
    "receiver.acks.hz",
    "receiver.sack.enabled",
    "receiver.sack.blocks",
    "receiver.window.max",
];

/// The scenario's keys of the other fields.
const KEYS: &[(&str, &str)] = &[
    ("receiver.acks.delay", "ack_delay"),
    ("receiver.paws", "paws"),
    ("receiver.acks.quick", "quick_acks"),
    ("receiver.window.first", "receive_window_first"),
    ("sender.artificial_loss", "drop"),
    ("sender.handshake", "handshake"),
    ("sender.window.validation", "validation"),
    ("sender.window.count", "count"),
    ("sender.window.decrease_base", "decrease_base"),
    ("sender.recovery.reordering_by", "reordering_by"),
    ("sender.recovery.reduction", "prr"),
    ("sender.recovery.tlp", "tlp"),
    ("sender.recovery.frto", "frto"),
    ("sender.recovery.undo", "undo"),
    ("sender.pacing.initial", "stack"),
    ("sender.host.local_drop", "sendstall"),
    ("sender.host.tso_segments", "tso"),
];

/// The one value of a switch that belongs to a whole host.
///
/// # Errors
/// [`LinuxError::Unable`] if flows differ in it.
pub fn common(
    flows: &[&FlowSpec],
    switches: &[Switches],
    key: &str,
    value: impl Fn(&Switches) -> bool,
) -> Result<bool, LinuxError> {
    let Some(first) = switches.first() else {
        return Ok(true);
    };
    match switches.iter().position(|s| value(s) != value(first)) {
        None => Ok(value(first)),
        Some(other) => Err(LinuxError::unable(
            format!(
                "flows {} and {} differ in `{key}`, which a kernel has once for all of them",
                flows[0].name, flows[other].name
            ),
            format!("give all flows the same `{key}`"),
        )),
    }
}

/// The kernel's name of a stack.
fn module_of(f: &FlowSpec, own: Option<&str>) -> Result<String, LinuxError> {
    let stack = f.stack.to_string();
    let name = stack.strip_suffix("-linux").unwrap_or(&stack);
    if MODULES.contains(&name) {
        return Ok(name.to_owned());
    }
    if stack == "own-linux" {
        return own.map(str::to_owned).ok_or_else(|| {
            let what = format!(
                "flow {}: `stack = \"own-linux\"` is your own congestion module",
                f.name
            );
            LinuxError::unable(what, "name its file: `--kernel-module FILE`")
        });
    }
    let plain = stack.split(['+', '(']).next().unwrap_or_default();
    let plain = plain.strip_suffix("-linux").unwrap_or(plain);
    let what = format!(
        "flow {}: `stack = \"{stack}\"` is no congestion module of the kernel",
        f.name
    );
    let hint = match MODULES.contains(&plain) {
        true => format!("write `--set flow.{}.stack={plain}`", f.name),
        false => format!("one of {}, own-linux", MODULES.join(", ")),
    };
    Err(LinuxError::unable(what, hint))
}

/// Congestion modules of the kernel that are built in.
pub const MODULES: &[&str] = &[
    "reno",
    "cubic",
    "highspeed",
    "scalable",
    "htcp",
    "bic",
    "vegas",
    "westwood",
    "hybla",
    "illinois",
    "yeah",
    "veno",
    "lp",
    "nv",
    "cdg",
    "dctcp",
    "bbr",
];

/// Fields at a value that no preset gives them.
fn by_hand(sender: &SenderConfig, receiver: &ReceiverConfig) -> Vec<String> {
    let packet = sender.packet();
    let presets = [Preset::Y2003, Preset::Y2026, Preset::Linux].map(|preset| {
        tree(
            &SenderConfig::preset(preset, packet),
            &ReceiverConfig::preset(preset),
        )
    });
    let mut found = Vec::new();
    compare("", &tree(sender, receiver), &presets.each_ref(), &mut found);
    found
}

fn tree(sender: &SenderConfig, receiver: &ReceiverConfig) -> Value {
    serde_json::json!({ "sender": sender, "receiver": receiver })
}

fn compare(path: &str, value: &Value, presets: &[&Value], found: &mut Vec<String>) {
    if let Value::Object(fields) = value
        && presets.iter().any(|p| p.is_object())
    {
        for (name, field) in fields {
            let path = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            let presets: Vec<&Value> = presets.iter().map(|p| &p[name]).collect();
            compare(&path, field, &presets, found);
        }
    } else if !presets.contains(&value) {
        found.push(path.to_owned());
    }
}
