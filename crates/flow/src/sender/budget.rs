//! The window in force, in whole segments, and what follows from its largest value: the pushes of
//! an application that fills a send buffer.

use crate::limit::Limit;

/// Whole segments of the window in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    window: u64,
    /// The same as a real number where it follows one, else none.
    whole: f64,
    peak: u64,
    /// Cap of the window, segments; [`u64::MAX`] for none.
    most: u64,
}

impl Budget {
    /// `most` is the cap of the window, segments.
    pub(super) fn new(window: u64, most: f64) -> Self {
        Self {
            window,
            whole: window as f64,
            peak: window,
            // The cast saturates.
            most: most as u64,
        }
    }

    /// The cap of the window is another one.
    pub(super) fn cap(&mut self, most: f64) {
        self.most = most as u64;
    }

    /// Segments that may be in the network.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// Largest window so far, segments.
    #[inline]
    pub(super) fn peak(&self) -> u64 {
        self.peak
    }

    /// What the window stands for where it holds the sender back.
    #[inline]
    pub(super) fn limit(&self) -> Limit {
        match self.window >= self.most {
            true => Limit::WindowCap,
            false => Limit::Network,
        }
    }

    /// The window in force is PRR's.
    #[inline]
    pub(super) fn set(&mut self, window: u64) {
        self.window = window;
        self.whole = f64::NAN;
        self.peak = self.peak.max(window);
    }

    /// The window in force is `w`, real-valued segments.
    #[inline]
    pub(super) fn follow(&mut self, w: f64) {
        // In congestion avoidance few ACKs complete a segment, and to see that costs less than to
        // convert the number.
        let same = w >= self.whole && w < self.whole + 1.0;
        if !same {
            self.set(w as u64);
            self.whole = self.window as f64;
        }
    }
}

/// Where the application's writes end
/// ([`HostConfig::refill`](crate::config::HostConfig::refill)).
#[derive(Clone, Copy, Debug)]
pub(super) struct Writes {
    /// Fraction of the largest window that one write fills.
    part: f64,
    /// The segment that ends the present write; [`u64::MAX`]: none does.
    next_push: u64,
}

impl Writes {
    pub(super) fn new(refill: Option<f64>) -> Self {
        Self {
            part: refill.unwrap_or(f64::INFINITY),
            next_push: if refill.is_some() { 0 } else { u64::MAX },
        }
    }

    /// New segment `seq` leaves; `peak` is the largest window so far, `advertised` the largest of
    /// the peer's. True if it carries PSH: it ends a write, or with it more than half of what the
    /// peer advertised is written since the last one that did (Linux `forced_push`).
    #[inline]
    pub(super) fn push(&mut self, seq: u64, peak: u64, advertised: u64) -> bool {
        let push = seq >= self.next_push;
        if push {
            let write = (self.part * peak as f64) as u64;
            let most = (advertised / 2).saturating_add(1);
            self.next_push = seq.saturating_add(write.clamp(1, most));
        }
        push
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than half of the window written since the last push: of 2 and 3 segments two, of 4 and
    /// 5 three, of 8 five; beyond what is advertised the buffer's refills count.
    #[test]
    fn half_of_a_small_advertised_window_is_pushed() {
        for (advertised, every) in [(2, 2), (3, 2), (4, 3), (5, 3), (8, 5), (u64::MAX, 69)] {
            let mut writes = Writes::new(Some(0.694));
            let pushed = (0..1000).filter(|seq| writes.push(*seq, 100, advertised));
            let pushed: Vec<u64> = pushed.take(3).collect();
            assert_eq!(pushed, [0, every, 2 * every], "{advertised}");
        }
    }
}
