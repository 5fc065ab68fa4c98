//! The part of a kernel socket that congestion modules read and write, with the helpers they share
//! (`net/ipv4/tcp_cong.c`, `include/net/tcp.h` of Linux 6.1).

use fullpipe_units::{Span, Time};

use crate::classic::Setup;
use crate::controller::{Phase, Stamps};
use crate::draws::Draws;

/// Shared state, in the kernel's units: whole segments, microseconds, clock ticks ("jiffies").
#[derive(Clone, Debug)]
pub struct Socket {
    /// Window, segments.
    pub cwnd: u32,
    /// Segments acknowledged towards the next growth by one.
    pub cwnd_cnt: u32,
    /// Threshold, segments; [`Socket::INFINITE`] before the first reduction.
    pub ssthresh: u32,
    /// Upper limit of the window, segments.
    pub clamp: u32,
    /// Window before the last reduction.
    pub prior_cwnd: u32,
    /// Recovery state.
    pub state: Phase,
    /// The window, not the application, held the sender back; ask [`Socket::is_cwnd_limited`].
    pub cwnd_limited: bool,
    /// Eight times the smoothed RTT, microseconds (`srtt_us`); 0 before the first sample.
    pub srtt_us: u32,
    /// First unacknowledged segment.
    pub snd_una: u64,
    /// Next new segment.
    pub snd_nxt: u64,
    /// Payload of a segment, bytes.
    pub mss: u32,
    /// Time of the call.
    pub now: Time,
    /// Nothing was sent for this long before [`super::Event::TxStart`].
    pub idle: Span,
    /// Time stamps of the last ACK.
    pub stamps: Stamps,
    /// Segments delivered so far (`delivered`).
    pub delivered: u64,
    /// Of these, segments under ACKs with ECE (`delivered_ce`).
    pub delivered_ce: u64,
    /// Segments marked lost so far (`lost`); counted for modules that take control.
    pub lost: u64,
    /// The application limited the sender at [`super::Event::TxStart`] (`app_limited`).
    pub app_limited: bool,
    /// The sender paces (`sk_pacing_status`).
    pub paced: bool,
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    rate: RateBasis,
    draws: Draws,
}

/// What the last ACK left the pacing rate to be computed from.
#[derive(Clone, Copy, Debug, Default)]
struct RateBasis {
    cwnd: u32,
    ssthresh: u32,
    packets_out: u64,
    srtt_us: u32,
}

impl Socket {
    /// `TCP_INFINITE_SSTHRESH`.
    pub const INFINITE: u32 = 0x7fff_ffff;

    /// At the start of a connection.
    pub fn new(setup: Setup) -> Self {
        setup.assert_valid();
        let clamp = whole(setup.max_window);
        Self {
            cwnd: (setup.initial_window as u32).clamp(1, clamp.max(1)),
            cwnd_cnt: 0,
            ssthresh: Self::INFINITE,
            clamp,
            prior_cwnd: 0,
            state: Phase::Open,
            cwnd_limited: false,
            srtt_us: 0,
            snd_una: 0,
            snd_nxt: 0,
            mss: setup.mss,
            now: Time::ZERO,
            idle: Span::ZERO,
            stamps: Stamps::default(),
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            app_limited: false,
            paced: setup.paced,
            hz: setup.hz,
            rate: RateBasis::default(),
            draws: Draws::new(setup.seed),
        }
    }

    /// The window has another clamp from now on, segments.
    pub(super) fn set_clamp(&mut self, most: f64) {
        self.clamp = whole(most).max(1);
        self.cwnd = self.cwnd.min(self.clamp);
    }

    /// Ticks since the start (`tcp_jiffies32`), the first of them not 0, which the modules use for
    /// "unset".
    #[inline]
    pub fn jiffies(&self) -> u32 {
        self.ticks(self.now.as_nanos()).wrapping_add(self.hz)
    }

    /// It is later than `jiffies`, which lies less than 2^31 ticks back or ahead (`after`).
    #[inline]
    pub fn is_after(&self, jiffies: u32) -> bool {
        self.jiffies().wrapping_sub(jiffies) as i32 > 0
    }

    /// Ticks between the last transmission and [`super::Event::TxStart`]
    /// (`tcp_jiffies32 - lsndtime`): edges of the clock, not time.
    pub fn idle_jiffies(&self) -> u32 {
        let now = self.now.as_nanos();
        let last = now.saturating_sub(self.idle.as_nanos());
        self.ticks(now).wrapping_sub(self.ticks(last))
    }

    /// Microseconds since the start.
    #[inline]
    pub fn now_us(&self) -> u64 {
        self.now.as_nanos() / 1000
    }

    #[inline]
    fn ticks(&self, nanos: u64) -> u32 {
        let hz = u64::from(self.hz);
        let (seconds, rest) = (nanos / NANOS, nanos % NANOS);
        (seconds * hz + rest * hz / NANOS) as u32 // no 128-bit division: this runs on every ACK
    }

    /// Microseconds to ticks, rounded up (`usecs_to_jiffies`).
    #[inline]
    pub fn usecs_to_jiffies(&self, us: u32) -> u32 {
        (u64::from(us) * u64::from(self.hz)).div_ceil(1_000_000) as u32
    }

    /// Milliseconds to ticks, rounded up (`msecs_to_jiffies`).
    pub fn msecs_to_jiffies(&self, ms: u32) -> u32 {
        self.usecs_to_jiffies(ms * 1000)
    }

    pub(super) fn set_srtt(&mut self, srtt: Span) {
        self.srtt_us = (srtt.as_nanos() * 8 / 1000) as u32;
    }

    /// Below the threshold (`tcp_in_slow_start`).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// The window was the limit, or in slow start half of it was used (`tcp_is_cwnd_limited`).
    #[inline]
    pub fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited
    }

    /// One segment per acknowledged segment up to the threshold; returns what is left
    /// (`tcp_slow_start`).
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown.min(self.clamp);
        left
    }

    /// What slow start leaves of `acked` segments to congestion avoidance; `None` if it takes all,
    /// even of none.
    #[inline]
    pub fn past_slow_start(&mut self, acked: u32) -> Option<u32> {
        if self.in_slow_start() {
            Some(self.slow_start(acked)).filter(|left| *left > 0)
        } else {
            Some(acked)
        }
    }

    /// One segment per `w` acknowledged ones, with the carry in [`Socket::cwnd_cnt`]
    /// (`tcp_cong_avoid_ai`). A carry saved at a larger `w` gives one segment only.
    #[inline]
    pub fn cong_avoid_ai(&mut self, w: u32, acked: u32) {
        if self.cwnd_cnt >= w {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= w {
            self.cwnd += self.cwnd_cnt / w;
            self.cwnd_cnt %= w;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }

    /// Slow start, then one segment per window (`tcp_reno_cong_avoid`).
    #[inline]
    pub fn reno_cong_avoid(&mut self, acked: u32) {
        if !self.is_cwnd_limited() {
            return;
        }
        if let Some(left) = self.past_slow_start(acked) {
            // An ACK for nothing but SACKed segments comes here with 0 and may cash in a full
            // carry.
            self.cong_avoid_ai(self.cwnd, left);
        }
    }

    /// Keeps the window between two segments and the clamp, two going first
    /// (`tcp_vegas_cong_avoid`, `tcp_veno_cong_avoid`).
    pub fn bound(&mut self) {
        self.cwnd = if self.cwnd < FLOOR {
            FLOOR
        } else {
            self.cwnd.min(self.clamp)
        };
    }

    /// Half the window, at least 2 (`tcp_reno_ssthresh`).
    pub fn half(&self) -> u32 {
        (self.cwnd / 2).max(2)
    }

    /// The threshold that a reduction would find (`tcp_current_ssthresh`): three quarters of the
    /// window count.
    pub fn current_ssthresh(&self) -> u32 {
        if matches!(self.state, Phase::Recovery | Phase::Cwr) {
            self.ssthresh
        } else {
            self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
        }
    }

    /// `sk_pacing_rate`, bytes/s, as the end of the last ACK left it, paced or not
    /// (`tcp_update_pacing_rate`): a window per smoothed RTT, doubled below half the threshold, a
    /// fifth more from there on. 0 before the first ACK.
    pub fn pacing_rate(&self) -> u64 {
        let at = &self.rate;
        let percent = if at.cwnd < at.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(at.cwnd).max(at.packets_out);
        // 1e6/100 us and the 8 of `srtt_us`.
        let rate = u64::from(self.mss) * 80_000 * percent * window;
        rate / u64::from(at.srtt_us.max(1))
    }

    /// An ACK has been processed: the pacing rate follows.
    #[inline]
    pub fn update_pacing_rate(&mut self) {
        self.rate = RateBasis {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            packets_out: self.snd_nxt.saturating_sub(self.snd_una),
            srtt_us: self.srtt_us,
        };
    }

    /// A random number below `below` (`get_random_u32_below`).
    pub fn draw(&mut self, below: u32) -> u32 {
        self.draws.below(below)
    }

    pub(super) fn threshold(segments: f64) -> u32 {
        segments.min(f64::from(Self::INFINITE)) as u32
    }

    pub(super) fn scale(&mut self, ratio: f64) {
        self.cwnd = ((f64::from(self.cwnd) * ratio) as u32).max(1);
        if self.ssthresh < Self::INFINITE {
            self.ssthresh = Self::threshold(f64::from(self.ssthresh) * ratio).max(2);
        }
        self.mss = ((f64::from(self.mss) / ratio) as u32).max(1);
    }
}

/// Smallest window that a rule about the backlog leaves, segments.
const FLOOR: u32 = 2;

const NANOS: u64 = 1_000_000_000;

/// A clamp of the window as the kernel holds it.
fn whole(segments: f64) -> u32 {
    segments.min(f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        Socket::new(Setup::default())
    }

    #[test]
    fn a_carry_from_a_larger_window_gives_one_segment() {
        let mut sk = socket();
        sk.cwnd_cnt = 90;
        sk.cong_avoid_ai(10, 5);
        assert_eq!((sk.cwnd, sk.cwnd_cnt), (11, 5));
        sk.cong_avoid_ai(10, 27);
        assert_eq!((sk.cwnd, sk.cwnd_cnt), (14, 2));
    }

    #[test]
    fn an_ack_for_sacked_segments_alone_cashes_in_a_carry() {
        let mut sk = socket();
        sk.cwnd_limited = true;
        sk.ssthresh = 2;
        sk.cwnd_cnt = 10;
        sk.reno_cong_avoid(0);
        assert_eq!((sk.cwnd, sk.cwnd_cnt), (11, 0));
        sk.cwnd_cnt = 11;
        sk.ssthresh = 20;
        sk.reno_cong_avoid(0);
        assert_eq!((sk.cwnd, sk.cwnd_cnt), (11, 11));
    }

    #[test]
    fn slow_start_stops_at_the_threshold() {
        let mut sk = socket();
        sk.ssthresh = 12;
        assert_eq!((sk.slow_start(5), sk.cwnd), (3, 12));
    }

    #[test]
    fn ticks_follow_the_clock_and_round_up_for_spans() {
        let mut sk = socket();
        sk.hz = 100;
        let start = sk.jiffies();
        sk.now = Time::from_nanos(29_999_999);
        assert_eq!(sk.jiffies() - start, 2);
        assert_eq!(sk.usecs_to_jiffies(20_000), 2);
        assert_eq!(sk.usecs_to_jiffies(20_001), 3);
        assert_eq!(sk.msecs_to_jiffies(20), 2);
    }

    #[test]
    fn idle_ticks_are_edges_of_the_clock() {
        let mut sk = socket();
        sk.hz = 100;
        sk.now = Time::from_nanos(3_020_000_000);
        sk.idle = Span::from_micros(1);
        assert_eq!(sk.idle_jiffies(), 1);
        sk.now = Time::from_nanos(3_029_999_999);
        sk.idle = Span::from_micros(9_999);
        assert_eq!(sk.idle_jiffies(), 0);
        sk.idle = Span::from_millis(2_000);
        assert_eq!(sk.idle_jiffies(), 200);
    }

    /// 2^32 ticks of 10 ms are 497 days.
    #[test]
    fn ticks_wrap_as_jiffies_do() {
        let mut sk = socket();
        sk.hz = 100;
        sk.now = Time::ZERO + Span::from_millis(10) * (u64::from(u32::MAX) + 3);
        sk.idle = Span::from_millis(50);
        assert_eq!(sk.idle_jiffies(), 5);
        assert_eq!(sk.jiffies(), 102);
        sk.now = sk.now - Span::from_secs(1);
        assert_eq!(sk.jiffies(), 2);
    }

    #[test]
    fn the_pacing_rate_is_twice_the_windows_rate_until_half_the_threshold() {
        let mut sk = socket();
        assert_eq!(sk.pacing_rate(), 0);
        (sk.cwnd, sk.srtt_us) = (100, 8 * 50_000);
        (sk.snd_una, sk.snd_nxt) = (1000, 1100);
        sk.update_pacing_rate();
        assert_eq!(sk.pacing_rate(), 2 * 1448 * 100 * 20);
        sk.ssthresh = 202;
        sk.update_pacing_rate();
        assert_eq!(sk.pacing_rate(), 2 * 1448 * 100 * 20);
        sk.ssthresh = 201;
        assert_eq!(sk.pacing_rate(), 2 * 1448 * 100 * 20, "of the last ACK");
        sk.update_pacing_rate();
        assert_eq!(sk.pacing_rate(), 1448 * 120 * 20);
        sk.snd_nxt = 1150;
        sk.update_pacing_rate();
        assert_eq!(sk.pacing_rate(), 1448 * 180 * 20);
    }

    #[test]
    fn the_saved_threshold_is_three_quarters_of_the_window_at_least() {
        let mut sk = socket();
        sk.cwnd = 100;
        sk.ssthresh = 40;
        assert_eq!(sk.current_ssthresh(), 75);
        sk.state = Phase::Recovery;
        assert_eq!(sk.current_ssthresh(), 40);
    }
}
