//! `struct tcp_info` of Linux (include/uapi/linux/tcp.h), a row per field.
//!
//! The kernel appends fields and never moves one: an older kernel shows a shorter structure, and
//! what it does not have is [`None`].

/// A field of `tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name without `tcpi_`.
    pub name: &'static str,
    /// First byte.
    at: usize,
    size: Size,
    /// Unit; empty for a plain number or code.
    pub unit: &'static str,
    /// Name in RFC 4898 without `tcpEStats` and the group; empty where there is none.
    pub rfc4898: &'static str,
    /// Conversion from Linux's value to RFC 4898's.
    there: There,
}

/// A value of Linux in the unit of RFC 4898.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Same,
    /// Milliseconds, of microseconds.
    Millis,
    /// Bytes, of segments.
    Bytes,
}

/// Width and place of a field of `struct tcp_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// From this bit of its byte, so many.
    Bits(u32, u32),
    U8,
    U16,
    U32,
    U64,
}

const fn field(
    name: &'static str,
    at: usize,
    size: Size,
    unit: &'static str,
    rfc4898: &'static str,
) -> Field {
    Field {
        name,
        at,
        size,
        unit,
        rfc4898,
        there: There::Same,
    }
}

impl Field {
    const fn in_millis(self) -> Self {
        Self {
            there: There::Millis,
            ..self
        }
    }

    const fn in_bytes(self) -> Self {
        Self {
            there: There::Bytes,
            ..self
        }
    }
}

/// Congestion state of the sender: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
pub const CA_STATE: Field = field("ca_state", 1, Size::U8, "", "");
/// Whether the latest sample of the delivery rate was limited by the application.
pub const APP_LIMITED: Field = field("delivery_rate_app_limited", 7, Size::Bits(0, 1), "", "");
/// Maximum segment size for sending.
pub const SND_MSS: Field = field("snd_mss", 16, Size::U32, "byte", "CurMSS");
/// Segments sent and not acknowledged.
pub const UNACKED: Field = field("unacked", 24, Size::U32, "segment", "");
/// Of the unacknowledged ones, those that a SACK block named.
pub const SACKED: Field = field("sacked", 28, Size::U32, "segment", "");
/// Of the unacknowledged ones, those taken for lost.
pub const LOST: Field = field("lost", 32, Size::U32, "segment", "");
/// Of the unacknowledged ones, those that were sent again and are in flight.
pub const RETRANS: Field = field("retrans", 36, Size::U32, "segment", "");
/// Smoothed round-trip time.
pub const RTT: Field = field("rtt", 68, Size::U32, "us", "SmoothedRTT").in_millis();
/// Slow-start threshold; 2^31 - 1 and above: none yet.
pub const SND_SSTHRESH: Field =
    field("snd_ssthresh", 76, Size::U32, "segment", "CurSsthresh").in_bytes();
/// Congestion window.
pub const SND_CWND: Field = field("snd_cwnd", 80, Size::U32, "segment", "CurCwnd").in_bytes();
/// Segments sent again so far.
pub const TOTAL_RETRANS: Field = field("total_retrans", 100, Size::U32, "segment", "SegsRetrans");
/// Pacing rate; 2^64 - 1: not paced.
pub const PACING_RATE: Field = field("pacing_rate", 104, Size::U64, "byte/s", "");
/// Ceiling of the pacing rate (`SO_MAX_PACING_RATE`); 2^64 - 1: none.
pub const MAX_PACING_RATE: Field = field("max_pacing_rate", 112, Size::U64, "byte/s", "");
/// Bytes acknowledged so far.
pub const BYTES_ACKED: Field = field("bytes_acked", 120, Size::U64, "byte", "ThruOctetsAcked");
/// Bytes received so far.
pub const BYTES_RECEIVED: Field = field(
    "bytes_received",
    128,
    Size::U64,
    "byte",
    "ThruOctetsReceived",
);
/// Bytes in the send buffer that were not sent.
pub const NOTSENT_BYTES: Field = field("notsent_bytes", 144, Size::U32, "byte", "CurAppWQueue");
/// Smallest round-trip time of the last minutes; 2^32 - 1: none yet.
pub const MIN_RTT: Field = field("min_rtt", 148, Size::U32, "us", "MinRTT").in_millis();
/// Segments with data sent so far, retransmissions included.
pub const DATA_SEGS_OUT: Field = field("data_segs_out", 156, Size::U32, "segment", "DataSegsOut");
/// Latest sample of the delivery rate.
pub const DELIVERY_RATE: Field = field("delivery_rate", 160, Size::U64, "byte/s", "");
/// Time with something to send or unacknowledged so far.
pub const BUSY_TIME: Field = field("busy_time", 168, Size::U64, "us", "");
/// Of this, held back by the receiver's window.
pub const RWND_LIMITED: Field =
    field("rwnd_limited", 176, Size::U64, "us", "SndLimTimeRwin").in_millis();
/// Of this, held back by the send buffer.
pub const SNDBUF_LIMITED: Field =
    field("sndbuf_limited", 184, Size::U64, "us", "SndLimTimeSnd").in_millis();

/// Segments delivered so far, those that a SACK block named among them.
pub const DELIVERED: Field = field("delivered", 192, Size::U32, "segment", "");
/// Of these, those that came with a mark (ECN).
pub const DELIVERED_CE: Field = field("delivered_ce", 196, Size::U32, "segment", "");
/// Retransmission timeouts so far (Linux 6.7). `Timeouts` of RFC 4898 counts the first of a row
/// alone, as `total_rto_recoveries` does.
pub const TOTAL_RTO: Field = field("total_rto", 240, Size::U16, "", "");

/// All fields, in the order of the structure. The newest came with Linux 6.7.
pub const FIELDS: [Field; 61] = [
    field("state", 0, Size::U8, "", ""),
    CA_STATE,
    field("retransmits", 2, Size::U8, "", "CurTimeoutCount"),
    field("probes", 3, Size::U8, "", ""),
    field("backoff", 4, Size::U8, "", ""),
    field("options", 5, Size::U8, "", ""),
    field("snd_wscale", 6, Size::Bits(0, 4), "", "SndWindScale"),
    field("rcv_wscale", 6, Size::Bits(4, 4), "", "RcvWindScale"),
    APP_LIMITED,
    field("fastopen_client_fail", 7, Size::Bits(1, 2), "", ""),
    field("rto", 8, Size::U32, "us", "CurRTO").in_millis(),
    field("ato", 12, Size::U32, "us", ""),
    SND_MSS,
    field("rcv_mss", 20, Size::U32, "byte", ""),
    UNACKED,
    SACKED,
    LOST,
    RETRANS,
    field("fackets", 40, Size::U32, "segment", ""),
    field("last_data_sent", 44, Size::U32, "ms", ""),
    field("last_ack_sent", 48, Size::U32, "ms", ""),
    field("last_data_recv", 52, Size::U32, "ms", ""),
    field("last_ack_recv", 56, Size::U32, "ms", ""),
    field("pmtu", 60, Size::U32, "byte", ""),
    field("rcv_ssthresh", 64, Size::U32, "byte", ""),
    RTT,
    field("rttvar", 72, Size::U32, "us", "RTTVar").in_millis(),
    SND_SSTHRESH,
    SND_CWND,
    // `MSSSent` of RFC 4898 is what the SYN said: here the time stamps are subtracted.
    field("advmss", 84, Size::U32, "byte", ""),
    field("reordering", 88, Size::U32, "segment", "RetranThresh"),
    field("rcv_rtt", 92, Size::U32, "us", "RcvRTT"),
    field("rcv_space", 96, Size::U32, "byte", ""),
    TOTAL_RETRANS,
    PACING_RATE,
    MAX_PACING_RATE,
    BYTES_ACKED,
    BYTES_RECEIVED,
    field("segs_out", 136, Size::U32, "segment", "SegsOut"),
    field("segs_in", 140, Size::U32, "segment", "SegsIn"),
    NOTSENT_BYTES,
    MIN_RTT,
    field("data_segs_in", 152, Size::U32, "segment", "DataSegsIn"),
    DATA_SEGS_OUT,
    DELIVERY_RATE,
    BUSY_TIME,
    RWND_LIMITED,
    SNDBUF_LIMITED,
    DELIVERED,
    DELIVERED_CE,
    field("bytes_sent", 200, Size::U64, "byte", "DataOctetsOut"),
    field("bytes_retrans", 208, Size::U64, "byte", "OctetsRetrans"),
    field("dsack_dups", 216, Size::U32, "segment", "DSACKDups"),
    field("reord_seen", 220, Size::U32, "", ""),
    field("rcv_ooopack", 224, Size::U32, "segment", ""),
    field("snd_wnd", 228, Size::U32, "byte", "CurRwinRcvd"),
    field("rcv_wnd", 232, Size::U32, "byte", "CurRwinSent"),
    field("rehash", 236, Size::U32, "", ""),
    TOTAL_RTO,
    field("total_rto_recoveries", 242, Size::U16, "", "Timeouts"),
    field("total_rto_time", 244, Size::U32, "ms", ""),
];

/// What the kernel said of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo(Vec<u8>);

impl TcpInfo {
    /// From the bytes of the structure, however long it is.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The structure of Linux 6.12 with these values; the last of equals counts, others are 0.
    pub fn of(values: &[(Field, u64)]) -> Self {
        let mut bytes = vec![0; 248];
        for (field, value) in values {
            let at = &mut bytes[field.at..];
            match field.size {
                Size::Bits(from, n) => at[0] |= (*value as u8) << shift(from, n),
                Size::U8 => at[0] = *value as u8,
                Size::U16 => at[..2].copy_from_slice(&(*value as u16).to_ne_bytes()),
                Size::U32 => at[..4].copy_from_slice(&(*value as u32).to_ne_bytes()),
                Size::U64 => at[..8].copy_from_slice(&value.to_ne_bytes()),
            }
        }
        Self(bytes)
    }

    /// The value of a field; [`None`] where the kernel has no such field, or no value yet.
    pub fn get(&self, field: &Field) -> Option<u64> {
        let value = self.raw(field)?;
        (!field.is_unset(value)).then_some(value)
    }

    /// Names of RFC 4898 and the values in its units, those that the kernel has.
    pub fn rfc4898(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = FIELDS.iter().filter(|f| !f.rfc4898.is_empty());
        named.filter_map(|f| {
            let value = self.get(f)?;
            let value = match f.there {
                There::Same => value,
                There::Millis => value / 1000,
                There::Bytes => value.checked_mul(self.get(&SND_MSS)?)?,
            };
            Some((f.rfc4898, value))
        })
    }

    /// The values of all [`FIELDS`], in their order.
    pub fn all(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        FIELDS.iter().map(|f| self.get(f))
    }

    /// The value of a field; 0 where there is none.
    pub fn count(&self, field: &Field) -> u64 {
        self.get(field).unwrap_or(0)
    }

    fn raw(&self, field: &Field) -> Option<u64> {
        let bytes = self.0.get(field.at..)?;
        let bits = |from: u32, n: u32| -> Option<u64> {
            let byte = u32::from(*bytes.first()?);
            Some(u64::from(byte >> shift(from, n) & ((1 << n) - 1)))
        };
        Some(match field.size {
            Size::Bits(from, n) => bits(from, n)?,
            Size::U8 => u64::from(*bytes.first()?),
            Size::U16 => u64::from(u16::from_ne_bytes(*bytes.first_chunk()?)),
            Size::U32 => u64::from(u32::from_ne_bytes(*bytes.first_chunk()?)),
            Size::U64 => u64::from_ne_bytes(*bytes.first_chunk()?),
        })
    }
}

/// Bit fields begin at the low bit on little-endian machines, at the high one on others.
fn shift(from: u32, n: u32) -> u32 {
    match cfg!(target_endian = "little") {
        true => from,
        false => 8 - from - n,
    }
}

impl Field {
    /// A value that stands for none: no threshold yet (`TCP_INFINITE_SSTHRESH`), no RTT sample, not
    /// paced, no ceiling.
    fn is_unset(&self, value: u64) -> bool {
        match self.name {
            "snd_ssthresh" => value >= 0x7fff_ffff,
            "min_rtt" => value == u64::from(u32::MAX),
            "pacing_rate" | "max_pacing_rate" => value == u64::MAX,
            "rtt" => value == 0,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets follow from the sizes by the rules of C.
    #[test]
    fn fields_stand_where_c_puts_them() {
        let mut end = 0usize;
        for f in &FIELDS {
            let size = match f.size {
                // Two bytes of bit fields: one of scales, one of flags.
                Size::Bits(0, _) => 1,
                Size::Bits(..) => {
                    assert_eq!(f.at, end - 1, "{}", f.name);
                    continue;
                }
                Size::U8 => 1,
                Size::U16 => 2,
                Size::U32 => 4,
                Size::U64 => 8,
            };
            assert_eq!(f.at, end.next_multiple_of(size), "{}", f.name);
            end = f.at + size;
        }
        // sizeof(struct tcp_info) of Linux 6.12.
        assert_eq!(end, 248);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = FIELDS.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIELDS.len());
    }

    #[test]
    fn rfc_4898_has_names_and_units_of_its_own() {
        let info = TcpInfo::of(&[(SND_CWND, 10), (SND_MSS, 1448), (RTT, 12_345)]);
        let all: Vec<_> = info.rfc4898().collect();
        assert!(all.contains(&("CurCwnd", 14_480)));
        assert!(all.contains(&("SmoothedRTT", 12)));
        assert!(all.contains(&("CurMSS", 1448)));
    }

    #[test]
    fn a_shorter_structure_lacks_the_newer_fields() {
        let mut bytes = vec![0; 192];
        bytes[80..84].copy_from_slice(&10u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&0x7fff_ffffu32.to_ne_bytes());
        bytes[7] = if cfg!(target_endian = "little") {
            0b101
        } else {
            0b1010_0000
        };
        let info = TcpInfo::new(&bytes);
        assert_eq!(info.get(&SND_CWND), Some(10));
        assert_eq!(info.get(&SND_SSTHRESH), None, "no threshold yet");
        assert_eq!(info.get(&APP_LIMITED), Some(1));
        assert_eq!(info.get(&FIELDS[9]), Some(2), "{}", FIELDS[9].name);
        let newest = FIELDS.last().unwrap();
        assert_eq!(info.get(newest), None);
        assert_eq!(TcpInfo::default().get(&SND_CWND), None);
    }
}
