use super::*;
use crate::capture::testing::{ack, ack_row, dropped, flow, received, segment, sent};
use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_run::Series;
use fullpipe_units::Time;

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn logged(rows: &[CaptureRow], series: &Series) -> Vec<Value> {
    let flow = flow(1500, true);
    let subject = Subject {
        title: "test",
        index: 0,
        name: &flow.name,
        about: "a flow of a test",
        mss: flow.sender.mss,
        stamps: true,
        detector: Some(flow.sender.recovery.detector),
        states: &series.rows,
    };
    let mut bytes = Vec::new();
    write(&mut bytes, &subject, rows).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""), "begins with a separator");
    records
        .map(|r| serde_json::from_str(r.strip_suffix('\n').expect("a line feed")).unwrap())
        .collect()
}

#[test]
fn the_header_is_that_of_the_version_qvis_reads() {
    let log = logged(&[], &Series::default());
    assert_eq!(log.len(), 1);
    assert_eq!(log[0]["qlog_version"], "0.3");
    assert_eq!(log[0]["qlog_format"], "JSON-SEQ");
    assert_eq!(log[0]["trace"]["vantage_point"]["type"], "client");
    assert_eq!(log[0]["trace"]["common_fields"]["time_format"], "relative");
}

/// A round trip of 1.5 s, longer than the first timeout.
#[test]
fn every_syn_has_an_answer_of_its_own() {
    let syn = |at: u64| Segment {
        syn: true,
        ..segment(0, ms(at))
    };
    let answer = |at: u64| Ack {
        syn: true,
        ..ack(0, ms(at), 0)
    };
    let rows = [
        sent(0, ms(0), syn(0)),
        sent(0, ms(1000), syn(1000)),
        ack_row(0, ms(1500), answer(0)),
        ack_row(0, ms(2500), answer(1000)),
    ];
    let log = logged(&rows, &Series::default());
    let acked = |i: usize| &log[i]["data"]["frames"][0]["acked_ranges"];
    assert_eq!([acked(4), acked(5)], [&json!([[0, 0]]), &json!([[1, 1]])]);
}

#[test]
fn copies_have_numbers_of_their_own_and_the_one_that_arrived_is_acknowledged() {
    let again = Segment {
        retransmission: true,
        ..segment(0, ms(50))
    };
    let mut sacks = SackBlocks::default();
    sacks.push(Range { start: 1, end: 3 });
    let selective = Ack {
        sacks,
        ..ack(0, ms(0), 20)
    };
    let rows = [
        sent(0, ms(0), segment(0, ms(0))),
        dropped(0, ms(1), segment(0, ms(0))),
        sent(0, ms(1), segment(1, ms(1))),
        sent(0, ms(2), segment(2, ms(2))),
        received(0, ms(21), segment(1, ms(1))),
        received(0, ms(22), segment(2, ms(2))),
        ack_row(0, ms(42), selective),
        sent(0, ms(50), again),
        ack_row(0, ms(60), selective),
        received(0, ms(70), again),
        ack_row(0, ms(90), ack(3, ms(50), 70)),
    ];
    let log = logged(&rows, &Series::default());
    let brief: Vec<String> = log[1..]
        .iter()
        .map(|e| {
            let n = &e["data"]["header"]["packet_number"];
            let acked = &e["data"]["frames"][0]["acked_ranges"];
            format!("{} {} {n} {acked}", e["time"], e["name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        brief,
        [
            "0.0 connectivity:connection_started null null",
            "0.0 transport:packet_sent 0 null",
            "1.0 fullpipe:packet_dropped 0 null",
            "1.0 transport:packet_sent 1 null",
            "2.0 transport:packet_sent 2 null",
            "42.0 transport:packet_received 0 [[1,2]]",
            "50.0 recovery:packet_lost 0 null",
            "50.0 transport:packet_sent 3 null",
            "60.0 transport:packet_received 1 [[2,2]]",
            "90.0 transport:packet_received 2 [[3,3]]",
        ]
    );
    let stream = &log[5]["data"]["frames"][0];
    assert_eq!(stream["offset"], 2 * 1448);
    assert_eq!(stream["length"], 1448);
    assert_eq!(log[5]["data"]["raw"]["length"], 1500);
    assert_eq!(log[6]["data"]["raw"]["length"], 64, "one block");
}

/// Segment 0 is sent again at 300 ms, where the sender's state is `phase` by then.
fn sent_again(phase: Phase, events: Events) -> Vec<(String, Value)> {
    let again = Segment {
        retransmission: true,
        ..segment(0, ms(300))
    };
    let rows = [sent(0, ms(0), segment(0, ms(0))), sent(0, ms(300), again)];
    let row = |at, phase, events| TraceRow {
        time: ms(at),
        phase,
        events,
        ..TraceRow::default()
    };
    let series = Series {
        rows: vec![row(0, Phase::Open, Events::NONE), row(300, phase, events)],
        ..Series::default()
    };
    let of_then = |e: &Value| e["time"] == 300.0;
    let log = logged(&rows, &series).into_iter().filter(of_then);
    log.map(|e| {
        (
            e["name"].as_str().unwrap().to_owned(),
            e["data"]["trigger"].clone(),
        )
    })
    .collect()
}

#[test]
fn a_cause_comes_before_its_effects_and_says_which_it_is() {
    let plain = |name: &str| (name.to_owned(), Value::Null);
    assert_eq!(
        sent_again(Phase::Loss, Events::TIMEOUT),
        [
            plain("fullpipe:timeout"),
            ("recovery:packet_lost".to_owned(), json!("pto_expired")),
            plain("transport:packet_sent"),
        ]
    );
    let found = sent_again(Phase::Recovery, Events::LOSS);
    assert_eq!(found[1], plain("recovery:congestion_state_updated"));
    assert_eq!(
        found[2],
        ("recovery:packet_lost".to_owned(), json!("time_threshold"))
    );
}

/// A verdict is on the record when the sender finds it, with what is never sent again; the
/// retransmission adds nothing.
#[test]
fn a_packet_is_lost_when_the_sender_says_so() {
    let again = Segment {
        retransmission: true,
        ..segment(0, ms(95))
    };
    let lost = |seq| CaptureRow {
        at: ms(90),
        flow: 0,
        event: CaptureEvent::SegmentLost(seq),
    };
    let rows = [
        sent(0, ms(0), segment(0, ms(0))),
        sent(0, ms(0), segment(1, ms(0))),
        lost(0),
        lost(1),
        ack_row(0, ms(90), ack(0, ms(0), 80)),
        sent(0, ms(90), segment(2, ms(90))),
        sent(0, ms(95), again),
    ];
    let recovering = TraceRow {
        time: ms(90),
        phase: Phase::Recovery,
        ..TraceRow::default()
    };
    let series = Series {
        rows: vec![TraceRow::default(), recovering],
        ..Series::default()
    };
    let log = logged(&rows, &series);
    let brief: Vec<String> = log
        .iter()
        .filter(|e| e["time"].as_f64() >= Some(90.0))
        .map(|e| format!("{} {}", e["time"], e["name"].as_str().unwrap()))
        .collect();
    assert_eq!(
        brief,
        [
            "90.0 transport:packet_received",
            "90.0 recovery:congestion_state_updated",
            "90.0 recovery:packet_lost",
            "90.0 recovery:packet_lost",
            "90.0 transport:packet_sent",
            "95.0 transport:packet_sent",
        ]
    );
}

/// A trace says `disorder` and `loss` without the start-up.
#[test]
fn states_of_a_trace_are_those_of_a_capture() {
    let row = |phase, start_up, cwnd| TraceRow {
        phase,
        start_up,
        cwnd,
        ssthresh: 8.0,
        ..TraceRow::default()
    };
    for start_up in [true, false] {
        assert_eq!(state(&row(Phase::Disorder, start_up, 4.0)), "slow_start");
        assert_eq!(state(&row(Phase::Loss, start_up, 1.0)), "slow_start");
        let avoids = state(&row(Phase::Disorder, start_up, 9.0));
        assert_eq!(avoids, "congestion_avoidance");
        assert_eq!(state(&row(Phase::Recovery, start_up, 4.0)), "recovery");
    }
}

#[test]
fn an_undo_names_its_proof() {
    let series = Series {
        rows: vec![TraceRow {
            events: Events::UNDO.with(Events::DSACK),
            ..TraceRow::default()
        }],
        ..Series::default()
    };
    let log = logged(&[], &series);
    assert_eq!(log[1]["name"], "fullpipe:undo");
    assert_eq!(log[1]["data"]["proof"], "dsack");
}

/// RFC 9002 section 6.2.
#[test]
fn a_tail_loss_probe_declares_nothing_lost() {
    let events: Vec<_> = sent_again(Phase::Open, Events::PROBE);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["fullpipe:probe", "transport:packet_sent"]);
}

#[test]
fn metrics_are_in_the_units_of_the_schema_and_only_what_changed() {
    let later = |at| TraceRow {
        time: ms(at),
        cwnd: 10.5,
        ssthresh: 20.0,
        rtt: Span::from_millis(80),
        srtt: Span::from_millis(90),
        min_rtt: Span::from_millis(60),
        pacing_rate: 1.5e6,
        flight: 10,
        ..TraceRow::default()
    };
    let first = TraceRow {
        cwnd: 10.0,
        ..TraceRow::default()
    };
    let series = Series {
        rows: vec![first, later(10), later(20)],
        ..Series::default()
    };
    let log = logged(&[], &series);
    assert_eq!(log.len(), 4, "the third row brings nothing new");
    assert_eq!(log[1]["name"], "recovery:congestion_state_updated");
    assert_eq!(
        log[1]["data"],
        json!({ "new": "slow_start" }),
        "nothing before the first"
    );
    assert_eq!(
        log[2],
        json!({ "time": 0.0, "name": "recovery:metrics_updated",
            "data": { "congestion_window": 14_480, "bytes_in_flight": 0 } })
    );
    assert_eq!(
        log[3]["data"],
        json!({ "min_rtt": 60.0, "smoothed_rtt": 90.0, "latest_rtt": 80.0, "congestion_window": 15_204,
            "bytes_in_flight": 14_480, "ssthresh": 28_960, "pacing_rate": 1_500_000 })
    );
}

/// Flows of a real host have their own addresses, or none; only a run has made-up ones.
#[test]
fn no_address_is_invented() {
    let opened = |name: &str, scenario: &str| {
        let trace = Trace {
            meta: fullpipe_trace::Meta {
                ground: "host".to_owned(),
                scenario: scenario.to_owned(),
                flows: vec![FlowMeta {
                    name: name.to_owned(),
                    mss: 1448,
                    ..FlowMeta::default()
                }],
                ..fullpipe_trace::Meta::default()
            },
            rows: vec![TraceRow::default()],
            ..Trace::default()
        };
        let mut bytes = Vec::new();
        write_trace(&mut bytes, &trace, 0, None).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let records = text.split('\u{1e}').skip(1);
        let records: Vec<Value> = records.map(|r| serde_json::from_str(r).unwrap()).collect();
        let title = records[0]["title"].as_str().unwrap().to_owned();
        let is_it = |e: &&Value| e["name"] == "connectivity:connection_started";
        (title, records.iter().find(is_it).map(|e| e["data"].clone()))
    };
    let v4 = json!({ "ip_version": "v4", "src_ip": "192.0.2.1", "dst_ip": "198.51.100.7",
        "src_port": 22, "dst_port": 50_312 });
    let observed = opened("192.0.2.1:22 -> 198.51.100.7:50312 (2)", "");
    assert_eq!(observed, ("host".to_owned(), Some(v4)));
    let (_, v6) = opened("[2001:db8::1]:22 -> [2001:db8::2]:5", "");
    assert_eq!(v6.as_ref().unwrap()["ip_version"], "v6");
    assert_eq!(v6.unwrap()["src_ip"], "2001:db8::1");
    let sent = opened("main", fullpipe_trace::TRANSFER);
    assert_eq!(sent, ("send".to_owned(), None));
    let (title, of_a_run) = opened("main", "early-loss");
    assert_eq!(title, "early-loss, case 0, seed 0");
    assert_eq!(of_a_run.unwrap()["src_ip"], "10.0.0.1");
}

/// What qvis 0.1 asks of a file (its `QlogLoaderV2` and `ParserPreSpec03`): version and format
/// by these words, every record an object with a number as time and a name `category:event`.
#[test]
fn a_trace_is_a_file_that_qvis_accepts() {
    let row = |at, cwnd, events, phase| TraceRow {
        time: ms(at),
        cwnd,
        rtt: Span::from_millis(80),
        flight: 10,
        loss_events: 1,
        events,
        phase,
        start_up: false,
        ..TraceRow::default()
    };
    let trace = Trace {
        meta: fullpipe_trace::Meta {
            scenario: "one-drop".to_owned(),
            ground: "udp".to_owned(),
            flows: vec![FlowMeta {
                name: "main".to_owned(),
                stack: "reno".to_owned(),
                mss: 1448,
                ..FlowMeta::default()
            }],
            ..fullpipe_trace::Meta::default()
        },
        rows: vec![
            row(0, 20.0, Events::ACK, Phase::Open),
            row(1, 21.0, Events::ACK, Phase::Open),
            row(15, 10.0, Events::LOSS, Phase::Recovery),
            row(16, 10.0, Events::ACK, Phase::Open),
        ],
        ..Trace::default()
    };
    let mut bytes = Vec::new();
    write_trace(&mut bytes, &trace, 0, Some(Span::from_millis(10))).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let records: Vec<Value> = text
        .split('\u{1e}')
        .skip(1)
        .map(|r| serde_json::from_str(r.strip_suffix('\n').expect("a line feed")).unwrap())
        .collect();
    assert_eq!(records[0]["qlog_version"], "0.3");
    assert_eq!(records[0]["qlog_format"], "JSON-SEQ");
    for event in &records[1..] {
        assert!(event["time"].is_number(), "{event}");
        let name = event["name"].as_str().unwrap();
        assert!(name.split_once(':').is_some(), "{name}");
        assert!(event["data"].is_object());
    }
    let names: Vec<&str> = records[1..]
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "connectivity:connection_started",
            "recovery:congestion_state_updated",
            "recovery:metrics_updated",
            "fullpipe:loss_event",
            "recovery:congestion_state_updated",
            "recovery:metrics_updated",
            "recovery:congestion_state_updated",
        ]
    );
    assert_eq!(records[3]["data"]["congestion_window"], 21 * 1448);
    assert_eq!(records[6]["data"], json!({ "congestion_window": 14_480 }));
}
