//! Random scenarios of one flow for the properties: paths whose truth is known.

use std::fmt::Write;

use fullpipe_cc::{Kind, registry};
use fullpipe_run::{Outcome, RunSpec};
use fullpipe_scenario::{Overrides, Scenario};
use proptest::prelude::*;

/// What the path does to packets beside queueing and dropping them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trouble {
    /// Nothing.
    None,
    /// Single packets arrive so much later, ms, with this probability.
    Reorder(f64, u64),
    /// A varying delay, ms, in order.
    Jitter(u64),
    /// Nothing is transmitted for so long, ms.
    Outage(u64),
    /// The rate falls to a part of itself.
    Slower(u64),
}

/// One scenario.
#[derive(Clone, Debug)]
pub struct Case {
    pub preset: &'static str,
    pub stack: String,
    pub recovery: Option<&'static str>,
    pub kbps: u64,
    pub rtt_ms: u64,
    /// Packets.
    pub buffer: u64,
    pub queue: &'static str,
    /// Of data, while it is not clean.
    pub loss: f64,
    /// Bursts: lost packets in a row, mean; 1: none.
    pub burst: u64,
    /// Of ACKs, while it is not clean.
    pub ack_loss: f64,
    /// These segments are lost once.
    pub drops: Vec<u64>,
    pub trouble: Trouble,
    /// From then on nothing is lost at random, ms.
    pub clean_ms: u64,
    pub duration_ms: u64,
    /// Segments.
    pub size: Option<u64>,
    pub window: Option<u64>,
    pub delayed_ack: bool,
    pub ack_every: u64,
    pub timestamps: bool,
    pub frto: bool,
}

/// Every window law, kernel module and model by its plain name.
pub fn stacks() -> impl Strategy<Value = String> {
    let whole = |k: Kind| matches!(k, Kind::Law | Kind::Module | Kind::Model);
    let names: Vec<String> = registry::entries()
        .filter(|e| whole(e.kind))
        .map(|e| e.name.to_owned())
        .collect();
    prop::sample::select(names)
}

pub fn presets() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["2003", "2026", "linux"][..])
}

pub fn queues() -> impl Strategy<Value = &'static str> {
    let droptail = ["droptail"; 4];
    let early = ["red", "adaptive-red", "pie", "codel", "fq-codel"];
    prop::sample::select([&droptail[..], &early[..]].concat())
}

pub fn rates() -> impl Strategy<Value = f64> {
    prop::sample::select(&[0.0, 0.0, 0.001, 0.01, 0.05, 0.2][..])
}

impl Case {
    /// Packets that fill the path, at least one.
    pub fn bdp(&self) -> u64 {
        (self.kbps * self.rtt_ms / 12_000).max(1)
    }

    /// Time that a packet waits in a full buffer, ms.
    pub fn queueing_ms(&self) -> f64 {
        self.buffer as f64 * 12_000.0 / self.kbps as f64
    }

    /// The scenario file that has these settings.
    pub fn text(&self) -> String {
        let mut t = String::from("name = \"property\"\n");
        let mut line = |text: String| writeln!(t, "{text}").unwrap();
        line(format!("duration = \"{}ms\"", self.duration_ms));
        line("[path]".into());
        line(format!("rate = \"{}kbit/s\"", self.kbps));
        line(format!("rtt = \"{}ms\"", self.rtt_ms));
        line(format!("buffer = \"{} packets\"", self.buffer));
        line(format!("queue = \"{}\"", self.queue));
        let mut changes = Vec::new();
        if self.loss > 0.0 {
            match self.burst {
                1 => line(format!("loss = {}", self.loss)),
                n => line(format!(
                    "loss = {{ model = \"gilbert-elliott\", to_bad = {}, to_good = {} }}",
                    self.loss / n as f64,
                    1.0 / n as f64
                )),
            }
            changes.push(format!("{{ at = \"{}ms\", loss = 0 }}", self.clean_ms));
        }
        let at = self.clean_ms / 2;
        match self.trouble {
            Trouble::None => {}
            Trouble::Reorder(p, ms) => {
                line(format!(
                    "reorder = {{ probability = {p}, extra = \"{ms}ms\" }}"
                ));
            }
            Trouble::Jitter(ms) => line(format!("jitter = \"{ms}ms\"")),
            Trouble::Outage(ms) => {
                changes.insert(0, format!("{{ at = \"{at}ms\", outage = \"{ms}ms\" }}"));
            }
            Trouble::Slower(part) => changes.insert(
                0,
                format!(
                    "{{ at = \"{at}ms\", rate = \"{}kbit/s\" }}",
                    self.kbps / part
                ),
            ),
        }
        if !changes.is_empty() {
            line(format!("schedule = [{}]", changes.join(", ")));
        }
        line("[[flow]]".into());
        line(format!("preset = \"{}\"", self.preset));
        line(format!("stack = \"{}\"", self.stack));
        if let Some(recovery) = self.recovery {
            line(format!("recovery = \"{recovery}\""));
        }
        if let Some(window) = self.window {
            line(format!("window = \"{window} segments\""));
        }
        if let Some(size) = self.size {
            line(format!("size = \"{size} segments\""));
        }
        line(format!("delayed_ack = {}", self.delayed_ack));
        if self.delayed_ack && self.ack_every > 1 {
            line(format!("ack_every = {}", self.ack_every));
        }
        line(format!("timestamps = {}", self.timestamps));
        if !self.frto {
            line("frto = false".into());
        }
        if !self.drops.is_empty() {
            line(format!("drop = {{ segment = {:?} }}", self.drops));
        }
        if self.ack_loss > 0.0 {
            line("[[link]]".into());
            line("name = \"home\"".into());
            line(format!("delay = \"{}us\"", self.rtt_ms * 500));
            line(format!("loss = {}", self.ack_loss));
            line("loss_of_acks = true".into());
            line(format!(
                "schedule = [{{ at = \"{}ms\", loss = 0 }}]",
                self.clean_ms
            ));
            line("[[route]]".into());
            line("flow = \"main\"".into());
            line("forward = [\"bottleneck\"]".into());
            line("back = [\"home\"]".into());
        }
        line("[measure]".into());
        line("trace = \"full\"".into());
        t
    }

    pub fn spec(&self) -> RunSpec {
        let text = self.text();
        let scenario = Scenario::parse(&text, "property.toml", &Overrides::default());
        let scenario = scenario.unwrap_or_else(|e| panic!("{text}\n{e}"));
        scenario.cases[0].run_spec(1)
    }

    pub fn run(&self) -> Outcome {
        fullpipe_sim::run(&self.spec()).unwrap_or_else(|e| panic!("{}\n{e}", self.text()))
    }
}

prop_compose! {
    /// A long flow, losses and queues of every kind, until `clean_ms`.
    pub fn any()(
        preset in presets(),
        stack in stacks(),
        recovery in prop_oneof![
            4 => Just(None),
            1 => prop::sample::select(&[Some("rack"), Some("sack"), Some("newreno")][..]),
        ],
        kbps in 500u64..20_000,
        rtt_ms in prop_oneof![3 => 5u64..120, 1 => 120u64..700],
        room in prop_oneof![2 => 2u64..20, 3 => 20u64..400],
        queue in queues(),
        (loss, ack_loss) in (rates(), rates()),
        burst in prop_oneof![3 => Just(1), 1 => 2u64..12],
        drops in prop::collection::vec(10u64..2_000, 0..6),
        window in prop::option::weighted(0.3, 1u64..80),
        delayed_ack in any_bool(),
        ack_every in prop_oneof![3 => Just(2), 1 => 2u64..5],
        (timestamps, frto) in (any_bool(), any_bool()),
        duration_ms in 3_000u64..9_000,
    ) -> Case {
        let mut drops = drops;
        drops.sort_unstable();
        drops.dedup();
        Case {
            preset, stack, recovery, kbps, rtt_ms,
            buffer: room, queue, loss, burst, ack_loss, drops,
            trouble: Trouble::None,
            clean_ms: duration_ms,
            duration_ms,
            size: None,
            window, delayed_ack, ack_every, timestamps, frto,
        }
    }
}

fn any_bool() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.8)
}

/// What may come to a path beside losses.
pub fn troubles() -> impl Strategy<Value = Trouble> {
    prop_oneof![
        Just(Trouble::None),
        (0.001..0.2, 1u64..60).prop_map(|(p, ms)| Trouble::Reorder(p, ms)),
        (1u64..60).prop_map(Trouble::Jitter),
        (100u64..3_000).prop_map(Trouble::Outage),
        (2u64..20).prop_map(Trouble::Slower),
    ]
}
