//! Integration tests of traces on disk.

mod files;
mod tools;
