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

    /// New segment `seq` leaves; `peak` is the largest window so far. True if it carries PSH.
    #[inline]
    pub(super) fn push(&mut self, seq: u64, peak: u64) -> bool {
        let push = seq >= self.next_push;
        if push {
            let write = (self.part * peak as f64) as u64;
            self.next_push = seq.saturating_add(write.max(1));
        }
        push
    }
}
