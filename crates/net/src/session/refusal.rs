//! Refusals: the reasons for which a server opens no session.

/// Why a server refused, before it knows the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// Another key, or only one side has one; or the OPEN was meant for another server.
    #[error("authentication failed")]
    Authentication = 1,
    /// The cookie is too old, not of this server, or came with another OPEN before: begin anew.
    #[error("the handshake took too long")]
    Cookie = 2,
    /// A session was opened with this cookie before.
    #[error("this handshake was used before")]
    Replay = 3,
    /// As many tests as the server runs at a time; the number.
    #[error("the server is busy with {} (limit --max-tests)", counted(.0))]
    Busy(u32) = 4,
    /// As many as it runs for one address; the number.
    #[error(
        "the server runs {} for this address already (limit --max-tests-per-peer)",
        counted(.0)
    )]
    BusyForPeer(u32) = 5,
    /// A kind or option that it does not have.
    #[error("this kind of test is not in the server's version")]
    Unsupported = 6,
    /// The request is longer than it takes; the limit in bytes.
    #[error("the request is longer than the server's limit of {0} bytes")]
    TooLong(u32) = 7,
    /// It is about to stop.
    #[error("the server is shutting down")]
    Stopping = 8,
    /// It runs encrypted tests only.
    #[error("the server takes encrypted tests only")]
    Unencrypted = 10,
    /// The address opens sessions faster than the server remembers them; how many it may within
    /// the life of a cookie.
    #[error("this address opened {0} sessions within 20 seconds, the most that the server takes")]
    Hurried(u32) = 11,
    /// The HELLO is of another version; the server's version.
    #[error("the server speaks version {0} of the protocol")]
    Version(u32) = 12,
}

/// `1 test`, `2 tests`.
fn counted(n: &u32) -> String {
    match n {
        1 => "1 test".to_owned(),
        n => format!("{n} tests"),
    }
}

impl Reason {
    /// May be given in clear: who is answered has not shown the key, or cannot.
    pub fn may_be_clear(self) -> bool {
        matches!(self, Self::Authentication | Self::Cookie | Self::Version(_))
    }

    /// Its number, and the number that belongs to it.
    pub(super) fn encode(self) -> [u8; 5] {
        let (code, number) = self.parts();
        let [a, b, c, d] = number.to_be_bytes();
        [code, a, b, c, d]
    }

    pub(super) fn decode([code, number @ ..]: [u8; 5]) -> Option<Self> {
        Self::parse(code, u32::from_be_bytes(number))
    }

    /// Every reason, with this number where one belongs to it.
    #[cfg(test)]
    pub(super) fn all(number: u32) -> impl Iterator<Item = Self> {
        (0..=u8::MAX).filter_map(move |code| Self::parse(code, number))
    }

    fn parts(self) -> (u8, u32) {
        match self {
            Self::Authentication => (1, 0),
            Self::Cookie => (2, 0),
            Self::Replay => (3, 0),
            Self::Busy(n) => (4, n),
            Self::BusyForPeer(n) => (5, n),
            Self::Unsupported => (6, 0),
            Self::TooLong(n) => (7, n),
            Self::Stopping => (8, 0),
            Self::Unencrypted => (10, 0),
            Self::Hurried(n) => (11, n),
            Self::Version(n) => (12, n),
        }
    }

    fn parse(code: u8, number: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Authentication,
            2 => Self::Cookie,
            3 => Self::Replay,
            4 => Self::Busy(number),
            5 => Self::BusyForPeer(number),
            6 => Self::Unsupported,
            7 => Self::TooLong(number),
            8 => Self::Stopping,
            10 => Self::Unencrypted,
            11 => Self::Hurried(number),
            12 => Self::Version(number),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_test_is_no_plural() {
        let said = |n| [Reason::Busy(n), Reason::BusyForPeer(n)].map(|reason| reason.to_string());
        assert!(said(1).iter().all(|text| text.contains(" 1 test ")));
        assert!(said(2).iter().all(|text| text.contains(" 2 tests ")));
    }
}
