//! A host of a run whose peer says anything: ACKs of data never sent, segments of any number and
//! length, noise, a socket that refuses. Nothing panics and the host comes to its end.
#![no_main]

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fullpipe_run::{CrossSpec, FlowSpec, RunSpec};
use fullpipe_flow::{Ack, Preset, Range, ReceiverConfig, SackBlocks, Segment, SenderConfig};
use fullpipe_cc::StackSpec;
use fullpipe_net::endpoint::{self, Flush, Hooks, Mark, Plan, Port, Side};
use fullpipe_net::io::Stop;
use fullpipe_net::wire::reception::term;
use fullpipe_net::wire::{
    AckDatagram, CrossDatagram, DataDatagram, Kind, Parsed, SessionId,
};
use fullpipe_units::{Span, Time};
use libfuzzer_sys::fuzz_target;

const SESSION: SessionId = SessionId(7);
const END: Span = Span::from_secs(20);

/// The network is the fuzzer.
struct Script<'a> {
    rest: RefCell<&'a [u8]>,
    now: Time,
    pushed: usize,
    /// Random bits of the segments that left, by flow and number.
    bits: HashMap<(u16, u64), u8>,
    arrived: Vec<(Option<Mark>, Vec<u8>)>,
    refuse: bool,
}

impl Script<'_> {
    fn byte(&self) -> Option<u8> {
        let mut rest = self.rest.borrow_mut();
        let (&first, more) = rest.split_first()?;
        *rest = more;
        Some(first)
    }

    fn number(&self) -> u64 {
        u64::from(self.byte().unwrap_or(0))
    }

    fn range(&self) -> Range {
        let start = self.number();
        Range {
            start,
            end: start + 1 + self.number() % 16,
        }
    }

    fn ack(&self) -> Vec<u8> {
        let flags = self.number();
        let mut sacks = SackBlocks::default();
        for _ in 0..flags >> 4 & 3 {
            sacks.push(self.range());
        }
        let cum = self.number();
        let ack = Ack {
            cum,
            syn: flags & 1 != 0,
            echo: Time::from_nanos(self.now.as_nanos().saturating_sub(self.number() << 20)),
            stamp_ms: 0,
            one_way: None,
            sacks,
            dsack: flags & 2 != 0,
            ece: flags & 4 != 0,
            window_end: if flags & 8 != 0 {
                u64::MAX
            } else {
                cum + self.number()
            },
        };
        let flow = (flags >> 7) as u16;
        let ack = AckDatagram {
            session: SESSION,
            flow,
            ack,
            hold: Span::ZERO,
            ce: 0,
            ect: 0,
            proof: self.proof(flow, &ack),
        };
        let mut out = vec![0; AckDatagram::MOST];
        let n = Parsed::Ack(ack).encode(&mut out);
        out.truncate(n);
        out
    }

    /// Of who has received what the ACK reports, as far as it was sent.
    fn proof(&self, flow: u16, ack: &Ack) -> u32 {
        let blocks = ack.sacks.iter().skip(usize::from(ack.dsack));
        let blocks = blocks.flat_map(|block| block.start..block.end);
        (0..ack.cum).chain(blocks).fold(0, |sum: u32, seq| {
            let bits = self.bits.get(&(flow, seq)).copied().unwrap_or(0);
            sum.wrapping_add(term(seq, bits))
        })
    }

    fn data(&self) -> Vec<u8> {
        let flags = self.number();
        let syn = flags & 1 != 0;
        let segment = Segment {
            seq: if syn {
                0
            } else {
                self.number() << (flags >> 4 & 7)
            },
            syn,
            retransmission: flags & 2 != 0,
            stamp: self.now,
            ect: false,
            ce: false,
            cwr: flags & 4 != 0 && !syn,
            push: flags & 8 != 0 && !syn,
        };
        let mut out = vec![0; if syn { 24 } else { 24 + 1448 }];
        DataDatagram {
            session: SESSION,
            flow: 2,
            segment,
            nonce: match syn {
                true => 0,
                false => flags as u8 >> 4 & 7,
            },
        }
        .encode(&mut out);
        out
    }
}

impl Script<'_> {
    /// A probe, an echo, or cross traffic.
    fn probe(&self, cross: bool) -> Vec<u8> {
        let (number, flow) = (self.number(), self.number() as u16 & 3);
        let mut out = vec![0; 24 + self.number() as usize];
        let (kind, number) = match (cross, number & 1 != 0) {
            (true, _) => (Kind::Datagram, number),
            (false, false) => (Kind::Ping, number / 2),
            (false, true) => (Kind::Pong, number / 2),
        };
        CrossDatagram {
            kind,
            session: SESSION,
            flow,
            number,
            stamp: self.now,
        }
        .encode(&mut out);
        out
    }
}

impl Port for Script<'_> {
    fn push(&mut self, _: SocketAddr, _: Option<Mark>, len: usize, fill: impl FnOnce(&mut [u8])) {
        let mut out = vec![0; len];
        fill(&mut out);
        let parsed = Parsed::decode(&out).expect("we send what we would refuse");
        if let Parsed::Data(data, _) = parsed {
            self.bits.insert((data.flow, data.segment.seq), data.nonce);
        }
        self.pushed += 1;
    }

    fn is_full(&self) -> bool {
        self.pushed >= 8
    }

    fn overhead(&self) -> usize {
        0
    }

    fn held_until(&mut self) -> Option<Time> {
        None
    }

    fn flush(&mut self) -> io::Result<Flush> {
        let all = std::mem::take(&mut self.pushed);
        let refused = std::mem::take(&mut self.refuse) && all > 0;
        let left = if refused { all / 2 } else { all };
        Ok(Flush { left, refused })
    }

    fn receive(&mut self) -> io::Result<usize> {
        self.arrived.clear();
        while let Some(step) = self.byte() {
            let datagram = match step % 8 {
                0 | 1 => self.ack(),
                2 | 3 => self.data(),
                4 => {
                    let n = self.number() as usize;
                    (0..n).map_while(|_| self.byte()).collect()
                }
                5 if step & 8 != 0 => self.probe(step & 16 != 0),
                5 => {
                    self.refuse = true;
                    continue;
                }
                _ => {
                    let step = Span::from_micros(1 + (self.number() << (step >> 4)));
                    self.now = self.now + step;
                    break;
                }
            };
            let mark = match step >> 6 {
                0 => Some(Mark::Congestion),
                1 => Some(Mark::Capable),
                _ => None,
            };
            self.arrived.push((mark, datagram));
        }
        Ok(self.arrived.len())
    }

    fn each(&self, mut take: impl FnMut(SocketAddr, Option<Mark>, &[u8])) {
        for (mark, datagram) in &self.arrived {
            take(peer(), *mark, datagram);
        }
    }

    fn received_at(&self, _: impl FnMut(Time)) {}

    fn has_stamps(&self) -> bool {
        false
    }

    fn wait(&mut self, until: Time, _: bool) -> io::Result<bool> {
        let over = self.rest.borrow().is_empty();
        // Nothing comes any more: the end.
        self.now = if over {
            Time::ZERO + END
        } else {
            self.now.max(until)
        };
        Ok(true)
    }

    fn pause(&mut self, _: Time) -> io::Result<()> {
        Ok(())
    }

    fn now(&self) -> Time {
        self.now
    }

    fn drops(&self) -> u64 {
        0
    }

    fn passed_over(&self) -> (u64, u64) {
        (0, 0)
    }

    fn reroute(&mut self, _: SocketAddr, _: Option<SocketAddr>) -> io::Result<()> {
        Ok(())
    }
}

fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1000))
}

fn flow(name: &str, stack: &str, reverse: bool, preset: Preset) -> FlowSpec {
    let sender = SenderConfig::preset(preset, 1500).with(|c| {
c.window.max = 60.0;
c.ecn = true;
});
    let receiver = ReceiverConfig::preset(preset).with(|c| c.ecn = true);
    let stack = StackSpec::parse(stack).expect("a stack");
    FlowSpec {
        reverse,
        ..FlowSpec::new(name, stack, sender, receiver, vec![], vec![])
    }
}

fuzz_target!(|input: &[u8]| {
    let spec = RunSpec {
        duration: END,
        flows: vec![
            flow("modern", "cubic", false, Preset::Y2026),
            flow("old", "reno", false, Preset::Y2003),
            flow("back", "reno", true, Preset::Linux),
        ],
        cross: vec![CrossSpec::probes("ping", 64, Span::from_millis(100), vec![], vec![])],
        ..RunSpec::default()
    };
    let plan = Plan {
        spec: Arc::new(spec),
        side: Side::Near,
        session: SESSION,
        peer: peer(),
        shared_clock: true,
    };
    let script = Script {
        rest: RefCell::new(input),
        now: Time::ZERO,
        pushed: 0,
        bits: HashMap::new(),
        arrived: Vec::new(),
        refuse: false,
    };
    let outcome = endpoint::run(
        &plan,
        script,
        Hooks::default(),
        &Stop::new().expect("a descriptor"),
    )
    .expect("no socket, no error");
    assert!(outcome.counts.ignored <= outcome.counts.datagrams_in);
});
