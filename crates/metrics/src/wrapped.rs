//! Generated Markdown with lines of a width that people read and `diff` shows.

/// Columns of a page.
const WIDTH: usize = 100;

/// The page with its paragraphs and items wrapped; tables, code, headings and comments stay as they
/// are. What stands between backticks is not torn apart.
pub fn wrapped(page: &str) -> String {
    let mut out = Wrapper::default();
    let mut in_code = false;
    for line in page.lines() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        in_code ^= is_fence;
        let stays = text.is_empty() || text.starts_with(['|', '#', '<']);
        if in_code || is_fence || stays {
            out.end();
            out.text.push_str(line);
            out.text.push('\n');
            continue;
        }
        let indent = line.len() - text.len();
        match item(text) {
            Some(marker) => out.begin(indent, &text[..marker]),
            None if out.words.is_empty() => out.begin(indent, ""),
            None => {}
        }
        out.take(text[item(text).unwrap_or(0)..].split(' '));
    }
    out.end();
    out.text
}

/// Bytes of an item's marker, `- ` or `1. `.
fn item(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match &text[digits..] {
        rest if digits > 0 && rest.starts_with(". ") => Some(digits + 2),
        rest if digits == 0 && rest.starts_with("- ") => Some(2),
        _ => None,
    }
}

#[derive(Default)]
struct Wrapper {
    text: String,
    /// Spaces of the paragraph's first line and marker of the item.
    first: String,
    /// Spaces of the others.
    rest: usize,
    words: Vec<String>,
    /// The last word is within backticks.
    open: bool,
}

impl Wrapper {
    fn begin(&mut self, indent: usize, marker: &str) {
        self.end();
        self.first = " ".repeat(indent) + marker;
        self.rest = indent + marker.len();
    }

    fn take<'a>(&mut self, words: impl Iterator<Item = &'a str>) {
        for word in words.filter(|word| !word.is_empty()) {
            // A line that begins with one of these is something else.
            let special =
                item(&format!("{word} ")).is_some() || word.starts_with(['#', '>', '|', '+']);
            let last = self.words.last_mut().filter(|_| self.open || special);
            match last {
                Some(last) => *last += &format!(" {word}"),
                None => self.words.push(word.to_owned()),
            }
            self.open ^= word.matches('`').count() % 2 == 1;
        }
    }

    /// Writes the paragraph.
    fn end(&mut self) {
        let mut line = std::mem::take(&mut self.first);
        let mut bare = true;
        for word in std::mem::take(&mut self.words) {
            if !bare && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.text.push_str(&line);
                self.text.push('\n');
                line = " ".repeat(self.rest);
                bare = true;
            }
            if !bare {
                line.push(' ');
            }
            line.push_str(&word);
            bare = false;
        }
        if !bare {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_wrapped_and_nothing_else() {
        let long = "word ".repeat(30);
        let kept = format!("# {long}\n\n| {long} |\n\n```text\n{long}\n```\n\n<!-- {long} -->\n");
        assert_eq!(wrapped(&kept), kept);
        let page = wrapped(&format!("{long}\nmore\n\n- {long}\n  of it\n1. `{long}`\n"));
        let lines: Vec<&str> = page.lines().collect();
        assert!(
            lines[..lines.len() - 1]
                .iter()
                .all(|line| line.len() <= 100),
            "{page}"
        );
        assert!(
            page.contains("word more\n") && page.contains("\n  word") && page.contains("1. `word")
        );
        // Twice the same.
        assert_eq!(wrapped(&page), page);
    }

    #[test]
    fn no_line_begins_as_an_item_by_chance() {
        let text = "x".repeat(97);
        assert_eq!(
            wrapped(&format!("{text} a - b\n")),
            format!("{text}\na - b\n")
        );
        assert_eq!(
            wrapped(&format!("{text} in 1. b\n")),
            format!("{text}\nin 1. b\n")
        );
    }
}
