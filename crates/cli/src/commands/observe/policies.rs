//! Which policy flows have, as a tuner says it now and again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fullpipe_observe::Tuned;
use fullpipe_observe::tuner::{SOCKET, tuned};

/// What each flow has of a policy, by the cookie of its socket.
pub type Tunings = HashMap<u64, Tuned>;

/// What the tuner said last; nothing where none runs.
#[derive(Debug)]
pub struct Policies(Arc<Mutex<Arc<Tunings>>>);

/// Between two questions at least: the tuner goes through all flows of the host for each.
const PAUSE: Duration = Duration::from_secs(1);

impl Policies {
    /// Asks at once, and then as long as the program runs; a tuner may come and go.
    pub fn begin(folder: &Path, interval: Duration) -> Self {
        let socket: PathBuf = folder.join(SOCKET);
        let latest = Arc::new(Mutex::new(Arc::new(said(&socket))));
        let kept = Arc::clone(&latest);
        let ask = move || {
            loop {
                thread::sleep(interval.max(PAUSE));
                let new = Arc::new(said(&socket));
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = new;
            }
        };
        // Without a thread there is what was said first.
        let _ = thread::Builder::new()
            .name("policies".to_owned())
            .spawn(ask);
        Self(latest)
    }

    /// At most a second old, or as old as the interval.
    pub fn latest(&self) -> Arc<Tunings> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn said(socket: &Path) -> Tunings {
    tuned(socket).unwrap_or_default()
}
