//! Frames, against the identity and against independent arithmetic, and what they cost.

// A measurement takes the clock on the wall.
#![allow(clippy::disallowed_methods)]

mod device;
mod frames;
