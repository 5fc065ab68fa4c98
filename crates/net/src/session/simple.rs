//! Requests and results as JSON objects, for clients that are not fullpipe's own: a few named
//! fields, with defaults (`docs/wire.md`, "Request").

use fullpipe_cc::StackSpec;
use fullpipe_flow::{Preset, ReceiverConfig, SenderConfig};
use fullpipe_run::{CrossSpec, FlowSpec, FlowTotals, RunSpec};
use fullpipe_units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::report::Report;
use super::request::{Options, Request};
use crate::content::Content;
use crate::file::{Identity, Item};

/// The present form.
const FORM: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Simple {
    form: u32,
    #[serde(default)]
    label: String,
    #[serde(default)]
    seed: u64,
    /// Seconds.
    duration: f64,
    #[serde(default)]
    until_complete: bool,
    #[serde(default)]
    encrypted: bool,
    #[serde(default)]
    ipv6: bool,
    #[serde(default)]
    flows: Vec<Flow>,
    #[serde(default)]
    pings: Vec<Ping>,
    put: Option<Put>,
    get: Option<Get>,
    store: Option<Store>,
    fetch: Option<Fetch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    name: String,
    direction: Direction,
    #[serde(default = "cubic")]
    stack: String,
    /// Bytes of an IPv4 packet.
    #[serde(default = "ethernet")]
    packet: u16,
    bytes: Option<u64>,
    /// Segments.
    window: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Up,
    Down,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ping {
    name: String,
    #[serde(default = "small")]
    packet: u16,
    /// Seconds.
    every: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    name: String,
    size: u64,
    #[serde(default)]
    changed: u64,
    #[serde(default = "readable")]
    mode: u16,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Get {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Store {
    items: Vec<Entry>,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// Without it, a directory.
    size: Option<u64>,
    #[serde(default)]
    changed: u64,
    mode: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fetch {
    names: Vec<String>,
}

impl From<Entry> for Item {
    fn from(entry: Entry) -> Self {
        let changed = entry.changed;
        let source = entry.size.map(|size| Identity { size, changed });
        let mode = match source {
            Some(_) => readable(),
            None => 0o755,
        };
        Self {
            name: entry.name,
            source,
            mode: entry.mode.unwrap_or(mode),
        }
    }
}

fn cubic() -> String {
    "cubic".to_owned()
}

fn ethernet() -> u16 {
    1500
}

fn small() -> u16 {
    100
}

fn readable() -> u16 {
    0o644
}

/// True if a request is one of these.
pub fn is_simple(request: &[u8]) -> bool {
    request.first() == Some(&b'{')
}

/// The request that a JSON object stands for; nothing in it has been checked yet.
///
/// # Errors
/// A sentence for the client.
pub fn read(request: &[u8]) -> Result<Request, String> {
    let simple: Simple =
        serde_json::from_slice(request).map_err(|e| format!("the request cannot be read: {e}"))?;
    if simple.form != FORM {
        let form = simple.form;
        return Err(format!(
            "requests of form {form} are unknown here, {FORM} is known"
        ));
    }
    if simple.seed >= 1 << 53 {
        return Err("`seed`: 2^53 or more, which JSON numbers do not hold exactly".to_owned());
    }
    let put = simple.put.map(|put| Content::Put {
        name: put.name,
        source: Identity {
            size: put.size,
            changed: put.changed,
        },
        mode: put.mode,
        overwrite: put.overwrite,
    });
    let get = simple.get.map(|get| Content::Get { name: get.name });
    let store = simple.store.map(|store| Content::Store {
        items: store.items.into_iter().map(Item::from).collect(),
        overwrite: store.overwrite,
    });
    let names = simple.fetch.map(|fetch| fetch.names);
    let fetch = names.map(|names| Content::Fetch { names });
    let mut contents = [put, get, store, fetch].into_iter().flatten();
    let content = contents.next().unwrap_or_default();
    if contents.next().is_some() {
        return Err("two of `put`, `get`, `store` and `fetch` in one request".to_owned());
    }
    let options = Options {
        label: simple.label,
        until_complete: simple.until_complete,
        encrypted: simple.encrypted,
        ipv6: simple.ipv6,
        content,
        json: true,
        ..Options::default()
    };
    let flows: Result<Vec<_>, String> = simple.flows.iter().map(flow).collect();
    let pings: Result<Vec<_>, String> = simple.pings.iter().map(ping).collect();
    let mut spec = RunSpec {
        seed: simple.seed,
        duration: span("duration", simple.duration)?,
        flows: flows?,
        cross: pings?,
        ..RunSpec::default()
    };
    options.make_room(&mut spec);
    for (flow, asked) in spec.flows.iter_mut().zip(&simple.flows) {
        let mss = u64::from(flow.sender.mss.max(1));
        flow.sender.transfer = asked.bytes.map(|bytes| bytes.div_ceil(mss).max(1));
    }
    Ok(Request { spec, options })
}

fn flow(asked: &Flow) -> Result<FlowSpec, String> {
    let stack = StackSpec::parse(&asked.stack).map_err(|e| format!("`{}`: {e}", asked.stack))?;
    if asked.packet <= SenderConfig::preset(Preset::Y2026, 1500).header as u16 {
        return Err(format!("a packet of {} bytes holds no data", asked.packet));
    }
    let sender = SenderConfig::preset(Preset::Y2026, u32::from(asked.packet));
    let sender = sender.with(|c| {
        if let Some(window) = asked.window {
            c.window.max = f64::from(window);
        }
    });
    let receiver = ReceiverConfig::preset(Preset::Y2026);
    let mut flow = FlowSpec::new(&asked.name, stack, sender, receiver, vec![], vec![]);
    flow.reverse = asked.direction == Direction::Down;
    Ok(flow)
}

fn ping(asked: &Ping) -> Result<CrossSpec, String> {
    let every = span("every", asked.every)?;
    Ok(CrossSpec::probes(
        &asked.name,
        asked.packet,
        every,
        vec![],
        vec![],
    ))
}

/// Seconds of a request: at most a year, so that nothing overflows.
fn span(field: &str, seconds: f64) -> Result<Span, String> {
    match seconds > 0.0 && seconds < 3.2e7 {
        true => Ok(Span::from_secs_f64(seconds)),
        false => Err(format!("`{field}`: {seconds} is no time")),
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    error: Option<&'a str>,
    /// Seconds from the start to the end of the run.
    seconds: f64,
    flows: Vec<End>,
}

/// The server's end of a flow.
#[derive(Serialize)]
struct End {
    flow: u32,
    end: &'static str,
    /// Segments, as are all that follow but `acks` and `timeouts`.
    sent: u64,
    retransmits: u64,
    /// Segments, each once, at a receiver; 0 at a sender.
    delivered: u64,
    duplicates: u64,
    out_of_order: u64,
    acks: u64,
    timeouts: u64,
    /// Seconds from the start of the run, of a flow that the server sends.
    completed: Option<f64>,
}

impl End {
    fn new(flow: u32, end: &'static str, totals: &FlowTotals, completed: Option<Time>) -> Self {
        Self {
            flow,
            end,
            sent: totals.sent,
            retransmits: totals.retransmits,
            delivered: totals.delivered,
            duplicates: totals.duplicates,
            out_of_order: totals.out_of_order,
            acks: totals.acks,
            timeouts: totals.timeouts,
            completed: completed.map(|at| at.saturating_since(Time::ZERO).as_secs_f64()),
        }
    }
}

/// A result as such a client reads it.
pub fn write(report: &Report) -> Vec<u8> {
    let senders = report.outcome.senders.iter();
    let senders = senders.map(|s| End::new(s.flow, "sender", &s.totals, s.completed));
    let receivers = report.outcome.receivers.iter();
    let receivers = receivers.map(|r| End::new(r.flow, "receiver", &r.totals, None));
    let lasted = report.outcome.ended.saturating_since(Time::ZERO);
    let summary = Summary {
        error: report.error.as_deref(),
        seconds: lasted.as_secs_f64(),
        flows: senders.chain(receivers).collect(),
    };
    // Numbers, texts and lists: nothing in it can fail.
    serde_json::to_vec(&summary).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(more: &str) -> Result<Request, String> {
        read(format!(r#"{{"form": 1, "duration": 10{more}}}"#).as_bytes())
    }

    #[test]
    fn a_request_of_a_stranger_becomes_a_run() {
        let flow = r#", "flows": [{"name": "a", "direction": "down", "bytes": 1000000}]"#;
        let plain = request(flow).unwrap();
        let [f] = &plain.spec.flows[..] else {
            panic!("{:?}", plain.spec.flows);
        };
        assert!(f.reverse);
        assert_eq!((f.sender.mss, f.sender.transfer), (1448, Some(691)));
        let sealed = request(&format!("{flow}, \"encrypted\": true")).unwrap();
        let f = &sealed.spec.flows[0];
        assert_eq!((f.sender.mss, f.sender.transfer), (1424, Some(703)));
        let ping = request(r#", "pings": [{"name": "p", "every": 0.05}]"#).unwrap();
        assert!(ping.spec.cross[0].answered);
        let put = request(r#", "put": {"name": "x", "size": 5}"#).unwrap();
        let mode = matches!(put.options.content, Content::Put { mode: 0o644, .. });
        assert!(mode, "{:?}", put.options.content);
        let store = r#", "store": {"items": [{"name": "d"}, {"name": "d/x", "size": 5}]}"#;
        let Content::Store { items, overwrite } = request(store).unwrap().options.content else {
            panic!("{store}");
        };
        let modes: Vec<_> = items.iter().map(|i| (i.source.is_some(), i.mode)).collect();
        assert_eq!(
            (modes, overwrite),
            (vec![(false, 0o755), (true, 0o644)], false)
        );
    }

    #[test]
    fn what_is_no_request_is_named() {
        for (more, word) in [
            (r#", "flow": []"#, "unknown field `flow`"),
            (r#", "form": 1"#, "duplicate field"),
            (
                r#", "flows": [{"name": "a", "direction": "sideways"}]"#,
                "sideways",
            ),
            (
                r#", "flows": [{"name": "a", "direction": "up", "packet": 52}]"#,
                "no data",
            ),
            (
                r#", "flows": [{"name": "a", "direction": "up", "stack": "x"}]"#,
                "`x`",
            ),
            (r#", "pings": [{"name": "a", "every": 0}]"#, "`every`"),
            (r#", "seed": 9007199254740992"#, "2^53"),
            (
                r#", "get": {"name": "a"}, "put": {"name": "a", "size": 1}"#,
                "one request",
            ),
            (
                r#", "get": {"name": "a"}, "fetch": {"names": ["a"]}"#,
                "one request",
            ),
        ] {
            let why = request(more).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        let why = read(br#"{"form": 2, "duration": 1}"#).unwrap_err();
        assert!(why.contains("form 2"), "{why}");
        for duration in ["-1", "0", "1e300", "null"] {
            let text = format!(r#"{{"form": 1, "duration": {duration}}}"#);
            assert!(read(text.as_bytes()).is_err(), "{duration}");
        }
    }
}
