//! The opening of a connection, and whether the host's own queue takes segments.

use fullpipe_units::Time;

/// State of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// SYN to be sent.
    Opening {
        first: Option<Time>,
        tries: u32,
    },
    /// SYN sent.
    SynSent(Syn),
    Open,
}

/// A SYN under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syn {
    /// Time of transmission.
    pub(super) at: Time,
    /// When the first one left.
    pub(super) first: Time,
    /// SYNs sent before it.
    pub(super) tries: u32,
}

/// The connection as its host sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    state: State,
    /// The local queue refused a segment.
    stalled: bool,
    /// The ACK that ends the handshake is due.
    owes_ack: bool,
    /// Open, not stalled, and nothing of the handshake is due.
    ready: bool,
}

impl Connection {
    pub(super) fn new() -> Self {
        Self {
            state: State::Idle,
            stalled: false,
            owes_ack: false,
            ready: false,
        }
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.ready = state == State::Open && !self.stalled && !self.owes_ack;
    }

    /// Data may be sent.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.ready
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Starts the handshake; the SYN is due.
    pub(super) fn begin(&mut self) {
        self.enter(State::Opening {
            first: None,
            tries: 0,
        });
    }

    pub(super) fn open(&mut self) {
        self.enter(State::Open);
    }

    /// The SYN was answered, and that is to be acknowledged before any data.
    pub(super) fn owe_ack(&mut self) {
        self.owes_ack = true;
        self.ready = false;
    }

    /// Sends the ACK that ends the handshake, if it is due.
    pub(super) fn take_ack(&mut self) -> bool {
        let takes = self.owes_ack && !self.stalled;
        if takes {
            self.owes_ack = false;
            self.enter(self.state);
        }
        takes
    }

    /// The SYN under way, if there is one.
    #[inline]
    pub(super) fn syn(&self) -> Option<Syn> {
        match self.state {
            State::SynSent(syn) => Some(syn),
            _ => None,
        }
    }

    /// Sends a SYN if one is due.
    pub(super) fn send_syn(&mut self, now: Time) -> Option<Syn> {
        let State::Opening { first, tries } = self.state else {
            return None;
        };
        if self.stalled {
            return None;
        }
        let syn = Syn {
            at: now,
            first: first.unwrap_or(now),
            tries,
        };
        self.enter(State::SynSent(syn));
        Some(syn)
    }

    /// A SYN is due; `tries` were sent before, one of them is `syn`.
    pub(super) fn repeat_syn(&mut self, syn: Syn, tries: u32) {
        self.enter(State::Opening {
            first: (tries > 0).then_some(syn.first),
            tries,
        });
    }

    pub(super) fn stall(&mut self) {
        self.stalled = true;
        self.ready = false;
    }

    pub(super) fn resume(&mut self) {
        self.stalled = false;
        self.enter(self.state);
    }
}
