//! What is said while no bytes move: hosts look at files, make room for them, give them names.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::output;

/// Says what is done if it takes long.
pub fn told<T>(quiet: bool, what: impl FnOnce() -> String, act: impl FnOnce() -> T) -> T {
    if quiet {
        return act();
    }
    let text = what();
    thread::scope(|scope| {
        let (done, ends) = channel::<()>();
        scope.spawn(move || {
            if ends.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                output::say(&text);
            }
        });
        let outcome = act();
        drop(done);
        outcome
    })
}

/// Nobody asks before what goes on.
const LONG: Duration = Duration::from_secs(1);
