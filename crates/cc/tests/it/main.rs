//! Integration tests of the controllers.

mod laws;
mod model;
mod modules;
mod published;
mod rounds;
