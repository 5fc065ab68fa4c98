//! The wire format: what is written is read, what is read is written the same, and nothing else
//! gets in.

use fullpipe_flow::{Ack, Range, SackBlocks, Segment};
use fullpipe_net::wire::{
    AckDatagram, CrossDatagram, DataDatagram, HEADER, Header, Kind, MOST_NUMBER, Parsed, SessionId,
    VERSION, WireError,
};
use fullpipe_units::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

fn written(datagram: &Parsed<'_>) -> Vec<u8> {
    let mut out = vec![0xaa; 2048];
    let n = datagram.encode(&mut out);
    out.truncate(n);
    out
}

/// Any bytes: an error, or a datagram that is written as the same bytes.
fn is_total(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(datagram) = Parsed::decode(bytes) {
        prop_assert_eq!(written(&datagram), bytes);
    }
    Ok(())
}

fn stamp() -> impl Strategy<Value = Time> {
    any::<u32>().prop_map(|us| Time::from_nanos(u64::from(us) * 1000))
}

fn data() -> impl Strategy<Value = DataDatagram> {
    let segment = (0..MOST_NUMBER, any::<[bool; 4]>(), stamp());
    (any::<(u64, u16)>(), segment).prop_map(
        |((session, flow), (seq, [syn, retransmission, cwr, push], stamp))| DataDatagram {
            session: SessionId(session),
            flow,
            segment: Segment {
                seq: if syn { 0 } else { seq },
                syn,
                retransmission,
                stamp,
                ect: false,
                ce: false,
                cwr: cwr && !syn,
                push: push && !syn,
            },
            nonce: if syn {
                0
            } else {
                (stamp.as_nanos() / 1000 % 8) as u8
            },
        },
    )
}

fn ack() -> impl Strategy<Value = AckDatagram> {
    let blocks = vec((2..1_000_u64, 1..1_000_u64), 0..=4);
    let window = prop_oneof![Just(None), (0..u32::MAX).prop_map(Some)];
    let numbers = (0..1_u64 << 61, window, any::<[bool; 3]>());
    (
        any::<(u64, u16)>(),
        numbers,
        blocks,
        stamp(),
        any::<[u32; 4]>(),
    )
        .prop_map(
            |((session, flow), (cum, window, [syn, dsack, ece]), blocks, echo, words)| {
                let [hold, stamp_ms, ce, ect] = words;
                let mut sacks = SackBlocks::default();
                for (above, len) in blocks.into_iter().filter(|_| !syn) {
                    let start = cum + above;
                    sacks.push(Range {
                        start,
                        end: start + len,
                    });
                }
                AckDatagram {
                    session: SessionId(session),
                    flow,
                    ack: Ack {
                        cum,
                        syn,
                        echo,
                        stamp_ms,
                        one_way: None,
                        sacks,
                        dsack: dsack && !sacks.is_empty(),
                        ece,
                        window_end: window.map_or(u64::MAX, |w| cum + u64::from(w)),
                    },
                    hold: Span::from_micros(u64::from(hold)),
                    ce,
                    ect,
                    proof: ce ^ hold,
                }
            },
        )
}

proptest! {
    #[test]
    fn data_survives(data in data(), payload in vec(any::<u8>(), 1..1448)) {
        let payload = if data.segment.syn { &[] } else { &payload[..] };
        let bytes = written(&Parsed::Data(data, payload));
        prop_assert_eq!(bytes.len(), 24 + payload.len());
        prop_assert_eq!(Parsed::decode(&bytes), Ok(Parsed::Data(data, payload)));
    }

    #[test]
    fn an_ack_survives(ack in ack()) {
        let bytes = written(&Parsed::Ack(ack));
        prop_assert_eq!(bytes.len(), ack.bytes());
        prop_assert_eq!(Parsed::decode(&bytes), Ok(Parsed::Ack(ack)));
    }

    #[test]
    fn a_probe_survives_and_so_does_its_echo(
        (session, probe) in any::<(u64, u16)>(), number in 0..MOST_NUMBER, stamp in stamp(), padding in vec(any::<u8>(), 0..1448),
    ) {
        let (kind, session) = (Kind::Ping, SessionId(session));
        let ping = CrossDatagram { kind, session, flow: probe, number, stamp };
        let mut bytes = written(&Parsed::Cross(ping, &padding));
        prop_assert_eq!(Parsed::decode(&bytes), Ok(Parsed::Cross(ping, &padding)));
        CrossDatagram::turn(&mut bytes);
        let pong = CrossDatagram { kind: Kind::Pong, ..ping };
        prop_assert_eq!(Parsed::decode(&bytes), Ok(Parsed::Cross(pong, &padding)));
        prop_assert_eq!(bytes.len(), 24 + padding.len());
    }

    #[test]
    fn cross_traffic_survives(
        (session, source) in any::<(u64, u16)>(), number in 0..MOST_NUMBER, stamp in stamp(), padding in vec(any::<u8>(), 0..1448),
    ) {
        let (kind, session) = (Kind::Datagram, SessionId(session));
        let cross = CrossDatagram { kind, session, flow: source, number, stamp };
        let bytes = written(&Parsed::Cross(cross, &padding));
        prop_assert_eq!(Parsed::decode(&bytes), Ok(Parsed::Cross(cross, &padding)));
    }

    #[test]
    fn any_bytes_are_refused_or_written_the_same(bytes in vec(any::<u8>(), 0..120)) {
        is_total(&bytes)?;
    }

    /// The right version and a kind: more than one datagram in sixteen gets further than the
    /// header.
    #[test]
    fn any_bytes_behind_a_header_are_refused_or_written_the_same(
        kind in 0_u8..13, flags in prop_oneof![0_u8..16, any::<u8>()], high in any::<bool>(), mut bytes in vec(any::<u8>(), 24..110),
    ) {
        bytes[0] = VERSION << 4 | kind;
        bytes[1] = flags;
        if !high {
            bytes[12..16].fill(0);
        }
        is_total(&bytes)?;
    }

    /// One byte of an ACK changed.
    #[test]
    fn a_damaged_ack_is_refused_or_written_the_same(ack in ack(), at in 0_usize..108, value in any::<u8>()) {
        let mut bytes = written(&Parsed::Ack(ack));
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        is_total(&bytes)?;
    }

    /// Every prefix of a datagram whose length is fixed by its content is an error.
    #[test]
    fn a_shortened_ack_is_refused(ack in ack(), cut in 1_usize..108) {
        let bytes = written(&Parsed::Ack(ack));
        let len = bytes.len().saturating_sub(cut);
        prop_assert!(Parsed::decode(&bytes[..len]).is_err());
        let mut longer = bytes;
        longer.push(0);
        prop_assert_eq!(Parsed::decode(&longer), Err(WireError::Malformed));
    }
}

/// A valid ACK with one block, 5 to 9 above 3, and 100 segments of window.
fn plain_ack() -> Vec<u8> {
    let mut sacks = SackBlocks::default();
    sacks.push(Range { start: 5, end: 9 });
    let ack = Ack {
        cum: 3,
        syn: false,
        echo: Time::ZERO,
        stamp_ms: 0,
        one_way: None,
        sacks,
        dsack: false,
        ece: false,
        window_end: 103,
    };
    written(&Parsed::Ack(AckDatagram {
        session: SessionId(1),
        flow: 0,
        ack,
        hold: Span::ZERO,
        ce: 0,
        ect: 0,
        proof: 0,
    }))
}

/// Bytes 12 to 19 of data, ACKs and the like; 48 and 56 in a block.
fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_be_bytes());
}

#[test]
fn numbers_that_could_overflow_do_not_get_in() {
    let refused = |at: usize, number: u64| {
        let mut bytes = plain_ack();
        put(&mut bytes, at, number);
        Parsed::decode(&bytes) == Err(WireError::Malformed)
    };
    assert!(!refused(56, MOST_NUMBER));
    assert!(refused(56, MOST_NUMBER + 1));
    assert!(refused(12, MOST_NUMBER));
    assert!(refused(12, u64::MAX));
    assert!(refused(48, 9), "an empty block");
    assert!(refused(48, 3), "a block at what is acknowledged");
    assert!(!refused(48, 4));
    // The end of the window; every number may be used up.
    let mut bytes = plain_ack();
    bytes.truncate(48);
    bytes[1] = 0;
    put(&mut bytes, 12, MOST_NUMBER - 100);
    assert!(Parsed::decode(&bytes).is_ok());
    put(&mut bytes, 12, MOST_NUMBER - 99);
    assert_eq!(Parsed::decode(&bytes), Err(WireError::Malformed));
    bytes[20..24].fill(0xff);
    put(&mut bytes, 12, MOST_NUMBER);
    assert!(Parsed::decode(&bytes).is_ok(), "no window, no limit");
    put(&mut bytes, 12, MOST_NUMBER + 1);
    assert_eq!(Parsed::decode(&bytes), Err(WireError::Malformed));
    for kind in [Kind::Data, Kind::Datagram, Kind::Ping, Kind::Pong] {
        let mut bytes = vec![0; 25];
        Header {
            kind,
            flags: 0,
            flow: 0,
            session: SessionId(0),
        }
        .encode(&mut bytes);
        put(&mut bytes, 12, MOST_NUMBER - 1);
        assert!(Parsed::decode(&bytes).is_ok(), "{kind:?}");
        put(&mut bytes, 12, MOST_NUMBER);
        assert_eq!(Parsed::decode(&bytes), Err(WireError::Malformed));
    }
}

#[test]
fn flags_that_contradict_the_rest_do_not_get_in() {
    let with_flags = |flags: u8| {
        let mut bytes = plain_ack();
        bytes[1] = flags;
        Parsed::decode(&bytes).map(|_| ())
    };
    assert_eq!(with_flags(0x10), Ok(()));
    assert_eq!(with_flags(0x12), Ok(()), "the block is a duplicate");
    assert_eq!(with_flags(0x14), Ok(()), "ECE");
    for flags in [0x11, 0x13, 0x18, 0x90, 0x00, 0x20, 0x50, 0x02] {
        assert_eq!(with_flags(flags), Err(WireError::Malformed), "{flags:#x}");
    }
    let data = |flags: u8, seq: u64, len: usize| {
        let mut bytes = vec![0; len];
        Header {
            kind: Kind::Data,
            flags,
            flow: 0,
            session: SessionId(0),
        }
        .encode(&mut bytes);
        put(&mut bytes, 12, seq);
        Parsed::decode(&bytes).map(|_| ())
    };
    assert_eq!(data(0, 7, 25), Ok(()));
    assert_eq!(data(0, 7, 24), Err(WireError::Malformed), "no payload");
    assert_eq!(data(1, 0, 24), Ok(()), "SYN");
    assert_eq!(data(3, 0, 24), Ok(()), "SYN again");
    assert_eq!(data(1, 1, 24), Ok(()), "the handshake's last ACK");
    assert_eq!(
        data(1, 0, 25),
        Err(WireError::Malformed),
        "SYN with payload"
    );
    assert_eq!(
        data(1, 2, 24),
        Err(WireError::Malformed),
        "SYN with number 2"
    );
    assert_eq!(data(5, 0, 24), Err(WireError::Malformed), "SYN with CWR");
    assert_eq!(data(9, 0, 24), Err(WireError::Malformed), "SYN with PUSH");
    assert_eq!(data(0x70, 7, 25), Ok(()), "three random bits");
    assert_eq!(
        data(0x11, 0, 24),
        Err(WireError::Malformed),
        "SYN with a nonce"
    );
    assert_eq!(data(128, 7, 25), Err(WireError::Malformed), "unknown flag");
}

#[test]
fn other_versions_and_kinds_do_not_get_in() {
    let first = |byte: u8| {
        let mut bytes = [0; 64];
        bytes[0] = byte;
        Parsed::decode(&bytes).map(|_| ())
    };
    for version in (0..16).filter(|v| *v != VERSION) {
        assert_eq!(first(version << 4 | 8), Err(WireError::Version));
    }
    for kind in [6, 7, 13, 14, 15] {
        assert_eq!(first(VERSION << 4 | kind), Err(WireError::Malformed));
    }
    assert_eq!(Parsed::decode(&[]), Err(WireError::Truncated));
    assert_eq!(
        Header::decode(&[0x18; HEADER - 1]),
        Err(WireError::Truncated)
    );
}

/// 1500 = 20 (IPv4) + 8 (UDP) + 24 + 1448, as TCP with time stamps: the simulator's segments fit
/// packet for packet.
#[test]
fn a_segment_is_as_long_on_the_wire_as_in_the_simulator() {
    assert_eq!(20 + 8 + DataDatagram::LEN + 1448, 1500);
    assert_eq!(
        20 + 8 + DataDatagram::LEN,
        52,
        "a SYN, like the simulator's"
    );
    assert_eq!(AckDatagram::PLAIN, 48);
    assert_eq!(AckDatagram::MOST, 112);
}
