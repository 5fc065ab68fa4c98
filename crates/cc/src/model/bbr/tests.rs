//! The model on a bench: events that a sender would make, and what the draft computes from them.
