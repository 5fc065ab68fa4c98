//! Plain-text tables: columns aligned by spaces, readable without colour and in a log file.

pub use fullpipe_report::digits::{number, number_with};
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
}
