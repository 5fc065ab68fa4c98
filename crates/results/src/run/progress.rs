//! Listeners, who are told about every run.

use crate::store::Earlier;

/// Hears what happens. Called from several threads.
pub trait Progress: Sync {
    /// Before all else: so many finished runs in the result directory are not taken over; those of
    /// [`Earlier::Remade`] could be, those of [`Earlier::Resumed`] another build of fullpipe, or
    /// another kernel, made.
    fn outdated(&self, runs: usize, earlier: Earlier) {
        let _ = (runs, earlier);
    }

    /// Before the first run: how many there are, and how many of them are taken over.
    fn begin(&self, total: usize, reused: usize) {
        let _ = (total, reused);
    }

    /// A run starts.
    fn started(&self, run: &RunStarted<'_>) {
        let _ = run;
    }

    /// A run is finished and kept.
    fn finished(&self, run: &RunFinished<'_>) {
        let _ = run;
    }

    /// Something the user should know.
    fn warn(&self, message: &str) {
        let _ = message;
    }
}

/// A [`Progress`] that does not listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {}

/// For [`Progress::started`].
#[derive(Clone, Copy, Debug)]
pub struct RunStarted<'a> {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Hash of the run.
    pub key: &'a str,
}

/// For [`Progress::finished`].
#[derive(Clone, Copy, Debug)]
pub struct RunFinished<'a> {
    /// Index of the case.
    pub case: usize,
    /// Seed.
    pub seed: u64,
    /// Hash of the run.
    pub key: &'a str,
    /// Runs that are finished, those taken over included.
    pub done: usize,
    /// All runs; grows where a precision is asked for.
    pub total: usize,
    /// Virtual time, seconds.
    pub simulated_s: f64,
    /// Data packets that reached a receiver.
    pub packets: u64,
    /// Wall time, seconds.
    pub wall_s: f64,
    /// What was kept of runs so far, but for those that were taken over: bytes of files.
    pub kept_bytes: u64,
    /// What that comes to with the runs that are missing, if they are like these.
    pub expected_bytes: u64,
}
