//! Words that fit, and numbers that read well.

/// Width of text in the bundled font, close enough to place a legend.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | 'I' => 0.26,
            'f' | 't' | 'r' | '(' | ')' | '-' | '/' => 0.37,
            'm' | 'w' | 'M' | 'W' => 0.82,
            'A'..='Z' => 0.65,
            _ => 0.56,
        })
        .sum();
    ems * size
}

/// `text` cut to a width, with an ellipsis where something is missing.
pub(super) fn fit(text: &str, width: f64, size: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if text_width(&kept, size) + text_width("…", size) + size * 0.8 > width {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Names without what all of them begin or end with, up to a colon or a comma; one alone is whole.
pub(super) fn told_apart<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let [first, _, ..] = names else {
        return names.to_vec();
    };
    let mut heads = cuts(first).into_iter().rev().map(|i| &first[..i + 2]);
    let shared = |head: &&str| {
        names
            .iter()
            .all(|n| n.starts_with(*head) && n.len() > head.len())
    };
    let head = heads.find(shared).map_or(0, str::len);
    let rest: Vec<&str> = names.iter().map(|name| &name[head..]).collect();
    let mut tails = cuts(rest[0]).into_iter().map(|i| &rest[0][i..]);
    let shared = |tail: &&str| {
        rest.iter()
            .all(|n| n.ends_with(*tail) && n.len() > tail.len())
    };
    let tail = tails.find(shared).map_or(0, str::len);
    rest.iter().map(|name| &name[..name.len() - tail]).collect()
}

/// Where a name has a colon or a comma between words, outside of brackets.
fn cuts(name: &str) -> Vec<usize> {
    let between = |i: usize| name[i..].starts_with(", ") || name[i..].starts_with(": ");
    let count = |i: usize, bracket: char| name[..i].matches(bracket).count();
    let outside = |i: usize| count(i, '(') <= count(i, ')');
    let all = name.match_indices([',', ':']).map(|(i, _)| i);
    all.filter(|&i| between(i) && outside(i)).collect()
}

/// `text` as large as a width allows, up to `size` and not below `least`; what does not fit then is
/// cut.
pub(super) fn shrunk(text: &str, width: f64, size: f64, least: f64) -> (f64, String) {
    let size = match text_width(text, 1.0) {
        em if em > 0.0 => size.min(width / em).max(least),
        _ => size,
    };
    (size, fit(text, width * (1.0 + 1e-9), size))
}

/// `text` in at most so many lines of a width, broken at spaces, with an ellipsis where something
/// is missing.
pub(super) fn wrap(text: &str, width: f64, size: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line, size) + text_width(word, size) + size * 0.3 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most {
        // Together they are too long for a line.
        let rest = lines.split_off(most.saturating_sub(1));
        lines.push(rest.join(" "));
    }
    lines.iter().map(|l| fit(l, width, size)).collect()
}

/// Title and subtitle in one line.
pub(super) fn named(title: &str, subtitle: &str) -> String {
    match subtitle.is_empty() {
        true => title.to_owned(),
        false => format!("{title}: {subtitle}"),
    }
}

/// A number with a separator every three digits, and no more decimals than it has.
pub(crate) fn thousands(x: f64) -> String {
    let text = format!("{:.3}", x.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    let sign = if x < 0.0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

/// True if a part of `whole` is not among the lines that show it.
pub(super) fn is_cut(whole: &str, lines: &[String]) -> bool {
    let mut lines = lines.iter();
    lines.any(|line| line.ends_with('…') && !whole.contains(line.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_wide_is_smaller_before_it_is_cut() {
        let text = "goodput of the slowest (Mbit/s)";
        let all = text_width(text, 13.0);
        assert_eq!(shrunk(text, all, 13.0, 9.0), (13.0, text.to_owned()));
        let (size, shown) = shrunk(text, 0.8 * all, 13.0, 9.0);
        assert!((size - 10.4).abs() < 1e-9 && shown == text);
        let (size, shown) = shrunk(text, 0.5 * all, 13.0, 9.0);
        assert!(size == 9.0 && shown.ends_with('…'));
        assert_eq!(shrunk("", 10.0, 13.0, 9.0), (13.0, String::new()));
    }

    #[test]
    fn names_are_told_apart_by_what_differs() {
        let of = |names: &[&'static str]| told_apart(names);
        assert_eq!(of(&["main: reno", "main: cubic"]), ["reno", "cubic"]);
        let both = ["buffer 1, a: reno", "buffer 1, b: reno"];
        assert_eq!(of(&both), ["a", "b"]);
        for whole in [
            &["main: reno"][..],
            &["reno", "cubic"],
            &["a: reno", "b: cubic"],
            &["limited(x=1, y=2)", "limited(x=1, y=3)"],
            &["main", "main: cubic"],
        ] {
            assert_eq!(of(whole), whole);
        }
        assert_eq!(
            of(&["main: reno"; 2]),
            ["reno"; 2],
            "a part of a name always stays"
        );
    }

    #[test]
    fn what_is_missing_leaves_an_ellipsis() {
        let text = "highspeed with limited slow start, rtt 80 ms, buffer 0.25 BDP, loss 0.001";
        let all = wrap(text, 120.0, 13.0, 9);
        assert!(all.len() > 3 && all.join(" ") == text, "{all:?}");
        assert!(!is_cut(text, &all));
        let two = wrap(text, 120.0, 13.0, 2);
        assert!(
            two.len() == 2 && two[0] == all[0] && two[1].ends_with('…'),
            "{two:?}"
        );
        assert!(two.iter().all(|line| text_width(line, 13.0) <= 120.0));
        assert!(is_cut(text, &two));
        assert!(!is_cut("and so on …", &["and so on …".to_owned()]));
    }
}
