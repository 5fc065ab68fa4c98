//! `fullpipe figure`: what is drawn of a result, and how it is printed.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, ValueEnum};
use fullpipe_report::figure::asked::Kind;
use fullpipe_report::figure::{Font, Range, Ranges, Style};

use super::parse::{at_least_one, key_value, millimetres};

/// `fullpipe figure`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub struct Figure {
    /// Result directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// What is drawn
    #[arg(value_enum, value_name = "KIND")]
    pub kind: Drawn,

    /// Metric of a matrix, of bars [default: goodput_mbps] or of a distribution, or an expression
    /// over metrics; of tables of flows, traffic and runs their columns, and may be repeated
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,

    /// Flow, traffic or link that is drawn
    #[arg(long, value_name = "NAME")]
    pub of: Option<String>,

    /// Key of [matrix] whose values are the lines of a picture, or the rows of a matrix, as
    /// `path.rtt` or `rtt`; every combination of the others is a panel or a column [default: what
    /// competes]
    #[arg(long, value_name = "KEY")]
    pub lines: Option<String>,

    /// Only cases with this parameter, as `path.rtt=20ms` or `rtt=20ms`; may be repeated
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = key_value)]
    pub only: Vec<(String, String)>,

    /// Seed of what is drawn over time [default: the first]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// File; its ending says the form: .svg, .pdf, .png, .csv, and of tables and matrices .tex and
    /// .md; `-` is stdout, an SVG or CSV [default: KIND.svg in DIR/figures, a table on stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Part of the horizontal axis that is drawn, as `10:20`, `10:` or `:20`, in its unit
    #[arg(long, value_name = "FROM:TO", value_parser = str::parse::<Range>)]
    #[arg(allow_hyphen_values = true)]
    pub x_range: Option<Range>,

    /// Part of the vertical axis that is drawn; an open end is that of what `--x-range` leaves
    #[arg(long, value_name = "FROM:TO", value_parser = str::parse::<Range>)]
    #[arg(allow_hyphen_values = true)]
    pub y_range: Option<Range>,

    /// Panels side by side [default: as many as the width has room for]
    #[arg(long, value_name = "N", value_parser = at_least_one::<NonZeroUsize>)]
    pub columns: Option<NonZeroUsize>,

    #[command(flatten)]
    pub print: Print,
}

impl Figure {
    /// The parts of the axes; all of them by default.
    pub fn ranges(&self) -> Ranges {
        Ranges {
            x: self.x_range.unwrap_or_default(),
            y: self.y_range.unwrap_or_default(),
        }
    }
}

/// Options of size, letters and colours, of every command that writes a picture.
#[derive(Clone, Debug, ClapArgs)]
pub struct Print {
    /// Width on paper, as `84mm`, `3.3in` or `17.4cm`; the letters are of one size then
    #[arg(long, value_name = "WIDTH", value_parser = millimetres)]
    pub width: Option<f64>,

    /// Height on paper, beside `--width` [default: what the picture takes]
    #[arg(long, value_name = "HEIGHT", value_parser = millimetres, requires = "width")]
    pub height: Option<f64>,

    /// Font: a family such as Times or Helvetica, one of its metrics taking its place, or a file
    /// [default: the bundled Ubuntu]
    #[arg(long, value_name = "FAMILY|FILE", value_parser = Font::parse)]
    pub font: Option<Font>,

    /// Size of the letters on paper of this `--width`, points
    #[arg(long, value_name = "POINTS", default_value_t = 9.0, value_parser = points)]
    #[arg(requires = "width")]
    pub font_size: f64,

    /// Without headline: a paper has a caption
    #[arg(long)]
    pub no_title: bool,

    /// Greys and dashes instead of colours
    #[arg(long)]
    pub grey: bool,
}

impl Print {
    /// The same as the drawing takes it.
    pub fn style(&self) -> Style {
        Style {
            width_mm: self.width,
            height_mm: self.height,
            font: self.font.clone(),
            size_pt: self.font_size,
            columns: None,
            title: !self.no_title,
            grey: self.grey,
        }
    }
}

/// Argument of `fullpipe figure`: a picture, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// A figure, of crate `report`.
    Picture(Kind),
    /// One of the tables that `run` prints, too.
    Table(TableKind),
}

/// The tables of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableKind {
    /// The table of flows, as `run` prints it; as CSV every metric with its interval
    Table,
    /// The table of short flows, datagrams and pings; as CSV every metric with its interval
    Traffic,
    /// The table of links: waits, queues, drops; as CSV every metric with its interval
    Links,
    /// A row for each flow and seed with every metric, for a spreadsheet or for statistics
    Runs,
    /// The expectations with what was observed
    Expectations,
}

impl TableKind {
    /// The plural of a row, as messages name it: a result "has no flows".
    pub fn of(self) -> &'static str {
        match self {
            Self::Table => "flows",
            Self::Traffic => "traffic",
            Self::Links => "links",
            Self::Runs => "runs",
            Self::Expectations => "expectations",
        }
    }
}

impl ValueEnum for Drawn {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Drawn>> = LazyLock::new(|| {
            let pictures = Kind::ALL.iter().copied().map(Drawn::Picture);
            let tables = TableKind::value_variants().iter().copied();
            pictures.chain(tables.map(Drawn::Table)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Picture(kind) => {
                let value = PossibleValue::new(kind.word()).help(kind.about());
                Some(match kind {
                    Kind::Goodput => value.alias("throughput"),
                    _ => value,
                })
            }
            Self::Table(table) => table.to_possible_value(),
        }
    }
}

fn points(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("pt").parse::<f64>() {
        Ok(points) if (4.0..=40.0).contains(&points) => Ok(points),
        _ => Err("expected 4 to 40 points, as `8`".to_owned()),
    }
}

/// Description of `fullpipe figure`.
pub(super) const ABOUT: &str = "\
Draw one figure or table of a result, for a paper, a page or a spreadsheet.

What competes (the stacks, as a rule) gives the lines of a picture and the rows of a table; every \
combination of the other keys of [matrix] gives a panel or a column. `--lines` takes another key in \
its place. Where flows compete within each \
case, each key of the path gives panels over time. `--where` chooses among the \
cases. `--out` decides the form: SVG, PDF and PNG are pictures, CSV has their numbers, one row for \
each point, and a table's CSV has numbers in full, a column for each. In a PDF lines are lines, text \
is text, and the font is embedded. `--x-range` and `--y-range` cut the axes of a picture, not the \
numbers.";

const EXAMPLES: &str = "\
Examples:
  fullpipe figure results window
  fullpipe figure results matrix --metric rtt_ms.p95 --out rtt.csv
  fullpipe figure results bars --metric utilization --where mtu=9000 --out utilization.png
  fullpipe figure results table --out table.tex
  fullpipe figure results table --metric goodput_mbps --metric rtt_ms.p95 --out table.csv
  fullpipe figure results runs --out runs.csv          a row for each seed
  fullpipe figure results load --out load.pdf          throughput up, down, and the ping below
  fullpipe figure results window --x-range 10:20 --y-range 0:800

For a column of a paper, 84 mm wide, in Times of 8 points
  fullpipe figure results window --width 84mm --height 60mm --font Times --font-size 8 \\
      --no-title --out window.pdf
  fullpipe figure results matrix --width 84mm --font Times --font-size 8 --no-title --out matrix.pdf
  fullpipe figure results distribution --width 84mm --font Times --font-size 8 \\
      --no-title --grey --out times.pdf
  fullpipe figure results response --width 84mm --font Times --font-size 8 \\
      --no-title --out response.pdf";
