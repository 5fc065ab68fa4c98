//! What a path needs to see of an IP packet, and what it changes in one: lengths, numbers, code
//! points, checksums.

use fullpipe_sim::PacketKind;

/// An IP packet as it lies in memory, its places found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// IPv6, not IPv4.
    pub v6: bool,
    /// Protocol after the IP header (IANA): [`TCP`], [`UDP`] or another.
    pub protocol: u8,
    /// Where that begins. Extension headers of IPv6 are not looked into.
    pub transport: usize,
    /// Bytes of the packet by its IP header.
    pub len: usize,
    /// A fragment: its transport header is not one, or not all of it follows.
    pub fragment: bool,
}

/// Protocol numbers of IANA.
pub const TCP: u8 = 6;
/// See [`TCP`].
pub const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

/// Flags of TCP (RFC 9293, RFC 3168), byte 13 of its header.
pub mod flag {
    /// No more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise.
    pub const SYN: u8 = 0x02;
    /// Reset.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Urgent.
    pub const URG: u8 = 0x20;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

impl Layout {
    /// Of a packet; `None`: neither IPv4 nor IPv6, or shorter than it says.
    pub fn of(packet: &[u8]) -> Option<Self> {
        let version = packet.first()? >> 4;
        let layout = match version {
            4 => {
                let header = usize::from(packet[0] & 15) * 4;
                let fields = packet.get(..20)?;
                let fragment = u16::from_be_bytes([fields[6], fields[7]]) & 0x3fff != 0;
                Self {
                    v6: false,
                    protocol: fields[9],
                    transport: header,
                    len: usize::from(u16::from_be_bytes([fields[2], fields[3]])),
                    fragment,
                }
            }
            6 => {
                let fields = packet.get(..40)?;
                Self {
                    v6: true,
                    protocol: fields[6],
                    transport: 40,
                    len: 40 + usize::from(u16::from_be_bytes([fields[4], fields[5]])),
                    fragment: false,
                }
            }
            _ => return None,
        };
        let whole = (20..=layout.len).contains(&layout.transport) && layout.len <= packet.len();
        whole.then_some(layout)
    }

    /// Bytes of all headers, if TCP or UDP is found whole.
    pub fn headers(&self, packet: &[u8]) -> Option<usize> {
        if self.fragment {
            return None;
        }
        let transport = packet.get(self.transport..self.len)?;
        let own = match self.protocol {
            TCP => usize::from(transport.get(12)? >> 4) * 4,
            UDP => 8,
            _ => return None,
        };
        let least = if self.protocol == TCP { 20 } else { 8 };
        (own >= least && own <= transport.len()).then_some(self.transport + own)
    }

    /// Where the transport's checksum lies in its header.
    pub fn checksum_offset(&self) -> u16 {
        if self.protocol == TCP { 16 } else { 6 }
    }

    /// The sum over the pseudo header (RFC 9293, section 3.1; RFC 8200, section 8.1) for
    /// `transport` bytes of header and payload.
    pub fn pseudo_sum(&self, packet: &[u8], transport: usize) -> u16 {
        let addresses = if self.v6 { 8..40 } else { 12..20 };
        let rest = u32::from(self.protocol) + transport as u32;
        fold(sum(&packet[addresses]) + u64::from(rest))
    }

    /// Writes the length of the whole packet, and makes IPv4's checksum anew.
    pub fn set_len(&self, packet: &mut [u8], len: usize) {
        if self.v6 {
            packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
        } else {
            packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            self.renew(packet);
        }
    }

    /// IPv4's checksum anew.
    pub fn renew(&self, packet: &mut [u8]) {
        if !self.v6 {
            packet[10..12].fill(0);
            let check = !fold(sum(&packet[..self.transport]));
            packet[10..12].copy_from_slice(&check.to_be_bytes());
        }
    }

    /// The ECN code point (RFC 3168).
    pub fn ecn(&self, packet: &[u8]) -> u8 {
        match self.v6 {
            true => packet[1] >> 4 & 3,
            false => packet[1] & 3,
        }
    }

    /// Congestion experienced.
    pub fn mark(&self, packet: &mut [u8]) {
        match self.v6 {
            true => packet[1] |= 0x30,
            false => {
                packet[1] |= 3;
                self.renew(packet);
            }
        }
    }

    /// What it is to a link: random loss spares what bears no data, queues mark what is
    /// ECN-capable. Of UDP, what is ECN-capable counts as data.
    pub fn kind(&self, packet: &[u8]) -> PacketKind {
        let transport = &packet[self.transport..self.len];
        let first = transport.first().copied();
        match self.protocol {
            TCP if !self.fragment && transport.len() >= 20 => {
                let payload = self.headers(packet).is_none_or(|h| h < self.len);
                match (transport[13] & flag::SYN != 0, payload) {
                    (true, _) if transport[13] & 0x10 == 0 => PacketKind::Syn,
                    (true, _) => PacketKind::SynAck,
                    (false, true) => PacketKind::Data,
                    (false, false) => PacketKind::Ack,
                }
            }
            ICMP if first == Some(8) => PacketKind::Request,
            ICMP6 if first == Some(128) => PacketKind::Request,
            ICMP if first == Some(0) => PacketKind::Reply,
            ICMP6 if first == Some(129) => PacketKind::Reply,
            _ if matches!(self.ecn(packet), 1 | 2) => PacketKind::Data,
            _ => PacketKind::Datagram,
        }
    }

    /// A number that packets of one flow in one direction share, and hardly ever those of two.
    pub fn flow(&self, packet: &[u8]) -> u32 {
        let addresses = if self.v6 { 8..40 } else { 12..20 };
        let ports = match (self.protocol, self.fragment) {
            (TCP | UDP, false) => packet.get(self.transport..self.transport + 4),
            _ => None,
        };
        let mut hash = u64::from(self.protocol);
        let words = packet[addresses].chunks_exact(4).chain(ports);
        for word in words {
            let word = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            hash = (hash ^ u64::from(word)).wrapping_mul(MIX);
            hash ^= hash >> 29;
        }
        (hash >> 32) as u32
    }

    /// For more than one host, as neighbour discovery and group membership are.
    pub fn is_chatter(&self, packet: &[u8]) -> bool {
        match self.v6 {
            true => packet[24] == 0xff || packet[8..10] == [0xfe, 0x80],
            false => packet[16] >= 224,
        }
    }

    /// Which pair of hosts it is of: the addresses of pair `k` have `k` in their third byte (IPv4)
    /// or fourth group (IPv6).
    pub fn pair(&self, packet: &[u8]) -> usize {
        match self.v6 {
            true => usize::from(u16::from_be_bytes([packet[30], packet[31]])),
            false => usize::from(packet[18]),
        }
    }
}

/// An odd multiplier with well mixed bits (Steele and Vigna 2021, table 6, 64 bits).
const MIX: u64 = 0xd134_2543_de82_ef95;

/// Sum of 16-bit words in network byte order, not folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    words
        .map(|w| u64::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)])))
        .sum()
}

/// In ones' complement (RFC 1071).
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
