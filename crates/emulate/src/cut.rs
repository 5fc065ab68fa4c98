//! A large packet of segmentation offload, cut into the packets that a wire would carry.
//!
//! As a network card does it: every piece has the headers of the whole, its own length, sequence
//! number and IPv4 identification; CWR only the first, PSH and FIN only the last. Checksums of the
//! transport stay to be made, so no payload is ever summed.

use crate::packet::{Layout, TCP, flag};
use crate::vnet::{CutKind, Partial, VnetHeader};

/// Why a packet of the device cannot be cut: it contradicts its virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Hands every packet of the wire that `packet` stands for to `each`, in order. A packet that is
/// whole is handed on as it is. `piece` is room that is used again.
pub fn cut(
    header: &VnetHeader,
    packet: &[u8],
    layout: &Layout,
    piece: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], Option<Partial>),
) -> Result<(), Malformed> {
    let Some(how) = header.cut else {
        each(&packet[..layout.len], header.checksum);
        return Ok(());
    };
    let headers = layout.headers(packet).ok_or(Malformed)?;
    let is_tcp = layout.protocol == TCP;
    let fits = match how.kind {
        CutKind::Tcp4 => is_tcp && !layout.v6,
        CutKind::Tcp6 => is_tcp && layout.v6,
        CutKind::Udp => !is_tcp,
    };
    let size = usize::from(how.size);
    if !fits || size == 0 || headers >= layout.len {
        return Err(Malformed);
    }
    let partial = Partial {
        start: layout.transport as u16,
        offset: layout.checksum_offset(),
    };
    let checksum = layout.transport + usize::from(partial.offset);
    let payload = &packet[headers..layout.len];
    let last = (payload.len() - 1) / size;
    for (i, part) in payload.chunks(size).enumerate() {
        piece.clear();
        piece.extend_from_slice(&packet[..headers]);
        piece.extend_from_slice(part);
        if !layout.v6 {
            let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(i as u16);
            piece[4..6].copy_from_slice(&id.to_be_bytes());
        }
        let transport = piece.len() - layout.transport;
        if is_tcp {
            let at = layout.transport;
            let seq = u32::from_be_bytes([
                packet[at + 4],
                packet[at + 5],
                packet[at + 6],
                packet[at + 7],
            ]);
            let seq = seq.wrapping_add((i * size) as u32);
            piece[at + 4..at + 8].copy_from_slice(&seq.to_be_bytes());
            if i > 0 {
                piece[at + 13] &= !flag::CWR;
            }
            if i < last {
                piece[at + 13] &= !(flag::PSH | flag::FIN);
            }
        } else {
            let at = layout.transport + 4;
            piece[at..at + 2].copy_from_slice(&(transport as u16).to_be_bytes());
        }
        let len = piece.len();
        layout.set_len(piece, len);
        let pseudo = layout.pseudo_sum(piece, transport);
        piece[checksum..checksum + 2].copy_from_slice(&pseudo.to_be_bytes());
        each(piece, Some(partial));
    }
    Ok(())
}
