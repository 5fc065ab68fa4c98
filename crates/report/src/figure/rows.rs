//! Rows of text for a spreadsheet, a paper or a page.

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Names of the columns.
    pub heads: Vec<String>,
    /// Cells; as many in each row as there are columns.
    pub rows: Vec<Vec<String>>,
    /// A letter per column: `l` for words, `r` for numbers.
    pub align: String,
}

impl Rows {
    /// Comma-separated values (RFC 4180).
    pub fn csv(&self) -> String {
        let field = |cell: &String| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let mut out = String::new();
        for row in std::iter::once(&self.heads).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(field).collect();
            out += &cells.join(",");
            out.push('\n');
        }
        out
    }

    /// A `tabular` of LaTeX with the rules of package booktabs.
    pub fn tex(&self) -> String {
        let line = |row: &[String]| {
            let cells: Vec<String> = row.iter().map(|c| tex(c)).collect();
            format!("  {} \\\\\n", cells.join(" & "))
        };
        let mut out = format!("\\begin{{tabular}}{{{}}}\n  \\toprule\n", self.align);
        out += &line(&self.heads);
        out += "  \\midrule\n";
        for row in &self.rows {
            out += &line(row);
        }
        out + "  \\bottomrule\n\\end{tabular}\n"
    }

    /// A table of GitHub's markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let texts = |row: &Vec<String>| line(row.iter().map(|c| markdown(c)).collect());
        let rule = |align| if align == 'l' { ":--" } else { "--:" }.to_owned();
        let rules = line(self.align.chars().map(rule).collect());
        let rows: String = self.rows.iter().map(texts).collect();
        texts(&self.heads) + &rules + &rows
    }
}

/// Text in a cell of markdown, where a bar ends the cell and some characters begin a format.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '*' | '_' | '`' | '<' | '[' | '$' | '~' | '&' => out.extend(['\\', c]),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A cell as LaTeX sets it: a number in mathematics, where `-` is a minus and no hyphen.
fn tex(cell: &str) -> String {
    let number = |part: &str| {
        let known = part.parse::<f64>().is_ok() && part.contains(|c: char| c.is_ascii_digit());
        known.then(|| match part.split_once('e') {
            Some((digits, exponent)) => format!("{digits} \\times 10^{{{exponent}}}"),
            None => part.to_owned(),
        })
    };
    let parts: Option<Vec<String>> = cell.split(" ± ").map(number).collect();
    match parts {
        Some(parts) => format!("${}$", parts.join(" \\pm ")),
        None => tex_text(cell),
    }
}

/// Words as LaTeX sets them.
fn tex_text(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '\\' => out += "\\textbackslash{}",
            '±' => out += "$\\pm$",
            '<' => out += "$<$",
            '>' => out += "$>$",
            '–' => out += "--",
            '…' => out += "\\dots{}",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Rows {
        let row = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect();
        Rows {
            heads: row(&["stack", "rtt_ms, 95 %"]),
            rows: vec![
                row(&["aimd(increase=2,decrease=0.3)", "12.5 ± 0.2"]),
                row(&["a|b & \"c\"", "–"]),
            ],
            align: "lr".to_owned(),
        }
    }

    #[test]
    fn every_form_keeps_what_its_readers_would_take_for_syntax() {
        let all = rows();
        assert_eq!(
            all.csv(),
            "stack,\"rtt_ms, 95 %\"\n\"aimd(increase=2,decrease=0.3)\",12.5 ± 0.2\n\
             \"a|b & \"\"c\"\"\",–\n"
        );
        let tex = all.tex();
        assert!(
            tex.starts_with("\\begin{tabular}{lr}\n  \\toprule\n  stack & rtt\\_ms, 95 \\% \\\\\n")
        );
        assert!(tex.contains("$12.5 \\pm 0.2$") && tex.contains("a|b \\& \"c\" & -- \\\\"));
        for (cell, set) in [
            ("-0.147 ± 0.056", "$-0.147 \\pm 0.056$"),
            ("-3", "$-3$"),
            ("1e-5", "$1 \\times 10^{-5}$"),
            ("web-1 ± 2", "web-1 $\\pm$ 2"),
            ("inf", "inf"),
        ] {
            assert_eq!(super::tex(cell), set);
        }
        let markdown = all.markdown();
        assert!(markdown.contains("| :-- | --: |\n") && markdown.contains("a\\|b \\&"));
    }
}
