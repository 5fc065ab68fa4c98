//! Plain-text tables: columns aligned by spaces, readable without colour and in a log file.

use fullpipe_report::digits;
use fullpipe_report::figure::Rows;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    align: Vec<Align>,
    heads: Vec<Vec<String>>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No columns yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column with its heading, one string per line of the heading.
    pub fn column(&mut self, align: Align, head: &[&str]) {
        self.align.push(align);
        self.heads
            .push(head.iter().map(|h| (*h).to_owned()).collect());
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table as text, two spaces between columns.
    pub fn text(&self) -> String {
        let head_lines = self.heads.iter().map(Vec::len).max().unwrap_or(0);
        let heads: Vec<Vec<String>> = (0..head_lines)
            .map(|line| {
                self.heads
                    .iter()
                    .map(|h| h.get(line).cloned().unwrap_or_default())
                    .collect()
            })
            .collect();
        let width = |column: usize| {
            let cells = heads
                .iter()
                .chain(&self.rows)
                .filter_map(|r: &Vec<String>| r.get(column));
            cells.map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.align.len()).map(width).collect();
        let mut out = String::new();
        for row in &heads {
            self.push_row(&mut out, row, &widths);
        }
        if head_lines > 0 {
            let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
            self.push_row(&mut out, &rules, &widths);
        }
        for row in &self.rows {
            self.push_row(&mut out, row, &widths);
        }
        out
    }

    /// The table in GitHub's markdown.
    pub fn markdown(&self) -> String {
        self.rows().markdown()
    }

    /// True without rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The same for other forms: the lines of a heading become one.
    pub fn rows(&self) -> Rows {
        let cells = |row: &Vec<String>| {
            let cell = |i| row.get(i).cloned().unwrap_or_default();
            (0..self.align.len()).map(cell).collect()
        };
        Rows {
            heads: self
                .heads
                .iter()
                .map(|h| h.join(" ").trim().to_owned())
                .collect(),
            rows: self.rows.iter().map(cells).collect(),
            align: self
                .align
                .iter()
                .map(|a| if *a == Align::Left { 'l' } else { 'r' })
                .collect(),
        }
    }

    fn push_row(&self, out: &mut String, row: &[String], widths: &[usize]) {
        let mut line = String::new();
        for (i, (width, align)) in widths.iter().zip(&self.align).enumerate() {
            let cell = row.get(i).map_or("", String::as_str);
            let space = " ".repeat(width - cell.chars().count());
            if i > 0 {
                line.push_str("  ");
            }
            match align {
                Align::Left => line.extend([cell, &space]),
                Align::Right => line.extend([space.as_str(), cell]),
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// A number with about `digits` significant digits, whole part in groups of three: `1,295`,
/// `93.1`, `0.00341`.
pub fn number(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return x.to_string();
    }
    if x == 0.0 {
        return "0".to_owned();
    }
    let before_point = x.abs().log10().floor() as i32 + 1;
    let decimals = (digits as i32 - before_point).clamp(0, 12) as usize;
    if x.abs() < 1e-6 {
        return format!("{x:.*e}", digits.saturating_sub(1));
    }
    grouped(&format!("{x:.decimals$}"))
}

/// `85.2 ± 1.3`: the mean stops where its interval begins, which has two digits. Without an
/// interval, or with one below a millionth of the mean, the mean alone with about `digits`
/// significant digits.
pub fn number_with(mean: f64, half: Option<f64>, digits: usize) -> String {
    match half.and_then(|half| digits::with_interval(mean, half)) {
        Some([mean, half]) => format!("{} ± {}", grouped(&mean), grouped(&half)),
        None => number(mean, digits),
    }
}

/// Groups the whole part of a number in threes; what follows its digits, decimals or an exponent,
/// stays.
fn grouped(text: &str) -> String {
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |r| ("-", r));
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (whole, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let mut out = sign.to_owned();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new();
        table.column(Align::Left, &["stack"]);
        table.column(Align::Right, &["goodput", "Mbit/s"]);
        table.row(vec!["reno".into(), "1,234".into()]);
        table.row(vec!["µ".into()]);
        assert_eq!(
            table.text(),
            "stack  goodput\n        Mbit/s\n-----  -------\nreno     1,234\nµ\n"
        );
    }

    #[test]
    fn markdown_keeps_a_bar_inside_its_cell() {
        let mut table = Table::new();
        table.column(Align::Left, &["stack"]);
        table.column(Align::Right, &["goodput", "Mbit/s"]);
        table.row(vec!["a|b_c".into(), "1,234".into()]);
        table.row(vec!["reno".into()]);
        assert_eq!(
            table.markdown(),
            "| stack | goodput Mbit/s |\n| :-- | --: |\n| a\\|b\\_c | 1,234 |\n| reno |  |\n"
        );
    }

    #[test]
    fn a_mean_stops_where_its_interval_begins() {
        for (mean, half, text) in [
            (10_730.8, Some(23.4), "10,731 ± 23"),
            (100.1, Some(6.8e-7), "100.1"),
            (3_573.7, Some(15_301.0), "3,574 ± 15,000"),
            (0.2907, Some(0.012), "0.291 ± 0.012"),
            (0.3, None, "0.3000"),
        ] {
            assert_eq!(number_with(mean, half, 4), text);
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        for (x, text) in [
            (0.0, "0"),
            (1_234_567.8, "1,234,568"),
            (93.14159, "93.1"),
            (0.003_411, "0.00341"),
            (-5.0, "-5.00"),
            (284.13, "284"),
            (1e-9, "1.00e-9"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(x, 3), text, "{x}");
        }
    }

    /// Of every size, and of both notations: the number is what it was, and commas stand between
    /// threes of its whole part only.
    #[test]
    fn a_number_of_any_size_reads_as_itself() {
        for (mean, half, text) in [
            (4e-17, 1.6e-16, "4e-17 ± 1.6e-16"),
            (-2.1e-17, 2.1e-16, "-2e-17 ± 2.1e-16"),
        ] {
            assert_eq!(number_with(mean, Some(half), 3), text);
        }
        for exponent in -300..=300 {
            for (digits, sign) in [(1.0, 1.0), (1.234_567, -1.0), (9.996, 1.0)] {
                let x: f64 = sign * digits * 10f64.powi(exponent);
                for half in [None, Some(x.abs() * 0.3), Some(x.abs() * 1e-3)] {
                    let text = number_with(x, half, 4);
                    let mean = text.split(" ± ").next().unwrap();
                    let back: f64 = mean.replace(',', "").parse().unwrap();
                    let near = half.unwrap_or(0.0).max(x.abs() * 1e-3);
                    assert!((back - x).abs() <= near, "{x:e}: {text}");
                    for number in text.split(" ± ") {
                        let mut threes = number.trim_start_matches('-').split(',');
                        let first = threes.next().unwrap();
                        let plain = |part: &str| part.chars().all(|c| c.is_ascii_digit());
                        let threes: Vec<&str> = threes.collect();
                        let Some((last, inner)) = threes.split_last() else {
                            continue;
                        };
                        let whole = last.split('.').next().unwrap();
                        assert!(plain(first) && (1..=3).contains(&first.len()), "{text}");
                        let all = inner.iter().chain([&whole]);
                        let all: Vec<_> = all.filter(|p| !plain(p) || p.len() != 3).collect();
                        assert!(all.is_empty(), "{text}");
                    }
                }
            }
        }
    }
}
