//! qlog files are what the documents of version 0.3 say, member by member.

use std::fs;
use std::path::Path;

use fullpipe_results::capture::Captures;
use fullpipe_results::run::{Options, run_on};
use fullpipe_scenario::{Overrides, Scenario};
use jsonschema::Validator;
use serde_json::{Value, json};

/// An object with these members and no others.
fn object(required: Value, optional: Value) -> Value {
    let names: Vec<&String> = required.as_object().unwrap().keys().collect();
    let names = json!(names);
    let mut all = required.as_object().unwrap().clone();
    all.extend(optional.as_object().unwrap().clone());
    json!({
        "type": "object", "properties": all, "required": names, "additionalProperties": false,
    })
}

fn uint() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "number" })
}

/// `QlogFileSeq` (main-schema-05, section 6.2) with `TraceSeq`, `Configuration`, `VantagePoint` and
/// `CommonFields`; where a type is open, only what we use is let in.
fn header() -> Value {
    let point = json!({ "enum": ["client", "server", "network", "unknown"] });
    let trace = object(
        json!({}),
        json!({
            "title": text(),
            "description": text(),
            "configuration": object(
                json!({
                    "time_offset": number(),
                    "original_uris": { "type": "array", "items": text() },
                }),
                json!({}),
            ),
            "common_fields": object(
                json!({}),
                json!({
                    "time_format": { "enum": ["absolute", "delta", "relative"] },
                    "reference_time": number(),
                    "protocol_type": { "type": "array", "items": text(), "minItems": 1 },
                    "group_id": text(),
                }),
            ),
            "vantage_point": object(
                json!({ "type": point }),
                json!({ "name": text(), "flow": point }),
            ),
        }),
    );
    object(
        json!({
            "qlog_format": { "const": "JSON-SEQ" },
            "qlog_version": { "const": "0.3" },
            "trace": trace,
        }),
        json!({ "title": text(), "description": text() }),
    )
}

/// An event of this name: `Event` (main-schema-05, section 3.4), of whose own fields there is one.
fn event(name: &str, data: Value) -> Value {
    object(
        json!({ "time": number(), "name": { "const": name }, "data": data }),
        json!({ "retransmission": { "const": true } }),
    )
}

/// Every event that may be there: those of quic-events-04 as they stand there, and our own.
fn events() -> Value {
    let kind = json!({ "enum": [
        "initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation", "stateless_reset",
        "unknown",
    ] });
    let header = object(
        json!({ "packet_type": kind }),
        json!({ "packet_number": uint() }),
    );
    let raw = object(
        json!({}),
        json!({ "length": uint(), "payload_length": uint() }),
    );
    let range = json!({ "type": "array", "items": uint(), "minItems": 1, "maxItems": 2 });
    let ranges = json!({ "type": "array", "items": range, "minItems": 1 });
    let frame = json!({ "oneOf": [
        object(
            json!({
                "frame_type": { "const": "stream" },
                "stream_id": uint(), "offset": uint(), "length": uint(),
            }),
            json!({}),
        ),
        object(json!({ "frame_type": { "const": "ack" } }), json!({ "acked_ranges": ranges })),
        object(json!({ "frame_type": { "const": "ping" } }), json!({})),
    ] });
    let frames = json!({ "type": "array", "items": frame });
    let packet = object(
        json!({ "header": header }),
        json!({ "frames": frames, "raw": raw }),
    );
    let by = json!({ "enum": ["reordering_threshold", "time_threshold", "pto_expired"] });
    let lost = object(json!({ "header": header }), json!({ "trigger": by }));
    let dropped = object(json!({ "header": header }), json!({}));
    let port = json!({ "type": "integer", "minimum": 0, "maximum": 65_535 });
    let started = object(
        json!({ "src_ip": text(), "dst_ip": text() }),
        json!({ "ip_version": { "enum": ["v4", "v6"] }, "src_port": port, "dst_port": port }),
    );
    let metrics = object(
        json!({}),
        json!({
            "min_rtt": number(), "smoothed_rtt": number(), "latest_rtt": number(),
            "congestion_window": uint(), "bytes_in_flight": uint(), "ssthresh": uint(),
            "pacing_rate": uint(),
        }),
    );
    // The states that the schema names for New Reno.
    let word = json!({ "enum": [
        "slow_start", "congestion_avoidance", "application_limited", "recovery",
    ] });
    let state = object(json!({ "new": word }), json!({ "old": word }));
    let ours = object(
        json!({ "retransmits": uint(), "loss_events": uint() }),
        json!({ "proof": { "enum": ["eifel", "dsack", "f-rto"] } }),
    );
    let mut all = vec![
        event("connectivity:connection_started", started),
        event("transport:packet_sent", packet.clone()),
        event("transport:packet_received", packet),
        event("recovery:packet_lost", lost.clone()),
        event("recovery:metrics_updated", metrics),
        event("recovery:congestion_state_updated", state),
        event("fullpipe:packet_dropped", dropped),
    ];
    for name in [
        "loss_event",
        "timeout",
        "undo",
        "start_up_exit",
        "lost_retransmission",
        "probe",
    ] {
        all.push(event(&format!("fullpipe:{name}"), ours.clone()));
    }
    json!({ "oneOf": all })
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).unwrap()
}

/// The records of a JSON text sequence (RFC 7464).
fn records(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""));
    let records = records.map(|r| serde_json::from_str(r.strip_suffix('\n').unwrap()).unwrap());
    records.collect()
}

/// The capture of flow `main` of a scenario.
fn captured(text: &str) -> Vec<Value> {
    let scenario = Scenario::parse(text, "captured.toml", &Overrides::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        out: Some(dir.path()),
        captures: Captures {
            pcap: false,
            qlog: true,
        },
        ..Options::default()
    };
    run_on(&scenario, &options, &fullpipe_sim::run).unwrap();
    records(&dir.path().join("captures/case-0000-seed1-flow0-main.sqlog"))
}

/// The last segment is lost: a tail loss probe is on the record where it leaves, not where it is
/// answered, and declares nothing lost.
#[test]
fn a_tail_loss_probe_is_recorded_when_it_leaves() {
    let records = captured(
        r#"
        name = "tail"
        duration = "5s"
        [path]
        rate = "5Mbit/s"
        rtt = "40ms"
        buffer = "200 packets"
        [[flow]]
        name = "main"
        stack = "cubic"
        preset = "linux"
        recovery = "sack"
        size = "100 segments"
        drop = { segment = 99 }
        [measure]
        trace = "full"
    "#,
    );
    let named = |name: &str| records.iter().position(|r| r["name"] == name);
    let again = records.iter().position(|r| r["retransmission"] == true);
    let (probe, again) = (named("fullpipe:probe").unwrap(), again.unwrap());
    assert!(probe < again);
    assert_eq!(records[probe]["time"], records[again]["time"]);
    assert_eq!(named("recovery:packet_lost"), None);
    assert_eq!(named("fullpipe:timeout"), None);
}

#[test]
fn a_capture_is_of_version_0_3() {
    let records = captured(
        r#"
        name = "lossy"
        duration = "3s"
        [path]
        rate = "5Mbit/s"
        rtt = "40ms"
        buffer = "10 packets"
        loss = "1%"
        [[flow]]
        name = "main"
        stack = "cubic"
        [measure]
        trace = "full"
    "#,
    );
    let (head, rest) = records.split_first().unwrap();
    let header = validator(&header());
    let errors: Vec<String> = header.iter_errors(head).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let events = validator(&events());
    for record in rest {
        assert!(events.is_valid(record), "{record:#}");
    }
    let named = |name: &str| rest.iter().filter(|r| r["name"] == name).count();
    for name in [
        "connectivity:connection_started",
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:packet_lost",
        "recovery:metrics_updated",
        "recovery:congestion_state_updated",
        "fullpipe:packet_dropped",
        "fullpipe:loss_event",
    ] {
        assert!(
            named(name) > 0,
            "{name}: packets and states are in one file"
        );
    }
    let again = rest.iter().filter(|r| r["retransmission"] == true).count();
    assert!(again > 0 && again < named("transport:packet_sent"));
}
