//! Keys of `[[flow]]`.

use fullpipe_cc::Count;
use fullpipe_flow::ArtificialLoss;
use fullpipe_units::Span;

use super::transport::{Ends, Transport};
use crate::value::{DEFAULT_FLOW, HOUR, Target, keys, tables, words};

tables! {
    /// `[[flow]]`.
    Flow { own: FlowKeys, transport: Transport }
}

keys! {
    /// Keys of a flow beside those of its transport.
    FlowKeys => Ends {
        @fixed name: name [shows format!("{DEFAULT_FLOW:?}")], "main",
            "unique name; may be left out if there is one flow";
        streams: long(1, 100_000, "streams") [= 1], 16,
            "number of equal connections from one host; they are named `<name>.1`, `<name>.2` and \
             so on";
        direction: word(Direction) [= Direction::Forward], "reverse", "way of the data";
        start_spread: time [= Span::ZERO], "100ms",
            "each stream starts later by a uniform part of this";
        rtt_spread: span(0, HOUR) [= Span::ZERO], "10ms",
            "the delay of each stream is longer by a uniform part of this, drawn once per run";
        enabled: flag [= true], false, "false: the flow is left out";
        start: time [= Span::ZERO], "10s", "the flow begins";
        stop: moment, "50s", "no new data after this time";
        size: volume, "100MB",
            "length of a finite transfer of each stream; without it the flow sends until the end";
        rate: rate, "50Mbit/s",
            "ceiling of each stream, of payload: it is paced, at this rate or below (Linux \
             `SO_MAX_PACING_RATE`)";
        drop: many(table(DropTable)), { segment = 40 },
            "losses of this flow at exact places or at random; a list of tables combines several, \
             an empty list is none";
        change: many(table(ChangeTable)), { at = "20s", set = { a = 6, b = 0.3 } },
            "parameters that change while the flow runs, as a list of tables or as \
             `[[flow.change]]` below the flow; an empty list is none";
        count: word(Count) [=> sender.window.count], "acks", "what an increase law counts";
    }
}

words! {
    /// Way of the data.
    enum Direction {
        Forward = "forward", "over the bottleneck; ACKs take the way back";
        Reverse = "reverse", "over the way back, which is then a bottleneck as well; ACKs take the \
                              bottleneck";
    }
}

keys! {
    /// `flow.drop`.
    DropTable => ArtificialLoss {
        segment: many(long(0, 1 << 40, "")), [40, 41],
            "first transmission of these segments; 0 is the first segment of data";
        at_cwnd: real(1.0, 1e9), 32,
            "once, the next new segment after the window first reaches this many segments";
        every: long(2, 1 << 40, ""), 1000, "every n-th data packet";
        probability: fraction [=> probability], 1e-5,
            "each data packet with this probability";
        time: many(time), "4.73s", "the next data packet after these times of the run";
        r#where: word(DropPlace) [= DropPlace::Path], "sender", "who loses the segment";
    }
}

keys! {
    /// `flow.change`.
    ChangeTable {
        at: time [!], "20s",
            "time of the run; the flow goes on with its window and its threshold, what the law \
             remembers beside them it learns anew";
        set: settings, { a = 6, b = 0.3 },
            "parameters of the stack as it is then, by the names of its spelling; `a` and `b` are \
             `increase` and `decrease`, which turn `reno` into `aimd`; `part.name` where two parts \
             have the name";
        stack: stack, "highspeed(low_window=31)",
            "another stack from then on, to which `set` applies; it says nothing of the initial \
             window";
        window: window, "2000 segments", "another cap of the congestion window";
        rate: off(rate), "50Mbit/s",
            "another ceiling of the rate; `\"off\"` lifts it, and the flow stays paced";
    }
}

impl Target for ArtificialLoss {
    fn varieties() -> Vec<(&'static str, Self)> {
        vec![("", Self::default())]
    }
}

words! {
    /// Place at which a prescribed drop happens.
    enum DropPlace {
        Path = "path", "the packet is lost on its way";
        Receiver = "receiver", "the packet crosses the path and is thrown away where it arrives: \
            for the flow it is dropped, for its links delivered";
        Sender = "sender", "the packet arrives, the sender treats it as lost: one reduction per \
                            window, no retransmission";
    }
}
