//! What a trace costs: nanoseconds per row of making, queueing and writing it, and bytes per row.
//!
//! ```text
//! cargo run --release -p fullpipe-trace --example cost [ROWS]
//! ```

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use fullpipe_cc::{Setup, StackSpec};
use fullpipe_flow::{Events, Preset, Sender, SenderConfig, TraceRow, TraceSink};
use fullpipe_trace::{FlowMeta, Meta, Numbers, Recording, Resolution, TraceWriter, recording};
use fullpipe_units::{Span, Time};

fn main() -> Result<(), Box<dyn Error>> {
    let rows: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(2_000_000), |n| n.parse())?;
    let meta = Meta {
        flows: vec![FlowMeta {
            name: "main".to_owned(),
            variables: vec!["w_max".to_owned(), "k".to_owned()],
            ..FlowMeta::default()
        }],
        ..Meta::default()
    };
    let per_row = |begin: Instant, n: u64| begin.elapsed().as_nanos() as f64 / n as f64;

    let sender = sender();
    let begin = Instant::now();
    for i in 0..rows {
        black_box(TraceRow::of(Time::from_nanos(i), 0, black_box(&sender)));
    }
    println!("row from a sender         {:6.1} ns", per_row(begin, rows));

    let dir = std::env::temp_dir().join(format!("fullpipe-trace-cost-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let trace = Recording::begin(
        &dir.join("t.parquet"),
        &meta,
        Resolution::Microseconds,
        recording::QUEUE,
    )?;
    let mut tap = trace.tap();
    // 100,000 rows a second, more than twice what 1 Gbit/s brings.
    let queued = rows.min(300_000);
    let (mut busy, mut sent) = (0u128, 0u64);
    while sent < queued {
        let n = 1_000.min(queued - sent);
        let burst: Vec<TraceRow> = (sent..sent + n).map(row).collect();
        let begin = Instant::now();
        burst.iter().for_each(|r| tap.put(r, &[1.0, 2.0]));
        busy += begin.elapsed().as_nanos();
        sent += n;
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(tap);
    let summary = trace.finish()?;
    println!(
        "into the queue            {:6.1} ns ({} of {queued} missed)",
        busy as f64 / queued as f64,
        summary.missed
    );

    for (name, numbers) in [("decimals", Numbers::Decimal), ("doubles", Numbers::Double)] {
        let mut writer = TraceWriter::new(Vec::new(), &meta, Resolution::Microseconds, numbers)?;
        let begin = Instant::now();
        for i in 0..rows {
            writer.push(&row(i), &[3400.0, i as f64 * 1e-6])?;
        }
        let (n, bytes) = writer.finish(0)?;
        println!(
            "written, {name:9}        {:6.1} ns {:6.2} bytes",
            per_row(begin, n),
            bytes.len() as f64 / n as f64
        );
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// An ACK of a transfer at 1 Gbit/s and 80 ms, late by up to 16 microseconds.
fn row(i: u64) -> TraceRow {
    // SplitMix64: nothing that a compressor could guess.
    let mut mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let noise = (mixed ^ (mixed >> 31)) % 16;
    let cwnd = 3400.0 + i as f64 / 3400.0 % 3400.0;
    TraceRow {
        time: Time::ZERO + Span::from_micros(23 * i + noise),
        cwnd,
        cwnd_min: cwnd,
        cwnd_max: cwnd,
        ssthresh: 3400.0,
        rtt: Span::from_micros(80_000 + noise),
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
}

fn sender() -> Sender {
    let cfg = SenderConfig {
        handshake: false,
        ..SenderConfig::preset(Preset::Y2026, 1500)
    };
    let stack = StackSpec::parse("cubic").expect("a registered stack");
    let mut sender = Sender::new(cfg, stack.controller(Setup::default()), 0);
    sender.start(Time::ZERO);
    while sender.poll_transmit(Time::ZERO).is_some() {}
    sender
}
