//! From the text of the files to a [`Policy`], every fault collected on the way.

use fullpipe_cc::{Kind, StackSpec};
use fullpipe_scenario::document::{Place, Sources};
use fullpipe_scenario::faults::{whole_file, written_out};
use fullpipe_scenario::value::{At, Findings, Key, Reader, Record, Sub, Table, member_path};
use fullpipe_scenario::{Diagnostic, Diagnostics};
use fullpipe_units::{BufferSize, Bytes, WindowSize};

use crate::aggression::Aggression;
use crate::change;
use crate::compiled::{
    Action, Compiled, FLAG_SENDSTALL_IGNORE, OnDaemonLoss, Params, Rule, Selector,
};
use crate::keys::{Defaults, InitialWindow, PathChange, PathKeys, SECTIONS, Stall, Top, Via};
use crate::laws::{self, DEFAULT_IW, Facts, Lowered, MOST_WINDOW};
use crate::limits::{self, RULES};
use crate::measured::Measurements;
use crate::policy::{PathFacts, Policy, Source, Waiting};
use crate::spelling::{Ceiling, Ports, Size};

/// Reads the texts of a policy.
pub fn policy(texts: &[Source], measured: &Measurements) -> Result<Policy, Diagnostics> {
    let mut sources = Sources::default();
    let mut faults = Vec::new();
    let mut files = Vec::new();
    for text in texts {
        let file = sources.file(&text.name, &text.text);
        if text.text.len() > MAX_TEXT {
            let message = format!("the file is larger than {} kB", MAX_TEXT / 1000);
            return Err(whole_file(&sources, file, message));
        }
        let (entries, wrong) = sources.parse(file);
        faults.extend(wrong);
        files.push((file, entries));
    }
    if !faults.is_empty() {
        return Err(written_out(&sources, faults));
    }
    let mut reader = Reader::new(&sources, SECTIONS);
    let tops: Vec<Record> = files
        .iter()
        .map(|(file, entries)| reader.record(Top::KEYS, entries, sources.top(*file), ""))
        .collect();
    let mut findings = std::mem::take(&mut reader.findings);
    for fault in &mut findings.faults {
        let unknown = fault.message.strip_prefix("unknown stack component `");
        let unknown = unknown.and_then(|rest| rest.strip_suffix('`'));
        let absent = fault.message.strip_suffix("` is not in this version");
        let absent = absent.and_then(|name| name.strip_prefix('`'));
        if let Some(name) = unknown.or(absent) {
            fault.hint = Some(laws::instead_of(name));
        }
    }

    let tops: Vec<At<'_, Top>> = tops.iter().map(|top| At::new(top, "")).collect();
    let defaults = the_defaults(&tops, &sources, &mut findings);
    let mut draft = Draft {
        sources: &sources,
        defaults: &defaults,
        measured,
        named: Vec::new(),
        rules: Vec::new(),
        paths: Vec::new(),
        waiting: Vec::new(),
        networks: 0,
    };
    for top in &tops {
        let values: &Top = top;
        for (i, sub) in values.path.iter().flatten().enumerate() {
            draft.path(i, sub, &mut findings);
        }
    }
    let nothing_else = findings.faults.is_empty();
    if let (true, Some(top)) = (draft.named.is_empty(), tops.first())
        && (nothing_else || !top.is_attempted(&PATH))
    {
        top.missing(&PATH, &mut findings);
    }
    if findings.faults.is_empty() {
        draft.shadows(&mut findings);
    }
    let Draft {
        rules,
        paths,
        waiting,
        ..
    } = draft;
    let Findings { faults, warnings } = findings;
    if !faults.is_empty() {
        return Err(written_out(&sources, faults));
    }
    let warnings = warnings.into_iter();
    Ok(Policy {
        compiled: Compiled {
            rules,
            warnings: warnings
                .map(|w| sources.diagnostic(w).to_string())
                .collect(),
            on_daemon_loss: defaults.on_daemon_loss,
            never_tune: defaults
                .never_tune
                .into_iter()
                .map(|ports| ports.0)
                .collect(),
        },
        paths,
        waiting,
    })
}

/// `[[path]]`, with a sample for a file without any.
const PATH: Key = Key {
    sample: "[{ name = \"cern\", to = \"192.0.2.0/24\", stack = \"highspeed\" }]",
    ..Top::path
};

/// The keys of `[defaults]` of all files; each may be given once.
struct Merged {
    respect_app: bool,
    on_daemon_loss: OnDaemonLoss,
    allow_everything: bool,
    never_tune: Vec<Ports>,
}

fn the_defaults(tops: &[At<'_, Top>], sources: &Sources, findings: &mut Findings) -> Merged {
    let tables: Vec<&Sub<Defaults>> = tops
        .iter()
        .filter_map(|top| top.defaults.as_ref())
        .collect();
    let mut given: Vec<(&'static str, Place)> = Vec::new();
    let none = Record::empty(Defaults::KEYS, sources.top(0));
    let mut merged = Defaults::read(&none);
    for sub in tables {
        let table: At<'_, Defaults> = At::new(&sub.record, "defaults");
        for key in sub.record.given() {
            if let Some((_, first)) = given.iter().find(|(name, _)| *name == key.name) {
                let message = format!("given before, {}", place(sources, *first));
                table.refuse(findings, key, message, "leave one of them");
            }
            given.push((key.name, sub.record.place(key)));
        }
        let is = |key: &Key| table.is_given(key);
        if is(&Defaults::respect_app) {
            merged.respect_app = table.respect_app;
        }
        if is(&Defaults::on_daemon_loss) {
            merged.on_daemon_loss = table.on_daemon_loss;
        }
        if is(&Defaults::allow_everything) {
            merged.allow_everything = table.allow_everything;
        }
        if is(&Defaults::never_tune) {
            merged.never_tune.clone_from(&table.never_tune);
            limits::ranges(&table, &Defaults::never_tune, &table.never_tune, findings);
        }
    }
    Merged {
        respect_app: merged.respect_app,
        on_daemon_loss: merged.on_daemon_loss,
        allow_everything: merged.allow_everything,
        never_tune: merged.never_tune,
    }
}

struct Draft<'a> {
    sources: &'a Sources,
    defaults: &'a Merged,
    measured: &'a Measurements,
    named: Vec<(String, Place)>,
    rules: Vec<Rule>,
    paths: Vec<PathFacts>,
    waiting: Vec<Waiting>,
    networks: usize,
}

impl Draft<'_> {
    fn path(&mut self, index: usize, sub: &Sub<PathKeys>, findings: &mut Findings) {
        let number = format!("[{}]", index + 1);
        let plain: At<'_, PathKeys> = At::new(&sub.record, "path");
        let name = plain.name.clone().unwrap_or(number);
        let path: At<'_, PathKeys> = At::new(&sub.record, member_path("path", &name));
        let before = findings.faults.len();
        path.required_keys(findings);
        if let Some((_, first)) = self.named.iter().find(|(known, _)| *known == name) {
            let message = format!("the name is taken, {}", place(self.sources, *first));
            path.refuse(
                findings,
                &PathKeys::name,
                message,
                "give each path a name of its own",
            );
        }
        self.named
            .push((name.clone(), sub.record.place(&PathKeys::name)));
        if self.named.len() == RULES + 1 {
            let message = format!("the kernel side holds {RULES} paths");
            findings.refuse_table(
                sub.record.at,
                &path.path,
                &message,
                "join networks in one `to`",
            );
        }
        if self.named.len() > RULES {
            return;
        }
        limits::networks(&path, self.defaults.allow_everything, findings);
        self.networks += path.to.as_ref().map_or(0, Vec::len);
        limits::many(&path, self.networks, findings);
        limits::selectors(&path, findings);
        limits::probe(&path, findings);
        let measured = path.probe.as_ref().and_then(|host| self.measured.get(host));
        let buffer = measured.map(|m| BufferSize::Bytes(m.buffer));
        let mut facts = PathFacts {
            place: place(self.sources, sub.record.at),
            stack: path.stack.as_deref().cloned(),
            rate: path.rate.or(measured.map(|m| m.rate)),
            rtt: path.rtt.or(measured.map(|m| m.rtt)),
            buffer: path.buffer.or(buffer),
            probe: path.probe.clone().map(|host| (host, path.probe_every)),
            measured: measured.copied(),
            mtu: path.mtu,
            via: Via::Auto,
            departures: Vec::new(),
            table_error: (0.0, 0.0),
            changes: Vec::new(),
        };
        if facts.is_to_be_measured() && needs_a_measurement(&path, &facts) {
            path.warn(
                findings,
                &PathKeys::probe,
                "the path waits for its first measurement: until then no flow is of it",
            );
            self.waiting.push(Waiting {
                selector: selector(&path),
                name,
                facts,
            });
            return;
        }
        let sizes = Sizes::of(&path, &facts, findings);
        let lowered = self.action(&path, &facts, &sizes, findings);
        let Some(Lowered {
            mut action,
            departures,
            error,
        }) = lowered
        else {
            return;
        };
        (facts.departures, facts.table_error) = (departures, error);
        let mut params = Params::default();
        match &mut action {
            Action::Ours { params, .. } => {
                self.initial_window(&path, &mut facts, params, findings);
                finish(params, &path, &sizes);
            }
            Action::Kernel { pacing, .. } => {
                *pacing = sizes.pacing.unwrap_or(0);
                self.initial_window(&path, &mut facts, &mut params, findings);
                limits::kernel_only(&path, findings);
            }
        }
        facts.changes = change::changes(&path, &facts, &action, findings);
        if findings.faults.len() > before {
            return;
        }
        for departure in &facts.departures {
            path.warn(findings, &PathKeys::stack, departure);
        }
        warn_of_aggression(&path, &facts, &action, sizes.window, findings);
        warn_of_a_slow_start(&path, &facts, sizes.window, findings);
        warn_of_the_void(&path, findings);
        self.rules.push(Rule {
            name,
            selector: selector(&path),
            respect_app: path.respect_app.unwrap_or(self.defaults.respect_app),
            share: (path.share * 65536.0).round() as u32,
            divide: path.divide,
            via: facts.via,
            stack: match &facts.stack {
                Some(stack) => stack.to_string(),
                None => path.kernel.clone().unwrap_or_default(),
            },
            action,
            send_buffer: sizes.send,
            receive_buffer: sizes.receive,
        });
        self.paths.push(facts);
    }

    /// The stack, or the kernel's algorithm, of a path.
    fn action(
        &self,
        path: &At<'_, PathKeys>,
        facts: &PathFacts,
        sizes: &Sizes,
        findings: &mut Findings,
    ) -> Option<Lowered> {
        let given = (
            path.is_attempted(&PathKeys::stack),
            path.is_attempted(&PathKeys::kernel),
        );
        match given {
            (false, false) => path.missing(&PathKeys::stack, findings),
            (true, true) => path.refuse(
                findings,
                &PathKeys::kernel,
                "`stack` stands beside it",
                "leave one of them out",
            ),
            _ => {}
        }
        if let Some(name) = &path.kernel {
            limits::algorithm(path, name, findings);
            return Some(Lowered {
                action: Action::Kernel {
                    name: name.clone(),
                    pacing: 0,
                },
                departures: Vec::new(),
                error: (0.0, 0.0),
            });
        }
        let lowered = laws::lower(
            facts.stack.as_ref()?,
            &Facts {
                rtt: facts.rtt,
                clamp: sizes.window.map(f64::from),
                reach: facts.reach(),
                update_interval: path.update_interval,
            },
        );
        match lowered {
            Ok(lowered) => Some(lowered),
            Err(refused) => {
                for refusal in refused {
                    path.refuse(findings, &PathKeys::stack, refusal.message, refusal.hint);
                }
                None
            }
        }
    }

    fn initial_window(
        &self,
        path: &At<'_, PathKeys>,
        facts: &mut PathFacts,
        params: &mut Params,
        findings: &mut Findings,
    ) {
        let Some(sub) = &path.initial_window else {
            return;
        };
        let table: At<'_, InitialWindow> = path.inside(&PathKeys::initial_window, sub);
        facts.via = table.via;
        if params.initial_window > 0 {
            path.refuse(
                findings,
                &PathKeys::initial_window,
                "the stack sets the initial window, too",
                "leave it out of the stack, or leave this key out",
            );
        }
        let segments = table.segments.unwrap_or(DEFAULT_IW as u32);
        params.initial_window = segments;
        match (table.spread, facts.rtt) {
            (None, _) if table.is_given(&InitialWindow::via) => table.refuse(
                findings,
                &InitialWindow::via,
                "nothing is spread",
                "write for example spread = \"4ms\"",
            ),
            (None, _) => {}
            (Some(_), None) => table.refuse(
                findings,
                &InitialWindow::spread,
                "spreading over the first round trip needs its length",
                "give the path's `rtt`",
            ),
            (spread, rtt) => {
                params.spread_us = laws::spread_us(rtt, spread, segments).unwrap_or(u32::MAX);
            }
        }
    }

    /// Warns of paths that no flow can reach.
    fn shadows(&self, findings: &mut Findings) {
        for (i, later) in self.rules.iter().enumerate() {
            let Some(first) = self.rules[..i]
                .iter()
                .find(|rule| rule.selector.shadows(&later.selector))
            else {
                continue;
            };
            let at = self.named.iter().find(|(name, _)| *name == later.name);
            let Some((_, at)) = at else { continue };
            findings.refuse_table(
                *at,
                &format!("path.{}", later.name),
                &format!(
                    "no flow reaches it: `{}` comes first and has them all",
                    first.name
                ),
                "put the narrower path first",
            );
            findings.warnings.extend(findings.faults.pop());
        }
    }
}

fn selector(path: &At<'_, PathKeys>) -> Selector {
    let ports = path.ports.iter().flatten();
    Selector {
        to: path.to.clone().unwrap_or_default(),
        ports: ports.map(|ports| ports.0.clone()).collect(),
        side: path.side,
        cgroup: path.cgroup.as_ref().map(Into::into),
        process: path.process.clone(),
    }
}

/// Whether a key says something of the path that nobody knows yet. Those are read twice: what is
/// wrong with them otherwise is found now.
fn needs_a_measurement(path: &At<'_, PathKeys>, facts: &PathFacts) -> bool {
    let of = |size: Option<Size>| matches!(size, Some(Size(WindowSize::Bdp(_))));
    let sizes = [
        path.window,
        path.buffers,
        path.send_buffer,
        path.receive_buffer,
    ];
    let changes = path.change.iter().flatten();
    let changes: Vec<At<'_, PathChange>> = changes.map(|sub| At::new(&sub.record, "")).collect();
    let sizes = sizes.into_iter().chain(changes.iter().map(|c| c.window));
    let mut ceilings = changes.iter().map(|c| c.pacing).chain([path.pacing]);
    let stacks = changes.iter().map(|c| c.stack.as_deref());
    let mut stacks = stacks.chain([path.stack.as_deref()]).flatten();
    let (rate, rtt) = (facts.rate.is_none(), facts.rtt.is_none());
    let spreads = path
        .initial_window
        .as_ref()
        .is_some_and(|sub| sub.record.is_given(&InitialWindow::spread));
    let lowers = |stack: &StackSpec, rtt, reach| {
        let facts = Facts {
            rtt,
            clamp: None,
            reach,
            update_interval: path.update_interval,
        };
        laws::lower(stack, &facts).is_ok()
    };
    let waits = |stack: &StackSpec| {
        !lowers(stack, facts.rtt, facts.reach())
            && lowers(stack, Some(UNKNOWN_RTT), Some(UNKNOWN_PATH))
    };
    sizes.into_iter().any(of)
        || rate && ceilings.any(|c| matches!(c, Some(Ceiling::OfPath(_))))
        || rtt && spreads
        || stacks.any(waits)
}

/// What stands beside the law.
fn finish(params: &mut Params, path: &At<'_, PathKeys>, sizes: &Sizes) {
    params.clamp = sizes.window.unwrap_or(0);
    params.pacing = sizes.pacing.unwrap_or(0);
    if path.sendstall == Stall::Ignore {
        params.flags |= FLAG_SENDSTALL_IGNORE;
    }
}

/// Windows, buffers and ceiling of a path, absolute.
struct Sizes {
    /// Segments.
    window: Option<u32>,
    /// Bytes.
    send: Option<u64>,
    receive: Option<u64>,
    /// Bytes per second.
    pacing: Option<u64>,
}

impl Sizes {
    fn of(path: &At<'_, PathKeys>, facts: &PathFacts, findings: &mut Findings) -> Self {
        let mut bytes = |key: &Key, size: Option<Size>| {
            let bytes = in_bytes(path, key, size?, facts, findings)?;
            Some((bytes, key.name))
        };
        let window = bytes(&PathKeys::window, path.window);
        let both = bytes(&PathKeys::buffers, path.buffers);
        let send = bytes(&PathKeys::send_buffer, path.send_buffer);
        let receive = bytes(&PathKeys::receive_buffer, path.receive_buffer);
        for key in [&PathKeys::send_buffer, &PathKeys::receive_buffer] {
            if both.is_some() && path.is_given(key) {
                let hint = "leave one of them out";
                path.refuse(findings, key, "`buffers` stands beside it", hint);
            }
        }
        let window =
            window.and_then(|(bytes, _)| segments(path, &PathKeys::window, bytes, facts, findings));
        let buffer = |own: Option<(u64, &str)>| own.or(both).map(|(bytes, _)| bytes);
        let sizes = Self {
            window,
            send: buffer(send),
            receive: buffer(receive),
            pacing: None,
        };
        limits::buffers(path, sizes.send.max(sizes.receive), findings);
        let ceiling = path.pacing;
        let pacing = |ceiling| pacing(path, &PathKeys::pacing, ceiling, facts, findings);
        Self {
            pacing: ceiling.and_then(pacing),
            ..sizes
        }
    }
}

/// A window of so many bytes, segments.
pub(crate) fn segments<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    bytes: u64,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u32> {
    let segments = bytes / u64::from(facts.mss());
    if !(2..=u64::from(MOST_WINDOW)).contains(&segments) {
        let message = format!(
            "{segments} segments of {} B; the kernel side holds 2 to {MOST_WINDOW}",
            facts.mss()
        );
        path.refuse(findings, key, message, "write for example \"8MB\"");
    }
    u32::try_from(segments).ok()
}

pub(crate) fn in_bytes<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    size: Size,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u64> {
    match size.0 {
        WindowSize::Bytes(Bytes(bytes)) => Some(bytes),
        WindowSize::Segments(n) => Some((n * f64::from(facts.mss())) as u64),
        WindowSize::Bdp(factor) => match facts.bdp() {
            // Packets of the path are segments of payload.
            Some(packets) => {
                let segments = (factor * packets * (1.0 + 1e-12)).floor();
                Some((segments * f64::from(facts.mss())) as u64)
            }
            None => {
                let hint = "give the path's `rate` and `rtt`";
                path.refuse(findings, key, "the path's bdp is not known", hint);
                None
            }
        },
    }
}

/// Bytes per second at most.
pub(crate) fn pacing<T: Table>(
    path: &At<'_, T>,
    key: &Key,
    ceiling: Ceiling,
    facts: &PathFacts,
    findings: &mut Findings,
) -> Option<u64> {
    let bits = match (ceiling, facts.rate) {
        (Ceiling::Rate(rate), _) => rate.as_bits_per_sec() as f64,
        (Ceiling::OfPath(factor), Some(rate)) => factor * rate.as_bits_per_sec() as f64,
        (Ceiling::OfPath(_), None) => {
            let hint = "give the path's `rate`";
            path.refuse(findings, key, "the path's rate is not known", hint);
            return None;
        }
    };
    let bytes = (bits / 8.0) as u64;
    limits::pacing(path, key, bytes, findings);
    Some(bytes)
}

/// Warns of what changes nothing.
fn warn_of_the_void(path: &At<'_, PathKeys>, findings: &mut Findings) {
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
}

/// A warning where a path takes more than CUBIC would.
fn warn_of_aggression(
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
fn warn_of_a_slow_start(
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

/// Laws that give way before anybody else loses, so that what they take where nothing gives way is
/// not taken from others; and the kernel's CUBIC, which a host has without a policy.
const NEVER_GREEDY: [&str; 4] = ["hstcp-lp", "ledbat", "lp", "cubic-linux"];

/// A start-up that lasts longer is remarked on, seconds: most transfers are over by then.
const LONG_START: f64 = 30.0;

/// Window and RTT at which a law is weighed where the path has none.
const UNKNOWN_PATH: f64 = 1000.0;
const UNKNOWN_RTT: fullpipe_units::Span = fullpipe_units::Span::from_millis(100);

/// Largest window at which a law is weighed, segments: a cycle of Reno at more takes seconds.
const MOST_WEIGHED: f64 = 20_000.0;

/// `policy.toml:12`.
fn place(sources: &Sources, at: Place) -> String {
    let diagnostic: Diagnostic = sources.diagnostic(fullpipe_scenario::document::Fault {
        at,
        key: String::new(),
        shows_value: false,
        message: String::new(),
        hint: None,
    });
    format!("{}:{}", diagnostic.file, diagnostic.line)
}

const MAX_TEXT: usize = 1_000_000;
