//! What real time takes: cores, priority, a clock, and a machine that is not busy.

use std::fs;
use std::hint::black_box;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use fullpipe_emulate::witness::Witness;
use fullpipe_realtime::priority::Priority;
use fullpipe_units::{Span, Time};

use crate::{Finding, Remedy};

/// Tries all of it.
pub fn examine() -> Vec<Finding> {
    vec![cores(), priority(), wake_ups(), clock()]
}

fn cores() -> Finding {
    const NAME: &str = "cores";
    match thread::available_parallelism().map_or(1, usize::from) {
        1 => Finding::limited(NAME, "1: path and programs take turns")
            .remedy("give this machine a second core, or keep to slow paths"),
        n => Finding::yes(NAME, n.to_string()),
    }
}

fn priority() -> Finding {
    const NAME: &str = "real-time priority";
    // A thread of its own: priority ends with it.
    let raised = thread::spawn(|| Priority::new(true, Time::ZERO).is_real_time());
    match raised.join() {
        Ok(true) => Finding::yes(NAME, "granted"),
        _ => Finding::limited(NAME, "refused: a busy machine flags more runs").remedy(
            Remedy::Capabilities {
                names: vec!["cap_sys_nice"],
                or: "`ulimit -r 10` by limits.conf(5): `USER - rtprio 10`",
            },
        ),
    }
}

/// Length of the trial of wake-ups.
const WATCH: Duration = Duration::from_millis(500);
/// 99 of 100 wake-ups of an idle machine are earlier.
const IDLE: Span = Span::from_millis(1);
/// Bound of the emulator's verdict for paths of up to 100 ms.
const FLAGGED: Span = Span::from_millis(5);

fn wake_ups() -> Finding {
    const NAME: &str = "wake-ups in time";
    let late = Witness::begin().map(|witness| {
        thread::sleep(WATCH);
        witness.end().p99
    });
    let busy = "end what else runs (`top`), or wait: load is in `uptime`";
    match late {
        Err(e) => Finding::no(NAME, e),
        Ok(late) => {
            let found = format!("99 % within {:.2} ms", late.as_secs_f64() * 1e3);
            match late {
                late if late <= IDLE => Finding::yes(NAME, found),
                late if late <= FLAGGED => Finding::limited(NAME, found).remedy(busy),
                _ => Finding::no(NAME, found + ": runs will be flagged").remedy(busy),
            }
        }
    }
}

const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";
/// A clock that is read without a system call takes some 25 ns, 70 on old virtual machines.
const CHEAP_NS: u128 = 200;

fn clock() -> Finding {
    const NAME: &str = "clock";
    let source = |file: &str| fs::read_to_string(format!("{SOURCES}/{file}"));
    let current = source("current_clocksource").unwrap_or_else(unknown);
    let current = current.trim();
    const READS: u32 = 10_000;
    let begin = Instant::now();
    for _ in 0..READS {
        black_box(Instant::now());
    }
    let each = begin.elapsed().as_nanos() / u128::from(READS);
    let found = format!("{current}, {each} ns to read");
    if each <= CHEAP_NS {
        return Finding::yes(NAME, found);
    }
    let slow = Finding::limited(NAME, found + ": dear at high rates");
    let others = source("available_clocksource").unwrap_or_default();
    match others.split_whitespace().find(|s| *s == "tsc") {
        Some(tsc) if tsc != current => {
            slow.remedy(format!("echo tsc | sudo tee {SOURCES}/current_clocksource"))
        }
        _ => slow,
    }
}

fn unknown(_: io::Error) -> String {
    "unknown source".to_owned()
}
