//! A slow sender written straight from the RFCs, against the real one.
//!
//! Each file below `reference` follows one document, section by section, in O(window) per event and
//! with no thought for speed; `reference::Choices` lists what the documents leave open. A random
//! path (`path`) feeds both senders the same ACKs at the same times (`duel`). A difference in what
//! is sent, when, with which window, threshold, pipe, RTT estimate or timer is a failure, and
//! `minimise` cuts its history down to the few packets that matter.
//!
//! `LITERAL_HISTORIES` sets the number of histories, `LITERAL_SEED` the first seed:
//!
//! ```text
//! LITERAL_HISTORIES=1000000 cargo test --release -p fullpipe-flow --test literal -- --ignored
//! ```

mod agree;
mod draw;
mod duel;
mod known;
mod law;
mod mended;
mod minimise;
mod path;
mod reference;
