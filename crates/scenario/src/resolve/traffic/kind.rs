//! Kinds of traffic and the keys that each of them has.

/// A kind of traffic.
#[derive(Debug)]
pub(super) struct Kind {
    /// As in the file.
    pub word: &'static str,
    /// Keys it cannot do without, each with an example.
    pub needs: &'static [(&'static str, &'static str)],
    /// Other keys of its own.
    takes: &'static [&'static str],
    /// It has the keys of a transport as well.
    pub transport: bool,
}

impl Kind {
    /// The kind of this word.
    pub fn of(word: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.word == word)
    }

    /// Its own keys.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let needs = self.needs.iter().map(|(key, _)| *key);
        needs.chain(self.takes.iter().copied())
    }
}

const fn datagrams(
    word: &'static str,
    needs: &'static [(&'static str, &'static str)],
    takes: &'static [&'static str],
) -> Kind {
    Kind {
        word,
        needs,
        takes,
        transport: false,
    }
}

const KINDS: &[Kind] = &[
    Kind {
        word: "short-flows",
        needs: &[],
        takes: &["size", "load", "per_second", "every", "count", "within"],
        transport: true,
    },
    datagrams(
        "udp",
        &[("rate", r#"rate = "20Mbit/s""#)],
        &["packet", "spacing"],
    ),
    datagrams(
        "udp-on-off",
        &[
            ("rate", r#"rate = "20Mbit/s""#),
            ("on", r#"on = "500ms""#),
            ("off", r#"off = "500ms""#),
        ],
        &["packet", "spacing"],
    ),
    datagrams(
        "udp-sine",
        &[
            ("mean", r#"mean = "50Mbit/s""#),
            ("amplitude", r#"amplitude = "30Mbit/s""#),
            ("period", r#"period = "60s""#),
        ],
        &["packet", "spacing"],
    ),
    datagrams(
        "udp-blast",
        &[("rate", r#"rate = "20Mbit/s""#)],
        &["volume", "packet", "spacing"],
    ),
    datagrams(
        "udp-staircase",
        &[
            ("from", r#"from = "10Mbit/s""#),
            ("to", r#"to = "100Mbit/s""#),
            ("step", r#"step = "10Mbit/s""#),
            ("every", r#"every = "10s""#),
        ],
        &["period", "packet", "spacing"],
    ),
    datagrams(
        "udp-file",
        &[("file", r#"file = "rates.csv""#)],
        &["period", "packet", "spacing"],
    ),
    Kind {
        word: "ping",
        needs: &[],
        takes: &["interval", "size", "rtt"],
        transport: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::TRAFFIC;
    use crate::value;

    #[test]
    fn every_kind_of_the_format_has_its_keys() {
        let find = |name: &str| TRAFFIC.iter().find(|key| key.name == name);
        let value::Kind::Word(words) = find("kind").unwrap().kind else {
            panic!("a kind is a word");
        };
        let mut written: Vec<&str> = words.iter().map(|word| word.word).collect();
        let mut known: Vec<&str> = KINDS.iter().map(|kind| kind.word).collect();
        written.sort_unstable();
        known.sort_unstable();
        assert_eq!(written, known);
        for kind in KINDS {
            for key in kind.keys() {
                assert!(find(key).is_some(), "{}: {key}", kind.word);
            }
        }
    }
}
