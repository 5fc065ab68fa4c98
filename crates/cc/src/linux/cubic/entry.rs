//! What the registry says of `cubic-linux`, and what the module makes of its parameters when it is
//! loaded.

use super::Cubic;
use crate::entry::Entry;

/// Module parameters and what the module makes of them when it is loaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) fast_convergence: bool,
    /// Kept on a reduction, 1/1024.
    pub(super) beta: u32,
    pub(super) initial_ssthresh: u32,
    /// `C` over the 100 ms the kernel takes for an RTT, 1/1024.
    pub(super) curve: u32,
    /// What a distance in segments is multiplied by before the cube root gives 1/1024 s.
    pub(super) inverse_curve: u64,
    pub(super) friendly: bool,
    /// Eighths of a window to be acknowledged for one segment of the friendly window.
    pub(super) friendly_pace: u32,
    pub(super) hystart: bool,
    pub(super) ack_train: bool,
    pub(super) delay: bool,
    pub(super) low_window: u32,
    pub(super) ack_delta_us: u32,
    /// Largest burst of the device as the socket sees it, bytes.
    pub(super) burst: u64,
}

/// `cubic-linux`.
pub const CUBIC_LINUX: Entry<Cubic> = Entry {
    name: "cubic-linux",
    aliases: &[],
    about: "CUBIC with HyStart to the integer: a cubic in ticks, a twentieth per RTT before the \
        first loss",
    source: SOURCE,
    params: &[
        param!(fast_convergence: flag = true,
            "after a loss below the last maximum remember less than the window", SOURCE),
        param!(beta: number = 717.0, 512.0..=1023.0, "1/1024",
            "kept on a reduction; below 512 the kernel's friendly loop never ends at a window of \
            one segment",
            SOURCE)
        .kept_of(1024.0),
        param!(initial_ssthresh: number = 0.0, 0.0..=1e9, "segments",
            "first threshold, read only with hystart=off; 0: none", SOURCE),
        param!(bic_scale: number = 41.0, 1.0..=1e5, "1/1024",
            "the curve's C times 100 ms; 41: 0.4 segments/s^3", SOURCE),
        param!(tcp_friendliness: flag = true,
            "never slower than a Reno flow with the same decrease", SOURCE),
        param!(hystart: flag = true, "leave slow start before a loss", SOURCE),
        param!(hystart_detect: number = 3.0, 0.0..=3.0, "bits",
            "what ends slow start: 1 a train of ACKs, 2 a longer RTT, 3 either", SOURCE),
        param!(hystart_low_window: number = 16.0, 0.0..=1e9, "segments",
            "window from which HyStart looks", SOURCE),
        param!(hystart_ack_delta_us: number = 2000.0, 0.0..=1e9, "us",
            "largest gap between two ACKs of a train", SOURCE),
        param!(gso_max_size: number = 1514.0, 194.0..=65_536.0, "bytes",
            "largest burst the device takes (`ip link set gso_max_size`), one frame by default; \
            lengthens the train HyStart allows",
            "Linux 6.1 net/core/sock.c, sk_setup_caps"),
    ],
    build: |p| {
        let beta = p.whole("beta")?;
        let curve = p.whole("bic_scale")? * 10;
        let detect = p.whole("hystart_detect")?;
        let settings = Settings {
            fast_convergence: p.flag("fast_convergence"),
            beta,
            initial_ssthresh: p.whole("initial_ssthresh")?,
            curve,
            inverse_curve: (1 << 40) / u64::from(curve),
            friendly: p.flag("tcp_friendliness"),
            friendly_pace: 8 * (SCALE + beta) / 3 / (SCALE - beta),
            hystart: p.flag("hystart"),
            ack_train: detect & 1 != 0,
            delay: detect & 2 != 0,
            low_window: p.whole("hystart_low_window")?,
            ack_delta_us: p.whole("hystart_ack_delta_us")?,
            burst: u64::from(p.whole("gso_max_size")?) - HEADERS,
        };
        Ok(Cubic::new(settings))
    },
};

/// Unit of `beta` (`BICTCP_BETA_SCALE`).
pub(super) const SCALE: u32 = 1024;

/// What a socket takes off the device's largest burst for headers, bytes (`MAX_TCP_HEADER` + 1
/// without wireless or tunnel drivers).
const HEADERS: u64 = 193;

const SOURCE: &str = "Linux 6.1 net/ipv4/tcp_cubic.c";

#[cfg(test)]
mod tests {
    #[test]
    fn parameters_are_whole_numbers() {
        let why = crate::rounds::try_component("cubic-linux", &[("hystart_low_window", "1.5")])
            .unwrap_err();
        assert_eq!(why, "hystart_low_window takes whole numbers, not 1.5");
    }
}
