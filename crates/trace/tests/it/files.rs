//! What is written is read; what is cut, foreign or killed is not.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fullpipe_cc::Phase;
use fullpipe_flow::{Events, TraceRow, TraceSink};
use fullpipe_trace::{
    FlowMeta, Meta, Numbers, Recording, Resolution, Trace, TraceError, TraceWriter, recording,
};
use fullpipe_units::{Span, Time};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;

fn flow(name: &str, variables: &[&str]) -> FlowMeta {
    FlowMeta {
        name: name.to_owned(),
        stack: "cubic+hystart".to_owned(),
        mss: 1448,
        packet: 1500,
        variables: variables.iter().map(|v| (*v).to_owned()).collect(),
    }
}

pub fn meta() -> Meta {
    Meta {
        version: "0.1.0".to_owned(),
        ground: "udp".to_owned(),
        scenario: "one-drop".to_owned(),
        case: 3,
        seed: 7,
        engine: "0123456789abcdef".to_owned(),
        run: "ab12".to_owned(),
        flows: vec![flow("main", &["w_max", "k"]), flow("other", &["a"])],
    }
}

/// Rows as a transfer of 80 ms at 1 Gbit/s makes them, an ACK every second segment, late by a few
/// microseconds.
pub fn transfer(rows: u64) -> Vec<TraceRow> {
    let mut late = 1u64;
    let mut cwnd = 3400.0;
    let rows = (0..rows).map(|i| {
        late = late.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let noise = (late >> 33) % 16;
        cwnd += 1.0 / cwnd;
        let rtt = Span::from_micros(80_000 + noise);
        TraceRow {
            time: Time::ZERO + Span::from_micros(23 * i + noise),
            cwnd,
            cwnd_min: cwnd - 1.0 / cwnd,
            cwnd_max: cwnd,
            ssthresh: 3400.0,
            pacing_rate: 0.0,
            rtt,
            srtt: Span::from_micros(80_006 + noise / 4),
            min_rtt: Span::from_micros(80_000),
            ack_delay: Span::from_micros(noise / 2),
            flight: cwnd as u64,
            delivered: 2 * i,
            snd_una: 2 * i,
            snd_nxt: 2 * i + cwnd as u64,
            retransmits: i / 10_000,
            loss_events: (i / 50_000) as u32,
            mss: 1448,
            events: Events::ACK,
            start_up: false,
            ..TraceRow::default()
        }
    });
    rows.collect()
}

fn written(rows: &[TraceRow], resolution: Resolution, numbers: Numbers) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &meta(), resolution, numbers).unwrap();
    for row in rows {
        writer.push(row, &[1.5, f64::NAN]).unwrap();
    }
    let (count, bytes) = writer.finish(2).unwrap();
    assert_eq!(count, rows.len() as u64);
    bytes
}

#[test]
fn a_row_costs_less_than_eight_bytes() {
    let rows = transfer(200_000);
    let bytes = written(&rows, Resolution::Microseconds, Numbers::Decimal).len();
    let per_row = bytes as f64 / rows.len() as f64;
    assert!(per_row < 8.0, "{per_row} bytes per row");
}

#[test]
fn reads_what_it_wrote() {
    // More than one row group.
    let rows = transfer(70_000);
    let bytes = written(&rows, Resolution::Microseconds, Numbers::Decimal);
    assert_eq!(
        bytes,
        written(&rows, Resolution::Microseconds, Numbers::Decimal),
        "the same bytes again"
    );
    let trace = Trace::parse(bytes).unwrap();
    assert_eq!((trace.meta.clone(), trace.missed), (meta(), 2));
    assert_eq!(trace.rows.len(), rows.len());
    for (read, row) in trace.rows.iter().zip(&rows) {
        assert!((read.cwnd - row.cwnd).abs() <= 0.5e-4);
        let exact = |r: &TraceRow| TraceRow {
            cwnd: 0.0,
            cwnd_min: 0.0,
            cwnd_max: 0.0,
            ..*r
        };
        assert_eq!(exact(read), exact(row));
    }
    let column = |name: &str| &trace.variables.iter().find(|v| v.0 == name).unwrap().1;
    assert!(column("w_max").iter().all(|v| *v == 1.5));
    assert!(column("k").iter().chain(column("a")).all(|v| v.is_nan()));
}

#[test]
fn doubles_are_exact() {
    let rows = transfer(1000);
    let trace = Trace::parse(written(&rows, Resolution::Nanoseconds, Numbers::Double)).unwrap();
    assert_eq!(trace.rows, rows);
}

#[test]
fn the_rows_of_a_flow_stay_together_and_in_order() {
    let mut rows = transfer(4);
    for (i, row) in rows.iter_mut().enumerate() {
        row.flow = (i % 2) as u32;
    }
    let trace = Trace::parse(written(&rows, Resolution::Nanoseconds, Numbers::Decimal)).unwrap();
    let order: Vec<(u32, u64)> = trace.rows.iter().map(|r| (r.flow, r.delivered)).collect();
    assert_eq!(order, [(0, 0), (0, 4), (1, 2), (1, 6)]);
    assert_eq!(trace.of_flow(1).map(|(i, _)| i).collect::<Vec<_>>(), [2, 3]);
    // Each flow's variables stand under their own names.
    let a = &trace.variables.iter().find(|v| v.0 == "a").unwrap().1;
    assert!(a[0].is_nan() && a[2] == 1.5);
}

#[test]
fn a_file_that_is_cut_or_another_s_is_refused() {
    let whole = written(&transfer(50), Resolution::Nanoseconds, Numbers::Decimal);
    for n in (0..whole.len()).step_by(7) {
        assert!(Trace::parse(whole[..n].to_vec()).is_err(), "cut at {n}");
    }
    // The same file of a later schema.
    let mut later = whole.clone();
    let key = b"fullpipe.trace";
    let at = later.windows(key.len()).position(|w| w == key).unwrap() + key.len();
    let digit = later[at..].iter().position(|b| *b == b'1').unwrap();
    later[at + digit] = b'9';
    match Trace::parse(later) {
        Err(TraceError::Foreign(why)) => assert!(why.contains("version 9"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Other writers, as pyarrow, make every column optional: only a null where a word belongs is
/// wrong.
#[test]
fn columns_may_all_be_optional() {
    let own = written(&transfer(1), Resolution::Microseconds, Numbers::Decimal);
    let own = SerializedFileReader::new(Bytes::from(own)).unwrap();
    let said = own.metadata().file_metadata().key_value_metadata().cloned();
    let schema = "message m { optional binary flow (UTF8); optional double cwnd; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let rewritten = |flows: &[&str], levels: &[i16]| {
        let properties = WriterProperties::builder().set_key_value_metadata(said.clone());
        let properties = Arc::new(properties.build());
        let mut file = SerializedFileWriter::new(Vec::new(), schema.clone(), properties).unwrap();
        let mut group = file.next_row_group().unwrap();
        let flows: Vec<ByteArray> = flows.iter().map(|name| ByteArray::from(*name)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        let words = column.typed::<ByteArrayType>();
        words.write_batch(&flows, Some(levels), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let numbers = column.typed::<DoubleType>();
        numbers.write_batch(&[10.0], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        Trace::parse(file.into_inner().unwrap())
    };
    let trace = rewritten(&["main", "other"], &[1, 1]).unwrap();
    let rows: Vec<u32> = trace.rows.iter().map(|row| row.flow).collect();
    assert_eq!(rows, [0, 1]);
    assert!(trace.rows[0].cwnd == 10.0 && trace.rows[1].cwnd.is_nan());
    let lacking = rewritten(&["main"], &[1, 0]).unwrap_err().to_string();
    assert_eq!(lacking, "no trace: null where a word belongs");
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_recording_has_no_name_until_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let begin = |path: &Path| {
        Recording::begin(path, &meta(), Resolution::Microseconds, recording::QUEUE).unwrap()
    };
    let rows = transfer(1000);
    let trace = begin(&path);
    let mut tap = trace.tap();
    rows.iter().for_each(|r| tap.put(r, &[2.0]));
    let hidden = |name: &String| name.starts_with(".t.parquet.") && name.ends_with(".tmp");
    let now = names(dir.path());
    assert!(now.len() == 1 && now.iter().all(hidden), "not yet: {now:?}");
    drop(tap);
    let summary = trace.finish(Vec::new()).unwrap();
    assert_eq!((summary.rows, summary.missed), (1000, 0));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), summary.bytes);
    assert_eq!(names(dir.path()), ["t.parquet"]);
    assert_eq!(Trace::open(&path).unwrap().rows.len(), 1000);

    // One that is abandoned leaves the old file as it was.
    let second = begin(&path);
    second.tap().put(&rows[0], &[]);
    drop(second);
    assert_eq!(names(dir.path()), ["t.parquet"]);
    assert_eq!(Trace::open(&path).unwrap().rows.len(), 1000);
    // What a killed one leaves cannot be read.
    std::fs::write(dir.path().join("half"), b"PAR1 half").unwrap();
    assert!(Trace::open(&dir.path().join("half")).is_err());
    std::fs::remove_file(dir.path().join("half")).unwrap();
    begin(&path).finish(Vec::new()).unwrap();
    assert_eq!(names(dir.path()), ["t.parquet"]);
    assert!(Trace::open(&path).unwrap().rows.is_empty());
}

#[test]
fn a_full_queue_counts_and_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let trace = Recording::begin(&path, &meta(), Resolution::Microseconds, 4).unwrap();
    let mut tap = trace.tap();
    let rows = transfer(100_000);
    rows.iter().for_each(|r| tap.put(r, &[]));
    let missed = tap.missed();
    drop(tap);
    let summary = trace.finish(Vec::new()).unwrap();
    assert!(missed > 0, "a queue of four rows took them all");
    assert_eq!(summary.missed, missed);
    assert_eq!(summary.rows + summary.missed, rows.len() as u64);
    let read = Trace::open(&path).unwrap();
    assert_eq!(
        (read.rows.len() as u64, read.missed),
        (summary.rows, missed)
    );
}

fn any_row() -> impl Strategy<Value = TraceRow> {
    let numbers = (0.0..1e9f64, 0.0..1e9f64, 1u64..1 << 50, any::<u32>());
    let rest = (0u32..2, any::<u16>(), 0usize..5, any::<bool>());
    (numbers, rest).prop_map(
        |((cwnd, pacing, count, few), (flow, bits, phase, start_up))| {
            let phase = [
                Phase::Open,
                Phase::Disorder,
                Phase::Cwr,
                Phase::Recovery,
                Phase::Loss,
            ][phase];
            TraceRow {
                time: Time::from_nanos(count),
                cwnd,
                cwnd_min: cwnd / 2.0,
                cwnd_max: cwnd,
                ssthresh: if start_up { f64::INFINITY } else { cwnd },
                pacing_rate: pacing,
                rtt: Span::from_nanos(count / 3),
                srtt: Span::from_nanos(count / 5),
                min_rtt: if start_up {
                    Span::MAX
                } else {
                    Span::from_nanos(count)
                },
                ack_delay: Span::from_nanos(u64::from(few)),
                flight: count,
                delivered: u64::MAX - count,
                snd_una: count / 7,
                snd_nxt: count,
                retransmits: count,
                loss_events: few,
                timeouts: few / 2,
                local_stalls: few / 3,
                mss: few,
                flow,
                events: Events::from_bits(bits),
                phase,
                start_up: start_up && phase == Phase::Open,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn any_row_survives(rows in prop::collection::vec(any_row(), 0..40)) {
        let trace = Trace::parse(written(&rows, Resolution::Nanoseconds, Numbers::Decimal)).unwrap();
        let mut expected = rows;
        expected.sort_by_key(|r| r.flow);
        prop_assert_eq!(trace.rows.len(), expected.len());
        for (read, row) in trace.rows.iter().zip(&expected) {
            let near = |a: f64, b: f64| (a - b).abs() <= 0.5e-4 + 1e-9 * b.abs() || a == b;
            prop_assert!(near(read.cwnd, row.cwnd) && near(read.ssthresh, row.ssthresh));
            prop_assert!((read.pacing_rate - row.pacing_rate).abs() <= 1.0);
            let exact = |r: &TraceRow| TraceRow {
                cwnd: 0.0, cwnd_min: 0.0, cwnd_max: 0.0, ssthresh: 0.0, pacing_rate: 0.0, ..*r
            };
            prop_assert_eq!(exact(read), exact(row));
        }
    }
}

#[test]
fn a_file_says_the_units_of_its_columns() {
    let resolution = Resolution::Nanoseconds;
    let writer = TraceWriter::new(Vec::new(), &meta(), resolution, Numbers::Double).unwrap();
    let (_, bytes) = writer.finish(0).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    for unit in [r#""rtt_ms":"ms""#, r#""time_s":"s""#, r#""mss":"bytes""#] {
        assert!(text.contains(unit), "{unit}");
    }
    assert!(text.contains("fullpipe.units"));
}
