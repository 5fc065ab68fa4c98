//! What to write instead of a word that is not known.

use fullpipe_cc::registry::nearest;

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
    let own = other_words(name).find(|word| names().any(|name| name == *word));
    if let Some(word) = own {
        return (meant(name, word), Some(word));
    }
    if let Some(home) = home(name, sections) {
        return (format!("`{name}` belongs {home}"), None);
    }
    if let Some(near) = nearest(name, names()) {
        return (meant(name, near), Some(near));
    }
    let elsewhere = other_words(name).find_map(|word| Some((word, home(word, sections)?)));
    let hint = match elsewhere {
        Some((word, home)) => format!("did you mean `{word}`? it belongs {home}"),
        None => format!("known: {}", names().collect::<Vec<_>>().join(", ")),
    };
    (hint, None)
}

/// Where a key belongs, if any table has it.
fn home(name: &str, sections: &[Section]) -> Option<String> {
    let has = |(_, keys): &&Section| keys.iter().any(|key| key.name == name);
    let homes: Vec<&str> = sections.iter().filter(has).map(|(home, _)| *home).collect();
    Some(match homes.split_last()? {
        (&"", []) => "at the top of the file, before the first table".to_owned(),
        (only, []) => format!("in {only}"),
        (last, first) => {
            let name_of = |home: &&str| match *home {
                "" => "the top of the file".to_owned(),
                home => home.to_owned(),
            };
            let first: Vec<String> = first.iter().map(name_of).collect();
            format!("in {} or {}", first.join(", "), name_of(last))
        }
    })
}

/// The question whether this key was meant by a name.
pub fn meant(name: &str, key: &str) -> String {
    let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
    match (last(name).as_str(), last(key).as_str()) {
        ("delay" | "latency", "rtt") => {
            format!("did you mean `{key}`? it is both ways: twice the delay of one")
        }
        _ => format!("did you mean `{key}`?"),
    }
}

/// The keys for which other tools have this word.
pub fn other_words(name: &str) -> impl Iterator<Item = &'static str> {
    let known = OTHER_WORDS
        .iter()
        .filter(move |(words, _)| words.contains(&name));
    known.map(|(_, key)| *key)
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
    (&["delay", "by"], "extra"),
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
    (&["description", "title"], "about"),
    (&["what", "label", "id"], "name"),
    (&["min", "minimum", "above"], "at_least"),
    (&["max", "maximum", "below"], "at_most"),
    (&["of", "for"], "flow"),
    (&["warm_up", "omit", "skip"], "warmup"),
    (&["pto", "probe", "tail_loss_probe"], "tlp"),
    (&["reo_wnd", "reorder_window", "dupthresh"], "reordering_by"),
];

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
