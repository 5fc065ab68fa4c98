//! Integration tests of the controllers.

mod contributing;
mod idle;
mod laws;
mod limits;
mod model;
mod modules;
mod published;
mod response;
mod rounds;
