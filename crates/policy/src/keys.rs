//! The keys of a policy file, one row for each: name, kind, default, example, what it is.

use fullpipe_scenario::value::{HOUR, Section, Table, YEAR, keys, words};
use fullpipe_units::Span;

use crate::compiled::{OnDaemonLoss, Prefix, Side};
use crate::spelling::{Ceiling, Ports, Size};

keys! {
    /// Top level of the file.
    Top {
        defaults: table(Defaults), (), "what holds for the whole policy";
        path: tables(PathKeys), (), "a path: which flows, and what they get";
    }
}

keys! {
    /// `[defaults]`.
    Defaults {
        respect_app: flag [= true], false,
            "flows whose program chose its algorithm itself (`TCP_CONGESTION`) are left alone";
        on_daemon_loss: word(OnDaemonLoss) [= OnDaemonLoss::Standard], "keep",
            "what the kernel side does when the daemon is gone";
        allow_everything: flag [= false], true,
            "a path may hold every address, loopback or link-local addresses";
        never_tune: many(parsed(Ports)) [= vec![Ports(22..=22)]], ["22", "873"],
            "ports of either end whose flows no path touches";
    }
}

keys! {
    /// `[[path]]`.
    PathKeys {
        name: name ~ r#""cern""# [!], "cern", "unique name, over all files";
        to: many(parsed(Prefix)) [!], ["192.0.2.0/24", "2001:db8:1::/48"],
            "networks of the other end; an address alone is one host";
        ports: many(parsed(Ports)), ["443", "5000-5100"],
            "ports of the end that was connected to, or of either end without `side`; without the \
             key every port";
        side: word(Side) [= Side::Either], "active", "which end opened the connection";
        cgroup: text, "/system.slice/gridftp.service",
            "control group (v2) of the socket, by its path below the root of the hierarchy";
        process: text, "iperf3", "name of the process (`comm`), at most 15 bytes";
        respect_app: flag [or "that of `[defaults]`"], false,
            "flows whose program chose its algorithm itself are left alone";
        share: fraction [= 1.0], "50%",
            "part of the flows that gets the policy, by a hash of the flow; the others stay as \
             they were, for comparison";
        rate: rate, "10Gbit/s",
            "capacity of the path: `bdp`, `path.rate`, warnings and forecasts come from it";
        rtt: span(1_000, HOUR), "170ms", "round-trip time of the path without queues";
        buffer: buffer [or "1BDP for the forecast"], "300 packets",
            "buffer of the bottleneck, for pre-tuning and the forecast";
        probe: text, "192.0.2.7:6220",
            "host that runs `fullpipe serve`, or a tuner with `--answer-probes`, at the far end of \
             the path: what of `rate`, `rtt` and `buffer` is not given is measured by filling the \
             path for some seconds";
        probe_every: span(MINUTE, YEAR) [= Span::from_secs(86_400)], "7d",
            "a measurement counts so long";
        mtu: whole(576, 65_535, "bytes") [= 1500], 9000,
            "packet with its headers, of which 52 bytes are no payload (IPv4, TCP, time stamps)";
        stack: stack, "highspeed(low_window=31)+limited(max_ssthresh=100)",
            "congestion control in fullpipe's spelling (`fullpipe list stacks`), with its slow \
             start and its sending of the initial window";
        kernel: text, "dctcp",
            "instead of `stack`: an algorithm of the kernel, by the kernel's name";
        initial_window: table(InitialWindow), (), "what a new flow sends before the first ACK";
        window: parsed(Size), "bdp*1.5", "congestion window at most";
        send_buffer: parsed(Size), "bdp*2",
            "`SO_SNDBUF`, in payload: it ends the kernel's own tuning of the buffer";
        receive_buffer: parsed(Size), "16MB", "`SO_RCVBUF`, in payload";
        buffers: parsed(Size), "bdp*2", "both buffers";
        pacing: parsed(Ceiling), "path.rate*0.9",
            "rate at most, of each flow (`SO_MAX_PACING_RATE`), also with `kernel`";
        divide: flag [= false], true,
            "`window`, `pacing` and the buffers are divided among the flows that the path has now";
        sendstall: word(Stall) [= Stall::React], "ignore",
            "what a full queue of this host's own interface does to the window";
        update_interval: span(1_000_000, 60_000_000_000), "100ms",
            "a(w) and b(w) are taken from the window this often, as the Net100 daemon did; without \
             the key on every ACK";
        change: many(table(PathChange)), { at = "20s", set = { a = 6, b = 0.3 } },
            "parameters that change while flows run, as a list of tables or as `[[path.change]]` \
             below the path";
    }
}

keys! {
    /// `path.change`.
    PathChange {
        at: span(1, YEAR) [!], "20s",
            "time since the policy was applied; flows go on with their window and threshold, what \
             the law remembers beside them it learns anew";
        set: settings, { a = 6, b = 0.3 },
            "parameters of the stack as it is then, by the names of its spelling; `a` and `b` are \
             `increase` and `decrease`, which turn `reno` into `aimd`; `part.name` where two parts \
             have the name";
        stack: stack, "highspeed(low_window=31)",
            "another stack from then on, to which `set` applies; it says nothing of the initial \
             window";
        window: parsed(Size), "bdp*1.5", "another congestion window at most";
        pacing: parsed(Ceiling), "path.rate*0.5", "another rate at most";
    }
}

keys! {
    /// `path.initial_window`.
    InitialWindow {
        segments: whole(1, 1000, "segments"), 24, "its size";
        spread: span(1, 10_000_000_000), "4ms",
            "largest gap between two of its segments; the gap is RTT/segments where that is \
             shorter, none below 1 ms, and needs `rtt`";
        via: word(Via) [= Via::Auto], "beyond-ten", "mechanism that spreads";
    }
}

words! {
    Side {
        Either = "either", "both";
        Active = "active", "this host connected";
        Passive = "passive", "this host accepted";
    }
}

words! {
    OnDaemonLoss {
        Standard = "standard", "Reno (RFC 5681) until the daemon is back";
        Keep = "keep", "the policy as it was";
    }
}

words! {
    /// Whether a segment that the own interface refuses (a send stall) counts as congestion.
    enum Stall {
        React = "react", "it halves the window, or what the law removes: the kernel's rule";
        Ignore = "ignore", "nothing; sane only while the queue of the interface is bounded";
    }
}

words! {
    Via {
        Auto = "auto", "whichever the host has, tried in the order of this list";
        Edt = "edt", "departure times of a packet-scheduler program, kept by `sch_fq`";
        Htb = "htb", "a class of `sch_htb`, shared by the flows that begin at a time";
        BeyondTen = "beyond-ten", "the kernel's own pacing, which skips the first ten segments";
    }
}

/// Mechanism that spreads the initial window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// The first of the others that the host has.
    #[default]
    Auto,
    /// Departure times and `sch_fq`.
    Edt,
    /// A class of `sch_htb` and a classifier.
    Htb,
    /// The congestion control alone.
    BeyondTen,
}

const MINUTE: u64 = HOUR / 60;

/// The keys of `[[path]]`.
pub fn of_a_path() -> impl Iterator<Item = &'static str> {
    PathKeys::KEYS.iter().map(|key| key.name)
}

/// Where a key that is unknown in one table may be at home.
pub(crate) const SECTIONS: &[Section] = &[
    ("", Top::KEYS),
    ("[defaults]", Defaults::KEYS),
    ("[[path]]", PathKeys::KEYS),
    ("[[path.change]]", PathChange::KEYS),
];
