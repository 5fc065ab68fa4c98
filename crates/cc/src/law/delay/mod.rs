//! Laws that read the delay: Vegas and what grew from it.

pub mod early;
pub mod fast;
pub mod hslp;
pub mod ledbat;
pub mod lp;
pub mod round;
pub mod vegas;
pub mod veno;
pub mod yeah;

#[cfg(test)]
pub(crate) mod testing;
