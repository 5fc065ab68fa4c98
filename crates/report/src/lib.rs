//! What a stored result becomes: pictures ([`figure`]), one page of HTML ([`page`]), files for
//! other tools ([`export`]).
//!
//! What it is: readers of a result directory, which draw and translate. What it is not: it runs and
//! judges nothing.

pub mod export;
pub mod figure;
pub mod page;
