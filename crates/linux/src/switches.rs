//! What of a flow's endpoint the kernel can be told, and what it cannot.
//!
//! A preset is a whole host, and this ground has another one: Linux. Switches at the value that the
//! flow's preset gives them, or that Linux has, are therefore the kernel's own; one that was set by
//! hand to anything else is obeyed, or refused by its key.

use fullpipe_flow::{
    ArtificialLoss, CeEcho, Detector, HEADERS, LocalDrop, Preset, ReceiverConfig, SenderConfig,
    Validation,
};
use fullpipe_run::{FlowSpec, RunSpec, WrittenKey};
use fullpipe_units::Span;
use serde_json::Value;

use crate::error::LinuxError;

/// What a plan has to know of the kernel that it is for.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    /// Ticks per second; `None`: the running kernel's, which programs are not told.
    pub hz: Option<u32>,
    /// Version of its BBR; `None`: it has none that is known, and neither is refused here.
    pub bbr: Option<u32>,
    /// The user's own congestion module.
    pub module: Option<&'a str>,
}

impl Kernel<'_> {
    /// One that nothing is known of.
    pub const UNKNOWN: Self = Self {
        hz: None,
        bbr: None,
        module: None,
    };

    /// Its ticks, as a sentence.
    pub(crate) fn ticks(&self) -> String {
        match self.hz {
            Some(hz) => format!("the kernel has {hz} ticks a second"),
            None => "the ticks of the running kernel are what they are".to_owned(),
        }
    }
}

/// A flow's endpoint, as far as the kernel is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
pub struct Switches {
    /// Congestion module.
    pub module: String,
    /// TCP's option of RFC 7323.
    pub timestamps: bool,
    /// TCP's option of RFC 2018.
    pub sack: bool,
    /// Ceiling of the kernel's own pacer, bytes of payload per second; 0: it does not run.
    pub pace: u64,
    /// Smallest retransmission timeout, if not the kernel's.
    pub min_rto: Option<Span>,
    /// The receiver's buffer and the cap of its window, bytes; 0: the kernel's own.
    pub window: (u64, u64),
    /// The receive window shall not limit.
    pub unlimited_window: bool,
    /// What waits at the host's own interface counts as in flight there.
    pub small_queue: bool,
    /// A full interface reduces the window.
    pub stall_reduces: bool,
    /// Tail loss probes, of the whole host (`tcp_early_retrans`).
    pub tlp: bool,
    /// Forward RTO recovery, of the whole host (`tcp_frto`).
    pub frto: bool,
    /// The window is halved per timeout of silence, on the whole host
    /// (`tcp_slow_start_after_idle`).
    pub validates: bool,
    /// Losses are detected by time, on the whole host (`tcp_recovery`).
    pub rack: bool,
    /// The receiver merges ACKs, on the whole host (`tcp_comp_sack_nr`).
    pub merges_acks: bool,
    /// The receiver echoes each change of the marks, which the kernel's does whose own congestion
    /// control is DCTCP.
    pub echoes_changes: bool,
}

/// Those of a flow, in this kernel.
///
/// # Errors
/// [`LinuxError::Unable`] with the key that the kernel has no switch for.
pub fn of(f: &FlowSpec, kernel: Kernel<'_>) -> Result<Switches, LinuxError> {
    let (sender, receiver) = (&f.sender, &f.receiver);
    if !f.changes.is_empty() {
        let what = "the kernel cannot be told to change a flow that runs";
        let hint = "leave out `change`, or use --ground sim";
        return Err(LinuxError::unable(f, "change", what, hint));
    }
    if f.sender.artificial_loss != ArtificialLoss::default() {
        let what = "the kernel drops nothing before it sends";
        let hint = "drop on the path or at the receiver, or use --ground sim";
        return Err(LinuxError::unable(f, "drop.where", what, hint));
    }
    let by_hand = by_hand(f);
    for path in &by_hand {
        // Without time stamps there is nothing for PAWS to check, here and there.
        let void = path == "receiver.paws" && !sender.timestamps;
        if !void && !OBEYED.contains(&path.as_str()) {
            let key = written_at(f, path).map_or(path.as_str(), |key| key.name);
            let what = format!("the kernel has no switch for this value of `{key}`");
            let hint = match key {
                "stack" => "leave out what the stack says of sending".to_owned(),
                key => format!("leave out `{key}`"),
            };
            let hint = format!("{hint}, or use --ground sim");
            return Err(LinuxError::unable(f, key, what, hint));
        }
    }
    let set = |path: &str| by_hand.iter().any(|p| p == path);
    if !(1..=2).contains(&receiver.acks.every) {
        let what = format!("it is 1 or 2 in the kernel, not {}", receiver.acks.every);
        return Err(LinuxError::unable(
            f,
            "ack_every",
            what,
            "set `ack_every = 2`",
        ));
    }
    let writes_hz = f.written.iter().any(|key| key.name == "hz");
    let asks = set("sender.timers.hz") || writes_hz && kernel.hz.is_some();
    if asks && Some(sender.timers.hz) != kernel.hz {
        let how = format!(
            "build one with `fullpipe linux build --hz {0} --name 6.1-hz{0}` and run it with \
             `--kernel 6.1-hz{0}`",
            sender.timers.hz
        );
        let error = LinuxError::unable(f, "hz", kernel.ticks(), "leave out `hz`");
        return Err(error.or_with_own_kernel(how));
    }
    if sender.host.local_drop == LocalDrop::ExitSlowStart {
        let what = "the kernel reduces the window, or waits: it leaves no slow start for this";
        let hint = "write \"react\" or \"ignore\", or use --ground sim";
        return Err(LinuxError::unable(f, "sendstall", what, hint));
    }
    if set("sender.window.validation") && sender.window.validation != Validation::None {
        let what = "the kernel keeps the window, or halves it per timeout (RFC 2861)";
        let hint = "write \"none\" or \"rfc2861\", or use --ground sim";
        return Err(LinuxError::unable(f, "validation", what, hint));
    }
    let module = module_of(f, kernel)?;
    if module == "dctcp" && !(sender.ecn && receiver.ce_echo == CeEcho::EachChange) {
        let key = if sender.ecn { "ecn_echo" } else { "ecn" };
        let what = "the kernel's DCTCP asks for ECN, and for a receiver that has DCTCP, too";
        let hint = format!("leave out `{key}`, or use --ground sim");
        return Err(LinuxError::unable(f, key, what, hint));
    }
    // A switch of the preset's is the kernel's own.
    let own = |path: &str, value: bool| !set(path) || value;
    Ok(Switches {
        module,
        timestamps: sender.header > HEADERS,
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
        small_queue: own("sender.host.small_queue", sender.host.small_queue),
        stall_reduces: sender.host.local_drop == LocalDrop::React,
        tlp: own("sender.recovery.tlp", sender.recovery.tlp),
        frto: own("sender.recovery.frto", sender.recovery.frto),
        validates: own(
            "sender.window.validation",
            sender.window.validation != Validation::None,
        ),
        rack: own(
            "sender.recovery.detector",
            sender.recovery.detector != Detector::Sack,
        ),
        merges_acks: own(
            "receiver.acks.compression",
            receiver.acks.compression.is_some(),
        ),
        echoes_changes: receiver.ce_echo == CeEcho::EachChange,
    })
}

/// A ceiling that no flow reaches: the pacer runs at TCP's own rate.
const TCPS_OWN_RATE: u64 = 1 << 62;

/// Fields that the kernel is told, or that mean nothing to it at any value. Of two values that
/// [`of`] does not know the others are the kernel's own.
const OBEYED: &[&str] = &[
    "sender.mss",
    "sender.header",
    "sender.timestamps",
    "sender.transfer",
    "sender.ecn",
    "sender.window.initial",
    "sender.window.max",
    "sender.window.validation",
    "sender.recovery.detector",
    "sender.recovery.tlp",
    "sender.recovery.frto",
    "sender.rto.min",
    "sender.rto.max",
    "sender.timers.max_ack_delay",
    "sender.timers.hz",
    "sender.pacing.gains",
    "sender.pacing.max",
    "sender.host.small_queue",
    "sender.host.local_drop",
    "receiver.acks.every",
    "receiver.acks.hz",
    "receiver.acks.compression",
    "receiver.ce_echo",
    "receiver.sack.enabled",
    "receiver.sack.blocks",
    "receiver.sack.whole",
    "receiver.window.max",
    "receiver.window.widest",
    "receiver.window.buffer",
];

/// The key that sets a field: of those written the one that counts last.
fn written_at(f: &FlowSpec, path: &str) -> Option<WrittenKey> {
    let lands = |key: &&WrittenKey| key.fields.iter().any(|field| holds(field, path));
    f.written.iter().rfind(lands).copied()
}

/// A field is the one at the path, or has it inside.
fn holds(field: &str, path: &str) -> bool {
    path.strip_prefix(field)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// All that a kernel is told of the endpoints of a run's flows, in words: what a preset and the
/// keys beside it come to here, which a run's specification itself does not say.
pub fn told(spec: &RunSpec, kernel: Kernel<'_>) -> String {
    let templates = spec.arrivals.iter().map(|a| &a.template);
    let flows = spec.flows.iter().chain(templates);
    let told = flows.map(|f| format!("{:?}\n", of(f, kernel)));
    told.collect()
}

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
        Some(other) => {
            let what = format!(
                "flow {} has another one, and a kernel has one for all of them",
                flows[0].name
            );
            let hint = format!("give all flows the same `{key}`");
            Err(LinuxError::unable(flows[other], key, what, hint))
        }
    }
}

/// What to write for a stack; `--set` would replace all those of a matrix.
fn instead(f: &FlowSpec, stack: &str, module: &str) -> String {
    format!(
        "write `{module}` in place of `{stack}`, or `--set flow.{}.stack={module}` if all are to \
         have it",
        f.name
    )
}

/// The kernel's name of a stack.
fn module_of(f: &FlowSpec, kernel: Kernel<'_>) -> Result<String, LinuxError> {
    let own = kernel.module;
    let stack = f.stack.to_string();
    let name = stack.strip_suffix("-linux").unwrap_or(&stack);
    match (stack.as_str(), kernel.bbr) {
        ("bbr" | "bbr3-linux", Some(1)) => {
            let what = format!("`{stack}` is version 3, the kernel has version 1");
            let hint = instead(f, &stack, "bbr-linux");
            let how = "build one that has it, from a tree of its authors: `fullpipe linux build \
                       --source TREE --name bbr3`";
            return Err(LinuxError::unable(f, "stack", what, hint).or_with_own_kernel(how));
        }
        ("bbr-linux", Some(3)) => {
            let what = "`bbr-linux` is version 1, this kernel has version 3";
            let hint = instead(f, &stack, "bbr3-linux");
            return Err(LinuxError::unable(f, "stack", what, hint));
        }
        ("bbr3-linux", Some(3)) => return Ok("bbr".to_owned()),
        _ => {}
    }
    if MODULES.contains(&name) {
        return Ok(name.to_owned());
    }
    let unable = |what: String, hint: Option<String>| LinuxError::Unable {
        key: format!("{}.stack", f.name),
        what,
        hint,
        own_kernel: None,
    };
    if stack == "own-linux" {
        return own.map(str::to_owned).ok_or_else(|| {
            let what = "`own-linux` is your own congestion module".to_owned();
            unable(what, None).or_with_own_kernel("name its file: `--kernel-module FILE`")
        });
    }
    let plain = stack.split(['+', '(']).next().unwrap_or_default();
    let plain = plain.strip_suffix("-linux").unwrap_or(plain);
    if MODULES.contains(&plain) {
        let what = format!("`{stack}` is no congestion module of the kernel");
        return Err(unable(what, Some(instead(f, &stack, plain))));
    }
    let near = NEAR.iter().find(|(law, _)| *law == plain);
    let near = near.map(|(_, module)| {
        let instead = instead(f, &stack, module);
        format!("`{module}` is the nearest: {instead}")
    });
    let error = unable(format!("the kernel has no module for `{plain}`"), near);
    let own = "bring one: `--kernel-module FILE` with the stack `own-linux`";
    Err(error.or_with_own_kernel(own))
}

/// Laws that the kernel has no module for, and which of its modules is of their kind.
const NEAR: &[(&str, &str)] = &[
    ("aimd", "reno"),
    ("multcp", "reno"),
    ("pretuned", "reno"),
    ("highspeed-ns2", "highspeed"),
    ("bic-paper", "bic"),
    ("fast", "vegas"),
    ("hstcp-lp", "lp"),
    ("ledbat", "lp"),
];

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

/// Fields at a value that neither the flow's preset has (any of them where it is not known) nor
/// Linux, and those whose key the scenario writes, at the preset's value too.
fn by_hand(f: &FlowSpec) -> Vec<String> {
    let packet = f.sender.packet();
    let of = |preset: Preset| {
        let sender = SenderConfig::preset(preset, packet);
        tree(&sender, &ReceiverConfig::preset_for(preset, sender.mss))
    };
    let own = f
        .preset
        .map_or(vec![Preset::Y2003, Preset::Y2026], |p| vec![p]);
    let presets: Vec<Value> = own.into_iter().chain([Preset::Linux]).map(of).collect();
    let presets: Vec<&Value> = presets.iter().collect();
    let mut found = Vec::new();
    let flow = tree(&f.sender, &f.receiver);
    compare("", &flow, &presets, &mut found);
    let mut unlike_linux = Vec::new();
    compare("", &flow, &presets[presets.len() - 1..], &mut unlike_linux);
    // What a key says counts, whatever its preset; what no key says is the preset's.
    let key = |path: &String| written_at(f, path);
    found.retain(|path| key(path).is_none_or(|key| !key.is_linux));
    let written = |path: &String| {
        let by_key = key(path).is_some_and(|key| !key.is_linux);
        by_key && !found.contains(path)
    };
    unlike_linux.retain(written);
    found.append(&mut unlike_linux);
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

#[cfg(test)]
mod tests {
    use fullpipe_scenario::{Overrides, Scenario};

    use super::*;

    /// What a preset has is the kernel's own, what a file writes is the file's, at the same value.
    const KERNEL: Kernel<'static> = Kernel {
        hz: Some(250),
        bbr: Some(1),
        module: None,
    };

    fn spec(preset: &str, line: &str) -> RunSpec {
        let text = format!(
            "name = \"a\"\nduration = \"1s\"\n[path]\nrate = \"10Mbit/s\"\nrtt = \"20ms\"\n\
             [[flow]]\nstack = \"reno\"\npreset = \"{preset}\"\n{line}"
        );
        let scenario = Scenario::parse(&text, "a.toml", &Overrides::default()).unwrap();
        scenario.cases[0].run_spec(1)
    }

    /// The specification of both runs is the same, and the kernel is told another thing.
    #[test]
    fn what_is_told_is_more_than_the_specification() {
        let (preset, written) = (spec("2003", ""), spec("2003", "tlp = false"));
        assert_eq!(preset.flows[0].sender, written.flows[0].sender);
        assert_ne!(told(&preset, KERNEL), told(&written, KERNEL));
        let same = spec("2003", "tlp = true");
        assert_eq!(told(&preset, KERNEL), told(&same, KERNEL));
    }

    /// A kernel has the ticks that it was built with, whatever the preset and the key say.
    #[test]
    fn ticks_of_another_kernel_are_refused() {
        let kernel = |hz| Kernel {
            hz: Some(hz),
            ..KERNEL
        };
        for (line, hz, is_taken) in [
            ("", 1000, true),
            ("hz = 250", 250, true),
            ("hz = 250", 1000, false),
            ("hz = 1000", 1000, true),
            ("hz = 1000", 250, false),
        ] {
            let taken = of(&spec("linux", line).flows[0], kernel(hz));
            assert_eq!(taken.is_ok(), is_taken, "{line} with {hz}");
        }
    }

    #[test]
    fn a_key_that_is_written_counts_at_the_presets_value() {
        let tlp = |preset: &str, line: &str| of(&spec(preset, line).flows[0], KERNEL).unwrap().tlp;
        assert!(tlp("2003", ""));
        assert!(!tlp("2003", "tlp = false"));
        assert!(tlp("2003", "tlp = true"));
        assert!(!tlp("linux", "tlp = false"));
    }
}
