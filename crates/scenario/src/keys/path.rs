//! Keys of `[path]`, `[[link]]` and `[[route]]`.

use fullpipe_run::{Buffer, LinkSpec};
use fullpipe_units::{BufferSize, Span};

use super::loss::LossTable;
use super::queue::{QueueKind, QueueTable};
use crate::value::{Either, HOUR, Target, keys, tables, words};

tables! {
    /// `[path]`.
    Path { own: PathKeys, element: Element, changes: PathChanges, back: Back }

    /// `[[link]]`.
    Link { own: LinkKeys, element: Element, changes: LinkChanges }

    /// An entry of `path.schedule`.
    PathChange { any: Change, own: RttChange }

    /// An entry of `link.<name>.schedule`.
    LinkChange { any: Change, own: DelayChange }
}

keys! {
    /// Keys of the path as a whole.
    PathKeys {
        preset: off(word(PathPreset)) [off], "geo",
            "a kind of path: what is measured of it stands for the keys that are not given";
        rate: rate ~ r#""100Mbit/s""# [or "the mean of `trace`"], "500Mbit/s",
            "capacity of the bottleneck, packet headers included";
        rtt: span(1, HOUR), "80ms", "two-way propagation delay";
        mtu: whole(68, 65535, "bytes") [= 1500], 9000,
            "bytes of a full packet, IP and TCP headers included";
    }
}

words! {
    /// Kinds of path; their keys are in `paths/`, with their sources.
    enum PathPreset {
        Leo = "leo",
            "low satellites: 87Mbit/s, back 13.5Mbit/s, 44ms (Starlink 2021, medians of Ookla)";
        Geo = "geo",
            "a geostationary satellite: 100Mbit/s, back 10Mbit/s, 600ms (Michel and others, IMC \
             2022; Huston 2022)";
        Cellular = "cellular",
            "LTE: 13Mbit/s, back 6Mbit/s (medians of Huang and others, MobiSys 2012), 70ms (ours)";
        Wifi = "wifi",
            "Wi-Fi: 50Mbit/s, 20ms, jitter of 20ms (90 % of packets: Sui and others, MobiSys \
             2016; the rate is ours)";
        Metro = "metro", "200 km of fibre: 1Gbit/s (ours), 2ms";
        Transatlantic = "transatlantic",
            "New York to London: 10Gbit/s (ours), 59ms (Hibernia Express, 2015)";
        Dtn = "dtn",
            "a data-transfer node: 10Gbit/s, 100ms, mtu 9000 (what ESnet's host tuning is for)";
    }
}

impl PathPreset {
    /// The keys of `[path]` that it stands for.
    pub fn text(self) -> &'static str {
        match self {
            Self::Leo => include_str!("../../paths/leo.toml"),
            Self::Geo => include_str!("../../paths/geo.toml"),
            Self::Cellular => include_str!("../../paths/cellular.toml"),
            Self::Wifi => include_str!("../../paths/wifi.toml"),
            Self::Metro => include_str!("../../paths/metro.toml"),
            Self::Transatlantic => include_str!("../../paths/transatlantic.toml"),
            Self::Dtn => include_str!("../../paths/dtn.toml"),
        }
    }
}

keys! {
    /// Keys of a link with a name.
    LinkKeys {
        @fixed name: name [!], "first-hop", "unique name";
        rate: rate [or "the mean of `trace`"], "100Mbit/s",
            "capacity, packet headers included; without it and without a trace the link only \
             delays";
        delay: time [= Span::ZERO], "10ms", "propagation delay, one way";
    }
}

keys! {
    /// What any link may do to packets.
    Element => LinkSpec {
        buffer: buffer [= BufferSize::Bdp(1.0)], "200 packets",
            "room, the packet in transmission included; 1BDP is rate x rtt in whole packets; of a \
             time, a packet that would leave later than this after its arrival is lost (by the \
             `schedule` and the `trace`, which the queue knows), but codel and fq-codel have its \
             bytes, and every discipline by linux its packets of 1500 bytes, at the first rate";
        queue: either(word(QueueKind), table(QueueTable)) [= Either::First(QueueKind::DropTail)],
            { kind = "red", min = "5 packets", max = "15 packets" },
            "queue discipline: a word, or a table with its parameters";
        loss: either(fraction, table(LossTable)) [= Either::First(0.0)], "0.01%",
            "random loss of data packets at the entry: a probability, or a table";
        loss_of_acks: flag [=> loss_of_acks], true,
            "random loss drops ACKs, SYNs and probes too";
        jitter: span(0, HOUR) [=> jitter], "2ms",
            "each packet is delayed by a uniform part of this in addition; the order is kept";
        reorder: off(table(ReorderTable)) [off], { probability = 0.01, extra = "5ms" },
            "packets that later ones overtake";
        policer: off(table(PolicerTable)) [off], { rate = "50Mbit/s", burst = "100kB" },
            "token bucket at the entry that drops what exceeds its rate";
        trace: off(text) [off], "lte.mahimahi",
            "file of delivery opportunities, one millisecond per line as mahimahi writes them, in \
             place of a constant rate: each carries 1504 bytes, headers included, and what a packet \
             leaves of them goes to the next one in the queue (one a millisecond is 12.032 Mbit/s, \
             of which packets of 1500 bytes make 11.615 of goodput); its path counts from the \
             scenario file";
    }
}

impl Target for LinkSpec {
    fn varieties() -> Vec<(&'static str, Self)> {
        vec![("", LinkSpec::new("", None, Span::ZERO, Buffer::Unlimited))]
    }
}

keys! {
    /// Changes of the path.
    PathChanges {
        schedule: many(table(PathChange)),
            [{ at = "10s", rate = "50Mbit/s" }, { at = "20s", outage = "2s" }],
            "changes of the bottleneck over time";
    }
}

keys! {
    /// Changes of a link.
    LinkChanges {
        schedule: many(table(LinkChange)),
            [{ at = "10s", rate = "50Mbit/s" }, { at = "20s", outage = "2s" }],
            "changes of the link over time";
    }
}

keys! {
    /// The way back of `[path]` as a link of its own.
    Back {
        return_rate: rate
            [or "`rate`, if something runs in reverse or another `return_` key is given; otherwise \
                 the way back only delays"], "1Mbit/s", "capacity of the way back";
        return_buffer: buffer [or "`buffer`"], "50 packets",
            "room of the way back; 1BDP is return_rate x rtt";
        return_queue: either(word(QueueKind), table(QueueTable)) [or "`queue`"], "fq-codel",
            "queue discipline of the way back";
        return_loss: either(fraction, table(LossTable)) [= Either::First(0.0)], "1%",
            "random loss on the way back; of ACKs only with `loss_of_acks`";
    }
}

keys! {
    /// `reorder`.
    ReorderTable {
        probability: fraction [!], 0.01, "fraction of the packets that are overtaken";
        extra: span(1, HOUR) [!], "5ms", "they arrive this much later";
    }
}

keys! {
    /// `policer`.
    PolicerTable {
        rate: rate [!], "50Mbit/s", "rate at which tokens come";
        burst: size [!], "100kB", "depth of the bucket, full at the start";
    }
}

keys! {
    /// Changes that any link takes.
    Change {
        at: time [!], "10s", "time of the run";
        rate: rate, "50Mbit/s", "capacity from then on";
        outage: moment, "2s", "for so long nothing is transmitted: packets wait";
        loss: either(fraction, table(LossTable)), "0.1%", "random loss from then on";
    }
}

keys! {
    /// Changes that only the path takes.
    RttChange {
        rtt: span(1, HOUR), "120ms",
            "`path.rtt` from then on; the RTT of every flow changes by as much";
    }
}

keys! {
    /// Changes that only a link with a name takes.
    DelayChange {
        delay: time, "60ms", "propagation delay of the link from then on";
    }
}

keys! {
    /// `[[route]]`.
    Route {
        @fixed flow: text ~ r#""main""# [!], "long", "name of a flow or of traffic";
        @fixed forward: many(text) ~ r#"["first"]"# [!], ["first", "second"],
            "links that data crosses, in order";
        @fixed back: many(text) [or "a delay equal to that of the way there"], ["home"],
            "links that ACKs and answers cross, in order";
    }
}
