//! Packets of the wire, merged into the large packet of segmentation offload that cuts into exactly
//! them: what a receiving network card does (LRO, GRO), for fewer calls to the kernel.

use crate::packet::{Layout, TCP, UDP, flag};
use crate::vnet::{self, Cut, CutKind, Partial, VnetHeader};

/// A frame in the making: a virtio-net header, and a packet that grows.
#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    layout: Layout,
    checksum: Option<Partial>,
    /// Packets in it.
    count: usize,
    /// Bytes of headers, if others may follow.
    headers: Option<usize>,
    /// Payload of the first, which all but the last have.
    size: usize,
}

/// Longest packet: IPv4's length has 16 bits.
const LONGEST: usize = 65_535;
/// Datagrams in one packet (`UDP_MAX_SEGMENTS` until Linux 6.8).
const DATAGRAMS: usize = 64;

impl Frame {
    /// An empty one, with room for the longest packet.
    #[expect(
        clippy::new_without_default,
        reason = "64 kB by default would surprise"
    )]
    pub fn new() -> Self {
        Self {
            bytes: Vec::with_capacity(vnet::LEN + LONGEST),
            layout: Layout {
                v6: false,
                protocol: 0,
                transport: 0,
                len: 0,
                fragment: true,
            },
            checksum: None,
            count: 0,
            headers: None,
            size: 0,
        }
    }

    /// Packets in it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Begins with this packet; what it held is forgotten. With `merges` others may follow.
    pub fn begin(&mut self, packet: &[u8], checksum: Option<Partial>, merges: bool) {
        self.bytes.clear();
        self.bytes.resize(vnet::LEN, 0);
        self.bytes.extend_from_slice(packet);
        self.checksum = checksum;
        self.count = 1;
        self.headers = None;
        let Some(layout) = Layout::of(packet).filter(|_| merges) else {
            return;
        };
        self.layout = layout;
        self.headers = self.layout.headers(packet).filter(|headers| {
            let expected = Partial {
                start: layout.transport as u16,
                offset: layout.checksum_offset(),
            };
            checksum == Some(expected) && *headers < packet.len() && may_be_followed(packet, layout)
        });
        self.size = packet.len() - self.headers.unwrap_or(0);
    }

    /// Takes a packet that continues the last one; false: it does not.
    pub fn append(&mut self, packet: &[u8], checksum: Option<Partial>) -> bool {
        let Some(headers) = self.headers else {
            return false;
        };
        let first = &self.bytes[vnet::LEN..];
        let payload = packet.len().wrapping_sub(headers);
        if self.count == 0
            || checksum != self.checksum
            || packet.len() <= headers
            || payload > self.size
            || first.len() + payload > LONGEST
            || !self.continues(first, packet, headers)
        {
            return false;
        }
        let at = self.layout.transport;
        let ends = match self.layout.protocol {
            TCP => {
                let flags = packet[at + 13];
                self.bytes[vnet::LEN + at + 13] |= flags;
                flags & (flag::PSH | flag::FIN) != 0
            }
            _ => self.count + 1 == DATAGRAMS,
        };
        self.bytes.extend_from_slice(&packet[headers..]);
        self.count += 1;
        if ends || payload < self.size {
            self.headers = None;
        }
        true
    }

    /// The frame as the device takes it; it is empty then, once [`Frame::begin`] is called.
    pub fn close(&mut self) -> &[u8] {
        let mut header = VnetHeader {
            checksum: self.checksum,
            ..VnetHeader::default()
        };
        if self.count > 1 {
            let layout = self.layout;
            let packet = &mut self.bytes[vnet::LEN..];
            let len = packet.len();
            let transport = len - layout.transport;
            layout.set_len(packet, len);
            let (kind, own) = match (layout.protocol, layout.v6) {
                (TCP, v6) => {
                    let own = usize::from(packet[layout.transport + 12] >> 4) * 4;
                    (if v6 { CutKind::Tcp6 } else { CutKind::Tcp4 }, own)
                }
                _ => {
                    let at = layout.transport + 4;
                    packet[at..at + 2].copy_from_slice(&(transport as u16).to_be_bytes());
                    (CutKind::Udp, 8)
                }
            };
            let pseudo = layout.pseudo_sum(packet, transport);
            let at = layout.transport + usize::from(layout.checksum_offset());
            packet[at..at + 2].copy_from_slice(&pseudo.to_be_bytes());
            header.headers = (layout.transport + own) as u16;
            header.cut = Some(Cut {
                kind,
                size: self.size as u16,
                ecn: false,
            });
        }
        self.count = 0;
        header.encode(&mut self.bytes);
        &self.bytes
    }

    /// Whether the headers of `packet` are those of the piece that comes next.
    fn continues(&self, first: &[u8], packet: &[u8], headers: usize) -> bool {
        let at = self.layout.transport;
        let same = |from: usize, to: usize| first[from..to] == packet[from..to];
        let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let ip = if self.layout.v6 {
            // All but the length.
            same(0, 4) && same(6, 40)
        } else {
            // All but length, identification and checksum.
            let next = word(first, 4).wrapping_add(self.count as u16);
            same(0, 2) && word(packet, 4) == next && same(6, 10) && same(12, at)
        };
        if !ip {
            return false;
        }
        match self.layout.protocol {
            TCP => {
                let number = |bytes: &[u8]| {
                    let s = &bytes[at + 4..at + 8];
                    u32::from_be_bytes([s[0], s[1], s[2], s[3]])
                };
                let next = number(first).wrapping_add((first.len() - headers) as u32);
                let last_only = flag::PSH | flag::FIN;
                // Ports; acknowledgement and lengths; window; urgent pointer and options.
                number(packet) == next
                    && same(at, at + 4)
                    && same(at + 8, at + 13)
                    && packet[at + 13] & !last_only == first[at + 13]
                    && same(at + 14, at + 16)
                    && same(at + 18, headers)
            }
            UDP => same(at, at + 4) && usize::from(word(packet, at + 4)) == packet.len() - at,
            _ => false,
        }
    }
}

/// Whether a piece after this one could look like it.
fn may_be_followed(packet: &[u8], layout: Layout) -> bool {
    const NEVER: u8 = flag::FIN | flag::SYN | flag::RST | flag::PSH | flag::URG | flag::CWR;
    match layout.protocol {
        TCP => packet[layout.transport + 13] & NEVER == 0,
        // A packet that is padded beyond its datagram.
        _ => {
            let at = layout.transport + 4;
            let len = u16::from_be_bytes([packet[at], packet[at + 1]]);
            usize::from(len) == layout.len - layout.transport
        }
    }
}
