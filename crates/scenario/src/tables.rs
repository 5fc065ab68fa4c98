//! Reference pages in Markdown, made from tables of keys.

use crate::value::{Key, Kind, nested};

/// A table of keys.
pub fn rows(out: &mut String, keys: &[Key]) {
    out.push_str("\n| key | value | default | example | |\n|---|---|---|---|---|\n");
    for key in keys {
        let cell = |text: &str| match text {
            "" => String::new(),
            text if text.starts_with('(') => text.trim_matches(['(', ')']).replace('|', "\\|"),
            text => format!("`{}`", text.replace('|', "\\|")),
        };
        out.push_str(&format!(
            "| `{}` | {} | {} | {} | {} |\n",
            key.name,
            values(&key.kind),
            cell(&key.default()),
            cell(key.example),
            key.about().replace('|', "\\|")
        ));
    }
}

/// The tables that keys may be; one that several tables have stands once.
pub fn tables_inside(out: &mut String, path: &str, keys: &'static [Key], seen: &mut Vec<String>) {
    for key in keys {
        let Some(inner) = nested(&key.kind).filter(|_| !matches!(key.kind, Kind::Tables(_))) else {
            continue;
        };
        let name = format!("{path}{}", key.name.trim_start_matches("return_"));
        let names: Vec<&str> = inner.iter().map(|key| key.name).collect();
        let title = format!("{name}: {}", names.join(" "));
        if seen.contains(&title) {
            continue;
        }
        seen.push(title);
        out.push_str(&format!("\n### `{name}` as a table\n"));
        rows(out, inner);
        for key in inner {
            words(out, key, seen);
        }
        tables_inside(out, &format!("{name}."), inner, seen);
    }
}

/// The words among which a key chooses, unless `seen` has them.
pub fn words(out: &mut String, key: &Key, seen: &mut Vec<String>) {
    let words = match &key.kind {
        Kind::Word(words) | Kind::Either(Kind::Word(words), _) | Kind::OrOff(Kind::Word(words)) => {
            words
        }
        _ => return,
    };
    let title = format!(
        "{:?}",
        words.iter().map(|w| (w.word, w.doc)).collect::<Vec<_>>()
    );
    if seen.contains(&title) {
        return;
    }
    seen.push(title);
    out.push_str(&format!("\n`{}`:\n\n", key.name));
    for word in *words {
        out.push_str(&format!("- `\"{}\"`: {}\n", word.word, word.doc));
    }
}

fn values(kind: &Kind) -> String {
    match kind {
        Kind::Text => "string".to_owned(),
        Kind::Name => "letters, digits, `-`, `_`".to_owned(),
        Kind::Flag => "`true`, `false`".to_owned(),
        Kind::Word(words) => {
            let words: Vec<String> = words
                .iter()
                .map(|word| format!("`\"{}\"`", word.word))
                .collect();
            words.join(", ")
        }
        Kind::Whole { min, max, unit } if *max < 1 << 40 => {
            format!("{min} to {max} {unit}").trim_end().to_owned()
        }
        Kind::Whole { min, .. } => format!("whole number from {min}"),
        Kind::Real { min, .. } if *min == f64::MIN => "number".to_owned(),
        Kind::Real { min, max } => format!("number from {min} to {max}"),
        Kind::Fraction => "0 to 1, or a percentage".to_owned(),
        Kind::Rate | Kind::ZeroRate => "rate".to_owned(),
        Kind::Size => "bytes".to_owned(),
        Kind::Span { .. } => "time".to_owned(),
        Kind::Segments { min, max } => format!("{min} to {max} segments"),
        Kind::Window => "window".to_owned(),
        Kind::Volume => "bytes or segments".to_owned(),
        Kind::Buffer => "buffer".to_owned(),
        Kind::Stack => "stack".to_owned(),
        Kind::Seeds => "number or list of numbers".to_owned(),
        Kind::Bounds => "`[lowest, highest]`".to_owned(),
        Kind::Tolerance => "number or percentage".to_owned(),
        Kind::Table(_) => "table".to_owned(),
        Kind::Tables(_) => "tables, `[[...]]`".to_owned(),
        Kind::OneOrMany(item) => format!("{}, or a list", values(item)),
        Kind::Either(first, second) => format!("{}, or {}", values(first), values(second)),
        Kind::Free => "table of dotted keys".to_owned(),
        Kind::Parsed { what, .. } => (*what).to_owned(),
        Kind::Settings => "table of parameters".to_owned(),
        Kind::OrOff(inner) => format!("{}, or `\"off\"`", values(inner)),
    }
}
