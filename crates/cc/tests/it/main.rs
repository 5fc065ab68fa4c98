//! Integration tests of the controllers.

mod published_loss;
mod rounds;
