//! Frames, against the identity and against independent arithmetic.

mod frames;
