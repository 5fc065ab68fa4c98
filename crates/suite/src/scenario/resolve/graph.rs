//! Links laid out: the dumbbell of `[path]`, the links of `[[link]]`, the interfaces of hosts, and the ways over them.

use std::collections::BTreeMap;

use fullpipe_sim::{Buffer, LinkSpec};
use fullpipe_units::{Rate, Span};

use super::super::document::{Place, shorten};
use super::super::files::Files;
use super::super::matrix::{Config, Names};
use super::super::value::{Record, Value, member_path, nearest, quoted};
use super::path::{Element, marks, mean_rate};
use super::{DEFAULT_MTU, Findings, required};

/// Links while they are being laid out.
#[derive(Debug)]
pub(super) struct Layout {
    pub links: Vec<LinkSpec>,
    /// Bytes of a full packet on the path.
    pub mtu: u32,
    pub dumbbell: Option<Dumbbell>,
    /// Packets that fit the buffers of all links.
    pub room: f64,
    pub at: Place,
    routes: BTreeMap<String, Leg>,
    hosts: BTreeMap<String, Host>,
}

/// What `[path]` is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dumbbell {
    pub rate: Rate,
    pub rtt: Span,
    /// The link named `return`, if it is more than a delay.
    back: Option<usize>,
    back_rate: Rate,
    /// Propagation over `bottleneck`, and over `return`.
    delays: (Span, Span),
}

/// The links of a flow as far as they are shared.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    pub forward: Vec<usize>,
    back: Vec<usize>,
    /// Propagation over these links.
    covered: Span,
    /// Round-trip propagation if the flow has none of its own.
    pub rtt: Span,
    pub capacity: Rate,
    /// The link that has it.
    pub bottleneck: usize,
    /// Runs over links of `[[route]]`.
    pub is_route: bool,
}

/// A host with an interface.
#[derive(Debug)]
struct Host {
    length: Option<u64>,
    rate: Option<Rate>,
    reverse: bool,
    link: Option<usize>,
}

/// Someone who sends over the links.
struct Sender<'a> {
    record: &'a Record,
    name: &'a str,
    section: &'static str,
}

impl Layout {
    /// The links that are there whoever crosses them.
    pub fn new(
        config: &Config,
        names: &Names,
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) -> Option<Layout> {
        let before = findings.faults.len();
        let path = &config.path;
        let mtu = path.whole("mtu").and_then(|mtu| u32::try_from(mtu).ok());
        let mut layout = Layout {
            links: Vec::new(),
            mtu: mtu.unwrap_or(DEFAULT_MTU),
            dumbbell: None,
            room: 0.0,
            at: path.at,
            routes: BTreeMap::new(),
            hosts: BTreeMap::new(),
        };
        let senders = senders(config, names);
        let routed = |name: &str| {
            let of = |route: &Record| route.text("flow").is_some_and(|flow| flow == name);
            config.routes.iter().any(of)
        };
        // Links of their own for everyone: [path] is only about packets then.
        let all_routed = !config.links.is_empty() && senders.iter().all(|s| routed(s.name));
        let wanted = ["rate", "rtt", "trace"]
            .iter()
            .any(|key| path.is_attempted(key));
        if !all_routed || wanted {
            layout.dumbbell(config, &senders, files, duration, findings);
        } else {
            let useless = path.keys.iter().map(|key| key.name);
            for key in useless.filter(|key| *key != "mtu" && path.is_given(key)) {
                findings.warn(
                    path,
                    key,
                    "path",
                    "every flow has a route: nothing crosses [path]",
                );
            }
        }
        layout.graph(config, names, files, duration, findings);
        layout.hosts(&senders, findings);
        (findings.faults.len() == before).then_some(layout)
    }

    fn dumbbell(
        &mut self,
        config: &Config,
        senders: &[Sender<'_>],
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let record = &config.path;
        let element = Element {
            record,
            path: "path",
            prefix: "",
            packet: self.mtu,
        };
        let trace = element.trace(files, findings);
        let has_rate = record.text("trace").is_some()
            || required(findings, record, "rate", "path", r#"rate = "100Mbit/s""#);
        let has_rtt = required(findings, record, "rtt", "path", r#"rtt = "80ms""#);
        let loss = element.loss(findings);
        let rate = record.rate("rate").or(trace.as_deref().map(mean_rate));
        let (Some(rate), Some(rtt), true) = (rate, record.span("rtt"), has_rate && has_rtt) else {
            return;
        };
        let Some((buffer, room)) = element.buffer(rate, rtt, findings) else {
            return;
        };
        // Half of the shortest RTT each way, unless the RTT is to become shorter than that.
        let own = senders.iter().filter(|s| s.has("rtt"));
        let shortest = own.filter_map(|s| s.record.span("rtt")).chain(
            senders
                .iter()
                .any(|s| !s.has("rtt") || !s.record.is_given("rtt"))
                .then_some(rtt),
        );
        let shortest = shortest.min().unwrap_or(rtt);
        let lowest = record
            .many("schedule")
            .iter()
            .filter_map(|entry| match entry {
                Value::Record(entry) => entry.span("rtt"),
                _ => None,
            });
        let lowest = lowest.min().unwrap_or(rtt).min(rtt);
        let forward = (shortest / 2).max(rtt - lowest);
        if forward > shortest {
            let message = "a flow's own `rtt` is too short for these changes";
            findings.refuse(
                record,
                "schedule",
                "path",
                message,
                "raise the lowest `rtt`",
            );
            return;
        }
        let mut link = LinkSpec {
            loss,
            discipline: element.queue(rate, rtt, findings),
            trace,
            ..LinkSpec::new("bottleneck", Some(rate), forward, buffer)
        };
        element.disturb(&mut link, findings);
        let later = |entry: &Record| Some((forward + entry.span("rtt")?).saturating_sub(rtt));
        link.schedule = element.schedule(Some(rate), duration, later, findings);
        self.links.push(link);
        self.room += room;

        let keys = [
            "return_rate",
            "return_buffer",
            "return_queue",
            "return_loss",
        ];
        let given = keys.iter().any(|key| record.is_given(key));
        let reverse = senders.iter().any(Sender::is_reverse);
        let back_rate = record
            .rate("return_rate")
            .or(record.rate("rate"))
            .unwrap_or(rate);
        let mut back = None;
        if given || reverse {
            let element = Element {
                prefix: "return_",
                ..element
            };
            let loss = element.loss(findings);
            let Some((buffer, room)) = element.buffer(back_rate, rtt, findings) else {
                return;
            };
            let acks = record.flag("loss_of_acks").unwrap_or(false);
            if record.is_given("return_loss") && !acks && !reverse {
                let message = "only ACKs cross the way back, and `loss_of_acks` is not set";
                findings.warn(record, "return_loss", "path", message);
            }
            self.links.push(LinkSpec {
                loss,
                loss_of_acks: acks,
                discipline: element.queue(back_rate, rtt, findings),
                ..LinkSpec::new("return", Some(back_rate), shortest - forward, buffer)
            });
            self.room += room;
            back = Some(self.links.len() - 1);
        }
        self.dumbbell = Some(Dumbbell {
            rate,
            rtt,
            back,
            back_rate,
            delays: (forward, shortest - forward),
        });
    }

    /// `[[link]]` and `[[route]]`.
    fn graph(
        &mut self,
        config: &Config,
        names: &Names,
        files: &Files,
        duration: Option<Span>,
        findings: &mut Findings,
    ) {
        let first = self.links.len();
        for (record, name) in config.links.iter().zip(&names.links) {
            let path = member_path("link", name);
            let element = self.element(record, &path);
            if self.links.iter().any(|link| link.name == *name) {
                let message = "[path] has a link of this name";
                findings.refuse(record, "name", &path, message, "choose another name");
            }
            let trace = element.trace(files, findings);
            let rate = record.rate("rate").or(trace.as_deref().map(mean_rate));
            for key in ["buffer", "queue"]
                .iter()
                .filter(|key| record.is_given(key))
            {
                if rate.is_none() {
                    let message = "the link has no rate: nothing waits";
                    findings.refuse(record, key, &path, message, "set its `rate`");
                }
            }
            let delay = record.span("delay").unwrap_or(Span::ZERO);
            let mut link = LinkSpec {
                loss: element.loss(findings),
                trace,
                ..LinkSpec::new(name, rate, delay, Buffer::Unlimited)
            };
            element.disturb(&mut link, findings);
            let later = |entry: &Record| entry.span("delay");
            link.schedule = element.schedule(rate, duration, later, findings);
            self.links.push(link);
        }
        for (i, route) in config.routes.iter().enumerate() {
            self.route(route, &format!("route[{}]", i + 1), config, names, findings);
        }
        // A BDP is that of the longest round trip over the link.
        for (i, (record, name)) in config.links.iter().zip(&names.links).enumerate() {
            let i = first + i;
            let own = |name: &String, leg: &Leg| own_rtt(config, names, name).unwrap_or(leg.rtt);
            let crossing = self.routes.iter().filter(|(_, leg)| leg.crosses(i));
            let longest = crossing
                .map(|(name, leg)| own(name, leg).max(leg.rtt))
                .max();
            let path = member_path("link", name);
            let Some(longest) = longest else {
                if i < self.links.len() && !config.routes.is_empty() {
                    findings.warn(record, "name", &path, "no route crosses this link");
                }
                continue;
            };
            let Some(rate) = self.links[i].rate else {
                continue;
            };
            let element = self.element(record, &path);
            if let Some((buffer, room)) = element.buffer(rate, longest, findings) {
                self.links[i].buffer = buffer;
                self.room += room;
            }
            self.links[i].discipline = element.queue(rate, longest, findings);
        }
        if let (Some(record), true) = (config.links.first(), config.routes.is_empty()) {
            let message = "no [[route]] says who crosses the links";
            let hint = "write [[route]] with `flow` and `forward`";
            findings.refuse_table(record.at, "link", message, hint);
        }
    }

    fn element<'a>(&self, record: &'a Record, path: &'a str) -> Element<'a> {
        Element {
            record,
            path,
            prefix: "",
            packet: self.mtu,
        }
    }

    fn route(
        &mut self,
        route: &Record,
        path: &str,
        config: &Config,
        names: &Names,
        findings: &mut Findings,
    ) {
        let flow = required(findings, route, "flow", path, r#"flow = "main""#);
        let forward = required(findings, route, "forward", path, r#"forward = ["first"]"#);
        let (Some(name), true, true) = (route.text("flow"), flow, forward) else {
            return;
        };
        let all = || names.flows.iter().chain(&names.traffic).map(String::as_str);
        if !all().any(|known| known == name) {
            let hint = match nearest(&name, all()) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("known: {}", quoted(all())),
            };
            let message = format!("there is no flow or traffic `{}`", shorten(&name));
            findings.refuse(route, "flow", path, message, &hint);
            return;
        }
        if self.routes.contains_key(&name) {
            let message = "another route has this flow";
            findings.refuse(route, "flow", path, message, "keep one of them");
            return;
        }
        if let Some((record, section)) = direction_of(config, names, &name) {
            let message = "the route says where it goes";
            let hint = "leave `direction` out, and turn the lists of [[route]] round";
            findings.refuse(
                record,
                "direction",
                &member_path(section, &name),
                message,
                hint,
            );
        }
        let (Some(forward), Some(back)) = (
            self.listed(route, "forward", path, findings),
            self.listed(route, "back", path, findings),
        ) else {
            return;
        };
        let delay = |links: &[usize]| {
            links
                .iter()
                .fold(Span::ZERO, |sum, i| sum + self.links[*i].delay)
        };
        let (there, home) = (delay(&forward), delay(&back));
        let rated = forward
            .iter()
            .filter_map(|i| Some((self.links[*i].rate?, *i)));
        let Some((capacity, bottleneck)) = rated.min() else {
            let message = "no link of the route has a rate";
            findings.refuse(route, "forward", path, message, "give one of them a `rate`");
            return;
        };
        let rtt = if back.is_empty() {
            there + there
        } else {
            there + home
        };
        if rtt == Span::ZERO {
            let message = "the round trip takes no time";
            findings.refuse(
                route,
                "forward",
                path,
                message,
                "give one of the links a `delay`",
            );
            return;
        }
        let leg = Leg {
            forward,
            covered: there + home,
            back,
            rtt,
            capacity,
            bottleneck,
            is_route: true,
        };
        self.routes.insert(name, leg);
    }

    /// Indices of the links of a list.
    fn listed(
        &self,
        route: &Record,
        key: &str,
        path: &str,
        findings: &mut Findings,
    ) -> Option<Vec<usize>> {
        let mut links = Vec::new();
        for value in route.many(key) {
            let Value::Text(name) = value else {
                return None;
            };
            let Some(i) = self.links.iter().position(|link| link.name == *name) else {
                let known = || self.links.iter().map(|link| link.name.as_str());
                let hint = match nearest(name, known()) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => format!("known: {}", quoted(known())),
                };
                let message = format!("there is no link `{}`", shorten(name));
                findings.refuse(route, key, path, message, &hint);
                return None;
            };
            if links.contains(&i) {
                let message = format!("link `{}` stands twice", shorten(name));
                findings.refuse(route, key, path, message, "a packet crosses a link once");
                return None;
            }
            links.push(i);
        }
        Some(links)
    }

    /// Who shares an interface.
    fn hosts(&mut self, senders: &[Sender<'_>], findings: &mut Findings) {
        let transports = || senders.iter().filter(|s| s.has("txqueuelen"));
        for sender in transports() {
            let r = sender.record;
            let path = member_path(sender.section, sender.name);
            let host = r.text("host").unwrap_or_else(|| sender.name.to_owned());
            let (length, rate) = (r.whole("txqueuelen"), r.rate("nic_rate"));
            let reverse = sender.is_reverse();
            let Some(known) = self.hosts.get_mut(&host) else {
                let link = None;
                self.hosts.insert(
                    host,
                    Host {
                        length,
                        rate,
                        reverse,
                        link,
                    },
                );
                continue;
            };
            if known.reverse != reverse {
                let message = format!("host `{host}` sends the other way in another flow");
                let key = if r.is_given("host") {
                    "host"
                } else {
                    "direction"
                };
                findings.refuse(r, key, &path, message, "a host sits on one side: name two");
            }
            if length.is_some() && known.length.is_some() && length != known.length {
                let message = format!("another flow of host `{host}` sets this otherwise");
                findings.refuse(r, "txqueuelen", &path, message, "set it once");
            }
            if rate.is_some() && known.rate.is_some() && rate != known.rate {
                let message = format!("another flow of host `{host}` sets this otherwise");
                findings.refuse(r, "nic_rate", &path, message, "set it once");
            }
            known.length = known.length.or(length);
            known.rate = known.rate.or(rate);
        }
        for sender in transports() {
            let r = sender.record;
            let path = member_path(sender.section, sender.name);
            let host = r.text("host").unwrap_or_else(|| sender.name.to_owned());
            if self
                .hosts
                .get(&host)
                .is_some_and(|host| host.length.is_some())
            {
                continue;
            }
            if r.is_given("nic_rate") {
                let message = "there is no interface in front of the bottleneck";
                findings.refuse(
                    r,
                    "nic_rate",
                    &path,
                    message,
                    "set `txqueuelen`, for example 100",
                );
            }
            if r.is_given("host") {
                let message =
                    "no flow of this host has `txqueuelen`: there is no interface to share";
                findings.warn(r, "host", &path, message);
            }
            if r.is_given("sendstall") {
                let message = "there is no interface queue that could refuse a segment";
                findings.warn(r, "sendstall", &path, message);
            }
        }
    }

    /// Where someone sends.
    pub fn leg(&self, name: &str, reverse: bool) -> Option<Leg> {
        if let Some(leg) = self.routes.get(name) {
            return Some(leg.clone());
        }
        let d = self.dumbbell?;
        let (there, home) = if reverse {
            (d.back?, Some(BOTTLENECK))
        } else {
            (BOTTLENECK, d.back)
        };
        let covered = if home.is_some() {
            d.delays.0 + d.delays.1
        } else {
            d.delays.0
        };
        Some(Leg {
            forward: vec![there],
            back: home.into_iter().collect(),
            covered,
            rtt: d.rtt,
            capacity: if reverse { d.back_rate } else { d.rate },
            bottleneck: there,
            is_route: false,
        })
    }

    /// The interface of a flow's host.
    pub fn interface(&mut self, record: &Record, name: &str, leg: &Leg) -> Option<usize> {
        let host = record.text("host").unwrap_or_else(|| name.to_owned());
        let entry = self.hosts.get_mut(&host)?;
        let length = entry.length?;
        if entry.link.is_none() {
            entry.link = Some(self.links.len());
            self.links.push(LinkSpec::new(
                &format!("nic-{host}"),
                Some(entry.rate.unwrap_or(leg.capacity)),
                Span::ZERO,
                // The packet on the wire is out of the queue.
                Buffer::Packets(length + 1),
            ));
        }
        entry.link
    }

    /// The links back of a flow with this RTT; flows with the same rest share the link that delays. A spread needs one
    /// for each stream, of this name.
    pub fn back(&mut self, leg: &Leg, rtt: Span, spread: Option<(Span, &str)>) -> Vec<usize> {
        let mut back = leg.back.clone();
        let rest = rtt.saturating_sub(leg.covered);
        if let Some((delay_spread, stream)) = spread {
            self.links.push(LinkSpec {
                delay_spread,
                ..LinkSpec::pure_delay(&format!("spread-{stream}"), rest)
            });
            back.push(self.links.len() - 1);
        } else if back.is_empty() || rest != Span::ZERO {
            let kind = if back.is_empty() { "return" } else { "extra" };
            let name = format!("{kind}-{rest}");
            let known = self.links.iter().position(|link| link.name == name);
            back.push(known.unwrap_or_else(|| {
                self.links.push(LinkSpec::pure_delay(&name, rest));
                self.links.len() - 1
            }));
        }
        back
    }

    /// Some queue on the way marks.
    pub fn marks(&self, leg: &Leg) -> bool {
        leg.forward
            .iter()
            .any(|i| marks(&self.links[*i].discipline))
    }
}

impl Leg {
    fn crosses(&self, link: usize) -> bool {
        self.forward.contains(&link) || self.back.contains(&link)
    }
}

impl Sender<'_> {
    fn is_reverse(&self) -> bool {
        self.record.word("direction") == Some("reverse")
    }

    /// The key is one of a transport's, or of a kind of traffic that has it.
    fn has(&self, key: &str) -> bool {
        match self.record_kind() {
            None | Some("short-flows") => true,
            Some("ping") => key == "rtt",
            Some(_) => false,
        }
    }

    fn record_kind(&self) -> Option<&'static str> {
        (self.section == "traffic").then(|| self.record.word("kind").unwrap_or_default())
    }
}

/// True unless it is left out.
pub(super) fn is_enabled(record: &Record) -> bool {
    record.flag("enabled").unwrap_or(true)
}

fn senders<'a>(config: &'a Config, names: &'a Names) -> Vec<Sender<'a>> {
    let of = |section: &'static str, records: &'a [Record], names: &'a [String]| {
        let pairs = records.iter().zip(names);
        pairs
            .filter(|(record, _)| is_enabled(record))
            .map(move |(record, name)| Sender {
                record,
                name,
                section,
            })
    };
    of("flow", &config.flows, &names.flows)
        .chain(of("traffic", &config.traffic, &names.traffic))
        .collect()
}

fn named<'a>(config: &'a Config, names: &Names, name: &str) -> Option<(&'a Record, &'static str)> {
    let flow = names.flows.iter().position(|known| known == name);
    let traffic = names.traffic.iter().position(|known| known == name);
    match (flow, traffic) {
        (Some(i), _) => Some((config.flows.get(i)?, "flow")),
        (None, Some(i)) => Some((config.traffic.get(i)?, "traffic")),
        (None, None) => None,
    }
}

fn own_rtt(config: &Config, names: &Names, name: &str) -> Option<Span> {
    named(config, names, name)?.0.span("rtt")
}

fn direction_of<'a>(
    config: &'a Config,
    names: &Names,
    name: &str,
) -> Option<(&'a Record, &'static str)> {
    named(config, names, name).filter(|(record, _)| record.word("direction") == Some("reverse"))
}

const BOTTLENECK: usize = 0;
