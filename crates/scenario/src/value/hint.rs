//! What to write instead of a word that is not known.

use super::Key;

/// A table of the file: how its header is written, and its keys.
pub type Section = (&'static str, &'static [Key]);

/// What to write instead of an unknown key, and the key it is a slip of.
pub(super) fn unknown_key_hint(
    name: &str,
    keys: &'static [Key],
    sections: &[Section],
) -> (String, Option<&'static str>) {
    let names = || keys.iter().map(|key| key.name);
    let other_word = other_word(name).filter(|word| names().any(|name| name == *word));
    if let Some(word) = other_word {
        return (format!("did you mean `{word}`?"), Some(word));
    }
    let has = |(_, keys): &&Section| keys.iter().any(|key| key.name == name);
    let homes: Vec<&str> = sections.iter().filter(has).map(|(home, _)| *home).collect();
    match homes.split_last() {
        None => {}
        Some((&"", [])) => {
            let hint = format!("`{name}` belongs at the top of the file, before the first table");
            return (hint, None);
        }
        Some((only, [])) => return (format!("`{name}` belongs in {only}"), None),
        Some((last, first)) => {
            let name_of = |home: &&str| match *home {
                "" => "the top of the file".to_owned(),
                home => home.to_owned(),
            };
            let first: Vec<String> = first.iter().map(name_of).collect();
            let hint = format!(
                "`{name}` belongs in {} or {}",
                first.join(", "),
                name_of(last)
            );
            return (hint, None);
        }
    }
    match nearest(name, names()) {
        Some(near) => (format!("did you mean `{near}`?"), Some(near)),
        None => (
            format!("known: {}", names().collect::<Vec<_>>().join(", ")),
            None,
        ),
    }
}

/// The key for which other tools have this word.
pub fn other_word(name: &str) -> Option<&'static str> {
    let (_, key) = OTHER_WORDS
        .iter()
        .find(|(words, _)| words.contains(&name))?;
    Some(key)
}

/// Words of netem, iperf3, mahimahi and ns-3, and the keys that say the same.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (
        &[
            "bandwidth",
            "bw",
            "capacity",
            "bitrate",
            "datarate",
            "speed",
        ],
        "rate",
    ),
    (&["delay", "latency", "ping", "base_rtt"], "rtt"),
    (&["qdisc", "aqm", "discipline"], "queue"),
    (&["queue_size", "queue_length", "limit", "qlen"], "buffer"),
    (&["loss_rate", "plr", "drop_rate", "packet_loss"], "loss"),
    (
        &[
            "cc",
            "congestion",
            "congestion_control",
            "algorithm",
            "tcp",
            "law",
        ],
        "stack",
    ),
    (&["packet", "packets", "seq"], "segment"),
    (&["mss"], "mtu"),
    (&["parallel", "connections", "num_flows"], "streams"),
    (&["bytes", "length", "file_size"], "size"),
    (&["time", "seconds"], "duration"),
    (&["warm_up", "omit", "skip"], "warmup"),
];

/// The candidate closest to `name`, if close enough to be a slip.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_SLIP {
        return None;
    }
    known
        .map(|k| {
            (
                strsim::normalized_damerau_levenshtein(&name.to_lowercase(), k),
                k,
            )
        })
        .filter(|(score, _)| *score >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// The nearest of some names, or all of them.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known: {}", quoted(known)),
    }
}

/// Names in backticks, separated by commas.
pub fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names
        .map(|n| format!("\"{n}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

const LONGEST_SLIP: usize = 64;
