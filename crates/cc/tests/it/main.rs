//! Integration tests of the controllers.

mod published_loss;
mod published_delay;
mod laws;
mod model;
mod rounds;
