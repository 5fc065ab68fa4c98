//! What a stored result becomes: pictures ([`figure`]), one page of HTML ([`page`]), files for
//! other tools ([`export`]); and what wrong worlds said of a scenario ([`falsification`]).
//!
//! What it is: readers of a result directory, which draw and translate. What it is not: it runs and
//! judges nothing.

pub mod agreement;
pub mod digits;
pub mod export;
pub mod falsification;
pub mod figure;
pub mod page;
