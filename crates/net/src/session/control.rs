//! What client and server say to each other once a session is open. The client asks, the server
//! answers; either may say anything twice, and nothing means more the second time.

use fullpipe_realtime::live::LiveFlow;
use fullpipe_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use super::path::Challenge;
use crate::content::{Answer, Question};

/// Bytes of one part of a request or of a result.
pub const PART: usize = 1100;

/// Most parts of a result that one question may ask for.
pub const MOST_PARTS: u16 = 32;

/// Control messages from client to server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClientMessage {
    /// Part `at` of the request.
    Part {
        /// Index of the part, from 0.
        at: u32,
        /// [`PART`] bytes, fewer only in the last.
        bytes: Vec<u8>,
    },
    /// Begin: zero of the server's clock is when this first arrives.
    Start,
    /// Still here.
    Alive,
    /// End the run now; in answer to it the result is announced.
    Stop,
    /// Send these parts of the result.
    Ask {
        /// The first, from 0.
        from: u32,
        /// Number of parts, at most [`MOST_PARTS`].
        many: u16,
    },
    /// A question about what the flows carry.
    Content {
        /// Its number; the answer has it too.
        number: u32,
        /// The question.
        question: Question,
    },
    /// Nothing more.
    Close,
    /// The server's challenge, sent back from where it was received.
    Path(Challenge),
    /// Finds out whether a datagram of its length arrives.
    Probe {
        /// Its number; the answer has it too.
        number: u32,
        /// Zeros.
        padding: Vec<u8>,
    },
    /// The server's probe of this number has come.
    Probed(u32),
    /// How are the flows that the server sends, from this index on? A server that does not know the
    /// question says nothing.
    Flows {
        /// The first index.
        from: u32,
    },
}

/// Control messages from server to client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ServerMessage {
    /// This part of the request has come.
    Have {
        /// Index of the part, from 0.
        at: u32,
    },
    /// The request will be run.
    Granted(Grant),
    /// It will not, because of this.
    Refused(String),
    /// Heartbeat of a running test.
    Alive {
        /// Bytes that came in so far, headers of IP and UDP included.
        received: u64,
        /// Bytes that went out.
        sent: u64,
        /// Every flow that sends from the server has a last segment, and that is acknowledged.
        complete: bool,
    },
    /// The run has ended; its result can be fetched.
    Ended {
        /// Reason for the end.
        why: EndReason,
        /// Bytes of the result.
        length: u32,
        /// BLAKE3 of the result.
        digest: [u8; 32],
    },
    /// A part of the result.
    Part {
        /// Index of the part.
        at: u32,
        /// [`PART`] bytes, fewer only in the last.
        bytes: Vec<u8>,
    },
    /// The answer to a question about what the flows carry.
    Content {
        /// Number of the question.
        number: u32,
        /// The answer.
        answer: Answer,
    },
    /// All is forgotten.
    Closed,
    /// To an address that the client may have now: to be sent back.
    Challenge(Challenge),
    /// Finds out whether a datagram of its length arrives.
    Probe {
        /// Its number; the answer has it too.
        number: u32,
        /// Zeros.
        padding: Vec<u8>,
    },
    /// The client's probe of this number has come.
    Probed(u32),
    /// How the flows that the server sends are getting on, at most [`MOST_FLOWS`], by index.
    Flows(Vec<FlowState>),
}

/// Flows of one answer: with the longest numbers they fit into a message.
pub const MOST_FLOWS: usize = 32;

/// A flow as its sender sees it while the run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowState {
    /// Index of the flow in the request.
    pub flow: u32,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Congestion window, thousandths of a segment.
    pub cwnd: u64,
    /// Smoothed round-trip time, nanoseconds, once there is one.
    pub srtt: Option<u64>,
}

impl FlowState {
    /// Of a flow that is sent from here.
    pub fn new((flow, live): (u32, LiveFlow)) -> Self {
        Self {
            flow,
            retransmits: live.retransmits.unwrap_or(0),
            cwnd: (live.cwnd.unwrap_or(0.0) * 1000.0) as u64,
            srtt: live.srtt.map(Span::as_nanos),
        }
    }

    /// As whoever watches at the other host sees it; sums of what was said stay numbers.
    pub fn live(&self) -> LiveFlow {
        LiveFlow {
            delivered: 0,
            retransmits: Some(self.retransmits.min(u32::MAX.into())),
            cwnd: Some(self.cwnd as f64 / 1000.0),
            srtt: self.srtt.map(Span::from_nanos),
        }
    }
}

/// What the server will do, and within which bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Bit rate that neither side may exceed, headers of IP and UDP included.
    pub max_rate: Option<Rate>,
    /// Bytes in both directions, counted like the rate, after which the server ends the run.
    pub max_bytes: Option<Bytes>,
    /// What the server does differently from what was asked, and why; one sentence each.
    pub notes: Vec<String>,
}

/// Why a run ended at the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// The granted duration has passed.
    Over,
    /// The client said so.
    Stopped,
    /// As many bytes as the server allows.
    Bytes,
    /// More than the rate that the server allows.
    Rate,
    /// Nothing was heard of the client.
    Vanished,
    /// The same copy was begun again.
    Superseded,
    /// The server is shutting down.
    ShuttingDown,
    /// The endpoint failed; the result says how.
    Failed,
}

impl EndReason {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Over => "complete",
            Self::Stopped => "ended by the client",
            Self::Bytes => "ended by the server's limit --max-bytes",
            Self::Rate => "ended by the server's limit --max-rate",
            Self::Vanished => "the client vanished",
            Self::Superseded => "the same copy was begun again",
            Self::ShuttingDown => "the server is shutting down",
            Self::Failed => "failed",
        }
    }
}

/// A side that has heard nothing for so long takes the other for gone.
pub const SILENCE: Span = Span::from_secs(10);

/// While a run lasts the client says this often that it is there.
pub const ALIVE: Span = Span::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest answer is within a message, and what a hostile server says is a number.
    #[test]
    fn states_of_flows_fit_and_stay_numbers() {
        let most = FlowState {
            flow: u32::MAX,
            retransmits: u64::MAX,
            cwnd: u64::MAX,
            srtt: Some(u64::MAX),
        };
        let answer = ServerMessage::Flows(vec![most; MOST_FLOWS]);
        let bytes = postcard::to_stdvec(&answer).unwrap().len();
        assert!(bytes <= super::super::channel::BODY, "{bytes}");
        let live = most.live();
        assert_eq!(live.retransmits, Some(u32::MAX.into()));
        assert!(live.cwnd.unwrap().is_finite());
        let live = LiveFlow {
            delivered: 0,
            retransmits: Some(3),
            cwnd: Some(12.5),
            srtt: Some(Span::from_millis(40)),
        };
        assert_eq!(FlowState::new((1, live)).live(), live);
    }
}
