//! Reference page of the scenario file, made from the tables of `keys`.

use super::keys;
use super::tables::{rows, tables_inside, words};
use super::value::{Key, Table};
use fullpipe_metrics::wrapped;

/// The reference page.
pub(super) fn markdown() -> String {
    let mut out = HEAD.to_owned();
    let mut seen = Vec::new();
    for section in SECTIONS {
        out.push_str(&format!(
            "\n## {}\n\n{}\n",
            section.title,
            section.text.trim()
        ));
        rows(&mut out, section.keys);
        for key in section.keys {
            words(&mut out, key, &mut seen);
        }
        if section.title != "Top level" {
            tables_inside(&mut out, "", section.keys, &mut seen);
        }
    }
    out.push_str(TAIL);
    wrapped(&out)
}

struct Section {
    title: &'static str,
    text: &'static str,
    keys: &'static [Key],
}

const SECTIONS: &[Section] = &[
    Section {
        title: "Top level",
        text: "These keys come before the first table.",
        keys: keys::Top::KEYS,
    },
    Section {
        title: "`[path]`",
        text: "The bottleneck: random loss, a policer, a queue, a transmitter, a delay, in this order. `rate` (or a `trace`) and `rtt`\n\
               are required, here or in `[matrix]`, unless every flow has a `[[route]]`. All flows without a route cross it. ACKs return\n\
               over links that only delay, or over a second bottleneck if a `return_` key is set or something runs in reverse. A\n\
               `preset` is a set of defaults: any key beside it wins. It may vary in `[matrix]`.",
        keys: keys::Path::KEYS,
    },
    Section {
        title: "`[[flow]]`",
        text: "One sender and its receiver; at least one, or some `[[traffic]]`. A `preset` is a set of\n\
               defaults: any key beside it wins.",
        keys: keys::Flow::KEYS,
    },
    Section {
        title: "`[[traffic]]`",
        text: "What is no lasting flow: short flows, datagrams without congestion control, probes. A key of another kind is an\n\
               error. Short flows have one of `load`, `per_second`, `every` and `count`, and take the keys of a `[[flow]]` that are\n\
               not about one transfer: `stack`, `preset`, `rtt`, `window` and all those below them.\n\n\
               With `exchanges` a session arrives, whose transfers follow one another, each a connection of its own and of a size of\n\
               its own: a closed loop, which offers a slow path less, where open arrivals pile up (draft-irtf-iccrg-tcpeval-01\n\
               section 2.1). Its `load` is that of as many sessions as there are in the long run, which a run much longer than\n\
               `exchanges` times transfer and `think` has. No transfer begins after `stop`.\n\n\
               `paired_with` makes two camps, of two stacks for example, of the same transfers at the same times\n\
               (draft-irtf-iccrg-tcpeval-01 section 6.1.2). What follows a transfer begins when that is over: the same pause later, in\n\
               either camp.",
        keys: keys::TrafficKeys::KEYS,
    },
    Section {
        title: "`[[link]]`",
        text: "A link of any graph, as an addition to `[path]` or instead of it. Its keys may vary as `link.<name>.rate`. 1BDP of its buffer\n\
               uses the longest RTT of the flows that cross it.",
        keys: keys::Link::KEYS,
    },
    Section {
        title: "`[[route]]`",
        text: "The links of a flow or of traffic; `bottleneck` and `return` of `[path]` may be among them. The flow's RTT is the sum of\n\
               their delays, or its own `rtt` if that is longer. Its capacity is the lowest rate on the way there.",
        keys: keys::Route::KEYS,
    },
    Section {
        title: "`[measure]`",
        text: "What is measured.",
        keys: keys::Measures::KEYS,
    },
    Section {
        title: "`[[expect]]`",
        text: "A bound on a metric, of every case or of those that `where` picks. One bound is required:\n\
               `within`, `at_least` and/or `at_most`, or `equals` with `tolerance`. An expectation that picks no case, whose metric\n\
               no case has or that of one flow alone is always the same (`jain`) is an error; `fullpipe falsify` tries whether a\n\
               bound can fail. A run with a broken expectation exits with status 1.",
        keys: keys::Expect::KEYS,
    },
    Section {
        title: "`[[negative]]`",
        text: "A wrong world for `fullpipe falsify`: an expectation must fail in it or, with `inert`, no number may change. Only\n\
               `falsify` runs it.",
        keys: keys::Negative::KEYS,
    },
    Section {
        title: "`[[report]]`",
        text: "A figure of the report (`report.html`). It takes the place of the one of the same\n\
               quantity that the report has anyway.",
        keys: keys::Figures::KEYS,
    },
];

const HEAD: &str = "\
# Scenario files

<!-- Made from the tables in crates/scenario/src/keys/; a test compares.
UPDATE_DOCS=1 writes it anew. -->

A scenario is a TOML file: a path, flows, what to vary, what to expect. `fullpipe check FILE` reads it without running it,
`fullpipe schema scenario` prints its JSON Schema for editors, `fullpipe list scenarios` names those that are built in.

```toml
name = \"two-laws\"
duration = \"60s\"

[path]
rate = \"100Mbit/s\"
rtt = \"80ms\"

[[flow]]
stack = \"reno\"

[matrix]
\"flow.main.stack\" = [\"reno\", \"highspeed\"]
\"path.buffer\" = [\"0.5BDP\", \"1BDP\"]

[[expect]]
metric = \"utilization\"
where = { \"path.buffer\" = \"1BDP\" }
at_least = 0.9
```

## Quantities

Quantities are strings with a unit; a number alone is an error that says which units are due.

| quantity | units |
|---|---|
| time | `ns us ms s min h` |
| rate | `bit/s kbit/s Mbit/s Gbit/s Tbit/s` |
| size | `B kB MB GB TB` (powers of 1000), `KiB MiB GiB TiB` (powers of 1024) |
| window | a size, `segments`, or `BDP` |
| buffer | a size, `packets`, a time, `BDP`, or `\"unlimited\"` |

`1BDP` is `rate x rtt / (8 x mtu)` packets: packets are counted with their headers. The BDP of a buffer uses the RTT of the
path, that of a window the RTT of the flow. Windows and buffers are rounded down to whole packets. A window in bytes counts
payload: 1448 bytes a segment at an mtu of 1500 with time stamps.

## Required keys

A required key stands in its table or, if it may vary, in `[matrix]`.

## Dotted keys

`[matrix]`, `where` and `--set key=value` name keys by their path: `duration`, `path.rate`, `measure.warmup`,
`flow.<name>.stack`, `flow.*.stack` for all flows, `flow.stack` if there is one flow, `flow.main.drop.probability` inside a
table; `traffic.<name>.load` and `link.<name>.rate` in the same way. `--set` takes a TOML value, or text without quotes; for a key of `[matrix]` it replaces the list by one value, and
expectations about the other values do not apply. Where named cases set the key too, it holds in all of them, and
expectations about those that set another value do not apply.

`[[matrix.case]]` is an axis whose values have a name and set several keys at once; so are tables of any other name
that is no key of the file, as in `[[matrix.first]]`, and several such axes multiply:

```toml
[[matrix.case]]
name = \"short path\"
path.rtt = \"10ms\"
flow.main.window = \"512KB\"

[[matrix.case]]
name = \"long path\"
path.rtt = \"170ms\"
flow.main.window = \"8MB\"

[[expect]]
metric = \"goodput_mbps\"
where = { case = \"long path\" }
at_least = 100
```

The flow of a scenario with one flow may go without a name: it is `main`.

## Quick runs and studies

`[quick]` holds what `fullpipe run --quick` changes, as dotted keys. For a key of `[matrix]` a list takes the place of its
list, for a named axis a list of names picks some. Expectations about values that are left out do not apply, nor those that
say `quick = false`; one with `quick = true` holds only then.

```toml
[quick]
duration = \"20s\"
path.buffer = [\"1BDP\"]
case = [\"long path\"]
```

A file with `name`, `about` and `study = [\"first-run\", \"mine.toml\"]` alone is a study: `fullpipe run` runs all of these
scenarios, built-in ones or files beside it, each into a directory of its name.
";

const TAIL: &str = "
## How a path becomes links

- `bottleneck`: what `[path]` says; its propagation delay is half of the shortest RTT of all flows, or more if `schedule`
  shortens the RTT.
- `return`: the way back as a bottleneck, if a `return_` key is set or something runs in reverse; it has the rest of that RTT.
  ACKs and answers of what runs forward cross it, and data of what runs in reverse.
- `return-<delay>`: without `return`, the rest of the RTT, with neither queue nor loss; flows with the same rest share one.
- `extra-<delay>`: behind `return`, what a flow's own RTT is longer. `spread-<stream>`: the same for one stream of a flow with
  `rtt_spread`.
- `nic-<host>`: the interface of a flow's host, where `nic_rate` or `txqueuelen` is set: room for `txqueuelen` waiting packets and the
  one being sent. A host that has no name is called as its flow.
- The links of `[[link]]` under their own names.

A case is limited to 100,000 connections and 5e7 segments on the way, a scenario to 100,000 cases
and 250,000 connections between them.
";
