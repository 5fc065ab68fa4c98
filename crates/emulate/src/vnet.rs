//! The virtio-net header in front of every packet of a TUN device (virtio 1.2, section 5.1.6;
//! include/uapi/linux/virtio_net.h), in the byte order of the machine.

/// Bytes of the header.
pub const LEN: usize = 10;

/// What the kernel leaves for the interface to do, or need not do itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// Where a checksum is still to be made.
    pub checksum: Option<Partial>,
    /// How the packet is to be cut.
    pub cut: Option<Cut>,
    /// Bytes of headers, a hint.
    pub headers: u16,
}

/// A checksum that covers the packet from `start` on and lies `offset` bytes further; its field
/// holds the sum of the pseudo header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial {
    /// Bytes from the IP header's begin.
    pub start: u16,
    /// Bytes from `start`.
    pub offset: u16,
}

/// Segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Protocol and family of the pieces.
    pub kind: CutKind,
    /// Payload of each piece but the last.
    pub size: u16,
    /// The first piece alone carries CWR (`VIRTIO_NET_HDR_GSO_ECN`).
    pub ecn: bool,
}

/// Kinds of segmentation offload that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over either, in datagrams of their own.
    Udp,
}

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

impl VnetHeader {
    /// Of the first bytes of a frame; `None`: too short, or cut in a way that nobody asked for.
    pub fn decode(frame: &[u8]) -> Option<Self> {
        let frame = frame.get(..LEN)?;
        let word = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
        let kind = match frame[1] & !GSO_ECN {
            0 => None,
            GSO_TCPV4 => Some(CutKind::Tcp4),
            GSO_TCPV6 => Some(CutKind::Tcp6),
            GSO_UDP_L4 => Some(CutKind::Udp),
            _ => return None,
        };
        Some(Self {
            checksum: (frame[0] & NEEDS_CSUM != 0).then(|| Partial {
                start: word(6),
                offset: word(8),
            }),
            cut: kind.map(|kind| Cut {
                kind,
                size: word(4),
                ecn: frame[1] & GSO_ECN != 0,
            }),
            headers: word(2),
        })
    }

    /// Into the first [`LEN`] bytes of `frame`.
    pub fn encode(&self, frame: &mut [u8]) {
        let (mut flags, mut gso, mut size, mut start, mut offset) = (0, 0, 0, 0, 0);
        if let Some(partial) = self.checksum {
            (flags, start, offset) = (NEEDS_CSUM, partial.start, partial.offset);
        }
        if let Some(cut) = self.cut {
            gso = match cut.kind {
                CutKind::Tcp4 => GSO_TCPV4,
                CutKind::Tcp6 => GSO_TCPV6,
                CutKind::Udp => GSO_UDP_L4,
            };
            gso |= if cut.ecn { GSO_ECN } else { 0 };
            size = cut.size;
        }
        frame[..2].copy_from_slice(&[flags, gso]);
        for (i, word) in [self.headers, size, start, offset].into_iter().enumerate() {
            frame[2 + 2 * i..][..2].copy_from_slice(&word.to_ne_bytes());
        }
    }
}
