//! Reordering must not go on looking like loss.

use crate::recovery::{SEGMENT_BITS, flow, simulate};

/// A path on which some packets are late by the same time.
#[derive(Debug)]
struct Path {
    rate_mbps: f64,
    rtt_ms: f64,
    buffer_bdp: f64,
    /// Probability that a packet is late.
    probability: f64,
    extra_ms: f64,
    stack: &'static str,
}

const SECONDS: f64 = 30.0;

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between `low` and `high`, each factor as likely as the next.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let part = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low * (high / low).powf(part)
    }

    /// Packets late by `extra` RTTs, and by three packets at least.
    fn path(&mut self, extra: (f64, f64)) -> Path {
        let (rtt_ms, rate_mbps) = (self.between(10.0, 200.0), self.between(5.0, 100.0));
        let packet_ms = 12.0 / rate_mbps;
        Path {
            rate_mbps,
            rtt_ms,
            buffer_bdp: self.between(0.5, 2.0),
            probability: self.between(0.001, 0.05),
            extra_ms: (rtt_ms * self.between(extra.0, extra.1)).max(3.0 * packet_ms),
            stack: ["reno", "cubic"][(self.next() % 2) as usize],
        }
    }
}

/// Outcome of the flow.
struct Ran {
    goodput_mbps: f64,
    /// Segments that came late.
    late: f64,
    undone: f64,
    /// Reductions that stood.
    stood: f64,
}

impl Path {
    fn run(&self, preset: &str) -> Ran {
        let text = format!(
            r#"
name = "late"
duration = "{SECONDS}s"
[path]
rate = "{}Mbit/s"
rtt = "{}ms"
buffer = "{}BDP"
reorder = {{ probability = {}, extra = "{}ms" }}
[[flow]]
stack = "{}"
preset = "{preset}"
[measure]
trace = "off"
"#,
            self.rate_mbps,
            self.rtt_ms,
            self.buffer_bdp,
            self.probability,
            self.extra_ms,
            self.stack
        );
        let t = flow(&text, &[]).totals;
        assert!(t.out_of_order > 0, "{preset} {self:?}");
        Ran {
            goodput_mbps: t.delivered as f64 * SEGMENT_BITS / SECONDS / 1e6,
            late: t.sent as f64 * self.probability,
            undone: t.undone as f64,
            stood: (t.loss_events - t.undone) as f64,
        }
    }

    /// Mbit/s of Reno, whose receiver acknowledges every other segment, had each late segment been
    /// lost (Padhye et al. 1998, equation 20).
    fn if_late_were_lost(&self) -> f64 {
        let per_rtt = (3.0 / (2.0 * 2.0 * self.probability)).sqrt();
        (per_rtt * SEGMENT_BITS / (self.rtt_ms / 1e3) / 1e6).min(self.rate_mbps)
    }
}

/// A recovery that a late segment began is undone when it arrives, and teaches RACK: the first one
/// that there is reordering, so that it waits for a quarter of the smallest RTT (RFC 8985 section
/// 6.2 step 4), the DSACK of each of the others a quarter more. The DSACK comes a round trip after
/// the retransmission, so that one more recovery may begin meanwhile. After 16 recoveries without
/// a DSACK all starts over.
fn spurious_reductions(path: &Path, stood: f64) -> f64 {
    let quarters = (4.0 * path.extra_ms / path.rtt_ms).ceil();
    2.0 * (1.0 + quarters) * (1.0 + (stood / 16.0).floor())
}

/// RACK's window reaches SRTT: what is late by less is waited for in the end.
#[test]
fn lateness_below_a_round_trip_is_learned() {
    let mut dice = Dice(1);
    for _ in 0..40 {
        let path = dice.path((0.1, 0.8));
        for preset in ["2026", "linux"] {
            let ran = path.run(preset);
            let most = spurious_reductions(&path, ran.stood);
            assert!(
                ran.undone <= most,
                "{preset} {path:?}: {} undone, {most}",
                ran.undone
            );
        }
    }
}

/// The same beside another flow, whose queue adds to the RTT: a sixth of a round trip late.
#[test]
fn neighbours_learn_it_too() {
    let text = r#"
name = "late"
duration = "30s"
[path]
rate = "50Mbit/s"
rtt = "60ms"
buffer = "1BDP"
reorder = { probability = 0.02, extra = "10ms" }
[[flow]]
name = "a"
stack = "cubic"
[[flow]]
name = "b"
stack = "reno"
[measure]
trace = "off"
"#;
    for preset in ["2026", "linux"] {
        let set = [("flow.a.preset", preset), ("flow.b.preset", preset)];
        for flow in simulate(text, &set).flows {
            let t = flow.totals;
            let most = 4 * (1 + (t.loss_events - t.undone) / 16);
            assert!(t.undone <= most, "{preset} {t:?}");
        }
    }
}

/// Nothing is waited for longer than SRTT (RFC 8985 section 6.2 step 4): what is late by more may
/// begin a recovery each time, and no more than that.
#[test]
fn each_late_segment_is_one_spurious_reduction_at_most() {
    let mut dice = Dice(2);
    for _ in 0..20 {
        let path = dice.path((0.8, 1.5));
        for preset in ["2026", "linux"] {
            let ran = path.run(preset);
            let most = ran.late + 5.0 * ran.late.sqrt();
            assert!(
                ran.undone <= most,
                "{preset} {path:?}: {} undone, {most}",
                ran.undone
            );
        }
    }
}

/// A late segment costs no more than a lost one; where RACK learns to wait and reductions are
/// undone, next to nothing. Reno fills three quarters of a path without a buffer.
#[test]
fn lateness_costs_less_than_loss() {
    let mut dice = Dice(3);
    for n in 0..40 {
        let path = dice.path((0.1, if n % 2 == 0 { 0.8 } else { 1.5 }));
        for preset in ["2003", "2026", "linux"] {
            let ran = path.run(preset);
            let least = match (preset, n % 2) {
                ("2026", 0) => 0.5 * path.rate_mbps,
                _ => 0.5 * path.if_late_were_lost(),
            };
            let got = ran.goodput_mbps;
            assert!(
                got >= least,
                "{preset} {path:?}: {got} Mbit/s, at least {least}"
            );
            assert!(preset != "2003" || ran.undone == 0.0, "{path:?}");
        }
    }
}
