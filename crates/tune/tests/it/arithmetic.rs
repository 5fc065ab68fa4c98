//! The per-ACK arithmetic in whole numbers (`bpf/law.h`, compiled for this machine) beside the laws
//! of `fullpipe-cc` in real numbers, over the same ACKs and losses.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fullpipe_cc::{
    AckEvent, Base, CongestionEvent, CongestionKind, Controller, Count, Setup, StackSpec,
};
use fullpipe_policy::{Action, Facts, LAW_HSTCP_LP, LAW_TABLE, LAW_WESTWOOD, lower};
use fullpipe_units::{Span, Time};

use crate::support::{compile, compile_in};

/// A flow of rounds: each ACK covers one or two segments, and the RTT has a queue in it that grows
/// with the window above 400 segments.
struct Story<'a> {
    stack: &'a str,
    /// Segments, at the start.
    window: u32,
    /// Starts in slow start.
    starting: bool,
    /// Rounds until each loss.
    losses: &'a [u32],
    /// Error that whole numbers may make, of the window and beside a segment per loss.
    bound: f64,
}

const BASE_US: u64 = 80_000;

fn rtt_us(w: f64) -> u64 {
    BASE_US + (200.0 * (w - 400.0).max(0.0)) as u64
}

impl Story<'_> {
    /// The first lines: parameters, rows of the table, window and threshold.
    fn begin(&self) -> String {
        let stack = StackSpec::parse(self.stack).unwrap();
        let facts = Facts {
            rtt: Some(Span::from_micros(BASE_US)),
            ..Facts::default()
        };
        let Action::Ours { params, table } = lower(&stack, &facts).unwrap().action else {
            panic!("{} is the kernel's", self.stack);
        };
        let mut input = format!(
            "P {} {} {} {} {} {}",
            params.law,
            params.rows,
            params.max_ssthresh,
            params.gamma,
            params.gamma_then,
            params.update_interval_us
        );
        let numbers = params.number.iter();
        numbers.for_each(|n| write!(input, " {n}").unwrap());
        for r in &table {
            write!(input, "\nR {} {} {}", r.window, r.increase, r.decrease).unwrap();
        }
        let ssthresh = if self.starting {
            0x7fff_ffff
        } else {
            self.window
        };
        write!(input, "\nW {} {ssthresh}", self.window).unwrap();
        input
    }

    /// After each round the error of the window, and the windows in C and in Rust.
    fn tell(&self, program: &std::path::Path) -> Vec<(f64, f64, f64)> {
        let stack = StackSpec::parse(self.stack).unwrap();
        let mut input = self.begin();
        let setup = Setup {
            initial_window: f64::from(self.window),
            slow_start_limit: f64::INFINITY,
            base: Base::Cwnd,
            count: Count::Segments,
            ..Setup::default()
        };
        let mut rust = stack.controller(setup);
        if !self.starting {
            rust.exit_start_up(Time::ZERO);
        }
        let (mut now, mut delivered, mut rounds) = (1_000_000u64, 0u64, Vec::new());
        let (mut lines, mut lost) = (0, 0);
        let mut srtt = 0u64;
        for &loss in self.losses {
            for _ in 0..loss {
                let w = rust.window().floor().max(1.0) as u64;
                let rtt = rtt_us(w as f64);
                srtt = rtt;
                let (begin, mut left) = (now, w);
                let mut first = true;
                while left > 0 {
                    let n = if left.is_multiple_of(3) {
                        1
                    } else {
                        2.min(left)
                    };
                    left -= n;
                    delivered += n;
                    now = begin + rtt * (w - left) / w;
                    let nxt = delivered + w;
                    write!(
                        input,
                        "\nA {now} {n} {rtt} {srtt} {delivered} {nxt} {delivered}"
                    )
                    .unwrap();
                    lines += 1;
                    let mut ev = AckEvent::new(Time::from_nanos(now * 1000));
                    (ev.acked, ev.advanced, ev.cwnd_limited) = (n, true, true);
                    (ev.rtt, ev.srtt) = (Some(Span::from_micros(rtt)), Span::from_micros(srtt));
                    ev.min_rtt = Span::from_micros(BASE_US);
                    (ev.delivered, ev.round_start) = (delivered, first);
                    (ev.snd_una, ev.snd_nxt) = (delivered, nxt);
                    first = false;
                    rust.on_delivery(&ev);
                    rust.on_ack(&ev);
                }
                rounds.push((lines, lost, rust.window()));
            }
            let at = Time::from_nanos(now * 1000);
            let flight = rust.window().floor() as u64;
            write!(input, "\nL {now} 0").unwrap();
            lines += 1;
            lost += 1;
            let mut ev = CongestionEvent::new(at, CongestionKind::Loss, flight);
            ev.srtt = Span::from_micros(srtt);
            rust.on_congestion(&ev);
            rust.on_recovery_exit(at);
            rounds.push((lines, lost, rust.window()));
        }
        compare(program, &input, &rounds)
    }
}

/// H-TCP's increase grows with the time since the end of the latest recovery.
#[test]
fn a_recovery_holds_the_clock_of_htcp() {
    let Some((_folder, program)) = compile("law.c") else {
        return;
    };
    let grown = |recovery_us: u64| {
        let mut input = story("htcp", 200, &[], CLOSE).begin();
        let mut delivered = 0;
        let mut ack = |what: char, at: u64| {
            delivered += 2;
            let nxt = delivered + 100;
            let rest = match what {
                'L' => "0".to_owned(),
                _ => format!("2 {BASE_US} {BASE_US} {delivered} {nxt} {delivered}"),
            };
            write!(input, "\n{what} {at} {rest}").unwrap();
        };
        let loss = 1_000_000 + BASE_US;
        ack('A', 1_000_000);
        ack('L', loss);
        let end = loss + recovery_us;
        ack('D', (loss + end) / 2);
        ack('D', end);
        (1..=20).for_each(|k| ack('A', end + k * 100_000));
        let windows = outputs(&program, &input);
        windows[windows.len() - 1] - windows[1]
    };
    let (short, long) = (grown(BASE_US), grown(1_500_000));
    assert!(short > 1.0, "it grew by {short}");
    assert!((long / short - 1.0).abs() < 0.01, "{long} beside {short}");
}

/// Under a cap CUBIC's Reno flow has the cap as well: when it ends, a round trip adds half of the
/// window at most (RFC 9438 section 4.4).
#[test]
fn the_end_of_a_cap_of_cubic_lets_no_burst_out() {
    let Some((_folder, program)) = compile("law.c") else {
        return;
    };
    let rtt = 2_000;
    let mut input = story("cubic", 50, &[], CLOSE).begin();
    write!(input, "\nL 1000000 0\nC 50").unwrap();
    let (mut now, mut delivered) = (1_000_000u64, 0u64);
    let mut round = |input: &mut String, w: u64| {
        for _ in 0..w / 2 {
            (now, delivered) = (now + 2 * rtt / w, delivered + 2);
            let nxt = delivered + w;
            write!(
                input,
                "\nA {now} 2 {rtt} {rtt} {delivered} {nxt} {delivered}"
            )
            .unwrap();
        }
    };
    (0..15_000).for_each(|_| round(&mut input, 50));
    write!(input, "\nC 0").unwrap();
    round(&mut input, 50);
    let windows = outputs(&program, &input);
    let last = windows[windows.len() - 1];
    assert_eq!(windows[windows.len() - 26].floor(), 50.0);
    assert!((60.0..=76.0).contains(&last), "{last}");
}

/// Line of the output, losses so far, window in Rust.
type Round = (usize, u32, f64);

fn compare(program: &std::path::Path, input: &str, rounds: &[Round]) -> Vec<(f64, f64, f64)> {
    let windows = outputs(program, input);
    let of = |&(line, losses, w): &Round| {
        let (c, room) = (windows[line - 1], f64::from(losses));
        // A threshold is whole segments: each loss takes up to one more.
        (((c - w).abs() - room).max(0.0) / w, c, w)
    };
    rounds.iter().map(of).collect()
}

/// Of the window, for laws that add and remove by its size and by time: increases are rounded to
/// 2^-24 segments, a(w) to 1/256, times to a millisecond.
const CLOSE: f64 = 0.01;
/// For laws that steer by the delay: the RTT of both is that of the real numbers' window, so that
/// what one rounding takes away is never given back.
const STEERED: f64 = 0.05;

const fn story<'a>(stack: &'a str, window: u32, losses: &'a [u32], bound: f64) -> Story<'a> {
    Story {
        stack,
        window,
        starting: window == 10,
        losses,
        bound,
    }
}

/// Those that begin at ten segments begin in slow start.
const STORIES: [Story<'static>; 14] = [
    story("aimd(increase=6,decrease=0.3)", 100, &[40, 40, 40], CLOSE),
    story("reno", 50, &[60, 20, 60], CLOSE),
    story("highspeed", 300, &[40, 60, 40], CLOSE),
    story("scalable", 200, &[40, 40], CLOSE),
    story("scalable", 12, &[30], CLOSE),
    story("reno+limited(max_ssthresh=100)", 10, &[20, 20], CLOSE),
    story("htcp", 200, &[40, 40, 40], CLOSE),
    story("bic", 200, &[40, 30, 60], CLOSE),
    story("cubic", 200, &[40, 60, 80], CLOSE),
    story("westwood", 100, &[40, 40], CLOSE),
    story("fast", 300, &[60, 40], STEERED),
    story("hstcp-lp", 300, &[30], STEERED),
    story("vegas", 380, &[60, 30], STEERED),
    story("highspeed(retune=100ms)", 300, &[40, 60, 40], CLOSE),
];

#[test]
fn whole_numbers_follow_the_laws() {
    let Some((_folder, program)) = compile("law.c") else {
        return;
    };
    let mut wrong = Vec::new();
    for story in &STORIES {
        let windows = story.tell(&program);
        let worst = windows.iter().map(|w| w.0).fold(0.0, f64::max);
        println!("{}: worst {worst:.4}", story.stack);
        if worst > story.bound {
            let at = windows
                .iter()
                .position(|w| w.0 > story.bound)
                .unwrap_or_default();
            let near = &windows[at.saturating_sub(3)..(at + 3).min(windows.len())];
            wrong.push(format!("{}: round {at}: {near:?}", story.stack));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Stacks of drawn histories, each with the error that whole numbers may make.
const DRAWN: [(&str, f64); 13] = [
    ("aimd(increase=6,decrease=0.3)", CLOSE),
    ("reno", CLOSE),
    ("highspeed", CLOSE),
    ("highspeed(low_window=20,high_decrease=0.2)", CLOSE),
    ("scalable", CLOSE),
    ("reno+limited(max_ssthresh=40)", CLOSE),
    ("htcp", CLOSE),
    ("bic", CLOSE),
    ("cubic", CLOSE),
    ("hstcp-lp", STEERED),
    ("aimd(increase=0.25,decrease=0.05)", CLOSE),
    ("vegas", STEERED),
    ("highspeed(retune=100ms)", CLOSE),
];

/// Laws whose slow start ends by another rule than the simulator's: the smallest of eight samples
/// is held against the base RTT, not a round's.
const OWN_START: [&str; 1] = ["vegas"];

/// Histories of each stack.
const HISTORIES: u64 = 12;

/// A small generator (splitmix64).
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(most)) as u32
    }
}

/// The largest error of each of these stacks over its histories, in parts of what it may be.
fn errors(
    program: &std::path::Path,
    stacks: impl Iterator<Item = (&'static str, f64)>,
) -> Vec<(&'static str, f64)> {
    let of = |(stack, bound)| {
        let mut worst = 0.0_f64;
        for seed in 0..HISTORIES {
            let mut drawn = Drawn(seed);
            // Every third begins in slow start, which a loss ends before it fills the machine.
            let starting = seed % 3 == 0 && !OWN_START.contains(&stack);
            let window = if starting { 10 } else { 4 + drawn.below(500) };
            let first = if starting {
                1 + drawn.below(5)
            } else {
                1 + drawn.below(40)
            };
            let mut losses = vec![first];
            losses.extend((0..drawn.below(4)).map(|_| 1 + drawn.below(40)));
            let told = Story {
                stack,
                window,
                starting,
                losses: &losses,
                bound,
            };
            let windows = told.tell(program);
            worst = windows.iter().map(|w| w.0).fold(worst, f64::max);
        }
        (stack, worst / bound)
    };
    stacks.map(of).collect()
}

#[test]
fn whole_numbers_follow_the_laws_through_drawn_histories() {
    let Some((_folder, program)) = compile("law.c") else {
        return;
    };
    let errors = errors(&program, DRAWN.into_iter());
    println!("{errors:.3?}");
    let wrong: Vec<_> = errors.iter().filter(|(_, e)| *e > 1.0).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Numbers of `bpf/law.h` and what it includes, each with a wrong one in its place, and the stack
/// that uses it.
const BROKEN: [(&str, &str, &str); 17] = [
    ("reno", "<< 30) / w << 2", "<< 30) / w << 1"),
    (
        "reno",
        "MOST_DECREASE = 65536 / 2",
        "MOST_DECREASE = 65536 / 3",
    ),
    (
        "aimd(increase=6,decrease=0.3)",
        "(65536 - removed)) >> 24",
        "(60000 - removed)) >> 24",
    ),
    (
        "aimd(increase=0.25,decrease=0.05)",
        "LEAST_DECREASE = 65536 / 128",
        "LEAST_DECREASE = 65536 / 8",
    ),
    ("highspeed", "TABLE_ROWS / 2; step", "TABLE_ROWS / 32; step"),
    (
        "scalable",
        "? MOST_DECREASE\n\t\t\t       : (u32)p->number[SCALABLE_DECREASE]",
        "? MOST_DECREASE\n\t\t\t       : (u32)p->number[SCALABLE_DECREASE] * 2",
    ),
    (
        "scalable",
        "p->number[SCALABLE_STEP] * n",
        "p->number[SCALABLE_STEP] * n * 9 / 8",
    ),
    (
        "reno+limited(max_ssthresh=40)",
        "most(2 * w / max, 1)",
        "most(3 * w / max, 1)",
    ),
    ("htcp", "late * 256 / 100", "late * 256 / 110"),
    ("htcp", "late * late / 15625", "late * late / 62500"),
    ("bic", "inc = now / 20", "inc = now / 40"),
    ("bic", "(65536 + beta) >> 17", "(65536 + beta) >> 16"),
    ("cubic", "* 256000 / (c ? c : 1)", "* 512000 / (c ? c : 1)"),
    ("cubic", "* c / 256000", "* c / 300000"),
    ("hstcp-lp", "3 * rtt", "30 * rtt"),
    (
        "vegas",
        "queued < p->number[VEGAS_ALPHA]",
        "queued < 8 * p->number[VEGAS_ALPHA]",
    ),
    (
        "highspeed(retune=100ms)",
        "now - s->updated < p->update_interval_us",
        "now - s->updated < 99 * p->update_interval_us",
    ),
];

/// The histories notice each of them: what follows the laws does so by their numbers.
#[test]
fn a_wrong_number_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for part in ["bpf", "tests"] {
        fs::create_dir(folder.path().join(part)).unwrap();
    }
    let source = |name: &str| fs::read_to_string(from.join(name)).unwrap();
    fs::write(folder.path().join("tests/law.c"), source("tests/law.c")).unwrap();
    let headers: Vec<(String, String)> = fs::read_dir(from.join("bpf"))
        .unwrap()
        .map(|entry| format!("bpf/{}", entry.unwrap().file_name().display()))
        .filter(|name| name.ends_with(".h"))
        .map(|name| (name.clone(), source(&name)))
        .collect();
    let mut missed = Vec::new();
    for (stack, right, wrong) in BROKEN {
        let found: usize = headers.iter().map(|(_, h)| h.matches(right).count()).sum();
        assert_eq!(found, 1, "{right}");
        for (name, header) in &headers {
            fs::write(folder.path().join(name), header.replace(right, wrong)).unwrap();
        }
        let Some((_folder, program)) = compile_in(folder.path(), "law.c") else {
            return;
        };
        let drawn = DRAWN.into_iter().filter(|(name, _)| *name == stack);
        let [(_, error)] = errors(&program, drawn)[..] else {
            panic!("{stack} is not drawn");
        };
        println!("{stack}: {right} -> {wrong}: {error:.1} times what it may be");
        if error <= 1.0 {
            missed.push((stack, right, error));
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}

/// Whatever stands in the maps, and whoever wrote it: the window stays between its ends, a loss
/// leaves between half and 127/128 of it (Westwood+ half or more), and an ACK adds no more than
/// slow start does, nor 4,096 segments a round trip.
#[test]
fn limits_hold_for_numbers_that_no_policy_makes() {
    let Some((_folder, program)) = compile("law.c") else {
        return;
    };
    let wild = [0, 1, 255, 65_536, u64::from(u32::MAX), u64::MAX];
    let mut drawn = Drawn(2002);
    for law in LAW_TABLE..=LAW_HSTCP_LP {
        for _ in 0..60 {
            let mut pick = || wild[drawn.below(wild.len() as u32) as usize];
            let (rows, start, gamma) = (pick() % 6, pick() as u32, pick() as u32);
            let mut input = format!("P {law} {} {start} {gamma} {} 0", rows as u32, gamma & 1);
            for _ in 0..8 {
                write!(input, " {}", pick()).unwrap();
            }
            for row in 0..4u32 {
                let (increase, decrease) = (pick() as u32, pick() as u32);
                write!(input, "\nR {} {increase} {decrease}", row * 100).unwrap();
            }
            let window = [2, 100, 5_000, (1 << 24) - 10][(pick() % 4) as usize];
            let slow = pick() & 1 == 0;
            let ssthresh = if slow { 0x7fff_ffff } else { window };
            write!(input, "\nW {window} {ssthresh}").unwrap();
            let (mut now, mut delivered, mut lines) = (1_000_000u64, 0u64, Vec::new());
            for i in 0..200u64 {
                let n = 1 + i % 2;
                (now, delivered) = (now + 500, delivered + n);
                let nxt = delivered + 100;
                write!(
                    input,
                    "\nA {now} {n} 80000 80000 {delivered} {nxt} {delivered}"
                )
                .unwrap();
                lines.push(Some(n));
                if i % 70 == 69 {
                    write!(input, "\nL {now} {}", i % 2).unwrap();
                    lines.push(None);
                }
            }
            let (mut w, mut slow) = (f64::from(window), slow);
            for (line, then) in lines.iter().zip(outputs(&program, &input)) {
                let told = || format!("law {law}: {w} to {then} at {line:?}\n{input}");
                // A fraction of a segment beyond is not sent.
                assert!(
                    (2.0..f64::from((1 << 24) + 1)).contains(&then),
                    "{}",
                    told()
                );
                match line {
                    Some(n) => {
                        // Vegas and FAST move by whole segments, at the end of a round.
                        let most = match slow || law != LAW_TABLE {
                            true => *n as f64 + 1.0,
                            false => *n as f64 * (4096.0 / w.floor()).min(1.0) + 1e-6,
                        };
                        assert!(then <= w + most, "{}", told());
                    }
                    None => {
                        slow = false;
                        let most = match law {
                            LAW_WESTWOOD => f64::INFINITY,
                            _ => (w * 127.0 / 128.0 + 1.0).max(2.0),
                        };
                        assert!(
                            (w.floor() / 2.0).floor() <= then && then <= most,
                            "{}",
                            told()
                        );
                    }
                }
                w = then;
            }
        }
    }
}

/// The windows that the program prints, a line for each of the input.
fn outputs(program: &std::path::Path, input: &str) -> Vec<f64> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = format!("{input}\n");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let first = |line: &str| line.split(' ').next().unwrap().parse().unwrap();
    text.lines().map(first).collect()
}
