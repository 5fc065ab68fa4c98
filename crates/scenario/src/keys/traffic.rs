//! Keys of `[[traffic]]`.

use fullpipe_run::Spacing;
use fullpipe_units::{Bytes, Rate, Span, WindowSize};

use super::flow::Direction;
use super::transport::Transport;
use crate::value::{MICROSECOND, YEAR, keys, kinds, tables, words};

tables! {
    /// `[[traffic]]`.
    Traffic { own: TrafficKeys, transport: Transport }
}

keys! {
    /// Keys that a flow does not have, or not so.
    TrafficKeys by TrafficWord {
        @fixed name: name [!], "mice", "unique name";
        kind: word(TrafficWord) [!], "udp", "what it is";
        enabled: flag [= true], false, "false: it is left out";
        direction: word(Direction) [= Direction::Forward], "reverse", "way of the data";
        start: time [= Span::ZERO], "10s", "it begins";
        stop: moment, "50s", "no new flow, datagram or probe after this time";
        size: either(volume, table(SizeTable)) ~ r#""10 segments""#
            [shows format!("(short-flows: required; ping: \"{PING_SIZE}B\")")],
            { pareto = { mean = "10 segments", shape = 1.2 } },
            "length of a transfer, or its law";
        load: fraction, "60%",
            "Poisson arrivals that offer this part of the capacity, headers included, \
             nothing resent";
        per_second: real(1e-6, 1e6), 5, "Poisson arrivals at this rate";
        every: moment ~ r#""10s""#, "200ms",
            "time on a step";
        count: long(1, 1_000_000, "flows"), 300,
            "so many in all, each at a uniform time `within`";
        within: moment [or "until `stop` or the end"], "10s",
            "with `count`, time in which they arrive";
        exchanges: real(1.0, 1e6) [= 1.0], 5,
            "mean number of transfers of a session, geometric; what arrives is a session, and \
             `load` counts all of them";
        think: time [= Span::ZERO], "2s",
            "with `exchanges`, mean of the exponential times from the end of a transfer to the \
             next one of its session";
        paired_with: text ~ r#""web""#, "camp-a",
            "name of other short flows: arrivals, sizes and sessions are drawn as theirs, so that \
             with the same laws both have the same transfers at the same times";
        rate: rate, "20Mbit/s", "rate, headers included; of an on-off source while it is on";
        on: span(MICROSECOND, YEAR), "500ms",
            "mean of the exponential times of sending";
        off: span(MICROSECOND, YEAR), "500ms",
            "mean of the exponential times of silence";
        mean: rate, "50Mbit/s", "rate(t) = mean + amplitude sin(2 pi t / period)";
        amplitude: zero_rate, "30Mbit/s", "at most the mean";
        period: moment [or "the others: the last rate stays"], "60s",
            "the rates begin anew after this time";
        volume: size [or "until `stop`"], "100MB", "bytes with headers, then silence";
        from: zero_rate, "10Mbit/s", "first rate";
        to: zero_rate, "100Mbit/s", "last rate, above or below the first";
        step: rate, "10Mbit/s", "difference of two rates";
        file: text ~ r#""rates.csv""#, "video.csv",
            "lines of seconds and a rate that holds from then on; its path counts from \
             the scenario file";
        packet: whole(28, 65_535, "bytes") [or "`path.mtu`"], 200,
            "bytes of a datagram with its headers";
        spacing: word(Spacing) [= Spacing::Even], "poisson",
            "how datagrams follow one another";
        interval: moment [= Span::from_millis(100)], "1s", "from one request to the next";
    }
}

kinds! {
    /// Kinds of traffic, each with its keys.
    TrafficKinds of TrafficKeys,
    /// Word of a kind of traffic.
    by TrafficWord {
        ShortFlows = "short-flows",
            "connections that arrive, transfer something and end; they take the keys of a \
             transport too" => {
        } + [
            TrafficKeys::size,
            TrafficKeys::load,
            TrafficKeys::per_second,
            TrafficKeys::every => "time between two arrivals",
            TrafficKeys::count,
            TrafficKeys::within,
            TrafficKeys::exchanges,
            TrafficKeys::think,
            TrafficKeys::paired_with,
        ];
        Udp = "udp", "datagrams at a constant `rate`" => {
            rate: Rate [!],
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        OnOff = "udp-on-off", "at `rate` while on, for exponential times `on` and `off`" => {
            rate: Rate [!],
            on: Span [!],
            off: Span [!],
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        Sine = "udp-sine", "`mean`, `amplitude`, `period`" => {
            mean: Rate [!],
            amplitude: Rate [!],
            period: Span [!],
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        Blast = "udp-blast", "at `rate` until `volume` is sent" => {
            rate: Rate [!],
            volume: Option<Bytes>,
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        Staircase = "udp-staircase", "`from`, `to`, `step`, `every`" => {
            from: Rate [!],
            to: Rate [!],
            step: Rate [!],
            every: Span [!],
            period: Option<Span>,
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        File = "udp-file", "rates from a `file`" => {
            file: String [!],
            period: Option<Span>,
        } + [TrafficKeys::packet, TrafficKeys::spacing];
        Ping = "ping", "probes that are answered at once" => {
        } + [
            TrafficKeys::interval,
            TrafficKeys::size => "bytes without the 28 of headers",
            Transport::rtt,
        ];
    }
}

words! {
    Spacing {
        Even = "even", "as even as the rate allows";
        Poisson = "poisson", "exponential gaps";
    }
}

keys! {
    /// `size` as a table.
    SizeTable {
        uniform: bounds, [2, 30], "whole segments from the first to the second, equally likely";
        pareto: table(ParetoTable), { mean = "10 segments", shape = 1.2 }, "Pareto law";
        file: text, "sizes.csv",
            "distribution function: lines of segments and the probability of at most so many, the \
             last 1; linear in between";
    }
}

keys! {
    /// `size.pareto`.
    ParetoTable {
        mean: volume [!], "10 segments", "mean of the law before it is cut";
        shape: real(1.000_001, 100.0) [!], 1.2, "above 1";
        most: volume [= WindowSize::Segments(1e9)], "100000 segments",
            "larger transfers are cut to this";
    }
}

/// Bytes of a probe without its headers, as `ping -s` counts them.
pub(crate) const PING_SIZE: u64 = 64;
