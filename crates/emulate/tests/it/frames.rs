//! Cutting, then merging, is the identity; so is cutting again. What a piece is, is computed here
//! by other means: a packet is built from its fields, never changed.

use fullpipe_emulate::cut::cut;
use fullpipe_emulate::merge::Frame;
use fullpipe_emulate::packet::Layout;
use fullpipe_emulate::vnet::{self, Cut, CutKind, Partial, VnetHeader};
use proptest::prelude::*;

/// The fields of a packet with segmentation offload, or of a piece of it.
#[derive(Clone, Debug)]
struct Fields {
    v6: bool,
    udp: bool,
    /// Type of service or traffic class, its last two bits ECN.
    class: u8,
    id: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    window: u16,
    /// Options of TCP, a multiple of four bytes.
    options: Vec<u8>,
    /// Options of IPv4, likewise.
    ip_options: Vec<u8>,
    payload: Vec<u8>,
}

impl Fields {
    /// The packet, its transport checksum the sum of the pseudo header.
    fn packet(&self) -> Vec<u8> {
        let transport = match self.udp {
            true => 8 + self.payload.len(),
            false => 20 + self.options.len() + self.payload.len(),
        };
        let protocol = if self.udp { 17 } else { 6 };
        let (a, b): (Vec<u8>, Vec<u8>) = match self.v6 {
            true => ((0..16).collect(), (100..116).collect()),
            false => (vec![198, 18, 0, 1], vec![198, 18, 0, 2]),
        };
        let mut p = Vec::new();
        if self.v6 {
            p.extend([0x60 | self.class >> 4, self.class << 4, 0, 0]);
            p.extend((transport as u16).to_be_bytes());
            p.extend([protocol, 64]);
            p.extend(&a);
            p.extend(&b);
        } else {
            let header = 20 + self.ip_options.len();
            p.extend([0x40 | (header / 4) as u8, self.class]);
            p.extend(((header + transport) as u16).to_be_bytes());
            p.extend(self.id.to_be_bytes());
            p.extend([0x40, 0, 64, protocol, 0, 0]);
            p.extend(&a);
            p.extend(&b);
            p.extend(&self.ip_options);
            let check = !ones(&p);
            p[10..12].copy_from_slice(&check.to_be_bytes());
        }
        let mut pseudo = [a, b].concat();
        pseudo.extend([0, protocol]);
        pseudo.extend((transport as u16).to_be_bytes());
        let check = ones(&pseudo).to_be_bytes();
        p.extend([0x9c, 0x40, 0x14, 0x51]);
        if self.udp {
            p.extend((transport as u16).to_be_bytes());
            p.extend(check);
        } else {
            p.extend(self.seq.to_be_bytes());
            p.extend(self.ack.to_be_bytes());
            p.extend([(5 + self.options.len() / 4) as u8 * 16, self.flags]);
            p.extend(self.window.to_be_bytes());
            p.extend(check);
            p.extend([0, 0]);
            p.extend(&self.options);
        }
        p.extend(&self.payload);
        p
    }

    /// What a wire carries of it, by RFC 9293, RFC 3168 and the rules of segmentation offload.
    fn pieces(&self, size: usize) -> Vec<Vec<u8>> {
        let parts: Vec<&[u8]> = self.payload.chunks(size).collect();
        let last = parts.len() - 1;
        let piece = |(i, part): (usize, &&[u8])| {
            let mut flags = self.flags;
            if i > 0 {
                flags &= 0x7f;
            }
            if i < last {
                flags &= !0x09;
            }
            let piece = Fields {
                id: self.id.wrapping_add(i as u16),
                seq: self.seq.wrapping_add((i * size) as u32),
                flags,
                payload: part.to_vec(),
                ..self.clone()
            };
            piece.packet()
        };
        parts.iter().enumerate().map(piece).collect()
    }

    fn header(&self, size: usize) -> VnetHeader {
        let packet = self.packet();
        VnetHeader {
            checksum: Some(self.partial()),
            cut: Some(Cut {
                kind: match (self.udp, self.v6) {
                    (true, _) => CutKind::Udp,
                    (false, false) => CutKind::Tcp4,
                    (false, true) => CutKind::Tcp6,
                },
                size: size as u16,
                // As the kernel says it of a train that begins with CWR (SKB_GSO_TCP_ECN).
                ecn: !self.udp && self.flags & 0x80 != 0,
            }),
            headers: (packet.len() - self.payload.len()) as u16,
        }
    }

    fn partial(&self) -> Partial {
        let start = if self.v6 {
            40
        } else {
            20 + self.ip_options.len()
        };
        Partial {
            start: start as u16,
            offset: if self.udp { 6 } else { 16 },
        }
    }
}

/// The sum of RFC 1071, another way: as one number modulo 2^16 - 1.
fn ones(bytes: &[u8]) -> u16 {
    let mut rest: u64 = 0;
    for pair in bytes.chunks(2) {
        let word = u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b));
        rest = (rest + word) % 65_535;
    }
    // Of the two zeros a sum of something that is not all zero has the negative one.
    match rest {
        0 if bytes.iter().any(|b| *b != 0) => 0xffff,
        rest => rest as u16,
    }
}

fn cut_up(header: &VnetHeader, packet: &[u8]) -> Vec<(Vec<u8>, Option<Partial>)> {
    // As it comes through the device, with the bit of a train that begins with CWR.
    let mut words = [0; vnet::LEN];
    header.encode(&mut words);
    let header = &VnetHeader::decode(&words).expect("what was encoded");
    let layout = Layout::of(packet).expect("a packet");
    let mut pieces = Vec::new();
    let mut room = Vec::new();
    let each = |p: &[u8], c| pieces.push((p.to_vec(), c));
    cut(header, packet, &layout, &mut room, each).expect("one that can be cut");
    pieces
}

/// Merged into as few frames as there may be.
fn merged(pieces: &[(Vec<u8>, Option<Partial>)]) -> Vec<(VnetHeader, Vec<u8>)> {
    let mut frame = Frame::new();
    let mut frames = Vec::new();
    let mut close = |frame: &mut Frame| {
        if frame.count() > 0 {
            let bytes = frame.close();
            let header = VnetHeader::decode(bytes).expect("a header");
            frames.push((header, bytes[vnet::LEN..].to_vec()));
        }
    };
    for (piece, checksum) in pieces {
        if !frame.append(piece, *checksum) {
            close(&mut frame);
            frame.begin(piece, *checksum, true);
        }
    }
    close(&mut frame);
    frames
}

prop_compose! {
    fn packets()(
        (v6, udp, class, id, seq, ack) in
            (any::<bool>(), any::<bool>(), any::<u8>(), any::<u16>(), any::<u32>(), any::<u32>()),
        // ECE, ACK, PSH, FIN and CWR.
        flags in prop::sample::select(vec![0x10, 0x18, 0x11, 0x19, 0x50, 0x90, 0xd8]),
        window in any::<u16>(),
        options in prop::collection::vec(any::<u8>(), 0..=10),
        ip_options in prop::collection::vec(Just(1u8), 0..=3),
        size in 1usize..1500,
        (count, tail) in (1usize..40, 0usize..1500),
        fill in any::<u8>(),
    ) -> (Fields, usize) {
        let len = (count * size + tail % size).clamp(size + 1, 60_000);
        // IP options and those of TCP in words.
        let words = |bytes: Vec<u8>| bytes.repeat(4);
        let payload = (0..len).map(|i| (i as u8).wrapping_mul(31) ^ fill).collect();
        let fields = Fields {
            v6, udp, class, id, seq, ack, flags, window,
            options: words(options),
            ip_options: if v6 { Vec::new() } else { words(ip_options) },
            payload,
        };
        (fields, size)
    }
}

/// `FRAME_CASES`, for a long search.
fn cases() -> u32 {
    let asked = std::env::var("FRAME_CASES").ok();
    asked.and_then(|n| n.parse().ok()).unwrap_or(1024)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn pieces_are_what_a_wire_carries((fields, size) in packets()) {
        let packet = fields.packet();
        let pieces = cut_up(&fields.header(size), &packet);
        let expected = fields.pieces(size);
        prop_assert_eq!(pieces.len(), expected.len());
        for ((piece, checksum), expected) in pieces.iter().zip(&expected) {
            prop_assert_eq!(piece, expected);
            prop_assert_eq!(*checksum, Some(fields.partial()));
        }
    }

    #[test]
    fn cut_and_merged_is_what_was_there((fields, size) in packets()) {
        let packet = fields.packet();
        let header = fields.header(size);
        let pieces = cut_up(&header, &packet);
        let frames = merged(&pieces);
        // CWR stays with its packet; 64 datagrams are the most.
        let whole = fields.udp && pieces.len() <= 64 || !fields.udp && fields.flags & 0x80 == 0;
        if whole {
            prop_assert_eq!(frames.len(), 1);
            prop_assert_eq!(&frames[0].1, &packet);
            prop_assert_eq!(frames[0].0, header);
        }
        let again: Vec<_> = frames.iter().flat_map(|(h, p)| cut_up(h, p)).collect();
        prop_assert_eq!(again, pieces);
    }

    #[test]
    fn whatever_is_lost_or_marked_the_rest_comes_out_as_it_was(
        (fields, size) in packets(),
        (other, _) in packets(),
        fates in prop::collection::vec(0u8..8, 64),
    ) {
        let mut pieces = cut_up(&fields.header(size), &fields.packet());
        let stranger = (other.packet(), Some(other.partial()));
        let mut through = Vec::new();
        for (i, mut piece) in pieces.drain(..).enumerate() {
            match fates[i % fates.len()] {
                0 => continue,
                1 => {
                    let layout = Layout::of(&piece.0).unwrap();
                    layout.mark(&mut piece.0);
                    prop_assert_eq!(layout.ecn(&piece.0), 3);
                }
                2 => through.push(stranger.clone()),
                // The last byte of its headers: an option, the urgent pointer, a checksum.
                3 => {
                    let headers = Layout::of(&piece.0).unwrap().headers(&piece.0).unwrap();
                    piece.0[headers - 1] ^= u8::from(!fields.udp);
                }
                _ => {}
            }
            through.push(piece);
        }
        let frames = merged(&through);
        let again: Vec<_> = frames.iter().flat_map(|(h, p)| cut_up(h, p)).collect();
        prop_assert_eq!(again, through);
    }

    #[test]
    fn no_bytes_at_all_bring_it_down(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut room = Vec::new();
        if let (Some(header), Some(packet)) = (VnetHeader::decode(&bytes), bytes.get(vnet::LEN..))
            && let Some(layout) = Layout::of(packet)
        {
            let mut count = 0;
            let _ = cut(&header, packet, &layout, &mut room, |p, _| count += p.len());
            let _ = (layout.kind(packet), layout.flow(packet));
            let mut frame = Frame::new();
            frame.begin(packet, header.checksum, true);
            let _ = frame.append(packet, header.checksum);
            prop_assert!(!frame.close().is_empty());
        }
    }
}

#[test]
fn an_ipv4_header_is_marked_as_another_host_would_write_it() {
    let fields = Fields {
        v6: false,
        udp: false,
        class: 2,
        id: 7,
        seq: 1,
        ack: 2,
        flags: 0x10,
        window: 100,
        options: Vec::new(),
        ip_options: Vec::new(),
        payload: vec![5; 10],
    };
    let mut packet = fields.packet();
    Layout::of(&packet).unwrap().mark(&mut packet);
    let marked = Fields { class: 3, ..fields };
    assert_eq!(packet, marked.packet());
}
