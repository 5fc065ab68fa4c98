//! A hang-up of the terminal that whoever starts the program has ignored, as `nohup` does. `ctrlc`
//! takes it for an interruption whatever it was before, and a copy of hours would end with its
//! terminal.

use nix::sys::signal::{SigSet, Signal};

/// What was ignored when the program began reaches no thread. To be called before there is a second
/// one; programs that are started later inherit the mask, and a hang-up does not reach them either.
pub fn stays_ignored() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if is_ignored(&status) {
        let mut hangup = SigSet::empty();
        hangup.add(Signal::SIGHUP);
        // Where it cannot be blocked it interrupts, as it does without `nohup`.
        let _ = hangup.thread_block();
    }
}

/// As `proc_pid_status(5)` has it: hexadecimal, signal 1 is the lowest bit.
fn is_ignored(status: &str) -> bool {
    let ignored = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 << (Signal::SIGHUP as u32 - 1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_bit_is_the_hang_up() {
        assert!(is_ignored(
            "Name:\tx\nSigIgn:\t0000000000001005\nSigCgt:\t0\n"
        ));
        assert!(!is_ignored("SigIgn:\t0000000000001004\nSigCgt:\t1\n"));
        assert!(!is_ignored("SigCgt:\t1\n") && !is_ignored(""));
    }
}
