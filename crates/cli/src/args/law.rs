//! `fullpipe law`: stacks, windows, and the path that fixes round-trip time and segment size.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_cc::StackSpec;
use fullpipe_units::{Rate, Span};

use super::figure::Print;
use super::parse::{quantity, round_trip};

/// `fullpipe law`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Law {
    /// Stacks, spelled as in a scenario
    #[arg(required = true, value_name = "STACK", value_parser = stack)]
    pub stacks: Vec<StackSpec>,

    /// Windows at the loss, segments
    #[arg(long, value_name = "W,...", value_delimiter = ',', default_values_t = WINDOWS, value_parser = window, allow_negative_numbers = true)]
    pub window: Vec<f64>,

    /// Round-trip time
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = round_trip)]
    pub rtt: Span,

    /// Rate of a path whose window is to be among them: rate x rtt in packets of mss + 52 bytes
    #[arg(long, value_name = "RATE", value_parser = quantity::<Rate>)]
    pub rate: Option<Rate>,

    /// Segment size, bytes of payload
    #[arg(long, value_name = "BYTES", default_value_t = 1448, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub mss: u32,

    /// Ticks per second of the clock that kernel modules read
    #[arg(long, value_name = "HZ", default_value_t = 250, value_parser = clap::value_parser!(u32).range(100..=1000))]
    pub hz: u32,

    /// Also draw a picture: .svg, .pdf or .png
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,

    /// Panels of the picture [default: all]
    #[arg(
        long,
        value_enum,
        value_name = "PANEL,...",
        value_delimiter = ',',
        requires = "figure"
    )]
    pub panel: Vec<LawPanel>,

    #[command(flatten)]
    pub print: Print,

    /// Format on stdout
    #[arg(long, value_enum, default_value_t = LawFormat::Table)]
    pub format: LawFormat,
}

/// What a panel of the picture of `fullpipe law` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LawPanel {
    /// Growth a(w), mean of a cycle
    A,
    /// Decrease b(w)
    B,
    /// Response function w(p)
    Response,
    /// Recovery from one loss
    Recovery,
}

/// Format of `fullpipe law`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LawFormat {
    /// For people
    Table,
    /// For spreadsheets and plots: a row per stack and window
    Csv,
    /// For programs
    Json,
}

/// Description of `fullpipe law`.
pub(super) const ABOUT: &str = "\
Print what a stack does with a loss, window by window: a(w), b(w), response function.

The stack itself is driven, not a formula of it: alone on a path of constant round-trip time it
loses one segment each time its window reaches W, and the repair takes no time (the sawtooth of
Mathis et al. 1997 and RFC 3649). There is no queue: laws that read the delay see none.

  a            growth per round trip: in the first one after a loss, mean, in the last before it
  b            fraction of the window that a loss takes
  recovery     until the window is back, in round trips and in time
  loss rate    losses per segment that hold the window there (p)
  mean window  at that loss rate: the response function w(p)
  goodput      mean window x mss / rtt, at most what --rate carries
  Reno flows   that together have this mean window at this loss rate, sqrt(3/(2p)) each: a formula
               for large windows, which Reno's own cycle of 10 segments misses by a seventh";

/// Windows of the table, segments.
const WINDOWS: [f64; 13] = [
    10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0,
    100_000.0,
];

pub(super) fn stack(text: &str) -> Result<StackSpec, String> {
    StackSpec::parse(text).map_err(|e| match e.hint() {
        Some(hint) => format!("{e}\n\n  hint: {hint}"),
        None => e.to_string(),
    })
}

fn window(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(w) if (4.0..=1e7).contains(&w) => Ok(w),
        _ => Err("expected a number of segments, from 4 to 10000000".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  fullpipe law highspeed
  fullpipe law reno highspeed scalable cubic --rate 10Gbit/s --rtt 100ms --figure laws.svg
  fullpipe law reno highspeed --figure b.pdf --panel b --width 84mm --no-title
  fullpipe law 'cubic(beta=0.8)' --window 100,1000,83333 --rtt 20ms
  fullpipe law cubic cubic-linux --format csv > laws.csv";
