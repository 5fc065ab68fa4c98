#!/usr/bin/env python3
"""Changes one constant of one algorithm at a time and checks that a test notices.

    scripts/mutants.py                         every mutant, table on standard output
    scripts/mutants.py --law veno --law yeah   only these laws
    scripts/mutants.py --kind decrease         only constants that say how much a loss takes
    scripts/mutants.py --quick                 no integration tests for what unit tests catch
    scripts/mutants.py --check                 do they apply? builds nothing
    scripts/mutants.py --markdown docs/mutants.md
                                               the page; with --law its rows, the others stay

Works on a copy of the crates `units`, `cc` and `flow`; the working tree is not touched. Exit status: 0 if every mutant was
caught, 1 if one survived or did not apply or there is none of a law, 2 if a law is unknown or the tests fail without any
mutant.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = "crates/cc/src/"
CRATES = ["crates/units", "crates/cc", "crates/flow"]

# (file, text, replacement, law, what). White space in `text` matches any white space, so that
# formatting does not matter; outside the unit tests of its file the text must occur once. Constants
# change by 10 %, whole numbers by one if 10 % of them is less than one.
DECREASE = [
    ("law/aimd.rs", "increase: 1.0, decrease: 0.5,", "increase: 1.0, decrease: 0.55,", "reno", "removed on loss 0.5"),
    ("law/aimd.rs", "decrease: number = 0.5,", "decrease: number = 0.55,", "aimd", "removed on loss 0.5"),
    ("law/aimd.rs", "decrease: 1.0 / (2.0 * n),", "decrease: 1.1 / (2.0 * n),", "multcp", "removed on loss 1/(2n)"),
    ("law/aimd.rs", "decrease: law.b(window),", "decrease: 1.1 * law.b(window),", "pretuned", "removed on loss b(W)"),
    ("law/highspeed/response.rs", "high_window: 83_000.0, high_p: 1e-7, high_decrease: 0.1,", "high_window: 83_000.0, high_p: 1e-7, high_decrease: 0.11,", "highspeed", "RFC constants: high_decrease 0.1"),
    ("law/highspeed/entries.rs", "high_decrease: number = 0.1,", "high_decrease: number = 0.11,", "highspeed", "default high_decrease 0.1"),
    ("law/highspeed/response.rs", "return 0.5;", "return 0.55;", "highspeed", "b below low_window 0.5"),
    ("law/highspeed/response.rs", "* along + 0.5)", "* along + 0.55)", "highspeed", "b at low_window 0.5"),
    ("law/highspeed/response.rs", "MIN_DECREASE: f64 = 0.01", "MIN_DECREASE: f64 = 0.011", "highspeed", "smallest b 0.01"),
    ("law/highspeed/mod.rs", "core::mem::take(&mut self.halve_next) { 0.5 }", "core::mem::take(&mut self.halve_next) { 0.55 }", "highspeed", "first_decrease=half 0.5"),
    ("law/highspeed/entries.rs", "rto_b(0.5)", "rto_b(0.55)", "highspeed-ns2", "removed on timeout 0.5"),
    ("law/highspeed/mod.rs", "self.row_md(ceil_row(w)) / 256.0", "self.row_md(ceil_row(w)) / 232.7", "highspeed", "form=ceil: row's md / 256"),
    ("law/scalable.rs", "decrease: number = 0.125,", "decrease: number = 0.1375,", "scalable", "removed on loss 0.125"),
    ("law/scalable.rs", "if w < self.lwnd { 0.5 }", "if w < self.lwnd { 0.55 }", "scalable", "removed below lwnd 0.5"),
    ("law/bic.rs", "beta: 819.0 / 1024.0", "beta: 737.1 / 1024.0", "bic", "kept on loss 819/1024"),
    ("law/bic.rs", "beta: 0.875,", "beta: 0.7875,", "bic-paper", "kept on loss 0.875"),
    ("law/bic.rs", "if self.is_low(w) { 0.5 }", "if self.is_low(w) { 0.45 }", "bic", "kept below low_window 0.5"),
    ("law/bic.rs", "w * (1.0 + self.params.beta) / 2.0", "w * (1.0 + self.params.beta) / 2.2", "bic", "fast convergence (1+beta)/2"),
    ("law/cubic.rs", "beta: number = 0.7,", "beta: number = 0.63,", "cubic", "kept on loss 0.7"),
    ("linux/highspeed.rs", "u32::from(DECREASES[self.row])) >> 8", "u32::from(DECREASES[self.row])) / 282", "highspeed-linux", "row's decrease / 256"),
    ("linux/highspeed.rs", "128, 112, 104, 98,", "128, 123, 104, 98,", "highspeed-linux", "a row's decrease 112"),
    ("linux/scalable.rs", "DECREASE_SHIFT: u32 = 3", "DECREASE_SHIFT: u32 = 4", "scalable-linux", "removed 2^-3"),
    ("linux/bic.rs", "beta: number = 819.0,", "beta: number = 737.0,", "bic-linux", "kept on a reduction 819/1024"),
    ("linux/bic.rs", "(SCALE + beta) / (2 * SCALE)", "(SCALE + beta) * 10 / (22 * SCALE)", "bic-linux", "fast convergence (1024+beta)/2048"),
    ("linux/bic.rs", "sk.half()", "(sk.half() - 1)", "bic-linux", "half below low_window"),
    ("linux/htcp/mod.rs", "BETA_MIN: u8 = 64", "BETA_MIN: u8 = 70", "htcp-linux", "smallest kept 64/128"),
    ("linux/htcp/mod.rs", "BETA_MAX: u8 = 102", "BETA_MAX: u8 = 92", "htcp-linux", "largest kept 102/128"),
    ("linux/htcp/learning.rs", "max.wrapping_mul(5)", "max.wrapping_mul(6)", "htcp-linux", "throughput change: 5"),
    ("linux/htcp/learning.rs", "old.wrapping_mul(4)", "old.wrapping_mul(5)", "htcp-linux", "throughput change: least 4"),
    ("linux/htcp/learning.rs", "old.wrapping_mul(2)", "old.wrapping_mul(3)", "htcp-linux", "throughput change: most 4 + 2"),
    ("linux/htcp/mod.rs", "excess.wrapping_mul(95) / 100", "excess.wrapping_mul(86) / 100", "htcp-linux", "memory of the RTT maximum 95/100"),
    ("linux/htcp/learning.rs", "SHORT_RTT_MS: u32 = 10", "SHORT_RTT_MS: u32 = 11", "htcp-linux", "too short an RTT 10 ms"),
    ("linux/htcp/learning.rs", "MAX_RTT_STEP_MS: u32 = 20", "MAX_RTT_STEP_MS: u32 = 22", "htcp-linux", "RTT maximum's step 20 ms"),
    ("linux/htcp/learning.rs", "SETTLED_RTTS: u32 = 3", "SETTLED_RTTS: u32 = 4", "htcp-linux", "unsettled RTTs 3"),
    ("linux/htcp/learning.rs", "wrapping_mul(3).wrapping_add(sample) / 4", "wrapping_mul(4).wrapping_add(sample) / 5", "htcp-linux", "throughput filter 3/4"),
    ("linux/cubic/entry.rs", "beta: number = 717.0,", "beta: number = 645.0,", "cubic-linux", "kept on a reduction 717/1024"),
    ("linux/cubic/mod.rs", "(SCALE + beta) / (2 * SCALE)", "(SCALE + beta) * 10 / (22 * SCALE)", "cubic-linux", "fast convergence (1024+beta)/2048"),
    ("law/cubic.rs", "w * (1.0 + self.params.beta) / 2.0", "w * (1.0 + self.params.beta) / 2.2", "cubic", "fast convergence (1+beta)/2"),
    ("law/htcp/params.rs", "beta_min: 0.5,", "beta_min: 0.55,", "htcp", "smallest kept 0.5"),
    ("law/htcp/params.rs", "beta_max: 0.8,", "beta_max: 0.72,", "htcp", "largest kept 0.8"),
    ("law/htcp/params.rs", "bandwidth_switch: 0.2,", "bandwidth_switch: 0.22,", "htcp", "throughput change that halves 0.2"),
    ("law/htcp/mod.rs", "MAX_RTT_MEMORY: f64 = 0.95", "MAX_RTT_MEMORY: f64 = 0.855", "htcp", "memory of the RTT maximum 0.95"),
    ("law/hybla.rs", "KEPT: f64 = 0.5", "KEPT: f64 = 0.45", "hybla", "kept on loss and timeout 0.5"),
    ("law/westwood.rs", "DECREASE: f64 = 0.5", "DECREASE: f64 = 0.55", "westwood", "removed without an estimate 0.5"),
    ("law/westwood.rs", "LINUX_WEIGHT: f64 = 8.0", "LINUX_WEIGHT: f64 = 8.8", "westwood", "filter weight 8"),
    ("law/westwood.rs", "TUSTIN_POLE: f64 = 0.9", "TUSTIN_POLE: f64 = 0.81", "westwood", "Tustin pole 0.9"),
    ("law/illinois.rs", "beta_min: number = 0.125,", "beta_min: number = 0.1375,", "illinois", "smallest removed 0.125"),
    ("law/illinois.rs", "beta_max: number = 0.5,", "beta_max: number = 0.55,", "illinois", "largest removed 0.5"),
    ("law/illinois.rs", "RENO_DECREASE: f64 = 0.5", "RENO_DECREASE: f64 = 0.55", "illinois", "removed as Reno 0.5"),
    ("law/illinois.rs", "D2: f64 = 0.1", "D2: f64 = 0.11", "illinois", "beta_min up to 0.1 dm"),
    ("law/illinois.rs", "D3: f64 = 0.8", "D3: f64 = 0.88", "illinois", "beta_max from 0.8 dm"),
    ("law/delay/vegas.rs", "decrease: number = 0.5,", "decrease: number = 0.55,", "vegas", "removed on loss 0.5"),
    ("law/delay/vegas.rs", "RENO_DECREASE: f64 = 0.5", "RENO_DECREASE: f64 = 0.55", "vegas", "removed on timeout 0.5"),
    ("startup/gamma/mod.rs", "VEGAS_CUT: f64 = 0.125", "VEGAS_CUT: f64 = 0.1375", "gamma", "removed at the exit 0.125"),
    ("law/delay/fast.rs", "const DECREASE: f64 = 0.5", "const DECREASE: f64 = 0.55", "fast", "removed on loss 0.5"),
    ("law/delay/lp.rs", "const DECREASE: f64 = 0.5", "const DECREASE: f64 = 0.55", "lp", "removed on loss 0.5"),
    ("law/delay/early.rs", "EARLY_KEEP: f64 = 0.5", "EARLY_KEEP: f64 = 0.45", "lp, hstcp-lp", "kept at an early indication 0.5"),
    ("law/delay/early.rs", "delta: number = 0.15,", "delta: number = 0.165,", "lp, hstcp-lp", "early threshold 0.15"),
    ("law/delay/early.rs", "INFERENCE_RTTS: u64 = 3", "INFERENCE_RTTS: u64 = 4", "lp, hstcp-lp", "inference time 3 RTT"),
    ("law/delay/hslp.rs", "1.0 - self.highspeed.b(win.w)", "1.0 - 1.1 * self.highspeed.b(win.w)", "hstcp-lp", "early_b=hs removes b(w)"),
    ("law/delay/hslp.rs", "self.highspeed.decrease(w, base, ev)", "0.9 * self.highspeed.decrease(w, base, ev)", "hstcp-lp", "kept on loss 1-b(w)"),
    ("law/delay/yeah.rs", "DELTA: f64 = 8.0", "DELTA: f64 = 7.2", "yeah", "smallest removed 0.125"),
    ("law/delay/yeah.rs", "const HALF: f64 = 0.5", "const HALF: f64 = 0.55", "yeah", "largest removed 0.5"),
    ("law/delay/yeah.rs", "MAX_DECONGESTION: f64 = 0.5", "MAX_DECONGESTION: f64 = 0.55", "yeah", "most drained at once 0.5"),
    ("law/delay/yeah.rs", "self.q.min(MAX_DECONGESTION", "(1.1 * self.q).min(MAX_DECONGESTION", "yeah", "part of the queue drained 1"),
    ("law/delay/yeah.rs", "RHO: u32 = 16", "RHO: u32 = 18", "yeah", "slow rounds until a loss halves 16"),
    ("law/delay/veno.rs", "KEEP_RANDOM: f64 = 0.8", "KEEP_RANDOM: f64 = 0.72", "veno", "kept on a random loss 0.8"),
    ("law/delay/veno.rs", "KEEP_CONGESTED: f64 = 0.5", "KEEP_CONGESTED: f64 = 0.45", "veno", "kept on congestion 0.5"),
    ("law/delay/ledbat.rs", "const DECREASE: f64 = 0.5", "const DECREASE: f64 = 0.55", "ledbat", "removed on loss 0.5"),
    ("linux/yeah.rs", "RHO: u32 = 16", "RHO: u32 = 17", "yeah-linux", "slow rounds before halving 16"),
    ("linux/yeah.rs", "DELTA: u32 = 8", "DELTA: u32 = 9", "yeah-linux", "removed at least w / 8"),
    ("linux/lp/mod.rs", "sk.cwnd / 2", "sk.cwnd / 3", "lp-linux", "kept at an indication 1/2"),
    ("law/dctcp.rs", "1.0 - self.alpha / 2.0", "1.0 - self.alpha / 1.8", "dctcp", "kept on a mark 1 - Alpha/2"),
    ("law/dctcp.rs", "const KEPT: f64 = 0.5", "const KEPT: f64 = 0.55", "dctcp", "kept on loss 0.5"),
    ("law/dctcp.rs", "g: number = 0.0625", "g: number = 0.07", "dctcp", "weight g 1/16"),
    ("linux/dctcp.rs", "SHIFT_G: u32 = 4", "SHIFT_G: u32 = 5", "dctcp-linux", "weight g 1/16"),
    ("linux/dctcp.rs", "wrapping_mul(self.alpha) >> 11", "wrapping_mul(self.alpha) >> 12", "dctcp-linux", "kept on a mark 1 - Alpha/2"),
    ("linux/dctcp.rs", "(cwnd >> 1).max(LEAST)", "(cwnd >> 2).max(LEAST)", "dctcp-linux", "kept on loss 0.5"),
    ("linux/veno.rs", "wrapping_mul(4) / 5", "wrapping_mul(9) / 10", "veno-linux", "kept on a random loss 4/5"),
    ("linux/illinois.rs", "BETA_MIN: u32 = WHOLE / 8", "BETA_MIN: u32 = WHOLE / 9", "illinois-linux", "beta_min 1/8"),
    ("linux/illinois.rs", "BETA_MAX: u32 = WHOLE / 2", "BETA_MAX: u32 = WHOLE / 2 - 3", "illinois-linux", "beta_max 1/2"),
    ("linux/illinois.rs", "(d_m / 10, 8 * d_m / 10)", "(d_m / 11, 8 * d_m / 10)", "illinois-linux", "beta_min up to dm/10"),
    ("linux/illinois.rs", "(d_m / 10, 8 * d_m / 10)", "(d_m / 10, 9 * d_m / 10)", "illinois-linux", "beta_max from 0.8 dm"),
]

INCREASE = [
    ("law/aimd.rs", "increase: 1.0, decrease: 0.5,", "increase: 1.1, decrease: 0.5,", "reno", "a 1"),
    ("law/aimd.rs", "increase: number = 1.0,", "increase: number = 1.1,", "aimd", "a 1"),
    ("law/aimd.rs", "increase: n,", "increase: 1.1 * n,", "multcp", "a n"),
    ("law/aimd.rs", "increase: law.a(window),", "increase: 1.1 * law.a(window),", "pretuned", "a a(W)"),
    ("law/highspeed/response.rs", "w * w * self.p(w) * 2.0 * b / (2.0 - b)", "w * w * self.p(w) * 2.2 * b / (2.0 - b)", "highspeed", "a: 2 b/(2-b)"),
    ("law/highspeed/response.rs", "0.078 / libm::pow(w, 1.2)", "0.0858 / libm::pow(w, 1.2)", "highspeed", "form=rfc 0.078"),
    ("law/highspeed/response.rs", "1.0 / (12.8 * libm::pow(w, 1.2))", "1.0 / (14.08 * libm::pow(w, 1.2))", "highspeed", "form=table 12.8"),
    ("law/highspeed/entries.rs", "low_p: number = 1e-3,", "low_p: number = 1.1e-3,", "highspeed", "low_p 1e-3"),
    ("law/highspeed/entries.rs", "high_p: number = 1e-7,", "high_p: number = 1.1e-7,", "highspeed", "high_p 1e-7"),
    ("law/highspeed/entries.rs", "low_window(38.0,", "low_window(41.8,", "highspeed", "low_window 38"),
    ("law/highspeed/entries.rs", "low_window(31.0,", "low_window(34.1,", "highspeed-ns2", "low_window 31"),
    ("law/highspeed/response.rs", "1.5 / (low_window * low_window)", "1.65 / (low_window * low_window)", "highspeed-ns2", "low_p 1.5/low_window^2"),
    ("law/scalable.rs", "increase: number = 0.01,", "increase: number = 0.011,", "scalable", "per segment 0.01"),
    ("law/scalable.rs", "lwnd: number = 16.0,", "lwnd: number = 17.6,", "scalable", "lwnd 16"),
    ("law/bic.rs", "low_window: 14.0,", "low_window: 15.4,", "bic", "low_window 14"),
    ("law/bic.rs", "s_max: 16.0,", "s_max: 17.6,", "bic", "s_max 16"),
    ("law/bic.rs", "smooth_part: number = 20.0,", "smooth_part: number = 22.0,", "bic", "smooth_part 20"),
    ("law/bic.rs", "b: 4.0,", "b: 4.4,", "bic", "B 4"),
    ("law/bic.rs", "s_max: 32.0,", "s_max: 35.2,", "bic-paper", "s_max 32"),
    ("law/bic.rs", "s_min: 0.01,", "s_min: 0.011,", "bic-paper", "s_min 0.01"),
    ("law/bic.rs", "FIRST_GROWTH: f64 = 1.0 / 20.0", "FIRST_GROWTH: f64 = 1.0 / 22.0", "bic", "growth before a loss 1/20"),
    ("law/cubic.rs", "c: number = 0.4,", "c: number = 0.44,", "cubic", "C 0.4"),
    ("law/cubic.rs", "3.0 * (1.0 - beta) / (1.0 + beta)", "3.3 * (1.0 - beta) / (1.0 + beta)", "cubic", "friendly increase 3"),
    ("linux/scalable.rs", "PER_SEGMENT: u32 = 100", "PER_SEGMENT: u32 = 110", "scalable-linux", "segments per segment 100"),
    ("linux/bic.rs", "max_increment: number = 16.0,", "max_increment: number = 18.0,", "bic-linux", "max_increment 16"),
    ("linux/bic.rs", "low_window: number = 14.0,", "low_window: number = 15.0,", "bic-linux", "low_window 14"),
    ("linux/bic.rs", "smooth_part: number = 20.0,", "smooth_part: number = 22.0,", "bic-linux", "smooth_part 20"),
    ("linux/bic.rs", "SEARCH: u32 = 4", "SEARCH: u32 = 5", "bic-linux", "search divisor 4"),
    ("linux/bic.rs", "FIRST_GROWTH: u32 = 20", "FIRST_GROWTH: u32 = 22", "bic-linux", "cnt before a loss 20"),
    ("linux/bic.rs", "RATIO_SHIFT: u32 = 4", "RATIO_SHIFT: u32 = 5", "bic-linux", "ACK ratio's weight 1/16"),
    ("linux/bic.rs", "ack_ratio: 2 << RATIO_SHIFT", "ack_ratio: 3 << RATIO_SHIFT", "bic-linux", "first ACK ratio 2"),
    ("linux/bic.rs", "sk.hz / 32", "sk.hz / 24", "bic-linux", "recomputed every HZ/32"),
    ("linux/htcp/mod.rs", "late.wrapping_mul(10)", "late.wrapping_mul(11)", "htcp-linux", "f: 10"),
    ("linux/htcp/mod.rs", "let half = late / 2;", "let half = late / 3;", "htcp-linux", "f: 1/2 squared"),
    ("linux/htcp/mod.rs", "sk.hz * 8 / (10 * self.min_rtt)", "sk.hz * 8 / (11 * self.min_rtt)", "htcp-linux", "reference RTT 1/10 s"),
    ("linux/htcp/mod.rs", ".clamp(4, 80)", ".clamp(5, 80)", "htcp-linux", "scaling at least 4/8"),
    ("linux/htcp/mod.rs", ".clamp(4, 80)", ".clamp(4, 70)", "htcp-linux", "scaling at most 80/8"),
    ("linux/htcp/mod.rs", "(2 * factor).wrapping_mul", "(3 * factor).wrapping_mul", "htcp-linux", "alpha: 2(1-beta)"),
    ("linux/hybla.rs", "rtt0: number = 25.0,", "rtt0: number = 28.0,", "hybla-linux", "rtt0 25 ms"),
    ("linux/hybla.rs", "LARGEST_POWER: u32 = 16", "LARGEST_POWER: u32 = 15", "hybla-linux", "largest power 16"),
    ("linux/hybla.rs", "LARGEST: u32 = 65_535", "LARGEST: u32 = 72_000", "hybla-linux", "clamp 65,535"),
    ("linux/hybla.rs", "165, 181,", "182, 181,", "hybla-linux", "2^(3/8) in 1/128"),
    ("linux/cubic/entry.rs", "bic_scale: number = 41.0,", "bic_scale: number = 45.0,", "cubic-linux", "curve 41/1024"),
    ("linux/cubic/entry.rs", "8 * (SCALE + beta) / 3", "9 * (SCALE + beta) / 3", "cubic-linux", "friendly pace 8/3"),
    ("linux/cubic/curve.rs", "FASTEST: u32 = 2", "FASTEST: u32 = 3", "cubic-linux", "least cnt 2"),
    ("linux/cubic/curve.rs", "FLAT: u32 = 100", "FLAT: u32 = 110", "cubic-linux", "cnt on the plateau 100 windows"),
    ("linux/cubic/curve.rs", "FIRST_GROWTH: u32 = 20", "FIRST_GROWTH: u32 = 22", "cubic-linux", "cnt before a loss 20"),
    ("linux/cubic/curve.rs", "sk.hz / 32", "sk.hz / 24", "cubic-linux", "recomputed every HZ/32"),
    ("linux/cubic/hystart.rs", "MIN_SAMPLES: u8 = 8", "MIN_SAMPLES: u8 = 9", "cubic-linux", "samples 8"),
    ("linux/cubic/hystart.rs", "MIN_DELAY_US: u32 = 4_000", "MIN_DELAY_US: u32 = 4_400", "cubic-linux", "least growth 4 ms"),
    ("linux/cubic/hystart.rs", "MAX_DELAY_US: u32 = 16_000", "MAX_DELAY_US: u32 = 17_600", "cubic-linux", "most growth 16 ms"),
    ("linux/cubic/hystart.rs", "MAX_BURST_US: u64 = 1_000", "MAX_BURST_US: u64 = 1_100", "cubic-linux", "most for bursts 1 ms"),
    ("linux/cubic/entry.rs", "HEADERS: u64 = 193", "HEADERS: u64 = 212", "cubic-linux", "headers 193 B"),
    ("linux/cubic/entry.rs", "hystart_low_window: number = 16.0,", "hystart_low_window: number = 18.0,", "cubic-linux", "hystart_low_window 16"),
    ("linux/cubic/entry.rs", "hystart_ack_delta_us: number = 2000.0,", "hystart_ack_delta_us: number = 2200.0,", "cubic-linux", "ACK gap 2 ms"),
    ("linux/cubic/entry.rs", "gso_max_size: number = 1514.0,", "gso_max_size: number = 1665.0,", "cubic-linux", "gso_max_size 1514"),
    ("law/htcp/params.rs", "delta_l: 1.0,", "delta_l: 1.1,", "htcp", "delta_l 1 s, library"),
    ("law/htcp/params.rs", "delta_l: time = Span::from_secs(1)", "delta_l: time = Span::from_millis(1100)", "htcp", "delta_l 1 s, registry"),
    ("law/htcp/params.rs", "LINEAR: f64 = 10.0", "LINEAR: f64 = 11.0", "htcp", "f: 10"),
    ("law/htcp/params.rs", "let half = 0.5 * late;", "let half = 0.55 * late;", "htcp", "f: 1/2 squared"),
    ("law/htcp/params.rs", "2.0 * (1.0 - beta) * factor", "2.2 * (1.0 - beta) * factor", "htcp", "alpha: 2(1-beta)"),
    ("law/htcp/params.rs", "REFERENCE_RTT: Span = Span::from_millis(100)", "REFERENCE_RTT: Span = Span::from_millis(110)", "htcp", "reference RTT 100 ms"),
    ("startup/hybla.rs", "Span::from_millis(25)", "Span::from_micros(27_500)", "hybla", "rtt0 25 ms"),
    ("startup/hybla.rs", "CAP: f64 = 4.0", "CAP: f64 = 4.4", "hybla start-up", "at most per segment 4"),
    ("startup/limited.rs", "max_ssthresh: number = 100.0,", "max_ssthresh: number = 110.0,", "limited", "max_ssthresh 100"),
    ("law/illinois.rs", "alpha_min: number = 0.3,", "alpha_min: number = 0.33,", "illinois", "alpha_min 0.3"),
    ("law/illinois.rs", "alpha_max: number = 10.0,", "alpha_max: number = 11.0,", "illinois", "alpha_max 10"),
    ("law/illinois.rs", "RENO_INCREASE: f64 = 1.0", "RENO_INCREASE: f64 = 1.1", "illinois", "alpha as Reno 1"),
    ("law/illinois.rs", "D1: f64 = 0.01", "D1: f64 = 0.011", "illinois", "alpha_max up to 0.01 dm"),
    ("law/illinois.rs", "win_thresh: number = 15.0,", "win_thresh: number = 16.5,", "illinois", "win_thresh 15"),
    ("law/illinois.rs", "theta: number = 5.0,", "theta: number = 5.5,", "illinois", "theta 5"),
    ("law/westwood.rs", "win.w += n / win.w;", "win.w += 1.1 * n / win.w;", "westwood", "a 1"),
    ("law/westwood.rs", "window: time = Span::from_millis(50)", "window: time = Span::from_millis(55)", "westwood", "sampling window 50 ms"),
    ("law/delay/vegas.rs", "alpha: number = 1.0,", "alpha: number = 0.9,", "vegas", "alpha 1"),
    ("law/delay/vegas.rs", "beta: number = 3.0,", "beta: number = 2.7,", "vegas", "beta 3"),
    ("law/delay/vegas.rs", 'gamma: number = 1.0, 0.0..=1e6, "segments", "leave start-up above this backlog", "Net100 2003"', 'gamma: number = 1.1, 0.0..=1e6, "segments", "leave start-up above this backlog", "Net100 2003"', "vegas", "gamma 1"),
    ("linux/vegas.rs", "gamma: number = 1.0,", "gamma: number = 2.0,", "vegas-linux", "gamma 1"),
    ("linux/vegas.rs", "alpha: number = 2.0,", "alpha: number = 3.0,", "vegas-linux", "alpha 2"),
    ("linux/vegas.rs", "beta: number = 4.0,", "beta: number = 5.0,", "vegas-linux", "beta 4"),
    ("linux/socket.rs", "FLOOR: u32 = 2", "FLOOR: u32 = 3", "vegas-linux", "least window 2"),
    ("linux/yeah.rs", "Q_MAX: u32 = 80", "Q_MAX: u32 = 88", "yeah-linux", "slow above 80 queued"),
    ("linux/yeah.rs", "PHI: u32 = 8", "PHI: u32 = 9", "yeah-linux", "delay limit base/8"),
    ("linux/yeah.rs", "ZETA: u32 = 50", "ZETA: u32 = 55", "yeah-linux", "fast rounds 50"),
    ("linux/yeah.rs", "SCALABLE: u32 = 100", "SCALABLE: u32 = 110", "yeah-linux", "segments per growth 100"),
    ("linux/westwood.rs", "SHORTEST: u32 = 20", "SHORTEST: u32 = 22", "westwood-linux", "shortest sample 1/20 s"),
    ("linux/westwood.rs", "INITIAL_RTT_S: u32 = 20", "INITIAL_RTT_S: u32 = 22", "westwood-linux", "RTT before a sample 20 s"),
    ("linux/westwood.rs", "old.wrapping_mul(7).wrapping_add(new) >> 3", "old.wrapping_mul(6).wrapping_add(2 * new) >> 3", "westwood-linux", "filter 7/8"),
    ("linux/lp/delay.rs", "DELTA_PERCENT: u32 = 15", "DELTA_PERCENT: u32 = 17", "lp-linux", "indication above 15 % of the range"),
    ("linux/lp/mod.rs", "ITT_RTTS: u32 = 3", "ITT_RTTS: u32 = 4", "lp-linux", "inference 3 RTTs"),
    ("linux/lp/delay.rs", "LOCAL_HZ: u32 = 1000", "LOCAL_HZ: u32 = 1100", "lp-linux", "time-stamp clock 1000 Hz"),
    ("linux/lp/delay.rs", "(sd - sd / 8)", "(sd - sd / 9)", "lp-linux", "smoothed delay in eighths"),
    ("linux/veno.rs", "BETA: u32 = 6", "BETA: u32 = 7", "veno-linux", "beta 6 half segments"),
    ("linux/illinois.rs", "ALPHA_MIN: u32 = 3 * SEGMENT / 10", "ALPHA_MIN: u32 = 33 * SEGMENT / 100", "illinois-linux", "alpha_min 0.3"),
    ("linux/illinois.rs", "ALPHA_MAX: u32 = 10 * SEGMENT", "ALPHA_MAX: u32 = 11 * SEGMENT", "illinois-linux", "alpha_max 10"),
    ("linux/illinois.rs", "let d_1 = delay.longest / 100;", "let d_1 = delay.longest / 110;", "illinois-linux", "alpha_max up to dm/100"),
    ("linux/illinois.rs", "win_thresh: number = 15.0,", "win_thresh: number = 16.0,", "illinois-linux", "win_thresh 15"),
    ("linux/illinois.rs", "theta: number = 5.0,", "theta: number = 6.0,", "illinois-linux", "theta 5"),
    ("law/delay/vegas.rs", "self.a(win.w) * n / win.w;", "self.a(win.w) * 1.1 * n / win.w;", "vegas", "a 1 with few samples"),
    ("startup/gamma/params.rs", "threshold: number = 1.0,", "threshold: number = 1.1,", "gamma", "threshold 1"),
    ("startup/limited.rs", "libm::floor(w / (0.5 * self.max_ssthresh))", "libm::floor(w / (0.55 * self.max_ssthresh))", "limited, gamma", "K: 0.5 max_ssthresh"),
    ("law/delay/fast.rs", "alpha: number = 200.0,", "alpha: number = 220.0,", "fast", "alpha 200"),
    ("law/delay/fast.rs", "gamma: number = 0.5,", "gamma: number = 0.55,", "fast", "gamma 0.5"),
    ("law/delay/fast.rs", "(2.0 * w).min(", "(2.2 * w).min(", "fast", "at most doubled"),
    ("law/delay/fast.rs", "ETA_SAMPLES: f64 = 3.0", "ETA_SAMPLES: f64 = 3.3", "fast", "averaging weight 3/w"),
    ("law/delay/fast.rs", "eta_max: number = 0.25,", "eta_max: number = 0.275,", "fast", "largest averaging weight 1/4"),
    ("law/delay/fast.rs", "gamma_ss: number = 1.0,", "gamma_ss: number = 1.1,", "fast", "start-up backlog 1"),
    ("law/delay/fast.rs", "Span::from_micros(750)", "Span::from_micros(825)", "fast", "mi_threshold 0.75 ms"),
    ("law/delay/lp.rs", "win.w += n / win.w;", "win.w += 1.1 * n / win.w;", "lp", "a 1"),
    ("law/delay/early.rs", "GAMMA: f64 = 0.125", "GAMMA: f64 = 0.1375", "lp, hstcp-lp", "smoothing 1/8"),
    ("law/delay/early.rs", "START_OVER: f64 = 2.0", "START_OVER: f64 = 2.2", "lp, hstcp-lp", "maximum after an indication 2"),
    ("law/delay/early.rs", "granularity: time = Span::from_millis(1)", "granularity: time = Span::from_micros(1100)", "lp, hstcp-lp", "granularity 1 ms"),
    ("law/delay/hslp.rs", "self.highspeed.increase(win, n, ev);", "self.highspeed.increase(win, 1.1 * n, ev);", "hstcp-lp", "a(w)"),
    ("law/delay/yeah.rs", "SCALABLE: f64 = 0.01", "SCALABLE: f64 = 0.011", "yeah", "per segment 0.01"),
    ("law/delay/yeah.rs", "let reno = 1.0 / win.w;", "let reno = 1.1 / win.w;", "yeah", "a 1 in slow mode"),
    ("law/delay/yeah.rs", "q_max: number = 80.0,", "q_max: number = 88.0,", "yeah", "q_max 80"),
    ("law/delay/yeah.rs", "PHI: u64 = 8", "PHI: u64 = 9", "yeah", "delay limit base/8"),
    ("law/delay/yeah.rs", "ZETA: u32 = 50", "ZETA: u32 = 55", "yeah", "fast rounds 50"),
    ("law/delay/veno.rs", "HALF_SPEED: f64 = 0.5", "HALF_SPEED: f64 = 0.55", "veno", "a when congested 0.5"),
    ("law/delay/veno.rs", "beta: number = 3.0,", "beta: number = 3.3,", "veno", "beta 3"),
    ("law/delay/ledbat.rs", "gain: number = 1.0,", "gain: number = 0.9,", "ledbat", "gain 1"),
    ("law/delay/ledbat.rs", "target: time = Span::from_millis(100)", "target: time = Span::from_millis(90)", "ledbat", "target 100 ms"),
    ("law/delay/ledbat.rs", "allowed_increase: number = 1.0,", "allowed_increase: number = 1.1,", "ledbat", "allowed_increase 1"),
    ("law/delay/ledbat.rs", "BASE_HISTORY: usize = 10", "BASE_HISTORY: usize = 11", "ledbat", "base history 10 min"),
    ("startup/hystart.rs", "TRAIN_GAP: Span = Span::from_millis(2)", "TRAIN_GAP: Span = Span::from_micros(2200)", "hystart", "ACK gap 2 ms"),
    ("startup/hystart.rs", "MIN_SAMPLES: u32 = 8", "MIN_SAMPLES: u32 = 9", "hystart", "samples 8"),
    ("startup/hystart.rs", "RTT_DIVISOR: u64 = 8", "RTT_DIVISOR: u64 = 9", "hystart, hystart++", "divisor 8"),
    ("startup/hystart.rs", "MIN_RTT_THRESH: Span = Span::from_millis(4)", "MIN_RTT_THRESH: Span = Span::from_micros(4400)", "hystart, hystart++", "least growth 4 ms"),
    ("startup/hystart.rs", "MAX_RTT_THRESH: Span = Span::from_millis(16)", "MAX_RTT_THRESH: Span = Span::from_micros(17_600)", "hystart, hystart++", "most growth 16 ms"),
    ("startup/hystart.rs", "low_window: number = 16.0,", "low_window: number = 17.6,", "hystart", "low_window 16"),
    ("startup/hystart.rs", "ack_delay: time = Span::from_millis(1)", "ack_delay: time = Span::from_micros(1100)", "hystart", "ack_delay 1 ms"),
    ("startup/hystart_pp.rs", "N_RTT_SAMPLE: u32 = 8", "N_RTT_SAMPLE: u32 = 9", "hystart++", "samples 8"),
    ("startup/hystart_pp.rs", "css_divisor: number = 4.0,", "css_divisor: number = 4.4,", "hystart++", "CSS divisor 4"),
    ("startup/hystart_pp.rs", "css_rounds: number = 5.0,", "css_rounds: number = 6.0,", "hystart++", "CSS rounds 5"),
]

# BBR: the rows of v3 count as caught by the draft's example cases as well, which need an endpoint
# (`crates/flow/tests/it/bbr`).
MODEL = [
    ("model/bbr/settings.rs", "startup_pacing_gain: number = 2.77,", "startup_pacing_gain: number = 3.05,", "bbr", "Startup pacing gain 2.77"),
    ("model/bbr/settings.rs", "drain_pacing_gain: number = 0.5,", "drain_pacing_gain: number = 0.55,", "bbr", "Drain pacing gain 0.5"),
    ("model/bbr/settings.rs", "probe_down_pacing_gain: number = 0.9,", "probe_down_pacing_gain: number = 0.81,", "bbr", "ProbeBW_DOWN pacing gain 0.9"),
    ("model/bbr/settings.rs", "probe_up_pacing_gain: number = 1.25,", "probe_up_pacing_gain: number = 1.375,", "bbr", "ProbeBW_UP pacing gain 1.25"),
    ("model/bbr/settings.rs", "default_cwnd_gain: number = 2.0,", "default_cwnd_gain: number = 2.2,", "bbr", "cwnd gain 2"),
    ("model/bbr/settings.rs", "probe_up_cwnd_gain: number = 2.25,", "probe_up_cwnd_gain: number = 2.475,", "bbr", "ProbeBW_UP cwnd gain 2.25"),
    ("model/bbr/settings.rs", "pacing_margin_percent: number = 1.0,", "pacing_margin_percent: number = 1.1,", "bbr", "pacing margin 1 %"),
    ("model/bbr/settings.rs", "loss_thresh: number = 0.02,", "loss_thresh: number = 0.022,", "bbr", "loss threshold 2 %"),
    ("model/bbr/settings.rs", "beta: number = 0.7,", "beta: number = 0.77,", "bbr", "kept on loss 0.7"),
    ("model/bbr/settings.rs", "headroom: number = 0.15,", "headroom: number = 0.165,", "bbr", "headroom 0.15"),
    ("model/bbr/settings.rs", "min_pipe_cwnd: number = 4.0,", "min_pipe_cwnd: number = 5.0,", "bbr", "smallest window 4"),
    ("model/bbr/settings.rs", "startup_full_loss_cnt: number = 6.0,", "startup_full_loss_cnt: number = 7.0,", "bbr", "losses that end Startup 6"),
    ("model/bbr/settings.rs", "extra_acked_filter_len: number = 10.0,", "extra_acked_filter_len: number = 11.0,", "bbr", "aggregation window 10 rounds"),
    ("model/bbr/settings.rs", "min_rtt_filter_len: time = Span::from_secs(10),", "min_rtt_filter_len: time = Span::from_secs(11),", "bbr", "RTT window 10 s"),
    ("model/bbr/settings.rs", "probe_rtt_cwnd_gain: number = 0.5,", "probe_rtt_cwnd_gain: number = 0.55,", "bbr", "ProbeRTT cwnd gain 0.5"),
    ("model/bbr/settings.rs", "probe_rtt_duration: time = Span::from_millis(200),", "probe_rtt_duration: time = Span::from_millis(220),", "bbr", "ProbeRTT 200 ms"),
    ("model/bbr/settings.rs", "probe_rtt_interval: time = Span::from_secs(5),", "probe_rtt_interval: time = Span::from_millis(5500),", "bbr", "ProbeRTT every 5 s"),
    ("model/bbr/signals.rs", "const GROWTH: f64 = 1.25;", "const GROWTH: f64 = 1.375;", "bbr", "growth per round 1.25"),
    ("model/bbr/signals.rs", "const ROUNDS: u32 = 3;", "const ROUNDS: u32 = 4;", "bbr", "rounds without growth 3"),
    ("model/bbr/startup.rs", "const DRAIN_ROUNDS: u32 = 3;", "const DRAIN_ROUNDS: u32 = 4;", "bbr", "rounds of Drain 3"),
    ("model/bbr/probe_bw.rs", "const PROBE_WAIT: Span = Span::from_secs(2);", "const PROBE_WAIT: Span = Span::from_millis(2200);", "bbr", "least time between probes 2 s"),
    ("model/bbr/probe_bw.rs", "const RENO_ROUNDS: f64 = 63.0;", "const RENO_ROUNDS: f64 = 70.0;", "bbr", "most rounds between probes 63"),
    ("model/bbr/probe_bw.rs", "rs.prior_inflight + self.send_quantum", "rs.inflight + self.send_quantum", "bbr", "in flight before an ACK"),
    ("model/bbr/control.rs", "const OFFLOAD_QUANTA: f64 = 3.0;", "const OFFLOAD_QUANTA: f64 = 3.3;", "bbr", "offload budget 3 quanta"),
    ("model/bbr/settings.rs", "startup_pacing_gain: 710.0 / 256.0,", "startup_pacing_gain: 781.0 / 256.0,", "bbr3-linux", "Startup pacing gain 2.77"),
    ("model/bbr/settings.rs", "drain_pacing_gain: 88.0 / 256.0,", "drain_pacing_gain: 97.0 / 256.0,", "bbr3-linux", "Drain pacing gain 0.34"),
    ("model/bbr/settings.rs", "probe_down_pacing_gain: 232.0 / 256.0,", "probe_down_pacing_gain: 209.0 / 256.0,", "bbr3-linux", "ProbeBW_DOWN pacing gain 0.906"),
    ("model/bbr/settings.rs", "loss_thresh: 5.0 / 256.0,", "loss_thresh: 6.0 / 256.0,", "bbr3-linux", "loss threshold 5/256"),
    ("model/bbr/settings.rs", "beta: 180.0 / 256.0,", "beta: 198.0 / 256.0,", "bbr3-linux", "kept on loss 0.70"),
    ("model/bbr/settings.rs", "headroom: 38.0 / 256.0,", "headroom: 42.0 / 256.0,", "bbr3-linux", "headroom 0.148"),
    ("model/bbr/rules.rs", "growth_at_every_ack: true,", "growth_at_every_ack: false,", "bbr3-linux", "growth at every ACK"),
    ("model/bbr/rules.rs", "target_has_budget: true,", "target_has_budget: false,", "bbr3-linux", "the target's room for bursts"),
    ("model/bbr/rules.rs", "restores_at_the_end: false,", "restores_at_the_end: true,", "bbr3-linux", "the window of before a timeout"),
    ("model/bbr/rules.rs", "heeds_marks: false,", "heeds_marks: true,", "bbr3-linux", "marks not heeded"),
    ("model/bbr/rules.rs", "whole: true,", "whole: false,", "bbr3-linux", "whole segments"),
    ("model/bbr/rules.rs", "heeds_samples: true,", "heeds_samples: false,", "bbr3-linux", "probes that ACKs' samples end"),
    ("model/bbr/rules.rs", "drain_forgets: true,", "drain_forgets: false,", "bbr3-linux", "Drain without Startup's signals"),
    ("model/bbr/rules.rs", "bw_at_once: true,", "bw_at_once: false,", "bbr3-linux", "the bandwidth of this ACK"),
    ("model/bbr/rules.rs", "inflight_at_departure: true,", "inflight_at_departure: false,", "bbr3-linux", "in flight at the next departure"),
    ("linux/bbr/mod.rs", "HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1", "HIGH_GAIN: u32 = UNIT * 3174 / 1000 + 1", "bbr-linux", "Startup gain 2.885"),
    ("linux/bbr/mod.rs", "DRAIN_GAIN: u32 = UNIT * 1000 / 2885", "DRAIN_GAIN: u32 = UNIT * 1100 / 2885", "bbr-linux", "Drain gain 1/2.885"),
    ("linux/bbr/mod.rs", "CWND_GAIN: u32 = UNIT * 2", "CWND_GAIN: u32 = UNIT * 22 / 10", "bbr-linux", "cwnd gain 2"),
    ("linux/bbr/mod.rs", "[u32; 8] = [ UNIT * 5 / 4,", "[u32; 8] = [ UNIT * 11 / 8,", "bbr-linux", "ProbeBW up 5/4"),
    ("linux/bbr/mod.rs", "UNIT * 3 / 4,", "UNIT * 33 / 40,", "bbr-linux", "ProbeBW down 3/4"),
    ("linux/bbr/mod.rs", "CYCLE_RAND: u32 = 7", "CYCLE_RAND: u32 = 8", "bbr-linux", "first phase, one of 7"),
    ("linux/bbr/mod.rs", "CYCLE.len() as u32 + 2", "CYCLE.len() as u32 + 3", "bbr-linux", "bandwidth window 10 rounds"),
    ("linux/bbr/mod.rs", "MIN_RTT_SECONDS: u32 = 10", "MIN_RTT_SECONDS: u32 = 11", "bbr-linux", "RTT window 10 s"),
    ("linux/bbr/mod.rs", "PROBE_RTT_MS: u32 = 200", "PROBE_RTT_MS: u32 = 220", "bbr-linux", "ProbeRTT 200 ms"),
    ("linux/bbr/mod.rs", "MIN_WINDOW: u32 = 4", "MIN_WINDOW: u32 = 5", "bbr-linux", "smallest window 4"),
    ("linux/bbr/mod.rs", "FULL_GROWTH: u32 = UNIT * 5 / 4", "FULL_GROWTH: u32 = UNIT * 11 / 8", "bbr-linux", "growth per round 5/4"),
    ("linux/bbr/mod.rs", "FULL_ROUNDS: u32 = 3", "FULL_ROUNDS: u32 = 4", "bbr-linux", "rounds without growth 3"),
    ("linux/bbr/mod.rs", "MARGIN_PERCENT: u64 = 1", "MARGIN_PERCENT: u64 = 2", "bbr-linux", "pacing margin 1 %"),
    ("linux/bbr/mod.rs", "MIN_TSO_RATE: u64 = 1_200_000", "MIN_TSO_RATE: u64 = 1_320_000", "bbr-linux", "bursts above 1.2 Mbit/s"),
    ("linux/bbr/mod.rs", "BURSTS: u32 = 3", "BURSTS: u32 = 4", "bbr-linux", "bursts that the window covers 3"),
    ("linux/bbr/mod.rs", "NOMINAL_RTT_US: u64 = 1000", "NOMINAL_RTT_US: u64 = 1100", "bbr-linux", "RTT before a sample 1 ms"),
    ("linux/bbr/mod.rs", "AGGREGATION_US: u64 = 100_000", "AGGREGATION_US: u64 = 110_000", "bbr-linux", "most aggregation 100 ms"),
    ("linux/bbr/aggregation.rs", "HALF_ROUNDS: u32 = 5", "HALF_ROUNDS: u32 = 6", "bbr-linux", "aggregation window 2 x 5 rounds"),
    ("linux/bbr/policer.rs", "INTERVAL_ROUNDS: u32 = 4", "INTERVAL_ROUNDS: u32 = 5", "bbr-linux", "policer: interval 4 rounds"),
    ("linux/bbr/policer.rs", "LOSSY: u64 = 50", "LOSSY: u64 = 55", "bbr-linux", "policer: losses 50/256"),
    ("linux/bbr/policer.rs", "RATIO: u32 = UNIT / 8", "RATIO: u32 = UNIT / 7", "bbr-linux", "policer: rates within 1/8"),
    ("linux/bbr/policer.rs", "APART: u64 = 4000 / 8", "APART: u64 = 4400 / 8", "bbr-linux", "policer: rates within 4 kbit/s"),
    ("linux/bbr/policer.rs", "OBEYED_ROUNDS: u32 = 48", "OBEYED_ROUNDS: u32 = 53", "bbr-linux", "policer: obeyed 48 rounds"),
]

# Entries without a constant of their own (rules of sending, the standard start-up, the kernel's
# Reno, the place of a user's module), or whose constants a law's mutants change; `udt` has none
# yet.
WITHOUT = {
    "burst", "paced", "spread", "spread-variable", "standard", "hybla-start", "reno-linux",
    "own-linux", "udt",
}

HEADER = """# Mutants

Each row changes one constant of one algorithm by 10 % (a whole number by one, if that is more) and names a test that
notices. Made by `scripts/mutants.py --markdown docs/mutants.md`; the script fails if a mutant survives.
"""


def main():
    args = parse_arguments()
    work = pathlib.Path(args.scratch)
    mutants = [("decrease", *m) for m in DECREASE] + [("increase", *m) for m in INCREASE]
    mutants += [("model", *m) for m in MODEL]
    order = [(law, kind, what) for kind, _, _, _, law, what in mutants]
    if args.kind:
        mutants = [m for m in mutants if m[0] == args.kind]
    if args.law:
        unknown = sorted(set(args.law) - known_names())
        if unknown:
            print(f"no law or start-up of {SOURCE}: {', '.join(unknown)}", file=sys.stderr)
            near = {n for law in unknown for n in difflib.get_close_matches(law, known_names(), 1)}
            if near:
                print(f"hint: did you mean {', '.join(sorted(near))}?", file=sys.stderr)
            return 2
        tested = {name for m in mutants for name in m[4].split(", ")}
        without = [law for law in args.law if law not in tested]
        if without:
            print(f"no mutant of {', '.join(without)}: add rows to {sys.argv[0]}", file=sys.stderr)
            return 1
        mutants = [m for m in mutants if set(m[4].split(", ")) & set(args.law)]
    copy_workspace(work)
    if args.check:
        stale = [m for m in mutants if locate(work, m[1], m[2]) is None]
        for m in stale:
            print(f"does not apply: {m[1]}: {m[2]}")
        print(f"{len(mutants)} mutants, {len(stale)} do not apply")
        tested = {name for m in DECREASE + INCREASE + MODEL for name in m[3].split(", ")}
        bare = sorted(registered() - tested - WITHOUT)
        if bare:
            print(f"no mutant of {', '.join(bare)}: add rows to {sys.argv[0]}")
        return 1 if stale or bare else 0
    failed = run_tests(work, args)
    if failed:
        print("the tests fail without a mutant:", ", ".join(failed), file=sys.stderr)
        return 2
    rows = []
    for kind, file, text, replacement, law, what in mutants:
        began = time.monotonic()
        verdict = try_mutant(work, args, file, text, replacement, kind == "model")
        rows.append((law, kind, what, verdict))
        print(f"{law:20} {kind:9} {what:38} {verdict}  ({time.monotonic() - began:.0f} s)", flush=True)
    bad = [r for r in rows if r[3].isupper()]
    print(f"{len(rows)} mutants, {len(bad)} not caught")
    if args.markdown:
        write_markdown(pathlib.Path(args.markdown), rows, order)
    return 1 if bad else 0


def registered():
    """Names of the entries of the registry."""
    named = set()
    for path in (ROOT / SOURCE).rglob("*.rs"):
        named |= set(re.findall(r'Entry \{\n    name: "([a-z0-9+-]+)"', path.read_text()))
    return named


def known_names():
    """Names that an entry of the registry has, and laws of which a mutant is about a part."""
    named = {name for m in DECREASE + INCREASE + MODEL for name in m[3].split(", ")}
    for path in (ROOT / SOURCE).rglob("*.rs"):
        named |= set(re.findall(r'\bname: "([a-z0-9+-]+)"', path.read_text()))
    return named


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--law", action="append", help="only mutants of this law or start-up; may be repeated")
    parser.add_argument("--kind", choices=["decrease", "increase", "model"])
    parser.add_argument("--scratch", default=str(ROOT / "target" / "mutants"), help="where the copy is built")
    parser.add_argument("--quick", action="store_true", help="integration tests only for what unit tests miss")
    parser.add_argument("--jobs", default=None, help="cargo -j")
    parser.add_argument("--markdown", help="write the table to this file")
    parser.add_argument("--check", action="store_true", help="only check that every mutant applies; builds nothing")
    return parser.parse_args()


def copy_workspace(work, crates=CRATES):
    """Copies manifests and the crates under test; keeps the copy's build directory."""
    work.mkdir(parents=True, exist_ok=True)
    manifest = (ROOT / "Cargo.toml").read_text()
    members = ", ".join(f'"{crate}"' for crate in crates)
    manifest = re.sub(r"^(members|default-members) = \[[^\]]*\]", rf"\1 = [{members}]", manifest, flags=re.M)
    (work / "Cargo.toml").write_text(manifest)
    if (ROOT / "Cargo.lock").exists():
        shutil.copy(ROOT / "Cargo.lock", work / "Cargo.lock")
    # A test compares its example with the law that it compiles.
    shutil.copy(ROOT / "CONTRIBUTING.md", work / "CONTRIBUTING.md")
    for crate in crates:
        shutil.rmtree(work / crate, ignore_errors=True)
        # New time stamps: cargo must not take the last mutant's build for this source.
        shutil.copytree(ROOT / crate, work / crate, copy_function=shutil.copyfile)


def locate(work, file, text, source_folder=SOURCE):
    """The place of `text` outside the unit tests of `file`; None unless there is exactly one."""
    path = work / source_folder / file
    if not path.exists():
        return None
    source = path.read_text()
    pattern = r"\s*".join(re.escape(part) for part in text.split())
    code = source.split("#[cfg(test)]\nmod ")[0]
    found = list(re.finditer(pattern, code))
    return (path, source, found[0]) if len(found) == 1 else None


def try_mutant(work, args, file, text, replacement, model=False):
    """Name of a test that fails with the mutant, or a word in capitals."""
    place = locate(work, file, text)
    if place is None:
        return "DOES NOT APPLY"
    path, source, match = place
    path.write_text(source[: match.start()] + replacement + source[match.end() :])
    try:
        failed = run_tests(work, args, model)
    finally:
        path.write_text(source)
    if not failed:
        return "SURVIVED"
    return failed[0] if len(failed) == 1 else f"{failed[0]} and {len(failed) - 1} more"


def failing(printed):
    return re.findall(r"^    ([a-z_0-9]+(?:::[a-z_0-9]+)+)$", printed, re.MULTILINE)


def run_tests(work, args, model=False):
    """Names of failing tests; empty if all pass."""
    cc = ["cargo", "test", "-q", "-p", "fullpipe-cc"]
    commands = [[*cc, "--lib", "--test", "it", "--no-fail-fast"]]
    if args.quick:
        # Unit tests catch most mutants: nothing else is built for these.
        commands = [[*cc, "--lib"], [*cc, "--test", "it"]]
    if model:
        commands.append(["cargo", "test", "-q", "-p", "fullpipe-flow", "--test", "it", "--", "bbr"])
    quick = {
        "CARGO_TARGET_DIR": str(work / "target"),
        "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
        "CARGO_PROFILE_DEV_DEBUG": "0",
        "RUST_BACKTRACE": "0",
    }
    run = {"cwd": work, "env": {**os.environ, **quick}, "capture_output": True, "text": True}
    for command in commands:
        jobs = ["-j", args.jobs] if args.jobs else []
        done = subprocess.run([*command[:2], *jobs, *command[2:]], **run)
        if done.returncode != 0:
            break
    else:
        return []
    names = failing(done.stdout)
    # A property test is a weaker witness than a number: name it only if nothing else failed.
    names = sorted(dict.fromkeys(names), key=lambda n: n.startswith(("laws::", "model::")))
    if not names:
        sys.exit(f"cargo test failed without a failing test:\n{done.stderr[-3000:]}")
    return names


def write_markdown(path, rows, order):
    """Rows that were tried, in the order of the tables above; of the others those that stand there
    already."""
    # The section of scripts/defects.py stays.
    rest = path.read_text().partition("\n## ") if path.exists() else ("", "", "")
    tried = {}
    for line in rest[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) == 4:
            law, what, kind, caught = cells
            tried[law, kind, what] = caught
    for law, kind, what, verdict in rows:
        caught = verdict if verdict.isupper() else re.sub(r"^(\S+)", r"`\1`", verdict)
        tried[law, kind, what] = caught
    for law, kind, what in sorted(set(tried) - set(order) - {("law", "kind", "constant")}):
        print(f"dropped from the page, as there is no such mutant: {law}, {kind}, {what}")
    lines = [HEADER, "| law | constant | kind | caught by |", "|---|---|---|---|"]
    for law, kind, what in order:
        if (law, kind, what) in tried:
            lines.append(f"| {law} | {what} | {kind} | {tried[law, kind, what]} |")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n" + "".join(rest[1:]))


if __name__ == "__main__":
    sys.exit(main())
