//! Policies as a user writes them.

mod broken;
mod documentation;
mod lowering;
mod matching;
mod mutations;
mod reading;
mod support;
