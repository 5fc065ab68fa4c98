//! The window in force, in whole segments.

use crate::limit::Limit;

/// Whole segments of the window in force.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    window: u64,
    /// The same as a real number where it follows one, else none.
    whole: f64,
    /// Cap of the window, segments; [`u64::MAX`] for none.
    most: u64,
}

impl Budget {
    /// `most` is the cap of the window, segments.
    pub(super) fn new(window: u64, most: f64) -> Self {
        Self {
            window,
            whole: window as f64,
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
