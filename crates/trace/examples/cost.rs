//! What a trace costs: nanoseconds of CPU per row of making, queueing and writing it, bytes per
//! row, and which part of a core that is at 1 Gbit/s with an ACK every second segment. Linux only:
//! the CPU time of a thread is read from `/proc`.
//!
//! ```text
//! cargo run --release -p fullpipe-trace --example cost [ROWS]
//! ```

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use fullpipe_cc::{Setup, StackSpec};
use fullpipe_flow::{Events, Preset, Sender, SenderConfig, TraceRow, TraceSink};
use fullpipe_trace::write::ROWS_PER_GROUP;
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

    let sender = sender();
    let begin = cpu_nanos(THIS)?;
    for i in 0..rows {
        black_box(TraceRow::of(Time::from_nanos(i), 0, black_box(&sender)));
    }
    let made = (cpu_nanos(THIS)? - begin) / rows as f64;
    println!("row from a sender         {made:6.1} ns");

    let dir = std::env::temp_dir().join(format!("fullpipe-trace-cost-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let path = dir.join("t.parquet");
    let trace = Recording::begin(&path, &meta, Resolution::Microseconds, recording::QUEUE)?;
    let mut tap = trace.tap();
    // Whole row groups, at 100,000 rows a second: more than twice what 1 Gbit/s brings.
    let queued = 6 * ROWS_PER_GROUP as u64;
    let (mut queueing, mut sent) = (0.0, 0);
    while sent < queued {
        let n = 1024.min(queued - sent);
        let burst: Vec<TraceRow> = (sent..sent + n).map(row).collect();
        let begin = cpu_nanos(THIS)?;
        burst.iter().for_each(|r| tap.put(r, &[1.0, 2.0]));
        queueing += cpu_nanos(THIS)? - begin;
        sent += n;
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    let (queued, writing) = (queued as f64, cpu_nanos(&writer()?)?);
    drop(tap);
    let missed = trace.finish(Vec::new())?.missed;
    let queueing = queueing / queued;
    println!("into the queue            {queueing:6.1} ns ({missed} of {queued} missed)");
    let writing = writing / queued;
    println!("the thread that writes    {writing:6.1} ns");
    let all = made + queueing + writing;
    println!(
        "together                  {all:6.1} ns, {:.2} % of a core at {ACKS_PER_SECOND:.0} ACKs/s",
        all * 1e-7 * ACKS_PER_SECOND
    );

    for (name, numbers) in [("decimals", Numbers::Decimal), ("doubles", Numbers::Double)] {
        let mut writer = TraceWriter::new(Vec::new(), &meta, Resolution::Microseconds, numbers)?;
        let mut writing = 0.0;
        for from in (0..rows).step_by(PART) {
            let part: Vec<TraceRow> = (from..rows.min(from + PART as u64)).map(row).collect();
            let begin = cpu_nanos(THIS)?;
            for r in &part {
                writer.push(r, &[3400.0, r.delivered as f64 * 0.5e-6])?;
            }
            writing += cpu_nanos(THIS)? - begin;
        }
        let begin = cpu_nanos(THIS)?;
        let (n, bytes) = writer.finish(0)?;
        writing += cpu_nanos(THIS)? - begin;
        println!(
            "written, {name:9}        {:6.1} ns {:6.2} bytes",
            writing / n as f64,
            bytes.len() as f64 / n as f64
        );
    }
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// CPU time of a thread, ns.
fn cpu_nanos(thread: &str) -> Result<f64, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("{thread}/schedstat"))?;
    let nanos = text.split_whitespace().next().ok_or("empty schedstat")?;
    Ok(nanos.parse()?)
}

/// The thread that writes a recording.
fn writer() -> Result<String, Box<dyn Error>> {
    for thread in std::fs::read_dir("/proc/self/task")? {
        let thread = thread?.path().to_string_lossy().into_owned();
        if std::fs::read_to_string(format!("{thread}/comm"))?.trim() == "trace" {
            return Ok(thread);
        }
    }
    Err("no thread writes".into())
}

const THIS: &str = "/proc/thread-self";
/// Rows between two looks at the clock.
const PART: usize = 10_000;
/// 1 Gbit/s over 1500-byte frames on Ethernet, an ACK every second segment.
const ACKS_PER_SECOND: f64 = 43_000.0;

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
    let cfg = SenderConfig::preset(Preset::Y2026, 1500).with(|c| c.handshake = false);
    let stack = StackSpec::parse("cubic").expect("a registered stack");
    let mut sender = Sender::new(cfg, stack.controller(Setup::default()), 0);
    sender.start(Time::ZERO);
    while sender.poll_transmit(Time::ZERO).is_some() {}
    sender
}
