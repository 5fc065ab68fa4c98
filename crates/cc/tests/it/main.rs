//! Integration tests of the controllers.

mod contributing;
mod idle;
mod laws;
mod model;
mod modules;
mod published;
mod response;
mod rounds;
