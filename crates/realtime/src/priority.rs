//! Real-time priority of the emulator's thread, where the system allows it.
//!
//! A thread of a busy machine gets its turn milliseconds late; one with real-time priority, some 20
//! us late. A real-time thread that takes more than 95 % of a core is stopped by the kernel for 50
//! ms of each second, which is worse than no priority: a thread that comes near gives it up.

use std::time::Duration;

use fullpipe_units::{Span, Time};
use nix::time::{ClockId, clock_gettime};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{NormalThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue};

/// Watches over the priority of its thread.
#[derive(Debug)]
pub struct Priority {
    real_time: bool,
    /// Begin of the present window, and the thread's processor time then.
    since: Time,
    used: Span,
}

/// A window of this length is looked at.
const WINDOW: Span = Span::from_millis(250);
/// Most of it that the thread may use, of 100.
const SHARE: u64 = 85;
/// Among real-time threads it is one of the last.
const LEVEL: u8 = 10;
/// On the scale of the `thread-priority` crate (0 to 99): a nice value of 0.
const ORDINARY: u8 = 48;

impl Priority {
    /// Asks for real-time priority if `wanted`; without the privilege the thread stays as it is.
    pub fn new(wanted: bool, now: Time) -> Self {
        Self {
            real_time: wanted && raise(),
            since: now,
            used: processor_time(),
        }
    }

    /// Whether it has had real-time priority all the time.
    pub fn is_real_time(&self) -> bool {
        self.real_time
    }

    /// From time to time: gives up the priority if the thread uses too much of its core.
    #[inline]
    pub fn watch(&mut self, now: Time) {
        if self.real_time && now.saturating_since(self.since) >= WINDOW {
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: Time) {
        let used = processor_time();
        if is_too_much(used - self.used, now.saturating_since(self.since)) {
            self.real_time = false;
            lower();
        }
        (self.since, self.used) = (now, used);
    }
}

fn is_too_much(used: Span, of: Span) -> bool {
    used * 100 > of * SHARE
}

/// Processor time of this thread.
pub fn processor_time() -> Span {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from);
    let nanos = time.map(|t| u64::try_from(t.as_nanos()));
    Span::from_nanos(nanos.map_or(0, |n| n.unwrap_or(u64::MAX)))
}

fn raise() -> bool {
    let Ok(level) = ThreadPriorityValue::try_from(LEVEL) else {
        return false;
    };
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(level),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}

/// An ordinary thread again, as good as any other: `ThreadPriority::Min` would be a nice value of
/// 19, with which a busy machine hardly ever runs it.
fn lower() {
    let Ok(ordinary) = ThreadPriorityValue::try_from(ORDINARY) else {
        return;
    };
    let _ = set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(ordinary),
        ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_below_what_the_kernel_allows() {
        let ms = Span::from_millis;
        assert!(is_too_much(ms(230), ms(250)));
        assert!(!is_too_much(ms(200), ms(250)));
        // The kernel's limit is 95 % of a second.
        assert!(is_too_much(ms(250), ms(270)));
    }

    /// Field 19 of proc_pid_stat(5); the name before it may have blanks.
    fn nice() -> i64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields
            .split_ascii_whitespace()
            .nth(16)
            .unwrap()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_thread_that_gives_up_its_priority_is_as_good_as_any_other() {
        let before = nice();
        raise();
        lower();
        assert!(nice() <= before.max(0), "{before} became {}", nice());
    }

    #[test]
    fn without_the_wish_nothing_changes() {
        let mut priority = Priority::new(false, Time::ZERO);
        priority.watch(Time::ZERO + WINDOW * 10);
        assert!(!priority.is_real_time());
        assert!(processor_time() > Span::ZERO);
    }
}
