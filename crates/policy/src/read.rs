//! From the text of the files to a [`Policy`], every fault collected on the way.

use fullpipe_cc::{InitialSending, StackSpec};
use fullpipe_scenario::document::{Place, Sources};
use fullpipe_scenario::faults::{whole_file, written_out};
use fullpipe_scenario::value::{At, Findings, Key, Reader, Record, Sub, Table, member_path};
use fullpipe_scenario::{Diagnostic, Diagnostics};
use fullpipe_units::{BufferSize, WindowSize};

use crate::change;
use crate::compiled::{
    Action, Compiled, FLAG_SENDSTALL_IGNORE, OnDaemonLoss, Params, Rule, Selector,
};
use crate::keys::{Defaults, InitialWindow, PathChange, PathKeys, SECTIONS, Stall, Top, Via};
use crate::laws::{self, DEFAULT_IW, Facts, Lowered};
use crate::limits::{self, RULES};
use crate::measured::Measurements;
use crate::policy::{PathFacts, Policy, Source, Waiting};
use crate::sizes::Sizes;
use crate::spelling::{Ceiling, Ports, Size};
use crate::warnings::{self, UNKNOWN_PATH, UNKNOWN_RTT};

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
        warnings::of_aggression(&path, &facts, &action, sizes.window, findings);
        warnings::of_a_slow_start(&path, &facts, sizes.window, findings);
        warnings::of_the_void(&path, findings);
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
            (t_max, Some(rtt)) => {
                let jiffy = InitialSending::JIFFY;
                let sending = InitialSending::Spread { t_max, jiffy };
                params.spread_us = laws::spread_us(sending, rtt, segments);
                if let Some(remark) = laws::remark(sending, rtt, segments) {
                    table.warn(findings, &InitialWindow::spread, remark);
                }
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

/// Sets window cap, pacing and the response to a full interface.
fn finish(params: &mut Params, path: &At<'_, PathKeys>, sizes: &Sizes) {
    params.clamp = sizes.window.unwrap_or(0);
    params.pacing = sizes.pacing.unwrap_or(0);
    if path.sendstall == Stall::Ignore {
        params.flags |= FLAG_SENDSTALL_IGNORE;
    }
}

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

pub(crate) const MAX_TEXT: usize = 1_000_000;
