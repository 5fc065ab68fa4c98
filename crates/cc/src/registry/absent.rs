//! Names that the field knows and this version does not have: no slips of what is here.

/// An algorithm that is not here, and the one of those here that is nearest to it.
#[derive(Debug)]
pub(super) struct Absent {
    /// Spellings, lower case.
    names: &'static [&'static str],
    /// Stack to use in its place; none where nothing here is like it.
    pub(super) nearest: Option<&'static str>,
    /// What the two have in common and what they have not, or why none is near.
    pub(super) why: &'static str,
}

/// The algorithm that `name` stands for.
pub(super) fn find(name: &str) -> Option<&'static Absent> {
    let name = name.to_lowercase();
    ABSENT.iter().find(|a| a.names.contains(&name.as_str()))
}

const fn absent(
    names: &'static [&'static str],
    nearest: Option<&'static str>,
    why: &'static str,
) -> Absent {
    Absent {
        names,
        nearest,
        why,
    }
}

#[rustfmt::skip]
const ABSENT: &[Absent] = &[
    absent(&["prague", "tcp-prague", "tcp_prague"], Some("dctcp+paced"),
        "its window follows the fraction of marked packets too, and it is paced; without the L4S \
         identifier, Prague's independence of the round trip and its answer to a classic queue"),
    absent(&["bbr2", "bbrv2", "bbr-v2"], Some("bbr"),
        "BBRv3, which is BBRv2 with its faults mended and some constants changed"),
    absent(&["copa"], Some("vegas"),
        "it keeps a few packets of its own in the queue too, and has no mode that competes"),
    absent(&["pcc", "pcc-allegro", "allegro", "vivace", "pcc-vivace", "proteus"], Some("bbr"),
        "it sets a rate and probes for more too, by a model of the path and not by a utility"),
    absent(&["sprout", "verus"], Some("ledbat"),
        "it bounds the queueing delay too, and forecasts nothing"),
    absent(&["ledbat++", "ledbatpp", "rledbat"], Some("ledbat"),
        "RFC 6817: without the slow start, the periodic slowdowns and the multiplicative decrease \
         of LEDBAT++"),
    absent(&["cdg"], Some("vegas"),
        "it backs off by delay too, by how long it is and not by how it grows"),
    absent(&["nv", "tcp-nv"], Some("vegas"),
        "NV is Vegas for data centres"),
    absent(&["compound", "ctcp"], Some("yeah"),
        "fast while the queue is short and Reno once it is not, too"),
    absent(&["swift", "timely"], Some("fast"),
        "its window follows delay in each round trip too, on paths and not between cards"),
    absent(&["search"], Some("cubic+hystart++"),
        "it ends slow start before losses too, by round-trip times and not by the rate delivered"),
    absent(&["remy", "remycc", "aurora", "orca", "indigo"], None,
        "no law here is learned; a controller of one's own is a class in Python (docs/python.md)"),
];

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;
    use crate::{StackError, StackSpec};

    #[test]
    fn what_is_absent_is_said_to_be_and_what_is_advised_is_there() {
        let mut seen = BTreeSet::new();
        for absent in ABSENT {
            for name in absent.names {
                assert!(seen.insert(name), "{name} stands twice");
                let error = StackSpec::parse(name).unwrap_err();
                let is_absent = matches!(error, StackError::Absent { .. });
                assert!(is_absent, "{name}: {error}");
                let hint = error.hint().unwrap();
                assert!(hint.contains(absent.why), "{name}: {hint}");
            }
            if let Some(nearest) = absent.nearest {
                let parsed = StackSpec::parse(nearest);
                assert!(parsed.is_ok(), "{nearest}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn a_slip_is_no_absent_name() {
        let error = StackSpec::parse("bbr9").unwrap_err();
        assert!(matches!(error, StackError::UnknownName { .. }), "{error}");
        let error = StackSpec::parse("Copa").unwrap_err();
        assert_eq!(alloc::format!("{error}"), "`Copa` is not in this version");
    }
}
