//! Keys of `[path]`, `[[link]]` and `[[route]]`.

use super::super::value::Kind;
use super::queue::{QUEUE, QUEUES};
use super::{ANY_TIME, HOUR, Key, POSITIVE_TIME, Word, concat, fixed, key, word};

/// `[path]`.
pub(crate) const PATH: &[Key] = &concat::<
    { WHOLE_PATH.len() + ELEMENTS.len() + RETURN.len() + CHANGES.len() },
>(&[WHOLE_PATH, ELEMENTS, CHANGES, RETURN]);

/// `[[link]]`.
pub(crate) const LINK: &[Key] =
    &concat::<{ ONE_LINK.len() + ELEMENTS.len() + LINK_CHANGES.len() }>(&[
        ONE_LINK,
        ELEMENTS,
        LINK_CHANGES,
    ]);

const WHOLE_PATH: &[Key] = &[
    key(
        "rate",
        Kind::Rate,
        "(the mean of `trace`)",
        r#""500Mbit/s""#,
        "capacity of the bottleneck, packet headers included",
    ),
    key(
        "rtt",
        Kind::Span { min: 1, max: HOUR },
        "",
        r#""80ms""#,
        "two-way propagation delay",
    ),
    key(
        "mtu",
        Kind::Whole {
            min: 68,
            max: 65535,
            unit: "bytes",
        },
        "1500",
        "9000",
        "bytes of a full packet, IP and TCP headers included",
    ),
];

const ONE_LINK: &[Key] = &[
    fixed(
        "name",
        Kind::Name,
        "",
        r#""first-hop""#,
        "unique name; required",
    ),
    key(
        "rate",
        Kind::Rate,
        "(the mean of `trace`)",
        r#""100Mbit/s""#,
        "capacity, packet headers included; without it and without a trace the link only delays",
    ),
    key(
        "delay",
        ANY_TIME,
        r#""0s""#,
        r#""10ms""#,
        "propagation delay, one way",
    ),
];

/// What any link may do to packets.
const ELEMENTS: &[Key] = &[
    key(
        "buffer",
        Kind::Buffer,
        r#""1BDP""#,
        r#""200 packets""#,
        "room, the packet in transmission included; 1BDP is rate x rtt in whole packets",
    ),
    key(
        "queue",
        Kind::Either(&Kind::Word(QUEUES), &Kind::Table(QUEUE)),
        r#""droptail""#,
        r#"{ kind = "red", min = "5 packets", max = "15 packets" }"#,
        "queue discipline: a word, or a table with its parameters",
    ),
    key(
        "loss",
        Kind::Either(&Kind::Fraction, &Kind::Table(LOSS)),
        "0",
        r#""0.01%""#,
        "random loss of data packets at the entry: a probability, or a table",
    ),
    key(
        "loss_of_acks",
        Kind::Flag,
        "false",
        "true",
        "random loss strikes ACKs, SYNs and probes too",
    ),
    key(
        "jitter",
        Kind::Span { min: 0, max: HOUR },
        r#""0s""#,
        r#""2ms""#,
        "each packet is delayed by a uniform part of this in addition; the order is kept",
    ),
    key(
        "reorder",
        Kind::OrOff(&Kind::Table(REORDER)),
        r#""off""#,
        r#"{ probability = 0.01, extra = "5ms" }"#,
        "packets that later ones overtake",
    ),
    key(
        "policer",
        Kind::OrOff(&Kind::Table(POLICER)),
        r#""off""#,
        r#"{ rate = "50Mbit/s", burst = "100kB" }"#,
        "token bucket at the entry that drops what exceeds its rate",
    ),
    key(
        "trace",
        Kind::OrOff(&Kind::Text),
        r#""off""#,
        r#""lte.mahimahi""#,
        "file of delivery opportunities, one millisecond per line as mahimahi writes them, in place of a constant rate; \
         its path counts from the scenario file",
    ),
];

const CHANGES: &[Key] = &[key(
    "schedule",
    Kind::OneOrMany(&Kind::Table(CHANGE)),
    "",
    r#"[{ at = "10s", rate = "50Mbit/s" }, { at = "20s", outage = "2s" }]"#,
    "changes of the bottleneck over time",
)];

const LINK_CHANGES: &[Key] = &[key(
    "schedule",
    Kind::OneOrMany(&Kind::Table(LINK_CHANGE)),
    "",
    r#"[{ at = "10s", rate = "50Mbit/s" }, { at = "20s", outage = "2s" }]"#,
    "changes of the link over time",
)];

const RETURN: &[Key] = &[
    key(
        "return_rate",
        Kind::Rate,
        "(`rate`, if something runs in reverse; otherwise the way back only delays)",
        r#""1Mbit/s""#,
        "capacity of the way back",
    ),
    key(
        "return_buffer",
        Kind::Buffer,
        "(`buffer`)",
        r#""50 packets""#,
        "room of the way back; 1BDP is return_rate x rtt",
    ),
    key(
        "return_queue",
        Kind::Either(&Kind::Word(QUEUES), &Kind::Table(QUEUE)),
        "(`queue`)",
        r#""fq-codel""#,
        "queue discipline of the way back",
    ),
    key(
        "return_loss",
        Kind::Either(&Kind::Fraction, &Kind::Table(LOSS)),
        "0",
        r#""1%""#,
        "random loss on the way back; of ACKs only with `loss_of_acks`",
    ),
];

/// `reorder`.
pub(crate) const REORDER: &[Key] = &[
    key(
        "probability",
        Kind::Fraction,
        "",
        "0.01",
        "part of the packets; required",
    ),
    key(
        "extra",
        Kind::Span { min: 1, max: HOUR },
        "",
        r#""5ms""#,
        "they arrive this much later; required",
    ),
];

const POLICER: &[Key] = &[
    key(
        "rate",
        Kind::Rate,
        "",
        r#""50Mbit/s""#,
        "rate at which tokens come; required",
    ),
    key(
        "burst",
        Kind::Size,
        "",
        r#""100kB""#,
        "depth of the bucket, full at the start; required",
    ),
];

/// An entry of `path.schedule`.
pub(crate) const CHANGE: &[Key] = &concat::<{ ANY_CHANGE.len() + 1 }>(&[
    ANY_CHANGE,
    &[key(
        "rtt",
        Kind::Span { min: 1, max: HOUR },
        "",
        r#""120ms""#,
        "`path.rtt` from then on; the RTT of every flow changes by as much",
    )],
]);

/// An entry of `link.<name>.schedule`.
pub(crate) const LINK_CHANGE: &[Key] = &concat::<{ ANY_CHANGE.len() + 1 }>(&[
    ANY_CHANGE,
    &[key(
        "delay",
        ANY_TIME,
        "",
        r#""60ms""#,
        "propagation delay of the link from then on",
    )],
]);

const ANY_CHANGE: &[Key] = &[
    key("at", ANY_TIME, "", r#""10s""#, "when; required"),
    key(
        "rate",
        Kind::Rate,
        "",
        r#""50Mbit/s""#,
        "capacity from then on",
    ),
    key(
        "outage",
        POSITIVE_TIME,
        "",
        r#""2s""#,
        "for so long nothing is transmitted: packets wait",
    ),
    key(
        "loss",
        Kind::Either(&Kind::Fraction, &Kind::Table(LOSS)),
        "",
        r#""0.1%""#,
        "random loss from then on",
    ),
];

/// `[[route]]`.
pub(crate) const ROUTE: &[Key] = &[
    fixed(
        "flow",
        Kind::Text,
        "",
        r#""long""#,
        "name of a flow or of traffic; required",
    ),
    fixed(
        "forward",
        Kind::OneOrMany(&Kind::Text),
        "",
        r#"["first", "second"]"#,
        "links that data crosses, in order; required",
    ),
    fixed(
        "back",
        Kind::OneOrMany(&Kind::Text),
        "(a delay equal to that of the way there)",
        r#"["home"]"#,
        "links that ACKs and answers cross, in order",
    ),
];

/// `loss` as a table.
pub(crate) const LOSS: &[Key] = &[
    key(
        "model",
        Kind::Word(LOSS_MODELS),
        "",
        r#""gilbert-elliott""#,
        "loss process",
    ),
    key(
        "probability",
        Kind::Fraction,
        "",
        "1e-4",
        "bernoulli: probability of loss of each packet",
    ),
    key(
        "to_bad",
        Kind::Fraction,
        "",
        "1e-4",
        "gilbert-elliott: from the good to the bad state, per packet",
    ),
    key(
        "to_good",
        Kind::Fraction,
        "",
        "0.1",
        "gilbert-elliott: from the bad to the good state, per packet",
    ),
    key(
        "good",
        Kind::Fraction,
        "0",
        "0",
        "gilbert-elliott: probability of loss in the good state",
    ),
    key(
        "bad",
        Kind::Fraction,
        "1",
        "0.5",
        "gilbert-elliott: probability of loss in the bad state",
    ),
];

const LOSS_MODELS: &[Word] = &[
    word("bernoulli", "each packet independently"),
    word("gilbert-elliott", "two states, one step per packet"),
];
