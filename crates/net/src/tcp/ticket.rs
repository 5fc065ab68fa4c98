//! What a connection shows before it carries data: its session, its flow, and a proof that only who
//! has the session's keys can compute. It is good for one connection.

use crate::session::Secrets;

/// Bytes of a ticket: session, flow, proof.
pub const BYTES: usize = 8 + 2 + blake3::OUT_LEN;

/// What the keys of the proofs are derived for.
const CONTEXT: &str = "fullpipe 2026 kernel TCP v1";

/// A ticket.
pub type Ticket = [u8; BYTES];

/// That of a flow in a session.
pub fn ticket(secrets: &Secrets, flow: u16) -> Ticket {
    let keys = [secrets.keys.up, secrets.keys.down].concat();
    let key = blake3::derive_key(CONTEXT, &keys);
    let mut out = [0; BYTES];
    out[..8].copy_from_slice(&session(secrets).to_be_bytes());
    out[8..10].copy_from_slice(&flow.to_be_bytes());
    let proof = blake3::keyed_hash(&key, &out[..10]);
    out[10..].copy_from_slice(proof.as_bytes());
    out
}

/// Number of the session.
pub fn session(secrets: &Secrets) -> u64 {
    secrets.session.0
}

/// Session and flow that a ticket names, whether or not it is one of theirs.
pub fn names(ticket: &Ticket) -> (u64, u16) {
    let session = ticket.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
    (session, u16::from_be_bytes([ticket[8], ticket[9]]))
}

/// Whether two tickets are the same; how long it takes does not tell where they differ.
pub fn same(a: &Ticket, b: &Ticket) -> bool {
    let proof = |t: &Ticket| t.last_chunk().copied().map(blake3::Hash::from_bytes);
    a[..10] == b[..10] && proof(a) == proof(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Directions;
    use crate::wire::SessionId;

    #[test]
    fn a_ticket_belongs_to_one_flow_of_one_session() {
        let secrets = |session, up| Secrets {
            session: SessionId(session),
            keys: Directions {
                up: [up; 32],
                down: [2; 32],
            },
        };
        let own = ticket(&secrets(7, 1), 3);
        assert!(same(&own, &ticket(&secrets(7, 1), 3)));
        assert_eq!(names(&own), (7, 3));
        for other in [
            ticket(&secrets(7, 1), 4),
            ticket(&secrets(8, 1), 3),
            ticket(&secrets(7, 9), 3),
        ] {
            assert!(!same(&own, &other));
            assert_ne!(own[10..], other[10..]);
        }
    }
}
