//! Integration tests of the controllers.

mod laws;
mod model;
mod modules;
mod published_delay;
mod published_loss;
mod rounds;
