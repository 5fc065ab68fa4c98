//! What is wrong with a file, put into words.

use crate::diagnostic::Diagnostics;
use crate::document::{Fault, Sources};

/// A fault of the file as a whole, without a line.
pub fn whole_file(sources: &Sources, file: usize, message: String) -> Diagnostics {
    let fault = Fault {
        at: sources.top(file),
        key: String::new(),
        shows_value: false,
        message,
        hint: None,
    };
    Diagnostics(vec![sources.diagnostic(fault)])
}

/// Diagnostics of these faults, by line, without repetitions.
pub fn written_out(sources: &Sources, mut faults: Vec<Fault>) -> Diagnostics {
    faults.sort_by_key(|fault| fault.at);
    faults.dedup();
    let more = faults.len().saturating_sub(MAX_MESSAGES);
    faults.truncate(MAX_MESSAGES);
    let last = faults.last().map(|fault| fault.at);
    let mut all = Diagnostics(
        faults
            .into_iter()
            .map(|fault| sources.diagnostic(fault))
            .collect(),
    );
    if let Some(at) = last.filter(|_| more > 0) {
        let errors = if more == 1 { "error" } else { "errors" };
        let (key, message) = (String::new(), format!("and {more} more {errors}"));
        all.0.push(sources.diagnostic(Fault {
            at,
            key,
            shows_value: false,
            message,
            hint: None,
        }));
    }
    all
}

/// Messages that are shown at a time.
pub const MAX_MESSAGES: usize = 40;
