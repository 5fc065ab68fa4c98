//! The reference page of the policy file, `docs/policy.md`, made from its keys.

use fullpipe_scenario::tables::{rows, tables_inside, words};
use fullpipe_scenario::value::{Key, Table};

use crate::keys::{Defaults, PathKeys};

/// The reference page.
pub fn markdown() -> String {
    let mut out = HEAD.to_owned();
    let mut seen = Vec::new();
    for (title, text, keys) in SECTIONS {
        out.push_str(&format!("\n## {title}\n\n{text}\n"));
        rows(&mut out, keys);
        for key in *keys {
            words(&mut out, key, &mut seen);
        }
        tables_inside(&mut out, "", keys, &mut seen);
    }
    out.push_str(TAIL);
    out
}

const SECTIONS: &[(&str, &str, &[Key])] = &[
    (
        "`[defaults]`",
        "May stand in any of the files; each key once.",
        Defaults::KEYS,
    ),
    (
        "`[[path]]`",
        "One path: which flows, and what they get. One of `stack` and `kernel` is\n\
         required. The first path that matches a flow decides.",
        PathKeys::KEYS,
    ),
];

const HEAD: &str = "\
# Policies

<!-- Made from the tables in crates/policy/src/keys.rs; a test compares.
UPDATE_DOCS=1 writes it anew. -->

A policy says which flows of this host get which congestion control, windows and buffers. It is a
TOML file; beside `policy.toml`, the files `policy.d/*.toml` are read in the order of their names,
hidden ones left out. Each is a regular file of at most 1 MB.
`fullpipe tune check FILE` lists everything that is wrong with it, `fullpipe tune explain ADDRESS
--policy FILE` shows which path holds an address and what it does there. Neither needs a privilege.

```toml
[defaults]
never_tune = [\"22\", \"873\"]

[[path]]
name = \"cern\"
to = [\"192.0.2.0/24\", \"2001:db8:1::/48\"]
ports = \"5000-5100\"
rate = \"10Gbit/s\"
rtt = \"170ms\"
stack = \"highspeed+limited(max_ssthresh=5000)\"
buffers = \"bdp*2\"
share = \"50%\"
```

Quantities are strings with a unit, as in [scenarios](scenario.md). `bdp` is `rate` x `rtt` in
packets of `mtu`; it and its multiples `bdp*2`, `0.5*bdp` and `2BDP` are rounded down to whole
packets, of which the payload counts.
`path.rate*0.9` is a part of `rate`.

A path with `probe` need not state `rate`, `rtt` and `buffer`: the daemon measures them and keeps
what it found, with its age ([the tuner](tuner.md)). What the file states counts before what was
measured. A path that cannot do without waits for its first measurement; until then no flow is of
it.

Networks that hold every address (`0.0.0.0/0`, `::/0`), IPv4 as a whole inside IPv6, loopback and
link-local addresses are refused without `allow_everything`.
";

const TAIL: &str = "
## Which flow is of which path

A flow whose port, at either end, is in `never_tune` is left alone. Otherwise the paths are tried in
the order of the files: the other end's address is in `to`, the port in `ports`, the end that opened
the connection is that of `side`, the socket's control group is `cgroup` or below it, and the
process has the name `process`. A flow whose program chose its algorithm itself is left alone where
`respect_app` says so; it does not fall through to a later path. `share` then decides by a hash of
the socket's cookie, so that a flow keeps its arm.

## What the kernel side does

It runs `reno`, `aimd`, `multcp`, `pretuned`, `highspeed`, `scalable`, `bic`, `htcp`, `cubic`,
`westwood`, `vegas`, `fast` and `hstcp-lp`, with standard slow start, `limited` and `gamma`, in
fixed point, on every ACK. Laws that are a(w) and b(w) become a table of at most 128 rows;
`fullpipe tune explain` states its largest error. Whatever a policy says, the increase stays between
1/256 and 4096 segments per round trip, a loss takes between 1/128 and 1/2 of the window, and the
window stays between 2 and 2^24 segments. Laws of the kernel are `cubic-linux`,
`bbr-linux` and the others of `fullpipe list stacks`, or any other by `kernel = \"dctcp\"`; they
take no parameters.

What it cannot do is an error that names the part: other slow starts (`hystart`), pacing of every
segment (`paced`), a decrease of its own for ECN marks (`ecn_keep`), options of laws that only the
simulator has.

A path that takes more than CUBIC at the same loss rate is a warning, with the number of Reno flows
that would take as much (each by Reno's own cycle, `sqrt(3/(2p))` from some 100 segments on) at the
window that the path can hold, or at 20,000 segments where that is larger (`fullpipe tune explain`
weighs up to 200,000). So is a `kernel` that the running kernel does not have.
";
